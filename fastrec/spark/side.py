"""The sides of an evaluation on Spark: columns checked on the driver, rows packed and evaluated in tasks."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.checks import listed_in_order, whole_number, with_article
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.arrow import Frame, read_ids, read_numbers
from fastrec.inputs.frames import Columns, extra_column
from fastrec.inputs.hints import LeftOpen, hints_of_columns
from fastrec.inputs.history import HistoryCounts
from fastrec.inputs.ids import kind_of_ids
from fastrec.inputs.items import ItemTable, read_items
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import NO_LABEL
from fastrec.report.report import Report
from fastrec.runtime.extras import require
from fastrec.spark.job import Job
from fastrec.spark.packets import pack

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


__all__ = [
    "FrameSide",
    "batches_by_rows",
    "check_partitions",
    "check_same_types",
    "check_ties",
    "co_locate",
    "collect_items",
    "column_of",
    "columns_of_lists",
    "count_history",
    "hints_of_side",
    "keep_code_on_this_node",
    "listed_names",
    "merge_states",
    "numbered_labels",
    "or_usual",
    "read_column",
    "spelled",
    "user_columns",
    "values_of_users",
]


Array = np.ndarray[Any, Any]
Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
MIN_BUCKETS = 256  # enough for partitions of similar size
BUCKETS_PER_PARTITION = 4
MAX_PARTITIONS = 1 << 20
PACKETS = "side string, bucket int, schema binary, rows binary"
STATES = "state binary, error string, message string"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)  # as Spark writes it
_lock = threading.Lock()
_unlimited: weakref.WeakKeyDictionary[Any, tuple[int, str]] = weakref.WeakKeyDictionary()


class FrameSide(NamedTuple):
    """A Spark data frame, and an Arrow table of its needed columns without rows."""

    name: str
    frame: DataFrame
    empty: Table = None

    @classmethod
    def open(cls, name: str, frame: Any) -> FrameSide:
        """Return the side of a Spark data frame; raise for anything else."""
        require("pyarrow", "spark", what="fastrec.spark")
        require("pyspark", "spark", what="fastrec.spark")
        if not hasattr(frame, "mapInArrow"):
            raise InputTypeError(
                f"{name} must be a Spark data frame, found {with_article(type(frame).__name__)}; "
                "fastrec.evaluate takes other data"
            )
        return cls(name, frame)

    def as_frame(self) -> Frame:
        """Return a `Frame` of the column names, for code that reads no values."""
        return Frame(self.name, self.frame.columns, _never)

    def having(self, names: Iterable[Any]) -> FrameSide:
        """Return the side with the needed columns: the named ones that exist once."""
        wanted, columns = list(names), self.frame.columns
        there = [name for name in columns if name in wanted and columns.count(name) == 1]
        return self._replace(empty=self.frame.select(*map(column_of, there)).limit(0).toArrow())

    def all_columns(self) -> Table:
        """Return all columns without rows, unneeded ones without a type, so that errors can list their names."""
        import pyarrow as pa

        columns = self.frame.columns
        needed = set(self.empty.column_names)
        return pa.table([self.empty.column(name) if name in needed else pa.nulls(0) for name in columns], names=columns)

    def selected(self) -> DataFrame:
        """Return the data frame of the needed columns."""
        return self.frame.select(*map(column_of, self.empty.column_names))

    def kind_of_ids(self, name: str) -> str:
        """Return how errors name the ids in a needed column, or in its lists; "" for a type that ids cannot have."""
        from pyarrow import types

        kind = self.empty.schema.field(name).type
        kind = kind if self.is_long(name) else kind.value_type
        if types.is_integer(kind):
            return "integers"
        return "strings" if types.is_string(kind) or types.is_large_string(kind) else ""

    def is_long(self, name: str) -> bool:
        """Return whether a needed column has one value per row, not a list."""
        from pyarrow import types

        kind = self.empty.schema.field(name).type
        return not (types.is_list(kind) or types.is_large_list(kind))

    def with_strings(self, names: Iterable[str]) -> FrameSide:
        """Return the side with some columns converted to strings."""
        there = [name for name in names if name in self.empty.column_names]
        if not there:
            return self
        frame = self.frame.withColumns({name: column_of(name).cast("string") for name in there})
        return self._replace(frame=frame).having(self.empty.column_names)


def _never(name: str) -> Any:
    raise AssertionError(name)


def keep_code_on_this_node() -> None:
    """Cache compiled code in Spark's local folder of this node, unless a cache folder is set.

    A home folder may be missing, or shared by nodes with different processors.
    """
    folders = os.environ.get("SPARK_LOCAL_DIRS", "")
    if folders and not {"FASTREC_CACHE_DIR", "NUMBA_CACHE_DIR"} & set(os.environ):
        os.environ["FASTREC_CACHE_DIR"] = folders.split(",")[0]


def column_of(name: str) -> Column:
    """Return a column by its literal name; dots in it do not select fields."""
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def hints_of_side(recs: DataFrame, truth: DataFrame, used: Collection[Any], left: LeftOpen) -> Iterator[str]:
    """Return hints about unused columns, from names and types: reading values would take another Spark job."""
    return hints_of_columns(
        recs.columns, truth.columns, used, left, lambda *_: False, lambda name: _is_number(truth, name) or None
    )


def _is_number(frame: DataFrame, name: str) -> bool:
    """Return whether a column holds numbers, or lists of them."""
    from pyspark.sql.types import NumericType

    kind = frame.schema[name].dataType
    return isinstance(getattr(kind, "elementType", kind), NumericType)


def listed_names(value: Any, name: str) -> Any:
    """Return an argument that may be an iterator as a list, so that several readers get its values."""
    return listed_in_order(value, name) if isinstance(value, Iterable) and not isinstance(value, str) else value


def or_usual(name: str | None, usual: str) -> str:
    """Return the named column, or the usual one for None. A name may be an empty string."""
    return usual if name is None else name


def columns_of_lists(side: FrameSide, columns: Columns, user_weight: str | None) -> list[str]:
    """Return the columns that a side of lists may need."""
    extra = extra_column(side.as_frame(), columns)[1]
    of_users = (*columns.groupings(), user_weight) if SIDES[side.name].has_users else ()
    needed = (or_usual(columns.user, "user_id"), or_usual(columns.item, "item_id"), extra, *of_users)
    return [name for name in needed if name is not None]


def user_columns(side: FrameSide, columns: Columns) -> tuple[str, ...]:
    """Return the columns that make a user of a log; empty if rows have no users."""
    if columns.user is None:
        return ("user_id",) if "user_id" in side.frame.columns or columns.by is not None else ()
    return (columns.user,) if isinstance(columns.user, str) else tuple(columns.user)


def check_same_types(sides: Mapping[str, FrameSide], roles: Mapping[str, str], items: ItemTable | None) -> None:
    """Raise if ids of a role have different types, so that they cannot match."""
    of_table = {} if items is None else {"item": {"items": kind_of_ids(items.ids)}}
    for role, name in roles.items():
        kinds = {side.name: side.kind_of_ids(name) for side in sides.values()} | of_table.get(role, {})
        if len(set(kinds.values())) > 1 and all(kinds.values()):
            found = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputTypeError(f"{role} ids must be of one type on all sides, found {found}")


def collect_items(value: Any, item: str | None) -> ItemTable | None:
    """Return the table of items on the driver, from a Spark data frame or any other form; None without one."""
    if value is None:
        return None
    return read_items(value.toArrow() if hasattr(value, "mapInArrow") else value, item)


def count_history(frame: DataFrame, user: str, item: str) -> HistoryCounts:
    """Return the users and rows of each item of a history: the driver gets one row per item."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    names = column_of(user).alias("user"), column_of(item)
    is_list = isinstance(frame.schema[item].dataType, ArrayType)
    rows = frame.select(names[0], (functions.explode(names[1]) if is_list else names[1]).alias("item"))
    counted = rows.groupBy("item").agg(
        functions.count_distinct("user").alias("users"), functions.count(functions.lit(1)).alias("rows")
    )
    found, n_users = counted.toArrow(), rows.select(functions.count_distinct("user")).head()[0]
    users, counts = (found.column(name).to_numpy().astype(np.int64) for name in ("users", "rows"))
    where = f"history column {item!r}"
    return HistoryCounts(read_ids(found.column("item"), where), users, counts, int(n_users), int(counts.sum()))


