"""Files at URLs, which fsspec copies once to a temporary folder while they are evaluated."""

from __future__ import annotations

import contextlib
import errno
import glob
import http.client
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from fastrec.checks import URL_PACKAGES, is_url, shown_url
from fastrec.clusters.table_folders import DELTA, ICEBERG, LOG, MARKS, METADATA, find_table, is_metadata
from fastrec.exceptions import Argument, FastrecError, InputError, MissingFileError, spelled
from fastrec.files.formats.foreign import reason_of_url
from fastrec.files.paths import find_files
from fastrec.runtime.extras import require
from fastrec.runtime.outputs import temporary_folder

SECONDS = 60  # without an answer, after which a web server is given up; the stores have limits of their own
LONGEST_NAME = 255  # bytes, in the file systems of Linux, macOS and Windows
OPTIONS = {"s3": ("endpoint_override", "scheme", "region"), "gs": ("endpoint_override", "scheme")}  # in a query
NO_CACHE = {"skip_instance_cache": True, "use_listings_cache": False}  # no later call sees old files or credentials


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
            shown = shown_url(url)
            is_store = not shown.startswith("http")
            spelling = f"{shown.partition('://')[0]}://" if is_store else f"{shown.rpartition('/')[0]}/"
            spellings.enter_context(spelled({root: spelling, glob.escape(root): spelling}))
            copies[url] = (_copy_from_store if is_store else _copy_from_server)(url, root)
        yield {name: copies[path] if is_url(path) else path for name, path in paths.items()}


def _require(scheme: str) -> Any:
    """Import the package for URLs of a scheme, and return fsspec."""
    what = f"reading files at URLs of {scheme}"
    require(URL_PACKAGES[scheme], "remote", what=what)
    return require("fsspec", "remote", what=what)


# One file from a server


def _copy_from_server(url: str, root: str) -> str:
    """Copy the file at a URL of http or https; return its path."""
    fsspec = _require(url.partition(":")[0].lower())
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS)
    server = fsspec.filesystem("https", client_kwargs={"timeout": timeout, "trust_env": True}, **NO_CACHE)
    name = re.sub(r"[/\\\0]", "_", unquote(re.split("[?#]", url)[0].rpartition("/")[2]))
    is_name = name not in ("", ".", "..") and len(os.fsencode(name)) <= LONGEST_NAME
    path = os.path.join(root, name if is_name else "file")
    session = fsspec.asyn.sync(server.loop, server.set_session)
    try:
        with _explained(url, shown_url(url)):
            server.get_file(url, path)
    finally:
        server.close_session(server.loop, session)  # else connections stay open until Python collects the server
    return path


# Files of an object store


def _copy_from_store(url: str, root: str) -> str:
    """Copy the files at a URL of an object store; return the path, folder or pattern of the copies.

    Empty files of the right size stand for all files of the folder, so that the code for folders and patterns on disk
    decides which ones are read. It needs the log of a Delta table.
    """
    with _explained(url, shown_url(url)):
        store, path = _open_store(url)
        sizes, marks = _list(store, path)
    if not sizes:
        raise MissingFileError(shown_url(url), ": no such file")
    bucket, _, pattern = path.partition("/")
    keys = {os.path.join(root, _checked_key(key)): key for key in (*sizes, *marks)}
    for local, key in keys.items():
        os.makedirs(os.path.dirname(local), exist_ok=True)
        with open(local, "wb") as copy:
            copy.truncate(sizes.get(key, 0))
    path = os.path.join(glob.escape(root) if glob.has_magic(pattern) else root, bucket, pattern)
    _, kind = find_table(path)
    if kind == ICEBERG:
        raise InputError(path, ": Iceberg tables at URLs are not read; pass the rows to fastrec.evaluate as a frame")
    log = [local for local in keys if kind == DELTA and local.startswith(os.path.join(path, LOG, ""))]
    for local in log:
        _fetch(store, url, keys[local], local)
    for local in find_files(path).on_disk:
        _fetch(store, url, keys[local], local)
    return path


