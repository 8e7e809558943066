"""Files that fit in memory: values as Python reads them, and the same bits as in parts on disk."""

import contextlib
import csv
import io
import math
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastrec import FastrecError, InputError, InputTypeError, evaluate_files
from fastrec.files import in_memory, job
from fastrec.files.columns import ListColumns
from fastrec.files.formats import text
from fastrec.files.job import FileJob
from fastrec.files.opened import open_files
from fastrec.files.reader import TableReader
from fastrec.files.resources import Resources
from fuzz.readers import change

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LISTED = ListColumns()
LISTS = "user_id,item_id,score\n1,5,0.5\n1,6,0.25\n2,7,1\n"
NAMED = "user_id,item_id,score\nann,5-a,0.5\nann,ü,0.25\nbob,x y,1\n"
METRICS = ["ndcg@3", "recall@2", "map", "mrr"]


@pytest.fixture
def both(monkeypatch):
    """Evaluate files whole and in parts on disk; return whether flat arrays were read, and the common report."""

    def evaluate_both(*args, **options):
        read = []

        def watch(*arguments):
            read.append(in_memory.read_parquet(*arguments))
            return read[-1]

        monkeypatch.setattr(job, "read_parquet", watch)
        whole = evaluate_files(*args, **options)
        monkeypatch.setattr(job, "COPIES", 1 << 60)
        parts = evaluate_files(*args, **options)
        monkeypatch.undo()
        assert whole.to_dict() == parts.to_dict()
        for name in whole.per_user if options.get("per_user") else ():
            np.testing.assert_array_equal(whole.per_user[name], parts.per_user[name])
        return bool(read) and all(table is not None for table in read), whole

    return evaluate_both


# Text


def columns_of(path, columns=LISTED, table="recs", memory=None):
    """Return {role: values} of a file."""
    found = FileJob.open({table: path}, columns, Resources(memory, None, 1))
    with found.rows() as rows:
        (batch,) = rows.batches()
        return {role: batch[table].column(name).to_pylist() for role, name in rows.readers[table].names.items()}


def by_python(path):
    """Return {role: values} of a CSV of lists; raise ValueError for one that Python's parser and casts refuse."""
    content = Path(path).read_bytes().decode("utf-8-sig")
    if "\0" in content:
        raise ValueError
    best = None
    for delimiter in ",\t;|":
        names = next(csv.reader(io.StringIO(content, newline=""), delimiter=delimiter), [])
        merit = len({"user_id", "item_id", "rank", "score"} & {*names}), len(names)
        best = max(best or ((0, 0), ","), (merit, delimiter), key=lambda own: own[0])
    try:
        header, *rows = filter(None, csv.reader(io.StringIO(content, newline=""), delimiter=best[1], strict=True))
    except csv.Error as error:
        raise ValueError from error
    found = {}
    for role, name in (("user0", "user_id"), ("item", "item_id"), ("rank", "rank"), ("score", "score")):
        if name in header and not (role == "score" and "rank" in found):
            if header.count(name) > 1 or any(len(row) != len(header) for row in rows):
                raise ValueError
            found[role] = [row[header.index(name)] for row in rows]
    if not {"user0", "item"} <= {*found} or not rows:
        raise ValueError
    for role in ("user0", "item"):
        if all(re.fullmatch("0|-?[1-9][0-9]*", text) and -(2**63) <= int(text) < 2**63 for text in found[role]):
            found[role] = list(map(int, found[role]))
    for role, kind in (("rank", int), ("score", float)):
        if role in found:
            marks = {"true": "1", "false": "0"}
            spelled = [text if role == "rank" else marks.get(text.strip(" \t").lower(), text) for text in found[role]]
            if "_" in "".join(spelled) or (role == "rank" and any(float(text) != int(float(text)) for text in spelled)):
                raise ValueError
            found[role] = [int(float(text)) if kind is int else float(text) for text in spelled]
    return found


