"""Evaluation of Ray datasets on their cluster: tasks of Ray pack users, and other tasks evaluate them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from fastrec.arguments.calls import EngineListOptions
from fastrec.arguments.signature import takes
from fastrec.engines.evaluate import PackedSide, evaluate_lists
from fastrec.engines.job import Job
from fastrec.engines.packets import (
    BUCKETS_PER_PARTITION,
    Work,
    is_number,
    join_rows,
    no_packets,
    pack_rows,
    plain_types,
    work_on,
)
from fastrec.exceptions import FastrecError, InputTypeError
from fastrec.report.report import Report

__all__ = ["evaluate"]

Table = Any  # pyarrow.Table
FIRST_ROWS = 1000  # that tell types: a few may hold only nulls
TASK_BYTES = 1 << 28  # of rows packed by a task: fewer give more objects for Ray to move, about 1 ms each


@takes(EngineListOptions)
def evaluate(
    recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **given: Unpack[EngineListOptions]
) -> Report:
    """Evaluate recommended lists in Ray datasets against held-out truth: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth : Ray datasets with one row per user and item, or one row per user with columns of lists or vectors
        Rows lose their order, as in `fastrec.dask.evaluate`. Metrics that read no truth need none.
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    Report
        Has the bits of `fastrec.evaluate` on the same rows, for any blocks; as in `fastrec.spark.evaluate`.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`, also for faults that a task finds; without row numbers.
    MissingExtraError
        If Ray or PyArrow is not installed; the extra ``ray`` installs both.

    Examples
    --------
    >>> report = fastrec.ray.evaluate(recs, truth, ["ndcg@10", "recall@20"], by="plan")  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    return evaluate_lists((recs, truth), metrics, given, RaySide)


@dataclass(frozen=True, eq=False)
class RaySide(PackedSide):
    """A Ray dataset, and an Arrow table of its needed columns without rows."""

    engine: ClassVar[str] = "Ray"
    form: ClassVar[str] = "Ray dataset"
    module: ClassVar[str] = "ray.data"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a Ray dataset."""
        return hasattr(frame, "to_arrow_refs")

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self._kinds())

    def having(self, names: Iterable[Any]) -> RaySide:
        """Return the side with the needed columns: the named ones that exist once."""
        import pyarrow as pa

        kinds = {name: self._kinds()[name] for name in self.once(names)}
        if all(isinstance(kind, pa.DataType) for kind in kinds.values()):
            first = _with_lists(pa.schema(kinds.items()).empty_table())
        else:  # only values tell types of pandas
            first = _collected(self.frame.select_columns(list(kinds)).limit(FIRST_ROWS))
        return replace(self, empty=plain_types(first.schema).empty_table())

    def holds_numbers(self, name: str) -> bool:
        """Return whether a column, needed or not, holds numbers or lists of numbers, by its type."""
        return is_number(self._kinds()[name])

    def _kinds(self) -> dict[str, Any]:
        """Return the types of all columns, which Ray knows once it has rows."""
        import pyarrow as pa

        try:
            schema = self.frame.schema()
        except pa.ArrowTypeError as error:
            raise InputTypeError(f"{self.name} has blocks with different types of a column: {error}") from None
        return {} if schema is None else dict(zip(schema.names, schema.types, strict=True))

    @staticmethod
    def collect(value: Any) -> Any:
        """Return the table of items in memory, from a Ray dataset or any other form."""
        return _collected(value) if RaySide.is_frame(value) else value

    def blocks(self) -> list[list[Any]]:
        """Run the dataset, and return its blocks, small ones together."""
        rows = _in_arrow(self.frame.select_columns(self.empty.column_names)).materialize()
        blocks = rows.to_arrow_refs()
        size = max(1, len(blocks) * TASK_BYTES // max(1, rows.size_bytes()))
        return [blocks[at : at + size] for at in range(0, len(blocks), size)]

    @classmethod
    def run(cls, sides: Sequence[RaySide], job: Job, work: Work, n_partitions: int | None) -> Table:
        """Return all rows that tasks of a job make of packets; one task has all packets of its users."""
        import ray

        blocks = [(side, own) for side in sides for own in side.blocks()]
        number = n_partitions or max(Counter(side.name for side, _ in blocks).values(), default=1)
        n_cpus = max(node["Resources"].get("CPU", 1) for node in ray.nodes())  # Ray waits forever for more
        pack = ray.remote(_pack).options(num_returns=number)
        task = ray.remote(_in_task).options(num_cpus=min(job.n_threads or 1, n_cpus))
        packed = [pack.remote(side.name, side.empty, job.keys, number, *own) for side, own in blocks]
        del blocks  # Ray may forget rows once they are packed
        partitions = zip(*packed, strict=True) if number > 1 else [packed]  # Ray returns one alone as itself
        shared = ray.put(work)
        made = [task.remote(shared, *packets) for packets in partitions]
        try:
            return join_rows(ray.get(made))
        except ray.exceptions.RayTaskError as error:
            cause: Any = error
            while isinstance(cause, ray.exceptions.RayTaskError):  # of a task that needs what another makes
                cause = cause.cause
            raise cause if isinstance(cause, FastrecError) else error from None


def _collected(dataset: Any) -> Table:
    """Return the rows of a dataset."""
    import pyarrow as pa
    import ray

    return pa.concat_tables(ray.get(_in_arrow(dataset).to_arrow_refs()), promote_options="permissive")


def _in_arrow(dataset: Any) -> Any:
    """Return a dataset with blocks of Arrow, and lists in place of vectors."""
    return dataset.map_batches(_with_lists, batch_format="pyarrow", batch_size=None)


def _with_lists(block: Table) -> Table:
    """Return a block with lists in place of vectors, which are tensors of one axis in Ray."""
    import pyarrow as pa

    for at, own in enumerate(block.schema):
        if getattr(own.type, "ndim", None) == 1 or len(getattr(own.type, "shape", ())) == 1:
            stored = block.column(at).combine_chunks().storage
            if pa.types.is_struct(stored.type):  # of vectors of several lengths
                stored = stored.field("data")
            block = block.set_column(at, own.name, stored.cast(pa.list_(stored.type.value_type)))
    return block


def _pack(side: str, empty: Table, keys: tuple[str, ...], number: int, *blocks: Table) -> Any:
    """Return the packets of each partition that evaluates; Ray wants one alone as itself."""
    having = (block for block in blocks if block.num_rows)  # Ray forgets the columns of empty blocks
    packets = pack_rows(having, side, empty, keys, BUCKETS_PER_PARTITION * number)
    partitions = packets.column("bucket").to_numpy() % number
    packed = [packets.filter(partitions == nth) for nth in range(number)]
    return packed if number > 1 else packed[0]


def _in_task(work: Work, *packets: Table) -> Table:
    import pyarrow as pa

    return work_on(pa.concat_tables([no_packets(), *packets]), work)
