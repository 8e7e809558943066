"""Ready-made segments: users by activity, items by popularity, and the truth of each segment of items."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.checks import is_whole, with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, MetricError, Text, shown
from fastrec.inputs.ids import check_ids, kind_of_ids
from fastrec.inputs.lists import Names, Prepared
from fastrec.inputs.users import alike, as_labels, is_hashable
from fastrec.metrics.judged import OF_JUDGED_ITEMS, PROVIDER
from fastrec.metrics.plan import Plan

__all__ = ["check_segments", "reads_judgements", "segment_items", "segment_users", "split_truth"]

Array = np.ndarray[Any, Any]
NO_HISTORY = "none"
ROUNDING = 1e-12  # tolerance of a share of interactions


def segment_users(
    history: Any,
    user_ids: Any,
    *,
    names: Sequence[str] = ("light", "medium", "heavy"),
    shares: Sequence[float] = (1 / 3, 2 / 3),
) -> Array:
    """Return a label per user by the length of the user's history, for ``groups=``.

    Users with a history are sorted by its length: the first third is light, the next medium, the last heavy. Users with
    equally many rows are in the same segment, the lower one.

    Parameters
    ----------
    history : array (n_rows,), the user of each past interaction; integers or strings
    user_ids : array (n_users,), the users to label, as in `evaluate`
    names : names of the segments, from few rows to many
    shares : boundaries between the segments, as ascending shares of the users with a history; one fewer than names

    Returns
    -------
    array of strings (n_users,)
        ``"none"`` for users without a history.

    Raises
    ------
    InputError, InputTypeError
        If ids are of two types, or names and shares do not match.

    Examples
    --------
    >>> fastrec.segment_users([7, 7, 7, 8, 9, 9], [7, 8, 9, 10]).tolist()
    ['heavy', 'light', 'medium', 'none']
    """
    cuts = _check_shares(names, shares)
    if NO_HISTORY in names:
        raise InputError(f"names must not hold {NO_HISTORY!r}, the label of users without a history")
    past, users = alike([_ids(history, "history"), _ids(user_ids, "user_ids")])
    if len(past) and len(users) and _kind(past) != _kind(users):
        raise InputTypeError(f"history and user_ids must be of one type, found {_kind(past)} and {_kind(users)}")
    known, counts = np.unique(past, return_counts=True)
    if len(known) == 0:
        return np.full(len(users), NO_HISTORY)
    limits = np.quantile(counts, cuts, method="inverted_cdf")
    at = np.minimum(np.searchsorted(known, users), len(known) - 1)
    labels = np.array([*names, NO_HISTORY])
    found = np.where(known[at] == users, np.searchsorted(limits, counts[at], side="left"), len(names))
    return labels[found]


def segment_items(
    history: Any, *, names: Sequence[str] = ("head", "mid", "tail"), shares: Sequence[float] = (0.5, 0.8)
) -> dict[Any, str]:
    """Return {item: label} by popularity, most popular first, for `fastrec.evaluate_by_items`.

    Items are sorted by number of interactions, most first. The head is the items with the first half of all
    interactions, the mid those with the next 30 %, the tail the rest. Items with equally many interactions are in the
    same segment, the more popular one.

    Parameters
    ----------
    history : array (n_rows,), the item of each past interaction; integers or strings
    names : names of the segments, from popular to rare
    shares : boundaries between the segments, as ascending shares of the interactions; one fewer than names

    Returns
    -------
    {item: label}
        Most interactions first.

    Raises
    ------
    InputError, InputTypeError
        If ids are neither integers nor strings, or names and shares do not match.

    Examples
    --------
    >>> fastrec.segment_items(["a"] * 6 + ["b"] * 3 + ["c"])
    {'a': 'head', 'b': 'mid', 'c': 'tail'}
    """
    cuts = _check_shares(names, shares)
    items, counts = np.unique(_ids(history, "history"), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    segments = segments_of_counts(counts, cuts)[order]
    return dict(zip(items[order].tolist(), np.array(names)[segments].tolist(), strict=True))


def segments_of_counts(counts: Array, cuts: Array) -> Array:
    """Return the segment of each item by its interactions: how many of the cuts the more popular items have reached."""
    levels, level = np.unique(-counts, return_inverse=True)  # most first
    rows = np.bincount(level, weights=counts, minlength=len(levels))
    before = np.cumsum(rows) - rows  # interactions with more popular items
    segments: Array = np.searchsorted(cuts, before / max(counts.sum(), 1) + ROUNDING, side="right")[level]
    return segments


def check_segments(segments: Any) -> None:
    """Check {item: label}: dicts take 1.0 and True for 1, as an item and as a label."""
    if not (isinstance(segments, Mapping) and len(segments)):
        is_frame = hasattr(segments, "columns")
        found = "a data frame: pass dict(zip(items.item_id, items.genre))" if is_frame else shown(segments)
        found = "a Series: pass segments.to_dict()" if type(segments).__name__ == "Series" else found
        raise InputTypeError(f"segments must be a dict {{item: label}} with items, found {found}")
    check_ids(list(segments), "items of segments")
    if not all(map(is_hashable, segments.values())):
        raise InputTypeError("the labels of segments must be strings or integers")
    first: dict[Any, Any] = {}
    for label in segments.values():
        known = first.setdefault(label, label)
        if _kind_of_label(known) is not _kind_of_label(label):
            found = f"{shown(known)} and {shown(label)}"
            raise InputTypeError(f"the labels of segments must be all integers or all strings, found {found}")


def _kind_of_label(label: Any) -> type:
    """Return the type of a label in Python, also of one of NumPy."""
    if is_whole(type(label)):
        return int
    return str if isinstance(label, str) else bool if isinstance(label, np.bool_) else type(label)


def reads_judgements(plan: Plan, no_truth: str) -> bool:
    """Return whether numbers of a segment depend on the rows of the truth with items of other segments.

    They do under no_truth='judged' and for metrics of judged items, and may do if any other provider or an accumulator
    reads the truth. Raise if they do under min_gain='any', which makes each row of the truth relevant.
    """
    of_policy = "judged" in {no_truth, *(condition.no_truth for condition in plan.conditions.values())}
    if not plan.counts_any_gain:
        return of_policy or bool(plan.accumulators) or any("truth" in sides for sides in plan.filled.values())
    asked = [text for key, text in plan.key_askers.items() if key[1] == PROVIDER and OF_JUDGED_ITEMS.intersection(key)]
    any_gain = Argument("min_gain", ("any",))
    why = Text(" is unknown by segment under ", any_gain, ": items of other segments would be judged and not relevant")
    mend = Text(", but each row of the truth is relevant: pass a number as ", Argument("min_gain"))
    if asked:
        raise MetricError(asked[0], why, mend)
    if of_policy:
        raise InputError(Argument("no_truth", ("judged",)), why, mend)
    return False


def split_truth(prepared: Prepared, segments: Mapping[Any, str], *, judged: bool) -> Iterator[Prepared]:
    """Yield the lists with the truth of each segment of items, in the order in which labels first occur.

    `judged`: whether items of other segments stay in the truth, as judged and not relevant.
    """
    codes = _segment_of(prepared.lists.truth_items, prepared.names, segments)
    select = _judged_by_segment if judged else _only
    yield from (select(prepared, codes == code) for code in range(len(set(segments.values()))))


def _ids(values: Any, name: str) -> Array:
    """Return ids as a 1-D array of integers or strings."""
    if isinstance(values, str | Mapping):
        kind = with_article(type(values).__name__)
        raise InputTypeError(f"{name} must be an array of ids, one per row, found {kind}")
    ids = check_ids(values, name)
    return as_labels(ids.tolist()) if ids.dtype == object else ids


def _kind(ids: Array) -> str:
    if ids.dtype.kind in "iu":
        return "integers"
    return "bytes" if isinstance(ids[0], bytes) else "strings"


def _check_shares(names: Sequence[str], shares: Sequence[float]) -> Array:
    kinds: tuple[tuple[Any, Any], ...] = ((names, str), (shares, int | float))
    if any(
        isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, kind) for one in given)
        for given, kind in kinds
    ):
        raise InputTypeError(f"names must be strings and shares numbers, found {shown(names)} and {shown(shares)}")
    if len(shares) != len(names) - 1 or len(set(names)) != len(names):
        raise InputError(
            f"names must differ, and there must be one more than shares; found {shown(list(names))} and "
            f"{shown(list(shares))}"
        )
    if not all(low < high for low, high in itertools.pairwise([0, *shares, 1])):
        raise InputError(f"shares must rise between 0 and 1, found {shown(list(shares))}")
    return np.array(shares, np.float64)


def _segment_of(items: Array, names: Names, segments: Mapping[Any, str]) -> Array:
    """Return for each item of the truth the position of its label; -1 for items in no segment."""
    place = {label: at for at, label in enumerate(dict.fromkeys(segments.values()))}
    wanted = "integers" if names.strings is None else "strings"
    if len(items) and kind_of_ids(check_ids(list(segments), "items of segments")) != wanted:
        raise InputTypeError(f"items of segments must be {wanted}, like those of the truth")
    distinct, own = np.unique(items, return_inverse=True)
    spelled = distinct.tolist() if names.strings is None else [names.strings[code] for code in distinct.tolist()]
    known = np.array([place[segments[item]] if item in segments else -1 for item in spelled], np.int64)
    found: Array = known[own] if len(known) else np.zeros(0, np.int64)
    return found


def _only(prepared: Prepared, wanted: Array) -> Prepared:
    """Return the lists with a part of the truth."""
    lists = prepared.lists
    before = np.concatenate([[0], np.cumsum(wanted)])
    selected = lists._replace(
        truth_items=lists.truth_items[wanted],
        truth_indptr=before[lists.truth_indptr],
        gains=None if lists.gains is None else lists.gains[wanted],
    )
    return _with_counts(prepared._replace(lists=selected), wanted)


def _judged_by_segment(prepared: Prepared, wanted: Array) -> Prepared:
    """Return the lists with the whole truth, in which items outside a part are not relevant."""
    lists = prepared.lists
    gains = np.ones(len(wanted)) if lists.gains is None else lists.gains
    lists = lists._replace(gains=np.where(wanted, gains, np.minimum(gains, 0.0)))
    return _with_counts(prepared._replace(lists=lists), wanted)


def _with_counts(prepared: Prepared, wanted: Array) -> Prepared:
    """Return the lists with the numbers of rows of the truth that a segment has."""
    own = int(np.count_nonzero(wanted))
    with_gains = own if prepared.counts["truth_rows_with_gains"] else 0
    counts = prepared.counts | {"truth_rows": own, "truth_rows_with_gains": with_gains}
    return prepared._replace(counts=counts)
