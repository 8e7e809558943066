"""Results as bytes, for comparisons to the last bit."""

from typing import Any

import numpy as np

import fastrec

Bits = dict[str, Any]


def number_bits(values: Any) -> list[int]:
    """Return the bits of some numbers; every NaN has the same."""
    array = np.asarray(values, np.float64)
    out: list[int] = np.where(np.isnan(array), np.nan, array).view(np.int64).tolist()
    return out


def mean_bits(estimates: dict[str, fastrec.Estimate]) -> Bits:
    return {name: (number_bits([e.mean, e.std_error]), e.users) for name, e in estimates.items()}


def group_bits(report: fastrec.Report) -> Bits:
    return {
        f"{grouping}={label}": mean_bits(estimates)
        for grouping, by_label in report.groups.items()
        for label, estimates in by_label.items()
    }


def user_bits(report: fastrec.Report, order: Any = slice(None)) -> Bits:
    return {name: number_bits(values[order]) for name, values in report.per_user.items()}


def bits_of(report: fastrec.Report) -> Any:
    return mean_bits(report.estimates), group_bits(report), dict(report.users)
