"""The rows of a drift: a log, a step between two logs, a trend, a share of the exposure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from fastrec.report.estimates import Estimate

MIN_LOGS = 3  # of a trend with a standard error
OF_USERS = ("popularity", "aplt", "miscalibration")  # columns that are means over users
PAIRS = "pair_overlap"  # the column that is a mean over pairs of users


def metric_of(column: str) -> str:
    """Return the name of the metric of a column, without its options and the cut-off."""
    return column.partition("@")[0].partition("(")[0]


class DriftLog(NamedTuple):
    """The levels of one log.

    log : name.
    users : with a list.
    levels : {column: Estimate}.
    """

    log: str
    users: int
    levels: Mapping[str, Estimate]


class DriftStep(NamedTuple):
    """The change from one log to the next.

    log, before : names.
    users : with a list in both logs.
    changes : {column: Estimate} of the difference; its `users` are those that it is computed from.
    exposure_shift : Jensen-Shannon divergence of the two distributions of exposure, base 2, from 0 to 1.
    overlap, rbo : of the consecutive lists of a user, means over the users with a list in both logs.
    """

    log: str
    before: str
    users: int
    changes: Mapping[str, Estimate]
    exposure_shift: float
    overlap: Estimate
    rbo: Estimate


class Trend(NamedTuple):
    """The slope of a level over the logs, by least squares.

    slope : change per log.
    std_error : standard error of the slope.
    logs : number of logs with this level; with fewer than three, slope and error are NaN.
    weighted : whether logs have the weight 1 / std_error^2. Without, the error follows from the residuals.
    """

    slope: float
    std_error: float
    logs: int
    weighted: bool

    @property
    def estimate(self) -> Estimate:
        """The slope as an estimate: two degrees of freedom of the residuals go into the line."""
        return Estimate(self.slope, self.std_error, 0, math.inf if self.weighted else self.logs - 2)


class Share(NamedTuple):
    """The share of the exposure of a log that the items of a segment or provider get.

    log : name.
    column, label : of `items`.
    share : of the places of the first k in all lists.
    history_share : of the rows of the history that have a label in the column; NaN without a history.
    """

    log: str
    column: str
    label: str | int
    share: float
    history_share: float
