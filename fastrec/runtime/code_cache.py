"""Compiled code on disk, one file per signature, instead of Numba's own cache.

Numba loads any file that it finds: a flipped bit in machine code ends the process, and a full disk fails the call. Here
a file is loaded only if it is whole, was compiled for the same signature and processor, and nobody else could have
written it. Otherwise the kernel is compiled again. A file that cannot be written is skipped.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastrec._version import __version__
from fastrec.runtime.outputs import replacing

__all__ = ["CodeStore", "cache_root", "keep_on_disk"]

SUFFIX = ".nbc"
DIGEST = hashlib.sha256().digest_size
# others may read, as users of an image that root built, but not write
FOLDER_MODE, FILE_MODE = 0o755, 0o644
CHECKED_PARENTS = 3  # of a folder with code: those of the version and of fastrec, and the one around them
WRITABLE_BY_ALL = 0o002
ROOT = 0  # user id
# what decides, beside the sources of kernels, which code is compiled
COMPILERS = ("compiler.py", "helper_compiler.py", "parallel.py")
SWITCHES = ("BOUNDSCHECK", "OPT", "DEBUG", "DEBUGINFO", "LOOP_VECTORIZE", "SLP_VECTORIZE", "CPU_NAME", "CPU_FEATURES")


def keep_on_disk(dispatcher: Any, variant: str, missing: Callable[[], None]) -> None:
    """Let a dispatcher read its code from disk and keep it there, if there is a folder; else call `missing`."""
    root = cache_root()
    if root is None:
        missing()
    else:
        folder = root / _cache_key() / variant
        dispatcher._cache = CodeStore(folder, dispatcher.py_func, missing)  # noqa: SLF001 - as enable_caching does


def cache_root() -> Path | None:
    """Return the folder for compiled code: FASTREC_CACHE_DIR, NUMBA_CACHE_DIR or the user's cache folder."""
    if os.environ.get("FASTREC_CACHE", "1") == "0":
        return None
    for variable in ("FASTREC_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if folder := os.environ.get(variable):
            return Path(folder) / "fastrec"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not base or base.startswith("~"):
        return None
    return Path(base) / "fastrec"


@functools.cache
def _cache_key() -> str:
    """Return the name of a folder: what `CodeStore._key` leaves out, versions, sources, processor and switches."""
    import llvmlite.binding
    import numba

    digest = hashlib.sha256()
    here = Path(__file__).parent
    sources = [*here.parent.joinpath("kernels").glob("*.py"), *(here / name for name in COMPILERS)]
    for source in sorted(sources):
        digest.update(source.read_bytes())
    for switch in SWITCHES:
        digest.update(f"{switch}={getattr(numba.config, switch, None)}".encode())
    return f"{__version__}-{digest.hexdigest()[:12]}-nb{numba.__version__}-{llvmlite.binding.get_host_cpu_name()}"


class CodeStore:
    """The cache of one of Numba's dispatchers, with the methods of `numba.core.caching`.

    Parameters
    ----------
    folder : of the files; it need not exist
    function : the Python function
    missing : called if no code is found, before Numba compiles
    """

    def __init__(self, folder: Path, function: Any, missing: Callable[[], None]) -> None:
        self.cache_path = str(folder)
        self._folder = folder
        self._missing = missing
        code = function.__code__
        self._name = function.__name__.strip("<>")
        self._source = (function.__module__, function.__qualname__, code.co_firstlineno, code.co_code, code.co_consts)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled code for a signature, or None."""
        from numba.core.compiler import CompileResult

        with contextlib.suppress(Exception):  # no such file, not ours, or Numba's private parts differ
            target.refresh()
            content = self._read(self._key(signature, target.codegen()))
            if content is not None:
                return CompileResult._rebuild(target, *content)  # noqa: SLF001 - as Numba does
        self._missing()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write compiled code to disk, if possible."""
        # Read-only install, full disk, removed folder, other private parts of Numba: slower starts, same values.
        with contextlib.suppress(Exception):
            if not compiled.library.has_dynamic_globals:  # addresses of this process
                self._write(self._key(signature, compiled.codegen), compiled._reduce())  # noqa: SLF001 - as Numba does

    def flush(self) -> None:
        """Do nothing: code for other signatures stays."""

    def _key(self, signature: Any, codegen: Any) -> bytes:
        """Return what code depends on beside what the folder is named after."""
        python = sys.version_info[:2], getattr(sys, "abiflags", "")
        return repr((signature, codegen.magic_tuple(), python, self._source)).encode()

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}{SUFFIX}"

    def _read(self, key: bytes) -> Any:
        if not all(map(_is_trusted, _with_parents(self._folder))):
            return None
        with open(self._path(key), "rb", opener=_open_without_following) as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            content = file.read()
        digest, content = content[:DIGEST], content[DIGEST:]
        return pickle.loads(content) if digest == _digest(key, content) else None  # noqa: S301 - we wrote it

    def _write(self, key: bytes, content: Any) -> None:
        from numba.core.serialize import dumps

        packed = dumps(content)
        for folder in _with_parents(self._folder):
            _make_folder(folder)
            if not _is_trusted(folder):
                return
        with replacing(str(self._path(key)), FILE_MODE) as file:
            file.write(_digest(key, packed))
            file.write(packed)


def _open_without_following(path: str, flags: int) -> int:
    """Open a file. Fail at a link, and do not wait at a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _digest(key: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(key)
    digest.update(content)
    return digest.digest()


def _is_ours(found: os.stat_result) -> bool:
    """Return whether this user or root wrote a file, whose code will be run, and not everyone could."""
    return _is_owned(found) and stat.S_ISREG(found.st_mode) and not found.st_mode & WRITABLE_BY_ALL


def _is_owned(found: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user or root."""
    return not hasattr(os, "geteuid") or found.st_uid in (ROOT, os.geteuid())


def _is_trusted(folder: Path) -> bool:
    """Return whether a folder, and the link to it if there is one, belongs to this user or root."""
    return _is_owned(folder.stat()) and _is_owned(folder.lstat())


def _with_parents(folder: Path) -> tuple[Path, ...]:
    """Return a folder after its parents, from the cache folder that the user named."""
    return (*reversed(folder.parents[:CHECKED_PARENTS]), folder)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
