"""Values of scikit-learn for the same rows: one function per metric, all with (labels, scores, weights)."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed: pip install scikit-learn")
Rival = Callable[[Any, Any, Any], float]
CLASSES = [0, 1]


def ranked(function: Any, labels: Any, scores: Any, weights: Any, /, **options: Any) -> float:
    return float(function(labels, scores, sample_weight=weights, **options))


def classified(function: Any, threshold: float, labels: Any, scores: Any, weights: Any, /, **options: Any) -> float:
    return float(function(labels, scores >= threshold, sample_weight=weights, **options))


def of_negatives(function: Any, threshold: float, labels: Any, scores: Any, weights: Any, /, **options: Any) -> float:
    """Specificity is the recall of the other class."""
    return float(function(labels == 0, scores < threshold, sample_weight=weights, **options))


def agreeing(threshold: float, labels: Any, scores: Any, weights: Any) -> float:
    """Kappa, of labels that need not occur."""
    return float(metrics.cohen_kappa_score(labels, scores >= threshold, sample_weight=weights))


def determination(labels: Any, scores: Any, weights: Any) -> float:
    """R^2 that is NaN for equal targets."""
    value = float(metrics.r2_score(labels, scores, sample_weight=weights, force_finite=False))
    return math.nan if math.isinf(value) else value


def area_by_trapezoids(labels: Any, scores: Any, weights: Any) -> float:
    """scikit-learn ends its curve at recall 0 with precision 1; Spark with the precision of the first threshold."""
    precision, recall, _ = metrics.precision_recall_curve(labels, scores, sample_weight=weights)
    precision[-1] = precision[-2]
    return float(metrics.auc(recall, precision))


def entropy_ratio(labels: Any, scores: Any, weights: Any) -> float:
    base = np.full(len(scores), np.average(labels, weights=weights))
    own = metrics.log_loss(labels, scores, sample_weight=weights, labels=CLASSES)
    return float(own / metrics.log_loss(labels, base, sample_weight=weights, labels=CLASSES))


ORDERS: dict[str, Rival] = {
    "auc": partial(ranked, metrics.roc_auc_score),
    "auc(max_fpr=0.3)": partial(ranked, metrics.roc_auc_score, max_fpr=0.3),
    "auc(max_fpr=0.75)": partial(ranked, metrics.roc_auc_score, max_fpr=0.75),
    "average_precision": partial(ranked, metrics.average_precision_score),
    "average_precision(interpolation=trapezoid)": area_by_trapezoids,
}
CHANCES: dict[str, Rival] = {
    "log_loss": partial(ranked, metrics.log_loss, labels=CLASSES),
    "brier": partial(ranked, metrics.brier_score_loss, pos_label=1),
    "normalized_entropy": entropy_ratio,
}
ERRORS: dict[str, Rival] = {
    "mae": partial(ranked, metrics.mean_absolute_error),
    "mse": partial(ranked, metrics.mean_squared_error),
    "rmse": partial(ranked, metrics.root_mean_squared_error),
    "mape": partial(ranked, metrics.mean_absolute_percentage_error),
    "r2": determination,
}


def thresholds(threshold: float, zero_division: float) -> dict[str, Rival]:
    """The metrics of classes with these options; `mcc` is 0 for 0/0 and `accuracy` never 0/0."""
    inside = f"threshold={threshold}, zero_division={zero_division}"
    with_zero: dict[str, tuple[Any, dict[str, Any]]] = {
        f"precision({inside})": (metrics.precision_score, {}),
        f"recall({inside})": (metrics.recall_score, {}),
        f"f1({inside})": (metrics.f1_score, {}),
        f"f_beta({inside}, beta=0.5)": (metrics.fbeta_score, {"beta": 0.5}),
        f"f_beta({inside}, beta=2)": (metrics.fbeta_score, {"beta": 2}),
    }
    out: dict[str, Rival] = {
        text: partial(classified, function, threshold, zero_division=zero_division, **options)
        for text, (function, options) in with_zero.items()
    }
    out[f"specificity({inside})"] = partial(of_negatives, metrics.recall_score, threshold, zero_division=zero_division)
    out[f"accuracy(threshold={threshold})"] = partial(classified, metrics.accuracy_score, threshold)
    out[f"hamming(threshold={threshold})"] = partial(classified, metrics.hamming_loss, threshold)
    out[f"balanced_accuracy(threshold={threshold}, zero_division=nan)"] = partial(
        classified, metrics.balanced_accuracy_score, threshold
    )
    out[f"cohen_kappa(threshold={threshold}, zero_division=nan)"] = partial(agreeing, threshold)
    out[f"mcc(threshold={threshold})"] = partial(classified, metrics.matthews_corrcoef, threshold)
    return out


THRESHOLDS: dict[str, Rival] = thresholds(0.5, 0.0) | thresholds(0.3, 1.0) | thresholds(0.9, math.nan)
ONE_CLASS_IS_NAN = ("auc", "normalized_entropy", "balanced_accuracy")  # of the last it takes the recall of the class
RIVALS = ORDERS | CHANCES | THRESHOLDS


def ask(rival: Rival, labels: Any, scores: Any, weights: Any) -> float:
    """Return its value, without its warnings about undefined values."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return rival(labels, scores, weights)


def expected_ndcg(gains: Any, scores: Any, k: int | None) -> float:
    """Its ndcg is the mean over all orders of tied rows, for lists of at least two rows."""
    return float(metrics.ndcg_score([gains], [scores], k=k, ignore_ties=False))


def expected_dcg(gains: Any, scores: Any, k: int | None) -> float:
    return float(metrics.dcg_score([gains], [scores], k=k, ignore_ties=False))


POOL = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])


def awkward_rows(seed: int) -> tuple[Any, Any, Any]:
    """Draw rows with many ties: at times one row, one class, one score, weights (0 among them)."""
    draw = np.random.default_rng(seed)
    n = int(draw.choice([1, 2, 3, 10, 40, 200]))
    labels = (draw.random(n) < draw.choice([0.0, 0.1, 0.5, 1.0], p=[0.1, 0.3, 0.5, 0.1])).astype(np.int64)
    scores = draw.choice(POOL, n) if draw.random() < 0.7 else draw.random(n)
    if draw.random() < 0.1:
        scores[:] = scores[0]
    weights = None if draw.random() < 0.4 else draw.choice([0.0, 1.0, 2.0, 0.37, 5.1], n)
    if weights is not None and weights.sum() == 0:
        weights[0] = 1.0
    return labels, scores, weights
