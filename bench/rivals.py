"""Other tools on the same data: `python -m bench.rivals [--users N]`.

Each tool gets its data in its best form; preparing it is not timed. Before any timing, its numbers must equal those of
fastrec. Tools that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench import cases
from bench.cases import Log
from bench.measure import Spread, Turns

CUTOFFS = [1, 5, 10, 20, 100]
TOLERANCE = 1e-9

Values = dict[str, float]


class Rival(NamedTuple):
    """Tool, the names of fastrec's metrics that it computes, and how to call it."""

    name: str
    module: str
    metrics: list[str]
    prepare: Callable[[Log, list[str]], Callable[[], Values]]
    most_users: int  # more would take too long


class Result(NamedTuple):
    """Seconds of another tool and of fastrec for the same numbers."""

    name: str
    users: int
    values: int
    ratio: Spread
    theirs: float
    ours: float


def long_table(items: Any, indptr: Any) -> tuple[Any, Any]:
    """Return the users and the positions from 1 of all rows."""
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return users, np.arange(len(items)) - indptr[users] + 1


def polars_frames(log: Log) -> tuple[Any, Any]:
    """Return lists with their ranks, and truth, as Polars frames."""
    import polars as pl

    users, ranks = long_table(*log.recs)
    recs = pl.DataFrame({"user": users, "item": log.rec_items, "rank": ranks})
    return recs, pl.DataFrame({"user": long_table(*log.truth)[0], "item": log.truth_items})


def prepare_polars(log: Log, metrics: list[str]) -> Callable[[], Values]:
    """Prepare Polars written by hand: one join for the hits, one pass over them per user, then formulas."""
    return polars_query(*polars_frames(log), metrics)


def polars_query(recs: Any, truth: Any, metrics: list[str]) -> Callable[[], Values]:
    """Return a query of all metrics at all cut-offs of two frames, with rows in any order."""
    import polars as pl

    longest = max(CUTOFFS)
    ideals = pl.DataFrame(
        {"place": np.arange(longest) + 1, "ideal": np.cumsum(1 / np.log2(np.arange(longest) + 2))}
    ).with_columns(pl.col("place").cast(pl.UInt32))

    def evaluate() -> Values:
        hits = (
            recs.lazy()
            .join(truth.lazy(), on=["user", "item"])
            .sort("user", "rank")
            .with_columns(precision=pl.col("rank").cum_count().over("user") / pl.col("rank"))
            .with_columns(discount=1 / (pl.col("rank") + 1).log(2))
        )
        held = truth.lazy().group_by("user").agg(n_rel=pl.len())
        within = [
            aggregate
            for k in CUTOFFS
            for aggregate in (
                (pl.col("rank") <= k).sum().alias(f"hits@{k}"),
                pl.col("discount").filter(pl.col("rank") <= k).sum().alias(f"dcg@{k}"),
                pl.col("precision").filter(pl.col("rank") <= k).sum().alias(f"precision_sum@{k}"),
            )
        ]
        table = held.join(hits.group_by("user").agg(*within, first=pl.col("rank").min()), on="user", how="left")
        for k in CUTOFFS:
            table = table.with_columns(pl.min_horizontal("n_rel", pl.lit(k, pl.UInt32)).alias(f"place@{k}"))
            table = table.join(ideals.lazy().rename({"ideal": f"ideal@{k}"}), left_on=f"place@{k}", right_on="place")
        means = [(formula.fill_null(0.0)).mean().alias(name) for name, formula in polars_formulas(pl).items()]
        return dict(table.select(means).collect().row(0, named=True))

    assert set(metrics) == set(polars_formulas(pl))
    return evaluate


