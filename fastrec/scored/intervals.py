"""Intervals of shares of rows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

__all__ = ["quantile_of", "wilson"]

Array = np.ndarray[Any, Any]


def quantile_of(level: float) -> float:
    """Return how many standard errors an interval of a level reaches to both sides."""
    return -NormalDist().inv_cdf((1 - level) / 2)


def wilson(clicks: Array, shown: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the score interval of shares (Wilson 1927); NaN for 0 impressions."""
    z = quantile_of(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = clicks / shown
        middle = (share + z * z / (2 * shown)) / (1 + z * z / shown)
        half = z / (1 + z * z / shown) * np.sqrt(share * (1 - share) / shown + z * z / (4.0 * shown * shown))
    low, high = middle - half, middle + half
    low[clicks == 0] = np.where(shown[clicks == 0] > 0, 0.0, math.nan)  # exactly, without rounding
    high[clicks == shown] = np.where(shown[clicks == shown] > 0, 1.0, math.nan)
    return low, high
