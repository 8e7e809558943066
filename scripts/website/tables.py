"""Tables of policies and of the definitions of other tools.

The policies come from their declarations, the definitions of other tools from their
recipes, their GAUC from gauc_of_tools.toml, and which metrics of items they have from items_of_tools.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastrec.metrics.recipe import Recipe, sample_of
from fastrec.metrics.recipes import RECIPES
from fastrec.metrics.spelling import print_value
from fastrec.policies import (
    DUPLICATES,
    NO_FEATURES,
    NO_HISTORY,
    NO_RECS,
    NO_TRUTH,
    NO_TRUTH_OF_ROWS,
    ONE_CLASS,
    TIES,
    TIES_OF_ROWS,
    UNSEEN,
    Policy,
)

METRICS_OF_LISTS = ("precision", "recall", "hit_rate", "mrr", "map", "ndcg")
METRICS_OF_ITEMS = (
    "gini",
    "shannon_entropy",
    "item_coverage",
    "popularity",
    "novelty",
    "intra_list_diversity",
    "personalization",
    "serendipity",
)
METRICS_OF_ROWS = ("auc", "gauc", "average_precision", "log_loss", "rmse", "mae")
ITEMS_OF_TOOLS = Path(__file__).with_name("items_of_tools.toml")
GAUC_OF_TOOLS = Path(__file__).with_name("gauc_of_tools.toml")


def option_text(name: str, option: dict[str, Any]) -> str:
    """Return an option with its choices, the default in bold."""
    choices = [f"**{choice}**" if choice == option["default"] else choice for choice in option["choices"]]
    if option["kind"].endswith("table"):
        choices.append("table")
    if option["kind"] == "separator":
        choices.append("a separator")
    if option["kind"].endswith("column"):
        choices.append("a column" if option["default"] is None else f"**{option['default']}**")
    if option["kind"].endswith("number"):
        default = option["default"]
        if option["choices"] and (default is None or default in option["choices"]):
            return f"`{name}=`" + " \\| ".join([*choices, "a number"])
        choices.append("required" if option["required"] else "a number" if default is None else f"**{default:g}**")
    return f"`{name}=`" + " \\| ".join(choices)


def recipes_table(kind: str, columns: tuple[str, ...], policies: tuple[str, ...], modules: tuple[str, ...] = ()) -> str:
    """Return the table of what every tool means by the names of fastrec's metrics, and which others it has.

    `modules` are those of the metrics to show, by default all.
    """
    head = ["tool, version", *(f"`{name}`" for name in columns), *(f"`{name}=`" for name in policies), "also"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    seen: dict[str, str] = {}
    for recipe in RECIPES.values():
        known = {
            name: ours
            for name, ours in getattr(recipe, kind).items()
            if not modules or sample_of(ours).metric.formula.__module__.rpartition(".")[2] in modules
        }
        if known:
            cells = [recipe_cell(recipe, known, name) for name in columns]
            own = recipe.policies | {"min_gain": "above 0" if recipe.min_gain is None else print_value(recipe.min_gain)}
            cells += [own[name] for name in policies]
            others = ", ".join(f"`{name}`" for name in known if name not in columns)
            same_as = seen.setdefault(others, recipe.name)
            if others and same_as != recipe.name:
                others = f"as `{same_as}`"
            lines.append(f"| `{recipe.name}`: {recipe.version} | {' | '.join(cells)} | {others} |")
    return "\n".join(lines)


def recipe_cell(recipe: Recipe, known: Any, name: str) -> str:
    """Say whether a tool means the same by a name, or which options give its number."""
    if name not in known:
        return f"not available: {recipe.declined[name]}" if name in recipe.declined else "–"
    call = sample_of(known[name])
    if call.metric.name != name:
        return f"`{call.text}`"
    return f"`{call.text.removeprefix(name)[1:-1]}`" if call.text != name else "same"


def gauc_table() -> str:
    """Return a table of the call that gives each tool's GAUC, or of why there is none."""
    lines = ["| tool | its name | weight of a user | users of one class | here | notes |", "|---|---|---|---|---|---|"]
    for number in tomllib.loads(GAUC_OF_TOOLS.read_text(encoding="utf-8"))["number"]:
        call = f"`{number['call']}`" if number["call"] else "not available"
        cells = (number["tool"], number["name"], number["weight"], number["one_class"], call, number["note"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def items_table() -> str:
    """Return a table of the tools that have each metric of items."""
    lines = ["| here | in other tools |", "|---|---|"]
    for kind in tomllib.loads(ITEMS_OF_TOOLS.read_text(encoding="utf-8"))["kind"]:
        ours = ", ".join(f"`{name}`" for name in kind["ours"]) or "–"
        lines.append(f"| {ours} | {kind['theirs']} |")
    return "\n".join(lines)


def policies_table(policies: tuple[Policy, ...]) -> str:
    """Return a table of policies: the case that each decides, and the effect of its values."""
    lines = ["| case | argument | values (default in **bold**) |", "|---|---|---|"]
    for policy in policies:
        values = (
            f"{f'**{name}**' if name == policy.default else name}: {value.effect}"
            for name, value in policy.values.items()
        )
        lines.append(f"| {policy.case} | `{policy.name}=` | {'; '.join(values)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "gauc": gauc_table,
    "items-of-tools": items_table,
    "policies": lambda: policies_table((NO_TRUTH, NO_RECS, DUPLICATES, TIES)),
    "item-policies": lambda: policies_table((UNSEEN, NO_HISTORY, NO_FEATURES)),
    "row-policies": lambda: policies_table((ONE_CLASS, NO_TRUTH_OF_ROWS, TIES_OF_ROWS)),
    "recipes": lambda: recipes_table(
        "lists", METRICS_OF_LISTS, ("ties", "min_gain", "no_truth", "no_recs"), ("lists",)
    ),
    "item-recipes": lambda: recipes_table("lists", METRICS_OF_ITEMS, (), ("items", "exposure", "weighted")),
    "row-recipes": lambda: recipes_table("rows", METRICS_OF_ROWS, ()),
}
