"""Rows sorted into DuckDB tables: all at once or, if strings are too long for that, one range of users at a time.

DuckDB merges runs that it sorted in memory, and holds blocks of every run meanwhile. With long strings it runs out of
memory on rows of a few times its limit. A range of users that DuckDB can sort in memory needs no merging.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrec.files.database import Tick, run
from fastrec.files.formats.base import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ranges_to_sort", "sort_rows"]

MERGED_STRING = 1.5e8  # bytes: DuckDB sorts at most memory**2 / MERGED_STRING bytes of strings at once, by experiment
RANGES = 4  # parts of a range that was too large
SAMPLED_KEYS = 50  # per range


class _Range(NamedTuple):
    """The rows with low <= first key < high; None: no bound."""

    low: Any = None
    high: Any = None

    def where(self, key: str) -> tuple[str, list[Any]]:
        """Return the condition in SQL, and the values of its question marks."""
        conditions = [f"{key} {sign} ?" for sign, bound in ((">=", self.low), ("<", self.high)) if bound is not None]
        values = [bound for bound in self if bound is not None]
        return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values

    def cut(self, bounds: Sequence[Any]) -> Iterator[_Range]:
        """Yield the pieces of the range between bounds."""
        return (_Range(*ends) for ends in pairwise((self.low, *bounds, self.high)))


def ranges_to_sort(text: int, memory: int) -> int:
    """Return the number of ranges of users to sort one after the other, if all strings have `text` bytes."""
    return 1 + int(text * MERGED_STRING / memory**2)


def sort_rows(con: DuckDBPyConnection, table: str, select: str, keys: Sequence[str], n_ranges: int, tick: Tick) -> None:
    """Create `table` from the rows of `select`, sorted by `keys` and `place`; the table has no column `place`."""
    import duckdb

    rows = _TableRows(con, table, select, quoted([*keys, "place"][0]), ", ".join(map(quoted, (*keys, "place"))))
    if n_ranges == 1:
        try:
            run(con, f"CREATE TABLE {table} AS {rows.sorted('')}", tick)
        except duckdb.OutOfMemoryException:
            n_ranges = RANGES
        else:
            return
    run(con, f"CREATE TABLE {table} AS {rows.sorted('')} LIMIT 0")
    ranges = rows.cut(_Range(), n_ranges)
    for nth, each in enumerate(ranges):

        def tick_of_range(share: float, nth: int = nth) -> None:
            tick((nth + share) / len(ranges))

        rows.add(each, tick_of_range)


class _TableRows(NamedTuple):
    """Rows on their way into a table."""

    con: DuckDBPyConnection
    table: str
    select: str
    key: str  # the first column to sort by
    order: str

    def sorted(self, where: str) -> str:
        """Return the SQL of the rows of a range, in order."""
        return f"SELECT * EXCLUDE (place) FROM ({self.select}) {where} ORDER BY {self.order}"

    def add(self, part: _Range, tick: Tick | None) -> None:
        """Add the rows of the next range in order, in smaller ranges if they are too many."""
        import duckdb

        where, values = part.where(self.key)
        try:
            run(self.con, f"INSERT INTO {self.table} {self.sorted(where)}", tick, values)
        except duckdb.OutOfMemoryException:
            smaller = self.cut(part, RANGES)
            if len(smaller) == 1:
                raise
            for each in smaller:
                self.add(each, None)

    def cut(self, part: _Range, n_ranges: int) -> list[_Range]:
        """Cut a range into about `n_ranges` of similar size, by a sample of the keys; fewer if users are few."""
        where, values = part.where(self.key)
        sample = f"SELECT {self.key} AS key FROM ({self.select}) {where}"
        shares = [nth / n_ranges for nth in range(1, n_ranges)]
        query = (
            f"SELECT quantile_disc(key, {shares}) FROM "
            f"(SELECT key FROM ({sample}) USING SAMPLE reservoir({SAMPLED_KEYS * n_ranges} ROWS) REPEATABLE (1))"
        )
        (found,) = run(self.con, query, None, values).fetchone() or (None,)
        bounds = sorted({bound for bound in found or () if part.low is None or bound > part.low})
        return list(part.cut(bounds))
