"""Checks of the settings of an evaluator of lists, and of lists against its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec.arguments.groups import MinGain
from fastrec.checks import check_min_gain, whole_number
from fastrec.evaluation.evaluators import MAX_ROWS_OF_USER
from fastrec.evaluation.row_rules import check_grades
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.inputs.lists import Lists
from fastrec.metrics.plan import Plan
from fastrec.policies import ITEM_POLICIES

__all__ = ["check_min_gain_of_lists", "check_n_users", "check_sizes", "item_policies"]


def item_policies(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the policies of items and histories that a call gives, checked."""
    found = {name: given[name] for name in ITEM_POLICIES if given[name] is not None}
    for name, value in found.items():
        ITEM_POLICIES[name].check(value)
    return found


def check_n_users(n_users: Any) -> int | None:
    """Return the argument as an int, or None."""
    number = whole_number(n_users)
    if n_users is not None and (number is None or number < 1):
        raise InputError(Argument("n_users"), f" must be an integer of at least 1, found {shown(n_users)}")
    return number


def check_min_gain_of_lists(min_gain: Any) -> MinGain | None:
    """Return the argument, checked."""
    if isinstance(min_gain, str):
        if min_gain != "any":
            raise InputTypeError(Argument("min_gain"), f" must be a number or 'any', found {shown(min_gain)}")
        return "any"
    return check_min_gain(min_gain)


def check_sizes(plan: Plan, lists: Lists) -> None:
    """Raise InputError for users with too many items, and for gains that the metrics cannot take."""
    longest_list, longest_truth = lists.longest
    if longest_list + longest_truth > MAX_ROWS_OF_USER:
        raise InputError(
            f"list and truth of a user may have {MAX_ROWS_OF_USER} items together, found {longest_list} in the longest "
            f"list and {longest_truth} in the longest truth"
        )
    if len(lists.truth_items):
        check_grades(plan, np.ones(1) if lists.gains is None else lists.gains, "truth gains")
