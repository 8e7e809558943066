"""Pages of the documentation: their examples run, and the generated ones are complete. Doctests run by themselves."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fastrec
from support.documents import DOCS, PAGES, ROOT, blocks, commands, programs

click = pytest.importorskip("click")
pytest.importorskip("pyarrow")
from fastrec.cli.program import program  # noqa: E402
from website import commands as command_line  # noqa: E402 - needs click
from website import drawings, interface, messages, metrics, notebooks, speed, tables  # noqa: E402
from website.docstrings import link_in, to_markdown  # noqa: E402

DATA = os.environ.get("FASTREC_TEST_DATA")
MOVIELENS, SPARK, CI = DOCS / "start/movielens.md", DOCS / "guides/spark.md", DOCS / "guides/ci.md"
MADE = ("reference", "examples")  # folders of docs/ with pages that exist only on the site
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")
LONGEST = 84  # line of code that a column of the site shows


def test_every_program_is_a_doctest_or_run_by_a_test():
    """tests/spark runs the one for Spark, tests/engines those for Dask and Ray."""
    assert {path for path in PAGES if programs(path)} == {MOVIELENS, SPARK, DOCS / "guides/dask-and-ray.md"}


def printed(page):
    """Return what the blocks of a page print, and what its text says that they print."""
    names, found, wanted = {}, [], []
    for language, code in blocks(page):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(page), "exec"), names)
            found.append(out.getvalue())
        elif language == "text":
            wanted.append(code)
    return [text for text in found if text], wanted


@pytest.mark.thorough
@pytest.mark.skipif(DATA is None, reason="FASTREC_TEST_DATA names no folder with real data")
def test_the_tutorial_prints_what_it_says(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(Path(DATA) / "ml-latest-small")
    found, wanted = (" ".join(texts) for texts in printed(MOVIELENS))
    assert NUMBER.sub("0", found).split() == NUMBER.sub("0", wanted).split()
    numbers = [[float(text.replace(",", "")) for text in NUMBER.findall(own)] for own in (found, wanted)]
    assert len(numbers[0]) > 80
    assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=2e-3)  # the SVD is that of this machine's library


@pytest.mark.thorough
def test_the_commands_of_the_gate_pass(tmp_path):
    for command in commands(CI):
        arguments = [sys.executable, "-m", "fastrec", *shlex.split(command)[1:]]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        result = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "comparison.html").stat().st_size > 10_000


def commands_of_fastrec():
    for page in PAGES:
        for line in commands(page):
            for part in re.split(r"[|&]+|\$\(", line.partition(" #")[0]):
                words = shlex.split(part, comments=False) if part.count("'") % 2 == part.count('"') % 2 == 0 else []
                if words and words[0] == "fastrec":
                    yield page.name, words[1:]


@pytest.mark.parametrize(("page", "words"), list(commands_of_fastrec()), ids=str)
def test_commands_and_options_of_examples_exist(page, words):
    command = program.commands[words[0]]
    known = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words[1:] if re.fullmatch(r"-[a-z]|--[a-z-]+", word)} <= known


def test_there_are_commands_to_check():
    assert len(list(commands_of_fastrec())) >= 20


READ_IN_REPOSITORY = sorted(ROOT.glob("*.md"))


def slugs(path):
    """Return the anchors of a file's heads, as MkDocs and code hosts make them."""
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w]+", "-", re.sub(r"\]\(.*?\)", "", head).lower()).strip("-") for head in heads}


