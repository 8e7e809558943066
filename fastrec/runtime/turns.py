"""State that threads share: they take turns, copies are whole, and what was broken off says that it is not."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from fastrec.exceptions import FastrecError
from fastrec.runtime.threads import Lock

__all__ = ["Shared", "in_turn"]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Shared")


def in_turn(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that one thread at a time is in, and that refuses what is not whole."""

    @functools.wraps(method)
    def waiting(self: S, /, *arguments: P.args, **options: P.kwargs) -> R:
        with self._turn.held():
            self._refuse_torn()
            return method(self, *arguments, **options)

    return waiting


class Shared:
    """An object that is changed in place, maybe by several threads."""

    _way_on = "start anew"  # once what it holds is not whole

    def __init__(self) -> None:
        self._turn = Lock()
        self._torn = False

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles are made of: nothing in it changes any more."""
        with self._turn.held():
            return copy.deepcopy({name: value for name, value in self.__dict__.items() if name != "_turn"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was copied, with a lock of its own."""
        self.__dict__ |= state | {"_turn": Lock()}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy: even a plain one shares nothing that changes."""
        return copy.copy(self)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """What is kept changes within the block. Broken off in there it is neither the old nor the new."""
        self._torn = True
        yield
        self._torn = False

    def _refuse_torn(self) -> None:
        if self._torn:
            raise FastrecError(
                f"this {type(self).__name__} was interrupted while it added up (by an error, a signal, or a fork in "
                f"another thread): what it holds is not whole; {self._way_on}"
            )

    @contextlib.contextmanager
    def _with(self, other: Shared) -> Iterator[None]:
        """Hold both this and another one, and both are whole."""
        first, second = sorted((self, other), key=id)  # so that two threads do not wait for each other
        with first._turn.held(), second._turn.held():  # noqa: SLF001 - this class's own
            self._refuse_torn()
            other._refuse_torn()
            yield
