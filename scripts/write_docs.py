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
MEANS = "1M users x 100 items, 30 values: means / floor"
MODEL = "50k items x 64, 30 values"
STREAMED = "400000000 shuffled rows under memory=1000000000: peak memory / (memory + 400 MB)"
BULLETS = """
**Fast.** 30 means over 1M lists of 100 items take {took} with {threads} threads, {times:.1f} times as long as only
reading the items.
- **The numbers of other tools.** `like=` gives those of {n_tools} tools, {n_monitors} of them for items and histories
only. {n_cases:,} cases test it with the answers of the real tools; only {read} was read, not run.
- **Metrics with their uncertainty.** {n_metrics} metrics of lists, catalogue and scored rows, at all cut-offs in one
pass, with standard errors where they are known, tests and segments.
- **The same bits.** Sums over users are exact, so threads, batches, files and Spark change no mean; the
[questions](docs/faq.md) name the exceptions. A part of an evaluation is about {state:,} bytes, and parts merge without
rounding.
- **Models without samples.** A model ranks all of 50,000 items for {rate:.0f},000 users a second, in {product:.1f}
times the time of its matrix product; a million users and 100,000 items take {minutes:.1f} minutes.
- **Larger than memory.** 400M rows in any order, with `memory=1000000000`, peak at {peak}.
"""


def bullets() -> str:
    """Return what fastrec does that other tools do not do, with a number each."""
    rows = {row["name"]: row for row in speed.results()["rows"]}
    means, peak = rows[MEANS], rows[STREAMED]["note"]
    hours = re.search(r"([\d.e-]+) h$", rows[MODEL]["note"])
    assert hours is not None
    n_cases = len(cases.list_cases()) + len(cases.score_cases()) + len(cases.item_cases())
    evaluator = fastrec.Evaluator(["ndcg", "recall", "map"], k=[1, 5, 10, 20, 100])
    evaluator.update([[1, 2, 3]], [[1]])  # without users a state has no sums
    state = round(len(evaluator.to_bytes()), -2)
    (read,) = (recipe.tool for recipe in RECIPES.values() if "(read, not run)" in recipe.version)
    text = BULLETS.format(
        took=means["note"].partition(" / ")[0],
        threads=speed.results()["numba_threads"],
        times=means["value"],
        n_tools=len(RECIPES),
        n_monitors=len(MONITORS),
        read=read,
        n_cases=n_cases,
        n_metrics=len(fastrec.catalogue()),
        state=state,
        rate=rows[MODEL]["value"],
        product=rows[f"{MODEL} / np.matmul of the same blocks"]["value"],
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
