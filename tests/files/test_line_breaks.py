"""Line breaks in quotes, line ends of every kind, files that give no row: no row is ever lost."""

import csv
import gzip
import io
import itertools
import json
import random
import re

import pytest

from fastrec import InputError, evaluate_files
from fastrec.files.formats import text
from fastrec.files.formats.registry import FORMATS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BREAKS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}
PAIRS = list(itertools.product(BREAKS, BREAKS))
ROWS = [(user, item) for user in range(3) for item in range(5)]
TRUTH = [(user, item) for user in range(3) for item in (3, 4)]
SEEN = [(user, item) for user in range(3) for item in range(3)]


@pytest.fixture
def write(tmp_path):
    """Write a CSV with line breaks in a quoted header, and quoted values; return the path as a string."""

    def write_file(name, columns, rows, end="\n", inside=" ", packed=False):
        lines = [[columns[0], f'"a{inside}b"', *columns[1:]], *([row[0], f'"x{inside}y"', *row[1:]] for row in rows)]
        data = "".join(",".join(map(str, line)) + end for line in lines).encode()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
        return str(tmp_path / name)

    return write_file


@pytest.mark.usefixtures("each_way")
@pytest.mark.thorough(except_for="^in (memory|parts)-(LF-CR-False|CRLF-CRLF-True)$")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("end", "inside"), PAIRS)
def test_a_line_break_in_a_header_loses_no_rows(write, end, inside, packed):
    kind = {"end": BREAKS[end], "inside": BREAKS[inside], "packed": packed}
    ids = ["user_id", "item_id"]
    recs, truth, seen = (write(*side, **kind) for side in (("r", ids, ROWS), ("t", ids, TRUTH), ("s", ids, SEEN)))
    users = write("u", ["user_id", "seg"], [(0, "a"), (1, "b"), (2, "b")], **kind)
    log = write("l", ["user_id", "label", "score"], [(0, 1, 0.5), (0, 0, 0.25), (1, 1, 0.5), (1, 0, 0.75)], **kind)
    report = evaluate_files(recs, truth, "recall@2", exclude=seen, users=users, by="seg")
    assert (report["recall@2"], report.data["excluded_items"]) == (1.0, 9)
    assert {label: group["recall@2"].users for label, group in report.groups["seg"].items()} == {"a": 1, "b": 2}
    assert evaluate_files(log, metrics="gauc")["gauc"] == 0.5


def test_line_breaks_in_the_headers_of_several_files(write, tmp_path):
    for nth, end in enumerate(BREAKS.values()):
        write(f"recs/{nth}.csv", ["user_id", "item_id"], ROWS[5 * nth : 5 * nth + 5], end, "\r\n")
    truth = write("truth.csv", ["user_id", "item_id"], TRUTH)
    assert evaluate_files(tmp_path / "recs", truth, "recall@5")["recall@5"] == 1.0
    write("recs/1.csv", ["user_id", "item_id"], [(1, 5), ("", 6)], "\n", "\r\n")
    with pytest.raises(InputError, match=r"must not be null, found null in row 2 of .*1\.csv"):
        evaluate_files(tmp_path / "recs", truth, "recall@5")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('1,x,2\n1,"y\ny",3\n\n4,5\n', "line 7: 3 columns expected, 2 found"),
        ('1,"x\r\r",2\n1,"y,3\n', "line 6: a quote is not closed"),
        ('1,"x"y,2\n', "line 3: ',' expected after '\"'"),
        ("1,x,2\n" * 200_000 + "1,x,\udcff\n", "line 200003: not UTF-8"),
    ],
)
def test_what_is_wrong_below_a_header_with_a_line_break(tmp_path, rows, message):
    path = tmp_path / "recs.csv"
    path.write_bytes(('user_id,"a\nb",item_id\n' + rows).encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=re.escape(f"cannot be read as CSV: {message}")):
        evaluate_files(path, path, "mrr")


def losing_batches(batches):
    """Read no rows from a file called lost."""
    return lambda self, path, wanted: iter(()) if path.endswith("lost") else batches(self, path, wanted)


JUNK = ["plain", "a,b", 'x"y', "m\nl", "1,2,3\n4,5,6\n", '"', "\n", '""', '"\n"', "5,junk,7\n", '\n7,"', '",1\n2,"x']


def table_of_junk(end, inside, n):
    """Return a CSV with quoted values that look like rows."""
    rng, text = random.Random(1), io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["user_id", "junk", "item_id"])
    for user in range(n):
        for nth in range(3):
            junk = rng.choice(JUNK) * rng.randint(1, 12)
            writer.writerow([user, junk.replace("\n", inside), (user * 3 + nth) % 1000])
    return text.getvalue().encode()


