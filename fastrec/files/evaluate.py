"""Evaluates files: whole where they fit in memory, else sorted by user on disk and streamed, with the same bits.

A file is long: one row per user and item. DuckDB reads and checks it; what comes out are Arrow tables, which are
evaluated as data frames are.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from fastrec.checks import check_path, check_progress, check_text, listed
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import FastrecError, InputError, InputTypeError
from fastrec.files.database import interruptible, run
from fastrec.files.formats import (
    ROWS_TO_ASK,
    Source,
    find_files,
    open_source,
    recognise,
    text_sql,
    unchanged,
    utf8_path,
)
from fastrec.files.hints import explain_mismatch
from fastrec.files.parquet import find_plain, read_plain, size_of_plain
from fastrec.files.sizes import Size, size_of_rows
from fastrec.files.sorting import ranges_to_sort, sort_rows
from fastrec.files.streams import batches_of_users
from fastrec.files.tables import (
    ColumnError,
    Columns,
    File,
    ScoreColumns,
    TooLargeError,
    check_groupings,
    estimate_bytes,
    joint_kind,
    label_sql,
    labels_are_texts,
    load,
    number_sql,
    one_row,
    open_database,
    quoted,
    short_text,
    text_bytes,
    used_bytes,
)
from fastrec.inputs.arrow import read_numbers
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.hints import LeftOpen, are_disordered, hints_of_columns
from fastrec.inputs.users import NO_LABEL, UserLabels, as_labels
from fastrec.metrics.declaration import nearest
from fastrec.report.report import Report, record
from fastrec.runtime.extras import require
from fastrec.runtime.launch import resolve_threads
from fastrec.runtime.limits import control_groups
from fastrec.runtime.outputs import temporary_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "NO_LABEL",
    "ColumnError",
    "Columns",
    "Evaluated",
    "Resources",
    "ScoreColumns",
    "evaluate_files",
    "evaluate_lists",
    "evaluate_log",
    "read_size",
]

Array = np.ndarray[Any, Any]
Path = str | os.PathLike[str]
AnyColumns = TypeVar("AnyColumns", bound=Columns | ScoreColumns)
Progress = Callable[[int, int], Any]
Watch = Callable[[str, int, int], Any]  # told the stage, and the rows that are done and all rows of it
Roles = Callable[[Mapping[str, File]], tuple[tuple[str, ...], tuple[str, ...]]]  # of the columns of users, and of ids
COPIES = 4  # of the columns that are in memory at once when files are evaluated whole
SHARE_OF_DATABASE = 0.6  # of the memory, while sorted rows are streamed
MIN_DATABASE_BYTES = 100_000_000  # bytes without which DuckDB cannot sort
BUFFERS_OF_JSON = 64_000_000  # bytes that DuckDB may need beside those to read long lines
MIN_READING_BYTES = 32_000_000  # bytes that DuckDB needs to read sorted rows
MERGED_BYTES = 2_000_000  # that merging needs for each sorted run, found by trying
BYTES_PER_ROW = 256  # that evaluating a row of a batch takes
COPIES_OF_TEXTS = 16  # of those of a batch, while it is evaluated
EVALUATING = "evaluating"  # the stage
MIN_MEMORY = 64_000_000
MIN_BATCH, MAX_BATCH = 1 << 16, 1 << 21
MIN_BATCH_OF_TEXTS = 1 << 11  # rows
ROWS_TO_WEIGH = 1 << 13  # together, to find the longest texts that stand in one place


class Resources(NamedTuple):
    """What an evaluation of files may use."""

    memory: int | None = None  # bytes; half of the machine's by default
    temp_directory: Path | None = None  # by default that of the system
    n_threads: int | None = None

    def limit(self) -> int:
        """Bytes to keep to."""
        return self.memory if self.memory is not None else installed_memory() // 2

    def of_database(self) -> int:
        """Bytes of them that DuckDB may use while it sorts."""
        return max(int(SHARE_OF_DATABASE * self.limit()), MIN_DATABASE_BYTES)

    def sorting_threads(self, n_bytes: int) -> int:
        """Threads that can sort so much: each makes runs of its share of the memory, and merges all runs."""
        most = int(self.of_database() / math.sqrt(MERGED_BYTES * max(n_bytes, 1)))
        return max(1, min(resolve_threads(self.n_threads), most))

    def of_reading(self) -> int:
        """Bytes that DuckDB may use while sorted rows are read, which are not worth keeping: evaluating needs them."""
        return max(self.of_database() // 4, MIN_READING_BYTES)

    def batch_rows(self, text: float = 0.0) -> int:
        """Rows of one side to evaluate at once, each with so many bytes of texts on all sides."""
        room = int((1 - SHARE_OF_DATABASE) * self.limit())
        wanted = min(max(room // BYTES_PER_ROW, MIN_BATCH), MAX_BATCH)
        return min(wanted, max(int(room / (BYTES_PER_ROW + COPIES_OF_TEXTS * text)), MIN_BATCH_OF_TEXTS))


def installed_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or what the control groups around it grant."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 33]
    for group in control_groups("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):  # no such file, "max"
                limits.append(int((group / name).read_text()))
    return min(limits)


def read_size(size: int | str | None) -> int | None:
    """Bytes, given as a number or as a text such as "4GB" or "512 MiB"."""
    if size is None:
        return None
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) ?([kmgt]?)(i?)b?", str(size).strip().lower())
    unit = 1024 if found is not None and found[3] else 1000
    n_bytes = int(float(found[1]) * unit ** " kmgt".index(found[2] or " ")) if found is not None else 0
    if isinstance(size, bool) or n_bytes < MIN_MEMORY:
        raise InputError(f"memory must be a size of at least 64 MB, as in '4GB', found {size!r}")
    return n_bytes


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
        log_columns = ScoreColumns(
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
    columns = Columns(
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


def _begin(watch: Watch, n_rows: int) -> Progress:
    """What to tell of users who are evaluated all at once: their share of the rows."""
    watch(EVALUATING, 0, n_rows)
    return lambda done, total: watch(EVALUATING, n_rows * done // total, n_rows)


def _refuse_given(what: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InputError(f"{name} is not for {what}")


class Evaluated(NamedTuple):
    """A report on files, and what its users are."""

    report: Report
    users: dict[str, Array]  # column -> value of each user; empty unless values of users were kept
    groups: dict[str, Array]  # column -> label of each user, likewise
    curves: Any = None  # what was made of labels, scores and weights, see `evaluate_log`


class _Loaded(NamedTuple):
    """Checked tables of a database, and what their ids are."""

    con: DuckDBPyConnection
    files: dict[str, File]
    ids: dict[str, str]  # role -> type in SQL
    labels: _Labels
    streamed: Resources | None = None  # what may be used while rows are sorted and streamed; None to read all at once

    @property
    def texts(self) -> list[str]:
        """The roles of ids that are texts."""
        return [role for role, type_ in self.ids.items() if type_ == "VARCHAR"]

    def texts_of(self, file: File) -> list[str]:
        """The same, of those that a file has."""
        return [role for role in self.texts if role in file.names]

    def size(self) -> Size:
        """What is to be evaluated."""
        total = Size()
        for file in self.files.values():
            text = text_bytes(self.con, file.table, self.texts_of(file))
            total = total.plus(size_of_rows(file.rows, len(file.names), text))
        return total


class _Data(NamedTuple):
    """Checked tables, and how to read their rows."""

    loaded: _Loaded
    selects: dict[str, str]  # table -> SQL of its rows, columns named by role
    watch: Watch

    @property
    def con(self) -> DuckDBPyConnection:
        """The database."""
        return self.loaded.con

    @property
    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        return {table: self.loaded.files[table].rows for table in self.selects}

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.rows.values())

    def progress(self) -> Progress | None:
        """What is to be told of the users of a batch."""
        return None if self.loaded.streamed else _begin(self.watch, self.n_rows)


class _FileJob(NamedTuple, Generic[AnyColumns]):
    """Arguments that evaluating lists and rows have in common."""

    paths: Mapping[str, Path]
    columns: AnyColumns
    resources: Resources
    watch: Watch
    input_format: str
    labels_by_user: UserLabels | None

    def database(self, roles: Roles) -> contextlib.AbstractContextManager[_Loaded]:
        """The files as tables of a database; `roles` as in `_database`."""
        return _database(self.paths, self.columns, self.resources, self.input_format, roles)

    def read_whole(self) -> dict[str, Any] | None:
        """Tables that fit in memory and need no database; None if one is needed."""
        sources = {table: find_files(os.fspath(path)) for table, path in self.paths.items()}
        with unchanged(file for files in sources.values() for file in files.paths):
            found = find_plain(sources, self.columns, self.input_format)
            if found is None:
                return None
            size = size_of_plain(found.values())
            if COPIES * size.n_bytes > self.resources.limit():
                return None
            n_threads, limit = resolve_threads(self.resources.n_threads), self.resources.limit()
            with loading_kernels(sum(plain.rows for plain in found.values())):
                return read_plain(found, n_threads, size, limit // COPIES)

    def take_whole(self, tables: Mapping[str, Any], update: Callable[[Progress], Any]) -> bool:
        """Whether tables were added. What is wrong with them is said by DuckDB's way, which knows files and rows."""
        try:
            update(_begin(self.watch, sum(map(len, tables.values()))))
        except FastrecError:
            return False
        return True


