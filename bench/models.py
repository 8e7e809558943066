"""Time models over their whole catalogue against the product of their factors alone, in the same blocks of users."""

from __future__ import annotations

import importlib.util
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.measure import Spread, Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]

DIMENSIONS = 64
CUTOFFS = [1, 5, 10, 20, 100]
METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
SEEN, RELEVANT = 50, 10  # items of each user
MILLION = 1_000_000


class Shop(NamedTuple):
    """Factors, relevant and seen items of the same users."""

    users: Array  # float32 (n_users, DIMENSIONS)
    items: Array  # float32 (n_items, DIMENSIONS)
    truth: tuple[Array, Array]
    seen: tuple[Array, Array]

    def size(self) -> str:
        """Return the size as written in a table."""
        return f"{compact(len(self.items))} items x {DIMENSIONS}"


def make_shop(n_users: int, n_items: int) -> Shop:
    """Draw normal factors, and items of users."""
    rng = np.random.default_rng(11)
    users, items = (rng.normal(size=(n, DIMENSIONS)).astype(np.float32) for n in (n_users, n_items))
    truth = np.concatenate([rng.choice(n_items, RELEVANT, replace=False) for _ in range(n_users)])
    indptr = np.arange(n_users + 1)
    return Shop(users, items, (truth, indptr * RELEVANT), (rng.integers(0, n_items, n_users * SEEN), indptr * SEEN))


def product(shop: Shop) -> Callable[[], Any]:
    """Return a call that multiplies the blocks of users that fastrec multiplies, with all threads of BLAS."""
    from fastrec.evaluation.model_room import users_of_block
    from fastrec.inputs.models import read_model

    n = users_of_block(read_model((shop.users, shop.items)))
    scores = np.empty((n, len(shop.items)), np.float32)

    def multiply() -> None:
        for first in range(0, len(shop.users), n):
            part = shop.users[first : first + n]
            np.matmul(part, shop.items.T, out=scores[: len(part)])

    return multiply


def evaluate(shop: Shop, metrics: list[str], k: list[int] | None = None) -> Any:
    """Evaluate the factors without the seen items."""
    import fastrec

    return fastrec.evaluate_model((shop.users, shop.items), shop.truth, metrics, k=k, exclude=shop.seen)


def topk_of_implicit(shop: Shop) -> Callable[[], Any]:
    """Return a call of implicit's product and selection of the first items, without seen items."""
    from implicit.cpu.topk import topk

    return lambda: topk(shop.items, shop.users, max(CUTOFFS))


def compare_models(n_users: int, n_items: int, rounds: int) -> list[Promise]:
    """Time 30 values at three sizes of the catalogue, and metrics without a cut-off."""
    sizes = ((4 * n_users, n_items // 10, 2.0), (n_users, n_items, 1.4), (n_users // 8, 10 * n_items, 1.5))
    rows, seconds = [], []
    for users, items, limit in sizes:
        shop = make_shop(users, items)
        calls = {"product": product(shop), "values": lambda shop=shop: evaluate(shop, METRICS, CUTOFFS)}
        middle = items == n_items
        if middle:
            calls["uncut"] = lambda shop=shop: evaluate(shop, ["mrr", "ndcg"])
            if importlib.util.find_spec("implicit") is not None:
                calls["implicit"] = topk_of_implicit(shop)
        turns = Turns(calls, rounds)
        rows.append(_against(turns, "values", f"{shop.size()}, 30 values", limit))
        if middle:
            rows.append(_against(turns, "uncut", f"{shop.size()}, mrr and ndcg without a cut-off", 2.0))
            if "implicit" in calls:
                rows.append(
                    Promise(f"{shop.size()}, 30 values / topk of implicit", turns.ratio("values", "implicit"), 0.6)
                )
        seconds.append((turns, users, items))
    turns, users, items = seconds[1]
    rate = users / turns.median("values")
    hours = MILLION * 100_000 / (rate * items) / 3600
    rows[1] = rows[1]._replace(note=f"{rate:,.0f} users/s; 1M users x 100k items: {hours:.2g} h; {rows[1].note}")
    per_score = [turns.median("values") / users / items for turns, users, items in seconds]
    grown = Spread.of(np.array([per_score[2] / per_score[0]]), seconds[2][0].others)
    name = f"{compact(sizes[0][1])} -> {compact(sizes[2][1])} items x {DIMENSIONS}: time per user and item"
    return [*rows, Promise(name, grown, None, None, f"{per_score[0] * 1e9:.2g} -> {per_score[2] * 1e9:.2g} ns")]


def _against(turns: Turns, name: str, what: str, limit: float) -> Promise:
    took = [f"{turns.median(own) * 1e3:.3g}" for own in (name, "product")]
    return Promise(
        f"{what} / np.matmul of the same blocks", turns.ratio(name, "product"), limit, None, " / ".join(took) + " ms"
    )


def memory_of_call(n_users: int, n_items: int) -> float:
    """Return the most bytes that a call allocates."""
    shop = make_shop(n_users, n_items)
    evaluate(shop, METRICS, CUTOFFS)
    tracemalloc.start()
    try:
        evaluate(shop, METRICS, CUTOFFS)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def check(n_users: int = 200, n_items: int = 1_000) -> None:
    """Raise AssertionError unless a report equals that of lists of all items."""
    import fastrec

    shop = make_shop(n_users, n_items)
    items, indptr, scores = fastrec.top_items((shop.users, shop.items), n_items)
    found = evaluate(shop, METRICS, CUTOFFS)
    wanted = fastrec.evaluate((items, indptr, scores), shop.truth, METRICS, k=CUTOFFS, exclude=shop.seen)
    if any(found[name] != wanted[name] for name in wanted):
        raise AssertionError("the report of a model differs from that of its lists")
