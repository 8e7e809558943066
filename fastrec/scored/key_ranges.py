"""Keys of rows from many batches, in ranges of scores: few bytes per row where most scores differ.

The keys of a batch are kept as they are until there are enough of them. Then each range takes its part of them. A range
is sorted when a number needs it, and cut when it is large, so that sorting takes little room.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import chosen_rows, read_only
from fastrec.kernels import known_pairs as kernels
from fastrec.runtime.launcher import call
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.areas import Pairs, pairs_of_keys
from fastrec.scored.influence import BatchUsers
from fastrec.scored.keys import KeyRange, OrderedKeys, SortedKeys
from fastrec.scored.owned_keys import n_sums, sort_owned_rows

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE, BATCHES_AT_ONCE = 1 << 20, 1 << 8  # that ranges take
ROWS_PER_RANGE = 1 << 19  # after a cut
LARGE_RANGE = 1 << 21  # rows from which a range is cut
BYTES_PER_SCORE = 24  # of score counts


class _Side:
    """The keys of rows with scores on one side of 0."""

    def __init__(self, cuts: Array, pieces: list[list[Array]]) -> None:
        self.cuts = cuts  # the lowest key of each range but the first, ascending
        self.pieces = pieces  # of each range: sorted keys
        self._pairs: dict[int, Pairs] = {}  # of ranges in one piece
        self._negatives: dict[int, Array] = {}

    def with_keys(self, found: list[Array]) -> _Side:
        """Return a side that has more keys, each array of them ascending."""
        bounds = [(0, *np.searchsorted(keys, self.cuts).tolist(), len(keys)) for keys in found]
        added = [
            np.concatenate([keys[own[nth] : own[nth + 1]] for keys, own in zip(found, bounds, strict=True)])
            for nth in range(len(self.pieces))
        ]
        return _cut(_Side(self.cuts, [[*own, new] for own, new in zip(self.pieces, added, strict=True)]))

    def keys(self, nth: int) -> Array:
        """Return the sorted keys of a range, which is one piece from then on."""
        own = self.pieces[nth]
        if len(own) > 1:
            keys = np.concatenate(own)
            keys.sort()
            self.pieces[nth] = own = [keys]  # one statement: an interrupt loses nothing
        return own[0]

    def pairs(self, nth: int) -> Pairs:
        """Return the pairs of a range."""
        if nth not in self._pairs:
            self._pairs[nth] = pairs_of_keys(self.keys(nth))
        return self._pairs[nth]

    def negatives(self, nth: int) -> Array:
        """Return the negative rows of a range before each block of its keys."""
        if nth not in self._negatives:
            labels = (self.keys(nth) & 1).astype(np.int64)
            sizes = np.add.reduceat(1 - labels, np.arange(0, len(labels), kernels.BLOCK)) if len(labels) else labels
            self._negatives[nth] = read_only(np.cumsum(sizes) - sizes)
        return self._negatives[nth]


def _alone(keys: Array) -> Array:
    """Return keys that do not keep a larger array, such as the keys of other segments."""
    return keys.copy() if getattr(keys.base, "nbytes", 0) > 2 * keys.nbytes else keys


def _is_whole(pieces: list[Array]) -> bool:
    """Return whether a range is too small to be cut, or nearly all of its rows have one score."""
    first, rest = pieces[0], sum(map(len, pieces[1:]))
    tied = len(first) > 0 and bool(first[0] ^ first[-1] <= 1)
    return rest + (0 if tied else len(first)) < LARGE_RANGE


def _cut(side: _Side) -> _Side:
    """Return a side whose large ranges are cut, but not between equal scores."""
    cuts: list[int] = []
    pieces: list[list[Array]] = []
    for nth, own in enumerate(side.pieces):
        cuts += side.cuts[nth - 1 : nth].tolist() if nth else []
        if _is_whole(own):
            pieces.append(own)
            continue
        keys = side.keys(nth)
        lowest = np.unique(keys[ROWS_PER_RANGE::ROWS_PER_RANGE] & ~keys.dtype.type(1))
        places = np.searchsorted(keys, lowest)
        cuts += lowest[places > 0].tolist()
        pieces += [[part] for part in np.split(keys, places[places > 0])]
    return _Side(np.array(cuts, side.cuts.dtype), pieces)


class _Held(NamedTuple):
    """Sides below and above 0, and rows that are on neither yet."""

    sides: tuple[_Side, _Side]
    recent: list[SortedKeys]

    def settled(self) -> _Held:
        """Return the same rows, all on sides."""
        if not self.recent:
            return self
        below = self.sides[0].with_keys([own.keys[: own.n_below] for own in self.recent])
        return _Held((below, self.sides[1].with_keys([own.keys[own.n_below :] for own in self.recent])), [])


class KeyRanges(OrderedKeys):
    """Rows by ascending score, to which rows can be added."""

    def __init__(self, held: _Held, n_rows: int, n_counted: int) -> None:
        self.held = held
        self.n_rows = n_rows
        self.n_counted = n_counted  # rows when their scores were counted for the last time

    @classmethod
    def of(cls, rows: SortedKeys) -> KeyRanges:
        """Return the ranges of rows."""
        none = np.zeros(0, rows.dtype)
        return cls(_Held((_Side(none, [[none]]), _Side(none, [[none]])), []), 0, 0).with_rows(rows)

    @property
    def dtype(self) -> Any:
        """The type of keys."""
        return self.held.sides[0].cuts.dtype

    def with_rows(self, rows: SortedKeys | KeyRanges) -> KeyRanges:
        """Return ranges that have more rows, whose keys are of the same type."""
        own, n_rows = self.held, self.n_rows
        if isinstance(rows, KeyRanges) and rows.n_rows >= ROWS_AT_ONCE:
            below, above = (
                side.with_keys([more.keys(nth) for nth in range(len(more.pieces))])
                for side, more in zip(own.sides, rows.held.sides, strict=True)
            )
            return KeyRanges(
                _Held((below, above), [*own.recent, *rows.held.recent]), n_rows + rows.n_rows, self.n_counted
            )
        more = rows if isinstance(rows, SortedKeys) else rows.in_one_array()
        held = _Held(own.sides, [*own.recent, SortedKeys(_alone(more.keys), [], more.n_below)])
        if sum(len(each.keys) for each in held.recent) >= ROWS_AT_ONCE or len(held.recent) >= BATCHES_AT_ONCE:
            held = held.settled()
        return KeyRanges(held, n_rows + len(more.keys), self.n_counted)

    def in_one_array(self) -> SortedKeys:
        """Return the same rows, without parts."""
        ranges = self.ranges()
        n_below = sum(len(keys) for keys, is_below in ranges if is_below)
        return SortedKeys(np.concatenate([keys for keys, _ in ranges]), [], n_below)

    def prefers_counts(self) -> bool:
        """Return whether counts by score take fewer bytes than keys do; it is found out when rows have doubled."""
        if self.n_rows < 2 * self.n_counted:
            return False
        self.n_counted = self.n_rows
        n_scores = sum(1 + np.count_nonzero((keys[1:] ^ keys[:-1]) > 1) for keys, _ in self.ranges() if len(keys))
        return bool(BYTES_PER_SCORE * n_scores < self.dtype.itemsize * self.n_rows)

    def ranges(self) -> list[KeyRange]:
        """Return the ranges, ascending."""
        return [KeyRange(side.keys(nth), is_below) for side, nth, is_below in self._places()]

    def pairs_of_ranges(self) -> list[Pairs]:
        """Return the pairs of each range, which are kept until rows are added."""
        return [side.pairs(nth) for side, nth, _ in self._places()]

    def _places(self) -> list[tuple[_Side, int, bool]]:
        """Return each range, ascending: its side, its place there, and whether its scores are below 0."""
        self.held = self.held.settled()
        below, above = self.held.sides
        return [(side, nth, side is below) for side in (below, above) for nth in range(len(side.pieces))]

    def pairs_of_users(self, users: BatchUsers, shift: int) -> Array:
        """Return the sums of `pairs_of_owners` for users of a batch, all of whose rows are known here."""
        n = len(users.members)
        rows, of_rows = _sorted_rows(users)
        keys, owners, tasks = read_only(rows.keys), read_only(of_rows), self._tasks(rows)
        sums = [np.zeros(n, np.int64) for _ in range(n_sums(len(keys), n, users.n_threads))]

        def work(nth: int) -> None:
            for part, known in tasks[nth :: len(sums)]:
                given = (keys[part], owners[part], known, shift, sums[nth])
                call(kernels.add_known_pairs, *given, work=64 * len(given[0]))

        run_in_threads(work, range(len(sums)), users.n_threads)
        for other in sums[1:]:
            sums[0] += other
        return sums[0]

    def _tasks(self, rows: SortedKeys) -> list[tuple[slice, kernels.KnownKeys]]:
        """Return which of some rows are in each range, and the range."""
        found, below, above = [], 0, self.pairs().positives
        cuts = [side.cuts for side in self.held.sides]
        lower = np.searchsorted(rows.keys[: rows.n_below], cuts[0])
        higher = rows.n_below + np.searchsorted(rows.keys[rows.n_below :], cuts[1])
        edges = itertools.pairwise([0, *lower.tolist(), rows.n_below, *higher.tolist(), len(rows.keys)])
        for own, (side, nth, _) in zip(edges, self._places(), strict=True):
            pairs = side.pairs(nth)
            found.append((slice(*own), kernels.KnownKeys(read_only(side.keys(nth)), side.negatives(nth), below, above)))
            below, above = below + pairs.negatives, above - pairs.positives
        return found


def _sorted_rows(users: BatchUsers) -> tuple[SortedKeys, Array]:
    """Return the sorted rows of users, and the position of the user of each among the users."""
    rows, members = users.rows, users.members
    if len(members) == len(rows.indptr) - 1:
        return sort_owned_rows(rows.positive, rows.scores, rows.indptr, users.n_threads)
    own, pointers = chosen_rows(rows.indptr, members)
    return sort_owned_rows(rows.positive[own], rows.scores[own], pointers, users.n_threads)
