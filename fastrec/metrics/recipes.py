"""Conventions of other tools, by name.

Each recipe but that of Elliot was compared with the real tool, in the named version, on the cases in `tests/rivals`.
Metrics that fastrec cannot reproduce are listed with the reason. Input that a tool gets wrong, such as an item twice in
a list, is an error here.
"""

from __future__ import annotations

from typing import Any

from fastrec.checks import nearest
from fastrec.exceptions import Argument, MetricError
from fastrec.metrics.recipe import Recipe
from fastrec.metrics.recipes_of_accuracy import LIBRARIES, RETRIEVAL
from fastrec.metrics.recipes_of_items import MONITORS, RECOMMENDERS

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*RETRIEVAL, *RECOMMENDERS, *LIBRARIES, *MONITORS)}


def order_of(like: Any) -> str:
    """Return the role of the column that orders lists, for the tool of a call or none."""
    return "rank" if like is None else find_recipe(like).ordered_by


def find_recipe(name: Any) -> Recipe:
    """Return the recipe of a tool."""
    for recipe in RECIPES.values():
        if isinstance(name, str) and name.lower().replace("-", "_") in (recipe.name, *recipe.aliases):
            return recipe
    raise MetricError(
        Argument("like", (name,)),
        " is not a tool with a recipe",
        nearest(name if isinstance(name, str) else "", list(RECIPES)),
    )
