"""Statements of DuckDB, which an interrupt stops at once.

DuckDB itself looks for signals in the main thread and between its tasks only, and sorting a part of the rows is one
task of seconds. So statements run in another thread while the main thread waits, and may be told to stop.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fastrec.runtime.threads import start_thread

if TYPE_CHECKING:
    from concurrent.futures import Future

    from duckdb import DuckDBPyConnection

__all__ = ["Tick", "interruptible", "run"]

T = TypeVar("T")
Tick = Callable[[float], Any]  # told from time to time which share of a statement is done
PATIENCE = 0.1  # seconds; not on every system does an interrupt end a wait


def run(
    con: DuckDBPyConnection, query: str, tick: Tick | None = None, values: Sequence[Any] = ()
) -> DuckDBPyConnection:
    """Execute a statement, with values for its question marks; the connection has its result."""
    return interruptible(con, functools.partial(con.execute, query, *([values] if values else [])), tick)


def interruptible(con: DuckDBPyConnection, work: Callable[[], T], tick: Tick | None = None) -> T:
    """What some work of the connection returns. Nothing of it runs on after an interrupt, or an error of `tick`."""
    from concurrent.futures import Future, wait

    task: Future[T] = Future()
    thread = threading.Thread(target=_fulfil, args=(task, work))
    try:
        if not start_thread(thread):  # then nothing interrupts it
            return work()
        while not task.done():
            wait([task], PATIENCE)
            if tick is not None:
                tick(max(con.query_progress(), 0) / 100)  # -1 where nothing runs
    except BaseException:
        while not (task.cancel() or task.done()):  # a statement that has not begun does not hear
            con.interrupt()
            wait([task], PATIENCE)
        raise
    finally:
        if thread.is_alive():  # an interrupt may come before it is
            thread.join()
    return task.result()


def _fulfil(task: Future[T], work: Callable[[], T]) -> None:
    if not task.set_running_or_notify_cancel():
        return
    try:
        task.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
        task.set_exception(error)
