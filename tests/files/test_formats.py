"""Formats of files: JSON lines, TREC, many files as one, Hive partitions, and files that are damaged or change."""

import datetime as dt
import gzip
import json
import os
import re
import uuid
from pathlib import Path

import pytest

import fastrec
import fastrec.files.evaluate
from fastrec import evaluate_files
from fastrec.arguments import options_in
from fastrec.exceptions import FastrecError, InputError, InputTypeError
from fastrec.files.columns import ColumnError, ListColumns, RowColumns
from fastrec.files.formats import heads
from fastrec.files.formats.csv import CSV
from fastrec.files.formats.recognise import input_formats
from fastrec.files.formats.registry import FORMATS
from fastrec.inputs.users import NO_LABEL
from support.command_line import run_fastrec
from support.logs import LISTS, STRANGE, TRUTH, lists
from support.read_files import evaluate_logs, evaluate_scored, read_logs
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

RUN = "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2\tQ0\td3  1\t .5 tag\n"
QRELS = "q1 0 d2 1\nq2 0 d3 2\nq2 0 d4 -1\n"
WANTED = "{'user_id': 1, 'item_id': 2}"


def jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def in_zstd(content):
    return pa.Codec("zstd").compress(content, asbytes=True)


@pytest.fixture
def fails(write):
    """Return the message for lists (a path, or contents to write) that cannot be read."""

    def message_of(recs, truth=TRUTH, *, input_format="auto", columns=None, error=FastrecError):
        path = recs if isinstance(recs, str) and os.path.lexists(recs) else write(recs)
        with pytest.raises(error) as raised:
            evaluate_logs(path, write(truth), columns, input_format=input_format)
        assert "\n" not in str(raised.value)
        return str(raised.value).replace(path, "PATH")

    return message_of


# Detection of the format


@pytest.mark.parametrize(
    ("content", "name", "input_format"),
    [
        (LISTS, "recs", "auto"),
        (LISTS, "recs.csv", "csv"),
        (LISTS, "recs.jsonl", "csv"),
        ({"user_id": [1, 1, 2], "item_id": [5, 6, 7]}, "recs", "parquet"),
        ({"user_id": [1, 1, 2], "item_id": [5, 6, 7]}, "recs.jsonl", "auto"),
        *(
            (jsonl(*({"user_id": user, "item_id": item} for user, item in ((1, 5), (1, 6), (2, 7)))), name, named)
            for name, named in (("recs", "auto"), ("recs.json", "auto"), ("recs.NDJSON", "auto"), ("recs", "jsonl"))
        ),
        ("1 Q0 5 1 9 x\n1 Q0 6 2 8 x\n2 Q0 7 1 7 x\n", "recs.csv", "auto"),
        ("1 q 5 1 9 x\n1 q 6 2 8 x\n2 q 7 1 7 x\n", "recs", "trec"),
    ],
)
def test_the_format_is_known_by_the_first_bytes_or_named(write, content, name, input_format):
    path = write(content, name)
    logs = read_logs(path, path, input_format=input_format)
    assert [list(map(str, items)) for items in lists(logs.recs)] == [["5", "6"], ["7"]]
    assert list(map(str, logs.user_ids)) == ["1", "2"]


@pytest.mark.parametrize("first", ["1 Q1 5 1 9 x", "1 Q0 5 1 x x", "1 0 5", "1 0 5 x", "1,0,5,1"])
def test_what_may_be_a_csv_is_not_taken_for_trec(fails, first):
    assert "no column 'user_id'" in fails(first + "\n1 Q0 5 1 9 x\n", error=ColumnError)


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("1 4.5 005b2j4b 2", "TREC judgements"),  # as those of TREC-COVID: the column is the round
        ("1\t4.5\t005b2j4b\t2", "TREC judgements"),
        ("1 run 005b2j4b 1 9.5 x", "lines of a TREC run"),
        ("1 run 005b2j4b 1 x x", ""),
        ("1 4.5 005b2j4b relevant", ""),
        ("1 4.5 005b2j4b 2 3", ""),
    ],
)
def test_lines_that_may_be_trec_are_pointed_at_their_format(write, fails, first, words):
    found = fails(first + "\n", error=ColumnError)
    assert found.startswith("PATH: no column 'user_id'; its columns are '1")
    assert found.endswith(f"'; if these are {words}, pass input_format='trec'" if words else "user_id,item_id,score")
    if words.endswith("judgements"):
        run = write("1 Q0 005b2j4b 1 9.5 x\n")
        assert evaluate_files(run, write(first + "\n"), "mrr", input_format="trec")["mrr"] == 1.0


def test_a_header_with_the_wanted_names_is_not_taken_for_trec(write):
    text = "1\t0\t5\t2\n7\t0\t8\t9\n"
    assert read_logs(write(text), write(text), ListColumns(users=("1",), item="5")).user_ids.tolist() == [7]


def test_the_documentation_lists_the_formats():
    told = options_in(fastrec.evaluate_files)["input_format"].doc
    assert re.findall(r'``"(\w+)"``', told) == [*input_formats()]


