"""Rows of text that all have the form of the first one, as programs write them, read into columns.

In doubt the reader raises `DoubtError`: it does not explain what is wrong with the text, or only unusual.
"""

from __future__ import annotations

import codecs
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.kernels import text as kernels
from fastrec.runtime.compiler import STEPS_INTERPRETED, Entry

__all__ = ["FLOAT", "INTEGER", "STRING", "Buffers", "DoubtError", "RowForm", "TextReader"]

Array = np.ndarray[Any, Any]
INTEGER, FLOAT, STRING = kernels.INTEGER, kernels.FLOAT, kernels.STRING
MAX_HARD = 1 << 10  # floats of a piece that Python reads
MAX_ASCII = 127
PADDING = 16  # bytes after a piece that the kernel may look at
MAX_PLAIN = 10**15  # JSON integers of more digits do not mix with decimal numbers


class DoubtError(Exception):
    """Text that a more careful reader must read."""


class RowForm(NamedTuple):
    """How every row of a file is written, judged by its first rows: fields between the same literals."""

    names: tuple[str, ...]  # of the columns
    literals: tuple[bytes, ...]  # before each field, and after the last one
    header: int  # bytes before the first row
    samples: tuple[Sequence[Any], ...]  # first values of each column: strings, or values of JSON
    typed: bool  # whether values have types, as in JSON

    @property
    def rows(self) -> tuple[tuple[str, ...], tuple[bytes, ...], bool]:
        """What files that are read together have in common."""
        return self.names, self.literals, self.typed

    @property
    def line_break(self) -> bytes:
        """The bytes that end a line."""
        return b"\r\n" if self.literals[-1].endswith(b"\r\n") else b"\n"


class Buffers:
    """Memory of a thread for pieces of text of at most `size` bytes."""

    def __init__(self, size: int, n_strings: int) -> None:
        self.data = bytearray(size + PADDING)
        self.text = np.empty((n_strings, size + PADDING), np.uint8)
        self.hard = np.empty((MAX_HARD, 4), np.int64)
        self.state = np.zeros(2, np.int64)

    def set_floats(self, floats: Array) -> None:
        """Write the floats that the kernel was not certain of."""
        for own, row, start, end in self.hard[: self.state[1]].tolist():
            floats[own, row] = float(self.data[start:end])


class TextReader:
    """Reads the wanted columns of rows of a form. `kinds` of fields: {column: INTEGER, FLOAT or STRING}."""

    def __init__(self, form: RowForm, kinds: Mapping[str, int]) -> None:
        self._columns = {
            kind: [name for name, own in kinds.items() if own == kind] for kind in (INTEGER, FLOAT, STRING)
        }
        self._form = _form_of(form, kinds, self._columns)
        self._limit = MAX_PLAIN if form.typed else MAX_EXACT_INTEGER

    def load(self, n_bytes: int) -> None:
        """Load the kernel for text of `n_bytes`, or raise `DoubtError` if Python would have to run it for long."""
        entry = _entry()
        self._kernel = entry.suited_to(n_bytes, *self._arguments(self.buffers(0), 0, 0, 0)[0])
        if self._kernel == entry.interpreted and n_bytes > STEPS_INTERPRETED:
            raise DoubtError

    def buffers(self, size: int) -> Buffers:
        """Return memory for pieces of at most `size` bytes."""
        return Buffers(size, len(self._columns[STRING]))

    def read(self, room: Buffers, first: int, last: int) -> dict[str, Any]:
        """Return the columns of the lines between two places, as arrays or, of strings, as Arrow arrays."""
        import pyarrow as pa

        data = np.frombuffer(room.data, np.uint8)[first:last]
        n_rows = int(np.count_nonzero(data == kernels.NEWLINE))
        arguments, columns = self._arguments(room, first, last, n_rows)
        if self._kernel(*arguments) != n_rows or (data.max() > MAX_ASCII and not _is_utf8(data)):
            raise DoubtError
        room.set_floats(columns.floats)
        floats = columns.floats[: len(self._columns[FLOAT]), :n_rows]
        if floats.size and not np.abs(floats).max() < self._limit:
            raise DoubtError
        found: dict[str, Any] = dict(zip(self._columns[INTEGER], columns.integers, strict=True))
        found |= zip(self._columns[FLOAT], floats, strict=True)
        for name, own, text in zip(self._columns[STRING], columns.offsets, room.text, strict=True):
            buffers = [None, pa.py_buffer(own), pa.py_buffer(text[: own[-1]].copy())]
            found[name] = pa.Array.from_buffers(pa.string(), n_rows, buffers)
        return found

    def _arguments(
        self, room: Buffers, first: int, last: int, n_rows: int
    ) -> tuple[tuple[Any, ...], kernels.ColumnsOfRows]:
        """Return the arguments of the kernel for a piece, and the columns among them."""
        n_integers, n_floats, n_strings = (len(names) for names in self._columns.values())
        integers = np.empty((n_integers, n_rows), np.int64)
        floats = np.empty((max(n_floats, 1), n_rows + 1))
        offsets = np.zeros((n_strings, n_rows + 1), np.int32)
        room.state[0] = first
        columns = kernels.ColumnsOfRows(integers, floats, floats.view(np.uint64), offsets, room.text)
        data = np.frombuffer(room.data, np.uint8)
        return (data, np.int64(last), self._form, columns, room.hard, room.state), columns


