"""Evaluation of Ray datasets on their cluster: tasks of Ray pack users, and other tasks evaluate them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from fastrec.engines.evaluate import PackedSide, evaluation_on
from fastrec.engines.job import Job, error_within
from fastrec.engines.packets import Work, columns_lacking, join_rows, lists_of_tensors, pack_parts, work_on
from fastrec.exceptions import InputError, InputTypeError

__all__ = ["evaluate"]

Table = Any  # pyarrow.Table
FIRST_ROWS = 1000  # that tell types: a few may hold only nulls
IN_ARROW: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}  # whole blocks
TASK_BYTES = 1 << 28  # of rows packed by a task: fewer give more objects for Ray to move, about 1 ms each


class RaySide(PackedSide):
    """A Ray dataset."""

    engine: ClassVar[str] = "Ray"
    form: ClassVar[str] = "Ray dataset"
    lists: ClassVar[str] = "lists or vectors"
    module: ClassVar[str] = "ray.data"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        return hasattr(frame, "to_arrow_refs")

    def first_rows(self, names: list[str]) -> Table:
        import pyarrow as pa

        kinds = [(name, self.kinds()[name]) for name in names]
        if all(isinstance(kind, pa.DataType) for _, kind in kinds):
            return pa.schema(kinds).empty_table()
        return self.collect(self.frame.select_columns(names).limit(FIRST_ROWS))  # only values tell types of pandas

    def kinds(self) -> dict[str, Any]:
        import pyarrow as pa

        try:
            schema = self.frame.schema()  # None before there are rows
        except pa.ArrowTypeError as error:
            raise InputTypeError(f"{self.name} has blocks with different types of a column: {error}") from None
        return {} if schema is None else dict(zip(schema.names, schema.types, strict=True))

    @staticmethod
    def collect(value: Any) -> Any:
        import pyarrow as pa
        import ray

        if not RaySide.is_frame(value):
            return value
        blocks = value.map_batches(lists_of_tensors, **IN_ARROW).to_arrow_refs()
        return pa.concat_tables(ray.get(blocks), promote_options="permissive")

    def blocks(self) -> list[list[Any]]:
        """Run the dataset, and return its blocks, small ones together."""
        import ray

        names = self.empty.column_names
        try:
            rows = self.frame.select_columns(names).map_batches(lists_of_tensors, **IN_ARROW).materialize()
        except ray.exceptions.RayError:  # after which it is worth the time to look at all blocks again
            for own in self.frame.map_batches(columns_lacking, fn_args=(names,), **IN_ARROW).take(1):
                raise InputError(f"{self.name}: a block lacks the column {own['name']!r}") from None
            raise
        blocks = rows.to_arrow_refs()
        size = max(1, len(blocks) * TASK_BYTES // max(1, rows.size_bytes()))
        return [blocks[at : at + size] for at in range(0, len(blocks), size)]

    @classmethod
    def run(cls, sides: Sequence[RaySide], job: Job, work: Work, n_partitions: int | None) -> Table:
        import ray

        blocks = [(side, own) for side in sides for own in side.blocks()]
        number = n_partitions or max(Counter(side.name for side, _ in blocks).values(), default=1)
        n_cpus = max(node["Resources"].get("CPU", 1) for node in ray.nodes())  # Ray waits forever for more
        pack = ray.remote(pack_parts).options(num_returns=number)
        task = ray.remote(work_on).options(num_cpus=min(job.n_threads or 1, n_cpus))
        packed = [pack.remote(side.name, side.empty, job.keys, number, *own) for side, own in blocks]
        del blocks  # Ray may forget rows once they are packed
        partitions = zip(*packed, strict=True) if number > 1 else [packed]  # Ray returns one alone as itself
        shared = ray.put(work)
        made = [task.remote(shared, *packets) for packets in partitions]
        try:
            return join_rows(ray.get(made))
        except ray.exceptions.RayTaskError as error:
            raise error_within(error) from None


evaluate = evaluation_on(RaySide)
