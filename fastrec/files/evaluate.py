"""Evaluation of files: lists against truth, or scored rows, of any size."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import check_path, check_progress, check_text, listed
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import InputError, InputTypeError
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.inputs.frames import read_user_labels
from fastrec.metrics.declaration import nearest
from fastrec.report.report import Report

if TYPE_CHECKING:
    pass
from fastrec.files.job import EVALUATING
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Resources, read_size
from fastrec.files.rows import evaluate_log

__all__ = ["evaluate_files"]


Watch = Callable[[str, int, int], Any]  # told the stage, and the rows that are done and all rows of it
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

    What fits in ``memory`` is read whole; the rest is sorted by user on disk and streamed, with the same bits.

    Parameters
    ----------
    recs : path of the lists, or of the log
        Parquet, CSV or JSON lines (also packed with gzip), one row per user and item, or per impression, in any
        order; or a TREC run and judgements, a run ordered by its scores. A folder, or a pattern such as
        ``"logs/*.parquet"``, is read as one file, and folders in it named as ``date=2024-01-01`` are columns too.
    truth : path of the relevant items
    metrics, k : as in `evaluate` and `evaluate_scores`
    user, item, rank, score, gain, label : names of columns; by default ``user_id``, ``item_id`` and, where they are
        there, ``rank``, ``score`` and ``gain``; in a log ``label`` and ``score``. Lists are ordered by rank, else by
        score, else as their rows stand in the file. In a log several names as ``user`` make a user together, and
        ``label`` and ``score`` may be true and predicted ratings.
    sample_weight : name of the column of weights of the rows of a log
    by : name of the column, or several, to group users by; in any of the files, one value per user; or labels by user,
        as in `evaluate`
    users : path of a file with columns of users: ``user_id`` and those that ``by`` names
    exclude : path of seen items (user, item), which are taken out of the lists
    input_format : the format of all files: ``"parquet"``, ``"csv"``, ``"jsonl"``, ``"trec"``; or ``"auto"``, of each by
        how it begins
    memory : bytes, or a string such as ``"4GB"``; by default half of what there is. Python, the packages and compiled
        code take up to 400 MB more. Beyond that grow: the rows of the largest user, ids of users (about 16 bytes per
        character of the longest, for each user), values per user, the distinct scores of a global AUC, and curves.
        Ids of more than 1,000 characters may need 300 MB or more; with less they may be refused.
    temp_directory : folder for what does not fit; by default that of the system
    progress : called as ``progress(done, total)`` with rows, while these are evaluated
    **options : as in `evaluate` or `evaluate_scores`: per_user, min_gain, n_items, ties, no_truth, no_recs, duplicates,
        one_class

    Raises
    ------
    InputError, InputTypeError
        If a file cannot be read, or a column is missing or holds what cannot be used; files and rows are named,
        rows counted from 1, without a header.
    MissingExtraError
        Without DuckDB and PyArrow, which the extra ``cli`` brings.

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
        _refuse_given("a log, without truth", rank=rank, gain=gain, exclude=exclude)
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
    _refuse_given("lists, with truth", label=label, sample_weight=sample_weight)
    if keys is not None and len(keys) != 1:
        raise InputError(f"user must be the name of one column of lists, found {user!r}")
    columns = ListColumns(
        "user_id" if keys is None else keys[0], "item_id" if item is None else item, rank, score, gain, groupings
    )
    evaluator = Evaluator(metrics, k=k, n_threads=n_threads, **options)
    paths = {"recs": recs, "truth": truth, **more}
    return evaluate_lists(evaluator, paths, columns, resources, watch, **common).report


def _check_options(kind: type, options: Mapping[str, Any]) -> None:
    """An error for an argument that evaluators of this kind do not have."""
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
    """The column, or several, that an argument names."""
    if names is None:
        return None
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else listed(names, argument)
    return tuple(check_text(argument, name) for name in found)


def _watch_for(progress: Progress | None) -> Watch:
    """Tell of the rows that are evaluated, and not of what is done before."""
    check_progress(progress)

    def watch(stage: str, done: int, total: int) -> None:
        if progress is not None and stage == EVALUATING:
            progress(done, total)

    return watch


def _refuse_given(what: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InputError(f"{name} is not for {what}")
