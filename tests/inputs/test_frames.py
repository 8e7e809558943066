"""Data frames and Arrow data of any library: the same bits as from arrays, and errors that name column and row."""

import csv
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from support.frames import FORMS, LIST_FORMS, Row, Table, pandas_categories

nw = pytest.importorskip("narwhals.stable.v2")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


Array = np.ndarray[Any, Any]
METRICS = ["ndcg@5", "recall@3", "map", "mrr", "hits@2", "precision(average=pooled)@5", "ndcg(gain=exp2)"]
FOLDER = os.environ.get("FASTREC_TEST_DATA")


class Log(NamedTuple):
    """Draw lists and graded truth of users, some on only one side."""

    recs: dict[Any, list[Any]]
    truth: dict[Any, dict[Any, float]]

    def wanted(self, **options: Any) -> fastrec.Report:
        return fastrec.evaluate(self.recs, self.truth, METRICS, per_user=True, **options)

    def tables(self) -> tuple[Table, Table]:
        recs: Table = {"user_id": [], "item_id": [], "rank": []}
        for user, items in self.recs.items():
            recs["user_id"] += [user] * len(items)
            recs["item_id"] += items
            recs["rank"] += range(1, len(items) + 1)
        truth: Table = {"user_id": [], "item_id": [], "gain": []}
        for user, gains in self.truth.items():
            truth["user_id"] += [user] * len(gains)
            truth["item_id"] += list(gains)
            truth["gain"] += list(gains.values())
        return recs, truth

    def lists(self) -> tuple[Table, Table]:
        recs: Table = {"user_id": list(self.recs), "item_id": list(self.recs.values())}
        truth: Table = {"user_id": list(self.truth), "item_id": [list(row) for row in self.truth.values()]}
        truth["gain"] = [list(row.values()) for row in self.truth.values()]
        return recs, truth


def make_log(seed: int, *, texts: bool) -> Log:
    rng = np.random.default_rng(seed)
    users = rng.permutation(40).tolist()
    name: Callable[[str, int], Any] = (lambda kind, n: f"{kind}{n}ä") if texts else (lambda _, n: n * 1000)
    recs = {name("u", u): [name("i", i) for i in rng.permutation(30)[: rng.integers(1, 9)]] for u in users[:35]}
    truth = {
        name("u", u): {name("i", int(i)): float(rng.integers(1, 4)) for i in rng.permutation(30)[: rng.integers(1, 9)]}
        for u in rng.permutation(users[3:]).tolist()
    }
    recs = {user: [item if texts else int(item) for item in row] for user, row in recs.items()}
    return Log(recs, truth)


def shuffle(table: Table, seed: int = 1) -> Table:
    order = np.random.default_rng(seed).permutation(len(next(iter(table.values())))).tolist()
    return {name: [values[at] for at in order] for name, values in table.items()}


def but_order(data: dict[str, float]) -> dict[str, float]:
    """Return the counts of the data without what ordered the lists: frames need columns for it, arrays do not."""
    return {name: value for name, value in data.items() if not name.startswith("rec_rows_by_")}


def check_equal(report: fastrec.Report, wanted: fastrec.Report, *, per_user: bool = True) -> None:
    """Check for the same numbers to the last bit, with users matched by id and reported in the order of ids."""
    assert report.users == wanted.users
    assert repr(but_order(report.data)) == repr(but_order(wanted.data))  # NaN equals itself here
    assert repr(report.estimates) == repr(wanted.estimates)
    assert repr(report.groups) == repr(wanted.groups)
    if per_user:
        assert report.user_ids.tolist() == sorted(wanted.user_ids.tolist())
        order = np.argsort(wanted.user_ids)
        for name, values in wanted.per_user.items():
            np.testing.assert_array_equal(report.per_user[name], values[order])


@pytest.mark.thorough(except_for="^(pandas|Polars|PyArrow)-")
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
@pytest.mark.parametrize("texts", [False, True], ids=["integers", "texts"])
@pytest.mark.parametrize("form", FORMS)
def test_long_frames(form: str, texts: bool, shuffled: bool) -> None:
    log = make_log(1, texts=texts)
    tables = log.tables()
    recs, truth = (FORMS[form](shuffle(table) if shuffled else table) for table in tables)
    check_equal(fastrec.evaluate(recs, truth, METRICS, per_user=True), log.wanted())


@pytest.mark.thorough(except_for="^(pandas|Polars|PyArrow)-")
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
@pytest.mark.parametrize("texts", [False, True], ids=["integers", "texts"])
@pytest.mark.parametrize("form", LIST_FORMS)
def test_columns_of_lists(form: str, texts: bool, shuffled: bool) -> None:
    log = make_log(2, texts=texts)
    recs, truth = (LIST_FORMS[form](shuffle(table) if shuffled else table) for table in log.lists())
    check_equal(fastrec.evaluate(recs, truth, METRICS, per_user=True), log.wanted())


def test_forms_and_libraries_may_be_mixed() -> None:
    log = make_log(3, texts=True)
    recs, truth = pl.DataFrame(log.lists()[0]), pandas_categories(shuffle(log.tables()[1]))
    check_equal(fastrec.evaluate(recs, truth, METRICS, per_user=True), log.wanted())


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_any_width(kind: str) -> None:
    wanted = fastrec.evaluate({5: [3, 1], 2: [4]}, {2: [4], 5: [1]}, ["mrr"])["mrr"]
    recs = pl.DataFrame({"user_id": [2, 5, 5], "item_id": [4, 1, 3], "rank": [1, 2, 1]})
    truth = pl.DataFrame({"user_id": [5, 2], "item_id": [1, 4]})
    cast = pl.all().cast(getattr(pl, kind.replace("uint", "UInt").replace("int", "Int")))
    assert fastrec.evaluate(recs.select(cast), truth.select(cast), ["mrr"])["mrr"] == wanted
    assert fastrec.evaluate(recs.select(cast), truth, ["mrr"])["mrr"] == wanted


def test_the_largest_ids() -> None:
    top = 2**63 - 1
    for kind in (pa.uint64(), pa.int64()):
        ids = pa.table({"user_id": pa.array([top, top - 1], kind), "item_id": pa.array([top, 0], kind)})
        report = fastrec.evaluate(ids, ids, ["mrr"], per_user=True)
        assert report["mrr"] == 1.0
        assert report.user_ids.tolist() == [top - 1, top]


def test_an_id_past_the_largest() -> None:
    frame = pl.DataFrame({"user_id": [1, 2], "item_id": pl.Series([1, 2**63], dtype=pl.UInt64)})
    assert refused(frame, frame) == f"recs column 'item_id' must not exceed 2**63 - 1, found {2**63} at position 1"


