"""Calls of kernels: small work is interpreted, other work compiled, on one thread or several.

Callers pass the functions of `fastrec.kernels`, which are plain Python. Their compiled twins are those of the same
name in `fastrec.compiled_kernels` and `fastrec.serial_kernels`; see `fastrec.kernels.jit`. All give the same bits.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.code_folder import code_folder
from fastrec.runtime.limits import may_compile
from fastrec.runtime.threads import heed, refuse_to_load, run_in_threads, uninterrupted, was_forked

Array = np.ndarray[Any, Any]
# `work` counts simple steps; Python takes 1 to 5 microseconds for one, compiled code about a nanosecond
LOADING = 100_000  # work of a kernel in a process that costs about as much as importing Numba and loading its code
COMPILING = 1_500_000  # that costs about as much as compiling it
SMALL_WORK = 500_000  # below, several threads cost more than they save
RANGE, SMALL_RANGE = 1 << 14, 1 << 10  # users or rows of a task: at most, and at least where there are several
WORK_PER_LAUNCH = 1 << 27  # of each thread; between launches a call can be interrupted and reports progress


class Launcher:
    """How kernels run in this process; `warmup` and tests set it."""

    way = ""  # "interpreted", or "compiled" where that is possible, whatever the work


class Twin(NamedTuple):
    """A kernel as one call runs it."""

    function: Callable[..., Any]
    is_compiled: bool
    is_parallel: bool  # whether it may run on Numba's threads
    inner: tuple[Callable[..., Any], ...] = ()  # what stands for the kernels among the arguments


_work_done: dict[tuple[Callable[..., Any], ...], int] = {}  # by kernels while they are interpreted
_compiled: dict[tuple[Any, ...], Twin] = {}  # by kernel, process and types of arguments


def call(kernel: Callable[..., Any], *arguments: Any, work: int) -> Any:
    """Call a kernel on this thread and return its result. `work` is about how many simple steps it takes."""
    arguments = tuple(map(_plain, arguments))
    twin = _twin_of(kernel, arguments, work, is_driver=False)
    return twin.function(*arguments) if twin.is_compiled else _interpret(kernel, arguments)


def launch(driver: Callable[..., Any], n_tasks: int, *arguments: Any, work: int, n_threads: int) -> None:
    """Call `driver(first, last, *arguments)`, a kernel with a `prange` over tasks, for ranges that hold all tasks.

    The first arguments may be kernels that the driver calls, with those of its other arguments that have the names of
    their parameters, and int64 for the others. They are compiled once, while kernels that a driver names are compiled
    three times, with all that they call.

    `work` is about how many simple steps all tasks take together.
    """
    arguments = tuple(map(_plain, arguments))
    twin = _twin_of(driver, (0, 0, *arguments), work, is_driver=True)
    if not twin.is_compiled:
        _interpret(driver, (0, n_tasks, *arguments))
        return
    arguments = twin.inner + arguments[len(twin.inner) :]
    n_threads = max(min(n_threads if work >= SMALL_WORK else 1, n_tasks), 1)
    at_once = n_threads * max(n_tasks * WORK_PER_LAUNCH // max(work, 1), 1)
    for first in range(0, n_tasks, at_once):
        heed()
        _run(twin, first, min(first + at_once, n_tasks), arguments, n_threads)


def edges_of(n: int, n_threads: int) -> Array:
    """Return int64 edges (n_tasks + 1,) of ranges of users or rows: so many tasks that all threads have work.

    Task t of a driver takes edges[t]..edges[t + 1]-1.
    """
    n_tasks = max(-(-n // RANGE), min(4 * n_threads, n // SMALL_RANGE), 1)
    edges: Array = n * np.arange(n_tasks + 1, dtype=np.int64) // n_tasks
    edges.flags.writeable = False
    return edges


def _plain(argument: Any) -> Any:
    """Return an array without a class of its own, in named tuples, too."""
    if isinstance(argument, np.ndarray) and type(argument) is not np.ndarray:
        return argument.view(np.ndarray)
    if isinstance(argument, tuple) and hasattr(argument, "_make"):
        return argument._make(map(_plain, argument))
    return argument


def _interpret(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with np.errstate(all="ignore"):  # compiled code wraps around and divides by zero without a warning, too
        return kernel(*arguments)


def _twin_of(kernel: Callable[..., Any], arguments: tuple[Any, ...], work: int, *, is_driver: bool) -> Twin:
    """Return a kernel as it is, to be interpreted, or its compiled twin for arguments of these types."""
    key = (kernel, is_driver and was_forked(), *map(_type_of, arguments))
    if Launcher.way != "interpreted" and key in _compiled:
        return _compiled[key]
    if not _is_interpreted((kernel, *filter(callable, arguments)), work):
        refuse_to_load()
        uninterrupted(lambda: _keep_twin(key, kernel, arguments, is_driver=is_driver))
        return _compiled[key]
    return Twin(kernel, is_compiled=False, is_parallel=False)


def _type_of(argument: Any) -> Any:
    """Return what decides about the type that Numba gives an argument."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype, argument.ndim, flags.writeable, flags.c_contiguous
    if isinstance(argument, tuple):
        return (type(argument), *map(_type_of, argument))
    return argument if callable(argument) else type(argument)


