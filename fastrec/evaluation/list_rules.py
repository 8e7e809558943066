"""Checks of the settings of an evaluator of lists, and of lists against its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec.arguments.groups import MinGain
from fastrec.checks import MAX_ITEMS, check_min_gain, whole_number
from fastrec.evaluation.accumulators import find_accumulator
from fastrec.evaluation.evaluators import MAX_ROWS_OF_USER, wanted_metrics
from fastrec.evaluation.row_rules import check_grades
from fastrec.exceptions import Argument, InputError, InputTypeError, MetricError, shown
from fastrec.inputs.lists import Lists
from fastrec.metrics.calls import of_lists_instead
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.policies import ITEM_POLICIES

__all__ = ["check_min_gain_of_lists", "check_n_users", "check_sizes", "item_policies", "read_no_truth"]


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


def read_no_truth(
    metrics: Any, like: str | None = None, k: Any = None, min_gain: MinGain | None = None, *, of_lists: bool = False
) -> bool:
    """Return whether all metrics of a call are of lists, and none reads a truth. Raise for wrong metrics.

    `of_lists`: the call is one of lists in any case, so that metrics of rows by the name of a tool are wrong, too.
    """
    try:
        calls = tuple(wanted_metrics("lists", like, metrics, k, min_gain).calls)
    except MetricError:
        if like is None or of_lists:
            raise
        wanted_metrics("rows", like, metrics, k, min_gain)  # raises for metrics that the tool has for neither
        return False
    for call in calls:
        if of_lists and (instead := of_lists_instead(call.metric)):
            raise MetricError(f"{call.text} is a metric of scored rows{instead}")
    if not all(call.metric.family is LISTS for call in calls):
        return False
    plan = make_plan(calls, Asked(n_items=MAX_ITEMS))
    over = {find_accumulator(value.over.accumulator).sides for value in plan.values if value.over is not None}
    read = frozenset().union(*plan.reads.values(), *plan.filled.values(), *over)
    return read.isdisjoint(("truth", "rows"))
