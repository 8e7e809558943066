"""SQL sources of JSON lines files.

DuckDB reads them. PyArrow's reader of JSON, with the types given, took twice the processor time that DuckDB takes to
read the same values as JSON (0.49 s against 0.24 s for 500,000 rows of three numbers). It also takes NaN for a number,
and several objects in a line.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastrec.exceptions import InputError, InputTypeError
from fastrec.files.database import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import (
    FILE,
    Format,
    Source,
    names_files,
    one_row,
    quoted,
    reader_sql,
    string_sql,
    text_source,
)
from fastrec.files.formats.heads import Beginning, Head, compression_of, line_of, lines_of, read_heads
from fastrec.files.paths import Files

__all__ = ["JSON_LINES"]


def _open_json(con: DuckDBPyConnection, files: Files, columns: FileColumns) -> Source:
    """Return the SQL source of JSON lines files.

    Each column has the one type of all its values; a key that a line lacks is null.
    """
    heads = read_heads(files)
    wanted = sorted(columns.names | (_all_keys(con, files, heads) if columns.reads_all else set()))
    sql = _json_sql(files, heads, wanted)
    kinds_sql = (f"list(DISTINCT {_json_kind(f'c{n}')})" for n in range(len(wanted)))
    kinds = one_row(con, f"SELECT {', '.join(kinds_sql)} FROM {sql}")
    keys = dict.fromkeys(_json_keys(heads))
    every = [*wanted, *(key for key in keys if key not in wanted)]
    found = {key: (_json_text(f"c{every.index(key)}"), "VARCHAR") for key in keys}
    filled = [head.path for head in heads if head.first_line]
    source = text_source(files, JSON_LINES, sql, found, filled, typed=True)
    for n, (name, values) in enumerate(zip(wanted, kinds, strict=True)):
        having = {kind for kind in values or () if kind is not None}
        if having or name in found:
            found[name] = _json_column(con, source, f"c{n}", name, having, lists=columns.reads_all)
    source = text_source(files, JSON_LINES, sql, found, filled, typed=True)
    return replace(source, all_columns=_json_sql(files, heads, every))


def _json_text(value: str) -> str:
    """Return the SQL of a value of any kind as a string, with 1 and 0 for true and false."""
    mark = f"CASE WHEN CAST({value} AS BOOLEAN) THEN '1' ELSE '0' END"
    return f"CASE json_type({value}) WHEN 'BOOLEAN' THEN {mark} ELSE {value} ->> '$' END"


def _json_keys(heads: Sequence[Head]) -> list[str]:
    """Return the keys in the first line of each file."""
    keys: list[str] = []
    for head in heads:
        with contextlib.suppress(ValueError, RecursionError):
            line = json.loads(head.first_line)
            keys += line if isinstance(line, dict) else []
    return keys


def _all_keys(con: DuckDBPyConnection, files: Files, heads: Sequence[Head]) -> set[str]:
    """Return the keys of all objects."""
    objects = reader_sql("read_ndjson_objects", files.paths, compression_of(heads), name_files=False)
    keys = "CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) ELSE [] END"
    return {key for (key,) in run(con, f"SELECT DISTINCT unnest({keys}) FROM {objects}").fetchall()}


def _json_sql(files: Files, heads: Sequence[Head], names: Sequence[str]) -> str:
    """Return the SQL of the values of keys as JSON columns c0, c1, ..."""
    naming = names_files(files)
    columns = [f"c{n}" for n in range(len(names))] + [quoted(FILE)] * naming
    if "" not in names and len({name.lower() for name in (*names, FILE)}) > len(names):
        types = ", ".join(f"{quoted(name)}: 'JSON'" for name in names)
        options = f"records=true, {compression_of(heads)}, columns={{{types}}}"
        return f"{reader_sql('read_ndjson', files.paths, options, name_files=naming)} AS t({', '.join(columns)})"
    # DuckDB's columns ignore case: extract the values from whole objects
    objects = reader_sql("read_ndjson_objects", files.paths, compression_of(heads), name_files=naming)
    keys = "json_keys(json)"
    row = (
        f"CASE WHEN json_type(json) <> 'OBJECT' THEN error('expected one object') "
        f"WHEN len(list_distinct({keys})) < len({keys}) THEN error('duplicate key in an object') ELSE json END"
    )
    pointers = [name.replace("~", "~0").replace("/", "~1") for name in names]
    values = [f"json_extract(row, {string_sql('/' + pointer)}) AS c{n}" for n, pointer in enumerate(pointers)]
    picked = ", ".join(values + [quoted(FILE)] * naming)
    inner = ", ".join([f"{row} AS row"] + [quoted(FILE)] * naming)
    return f"(SELECT {picked} FROM (SELECT {inner} FROM {objects}))"


def _json_kind(value: str) -> str:
    """Return the SQL of the kind of a value. An integer of up to 15 digits is exact as a float, a long one is not."""
    text = f"CAST({value} AS VARCHAR)"
    return (
        f"CASE json_type({value}) WHEN 'VARCHAR' THEN 'a string' WHEN 'BOOLEAN' THEN 'true or false' "
        f"WHEN 'OBJECT' THEN 'an object' WHEN 'ARRAY' THEN 'a list' ELSE CASE "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{1,15}}') THEN 'an integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{16,18}}') THEN 'a long integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]+') THEN 'a huge integer' "
        f"WHEN {value} IS NOT NULL THEN 'a decimal number' END END"
    )


JSON_TYPES = (  # a column has the first type that covers all its kinds
    ({"a string"}, "VARCHAR"),
    ({"true or false"}, "BOOLEAN"),
    ({"an integer", "a long integer"}, "BIGINT"),
    ({"an integer", "a long integer", "a huge integer"}, "HUGEINT"),
    ({"an integer", "a decimal number"}, "DOUBLE"),
)


def _json_column(
    con: DuckDBPyConnection, source: Source, value: str, name: str, kinds: set[str], *, lists: bool
) -> tuple[str, str]:
    """Return the SQL and the type of a column with values of these kinds; with `lists` it may have lists of them.

    Then a column of other values is JSON: an error only if a metric asks for it.
    """
    type_ = next((type_ for known, type_ in JSON_TYPES if kinds <= known), None)
    if type_ is not None:
        return f"CAST({value} ->> '$' AS {type_})", type_
    if not lists:
        _reject_kinds(con, source, value, name)
    if kinds == {"a list"}:
        items = f"SELECT unnest(CAST({value} AS JSON[])) AS item FROM {source.sql}"
        (found,) = one_row(con, f"SELECT list(DISTINCT {_json_kind('item')}) FROM ({items})")
        own = {kind for kind in found or () if kind is not None}
        type_ = next((type_ for known, type_ in JSON_TYPES if own <= known), None)
        if type_ is not None:
            return f"CAST({value} AS {type_}[])", f"{type_}[]"
    return value, "JSON"


def _reject_kinds(con: DuckDBPyConnection, source: Source, value: str, name: str) -> None:
    """Raise for a column with nested values or values of several kinds; name the first row of each."""
    rows = run(
        con,
        f"SELECT kind, min(position) FROM (SELECT {_json_kind(value)} AS kind, row_number() OVER () - 1 AS position "
        f"FROM {source.sql}) WHERE kind IS NOT NULL GROUP BY kind ORDER BY 2",
    ).fetchall()
    nested = [(kind, row) for kind, row in rows if kind in ("an object", "a list")]
    found = ", ".join(f"{kind} in {source.place(row)}" for kind, row in nested[:1] or rows)
    wanted = "expected plain values" if nested else "expected values of one kind"
    raise InputTypeError(source.files.path, f": column {name!r} holds {found}: {wanted}")


def _json_reason(path: str) -> str:
    """Return what is wrong with the first line that is not a JSON object."""
    for number, line in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_json_object)
        except RecursionError:
            return f"line {number}: nested too deep"
        except ValueError as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            return f"line {number}: {'not UTF-8' if isinstance(error, UnicodeDecodeError) else what}"
        if line.startswith(codecs.BOM_UTF8):
            return f"line {number}: a byte order mark, which JSON does not allow: write the file without it"
        if not _is_utf8(value):
            return f"line {number}: an unpaired surrogate (\\ud800 to \\udfff), which is not a character"
        if not isinstance(value, dict):
            return f"line {number}: expected one object, such as {{'user_id': 1, 'item_id': 2}}"
    return ""


def _is_utf8(value: Any) -> bool:
    """Return whether all strings in a JSON value can be encoded as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the keys and values of an object; raise ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"duplicate key in an object with the keys {', '.join(repr(name) for name, _ in pairs)}")
    return found


class _JsonLines(Format):
    """One JSON object per line."""

    name, title = "jsonl", "JSON lines"
    endings = (".json", ".jsonl", ".ndjson")

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        if start.ending in (".jsonl", ".ndjson") or start.head.first_line.lstrip().startswith("{"):
            return True
        if start.ending in self.endings:
            raise InputError(
                start.path, ": not JSON lines: expected one object per line, such as {'user_id': 1, 'item_id': 2}"
            )
        return False

    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        return _open_json(con, files, columns)

    def place(self, path: str, position: int) -> str:
        return line_of(path, position)

    def reason(self, path: str) -> str:
        return _json_reason(path)


JSON_LINES = _JsonLines()