def _is_interpreted(kernels: tuple[Callable[..., Any], ...], work: int) -> bool:
    """Return whether Python runs kernels: until that has cost as much as it would to load or compile them."""
    if Launcher.way == "interpreted":
        return True
    if not Launcher.way:
        done = _work_done[kernels] = _work_done.get(kernels, 0) + work
        if done <= LOADING or (done <= COMPILING and not all(map(_is_on_disk, kernels))):
            return True
    return not may_compile()


def _is_on_disk(kernel: Callable[..., Any]) -> bool:
    """Return whether compiled code of a kernel is on disk, whatever its types."""
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}" in _names_on_disk()


@functools.cache
def _names_on_disk() -> set[str]:
    """Return the names of the kernels that have compiled code on disk."""
    folder = code_folder()
    return set() if folder is None else {path.name.partition("-")[0] for path in Path(folder).rglob("*.nbi")}


def _keep_twin(
    key: tuple[Any, ...], kernel: Callable[..., Any], arguments: tuple[Any, ...], *, is_driver: bool
) -> None:
    """Compile a twin unless another thread has done so while this one waited."""
    if key not in _compiled:
        _compiled[key] = _compile(kernel, arguments, is_driver=is_driver)


def _compile(kernel: Callable[..., Any], arguments: tuple[Any, ...], *, is_driver: bool) -> Twin:
    """Load the compiled twin of a kernel from disk, or else compile it and keep it there."""
    numba = importlib.import_module("numba")
    if numba.config.DISABLE_JIT:  # by a file of settings, which only Numba reads
        return Twin(kernel, is_compiled=False, is_parallel=False)
    is_parallel = not is_driver or (not was_forked() and _layer() != "workqueue")
    variant, inner = "compiled_kernels" if is_parallel else "serial_kernels", []
    types = {
        name: None if callable(argument) else numba.typeof(argument)
        for name, argument in zip(inspect.signature(kernel).parameters, arguments, strict=True)
    }
    for name, argument in zip(types, arguments, strict=True):
        if callable(argument):
            own = [types.get(each, numba.int64) for each in inspect.signature(argument).parameters]
            inner.append(_load(argument, "compiled_kernels", tuple(own), is_callback=True))
            types[name] = numba.types.FunctionType(numba.void(*own))
    dispatcher = _load(kernel, variant, tuple(types.values()))
    if inner:
        dispatcher.disable_compile()  # so that a call converts the kernels to the types of functions
    return Twin(dispatcher, is_compiled=True, is_parallel=is_parallel, inner=tuple(inner))


@functools.cache
def _load(kernel: Callable[..., Any], variant: str, types: tuple[Any, ...], *, is_callback: bool = False) -> Any:
    """Return the compiled code of a kernel for some types alone."""
    twin = getattr(_import_twin(kernel.__module__, variant), kernel.__name__)
    return _import_twin("fastrec.kernels.jit", variant).compile_kernel(twin, types, is_callback=is_callback)


def _import_twin(module: str, variant: str) -> ModuleType:
    """Import a module of `fastrec.kernels` under the name of a variant, whose functions are compiled."""
    package = f"fastrec.{variant}"
    if package not in sys.modules:
        folder = Path(importlib.import_module("fastrec.kernels").__path__[0])
        source = folder / "__init__.py"
        spec = importlib.util.spec_from_file_location(package, source, submodule_search_locations=[str(folder)])
        assert spec is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(package + module.removeprefix("fastrec.kernels"))


def _layer() -> str:
    """Return the threading layer of Numba. Two launches at once on workqueue end the process, so nothing uses it."""
    numba = importlib.import_module("numba")
    if numba.config.THREADING_LAYER == "workqueue":
        return "workqueue"
    try:
        numba.get_num_threads()  # decides it
    except ValueError:  # none of those that the settings name can be loaded
        return "workqueue"
    return str(numba.threading_layer())


def _run(twin: Twin, first: int, last: int, arguments: tuple[Any, ...], n_threads: int) -> None:
    """Run tasks first..last-1 on Numba's threads or, where a launch might end the process, on our own."""
    if twin.is_parallel:
        numba = sys.modules["numba"]
        before = numba.get_num_threads()
        try:
            numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
            twin.function(first, last, *arguments)
        finally:
            numba.set_num_threads(before)
    else:
        edges = [first + (last - first) * at // n_threads for at in range(n_threads + 1)]
        run_in_threads(lambda at: twin.function(edges[at], edges[at + 1], *arguments), range(n_threads), n_threads)
