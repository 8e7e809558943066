"""Evaluation of files: lists against truth, or scored rows, of any size."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.checks import check_path, check_progress, check_text, listed
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import InputError, InputTypeError
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.files.job import EVALUATING
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Resources, read_size
from fastrec.files.rows import evaluate_log
from fastrec.inputs.frames import read_user_labels
from fastrec.metrics.declaration import nearest
from fastrec.report.report import Report

__all__ = ["evaluate_files"]


Watch = Callable[[str, int, int], Any]  # called with the stage, its rows that are done, and all its rows
Progress = Callable[[int, int], Any]
Path = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


def evaluate_files(
    recs: Path,
    truth: Path | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    label: str | None = None,
    sample_weight: str | None = None,
    by: Any = None,
    users: Path | None = None,
    exclude: Path | None = None,
    input_format: str = "auto",
    memory: int | str | None = None,
    temp_directory: Path | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    r"""Evaluate files of any size: lists against truth or, without ``truth``, a log of scored, labelled rows.

    Files that fit in ``memory`` are read whole; others are sorted by user on disk and streamed, with the same bits.

    Parameters
    ----------
    recs : path of the lists, or of the log
        Parquet, CSV or JSON lines (also gzipped), one row per user and item, or per impression, in any order. Or a TREC
        run and judgements; scores order a run. A folder, or a pattern such as ``"logs/*.parquet"``, is read as one
        file. Folders named like ``date=2024-01-01`` in it become columns.
    truth : path of the relevant items
    metrics, k : as in `evaluate` and `evaluate_scores`
    user, item, rank, score, gain, label : names of columns
        Defaults: ``user_id``, ``item_id`` and, if the file has them, ``rank``, ``score`` and ``gain``; in a log
        ``label`` and ``score``. Rank orders the lists, else score, else the order of rows in the file. In a log,
        several names in ``user`` make a user together, and ``label`` and ``score`` may be true and predicted ratings.
    sample_weight : name of the column with the weights of the rows of a log
    by : name of the column, or several, to group users by, in any of the files, one value per user; or labels by user,
        as in `evaluate`
    users : path of a file with one row per user: the column of users and the columns that ``by`` names
    exclude : path of seen items (user, item), which are removed from the lists
    input_format : format of all files: ``"parquet"``, ``"csv"``, ``"jsonl"``, ``"trec"``; or ``"auto"``: detect the
        format of each file from its beginning
    memory : bytes, or a string such as ``"4GB"``, at least 64 MB; default: half of the available memory
        Python, the packages and compiled code take up to 400 MB more. These grow beyond the limit: the rows of the
        largest user, user ids (about 16 bytes per character of the longest, for each user), values per user, the
        distinct scores of a global AUC, and curves. Ids of more than 1,000 characters may need 300 MB or more; with
        less, the call may fail.
    temp_directory : folder for temporary files when the rows do not fit in memory; default: that of the system
    progress : called as ``progress(done, total)`` with numbers of rows, while fastrec evaluates them
    **options : as in `evaluate` or `evaluate_scores`: per_user, min_gain, n_items, ties, no_truth, no_recs, duplicates,
        one_class, like

    Raises
    ------
    InputError, InputTypeError
        If a file cannot be read, or a column is missing or holds unusable values. Messages name files and rows; rows
        count from 1, without a header.
    MissingExtraError
        If DuckDB or PyArrow is not installed; the extra ``cli`` installs both.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lists, truth = pathlib.Path(folder, "lists.csv"), pathlib.Path(folder, "truth.csv")
    ...     _ = lists.write_text("user_id,item_id\nann,x\nann,y\nbob,x\n")
    ...     _ = truth.write_text("user_id,item_id\nann,y\nbob,z\n")
    ...     fastrec.evaluate_files(lists, truth, ["recall@2", "mrr"])
    metric      mean  ± 95 %  users
    recall@2  0.5000  0.9800      2
    mrr       0.2500  0.4900      2
    2 of 2 users counted
    lists in the order of their rows; all gains 1
    """
    for name, value in (("recs", recs), ("truth", truth), ("users", users), ("exclude", exclude)):
        if any(hasattr(value, part) for part in ("columns", "__arrow_c_stream__", "collect_schema")):
            raise InputTypeError(f"{name} must be a path, found a {type(value).__name__}: evaluate takes data frames")
    _check_options(ScoreEvaluator if truth is None else Evaluator, options)
    resources, watch = Resources(read_size(memory), temp_directory, n_threads), _watch_for(progress)
    labels = read_user_labels(by, user)
    groupings = () if labels is not None else _names(by, "by") or ()
    keys = _names(user, "user")
    _check_given(check_text, item=item, rank=rank, score=score, gain=gain, label=label, sample_weight=sample_weight)
    _check_given(check_path, truth=truth, users=users, exclude=exclude, temp_directory=temp_directory)
    check_path("recs", recs)
    if temp_directory is not None and not os.path.isdir(temp_directory):
        raise InputError(f"temp_directory must be a folder, found {os.fspath(temp_directory)!r}")
    more = {name: path for name, path in (("users", users), ("seen", exclude)) if path is not None}
    common: dict[str, Any] = {"input_format": input_format, "labels_by_user": labels}
    if truth is None:
        _reject_given("a log, without truth", rank=rank, gain=gain, exclude=exclude)
        scorer = ScoreEvaluator(metrics, k=k, n_threads=n_threads, **options)
        log_columns = RowColumns(
            label="label" if label is None else label,
            score="score" if score is None else score,
            ratings=scorer.needs_targets,
            users=keys,
            item=item,
            weight=sample_weight,
            by=groupings,
        )

        def make_usual(has_users: bool) -> ScoreEvaluator:  # noqa: FBT001 - called by position
            usual = usual_of_rows(k, has_users=has_users, weighted=sample_weight is not None)
            return ScoreEvaluator(**usual, n_threads=n_threads, **options)

        make = make_usual if metrics is None and options.get("like") is None else lambda _: scorer
        paths = {"log": recs, **more}
        return evaluate_log(make, paths, log_columns, resources, watch, **common).report
    _reject_given("lists, with truth", label=label, sample_weight=sample_weight)
    if keys is not None and len(keys) != 1:
        raise InputError(f"user must name one column when a truth is given, found {user!r}")
    columns = ListColumns(
        "user_id" if keys is None else keys[0], "item_id" if item is None else item, rank, score, gain, groupings
    )
    evaluator = Evaluator(metrics, k=k, n_threads=n_threads, **options)
    paths = {"recs": recs, "truth": truth, **more}
    return evaluate_lists(evaluator, paths, columns, resources, watch, **common).report


def _check_options(kind: type, options: Mapping[str, Any]) -> None:
    """Raise if evaluators of this kind do not have an argument."""
    known = list(inspect.signature(kind).parameters)
    for name in options:
        if name not in known:
            what = "a log, without truth" if kind is ScoreEvaluator else "lists, with truth"
            raise InputTypeError(f"evaluate_files takes no argument {name!r} for {what}{nearest(name, known)}")


def _check_given(check: Callable[[str, Any], Any], **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            check(name, value)


def _names(names: Any, argument: str) -> tuple[str, ...] | None:
    """Return the names of columns in an argument, which may be one name or several."""
    if names is None:
        return None
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else listed(names, argument)
    return tuple(check_text(argument, name) for name in found)


def _watch_for(progress: Progress | None) -> Watch:
    """Return a `Watch` that reports rows of the evaluating stage only, not of the stages before."""
    check_progress(progress)

    def watch(stage: str, done: int, total: int) -> None:
        if progress is not None and stage == EVALUATING:
            progress(done, total)

    return watch


def _reject_given(what: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InputError(f"{name} does not apply to {what}")
