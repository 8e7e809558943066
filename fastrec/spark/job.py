"""Evaluates Spark data frames where they lie: the same values as on one machine, to the last bit, no row collected.

Rows are packed into blocks by user, and blocks travel to where all rows of their users meet
(`fastrec.spark.blocks`). There
each partition becomes one row, the state of an evaluator; the driver merges these. Sums in states are exact, so neither
the number of partitions nor a task that runs twice changes anything.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec import exceptions
from fastrec._version import __version__
from fastrec.checks import listed_in_order, whole_number
from fastrec.evaluation.evaluators import Duplicates, NoRecs, NoTruth, OneClass, Ties
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError, MetricError
from fastrec.inputs.arrow import Frame, read_numbers
from fastrec.inputs.frames import Columns, extra_column
from fastrec.inputs.hints import LeftOpen, hints_of_columns
from fastrec.inputs.users import NO_LABEL
from fastrec.metrics.declaration import MinGain
from fastrec.report.report import Report, record
from fastrec.runtime.extras import require
from fastrec.spark.blocks import BATCH_BYTES, Block, batches_of_buckets, pack, tables_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fastrec.evaluation.state import RunKey
    from fastrec.scored.histogram import BoundedAuc
    from fastrec.scored.runs import ScoreRuns

__all__ = ["SparkReport", "bounded_auc", "evaluate", "evaluate_scores"]

Array = np.ndarray[Any, Any]
Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
LEAST_BUCKETS = 256  # enough that partitions are about equal
BUCKETS_PER_PARTITION = 4
MOST_PARTITIONS = 1 << 20
BLOCKS = "side string, bucket int, schema binary, rows binary"
STATES = "state binary, error string, message string"
BINNED = ("bins", "negatives", "positives")
BINS = ", ".join([*(f"{name} bigint" for name in BINNED), "error string", "message string"])
RUN_TYPES = {"scores": np.float64, "positives": np.int64, "negatives": np.int64}
RUNS = "view int, scores binary, positives binary, negatives binary"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)  # as Spark writes it

_lock = threading.Lock()
_unlimited: weakref.WeakKeyDictionary[Any, tuple[int, str]] = weakref.WeakKeyDictionary()


class SparkReport(Report):
    """A report whose values of users, if they were asked for, are a Spark data frame."""

    def __init__(self, report: Report, values: DataFrame | None) -> None:
        super().__init__(**report._parts() | {"per_user": None, "user_ids": None, "labels": None})  # noqa: SLF001 - of its base
        self._frame = values

    @property
    def per_user(self) -> Any:
        """A Spark data frame: the columns of users, and per metric one of float64, null where `Report` has NaN.

        It is computed when it is used, like any other: `cache()` what is evaluated if that is dear to compute.
        """
        return super().per_user if self._frame is None else self._frame


def evaluate(
    recs: DataFrame,
    truth: DataFrame,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    user_weight: str | None = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: DataFrame | None = None,
    user: str | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    by: str | Sequence[str] | None = None,
    like: str | None = None,
    ties: Ties | None = None,
    no_truth: NoTruth | None = None,
    no_recs: NoRecs | None = None,
    duplicates: Duplicates | None = None,
    n_threads: int | None = None,
    n_partitions: int | None = None,
) -> SparkReport:
    """Evaluate recommended lists against held-out truth, both Spark data frames: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth, exclude : data frames with one row per user and item, or one row per user with columns of lists
        Users and items are integers or texts. Rows of Spark have no order: long lists need a column of ranks or of
        scores.
    metrics, k, min_gain, n_items, like, ties, no_truth, no_recs, duplicates : as in `fastrec.evaluate`
        ``ties='input'`` is for columns of lists only.
    user, item, rank, score, gain, by, user_weight : names of columns, as in `fastrec.evaluate`
        Where the truth has a column of numbers that is called like a gain (``rating``) and is not used, a warning names
        it; other than in `fastrec.evaluate` it goes by the type alone, as reading the values would be a job more.
    per_user : whether `SparkReport.per_user` is to be a data frame of the values of users
    n_threads : threads of each task; by default as many as ``spark.task.cpus`` says
    n_partitions : tasks that evaluate; by default ``spark.sql.shuffle.partitions``, of which Spark joins small ones. A
        task holds a part of its partition in memory, but all rows of a user.

    Returns
    -------
    SparkReport
        With the bits of `fastrec.evaluate` on the same rows, whatever the partitions. The one sum that depends on the
        order of rows is that of fractional gains of items with equal scores: these are added in the order of the items.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `fastrec.evaluate`, also for what a task found; without the numbers of rows, which have no order.
    MissingExtraError
        Without PySpark and PyArrow, which the extra ``spark`` brings.

    Examples
    --------
    >>> report = fastrec.spark.evaluate(recs, truth, ["ndcg@10", "recall@20"], by="plan")  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    columns = Columns(user=user, item=item, rank=rank, score=score, gain=gain, by=by)
    item_column = _or_usual(item, "item_id")
    frames = {"recs": recs, "truth": truth} | ({} if exclude is None else {"exclude": exclude})
    sides = {name: _Side.open(name, frame) for name, frame in frames.items()}
    job = _Job(
        make=Evaluator,
        options={
            "metrics": _listed(metrics, "metrics"),
            "k": _listed(k, "k"),
            "min_gain": min_gain,
            "n_items": n_items,
            "like": like,
            "ties": ties,
            "no_truth": no_truth,
            "no_recs": no_recs,
            "duplicates": duplicates,
        },
        arguments={**columns._asdict(), "user_weight": user_weight},
        keys=(_or_usual(user, "user_id"),),
        n_threads=n_threads,
        n_partitions=_check_partitions(n_partitions),
    )
    sides = {name: side.having(_columns_of_lists(side, columns, user_weight)) for name, side in sides.items()}
    evaluator = job.check(sides, per_user=per_user)
    _check_same_types(sides, {"user": job.keys[0], "item": item_column})
    ordered_by, _ = extra_column(sides["recs"].as_frame(), columns)
    if sides["recs"].is_long(item_column):
        if not ordered_by:
            raise InputError("recs must have a column of ranks or scores, as rows of Spark have no order")
        _check_ties(evaluator)
    has_gains = extra_column(sides["truth"].as_frame(), columns)[1] is not None
    if ordered_by == "score" and has_gains and evaluator.settings["ties"] == "expected":
        job = job._replace(order=(item_column,))
    numbered = _numbered_labels(sides, columns)
    sides = {name: side.with_texts(numbered) for name, side in sides.items()}
    job = job._replace(empty={name: side.empty for name, side in sides.items()})
    packed = _co_locate(sides, job)
    _merge_states(packed, job, evaluator)
    report = evaluator.result()
    report = report.with_groups({name: _spell(own, numbered=name in numbered) for name, own in report.groups.items()})
    left = LeftOpen(order=False, gain=not has_gains and evaluator.settings["min_gain"] != "any", sides=False)
    record(report, _hints(recs, truth, (*job.keys, item_column, *columns.groupings(), user_weight), left))
    return SparkReport(report, _values_of_users(packed, job, report, sides["recs"]) if per_user else None)


