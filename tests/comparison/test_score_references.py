"""Comparisons of models on one log against other software, published formulas and a bootstrap of users."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

Array = np.ndarray[Any, Any]
PROC = [  # roc.test of pROC 1.18 on its data aSAH, method="delong": z and p
    ("wfns", "s100b", 2.20898359144091, 0.0271757822291882),
    ("wfns", "ndka", 2.79777591868904, 0.00514557970691098),
    ("ndka", "s100b", -1.39077002573558, 0.164295175223054),
]
AREAS = {"wfns": 0.823678861788618, "s100b": 0.731368563685637, "ndka": 0.611957994579946}


@pytest.mark.parametrize(("one", "other", "z", "p"), PROC)
def test_the_test_of_auc_is_that_of_proc(one: str, other: str, z: float, p: float) -> None:
    """`asah.csv` has the columns outcome (Good, Poor), wfns, s100b and ndka: `write.csv(pROC::aSAH)`."""
    path = Path(os.environ.get("FASTREC_TEST_DATA", "")) / "asah.csv"
    if not path.is_file():
        pytest.skip("no asah.csv in FASTREC_TEST_DATA")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    labels = np.array([row["outcome"] == "Poor" for row in rows])
    scores = {name: np.array([float(row[name]) for row in rows]) for name in AREAS}
    test = fastrec.auc_test(labels, scores[one], scores[other])
    assert (test.z, test.p_value) == pytest.approx((z, p), rel=1e-9)
    assert (test.auc_a, test.auc_b) == pytest.approx((AREAS[one], AREAS[other]), rel=1e-12)
    models = {"other": scores[other], "one": scores[one]}
    row = fastrec.compare_scores(labels, models, "auc", test="bootstrap").rows[0]  # rows are users of their own
    assert row.difference == pytest.approx(test.difference, rel=1e-12)
    assert row.high - row.low == pytest.approx(2 * 1.96 * test.std_error, rel=0.06)


def draw_log(seed: int, n_users: int, n_rows: int, levels: int = 0) -> tuple[Array, Array, Array, Array]:
    """Rows of users that are alike: labels, users, and scores of two models, tied if there are `levels`."""
    draw = np.random.default_rng(seed)
    taste = np.repeat(draw.normal(size=n_users), n_rows)
    labels = draw.random(n_users * n_rows) < 1 / (1 + np.exp(-taste))
    one, other = (1 / (1 + np.exp(-(taste + labels + draw.normal(size=len(taste))))) for _ in range(2))
    if levels:
        one, other = (np.floor(own * levels) / levels * 0.98 + 0.01 for own in (one, other))
    return labels, np.repeat(np.arange(n_users), n_rows), one, other


def mean_ranks(values: Sequence[float]) -> list[float]:
    """Return ranks from 1, the mean of them for equal values."""
    order = sorted(values)
    return [sum(own + 1 for own, other in enumerate(order) if other == value) / order.count(value) for value in values]


def placements(labels: Sequence[bool], scores: Sequence[float]) -> list[float]:
    """Return the placement of each row by ranks among all rows and among those of its class (Sun & Xu 2014)."""
    together, found = mean_ranks(scores), [0.0] * len(scores)
    for label in (True, False):
        at = [row for row, own in enumerate(labels) if own == label]
        within = mean_ranks([scores[row] for row in at])
        n_others = len(labels) - len(at)
        for row, rank in zip(at, within, strict=True):
            below = (together[row] - rank) / n_others
            found[row] = below if label else 1 - below
    return found


def clustered_variance(labels: Sequence[bool], users: Sequence[int], one: list[float], other: list[float]) -> float:
    """Return the variance of the difference of two areas, from the placements of rows (Obuchowski 1997)."""
    n = {label: list(labels).count(label) for label in (True, False)}
    sums: dict[tuple[bool, int], float] = {}
    clusters: dict[bool, set[int]] = {True: set(), False: set()}
    areas = [sum(own[row] for row, label in enumerate(labels) if label) / n[True] for own in (one, other)]
    for label, user, mine, yours in zip(labels, users, one, other, strict=True):
        sums[label, user] = sums.get((label, user), 0.0) + (mine - areas[0]) - (yours - areas[1])
        clusters[label].add(user)
    found = 0.0
    for label, own in clusters.items():
        squares = sum(sums[label, user] ** 2 for user in own)
        found += len(own) / (len(own) - 1) * squares / n[label] ** 2
    both = clusters[True] & clusters[False]
    everyone = len(clusters[True] | clusters[False])
    products = sum(sums[True, user] * sums[False, user] for user in both)
    return found + 2 * everyone / (everyone - 1) * products / n[True] / n[False]


@pytest.mark.parametrize(("seed", "levels"), [(0, 0), (1, 5), (2, 20)])
def test_the_clustered_error_is_that_of_obuchowski(seed: int, levels: int) -> None:
    """The divisors differ if some users have rows of one class only: here none has."""
    labels, users, one, other = draw_log(seed, 30, 8, levels)
    labels[::8], labels[1::8] = True, False
    found = fastrec.compare_scores(labels, {"b": other, "a": one}, "auc", user_ids=users, test="t").rows[0]
    placed = [placements(labels.tolist(), own.tolist()) for own in (one, other)]
    error = math.sqrt(clustered_variance(labels.tolist(), users.tolist(), *placed))
    assert found.users == 30
    assert found.high - found.low == pytest.approx(
        2 * error * pytest.importorskip("scipy.stats").t(29).isf(0.025), rel=1e-9
    )


METRICS = ["auc", "average_precision", "gauc", "log_loss", "normalized_entropy"]


@pytest.mark.thorough
@pytest.mark.parametrize("levels", [0, 10])
def test_the_clustered_error_is_that_of_a_bootstrap_of_users(levels: int) -> None:
    n_users, n_rows, rounds = 400, 10, 2000
    labels, users, one, other = draw_log(5, n_users, n_rows, levels)
    found = fastrec.compare_scores(labels, {"b": other, "a": one}, METRICS, user_ids=users, test="t").rows
    draw, indptr = np.random.default_rng(6), np.arange(n_users + 1) * n_rows
    differences: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for _ in range(rounds):
        rows = (draw.integers(0, n_users, n_users)[:, None] * n_rows + np.arange(n_rows)).ravel()
        ours, theirs = (fastrec.evaluate_scores(labels[rows], own[rows], indptr, METRICS) for own in (one, other))
        for metric in METRICS:
            differences[metric].append(ours[metric] - theirs[metric])
    for row in found:
        wanted = float(np.std(differences[row.metric], ddof=1))
        error = (row.high - row.low) / 2 / pytest.importorskip("scipy.stats").t(row.users - 1).isf(0.025)
        assert error == pytest.approx(wanted, rel=0.06), row.metric
