"""Compilation of kernels: the options of Numba, and the decision to interpret or compile.

Kernels are plain Python with plain semantics, so a small input waits neither for the compiler nor for the import of
Numba. Python interprets a kernel until its work costs about as much as loading its compiled code. Both give the same
bits.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastrec.exceptions import warn
from fastrec.runtime.code_cache import code_store
from fastrec.runtime.limits import MIN_SPACE_TO_COMPILE, address_space_left
from fastrec.runtime.loaded_code import MISFIT, Routine
from fastrec.runtime.numba_settings import is_told_to_interpret
from fastrec.runtime.threads import once, refuse_to_load, start_thread, uninterrupted
from fastrec.runtime.values import describe, flatten, reads_arrays, regular

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
STEPS_INTERPRETED = 100_000  # of each kernel; about what importing Numba costs
NOTICE_AFTER = 1.0  # seconds of compilation


class Helper:
    """A function that kernels call; see `helper`. Its dispatcher is made when a kernel that calls it is compiled.

    A compiled kernel is loaded without the dispatchers of its helpers: a few dozen of them cost more than the loading.
    """

    plain = False  # whether the private parts of Numba that compile helpers faster have failed in this process

    def __init__(self, function: Callable[..., Any], *, inlined: bool = False) -> None:
        self._function = function
        self._inlined = inlined
        self.name = function.__name__

    def __call__(self, *arguments: Any) -> Any:
        """Run the function in Python."""
        return self._function(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher."""
        return self._plain if Helper.plain else self._quick

    @once
    def _plain(self) -> Any:
        """A dispatcher that compiles like that of any other function."""
        return self._new_dispatcher()

    @once
    def _quick(self) -> Any:
        """A dispatcher that compiles in a third less time, by private parts of Numba that other versions may lack."""
        from fastrec.runtime.helper_compiler import HelperCompiler

        return self._new_dispatcher(pipeline_class=HelperCompiler)

    def _new_dispatcher(self, **more: Any) -> Any:
        from numba import njit

        options = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, **more}
        return njit(**options, forceinline=self._inlined)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of this object: that of its dispatcher."""
        from numba import types

        return types.Dispatcher(self.dispatcher)


def helper(function: Callable[..., Any]) -> Any:
    """Mark a function that kernels call: it is compiled into its callers, never cached on its own.

    It must allocate nothing: references to arrays are not counted, since for short rows the atomic counting of slices
    cost more than the work on them.
    """
    return Helper(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Mark a helper to be inlined: called for every user, it would be passed each array as seven numbers every time."""
    return Helper(function, inlined=True)