def polars_formulas(pl: Any) -> dict[str, Any]:
    """Return the formulas over a table with one row per user."""
    formulas: dict[str, Any] = {}
    for k in CUTOFFS:
        hits = pl.col(f"hits@{k}")
        formulas |= {
            f"ndcg@{k}": pl.col(f"dcg@{k}") / pl.col(f"ideal@{k}"),
            f"recall@{k}": hits / pl.col("n_rel"),
            f"precision@{k}": hits / k,
            f"map@{k}": pl.col(f"precision_sum@{k}") / pl.col(f"place@{k}"),
            f"mrr@{k}": pl.when(pl.col("first") <= k).then(1 / pl.col("first")).otherwise(0.0),
            f"hit_rate@{k}": (hits > 0).cast(pl.Float64),
        }
    return formulas


def prepare_ranx(log: Log, metrics: list[str]) -> Callable[[], Values]:
    """Prepare its own Qrels and Run objects, untimed: that takes several times longer than evaluating."""
    import ranx

    lists = np.split(log.rec_items, log.rec_indptr[1:-1])
    held = np.split(log.truth_items, log.truth_indptr[1:-1])
    run = ranx.Run(
        {f"u{u}": {f"i{item}": float(-at) for at, item in enumerate(row.tolist())} for u, row in enumerate(lists)}
    )
    qrels = ranx.Qrels({f"u{u}": {f"i{item}": 1 for item in row.tolist()} for u, row in enumerate(held)})
    theirs = [name.replace("(denominator=n_rel)", "") for name in metrics]

    def evaluate() -> Values:
        values = ranx.evaluate(qrels, run, theirs, save_results_in_run=False)
        return {ours: float(values[name]) for ours, name in zip(metrics, theirs, strict=True)}

    return evaluate


def names_of(metrics: str) -> list[str]:
    """Return the names of all metrics at all cut-offs."""
    return [f"{metric}@{k}" for metric in metrics.split() for k in CUTOFFS]


RIVALS = [
    Rival(
        "hand-written Polars",
        "polars",
        names_of("ndcg recall precision map mrr hit_rate"),
        prepare_polars,
        1_000_000,
    ),
    Rival(
        "ranx, objects ready",
        "ranx",
        names_of("ndcg recall precision map(denominator=n_rel) mrr hit_rate"),
        prepare_ranx,
        5_000,
    ),
]


def compare(log: Log, rounds: int) -> Iterator[Result]:
    """Time each installed tool against fastrec, after a check that the numbers are equal."""
    import fastrec

    for rival in RIVALS:
        if importlib.util.find_spec(rival.module) is None:
            print(f"{rival.name}: left out, {rival.module} is not installed", file=sys.stderr)
            continue
        part = cases.first_users(log, rival.most_users)

        def ours(part: Log = part, metrics: list[str] = rival.metrics) -> Any:
            return fastrec.evaluate(part.recs, part.truth, metrics)

        wanted = ours()  # before importing a tool that sets Numba's threading layer for the whole process
        theirs = rival.prepare(part, rival.metrics)
        check_equal(rival.name, theirs(), {name: wanted[name] for name in rival.metrics})
        turns = Turns({"theirs": theirs, "ours": ours}, rounds)
        ratio = turns.ratio("theirs", "ours")
        yield Result(rival.name, part.n_users, len(rival.metrics), ratio, turns.median("theirs"), turns.median("ours"))


def check_equal(name: str, theirs: Values, ours: Values) -> None:
    """Raise unless all values agree to 1e-9."""
    for metric, value in ours.items():
        if not abs(theirs[metric] - value) <= TOLERANCE:
            raise AssertionError(f"{name} and fastrec differ in {metric}: {theirs[metric]} and {value}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line per tool."""
    parser = argparse.ArgumentParser(prog="python -m bench.rivals", description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    for result in compare(cases.make_log(options.users, 100), options.rounds):
        print(
            f"{result.name}: {result.users} users x 100 items, {result.values} values: {result.theirs:.3g} s, "
            f"fastrec {result.ours:.3g} s, {result.ratio.median:.3g} x"
        )


if __name__ == "__main__":
    main()
