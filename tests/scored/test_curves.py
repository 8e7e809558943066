"""Metrics of the order of all rows: against pairs counted one by one, against scikit-learn, and laws of equal bits."""

import itertools
import math
import pickle
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.exceptions import FastrecError, InputError, InputTypeError
from fastrec.scored import sorting
from fastrec.scored.auc import AucTest, auc, auc_test
from fastrec.scored.curves import PrCurve, RocCurve, break_even_point, compare_curves, pr_curve, roc_curve
from fastrec.scored.histogram import ScoreHistogram, bounded_auc
from fastrec.scored.score_counts import ScoreCounts
from support import score_oracle
from support.arrays import area_of_trapezoids
from support.strategies import SCORES

compiles = settings(deadline=None)  # the first example of all waits for the compiler
CLOSE = 1e-12
LIMITS = [0.001, 0.1, 0.3, 0.5, 0.75, 0.999, 1.0]

Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]


# Rows in which the awkward cases are common


@st.composite
def rows(draw: st.DrawFn, *, most: int = 14, weighted: bool | None = None) -> Rows:
    """Draw 1 to `most` rows: labels, scores of either float with many ties, and weights (some 0, one not) or none."""
    n = draw(st.integers(1, most))
    pool = draw(st.lists(st.one_of(st.sampled_from(SCORES), st.floats(0, 1, width=32)), min_size=1, max_size=6))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    scores = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    with np.errstate(over="ignore"):
        values = np.array(scores, draw(st.sampled_from([np.float32, np.float64])))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        kinds = st.sampled_from([0.0, 1.0, 2.0, 0.1, 1 / 3, 0.25, 1e-9, 7e5])
        weights = np.array(draw(st.lists(kinds, min_size=n, max_size=n)))
        weights[draw(st.integers(0, n - 1))] = 1.0
    return np.array(labels, np.int8), values, weights


def random_rows(n: int, *, seed: int, dtype: Any = np.float64, distinct: int | None = None) -> Rows:
    """Return scores of both signs that depend on the labels."""
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.3).astype(np.int8)
    scores = random.normal(size=n) + 0.5 * labels
    if distinct is not None:
        scores = np.round(scores * distinct) / distinct
    return labels, scores.astype(dtype), random.random(n)


def has_both(labels: np.ndarray, weights: np.ndarray | None) -> bool:
    kept = labels if weights is None else labels[weights > 0]
    return len(set(kept.tolist())) == 2


