"""Findings: each fault of the input is named on every route, and sound input has none."""

import random
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

Rows = list[dict[str, Any]]


def shop(rng: random.Random, n_users: int, length: int) -> tuple[Rows, Rows]:
    """Return sound rows of lists, best first with falling scores, and of a truth with ratings in halves."""
    recs: Rows = []
    truth: Rows = []
    for user in range(n_users):
        items = rng.sample(range(100), length)
        scores = sorted((rng.random() for _ in items), reverse=True)
        recs += ({"user_id": f"u{user}", "item_id": f"i{i}", "score": s} for i, s in zip(items, scores, strict=True))
        held = {items[0] if user == 0 else rng.choice(items), *rng.sample(range(120), rng.randint(0, 3))}
        truth += ({"user_id": f"u{user}", "item_id": f"i{item}", "gain": rng.randint(1, 10) / 2} for item in held)
    return recs, truth


def changed(rows: Rows, **changes: Callable[[Any], Any]) -> Rows:
    return [{name: changes.get(name, lambda own: own)(own) for name, own in row.items()} for row in rows]


def without(rows: Rows, name: str) -> Rows:
    return [{key: own for key, own in row.items() if key != name} for row in rows]


def numbered(rows: Rows, name: str, *, fault: bool) -> Rows:
    """Return rows with the place of each in its list; with a fault the last row has the first place."""
    places: dict[Any, int] = {}
    rows = [{**row, name: places.setdefault(row["user_id"], 0)} for row in (rows[::-1] if fault else rows)]
    for row in rows:
        places[row["user_id"]] += 1
        row[name] = places[row["user_id"]]
    return rows[::-1] if fault else rows


@pytest.mark.parametrize("n", [1_000, 60_000, 300_000])
def test_the_number_of_ids_that_differ_is_near_even_where_some_are_looked_at(n: int) -> None:
    rng = np.random.default_rng(n)
    names = [f"sku{item}" for item in range(n)]
    truth = [name.upper() if chance < 0.3 else name for name, chance in zip(names, rng.random(n), strict=True)]
    users = np.arange(n) // 10
    frames = (pd.DataFrame({"user_id": users, "item_id": items}) for items in (names, truth))
    (line,) = told(lambda: fastrec.evaluate(*frames, "mrr"))
    wanted = sum(name not in set_of for set_of in [{*names}] for name in truth)
    (found,) = re.findall(r"([\d,]+) of the [\d,]+ ids of the truth", line)
    assert int(found.replace(",", "")) == pytest.approx(wanted, rel=0.2)
    assert ("about" in line) == (n > 500)


def in_one_cell(rows: Rows, separator: str) -> Rows:
    lists: dict[Any, list[str]] = {}
    for row in rows:
        lists.setdefault(row["user_id"], []).append(row["item_id"])
    return [{"user_id": user, "item_id": separator.join(items)} for user, items in lists.items()]


