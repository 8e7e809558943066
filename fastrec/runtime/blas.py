"""The threads of BLAS libraries, which all threads of a process share."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

from fastrec.runtime.threads import import_late


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS libraries of this process to one thread each, and restore their threads at the end.

    Without threadpoolctl (extra `models`), they keep their threads.
    """
    if importlib.util.find_spec("threadpoolctl") is None:
        yield
        return
    module = import_late("threadpoolctl")
    with module.threadpool_limits(limits=1, user_api="blas"):
        yield
