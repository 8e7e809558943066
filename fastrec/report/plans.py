"""How the metrics of a report were evaluated, from its settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastrec.exceptions import FastrecError
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import Call
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.metrics.traces import Value

NAN_POLICIES = ("no_truth", "no_recs", "no_history", "one_class")  # policies on users that can make a mean NaN


def known_calls(names: Iterable[str]) -> dict[str, Call]:
    """Return the metrics of fastrec itself among these names.

    Custom metrics are left out, as their declaration may differ in the process that computed them.
    """
    found = {}
    for name in names:
        try:
            call = parse(name)
        except FastrecError:
            continue
        if call.metric.builtin and call.text == name:
            found[name] = call
    return found


def with_effects_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics whose values of users are effects of their lists on the number of all lists."""
    return frozenset(name for name, value in values_of_settings(calls, settings).items() if value.has_effects)


def values_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> dict[str, Value]:
    """Return how metrics are evaluated under the settings of a report. Metrics that lack a setting are left out."""
    return {name: plan.values[0] for name, plan in _plans(calls, settings)}


def sides_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the sides that metrics read. Metrics that lack a setting are left out."""
    return {name: plan.reads[calls[name].text] for name, plan in _plans(calls, settings)}


def reading_size(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics that read the size of the catalogue. Metrics that lack a setting are left out."""
    return frozenset(name for name, plan in _plans(calls, settings) if plan.reads_size)


def _plans(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> Iterator[tuple[str, Plan]]:
    """Yield the plan of each metric that has all its settings."""
    asked = Asked(
        n_items=settings.get("n_items"),
        expected=settings.get("ties") == "expected",
        one_class=settings.get("one_class", "drop"),
    )
    for name, call in calls.items():
        with contextlib.suppress(FastrecError):  # the metric needs a setting that is missing
            yield name, make_plan((call,), asked)
