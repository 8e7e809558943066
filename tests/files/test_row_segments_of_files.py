"""Segments of rows in files: the same bits as in data frames, whole or sorted on disk, and on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from support.bits import group_bits
from support.command_line import run_fastrec
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

METRICS = ["auc", "gauc", "log_loss", "calibration", "average_precision", "ndcg@3"]
METRICS += ["auc(min_tpr=0.4)", "eer", "recall_at_precision(at=0.6)", "ece(norm=l2)", "g_mean(threshold=0.5)"]
METRICS += ["r2", "mape(eps=0.5)", "xauc", "xauc(average=user)"]
BY = ["device", "position"]


def make_log(*, missing: bool = False) -> Any:
    draw = np.random.default_rng(8)
    n = 4000
    log = pd.DataFrame(
        {
            "user_id": draw.integers(0, 300, n),
            "device": draw.choice(["phone", "tv", "web ü"], n),
            "position": draw.integers(1, 6, n),
            "score": draw.integers(0, 1000, n) / 1024,
            "label": draw.integers(0, 2, n),
        }
    )
    log["plan"] = np.where(log.user_id % 3, "free", "paid")
    if missing:
        log["position"] = log.position.astype("Int64")
        log.loc[::5, "position"], log.loc[::7, "device"] = pd.NA, None
    return log


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_segments_have_the_same_bits_on_every_route(ending: str, missing: bool, tmp_path: Path) -> None:
    log = make_log(missing=missing)
    path = write_table(pa.Table.from_pandas(log), tmp_path / f"log.{ending}")
    for by in ("plan", None):
        wanted = fastrec.evaluate_scores(log, metrics=METRICS, row_by=BY, by=by)
        found = fastrec.evaluate_files(path, None, METRICS, row_by=BY, by=by, per_user=by is None)
        assert group_bits(found) == group_bits(wanted)
        assert found.row_groupings == wanted.row_groupings == BY
        assert found.data == wanted.data
        assert ("rows_in_no_segment(position)" in found.data) is missing
    assert [type(label) for label in found.groups["position"]] == [int] * 5


def test_frames_of_lists_and_of_categories() -> None:
    log = make_log()
    wanted = group_bits(fastrec.evaluate_scores(log, metrics=METRICS, row_by=BY))
    encoded = log.astype({"device": "category"})
    assert group_bits(fastrec.evaluate_scores(encoded, metrics=METRICS, row_by=BY)) == wanted
    lists = log.groupby("user_id").agg(list).reset_index()
    assert group_bits(fastrec.evaluate_scores(lists, metrics=METRICS, row_by=BY)) == wanted


def test_the_command(tmp_path: Any) -> None:
    log = make_log()
    path = str(tmp_path / "log.csv")
    log.to_csv(path, index=False)
    arguments = ["evaluate", path, "-m", "auc,log_loss", "--row-by", "device", "--by", "plan"]
    printed = run_fastrec(*arguments)
    assert printed.exit_code == 0
    assert "segments of rows by device; a user may be in several" in printed.output
    document = json.loads(run_fastrec(*arguments, "--format", "json").stdout)
    wanted = fastrec.evaluate_scores(log, metrics=["auc", "log_loss"], row_by="device", by="plan").to_dict()
    assert document["groups"] == wanted["groups"]
    assert document["settings"]["row_groupings"] == ["device"]


def test_ranges_of_numbers_are_no_labels() -> None:
    log = make_log()
    log["bin"] = pd.cut(log.score, [0, 0.5, 1], include_lowest=True)
    for frame in (log, log.astype({"bin": log.bin.cat.categories.dtype})):
        for by in ({"row_by": "bin"}, {"row_by": ["device", "bin"]}, {"by": "bin"}):
            with pytest.raises(fastrec.InputTypeError, match=r"column 'bin' holds ranges of numbers.*labels="):
                fastrec.evaluate_scores(frame, metrics="auc", **by)
    log["named"] = pd.cut(log.score, [0, 0.5, 1], labels=["low", "high"], include_lowest=True)
    named = fastrec.evaluate_scores(log, metrics="auc", row_by="named")
    spelled = fastrec.evaluate_scores(log.astype({"bin": str}), metrics="auc", row_by="bin")
    assert sorted(own["auc"] for own in named.groups["named"].values()) == sorted(
        own["auc"] for own in spelled.groups["bin"].values()
    )


def test_labels_that_vary_within_a_user_need_row_by(tmp_path: Any) -> None:
    log = make_log()
    path = tmp_path / "log.csv"
    log.to_csv(path, index=False)
    for call in (
        lambda: fastrec.evaluate_scores(log, metrics="auc", by="device"),
        lambda: fastrec.evaluate_scores(log.label, log.score, user_ids=log.user_id, metrics="auc", groups=log.device),
    ):
        with pytest.raises(fastrec.InputError, match=r"must agree within a user.* as row_groups or row_by"):
            call()
    refused = run_fastrec("evaluate", str(path), "-m", "auc", "--by", "device")
    assert refused.exit_code == 2 and "labels that vary within a user as row_groups or --row-by" in refused.output


def test_the_command_draws_the_first_of_many_segments(tmp_path: Any) -> None:
    path = tmp_path / "log.csv"
    draw = np.random.default_rng(1)
    log = pd.DataFrame({"item": np.arange(3000) % 1234, "score": draw.random(3000), "label": draw.integers(0, 2, 3000)})
    log.to_csv(path, index=False)
    arguments = ["evaluate", str(path), "-m", "brier", "--row-by", "item"]
    drawn = run_fastrec(*arguments)
    assert drawn.exit_code == 0 and len(drawn.output.splitlines()) < 120
    assert "by item: the first 100 of 1,234 labels; --format json has all" in drawn.output
    document = json.loads(run_fastrec(*arguments, "--format", "json").stdout)
    assert len(document["groups"]["item"]) == 1234


def test_wrong_segments(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log()
    path = tmp_path / "log.csv"
    log.to_csv(path, index=False)
    for options, match in (
        ({"row_by": "place"}, "log.csv: no column 'place'"),
        ({"row_by": "plan", "by": "plan"}, "'plan' names groups of users and segments of rows"),
        ({"row_by": 3}, "row_by must be a string"),
    ):
        with pytest.raises(fastrec.FastrecError, match=match):
            fastrec.evaluate_files(path, None, ["auc"], **options)
    log.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(fastrec.InputTypeError, match="column 'score' holds double; labels to group by must be"):
        fastrec.evaluate_files(tmp_path / "log.parquet", None, ["auc"], row_by="score")
    with pytest.raises(fastrec.InputError, match="row_by does not apply to lists, with truth"):
        fastrec.evaluate_files(path, path, ["mrr"], row_by="device")
    with pytest.raises(fastrec.InputError, match=r"row_by.* names a column, but labels is not a data frame"):
        fastrec.evaluate_scores(log.label, log.score, metrics="auc", row_by="device")
    with pytest.raises(fastrec.InputError, match="row_groups goes with labels and scores"):
        fastrec.evaluate_scores(log, metrics="auc", row_groups=log.device)
    from fastrec.inputs import row_groups

    monkeypatch.setattr(row_groups, "MAX_SEGMENTS", 2)
    with pytest.raises(fastrec.InputError, match=r"log.csv: column 'device' has 3 distinct labels, at most 2"):
        fastrec.evaluate_files(path, None, ["auc"], row_by="device")
    refused = run_fastrec("evaluate", str(path), str(path), "--row-by", "device")
    assert refused.exit_code == 2
