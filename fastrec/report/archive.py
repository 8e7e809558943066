"""A document and arrays as one .npz archive of JSON and plain arrays: nothing in it is code, so reading it is safe."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from fastrec.checks import LABEL, whole_number
from fastrec.exceptions import InputError, InputTypeError, shown

__all__ = [
    "dump_json",
    "holds",
    "pack_ids",
    "pack_integers",
    "pack_labels",
    "read_archive",
    "unpack_ids",
    "unpack_integers",
    "unpack_labels",
    "write_archive",
]

Array = np.ndarray[Any, Any]
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
KINDS_OF_IDS = "iuU"
MAX_COMPRESSION = 1100  # times that deflate makes anything smaller: 1,032 at best


def dump_json(value: object, indent: int | None = None) -> str:
    """Strict JSON; floats keep all their digits."""
    if indent is None:
        return json.dumps(value, allow_nan=False)
    spaces = whole_number(indent)
    if spaces is None or spaces < 0:  # a path would stand before every line
        raise InputTypeError(
            f"indent must be a whole number from 0, or None, found {shown(indent)}: to_json returns its text and "
            "writes no file; Report.save writes one that fastrec.load reads"
        )
    return json.dumps(value, indent=spaces, allow_nan=False)


def write_archive(file: IO[bytes], name: str, document: object, arrays: Mapping[str, Array], *, small: bool) -> None:
    """Write the document, under a name, and the arrays; `small` compresses them."""
    members = {name: _as_bytes(document), **arrays}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED) as archive:
        for member, array in members.items():
            with archive.open(f"{member}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def holds(path: str, name: str) -> bool:
    """Whether a file is an archive with the document of that name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{name}.npy" in archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False


def read_archive(file: IO[bytes], name: str) -> tuple[Any, dict[str, Array]]:
    """The document of that name and the arrays; any exception means that the file is damaged or not one of ours."""
    if not zipfile.is_zipfile(file):
        raise InputError("it is not a whole .npz archive")
    packed = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > MAX_COMPRESSION * packed:
            raise InputError(f"it claims to hold {unpacked:,} bytes, which {packed:,} bytes cannot")
        arrays = {member.filename.removesuffix(".npy"): _read_array(archive, member) for member in members}
    return json.loads(arrays.pop(name).tobytes()), arrays


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """A member as an array. Room is made for it only when it is known to be there."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise InputError(f"{member.filename} is of an unknown version, {version}")
        shape, _, dtype = HEADERS[version](stream)
        there = member.file_size - stream.tell()
        if dtype.hasobject or dtype.itemsize * math.prod(shape) != there or (not dtype.itemsize and shape != (0,)):
            raise InputError(f"{member.filename} claims to be {shape} of {dtype}, which its {there:,} bytes are not")
        stream.seek(0)
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def pack_ids(ids: Array | None, name: str = "user_ids") -> dict[str, Array]:
    """Ids or labels of users as members of an archive; those that are Python objects as JSON."""
    if ids is None:
        return {}
    if ids.dtype.kind in KINDS_OF_IDS:
        return {name: ids}
    listed: list[Any] = ids.tolist()
    other = {type(user_id).__name__ for user_id in listed if not LABEL.holds(user_id)}
    if other:
        raise InputError(f"only text and integer {name} can be saved, not {', '.join(sorted(other))}")
    return {f"{name}_json": _as_bytes(listed)}


def unpack_ids(arrays: Mapping[str, Array], n_users: int, name: str = "user_ids") -> Array | None:
    """The inverse of `pack_ids`: one id or label for each user, or None where none were packed."""
    found = arrays.get(name)
    if f"{name}_json" in arrays:
        listed = json.loads(arrays[f"{name}_json"].tobytes())
        if not isinstance(listed, list) or not all(map(LABEL.holds, listed)):
            raise InputError(f"{name} must be a list of texts and integers")
        found = np.empty(len(listed), dtype=object)
        found[:] = listed
    if found is not None and (found.shape != (n_users,) or found.dtype.kind not in f"{KINDS_OF_IDS}O"):
        raise InputError(
            f"{name} must be one text or integer for each of {n_users} users, found {found.dtype} {found.shape}"
        )
    return found


def pack_labels(labels: Mapping[str, Array]) -> tuple[list[str], dict[str, Array]]:
    """Labels of users by grouping, as the names of these and members of an archive."""
    members: dict[str, Array] = {}
    for nth, own in enumerate(labels.values()):
        members |= pack_ids(own, f"labels_{nth}")
    return list(labels), members


def unpack_labels(groupings: Sequence[str], arrays: Mapping[str, Array], n_users: int) -> dict[str, Array]:
    """The inverse of `pack_labels`."""
    found = {name: unpack_ids(arrays, n_users, f"labels_{nth}") for nth, name in enumerate(groupings)}
    if len(found) < len(groupings):
        raise InputError(f"each grouping must have its labels once, found {shown(groupings)}")
    labels = {name: own for name, own in found.items() if own is not None}
    if len(labels) < len(found):
        raise InputError(f"there are no labels for {next(name for name in found if name not in labels)!r}")
    return labels


def pack_integers(numbers: Array) -> dict[str, Array]:
    """Whole numbers of any size, an object array, as the size in bytes of each and all their bytes."""
    flat = [int(number) for number in numbers.ravel()]
    sizes = [number.bit_length() // 8 + 1 for number in flat]
    joined = b"".join(number.to_bytes(size, "little", signed=True) for number, size in zip(flat, sizes, strict=True))
    return {"sizes": np.array(sizes, np.uint16), "digits": np.frombuffer(joined, np.uint8)}


def unpack_integers(arrays: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
    """The inverse of `pack_integers`."""
    ends = np.cumsum(arrays["sizes"], dtype=np.int64)
    digits = arrays["digits"].tobytes()
    if len(ends) != math.prod(shape) or (ends[-1] if len(ends) else 0) != len(digits):
        raise InputError(f"{math.prod(shape)} numbers are wanted, found {len(ends)}")
    flat = np.empty(len(ends), dtype=object)
    flat[:] = [
        int.from_bytes(digits[end - size : end], "little", signed=True)
        for end, size in zip(ends.tolist(), arrays["sizes"].tolist(), strict=True)
    ]
    return flat.reshape(shape)


def _as_bytes(value: object) -> Array:
    return np.frombuffer(dump_json(value).encode(), dtype=np.uint8)
