"""Evaluates files: whole where they fit in memory, else sorted by user on disk and streamed, with the same bits.

A file is long: one row per user and item. DuckDB reads and checks it; what comes out are Arrow tables, which are
evaluated as data frames are.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.api import Evaluator, ScoreEvaluator, usual_of_rows
from fastrec.control_groups import control_groups
from fastrec.endings import temporary_folder
from fastrec.exceptions import (
    FastrecError,
    FastrecWarning,
    InputError,
    InputTypeError,
    check_path,
    check_progress,
    check_text,
    listed,
    require,
)
from fastrec.formats import Source, find_files, open_source, recognise, text_sql, unchanged
from fastrec.inputs.arrow import read_numbers
from fastrec.inputs.frames import NO_LABEL
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.order import are_disordered, hint_of_order, hint_of_sides, likely_orders
from fastrec.launcher import resolve_threads
from fastrec.mismatch import explain_mismatch
from fastrec.parquet import find_plain, read_plain
from fastrec.queries import interruptible, run
from fastrec.registry import nearest
from fastrec.report import Report
from fastrec.streams import batches_of_users
from fastrec.tables import (
    ColumnError,
    Columns,
    File,
    ScoreColumns,
    check_groupings,
    estimate_bytes,
    joint_kind,
    label_sql,
    load,
    number_sql,
    one_row,
    open_database,
    quoted,
    short_text,
)

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
Progress = Callable[[int, int], Any]
Watch = Callable[[str, int, int], Any]  # told the stage, and the rows that are done and all rows of it
COPIES = 4  # of the columns that are in memory at once when files are evaluated whole
SHARE_OF_DATABASE = 0.6  # of the memory, while sorted rows are streamed
LEAST_OF_DATABASE = 100_000_000  # bytes without which DuckDB cannot sort
MERGED_BYTES = 2_000_000  # that merging needs for each sorted run, found by trying
BYTES_PER_ROW = 256  # that evaluating a row of a batch takes
EVALUATING = "evaluating"  # the stage
LEAST_MEMORY = 64_000_000
ROWS_TO_ASK = 100_000  # whether a column that nobody named contradicts their order
LEAST_BATCH, LARGEST_BATCH = 1 << 16, 1 << 21


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
        return max(int(SHARE_OF_DATABASE * self.limit()), LEAST_OF_DATABASE)

    def sorting_threads(self, n_bytes: int) -> int:
        """Threads that can sort so much: each makes runs of its share of the memory, and merges all runs."""
        most = int(self.of_database() / math.sqrt(MERGED_BYTES * max(n_bytes, 1)))
        return max(1, min(resolve_threads(self.n_threads), most))

    def batch_rows(self) -> int:
        """Rows of one side to evaluate at once."""
        wanted = int((1 - SHARE_OF_DATABASE) * self.limit()) // BYTES_PER_ROW
        return min(max(wanted, LEAST_BATCH), LARGEST_BATCH)


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
    if isinstance(size, bool) or n_bytes < LEAST_MEMORY:
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
    by: str | Sequence[str] | None = None,
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
    by : name of the column, or several, to group users by; in any of the files, one value per user
    users : path of a file with columns of users: ``user_id`` and those that ``by`` names
    exclude : path of seen items (user, item), which are taken out of the lists
    input_format : the format of all files: ``"parquet"``, ``"csv"``, ``"jsonl"``, ``"trec"``; or ``"auto"``, of each by
        how it begins
    memory : bytes, or a text such as ``"4GB"``; by default half of what there is
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
    groupings = _names(by, "by") or ()
    keys = _names(user, "user")
    _check_given(check_text, item=item, rank=rank, score=score, gain=gain, label=label, sample_weight=sample_weight)
    _check_given(check_path, truth=truth, users=users, exclude=exclude, temp_directory=temp_directory)
    check_path("recs", recs)
    if temp_directory is not None and not os.path.isdir(temp_directory):
        raise InputError(f"temp_directory must be a folder, found {os.fspath(temp_directory)!r}")
    paths = {name: path for name, path in (("users", users), ("seen", exclude)) if path is not None}
    if truth is None:
        _refuse_given("a log, without truth", rank=rank, gain=gain, exclude=exclude)
        scorer = ScoreEvaluator(metrics, k=k, n_threads=n_threads, **options)
        log_columns = ScoreColumns(
            label=label or "label",
            score=score or "score",
            ratings=scorer.needs_targets,
            users=keys,
            item=item,
            weight=sample_weight,
            by=groupings,
        )
        files = {"log": recs, **paths}

        def make_scorer(has_users: bool) -> ScoreEvaluator:  # noqa: FBT001 - called by position
            if metrics is not None or options.get("like") is not None:
                return scorer
            usual = usual_of_rows(k, has_users=has_users, weighted=sample_weight is not None)
            return ScoreEvaluator(**usual, n_threads=n_threads, **options)

        return evaluate_log(make_scorer, files, log_columns, resources, watch, input_format=input_format).report
    _refuse_given("lists, with truth", label=label, sample_weight=sample_weight)
    if keys is not None and len(keys) != 1:
        raise InputError(f"user must be the name of one column of lists, found {user!r}")
    columns = Columns(keys[0] if keys else "user_id", item or "item_id", rank, score, gain, groupings)
    evaluator = Evaluator(metrics, k=k, n_threads=n_threads, **options)
    files = {"recs": recs, "truth": truth, **paths}
    found = evaluate_lists(evaluator, files, columns, resources, watch, input_format=input_format)
    for hint in found.hints:
        warnings.warn(hint, FastrecWarning, stacklevel=2)
    return found.report


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
    hints: tuple[str, ...] = ()  # why ids do not match, where none does
    curves: Any = None  # what was made of labels, scores and weights, see `evaluate_log`


class _Data(NamedTuple):
    """Checked tables, and how to read their rows."""

    con: DuckDBPyConnection
    selects: dict[str, str]  # table -> SQL of its rows, columns named by role
    joined: bool  # whether these rows come out of a join, which keeps no order
    rows: dict[str, int]  # table -> how many
    batch_rows: int  # 0 to read all at once
    memory: int  # bytes of a database on disk
    watch: Watch

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.rows.values())

    def progress(self) -> Progress | None:
        """What is to be told of the users of a batch."""
        return None if self.batch_rows else _begin(self.watch, self.n_rows)


def evaluate_lists(
    evaluator: Evaluator,
    paths: Mapping[str, Path],
    columns: Columns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
) -> Evaluated:
    """Lists, truth and, if given, seen items and labels of users from the files "recs", "truth", "seen", "users"."""
    whole = _read_whole(paths, columns, resources, input_format)
    if whole is not None:
        progress = _begin(watch, sum(map(len, whole.values())))
        if _went_well(lambda: _update_lists(evaluator, whole, (), progress)):
            found = _finish(evaluator.result(), {"user": columns.user}, _Labels((), (), {}, None))
            ordered = _is_ordered(whole["recs"].column_names)
            hints = () if ordered else _hints_of_order_in(paths, columns, resources, input_format)
            return found._replace(
                hints=(*_hints_of_files(found.report, paths, columns, resources, input_format), *hints)
            )
    with _database(list(paths.values()), columns, resources, input_format) as (con, batch_rows):
        files = {table: load(con, table, os.fspath(path), columns, input_format) for table, path in paths.items()}
        if not files["truth"].rows:
            raise InputError(f"{files['truth'].path}: no rows: there is nothing to compare the lists with")
        check_groupings(files, columns.by)
        ids = _types_of_ids(con, files, ("user", "item"))
        labels = _Labels.make(con, list(files.values()), columns.by, {"user": ids["user"]})
        sides = {table: file for table, file in files.items() if table != "users"}
        selects = {table: _select(con, file, ("rank", "score", "gain"), ids, labels) for table, file in sides.items()}
        rows = {table: file.rows for table, file in sides.items()}
        data = _Data(con, selects, bool(labels.names), rows, batch_rows, resources.of_database(), watch)
        for batch in _batches(data, ("user",)):
            with _named_as_in(files, streamed=batch_rows > 0):
                _update_lists(evaluator, batch, labels.columns, data.progress())
        found = _finish(evaluator.result(), {"user": columns.user}, labels)
        hints = _hints(con, found.report, files)
        if not _is_ordered(files["recs"].names):
            hints = (*hints, *_hints_of_order(con, files["recs"].source, files["truth"].source, columns))
        return found._replace(hints=hints)


def _is_ordered(roles: Iterable[str]) -> bool:
    """Whether a column orders the lists."""
    return bool({"rank", "score"} & set(roles))


def _update_lists(
    evaluator: Evaluator, tables: Mapping[str, Any], by: Sequence[str], progress: Progress | None
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


def _read_whole(
    paths: Mapping[str, Path], columns: Columns | ScoreColumns, resources: Resources, input_format: str
) -> dict[str, Any] | None:
    """Tables that fit in memory and need no database; None if one is needed."""
    sources = {table: find_files(os.fspath(path)) for table, path in paths.items()}
    with unchanged(file for files in sources.values() for file in files.paths):
        found = find_plain(sources, columns, input_format)
        if found is None or COPIES * sum(plain.n_bytes for plain in found.values()) > resources.limit():
            return None
        n_threads = resolve_threads(resources.n_threads)
        with loading_kernels(sum(plain.rows for plain in found.values())):
            tables = {table: read_plain(plain, n_threads) for table, plain in found.items()}
    return None if any(rows is None for rows in tables.values()) else tables


def _unmatched(report: Report) -> str | None:
    """The role of ids of which none of the truth is in the lists."""
    if report.data["truth_users_with_recs"] == 0:
        return "user"
    return "item" if report.data["truth_items_in_recs"] == 0 else None


def _hints(con: DuckDBPyConnection, report: Report, files: Mapping[str, File]) -> tuple[str, ...]:
    """Why no user, or no item, of the truth is in the lists."""
    role = _unmatched(report)
    if role is None or not files["recs"].rows:
        return ()
    return (explain_mismatch(con, role, files["recs"], files["truth"]),)


def _hints_of_files(
    report: Report, paths: Mapping[str, Path], columns: Columns, resources: Resources, input_format: str
) -> tuple[str, ...]:
    """The same for files that no database has read yet."""
    if _unmatched(report) is None:
        return ()
    with open_database(resources.n_threads) as con:
        files = {table: load(con, table, os.fspath(paths[table]), columns, input_format) for table in ("recs", "truth")}
        return _hints(con, report, files)


def _hints_of_order(con: DuckDBPyConnection, recs: Source, truth: Source, columns: Columns) -> Iterator[str]:
    """What columns say that nobody named, of lists that are in the order of their rows."""
    if columns.gain is None:
        yield from hint_of_sides(recs.columns, truth.columns)
    for role, name in likely_orders(recs.columns, {columns.user, columns.item, *columns.by}):
        if _is_disordered(con, recs, columns.user, role, name):
            yield hint_of_order(role, name)


def _is_disordered(con: DuckDBPyConnection, recs: Source, user: str, role: str, name: str) -> bool:
    """Whether a column tells another order than the rows, of which the first ones are asked."""
    import duckdb

    who, value = recs.columns[user][0], recs.columns[name][0]
    query = (
        f"SELECT CAST({who} AS VARCHAR) AS who, TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE) AS value "
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


def _hints_of_order_in(
    paths: Mapping[str, Path], columns: Columns, resources: Resources, input_format: str
) -> tuple[str, ...]:
    """The same of Parquet files that no database has read; their names of columns mostly say that there is nothing."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    sides = {table: find_files(os.fspath(paths[table])) for table in ("recs", "truth")}
    recs, truth = (parquet.read_schema(files.paths[0]).names for files in sides.values())
    if not hint_of_sides(recs, truth) and not any(likely_orders(recs, (columns.user, columns.item))):
        return ()
    with open_database(resources.n_threads) as con:
        opened = {
            table: open_source(con, files, recognise(files, columns.names, input_format), columns.usual, columns.names)
            for table, files in sides.items()
        }
        return tuple(_hints_of_order(con, opened["recs"], opened["truth"], columns))


