"""What lists, truth and other sides suggest, whatever their form was: by their ids, scores, gains and last items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.checks import MinGain
from fastrec.inputs.arrays import FlatSide, RawSide
from fastrec.inputs.findings.evidence import FEW_LISTS, NO_LIST, Evidence, evidence_of_no_common_id
from fastrec.inputs.findings.ids import evidence_of_cells, evidence_of_ids
from fastrec.inputs.ragged import longest_row
from fastrec.inputs.sides import SIDES

Array = np.ndarray[Any, Any]
FIRST = 64  # lists to look at before all others
FEW_ROWS = 100_000  # of lists: integers of more are not compared, as examples are not worth so much time
SAMPLE = 1000  # lists or scores to look at first: most inputs show nothing there, and then no more are read
GRADES = 10  # distinct whole numbers, at most, that look like grades
RARE = 30  # bits: a chance of 1 to 2^30 that an item stands at the ends of lists alone
STEP = 4  # parts of 1 that gains have: grades in halves and quarters are usual


def evidence_of_lists(
    sides: Mapping[str, FlatSide],
    users: Array | None,
    strings: Sequence[Any] | None,
    name_of: Callable[[int], str],
    min_gain: MinGain | None,
) -> Iterator[Evidence]:
    """Yield evidence for findings in lists, truth and other sides as passed.

    `users` are their ids, `strings` those that the items encode, and `name_of` names an item in a message.
    """
    recs, truth = sides["recs"], sides["truth"]
    n_rows = len(recs.items) + len(truth.items)
    yield from _evidence_of_padding(recs, name_of) if recs.extra is None else _evidence_of_scores(recs, recs.extra)
    yield from _evidence_of_gains(recs, truth, min_gain)
    if users is not None and len(users):
        having, listed = (np.diff(own.indptr) > 0 for own in (truth, recs))
        if isinstance(users[0], str | tuple):
            yield from evidence_of_ids("user", "truth", users, having, listed, n_rows)
        elif having.any() and listed.any():
            of_sides = () if (having & listed).any() else (users[having].tolist(), users[listed].tolist())
            yield evidence_of_no_common_id("user", *of_sides)
    if strings is None and len(truth.items) and 0 < len(recs.items) <= FEW_ROWS:
        # the first items tell in most inputs, and a set of Python takes less time for them than `np.isin`
        is_common = not set(truth.items[:SAMPLE].tolist()).isdisjoint(recs.items[:SAMPLE].tolist())
        ids = () if is_common or np.isin(truth.items, recs.items).any() else (truth.items, recs.items)
        yield evidence_of_no_common_id("item", *(own.tolist() for own in ids))
    if not strings or not isinstance(strings[0], str):
        return
    masks = {name: np.zeros(len(strings), bool) for name in sides if name in SIDES or name == "items"}
    for name, mask in masks.items():
        mask[sides[name].items] = True
    for name, mask in masks.items():
        is_history = name == "exclude" and "history" in sides and np.array_equal(mask, masks["history"])
        if name != "recs" and not is_history:
            yield from evidence_of_ids("item", name, strings, mask, masks["recs"], n_rows)
    for name, other in (("recs", "truth"), ("truth", "recs")):
        if longest_row(sides[name].indptr) == 1:
            yield from evidence_of_cells(name, strings, masks[name], masks[other], n_rows)


def _evidence_of_scores(recs: FlatSide, scores: Array) -> Iterator[Evidence]:
    """Yield evidence that the scores of lists of two or more, in the order of rows, are ranks, or one number."""
    counted, several = 0, np.flatnonzero(np.diff(recs.indptr) > 1)
    if not len(several):
        return
    for some in (several[:FIRST], several):
        counted = _count_ranks(scores, recs.indptr, some)
        if 2 * counted < len(some) or len(some) == len(several):
            break
    yield Evidence("ranks_as_scores", counted, len(several))
    if len(several) < FEW_LISTS:
        return
    first = scores[_rows_of(recs.indptr, several[:FIRST])[:SAMPLE]]
    values, counts = np.unique(first, return_counts=True)
    top, count = values[counts.argmax()], 0
    alone = recs.indptr[:-1][np.diff(recs.indptr) == 1]
    if 2 * counts.max() >= len(first):
        count = int((scores == top).sum()) - int((scores[alone] == top).sum())
    yield Evidence("constant_scores", count, len(scores) - len(alone), (f"{top:g}",) if count else ())


def _rows_of(indptr: Array, users: Array) -> Array:
    """Return the rows of some users, end to end."""
    lengths = np.diff(indptr)[users]
    ends = np.cumsum(lengths)
    rows: Array = np.arange(ends[-1]) + np.repeat(indptr[users] - ends + lengths, lengths)
    return rows


def _count_ranks(scores: Array, indptr: Array, users: Array) -> int:
    """Return how many users have the scores 1, 2, 3, ..., or 0, 1, 2, ..., in the order of their rows."""
    rows, lengths = _rows_of(indptr, users), np.diff(indptr)[users]
    starts = np.cumsum(lengths) - lengths
    expected = np.arange(1, len(rows) + 1) - np.repeat(starts, lengths)
    steps = expected - scores[rows]  # 0 for ranks from 1, 1 for ranks from 0
    return int(sum(np.logical_and.reduceat(steps == first, starts).sum() for first in (0, 1)))


def _are_relevant(gains: Array, min_gain: MinGain | None) -> Array:
    """Return which gains make an item relevant; None is the usual rule, any gain above 0."""
    if min_gain == "any":
        return np.ones(len(gains), bool)
    return (gains > 0) & (gains >= (min_gain or 0.0))


def _evidence_of_gains(recs: FlatSide, truth: FlatSide, min_gain: MinGain | None) -> Iterator[Evidence]:
    """Yield evidence that no row is relevant, or that lists and truth are swapped: gains look like scores."""
    gains, n_rows = truth.extra, len(truth.items)
    least = f"of at least {min_gain:g}" if isinstance(min_gain, float) else "above 0"
    is_none = gains is not None and not _are_relevant(gains, min_gain).any()
    yield Evidence("no_gain", n_rows if is_none else 0, n_rows, (), least)
    if gains is None:
        return
    several, listed = np.flatnonzero(np.diff(truth.indptr) > 1)[:SAMPLE], np.flatnonzero(np.diff(recs.indptr))[:SAMPLE]
    if recs.extra is None or not (len(several) and len(listed)):
        return
    scores = np.unique(np.asarray(recs.extra)[_rows_of(recs.indptr, listed)])
    are_grades = len(scores) <= GRADES and (scores == np.floor(scores)).all()
    apart = 0
    for user in several.tolist() if are_grades else ():
        own = gains[truth.indptr[user] : truth.indptr[user + 1]]
        apart += len(np.unique(own)) == len(own) and bool((own * STEP != np.floor(own * STEP)).any())
    yield Evidence("swapped", apart, len(several))


def _evidence_of_padding(recs: FlatSide, name_of: Callable[[int], str]) -> Iterator[Evidence]:
    """Yield evidence that lists of one length end with an item that only fills them up."""
    length = int(recs.indptr[1]) if recs.n_users >= FEW_LISTS else 0
    if length < 2 or len(recs.items) != length * recs.n_users:
        return
    rows = recs.items.reshape(-1, length)
    items, counts = np.unique(rows[:SAMPLE, -1], return_counts=True)
    filler = items[counts.argmax()]
    for part in (rows[:FIRST], rows):
        fills = part == filler
        if (fills[:, :-1] > fills[:, 1:]).any():
            return
        ending, longest = int(fills[:, -1].sum()), int(fills.sum(axis=1).max())
    is_rare = ending * np.log2(length) >= RARE and 2 * ending <= len(rows)
    if ending == len(rows) or not (longest > 1 or is_rare):
        return
    if (np.diff(recs.indptr) == length).all():
        yield Evidence("padding", ending, len(rows), (), name_of(int(filler)))


def numbers_of_lists(recs: FlatSide, truth: FlatSide, min_gain: MinGain | None) -> dict[str, Callable[[], Array]]:
    """Return the numbers that a tool may not take: see `fastrec.metrics.recipe.Recipe.warnings`."""
    lengths, known = np.diff(recs.indptr), np.diff(truth.indptr)
    least = min_gain if isinstance(min_gain, float) else 0.0

    def tied_lengths() -> Array:
        users, scores = np.repeat(np.arange(len(lengths)), lengths), np.asarray(recs.extra)
        order = np.lexsort((scores, users))
        same = (np.diff(users) == 0) & (scores[order[1:]] == scores[order[:-1]])
        return np.asarray(lengths[users[1:][same]])

    def relevant() -> Array:
        largest = np.maximum.reduceat(truth.gains, truth.indptr[:-1][known > 0])[lengths[known > 0] > 0]
        return np.where(largest >= least, largest, 0.0)

    numbers = {"gains": lambda: truth.gains, "judged": lambda: known[lengths > 0], "relevant": relevant}
    if recs.extra is not None:
        numbers |= {"scores": lambda: np.asarray(recs.extra), "ties": tied_lengths}
    return numbers | ({} if min_gain is None else {"level": relevant})


def hints_of_ties(tool: str, items: Array) -> Iterator[str]:
    """Yield a hint if a tool orders tied items as strings, and these integers are in another order as numbers."""
    if tool and len(items) and len(str(items.min())) < len(str(items.max())):
        found = (
            f"some scores are equal, and {tool} orders their items as strings; these are integers, ordered as numbers"
        )
        yield f"{found}: pass strings (in files: JSON lines, Parquet or TREC)"


def evidence_of_unreachable(truth: FlatSide, excluded: Array, min_gain: MinGain | None) -> Evidence:
    """Return evidence of relevant rows of the truth whose items no list can have; `excluded` marks rows."""
    relevant = _are_relevant(truth.gains, min_gain)
    return Evidence("unreachable", int((excluded & relevant).sum()), int(relevant.sum()))


def evidence_of_other_sides(given: Mapping[str, Any], sides: Mapping[str, RawSide]) -> Iterator[Evidence]:
    """Yield evidence that no user of a side besides lists and truth has a list, one for each batch with such rows.

    `given` has the sides as passed, dicts or frames, which name their users.
    """
    listed = np.diff(sides["recs"].indptr) > 0
    for name, side in sides.items():
        value = given[name]
        rows = value.values() if isinstance(value, Mapping) else (value,)
        is_other = name in SIDES and not SIDES[name].has_users
        if is_other and any(not hasattr(row, "__len__") or len(row) for row in rows):
            yield Evidence(NO_LIST, int(not (listed & (np.diff(side.indptr) > 0)).any()), 1, (), name)
