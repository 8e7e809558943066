"""Errors that use the names of files: paths, columns, rows from 1."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping

from fastrec.exceptions import Argument, FastrecError, Name, Place, RowNumber, Text
from fastrec.files.columns import ITEMS, USERS
from fastrec.files.reader import TableReader
from fastrec.inputs.sides import SIDES

TABLES = {**{name: name for name in (*SIDES, ITEMS, USERS)}, "the frame": "log"}  # of data frames in messages
ROLES = {"labels": ("label", "target"), "scores": ("score", "prediction"), "sample_weight": ("weight",)}


@contextlib.contextmanager
def named_as_in(files: Mapping[str, TableReader], *, streamed: bool) -> Iterator[None]:
    """Make the errors of the block name files, their columns, and rows from 1; no rows if these were streamed."""
    try:
        yield
    except FastrecError as error:
        sides = [name.side for name in error.text.names() if isinstance(name, Place) and name.side in TABLES]
        table = TABLES[sides[0]] if sides else "log"
        of_rows = None if streamed and table != ITEMS else files.get(table)
        raise error.renamed(functools.partial(_name_in, files, of_rows)) from error.__cause__


def _name_in(files: Mapping[str, TableReader], of_rows: TableReader | None, name: Name) -> object:
    """Return the name of a column, of values or of a row in files; `of_rows` is the file of rows."""
    if isinstance(name, RowNumber):
        return name.unnumbered if of_rows is None else f" in {of_rows.place(name.position)}"
    if isinstance(name, Argument) and not name.values and name.name in files:
        return files[name.name].path
    if not isinstance(name, Place):
        return name
    file = files.get(TABLES.get(name.side, "log"))
    if file is None:
        return name
    if name.column is not None:
        return Text(file.path, f": column {name.column!r}") if name.column in file.names.values() else name
    if name.side == ITEMS:
        return file.path
    known = next((role for role in ROLES.get(name.side, ()) if role in file.names), None)
    return name if known is None else Text(file.at(known), f": {known}s")
