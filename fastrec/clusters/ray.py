"""Evaluation of Ray datasets on their cluster: tasks of Ray pack users, and other tasks evaluate them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from fastrec.arguments import options_of
from fastrec.clusters.calls import LIST_OPTIONS, SIDE_OPTIONS, TASK_OPTIONS, frames
from fastrec.clusters.job import Job, Work, work_on
from fastrec.clusters.lists import evaluate_lists
from fastrec.clusters.packets import BUCKETS_PER_PARTITION, Table, pack_rows
from fastrec.clusters.side import EngineSide
from fastrec.exceptions import FastrecError, InputError, InputTypeError
from fastrec.report.report import Report

FIRST_ROWS = 1000  # that tell types: a few may hold only nulls
IN_ARROW: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}  # whole blocks
TASK_BYTES = 1 << 28  # of rows packed by a task: fewer give more objects for Ray to move, about 1 ms each


class RaySide(EngineSide):
    """A Ray dataset."""

    engine: ClassVar[str] = "Ray"
    form: ClassVar[str] = "Ray dataset"
    module: ClassVar[str] = "ray.data"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a data frame of the engine."""
        return hasattr(frame, "to_arrow_refs")

    @staticmethod
    def to_memory(frame: Any) -> Any:
        """Return all rows of a data frame."""
        import pyarrow as pa
        import ray

        blocks = frame.map_batches(_lists_of_tensors, **IN_ARROW).to_arrow_refs()
        return pa.concat_tables(ray.get(blocks), promote_options="permissive")

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self._kinds())

    def first_rows(self, names: list[str]) -> Table:
        """Return some columns as a table with their types."""
        import pyarrow as pa

        kinds = [(name, kind) for name, kind in self._kinds().items() if name in names]
        if all(isinstance(kind, pa.DataType) for _, kind in kinds):
            return _lists_of_tensors(pa.schema(kinds).empty_table())
        return self.to_memory(self.frame.select_columns(names).limit(FIRST_ROWS))  # only values tell types of pandas

    def _kinds(self) -> dict[str, Any]:
        """Return the types of all columns: those of Arrow, or of pandas in its blocks."""
        import pyarrow as pa

        try:
            schema = self.frame.schema()  # None before there are rows
        except pa.ArrowTypeError as error:
            raise InputTypeError(f"{self.name} has blocks with different types of a column: {error}") from None
        return {} if schema is None else dict(zip(schema.names, schema.types, strict=True))

    def blocks(self) -> list[list[Any]]:
        """Run the dataset, and return its blocks, small ones together."""
        import ray

        names = self.empty.column_names
        try:
            rows = self.frame.select_columns(names).map_batches(_lists_of_tensors, **IN_ARROW).materialize()
        except ray.exceptions.RayError:  # after which it is worth the time to look at all blocks again
            for own in self.frame.map_batches(_columns_lacking, fn_args=(names,), **IN_ARROW).take(1):
                raise InputError(f"{self.name}: a block lacks the column {own['name']!r}") from None
            raise
        blocks = rows.to_arrow_refs()
        size = max(1, len(blocks) * TASK_BYTES // max(1, rows.size_bytes()))
        return [blocks[at : at + size] for at in range(0, len(blocks), size)]

    @classmethod
    def run(cls, sides: Sequence[RaySide], job: Job, work: Work, n_partitions: int | None) -> Iterable[Any]:
        """Return all rows that tasks make of the packets of sides."""
        import ray

        blocks = [(side, own) for side in sides for own in side.blocks()]
        number = n_partitions or max(Counter(side.name for side, _ in blocks).values(), default=1)
        job = job._replace(n_threads=job.n_threads or 1)
        n_cpus = max(node["Resources"].get("CPU", 1) for node in ray.nodes())  # Ray waits forever for more
        pack = ray.remote(_pack_parts).options(num_returns=number)
        task = ray.remote(work_on).options(num_cpus=min(job.n_threads, n_cpus))
        packed = [pack.remote(side.name, side.empty, job.keys, number, *own) for side, own in blocks]
        del blocks  # Ray may forget rows once they are packed
        partitions = zip(*packed, strict=True) if number > 1 else [packed]  # Ray returns one alone as itself
        shared = ray.put(job)
        made = [task.remote(shared, work, *packets) for packets in partitions]
        try:
            return itertools.chain.from_iterable(ray.get(made))
        except ray.exceptions.RayTaskError as error:
            raise _error_within(error) from None


def _lists_of_tensors(rows: Table) -> Table:
    """Return rows with lists in place of vectors, which some engines keep as tensors of one axis."""
    import pyarrow as pa

    for at, own in enumerate(rows.schema):
        if getattr(own.type, "ndim", None) == 1 or len(getattr(own.type, "shape", ())) == 1:
            stored = rows.column(at).combine_chunks().storage
            if pa.types.is_struct(stored.type):  # of vectors of several lengths
                stored = stored.field("data")
            rows = rows.set_column(at, own.name, stored.cast(pa.list_(stored.type.value_type)))
    return rows


def _columns_lacking(rows: Table, names: list[str]) -> Table:
    """Return those of some columns that rows lack, a row each; none without rows, which may have lost all."""
    import pyarrow as pa

    lacking = [name for name in names if rows.num_rows and name not in rows.column_names]
    return pa.table({"name": pa.array(lacking, pa.string())})


def _pack_parts(side: str, empty: Table, users: Sequence[str], n_partitions: int, *tables: Table) -> Any:
    """Return the packets of rows for each partition; of one alone as themselves, as a task returns one result."""
    having = (table for table in tables if table.num_rows)  # an empty one may have lost its columns
    packets = pack_rows(having, side, empty, users, BUCKETS_PER_PARTITION * n_partitions)
    partitions = packets.column("bucket").to_numpy() % n_partitions
    parts = [packets.filter(partitions == nth) for nth in range(n_partitions)]
    return parts if n_partitions > 1 else parts[0]


def _error_within(error: Any) -> BaseException:
    """Return the error of fastrec that Ray has wrapped, maybe several times; the error itself without one."""
    cause = error
    while (inner := getattr(cause, "cause", None)) is not None:
        cause = inner
    return cause if isinstance(cause, FastrecError) else error


@options_of(*LIST_OPTIONS, (frames, f"{SIDE_OPTIONS} {TASK_OPTIONS}"))
def evaluate(recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **given: Any) -> Report:
    """Evaluate recommended lists in Ray datasets against held-out truth: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth : Ray datasets with one row per user and item, or one row per user with columns of lists or vectors
        Rows lose their order: lists with one row per item need a column of ranks or scores, and ``ties='input'`` needs
        columns of lists. Metrics that read no truth need none.
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    Report
        Has the bits of `fastrec.evaluate` on the same rows, however they are split. Where the order of rows matters, as
        in sums of fractional gains of items with equal scores, rows are in the order of the items.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`. Messages have no row numbers, as the rows have no order.
    MissingExtraError
        If Ray or PyArrow is not installed; the extra ``ray`` installs both.

    Examples
    --------
    >>> report = fastrec.ray.evaluate(
    ...     recs, truth, ["ndcg@10", "recall@20"], by="plan"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    return evaluate_lists(RaySide, (recs, truth), metrics, given)[0]
