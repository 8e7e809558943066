"""A comparison as a table for a paper: systems × metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.checks import counted
from fastrec.comparison.row import ComparisonRow, means_of, reverse
from fastrec.comparison.tables import alpha, shown_rounds, unit_of
from fastrec.metrics.directions import Direction
from fastrec.report.estimates import Estimate
from fastrec.show.numbers import figures
from fastrec.show.tables import Cell, Styled, Table

TESTS = {
    "randomization": "paired randomization test",
    "bootstrap": "paired bootstrap test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
CORRECTIONS = {
    "holm": "corrected by Holm",
    "bonferroni": "corrected by Bonferroni",
    "bh": "corrected by Benjamini and Hochberg",
    "none": "not corrected",
}
BETTER, WORSE = "*", "†"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Rows = Sequence[ComparisonRow]
Means = Mapping[tuple[str, str], float]  # by system and metric


def paper_table(
    rows: Rows,
    estimates: Mapping[str, Mapping[str, Estimate]],
    left_out: Iterable[str],
    settings: Mapping[str, Any],
) -> Table:
    """Return the means of systems (rows) by metric (columns), with marks of significance and a caption that explains.

    The best mean of a metric is bold, as are all that look the same. With a baseline, * marks systems that are better
    and † those that are worse. Without one, each system has a letter, and a mean has the letters of all systems that
    it is better than.
    """
    baseline = settings["baseline"]
    systems = list(dict.fromkeys(name for row in rows for name in (row.baseline, row.system)))
    tested = list(dict.fromkeys(row.metric for row in rows))
    known = [estimates.get(name, {}) for name in systems]
    untested = [metric for metric in left_out if all(metric in own for own in known)]
    means, differ = means_of(rows, estimates)
    means |= {(name, metric): own[metric].mean for name, own in zip(systems, known, strict=True) for metric in untested}
    letters = _letters(systems) if baseline is None else {}
    marks = _marks(rows, letters)
    directions = {row.metric: Direction(row.direction, row.target) for row in rows}
    columns = [
        _column(systems, metric, means, directions.get(metric, Direction("none")), marks)
        for metric in (*tested, *untested)
    ]
    names = [f"{letters[name]} {name}" if letters else name for name in systems]
    body: list[list[Cell]] = [[name, *cells] for name, *cells in zip(names, *columns, strict=True)]
    sentences = [
        _users(rows, unit_of(settings), differ=differ),
        *_reading(directions.values(), baseline),
        _test(rows, settings),
        *_others(directions, untested),
    ]
    return Table(" ".join(sentences), ["system", *tested, *untested], body)


def _letters(systems: Sequence[str]) -> dict[str, str]:
    """Return a letter for each system, or a number if letters do not suffice."""
    signs = LETTERS if len(systems) <= len(LETTERS) else [f"{n}," for n in range(1, len(systems) + 1)]
    return dict(zip(systems, signs, strict=False))


def _marks(rows: Rows, letters: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return the marks of means, by system and metric."""
    if not letters:
        signs = {"better": BETTER, "worse": WORSE}
        return {(row.system, row.metric): signs.get(str(row.verdict), "") for row in rows}
    beaten: dict[tuple[str, str], list[str]] = {}
    for row in (*rows, *map(reverse, rows)):
        if row.verdict == "better":
            beaten.setdefault((row.system, row.metric), []).append(letters[row.baseline])
    order = list(letters.values()).index
    return {key: "".join(sorted(own, key=order)).rstrip(",") for key, own in beaten.items()}


def _column(
    systems: Sequence[str], metric: str, means: Means, direction: Direction, marks: Mapping[tuple[str, str], str]
) -> list[Styled]:
    """Return the cells of a metric."""
    known = [name for name in systems if not math.isnan(means[name, metric])]
    leading = max((abs(means[name, metric]) for name in known), default=0.0)  # one precision for a column
    texts = {name: figures(leading, means[name, metric])[0] for name in systems}
    best = ""
    if direction.sign and known:
        target = direction.target
        places = {n: means[n, metric] if target is None else abs(means[n, metric] - target) for n in known}
        best = texts[max(known, key=lambda name: direction.sign * places[name])]
    return [Styled(text, is_bold=text == best, mark=marks.get((name, metric), "")) for name, text in texts.items()]


def _users(rows: Rows, unit: str, *, differ: bool) -> str:
    counts = {row.users for row in rows}
    least, most = min(counts), max(counts)
    users = counted(most, unit) if least == most else f"{least:,} to {counted(most, unit)}"
    if differ:
        return f"Means over the {unit}s of each system; tests over the {users} of both."
    return f"Means over {users}."


def _reading(directions: Iterable[Direction], baseline: str | None) -> Iterator[str]:
    """Yield sentences on bold numbers and marks."""
    if any(direction.sign for direction in directions):
        yield "Bold: best mean."
    if baseline is None:
        yield "Letters: significantly better than these systems."
    else:
        yield f"{BETTER} significantly better, {WORSE} significantly worse than {baseline}."


def _test(rows: Rows, settings: Mapping[str, Any]) -> str:
    """Return the sentence that names the test, its correction and its level."""
    test, correction = settings["test"], settings["correction"]
    rounds = f", {found}" if (found := shown_rounds(rows, settings)) else ""
    comparisons = counted(len(rows), "comparison")
    many = f" for {comparisons}" if correction != "none" else ""
    name = TESTS[test]
    return f"Two-sided {name}{rounds}, p ≤ {alpha(settings['level']):.4g}, {CORRECTIONS[correction]}{many}."


def _others(directions: Mapping[str, Direction], untested: Sequence[str]) -> Iterator[str]:
    """Yield sentences on metrics where higher is not better, and on those that are not tested."""
    lower = [metric for metric, direction in directions.items() if direction.kind == "lower"]
    if lower:
        yield f"Lower is better: {', '.join(lower)}."
    for metric, direction in directions.items():
        if direction.target is not None:
            yield f"{metric}: {direction.words} is better."
    if untested:
        yield f"Not tested: {', '.join(untested)}."
