"""SQL sources of TREC runs and judgements."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fastrec.exceptions import InputError
from fastrec.files.columns import FileColumns, ListColumns, is_number
from fastrec.files.formats.base import FILE, AnyColumns, Format, Source, names_files, quoted, reader_sql, text_source
from fastrec.files.formats.heads import Beginning, Head, compression_of, line_of, lines_of, read_heads
from fastrec.files.paths import Files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["TREC"]

COMMENT = "#"  # begins a line that is not a row, unless there is a number where a row has one
RUN = 6  # columns; the last one may have several words
ROLES = {  # the role of each column of a run and of judgements; None: ignored
    RUN: ("user", None, "item", "rank", "score", None),
    4: ("user", None, "item", "gain"),
}
NUMBER = {RUN: 4, 4: 3}  # the place of the score and of the gain


def _open_trec(files: Files, names: Mapping[str, str]) -> Source:
    """Return the SQL source of a run (qid Q0 docid rank score tag) or judgements (qid iter docid rel).

    Spaces and tabs separate columns. As in trec_eval, a tag may have several words. A line that begins with # is a
    comment, but that of a query whose id does is a row.
    """
    heads = read_heads(files)
    counts = [len(_first_row(head)) for head in heads]
    for head, count in zip(heads, counts, strict=True):
        if count not in ROLES:
            raise InputError(
                head.path,
                f": the first line has {count} columns; "
                "a TREC run has 6 (qid Q0 docid rank score tag), TREC judgements have 4 (qid iter docid rel)",
            )
        if count != counts[0]:
            raise InputError(head.path, f": {count} columns, but {counts[0]} in {heads[0].path}")
    options = (
        "auto_detect=false, header=false, comment='', delim='', quote='', escape='', strict_mode=false, "
        f"{compression_of(heads)}, columns={{line: 'VARCHAR'}}"
    )
    naming = f", {quoted(FILE)}" if names_files(files) else ""
    lines = reader_sql("read_csv", files.paths, options, name_files=names_files(files))
    blank = "' \t\r'"
    rows = (
        f"SELECT string_split_regex(trim(line, {blank}), '[ \t]+') AS fields{naming} FROM {lines} "
        f"WHERE trim(line, {blank}) <> ''"
    )
    no_number = f"TRY_CAST(fields[{NUMBER[counts[0]] + 1}] AS DOUBLE) IS NULL"
    is_comment = f"fields[1] = {COMMENT!r} OR (starts_with(fields[1], {COMMENT!r}) AND {no_number})"
    sql = f"(FROM ({rows}) WHERE NOT ({is_comment}))"
    fits = f"len(fields) {'>=' if counts[0] == RUN else '='} {counts[0]}"
    found = {
        names[role]: (f"CASE WHEN {fits} THEN fields[{n}] ELSE error('columns') END", "VARCHAR")
        for n, role in enumerate(ROLES[counts[0]], 1)
        if role is not None and role in names
    }
    return text_source(files, TREC, sql, found, [head.path for head in heads if head.first_line])


def _is_comment(words: Sequence[str], n_columns: Collection[int] = (RUN, 4)) -> bool:
    """Return whether a line is no row of a file of so many columns."""
    places = [NUMBER[n] for n in n_columns if len(words) >= n]
    if not words or not words[0].startswith(COMMENT):
        return False
    return words[0] == COMMENT or not any(is_number(words[at]) for at in places)


def _trec_reason(path: str) -> str:
    """Return what is wrong with the first line that is not TREC; "" if all lines are."""
    wanted = 0
    for number, line in enumerate(lines_of(path), 1):
        words = _words(line.decode(errors="replace"))
        if _is_comment(words):
            continue
        found = len(words)
        wanted = wanted or min(found, RUN)
        if found not in (0, wanted) and not found > wanted == RUN:
            return f"line {number}: {wanted} columns expected, {found} found"
    return ""


def _words(line: str) -> list[str]:
    return re.findall(r"[^ \t\r\n]+", line)


def _first_row(head: Head) -> list[str]:
    """Return the columns of the first row, if the file is TREC; empty if it has only comments."""
    lines = (words for words in map(_words, head.lines()) if not _is_comment(words))
    return next(lines, [])[:RUN]


class _Trec(Format):
    """TREC runs and judgements. Their columns have no names, and the ranks in a run do not count."""

    name, title = "trec", "TREC"
    endings = (".run", ".trec")
    has_labels = False
    ids_are_strings = True

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        """Return whether a first row can only be TREC: its second column is a fixed filler."""
        fields = _first_row(start.head)
        if len(fields) not in ROLES or fields[1].upper() not in ("Q0", "0") or not {*fields}.isdisjoint(names):
            return False
        return all(map(is_number, fields[3:5]))

    def columns(self, columns: AnyColumns) -> AnyColumns:
        if isinstance(columns, ListColumns) and columns.rank is None:
            return replace(columns, score=columns.usual["score"])
        return columns

    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        return _open_trec(files, columns.usual)

    def place(self, path: str, position: int) -> str:
        return line_of(path, position, lambda line: _is_comment(_words(line.decode(errors="replace"))))

    def reason(self, path: str) -> str:
        return _trec_reason(path)


TREC = _Trec()
