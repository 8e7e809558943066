"""The ordered pairs that the rows of an owner are in, on any number of threads and in any ranges of scores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastrec.runtime.launcher import Launcher
from fastrec.scored import owned_keys
from fastrec.scored.keys import sort_rows

N = 1 << 18  # enough for several threads
ENDS = {
    "one row each": np.arange(N + 1),
    "as many owners as rows": np.concatenate([[0], np.arange(N - 1) // 2 * 2 + 2, [N]]).clip(0, N),
    "few owners": np.arange(0, N + 1, 1 << 12),
}


SCORES: dict[str, Callable[[Any, int], Any]] = {
    "close together": lambda draw, n: 0.5 + draw.integers(0, n // 4, n) / (1 << 24),
    "apart": lambda draw, n: np.round(draw.normal(size=n), 4) * 10.0 ** draw.integers(-30, 30, n),
    "one": lambda _, n: np.zeros(n),
    "both signs": lambda draw, n: draw.choice([-np.inf, -1.0, -0.0, 0.0, 1e-30, np.inf], n),
    "nearly equal": lambda draw, n: 0.5 + draw.permutation(n) * 1e-13,
    "below 0": lambda draw, n: -draw.random(n),
}


def sums_of_owners(labels: Any, scores: Any, indptr: Any) -> list[int]:
    """Return twice the pairs of the rows of each owner from counts of the distinct scores, in Python's integers."""
    distinct, at = np.unique(scores, return_inverse=True)
    counts = [np.bincount(at[labels == own], minlength=len(distinct)).tolist() for own in (0, 1)]
    below, above, of_score = 0, sum(counts[1]), []
    for negatives, positives in zip(*counts, strict=True):
        of_score.append((2 * above - positives, 2 * below + negatives))
        below, above = below + negatives, above - positives
    of_rows = [of_score[own][label] for own, label in zip(at.tolist(), labels.tolist(), strict=True)]
    return [sum(of_rows[start:end]) for start, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)]


@pytest.mark.parametrize("name", ENDS)
def test_threads_give_the_same_sums(name: str) -> None:
    rng = np.random.default_rng(2)
    labels, scores = (rng.random(N) < 0.3).astype(np.int8), rng.integers(0, 1 << 16, N).astype(np.float64)
    indptr, expected = ENDS[name], sums_of_owners(labels, scores, ENDS[name])
    for n_threads in (1, 2, 5):
        pairs, sums = owned_keys.pairs_of_owners(labels, scores, indptr, 0, n_threads)
        assert sums.tolist() == expected, n_threads
        assert pairs == sort_rows(labels, scores, 1).pairs()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rows_at_once", [1, 1000, 1 << 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", SCORES)
def test_ranges_and_ways_to_count_give_the_same_sums(
    kind: str, dtype: Any, rows_at_once: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 1 << 15 if compiled else 1 << 9
    rng = np.random.default_rng(3)
    labels, scores = (rng.random(n) < 0.4).astype(np.int8), SCORES[kind](rng, n).astype(dtype)
    indptr = np.concatenate([[0, 0], np.sort(rng.integers(0, n, n // 20)), [n, n]]).astype(np.int64)
    way = "compiled" if compiled else "interpreted"
    monkeypatch.setattr(Launcher, "way", way)
    monkeypatch.setattr(owned_keys, "ROWS_AT_ONCE", rows_at_once)
    pairs, sums = owned_keys.pairs_of_owners(labels, scores, indptr, 0, 2)
    assert sums.tolist() == sums_of_owners(labels, scores, indptr)
    assert pairs == sort_rows(labels, scores, 1).pairs()
    rows, owners = owned_keys.sort_owned_rows(labels, scores, indptr, 2)
    assert np.array_equal(rows.keys >> 1, sort_rows(labels, scores, 1).keys >> 1)
    assert np.bincount(owners, minlength=len(indptr) - 1).tolist() == np.diff(indptr).tolist()


def test_only_scores_that_are_close_together_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that both ways are tested above."""
    sorted_rows = []
    sort = owned_keys.kernels.sort_bucket
    monkeypatch.setattr(owned_keys.kernels, "sort_bucket", lambda *own: sorted_rows.append(len(own[0])) or sort(*own))
    monkeypatch.setattr(Launcher, "way", "interpreted")
    rng, n = np.random.default_rng(3), 1 << 12
    labels, indptr = (rng.random(n) < 0.4).astype(np.int8), np.array([0, n])
    for kind, expected in (("close together", False), ("one", False), ("apart", True)):
        sorted_rows.clear()
        owned_keys.pairs_of_owners(labels, SCORES[kind](rng, n).astype(np.float32), indptr, 0, 1)
        assert any(sorted_rows) == expected, kind


def test_counts_take_no_more_room_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tie is never cut: its rows are all in one bucket."""
    room = []
    write = owned_keys.kernels.write_pairs_of_keys

    def noting(keys: Any, pairs: Any, around: Any) -> Any:
        room.append(len(pairs))
        return write(keys, pairs, around)

    monkeypatch.setattr(owned_keys, "MAX_COUNTS", 64)
    monkeypatch.setattr(owned_keys.kernels, "write_pairs_of_keys", noting)
    monkeypatch.setattr(Launcher, "way", "interpreted")
    rng, n = np.random.default_rng(3), 1 << 12
    labels, indptr = (rng.random(n) < 0.4).astype(np.int8), np.arange(0, n + 1, 8)
    for kind in ("one", "close together"):
        scores = SCORES[kind](rng, n).astype(np.float32)
        assert owned_keys.pairs_of_owners(labels, scores, indptr, 0, 1)[1].tolist() == sums_of_owners(
            labels, scores, indptr
        )
    assert set(room) == {64}


def test_buckets_are_numbered_by_16_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plan = owned_keys.plan_buckets
    monkeypatch.setattr(owned_keys, "plan_buckets", lambda *given: seen.append(given[-1]) or plan(*given))
    monkeypatch.setattr(owned_keys, "ROWS_AT_ONCE", 1)
    rng, n = np.random.default_rng(3), 1 << 12
    owned_keys.pairs_of_owners((rng.random(n) < 0.4).astype(np.int8), rng.random(n), np.array([0, n]), 0, 1)
    assert seen == [owned_keys.MAX_BUCKETS] and owned_keys.MAX_BUCKETS < 1 << 16


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("kind", ["close together", "apart"])
def test_pairs_of_rows_are_rounded(kind: str, shift: int) -> None:
    rng, n = np.random.default_rng(3), 1 << 10
    labels, scores = (rng.random(n) < 0.4).astype(np.int8), SCORES[kind](rng, n).astype(np.float32)
    exact = sums_of_owners(labels, scores, np.arange(n + 1))
    sums = owned_keys.pairs_of_owners(labels, scores, np.array([0, n]), shift, 1)[1]
    assert sums.tolist() == [sum((own + (1 << shift >> 1)) >> shift for own in exact)]


def test_no_rows() -> None:
    pairs, sums = owned_keys.pairs_of_owners(np.zeros(0, np.int8), np.zeros(0), np.zeros(3, np.int64), 0, 2)
    assert pairs == (0, 0, 0) and sums.tolist() == [0, 0]
