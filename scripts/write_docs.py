"""Write the numbers and the picture of the README, and the tables of pages; with --check only say what is stale.

Times come from bench/results.json, counts from the registry and the kept answers of other tools, and tables from
`website.tables` and `website.speed`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests" / "rivals")]

import cases  # noqa: E402 - needs the path

import fastrec  # noqa: E402
from fastrec.metrics.recipes import RECIPES  # noqa: E402
from fastrec.metrics.recipes_of_items import MONITORS  # noqa: E402
from website import speed, tables  # noqa: E402

PICTURE = ROOT / speed.PICTURE
LINK = re.compile(rf"^!\[.*\]\({re.escape(speed.PICTURE)}\)$", re.MULTILINE)
MODEL = "50k items x 64, 30 values"
STREAMED = "400000000 shuffled rows under memory=1000000000: peak memory / (memory + 400 MB)"
BULLETS = """
**Speed.** 6 metrics at 5 cut-offs for 1M lists of 100 items take {took} with {threads} threads.
- **The numbers of other tools.** `like="recbole"` gives the numbers of RecBole, and so on for {n_tools} tools. For
{n_monitors} of them it gives metrics of items and histories only. {n_cases:,} cases are compared with answers of the
real tools; the source of {read} was read, not run.
- **Uncertainty.** fastrec has {n_metrics} metrics of lists, catalogues and scored rows. Means have intervals,
differences between systems have tests, and segments have both.
- **The same numbers everywhere.** The values of users are added exactly. So threads, batches, files and Spark give the
same means; the [FAQ](docs/faq.md#are-numbers-the-same-on-every-run-and-machine) lists the exceptions.
- **Parts that merge.** A part of the users can be evaluated alone. Its sums take about {state:,} bytes, and merging
them gives the numbers of all users.
- **Models without sampled items.** A model ranks all of 50,000 items for {rate:.0f},000 users a second. A million users
and 100,000 items take {minutes:.1f} minutes.
- **Logs larger than memory.** `memory="1GB"` evaluates a log of 400M rows in any order. It takes {peak} of memory.
"""


def bullets() -> str:
    """Return what fastrec gives, with a number each."""
    rows = {row["name"]: row for row in speed.results()["rows"]}
    peak = rows[STREAMED]["note"]
    hours = re.search(r"([\d.e-]+) h$", rows[MODEL]["note"])
    assert hours is not None
    n_cases = len(cases.list_cases()) + len(cases.score_cases()) + len(cases.item_cases())
    evaluator = fastrec.Evaluator(["ndcg", "recall", "map"], k=[1, 5, 10, 20, 100])
    evaluator.update([[1, 2, 3]], [[1]])  # without users a state has no sums
    state = round(len(evaluator.to_bytes()), -2)
    (read,) = (recipe.tool for recipe in RECIPES.values() if "(read, not run)" in recipe.version)
    text = BULLETS.format(
        took=speed.time_of("fastrec")[1],
        threads=speed.results()["numba_threads"],
        n_tools=len(RECIPES),
        n_monitors=len(MONITORS),
        read=read,
        n_cases=n_cases,
        n_metrics=len(fastrec.catalogue()),
        state=state,
        rate=rows[MODEL]["value"],
        minutes=60 * float(hours[1]),
        peak=peak,
    )
    lines = (line.replace("\n", " ") for line in text.strip().split("\n- "))
    return "".join(textwrap.fill(f"- {line}", 120, subsequent_indent="  ") + "\n" for line in lines)


WRITTEN: dict[str, Callable[[], str]] = {"numbers": bullets} | tables.TABLES | speed.TABLES


def written(text: str) -> str:
    """Return a page with what belongs between its markers."""
    for name in re.findall(r"^<!-- ([a-z-]+):begin -->$", text, re.MULTILINE):
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->\n"
        before, rest = text.split(begin)
        text = f"{before}{begin}{WRITTEN[name]().strip()}\n{end}{rest.split(end)[1]}"
    return LINK.sub(lambda _: speed.link_of_others(), text)


def main() -> int:
    """Write what is stale, or only name it; return the exit code."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    fresh = {page: written(page.read_text(encoding="utf-8")) for page in pages} | {PICTURE: speed.picture_of_others()}
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        print("\n".join(f"{path.relative_to(ROOT)} is stale: run python scripts/write_docs.py" for path in stale))
        return int(bool(stale))
    for path in stale:
        path.write_text(fresh[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
