"""Metrics of lists that model a user who reads downwards, and that compare a list with its ideal depth by depth.

A user model says with which probability C(r) a user goes on after rank r, so that rank r is reached with probability
C(1) ... C(r - 1). Its metric is the expected gain per rank: the mean of the gains of all ranks, weighted by these
probabilities. Gains are divided by `max_gain`, so that they are from 0 to 1: here `g_r` is such a gain, and `G_r` the
sum of those up to rank r. Ranks past the end of a list have no gain, and count; with a cut-off, ranks past k have no
gain either. There is no last rank, unless `depth` names one. Other letters are those of `fastrec.metrics.lists`.
"""

from __future__ import annotations

from typing import Literal

from fastrec.exceptions import MetricError
from fastrec.kernels import user_models as models
from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Count, Fraction, Goal, UpTo1000
from fastrec.metrics.statistics import ListStatistics, Row

Depth = Literal["all"] | Count
NERR = {"cut": models.CUT, "reciprocal": models.RECIPROCAL, "patience": models.PATIENCE, "goal": models.GOAL}
MODELS, COMPATIBILITY = "user models", "compatibility"
LEAST_GOAL = 0.25


def _gain_per_rank(s: ListStatistics, kind: int, parameter: float, max_gain: float, depth: float | str) -> Row:
    s.limit_gains(max_gain)
    last = None if depth == "all" else int(depth)
    return s.provided(MODELS, s.cutoff, kind, float(parameter), float(max_gain), last, s.min_gain)


@ranking_metric(
    range=(0, 1),
    formula="sum of g_r / (r + 2t - 1)^2 / S",
    source="Moffat, Scholer & Thomas 2012",
)
def insq(s: ListStatistics, *, max_gain: UpTo1000, t: Goal = 1.0, depth: Depth = "all") -> Row:
    """Inverse squares: the gain per rank of a user who wants t relevant items and goes on with growing probability.

    Formula: sum over r <= k of g_r / (S (r + 2t - 1)^2), with S the sum of 1 / (r + 2t - 1)^2 over all r. A user goes
    on with C(r) = ((r + 2t - 1) / (r + 2t))^2. Gains g_r are divided by `max_gain`, above which a gain is an error.
    `depth` is the last rank, or `all`: no rank is.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], "insq(max_gain=1)")
    >>> round(report["insq(max_gain=1)"], 12)
    0.484545655228
    """
    s.limit_gains(max_gain)
    last = float("inf") if depth == "all" else float(depth)
    return s.gain_sum("linear", ("inverse_square", t, last)) / max_gain


@ranking_metric(range=(0, 1), formula="expected gain per rank", source="Moffat, Bailey, Scholer & Thomas 2015")
def inst(s: ListStatistics, *, max_gain: UpTo1000, t: Goal = 1.0, depth: Depth = "all") -> Row:
    """INST: the gain per rank of a user who wants t relevant items, and goes on less likely once they are found.

    Formula: sum of W(r) g_r / sum of W(r), with W(r) = C(1) ... C(r - 1) and C(r) = ((x - 1) / x)^2, where
    x = r + 2t - G_r and G_r is the gain found up to r. Gains are divided by `max_gain`, above which a gain is an error.
    `depth` is the last rank, or `all`: no rank is. t must be at least 0.25, or C would exceed 1.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], "inst(max_gain=1)")
    >>> round(report["inst(max_gain=1)"], 12)
    0.723079587828
    """
    if t < LEAST_GOAL:
        raise MetricError(f"takes a goal of at least {LEAST_GOAL}, found t={t}: a probability would exceed 1")
    return _gain_per_rank(s, models.INST, t, max_gain, depth)


@ranking_metric(range=(0, 1), formula="gain up to the last rank read / that rank", source="Zhang et al. 2017")
def bpm(s: ListStatistics, *, max_gain: UpTo1000, t: Goal = 1.0, depth: Depth = "all") -> Row:
    """Bejeweled player model, static: the gain per rank of a user who stops at a gain of t, or after k ranks.

    Formula: G_m / m, where m is the first rank with G_m >= t, but at most k; G_m is the gain found up to m. Without a
    cut-off, k is n_rec. Gains are divided by `max_gain`, above which a gain is an error. k is at most `depth` (`all`:
    no limit).

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[7, 2, 3, 4]],
    ...     [[2, 4]],
    ...     ["bpm(max_gain=1)@4", "bpm(max_gain=1, t=2)@4"],
    ... )
    >>> report["bpm(max_gain=1)@4"]
    0.5
    """
    return _gain_per_rank(s, models.BPM, t, max_gain, depth)


@ranking_metric(range=(0, 1), formula="expected gain per rank", source="Azzopardi, Mackenzie & Moffat 2021, eq. 8-11")
def nerr(
    s: ListStatistics,
    *,
    max_gain: UpTo1000,
    model: Literal["reciprocal", "cut", "patience", "goal"] = "reciprocal",
    p: Fraction = 0.9,
    t: Goal = 1.0,
    depth: Depth = "all",
) -> Row:
    """Nearly expected reciprocal rank: the gain per rank of a user who stops at a rank with probability g_r.

    Formula: sum of W(r) g_r / sum of W(r), with W(r) = C(1) ... C(r - 1) and C(r) = (1 - g_r) d(r). By `model`, d(r) is
    r / (r + 1) (`reciprocal`, equation 9) or 1 (`cut`, equation 8), both up to rank k, where the user stops; or `p`
    (`patience`, equation 10) or ((r + 2t - 1) / (r + 2t))^2 (`goal`, equation 11), without a last rank. Without a
    cut-off, k is n_rec. Gains are divided by `max_gain`, above which a gain is an error. `depth` is the last rank, or
    `all`: no rank is.

    Examples
    --------
    A user who stops at rank 2 for sure reads rank 1 twice as often:

    >>> report = fastrec.evaluate([[7, 1, 2]], [[1, 2]], "nerr(max_gain=1)@3")
    >>> round(report["nerr(max_gain=1)@3"], 12)
    0.333333333333
    """
    return _gain_per_rank(s, NERR[model], p if model == "patience" else t, max_gain, depth)


@ranking_metric(
    range=(0, 1),
    formula="rank-biased overlap with the ideal list / that of the ideal with itself",
    source="Clarke, Vtyurina & Smucker 2021",
    aliases=("compat",),
)
def compatibility(s: ListStatistics, *, p: Fraction = 0.95, normalize: Literal["yes", "no"] = "yes") -> Row:
    """Overlap of a list with the ideal list that is most like it, at every depth; upper ranks weigh more.

    Formula: sum over depths d <= D of p^(d - 1) X_d / d / the sum of p^(d - 1), divided by the same for the ideal list
    against itself (`normalize=yes`). X_d items are among the first d of both lists. The ideal list has all relevant
    items by falling gain, items of equal gain in the order of the user's list. D is the length of the longer list; a
    cut-off cuts the user's list only. Gains matter by their order alone.

    Examples
    --------
    The ideal is 2, 1: both have no item in common at depth 1, and two at depth 2.

    >>> report = fastrec.evaluate(
    ...     [[1, 2]], [{1: 1.0, 2: 3.0}], "compatibility(p=0.5)"
    ... )
    >>> report["compatibility(p=0.5)"]
    0.3333333333333333
    """
    return s.provided(COMPATIBILITY, s.cutoff, float(p), normalize == "yes", s.min_gain)