@pytest.mark.parametrize("page", [*READ_IN_REPOSITORY, *PAGES[1:]], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_heads(page):
    """Only pages of docs/ lead to pages that the site makes, which its strict build checks."""
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if page in READ_IN_REPOSITORY or not target.is_relative_to(DOCS) or target.parts[len(DOCS.parts)] not in MADE:
            assert target.exists(), link
        if anchor and target.exists():
            assert anchor in slugs(target), link


def test_pictures_are_small_and_shown():
    pictures = sorted((DOCS / "assets").glob("*.png"))
    assert len(pictures) == 4
    shown = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 150_000
        assert f"assets/{picture.name})" in shown


def test_every_public_name_is_on_one_page():
    listed = [name for *_, names in interface.PAGES for name in names.split()]
    assert sorted(listed) == sorted(name for name in fastrec.__all__ if name != "__version__")
    pages = dict(interface.pages())
    for name, file in interface.names_of_pages().items():
        assert f"## {name} {{ #fastrec.{name} }}" in pages[f"{interface.FOLDER}/{file}.md"]


def test_pages_of_the_interface_have_arguments_examples_and_links():
    page = dict(interface.pages())[f"{interface.FOLDER}/compare.md"]
    assert "`reports`\n:   {name: report}, two or more" in page
    assert "[`Comparison.left_out`](#fastrec.Comparison)" in page
    page = dict(interface.pages())[f"{interface.FOLDER}/evaluate.md"]
    assert "fastrec.evaluate(\n    recs, truth=None, metrics=None, *, k=None" in page
    assert "```pycon\n>>> report = fastrec.evaluate(" in page
    assert "[`Report`](reports.md#fastrec.Report)" in page
    assert "`` " not in page and "\n----" not in page


def test_docstrings_become_markdown():
    link = link_in({"load": "reports.md#fastrec.load"})
    text = """Sum of a_i * b_i, see `load`.

    Parameters
    ----------
    path : the file
        ``"-"``: standard input.
    k, seed : numbers that
        go on here
    n_threads

    A paragraph of its own.

    Returns
    -------
    array of float64
        The sums.

    >>> print("a\\n\\nb")
    a
    <BLANKLINE>
    b

    Examples
    --------
    >>> 1 + 1
    2
    """
    assert to_markdown(text, link).split("\n\n") == [
        r"Sum of a\_i \* b\_i, see [`load`](reports.md#fastrec.load).",
        "**Parameters**",
        "`path`\n:   the file",
        '    `"-"`: standard input.',
        "`k`, `seed`\n:   numbers that\n    go on here",
        "- `n_threads`",
        "A paragraph of its own.",
        "**Returns**",
        "array of float64\n:   The sums.",
        '```pycon\n>>> print("a\\n\\nb")\na',
        "b\n```",
        "**Examples**",
        "```pycon\n>>> 1 + 1\n2\n```",
    ]


def test_every_metric_has_a_page_with_its_formula():
    entries = list(metrics.entries())
    assert len(entries) >= 64
    assert {(home, name) for home, own in metrics.FORMULAS.items() for name in own} == {
        (home, entry["name"]) for home, entry in entries
    }
    pages = dict(metrics.pages())
    for home, entry in entries:
        page = pages[metrics.path_of(home, entry["name"])]
        assert f"\\[{metrics.FORMULAS[home][entry['name']]}\\]" in page
        assert all(f"`{option}=`" in page for option in entry["options"])
        assert ">>> " in page and entry["source"] in page


def test_pages_of_metrics_name_other_tools():
    page = dict(metrics.pages())[metrics.path_of("lists", "ndcg")]
    assert "| RecTools | `ndcg` | `ndcg(gain=binary, ideal=k)` | the ideal of ndcg has k relevant items" in page
    assert "None of the tools" in dict(metrics.pages())[metrics.path_of("lists", "fallout")]


def test_every_formula_can_be_drawn():
    mathematics = pytest.importorskip("website.mathematics", exc_type=ImportError)
    for own in metrics.FORMULAS.values():
        for formula in own.values():
            drawn = mathematics.mathml(formula, "block")
            assert drawn.startswith("<math") and "\\" not in drawn, formula
    marked = '<span class="arithmatex">\\(a &lt; b\\)</span>'
    assert mathematics.with_mathml(f"<p>{marked}</p>") == (f"<p>{mathematics.mathml('a < b', 'inline')}</p>")


def test_the_page_of_commands_has_every_option():
    page = command_line.page()
    for name, command in program.commands.items():
        assert f"## fastrec {name} " in page
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert all(option in page for option in parameter.opts), (name, parameter.opts)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fastrec.evaluate([[1, 1]], [[1]], "mrr"), "twice"),
        (lambda: fastrec.evaluate([[1]], [[1]], "ndgc"), "unknown metric"),
        (lambda: fastrec.load("nowhere"), "no such file"),
    ],
)
def test_the_index_has_the_words_of_errors(call, words):
    with pytest.raises(fastrec.FastrecError, match=words):
        call()
    assert any(words in text for _, _, text in messages.messages())


def test_the_index_has_all_kinds():
    kinds = {kind for kind, _, _ in messages.messages()}
    assert kinds >= {"InputError", "InputTypeError", "MetricError", "FastrecWarning"}
    assert len({text for _, _, text in messages.messages()}) > 300
    assert "## InputError" in messages.page()


def test_notebooks_become_pages_with_their_outputs():
    pages = dict(notebooks.pages())
    page = pages["notebooks/05_beyond_accuracy.md"]
    pictures = re.findall(r"\]\((05_beyond_accuracy_\d+\.png)\)", page)
    assert pictures and all(pages[f"notebooks/{name}"].startswith(b"\x89PNG") for name in pictures)
    assert "```text\n" in page


def lines_of_python():
    """Yield a file and a line of Python, with its prompt, that the site shows of it; outputs are no such lines."""
    for page in PAGES:
        for line in map(str.strip, page.read_text(encoding="utf-8").splitlines()):
            if line.startswith((">>> ", "... ")):
                yield page.name, line
        for code in programs(page):
            yield from ((page.name, line) for line in code.splitlines())
    for path in notebooks.NOTEBOOKS.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield from ((path.name, line) for line in "".join(cell["source"]).splitlines())


def test_lines_of_python_fit_into_a_column():
    lines = list(lines_of_python())
    assert {"README.md", "movielens.md", "08_rows_of_users.ipynb"} <= {name for name, _ in lines}
    assert [found for found in lines if len(found[1]) > LONGEST] == []


def asked(pattern):
    return [name for page in PAGES for name in re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE)]


def test_every_chart_and_table_has_its_place():
    charts = asked(r"^<!-- (?:chart|drawing): (.*) -->$")
    assert {*charts} == {*speed.CHARTS, *drawings.DRAWINGS}
    for name in charts:
        assert (speed.CHARTS | drawings.DRAWINGS)[name]().startswith("<figure><svg ")
    written = asked(r"^<!-- (.*):begin -->$")
    assert sorted(written) == sorted(["numbers", *tables.TABLES, *speed.TABLES])


def test_widths_of_charts_follow_numbers():
    chart = speed.bars("title", [("a", 10, "x"), ("b", 100, "y")])
    widths = [float(text) for text in re.findall(r'width="([\d.]+)" height="16"', chart)]
    longest = speed.WIDTH - speed.NUMBER
    assert widths == [longest / 2, longest]
