"""Grouping of rows by user: rows that are grouped stay in place, others move once; only small inputs are sorted."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, RowNumber
from fastrec.inputs.ragged import read_only
from fastrec.kernels import grouping
from fastrec.runtime.launcher import call, launch
from fastrec.runtime.threads import once, start_thread

Array = np.ndarray[Any, Any]
SMALL_ROWS = 1 << 15  # fewer are sorted, which needs no compiled code
ROWS_PER_RANGE = 1 << 18  # fewer are not worth a thread
ROWS_PER_BUCKET = 1 << 15  # of several columns: they fit the L2 cache
ROWS_TO_COUNT, MAX_COUNTED = 1 << 19, 1 << 16  # rows that fit a cache, keys that 16 bits number
MAX_BUCKETS = 1024  # writing to more at the same time is slow
LONG_RUN = 8  # mean length of runs of one key from which runs move instead of rows
MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: odd, with bits as good as random
TASKS_PER_THREAD = 4  # buckets differ in size
WIDEST_CODE = 1 << 32


class Grouping(NamedTuple):
    """Positions of the rows of each user."""

    ids: Array  # distinct keys: ascending if rows move, else in order of appearance
    indptr: Array  # int64 (n_users + 1,)
    mover: Callable[[Array], Array] | None  # of columns of rows; None if rows are grouped already

    def take(self, column: Array) -> Array:
        """Return a column with one value per row in the order of users; rows of a user keep their order."""
        self._check_length(column)
        return column if self.mover is None else self.mover(column)

    def take_by_rank(self, items: Array, ranks: Array, n_threads: int) -> tuple[Array, tuple[int, int] | None]:
        """Return items in the order of users and ranks, and the (user, rank) of a repeated rank."""
        self._check_length(items)
        self._check_length(ranks)
        ordered = self.mover.by_rank(items, ranks) if isinstance(self.mover, _Shuffled | _Counted) else None
        if ordered is not None:
            return ordered, None
        return order_by_rank(self.take(items), self.take(ranks), self.indptr, n_threads)

    def _check_length(self, column: Array) -> None:
        """Check the value per row that kernels rely on: a frame of the caller's own class may lack some."""
        if len(column) != self.indptr[-1]:
            raise InputError(f"columns must have the same length, found {self.indptr[-1]} and {len(column)} rows")

    def origin(self, row: int) -> int:
        """Return the position at which a row of the result was passed."""
        return row if self.mover is None else int(self.mover(np.arange(self.indptr[-1]))[row])


def one_per_user(
    values: Array, valid: Array | None, grouping: Grouping, spell: Callable[[Array], Any], where: str, advice: str = ""
) -> tuple[Array, Array]:
    """Return the value of each user, and whether each user has one; raise if rows of a user have different values.

    values : of rows, as passed.
    valid : whether a row has a value; None if all do.
    spell : returns ids of users as passed, for the error.
    """
    values, indptr = grouping.take(values), grouping.indptr
    n_users = len(indptr) - 1
    if valid is None:
        first, present = indptr[:-1], np.ones(n_users, bool)
    else:
        valid = grouping.take(valid)
        having = np.append(np.flatnonzero(valid), len(values))
        first = having[np.searchsorted(having, indptr[:-1])]
        present = first < indptr[1:]
        first = np.where(present, first, indptr[:-1])
    of_users = values[first]
    wrong = values != np.repeat(of_users, np.diff(indptr))
    if valid is not None:
        wrong &= valid
    if wrong.any():
        at = int(wrong.argmax())
        user = int(np.searchsorted(indptr, at, side="right")) - 1
        who = spell(grouping.ids[user : user + 1])[0]
        who = who.item() if isinstance(who, np.generic) else who
        row = RowNumber(grouping.origin(at), f", row {grouping.origin(at)} from the user's first")
        raise InputError(where, f" must agree within a user, but rows of user {who!r} differ", row, advice)
    return of_users, present