def evaluate_scores(
    log: DataFrame,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    sample_weight: str | None = None,
    per_user: bool = False,
    user_weight: str | None = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    label: str | None = None,
    score: str | None = None,
    by: str | Sequence[str] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    like: str | None = None,
    ties: Ties | None = None,
    no_truth: NoTruth | None = None,
    one_class: OneClass = "drop",
    n_threads: int | None = None,
    n_partitions: int | None = None,
) -> SparkReport:
    """Evaluate a Spark data frame of scored, labelled rows: `fastrec.evaluate_scores` on a cluster.

    Metrics of the order of all rows (auc, average_precision, ks) are exact: Spark counts the positive and negative rows
    of each distinct score, and the driver merges these counts, 24 bytes per distinct score. Where that is too much,
    leave these metrics out and see `bounded_auc`.

    Parameters
    ----------
    log : a data frame with one row per label, or one row per user with columns of lists
    metrics, k, min_gain, n_items, like, ties, no_truth, one_class : as in `fastrec.evaluate_scores`
        ``ties='input'`` is for columns of lists only. With weights there are no metrics of the order of all rows.
    user, item, label, score, by, sample_weight, user_weight : names of columns, as in `fastrec.evaluate_scores`
    per_user, n_threads, n_partitions : as in `evaluate`

    Returns
    -------
    SparkReport
        With the bits of `fastrec.evaluate_scores`, whatever the partitions, for counts, pairs and lists. Sums of
        numbers, as in log_loss, depend in the last bit on the order in which a user's rows are added: here it is the
        order of (score, label, weight); rows without users are added exactly, rounded once.

    Raises
    ------
    InputError, InputTypeError, MetricError, MissingExtraError
        As `evaluate`.

    Examples
    --------
    >>> report = fastrec.spark.evaluate_scores(log, ["auc", "gauc"], label="clicked")  # doctest: +SKIP
    >>> report["auc"]  # doctest: +SKIP
    0.7421
    """
    columns = Columns(user=user, item=item, label=label, score=score, by=by)
    side = _Side.open("log", log)
    keys = _user_columns(side, columns)
    wanted = {"metrics": _listed(metrics, "metrics"), "k": _listed(k, "k")}
    if metrics is None and like is None:
        wanted = usual_of_rows(wanted["k"], has_users=bool(keys), weighted=sample_weight is not None)
    options = {
        **wanted,
        "min_gain": min_gain,
        "n_items": n_items,
        "like": like,
        "ties": ties,
        "no_truth": no_truth,
        "one_class": one_class,
    }
    arguments = {"user": user, "item": item, "label": label, "score": score, "by": by}
    weights = {"sample_weight": sample_weight, "user_weight": user_weight}
    values = _or_usual(score, "score"), _or_usual(label, "label")
    job = _Job(
        ScoreEvaluator,
        options,
        {**arguments, **weights},
        keys,
        n_threads,
        _check_partitions(n_partitions),
    )
    needs_items = ScoreEvaluator(**options).settings["ties"] in ("id_asc", "id_desc")
    others = [_or_usual(item, "item_id")] if needs_items or item is not None else []
    side = side.having([*values, *job.keys, *columns.groupings(), *others, *weights.values()])
    evaluator = job.check({"log": side}, per_user=per_user)
    assert isinstance(evaluator, ScoreEvaluator)
    if any(name is not None for name in weights.values()) and evaluator.ordered:
        raise MetricError(
            f"{', '.join(evaluator.ordered_calls)}: with weights the order of all rows cannot be had from counts; "
            "leave out the weights or these metrics, or bring the rows to one machine: "
            "fastrec.evaluate_scores(log.toArrow())"
        )
    if side.is_long(values[0]):
        _check_ties(evaluator)
        job = job._replace(order=(*values, *([] if sample_weight is None else [sample_weight])))
    job = job._replace(empty={"log": side.empty})
    sides = {"log": side}
    packed = _co_locate(sides, job) if job.keys else side.frame
    _merge_states(packed, job, evaluator)
    if evaluator.ordered:
        evaluator.add_order(_order_of_rows(side, values, columns.groupings(), evaluator.ordered))
    report = evaluator.result()
    return SparkReport(report, _values_of_users(packed, job, report, side) if per_user else None)


