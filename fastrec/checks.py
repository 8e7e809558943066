"""Checks of arguments, and of documents that were read from bytes."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, MissingFileError, shown

__all__ = [
    "COUNT",
    "LABEL",
    "MAX_COUNT",
    "NUMBER",
    "SETTING",
    "SHARE",
    "MaybeNone",
    "check_choice",
    "check_file",
    "check_flag",
    "check_form",
    "check_level",
    "check_path",
    "check_progress",
    "check_text",
    "check_there",
    "is_number",
    "is_whole",
    "listed",
    "listed_in_order",
    "near_name",
    "one_of",
    "refuse_path",
    "some_names",
    "suggest_name",
    "whole_number",
    "with_article",
]


MAX_NAME_LENGTH = 200  # of which the nearest known one is looked for
MAX_NAMES = 12  # that a message lists
USUAL_COLUMNS = frozenset(("user_id", "item_id", "rank", "score", "gain", "label"))


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """An error if the value of an argument is none of the texts that it may be."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}; found {shown(value)}")


def check_flag(name: str, value: Any) -> bool:
    """True or False, of Python or of NumPy: a text such as "no" would count as true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputTypeError(f"{name} must be True or False, found {shown(value)}")


def check_level(level: Any) -> float:
    """The level of an interval."""
    if not isinstance(level, numbers.Real) or not 0 < level < 1:  # type: ignore[operator] # nor True or False
        raise InputError(f"level must lie between 0 and 1, both excluded, not {shown(level)}")
    return float(level)


def check_path(name: str, path: Any) -> str:
    """The text of a path, which may be an `os.PathLike`, of something that may be there or not."""
    if not isinstance(path, str | os.PathLike) or not isinstance(found := os.fspath(path), str):
        raise InputTypeError(f"{name} must be a path, a text or an os.PathLike, found {shown(path)}")
    try:
        if os.fsencode(found) and "\0" not in found:
            return found
    except UnicodeEncodeError:  # an unpaired surrogate
        pass
    raise InputError(f"{name} must be a name that a file can have, found {shown(found)}")


def check_there(path: str) -> None:
    """An error of ours if a path leads to nothing; whatever else keeps it from being found is said by the system."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f"{path}: no such file") from None


def check_file(name: str, path: Any) -> str:
    """The text of a path that is not that of a folder."""
    found = check_path(name, path)
    if os.path.isdir(found):
        raise InputError(f"{found}: is a folder; a file name is wanted")
    return found


def refuse_path(name: str, value: Any) -> None:
    """An error if a path is given where data are wanted."""
    if isinstance(value, str | os.PathLike):
        kind = type(value).__name__
        raise InputTypeError(f"{name} must be data, found a {kind}, {shown(value)}: fastrec.evaluate_files reads files")


def check_progress(progress: Any) -> None:
    """An error if nothing that can be called is to be told of progress."""
    if progress is not None and not callable(progress):
        raise InputTypeError(f"progress must be called as progress(done, total), found {shown(progress)}")


def check_text(name: str, value: Any) -> str:
    """A text, or an error."""
    if isinstance(value, str):
        return value
    raise InputTypeError(f"{name} must be a text, found {shown(value)}")


def listed(values: Iterable[Any], name: str) -> list[Any]:
    """The values one by one; an error of ours where something only looks as if it could be read so."""
    try:
        return list(values)
    except TypeError as error:
        raise InputTypeError(f"{name} cannot be a {type(values).__name__}: {error}") from error


def listed_in_order(values: Iterable[Any], name: str) -> list[Any]:
    """The values one by one, in the order given: a set has none, and what a mapping says of its keys would be lost."""
    if isinstance(values, (Mapping, set, frozenset)):
        raise InputTypeError(
            f"{name} must be a list, found a {type(values).__name__}; a cut-off of its own stands in the text of a "
            "metric: write 'ndcg@5'"
        )
    return listed(values, name)


def some_names(names: Sequence[str], how_to_list: str = "") -> str:
    """Names for a message: all if they are few, else the first, their number, and how to see the others."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    rest = f"{len(names)} in all{': ' + how_to_list if how_to_list else ''}"
    return f"{', '.join(names[: MAX_NAMES - 4])}, … ({rest})"


def with_article(name: str) -> str:
    """A noun after "a" or "an"."""
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def whole_number(value: Any) -> int | None:
    """The value as an int if it is a whole number of any library; None for anything else, True and False too."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def is_whole(kind: type) -> bool:
    """Whether a type is one of whole numbers: bool and NumPy's timedelta64 only derive from such."""
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool | np.timedelta64)


