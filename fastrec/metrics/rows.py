"""Metrics of scored, labelled rows (impression logs): the one place where each is declared.

A row is positive if its label is 1, or at least `min_gain` if that is given. In the docstrings P and N are the
positive and negative rows, y is 1 for a positive row and 0 for others, s a row's score, w its weight (1 without
`sample_weight`); all sums are weighted. `average=row` uses all rows at once, `average=user` takes the mean over
users of each user's own value. Users without an own value do not count, and the report says how many counted. Tied
scores are one threshold, whatever the `ties` of the call. A value over all rows is NaN if it has no meaning (no rows,
one class only). Values are float64, without unit.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from fastrec.exceptions import Argument, MetricError, Text, shown_number
from fastrec.kernels.runs import entropy, log_of_share
from fastrec.metrics.declaration import score_metric
from fastrec.metrics.dual import differentiable
from fastrec.metrics.kinds import Count, Fraction, Rate
from fastrec.metrics.row_statistics import RowStatistics
from fastrec.metrics.statistics import Over, Ratio, Row, over

Average = Literal["row", "user"]
OneClass = Literal["call", "drop", "half", "zero", "nan", "error"]
Weight = Literal["impressions", "positives", "negatives", "pairs", "equal"]
Interpolation = Literal["step", "trapezoid", "davis_goadrich"]


def averaged(s: RowStatistics, numerator: Row, denominator: Row, average: str) -> Ratio:
    """Return numerator / denominator over all rows, or its mean over users."""
    if average == "row":
        return s.ratio(numerator, denominator)
    return s.mean(numerator / denominator, denominator / denominator)


@score_metric(
    range=(0, 1),
    formula="P(score of a positive > score of a negative) + P(equal) / 2",
    source="Hanley & McNeil 1982; DeLong et al. 1988; McClish 1989; Obuchowski 1997",
    needs="classes",
    aliases=("auroc", "roc_auc"),
)
def auc(
    s: RowStatistics,
    *,
    min_fpr: Rate | None = None,
    max_fpr: Rate | None = None,
    min_tpr: Rate | None = None,
    max_tpr: Rate | None = None,
    scale: Literal["mcclish", "width", "raw"] = "mcclish",
) -> Over:
    """Area under the ROC curve of all rows, regardless of user.

    Formula: pairs (positive, negative) with the higher score on the positive, equal scores counting as half, over all
    pairs; exact, from integer counts. It is 1 - ranking loss and the trapezoidal area under the ROC curve. `min_fpr`
    and `max_fpr` take the part of the curve between two false positive rates, `min_tpr` and `max_tpr` the part to the
    right of it between two sensitivities (true positive rates). `scale=mcclish` scales the area of a part to .5 for
    chance and 1 for perfection (McClish; below chance, a part with a lower limit is the area over twice that of
    chance). `width` divides it by its width, so that it is the mean sensitivity or specificity in the range; `raw`
    leaves it as it is. The standard error is that of clusters (Obuchowski for the whole curve): the root of U / (U - 1)
    times the sum over the U users of the squared sums of their rows' effects to first order. The effect of a row on the
    whole area is its placement less the area, over its class. Without users, or in batches, it is that of DeLong, which
    takes rows as independent.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8], metrics="auc"
    ... )
    >>> report["auc"]
    0.875
    >>> report = fastrec.evaluate_scores(
    ...     [0, 1, 0, 1],
    ...     [0.1, 0.3, 0.3, 0.8],
    ...     metrics="auc(max_fpr=0.5, scale=raw)",
    ... )
    >>> report["auc(max_fpr=0.5, scale=raw)"]
    0.375
    """
    part = _part_of_curve(min_fpr, max_fpr, min_tpr, max_tpr)
    if part[1:] == (0.0, 1.0):
        return s.over_all_rows(
            lambda runs: runs.auc(),
            lambda runs: runs.auc_error(),
            influence=lambda runs, users: runs.auc_effects(users),
        )
    return s.over_all_rows(
        lambda runs: runs.part_of_auc(*part, scale),
        lambda runs: runs.error_of_part(*part, scale),
        influence=lambda runs, users: runs.effects_on_part(users, *part, scale),
    )


def _part_of_curve(
    min_fpr: float | None, max_fpr: float | None, min_tpr: float | None, max_tpr: float | None
) -> tuple[str, float, float]:
    """Return the rate that has limits, and these."""
    limits = {"fpr": (min_fpr, max_fpr), "tpr": (min_tpr, max_tpr)}
    given = [side for side, own in limits.items() if own != (None, None)]
    if len(given) == 2:
        raise MetricError("takes limits of the false positive rate or of the true positive rate, found both")
    side = given[0] if given else "fpr"
    low, high = (default if limit is None else limit for limit, default in zip(limits[side], (0.0, 1.0), strict=True))
    if not low < high:
        raise MetricError(f"needs min_{side} below max_{side}, found {shown_number(low)} and {shown_number(high)}")
    return side, low, high


@score_metric(
    range=(0, 1),
    formula="mean of the true positive rate over log(false positive rate)",
    source="Mysinger & Shoichet 2010",
    needs="classes",
)
def log_auc(
    s: RowStatistics,
    *,
    min_fpr: Fraction = 0.001,
    max_fpr: Rate = 0.1,
    interpolation: Literal["linear", "log"] = "linear",
) -> Over:
    """Area under the ROC curve over a logarithmic axis, which weighs the first of the ranked rows most.

    Formula: integral of TPR d(log FPR) from `min_fpr` to `max_fpr`, over log(max_fpr / min_fpr). Between two points the
    curve is straight in the false positive rate, as in `auc` (`linear`), or in its logarithm (`log`, as TorchMetrics).
    Chance has (max_fpr - min_fpr) / log(max_fpr / min_fpr). It has no standard error.

    Examples
    --------
    The curve goes through (1/2, 1/2):

    >>> text = "log_auc(min_fpr=0.25, max_fpr=0.5)"
    >>> report = fastrec.evaluate_scores(
    ...     [0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8], metrics=text
    ... )
    >>> round(report[text], 12)
    0.860673760222
    """
    _, low, high = _part_of_curve(min_fpr, max_fpr, None, None)
    return s.over_all_rows(lambda runs: runs.log_auc(low, high, interpolation))


@score_metric(
    range=(0, 1),
    formula="sum of w_u AUC_u / sum of w_u",
    source="Zhou et al. 2018 (DIN); He & McAuley 2016",
    needs=("classes", "users"),
)
def gauc(
    s: RowStatistics,
    *,
    weight: Weight = "impressions",
    one_class: OneClass = "call",
    constant: Literal["half", "drop"] = "half",
) -> Ratio:
    """Grouped AUC: the mean of every user's own AUC, weighted.

    Formula: sum over users of w_u AUC_u / sum of w_u. The weight w_u is the number of the user's rows
    (`impressions`), of positive rows, of negative rows, of pairs of the two, or 1 (`equal`). `one_class` decides about
    users without positives or without negatives: `drop` leaves them out, `half` and `zero` count them with .5 and 0,
    `nan` makes the value NaN, `error` raises an error, `call` takes `one_class` of the call. A user with equal scores
    only has AUC .5, or is left out (`constant=drop`). The standard error is that of a ratio of sums over users (delta
    method).

    Examples
    --------
    Users with AUC 2/3 and 1/2:

    >>> labels, scores = (
    ...     [1, 0, 1, 1, 0, 1, 0, 0, 1],
    ...     [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6],
    ... )
    >>> report = fastrec.evaluate_scores(
    ...     labels, scores, [0, 5, 9], ["gauc", "gauc(weight=equal)"]
    ... )
    >>> round(report["gauc"], 12), round(report["gauc(weight=equal)"], 12)
    (0.592592592593, 0.583333333333)
    """
    policy = s.one_class if one_class == "call" else one_class
    pairs = s.positives * s.negatives
    both, has_rows = pairs / pairs, s.rows / s.rows
    value = s.twice_won / (2 * pairs)
    counted = has_rows if policy in ("half", "zero") else both
    if policy == "half":
        value = value + 0.5 * (has_rows - both)
    if constant == "drop":
        counted = counted - both * s.constant
    weights = {
        "impressions": s.rows,
        "positives": s.positives,
        "negatives": s.negatives,
        "pairs": pairs,
    }
    counting = counted if weight == "equal" else counted * weights[weight]
    rows = (counting * value, counting)
    each = s.where(counted, value)
    why = Text("has rows of one class only, and ", Argument("one_class", ("error",)))
    refused = (has_rows - both, why) if policy == "error" else None
    spoils = has_rows - both if policy == "nan" else None
    return Ratio(over, rows, each, counted, refused, spoils)


@score_metric(
    range=(0, 1),
    formula="sum over thresholds of precision x gain of recall",
    source="Buckley & Voorhees 2000; Davis & Goadrich 2006; Keilwagen et al. 2014",
    needs="classes",
)
def average_precision(
    s: RowStatistics, *, interpolation: Interpolation = "step", average: Average = "row"
) -> Ratio | Over:
    """Area under the precision-recall curve, with a point per distinct score.

    Formula: sum over distinct scores, from the largest, of (R_i - R_(i-1)) p, where p is the precision P_i (`step`,
    as scikit-learn), (P_(i-1) + P_i) / 2 (`trapezoid`, which overestimates; it repeats the first point at recall 0, as
    Spark does) or the mean over the path on which positives and negatives of a step are spread evenly
    (`davis_goadrich`, as XGBoost). 0 without a positive row; such users are left out with `average=user`. With `step`,
    the standard error is that of the effects of users' rows to first order (delta method), as for `auc`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.9, 0.8, 0.7], metrics="average_precision"
    ... )
    >>> round(report["average_precision"], 12)
    0.833333333333
    """
    counted = s.positives / s.positives
    value = s.average_precision_sum(interpolation) / s.positives
    if average == "user":
        return s.mean(value, counted)
    if interpolation != "step":
        return s.over_all_rows(lambda runs: runs.average_precision(interpolation), each=s.where(counted, value))
    return s.over_all_rows(
        lambda runs: runs.average_precision(interpolation),
        lambda runs: runs.precision_error(),
        each=s.where(counted, value),
        influence=lambda runs, users: runs.precision_effects(users),
    )


@score_metric(
    range=(0, None),
    formula="mean of -(y log s + (1 - y) log(1 - s))",
    source="Good 1952",
    needs="probabilities",
    direction="lower",
)
def log_loss(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Cross entropy of the scores, read as probabilities, with the labels; in nats.

    Formula: sum of -w (y ln s + (1 - y) ln(1 - s)) / sum of w, scores clipped to [eps, 1 - eps] with the machine
    epsilon of their dtype (1.2e-7 for float32, 2.2e-16 for float64), as in scikit-learn. Scores of float16 are read as
    float32 and have its epsilon, also from files; scikit-learn takes 9.8e-4.

    Examples
    --------
    >>> report = fastrec.evaluate_scores([1, 0], [0.8, 0.4], metrics="log_loss")
    >>> round(report["log_loss"], 12)
    0.36698458754
    """
    return averaged(s, s.log_loss_sum, s.rows, average)


