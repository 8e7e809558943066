"""Statistics of users who read their lists downwards."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fastrec.items.listed import ListsAndTruth, fill_by_cutoffs
from fastrec.kernels import user_models as kernels
from fastrec.metrics.program import UNCUT
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def fill(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill gains per rank; a key has a cut-off, a kind of user model, its parameter, max_gain, depth and `min_gain`."""

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        kind, parameter, largest, depth, least = key
        goal = Fraction(parameter) * Fraction(largest)
        exact = float(goal), float(goal - Fraction(float(goal)))
        model = kernels.UserModel(kind, parameter, largest, exact, UNCUT if depth is None else depth)
        lists = sides.graded_lists(least, 0.0)
        call(kernels.expect_gain, lists, model, cutoffs, found, work=8 * len(lists.ranks) + found.size)

    fill_by_cutoffs(keys, out, fill_one)