def test_a_fixed_number_of_items_per_user() -> None:
    rows = np.arange(12).reshape(4, 3)
    frame = pl.DataFrame({"user_id": [1, 2, 3, 4], "item_id": pl.Series(rows.tolist(), dtype=pl.Array(pl.Int64, 3))})
    truth = pl.DataFrame({"user_id": [4, 3], "item_id": [10, 6]})
    assert fastrec.evaluate(frame[2:], truth, ["mrr"], per_user=True).per_user["mrr"].tolist() == [1.0, 0.5]
    table = frame.to_arrow().slice(2)
    assert fastrec.evaluate(table, truth, ["mrr"], per_user=True).per_user["mrr"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize("kind", [pa.ListViewArray, pa.LargeListViewArray])
def test_a_list_view(kind: Any) -> None:
    """Return lists that are in any order, overlap and leave values out."""
    offsets, sizes = pa.array([0, 4, 1, 2, 0]), pa.array([1, 1, 2, 1, 3])
    if kind is pa.ListViewArray:
        offsets, sizes = offsets.cast(pa.int32()), sizes.cast(pa.int32())
    lists = kind.from_arrays(offsets, sizes, pa.array([1, 2, 3, 9, 4]))
    frame = pa.table({"user_id": [5, 6, 7, 8, 9], "item_id": lists})
    truth = pa.table({"user_id": [8, 7, 6, 9], "item_id": [3, 3, 4, 3]})
    assert fastrec.evaluate(frame, truth, "mrr", per_user=True).per_user["mrr"][1:].tolist() == [1, 0.5, 1, 1 / 3]
    assert fastrec.evaluate(frame[1:], truth, "mrr", per_user=True).per_user["mrr"].tolist() == [1, 0.5, 1, 1 / 3]


LISTS = [[1, 2, 3], [4], [5, 6]]
LIST_ARRAYS = {
    "PyArrow": lambda: pa.array(LISTS),
    "PyArrow, chunks": lambda: pa.chunked_array([pa.array(LISTS[:1]), pa.array(LISTS[1:])]),
    "PyArrow, a slice": lambda: pa.array([[9], *LISTS, [8]]).slice(1, 3),
    "Polars": lambda: pl.Series(LISTS),
    "pandas": lambda: pd.Series(LISTS),
}


def export(library: Any) -> bool:
    """Return whether its Series can be exported: in older versions only data frames can."""
    return hasattr(library.Series, "__arrow_c_stream__")


for library, form in ((pl, "Polars"), (pd, "pandas")):
    if not export(library):
        del LIST_ARRAYS[form]


@pytest.mark.parametrize("form", LIST_ARRAYS)
def test_arrays_of_lists_go_by_position(form: str) -> None:
    truth = [[3], [4], [7]]
    wanted = fastrec.evaluate(LISTS, truth, ["mrr", "recall"])
    check_equal(fastrec.evaluate(LIST_ARRAYS[form](), truth, ["mrr", "recall"]), wanted, per_user=False)
    check_equal(fastrec.evaluate(LISTS, pa.array(truth), ["mrr", "recall"]), wanted, per_user=False)


def test_arrays_of_lists_of_texts() -> None:
    recs = pa.array([["a", "b"], ["c"]])
    assert fastrec.evaluate(recs, [["b"], ["c"]], "mrr")["mrr"] == 0.75


@pytest.mark.filterwarnings("ignore:ranks and scores are in other orders")
def test_scores_order_lists_and_rank_wins_over_them() -> None:
    recs = pl.DataFrame({"user_id": [1, 1, 1], "item_id": [10, 11, 12], "score": [0.1, 0.9, 0.5], "rank": [1, 3, 2]})
    truth = pl.DataFrame({"user_id": [1], "item_id": [11]})
    assert fastrec.evaluate(recs, truth, "mrr")["mrr"] == pytest.approx(1 / 3)
    assert fastrec.evaluate(recs, truth, "mrr", score="score")["mrr"] == 1.0
    assert fastrec.evaluate(recs.drop("rank"), truth, "mrr")["mrr"] == 1.0
    assert fastrec.evaluate(recs.drop("rank", "score"), truth, "mrr")["mrr"] == 0.5
    renamed = recs.rename({"score": "s", "user_id": "u", "item_id": "i"})
    assert fastrec.evaluate(renamed, truth.rename({"user_id": "u", "item_id": "i"}), "mrr", user="u", item="i",
                            score="s")["mrr"] == 1.0  # fmt: skip


def test_ties_between_scores_are_those_of_arrays() -> None:
    recs = pl.DataFrame({"user_id": [1, 2, 1, 1], "item_id": [10, 10, 11, 12], "score": [0.5, 1.0, 0.5, 0.5]})
    truth = pl.DataFrame({"user_id": [1, 2], "item_id": [11, 10]})
    lists = ([10, 11, 12, 10], [0, 3, 4], [0.5, 0.5, 0.5, 1.0])
    for ties in ("expected", "id_desc", "worst"):
        wanted = fastrec.evaluate(lists, [[11], [10]], ["ndcg", "mrr"], ties=ties)
        check_equal(fastrec.evaluate(recs, truth, ["ndcg", "mrr"], ties=ties), wanted, per_user=False)


def test_seen_items() -> None:
    log = make_log(4, texts=True)
    seen = {user: row[:1] for user, row in list(log.recs.items())[::2]}
    table = {"user_id": [*seen, "a stranger"], "item_id": [*(row[0] for row in seen.values()), "i1ä"]}
    recs, truth = map(pl.DataFrame, log.tables())
    report = fastrec.evaluate(recs, truth, METRICS, exclude=pl.DataFrame(shuffle(table)), per_user=True)
    check_equal(report, log.wanted(exclude=seen))
    assert report.data["excluded_items"] == len(seen)


def test_groups_and_weights_are_columns() -> None:
    recs = pd.DataFrame({"user_id": ["b", "a", "b"], "item_id": [1, 2, 3], "rank": [2, 1, 1], "plan": [1, 2, 1]})
    truth = pd.DataFrame({"user_id": ["c", "a", "b", "a"], "item_id": [1, 4, 3, 2], "w": [2.0, 3.0, 5.0, 3.0]})
    truth["country"] = pd.Categorical(["x", "y", "x", "y"])
    report = fastrec.evaluate(recs, truth, "mrr", by=["country", "plan"], user_weight="w", per_user=True)
    wanted = fastrec.evaluate(
        {"a": [2], "b": [3, 1]},
        {"a": [4, 2], "b": [3], "c": [1]},
        "mrr",
        groups={"country": ["y", "x", "x"], "plan": ["2", "1", "(none)"]},
        user_weight=[3.0, 5.0, 2.0],
        per_user=True,
    )
    check_equal(report, wanted)
    lists = {"user_id": ["c", "a", "b"], "item_id": [[1], [4, 2], [3]], "w": [2.0, 3.0, 5.0], "country": list("xyx")}
    again = fastrec.evaluate(recs, pl.DataFrame(lists), "mrr", by=("country", "plan"), user_weight="w", per_user=True)
    check_equal(again, wanted)


def test_groups_of_whole_numbers_stay_such() -> None:
    frame = pl.DataFrame({"user_id": [3, 1], "item_id": [1, 2], "plan": [7, 8]})
    assert set(fastrec.evaluate(frame, frame, "mrr", by="plan").groups["plan"]) == {7, 8}


def test_batches_merge_and_a_user_comes_once() -> None:
    log = make_log(5, texts=True)
    recs, truth = map(pl.DataFrame, log.tables())
    users = sorted({*log.recs, *log.truth})
    evaluator = fastrec.Evaluator(METRICS, per_user=True)
    for own in (users[:10], users[10:11], users[11:]):
        chosen = pl.col("user_id").is_in(own)
        evaluator.update(recs.filter(chosen), truth.filter(chosen))
    check_equal(evaluator.result(), log.wanted())
    with pytest.raises(fastrec.InputError, match="was in an earlier update"):
        evaluator.update(recs[:3], truth[:3])


@pytest.mark.filterwarnings("ignore:no user with truth has a list", "ignore:the truth has no rows")
def test_no_rows() -> None:
    log = make_log(6, texts=False)
    recs, truth = map(pa.table, log.tables())
    assert fastrec.evaluate(recs.slice(0, 0), truth, "mrr").users["no_recs"] == len(log.truth)
    assert fastrec.evaluate(recs, truth.slice(0, 0), "mrr").users["no_truth"] == len(log.recs)
    assert fastrec.evaluate(recs.slice(0, 0), truth.slice(0, 0), "mrr").users["total"] == 0


# Errors

RECS = {"user_id": [1, 1, 2], "item_id": [10, 11, 12], "rank": [1, 2, 1]}
TRUTH = {"user_id": [1, 2], "item_id": [11, 12], "gain": [1.0, 2.0]}


class Fault(NamedTuple):
    """Differences of a frame from RECS or TRUTH, other arguments, and the expected error."""

    recs: Table
    truth: Table
    options: dict[str, Any]
    says: list[str]


def recs_with(**columns: Any) -> Fault:
    return Fault({**RECS, **columns}, TRUTH, {}, [])


def truth_with(**columns: Any) -> Fault:
    return Fault(RECS, {**TRUTH, **columns}, {}, [])


def without(table: Table, name: str) -> Table:
    return {other: values for other, values in table.items() if other != name}


FAULTS: dict[str, Fault] = {
    "null user": recs_with(user_id=[1, None, 2])._replace(
        says=["recs column 'user_id'", "null", "row 1, counted from 0"]
    ),
    "null item": truth_with(item_id=[None, 12])._replace(says=["truth column 'item_id'", "null", "row 0"]),
    "null text": truth_with(user_id=["a", None])._replace(says=["truth column 'user_id'", "null", "row 1"]),
    "null rank": recs_with(rank=[1, None, None])._replace(says=["recs column 'rank'", "row 1", "in 2 of 3 rows"]),
    "null gain": truth_with(gain=[None, 1.0])._replace(says=["truth column 'gain'", "null", "row 0"]),
    "null list": recs_with(user_id=[1, 2, 3], item_id=[[1], None, [2]])._replace(says=["'item_id'", "null", "row 1"]),
    "null in a list": recs_with(user_id=[1, 2, 3], item_id=[[1], [3, None], [2]])._replace(
        says=["recs column 'item_id'", "null", "list of row 1"]
    ),
    "no user": Fault(without(RECS, "user_id") | {"userid": [1, 1, 2]}, TRUTH, {}, ["recs", "'user_id'", "'userid'?"]),
    "no item": Fault(RECS, without(TRUTH, "item_id") | {"Item": [1, 2]}, {}, ["truth", "'item_id'", "'Item'?"]),
    "no such rank": Fault(RECS, TRUTH, {"rank": "position"}, ["recs", "'position'", "its columns are"]),
    "no such gain": Fault(RECS, TRUTH, {"gain": "gains"}, ["truth", "'gains'", "did you mean 'gain'?"]),
    "no such group": Fault(RECS, TRUTH, {"by": "land"}, ["neither recs nor truth", "'land'", "'user_id'"]),
    "floats": recs_with(item_id=[1.0, 2.0, 3.0])._replace(says=["recs column 'item_id'", "double", "large ids"]),
    "booleans": recs_with(item_id=[True, False, True])._replace(says=["recs column 'item_id'", "bool"]),
    "texts against integers": truth_with(user_id=["1", "2"])._replace(
        says=["user ids", "recs: integers", "truth: strings"]
    ),
    "items of two kinds": truth_with(item_id=["1", "2"])._replace(
        says=["item ids", "recs: integers", "truth: strings"]
    ),
    "a row twice": recs_with(rank=[3, 3, 1], item_id=[5, 5, 6])._replace(
        says=["user 1, rank 3; each time with the same item: drop the repeated row"]
    ),
    "a rank twice": recs_with(rank=[3, 3, 1])._replace(says=["recs column 'rank'", "twice", "user 1", "rank 3"]),
    "half a rank": recs_with(rank=[1.5, 1.0, 1.0])._replace(says=["recs column 'rank'", "integers", "1.5"]),
    "a rank of text": recs_with(rank=["1", "2", "1"])._replace(says=["recs column 'rank'", "numbers", "string"]),
    "an item twice": recs_with(item_id=[10, 10, 12])._replace(says=["recs of user 1", "10", "twice"]),
    "a negative item": truth_with(item_id=[-1, 12])._replace(says=["truth of user 1", "negative", "-1"]),
    "a user twice in lists": recs_with(user_id=[5, 4, 5], item_id=[[1], [2], [3]])._replace(
        says=["recs", "user 5", "rows 0 and 2"]
    ),
    "ranks beside lists": recs_with(user_id=[1, 2, 3], item_id=[[1], [2], [3]])._replace(
        says=["recs column 'rank'", "one value", "lists"]
    ),
    "lists of other lengths": truth_with(item_id=[[1, 2], [3]], gain=[[1.0, 1.0], [1.0, 2.0]])._replace(
        says=["truth column 'gain'", "row 1", "2 for 1"]
    ),
    "lists of users": recs_with(user_id=[[1], [2], [3]])._replace(says=["recs column 'user_id'", "lists"]),
    "groups that differ": Fault(
        {**RECS, "land": ["a", "b", "a"]}, TRUTH, {"by": "land"}, ["recs column 'land'", "agree", "user 1"]
    ),
    "groups that differ between frames": Fault(
        {**RECS, "land": ["a", "a", "a"]},
        {**TRUTH, "land": ["a", "b"]},
        {"by": "land"},
        ["'land'", "recs and truth differ", "user 2"],
    ),
    "a group of numbers": Fault(
        {**RECS, "land": [0.5, 0.5, 1]}, TRUTH, {"by": "land"}, ["recs column 'land' holds double", "booleans or dates"]
    ),
    "one usual column for another": Fault(
        {"user_id": [1], "film": [2]},
        TRUTH,
        {},
        ["its columns are 'user_id', 'film'; item=... names the column in all frames: rename it in one of them if"],
    ),
    "a usual name of another log": Fault(
        {"user_id": [1], "item_title": ["x"], "movieId": [2]}, TRUTH, {}, ["'item_id' (did you mean 'movieId'?)"]
    ),
    "a usual name of another column": Fault(
        {"user_id": [1], "userId": [2]},
        TRUTH,
        {},
        ["recs has no column 'item_id'; its columns are 'user_id', 'userId'"],
    ),
    "a misspelled column": Fault(
        {"user_id": [1], "Item_ID": [2]}, TRUTH, {}, ["recs has no column 'item_id' (did you mean 'Item_ID'?)"]
    ),
    "labels that neither frame has": Fault(
        RECS, TRUTH, {"by": "plan"}, ["a column 'plan'", "by=... also takes a data frame of users, or {user: label}"]
    ),
    "by is a number": Fault(RECS, TRUTH, {"by": 3}, ["by", "name of a column", "3"]),
    "a user without weight": Fault(
        RECS, {"user_id": [2], "item_id": [1], "w": [1.0]}, {"user_weight": "w"}, ["user 1", "truth", "'w'"]
    ),
    "weights by position": Fault(RECS, TRUTH, {"user_weight": [1, 1]}, ["user_weight", "name of a column"]),
    "groups by position": Fault(RECS, TRUTH, {"groups": ["a", "b"]}, ["groups", "by=..."]),
    "ids by position": Fault(RECS, TRUTH, {"user_ids": [1, 2]}, ["user_ids", "user=..."]),
    "no name of users": Fault(RECS, TRUTH, {"user": []}, ["user must be the name of a column or several"]),
    "no seen users": Fault(RECS, TRUTH, {"exclude": {"item_id": [1]}}, ["exclude", "'user_id'"]),
}


@pytest.mark.parametrize("library", ["pandas", "Polars", "PyArrow", "Spark rows"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_refused(fault: str, library: str) -> None:
    recs, truth, options, says = FAULTS[fault]
    if library == "pandas" and fault in ("null user", "null item"):
        pytest.skip("pandas makes floats of these, which is another error")
    if "exclude" in options:
        options = {"exclude": FORMS[library](options["exclude"])}
    with pytest.raises(fastrec.FastrecError) as error:
        fastrec.evaluate(FORMS[library](recs), FORMS[library](truth), "mrr", **options)
    assert isinstance(error.value, (fastrec.InputError, fastrec.InputTypeError))
    for text in says:
        assert text in str(error.value).replace("large_string", "string")


@pytest.mark.parametrize("library", FORMS)
def test_subtopics_are_numbers(library: str) -> None:
    own = FORMS[library]({"user_id": [1], "item_id": [5], "subtopic": ["jaguar"]})
    with pytest.raises(fastrec.InputTypeError, match=r"number the strings first, as pandas\.factorize does$"):
        fastrec.evaluate(FORMS[library](RECS), FORMS[library](TRUTH), "alpha_ndcg@2", subtopics=own)


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError)) as error:
        fastrec.evaluate(*arguments, "mrr", **options)
    return str(error.value)


def test_missing_values_of_pandas_make_floats() -> None:
    message = refused(pd.DataFrame({**RECS, "user_id": [1, None, 2]}), pd.DataFrame(TRUTH))
    assert "recs column 'user_id'" in message
    assert "row 1" in message


def test_frames_go_with_frames() -> None:
    recs, truth = pl.DataFrame(RECS), pl.DataFrame(TRUTH)
    for other in ({1: [2]}, [[1], [2]], pa.array([[1], [2]])):
        assert "all be data frames" in refused(recs, other)
        assert "all be data frames" in refused(other, truth)
    assert "exclude is a list" in refused(recs, truth, exclude=[[1], [2]])


def test_columns_go_with_frames() -> None:
    assert "rank='r' names a column" in refused([[1]], [[1]], rank="r")
    with pytest.raises(fastrec.InputError, match="label='y' names a column"):
        fastrec.evaluate_scores([1, 0], [0.5, 0.4], metrics="auc", label="y")
    with pytest.raises(fastrec.InputError, match="indptr goes with labels and scores"):
        fastrec.evaluate_scores(pl.DataFrame({"label": [1], "score": [1.0]}), indptr=[0, 1], metrics="auc")
    with pytest.raises(fastrec.InputTypeError, match="scores must be given"):
        fastrec.evaluate_scores([1, 0], metrics="auc")
    with pytest.raises(fastrec.InputError, match="scores must be left out if labels is a data frame"):
        fastrec.evaluate_scores(pl.DataFrame({"label": [1], "score": [1.0]}), ["auc"])


def test_two_columns_of_one_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["user_id", "item_id", "user_id"])
    assert "2 columns named 'user_id'" in refused(table, table)
    frame = pd.DataFrame([[1, 2, 3]], columns=["user_id", "item_id", "user_id"])
    assert "2 columns named 'user_id'" in refused(frame, frame)