@score_metric(
    range=(0, 1),
    formula="mean of (s - y)^2",
    source="Brier 1950",
    needs="probabilities",
    direction="lower",
    aliases=("brier_score",),
)
def brier(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Mean squared difference between the scores, read as probabilities, and the classes.

    Formula: sum of w (s - y)^2 / sum of w.

    Examples
    --------
    >>> report = fastrec.evaluate_scores([1, 0], [0.8, 0.4], metrics="brier")
    >>> round(report["brier"], 12)
    0.1
    """
    return averaged(s, s.brier_sum, s.rows, average)


@score_metric(
    range=(0, None),
    formula="log loss / entropy of the base rate",
    source="He et al. 2014",
    needs="probabilities",
    direction="lower",
    aliases=("ne",),
)
def normalized_entropy(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Log loss divided by that of always predicting the base rate: below 1 the scores are informative.

    Formula: log loss / -(b ln b + (1 - b) ln(1 - b)) with the base rate b = P / (P + N). Scores are clipped as in
    `log_loss`; b is not. Users of one class have no entropy and are left out with `average=user`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0], [0.8, 0.4], metrics="normalized_entropy"
    ... )
    >>> round(report["normalized_entropy"], 12)
    0.529446844527
    """
    own = s.log_loss_sum / s.entropy
    counted = s.entropy / s.entropy
    if average == "user":
        return s.mean(own, counted)
    sums = (s.log_loss_sum, s.positives, s.negatives)
    return Ratio(_relative_entropy, sums, s.where(counted, own), s.rows / s.rows)


def _slopes_of_entropy(positives: Any, negatives: Any) -> tuple[float, float]:
    p, n = float(positives), float(negatives)
    return -log_of_share(p, n), -log_of_share(n, p)


@differentiable(_slopes_of_entropy)  # those of its steps would nearly cancel
def _entropy(positives: Any, negatives: Any) -> Any:
    return entropy(float(positives), float(negatives))


def _relative_entropy(loss: Any, positives: Any, negatives: Any) -> Any:
    return over(loss, _entropy(positives, negatives))


@score_metric(
    range=(-math.inf, None), formula="sum of s / sum of y", source="He et al. 2014", needs="classes", direction=1.0
)
def calibration(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Predicted over observed positives: 1 is right on average, above 1 predicts too many.

    Formula: sum of w s / sum of w y. Users without positive rows are left out with `average=user`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores([1, 0], [0.8, 0.4], metrics="calibration")
    >>> round(report["calibration"], 12)
    1.2
    """
    return averaged(s, s.score_sum, s.positives, average)


@score_metric(
    range=(0, 1),
    formula="sum over bins of |sum of (s - y)| / rows",
    source="Naeini et al. 2015; Guo et al. 2017; Kumar et al. 2019",
    needs="probabilities",
    direction="lower",
)
def ece(
    s: RowStatistics,
    *,
    bins: Count = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: Literal["l1", "l2", "max"] = "l1",
    average: Average = "row",
) -> Ratio | Over:
    """Expected calibration error: distance between predicted and observed share of positives, over bins of the scores.

    Formula: sum over bins of |sum of w (s - y)| / sum of w. `uniform` bins are equally wide, closed on the left
    (scores of click models crowd in the first one); `quantile` bins hold equal weight: rows in ascending order of
    score, cut at each multiple of the total weight / bins, tied scores in the bin of the first of them. With d_b, the
    mean of s - y in a bin, that is the mean of |d_b| over rows (`norm=l1`). `l2` is the root of the mean of d_b^2
    (RMSCE, Kumar et al. 2019), `max` the largest |d_b| (maximum calibration error). None has a standard error: the
    distances of bins are above 0 even if every score is right, so an interval around them would miss the true value.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0, 1], [0.9, 0.9, 0.2, 0.4], metrics="ece(bins=2)"
    ... )
    >>> round(report["ece(bins=2)"], 12)
    0.3
    >>> labels, scores = [1, 0, 0, 1], [0.9, 0.9, 0.2, 0.3]
    >>> report = fastrec.evaluate_scores(
    ...     labels,
    ...     scores,
    ...     metrics=["ece(bins=2, norm=l2)", "ece(bins=2, norm=max)"],
    ... )
    >>> [round(report[metric], 12) for metric in report]
    [0.333541601603, 0.4]
    """
    n_bins = int(bins)
    has_rows = s.rows / s.rows
    own = s.gaps(n_bins, strategy, norm)
    own = own / s.rows if norm == "l1" else own
    if average == "user":
        return s.mean(own, has_rows)
    if strategy == "quantile" or norm != "l1":
        return s.over_all_rows(lambda runs: runs.ece(n_bins, strategy, norm), each=s.where(has_rows, own))
    gaps = [s.gap(nth, n_bins) for nth in range(n_bins)]
    return Ratio(_sum_of_gaps, (*gaps, s.rows), s.where(has_rows, own), has_rows, std_error=False)


def _sum_of_gaps(*sums: Any) -> Any:
    *gaps, rows = sums
    return over(sum(abs(gap) for gap in gaps), rows)


@score_metric(
    range=(0, 1),
    formula="largest |true positive rate - false positive rate|",
    source="Kolmogorov 1933; Smirnov 1948",
    needs="classes",
)
def ks(s: RowStatistics, *, average: Average = "row") -> Ratio | Over:
    """Kolmogorov-Smirnov distance between the scores of positive and of negative rows.

    Formula: the largest difference between true and false positive rate at any threshold. Users of one class are left
    out with `average=user`. It has no standard error, as the largest difference in a sample is too large.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8], metrics="ks"
    ... )
    >>> report["ks"]
    0.5
    """
    pairs = s.positives * s.negatives
    if average == "user":
        return s.mean(s.largest_distance, pairs / pairs)
    return s.over_all_rows(lambda runs: runs.ks(), each=s.where(pairs / pairs, s.largest_distance))


@score_metric(
    range=(0, 1), formula="largest TP / P where TP / (TP + FP) >= at", source="TorchMetrics 2020", needs="classes"
)
def recall_at_precision(s: RowStatistics, *, at: Rate) -> Over:
    """Largest recall at a threshold that has at least the precision `at`: what one finds at a tolerable error.

    Formula: largest TP / P over the distinct scores as thresholds with TP / (TP + FP) >= at; 0 if there is none. The
    rates are compared as doubles, so 9 of 10 rows have the precision 0.9. It has no standard error.

    Examples
    --------
    >>> text = "recall_at_precision(at=0.6)"
    >>> fastrec.evaluate_scores(
    ...     [1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], metrics=text
    ... )[text]
    1.0
    """
    return s.over_all_rows(lambda runs: runs.rate_where("recall", "precision", at))


@score_metric(
    range=(0, 1), formula="largest TP / (TP + FP) where TP / P >= at", source="TorchMetrics 2020", needs="classes"
)
def precision_at_recall(s: RowStatistics, *, at: Rate) -> Over:
    """Largest precision at a threshold that has at least the recall `at`.

    Formula: largest TP / (TP + FP) over the distinct scores as thresholds with TP / P >= at, compared as in
    `recall_at_precision`. It has no standard error.

    Examples
    --------
    >>> text = "precision_at_recall(at=0.5)"
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], metrics=text
    ... )
    >>> round(report[text], 12)
    0.666666666667
    """
    return s.over_all_rows(lambda runs: runs.rate_where("precision", "recall", at))


@score_metric(range=(0, 1), formula="largest TP / P where TN / N >= at", source="TorchMetrics 2020", needs="classes")
def sensitivity_at_specificity(s: RowStatistics, *, at: Rate) -> Over:
    """Largest sensitivity (recall) at a threshold that has at least the specificity `at`.

    Formula: largest TP / P over the distinct scores, and a threshold above all, with TN / N >= at, compared as in
    `recall_at_precision`. It has no standard error.

    Examples
    --------
    >>> text = "sensitivity_at_specificity(at=0.5)"
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], metrics=text
    ... )
    >>> round(report[text], 12)
    0.666666666667
    """
    return s.over_all_rows(lambda runs: runs.rate_where("recall", "specificity", at))


@score_metric(range=(0, 1), formula="largest TN / N where TP / P >= at", source="TorchMetrics 2020", needs="classes")
def specificity_at_sensitivity(s: RowStatistics, *, at: Rate) -> Over:
    """Largest specificity at a threshold that has at least the sensitivity (recall) `at`.

    Formula: largest TN / N over the distinct scores, and a threshold above all, with TP / P >= at, compared as in
    `recall_at_precision`. It has no standard error.

    Examples
    --------
    >>> text = "specificity_at_sensitivity(at=0.5)"
    >>> fastrec.evaluate_scores(
    ...     [1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], metrics=text
    ... )[text]
    0.5
    """
    return s.over_all_rows(lambda runs: runs.rate_where("specificity", "recall", at))


@score_metric(
    range=(0, 1),
    formula="FP / N = FN / P",
    source="Green & Swets 1966; Martin et al. 1997",
    needs="classes",
    direction="lower",
    aliases=("equal_error_rate",),
)
def eer(s: RowStatistics, *, interpolation: Literal["linear", "nearest"] = "linear") -> Over:
    """Equal error rate: share of the rows of each class on the wrong side, at the threshold where both are equal.

    Formula: FP / N where FP / N = FN / P. Between two distinct scores both change on straight lines, as if tied rows
    were in any order (`linear`). `nearest` is (FP / N + FN / P) / 2 at the score that has the smallest difference of
    the two, and of two such scores at the higher one, as TorchMetrics. It has no standard error.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1, 0], [0.8, 0.6, 0.6, 0.2], metrics="eer"
    ... )
    >>> report["eer"]
    0.25
    """
    return s.over_all_rows(lambda runs: runs.eer(interpolation))