def _form_of(form: RowForm, kinds: Mapping[str, int], columns: Mapping[int, list[str]]) -> kernels.FormOfRows:
    """Return the form of rows for the kernel."""
    fields = []
    end = 0
    for name, literal in zip(form.names, form.literals[:-1], strict=True):
        kind = kinds.get(name, kernels.SKIPPED_JSON if form.typed else kernels.SKIPPED)
        quoting = kernels.EITHER
        if form.typed and name in kinds:
            quoting = kernels.QUOTED if kind == STRING else kernels.BARE
        end += len(literal)
        fields.append((kind, columns[kind].index(name) if name in kinds else 0, quoting, end))
    fields.append((kernels.SKIPPED, 0, kernels.BARE, end + len(form.literals[-1])))
    literals = np.frombuffer(bytearray(b"".join(form.literals)), np.uint8)
    return kernels.FormOfRows(np.array(fields), literals, _classes(form), *_powers())


def _classes(form: RowForm) -> Array:
    """Return the class of each byte in a bare string, and in a quoted one."""
    found = np.full((2, 256), kernels.ORDINARY, np.uint8)
    found[:, :32] = kernels.UNUSUAL
    found[:, kernels.QUOTE] = kernels.UNUSUAL, kernels.STOP
    if form.typed:
        found[:, ord("\\")] = kernels.UNUSUAL
    else:
        found[0, [*b"".join(form.literals), *b"\r\n"]] = kernels.STOP
    return found


@functools.cache
def _powers() -> tuple[Array, Array, Array]:
    """Return small powers of ten as integers and as floats, and the first 128 bits of all."""
    found = []
    for power in range(kernels.MIN_POWER, kernels.MAX_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:  # rounded up
            five = (1 << (2 * five.bit_length() + 128)) // five + 1
        shift = five.bit_length() - 128
        five = five >> shift if shift > 0 else five << -shift
        found.append((five >> 64, five & (2**64 - 1)))
    tens = [10**n for n in range(kernels.EXACT_POWER + 1)]
    return np.array(tens[: kernels.MAX_DIGITS + 1], np.uint64), np.array(tens, float), np.array(found, np.uint64)


@functools.cache
def _entry() -> Entry:
    return Entry(kernels.read_rows, "read_rows")


def _is_utf8(data: Array) -> bool:
    try:
        codecs.utf_8_decode(data.data, "strict", True)  # noqa: FBT003 - the decoder takes no keywords
    except UnicodeDecodeError:
        return False
    return True
