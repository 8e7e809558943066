"""Compiled code on disk, one file per signature, in place of the files that Numba would keep.

Numba loads what it finds: a bit that has flipped in machine code ends the process, and a full disk is an error of the
call. Here a file counts only if it is whole, was made for what is asked, and nobody else could have written it; all
else is as if it were not there, and what cannot be kept is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastrec.runtime.outputs import replacing

__all__ = ["CodeStore"]

Key = tuple[Any, ...]
SUFFIX = ".nbc"
DIGEST = hashlib.sha256().digest_size
PRIVATE, READABLE = 0o755, 0o644  # others may read, as where an image is built by one and run by another, but not write
LEVELS = 3  # of folders above one of ours: of the version, of fastrec, and what that is in
WRITTEN_BY_ANYONE = 0o002
ROOT = 0


class CodeStore:
    """What a dispatcher of Numba takes for its cache, see `numba.core.caching`.

    Parameters
    ----------
    folder : where the files are; it need not exist
    function : Python's function
    missing : called where no code is found, before Numba compiles it
    """

    def __init__(self, folder: Path, function: Any, missing: Callable[[], None]) -> None:
        self.cache_path = str(folder)
        self._folder = folder
        self._missing = missing
        code = function.__code__
        self._name = function.__name__.strip("<>")
        self._source = (function.__module__, function.__qualname__, code.co_firstlineno, code.co_code, code.co_consts)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled code for a signature, or None."""
        from numba.core.compiler import CompileResult

        with contextlib.suppress(Exception):  # no such file, not ours; or Numba's private parts are others
            target.refresh()
            content = self._read(self._key(signature, target.codegen()))
            if content is not None:
                return CompileResult._rebuild(target, *content)  # noqa: SLF001 - as Numba does
        self._missing()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep compiled code if that can be done."""
        # Read-only install, no home, disk full, folder removed, Numba's private parts are others: slower starts, same
        # answers.
        with contextlib.suppress(Exception):
            if not compiled.library.has_dynamic_globals:  # addresses of this process
                self._write(self._key(signature, compiled.codegen), compiled._reduce())  # noqa: SLF001 - as Numba does

    def flush(self) -> None:
        """Nothing: code for other signatures stays."""

    def _key(self, signature: Any, codegen: Any) -> bytes:
        """What code must have been made for. The folder says the rest: versions, switches, sources."""
        python = sys.version_info[:2], getattr(sys, "abiflags", "")
        return repr((signature, codegen.magic_tuple(), python, self._source)).encode()

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}{SUFFIX}"

    def _read(self, key: bytes) -> Any:
        if not all(map(_is_trusted, _chain(self._folder))):
            return None
        with open(self._path(key), "rb", opener=_open_itself) as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            content = file.read()
        digest, content = content[:DIGEST], content[DIGEST:]
        return pickle.loads(content) if digest == _digest(key, content) else None  # noqa: S301 - it is what we wrote

    def _write(self, key: bytes, content: Any) -> None:
        from numba.core.serialize import dumps

        packed = dumps(content)
        for folder in _chain(self._folder):
            _make_folder(folder)
            if not _is_trusted(folder):
                return
        with replacing(str(self._path(key)), READABLE) as file:
            file.write(_digest(key, packed))
            file.write(packed)


def _open_itself(path: str, flags: int) -> int:
    """Open a file, and neither what it links to nor a pipe that waits for a writer."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _digest(key: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(key)
    digest.update(content)
    return digest.digest()


def _is_ours(found: os.stat_result) -> bool:
    """Whether a file was written by this user or the system's, and by nobody else: its code will be run."""
    return _is_owned(found) and stat.S_ISREG(found.st_mode) and not found.st_mode & WRITTEN_BY_ANYONE


def _is_owned(found: os.stat_result) -> bool:
    """Whether something belongs to this user or the system's."""
    return not hasattr(os, "geteuid") or found.st_uid in (ROOT, os.geteuid())


def _is_trusted(folder: Path) -> bool:
    """Whether a folder belongs to us, and so does the link to it if there is one."""
    return _is_owned(folder.stat()) and _is_owned(folder.lstat())


def _chain(folder: Path) -> tuple[Path, ...]:
    """A folder of ours and those that it is in, from the one that the user named."""
    return (*reversed(folder.parents[:LEVELS]), folder)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=PRIVATE, exist_ok=True)
