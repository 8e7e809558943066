"""Threads, forks, and work that neither a signal nor a fork may break off: imports and compilations.

No pool of the standard library is used: pools refuse work once the main thread has ended, even if other threads go on.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
USERS_PER_RANGE = 32768  # of one thread, so that calls from Python take little beside the work
SECONDS_TO_A_SIGNAL = 0.2
IMPORTED_LATE = ("numpy.ma", "numpy.random", "fastrec.evaluation.row_reports")  # by functions, in any thread


def run_in_threads(
    work: Callable[[int], Any], tasks: range, n_threads: int, *, stop: threading.Event | None = None
) -> list[Any]:
    """Do all tasks, in threads made for this call alone: none outlives it, and no fork loses one.

    Raise the error of the first task that failed. No task begins after an error or an interrupt, which sets `stop`.
    """
    if n_threads == 1 or len(tasks) <= 1:
        found_in_turn = []
        for task in tasks:
            _own_thread.heed()
            found_in_turn.append(work(task))
        return found_in_turn
    left = iter(tasks)  # shared: each task is taken once
    found: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def take_tasks(ended: threading.Event) -> None:
        try:
            for task in left:
                try:
                    found[task] = work(task)
                except BaseException as error:  # noqa: BLE001 - raised below
                    errors[task] = error
                    deque(left, maxlen=0)
        finally:
            ended.set()

    ends = [threading.Event() for _ in range(min(n_threads, len(tasks)))]
    threads = [threading.Thread(target=take_tasks, args=(ended,)) for ended in ends]
    started: set[threading.Thread] = set()
    try:
        for thread in threads:
            if not start_thread(thread):
                take_tasks(threading.Event())
                break
            started.add(thread)
        for thread in threads:
            _join(thread)
    finally:
        deque(left, maxlen=0)
        if stop is not None:
            stop.set()
        for thread, ended in zip(threads, ends, strict=True):
            # An interrupted `join` may take a thread that still works for one that has ended. But an exception of a
            # handler of signals in `Thread.start` may end the thread before it works.
            while thread.ident is not None and not ended.wait(SECONDS_TO_A_SIGNAL):
                if thread not in started and not thread.is_alive():
                    break
            _join(thread)
    if errors:
        raise errors[min(errors)]
    return [found[task] for task in tasks]


class _StoppedError(BaseException):
    """Work in a thread of `run_side_by_side` has to end."""


class _OwnThread(threading.local):
    """What the threads of `run_side_by_side` heed."""

    stop: threading.Event | None = None  # set once one of them has ended early, or the main thread was interrupted

    def heed(self) -> None:
        """End the work of this thread if that has to end."""
        if self.stop is not None and self.stop.is_set():
            raise _StoppedError


_own_thread = _OwnThread()


def heed() -> None:
    """End the work of this thread if it is one of `run_side_by_side`, and that has to end."""
    _own_thread.heed()


def run_side_by_side(work: Callable[[int], T], tasks: range, n_threads: int) -> list[T] | None:
    """Do long tasks in threads, or return None if one fails or has to load a kernel or a module.

    Do them in turn then, in the main thread: only there can an interrupt end the loading at once. Of work in these
    threads, an interrupt ends that of `run_in_threads` between its tasks. No code of the caller may run there.
    """
    stop = threading.Event()

    def attempt(task: int) -> T:
        _own_thread.stop = stop
        try:
            return work(task)
        except BaseException:
            stop.set()
            raise
        finally:
            _own_thread.stop = None  # the main thread may have done the work

    try:
        return run_in_threads(attempt, tasks, n_threads, stop=stop)
    except (Exception, _StoppedError):  # noqa: BLE001 - raised again in turn, if it was an error
        return None


def refuse_to_load() -> None:
    """End the work of this thread if it is one of `run_side_by_side`, as it has to load something."""
    if _own_thread.stop is not None:
        raise _StoppedError


def share_threads(work: Callable[[int, int], T], sizes: Sequence[int], n_threads: int, *, least: int = 0) -> list[T]:
    """Call work(at, threads) for each size: for large ones in turn with all threads, then for the others side by side.

    A size is large if it is more than the share of a thread, and than `least`. Return the results; raise the error of
    the first position that failed, whatever the number of threads.
    """
    share = max(least, sum(sizes) // n_threads)
    found: dict[int, T] = {}
    failed: dict[int, Exception] = {}

    def attempt(at: int, threads: int) -> None:
        if at < min(tuple(failed), default=len(sizes)):  # a copy: other threads may add to it
            try:
                found[at] = work(at, threads)
            except Exception as error:  # noqa: BLE001 - raised below
                failed[at] = error

    for at, size in enumerate(sizes):
        if size > share:
            attempt(at, n_threads)
    others = [at for at, size in enumerate(sizes) if size <= share]
    run_in_threads(lambda nth: attempt(others[nth], 1), range(len(others)), n_threads)
    if failed:
        raise failed.pop(min(failed))
    return [found[at] for at in range(len(sizes))]


def uninterrupted(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own, which neither Ctrl-C nor the handlers of other signals reach.

    Their exceptions are raised at once in the main thread, which only waits. The work goes on to its end, and Python
    waits for it before it exits. An interrupted import would leave its module unusable for the rest of the process.
    """
    if threading.current_thread() is not threading.main_thread():
        return _without_forks(work)
    found: list[T] = []
    errors: list[BaseException] = []

    def keep() -> None:
        try:
            found.append(_without_forks(work))
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=keep)
    if not start_thread(thread):
        return _without_forks(work)
    thread.join()
    if errors:
        raise errors.pop()  # no variable keeps it: its traceback would keep that variable's frame
    return found.pop()


