"""Limits of names, ids and files from strangers; see SECURITY.md. Checks of sources: `test_architecture.py`."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fastrec
from fastrec.show.charts import Estimated, Interval, histogram, interval_chart, line_chart, whisker
from fastrec.show.html import html_page
from fastrec.show.tables import Brief, Chart, Drawn, Lead, Section, Table
from support.command_line import run_fastrec
from support.pages import HOSTILE, Tags

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("click")

ROOT = Path(fastrec.__file__).parents[1]
NAMES = ["'; DROP TABLE recs; --", '"; DROP TABLE recs; --', "a'b", 'a"b', "a;b", "\\", "%s", "{0}", "$1", "?", "a\nb"]
NAMES += ["a\0b", "", " ", "\u202e", "\ufeffa", "-- ", "/*", "NULL", "nan", "é", "\U0001f600", "=1+1"]
NO_CSV = {"a\0b", ""}  # which no CSV can hold: zero bytes make it binary, and NULL_NAME is null


def write(path: Path, columns: dict[str, Any]) -> str:
    form = path.suffix[1:]
    if form == "parquet":
        pq.write_table(pa.table(columns), path)
    elif form == "csv":
        pd.DataFrame(columns).to_csv(path, index=False, quoting=1)
    else:
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    return str(path)


@pytest.mark.parametrize("memory", [None, "64MB"])
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_ids_labels_and_columns_are_never_sql(tmp_path: Path, form: str, memory: str | None) -> None:
    """The numbers equal those with plain names: no name was run, cut, merged or taken for another."""
    names = [name for name in NAMES if form != "csv" or name not in NO_CSV]
    user, item, by = ('"; DROP TABLE x; --', "it'em", "group; by")
    lists = {user: names * 2, item: names + names[1:] + names[:1], "score": [2.0] * len(names) + [1.0] * len(names)}
    truth = {user: names, item: names[1:] + names[:1], by: names[::-1]}
    plain = {name: f"n{at}" for at, name in enumerate(names)}
    reports = []
    for folder, change in (("hostile", lambda name: name), ("plain", plain.get)):
        (tmp_path / folder).mkdir()
        paths = []
        for table, columns in (("recs", lists), ("truth", truth)):
            texts = {name: list(map(change, own)) if name != "score" else own for name, own in columns.items()}
            paths.append(write(tmp_path / folder / f"{table}.{form}", texts))
        options: dict[str, Any] = {"user": user, "item": item, "by": by, "memory": memory, "per_user": True}
        reports.append(fastrec.evaluate_files(*paths, ["mrr", "recall@1"], **options))
    hostile, other = reports
    assert dict(hostile) == dict(other) == {"mrr": 0.5, "recall@1": 0.0}
    assert hostile.user_ids is not None
    assert sorted(hostile.user_ids.tolist()) == sorted(names)
    assert sorted(hostile.groups[by]) == sorted(names)


@pytest.mark.filterwarnings("ignore:no truth item")
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_ids_that_do_not_match_are_shown_and_not_run(tmp_path: Path, form: str) -> None:
    names = [name for name in NAMES if form != "csv" or name not in NO_CSV]
    paths = [
        write(tmp_path / f"recs.{form}", {"user_id": names, "item_id": names}),
        write(tmp_path / f"truth.{form}", {"user_id": names, "item_id": [f"x{name}" for name in names]}),
    ]
    with pytest.warns(fastrec.FastrecWarning, match="item ids look like"):
        assert fastrec.evaluate_files(*paths, "mrr")["mrr"] == 0.0


@pytest.mark.parametrize("memory", [None, "64MB"])
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_nothing_is_sent_or_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, memory: str | None
) -> None:
    """Python makes no socket, even if a file is wrong."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    (tmp_path / "recs").mkdir()
    for at, item in enumerate(["a", None]):
        write(tmp_path / "recs" / f"{at}.{form}", {"user_id": ["u", "v"], "item_id": ["b", item]})
    truth = write(tmp_path / f"truth.{form}", {"user_id": ["u", "v"], "item_id": ["b", "a"], "by": ["x", "y"]})
    assert fastrec.evaluate_files(tmp_path / "recs" / f"0.{form}", truth, "mrr", by="by", memory=memory)["mrr"] == 1.0
    with pytest.raises(fastrec.InputError, match="must not be null"):
        fastrec.evaluate_files(tmp_path / "recs", truth, "mrr", memory=memory)


