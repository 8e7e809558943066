"""Files of any format as SQL sources, and the reasons why DuckDB could not read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from fastrec.files.formats.base import Source
from fastrec.files.formats.csv import open_csv
from fastrec.files.formats.foreign import first_sentence
from fastrec.files.formats.jsonl import json_reason, open_json
from fastrec.files.formats.parquet import open_parquet
from fastrec.files.formats.trec import open_trec, trec_reason
from fastrec.files.paths import Files

__all__ = ["open_source", "reason_of"]


def open_source(
    con: DuckDBPyConnection, files: Files, format_: str, roles: Mapping[str, str], names: set[str], attempt: int = 0
) -> Source:
    """Return the SQL source of files: what reads them, and their columns.

    `names` are the columns that may be read. `roles` is {role: name}, the names for the columns of a TREC file, which
    has none of its own.
    """
    if format_ == "trec":
        return open_trec(files, roles)
    if format_ == "csv":
        return open_csv(con, files, names, attempt)
    return (open_parquet if format_ == "parquet" else open_json)(con, files, names)


# Errors


def reason_of(files: Files, format_: str, error: Exception) -> str:
    """Return why a file cannot be read: our own reason if DuckDB's names no line or a wrong one, else DuckDB's."""
    if format_ == "jsonl":
        return json_reason(files.paths[0]) or first_sentence(error, files.paths[0])
    if format_ == "trec":
        return trec_reason(files.paths[0]) or first_sentence(error, files.paths[0])
    return first_sentence(error, files.paths[0])
