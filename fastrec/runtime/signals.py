"""How a process ends that is told to: what it must not leave behind, undone also where it cannot unwind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from socket import socket

__all__ = ["end_on_signals", "exit_code", "undone_by"]


# The key of an interrupt, the request to end, the end of the terminal; Windows has not all of them.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
BY_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)
GRACE = 0.7  # seconds for the main thread to unwind
_pending: dict[object, Callable[[], Any]] = {}
_heard: list[int] = []


@contextlib.contextmanager
def undone_by(undo: Callable[[], Any]) -> Iterator[None]:
    """What the block leaves behind if the process has to end within it. Where it just fails it clears up itself."""
    key = object()
    _pending[key] = undo
    try:
        yield
    finally:
        del _pending[key]


def exit_code() -> int:
    """The exit code of a process that a signal ended, as shells know it: 130 for an interrupt."""
    return 128 + (_heard[0] if _heard else signal.SIGINT)


def end_on_signals() -> None:
    """From now on a signal that asks for it ends this process within a second: as `KeyboardInterrupt` or, where that
    is not enough, hard.

    For the main program only: signals belong to it.
    """
    import socket

    signals = [number for number in ENDING if signal.getsignal(number) in BY_DEFAULT]
    if not signals:
        return  # shells have programs in the background ignore interrupts
    for number in signals:
        signal.signal(number, _raise_once)
    heard, told = socket.socketpair()  # on Windows a pipe will not do
    told.settimeout(0)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard, bytes(signals)), daemon=True).start()


def _raise_once(number: int, _: Any) -> NoReturn:
    """More signals, as from a key held down, would only keep files from being removed."""
    for other in ENDING:
        if signal.getsignal(other) is _raise_once:
            signal.signal(other, signal.SIG_IGN)
    _heard.append(number)
    raise KeyboardInterrupt


def _watch(heard: socket, signals: bytes) -> NoReturn:
    """Wait for a signal, of which the main thread learns only when compiled code returns."""
    while (number := heard.recv(1)) not in signals:
        pass
    time.sleep(GRACE)
    for undo in reversed(list(_pending.values())):
        with contextlib.suppress(Exception):
            undo()
    os._exit(128 + number[0])
