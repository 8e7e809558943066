"""How the values of CSV files are written: what a file shows, and what `csv=` and options of the command say."""

from __future__ import annotations

import csv
import gzip
import io
import random
import re
from pathlib import Path
from typing import Any

import pytest

import fastrec
from fastrec import evaluate_files
from support.command_line import run_fastrec

pa = pytest.importorskip("pyarrow")

HEAD = ["user_id", "label", "score", "title"]
ROWS = [["1", "1", "0.9", "a"], ["1", "0", "0.2", "b c"], ["2", "1", "0.3", "é"], ["2", "0", "0.4", ""]]


def text_of(rows: list[list[str]] = ROWS, **style: Any) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", **style).writerows([HEAD, *rows])
    return text.getvalue()


def auc_of(path: Path, content: str | bytes, **options: Any) -> float:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return float(evaluate_files(path, metrics="auc", **options)["auc"])


COMMAS = [[user, label, score.replace(".", ","), title] for user, label, score, title in ROWS]
QUOTED = [[*row[:3], text] for row, text in zip(ROWS, ['he said "yes"', 'a "b", c', "\\", 'x"'], strict=True)]
SHOWN = {
    "decimal commas": text_of(COMMAS, delimiter=";"),
    "decimal commas, byte order mark": "\ufeff" + text_of(COMMAS, delimiter=";").replace("\n", "\r\n"),
    "sep=": "sep=^\n" + text_of(delimiter="^"),
    "sep=, byte order mark": "\ufeffsep=;\r\n" + text_of(delimiter=";"),
    "UTF-16": text_of(delimiter="\t").encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + text_of().encode("utf-16-be"),
    "UTF-16, packed": gzip.compress(text_of().encode("utf-16")),
    "backslashes before quotes": text_of(QUOTED, escapechar="\\", doublequote=False, quoting=csv.QUOTE_ALL),
}


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("name", SHOWN)
def test_what_a_file_shows(tmp_path: Path, name: str) -> None:
    assert auc_of(tmp_path / "log.csv", SHOWN[name]) == 0.75


SAID: dict[str, tuple[str | bytes, dict[str, str]]] = {
    "delimiter": (text_of(delimiter="^"), {"delimiter": "^"}),
    "decimal": (text_of(COMMAS, delimiter="\t"), {"decimal": ","}),
    "quote": (text_of(QUOTED, quotechar="'"), {"quote": "'"}),
    "no quotes": (text_of(QUOTED[:1] + QUOTED[2:] + ROWS[1:2], quoting=csv.QUOTE_NONE, quotechar=None), {"quote": ""}),
    "escape": (text_of(QUOTED, escapechar="/", doublequote=False, quoting=csv.QUOTE_ALL), {"escape": "/"}),
    "encoding": (text_of().encode("latin-1"), {"encoding": "latin-1"}),
}


@pytest.mark.parametrize("name", SAID)
def test_what_a_call_says(tmp_path: Path, name: str) -> None:
    content, options = SAID[name]
    assert auc_of(tmp_path / "log.txt", content, csv=options) in (0.75, 1.0)
    told = run_fastrec(
        "evaluate", str(tmp_path / "log.txt"), "-m", "auc", *(f"--{name}={value}" for name, value in options.items())
    )
    assert told.exit_code == 0


def test_random_rows_are_those_of_pythons_parser(tmp_path: Path) -> None:
    r = random.Random(7)
    for _ in range(60):
        rows = [
            [str(r.randrange(9)), str(at % 2), str(r.random()), r.choice(["x", "a b", 'q"', ";", "\\"])]
            for at in range(40)
        ]
        style: dict[str, Any] = {
            "delimiter": r.choice(",;\t|^"),
            "quotechar": r.choice("'\""),
            "quoting": csv.QUOTE_ALL,
        }
        wanted = auc_of(tmp_path / "plain.csv", text_of(rows))
        options = {"delimiter": style["delimiter"], "quote": style["quotechar"]}
        assert auc_of(tmp_path / "log.csv", text_of(rows, **style), csv=options) == wanted


