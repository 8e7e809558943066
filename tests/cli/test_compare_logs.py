"""`fastrec compare` on logs: columns of scores of one file, and files whose rows match by order or by key."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.files import job, resources
from support.command_line import run_fastrec

pytest.importorskip("pyarrow")
pytest.importorskip("click")
pd = pytest.importorskip("pandas")


N_USERS, N_ROWS = 40, 8
METRICS = ["auc", "gauc", "average_precision", "log_loss", "calibration", "ndcg@5"]
OPTIONS = ("-m", ",".join(METRICS), "--format", "json")
NUMBERS = ("mean", "baseline_mean", "difference", "low", "high", "p_value", "users")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A log of two models in the current folder, and each model's own file."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    n = N_USERS * N_ROWS
    labels = (draw.random(n) < 0.4).astype(int)
    users = np.repeat(np.arange(N_USERS), N_ROWS)
    own = {
        name: np.clip(0.5 + skill * labels + 0.2 * draw.normal(size=n), 0.01, 0.99) for name, skill in MODELS.items()
    }
    keys = {"id": [f"r{nth}" for nth in range(n)], "day": np.arange(n) % 4, "place": np.arange(n) // 4}
    frame = pd.DataFrame({**keys, "user_id": users, "plan": np.where(users % 2, "x", "y"), "label": labels, **own})
    write(frame, "log")
    for name in MODELS:
        write(frame.drop(columns=[*MODELS]).assign(score=frame[name]), name)
    return frame


MODELS = {"old": 0.1, "new": 0.3}


def write(frame: Any, name: str) -> None:
    frame.to_csv(f"{name}.csv", index=False)
    frame.to_parquet(f"{name}.parquet", index=False)


def changed(name: str, **columns: Any) -> Any:
    """Return the rows of a file with other values."""
    return pd.read_parquet(f"{name}.parquet").assign(**columns)


def run(*arguments: str) -> Any:
    return run_fastrec("compare", *arguments)


def compared(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, *OPTIONS)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def assert_same(found: list[dict[str, Any]], wanted: Any, *, exact: bool = True) -> None:
    assert [row["metric"] for row in found] == [row.metric for row in wanted]
    for row, own in zip(found, wanted, strict=True):
        for name in NUMBERS:
            value = getattr(own, name)
            value = None if math.isnan(value) else value  # if no user differs
            assert row[name] == (value if exact else pytest.approx(value, rel=1e-9, abs=0.005)), (row["metric"], name)


def in_memory(log: Any, **more: Any) -> fastrec.Comparison:
    return fastrec.compare_scores(log, {name: name for name in MODELS}, METRICS, **more)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_one_log_give_the_numbers_of_a_frame(log: Any, ending: str) -> None:
    found = compared(f"log.{ending}", "--score-col", "old", "--score-col", "new", "--by", "plan")
    wanted = in_memory(log, by="plan")
    assert_same(found["rows"], wanted.rows)
    assert_same(found["segments"]["plan"], wanted.segments["plan"])
    assert {(row["system"], row["baseline"]) for row in found["rows"]} == {("new", "old")}


@pytest.mark.parametrize("files", [("old.csv", "new.csv"), ("old.parquet", "new.parquet"), ("old.csv", "new.parquet")])
def test_files_match_by_order(log: Any, files: tuple[str, str]) -> None:
    assert_same(compared(*files)["rows"], in_memory(log).rows)


@pytest.mark.parametrize("keys", [["id"], ["day", "place"]])
def test_files_match_by_key_in_any_order(log: Any, keys: list[str]) -> None:
    write(changed("new").sample(frac=1, random_state=0), "new")
    write(changed("new").assign(score=log["old"].iloc[::-1].to_numpy(), **reverse(log)), "third")
    named = [part for key in keys for part in ("--row-key", key)]
    found = compared("old.parquet", "new.csv", "third.parquet", *named)
    wanted = fastrec.compare_scores(log, {"old": "old", "new": "new", "third": "old"}, METRICS)
    assert_same(found["rows"], wanted.rows)


def reverse(log: Any) -> dict[str, Any]:
    return {name: log[name].iloc[::-1].to_numpy() for name in ("id", "day", "place", "user_id", "plan", "label")}


def test_more_than_two_columns_and_rated_rows(log: Any) -> None:
    frame = log.assign(stars=log["label"] * 4.0, one=log["old"] * 5, two=log["new"] * 5, three=2.0)
    frame.to_parquet("ratings.parquet")
    columns = [part for name in ("one", "two", "three") for part in ("--prediction-col", name)]
    result = run("ratings.parquet", "--target-col", "stars", *columns, "--baseline", "one", "--format", "json")
    models = {name: name for name in ("one", "two", "three")}
    wanted = fastrec.compare_scores(frame, models, ["mae", "rmse", "mse"], label="stars", baseline="one")
    assert_same(json.loads(result.stdout)["rows"], wanted.rows)


@pytest.mark.parametrize("keys", [(), ("--row-key", "id")])
def test_logs_on_disk_are_compared_without_the_order_of_rows(
    log: Any, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    monkeypatch.setattr(job, "COPIES", 1 << 40)
    monkeypatch.setattr(resources, "MIN_BATCH", 50)
    monkeypatch.setattr(resources, "MAX_BATCH", 50)
    found = compared("old.parquet", "new.parquet", *keys)
    assert set(found["left_out"]) == {"auc", "average_precision"} and "batches" in found["left_out"]["auc"]
    wanted = [row for row in in_memory(log).rows if row.metric not in found["left_out"]]
    assert_same(found["rows"], wanted, exact=False)
    for model in MODELS:
        changed(model).drop(columns="user_id").to_parquet(f"{model}.parquet")
    result = run("old.parquet", "new.parquet", "-m", "auc", *keys)
    assert result.exit_code == 2 and "rows without users are compared in memory" in result.output


@pytest.mark.parametrize("on_disk", [False, True])
def test_rows_are_weighed(log: Any, monkeypatch: pytest.MonkeyPatch, *, on_disk: bool) -> None:
    if on_disk:
        monkeypatch.setattr(job, "COPIES", 1 << 40)
        monkeypatch.setattr(resources, "MIN_BATCH", 50)
        monkeypatch.setattr(resources, "MAX_BATCH", 50)
    weights = np.random.default_rng(1).random(len(log)) * 3
    frame = log.assign(importance=weights)
    write(frame, "log")
    for model in MODELS:
        write(changed(model, importance=weights), model)
    write(changed("new").sample(frac=1, random_state=0), "mixed")
    options = ("-m", "auc,log_loss,calibration", "--format", "json", "--weight-col", "importance")
    models = {name: name for name in MODELS}
    wanted = fastrec.compare_scores(frame, models, ["auc", "log_loss", "calibration"], sample_weight="importance")
    assert wanted.rows[0].mean != in_memory(log).rows[0].mean
    rows = [row for row in wanted.rows if not (on_disk and row.metric == "auc")]
    for files in (
        ("log.csv", "--score-col", "old", "--score-col", "new"),
        ("old.csv", "new.csv"),
        ("old.parquet", "new.parquet"),
        ("old.parquet", "new=mixed.csv", "--row-key", "id"),
    ):
        result = run(*files, *options)
        assert result.exit_code == 0, result.output
        assert_same(json.loads(result.stdout)["rows"], rows, exact=not on_disk)
    for name, wrong in (("nothing", 0.0), ("negative", -1.0), ("missing", None)):
        for model in MODELS:
            write(changed(model, importance=wrong), f"{name}_{model}")
        for keys in ((), ("--row-key", "id")):
            result = run(f"{name}_old.csv", f"{name}_new.csv", *options, *keys)
            assert result.exit_code == 2 and f"{name}_old.csv: column 'importance'" in result.output, result.output
    weights[7] = 9
    write(changed("new", importance=weights), "wrong")
    for keys in ((), ("--row-key", "id")):
        result = run("old.csv", "wrong.csv", *options, *keys)
        assert result.exit_code == 2, result.output
        assert "column 'importance' differs in 1 row from old.csv, the first: 9" in result.output


def test_reports_with_and_without_weights_of_rows_are_not_compared(log: Any) -> None:
    users = {"user": "user_id", "label": "label", "score": "old", "metrics": ["log_loss"], "per_user": True}
    plain = fastrec.evaluate_scores(log, **users)
    weighed = fastrec.evaluate_scores(log.assign(w=log["new"]), sample_weight="w", **users)
    weighed.save("weighed.fastrec")
    with pytest.raises(fastrec.InputError, match="row_weights is 'absent' in a and True in b"):
        fastrec.compare({"a": plain, "b": weighed})
    assert "row_weights" in run("weighed.fastrec", "new.csv", "-m", "log_loss").output
    options = ("--weight-col", "place", "-m", "log_loss", "--format", "json")
    assert run("weighed.fastrec", "new.csv", *options).exit_code == 0


@pytest.mark.parametrize("how", [bool, str, float, "int8"])
def test_labels_of_other_types_are_equal(log: Any, how: Any) -> None:
    changed("new", label=log["label"].astype(how)).to_parquet("new.parquet")
    for keys in ((), ("--row-key", "id")):
        assert_same(compared("old.parquet", "new.parquet", *keys)["rows"], in_memory(log).rows)


def test_without_users_each_row_is_one(log: Any) -> None:
    for model in MODELS:
        changed(model).drop(columns="user_id").to_csv(f"{model}.csv")
    options = ("-m", "auc,log_loss", "--format", "json")
    wanted = fastrec.compare_scores(log.drop(columns="user_id"), {"old": "old", "new": "new"}, ["auc", "log_loss"])
    changed("new").drop(columns="user_id").sample(frac=1, random_state=0).to_csv("mixed.csv")
    for arguments in (("old.csv", "new.csv"), ("old.csv", "new=mixed.csv", "--row-key", "id")):
        found = json.loads(run(*arguments, *options).stdout)
        assert_same(found["rows"], wanted.rows)
        assert found["settings"]["units"] == "rows"
    assert "gauc needs users" in run("old.csv", "new.csv", "-m", "gauc").output


@pytest.mark.parametrize("files", [("log.csv", "--score-col", "{}", "--score-col", "{}"), ("{}.csv", "{}.csv")])
def test_the_gate_of_auc(log: Any, files: tuple[str, ...]) -> None:
    def gate(*order: str) -> Any:
        names = iter(order)
        return run(*(part.format(next(names)) if "{" in part else part for part in files), *GATE)

    better, worse = gate("old", "new"), gate("new", "old")
    assert better.exit_code == 0, better.output
    assert worse.exit_code == 1 and "old is worse than new: auc -0.1" in worse.output


GATE = ("-m", "auc", "--fail-if-worse", "auc")


def wrong_files(log: Any) -> dict[str, Any]:
    """Return {name: rows} of files that do not match the file of the old model."""
    labels, users, places, ids = (log[name].to_numpy().copy() for name in ("label", "user_id", "place", "id"))
    labels[[5, 9]] = 1 - labels[[5, 9]]
    users[7] = 39
    places[2] = 5
    plans = log["plan"].replace({"x": "y", "y": "x"})
    twice, other = ids.copy(), ids.copy()
    twice[[7, 9]] = twice[[6, 8]]
    other[7] = "q"
    return {
        "short": changed("new").iloc[:300],
        "labels": changed("new", label=labels),
        "users": changed("new", user_id=users),
        "items": changed("new", place=places),
        "plans": changed("new", plan=plans),
        "some": changed("new", plan=np.where(np.arange(len(ids)) == 2, None, log["plan"])),
        "numbered": changed("new", plan=1.5),
        "twice": changed("new", id=twice),
        "other": changed("new", id=other),
        "integers": changed("new", id=np.arange(len(ids))),
        "graded": changed("new", label=np.where(np.arange(len(labels)) == 3, 0.5, log["label"])),
        "odd": changed("new", score=np.where(np.arange(len(labels)) == 3, 2.0, log["new"])),
        "gaps": changed("new", label=np.where(np.arange(len(labels)) == 4, np.nan, log["label"])),
        "alone": changed("new").drop(columns="user_id"),
    }


BY_ORDER = "; rows match by their order unless --row-key names columns that identify a row"
KEY = ("--row-key", "id")
ITEM = ("--item-col", "place", "--ties", "id_asc")
PLAN = ("--by", "plan")
UNMATCHED: list[tuple[str, tuple[str, ...], str]] = [
    ("short", (), "short.csv has 300 rows, but 320 in old.csv; the first that does not match is row 301" + BY_ORDER),
    ("short", KEY, "do not match: short.csv lacks 20 rows of old.csv, the first is row 301 (id = r300)"),
    ("labels", (), "column 'label' differs in 2 rows from old.csv, the first: "),
    ("labels", KEY, "column 'label' differs in 2 rows from old.csv, the first: "),
    ("users", (), "column 'user_id' differs in 1 row from old.csv, the first: 39 in row 8, and 0 in row 8 of old.csv"),
    ("items", ITEM, "column 'place' differs in 1 row from old.csv, the first: 5 in row 3, and 0 in row 3 of old.csv"),
    ("items", (*ITEM, *KEY), "column 'place' differs in 1 row from old.csv, the first: 5 in row 3, and 0 in row 3 of"),
    ("plans", PLAN, "column 'plan' differs in 320 rows from old.csv, the first: x in row 1, and y in row 1 of old.csv"),
    ("plans", (*PLAN, *KEY), "column 'plan' differs in 320 rows from old.csv, the first: x in row 1, and y in row 1"),
    ("some", PLAN, "column 'plan' differs in 1 row from old.csv, the first: (none) in row 3, and y in row 3 of old."),
    ("numbered", PLAN, "numbered.csv: column 'plan' "),
    ("twice", KEY, "twice.csv: 2 keys in several rows, the first in row 7 (id = r6); --row-key must name columns"),
    (
        "other",
        KEY,
        "other.csv lacks 1 row of old.csv, the first is row 8 (id = r7); old.csv lacks 1 row of other.csv, ",
    ),
    (
        "integers",
        KEY,
        "key ids cannot be matched: integers.csv: column 'id' holds integers, old.csv: column 'id' holds",
    ),
    ("graded", (), "the first: 0.5 in row 4, and 1 in row 4 of old.csv"),
    ("gaps", (), "gaps.csv: column 'label' must not be null, found null in row 5"),
    ("gaps", KEY, "gaps.csv: column 'label' must not be null, found null in row 5"),
    ("odd", (), "odd.csv: column 'score': scores must be probabilities for log_loss, found 2.0 in row 4;"),
    ("odd", KEY, "odd.csv: column 'score': scores must be probabilities for log_loss, found 2.0;"),
    ("alone", (), "alone.csv: no column 'user_id', which old.csv has; --user-col names the column of users"),
    ("new", ("--row-key", "nth"), "old.csv: no column 'nth'"),
    ("new", ("--row-key", "nth"), "--row-key names the columns that identify a row"),
]


# rows in memory match by their order, and need no database
IN_PARQUET = [("parquet", *case) for case in UNMATCHED if "--row-key" not in case[1]]
IN_FILES = [*(("csv", *case) for case in UNMATCHED), *IN_PARQUET]


@pytest.mark.parametrize(("ending", "name", "options", "message"), IN_FILES, ids=range(len(IN_FILES)))
def test_rows_that_do_not_match(log: Any, ending: str, name: str, options: tuple[str, ...], message: str) -> None:
    if name in (files := wrong_files(log)):
        write(files[name], name)
    result = run(f"old.{ending}", f"{name}.{ending}", "-m", "auc,log_loss", *options)
    assert result.exit_code == 2 and message.replace("csv", ending) in result.output, result.output


@pytest.mark.parametrize("keys", [(), KEY])
def test_groups_on_disk_must_be_those_of_the_first_log(
    log: Any, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    monkeypatch.setattr(job, "COPIES", 1 << 40)
    write(wrong_files(log)["plans"], "plans")
    result = run("old.parquet", "plans.parquet", "-m", "log_loss", *PLAN, *keys)
    assert result.exit_code == 2 and "column 'plan' differs in 320 rows from old.parquet" in result.output


@pytest.mark.parametrize("keys", [(), KEY])
def test_groups_are_those_of_the_first_log(log: Any, keys: tuple[str, ...]) -> None:
    alone = changed("new").drop(columns="plan")
    write(alone.sample(frac=1, random_state=0) if keys else alone, "other")
    for name in ("new", "other"):
        found = compared("old.parquet", f"{name}.parquet", *PLAN, *keys)
        assert found["segments"]["plan"], name
        wanted = in_memory(log, by="plan").segments["plan"]
        assert_same(found["segments"]["plan"], wanted)
    result = run("other.csv", "old.csv", *PLAN, *keys)
    assert result.exit_code == 2 and "other.csv: no column 'plan' to group by" in result.output


@pytest.mark.parametrize("options", [(), KEY, PLAN])
def test_scores_of_other_types_that_are_clipped_are_warned_of(log: Any, options: tuple[str, ...]) -> None:
    scores = np.round(log["old"])
    changed("old", score=scores.astype("float32")).to_parquet("single.parquet")
    changed("old", score=scores).to_parquet("double.parquet")
    result = run("single.parquet", "double.parquet", "-m", "log_loss", *options)
    assert result.exit_code == 0, result.output
    assert "with the eps of their dtype, which differs: 1.2e-07 in single, 2.2e-16 in double; " in result.stderr


@pytest.mark.usefixtures("each_way")
def test_labels_of_a_file_of_users(log: Any) -> None:
    log[["user_id", "plan"]].drop_duplicates().rename(columns={"plan": "of_users"}).to_csv("users.csv", index=False)
    found, wanted = (compared("old.csv", "new.parquet", *own) for own in (LABELS, ("--by", "plan")))
    assert json.loads(json.dumps(found).replace("of_users", "plan"))["segments"] == wanted["segments"]


LABELS = ("--by", "of_users", "--users", "users.csv")
TWO = ("--score-col", "old", "--score-col", "new")
WRONG: list[tuple[tuple[str, ...], str]] = [
    (
        ("log.csv",),
        "compare needs two systems or more, as in old=a.parquet new=b.parquet, or a LOG with two --score-col",
    ),
    (("old.csv", "new.csv", *TWO), "several columns of scores are the systems of one LOG"),
    (("log.csv", *TWO, "--truth", "old.csv"), "several columns of scores are the systems of one LOG"),
    (("log.csv", "--score-col", "old", "--score-col", "old"), "two systems have the scores of the column 'old'"),
    (("log.csv", *TWO, "--baseline", "log"), "--baseline log is not one of the systems old, new"),
    (("log.csv", *TWO, *KEY), "--row-key is for several LOGs"),
    (("old.csv", "new.csv", "--truth", "log.csv", *KEY), "--row-key is for a LOG: leave out TRUTH"),
    (("log.csv", "--score-col", "old", "--score-col", "gone"), "log.csv: no column 'gone'"),
    (("log.csv", "--score-col", "old", "--score-col", "id"), "log.csv: column 'id' must hold numbers"),
    (("log.csv", *TWO, "--users", "old.csv"), "add --by NAME"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_usage(log: Any, arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and message in result.output, result.output


def test_pages_of_two_columns(log: Any) -> None:
    result = run("log.csv", *TWO, "-m", "auc,gauc", "--html", "both.html", "--format", "md")
    assert result.exit_code == 0 and "| auc | new" not in result.output
    assert all(name in Path("both.html").read_text() for name in ("old", "new", "gauc"))


def test_files_whose_users_are_not_named_are_warned_of(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = (
        "the log has no column 'user_id', so rows are taken as independent, but column 'userId' may hold users: "
        "pass user='userId' to use it"
    )
    renamed = log.rename(columns={"user_id": "userId"}).assign(score=log["old"])
    renamed.to_csv("users.csv", index=False)
    renamed.to_parquet("users.parquet")
    for copies in (job.COPIES, 1 << 40):  # in memory, and by a database
        with monkeypatch.context() as patch:
            patch.setattr(job, "COPIES", copies)
            for name in ("users.csv", "users.parquet"):
                with pytest.warns(fastrec.FastrecWarning, match=wanted):
                    assert fastrec.evaluate_files(name, metrics="log_loss").warnings == [wanted]
                assert fastrec.evaluate_files(name, metrics="log_loss", user="userId").warnings == []
    result = run("users.csv", "--score-col", "old", "--score-col", "new", "-m", "auc")
    assert result.exit_code == 0 and "pass --user-col userId to use it" in result.stderr
