"""Messages of errors and warnings: the names in them are data that other parts of the library replace."""

import ast
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastrec
from fastrec import exceptions
from fastrec.exceptions import Argument, FastrecError, Listing, Place, RowNumber, Text, renamed
from fastrec.files.columns import ColumnError

PACKAGE = Path(fastrec.__file__).parent
FOREIGN = {  # modules that read messages of other libraries, which have no codes
    "files/formats/foreign.py",  # DuckDB, Python's csv
    "files/lakes.py",  # deltalake: colours, and a trace of its calls
    "inputs/arrow.py",  # PyArrow: strings that are not UTF-8
    "clusters/spark.py",  # Spark: traces of its tasks
}
READS = {"sub", "split", "search", "match", "fullmatch", "findall", "finditer", "replace", "partition", "rpartition"}
READS |= {"startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count", "rsplit", "splitlines"}
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


def names_of_errors(tree):
    """Return the names that `except ... as name` binds, and those of arguments called `error`."""
    handlers = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    return handlers | {"error", "warning", "message"}


def is_message(node, errors):
    """Return whether an expression is the message of an error: str(error), error.args[0], an f-string of it."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr" | "one_line" | "cut_line"), args=[argument]):
            return isinstance(argument, ast.Name) and argument.id in errors
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in errors
        case ast.Attribute(value=ast.Name(id=name), attr="text" | "message" | "msg"):
            return name in errors
        case ast.JoinedStr(values=values):
            named = (value.value for value in values if isinstance(value, ast.FormattedValue))
            return any((isinstance(n, ast.Name) and n.id in errors) or is_message(n, errors) for n in named)
        case ast.Name(id="message"):
            return True
    return False


def messages_read(tree) -> Iterator[int]:
    """Yield the lines on which a message of an error is searched, cut, compared or changed."""
    errors = names_of_errors(tree)
    held = {  # text = str(error)
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_message(node.value, errors)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def read(node):
        return is_message(node, errors) or (isinstance(node, ast.Name) and node.id in held)

    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=arguments):
                if attr in READS and any(map(read, (value, *arguments))):
                    yield node.lineno
            case ast.Compare(left=left, comparators=others):
                operands = [part for own in (left, *others) for part in (getattr(own, "elts", None) or [own])]
                if any(map(read, operands)) and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
                    yield node.lineno


@pytest.mark.parametrize(
    "code",
    [
        "re.sub('a', 'b', str(error))",
        "'a' in str(error)",
        "text = str(error)\nif text.startswith('a'): pass",
        "try: pass\nexcept ValueError as wrong:\n    str(wrong).partition(';')",
        "(type(error), str(error)) == KNOWN",
        "error.args[0].replace('a', 'b')",
        "f'{error}'.removeprefix('memory ')",
        "re.search('a', error.text)",
        "message.replace('a', 'b')",
    ],
)
def test_what_counts_as_reading_a_message(code):
    assert list(messages_read(ast.parse(code)))


def test_no_message_is_read():
    """A message that is read back breaks when its words change, and takes a user's data for words of the library."""
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).as_posix() not in FOREIGN
        for line in messages_read(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
    for name in FOREIGN:  # no exception is left that nothing needs
        assert list(messages_read(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))))
