"""Estimators of the value of a policy: their weights, their divisors, and their definitions, each declared once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastrec.kernels import weights as kernels


class Estimator(NamedTuple):
    """An estimator: how it weighs rows, what it divides by, and what it is for."""

    weights: int
    divisor: int
    formula: str
    source: str
    by_position: bool = False
    predicted: bool = False

    def form(self, clip: float | None) -> kernels.Weighing:
        """Return what the kernel adds for it."""
        wanted = {
            kernels.VALUE: not self.by_position,
            kernels.WEIGHT: True,
            kernels.SQUARE: True,
            kernels.CROSS: self.divisor != kernels.SLATES,
            kernels.RAW: clip is not None,
            kernels.RAW_BY_ROWS: not self.is_whole,
            kernels.VALUE_SQUARE: True,
        }
        sums = np.array([row for row, is_wanted in wanted.items() if is_wanted], np.int64)
        limit = math.inf if clip is None else clip
        is_plain = self.weights == kernels.OF_ROW and clip is None and not self.predicted
        raw = kernels.WEIGHT if is_plain else kernels.RAW
        return kernels.Weighing(
            self.weights, self.divisor, limit, self.predicted, self.by_position, is_plain, raw, sums
        )

    @property
    def is_whole(self) -> bool:
        """Whether a slate has one weight."""
        return self.weights == kernels.OF_SLATE

    @property
    def is_ordered(self) -> bool:
        """Whether it depends on the order of the rows of a slate."""
        return self.weights == kernels.RUNNING or self.by_position

    @property
    def unit(self) -> str:
        """What the value is the mean of."""
        return "row" if self.divisor != kernels.SLATES and not self.is_whole else "slate"


_CLASSIC = "Horvitz & Thompson 1952; Precup, Sutton & Singh 2000"
_SELF = "Swaminathan & Joachims 2015"
_MCINERNEY = "McInerney et al. 2020"
ESTIMATORS = {
    "ips": Estimator(kernels.OF_ROW, kernels.ROWS, "mean over rows of w r", _CLASSIC),
    "snips": Estimator(kernels.OF_ROW, kernels.WEIGHTS, "sum of w r / sum of w, over rows", _SELF),
    "sips": Estimator(kernels.OF_SLATE, kernels.SLATES, "mean over slates of (product of w) (sum of r)", _MCINERNEY),
    "iips": Estimator(kernels.OF_ROW, kernels.SLATES, "mean over slates of the sum of w r", "Li et al. 2018"),
    "rips": Estimator(
        kernels.RUNNING, kernels.SLATES, "mean over slates of the sum of (product of w up to the row) r", _MCINERNEY
    ),
    "snsips": Estimator(
        kernels.OF_SLATE, kernels.WEIGHTS, "sips, divided by the mean weight of slates", f"{_MCINERNEY}; {_SELF}"
    ),
    "sniips": Estimator(
        kernels.OF_ROW,
        kernels.SLATES,
        "iips, each position divided by its mean weight",
        f"Li et al. 2018; {_SELF}",
        by_position=True,
    ),
    "snrips": Estimator(
        kernels.RUNNING,
        kernels.SLATES,
        "rips, each position divided by its mean weight",
        f"{_MCINERNEY}; {_SELF}",
        by_position=True,
    ),
    "dr": Estimator(
        kernels.OF_ROW,
        kernels.ROWS,
        "mean over rows of q_new + w (r - q)",
        "Dudik, Langford & Li 2011",
        predicted=True,
    ),
    "cascade_dr": Estimator(
        kernels.RUNNING,
        kernels.SLATES,
        "mean over slates of the sum of v (r - q) + v_before q_new, v the product of w up to the row",
        "Kiyohara et al. 2022",
        predicted=True,
    ),
}
