"""Files: lists, truth and scored logs from Parquet and CSV into arrays, and output files that are whole or absent."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from fastrec import evaluate, evaluate_files, evaluate_scores
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError, MissingExtraError
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.inputs.users import NO_LABEL
from fastrec.runtime.outputs import temporary_folder
from support.bits import mean_bits
from support.logs import LISTS, STRANGE, TRUTH, lists
from support.read_files import evaluate_logs, evaluate_scored, read_logs

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def read(write):
    """Write lists and truth, and read them."""

    def read_both(recs, truth, *, exclude=None, **columns):
        seen = None if exclude is None else write(exclude)
        return read_logs(write(recs), write(truth), ListColumns(**columns), exclude=seen)

    return read_both


# Users and items


@pytest.mark.parametrize(
    ("recs", "truth"),
    [
        (LISTS, TRUTH),
        ({"user_id": [1, 1, 2], "item_id": [5, 6, 7]}, {"user_id": [1, 2], "item_id": [6, 7]}),
        (LISTS, {"user_id": [1, 2], "item_id": [6, 7]}),
        ({"user_id": [1, 1, 2], "item_id": [5, 6, 7]}, TRUTH),
        (LISTS.replace(",", "\t"), TRUTH.replace(",", ";") + "\n\n"),
    ],
)
def test_integers_stay_integers_in_every_kind_of_file(read, recs, truth):
    logs = read(recs, truth)
    assert lists(logs.recs) == [[5, 6], [7]]
    assert lists(logs.truth) == [[6], [7]]
    assert logs.user_ids.tolist() == [1, 2]
    assert logs.groups == {} and logs.exclude is None


@pytest.mark.parametrize("truth", ["user_id,item_id\n1,7\n", {"user_id": [1], "item_id": [7]}])
def test_text_with_zeros_is_never_matched_with_integers(read, truth):
    with pytest.raises(InputTypeError, match=r"item ids cannot be matched: .* integers, .* strings such as '007'"):
        read("user_id,item_id\n1,007\n1,012\n", truth)


def test_digits_in_a_csv_are_text_where_the_other_file_has_text(read):
    """An ISBN ends in a digit or in X; a file that happens to have only digits must still match."""
    assert lists(read("user_id,item_id\n1,1234\n1,123X\n", "user_id,item_id\n1,1234\n").truth) == [["1234"]]
    parquet = {"user_id": [1, 1], "item_id": ["123X", "1234"]}
    assert lists(read(parquet, "user_id,item_id\n1,1234\n").truth) == [["1234"]]


@pytest.mark.parametrize(("column", "other"), [("user_id", "item_id"), ("item_id", "user_id")])
def test_integers_and_text_in_parquet_do_not_mix(write, column, other):
    recs = write({column: ["1", "2"], other: [1, 2]}, "recs.parquet")
    truth = write({column: [1, 2], other: [1, 2]}, "truth.parquet")
    with pytest.raises(InputTypeError) as error:
        evaluate_logs(recs, truth)
    assert f"must be of one type on all sides, found {recs}: strings, {truth}: integers" in str(error.value)


def test_ids_up_to_the_largest_int64(read):
    largest = 2**63 - 1
    unsigned = {"user_id": pa.array([2**63 - 1], pa.uint64()), "item_id": pa.array([largest], pa.uint64())}
    logs = read(unsigned, f"user_id,item_id\n{2**63 - 1},{largest}\n")
    assert logs.user_ids.tolist() == [largest]
    assert lists(logs.recs) == lists(logs.truth) == [[largest]]


@pytest.mark.parametrize("ids", ["user_id", "item_id"])
def test_float_ids_are_an_error_that_says_what_to_do(write, ids):
    with pytest.raises(InputTypeError, match=rf"'{ids}' must hold integers or strings, found double"):
        evaluate_logs(write({"user_id": [1, 2], "item_id": [1, 2]} | {ids: [1.0, 2.0]}), write(TRUTH))
    other = "item_id" if ids == "user_id" else "user_id"
    with pytest.raises(InputTypeError, match=rf"'{ids}' holds decimal numbers such as '7.0': write ids as integers"):
        evaluate_logs(write(LISTS), write(f"{ids},{other}\n7.0,1\n8,2\n"))


@pytest.mark.parametrize(
    ("type_", "values", "found"),
    [
        (pa.date32(), [0], r"date32\[day\]: write days as strings, such as '2024-01-31'"),
        (pa.bool_(), [True], "bool"),
    ],
)
def test_other_types_of_ids_are_an_error(write, type_, values, found):
    with pytest.raises(InputTypeError, match=rf"column 'item_id' must hold integers or strings, found {found}"):
        evaluate_logs(write({"user_id": [1], "item_id": pa.array(values, type_)}), write(TRUTH))


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (pa.array([1, 2], pa.int8()), [1, 2]),
        (pa.array([1, 2], pa.uint32()), [1, 2]),
        (pa.array([1, 2], pa.decimal128(38, 0)), [1, 2]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        (pa.array([b"a", b"b"]), ["a", "b"]),
    ],
)
def test_users_in_other_types_that_are_integers_or_text(read, array, found):
    content = {"user_id": array, "item_id": [1, 2]}
    assert read(content, content).user_ids.tolist() == found


# Order


def test_the_order_of_the_file_without_rank_and_score(read):
    logs = read("user_id,item_id\n2,9\n1,8\n2,3\n1,4\n2,6\n", TRUTH)
    assert lists(logs.recs) == [[8, 4], [9, 3, 6]]
    assert logs.recs[0] == ([8, 4],)


@pytest.mark.parametrize("ranks", ["2,10,1", "2.0,1e1,-3", "007,10,1"])
def test_ranks_order_as_numbers(read, ranks):
    first, second, third = ranks.split(",")
    logs = read(f"user_id,item_id,rank,score\n1,7,{first},1\n1,8,{second},1\n1,9,{third},1\n", TRUTH)
    assert logs.recs[0] == ([9, 7, 8],)


@pytest.mark.filterwarnings("ignore:ranks and scores are in other orders")
def test_which_column_orders_the_lists(read):
    content = "user_id,item_id,rank,score,place,model\n1,7,1,2,9,0\n1,8,2,3,8,1\n"
    truth = "user_id,item_id\n1,7\n"
    assert read(content, truth).recs == [([7, 8],)]
    assert read(content, truth, rank="place").recs == [([8, 7],)]
    assert read(content, truth, rank="place", score="model").recs == [([8, 7],)]
    assert read(content, truth, score="model").recs == [([7, 8], [0.0, 1.0])]


def test_errors_keep_the_words_of_users(write):
    """The names in a message are data, so the name of a user is not taken for the number of a row."""
    recs, truth = write("user_id,item_id\nin row 3,a\nin row 3,a\n"), write("user_id,item_id\nin row 3,a\n")
    with pytest.raises(InputError, match=r"^recs of user 'in row 3': item 'a' appears twice"):
        evaluate_files(recs, truth, "mrr")


# Groups and seen items


def test_groups_from_the_truth(read):
    logs = read(LISTS, "user_id,item_id,zip\n1,5,007\n1,6,007\n3,7,12\n", by=("zip",))
    assert logs.groups["zip"].tolist() == ["007", NO_LABEL, "12"]


def test_groups_from_the_lists_and_from_both(read):
    recs = "user_id,item_id,age,shop\n1,5,30,a\n2,6,4,b\n"
    truth = "user_id,item_id,shop\n1,5,\n3,7,c\n"
    logs = read(recs, truth, by=("age", "shop"))
    assert logs.groups["shop"].tolist() == ["a", "b", "c"]
    assert logs.groups["age"].tolist() == ["30", "4", NO_LABEL]
    logs = read(recs, "user_id,item_id\n1,5\n", by=("age",))
    assert logs.groups["age"].tolist() == [30, 4]


def test_two_labels_for_a_user_are_an_error(write):
    truth = write("user_id,item_id,country\n1,5,NL\n1,6,BE\n")
    with pytest.raises(InputError, match=r"column 'country' must agree within a user, but rows of user 1 differ"):
        evaluate_files(write(LISTS), truth, "mrr", by="country")
    files = [write(f"user_id,item_id,x\n1,5,{label}\n") for label in "ab"]
    with pytest.raises(InputError, match="column 'x' must agree within a user, but recs and truth differ for user 1"):
        evaluate_files(*files, "mrr", by="x")
    users = write("user_id,x\n1,c\n")
    with pytest.raises(InputError, match=r"column 'x' must agree within a user, but user 1 has 'c' and 'a'"):
        evaluate_files(files[0], files[0], "mrr", by="x", users=users)


def test_a_grouping_that_neither_file_has_is_an_error(read):
    with pytest.raises(
        InputError, match=r"the column 'country' to group by; users=\.\.\. adds a file with a row per user"
    ):
        read(LISTS, TRUTH, by=("country",))


def test_seen_items(read):
    logs = read(LISTS, TRUTH, exclude="item_id,user_id\n5,1\n7,9\n99,2\n")
    assert lists(logs.exclude) == [[5], [99]]
    text = "user_id,item_id\na,x\na,y\nb,z\n"
    logs = read(text, text, exclude="user_id,item_id\nb,x\nb,unknown\nc,x\n")
    assert lists(logs.exclude) == [[], ["x", "unknown"]]


# Scored logs

LOG = "user_id,item_id,label,score\n2,5,0,.5\n1,6,1,.25\n2,7,1,-inf\n"


def test_several_columns_make_a_user(write):
    log = write("u,p,label,score,c\nb,10,1,.1,x\na,2,0,.2,y\nb,2,1,.3,\na,2,1,.4,y\n")
    report = evaluate_files(log, metrics=["mae", "gauc"], user=["u", "p"], by=["c", "p"], per_user=True)
    assert report.user_ids.tolist() == [("a", 2), ("b", 2), ("b", 10)]
    assert (list(report.groups["c"]), list(report.groups["p"])) == (["(none)", "x", "y"], [2, 10])
    with pytest.raises(InputError, match=r"column 'p' must agree within a user, but rows of user 'b' differ in"):
        evaluate_files(log, metrics="gauc", user="u", by="p")


def test_labels_in_text_are_booleans_or_numbers(write):
    assert evaluate_files(write("label,score\nTrue,0.5\nfalse,0.25\n"), metrics="mae")["mae"] == 0.375
    with pytest.raises(
        InputTypeError, match="column 'label' must hold numbers or booleans, not both, found '1' in row 3"
    ):
        evaluate_files(write("label,score\nTrue,0.5\nfalse,0.25\n1,0.5\n"), metrics="mae")


@pytest.mark.parametrize(
    ("content", "columns", "message", "role"),
    [
        (LOG, {"label": "clicked"}, r"no column 'clicked'; its columns are 'user_id', 'item_id'", "label"),
        (LOG, {"score": "scores"}, r"no column 'scores' \(did you mean 'score'\?\)", "score"),
        (LOG, {"users": ("user_id", "place")}, "no column 'place'", "user"),
        (LOG, {"label": "x", "ratings": True}, "no column 'x'", "target"),
        (LOG, {"item": "x"}, "no column 'x'", "item"),
        (LOG, {"by": ("x",)}, "no column 'x'", "by"),
        (LOG.replace("user_id", "u"), {"by": ("u",)}, "no column 'user_id'", "user"),
        (LOG, {"weight": "x"}, "no column 'x'", "weight"),
        ("label,score\n1,\n", {}, r"column 'score' must not be null, found null in row 1", None),
        ("label,score\n1,1\n,2\n", {}, r"column 'label' must not be null, found null in row 2", None),
        ("label,score\n1,nan\n", {}, "column 'score': scores must not be NaN, found NaN in row 1", None),
        ("label,score\ninf,1\n", {}, "column 'label': labels must be finite, found inf in row 1", None),
        ("label,score\nyes,1\n", {}, "column 'label' must hold numbers, found 'yes' in row 1", None),
        ("label,score\n1,inf\n", {"ratings": True}, "predictions must be finite, found inf in row 1", None),
        ("user_id,label,score\n,1,1\n", {}, r"column 'user_id' must not be null, found null in row 1", None),
        (
            {"label": [2**60], "score": [1]},
            {},
            r"'label': labels holds an integer past 2\*\*53.* in row 1",
            None,
        ),
        ("label,score,w\n1,0.9,0\n", {"weight": "w"}, "'w': weights must not be 0 for all rows", None),
        ({"label": [[1]], "score": [1]}, {}, r"column 'score' holds one value per row, expected lists", None),
    ],
)
def test_bad_logs(write, content, columns, message, role):
    with pytest.raises(FastrecError, match=message) as error:
        evaluate_scored(write(content), RowColumns(**columns))
    assert getattr(error.value, "role", None) == role
    assert "\n" not in str(error.value)


# Names of columns and files


@pytest.mark.filterwarnings("ignore:recs has no column 'rank'")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", STRANGE)
def test_any_column_name(read, kind, name):
    columns = {"user_id": [1, 1], name: [5, 6], "Rank": [2, 1]}
    if kind == "csv":
        header = ",".join('"' + column.replace('"', '""') + '"' for column in columns)
        columns = f"{header}\n1,5,2\n1,6,1\n"
    logs = read(columns, columns, item=name, rank="Rank")
    assert lists(logs.recs) == [[6, 5]]
    logs = read(columns, columns, item=name, gain=name, rank="Rank")
    assert logs.truth == [([5, 6], [5.0, 6.0])]


@pytest.mark.parametrize(
    "name", ["a [1]*?.csv", "[ab].csv", "[", "**", "o'brien.csv", "~x.csv", "{a,b}.csv", "no ending", "day=2.parquet"]
)
def test_any_file_name(write, name):
    for other in ("a 1bb.csv", "a.csv", "xx"):
        write("user_id,item_id\n8,8\n", other)
    path = write({"user_id": [1], "item_id": [5]} if name.endswith("parquet") else "user_id,item_id\n1,5\n", name)
    assert lists(read_logs(path, path).recs) == [[5]]


def test_relative_paths_and_the_folder_stays_as_it_was(write, tmp_path, monkeypatch):
    write(LISTS, "recs.csv")
    write(TRUTH, "~truth.csv")
    monkeypatch.chdir(tmp_path)
    assert read_logs("recs.csv", "~truth.csv", n_threads=1).user_ids.tolist() == [1, 2]
    assert sorted(os.listdir(tmp_path)) == ["recs.csv", "~truth.csv"]


# Bad input


@pytest.mark.parametrize(
    "truth", ["user_id,item_id\n", {"user_id": pa.array([], "int64"), "item_id": pa.array([], "int64")}]
)
@pytest.mark.usefixtures("each_way")
def test_a_truth_without_rows_is_warned_of_as_in_frames(write, truth):
    recs = pa.table({"user_id": [1], "item_id": [5]})
    with pytest.warns(FastrecWarning) as of_frames:
        wanted = evaluate(recs, recs.slice(0, 0), "mrr")
    with pytest.warns(FastrecWarning) as of_files:
        found = evaluate_files(write(LISTS), write(truth), "mrr")
    assert found.warnings == wanted.warnings == ["the truth has no rows: there is nothing to compare the lists with"]
    assert [str(each.message) for each in of_files] == [str(each.message) for each in of_frames]
    assert np.isnan(found["mrr"]) and np.isnan(wanted["mrr"])


@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("names", [{}, {"user": "user_id"}, {"user": "user_id", "by": "country", "sample_weight": "w"}])
@pytest.mark.usefixtures("each_way")
def test_a_log_without_rows_is_warned_of_as_in_frames(write, is_text, names):
    types = {"label": "int8", "score": "float64", **dict.fromkeys(names.values(), "int64")}
    log = pa.table({name: pa.array([], type_) for name, type_ in types.items()})
    path = write(",".join(types) + "\n" if is_text else log)
    metrics = ["log_loss", "auc", *(["gauc"] if names else [])]
    with pytest.warns(FastrecWarning) as of_frames:
        wanted = evaluate_scores(log, metrics=metrics, per_user=bool(names), **names)
    with pytest.warns(FastrecWarning) as of_files:
        found = evaluate_files(path, metrics=metrics, per_user=bool(names), **names)
    assert found.warnings == wanted.warnings == ["the input has no rows: there is nothing to evaluate"]
    assert [str(each.message) for each in of_files] == [str(each.message) for each in of_frames] == found.warnings
    assert np.isnan([*found.values(), *wanted.values()]).all()
    assert (found.data, found.users, found.groups) == (wanted.data, wanted.users, wanted.groups)


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize(
    "none",
    ["user_id,item_id\n", {"user_id": pa.nulls(0), "item_id": pa.array([], pa.float64())}],
    ids=["CSV", "Parquet"],
)
def test_lists_without_rows_have_no_users(write, none):
    path = write(none)
    with pytest.warns(FastrecWarning):
        found = evaluate_files(path, path, "mrr", per_user=True)
    assert found.user_ids.tolist() == found.per_user["mrr"].tolist() == []


@pytest.mark.parametrize(
    ("recs", "message"),
    [
        ("\nuser_id,item_id\n1,2\n", "the first line is empty"),
        ("1,2\n3,4\n", "no column 'user_id'; its columns are '1', '2'"),
        ("user_id,item_id,user_id\n1,2,3\n", "the file has the column 'user_id' 2 times"),
        ("user_id,item_id\n1,2\n3\n", "cannot be read as CSV: line 3: 2 columns expected, 1 found"),
        ("user_id,item_id\n1,2\n3,4,5\n", "cannot be read as CSV: line 3: 2 columns expected, 3 found"),
        ('user_id,item_id\n"1,2\n3,4\n', "cannot be read as CSV: line 2: a quote is not closed"),
        ("user_id,item_id\n1,\0\n", "neither Parquet, Arrow nor text in UTF-8"),
        ("user_id,item_id\n1,5\n2,\n", r"column 'item_id' must not be null, found null in row 2"),
        ("user_id,item_id,rank\n1,5,1\n1,6,\n", r"column 'rank' must not be null, found null in row 2"),
        ("user_id,item_id,rank\n1,5,first\n", "column 'rank' must hold numbers, found 'first' in row 1"),
        ("user_id,item_id,rank\n1,5,0x1\n", "column 'rank' must hold numbers, found '0x1' in row 1"),
        ("user_id,item_id,rank\n1,5,nan\n", r"column 'rank' must hold integers up to 2\*\*53, found nan in row 1"),
        (
            "user_id,item_id,score\n1,5,1\n1,6,nan\n",
            "column 'score' must not be NaN, found NaN in row 2",
        ),
        ("user_id,item_id,score\n1,5,\n", r"column 'score' must not be null, found null"),
        (
            {"user_id": [1], "item_id": [5], "score": [2**60]},
            r"past 2\*\*53.* in row 1",
        ),
        (
            {"user_id": [1], "item_id": [5], "rank": [[1]]},
            "column 'rank' holds lists per row, expected one value as in the items",
        ),
        ({"user_id": [1, 2], "item_id": pa.nulls(2)}, r"column 'item_id' must not be null, found null"),
    ],
)
def test_bad_lists(write, recs, message):
    path = write(recs)
    with pytest.raises(FastrecError, match=message) as error:
        evaluate_logs(path, write(TRUTH))
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_gains(read, write):
    with pytest.raises(InputError, match="truth gains must be finite, found inf"):
        evaluate_logs(write(LISTS), write({"user_id": [1], "item_id": [5], "gain": [np.inf]}))
    with pytest.raises(InputError, match="no column 'grade'"):
        read(LISTS, TRUTH, gain="grade")


@pytest.mark.parametrize("cut", [4, 100, -1])
def test_a_truncated_parquet_file(tmp_path, write, cut):
    whole = write({"user_id": list(range(1000)), "item_id": list(range(1000))})
    path = tmp_path / "cut.parquet"
    with open(whole, "rb") as stream:
        path.write_bytes(stream.read()[:cut])
    with pytest.raises(InputError, match=r"cut\.parquet: cannot be read as Parquet: ") as error:
        evaluate_logs(path, write(TRUTH))
    assert "\n" not in str(error.value)


def test_paths_that_cannot_be_read(tmp_path, write):
    truth = write(TRUTH)
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path, "pipe: is not a regular file"),
        (tmp_path / "pipe", "is not a regular file"),
    ):
        with pytest.raises(InputError, match=message):
            evaluate_logs(path, truth)


@pytest.mark.thorough
def test_names_in_utf8_where_the_locale_is_c(tmp_path):
    """Python then decodes the bytes of such names to characters that no encoding has."""
    folder = tmp_path / "dossié"
    (folder / "recs" / "é=ü").mkdir(parents=True)
    for name in ("recs/é=ü/é.parquet", "recs é.parquet"):
        pq.write_table(pa.table({"user_id": [1, 1], "item_id": [5, 6]}), folder / name)
    (folder / "recs é.csv").write_text("user_id,item_id\n1,5\n1,6\n")
    (folder / "truth é.csv").write_text("user_id,item_id\n1,6\n")
    (folder / "temporary é").mkdir()
    code = """