def test_quotes_that_join_lines_between_tabs_are_told(tmp_path: Path) -> None:
    rows = [[*row[:3], title] for row, title in zip(ROWS, ['"dune', "x", 'matrix"', "y"], strict=True)]
    content = "\n".join("\t".join([row[0], row[3], *row[1:3]]) for row in [HEAD, *rows]) + "\n"
    with pytest.warns(fastrec.FastrecWarning, match=r"quotes hold 2 line breaks.*pass csv=\{'quote': ''\}"):
        auc_of(tmp_path / "log.tsv", content)
    assert auc_of(tmp_path / "log.tsv", content, csv={"quote": ""}) == 0.75


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("semicolons", "csv must be a dict such as {'delimiter': ';', 'decimal': ','}, found 'semicolons'"),
        ({"seperator": ";"}, "csv takes delimiter, quote, escape, decimal, encoding, found 'seperator'"),
        ({"quote": "''"}, "csv: quote must be one character of ASCII, or '' for none, found \"''\""),
        ({"delimiter": ""}, "csv: delimiter must be one character of ASCII, found ''"),
        ({"decimal": ";"}, "csv: decimal must be '.' or ',', found ';'"),
        ({"delimiter": "\n"}, "csv: delimiter must be one character of ASCII, found '\\n'"),
        ({"delimiter": "§"}, "csv: delimiter must be one character of ASCII, found '§'"),
        ({"delimiter": "'", "quote": "'"}, "csv: delimiter, quote and escape must differ"),
        ({"encoding": "utf-9"}, "csv: encoding must be an encoding of text that Python knows, found 'utf-9'"),
        ({"encoding": "rot13"}, "csv: encoding must be an encoding of text that Python knows, found 'rot13'"),
    ],
)
def test_dialects_that_there_are_not(tmp_path: Path, given: Any, says: str) -> None:
    with pytest.raises(fastrec.FastrecError, match=re.escape(says)):
        auc_of(tmp_path / "log.csv", text_of(), csv=given)


def test_a_dialect_is_that_of_text(tmp_path: Path) -> None:
    content = 'user_id;item_id;score\n1;"5 ""inch""";0,5\n1;"6 \\"inch\\"";0,25\n'
    (tmp_path / "recs.csv").write_text(content)
    rows = pa.table({"user_id": [1], "item_id": ['5 "inch"']})
    pytest.importorskip("pyarrow.parquet").write_table(rows, tmp_path / "truth.parquet")
    options = {"delimiter": ";", "decimal": ",", "escape": "\\"}
    for dialect in (None, options):
        assert fastrec.evaluate_files(tmp_path / "recs.csv", tmp_path / "truth.parquet", "mrr", csv=dialect)["mrr"] == 1
    (tmp_path / "tabs.csv").write_text('user_id\titem_id\n1\t5 "inch"\n')
    paths = str(tmp_path / "tabs.csv"), str(tmp_path / "truth.parquet")
    told = run_fastrec("evaluate", *paths, "-m", "mrr", "--delimiter", r"\t", "--quote", "")
    assert told.exit_code == 0
    (tmp_path / "colons.csv").write_text("user_id:item_id\n1:5\n")
    with pytest.raises(fastrec.InputError, match=r"if ':' separates the columns, pass csv=\{'delimiter': ':'\}"):
        fastrec.evaluate_files(tmp_path / "colons.csv", tmp_path / "truth.parquet", "mrr")


def test_booleans_and_numbers_of_one_column_are_told_apart_in_all_files(tmp_path: Path) -> None:
    for name, labels in (("a", "true,.9\nfalse,.1"), ("b", "0,.5\n1,.4")):
        (tmp_path / f"{name}.csv").write_text(f"label,score\n{labels}\n")
    with pytest.raises(
        fastrec.InputTypeError, match=r"numbers or booleans, not both, found '0\.0' in row 1 of .*b\.csv"
    ):
        fastrec.evaluate_files(str(tmp_path / "*.csv"), metrics="auc")


def test_faults_name_the_option(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with pytest.raises(fastrec.InputError, match=r"nor text in UTF-8.*\(--encoding\) names another encoding"):
        auc_of(path, text_of().encode("latin-1"))
    for content, options in (
        (text_of()[:-1].encode("utf-16") + b"\0", {}),
        (text_of().encode("latin-1"), {"encoding": "cp932"}),
    ):
        with pytest.raises(fastrec.InputError, match="encoding"):
            auc_of(path, content, csv=options or None)
    late = text_of([ROWS[0]] * 200_000).encode() + b"\xe9,0,0.5,x\n"
    with pytest.raises(fastrec.InputError, match=r"line 200002: not UTF-8: csv=\{'encoding': \.\.\.\}"):
        auc_of(path, late, user="user_id")
    with pytest.raises(fastrec.InputError, match=r"after line 199\d+: not ascii"):
        auc_of(path, late, user="user_id", csv={"encoding": "ascii"})
    with pytest.raises(fastrec.InputError, match=r"'0.9' has a point, but commas are decimal"):
        auc_of(path, text_of(), csv={"decimal": ","})
    with pytest.raises(fastrec.InputError, match="csv says how CSV is written, but input_format='parquet'"):
        auc_of(path, text_of(), csv={"decimal": ","}, input_format="parquet")
