"""Checks of arguments, and of the form of documents read from bytes."""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fastrec.exceptions import Argument, InputError, InputTypeError, Known, Listing, MissingFileError, Text, shown

__all__ = [
    "MAX_ITEMS",
    "URL_PACKAGES",
    "MinGain",
    "check_choice",
    "check_file",
    "check_flag",
    "check_level",
    "check_min_gain",
    "check_n_items",
    "check_path",
    "check_progress",
    "check_text",
    "check_there",
    "is_any_url",
    "is_number",
    "is_url",
    "is_whole",
    "listed",
    "listed_in_order",
    "near_name",
    "nearest",
    "refuse_path",
    "shown_url",
    "some_names",
    "suggest_name",
    "whole_number",
    "with_article",
]

MinGain = float | Literal["any"]  # from which gain an item is relevant

URL_PACKAGES = {  # {scheme of URLs that fastrec reads: the package that fsspec needs for it}
    **dict.fromkeys(("http", "https"), "aiohttp"),
    "s3": "s3fs",
    "gs": "gcsfs",
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    "hf": "huggingface_hub",
}
URL = re.compile(rf"({'|'.join(URL_PACKAGES)})://", re.IGNORECASE)
ANY_URL = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)  # any other, too; the bound keeps a search short
MAX_ITEMS = 2**53  # numbers of items are exact in a double
MAX_NAME_LENGTH = 200  # longer names get no suggestion
MAX_NAMES = 12  # listed in a message
USUAL_COLUMNS = frozenset(("user_id", "item_id", "rank", "score", "gain", "label"))
OTHER_NAMES = {  # of usual columns in public logs, regardless of case and of characters between words
    "user_id": ("user", "userid", "uid", "customerid", "memberid", "visitorid", "reviewerid", "queryid", "qid"),
    "item_id": (
        *("item", "itemid", "iid", "movieid", "productid", "articleid", "bookid", "newsid", "trackid", "songid"),
        *("artistid", "videoid", "gameid", "businessid", "contentid", "docid", "asin", "sku", "movie", "product"),
    ),
}


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless the value of an argument is one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(Argument(name), f" must be one of {', '.join(choices)}; found {shown(value)}")


def check_flag(name: str, value: Any) -> bool:
    """Return a bool of Python or NumPy as a bool; raise for others: a string such as "no" would count as true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputTypeError(Argument(name), f" must be True or False, found {shown(value)}")


def check_level(level: Any, name: str = "level") -> float:
    """Return the level of an interval, or another chance with a name; raise unless 0 < level < 1."""
    if not isinstance(level, numbers.Real) or not 0 < level < 1:  # type: ignore[operator] # nor True or False
        raise InputError(Argument(name), f" must lie between 0 and 1, both excluded, found {shown(level)}")
    return float(level)


def check_min_gain(min_gain: Any) -> float | None:
    """Return the argument as a float, or None."""
    if min_gain is None:
        return None
    if not is_number(min_gain):
        raise InputTypeError(Argument("min_gain"), f" must be a number, found {shown(min_gain)}")
    try:
        value = float(min_gain)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise InputError(Argument("min_gain"), f" must be finite and above 0, found {shown(min_gain)}")
    return value


def check_n_items(n_items: Any) -> int | None:
    """Return the argument as an int, or None."""
    if n_items is None:
        return None
    number = whole_number(n_items)
    if number is None:
        raise InputTypeError(Argument("n_items"), f" must be an integer, found {shown(n_items)}")
    if not 1 <= number <= MAX_ITEMS:
        raise InputError(Argument("n_items"), f" must be from 1 to 2**53, found {shown(n_items)}")
    return number


def check_path(name: str, path: Any) -> str:
    """Return the path as a string. The file need not exist."""
    if not isinstance(path, str | os.PathLike) or not isinstance(found := os.fspath(path), str):
        raise InputTypeError(Argument(name), f" must be a path, a string or an os.PathLike, found {shown(path)}")
    try:
        if os.fsencode(found) and "\0" not in found:
            return found
    except UnicodeEncodeError:  # an unpaired surrogate
        pass
    raise InputError(Argument(name), f" must be a valid file name, found {shown(found)}")


def is_url(path: Any) -> bool:
    """Return whether a path is the URL of a place that fastrec reads."""
    return isinstance(path, str) and URL.match(path) is not None


def is_any_url(path: str) -> bool:
    """Return whether a path is a URL, of a place that fastrec reads or of another one."""
    return ANY_URL.match(path) is not None


def shown_url(path: str) -> str:
    """Return a path as messages show it: a URL without its user, password and query, which may hold credentials."""
    if not (found := ANY_URL.search(path)):
        return path
    place, slash, file = re.split(r"[?#]", path[found.end() :], maxsplit=1)[0].partition("/")
    if "@" not in place and re.search(r":(?!\d*$)", place) and "@" in file:  # a password with a slash
        place, slash, file = file.rpartition("@")[2].partition("/")
    return f"{path[: found.start()]}{found[0].lower()}{place.rpartition('@')[2]}{slash}{file}"


def check_there(path: str) -> os.stat_result:
    """Return what the system knows of a file; raise `MissingFileError` if a path does not exist.

    Other errors of the system pass through.
    """
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if is_url(path):
            why = ": a URL is not read here; copy it to a file first"
        else:
            why = f": no such file; URLs begin with {', '.join(URL_PACKAGES)}" if "://" in path else ": no such file"
        raise MissingFileError(shown_url(path), why) from None


def check_file(name: str, path: Any) -> str:
    """Return the path as a string; raise if it is a folder."""
    found = check_path(name, path)
    if os.path.isdir(found):
        raise InputError(found, ": is a folder; expected a file name")
    return found


def refuse_path(name: str, value: Any, mend: str = "fastrec.evaluate_files reads files") -> None:
    """Raise if an argument for data is a path."""
    if isinstance(value, str | os.PathLike):
        kind = type(value).__name__
        raise InputTypeError(name, f" must be data, found {with_article(kind)}, {shown(value)}: {mend}")


def check_progress(progress: Any) -> None:
    """Raise unless `progress` is None or callable."""
    if progress is not None and not callable(progress):
        raise InputTypeError(f"progress must be callable as progress(done, total), found {shown(progress)}")


def check_text(name: str, value: Any) -> str:
    """Return a string; raise for anything else."""
    if isinstance(value, str):
        return value
    raise InputTypeError(Argument(name), f" must be a string, found {shown(value)}")


def listed(values: Iterable[Any], name: str) -> list[Any]:
    """Return the values as a list; raise `InputTypeError` for objects that only seem iterable."""
    try:
        return list(values)
    except TypeError as error:
        raise InputTypeError(f"{name} cannot be {with_article(type(values).__name__)}: {error}") from error


def listed_in_order(values: Iterable[Any], name: str) -> list[Any]:
    """Return the values as a list, in the given order; raise for a set, which has none, and for a dict.

    A list of the keys of a dict would lose its values.
    """
    if isinstance(values, (Mapping, set, frozenset)):
        raise InputTypeError(
            f"{name} must be a list, found {with_article(type(values).__name__)}; to give a metric its own cut-off, "
            "write 'ndcg@5'"
        )
    return listed(values, name)


def some_names(names: Sequence[str], how_to_list: str = "") -> str:
    """Return names for a message: all if they are few, else the first, their number, and how to list the others."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    some = f"{', '.join(names[: MAX_NAMES - 4])}, … ({len(names)} of them"
    return Text(some, Listing(how_to_list) if how_to_list else "", ")")


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: "1 user" or "2,000 users"; `several` is a plural that does not just add an s."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def with_article(name: str) -> str:
    """Return a noun with "a" or "an" before it."""
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def whole_number(value: Any) -> int | None:
    """Return the value as an int if it is an integer of any library; None for anything else, also for a bool."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def is_whole(kind: type) -> bool:
    """Return whether a type is an integer type; bool and NumPy's timedelta64 derive from one but are none."""
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool | np.timedelta64)


