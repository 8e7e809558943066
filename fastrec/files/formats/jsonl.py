"""JSON lines, which PyArrow reads; Python says of which kind values are where they differ, and what is wrong."""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from fastrec.exceptions import InputError, InputTypeError
from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FileHead
from fastrec.files.formats.heads import Beginning, line_of, lines_of, read_head
from fastrec.files.formats.text import TextFormat, chunks
from fastrec.files.text_values import are_exact
from fastrec.files.types import FAULT
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.runtime.extras import require

Kinds = dict[str, dict[str, int]]  # of each key: kind of values -> number of the first line with one
SAMPLED_ROWS = 1 << 12
LIST, OF = "a list", " of "
EXAMPLE = {"user_id": 1, "item_id": 2}
HUGE, LONGEST = "a huge integer", 38  # digits
MIXED = {FAULT: "holds objects or values of several kinds: expected values, or lists of values, of one kind"}


class _JsonLines(TextFormat):
    """One JSON object per line. Each column has the one type of all its values; a key that a line lacks is null."""

    name, title = "jsonl", "JSON lines"
    endings = (".json", ".jsonl", ".ndjson")
    has_types = True

    def __init__(self, columns: FileColumns | None = None) -> None:
        self._columns = columns
        self._schemas: dict[str, Any] = {}  # of each file whose head was read

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        if start.ending in (".jsonl", ".ndjson") or start.head.first_line.lstrip().startswith("{"):
            return True
        if start.ending in self.endings:
            raise InputError(start.path, f": not JSON lines: expected one object per line, such as {EXAMPLE}")
        return False

    def bound(self, columns: FileColumns, n_threads: int) -> _JsonLines:
        return _JsonLines(columns)

    def head(self, path: str) -> FileHead:
        """Return the schema of a file; Python reads all lines unless values are like those of the first ones."""
        pa = require("pyarrow", "cli", what="reading files")
        assert self._columns is not None
        head = read_head(path)
        first = list(_first_objects(itertools.islice(head.lines(), SAMPLED_ROWS)))
        kinds, first_keys = _kinds_of(enumerate(first, 1)), first[0] if first else {}
        if self._columns.reads_all or not self._has_kinds(path, head.mark, kinds):
            kinds = _kinds_of(_objects(path))
        fields = []
        for name in dict.fromkeys((*first_keys, *sorted(kinds))):
            if kinds[name] or name in first_keys:
                kind = _type_of(kinds[name])
                if kind is None and name in self._columns.names:
                    raise _several_kinds(path, name, kinds[name])
                fields.append(pa.field(name, pa.string(), metadata=MIXED) if kind is None else pa.field(name, kind))
        self._schemas[path] = pa.schema(fields)
        return FileHead(self._schemas[path], None if head.first_line else 0)

    def _has_kinds(self, path: str, start: int, kinds: Kinds) -> bool:
        """Return whether all values of the columns that may be read are of these kinds."""
        import pyarrow as pa

        assert self._columns is not None
        types = {name: _type_of(kinds.get(name, {})) for name in sorted(self._columns.names)}
        if None in types.values():
            return False
        try:
            return all(are_exact(rows.columns) for rows in _parsed(path, start, types))
        except (pa.ArrowInvalid, ValueError):
            return False

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        names = [self._schemas[path].names[at] for at in wanted]
        yield from _parsed(path, read_head(path).mark, dict(zip(names, wanted.values(), strict=True)))

    def place(self, path: str, position: int) -> str:
        return line_of(path, position)

    def rows(self, path: str) -> Iterator[object]:
        return _objects(path)


