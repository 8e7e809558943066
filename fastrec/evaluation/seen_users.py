"""Ids of the users of earlier batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fastrec.checks import is_whole
from fastrec.inputs.users import INT64, UINT64

Array = np.ndarray[Any, Any]


class SeenUsers:
    """Ids of the users of several batches, to find a user that comes twice, whatever the types of the arrays.

    Sorted runs of growing length hold 64-bit integers and strings, so that adding n users costs n log n in all. A set
    holds larger integers, strings that NumPy would change, and other dict keys.
    """

    def __init__(self) -> None:
        self._runs: dict[str, list[Array]] = {}  # by kind
        self._others: set[Any] = set()

    def find(self, users: Array) -> Any:
        """Return a user that was added before, or None."""
        kinds, others = _by_kind(users)
        for kind, ids in kinds.items():
            for run in self._runs.get(kind, ()):
                at = np.minimum(np.searchsorted(run, ids), len(run) - 1)
                again = run[at] == ids
                if again.any():
                    return ids[int(again.argmax())].item()
        return next((user for user in others if user in self._others), None)

    def add(self, users: Array) -> None:
        """Add users."""
        kinds, others = _by_kind(users)
        for kind, ids in kinds.items():
            runs = self._runs.setdefault(kind, [])
            run = np.sort(ids)
            while runs and len(runs[-1]) <= len(run):
                run = np.sort(np.concatenate([runs.pop(), run]))
            runs.append(run)
        self._others.update(others)

    def some(self) -> list[Any]:
        """Return one of the users, in a list; [] without any."""
        sorted_ones = [runs[0][0].item() for runs in self._runs.values()]
        return sorted_ones[:1] or list(itertools.islice(self._others, 1))

    def merge(self, other: SeenUsers) -> None:
        """Add the users of another."""
        for part in other._parts():
            self.add(part)

    def common(self, other: SeenUsers) -> Any:
        """Return a user that both hold, or None."""
        return next((user for part in other._parts() if (user := self.find(part)) is not None), None)

    def _parts(self) -> list[Array]:
        """Return all users, in arrays."""
        others = np.fromiter(self._others, dtype=object, count=len(self._others))
        return [*itertools.chain.from_iterable(self._runs.values()), others]


def _by_kind(users: Array) -> tuple[dict[str, Array], list[Any]]:
    """Group ids by the kind of array that holds them exactly; return the ids that no array holds separately.

    Equal ids have the same kind: "i" for integers that fit int64, "u" for larger ones that fit uint64, "U" for strings.
    """
    if users.dtype != object:
        found, others = {users.dtype.kind: users}, []
        if users.dtype.kind == "u":
            large = users > INT64.max
            found = {"i": users[~large].astype(np.int64), "u": users[large].astype(np.uint64)}
    else:
        listed: dict[str, list[Any]] = {"i": [], "u": [], "U": [], "": []}
        for user in users.tolist():
            listed[_kind_of_array(user)].append(user)
        others = listed.pop("")
        types: dict[str, Any] = {"i": np.int64, "u": np.uint64, "U": str}
        found = {kind: np.array(own, types[kind]) for kind, own in listed.items() if own}
    return {kind: ids for kind, ids in found.items() if len(ids)}, others


def _kind_of_array(user: Any) -> str:
    """Return the kind of array that holds an id exactly; "" for none."""
    if is_whole(type(user)):
        return "i" if INT64.min <= user <= INT64.max else "u" if INT64.max < user <= UINT64.max else ""
    return "U" if isinstance(user, str) and not user.endswith("\0") else ""
