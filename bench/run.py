"""Measure every promise of speed: `python -m bench.run [--quick] [--json FILE] [--only NAME] [--wait SECONDS]`.

Times are ratios of calls made in turns, as medians with quartiles; each row names the divisor. `floor` is the parallel
index loop of `bench.floor` over the same arrays. All checks of the input are on.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import cases, duels, files, frames, items, limits, models, policy, position, rivals, routes, scored, weighed
from bench.cases import Log
from bench.measure import (
    BUSY,
    ROOT,
    Others,
    Spread,
    Turns,
    compact,
    describe_machine,
    run_python,
    seconds_of,
    wait_until_calm,
)

METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
CUTOFFS = [1, 5, 10, 20, 100]
ROUTE = "a way to bring "  # the start of the names of rows from bench.routes
RESULTS = ROOT / "bench" / "results.json"


class Sizes(NamedTuple):
    """Sizes of all data, and numbers of rounds."""

    users: int  # with lists of 100
    scale: tuple[int, int]  # users with lists of 20, few and many
    giant: int  # rows of the one large user
    calls: int  # of the smallest input, one after the other
    rival_users: int
    warm_up_users: int  # before memory is measured
    scores: int  # for one global AUC
    frame_users: int  # with 100 rows, in frames and in files
    resampled: int  # rounds of resampling, for `users` users
    routes: tuple[int, int]  # rows of lists
    streamed: tuple[int, int]  # rows of files that do not fit in memory, and `memory`
    limits: Sequence[limits.Case]
    models: tuple[int, int]  # users and items, of which other sizes follow
    rounds: int
    fresh_rounds: int
    empty_rounds: int  # with an empty cache; 0 uses the current cache


FULL = Sizes(
    1_000_000,
    (100_000, 10_000_000),
    1_000_000,
    200,
    100_000,
    20_000,
    100_000_000,
    200_000,
    10_000,
    (100_000, 10_000_000),
    (400_000_000, 1_000_000_000),
    limits.FULL,
    (8192, 50_000),
    15,
    11,
    5,
)
QUICK = Sizes(
    100_000,
    (100_000, 1_000_000),
    100_000,
    100,
    20_000,
    20_000,
    10_000_000,
    50_000,
    10_000,
    (100_000, 1_000_000),
    (40_000_000, 100_000_000),
    limits.QUICK,
    (2048, 50_000),
    7,
    5,
    1,
)
TINY = Sizes(
    300,
    (200, 400),
    2_000,
    2,
    200,
    200,
    1_000,
    200,
    200,
    (1_000, 2_000),
    (2_000, 64_000_000),
    limits.TINY,
    (40, 300),
    1,
    1,
    0,
)  # only to check that everything still runs


class Row(NamedTuple):
    """Row of the table: a measured value (smaller is better) and the promised limit."""

    name: str
    spread: Spread
    unit: str  # "x" for ratios
    target: float | None = None
    stretch: float | None = None
    note: str = ""

    @property
    def busy(self) -> bool:
        """Whether other processes used the processors, which makes the value meaningless."""
        return self.spread.others > BUSY

    @property
    def met(self) -> bool | None:
        """Whether the value meets the target; None without a target or on a busy machine."""
        return None if self.target is None or self.busy else self.spread.median <= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON, with four digits of each number."""
        value, low, high = (float(f"{number:.4g}") for number in self.spread[:3])
        return {
            "name": self.name,
            "value": value,
            "low": low,
            "high": high,
            "unit": self.unit,
            "target": self.target,
            "stretch": self.stretch,
            "met": self.met,
            "used_by_others": round(self.spread.others, 2),
            "note": self.note,
        }


def evaluate(log: Log, metrics: Sequence[str] = METRICS, k: Sequence[int] = CUTOFFS, **options: Any) -> Any:
    """Evaluate all metrics at all cut-offs, with all checks."""
    import fastrec

    return fastrec.evaluate(log.recs, log.truth, metrics, k=k, **options)


def milliseconds(seconds: float) -> str:
    """Return seconds as a string, in milliseconds."""
    return f"{seconds * 1e3:.3g} ms"


