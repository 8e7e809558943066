"""Drift of lists in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import Name, Place, Text, renaming
from fastrec.feedback.drift import check_logs, in_log, summarise
from fastrec.feedback.measure import Measured, Question
from fastrec.feedback.result import Drift
from fastrec.files.columns import ITEMS, ListColumns
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Path, Resources
from fastrec.inputs.items import ItemTable


def drift_of_files(
    logs: Mapping[str, Path],
    others: Mapping[str, Path],
    wanted: Question,
    columns: ListColumns,
    resources: Resources,
) -> Drift:
    """Return the drift of files of lists, each of any size; `others` are the files "history" and "items" if given."""
    check_logs(len(logs))

    def measure() -> Iterator[Measured]:
        before: dict[str, Path] = {}
        for name, path in logs.items():
            made: list[ListEvaluation] = []

            def make(
                items: ItemTable | None, *, made: list[ListEvaluation] = made, follows: bool = bool(before)
            ) -> ListEvaluation:
                made.append(wanted.evaluation(items, has_reference=follows))
                return made[-1]

            paths = {"recs": path, **before, **others}
            with in_log(name), renaming(lambda found: _name_of_items(found, others)):
                report = evaluate_lists(make, paths, columns, resources).report
                measured = wanted.measure(name, made[-1], report)
            yield measured
            before = {"reference": path}

    return summarise(measure(), wanted)


def _name_of_items(name: Name, others: Mapping[str, Path]) -> object:
    """Return the file of items, or its column, in place of the argument; `wanted` reads columns of labels."""
    if not isinstance(name, Place) or name.side != ITEMS:
        return name
    return Text(others[ITEMS], "" if name.column is None else f": column {name.column!r}")