Sides = tuple[Rows, Rows]
FAULTS: dict[str, tuple[Callable[[Sides], Sides], str]] = {
    "case": (lambda s: (s[0], changed(s[1], item_id=lambda i: i.upper() if int(i[1:]) % 2 else i)), "item ids differ"),
    "spaces": (lambda s: (changed(s[0], user_id=lambda u: f"{u} " if u > "u3" else u), s[1]), "user ids differ"),
    "prefix": (lambda s: (changed(s[0], item_id=lambda i: i[1:] if i > "i5" else i), s[1]), "item ids differ in char"),
    "zeros": (lambda s: (s[0], changed(s[1], user_id=lambda u: "0" + u if u > "u3" else u)), "user ids differ in lead"),
    "codes": (lambda s: (s[0], changed(s[1], item_id=lambda i: i.replace("i", "%69"))), "item ids differ in the codes"),
    "cells": (lambda s: (in_one_cell(s[0], " "), without(s[1], "gain")), "cells of recs hold several items"),
    "commas": (lambda s: (in_one_cell(s[0], ", "), without(s[1], "gain")), "cells of recs hold several items"),
    "an unused score": (
        lambda s: ([{**r, "score": 1 - r["score"]} for r in s[0]], s[1]),
        "column 'y_hat' implies another for 9 of 9 lists: pass score='y_hat'",
    ),
    "an unused rank": (lambda s: (numbered(s[0], "place", fault=True), s[1]), "pass rank='place'"),
    "ranks against scores": (lambda s: (numbered(s[0], "rank", fault=True), s[1]), "ranks and scores are in other"),
    "ranks as scores": (
        lambda s: ([{**row, "score": row["at"]} for row in numbered(s[0], "at", fault=False)], s[1]),
        "the scores of 9 of 9 lists are 1, 2, 3",
    ),
    "one score": (
        lambda s: (changed(s[0], score=lambda _: 0.5), s[1]),
        "45 of the 45 rows of lists have the score 0.5",
    ),
    "other ids": (lambda s: (s[0], changed(s[1], item_id=lambda i: f"x{i}{i}")), "item ids look like 'i"),
    "no gain": (lambda s: (s[0], changed(s[1], gain=lambda _: -1.0)), "no row of the truth has a gain above 0"),
}


