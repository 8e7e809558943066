"""Propensities of items, from how often users had them in the past."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from fastrec.checks import check_choice, is_number
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.inputs.column_names import Columns
from fastrec.inputs.ids import check_ids, spell
from fastrec.inputs.items import ITEM_ID
from fastrec.inputs.users import alike, as_labels
from fastrec.items.history import HistoryCounts
from fastrec.runtime.limits import resolve_threads

Array = np.ndarray[Any, Any]
MAX_POWER = 100.0


def popularity_propensity(
    history: Any,
    *,
    power: float = 1.25,
    floor: float = 0.0,
    counts: Literal["users", "rows"] = "users",
    items: Any = None,
    user: str | None = None,
    item: str | None = None,
) -> dict[str, Array]:
    """Return a table of items with propensities that follow from popularity, for ``items=`` and `ips` or `snips`.

    Users see popular items more often, so that a click on a rare item stands for more clicks that nobody could make.
    The propensity of item i is max((n_i / largest n)^power, floor), with n_i the users of ``history`` who have it.
    It is known up to a factor only: prefer `snips`, which this factor does not change. Whether a power of popularity is
    right, no history can tell; try several.

    Parameters
    ----------
    history : past interactions, in any form that ``history`` of `evaluate` takes
    power : from 0 to 100; (g + 1) / 2 if popularity follows a power law with exponent g
        Yang et al. (2018) take g from 1.5 to 1.9. 0 gives all items the same propensity.
    floor : from 0 to 1, the least propensity
        WarpRec takes ``power=0.5, floor=0.1``.
    counts : ``"users"``: a user counts once for an item; ``"rows"``: repeated rows count
    items : ids of further items, such as those of the truth; nobody had them, so they need a ``floor`` above 0
    user, item : names of the columns of a data frame; default: ``user_id`` and ``item_id``

    Returns
    -------
    {"item_id": array (n,), "propensity": float64 (n,)}
        Items in ascending order.

    Raises
    ------
    InputError, InputTypeError
        If the history has no rows or unusable ids, an argument is out of its range, or ``items`` need a ``floor``.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> shop = fastrec.popularity_propensity(history, power=0.5)
    >>> shop["propensity"].round(4).tolist()
    [1.0, 0.7071, 0.5, 0.5]
    >>> report = fastrec.evaluate(
    ...     [[4, 2], [1, 3]], [[2], [1, 3]], "snips@1", items=shop
    ... )
    >>> round(report["snips@1"], 12)
    0.166666666667
    """
    exponent, least = _check_number("power", power, MAX_POWER), _check_number("floor", floor, 1.0)
    check_choice("counts", counts, ("users", "rows"))
    found = HistoryCounts.read(history, Columns(user=user, item=item), resolve_threads(None))
    if not found.n_rows:
        raise InputError("history has no rows, so no item has a popularity")
    ids, numbers = _labels(found.ids), found.users if counts == "users" else found.rows
    if items is not None:
        more = _labels(check_ids(_listed(items), "items"))
        ids, numbers = _with_others(ids, numbers, more, least)
    order = np.argsort(ids, kind="stable")
    return {ITEM_ID: ids[order], "propensity": _powers(numbers[order], exponent, least)}


def _powers(numbers: Array, power: float, floor: float) -> Array:
    """Return max((n / largest n)^power, floor) by Python's power: that of NumPy differs between processors."""
    distinct, at = np.unique(numbers, return_inverse=True)
    largest = int(distinct[-1])
    values = [max(math.pow(number / largest, power), floor) for number in distinct.tolist()]
    return np.array(values, np.float64)[at]


def _check_number(name: str, value: Any, most: float) -> float:
    if not is_number(value):
        raise InputTypeError(Argument(name), f" must be a number, found {shown(value)}")
    if not 0 <= value <= most:
        raise InputError(Argument(name), f" must be from 0 to {most:g}, found {shown(value)}")
    return float(value)


def _listed(items: Any) -> Any:
    """Return ids as an array or a list; a string would be read as its characters."""
    if isinstance(items, np.ndarray):
        return items
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InputTypeError(Argument("items"), f" must be ids of items, found {shown(items)}")
    return list(items)


def _labels(ids: Any) -> Array:
    """Return ids as an array of integers or strings."""
    if isinstance(ids, np.ndarray) and ids.dtype != object:
        return ids
    return as_labels(ids.tolist() if isinstance(ids, np.ndarray) else spell(ids.values.to_pylist(), ids.codes))


def _with_others(ids: Array, numbers: Array, more: Array, floor: float) -> tuple[Array, Array]:
    """Return the items with further ones, which nobody had."""
    kinds = ["integers" if own.dtype.kind in "iu" else "strings" for own in (ids, more)]
    if len(more) and kinds[0] != kinds[1]:
        raise InputTypeError(f"item ids must be of one type on all sides, found history: {kinds[0]}, items: {kinds[1]}")
    mine, others = alike([ids, more])
    new = np.setdiff1d(others, mine)
    if not len(new):
        return ids, numbers
    if not floor:
        first = shown(new[:1].tolist()[0])
        found = f" must be above 0: no user of the history has {len(new)} of the items, such as {first}"
        raise InputError(Argument("floor"), found)
    return np.concatenate([mine, new]), np.concatenate([numbers, np.zeros(len(new), numbers.dtype)])
