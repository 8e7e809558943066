"""Reasons for errors of PyArrow, fsspec and Python, from their messages: these errors have no codes."""

from __future__ import annotations

import csv
import re
from urllib.parse import unquote


def one_line(error: Exception) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split())


def reason_of_csv(error: csv.Error) -> str:
    """Return what Python's parser could not read, and what to do about it.

    The parser's limit on fields holds for the whole process, so only the user's program may raise it.
    """
    text = str(error)
    if text.startswith("field larger than field limit"):
        return (
            f"a value has more than {csv.field_size_limit():,} characters, the limit of Python's csv module: is a "
            "quote not closed? If all are, write the rows as Parquet, or call csv.field_size_limit with a larger "
            "number first"
        )
    return "a quote is not closed" if text == "unexpected end of data" else text


def reason_of_url(error: Exception, url: str) -> str:
    """Return the message of an error in one line, or only its kind if it repeats the user or the query of a URL."""
    reason = one_line(error)
    place = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    secrets = re.split(r"[:@&=?]", f"{place.rpartition('@')[0]}&{url.partition('?')[2]}")
    if "://" in reason or any(secret and (secret in reason or unquote(secret) in reason) for secret in secrets):
        return type(error).__name__
    return reason
