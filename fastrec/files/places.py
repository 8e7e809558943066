"""Files at URLs (https, S3, Google Cloud Storage), copied once to a temporary folder while they are evaluated."""

from __future__ import annotations

import base64
import contextlib
import errno
import glob
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from fastrec.checks import is_url, shown_url
from fastrec.exceptions import Argument, InputError, MissingFileError, spelled
from fastrec.files.formats.foreign import reason_of_url
from fastrec.files.paths import find_files
from fastrec.inputs.table_folders import DELTA, ICEBERG, LOG, MARKS, METADATA, find_table, is_metadata
from fastrec.runtime.extras import require
from fastrec.runtime.outputs import temporary_folder

if TYPE_CHECKING:
    from urllib.request import Request

__all__ = ["fetched"]

COPIED_BYTES = 1 << 23  # at once
SECONDS = 60  # without an answer, after which a server is given up
LONGEST_NAME = 255  # bytes, in the file systems of Linux, macOS and Windows
NOT_FOUND = (404, 410)


@contextlib.contextmanager
def fetched(paths: Mapping[str, Any], folder: str | os.PathLike[str] | None) -> Iterator[dict[str, Any]]:
    """Copy the files at URLs to a temporary folder for a `with` block; messages of the block show the URLs.

    Equal URLs are copied once. `folder` is for the temporary one.
    """
    urls = list(dict.fromkeys(path for path in paths.values() if is_url(path)))
    if not urls:
        yield dict(paths)
        return
    with temporary_folder(folder) as place, contextlib.ExitStack() as spellings:
        copies = {}
        for nth, url in enumerate(urls):
            root = os.path.join(os.path.abspath(place), str(nth), "")
            os.mkdir(root)
            is_store = not url.lower().startswith("http")
            shown = shown_url(url)
            spelling = f"{shown.partition('://')[0]}://" if is_store else f"{shown.rpartition('/')[0]}/"
            spellings.enter_context(spelled({root: spelling, glob.escape(root): spelling}))
            copies[url] = (_copy_from_store if is_store else _copy_from_server)(url, root)
        yield {name: copies[path] if is_url(path) else path for name, path in paths.items()}


# One file from a server


def _copy_from_server(url: str, root: str) -> str:
    """Copy the file at a URL of http or https; return its path."""
    from http.client import HTTPException
    from urllib import error, request

    try:
        parts = urlsplit(url)
        path = os.path.join(root, _file_name(parts))
        asked = request.urlopen(_request(parts), timeout=SECONDS)  # noqa: S310 - the scheme is http or https
        with asked as source, open(path, "wb") as copy:
            expected = source.length  # None if the server does not say it
            _copy(source, copy)
            found = copy.tell()
    except error.HTTPError as fault:
        fault.close()
        kind = MissingFileError if fault.code in NOT_FOUND else InputError
        raise kind(shown_url(url), f": the server answers {fault.code} {fault.reason}") from None
    except (OSError, ValueError, HTTPException) as fault:
        raise _unread(url, fault) from None
    if expected not in (None, found):
        raise InputError(shown_url(url), f": ended after {found:,} of {expected:,} bytes; try again")
    return path


def _file_name(parts: SplitResult) -> str:
    """Return a name for the file of a URL, with the ending that tells its format."""
    name = re.sub(r"[/\\\0]", "_", unquote(parts.path.rpartition("/")[2]))
    return "file" if name in ("", ".", "..") or len(os.fsencode(name)) > LONGEST_NAME else name


def _request(parts: SplitResult) -> Request:
    """Return the request of a URL, with its user and password in a header that no redirect passes on."""
    from urllib.request import Request

    user, at, place = parts.netloc.rpartition("@")
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
    found = Request(parts._replace(netloc=place, path=path, fragment="").geturl())  # noqa: S310 - of http
    if at:
        secret = base64.b64encode(unquote(user).encode()).decode()
        found.add_unredirected_header("Authorization", f"Basic {secret}")
    return found


# Files of an object store