@functools.cache
def import_late(module: str) -> ModuleType:
    """Import a module where it is first needed: forks wait for that, since no thread of a child would go on with it."""
    if module not in sys.modules:
        refuse_to_load()
    return uninterrupted(lambda: importlib.import_module(module))


def start_thread(thread: threading.Thread) -> bool:
    """Start a thread. Return False where the system grants no more threads, or Python is about to exit."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _join(thread: threading.Thread) -> None:
    """Wait for a thread, and look for signals: with the handler of Polars, Ctrl-C does not end a wait."""
    while thread.ident is not None and thread.is_alive():  # it was started
        thread.join(SECONDS_TO_A_SIGNAL)


class once(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` without the lock of Python 3.11, which a forked child may find held for ever."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value] # of the class itself
        value: T = instance.__dict__.setdefault(self._name, self._work(instance))
        return value


# Forks


class _Forks:
    """Forks up to this process, and the locks that the next fork waits for."""

    count = 0  # since the process that first used fastrec
    home = os.getpid()  # of the process that imported fastrec
    busy = threading.RLock()  # held by a thread that imports or compiles, and by a thread that forks
    hooked_by: dict[str, object] = {}  # noqa: RUF012 - the first call that registers the hooks


def fork_count() -> int:
    """Return the number of forks between the process that first used fastrec and this one."""
    _hook_into_forks()
    return _Forks.count


def was_forked() -> bool:
    """Return whether this process is a forked child, or may be: a pool may have forked before it first used fastrec."""
    # absent while another thread imports the module
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    is_child = _Forks.count > 0 or os.getpid() != _Forks.home  # of a process that has not called fastrec
    return is_child or (parent is not None and parent() is not None)


def _without_forks(work: Callable[[], T]) -> T:
    """Do the work while no other thread forks or does such work."""
    _hook_into_forks()
    with _Forks.busy:
        return work()


def _hook_into_forks() -> None:
    """Register our hooks at the first use, once; importing changes nothing.

    No lock guards this: a child forked before there are hooks could find it held.
    """
    own = object()
    if hasattr(os, "register_at_fork") and _Forks.hooked_by.setdefault("call", own) is own:
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _before_fork() -> None:
    """Wait until no thread imports or compiles: no thread of the child would release its locks."""
    for name in IMPORTED_LATE:  # before our lock, which the thread that imports one may hold
        importlib.import_module(name)
    _Forks.busy.acquire()


def _after_fork() -> None:
    with contextlib.suppress(RuntimeError):  # not acquired: this fork began before the hooks were registered
        _Forks.busy.release()


def _after_fork_in_child() -> None:
    _Forks.count += 1
    _after_fork()
