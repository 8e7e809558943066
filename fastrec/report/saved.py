"""The parts of a saved report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrec.exceptions import Argument, InputError, Text
from fastrec.report.estimates import Effects, Estimate, GroupEstimate
from fastrec.report.plain import number_of

SCHEMA = 1
PREFIX = re.compile(r"(?:[A-Za-z_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*/?)?", re.ASCII)


def datum_of(value: Any) -> Any:
    """Return an entry of `Report.data` from its plain form."""
    return value if isinstance(value, int) else number_of(value)


def pack_warnings(lines: Iterable[str]) -> list[list[list[Any]]]:
    """Return the parts of the warnings that name arguments."""
    texts = [line for line in lines if isinstance(line, Text) and line.names()]
    return [[_pack_part(part) for part in text.parts] for text in texts]


def _pack_part(part: object) -> list[Any]:
    if not isinstance(part, Argument):
        return [str(part), "", []]
    return [str(part), part.name, [None if value is ... else value for value in part.values]]


def unpack_warnings(document: Mapping[str, Any]) -> list[str]:
    """Return the warnings, with the names in them."""
    texts = [Text(*(_unpack_part(*part) for part in parts)) for parts in document["named_warnings"]]
    lines: list[str] = document["warnings"]
    return [next((text for text in texts if text == line), line) for line in lines]


def _unpack_part(text: str, name: str, values: list[Any]) -> object:
    return Argument(name, tuple(... if value is None else value for value in values)) if name else text


def unpack_values(
    names: list[str] | None, arrays: Mapping[str, NDArray[Any]], n_users: int
) -> dict[str, NDArray[Any]] | None:
    """Return the values of users: {metric: array}. None if the report kept none."""
    if names is None:
        return None
    return {name: _values_of_users(arrays[f"per_user_{nth}"], name, n_users) for nth, name in enumerate(names)}


def _values_of_users(values: NDArray[Any], name: str, n_users: int) -> NDArray[Any]:
    if values.dtype != np.float64 or values.shape != (n_users,):
        raise InputError(f"values of {name!r} must be float64 ({n_users},), found {values.dtype} {values.shape}")
    return values


def unpack_effects(
    names: Iterable[tuple[str, str | None]], arrays: Mapping[str, NDArray[Any]], n_users: int
) -> Effects:
    """Return the effects of users: {metric: {grouping: array}}."""
    found: Effects = {}
    for nth, (metric, grouping) in enumerate(names):
        found.setdefault(metric, {})[grouping] = _values_of_users(arrays[f"effects_{nth}"], metric, n_users)
    return found


def group_estimates_of(metrics: dict[str, dict[str, Any]]) -> dict[str, GroupEstimate]:
    """Return the estimates of a group from their plain form."""
    return {
        name: GroupEstimate(*estimate_of(fields), rest=estimate_of(fields["rest"])) for name, fields in metrics.items()
    }


def estimate_of(fields: dict[str, Any]) -> Estimate:
    """Return an estimate from its plain form."""
    low, high = map(number_of, fields["range"])
    return Estimate(
        number_of(fields["mean"]),
        number_of(fields["std_error"]),
        fields["users"],
        number_of(fields["degrees"]),
        fields["kind"],
        (low, high),
        fields["note"],
    )
