"""Writes the README's table of metrics from the registry; with --check it only says whether the table is current."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import fastrec

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- metrics:begin -->", "<!-- metrics:end -->"


def option_text(name: str, option: dict[str, Any]) -> str:
    """An option with its choices, the default in bold."""
    choices = [f"**{choice}**" if choice == option["default"] else choice for choice in option["choices"]]
    if option["kind"].endswith("table"):
        choices.append("table")
    if option["kind"] == "number":
        choices.append("required" if option["required"] else f"**{option['default']:g}**")
    return f"`{name}=`" + " \\| ".join(choices)


def table() -> str:
    """The table in Markdown."""
    lines = ["| metric | value of a user | options (default in **bold**) | source |", "|---|---|---|---|"]
    for metric in fastrec.catalogue():
        options = [option_text(name, option) for name, option in metric["options"].items() if name != "min_gain"]
        lines.append(f"| `{metric['name']}` | {metric['formula']} | {'; '.join(options)} | {metric['source']} |")
    return "\n".join(lines)


def main() -> int:
    """Write the table, or compare it."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    fresh = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if "--check" in sys.argv:
        print("README.md: the table of metrics is " + ("current" if fresh == text else "stale: run this script"))
        return int(fresh != text)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
