"""JSON lines, which DuckDB reads.

PyArrow's reader of JSON took twice the processor time that DuckDB takes to read the same values (0.49 s against 0.24 s
for 500,000 rows of three numbers). It also takes NaN for a number, and several objects in a line.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastrec.exceptions import InputError, InputTypeError
from fastrec.files.columns import FileColumns
from fastrec.files.database import open_database, run
from fastrec.files.formats.base import FileHead
from fastrec.files.formats.heads import Beginning, Head, check_packed, line_of, lines_of, read_head
from fastrec.files.formats.text import TextFormat
from fastrec.files.paths import utf8_path
from fastrec.files.types import FAULT
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["JSON_LINES"]

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 15, 1 << 23
NESTED = ("an object", "a list")
MIXED = {FAULT: "holds objects or values of several kinds: expected values, or lists of values, of one kind"}


class _JsonLines(TextFormat):
    """One JSON object per line. Each column has the one type of all its values; a key that a line lacks is null."""

    name, title = "jsonl", "JSON lines"
    endings = (".json", ".jsonl", ".ndjson")
    has_types = True

    def __init__(self, columns: FileColumns | None = None, n_threads: int = 1) -> None:
        self._columns, self._n_threads = columns, n_threads
        self._schemas: dict[str, Any] = {}  # of each file whose head was read

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        if start.ending in (".jsonl", ".ndjson") or start.head.first_line.lstrip().startswith("{"):
            return True
        if start.ending in self.endings:
            raise InputError(
                start.path, ": not JSON lines: expected one object per line, such as {'user_id': 1, 'item_id': 2}"
            )
        return False

    def bound(self, columns: FileColumns, n_threads: int) -> _JsonLines:
        return _JsonLines(columns, n_threads)

    def head(self, path: str) -> FileHead:
        """Return the schema of a file: columns that may be read have types, other ones of its first line are text."""
        pa = require("pyarrow", "cli", what="reading files")
        head = read_head(path)
        check_packed(head)
        assert self._columns is not None
        with open_database(self._n_threads) as con:
            keys = dict.fromkeys(_keys_of_line(head.first_line))
            wanted = sorted(self._columns.names | (_all_keys(con, head) if self._columns.reads_all else set()))
            every = [*keys, *(name for name in wanted if name not in keys)]
            fields = {name: pa.field(name, pa.string()) for name in keys}
            for name, kinds in zip(wanted, _kinds_of(con, head, wanted), strict=True):
                if kinds or name in keys:
                    kind = self._type_of(con, head, name, kinds)
                    fields[name] = pa.field(name, pa.string(), metadata=MIXED) if kind is None else pa.field(name, kind)
        self._schemas[path] = pa.schema([fields[name] for name in every if name in fields])
        return FileHead(self._schemas[path], None if head.first_line else 0)

    def _type_of(self, con: DuckDBPyConnection, head: Head, name: str, kinds: set[str]) -> Any:
        """Return the type of a column with values of these kinds; raise if there is none, unless in a table of items.

        None is an error there if a metric asks for the column.
        """
        import pyarrow as pa

        found = _plain_type(kinds)
        if found is None and kinds == {"a list"}:
            values = f"SELECT unnest(CAST(c0 AS JSON[])) AS item FROM {_rows_sql(head, [name])}"
            ((own,),) = run(con, f"SELECT list(DISTINCT {_json_kind('item')}) FROM ({values})").fetchall()
            items = {kind for kind in own or () if kind is not None}
            held = _plain_type(items) if items else pa.string()  # lists of nulls alone
            found = None if held is None else pa.list_(held)
        if found is None and not self._columns.reads_all:  # type: ignore[union-attr] # of a bound format
            _reject_kinds(con, head, name)
        return found

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        import pyarrow as pa

        names = [self._schemas[path].names[at] for at in wanted]
        picked = ", ".join(_value_sql(f"c{nth}", kind) for nth, kind in enumerate(wanted.values()))
        head = read_head(path)
        n_rows = BYTES_AT_ONCE // max(len(head.text) // (head.text.count("\n") or 1), 1)
        with open_database(self._n_threads) as con:
            rows = con.sql(f"SELECT {picked} FROM {_rows_sql(head, names)}")
            # DuckDB renamed the method in version 2
            read = "to_arrow_reader" if hasattr(rows, "to_arrow_reader") else "fetch_arrow_reader"
            for batch in getattr(rows, read)(min(ROWS_AT_ONCE, n_rows + 1)):
                found = zip(batch.columns, wanted.values(), strict=True)
                columns = [pa.nulls(len(own)) if kind == pa.null() else own.cast(kind) for own, kind in found]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def place(self, path: str, position: int) -> str:
        return line_of(path, position)

    def reason(self, path: str) -> str:
        return _json_reason(path)

    @staticmethod
    def damages() -> tuple[type[Exception], ...]:
        duckdb = require("duckdb", "cli", what="reading JSON lines")
        return (*TextFormat.damages(), duckdb.Error)


def _keys_of_line(line: str) -> list[str]:
    """Return the keys of an object in a line; none if it has another form."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        return list(found) if isinstance(found, dict) else []
    return []


