"""The folder where Numba keeps compiled kernels: one for each version of everything that decides about their code."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import numpy as np

from fastrec._version import __version__
from fastrec.runtime.threads import import_late

KERNELS = Path(__file__).parent.parent / "kernels"
ROOT = 0  # user id
FOLDER_MODE = 0o755  # others may read, as users of an image that root built, but not write
# settings of Numba that change code, but not the key by which Numba finds it
SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")


def cache_root() -> Path | None:
    """Return the folder for compiled code: FASTREC_CACHE_DIR, NUMBA_CACHE_DIR or the user's cache folder."""
    if os.environ.get("FASTREC_CACHE", "1") == "0":
        return None
    for variable in ("FASTREC_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if folder := os.environ.get(variable):
            return Path(folder).absolute() / "fastrec"
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
def code_folder() -> str | None:
    """Return where Numba keeps the code of these kernels, or None: it keeps nothing."""
    root = cache_root()
    if root is None:
        return None
    folder = root / _version()
    try:
        _make_folder(folder)
        if not all(map(_is_trusted, (folder, root))):  # whoever writes there decides what this process runs
            return None
        return str(folder if os.access(folder, os.W_OK) else _copy(folder))
    except OSError:
        return None


def are_sources_of(folder: str) -> bool:
    """Return whether the kernels on disk are still those of the folder: they may have been replaced, and come back."""
    return Path(folder).name == _version.__wrapped__()


def remove_other_code() -> None:
    """Remove the code of other versions and settings from the folder for compiled code."""
    root = cache_root()
    for folder in root.glob("*-*") if root is not None else ():
        if folder.name != _version():
            shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _version() -> str:
    """Return the name of a folder: it follows from the versions, the settings and all kernels."""
    numba = import_late("numba")
    interface = np.__version__.partition(".")[0]  # NumPy 1 and 2 have different binary interfaces
    digest = hashlib.sha256(f"{numba.__version__} {interface} {sys.implementation.cache_tag}".encode())
    for source in sorted(KERNELS.glob("*.py")):
        digest.update(source.read_bytes())
    digest.update(repr([getattr(numba.config, name, None) for name in SETTINGS]).encode())
    return f"{__version__}-{digest.hexdigest()[:16]}"


@functools.cache
def _copy(folder: Path) -> Path:
    """Return a copy of a folder that only others may write: Numba reads code only where it may write."""
    own = tempfile.TemporaryDirectory(prefix="fastrec-", ignore_cleanup_errors=True)
    _COPIES.append(own)
    copy = Path(shutil.copytree(folder, Path(own.name) / folder.name))
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return copy


_COPIES: list[tempfile.TemporaryDirectory[str]] = []  # removed when Python exits


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=FOLDER_MODE)


def _is_trusted(folder: Path) -> bool:
    """Return whether a folder, and the link to it if there is one, belongs to this user or root, and not all write."""
    if not hasattr(os, "geteuid"):
        return True
    ours = ROOT, os.geteuid()
    is_ours = folder.stat().st_uid in ours and folder.lstat().st_uid in ours
    return is_ours and not folder.stat().st_mode & stat.S_IWOTH