def test_a_format_that_is_not_known(fails):
    choices = "auto, parquet, arrow, csv, jsonl, trec"
    assert fails(LISTS, input_format="tsv") == f"input_format must be one of {choices}; found 'tsv'"


@pytest.mark.parametrize(
    ("content", "name", "input_format", "message"),
    [
        (LISTS, "x.parquet", "auto", "not a Parquet file (it does not begin with PAR1)"),
        (LISTS, "x.csv", "parquet", "not a Parquet file (it does not begin with PAR1)"),
        (LISTS, "x.feather", "auto", "not an Arrow file (it does not begin with ARROW1)"),
        (LISTS, "x.avro", "auto", "fastrec does not read .avro files; convert it to Parquet, CSV or JSON lines"),
        (b"ORC\0", "x.orc", "auto", "fastrec does not read .orc files; convert it to Parquet, CSV or JSON lines"),
        (LISTS, "x.jsonl", "auto", "cannot be read as JSON lines: line 1: Expecting value"),
        ("null\n" + LISTS, "x.jsonl", "auto", "cannot be read as JSON lines: line 1: expected one object"),
        ("[1]", "x.json", "auto", f"not JSON lines: expected one object per line, such as {WANTED}"),
        ({"user_id": [1], "item_id": [5]}, "x", "csv", "neither Parquet, Arrow nor text in UTF-8: "),
        ({"user_id": [1], "item_id": [5]}, "x", "jsonl", "neither Parquet, Arrow nor text in UTF-8: "),
        ({"user_id": [1], "item_id": [5]}, "x", "trec", "neither Parquet, Arrow nor text in UTF-8: "),
        (LISTS, "x", "trec", "the first line has 1 columns; a TREC run has 6 (qid Q0 docid rank score tag), "),
        ("a b\n", "x", "trec", "the first line has 2 columns; a TREC run has 6 (qid Q0 docid rank score tag), "),
    ],
)
def test_files_that_are_not_in_the_format(write, fails, content, name, input_format, message):
    path = write(content, name)
    truth = TRUTH if input_format == "auto" else content
    assert fails(path, truth, input_format=input_format).startswith(f"PATH: {message}")


# JSON lines


def test_values_of_json_lines_keep_their_types(write):
    big = 2**53 + 1
    recs = jsonl(
        {"user_id": big, "item_id": "007", "score": 1, "x": [1]},
        {"item_id": "7", "score": 0.1, "user_id": big + 1},
        {"user_id": big, "item_id": "é\n\0\"'", "score": 1e300},
    )
    logs = read_logs(write(recs), write(jsonl({"user_id": big, "item_id": "7", "gain": True})))
    assert logs.user_ids.tolist() == [big, big + 1]
    assert logs.recs == [(["007", "é\n\0\"'"], [1.0, 1e300]), (["7"], [0.1])]
    assert logs.truth[0] == (["7"], [1.0])


def test_json_lines_of_ids_up_to_the_largest(write, fails):
    text = jsonl({"user_id": -(2**63) + 1, "item_id": 2**63 - 1}, {"user_id": 0, "item_id": 0})
    logs = read_logs(write(text), write(text))
    assert logs.user_ids.tolist() == [-(2**63) + 1, 0]
    assert lists(logs.recs) == [[2**63 - 1], [0]]
    for item in (2**63, 2**64, 10**30):
        assert "column 'item_id' holds an integer past 64 bits" in fails(jsonl({"user_id": 1, "item_id": item}))


