"""Points and parts of curves, and pairs of graded labels: rounding, states, and how many rows they take."""

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrec
from fastrec.exceptions import InputError
from fastrec.inputs.rows import pairs_of_users
from fastrec.scored.pairs import GradedRows
from fastrec.scored.score_counts import ScoreCounts
from support import score_oracle
from support.score_oracle import Row

RATES = list(itertools.permutations(["recall", "precision", "specificity"], 2))


def rows_of(seed: int) -> tuple[Any, Any, Any]:
    """Draw rows whose sums of weights need more than 53 bits."""
    draw = np.random.default_rng(seed)
    n = 40
    return draw.integers(0, 2, n).astype(np.int8), draw.integers(0, 8, n) / 8, draw.choice([0.1, 0.2, 0.3, 0.7], n)


@pytest.mark.parametrize("seed", range(10))
def test_rounding_never_decides_whether_a_rate_reaches_a_limit(seed: int) -> None:
    """Every limit is the double nearest to the exact rate at a threshold, where sums of doubles are off at times."""
    labels, scores, weights = rows_of(seed)
    rows = tuple(map(Row, labels.tolist(), scores.tolist(), map(Fraction, weights.tolist())))
    counts = ScoreCounts(weighted=True)
    counts.add(labels, scores, weights)
    curve = score_oracle.points(rows)
    for name, other in RATES:
        shares = [score_oracle.share_at(point, other, curve[-1]) for point in curve]
        for limit in (float(share) for share in shares if share is not None):
            expected = score_oracle.best_where(rows, name, other, limit)
            assert counts.rate_where(name, other, limit) == pytest.approx(float(expected or 0), abs=1e-12)


def test_the_parts_of_a_curve_add_up() -> None:
    draw = np.random.default_rng(2)
    labels, scores = draw.integers(0, 2, 3000), draw.integers(0, 500, 3000)
    for side in ("fpr", "tpr"):
        texts = [f"auc(min_{side}={a / 8}, max_{side}={(a + 1) / 8}, scale=raw)" for a in range(8)]
        report = fastrec.evaluate_scores(labels, scores, metrics=texts)
        assert math.fsum(report[text] for text in texts) == pytest.approx(fastrec.auc(labels, scores), abs=1e-14)


# Rows by grade (WFNS, 1 to 5) of patients with a poor and a good outcome: the data of pROC (Turck et al. 2010).
POOR, GOOD = [2, 12, 1, 8, 18], [37, 20, 3, 8, 4]
OF_PROC = [  # asserted by pROC's own tests: area and corrected area
    ("min_fpr=0, max_fpr=0.1", 0.0334417344173442, 0.649693339038653),
    ("min_fpr=0.1, max_fpr=0.2", 0.0598373983739837, 0.763749402199904),
    ("min_fpr=0.5, max_fpr=1", 0.488134475939354, 0.952537903757416),
    ("min_tpr=0.9, max_tpr=1", 0.0400999322493225, 0.68473648552275),
    ("min_tpr=0.8, max_tpr=0.9", 0.0609953703703703, 0.770561002178649),
    ("min_tpr=0, max_tpr=0.5", 0.483358739837398, 0.933434959349593),
    ("min_fpr=0, max_fpr=1", 0.823678861788618, 0.823678861788618),
    ("min_tpr=0, max_tpr=1", 0.823678861788618, 0.823678861788618),
]


@pytest.mark.parametrize(("limits", "area", "corrected"), OF_PROC)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_those_of_proc(limits: str, area: float, corrected: float, weighted: bool) -> None:
    labels, grades = np.repeat([1, 0], 5), np.tile(np.arange(1.0, 6), 2)
    counts = np.array([*POOR, *GOOD])
    if not weighted:
        labels, grades = np.repeat(labels, counts), np.repeat(grades, counts)
    texts = [f"auc({limits}, scale=raw)", f"auc({limits})"]
    report = fastrec.evaluate_scores(labels, grades, metrics=texts, sample_weight=counts if weighted else None)
    assert [report[text] for text in texts] == pytest.approx([area, corrected], abs=1e-14)


def naive_xauc(labels: Any, scores: Any) -> float:
    right = np.sign(labels[:, None] - labels) * np.sign(scores[:, None] - scores)
    differ = labels[:, None] != labels
    return float((right[differ] + 1).sum() / (2 * differ.sum()))


