"""Text read straight into memory: the same as by DuckDB, which reads the files that need it."""

import gzip
import math
import random
import struct

import numpy as np
import pytest

from fastrec import FastrecError, evaluate_files
from fastrec.files import job, text
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.files.job import Data, FileJob, batches, roles_of_lists, select_sql
from fastrec.files.opened import open_files
from fastrec.files.resources import Resources
from fuzz.readers import change

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

LISTED = ListColumns()
LISTS = "user_id,item_id,score\n1,5,0.5\n1,6,0.25\n2,7,1\n"
NAMED = "user_id,item_id,score\nann,5-a,0.5\nann,ü,0.25\nbob,x y,1\n"


@pytest.fixture(autouse=True, params=["few", "many"])
def of_any_size(monkeypatch, request):
    """Read small files straight, too, with strings kept or numbered in the threads that read them."""
    monkeypatch.setattr(text, "MIN_BYTES", 0)
    monkeypatch.setattr(text, "MANY_STRINGS", 0 if request.param == "many" else 1 << 60)


@pytest.fixture
def write(tmp_path):
    """Write a file; return its path."""

    def write_file(content, name="recs.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def straight(path, columns=LISTED, table="recs", n_threads=1):
    """Return {role: values} of a file that is read straight; None if DuckDB must read it."""
    found = text.find_text(open_files({table: path}, columns, "auto"))
    tables = found and text.read_text(found, n_threads, 1 << 40)
    return tables and {role: tables[table].column(role).to_pylist() for role in tables[table].column_names}


def by_duckdb(path, columns=LISTED):
    """Return {role: values} of a file that DuckDB reads."""
    side = FileJob(
        open_files({"recs": path}, columns, "auto"), columns, Resources(None, None, 1), lambda *_: None, None
    )
    with side.database(roles_of_lists) as loaded:
        select = select_sql(loaded.files["recs"], ("rank", "score"), loaded.ids, loaded.labels)
        (found,) = batches(Data(loaded, {"recs": select}, side.watch), ("user",))
        return {role: found["recs"].column(role).to_pylist() for role in found["recs"].column_names}


def read_both(path):
    """Return what is read straight, None if that is left to DuckDB, and what DuckDB then reads; as text, with all bits.

    Text tells -0.0 and 0.0 apart.
    """
    try:
        ours = straight(path)
    except FastrecError:
        ours = None
    return (None, None) if ours is None else (repr(ours), repr(by_duckdb(path)))


CLEAN = {
    "integers": LISTS,
    "strings": NAMED,
    "without a last line break": LISTS[:-1],
    "CRLF": LISTS.replace("\n", "\r\n"),
    "CRLF without a last line break": LISTS.replace("\n", "\r\n")[:-2],
    "tabs": LISTS.replace(",", "\t"),
    "semicolons": NAMED.replace(",", ";"),
    "bars": NAMED.replace(",", "|"),
    "byte order mark": "\ufeff" + NAMED,
    "quotes": 'user_id,"item_id",score\n"1","5","0.5"\n1,6,0.25\n',
    "quoted delimiters": 'user_id,item_id,score\n"a,b",",",0.5\nb,c,1\n',
    "leading zeros of strings": "user_id,item_id\n007,a\nx,b\n",
    "spaces in strings": "user_id,item_id\n 7,a \nx , b\n",
    "signs of strings": "user_id,item_id\n+7,-0\nx,b\n",
    "large integers": f"user_id,item_id\n{2**63 - 1},{2**53 + 1}\n{1 - 2**63},0\n",
    "negative users": "user_id,item_id\n-5,1\n5,2\n",
    "another column": "user_id,date,item_id\n1,1/2/2020,5\n1,,6\n",
    "ranks": "user_id,item_id,rank\n1,5,2\n1,6,1\n",
    "exponents": "user_id,item_id,score\n1,5,1e5\n1,6,-1.5E-7\n1,7,2e+3\n",
    "an underscore": LISTS.replace("2,7", "2,1_0"),
    "a string after integers": LISTS.replace("2,7", "x,7"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("content", CLEAN.values(), ids=CLEAN)
def test_clean_files_are_read_straight(write, content, packed):
    data = content.encode()
    ours, theirs = read_both(write(gzip.compress(data) if packed else data))
    assert ours is not None and ours == theirs


UNUSUAL = {
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
    "a negative item": LISTS.replace("2,7", "2,-7"),
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


@pytest.mark.parametrize("content", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_files_are_read_as_by_duckdb_or_left_to_it(write, content):
    path = write(content)
    ours, theirs = read_both(path)
    assert ours == theirs


LEFT = [
    "a hexadecimal number",
    "a leading zero",
    "a plus",
    "a space",
    "minus zero",
    "a decimal id",
    "2^63",
    "NaN",
    "inf",
    "a ragged row",
    "2^64 + 7",
]


@pytest.mark.parametrize("name", LEFT)
def test_values_that_arrow_takes_in_another_way_are_left_to_duckdb(write, name):
    assert straight(write(UNUSUAL[name])) is None


@pytest.mark.parametrize("others", ["1,5\n2,6\n", "1.5,5\n2.0,6\n"])
def test_strings_that_may_be_numbers_are_left_to_duckdb(write, others):
    paths = {"recs": write(NAMED), "truth": write("user_id,item_id\n" + others, "truth.csv")}
    assert text.find_text(open_files(paths, ListColumns(), "auto")) is None


@pytest.mark.parametrize("size", [80, 100, 1000])
def test_pieces_are_cut_between_rows(write, monkeypatch, size):
    monkeypatch.setattr(text, "PIECE_BYTES", size)
    rows = [(f"user {n % 7}", f"i{n**3}", n / 7) for n in range(300)]
    content = "user_id,item_id,score\n" + "".join(f"{user},{item},{score!r}\n" for user, item, score in rows)
    zstd = pa.Codec("zstd").compress(content.encode(), asbytes=True)
    for data in (content, content[:-1], gzip.compress(content.encode()), zstd):
        found = straight(write(data), n_threads=2)
        assert list(zip(*found.values(), strict=True)) == rows


@pytest.mark.parametrize("row", range(9))
def test_a_byte_order_mark_in_rows_is_a_part_of_an_id(write, monkeypatch, row):
    """Also if it begins a piece, which is a file for Arrow."""
    rows = [f"u{n},i{n},{n}\n" for n in range(9)]
    rows[row] = "\ufeff" + rows[row]
    path = write("user_id,item_id,score\n" + "".join(rows))
    theirs, found = repr(by_duckdb(path)), []
    for size in range(12, 90, 4):
        monkeypatch.setattr(text, "PIECE_BYTES", size)
        ours = straight(path)
        assert ours is None or repr(ours) == theirs
        found.append(ours is None)
    assert any(found)


def test_a_row_that_is_longer_than_a_piece_is_left_to_duckdb(write, monkeypatch):
    monkeypatch.setattr(text, "PIECE_BYTES", 64)
    assert straight(write(NAMED + f"{'x' * 100},y,1\n")) is None


def test_several_files_are_one(write):
    for name in ("a", "b"):
        write(LISTS, f"parts/{name}.csv")
    folder = write(LISTS.replace("5", "8"), "parts/c.csv").parent
    assert straight(folder)["item"] == [5, 6, 7, 5, 6, 7, 8, 6, 7]
    write(LISTS.replace(",", ";"), "parts/d.csv")
    assert straight(folder) is None


@pytest.mark.parametrize("packed", [False, True])
def test_the_rows_of_small_files_are_read_together(write, monkeypatch, packed):
    read = []
    columns_of = text._TableReader._columns_of
    monkeypatch.setattr(text._TableReader, "_columns_of", lambda self, piece: read.append(1) or columns_of(self, piece))
    monkeypatch.setattr(text, "PIECE_BYTES", 300)
    wanted = []
    for nth in range(50):
        rows = [(f"u{nth}", f"i{n}", n / 7) for n in range(40 if nth == 7 else (nth + 1) % 3)]
        content = "user_id,item_id,score\n" + "".join(f"{user},{item},{score!r}\n" for user, item, score in rows)
        data = content[:-1].encode() if nth % 2 and rows else content.encode()  # the last line may lack its end
        path = write(gzip.compress(data) if packed else data, f"parts/{nth:02}.csv{'.gz' if packed else ''}")
        wanted += rows
    for n_threads in (1, 2):
        found = straight(path.parent, n_threads=n_threads)
        assert list(zip(*found.values(), strict=True)) == wanted
    assert len(read) < 20  # of 100, without those that have no rows


@pytest.mark.parametrize("ends", [('1,"5', '6",0.5'), ("1,5", "6,7,0.5"), ("1,5,", "0.5"), ("1,5,0.25,", "2,6,0.5")])
def test_faults_of_two_files_do_not_make_a_row(write, ends):
    write(f"{LISTS}{ends[0]}\n", "parts/a.csv")
    path = write(f"user_id,item_id,score\n{ends[1]}\n{LISTS.partition(chr(10))[2]}", "parts/b.csv")
    assert straight(path.parent) is None


def test_a_side_needs_64_bits_if_another_does(write):
    paths = {"recs": write(LISTS), "truth": write(f"user_id,item_id\n1,{2**40}\n", "truth.csv")}
    found = text.read_text(text.find_text(open_files(paths, ListColumns(), "auto")), 1, 1 << 30)
    assert {str(rows.schema.field("item").type) for rows in found.values()} == {"int64"}
    assert {str(rows.schema.field("user").type) for rows in found.values()} == {"int32"}


@pytest.mark.parametrize("n_threads", [1, 2])
def test_later_rows_may_be_shorter_and_wider(write, monkeypatch, n_threads):
    """The first piece tells how many rows to expect, and how wide ids are."""
    monkeypatch.setattr(text, "PIECE_BYTES", 100)
    rows = [(10**6 + n, n, n + 1 / 7) for n in range(10)] + [(n, 2**40 if n == 150 else n % 9, 0.5) for n in range(300)]
    content = "user_id,item_id,score\n" + "".join(f"{user},{item},{score!r}\n" for user, item, score in rows)
    for data in (content, gzip.compress(content.encode())):
        found = straight(write(data), n_threads=n_threads)
        assert list(zip(*found.values(), strict=True)) == rows


def test_a_file_that_takes_more_memory_than_it_may_is_left_to_duckdb(write):
    found = text.find_text(open_files({"recs": write(NAMED)}, ListColumns(), "auto"))
    assert text.read_text(found, 1, 20) is None
    assert text.read_text(found, 1, 1000) is not None


def test_a_log(write):
    content = "user_id,label,score,weight\n1,1,0.5,2\n1,0,0.25,1\n2,1,1,1\n"
    columns = RowColumns(weight="weight")
    found = straight(write(content), columns, "log")
    assert found == {"user0": [1, 1, 2], "label": [1, 0, 1], "score": [0.5, 0.25, 1], "weight": [2, 1, 1]}


@pytest.mark.parametrize("form", [LISTS, NAMED])
def test_evaluations_agree(write, monkeypatch, form):
    recs = write(form)
    truth = write("\n".join(line.rpartition(",")[0] for line in form.splitlines()), "truth.csv")
    options = {"metrics": ["ndcg@2", "mrr", "hits@1"], "per_user": True}
    ours = evaluate_files(recs, truth, **options)
    monkeypatch.setattr(job, "find_text", lambda _: None)
    theirs = evaluate_files(recs, truth, **options)
    assert ours.to_dict() == theirs.to_dict()


# Floats


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
    found = straight(write("user_id,item_id,score\n" + "".join(f"u,i{i},{x}\n" for i, x in enumerate(spelled))))
    wanted = np.array(list(map(float, spelled)))
    assert np.array_equal(np.array(found["score"]).view(np.int64), wanted.view(np.int64))


# Random changes


@pytest.mark.parametrize(
    "seed", [*range(150), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(150, 1500))]
)
def test_changed_files_are_read_as_by_duckdb(write, seed):
    r = random.Random(seed)
    ours, theirs = read_both(write(change(r, r.choice([*CLEAN.values()]).encode())))
    assert ours == theirs
