"""Parquet read straight into memory: the same as by DuckDB, which reads the files that need it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastrec import FastrecWarning, InputError, InputTypeError, evaluate_files
from fastrec.files import job, parquet
from fastrec.files.paths import Files
from fastrec.inputs import strings

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

METRICS = ["ndcg@3", "recall@2", "map", "mrr"]
LOG_METRICS = ["gauc", "auc", "ndcg@2", "log_loss"]


@pytest.fixture
def write(tmp_path):
    """Write columns as Parquet, with this many rows per group; return the path as a string."""

    def write_file(columns, name=None, group=4):
        path = tmp_path / (name or f"file{len(os.listdir(tmp_path))}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, row_group_size=group)
        return str(path)

    return write_file


@pytest.fixture
def both(monkeypatch):
    """Evaluate files straight and by DuckDB; return whether the first was straight, and their common report."""

    def evaluate_both(*args, **options):
        read = []

        def watch(*arguments):
            found = parquet.read_plain(*arguments)
            read.append(found is not None)
            return found

        monkeypatch.setattr(job, "read_plain", watch)
        ours = evaluate_files(*args, **options)
        monkeypatch.setattr(job, "find_plain", lambda *arguments: None)
        theirs = evaluate_files(*args, **options)
        monkeypatch.undo()
        assert ours.to_dict() == theirs.to_dict()
        for name in ours.per_user if options.get("per_user") else ():
            np.testing.assert_array_equal(ours.per_user[name], theirs.per_user[name])
        return bool(read) and all(read), ours

    return evaluate_both


def make_lists(rng, *, texts=False, wide=None, n=60):
    """Return lists and truth with rows in any order."""
    users, items = rng.integers(0, 7, n), rng.integers(0, 9, n)
    pairs = np.unique(np.stack([users, items], axis=1), axis=0)
    recs, truth = rng.permutation(pairs), rng.permutation(pairs)[: n // 3]

    def column(values, name):
        return pa.array([f"{name}{value:03}" for value in values.tolist()]) if texts else pa.array(values, wide)

    ranks = np.zeros(len(recs), np.int64)
    for user in np.unique(recs[:, 0]):
        own = recs[:, 0] == user
        ranks[own] = rng.permutation(own.sum()) + 1
    lists = {"user_id": column(recs[:, 0], "u"), "item_id": column(recs[:, 1], "i"), "rank": ranks}
    held = {"user_id": column(truth[:, 0], "u"), "item_id": column(truth[:, 1], "i")}
    return lists, held | {"gain": rng.integers(1, 4, len(truth))}


@pytest.mark.thorough
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("group", [1, 4, 1000])
def test_lists_read_straight(write, both, texts, group):
    rng = np.random.default_rng(group + texts)
    lists, held = make_lists(rng, texts=texts)
    options = {"per_user": True, "ties": "expected"}
    straight, report = both(write(lists, group=group), write(held, group=group), METRICS, **options)
    assert straight and 0 < report["ndcg@3"] < 1
    scored = {name: lists[name] for name in ("user_id", "item_id")} | {"score": rng.integers(0, 3, len(lists["rank"]))}
    straight, _ = both(write(scored, group=group), write(held), METRICS, **options)
    assert straight
    straight, _ = both(
        write(lists), write(held), METRICS, exclude=write({n: lists[n][:3] for n in ("user_id", "item_id")})
    )
    assert straight


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.int32(), pa.uint32()])
def test_integers_of_any_width(write, both, kind):
    rng = np.random.default_rng(3)
    lists, held = make_lists(rng, wide=kind)
    wide = {name: column.cast(pa.int64()) if name != "gain" else column for name, column in held.items()}
    assert both(write(lists), write(held), METRICS, ties="expected")[0]
    assert both(write(lists), write(wide), METRICS, ties="expected")[0]


OLD = int(pa.__version__.split(".")[0]) < 20
VIEWS = pytest.param(pa.string_view(), marks=pytest.mark.skipif(OLD, reason="this PyArrow casts to no views of texts"))


@pytest.mark.parametrize("kind", [pa.large_string(), VIEWS])
def test_texts_of_any_width(write, both, kind):
    lists, held = make_lists(np.random.default_rng(4), texts=True)
    for name in ("user_id", "item_id"):
        lists[name] = lists[name].cast(kind)
    assert both(write(lists), write(held), METRICS, per_user=True)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("label", [pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("score", [pa.float32(), pa.float64(), pa.int32()])
def test_logs_read_straight(write, both, label, score):
    rng = np.random.default_rng(5)
    n = 50
    log = {
        "user_id": rng.integers(0, 6, n),
        "label": pa.array(rng.integers(0, 2, n)).cast(label),
        "score": pa.array(rng.random(n) if pa.types.is_floating(score) else rng.integers(0, 2, n)).cast(score),
        "w": rng.random(n) + 0.5,
        "place": pa.array([f"p{place}" for place in rng.integers(0, 2, n).tolist()]),
    }
    path = write(log)
    assert both(path, metrics=LOG_METRICS, per_user=True)[0]
    assert both(path, metrics=LOG_METRICS, user=["user_id", "place"])[0]
    assert both(path, metrics=["auc", "log_loss"], sample_weight="w")[0]
    assert both(path, metrics=["rmse", "mae"])[0] is not pa.types.is_boolean(label)


def test_threads_take_the_largest_row_groups_of_all_tables_first():
    def table(*sizes):
        groups = tuple(parquet.RowGroup("", None, nth, 0, rows) for nth, rows in enumerate(sizes))
        return parquet.Plain(Files("", (), ()), (), {}, {}, groups)

    found = {"recs": table(9, 9, 2), "truth": table(5)}
    assert parquet.groups_of(found) == [("recs", 0), ("recs", 1), ("truth", 0), ("recs", 2)]


def test_files_whose_footers_only_duckdb_understands_are_compared(write, monkeypatch):
    """Such as those of maps with keys that may be null; here PyArrow fails for every file."""

    def fail(*_, **__):
        raise pa.ArrowInvalid("not understood")

    lists, held = make_lists(np.random.default_rng(6))
    write(pa.table(lists), "lists/a.parquet")
    spelled = {**lists, "item_id": pa.array([f"00{item}" for item in lists["item_id"]])}
    folder = os.path.dirname(write(pa.table(spelled), "lists/b.parquet"))
    truth = write(held)
    monkeypatch.setattr(pq, "read_metadata", fail)
    monkeypatch.setattr(pq, "read_schema", fail)
    with pytest.raises(InputTypeError, match=r"b.parquet: column 'item_id' holds VARCHAR, but \w+ in .*a.parquet"):
        evaluate_files(folder, truth, METRICS)


def test_several_files_are_read_as_one(write, both, tmp_path):
    lists, held = make_lists(np.random.default_rng(6))
    table = pa.table(lists)
    for part in range(3):
        write(table.slice(20 * part, 20), f"lists/part{part}.parquet")
    assert both(str(tmp_path / "lists"), write(held, "truth.parquet"), METRICS, per_user=True)[0]


def test_what_is_not_as_usual_goes_by_way_of_duckdb(write, both, tmp_path):
    lists, held = make_lists(np.random.default_rng(7))
    truth = write(held)
    ranks = {**lists, "rank": lists["rank"] * 1.0}
    assert not both(write(ranks), truth, METRICS)[0]
    decimals = {**lists, "user_id": lists["user_id"].cast(pa.decimal128(30, 0))}
    assert not both(write(decimals), truth, METRICS)[0]
    first = pa.table(lists).filter(pa.array(np.asarray(lists["rank"]) == 1))
    write(first, "days/rank=1/part.parquet")  # the column may be in the name of the folder, too
    assert not both(str(tmp_path / "days"), truth, METRICS)[0]
    labelled = {**held, "plan": pa.array(["a"] * len(held["gain"]))}
    assert not both(write(lists), write(labelled), METRICS, by="plan")[0]


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("item_id", pa.array([1, None, 3]), r"'item_id' has no value \(null\) in row 2 of 3"),
        ("item_id", pa.array([1, -2, 3]), r"'item_id' holds -2: item ids must not be negative"),
        ("item_id", pa.array([1, 2, 2**63], pa.uint64()), r"'item_id' holds 9223372036854775808, above 2\^63 - 1"),
        ("rank", pa.array([1, 1, 2]), r"column 'rank' holds a rank twice for one user"),
        ("score", pa.array([0.5, float("nan"), 1.0]), r"'score' is NaN in 1 row, the first is row 2 of 3"),
        ("score", pa.array([1, 2**60, 3]), r"'score' holds an integer past 2\*\*53.* in row 2 of 3"),
        ("user_id", pa.array(["a", "b", "c"]), r"user ids cannot be matched"),
    ],
)
def test_errors_name_files_columns_and_rows(write, column, values, match):
    lists = {"user_id": pa.array([1, 1, 1]), "item_id": pa.array([1, 2, 3]), column: values}
    path = write(lists, "lists.parquet", group=2)
    with pytest.raises((InputError, InputTypeError), match=rf"lists\.parquet: column {match}|{match}"):
        evaluate_files(path, write({"user_id": [1], "item_id": [2]}), METRICS)


@pytest.mark.parametrize("numbered", [False, True])
def test_texts_that_are_no_utf8(write, request, numbered):
    if numbered:
        request.getfixturevalue("numbering")  # while they are read
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    path = write({"user_id": bad, "item_id": [1, 2]})
    with pytest.raises(InputError, match=r"cannot be read as Parquet: .*(encoding|UTF)"):
        evaluate_files(path, write({"user_id": ["a"], "item_id": [2]}), METRICS)


def test_ids_of_which_none_match_are_explained(write):
    lists, truth = {"user_id": [1, 2], "item_id": [3, 4]}, {"user_id": [7, 8], "item_id": [3, 4]}
    with pytest.warns(FastrecWarning, match="user"):
        evaluate_files(write(lists), write(truth), METRICS)


@pytest.mark.thorough
@pytest.mark.skipif(OLD, reason="this PyArrow loads pandas itself, where it is installed")
def test_neither_duckdb_nor_pandas_is_loaded(write):
    rng = np.random.default_rng(8)
    for texts in (False, True):
        lists, held = make_lists(rng, texts=texts)
        code = (
            "import json, sys, fastrec\n"
            "report = fastrec.evaluate_files(sys.argv[1], sys.argv[2], 'ndcg@3')\n"
            "print(json.dumps([report['ndcg@3'], [name for name in ('duckdb', 'pandas') if name in sys.modules]]))"
        )
        paths = [write(lists), write(held)]
        done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == [evaluate_files(*paths, "ndcg@3")["ndcg@3"], []]


@pytest.mark.thorough
@pytest.mark.skipif(OLD, reason="this PyArrow loads pandas itself, where it is installed")
def test_many_strings_load_neither_duckdb_nor_pandas(write):
    """They become dictionaries while they are read."""
    rows = np.arange(strings.MANY_STRINGS)
    lists = {"user_id": [f"u{row // 20}" for row in rows], "item_id": [f"i{row % 20}" for row in rows]}
    paths = [write(lists), write({name: values[::7] for name, values in lists.items()})]
    code = (
        "import sys, fastrec\n"
        "fastrec.evaluate_files(*sys.argv[1:], 'hit_rate@3', ties='input')\n"
        "print(*[name for name in ('duckdb', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_integers_that_need_64_bits_after_others_that_do_not(write, both):
    lists, held = make_lists(np.random.default_rng(9))
    order = np.argsort(np.asarray(lists["user_id"]), kind="stable")
    recs = {name: np.asarray(values)[order] for name, values in lists.items()}
    straight, expected = both(write(recs, group=20), write(held), METRICS, per_user=True)
    for name in ("user_id", "item_id"):
        for side in (recs, held):
            ids = np.asarray(side[name])
            side[name] = ids + np.where(ids > 4, 2**40, 0)
    straight, report = both(write(recs, group=20), write(held), METRICS, per_user=True)
    assert straight and report.user_ids.max() > 2**40
    assert report.to_dict()["metrics"] == expected.to_dict()["metrics"]


@pytest.mark.skipif(OLD, reason="this PyArrow writes the encodings of a footer in another way")
def test_statistics_of_a_column_whose_type_is_damaged(write):
    """PyArrow ends the process on reading them; DuckDB reads the file."""
    lists, held = make_lists(np.random.default_rng(12))
    path, truth = Path(write(lists, group=1000)), write(held)
    mrr = evaluate_files(path, truth, "mrr")["mrr"]
    type_of_chunk = rb"\x15\x04(?=\x19[\x15\x25\x35\x45])"  # in the footer: INT64, before a list of encodings
    damaged, chunks = re.subn(type_of_chunk, b"\x15\x0c", path.read_bytes())  # BYTE_ARRAY
    assert chunks == len(lists)
    path.write_bytes(damaged)
    code = "import sys, fastrec; print(fastrec.evaluate_files(sys.argv[1], sys.argv[2], 'mrr')['mrr'])"
    done = subprocess.run([sys.executable, "-c", code, path, truth], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, repr(mrr)), done.stderr


@pytest.mark.thorough
def test_no_damaged_bit_of_a_footer_ends_the_process(write):
    """PyArrow ends it on reading the metadata of a damaged column."""
    lists, held = make_lists(np.random.default_rng(12))
    path, truth = Path(write(lists, group=1000)), write(held)
    code = """