def test_digits_in_quotes_are_text_in_json_lines(write, fails):
    recs = jsonl({"user_id": 1, "item_id": "5"})
    assert lists(read_logs(write(recs), write("user_id,item_id\n1,5\n")).recs) == [["5"]]
    assert "item ids must be of one type on all sides" in fails(recs, jsonl({"user_id": 1, "item_id": 5}))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"user_id": 1}], "no column 'item_id'; its columns are 'user_id'"),
        ([{"user_id": 1, "item_id": None}], "column 'item_id' must not be null, found null in line 1"),
        (
            [{"user_id": 1, "item_id": 2, "rank": None}, {"user_id": 1, "item_id": 3}],
            "column 'rank' must not be null, found null in line 1",
        ),
        (
            [{"user_id": 1, "item_id": 2}, {"user_id": 1, "item_id": 3, "score": 1}],
            "column 'score' must not be null, found null in line 1",
        ),
        (
            [{"user_id": 1, "item_id": 2}, {"user_id": 1, "item_id": 3}, {"user_id": 1, "item_id": "x"}],
            "column 'item_id' holds an integer in line 1, a string in line 3: expected values of one kind",
        ),
        (
            [{"user_id": 1, "item_id": 2}, {"user_id": [1], "item_id": 3}],
            "column 'user_id' holds an integer in line 1, a list in line 2: expected values of one kind",
        ),
        (
            [{"user_id": 1, "item_id": {"a": "b"}}],
            "column 'item_id' holds an object in line 1: expected plain values",
        ),
        (
            [{"user_id": 1, "item_id": 2, "score": 2**60}, {"user_id": 1, "item_id": 3, "score": 0.5}],
            "column 'score' holds a long integer in line 1, a decimal number in line 2: expected values of one kind",
        ),
        (
            [{"user_id": 1, "item_id": 2, "score": 2**60}],
            "column 'score' holds an integer past 2**53, which would be rounded",
        ),
        ([{"user_id": 1, "item_id": [None]}], "column 'item_id' must not hold nulls, found null in line 1"),
        ([{"user_id": 1, "item_id": 2, "score": float("nan")}], "column 'score' must not be NaN, found NaN in line 1"),
        ([{"user_id": 1, "item_id": True}], "column 'item_id' must hold integers or strings, found bool"),
    ],
)
def test_bad_values_in_json_lines(fails, records, message):
    assert fails(jsonl(*records)).startswith(f"PATH: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"user_id": 1, "item_id": ', "line 4: Expecting value"),
        ("[1, 2]", f"line 4: expected one object, such as {WANTED}"),
        ("7", f"line 4: expected one object, such as {WANTED}"),
        ('{"user_id": 1, "item_id": 2} {"user_id": 1, "item_id": 3}', "line 4: Extra data"),
        (
            '{"user_id": 1, "user_id": 2, "item_id": 3}',
            "line 4: duplicate key in an object with the keys 'user_id', 'user_id', 'item_id'",
        ),
        (b'{"user_id": 1, "item_id": "caf\xe9"}', "line 4: not UTF-8"),
        (rb'{"user_id": 1, "item_id": "\ud800"}', r"line 4: an unpaired surrogate"),
        (b'\xef\xbb\xbf{"user_id": 1, "item_id": 3}', "line 4: a byte order mark"),
    ],
)
def test_lines_that_are_not_json(fails, line, message):
    start = jsonl({"user_id": 1, "item_id": 5}) + " " * heads.HEAD_BYTES + "\n\n"
    line = line if isinstance(line, bytes) else line.encode()
    assert fails(start.encode() + line + b"\n").startswith(f"PATH: cannot be read as JSON lines: {message}")


def test_lines_are_counted_with_the_blank_ones(fails):
    text = "\n" + jsonl({"user_id": 1, "item_id": 5}) + " \n\n" + jsonl({"user_id": 1, "item_id": None})
    assert fails(text).endswith("column 'item_id' must not be null, found null in line 5")


def test_errors_of_a_log_of_json_lines_name_the_line(write):
    text = jsonl(*({"user_id": user, "label": user, "score": 0.5} for user in (1, 0, 2)))
    with pytest.raises(InputError, match=r"labels must be 0 or 1 for auc, found 2.* in line 4"):
        evaluate_files(write("\n" + text), metrics="auc")


# TREC


@pytest.mark.filterwarnings("ignore:ranks and scores are in other orders")
def test_the_ranks_of_a_run_order_it_only_if_they_are_named(write):
    run = "q Q0 a 1 .1 t\nq Q0 b 3 .2 t\nq Q0 c 2 .3 t\n"
    qrels = "q 0 a 1\n"
    assert read_logs(write(run), write(qrels)).recs == [(["a", "b", "c"], [0.1, 0.2, 0.3])]
    assert read_logs(write(run), write(qrels), ListColumns(rank="rank")).recs == [(["a", "c", "b"],)]


def test_names_of_columns_are_for_other_files(write):
    truth = {"session": ["q1"], "sku": ["d2"], "grade": [3], "country": ["NL"]}
    columns = ListColumns(users=("session",), item="sku", gain="grade", score="s", by=("country",))
    logs = read_logs(write(RUN), write(truth), columns)
    assert logs.truth[0] == (["d2"], [3.0]) and logs.groups["country"].tolist() == ["NL", NO_LABEL]


def test_ids_of_trec_are_texts_unless_other_files_have_integers(write):
    run, qrels = "1 Q0 10 1 2 t\n1 Q0 9 2 2 t\n", "1 0 9 1\n"
    logs = read_logs(write(run), write(qrels))
    assert logs.user_ids.tolist() == ["1"] and lists(logs.recs) == [["10", "9"]] and lists(logs.truth) == [["9"]]
    logs = read_logs(write(run), write({"user_id": [1], "item_id": [9]}))
    assert logs.user_ids.tolist() == [1] and lists(logs.recs) == [[10, 9]]


@pytest.mark.parametrize("input_format", ["auto", "trec"])
def test_words_after_the_tag_and_comments_in_trec(write, input_format):
    """A run ends with the tag, and a line that starts with # is a comment, but that of a query named so is a row."""
    run = "# my system, of today\n\n" + RUN.replace(" tag", " tag and more words").replace("q2", " # q 7 d 1 1 1\nq2")
    qrels = "#\n# judged by two\n" + QRELS.replace("q2 0 d4", "#judged in two hours 5\nq2 0 d4")
    logs = read_logs(write(run), write(qrels), input_format=input_format)
    assert logs.user_ids.tolist() == ["q1", "q2"]
    assert logs.recs == [(["d1", "d2"], [2.5, 1.5]), (["d3"], [0.5])]
    assert logs.truth == [(["d2"], [1.0]), (["d3", "d4"], [2.0, -1.0])]
    mixed = write(RUN, "runs/1"), write(run.replace("q1", "q3").replace("q2", "q4"), "runs/2")
    assert read_logs(str(Path(mixed[0]).parent), write(qrels)).user_ids.tolist() == ["q1", "q2", "q3", "q4"]


