"""Hits that a provider of statistics has found are those of the kernel, and faults of lists stay errors."""

from typing import Any

import numpy as np
import pytest

import fastrec
from support.bits import mean_bits, user_bits

OWN = ["hits", "ndcg", "map", "mrr"]  # kernels of their own find these hits
SHARED = ["bpref", "compatibility"]  # providers find hits first
FAULTS: dict[str, tuple[Any, Any]] = {
    "a copy in a list": ([[1, 2], [3, 4, 3]], [[1], [4]]),
    "a copy in the truth": ([[1, 2], [3, 4]], [[1], [4, 5, 4]]),
    "a negative id in a list": ([[1, 2], [3, -4]], [[1], [3]]),
    "a negative id in the truth": ([[1, 2], [3, 4]], [[1], [3, -4]]),
    "a list without truth": ([[1, 2], [3, 4]], [[1], []]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_as_without_providers(fault: str) -> None:
    recs, truth = FAULTS[fault]
    messages = []
    for metrics in (["ndcg@3"], ["bpref@3", "ndcg@3"]):
        with pytest.raises(fastrec.FastrecError) as error:
            fastrec.evaluate(recs, truth, metrics, no_truth="error")
        messages.append(str(error.value).replace("bpref@3", "ndcg@3"))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("options", [{}, {"min_gain": "any"}, {"duplicates": "miss"}, {"exclude": "unjudged"}], ids=str)
@pytest.mark.parametrize("graded", [False, True], ids=["plain", "graded"])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_hits_are_those_without_providers(options: dict[str, Any], graded: bool, width: Any) -> None:
    rng = np.random.default_rng(7)
    recs = [rng.choice(60, size, replace=False).astype(width) for size in rng.integers(0, 40, 300)]
    truth: list[Any] = [rng.choice(60, size, replace=False).astype(width) for size in rng.integers(0, 12, 300)]
    if options.get("duplicates"):
        recs = [np.concatenate([row, row[:3]]) for row in recs]
    if graded:
        truth = [dict(zip(row.tolist(), rng.integers(0, 4, len(row)).astype(float), strict=True)) for row in truth]
    alone = fastrec.evaluate(recs, truth, OWN, k=[1, 5, 50], per_user=True, **options)
    both = fastrec.evaluate(recs, truth, [*OWN, *SHARED], k=[1, 5, 50], per_user=True, **options)
    names = list(alone)
    assert mean_bits({name: both.estimates[name] for name in names}) == mean_bits(alone.estimates)
    own, other = user_bits(alone), user_bits(both)
    assert {name: other[name] for name in own} == own
