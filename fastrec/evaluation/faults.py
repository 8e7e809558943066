"""Errors for failures in a kernel, with the names of users and items, values and limits of the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrec.checks import counted
from fastrec.evaluation.engine import KernelError
from fastrec.exceptions import Argument, InputError, MetricError, RowNumber, shown
from fastrec.inputs.lists import Lists, Names
from fastrec.kernels import codes as op
from fastrec.metrics.plan import Plan
from fastrec.metrics.sums import Failure
from fastrec.policies import ORDERS

MERGE_LISTS = " would accept it; if a user has several lists, name all columns that tell them apart as the user"


def explain_fault(
    error: KernelError,
    plan: Plan,
    names: Names,
    rules: Mapping[str, Any],
    lists: Lists | None,
    n_rows_of_items: int | None = None,
) -> InputError:
    """Return the error for a failure in a kernel, with the names of users and items.

    `n_rows_of_items` is the default of n_items.
    """
    (code, user, at), metric = error.failure, error.metric
    who = names.user(user)
    if lists is not None and (wrong := _explain_item(error.failure, who, names, lists)) is not None:
        return wrong
    if code == op.TIED:
        return _explain_tie(who, plan, rules["ties"])
    if code == op.USER_NO_TRUTH:
        return InputError(f"user {who} has no relevant item, and ", Argument("no_truth", ("error",)))
    if code == op.USER_NO_RECS:
        return InputError(f"user {who} has no list, and ", Argument("no_recs", ("error",)))
    if code == op.SMALL_CATALOGUE:
        found, n_items = f"list and truth of user {who} have {at} items", rules["n_items"]
        if n_items != n_rows_of_items:
            return InputError(f"n_items = {n_items} is too small: {found}")
        mend = "add what it lacks, or give the size of the catalogue as "
        return InputError(
            Argument("items"), f" has {counted(n_items, 'row')}, but {found}: {mend}", Argument("n_items", (...,))
        )
    if error.message:
        return InputError(f"user {who} ", error.message)
    if code in (op.OUT_OF_LIMITS, op.OUT_OF_RANGE):
        declared = next(call.metric for call in plan.calls if call.text == metric)
        if declared.builtin:
            return InputError(f"{metric} of user {who} needs sums that are too large for a double")
        within = f"range={shown(declared.range)}"
        return InputError(
            f"{metric} of user {who} is not a number within {within}, its range: declare range=(low, high)"
        )
    return InputError(f"{metric} of user {who} is too large for a double")


def _explain_tie(who: str, plan: Plan, ties: str) -> InputError:
    if ties == "error":
        rule = Argument("ties", ("error",))
        return InputError(f"user {who} has a relevant item with the same score as another item, and ", rule)
    return MetricError(
        f"{plan.not_linear[0]} has no closed form for the mean over orders of tied scores, and user {who} has tied "
        "scores; choose an order with ",
        Argument("ties", ORDERS),
    )


def _explain_item(failure: Failure, who: str, names: Names, lists: Lists) -> InputError | None:
    """Return the error for an item that appears twice or is negative; None for other failures."""
    code, user, at = failure
    if code in (op.DUPLICATE_REC, op.NEGATIVE_REC):
        item = lists.rec_items[lists.rec_indptr[user] + at]
        where, again, mend = (
            f"recs of user {who}: item",
            f", the second time at rank {at + 1}",
            MERGE_LISTS,
        )
        negative: object = f" at rank {at + 1}"
    elif code in (op.DUPLICATE_TRUTH, op.NEGATIVE_TRUTH):
        item = lists.truth_items[lists.truth_indptr[user] + at]
        where, again, mend = f"truth of user {who}: item", "", " would merge"
        negative = RowNumber.at(at, "position")
    else:
        return None
    if code in (op.DUPLICATE_REC, op.DUPLICATE_TRUTH):
        choices = Argument("duplicates", ("first", "miss"))
        return InputError(f"{where} {names.item(item)} appears twice{again}; ", choices, mend)
    return InputError(f"{where} ids must not be negative, found {item}", negative)