def test_the_ranks_of_a_run_are_no_labels(write):
    with pytest.raises(ColumnError, match=r"no column 'rank'; its columns are 'user_id', 'item_id', 'score'"):
        evaluate_scored(write(RUN), RowColumns(label="rank"))


def test_further_words_are_for_runs_only(fails):
    assert "line 2: 4 columns expected, 5 found" in fails(RUN, "q1 0 d2 1\nq2 0 d3 2 more\n")
    assert "line 2: 4 columns expected, 7 found" in fails(RUN, "q1 0 d2 1\nq2 0 d3 2 3 4 5\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (RUN + "\n q3 Q0 d1 1 2.5\n", "PATH: cannot be read as TREC: line 5: 6 columns expected, 5 found"),
        (RUN + "#u Q0 d2 2 0.4\n" + RUN, "PATH: cannot be read as TREC: line 4: 6 columns expected, 5 found"),
        (
            "# made by hand\n" + RUN + "q3 Q0 d1 1\n",
            "PATH: cannot be read as TREC: line 5: 6 columns expected, 4 found",
        ),
        (
            "#\n" + RUN + " # made by hand\nq3 Q0 d1 1 high t\n",
            "PATH: column 'score' must hold numbers, found 'high' in line 6",
        ),
        (RUN + "\n\nq3 Q0 d1 1 high t\n", "PATH: column 'score' must hold numbers, found 'high' in line 6"),
        (RUN + "q3 Q0 d1 1 nan t\n", "PATH: column 'score' must not be NaN, found NaN in line 4"),
        (
            QRELS,
            "PATH: no column 'score'; it has gains, as a truth: the lists come first, are the two swapped?",
        ),
    ],
)
def test_bad_runs(fails, content, message):
    assert fails(content, QRELS) == message


def test_bad_judgements(write):
    path = write(QRELS + "q3 0 d1 yes\n")
    with pytest.raises(InputTypeError, match="column 'gain' must hold numbers, found 'yes' in line 4"):
        evaluate_logs(write(RUN), path)
    with pytest.raises(ColumnError, match="no column 'label'"):
        evaluate_scored(write(RUN))


@pytest.mark.filterwarnings("ignore:ranks and scores are in other orders")
def test_signs_in_ids_of_trec(write):
    ids = ["a,b", '"', "'x'", "#c", "a;b", "\\", "é", "a\u00a0b", "\u2028"]
    run = "\r\n".join(f"q Q0 {name} {n} {n} t" for n, name in enumerate(ids))
    logs = read_logs(write(run), write({"user_id": ["q"] * len(ids), "item_id": ids}))
    assert lists(logs.recs) == lists(logs.truth) == [ids]


# Many files


def parts(write, contents, name="logs/part#"):
    """Write each content to a file; return their folder."""
    paths = [write(content, name.replace("#", str(n))) for n, content in enumerate(contents)]
    return os.path.dirname(paths[0])


