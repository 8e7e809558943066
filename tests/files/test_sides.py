"""Items, histories and references in files: the bits and the report of the same call on data frames, by every route."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastrec
from support.bits import user_bits
from support.read_files import fails
from support.side_metrics import ALONE, register
from support.tables import write_table

N_USERS, N_ITEMS = 300, 60
METRICS = ["ndcg@10", *ALONE]
UNMATCHED = pytest.mark.filterwarnings("ignore:no truth item is in its user's list")


@pytest.fixture(autouse=True)
def _metrics_and_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)
    monkeypatch.setattr("fastrec.files.resources.MIN_BATCH", 200)
    monkeypatch.setattr("fastrec.files.resources.MAX_BATCH", 200)


def tables(*, strings: bool) -> dict[str, pa.Table]:
    """Return sides with shuffled rows: users on some sides only, repeated rows of history, tied scores."""
    draw = np.random.default_rng(7)
    word = (lambda ids: [f"é{i:03d}" for i in ids]) if strings else (lambda ids: ids)
    made = {}
    for name, length, n_users in (("recs", 9, 280), ("truth", 3, 250), ("history", 5, 260), ("reference", 9, 270)):
        users = np.repeat(draw.permutation(N_USERS)[:n_users], length)
        items = np.concatenate([draw.permutation(N_ITEMS)[:length] for _ in range(n_users)])
        columns: dict[str, Any] = {"user_id": word(users), "item_id": word(items)}
        if name == "recs":
            columns |= {"rank": np.tile(np.arange(1, length + 1), n_users)}
        if name == "reference":
            columns |= {"score": np.tile(draw.permutation(length) / 4, n_users)}
        order = draw.permutation(len(users))
        made[name] = pa.table(columns).take(np.append(order, order[:200]) if name == "history" else order)
    genres = [["a", "b", "c"][: 1 + n % 3] for n in range(N_ITEMS)]
    ids = draw.permutation(N_ITEMS)
    vectors = pa.array([[n / 4, 1.0] for n in range(N_ITEMS)], pa.list_(pa.float64()))
    price = np.round(draw.random(N_ITEMS), 3)
    made["items"] = pa.table({"item_id": word(ids), "price": price, "genre": genres, "vector": vectors, "Price": ids})
    return made


def write_all(folder: Path, made: Mapping[str, pa.Table], ending: str) -> dict[str, str]:
    return {name: write_table(table, folder / f"{name}{ending}") for name, table in made.items()}


def assert_same(found: fastrec.Report, expected: fastrec.Report) -> None:
    assert user_bits(found) == user_bits(expected)
    assert found.to_dict() == expected.to_dict()
    assert [found.warnings, found.user_ids.tolist()] == [expected.warnings, expected.user_ids.tolist()]


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("exclude", [None, "history"])
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_all_sides(tmp_path: Path, ending: str, strings: bool, exclude: Any) -> None:
    made, asked = tables(strings=strings), METRICS
    if ending == ".csv":  # holds no lists
        made["items"] = made["items"].drop(["genre", "vector"])
        asked = [name for name in METRICS if name not in ("own_genres", "own_size")]
    options: dict[str, Any] = {"metrics": asked, "exclude": exclude, "per_user": True}
    found = fastrec.evaluate_files(**write_all(tmp_path, made, ending), **options)
    assert_same(found, fastrec.evaluate(**made, **options))
    assert (found.data["excluded_items"] > 0) == (exclude is not None)
    assert found.settings["n_items"] == N_ITEMS


def clicks(*, strings: bool) -> dict[str, pa.Table]:
    """Return lists, and a truth with propensities and logged ranks."""
    made, draw = tables(strings=strings), np.random.default_rng(8)
    n = len(made["truth"])
    columns = {"propensity": np.round(0.05 + 0.9 * draw.random(n), 3), "logged_rank": draw.integers(1, 5, n)}
    for name, column in columns.items():
        made["truth"] = made["truth"].append_column(name, pa.array(column))
    return {name: made[name] for name in ("recs", "truth")}


WEIGHTED = ["ips@3", "snips(of=dcg, clip=0.2)@5", "ips(of=rbp, average=pooled)", "ndcg@3"]
CURVE = [1.0, 0.6, 0.5, 0.2]


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_logged_columns(tmp_path: Path, ending: str, ranked: bool) -> None:
    made = clicks(strings=ranked)
    options: dict[str, Any] = {"metrics": WEIGHTED, "per_user": True, "logged": "truth"}
    options |= {"logged_rank": "logged_rank", "examination": CURVE} if ranked else {}
    expected = fastrec.evaluate(made["recs"], made["truth"], **options)
    assert_same(fastrec.evaluate_files(**write_all(tmp_path, made, ending), **options), expected)
    assert expected.data["clipped_rows(clip=0.2)"] > 0 or ranked


def test_a_file_of_propensities_of_its_own(tmp_path: Path) -> None:
    made = clicks(strings=False)
    expected = fastrec.evaluate(made["recs"], made["truth"], WEIGHTED, logged="truth")
    own = made["truth"].rename_columns(["user_id", "item_id", "p", "at"]).take(np.arange(len(made["truth"]))[::-1])
    paths = write_all(tmp_path, {**made, "truth": made["truth"].select(["user_id", "item_id"]), "logged": own}, ".csv")
    found = fastrec.evaluate_files(**paths, metrics=WEIGHTED, propensity="p")
    assert found.estimates == expected.estimates and found.data == expected.data


def test_errors_of_propensities_name_the_file(tmp_path: Path) -> None:
    made = clicks(strings=False)
    bare = {**made, "truth": made["truth"].select(["user_id", "item_id"])}
    paths = write_all(tmp_path, bare, ".csv")
    with pytest.raises(fastrec.InputError, match=r"logged has no numbers, only items: name their column"):
        fastrec.evaluate_files(**paths, metrics="ips@3", logged="truth")
    with pytest.raises(fastrec.InputError, match=r"truth\.csv: no column 'p'"):
        fastrec.evaluate_files(**paths, metrics="ips@3", logged="truth", propensity="p")
    lost = write_table(made["truth"].slice(1), tmp_path / "lost.csv")
    with pytest.raises(fastrec.InputError, match=r"has no propensity of item \d+ in the truth of user \d+"):
        fastrec.evaluate_files(**paths, metrics="ips@3", logged=lost)


COVERING = ["alpha_ndcg@5", "err_ia@3", "nrbp", "strecall@5", "precision_ia@5", "map_ia", "mrr"]


def covering(*, strings: bool) -> dict[str, pa.Table]:
    """Return lists, truth, and shuffled subtopics: of other items too, some without, some rows twice."""
    made, draw = tables(strings=strings), np.random.default_rng(9)
    both = pa.concat_tables([made[name].select(["user_id", "item_id"]) for name in ("truth", "truth", "recs")])
    both = both.append_column("subtopic", pa.array(draw.integers(-2, 4, len(both))))
    kept = draw.permutation(np.flatnonzero([str(user)[-1] != "3" for user in both["user_id"].to_pylist()]))
    return {"recs": made["recs"], "truth": made["truth"], "subtopics": both.take(kept[:-200])}


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("strings", [False, True])
def test_subtopics(tmp_path: Path, ending: str, strings: bool) -> None:
    made = covering(strings=strings)
    found = fastrec.evaluate_files(**write_all(tmp_path, made, ending), metrics=COVERING, per_user=True)
    assert_same(found, fastrec.evaluate(**made, metrics=COVERING, per_user=True))
    assert 0 < found["alpha_dcg(denominator=ideal)@5"] < 1 and found.data["users_without_subtopics"] > 0


def test_a_column_of_subtopics_by_name(tmp_path: Path) -> None:
    made = covering(strings=False)
    expected = fastrec.evaluate(**made, metrics=COVERING)
    made["subtopics"] = made["subtopics"].rename_columns(["user_id", "item_id", "intent"])
    paths = write_all(tmp_path, made, ".csv")
    assert fastrec.evaluate_files(**paths, metrics=COVERING, subtopic="intent").estimates == expected.estimates
    with pytest.raises(fastrec.InputError, match=r"subtopics has no numbers, only items: name their column with"):
        fastrec.evaluate_files(**paths, metrics=COVERING)
    with pytest.raises(fastrec.InputError, match=r"subtopics\.csv: no column 'topic'"):
        fastrec.evaluate_files(**paths, metrics=COVERING, subtopic="topic")
    words = made["subtopics"].set_column(2, "intent", [[f"s{n}" for n in made["subtopics"]["intent"].to_pylist()]])
    paths["subtopics"] = write_table(words, tmp_path / "words.csv")
    with pytest.raises(fastrec.InputTypeError, match=r"words\.csv: column 'intent' must hold numbers"):
        fastrec.evaluate_files(**paths, metrics=COVERING, subtopic="intent")


def test_judgements_of_trec_have_no_subtopics(tmp_path: Path) -> None:
    made = covering(strings=False)
    paths = write_all(tmp_path, {name: made[name] for name in ("recs", "truth")}, ".csv")
    for grade, message in ((1, "subtopics has no numbers"), (0, "must be above 0 in all rows")):
        judged = tmp_path / "qrels.trec"
        judged.write_text(f"1 0 3 {grade}\n")
        with pytest.raises(fastrec.InputError, match=message):
            fastrec.evaluate_files(**paths, subtopics=judged, metrics="strecall")


@pytest.mark.usefixtures("each_way")
def test_without_truth(tmp_path: Path) -> None:
    made = tables(strings=True)
    del made["truth"]
    paths = write_all(tmp_path, made, ".parquet")
    for metrics in (ALONE, iter(ALONE)):
        found = fastrec.evaluate_files(**paths, metrics=metrics, per_user=True)
        assert_same(found, fastrec.evaluate(**made, metrics=ALONE, per_user=True))
    assert (found.users["evaluated"], found.users["no_truth"]) == (280, 0)


@pytest.mark.usefixtures("each_way")
def test_groups_are_of_users_with_lists_or_truth(tmp_path: Path) -> None:
    made = tables(strings=False)
    for name in made:
        if name != "items":
            ids = made[name]["user_id"].to_numpy()
            made[name] = made[name].append_column("plan", [np.where(ids % 3 == 0, name, "all")])
    for name in ("recs", "truth"):
        made[name] = made[name].set_column(
            made[name].num_columns - 1, "plan", [np.where(made[name]["user_id"].to_numpy() % 2, "odd", "even")]
        )
    paths = write_all(tmp_path, made, ".parquet")
    found = fastrec.evaluate_files(**paths, metrics=METRICS, by="plan")
    assert list(found.groups["plan"]) == ["even", "odd"]
    assert found.to_dict() == fastrec.evaluate(**made, metrics=METRICS, by="plan").to_dict()


@pytest.mark.parametrize("kind", ["integers", "strings", "digits", "mixed"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_ids_of_items_match_those_of_lists(tmp_path: Path, kind: str, ending: str) -> None:
    ids = {"integers": [1, 2, 3], "strings": ["x", "y", "z"], "digits": ["1", "2", "3"], "mixed": ["1", "2", "z"]}[kind]
    lists = pa.table({"user_id": [1, 1], "item_id": ids[:2]})
    recs, shop = write_table(lists, tmp_path / "recs.parquet"), tmp_path / f"items{ending}"
    history = write_table(lists, tmp_path / "history.csv")
    items = write_table({"item_id": ids, "price": [0.5, 2.0, 4.0]}, shop)
    found = fastrec.evaluate_files(recs, None, ["own_price", "own_repeats"], items=items, history=history)
    assert [found["own_price"], found["own_repeats"]] == [2.5, 2.02]


@UNMATCHED
@pytest.mark.parametrize(
    ("lists", "shop", "ending"),
    [([1, 2], ["1", "x"], ".csv"), ([1, 2], ["1", "x"], ".parquet"), (["a", "b"], [1, 2], ".parquet")],
)
def test_ids_that_cannot_match(tmp_path: Path, lists: list[Any], shop: list[Any], ending: str) -> None:
    recs = write_table({"user_id": [1, 1], "item_id": lists}, tmp_path / "recs.parquet")
    items = write_table({"item_id": shop, "price": [1, 2]}, tmp_path / f"items{ending}")
    with pytest.raises(
        fastrec.InputTypeError, match=r"^item ids must be of one type on all sides, found .*recs\.parquet: "
    ):
        fastrec.evaluate_files(recs, recs, "mrr", items=items)


COLUMNS = {
    "integers": ("1\n2\n3\n", [1.0, 2.0, 3.0]),
    "floats": ("1\n2.5\n1e2\n", [1.0, 2.5, 100.0]),
    "strings": ("x\n2\n1\n", "must hold numbers, found string"),
    "codes": ("007\n1\n2\n", "must hold numbers, found string"),
    "long": (f"{2**64}\n1\n2\n", "must hold numbers, found string"),
    "rounded": (f"{2**53 + 1}\n1\n2\n", f"holds? .*{2**53 + 1}"),
}
EMPTY = {"empty": "1\n\n2\n", "all empty": "\n\n\n", "NaN": "1\nnan\n2\n"}


def item_cells(folder: Path, cells: str, column: str = "price") -> dict[str, str]:
    """Write a column of a CSV of items, and lists of one item; return the paths."""
    shop = folder / "items.csv"
    rows = "".join(f"{n},{value},\n" for n, value in enumerate(cells.split("\n")[:-1], 1))
    shop.write_text(f"item_id,{column},other\n{rows}")
    return {"recs": write_table({"user_id": [1, 2, 3], "item_id": [1, 2, 3]}, folder / "r.parquet"), "items": str(shop)}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_cell_is_an_item_without_the_number(tmp_path: Path, kind: str) -> None:
    call: dict[str, Any] = {"metrics": "popularity(column=price, unseen=drop)", **item_cells(tmp_path, EMPTY[kind])}
    if kind == "all empty":
        assert "column 'price' must hold" in fails(**call)
        return
    report = fastrec.evaluate_files(per_user=True, **call)
    assert np.array_equal(report.per_user["popularity(column=price, unseen=drop)"], [1.0, np.nan, 2.0], equal_nan=True)


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_a_csv(tmp_path: Path, kind: str) -> None:
    text, wanted = COLUMNS[kind]
    paths = item_cells(tmp_path, text)
    if isinstance(wanted, list):
        report = fastrec.evaluate_files(**paths, metrics="own_price", per_user=True)
        assert report.per_user["own_price"].tolist() == wanted
        return
    told = fails(**paths, metrics="own_price", error=fastrec.FastrecError)
    assert re.match(rf"{re.escape(paths['items'])}: column 'price' .*{wanted}", told)
    assert fastrec.evaluate_files(paths["recs"], paths["recs"], "mrr", items=paths["items"]).settings["n_items"] == 3


def test_a_csv_spells_categories_as_they_are(tmp_path: Path) -> None:
    report = fastrec.evaluate_files(**item_cells(tmp_path, "007\n7\n7\n", "genre"), metrics="own_genres", per_user=True)
    assert report.per_user["own_genres"].tolist() == [0.125, 1.125, 1.125]


def test_tables_of_items_in_all_forms(tmp_path: Path) -> None:
    rows = {"item_id": [1, 2, 3], "price": [0.5, 2.0, 4.0]}
    (tmp_path / "folder" / "day=5").mkdir(parents=True)
    write_table(pa.table(rows).slice(0, 1), tmp_path / "folder" / "day=5" / "a.csv")
    write_table(pa.table(rows).slice(1), tmp_path / "folder" / "day=5" / "b.csv")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"item_id;price\n1;0.5\n2;2\n3;4\n"))
    (tmp_path / "broken.csv").write_text('item_id,price,"a\nb"\n1,0.5,\n2,2,\n3,4,"x\ny"\n')
    nested = pa.table(rows).append_column("", [[[{"x": 1}], [], None]]).append_column("image", [[b"\xff", b"", None]])
    write_table(nested, tmp_path / "nested.parquet")
    write_table(pa.table(rows).append_column("", [[{"x": 1}, {"x": 2}, None]]), tmp_path / "nested.jsonl")
    (tmp_path / "recs.run").write_text("1 Q0 2 1 0.5 tag\n1 Q0 1 2 0.25 tag\n2 Q0 3 1 0.5 tag\n")
    parquet = write_table({"user_id": [1, 1, 2], "item_id": [2, 1, 3]}, tmp_path / "recs.parquet")
    for recs, input_format in ((tmp_path / "recs.run", "trec"), (parquet, "auto")):
        for name in ("folder", "packed.csv.gz", "broken.csv", "nested.parquet", "nested.jsonl"):
            shop = tmp_path / name
            found = fastrec.evaluate_files(recs, None, "own_price", items=shop, input_format=input_format)
            assert (found["own_price"], found.settings["n_items"]) == (3.25, 3)


def test_the_column_of_items_may_have_another_name(tmp_path: Path) -> None:
    recs = write_table({"user_id": [1], "sku": [2]}, tmp_path / "recs.parquet")
    for name in ("sku", "item_id"):
        shop = write_table({name: [1, 2], "price": [0.5, 2.0]}, tmp_path / f"{name}.csv")
        assert fastrec.evaluate_files(recs, None, "own_price", item="sku", items=shop)["own_price"] == 2.0


JSON = {
    "objects": ('{"x": 1}', '{"x": 2}', "holds objects or values of several kinds"),
    "kinds": ("1", '"x"', "holds objects or values of several kinds"),
    "lists of kinds": ("[1]", '["x"]', "holds objects or values of several kinds"),
    "lists of lists": ("[[1]]", "[[2]]", "holds objects or values of several kinds"),
    "lists": ("[1]", "[2]", "must be numbers|must hold numbers"),
}


@pytest.mark.parametrize("kind", JSON)
def test_a_column_of_json_that_a_metric_cannot_read(tmp_path: Path, kind: str) -> None:
    first, second, says = JSON[kind]
    shop = tmp_path / "items.jsonl"
    rows = [{"item_id": 1, "price": json.loads(first), "other": 1}, {"item_id": 2, "price": json.loads(first)}]
    shop.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"item_id": 3, "price": json.loads(second)}]))
    recs = write_table({"user_id": [1, 1], "item_id": [2, 3]}, tmp_path / "recs.parquet")
    where = re.escape(f"{shop}: column 'price'")
    with pytest.raises(fastrec.FastrecError, match=f"^{where} .*({says})"):
        fastrec.evaluate_files(recs, None, "own_price", items=shop)
    assert fastrec.evaluate_files(recs, recs, "mrr", items=shop).settings["n_items"] == 3


ROWS = {
    "items": "item_id,price\n5,1\n6,2\n",
    "history": "user_id,item_id\n1,5\n",
    "reference": "user_id,item_id\n1,6\n",
}
FAULTS = {
    "no ids of items": ({"items": "sku,price\n5,1\n"}, "PATH/items.csv: no column 'item_id'"),
    "no items": (
        {"items": "item_id,price\n"},
        "PATH/items.csv: a table of items must have at least one row, found none",
    ),
    "an item twice": (
        {"items": "item_id,price\n5,1\n6,2\n5,1\n"},
        "PATH/items.csv: column 'item_id' must have each item once, found 5 again in row 3",
    ),
    "no column of items": (
        {"items": "item_id,cost\n5,1\n6,2\n"},
        "PATH/items.csv has no column 'price'; columns: cost",
    ),
    "an item without id": (
        {"items": "item_id,price\n5,1\n,2\n"},
        "PATH/items.csv: column 'item_id' must not be null, found null",
    ),
    "no items of the history": ({"history": "user_id,sku\n1,5\n"}, "PATH/history.csv: no column 'item_id'"),
    "history of text": ({"history": "user_id,item_id\n1,x\n"}, "item ids cannot be matched: PATH/recs.parquet: column"),
    "score of reference": (
        {"reference": "user_id,item_id,score\n1,5,much\n"},
        "PATH/reference.csv: column 'score' must hold numbers, found 'much' in row 1",
    ),
    "tied reference": (
        {"reference": "user_id,item_id,score\n1,5,2\n1,6,2\n"},
        "reference of user 1 has tied scores; choose an order with ties=",
    ),
    "reference with a copy": (
        {"reference": "user_id,item_id,score\n1,5,2\n1,5,3\n"},
        "reference of user 1: item 5 appears twice, the second time at rank 2; ",
    ),
    "rank twice": (
        {"reference": "user_id,item_id,rank\n1,5,1\n1,6,1\n"},
        "PATH/reference.csv: column 'rank' holds a rank twice for one user: user 1, rank 1",
    ),
}


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults(tmp_path: Path, fault: str) -> None:
    texts, says = FAULTS[fault]
    recs = write_table({"user_id": [1, 1], "item_id": [5, 6]}, tmp_path / "recs.parquet")
    for name, content in {**ROWS, **texts}.items():
        (tmp_path / f"{name}.csv").write_text(content)
    paths: dict[str, Any] = {name: str(tmp_path / f"{name}.csv") for name in ROWS}
    with pytest.raises(fastrec.FastrecError) as error:
        fastrec.evaluate_files(recs, None, ["own_price", "own_repeats", "own_first"], **paths)
    assert str(error.value).replace(str(tmp_path), "PATH").startswith(says)


def test_an_empty_history(tmp_path: Path) -> None:
    recs = write_table({"user_id": [1, 1], "item_id": [5, 6]}, tmp_path / "recs.parquet")
    empty = pa.table({"user_id": pa.array([], pa.int64()), "item_id": pa.array([], pa.int64())})
    (tmp_path / "history.csv").write_text("user_id,item_id\n")
    for history in (write_table(empty, tmp_path / "history.parquet"), tmp_path / "history.csv"):
        found = fastrec.evaluate_files(recs, recs, ["own_repeats", "mrr"], history=history, exclude="history")
        assert (found["own_repeats"], found["mrr"]) == (0.0, 1.0)


def test_a_history_to_exclude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recs = write_table({"user_id": [1, 1], "item_id": [5, 6]}, tmp_path / "recs.parquet")
    seen = write_table({"user_id": [1], "item_id": [5]}, tmp_path / "history")
    truth = write_table({"user_id": [1], "item_id": [6]}, tmp_path / "truth.parquet")
    os.rename(write_table({"user_id": [1], "item_id": [5]}, tmp_path / "h.parquet"), seen)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fastrec.InputError, match=r"^exclude='history' needs history=\.\.\.$"):
        fastrec.evaluate_files(recs, truth, "mrr", exclude="history")
    for given in ({"exclude": "history", "history": seen}, {"exclude": "./history"}, {"exclude": Path("history")}):
        assert fastrec.evaluate_files(recs, truth, "mrr", **given)["mrr"] == 1.0


@pytest.mark.usefixtures("each_way")
def test_sides_without_a_user_of_the_lists(tmp_path: Path) -> None:
    made = tables(strings=True)
    for name, before in (("history", "x"), ("reference", " ")):
        users = [before + user for user in made[name]["user_id"].to_pylist()]
        made[name] = made[name].set_column(0, "user_id", [users])
    paths = write_all(tmp_path, made, ".parquet")
    with pytest.warns(fastrec.FastrecWarning, match="no user of"):
        found = fastrec.evaluate_files(**paths, metrics=["own_repeats", "own_first"])
    ends = "has a list: do the user ids match?"
    assert sorted(found.warnings) == [f"no user of {name} {ends}" for name in ("history", "reference")]
    one = made["recs"].select(["user_id", "item_id"]).slice(len(made["recs"]) - 1)
    rows = pa.concat_tables([made["history"].select(["user_id", "item_id"]), one])
    paths["history"] = write_table(rows, tmp_path / "one.parquet")
    with pytest.warns(fastrec.FastrecWarning, match="no user of reference"):
        again = fastrec.evaluate_files(**paths, metrics="own_repeats")
    assert again.warnings == sorted(found.warnings)[1:]


def test_a_log_has_no_further_sides(tmp_path: Path) -> None:
    log = write_table(
        pa.table({"user_id": [1], "item_id": [5], "label": [1], "score": [0.5]}), tmp_path / "log.parquet"
    )
    for name in ("items", "history", "reference", "exclude"):
        with pytest.raises(fastrec.InputError, match=f"^{name} does not apply to a log, without truth"):
            fastrec.evaluate_files(log, None, "auc", **{name: log})
        with pytest.raises(fastrec.InputError, match=f"^{name} does not apply to a log, without truth"):
            fastrec.evaluate_files(log, None, "own_repeats", **{name: log})


def test_which_files_without_truth_are_lists(tmp_path: Path) -> None:
    @fastrec.ranking_metric(range=(0, None), source="ours")
    def own_length(s: Any) -> Any:
        """Length of the list."""
        return s.n_rec

    recs = write_table(
        pa.table({"user_id": [1, 1], "item_id": [5, 6], "score": [0.5, 0.25]}), tmp_path / "recs.parquet"
    )
    rows = {"user_id": [1, 1, 1], "item_id": [5, 6, 7], "label": [1, 0, 0], "score": [0.5, 0.25, 0.0]}
    log = write_table(pa.table(rows), tmp_path / "log.csv")
    assert fastrec.evaluate_files(recs, None, "own_length").data["rec_rows_by_score"] == 2
    assert fastrec.evaluate_files(recs, None, "own_length", k=iter([1, 2])).data["rec_rows_by_score"] == 2
    assert "rows" in fastrec.evaluate_files(log, None, "own_length").data
    with pytest.raises(fastrec.InputError, match="no column 'label'"):
        fastrec.evaluate_files(recs, None, ["own_length", "mrr"])
    with pytest.raises(fastrec.InputError, match="no column 'clicked'"):
        fastrec.evaluate_files(recs, None, "own_length", label="clicked")
    with pytest.raises(fastrec.MetricError, match="own_repeats needs history="):
        fastrec.evaluate_files(recs, None, "own_repeats")


def test_explain_takes_paths_of_further_sides(tmp_path: Path) -> None:
    recs = write_table({"user_id": [1, 1], "item_id": [5, 6]}, tmp_path / "recs.parquet")
    seen = write_table({"user_id": [1], "item_id": [5]}, tmp_path / "seen.parquet")
    truth = write_table({"user_id": [1], "item_id": [6]}, tmp_path / "truth.parquet")
    shop = write_table({"item_id": [5, 6, 7]}, tmp_path / "items.parquet")
    more: dict[str, Any] = {"history": seen, "reference": recs, "items": shop, "exclude": "history"}
    why = fastrec.explain("mrr", recs, truth, like="ranx", **more)
    assert {side.estimate.mean for side in why.sides.values() if side.estimate is not None} == {1.0}
    alone = fastrec.explain("own_repeats", recs, history=seen)
    assert alone.sides["fastrec"].estimate is not None and alone.sides["fastrec"].estimate.mean == 1.01


ITEM_METRICS = [
    *(
        "item_coverage",
        "gini",
        "gini(discount=rbp)",
        "shannon_entropy",
        "personalization",
        "novelty",
        "popularity_lift",
    ),
    *(
        "repeat_ratio",
        "overlap",
        "rbo",
        "miscalibration(column=genre)",
        "category_entropy(column=genre)",
        "epc",
        "aplt",
    ),
    *("intra_list_diversity(column=vector)", "popularity(column=price)", "serendipity", "rsp", "reo", "ndcg"),
]


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("strings", [False, True])
def test_metrics_of_items(tmp_path: Path, strings: bool) -> None:
    """Batches are read twice for standard errors; the popularity is that of the whole history."""
    made = tables(strings=strings)
    labels = {user: "xy"[nth % 2] for nth, user in enumerate(sorted(set(made["recs"]["user_id"].to_pylist())))}
    call: dict[str, Any] = {"k": [3, 8], "per_user": True, "by": labels, "no_features": "drop"}
    expected = fastrec.evaluate(**made, metrics=ITEM_METRICS, **call)
    paths = write_all(tmp_path, made, ".parquet")
    found = fastrec.evaluate_files(**paths, metrics=ITEM_METRICS, **call)
    assert all(np.isfinite(found.estimates[f"{name}@8"].std_error) for name in ("gini", "shannon_entropy", "novelty"))
    assert_same(found, expected)
