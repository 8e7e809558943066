"""RELIABILITY.md names tests that exist, and every promise has one."""

import ast
import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WHOLE_SUITE = "-m pytest -q -n auto --dist loadfile\n"  # with the thorough tests: .ci/full sets PYTEST_ADDOPTS
PAGE = TESTS.parent / "RELIABILITY.md"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| (?!Promise )", line)]


def test_the_page_has_rows():
    assert len(ROWS) >= 7


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_promise_is_held_by_tests_that_exist(row):
    promise, shown = row
    named = re.findall(r"`(\w+/\w+\.py)::(\w+)`", shown)
    assert promise.endswith(".") and named
    for file, test in named:
        assert re.search(rf"^ *def {test}\(", (TESTS / file).read_text(), re.MULTILINE), f"{file} has no {test}"


def is_run_by_default(file, test):
    """Return whether the README's command runs the test, or at least some of its cases."""
    return "pytest.mark.thorough" not in marks_of(file)[test]


@functools.cache
def marks_of(file):
    """Return the decorators of each test of a file."""
    tests = [
        node
        for node in ast.parse((TESTS / file).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    found = {test.name: [ast.unparse(decorator) for decorator in test.decorator_list] for test in tests}
    assert len(found) == len(tests)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_default_run_shows_every_promise_that_is_not_marked(row):
    promise, shown = row
    named = re.findall(r"`(\w+/\w+\.py)::(\w+)`", shown)
    assert any(is_run_by_default(*each) for each in named) or "**full**" in promise + shown


def run_by_ci_full():
    """Return the commands of the parts that .ci/full runs by default."""
    text = (TESTS.parent / ".ci/full").read_text()
    functions = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    (parts,) = re.findall(r"^for part in \$\{\*:-(.*)\}; do", text, re.MULTILINE)
    return " ".join(functions[part] for part in parts.split())


def test_thorough_tests_are_run_by_ci_full():
    assert re.search(r"^export PYTEST_ADDOPTS=\"-m ''\"", (TESTS.parent / ".ci/full").read_text(), re.MULTILINE)
    assert WHOLE_SUITE in run_by_ci_full()


def marked_full():
    """Yield tests that .ci/full must run: those before the mark, or all if the promise has it."""
    for promise, shown in ROWS:
        for before in re.split(r"\*\*full\*\*", shown)[:-1]:
            yield re.findall(r"(\w+/test_\w+\.py)::(\w+)", before)[-1]
        if "**full**" in promise:
            yield from re.findall(r"(\w+/test_\w+\.py)::(\w+)", shown)


@pytest.mark.parametrize(("file", "test"), sorted(set(marked_full())))
def test_what_takes_long_is_run_by_ci_full(file, test):
    whole = "scripts/fuzz" if test == "test_random_cases" else rf"tests/{file}(\s|$|::{test}\b)"
    thorough = not is_run_by_default(file, test)
    assert re.search(whole, run_by_ci_full()) or (thorough and WHOLE_SUITE in run_by_ci_full())