import pathlib, sys, fastrec
path, truth = sys.argv[1:]
whole = pathlib.Path(path).read_bytes()
end = len(whole) - 8
begin = end - int.from_bytes(whole[end:end + 4], "little")
for at in range(begin, end, 5):
    damaged = bytearray(whole)
    damaged[at] ^= 1 << (at // 5 % 8)
    pathlib.Path(path).write_bytes(damaged)
    try:
        fastrec.evaluate_files(path, truth, "mrr")
    except fastrec.FastrecError:
        pass
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, path, truth], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr[-2000:]


def test_files_without_statistics(both, tmp_path):
    lists, held = make_lists(np.random.default_rng(10))
    paths = [str(tmp_path / name) for name in ("lists.parquet", "truth.parquet")]
    for path, columns in zip(paths, (lists, held), strict=True):
        pq.write_table(pa.table(columns), path, write_statistics=False)
    assert both(*paths, METRICS, per_user=True)[0]


def test_a_file_that_changes_after_its_footer_was_read(write, monkeypatch):
    lists, held = make_lists(np.random.default_rng(11))
    path, truth = write(lists), write(held)

    def find_and_change(*arguments):
        found = parquet.find_plain(*arguments)
        pq.write_table(pa.table({**lists, "rank": lists["rank"][::-1]}), path)
        return found

    monkeypatch.setattr(job, "find_plain", find_and_change)
    with pytest.raises(InputError, match="changed while it was read"):
        evaluate_files(path, truth, METRICS)


@pytest.fixture
def numbering():
    """Number the strings of small files, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "MANY_STRINGS", 1)
        yield patch


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), VIEWS])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_many_texts_are_numbered_while_they_are_read(write, both, numbering, kind, n_threads):
    lists, held = make_lists(np.random.default_rng(12), texts=True)
    ids = {name: lists[name].cast(kind) for name in ("user_id", "item_id")}
    paths = write(lists | ids), write(held)
    straight, many = both(*paths, METRICS, per_user=True, n_threads=n_threads)
    numbering.undo()
    few = both(*paths, METRICS, per_user=True)[1]
    assert straight and many.to_dict() == few.to_dict() and many.user_ids.tolist() == few.user_ids.tolist()


def test_many_texts_made_to_collide_go_by_way_of_duckdb(write, both, numbering):
    def collide(*_):
        raise strings.CollisionError

    lists, held = make_lists(np.random.default_rng(13), texts=True)
    numbering.setattr(strings._List, "number", collide)
    assert not both(write(lists), write(held), METRICS)[0]
