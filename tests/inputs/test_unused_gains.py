"""A warning names a column of the truth once if it is called like a gain and is not used as one."""

from pathlib import Path
from typing import Any

import pytest

import fastrec

pa = pytest.importorskip("pyarrow")

RECS = pa.table({"user_id": [1, 1, 2], "item_id": [5, 6, 7], "rank": [1, 2, 1]})
TRUTH = pa.table({"user_id": [1, 2], "item_id": [5, 7], "rating": [5.0, 0.5], "timestamp": [3, 4]})
SAYS = "truth has an unused column '{0}': all gains are 1, each row is relevant; pass gain='{0}' to use it"
WAYS = ("frames", "lists", "csv", "parquet", "streamed", "evaluator")


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Evaluate in one of the forms."""
    if request.param == "streamed":
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)

    def evaluate(truth: Any = TRUTH, **options: Any) -> fastrec.Report:
        from pyarrow import csv, parquet

        metrics = options.pop("metrics", "ndcg@2")
        if request.param == "lists" and "by" in options:
            pytest.skip("a user has one label, and a list of ratings")
        if request.param in ("frames", "lists"):
            sides = [RECS, truth]
            if request.param == "lists":
                sides = [
                    side.group_by("user_id").aggregate([(name, "list") for name in side.column_names[1:]])
                    for side in sides
                ]
                sides = [
                    side.rename_columns([name.removesuffix("_list") for name in side.column_names]) for side in sides
                ]
            return fastrec.evaluate(*sides, metrics, **options)
        if request.param == "evaluator":
            evaluator_options = {name: options.pop(name) for name in ("min_gain", "like") if name in options}
            evaluator = fastrec.Evaluator(metrics, **evaluator_options)
            for user in (1, 2):
                evaluator.update(
                    *(side.filter(pa.compute.equal(side["user_id"], user)) for side in (RECS, truth)), **options
                )
            return evaluator.result()
        kind = "parquet" if request.param == "parquet" else "csv"
        paths = [tmp_path / f"{name}.{kind}" for name in ("recs", "truth")]
        for side, path in zip((RECS, truth), paths, strict=True):
            parquet.write_table(side, path) if kind == "parquet" else csv.write_csv(side, path)
        return fastrec.evaluate_files(*paths, metrics, **options)

    return evaluate


@pytest.mark.parametrize("name", ["rating", "Stars", "score", "relevance", "grade", "label", "Gain", " gain", "gains"])
def test_an_unused_rating_is_named_once(run: Any, name: str) -> None:
    truth = TRUTH.rename_columns(["user_id", "item_id", name, "timestamp"])
    with pytest.warns(fastrec.FastrecWarning, match=SAYS.format(name)) as caught:
        report = run(truth)
    assert len(caught) == 1 and report.warnings == [str(caught[0].message)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {"gain": "rating"},
        {"min_gain": "any"},
        {"like": "rectools"},  # which reads no gains
        {"by": "rating", "truth": TRUTH.set_column(2, "rating", [[5, 4]])},
        {"truth": TRUTH.append_column("gain", [[1.0, 2.0]])},
        {"truth": TRUTH.drop_columns("rating").append_column("rating", [[1, 1]])},
        {"truth": TRUTH.drop_columns("rating").append_column("rating", [["good", "bad"]])},
        {"truth": TRUTH.drop_columns("rating").append_column("rating", [pa.array([None, None], pa.float64())])},
        {"truth": TRUTH.drop_columns("rating")},
        {"truth": TRUTH.drop_columns("rating").append_column("label", [[1, 1]])},  # only relevant rows were kept
        {"truth": TRUTH.drop_columns("rating").append_column("label", [["new", "old"]])},
    ],
    ids=lambda options: str(options)[:40],
)
def test_no_hint_where_there_is_nothing_to_use(run: Any, options: dict[str, Any]) -> None:
    assert run(**options).warnings == []


@pytest.mark.parametrize("more", [{}, {"min_gain": 1}], ids=["", "min_gain"])
@pytest.mark.parametrize("name", ["label", "clicked", "Clicks"])
def test_marks_of_impressions_are_named(run: Any, name: str, more: dict[str, Any]) -> None:
    """A row that is not clicked would count as relevant."""
    truth = TRUTH.drop_columns("rating").append_column(name, [[1, 0]])
    with pytest.warns(fastrec.FastrecWarning, match=SAYS.format(name)):
        run(truth, **more)


def test_booleans_are_gains(run: Any) -> None:
    truth = TRUTH.drop_columns("rating").append_column("relevance", [[True, False]])
    with pytest.warns(fastrec.FastrecWarning, match=SAYS.format("relevance")):
        run(truth)
    assert run(truth, gain="relevance").users["no_truth"] == 1
    assert run(TRUTH.drop_columns("rating").append_column("relevance", [[True, True]])).warnings == []


def test_the_first_of_several_columns_is_named(run: Any) -> None:
    ones = TRUTH.select(["user_id", "item_id"]).append_column("label", [[1, 1]])
    truth = ones.append_column("rating", TRUTH["rating"]).append_column("stars", [[1.0, 2.0]])
    with pytest.warns(fastrec.FastrecWarning, match=SAYS.format("rating")) as caught:
        run(truth)
    assert len(caught) == 1


def test_a_text_of_numbers_leaves_one_column(run: Any) -> None:
    with pytest.warns(fastrec.FastrecWarning, match=SAYS.format("rating")):
        run(TRUTH.append_column("grade", [["a", "b"]]))
