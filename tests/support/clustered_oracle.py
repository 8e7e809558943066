"""Standard errors over users of metrics of all rows, from their definition, in plain Python.

The *slope* of a metric in the weight of a row is by how much the metric grows with that weight, over the growth. The
variance is U / (U - 1) times the sum over the U users of the squared sums of their rows' slopes times weights. For the
AUC these are placements less the area, over the weight of the class, which gives the error of Obuchowski (1997).
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from support.score_oracle import (
    CLASSES,
    HALF,
    Counts,
    Row,
    Rows,
    all_pairs,
    average_precision,
    counts_at,
    limits_of,
    mcc_at,
    part_of_area,
    positives,
    r2,
    rates_at,
    root,
    scaled,
    spread_of,
    weight_of,
)
from support.score_oracle import negatives as negatives_of

Slope = Callable[[Row], Fraction]
TINY = 10**250  # changes of fractions, which do not round: their squares are small beside any share of the weight


def error_over_users(slope: Slope, users: Sequence[Rows]) -> float:
    sums = [float(sum((row.weight * slope(row) for row in rows), Fraction(0))) for rows in users]
    n = len(users)
    return math.nan if n < 2 else math.sqrt(n / (n - 1) * math.fsum(each * each for each in sums))


def few_users_of_a_class(users: Sequence[Rows]) -> bool:
    """Whether fewer than two users have positive rows, or negative ones: their spread is then unknown."""
    return any(sum(bool(weight_of(of_class(rows))) for rows in users) < 2 for of_class in (positives, negatives_of))


def slope_of_auc(everything: Rows, *, scale: str = "mcclish", **limits: float) -> Slope:
    side, low, high = limits_of(**limits)
    if (low, high) != (0, 1):
        return slope_of_part(everything, side, low, high, scale)
    area = all_pairs(everything)
    good, bad = positives(everything), negatives_of(everything)
    assert area is not None

    def slope(row: Row) -> Fraction:
        others, own = (bad, good) if row.label == 1 else (good, bad)
        sign = 1 if row.label == 1 else -1
        won = Fraction(0)
        for other in others:
            apart = sign * ((row.score > other.score) - (row.score < other.score))
            won += other.weight * (1 if apart > 0 else HALF if apart == 0 else 0)
        return (won / weight_of(others) - area) / weight_of(own)

    return slope


def slope_of_part(everything: Rows, side: str, low: Fraction, high: Fraction, scale: str) -> Slope:
    """By small changes of the weight of a row; where the curve rises at a limit, of the part within the limits.

    The scaled area has two slopes at that of chance. The one above it counts.
    """
    inside, step = Fraction(1, 10**15), weight_of(everything) / 10**24
    area, more = part_of_area(everything, side, low, high), Fraction(1, 10**24)
    factor = (scaled(area + more, side, low, high, scale) - scaled(area, side, low, high, scale)) / more

    @functools.cache
    def slope_at(label: float, score: float) -> Fraction:
        areas = [
            part_of_area((*everything, Row(label, score, way * step)), side, low + inside, high - inside)
            for way in (1, -1)
        ]
        return factor * (areas[0] - areas[1]) / (2 * step)

    return lambda row: slope_at(row.label, row.score)


def slope_of_precision(everything: Rows) -> Slope:
    """The mean over positives of precision at their score: each row is in the precision at all scores up to its own."""
    area, good = average_precision(everything), positives(everything)
    assert isinstance(area, Fraction)
    reached = {row.score: weight_of(each for each in everything if each.score >= row.score) for row in everything}
    precisions = {
        score: weight_of(each for each in good if each.score >= score) / own for score, own in reached.items() if own
    }

    def slope(row: Row) -> Fraction:
        found = precisions.get(row.score, area) - area if row.label == 1 else Fraction(0)
        for other in good:
            if row.score >= other.score and other.weight:
                found += other.weight * (Fraction(row.label) - precisions[other.score]) / reached[other.score]
        return found / weight_of(good)

    return slope


def slope_of_r2(everything: Rows) -> Slope:
    """Of 1 - e / v: a row adds to the squared errors e, and its squared distance from the mean to the spread v."""
    share, spread = 1 - Fraction(r2(everything) or 0), spread_of(everything)
    mean = sum((row.weight * Fraction(row.label) for row in everything), Fraction(0)) / weight_of(everything)

    def slope(row: Row) -> Fraction:
        error = (Fraction(row.score) - Fraction(row.label)) ** 2
        return (share * (Fraction(row.label) - mean) ** 2 - error) / spread

    return slope


def slope_of_mcc(everything: Rows, threshold: float) -> Slope:
    """By small changes of the four counts: c / sqrt(p) has the slope (c' - c p' / 2p) / sqrt(p)."""
    counts = counts_at(everything, threshold)

    def parts(of: Counts) -> tuple[Fraction, Fraction]:
        return of.tp * of.tn - of.fp * of.fn, (of.tp + of.fp) * (of.tp + of.fn) * (of.tn + of.fp) * (of.tn + of.fn)

    covariance, product = parts(counts)
    size, step = Fraction(mcc_at(counts)[1]), weight_of(everything) / TINY
    slopes = []
    for at in range(4):
        (c, p), (c2, p2) = (
            parts(Counts(*(own + way * step * (at == nth) for nth, own in enumerate(counts)))) for way in (1, -1)
        )
        slopes.append(((c - c2) - covariance * (p - p2) / (2 * product)) / (2 * step) / size)
    tp, fp, fn, tn = slopes

    def slope(row: Row) -> Fraction:
        above = row.score >= threshold
        return (tp if above else fn) if row.label == 1 else (fp if above else tn)

    return slope


def slope_at_threshold(metric: str, everything: Rows, threshold: float) -> Slope | None:
    """The slope of a function of the four counts, by small changes of them; None where it has none.

    For a root it is that of the square over twice the value.
    """
    counts = counts_at(everything, threshold)
    function = rates_at if metric == "g_mean" else CLASSES[metric]
    up, down = function(counts)
    if down == 0 or (metric == "g_mean" and up == 0):
        return None
    step = weight_of(everything) / TINY
    slopes = []
    for at in range(4):
        (up, down), (up2, down2) = (
            function(Counts(*(own + way * step * (at == nth) for nth, own in enumerate(counts)))) for way in (1, -1)
        )
        slopes.append((Fraction(up) / Fraction(down) - Fraction(up2) / Fraction(down2)) / (2 * step))
    if metric == "g_mean":
        value = Fraction(root(Fraction(*map(Fraction, rates_at(counts)))))
        slopes = [each / (2 * value) for each in slopes]
    tp, fp, fn, tn = slopes

    def slope(row: Row) -> Fraction:
        above = row.score >= threshold
        return (tp if above else fn) if row.label == 1 else (fp if above else tn)

    return slope
