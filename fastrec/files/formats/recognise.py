"""The format of files, from their first bytes and the endings of their names."""

from __future__ import annotations

from collections.abc import Mapping

from fastrec.checks import check_choice, with_article
from fastrec.exceptions import Argument, InputError
from fastrec.files.formats.arrow import ARROW
from fastrec.files.formats.base import Format
from fastrec.files.formats.csv import CSV, csv_of
from fastrec.files.formats.heads import Beginning
from fastrec.files.formats.jsonl import JSON_LINES
from fastrec.files.formats.parquet import PARQUET
from fastrec.files.formats.registry import FORMATS, register
from fastrec.files.formats.trec import TREC
from fastrec.files.paths import Files

AUTO = "auto"
OTHER_ENDINGS = (".avro", ".orc", ".xlsx", ".npz")

for _format in (PARQUET, ARROW, CSV, JSON_LINES, TREC):
    register(_format)


def input_formats() -> tuple[str, ...]:
    """Return the values of `input_format`."""
    return (AUTO, *FORMATS)


def data_endings() -> set[str]:
    """Return the endings of the names of files in all formats."""
    return {ending for format_ in FORMATS.values() for ending in format_.endings}


def format_asked(csv: Mapping[str, str] | None, input_format: str) -> str | Format:
    """Return the format that a call asks for: CSV if it says how values are written, else `input_format`."""
    if csv is None:
        return input_format
    if input_format not in (AUTO, CSV.name):
        raise InputError(Argument("csv"), " says how CSV is written, but ", Argument("input_format", (input_format,)))
    return csv_of(csv)


def recognise(files: Files, names: set[str], input_format: str | Format) -> Format:
    """Return the format of files: `input_format` or, for "auto", the one that first bytes and endings indicate.

    A format in place of a name is that of all text.
    """
    if not isinstance(input_format, Format):
        check_choice("input_format", input_format, input_formats())
    if files.version is not None:
        return files.version
    found = [_recognise(Beginning(path), names, input_format) for path in files.paths]
    for path, format_ in zip(files.paths, found, strict=True):
        if format_ is not found[0]:
            why = f"{files.paths[0]} is {found[0].title}: files that are read together must have one format"
            raise InputError(path, f": {format_.title}, but {why}")
    return found[0]


def _recognise(start: Beginning, names: set[str], input_format: str | Format) -> Format:
    """Return the format of a file; raise if the ending of its name, or the caller, promises a format that it lacks.

    A format in place of a name is that of all text.
    """
    binary = [format_ for format_ in FORMATS.values() if format_.magic]
    having: list[Format] = [format_ for format_ in binary if format_.has_magic(start)]
    if isinstance(input_format, Format):
        return [*having, input_format][0]
    named = [each for each in binary if start.ending in each.endings]
    asked: Format | None = FORMATS.get(input_format) or next(iter(having + named), None)
    if asked is not None:
        if not asked.has_magic(start):
            magic = asked.magic.decode("latin-1")
            raise InputError(start.path, f": not {with_article(asked.title)} file (it does not begin with {magic})")
        return asked
    if start.ending in OTHER_ENDINGS and start.ending not in data_endings():
        mend = "convert it to Parquet, CSV or JSON lines"
        raise InputError(start.path, f": fastrec does not read {start.ending} files; {mend}")
    text = (format_ for format_ in FORMATS.values() if not format_.magic and format_ is not CSV)
    return next((format_ for format_ in text if format_.begins(start, names)), CSV)