def read_both(path):
    """Return what a file holds by fastrec and by Python, as text, which tells -0.0 and 0.0 apart; None for a fault."""
    try:
        ours = columns_of(path)
        ours = None if any(None in own or not own for own in ours.values()) else ours  # as evaluators say
    except FastrecError:
        ours = None
    with contextlib.suppress(ValueError, OverflowError):
        return repr(ours), repr(by_python(path))
    return repr(ours), None


CLEAN = {
    "quotes": 'user_id,"item_id",score\n"1","5","0.5"\n1,6,0.25\n',
    "quoted delimiters": 'user_id,item_id,score\n"a,b",",",0.5\nb,c,1\n',
    "integers": LISTS,
    "strings": NAMED,
    "without a last line break": LISTS[:-1],
    "CRLF": LISTS.replace("\n", "\r\n"),
    "CRLF without a last line break": LISTS.replace("\n", "\r\n")[:-2],
    "tabs": LISTS.replace(",", "\t"),
    "semicolons": NAMED.replace(",", ";"),
    "bars": NAMED.replace(",", "|"),
    "byte order mark": "\ufeff" + NAMED,
    "large integers": f"user_id,item_id\n{2**63 - 1},{2**53 + 1}\n{1 - 2**63},0\n",
    "negative users": "user_id,item_id\n-5,1\n5,2\n",
    "another column": "user_id,date,item_id\n1,1/2/2020,5\n1,,6\n",
    "ranks": "user_id,item_id,rank\n1,5,2\n1,6,1\n",
    "exponents": "user_id,item_id,score\n1,5,1e5\n1,6,-1.5E-7\n1,7,2e+3\n",
}


@pytest.mark.parametrize("content", CLEAN.values(), ids=CLEAN)
def test_clean_text_is_read(write, content):
    ours, theirs = read_both(write(content))
    assert ours == theirs != "None"


UNUSUAL = {
    "leading zeros of strings": "user_id,item_id\n007,a\nx,b\n",
    "leading zeros after strings": "user_id,item_id\nx,b\n007,a\n",
    "spaces in strings": "user_id,item_id\n 7,a \nx , b\n",
    "signs of strings": "user_id,item_id\n+7,-0\nx,b\n",
    "a string after integers": LISTS.replace("2,7", "x,7"),
    "an underscore": LISTS.replace("2,7", "2,1_0"),
    "a hexadecimal number": LISTS.replace("2,7", "2,0x7"),
    "another column with leading zeros": "user_id,date,item_id\n1,01/02/2020,5\n1,,6\n",
    "a blank line": LISTS.replace("1,6", "\n1,6"),
    "a ragged row": LISTS.replace("0.25", "0.25,1"),
    "a short row": LISTS.replace(",0.25", ""),
    "an empty value": LISTS.replace("1,6", ",6"),
    "an empty number": LISTS.replace("0.25", ""),
    "an empty quoted value": NAMED.replace("bob", '""'),
    "a quote in a value": NAMED.replace("bob", 'b"b'),
    "a doubled quote": NAMED.replace("bob", '"b""b"'),
    "an open quote": NAMED.replace("bob", '"bob'),
    "a line break in a value": NAMED.replace("bob", '"b\nb"'),
    "a line break in the header": LISTS.replace("user_id,", 'user_id,"x\ny",').replace("\n1,", "\n1,2,"),
    "a lone carriage return": NAMED.replace("bob", "bob\r"),
    "old Macintosh": LISTS.replace("\n", "\r"),
    "a zero byte": NAMED.replace("bob", "b\0b"),
    "no UTF-8": NAMED.encode().replace("ü".encode(), b"\xfc"),
    "a leading zero": LISTS.replace("2,7", "2,07"),
    "a plus": LISTS.replace("2,7", "+2,7"),
    "a space": LISTS.replace("2,7", "2, 7"),
    "minus zero": LISTS.replace("2,7", "-0,7"),
    "a decimal id": LISTS.replace("2,7", "2,7.0"),
    "only decimal ids": "user_id,item_id\n1.0,a\n2.0,b\n",
    "2^63": LISTS.replace("2,7", f"{2**63},7"),
    "-(2^63)": LISTS.replace("2,7", f"{-(2**63)},7"),
    "2^64 + 7": LISTS.replace("2,7", f"{2**64 + 7},7"),
    "a score of 2^53 + 1": LISTS.replace("0.25", str(2**53 + 1)),
    "a score with a space": LISTS.replace("0.25", " 0.25"),
    "a score with a point only": LISTS.replace("0.25", "."),
    "a score without a digit before the point": LISTS.replace("0.25", ".25"),
    "a score without a digit after the point": LISTS.replace("0.25", "25."),
    "a score without an exponent": LISTS.replace("0.25", "1e"),
    "an infinite score": LISTS.replace("0.25", "1e999"),
    "NaN": LISTS.replace("0.25", "nan"),
    "inf": LISTS.replace("0.25", "inf"),
    "booleans": LISTS.replace("0.25", "true"),
    "a decimal rank": "user_id,item_id,rank\n1,5,2\n1,6,1.0\n",
    "no rows": "user_id,item_id,score\n",
    "no line break": "user_id,item_id,score",
    "two columns of one name": "user_id,item_id,item_id\n1,2,3\n",
    "no column": "user,item_id\n1,2\n",
}


