"""Metrics of the whole catalogue as statistics of sampled lists: which formulas have an estimate, and what it reads."""

from __future__ import annotations

from typing import Any

from fastrec.exceptions import Argument, MetricError
from fastrec.kernels import codes as op
from fastrec.metrics.program import is_linear, sides_of
from fastrec.metrics.statistics import Combined, Row, constant
from fastrec.policies import CORRECT

OF_ALL_HITS, OF_ONE_HIT = "ranks in the catalogue", "the rank in the catalogue"  # providers; see `items.sampled`
SAMPLED = "sampled"  # the side that they read


def of_whole_catalogue(result: Any, min_gain: float) -> Row | Combined:
    """Return the result of a formula with estimates in place of what depends on the ranks of hits.

    `min_gain` is that of the statistics of the formula. Raise MetricError if a formula is not linear in sums over
    relevant items of a value of their rank, or reads anything else of the lists.
    """
    if isinstance(result, int | float):
        return constant(float(result))
    if isinstance(result, Combined):
        return Combined(result.function, tuple(_estimated(row, min_gain) for row in result.rows))
    if not isinstance(result, Row):
        raise _refused("is no mean over users of a sum over relevant items")
    return _estimated(result, min_gain)


def _estimated(row: Row, min_gain: float) -> Row:
    if not is_linear(row):
        raise _refused("is no sum over relevant items of a value of their rank")
    return _replaced(row, min_gain)


def _replaced(row: Row, min_gain: float) -> Row:
    if not isinstance(row.key, tuple):
        return Row(row.key, tuple(_replaced(part, min_gain) for part in row.parts))
    kind, *options = row.key
    if kind == "n_rec" or (kind == "provided" and "recs" in sides_of(row)):
        raise _refused("reads the sampled items or their number")
    if kind in ("hits", "any_hit") and options[0] is None:
        return row  # lists hold the same relevant items as the whole catalogue does
    if kind in ("hits", "any_hit"):
        return Row(("provided", OF_ALL_HITS if kind == "hits" else OF_ONE_HIT, options[0], "one", "binary", min_gain))
    if kind == "series":
        cutoff, series, weight, gain = options
        if series == op.FIRST:
            return Row(("provided", OF_ONE_HIT, cutoff, weight, "binary", min_gain))
        if series in (op.WEIGHT, op.GAIN_WEIGHT):
            gain = "binary" if series == op.WEIGHT else gain
            return Row(("provided", OF_ALL_HITS, cutoff, weight, gain, min_gain))
    if kind in ("series", "mean_precision", "hits_at"):
        raise _refused("is no sum over relevant items of a value of their rank")
    return Row(row.key, tuple(_replaced(part, min_gain) for part in row.parts))


def _refused(why: str) -> MetricError:
    return MetricError(
        f"{why}, so sampled lists give no estimate of it: leave the metric out, or ",
        Argument("correct", (CORRECT.default,)),
    )


def arrays_refused(metric: str) -> MetricError:
    """Return the error about a formula on arrays."""
    return MetricError(metric, " ", _refused("has a formula on arrays").text)
