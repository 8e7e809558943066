"""TREC runs (qid Q0 docid rank score tag) and judgements (qid iter docid rel)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastrec.exceptions import InputError
from fastrec.files.columns import FileColumns, ListColumns, is_number
from fastrec.files.formats.base import AnyColumns, FileHead
from fastrec.files.formats.heads import Beginning, Head, line_of, lines_of, read_head
from fastrec.files.formats.text import TextFormat, chunks
from fastrec.runtime.extras import require

COMMENT = "#"  # begins a line that is not a row, unless there is a number where a row has one
RUN = 6  # columns; the last one may have several words
ROLES = {  # the role of each column, by their number; "": ignored
    RUN: ("user", "", "item", "rank", "score", ""),
    5: ("user", "", "item", "rank", "score"),  # a run without a tag
    4: ("user", "", "item", "gain"),  # judgements
    3: ("user", "item", "rank"),  # as MS MARCO has them
}
WORD, BLANKS, MORE_WORDS = "[^ \t]+", "[ \t]+", "(?:[ \t].*)?"


def _is_comment(words: Sequence[str], numbers: slice = slice(3, 5)) -> bool:
    """Return whether a line is no row; `numbers` are the columns that hold a gain, a rank or a score."""
    if not words or not words[0].startswith(COMMENT):
        return False
    return words[0] == COMMENT or not any(map(is_number, words[numbers]))


def _words(line: str) -> list[str]:
    return re.findall(r"[^ \t\r\n]+", line)


def _lines(chunk: bytes, n_columns: int) -> Any:
    """Return the lines of a chunk that are rows, as Arrow strings without blanks around them."""
    import pyarrow as pa
    from pyarrow import compute

    text = pa.array([chunk.replace(b"\r", b"\n")], pa.binary()).cast(pa.string())
    lines = compute.ascii_trim(compute.split_pattern(text, "\n").flatten(), " \t")
    lines = lines.filter(compute.not_equal(lines, ""))
    begun = lines.filter(compute.starts_with(lines, COMMENT)).to_pylist()
    number = min(n_columns, 5) - 1  # the column of the score, the gain or the rank
    comments = [line for line in begun if _is_comment(_words(line), slice(number, number + 1))]
    return lines.filter(compute.invert(compute.is_in(lines, pa.array(comments)))) if comments else lines


def _pattern(n_columns: int, at: Sequence[int]) -> str:
    """Return the regular expression of a row, with groups c0, c1, ... for the columns at some positions."""
    words = [f"(?P<c{nth}>{WORD})" if nth in at else WORD for nth in range(n_columns)]
    return f"^{BLANKS.join(words)}{MORE_WORDS if n_columns == RUN else ''}$"


def _first_row(head: Head) -> list[str]:
    """Return the columns of the first row, if the file is TREC; empty if it has only comments."""
    lines = (words for words in map(_words, head.lines()) if not _is_comment(words))
    return next(lines, [])[:RUN]


class _Trec(TextFormat):
    """TREC runs and judgements. Their columns have no names, and the ranks in a run do not count."""

    name, title = "trec", "TREC"
    endings = (".run", ".trec")
    has_labels = False
    ids_are_strings = True

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        """Return whether a first row can only be TREC: its second column is a fixed filler."""
        fields = _first_row(start.head)
        if len(fields) not in (RUN, 4) or fields[1].upper() not in ("Q0", "0") or not {*fields}.isdisjoint(names):
            return False
        return all(map(is_number, fields[3:5]))

    def columns(self, columns: AnyColumns, paths: Sequence[str]) -> AnyColumns:
        has_scores = len(_first_row(read_head(paths[0]))) != len(ROLES[3])
        if isinstance(columns, ListColumns) and columns.rank is None and has_scores:
            return replace(columns, score=columns.usual["score"])
        return columns

    def bound(self, columns: FileColumns, n_threads: int) -> _Trec:
        return _Trec(columns.usual)

    def head(self, path: str) -> FileHead:
        pa = require("pyarrow", "cli", what="reading files")
        head = read_head(path)
        schema = pa.schema([(name, pa.string()) for _, name in self._columns(head)])
        return FileHead(schema, None if head.first_line else 0)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import compute

        head = read_head(path)
        n_columns, columns = len(_first_row(head)), self._columns(head)
        pattern = _pattern(n_columns, [columns[nth][0] for nth in wanted])
        for chunk in chunks(path, head.mark):
            rows = compute.extract_regex(_lines(chunk, n_columns), pattern)
            if rows.null_count:
                raise ValueError(f"a line has not {n_columns} columns")
            yield pa.RecordBatch.from_struct_array(rows)

    def _columns(self, head: Head) -> list[tuple[int, str]]:
        """Return the position and the name of each column that may be read."""
        count = len(_first_row(head))
        if count not in ROLES:
            runs = "a TREC run has 6 (qid Q0 docid rank score tag), 5 without the tag, or 3 (qid docid rank)"
            wanted = f"{runs}; TREC judgements have 4 (qid iter docid rel)"
            raise InputError(head.path, f": the first line has {count} columns; {wanted}")
        return [(nth, self._names[role]) for nth, role in enumerate(ROLES[count]) if role in self._names]

    def place(self, path: str, position: int) -> str:
        return line_of(path, position, lambda line: _is_comment(_words(line.decode(errors="replace"))))

    def rows(self, path: str) -> Iterator[list[str]]:
        wanted = 0
        for number, line in enumerate(lines_of(path), 1):
            words = _words(line.decode())
            if _is_comment(words):
                continue
            found = len(words)
            wanted = wanted or min(found, RUN)
            if found not in (0, wanted) and not found > wanted == RUN:
                raise ValueError(f"line {number}: {wanted} columns expected, {found} found")
            yield words


TREC = _Trec({})
