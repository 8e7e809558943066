"""Time clicks by rank and position bias against a loop that reads the same arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from bench.measure import Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]
BLOCKS = 64  # of rows, distributed over the threads
RANKS = 10
QUERIES_PER_ROW = 1 / 500
ITEMS = 10  # of a query, each at every rank
ROUNDS_OF_PYCLICK = 2  # it takes the same time for each round; 50 of them would take hours


class Impressions(NamedTuple):
    """A log of impressions, in the order of time."""

    clicks: Array  # int8
    ranks: Array  # int32
    queries: Array  # int32
    items: Array  # int32


def make_impressions(n_rows: int) -> Impressions:
    """Return lists of ten items of random queries in random orders, with clicks that fall with the rank."""
    rng = np.random.default_rng(8)
    n_lists = max(1, n_rows // RANKS)
    n_queries = max(1, int(n_rows * QUERIES_PER_ROW))
    queries = np.repeat(rng.integers(0, n_queries, n_lists).astype(np.int32), RANKS)
    items = np.argsort(rng.random((n_lists, ITEMS), np.float32), axis=1).ravel().astype(np.int32)
    ranks = np.tile(np.arange(1, RANKS + 1, dtype=np.int32), n_lists)
    clicks = (rng.random(len(ranks)) < 0.5 / ranks * (1 + items % 3) / 3).astype(np.int8)
    return Impressions(clicks, ranks, queries, queries * np.int32(ITEMS) + items)


@njit(parallel=True, nogil=True, error_model="numpy")
def _read(clicks, ranks, queries, items, of_pairs):
    totals = np.zeros(BLOCKS, np.int64)
    for b in prange(BLOCKS):
        total = 0
        for i in range(b * len(ranks) // BLOCKS, (b + 1) * len(ranks) // BLOCKS):
            total += clicks[i] ^ ranks[i]
            if of_pairs:
                total += queries[i] ^ items[i]
        totals[b] = total
    return totals.sum()


def read(log: Impressions, *, of_pairs: bool) -> int:
    """Read clicks and ranks, and queries and items, too, on all threads."""
    return int(_read(*log, of_pairs))


def fit_in_python(log: Impressions, n_rounds: int) -> list[float]:
    """Fit the position-based model row by row, as PyClick does, whose classes take longer."""
    rows = list(zip(*(column.tolist() for column in log), strict=True))
    attraction: dict[tuple[int, int], float] = {}
    examination: dict[int, float] = {}
    for _ in range(n_rounds):
        pairs: dict[tuple[int, int], list[float]] = {}
        of_ranks: dict[int, list[float]] = {}
        for click, rank, query, item in rows:
            attractive, examined = attraction.get((query, item), 0.5), examination.get(rank, 0.5)
            own = pairs.setdefault((query, item), [1.0, 2.0])
            of_rank = of_ranks.setdefault(rank, [1.0, 2.0])
            own[0] += 1 if click else (1 - examined) * attractive / (1 - examined * attractive)
            of_rank[0] += 1 if click else (1 - attractive) * examined / (1 - examined * attractive)
            own[1] += 1
            of_rank[1] += 1
        attraction = {pair: clicks / shown for pair, (clicks, shown) in pairs.items()}
        examination = {rank: clicks / shown for rank, (clicks, shown) in of_ranks.items()}
    return [examination[rank] for rank in sorted(examination)]


def fit(log: Impressions, **options: Any) -> Any:
    """Fit the same by fastrec."""
    import fastrec

    return fastrec.position_bias(*log, method="em", n_samples=0, **options)


def compare_positions(n_rows: int, n_fitted: int, rounds: int) -> list[Promise]:
    """Time counting clicks by rank, and 50 rounds of expectation maximisation."""
    import fastrec

    log, fitted = make_impressions(n_rows), make_impressions(n_fitted)
    turns = Turns(
        {
            "loop": lambda: read(log, of_pairs=False),
            "counts": lambda: fastrec.ctr_by_rank(log.clicks, log.ranks),
            "bincount": lambda: np.bincount(log.ranks),
        },
        rounds,
    )
    of_em = Turns({"loop": lambda: read(fitted, of_pairs=True), "em": lambda: fit(fitted)}, max(1, rounds // 2))
    small = make_impressions(max(RANKS, n_fitted // 100))
    in_python = Turns(
        {"python": lambda: fit_in_python(small, ROUNDS_OF_PYCLICK), "em": lambda: fit(small)}, max(1, rounds // 2)
    )
    rows = compact(n_rows)
    took = f"{turns.median('counts') * 1e3:.3g} ms"
    of_rounds = f"{compact(n_fitted)} rows, 50 rounds"
    speed = in_python.ratio("em", "python", ROUNDS_OF_PYCLICK / 50)
    return [
        Promise(f"clicks by rank, {rows} rows / reading loop", turns.ratio("counts", "loop"), 2.0, None, took),
        Promise(f"clicks by rank, {rows} rows / np.bincount of the ranks", turns.ratio("counts", "bincount"), 1.0),
        Promise(
            f"position bias by em, {of_rounds} / reading loop",
            of_em.ratio("em", "loop"),
            50.0,
            None,
            f"{of_em.median('em') * 1e3:.3g} ms",
        ),
        Promise(f"position bias by em, {compact(len(small.ranks))} rows / row by row in Python", speed, 1 / 20),
    ]


def check(n_rows: int = 4_000) -> None:
    """Raise AssertionError unless the fit is that in Python."""
    log = make_impressions(n_rows)
    wanted, found = fit_in_python(log, 3), fit(log, n_rounds=3).examination
    if not np.allclose(found, wanted, rtol=1e-12, atol=0):
        raise AssertionError(f"the fit differs from the one in Python: {found} from {wanted}")
