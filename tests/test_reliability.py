"""RELIABILITY.md names tests that exist, and no promise goes without one."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "RELIABILITY.md"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| (?!Promise )", line)]


def test_the_page_has_rows():
    assert len(ROWS) >= 7


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_promise_is_held_by_tests_that_exist(row):
    promise, shown = row
    named = re.findall(r"`(\w+\.py)::(\w+)`", shown)
    assert promise.endswith(".") and named
    for file, test in named:
        assert re.search(rf"^ *def {test}\(", (TESTS / file).read_text(), re.MULTILINE), f"{file} has no {test}"
