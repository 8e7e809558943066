"""Machine code of kernels in this process: how it is loaded, and how Python calls it. Nothing here needs Numba."""

from __future__ import annotations

import ctypes
import itertools
import pickle
import platform
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

__all__ = ["ENTRY", "MISFIT", "OTHER_TYPES", "Code", "Routine"]

ENTRY = "fastrec_entry"  # the function of an object file that Python calls
FINE = (0, -2)  # what it returns; the second if the kernel returns nothing
OTHER_TYPES = -100  # the same for arrays of other types than it was compiled for, of which it reads none
MISFIT: Any = object()  # in place of a result: the code is for arguments of other types
SLOT = 8  # bytes
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)  # called without the interpreter's lock


class Code(NamedTuple):
    """A compiled kernel, as it is kept on disk."""

    machine: bytes  # an object file
    slots: list[str]  # what each argument is: "array", "none", or a format of `struct` for a number
    dtypes: list[str]  # of arrays, each once
    results: list[str]  # formats of the numbers that it returns
    is_tuple: bool  # whether it returns them in a tuple


class Routine:
    """Compiled code that takes the flattened arguments of a kernel."""

    def __init__(self, code: Code) -> None:
        self._numbers = [at for at, slot in enumerate(code.slots) if slot not in ("array", "none")]
        self._dtypes = [np.dtype(name) for name in code.dtypes]
        self._ids = tuple(map(id, self._dtypes))
        formats = ["Q" if slot in ("array", "none") else slot for slot in code.slots]
        self._pack = struct.Struct("".join(formats) + "Q" * len(self._ids)).pack
        self._unpack = struct.Struct("".join(code.results)).unpack_from
        self._is_tuple, self._is_none = code.is_tuple, not code.results and not code.is_tuple
        self._room = ctypes.c_char * (SLOT * max(len(code.results), 1))
        self._call = PROTOTYPE(_Linker.load(code.machine))

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run the kernel and return its result, or MISFIT."""
        values = [*map(id, leaves)]
        for at in self._numbers:
            values[at] = leaves[at]
        room = self._room()
        try:
            status = self._call(self._pack(*values, *self._ids), room)
        except struct.error:  # a number that does not fit into its slot
            return MISFIT
        if status not in FINE:
            return MISFIT if status == OTHER_TYPES else _raise(room)
        if self._is_none:
            return None
        found = self._unpack(room)
        return found if self._is_tuple else found[0]


class _Failure(ctypes.Structure):
    """An exception of a kernel, such as MemoryError, as Numba writes it."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("unwrap", ctypes.c_void_p),
        ("n_values", ctypes.c_int32),
    )


def _raise(room: Any) -> NoReturn:
    """Raise the exception of a kernel, whose address is in `room`."""
    failure = _Failure.from_address(int.from_bytes(room[:SLOT], "little"))
    kind, arguments, _ = pickle.loads(ctypes.string_at(failure.pickled, failure.size))  # noqa: S301 - our own code's
    raise kind(*(arguments if failure.n_values == 0 else ()))


class _Linker:
    """LLVM's linker, with a library of its own for each kernel: names in two object files are never confused."""

    linker: Any = None
    libraries: list[Any] = []  # noqa: RUF012 - kept for the life of the process: threads may run them to the end
    count = itertools.count()

    @classmethod
    def load(cls, machine: bytes) -> int:
        """Load an object file and return the address of its entry. An error leaves the process as it was."""
        from llvmlite import binding

        if cls.linker is None:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            # The older of LLVM's two linkers is the one that Numba uses. On ARM it can place parts of an object too
            # far from each other.
            is_arm = platform.machine().lower() in ("arm64", "aarch64")
            cls.linker = binding.create_lljit_compiler(use_jit_link=is_arm)
        library = binding.JITLibraryBuilder().add_object_img(machine).add_current_process().export_symbol(ENTRY)
        linked = library.link(cls.linker, f"fastrec-{next(cls.count)}")
        cls.libraries.append(linked)
        address: int = linked[ENTRY]
        return address
