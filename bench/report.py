"""Tables of speed, from the results of `python -m bench.run` and `python -m bench.spark`, for the documentation."""

from __future__ import annotations

from typing import Any

from bench.measure import BUSY
from bench.run import RESULTS, ROUTE

SPARK_RESULTS = RESULTS.with_name("spark.json")
ENGINE_RESULTS = RESULTS.with_name("engines.json")


def check_results(results: dict[str, Any]) -> None:
    """Reject results that are not of a full-size run on a machine without other work."""
    if results.get("schema") != 1:
        raise SystemExit("the results are not those of this version of `python -m bench.run`")
    if results["quick"]:
        raise SystemExit("the results come from a quick run: use `python -m bench.run --json FILE`")
    busy = [row["name"] for row in results["rows"] if row["used_by_others"] > BUSY]
    if busy:
        raise SystemExit(f"other processes used the processors meanwhile, measure again: {'; '.join(busy)}")


def table(results: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = ["| what | measured | promised |", "|---|---|---|"]
    for row in results["rows"]:
        if row["name"].startswith(ROUTE):
            continue
        promised = "" if row["target"] is None else f"≤ {row['target']:g}" + ("" if row["met"] else ", **missed**")
        unit = {"x": " ×", "%": " %"}.get(row["unit"], f" {row['unit']}")
        note = f" ({row['note']})" if row["note"] else ""
        lines.append(f"| {tidy(row['name'] + note)} | {row['value']:.3g}{unit} | {promised} |")
    lines += ["", f"Medians; ratios are of calls made in turns. {results['machine']}; {versions}."]
    return "\n".join(lines)


def table_of_routes(results: dict[str, Any]) -> str:
    """Return the table of input forms: seconds and rows per second, by the number of rows."""
    cells: dict[str, dict[str, str]] = {}
    for row in results["rows"]:
        if row["name"].startswith(ROUTE):
            size, way = row["name"].removeprefix(ROUTE).split(": ")
            cells.setdefault(way, {})[size] = f"{row['value']:.2g} s, {row['note']}"
    sizes = list(dict.fromkeys(size for way in cells.values() for size in way))
    lines = [f"| way | {' | '.join(sizes)} |", "|---" * (1 + len(sizes)) + "|"]
    lines += [f"| {way} | {' | '.join(found.get(size, '') for size in sizes)} |" for way, found in cells.items()]
    return "\n".join(lines)


def tidy(text: str) -> str:
    """Return a plain text with proper typography."""
    return text.replace(" x ", " × ").replace("->", "→").replace("|", "\\|")
