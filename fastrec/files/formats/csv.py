"""SQL sources of CSV files."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fastrec.checks import suggest_name
from fastrec.exceptions import InputError
from fastrec.files.database import run
from fastrec.files.delimited import read_batches
from fastrec.files.formats.foreign import reason_of_csv

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FILE, Format, Source, names_files, quoted, reader_sql, string_sql, text_source
from fastrec.files.formats.heads import Beginning, Head, RowForm, compression_of, read_heads
from fastrec.files.paths import Files, utf8_path

__all__ = ["CSV"]


class Header(NamedTuple):
    """The first row of a CSV."""

    names: list[str]
    delimiter: str
    n_lines: int
    is_all: bool  # whether no rows follow


def _open_csv(con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
    """Return the SQL source of CSV files; every column holds strings.

    DuckDB's sniffer is off: it would read "007" as 7, a row that begins with "#" as a comment, and uneven first rows as
    a preface to skip. The header determines the delimiter; quoting follows RFC 4180. Columns are named by position, as
    SQL names ignore case and header names do not.

    DuckDB loses all rows if a line break in the header differs from the line endings, and fails on some line breaks in
    values. Of several files, it leaves out what follows an unclosed quote, without an error, if there are fewer
    threads than files. Python's parser reads those files, and several files of which one has quotes. It is slower.
    """
    heads = read_heads(files)
    headers = [_csv_header(head, columns.names) for head in heads]
    (header, delimiter, *_), *others = headers
    for name in header:
        if (columns.reads_all or name in columns.names) and header.count(name) > 1:
            raise InputError(heads[0].path, f": the header has the column {name!r} {header.count(name)} times")
    for head, other in zip(heads[1:], others, strict=True):
        _check_header(head, other, headers[0], heads[0].path)
    found = {name: (f"c{n}", "VARCHAR") for n, name in enumerate(header)}
    filled = [head.path for head, own in zip(heads, headers, strict=True) if not own.is_all]
    if attempt or any(one.n_lines > 1 for one in headers) or _may_hide_rows(heads):
        sql, n_rows = _copy_rows(con, files, headers[0])
        return replace(text_source(files, CSV, sql, found, filled), n_rows=n_rows, is_copy=True)
    types = ", ".join(f"c{n}: 'VARCHAR'" for n in range(len(header)))
    options = (
        f"auto_detect=false, header=true, skip=0, comment='', delim={string_sql(delimiter)}, quote='\"', escape='\"', "
        f"{compression_of(heads)}, columns={{{types}}}"
    )
    sql = reader_sql("read_csv", files.paths, options, name_files=names_files(files))
    return text_source(files, CSV, sql, found, filled)


def _copy_rows(con: DuckDBPyConnection, files: Files, header: Header) -> tuple[str, dict[str, int]]:
    """Copy the rows that Python's parser reads into a table; return its name and {path: rows}."""
    table = quoted(f"rows of {utf8_path(files.path)}")
    columns = [*(f"c{n}" for n in range(len(header.names))), quoted(FILE)]
    con.execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{column} VARCHAR' for column in columns)})")
    n_rows = dict.fromkeys(map(utf8_path, files.paths), 0)
    for path in files.paths:
        for batch in read_batches(path, header.delimiter, len(header.names)):
            con.register("batch of rows", batch)
            run(con, f'INSERT INTO {table} SELECT *, {string_sql(utf8_path(path))} FROM "batch of rows"')
            n_rows[utf8_path(path)] += len(batch)
    con.unregister("batch of rows")
    return table, n_rows


def _may_hide_rows(heads: list[Head]) -> bool:
    """Return whether one of several files has quotes, one of which may be open."""
    return len(heads) > 1 and any(b'"' in block for head in heads for block in head.blocks())


def _csv_header(head: Head, wanted: set[str]) -> Header:
    """Read the header with the delimiter that gives most of the wanted names, or, if equal, most columns."""
    best: tuple[tuple[int, int], Header] | None = None
    failure: csv.Error | None = None
    stream = io.StringIO(head.text, newline="")
    for delimiter in ",\t;|":
        stream.seek(0)
        rows = csv.reader(stream, delimiter=delimiter)
        try:
            names = next(rows, [])
        except csv.Error as error:  # with the wrong delimiter the header may be one field that is too long
            failure = error
            continue
        merit = (len(wanted.intersection(names)), len(names))
        if best is None or merit > best[0]:
            best = merit, Header(names, delimiter, rows.line_num, not any(map(str.strip, stream)))
    if best is None:
        assert failure is not None
        raise InputError(head.path, f": the header cannot be read as CSV: {reason_of_csv(failure)}") from failure
    if not best[1].names:
        raise InputError(head.path, ": the first line is empty; expected a header with the column names")
    return best[1]


def _check_header(head: Head, found: Header, wanted: Header, first: str) -> None:
    """Raise unless files that are read together have the same header."""
    (names, delimiter, *_), (first_names, first_delimiter, *_) = found, wanted
    if (names, delimiter) == (first_names, first_delimiter):
        return
    lacking = [name for name in first_names if name not in names]
    more = [name for name in names if name not in first_names]
    if lacking:
        what = f"no column {lacking[0]!r}{suggest_name(lacking[0], names)}"
    elif more:
        what = f"extra column {more[0]!r}"
    elif names != first_names:
        what = "the same columns in another order"
    else:
        what = f"columns separated by {delimiter!r}, not by {first_delimiter!r}"
    raise InputError(head.path, f": the header differs from that of {first}: {what}")


def _form(head: Head, columns: FileColumns) -> RowForm | None:
    """Return the form of a file with a header of one line; None in doubt, and for packed files."""
    header = _csv_header(head, columns.names)
    line, ending, _ = head.text.partition("\n")
    if head.packing or header.n_lines > 1 or not ending or "\r" in line.rstrip("\r"):
        return None
    line_break = b"\r\n" if line.endswith("\r") else b"\n"
    return RowForm(tuple(header.names), header.delimiter, line_break, head.mark + len(f"{line}\n".encode()))


class _Csv(Format):
    """CSV, which is any text that no other format recognises."""

    name, title = "csv", "CSV"
    endings = (".csv", ".tsv", ".txt")
    attempts = 2

    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        return _open_csv(con, files, columns, attempt)

    def form(self, start: Beginning, columns: FileColumns) -> RowForm | None:
        return _form(start.head, columns)


CSV = _Csv()
