"""The cost of large jobs on Spark: `python -m bench.plan [--rows N] [--json FILE]`.

Measures a job at three sizes, fits a line to each cost, and compares the fourth size with what the lines say. Spark's
own event log counts: seconds of tasks, bytes of the shuffle, and bytes that the driver gets.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.files import write_large
from bench.measure import compact, describe_machine, wait_until_calm
from bench.run import RESULTS
from bench.spark import METRICS, start

PLAN_RESULTS = RESULTS.with_name("plan.json")
SIZES = (1, 2, 4, 16)  # times the smallest; the last one is predicted
ROWS_PER_PARTITION = 2_500_000
DAY = 10_000_000_000  # rows
TOLERANCE = 0.2  # of the measured cost
EVENTS = {  # settings of Spark: one file of text
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


class Cost(NamedTuple):
    """What a job of some rows took."""

    rows: int  # of lists
    partitions: int
    core_seconds: float
    shuffle_bytes: int
    driver_bytes: int


COSTS = Cost._fields[2:]


def partitions_of(n_rows: int) -> int:
    """Return the number of partitions to evaluate rows in."""
    return max(1, n_rows // ROWS_PER_PARTITION)


def measure(folder: Path, sizes: Sequence[int]) -> list[Cost]:
    """Evaluate Parquet files of these numbers of rows on Spark, after the smallest has warmed up its workers."""
    import fastrec.spark

    events = folder / "events"
    events.mkdir()
    session = start({**EVENTS, "spark.eventLog.dir": events.as_uri()})
    for group, rows in (("warm", sizes[0]), *((str(rows), rows) for rows in sizes)):
        paths = write_large(folder, rows)
        wait_until_calm(60)
        session.sparkContext.setJobGroup(group, group)
        fastrec.spark.evaluate_files(*paths, METRICS, n_partitions=partitions_of(rows))
        for path in paths:
            Path(path).unlink()
    session.stop()
    (written,) = events.glob("[!.]*")
    with written.open(encoding="utf-8") as lines:
        found = costs_of_groups(lines)
    return [Cost(rows, partitions_of(rows), *found[str(rows)]) for rows in sizes]


def costs_of_groups(lines: Iterable[str]) -> dict[str, tuple[float, int, int]]:
    """Return {job group: (seconds of tasks, bytes written for the shuffle, bytes of results)} from an event log."""
    groups: dict[int, str] = {}
    found: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0, 0])
    for event in map(json.loads, lines):
        if event["Event"] == "SparkListenerJobStart":
            groups |= dict.fromkeys(event["Stage IDs"], event["Properties"].get("spark.jobGroup.id", ""))
        elif event["Event"] == "SparkListenerTaskEnd":
            task, own = event["Task Metrics"], found[groups[event["Stage ID"]]]
            own[0] += task["Executor Run Time"] / 1e3
            own[1] += task["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            own[2] += task["Result Size"] if event["Task Type"] == "ResultTask" else 0
    return {group: (seconds, int(shuffled), int(sent)) for group, (seconds, shuffled, sent) in found.items()}


def predicted(costs: Sequence[Cost], n_rows: int) -> Cost:
    """Return the costs of another number of rows, from a line through those of each cost."""
    rows = [cost.rows for cost in costs]
    lines = [np.polyfit(rows, [getattr(cost, name) for cost in costs], 1) for name in COSTS]
    seconds, shuffled, sent = (float(np.polyval(line, n_rows)) for line in lines)
    return Cost(n_rows, partitions_of(n_rows), seconds, round(shuffled), round(sent))


def misses(costs: Sequence[Cost]) -> dict[str, float]:
    """Return (predicted - measured) / measured of each cost of the last job, predicted from the others."""
    *others, last = costs
    found = predicted(others, last.rows)
    return {name: getattr(found, name) / getattr(last, name) - 1 for name in COSTS}


def table_of_plan(results: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    costs = [Cost(**row) for row in results["rows"]]
    *others, last = costs
    far = misses(costs)
    lines = ["| rows of lists | partitions | core-hours | shuffled | to the driver |", "|---|---|---|---|---|"]
    lines += [f"| {_cells(cost, f'{compact(cost.rows)}, measured')} |" for cost in costs]
    lines.append(f"| {_cells(predicted(others, last.rows), f'{compact(last.rows)}, predicted from the others')} |")
    lines.append(f"| the prediction is off by | | {' | '.join(f'{far[name]:+.1%}' for name in COSTS)} |")
    lines.append(f"| {_cells(predicted(costs, DAY), '**10^10, predicted** from all')} |")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return "\n".join([*lines, "", f"{results['machine']}; {versions}."])


def _cells(cost: Cost, rows: str) -> str:
    hours, shuffled = f"{cost.core_seconds / 3600:.3g}", f"{cost.shuffle_bytes / 1e9:.3g} GB"
    return f"{rows} | {cost.partitions:,} | {hours} | {shuffled} | {_of_driver(cost)}"


def _of_driver(cost: Cost) -> str:
    return f"{cost.driver_bytes / 1e6:.3g} MB, {cost.driver_bytes / 1e3 / cost.partitions:.2g} kB per partition"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the JSON; return 1 if a prediction misses by more than a fifth."""
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the smallest job; the largest has 16 times")
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write the results there ({PLAN_RESULTS.name})")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fastrec-bench-") as folder:
        costs = measure(Path(folder), [options.rows * size for size in SIZES])
    machine = describe_machine()
    import pyspark

    machine["versions"] |= {"spark": pyspark.__version__}
    results = {"schema": 1, **machine, "rows": [cost._asdict() for cost in costs]}
    print(table_of_plan(results))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(abs(far) > TOLERANCE for far in misses(costs).values()))


if __name__ == "__main__":
    sys.exit(main())