def bounded_auc(log: DataFrame, *, label: str = "label", score: str = "score", bits: int = 22) -> BoundedAuc:
    """AUC of all rows of a Spark data frame and a bound on its error: `fastrec.bounded_auc` on a cluster.

    Rows are counted by the leading bits of their scores, so nothing grows with their number, and nothing is sorted.

    Parameters
    ----------
    log : a data frame with one row per label
    label, score : names of its columns of labels, 0 or 1, and of scores
    bits : as in `fastrec.bounded_auc`

    Returns
    -------
    BoundedAuc
        ``auc`` and ``bound``, with the bits of `fastrec.bounded_auc`; both NaN for one class.

    Raises
    ------
    InputError, InputTypeError, MissingExtraError
        As `evaluate`.

    Examples
    --------
    >>> fastrec.spark.bounded_auc(log, label="clicked")  # doctest: +SKIP
    BoundedAuc(auc=0.7421, bound=2.1e-05)
    """
    side = _Side.open("log", log).having([label, score])

    from pyspark.sql import functions

    from fastrec.scored.histogram import ScoreHistogram

    whole = ScoreHistogram(bits)
    for name in (label, score):
        _read_column(side.all_columns(), name)

    def count(batches: Iterator[Batch]) -> Iterator[Batch]:
        return _count_bins(batches, (label, score), bits)

    sums = [functions.sum(name).alias(name) for name in BINNED[1:]]
    counted = side.selected().mapInArrow(count, BINS).groupBy("bins", "error", "message").agg(*sums)
    with _batches_by_rows(log.sparkSession):
        found = counted.toArrow()
    errors = found.filter(found.column("error").is_valid())
    if errors.num_rows:
        raise getattr(exceptions, errors.column("error")[0].as_py())(errors.column("message")[0].as_py())
    whole.add_bins(*(found.column(name).to_numpy() for name in BINNED))
    return whole.estimate()