MANY = {
    "parquet": ({"item_id": [5, 6], "user_id": [1, 1]}, {"user_id": [2], "x": [0], "item_id": [7]}),
    "csv": ("user_id,item_id\n1,5\n1,6\n", "user_id,item_id\n2,7\n"),
    "jsonl": (jsonl({"user_id": 1, "item_id": 5}, {"item_id": 6, "user_id": 1}), jsonl({"user_id": 2, "item_id": 7})),
    "trec": ("1 Q0 5 1 9 x\n1 Q0 6 2 8 x\n", "2 Q0 7 1 7 x\n"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("format_", "packed"), [*((name, False) for name in MANY), ("csv", True), ("jsonl", True), ("trec", True)]
)
def test_a_folder_and_a_pattern_are_read_as_one_file(write, format_, packed):
    contents = [gzip.compress(text.encode()) if packed else text for text in MANY[format_]]
    folder = parts(write, contents)
    write("", "logs/_SUCCESS")
    write("", "logs/.part0.crc")
    write("", "logs/_temporary/x")
    truth = write({"user_id": [1], "item_id": [6]})
    for path in (folder, folder + "/", f"{folder}/part*", f"{folder}/part[01]", f"{os.path.dirname(folder)}/l*"):
        logs = read_logs(path, truth)
        assert lists(logs.recs) == [[5, 6], [7]] and logs.user_ids.tolist() == [1, 2]


@pytest.mark.parametrize("is_text", [True, False])
def test_files_are_read_in_the_order_of_their_names(write, is_text):
    items = range(40)
    for n in items:
        path = write(f"user_id,item_id\n1,{n}\n" if is_text else {"user_id": [1], "item_id": [n]}, f"logs/{999 - n}")
    found = read_logs(os.path.dirname(path), write({"user_id": [1], "item_id": [1]}))
    assert lists(found.recs) == [[*reversed(items)]]


def test_a_pattern_reaches_any_depth(write, tmp_path):
    write("user_id,item_id\n1,5\n", "a/b/x.csv")
    write("user_id,item_id\n1,6\n", "a/c.csv")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    assert lists(read_logs(tmp_path / "a", write(TRUTH)).recs) == [[5, 6], []]
    os.remove(tmp_path / "a" / "loop")
    assert lists(read_logs(tmp_path / "a" / "**" / "*.csv", write(TRUTH)).recs) == [[5, 6], []]


@pytest.mark.parametrize("name", ["o'b;r[i]en*.x", 'ro\nw,"s"', "~x", "s3:x", "{a,b}"])
@pytest.mark.parametrize("format_", MANY)
def test_any_name_of_folders_and_files(write, name, format_):
    folder = parts(write, MANY[format_], f"{name}/part# {name}")
    assert lists(read_logs(folder, write({"user_id": [1], "item_id": [6]})).recs) == [[5, 6], [7]]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            [{"user_id": [1], "item_id": [5]}, {"user_id": [1], "item_id": ["5"]}],
            "FOLDER/part1: column 'item_id' holds string, but int64 in FOLDER/part0: files that are read together",
        ),
        (
            [{"user_id": [1], "item_id": [5]}, {"user_id": [1], "item": [5]}],
            "FOLDER/part1: no column 'item_id' (did you mean 'item'?); its columns are 'user_id', 'item'",
        ),
        (
            [{"user_id": [1], "item_id": [5]}, {"user_id": [1], "item_id": [5], "score": [5]}],
            "FOLDER/part0: no column 'score', which FOLDER/part1 has",
        ),
        (
            [{"user_id": [1], "item_id": [5], "rank": [5]}, {"user_id": [1], "item_id": [5], "score": [5]}],
            "FOLDER/part1: no column 'rank', which FOLDER/part0 has",
        ),
        (
            [LISTS, {"user_id": [1], "item_id": [5]}],
            "FOLDER/part1: Parquet, but FOLDER/part0 is CSV: files that are read",
        ),
        (
            [LISTS, "user_id,item_id\n1,2\n3,\n"],
            "FOLDER: column 'item_id' must not be null, found null in row 2 of FOLDER/part1",
        ),
        (
            [{"user_id": [1], "item_id": [5]}, {"user_id": [1, None], "item_id": [5, 6]}],
            "FOLDER: column 'user_id' must not be null, found null in row 2 of FOLDER/part1",
        ),
        (
            [jsonl({"user_id": 1, "item_id": 5}), jsonl({"user_id": 1, "item_id": "x"})],
            "FOLDER/part1: column 'item_id' holds string, but int64 in FOLDER/part0: files that are read together",
        ),
        (
            [jsonl({"user_id": 1, "item_id": 5}), jsonl({"user_id": 1, "item_id": 6}) + "{\n"],
            "FOLDER/part1: cannot be read as JSON lines: line 2: Expecting property name",
        ),
        ([RUN, QRELS], "FOLDER/part1: no column 'score'; it has gains, as a truth"),
        ([RUN, RUN + "q Q0\n"], "FOLDER/part1: cannot be read as TREC: line 4: 6 columns expected, 2 found"),
        (
            [RUN, RUN + "q Q0 d 1 x t\n"],
            "FOLDER: column 'score' must hold numbers, found 'x' in line 4 of FOLDER/part1",
        ),
    ],
)
def test_files_that_do_not_belong_together(write, fails, contents, message):
    folder = parts(write, contents)
    assert fails(folder).replace("PATH", "FOLDER").startswith(message)


@pytest.mark.parametrize(
    "other",
    ["item_id,user_id\n9,2\n", "x,user_id,item_id\n1,2,9\n", "user_id;item_id\n2;9\n", b"user_id,item_id\n2,9\n"],
)
def test_csv_files_of_other_forms_are_read_together_by_the_names_of_their_columns(write, other):
    other = gzip.compress(other) if isinstance(other, bytes) else other
    folder = parts(write, ["user_id,item_id\n1,5\n1,6\n", other, "user_id,item_id\n2,7\n"])
    logs = read_logs(folder, write({"user_id": [1], "item_id": [6]}))
    assert logs.user_ids.tolist() == [1, 2] and lists(logs.recs) == [[5, 6], [9, 7]]


def test_rows_of_a_log_are_counted_in_each_file(write):
    folder = parts(write, ["user_id,label,score\n2,1,1\n1,0,1\n", "user_id,label,score\n3,1,1\n1,2,1\n"])
    with pytest.raises(InputError, match=f"labels must be 0 or 1 for auc, found 2.* in row 2 of {folder}/part1"):
        evaluate_files(folder, metrics="auc")


