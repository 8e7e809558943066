"""Providers of statistics: functions that fill numbers of users that the kernels of fastrec do not compute.

A formula reads them with `s.provided(name, *key)`. The plan collects the keys of all metrics, each provider fills its
rows once per batch, and the row program goes on with them as with any statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import MetricError

__all__ = ["PROVIDERS", "Provider", "find_provider", "provider"]

Array = np.ndarray[Any, Any]
Key = tuple[Hashable, ...]
Fill = Callable[[Mapping[str, Any], Sequence[Key], Array], None]


class Provider(NamedTuple):
    """A provider: the sides that it reads, and the function that fills its rows."""

    name: str
    sides: frozenset[str]
    fill: Fill


PROVIDERS: dict[str, Provider] = {}


def provider(name: str, *, sides: Sequence[str]) -> Callable[[Fill], Fill]:
    """Register a function as a provider of statistics.

    Parameters
    ----------
    name : its name, as in `s.provided(name, *key)`
    sides : names of the sides that it reads, such as ``"recs"``, ``"truth"``, ``"history"``, ``"items"`` or ``"rows"``
        A call without one of them gets an error that names the metric and the argument.

    The function is called as fill(sides, keys, out). `sides` are those of the batch, by name: recs, truth, exclude,
    history and reference are `FlatSide` with items in one numbering, items is an `ItemTable`, rows is `Rows`. `keys`
    are the keys that formulas ask for. `out` is float64 (len(keys), n_users), to be filled with finite numbers.
    """

    def register(fill: Fill) -> Fill:
        PROVIDERS[name] = Provider(name, frozenset(sides), fill)
        return fill

    return register


def find_provider(name: str) -> Provider:
    """Return the provider of a name."""
    try:
        return PROVIDERS[name]
    except KeyError:
        raise MetricError(f"needs statistics of {name!r}, which no provider fills in this process") from None