@pytest.mark.parametrize("n_labels", [2, 5, 1000])
def test_pairs_of_many_rows(n_labels: int) -> None:
    draw = np.random.default_rng(n_labels)
    labels, scores = draw.integers(0, n_labels, 1500).astype(float), draw.integers(0, 200, 1500).astype(float)
    found = fastrec.evaluate_scores(labels, scores, metrics="xauc")["xauc"]
    assert found == pytest.approx(naive_xauc(labels, scores), abs=1e-14)
    if n_labels == 2:
        assert found == fastrec.auc(labels, scores)


def test_states_of_graded_rows_merge_in_any_order() -> None:
    draw = np.random.default_rng(4)
    labels, scores, weights = draw.random(90).round(1), draw.random(90).round(1), draw.random(90)
    for own in (None, weights):
        parts = []
        for start in (0, 20, 70):
            cut = slice(start, {0: 20, 20: 70, 70: 90}[start])
            part = GradedRows.of(labels[cut], scores[cut], None if own is None else own[cut])
            parts.append(GradedRows.unpack(part.pack(), weighted=own is not None))
        whole = GradedRows.of(labels, scores, own)
        last, *others = parts[::-1]
        for part in others:
            last.merge(part)
        assert last.xauc() == whole.xauc()
        assert last.products_of_ranks() == whole.products_of_ranks()
        assert {name: own.tobytes() for name, own in last.pack().items()} == {
            name: own.tobytes() for name, own in whole.pack().items()
        }
    with pytest.raises(InputError, match="expected rows with labels"):
        GradedRows.unpack({"labels": np.zeros(2), "scores": np.zeros(3)}, weighted=False)


def test_a_share_of_weighted_pairs_is_at_most_one() -> None:
    """The sums of the weights of pairs are rounded, in another order for the pairs that are right than for all."""
    draw = np.random.default_rng(0)
    users = np.repeat(np.arange(300), 7)
    labels, weights = draw.integers(0, 3, len(users)).astype(float), draw.random(len(users))
    texts = ["xauc", "xauc(average=user)"]
    for scores, wanted in ((labels, 1.0), (-labels, 0.0)):
        call = {"user_ids": users, "sample_weight": weights, "metrics": texts, "per_user": True}
        report = fastrec.evaluate_scores(labels, scores, **call)
        own = report.per_user[texts[1]]
        for found in (report[texts[0]], report[texts[1]], own[~np.isnan(own)].min(), own[~np.isnan(own)].max()):
            assert 0 <= found <= 1 and found == pytest.approx(wanted, abs=1e-12)


SCIPY = {
    "kendall_tau": stats.kendalltau,
    "kendall_tau(variant=c)": functools.partial(stats.kendalltau, variant="c"),
    "spearman_rho": stats.spearmanr,
}


