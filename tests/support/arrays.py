"""What only NumPy 2 has, for tests that also run with NumPy 1.26."""

from typing import Any

import numpy as np

STRINGS: list[Any] = [np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []
"""The dtype of strings of variable width, if NumPy has it."""


def area_of_trapezoids(y: Any, x: Any) -> float:
    """Return the area below straight lines between points, as `numpy.trapezoid` does."""
    heights = np.asarray(y)
    return float(np.diff(x) @ (heights[1:] + heights[:-1]) / 2)
