"""Ranks with gaps: closed with a warning, or kept if the tool of `like=` takes ranks as positions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

pa = pytest.importorskip("pyarrow")

# ann misses rank 2, bob rank 1; cid's ranks start at 0 and dan's at 1
USERS = ["bob", "ann", "ann", "ann", "bob", "cid", "cid", "dan"]
RECS = pa.table(
    {"user_id": USERS, "item_id": [5, 30, 10, 20, 6, 7, 8, 9], "rank": [3, 4, 1, 3, 2, 1, 0, 1]},
)
TRUTH = pa.table({"user_id": ["ann", "ann", "ann", "bob", "cid", "dan"], "item_id": [20, 30, 99, 5, 8, 9]})
SAYS = "ranks of lists have gaps, which fastrec closes.*2 lists, e.g. of user 'ann': 1, 3, 4"
KEPT = pa.table({"user_id": [1, 1, 1], "item_id": [10, 20, 30], "rank": [1, 3, 4]})
KEPT_TRUTH = pa.table({"user_id": [1, 1, 1], "item_id": [20, 30, 99]})
# by RecTools 0.19.0 on KEPT
RECTOOLS = {
    "precision@3": 1 / 3,
    "recall@3": 1 / 3,
    "ndcg@3": 0.5 / (1 + 0.6309297535714575 + 0.5),
    "map@3": 1 / 9,
    "mrr@3": 1 / 3,
    "hit_rate@1": 0.0,
    "f_beta@3": 1 / 3,
    "precision(r_precision=True)@3": 1 / 3,
}


def write(folder: Path, recs: Any = RECS, truth: Any = TRUTH) -> list[Path]:
    from pyarrow import parquet

    paths = [folder / f"{name}.parquet" for name in ("recs", "truth")]
    for table, path in zip((recs, truth), paths, strict=True):
        parquet.write_table(table, path)
    return paths


def in_batches() -> fastrec.Report:
    """Send and merge one batch per user, the last users first."""
    whole = fastrec.Evaluator("mrr")
    for user in ("dan", "cid", "bob", "ann"):
        part = fastrec.Evaluator("mrr")
        part.update(*(table.filter(np.array(table["user_id"].to_pylist()) == user) for table in (RECS, TRUTH)))
        whole.merge(fastrec.Evaluator.from_bytes(part.to_bytes()))
    return whole.result()


def as_lists() -> fastrec.Report:
    wide = RECS.group_by("user_id").aggregate([("item_id", "list"), ("rank", "list")])
    wide = wide.rename_columns([name.removesuffix("_list") for name in wide.column_names])
    held = TRUTH.group_by("user_id").aggregate([("item_id", "list")]).rename_columns(["user_id", "item_id"])
    return fastrec.evaluate(wide, held, "mrr")


WAYS = {
    "frames": lambda _: fastrec.evaluate(RECS, TRUTH, "mrr"),
    "lists": lambda _: as_lists(),
    "files": lambda folder: fastrec.evaluate_files(*write(folder), "mrr"),
    "streamed": lambda folder: fastrec.evaluate_files(*write(folder), "mrr", memory="64MB"),
    "batches": lambda _: in_batches(),
}


@pytest.mark.parametrize("way", WAYS)
def test_gaps_are_closed_and_said(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "streamed":
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
        monkeypatch.setattr("fastrec.files.resources.MIN_BATCH", 2)
        monkeypatch.setattr("fastrec.files.resources.MAX_BATCH", 2)
    with pytest.warns(fastrec.FastrecWarning, match=SAYS) as caught:
        report = WAYS[way](tmp_path)
    assert report.warnings == [str(caught[0].message)] and len(caught) == 1
    assert report["mrr"] == (1 / 2 + 1 / 2 + 1 + 1) / 4
    assert report.data["rec_lists_with_gaps"] == 2 and report.data["rec_rows"] == 8


@pytest.mark.parametrize("ranks", [[1, 2, 3], [0, 1, 2], [3, 1, 2]], ids=str)
def test_ranks_without_gaps_are_left_alone(ranks: list[int]) -> None:
    report = fastrec.evaluate(KEPT.set_column(2, "rank", [ranks]), KEPT_TRUTH, "mrr")
    assert report.warnings == [] and report.data["rec_lists_with_gaps"] == 0


@pytest.mark.parametrize("first", [-3, 2, 10**12])
def test_a_gap_at_the_start_is_one(first: int) -> None:
    with pytest.warns(fastrec.FastrecWarning, match=f"1 list, e.g. of user 1: {first}, {first + 1}, {first + 2}"):
        fastrec.evaluate(KEPT.set_column(2, "rank", [[first, first + 1, first + 2]]), KEPT_TRUTH, "mrr")


def test_the_example_is_where_the_gap_is() -> None:
    recs = pa.table({"user_id": [1] * 6, "item_id": [20, 2, 3, 4, 5, 6], "rank": [1, 2, 3, 9, 10, 11]})
    with pytest.warns(fastrec.FastrecWarning, match=r"1 list, e.g. of user 1: \.\.\., 3, 9, 10, \.\.\.\)"):
        fastrec.evaluate(recs, KEPT_TRUTH, "mrr")


def test_a_tool_that_takes_ranks_as_places_is_followed() -> None:
    report = fastrec.evaluate(KEPT, KEPT_TRUTH, list(RECTOOLS), like="rectools")
    assert {name: report[name] for name in RECTOOLS} == pytest.approx(RECTOOLS, abs=1e-12)
    assert report.warnings == [] and report.settings["rank_gaps"] == "keep"
    assert report.data["rec_rows"] == 3 and report.data["rec_lists_with_gaps"] == 1
    sent = fastrec.Evaluator("ndcg@3", like="rectools")
    received = fastrec.Evaluator.from_bytes(sent.to_bytes())
    received.update(KEPT, KEPT_TRUTH)
    assert received.result()["ndcg@3"] == report["ndcg@3"]


def test_places_and_orders_are_not_merged() -> None:
    kept = fastrec.Evaluator("mrr", like="rectools", k=3)
    closed = fastrec.Evaluator("mrr", k=3, **kept.settings)
    for one, other in ((kept, closed), (closed, kept)):
        with pytest.raises(fastrec.InputError, match="merge needs equal settings, but rank_gaps is '"):
            one.merge(other)


def test_the_example_of_gaps_may_be_a_user_whose_text_ends_in_nul() -> None:
    recs = pa.table({"user_id": ["a\0", "a\0"], "item_id": [20, 10], "rank": [1, 3]})
    truth = pa.table({"user_id": ["a\0"], "item_id": [20]})
    with pytest.warns(fastrec.FastrecWarning, match=r"1 list, e.g. of user 'a\\x00': 1, 3"):
        assert fastrec.evaluate(recs, truth, "mrr")["mrr"] == 1.0


def test_places_without_gaps_are_as_an_order() -> None:
    whole = KEPT.set_column(2, "rank", [[2, 1, 3]])
    by_order = fastrec.evaluate({1: [20, 10, 30]}, {1: [20, 30, 99]}, list(RECTOOLS), like="rectools")
    assert dict(fastrec.evaluate(whole, KEPT_TRUTH, list(RECTOOLS), like="rectools")) == dict(by_order)


@pytest.mark.parametrize(
    ("ranks", "options", "says"),
    [
        ([0, 2, 3], {}, "recs has ranks from 0, and this tool counts ranks from 1"),
        ([1, 2, 10**9], {}, "recs of user 1: rank 1000000000 is too large for a place in a list"),
        ([1, 2, 2**62], {}, f"rank {2**62} is too large for a place in a list"),
        ([1, 2, 9], {"duplicates": "miss"}, "leave out exclude and duplicates"),
        ([1, 2, 9], {"exclude": KEPT.slice(0, 1).select([0, 1])}, "leave out exclude and duplicates"),
    ],
    ids=str,
)
def test_what_cannot_be_a_place_is_an_error(ranks: list[int], options: dict[str, Any], says: str) -> None:
    with pytest.raises(fastrec.InputError, match=says):
        fastrec.evaluate(KEPT.set_column(2, "rank", [ranks]), KEPT_TRUTH, "mrr@3", like="rectools", **options)


def test_a_tool_that_takes_them_in_two_ways_is_not_followed() -> None:
    """LensKit's ndcg, dcg and rbp use the numbers, its other metrics the order of the rows."""
    with pytest.raises(fastrec.InputError, match=r"1 list, e.g. of user 1: 1, 3, 4\); number them 1, 2, 3"):
        fastrec.evaluate(KEPT, KEPT_TRUTH, "ndcg@3", like="lenskit")


