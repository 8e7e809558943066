"""Evaluation of Dask data frames on their cluster: Dask moves packets of users, and tasks evaluate them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from fastrec.engines.evaluate import PackedSide, evaluation_on
from fastrec.engines.frames import as_frame, as_table, kinds_of, pack_frame, work_on_frame
from fastrec.engines.job import Job
from fastrec.engines.packets import BUCKETS_PER_PARTITION, Work, join_rows, no_packets

__all__ = ["evaluate"]

Table = Any  # pyarrow.Table


class DaskSide(PackedSide):
    """A Dask data frame."""

    engine: ClassVar[str] = "Dask"
    form: ClassVar[str] = "Dask data frame"
    module: ClassVar[str] = "dask.dataframe"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        return hasattr(frame, "map_partitions") and getattr(frame, "ndim", 0) == 2

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def first_rows(self, names: list[str]) -> Table:
        frame = self.frame[names]
        columns = (frame[name] for name in names)
        if all(own.cat.known if own.dtype == "category" else own.dtype != "O" for own in columns):
            return as_table(frame._meta)  # noqa: SLF001 - the types that Dask knows
        parts = (frame.get_partition(nth).compute() for nth in range(frame.npartitions))
        return as_table(next((part for part in parts if len(part)), frame._meta))  # noqa: SLF001

    def kinds(self) -> dict[str, Any]:
        return kinds_of(self.frame._meta)  # noqa: SLF001

    @staticmethod
    def collect(value: Any) -> Any:
        return value.compute() if hasattr(value, "map_partitions") else value

    @classmethod
    def run(cls, sides: Sequence[DaskSide], job: Job, work: Work, n_partitions: int | None) -> Table:
        import dask
        from dask import dataframe

        number = n_partitions or max(side.frame.npartitions for side in sides)
        given, meta = (job.keys, BUCKETS_PER_PARTITION * number), as_frame(no_packets())
        frames = [(side, side.frame[side.empty.column_names].clear_divisions()) for side in sides]
        packets = [frame.map_partitions(pack_frame, side.name, side.empty, *given, meta=meta) for side, frame in frames]
        moved = dataframe.concat(packets).shuffle("bucket", npartitions=number).to_delayed()
        task, given_work = dask.delayed(work_on_frame), dask.delayed(work, pure=False)
        return join_rows(dask.compute(*(task(part, given_work) for part in moved)))


evaluate = evaluation_on(DaskSide)