def evaluate_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    paths: Mapping[str, Path],
    columns: ScoreColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    curves: Callable[[Array, Array, Array | None], Any] | None = None,
    *,
    input_format: str = "auto",
) -> Evaluated:
    """Labels and scores (or targets and predictions) from the file "log"; labels of users also from the file "users".

    `make_evaluator` is told whether there are users; `curves` is given labels, scores and weights of all rows.
    """
    label, score = columns.values
    whole = _read_whole(paths, columns, resources, input_format)
    if whole is not None:
        rows = whole["log"]
        evaluator = make_evaluator(bool(_users_of(rows.column_names)))
        progress = _begin(watch, len(rows))
        if _went_well(lambda: _update_log(evaluator, rows, columns, (), progress)):
            return _finish_rows(evaluator.result(), rows, columns, curves)
    with _database(list(paths.values()), columns, resources, input_format) as (con, batch_rows):
        files = {table: load(con, table, os.fspath(path), columns, input_format) for table, path in paths.items()}
        file = files["log"]
        if not file.rows:
            raise InputError(f"{file.path}: no rows: there is nothing to evaluate")
        check_groupings(files, columns.by)
        users = _users_of(file.names)
        ids = _types_of_ids(con, files, (*users, "item") if "item" in file.names else users)
        labels = _Labels.make(con, list(files.values()), columns.by, {role: ids[role] for role in users})
        select = _select(con, file, (label, score, "weight"), ids, labels)
        evaluator = make_evaluator(bool(users))
        sizes, memory = {"log": file.rows}, resources.of_database()
        data = _Data(con, {"log": select}, bool(labels.names), sizes, batch_rows, memory, watch)
        for batch in _batches(data, users):
            with _named_as_in({"log": file}, streamed=batch_rows > 0):
                _update_log(evaluator, batch["log"], columns, labels.columns, data.progress())
        found = _finish(evaluator.result(), {role: file.names[role] for role in users}, labels)
        if curves is None:
            return found
        picked = ", ".join(_numbers(con, file, (label, score, "weight")))
        cursor = con.cursor()  # an older DuckDB closes one that nobody holds
        rows = cursor.sql(f"SELECT {picked} FROM log AS t").fetchnumpy()
        with _named_as_in({"log": file}, streamed=False):
            drawn = curves(np.asarray(rows[label]), np.asarray(rows[score]), rows.get("weight"))
        return found._replace(curves=drawn)


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


