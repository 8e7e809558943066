"""Statistics of a user's targets and predictions: relative errors, and the spread of the targets."""

from __future__ import annotations

import numpy as np

from fastrec.kernels.runs import NO_SUM, add_product, weight_of
from fastrec.runtime.compiler import helper

__all__ = ["spread_of_targets", "sum_of_relative_errors", "sum_of_targets"]


@helper
def sum_of_relative_errors(least, labels, scores, weights):
    """Return the sum of w |score - label| / max(|label|, least)."""
    total = 0.0
    for j in range(len(scores)):
        target = np.float64(labels[j])
        total += weight_of(weights, j) * (abs(np.float64(scores[j]) - target) / max(abs(target), least))
    return total


@helper
def sum_of_targets(parameter, labels, weights):
    """Return the first or the second double of the sum of w label^power, up to 2; the second is the rest."""
    is_rest, power = np.int64(parameter) & 1, np.int64(parameter) >> 1
    parts = NO_SUM
    for j in range(len(labels)):
        target, weight = np.float64(labels[j]), weight_of(weights, j)
        if power < 2:
            parts = add_product(parts, weight, target if power == 1 else 1.0)
        else:
            square = add_product(NO_SUM, target, target)
            parts = add_product(add_product(parts, weight, square[0]), weight, square[1])
    return parts[1] + parts[2] if is_rest else parts[0]


@helper
def spread_of_targets(labels, weights):
    """Return the sum of w (label - mean)^2 of a user's rows: 0 if all are equal, without rounding."""
    parts, rows, first, equal = NO_SUM, 0.0, -1, True
    for j in range(len(labels)):
        weight = weight_of(weights, j)
        if weight > 0.0:
            first = j if first < 0 else first
            equal = equal and labels[j] == labels[first]
            parts = add_product(parts, weight, np.float64(labels[j]))
            rows += weight
    if equal:
        return 0.0
    mean = (parts[0] + (parts[1] + parts[2])) / rows
    total = 0.0
    for j in range(len(labels)):
        gap = np.float64(labels[j]) - mean
        total += weight_of(weights, j) * (gap * gap)
    return total