def _copy_from_store(url: str, root: str) -> str:
    """Copy the files of a URL of S3 or Google Cloud Storage; return the path, folder or pattern of the copies.

    Empty files of the right size stand for all files of the folder, so that the code for folders and patterns on disk
    decides which ones are read. It needs the log of a Delta table.
    """
    place, key, pattern = _parts_of_store(url)
    if place.startswith("gs://") and "retry_limit_seconds=" not in place:  # its own limit is 15 minutes
        place += f"{'&' if '?' in place else '?'}retry_limit_seconds={SECONDS}"
    try:
        store, bucket = require("pyarrow.fs", "cli", what="reading files at URLs").FileSystem.from_uri(place)
        listed = _list(store, bucket, key)
    except (OSError, ValueError, NotImplementedError) as fault:
        raise _unread(url, fault) from None
    if not listed:
        raise MissingFileError(shown_url(url), ": no such file")
    files = {os.path.join(root, _checked_key(file.path)): file for file in listed}
    for local, file in files.items():
        os.makedirs(os.path.dirname(local) if file.is_file else local, exist_ok=True)
        if file.is_file:
            with open(local, "wb") as copy:
                copy.truncate(file.size)
    path = os.path.join(glob.escape(root) if glob.has_magic(pattern) else root, bucket, pattern)
    _, kind = find_table(path)
    if kind == ICEBERG:
        raise InputError(path, ": Iceberg tables at URLs are not read; pass the rows to fastrec.evaluate as a frame")
    log = [local for local in files if kind == DELTA and local.startswith(os.path.join(path, LOG, ""))]
    _fetch(store, url, {local: files[local] for local in log})
    _fetch(store, url, {local: files[local] for local in find_files(path).paths})
    return path


def _fetch(store: Any, url: str, files: Mapping[str, Any]) -> None:
    """Copy files of a store: {path of the copy: file}."""
    for local, file in files.items():
        shown = shown_url(f"{url.partition('://')[0]}://{file.path}")
        try:
            with store.open_input_stream(file.path, compression=None) as source, open(local, "wb") as copy:
                _copy(source, copy)
                found = copy.tell()
        except (OSError, ValueError) as fault:
            raise _unread(url, fault, shown) from None
        if found != file.size:
            raise InputError(shown, f": has {found:,} bytes, but {file.size:,} when it was listed; try again")


def _parts_of_store(url: str) -> tuple[str, str, str]:
    """Return the URL of a bucket, the folder or file in it to list, and the path or pattern to read."""
    scheme, _, rest = url.partition("://")
    path, mark, query = rest.partition("?")
    bucket, _, pattern = path.partition("/")
    pattern = pattern.rstrip("/")
    if pattern and not {"", ".", ".."}.isdisjoint(pattern.split("/")):  # these would lead out of the folder of copies
        raise InputError(shown_url(url), ": expected names between the slashes, not . or .. or none")
    key = pattern
    while glob.has_magic(key):
        key = key.rpartition("/")[0]
    return f"{scheme.lower()}://{bucket}{mark}{query}", key, pattern


def _list(store: Any, bucket: str, key: str) -> list[Any]:
    """Return the files of a folder, with what shows whether it lies in a table, or the file of a key."""
    from pyarrow.fs import FileSelector, FileType

    found = store.get_file_info(f"{bucket}/{key}" if key else bucket)
    if found.type != FileType.Directory:
        return [found] if found.is_file else []
    files = [file for file in store.get_file_info(FileSelector(found.path, recursive=True)) if file.is_file]
    marks = []
    while key and files:
        key = key.rpartition("/")[0]
        place = f"{bucket}/{key}" if key else bucket
        for name in MARKS:
            with contextlib.suppress(OSError):  # the caller may have no right to see it
                marks.append(store.get_file_info(f"{place}/{name}"))
        with contextlib.suppress(OSError):
            listed = store.get_file_info(FileSelector(f"{place}/{METADATA}", allow_not_found=True))
            marks += [file for file in listed if is_metadata(file.base_name)]
    return files + [mark for mark in marks if mark.type != FileType.NotFound]


def _checked_key(path: str) -> str:
    """Return the bucket and key of a file; raise for one that names no file below a folder."""
    names = path.split("/")
    if any(name in ("", ".", "..") or "\0" in name or len(os.fsencode(name)) > LONGEST_NAME for name in names):
        raise InputError(f"the key {path!r} cannot be the name of a file: read the others by a pattern")
    return path


# Both


def _copy(source: IO[bytes], copy: IO[bytes]) -> None:
    """Copy all bytes; raise if the disk is full."""
    try:
        shutil.copyfileobj(source, copy, COPIED_BYTES)
        copy.flush()
    except OSError as fault:
        if fault.errno != errno.ENOSPC:
            raise
        found = "no space is left for copies of files; name a larger folder, "
        raise InputError(found, Argument("temp_directory", (...,))) from None


def _unread(url: str, fault: Exception, shown: str = "") -> InputError:
    """Return the error of a place that cannot be read, with its reason."""
    if isinstance(fault, InputError):
        return fault
    cause = getattr(fault, "reason", None)  # of an error that urllib wraps
    why = reason_of_url(cause if isinstance(cause, Exception) else fault, url)
    return InputError(shown or shown_url(url), f": cannot be read: {why}")
