"""Types of columns of files: which are refused, and which one holds the values of several files without loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fastrec.files.formats.base import holds_strings
from fastrec.inputs.strings import decoded, without_views
from fastrec.inputs.values import values_of

Array = np.ndarray[Any, Any]
UUID = "arrow.uuid"
EXTENSION = b"ARROW:extension:name"
FAULT = "fastrec:fault"  # in the metadata of a field: why its values are not read


def refusal_of(field: Any) -> str:
    """Return what is wrong with the type of a column, as an extension type; "" for others.

    Libraries that do not know the type would read its storage: months as the number of months since 1970.
    """
    import pyarrow as pa

    if fault := (field.metadata or {}).get(FAULT.encode()):
        return str(fault.decode())
    if pa.types.is_run_end_encoded(field.type):
        return f"holds runs of {field.type.value_type}, which are not read: write each value"
    name = (field.metadata or {}).get(EXTENSION, b"").decode(errors="replace")
    name = getattr(field.type, "extension_name", name)
    storage = getattr(field.type, "storage_type", field.type)
    if not name or pa.types.is_string(storage) or name == UUID:
        return ""
    return f"holds {name}, an extension type stored as {storage}: write its values as numbers or as strings"


def common_type(one: Any, other: Any, *, as_text: bool) -> Any:
    """Return the type that holds the values of both types without loss; None if there is none.

    Strings of any form are alike; `as_text`: bytes, too.
    """
    import pyarrow as pa
    from pyarrow import types

    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    plain = [kind.value_type if types.is_dictionary(kind) else kind for kind in (one, other)]
    if all(holds_strings(kind) or (as_text and holds_bytes(kind)) for kind in plain):
        return pa.large_string()
    if plain[0] == plain[1]:
        return plain[0]
    if all(map(types.is_integer, plain)):
        return pa.int64()  # a cast fails for larger values of uint64
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in plain):
        return pa.float64()
    return None


def with_common_type(column: Any, kind: Any) -> Any:
    """Return a column of a file in the type of all files; raise ArrowInvalid for values that it cannot hold."""
    from pyarrow import types

    if is_uuid(column.type):
        return _spelled_uuids(column, kind)
    if column.type == kind:
        return column
    if types.is_null(column.type):
        return column.cast(kind)
    return without_views(decoded(column)).cast(kind)


def holds_bytes(kind: Any) -> bool:
    """Return whether a type is of bytes, encoded or not; some programs write strings so."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (types.is_binary, types.is_large_binary, types.is_binary_view))


def holds_lists(kind: Any) -> bool:
    """Return whether a type is of lists, of any form."""
    return hasattr(kind, "value_type") and not hasattr(kind, "index_type")


def is_uuid(kind: Any) -> bool:
    """Return whether a type is that of UUIDs, which are read as strings."""
    return getattr(kind, "extension_name", "") == UUID


def _spelled_uuids(column: Any, kind: Any) -> Any:
    import uuid

    import pyarrow as pa

    values = column.storage.to_pylist()
    return pa.array([None if value is None else str(uuid.UUID(bytes=value)) for value in values], kind)


def plain_column(column: Any, kind: Any) -> Any:
    """Return a column without a dictionary, in a type."""
    import pyarrow as pa

    return pa.chunked_array([decoded(chunk).cast(kind) for chunk in column.chunks], kind)


def row_codes(tables: Sequence[Any], names: Iterable[str]) -> list[Array]:
    """Return an integer for each row of each table, equal for rows with the same ids in some columns."""
    import pyarrow as pa
    from pyarrow import types

    codes = np.zeros(sum(map(len, tables)), np.int64)
    for name in names:
        columns = [table.column(name) for table in tables]
        kind = pa.int64() if all(types.is_integer(own.type) for own in columns) else pa.large_string()
        chunks = [chunk for own in columns for chunk in plain_column(own, kind).chunks]
        ids = pa.chunked_array(chunks, kind).combine_chunks().dictionary_encode().indices
        own = values_of(ids.fill_null(-1)).astype(np.int64) + 1
        codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return np.split(codes, np.cumsum([len(table) for table in tables])[:-1])
