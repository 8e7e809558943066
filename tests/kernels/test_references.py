"""Kernels that count references to arrays and those that do not call each other only where no array is returned."""

import ast
from pathlib import Path

import fastrec

MAKES = {"empty", "empty_like", "zeros", "zeros_like", "ones", "full", "arange", "array", "concatenate", "copy"}
FUNCTIONS = {
    (path.stem, node.name): node
    for path in sorted((Path(fastrec.__file__).parent / "kernels").glob("*.py"))
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(own) for own in node.decorator_list)
}
COUNTING = {key for key, node in FUNCTIONS.items() if "allocates=True" in ast.unparse(node.decorator_list[0])}


def calls(node: ast.AST) -> set[str]:
    """Return the names of the functions and methods that are called."""
    found = (own.func for own in ast.walk(node) if isinstance(own, ast.Call))
    return {func.attr if isinstance(func, ast.Attribute) else ast.unparse(func) for func in found}


def homes(name: str) -> set[tuple[str, str]]:
    """Return all functions of a name."""
    return {key for key in FUNCTIONS if key[1] == name}


def may_return_arrays(key: tuple[str, str]) -> bool:
    """Return whether a function returns a part of an array, a view, an argument, a named tuple, or calls one that does.

    Numbers that are read from arrays with an index other than a constant count as numbers.
    """
    node = FUNCTIONS[key]
    arguments = {own.arg for own in node.args.args}
    indexed = {ast.unparse(own.value) for own in ast.walk(node) if isinstance(own, ast.Subscript)}
    for own in ast.walk(node):
        if not isinstance(own, ast.Return) or own.value is None:
            continue
        called = calls(own.value) - {key[1]}
        if any(call in ("reshape", "view") or call[:1].isupper() for call in called):
            return True
        if any(may_return_arrays(home) for call in called for home in homes(call)):
            return True
        for value in own.value.elts if isinstance(own.value, ast.Tuple) else [own.value]:
            if isinstance(value, ast.Name) and value.id in arguments & indexed:
                return True
            if isinstance(value, ast.Subscript) and (
                any(isinstance(part, ast.Slice) for part in ast.walk(value)) or ast.unparse(value.slice).isupper()
            ):
                return True
    return False


def test_functions_that_make_arrays_say_so():
    assert {key for key, node in FUNCTIONS.items() if calls(node) & MAKES} <= COUNTING


def test_no_array_is_returned_between_functions_that_count_references_and_others():
    """The caller would free what it does not own, or never free what it owns."""
    returning = set(filter(may_return_arrays, FUNCTIONS))
    names = {name for _, name in returning}
    assert {"program_of", "scratch_for", "new_lookup", "kept_blocks", "all_events", "take_events"} <= names
    wrong = [
        (key, callee)
        for key, node in FUNCTIONS.items()
        for callee in set().union(*map(homes, calls(node))) & returning
        if (key in COUNTING) != (callee in COUNTING)
    ]
    assert not wrong