def _reader_sql(function: str, head: Head, options: str = "") -> str:
    """Return the SQL of a reader of DuckDB for a file, whose name may have characters of patterns."""
    path = "".join(f"[{c}]" if c in "[*?" else c for c in utf8_path(head.path))
    packing = f"compression='{head.packing or 'uncompressed'}'"
    return f"{function}([{_string_sql(path)}], {packing}, hive_partitioning=false{options})"


def _string_sql(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _all_keys(con: DuckDBPyConnection, head: Head) -> set[str]:
    """Return the keys of all objects."""
    keys = "CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) ELSE [] END"
    rows = run(con, f"SELECT DISTINCT unnest({keys}) FROM {_reader_sql('read_ndjson_objects', head)}")
    return {key for (key,) in rows.fetchall()}


def _rows_sql(head: Head, names: Sequence[str]) -> str:
    """Return the SQL of the values of keys as JSON columns c0, c1, ..."""
    if "" not in names and len({name.lower() for name in names}) == len(names):
        types = ", ".join(f"{_quoted(name)}: 'JSON'" for name in names)
        columns = ", ".join(f"c{nth}" for nth in range(len(names)))
        return f"{_reader_sql('read_ndjson', head, f', records=true, columns={{{types}}}')} AS t({columns})"
    # DuckDB's columns ignore case: extract the values from whole objects
    row = (
        "CASE WHEN json_type(json) <> 'OBJECT' THEN error('expected one object') "
        "WHEN len(list_distinct(json_keys(json))) < len(json_keys(json)) "
        "THEN error('duplicate key in an object') ELSE json END"
    )
    pointers = [name.replace("~", "~0").replace("/", "~1") for name in names]
    values = [f"json_extract(row, {_string_sql('/' + pointer)}) AS c{n}" for n, pointer in enumerate(pointers)]
    objects = _reader_sql("read_ndjson_objects", head)
    return f"(SELECT {', '.join(values)} FROM (SELECT {row} AS row FROM {objects}))"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _json_kind(value: str) -> str:
    """Return the SQL of the kind of a value. An integer of up to 15 digits is exact as a float, a long one is not."""
    text = f"CAST({value} AS VARCHAR)"
    return (
        f"CASE json_type({value}) WHEN 'VARCHAR' THEN 'a string' WHEN 'BOOLEAN' THEN 'true or false' "
        f"WHEN 'OBJECT' THEN 'an object' WHEN 'ARRAY' THEN 'a list' ELSE CASE "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{1,15}}') THEN 'an integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{16,18}}') THEN 'a long integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{19,38}}') THEN 'a huge integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]+') THEN 'an integer of more than 38 digits' "
        f"WHEN {value} IS NOT NULL THEN 'a decimal number' END END"
    )


def _kinds_of(con: DuckDBPyConnection, head: Head, names: Sequence[str]) -> list[set[str]]:
    """Return the kinds of the values of each key."""
    picked = ", ".join(f"list(DISTINCT {_json_kind(f'c{nth}')})" for nth in range(len(names)))
    (found,) = run(con, f"SELECT {picked} FROM {_rows_sql(head, names)}").fetchall()
    return [{kind for kind in own or () if kind is not None} for own in found]


def _plain_type(kinds: set[str]) -> Any:
    """Return the type of Arrow that covers all kinds; None if there is none."""
    import pyarrow as pa

    types: tuple[tuple[set[str], Any], ...] = (
        (set(), pa.null()),
        ({"a string"}, pa.string()),
        ({"true or false"}, pa.bool_()),
        ({"an integer", "a long integer"}, pa.int64()),
        ({"an integer", "a long integer", "a huge integer"}, pa.decimal128(38, 0)),
        ({"an integer", "a decimal number"}, pa.float64()),
    )
    return next((kind for known, kind in types if kinds <= known), None)


def _value_sql(value: str, kind: Any) -> str:
    """Return the SQL of a JSON value as one of a type of Arrow; text has 1 and 0 for true and false."""
    from pyarrow import types

    if types.is_list(kind):
        return f"CAST({value} AS {_type_sql(kind.value_type)}[])"
    if not types.is_string(kind):
        return f"CAST({value} ->> '$' AS {_type_sql(kind)})"
    return f"CASE CAST({value} AS VARCHAR) WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {value} ->> '$' END"


def _type_sql(kind: Any) -> str:
    names = {"bool": "BOOLEAN", "int64": "BIGINT", "decimal128(38, 0)": "DECIMAL(38, 0)", "double": "DOUBLE"}
    return names.get(str(kind), "VARCHAR")


def _reject_kinds(con: DuckDBPyConnection, head: Head, name: str) -> None:
    """Raise for a column with nested values or values of several kinds; name the first row of each."""
    rows = run(
        con,
        f"SELECT kind, min(position) FROM (SELECT {_json_kind('c0')} AS kind, row_number() OVER () - 1 AS position "
        f"FROM {_rows_sql(head, [name])}) WHERE kind IS NOT NULL GROUP BY kind ORDER BY 2",
    ).fetchall()
    nested = [(kind, row) for kind, row in rows if kind in NESTED]
    found = ", ".join(f"{kind} in {line_of(head.path, row)}" for kind, row in rows)
    wanted = "expected plain values, or lists of them" if nested and len(rows) == 1 else "expected values of one kind"
    raise InputTypeError(head.path, f": column {name!r} holds {found}: {wanted}")


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


JSON_LINES = _JsonLines()