READ = [
    "leading zeros of strings",
    "a string after integers",
    "a hexadecimal number",
    "a leading zero",
    "a plus",
    "a space",
]
READ += ["minus zero", "2^63", "a score with a space", "a decimal rank", "inf", "a line break in a value"]


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_text_is_an_error_or_read_as_by_python(write, name):
    ours, theirs = read_both(write(UNUSUAL[name]))
    assert ours == theirs or (ours == "None" and name not in READ)


def test_several_files_are_one(write):
    for name in ("a", "b"):
        write(LISTS, f"parts/{name}.csv")
    folder = Path(write(LISTS.replace("5", "8"), "parts/c.csv")).parent
    assert columns_of(folder)["item"] == [5, 6, 7, 5, 6, 7, 8, 6, 7]
    write(LISTS.replace(",", ";"), "parts/d.csv")
    assert columns_of(folder)["item"] == [5, 6, 7, 5, 6, 7, 8, 6, 7, 5, 6, 7]
    write(LISTS.replace("2,7", "2,x"), "parts/e.csv")
    assert columns_of(folder)["item"][-4:] == ["7", "5", "6", "x"]


@pytest.mark.parametrize("ends", [('1,"5', '6",0.5'), ("1,5", "6,7,0.5"), ("1,5,", "0.5"), ("1,5,0.25,", "2,6,0.5")])
def test_faults_of_two_files_do_not_make_a_row(write, ends):
    write(f"{LISTS}{ends[0]}\n", "parts/a.csv")
    path = write(f"user_id,item_id,score\n{ends[1]}\n{LISTS.partition(chr(10))[2]}", "parts/b.csv")
    with contextlib.suppress(InputError):
        assert any(None in values for values in columns_of(Path(path).parent).values())