def test_an_index_is_no_column() -> None:
    frame = pd.DataFrame(RECS).set_index("user_id")
    message = refused(frame, pd.DataFrame(TRUTH))
    assert "reset_index()" in message


def test_columns_of_mixed_types() -> None:
    frame = pd.DataFrame({**RECS, "item_id": [1, "a", 2]})
    assert "recs column 'item_id'" in refused(frame, pd.DataFrame(TRUTH))


def test_rows_of_spark_agree_in_their_fields() -> None:
    rows = [Row.of(["user_id", "item_id"], (1, 2)), Row.of(["item_id", "user_id"], (2, 1))]
    assert "recs[1]" in refused(rows, rows)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_nulls_by_way_of_a_dictionary(kind: Any) -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None], kind))
    message = refused(pa.table({**RECS, "item_id": encoded}), pa.table({**TRUTH, "item_id": ["a", "b"]}))
    assert "recs column 'item_id'" in message
    assert "row 1" in message


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("side", ["recs", "truth", "log"])
def test_numbers_that_are_null_by_way_of_a_dictionary_are_null(side: str, chunks: int) -> None:
    ids = {"user_id": [1, 1, 1, 2], "item_id": [1, 2, 3, 1]}
    numbers = {"recs": ["rank", "score"], "truth": ["gain", "w"], "log": ["label", "score", "w", "importance"]}[side]
    plain = ids | {name: [3.0, 2.0, 1.0, 0.0] if name in ("rank", "score") else [1.0] * 4 for name in numbers}
    for name in (*ids, *numbers):
        values = pa.array([*plain[name][:2], None, plain[name][3]]).dictionary_encode(null_encoding="encode")
        assert values.null_count == 0
        table = pa.table(plain).set_column(list(plain).index(name), name, values)
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)]) if chunks == 2 else table
        if side == "log":
            options = {"sample_weight": "w", "user_weight": "importance", "ties": "id_asc"}
            call = functools.partial(fastrec.evaluate_scores, table, metrics=["auc", "ndcg"], **options)
        else:
            others = {"recs": pa.table(ids), "truth": pa.table(ids)} | {side: table}
            options = {name: name} if name in ("rank", "score") else {"user_weight": name} if name == "w" else {}
            call = functools.partial(fastrec.evaluate, **others, metrics="ndcg", **options)
        with pytest.raises(fastrec.InputError, match=rf"column '{name}' must not be null, found null in row 2\b"):
            call()


