"""The index of errors and warnings, from the calls in the sources that make them."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import fastrec
from fastrec import exceptions

PACKAGE = Path(fastrec.__file__).parent
PATH = "reference/messages.md"
GAP = "…"
ABOUT = (
    f"Search this page for the words of a message; {GAP} stands for what varies, such as a name, a row or a value. A "
    "message says what was found, what was expected, where, and what to try. Every error is a "
    "[`FastrecError`](api/errors.md#fastrec.FastrecError), so `except fastrec.FastrecError` catches all."
)
WARNS = re.compile(r"warn|doubt|hint", re.IGNORECASE)
WORD = re.compile(r"(?<!\w)[a-z]{2,}(?!\w)")
MIN_WORDS = 3  # of a message, without its gaps: fewer help nobody who searches


def error_names() -> list[str]:
    """Return the names of the classes of errors."""
    return [
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and issubclass(value, exceptions.FastrecError)
    ]


def text_of(node: ast.expr) -> str:
    """Return the fixed words of a message; a value that varies is an ellipsis."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(value) for value in values)
        case ast.Call(func=ast.Name(id="Argument"), args=[ast.Constant(value=str(name)), *values]):
            return f"{name}={GAP}" if values else name
        case ast.Call(func=ast.Name(id="Text"), args=parts):
            return "".join(map(text_of, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return text_of(left) + text_of(right)
    return GAP


@functools.cache
def messages() -> tuple[tuple[str, str, str], ...]:
    """Return the kind of each message, the module that makes it, and its words."""
    return tuple(_messages())


def _messages() -> Iterator[tuple[str, str, str]]:
    kinds = {*error_names()}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix().removesuffix("/__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).rpartition(".")[2]
            words = tidy("".join(map(text_of, node.args)))
            if called in kinds and is_message(words):
                yield called, module, words
        for words in warnings_in(tree):
            yield "FastrecWarning", module, words


def tidy(words: str) -> str:
    """Return words with single blanks and gaps."""
    words = re.sub(rf"\s+|(?:{GAP}\s*)+", lambda found: f"{GAP} " if GAP in found.group() else " ", words)
    return re.sub(rf"{GAP} (?=[-;:,.)\]'=])", GAP, words).strip()


def is_message(words: str) -> bool:
    """Return whether the words help those who search for them."""
    return len(WORD.findall(words)) >= MIN_WORDS


def warnings_in(tree: ast.Module) -> Iterator[str]:
    """Yield the warnings of a module: sentences in functions that are about warnings, constants, and outcomes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, body=[_, *body]):
                if WARNS.search(name + (ast.get_docstring(node) or "").partition("\n")[0]):
                    yield from sentences(body)
            case ast.Call(func=ast.Name(id="Hint"), args=[text, *_]) | ast.keyword(arg="outcome", value=text):
                yield from sentences([text])
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str())) if name.isupper():
                if WARNS.search(ast.get_docstring(tree) or ""):
                    yield from sentences([node.value])


def sentences(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the longest strings in some nodes."""
    for node in nodes:
        if isinstance(node, ast.expr) and is_message(words := tidy(text_of(node))):
            yield words
        elif not isinstance(node, ast.Assert):
            yield from sentences(ast.iter_child_nodes(node))


def page() -> str:
    """Return the page of the index."""
    found = defaultdict(lambda: defaultdict(set))
    for kind, module, words in messages():
        found[kind][module.partition("/")[0]].add(words)
    for module, warnings in found["FastrecWarning"].items():
        warnings.difference_update(*(own[module] for kind, own in found.items() if kind != "FastrecWarning"))
    parts = ["# Errors and warnings", ABOUT]
    for kind in [*error_names(), "FastrecWarning"]:
        if kind in found:
            parts.append(f"## {kind}")
            parts.append((inspect.getdoc(getattr(exceptions, kind)) or "").partition("\n")[0])
            for module, own in sorted((module, own) for module, own in found[kind].items() if own):
                parts.append(f"### {kind} of {module} {{ #{kind}-{module} }}")
                parts.append("\n".join(f"- {escaped(words)}" for words in sorted(own)))
    return "\n\n".join(parts) + "\n"


def escaped(words: str) -> str:
    """Return words without a meaning in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", words)