def check_ties(evaluator: Evaluator | ScoreEvaluator) -> None:
    """Raise if ties should keep the order of rows, which Spark does not have."""
    if evaluator.settings["ties"] == "input":
        raise InputError("ties='input' needs columns of lists, as Spark rows have no order")


def numbered_labels(sides: Mapping[str, FrameSide], columns: Columns) -> set[str]:
    """Return the columns to group by that hold integers.

    Labels of these are cast to strings first: else a partition in which a user lacks a label would do so by itself.
    """
    from pyarrow import types

    found = {}
    for name in columns.groupings():
        kinds = [side.empty.schema.field(name).type for side in sides.values() if name in side.empty.column_names]
        found[name] = all(map(types.is_integer, kinds))
    return {name for name, numbered in found.items() if numbered}


def spelled(groups: Mapping[Any, Any], *, numbered: bool) -> dict[Any, Any]:
    """Return groups with their integer labels restored, if every user has a label."""
    if not numbered or NO_LABEL in groups:
        return dict(groups)
    return dict(sorted((int(label), estimates) for label, estimates in groups.items()))


def check_partitions(n_partitions: int | None) -> int | None:
    """Return the number of partitions to evaluate in; None leaves it to Spark."""
    number = whole_number(n_partitions)
    if n_partitions is not None and number is None:
        raise InputTypeError(f"n_partitions must be an integer, found {n_partitions!r}")
    if number is not None and not 1 <= number <= MAX_PARTITIONS:
        raise InputError(f"n_partitions must be from 1 to {MAX_PARTITIONS}, found {n_partitions}")
    return number


