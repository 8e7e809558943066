"""Messages of errors and warnings: the names in them are data that other parts of the library replace."""

import copy
import pickle

import pytest

from fastrec import exceptions
from fastrec.exceptions import Argument, FastrecError, Listing, Place, RowNumber, Text, renamed
from fastrec.files.columns import ColumnError

ERRORS = [
    kind
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, FastrecError) and kind.__module__ == exceptions.__name__
]
PARTS = (
    Place("recs", "rank"),
    " must hold integers, found 1.5",
    RowNumber.at(3),
    "; or pass ",
    Argument("score", ("s",)),
)
MESSAGE = "recs column 'rank' must hold integers, found 1.5 at row 3; or pass score='s'"


def without_row(name):
    return name.unnumbered if isinstance(name, RowNumber) else name


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_and_pickles_of_errors_keep_names(kind, copied):
    """Spark and multiprocessing pickle errors."""
    error = copied(kind(*PARTS))
    assert (type(error), str(error), error.args, error.text.parts) == (kind, MESSAGE, (MESSAGE,), PARTS)
    assert str(error.renamed(without_row)) == MESSAGE.replace(" at row 3", "")


def test_an_error_keeps_its_other_fields():
    error = ColumnError("a", RowNumber.at(1), role="item")
    for copied in (copy.copy(error), pickle.loads(pickle.dumps(error)), error.renamed(without_row)):
        assert (type(copied), copied.role) == (ColumnError, "item")


def test_a_text_is_a_string_that_keeps_the_names_of_its_parts():
    text = Text(Place("labels"), Text(" of ", Argument("min_gain", (...,))), "{}")
    assert text == "labels of min_gain=...{}" and isinstance(text, str)
    assert text.names() == [Place("labels"), Argument("min_gain", (...,))]
    assert pickle.loads(pickle.dumps(text)).parts == copy.deepcopy(text).parts == text.parts
    assert renamed(text, lambda name: f"<{name}>") == "<labels> of <min_gain=...>{}"
    assert renamed("plain", without_row) == "plain"


def test_names_in_python():
    assert str(Argument("ties")) == "ties"
    assert str(Argument("ties", ("input", "worst", "best"))) == "ties='input', 'worst' or 'best'"
    assert str(Argument("min_gain", (2,))) == "min_gain=2"
    assert str(Text("12 in all", Listing("list(report)"))) == "12 in all: list(report)"
    assert str(RowNumber(3, " in rows 3 and 5", " in several rows")) == " in rows 3 and 5"


def test_a_message_is_one_line_of_limited_length():
    error = FastrecError("a\nb", RowNumber.at(1), "\x1b", "c" * 2000)
    assert str(error).startswith("a b at row 1\\x1bccc") and len(str(error)) == exceptions.LONGEST
