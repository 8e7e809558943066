"""Reports show what ordered the lists and where gains came from; a warning names columns that perhaps should."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ORDERS = ("rec_rows_by_rank", "rec_rows_by_score", "rec_rows_by_place")
RECS = pd.DataFrame(
    {
        "user_id": [1, 2, 1, 2, 1],
        "item_id": [5, 5, 6, 7, 8],
        "score": [0.1, 0.9, 0.3, 0.8, 0.2],
        "rank": [3, 1, 1, 2, 2],
    }
)
TRUTH = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": [6, 9, 7, 6], "gain": [2.0, 1.0, 3.0, 1.0]})
BARE, BARE_TRUTH = RECS[["user_id", "item_id"]], TRUTH[["user_id", "item_id"]]
WAYS = ("frames", "csv", "jsonl", "parquet", "streamed")
UNUSED = "lists keep row order, but column {} implies another"


def evaluate(way: str, folder: Path, recs: Any, truth: Any, **columns: Any) -> fastrec.Report:
    """Return the same rows in each form."""
    if way == "frames":
        return fastrec.evaluate(recs, truth, "mrr", **columns)
    paths = [folder / f"{name}.{'csv' if way == 'streamed' else way}" for name in ("recs", "truth")]
    for frame, path in zip((recs, truth), paths, strict=True):
        if way == "parquet":
            frame.to_parquet(path)
        elif way == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, index=False)
    return fastrec.evaluate_files(*paths, "mrr", memory="64MB" if way == "streamed" else None, **columns)


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Evaluate one of the forms; a warning is an error."""
    if request.param == "streamed":
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield lambda *given, **columns: evaluate(request.param, tmp_path, *given, **columns)


@pytest.mark.parametrize(
    ("without", "orders", "line"),
    [
        ([], (5, 0, 0), "lists in the order of their ranks; gains as given"),
        (["rank"], (0, 5, 0), "lists in the order of their scores; gains as given"),
        (["rank", "score"], (0, 0, 5), "lists in the order of their rows; gains as given"),
        (["rank", "gain"], (0, 5, 0), "lists in the order of their scores; all gains 1"),
    ],
    ids=str,
)
def test_what_ordered_the_lists_is_seen(run: Any, without: list[str], orders: tuple[int, ...], line: str) -> None:
    given = (frame.drop(columns=without, errors="ignore") for frame in (RECS, TRUTH))
    report = run(*given)
    assert tuple(report.data[name] for name in ORDERS) == orders
    assert report.data["truth_rows_with_gains"] == (0 if "gain" in without else 4)
    assert line in repr(report).splitlines() and line in report._repr_html_()
    assert report.to_dict()["data"]["rec_rows_by_place"] == orders[2]
    assert "rows of lists in the order of the rows" in report.to_html()


@pytest.mark.parametrize(
    ("recs", "orders"),
    [
        ([[5, 6], [7]], (0, 0, 0)),
        ((np.array([5, 6, 7]), [0, 2, 3]), (0, 0, 0)),
        ((np.array([5, 6, 7]), [0, 2, 3], [0.2, 0.3, 0.1]), (0, 3, 0)),
        ([{5: 0.2, 6: 0.3}, {7: 0.1}], (0, 3, 0)),
    ],
    ids=["lists", "arrays", "scores", "dicts of scores"],
)
def test_lists_that_are_passed_in_their_order(recs: Any, orders: tuple[int, ...]) -> None:
    report = fastrec.evaluate(recs, [{6: 1.0}, {}], "mrr")
    assert tuple(report.data[name] for name in ORDERS) == orders
    assert report.data["truth_rows_with_gains"] == 1
    assert ("lists in the order of" in repr(report)) == any(orders)


def test_columns_of_lists_are_in_their_order() -> None:
    wide = [frame.groupby("user_id", as_index=False).agg(list) for frame in (BARE, BARE_TRUTH)]
    assert not any(fastrec.evaluate(*wide, "mrr").data[name] for name in ORDERS)


def test_parts_of_several_kinds_are_added_up() -> None:
    evaluator = fastrec.Evaluator("mrr")
    evaluator.update(RECS, TRUTH)
    other = fastrec.Evaluator("mrr")
    other.update(BARE.assign(user_id=BARE.user_id + 10), BARE_TRUTH.assign(user_id=BARE_TRUTH.user_id + 10))
    found = fastrec.Evaluator.from_bytes(evaluator.merge(other).to_bytes()).result()
    assert [found.data[name] for name in (*ORDERS, "truth_rows_with_gains")] == [5, 0, 5, 4]
    assert "lists in the order of their ranks and rows; gains given in 4 of 8 rows" in repr(found)


