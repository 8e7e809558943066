"""Names of metrics by tool."""

import re

from fastrec.metrics.recipe import sample_of
from fastrec.metrics.recipes import RECIPES

NUMBERS = {"k": "5", "m": "9"}  # in names; others are 0.5


def names_of(kind):
    """Return every metric of every tool, with a cut-off if it takes one: (tool, name)."""
    for recipe in RECIPES.values():
        for name, ours in getattr(recipe, kind).items():
            metric = sample_of(ours).metric
            if "{" in name:
                yield recipe.name, re.sub(r"\{(\w+)\}", lambda number: NUMBERS.get(number[1], "0.5"), name)
            elif metric.family.takes_cutoffs and "(k=K)" not in name and metric.name != "r_precision":
                yield recipe.name, f"{name}@5"
            else:
                yield recipe.name, name
