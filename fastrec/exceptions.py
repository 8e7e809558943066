"""Every error that fastrec raises on purpose.

Each is a `FastrecError` and also the built-in error it is a kind of, so callers may catch either.
A message says what was found, what was wanted and where.
"""

from __future__ import annotations

import importlib
import numbers
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from fastrec.threads import uninterrupted

LONGEST = 1000  # signs of a message: what was found may be as long as the caller likes
LONGEST_VALUE = 400  # of which a value that was given
LONGEST_NAME = 200  # of which the nearest known one is looked for
MOST_NAMES = 12  # that a message lists
USUAL_COLUMNS = frozenset(("user_id", "item_id", "rank", "score", "gain", "label"))


class FastrecError(Exception):
    """Any error that fastrec raises on purpose. Its message is one line, the middle left out of a very long one."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut_line(message))


class InputError(FastrecError, ValueError):
    """An argument or a file has the right type and a value that cannot be used."""


class InputTypeError(FastrecError, TypeError):
    """An argument is of a type that cannot be used."""


class MetricError(InputError):
    """A metric text has an unknown name or option; the message names the nearest known one."""


class MissingFileError(InputError, FileNotFoundError):
    """A path that is to be read leads to no file."""

    # OSError prints a number of the system before its message, if it has one
    __str__ = Exception.__str__


class MetricNotFoundError(MetricError, KeyError):
    """A report was asked for a metric that it does not hold."""

    # KeyError prints the repr of its message, in quotes: right for a key, wrong for a sentence.
    __str__ = Exception.__str__


class FastrecWarning(UserWarning):
    """A result is right but probably not what was meant."""


def warn(lines: Iterable[str]) -> None:
    """Warn of each line, at the line of the program that called fastrec."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - warnings.warn counts frames, and skips no package before 3.12
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fastrec":
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(one_line(line), FastrecWarning, stacklevel=level)


class MissingExtraError(FastrecError, ImportError):
    """A feature needs an optional package that is not installed."""


def one_line(text: str) -> str:
    """Line ends become spaces, and what a terminal would obey is shown instead."""
    return shown_signs(" ".join(line.strip() for line in text.splitlines()))


def cut_line(text: str) -> str:
    """A text as a line of at most `LONGEST` signs, the middle left out of a longer one."""
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 300]} … {line[-297:]}"


def shown_signs(text: str) -> str:
    """What a terminal would obey, but for line ends, is shown instead."""
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)


def shown(value: Any) -> str:
    """A value that a caller gave, for a message: its repr, the middle left out of a long one; its type if it has none.

    Python itself refuses to write whole numbers of more than 4,300 digits.
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of somebody else's class
        return f"a value of type {type(value).__name__} that cannot be shown"
    return cut_value(text)


def cut_value(text: str) -> str:
    """A text that a caller gave, the middle left out of a long one."""
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 100]} … {text[-97:]}"


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
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    rest = f"{len(names)} in all{': ' + how_to_list if how_to_list else ''}"
    return f"{', '.join(names[: MOST_NAMES - 4])}, … ({rest})"


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

    if len(name) > LONGEST_NAME:  # comparing takes seconds for 10^5 characters
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
    MemoryError : `ulimit -v` leaves less address space than the package takes.

    Examples
    --------
    >>> require("json", "cli").__name__
    'json'
    >>> require("no_such_package", "cli", what="reading files")
    Traceback (most recent call last):
    fastrec.exceptions.MissingExtraError: reading files needs no_such_package: pip install 'fastrec[cli]'
    """
    try:
        if module in sys.modules:  # where another thread may still be at it
            return importlib.import_module(module)
        from fastrec.control_groups import check_space  # `import fastrec` loads as little as it can

        check_space(module.partition(".")[0], what)
        return uninterrupted(lambda: importlib.import_module(module))
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(f"{what} needs {package}: pip install 'fastrec[{extra}]'") from None