def test_every_place_of_a_page_is_escaped() -> None:
    """Return titles, heads, cells, notes, lines, links, pictures and attributes with characters that end them."""
    ends = "\"' onload=alert(1) </title></style></svg>--><!--"
    plain = "plain words " * 12
    found, wanted = (Tags(page_of(text).replace("<wbr>", "")) for text in (HOSTILE + ends, plain))
    assert found.tags == wanted.tags
    assert [name for name, _ in found.attributes] == [name for name, _ in wanted.attributes]
    shown = (HOSTILE + ends).replace("\ud800", "\\ud800").replace("\x1b", "\\x1b")
    assert sum(shown in word for word in found.words) == sum(plain in word for word in wanted.words)


def page_of(text: str) -> str:
    """Return a page with a string wherever one can be."""
    drawn = Drawn(text, whisker(-0.1, 0.0, 0.1, 1.0))
    table = Table(text, [text, text], [[text, drawn], [text, Brief(text, text)]], 1, [text], 1, 1)
    pictures = [line_chart(text, [text], [(0.1, 0.0, 0.2)]), histogram(text, [1, 2], text, text)]
    pictures.append(interval_chart(text, [Interval(text, Estimated(0.1, 0.0, 0.2), [text])], 0.0))
    sections = [
        Section(text, [table], [Chart(text, svg) for svg in pictures], [text]),
        Section(text, lines=[text], folded=text),
    ]
    return html_page(text, sections, Lead(text, [text], [text], [text]), {text: text})


def test_names_in_an_explanation_are_escaped(tmp_path: Path) -> None:
    users = [HOSTILE.replace("\ud800", ""), "b"]
    recs, truth = {user: [1, 2] for user in users}, {user: [2] for user in users}
    why = fastrec.explain("ndcg@2", recs, truth, like="rectools", n_users=2)
    page = Tags(why._repr_html_())
    assert page.tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes == []
    assert any("<script>" in word for word in page.words)
    write(tmp_path / "recs.parquet", {"user_id": users * 2, "item_id": [1, 1, 2, 2], "score": [1.0] * 4})
    write(tmp_path / "truth.parquet", {"user_id": users, "item_id": [2, 2]})
    files = [str(tmp_path / f"{name}.parquet") for name in ("recs", "truth")]
    tools = ("--like", "rectools", "--like", "recbole")  # which cannot order equal scores, and names the user
    for form in ("md", "table"):
        result = run_fastrec("explain", "ndcg@2", *files, *tools, "--format", form)
        assert result.exit_code == 0, result.output
        assert "recbole: no number: recs of user" in result.output
        assert "\x1b" not in result.output
        assert form == "table" or "<script>" not in result.output


OLD = "what was there before"
KILLED = """
import os, signal
from fastrec.cli import program
os.fsync = lambda _: os.kill(os.getpid(), signal.{number})  # written, and not yet at its path
program.main()
"""
LISTS, LOG = ("recs.csv", "truth.csv"), ("log.csv",)
OUTPUTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "-o": (LISTS, ("-o", "out.json")),
    "--html": (LISTS, ("--html", "out.html")),
    "--per-user": (LISTS, ("--per-user", "out.parquet")),
    "--per-user as CSV": (LISTS, ("--per-user", "out.csv")),
    "--curves": (LOG, ("-m", "auc", "--curves", "out.json")),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "number"), [*((name, "SIGKILL") for name in OUTPUTS), ("--html", "SIGTERM")])
def test_whoever_is_killed_while_it_writes_leaves_the_old_file(tmp_path: Path, name: str, number: str) -> None:
    inputs, options = OUTPUTS[name]
    for file in LISTS:
        (tmp_path / file).write_text("user_id,item_id\n1,10\n")
    (tmp_path / "log.csv").write_text("label,score\n1,0.5\n0,0.25\n")
    out = tmp_path / options[-1]
    out.write_text(OLD)
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(number=number), "evaluate", *inputs, *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    ending = getattr(signal, number)
    assert done.returncode == (-ending if number == "SIGKILL" else 128 + ending), done.stderr
    assert out.read_text() == OLD
    left = {path.name for path in tmp_path.iterdir()} - {*LISTS, "log.csv", out.name}
    assert len(left) == (number == "SIGKILL")  # no process can tidy up after that
