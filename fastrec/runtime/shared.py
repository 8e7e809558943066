"""Objects that threads share: one thread at a time changes them, copies are whole, and half a change is an error."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, cast

from fastrec.exceptions import FastrecError
from fastrec.runtime.threads import fork_count

Method = TypeVar("Method", bound=Callable[..., Any])


def synchronized(method: Method) -> Method:
    """Let one thread at a time run a method; raise if the object is not whole."""

    @functools.wraps(method)
    def alone(self: Shared, /, *arguments: Any, **options: Any) -> Any:
        with self._locked():
            self._check_whole()
            return method(self, *arguments, **options)

    return cast("Method", alone)


class Shared:
    """An object that is changed in place, maybe by several threads."""

    _remedy = "make a new one"  # instead of an object that is not whole

    def __init__(self) -> None:
        self._locks: dict[int, contextlib.AbstractContextManager[Any]] = {}
        self._torn = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle; nothing in it changes later."""
        with self._locked():
            state = self.__dict__.copy()  # at once: another thread may keep a property, which needs no lock
            state.pop("_locks", None)
            return copy.deepcopy(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of a copy, which has a lock of its own."""
        self.__dict__ |= state | {"_locks": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy: even a plain one shares nothing that changes."""
        return copy.copy(self)

    def _locked(self) -> contextlib.AbstractContextManager[Any]:
        """Return the reentrant lock of this object. A forked child has another: no holder lives there."""
        return self._locks.setdefault(fork_count(), threading.RLock())

    @contextlib.contextmanager
    def _both_locked(self, other: Shared) -> Iterator[None]:
        """Lock this object and another one; both must be whole."""
        locks = [self._locked(), other._locked()]
        if id(other) < id(self):  # so that two threads do not wait for each other
            locks.reverse()
        with locks[0], locks[1]:
            self._check_whole()
            other._check_whole()
            yield

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Mark the object as torn until the block ends without an error: in between it is neither old nor new."""
        self._torn = True
        yield
        self._torn = False

    def _is_torn(self) -> bool:
        return self._torn

    def _check_whole(self) -> None:
        if self._is_torn():
            raise FastrecError(
                f"this {type(self).__name__} was interrupted during an update (by an error, a signal, or a fork in "
                f"another thread), so its sums are incomplete: {self._remedy}"
            )
