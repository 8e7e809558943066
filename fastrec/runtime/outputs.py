"""Files written whole or not at all, and temporary folders that do not outlive their process."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from fastrec.checks import check_file, is_any_url, shown_url
from fastrec.exceptions import Argument, InputError
from fastrec.runtime.signals import undone_by

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

STANDARD_OUTPUT = 1
TEMPORARY = ".fastrec-"
FOLDER, OWNED = "fastrec-", "fastrec-owner"  # prefix of folders, and the file in them that their owner keeps locked
IN_MEMORY = 1 << 24  # bytes for a device or a pipe; more are kept on disk until they are complete
PERMISSIONS = 0o777  # without setuid and setgid: a changed owner must not run a file as the old one


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a binary file that becomes `path`, whole, when the block ends; a block that fails leaves nothing behind.

    Links are followed. An existing file keeps its mode and, if the system allows it, its owner. If this user may not
    write to it, this raises the error that `open` raises. Devices, pipes and standard output are not replaced: they
    are written to at the end.
    """
    name = check_file("path", path)
    target = os.path.realpath(name)
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.isdir(os.path.dirname(target)):
            why = f"the folder {os.path.dirname(target)} does not exist"
            if is_any_url(name):
                why = "it is a URL; expected a path on this machine"
            raise InputError(f"cannot write {shown_url(name)}: {why}") from None
        found = None
    with _naming(name):
        if found is not None and not _can_be_replaced(found, target):
            with tempfile.SpooledTemporaryFile(IN_MEMORY) as whole:  # formats are written out of order, devices are not
                yield whole
                whole.seek(0)
                with open(os.dup(STANDARD_OUTPUT) if _is_standard_output(found) else name, "wb") as file:
                    shutil.copyfileobj(whole, file)
            return
        if found is not None:
            os.close(os.open(name, os.O_WRONLY))  # raises if this user may not write to it
        with replacing(target) as file:
            if found is not None:
                _keep_owner_and_mode(file, found)
            yield file


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name a file in errors of the system about the temporary one, or about none, as those of a full disk are."""
    try:
        yield
    except OSError as error:
        is_temporary = isinstance(error.filename, str) and os.path.basename(error.filename).startswith(TEMPORARY)
        if error.errno is None or not (error.filename is None or is_temporary):
            raise
        raise OSError(error.errno, error.strerror, name) from error


@contextlib.contextmanager
def replacing(target: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a new binary file with a mode, which replaces `target` when the block ends, even if that is a link."""
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY}{os.urandom(8).hex()}.tmp")
    with undone_by(functools.partial(os.unlink, temporary)):
        try:
            with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _move(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def _move(temporary: str, target: str) -> None:
    """Replace one file by another, or copy into it where it is mounted by itself and cannot be replaced."""
    try:
        os.replace(temporary, target)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        with open(temporary, "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)


def _can_be_replaced(found: os.stat_result, target: str) -> bool:
    """Return whether a path leads to a regular file, which has a name and is not standard output."""
    if _is_standard_output(found) or not stat.S_ISREG(found.st_mode):
        return False
    return os.path.exists(target) and os.path.samestat(found, os.stat(target))


def _is_standard_output(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(STANDARD_OUTPUT))
    except OSError:  # it is closed
        return False


def _keep_owner_and_mode(file: IO[bytes], found: os.stat_result) -> None:
    """Give a file the owner, group and mode of another, as far as the system allows this user."""
    if not hasattr(os, "fchown"):
        return
    for owner in (-1, found.st_uid):  # a member of the group may set the group alone
        with contextlib.suppress(OSError):
            os.fchown(file.fileno(), owner, found.st_gid)
    with contextlib.suppress(OSError):
        os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode) & PERMISSIONS)


@contextlib.contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None) -> Iterator[str]:
    """Yield a folder that is removed when the block ends, and also if a signal ends the process by then.

    A killed process leaves its folder behind: the next process that makes a folder beside it removes it.
    """
    try:
        parent = tempfile.gettempdir() if parent is None else os.fspath(parent)
        _remove_abandoned(parent)
        folder = tempfile.TemporaryDirectory(prefix=FOLDER, dir=parent)
    except OSError as error:
        where = "the folders for temporary files" if parent is None else repr(parent)
        found = f"no temporary folder can be made in {where}: {error.strerror or error}; name one that takes files, "
        raise InputError(found, Argument("temp_directory", (...,))) from error
    remove = functools.partial(shutil.rmtree, folder.name, ignore_errors=True)
    with undone_by(remove):
        try:
            with _owned(folder.name), folder:  # owned until it is removed
                yield folder.name
        finally:
            remove()  # the rest, if an interrupt came during the removal


@contextlib.contextmanager
def _owned(folder: str) -> Iterator[None]:
    """Lock a file in the folder that names this host; the system unlocks it however the process ends."""
    if fcntl is None:
        yield
        return
    with open(os.path.join(folder, OWNED), "x", encoding="utf-8") as file:
        with contextlib.suppress(OSError):  # a file system without locks: no other process gets one there either
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(_host())  # from here on a process that gets the lock may remove the folder
        file.flush()
        yield


def _remove_abandoned(parent: str) -> None:
    """Remove the folders of killed processes."""
    if fcntl is None:
        return
    try:
        with os.scandir(parent) as entries:
            folders = [entry for entry in entries if entry.name.startswith(FOLDER)]
    except OSError:  # making a folder there will raise it
        return
    for folder in folders:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: os.DirEntry[str]) -> None:
    """Remove a folder of this user, made on this host, if no process holds its lock.

    Folders of other hosts stay: their locks may not be visible here.
    """
    if not folder.is_dir(follow_symlinks=False) or folder.stat(follow_symlinks=False).st_uid != os.getuid():
        return
    descriptor = os.open(os.path.join(folder, OWNED), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, encoding="utf-8") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read() == _host():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its owner lives, or another process removes it
            shutil.rmtree(folder, ignore_errors=True)


def _host() -> str:
    """Return a name that tells this host from others that share a folder."""
    import socket

    found = socket.gethostname()
    with contextlib.suppress(OSError), open("/etc/machine-id", encoding="ascii") as file:
        found += f" {file.read().strip()}"
    return found
