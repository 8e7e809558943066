"""The ordered pairs that the rows of an owner are in, on any number of threads."""

import numpy as np
import pytest

from fastrec.scored.keys import sort_rows

N = 1 << 18  # enough for several threads
ENDS = {
    "one row each": np.arange(N + 1),
    "as many owners as rows": np.concatenate([[0], np.arange(N - 1) // 2 * 2 + 2, [N]]).clip(0, N),
    "few owners": np.arange(0, N + 1, 1 << 12),
}


@pytest.mark.parametrize("name", ENDS)
def test_threads_give_the_same_sums(name):
    rng = np.random.default_rng(2)
    labels, scores = (rng.random(N) < 0.3).astype(np.int8), rng.integers(0, 1 << 16, N).astype(np.float64)
    indptr = ENDS[name]
    negatives, positives = (np.bincount(scores[labels == own].astype(int), minlength=1 << 16) for own in (0, 1))
    ordered = np.where(
        labels == 1,
        (2 * np.cumsum(negatives) - negatives)[scores.astype(int)],
        (2 * (positives.sum() - np.cumsum(positives)) + positives)[scores.astype(int)],
    )
    expected = np.add.reduceat(np.append(ordered, 0), indptr[:-1].clip(0, N))[: len(indptr) - 1]
    expected[np.diff(indptr) == 0] = 0
    for n_threads in (1, 2, 5):
        rows = sort_rows(labels, scores, n_threads, indptr)
        assert rows.one_each == (name == "one row each")
        assert np.array_equal(rows.pairs_of_owners(len(indptr) - 1, 0, n_threads), expected), n_threads
