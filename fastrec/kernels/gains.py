"""What a grade is worth."""

from __future__ import annotations

import numpy as np

from fastrec.kernels.jit import helper
from fastrec.kernels.opcodes import EXP2, LINEAR, TABLE


@helper
def map_gain(gain, gain_map, tables):
    """The gain of a grade; see the kinds of gain map."""
    kind = gain_map[0]
    if kind == LINEAR:
        return gain
    if kind == TABLE:
        return tables[np.int64(gain_map[1]), np.int64(gain)]
    grown = 2.0**gain - 1.0
    return grown if kind == EXP2 else grown / 2.0 ** gain_map[1]