def list_measures() -> list[str]:
    """Return every metric of lists and their truth alone, but for those that look at pairs of items."""
    from fastrec.metrics import graded, judged, lists, ranks, user_models
    from fastrec.metrics.declaration import DECLARED

    homes = [module.__name__ for module in (lists, ranks, judged, graded, user_models)]
    own = (metric for metric in DECLARED["lists"].values() if metric.formula.__module__ in homes)
    wanted = [metric for metric in own if metric.formula not in (ranks.ordered_pair_accuracy, ranks.ndpm)]
    return [metric.name + ("(max_gain=1)" if "max_gain" in metric.options else "") for metric in wanted]


def check_equal(first: Any, second: Any) -> None:
    """Raise unless two reports agree in every bit of their common metrics."""
    common = [name for name in first if name in second]
    if not common or any(first[name] != second[name] for name in common):
        raise AssertionError("two ways to the same numbers differ")


def bench_lists(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time lists of 100: against the floor, per user, with wide ids, one value."""
    from bench import floor

    log = cases.make_log(sizes.users, 100)
    wide = cases.widen(log)
    floor.check(log)
    report = evaluate(log)
    n_values = len(list(report))
    measures = list_measures()
    every = evaluate(log, measures, n_items=cases.N_ITEMS)
    check_equal(report, every)
    n_every = len(list(every))
    for other in (evaluate(wide), evaluate(log, per_user=True), evaluate(log, ["ndcg"], [10])):
        check_equal(report, other)
    del report, other, every
    turns = Turns(
        {
            "floor": lambda: floor.index(log),
            "slices": lambda: floor.slices(log),
            "flat": lambda: floor.flat(log),
            "means": lambda: evaluate(log),
            "wide": lambda: evaluate(wide),
            "one": lambda: evaluate(log, ["ndcg"], [10]),
            "ones": lambda: np.ones((n_values, sizes.users)),
            "per user": lambda: evaluate(log, per_user=True),
            "every": lambda: evaluate(log, measures, n_items=cases.N_ITEMS),
        },
        sizes.rounds,
    )
    took = {name: milliseconds(turns.median(name)) for name in turns.seconds}
    what = f"{compact(sizes.users)} users x 100 items, {n_values} values"
    return [
        Row(f"{what}: means / floor", turns.ratio("means", "floor"), "x", 4, 3, f"{took['means']} / {took['floor']}"),
        Row(f"{what}: means / loop over slices", turns.ratio("means", "slices"), "x", note=f"loop {took['slices']}"),
        Row(f"{what}: means / flat sum", turns.ratio("means", "flat"), "x", note=f"sum {took['flat']}"),
        Row(f"{what}: per user / floor", turns.ratio("per user", "floor"), "x", 8, note=took["per user"]),
        Row(f"{what}: np.ones of the per-user values / floor", turns.ratio("ones", "floor"), "x", note=took["ones"]),
        Row(f"{what}: int64 ids to 2^62 / int32", turns.ratio("wide", "means"), "x", 1.5, note=took["wide"]),
        Row(f"{what}: every measure of lists, {n_every} values / means", turns.ratio("every", "means"), "x", 4),
        Row(f"{what} / ndcg@10 alone", turns.ratio("means", "one"), "x", 2, note=f"alone {took['one']}"),
    ]


def bench_scale(sizes: Sizes, _folder: Path) -> list[Row]:
    """Compare the time per user of many and of few users."""
    few, many = (cases.make_log(n_users, 20) for n_users in sizes.scale)
    turns = Turns({"few": lambda: evaluate(few), "many": lambda: evaluate(many)}, max(3, sizes.rounds // 2))
    small, large = sizes.scale
    per_user = [f"{turns.median(name) / n * 1e9:.3g} ns" for name, n in (("few", small), ("many", large))]
    name = f"{compact(small)} -> {compact(large)} users x 20 items: time per user"
    spread = turns.ratio("many", "few", small / large)
    return [Row(name, spread, "x", 1.3, note=" -> ".join(per_user))]


def bench_small_call(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time one user with three items: the overhead of a call."""
    items, indptr, held = np.array([1, 2, 3]), np.array([0, 3]), np.array([1, 5, 3])
    log = Log(items, indptr, held, indptr)

    def default() -> None:
        for _ in range(sizes.calls):
            import fastrec

            fastrec.evaluate([[1, 2, 3]], [[1, 5, 3]])

    def many() -> None:
        for _ in range(sizes.calls):
            evaluate(log)

    turns = Turns({"default": default, "many": many}, sizes.rounds)
    spreads = {name: turns.each(name, 1e3 / sizes.calls) for name in turns.seconds}
    return [
        Row("one user, 3 items, default metrics: a call", spreads["default"], "ms", 0.5),
        Row(f"one user, 3 items, {len(METRICS) * len(CUTOFFS)} values: a call", spreads["many"], "ms"),
    ]


def bench_giant(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time a log with one user that has as many rows as there are users."""
    plain = cases.make_log(sizes.giant, (20, 100))
    giant = cases.add_giant(plain, sizes.giant)
    turns = Turns({"plain": lambda: evaluate(plain), "giant": lambda: evaluate(giant)}, sizes.rounds)
    name = (
        f"{compact(sizes.giant)} users x 20-100 items: with / without a user of {compact(sizes.giant)} items "
        f"and {compact(sizes.giant)} relevant"
    )
    note = f"{milliseconds(turns.median('giant'))} / {milliseconds(turns.median('plain'))}"
    return [Row(name, turns.ratio("giant", "plain"), "x", 1.3, note=note)]


MEMORY_CODE = """
import sys
from pathlib import Path
from bench import cases, run
from bench.measure import memory, reset_peak_memory
for name in ("tiny", "parallel", "lists"):  # the first two only compile
    log = cases.load(Path(sys.argv[1]) / name)
    reset_peak_memory()
    before = memory(peak=False)
    run.evaluate(log)
print(memory(peak=True) - before)
"""


def bench_memory(sizes: Sizes, folder: Path) -> list[Row]:
    """Measure the peak memory of a call beyond the memory before it, with its arrays loaded."""
    for name, n_users in (("tiny", 10), ("parallel", sizes.warm_up_users), ("lists", sizes.users)):
        log = cases.make_log(n_users, 100)
        cases.save(log, folder / name)
    extra = [int(run_python(MEMORY_CODE, str(folder))[1]) for _ in range(3)]
    spread = Spread.of(np.array(extra) / log.nbytes * 100)
    what = f"{compact(sizes.users)} users x 100 items, means: extra peak memory / input arrays"
    return [Row(what, spread, "%", 25, note=f"{np.median(extra) / 1e6:.3g} of {log.nbytes / 1e6:.3g} MB")]


IMPORT_CODE = "import numpy, numba"
THREE_CODE = "import fastrec; fastrec.evaluate([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1], [6, 5], [10]])"
COMPILED_CODE = """
import numpy as np, fastrec
users = np.arange(150_001)
fastrec.evaluate((users[1:], users), (users[1:], users))
"""
LOAD_CODE = """
import sys
from pathlib import Path
from time import perf_counter
from bench import cases
start = perf_counter()
log = cases.load(Path(sys.argv[1]))
loading = perf_counter() - start
import fastrec
fastrec.evaluate(log.recs, log.truth, ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"], k=[1, 5, 10, 20, 100])
print(loading)
"""


def bench_fresh(sizes: Sizes, folder: Path) -> list[Row]:
    """Time processes from start to exit, against one that only imports NumPy and Numba."""
    warm = folder / "warm" if sizes.empty_rounds else None
    rows = []
    imports = functools.partial(run_python, IMPORT_CODE)
    for what, code, target in (("3 users", THREE_CODE, 2.3), ("compiled kernel", COMPILED_CODE, None)):
        fresh = functools.partial(run_python, code, cache=warm)
        turns = Turns({"imports": imports, "fresh": fresh}, sizes.fresh_rounds)
        note = f"{milliseconds(turns.median('fresh'))} / {milliseconds(turns.median('imports'))}"
        name = f"fresh process, {what}, warm cache / imports"
        rows.append(Row(name, turns.ratio("fresh", "imports"), "x", target, note=note))
    where = folder / "lists"
    cases.save(cases.make_log(sizes.users, 100), where)
    for name, code, target in (
        ("3 users", THREE_CODE, 20),
        (f"{compact(sizes.users)} users", LOAD_CODE, 20),
    ):
        spread, seconds = _with_empty_cache(code, where, folder, sizes.empty_rounds)
        note = f"{seconds:.3g} s" + (", loading the data taken off" if code is LOAD_CODE else "")
        rows.append(Row(f"fresh process, {name}, empty cache / imports", spread, "x", target, note=note))
    return [*rows, *_cold_rows(where, folder, sizes)]


CALLS_CODE = """
import sys
from pathlib import Path
from time import process_time
from bench import cases, run
log = cases.load(Path(sys.argv[1]))
def seconds():
    start = process_time()
    run.evaluate(log)
    return process_time() - start
_, second, third = seconds(), seconds(), seconds()
print(second / third)
"""
FEW_METRICS = """
from time import perf_counter
from bench import cases, run
def seconds(log):
    start = perf_counter()
    run.evaluate(log, ["ndcg", "recall"])
    return perf_counter() - start
"""
FIRST_CODE = f"{FEW_METRICS}print(seconds(cases.make_log(5_000, 20)))"
LOADED_CODE = f"{FEW_METRICS}log = cases.make_log(100_000, 20)\nprint(seconds(log) - seconds(log))"
WARM_UP_CODE = """
import fastrec
from time import process_time
fastrec.warmup()
print(process_time())
"""


def _cold_rows(log: Path, folder: Path, sizes: Sizes) -> list[Row]:
    """Measure processes that start with an empty cache, and one that follows on such a one."""
    users = compact(sizes.users)
    measured = (  # number of processes in one folder, the last of which is measured
        (f"{users} users, empty cache: second call / third call, processor time", CALLS_CODE, 1, "x", 1.1),
        ("5k users x 20 items, 10 values, empty cache: first call", FIRST_CODE, 1, "s", 2.5),
        ("100k users x 20 items, 10 values, warm cache: first call beyond the second", LOADED_CODE, 2, "s", 0.7),
        ("fastrec warmup, empty cache, processor time", WARM_UP_CODE, 1, "s", 60),
    )
    rows = []
    for name, code, n_processes, unit, target in measured:
        values, others = [], Others()
        for _ in range(max(1, sizes.empty_rounds)):
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                cache = Path(empty) if sizes.empty_rounds else None
                printed = [run_python(code, str(log), cache=cache)[1] for _ in range(n_processes)]
            values.append(float(printed[-1]))
        rows.append(Row(name, Spread.of(values, others.share()), unit, target))
    return rows


def _with_empty_cache(code: str, log: Path, folder: Path, rounds: int) -> tuple[Spread, float]:
    """Return the seconds of a process that must compile over those of imports, and the median of the former."""
    ratios, all_seconds = [], []
    others = Others()
    for _ in range(max(1, rounds)):
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            imports = seconds_of(functools.partial(run_python, IMPORT_CODE))
            seconds, printed = run_python(code, str(log), cache=Path(empty) if rounds else None)
        seconds -= float(printed or 0)
        ratios.append(seconds / imports)
        all_seconds.append(seconds)
    return Spread.of(ratios, others.share()), float(np.median(all_seconds))


TIMED_IMPORT = "from time import perf_counter as t; s = t(); import {0}; print(t() - s)"
NO_NUMBA = "; import sys; assert 'numba' not in sys.modules, 'import fastrec loads numba'"


def bench_import(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time `import fastrec`: it must cost little more than NumPy, and not load Numba."""
    seconds: dict[str, list[float]] = {"numpy": [], "fastrec": []}
    others = Others()
    for turn in range(sizes.fresh_rounds + 1):
        for name, times in seconds.items():
            code = TIMED_IMPORT.format(name) + (NO_NUMBA if name == "fastrec" else "")
            printed = run_python(code)[1]
            if turn:  # the first turn only fills the caches of the file system
                times.append(float(printed))
    spread = Spread.of(np.array(seconds["fastrec"]) / np.array(seconds["numpy"]), others.share())
    note = f"{milliseconds(float(np.median(seconds['fastrec'])))}, no Numba loaded"
    return [Row("import fastrec / import numpy, within fresh processes", spread, "x", 1.5, note=note)]


def bench_rivals(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time installed other tools on the same data, after a check that the results are equal."""
    log = cases.make_log(sizes.rival_users, 100)
    rows = []
    for result in rivals.compare(log, max(1, sizes.rounds // 5)):
        name = f"{compact(result.users)} users x 100 items, {result.values} values: {result.name} / fastrec"
        rows.append(Row(name, result.ratio, "x", note=f"{milliseconds(result.theirs)} / {milliseconds(result.ours)}"))
    return rows


def rows_of(promises: list[scored.Promise]) -> list[Row]:
    """Return ratios as rows of the table."""
    return [Row(each.name, each.spread, "x", each.target, each.stretch, each.note) for each in promises]


def bench_gauc(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time grouped AUC and rankings from scores."""
    return rows_of(scored.compare_gauc(sizes.users, max(1, sizes.rounds // 2)))


def bench_items(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time metrics of items, alone and with those of accuracy."""
    items.check()
    return rows_of(items.compare_items(sizes.users, max(1, sizes.rounds // 3)))


def bench_positions(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time clicks by rank, and curves of position bias."""
    position.check()
    return rows_of(position.compare_positions(sizes.scores, sizes.scores // 10, max(1, sizes.rounds // 3)))


def bench_policy(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time values of a policy."""
    policy.check()
    return rows_of(policy.compare_policy(sizes.scores, max(1, sizes.rounds // 3)))


def bench_models(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time models over their whole catalogue."""
    models.check()
    n_users, n_items = sizes.models
    times = models.compare_models(n_users, n_items, max(1, sizes.rounds // 3))
    hours = f"1M users x 100k items x {models.DIMENSIONS}: {times.hours:.2g} h"
    rate = Row(f"{compact(n_items)} items x {models.DIMENSIONS}, 30 values", times.rate, "k users/s", note=hours)
    rows = [*rows_of(times.promises), rate]
    for some, of_model in ((n_users // 8, 10 * n_items), (sizes.users, max(n_items // 100, models.RELEVANT))):
        extra = Spread.of(np.array([models.memory_of_call(some, of_model) / 2**20]), 0.0)
        name = f"model of {compact(some)} users and {compact(of_model)} items: memory besides the input"
        rows.append(Row(name, extra, "MB", 512))
    return rows


def bench_errors(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time errors of predicted ratings."""
    return rows_of(scored.compare_errors(sizes.users, max(1, sizes.rounds // 2)))


def bench_auc(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time one AUC over all rows, and those of segments of rows."""
    rounds = max(1, sizes.rounds // 3)
    return rows_of([*scored.compare_auc(sizes.scores, rounds), *scored.compare_segments(sizes.scores, rounds)])


def bench_duels(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time comparisons of two models on one log."""
    duels.check()
    return rows_of(duels.compare_duels(sizes.scores // 10, max(1, sizes.rounds // 5)))


def bench_score_rivals(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time other tools on the same scored rows."""
    return rows_of(scored.compare_rivals(sizes.users, max(1, sizes.rounds // 5)))


def bench_frames(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time data frames in memory, and grouping their rows."""
    return [
        *rows_of(frames.compare_frames(sizes.frame_users, max(1, sizes.rounds // 3))),
        *rows_of(frames.compare_grouping(sizes.scores, max(1, sizes.rounds // 5))),
        *rows_of(frames.compare_numbering(sizes.scores // 5, max(1, sizes.rounds // 5))),
    ]


def bench_files(sizes: Sizes, folder: Path) -> list[Row]:
    """Time a small file, in whole processes; `python -m bench.files` times large ones."""
    return rows_of(files.compare_start(folder, max(1, sizes.frame_users // 10), max(1, sizes.rounds // 3)))


def bench_resampling(sizes: Sizes, _folder: Path) -> list[Row]:
    """Time tests by resampling."""
    return rows_of(weighed.compare_resampling(sizes.users, sizes.resampled, max(1, sizes.rounds // 5)))


def bench_routes(sizes: Sizes, folder: Path) -> list[Row]:
    """Time the input forms."""
    rows = []
    for n_rows in sizes.routes:
        for name, spread in routes.measure_routes(folder, n_rows, max(1, sizes.rounds // 3)).items():
            rate = f"{n_rows / spread.median / 1e6:.3g}M rows/s"
            rows.append(Row(f"{ROUTE}{compact(n_rows)} rows: {name}", spread, "s", note=rate))
    return rows


def bench_streams(sizes: Sizes, folder: Path) -> list[Row]:
    """Measure files that do not fit in memory."""
    return rows_of(files.stream_files(folder, *sizes.streamed))


def bench_limits(sizes: Sizes, folder: Path) -> list[Row]:
    """Measure peak memory under `memory=`."""
    return rows_of(limits.measure_limits(folder, sizes.limits))


BENCHMARKS: dict[str, Callable[[Sizes, Path], list[Row]]] = {
    "lists": bench_lists,
    "scale": bench_scale,
    "small_call": bench_small_call,
    "giant": bench_giant,
    "memory": bench_memory,
    "fresh": bench_fresh,
    "import": bench_import,
    "rivals": bench_rivals,
    "gauc": bench_gauc,
    "items": bench_items,
    "positions": bench_positions,
    "policy": bench_policy,
    "models": bench_models,
    "errors": bench_errors,
    "auc": bench_auc,
    "duels": bench_duels,
    "score_rivals": bench_score_rivals,
    "frames": bench_frames,
    "files": bench_files,
    "resampling": bench_resampling,
    "routes": bench_routes,
    "streams": bench_streams,
    "limits": bench_limits,
}


def measure(sizes: Sizes, names: Iterable[str], wait: float) -> list[Row]:
    """Run the benchmarks of these names, with a temporary folder for their files."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="fastrec-bench-") as folder:
        for name in names:
            wait_until_calm(wait)
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += BENCHMARKS[name](sizes, Path(folder))
    return rows


def to_text(rows: Sequence[Row]) -> str:
    """Return the table as plain text."""
    lines = []
    for row in rows:
        promised = "" if row.target is None else f"<= {row.target:g}"
        verdict = "machine busy" if row.busy else {None: "", True: "met", False: "MISSED"}[row.met]
        if row.met and row.stretch is not None and row.spread.median <= row.stretch:
            verdict = f"met, and <= {row.stretch:g}"
        value, low, high = (f"{number:.3g}" for number in row.spread[:3])
        lines.append((row.name, f"{value} {row.unit}", f"[{low}, {high}]", promised, verdict, row.note))
    lines.insert(0, ("what", "measured", "quartiles", "promised", "", ""))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def kept_rows(file: Path, machine: dict[str, Any], *, quick: bool) -> list[dict[str, Any]]:
    """Return the rows of an earlier run; raise if it was of another kind or machine."""
    if not file.exists():
        return []
    earlier = json.loads(file.read_text(encoding="utf-8"))
    now = machine | {"schema": 1, "quick": quick}
    if differs := [name for name, value in now.items() if earlier.get(name) != value]:
        raise SystemExit(
            f"{file} was measured with another {', '.join(differs)}: run without --only, or name a new file"
        )
    rows: list[dict[str, Any]] = earlier["rows"]
    return rows


def replaced(kept: list[dict[str, Any]], measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the kept rows, each replaced by the new row of its name, with other new rows at the end."""
    new = {row["name"]: row for row in measured}
    return [new.pop(row["name"], row) for row in kept] + list(new.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the JSON; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer rounds")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the results to FILE (bench/results.json); with --only, replace only those rows",
    )
    parser.add_argument(
        "--wait", type=float, default=60, metavar="SECONDS", help="longest wait for a calm machine, before each"
    )
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=list(BENCHMARKS), metavar="NAME")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print(f"{machine['machine']}; {machine['versions']}", file=sys.stderr)
    whole = options.json is None or options.only == list(BENCHMARKS)
    kept = [] if whole else kept_rows(options.json, machine, quick=options.quick)
    rows = measure(QUICK if options.quick else FULL, options.only, options.wait)
    print(to_text(rows))
    if options.json is not None:
        changed = replaced(kept, [row.to_dict() for row in rows])
        result = {"schema": 1, "quick": options.quick, **machine, "rows": changed}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
