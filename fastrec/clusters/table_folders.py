"""Folders that are tables of Delta, Iceberg or Hudi: they keep files of earlier versions beside the current ones."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable

DELTA, ICEBERG, HUDI = "Delta", "Iceberg", "Hudi"
LOG, METADATA = "_delta_log", "metadata"
MARKS = {LOG: DELTA, ".hoodie": HUDI}  # what is in the folders of these tables only
ENDINGS = (".metadata.json", ".metadata.json.gz")  # of the files that tell the versions of Iceberg tables


def find_table(path: str) -> tuple[str, str]:
    """Return the folder of a table and its kind; the path is that of the folder, or of an Iceberg metadata file.

    Any other path is returned with the kind "".
    """
    folder = os.path.dirname(os.path.abspath(path))
    if path.endswith(ENDINGS) and os.path.basename(folder) == METADATA and os.path.isfile(path):
        above, name = os.path.split(os.path.dirname(path))
        return (above or os.curdir) if name == METADATA else os.path.join(above, name, os.pardir), ICEBERG
    return path, _kind_of(path)


def is_metadata(name: str) -> bool:
    """Return whether a file in a folder `METADATA` makes the folder around it an Iceberg table."""
    return name.endswith(ENDINGS) and re.match("v[0-9]|[0-9].*-", name) is not None


def _kind_of(folder: str) -> str:
    """Return the kind of table that a folder is; "" for any other path."""
    for name, kind in MARKS.items():
        if os.path.lexists(os.path.join(folder, name)):
            return kind
    with contextlib.suppress(OSError, ValueError):  # most folders have no such folder
        if any(map(is_metadata, os.listdir(os.path.join(folder, METADATA)))):
            return ICEBERG
    return ""


def find_inside(files: Iterable[str]) -> tuple[str, str, str] | None:
    """Return the first of some files that is in the folder of a table, however deep, the folder, and its kind."""
    real_path = functools.cache(os.path.realpath)
    checked = set()
    for file in files:
        real = os.path.dirname(os.path.realpath(file)) if os.path.islink(file) else real_path(os.path.dirname(file))
        for place in (os.path.dirname(os.path.abspath(file)), real):
            folder = place
            while folder not in checked:
                checked.add(folder)
                if kind := _kind_of(folder):
                    return file, folder, kind
                folder = os.path.dirname(folder)
    return None