def test_an_encoded_column_of_nothing_but_nulls() -> None:
    encoded = pa.nulls(3).dictionary_encode(null_encoding="encode")
    for name in ("user_id", "item_id", "rank"):
        message = refused(pa.table({**RECS, name: encoded}), pa.table(TRUTH))
        assert f"recs column '{name}' must not be null, found null in row 0" in message


def test_numbers_in_lists_that_are_null_by_way_of_a_dictionary_are_null() -> None:
    for name in ("item_id", "score"):
        encoded = pa.array([1, 2, None]).dictionary_encode(null_encoding="encode")
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), encoded)
        table = {"user_id": [1, 2], "item_id": [[1], [2, 3]], "score": [[1.0], [2.0, 1.0]]} | {name: lists}
        message = refused(pa.table(table), pa.table({"user_id": [1], "item_id": [1]}))
        assert f"recs column '{name}' must not hold nulls, found null in the list of row 1" in message


def test_a_dictionary_may_hold_a_value_twice_and_values_that_never_occur() -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 2, 1]), pa.array(["b", "a", "b", "z"]))
    recs = pa.table({"user_id": encoded, "item_id": [1, 2, 3], "rank": [1, 2, 1]})
    report = fastrec.evaluate(recs, pa.table({"user_id": ["b"], "item_id": [2]}), "mrr", per_user=True)
    assert report.user_ids.tolist() == ["a", "b"]
    assert report["mrr"] == 0.5


