"""Checks of the settings of an evaluator of lists, and of lists against its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from fastrec.checks import MAX_ITEMS, MinGain, check_min_gain, whole_number, with_article
from fastrec.evaluation.accumulators import find_accumulator
from fastrec.evaluation.protocol import MAX_ROWS_OF_USER, wanted_metrics
from fastrec.exceptions import Argument, InputError, InputTypeError, MetricError, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.lists import Lists
from fastrec.inputs.ragged import as_array
from fastrec.inputs.sides import UNJUDGED, shared_rows
from fastrec.metrics.calls import of_lists_instead
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.policies import ITEM_POLICIES

Array = np.ndarray[Any, Any]


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
        plan.check_grades(np.ones(1) if lists.gains is None else lists.gains, "truth gains")


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


def length_up_to(k: int, lists: Lists) -> int:
    """Return the length of the longest list, or of the first one if this is at least `k`."""
    first = int(lists.rec_indptr[1]) if lists.n_users and lists.lengths is None else 0
    return first if first >= k else lists.longest[0]


def history_of_one_batch(found: str) -> InputError:
    """Return the error about a history by position that would give its first users to each batch."""
    history = Argument("history")
    mend = ": pass dicts or data frames, which are matched by user"
    return InputError(history, " by position holds the users of one batch, ", found, mend)


def with_shared(sides: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the sides that a call passes, and what it excludes."""
    passed = {name: side for name, side in sides.items() if name == "recs" or side is not None}
    shared = shared_rows(passed)
    excluded = "none" if "exclude" not in passed else shared.get("exclude", "given")
    if excluded == UNJUDGED:
        del passed["exclude"], shared["exclude"]
    if "logged" in shared:
        passed["truth"] = _as_frame_of_clicks(passed["truth"])
    return passed | {name: passed[other] for name, other in shared.items()}, excluded


def _as_frame_of_clicks(truth: Any) -> Frame:
    """Return the truth as a frame whose columns the side `logged` may have; raise for another form."""
    found = open_foreign(truth, "truth")
    if isinstance(found, Frame):
        return found
    wanted = " needs a truth with a column of propensities, a data frame: pass one number per row of the truth"
    raise InputError(Argument("logged", ("truth",)), wanted)


def check_examination(curve: Any) -> Array | None:
    """Return the examination of ranks 1, 2, ..., float64 (n,), NaN where it is unknown; or None."""
    if curve is None:
        return None
    if hasattr(curve, "curve"):
        found = f" must be numbers of ranks 1, 2, ..., found {with_article(type(curve).__name__)}: pass its curve"
        raise InputTypeError(Argument("examination"), found)
    if isinstance(curve, str | bytes | Mapping | AbstractSet) or not hasattr(curve, "__len__"):
        raise InputTypeError(Argument("examination"), f" must be numbers of ranks 1, 2, ..., found {shown(curve)}")
    numbers = as_array(curve, "examination")
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or not numbers.size:
        found = f"found dtype {numbers.dtype} and shape {numbers.shape}"
        raise InputTypeError(Argument("examination"), f" must be one number for each of the ranks 1, 2, ..., {found}")
    return np.ascontiguousarray(numbers, np.float64)
