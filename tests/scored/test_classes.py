"""Confusion matrices at thresholds and counts of several classes: worked cases, oracle, sklearn, laws, bad input."""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.exceptions import InputError, InputTypeError
from fastrec.kernels.confusion import SLICE
from fastrec.scored.auc import auc
from fastrec.scored.classes import ClassCounts, count_classes
from fastrec.scored.confusion import Confusion, confusion_matrix
from support.arrays import STRINGS
from support.score_oracle import CLASSES, Row, counts_at

COUNTS = ("tp", "fp", "fn", "tn")
MEASURES = ("precision", "recall", "specificity", "fpr", "accuracy", "f_beta", "mcc")
UNDEFINED = (0.0, 1.0, math.nan)
SCORES = [0.0, -0.0, 0.1, 0.5, 0.7, 0.5 + 2.0**-30, 1.0, -3.0, 1e300, -1e300, 1e-60, math.inf, -math.inf]


def same(found: Any, wanted: Any) -> bool:
    """Return whether two arrays have the same type, shape and content, bit by bit except for the payload of NaN."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f")


def bits(table: Confusion) -> bytes:
    return b"".join(getattr(table, name).tobytes() for name in COUNTS)


def rows_of(labels: Sequence[float], scores: Any, weights: Sequence[float] | None = None) -> tuple[Row, ...]:
    weights = [1.0] * len(labels) if weights is None else weights
    columns = zip(labels, np.asarray(scores).tolist(), weights, strict=True)
    return tuple(Row(label, score, Fraction(weight)) for label, score, weight in columns)


# Worked cases


def test_negatives_repeated_ten_times() -> None:
    """Case 13: AUC keeps its bits, precision at a threshold becomes TP / (TP + 10 FP)."""
    labels, scores = np.array([0, 1, 1, 1, 0, 0, 1]), np.array([5.0, 4, 3, 3, 3, 2, 1])
    times = np.where(labels == 0, 10, 1)
    thresholds = [0, 1, 2, 3, 4, 5]
    once = confusion_matrix(labels, scores, thresholds)
    often = confusion_matrix(np.repeat(labels, times), np.repeat(scores, times), thresholds)
    assert same(often.precision(), once.tp / (once.tp + 10 * once.fp))
    assert same(often.recall(), once.recall())
    assert same(often.fpr(), once.fpr())
    again = np.repeat(labels, times), np.repeat(scores, times)
    assert auc(*again) == auc(labels, scores) == 5 / 12
    assert fastrec.evaluate_scores(*again, [0, len(again[0])], "gauc")["gauc"] == 5 / 12


def test_rare_positives_and_a_constant_score() -> None:
    """Case 14: accuracy .999 says nothing, as AUC is .5."""
    labels = np.zeros(1000, int)
    labels[17] = 1
    scores = np.full(1000, 0.1)
    table = confusion_matrix(labels, scores, 0.5)
    assert table.accuracy().tolist() == [0.999]
    assert table.mcc().tolist() == [0.0]
    assert auc(labels, scores) == 0.5


def test_a_matrix_by_hand() -> None:
    table = confusion_matrix([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.4, 0.2, 0.1], [0.5])
    assert [getattr(table, name).tolist() for name in COUNTS] == [[2], [1], [1], [2]]
    assert table.precision()[0] == table.recall()[0] == table.specificity()[0] == table.accuracy()[0] == 2 / 3
    assert table.fpr()[0] == 1 / 3
    assert table.mcc()[0] == pytest.approx(1 / 3, abs=1e-15)
    assert table.f_beta(2)[0] == pytest.approx(10 / 15, abs=1e-15)


def test_three_classes_by_hand() -> None:
    counts = count_classes(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    assert counts.classes.tolist() == ["a", "b", "c"]
    assert counts.matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert [counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()] == [[1, 1, 0], [0, 2, 0], [1, 0, 1]]
    assert counts.precision() == pytest.approx((1 + 1 / 3 + 0) / 3, abs=1e-15)
    assert counts.precision(zero_division=math.nan) == pytest.approx((1 + 1 / 3) / 2, abs=1e-15)
    assert counts.recall("weighted") == counts.recall("micro") == counts.accuracy() == 0.5
    assert counts.f_beta() == pytest.approx((2 / 3 + 1 / 2 + 0) / 3, abs=1e-15)
    p, r = 4 / 9, 1 / 2
    assert counts.f_beta(of="means") == pytest.approx(2 * p * r / (p + r), abs=1e-15)


# Comparing scores with thresholds


def test_float32_scores_are_compared_as_they_are() -> None:
    scores = np.float32([0.1, 0.7])  # a little more and a little less than the doubles
    assert confusion_matrix([1, 1], scores, [0.1]).tp.tolist() == [2]
    assert confusion_matrix([1, 1], scores, [0.7, float(np.float32(0.7))]).tp.tolist() == [0, 1]
    assert confusion_matrix([1, 1], scores.astype(np.float64), [0.1, 0.7]).tp.tolist() == [2, 0]
    assert confusion_matrix([1, 1], [0.1, 0.7], [0.1, 0.7]).tp.tolist() == [2, 1]


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=8), st.data())
def test_no_float32_falls_on_the_wrong_side(scores: list[float], data: st.DataObject) -> None:
    near = st.sampled_from(scores).flatmap(
        lambda score: st.sampled_from([score, math.nextafter(score, math.inf), math.nextafter(score, -math.inf)])
    )
    thresholds = data.draw(st.lists(near | st.floats(allow_nan=False), min_size=1, max_size=5))
    found = confusion_matrix([1] * len(scores), np.array(scores, np.float32), thresholds).tp
    assert found.tolist() == [sum(score >= threshold for score in scores) for threshold in thresholds]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_, ">f4", ">i4"])
def test_numbers_of_any_type(dtype: Any) -> None:
    labels, scores = np.array([0, 1, 0, 1]).astype(dtype), np.array([0, 1, 1, 0]).astype(dtype)
    assert confusion_matrix(labels, scores, [1]).tp.tolist() == [1]
    views = np.repeat(labels, 2)[::2], np.repeat(scores, 2)[::2]
    views[1].flags.writeable = False
    assert confusion_matrix(*views, np.array([1, 9, 0])[::2]).tp.tolist() == [1, 2]


@pytest.mark.parametrize("module", ["pandas", "polars", "pyarrow"])
def test_columns_of_frames(module: str) -> None:
    library = pytest.importorskip(module)
    column = library.array if module == "pyarrow" else library.Series
    table = confusion_matrix(column([1, 0, 1]), column([0.9, 0.8, 0.1]), [0.5], sample_weight=column([1.0, 2.0, 3.0]))
    assert [table.tp.tolist(), table.fp.tolist(), table.fn.tolist()] == [[1.0], [2.0], [3.0]]
    counts = count_classes(column(["b", "ab", "b"]), column(["b", "b", "ab"]))
    assert counts.classes.tolist() == ["ab", "b"]
    assert counts.matrix.tolist() == [[0, 1], [1, 1]]
    with pytest.raises(InputTypeError):
        count_classes(column(["b", None]), column(["b", "b"]))


def test_texts_of_any_type() -> None:
    texts = ["b", "ab", "b"]
    of_numpy = [np.array(texts, dtype) for dtype in (None, object, *STRINGS)]
    for array in (*of_numpy, tuple(texts)):
        assert count_classes(array, texts).tp.tolist() == [1, 2]


def test_thresholds_keep_their_order_and_copies() -> None:
    thresholds = [0.5, -math.inf, 0.2, 0.5, math.inf, -0.0]
    table = confusion_matrix([1, 0, 1], [0.5, 0.3, 0.0], thresholds)
    assert table.thresholds.tolist() == thresholds
    assert table.tp.tolist() == [1, 2, 1, 1, 0, 2]
    assert table.fp.tolist() == [0, 1, 1, 0, 0, 1]


# The oracle


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[list[float]], list[list[float]], list[float]]:
    """Return labels, scores and weights of some users, and thresholds."""
    row = st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.sampled_from([0.0, 1.0, 0.5, 3.25, 0.1, 1e-3]))
    users = draw(st.lists(st.lists(row, max_size=8), max_size=4))
    thresholds = draw(st.lists(st.sampled_from(SCORES), min_size=1, max_size=6))
    labels, scores, weights = ([[own[at] for own in rows] for rows in users] for at in range(3))
    return labels, scores, weights, thresholds * draw(st.sampled_from([1, 1, 33]))


def values_of(rows: tuple[Row, ...], threshold: float, measure: str) -> float | None:
    numerator, denominator = CLASSES[measure](counts_at(rows, threshold))
    return None if denominator == 0 else float(numerator / denominator)


@pytest.mark.thorough
@settings(deadline=None)
@given(tables(), st.sampled_from([np.float32, np.float64]), st.booleans(), st.sampled_from(UNDEFINED))
def test_each_user_as_the_oracle_says(table: Any, dtype: Any, weighted: bool, zero_division: float) -> None:
    labels, scores, weights, thresholds = table
    with np.errstate(over="ignore"):
        flat = np.array([*chain(*scores)], dtype)
    indptr = np.cumsum([0, *map(len, labels)])
    own_weights = np.array([*chain(*weights)]) if weighted else None
    found = confusion_matrix([*chain(*labels)], flat, thresholds, indptr=indptr, sample_weight=own_weights)
    assert found.tp.shape == (len(labels), len(thresholds))
    assert found.tp.dtype == (np.float64 if weighted else np.int64)
    for user, (own, weight) in enumerate(zip(labels, weights, strict=True)):
        rows = rows_of(own, flat[indptr[user] : indptr[user + 1]], weight if weighted else None)
        for at, threshold in enumerate(thresholds):
            wanted = [float(count) for count in counts_at(rows, threshold)]
            assert [getattr(found, name)[user, at] for name in COUNTS] == pytest.approx(wanted, rel=1e-15)
            for measure in MEASURES:
                value = values_of(rows, threshold, measure)
                wanted_value = zero_division if value is None else value
                got = getattr(found, measure)(zero_division=zero_division)[user, at]
                assert got == pytest.approx(wanted_value, abs=1e-12, nan_ok=True), measure


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_f_of_means(average: str, beta: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels, predictions = rng.integers(0, 4, (2, 12))
        found = count_classes(labels, predictions, sample_weight=rng.choice([0.0, 1.0, 3.25], 12) if seed % 2 else None)
        p, r = found.precision(average), found.recall(average)
        wanted = (1 + beta**2) * p * r / (beta**2 * p + r) if p + r else 0.0
        assert found.f_beta(beta, average, of="means") == pytest.approx(wanted, abs=1e-12)
        assert found.f_beta(beta, average, of="means") >= found.f_beta(beta, average) - 1e-12


# scikit-learn


@pytest.fixture(scope="module")
def rival() -> Any:
    return pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed: pip install scikit-learn")


@pytest.mark.thorough(except_for="^1-")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_thresholds_against_scikit_learn(rival: Any, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    labels, scores = rng.integers(0, 2, n), np.round(rng.random(n), 1)
    weights = rng.random(n) if weighted else None
    thresholds = [0.0, 0.3, 0.5, 1.0, 2.0]
    table = confusion_matrix(labels, scores, thresholds, sample_weight=weights)
    for at, threshold in enumerate(thresholds):
        call = {"y_true": labels, "y_pred": (scores >= threshold).astype(int), "sample_weight": weights}
        (tn, fp), (fn, tp) = rival.confusion_matrix(**call, labels=[0, 1])
        assert [getattr(table, name)[at] for name in COUNTS] == pytest.approx([tp, fp, fn, tn], rel=1e-12)
        assert table.precision()[at] == pytest.approx(rival.precision_score(**call, zero_division=0), abs=1e-12)
        assert table.recall(1.0)[at] == pytest.approx(rival.recall_score(**call, zero_division=1), abs=1e-12)
        assert table.accuracy()[at] == pytest.approx(rival.accuracy_score(**call), abs=1e-12)
        assert table.mcc()[at] == pytest.approx(rival.matthews_corrcoef(**call), abs=1e-12)
        f_two = rival.fbeta_score(**call, beta=2, zero_division=math.nan)
        assert table.f_beta(2, math.nan)[at] == pytest.approx(f_two, abs=1e-12, nan_ok=True)


@pytest.mark.thorough(except_for="^[0-2]-")
@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("zero_division", UNDEFINED)
@pytest.mark.parametrize("seed", range(10))
def test_classes_against_scikit_learn(rival: Any, seed: int, zero_division: float, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    labels, predictions = rng.integers(0, n_classes, n), rng.integers(0, n_classes, n)
    weights = rng.random(n) if weighted else None
    found = count_classes(labels, predictions, sample_weight=weights)
    wanted = rival.confusion_matrix(labels, predictions, sample_weight=weights)
    assert np.allclose(found.matrix, wanted, rtol=1e-12, atol=0)
    for average in ("macro", "micro", "weighted", "none"):
        p, r, f, _ = rival.precision_recall_fscore_support(
            labels,
            predictions,
            beta=0.5,
            average=None if average == "none" else average,
            zero_division=zero_division,
            sample_weight=weights,
        )
        for got, of_rival in (
            (found.precision(average, zero_division), p),
            (found.recall(average, zero_division), r),
            (found.f_beta(0.5, average, zero_division=zero_division), f),
        ):
            assert got == pytest.approx(of_rival, abs=1e-12, nan_ok=True)


# Laws


def random_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random(n) < 0.2, np.round(rng.random(n, np.float32), 2), rng.random(n)


@pytest.mark.parametrize("n_thresholds", [1, 2, 300])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by_user", [False, True])
def test_threads_change_no_bit(n_thresholds: int, weighted: bool, by_user: bool) -> None:
    labels, scores, weights = random_rows(300_000)
    indptr = np.r_[0, np.sort(np.random.default_rng(1).integers(0, 300_000, 999)), 300_000] if by_user else None
    call = functools.partial(
        confusion_matrix,
        labels,
        scores,
        np.linspace(0, 1, n_thresholds),
        indptr=indptr,
        sample_weight=weights if weighted else None,
    )
    assert bits(call(n_threads=1)) == bits(call(n_threads=2)) == bits(call(n_threads=7)) == bits(call())


@pytest.mark.parametrize("n_thresholds", [1, 2, 300])
@pytest.mark.parametrize("n_rows", [0, 1, SLICE - 1, SLICE, SLICE + 1, 5 * SLICE + 3])
def test_thresholds_count_all_rows(n_thresholds: int, n_rows: int) -> None:
    labels, scores, weights = random_rows(n_rows)
    thresholds = np.linspace(0, 1, n_thresholds)
    table = confusion_matrix(labels, scores, thresholds)
    assert set((table.tp + table.fp + table.fn + table.tn).tolist()) == {n_rows}
    assert table.tp.tolist() == [int((labels & (scores >= threshold)).sum()) for threshold in thresholds]
    assert table.fp.tolist() == [int((~labels & (scores >= threshold)).sum()) for threshold in thresholds]
    whole = confusion_matrix(labels, scores, thresholds, sample_weight=weights)
    for name, rows in (("tp", labels), ("fp", ~labels)):
        wanted = [math.fsum(weights[rows & (scores >= threshold)]) for threshold in thresholds]
        assert getattr(whole, name).tolist() == pytest.approx(wanted, rel=1e-14)
    for name, rows in (("fn", labels), ("tn", ~labels)):
        wanted = [math.fsum(weights[rows & (scores < threshold)]) for threshold in thresholds]
        assert getattr(whole, name).tolist() == pytest.approx(wanted, rel=1e-14)


def test_users_add_up_to_all_rows() -> None:
    labels, scores, _ = random_rows(10_000)
    indptr = np.r_[0, 0, np.sort(np.random.default_rng(2).integers(0, 10_000, 50)), 10_000]
    of_users = confusion_matrix(labels, scores, [0.2, 0.8, 0.5], indptr=indptr)
    of_rows = confusion_matrix(labels, scores, [0.2, 0.8, 0.5])
    for name in COUNTS:
        assert same(getattr(of_users, name).sum(axis=0), getattr(of_rows, name))
    assert of_users.tp[0].tolist() == [0, 0, 0]
    assert np.isnan(of_users.accuracy(math.nan)[0]).all()


def test_weights_of_one_are_counts_and_weights_scale() -> None:
    labels, scores, weights = random_rows(20_000)
    thresholds = np.linspace(0, 1, 50)
    counted = confusion_matrix(labels, scores, thresholds)
    weighed = confusion_matrix(labels, scores, thresholds, sample_weight=np.ones(20_000, np.float32))
    small, large = (
        confusion_matrix(labels, scores, thresholds, sample_weight=weights * factor) for factor in (2.0**-300, 2.0**300)
    )
    for name in COUNTS:
        assert same(getattr(weighed, name), getattr(counted, name).astype(float))
    for measure in MEASURES:
        assert same(getattr(weighed, measure)(), getattr(counted, measure)())
        assert same(getattr(small, measure)(), getattr(large, measure)())


def test_large_weights_do_not_swallow_small_ones() -> None:
    table = confusion_matrix([1, 1, 1, 0], [0.9, 0.8, 0.1, 0.7], [0.5], sample_weight=[1e16, 1.0, 1.0, 1.0])
    assert [getattr(table, name)[0] for name in COUNTS] == [1e16, 1.0, 1.0, 0.0]
    ten = confusion_matrix([1] * 11, [0.9] * 11, [0.5], sample_weight=[1e16] + [1.0] * 10)
    assert ten.tp[0] == 1e16 + 10


def test_perfect_and_perfectly_wrong() -> None:
    labels, _, weights = random_rows(5_000)
    for weight in (None, weights):
        assert confusion_matrix(labels, labels, 1, sample_weight=weight).mcc().tolist() == [1.0]
        assert confusion_matrix(labels, ~labels, 1, sample_weight=weight).mcc().tolist() == [-1.0]


def test_classes_of_two_are_the_confusion_matrix() -> None:
    labels, scores, weights = random_rows(3_000)
    for weight in (None, weights):
        table = confusion_matrix(labels, scores, 0.5, sample_weight=weight)
        counts = count_classes(labels.astype(int), scores >= 0.5, sample_weight=weight)
        assert counts.matrix.ravel() == pytest.approx([table.tn[0], table.fp[0], table.fn[0], table.tp[0]], rel=1e-13)
        assert counts.f_beta(average="none")[1] == pytest.approx(table.f_beta()[0], rel=1e-13)


KINDS: list[list[Any]] = [
    [-(2**63), 0, 2**63 - 1],
    [0, 7, 2**64 - 1],
    [-4, 5, 6, 9, 100],
    ["", "10", "9", "a", "ab", "b", "ä"],
    [False, True],
    [f"class {at:02}" for at in range(40)],
    [at * 2**56 - 2**62 for at in range(40)],
]


@pytest.mark.parametrize("names", KINDS, ids=range(len(KINDS)))
def test_names_of_classes_change_nothing(names: list[Any]) -> None:
    labels, predictions = np.random.default_rng(0).integers(0, len(names), (2, 1_000))
    plain = count_classes(labels, predictions)
    for form in (list, lambda values: np.array(values, object)):
        other = count_classes(*(form([names[at] for at in codes]) for codes in (labels, predictions)))
        assert same(other.matrix, plain.matrix)
        assert other.classes.tolist() == names


@pytest.mark.parametrize("weighted", [False, True])
def test_many_classes_take_little_memory(weighted: bool) -> None:
    n = 30_000
    labels, predictions = np.arange(n), np.r_[np.arange(1, n), n - 1]
    counts = count_classes(labels, predictions, sample_weight=np.full(n, 0.5) if weighted else None)
    assert counts.tp.sum() == (0.5 if weighted else 1)
    assert len(counts.pairs[2]) == n
    with pytest.raises(InputError, match=r"a matrix of 30,000 x 30,000 classes would take 7\.2 GB: use `pairs`"):
        counts.matrix  # noqa: B018


# Text forms


def test_a_table_of_thresholds_is_shown() -> None:
    text = repr(confusion_matrix([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1], np.linspace(0, 1, 25)))
    lines = text.splitlines()
    assert lines[0].split() == ["threshold", "tp", "fp", "fn", "tn", "precision", "recall"]
    assert lines[1].split() == ["0", "2", "2", "0", "0", "0.5000", "1.0000"]
    assert lines[-1] == "... 5 more thresholds"
    assert len({len(line) for line in lines[:-1]}) == 1
    by_user = confusion_matrix([1, 0], [0.5, 0.5], [0.1, 0.2, 0.3], indptr=[0, 1, 2])
    assert repr(by_user) == "Confusion(2 users, 3 thresholds)"


def test_a_table_of_classes_is_shown() -> None:
    lines = repr(count_classes(np.arange(30), np.arange(30))).splitlines()
    assert lines[0].split() == ["class", "precision", "recall", "f1", "support"]
    assert lines[1].split() == ["0", "1.0000", "1.0000", "1.0000", "1"]
    assert lines[21:] == [
        "... 10 more classes",
        "macro        1.0000  1.0000  1.0000       30",
        "weighted     1.0000  1.0000  1.0000       30",
        "accuracy 1.0000",
    ]
    weighed = repr(count_classes(["a"], ["a"], sample_weight=[1 / 3]))
    assert weighed.splitlines()[1].split() == ["a", "1.0000", "1.0000", "1.0000", "0.333333"]


def test_rows_are_plain() -> None:
    rows = count_classes(["a", "b", "b"], ["a", "b", "a"]).to_rows()
    assert rows[0] == {
        "class": "a",
        "precision": 0.5,
        "recall": 1.0,
        "f1": 2 / 3,
        "support": 1,
        "tp": 1,
        "fp": 1,
        "fn": 0,
    }
    assert [type(value) for value in rows[1].values()] == [str, float, float, float, int, int, int, int]


def test_nothing_to_count() -> None:
    for nothing in ([], np.array([])):
        counts = count_classes(nothing, nothing)
        assert counts.to_rows() == []
    assert counts.matrix.shape == (0, 0)
    assert [counts.f_beta(), counts.recall("weighted", 1.0), counts.accuracy(1.0)] == [0.0, 1.0, 1.0]
    assert math.isnan(counts.precision("micro", math.nan))
    assert "accuracy" in repr(counts)
    table = confusion_matrix([], [], [0.5])
    assert [table.tp.tolist(), table.precision(1.0).tolist()] == [[0], [1.0]]
    assert confusion_matrix([], [], [0.5], indptr=[0]).tp.shape == (0, 1)
    assert confusion_matrix([], [], [0.5], indptr=[0, 0], sample_weight=[]).tp.tolist() == [[0.0]]


# Bad input

BAD_ROWS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"scores": [0.5, math.nan, 0.1]}, InputError, "scores must not be NaN, found NaN at row 1"),
    ({"scores": [0.5, 0.1]}, InputError, "labels and scores must have the same length, found 3 and 2"),
    ({"labels": [0, 1, 2]}, InputError, "labels must be 0 or 1, found 2 at row 2"),
    ({"thresholds": []}, InputError, "thresholds must be from 1 to 16,777,216 numbers, found 0"),
    ({"thresholds": np.zeros(2**24 + 1)}, InputError, "thresholds must be from 1 .* found 16,777,217"),
    ({"thresholds": [0.5, math.nan]}, InputError, "thresholds must not be NaN, found NaN at position 1"),
    ({"thresholds": math.nan}, InputError, "thresholds must not be NaN, found NaN at position 0"),
    ({"thresholds": [[0.5]]}, InputError, r"thresholds must be 1-D, found shape \(1, 1\)"),
    ({"thresholds": "half"}, InputTypeError, "thresholds must be numbers of at most 64 bits, found dtype <U4"),
    ({"thresholds": [0.5, "half"]}, InputTypeError, "thresholds must be numbers of at most 64 bits, found dtype <U"),
    ({"thresholds": None}, InputTypeError, "thresholds must be numbers of at most 64 bits, found dtype object"),
    ({"sample_weight": [1, 1]}, InputError, "sample_weight must have one weight per row, 3; found 2"),
    ({"sample_weight": [1, -1, 1]}, InputError, "sample_weight must be 0 or from .*, found -1.0 at row 1"),
    ({"sample_weight": [1, 1, math.nan]}, InputError, "sample_weight .* found nan at row 2"),
    ({"sample_weight": [1, 1, math.inf]}, InputError, "sample_weight .* found inf at row 2"),
    ({"sample_weight": [1, 1, 1e200]}, InputError, r"sample_weight .* found 1e\+200 at row 2"),
    ({"sample_weight": ["a", "b", "c"]}, InputTypeError, "sample_weight must be numbers of at most 64 bits"),
    ({"indptr": [0, 2]}, InputError, "indptr must end at the number of values, 3"),
    ({"indptr": [0, 2, 1, 3]}, InputError, "indptr must not decrease"),
    ({"indptr": [0.0, 3.0]}, InputTypeError, "indptr must hold integers"),
    ({"n_threads": 0}, InputError, "n_threads must be at least 1"),
    ({"n_threads": 1.5}, InputTypeError, "n_threads must be an integer"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD_ROWS)
def test_bad_rows_are_refused_by_name(change: dict[str, Any], error: type[Exception], message: str) -> None:
    call = {"labels": [0, 1, 1], "scores": [0.1, 0.2, 0.3], "thresholds": [0.5], **change}
    with pytest.raises(error, match=message):
        confusion_matrix(**call)


BAD_CLASSES: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ([1, 2], [1], {}, InputError, "labels and predictions must have the same length, found 2 and 1"),
    ([1.0, 2.0], [1, 2], {}, InputTypeError, "labels must be all integers or all strings, found float"),
    (np.array([1.0]), [1], {}, InputTypeError, "labels must be integers or strings, found dtype float64"),
    ([1, 2], ["a", "b"], {}, InputTypeError, "labels and predictions must be of one kind, found integers and strings"),
    ([1, "a"], [1, 2], {}, InputTypeError, "labels must be all integers or all strings, found int, str"),
    ([1, True], [1, 1], {}, InputTypeError, "found bool, int"),
    (np.array(["a", None], object), ["a", "b"], {}, InputTypeError, "found NoneType, str"),
    (["a"], [b"a"], {}, InputTypeError, "predictions must be all integers or all strings, found bytes"),
    (["a"], np.array([b"a"]), {}, InputTypeError, "predictions must be integers or strings, found dtype"),
    ([[1], [2]], [1, 2], {}, InputError, "labels must be 1-D"),
    (np.zeros((2, 2), int), [1, 2], {}, InputError, r"labels must be 1-D, found shape \(2, 2\)"),
    ({1, 2}, [1, 2], {}, InputError, "labels must be 1-D"),
    ([2**64], [1], {}, InputError, "labels must fit 64 bits, found 18446744073709551616"),
    ([2**64 - 1], [-1], {}, InputError, "must fit 64 bits together, found -1 and 18446744073709551615"),
    ([1, 2], [1, 2], {"sample_weight": [1, -1]}, InputError, "sample_weight must be 0 or from"),
    (np.ma.masked_array([1, 2], [0, 1]), [1, 2], {}, InputTypeError, "masked"),
]


@pytest.mark.parametrize(("labels", "predictions", "options", "error", "message"), BAD_CLASSES)
def test_bad_classes_are_refused_by_name(
    labels: Any, predictions: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        count_classes(labels, predictions, **options)


BAD_CALLS: list[tuple[Callable[[Confusion, ClassCounts], Any], str]] = [
    (lambda table, counts: table.precision(0.5), "zero_division must be 0, 1 or float.'nan'., found 0.5"),
    (lambda table, counts: table.mcc("warn"), "zero_division must be 0, 1 or float.'nan'., found 'warn'"),
    (lambda table, counts: table.f_beta(-1), "beta must be a number from 0 to 1000, found -1"),
    (lambda table, counts: table.f_beta(math.nan), "beta must be a number from 0 to 1000, found nan"),
    (lambda table, counts: table.f_beta("1"), "beta must be a number from 0 to 1000, found '1'"),
    (
        lambda table, counts: counts.precision("mean"),
        "average must be one of macro, micro, weighted, none, found 'mean'",
    ),
    (lambda table, counts: counts.recall(None), "average must be one of .*, found None"),
    (lambda table, counts: counts.recall("macro", 2), "zero_division must be 0, 1 or float.'nan'., found 2"),
    (lambda table, counts: counts.f_beta(of="mean"), "of must be classes or means, found 'mean'"),
    (lambda table, counts: counts.f_beta(of="means", average="none"), "of='means' needs an average"),
    (lambda table, counts: counts.f_beta(1001, of="means"), "beta must be a number from 0 to 1000"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_bad_options_are_refused_by_name(call: Callable[[Confusion, ClassCounts], Any], message: str) -> None:
    table, counts = confusion_matrix([1, 0], [0.5, 0.4], [0.5]), count_classes([1, 0], [1, 1])
    with pytest.raises(InputError, match=message):
        call(table, counts)


def test_classes_below_0_and_past_63_bits_are_refused() -> None:
    """NumPy 1 wraps -1 around."""
    with pytest.raises(InputError, match="must fit 64 bits, found 9223372036854775808"):
        count_classes([-1, 2**63], [-1, 2**63])
    assert count_classes([1, 2**63], [1, 2**63]).classes.tolist() == [1, 2**63]
