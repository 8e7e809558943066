"""DuckDB statements that an interrupt stops at once.

DuckDB itself checks for signals only in the main thread and between its tasks, and one sorting task takes seconds.
So statements run in another thread while the main thread waits and can tell DuckDB to stop.
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

__all__ = ["Tick", "interruptible", "read_table", "run"]

T = TypeVar("T")
Tick = Callable[[float], Any]  # called now and then with the share of a statement that is done
PATIENCE = 0.1  # seconds; on some systems an interrupt does not end a wait


def run(
    con: DuckDBPyConnection, query: str, tick: Tick | None = None, values: Sequence[Any] = ()
) -> DuckDBPyConnection:
    """Execute a statement, with values for its question marks, and return the connection, which holds the result."""
    return interruptible(con, functools.partial(con.execute, query, *([values] if values else [])), tick)


def read_table(con: DuckDBPyConnection, query: str) -> Any:
    """Return the rows of a query as an Arrow table."""
    cursor = con.cursor()  # DuckDB 1 closes a cursor that has no reference
    return interruptible(cursor, cursor.sql(query).to_arrow_table)


def interruptible(con: DuckDBPyConnection, work: Callable[[], T], tick: Tick | None = None) -> T:
    """Run `work` on a connection and return its result. An interrupt, or an error in `tick`, stops the work."""
    from concurrent.futures import Future, wait

    task: Future[T] = Future()
    thread = threading.Thread(target=_fulfil, args=(task, work))
    try:
        if not start_thread(thread):  # without a thread, no interrupt
            return work()
        while not task.done():
            wait([task], PATIENCE)
            if tick is not None:
                tick(max(con.query_progress(), 0) / 100)  # -1 if no statement runs
    except BaseException:
        while not (task.cancel() or task.done()):  # a statement that has not begun ignores an interrupt
            con.interrupt()
            wait([task], PATIENCE)
        raise
    finally:
        if thread.is_alive():  # an interrupt may come before the thread runs
            thread.join()
    return task.result()


def _fulfil(task: Future[T], work: Callable[[], T]) -> None:
    if not task.set_running_or_notify_cancel():
        return
    try:
        task.set_result(work())
    except BaseException as error:  # noqa: BLE001 - `task.result()` raises it
        task.set_exception(error)
