"""Files of any format as a source of rows, and why a database could not read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from fastrec.files.formats.base import Source, first_sentence
from fastrec.files.formats.csv import open_csv
from fastrec.files.formats.jsonl import json_reason, open_json
from fastrec.files.formats.parquet import open_parquet
from fastrec.files.formats.trec import open_trec, trec_reason
from fastrec.files.paths import Files

__all__ = ["open_source", "reason_of"]


def open_source(
    con: DuckDBPyConnection, files: Files, format_: str, roles: Mapping[str, str], names: set[str], attempt: int = 0
) -> Source:
    """What reads the files, and the columns that they have.

    `names` are the columns that may be read. `roles` is {role: name}: what the columns of a TREC file, which have no
    names, are to be called.
    """
    if format_ == "trec":
        return open_trec(files, roles)
    if format_ == "csv":
        return open_csv(con, files, names, attempt)
    return (open_parquet if format_ == "parquet" else open_json)(con, files, names)


# Errors


def reason_of(files: Files, format_: str, error: Exception) -> str:
    """Why a file cannot be read: DuckDB's reason or, where that names no line or a wrong one, our own."""
    if format_ == "jsonl":
        return json_reason(files.paths[0]) or first_sentence(error)
    if format_ == "trec":
        return trec_reason(files.paths[0]) or first_sentence(error)
    return first_sentence(error)
