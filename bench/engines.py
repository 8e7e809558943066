"""Dask and Ray on local clusters: `python -m bench.engines [--users N] [--rounds N] [--json FILE]`.

Each evaluates 30 values of lists in Parquet files, a row per item with its rank, after a check of equal bits.
"Collected" brings the rows of the engine to this process and evaluates them there; "handed over" lets the engine hand
the needed columns to a function that counts rows. Needs the extras `bench`, `dask` and `ray`, and `distributed`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import cases, rivals
from bench.frames import METRICS, evaluate
from bench.measure import Others, Turns, describe_machine
from bench.report import ENGINE_RESULTS
from bench.run import Row, to_text
from bench.spark import NAMES

LENGTH, FILES, WORKERS = 100, 8, 2
COLUMNS = ["user", "item", "rank"]


class Unknown(Others):
    """What other processes use is not known: those of clusters start and end, and have no parent."""

    def share(self) -> float:
        """Return 0."""
        return 0.0


def write(folder: Path, n_users: int) -> tuple[str, str]:
    """Write lists and truth in any order, in several files each; return their folders."""
    paths = []
    for name, frame in zip(("recs", "truth"), rivals.polars_frames(cases.make_log(n_users, LENGTH)), strict=True):
        rows = frame.sample(fraction=1, shuffle=True, seed=1)
        (folder / name).mkdir()
        for nth in range(FILES):
            rows[nth::FILES].write_parquet(folder / name / f"part-{nth}.parquet")
        paths.append(str(folder / name))
    return paths[0], paths[1]


def on_dask(recs: str, truth: str) -> dict[str, Callable[[], Any]]:
    """Return the calls to time on Dask, with a cluster of processes."""
    from dask import dataframe
    from distributed import Client

    import fastrec.dask

    client = Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
    frames = [dataframe.read_parquet(path) for path in (recs, truth)]

    def collected() -> Any:
        return evaluate(*(frame.compute() for frame in frames))

    return {
        "engine": lambda: fastrec.dask.evaluate(*frames, METRICS, **NAMES),
        "collected": collected,
        "handed over": lambda: frames[0][COLUMNS].map_partitions(len).compute(),
        "close": client.shutdown,
    }


def on_ray(recs: str, truth: str) -> dict[str, Callable[[], Any]]:
    """Return the calls to time on Ray."""
    import pyarrow as pa
    import ray

    import fastrec.ray

    ray.init("local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def datasets() -> list[Any]:
        return [ray.data.read_parquet(path) for path in (recs, truth)]

    def collected() -> Any:
        return evaluate(*(pa.concat_tables(ray.get(dataset.to_arrow_refs())) for dataset in datasets()))

    def count(batch: Any) -> Any:
        return pa.table({"rows": [batch.num_rows]})

    def handed_over() -> Any:
        rows = datasets()[0].select_columns(COLUMNS)
        return rows.map_batches(count, batch_format="pyarrow", batch_size=None).take_all()

    return {
        "engine": lambda: fastrec.ray.evaluate(*datasets(), METRICS, **NAMES),
        "collected": collected,
        "handed over": handed_over,
        "close": ray.shutdown,
    }


ENGINES = {"dask": on_dask, "ray": on_ray}


def compare(name: str, folder: Path, n_users: int, rounds: int) -> list[Row]:
    """Time an engine against collecting its rows, and against handing them over."""
    paths = write(folder, n_users)
    calls = ENGINES[name](*paths)
    close = calls.pop("close")
    if dict(calls["engine"]()) != dict(calls["collected"]()):
        raise AssertionError(f"fastrec gives other bits on {name}")
    turns = Turns(calls, rounds, Unknown)
    what, took = f"{n_users} users x {LENGTH}: fastrec.{name}", {own: turns.median(own) for own in calls}
    rate = f"{n_users * LENGTH / took['engine'] / WORKERS / 1e6:.3g}M rows/s per core"
    rows = [Row(what, turns.each("engine", 1.0), "s", note=rate)]
    others = {"collected": "collecting the rows and evaluating them", "handed over": "handing the lists alone over"}
    for own, other in others.items():
        note = f"{took['engine']:.3g} s / {took[own]:.3g} s"
        rows.append(Row(f"{what} / {other}", turns.ratio("engine", own), "x", note=note))
    close()
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write the results there ({ENGINE_RESULTS.name})")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of both engines
    rows = []
    for name in ENGINES:
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(name, Path(folder), options.users, options.rounds)
    print(to_text(rows))
    if options.json is not None:
        import dask
        import ray

        machine = describe_machine()
        machine["versions"] |= {"dask": dask.__version__, "ray": ray.__version__}
        result = {"schema": 1, "quick": options.users < 100_000, **machine, "rows": [row.to_dict() for row in rows]}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
