"""Signatures and documentation of functions from the groups of arguments that they take."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from fastrec.arguments.groups import DEFAULTS
from fastrec.checks import nearest
from fastrec.exceptions import InputTypeError
from fastrec.policies import Policy

Function = TypeVar("Function", bound=Callable[..., Any])
Group = TypeVar("Group")
SECTION = "Parameters\n----------\n"
ELSEWHERE = {  # unknown argument -> a known one of functions that do the same otherwise, and how
    "target": ("label", "; in a data frame, label= names the targets"),
    "prediction": ("score", "; in a data frame, score= names the predictions"),
    "row_by": ("baseline", "; to compare models in a segment of rows, pass its rows alone"),
    "row_groups": ("baseline", "; to compare models in a segment of rows, pass its rows alone"),
}
WIDTH = 108  # of documentation, without its indentation


class Documented(NamedTuple):
    """The documentation, default and type of an argument."""

    doc: str
    default: Any
    type: Any


def arguments_of(group: Any) -> dict[str, Documented]:
    """Return the arguments of a group by name, in the order of signatures."""
    return {
        name: Documented(_text(hint.__metadata__[0]), DEFAULTS.get(name), hint.__origin__)
        for name, hint in group.__annotations__.items()
    }


@functools.cache
def _text(documentation: str | Policy) -> str:
    """Return the documentation of an argument: a line, then further lines."""
    if isinstance(documentation, str):
        return inspect.cleandoc(documentation)
    effects = textwrap.fill(f"{documentation.describe()} {documentation.note}".strip(), WIDTH)
    return f"{documentation.case}\n{effects}"


def pick(group: type[Group], given: Mapping[str, Any]) -> Group:
    """Return the arguments that belong to a group."""
    names: Any = group.__annotations__
    return {name: given[name] for name in names if name in given}  # type: ignore[return-value]


def takes(group: type[Any], *, fill: bool = True) -> Callable[[Function], Function]:
    """Give a function the arguments of a group: signature, documentation, defaults, and an error for other names.

    With `fill`, the function gets every argument of the group. Without, it gets those that the call gives.
    """
    arguments = arguments_of(group)
    defaults = {name: own.default for name, own in arguments.items()} if fill else {}

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            if given.keys() <= known.keys():
                return function(*args, **{**defaults, **given})
            wrong = next(name for name in given if name not in known)
            other, words = ELSEWHERE.get(wrong, ("", ""))
            hint = words if other in known else nearest(wrong, list(known))
            raise InputTypeError(f"{function.__qualname__} takes no argument {wrong!r}{hint}")

        own = list(inspect.signature(function).parameters.values())[:-1]  # the last one holds the group
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=argument.default, annotation=argument.type)
            for name, argument in arguments.items()
        ]
        known = dict.fromkeys([*(parameter.name for parameter in own if parameter.name != "self"), *arguments])
        signature = inspect.signature(function)
        call.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        call.__doc__ = documented(function.__doc__ or "", arguments)
        return call  # type: ignore[return-value]

    return decorate


def documented(doc: str, arguments: Mapping[str, Documented]) -> str:
    """Return a docstring with the arguments at the end of its section of parameters, if it has one."""
    text = inspect.cleandoc(doc)
    start = text.find(SECTION)
    if start < 0:
        return text
    following = re.search(r"\n\n\w+\n---", text[start + len(SECTION) :])
    end = len(text) if following is None else start + len(SECTION) + following.start()
    more = (f"\n{name} : " + argument.doc.replace("\n", "\n    ") for name, argument in arguments.items())
    return text[:end] + "".join(more) + text[end:]