@pytest.mark.parametrize("n_labels", [2, 5, 1000])
@pytest.mark.parametrize("text", SCIPY)
def test_rank_correlations_are_those_of_scipy(text: str, n_labels: int) -> None:
    draw = np.random.default_rng(n_labels)
    labels, scores = draw.integers(0, n_labels, 3000).astype(float), draw.integers(0, 200, 3000).astype(float)
    users = np.sort(draw.integers(0, 60, 3000))
    by_user = text.replace("(", "(average=user, ") if "(" in text else f"{text}(average=user)"
    report = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=[text, by_user], per_user=True)
    assert report[text] == pytest.approx(SCIPY[text](labels, scores).statistic, abs=1e-12)
    wanted = [SCIPY[text](labels[users == user], scores[users == user]).statistic for user in range(60)]
    np.testing.assert_allclose(report.per_user[list(report)[1]], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", SCIPY)
def test_rank_correlations_of_weighted_rows_stay_in_their_range(text: str) -> None:
    """Weights are rounded and may be far from 1; the order of rows changes no bit."""
    draw = np.random.default_rng(1)
    users = np.repeat(np.arange(300), 7)
    labels, weights = draw.integers(0, 3, len(users)).astype(float), draw.random(len(users)) * 1e60
    order = np.argsort(users + draw.random(len(users)) * 0.5)  # of the rows of each user
    for scores, sign in ((labels, 1), (-labels, -1), (0 * labels, 0)):
        call = {"metrics": [text.replace("(", "(average=user, ") if "(" in text else f"{text}(average=user)"]}
        found = []
        for own in (slice(None), order):
            given = {"user_ids": users[own], "sample_weight": weights[own], "per_user": True, **call}
            report = fastrec.evaluate_scores(labels[own], scores[own], **given)
            found.append(report.per_user[next(iter(report))])
        values = found[0][~np.isnan(found[0])]
        np.testing.assert_array_equal(*found)
        assert len(values) > 200 and (np.abs(values) <= 1).all()
        if "variant=c" not in text:
            np.testing.assert_allclose(values, sign, rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", SCIPY)
@pytest.mark.parametrize("average", ["row", "user"])
def test_rank_correlations_take_weights_of_any_size(text: str, average: str) -> None:
    labels = np.arange(1000) % 7.0
    sizes = [1e-100, 1.0, 1e100] if average == "user" else [1e100]
    indptr = np.arange(len(sizes) + 1) * 1000
    own = text.replace("(", f"(average={average}, ") if "(" in text else f"{text}(average={average})"
    given = np.tile(labels, len(sizes)), np.tile(labels, len(sizes)), indptr
    (found,) = fastrec.evaluate_scores(*given, own, sample_weight=np.repeat(sizes, 1000)).values()
    (wanted,) = fastrec.evaluate_scores(*given, own).values()
    assert found == pytest.approx(wanted, rel=1e-12)


def test_pairs_with_nan_come_to_an_end() -> None:
    """The check of rows comes later, so the pairs are of no use, but must not take forever."""
    assert pairs_of_users(np.array([0, 2]), np.full(2, np.nan), np.full(2, np.nan), None).shape == (4, 1)


@pytest.mark.parametrize(
    "metric", ["auc(min_fpr=0.999999999999)", "auc(max_tpr=1e-17)", "auc(max_tpr=1e-12, scale=width)"]
)
@pytest.mark.parametrize("indptr", [None, [0, 2, 4]])
def test_narrow_parts_have_a_value(metric: str, indptr: list[int] | None) -> None:
    report = fastrec.evaluate_scores([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], indptr, metrics=metric)
    assert 0 <= report[metric] <= 1


@pytest.mark.parametrize("weight", [None, 0.1])
@pytest.mark.parametrize(("low", "high"), [(0.05, 0.55), (0.15, 0.35), (0.3, 0.8), (0.6, 0.7)])
def test_the_error_at_the_area_of_chance_is_that_of_larger_areas(low: float, high: float, weight: float | None) -> None:
    """McClish's correction has two slopes there; that area is rounded up or down."""
    above = 1 / (2 * (high - low - (high**2 - low**2) / 2))
    for levels in (2, 3, 5, 7, 10, 13, 23):
        labels, scores = np.tile([1, 0, 0], levels), np.repeat(np.arange(levels), 3) / levels
        weights = None if weight is None else np.full(len(labels), weight)
        metrics = [f"auc(min_fpr={low}, max_fpr={high}{scale})" for scale in ("", ", scale=raw")]
        report = fastrec.evaluate_scores(labels, scores, metrics=metrics, sample_weight=weights)
        value, raw = report.estimates.values()
        assert value.mean == pytest.approx(0.5, abs=1e-12)
        assert value.std_error == pytest.approx(above * raw.std_error, rel=1e-9)


@pytest.mark.parametrize("scale", ["mcclish", "width", "raw"])
@pytest.mark.parametrize(
    "limits", ["min_fpr=0.5, max_fpr=0.500000001", "min_tpr=0.75, max_tpr=0.750000001", "max_tpr=1e-17"]
)
def test_weights_leave_the_digits_of_narrow_parts(limits: str, scale: str) -> None:
    """Rates are multiples of 1/8, so that doubles lose nothing but in the area and its scale."""
    draw = np.random.default_rng(5)
    labels, scores = np.repeat([0, 1], 8), draw.random(16)
    metric = f"auc({limits}, scale={scale})"
    exact = fastrec.evaluate_scores(labels, scores, metrics=metric)[metric]
    weighted = fastrec.evaluate_scores(labels, scores, sample_weight=np.full(16, 2.0), metrics=metric)[metric]
    assert weighted == pytest.approx(exact, rel=1e-14)


def test_the_logarithmic_axis_may_begin_at_the_smallest_double() -> None:
    """The curve is 1/2 + x up to 1/2, so the area is ln(1/2 / x) / 2 + 1/2."""
    metric = "log_auc(min_fpr=5e-324, max_fpr=0.5)"
    report = fastrec.evaluate_scores([0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8], metrics=metric)
    assert report[metric] == pytest.approx(0.5 + 0.5 / (math.log(0.5) - math.log(5e-324)), rel=1e-14)
    near = "log_auc(min_fpr=0.25, max_fpr=0.2500000000001)"
    report = fastrec.evaluate_scores([0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8], metrics=near)
    assert report[near] == pytest.approx(0.75, rel=1e-12)
