"""A made-up shop to try fastrec on: items that its users took, and lists of two recommenders.

Few items draw most of the interest, few users make most of the clicks, and every user has a taste. One
recommender knows only popularity. The other knows the tastes, better for users with a longer history, and nothing
about a user without one. The truth is the items that users took after their histories ended, graded from 1 to 5.
Metrics of accuracy read the truth, those of the catalogue the history and the table of items.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import InputError
from fastrec.files.columns import ListColumns
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Resources
from fastrec.inputs.items import ItemTable
from fastrec.report.report import Report
from fastrec.runtime.extras import require
from fastrec.runtime.outputs import atomic_write

RECOMMENDERS = ("popularity", "neighbours")
ACCURACY = ("ndcg@10", "recall@20", "map@10", "mrr@10", "hit_rate@10")
CATALOGUE = {
    "item_coverage@10": "share of the items that are in a list",
    "gini@10": "0 if all items are shown equally often, near 1 if few are shown",
    "novelty@10": "-log2 of the share of users who have an item, mean over the list",
}
SIDES = ("truth", "history", "items")
SEGMENT_STARTS = {"new": 0, "casual": 5, "heavy": 20}  # length of history from which a user belongs there
N_ITEMS = 2000
CATEGORIES = (
    "books",
    "films",
    "music",
    "games",
    "garden",
    "kitchen",
    "shoes",
    "sports",
    "tea",
    "tools",
    "toys",
    "travel",
)
N_FACTORS = len(CATEGORIES)
LIST_LENGTH = 50
MAX_ITEMS_TAKEN = 200
HELD_OUT = 0.2
USERS_PER_CHUNK = 1000

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Shop:
    """The items, the same for all users. Code refers to items by position; `item_ids` holds their ids."""

    item_ids: Array  # int64 (n_items,)
    appeal: Array  # float32 (n_items,): logarithm of the popularity everyone agrees on
    factors: Array  # float32 (n_items, n_factors)


class _Shoppers(NamedTuple):
    """A chunk of users: their tastes, the items they took, and which of these before and after the cut."""

    tastes: Array  # float32 (n_users, n_factors)
    taken: Array  # int16 (n_users, MAX_ITEMS_TAKEN): positions of items
    before: Array  # bool, like taken
    after: Array  # bool, like taken


def write_demo(folder: str | os.PathLike[str], *, n_users: int = 20_000, seed: int = 0) -> dict[str, str]:
    """Write truth, history, items and the lists of each recommender as Parquet files; return {name: path}.

    The truth has the columns user_id, item_id, gain and segment, the history user_id and item_id, the items item_id and
    category, the lists user_id, item_id, rank and score. The same arguments give the same rows.
    """
    if n_users < 1:
        raise InputError(f"expected at least one user, found {n_users}")
    require("pyarrow", "cli", what="the demo")
    rng = np.random.default_rng(seed)
    shop = _make_shop(rng)
    chunks = [
        _make_users(rng, shop, min(USERS_PER_CHUNK, n_users - start)) for start in range(0, n_users, USERS_PER_CHUNK)
    ]
    popularity = np.zeros(N_ITEMS, dtype=np.int64)
    for users in chunks:
        popularity += np.bincount(users.taken[users.before], minlength=N_ITEMS)
    parts: dict[str, list[dict[str, Array]]] = {name: [] for name in (*SIDES, *RECOMMENDERS)}
    parts["items"].append({"item_id": shop.item_ids, "category": np.array(CATEGORIES)[shop.factors.argmax(axis=1)]})
    for number, users in enumerate(chunks):
        first = number * USERS_PER_CHUNK + 1
        affinity = users.tastes @ shop.factors.T
        parts["truth"].append(_truth(rng, shop, users, affinity, first))
        parts["history"].append(_history_rows(shop, users, first))
        parts["popularity"].append(_popular_lists(shop, users, popularity, first))
        parts["neighbours"].append(_neighbour_lists(rng, shop, users, affinity, first))
    os.makedirs(folder, exist_ok=True)
    paths = {name: os.path.join(folder, f"{name}.parquet") for name in parts}
    for name, columns in parts.items():
        _write(paths[name], columns)
    return paths


def evaluate_demo(paths: dict[str, str], *, n_threads: int | None = None) -> dict[str, Report]:
    """Return the report of each recommender, grouped by segment."""

    def make_evaluation(items: ItemTable | None) -> ListEvaluation:
        return ListEvaluation([*ACCURACY, *CATALOGUE], per_user=True, n_threads=n_threads, items=items)

    reports = {}
    for name in RECOMMENDERS:
        files = {"recs": paths[name], **{side: paths[side] for side in SIDES}}
        columns = ListColumns(by=("segment",))
        reports[name] = evaluate_lists(make_evaluation, files, columns, Resources(n_threads=n_threads)).report
    return reports


def _make_shop(rng: np.random.Generator) -> _Shop:
    appeal = -1.1 * np.log(np.arange(N_ITEMS) + 10.0)
    return _Shop(
        item_ids=100_000 + rng.choice(900_000, size=N_ITEMS, replace=False),
        appeal=appeal.astype(np.float32),
        factors=rng.standard_normal((N_ITEMS, N_FACTORS), dtype=np.float32),
    )


def _make_users(rng: np.random.Generator, shop: _Shop, n_users: int) -> _Shoppers:
    """Make users who take items with a probability that grows with the appeal of an item and with their taste."""
    tastes = rng.standard_normal((n_users, N_FACTORS), dtype=np.float32) * np.float32(1.3 / N_FACTORS**0.5)
    utility = shop.appeal + tastes @ shop.factors.T
    # The largest values of utility + Gumbel noise are a sample without replacement, with probabilities ~ exp(utility).
    noise = np.maximum(rng.standard_exponential(utility.shape, dtype=np.float32), np.float32(1e-30))
    utility -= np.log(noise)
    taken = _largest(utility, MAX_ITEMS_TAKEN).astype(np.int16)
    n_taken = np.clip(rng.lognormal(np.log(14), 1.0, n_users), 1, MAX_ITEMS_TAKEN).astype(np.int64)
    is_taken = np.arange(MAX_ITEMS_TAKEN) < n_taken[:, None]
    after = is_taken & (rng.random(is_taken.shape) < HELD_OUT)
    return _Shoppers(tastes, taken, is_taken & ~after, after)


def _history_rows(shop: _Shop, users: _Shoppers, first_user: int) -> dict[str, Array]:
    rows, places = np.nonzero(users.before)
    return {"user_id": first_user + rows, "item_id": shop.item_ids[users.taken[rows, places]]}


def _history(users: _Shoppers) -> Array:
    """Return which items users took before the cut: bool (n_users, n_items)."""
    history = np.zeros((len(users.taken), N_ITEMS), dtype=bool)
    rows, places = np.nonzero(users.before)
    history[rows, users.taken[rows, places]] = True
    return history


def _largest(scores: Array, n: int) -> Array:
    """Return the positions of the n largest values of each row, in descending order."""
    n = min(n, scores.shape[1])
    top = np.argpartition(scores, -n, axis=1)[:, -n:]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
    return np.take_along_axis(top, order, axis=1)


def _truth(
    rng: np.random.Generator, shop: _Shop, users: _Shoppers, affinity: Array, first_user: int
) -> dict[str, Array]:
    rows, places = np.nonzero(users.after)
    items = users.taken[rows, places]
    liking = affinity[rows, items] + rng.normal(0, 0.8, len(rows))
    starts = np.array(list(SEGMENT_STARTS.values()))
    segments = np.array(list(SEGMENT_STARTS))[np.searchsorted(starts, users.before.sum(axis=1), side="right") - 1]
    return {
        "user_id": first_user + rows,
        "item_id": shop.item_ids[items],
        "gain": np.clip(np.rint(2.2 + 0.9 * liking), 1, 5).astype(np.int8),
        "segment": segments[rows],
    }


def _popular_lists(shop: _Shop, users: _Shoppers, popularity: Array, first_user: int) -> dict[str, Array]:
    """Return lists by popularity, without the items that a user already has."""
    order = np.argsort(-popularity, kind="stable")[: LIST_LENGTH + MAX_ITEMS_TAKEN]
    is_new = ~_history(users)[:, order]
    rows, places = np.nonzero(is_new & (np.cumsum(is_new, axis=1) <= LIST_LENGTH))
    items = order[places]
    return _list_columns(shop, rows, items, popularity[items], first_user)


def _neighbour_lists(
    rng: np.random.Generator, shop: _Shop, users: _Shoppers, affinity: Array, first_user: int
) -> dict[str, Array]:
    """Return lists by taste and popularity, with an error that shrinks as the history grows; none without a history."""
    n_history = users.before.sum(axis=1)
    error = (4.0 / np.sqrt(1 + n_history)).astype(np.float32)
    scores = shop.appeal + affinity + error[:, None] * rng.standard_normal(affinity.shape, dtype=np.float32)
    scores[_history(users)] = -np.inf
    rows = np.repeat(np.flatnonzero(n_history > 0), LIST_LENGTH)
    items = _largest(scores, LIST_LENGTH)[n_history > 0].ravel()
    return _list_columns(shop, rows, items, scores[rows, items], first_user)


def _list_columns(shop: _Shop, rows: Array, items: Array, scores: Array, first_user: int) -> dict[str, Array]:
    """Return the columns of lists; rows must be grouped by user and in rank order."""
    starts = np.searchsorted(rows, rows, side="left")
    return {
        "user_id": first_user + rows,
        "item_id": shop.item_ids[items],
        "rank": (np.arange(len(rows)) - starts + 1).astype(np.int32),
        "score": scores.astype(np.float32),
    }


def _write(path: str, parts: list[dict[str, Array]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with atomic_write(path) as stream:
        pq.write_table(pa.table(columns), stream)
