"""Packets as data frames of pandas, for engines whose partitions are such frames."""

from __future__ import annotations

from typing import Any

from fastrec.engines.packets import Work, is_string, pack_rows, work_on
from fastrec.exceptions import InputTypeError

__all__ = ["as_frame", "as_table", "kinds_of", "pack_frame", "work_on_frame"]

Table = Any  # pyarrow.Table
LISTS = r"(?s)^(\[.*\]|\(.*\))$"  # lists, tuples and arrays as strings; intervals such as (18, 25] are none
SOME_LIST = r"(?s)^.(.+[, ].*|'.*').$"  # no name in brackets


def as_table(frame: Any) -> Table:
    """Return a data frame as an Arrow table; raise for a column with values of several types."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except pa.ArrowException:
        kinds = ", ".join(f"{name} {kind}" for name, kind in frame.dtypes.items())
        raise InputTypeError(f"a partition has a column of values of several types, among {kinds}") from None


def kinds_of(frame: Any) -> dict[Any, Any]:
    """Return the type of each column in Arrow, or in pandas where Arrow has none."""
    found = {}
    for at, name in enumerate(frame.columns):
        try:
            found[name] = as_table(frame.iloc[:, [at]]).schema.field(0).type
        except InputTypeError:
            found[name] = frame.dtypes.iloc[at]
    return found


def as_frame(packets: Table) -> Any:
    """Return packets as a data frame, with bytes that an engine moves as they are."""
    import pandas as pd
    import pyarrow as pa

    return packets.to_pandas(types_mapper=lambda kind: None if kind == pa.int32() else pd.ArrowDtype(kind))


def pack_frame(part: Any, side: str, empty: Table, keys: tuple[str, ...], n_buckets: int) -> Any:
    """Return the packets of a partition; see `fastrec.engines.packets.pack_rows`."""
    rows = as_table(part)
    _check_no_lists(rows, side)
    return as_frame(pack_rows([rows], side, empty, keys, n_buckets))


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


def work_on_frame(packets: Any, work: Work) -> Table:
    """Return the rows that a task makes of its packets."""
    return work_on(work, as_table(packets))
