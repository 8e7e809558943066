"""Signals that end the command: what it must not leave behind is removed, also where the main thread cannot unwind."""

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

# Ctrl-C, the request to end, the end of the terminal; Windows lacks some of them.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
DEFAULT_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)
GRACE = 0.7  # seconds for the main thread to unwind
_pending: dict[object, Callable[[], Any]] = {}
_raised: list[int] = []  # the signal that was raised as KeyboardInterrupt, if any


@contextlib.contextmanager
def undone_by(undo: Callable[[], Any]) -> Iterator[None]:
    """Call `undo` if the process has to end hard within the block. If the block just fails, it cleans up itself."""
    key = object()
    _pending[key] = undo
    try:
        yield
    finally:
        del _pending[key]


def exit_code() -> int:
    """Return the exit code of a process that a signal ended, as shells number it: 130 for an interrupt."""
    return 128 + (_raised[0] if _raised else signal.SIGINT)


def end_on_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end this process within a second: by `KeyboardInterrupt`, or hard if it goes on.

    For the main program only, which owns the signals. Ignored signals stay ignored: shells let programs in the
    background ignore Ctrl-C.
    """
    import socket

    signals = [number for number in ENDING if signal.getsignal(number) in DEFAULT_HANDLERS]
    if not signals:
        return
    for number in signals:
        signal.signal(number, _raise_once)
    # A handler alone would not do: it runs only once compiled code has returned to Python, and what it raises may be
    # caught (test_the_command_where_nothing_heeds_a_signal).
    watched, written = socket.socketpair()  # on Windows a pipe will not do
    written.settimeout(0)
    signal.set_wakeup_fd(written.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(watched, bytes(signals)), daemon=True).start()


def _raise_once(number: int, _: Any) -> NoReturn:
    """Raise KeyboardInterrupt, and ignore later signals: a key held down would interrupt the removal of files."""
    for other in ENDING:
        if signal.getsignal(other) is _raise_once:
            signal.signal(other, signal.SIG_IGN)
    _raised.append(number)
    raise KeyboardInterrupt


def _watch(watched: socket, signals: bytes) -> NoReturn:
    """Wait for a signal, and end the process hard if it still runs some time later."""
    while (number := watched.recv(1)) not in signals:
        pass
    time.sleep(GRACE)
    for undo in reversed(list(_pending.values())):
        with contextlib.suppress(Exception):
            undo()
    os._exit(128 + number[0])
