"""Reports on scored rows that are all in memory: of one model, or of several that scored the same rows."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

from fastrec.arguments import pick
from fastrec.checks import with_article
from fastrec.evaluation.rows import RowEvaluation, usual_of_rows
from fastrec.exceptions import Argument, InputError, InputTypeError, Name, Place, renaming, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.findings.columns import hints_of_rows
from fastrec.inputs.rows import Rows
from fastrec.report.report import Report, record
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.threads import run_side_by_side

ROWS_SIDE_BY_SIDE = 1 << 21  # of all models at most: one after the other takes less memory


class _RowsOfModel(NamedTuple):
    """The checked rows of a model, and the evaluation they are for."""

    evaluation: RowEvaluation
    rows: Rows
    hints: list[str]
    naming: Callable[[], AbstractContextManager[None]]  # renames what errors are about

    def add(self, progress: Any, n_threads: int | None = None) -> None:
        """Evaluate the rows, with another number of threads if one is given."""
        own = self.evaluation.n_threads
        try:
            self.evaluation.n_threads = n_threads or own
            with self.naming():
                self.evaluation.evaluate(self.rows, progress)
        finally:
            self.evaluation.n_threads = own

    def report(self) -> Report:
        """Return the report, once rows were added."""
        with self.naming():
            report = self.evaluation.report()
            if self.hints:
                record(report, self.hints)
            return report


def report_of_rows(labels: Any, scores: Any, indptr: Any, metrics: Any, given: Mapping[str, Any]) -> Report:
    """Return the report of a call that scores rows."""
    found = _read(labels, scores, indptr, metrics, given, contextlib.nullcontext, alone=False)
    found.add(given["progress"])
    return found.report()


def reports_of_models(
    labels: Any, scores: Mapping[str, Any], indptr: Any, metrics: Any, given: Mapping[str, Any]
) -> dict[str, Report]:
    """Return the reports on models that scored the same rows; rows without users are users of their own.

    `labels` and `scores` are what `check_models` has seen. The error is that of the first model that has one.
    """

    def read(name: str) -> _RowsOfModel:
        own = scores[name]
        column = {"score": own} if isinstance(own, str) else {}
        options = {**given, **column, "per_user": True, "progress": None}
        naming = functools.partial(renaming, functools.partial(_named_scores, f"scores[{name!r}]"))
        return _read(labels, None if column else own, indptr, metrics, options, naming, alone=True)

    names, threads = list(scores), resolve_threads(given["n_threads"])
    first = read(names[0])
    waiting = [first]
    side_by_side = len(names) * len(first.rows.scores) <= ROWS_SIDE_BY_SIDE and 1 < threads < 2 * len(names)
    if side_by_side and first.evaluation.has_only_builtin_metrics:
        with contextlib.suppress(Exception):  # raised again in turn
            every = [first, *map(read, names[1:])]
            if run_side_by_side(lambda at: every[at].add(None, 1), range(len(every)), threads) is not None:
                return dict(zip(names, [own.report() for own in every], strict=True))
        waiting = []  # the evaluation of the first model may have taken its rows
    reports = {}
    for name in names:
        own = waiting.pop() if waiting else read(name)
        own.add(None)
        reports[name] = own.report()
    return reports


def _read(
    labels: Any,
    scores: Any,
    indptr: Any,
    metrics: Any,
    given: Mapping[str, Any],
    naming: Callable[[], AbstractContextManager[None]],
    *,
    alone: bool,
) -> _RowsOfModel:
    """Read the rows of a call. `alone`: rows without users are users of their own."""
    with naming():
        settings = pick(RowEvaluation.__init__, given)
        labels = open_foreign(labels, "the frame") if scores is None else labels
        if metrics is None and given["like"] is None:
            named = given["user"] is not None or given["by"] is not None
            of_frame = named or (isinstance(labels, Frame) and labels.has("user_id"))
            has_users = of_frame if scores is None else indptr is not None or given["user_ids"] is not None
            metrics = usual_of_rows(given["k"], has_users=has_users, weighted=given["sample_weight"] is not None)
            settings["k"] = None
        evaluation = RowEvaluation(metrics, **settings)
        rows = evaluation.prepare(labels, scores, indptr, given, alone=alone)
        hints = []
        if isinstance(labels, Frame) and given["user"] is None:
            hints = hints_of_rows(labels.columns, [name for name in given.values() if isinstance(name, str)])
        return _RowsOfModel(evaluation, rows, hints, naming)


def check_models(labels: Any, scores: Any) -> Any:
    """Return labels, opened if they are a data frame, whose columns all scores must name; else all are arrays."""
    named = isinstance(scores, dict) and all(isinstance(name, str) for name in scores)
    if not named or len(scores) < 2:
        found = with_article(type(scores).__name__)
        if isinstance(scores, dict):
            found += f" of {', '.join(map(shown, scores)) or 'none'}"
        wanted = "a dict of two models or more, {name: scores} with strings as names"
        raise InputTypeError(f"scores must be {wanted}, found {found}")
    opened = open_foreign(labels, "the frame")
    is_frame = isinstance(opened, Frame)
    arrays = {} if is_frame else {name: own for name, own in scores.items() if not isinstance(own, str)}
    lengths = {name: len(own) for name, own in arrays.items() if hasattr(own, "__len__")}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{n} in {shown(name)}" for name, n in lengths.items())
        raise InputError(f"scores must have one score per row for every model, found {found}")
    for name, own in scores.items():
        if isinstance(own, str) and not is_frame:
            kind = with_article(type(labels).__name__)
            raise InputTypeError(f"scores[{name!r}] names a column, so labels must be a data frame, found {kind}")
        if is_frame and not isinstance(own, str):
            kind = with_article(type(own).__name__)
            raise InputTypeError(f"labels is a data frame, so scores[{name!r}] must name a column, found {kind}")
    return opened if is_frame else labels


def _named_scores(scores: str, part: Name) -> Name:
    """Return a name in a message; that of scores becomes that of the scores of a model."""
    if part == Place("scores"):
        return Place(scores)
    return replace(part, name=scores) if isinstance(part, Argument) and part.name == "score" else part
