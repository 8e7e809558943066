"""Cells of several ids, as Kaggle's submissions have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastrec
from fastrec.files import job
from support.command_line import run_fastrec

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")

USERS = ["c1", "c2", "c3", "c4"]
LISTS = [["0706", "0372"], ["0841"], ["0915", "0111"], []]
HELD = [["0706"], ["0841"], ["0111"], ["7"]]
METRICS = ["map@12", "ndcg@2", "item_coverage@2"]


def cells(lists: list[list[str]], sep: str) -> Any:
    return pa.table({"user_id": USERS, "item_id": [sep.join(items) for items in lists]})


@pytest.fixture
def wanted() -> fastrec.Report:
    recs, truth = (pa.table({"user_id": USERS, "item_id": pa.array(own)}) for own in (LISTS, HELD))
    return fastrec.evaluate(recs, truth, METRICS, n_items=10)


@pytest.mark.parametrize("sep", [" ", "|", ", ", "::"])
def test_cells_of_frames(wanted: fastrec.Report, sep: str) -> None:
    recs, truth = cells(LISTS, sep), cells(HELD, sep)
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    for kind in kinds:
        own = recs.set_column(1, "item_id", recs["item_id"].cast(kind))
        assert fastrec.evaluate(own, truth, METRICS, item_sep=sep, n_items=10).estimates == wanted.estimates
    spaced = recs.set_column(1, "item_id", [[f" {text}{sep}{sep} " for text in recs["item_id"].to_pylist()]])
    assert fastrec.evaluate(spaced, truth, METRICS, item_sep=sep, n_items=10).estimates == wanted.estimates


@pytest.mark.parametrize("copies", [job.COPIES, 1 << 60])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_cells_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: fastrec.Report, form: str, copies: int
) -> None:
    monkeypatch.setattr(job, "COPIES", copies)
    recs, truth = (str(tmp_path / f"{name}.{form}") for name in ("recs", "truth"))
    for path, lists in ((recs, LISTS), (truth, HELD)):
        (csv.write_csv if form == "csv" else parquet.write_table)(cells(lists, " "), path)
    found = fastrec.evaluate_files(recs, truth, METRICS, item_sep=" ", n_items=10)
    assert found.estimates == wanted.estimates
    told = run_fastrec("evaluate", recs, truth, "-m", "map@12", "--item-sep", " ", "--n-items", "10")
    assert told.exit_code == 0 and f"{wanted['map@12']:.4f}" in told.stdout
    history = fastrec.evaluate_files(recs, None, "novelty@2", history=truth, item_sep=" ", n_items=10)
    frames = cells(LISTS, " "), cells(HELD, " ")
    plain = fastrec.evaluate(frames[0], None, "novelty@2", history=frames[1], item_sep=" ", n_items=10)
    assert history.estimates == plain.estimates


def test_cells_beside_lists_and_beside_rows_of_one_item(wanted: fastrec.Report) -> None:
    recs, lists = cells(LISTS, " "), pa.table({"user_id": USERS, "item_id": pa.array(HELD)})
    rows = pa.table({"user_id": ["c1", "c2", "c2"], "item_id": ["0706", "0841", "0372"]})
    assert fastrec.evaluate(recs, lists, METRICS, item_sep=" ", n_items=10).estimates == wanted.estimates
    lists = pa.table({"user_id": ["c1", "c2"], "item_id": [["0706"], ["0841", "0372"]]})
    found, own = (fastrec.evaluate(recs, truth, "recall@2", item_sep=" ") for truth in (rows, lists))
    assert found.estimates == own.estimates


def test_what_item_sep_does_not_apply_to() -> None:
    recs, truth = cells(LISTS, " "), cells(HELD, " ")
    with pytest.raises(fastrec.InputError, match="item_sep=' ' is about cells of a column, but recs and truth are not"):
        fastrec.evaluate([[1]], [[1]], "mrr", item_sep=" ")
    with pytest.raises(fastrec.InputTypeError, match="item_sep must be a string with at least one character, found ''"):
        fastrec.evaluate(recs, truth, "mrr", item_sep="")
    with pytest.warns(fastrec.FastrecWarning, match=r"cells of recs hold several items: '0706 0372'.*pass item_sep="):
        fastrec.evaluate(recs, truth, "mrr")
