"""Benchmarks of comparisons of two models on one log: the clustered test of auc, and a table of ten metrics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench.measure import Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]
TABLE = [
    *("gauc", "log_loss", "brier", "normalized_entropy", "calibration", "log_loss(average=user)"),
    *("precision(threshold=0.5)", "recall(threshold=0.5)", "f1(threshold=0.5)", "accuracy(threshold=0.5)"),
]
ROWS_OF_DELONG = 1_000_000
ROWS_PER_USER = 100
TOLERANCE = 1e-9


class Duel(NamedTuple):
    """Rows of users that are alike, one user after the other, and the scores of two models."""

    labels: Array  # bool (n_rows,)
    one: Array  # float64 (n_rows,)
    other: Array
    indptr: Array

    @property
    def models(self) -> dict[str, Array]:
        """The scores by name."""
        return {"one": self.one, "other": self.other}


def make_duel(n_rows: int, *, seed: int = 3) -> Duel:
    """Return a log with 100 rows per user, whose taste both models know."""
    rng = np.random.default_rng(seed)
    n_users = max(2, n_rows // ROWS_PER_USER)
    taste = np.repeat(rng.normal(size=n_users), ROWS_PER_USER)
    labels = rng.random(len(taste)) < 1 / (1 + np.exp(2 - taste))
    one, other = (1 / (1 + np.exp(2 - taste - labels - rng.normal(size=len(taste)))) for _ in range(2))
    return Duel(labels, one, other, np.arange(n_users + 1) * ROWS_PER_USER)


def midranks(values: Array) -> Array:
    """Return ranks from 1, the mean of them for equal values."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(starts, len(values)))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(starts + (lengths + 1) / 2, lengths)
    return ranks


def delong(labels: Array, one: Array, other: Array) -> tuple[float, float]:
    """Return the difference of two areas and its standard error by ranks, with NumPy (Sun & Xu 2014)."""
    parts, areas = [], []
    for scores in (one, other):
        positive, negative = scores[labels], scores[~labels]
        together = midranks(np.concatenate([positive, negative]))
        above = (together[: len(positive)] - midranks(positive)) / len(negative)
        below = 1 - (together[len(positive) :] - midranks(negative)) / len(positive)
        parts.append((above, below))
        areas.append(above.mean())
    variance = sum(np.cov(*own)[[0, 1, 0], [0, 1, 1]] @ [1, 1, -2] / len(own[0]) for own in zip(*parts, strict=True))
    return float(areas[0] - areas[1]), float(np.sqrt(variance))


def test_of_auc(duel: Duel) -> Any:
    """Return the paired, clustered test of auc."""
    import fastrec

    return fastrec.compare_scores(duel.labels, duel.models, "auc", indptr=duel.indptr, test="t").rows[0]


def check() -> None:
    """Raise AssertionError unless fastrec and DeLong's test in NumPy agree."""
    import fastrec

    duel = make_duel(5_000)
    difference, error = delong(duel.labels, duel.one, duel.other)
    test = fastrec.auc_test(duel.labels, duel.one, duel.other)
    if not np.allclose((difference, error), (test.difference, test.std_error), rtol=TOLERANCE):
        raise AssertionError("the two tests of DeLong differ")
    if not abs(test_of_auc(duel).difference + difference) <= TOLERANCE:
        raise AssertionError("the clustered test has another difference")


def compare_duels(n_rows: int, rounds: int) -> list[Promise]:
    """Time the clustered test of auc against sorting and DeLong's test, and a table of ten metrics."""
    import fastrec

    duel, small = make_duel(n_rows), make_duel(min(n_rows, ROWS_OF_DELONG))
    turns = Turns(
        {
            "argsort": lambda: (np.argsort(duel.one), np.argsort(duel.other)),
            "test": lambda: test_of_auc(duel),
            "small": lambda: test_of_auc(small),
            "rows": lambda: fastrec.auc_test(small.labels, small.one, small.other),
            "delong": lambda: delong(small.labels, small.one, small.other),
            "evaluate": lambda: [
                fastrec.evaluate_scores(duel.labels, own, duel.indptr, TABLE) for own in duel.models.values()
            ],
            "table": lambda: fastrec.compare_scores(duel.labels, duel.models, TABLE, indptr=duel.indptr, test="t"),
            "drawn": lambda: fastrec.compare_scores(duel.labels, duel.models, TABLE, indptr=duel.indptr),
        },
        rounds,
    )
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    what = f"clustered test of two auc, {compact(n_rows)} rows"
    of_rows = f"{compact(len(small.labels))} rows / DeLong in NumPy (Sun & Xu)"
    table = f"table of {len(TABLE)} metrics of two models, {compact(n_rows)} rows / evaluating both"
    return [
        Promise(
            f"{what} / np.argsort of both columns",
            turns.ratio("test", "argsort"),
            1,
            None,
            f"{took['test']} / {took['argsort']}",
        ),
        Promise(f"clustered test of two auc, {of_rows}", turns.ratio("small", "delong"), 0.3, None, took["small"]),
        Promise(f"auc_test, {of_rows}", turns.ratio("rows", "delong"), 0.3, None, took["rows"]),
        Promise(table, turns.ratio("table", "evaluate"), 2.5, None, f"{took['table']} / {took['evaluate']}"),
        Promise(f"{table}, 10,000 rounds of signs", turns.ratio("drawn", "evaluate"), None, None, took["drawn"]),
    ]