def told(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = call()
    assert [str(one.message) for one in caught] == report.warnings
    return [str(one.message) for one in caught]


def routes(recs: Rows, truth: Rows, folder: Path) -> Iterator[Callable[[], fastrec.Report]]:
    """Yield calls with the same rows as data frames, in batches, and as files."""
    frames = {"recs": pd.DataFrame(recs), "truth": pd.DataFrame(truth)}
    yield lambda: fastrec.evaluate(**frames, metrics="mrr")

    def in_batches() -> fastrec.Report:
        whole = fastrec.Evaluator("mrr")
        users = sorted({*frames["recs"].user_id, *frames["truth"].user_id}, key=lambda user: user.strip().lstrip("0"))
        for at in range(0, len(users), 3):
            part = fastrec.Evaluator("mrr")
            part.update(*(frame[frame.user_id.isin(users[at : at + 3])] for frame in frames.values()))
            whole.merge(part)
        return fastrec.Evaluator.from_bytes(whole.to_bytes()).result()

    yield in_batches
    for ending in ("csv", "parquet"):
        paths = [folder / f"{name}.{ending}" for name in frames]
        for path, frame in zip(paths, frames.values(), strict=True):
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
        yield lambda paths=paths: fastrec.evaluate_files(*paths, "mrr")  # type: ignore[misc]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_on_every_route(fault: str, tmp_path: Path) -> None:
    change, says = FAULTS[fault]
    recs, truth = change(shop(random.Random(fault), 9, 5))
    if fault.startswith("an unused"):
        recs = [{"y_hat" if name == "score" else name: own for name, own in row.items()} for row in recs]
        recs = without(recs, "y_hat") if fault == "an unused rank" else recs
    for call in routes(recs, truth, tmp_path):
        lines = told(call)
        assert any(says in line for line in lines), lines


def test_what_exclude_removes_from_the_truth_is_counted() -> None:
    given = {"recs": [[1, 2, 3], [4, 5]], "truth": [[2, 9], [5]], "exclude": [[2, 7], [8]]}
    with pytest.warns(fastrec.FastrecWarning, match="exclude removes 1 of the 3 .* more than 66.7%"):
        report = fastrec.evaluate(**given, metrics="mrr")
    assert report.data["truth_rows_in_exclude"] == 1
    report = fastrec.evaluate(given["recs"], given["truth"], "mrr", history=[[9], []])
    assert (report.data["truth_rows_in_history"], report.warnings) == (1, [])


def test_findings_about_relevance_follow_min_gain() -> None:
    def lines(truth: Any, **settings: Any) -> list[str]:
        return told(lambda: fastrec.evaluate([[1, 2, 3]], truth, "recall@3", **settings))

    assert lines([{1: 5, 5: 1}], exclude=[[5]], min_gain=4) == lines([{1: 0.0, 2: -1.0}], min_gain="any") == []
    assert lines([{1: 1.0, 2: 2.0}], min_gain=4)[0].startswith("no row of the truth has a gain of at least 4 (2 rows)")


@pytest.mark.parametrize("common", [[], [0]])
def test_numbers_of_items_have_nothing_in_common_only_if_no_row_has(common: list[int]) -> None:
    n = 5000
    recs = np.append(np.arange(n), 10 * n), np.array([0, *range(1, n + 2)])
    truth = np.append(np.arange(n) + 2 * n, [10 * n] if common else [11 * n]), np.array([0, *range(1, n + 2)])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fastrec.evaluate(recs, truth, "hit_rate@1")
    assert any("item ids look like" in str(each.message) for each in found) is not bool(common)


def test_batches_without_evidence_count() -> None:
    rng = np.random.default_rng(0)
    whole = fastrec.Evaluator("mrr")
    for batch in range(20):
        scores = [float(batch > 0) * score for score in rng.random(5)]
        whole.update(
            {f"{batch}-{u}": dict(enumerate(scores)) for u in range(5)}, {f"{batch}-{u}": [1] for u in range(5)}
        )
    assert told(whole.result) == []


def test_numbers_of_rows_and_marks_are_no_order() -> None:
    recs = pd.DataFrame({"user_id": [1, 1, 2, 2, 3, 3], "item_id": [1, 2, 2, 1, 1, 2]})
    for column in (range(6), [100, 101, 200, 201, 300, 301], [0, 1, 0, 1, 0, 1], [np.inf, 1, 2, np.inf, 1, 2]):
        assert told(lambda own=column: fastrec.evaluate(recs.assign(x=own), recs, "mrr")) == []  # type: ignore[misc]


def test_swapped_sides_and_short_lists() -> None:
    run = {"q1": {"d1": 12.1, "d2": 7.5}, "q2": {"d2": 0.7, "d3": 0.2}}
    qrels = {"q1": {"d1": 1, "d3": 2}, "q2": {"d2": 1}}
    with pytest.warns(fastrec.FastrecWarning, match="are the two swapped"):
        fastrec.evaluate(qrels, run, "mrr")
    report = fastrec.evaluate([[1, 2]] * 3, [[1]] * 3, "recall", k=[2, 5, 9])
    assert report.data["longest_list"] == 2 and "the longest list has 2 items" in repr(report)


def test_padding_of_arrays() -> None:
    rng = np.random.default_rng(0)
    recs = np.array([rng.permutation(np.arange(1, 99))[:5] for _ in range(40)])
    truth = [[int(row[0])] for row in recs]
    assert fastrec.evaluate(recs, truth, "mrr").warnings == []
    recs[::2, -1] = 0
    with pytest.warns(fastrec.FastrecWarning, match="20 of 40 lists end with item 0, which stands nowhere else"):
        fastrec.evaluate(recs, truth, "mrr")
    recs[1, 2] = 0
    recs[1, -1] = 98
    assert fastrec.evaluate(recs, truth, "mrr").warnings == []


def test_folders_of_days_make_several_lists(tmp_path: Path) -> None:
    days = pd.DataFrame({"day": ["a", "a", "b"], "user_id": [1, 2, 1], "item_id": [10, 11, 12], "score": [3.0, 2, 1]})
    days.to_parquet(tmp_path / "recs", partition_cols=["day"])
    days.drop(columns=["score", "day"]).to_parquet(tmp_path / "truth.parquet")
    lines = told(lambda: fastrec.evaluate_files(tmp_path / "recs", tmp_path / "truth.parquet", "mrr"))
    assert lines == []  # one of two users
    more = pd.DataFrame({"user_id": [2], "item_id": [13], "score": [1.0]})
    more.to_parquet(tmp_path / "recs" / "day=b" / "more.parquet")
    (line,) = told(lambda: fastrec.evaluate_files(tmp_path / "recs", tmp_path / "truth.parquet", "mrr"))
    assert line.startswith("rows of 2 of 2 users lie in several folders day=...")
    kinds = pd.DataFrame({"kind": ["a", "b"] * 4, "user_id": [1, 1, 2, 2, 3, 3, 4, 4], "item_id": [5, 6] * 4})
    kinds.assign(score=[2.0, 1] * 4).to_parquet(tmp_path / "kinds", partition_cols=["kind"])
    kinds[["user_id", "item_id"]].to_parquet(tmp_path / "kinds.parquet")
    assert told(lambda: fastrec.evaluate_files(tmp_path / "kinds", tmp_path / "kinds.parquet", "mrr")) == []


def sound(rng: random.Random) -> tuple[Any, Any]:
    """Return sound lists and a truth in one of the forms, with ids and numbers of some kind."""
    recs, truth = shop(rng, rng.choice([1, 2, 3, 5, 8, 12, 90]), rng.randint(1, 8))
    ids = rng.choice([str, lambda own: int(own[1:]), lambda own: f"{int(own[1:]):04d}", lambda own: f"a b-{own}"])
    recs, truth = (changed(rows, user_id=ids, item_id=ids) for rows in (recs, truth))
    form = rng.choice(["frames", "unsorted", "ranked", "dicts", "grades", "lists", "arrays"])
    if form == "unsorted":
        rng.shuffle(recs)
    if form == "ranked":
        recs = numbered(recs, "rank", fault=False)
    if form in ("frames", "unsorted", "ranked"):
        more = rng.choice([{}, {"model": "a"}, {"day": "2024-01-01", "price": 3.5}])
        if form == "ranked" and rng.random() < 0.5:  # a number that belongs to the item
            recs = [{**row, "price": 1 + len(str(row["item_id"])) / 7} for row in recs]
        truth = without(truth, "gain") if rng.random() < 0.5 else truth
        return pd.DataFrame([{**row, **more} for row in recs]), pd.DataFrame(truth)
    users = list(dict.fromkeys(row["user_id"] for row in recs))
    sides: tuple[dict[Any, dict[Any, float]], ...] = ({user: {} for user in users}, {user: {} for user in users})
    for side, rows in zip(sides, (recs, truth), strict=True):
        for row in rows:
            side[row["user_id"]][row["item_id"]] = row.get("score", row.get("gain"))
    if form == "lists":
        return [list(own) for own in sides[0].values()], [set(own) for own in sides[1].values()]
    if form == "arrays" and isinstance(users[0], int):
        return tuple(
            (np.array([item for own in side.values() for item in own]), np.cumsum([0, *map(len, side.values())]))
            for side in sides
        )
    return sides if form == "dicts" else ({user: list(own) for user, own in sides[0].items()}, sides[1])


@pytest.mark.parametrize("n", [200, pytest.param(50_000, marks=pytest.mark.thorough)])
def test_sound_input_has_no_finding(n: int) -> None:
    rng = random.Random(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(n):
            assert fastrec.evaluate(*sound(rng), metrics=["ndcg@3", "recall"]).warnings == []


def test_ranks_in_order_and_prices_leave_the_order_of_rows_alone() -> None:
    recs, truth = shop(random.Random(0), 60, 5)
    rows = without(numbered(recs, "place", fault=False), "score")
    frames = pd.DataFrame(rows), pd.DataFrame(truth)
    seconds = frames[0].assign(seconds=np.random.default_rng(0).random(len(rows)))
    assert told(lambda: fastrec.evaluate(seconds, frames[1], "mrr", gain="gain")) == []
    price = [int(row["item_id"][1:]) * 7 % 97 / 10 for row in rows]
    plain = frames[0].drop(columns="place").assign(price=price)
    assert told(lambda: fastrec.evaluate(plain, frames[1], "mrr", gain="gain")) == []
