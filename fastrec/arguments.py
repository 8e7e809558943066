"""Options that functions share: parameters and documentation, copied from the call that has them written out."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from fastrec.checks import nearest
from fastrec.exceptions import InputTypeError
from fastrec.policies import Policy

Function = TypeVar("Function", bound=Callable[..., Any])
SECTION = "Parameters\n----------\n"
ELSEWHERE = {  # unknown argument -> a known one of functions that do the same otherwise, and how
    "target": ("label", "; in a data frame, label= names the targets"),
    "prediction": ("score", "; in a data frame, score= names the predictions"),
    "row_by": ("baseline", "; to compare models in a segment of rows, pass its rows alone"),
    "row_groups": ("baseline", "; to compare models in a segment of rows, pass its rows alone"),
}
WIDTH = 108  # of documentation, without its indentation


class CallOption(NamedTuple):
    """The documentation, default and type of an option."""

    doc: str  # its further lines are indented
    default: Any
    type: Any


@functools.cache
def options_in(function: Callable[..., Any]) -> dict[str, CallOption]:
    """Return the options of a function by name: its keyword-only parameters, in their order."""
    docs = _split(function.__doc__)[1]
    return {
        name: CallOption(docs.get(name, ""), parameter.default, parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def pick(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a function takes."""
    return {name: options[name] for name in options_in(function) if name in options}


def differing(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a function that differ from their defaults."""
    known = options_in(function)
    return {name: value for name, value in options.items() if name in known and value is not known[name].default}


def documents(*policies: Policy, others: Callable[..., Any] | None = None) -> Callable[[Function], Function]:
    """Complete the docstring of a call, and give an error for names of other arguments.

    The docstring gets the effects of policies, and what another call says of options.
    """

    def complete(function: Function) -> Function:
        docs = {} if others is None else {name: option.doc for name, option in options_in(others).items()}
        docs |= {policy.name: _effects(policy) for policy in policies}
        docs |= _split(function.__doc__)[1]
        names = inspect.getfullargspec(function).kwonlyargs
        function.__doc__ = _documented(function.__doc__, {name: docs.get(name, "") for name in names})
        return options_of(" ".join(names), fill=False)(function)

    return complete


def options_of(*runs: str | tuple[Callable[..., Any], str], fill: bool = True) -> Callable[[Function], Function]:
    """Give a function options of others: parameters, documentation, defaults, and an error for other names.

    A run is a function and the names of some of its options; names alone place the function's own among them.
    With `fill`, the function gets every option. Without, it gets those that the call gives.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        owned = [(function, run) if isinstance(run, str) else run for run in runs]
        options = {name: options_in(owner)[name] for owner, names in owned for name in names.split()}
        defaults = {
            name: option.default for name, option in options.items() if fill and name not in signature.parameters
        }

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            if given.keys() <= known:
                return function(*args, **defaults | given)
            raise _unknown(function, given, known)

        own = signature.parameters.values()
        parameters = [each for each in own if each.name not in options and each.kind is not each.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
            for name, option in options.items()
        ]
        known = {each.name: each for each in parameters if each.name != "self"}.keys()
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__doc__ = _documented(function.__doc__, {name: option.doc for name, option in options.items()})
        return call  # type: ignore[return-value]

    return decorate


def _unknown(function: Callable[..., Any], given: Mapping[str, Any], known: Collection[str]) -> InputTypeError:
    """Return the error for an argument that a function does not take."""
    wrong = next(name for name in given if name not in known)
    other, words = ELSEWHERE.get(wrong, ("", ""))
    hint = words if other in known else nearest(wrong, list(known))
    return InputTypeError(f"{function.__qualname__} takes no argument {wrong!r}{hint}")


def _effects(policy: Policy) -> str:
    """Return the documentation of a policy: its case, then the effects of its values."""
    effects = textwrap.fill(f"{policy.describe()} {policy.note}".strip(), WIDTH)
    return f"{policy.case}\n{textwrap.indent(effects, '    ')}"


def _split(doc: str | None) -> tuple[str, dict[str, str], str]:
    """Split a docstring, if there is one, into what is before its parameters, their texts, and what follows."""
    before, section, rest = inspect.cleandoc(doc or "").partition(SECTION)
    parameters = re.split(r"\n\n\w+\n---", rest, maxsplit=1)[0]
    texts = (entry.partition(" : ") for entry in re.split(r"\n(?=\w)", parameters) if section)
    return before + section, {names: text for names, _, text in texts}, rest[len(parameters) :]


def _documented(doc: str | None, docs: Mapping[str, str]) -> str:
    """Return a docstring with the documentation of options at the end of its parameters, if it has any."""
    before, texts, after = _split(doc)
    if not before.endswith(SECTION):
        return before
    texts = {**{name: text for name, text in texts.items() if name not in docs}, **docs}
    return before + "\n".join(f"{name} : {text}" for name, text in texts.items()) + after
