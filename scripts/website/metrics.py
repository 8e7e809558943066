"""A page for each metric, from the registry, the formulas and the recipes of other tools."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastrec
from fastrec.metrics.declaration import COMMON_OPTIONS, known_metrics
from fastrec.metrics.directions import Direction
from fastrec.metrics.recipe import sample_of
from fastrec.metrics.recipes import RECIPES
from website.docstrings import link_in, to_markdown
from website.interface import anchors
from website.tables import option_text

FOLDER = "reference/metrics"
ABOUT = (
    "Write a metric as `name(option=value)@k`. Each page has the formula, the options, an example, and the names of "
    "the metric in other tools. `fastrec metrics NAME` prints the same in a terminal."
)
LETTERS = "../../../guides/choosing-metrics.md#letters-of-formulas"
FORMULAS = tomllib.loads(Path(__file__).with_name("formulas.toml").read_text(encoding="utf-8"))
FAMILIES = {  # module of metrics -> title, and the folder of its pages
    "lists": ("Lists and truth", "lists"),
    "graded": ("Ideal gains of trec_eval", "lists"),
    "judged": ("Judged items and recall", "lists"),
    "subtopics": ("Novelty and diversity", "lists"),
    "ranks": ("Counts and ranks", "lists"),
    "user_models": ("User models and ideal lists", "lists"),
    "items": ("Items and histories, per user", "items"),
    "exposure": ("Exposure of items, all lists together", "items"),
    "weighted": ("Clicks weighted by propensity", "items"),
    "rows": ("Scored rows", "rows"),
    "thresholds": ("Scored rows at a threshold", "rows"),
    "ratings": ("Ratings", "rows"),
}


def entries() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the module and the entry of the catalogue of each metric."""
    for metric, entry in zip(known_metrics(), fastrec.catalogue(), strict=True):
        yield metric.formula.__module__.rpartition(".")[2], entry


def path_of(home: str, name: str) -> str:
    """Return the path of a metric's page."""
    return f"{FOLDER}/{FAMILIES[home][1]}/{name}.md"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page, the list of all metrics first."""
    parts = ["# Metrics", ABOUT]
    for home, (title, _) in FAMILIES.items():
        parts.append(f"## {title}")
        rows = [
            f"| [`{entry['name']}`]({path_of(home, entry['name']).removeprefix(FOLDER + '/')}) "
            f"| {first_line(entry)} | {better(entry)} |"
            for module, entry in entries()
            if module == home
        ]
        parts.append("\n".join(["| metric | what it says | better |", "|---|---|---|", *rows]))
    yield f"{FOLDER}/index.md", "\n\n".join(parts) + "\n"
    for home, entry in entries():
        yield path_of(home, entry["name"]), page(home, entry)


def first_line(entry: dict[str, Any]) -> str:
    """Return the summary of a metric, for a cell of a table."""
    return str(entry["summary"]).replace("`", "").replace("|", "\\|")


def better(entry: dict[str, Any]) -> str:
    """Say which values are better."""
    return Direction(entry["direction"], entry["target"]).words


def page(home: str, entry: dict[str, Any]) -> str:
    """Return the page of a metric."""
    name, folder = entry["name"], f"{FOLDER}/{FAMILIES[home][1]}"
    own = {e["name"]: f"{e['name']}.md" for module, e in entries() if path_of(module, "").startswith(folder)}
    link = link_in(anchors(folder) | own | {name: ""})
    summary, _, rest = entry["doc"].partition("\n\n")
    formula = FORMULAS[home].get(name)
    low, high = entry["range"]
    facts = [
        ("Family", FAMILIES[home][0]),
        ("Range", f"{number(low, '−∞')} to {number(high, '∞')}"),
        ("Better", better(entry)),
        ("Aliases", ", ".join(f"`{alias}`" for alias in entry["aliases"]) or "none"),
        ("Source", entry["source"]),
        ("Letters", f"[those of all formulas]({LETTERS})"),
    ]
    parts = [f"# {name}", to_markdown(summary, link)]
    if formula:
        parts.append(f"\\[{formula}\\]")
    parts.append("\n".join(f"- **{key}**: {value}" for key, value in facts))
    options = [option_text(key, option) for key, option in entry["options"].items() if key not in COMMON_OPTIONS]
    parts.append("## Options")
    if options:
        parts += ["Defaults are in **bold**.", "\n".join(f"- {option}" for option in options)]
    else:
        parts.append("No options of its own.")
    common = [f"`{key}=`" for key in entry["options"] if key in COMMON_OPTIONS]
    if common:
        parts.append(f"It also takes {', '.join(common)}: see [who is counted](../../../guides/who-is-counted.md).")
    parts += ["## Definition", to_markdown(rest, link)]
    parts += ["## In other tools", tools_of(home, name)]
    return "\n\n".join(parts) + "\n"


def number(value: float | None, unbounded: str) -> str:
    """Return a bound."""
    return unbounded if value is None else f"{value:g}".replace("-", "−")


def tools_of(home: str, name: str) -> str:
    """Return a table of what each tool calls the metric, and with which options."""
    kind = "rows" if FAMILIES[home][1] == "rows" else "lists"
    rows = []
    for recipe in RECIPES.values():
        for theirs, ours in getattr(recipe, kind).items():
            call = sample_of(ours)
            if call.metric.name == name and call.metric.formula.__module__.rpartition(".")[2] == home:
                text = ours if "{" in ours else call.text
                rows.append(f"| {recipe.tool} | `{theirs}` | `{text}` | {recipe.notes_of.get(theirs, '')} |")
    if not rows:
        return "None of the tools that fastrec compares with has this metric under a name that `like=` takes."
    why = "../../../why-numbers-differ.md"
    head = ["| tool | its name | here | notes |", "|---|---|---|---|"]
    return (
        "\n".join([*head, *rows]) + f"\n\nTies and users without items count as each tool counts them: see [why "
        f"numbers differ]({why})."
    )
