"""SQL sources of TREC runs and judgements."""

from __future__ import annotations

from collections.abc import Mapping

from fastrec.exceptions import InputError
from fastrec.files.formats.base import FILE, Source, names_files, quoted, reader_sql, text_source
from fastrec.files.formats.recognise import (
    TREC_COMMENT,
    TREC_ROLES,
    TREC_RUN,
    compression_of,
    fields_of_line,
    lines_of,
    read_heads,
)
from fastrec.files.paths import Files

__all__ = ["open_trec", "trec_reason"]


# TREC


def open_trec(files: Files, names: Mapping[str, str]) -> Source:
    """Return the SQL source of a run (qid Q0 docid rank score tag) or judgements (qid iter docid rel).

    Spaces and tabs separate columns. As in trec_eval, a tag may have several words, and # begins a comment line.
    """
    heads = read_heads(files.paths)
    counts = [len(head.trec_fields) for head in heads]
    for head, count in zip(heads, counts, strict=True):
        if count not in TREC_ROLES:
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
    sql = (
        f"(SELECT string_split_regex(trim(line, {blank}), '[ \t]+') AS fields{naming} FROM {lines} "
        f"WHERE trim(line, {blank}) <> '' AND NOT starts_with(trim(line, {blank}), {TREC_COMMENT!r}))"
    )
    fits = f"len(fields) {'>=' if counts[0] == TREC_RUN else '='} {counts[0]}"
    found = {
        names[role]: (f"CASE WHEN {fits} THEN fields[{n}] ELSE error('columns') END", "VARCHAR")
        for n, role in enumerate(TREC_ROLES[counts[0]], 1)
        if role is not None and role in names
    }
    return text_source(files, "trec", sql, found, [head.path for head in heads if head.first_line])


def trec_reason(path: str) -> str:
    """Return what is wrong with the first line that is not TREC; "" if all lines are."""
    wanted = 0
    for number, line in enumerate(lines_of(path), 1):
        if line.lstrip().startswith(TREC_COMMENT.encode()):
            continue
        found = len(fields_of_line(line.decode(errors="replace")))
        wanted = wanted or min(found, TREC_RUN)
        if found not in (0, wanted) and not found > wanted == TREC_RUN:
            return f"line {number}: {wanted} columns expected, {found} found"
    return ""