def _went_well(update: Callable[[], Any]) -> bool:
    """Whether rows were added. What is wrong with them is said by DuckDB's way, which knows files and rows."""
    try:
        update()
    except FastrecError:
        return False
    return True


def _users_of(roles: Iterable[str]) -> tuple[str, ...]:
    """The roles of the columns that make users."""
    return tuple(role for role in roles if role.startswith("user"))


def _update_log(
    evaluator: ScoreEvaluator, rows: Any, columns: ScoreColumns, by: Sequence[str], progress: Progress | None
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


def _numbers(con: DuckDBPyConnection, file: File, roles: Sequence[str]) -> list[str]:
    """SQL of the columns of numbers that a file has."""
    return [f"{number_sql(con, file, role)} AS {quoted(role)}" for role in roles if role in file.names]


@contextlib.contextmanager
def _database(
    paths: Sequence[Path], columns: Columns | ScoreColumns, resources: Resources, input_format: str
) -> Iterator[tuple[DuckDBPyConnection, int]]:
    """A database in memory, or one on disk that is gone afterwards; and the rows to evaluate at once, 0 for all."""
    n_bytes = _estimate(paths, columns, input_format)
    if COPIES * n_bytes <= resources.limit():
        with open_database(resources.n_threads) as con:
            yield con, 0
        return
    with (
        temporary_folder(resources.temp_directory) as folder,
        open_database(resources.sorting_threads(n_bytes), folder, resources.of_database()) as con,
    ):
        yield con, resources.batch_rows()


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


def _select(
    con: DuckDBPyConnection, file: File, numbers: Sequence[str], ids: Mapping[str, str], labels: _Labels
) -> str:
    """The rows of a file, columns named by role, and `place`, where they stand in it."""
    picked = [f"CAST(t.{quoted(role)} AS {type_}) AS {quoted(role)}" for role, type_ in ids.items()]
    return labels.join(f"SELECT {', '.join([*picked, *_numbers(con, file, numbers)])}, t.rowid AS place", file)


def _batches(data: _Data, users: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Tables of rows by name, together holding each user whole."""
    if not data.batch_rows:
        cursor, order = data.con.cursor(), " ORDER BY place" if data.joined else ""
        yield {
            table: interruptible(cursor, cursor.sql(f"SELECT * EXCLUDE (place) FROM ({select}){order}").to_arrow_table)
            for table, select in data.selects.items()
        }
        return
    _sort(data, users)
    cursors = {table: data.con.cursor() for table in data.selects}  # an older DuckDB closes one that nobody holds
    streams = {table: cursor.sql(f"SELECT * FROM sorted_{table}") for table, cursor in cursors.items()}
    # DuckDB gave the method its present name in version 2
    read = "to_arrow_reader" if hasattr(next(iter(streams.values())), "to_arrow_reader") else "fetch_arrow_reader"
    readers = {table: getattr(stream, read)(data.batch_rows) for table, stream in streams.items()}
    done = 0
    data.watch(EVALUATING, done, data.n_rows)
    for batch in batches_of_users(readers, users):
        yield batch
        done += sum(len(rows) for rows in batch.values())
        data.watch(EVALUATING, done, data.n_rows)


def _sort(data: _Data, users: tuple[str, ...]) -> None:
    """Tables of sorted rows, one after the other: a sort takes all the memory there is."""
    order, done = ", ".join(quoted(role) for role in (*users, "place")), 0
    for table, select in data.selects.items():

        def tick(share: float, before: int = done, rows: int = data.rows[table]) -> None:
            data.watch("sorting", before + int(share * rows), data.n_rows)

        tick(0)
        query = f"CREATE TABLE sorted_{table} AS SELECT * EXCLUDE (place) FROM ({select}) ORDER BY {order}"
        run(data.con, query, tick)
        done += data.rows[table]
    # read in order, they are not worth keeping in memory, which evaluating needs
    data.con.execute(f"SET memory_limit = '{data.memory // 2}B'")


class _Labels(NamedTuple):
    """Labels to group users by: a table `labels` of the users' ids and, for each grouping, the code of the label."""

    names: tuple[str, ...]  # of the groupings
    texts: tuple[list[str], ...]  # of each grouping, by code
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
            texts.append([row[0] for row in con.execute(f"SELECT label FROM texts{nth} ORDER BY code").fetchall()])
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
            name: _typed(texts)[np.asarray(codes[column])]
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


def _typed(texts: Sequence[str]) -> Array:
    """Labels as integers if every one is an integer, else as text."""
    labels = np.array(texts, dtype=np.str_)
    try:
        integers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return integers if np.array_equal(integers.astype(np.str_), labels) else labels


def _finish(report: Report, users: Mapping[str, str], labels: _Labels) -> Evaluated:
    """The report with groups called what their files call them, and the columns of its users."""
    groups = {}
    for nth, (name, texts) in enumerate(zip(labels.names, labels.texts, strict=True)):
        by_code = report.groups[f"by{nth}"]
        spelled = _typed(texts).tolist()
        found = {spelled[int(code)]: estimates for code, estimates in by_code.items()}
        groups[name] = dict(sorted(found.items()))
    ids = report.user_ids
    if ids is None or not report.has_values:
        return Evaluated(report.with_groups(groups), {}, {})
    columns = [ids] if len(users) == 1 else [np.array(column) for column in zip(*ids.tolist(), strict=True)]
    of_users = labels.of_users()
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