def floats(r, n):
    """Return the text of floats, also of ones that are hard to round."""
    from decimal import Decimal, localcontext

    def any_float():
        value = struct.unpack("d", struct.pack("Q", r.getrandbits(64)))[0]
        return value if abs(value) < 1e15 else r.random()

    def halfway():
        value = abs(any_float())
        with localcontext() as context:
            context.prec = 900
            middle = (Decimal(value) + Decimal(math.nextafter(value, math.inf))) / 2
            return format(middle * (1 + r.choice([-1, 0, 1]) * Decimal(10) ** -r.randrange(15, 60)), "e")

    kinds = [
        lambda: repr(any_float()),
        lambda: repr(r.random()),
        lambda: str(np.float32(r.random())),
        lambda: f"{r.random():.{r.randrange(1, 30)}f}",
        lambda: f"{r.uniform(-1e6, 1e6):.{r.randrange(25)}f}",
        lambda: str(r.randrange(-(10**15), 10**15)),
        lambda: f"{r.randrange(10 ** r.randrange(1, 25))}e{r.randrange(-340, -25)}",
        lambda: r.choice(["0", "-0", "0.0", "-0.0", "5e-324", "2.2250738585072011e-308", "1e-400", "9007199254740991"]),
        halfway,
    ]
    return [r.choice(kinds)() for _ in range(n)]


@pytest.mark.parametrize("n", [200, pytest.param(300_000, marks=pytest.mark.thorough)])
def test_floats_are_read_exactly(write, n):
    spelled = floats(random.Random(n), n)
    found = columns_of(write("user_id,item_id,score\n" + "".join(f"u,i{i},{x}\n" for i, x in enumerate(spelled))))
    wanted = np.array(list(map(float, spelled)))
    assert np.array_equal(np.array(found["score"]).view(np.int64), wanted.view(np.int64))


@pytest.mark.parametrize(
    "seed", [*range(150), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(150, 1500))]
)
def test_changed_files_are_errors_or_read_as_by_python(write, seed):
    r = random.Random(seed)
    ours, theirs = read_both(write(change(r, r.choice([*CLEAN.values()]).encode())))
    if ours != "None":
        assert ours == theirs


# Parquet


def make_lists(rng, *, texts=False, n=60):
    """Return lists and truth with rows in any order."""
    users, items = rng.integers(0, 7, n), rng.integers(0, 9, n)
    pairs = np.unique(np.stack([users, items], axis=1), axis=0)
    recs, truth = rng.permutation(pairs), rng.permutation(pairs)[: n // 3]

    def column(values, name):
        return pa.array([f"{name}{value:03}" for value in values.tolist()]) if texts else pa.array(values)

    ranks = np.zeros(len(recs), np.int64)
    for user in np.unique(recs[:, 0]):
        own = recs[:, 0] == user
        ranks[own] = rng.permutation(own.sum()) + 1
    lists = {"user_id": column(recs[:, 0], "u"), "item_id": column(recs[:, 1], "i"), "rank": ranks}
    held = {"user_id": column(truth[:, 0], "u"), "item_id": column(truth[:, 1], "i")}
    return lists, held | {"gain": rng.integers(1, 4, len(truth))}


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint32(), pa.large_string()])
@pytest.mark.parametrize("group", [4, 1000])
def test_usual_parquet_is_read_into_flat_arrays(write, both, kind, group):
    lists, held = make_lists(np.random.default_rng(4), texts=kind == pa.large_string())
    narrow = {name: lists[name].cast(kind) for name in ("user_id", "item_id")}
    paths = write(lists | narrow, row_group_size=group), write(held, row_group_size=group)
    is_flat, report = both(*paths, METRICS, exclude=write({n: own[:3] for n, own in narrow.items()}))
    assert is_flat and 0 < report["ndcg@3"] < 1


def test_several_parquet_files_are_one(write, both, tmp_path):
    lists, held = make_lists(np.random.default_rng(6))
    table = pa.table(lists)
    for part in range(3):
        write(table.slice(20 * part, 20), f"lists/part{part}.parquet")
    assert both(str(tmp_path / "lists"), write(held, "truth.parquet"), METRICS, per_user=True)[0]