def test_categories_of_numbers() -> None:
    recs = pd.DataFrame(RECS).astype({"user_id": "category", "item_id": "category"})
    assert fastrec.evaluate(recs, pd.DataFrame(TRUTH), "mrr")["mrr"] == 0.75


@pytest.mark.parametrize("precision", [1, 10, 38])
@pytest.mark.parametrize("form", ["pyarrow", "polars", "pandas", "file"])
def test_decimals_without_places_are_integers(form: str, precision: int, tmp_path: Path) -> None:
    """Databases may store integers so: NUMERIC without places."""
    kind = pa.decimal128(precision, 0)
    recs, truth = (
        pa.table({name: pa.array(own).cast(pa.decimal128(19, 0)).cast(kind) for name, own in columns.items()})
        for columns in (
            {"user_id": [1, 1, 2], "item_id": [2, 3, 4], "plan": [5, 5, 6]},
            {"user_id": [1], "item_id": [3]},
        )
    )
    if form == "file":
        paths = [tmp_path / "recs.parquet", tmp_path / "truth.parquet"]
        for side, path in zip((recs, truth), paths, strict=True):
            pa.parquet.write_table(side, path)
        found = fastrec.evaluate_files(*paths, "mrr", by="plan", per_user=True)
    else:
        make: Any = {"pyarrow": lambda rows: rows, "polars": pl.from_arrow, "pandas": lambda rows: rows.to_pandas()}[
            form
        ]
        found = fastrec.evaluate(make(recs), make(truth), "mrr", by="plan", per_user=True)
    assert found["mrr"] == 0.5 and found.user_ids.tolist() == [1, 2] and [*found.groups["plan"]] == [5, 6]


def test_decimals_past_64_bits_are_no_ids() -> None:
    wide = pa.table({"user_id": [1], "item_id": pa.array([str(2**63)]).cast(pa.decimal128(38, 0))})
    with pytest.raises(fastrec.InputError, match="recs column 'item_id' holds an integer past 64 bits"):
        fastrec.evaluate(wide, wide, "mrr")


ODD_COLUMNS = {
    "decimals": ("item_id", pl.lit("1.5").cast(pl.Decimal(10, 2)), "decimal128"),
    "dates": ("user_id", pl.lit("2020-01-01").str.to_date(), "date32"),
    "pairs": ("item_id", pl.concat_list(pl.struct("user_id", "item_id")), "struct"),
    "lists of lists": ("item_id", pl.concat_list("item_id").implode().over("user_id"), "list"),
    "nothing": ("item_id", pl.lit(None), "found null in row 0, counted from 0 (in 2 of 2 rows)"),
    "endless ranks": ("rank", pl.lit(float("inf")), "integers, found inf"),
    "no ranks": ("rank", pl.lit(float("nan")), "integers, found nan"),
    "ranks past the largest": ("rank", pl.lit(2**64 - 1, pl.UInt64), "2**63 - 1"),
    "yes and no": ("rank", pl.lit(value=True), "booleans"),
    "no scores": ("score", pl.lit(float("nan")), "NaN"),
    "scores that would be rounded": ("score", pl.lit(2**60), "past 2**53"),
}


if hasattr(pl, "Int128"):
    ODD_COLUMNS["128 bits"] = ("user_id", pl.col("user_id").cast(pl.Int128), "'user_id'")


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_odd_columns(kind: str) -> None:
    name, column, says = ODD_COLUMNS[kind]
    truth = pl.DataFrame({"user_id": [1, 2], "item_id": [3, 4]})
    message = refused(truth.with_columns(column.alias(name)), truth)
    assert f"recs column {name!r}" in message
    assert says in message


def test_things_that_are_no_frames() -> None:
    truth = pl.DataFrame({"user_id": [1, 2], "item_id": [3, 4]})
    assert refused(pl.DataFrame(), truth).endswith("no column 'user_id'; it has no columns")
    assert "an Arrow array of int64" in refused(pa.array([1, 2]), [[1], [2]])
    assert "DataFrameGroupBy" in refused(pd.DataFrame({"user_id": [1]}).groupby("user_id"), truth)


def test_ids_of_bytes() -> None:
    recs = pa.table({"user_id": [b"x", b"x"], "item_id": [b"1", b"2"]})
    truth = pa.table({"user_id": [b"x"], "item_id": [b"2"]})
    report = fastrec.evaluate(recs, truth, "mrr", per_user=True)
    assert report["mrr"] == 0.5
    assert report.user_ids.tolist() == [b"x"]


def test_texts_keep_every_character() -> None:
    ids = ["7", "007", " 7", "7\0", "", "é", "e\u0301"]
    frame = pl.DataFrame({"user_id": ids, "item_id": ids})
    report = fastrec.evaluate(frame, frame, "mrr", per_user=True)
    assert report.user_ids.tolist() == sorted(ids)
    assert report["mrr"] == 1.0


def test_errors_name_users_and_items_as_they_were() -> None:
    recs = pl.DataFrame({"user_id": ["ann", "ann"], "item_id": ["shoe", "shoe"]})
    message = refused(recs, pl.DataFrame({"user_id": ["ann"], "item_id": ["hat"]}))
    assert "recs of user 'ann'" in message
    assert "'shoe'" in message


def test_a_missing_package_is_named_with_its_extra() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
import fastrec, polars
frame = polars.DataFrame({"user_id": [1], "item_id": [2]})
try:
    fastrec.evaluate(frame, frame)
except fastrec.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("needs pyarrow: pip install 'fastrec-eval[arrow]'")