def evaluate_lists(
    evaluator: Evaluator,
    paths: Mapping[str, Path],
    columns: Columns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Lists, truth and, if given, seen items and labels of users from the files "recs", "truth", "seen", "users"."""
    job = _FileJob(paths, columns, resources, watch, input_format, labels_by_user)
    found = _evaluate_whole_lists(evaluator, job)
    if found is not None:
        return found
    with job.database(_roles_of_lists) as loaded:
        con, files, labels = loaded.con, loaded.files, loaded.labels
        sides = {table: file for table, file in files.items() if table != "users"}
        selects = {table: _select(file, ("rank", "score", "gain"), loaded.ids, labels) for table, file in sides.items()}
        data = _Data(loaded, selects, watch)
        for batch in _batches(data, ("user",)):
            with _named_as_in(files, streamed=loaded.streamed is not None):
                _update_lists(evaluator, batch, labels_by_user or labels.columns, data.progress())
        found = _finish(evaluator.result(), {"user": columns.user}, labels)
        recs, truth = files["recs"], files["truth"]
        opened = _Opened(con, recs.source, truth.source)
        names = list(recs.source.columns), list(truth.source.columns)
        left = _left_open(recs.names, truth.names, columns, evaluator)
        more = _hints_of_columns(names, columns, left, lambda: opened)
        record(found.report, (*_hints(con, found.report, files), *more))
        return found


def _evaluate_whole_lists(evaluator: Evaluator, job: _FileJob[Columns]) -> Evaluated | None:
    """The same of files that fit in memory and need no database; None if one is needed."""
    whole = job.read_whole()
    if whole is None or not job.take_whole(
        whole, lambda progress: _update_lists(evaluator, whole, job.labels_by_user, progress)
    ):
        return None
    left = _left_open(whole["recs"].column_names, whole["truth"].column_names, job.columns, evaluator)
    whole.clear()  # a database may need the memory
    found = _finish(evaluator.result(), {"user": job.columns.user}, _Labels((), (), {}, None))
    record(found.report, (*_hints_of_files(found.report, job), *_hints_of_columns_in(job, left)))
    return found


def _roles_of_lists(_: Mapping[str, File]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roles of the columns that make users, and those of all ids."""
    return ("user",), ("user", "item")


def _roles_of_log(files: Mapping[str, File]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The same of a log, which may lack users and items."""
    names = files["log"].names
    users = _users_of(names)
    return users, (*users, "item") if "item" in names else users


def _left_open(recs: Collection[str], truth: Collection[str], columns: Columns, evaluator: Evaluator) -> LeftOpen:
    """What the roles of the columns that are used leave open."""
    ungraded = "gain" not in truth and evaluator.settings["min_gain"] != "any"
    return LeftOpen(not {"rank", "score"} & {*recs}, ungraded, columns.gain is None)


def _update_lists(
    evaluator: Evaluator, tables: Mapping[str, Any], by: UserLabels | Sequence[str] | None, progress: Progress | None
) -> None:
    """Add tables whose columns are named by role."""
    names = {role: role for role in ("rank", "score") if role in tables["recs"].column_names}
    names |= {"gain": "gain"} if "gain" in tables["truth"].column_names else {}
    evaluator.update(
        tables["recs"],
        tables["truth"],
        exclude=tables.get("seen"),
        user="user",
        item="item",
        by=by or None,
        progress=progress,
        **names,
    )


def _unmatched(report: Report) -> str | None:
    """The role of ids of which none of the truth is in the lists."""
    if report.data["truth_users_with_recs"] == 0:
        return "user"
    return "item" if report.data["truth_items_in_recs"] == 0 else None


def _hints(con: DuckDBPyConnection, report: Report, files: Mapping[str, File]) -> tuple[str, ...]:
    """Why no user, or no item, of the truth is in the lists."""
    role = _unmatched(report)
    if role is None or not (files["recs"].rows and files["truth"].rows):
        return ()
    why = explain_mismatch(con, role, files["recs"], files["truth"])
    return () if why is None else (why,)


def _hints_of_files(report: Report, job: _FileJob[Columns]) -> tuple[str, ...]:
    """The same for files that no database has read yet."""
    if _unmatched(report) is None:
        return ()
    sides = job._replace(paths={table: job.paths[table] for table in ("recs", "truth")})
    with sides.database(_roles_of_lists) as loaded:
        return _hints(loaded.con, report, loaded.files)


class _Opened(NamedTuple):
    """Both sides, to be asked for columns that nobody named."""

    con: DuckDBPyConnection
    recs: Source
    truth: Source


def _hints_of_columns(
    names: tuple[Sequence[str], Sequence[str]], columns: Columns, left: LeftOpen, opened: Callable[[], _Opened]
) -> tuple[str, ...]:
    """What the columns of lists and truth, given by name, say that nobody named; files are opened to look at values."""

    def is_disordered(role: str, name: str) -> bool:
        con, recs, _ = opened()
        return _is_disordered(con, recs, columns.user, role, name)

    def has_gains(name: str) -> bool | None:
        con, _, truth = opened()
        return _has_gains(con, truth, name)

    used = {columns.user, columns.item, *columns.by}
    return tuple(hints_of_columns(*names, used, left, is_disordered, has_gains))


def _has_gains(con: DuckDBPyConnection, truth: Source, name: str) -> bool | None:
    """Whether a column that nobody asked for holds numbers other than 1, in the first rows; None without numbers."""
    import duckdb

    value = f"TRY_CAST(CAST({truth.columns[name][0]} AS VARCHAR) AS DOUBLE)"
    rows = f"SELECT {value} AS value FROM {truth.sql} LIMIT {ROWS_TO_ASK}"
    try:
        numbers, graded = one_row(con, f"SELECT count(*) = count(value), bool_or(value <> 1) FROM ({rows})")
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # a column that nobody asked for may be damaged
        return None
    return bool(graded) if numbers else None


def _is_disordered(con: DuckDBPyConnection, recs: Source, user: str, role: str, name: str) -> bool:
    """Whether a column tells another order than the rows, of which the first ones are asked."""
    import duckdb

    who, value = recs.columns[user][0], recs.columns[name][0]
    query = (
        f"SELECT hash(CAST({who} AS VARCHAR)) AS who, TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE) AS value "
        f"FROM {recs.sql} LIMIT {ROWS_TO_ASK}"
    )
    try:
        rows = run(con, query).fetchnumpy()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # a column that nobody asked for may be damaged
        return False
    if np.ma.is_masked(rows["value"]):
        return False
    _, users = np.unique(rows["who"], return_inverse=True)
    indptr = np.append(0, np.cumsum(np.bincount(users)))
    return are_disordered(role, np.asarray(rows["value"])[np.argsort(users, kind="stable")], indptr)


def _hints_of_columns_in(job: _FileJob[Columns], left: LeftOpen) -> tuple[str, ...]:
    """The same of Parquet files that no database has read; their names of columns mostly say that there is nothing."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    sides = {table: find_files(os.fspath(job.paths[table])) for table in ("recs", "truth")}
    recs, truth = (parquet.read_schema(utf8_path(files.paths[0])).names for files in sides.values())
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened() -> _Opened:
            con = stack.enter_context(open_database(job.resources.n_threads))
            formats = (recognise(files, job.columns.names, job.input_format) for files in sides.values())
            sources = (
                open_source(con, files, format_, job.columns.usual, job.columns.names)
                for files, format_ in zip(sides.values(), formats, strict=True)
            )
            return _Opened(con, *sources)

        return _hints_of_columns((recs, truth), job.columns, left, opened)


def evaluate_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    paths: Mapping[str, Path],
    columns: ScoreColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    curves: Callable[[Array, Array, Array | None], Any] | None = None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Labels and scores (or targets and predictions) from the file "log"; labels of users also from the file "users".

    `make_evaluator` is told whether there are users; `curves` is given labels, scores and weights of all rows.
    """
    label, score = columns.values
    job = _FileJob(paths, columns, resources, watch, input_format, labels_by_user)
    whole = _evaluate_whole_log(make_evaluator, job, curves)
    if whole is not None:
        return whole
    with job.database(_roles_of_log) as loaded:
        con, file, labels = loaded.con, loaded.files["log"], loaded.labels
        users = _users_of(file.names)
        select = _select(file, (label, score, "weight"), loaded.ids, labels)
        evaluator = make_evaluator(bool(users))
        data = _Data(loaded, {"log": select}, watch)
        for batch in _batches(data, users):
            with _named_as_in({"log": file}, streamed=loaded.streamed is not None):
                _update_log(evaluator, batch["log"], columns, labels_by_user or labels.columns, data.progress())
        found = _finish(evaluator.result(), {role: file.names[role] for role in users}, labels)
        if curves is None:
            return found
        picked = ", ".join(_numbers(file, (label, score, "weight")))
        cursor = con.cursor()  # an older DuckDB closes one that nobody holds
        rows = cursor.sql(f"SELECT {picked} FROM log AS t").fetchnumpy()
        with _named_as_in({"log": file}, streamed=False):
            drawn = curves(np.asarray(rows[label]), np.asarray(rows[score]), rows.get("weight"))
        return found._replace(curves=drawn)


def _evaluate_whole_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    job: _FileJob[ScoreColumns],
    curves: Callable[[Array, Array, Array | None], Any] | None,
) -> Evaluated | None:
    """The same of a file that fits in memory and needs no database; None if one is needed."""
    whole = job.read_whole()
    if whole is None:
        return None
    rows = whole["log"]
    evaluator = make_evaluator(bool(_users_of(rows.column_names)))
    if not job.take_whole(
        whole, lambda progress: _update_log(evaluator, rows, job.columns, job.labels_by_user, progress)
    ):
        return None
    return _finish_rows(evaluator.result(), rows, job.columns, curves)


def _finish_rows(
    report: Report,
    rows: Any,
    columns: ScoreColumns,
    curves: Callable[[Array, Array, Array | None], Any] | None,
) -> Evaluated:
    """What was found in a log that is in memory, columns named by role."""
    users = _users_of(rows.column_names)
    names = dict(zip(users, columns.users or ("user_id",) * len(users), strict=True))
    found = _finish(report, names, _Labels((), (), {}, None))
    if curves is None:
        return found
    label, score = (read_numbers(rows.column(role), role) for role in columns.values)
    weights = read_numbers(rows.column("weight"), "weight") if "weight" in rows.column_names else None
    return found._replace(curves=curves(label, score, weights))


def _users_of(roles: Iterable[str]) -> tuple[str, ...]:
    """The roles of the columns that make users."""
    return tuple(role for role in roles if role.startswith("user"))


def _update_log(
    evaluator: ScoreEvaluator,
    rows: Any,
    columns: ScoreColumns,
    by: UserLabels | Sequence[str] | None,
    progress: Progress | None,
) -> None:
    """Add rows of a log, columns named by role."""
    label, score = columns.values
    users = _users_of(rows.column_names)
    evaluator.update(
        rows,
        user=(users if len(users) > 1 else users[0]) if users else None,
        label=label,
        score=score,
        item="item" if "item" in rows.column_names else None,
        sample_weight="weight" if "weight" in rows.column_names else None,
        by=by or None,
        progress=progress,
    )


def _numbers(file: File, roles: Sequence[str]) -> list[str]:
    """SQL of the columns of numbers that a file has."""
    return [f"{number_sql(file, role)} AS {quoted(role)}" for role in roles if role in file.names]


@contextlib.contextmanager
def _database(
    paths: Mapping[str, Path],
    columns: Columns | ScoreColumns,
    resources: Resources,
    input_format: str,
    roles: Roles,
) -> Iterator[_Loaded]:
    """Files as tables of a database: in memory if they and their evaluation fit there, else in one on disk.

    `roles` checks the tables, and tells which columns make users and which are ids. The database on disk is gone
    afterwards.
    """

    def read(con: DuckDBPyConnection, streamed: Resources | None) -> _Loaded:
        files = {table: load(con, table, os.fspath(path), columns, input_format) for table, path in paths.items()}
        users, of_ids = roles(files)
        check_groupings(files, columns.by)
        ids = _types_of_ids(con, files, of_ids)
        labels = _Labels.make(con, list(files.values()), columns.by, {role: ids[role] for role in users})
        return _Loaded(con, files, ids, labels, streamed)

    n_bytes = _estimate(paths.values(), columns, input_format)
    with contextlib.ExitStack() as stack:
        loaded = _load_in_memory(stack, read, resources) if COPIES * n_bytes <= resources.limit() else None
        if loaded is None:
            n_threads = resources.sorting_threads(n_bytes)
            try:
                loaded = _load_on_disk(stack, read, resources, n_threads)
            except TooLargeError:  # each thread that reads has buffers of its own, those of JSON are large
                loaded = _load_on_disk(stack, read, resources, 1, BUFFERS_OF_JSON)
        yield loaded


def _load_on_disk(
    stack: contextlib.ExitStack,
    read: Callable[[DuckDBPyConnection, Resources], _Loaded],
    resources: Resources,
    n_threads: int,
    more: int = 0,
) -> _Loaded:
    """Tables in a database on disk, which `stack` closes and removes."""
    with contextlib.ExitStack() as attempt:
        folder = attempt.enter_context(temporary_folder(resources.temp_directory))
        con = attempt.enter_context(open_database(n_threads, folder, resources.of_database() + more))
        loaded = read(con, resources)
        stack.push(attempt.pop_all())
        return loaded


def _load_in_memory(
    stack: contextlib.ExitStack, read: Callable[[DuckDBPyConnection, None], _Loaded], resources: Resources
) -> _Loaded | None:
    """Tables in memory, which `stack` closes; None where reading or counting them tells that they do not fit."""
    try:
        with contextlib.ExitStack() as attempt:
            con = attempt.enter_context(open_database(resources.n_threads, memory=resources.of_database()))
            loaded = read(con, None)
            if used_bytes(con) + COPIES * loaded.size().n_bytes > resources.limit():
                return None
            con.execute(f"SET memory_limit = '{resources.limit()}B'")
            stack.push(attempt.pop_all())
            return loaded
    except TooLargeError:
        return None


def _estimate(paths: Iterable[Path], columns: Columns | ScoreColumns, input_format: str) -> int:
    """About the bytes of the wanted columns of all files."""
    return sum(estimate_bytes(os.fspath(path), columns, input_format) for path in paths)


def _types_of_ids(con: DuckDBPyConnection, files: Mapping[str, File], roles: Sequence[str]) -> dict[str, str]:
    """What the ids of each role are in SQL: the same in all files."""
    types = {}
    for role in roles:
        kind = joint_kind(con, role, [file for file in files.values() if role in file.names])
        types[role] = "BIGINT" if kind == "integer" else "VARCHAR"
    return types


def _select(file: File, numbers: Sequence[str], ids: Mapping[str, str], labels: _Labels) -> str:
    """The rows of a file, columns named by role, and `place`, where they stand in it."""
    picked = [f"CAST(t.{quoted(role)} AS {type_}) AS {quoted(role)}" for role, type_ in ids.items()]
    return labels.join(f"SELECT {', '.join([*picked, *_numbers(file, numbers)])}, t.rowid AS place", file)


def _batches(data: _Data, users: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Tables of rows by name, together holding each user whole."""
    resources = data.loaded.streamed
    if resources is None:  # a join keeps no order
        cursor, order = data.con.cursor(), " ORDER BY place" if data.loaded.labels.names else ""
        yield {
            table: interruptible(cursor, cursor.sql(f"SELECT * EXCLUDE (place) FROM ({select}){order}").to_arrow_table)
            for table, select in data.selects.items()
        }
        return
    _sort(data, users, resources)
    batch_rows = resources.batch_rows(_longest_texts(data))
    cursors = {table: data.con.cursor() for table in data.selects}  # an older DuckDB closes one that nobody holds
    streams = {table: cursor.sql(f"SELECT * FROM sorted_{table}") for table, cursor in cursors.items()}
    # DuckDB gave the method its present name in version 2
    read = "to_arrow_reader" if hasattr(next(iter(streams.values())), "to_arrow_reader") else "fetch_arrow_reader"
    readers = {table: getattr(stream, read)(batch_rows) for table, stream in streams.items()}
    done = 0
    data.watch(EVALUATING, done, data.n_rows)
    for batch in batches_of_users(readers, users):
        yield batch
        done += sum(len(rows) for rows in batch.values())
        data.watch(EVALUATING, done, data.n_rows)


def _sort(data: _Data, users: tuple[str, ...], resources: Resources) -> None:
    """Tables of sorted rows, one after the other: a sort takes all the memory there is."""
    done, memory = 0, resources.of_database()
    for table, select in data.selects.items():

        def tick(share: float, before: int = done, rows: int = data.rows[table]) -> None:
            data.watch("sorting", before + int(share * rows), data.n_rows)

        tick(0)
        file = data.loaded.files[table]
        n_ranges = ranges_to_sort(text_bytes(data.con, table, data.loaded.texts_of(file)), memory)
        sort_rows(data.con, f"sorted_{table}", select, users, n_ranges, tick)
        done += data.rows[table]
    data.con.execute(f"SET memory_limit = '{resources.of_reading()}B'")


def _longest_texts(data: _Data) -> float:
    """Bytes of the texts of a row, on average where they are longest, of all tables together."""
    longest = []
    for table in data.selects:
        roles = data.loaded.texts_of(data.loaded.files[table])
        if roles:
            lengths = " + ".join(f"strlen({quoted(role)})" for role in roles)
            blocks = f"SELECT sum({lengths}) AS n FROM sorted_{table} GROUP BY rowid // {ROWS_TO_WEIGH}"
            (found,) = one_row(data.con, f"SELECT coalesce(max(n), 0) FROM ({blocks})")
            longest.append(float(found) / ROWS_TO_WEIGH)
    return sum(longest)


class _Labels(NamedTuple):
    """Labels to group users by: a table `labels` of the users' ids and, for each grouping, the code of the label."""

    names: tuple[str, ...]  # of the groupings
    texts: tuple[Array, ...]  # of each grouping, by code: integers or texts
    users: Mapping[str, str]  # role -> type in SQL
    con: DuckDBPyConnection | None

    @classmethod
    def make(
        cls, con: DuckDBPyConnection, files: Sequence[File], names: tuple[str, ...], users: Mapping[str, str]
    ) -> _Labels:
        """Find the one label of each user in the columns of some files; "(none)" where a user has none."""
        if not names:
            return cls((), (), users, con)
        ids = ", ".join(f"CAST({quoted(role)} AS {type_}) AS {quoted(role)}" for role, type_ in users.items())
        listed = ", ".join(map(quoted, users))
        parts = []
        for file in files:
            roles = [f"by{nth}" if f"by{nth}" in file.names else None for nth in range(len(names))]
            columns = ", ".join(
                f"{'NULL' if role is None else label_sql(file, role)} AS by{nth}" for nth, role in enumerate(roles)
            )
            if file.table != "seen":
                parts.append(f"SELECT {ids}, {columns} FROM {quoted(file.table)}")
        ends = ", ".join(f"min(by{nth}) AS low{nth}, max(by{nth}) AS high{nth}" for nth in range(len(names)))
        rows = " UNION ALL ".join(parts)
        run(con, f"CREATE TABLE ends AS SELECT {listed}, {ends} FROM ({rows}) GROUP BY {listed}")
        texts = []
        for nth in range(len(names)):
            _check_one_label(con, nth, [file for file in files if f"by{nth}" in file.names], list(users))
            label = f"coalesce(low{nth}, {text_sql(NO_LABEL)})"
            run(
                con,
                f"CREATE TABLE texts{nth} AS SELECT label, row_number() OVER (ORDER BY label) - 1 AS code "
                f"FROM (SELECT DISTINCT {label} AS label FROM ends)",
            )
            spelled = [row[0] for row in con.execute(f"SELECT label FROM texts{nth} ORDER BY code").fetchall()]
            texts.append(as_labels(spelled) if labels_are_texts(con, files, f"by{nth}") else _typed(spelled))
        codes = ", ".join(f"texts{nth}.code AS by{nth}" for nth in range(len(names)))
        joins = " ".join(
            f"JOIN texts{nth} ON texts{nth}.label = coalesce(low{nth}, {text_sql(NO_LABEL)})"
            for nth in range(len(names))
        )
        run(con, f"CREATE TABLE labels AS SELECT {listed}, {codes} FROM ends {joins}")
        return cls(names, tuple(texts), users, con)

    @property
    def columns(self) -> list[str]:
        """The columns that hold codes."""
        return [f"by{nth}" for nth in range(len(self.names))]

    def join(self, select: str, file: File) -> str:
        """Rows of a file `t`, with the codes of their users' labels."""
        if not self.names or file.table == "seen":
            return f"{select} FROM {quoted(file.table)} AS t"
        same = " AND ".join(
            f"labels.{quoted(role)} = CAST(t.{quoted(role)} AS {type_})" for role, type_ in self.users.items()
        )
        codes = ", ".join(f"labels.{column}" for column in self.columns)
        return f"{select}, {codes} FROM {quoted(file.table)} AS t JOIN labels ON {same}"

    def of_users(self) -> dict[str, Array]:
        """The label of each user, users in ascending order."""
        if self.con is None or not self.names:
            return {}
        listed = ", ".join(map(quoted, self.users))
        codes = run(self.con, f"SELECT {', '.join(self.columns)} FROM labels ORDER BY {listed}").fetchnumpy()
        return {
            name: texts[np.asarray(codes[column])]
            for name, texts, column in zip(self.names, self.texts, self.columns, strict=True)
        }


def _check_one_label(con: DuckDBPyConnection, nth: int, files: Sequence[File], users: Sequence[str]) -> None:
    """The lowest label of each user must be the highest too."""
    listed = ", ".join(map(quoted, users))
    (count,) = one_row(con, f"SELECT count(*) FROM ends WHERE low{nth} <> high{nth}")
    if not count:
        return
    *user, low, high = one_row(
        con, f"SELECT {listed}, low{nth}, high{nth} FROM ends WHERE low{nth} <> high{nth} ORDER BY {listed} LIMIT 1"
    )
    who = user[0] if len(user) == 1 else tuple(user)
    raise ColumnError(
        f"{' and '.join(file.at(f'by{nth}') for file in files)}: one value per user is wanted, but user {who!r} has "
        f"{short_text(low)} and {short_text(high)} ({count} such users)",
        "by",
    )


def _typed(texts: list[str]) -> Array:
    """Labels as integers if every one is an integer, else as text."""
    labels = as_labels(texts)
    if labels.dtype == object:  # texts that end in NUL
        return labels
    try:
        integers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return integers if np.array_equal(integers.astype(np.str_), labels) else labels


def _finish(report: Report, users: Mapping[str, str], labels: _Labels) -> Evaluated:
    """The report with groups called what their files call them, and the columns of its users."""
    groups = {} if labels.names else report.groups
    for nth, (name, texts) in enumerate(zip(labels.names, labels.texts, strict=True)):
        by_code = report.groups.get(f"by{nth}", {})  # a report without users has no groups
        spelled = texts.tolist()
        found = {spelled[int(code)]: estimates for code, estimates in by_code.items()}
        if found:
            groups[name] = dict(sorted(found.items()))
    ids = report.user_ids
    if ids is None or not report.has_values:
        return Evaluated(report.with_groups(groups), {}, {})
    columns = [ids] if len(users) == 1 else [as_labels(list(column)) for column in zip(*ids.tolist(), strict=True)]
    of_users = labels.of_users() if labels.names else dict(report.labels)
    report = report.with_groups(groups, of_users)
    return Evaluated(report, dict(zip(users.values(), columns, strict=True)), of_users)


@contextlib.contextmanager
def _named_as_in(files: Mapping[str, File], *, streamed: bool) -> Iterator[None]:
    """Errors name files and columns as they are on disk, and rows from 1."""
    tables = {"recs": "recs", "truth": "truth", "exclude": "seen", "the frame": "log"}

    def name_column(found: re.Match[str]) -> str:
        file = files[tables[found[1]]]
        return file.at(found[2]) if found[2] in file.names else found[0]

    def name_values(found: re.Match[str]) -> str:
        file = files.get("log")
        if file is None:
            return found[0]
        label, score = ("target", "prediction") if "target" in file.names else ("label", "score")
        role = {"scores": score, "sample_weight": "weight"}.get(found[1], label)
        return f"{file.at(role)}: {role}s"

    try:
        yield
    except FastrecError as error:
        message = re.sub(rf"\b({'|'.join(tables)}) column '(\w+)'", name_column, str(error))
        message = re.sub(r"^(labels|truth gains|scores|sample_weight)\b(?= must\b)", name_values, message)
        if streamed:
            message = re.sub(r" (?:at|in) row \d+", "", message)
        else:
            named = re.search(rf"\b({'|'.join(tables)}) column", str(error))
            file = files.get(tables[named[1]] if named else "log")
            message = re.sub(r"\b(?:at|in) row (\d+)", lambda at: f"in {_place(file, int(at[1]))}", message)
        raise type(error)(message) from None


def _place(file: File | None, position: int) -> str:
    return f"row {position + 1}" if file is None else file.source.place(position)