def test_what_is_not_as_usual_is_not_read_into_flat_arrays(write, both, tmp_path):
    lists, held = make_lists(np.random.default_rng(7))
    truth = write(held)
    decimals = {**lists, "user_id": lists["user_id"].cast(pa.decimal128(30, 0))}
    assert not both(write(decimals), truth, METRICS)[0]
    first = pa.table(lists).filter(pa.array(np.asarray(lists["rank"]) == 1))
    write(first, "days/rank=1/part.parquet")  # the column may be in the name of the folder, too
    assert not both(str(tmp_path / "days"), truth, METRICS)[0]
    days = pa.array([20_000] * len(held["gain"]), pa.date32())
    assert not both(write(lists), write({**held, "day": days}), METRICS, by="day")[0]


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("item_id", pa.array([1, -2, 3]), r"item ids must not be negative, found -2"),
        ("item_id", pa.array([1, 2, 2**63], pa.uint64()), r"'item_id' must not exceed .*, found \d+ in row 3"),
        ("rank", pa.array([1, 1, 2]), r"column 'rank' holds a rank twice for one user"),
    ],
)
def test_errors_name_files_columns_and_rows(write, column, values, match):
    lists = {"user_id": pa.array([1, 1, 1]), "item_id": pa.array([1, 2, 3]), column: values}
    path = write(lists, "lists.parquet", row_group_size=2)
    with pytest.raises((InputError, InputTypeError), match=rf"lists\.parquet: column {match}|{match}"):
        evaluate_files(path, write({"user_id": [1], "item_id": [2]}), METRICS)


@pytest.mark.thorough
def test_no_damaged_bit_of_a_footer_ends_the_process(write):
    """PyArrow ends it on reading the metadata of a damaged column."""
    lists, held = make_lists(np.random.default_rng(12))
    path, truth = Path(write(lists, row_group_size=1000)), write(held)
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


def test_row_groups_that_claim_other_rows_than_their_file(tmp_path):
    """PyArrow reads as many rows as a row group claims; here each byte of the footer says less, one at a time."""
    path, columns = tmp_path / "lists.parquet", {"user_id": [0, 0, 1], "item_id": [1, 2, 3], "score": [0.5, 1.0, 2.0]}
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    pq.write_table(pa.table(columns), path, row_group_size=2, **plain)
    whole, n_told = path.read_bytes(), 0
    for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8):
        path.write_bytes(whole[:at] + bytes([whole[at] - 2 & 255]) + whole[at + 1 :])  # integers are zigzag numbers
        try:
            metadata = pq.read_metadata(path)
            claims = [metadata.row_group(nth).num_rows for nth in range(metadata.num_row_groups)]
        except (OSError, ValueError):
            continue
        if sum(claims) < metadata.num_rows:
            n_told += 1
            with pytest.raises(FastrecError, match="rows, its metadata say"):
                columns_of(path)
    assert n_told >= 2


@pytest.mark.parametrize("odd", ["07", "-0", "-07", "0x7", "0X7", " 7", "7 ", "\t7", '"07"', '" 7"', "+7", "x"])
def test_what_is_not_written_as_an_integer_is_none(write, monkeypatch, odd):
    for n_bytes in (64, 71):
        monkeypatch.setattr(text, "CHUNK_BYTES", n_bytes)
        for at in range(12):
            rows = [f"{n + 10},{n + 20},0.{n}5e-05,-0.5,10:00 00" for n in range(12)]
            for before, after in ((f"{at + 10},", f"{odd},"), (f",{at + 20},", f",{odd},")):
                changed = [row.replace(before, after, 1) if n == at else row for n, row in enumerate(rows)]
                ours, wanted = read_both(write("\n".join(["user_id,item_id,score,a,b", *changed]), "odd.csv"))
                assert ours == wanted is not None


def test_columns_in_the_names_of_folders_are_listed(write):
    for rating in (3, 4):
        write(LISTS, f"rating={rating}/a.csv")
    folder = Path(write(LISTS, "rating=5/a.csv")).parents[1]
    reader = TableReader(open_files({"truth": folder}, LISTED, "auto")["truth"])
    assert reader.listed == ("user_id", "item_id", "score", "rating")
