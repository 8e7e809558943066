"""The files of a path: one file, a folder, a pattern, a table; and a check that they do not change while read."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fastrec.checks import check_there, shown_url
from fastrec.clusters.table_folders import find_table
from fastrec.exceptions import InputError, MissingFileError
from fastrec.files.lakes import Version, check_apart, read_version


class Files(NamedTuple):
    """The files that a path stands for, sorted by name."""

    path: str  # as it was given
    paths: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]  # of each file: the names of its Hive partitions, as its folders spell them
    version: Version | None = None  # if the path, which is the only one, stands for a Delta or Iceberg table

    @property
    def on_disk(self) -> tuple[str, ...]:
        """The regular files that have the rows."""
        return self.paths if self.version is None else self.version.files


def utf8_path(path: str) -> str:
    """Return an absolute path in UTF-8, as PyArrow expects it, also if the locale is C; raise for other names.

    A folder before `..` may be a link: the system goes up from its target, and `abspath` would go up from the link.
    """
    parts, absolute = path.split(os.sep), os.path.abspath(path)
    if os.pardir in parts:
        n = len(parts) - parts[::-1].index(os.pardir)
        absolute = os.path.join(os.path.realpath(os.sep.join(parts[:n])), *parts[n:])
    try:
        return os.fsencode(absolute).decode()
    except UnicodeDecodeError:
        raise InputError(path, ": the name is not UTF-8; rename the file, or read a link to it") from None


# Which files


def find_files(path: str) -> Files:
    """Return the files of a path; raise unless each is a regular file that is not empty.

    An existing file is taken as it is, whatever characters are in its name. A folder stands for all files in it and in
    its folders, except names that begin with "_" or ".". Any other path with *, ? or [ is a pattern, in which ** stands
    for any folders. Folders below a given folder, or below the literal part of a pattern, may be Hive partitions. The
    folder of a Delta or Iceberg table stands for the files of its current version.
    """
    folder, kind = find_table(path)
    if kind:
        return _files_of_table(path, folder, kind)
    if os.path.isdir(path):
        paths, base = _files_in(path), path
        if not paths:
            raise InputError(path, ": no files in this folder")
    elif os.path.exists(path) or not glob.has_magic(path):
        _check_file(path)
        return Files(path, (path,), ((),))
    else:
        matches = glob.glob(path, recursive=True)
        paths = {file for match in matches for file in (_files_in(match) if os.path.isdir(match) else [match])}
        base = _literal_part(path)
        if not paths:
            raise MissingFileError(shown_url(path), ": no such file, and no file matches this pattern")
    ordered = tuple(sorted(paths))
    for file in ordered:
        _check_file(file)
    check_apart(path, ordered)
    folder = utf8_path(base or ".")
    folders = [os.path.dirname(file) for file in ordered]
    keys = {own: _partitions_of(os.path.relpath(utf8_path(own or "."), folder)) for own in set(folders)}
    return Files(path, ordered, tuple(keys[own] for own in folders))


def _files_of_table(path: str, folder: str, kind: str) -> Files:
    """Return the files of the current version of a table of a kind."""
    version = read_version(path, kind, utf8_path(folder), "" if folder == path else utf8_path(path))
    if not version.files:
        raise InputError(path, ": no files in this folder")
    for file in version.files:
        _check_file(file)
    return Files(path, (path,), ((),), version)


def _partitions_of(folder: str) -> tuple[str, ...]:
    """Return the name of each Hive partition in the path of a folder, as it is spelled there."""
    names = (name.partition("=") for name in folder.split(os.sep))
    return tuple(key for key, equals, _ in names if key and equals)


def _check_file(path: str) -> None:
    utf8_path(path)
    try:
        found = check_there(path)
    except MissingFileError:
        raise
    except OSError as error:
        raise InputError(path, f": cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise InputError(path, ": is not a regular file; write the rows to a file first")
    if found.st_size == 0:
        raise InputError(path, ": the file is empty, not even a header")


def _files_in(folder: str) -> set[str]:
    """Return all files below a folder except hidden ones; a folder that links to itself is read once."""
    found: set[str] = set()
    visited = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        if os.path.realpath(place) in visited:
            folders.clear()
            continue
        visited.add(os.path.realpath(place))
        folders[:] = [name for name in folders if not name.startswith((".", "_")) or "=" in name]
        found.update(os.path.join(place, name) for name in names if not name.startswith((".", "_")))
    return found


def _fail(error: OSError) -> None:
    raise error


def _literal_part(pattern: str) -> str:
    """Return the folders at the beginning of a pattern, before its first *, ? or [."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


Stamp = tuple[int, ...]
CHANGED = ": changed while it was read; evaluate it when it is complete"


def stamps_of(paths: Iterable[str]) -> dict[str, Stamp]:
    """Return device, inode, size and times of change of each file."""
    return {path: _stamp(path) for path in paths}


@contextlib.contextmanager
def unchanged(stamps: Mapping[str, Stamp]) -> Iterator[None]:
    """Raise if a file that the block reads has changed since its stamp; this replaces errors that the change caused."""
    try:
        yield
    except Exception:
        _check_unchanged(stamps)
        raise
    _check_unchanged(stamps)


def _check_unchanged(stamps: Mapping[str, Stamp]) -> None:
    for path, stamp in stamps.items():
        if _stamp(path) != stamp:
            raise InputError(path, CHANGED) from None


@contextlib.contextmanager
def the_same_files(paths: Iterable[str]) -> Iterator[None]:
    """Raise if paths stand for other files at the end of a block that reads them repeatedly, or if these changed."""
    before = {path: stamps_of(find_files(path).on_disk) for path in paths}
    yield
    for path, stamps in before.items():
        if stamps_of(find_files(path).on_disk) != stamps:
            raise InputError(path, CHANGED)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
