"""Tables of Delta and Iceberg: their libraries read the rows in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastrec.files.formats.base import FileHead, Format
from fastrec.files.lakes import Version


class TableFormat(Format):
    """The format of one table; its path stands for the rows of a version."""

    name = "table"

    def __init__(self, version: Version) -> None:
        self.title, self._version = version.title, version

    def head(self, path: str) -> FileHead:
        """Return the schema and the number of rows of the table."""
        return FileHead(self._version.schema, self._version.n_rows)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        """Yield the batches of the table with only the columns at these positions."""
        return self._version.batches([self._version.schema.names[nth] for nth in wanted])
