"""The same rows as data frames of every library."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

nw = pytest.importorskip("narwhals.stable.v2")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
Table = dict[str, list[Any]]


class Row(tuple):  # noqa: SLOT001 - tuples of one's own have no non-empty slots
    """Row like those of Spark's `DataFrame.collect()`: a tuple that knows its fields."""

    __fields__: list[str]

    @classmethod
    def of(cls, fields: list[str], values: tuple[Any, ...]) -> "Row":
        row = cls(values)
        row.__fields__ = fields
        return row

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return dict(zip(self.__fields__, self, strict=True))


class Exporter:
    """Object of an unknown library that exports an Arrow stream."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def in_chunks(table: Table) -> Any:
    whole = pa.table(table)
    cuts = sorted([0, 1, 1, len(whole) // 2, len(whole)])
    return pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(cuts)])


def sliced(table: Table) -> Any:
    whole = pa.table(table)
    parts = [before := whole.slice(0, 3), whole, whole.slice(0, 2)]
    return pa.concat_tables(parts).combine_chunks().slice(len(before), len(whole))


def chunked_dictionary(table: Table) -> Any:
    """Return a column with a separate dictionary in every chunk."""
    whole = in_chunks(table)
    ids = [name for name in whole.column_names if name.endswith("_id")]
    for name in ids:
        chunks = [chunk.dictionary_encode() for chunk in whole[name].chunks]
        whole = whole.set_column(whole.column_names.index(name), name, pa.chunked_array(chunks))
    return whole


def large(table: Table) -> Any:
    whole = pa.table(table)
    kinds = {pa.string(): pa.large_string(), pa.int64(): pa.uint64()}
    return whole.cast(pa.schema([(field.name, kinds.get(field.type, field.type)) for field in whole.schema]))


def polars_categories(table: Table) -> Any:
    frame = pl.DataFrame(table)
    return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))


def polars_chunks(table: Table) -> Any:
    frame = pl.DataFrame(table)
    return pl.concat([frame[:2], frame[2:5], frame[5:]], rechunk=False)


def pandas_categories(table: Table) -> Any:
    frame = pd.DataFrame(table)
    return frame.astype({name: "category" for name in frame if name.endswith("_id")})


def duckdb_relation(table: Table) -> Any:
    duckdb = pytest.importorskip("duckdb")
    arrow = pa.table(table)
    return duckdb.from_arrow(arrow)


def narwhals_frame(table: Table) -> Any:
    return nw.from_native(pl.DataFrame(table).lazy())


FORMS: dict[str, Callable[[Table], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, categories": pandas_categories,
    "pandas, Arrow columns": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, an index": lambda table: pd.DataFrame(table, index=range(100, 100 - len(next(iter(table.values()))), -1)),
    "Polars": pl.DataFrame,
    "Polars, lazy": lambda table: pl.DataFrame(table).lazy(),
    "Polars, chunks": polars_chunks,
    "Polars, categories": polars_categories,
    "PyArrow": pa.table,
    "PyArrow, chunks": in_chunks,
    "PyArrow, a slice": sliced,
    "PyArrow, dictionaries": chunked_dictionary,
    "PyArrow, large": large,
    "PyArrow, a batch": lambda table: pa.table(table).to_batches()[0],
    "PyArrow, a reader": lambda table: in_chunks(table).to_reader(),
    "Spark rows": lambda table: [Row.of(list(table), row) for row in zip(*table.values(), strict=True)],
    "DuckDB": duckdb_relation,
    "narwhals, lazy": narwhals_frame,
    "an Arrow stream": lambda table: Exporter(in_chunks(table)),
}


def as_large_lists(table: Table) -> Any:
    whole = pa.table(table)
    for at, field in enumerate(whole.schema):
        if pa.types.is_list(field.type):
            whole = whole.set_column(at, field.name, whole[field.name].cast(pa.large_list(field.type.value_type)))
    return whole


LIST_FORMS: dict[str, Callable[[Table], Any]] = {
    name: form
    for name, form in FORMS.items()
    if name not in ("pandas, categories", "PyArrow, large", "PyArrow, dictionaries")
} | {"PyArrow, large lists": as_large_lists}
