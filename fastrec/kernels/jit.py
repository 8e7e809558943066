"""How kernels are compiled and where compiled code is kept. Options are policy, so they stand here once.

Kernels are plain Python with plain semantics, so a small input need not wait for the compiler, nor for Numba to be
imported: a kernel is interpreted until as much was asked of it as loading its compiled code costs. Both ways give the
same bits.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fastrec._version import __version__
from fastrec.threads import uninterrupted

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
STEPS_INTERPRETED = 100_000  # of each kernel; about what importing Numba costs


class Helper:
    """A function that kernels call; see `helper`. Its dispatcher is made when a kernel that calls it is compiled.

    Dispatchers of a few dozen helpers cost more than loading a compiled kernel, which needs none of them.
    """

    def __init__(self, function: Callable[..., Any], *, inlined: bool = False) -> None:
        self._function = function
        self._inlined = inlined

    def __call__(self, *arguments: Any) -> Any:
        """The function as Python runs it."""
        return self._function(*arguments)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        from numba import njit

        return njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=self._inlined)(
            self._function
        )

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this object for."""
        from numba import types

        return types.Dispatcher(self._dispatcher)


def helper(function: Callable[..., Any]) -> Any:
    """A function that other kernels call: compiled into its callers, never cached on its own.

    It allocates nothing, so references to arrays are not counted: for short rows the (atomic) counting of slices cost
    more than the work on them.
    """
    return Helper(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A helper that is called for every user: many arrays are handed over as seven numbers each, at every call."""
    return Helper(function, inlined=True)


class Entry:
    """A kernel that Python calls, with one signature per `variant` and its compiled code kept on disk.

    Two signatures of one function in one cache folder can spoil each other when two processes start cold, so each
    variant has a dispatcher and a folder of its own.
    """

    eager = False  # whether this process compiles at once whatever is asked for

    def __init__(
        self, function: Callable[..., Any], variant: str, *, parallel: bool = False, allocates: bool = False
    ) -> None:
        self._function = function
        self._variant = variant
        self._options = {**_OPTIONS, "parallel": parallel, "_nrt": parallel or allocates}
        self._steps = 0
        self._wanted = False
        self._dispatcher: Any = None

    def suited_to(self, steps: int, *arguments: Any) -> Callable[..., Any]:
        """What to call for work of so many steps: Python's own function while that is little, else compiled code.

        Compiled code is loaded by the first call, or now for such arguments: threads of a pool cannot be interrupted
        while one of them compiles.
        """
        self._steps += steps
        if not Entry.eager and self._dispatcher is None and self._steps <= STEPS_INTERPRETED:
            return self.interpreted
        if arguments:
            self.dispatcher(*arguments)
        return self.compiled

    def interpreted(self, *arguments: Any) -> Any:
        """The kernel as Python runs it."""
        with np.errstate(all="ignore"):  # as compiled code, which wraps around and divides by zero in silence
            return self._function(*arguments)

    def compiled(self, *arguments: Any) -> Any:
        """The kernel as the processor runs it."""
        return self.dispatcher(*arguments)(*arguments)

    def is_wanted(self) -> bool:
        """Whether this is not the first time that it could be used: here, or where compiled code was left on disk."""
        first, self._wanted = not self._wanted, True
        if not first or Entry.eager:
            return True
        from fastrec.kernels.store import holds_code

        folder = _folder(self._variant)
        return folder is not None and holds_code(folder)

    def dispatcher(self, *arguments: Any) -> Any:
        """Numba's dispatcher, with code for such arguments, as all calls of a variant have."""
        if self._dispatcher is None:
            uninterrupted(lambda: self._load(arguments))
        return self._dispatcher

    def _load(self, arguments: tuple[Any, ...]) -> None:
        """Compile, or read compiled code."""
        if self._dispatcher is not None:  # by another thread, or since a call was interrupted
            return
        from numba import njit

        dispatcher = njit(**self._options)(self._function)
        _keep_on_disk(dispatcher, self._variant)
        if hasattr(dispatcher, "compile"):  # Numba may be told not to compile
            dispatcher.compile(_signature(dispatcher, arguments))
        self._dispatcher = dispatcher


def as_function(kernel: Entry, *arguments: Any) -> Any:
    """The compiled code for these arguments as a value that other kernels can take and call."""
    dispatcher = kernel.dispatcher(*arguments)
    return _as_function(dispatcher, _signature(dispatcher, arguments))


@functools.cache
def _as_function(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Made once: it takes the locks of the compiler, which a fork may not find held."""
    from numba import types

    dispatcher.compile(signature)  # where arguments are of another type than those before
    return types.CompileResultWAP(dispatcher.overloads[signature])


def _signature(dispatcher: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of arguments as a call has them: another form would be kept on disk beside what calls keep."""
    return tuple(map(dispatcher.typeof_pyval, arguments))


def _keep_on_disk(dispatcher: Any, variant: str) -> None:
    """Have compiled code read from disk and kept there, if a folder can be had."""
    from fastrec.kernels.store import CodeStore

    folder = _folder(variant)
    if folder is not None and hasattr(dispatcher, "enable_caching"):  # Numba may be told not to compile
        dispatcher._cache = CodeStore(folder, dispatcher.py_func)  # noqa: SLF001 - as enable_caching does


def _folder(variant: str) -> Path | None:
    """Where the compiled code of a variant is kept."""
    root = cache_root()
    return None if root is None else root / _cache_key() / variant


def cache_root() -> Path | None:
    """The folder for compiled code: FASTREC_CACHE_DIR, NUMBA_CACHE_DIR or the user's cache folder."""
    if os.environ.get("FASTREC_CACHE", "1") == "0":
        return None
    for variable in ("FASTREC_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if folder := os.environ.get(variable):
            return Path(folder) / "fastrec"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not base or base.startswith("~"):
        return None
    return Path(base) / "fastrec"


@functools.cache
def _cache_key() -> str:
    """Names everything that Numba's own index does not look at: our sources, the processor, compiler switches."""
    import hashlib

    import llvmlite.binding
    import numba

    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    for switch in (
        "BOUNDSCHECK",
        "OPT",
        "DEBUG",
        "DEBUGINFO",
        "LOOP_VECTORIZE",
        "SLP_VECTORIZE",
        "CPU_NAME",
        "CPU_FEATURES",
    ):
        digest.update(f"{switch}={getattr(numba.config, switch, None)}".encode())
    return f"{__version__}-{digest.hexdigest()[:12]}-nb{numba.__version__}-{llvmlite.binding.get_host_cpu_name()}"
