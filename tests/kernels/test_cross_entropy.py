"""Log losses from products of probabilities, against sums of their logarithms."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.runtime.launcher import Launcher

SCORES = {
    "any": lambda draw, n: draw.random(n),
    "ends": lambda draw, n: draw.choice([0.0, 1.0, 0.5, 1e-300, 1e-20], n),
    "sure": lambda draw, n: np.where(draw.random(n) < 0.5, 1e-9, 1 - 1e-9),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", SCORES)
def test_products_give_the_log_loss(kind: str, dtype: Any, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    way = "compiled" if compiled else "interpreted"
    monkeypatch.setattr(Launcher, "way", way)
    draw, n = np.random.default_rng(5), 3000
    labels, scores = (draw.random(n) < 0.5).astype(np.int8), SCORES[kind](draw, n).astype(dtype)
    indptr = np.array([0, 0, 1, 30, 2000, n])
    eps = float(np.finfo(dtype).eps)
    clipped = [min(max(float(score), eps), 1 - eps) for score in scores]
    losses = [-math.log(own if label else 1.0 - own) for own, label in zip(clipped, labels, strict=True)]
    call: dict[str, Any] = {"metrics": ["log_loss", "log_loss(average=user)"], "per_user": True}
    found = fastrec.evaluate_scores(labels, scores, indptr, **call)
    assert found["log_loss"] == pytest.approx(math.fsum(losses) / n, rel=1e-14)
    means = [math.fsum(losses[a:b]) / (b - a) for a, b in itertools.pairwise(indptr[1:])]
    name = "log_loss(average=user)"
    assert found.per_user[name][1:] == pytest.approx(means, rel=1e-14, abs=1e-17)
    weighted = fastrec.evaluate_scores(labels, scores, indptr, sample_weight=np.ones(n), **call)
    assert dict(found) == pytest.approx(dict(weighted), rel=1e-13)
