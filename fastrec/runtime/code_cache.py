"""Compiled code on disk, one file per kernel and types of its arguments.

A file is loaded only if it is whole, was compiled for the same types and processor, and nobody else could have written
it: a flipped bit in machine code ends the process. Otherwise the kernel is compiled again. A file that cannot be
written is skipped.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fastrec._version import __version__
from fastrec.runtime import numba_settings
from fastrec.runtime.loaded_code import Code
from fastrec.runtime.outputs import replacing

__all__ = ["CodeStore", "cache_root", "code_store"]

SUFFIX = ".nbc"
DIGEST = hashlib.sha256().digest_size
# others may read, as users of an image that root built, but not write
FOLDER_MODE, FILE_MODE = 0o755, 0o644
CHECKED_PARENTS = 3  # of a folder with code: those of the version and of fastrec, and the one around them
WRITABLE_BY_ALL = 0o002
ROOT = 0  # user id
# what decides, beside the sources of kernels, which code is compiled
COMPILERS = ("compiler.py", "helper_compiler.py", "kernel_compiler.py", "loaded_code.py", "values.py")


def code_store(function: Callable[..., Any], variant: str, types: str) -> CodeStore:
    """Return the place of a function's code for arguments of these types."""
    root, code = cache_root(), function.__code__
    source = function.__module__, function.__qualname__, code.co_firstlineno, code.co_code, code.co_consts
    python = sys.version_info[:2], getattr(sys, "abiflags", "")
    key = repr((types, _machine(), python, source)).encode()
    return CodeStore(None if root is None else root / _version_folder() / variant, function.__name__.strip("<>"), key)


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
def _machine() -> tuple[str, ...]:
    """Return the processor that code is compiled for, and the settings of the compiler."""
    from llvmlite import binding

    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know those of this system
        features = ""
    return binding.get_process_triple(), binding.get_host_cpu_name(), features, numba_settings.settings()


@functools.cache
def _version_folder() -> str:
    """Return the name of a folder: the versions and sources of everything that decides about code."""
    import llvmlite

    interface = np.__version__.partition(".")[0]  # NumPy 1 and 2 have different binary interfaces
    digest = hashlib.sha256(repr((llvmlite.__version__, interface, _machine())).encode())
    here = Path(__file__).parent
    sources = [*here.parent.joinpath("kernels").glob("*.py"), *(here / name for name in COMPILERS)]
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:12]}-nb{numba_settings.version()}-{_machine()[1]}"


class CodeStore:
    """The file of one kernel for one signature.

    Parameters
    ----------
    folder : of the file; it need not exist, and None keeps nothing
    name : of the kernel
    key : everything that the code depends on
    """

    def __init__(self, folder: Path | None, name: str, key: bytes) -> None:
        self._folder = folder
        self._file = f"{name}-{hashlib.sha256(key).hexdigest()[:16]}{SUFFIX}"
        self._key = key

    def read(self) -> Code | None:
        """Return the code, or None: no such file, not whole, or not ours."""
        if self._folder is None:
            return None
        with contextlib.suppress(OSError):
            if all(map(_is_trusted, _with_parents(self._folder))):
                with open(self._folder / self._file, "rb", opener=_open_without_following) as file:
                    content = file.read() if _is_ours(os.fstat(file.fileno())) else b""
                digest, content = content[:DIGEST], content[DIGEST:]
                return _unpacked(content) if digest == _digest(self._key, content) else None
        return None

    def write(self, code: Code) -> None:
        """Write the code to disk, if possible."""
        if self._folder is None:
            return
        packed = _packed(code)
        # read-only install, full disk, removed folder: slower starts, same values
        with contextlib.suppress(Exception):
            for folder in _with_parents(self._folder):
                _make_folder(folder)
                if not _is_trusted(folder):
                    return
            with replacing(str(self._folder / self._file), FILE_MODE) as file:
                file.write(_digest(self._key, packed))
                file.write(packed)


def _packed(code: Code) -> bytes:
    """Return one line of JSON, and machine code."""
    return json.dumps(code._replace(machine=b"")._asdict() | {"machine": ""}).encode() + b"\n" + code.machine


def _unpacked(content: bytes) -> Code:
    line, _, machine = content.partition(b"\n")
    return Code(**json.loads(line) | {"machine": machine})


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
