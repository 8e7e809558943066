"""Gain maps: the gain of a grade."""

from __future__ import annotations

import math

import numpy as np

from .codes import EXP2, LINEAR, TABLE
from .jit import njit

MAX_EXPONENT = 1024.0  # of a double; beyond it, Python raises an error instead of returning infinity


@njit
def map_gain(gain, gain_map, tables):
    """Return the mapped gain of a grade; `fastrec.kernels.codes` lists the kinds of gain map."""
    kind = gain_map[0]
    if kind == LINEAR:
        return gain
    if kind == TABLE:
        return tables[np.int64(gain_map[1]), np.int64(gain)]
    # all powers and logarithms are from `math`: those of NumPy and of compiled code differ in the last bit
    grown = math.exp2(gain) - 1.0 if gain < MAX_EXPONENT else np.inf
    return grown if kind == EXP2 else grown / math.exp2(gain_map[1])