class _Side(NamedTuple):
    """A data frame, and its columns without rows as Arrow has them."""

    name: str
    frame: DataFrame
    empty: Table = None

    @classmethod
    def open(cls, name: str, frame: Any) -> _Side:
        """A side that is a data frame of Spark."""
        require("pyarrow", "spark", what="fastrec.spark")
        require("pyspark", "spark", what="fastrec.spark")
        if not hasattr(frame, "mapInArrow"):
            raise InputTypeError(
                f"{name} must be a Spark data frame, found a {type(frame).__name__}, which fastrec.evaluate may take"
            )
        return cls(name, frame)

    def as_frame(self) -> Frame:
        """Its names, for what reads no more."""
        return Frame(self.name, self.frame.columns, _never)

    def having(self, names: Iterable[Any]) -> _Side:
        """Those of the named columns that there are."""
        wanted, columns = list(names), self.frame.columns
        there = [name for name in columns if name in wanted and columns.count(name) == 1]
        return self._replace(empty=self.frame.select(*map(_column, there)).limit(0).toArrow())

    def all_columns(self) -> Table:
        """No rows of all columns, those that are not needed without a type: so errors can name them."""
        import pyarrow as pa

        columns = self.frame.columns
        needed = set(self.empty.column_names)
        return pa.table([self.empty.column(name) if name in needed else pa.nulls(0) for name in columns], names=columns)

    def selected(self) -> DataFrame:
        """The needed columns."""
        return self.frame.select(*map(_column, self.empty.column_names))

    def kind(self, name: str) -> Any:
        """The Arrow type of a needed column, or of what its lists hold."""
        kind = self.empty.schema.field(name).type
        return kind if self.is_long(name) else kind.value_type

    def is_long(self, name: str) -> bool:
        """Whether a needed column has one value per row, and no list."""
        from pyarrow import types

        kind = self.empty.schema.field(name).type
        return not (types.is_list(kind) or types.is_large_list(kind))

    def with_texts(self, names: Iterable[str]) -> _Side:
        """Some of its columns turned into texts."""
        there = [name for name in names if name in self.empty.column_names]
        if not there:
            return self
        frame = self.frame.withColumns({name: _column(name).cast("string") for name in there})
        return self._replace(frame=frame).having(self.empty.column_names)


def _never(name: str) -> Any:
    raise AssertionError(name)


