"""How often files in a folder are opened, by any code of any process, as Linux reports it."""

import collections
import contextlib
import ctypes
import os
import struct

import pytest

IN_OPEN, IN_CLOSE, IN_Q_OVERFLOW = 0x20, 0x18, 0x4000  # without IN_CLOSE, Linux joins the opens of a file
EVENT = struct.Struct("iIII")  # watch, kind, cookie, length of the name that follows


@contextlib.contextmanager
def counting_opens(folder):
    """Yield a counter that has, at the end of the block, how often each file of a folder was opened."""
    system = ctypes.CDLL(None, use_errno=True)
    if not hasattr(system, "inotify_init1"):
        pytest.skip("only Linux tells which files are opened")
    events = system.inotify_init1(os.O_NONBLOCK)
    try:
        assert system.inotify_add_watch(events, os.fsencode(folder), IN_OPEN | IN_CLOSE) >= 0
        found = collections.Counter()
        yield found
        with contextlib.suppress(BlockingIOError):  # no more events
            while block := os.read(events, 1 << 16):
                found.update(_names(block))
    finally:
        os.close(events)


def _names(block):
    at = 0
    while at < len(block):
        _, kind, _, length = EVENT.unpack_from(block, at)
        assert not kind & IN_Q_OVERFLOW, "too many files were opened to count them"
        at += EVENT.size + length
        if length and kind & IN_OPEN:  # without a name: the folder itself
            yield block[at - length : at].rstrip(b"\0").decode()
