"""Logs in time, to see whether a recommender narrows what it shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.checks import check_n_items, listed, with_article
from fastrec.exceptions import Argument, FastrecError, InputError, InputTypeError, Name, shown
from fastrec.feedback.changes import find_step, find_trend
from fastrec.feedback.measure import Measured, Question, cautions
from fastrec.feedback.result import Drift
from fastrec.feedback.rows import DriftLog
from fastrec.inputs.items import read_items, read_once
from fastrec.inputs.lists import Prepared
from fastrec.inputs.users import is_hashable

Array = np.ndarray[Any, Any]


def drift(
    logs: Any,
    *,
    k: int,
    history: Any = None,
    items: Any = None,
    n_items: int | None = None,
    by: Any = None,
    provider: str | None = None,
    pairs: Any = None,
    sep: str | None = None,
) -> Drift:
    """Compare logs of recommended lists in time, to see whether the recommender narrows what it shows.

    A recommender that learns from clicks on its own lists may show ever fewer items, and ever the same to everybody: a
    degenerate feedback loop (Chaney, Stewart & Engelhardt 2018; Mansoury et al. 2020). Then coverage, entropy and
    personalization fall, and Gini index, popularity and miscalibration rise.

    - Levels of each log, with standard errors: ``item_coverage``, ``gini``, ``shannon_entropy``, ``personalization``;
      with a history ``popularity`` and ``aplt``, against this one history in all logs (or columns of ``items``, as in
      `evaluate`; a column ``segment`` without a label ``"tail"`` gives no ``aplt``); with the column ``category`` of
      ``items``, too, ``miscalibration``, with ``no_features=drop`` if an item has no category. Without ``n_items`` and
      ``items``, the coverage is the number of items.
    - Steps from log to log: the change of each level with its error, the exposure shift (the Jensen-Shannon
      divergence of the two distributions of exposure, base 2: Lin 1991), and how much of a user's list is kept
      (``overlap`` and ``rbo`` of the two lists). The shift is small and the overlap near 1 where a loop has locked in.
    - Trends: the slope of each level over the logs, which count as one unit of time apart: slope = sum of w (t - t_w)
      (y - y_w) / sum of w (t - t_w)^2, with w = 1 / error^2, t_w and y_w the weighted means, and error^2 = 1 / sum of
      w (t - t_w)^2. If a level has no error, or 0, w = 1, and the error follows from the residuals.

    Changes of means over users pair the users of both logs: change = mean of (y_u after - y_u before). Columns of the
    exposure of all lists change from level to level; the error counts that lists of one user are related.

    What a table cannot say: falling entropy may be the season, or a smaller catalogue. Only users with random or
    unpersonalised lists tell exposure from taste; pass their logs to a second call and compare the two. Coverage, Gini
    index and entropy depend on the number of lists: compare logs of as many users, such as random samples of equal
    size. The exposure shift is above 0 by chance alone, the more so the fewer lists there are per item. Trends take the
    errors of logs as independent.

    Parameters
    ----------
    logs : two or more sets of lists in time order, or a dict {name: lists}; each in any form of ``recs`` in `evaluate`
        Users are matched by id, or by position in forms without ids.
    k : cut-off: the first k items of each list are counted
    history : past interactions before the first log, in the forms of the truth
    items : table of items, as in `evaluate`
    n_items : size of the catalogue; default: the number of rows of ``items``
    by : column of ``items``, or several: up to 100 segments each
        Each label gets its share of exposure and, with a history, the amplification: share of exposure / share of the
        rows of the history that have a label. Items with several labels count for each in equal parts.
    provider : column of ``items``, such as the seller
        Gives the Herfindahl-Hirschman index (Hirschman 1945; Herfindahl 1950), the sum of squared shares of exposure,
        and the Gini index of the shares.
    pairs : pairs (user, user) of ids, or positions without ids
        The mean Jaccard overlap of their lists then stands in place of the personalization. Matched users are those of
        Chaney et al. Pairs of which one user has no list are left out; the error takes pairs as independent.
    sep : string between the labels of one item, such as ``"|"``, in ``category`` and in columns of strings in ``by``
        and ``provider``

    Returns
    -------
    Drift

    Raises
    ------
    InputError, InputTypeError, MetricError
        If there are fewer than two logs, or as `evaluate`, with the name of the log.

    Examples
    --------
    >>> first = {"u1": [1, 2], "u2": [1, 2], "u3": [1, 2], "u4": [1, 2]}
    >>> second = {"u1": [4, 5], "u2": [3, 4], "u3": [2, 3], "u4": [2]}
    >>> found = fastrec.drift({"first": first, "second": second}, k=2, n_items=6)
    >>> [round(log.levels["gini@2"].mean, 10) for log in found.logs]
    [0.6666666667, 0.4047619048]
    >>> step = found.steps[0]
    >>> (
    ...     round(step.exposure_shift, 10),
    ...     round(step.overlap.mean, 10),
    ...     round(step.rbo.mean, 10),
    ... )
    (0.6284905946, 0.2083333333, 0.225)
    """
    named = _named(logs)
    size = check_n_items(n_items)
    wanted = Question(k, by, provider, sep, n_items=size, has_history=history is not None)
    sides = {"history": read_once(history, "history"), "items": None if items is None else read_items(items)}
    return summarise(_measure(named, wanted, sides, None if pairs is None else _read_pairs(pairs)), wanted)


def _measure(
    logs: Mapping[str, Any], wanted: Question, given: Mapping[str, Any], pairs: list[tuple[Any, Any]] | None
) -> Iterator[Measured]:
    """Yield what is measured of each log; its lists are the reference of the next."""
    before = None
    for name, log in logs.items():
        with in_log(name):
            now = read_once(log, "recs")
            evaluator = wanted.evaluator(given["items"], has_reference=before is not None, history=given["history"])
            sides = evaluator._sides(now, None, {"exclude": None, "reference": before})  # noqa: SLF001
            prepared = evaluator._prepare(sides, {})  # noqa: SLF001 - pairs read it
            evaluator._add(prepared, None)  # noqa: SLF001
            evaluator._review(prepared)  # noqa: SLF001
            overlaps = None if pairs is None else _overlaps(prepared, pairs, wanted.k)
            found = wanted.measure(name, evaluator, evaluator._report(copied=False), overlaps)  # noqa: SLF001
        yield found
        before = now


def summarise(found: Iterable[Measured], wanted: Question) -> Drift:
    """Return the drift over measured logs, of which only two are in memory at once."""
    logs, steps, shares, warnings = [], [], [], []
    before = None
    for one in found:
        logs.append(DriftLog(one.name, one.users, one.levels))
        shares += one.shares
        warnings += [f"{one.name}: {line}" for line in one.warnings]
        if before is not None:
            steps.append(find_step(before, one, wanted.key))
        before = one
    warnings += cautions([log.users for log in logs], wanted)
    trends = {column: find_trend([log.levels[column] for log in logs]) for column in logs[0].levels}
    return Drift(tuple(logs), tuple(steps), trends, tuple(shares), wanted.settings(), tuple(warnings))


def check_logs(n: int) -> None:
    """Raise InputError for fewer than two logs."""
    if n < 2:
        raise InputError(f"drift needs two logs or more, in the order of time; found {n}")


INSTEAD = {  # of arguments that other calls have
    "ties": "ranks in place of scores",
    "duplicates": "drop it: no argument of drift",
    "unseen": "its row in items",
    "no_features": "rows of items without a category",
}


@contextlib.contextmanager
def in_log(name: str) -> Iterator[None]:
    """Name the log in the errors of the block, and what to do in place of arguments that drift lacks."""
    try:
        yield
    except FastrecError as error:
        other = error.renamed(_without_lacking)
        FastrecError.__init__(other, f"{name}: ", other.text)
        raise other from error.__cause__


def _without_lacking(name: Name) -> object:
    return INSTEAD.get(name.name, name) if isinstance(name, Argument) else name


def _named(logs: Any) -> dict[str, Any]:
    """Return the logs by name."""
    if isinstance(logs, Mapping):
        wrong = next((name for name in logs if not isinstance(name, str)), None)
        if wrong is not None:
            raise InputTypeError(f"names of logs must be strings, found {shown(wrong)}")
        found = dict(logs)
    elif isinstance(logs, list | tuple):
        found = {f"log {n}": log for n, log in enumerate(logs, 1)}
    else:
        wanted = "logs must be a list of logs in the order of time, or a dict {name: log}"
        wanted += ", as dict(list(frame.groupby('date'))) of pandas has them" if hasattr(logs, "groupby") else ""
        raise InputTypeError(f"{wanted}; found {with_article(type(logs).__name__)}")
    check_logs(len(found))
    return found


def _read_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    found = [tuple(pair) if isinstance(pair, Sequence | np.ndarray) else pair for pair in listed(pairs, "pairs")]
    usable = (isinstance(pair, tuple) and len(pair) == 2 and is_hashable(pair) for pair in found)
    wrong = next((pair for pair, is_pair in zip(found, usable, strict=True) if not is_pair), None)
    if wrong is not None or not found:
        raise InputTypeError(f"pairs must be pairs of users, as in [('ann', 'bob')], found {shown(wrong or pairs)}")
    return found


def _overlaps(prepared: Prepared, pairs: Sequence[tuple[Any, Any]], k: int) -> Array:
    """Return the Jaccard overlap of the lists of each pair, NaN if a user has none."""
    lists, ids = prepared.lists, prepared.users.ids
    items, indptr = lists.rec_items, lists.rec_indptr
    known = range(len(indptr) - 1) if ids is None else ids.tolist()
    place = {user: at for at, user in enumerate(known)}
    found = np.full(len(pairs), np.nan)
    for nth, pair in enumerate(pairs):
        if not all(user in place for user in pair):
            continue
        starts = [int(indptr[place[user]]) for user in pair]
        ends = [int(indptr[place[user] + 1]) for user in pair]
        one, other = (set(items[start : min(end, start + k)].tolist()) for start, end in zip(starts, ends, strict=True))
        if one and other:
            found[nth] = len(one & other) / len(one | other)
    return found
