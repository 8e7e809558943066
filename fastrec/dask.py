"""Evaluation of Dask data frames on their cluster: Dask moves packets of users, and tasks evaluate them."""

from __future__ import annotations

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
    is_string,
    join_rows,
    no_packets,
    pack_rows,
    plain_types,
    work_on,
)
from fastrec.exceptions import InputTypeError
from fastrec.report.report import Report

__all__ = ["evaluate"]

Table = Any  # pyarrow.Table
LISTS = r"(?s)^(\[.*\]|\(.*\))$"  # lists, tuples and arrays as strings; intervals such as (18, 25] are none
SOME_LIST = r"(?s)^.(.+[, ].*|'.*').$"  # no name in brackets


@takes(EngineListOptions)
def evaluate(
    recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **given: Unpack[EngineListOptions]
) -> Report:
    """Evaluate recommended lists in Dask data frames against held-out truth: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth : Dask data frames with one row per user and item, or one row per user with columns of lists
        Rows lose their order: lists with one row per item need a column of ranks or scores, and ``ties='input'`` needs
        columns of lists. Metrics that read no truth need none.
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    Report
        Has the bits of `fastrec.evaluate` on the same rows, for any partitions; as in `fastrec.spark.evaluate`.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`, also for faults that a task finds; without row numbers.
    MissingExtraError
        If Dask or PyArrow is not installed; the extra ``dask`` installs both.

    Examples
    --------
    >>> report = fastrec.dask.evaluate(recs, truth, ["ndcg@10", "recall@20"], by="plan")  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    return evaluate_lists((recs, truth), metrics, given, DaskSide)


@dataclass(frozen=True, eq=False)
class DaskSide(PackedSide):
    """A Dask data frame, and an Arrow table of its needed columns without rows."""

    engine: ClassVar[str] = "Dask"
    form: ClassVar[str] = "Dask data frame"
    module: ClassVar[str] = "dask.dataframe"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a Dask data frame."""
        return hasattr(frame, "map_partitions") and getattr(frame, "ndim", 0) == 2

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.frame.columns)

    def having(self, names: Iterable[Any]) -> DaskSide:
        """Return the side with the needed columns: the named ones that exist once."""
        frame = self.frame[self.once(names)]
        known = all(_has_known_type(frame[name]) for name in frame.columns)
        first = frame._meta if known else _first_part(frame)  # noqa: SLF001 - the types that Dask knows
        return replace(self, empty=plain_types(_as_table(first).schema).empty_table())

    def holds_numbers(self, name: str) -> bool:
        """Return whether a column, needed or not, holds numbers or lists of numbers, by its type."""
        own = _as_table(self.frame[[name]]._meta).schema.field(0).type  # noqa: SLF001 - the types that Dask knows
        return is_number(own)

    @staticmethod
    def collect(value: Any) -> Any:
        """Return the table of items in memory, from a Dask data frame or any other form."""
        return value.compute() if hasattr(value, "map_partitions") else value

    @classmethod
    def run(cls, sides: Sequence[DaskSide], job: Job, work: Work, n_partitions: int | None) -> Table:
        """Return all rows that tasks of a job make of packets; one task has all packets of its users."""
        import dask
        from dask import dataframe

        number = n_partitions or max(side.frame.npartitions for side in sides)
        given, meta = (job.keys, BUCKETS_PER_PARTITION * number), _as_frame(no_packets())
        frames = [side.frame[side.empty.column_names].clear_divisions() for side in sides]
        packets = [
            frame.map_partitions(_pack, side.name, side.empty, *given, meta=meta)
            for frame, side in zip(frames, sides, strict=True)
        ]
        moved = dataframe.concat(packets).shuffle("bucket", npartitions=number).to_delayed()
        task = dask.delayed(work, pure=False)
        return join_rows(dask.compute(*(dask.delayed(_in_task)(part, task) for part in moved)))


def _has_known_type(column: Any) -> bool:
    """Return whether Dask knows the type of values, of objects and of unknown categories only they tell it."""
    return bool(column.cat.known if column.dtype == "category" else column.dtype != "O")


def _first_part(frame: Any) -> Any:
    """Return the first partition that has rows."""
    parts = (frame.get_partition(nth).compute() for nth in range(frame.npartitions))
    return next((part for part in parts if len(part)), frame._meta)  # noqa: SLF001 - the types that Dask knows


def _pack(part: Any, side: str, empty: Table, keys: tuple[str, ...], n_buckets: int) -> Any:
    rows = _as_table(part)
    _check_no_lists(rows, side)
    return _as_frame(pack_rows([rows], side, empty, keys, n_buckets))


def _check_no_lists(rows: Table, side: str) -> None:
    """Raise for a column whose lists became strings, which would be ids: dask.dataframe.from_pandas does that."""
    import pyarrow.compute as pc

    for name, values in zip(rows.column_names, rows.columns, strict=True):
        first = next((str(own) for own in values if own.is_valid), "") if is_string(values.type) else ""
        if not first.startswith(("[", "(")) or not pc.all(pc.match_substring_regex(values, LISTS)).as_py():
            continue
        if pc.any(pc.match_substring_regex(values, SOME_LIST)).as_py():
            raise InputTypeError(
                f"{side}: column {name!r} has strings such as {first!r}, lists that dask.dataframe.from_pandas turned "
                "into strings: give it lists of Arrow, or set dataframe.convert-string to False"
            )


def _in_task(part: Any, work: Work) -> Table:
    return work_on(_as_table(part), work)


def _as_table(frame: Any) -> Table:
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except pa.ArrowException:
        kinds = ", ".join(f"{name} {kind}" for name, kind in frame.dtypes.items())
        raise InputTypeError(f"a partition has a column of values of several types, among {kinds}") from None


def _as_frame(packets: Table) -> Any:
    """Return packets as a data frame of pandas, with bytes that Dask moves as they are."""
    import pandas as pd
    import pyarrow as pa

    return packets.to_pandas(types_mapper=lambda kind: None if kind == pa.int32() else pd.ArrowDtype(kind))
