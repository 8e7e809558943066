"""Rows of many batches have the numbers of all rows at once; pairs of rows are those of comparing all."""

import functools
import itertools
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import InputError
from fastrec.runtime.launcher import Launcher
from fastrec.scored import areas, auc, influence, keys, sorting
from fastrec.scored.score_counts import ScoreCounts

N = 400
KINDS: dict[str, Callable[[Any], Any]] = {
    "all differ": lambda draw: draw.normal(size=N),
    "ties": lambda draw: np.round(draw.normal(size=N), 1),
    "few": lambda draw: draw.integers(0, 3, N) / 2,
    "near 0 and far": lambda draw: draw.normal(size=N) * 10.0 ** draw.integers(-40, 30, N),
    "nearly equal": lambda draw: 0.5 + draw.permutation(N) * 1e-13,
    "ends": lambda draw: draw.choice([-np.inf, -0.0, 0.0, 5e-324, np.inf, 1.0], N),
    "one": lambda draw: np.zeros(N),
}


def make_rows(kind: str, share: float = 0.3, dtype: Any = np.float64) -> tuple[Any, Any]:
    draw = np.random.default_rng(len(kind))
    return (draw.random(N) < share).astype(np.int8), KINDS[kind](draw).astype(dtype)


def numbers(counts: ScoreCounts) -> list[Any]:
    """Return numbers of score counts: those of keys first, then those that need counts by score."""
    found = [counts.auc(), counts.auc_error().std_error, counts.auc(0.3), counts.ks(), counts.average_precision()]
    found += [*counts.runs()[:3], counts.auc(), counts.auc_error().std_error, counts.ece(10, "quantile")]
    found += [counts.average_precision("trapezoid"), counts.average_precision("davis_goadrich")]
    return [np.array(value).tobytes() for value in found]


def counts_of(*batches: tuple[Any, ...]) -> ScoreCounts:
    counts = ScoreCounts(weighted=len(batches[0]) > 2)
    for batch in batches:
        counts.add(*batch)
    return counts


def batches_of(n: int, *columns: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(np.array_split(column, n) for column in columns), strict=True))


