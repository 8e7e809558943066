"""Time metrics of items against what anyone would write in NumPy, and against the parts of a call."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench import cases, floor
from bench.cases import Log
from bench.measure import Spread, Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]

N_ITEMS = 100_000
N_CATEGORIES = 20
DIMENSIONS = 64
PAST = 20  # rows of a history
CUTOFFS = [5, 10, 20, 50, 100]
ACCURACY = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
EXPOSURE = ["item_coverage", "gini", "shannon_entropy", "personalization"]
POPULARITY = ["popularity(column=popularity)", "novelty(column=popularity)", "aplt"]
BLOCK = 4096  # users whose vectors NumPy sums at a time


class Shop(NamedTuple):
    """Lists with data of their items, and histories of the same users."""

    log: Log
    ids: Array  # int64, of the lists
    popularity: Array  # float64 (N_ITEMS,)
    vectors: Array  # float64 (N_ITEMS, DIMENSIONS)
    items: dict[str, Any]
    history: tuple[Array, Array]


def make_shop(n_users: int) -> Shop:
    """Return lists of 100, a table of items, and histories."""
    rng = np.random.default_rng(6)
    log = cases.make_log(n_users, 100, n_items=N_ITEMS)
    past = cases.make_log(n_users, PAST, n_items=N_ITEMS, seed=7)
    popularity = 1.0 + np.bincount(past.rec_items, minlength=N_ITEMS)
    vectors = rng.normal(size=(N_ITEMS, DIMENSIONS))
    items = {
        "item_id": np.arange(N_ITEMS),
        "propensity": (popularity / popularity.max()) ** 0.5,
        "popularity": popularity,
        "category": rng.integers(0, N_CATEGORIES, N_ITEMS),
        "features": vectors,
    }
    return Shop(log, log.rec_items.astype(np.int64), popularity, vectors, items, past.recs)


def compare_items(n_users: int, rounds: int) -> list[Promise]:
    """Time metrics of items, alone and together with 30 values of accuracy."""
    import fastrec

    shop = make_shop(n_users)
    recs = shop.ids, shop.log.rec_indptr
    call: dict[str, Any] = {"items": fastrec_items(shop), "n_users": n_users + 1}

    def evaluate(metrics: list[str], truth: Any = None, **more: Any) -> Any:
        return fastrec.evaluate(recs, truth, metrics, **(call | more))

    def values_of_exposure() -> Any:
        evaluator = fastrec.Evaluator(EXPOSURE, k=CUTOFFS, items=call["items"])
        evaluator.update(recs)
        return evaluator.result()

    diversity = [f"intra_list_diversity@{k}" for k in CUTOFFS]
    calibration = ["miscalibration@100"]
    of_k = [f"{metric}@{k}" for metric in (*EXPOSURE, *POPULARITY) for k in CUTOFFS]
    accuracy = [f"{metric}@{k}" for metric in ACCURACY for k in CUTOFFS]
    history = {"history": shop.history}
    parts: dict[str, Callable[[], Any]] = {
        "accuracy": lambda: evaluate(accuracy, shop.log.truth),
        "exposure": lambda: evaluate(EXPOSURE, k=CUTOFFS),
        "popularity": lambda: evaluate(POPULARITY, k=CUTOFFS),
        "diversity": lambda: evaluate(diversity),
        "calibration": lambda: evaluate(calibration, **history),
    }
    everything = [*accuracy, *of_k, *diversity, *calibration]
    turns = Turns(
        {
            **parts,
            "values": values_of_exposure,
            "weighted": lambda: evaluate([*accuracy, "ips@10"], shop.log.truth),
            "all": lambda: evaluate(everything, shop.log.truth, **history),
            "bincount": lambda: np.bincount(shop.ids, minlength=N_ITEMS),
            "gather": lambda: shop.popularity[shop.ids],
            "blocks": lambda: sum_vectors(shop),
            "loop": lambda: floor.index(Log(*shop.log.recs, *shop.history)),
            **({"bag": embedding_bag(shop)} if importlib.util.find_spec("torch") else {}),
        },
        rounds,
    )
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    sums = np.sum([turns.seconds[name] for name in parts], axis=0)
    together = Spread.of(np.array(turns.seconds["all"]) / sums, turns.others)
    what = f"{compact(n_users)} users x 100 items"
    bag = [("torch's embedding_bag", "bag", 1.2)] if "bag" in turns.seconds else []
    rivals = [(f"diversity of {DIMENSIONS} dimensions / {name}", "diversity", key, limit) for name, key, limit in bag]
    rivals.append((f"diversity of {DIMENSIONS} dimensions / sums of vectors in NumPy", "diversity", "blocks", 1 / 3))
    promised = [
        (f"exposure, 4 metrics at 5 cut-offs, {what} / np.bincount of int64 ids", "values", "bincount", 2.5),
        ("the same with standard errors / np.bincount", "exposure", "bincount", 4.0),
        ("popularity, novelty, aplt at 5 cut-offs / one gather of NumPy", "popularity", "gather", 2.0),
        *rivals,
        (f"miscalibration over {N_CATEGORIES} categories / loop over lists and histories", "calibration", "loop", 6.0),
    ]
    rows = [Promise(name, turns.ratio(own, other), limit, None, took[own]) for name, own, other, limit in promised]
    extra = turns.ratio("weighted", "accuracy")
    rows.append(Promise("30 values of accuracy and ips@10 / these values alone", extra, 4.0, 1.2, took["weighted"]))
    return [*rows, Promise("all of these and 30 values / the sum of the parts", together, 1.0, None, took["all"])]


def fastrec_items(shop: Shop) -> Any:
    """Return the table of items, read once: a call would read it each time."""
    from fastrec.inputs.items import read_items

    return read_items(shop.items)


def sum_vectors(shop: Shop) -> float:
    """Return the mean diversity from sums of normalised vectors, a block of users at a time."""
    unit = shop.vectors / np.sqrt((shop.vectors**2).sum(axis=1))[:, None]
    rows = shop.ids.reshape(-1, 100)
    total = 0.0
    for first in range(0, len(rows), BLOCK):
        sums = unit[rows[first : first + BLOCK]].sum(axis=1)
        total += float((1 - ((sums**2).sum(axis=1) - 100) / 9900).sum())
    return total / max(len(rows), 1)


def embedding_bag(shop: Shop) -> Callable[[], Any]:
    """Return a call of torch that sums the vectors of each list."""
    import torch

    weight = torch.from_numpy(shop.vectors.astype(np.float32))
    ids, starts = torch.from_numpy(shop.ids), torch.from_numpy(shop.log.rec_indptr[:-1].astype(np.int64))
    return lambda: torch.nn.functional.embedding_bag(ids, weight, starts, mode="sum")


def check(n_users: int = 500) -> None:
    """Raise AssertionError unless the diversity equals that of NumPy."""
    import fastrec

    shop = make_shop(n_users)
    found = fastrec.evaluate((shop.ids, shop.log.rec_indptr), None, "intra_list_diversity@100", items=shop.items)
    if not math.isclose(found["intra_list_diversity@100"], sum_vectors(shop), rel_tol=1e-9):
        raise AssertionError("the diversity differs from that of NumPy")
