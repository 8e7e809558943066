"""Sorted keys of rows by code: each code has the numbers of its rows alone, to the last bit."""

import math
from typing import Any

import numpy as np
import pytest

from fastrec.runtime.launcher import Launcher
from fastrec.scored import keys
from fastrec.scored.score_counts import ScoreCounts

EDGES = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0, -1.0]


def make_rows(n: int, n_codes: int, dtype: Any, *, seed: int) -> tuple[Any, Any, Any]:
    """Return codes from -1 on, of which the last is rare, labels and scores of both signs with ties."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(-1, n_codes, n).astype(np.int32)
    codes[(codes == n_codes - 1) & (draw.random(n) < 0.9)] = 0
    scores = np.round(draw.normal(size=n), 2)
    scores[: len(EDGES)] = EDGES[:n]
    return codes, draw.random(n) < 0.3, scores.astype(dtype)


def numbers(counts: ScoreCounts) -> list[Any]:
    """Return numbers of score counts: those of keys first, then those that need counts by score."""
    found = [counts.auc(), counts.auc_error().std_error, counts.auc(0.3), counts.ks(), counts.average_precision()]
    return [
        np.array(value).tobytes() for value in (*found, *counts.runs()[:3], counts.auc(), counts.auc_error().std_error)
    ]


def alone(codes: Any, labels: Any, scores: Any, code: int) -> ScoreCounts:
    counts = ScoreCounts()
    counts.add(labels[codes == code], scores[codes == code])
    return counts


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "n_codes"), [(5, 1), (300, 4), (4000, 3)])
def test_the_rows_of_a_code_have_the_bits_of_these_rows_alone(
    monkeypatch: pytest.MonkeyPatch, n: int, n_codes: int, dtype: Any, n_threads: int
) -> None:
    for name in ("ROWS_PER_CHUNK", "ROWS_PER_TASK"):  # threads share the work of few rows, too
        monkeypatch.setattr(keys, name, 64)
    codes, labels, scores = make_rows(n, n_codes, dtype, seed=n)
    found = keys.sort_by_code(codes, labels, scores, n_codes, n_threads)
    assert len(found) == n_codes and sum(len(own.keys) for own in found) == (codes >= 0).sum()
    for code, own in enumerate(found):
        assert numbers(ScoreCounts.of_keys(own)) == numbers(alone(codes, labels, scores, code))


def test_keys_are_counted_when_rows_are_added_or_packed() -> None:
    codes, labels, scores = make_rows(500, 3, np.float32, seed=2)
    of_codes = [ScoreCounts.of_keys(own) for own in keys.sort_by_code(codes, labels, scores, 3, 1)]
    area = of_codes[0].auc()
    merged, whole = ScoreCounts(), ScoreCounts()
    for own in of_codes:
        merged.merge(own)
    whole.add(labels[codes >= 0], scores[codes >= 0])
    assert numbers(merged) == numbers(whole)
    more = ScoreCounts.of_keys(keys.sort_by_code(codes, labels, scores, 3, 1)[0])
    more.add(labels[codes > 0], scores[codes > 0])
    assert numbers(more) == numbers(whole)
    assert of_codes[0].auc() == area  # merging leaves the others alone
    again = ScoreCounts.unpack(of_codes[1].pack(), weighted=False)
    assert numbers(again) == numbers(of_codes[1])
    assert math.isnan(ScoreCounts.of_keys(keys.SortedKeys(np.zeros(0, np.uint32), [0], 0)).auc_error().std_error)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interpreted_and_compiled(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    rows = make_rows(1000, 3, dtype, seed=3)

    def found() -> list[Any]:
        return [numbers(ScoreCounts.of_keys(own)) for own in keys.sort_by_code(*rows, 3, 1)]

    monkeypatch.setattr(Launcher, "way", "compiled")
    compiled = found()
    monkeypatch.setattr(Launcher, "way", "interpreted")
    assert found() == compiled
