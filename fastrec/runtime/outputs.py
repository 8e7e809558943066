"""Files written whole or not at all, and temporary folders that do not outlive their process."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from fastrec.checks import check_file
from fastrec.exceptions import InputError

if TYPE_CHECKING:
    pass
from fastrec.runtime.signals import undone_by

__all__ = ["atomic_write", "replacing", "temporary_folder"]


fcntl: Any = None


with contextlib.suppress(ImportError):  # Windows has none
    fcntl = importlib.import_module("fcntl")


STANDARD_OUTPUT = 1
TEMPORARY = ".fastrec-"
FOLDER, OWNED = "fastrec-", "fastrec-owner"  # how folders begin, and the file in them that their owner keeps locked
IN_MEMORY = 1 << 24  # bytes for a device or a pipe, of which more are kept on disk until they are complete
RIGHTS = 0o777  # of a mode; a changed owner is not to run a file as the old one


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path`, whole, when the block ends, and leaves nothing behind when it fails.

    Links are followed. A file that was there keeps its mode and, where that can be had, its owner; one that this user
    may not write to is refused, as `open` refuses it. Devices, pipes and what is standard output are written to
    where they are, at the end.
    """
    name = check_file("path", path)
    target = os.path.realpath(name)
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.isdir(os.path.dirname(target)):
            raise InputError(f"cannot write {name}: the folder {os.path.dirname(target)} does not exist") from None
        found = None
    if found is not None:
        if not _can_be_replaced(found, target):
            with tempfile.SpooledTemporaryFile(IN_MEMORY) as whole:  # a device is in no order to be written to in parts
                yield whole
                whole.seek(0)
                with _opened_in_place(name, found) as file:
                    shutil.copyfileobj(whole, file)
            return
        os.close(os.open(name, os.O_WRONLY))  # the system says whether this may be written to
    try:
        with replacing(target) as file:
            if found is not None:
                _keep_owner_and_mode(file, found)
            yield file
    except OSError as error:
        if error.filename is None or not os.path.basename(error.filename).startswith(TEMPORARY):
            raise
        raise OSError(error.errno, error.strerror, name) from error


@contextlib.contextmanager
def replacing(target: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new binary file of a mode that takes the place of `target`, be that a link, when the block ends."""
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
    """Put a file in the place of another; where one is mounted, which cannot be replaced, into it."""
    try:
        os.replace(temporary, target)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        with open(temporary, "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)


def _can_be_replaced(found: os.stat_result, target: str) -> bool:
    """Whether what is there is a plain file, with a name, that nothing is printed to."""
    if _is_printed_to(found) or not stat.S_ISREG(found.st_mode):
        return False
    return os.path.exists(target) and os.path.samestat(found, os.stat(target))


def _opened_in_place(name: str, found: os.stat_result) -> IO[bytes]:
    """What is there, to be written to; standard output goes on where it stands."""
    return open(os.dup(STANDARD_OUTPUT) if _is_printed_to(found) else name, "wb")


def _is_printed_to(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(STANDARD_OUTPUT))
    except OSError:  # it is closed
        return False


def _keep_owner_and_mode(file: IO[bytes], found: os.stat_result) -> None:
    """As far as the system lets this user."""
    if not hasattr(os, "fchown"):
        return
    for owner in (-1, found.st_uid):  # a member of the group may at least give the file to that
        with contextlib.suppress(OSError):
            os.fchown(file.fileno(), owner, found.st_gid)
    with contextlib.suppress(OSError):
        os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode) & RIGHTS)


@contextlib.contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None) -> Iterator[str]:
    """A folder that is gone when the block ends, and also if the process has to end in it or while it is removed.

    A process that is killed leaves its folder behind: the next one that makes a folder there removes it.
    """
    parent = tempfile.gettempdir() if parent is None else os.fspath(parent)
    _remove_abandoned(parent)
    folder = tempfile.TemporaryDirectory(prefix=FOLDER, dir=parent)
    remove = functools.partial(shutil.rmtree, folder.name, ignore_errors=True)
    with undone_by(remove):
        try:
            with _owned(folder.name), folder:  # owned until it is gone
                yield folder.name
        finally:
            remove()  # what is left where an interrupt came while it was removed


@contextlib.contextmanager
def _owned(folder: str) -> Iterator[None]:
    """Hold a lock on a file in the folder, which names this host; the system releases it however the process ends."""
    if fcntl is None:  # a system without such locks
        yield
        return
    path = os.path.join(folder, OWNED)
    with open(f"{path}.new", "x", encoding="utf-8") as file:
        with contextlib.suppress(OSError):  # a file system without locks: nobody else gets one there either
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(_host())
        file.flush()
        os.rename(f"{path}.new", path)  # from here on the folder may be removed, by whoever gets the lock
        yield


def _remove_abandoned(parent: str) -> None:
    """Remove folders of killed processes: with our name, of this user, made on this host, their lock held by nobody.

    Folders of other hosts stay, as a lock held there may not be seen here.
    """
    if fcntl is None:
        return
    try:
        with os.scandir(parent) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(FOLDER) and _is_own_folder(entry)]
    except OSError:  # making a folder there will say what is wrong
        return
    for folder in found:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            descriptor = os.open(os.path.join(folder, OWNED), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, encoding="utf-8") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode) or file.read() != _host():
                    continue
                fcntl.flock(
                    file, fcntl.LOCK_EX | fcntl.LOCK_NB
                )  # an error where its owner lives, or another removes it
                if os.path.samestat(os.fstat(descriptor), os.stat(os.path.join(folder, OWNED))):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    """Whether this is a folder of this user, and no link to one."""
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # it is gone
        return False


def _host() -> str:
    """What tells this host from others that share a folder."""
    import socket

    found = socket.gethostname()
    with contextlib.suppress(OSError), open("/etc/machine-id", encoding="ascii") as file:
        found += f" {file.read().strip()}"
    return found
