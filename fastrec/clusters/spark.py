"""Spark data frames as sides: rows packed and evaluated in tasks, and what tasks and sessions need for that."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fastrec.clusters.job import Job, Work
from fastrec.clusters.packets import Batch, Table, pack
from fastrec.clusters.side import EngineSide
from fastrec.exceptions import MissingExtraError
from fastrec.report.report import Report
from fastrec.report.values import parts_of
from fastrec.runtime.installed import installing
from fastrec.runtime.memory import keep_freed_memory, keep_modules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MIN_BUCKETS = 256  # enough for partitions of similar size
BUCKETS_PER_PARTITION = 4
DEFAULT_PARTITIONS = 200  # of Spark, where its setting is no number, as in Databricks
PACKETS = "side string, bucket int, rows binary"
STATES = "state binary, error string, message string"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)  # as Spark writes it
_lock = threading.Lock()
_unlimited: weakref.WeakKeyDictionary[Any, tuple[int, str]] = weakref.WeakKeyDictionary()


class FrameSide(EngineSide):
    """A Spark data frame."""

    engine: ClassVar[str] = "Spark"
    form: ClassVar[str] = "Spark data frame"
    module: ClassVar[str] = "pyspark"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a data frame of the engine."""
        return hasattr(frame, "mapInArrow")

    @staticmethod
    def to_memory(frame: Any) -> Any:
        """Return all rows of a data frame."""
        return frame.toArrow()

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.frame.columns)

    def first_rows(self, names: list[str]) -> Table:
        """Return some columns as a table with their types."""
        return self.frame.select(*map(column_of, names)).limit(0).toArrow()

    @classmethod
    def run(cls, sides: Sequence[FrameSide], job: Job, work: Work, n_partitions: int | None) -> list[Any]:
        """Return all rows that tasks make of the packets of sides."""
        from pyarrow import types

        rows = _rows_of_users(sides, job, n_partitions)
        long = not any(types.is_nested(kind) for table in job.empty.values() for kind in table.schema.types)
        with running_python(rows.sparkSession, long=long):
            return list(rows.mapInArrow(_in_task(job, work), STATES).collect())


def selected(side: EngineSide) -> DataFrame:
    """Return the data frame of the needed columns."""
    return side.frame.select(*map(column_of, side.empty.column_names))


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


def _rows_of_users(sides: Sequence[EngineSide], job: Job, n_partitions: int | None) -> DataFrame:
    """Return packets of all sides, those of a bucket next to each other in one partition; rows if they have no users.

    Nothing is computed yet.
    """
    if not job.keys:
        return selected(sides[0])
    session = sides[0].frame.sparkSession
    usual = str(session.conf.get("spark.sql.shuffle.partitions"))
    number = n_partitions or (int(usual) if usual.isdecimal() else DEFAULT_PARTITIONS)
    n_buckets = max(MIN_BUCKETS, BUCKETS_PER_PARTITION * number)
    parts = [selected(side).mapInArrow(_packer(side.name, job.keys, n_buckets), PACKETS) for side in sides]
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
        with _lock:
            users, before = _unlimited.pop(session)
            if users > 1:
                _unlimited[session] = users - 1, before
            else:
                conf.unset(BATCH_LIMIT)
                if conf.get(BATCH_LIMIT) != before:
                    conf.set(BATCH_LIMIT, before)


def _in_task(job: Job, work: Work) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that does the work of a job in a Spark task, on the CPUs of the task."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        from pyspark import TaskContext

        start_task()
        task = TaskContext.get()
        return work(job._replace(n_threads=job.n_threads or (task.cpus() if task is not None else 1)), batches)

    return run


class SparkReport(Report):
    """A report with a Spark data frame for the values of users, if `per_user` was set."""

    def __init__(self, report: Report, values: DataFrame | None) -> None:
        super().__init__(**parts_of(report) | {"per_user": None, "user_ids": None, "labels": None})
        self._frame = values

    @property
    def per_user(self) -> Any:
        """A Spark data frame with the columns of users and a float64 column per metric, null where `Report` has NaN.

        Spark computes it at its use, like any other: `cache()` the evaluated data frames if they are costly to compute.
        """
        return super().per_user if self._frame is None else self._frame


def report_of(report: Report, sides: Sequence[EngineSide], job: Job, given: Mapping[str, Any]) -> SparkReport:
    """Return a report with the data frame of the values of users, not computed yet, if the call asks for it."""
    if not given["per_user"]:
        return SparkReport(report, None)
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    kinds = [LongType() if sides[0].kind_of_ids(key) == "integers" else StringType() for key in job.keys]
    fields = [StructField(key, kind) for key, kind in zip(job.keys, kinds, strict=True)]
    schema = StructType(fields + [StructField(name, DoubleType()) for name in report])
    rows = _rows_of_users(sides, job, given["n_partitions"])
    return SparkReport(report, rows.mapInArrow(_in_task(job, Job.values), schema))