def is_number(value: Any) -> bool:
    """Whether a value is a whole or floating number, of Python or NumPy; see `is_whole`."""
    return is_whole(type(value)) or isinstance(value, float | np.floating)


def near_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like one that was given; None of a name that is far too long to be one."""
    import difflib  # only errors need it

    if len(name) > MAX_NAME_LENGTH:  # comparing takes seconds for 10^5 characters
        return None
    return next(iter(difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)), None)


def suggest_name(name: str, found: Sequence[Any]) -> str:
    """What to add to an error about a column that is not there: the nearest name, and the names there are."""
    if not found:
        return "; it has no columns"

    # one usual column is no misspelling of another
    taken = USUAL_COLUMNS if name in USUAL_COLUMNS else frozenset()
    lowered = {str(other).lower(): other for other in found if str(other) not in taken}
    near = near_name(name, lowered)
    hint = f" (did you mean {lowered[near]!r}?)" if near is not None else ""
    shown = ", ".join(repr(other) for other in found[:20]) + (", …" if len(found) > 20 else "")
    return f"{hint}; its columns are {shown}"


# The form of a document: declared as data, checked whole before any of it is used

MAX_COUNT = 2**63 - 1  # of users or rows, which are kept as int64


class Rule:
    """A test of a single value, and what the value must be."""

    def __init__(self, wanted: str, holds: Callable[[Any], bool]) -> None:
        self.wanted = wanted
        self.holds = holds


class MaybeNone:
    """A form, or null."""

    def __init__(self, form: Any) -> None:
        self.form = form


COUNT = Rule(
    "a whole number from 0 to 2^63 - 1", lambda value: (whole_number(value) is not None) and 0 <= value <= MAX_COUNT
)
LABEL = Rule("a string or an integer", lambda value: isinstance(value, str) or whole_number(value) is not None)
INFINITIES = ("Infinity", "-Infinity")  # as JSON has them


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return True
    return whole_number(value) is not None and abs(value) < 2**1024  # a float can have it


def one_of(choices: Iterable[str]) -> Rule:
    """The rule that a value is one of these texts."""
    known = list(choices)
    return Rule(f"one of {', '.join(known)}", lambda value: isinstance(value, str) and value in known)


NUMBER = Rule(
    "a number, null for NaN, or an infinity as text",
    lambda value: value is None or (value in INFINITIES if isinstance(value, str) else _is_number(value)),
)
SHARE = Rule(
    "a number from 0 to 1, or null for NaN",
    lambda value: value is None or (_is_number(value) and (0 <= value <= 1 or math.isnan(value))),
)
SETTING = Rule(
    "a number, a text, true, false or null",
    lambda value: value is None or isinstance(value, bool | str) or _is_number(value),
)
TYPES = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}


def check_form(value: Any, form: Any, where: str) -> None:
    """Raise InputError if a value is not of a form.

    A form is a type, a `Rule`, `MaybeNone`, `[form]` for a list of such, `(form, form)` for a list of these, `{str:
    form}` for an object of any names, or `{"name": form}` for an object with these; a name that ends in "?" may lack.
    With both, `str` is the form of the names that are not listed.
    """
    if isinstance(form, MaybeNone):
        if value is not None:
            check_form(value, form.form, where)
    elif isinstance(form, Rule):
        _require(form.holds(value), where, form.wanted, value)
    elif isinstance(form, type):
        _require(isinstance(value, form), where, TYPES[form], value)
    elif isinstance(form, list | tuple):
        _require(isinstance(value, list), where, TYPES[list], value)
        forms = form if isinstance(form, tuple) else form * len(value)
        _require(len(value) == len(forms), where, f"a list of {len(forms)}", value)
        for at, (own, of_own) in enumerate(zip(value, forms, strict=True)):
            check_form(own, of_own, f"{where}[{at}]")
    else:
        _check_object(value, form, where)


def _check_object(value: Any, form: dict[Any, Any], where: str) -> None:
    _require(isinstance(value, dict), where, TYPES[dict], value)
    listed = {name.removesuffix("?"): name for name in form if name is not str}
    for plain, name in listed.items():
        if plain in value:
            check_form(value[plain], form[name], f"{where}.{plain}")
        elif plain == name:
            raise InputError(f"{where} must have {name!r}, found {shown(sorted(value))}")
    if str in form:
        for name in value:
            if name not in listed:
                check_form(value[name], form[str], f"{where}[{shown(name)}]")


def _require(holds: bool, where: str, wanted: str, value: Any) -> None:  # noqa: FBT001 - what is required
    if not holds:
        raise InputError(f"{where} must be {wanted}, found {shown(value)}")
