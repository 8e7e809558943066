"""Write the README's generated tables of metrics; with --check only say whether they are current.

The metrics come from the registry, the policies from their declarations, the definitions of other tools from their
recipes, their GAUC from gauc_of_tools.toml, and which metrics of items they have from items_of_tools.toml.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import fastrec
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import COMMON_OPTIONS, known_metrics, print_value
from fastrec.metrics.directions import Direction
from fastrec.metrics.recipe import Recipe
from fastrec.metrics.recipes import RECIPES
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

README = Path(__file__).parent.parent / "README.md"
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


def metrics_table(modules: tuple[str, ...], value: str) -> str:
    """Return the table of the metrics of some modules; `value` is the title of the column with their formulas."""
    lines = [f"| metric | {value} | better | options (default in **bold**) | source |", "|---|---|---|---|---|"]
    homes = [metric.formula.__module__.rpartition(".")[2] for metric in known_metrics()]
    for home, metric in zip(homes, fastrec.catalogue(), strict=True):
        if home in modules:
            options = [
                option_text(name, option) for name, option in metric["options"].items() if name not in COMMON_OPTIONS
            ]
            formula = metric["formula"].replace("|", "\\|")
            better = Direction(metric["direction"], metric["target"]).words
            cells = (f"`{metric['name']}`", formula, better, "; ".join(options), metric["source"])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


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
            if not modules or parse(ours).metric.formula.__module__.rpartition(".")[2] in modules
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
    call = parse(known[name])
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


def with_table(text: str, name: str, table: str) -> str:
    """Return the text with the table between the markers of this name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def main() -> int:
    """Write the tables, or check them; return the exit code."""
    text = README.read_text(encoding="utf-8")
    fresh = with_table(text, "metrics", metrics_table(("lists",), "value of a user"))
    fresh = with_table(fresh, "item-metrics", metrics_table(("items",), "value of a user"))
    fresh = with_table(fresh, "exposure-metrics", metrics_table(("exposure",), "value"))
    fresh = with_table(fresh, "weighted-metrics", metrics_table(("weighted",), "value of a user"))
    fresh = with_table(fresh, "score-metrics", metrics_table(("rows", "ratings"), "value"))
    fresh = with_table(fresh, "gauc", gauc_table())
    fresh = with_table(fresh, "items-of-tools", items_table())
    fresh = with_table(fresh, "policies", policies_table((NO_TRUTH, NO_RECS, DUPLICATES, TIES)))
    fresh = with_table(fresh, "item-policies", policies_table((UNSEEN, NO_HISTORY, NO_FEATURES)))
    fresh = with_table(fresh, "row-policies", policies_table((ONE_CLASS, NO_TRUTH_OF_ROWS, TIES_OF_ROWS)))
    fresh = with_table(
        fresh,
        "recipes",
        recipes_table("lists", METRICS_OF_LISTS, ("ties", "min_gain", "no_truth", "no_recs"), ("lists",)),
    )
    fresh = with_table(
        fresh, "item-recipes", recipes_table("lists", METRICS_OF_ITEMS, (), ("items", "exposure", "weighted"))
    )
    fresh = with_table(fresh, "row-recipes", recipes_table("rows", METRICS_OF_ROWS, ()))
    if "--check" in sys.argv:
        print("README.md: the generated tables are " + ("current" if fresh == text else "stale: run this script"))
        return int(fresh != text)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
