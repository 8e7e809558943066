"""Evaluation of segments of rows: the rows of a user in a segment are a user of that segment.

Rows move once per grouping, so that those of a segment follow each other, and among them those of a user, in their
order. So each segment has the bits that its rows alone would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fastrec.evaluation.accumulators import Accumulator, AccumulatorKey, GroupKey, collect
from fastrec.evaluation.engine import KernelError, evaluate_source
from fastrec.evaluation.row_rules import make_source, score_counts_by_code
from fastrec.evaluation.state import SegmentSums
from fastrec.inputs.grouping import first_of_users, group_rows, places_of
from fastrec.inputs.row_groups import NO_SEGMENT, RowGroups
from fastrec.inputs.rows import Rows, RowSides
from fastrec.inputs.users import Users
from fastrec.metrics.plan import Accumulated, Plan, Policies
from fastrec.metrics.row_statistics import SCORE_COUNTS
from fastrec.policies import TIES
from fastrec.runtime.threads import share_threads

T = TypeVar("T")
Array = np.ndarray[Any, Any]
SEGMENTS_AT_ONCE = 256  # kernels keep sums of each: a few KB per sum and thread
FEW_ROWS = 1 << 14  # too few for a part of their own
ROWS_PER_PART = 1 << 17  # at most, unless a segment has more: arrays of their users stay in the caches


class SegmentError(Exception):
    """A `KernelError` about a user in a segment of rows, on its way to the code that knows the names of users."""

    def __init__(self, error: KernelError, key: GroupKey) -> None:
        super().__init__(error)
        self.error, self.key = error, key


class CutRows(NamedTuple):
    """The rows of a batch by segment."""

    rows: Rows  # whose users are those of segments
    ids: Array  # codes of the segments, in the order of their rows
    keys: list[GroupKey | None]  # of these segments; None: rows in no segment
    indptr: Array  # int64 (n_segments + 1,): where the rows of each begin
    users: Array  # int64 (n_segments + 1,): where the users of each begin
    user_of: Callable[[int], int] | None  # the user in the batch of a row, for errors

    def codes(self) -> Array:
        """Return the code of each row."""
        return np.repeat(self.ids, np.diff(self.indptr))

    def part(self, first: int, last: int) -> Rows:
        """Return the rows of segments first..last-1, their users in groups 1, 2, ..."""
        rows, of_rows = self.rows, slice(*self.indptr[[first, last]].tolist())
        of_users = slice(*self.users[[first, last]].tolist())
        codes = np.repeat(np.arange(1, last - first + 1, dtype=np.int32), np.diff(self.users[first : last + 1]))
        keys, weights = [key for key in self.keys[first:last] if key is not None], rows.users.weights
        return rows._replace(
            labels=rows.labels[of_rows],
            scores=rows.scores[of_rows],
            indptr=rows.indptr[of_users.start : of_users.stop + 1] - of_rows.start,
            weights=None if rows.weights is None else rows.weights[of_rows],
            items=None if rows.items is None else rows.items[of_rows],
            users=Users(None, codes[None], keys, None if weights is None else weights[of_users]),
        )

    def _bounds(self, n_threads: int) -> list[tuple[int, int]]:
        """Return the first segment of each part, and the segment after its last."""
        n, found = len(self.keys), []
        first = int(self.keys[:1] == [None])  # rows in no segment come first
        n_rows = min(max(int(self.indptr[-1]) // n_threads, FEW_ROWS), ROWS_PER_PART)
        while first < n:
            fitting = int(np.searchsorted(self.indptr, self.indptr[first] + n_rows, "right")) - 1
            last = min(max(fitting, first + 1), first + SEGMENTS_AT_ONCE, n)
            found.append((first, last))
            first = last
        return found

    def over_parts(self, work: Callable[[int, Rows, int], T], n_threads: int) -> list[T]:
        """Call work(position of the first user, rows, threads) for parts of a few segments; return the results.

        Raise the error of the first part that fails.
        """
        bounds = self._bounds(n_threads)
        sizes = [int(self.indptr[last] - self.indptr[first]) for first, last in bounds]
        return share_threads(
            lambda at, threads: work(int(self.users[bounds[at][0]]), self.part(*bounds[at]), threads),
            sizes,
            n_threads,
            least=ROWS_PER_PART,
        )


class Segmented(NamedTuple):
    """What the segments of the rows of a batch add to a state."""

    sums: list[SegmentSums]
    accumulators: list[tuple[AccumulatorKey, Accumulator]]
    cuts: list[CutRows]  # by grouping, kept for a review of the rows


def evaluate_segments(
    plan: Plan,
    rows: Rows,
    rules: Mapping[str, Any],
    wanted: list[Accumulated],
    step: int | None,
    n_threads: int,
    *,
    keep_cuts: bool = False,
) -> Segmented:
    """Evaluate the segments of checked rows. `step`: rows that are summed together if rows have no users.

    Raises SegmentError.
    """
    found = Segmented([], [], [])
    counted = [own for own in wanted if own.kind == SCORE_COUNTS]
    others = [own for own in wanted if own.kind != SCORE_COUNTS]
    only_order = not others and all(value.over is not None and value.call.metric.builtin for value in plan.values)
    # such metrics count users, each of whom has rows, unless weights are 0 or a user without a positive row is an error
    counts_all = rows.weights is None and rows.users.weights is None and rules["no_truth"] != "error"
    for segments in rows.segments:
        ordered, codes = rows, segments.codes
        if only_order and step is not None:  # of rows without users, no sum is read
            found.sums.append(_no_sums(plan, segments.keys))
        else:
            cut = _cut(rows, segments, step, n_threads)
            if not keep_cuts:
                ordered, codes = cut.rows, cut.codes()
            if only_order and counts_all:
                found.sums.append(_sums_of_users(plan, cut))
            else:
                for sums, every in cut.over_parts(partial(_evaluate_part, plan, rules, others, cut), n_threads):
                    found.sums.append(sums)
                    found.accumulators.extend((key, own) for key, own in every if key.group is not None)
            if keep_cuts:  # without what only errors read
                cut = cut._replace(user_of=None)
                found.cuts.append(cut)
        for kind, condition, _ in counted:
            least, n_segments = plan.min_gains[condition], len(segments.labels)
            counts = score_counts_by_code(ordered, codes, n_segments, least, n_threads)
            keys = (AccumulatorKey(kind, condition, key) for key in segments.keys)
            found.accumulators.extend(zip(keys, counts, strict=True))
    return found


def _no_sums(plan: Plan, keys: list[GroupKey]) -> SegmentSums:
    totals = np.zeros((len(keys), len(plan.scales), 2), dtype=object)
    return SegmentSums(keys, totals, np.zeros((len(keys), len(plan.min_gains), 4), np.int64))


def _sums_of_users(plan: Plan, cut: CutRows) -> SegmentSums:
    """Return the sums of metrics of the order of rows: each is the number of users."""
    n_users = [(key, n) for key, n in zip(cut.keys, np.diff(cut.users).tolist(), strict=True) if key is not None]
    sums = _no_sums(plan, [key for key, _ in n_users])
    for line, (_, n) in zip(sums.totals, n_users, strict=True):
        for at, scale in enumerate(plan.scales):
            line[at] = n << scale
    return sums


def _evaluate_part(
    plan: Plan,
    rules: Mapping[str, Any],
    wanted: list[Accumulated],
    cut: CutRows,
    first: int,
    part: Rows,
    n_threads: int,
) -> tuple[SegmentSums, list[tuple[AccumulatorKey, Accumulator]]]:
    """Return the sums and accumulators of a part of a cut; `first` is the position in the cut of its first user."""
    source, sides = make_source(plan, part, TIES.code(rules["ties"])), RowSides(part)
    policies = Policies(rules["no_truth"], "zero")
    try:
        outcome = evaluate_source(plan, policies, source, sides, part.users, n_threads)
    except KernelError as error:
        code, user, detail = error.failure
        key = part.users.keys[part.users.groups[0, user] - 1]
        assert cut.user_of is not None
        failure = type(error.failure)(code, cut.user_of(int(cut.rows.indptr[first + user])), detail)
        raise SegmentError(KernelError(failure, error.metric, error.message), key) from None
    sums = SegmentSums(part.users.keys, outcome.totals[1:], outcome.counts[1:])
    return sums, collect(wanted, sides, plan.min_gains, n_threads)


def over_segments(
    rows: Rows, cuts: list[CutRows], work: Callable[[Rows, int], Iterable[T]], n_threads: int
) -> Iterator[T]:
    """Call work(rows, threads) for parts of a few segments, and yield the items of the results.

    The rows of a user in a segment are a user, in a group. `cuts` are those that were kept, if any; they are used up.
    """
    for segments in rows.segments:
        cut = cuts.pop(0) if cuts else _cut(rows, segments, None, n_threads)
        for found in cut.over_parts(lambda _, part, threads: work(part, threads), n_threads):
            yield from found


def _cut(rows: Rows, segments: RowGroups, step: int | None, n_threads: int) -> CutRows:
    """Bring rows into the order of their segments."""
    by_segment = group_rows(segments.codes, n_threads)
    take, own_weights = by_segment.take, rows.users.weights
    if step is None:
        indptr = places_of(take(first_of_users(segments.codes, rows.indptr, len(segments.labels), n_threads)))
    else:
        indptr = _steps(by_segment.indptr, step)
    weights = None if own_weights is None else take(np.repeat(own_weights, np.diff(rows.indptr)))[indptr[:-1]]
    moved = rows._replace(
        labels=take(rows.labels),
        scores=take(rows.scores),
        indptr=indptr,
        weights=None if rows.weights is None else take(rows.weights),
        items=None if rows.items is None else take(rows.items),
        users=Users(None, np.zeros((0, len(indptr) - 1), np.int32), [], weights),
        grouping=None,
        segments=(),
    )
    named = segments.keys
    keys = [None if code == NO_SEGMENT else named[code] for code in by_segment.ids.tolist()]

    def user_of(row: int) -> int:
        return int(np.searchsorted(rows.indptr, by_segment.origin(row), side="right")) - 1

    return CutRows(moved, by_segment.ids, keys, by_segment.indptr, np.searchsorted(indptr, by_segment.indptr), user_of)


def _steps(indptr: Array, step: int) -> Array:
    """Return where each `step` rows of a segment begin, the last of a segment being fewer, and the number of rows."""
    counts = -(-np.diff(indptr) // step)
    before = np.cumsum(counts) - counts
    nth = np.arange(int(counts.sum())) - np.repeat(before, counts)
    return np.append(np.repeat(indptr[:-1], counts) + nth * step, indptr[-1])