def group_rows(keys: Array, n_threads: int) -> Grouping:
    """Group rows by key, int32 or int64. Rows that are grouped already stay in place, in any order of keys."""
    n = len(keys)
    if n == 0:
        return Grouping(keys, np.zeros(1, np.int64), None)
    keys = read_only(keys)
    ranges = _ranges(n, n_threads)
    changes, falls, lowest, highest = _scan(keys, ranges, n_threads)
    n_runs = int(changes.sum()) + 1
    if falls and n_runs * LONG_RUN > n:
        return _group_shuffled(keys, lowest, highest, n_threads)
    starts = _find_runs(keys, changes, ranges, n_threads)
    return _group_runs(keys[starts[:-1]], starts, n_threads, ascending=not falls)


def first_of_users(codes: Array, indptr: Array, n_codes: int, n_threads: int) -> Array:
    """Return which rows are the first of their user with their code, int8 (n_rows,); codes are int32, from -1 on."""
    found = np.empty(len(codes), np.int8)
    given = read_only(codes), read_only(indptr), n_codes, found
    _launch(grouping.mark_first_rows, len(codes), *given, _cut(indptr, n_threads), n_threads=n_threads)
    return found


def places_of(chosen: Array) -> Array:
    """Return the positions of chosen rows, given as int8, followed by the number of rows: int64 (n_chosen + 1,)."""
    places = np.empty(int(np.count_nonzero(chosen)) + 1, np.int64)
    call(grouping.write_places, read_only(chosen), places, work=8 * len(chosen))
    return places


@contextlib.contextmanager
def loading_kernels(n_rows: int) -> Iterator[None]:
    """Load Numba and a first kernel while the `with` block runs, if there are enough rows to need them."""
    none = read_only(np.zeros(0, np.int64)), np.empty((0, 4), np.int64), _ranges(0, 1)
    scan = functools.partial(launch, grouping.scan_keys, 0, *none, work=8 * n_rows, n_threads=1)
    thread = threading.Thread(target=scan)
    if n_rows >= SMALL_ROWS:
        start_thread(thread)
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()


def _scan(keys: Array, ranges: Array, n_threads: int) -> tuple[Array, bool, int, int]:
    """Return the changes of key per range, whether a key falls, and the lowest and the highest key."""
    if len(keys) < SMALL_ROWS:
        changes, falls = np.array([(keys[1:] != keys[:-1]).sum()]), bool((keys[1:] < keys[:-1]).any())
        return changes, falls, int(keys.min()), int(keys.max())
    found = np.empty((len(ranges) - 1, 4), np.int64)
    _launch(grouping.scan_keys, len(keys), keys, found, ranges, n_threads=n_threads)
    return found[:, 0], bool(found[:, 1].any()), int(found[:, 2].min()), int(found[:, 3].max())


def _find_runs(keys: Array, changes: Array, ranges: Array, n_threads: int) -> Array:
    """Return where runs of equal keys begin, followed by the number of rows."""
    n = len(keys)
    if n < SMALL_ROWS:
        return np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1, [n]]).astype(np.int64)
    starts = np.empty(int(changes.sum()) + 2, np.int64)
    starts[0], starts[-1] = 0, n
    places = 1 + np.cumsum(changes) - changes
    _launch(grouping.write_changes, n, keys, starts, places, ranges, n_threads=n_threads)
    return starts


def _group_runs(ids: Array, starts: Array, n_threads: int, *, ascending: bool) -> Grouping:
    """Group runs of equal keys: nothing moves if each key has one run."""
    if ascending:
        return Grouping(ids, starts, None)
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if new.all():
        return Grouping(ids, starts, None)
    lengths = np.diff(starts)[order]
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    mover = functools.partial(take_blocks, starts=starts[:-1][order], indptr=pointers, n_threads=n_threads)
    return Grouping(ordered[new], np.append(pointers[:-1][new], pointers[-1]), mover)


