"""Ids and labels as plain arrays, as saved files hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec.checks import is_whole
from fastrec.exceptions import InputError

Array = np.ndarray[Any, Any]
KINDS_OF_IDS = "iuU"


def pack_ids(ids: Array | None, name: str = "user_ids") -> dict[str, Array]:
    """Return ids or labels of users as members of an archive. Python objects become JSON; a tuple is an array there."""
    if ids is None:
        return {}
    if ids.dtype.kind in KINDS_OF_IDS:
        return {name: ids}
    listed: list[Any] = ids.tolist()
    parts = (part for own in listed for part in (own if isinstance(own, tuple) else (own,)))
    other = {type(part).__name__ for part in parts if not (isinstance(part, str) or is_whole(type(part)))}
    if other:
        raise InputError(f"only string and integer {name} can be saved, not {', '.join(sorted(other))}")
    return {f"{name}_json": np.frombuffer(json.dumps(listed, allow_nan=False).encode(), np.uint8)}


def unpack_ids(arrays: Mapping[str, Array], n_users: int, name: str = "user_ids") -> Array | None:
    """Undo `pack_ids`: return one id or label per user, or None if none were packed."""
    found = arrays.get(name)
    if f"{name}_json" in arrays:
        listed = json.loads(arrays[f"{name}_json"].tobytes())
        found = np.fromiter((tuple(own) if isinstance(own, list) else own for own in listed), object, len(listed))
    if found is not None and (found.shape != (n_users,) or found.dtype.kind not in f"{KINDS_OF_IDS}O"):
        raise InputError(
            f"{name} must be one string or integer for each of {n_users} users, found {found.dtype} {found.shape}"
        )
    return found
