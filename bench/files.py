"""Files, in whole processes: `python -m bench.files [--small] [--rounds N] [--only WORDS] [--json FILE]`.

fastrec computes 30 values, with all checks. Rivals are the better of a Polars and a DuckDB query: once for the same 30
values, which must be equal to 1e-9, and once for NDCG@10 alone, for which they drop nine rows in ten while they read.
"Only reading" is Polars that reads the columns and computes nothing.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import cases
from bench import file_rivals as programs
from bench.measure import BUSY, Spread, Turns, compact, describe_machine, run_python, wait_until_calm
from bench.scored import Promise

RESULTS = Path(__file__).resolve().parent / "files.json"
LENGTH = 100
SPARE_MEMORY = 400e6
STREAMED_ROUNDS = 5
TOLERANCE = 1e-9
LIBRARIES = ("duckdb", "polars", "pyarrow")
USERS_AT_ONCE = 10_000  # in a piece of a log
POSITIVES = 0.07
OURS, READING = "fastrec", "only reading"
IMPORTS = "import numpy, numba, duckdb"
STREAM = """
import json, sys, time
import fastrec
start = time.perf_counter()
report = fastrec.evaluate_files(sys.argv[1], sys.argv[2], ["ndcg@10", "recall@10"], memory=int(sys.argv[3]),
                                temp_directory=sys.argv[4])
with open("/proc/self/status") as status:  # the peak since this program began; other counters include earlier memory
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([time.perf_counter() - start, peak, report["ndcg@10"]]))
"""


class Work(NamedTuple):
    """Files to evaluate, and the largest promised ratio to the better rival."""

    kind: str  # "sorted" by user, "shuffled", or "strings": shuffled with string ids
    form: str  # file extension
    users: int
    target: float | None = None
    log: bool = False
    n_files: int = 1  # of each table

    @property
    def name(self) -> str:
        """Name of the row."""
        what = "scored log" if self.log else {"strings": "strings, shuffled"}.get(self.kind, f"integers, {self.kind}")
        more = f", {self.kind}" if self.log else ""
        form = self.form if self.n_files == 1 else f"{self.form} in {compact(self.n_files)} files"
        return f"{form}, {what}{more}, {compact(self.users * LENGTH)} rows"


FULL = (
    Work("sorted", "parquet", 200_000, 0.7),
    Work("shuffled", "parquet", 200_000, 0.9),
    Work("strings", "parquet", 200_000, 1.1),
    Work("shuffled", "csv", 50_000, 1.2),
    Work("strings", "csv", 50_000, 1.2),
    Work("sorted", "parquet", 100_000, 1.5, n_files=10_000),
    Work("sorted", "parquet", 1_000_000, 0.8, log=True),
    Work("shuffled", "parquet", 1_000_000, 0.8, log=True),
)
SMALL = tuple(work._replace(users=300, n_files=min(work.n_files, 30)) for work in FULL)


class Row(NamedTuple):
    """What fastrec and a rival took for the same files."""

    files: str
    what: str  # that the rival computes
    rival: str
    ratio: float
    ours: float  # seconds
    theirs: float
    target: float | None = None
    used_by_others: float = 0.0  # processors


def write_lists(folder: Path, work: Work) -> list[str]:
    """Write lists, once with scores and once with ranks, and their truth; return the three paths."""
    log = cases.make_log(work.users, LENGTH)
    rng = np.random.default_rng(2)
    paths = []
    for name, items, indptr in (("recs", log.rec_items, log.rec_indptr), ("truth", log.truth_items, log.truth_indptr)):
        sizes = np.diff(indptr)
        order = np.arange(len(items)) if work.kind == "sorted" else rng.permutation(len(items))
        columns = {"user_id": np.repeat(np.arange(work.users), sizes)[order], "item_id": items.astype(np.int64)[order]}
        ids = (
            {column: spelled(values, column[0]) for column, values in columns.items()} if work.kind == "strings" else {}
        )
        more: dict[str, dict[str, Any]] = {"": {}}
        if name == "recs":
            ranks = (np.arange(len(items)) - np.repeat(indptr[:-1], sizes) + 1)[order]
            scores = (rng.random(len(items)) * 0.9 - ranks).astype(np.float32)  # no two of a user are equal
            more = {"-scores": {"score": scores}, "-ranks": {"rank": ranks}}
        for suffix, column in more.items():
            path = folder / f"{name}-{work.kind}{suffix}"
            paths.append(write(path, {**columns, **ids, **column}, work.form, work.n_files))
    return paths


def spelled(numbers: Any, letter: str) -> Any:
    """Return numbers as strings of ten characters."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.binary_join_element_wise(letter, compute.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0"), "")


