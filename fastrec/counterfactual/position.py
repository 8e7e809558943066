"""Clicks by rank, and curves of position bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec.checks import check_choice, check_level
from fastrec.counterfactual.counts import RankTables, check_keys, count_keys, count_pairs, count_rows
from fastrec.counterfactual.curves import METHODS
from fastrec.counterfactual.impressions import Impressions, read_impressions
from fastrec.counterfactual.result import CtrByRank, PositionBias, check_count
from fastrec.exceptions import Argument, InputError, InputTypeError, renaming, shown
from fastrec.inputs.column_names import Columns
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.users import encode_keys
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.clusters import MOMENTS, count_users

Array = np.ndarray[Any, Any]
N_ROUNDS = 50  # of PyClick
N_SAMPLES = {"em": 200}  # fewer where each takes many passes
OF_CLICKS = {"labels": "clicks"}


def ctr_by_rank(
    labels: Any,
    ranks: Any = None,
    *,
    user_ids: Any = None,
    row_groups: Any = None,
    level: float = 0.95,
    label: str | None = None,
    rank: str | None = None,
    user: Any = None,
    row_by: Any = None,
    n_threads: int | None = None,
) -> CtrByRank:
    """Count impressions and clicks by rank, with the click-through rate and its interval.

    ratio = clicks / impressions at a rank. A falling curve alone is not position bias: a good recommender has better
    items at the first ranks. `position_bias` separates the two.

    Without users the interval is the score interval (Wilson 1927), which takes rows as independent. The clicks of one
    user are not, so with users it is that of as many rows as tell as much: ratio (1 - ratio) / error^2, at most all
    rows, and N^2 / sum of n_u^2 where the ratio is 0 or 1, times (z / t)^2 for Student's t of U - 1 degrees (Korn &
    Graubard 1998). It is never narrower than without users. The error is that of a ratio of sums over users:
    error^2 = U / (U - 1) * sum over users of (c_u - ratio n_u)^2 / N^2, with the clicks c_u and impressions n_u of user
    u at this rank, N impressions and U users with one (delta method; Cochran 1977, 6.3).

    All counts are integers, so the order of rows and the number of threads do not change a bit.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a click, 0 for none. Or, alone, a data frame with a row per impression.
    ranks : integers (n,), from 1 to 1,000,000
        The rank at which each row was shown. Ranks may repeat and skip: every row counts at its own rank.
    user_ids : array (n,) of integers or strings, or a tuple of several, optional
        The user of each row.
    row_groups : labels (n,) of rows, integers or strings, or a dict {grouping: labels}, optional
        Such as the device; the counts are given for each label, too. Rows with None are in no group.
    level : level of the intervals
    label, rank : names of the columns of a data frame; default: ``label`` and ``rank``
    user : name of the column of users, or several; default: ``user_id``, if present
    row_by : name of the column of a data frame with groups of rows, or several
    n_threads : threads to use; default: all that the machine grants

    Returns
    -------
    CtrByRank
        ``impressions``, ``clicks``, ``ratio``, ``low``, ``high``, ``groups``; ``merge`` adds the counts of another.
        A rank without rows has the ratio NaN.

    Raises
    ------
    InputError, InputTypeError
        If labels are not 0 or 1, ranks are not integers from 1, or lengths differ.

    Examples
    --------
    >>> found = fastrec.ctr_by_rank(
    ...     [1, 0, 1, 0, 0, 0], [1, 2, 1, 2, 1, 2], user_ids=[7, 7, 8, 8, 9, 9]
    ... )
    >>> found.clicks.tolist(), found.impressions.tolist()
    ([2, 0], [3, 3])
    >>> found.ratio.round(4).tolist(), found.std_error.round(4).tolist()
    ([0.6667, 0.0], [0.3333, 0.0])
    """
    level, threads = check_level(level), resolve_threads(n_threads)
    columns = Columns(user=user, rank=rank, label=label, row_by=row_by)
    rows = read_impressions(labels, ranks, {"user_ids": user_ids}, row_groups, columns, {})
    return CtrByRank(*tables_by_rank(rows, threads), level, by_user=bool(rows.keys))


def tables_by_rank(rows: Impressions, n_threads: int) -> RankTables:
    """Return the counts by rank of all rows, and of each label of each grouping."""
    n = len(rows.ranks)
    table = count_rows(rows, n_threads)
    n_ranks = len(table)
    users = None
    at = rows.ranks.astype(np.int64) - 1 if rows.groups or rows.keys else rows.ranks
    if rows.keys:
        users = group_rows(encode_keys(rows.keys["user_ids"], n).codes, n_threads)
        table = count_users(users.take(at), users.take(rows.clicks), users.indptr, n_ranks, n_threads)
    tables: dict[str, dict[Any, Array]] = {}
    for grouping in rows.groups:
        n_groups = len(grouping.labels)
        check_keys(n_groups, n_ranks)
        keys = (grouping.codes.astype(np.int64) + 1) * n_ranks + at  # rows in no group come first
        size = (n_groups + 1) * n_ranks
        if users is None:
            found = count_keys(keys, rows.clicks, size)
        else:
            found = count_users(users.take(keys), users.take(rows.clicks), users.indptr, size, n_threads)
        by_group = found.reshape(n_groups + 1, n_ranks, MOMENTS)[1:]
        tables[grouping.name] = dict(zip(grouping.labels, by_group, strict=True))
    return table, tables


def position_bias(
    clicks: Any,
    ranks: Any = None,
    query: Any = None,
    item: Any = None,
    *,
    method: str = "pivot",
    n_rounds: int | None = None,
    level: float = 0.95,
    n_samples: int | None = None,
    seed: int = 0,
    label: str | None = None,
    rank: str | None = None,
    n_threads: int | None = None,
) -> PositionBias:
    """Estimate how much a rank is examined, relative to rank 1, from clicks on items shown at several ranks.

    The position-based model says that an item is clicked if its rank is examined and the item attracts: the chance of
    a click is examination(rank) * attraction(query, item).

    - ``"ctr"``: click-through rate of a rank / that of rank 1. It is right only where the order was random.
    - ``"pivot"``: p_k / p_1 = sum of the click-through rates at rank k / sum of those at rank 1, over the (query, item)
      shown at both ranks (Agarwal et al. 2019).
    - ``"adjacent"``: the product of such ratios of neighbouring ranks, from rank 1 to k.
    - ``"em"``: expectation maximisation of the model, with a parameter for each (query, item) and each rank. As in
      PyClick, all begin with 1/2, and each has one click in two impressions added (Chuklin et al. 2015).

    A rank that no item connects to the rank it is compared with is NaN, and so are ranks behind it in ``"adjacent"``:
    nothing bridges the gap. So is a rank compared with one without a click. ``"em"`` has a value for each rank with
    rows, which for an unconnected one rests on the added click.

    The state is integers, impressions and clicks by query, item and rank. Rows in another order, batches that are
    merged, and threads give the same bits.

    Parameters
    ----------
    clicks : array (n,), bool, integers or floats
        1 for a click, 0 for none. Or a data frame with a row per impression.
    ranks : integers (n,), from 1 to 1,000,000
        The rank at which each row was shown. The same rank may repeat within a (query, item).
    query : array (n,) of integers or strings
        The query, or the context that lists are made for, such as the user or the category. With a data frame, the
        name of its column; default: ``query_id``.
    item : array (n,) of integers or strings
        The item. With a data frame, the name of its column; default: ``item_id``.
    method : "ctr", "pivot", "adjacent" or "em"
    n_rounds : rounds of ``"em"``; default: 50
    level : level of the intervals
    n_samples : draws of the bootstrap of queries; default: 1,000, and 200 for ``"em"``, where each takes all rounds
        Intervals are computed when they are first shown; 0 gives none.
    seed : seed of the draws
    label, rank : names of the columns of a data frame; default: ``label`` and ``rank``
    n_threads : threads to use; default: all that the machine grants

    Returns
    -------
    PositionBias
        ``curve``: ``curve[r - 1]`` is that of rank r. ``interval()``, ``low``, ``high``, ``pairs``, ``plot()``;
        ``merge`` adds the counts of another.

    Raises
    ------
    InputError, InputTypeError
        If clicks are not 0 or 1, ranks are not integers from 1, lengths differ, or an option is wrong.

    Examples
    --------
    Item "a" was shown 4 times at rank 1 and 4 times at rank 2, and clicked twice and once.

    >>> clicks, ranks = [1, 1, 0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 2, 2, 2, 2]
    >>> fastrec.position_bias(clicks, ranks, [7] * 8, ["a"] * 8).curve.tolist()
    [1.0, 0.5]
    """
    settings, threads = bias_settings(method, n_rounds, level, n_samples, seed), resolve_threads(n_threads)
    names = {"query": "query_id", "item": "item_id"}
    given: Mapping[str, Any] = {"query": query, "item": item}
    keys = {name: None if isinstance(value, str) else value for name, value in given.items()}
    columns = Columns(rank=rank, label=label)
    others = names | {name: value for name, value in given.items() if isinstance(value, str)}
    with renaming(lambda name: OF_CLICKS.get(str(name), name)):
        rows = read_impressions(clicks, ranks, keys, None, columns, others)
        for name in names:
            if name not in rows.keys:
                raise InputTypeError(
                    f"{name} must be a list or an array of ids, one per row, found {shown(given[name])}"
                )
        counts = count_pairs(rows, threads)
    return PositionBias(counts, settings, threads)


def bias_settings(method: str, n_rounds: Any, level: Any, n_samples: Any, seed: Any) -> dict[str, Any]:
    """Return the checked settings of `position_bias`."""
    check_choice("method", method, METHODS)
    if n_rounds is not None and method != "em":
        raise InputError(Argument("n_rounds"), f" is an option of method 'em', found method {shown(method)}")
    rounds = N_ROUNDS if n_rounds is None else check_count("n_rounds", n_rounds, 1)
    samples = N_SAMPLES.get(method, 1_000) if n_samples is None else check_count("n_samples", n_samples, 0)
    return {
        "method": method,
        "n_rounds": rounds if method == "em" else None,
        "level": check_level(level),
        "n_samples": samples,
        "seed": check_count("seed", seed, 0),
    }
