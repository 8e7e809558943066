"""Peaks of memory of whole processes that evaluate files under `memory=`, in shares of what is promised.

`python -m bench.limits [--quick]` writes files of integers, of texts of 10, 100 and 500 characters, and well-packed
gzip. Each row is peak / (limit + 400 MB). Before that, values under the limit and in memory must have the same bits.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.measure import run_python

MB = 1_000_000
SPARE_MEMORY = 400 * MB
IN_MEMORY = 1 << 40  # a limit that nothing exceeds
ROWS_AT_ONCE = 250_000
LENGTH = 100  # of a list
CODE = """
import json, sys
import fastrec
report = fastrec.evaluate_files(sys.argv[1], sys.argv[2], ["ndcg@10", "recall@10", "map"], memory=int(sys.argv[3]),
                                temp_directory=sys.argv[4])
with open("/proc/self/status") as status:  # the highest use since this program began
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([peak, {name: report[name].hex() for name in report}]))
"""


class Case(NamedTuple):
    """A file of lists, and a limit of memory."""

    rows: int
    characters: int  # of each id; 0 for integers
    limit: int
    packed: bool = False  # CSV with gzip; else Parquet

    @property
    def name(self) -> str:
        """What the case is called."""
        ids = f"ids of {self.characters} characters" if self.characters else "integers"
        form = "CSV in gzip" if self.packed else "Parquet"
        return f"{form}, {self.rows} rows, {ids}, memory={self.limit // MB} MB"


FULL = [
    Case(6_000_000, 100, 1_000 * MB),
    Case(4_500_000, 100, 500 * MB, packed=True),
    Case(450_000, 500, 200 * MB, packed=True),
    *(
        Case(rows, characters, limit * MB)
        for characters, sizes in ((10, (2, 8, 30)), (100, (1, 3, 8)), (500, (0.45, 0.9, 2)))
        for rows, limit in zip((int(size * MB) for size in sizes), (100, 500, 2_000), strict=True)
    ),
]
QUICK = [Case(100_000, 100, 100 * MB), Case(200_000, 10, 100 * MB, packed=True), Case(50_000, 500, 100 * MB)]


def columns(case: Case, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Rows of lists in pieces, by user, items drawn anew for every user."""
    rng = np.random.default_rng(seed)
    for first in range(0, case.rows, ROWS_AT_ONCE):
        rows = np.arange(first, min(first + ROWS_AT_ONCE, case.rows))
        start = rng.integers(0, case.rows, len(rows) // LENGTH + 2)[rows // LENGTH - first // LENGTH]
        yield {"user_id": rows // LENGTH, "item_id": start + rows % LENGTH}


def spelled(numbers: Any, characters: int) -> Any:
    """Numbers as texts of one length."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.utf8_lpad(pa.array(numbers).cast(pa.string()), characters, "x") if characters else pa.array(numbers)


def write(case: Case, folder: Path) -> list[str]:
    """Lists, and a truth of five rows in a hundred."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    paths = [folder / f"{name}.{'csv.gz' if case.packed else 'parquet'}" for name in ("recs", "truth")]
    for path, step in zip(paths, (1, 20), strict=True):
        tables = (
            pa.table({name: spelled(values[::step], case.characters) for name, values in piece.items()})
            for piece in columns(case)
        )
        first = next(tables)
        if case.packed:
            with gzip.open(path, "wb") as stream, pa.csv.CSVWriter(stream, first.schema) as writer:
                for table in (first, *tables):
                    writer.write(table)
        else:
            with pq.ParquetWriter(path, first.schema) as writer:
                for table in (first, *tables):
                    writer.write(table)
    return [str(path) for path in paths]


def measure(case: Case) -> dict[str, Any]:
    """The peak under the limit over what is promised, once the values are those of a run in memory."""
    with tempfile.TemporaryDirectory() as name:
        paths = write(case, Path(name))
        peak, values = json.loads(run_python(CODE, *paths, str(case.limit), name)[1])
        whole, wanted = json.loads(run_python(CODE, *paths, str(IN_MEMORY), name)[1])
        if values != wanted:
            raise AssertionError(f"{case.name}: {values} under the limit, {wanted} in memory")
        bytes_of_files = sum(Path(path).stat().st_size for path in paths)
    share = peak / (case.limit + SPARE_MEMORY)
    row = {"name": case.name, "ratio": round(share, 3), "peak": peak, "in_memory": whole, "files": bytes_of_files}
    print(f"{share:.2f}  {case.name}: peak {peak // MB} MB ({whole // MB} MB without a limit)", flush=True)
    return row


def main() -> None:
    """Measure all cases; the exit status is 1 if one exceeds what is promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [measure(case) for case in (QUICK if args.quick else FULL)]
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(any(row["ratio"] > 1 for row in rows))


if __name__ == "__main__":
    main()
