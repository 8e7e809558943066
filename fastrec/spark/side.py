"""The sides of an evaluation on Spark: columns checked on the driver, rows packed and evaluated in tasks."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrec.checks import with_article
from fastrec.engines.job import Job
from fastrec.engines.packets import pack
from fastrec.engines.side import EngineSide
from fastrec.exceptions import InputTypeError, MissingExtraError
from fastrec.inputs.arrow import Frame, read_ids, read_numbers
from fastrec.inputs.history import HistoryCounts
from fastrec.report.report import Report
from fastrec.runtime.extras import require
from fastrec.runtime.installed import installing
from fastrec.runtime.memory import keep_freed_memory, keep_modules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


__all__ = [
    "FrameSide",
    "collect",
    "column_of",
    "count_history",
    "pack_sides",
    "read_column",
    "running_python",
    "start_task",
    "states_of",
    "values_of_users",
]


Array = np.ndarray[Any, Any]
Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
Work = Callable[[Job, Iterator[Batch]], Iterator[Batch]]  # of a task, on its partition
MIN_BUCKETS = 256  # enough for partitions of similar size
BUCKETS_PER_PARTITION = 4
DEFAULT_PARTITIONS = 200  # of Spark, where its setting is no number, as in Databricks
PACKETS = "side string, bucket int, schema binary, rows binary"
STATES = "state binary, error string, message string"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)  # as Spark writes it
_lock = threading.Lock()
_unlimited: weakref.WeakKeyDictionary[Any, tuple[int, str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class FrameSide(EngineSide):
    """A Spark data frame, and an Arrow table of its needed columns without rows."""

    engine: ClassVar[str] = "Spark"

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

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        names: list[str] = self.frame.columns
        return names

    def having(self, names: Iterable[Any]) -> FrameSide:
        """Return the side with the needed columns: the named ones that exist once."""
        return replace(self, empty=self.frame.select(*map(column_of, self.once(names))).limit(0).toArrow())

    def holds_numbers(self, name: str) -> bool:
        """Return whether any column holds numbers, or lists of them, by its type."""
        from pyspark.sql.types import NumericType

        kind = self.frame.schema[name].dataType
        return isinstance(getattr(kind, "elementType", kind), NumericType)

    def selected(self) -> DataFrame:
        """Return the data frame of the needed columns."""
        return self.frame.select(*map(column_of, self.empty.column_names))


def start_task() -> None:
    """Prepare the Python process of a task, in which Spark runs many, and collects garbage after each."""
    keep_code_on_this_node()
    keep_freed_memory()
    keep_modules()


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


def collect(value: Any) -> Any:
    """Return the table of items on the driver, from a Spark data frame or any other form."""
    return value.toArrow() if hasattr(value, "mapInArrow") else value


def count_history(side: FrameSide, user: str, item: str) -> HistoryCounts:
    """Return the users and rows of each item of a history: the driver gets one row per item."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    frame, names = side.frame, (column_of(user).alias("user"), column_of(item))
    is_list = isinstance(frame.schema[item].dataType, ArrayType)
    rows = frame.select(names[0], (functions.explode(names[1]) if is_list else names[1]).alias("item"))
    counted = rows.groupBy("item").agg(
        functions.count_distinct("user").alias("users"), functions.count(functions.lit(1)).alias("rows")
    )
    found, n_users = counted.toArrow(), rows.select(functions.count_distinct("user")).head()[0]
    users, counts = (found.column(name).to_numpy().astype(np.int64) for name in ("users", "rows"))
    where = f"history column {item!r}"
    return HistoryCounts(read_ids(found.column("item"), where), users, counts, int(n_users), int(counts.sum()))


def pack_sides(sides: Mapping[str, FrameSide], job: Job, n_partitions: int | None) -> DataFrame:
    """Return packets of all sides, those of a bucket next to each other in one partition."""
    session = next(iter(sides.values())).frame.sparkSession
    usual = str(session.conf.get("spark.sql.shuffle.partitions"))
    number = n_partitions or (int(usual) if usual.isdecimal() else DEFAULT_PARTITIONS)
    n_buckets = max(MIN_BUCKETS, BUCKETS_PER_PARTITION * number)
    parts = [side.selected().mapInArrow(_packer(side.name, job.keys, n_buckets), PACKETS) for side in sides.values()]
    packets = functools.reduce(lambda packets, part: packets.union(part), parts)
    # without a given number, Spark joins small partitions
    given = () if n_partitions is None else (n_partitions,)
    return packets.repartition(*given, "bucket").sortWithinPartitions("bucket")


def _packer(side: str, keys: tuple[str, ...], n_buckets: int) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that packs a side."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        start_task()
        return pack(batches, side, keys, n_buckets)

    return run


@contextlib.contextmanager
def running_python(session: Any, *, long: bool = True) -> Iterator[None]:
    """Run Python on workers, with batches by rows if lists are `long`; what they lack is an error of one line."""
    try:
        with batches_by_rows(session) if long else contextlib.nullcontext():
            yield
    except Exception as error:
        lacking = re.search(r"ModuleNotFoundError: No module named '([^']+)'", str(error))
        if lacking is None:
            raise
        raise MissingExtraError(
            f"the Python of Spark's workers has no {lacking[1]}: on every node run {installing('spark')} and "
            "add the modules of your own metrics (PYSPARK_PYTHON names the Python), or ship both with --archives"
        ) from None


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


def states_of(rows: DataFrame, job: Job) -> list[Any]:
    """Let tasks evaluate all partitions, and return the rows that they make: states or errors."""
    from pyarrow import types

    long = not any(types.is_nested(kind) for table in job.empty.values() for kind in table.schema.types)
    with running_python(rows.sparkSession, long=long):
        states: list[Any] = rows.mapInArrow(_in_task(job, Job.states), STATES).collect()
    return states


def _in_task(job: Job, work: Work) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that does the work of a job in a Spark task, on the CPUs of the task."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        from pyspark import TaskContext

        start_task()
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