def state_of(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> ScoreCounts:
    state = ScoreCounts(weighted=weights is not None)
    state.add(labels, scores, weights)
    return state


def bits(value: float) -> int:
    return int(np.array(value).view(np.int64)) if not math.isnan(value) else -1


# Against the oracle


def listed(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> score_oracle.Rows:
    given_weights = [1] * len(labels) if weights is None else weights.tolist()
    columns = zip(labels.tolist(), scores.tolist(), map(Fraction, given_weights), strict=True)
    return tuple(score_oracle.Row(*row) for row in columns if row[2] > 0)


def number(value: Any, default: float = math.nan) -> float:
    return default if value is None else float(value)


@given(rows(), st.sampled_from(LIMITS), st.sampled_from(["step", "trapezoid", "davis_goadrich"]))
@compiles
def test_areas_errors_and_distances(drawn: Rows, limit: float, interpolation: Any) -> None:
    labels, scores, weights = drawn
    state, given_rows = state_of(*drawn), listed(*drawn)
    part = auc(labels, scores, sample_weight=weights, max_fpr=limit)
    close = CLOSE if weights is None else 1e-9
    assert part == pytest.approx(number(score_oracle.auc(given_rows, max_fpr=limit)), abs=close, nan_ok=True)
    precision = number(score_oracle.average_precision(given_rows, interpolation=interpolation), 0.0)
    assert state.average_precision(interpolation) == pytest.approx(precision, abs=CLOSE)
    assert state.ks() == pytest.approx(number(score_oracle.ks(given_rows)), abs=CLOSE, nan_ok=True)
    error, expected = state.auc_error().std_error, score_oracle.delong_error(given_rows)
    assert error == pytest.approx(expected, abs=1e-7, nan_ok=True)
    assert error**2 == pytest.approx(expected**2, abs=CLOSE, nan_ok=True)


@pytest.mark.parametrize("share", [1e-9, 1e-5, 9.9e-4, 1.1e-3, 0.3, 5.0])
def test_davis_goadrich_on_steps_of_any_size(share: float) -> None:
    """A short step has all its digits too: the test compares its own share of the area."""
    counts = np.array([1000.0, 3000.0, 4000 * share / 3, 8000 * share / 3])
    own = np.array([1, 0, 1, 0], np.int8), np.array([2.0, 2.0, 1.0, 1.0]), counts
    expected = number(score_oracle.average_precision(listed(*own), interpolation="davis_goadrich"))
    assert state_of(*own).average_precision("davis_goadrich") == pytest.approx(expected, rel=1e-15)


BESIDE_CUTS = st.lists(st.sampled_from([0.001, 0.1, 0.2, 0.5, 1 / 3, 3.25, 1e-9, 1e17]), min_size=1, max_size=8)


@given(BESIDE_CUTS, st.integers(1, 6), st.integers(1, 4))
@compiles
def test_no_rounding_moves_a_row_across_a_cut(parts: list[float], copies: int, bins: int) -> None:
    """The same weights again and again: their sums are at the cuts, or off by the rounding of sums."""
    weights = np.tile(parts, copies)
    scores = np.linspace(0, 1, len(weights)).repeat(2)[: len(weights)]  # ties of two
    labels = np.arange(len(weights)) % 2
    naive = score_oracle.ece(listed(labels, scores, weights), bins=bins, strategy="quantile")
    assert naive is not None
    expected = pytest.approx(float(naive), rel=1e-9, abs=CLOSE)
    assert state_of(labels.astype(np.int8), scores, weights).ece(bins, "quantile") == expected
    text = f"ece(bins={bins}, strategy=quantile"
    asked = [f"{text})", f"{text}, average=user)"]
    report = fastrec.evaluate_scores(labels, scores, [0, len(labels)], asked, sample_weight=weights)
    assert [report[name] for name in asked] == [expected, expected]
    found = fastrec.calibration_curve(labels, scores, bins=bins, strategy="quantile", sample_weight=weights)
    assert found.ece == report[asked[0]] == expected


@given(rows())
@compiles
def test_roc_points(drawn: Rows) -> None:
    labels, scores, weights = drawn
    fpr, tpr, thresholds = roc_curve(labels, scores, sample_weight=weights)
    points = score_oracle.points(listed(*drawn))
    assert thresholds.tolist() == [math.inf, *(point.score for point in points)]
    for rates, counts in ((tpr, [point.tp for point in points]), (fpr, [point.fp for point in points])):
        if counts[-1]:
            assert rates.tolist() == pytest.approx([0.0, *(float(count / counts[-1]) for count in counts)], abs=CLOSE)
        else:
            assert np.isnan(rates).all()


@given(rows())
@compiles
def test_every_roc_point_is_the_pr_point_of_its_threshold(drawn: Rows) -> None:
    labels, scores, weights = drawn
    roc, pr = (curve(labels, scores, sample_weight=weights) for curve in (roc_curve, pr_curve))
    assert roc.thresholds[1:].tolist() == pr.thresholds[::-1].tolist()
    assert roc.true_positives.tolist() == pr.true_positives[::-1].tolist()
    assert roc.false_positives.tolist() == pr.false_positives[::-1].tolist()
    assert roc.tpr[1:].tolist() == pytest.approx(pr.recall[-2::-1].tolist(), nan_ok=True)
    points = score_oracle.points(listed(*drawn))
    precision = [*(float(p / (p + n)) for _, p, n in reversed(points)), 1.0]
    assert pr.precision.tolist() == pytest.approx(precision, abs=CLOSE)
    assert pr.recall[-1] == 0.0


@given(rows())
@compiles
def test_areas_under_curves(drawn: Rows) -> None:
    labels, scores, weights = drawn
    state = state_of(*drawn)
    for thin in (False, True):
        area = roc_curve(labels, scores, sample_weight=weights, thin=thin).area
        steps = pr_curve(labels, scores, sample_weight=weights, thin=thin).area
        assert area == pytest.approx(auc(labels, scores, sample_weight=weights), abs=CLOSE, nan_ok=True)
        assert bits(steps) == bits(state.average_precision())
        if weights is None:
            assert bits(area) == bits(auc(labels, scores))


@given(rows())
@compiles
def test_thinning_leaves_the_line_where_it_was(drawn: Rows) -> None:
    labels, scores, weights = drawn
    whole, thin = (roc_curve(labels, scores, sample_weight=weights, thin=each) for each in (False, True))
    if not has_both(labels, weights):
        return
    assert set(thin.thresholds.tolist()) <= set(whole.thresholds.tolist())
    along = thin.fpr + thin.tpr
    assert np.interp(whole.fpr + whole.tpr, along, thin.tpr) == pytest.approx(whole.tpr, abs=CLOSE)
    if weights is None:
        turns = np.diff(thin.false_positives)[1:] * np.diff(thin.true_positives)[:-1]
        assert (turns != np.diff(thin.false_positives)[:-1] * np.diff(thin.true_positives)[1:]).all()


def naive_break_even(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean over all orders that the scores allow."""
    p = int(labels.sum())
    values = [
        Fraction(sum(int(labels[row]) for row in order[:p]), p)
        for order in itertools.permutations(range(len(labels)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return float(sum(values) / len(values))


@given(rows(most=6, weighted=False))
@compiles
def test_break_even_is_r_precision_over_all_orders(drawn: Rows) -> None:
    labels, scores, _ = drawn
    value = break_even_point(labels, scores)
    if not labels.any():
        assert math.isnan(value)
    else:
        assert value == pytest.approx(naive_break_even(labels, scores), abs=CLOSE)
        assert break_even_point(labels, scores, sample_weight=np.full(len(labels), 3.0)) == value


def test_break_even_is_where_precision_and_recall_meet() -> None:
    labels, scores, _ = random_rows(1001, seed=5)
    curve = pr_curve(labels, scores)
    at = int(np.abs(curve.precision - curve.recall)[:-1].argmin())
    assert break_even_point(labels, scores) == curve.precision[at] == curve.recall[at]


# Two models


def half_order(above: float, below: float) -> Fraction:
    return Fraction(1 + (above > below) - (above < below), 2)


def naive_auc_test(labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> AucTest:
    areas = [score_oracle.all_pairs(listed(labels, scores)) for scores in (first, second)]
    assert areas[0] is not None and areas[1] is not None
    difference = areas[0] - areas[1]
    variance = Fraction(0)
    for label in (1, 0):
        own, others = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
        if len(own) < 2:
            return AucTest(float(areas[0]), float(areas[1]), float(difference), math.nan, math.nan, math.nan)
        sign = 1 if label else -1
        shares = [
            sum(
                half_order(sign * first[i], sign * first[j]) - half_order(sign * second[i], sign * second[j])
                for j in others
            )
            / len(others)
            for i in own
        ]
        mean = sum(shares) / len(own)
        variance += sum((share - mean) ** 2 for share in shares) / (len(own) - 1) / len(own)
    error = math.sqrt(variance)
    z = float(difference) / error if variance else math.copysign(math.inf, difference) if difference else 0.0
    return AucTest(float(areas[0]), float(areas[1]), float(difference), error, z, 2 * NormalDist().cdf(-abs(z)))


@given(rows(weighted=False), st.randoms(use_true_random=False))
@compiles
def test_auc_test(drawn: Rows, random: Any) -> None:
    labels, first, _ = drawn
    second = first.copy()
    for i in range(len(second)):
        second[i] = first[random.randrange(len(first))]
    found = auc_test(labels, first, second)
    if not has_both(labels, None):
        assert all(map(math.isnan, found))
        return
    assert list(found) == pytest.approx(list(naive_auc_test(labels, first, second)), rel=1e-9, abs=CLOSE, nan_ok=True)
    other = auc_test(labels, second, first)
    assert (other.auc_a, other.difference, other.z) == pytest.approx(
        (found.auc_b, -found.difference, -found.z), nan_ok=True
    )
    assert other.p_value == pytest.approx(found.p_value, nan_ok=True)


@pytest.mark.parametrize("shift", [1.5, 2.0, 4.0])
def test_small_p_values_of_auc_test_keep_their_digits(shift: float) -> None:
    normal = pytest.importorskip("scipy.stats").norm
    draw, labels = np.random.default_rng(0), np.repeat([0, 1], 150)
    found = auc_test(labels, draw.normal(size=300) + shift * labels, draw.normal(size=300))
    assert 7 < found.z < 20 and 0 < found.p_value < 1e-12
    assert found.p_value == pytest.approx(2 * normal.sf(found.z), rel=1e-9)


def test_auc_test_without_variance() -> None:
    labels, scores = [0, 0, 1, 1], [1, 2, 3, 4]
    assert auc_test(labels, scores, [10, 20, 30, 40]) == (1.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    assert auc_test(labels, scores, [4, 3, 2, 1]) == (1.0, 0.0, 1.0, 0.0, math.inf, 0.0)
    assert auc_test(labels, [4, 3, 2, 1], scores) == (0.0, 1.0, -1.0, 0.0, -math.inf, 0.0)
    assert auc_test([0, 1, 1], [1, 2, 3], [3, 2, 1])[:3] == (1.0, 0.0, 1.0)
    assert all(map(math.isnan, auc_test([0, 1, 1], [1, 2, 3], [3, 2, 1])[3:]))


def test_the_error_of_auc_covers_what_it_should() -> None:
    """The known value is inside the 95 % interval of about 95 % of samples."""
    truth = NormalDist().cdf(0.5 / math.sqrt(2))
    inside = 0
    for seed in range(400):
        labels, scores, _ = random_rows(300, seed=seed)
        state = state_of(labels, scores)
        inside += abs(state.auc() - truth) <= 1.96 * state.auc_error().std_error
    assert 0.91 <= inside / 400 <= 0.98


# Against scikit-learn


@pytest.fixture(scope="module")
def sklearn_metrics() -> Any:
    return pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is not installed: pip install 'fastrec-eval[test]'"
    )


RIVAL_ROWS = [
    pytest.param(n, dtype, distinct, id=f"{n}-{np.dtype(dtype).name}-{distinct}")
    for n in (2, 5, 50, 3000)
    for dtype in (np.float32, np.float64)
    for distinct in (1, 4, None)
]


@pytest.mark.thorough(except_for="^(2|50)-float64-(None-True|4-False)$")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "dtype", "distinct"), RIVAL_ROWS)
def test_scikit_learn_agrees(sklearn_metrics: Any, n: int, dtype: Any, distinct: int | None, weighted: bool) -> None:
    for seed in range(5):
        labels, scores, weights = random_rows(n, seed=seed, dtype=dtype, distinct=distinct)
        labels[:2] = 0, 1
        assert weights is not None
        weights[2::3] = 0.0
        weight = weights if weighted else None
        close = {"rel": 0, "abs": CLOSE}
        expected = sklearn_metrics.roc_auc_score(labels, scores, sample_weight=weight)
        assert auc(labels, scores, sample_weight=weight) == pytest.approx(expected, **close)
        for limit in LIMITS:
            expected = sklearn_metrics.roc_auc_score(labels, scores, sample_weight=weight, max_fpr=limit)
            # at a false positive rate of 0.001 the correction multiplies rounding by 1000
            value = auc(labels, scores, sample_weight=weight, max_fpr=limit)
            assert value == pytest.approx(expected, rel=0, abs=max(CLOSE, 1e-15 / limit))
        expected = sklearn_metrics.average_precision_score(labels, scores, sample_weight=weight)
        assert state_of(labels, scores, weight).average_precision() == pytest.approx(expected, **close)
        roc = roc_curve(labels, scores, sample_weight=weight)
        rival = sklearn_metrics.roc_curve(labels, scores, sample_weight=weight, drop_intermediate=False)
        pairs = [*zip(roc, rival, strict=True)]
        for thin in [False] if weighted else [False, True]:
            pr = pr_curve(labels, scores, sample_weight=weight, thin=thin)
            options = {"sample_weight": weight, "drop_intermediate": thin}
            pairs += zip(pr, sklearn_metrics.precision_recall_curve(labels, scores, **options), strict=True)
        for ours, theirs in pairs:
            assert ours.tolist() == pytest.approx(theirs.tolist(), **close)


# Worked cases


def test_worked_case_11() -> None:
    labels, scores = [0, 1, 1, 1, 0, 0, 1], [5, 4, 3, 3, 3, 2, 1]
    assert auc(labels, scores) == 5 / 12
    assert auc([0, 1, 0, 1, 1], [3, 2, 2, 2, 1]) == 1 / 6  # case 16
    curve = roc_curve(labels, scores)
    assert curve.area == 5 / 12
    assert area_of_trapezoids(curve.tpr, curve.fpr) == pytest.approx(5 / 12, abs=CLOSE)


# Laws


@given(rows())
@compiles
def test_all_forms_of_auc_agree(drawn: Rows) -> None:
    """Pairs, the curve, the negated scores and the swapped classes give the same integers."""
    labels, scores, weights = drawn
    exact, value = score_oracle.all_pairs(listed(*drawn)), auc(labels, scores, sample_weight=weights)
    assert value == pytest.approx(number(exact), abs=CLOSE if weights is not None else 0, rel=0, nan_ok=True)
    if exact is not None and weights is None:
        assert value == roc_curve(labels, scores).area
        assert auc(labels, -scores) == auc(1 - labels, scores) == float(1 - exact)


def test_infinities_are_scores() -> None:
    for dtype in (np.float32, np.float64):
        extremes = np.array([-np.inf, np.finfo(dtype).min, -np.finfo(dtype).smallest_subnormal, 0.0], dtype)
        scores = np.concatenate([extremes, -extremes[2::-1]])
        for cut in range(1, len(scores)):
            labels = np.arange(len(scores)) >= cut
            assert auc(labels, scores) == auc(labels, scores, sample_weight=np.ones(len(scores))) == 1.0
        assert auc([0, 1], np.array([np.inf, np.inf], dtype)) == 0.5
        assert roc_curve([0, 1], np.array([np.inf, -0.0], dtype)).thresholds.tolist() == [np.inf, np.inf, 0.0]


def test_scores_that_differ_past_float32_stay_distinct() -> None:
    scores = np.array([0.5, 0.5 + 2.0**-50])
    assert scores.astype(np.float32)[0] == scores.astype(np.float32)[1]
    assert auc([0, 1], scores) == 1.0
    assert auc([0, 1], scores, sample_weight=[1, 1]) == 1.0
    assert len(roc_curve([0, 1], scores).thresholds) == 3
    assert bounded_auc([0, 1], scores) == (0.5, pytest.approx(0.5))
    mixed = ScoreCounts()
    mixed.add(np.array([0], np.int8), scores[:1].astype(np.float32))
    mixed.add(np.array([1], np.int8), scores[1:])
    assert mixed.auc() == 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_than_2_to_24_rows(dtype: Any) -> None:
    """Counts in float32 end there."""
    n = 2**24 + 3
    labels, scores = np.ones(n, np.int8), np.full(n, 0.5, dtype)
    labels[:7], scores[:3] = 0, 1.0
    assert auc(labels, scores) == float(Fraction(4, 2 * 7))
    scores[-1] = 0.25
    exact = Fraction(4 * (n - 8), 2 * 7 * (n - 7))
    assert auc(labels, scores) == float(exact)
    assert exact != Fraction(4, 2 * 7)


def test_more_pairs_than_a_word_counts() -> None:
    labels, scores, _ = random_rows(999, seed=2, distinct=3)
    state, single = ScoreCounts(), state_of(labels, scores)
    state.merge(single)
    error = state.auc_error().std_error
    for _ in range(29):  # 2^40 rows
        state.merge(state)
    assert int((state.runs().positives + state.runs().negatives).sum()) > 2**38
    assert bits(state.auc()) == bits(single.auc())
    for _ in range(20):  # more than two words count
        state.merge(state)
    error *= 2.0**-10
    positives, negatives = state.runs().positives, state.runs().negatives
    assert int(positives.sum()) * int(negatives.sum()) > 2**115
    assert bits(state.auc()) == bits(single.auc())
    assert bits(state.auc(max_fpr=0.1)) == bits(single.auc(max_fpr=0.1))
    assert state.ks() == single.ks()
    assert state.auc_error().std_error == pytest.approx(error * 2.0**-14.5, rel=1e-2)


def test_more_than_2_to_31_pairs_one_by_one() -> None:
    labels = np.tile(np.array([0, 1], np.int8), 50_000)
    scores = np.arange(100_000, dtype=np.float32)
    n = 50_000
    assert n * n > 2**31
    assert auc(labels, scores) == float(Fraction(n * (n + 1) // 2, n * n))


KINDS = [
    pytest.param(dtype, weight, id=f"{np.dtype(dtype).name}-{weight}")
    for dtype in (np.float32, np.float64)
    for weight in ("plain", "narrow", "wide")
]


def large_rows(dtype: Any, weight: str, *, n: int = 150_001, distinct: int | None = None) -> Rows:
    labels, scores, weights = random_rows(n, seed=4, dtype=dtype, distinct=distinct)
    assert weights is not None
    if weight == "plain":
        return labels, scores, None
    return labels, scores, weights.astype(np.float32) if weight == "narrow" else weights


@pytest.mark.thorough(except_for="float64-wide-2$|float32-narrow-2$")
@pytest.mark.parametrize("distinct", [None, 20_000, 2])
@pytest.mark.parametrize(("dtype", "weight"), KINDS)
def test_threads_and_order_change_no_bit(dtype: Any, weight: str, distinct: int | None) -> None:
    labels, scores, weights = large_rows(dtype, weight, distinct=distinct)
    limits = (None, 0.05)
    once = [bits(ScoreCounts.of_rows(labels, scores, weights).auc(limit)) for limit in limits]
    for n_threads in (2, 3, 7):
        found = [auc(labels, scores, sample_weight=weights, max_fpr=x, n_threads=n_threads) for x in limits]
        assert list(map(bits, found)) == once
    random = np.random.default_rng(0)
    order = random.permutation(len(labels))
    mixed = labels[order], scores[order], None if weights is None else weights[order]
    assert [bits(ScoreCounts.of_rows(*mixed, n_threads=2).auc(limit)) for limit in limits] == once
    assert values_of(state_of(*mixed)) == values_of(state_of(labels, scores, weights))


def values_of(state: ScoreCounts) -> list[int]:
    values = [state.auc(), state.auc(max_fpr=0.05), state.auc_error().std_error, state.ks(), state.ece(10, "quantile")]
    values += [state.average_precision(each) for each in ("step", "trapezoid", "davis_goadrich")]
    return list(map(bits, values))


@pytest.mark.parametrize(("dtype", "weight"), KINDS)
def test_buckets_find_what_one_sort_finds(monkeypatch: pytest.MonkeyPatch, dtype: Any, weight: str) -> None:
    """With buckets for few rows, their edges meet every kind of score."""
    labels, scores, weights = large_rows(dtype, weight, n=600)
    scores[::7], scores[3::11], scores[5::13], scores[6::17] = 0.0, -0.0, np.inf, -np.inf
    expected = [bits(ScoreCounts.of_rows(labels, scores, weights).auc(x)) for x in (None, *LIMITS[:-1])]
    for name in ("SMALL_ROWS", "FEW_ROWS", "ROWS_PER_BUCKET"):
        monkeypatch.setattr(sorting, name, 100)
    for n_threads in (1, 4):
        found = [ScoreCounts.of_rows(labels, scores, weights, n_threads=n_threads).auc(x) for x in (None, *LIMITS[:-1])]
        assert list(map(bits, found)) == expected


def test_runs_stay_as_few_as_the_scores() -> None:
    state = ScoreCounts()
    for seed in range(60):
        labels, scores, _ = random_rows(500, seed=seed, distinct=2)
        state.add(labels, scores)
        assert sum(len(level.scores) for level in state._levels) <= 3 * 20
    assert len(state.runs().scores) <= 20
    assert state.runs().positive_rows + state.runs().negative_rows == 60 * 500


def test_a_state_keeps_nothing_of_the_callers_arrays() -> None:
    labels, scores, weights = random_rows(100, seed=9)
    assert weights is not None
    for weight in (None, weights):
        own = labels.copy(), scores.copy(), None if weight is None else weight.copy()
        state = state_of(*own)
        for array in own:
            if array is not None:
                array[:] = 0
        assert state.auc() == auc(labels, scores, sample_weight=weight)


def test_a_state_without_rows() -> None:
    for weighted in (False, True):
        state = ScoreCounts(weighted=weighted)
        state.add(np.empty(0, np.int8), np.empty(0), np.empty(0) if weighted else None)
        state.merge(ScoreCounts(weighted=weighted))
        assert all(map(math.isnan, (state.auc(), state.auc(0.5), state.auc_error().std_error, state.ks())))
        assert math.isnan(state.ece(3, "quantile"))
        assert state.average_precision() == state.average_precision("trapezoid") == 0.0


def test_long_ties_of_weights_are_put_in_one_order() -> None:
    labels, scores, weights = random_rows(5000, seed=6, distinct=1)
    assert weights is not None
    weights *= 10.0 ** np.random.default_rng(0).integers(-8, 8, 5000)
    found = set()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(5000)
        found.add(bits(auc(labels[order], scores[order], sample_weight=weights[order])))
    assert len(found) == 1


@pytest.mark.parametrize("factor", [5e-324, 1e-300, 2.0**-40, 2.0**900, 1e300])
def test_only_the_proportion_of_weights_counts(factor: float) -> None:
    labels, scores, _ = random_rows(200, seed=1)
    weights = np.random.default_rng(1).integers(1, 9, 200).astype(np.float64)
    scaled = weights * factor
    assert auc(labels, scores, sample_weight=scaled) == pytest.approx(
        auc(labels, scores, sample_weight=weights), abs=CLOSE
    )
    for limit in (0.1, 0.7):
        values = [auc(labels, scores, sample_weight=each, max_fpr=limit) for each in (weights, scaled)]
        assert values[0] == pytest.approx(values[1], abs=CLOSE)
    assert roc_curve(labels, scores, sample_weight=scaled).area == pytest.approx(values_auc(labels, scores, weights))


def values_auc(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    return state_of(labels, scores, weights).auc()


@given(rows(weighted=False))
@compiles
def test_whole_weights_are_repeated_rows(drawn: Rows) -> None:
    labels, scores, _ = drawn
    repeats = np.arange(len(labels)) % 3
    if not repeats.any():
        return
    weighted = auc(labels, scores, sample_weight=repeats)
    assert weighted == pytest.approx(
        auc(np.repeat(labels, repeats), np.repeat(scores, repeats)), abs=CLOSE, nan_ok=True
    )


# Bounded


@pytest.mark.thorough
@given(rows(weighted=False), st.integers(16, 22))
@compiles
def test_the_bound_holds(drawn: Rows, n_bits: int) -> None:
    labels, scores, _ = drawn
    found = bounded_auc(labels, scores, bits=n_bits)
    exact = score_oracle.all_pairs(listed(labels, scores))
    if exact is None:
        assert math.isnan(found.auc)
        assert math.isnan(found.bound)
    else:
        assert abs(Fraction(found.auc) - exact) <= Fraction(found.bound) + Fraction(1, 2**54)
        assert abs(found.auc - auc(labels, scores)) <= found.bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bound_is_small_on_uniform_scores(dtype: Any) -> None:
    random = np.random.default_rng(0)
    n = 1_200_000
    labels, scores = random.random(n) < 0.2, random.random(n).astype(dtype)
    found = bounded_auc(labels, scores)
    assert 1e-6 < found.bound <= 3e-5
    assert abs(found.auc - auc(labels, scores)) <= found.bound
    for n_threads in (1, 3):
        assert bounded_auc(labels, scores, n_threads=n_threads) == found
    states = [ScoreHistogram() for _ in range(3)]
    for state, part in zip(states, np.split(np.arange(n), [5, 800_000]), strict=True):
        state.add(labels[part], scores[part], n_threads=2)
    last = pickle.loads(pickle.dumps(states[2]))
    assert len(pickle.dumps(states[0])) < 1 << 24
    last.merge(states[0])
    last.merge(states[1])
    last.merge(ScoreHistogram())
    assert (last.auc(), last.error_bound) == found


def test_histograms_that_differ_do_not_merge() -> None:
    with pytest.raises(InputError, match="the same bits to be merged, found 16 and 20"):
        ScoreHistogram(16).merge(ScoreHistogram(20))
    with pytest.raises(InputTypeError, match="merge takes a ScoreHistogram, found NoneType"):
        ScoreHistogram(16).merge(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [bool, "u1", "i8", ">i2", "f4", "f8", list])
def test_a_histogram_takes_labels_of_any_type(dtype: Any) -> None:
    random = np.random.default_rng(0)
    labels, scores = random.random(1000) < 0.3, random.random(1000)
    own = labels.tolist() if dtype is list else labels.astype(dtype)
    seen = ScoreHistogram()
    seen.add(own, scores, n_threads=None)
    assert (seen.auc(), seen.error_bound) == bounded_auc(labels, scores)


HISTOGRAM_ERRORS: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([0, 2, 1], [0.1, 0.2, 0.3], {}, "labels must be 0 or 1, found 2 at row 1"),
    ([0, 1], [0.1, 0.2, 0.3], {}, "the same length, found 2 and 3"),
    ([0, 1], [0.1, "a"], {}, "scores"),
    ([0, 1], [0.1, 0.2], {"n_threads": -1}, "n_threads"),
]


@pytest.mark.parametrize(("labels", "scores", "options", "message"), HISTOGRAM_ERRORS, ids=range(len(HISTOGRAM_ERRORS)))
def test_a_histogram_that_refuses_rows_is_as_before(
    labels: Any, scores: Any, options: dict[str, Any], message: str
) -> None:
    seen = ScoreHistogram(16)
    seen.add([0, 1, 1], [0.5, 0.25, 0.75])
    with pytest.raises(FastrecError, match=message):
        seen.add(labels, scores, **options)
    assert seen.auc() == 0.5


# Comparing curves


def order_of(gaps: list[Fraction]) -> str:
    above, below = any(gap > 0 for gap in gaps), any(gap < 0 for gap in gaps)
    return ("neither" if below else "first") if above else "second" if below else "equal"


def compared(first: Any, second: Any) -> fastrec.CurveComparison:
    """Return the comparison, which is the same the other way round."""
    found, back = compare_curves(first, second), compare_curves(second, first)
    assert back.dominates == {"first": "second", "second": "first"}.get(found.dominates, found.dominates)
    assert found.crossings == pytest.approx(back.crossings)
    return found


@given(rows(most=9, weighted=False), rows(most=9, weighted=False))
@compiles
def test_which_roc_curve_is_above(one: Rows, other: Rows) -> None:
    if not (has_both(one[0], None) and has_both(other[0], None)):
        return
    first, second = roc_curve(*one[:2]), roc_curve(*other[:2])
    found = compared(first, second)

    def corners(curve: RocCurve) -> list[tuple[Fraction, Fraction]]:
        """Return fpr + tpr and tpr - fpr of all points, in fractions."""
        sides = [[Fraction(int(n), int(own[-1])) for n in own] for own in (curve.false_positives, curve.true_positives)]
        return [(x + y, y - x) for x, y in zip(*sides, strict=True)]

    def height(curve: RocCurve, at: Fraction) -> Fraction:
        for (low, before), (high, after) in itertools.pairwise(corners(curve)):
            if low <= at <= high:
                return before + (after - before) * (at - low) / (high - low)
        raise AssertionError(at)

    places = {at for curve in (first, second) for at, _ in corners(curve)}
    assert found.dominates == order_of([height(first, at) - height(second, at) for at in places])
    assert bool(len(found.crossings)) == (found.dominates == "neither")
    if found.dominates == "first":
        assert first.area > second.area
    for x, y in found.crossings:
        for curve in (first, second):
            assert np.interp(x + y, curve.fpr + curve.tpr, curve.tpr - curve.fpr) == pytest.approx(y - x)
    assert compare_curves(first, roc_curve(*one[:2], thin=True)).dominates == "equal"


@given(rows(most=9, weighted=False), rows(most=9, weighted=False))
@compiles
def test_which_pr_curve_is_above(one: Rows, other: Rows) -> None:
    if not (one[0].any() and other[0].any()):
        return
    first, second = pr_curve(*one[:2]), pr_curve(*other[:2])
    found = compared(first, second)

    def corners(curve: PrCurve) -> list[tuple[Fraction, Fraction]]:
        """Return recall and precision by descending threshold, in fractions."""
        counts = zip(curve.true_positives[-2::-1].tolist(), curve.false_positives[-2::-1].tolist(), strict=True)
        return [(Fraction(p, int(curve.true_positives[0])), Fraction(p, p + n)) for p, n in counts]

    def height(curve: PrCurve, level: Fraction) -> Fraction:
        return next(precision for recall, precision in corners(curve) if recall >= level)

    levels = sorted({recall for curve in (first, second) for recall, _ in corners(curve)} - {Fraction(0)})
    gaps = [height(first, level) - height(second, level) for level in levels]
    assert found.dominates == order_of(gaps)
    signs = [gap > 0 for gap in gaps if gap]
    assert len(found.crossings) == sum(a != b for a, b in itertools.pairwise(signs))
    assert ((found.crossings >= 0) & (found.crossings <= 1)).all()
    assert compare_curves(first, pr_curve(*one[:2], thin=True)).dominates == "equal"


def test_where_curves_cross() -> None:
    labels = [1, 0, 0, 1]
    steep, level = roc_curve(labels, [4, 3, 2, 1]), roc_curve(labels, [1, 1, 1, 1])
    assert compare_curves(steep, level).crossings.tolist() == [[0.5, 0.5]]
    # equal up to (0, 0.5) and different from there
    better, worse = roc_curve(labels, [4, 2, 1, 3]), roc_curve(labels, [4, 3, 2, 1])
    assert compare_curves(better, worse) == ("first", pytest.approx(np.empty((0, 2))))
    first, second = pr_curve([1, 0, 0, 1], [4, 3, 2, 1]), pr_curve([0, 1, 1, 0], [4, 3, 2, 1])
    found = compare_curves(first, second)
    assert found.dominates == "neither"
    assert found.crossings == pytest.approx(np.array([[0.5, (0.5 + 2 / 3) / 2]]))


def test_a_weight_that_sums_lose_leaves_the_curve_as_it_is() -> None:
    lost = [1, 1e-17, 1]
    assert [roc_curve([0, 0, 1], [3, 2, 1], sample_weight=lost, thin=thin).area for thin in (False, True)] == [0, 0]
    assert break_even_point([1, 0], [2, 1], sample_weight=[1e-170, 1]) == 1
    metric = "average_precision(interpolation=davis_goadrich)"
    assert fastrec.evaluate_scores([1, 0, 1], [3, 2, 1], metrics=metric, sample_weight=lost)[metric] == 1


# Bad input


NAN = math.nan
BAD: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ([0, 1, 2], [1, 2, 3], {}, InputError, "labels must be 0 or 1, found 2 at row 2"),
    ([0.0, NAN], [1, 2], {}, InputError, "labels must be 0 or 1, found nan at row 1"),
    (np.array([0, 2**64 - 1], np.uint64), [1, 2], {}, InputError, "found 18446744073709551615 at row 1"),
    (["a", "b"], [1, 2], {}, InputTypeError, "labels must be numbers of at most 64 bits, found dtype <U1"),
    ([[0, 1]], [1, 2], {}, InputError, r"labels must be 1-D, found shape \(1, 2\)"),
    (np.ma.masked_array([0, 1], [1, 0]), [1, 2], {}, InputTypeError, "labels must not be a masked array"),
    ([0, 1], [1.0, NAN], {}, InputError, "scores must not be NaN, found NaN at row 1"),
    ([0, 1], np.array([NAN, 1], np.float32), {}, InputError, "scores must not be NaN, found NaN at row 0"),
    ([0, 1], np.array([-math.inf, NAN], np.float32), {}, InputError, "scores must not be NaN, found NaN at row 1"),
    ([0, 1], [1, 2, 3], {}, InputError, "labels and scores must have the same length, found 2 and 3"),
    ([0, 1], [2**53 + 1, 2], {}, InputError, r"scores holds an integer past 2\*\*53.*: 9007199254740993"),
    ([0, 1], [1, 2], {"sample_weight": [1, -1]}, InputError, "sample_weight must be finite .* found -1.0 at row 1"),
    ([0, 1], [1, 2], {"sample_weight": [1, math.inf]}, InputError, "sample_weight must be finite .* inf at row 1"),
    ([0, 1], [1, 2], {"sample_weight": [0, 0]}, InputError, "sample_weight must not be 0 for every row"),
    ([0, 1], [1, 2], {"sample_weight": [1e-200, 1e160]}, InputError, "at least 1e-300 of the largest, found"),
    ([0, 1], [1, 2], {"sample_weight": [1]}, InputError, "labels and sample_weight must have the same length"),
]


@pytest.mark.parametrize("function", [auc, roc_curve, pr_curve, break_even_point, bounded_auc, auc_test])
@pytest.mark.parametrize(("labels", "scores", "options", "error", "message"), BAD)
def test_bad_input_is_refused(
    function: Any, labels: Any, scores: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    if options and function in (bounded_auc, auc_test):
        pytest.skip("takes no weights")
    if function is auc_test:
        message = message.replace("scores", "scores_a")
        options = {"scores_b": [1] * len(labels)}
    with pytest.raises(error, match=message):
        function(labels, scores, **options)


def test_the_first_nan_is_named() -> None:
    n = 300_000
    labels, scores = np.zeros(n, np.int8), np.zeros(n, np.float32)
    scores[[200_000, 250_000]] = np.nan
    for call in (
        lambda: auc(labels, scores, n_threads=3),
        lambda: auc(labels, scores, n_threads=3, sample_weight=np.ones(n)),
        lambda: bounded_auc(labels, scores, n_threads=3),
        lambda: roc_curve(labels, scores, sample_weight=np.ones(n)),
        lambda: state_of(labels, scores.astype(np.float64)),
    ):
        with pytest.raises(InputError, match="found NaN at row 200000"):
            call()


def test_the_second_scores_are_checked_too() -> None:
    with pytest.raises(InputError, match="scores_b must not be NaN, found NaN at row 1"):
        auc_test([0, 1], [1, 2], [1, NAN])
    with pytest.raises(InputError, match="labels and scores_b must have the same length, found 2 and 1"):
        auc_test([0, 1], [1, 2], [1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_fpr": 0}, InputError, "max_fpr must be above 0 and at most 1, found 0"),
        ({"max_fpr": 1.5}, InputError, "max_fpr must be above 0 and at most 1, found 1.5"),
        ({"max_fpr": NAN}, InputError, "max_fpr must be above 0 and at most 1, found nan"),
        ({"max_fpr": "a"}, InputTypeError, "max_fpr must be a number, found 'a'"),
        ({"n_threads": 0}, InputError, "n_threads must be at least 1 and at most 1,048,576, found 0"),
        ({"n_threads": 1.5}, InputTypeError, "n_threads must be an integer"),
    ],
)
def test_bad_options_of_auc(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        auc([0, 1], [1, 2], **options)


@pytest.mark.parametrize(
    ("n_bits", "error"), [(15, InputError), (23, InputError), (16.5, InputTypeError), (True, InputTypeError)]
)
def test_bad_bits(n_bits: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="bits must be"):
        bounded_auc([0, 1], [1, 2], bits=n_bits)


def test_curves_of_two_kinds_do_not_compare() -> None:
    roc, pr = roc_curve([0, 1], [1, 2]), pr_curve([0, 1], [1, 2])
    with pytest.raises(InputTypeError, match="of the same kind, found RocCurve and PrCurve"):
        compare_curves(roc, pr)
    with pytest.raises(InputTypeError, match="the second curve must be a RocCurve or a PrCurve, found a list"):
        compare_curves(roc, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the first curve has no rates"):
        compare_curves(roc_curve([0, 0], [1, 2]), roc)


@pytest.mark.parametrize("labels", [[], [0], [1], [0, 0, 0], [1, 1]])
def test_one_class_is_nan_and_no_warning(labels: list[int]) -> None:
    scores = list(range(len(labels)))
    assert math.isnan(auc(labels, scores))
    assert math.isnan(auc(labels, scores, max_fpr=0.5))
    assert math.isnan(auc(labels, scores, sample_weight=[1.0] * len(labels)))
    assert math.isnan(auc(labels, scores, sample_weight=[1.0] * len(labels), max_fpr=0.5))
    assert math.isnan(roc_curve(labels, scores).area)
    assert math.isnan(bounded_auc(labels, scores).auc)
    assert all(map(math.isnan, auc_test(labels, scores, scores)))
    assert pr_curve(labels, scores).area == (1.0 if 1 in labels else 0.0)
    assert break_even_point(labels, scores) == pytest.approx(1.0 if 1 in labels else NAN, nan_ok=True)


LABEL_FORMS: list[Any] = [
    bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, ">i4", ">f8",
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("label_dtype", LABEL_FORMS)
@pytest.mark.parametrize("score_dtype", [bool, np.int8, np.uint64, np.float16, np.float32, ">f4", np.float64, ">f8"])
def test_any_numbers_will_do(label_dtype: Any, score_dtype: Any) -> None:
    labels, scores = np.array([0, 1, 0, 1, 1]), np.array([3, 2, 2, 2, 1]) % 3
    expected = auc(labels, scores if score_dtype is not bool else scores > 0)
    forms = labels.astype(label_dtype), scores.astype(score_dtype)
    assert auc(*forms) == expected
    assert auc(*(each.tolist() for each in forms)) == expected
    assert auc(*(np.repeat(each, 2)[::2] for each in forms)) == expected
    frozen = [each.copy() for each in forms]
    for each in frozen:
        each.flags.writeable = False
    assert auc(*frozen) == bounded_auc(*frozen).auc == roc_curve(*frozen).area == expected


def test_arrays_that_start_at_odd_bytes() -> None:
    labels, scores, _ = random_rows(100, seed=0)
    shifted = np.frombuffer(b"x" + scores.tobytes(), np.float64, offset=1)
    assert not shifted.flags.aligned
    assert auc(labels, shifted) == bounded_auc(labels, shifted, bits=22).auc == auc(labels, scores)
    assert auc(labels, scores, sample_weight=shifted**2) == auc(labels, shifted, sample_weight=scores**2)


@pytest.mark.parametrize(
    ("bins", "counts", "match"),
    [
        ([1.5], [1], r"^bins must hold integers, found 1\.5 at row 0$"),
        ([1, 2], [1], r"^bins, negatives and positives must have the same length, found \[2, 1, 1\]$"),
        ([1 << 16], [1], "^bins must be from 0 to 65,535, found 65,536$"),
        ([1, 1], [1, 1], "^bins must hold each bin once, found one twice$"),
        ([1], [-1], "^negatives must be from 0 to 9,007,199,254,740,992, found -1$"),
    ],
)
def test_a_histogram_refuses_other_bins(bins: list[Any], counts: list[int], match: str) -> None:
    histogram = ScoreHistogram(16)
    histogram.add([0, 1, 1], [0.5, 0.25, 0.5])
    before = histogram.estimate()
    with pytest.raises(InputError, match=match):
        histogram.add_bins(bins, counts, counts)
    assert histogram.estimate() == before
