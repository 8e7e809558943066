"""Geometric means over users, an option of metrics that are means of values from 0 to 1 of all counted users."""

from __future__ import annotations

import math
from typing import Any

from fastrec.exceptions import MetricError
from fastrec.kernels import codes as op
from fastrec.metrics.declaration import Call
from fastrec.metrics.dual import differentiable
from fastrec.metrics.statistics import Combined, Ratio, Row, constant, maximum

FLOOR = 1e-5  # of a user's value, as in trec_eval


def _slopes(mean: Any) -> tuple[float]:
    return (math.exp(mean),)


@differentiable(_slopes)
def _exponential(mean: Any) -> float:
    return math.exp(mean)


def geometric_mean(row: Row) -> Combined:
    """Return the geometric mean of a row, with values below the floor counted as the floor."""
    return Combined(_exponential, (Row(op.LOGARITHM, (maximum(row, constant(FLOOR)),)),))


def refuse_geometric(call: Call, result: Any, *, is_estimated: bool) -> None:
    """Raise an error for a metric without a geometric mean."""
    low, high = call.metric.range
    why = None
    if low < 0 or high is None or high > 1:
        why = "has values outside 0 to 1"
    elif isinstance(result, Ratio) and result.is_mean:
        why = "leaves out users by a rule of its own"
    elif not isinstance(result, Row):
        why = "is no mean of users' values"
    elif is_estimated:
        why = "is estimated from sampled lists, and estimates may be outside 0 to 1"
    if why is not None:
        raise MetricError(
            f"{call.text}: {call.metric.name} {why}, so it has no geometric mean: leave out mean=geometric"
        )
