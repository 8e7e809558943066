"""Numbers for columns of many strings: each thread numbers a range of rows, then the lists of strings are joined."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import strings as kernels
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads

__all__ = ["MANY_STRINGS", "number_column"]

Array = np.ndarray[Any, Any]
MANY_STRINGS = 1 << 17  # fewer are left to PyArrow, which needs no compiled code
FIRST_ROOM, FIRST_BYTES = 1 << 12, 1 << 16  # of a list of strings
GROWTH = 4
SLOTS_PER_STRING = 4  # of the hash table: most strings are in the first slot that is tried
MAX_ROWS = 2**31 // (GROWTH * SLOTS_PER_STRING)  # so that numbers stay below 2^31
STEPS_PER_STRING = 32


class _Collision(Exception):  # noqa: N818 - control flow, not an error
    """Strings crafted to share their hashes."""


class _Piece(NamedTuple):
    """Strings end to end."""

    offsets: Array  # int32 or int64 (n + 1,)
    data: Array  # uint8

    @property
    def n(self) -> int:
        """Number of strings."""
        return len(self.offsets) - 1

    def cut(self, first: int, last: int) -> _Piece:
        """Return strings first to last - 1."""
        return _Piece(self.offsets[first : last + 1], self.data)


class _List:
    """The distinct strings so far, and the number of each."""

    def __init__(self) -> None:
        self._distinct, self._bytes = 0, 0
        self._records = np.empty((FIRST_ROOM, 4), np.uint64)
        self._kept = np.empty(FIRST_BYTES, np.uint8)
        self._table = np.full(SLOTS_PER_STRING * FIRST_ROOM, -1, np.int32)

    def number(self, piece: _Piece, codes: Array) -> None:
        """Write the number of each string to `codes`."""
        offsets, data = read_only(piece.offsets), read_only(piece.data)
        kernel = _kernel("number_strings", piece.n, str(offsets.dtype))
        done = 0
        while done < piece.n:
            state = (self._table, self._records, self._kept, self._distinct, self._bytes)
            more, self._distinct, self._bytes = kernel(offsets[done:], data, codes[done:], *state)
            if more < 0:
                raise _Collision
            done += more
            if done < piece.n:
                self._make_room(int(offsets[done + 1]) - int(offsets[done]))

    def _make_room(self, n_bytes: int) -> None:
        """Make room for another string of `n_bytes` bytes."""
        if self._bytes + n_bytes > len(self._kept):
            self._kept = _grown(self._kept, GROWTH * len(self._kept) + n_bytes)
        if self._distinct == len(self._records):
            self._records = _grown(self._records, GROWTH * self._distinct)
            self._table = np.full(SLOTS_PER_STRING * len(self._records), -1, np.int32)
            _kernel("fill_table", self._distinct)(self._table, self._records, self._kept, self._distinct)

    @property
    def strings(self) -> _Piece:
        """The distinct strings in the order of their numbers."""
        ends = self._records[: self._distinct, :2].sum(axis=1).astype(np.int64)
        return _Piece(np.concatenate([[0], ends]), self._kept[: self._bytes])


def _grown(array: Array, n: int) -> Array:
    """Copy an array to a longer one."""
    out = np.empty((n, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def number_column(column: Any, n_threads: int) -> tuple[Array, Any] | None:
    """Return the int32 number of each string of a PyArrow column without nulls, and the distinct strings.

    None if the column is too long, or if strings share their hashes on purpose.
    """
    import pyarrow as pa
    from pyarrow import types

    if len(column) > MAX_ROWS:
        return None
    if types.is_string_view(column.type) or types.is_binary_view(column.type):
        column = column.cast(pa.large_string() if types.is_string_view(column.type) else pa.large_binary())
    are_strings = types.is_string(column.type) or types.is_large_string(column.type)
    pieces = [_piece_of(chunk) for chunk in column.chunks if len(chunk)]
    codes = np.empty(len(column), np.int32)
    edges = np.linspace(0, len(codes), n_threads + 1).astype(np.int64).tolist()
    lists = [_List() for _ in range(n_threads)]

    def number(nth: int) -> None:
        for at, piece in _between(pieces, edges[nth], edges[nth + 1]):
            lists[nth].number(piece, codes[at : at + piece.n])

    def renumber(nth: int) -> None:
        own = codes[edges[nth] : edges[nth + 1]]
        own[:] = numbers[nth][own]

    try:
        run_in_threads(number, range(n_threads), n_threads)
        whole = lists[0]
        if n_threads > 1:
            whole, numbers = _joined(lists)
            run_in_threads(renumber, range(n_threads), n_threads)
    except _Collision:
        return None
    found = whole.strings
    kind = pa.large_string() if are_strings else pa.large_binary()
    buffers = [None, pa.py_buffer(found.offsets), pa.py_buffer(found.data)]
    return codes, pa.Array.from_buffers(kind, found.n, buffers)


def _joined(lists: list[_List]) -> tuple[_List, list[Array]]:
    """Join lists of strings; return the joined list, and the number there of each string of each list."""
    whole = _List()
    numbers = []
    for own in lists:
        numbers.append(np.empty(own.strings.n, np.int32))
        whole.number(own.strings, numbers[-1])
    return whole, numbers


def _piece_of(chunk: Any) -> _Piece:
    """Return the strings of an Arrow array without a copy."""
    from pyarrow import types

    wide = types.is_large_string(chunk.type) or types.is_large_binary(chunk.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = chunk.buffers()
    own = np.frombuffer(offsets, kind, len(chunk) + 1, chunk.offset * kind.itemsize)
    return _Piece(own, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))


def _between(pieces: list[_Piece], first: int, last: int) -> Iterator[tuple[int, _Piece]]:
    """Yield the parts of pieces that hold rows first to last - 1, and the first row of each."""
    at = 0
    for piece in pieces:
        start, stop = max(first - at, 0), min(last - at, piece.n)
        if start < stop:
            yield at + start, piece.cut(start, stop)
        at += piece.n


@functools.cache
def _entry(name: str, offsets: str) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{offsets}" if offsets else name)


def _kernel(name: str, n_strings: int, offsets: str = "") -> Any:
    """Return the kernel, compiled or interpreted, for so many strings."""
    return _entry(name, offsets).suited_to(STEPS_PER_STRING * n_strings)
