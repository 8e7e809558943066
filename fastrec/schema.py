"""The form of a document that was read from bytes: declared as data, checked whole before any of it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from fastrec.exceptions import InputError, shown, whole_number

__all__ = ["COUNT", "LABEL", "MAX_COUNT", "NUMBER", "SETTING", "SHARE", "MaybeNone", "check_form", "one_of"]

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
