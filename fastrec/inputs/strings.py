"""Numbers for columns of many strings: each thread numbers rows in a list of its own, then the lists are joined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import strings as kernels
from fastrec.runtime.launcher import call
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
MANY_STRINGS = 1 << 17  # fewer are left to PyArrow, which needs no compiled code
FIRST_ROOM, FIRST_BYTES = 1 << 12, 1 << 16  # of a list of strings
FIXED_AT_ONCE = 1 << 20  # strings of a NumPy array
GROWTH = 2
SLOTS_PER_STRING = 2  # of the hash table, at least: most strings are in the first slot that is tried
MAX_ROWS = 2**31 // (GROWTH * SLOTS_PER_STRING)  # so that numbers stay below 2^31


class CollisionError(Exception):
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
        self._distinct = 0
        self._keys = np.empty((FIRST_ROOM, 2), np.uint64)
        self._ends = np.zeros(FIRST_ROOM + 1, np.int64)
        self._kept = np.empty(FIRST_BYTES, np.uint8)
        self._table = np.full(SLOTS_PER_STRING * FIRST_ROOM, -1, np.int32)
        self._ahead = np.empty((kernels.AHEAD, 4), np.uint64)

    def number(self, piece: _Piece, codes: Array) -> None:
        """Write the number of each string to `codes`."""
        offsets, data = read_only(piece.offsets), read_only(piece.data)
        done = 0
        while done < piece.n:
            known = kernels.Numbered(self._table, self._keys, self._ends, self._kept, self._ahead)
            given = offsets[done:], data, codes[done:], known, self._distinct
            more, self._distinct = call(kernels.number_strings, *given, work=32 * (piece.n - done))
            if more < 0:
                raise CollisionError
            done += more
            if done < piece.n:
                self._make_room(int(offsets[done + 1]) - int(offsets[done]))

    def _make_room(self, n_bytes: int) -> None:
        """Make room for another string of `n_bytes` bytes."""
        if self._ends[self._distinct] + n_bytes > len(self._kept):
            self._kept = _grown(self._kept, GROWTH * len(self._kept) + n_bytes)
        if self._distinct == len(self._keys):
            self._keys = _grown(self._keys, GROWTH * self._distinct)
            self._ends = _grown(self._ends, len(self._keys) + 1)
            self._table = np.full(SLOTS_PER_STRING * len(self._keys), -1, np.int32)
            call(kernels.fill_table, self._table, self._keys, self._distinct, work=32 * self._distinct)

    @property
    def strings(self) -> _Piece:
        """The distinct strings in the order of their numbers."""
        ends = self._ends[: self._distinct + 1]
        return _Piece(ends, self._kept[: ends[-1]])

    def as_arrow(self, kind: Any) -> Any:
        """Return the distinct strings as an Arrow array of a type with 64-bit offsets."""
        import pyarrow as pa

        found = self.strings
        buffers = [None, pa.py_buffer(found.offsets), pa.py_buffer(found.data)]
        return pa.Array.from_buffers(kind, found.n, buffers)


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
    column = without_views(column)
    are_strings = types.is_string(column.type) or types.is_large_string(column.type)
    pieces = [strings_of(chunk) for chunk in column.chunks if len(chunk)]
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
    except CollisionError:
        return None
    return codes, whole.as_arrow(pa.large_string() if are_strings else pa.large_binary())


def number_fixed(strings: Array) -> tuple[Array, Array]:
    """Return the int32 number of each string of a NumPy array, and the distinct strings."""
    width, found = strings.dtype.itemsize, _List()
    codes = np.empty(len(strings), np.int32)
    flat = np.ascontiguousarray(strings).view(np.uint8).reshape(-1)
    offsets = np.arange(min(len(strings), FIXED_AT_ONCE) + 1, dtype=np.int64) * width
    try:
        for start in range(0, len(strings), FIXED_AT_ONCE):
            own = codes[start : start + FIXED_AT_ONCE]
            found.number(_Piece(offsets[: len(own) + 1], flat[start * width : (start + len(own)) * width]), own)
    except CollisionError:
        distinct, numbers = np.unique(strings, return_inverse=True)
        return numbers.astype(np.int32), distinct
    return codes, found.strings.data.view(strings.dtype)


def without_views(strings: Any) -> Any:
    """Return strings of an Arrow array or column end to end in memory."""
    import pyarrow as pa
    from pyarrow import types

    if not (types.is_string_view(strings.type) or types.is_binary_view(strings.type)):
        return strings
    return strings.cast(pa.large_string() if types.is_string_view(strings.type) else pa.large_binary())


def decoded(array: Any) -> Any:
    """Return an Arrow array without a dictionary."""
    import pyarrow as pa

    if not hasattr(array, "dictionary"):
        return array
    return pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary)).dictionary_decode()


def bytes_of(array: Any) -> int:
    """Return the bytes of an Arrow array or column; PyArrow before 24 does not tell those of string views."""
    import pyarrow as pa

    array = without_views(array)
    try:
        return int(array.nbytes)
    except pa.ArrowTypeError:  # of views in lists or dictionaries
        return int(array.get_total_buffer_size())


def _joined(lists: list[_List]) -> tuple[_List, list[Array]]:
    """Join lists of strings; return the joined list, and the number there of each string of each list."""
    whole = _List()
    numbers = []
    for own in lists:
        numbers.append(np.empty(own.strings.n, np.int32))
        whole.number(own.strings, numbers[-1])
    return whole, numbers


def strings_of(chunk: Any) -> _Piece:
    """Return the strings of an Arrow array without a copy."""
    from pyarrow import types

    wide = types.is_large_string(chunk.type) or types.is_large_binary(chunk.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = chunk.buffers()
    own = np.frombuffer(offsets, kind, len(chunk) + 1, chunk.offset * kind.itemsize)
    return _Piece(own, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))


def hashes_of(strings: Any) -> Array:
    """Return a hash of each string of an Arrow array, uint64 (n,), the same for each width of offsets; 0 for nulls."""
    piece = strings_of(without_views(strings))
    words = np.zeros(piece.n, np.uint64)
    n_bytes = int(piece.offsets[-1]) - int(piece.offsets[0])
    given = read_only(piece.offsets), read_only(piece.data), words
    call(kernels.hash_strings, *given, work=16 * piece.n + n_bytes)
    if strings.null_count:
        words[strings.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _between(pieces: list[_Piece], first: int, last: int) -> Iterator[tuple[int, _Piece]]:
    """Yield the parts of pieces that hold rows first to last - 1, and the first row of each."""
    at = 0
    for piece in pieces:
        start, stop = max(first - at, 0), min(last - at, piece.n)
        if start < stop:
            yield at + start, piece.cut(start, stop)
        at += piece.n