def test_folders_and_patterns_without_files(write, fails, tmp_path):
    (tmp_path / "empty" / "in").mkdir(parents=True)
    assert fails(str(tmp_path / "empty")) == "PATH: no files in this folder"
    with pytest.raises(InputError, match=r"x\*\.csv: no such file, and no file matches this pattern"):
        evaluate_logs(tmp_path / "x*.csv", write(TRUTH))
    with pytest.raises(InputError, match=r"x\.csv: no such file$"):
        evaluate_logs(tmp_path / "x.csv", write(TRUTH))


# Types


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this PyArrow has no type of UUIDs")
@pytest.mark.usefixtures("each_way")
def test_uuids_are_strings(tmp_path):
    users = [uuid.UUID(int=n) for n in (1, 2)]
    table = pa.table({"user_id": pa.array([user.bytes for user in users], pa.uuid()), "item_id": [5, 6]})
    pq.write_table(table, tmp_path / "recs.parquet")
    (tmp_path / "truth.csv").write_text("user_id,item_id\n" + "".join(f"{user},5\n" for user in users))
    report = evaluate_files(tmp_path / "recs.parquet", tmp_path / "truth.csv", "mrr", per_user=True)
    assert report["mrr"] == 0.5 and report.user_ids.tolist() == list(map(str, users))


@pytest.mark.usefixtures("each_way")
def test_types_of_parts_that_hold_all_values(tmp_path):
    """The numbers are those of one frame; integers that a double would round are an error."""
    parts = [
        {"user_id": pa.array([1, 1], pa.int32()), "label": pa.array([1, 0], pa.int8()), "score": [0.9, 0.2]},
        {"user_id": pa.array([2, 2], pa.uint8()), "label": [1.0, 0.0], "score": pa.array([0.25, 0.5], pa.float32())},
        {"user_id": pa.nulls(0), "label": pa.nulls(0), "score": pa.nulls(0)},
    ]
    (tmp_path / "log").mkdir()
    for nth, part in enumerate(parts):
        pq.write_table(pa.table(part), tmp_path / "log" / f"{nth}.parquet")
    assert dict(evaluate_files(tmp_path / "log", metrics=["auc", "gauc"])) == {"auc": 0.75, "gauc": 0.5}
    pq.write_table(pa.table({**parts[0], "label": [2**60, 1]}), tmp_path / "log" / "3.parquet")
    with pytest.raises(FastrecError, match="column 'label' cannot be read as double in all files"):
        evaluate_files(tmp_path / "log", metrics="gauc")


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_columns_of_lists_are_those_of_frames(tmp_path, form):
    lists = pa.table({"user_id": ["a", "b"], "item_id": [[1, 2], [3, 4]], "score": [[0.25, 0.5], [0.75, 0.5]]})
    truth = pa.table({"user_id": ["b", "a"], "item_id": [[4], [2]]})
    wanted = fastrec.evaluate(lists, truth, ["mrr", "ndcg@2"])
    paths = write_table(lists, tmp_path / f"recs.{form}"), write_table(truth, tmp_path / f"truth.{form}")
    assert evaluate_files(*paths, ["mrr", "ndcg@2"]).estimates == wanted.estimates


def test_extension_types_stored_as_integers_are_an_error(tmp_path):
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame({"user_id": [1, 1], "label": [1, 0], "score": [0.5, 0.25]})
    log["month"] = pandas.period_range("2024-01", periods=2, freq="M")
    log["spent"] = pandas.to_timedelta([1, 2], unit="s")
    log.to_parquet(tmp_path / "log.parquet")
    assert evaluate_files(tmp_path / "log.parquet", metrics="auc")["auc"] == 1.0
    with pytest.raises(InputTypeError, match=r"column 'month' holds pandas\.period, an extension type stored as int64"):
        evaluate_files(tmp_path / "log.parquet", metrics="auc", row_by="month")
    with pytest.raises(InputTypeError, match="column 'spent' must hold numbers, found duration"):
        evaluate_files(tmp_path / "log.parquet", metrics="mae", label="label", score="spent")


# Hive partitions


@pytest.mark.thorough
@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_partitions_are_columns(write, format_):
    contents = {"parquet": {"item_id": [5]}, "csv": "item_id\n5\n", "jsonl": jsonl({"item_id": 5})}
    folders = ["zip=007/user_id=1", "zip=8%2F9/user_id=2", "zip=__HIVE_DEFAULT_PARTITION__/user_id=3"]
    for folder in folders:
        path = write(contents[format_], f"logs/zip=no/{folder}/x")
    base = path.removesuffix(f"/{folders[-1]}/x")
    for name in (base, f"{base}/*", f"{base}/**/x"):
        logs = read_logs(name, write({"user_id": [1, 2, 3], "item_id": [5, 6, 7]}), ListColumns(by=("zip",)))
        assert logs.user_ids.tolist() == [1, 2, 3] and lists(logs.recs) == [[5], [5], [5]]
        assert logs.groups["zip"].tolist() == ["007", "8/9", NO_LABEL]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name.replace("/", "") for name in STRANGE] + ["a.b(c", "x y"])
