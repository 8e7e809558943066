"""Curves of a log: as a file, and on its page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastrec._version import __version__
from fastrec.cli.options import resources_of
from fastrec.cli.output import csv_text, emit
from fastrec.exceptions import InputError, InputTypeError, Text
from fastrec.report.plain import plain_data
from fastrec.show.json import dump_json
from fastrec.show.shown import Charted
from fastrec.show.tables import Section

if TYPE_CHECKING:
    from fastrec.files.job import Evaluated

LEVEL = 0.95  # of intervals
RANKS = ("rank", "position")  # columns of a log that hold ranks, whatever the options are


class Remark(Charted):
    """Line in the place of a curve that cannot be drawn."""

    def __init__(self, title: str, line: str) -> None:
        self._section = Section(title, lines=[line])

    def _in_report(self) -> list[Section]:
        return [self._section]


def makes_page(options: dict[str, Any]) -> bool:
    """Return whether options ask for a page."""
    return options.get("html") is not None or options.get("format_") == "html"


def write_curves(path: str, found: Evaluated, options: dict[str, Any]) -> Sequence[Text]:
    """Write the thinned ROC and precision-recall curves as JSON or CSV; return warnings."""
    from fastrec.scored.curves import pr_of_runs, roc_of_runs

    runs = found.score_counts[None].runs()
    roc, pr = roc_of_runs(runs, thin=True), pr_of_runs(runs, thin=True)
    limits = [*pr.thresholds, math.nan]  # the last point, without rows, has no threshold
    columns: dict[str, dict[str, Any]] = {
        "roc": {"threshold": roc.thresholds, "fpr": roc.fpr, "tpr": roc.tpr},
        "pr": {"threshold": limits, "recall": pr.recall, "precision": pr.precision},
    }
    if options["curves"].lower().endswith(".csv"):
        rows = (
            {"curve": curve} | dict(zip(values, map(float, point), strict=True))
            for curve, values in columns.items()
            for point in zip(*values.values(), strict=True)
        )
        emit(csv_text(["curve", "threshold", "fpr", "tpr", "recall", "precision"], rows), options["curves"])
    else:
        document: dict[str, Any] = {"schema": 1, "fastrec": __version__}
        for (curve, values), area in zip(columns.items(), (roc.area, pr.area), strict=True):
            document[curve] = {"area": area, **values}
        emit(dump_json(plain_data(document)) + "\n", options["curves"])
    one_class = Text(path, ": all rows are of one class, so --curves lack rates")
    return [one_class] if math.isnan(roc.area) else []


def curves_of_page(path: str, found: Evaluated, options: dict[str, Any], label: str) -> list[Charted]:
    """Return the curves on the page of a log with labels 0 and 1; `label` is their column."""
    if not makes_page(options) or not found.score_counts:
        return []
    from fastrec.scored.curves import pr_of_runs, roc_of_runs

    runs = found.score_counts[None].runs()
    curves: list[Charted] = [roc_of_runs(runs, thin=True), pr_of_runs(runs, thin=True)]
    if len(runs.scores):
        curves.append(_calibration(found))
    return [*curves, *(_clicks(path, options, label) if options["min_gain"] is None else [])]


def _calibration(found: Evaluated) -> Charted:
    from fastrec.evaluation.row_clusters import BINS
    from fastrec.report.calibration import calibration_of_counts

    whole = found.score_counts[None]
    lowest, highest = whole.runs().scores[[0, -1]].tolist()
    if lowest < 0 or highest > 1:
        line = f"No chart of calibration: scores are from {lowest:g} to {highest:g}, so they are not probabilities."
        return Remark("Calibration", line)
    return calibration_of_counts(found.score_counts, found.users_by_bin, BINS, LEVEL)


def _clicks(path: str, options: dict[str, Any], label: str) -> list[Charted]:
    """Return the clicks by rank of a log that has a column of ranks."""
    from fastrec.files.columns import ImpressionColumns
    from fastrec.files.opened import has_column
    from fastrec.files.positions import ctr_of_file

    form = options["input_format"]
    rank = next((name for name in RANKS if has_column(path, name, form)), None)
    if rank is None:
        return []
    if options["weight_col"] is not None:
        line = "No clicks by rank: rows have weights, which clicks by rank do not take."
        return [Remark("Clicks by rank", line)]
    users = tuple(dict.fromkeys(options["user_col"])) or None
    columns = ImpressionColumns(label=label, rank=rank, users=users)
    try:
        return [ctr_of_file(path, columns, LEVEL, resources_of(options))]
    except (InputError, InputTypeError) as error:
        return [Remark("Clicks by rank", f"No clicks by rank: {error}")]
