"""What a grade is worth."""

from __future__ import annotations

import math

import numpy as np

from fastrec.kernels.codes import EXP2, LINEAR, TABLE
from fastrec.runtime.compiler import helper

MAX_EXPONENT = 1024.0  # of a double; Python refuses to go past it


@helper
def map_gain(gain, gain_map, tables):
    """The gain of a grade; see the kinds of gain map."""
    kind = gain_map[0]
    if kind == LINEAR:
        return gain
    if kind == TABLE:
        return tables[np.int64(gain_map[1]), np.int64(gain)]
    # `math`, as every power and logarithm here: NumPy's and compiled code's differ in the last bit
    grown = math.exp2(gain) - 1.0 if gain < MAX_EXPONENT else np.inf
    return grown if kind == EXP2 else grown / math.exp2(gain_map[1])