class Entry:
    """A kernel that Python calls. Each `variant` keeps its compiled code in a folder of its own.

    All calls of a variant have arguments of the same types; others are compiled, too, when they occur.
    """

    eager = False  # whether this process compiles kernels at their first call

    def __init__(self, function: Callable[..., Any], variant: str, *, allocates: bool = False) -> None:
        self._function = function
        self._variant = variant
        self._options = {**_OPTIONS, "_nrt": allocates}
        self._steps = 0
        self._routines: dict[str, Routine] = {}  # by the description of the arguments
        self._last: dict[tuple[Any, ...], Routine] = {}  # by the Python types of the arguments
        self._dispatcher: Any = None  # that of Numba, where code cannot be compiled or loaded in our own way

    def suited_to(self, steps: int, *arguments: Any) -> Callable[..., Any]:
        """Return what to call for work of so many steps: `interpreted` while that is little, else `compiled`.

        With arguments, load their compiled code now, not in the first call: threads of a pool cannot be interrupted
        while one of them compiles.
        """
        self._steps += steps
        if not self._is_loaded() and ((not Entry.eager and self._steps <= STEPS_INTERPRETED) or not may_compile()):
            return self.interpreted
        if arguments and not self._is_loaded():
            self.load(*arguments)
        return self.compiled

    def interpreted(self, *arguments: Any) -> Any:
        """Run the kernel in Python."""
        with np.errstate(all="ignore"):  # compiled code wraps around and divides by zero without a warning, too
            return self._function(*arguments)

    def compiled(self, *arguments: Any) -> Any:
        """Run the compiled kernel."""
        kinds, leaves = flatten(arguments)
        routine = self._last.get(kinds)
        found = MISFIT if routine is None else routine(leaves)
        return self._run_other(kinds, arguments) if found is MISFIT else found

    def load(self, *arguments: Any) -> None:
        """Load code for arguments of these types: from disk, or else compile it."""
        if not self._is_loaded() or describe(regular(arguments)) not in self._routines:
            refuse_to_load()
            uninterrupted(lambda: self._load(regular(arguments)))

    def _is_loaded(self) -> bool:
        return self._dispatcher is not None or bool(self._routines)

    def _run_other(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
        """Run the kernel with other arguments than last time."""
        self.load(*arguments)
        if self._dispatcher is not None:
            return self._dispatcher(*arguments)
        given = regular(arguments)
        self._last[kinds] = routine = self._routines[describe(given)]
        found = routine(flatten(given)[1])
        if found is MISFIT:
            raise TypeError(f"compiled kernels do not take arguments of the types {describe(given)}")
        return found

    def _load(self, arguments: tuple[Any, ...]) -> None:
        """Load code, or let Numba call the kernel where our own way fails."""
        described = describe(arguments)
        if self._dispatcher is not None or described in self._routines:  # set by another thread, or before an interrupt
            return
        with contextlib.suppress(Exception):  # another Numba, another system: slower starts, same values
            if not Helper.plain:
                self._routines[described] = self._routine(arguments, described)
                return
        was_plain, Helper.plain = Helper.plain, True
        try:
            self._dispatcher = self._plain_dispatcher(arguments)
        except Exception:
            Helper.plain = was_plain  # the private parts were not at fault
            raise

    def _routine(self, arguments: tuple[Any, ...], described: str) -> Routine:
        """Load code from disk, or compile it and keep it there."""
        if not reads_arrays():
            raise NotImplementedError("arrays of another form")
        store = code_store(self._function, self._variant, described)
        kept = store.read()
        if kept is not None:
            with contextlib.suppress(Exception):  # the linker refuses it
                return Routine(kept)
        with _announced():
            from fastrec.runtime.kernel_compiler import compile_kernel

            code = compile_kernel(self._function, arguments, **self._options)
        routine = Routine(code)
        store.write(code)
        return routine

    def _plain_dispatcher(self, arguments: tuple[Any, ...]) -> Any:
        """Return Numba's dispatcher, which keeps no code on disk."""
        from numba import njit

        dispatcher = njit(**self._options)(self._function)
        with _announced():
            dispatcher.compile(_signature(arguments))
        return dispatcher


def may_compile() -> bool:
    """Return whether kernels may be compiled, or are told or forced to be interpreted."""
    return not (is_told_to_interpret() or _is_space_short())


def _is_space_short() -> bool:
    """Return whether the limit of the address space leaves too little to compile; warn once if so."""
    left = address_space_left()
    if left is None or left >= MIN_SPACE_TO_COMPILE:
        return False
    _warn_of_space()
    return True


@functools.cache
def _warn_of_space() -> None:
    line = (
        "the limit of the address space (ulimit -v) leaves too little to compile kernels, which takes "
        f"{MIN_SPACE_TO_COMPILE >> 20:,} MB: Python runs them, with the same values but slowly; raise the limit"
    )
    warn([line])


@contextlib.contextmanager
def _announced() -> Iterator[None]:
    """Compile within this block. If it takes long, say so once: to `logging`, and on stderr if a person reads it."""
    timer = threading.Timer(NOTICE_AFTER, _announce_compilation)
    timer.daemon = True
    start_thread(timer)
    try:
        yield
    finally:
        timer.cancel()


def _is_read() -> bool:
    """Return whether a person reads stderr: on a terminal or in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@functools.cache
def _announce_compilation() -> None:
    line = (
        "fastrec compiles the kernels that this call needs, once on this machine, which takes 10 to 30 seconds; "
        "`fastrec warmup` compiles all"
    )
    logging.getLogger("fastrec").info(line)
    if os.environ.get("FASTREC_NOTICE", "1" if _is_read() else "0") != "0":
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            print(f"{line} (FASTREC_NOTICE=0 silences this)", file=sys.stderr, flush=True)


def _signature(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of arguments as calls have them: in another form the code would be kept on disk twice."""
    from numba.core.typing.typeof import Purpose, typeof

    return tuple(typeof(argument, Purpose.argument) for argument in arguments)
