"""Evaluation of Dask data frames on their cluster: Dask moves packets of users, and tasks evaluate them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from fastrec.arguments import options_of
from fastrec.clusters.calls import LIST_OPTIONS, SIDE_OPTIONS, TASK_OPTIONS, frames
from fastrec.clusters.job import Job, Work, work_on
from fastrec.clusters.lists import evaluate_lists
from fastrec.clusters.packets import BUCKETS_PER_PARTITION, Table, is_string, pack_rows, packet_schema
from fastrec.clusters.side import EngineSide
from fastrec.exceptions import InputTypeError
from fastrec.report.report import Report

LISTS = r"(?s)^(\[.*\]|\(.*\))$"  # lists, tuples and arrays as strings; intervals such as (18, 25] are none
SOME_LIST = r"(?s)^.(.+[, ].*|'.*').$"  # no name in brackets


class DaskSide(EngineSide):
    """A Dask data frame."""

    engine: ClassVar[str] = "Dask"
    form: ClassVar[str] = "Dask data frame"
    module: ClassVar[str] = "dask.dataframe"

    @staticmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a data frame of the engine."""
        return hasattr(frame, "map_partitions") and getattr(frame, "ndim", 0) == 2

    @staticmethod
    def to_memory(frame: Any) -> Any:
        """Return all rows of a data frame."""
        return frame.compute()

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.frame.columns)

    def first_rows(self, names: list[str]) -> Table:
        """Return some columns as a table with their types."""
        import pandas as pd  # Dask needs it

        frame = self.frame[names]
        columns = (frame[name] for name in names)
        empty = pd.DataFrame({name: pd.Series(dtype=own) for name, own in frame.dtypes.items()})
        if all(own.cat.known if own.dtype == "category" else own.dtype != "O" for own in columns):
            return _as_table(empty)
        parts = (frame.get_partition(nth).compute() for nth in range(frame.npartitions))
        return _as_table(next((part for part in parts if len(part)), empty))

    @classmethod
    def run(cls, sides: Sequence[DaskSide], job: Job, work: Work, n_partitions: int | None) -> Iterable[Any]:
        """Return all rows that tasks make of the packets of sides."""
        import dask
        from dask import dataframe

        number = n_partitions or max(side.frame.npartitions for side in sides)
        given, meta = (job.keys, BUCKETS_PER_PARTITION * number), _as_frame(packet_schema().empty_table())
        packets = []
        for side in sides:
            rows = side.frame[side.empty.column_names].clear_divisions()
            packets.append(rows.map_partitions(_pack_frame, side.name, side.empty, *given, meta=meta))
        moved = dataframe.concat(packets).shuffle("bucket", npartitions=number).to_delayed()
        task = dask.delayed(_work_on_frame)
        shared = dask.delayed((job._replace(n_threads=job.n_threads or 1), work), pure=False)
        return itertools.chain.from_iterable(dask.compute(*(task(part, shared) for part in moved)))


def _as_table(frame: Any) -> Table:
    """Return a data frame as an Arrow table; raise for a column with values of several types."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except pa.ArrowException:
        kinds = ", ".join(f"{name} {kind}" for name, kind in frame.dtypes.items())
        raise InputTypeError(f"a partition has a column of values of several types, among {kinds}") from None


def _as_frame(packets: Table) -> Any:
    """Return packets as a data frame, with bytes that an engine moves as they are."""
    import pandas as pd
    import pyarrow as pa

    return packets.to_pandas(types_mapper=lambda kind: None if kind == pa.int32() else pd.ArrowDtype(kind))


def _pack_frame(part: Any, side: str, empty: Table, keys: tuple[str, ...], n_buckets: int) -> Any:
    """Return the packets of a partition; see `pack_rows`."""
    rows = _as_table(part)
    _check_no_lists(rows, side)
    return _as_frame(pack_rows([rows], side, empty, keys, n_buckets))


def _check_no_lists(rows: Table, side: str) -> None:
    """Raise for a column whose lists became strings, which would be ids."""
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


def _work_on_frame(packets: Any, shared: tuple[Job, Work]) -> list[dict[str, Any]]:
    """Return the rows that a task makes of its packets."""
    return work_on(*shared, _as_table(packets))


@options_of(*LIST_OPTIONS, (frames, f"{SIDE_OPTIONS} {TASK_OPTIONS}"))
def evaluate(recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **given: Any) -> Report:
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
        Has the bits of `fastrec.evaluate` on the same rows, however they are split. Where the order of rows matters, as
        in sums of fractional gains of items with equal scores, rows are in the order of the items.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`. Messages have no row numbers, as the rows have no order.
    MissingExtraError
        If Dask or PyArrow is not installed; the extra ``dask`` installs both.

    Examples
    --------
    >>> report = fastrec.dask.evaluate(
    ...     recs, truth, ["ndcg@10", "recall@20"], by="plan"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    return evaluate_lists(DaskSide, (recs, truth), metrics, given)[0]
