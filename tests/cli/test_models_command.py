"""Models in files: `fastrec evaluate` with factors, and `fastrec top-items`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastrec
from support.command_line import run_fastrec

pytest.importorskip("click")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from fastrec.cli.group import COUNTED, _pace  # noqa: E402 - needs click
from fastrec.evaluation.lists import ListEvaluation  # noqa: E402
from fastrec.files.columns import ListColumns  # noqa: E402
from fastrec.files.models import evaluate_factors, read_factors, top_items_of_factors  # noqa: E402
from fastrec.files.resources import Resources  # noqa: E402

N_USERS, N_ITEMS = 40, 30


class Files(NamedTuple):
    folder: Path
    users: Any
    items: Any
    bias: Any
    truth: dict[int, list[int]]
    train: dict[int, list[int]]

    def run(self, *arguments: str) -> Any:
        return run_fastrec(*(part.format(self.folder) for part in arguments))

    def report(self, *arguments: str) -> fastrec.Report:
        """Return the report that the command saves."""
        result = self.run("evaluate", *arguments, "-m", "ndcg@10,mrr", "--save", "{}/out.fastrec")
        assert result.exit_code == 0, result.output
        return fastrec.load(self.folder / "out.fastrec")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    draw = np.random.default_rng(0)
    users, items = (draw.integers(-3, 4, (n, 6)).astype(np.float32) for n in (N_USERS, N_ITEMS))
    bias = draw.integers(0, 3, N_ITEMS).astype(np.float32)
    sides = [{u: draw.permutation(N_ITEMS)[:n].tolist() for u in range(N_USERS)} for n in (3, 5)]
    np.save(tmp_path / "u.npy", users)
    np.save(tmp_path / "i.npy", items)
    names = np.array([f"u{u}" for u in range(N_USERS)]), np.array([f"i{i}" for i in range(N_ITEMS)])
    np.savez(tmp_path / "u.npz", factors=users, ids=names[0])
    np.savez(tmp_path / "i.npz", factors=items, ids=names[1], bias=bias)
    pq.write_table(pa.table({"user_id": names[0], "f": list(users)}), tmp_path / "u.parquet")
    pq.write_table(pa.table({"item_id": names[1], "f": list(items), "bias": bias}), tmp_path / "i.parquet")
    for name, side in zip(("truth", "train"), sides, strict=True):
        rows = [(u, i) for u, own in side.items() for i in own]
        table = pa.table({"user_id": [u for u, _ in rows], "item_id": [i for _, i in rows]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        pq.write_table(table.set_column(0, "user_id", pa.array([1000] * len(rows))), tmp_path / "shifted.parquet")
        pq.write_table(table.set_column(1, "item_id", pa.array([1000] * len(rows))), tmp_path / "items.parquet")
        lines = "".join(f"u{u},i{i},{'odd' if u % 2 else 'even'}\n" for u, i in rows)
        (tmp_path / f"{name}.csv").write_text(f"user_id,item_id,plan\n{lines}")
    return Files(tmp_path, users, items, bias, *sides)


def factors(kind: str) -> list[str]:
    return ["--user-factors", f"{{}}/u.{kind}", "--item-factors", f"{{}}/i.{kind}"]


def bits(report: Any) -> Any:
    return {name: (found.mean, found.std_error, found.users) for name, found in report.estimates.items()}


def test_factors_in_arrays_name_users_and_items_by_number(files: Files) -> None:
    found = files.report(*factors("npy"), "{}/truth.parquet", "--exclude", "{}/train.parquet")
    model = files.users, files.items
    wanted = fastrec.evaluate_model(model, files.truth, ["ndcg@10", "mrr"], exclude=files.train)
    assert bits(found) == bits(wanted)
    assert {**found.data} == {**wanted.data}
    assert found.settings.items() >= wanted.settings.items()


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_factors_with_ids_and_biases(files: Files, kind: str) -> None:
    found = files.report(*factors(kind), "{}/truth.csv", "--exclude", "{}/train.csv", "--by", "plan")
    model = files.users, files.items
    plans = {"plan": {u: "odd" if u % 2 else "even" for u in range(N_USERS)}}
    call: dict[str, Any] = {"exclude": files.train, "item_bias": files.bias, "by": plans}
    wanted = fastrec.evaluate_model(model, files.truth, ["ndcg@10", "mrr"], **call)
    assert bits(found) == bits(wanted)
    for plan in ("odd", "even"):
        assert found.groups["plan"][plan]["mrr"].mean == wanted.groups["plan"][plan]["mrr"].mean
    assert sorted(found.user_ids.tolist()) == sorted(f"u{u}" for u in range(N_USERS))


def test_history_and_exclude_are_files(files: Files) -> None:
    more = ["--history", "{}/train.parquet", "--exclude", "history", "--ties", "input", "-m", "popularity@5"]
    found = files.report(*factors("npy"), "{}/truth.parquet", *more)
    call: dict[str, Any] = {"history": files.train, "exclude": "history", "ties": "input"}
    metrics = ["popularity@5", "ndcg@10", "mrr"]
    wanted = fastrec.evaluate_model((files.users, files.items), files.truth, metrics, **call)
    assert bits(found) == bits(wanted)
    assert found.settings["exclude"] == "history"


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_top_items_are_written_as_rows(files: Files, kind: str) -> None:
    train = "{}/train.parquet" if kind == "npy" else "{}/train.csv"
    result = files.run("top-items", *factors(kind), "-k", "4", "--exclude", train, "-o", "{}/lists.parquet")
    assert result.exit_code == 0, result.output
    found = pq.read_table(files.folder / "lists.parquet").to_pydict()
    bias = {} if kind == "npy" else {"item_bias": files.bias}
    items, indptr, scores = fastrec.top_items((files.users, files.items), 4, exclude=files.train, **bias)
    users = np.repeat(np.arange(N_USERS), np.diff(indptr))
    named = kind != "npy"
    assert found["user_id"] == [f"u{u}" if named else u for u in users.tolist()]
    assert found["item_id"] == [f"i{i}" if named else i for i in items.tolist()]
    assert found["rank"] == [1, 2, 3, 4] * N_USERS
    assert found["score"] == scores.tolist()


def test_reports_of_factors_have_the_definitions_of_a_tool_and_compare_with_lists(files: Files) -> None:
    named = [*factors("npy"), "{}/truth.parquet", "-m", "ndcg@5", "--like", "rectools", "--per-user", "{}/users.csv"]
    result = files.run("evaluate", *named, "--save", "{}/model.fastrec")
    assert result.exit_code == 0, result.output
    found = fastrec.load(files.folder / "model.fastrec")
    call: dict[str, Any] = {"metrics": "ndcg@5", "like": "rectools", "per_user": True}
    wanted = fastrec.evaluate_model((files.users, files.items), files.truth, **call)
    assert bits(found) == bits(wanted)
    assert found.per_user["ndcg(gain=binary, ideal=k)@5"].tolist() == wanted.per_user[next(iter(wanted))].tolist()
    assert (files.folder / "users.csv").read_text().count("\n") == N_USERS + 1
    lists = files.run("top-items", *factors("npy"), "-k", str(N_ITEMS), "-o", "{}/lists.parquet")
    assert lists.exit_code == 0, lists.output
    systems = ["model={}/model.fastrec", "lists={}/lists.parquet", "--truth", "{}/truth.parquet"]
    same = files.run("compare", *systems, "-m", "ndcg@5", "--like", "rectools", "--n-items", str(N_ITEMS))
    assert same.exit_code == 0, same.output
    assert "ndcg" in same.output


def test_users_that_no_factors_have_are_said(files: Files) -> None:
    (files.folder / "others.csv").write_text("user_id,item_id\nz,i1\n")
    result = files.run("evaluate", *factors("npz"), "{}/truth.csv", "--exclude", "{}/others.csv", "-m", "mrr")
    assert result.exit_code == 0, result.output
    assert "no user of exclude has a list: do the user ids match?" in " ".join(result.output.split())


def test_the_memory_of_the_command(files: Files) -> None:
    given = [*factors("npy"), "{}/truth.parquet", "--exclude", "{}/train.parquet"]
    assert bits(files.report(*given, "--memory", "64MB", "--threads", "1")) == bits(files.report(*given))
    np.save(files.folder / "wide.npy", np.broadcast_to(np.float32(0), (3_000_000, 6)))
    wide = ["--user-factors", "{}/u.npy", "--item-factors", "{}/wide.npy"]
    for command in (["evaluate", *wide, "{}/truth.parquet"], ["top-items", *wide, "-k", "3", "-o", "{}/l.parquet"]):
        result = files.run(*command, "--memory", "64MB")
        assert result.exit_code != 0
        assert "--memory must be at least 128 MB for 3,000,000 items, found 64 MB" in " ".join(result.output.split())


def test_the_progress_counts_users(files: Files) -> None:
    seen: list[tuple[Any, ...]] = []
    model = read_factors(files.folder / "u.npy", "user_id"), read_factors(files.folder / "i.npy", "item_id")
    sides = {"truth": files.folder / "truth.parquet"}
    columns, watch = ListColumns(users=("user_id",), item="item_id"), lambda *done: seen.append(done)
    evaluate_factors(lambda **_: ListEvaluation("mrr"), model, sides, columns, Resources(watch=watch))
    assert seen[-1] == ("scoring", N_USERS, N_USERS)
    top_items_of_factors(model, 3, None, columns, Resources(watch=watch))
    assert seen.count(("scoring", N_USERS, N_USERS)) == 2
    assert _pace(10, 2000, None, None, COUNTED["scoring"]) == "10 of 2.0k users"


INTERRUPTED = """
import os, signal, sys, threading
from fastrec.evaluation.lists import ListEvaluation
from fastrec.cli.program import main

