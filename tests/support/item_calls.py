"""Calls of metrics of items on the shops of `item_cases`, compared with the oracle."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import fastrec
from support import item_oracle
from support.item_oracle import Result, Shop

NEAR = 1e-11


def evaluate(shop: Shop, metrics: Any, **call: Any) -> fastrec.Report:
    sides = {"history": shop.history, "reference": shop.reference, "items": shop.items}
    sides |= {"logged": shop.logged, "examination": shop.examination, "subtopics": shop.subtopics}
    sizes = {"n_items": shop.n_items, "n_users": shop.n_users}
    return fastrec.evaluate(shop.lists, shop.truth, metrics, **sides, **sizes, per_user=True, **call)


def values_of(report: fastrec.Report, name: str) -> dict[Any, float]:
    assert report.user_ids is not None
    return dict(zip(report.user_ids.tolist(), report.per_user[name].tolist(), strict=True))


def same(found: float | None, wanted: float | None, near: float = NEAR) -> bool:
    found, wanted = (math.nan if value is None else value for value in (found, wanted))
    return math.isclose(found, wanted, rel_tol=near, abs_tol=near) or (math.isnan(found) and math.isnan(wanted))


def options_of(text: str) -> tuple[str, dict[str, Any], int | None]:
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?(?:@(\d+))?", text)
    assert match is not None
    name, inside, k = match.groups()
    options: dict[str, Any] = {}
    for option, value in re.findall(r"(\w+)=(\[[^\]]*\]|[^,]+)", inside or ""):
        numbers = option in ("base", "p", "alpha", "min_items") and re.fullmatch(r"[\d.]+", value)
        options[option] = json.loads(value) if numbers or value.startswith("[") else value
    return name, options, int(k) if k else None


def wanted_of(shop: Shop, text: str) -> Result | None:
    """Return the oracle's answer; None if it refuses the call."""
    name, options, k = options_of(text)
    try:
        return item_oracle.evaluate(shop, name, k=k, options=options)
    except ValueError:
        return None


def is_apart(shop: Shop, text: str) -> bool:
    """Return whether the oracle decides a case in another way that fastrec chose on purpose."""
    name, options, _ = options_of(text)
    if name == "popularity_lift" and options.get("no_history") == "zero":
        return True  # a user without a list and without a history
    listed = {item for items in shop.lists.values() for item in items}
    return shop.items is not None and not listed <= set(shop.items)  # an error only where a metric reads the column


def answer(shop: Shop, text: str) -> tuple[fastrec.Report | None, str]:
    """Return the report of one metric, or the message of the error."""
    try:
        return evaluate(shop, text), ""
    except fastrec.FastrecError as error:
        return None, str(error)


def check(shop: Shop, text: str) -> bool:
    """Compare one metric with the oracle; return whether both have a value."""
    wanted = wanted_of(shop, text)
    report, message = answer(shop, text)
    if report is None:
        refused = (
            "without a value in the items column",
            "that items lacks; leave them out",
            "must hold a number above 0",
            "items has no column",
            "has no item with the label",
        )  # whoever is counted
        strict = any(words in message for words in refused)
        assert wanted is None or strict or is_apart(shop, text), f"{text}: {message}"
        return False
    if is_apart(shop, text):
        return False
    assert wanted is not None, f"{text}: expected an error"
    (name,) = report
    estimate = report.estimates[name]
    assert same(estimate.mean, wanted.value), (text, estimate, wanted)
    if wanted.std_error is not None:
        near = 1e-7 * max(1.0, abs(wanted.value))  # squares are rounded
        assert same(estimate.std_error, wanted.std_error, near), (text, estimate, wanted)
    if wanted.per_user and "average=pooled" not in text:
        found = values_of(report, name)
        if "average=means" not in text and "popularity_lift(no_history" not in name:
            assert all(same(found[user], value) for user, value in wanted.per_user.items() if user in found), text
    return True
