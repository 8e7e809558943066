"""Labels for groups of users: the same for data frames and files, in every form."""

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

USERS = [1, 2, 3, 1]  # of the rows of the truth
WAYS = ("pyarrow", "pandas", "polars", "columns of lists", "parquet", "users", "log", "log of lists", "log in parquet")
DAY, NOON = (dt.datetime.fromisoformat(text) for text in ("2024-01-02", "2024-01-02 12:30:00.500"))


def groups_of(way: str, folder: Path, column: Any) -> list[str | int]:
    """Return the labels that users 1, 2, 3 have by a column of the rows of `USERS`."""
    truth = pa.table({"user_id": USERS, "item_id": [5, 6, 7, 8], "own": column})
    recs = pa.table({"user_id": [1, 2, 3], "item_id": [5, 6, 7]})
    one_each = truth.slice(0, 3)
    if way.startswith("log"):
        log = truth.append_column("label", pa.array([1, 0, 1, 0])).append_column("score", pa.array([0.5, 0.25, 0.5, 1]))
        if way == "log":
            return labels(fastrec.evaluate_scores(log, metrics="mae", by="own", per_user=True))
        if way == "log of lists":
            lists = log.slice(0, 3)
            for name in ("label", "score"):
                at = lists.column_names.index(name)
                lists = lists.set_column(at, name, pa.array([[value] for value in lists.column(name).to_pylist()]))
            return labels(fastrec.evaluate_scores(lists, metrics="mae", by="own", per_user=True))
        pq.write_table(log, folder / "log.parquet")
        return labels(fastrec.evaluate_files(folder / "log.parquet", None, "mae", by="own", per_user=True))
    if way in ("parquet", "users"):
        pq.write_table(recs, folder / "recs.parquet")
        pq.write_table(truth if way == "parquet" else truth.drop_columns("own"), folder / "truth.parquet")
        pq.write_table(one_each, folder / "users.parquet")
        users = {} if way == "parquet" else {"users": folder / "users.parquet"}
        paths = [folder / f"{name}.parquet" for name in ("recs", "truth")]
        return labels(fastrec.evaluate_files(*paths, "mrr", by="own", per_user=True, **users))
    if way == "columns of lists":
        truth = one_each.set_column(1, "item_id", pa.array([[5, 8], [6], [7]]))
    change = {"pandas": lambda table: table.to_pandas(), "polars": pl.from_arrow}.get(way, lambda table: table)
    return labels(fastrec.evaluate(change(recs), change(truth), "mrr", by="own", per_user=True))


def labels(report: fastrec.Report) -> list[str | int]:
    found = report.labels["own"].tolist()
    assert list(report.groups["own"]) == sorted(set(found))
    return found


@pytest.fixture(params=WAYS)
def found(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return lambda column: groups_of(request.param, tmp_path, column)


@pytest.mark.thorough(except_for="-(string|bool|date32.*)-0$")
@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([True, False, True, True]), ["True", "False", "True"]),
        (pa.array([DAY.date(), DAY.date(), NOON.date(), DAY.date()]), ["2024-01-02"] * 3),
        (
            pa.array([DAY, NOON, DAY, DAY], pa.timestamp("us")),
            ["2024-01-02 00:00:00", "2024-01-02 12:30:00.5", "2024-01-02 00:00:00"],
        ),
        (pa.array([DAY, NOON, DAY, DAY], pa.timestamp("ns")), ["2024-01-02 00:00:00", "2024-01-02 12:30:00.5"]),
        (pa.array([4, 30, 4, 4], pa.int8()), [4, 30, 4]),
        (pa.array(["b", "a", "b", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pa.array(["b", None, "a", "b"]), ["b", "(none)", "a"]),
        (pa.array(["b", None, "a", "b"]).dictionary_encode(), ["b", "(none)", "a"]),
        (pa.array([True, None, False, True]), ["True", "(none)", "False"]),
        (pa.array([DAY.date(), None, DAY.date(), DAY.date()]), ["2024-01-02", "(none)", "2024-01-02"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_labels_are_the_same_by_every_way(found: Any, column: Any, wanted: list[str | int]) -> None:
    assert found(column)[: len(wanted)] == wanted


def test_no_label_at_all_is_one_group_and_a_warning(found: Any) -> None:
    with pytest.warns(fastrec.FastrecWarning, match="no user has a label in 'own'"):
        assert found(pa.array([None] * 4, pa.string()))[:3] == ["(none)"] * 3


@pytest.mark.parametrize("way", ["pyarrow", "polars", "parquet", "log", "log in parquet"])
def test_missing_integers_leave_texts(way: str, tmp_path: Path) -> None:  # pandas makes floats of them
    assert groups_of(way, tmp_path, pa.array([4, None, 30, 4])) == ["4", "(none)", "30"]


@pytest.mark.parametrize("way", ["pyarrow", "pandas", "polars", "parquet", "log", "log in parquet"])
def test_a_row_without_a_label_says_nothing(way: str, tmp_path: Path) -> None:
    assert groups_of(way, tmp_path, pa.array([None, "a", "b", "c"])) == ["c", "a", "b"]
    assert groups_of(way, tmp_path, pa.array(["c", "a", "b", None])) == ["c", "a", "b"]
    with pytest.raises(fastrec.InputError, match=r"(must agree within|one value per) a? ?user"):
        groups_of(way, tmp_path, pa.array(["c", "a", "b", "d"]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, 2.0, 1.5, 1.5]),
        pa.array([decimal.Decimal("1.5")] * 4),
        pa.array([DAY] * 4, pa.timestamp("us", "UTC")),
    ],
    ids=lambda column: str(column.type),
)
def test_what_is_no_label_is_refused_by_every_way(found: Any, column: Any) -> None:
    says = r"column 'own' holds [\w()\[\], =]+; labels to group by must be strings, integers, booleans or dates"
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError), match=says):
        found(column)


def test_csv_of_pandas_has_the_labels_of_the_frame(tmp_path: Path) -> None:
    recs = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [5, 6, 7]})
    truth = recs.assign(new=[True, False, True], day=[DAY.date()] * 3, country=["BE", None, "NL"])
    recs.to_csv(tmp_path / "recs.csv", index=False)
    truth.to_csv(tmp_path / "truth.csv", index=False)
    by = ["new", "day", "country"]
    frames = fastrec.evaluate(recs, truth, "mrr", by=by)
    files = fastrec.evaluate_files(tmp_path / "recs.csv", tmp_path / "truth.csv", "mrr", by=by)
    assert repr(frames.groups) == repr(files.groups)


@pytest.mark.parametrize("by", [["z", "a", "m"], ["m", "z", "a"]], ids=str)
def test_groupings_stand_as_they_were_asked_for(by: list[str], tmp_path: Path) -> None:
    recs = pd.DataFrame({"user_id": [1, 2], "item_id": [5, 6]}).assign(z=["x", "w"], a=1, m="v")
    recs.to_parquet(tmp_path / "recs.parquet")
    reports = [
        fastrec.evaluate(recs, recs, "mrr", by=by),
        fastrec.evaluate_files(tmp_path / "recs.parquet", tmp_path / "recs.parquet", "mrr", by=by),
        fastrec.evaluate([[5], [6]], [[5], [6]], "mrr", groups={name: recs[name].tolist() for name in by}),
        fastrec.evaluate_scores(recs.assign(label=1, score=np.float32(1)), metrics="mae", by=by),
    ]
    for report in reports:
        assert list(report.groups) == by
        assert list(report.groups["z"]) == ["w", "x"]
