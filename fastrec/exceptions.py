"""Every error that fastrec raises on purpose.

Each is a `FastrecError` and also the built-in error it is a kind of, so callers may catch either.
A message says what was found, what was wanted and where.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class FastrecError(Exception):
    """Any error that fastrec raises on purpose."""


class InputError(FastrecError, ValueError):
    """An argument or a file has the right type and a value that cannot be used."""


class InputTypeError(FastrecError, TypeError):
    """An argument is of a type that cannot be used."""


class MetricError(InputError):
    """A metric text has an unknown name or option; the message names the nearest known one."""


class MetricNotFoundError(MetricError, KeyError):
    """A report was asked for a metric that it does not hold."""

    # KeyError prints the repr of its message, in quotes: right for a key, wrong for a sentence.
    __str__ = Exception.__str__


class FastrecWarning(UserWarning):
    """A result is right but probably not what was meant."""


class MissingExtraError(FastrecError, ImportError):
    """A feature needs an optional package that is not installed."""


def whole_number(value: Any) -> int | None:
    """The value as an int if it is a whole number of any library; None for anything else, True and False too."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def suggest_name(name: str, found: Sequence[Any]) -> str:
    """What to add to an error about a column that is not there: the nearest name, and the names there are."""
    import difflib  # only errors need it

    if not found:
        return "; it has no columns"

    lowered = {str(other).lower(): other for other in found}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    hint = f" (did you mean {lowered[near[0]]!r}?)" if near else ""
    shown = ", ".join(repr(other) for other in found[:20]) + (", …" if len(found) > 20 else "")
    return f"{hint}; its columns are {shown}"


def require(module: str, extra: str, *, what: str = "this") -> ModuleType:
    """Import an optional module, or say in one line which extra brings it.

    Parameters
    ----------
    module : the module to import, such as "pyarrow.parquet".
    extra : the extra of fastrec that installs it.
    what : the feature that needs it, as the subject of the message.

    Raises
    ------
    MissingExtraError : the package is not installed. A package that is installed and fails while
        it is imported raises its own error: installing it again would not help.

    Examples
    --------
    >>> require("json", "cli").__name__
    'json'
    >>> require("no_such_package", "cli", what="reading files")
    Traceback (most recent call last):
    fastrec.exceptions.MissingExtraError: reading files needs no_such_package: pip install 'fastrec[cli]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(f"{what} needs {package}: pip install 'fastrec[{extra}]'") from None