def test_segments_count_their_own_truth() -> None:
    reports = fastrec.evaluate_by_items(RECS, TRUTH, {6: "head", 7: "tail"}, "mrr")
    assert {name: report.data["truth_rows_with_gains"] for name, report in reports.items()} == {"head": 2, "tail": 1}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("y_pred", [0.1, 0.8, 0.3, 0.9, 0.2]),
        ("item_rank", [3, 2, 1, 1, 2]),
        ("rating", [1, 0, 2, 2, 1]),
    ],
    ids=str,
)
def test_a_column_that_contradicts_the_order_of_rows_is_named(run: Any, name: str, values: Any) -> None:
    with pytest.warns(fastrec.FastrecWarning, match=UNUSED.format(repr(name))) as caught:
        run(BARE.assign(**{name: values}), BARE_TRUTH)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"pred": [0.5, 0.9, 0.5, 0.8, 0.4]},  # the order of the rows
        {"Rank": [1, 1, 2, 2, 3]},
        {"timestamp": RECS["score"], "price": RECS["rank"], "model": ["a", "b", "c", "d", "e"]},
        {"prediction": ["low", "low", "high", "low", "low"]},
        {"prediction": [0.1, None, 0.2, 0.3, 0.4]},
        {"pred": RECS["score"], "rank": RECS["rank"]},  # the rank orders them
    ],
    ids=str,
)
def test_columns_that_say_nothing_against_the_order_are_left_alone(run: Any, more: dict[str, Any]) -> None:
    assert run(BARE.assign(**more), BARE_TRUTH).data["rec_rows"] == 5


@pytest.mark.parametrize("used", [{"score": "pred"}, {"item": "position"}, {"by": "rating"}], ids=str)
def test_columns_that_are_named_are_left_alone(run: Any, used: dict[str, str]) -> None:
    values = {"pred": RECS["score"], "position": [9, 8, 7, 6, 5], "rating": [2, 1, 2, 1, 2]}
    (name,) = used.values()
    renamed = [frame.assign(position=frame.item_id) if name == "position" else frame for frame in (BARE, BARE_TRUTH)]
    recs = renamed[0].assign(**{} if name == "position" else {name: values[name]})
    assert run(recs, renamed[1], **used).data["rec_rows"] == 5


def test_a_column_that_nobody_asked_for_may_be_anything() -> None:
    recs = BARE.assign(rating=[1, "a", None, [2], {}])
    recs.insert(2, "score ", 1)
    assert fastrec.evaluate(recs, BARE_TRUTH, "mrr").data["rec_rows"] == 5
    twice = pd.concat([BARE, RECS[["score"]].rename(columns={"score": "pred"})], axis=1).pipe(
        lambda frame: pd.concat([frame, frame[["pred"]]], axis=1)
    )
    assert fastrec.evaluate(twice, BARE_TRUTH, "mrr").data["rec_rows"] == 5


def test_an_evaluator_that_takes_over_another_says_it_too() -> None:
    first, other = fastrec.Evaluator("mrr"), fastrec.Evaluator("mrr")
    other.update(BARE.assign(pred=[0.1, 0.8, 0.3, 0.9, 0.2]), BARE_TRUTH)
    with pytest.warns(fastrec.FastrecWarning, match=UNUSED.format("'pred'")):
        first.merge(other).result()


def test_swapped_sides_are_noticed(run: Any) -> None:
    with pytest.warns(fastrec.FastrecWarning, match="recs has a column 'gain' and truth has a column 'rank'") as caught:
        run(TRUTH, RECS)
    assert len(caught) == 1
    assert run(TRUTH, BARE).data["rec_rows"] == 4


def test_ranks_of_the_truth_alone_are_noticed(run: Any) -> None:
    ranks = RECS.drop(columns="score")
    says = "truth has a column 'rank' and recs has none: are the two swapped"
    with pytest.warns(fastrec.FastrecWarning, match=says) as caught:
        run(BARE_TRUTH, ranks)
    assert len(caught) == 1
    for recs, truth, options in (
        (BARE_TRUTH.assign(score=[4, 3, 2, 1]), ranks, {}),
        (BARE_TRUTH.assign(points=[4, 3, 2, 1]), ranks, {"score": "points"}),
        (BARE_TRUTH, ranks.assign(gain=1), {}),
        (BARE_TRUTH, ranks.assign(worth=1), {"gain": "worth"}),
    ):
        assert run(recs, truth, **options).data["rec_rows"] == 4


def test_marks_are_named_beside_ranks_of_the_truth(run: Any) -> None:
    shown = RECS.drop(columns="score").assign(clicked=[0, 1, 1, 0, 0])
    with pytest.warns(fastrec.FastrecWarning, match="truth has an unused column 'clicked'"):
        run(BARE_TRUTH.assign(points=[4, 3, 2, 1]), shown, score="points")


def test_a_file_larger_than_the_memory_for_reading_is_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reads a CSV file through buffers of 32 MB, and has no more memory than that while batches are read."""
    monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    row = b"%d,%d,.%d," + b"x" * 4000 + b"\n"
    lines = [b"user_id,item_id,pred,text\n", *(row % (item % 2, item, item) for item in range(1000, 9999))]
    (tmp_path / "recs.csv").write_bytes(b"".join(lines))
    (tmp_path / "truth.csv").write_text("user_id,item_id\n1,1001\n")
    with pytest.warns(fastrec.FastrecWarning, match=UNUSED.format("'pred'")):
        fastrec.evaluate_files(tmp_path / "recs.csv", tmp_path / "truth.csv", "mrr", memory="64MB")