def test_an_explanation_gives_the_number_of_the_call() -> None:
    with pytest.warns(fastrec.FastrecWarning, match="ranks of lists have gaps"):
        why = fastrec.explain("mrr@3", KEPT, KEPT_TRUTH, like=["rectools", "ranx", "lenskit"])
    side = why.sides["rectools"]
    assert side.estimate.mean == fastrec.evaluate(KEPT, KEPT_TRUTH, "mrr@3", like="rectools")["mrr@3"] == 1 / 3
    assert side.options["rank_gaps"] == "keep" and side.steps["rank_gaps"] == pytest.approx(1 / 3 - 1 / 2)
    assert why.sides["ranx"].estimate.mean == 1 / 2 and why.sides["ranx"].options["rank_gaps"] == "close"
    assert why.sides["lenskit"].estimate is None and "ranks of lists have gaps" in why.sides["lenskit"].problem


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_lists_with_misses(seed: int) -> None:
    """Random ranks equal lists with an extra item at each position that no rank names."""
    rng = np.random.default_rng(seed)
    rows, full = [], {}
    for user in range(6):
        items = rng.permutation(9)[: rng.integers(0, 6)]
        places = np.sort(rng.permutation(10)[: len(items)])
        full[user] = [1000 + at for at in range(places.max(initial=-1) + 1)]
        for item, place in zip(items.tolist(), places.tolist(), strict=True):
            full[user][place] = item
            rows.append((user, item, place + 1))
    columns = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    recs = pa.table(dict(zip(("user_id", "item_id", "rank"), columns, strict=True)))
    recs = recs.take(rng.permutation(len(rows)))
    truth = {user: rng.permutation(9)[:3].tolist() for user in range(6)}
    held = pa.table({"user_id": np.repeat(np.arange(6), 3), "item_id": np.concatenate(list(truth.values()))})
    metrics = ["ndcg@5", "map@5", "mrr@5", "precision@5", "recall@8"]
    placed = fastrec.evaluate(recs, held, metrics, like="rectools")
    assert dict(placed) == dict(fastrec.evaluate(full, truth, metrics, like="rectools"))