@pytest.mark.thorough(except_for="^(LF-CRLF|CR-LF|CRLF-CR)$")
@pytest.mark.parametrize(("end", "inside"), PAIRS)
def test_quoted_line_breaks_where_pieces_of_a_file_are_read_at_once(tmp_path, monkeypatch, end, inside):
    """Set small pieces; they have 8 MB."""
    monkeypatch.setattr(text, "CHUNK_BYTES", 16_000)
    (tmp_path / "recs.csv").write_bytes(table_of_junk(BREAKS[end], BREAKS[inside], 2000))
    truth = tmp_path / "truth.csv"
    truth.write_text("user_id,item_id\n" + "".join(f"{user},{(user * 3 + 1) % 1000}\n" for user in range(2000)))
    for n_threads in (1, 2):
        assert evaluate_files(tmp_path / "recs.csv", truth, "recall@2", n_threads=n_threads)["recall@2"] == 1.0


CONTENTS = {
    "csv": "user_id,item_id,label,score\n1,2,1,0.5\n",
    "jsonl": json.dumps({"user_id": 1, "item_id": 2, "label": 1, "score": 0.5}) + "\n",
    "trec": "1 Q0 2 1 0.5 tag\n",
}
SIDES = ["recs", "truth", "exclude", "users", "log"]
LOST = [*itertools.product(["csv", "jsonl"], SIDES, [False, True])]
LOST += itertools.product(["trec"], SIDES[:3], [False, True])


@pytest.mark.thorough(except_for="recs-False|csv-log-True")
@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize(("format_", "side", "packed"), LOST)
def test_a_file_of_which_no_row_is_read_is_an_error(tmp_path, monkeypatch, format_, side, packed):
    """This holds for any reader that loses rows: here one that reads nothing of the files called lost."""
    data = CONTENTS[format_].encode()
    for name in ("good", "lost"):
        (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    kind = type(FORMATS[format_])
    monkeypatch.setattr(kind, "batches", losing_batches(kind.batches))

    def evaluate(path):
        if side == "log":
            return evaluate_files(path, metrics="log_loss")
        sides = dict.fromkeys(("recs", "truth"), tmp_path / "good") | {side: path}
        by = "label" if side == "users" else None
        return evaluate_files(sides.pop("recs"), sides.pop("truth"), "mrr", by=by, **sides)

    evaluate(tmp_path / "good")
    with pytest.raises(InputError, match="lost: no row was read, but the file has more than a header"):
        evaluate(tmp_path / "lost")


@pytest.mark.parametrize("packed", [False, True])
def test_a_value_that_is_too_long_for_the_parser_says_what_to_do(write, packed):
    """The limit is that of the whole process and stays unchanged."""
    limit, value = csv.field_size_limit(), "z" * 200_000
    path = write("log.csv", ["label", "score"], [(0, 1, value), (1, 2, value)], inside="\r\n", packed=packed)
    says = r"line 3: a value has more than 131,072 characters.*write the rows as Parquet, or call csv\.field_size_limit"
    with pytest.raises(InputError, match=says):
        evaluate_files(path, metrics="auc")
    assert csv.field_size_limit() == limit
    try:
        csv.field_size_limit(len(value))
        with pytest.raises(InputError, match="3 columns expected, 4 found"):
            evaluate_files(path, metrics="auc")
        path = write("log.csv", ["label", "score", "text"], [(0, 1, value), (1, 2, value)], inside="\r\n")
        assert evaluate_files(path, metrics="auc")["auc"] == 1.0
    finally:
        csv.field_size_limit(limit)


@pytest.mark.thorough
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_a_header_that_is_one_long_field_by_other_delimiters(tmp_path, delimiter):
    names = ["label", "score", *(f"feature number {nth}" for nth in range(8_000))]
    lines = [names, ["0", "1", *["0"] * 8_000], ["1", "2", *["0"] * 8_000]]
    (tmp_path / "log.csv").write_text("".join(delimiter.join(line) + "\n" for line in lines))
    assert evaluate_files(tmp_path / "log.csv", metrics="auc")["auc"] == 1.0


@pytest.mark.parametrize("text", ["user_id,item_id\n", "user_id,item_id", "user_id,item_id\r\n\r\n"])
def test_a_header_alone_excludes_nothing(tmp_path, text):
    (tmp_path / "seen.csv").write_bytes(text.encode())
    (tmp_path / "recs.csv").write_text("user_id,item_id\n1,2\n")
    report = evaluate_files(tmp_path / "recs.csv", tmp_path / "recs.csv", "mrr", exclude=tmp_path / "seen.csv")
    assert report.data["excluded_items"] == 0