def write(path: Path, columns: dict[str, Any], form: str, n_files: int = 1) -> str:
    """Write columns to a file, or to several in a folder; return its path, or their pattern."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    whole = pa.table(columns)
    written = pq.write_table if form == "parquet" else pa.csv.write_csv
    if n_files == 1:
        written(whole, str(path.with_suffix(f".{form}")))
        return str(path.with_suffix(f".{form}"))
    path.mkdir()
    edges = np.linspace(0, len(whole), n_files + 1).astype(np.int64).tolist()
    for nth, (first, last) in enumerate(itertools.pairwise(edges)):
        written(whole.slice(first, last - first), str(path / f"part-{nth:05}.{form}"))
    return str(path / f"*.{form}")


def write_log(folder: Path, work: Work) -> list[str]:
    """Write a log of scored, labelled rows; no two scores of a user are equal."""
    rng = np.random.default_rng(3)
    columns: dict[str, list[Any]] = {"user_id": [], "label": [], "score": []}
    for first in range(0, work.users, USERS_AT_ONCE):
        n = min(USERS_AT_ONCE, work.users - first)
        places = rng.permuted(np.tile(np.arange(LENGTH), (n, 1)), axis=1)
        scores = ((places + 0.9 * rng.random(places.shape)) / LENGTH).astype(np.float32).ravel()
        columns["user_id"].append(np.repeat(np.arange(first, first + n), LENGTH))
        columns["label"].append((rng.random(len(scores)) < 2 * POSITIVES * scores).astype(np.int8))
        columns["score"].append(scores)
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    if work.kind == "shuffled":
        order = rng.permutation(len(whole["score"]))
        whole = {name: values[order] for name, values in whole.items()}
    return [write(folder / "log", whole, work.form)]


def compare(folder: Path, work: Work, rounds: int) -> list[Row]:
    """Time whole processes in turns, after a check that their values are equal."""
    if work.log:
        paths = write_log(folder, work)
        rivals = {"DuckDB": programs.DUCKDB_LOG, "Polars": programs.POLARS_LOG}
        what = f"{', '.join(programs.LOG_METRICS)} / gauc and log_loss alone"
        return turn_by_turn(work, {OURS: programs.FASTREC_LOG, **rivals, READING: programs.READ}, paths, what, rounds)
    by_score, by_rank, truth = write_lists(folder, work)
    same = {OURS: programs.FASTREC, "DuckDB": programs.DUCKDB, "Polars": programs.POLARS, READING: programs.READ}
    one = {OURS: programs.FASTREC, "DuckDB": programs.DUCKDB_NDCG, "Polars": programs.POLARS_NDCG}
    rows = turn_by_turn(work, same, [by_score, truth], "the same 30 values", rounds)
    return rows + turn_by_turn(work, one, [by_rank, truth], "30 values / NDCG@10 alone", rounds, promised=False)


def turn_by_turn(
    work: Work, codes: dict[str, str], paths: list[str], what: str, rounds: int, *, promised: bool = True
) -> list[Row]:
    """Return the rows of the better rival and of only reading."""
    values = {name: json.loads(run_python(code, *paths)[1]) for name, code in codes.items()}
    for name, theirs in values.items():
        for metric, value in theirs.items():
            if not abs(value - values[OURS][metric]) <= TOLERANCE:
                raise AssertionError(f"{work.name}: {metric} of {name} is {value}, of {OURS} {values[OURS][metric]}")
    turns = Turns({name: functools.partial(run_python, code, *paths) for name, code in codes.items()}, rounds)
    best = min((name for name in codes if name not in (OURS, READING)), key=turns.median)
    rows = []
    for other, computes in ((best, what), (READING, READING)):
        if other in codes:
            ratio, target = turns.ratio(OURS, other), work.target if promised and other == best else None
            seconds = turns.median(OURS), turns.median(other)
            rival = "Polars" if other == READING else other
            rows.append(Row(work.name, computes, rival, ratio.median, *seconds, target, ratio.others))
    return rows


def table_of_files(found: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| file | computed | fastrec | the better rival | fastrec / rival | promised |",
        "|---|---|---|---|---|---|",
    ]
    for row in (Row(**own) for own in found["rows"]):
        promised = "" if row.target is None else f"≤ {row.target:g}"
        missed = ", **missed**" if row.target is not None and row.ratio > row.target else ""
        times = f"{row.ours:.3g} s | {row.rival} {row.theirs:.3g} s | {row.ratio:.3g} ×"
        lines.append(f"| {row.files} | {row.what} | {times} | {promised}{missed} |")
    busiest = max(row["used_by_others"] for row in found["rows"])
    busy = f" Other processes used up to {busiest:.2g} processors meanwhile." if busiest > BUSY else ""
    return "\n".join([*lines, "", f"Medians of {found['rounds']} rounds. {found['machine']}.{busy}"])


def compare_start(folder: Path, n_users: int, rounds: int) -> list[Promise]:
    """Time a small file against the imports alone."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return []
    by_score, _, truth = write_lists(folder, Work("sorted", "parquet", n_users))
    ours = functools.partial(run_python, programs.FASTREC, by_score, truth)
    turns = Turns({OURS: ours, "imports": functools.partial(run_python, IMPORTS)}, rounds)
    note = f"{turns.median(OURS) * 1e3:.3g} ms / {turns.median('imports') * 1e3:.3g} ms"
    what = f"Parquet, {n_users} users x {LENGTH} rows, sorted / importing numpy, numba and duckdb"
    return [Promise(what, turns.ratio(OURS, "imports"), 3.0, None, note)]