def twice_pairs(labels: Any, scores: Any) -> list[int]:
    """Return twice the ordered pairs that each row is in, by comparing all pairs."""
    found = []
    for label, score in zip(labels, scores, strict=True):
        others = scores[labels != label]
        right = others < score if label else others > score
        found.append(2 * int(right.sum()) + int((others == score).sum()))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_batches", [2, 7, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_the_numbers_of_all_rows(kind: str, n_batches: int, dtype: Any, weighted: bool) -> None:
    rows: Any = make_rows(kind, dtype=dtype)
    if weighted:
        rows = *rows, np.random.default_rng(1).random(N)
    batches, whole = batches_of(n_batches, *rows), numbers(counts_of(rows))
    found = counts_of(*batches)
    assert numbers(found) == whole
    assert numbers(found) == whole  # numbers leave it as it is
    first, last = counts_of(*batches[: n_batches // 2]), counts_of(*batches[n_batches // 2 :])
    before = numbers(last)
    first.merge(last)
    assert numbers(first) == whole
    assert numbers(last) == before  # merging leaves the other alone
    assert numbers(ScoreCounts.unpack(found.pack(), weighted=weighted)) == whole
    going_on = ScoreCounts(weighted=weighted)
    for nth, (labels, scores, *weights) in enumerate(batches):
        going_on.add(labels, scores.astype(np.float64) if nth % 2 else scores, *weights)
        going_on.auc()
    assert numbers(going_on) == whole


def test_a_state_without_its_arrays_is_refused() -> None:
    with pytest.raises(InputError, match="sorted rows must have scores, positives, negatives, found nothing"):
        ScoreCounts.unpack({}, weighted=False)


def test_a_state_merges_itself() -> None:
    batches = batches_of(5, *make_rows("ties"))
    twice = counts_of(*batches)
    twice.merge(twice)
    assert numbers(twice) == numbers(counts_of(*batches, *batches))
    for _ in range(40):  # doubles the rows, not the scores
        twice.merge(twice)
    assert twice.auc() == counts_of(*batches).auc()


def test_many_batches_keep_24_bytes_per_score() -> None:
    n, draw = 1 << 17, np.random.default_rng(3)
    batches = batches_of(16, draw.random(n) < 0.5, draw.random(n))
    counts_of(*batches[:2]).auc()
    tracemalloc.start()
    counts = counts_of(*batches)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.pairs().positives + counts.pairs().negatives == n
    assert held < 25 * n


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_rows_are_those_of_comparing_all(
    kind: str, share: float, dtype: Any, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Launcher, "way", way)
    labels, scores = make_rows(kind, share, dtype)
    expected = twice_pairs(labels, scores)
    assert sorting.pairs_of_rows(labels, scores, 2).tolist() == expected
    pairs = counts_of((labels, scores)).pairs()
    assert pairs == (sum(np.array(expected)[labels == 1]), labels.sum(), N - labels.sum())


def test_pairs_of_no_rows() -> None:
    assert len(sorting.pairs_of_rows(np.zeros(0, np.int8), np.zeros(0), 2)) == 0


@pytest.mark.parametrize("shift", [0, 3])
def test_what_a_row_counts_is_rounded(shift: int) -> None:
    labels, scores = make_rows("ties")
    expected = [(own + (1 << shift >> 1)) >> shift for own in twice_pairs(labels, scores)]
    for n in (N, N - 1):  # all rows, and rows that are looked up
        rows = influence.BatchRows(labels[:n].view(np.bool_), scores[:n], None, np.array([0, 0, n]), 2)
        assert counts_of((labels, scores)).pairs_of_users(rows, shift).tolist() == [0, sum(expected[:n])]


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_effects_of_users_are_those_of_one_batch(
    dtype: Any, n_threads: int, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Launcher, "way", way)
    draw, (labels, scores) = np.random.default_rng(4), make_rows("ties", dtype=dtype)
    indptr, plans = np.r_[0, np.sort(draw.integers(0, N, 99)), N], draw.integers(0, 2, 100)
    found = []
    for edges in ([0, 100], [0, 1, 40, 70, 100]):
        evaluation = RowEvaluation(["auc", "gauc"], per_user=True, n_threads=n_threads)
        for look_at in (functools.partial(evaluation.add, progress=None), evaluation.second_pass):
            for first, last in itertools.pairwise(edges):
                own = slice(indptr[first], indptr[last])
                users = {"user_ids": np.arange(first, last), "groups": plans[first:last]}
                rows = labels[own], scores[own], indptr[first : last + 1] - indptr[first]
                look_at(evaluation.prepare(*rows, users))
        report = evaluation.report()
        found.append([report.to_dict(), report.per_user["gauc"].tobytes()])
    assert found[0] == found[1]


def test_the_test_of_two_areas_has_the_same_bits_in_any_order() -> None:
    labels, one = make_rows("ties")
    other, order = make_rows("all differ")[1], np.random.default_rng(0).permutation(N)
    expected = fastrec.auc_test(labels, one, other)
    assert fastrec.auc_test(labels[order], one[order], other[order]) == expected


@pytest.mark.parametrize("bits", [20, 40])
def test_sums_of_squares_are_exact(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auc, "ROWS_PER_SUM", 50)
    values = np.random.default_rng(3).integers(1 - 2**bits, 2**bits, N)
    assert auc._exact_sum(values, areas.sum_of_squares) == sum(int(own) ** 2 for own in values)


EDGES = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0, -1.0]


def make_coded_rows(n: int, n_codes: int, dtype: Any, *, seed: int) -> tuple[Any, Any, Any]:
    """Return codes from -1 on, of which the last is rare, labels and scores of both signs with ties."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(-1, n_codes, n).astype(np.int32)
    codes[(codes == n_codes - 1) & (draw.random(n) < 0.9)] = 0
    scores = np.round(draw.normal(size=n), 2)
    scores[: len(EDGES)] = EDGES[:n]
    return codes, draw.random(n) < 0.3, scores.astype(dtype)


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
    codes, labels, scores = make_coded_rows(n, n_codes, dtype, seed=n)
    found = keys.sort_by_code(codes, labels, scores, n_codes, n_threads)
    assert len(found) == n_codes and sum(len(own.keys) for own in found) == (codes >= 0).sum()
    for code, own in enumerate(found):
        assert numbers(ScoreCounts.of_keys(own)) == numbers(alone(codes, labels, scores, code))


def test_keys_are_counted_when_rows_are_added_or_packed() -> None:
    codes, labels, scores = make_coded_rows(500, 3, np.float32, seed=2)
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
    assert math.isnan(ScoreCounts.of_keys(keys.SortedKeys(np.zeros(0, np.uint32), [0], 0, [])).auc_error().std_error)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interpreted_and_compiled(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    rows = make_coded_rows(1000, 3, dtype, seed=3)

    def found() -> list[Any]:
        return [numbers(ScoreCounts.of_keys(own)) for own in keys.sort_by_code(*rows, 3, 1)]

    monkeypatch.setattr(Launcher, "way", "compiled")
    compiled = found()
    monkeypatch.setattr(Launcher, "way", "interpreted")
    assert found() == compiled
