"""How a process ends that is interrupted: what it must not leave behind, undone also where it cannot unwind.

Files are written here too: whole, or not at all.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from fastrec.exceptions import InputError

if TYPE_CHECKING:
    from socket import socket

__all__ = ["INTERRUPTED", "atomic_write", "end_on_interrupt", "undone_by"]

INTERRUPTED = 130
GRACE = 0.7  # seconds for the main thread to unwind

_pending: dict[object, Callable[[], Any]] = {}


@contextlib.contextmanager
def undone_by(undo: Callable[[], Any]) -> Iterator[None]:
    """What the block leaves behind if the process has to end within it. Where it just fails it clears up itself."""
    key = object()
    _pending[key] = undo
    try:
        yield
    finally:
        del _pending[key]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends, and leaves nothing behind when it fails."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise InputError(f"cannot write {os.fspath(path)}: the folder {target.parent} does not exist")
    temporary = target.with_name(f".fastrec-{os.urandom(8).hex()}.tmp")
    try:
        with undone_by(temporary.unlink), temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def end_on_interrupt() -> None:
    """From now on an interrupt ends this process within a second: as an exception or, where that is not enough, hard.

    For the main program only: signals belong to it.
    """
    import socket

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # shells have programs in the background ignore it
    signal.signal(signal.SIGINT, _raise_once)
    heard, told = socket.socketpair()  # on Windows a pipe will not do
    told.settimeout(0)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), daemon=True).start()


def _raise_once(*_: Any) -> NoReturn:
    """More interrupts, as from a key held down, would only keep files from being removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _watch(heard: socket) -> NoReturn:
    """Wait for an interrupt, of which the main thread learns only when compiled code returns."""
    while heard.recv(1) != bytes([signal.SIGINT]):
        pass
    time.sleep(GRACE)
    for undo in reversed(list(_pending.values())):
        with contextlib.suppress(Exception):
            undo()
    os._exit(INTERRUPTED)
