"""Time models over their whole catalogue against the product of their factors alone, in the same blocks of users."""

from __future__ import annotations

import importlib.util
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bench.measure import Spread, Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]

DIMENSIONS = 64
CUTOFFS = [1, 5, 10, 20, 100]
METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
SEEN, RELEVANT = 50, 10  # items of each user
MILLION, MANY = 1_000_000, 100_000  # users and items of an estimate
LINEAR = 1.25  # largest growth of the time per user, or per user and item


class Shop(NamedTuple):
    """Factors, relevant and seen items of the same users."""

    users: Array  # float32 (n_users, DIMENSIONS)
    items: Array  # float32 (n_items, DIMENSIONS)
    truth: tuple[Array, Array]
    seen: tuple[Array, Array]

    def size(self) -> str:
        """Return the size as written in a table."""
        return f"{compact(len(self.items))} items x {DIMENSIONS}"

    def part(self, n_users: int) -> Shop:
        """Return the first users."""
        sides = ((items, indptr[: n_users + 1]) for items, indptr in (self.truth, self.seen))
        return Shop(self.users[:n_users], self.items, *((items[: ends[-1]], ends) for items, ends in sides))


def make_shop(n_users: int, n_items: int) -> Shop:
    """Draw normal factors, and items of users."""
    rng = np.random.default_rng(11)
    users, items = (rng.normal(size=(n, DIMENSIONS)).astype(np.float32) for n in (n_users, n_items))
    truth = rng.integers(0, n_items // RELEVANT, (n_users, RELEVANT)) * RELEVANT + np.arange(RELEVANT)  # distinct
    indptr = np.arange(n_users + 1)
    seen = rng.integers(0, n_items, n_users * SEEN)
    return Shop(users, items, (truth.reshape(-1), indptr * RELEVANT), (seen, indptr * SEEN))


def product(shop: Shop) -> Callable[[], Any]:
    """Return a call that multiplies the blocks of users that fastrec multiplies, with all threads of BLAS."""
    from fastrec.evaluation.model_room import users_of_block
    from fastrec.inputs.models import read_model

    n = users_of_block(read_model((shop.users, shop.items), {}))
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


class Times(NamedTuple):
    """Ratios, and the time that goes with them."""

    promises: list[Promise]
    rate: Spread  # thousand users per second
    hours: float  # for MILLION users and MANY items, at this rate


def compare_models(n_users: int, n_items: int, rounds: int) -> Times:
    """Time 30 values at three sizes of the catalogue and three numbers of users, and metrics without a cut-off."""
    sizes = ((4 * n_users, n_items // 10, 2.0), (n_users, n_items, 1.4), (n_users // 8, 10 * n_items, 1.5))
    parts = {name: n_users // share for name, share in (("quarter", 4), ("half", 2), ("values", 1))}
    rows, seconds = [], []
    for users, items, limit in sizes:
        shop = make_shop(users, items)
        calls = {"product": product(shop), "values": lambda shop=shop: evaluate(shop, METRICS, CUTOFFS)}
        middle = items == n_items
        if middle:
            calls["uncut"] = lambda shop=shop: evaluate(shop, ["mrr", "ndcg"])
            for name in ("quarter", "half"):
                part = shop.part(parts[name])
                calls[name] = lambda part=part: evaluate(part, METRICS, CUTOFFS)
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
    middle_turns = seconds[1][0]
    rate = Spread.of(n_users / 1e3 / np.array(middle_turns.seconds["values"]), middle_turns.others)
    per_user = {name: middle_turns.median(name) / number * 1e6 for name, number in parts.items()}
    growth = middle_turns.ratio("values", "quarter", parts["quarter"] / n_users)
    users_row = _growth([*parts.values()], f"users x {compact(n_items)} items: time per user", growth)
    per_score = [turns.median("values") / users / items * 1e9 for turns, users, items in seconds]
    grown = Spread.of(np.array([per_score[2] / per_score[0]]), seconds[2][0].others)
    items_row = _growth([items for _, items, _ in sizes], f"items x {DIMENSIONS}: time per user and item", grown)
    users_row = users_row._replace(note=_steps(per_user.values(), "us"))
    promises = [*rows, users_row, items_row._replace(note=_steps(per_score, "ns"))]
    return Times(promises, rate, MILLION * MANY / (rate.median * 1e3 * n_items) / 3600)


def _growth(sizes: list[int], what: str, grown: Spread) -> Promise:
    return Promise(f"{' -> '.join(map(compact, sizes))} {what}", grown, LINEAR)


def _steps(values: Iterable[float], unit: str) -> str:
    return f"{' -> '.join(f'{value:.3g}' for value in values)} {unit}"


def _against(turns: Turns, name: str, what: str, limit: float) -> Promise:
    took = [f"{turns.median(own) * 1e3:.3g}" for own in (name, "product")]
    return Promise(
        f"{what} / np.matmul of the same blocks", turns.ratio(name, "product"), limit, None, " / ".join(took) + " ms"
    )


def memory_of_call(n_users: int, n_items: int) -> float:
    """Return the most bytes that a call allocates."""
    shop = make_shop(n_users, n_items)
    evaluate(shop.part(min(n_users, 100)), METRICS, CUTOFFS)
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