class _Job(NamedTuple):
    """What a task is told: how to make an evaluator, and what to give it."""

    make: type[Evaluator | ScoreEvaluator]
    options: dict[str, Any]
    arguments: dict[str, Any]  # of `update`
    keys: tuple[str, ...]  # the columns that make a user
    n_threads: int | None
    n_partitions: int | None
    order: tuple[str, ...] = ()  # the columns that long rows are put in order by
    empty: Mapping[str, Table] = {}
    version: str = __version__

    def check(self, sides: Mapping[str, _Side], *, per_user: bool) -> Evaluator | ScoreEvaluator:
        """The evaluator of the driver, after all has been said that is wrong with arguments and columns."""
        rows = {name: side.all_columns() for name, side in sides.items()}
        if per_user:
            self.update(self.make(**self.options, per_user=True), rows)
        evaluator = self.make(**self.options, n_threads=self.n_threads).as_part()
        self.update(evaluator, rows)
        return evaluator

    def start(self, *, per_user: bool = False) -> Evaluator | ScoreEvaluator:
        """An evaluator within a task."""
        from pyspark import TaskContext

        if self.version != __version__:
            raise InputError(f"the driver has fastrec {self.version}, but an executor has {__version__}: install one")
        task = TaskContext.get()
        n_threads = self.n_threads or (task.cpus() if task is not None else 1)
        return self.make(**self.options, per_user=per_user, n_threads=n_threads)

    def update(self, evaluator: Any, tables: Mapping[str, Table]) -> None:
        """Give tables of whole users to an evaluator."""
        given = dict(tables)
        seen = {"exclude": given.pop("exclude")} if "exclude" in given else {}
        names = {name: value for name, value in self.arguments.items() if value is not None}
        evaluator.update(*given.values(), **seen, **names)

    def tables(self, batches: Iterable[Batch]) -> Iterator[dict[str, Table]]:
        """The rows of a partition, users whole."""
        if not self.keys:
            yield from ({"log": table} for table in tables_of(batches, BATCH_BYTES))
            return
        for tables in batches_of_buckets(_read_blocks(batches), self.empty):
            yield {name: _in_order(table, self.order) for name, table in tables.items()}

    def states(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """One row: what an evaluator has seen in a partition, or the error that it met."""
        _keep_code_on_this_node()
        seen = False
        try:
            evaluator = self.start().as_part()
            for tables in self.tables(batches):
                self.update(evaluator, tables)
                seen = True
        except FastrecError as error:
            yield _one_row(state=None, error=type(error).__name__, message=_without_rows(str(error)))
            return
        if seen:
            yield _one_row(state=evaluator.to_bytes(), error=None, message=None)

    def values(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The values of the users of a partition."""
        import pyarrow as pa

        _keep_code_on_this_node()
        for tables in self.tables(batches):
            evaluator = self.start(per_user=True)
            self.update(evaluator, tables)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FastrecWarning)  # the driver has warned
                report = evaluator.result()
            ids = report.user_ids
            assert ids is not None
            columns = [ids] if len(self.keys) == 1 else list(zip(*ids.tolist(), strict=True))
            columns += [pa.array(values, from_pandas=True) for values in report.per_user.values()]
            yield from pa.table(list(map(pa.array, columns)), [*self.keys, *report.per_user]).to_batches()


def _read_blocks(batches: Iterable[Batch]) -> Iterator[Block]:
    """Blocks of a partition, read one by one: together they may be all there is room for."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield Block(*(batch.column(nth)[row].as_py() for nth in range(len(Block._fields))))


def _one_row(**values: Any) -> Batch:
    import pyarrow as pa

    kinds = {"state": pa.binary(), "error": pa.string(), "message": pa.string()}
    return pa.record_batch({name: pa.array([values[name]], kind) for name, kind in kinds.items()})


def _in_order(table: Table, names: Sequence[str]) -> Table:
    """Long rows in the order of some columns."""
    from pyarrow import types

    keys = [(name, "ascending") for name in names if name in table.column_names]
    lists = any(types.is_nested(table.schema.field(name).type) for name, _ in keys)
    return table if lists or not keys else table.sort_by(keys)


def _without_rows(message: str) -> str:
    """An error without the numbers of rows, which mean nothing to who wrote it: rows of Spark have no order."""
    message = re.sub(r"found null in row \d+ \(in \d+ of \d+ rows\)", "found null", message)
    message = re.sub(r"null in the list of row \d+", "null in a list", message)
    message = re.sub(r" stands in rows \d+ and \d+", " stands in several rows", message)
    message = re.sub(r", but row \d+ has", ", but a row has", message)
    return re.sub(r",? (?:at|in) (?:row|position) \d+|, row \d+ from the user's first", "", message)


def _keep_code_on_this_node() -> None:
    """Compiled code is kept in a folder that Spark made on this node for this application, unless one was named.

    A home folder may be missing, or shared by nodes with different processors.
    """
    folders = os.environ.get("SPARK_LOCAL_DIRS", "")
    if folders and not {"FASTREC_CACHE_DIR", "NUMBA_CACHE_DIR"} & set(os.environ):
        os.environ["FASTREC_CACHE_DIR"] = folders.split(",")[0]


def _column(name: str) -> Column:
    """A column by its whole name."""
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def _hints(recs: DataFrame, truth: DataFrame, used: Collection[Any], left: LeftOpen) -> Iterator[str]:
    """What columns say that nobody named, by their names and types: a look at values would be a job more."""
    return hints_of_columns(
        recs.columns, truth.columns, used, left, lambda *_: False, lambda name: _is_number(truth, name) or None
    )


def _is_number(frame: DataFrame, name: str) -> bool:
    """Whether a column holds numbers, or lists of them."""
    from pyspark.sql.types import NumericType

    kind = frame.schema[name].dataType
    return isinstance(getattr(kind, "elementType", kind), NumericType)


def _listed(value: Any, name: str) -> Any:
    """An argument that may be an iterator, to be read by many."""
    return listed_in_order(value, name) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _or_usual(name: str | None, usual: str) -> str:
    """The column that an argument names, the usual one without it. A name may be empty."""
    return usual if name is None else name


def _columns_of_lists(side: _Side, columns: Columns, user_weight: str | None) -> list[str]:
    """The columns that a side of lists may need."""
    names = [_or_usual(columns.user, "user_id"), _or_usual(columns.item, "item_id")]
    if side.name == "exclude":
        return names
    extra = extra_column(side.as_frame(), columns)[1]
    return names + [name for name in (extra, *columns.groupings(), user_weight) if name is not None]


def _user_columns(side: _Side, columns: Columns) -> tuple[str, ...]:
    """The columns that make a user of a log; none if rows have no users."""
    if columns.user is None:
        return ("user_id",) if "user_id" in side.frame.columns or columns.by is not None else ()
    return (columns.user,) if isinstance(columns.user, str) else tuple(columns.user)


def _check_same_types(sides: Mapping[str, _Side], roles: Mapping[str, str]) -> None:
    """Ids that cannot match."""
    for role, name in roles.items():
        kinds = {side.name: _kind_of_ids(side.kind(name)) for side in sides.values()}
        if len(set(kinds.values())) > 1 and all(kinds.values()):
            found = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputTypeError(f"{role} ids must be of one type on all sides, found {found}")


def _kind_of_ids(kind: Any) -> str:
    """What errors call the ids of an Arrow type; "" for a type that is none of ids."""
    from pyarrow import types

    if types.is_integer(kind):
        return "integers"
    return "texts" if types.is_string(kind) or types.is_large_string(kind) else ""


def _check_ties(evaluator: Evaluator | ScoreEvaluator) -> None:
    if evaluator.settings["ties"] == "input":
        raise InputError("ties='input' needs columns of lists, as rows of Spark have no order")


def _numbered_labels(sides: Mapping[str, _Side], columns: Columns) -> set[str]:
    """The columns to group by that hold integers: a part that lacks some users' labels would make texts of them."""
    from pyarrow import types

    found = {}
    for name in columns.groupings():
        kinds = [side.empty.schema.field(name).type for side in sides.values() if name in side.empty.column_names]
        found[name] = all(map(types.is_integer, kinds))
    return {name for name, numbered in found.items() if numbered}


def _spell(groups: Mapping[Any, Any], *, numbered: bool) -> dict[Any, Any]:
    """Groups with labels that are integers if they were and every user has one."""
    if not numbered or NO_LABEL in groups:
        return dict(groups)
    return dict(sorted((int(label), estimates) for label, estimates in groups.items()))


def _check_partitions(n_partitions: int | None) -> int | None:
    """Partitions to evaluate in, if that is not left to Spark."""
    number = whole_number(n_partitions)
    if n_partitions is not None and number is None:
        raise InputTypeError(f"n_partitions must be a whole number, found {n_partitions!r}")
    if number is not None and not 1 <= number <= MOST_PARTITIONS:
        raise InputError(f"n_partitions must be from 1 to {MOST_PARTITIONS}, found {n_partitions}")
    return number


def _co_locate(sides: Mapping[str, _Side], job: _Job) -> DataFrame:
    """Blocks of all sides, a bucket whole in one partition and in one piece there."""
    frame = next(iter(sides.values())).frame
    n_partitions = job.n_partitions or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    n_buckets = max(LEAST_BUCKETS, BUCKETS_PER_PARTITION * n_partitions)
    parts = [side.selected().mapInArrow(_packer(side.name, job.keys, n_buckets), BLOCKS) for side in sides.values()]
    blocks = functools.reduce(lambda blocks, part: blocks.union(part), parts)
    # without a number Spark joins small partitions
    given = () if job.n_partitions is None else (job.n_partitions,)
    return blocks.repartition(*given, "bucket").sortWithinPartitions("bucket")


def _packer(side: str, users: Sequence[str], n_buckets: int) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """The function that packs a side."""
    return lambda batches: pack(batches, side, users, n_buckets)


@contextlib.contextmanager
def _batches_by_rows(session: Any) -> Iterator[None]:
    """Spark fills the batches that it hands to Python by their number of rows alone.

    To hold them to a number of bytes as well, it adds up the buffers of all columns after every row, which costs more
    than all else of handing over rows of a few numbers.
    """
    conf = session.conf
    if int(conf.get(BATCH_ROWS)) <= 0:  # nothing else would end a batch
        yield
        return
    with _lock:
        users, before = _unlimited.get(session) or (0, conf.get(BATCH_LIMIT))
        _unlimited[session] = users + 1, before
        conf.set(BATCH_LIMIT, NO_LIMIT)
    try:
        yield
    finally:
        _limit_batches(session)


def _limit_batches(session: Any) -> None:
    """The limit as it was, once the last evaluation in a session that went without it has ended."""
    with _lock:
        users, before = _unlimited.pop(session)
        if users > 1:
            _unlimited[session] = users - 1, before
            return
        session.conf.unset(BATCH_LIMIT)
        if session.conf.get(BATCH_LIMIT) != before:
            session.conf.set(BATCH_LIMIT, before)


def _merge_states(rows: DataFrame, job: _Job, evaluator: Any) -> None:
    """Let tasks evaluate all partitions, and add what they have seen."""
    from pyarrow import types

    long = not any(types.is_nested(kind) for table in job.empty.values() for kind in table.schema.types)
    with _batches_by_rows(rows.sparkSession) if long else contextlib.nullcontext():
        states = rows.mapInArrow(job.states, STATES).collect()
    for found in states:
        if found.error is not None:
            raise getattr(exceptions, found.error)(found.message)
        evaluator.merge(job.make.from_bytes(bytes(found.state)))


def _values_of_users(rows: DataFrame, job: _Job, report: Report, side: _Side) -> DataFrame:
    """The values of users, not computed yet."""
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    kinds = [LongType() if _kind_of_ids(side.kind(key)) == "integers" else StringType() for key in job.keys]
    fields = [StructField(key, kind) for key, kind in zip(job.keys, kinds, strict=True)]
    schema = StructType(fields + [StructField(name, DoubleType()) for name in report])
    return rows.mapInArrow(job.values, schema)


def _read_column(table: Table, name: str) -> Array:
    """A column of numbers of a log."""
    column = Frame("log", table.column_names, table.column).read(name)
    return read_numbers(column, f"log column {name!r}")


def _count_bins(batches: Iterable[Batch], values: tuple[str, str], bits: int) -> Iterator[Batch]:
    """The bins of a histogram of the scores of a partition, or the error that was met."""
    import pyarrow as pa

    from fastrec.inputs.columns import check_classes, check_floats
    from fastrec.scored.histogram import ScoreHistogram

    _keep_code_on_this_node()
    seen = ScoreHistogram(bits)
    try:
        for table in tables_of(batches, BATCH_BYTES):
            labels, scores = (_read_column(table, name) for name in values)
            seen.add(check_classes(labels), check_floats(scores, "scores"))
    except FastrecError as error:
        empty = dict.fromkeys(BINNED, pa.nulls(1, pa.int64()))
        yield pa.record_batch(empty | {"error": [type(error).__name__], "message": [_without_rows(str(error))]})
        return
    bins = {name: pa.array(values) for name, values in seen.pack().items()}
    texts = dict.fromkeys(("error", "message"), pa.nulls(len(bins["bins"]), pa.string()))
    yield pa.record_batch(bins | texts)


def _order_of_rows(
    side: _Side, values: tuple[str, str], groupings: Sequence[str], views: Mapping[int, float]
) -> Iterator[tuple[RunKey, ScoreRuns]]:
    """The positive and negative rows of each distinct score, for all rows and for the groups of each grouping."""
    from fastrec.scored.runs import ScoreRuns

    yield from (((view, None), ScoreRuns()) for view in views)
    for nth, grouping in enumerate(groupings or [None]):
        with _batches_by_rows(side.frame.sparkSession):
            counted = _count_scores(side, values, grouping, views).collect()
        for found in counted:
            columns = {name: np.frombuffer(found[name], kind) for name, kind in RUN_TYPES.items()}
            runs = ScoreRuns.unpack(columns, weighted=False)
            if grouping is not None:
                yield (found.view, (grouping, found.label)), runs
            if nth == 0:
                yield (found.view, None), runs


def _count_scores(side: _Side, values: tuple[str, str], grouping: str | None, views: Mapping[int, float]) -> DataFrame:
    """Sorted runs of the scores of each partition, a row for each view and group."""
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    own = functions.lit(None).cast("string") if grouping is None else _column(grouping)
    columns = [own.alias("label"), *map(_column, values)]
    if not side.is_long(values[0]):
        columns = [columns[0], functions.inline(functions.arrays_zip(*columns[1:]))]
    rows = side.frame.select(*columns).toDF("label", "score", "value")
    rows = rows.select("label", col("score").cast("double"), col("value").cast("double"))
    counts = [
        functions.count_if((col("value") > 0) & (col("value") >= least)).alias(f"positives{view}")
        for view, least in views.items()
    ]
    counted = rows.groupBy("label", "score").agg(functions.count("*").alias("rows"), *counts)
    label = counted.schema["label"].dataType.simpleString()
    return counted.mapInArrow(lambda batches: _sorted_runs(batches, list(views)), f"label {label}, {RUNS}")


def _sorted_runs(batches: Iterable[Batch], views: Sequence[int]) -> Iterator[Batch]:
    """Counts of scores, in the order of the scores, a row for each view and label."""
    import pyarrow as pa

    for table in tables_of(batches, BATCH_BYTES):
        ordered = table.sort_by([("label", "ascending"), ("score", "ascending")]).combine_chunks()
        labels = ordered.column("label").combine_chunks()
        codes = labels.dictionary_encode().indices.fill_null(0).to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
            part = ordered.slice(start, end - start)
            rows, scores = part.column("rows").to_numpy(), part.column("score").to_numpy()
            for view in views:
                positives = part.column(f"positives{view}").to_numpy()
                found = {"scores": scores, "positives": positives, "negatives": rows - positives}
                yield pa.record_batch(
                    {
                        "label": labels.slice(start, 1),
                        "view": pa.array([view], pa.int32()),
                        **{name: pa.array([found[name].astype(kind).tobytes()]) for name, kind in RUN_TYPES.items()},
                    }
                )