import os, sys
from fastrec import evaluate_files
from fastrec.files import job
name = lambda text: os.path.join(sys.argv[1], os.fsdecode(text.encode()))
truth = name("truth \\xe9.csv")
paths = [name(path) for path in ("recs \\xe9.csv", "recs \\xe9.parquet", "recs", "recs/*=*/*")]
print(truth.isprintable(), [evaluate_files(path, truth, "mrr")["mrr"] for path in paths])
print(ascii(list(evaluate_files(name("recs"), truth, "mrr", by="\\xe9").groups["\\xe9"])))
job.COPIES = 1 << 60
print([evaluate_files(path, truth, "mrr", temp_directory=name("temporary \\xe9"))["mrr"] for path in paths])
"""
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, env=os.environ | settings, check=False
    )
    values = str([0.5] * 4)
    assert done.stdout == f"False {values}\n['\\xfc']\n{values}\n", done.stderr


@pytest.mark.parametrize("content", [LISTS, {"user_id": [1], "item_id": [6]}], ids=["CSV", "Parquet"])
def test_the_extra_of_a_missing_package_is_named(write, monkeypatch, content):
    recs, truth = write(content), write(TRUTH)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading files needs pyarrow[^ ]*: pip install 'fastrec-eval\[cli\]'"):
        evaluate_files(recs, truth, "hit_rate")


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), ValueError("interrupt")], ids=repr)
def test_errors_of_who_watches_are_passed_on(write, error):
    def fail(done, total):
        raise error

    with pytest.raises(type(error)) as caught:
        evaluate_files(write(LISTS), write(TRUTH), "mrr", progress=fail)
    assert caught.value is error


# The function


def test_evaluate_files_is_what_arrays_give(write):
    recs = "user_id,item_id,score\nb,x,2\na,x,1\na,y,3\n"
    truth = "user_id,item_id,gain\na,x,2\nb,z,1\n"
    report = evaluate_files(write(recs), write(truth), ["ndcg", "mrr"], k=[1, 2], per_user=True)
    expected = evaluate([["y", "x"], ["x"]], [["x"], ["z"]], ["ndcg", "mrr"], k=[1, 2])
    assert mean_bits(report.estimates) == mean_bits(expected.estimates)
    assert report.user_ids.tolist() == ["a", "b"]
    log = "u,page,clicked,guess\n1,a,1,.5\n1,a,0,.25\n2,a,1,.25\n2,a,0,.75\n1,b,0,.5\n"
    report = evaluate_files(write(log), None, ["gauc", "auc"], user=["u", "page"], label="clicked", score="guess")
    expected = evaluate_scores([1, 0, 1, 0, 0], [0.5, 0.25, 0.25, 0.75, 0.5], [0, 2, 4, 5], ["gauc", "auc"])
    assert mean_bits(report.estimates) == mean_bits(expected.estimates)
    rated = write("stars,guess\n5,inf\n1,2\n".replace("inf", "4.5"))
    assert evaluate_files(rated, None, ["mae"], label="stars", score="guess")["mae"] == 0.75


@pytest.mark.usefixtures("each_way")
def test_evaluate_files_with_the_least_gain_of_a_tool(write):
    recs = write("user_id,item_id,rank\n1,7,1\n1,8,2\n2,7,1\n")
    truth = write("user_id,item_id,gain\n1,7,0\n1,8,2\n1,9,0\n2,7,-1\n")
    assert evaluate_files(recs, truth, "recall@2", like="rectools")["recall@2"] == pytest.approx(5 / 6)
    assert evaluate_files(recs, truth, "recall@2")["recall@2"] == 1.0


@pytest.mark.parametrize("ties", ["id_asc", "id_desc"])
def test_ties_by_id_take_the_usual_column_of_items(write, ties):
    log = {"user_id": [1, 1, 1], "item_id": [5, 6, 7], "label": [1, 0, 0], "score": [0.5, 0.5, 0.25]}
    wanted = evaluate_scores(pa.table(log), metrics=["mrr", "auc"], ties=ties)
    assert wanted["mrr"] == (1.0 if ties == "id_asc" else 0.5)
    assert dict(evaluate_files(write(log), None, ["mrr", "auc"], ties=ties)) == dict(wanted)
    renamed = {"sku" if name == "item_id" else name: values for name, values in log.items()}
    assert dict(evaluate_files(write(renamed), None, ["mrr", "auc"], ties=ties, item="sku")) == dict(wanted)
    says = (
        f"^ties='{ties}' needs items: pass item_ids=..., or in a frame or a file the name of their column as item=...$"
    )
    for ask in (
        lambda: evaluate_files(write(renamed), None, "mrr", ties=ties),
        lambda: evaluate_scores(pa.table(renamed), metrics="mrr", ties=ties),
    ):
        with pytest.raises(InputError, match=says):
            ask()
    assert evaluate_files(write(renamed), None, "auc", ties=ties)["auc"] == wanted["auc"]  # needs no items


def test_labels_from_a_file_of_users(write):
    users = write("user_id,plan,age\n2,paid,30\n1,free,4\n9,free,7\n")
    report = evaluate_files(write(LISTS), write(TRUTH), ["mrr"], by=["plan", "age"], users=users)
    assert {label: one["mrr"].mean for label, one in report.groups["plan"].items()} == {"free": 0.5, "paid": 1.0}
    assert list(report.groups["age"]) == [4, 30]
    log = write("user_id,label,score\n1,1,.5\n1,0,.25\n2,1,.25\n2,0,.75\n")
    report = evaluate_files(log, None, ["gauc"], by="plan", users=users)
    assert {label: one["gauc"].mean for label, one in report.groups["plan"].items()} == {"free": 1.0, "paid": 0.0}
    with pytest.raises(InputError, match=r"no column 'user_id' \(did you mean 'user'\?\)"):
        evaluate_files(log, None, ["gauc"], by="plan", users=write("user,plan\n1,a\n"))
    with pytest.raises(InputError, match=r"neither .* nor .* nor .* has the column 'country' to group by$"):
        evaluate_files(write(LISTS), write(TRUTH), ["mrr"], by="country", users=users)
    for arguments in ((write(LISTS), write(TRUTH), ["mrr"]), (log, None, ["gauc"])):
        with pytest.raises(InputError, match=r"users has labels of users, but no column .* is named: add by=\.\.\."):
            evaluate_files(*arguments, users=users)


@pytest.mark.parametrize("size", [100_000_000, "100MB", "64 MiB", "1.5g", "2TB", "70000000"])
def test_sizes_of_memory(write, size):
    assert evaluate_files(write(LISTS), write(TRUTH), ["mrr"], memory=size)["mrr"] == 0.75


@pytest.mark.parametrize("size", ["", "4 apples", "1KB", 0, -5, True, "GB", "1e9"])
def test_sizes_that_are_none(write, size):
    with pytest.raises(InputError, match="memory must be a size of at least 64 MB"):
        evaluate_files(write(LISTS), write(TRUTH), ["mrr"], memory=size)


@pytest.mark.parametrize(
    ("truth", "options", "match"),
    [
        (None, {"rank": "r"}, "rank does not apply to a log"),
        (None, {"exclude": "x"}, "exclude does not apply to a log"),
        (TRUTH, {"label": "x"}, "label does not apply to lists"),
    ],
)
def test_arguments_that_do_not_go_together(write, truth, options, match):
    with pytest.raises(InputError, match=match):
        evaluate_files(write(LISTS), truth and write(truth), ["mrr"], **options)


# Ids that do not match


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        (["u1", "u22"], ["1", "x"], "like 'u1' in .* and '1' in"),
        (["007", "012"], ["7a", "7", "12"], "leading zeros: '007' in .*, '7' in"),
        (["ab", "Cd"], ["AB", "CD"], "upper and lower case: 'Cd' in .*, 'CD' in"),
        (["a ", "b "], ["a", "b"], "spaces around them: 'a ' in .*, 'a' in"),
        (["1.0x", "5.0", "6.0"], ["5", "6", "y"], r"a trailing '\.0': '5.0' in .*, '5' in"),
        (["caf\u00e9", "\u00fc"], ["cafe\u0301", "u\u0308"], "Unicode composition: 'caf\u00e9' in .*, 'cafe\u0301' in"),
        (["'q'", "'r'"], ["q", "r"], r"quotes around them: \"'q'\" in .*, 'q' in"),
        ([5, 6], [70, 80], "like 5 in .* and 70 in"),
        (["red", "blue"], ["rot", "blau"], "like 'blue' in .* and 'blau' in"),
    ],
)
@pytest.mark.parametrize("role", ["user", "item"])
def test_why_ids_do_not_match(write, role, ours, theirs, difference):
    other = "item_id" if role == "user" else "user_id"
    recs = write({f"{role}_id": ours, other: [1] * len(ours) if role == "item" else list(range(len(ours)))})
    truth = write({f"{role}_id": theirs, other: [1] * len(theirs) if role == "item" else list(range(len(theirs)))})
    with pytest.warns(FastrecWarning) as caught:
        evaluate_files(recs, truth, ["mrr"])
    found = [str(warning.message) for warning in caught]
    assert re.search(f"{role} ids (differ in|look) {difference} ", found[-1]), found


def test_ids_that_match_are_not_said_to_differ(write):
    """The items of both files are the same, but no user's list has an item of the user's truth."""
    recs = write({"user_id": [1, 2], "item_id": [7, 8]})
    truth = write({"user_id": [1, 2], "item_id": [8, 9]})
    with pytest.warns(FastrecWarning) as caught:
        report = evaluate_files(recs, truth, ["mrr"])
    assert report.warnings == ["no truth item is in its user's list: do the ids match?"]
    assert len(caught) == 1


def rows_of(role, ids, other=7):
    users, items = (ids, [other] * len(ids)) if role == "user" else ([other] * len(ids), ids)
    return "user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in zip(users, items, strict=True))


@pytest.mark.parametrize("memory", [None, "64MB"])
@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        (
            ["99999", "1e+05", "1.2e+08"],
            ["99999", "100000", "120000000"],
            "the spelling of numbers: '1.2e+08' in recs, '120000000' in truth; 2 of the 3 ids of the truth match no",
        ),
        (["100", "7", "8"], ["100", "007", "008"], "leading zeros: '7' in recs, '007' in truth; 2 of the 3 ids "),
        (
            ["100", "7 ", "+8"],
            ["100", " 7", "8.0"],
            "the spelling of numbers: '+8' in recs, '8.0' in truth; 2 of the 3 ids of the truth match no",
        ),
    ],
)
@pytest.mark.parametrize("role", ["user", "item"])
def test_integers_that_one_file_spells_otherwise_are_named(write, role, ours, theirs, found, memory):
    """Some ids match, so that nothing else says that these do not."""
    with pytest.warns(FastrecWarning) as caught:
        report = evaluate_files(write(rows_of(role, ours)), write(rows_of(role, theirs)), ["mrr"], memory=memory)
    assert report.warnings == [str(warning.message) for warning in caught] and len(caught) == 1
    assert report.warnings[0].startswith(f"{role} ids differ in {found}")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["100", "007"], ["100", "007"]),
        (["100", "007", "7"], ["100", "007"]),  # two items
        (["100", "12.5", "1e3"], ["100", "13", "12", "1001"]),
        (["100", "1e60", "7e-1"], ["100", "1e61", "1", "0"]),
        (["100", "7"], ["100", "8"]),
    ],
)
def test_ids_with_one_spelling_are_not_said_to_differ(write, ours, theirs):
    assert evaluate_files(write(rows_of("item", ours)), write(rows_of("item", theirs)), ["mrr"]).warnings == []


@pytest.mark.parametrize("side", ["exclude", "history", "items"])
def test_items_of_every_other_file_are_compared_with_the_lists(write, side):
    lists = "user_id,item_id\n1,7\n1,8\n2,x\n"
    path = write("item_id,price\n07,1\n08,2\n" if side == "items" else "user_id,item_id\n1,07\n2,08\n")
    found = rf"^item ids differ in leading zeros: '7' in recs, '07' in {side}; 2 of the 2 ids of {side} match no list"
    with pytest.warns(FastrecWarning, match=found):
        evaluate_files(write(lists), write(lists), ["mrr"], **{side: path})


def test_a_folder_that_takes_no_temporary_files_is_named(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    wanted = f"no temporary folder can be made in {str(path)!r}: .*; name one that takes files, temp_directory=..."
    with pytest.raises(InputError, match=wanted), temporary_folder(path):
        pass


# Arguments for other functions


@pytest.mark.parametrize("name", ["recs", "truth", "users", "exclude"])
def test_data_in_place_of_a_path(name, write):
    paths = {"recs": write(LISTS), "truth": write(TRUTH)}
    frame = pa.table({f"column_{nth}": ["x" * 200] for nth in range(50)})
    with pytest.raises(InputTypeError, match=rf"^{name} must be a path, found a Table: evaluate takes data frames$"):
        evaluate_files(**paths | {name: frame})


@pytest.mark.parametrize(
    ("files", "option", "says"),
    [
        (2, {"per_usr": True}, "takes no argument 'per_usr'; did you mean 'per_user'"),
        (2, {"one_class": "nan"}, "takes no argument 'one_class' for lists"),
        (1, {"no_recs": "zero"}, "takes no argument 'no_recs' for a log, without truth; did you mean"),
    ],
)
def test_arguments_that_there_are_not(files, option, says, write):
    with pytest.raises(InputTypeError, match=f"^evaluate_files {says}"):
        evaluate_files(*[write(LISTS), write(TRUTH)][:files], metrics="mrr", **option)
