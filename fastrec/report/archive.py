"""An .npz archive of JSON and plain arrays. It holds no code, so reading it is safe."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from fastrec.exceptions import InputError, shown
from fastrec.inputs.users import pack_ids, unpack_ids
from fastrec.show.json import dump_json

Array = np.ndarray[Any, Any]
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
CHECKSUM = "checksum"  # of all other members: a file that was changed since is refused
MAX_COMPRESSION = 1100  # deflate makes data at most 1,032 times smaller


class _Archive(zipfile.ZipFile):
    """An archive in a file that others close."""

    def __del__(self) -> None:
        """Do nothing: closing an archive fails, with a message, if the writing of a member was broken off."""


def write_archive(file: IO[bytes], name: str, document: object, arrays: Mapping[str, Array], *, small: bool) -> None:
    """Write the document, under a name, and the arrays. `small`: compress them."""
    members = {name: _as_bytes(document), **arrays}
    members[CHECKSUM] = _checksum(members)
    try:
        with _Archive(file, "w", zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED) as archive:
            for member, array in members.items():
                with archive.open(f"{member}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
    except ValueError as error:  # closing the archive fails, and hides what broke off the writing of a member
        raise error if error.__context__ is None else error.__context__ from None


def holds(path: str, name: str) -> bool:
    """Return whether a file is an archive with the document of that name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{name}.npy" in archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False


def read_archive(file: IO[bytes], name: str) -> tuple[Any, dict[str, Array]]:
    """Return the document of that name and the arrays.

    Any exception means that the file is damaged, or that fastrec did not write it.
    """
    if not zipfile.is_zipfile(file):
        raise InputError("it is not a complete .npz archive")
    packed = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > MAX_COMPRESSION * packed:
            raise InputError(f"it claims to hold {unpacked:,} bytes, but a file of {packed:,} bytes cannot")
        arrays = {member.filename.removesuffix(".npy"): _read_array(archive, member) for member in members}
    if not np.array_equal(arrays.pop(CHECKSUM, np.empty(0)), _checksum(arrays)):
        raise InputError("its contents are not those that fastrec wrote: it was changed, or is of an earlier version")
    return json.loads(arrays.pop(name).tobytes()), arrays


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Return a member as an array. Memory is allocated only after its size is checked."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise InputError(f"{member.filename} has an unknown .npy version, {version}")
        shape, _, dtype = HEADERS[version](stream)
        size = member.file_size - stream.tell()
        if dtype.hasobject or dtype.itemsize * math.prod(shape) != size or (not dtype.itemsize and shape != (0,)):
            raise InputError(f"{member.filename} claims to be {shape} of {dtype}, but has {size:,} bytes")
        stream.seek(0)
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def pack_labels(labels: Mapping[str, Array]) -> tuple[list[str], dict[str, Array]]:
    """Return the names of the groupings, and their labels of users as members of an archive."""
    members: dict[str, Array] = {}
    for nth, own in enumerate(labels.values()):
        members |= pack_ids(own, f"labels_{nth}")
    return list(labels), members


def unpack_labels(groupings: Sequence[str], arrays: Mapping[str, Array], n_users: int) -> dict[str, Array]:
    """Undo `pack_labels`."""
    found = {name: unpack_ids(arrays, n_users, f"labels_{nth}") for nth, name in enumerate(groupings)}
    if len(found) < len(groupings):
        raise InputError(f"each grouping must have its labels once, found {shown(groupings)}")
    labels = {name: own for name, own in found.items() if own is not None}
    if len(labels) < len(found):
        raise InputError(f"labels of {next(name for name in found if name not in labels)!r} are missing")
    return labels


def pack_integers(numbers: Array) -> dict[str, Array]:
    """Return integers of any size (an object array) as the size of each in bytes, and all bytes."""
    flat = [int(number) for number in numbers.ravel()]
    sizes = [number.bit_length() // 8 + 1 for number in flat]
    joined = b"".join(number.to_bytes(size, "little", signed=True) for number, size in zip(flat, sizes, strict=True))
    return {"sizes": np.array(sizes, np.uint16), "digits": np.frombuffer(joined, np.uint8)}


def unpack_integers(arrays: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
    """Undo `pack_integers`."""
    ends = np.cumsum(arrays["sizes"], dtype=np.int64)
    digits = arrays["digits"].tobytes()
    if len(ends) != math.prod(shape) or (ends[-1] if len(ends) else 0) != len(digits):
        raise InputError(f"expected {math.prod(shape)} integers, found {len(ends)}")
    flat = np.empty(len(ends), dtype=object)
    flat[:] = [
        int.from_bytes(digits[end - size : end], "little", signed=True)
        for end, size in zip(ends.tolist(), arrays["sizes"].tolist(), strict=True)
    ]
    return flat.reshape(shape)


def _checksum(members: Mapping[str, Array]) -> Array:
    """Return a hash of names, types, shapes and contents. It finds damage and edits; it is no seal against forgery."""
    checksum = hashlib.blake2b(digest_size=32)
    for name, array in sorted(members.items()):
        checksum.update(repr((name, array.dtype.str, array.shape)).encode())
        checksum.update(array.tobytes())
    return np.frombuffer(checksum.digest(), np.uint8)


def _as_bytes(value: object) -> Array:
    return np.frombuffer(dump_json(value).encode(), dtype=np.uint8)
