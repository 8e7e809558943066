"""The hash by which Spark puts the rows of a table in buckets: MurmurHash3, 32 bits, of its own form for strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fastrec.inputs.strings import strings_of

__all__ = ["WIDTHS", "hashes_of"]

Array = np.ndarray[Any, Any]
SEED = 42  # Spark's
WIDTHS = {"int8": 4, "int16": 4, "int32": 4, "int64": 8, "string": 0}  # bytes that Spark hashes; 0: as many as it has
WORD = 4  # bytes
AT_ONCE = 1 << 15  # rows, which fit a cache


def hashes_of(column: Any) -> Iterator[Array]:
    """Yield Spark's hashes, int32, of the ids in a PyArrow column, some at a time; nulls have none.

    The type is a key of `WIDTHS`: the hash of an integer depends on its width. Equal strings may be hashed once.
    """
    for chunk in column.chunks:
        own = chunk.drop_null() if chunk.null_count else chunk
        is_string = str(own.type) == "string"
        own = own.dictionary_encode().dictionary if is_string else own
        for first in range(0, len(own), AT_ONCE):
            block = own.slice(first, AT_ONCE)
            hashed = _hash_strings(*strings_of(block)) if is_string else _hash_integers(block.to_numpy())
            yield hashed.view(np.int32)


def _hash_integers(ids: Array) -> Array:
    """Return the hashes of integers, uint32 (n,)."""
    state = _with_word(np.full(len(ids), SEED, np.uint32), ids.astype(np.uint32))
    if ids.dtype.itemsize == WIDTHS["int64"]:
        state = _with_word(state, (ids >> 32).astype(np.uint32))
    return _finished(state, np.uint32(WIDTHS[ids.dtype.name]))


def _hash_strings(offsets: Array, data: Array) -> Array:
    """Return the hashes of strings as in Arrow, uint32 (n,): of whole words, then of each byte that is left."""
    first, lengths = offsets[:-1].astype(np.int64), np.diff(offsets)
    state, n_words = np.full(len(lengths), SEED, np.uint32), lengths // WORD
    rows, nth = np.flatnonzero(n_words), 0
    while len(rows):
        bytes_of_word = data[(first[rows] + WORD * nth)[:, np.newaxis] + np.arange(WORD)]
        state[rows] = _with_word(state[rows], bytes_of_word.view("<u4")[:, 0])
        nth += 1
        rows = rows[n_words[rows] > nth]
    for nth in range(WORD - 1):
        rows = np.flatnonzero(lengths % WORD > nth)
        signed = data[first[rows] + WORD * n_words[rows] + nth].view(np.int8).astype(np.int32)
        state[rows] = _with_word(state[rows], signed.view(np.uint32))
    return _finished(state, lengths.astype(np.uint32))


def _with_word(state: Array, word: Array) -> Array:
    """Return hashes extended by a word each, uint32."""
    word = _turned(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _turned(state ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _turned(words: Array, n_bits: int) -> Array:
    """Return words with their bits rotated to the left."""
    return (words << np.uint32(n_bits)) | (words >> np.uint32(32 - n_bits))


def _finished(state: Array, length: Any) -> Array:
    """Return the hashes of values of so many bytes."""
    state = state ^ length
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    finished: Array = state ^ (state >> np.uint32(16))
    return finished
