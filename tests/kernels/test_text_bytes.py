"""Bytes that readers of text may take in different ways, found as by expressions and lists of positions."""

import re

import numpy as np
import pytest

from fastrec.kernels import text
from fastrec.runtime.launcher import call

USUAL = [b"12", b"-3", b"0", b"0.5", b"-0.5", b"a0b", b'"a"', b'"x y"', b'"a,b"', b'","', b"", b"\xc3\xa9", b"9 8"]
UNUSUAL = [
    b"07",
    b"-0",
    b"-07",
    b"+1",
    b" 1",
    b"1 ",
    b'"1 "',
    b'"07"',
    b'a"b',
    b'"a"b',
    b'"',
    b"\x00",
    b"\r",
    b"\t",
    b"0x",
]


def asked(lines: bytes, delimiter: bytes, *, has_returns: bool, has_integers: bool) -> list[bool]:
    """Return whether lines are doubtful, compiled and interpreted."""
    arguments = (np.frombuffer(lines, np.uint8), np.uint8(ord(delimiter)), has_returns, b'"' in lines, has_integers)
    return [bool(call(text.is_doubtful, *arguments, work=1)), bool(text.is_doubtful(*arguments))]


def expected(lines: bytes, delimiter: bytes, *, has_returns: bool, has_integers: bool) -> bool:
    """Return whether lines are doubtful."""
    cut = re.escape(delimiter)
    rest = lines.replace(b"\r\n" if has_returns else b"\n", b"").replace(delimiter, b"")
    if any(byte < ord(" ") for byte in rest):
        return True
    quotes = [at for at, byte in enumerate(lines) if byte == ord('"')]
    around = b"\n" + lines
    opens = all(around[at : at + 1] in (b"\n", delimiter) for at in quotes[::2])
    closes = all(lines[at + 1 : at + 2] in (b"\r", b"\n", delimiter) for at in quotes[1::2])
    if len(quotes) % 2 or not opens or not closes:
        return True
    begins, ends = b'(?:(?<=[\n"' + cut + rb"])|\A)", b'[\r\n"' + cut + b"]"
    forms = [begins + b"[ +]", begins + b"0(?!" + cut + b")[0-\xff]", begins + b"-0[^.]", b" " + ends]
    return has_integers and any(re.search(form, lines) for form in forms)


@pytest.mark.parametrize("has_integers", [False, True])
@pytest.mark.parametrize("delimiter", [b",", b"\t", b";", b"|"])
@pytest.mark.parametrize("line_break", [b"\n", b"\r\n"])
def test_random_lines(line_break, delimiter, has_integers):
    rng = np.random.default_rng(1)
    how = {"has_returns": line_break == b"\r\n", "has_integers": has_integers}
    found = set()
    for n_unusual in [0, 1, 0, 2] * 60:
        fields = [USUAL[at] for at in rng.integers(0, len(USUAL), rng.integers(1, 9) * 2)]
        for at in rng.integers(0, len(fields), n_unusual):
            fields[at] = UNUSUAL[rng.integers(0, len(UNUSUAL))]
        lines = b"".join(a + delimiter + b + line_break for a, b in zip(fields[::2], fields[1::2], strict=True))
        is_doubtful = expected(lines, delimiter, **how)
        assert asked(lines, delimiter, **how) == [is_doubtful] * 2, lines
        found.add(is_doubtful)
    assert found == {False, True}


@pytest.mark.parametrize(
    "lines", [b"\n\n\n", b"0\n1", b"1\r\n2\n", b"1\n2\r\n", b"\n1\r\n", b"1,2,-0\n", b"07\n", b" ,\n"]
)
@pytest.mark.parametrize("has_returns", [False, True])
def test_first_and_last_bytes(lines, has_returns):
    how = {"has_returns": has_returns, "has_integers": True}
    assert asked(lines, b",", **how) == [expected(lines, b",", **how)] * 2


def test_very_short_lines_are_left_to_duckdb():
    assert asked(b"1\n", b",", has_returns=False, has_integers=True) == [True] * 2


def test_line_feeds_are_counted():
    for lines in (b"", b"a", b"\n", b"\r\n\r\n", b"a\n" * 1000):
        data = np.frombuffer(lines, np.uint8)
        found = call(text.count_line_feeds, data, work=1), text.count_line_feeds(data)
        assert found == (lines.count(b"\n"),) * 2
