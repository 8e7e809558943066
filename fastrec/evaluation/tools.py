"""What the tool of `like=` makes of input: how lists are prepared for it, and warnings of numbers that differ there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.metrics.declaration import Call
from fastrec.metrics.recipes import RECIPES
from fastrec.report.estimates import Estimate

Array = np.ndarray[Any, Any]


def tool_rules(like: Mapping[str, Any], calls: Sequence[Call], ties: str) -> dict[str, Any]:
    """Return the options for preparing lists that the tool of an evaluator gives."""
    recipe = RECIPES.get(like.get("like", ""))
    if recipe is None:
        return {"rank_gaps": like.get("rank_gaps", "close")}
    return {
        "rank_gaps": like.get("rank_gaps", "close"),
        "tool": recipe.tool if recipe.ties_of_strings and ties == recipe.ties else "",
        "warnings_of": functools.partial(recipe.warnings, calls, ties),
    }


def warnings_of_tool(
    like: Mapping[str, Any], calls: Sequence[Call], ties: str, numbers: Mapping[str, Callable[[], Array]]
) -> list[str]:
    """Return warnings about numbers that the tool of an evaluator does not take as fastrec does."""
    recipe = RECIPES.get(like.get("like", ""))
    return [] if recipe is None else [*recipe.warnings(calls, ties, numbers)]


def values_by_metric(estimates: Mapping[str, Estimate], groups: Mapping[str, Mapping[Any, Mapping[str, Any]]]) -> Array:
    """Return the values of metrics over all users and, in further columns, in groups and segments."""
    parts = [estimates, *(own for labels in groups.values() for own in labels.values())]
    return np.array([[own[metric].mean for own in parts] for metric in estimates])