def _parsed(path: str, start: int, types: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the rows of a file with columns of some types; raise for values of other types."""
    import pyarrow as pa
    from pyarrow import json

    options = json.ParseOptions(
        explicit_schema=pa.schema(list(types.items())), newlines_in_values=False, unexpected_field_behavior="ignore"
    )
    for chunk in chunks(path, start):
        if not chunk.isspace():
            if not chunk.lstrip().startswith(b"{"):  # the process would end if it began with `null`
                raise ValueError("expected one object per line")
            reading = json.ReadOptions(use_threads=False, block_size=len(chunk))
            rows = json.read_json(pa.BufferReader(chunk), reading, options)
            n_lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
            if len(rows) != n_lines and len(rows) != sum(map(bool, map(bytes.strip, chunk.splitlines()))):
                raise ValueError("expected one object per line")
            rows.validate(full=True)  # PyArrow takes any bytes for strings
            yield from rows.to_batches()


def _first_objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of lines; none of a line that has none, or that was cut."""
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def _objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line that is not blank, and its object; raise ValueError for a line without one."""
    for number, read in enumerate(lines_of(path), 1):
        line = read.removeprefix(codecs.BOM_UTF8)
        if not line.strip():
            continue
        if number > 1 and line is not read:
            raise ValueError(f"line {number}: a byte order mark, which JSON does not allow: write the file without it")
        text = line.decode()
        try:
            value = json.loads(text, object_pairs_hook=_object_of)
        except RecursionError:
            raise ValueError(f"line {number}: nested too deep") from None
        except ValueError as error:
            raise ValueError(f"line {number}: {getattr(error, 'msg', error)}") from None
        if not _is_utf8(value):
            raise ValueError(f"line {number}: an unpaired surrogate (\\ud800 to \\udfff), which is not a character")
        if not isinstance(value, dict):
            raise ValueError(f"line {number}: expected one object, such as {EXAMPLE}")  # noqa: TRY004 - of the file
        yield number, value


def _is_utf8(value: Any) -> bool:
    """Return whether all strings in a JSON value can be encoded as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the keys and values of an object; raise ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"duplicate key in an object with the keys {', '.join(repr(name) for name, _ in pairs)}")
    return found


def _kinds_of(objects: Iterable[tuple[int, dict[str, Any]]]) -> Kinds:
    """Return the kinds of the values of all keys, null apart."""
    kinds: Kinds = {}
    for number, values in objects:
        for name, value in values.items():
            found = kinds.setdefault(name, {})
            for kind in _kinds_of_value(value):
                found.setdefault(kind, number)
    return kinds


def _kinds_of_value(value: Any) -> list[str]:
    """Return the kind of a value, of a list also those of its values; none of null."""
    if value is None:
        return []
    if isinstance(value, list):
        return [LIST, *{f"{LIST}{OF}{kind}" for own in value for kind in _kinds_of_value(own)}]
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) <= MAX_EXACT_INTEGER:
            return ["an integer"]
        if -(2**63) <= value < 2**63:
            return ["a long integer"]
        return [HUGE if abs(value) < 10**LONGEST else f"an integer of more than {LONGEST} digits"]
    kinds = {str: "a string", bool: "true or false", float: "a decimal number", dict: "an object"}
    return [kinds[type(value)]]


def _type_of(kinds: Collection[str]) -> Any:
    """Return the type of Arrow for values of all kinds; None if there is none."""
    import pyarrow as pa

    lists = [kind for kind in kinds if kind.startswith(LIST)]
    if lists:
        own = {kind.removeprefix(LIST + OF) for kind in lists} - {LIST}
        held = _type_of(own) if own else pa.string()  # lists of nulls alone
        is_plain = held is not None and not pa.types.is_list(held) and len(lists) == len(kinds)
        return pa.list_(held) if is_plain else None
    types: tuple[tuple[set[str], Any], ...] = (
        (set(), pa.null()),
        ({"a string"}, pa.string()),
        ({"true or false"}, pa.bool_()),
        ({"an integer", "a long integer"}, pa.int64()),
        ({"an integer", "a long integer", HUGE}, pa.decimal128(LONGEST, 0)),
        ({"an integer", "a decimal number"}, pa.float64()),
    )
    return next((kind for known, kind in types if {*kinds} <= known), None)


def _several_kinds(path: str, name: str, kinds: Mapping[str, int]) -> InputTypeError:
    """Return the error for a column with values of several kinds, or of one that is not read."""
    plain = {kind: number for kind, number in kinds.items() if not kind.startswith(LIST + OF) or len(kinds) == 2}
    found = ", ".join(f"{kind} in line {number}" for kind, number in sorted(plain.items(), key=lambda own: own[1]))
    wanted = "expected values of one kind" if len(plain) > 1 else "expected plain values, or lists of them"
    return InputTypeError(path, f": column {name!r} holds {found}: {wanted}")


JSON_LINES = _JsonLines()