def _open_store(url: str) -> tuple[Any, str]:
    """Return the filesystem of a URL, and the path or pattern in it, which begins with the bucket."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place, _, query = rest.partition("?")
    bucket, *names = place.rstrip("/").split("/")
    if "::" in place:
        raise InputError(shown_url(url), ": has ::, which would begin the URL of another filesystem")
    if not {"", ".", ".."}.isdisjoint(names):  # these would lead out of the folder of copies
        raise InputError(shown_url(url), ": expected names between the slashes, not . or .. or none")
    user, _, host = bucket.rpartition("@") if scheme in OPTIONS else ("", "", bucket)
    known = OPTIONS.get(scheme, ())
    asked = dict(parse_qsl(query, keep_blank_values=True))
    if not asked.keys() <= {*known} or (scheme == "gs" and user not in ("", "anonymous")):
        found = ", ".join(known) or "none"
        why = f"the options of a URL of {scheme} are {found}; fsspec reads others from its configuration"
        raise InputError(shown_url(url), f": cannot be read: {why}")
    options = {**_options(scheme, user, asked), **NO_CACHE}
    store, path = _require(scheme).core.url_to_fs("/".join((f"{scheme}://{host}", *names)), **options)
    return store, path.rstrip("/")


def _options(scheme: str, user: str, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a filesystem from the user and the query of a URL, which are spelled as for PyArrow."""
    key, _, secret = map(unquote, user.partition(":"))
    options: dict[str, Any] = {}
    if key == "anonymous":
        options = {"anon": True} if scheme == "s3" else {"token": "anon"}
    elif key:
        options = {"key": key, "secret": secret}
    if endpoint := asked.get("endpoint_override"):
        options["endpoint_url"] = f"{asked.get('scheme', 'https')}://{endpoint}"
    if region := asked.get("region"):
        options["client_kwargs"] = {"region_name": region}
    return options


def _list(store: Any, place: str) -> tuple[dict[str, int], list[str]]:
    """Return {file: size} of the folder that has all files of a pattern, and what shows whether it lies in a table."""
    while glob.has_magic(place):
        place = place.rpartition("/")[0]
    found = store.find(place, detail=True)
    sizes = {key: (about or store.info(key))["size"] for key, about in found.items() if not key.endswith("/")}
    marks = []
    while "/" in place and sizes:
        place = place.rpartition("/")[0]
        for name in MARKS:
            with contextlib.suppress(Exception):  # the caller may have no right to see it
                marks += [f"{place}/{name}"] if store.exists(f"{place}/{name}") else []
        with contextlib.suppress(Exception):
            listed = store.ls(f"{place}/{METADATA}", detail=False)
            marks += [key for key in listed if is_metadata(key.rpartition("/")[2])]
    return sizes, marks


def _checked_key(key: str) -> str:
    """Return the bucket and key of a file; raise for one that names no file below a folder."""
    names = key.split("/")
    if any(name in ("", ".", "..") or "\0" in name or len(os.fsencode(name)) > LONGEST_NAME for name in names):
        raise InputError(f"the key {key!r} cannot be the name of a file: read the others by a pattern")
    return key


def _fetch(store: Any, url: str, key: str, local: str) -> None:
    """Copy a file of a store in the place of an empty one of its size."""
    shown, expected = shown_url(f"{url.partition('://')[0]}://{key}"), os.path.getsize(local)
    with _explained(url, shown):
        store.get_file(key, local)
    if (found := os.path.getsize(local)) != expected:
        raise InputError(shown, f": has {found:,} bytes, but {expected:,} when it was listed; try again")


# Both


@contextlib.contextmanager
def _explained(url: str, shown: str) -> Iterator[None]:
    """Raise the errors of fsspec and of its packages as those of a URL, without its credentials."""
    try:
        yield
    except FileNotFoundError:
        raise MissingFileError(shown, ": no such file") from None
    except Exception as error:
        if isinstance(error, FastrecError | MemoryError):
            raise
        if getattr(error, "errno", None) == errno.ENOSPC:
            found = "no space is left for copies of files; name a larger folder, "
            raise InputError(found, Argument("temp_directory", (...,))) from None
        why = f"cannot be read: {'no answer' if isinstance(error, TimeoutError) else reason_of_url(error, url)}"
        if status := getattr(error, "status", 0):  # of aiohttp, whose messages have the URL
            why = f"the server answers {status} {http.client.responses.get(status, '')}"
        raise InputError(shown, f": {why}") from None
