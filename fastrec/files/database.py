"""DuckDB, which reads JSON lines. An interrupt stops its statements at once.

DuckDB itself checks for signals only in the main thread and between its tasks. So statements run in another thread
while the main thread waits and can tell DuckDB to stop.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastrec.files.formats.foreign import was_interrupted
from fastrec.runtime.extras import require
from fastrec.runtime.threads import start_thread

if TYPE_CHECKING:
    from concurrent.futures import Future

    from duckdb import DuckDBPyConnection

__all__ = ["open_database", "run"]

PATIENCE = 0.1  # seconds; on some systems an interrupt does not end a wait
OWN: dict[str, Any] = {  # nothing is installed, loaded from a folder, or written
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "preserve_insertion_order": "true",
}


@contextlib.contextmanager
def open_database(n_threads: int) -> Iterator[DuckDBPyConnection]:
    """Open a database in memory, which so many threads read."""
    duckdb = require("duckdb", "cli", what="reading JSON lines")
    con = duckdb.connect(":memory:", config={**OWN, "threads": n_threads})
    try:
        yield con
    except (duckdb.InterruptException, RuntimeError) as error:
        if isinstance(error, duckdb.InterruptException) or was_interrupted(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        con.close()


def run(con: DuckDBPyConnection, query: str) -> DuckDBPyConnection:
    """Execute a statement and return the connection, which holds the result. An interrupt stops the statement."""
    from concurrent.futures import Future, wait

    task: Future[DuckDBPyConnection] = Future()
    thread = threading.Thread(target=_fulfil, args=(task, con, query))
    try:
        if not start_thread(thread):  # without a thread, no interrupt
            return con.execute(query)
        while not task.done():
            wait([task], PATIENCE)
    except BaseException:
        while not (task.cancel() or task.done()):  # a statement that has not begun ignores an interrupt
            con.interrupt()
            wait([task], PATIENCE)
        raise
    finally:
        if thread.is_alive():  # an interrupt may come before the thread runs
            thread.join()
    return task.result()


def _fulfil(task: Future[DuckDBPyConnection], con: DuckDBPyConnection, query: str) -> None:
    if not task.set_running_or_notify_cancel():
        return
    try:
        task.set_result(con.execute(query))
    except BaseException as error:  # noqa: BLE001 - `task.result()` raises it
        task.set_exception(error)
