"""Digests of the rows of a truth or a log, by which comparisons notice other data. They are no seal against forgery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import is_whole
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ids import Spelled
from fastrec.inputs.ragged import read_only
from fastrec.inputs.rows import Rows
from fastrec.kernels.row_digests import HashedColumn, add_hashes, hash_bits, hash_strings
from fastrec.runtime.launcher import edges_of, launch

Array = np.ndarray[Any, Any]
VERSION = 1  # of the hash
NO_HASHES = read_only(np.zeros(0, np.uint64))
NOBODY = HashedColumn(read_only(np.zeros(0, np.int64)), NO_HASHES)


class Digest(NamedTuple):
    """A digest of rows of user, item and gain, or of user, label and weight, which no order of rows changes.

    A string of digits has the hash of the integer; `users` and `items` say which it is.
    """

    version: int = VERSION
    rows: int = 0
    users: str | None = None  # "integers", "strings" or "tuples", or "mixed" of batches; None without ids
    items: str | None = None  # likewise
    without_gains: str = f"{0:032x}"
    with_gains: str | None = None
    in_order: str | None = None  # of labels, which have no items: with the place of each among the rows of its user


NO_ROWS = Digest()


def add_digests(one: Digest | None, other: Digest | None) -> Digest | None:
    """Return the digest of the rows of two parts; None if that of one is unknown, or they are not of one kind."""
    if one is None or other is None:
        return None
    if not (one.rows and other.rows):
        return one if one.rows else other
    if (one.version, one.users is None) != (other.version, other.users is None):
        return None
    return Digest(
        one.version,
        one.rows + other.rows,
        one.users if one.users == other.users else "mixed",
        one.items if one.items == other.items else "mixed",
        str(_sum_of(one.without_gains, other.without_gains)),
        _sum_of(one.with_gains, other.with_gains),
        _sum_of(one.in_order, other.in_order),
    )


def _sum_of(one: str | None, other: str | None) -> str | None:
    """Return the sum of two hashes, half by half; None if one is unknown."""
    if one is None or other is None:
        return None
    halves = (int(one[half], 16) + int(other[half], 16) for half in (slice(16), slice(16, 32)))
    return "".join(f"{half % (1 << 64):016x}" for half in halves)


def read_digest(fields: Mapping[str, Any] | None) -> Digest | None:
    """Return the digest with these fields; None without any."""
    return None if fields is None else Digest(**fields)


def digest_of_truth(
    truth: FlatSide, strings: Sequence[Any] | None, user_ids: Array | None, n_threads: int
) -> Digest | None:
    """Return the digest of a truth, whose items are ids or places of `strings`; None for users of an unknown type."""
    items = HashedColumn(read_only(truth.items), NO_HASHES if strings is None else _hash_strings(strings, n_threads))
    found = _digest(items, truth.indptr, truth.extra, user_ids, n_threads, in_order=False)
    return found and found._replace(items="integers" if strings is None else "strings")


def digest_of_rows(rows: Rows, n_threads: int, *, in_order: bool) -> Digest | None:
    """Return the digest of labels and their weights, with the order of a user's rows if `in_order`.

    None for users of an unknown type.
    """
    if rows.labels.dtype == np.int8:  # of few values, with the hashes of floats
        bits = np.arange(256).astype(np.int8).astype(np.float64).view(np.uint64)
        labels = HashedColumn(read_only(rows.labels.view(np.uint8)), read_only(hash_bits(bits)))
    else:
        labels = HashedColumn(read_only((rows.labels + 0.0).view(np.int64)), NO_HASHES)  # -0.0 is 0.0
    return _digest(labels, rows.indptr, rows.weights, rows.users.ids, n_threads, in_order=in_order)


def _digest(
    cells: HashedColumn, indptr: Array, numbers: Array | None, user_ids: Array | None, n_threads: int, *, in_order: bool
) -> Digest | None:
    users, kind_of_users = NOBODY, None
    if user_ids is not None and user_ids.dtype == np.int64:
        users, kind_of_users = HashedColumn(read_only(user_ids), NO_HASHES), "integers"
    elif user_ids is not None and user_ids.dtype.kind == "U":
        users = HashedColumn(read_only(np.arange(len(user_ids))), _hash_strings(user_ids.tolist(), n_threads))
        kind_of_users = "strings"
    elif user_ids is not None:
        ids = user_ids.tolist()
        texts = list(map(_text_of_id, ids))
        if None in texts:
            return None
        users = HashedColumn(read_only(np.arange(len(ids))), _hash_strings(texts, n_threads))
        kind_of_users = next((_kind_of(id_) for id_ in ids), None)
    n_users, n_rows = len(indptr) - 1, len(cells.codes)
    edges = edges_of(n_users, n_threads)
    sums = np.zeros((len(edges) - 1, 6), np.uint64)
    floats = read_only(np.zeros(0) if numbers is None else np.ascontiguousarray(numbers, np.float64))
    given = *users, read_only(indptr), *cells, floats, in_order, sums, edges
    launch(add_hashes, len(sums), *given, work=16 * (n_rows + n_users), n_threads=n_threads)
    totals = sums.sum(axis=0).tolist()
    plain, full, placed = (f"{high:016x}{low:016x}" for low, high in zip(totals[::2], totals[1::2], strict=True))
    parts = plain, None if numbers is None else full, placed if in_order else None
    return Digest(VERSION, n_rows, kind_of_users, None, *parts)


def _kind_of(user_id: Any) -> str:
    return "integers" if is_whole(type(user_id)) else "tuples" if isinstance(user_id, tuple) else "strings"


def _text_of_id(user_id: Any) -> Any:
    """Return an id as a string or bytes; None if it is of another type than integers, strings, and tuples of these."""
    if isinstance(user_id, str | bytes):
        return user_id
    if isinstance(user_id, tuple):
        parts = [_text_of_id(part) for part in user_id]
        return None if None in parts else repr([*map(_kind_of, user_id), *map(str, parts)])
    return str(user_id) if is_whole(type(user_id)) else None


def _hash_strings(strings: Sequence[Any], n_threads: int) -> Array:
    """Return the hash of each string: uint64 (n,)."""
    if isinstance(strings, Spelled):
        offsets, data = strings.end_to_end()
    else:
        encoded = [own if isinstance(own, bytes) else own.encode("utf-8", "surrogatepass") for own in strings]
        offsets = np.cumsum([0, *map(len, encoded)])
        data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    hashes = np.empty(len(strings), np.uint64)
    edges = edges_of(len(strings), n_threads)
    given = read_only(offsets), read_only(data), hashes, edges
    launch(hash_strings, len(edges) - 1, *given, work=32 * len(strings), n_threads=n_threads)
    return read_only(hashes)
