"""Threads of our own, and what neither a signal nor a fork may meet half done: imports and compilations.

No pool of the standard library is used: none takes work once the main thread has come to its end, where others go on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["fork_count", "once", "run_in_threads", "start_thread", "uninterrupted", "was_forked"]

T = TypeVar("T")


def run_in_threads(work: Callable[[int], Any], tasks: range, n_threads: int) -> list[Any]:
    """Do all tasks, in threads made for this call alone: none outlives it, none is lost by a fork.

    Of errors that of the first task is raised; no task is begun after an error, or after an interrupt.
    """
    if n_threads == 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    left = iter(tasks)  # shared: each task is taken once
    found: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def take_tasks() -> None:
        for task in left:
            try:
                found[task] = work(task)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors[task] = error
                deque(left, maxlen=0)

    threads = [threading.Thread(target=take_tasks) for _ in range(min(n_threads, len(tasks)))]
    try:
        if not all(map(start_thread, threads)):
            take_tasks()
        for thread in threads:
            _join(thread)
    finally:
        deque(left, maxlen=0)
        for thread in threads:
            _join(thread)
    if errors:
        raise errors[min(errors)]
    return [found[task] for task in tasks]


def uninterrupted(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own, which Ctrl-C and the handlers of other signals do not reach.

    Their exceptions are raised at once in the main thread, which only waits; the work goes on to its end meanwhile, and
    a program that ends waits for it. Modules that were torn while they were imported stay unusable for the rest of the
    process.
    """
    if threading.current_thread() is not threading.main_thread():
        return _alone(work)
    outcome: list[tuple[T | None, BaseException | None]] = []

    def keep() -> None:
        try:
            outcome.append((_alone(work), None))
        except BaseException as error:  # noqa: BLE001 - raised below
            outcome.append((None, error))

    thread = threading.Thread(target=keep)
    if not start_thread(thread):
        return _alone(work)
    thread.join()
    value, error = outcome.pop()
    if error is not None:
        raise error
    return value  # type: ignore[return-value] # what the work returned


def start_thread(thread: threading.Thread) -> bool:
    """Whether a thread could be had; not where their number is limited, or where the process ends."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _join(thread: threading.Thread) -> None:
    if thread.ident is not None:  # it was started
        thread.join()


# Forks


class _Process:
    """What this process has been through."""

    busy = threading.RLock()  # held by whoever imports or compiles, and by whoever forks
    compiler: Any = None  # the lock of Numba's compiler, while this process forks
    forks = 0  # from the process that first used this module to this one
    hooked: dict[str, object] = {}  # noqa: RUF012 - by whom


def was_forked() -> bool:
    """Whether this process is the child of a fork, or may be: a pool can have forked before our first use."""
    # absent while another thread imports the module
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    return _Process.forks > 0 or (parent is not None and parent() is not None)


def fork_count() -> int:
    """Return the number of forks between the process that first used fastrec and this one; counting begins here."""
    _hook_into_forks()
    return _Process.forks


def _alone(work: Callable[[], T]) -> T:
    _hook_into_forks()
    with _Process.busy:
        return work()


def _before_fork() -> None:
    """Wait until no thread imports or compiles: the child would have its locks without whoever will release them."""
    _Process.busy.acquire()
    compiler = sys.modules.get("numba.core.compiler_lock")
    lock = getattr(compiler, "global_compiler_lock", None)
    if lock is not None:
        lock.acquire()
    _Process.compiler = lock


def _after_fork() -> None:
    lock, _Process.compiler = _Process.compiler, None
    if lock is not None:
        lock.release()
    with contextlib.suppress(RuntimeError):  # it was not taken: this fork began before the first use
        _Process.busy.release()


def _after_fork_in_child() -> None:
    _Process.forks += 1
    _after_fork()


def _hook_into_forks() -> None:
    """From the first use on; importing changes nothing."""
    mine = object()
    if hasattr(os, "register_at_fork") and _Process.hooked.setdefault("by", mine) is mine:
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


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