def measure(works: Sequence[Work], rounds: int, wait: float) -> list[Row]:
    """Measure rows and print them."""
    rows = []
    for work in works:
        with tempfile.TemporaryDirectory(prefix="fastrec-bench-") as folder:
            wait_until_calm(wait)
            found = compare(Path(folder), work, rounds)
        for row in found:
            print(f"{row.files:45} {row.what:40} {row.ratio:6.3g} ({row.ours:.3g} s / {row.rival} {row.theirs:.3g} s)")
        rows += found
    return rows


def write_large(folder: Path, n_rows: int) -> list[str]:
    """Write shuffled lists of 100 and a truth of 5 rows for each user, with DuckDB."""
    import duckdb

    n_users = n_rows // LENGTH
    paths = [str(folder / f"large-{name}-{n_rows}.parquet") for name in ("recs", "truth")]
    with duckdb.connect() as con:
        con.execute("SET preserve_insertion_order = false")
        for path, size, step in zip(paths, (LENGTH, 5), (1, 7), strict=True):
            rows, prime = n_users * size, 2_147_483_647
            con.execute(
                f"COPY (SELECT (i * {prime} % {rows}) // {size} AS user_id, "
                f"(i * {prime} % {rows}) % {size} * {step} * 1009 + 17 AS item_id, "
                f"CAST((i * {prime} % {rows}) % {size} + 1 AS INTEGER) AS rank FROM range({rows}) AS r(i)) "
                f"TO '{path}'"
            )
    return paths


def stream_files(folder: Path, n_rows: int, memory: int) -> list[Promise]:
    """Measure peak memory and time per row for files eight times as large as `memory`, and for half of their rows."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return []
    sizes = n_rows // 2, n_rows
    paths = {rows: write_large(folder, rows) for rows in sizes}
    took: dict[int, list[float]] = {rows: [] for rows in sizes}
    for rows in sizes * STREAMED_ROUNDS:
        seconds, peak, _ = json.loads(run_python(STREAM, *paths[rows], str(memory), str(folder))[1])
        took[rows].append(seconds)
    for path in itertools.chain(*paths.values()):
        Path(path).unlink()
    linear = [whole / half / 2 for half, whole in zip(*took.values(), strict=True)]
    rate = n_rows / statistics.median(took[n_rows]) / 1e6
    what = f"{n_rows} shuffled rows under memory={memory}"
    slope, share = Spread.of(linear), Spread.of([peak / (memory + SPARE_MEMORY)])
    return [
        Promise(f"{what}: time per row / with half the rows", slope, 1.3, None, f"{rate:.3g}M rows/s"),
        Promise(f"{what}: peak memory / (memory + 400 MB)", share, 1.0, None, f"{peak / 1e6:.0f} MB"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure files, print a line for each ratio, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.files", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="300 users, to check that everything runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for a calm machine")
    parser.add_argument("--only", default="", metavar="WORDS", help="only files whose name has these words")
    parser.add_argument(
        "--json",
        type=Path,
        help="write the results to a file, such as files.json; with --only, replace these rows",
    )
    options = parser.parse_args(arguments)
    works = [work for work in (SMALL if options.small else FULL) if options.only in work.name]
    rows = measure(works, options.rounds, options.wait)
    if options.json is not None:
        kept = json.loads(options.json.read_text(encoding="utf-8"))["rows"] if options.json.exists() else []
        kept = [row for row in kept if options.only and options.only not in row["files"]]
        names = [work.name for work in FULL]
        found = sorted(
            [*kept, *(row._asdict() for row in rows)],
            key=lambda row: names.index(row["files"]) if row["files"] in names else -1,
        )
        document = {
            "schema": 1,
            "machine": describe_machine()["machine"],
            "rounds": options.rounds,
            "rows": found,
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
