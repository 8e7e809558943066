"""Groups of users by a mapping or a frame of users, whatever the form of lists or rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

RECS = pa.table({"user_id": ["a", "a", "b", "c", "d"], "item_id": [1, 2, 1, 3, 4], "rank": [1, 2, 1, 1, 1]})
TRUTH = pa.table({"user_id": ["a", "b", "c", "d"], "item_id": [2, 1, 9, 4]})
LOG = pa.table({"user_id": list("aabbccdd"), "label": [1, 0] * 4, "score": [0.9, 0.1, 0.2, 0.8, 0.7, 0.3, 0.5, 0.5]})
LABELS = {"b": "heavy", "a": "light", "c": "light", "z": "other"}  # d is in no segment
MRR = {"(none)": (1.0, 1), "heavy": (1.0, 1), "light": (0.25, 2)}
GAUC = {"(none)": (0.5, 1), "heavy": (0.0, 1), "light": (1.0, 2)}


def write(folder: Path, **tables: Any) -> list[Path]:
    from pyarrow import parquet

    for name, table in tables.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    return [folder / f"{name}.parquet" for name in tables]


def in_batches(kind: type, metric: str, sides: list[Any], by: Any) -> fastrec.Report:
    whole = kind(metric)
    for user in "dcba":
        part = kind(metric)
        part.update(*(side.filter(pa.compute.equal(side["user_id"], user)) for side in sides), by=by)
        whole.merge(kind.from_bytes(part.to_bytes()))
    return whole.result()


def as_dicts() -> list[dict[str, list[int]]]:
    return [side.to_pandas().groupby("user_id").item_id.agg(list).to_dict() for side in (RECS, TRUTH)]


LISTS = {
    "frames": lambda _, by: fastrec.evaluate(RECS, TRUTH, "mrr", by=by),
    "dicts": lambda _, by: fastrec.evaluate(*as_dicts(), "mrr", by=by),
    "arrays": lambda _, by: fastrec.evaluate(
        [[1, 2], [1], [3], [4]], [[2], [1], [9], [4]], "mrr", user_ids=list("abcd"), by=by
    ),
    "batches": lambda _, by: in_batches(fastrec.Evaluator, "mrr", [RECS, TRUTH], by),
    "files": lambda folder, by: fastrec.evaluate_files(*write(folder, recs=RECS, truth=TRUTH), "mrr", by=by),
    "streamed": lambda folder, by: fastrec.evaluate_files(
        *write(folder, recs=RECS, truth=TRUTH), "mrr", by=by, memory="64MB"
    ),
    "items": lambda _, by: fastrec.evaluate_by_items(RECS, TRUTH, {2: "x", 1: "x", 9: "x", 4: "x"}, "mrr", by=by)["x"],
}
ROWS = {
    "frame": lambda _, by: fastrec.evaluate_scores(LOG, metrics="gauc", by=by),
    "arrays": lambda _, by: fastrec.evaluate_scores(
        LOG["label"].to_numpy(), LOG["score"].to_numpy(), user_ids=LOG["user_id"].to_pylist(), metrics="gauc", by=by
    ),
    "batches": lambda _, by: in_batches(fastrec.ScoreEvaluator, "gauc", [LOG], by),
    "file": lambda folder, by: fastrec.evaluate_files(*write(folder, log=LOG), metrics="gauc", by=by),
    "streamed": lambda folder, by: fastrec.evaluate_files(
        *write(folder, log=LOG), metrics="gauc", by=by, memory="64MB"
    ),
}
FORMS = {
    "mapping": (LABELS, "group"),
    "named": ({"plan": LABELS}, "plan"),
    "series": (pd.Series(LABELS), "group"),
    "series with nulls": (pd.Series([*LABELS.values(), None, "light"], index=[*LABELS, "d", "a"]), "group"),
    "pandas": (pd.DataFrame({"user_id": list(LABELS), "plan": list(LABELS.values())}), "plan"),
    "arrow": (pa.table({"plan": [*LABELS.values(), None], "user_id": [*LABELS, "d"]}), "plan"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", [*LISTS, *(f"rows, {way}" for way in ROWS)])
def test_a_mapping_labels_users_on_every_route(
    way: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "streamed" in way:
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
        monkeypatch.setattr("fastrec.files.resources.MIN_BATCH", 2)
        monkeypatch.setattr("fastrec.files.resources.MAX_BATCH", 2)
    by, grouping = FORMS[form]
    name = way.removeprefix("rows, ")
    report = ROWS[name](tmp_path, by) if name != way else LISTS[way](tmp_path, by)
    metric, wanted = ("gauc", GAUC) if name != way else ("mrr", MRR)
    found = {label: (own[metric].mean, own[metric].users) for label, own in report.groups[grouping].items()}
    assert found == wanted and list(report.groups) == [grouping]


def test_segments_of_users_go_with_frames() -> None:
    users = ["a", "b", "c"]
    segments = dict(zip(users, fastrec.segment_users(["a", "b", "b", "c", "c", "c"], users), strict=True))
    report = fastrec.evaluate(RECS, TRUTH, "mrr", by=segments, per_user=True)
    assert {label: own["mrr"].users for label, own in report.groups["group"].items()} == {
        "(none)": 1,
        "heavy": 1,
        "light": 1,
        "medium": 1,
    }
    assert report.labels["group"].tolist() == ["light", "medium", "heavy", "(none)"]


def test_the_column_of_users_may_have_another_name_beside_dicts() -> None:
    """It was refused: "user='uid' names a column, but recs and truth are not data frames"."""
    pd = pytest.importorskip("pandas")
    by = pd.DataFrame({"uid": ["a", "b"], "country": ["x", "y"]})
    report = fastrec.evaluate({"a": [1], "b": [2]}, {"a": [1], "b": [1]}, "mrr", by=by, user="uid")
    assert {label: own["mrr"].mean for label, own in report.groups["country"].items()} == {"x": 1.0, "y": 0.0}


def test_integers_are_labels_and_users_too() -> None:
    recs, truth = {1: [5], 2**63 + 1: [6]}, {1: [5], 2**63 + 1: [7]}
    groups = fastrec.evaluate(recs, truth, "mrr", by={np.int64(1): 7, 2**63 + 1: np.int8(8)}).groups["group"]
    assert {label: own["mrr"].mean for label, own in groups.items()} == {"7": 1.0, "8": 0.0}


def test_keys_of_several_columns() -> None:
    log = LOG.append_column("place", [[1] * 4 + [2] * 4])
    labels = {("a", 1): "x", ("b", 1): "x", ("c", 2): "y", ("d", 2): "y"}
    groups = fastrec.evaluate_scores(log, metrics="gauc", user=["user_id", "place"], by=labels).groups["group"]
    assert {label: own["gauc"].users for label, own in groups.items()} == {"x": 2, "y": 2}


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ({1: "x"}, "user ids must be of one type on all sides, found by: integers, the data: strings"),
        ({"a": 1.5}, "the labels in by must be integers or strings, found 1.5"),
        ({"a": None}, "the labels in by must be integers or strings, found None"),
        ({"a": True}, "the labels in by must be integers or strings, found True"),
        ({1: {"a": "x"}}, "the names of groupings in by must be strings, found 1"),
        ({"plan": {"a": ["x"]}}, r"the labels in by must be integers or strings, found \['x'\]"),
        ({None: "x"}, "user ids must be integers or strings, found None in by"),
        ({"a": np.timedelta64(5, "D")}, r"the labels in by must be integers or strings, found .*timedelta64\(5,'D'\)"),
        ({"a": 1, "b": "1"}, "the labels in by must be all integers or all strings, found 1 and '1'"),
        ({"plan": {"a": "x", "b": 2}}, "the labels in by must be all integers or all strings, found 'x' and 2"),
        (
            pd.Series([1, "1"], index=["a", "b"]),
            "the labels in by must be all integers or all strings, found 1 and '1'",
        ),
        (pd.DataFrame({"user_id": ["a", "b"], "plan": [1, "1"]}), "by column 'plan' cannot be read as one Arrow"),
        (
            pd.Series(["x", "y"], index=["a", "a"]),
            "by must agree within a user, but rows of user 'a' differ, row 1 from",
        ),
        (pd.Series([np.zeros(2)] * 2, index=["a", "a"]), "the labels in by must be integers or strings, found array"),
        (pa.table({"user_id": ["a", "a"], "plan": ["x", "y"]}), "by column 'plan' must agree within a user"),
        (pa.table({"user_id": ["a"]}), "by has no column besides 'user_id'"),
        (pa.table({"user": ["a"], "plan": ["x"]}), "by has no column 'user_id'"),
        (5, "by must be the name of a column or several, found 5"),
    ],
    ids=str,
)
def test_what_is_no_mapping_of_users_is_refused(by: Any, says: str) -> None:
    with pytest.raises(fastrec.FastrecError, match=says):
        fastrec.evaluate(RECS, TRUTH, "mrr", by=by)


USERS = pd.DataFrame({"user_id": [1, 2, 3], "plan": ["x", "x", "y"]})
OF_NUMBERS = {1: [1], 2: [2], 3: [3]}, {1: [1], 2: [2], 3: [9]}


def test_row_numbers_are_no_users(tmp_path: Path) -> None:
    with pytest.raises(fastrec.InputError, match=r"numbers its rows from 0, .* users.set_index\('user_id'\)\['plan'\]"):
        fastrec.evaluate(*OF_NUMBERS, "hit_rate@1", by=USERS["plan"])
    paths = write(tmp_path, recs=RECS, truth=TRUTH)
    with pytest.raises(fastrec.InputError, match=r"pass users.set_index\('member'\)\['plan'\]"):
        fastrec.evaluate_files(*paths, "mrr", by=USERS["plan"], user="member")
    with pytest.raises(fastrec.InputError, match="by has a grouping 'user_id', the name of the column of users"):
        fastrec.evaluate(*OF_NUMBERS, "hit_rate@1", by=USERS.to_dict())
    with pytest.raises(fastrec.InputError, match="by has a grouping 'member', the name of the column of users"):
        fastrec.evaluate(RECS, TRUTH, "mrr", by=USERS.rename(columns={"user_id": "member"}).to_dict(), user="member")


@pytest.mark.parametrize(
    "by",
    [
        USERS.set_index("user_id")["plan"],
        pd.Series({1: "x", 2: "x", 3: "y"}),  # pandas 3 gives it a range from 1
        pd.Series(["", "x", "x", "y"]).rename_axis("user_id"),
        {"plan": {1: "x", 2: "x", 3: "y"}},
    ],
    ids=["index", "dict", "named range", "grouping"],
)
def test_users_as_the_index_are_users(by: Any) -> None:
    (groups,) = fastrec.evaluate(*OF_NUMBERS, "hit_rate@1", by=by).groups.values()
    assert {label: (own["hit_rate@1"].mean, own["hit_rate@1"].users) for label, own in groups.items()} == {
        "x": (1.0, 2),
        "y": (0.0, 1),
    }


def test_users_without_ids_and_two_kinds_of_labels_are_refused() -> None:
    with pytest.raises(fastrec.InputError, match="these users have no ids"):
        fastrec.evaluate([[1]], [[1]], "mrr", by={0: "x"})
    with pytest.raises(fastrec.InputError, match="these users have no ids"):
        fastrec.evaluate_scores([1, 0], [0.5, 0.4], metrics="auc", by={0: "x"})
    with pytest.raises(fastrec.InputError, match="groups and by both label users"):
        fastrec.evaluate([[1]], [[1]], "mrr", user_ids=[0], groups=["y"], by={0: "x"})
    with pytest.raises(fastrec.InputError, match="groups and by both label users"):
        fastrec.evaluate_scores([1, 0], [0.5, 0.4], [0, 2], "auc", user_ids=[0], groups=["y"], by={0: "x"})
    with pytest.raises(fastrec.InputTypeError, match="by must be the name of a column"):
        fastrec.evaluate(RECS, TRUTH, "mrr", by=[LABELS])


IN_TWO_ORDERS = {"ann": [1], "bob": [2]}, {"bob": [2], "ann": [3]}  # only bob has a hit


@pytest.mark.parametrize(
    "sides",
    [
        IN_TWO_ORDERS,
        ({"ann": [1], "eve": [5], "bob": [2]}, {"ann": [3], "bob": [2]}),  # eve comes last in the report
    ],
    ids=["other order", "a user without truth between"],
)
@pytest.mark.parametrize(
    ("name", "wanted"), [("groups", "by={user: label}"), ("user_weight", "user_weight={user: weight}")]
)
def test_positions_are_refused_where_dicts_have_two_orders(sides: Any, name: str, wanted: str) -> None:
    values = {"groups": ["x", "y", "z"], "user_weight": [1.0, 2.0, 3.0]}[name][: len({*sides[0], *sides[1]})]
    with pytest.raises(
        fastrec.InputError, match=f"{name} is in the order of the keys of the truth, but .*: .* {wanted}"
    ):
        fastrec.evaluate(*sides, "hit_rate@1", **{name: values})
    if name == "groups":
        with pytest.raises(fastrec.InputError, match=wanted):
            fastrec.evaluate(*sides, "hit_rate@1", groups={"plan": values})


def test_positions_are_those_of_the_truth_where_dicts_have_one_order() -> None:
    sides = {"ann": [1], "bob": [2], "eve": [5]}, {"cy": [1], "ann": [3], "bob": [2]}
    report = fastrec.evaluate(
        *sides, "hit_rate@1", groups=["c", "a", "b", "e"], user_weight=[1, 1, 2, 9], per_user=True
    )
    assert report.user_ids.tolist() == ["cy", "ann", "bob", "eve"]
    assert report.labels["group"].tolist() == ["c", "a", "b", "e"]
    assert report["hit_rate@1"] == 0.5
    again = fastrec.evaluate(IN_TWO_ORDERS[0], metrics="item_coverage@1", n_items=4, groups=["a", "b"])
    assert set(again.groups["group"]) == {"a", "b"}  # without truth there is one order


def test_labels_of_a_model_are_refused_where_its_users_have_another_order() -> None:
    model = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    with pytest.raises(fastrec.InputError, match=r"user_ids has user 0 before 1: .* by={user: label}"):
        fastrec.evaluate_model(model, {1: [0], 0: [2]}, "hit_rate@1", groups=["x", "y"])
    report = fastrec.evaluate_model(model, {1: [0], 0: [2]}, "hit_rate@1", user_weight={0: 1, 1: 3})
    assert report["hit_rate@1"] == 0.75


BOTH: tuple[Any, ...] = ([1, 0, 1, 0], [0.9, 0.1, 0.2, 0.8])  # of two users: one perfect, one reversed


@pytest.mark.parametrize(
    "run",
    [
        lambda weights: fastrec.evaluate(*IN_TWO_ORDERS, "hit_rate@1", user_weight=weights),
        lambda weights: fastrec.evaluate([[2], [1]], [[2], [3]], "mrr", user_ids=["bob", "ann"], user_weight=weights),
        lambda weights: fastrec.evaluate_scores(*BOTH, [0, 2, 4], "gauc", user_ids=["bob", "ann"], user_weight=weights),
        lambda weights: fastrec.evaluate_scores(
            *BOTH, metrics="gauc", user_ids=["bob", "bob", "ann", "ann"], user_weight=weights
        ),
    ],
    ids=["dicts", "lists", "rows", "keys of rows"],
)
def test_weights_by_user_are_matched_by_id(run: Any) -> None:
    report = run({"ann": 1.0, "bob": 3.0, "eve": 100.0})
    (mean,) = (estimate.mean for estimate in report.estimates.values())
    assert mean == 0.75
    with pytest.raises(fastrec.InputError, match="user_weight has no weight of user 'ann'"):
        run({"bob": 3.0})
    with pytest.raises(fastrec.InputError, match="user_weight has no weight of user"):
        run({})
    with pytest.raises(
        fastrec.InputTypeError, match="user ids must be of one type on all sides, found user_weight: int"
    ):
        run({0: 1.0, 1: 3.0})
    with pytest.raises(fastrec.InputError, match="user_weight must be finite and not negative"):
        run({"ann": 1.0, "bob": -3.0})


def test_weights_by_user_need_ids_and_labels_by_user_are_no_labels_by_position() -> None:
    with pytest.raises(fastrec.InputError, match="user_weight has weights by user, but these users have no ids"):
        fastrec.evaluate([[1]], [[1]], "mrr", user_weight={0: 1.0})
    with pytest.raises(fastrec.InputTypeError, match="user_weight must be the name of a column"):
        fastrec.evaluate(RECS, TRUTH, "mrr", user_weight={"a": 1.0})
    with pytest.raises(fastrec.InputTypeError, match=r"must be one label per user, found a dict: .* are for by"):
        fastrec.evaluate([[1]], [[1]], "mrr", user_ids=["a"], groups={"plan": {"a": "x"}})


NOBODY = "no user has a label in '{}': has it no values, or do the user ids not match?"
OTHERS = {"A": "x", "B": "y"}  # no user of the lists, nor of the log


@pytest.mark.parametrize("way", [*LISTS, *(f"rows, {way}" for way in ROWS)])
def test_labels_of_other_users_are_doubtful(way: str, tmp_path: Path) -> None:
    name = way.removeprefix("rows, ")
    run = ROWS[name] if name != way else LISTS[way]
    with pytest.warns(fastrec.FastrecWarning, match="no user has a label in 'plan'"):
        report = run(tmp_path, {"plan": OTHERS, "group": LABELS})
    assert report.warnings == [NOBODY.format("plan")]


def test_files_of_other_users_are_doubtful(tmp_path: Path) -> None:
    others = pa.table({"user_id": list("AB"), "plan": ["x", "y"], "age": [1, 2]})
    paths = write(tmp_path, recs=RECS, truth=TRUTH, log=LOG, users=others)
    for files, metric in ((paths[:2], "mrr"), (paths[2:3], "gauc")):
        with pytest.warns(fastrec.FastrecWarning, match="no user has a label in '(plan|age)'"):
            report = fastrec.evaluate_files(*files, metrics=metric, users=paths[3], by=["plan", "age"])
        assert report.warnings == [NOBODY.format("plan"), NOBODY.format("age")]
    known = pa.table({"user_id": ["a"], "plan": ["x"]})
    (users,) = write(tmp_path, users=known)
    assert fastrec.evaluate_files(*paths[:2], "mrr", users=users, by="plan").warnings == []


def test_a_column_without_values_labels_no_user() -> None:
    truth = TRUTH.append_column("plan", pa.nulls(4, pa.string()))
    with pytest.warns(fastrec.FastrecWarning, match="no user has a label in 'plan'"):
        fastrec.evaluate(RECS, truth, "mrr", by="plan")
