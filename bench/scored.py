"""Benchmarks of scored, labelled rows: grouped and global AUC, rankings from scores, errors; a floor and other tools.

`loop` is a parallel loop over the rows of every user that only adds up scores and labels, by index.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from bench.measure import Spread, Turns, compact, seconds_of

Array = np.ndarray[Any, Any]
METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
CUTOFFS = [1, 5, 10, 20, 50]
ERRORS = ["rmse", "mae", "rmse(average=user)", "mae(average=user)"]
BLOCKS = 64
N_SEGMENTS, ROWS_OF_USER = 100, 50
TOLERANCE = 1e-9


class ScoredLog(NamedTuple):
    """Rows of all users, one user after the other."""

    labels: Array  # int8 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)

    @property
    def n_users(self) -> int:
        """Number of users in the log."""
        return len(self.indptr) - 1


def make_scored(n_users: int, n_rows: int, positives: float, *, seed: int = 1) -> ScoredLog:
    """Return users with `n_rows` rows each, uniform float32 scores, and positives that are likelier at high scores."""
    rng = np.random.default_rng(seed)
    size = n_users * n_rows
    scores = rng.random(size, np.float32)
    labels = (rng.random(size, np.float32) < 2 * positives * scores).view(np.int8)
    return ScoredLog(labels, scores, np.arange(n_users + 1) * n_rows)


def rounded(log: ScoredLog, decimals: int) -> ScoredLog:
    """Return the log with rounded scores, so that most are tied."""
    return log._replace(scores=np.round(log.scores, decimals))


@njit(nogil=True, error_model="numpy")
def _add_rows(labels, scores, indptr, first, last):
    total = np.float32(0.0)
    count = 0
    for u in range(first, last):
        for j in range(indptr[u], indptr[u + 1]):
            total += scores[j]
            count += labels[j]
    return total + count


@njit(parallel=True, nogil=True, error_model="numpy")
def _loop(labels, scores, indptr):
    n_users = len(indptr) - 1
    totals = np.zeros(BLOCKS)
    for b in prange(BLOCKS):
        totals[b] = _add_rows(labels, scores, indptr, b * n_users // BLOCKS, (b + 1) * n_users // BLOCKS)
    return totals.sum()


def loop(log: ScoredLog) -> float:
    """Read every score and label once: the floor."""
    return float(_loop(*log))


def evaluate(log: ScoredLog, metrics: list[str], **options: Any) -> Any:
    """Evaluate the log with fastrec, with all checks."""
    import fastrec

    return fastrec.evaluate_scores(*log, metrics, **options)


def gauc(log: ScoredLog) -> float:
    """Return only the grouped AUC."""
    return float(evaluate(log, ["gauc"])["gauc"])


class Promise(NamedTuple):
    """Measured ratio and its promised limit."""

    name: str
    spread: Spread
    target: float | None = None
    stretch: float | None = None
    note: str = ""


def compare_gauc(n_users: int, rounds: int) -> list[Promise]:
    """Time grouped AUC and rankings against the loop and against each other."""
    log, half = make_scored(n_users, 100, 0.07), make_scored(n_users, 100, 0.5)
    long = make_scored(max(1, n_users // 100), 10_000, 0.07)
    tied = rounded(log, 1)
    everything = ["gauc", *(f"{metric}@{k}" for metric in METRICS for k in CUTOFFS)]
    turns = Turns(
        {
            "loop": lambda: loop(log),
            "gauc": lambda: gauc(log),
            "half": lambda: gauc(half),
            "long": lambda: gauc(long),
            "all": lambda: evaluate(log, everything),
            "tied": lambda: evaluate(tied, everything),
        },
        rounds,
    )
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    what = f"{compact(n_users)} users x 100 rows"
    n_values = len(everything) - 1
    return [
        Promise(f"gauc, {what}, 7 % positives / reading loop", turns.ratio("gauc", "loop"), 3, 2, took["gauc"]),
        Promise("the same, 50 % positives / reading loop", turns.ratio("half", "loop"), 7, None, took["half"]),
        Promise("the same rows, 10,000 a user / reading loop", turns.ratio("long", "loop"), 10, None, took["long"]),
        Promise(f"gauc + {n_values} values, ties=expected / gauc", turns.ratio("all", "gauc"), 2.5, None, took["all"]),
        Promise("the same, nearly all rows tied / gauc", turns.ratio("tied", "gauc"), 4, None, took["tied"]),
    ]


def compare_errors(n_users: int, rounds: int) -> list[Promise]:
    """Time rating errors over rows and per user."""
    log = make_scored(n_users, 100, 0.3)
    log = log._replace(labels=(log.scores * 5).astype(np.int8))
    turns = Turns({"loop": lambda: loop(log), "errors": lambda: evaluate(log, ERRORS)}, rounds)
    note = f"{turns.median('errors') * 1e3:.3g} ms"
    what = f"rmse and mae over rows and per user, {compact(n_users * 100)} rows / reading loop"
    return [Promise(what, turns.ratio("errors", "loop"), 3, None, note)]


def compare_auc(n_rows: int, rounds: int) -> list[Promise]:
    """Time the global AUC against sorting, and the bounded AUC against the exact one."""
    import fastrec

    log = make_scored(1, n_rows, 0.07)
    wide = log.scores.astype(np.float64)
    weights = np.random.default_rng(5).random(n_rows)
    bounded = fastrec.bounded_auc(log.labels, log.scores)
    turns = Turns(
        {
            "sort": lambda: np.sort(log.scores),
            "sort wide": lambda: np.sort(wide),
            "auc": lambda: fastrec.auc(log.labels, log.scores),
            "auc wide": lambda: fastrec.auc(log.labels, wide),
            "weighted": lambda: fastrec.auc(log.labels, log.scores, sample_weight=weights),
            "bounded": lambda: fastrec.bounded_auc(log.labels, log.scores),
        },
        rounds,
    )
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    what = f"auc, {compact(n_rows)} float32 scores"
    return [
        Promise(f"{what} / np.sort of them", turns.ratio("auc", "sort"), 1.3, None, f"{took['auc']} / {took['sort']}"),
        Promise("float64 / np.sort of float64", turns.ratio("auc wide", "sort wide"), 1.5, None, took["auc wide"]),
        Promise("weighted / np.sort of float64", turns.ratio("weighted", "sort wide"), 1.5, None, took["weighted"]),
        Promise("bounded auc / auc", turns.ratio("bounded", "auc"), 0.3, None, f"bound {bounded.bound:.2g}"),
    ]


def compare_segments(n_rows: int, rounds: int) -> list[Promise]:
    """Time auc by segments of rows against auc of all rows, after a check that a segment has the bits of its rows."""
    import fastrec

    log = make_scored(n_rows // ROWS_OF_USER, ROWS_OF_USER, 0.07)
    segments = np.random.default_rng(6).integers(0, N_SEGMENTS, len(log.scores))

    def without_users(**options: Any) -> Any:
        return fastrec.evaluate_scores(log.labels, log.scores, metrics=["auc"], **options)

    found = without_users(row_groups=segments).groups["row_group"]
    for label in (0, N_SEGMENTS - 1):
        inside = segments == label
        alone = fastrec.auc(log.labels[inside], log.scores[inside])
        if not np.array_equal(found[label]["auc"].mean, alone, equal_nan=True):  # NaN: all labels are equal
            raise AssertionError("a segment and its rows alone differ")
    turns = Turns(
        {
            "auc": without_users,
            "segments": lambda: without_users(row_groups=segments),
            "auc of users": lambda: evaluate(log, ["auc"]),
            "segments of users": lambda: evaluate(log, ["auc"], row_groups=segments),
        },
        rounds,
    )
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    what, users = f"auc by {N_SEGMENTS} segments, {compact(n_rows)} rows", f"of users with {ROWS_OF_USER} rows"
    return [
        Promise(f"{what} / auc", turns.ratio("segments", "auc"), 3, None, took["segments"]),
        Promise(
            f"{what} {users} / auc of them",
            turns.ratio("segments of users", "auc of users"),
            3,
            None,
            took["segments of users"],
        ),
    ]


def compare_rivals(n_users: int, rounds: int) -> list[Promise]:
    """Time installed other tools on the same rows, after a check that the numbers are equal."""
    log = make_scored(n_users, 100, 0.07)
    found = []
    for name, module, target, prepare in RIVALS:
        if importlib.util.find_spec(module) is None:
            print(f"{name}: left out, {module} is not installed", file=sys.stderr)
            continue
        part, theirs, scale = prepare(log)
        if not abs(theirs() - gauc(part)) <= TOLERANCE:
            raise AssertionError(f"{name} and fastrec differ")
        ours = Turns({"ours": lambda: gauc(log)}, rounds)
        seconds = [seconds_of(theirs) * scale for _ in range(max(1, rounds // 3))]
        ratios = np.array(seconds)[:, None] / np.array(ours.seconds["ours"])[None]
        note = f"{np.median(seconds):.3g} s{f', scaled up from {part.n_users} users' if scale > 1 else ''}"
        what = f"gauc, {compact(n_users)} users x 100 rows: {name} / fastrec (at least {target} promised)"
        found.append(Promise(what, Spread.of(ratios), None, None, note))
    return found


def _polars(log: ScoredLog) -> tuple[ScoredLog, Callable[[], float], float]:
    import polars as pl

    users = np.repeat(np.arange(log.n_users), np.diff(log.indptr))
    frame = pl.DataFrame({"user": users, "label": log.labels, "score": log.scores})

    def evaluate_frame() -> float:
        ranks = pl.col("score").rank("average").over("user")
        p, n = pl.col("label").cast(pl.Int64).sum(), (1 - pl.col("label").cast(pl.Int64)).sum()
        table = (
            frame.lazy()
            .with_columns(rank=ranks)
            .group_by("user")
            .agg(rows=pl.len(), p=p, n=n, total=(pl.col("rank") * pl.col("label")).sum())
            .filter((pl.col("p") > 0) & (pl.col("n") > 0))
            .with_columns(auc=(pl.col("total") - pl.col("p") * (pl.col("p") + 1) / 2) / (pl.col("p") * pl.col("n")))
            .select((pl.col("auc") * pl.col("rows")).sum() / pl.col("rows").sum())
        )
        return float(table.collect().item())

    return log, evaluate_frame, 1.0


def _sklearn(log: ScoredLog) -> tuple[ScoredLog, Callable[[], float], float]:
    from sklearn.metrics import roc_auc_score

    users = min(log.n_users, 2_000)
    stop = log.indptr[users]
    part = ScoredLog(log.labels[:stop], log.scores[:stop], log.indptr[: users + 1])

    def evaluate_users() -> float:
        total = rows = 0.0
        for u in range(users):
            own = slice(part.indptr[u], part.indptr[u + 1])
            if 0 < part.labels[own].sum() < len(part.labels[own]):
                total += roc_auc_score(part.labels[own], part.scores[own]) * len(part.labels[own])
                rows += len(part.labels[own])
        return total / rows

    return part, evaluate_users, log.n_users / users


RIVALS = [
    ("Polars rank over users", "polars", 80, _polars),
    ("scikit-learn in a loop", "sklearn", 8_000, _sklearn),
]
