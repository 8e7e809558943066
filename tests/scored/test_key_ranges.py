"""Rows of many batches: the numbers of all rows at once, to the last bit, in few bytes per row."""

import functools
import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation.rows import review
from fastrec.runtime.launcher import Launcher
from fastrec.scored import key_ranges
from fastrec.scored.key_ranges import KeyRanges
from fastrec.scored.keys import sort_by_code, sort_rows
from fastrec.scored.score_counts import ScoreCounts

EDGES = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0, -1.0]
Rows = tuple[Any, Any]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut ranges of few rows."""
    monkeypatch.setattr(key_ranges, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(key_ranges, "ROWS_PER_RANGE", 20)
    monkeypatch.setattr(key_ranges, "LARGE_RANGE", 64)


def make_rows(n: int, dtype: Any, *, seed: int = 1, decimals: int = 3) -> Rows:
    """Return labels, and scores of both signs, some of them tied."""
    draw = np.random.default_rng(seed)
    scores = np.round(draw.normal(size=n), decimals)
    scores[: len(EDGES)] = EDGES[:n]
    return draw.random(n) < 0.3, draw.permutation(scores.astype(dtype))


def batches_of(rows: Rows, n: int) -> list[Rows]:
    labels, scores = (np.array_split(own, n) for own in rows)
    return list(zip(labels, scores, strict=True))


def counts_of(batches: list[Rows]) -> ScoreCounts:
    counts = ScoreCounts()
    for labels, scores in batches:
        counts.add(labels, scores)
    return counts


def numbers(counts: ScoreCounts) -> list[Any]:
    """Return numbers of score counts: those of keys first, then those that need counts by score."""
    found = [counts.auc(), counts.auc_error().std_error, counts.auc(0.3), counts.ks(), counts.average_precision()]
    return [
        np.array(value).tobytes() for value in (*found, *counts.runs()[:3], counts.auc(), counts.auc_error().std_error)
    ]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "n_batches"), [(8, 3), (300, 2), (1000, 7), (1000, 200)])
def test_batches_have_the_numbers_of_all_rows(n: int, n_batches: int, dtype: Any) -> None:
    rows = make_rows(n, dtype)
    batches, whole = batches_of(rows, n_batches), numbers(counts_of([rows]))
    found = counts_of(batches)
    assert isinstance(found._sorted, KeyRanges)
    assert numbers(found) == whole
    assert numbers(found) == whole  # numbers leave it as it is
    first, last = counts_of(batches[: n_batches // 2]), counts_of(batches[n_batches // 2 :])
    before = numbers(last)
    first.merge(last)
    assert numbers(first) == whole
    assert numbers(last) == before  # merging leaves the other alone
    assert numbers(ScoreCounts.unpack(found.pack(), weighted=False)) == whole


@pytest.mark.usefixtures("small")
def test_a_state_merges_itself() -> None:
    batches = batches_of(make_rows(500, np.float64), 5)
    twice = counts_of(batches)
    twice.merge(twice)
    assert numbers(twice) == numbers(counts_of(batches + batches))
    for _ in range(40):  # doubles the rows, not the scores
        twice.merge(twice)
    assert twice.auc() == counts_of(batches).auc()


@pytest.mark.usefixtures("small")
def test_scores_of_two_types_are_counted_together() -> None:
    one, other = make_rows(300, np.float32), make_rows(300, np.float64, seed=2)
    labels, scores = (np.concatenate(own) for own in zip(one, other, strict=True))
    whole = numbers(counts_of([(labels, scores)]))
    batches = batches_of(one, 3), batches_of(other, 3)
    assert numbers(counts_of([*batches[0], *batches[1]])) == whole
    first, last = map(counts_of, batches)
    first.merge(last)
    assert numbers(first) == whole


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("decimals", [0, 1])
def test_few_different_scores_are_counted(decimals: int) -> None:
    """Also if that shows in later batches only."""
    rows = make_rows(4000, np.float64, decimals=decimals)
    found = counts_of(batches_of(rows, 40))
    assert found._sorted is None
    assert numbers(found) == numbers(counts_of([rows]))


@pytest.mark.parametrize("n_ranges", ["one", "many"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_effects_of_users_are_those_of_one_batch(
    dtype: Any, n_threads: int, compiled: bool, n_ranges: str, request: pytest.FixtureRequest
) -> None:
    monkeypatch = request.getfixturevalue("monkeypatch")
    if n_ranges == "many":
        request.getfixturevalue("small")
    run = "compiled" if compiled else "interpreted"
    monkeypatch.setattr(Launcher, "way", run)
    draw = np.random.default_rng(4)
    labels, scores = make_rows(1200, dtype)
    indptr = np.r_[0, np.sort(draw.integers(0, 1200, 99)), 1200]
    plans = draw.integers(0, 2, 100)
    found = []
    for edges in ([0, 100], [0, 1, 40, 70, 100]):
        evaluator = fastrec.ScoreEvaluator(["auc", "gauc"], per_user=True, n_threads=n_threads)
        for passes in (evaluator.update, functools.partial(review, evaluator)):
            for first, last in itertools.pairwise(edges):
                own = slice(indptr[first], indptr[last])
                pointers = indptr[first : last + 1] - indptr[first]
                users = {"user_ids": np.arange(first, last), "groups": plans[first:last]}
                passes(labels[own], scores[own], pointers, **users)
        report = evaluator.result()
        found.append([report.to_dict(), report.per_user["gauc"].tobytes()])
    assert found[0] == found[1]


def test_a_row_takes_the_bytes_of_its_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ranges, "ROWS_AT_ONCE", 1 << 12)
    monkeypatch.setattr(key_ranges, "ROWS_PER_RANGE", 1 << 12)
    monkeypatch.setattr(key_ranges, "LARGE_RANGE", 1 << 14)
    n, n_batches = 1 << 18, 32
    draw = np.random.default_rng(3)
    batches = batches_of((draw.random(n) < 0.5, draw.random(n)), n_batches)
    counts_of(batches[:2]).auc()
    tracemalloc.start()
    try:
        counts = counts_of(batches)
        counts.auc()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 9 * n  # counts by score take 24 bytes, and a copy while they are merged
    assert peak < 12 * n


def test_ranges_are_cut_between_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ranges, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(key_ranges, "ROWS_PER_RANGE", 10)
    monkeypatch.setattr(key_ranges, "LARGE_RANGE", 20)
    labels, scores = make_rows(200, np.float64, decimals=1)
    found = KeyRanges.of(sort_rows(labels, scores, 1)).with_rows(sort_rows(labels, scores, 1))
    kept = [own for own in found.ranges() if len(own.keys)]
    assert len(kept) > 5
    for own, following in itertools.pairwise(kept):
        assert own.is_below > following.is_below or int(own.keys[-1]) >> 1 < int(following.keys[0]) >> 1


def test_rows_of_a_rare_code_do_not_keep_those_of_others() -> None:
    draw = np.random.default_rng(5)
    codes = np.zeros(50_000, np.int32)
    codes[:3] = 1
    tracemalloc.start()
    try:
        rare = ScoreCounts()
        for _ in range(20):
            labels, scores = draw.random(len(codes)) < 0.5, draw.random(len(codes))
            rare.merge(ScoreCounts.of_keys(sort_by_code(codes, labels, scores, 2, 1)[1]))
        del labels, scores
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(rare._sorted, KeyRanges)
    assert held < 8 * len(codes)  # the keys of one batch


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_many_rows_of_one_score(share: float) -> None:
    labels, scores = make_rows(2000, np.float64, decimals=9)
    scores[np.random.default_rng(6).random(len(scores)) < share] = 0.25
    assert numbers(counts_of(batches_of((labels, scores), 30))) == numbers(counts_of([(labels, scores)]))
