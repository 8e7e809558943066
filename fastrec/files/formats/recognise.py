"""The format of files, from their first bytes and the endings of their names."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from fastrec.checks import check_choice
from fastrec.exceptions import InputError
from fastrec.files.paths import JSON_ENDINGS, OTHER_ENDINGS, Files

__all__ = [
    "FORMATS",
    "FORMAT_NAMES",
    "TREC_COMMENT",
    "TREC_ROLES",
    "TREC_RUN",
    "Head",
    "compression_of",
    "fields_of_line",
    "is_packed",
    "is_utf8",
    "json_object",
    "lines_of",
    "read_heads",
    "recognise",
]


FORMAT_NAMES = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines", "trec": "TREC"}
FORMATS = ("auto", *FORMAT_NAMES)
HEAD_BYTES = 1 << 20
TREC_COMMENT = "#"  # begins a line that is not a row
TREC_RUN = 6  # columns; the last one may have several words
TREC_ROLES = {  # the role of each column of a run and of judgements; None: ignored
    TREC_RUN: ("user", None, "item", "rank", "score", None),
    4: ("user", None, "item", "gain"),
}


# Which format


class Head(NamedTuple):
    """The beginning of a text file."""

    path: str
    text: str
    packed: bool  # with gzip

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return next(self._lines(), "")

    @property
    def trec_fields(self) -> list[str]:
        """The columns of the first line, if the file is TREC; empty if it has only comments."""
        lines = (line for line in self._lines() if not line.lstrip().startswith(TREC_COMMENT))
        return fields_of_line(next(lines, ""))[:TREC_RUN]

    def _lines(self) -> Iterator[str]:
        return (line for line in re.split(r"[\r\n]+", self.text) if line.strip())


def recognise(files: Files, names: set[str], input_format: str) -> str:
    """Return the format of files: `input_format` or, for "auto", the one that first bytes and endings indicate."""
    check_choice("input_format", input_format, FORMATS)
    found = [_recognise(path, names, input_format) for path in files.paths]
    for path, format_ in zip(files.paths, found, strict=True):
        if format_ != found[0]:
            raise InputError(
                path,
                f": {FORMAT_NAMES[format_]}, but {files.paths[0]} is {FORMAT_NAMES[found[0]]}: files that are "
                "read together must have one format",
            )
    return found[0]


def _recognise(path: str, names: set[str], input_format: str) -> str:
    """Return the format from the first bytes; raise if the ending of the name promises another one."""
    with open(path, "rb") as stream:
        magic = stream.read(4) == b"PAR1"
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if input_format == "auto" and magic:
        return "parquet"
    if input_format == "parquet" or (input_format == "auto" and ending in (".parquet", ".pq")):
        if not magic:
            raise InputError(path, ": not a Parquet file (it does not begin with PAR1)")
        return "parquet"
    if input_format != "auto":
        return input_format
    if ending in OTHER_ENDINGS:
        raise InputError(path, f": fastrec does not read {ending} files; convert it to Parquet, CSV or JSON lines")
    if ending in JSON_ENDINGS:
        return "jsonl"
    head = _read_head(path)
    if head.first_line.lstrip().startswith("{"):
        return "jsonl"
    if ending == ".json":
        raise InputError(path, ": not JSON lines: expected one object per line, such as {'user_id': 1, 'item_id': 2}")
    return "trec" if _is_trec(head.trec_fields, names) else "csv"


def fields_of_line(line: str) -> list[str]:
    """Return the words of a line of TREC."""
    return re.findall(r"[^ \t\r\n]+", line)


def _is_trec(fields: list[str], names: set[str]) -> bool:
    """Return whether a first line can only be of a run or of judgements: its second column is a fixed filler."""
    if len(fields) not in TREC_ROLES or fields[1].upper() not in ("Q0", "0") or names.intersection(fields):
        return False
    try:
        [float(number) for number in fields[3:5]]
    except ValueError:
        return False
    return True


def _read_head(path: str) -> Head:
    packed = is_packed(path)
    try:
        with gzip.open(path, "rb") if packed else open(path, "rb") as stream:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(stream.read(HEAD_BYTES))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, f": damaged gzip file: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(path, f": neither Parquet nor text in UTF-8: {error.reason}, byte {error.start}") from error
    if "\0" in text:
        raise InputError(path, ": neither Parquet nor text in UTF-8: it has zero bytes")
    return Head(path, text, packed)


def is_packed(path: str) -> bool:
    """Return whether a file is packed with gzip."""
    with open(path, "rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def read_heads(paths: Sequence[str]) -> list[Head]:
    """Return the beginning of each text file; raise unless all or none are packed, and packed ones are whole."""
    heads = [_read_head(path) for path in paths]
    for head in heads:
        if head.packed != heads[0].packed:
            one, other = (heads[0].path, head.path) if heads[0].packed else (head.path, heads[0].path)
            raise InputError(
                f"{one} is packed with gzip and {other} is not: pack all files that are read together, or none"
            )
        if head.packed:
            _check_gzip(head.path)
    return heads


def _check_gzip(path: str) -> None:
    """Raise if a gzip file is damaged; DuckDB does not check the checksum."""
    try:
        with gzip.open(path, "rb") as stream:
            while stream.read(HEAD_BYTES):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, f": damaged gzip file: {error}") from error


def lines_of(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked."""
    stream: IO[bytes]
    with gzip.open(path, "rb") if is_packed(path) else open(path, "rb") as stream:  # type: ignore[assignment]
        yield from stream


def compression_of(heads: Sequence[Head]) -> str:
    """Return the argument of DuckDB's readers for packed files."""
    return f"compression={'gzip' if heads[0].packed else 'uncompressed'!r}"


def is_utf8(value: Any) -> bool:
    """Return whether all strings in a JSON value can be encoded as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the keys and values of an object; raise ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"duplicate key in an object with the keys {', '.join(repr(name) for name, _ in pairs)}")
    return found