signal.signal(signal.SIGINT, signal.default_int_handler)
evaluate = ListEvaluation.evaluate_model

def interrupted(*given):
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    return evaluate(*given)

ListEvaluation.evaluate_model = interrupted
main()
"""


def test_an_interrupt_while_users_are_scored_is_quiet(tmp_path: Path) -> None:
    """Scoring all would take half a minute."""
    for name, n in (("u", 200_000), ("i", 100_000)):
        np.save(tmp_path / f"{name}.npy", np.ones((n, 8), np.float32))
    pq.write_table(pa.table({"user_id": [1, 2], "item_id": [1, 1]}), tmp_path / "truth.parquet")
    given = ["--user-factors", tmp_path / "u.npy", "--item-factors", tmp_path / "i.npy", tmp_path / "truth.parquet"]
    command = [sys.executable, "-c", INTERRUPTED, "evaluate", *map(str, given), "-m", "mrr", "--save"]
    found = subprocess.run(
        [*command, str(tmp_path / "r.fastrec")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")
    assert not (tmp_path / "r.fastrec").exists()


ERRORS = [
    (["--user-factors", "{}/u.npy", "{}/truth.csv"], "--user-factors and --item-factors go together"),
    ([*factors("npy"), "{}/truth.csv", "{}/truth.csv"], "take the place of RECS: give TRUTH alone"),
    ([*factors("npy"), "{}/truth.csv"], "found integers in the factors and strings in truth"),
    ([*factors("npz"), "{}/truth.parquet"], "found strings in the factors and integers in truth"),
    (
        [*factors("npy"), "{}/truth.parquet", "--rank-col", "r"],
        "--rank-col names a column of lists: with factors, only",
    ),
    ([*factors("npy"), "{}/truth.parquet", "--seed", "3"], "--seed 3 needs --negatives"),
    ([*factors("npy"), "{}/truth.parquet", "-m", "auc"], "auc is a metric of scored rows"),
    (["--user-factors", "{}/truth.csv", "--item-factors", "{}/i.npy", "{}/truth.csv"], "is no file of factors"),
    (["--user-factors", "{}/truth.parquet", "--item-factors", "{}/i.npy", "{}/truth.csv"], "one column of lists"),
    (["--user-factors", "{}/i.parquet", "--item-factors", "{}/i.npy", "{}/truth.csv"], "has no column 'user_id'"),
    (
        [*factors("npy"), "{}/shifted.parquet"],
        "the 40 users of the model are numbered from 0: name them with ids in the file of user factors (.npz or .p",
    ),
    (
        ["--user-factors", "{}/u.npy", "--item-factors", "{}/i.npy", "{}/items.parquet"],
        "name them with ids in the file of item factors",
    ),
    ([*factors("npy"), "{}/truth.parquet", "--n-items", "10", "-m", "fallout@3"], "n_items = 10 is too small"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors_name_files_and_options(files: Files, arguments: list[str], message: str) -> None:
    result = files.run("evaluate", *arguments)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())


def test_archives_and_lists_that_are_no_factors(files: Files) -> None:
    np.savez(files.folder / "other.npz", weights=files.users)
    np.save(files.folder / "objects.npy", np.array([["a", 1]], object), allow_pickle=True)
    rows = [row.tolist() for row in files.users]
    rows[3] = rows[3][:2]
    pq.write_table(pa.table({"user_id": np.arange(N_USERS), "f": rows}), files.folder / "ragged.parquet")
    wrong = {"other.npz": "has no array 'factors'", "ragged.parquet": "of one length", "objects.npy": "is no file of"}
    np.savez_compressed(files.folder / "whole.npz", factors=files.users)
    whole = (files.folder / "whole.npz").read_bytes()
    kind = whole.index(b"PK\1\2") + 10  # where the archive names the way of compression
    for name, at, damage in (("damaged", 100, bytes(20)), ("packed", kind, b"\1")):
        data = bytearray(whole)
        data[at : at + len(damage)] = damage
        (files.folder / f"{name}.npz").write_bytes(data)
        wrong[f"{name}.npz"] = f"{name}.npz is no file of factors"
    for name, message in wrong.items():
        given = ["--user-factors", f"{{}}/{name}", "--item-factors", "{}/i.npy"]
        result = files.run("evaluate", *given, "{}/truth.parquet")
        assert message in " ".join(result.output.split())
    for given, message in ((["-k", "3"], "are needed"), ([*factors("npy"), "-k", "3"], "must end in .parquet")):
        result = files.run("top-items", *given, "-o", "{}/lists.csv")
        assert message in " ".join(result.output.split())


def test_nulls_and_files_cut_short_are_errors(files: Files) -> None:
    """Nulls became 0, or the id of another row."""
    ids, rows = [f"i{i}" for i in range(N_ITEMS)], list(files.items)
    for name, column in (("item_id", [*ids[:2], None, *ids[3:]]), ("bias", [1.0, 1.0, None, *[1.0] * (N_ITEMS - 3)])):
        table = pa.table({"item_id": ids, "f": rows, "bias": [0.0] * N_ITEMS})
        pq.write_table(table.set_column(table.column_names.index(name), name, [column]), files.folder / "null.parquet")
        given = ["--user-factors", "{}/u.npz", "--item-factors", "{}/null.parquet"]
        result = files.run("evaluate", *given, "{}/truth.csv")
        assert f"null.parquet: column '{name}' must not be null, found null in row 3" in " ".join(result.output.split())
    (files.folder / "cut.parquet").write_bytes((files.folder / "i.parquet").read_bytes()[:-9])
    result = files.run("evaluate", "--user-factors", "{}/u.npz", "--item-factors", "{}/cut.parquet", "{}/truth.csv")
    assert isinstance(result.exception, SystemExit)
    assert "cut.parquet is no file of factors" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "names", [["--user-col", "item_id"], ["--user-col", "rank"], ["--item-col", "score"], ["--item-col", "user_id"]]
)
def test_lists_need_columns_of_different_names(files: Files, names: list[str]) -> None:
    result = files.run("top-items", *factors("npy"), "-k", "3", *names, "-o", "{}/l.parquet")
    assert result.exit_code == 2
    assert "the columns of users, items, 'rank' and 'score' must differ" in " ".join(result.output.split())


def test_options_of_top_items_are_those_that_it_reads(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(files.run("top-items", "--help").output.split())
    assert "--temp-dir" not in text and "with factors 512 MiB" in text
    assert "--exclude FILE Path of seen items (user, item), which are not listed." in text
    monkeypatch.chdir(files.folder)
    (files.folder / "history").write_bytes((files.folder / "train.parquet").read_bytes())
    for name, excluded in (("a", "history"), ("b", "{}/train.parquet")):
        result = files.run("top-items", *factors("npy"), "-k", "3", "--exclude", excluded, "-o", f"{{}}/{name}.parquet")
        assert result.exit_code == 0, result.output
    assert pq.read_table(files.folder / "a.parquet").equals(pq.read_table(files.folder / "b.parquet"))


def test_more_items_than_the_catalogue_has(files: Files) -> None:
    result = files.run("top-items", *factors("npy"), "-k", str(2**63 - 1), "-o", "{}/l.parquet")
    assert result.exit_code == 0, result.output
    assert pq.read_table(files.folder / "l.parquet").num_rows == N_USERS * N_ITEMS
    assert len(fastrec.top_items((files.users, files.items), 2**63)[0]) == N_USERS * N_ITEMS


def test_samples_of_the_catalogue(files: Files) -> None:
    sides = [*factors("npy"), "{}/truth.parquet", "--exclude", "{}/train.parquet"]
    options = ["--negatives", "9", "--seed", "4", "--sample", "popularity"]
    found = files.report(*sides, *options)
    call: dict[str, Any] = {"negatives": 9, "seed": 4, "exclude": files.train}
    model = files.users, files.items
    wanted = fastrec.evaluate_model(model, files.truth, ["ndcg@10", "mrr"], sample="popularity", **call)
    assert bits(found) == bits(wanted)
    assert found.settings.items() >= wanted.settings.items()
    assert found.warnings == wanted.warnings
    options = ["--negatives", "9", "--seed", "4", "--correct", "rank", "-m", "ndcg@10"]
    result = files.run("evaluate", *sides, *options)
    assert result.exit_code == 0
    value = fastrec.evaluate_model(model, files.truth, "ndcg@10", correct="rank", **call)["ndcg@10"]
    assert f"{value:.4f}" in result.stdout
    mark = "sampled: estimates (correct=rank) of the whole catalogue, from 9 items drawn uniformly"
    assert mark in result.stderr
    assert mark in " ".join(result.stdout.split())  # lines are wrapped


def test_lists_that_hold_a_sample(files: Files) -> None:
    draw = np.random.default_rng(2)
    lists = {
        user: draw.permutation([*own, *draw.choice(sorted(set(range(N_ITEMS)) - set(own)), 8, replace=False)]).tolist()
        for user, own in files.truth.items()
    }
    rows = [(user, item, rank) for user, own in lists.items() for rank, item in enumerate(own, start=1)]
    text = "".join(f"u{user},i{item},{rank}\n" for user, item, rank in rows)
    for name in ("one", "two"):
        (files.folder / f"{name}.csv").write_text(f"user_id,item_id,rank\n{text}")
    options = ["--sampled-from", str(N_ITEMS), "--correct", "rank", "-m", "ndcg@10"]
    result = files.run("evaluate", "{}/one.csv", "{}/truth.csv", *options, "--format", "json")
    assert result.exit_code == 0, result.output
    call: dict[str, Any] = {"sampled_from": N_ITEMS, "correct": "rank"}
    wanted = fastrec.evaluate(lists, files.truth, "ndcg@10", **call)
    assert f"{wanted['ndcg@10']:.12f}" in result.stdout
    paths = files.folder / "one.csv", files.folder / "truth.csv"
    assert bits(fastrec.evaluate_files(*paths, "ndcg@10", **call)) == bits(wanted)
    result = files.run("compare", "{}/one.csv", "{}/two.csv", "--truth", "{}/truth.csv", *options)
    assert result.exit_code == 0, result.output
    mark = "sampled: estimates (correct=rank) of the whole catalogue, from samples of a catalogue of 30 items"
    assert mark in " ".join(result.stdout.split())
    assert f"one, two: {mark}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{}/truth.csv", "{}/truth.csv", "--negatives", "3"],
            "--negatives 3 draws items of a model; lists that hold a sample go with --sampled-from",
        ),
        (
            ["{}/truth.parquet", "--user-factors", "{}/u.npy", "--item-factors", "{}/i.npy", "--sampled-from", "9"],
            "--sampled-from 9 is about lists that hold a sample; to draw items of a model pass --negatives",
        ),
        (
            ["{}/truth.csv", "{}/truth.csv", "--correct", "rank"],
            "--correct rank needs lists that hold a sample: --negatives or --sampled-from",
        ),
        (["{}/truth.csv", "--label-col", "plan", "--sampled-from", "9"], "--sampled-from is for lists: give TRUTH"),
    ],
)
def test_options_of_samples_in_the_wrong_place(files: Files, arguments: list[str], message: str) -> None:
    result = files.run("evaluate", *arguments, "-m", "recall@3")
    assert result.exit_code == 2
    assert message in result.stderr
