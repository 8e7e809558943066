"""Peak memory of whole processes that evaluate files under `memory=`, as shares of the promised peak.

The files hold lists with integers or strings of 10, 100 and 500 characters as ids, as Parquet, CSV, or highly
compressed gzip, or scored logs in which most scores differ. A peak counts only if the values under the limit and in
memory have the same bits.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.files import LIBRARIES, SPARE_MEMORY
from bench.measure import Spread, run_python
from bench.scored import Promise

MB = 1_000_000
IN_MEMORY = 1 << 40  # a limit that nothing exceeds
ROWS_AT_ONCE = 250_000
LENGTH = 100  # of a list
CODE = """
import json, sys
import fastrec
paths, metrics = map(json.loads, sys.argv[1:3])
report = fastrec.evaluate_files(*paths, metrics=metrics, memory=int(sys.argv[3]), temp_directory=sys.argv[4])
with open("/proc/self/status") as status:  # the peak since this program began
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([peak, {name: report[name].hex() for name in report}]))
"""


FORMS = {"parquet": "Parquet", "csv": "CSV", "csv.gz": "CSV in gzip"}


class Case(NamedTuple):
    """File of lists or of scored rows, and a memory limit."""

    rows: int
    characters: int  # of each id; 0 for integers
    limit: int
    form: str = "parquet"  # file extension
    log: bool = False

    @property
    def metrics(self) -> list[str]:
        """The metrics to compute."""
        return ["auc", "gauc"] if self.log else ["ndcg@10", "recall@10", "map"]

    @property
    def name(self) -> str:
        """Name of the case."""
        ids = f"ids of {self.characters} characters" if self.characters else "integers"
        ids += ", scored log" * self.log
        return f"{FORMS[self.form]}, {self.rows} rows, {ids}, memory={self.limit}"


FULL = [
    Case(6_000_000, 100, 1_000 * MB),
    Case(4_500_000, 100, 500 * MB, "csv.gz"),
    Case(450_000, 500, 200 * MB, "csv.gz"),
    Case(20_000_000, 0, 500 * MB),
    Case(20_000_000, 0, 500 * MB, log=True),
    Case(5_000_000, 0, 100 * MB, "csv"),
    Case(5_000_000, 0, 1_000 * MB, "csv"),
    *(
        Case(rows, characters, limit * MB, form)
        for form in ("parquet", "csv")
        for characters, sizes in ((10, (2, 8, 30)), (100, (1, 3, 8)), (500, (0.45, 0.9, 2)))
        for rows, limit in zip((int(size * MB) for size in sizes), (100, 500, 2_000), strict=True)
    ),
]
QUICK = [
    Case(300_000, 0, 100 * MB, log=True),
    Case(100_000, 100, 100 * MB),
    Case(200_000, 10, 100 * MB, "csv.gz"),
    Case(50_000, 500, 100 * MB, "csv"),
]
TINY = [Case(2_000, 10, 64 * MB, "csv.gz"), Case(2_000, 0, 64 * MB, log=True)]


def columns(case: Case, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield rows in pieces: of lists by user, with new random items for every user, or of a log in random order."""
    rng = np.random.default_rng(seed)
    for first in range(0, case.rows, ROWS_AT_ONCE):
        rows = np.arange(first, min(first + ROWS_AT_ONCE, case.rows))
        if case.log:
            users, scores = rng.integers(0, case.rows // LENGTH, len(rows)), rng.random(len(rows))
            yield {"user_id": users, "label": (rng.random(len(rows)) < scores).astype(np.int8), "score": scores}
            continue
        start = rng.integers(0, case.rows, len(rows) // LENGTH + 2)[rows // LENGTH - first // LENGTH]
        yield {"user_id": rows // LENGTH, "item_id": start + rows % LENGTH}


def spelled(numbers: Any, characters: int) -> Any:
    """Return numbers as strings of one length, or unchanged."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.utf8_lpad(pa.array(numbers).cast(pa.string()), characters, "x") if characters else pa.array(numbers)


def write(case: Case, folder: Path) -> list[str]:
    """Write a log, or lists and a truth of five rows in a hundred."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    steps = {"log": 1} if case.log else {"recs": 1, "truth": 20}
    paths = [folder / f"{name}.{case.form}" for name in steps]
    for path, step in zip(paths, steps.values(), strict=True):
        tables = (
            pa.table({name: spelled(values[::step], case.characters) for name, values in piece.items()})
            for piece in columns(case)
        )
        first = next(tables)
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context((gzip.open if case.form == "csv.gz" else open)(path, "wb"))
            make = pq.ParquetWriter if case.form == "parquet" else pa.csv.CSVWriter
            writer = stack.enter_context(make(stream, first.schema))
            for table in (first, *tables):
                writer.write(table)
    return [str(path) for path in paths]


def measure_limits(folder: Path, limits: Sequence[Case]) -> list[Promise]:
    """Return the peak of each case over the promised one."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return []
    return [measure(case, folder) for case in limits]


def measure(case: Case, folder: Path) -> Promise:
    """Return the peak under the limit over the promised one, after a check that the values equal those in memory."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        paths = write(case, Path(name))
        given = json.dumps(paths), json.dumps(case.metrics)
        peak, values = json.loads(run_python(CODE, *given, str(case.limit), name)[1])
        whole, wanted = json.loads(run_python(CODE, *given, str(IN_MEMORY), name)[1])
    if values != wanted:
        raise AssertionError(f"{case.name}: {values} under the limit, {wanted} in memory")
    note = f"{peak // MB} MB; {whole // MB} MB without a limit"
    share = Spread.of([peak / (case.limit + SPARE_MEMORY)])
    return Promise(f"{case.name}: peak memory / (memory + 400 MB)", share, 1.0, None, note)