def is_number(value: Any) -> bool:
    """Return whether a value is an integer or a float, of Python or NumPy; see `is_whole`."""
    return is_whole(type(value)) or isinstance(value, float | np.floating)


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`; None if none is, or if `name` is far too long."""
    import difflib  # only errors need it

    if len(name) > MAX_NAME_LENGTH:  # comparing takes seconds for 10^5 characters
        return None
    return next(iter(difflib.get_close_matches(name.lower().strip("_"), list(known), n=1, cutoff=0.5)), None)


def suggest_name(name: str, found: Sequence[Any]) -> str:
    """Return what to add to an error about a missing column: the nearest name, and the existing names."""
    if not found:
        return "; it has no columns"

    # a usual column is not a misspelling of another
    taken = USUAL_COLUMNS if name in USUAL_COLUMNS else frozenset()
    lowered = {str(other).lower(): other for other in found if str(other) not in taken}
    near = _near_column(name, lowered)
    hint = f" (did you mean {lowered[near]!r}?)" if near is not None else ""
    shown = ", ".join(repr(other) for other in found[:20]) + (", …" if len(found) > 20 else "")
    return f"{hint}; its columns are {shown}"


def _near_column(name: str, lowered: Iterable[str]) -> str | None:
    """Return the column that probably holds what another should: by a usual name of it, else by its spelling."""
    plain = {"".join(filter(str.isalnum, column)): column for column in lowered}
    usual = next((plain[other] for other in OTHER_NAMES.get(name, ()) if other in plain), None)
    taken = {other for role, others in OTHER_NAMES.items() if name in OTHER_NAMES and role != name for other in others}
    return usual or near_name(name, [column for own, column in plain.items() if own not in taken])


def nearest(found: Any, known: Sequence[str], how_to_list: str | None = None) -> str:
    """Return a suggestion to end an error with: the nearest known name, else the known names."""
    near = near_name(str(found), known)
    if near is not None:
        return f"; did you mean {near!r}?"
    names = ", ".join(known) if how_to_list is None else some_names(known, how_to_list)
    return Text(Known(Text("; known: ", names)))


def explain_formula(error: Exception, statistics: Any) -> str:
    """Return what to write in place of what a formula cannot do with statistics."""
    if isinstance(error, AttributeError) and error.obj is statistics:
        known = sorted(name for name in dir(statistics) if not name.startswith("_"))
        return f"{error.name!r} is no statistic{nearest(error.name, known)}"
    return (
        f"{error}; a statistic is an array with a value per user, so write np.minimum for min, np.where "
        "for if, and np.log for math.log; fastrec.list_metric takes a plain function of one user's list"
    )
