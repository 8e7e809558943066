"""A line that says why a call takes long: it compiles kernels."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
from collections.abc import Iterator

from fastrec.runtime.threads import start_thread

NOTICE_AFTER = 1.0  # seconds of compilation


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Compile within this block. If it takes long, say so once: to `logging`, and on stderr if a person reads it."""
    timer = threading.Timer(NOTICE_AFTER, _announce_compilation)
    timer.daemon = True
    start_thread(timer)
    try:
        yield
    finally:
        timer.cancel()


def _is_read() -> bool:
    """Return whether a person reads stderr: on a terminal or in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@functools.cache
def _announce_compilation() -> None:
    line = (
        "fastrec compiles the kernels that this call needs, once on this machine, which takes 10 to 60 seconds; "
        "`fastrec warmup` compiles all"
    )
    logging.getLogger("fastrec").info(line)
    if os.environ.get("FASTREC_NOTICE", "1" if _is_read() else "0") != "0":
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            print(f"{line} (FASTREC_NOTICE=0 silences this)", file=sys.stderr, flush=True)
