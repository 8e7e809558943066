"""How the values of a CSV are written: what a call says, and what the beginning of a file shows."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from fastrec.checks import nearest
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.files.formats.foreign import reason_of_csv
from fastrec.files.formats.heads import Head, read_head

DELIMITERS, QUOTE, BACKSLASH = ",\t;|", '"', "\\"
SAMPLED_ROWS = 1000
MARK = re.compile(r"sep=(.)\r?\n")  # the first line of a CSV of Excel
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[+-]?\d+,\d+", re.ASCII), re.compile(r"[+-]?\d*\.\d+", re.ASCII)


class Dialect(NamedTuple):
    """What a call says about CSV files; None: as the file shows."""

    delimiter: str | None = None
    quote: str | None = None  # "": none
    escape: str | None = None  # begins a quote within a value
    decimal: str | None = None
    encoding: str | None = None


def dialect_of(csv_options: Any) -> Dialect:
    """Return the dialect of the argument `csv`; raise for unknown names and values."""
    if not isinstance(csv_options, Mapping):
        example = {"delimiter": ";", "decimal": ","}
        raise InputTypeError(Argument("csv"), f" must be a dict such as {example}, found {shown(csv_options)}")
    for name, value in csv_options.items():
        if name not in Dialect._fields:
            names = ", ".join(Dialect._fields)
            raise InputError(Argument("csv"), f" takes {names}, found {name!r}{nearest(name, Dialect._fields)}")
        if wanted := _wanted(name, value):
            raise InputTypeError(Argument("csv"), f": {name} must be {wanted}, found {shown(value)}")
    found = Dialect(**csv_options)
    marks = [found.delimiter, QUOTE if found.quote is None else found.quote, found.escape]
    if len({*marks} - {None, ""}) < sum(map(bool, marks)):
        raise InputError(Argument("csv"), ": delimiter, quote and escape must differ")
    return found


def _wanted(name: str, value: Any) -> str:
    """Return what a part of a dialect must be; "" if it is."""
    if name == "encoding":
        return "" if isinstance(value, str) and _is_encoding(value) else "an encoding of text that Python knows"
    if name == "decimal":
        return "" if value in (".", ",") else "'.' or ','"
    if isinstance(value, str) and ((len(value) == 1 and _is_mark(value)) or (name == "quote" and not value)):
        return ""
    return "one character of ASCII" + (", or '' for none" if name == "quote" else "")


def _is_mark(character: str) -> bool:
    return character.isascii() and character not in "\r\n\0"


def _is_encoding(name: str) -> bool:
    try:
        "".encode(name)
    except (LookupError, ValueError):  # codecs of other things than text
        return False
    return True


class Header(NamedTuple):
    """The first row of a CSV, and how its values are written."""

    names: list[str]
    delimiter: str
    start: int  # bytes before the first row
    is_all: bool  # whether no rows follow
    quote: str
    escape: str | None
    decimal: str
    n_before: int  # lines before the names


def read_header(path: str, wanted: Collection[str], dialect: Dialect) -> Header:
    """Read the header with the delimiter that gives most of the wanted names or, if equal, most columns."""
    head = read_head(path, dialect.encoding or "")
    mark = MARK.match(head.text)
    mark = mark if mark and _is_mark(mark[1]) and mark[1] != QUOTE else None
    skipped = mark.end() if mark else 0
    delimiters = dialect.delimiter or (mark[1] if mark else DELIMITERS)
    quote = QUOTE if dialect.quote is None else dialect.quote
    found: list[tuple[list[str], str, int]] = []
    failure = csv.Error()
    stream = io.StringIO(head.text, newline="")
    for delimiter in delimiters:
        stream.seek(skipped)
        try:
            names = next(csv.reader(stream, delimiter=delimiter, **_quoting(quote, None)), [])
        except csv.Error as error:  # with the wrong delimiter the header may be one field that is too long
            failure = error
        else:
            found.append((names, delimiter, stream.tell()))
    if not found:
        raise InputError(head.path, f": the header cannot be read as CSV: {reason_of_csv(failure)}") from failure
    names, delimiter, end = max(found, key=lambda own: (len({*wanted}.intersection(own[0])), len(own[0])))
    if not names:
        raise InputError(head.path, ": the first line is empty; expected a header with the column names")
    start, is_all = head.mark + len(head.text[:end].encode()), not head.text[end:].strip()
    header = Header(names, delimiter, start, is_all, quote, dialect.escape, "", 1 if mark else 0)
    if header.escape is None and quote and BACKSLASH + quote in head.text:
        header = header._replace(escape=_escape_of(head, header))
    return header._replace(decimal=dialect.decimal or _decimal_of(head, header, wanted))


def parser_of(lines: Any, header: Header) -> Any:
    """Return Python's parser of a text from its first line on, without the lines before the names."""
    for _ in range(header.n_before):
        next(lines, None)
    return csv.reader(lines, delimiter=header.delimiter, strict=True, **_quoting(header.quote, header.escape))


def _quoting(quote: str, escape: str | None) -> dict[str, Any]:
    if not quote:
        return {"quoting": csv.QUOTE_NONE, "escapechar": escape}
    return {"quotechar": quote, "escapechar": escape, "doublequote": True}


def _first_rows(head: Head, header: Header) -> list[list[str]]:
    """Return some rows; raise csv.Error. The last row may be cut where the head ends."""
    rows = parser_of(io.StringIO(head.text, newline=""), header)
    next(rows, None)
    found = list(itertools.islice(rows, SAMPLED_ROWS))
    return found[:-1] or found


def _escape_of(head: Head, header: Header) -> str | None:
    """Return the backslash if rows have their columns with it before quotes only, as Spark writes them."""
    for escape in (None, BACKSLASH):
        try:
            rows = _first_rows(head, header._replace(escape=escape))
        except csv.Error:
            continue
        if all(len(row) == len(header.names) for row in rows if row):
            return escape
    return None


def _decimal_of(head: Head, header: Header, wanted: Collection[str]) -> str:
    """Return the comma if numbers have one in a file whose values semicolons separate, else the point."""
    if header.delimiter != ";":
        return "."
    try:
        rows = [dict(zip(header.names, row, strict=False)) for row in _first_rows(head, header)]
    except csv.Error:
        return "."
    values = [value.strip() for row in rows for name, value in row.items() if name in wanted]
    has_commas, has_points = (any(map(one.fullmatch, values)) for one in (DECIMAL_COMMA, DECIMAL_POINT))
    return "," if has_commas and not has_points else "."