def test_arrays_load_no_frame_library() -> None:
    program = """
import sys, fastrec
fastrec.evaluate([[1]], [[1]])
fastrec.evaluate_scores([1, 0], [0.5, 0.4], user_ids=["b", "a"], metrics="gauc")
print(sorted({"pyarrow", "polars", "pandas", "narwhals"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_copied_where_rows_are_grouped() -> None:
    """The engine gets the memory of the frame."""
    from fastrec.inputs.column_names import Columns
    from fastrec.inputs.lists import AboutUsers, Settings, prepare

    about = AboutUsers(None, None, None, Columns())
    lists = pl.DataFrame({"user_id": [3, 1, 2], "item_id": [[5, 6], [7], [8, 9]]})
    long = pl.DataFrame({"user_id": [3] * 20 + [1] * 20, "item_id": [*range(20), *range(20)], "rank": [*range(20)] * 2})
    truth = pl.DataFrame({"user_id": [1, 3], "item_id": [7, 5]})
    for recs in (lists, long):
        found = prepare({"recs": recs, "truth": truth}, about, Settings("expected", "error", 1), {}).lists.rec_items
        column = recs["item_id"].explode() if recs is lists else recs["item_id"]
        assert found.dtype == np.int64
        if recs is long:
            assert np.shares_memory(found, column.to_numpy())
        else:
            values = lists["item_id"].to_arrow().values
            assert np.shares_memory(found, values.to_numpy())


# Scored rows


def make_scored(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    n = 300
    users = rng.integers(0, 25, n)
    return {
        "user_id": [f"u{user}" for user in users.tolist()],
        "label": rng.integers(0, 2, n).tolist(),
        "score": rng.integers(0, 12, n).astype(float).tolist(),
        "item_id": rng.integers(0, 99, n).tolist(),
        "w": rng.random(n).tolist(),
        "country": [f"c{user % 3}" for user in users.tolist()],
        "importance": (users + 1.0).tolist(),
    }


SCORED = ["gauc", "auc", "ndcg@5", "mrr", "log_loss", "average_precision(average=user)"]
SCALED = [name for name in SCORED if name != "log_loss"]


def scored_arrays(table: Table, metrics: list[str] = SCALED, **options: Any) -> fastrec.Report:
    return fastrec.evaluate_scores(
        table["label"], table["score"], metrics=metrics, user_ids=table["user_id"], per_user=True, **options
    )


@pytest.mark.parametrize("form", FORMS)
def test_scored_frames(form: str) -> None:
    table = make_scored(1)
    wanted = scored_arrays(table, groups={"country": table["country"]}, user_weight=table["importance"])
    report = fastrec.evaluate_scores(
        FORMS[form](table), metrics=SCALED, per_user=True, by="country", user_weight="importance"
    )
    check_equal(report, wanted)


@pytest.mark.thorough
def test_scored_frames_with_other_names_weights_and_items() -> None:
    table = make_scored(2)
    weighted = scored_arrays(table, ["gauc", "auc"], sample_weight=table["w"])
    frame = pl.DataFrame(table).rename({"label": "clicked", "score": "model", "user_id": "who"})
    names = {"label": "clicked", "score": "model", "user": "who"}
    report = fastrec.evaluate_scores(frame, metrics=["gauc", "auc"], sample_weight="w", per_user=True, **names)
    check_equal(report, weighted)
    by_id = scored_arrays(table, ["ndcg@5", "mrr"], item_ids=table["item_id"], ties="id_desc")
    check_equal(
        fastrec.evaluate_scores(frame, metrics=["ndcg@5", "mrr"], ties="id_desc", per_user=True, **names), by_id
    )


def test_scored_frames_without_users() -> None:
    table = make_scored(3)
    frame = pl.DataFrame(table).drop("user_id")
    assert fastrec.evaluate_scores(frame, metrics="auc")["auc"] == fastrec.auc(table["label"], table["score"])
    with pytest.raises(fastrec.InputError, match="gauc needs users"):
        fastrec.evaluate_scores(frame, metrics="gauc")


def test_what_is_evaluated_unless_metrics_are_named(tmp_path: Path) -> None:
    """Every route gives the metrics that such rows can have."""
    table = make_scored(3)
    frame = pd.DataFrame(table).assign(w=1.0)
    frame["score"] = frame["score"] / (1 + frame["score"].max())  # as log_loss needs
    usual = ["auc", "gauc", "average_precision", "log_loss", "calibration", "ndcg@10"]
    rows = [name for name in usual if name not in ("gauc", "ndcg@10")]
    labels, scores, users = (frame[name].to_numpy() for name in ("label", "score", "user_id"))
    assert list(fastrec.evaluate_scores(labels, scores, user_ids=users)) == usual
    assert list(fastrec.evaluate_scores(labels, scores, [0, 3, len(labels)], k=2)) == [*usual[:-1], "ndcg@2"]
    assert list(fastrec.evaluate_scores(labels, scores)) == rows
    assert list(fastrec.evaluate_scores(labels, scores, user_ids=users, sample_weight=frame["w"])) == usual[:-1]
    for ending in ("csv", "parquet"):
        for without, wanted in (([], usual), (["user_id"], rows)):
            own, path = frame.drop(columns=without), tmp_path / f"log.{ending}"
            own.to_csv(path, index=False) if ending == "csv" else own.to_parquet(path)
            assert list(fastrec.evaluate_scores(own)) == wanted == list(fastrec.evaluate_files(path))
            weighted = [name for name in wanted if name != "ndcg@10"]
            assert list(fastrec.evaluate_scores(own, sample_weight="w")) == weighted
            assert list(fastrec.evaluate_files(path, sample_weight="w")) == weighted


def test_users_of_several_columns() -> None:
    table = make_scored(4)
    wanted = fastrec.evaluate_scores(
        table["label"],
        table["score"],
        user_ids=(np.array(table["user_id"]), np.array(table["country"]), np.array(table["item_id"]) % 3),
        metrics=["gauc", "mrr"],
        per_user=True,
    )
    frame = pl.DataFrame(table).with_columns(part=pl.col("item_id") % 3)
    users = ("user_id", "country", "part")
    report = fastrec.evaluate_scores(frame, metrics=["gauc", "mrr"], per_user=True, user=users)
    assert report.user_ids.tolist() == wanted.user_ids.tolist() == sorted(wanted.user_ids.tolist())
    assert report["gauc"] == wanted["gauc"]
    np.testing.assert_array_equal(report.per_user["gauc"], wanted.per_user["gauc"])


def test_scored_lists() -> None:
    table = make_scored(5)
    frame = pl.DataFrame(table).group_by("user_id", maintain_order=True).agg(
        "label", "score", "w", "item_id", pl.col("country").first(), pl.col("importance").first()
    )  # fmt: skip
    wanted = scored_arrays(table, groups={"country": table["country"]}, user_weight=table["importance"])
    report = fastrec.evaluate_scores(frame, metrics=SCALED, per_user=True, by="country", user_weight="importance")
    check_equal(report, wanted)


def test_batches_of_scored_frames() -> None:
    table = make_scored(6)
    frame = pl.DataFrame(table)
    evaluator = fastrec.ScoreEvaluator(SCALED, per_user=True)
    for own in (pl.col("user_id") < "u2", pl.col("user_id") >= "u2"):
        evaluator.update(frame.filter(own))
    whole = fastrec.ScoreEvaluator(SCALED, per_user=True)
    whole.update(frame)
    check_equal(evaluator.result(), whole.result())


def test_ratings_of_a_frame() -> None:
    frame = pl.DataFrame({"stars": [5.0, 3.0, 4.0, 1.0], "guess": [4.5, 3.5, 4.0, 3.0], "user_id": [1, 2, 1, 2]})
    report = fastrec.evaluate_scores(frame, metrics=["mae", "rmse"], label="stars", score="guess")
    assert report["mae"] == 0.75
    assert report["rmse"] == fastrec.rmse(frame["stars"], frame["guess"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": [1, None]}, ["the frame column 'label'", "null", "row 1"]),
        ({"score": [0.5, float("nan")]}, ["score", "row 1"]),
        ({"label": ["a", "b"]}, ["the frame column 'label'", "numbers"]),
        ({"user_id": [1.5, 2.5]}, ["the frame column 'user_id'", "double"]),
        ({"score": [[0.5], [0.6]]}, ["the frame column 'score'", "lists per row"]),
        ({"label": pl.Series(["a", "b"], dtype=pl.Categorical)}, ["the frame column 'label'", "numbers"]),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "Polars", "PyArrow", "Spark rows"])
def test_what_is_refused_of_scored_rows(change: Table, says: list[str], library: str) -> None:
    table = {"label": [1, 0], "score": [0.5, 0.4], "user_id": [1, 2], **change}
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError)) as error:
        fastrec.evaluate_scores(FORMS[library](table), metrics="auc")
    assert all(text in str(error.value) for text in says)


def test_labels_must_agree_within_a_user_where_they_are_groups() -> None:
    frame = pl.DataFrame({"label": [1, 0], "score": [0.5, 0.4], "user_id": [1, 1], "country": ["x", "y"]})
    wanted = r"the frame column 'country' must agree within a user, but rows of user 1 .* as row_groups or row_by"
    with pytest.raises(fastrec.InputError, match=wanted):
        fastrec.evaluate_scores(frame, metrics="gauc", by="country")
    with pytest.raises(fastrec.InputTypeError, match=r"must be all integers or all strings, found NaN, str"):
        fastrec.evaluate_scores([1, 0], [0.5, 0.4], user_ids=[1, 2], metrics="auc", groups=["x", float("nan")])


# Laws


logs = st.dictionaries(
    st.integers(-(2**40), 2**40), st.lists(st.integers(0, 12), unique=True, max_size=6), min_size=1, max_size=8
)


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")
@given(recs=logs, truth=logs, data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_order_of_rows_gives_the_same_bits(recs: Any, truth: Any, data: st.DataObject) -> None:
    log = Log(recs, {user: dict.fromkeys(items, 1.0) for user, items in truth.items()})
    lists, held = log.tables()
    if not lists["user_id"] or not held["user_id"]:
        return
    present = Log({u: row for u, row in log.recs.items() if row}, {u: row for u, row in log.truth.items() if row})
    order = data.draw(st.permutations(range(len(lists["user_id"]))))
    moved = {name: [values[at] for at in order] for name, values in lists.items()}
    report = fastrec.evaluate(pa.table(moved), pa.table(held), METRICS, per_user=True)
    check_equal(report, present.wanted())


@pytest.mark.thorough
def test_many_rows_for_any_threads_and_order() -> None:
    rng = np.random.default_rng(7)
    n_users, length = 3_000, 60
    items = np.concatenate([rng.choice(500, length, replace=False) for _ in range(n_users)])
    ids = rng.permutation(2**40 + np.arange(n_users) * 977)
    users, ranks = np.repeat(ids, length), np.tile(np.arange(length), n_users)
    held = np.concatenate([rng.choice(500, 4, replace=False) for _ in range(n_users)])
    truth = pa.table({"user_id": np.repeat(ids, 4), "item_id": held})
    indptr = np.arange(n_users + 1)
    wanted = fastrec.evaluate((items, indptr * length), (held, indptr * 4), METRICS, per_user=True, user_ids=ids)
    order = rng.permutation(len(items))
    for own in (slice(None), order):
        recs = pa.table({"user_id": users[own], "item_id": items[own], "rank": ranks[own]})
        for n_threads in (1, 2, 4):
            check_equal(fastrec.evaluate(recs, truth, METRICS, per_user=True, n_threads=n_threads), wanted)


@pytest.mark.skipif(FOLDER is None, reason="FASTREC_TEST_DATA names no folder with real data")
@pytest.mark.parametrize("library", ["pandas", "Polars", "PyArrow, chunks"])
def test_real_ratings(library: str) -> None:
    """Evaluate lists by popularity against the ratings themselves, from frames and from dicts."""
    with open(Path(str(FOLDER)) / "ml-latest-small" / "ratings.csv", encoding="utf-8", newline="") as file:
        rows = [(int(row["userId"]), int(row["movieId"]), float(row["rating"])) for row in csv.DictReader(file)]
    counts: dict[int, int] = {}
    for _, item, _ in rows:
        counts[item] = counts.get(item, 0) + 1
    best = sorted(counts, key=lambda item: (-counts[item], item))[:50]
    truth: dict[int, dict[int, float]] = {}
    for user, item, rating in rows:
        truth.setdefault(user, {})[item] = rating
    log = Log(dict.fromkeys(truth, best), truth)
    lists, held = (FORMS[library](shuffle(table)) for table in log.tables())
    check_equal(fastrec.evaluate(lists, held, METRICS, per_user=True), log.wanted())


def test_numbers_in_chunks_keep_their_type() -> None:
    """The clipping of log loss follows the type of the scores."""
    labels, scores = [1, 0, 1], np.array([0.0, 0.5, 1.0], np.float32)
    chunks = pa.chunked_array([scores[:1], scores[1:]])
    wanted = fastrec.evaluate_scores(labels, scores, metrics=["log_loss"])["log_loss"]
    frame = pa.table({"label": labels, "score": chunks})
    assert fastrec.evaluate_scores(frame, metrics=["log_loss"])["log_loss"] == wanted


SETS: dict[str, Callable[[Table], Any]] = {
    "pandas": pd.DataFrame,
    "a class made of pandas": type("Own", (pd.DataFrame,), {}),
    "narwhals": lambda table: nw.from_native(pd.DataFrame(table)),
    "Spark rows": FORMS["Spark rows"],
}


@pytest.mark.parametrize("library", SETS)
def test_sets_in_frames_have_no_order(library: str) -> None:
    make, lists, items = SETS[library], {"user_id": [1], "item_id": [["a", "b"]]}, {"a", "b"}
    says = "recs column 'item_id' must hold lists, best item first: a set has no order"
    assert says in refused(make(lists | {"item_id": [items]}), make(lists))
    assert says in refused(make(lists | {"item_id": [items], "rank": [[1, 2]]}), make(lists))
    assert "recs column 'score' holds sets" in refused(make(lists | {"score": [{0.5, 2.0}]}), make(lists))
    assert "truth column 'item_id' must hold lists" in refused(
        make(lists), make({"user_id": [1], "item_id": [items], "gain": [[1.0, 2.0]]})
    )
    assert "truth column 'gain' holds sets" in refused(make(lists), make(lists | {"gain": [{1.0, 2.0}]}))
    with pytest.raises(fastrec.InputTypeError, match="column 'score' holds sets"):
        fastrec.evaluate_scores(make({"label": [[0, 1]], "score": [{0.5, 2.0}]}), metrics="auc")
    # where order does not count
    assert fastrec.evaluate(make(lists), make(lists | {"item_id": [items]}), "recall@2")["recall@2"] == 1
    seen = make(lists | {"item_id": [{"a"}]})
    assert fastrec.evaluate(make(lists), make(lists), "recall@2", exclude=seen)["recall@2"] == 0.5


def test_sets_in_a_series_have_no_order() -> None:
    lists, sets = pd.Series([["a"], ["b"]], index=[7, 8]), pd.Series([["a"], {"b"}], index=[7, 8])
    assert "recs[8] must be a list, best item first: a set has no order" in refused(sets, lists)
    assert fastrec.evaluate(lists, sets, "recall")["recall"] == 1


def test_series_of_lists_with_other_indexes_are_not_matched_by_position() -> None:
    recs = pd.Series([[1], [2]], index=["u", "v"])
    other = pd.Series([[2], [1]], index=["v", "u"])
    assert "recs and truth are Series with different indexes" in refused(recs, other)
    assert "recs and truth are Series with different indexes" in refused(nw.from_native(recs, series_only=True), other)
    assert "recs and exclude are Series with different indexes" in refused(recs, [[1], [2]], exclude=other)
    assert fastrec.evaluate(recs, other.loc[recs.index], "mrr")["mrr"] == 1
    assert fastrec.evaluate(recs.to_dict(), other.to_dict(), "mrr")["mrr"] == 1
    assert fastrec.evaluate(recs, [[1], [2]], "mrr")["mrr"] == 1  # by position, as there is nothing to match with
    assert "same users in the same order, found 2 and 1" in refused(recs, other[:1])


def test_python_objects_in_polars_are_refused() -> None:
    """Older versions crashed."""
    ids = pl.Series("user_id", [object(), object()], dtype=pl.Object)
    with pytest.raises(fastrec.InputTypeError, match="recs column 'user_id' cannot be read as one Arrow column"):
        fastrec.evaluate(pl.DataFrame({"user_id": ids, "item_id": [1, 2]}), pl.DataFrame(), "mrr")
    with pytest.raises(fastrec.InputTypeError, match="recs cannot be read as an Arrow table or array"):
        fastrec.evaluate(ids, [[1], [2]], "mrr")


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this Polars has no integers of 128 bits")
def test_integers_of_128_bits_are_refused() -> None:
    with pytest.raises(fastrec.InputTypeError, match="user_ids cannot be converted to an array"):
        fastrec.evaluate([[1], [2]], [[1], [2]], "mrr", user_ids=pl.Series([1, 2**70], dtype=pl.Int128))


def test_items_with_string_views_are_those_with_strings() -> None:
    log = {"user_id": ["a", "a", "b"], "item_id": ["x", "y", "x"]}
    found = []
    for kind in (pa.string(), pa.string_view()):
        items = pa.table({"item_id": pa.array(["x", "y"], kind), "category": ["p", "q"]})
        logs = {"1": pa.table(log), "2": pa.table(log)}
        found.append(fastrec.drift(logs, k=2, items=items, by="category").to_dict())
    assert found[0] == found[1]


# Users that several columns name


@pytest.mark.parametrize("names", [["user_id", "day"], ["day", "user_id", "hour"]])
def test_several_columns_make_a_user_together(names, tmp_path):
    rng = np.random.default_rng(5)
    recs = pd.DataFrame({"user_id": rng.integers(-3, 4, 300), "day": rng.choice(["d1", "d2", "é"], 300)})
    recs = recs.assign(hour=rng.integers(2**62, 2**62 + 2, 300), item_id=rng.integers(0, 9, 300), score=rng.random(300))
    recs = recs.drop_duplicates([*names, "item_id"])
    truth, history = recs.sample(frac=0.3, random_state=1).drop(columns="score"), recs.drop(columns="score")[::2]
    metrics, more = ["ndcg@3", "recall@2", "novelty@2"], {"per_user": True, "n_items": 9}
    found = fastrec.evaluate(recs, truth, metrics, user=names, by="day", history=history, **more)
    sides = recs, truth, history
    one = [own.assign(user_id=[*map(str, own[names].itertuples(index=False, name=None))]) for own in sides]
    wanted = fastrec.evaluate(*one[:2], metrics, by="day", history=one[2], **more)
    assert dict(found) == dict(wanted) and found.groups == wanted.groups
    order = np.argsort([str(user) for user in found.user_ids])
    assert wanted.user_ids.tolist() == [str(found.user_ids[at]) for at in order]
    for name, values in wanted.per_user.items():
        assert found.per_user[name][order].tobytes() == values.tobytes()
    assert all(type(user) is tuple for user in found.user_ids)
    parts = fastrec.Evaluator(metrics[:2])
    for own in (recs.user_id > 0, recs.user_id <= 0):
        parts.update(recs[own], truth[own.loc[truth.index]], user=names)
    assert dict(parts.result()) == {name: found[name] for name in metrics[:2]}
    assert dict(fastrec.Evaluator.from_bytes(parts.to_bytes()).result()) == dict(parts.result())
    found.save(tmp_path / "users.fastrec")
    assert fastrec.load(tmp_path / "users.fastrec").user_ids.tolist() == found.user_ids.tolist()


@pytest.mark.parametrize("form", ["csv", "parquet", "folder", "streamed"])
def test_several_columns_of_files_make_a_user_together(tmp_path, monkeypatch, form):
    if form == "streamed":
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    n_users = 50
    users = np.repeat(np.arange(n_users), 4)
    recs = pd.DataFrame({"user_id": users, "day": ["d1", "d1", "d2", "é"] * n_users, "item_id": users * 7 % 40})
    recs = recs.assign(item_id=(recs.item_id + np.arange(len(recs)) % 4), score=np.arange(len(recs)) * 7919 % 10007)
    sides = {
        "recs": recs,
        "truth": recs[["user_id", "day", "item_id"]][1::2],
        "history": recs[["user_id", "day", "item_id"]][::5],
    }
    paths = {name: tmp_path / f"{name}.{form}" for name in sides}
    for name, side in sides.items():
        if form == "csv":
            side.to_csv(paths[name], index=False)
        else:
            side.to_parquet(paths[name], partition_cols=["day"] if form == "folder" else None)
    metrics = ["ndcg@3", "recall@2", "novelty@2"]
    more = {"user": ["user_id", "day"], "per_user": True, "ties": "id_asc"}
    found = fastrec.evaluate_files(paths["recs"], paths["truth"], metrics, history=paths["history"], **more)
    wanted = fastrec.evaluate(recs, sides["truth"], metrics, history=sides["history"], **more)
    assert found.to_dict() == wanted.to_dict() and found.user_ids.tolist() == wanted.user_ids.tolist()


def test_what_cannot_name_a_user():
    recs = pd.DataFrame({"user_id": [1], "day": ["d"], "item_id": [0]})
    for user, found in (([], r"found \[\]"), (["day", 3], r"found \['day', 3\]")):
        with pytest.raises(fastrec.InputTypeError, match=f"user must be the name of a column or several, {found}"):
            fastrec.evaluate(recs, recs, "mrr", user=user)
    with pytest.raises(fastrec.InputTypeError, match="user must be the name of a column, found"):
        fastrec.evaluate_model((np.eye(2), np.eye(2)), recs, "mrr", user=["user_id", "day"])