def co_locate(sides: Mapping[str, FrameSide], job: Job, n_partitions: int | None) -> DataFrame:
    """Return packets of all sides; all packets of a bucket are next to each other in one partition."""
    frame = next(iter(sides.values())).frame
    expected = n_partitions or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    n_buckets = max(MIN_BUCKETS, BUCKETS_PER_PARTITION * expected)
    parts = [side.selected().mapInArrow(_packer(side.name, job.keys, n_buckets), PACKETS) for side in sides.values()]
    packets = functools.reduce(lambda packets, part: packets.union(part), parts)
    # without a given number, Spark joins small partitions
    given = () if n_partitions is None else (n_partitions,)
    return packets.repartition(*given, "bucket").sortWithinPartitions("bucket")


def _packer(side: str, keys: tuple[str, ...], n_buckets: int) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that packs a side."""
    return lambda batches: pack(batches, side, keys, n_buckets)


@contextlib.contextmanager
def batches_by_rows(session: Any) -> Iterator[None]:
    """Make Spark limit its batches for Python by the number of rows only, not by bytes, during the block.

    To limit bytes, Spark adds up the buffers of all columns after every row, which costs more than all the rest of the
    transfer of rows of a few numbers.
    """
    conf = session.conf
    if int(conf.get(BATCH_ROWS)) <= 0:  # then only the limit of bytes ends a batch
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
    """Restore the limit of bytes after the last evaluation in a session that disabled it."""
    with _lock:
        users, before = _unlimited.pop(session)
        if users > 1:
            _unlimited[session] = users - 1, before
            return
        session.conf.unset(BATCH_LIMIT)
        if session.conf.get(BATCH_LIMIT) != before:
            session.conf.set(BATCH_LIMIT, before)


def merge_states(rows: DataFrame, job: Job, evaluator: Any) -> None:
    """Let tasks evaluate all partitions, and merge their states into `evaluator`."""
    from pyarrow import types

    long = not any(types.is_nested(kind) for table in job.empty.values() for kind in table.schema.types)
    with batches_by_rows(rows.sparkSession) if long else contextlib.nullcontext():
        states = rows.mapInArrow(_in_task(job, Job.states), STATES).collect()
    job.merge(states, evaluator)


def _in_task(
    job: Job, work: Callable[[Job, Iterator[Batch]], Iterator[Batch]]
) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that does the work of a job in a Spark task, on the CPUs of the task."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        from pyspark import TaskContext

        keep_code_on_this_node()
        task = TaskContext.get()
        return work(job._replace(n_threads=job.n_threads or (task.cpus() if task is not None else 1)), batches)

    return run


def values_of_users(rows: DataFrame, job: Job, report: Report, side: FrameSide) -> DataFrame:
    """Return the data frame of the values of users, not computed yet."""
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    kinds = [LongType() if side.kind_of_ids(key) == "integers" else StringType() for key in job.keys]
    fields = [StructField(key, kind) for key, kind in zip(job.keys, kinds, strict=True)]
    schema = StructType(fields + [StructField(name, DoubleType()) for name in report])
    return rows.mapInArrow(_in_task(job, Job.values), schema)


def read_column(table: Table, name: str) -> Array:
    """Read a column of numbers of a log."""
    column = Frame("log", table.column_names, table.column).read(name)
    return read_numbers(column, f"log column {name!r}")