def take_blocks(column: Array, starts: Array, indptr: Array, n_threads: int) -> Array:
    """Return the rows that begin at `starts`, with the lengths in `indptr`, end to end."""
    values, kind = _as_bits(column)
    out = np.empty(int(indptr[-1]), values.dtype)
    given = values, read_only(starts), read_only(indptr), out
    _launch(grouping.copy_blocks, len(out), *given, _cut(indptr, n_threads), n_threads=n_threads)
    return out.view(kind)


def _group_shuffled(keys: Array, lowest: int, highest: int, n_threads: int) -> Grouping:
    """Group rows in any order with buckets: ranges of keys if keys are dense, else ranges of their hashes."""
    n, span = len(keys), highest - lowest + 1
    if n < SMALL_ROWS:
        return _sort(keys)
    if n <= ROWS_TO_COUNT and span <= MAX_COUNTED:
        return _group_by_counting(keys, lowest, span)
    bits = min(MAX_BUCKETS.bit_length() - 1, max(1, (n // ROWS_PER_BUCKET).bit_length()))
    if span <= n:
        split = _Split(keys, lowest, 1, max(0, (span - 1).bit_length() - bits), n_threads)
        codes, counts = (None, split.sizes[:span]) if split.holds_one_key else _number_dense(split, keys, lowest, span)
        used = np.flatnonzero(counts)
        ids = (used + lowest).astype(keys.dtype)
    else:
        split = _Split(keys, 0, MULTIPLIER, 64 - bits, n_threads)
        numbered = _number_sparse(split, keys)
        if numbered is None:
            return _sort(keys)
        codes, counts, ids, used = numbered
        order = np.argsort(ids)
        ids, used = ids[order], used[order]
    indptr = np.concatenate([[0], np.cumsum(counts[used])])
    starts = np.empty_like(counts)
    starts[used] = indptr[:-1]
    return Grouping(ids, indptr, _Shuffled(split, codes, starts, counts))


def _sort(keys: Array) -> Grouping:
    """Sort few rows, or keys crafted to collide."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return Grouping(
        ordered[starts], np.append(starts, len(keys)).astype(np.int64), functools.partial(np.take, indices=order)
    )


def _group_by_counting(keys: Array, lowest: int, span: int) -> Grouping:
    """Group at most ROWS_TO_COUNT rows by counting their keys, which are close together. Each row moves once."""
    codes, counts = np.empty(len(keys), np.uint16), np.zeros(span, np.int64)
    given = keys, np.uint64(lowest % 2**64), codes, counts[None], _ranges(len(keys), 1)
    _launch(grouping.number_dense, len(keys), *given, n_threads=1)
    starts, used = np.append(0, np.cumsum(counts)), np.flatnonzero(counts)
    ids = (used + lowest).astype(keys.dtype)
    return Grouping(ids, np.append(starts[used], len(keys)), _Counted(codes, starts, counts))


class _Counted:
    """A mover for few rows, which fit a cache."""

    def __init__(self, codes: Array, starts: Array, counts: Array) -> None:
        self._codes = read_only(codes)  # of rows, uint16, so that kernels are compiled for no other type
        self._starts, self._counts = starts, counts  # of codes

    def __call__(self, column: Array) -> Array:
        (values, kind), n = _as_bits(column), len(column)
        out, places = np.empty(n, values.dtype), self._starts[None, :-1].copy()
        _launch(grouping.scatter, n, values, self._codes, places, out, _ranges(n, 1), n_threads=1)
        return out.view(kind)

    def by_rank(self, column: Array, ranks: Array) -> Array | None:
        """Return a column by user and rank; None if the ranks of some user are not 1 to n, or 0 to n - 1."""
        n, targets, taken = len(column), np.empty(len(column), np.uint32), np.zeros(len(column), bool)
        edges, fits, places = _ranges(n, 1), np.zeros(1, bool), (read_only(self._starts[:-1]), read_only(self._counts))
        given = self._codes, read_only(ranks), np.int64(ranks.min()), *places, taken, targets, fits, edges
        _launch(grouping.place_by_rank, n, *given, n_threads=1)
        if not fits[0]:
            return None
        out: Array = np.empty(n, column.dtype)
        values, _ = _as_bits(column)
        _launch(grouping.move, n, values, read_only(targets), out.view(values.dtype), edges, n_threads=1)
        return out


class _Split:
    """Rows by bucket: neighbouring ranges of rows write to neighbouring places, so that rows keep their order."""

    def __init__(self, keys: Array, lowest: int, multiplier: int, shift: int, n_threads: int) -> None:
        self._n_threads = n_threads
        self.holds_one_key = multiplier == 1 and shift == 0  # each bucket
        self._ranges = _ranges(len(keys), n_threads)
        self._buckets = np.empty(len(keys), np.uint16)
        self._spare: list[Array] = []  # memory that was used before: the system takes long to give new memory
        counts = np.zeros((len(self._ranges) - 1, MAX_BUCKETS), np.int64)
        low, factor = np.uint64(lowest % 2**64), np.uint64(multiplier)
        given = keys, low, factor, shift, self._buckets, counts, self._ranges
        _launch(grouping.count_buckets, len(keys), *given, n_threads=n_threads)
        before = np.cumsum(counts, axis=0) - counts
        self.sizes = counts.sum(axis=0)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self._places = self.starts[:-1] + before
        self.cuts = _cut(self.starts, n_threads)  # ranges of buckets

    def over_buckets(self, driver: Any, *given: Any) -> None:
        """Run a kernel for ranges of buckets."""
        _launch(driver, len(self._buckets), *given, self.cuts, n_threads=self._n_threads)

    def over_rows(self, driver: Any, *given: Any) -> None:
        """Run a kernel for the rows of ranges of buckets."""
        edges = read_only(self.starts[self.cuts])
        _launch(driver, len(self._buckets), *given, edges, n_threads=self._n_threads)

    @contextlib.contextmanager
    def scattered(self, column: Array) -> Iterator[Array]:
        """Lend a column by bucket, in memory that the next column takes."""
        memory = self._spare.pop() if self._spare else np.empty(0, np.uint8)
        if memory.nbytes < column.nbytes:
            memory = np.empty(column.nbytes, np.uint8)
        try:
            yield read_only(self.scatter(column, memory[: column.nbytes].view(column.dtype)))
        finally:
            self._spare.append(memory)

    def scatter(self, column: Array, out: Array) -> Array:
        """Write a column by bucket to `out`, and return that."""
        (values, _), own = _as_bits(column), out.view(f"u{out.dtype.itemsize}")
        given = values, read_only(self._buckets), self._places.copy(), own, self._ranges
        _launch(grouping.scatter, len(values), *given, n_threads=self._n_threads)
        return out

    def move(self, column: Array, targets: Array) -> Array:
        """Return a column moved to the targets of its rows; the targets are by bucket."""
        with self.scattered(column) as by_bucket:
            values, kind = _as_bits(by_bucket)
            out = np.empty_like(values)
            self.over_rows(grouping.move, values, read_only(targets), out)
            return out.view(kind)


class _Shuffled:
    """A mover for rows in any order."""

    def __init__(self, split: _Split, codes: Array | None, starts: Array, counts: Array) -> None:
        self._split = split
        self._known_codes = codes  # None if each bucket holds one key
        self._has_codes = True  # until their memory is taken
        self._starts = read_only(starts)  # of each code
        self._counts = read_only(counts)

    @once
    def _codes(self) -> Array:
        """The code of each row, by bucket."""
        if self._known_codes is not None:
            return self._known_codes
        kind = _new_codes(int(self._counts.sum())).dtype
        return np.repeat(np.arange(len(self._counts), dtype=kind), self._counts)

    @once
    def _targets(self) -> Array:
        """The target of each row, by bucket, in the memory of the codes: the system takes long to give new memory."""
        targets, places, self._has_codes = self._codes, self._starts.copy(), False
        self._split.over_rows(grouping.place_rows, read_only(targets), places, targets)
        return targets

    def __call__(self, column: Array) -> Array:
        if self._split.holds_one_key:  # rows are in order by bucket
            return self._split.scatter(column, np.empty(len(column), column.dtype))
        return self._split.move(column, self._targets)

    def by_rank(self, column: Array, ranks: Array) -> Array | None:
        """Return a column by user and rank; None if the ranks of some user are not 1 to n, or 0 to n - 1.

        Also None once a column was moved without ranks.
        """
        if not self._has_codes:
            return None
        split, targets = self._split, np.empty_like(self._codes)
        taken, fits = np.zeros(len(targets), bool), np.zeros(len(split.cuts) - 1, bool)
        with split.scattered(ranks) as by_bucket:
            given = read_only(self._codes), by_bucket, np.int64(ranks.min()), self._starts, self._counts
            split.over_rows(grouping.place_by_rank, *given, taken, targets, fits)
        return split.move(column, targets) if fits.all() else None


def _number_dense(split: _Split, keys: Array, lowest: int, span: int) -> tuple[Array, Array]:
    """Return the code of each row, by bucket, and the number of rows of each code."""
    codes, counts = _new_codes(len(keys)), np.zeros(span, np.int64)
    with split.scattered(keys) as by_bucket:
        split.over_rows(grouping.number_dense, by_bucket, np.uint64(lowest % 2**64), codes, counts[None])
    return codes, counts


def _number_sparse(split: _Split, keys: Array) -> tuple[Array, Array, Array, Array] | None:
    """Return the code per row, by bucket, rows per code, distinct keys and their codes; None if hashes collide."""
    codes, counts = _new_codes(len(keys)), np.empty(len(keys), np.int64)
    ids, distinct = np.empty_like(keys), np.zeros(MAX_BUCKETS, np.int64)
    with split.scattered(keys) as by_bucket:
        given = by_bucket, read_only(split.starts), codes, counts, ids, distinct
        split.over_buckets(grouping.number_sparse, *given)
    if (distinct < 0).any():
        return None
    before = np.cumsum(distinct) - distinct
    used = np.arange(distinct.sum()) + np.repeat(split.starts[:-1] - before, distinct)
    return codes, counts, ids[used], used


def number_close(keys: Array, lowest: int, span: int, n_threads: int) -> tuple[Array, Array]:
    """Return the distance of each key from the lowest, int32, and how many keys have each of `span` distances."""
    if len(keys) < SMALL_ROWS:
        codes = (keys - keys.dtype.type(lowest)).astype(np.int32)
        return codes, np.bincount(codes, minlength=span)
    keys = read_only(keys if keys.dtype == np.int32 else keys.astype(np.int64, copy=False))
    codes, ranges = np.empty(len(keys), np.uint32), _ranges(len(keys), n_threads)
    counts = np.zeros((len(ranges) - 1, span), np.int64)
    given = keys, np.uint64(lowest % 2**64), codes, counts, ranges
    _launch(grouping.number_dense, len(keys), *given, n_threads=n_threads)
    return codes.view(np.int32), counts.sum(axis=0)


def _new_codes(n: int) -> Array:
    return np.empty(n, np.uint32 if n < WIDEST_CODE else np.uint64)


class Blocks(NamedTuple):
    """Positions of the rows of some users among rows with another order of users."""

    starts: Array | None  # int64 (n_users,); None if rows need not move
    indptr: Array  # int64 (n_users + 1,)
    n_threads: int

    def take(self, column: Array) -> Array:
        """Return a column in the order of these users."""
        return column if self.starts is None else take_blocks(column, self.starts, self.indptr, self.n_threads)


def join_users(first: Array, second: Array) -> Array:
    """Return the users of two sides: ascending if both are, else those of the first followed by the others."""
    if np.array_equal(first, second):
        return first
    if _ascends(first) and _ascends(second):
        return np.union1d(first, second)
    return np.concatenate([first, second[find_users(second, first) < 0]])


def find_users(wanted: Array, users: Array) -> Array:
    """Return the position of each wanted user among `users`, or -1."""
    if np.array_equal(wanted, users):
        return np.arange(len(users))
    if not len(users):
        return np.full(len(wanted), -1)
    order = None if _ascends(users) else np.argsort(users)
    at = np.searchsorted(users, wanted, sorter=order)
    at = np.minimum(at, len(users) - 1)
    if order is not None:
        at = order[at]
    return np.where(users[at] == wanted, at, -1)


def find_blocks(users: Array, ids: Array, indptr: Array, n_threads: int) -> Blocks:
    """Find the rows of some users among rows grouped by `ids`; users without an id there get none."""
    at = find_users(users, ids)
    present = at >= 0
    own = at[present]
    lengths = np.zeros(len(users), np.int64)
    lengths[present] = np.diff(indptr)[own]
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    if len(own) == len(ids) and _ascends(own):
        return Blocks(None, pointers, n_threads)
    starts = np.zeros(len(users), np.int64)
    starts[present] = indptr[own]
    return Blocks(starts, pointers, n_threads)


def _ascends(ids: Array) -> bool:
    return bool((ids[1:] > ids[:-1]).all())


def order_of_ids(ids: Array) -> Array | None:
    """Return positions by ascending id; None if ids ascend."""
    return None if _ascends(ids) else np.argsort(ids)


def order_by_rank(items: Array, ranks: Array, indptr: Array, n_threads: int) -> tuple[Array, tuple[int, int] | None]:
    """Return items of each user by ascending rank, and the (user, rank) of a repeated rank."""
    items, ranks, indptr = map(read_only, (items, ranks, indptr))
    cuts = _cut(indptr, n_threads)
    unranked, twice = np.empty(len(cuts) - 1, np.int64), np.empty((len(cuts) - 1, 2), np.int64)
    _launch(grouping.find_unranked, len(ranks), ranks, indptr, unranked, cuts, n_threads=n_threads)
    if unranked.max(initial=-1) < 0:
        return items, None
    out = np.empty_like(items)
    _launch(grouping.order_users, len(ranks), ranks, indptr, items, out, twice, cuts, n_threads=n_threads)
    return out, next(((user, rank) for user, rank in twice.tolist() if user >= 0), None)


def _as_bits(column: Array) -> tuple[Array, Any]:
    """Return a column as unsigned integers of its width, which suffice to move it, and its dtype."""
    return read_only(column).view(f"u{column.dtype.itemsize}"), column.dtype


def _ranges(n: int, n_threads: int) -> Array:
    """Return edges of ranges of rows, one per thread."""
    n_ranges = max(1, min(n_threads, n // ROWS_PER_RANGE))
    return read_only(n * np.arange(n_ranges + 1, dtype=np.int64) // n_ranges)


def _cut(indptr: Array, n_threads: int) -> Array:
    """Return edges of ranges of users (or buckets) with about equally many rows, several per thread."""
    n = int(indptr[-1])
    n_ranges = max(1, min(TASKS_PER_THREAD * n_threads, n // ROWS_PER_RANGE))
    cuts = np.searchsorted(indptr, [n * at // n_ranges for at in range(1, n_ranges)])
    return read_only(np.unique([0, *cuts.tolist(), len(indptr) - 1]))


def _launch(driver: Any, n_rows: int, *given: Any, n_threads: int) -> None:
    """Run a kernel for all its tasks, of which the last argument has the edges."""
    launch(driver, len(given[-1]) - 1, *given, work=8 * n_rows, n_threads=n_threads)