def test_any_name_of_a_partition(write, name):
    write({"user_id": [1], "item_id": [5]}, f"logs/{name}=[x]*'/part")
    folder = write({"user_id": [2], "item_id": [5]}, f"logs/{name}=é=\n/part").split(f"/{name}")[0]
    assert read_logs(folder, write(TRUTH), ListColumns(by=(name,))).groups[name].tolist() == ["[x]*'", "é=\n"]


def test_text_of_partitions_is_not_a_number(write, fails):
    write({"item_id": [5]}, "logs/user_id=01/x")
    folder = os.path.dirname(os.path.dirname(write({"item_id": [6]}, "logs/user_id=1/x")))
    assert read_logs(folder, write("user_id,item_id\n01,5\n")).user_ids.tolist() == ["01", "1"]
    message = "user ids must be of one type on all sides, found .*logs: strings, .*: integers"
    with pytest.raises(InputTypeError, match=message):
        evaluate_logs(folder, write({"user_id": [1], "item_id": [6]}))


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl", "arrow"])
def test_a_column_in_the_file_is_that_of_its_folder(tmp_path, fails, write, format_):
    """Programs that write one file per folder may keep the column in it."""

    def save_days(days, name):
        for n, (folder, day) in enumerate(days.items(), 1):
            rows = pa.table({"user_id": [n], "item_id": [5], "rank": [1], "day": [day]})
            write_table(rows, tmp_path / name / f"day={folder}" / f"part.{format_}")
        return str(tmp_path / name)

    columns = ListColumns(by=("day",))
    days = {"2024-01-31": dt.date(2024, 1, 31), "2024-02-01": dt.date(2024, 2, 1)}
    for name, alike, labels in (
        ("numbers", {"04": 4, "5": 5}, [4, 5]),
        ("dates", days, ["2024-01-31", "2024-02-01"]),
        ("texts", {"a": "a", "b%20c": "b c"}, ["a", "b c"]),
    ):
        folder = save_days(alike, name)
        found = read_logs(folder, write(TRUTH), columns).groups["day"].tolist()
        assert [str(label) if isinstance(label, dt.date) else label for label in found] == labels
    folder = save_days({"5": 5, "6": 7}, "apart")
    wanted = f"PATH/day=6/part.{format_}: column 'day' holds 7, but the name of its folder says '6'"
    assert fails(folder, columns=columns).replace("'7'", "7") == wanted
    assert read_logs(folder, write(TRUTH)).user_ids.tolist() == [1, 2]  # nothing reads the column


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_partitions_may_hold_the_usual_columns(tmp_path, form):
    recs, truth = tmp_path / "recs", tmp_path / "truth"
    for rank in (1, 2, 3):
        rows = pa.table({"user_id": range(40), "item_id": [(user + rank) % 7 for user in range(40)]})
        write_table(rows, recs / f"r%61nk={rank}" / f"part.{form}")
        rows = pa.table({"user_id": range(40), "item_id": [user % 3 + rank for user in range(40)]})
        write_table(rows.append_column("plan", pa.array(["free"] * 40)), truth / f"gain={rank}" / f"part.{form}")
    found, named, grouped = (
        evaluate_files(recs, truth, ["ndcg@5"], **options)
        for options in ({}, {"rank": "rank", "gain": "gain"}, {"by": "plan"})
    )
    assert found["ndcg@5"] == named["ndcg@5"] == grouped["ndcg@5"]
    log = tmp_path / "log"
    for user in (1, 2):
        rows = pa.table({"label": [0, 1, 1], "score": [0.5, 0.25 * user, 0.75]})
        write_table(rows, log / f"user_id={user}" / f"part.{form}")
    assert evaluate_files(log, metrics=["log_loss"]).users["total"] == 2


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_folder_above_a_link_is_that_of_its_target(tmp_path, monkeypatch, form):
    for folder, item in (("a", 1), ("b", 2)):
        write_table(pa.table({"user_id": [1], "item_id": [item]}), tmp_path / folder / "in" / f"part.{form}")
        (tmp_path / folder / "in" / "deep").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "b" / "in" / "deep")
    monkeypatch.chdir(tmp_path)
    for path in ("a/link/..", f"a/link/../part.{form}", tmp_path / "a" / "link" / ".." / f"part.{form}"):
        assert evaluate_files(path, f"b/in/part.{form}", ["hit_rate"])["hit_rate"] == 1


def test_folders_of_a_file_that_is_named_are_no_partitions(write):
    path = write({"user_id": [1], "item_id": [5]}, "score=high/x")
    for found in (path, os.path.dirname(path) + "/*"):
        assert read_logs(found, write(TRUTH)).recs[0] == ([5],)


@pytest.mark.filterwarnings("ignore:.* lie in several folders")
def test_a_file_outside_of_the_partitions(write, fails):
    write({"user_id": [1], "item_id": [5]}, "logs/day=4/x")
    folder = os.path.dirname(write({"user_id": [1], "item_id": [6]}, "logs/x"))
    assert fails(folder, columns=ListColumns(by=("day",))) == "PATH/x: no column 'day', which PATH/day=4/x has"
    assert lists(read_logs(folder, write(TRUTH)).recs) == [[5, 6], []]


# Files that are damaged, or change


