"""Names of metrics by tool."""

from fastrec.metrics.calls import parse
from fastrec.metrics.recipes import RECIPES


def names_of(kind):
    """Return every metric of every tool, with a cut-off if it takes one: (tool, name)."""
    for recipe in RECIPES.values():
        for name, ours in getattr(recipe, kind).items():
            metric = parse(ours).metric
            if "{k}" in name:
                yield recipe.name, name.replace("{k}", "5")
            elif metric.family.takes_cutoffs and "(k=K)" not in name and metric.name != "r_precision":
                yield recipe.name, f"{name}@5"
            else:
                yield recipe.name, name
