"""Tables of items in files, read whole into memory."""

from __future__ import annotations

import contextlib
from typing import Any

from fastrec.exceptions import InputError
from fastrec.files.columns import ITEMS
from fastrec.files.faults import named_as_in
from fastrec.files.reader import TableReader
from fastrec.inputs.items import ItemTable, read_items

LONG_INTEGER = r"^\s*[+-]?[0-9]{16,}\s*$"  # a double may round it
LEADING_ZERO = r"^\s*[+-]?0[0-9].*$"  # in codes, not in numbers


def read_items_of(reader: TableReader, rows: Any) -> ItemTable:
    """Return the table of items of a file; `rows` has its columns, and ids as those of the lists.

    Columns of formats without types hold integers if all values spell integers, floats if all spell numbers, else
    strings.
    """
    item = reader.names["item"]
    if not len(rows):
        raise InputError(reader.path, ": a table of items must have at least one row, found none")
    names = [name for name in reader.listed if name in rows.column_names]  # in the order of the file
    typed = {name: rows.column(name) if name == item else _typed(reader, name, rows.column(name)) for name in names}
    import pyarrow as pa

    with named_as_in({ITEMS: reader}, streamed=False):
        read = read_items(pa.table(typed), item)
    return read._replace(columns={**read.columns, **reader.faults})


def _typed(reader: TableReader, name: str, column: Any) -> Any:
    """Return a column without a type as numbers if all its values spell numbers that a double holds."""
    import pyarrow as pa
    from pyarrow import compute

    if not reader.is_untyped(name):
        return column
    plain = compute.utf8_trim(column, " \t")
    with contextlib.suppress(pa.ArrowInvalid):
        integers = plain.cast(pa.int64())
        if compute.all(compute.equal(integers.cast(pa.string()), plain)).as_py() is not False:
            return integers
    for pattern in (LONG_INTEGER, LEADING_ZERO):
        if compute.any(compute.match_substring_regex(plain, pattern)).as_py():
            return column
    with contextlib.suppress(pa.ArrowInvalid):
        return plain.cast(pa.float64())
    return column