@pytest.mark.thorough(except_for="-csv$")
@pytest.mark.parametrize("format_", ["csv", "jsonl", "trec"])
@pytest.mark.parametrize("damage", ["cut", "checksum", "bits", "end", "zstd cut", "zstd bits", "zstd end"])
def test_damaged_packed_files(write, fails, format_, damage):
    line = {"csv": "1,{}\n", "jsonl": '{{"user_id": 1, "item_id": {}}}\n', "trec": "1 Q0 {} 1 9 t\n"}[format_]
    text = ("user_id,item_id\n" if format_ == "csv" else "") + "".join(map(line.format, range(200_000)))
    whole = gzip.compress(text.encode(), 0 if damage == "bits" else 6)
    half, zstd = len(whole) // 2, in_zstd(text.encode())
    content = {
        "cut": whole[:-100],
        "checksum": whole[:-8] + b"abcd" + whole[-4:],
        "bits": whole[:half] + whole[half:].replace(b"7", b"8", 1),
        "end": whole + b"more",
        "zstd cut": zstd[:-5],
        "zstd bits": zstd[:6] + b"\xff" * 9 + zstd[15:],
        "zstd end": zstd + b"more",
    }[damage]
    assert fails(content).startswith(f"PATH: damaged {'zstd' if 'zstd' in damage else 'gzip'} file: ")


def test_the_size_of_text_that_is_packed_a_hundredfold_is_not_underestimated(write):
    part = b"1,1,1,0.5\n" * 200_000
    path = write(gzip.compress(part) * 4)
    assert 1.5e6 < CSV.size([path], [], {"a", "b"}).values < 2e6 and os.path.getsize(path) < 4 * len(part) / 100


@pytest.mark.parametrize("pack", [gzip.compress, in_zstd])
def test_packed_files_in_parts_are_whole(write, pack):
    content = pack(LISTS.encode()) + pack(b"9,9\n")
    assert lists(read_logs(write(content), write(TRUTH)).recs) == [[5, 6], [7], [9]]


def test_a_file_packed_with_zstd_beside_one_with_gzip(write):
    lines = [jsonl({"user_id": 1, "item_id": item}).encode() for item in (5, 6)]
    folder = parts(write, [in_zstd(lines[0]), gzip.compress(lines[1])], "logs/part#.jsonl")
    assert lists(read_logs(folder, write(TRUTH)).recs)[0] == [5, 6]


@pytest.mark.parametrize("change", ["grow", "replace", "remove"])
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_file_that_changes_while_it_is_read(write, monkeypatch, change, format_):
    path = Path(write(MANY[format_][0]))
    read = type(FORMATS[format_]).head

    def read_and_change(self, changed):
        head = read(self, changed)
        if changed == str(path):
            if change == "grow":
                with path.open("ab") as stream:
                    stream.write(b"\n")
            else:
                os.remove(path)
            if change == "replace":
                write(MANY[format_][0], path.name)
        return head

    monkeypatch.setattr(type(FORMATS[format_]), "head", read_and_change)
    with pytest.raises(InputError, match=f"^{path}: changed while it was read; evaluate it when it is complete$"):
        evaluate_logs(path, write(TRUTH))


def test_a_file_that_changes_between_two_reads(write, monkeypatch):
    path = Path(write(LISTS, "recs"))
    monkeypatch.setattr("fastrec.files.job.check_groupings", lambda *_: path.write_text(LISTS + "9,9\n"))
    with pytest.raises(InputError, match=f"^{path}: changed while it was read; evaluate it when it is complete$"):
        evaluate_files(path, write(TRUTH), "mrr")


# The same values


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize(
    "run", ["q1\td1\t1\nq1\td2\t2\nq2\td3\t1\n", "q1 Q0 d1 9 2.5\nq1 Q0 d2 2 1.5\nq2 Q0 d3 1 .5\n"]
)
def test_runs_of_three_and_five_columns(write, run):
    """Ranks order the lists of three columns, and scores those of five."""
    truth = write("q1 0 d2 1\nq2 0 d3 1\n")
    assert evaluate_files(write(run), truth, "mrr", input_format="trec")["mrr"] == 0.75


def test_labels_of_users_beside_trec(write):
    plans = write("user_id,plan\nq1,a\nq2,b\n")
    report = evaluate_files(write(RUN), write(QRELS), "mrr", by="plan", users=plans, input_format="trec")
    assert report.groups["plan"]["a"]["mrr"].mean == 0.5


# The command line


def test_nothing_is_written_over_a_file_of_a_folder(write, tmp_path, monkeypatch):
    write(LISTS, "logs/a.csv")
    write(TRUTH, "truth.csv")
    monkeypatch.chdir(tmp_path)
    for path in ("logs", "logs/*"):
        found = run_fastrec("evaluate", path, "truth.csv", "-m", "mrr", "-o", "logs/../logs/a.csv")
        assert found.exit_code == 2 and "logs/../logs/a.csv would overwrite logs/a.csv" in found.stderr
    assert (tmp_path / "logs" / "a.csv").read_text() == LISTS
