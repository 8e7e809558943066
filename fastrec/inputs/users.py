"""What is known of users besides their items: ids, groups, weights."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, listed, shown
from fastrec.ragged import as_array

__all__ = [
    "SeenUsers",
    "User",
    "alike",
    "as_labels",
    "check_groups",
    "check_keys",
    "check_labels_of_rows",
    "check_user_ids",
    "check_weights",
    "is_hashable",
]

Array = np.ndarray[Any, Any]
LARGEST_WEIGHT = 1e100
NO_IDS = (type(None), bool, np.bool_, float, np.floating)


class User(NamedTuple):
    """What is known of users: ids, groups, weights."""

    ids: Array | None
    groups: Array  # int32 (n_groupings, n_users)
    keys: list[tuple[str, str | int]]
    weights: Array | None
    order: Array | None = None  # the users by ascending id, if they are to be reported so and stand otherwise

    def labels(self) -> dict[str, Array]:
        """The label of each user in each grouping, in the order in which users are reported; {} without users."""
        found: dict[str, Array] = {}
        if not self.groups.size:
            return found
        for codes in self.groups:
            name = self.keys[int(codes[0]) - 1][0]
            own = [(at, label) for at, (grouping, label) in enumerate(self.keys, start=1) if grouping == name]
            labels = as_labels([label for _, label in own])
            found[name] = labels[(codes if self.order is None else codes[self.order]) - own[0][0]]
        return found


def check_user_ids(user_ids: Any, n_users: int) -> Array | None:
    """User ids as an array of integers or texts (or of objects, such as keys of dicts that are tuples), each once."""
    if user_ids is None:
        return None
    array = _labels(user_ids, "user_ids", n_users)
    if array.dtype == object:
        check_keys({"user_ids": array.tolist()})
        if len(set(array.tolist())) == n_users:
            return array
        twice = next(user for user, times in Counter(array.tolist()).items() if times > 1)
    else:
        ordered = np.sort(array)
        again = ordered[1:] == ordered[:-1]
        if not np.any(again):
            return array
        twice = ordered[1:][again][0].item()
    raise InputError(f"user_ids must hold each user once, found {shown(twice)} twice")


def check_keys(sides: Mapping[str, Collection[Any]]) -> None:
    """Ids of users that are Python's own must be of one type on all sides, as those of data frames.

    Of unlike types none could match. NaN does not even match itself, and 1.0 and True would match 1.
    """
    kinds = {}
    for name, ids in sides.items():
        types = sorted(set(map(type, ids)), key=str)
        wrong = next((kind for kind in types if issubclass(kind, NO_IDS)), None)
        if wrong is not None:
            found = next(own for own in ids if type(own) is wrong)
            raise InputTypeError(f"user ids must be integers or texts, found {found!r} in {name}")
        kinds[name] = list(dict.fromkeys(map(_kind_of_id, types)))
    if len({kind for own in kinds.values() for kind in own}) > 1:
        listed = ", ".join(f"{name}: {' and '.join(own) or 'none'}" for name, own in kinds.items())
        raise InputTypeError(f"user ids must be of one type on all sides, found {listed}")


def _kind_of_id(kind: type) -> str:
    """What ids of a type are called: those of one name can be equal."""
    if issubclass(kind, (int, np.integer)):
        return "integers"
    return "texts" if issubclass(kind, str) else kind.__name__


def _labels(values: Any, name: str, n_users: int) -> Array:
    """A 1-D array of integers, texts or objects with one label per user."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(f"{name} must not be a masked array: fill it first")
    array = _array_of(values, name)
    if array.shape != (n_users,):
        raise InputError(f"{name} must have one label per user, {n_users}; found shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype == object:
        at = next((i for i, label in enumerate(array) if not is_hashable(label)), None)
        if at is not None:
            kind = type(array[at]).__name__
            raise InputTypeError(f"{name} must be integers or texts, found a {kind} at position {at}")
        return _plain(array)
    if array.dtype.kind == "T":
        return np.asarray(array.tolist(), dtype=str)
    if array.dtype.kind == "S":
        return array.astype(object)
    if array.dtype.kind not in "iuUS":
        raise InputTypeError(f"{name} must be integers or texts, found dtype {array.dtype}")
    if array.dtype.kind in "iu" and not (array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max):
        return array.astype(np.int64)
    return array


def is_hashable(label: Any) -> bool:
    """Whether a label can be looked up; its type does not tell, as of a tuple that holds a list."""
    try:
        hash(label)
    except (TypeError, ValueError):
        return False
    return True


def _array_of(values: Any, name: str) -> Array:
    """Labels as an array, without NumPy's own guesses about mixed types."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        return as_array(values, name)
    if isinstance(values, (str, bytes, AbstractSet)) or not isinstance(values, Iterable):
        raise InputTypeError(f"{name} must be one label per user, found a {type(values).__name__}: {shown(values)}")
    rows = listed(values, name)
    array = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    return array


def check_labels_of_rows(labels: Any, name: str, n_rows: int) -> Array:
    """One label per row, integers or texts."""
    array = _labels(labels, name, n_rows)
    if array.dtype.kind not in "iuU":
        raise InputTypeError(f"the labels of {name} must be all integers or all texts{_kinds(array)}")
    return array


def _kinds(array: Array) -> str:
    """What stands in an array of objects, to end an error with."""
    return f", found {', '.join(sorted({type(value).__name__ for value in array.tolist()}))}"


def as_labels(values: list[Any]) -> Array:
    """Labels of one kind as an array of integers or texts."""
    if not values:
        return np.zeros(0, np.int64)
    return _plain(_array_of(values, "labels"))


def _plain(array: Array) -> Array:
    """An object array as integers or texts if all its elements are such."""
    kinds = set(map(type, array.tolist()))
    if kinds and all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        for width in (np.int64, np.uint64):
            with contextlib.suppress(OverflowError):
                return array.astype(width)
        return array
    # NumPy's fixed-width texts drop trailing NULs, so texts that end in one stay objects
    if (
        kinds
        and all(issubclass(kind, str) for kind in kinds)
        and not any(text.endswith("\0") for text in array.tolist())
    ):
        return array.astype(str)
    return array


def check_weights(user_weight: Any, n_users: int) -> Array | None:
    """Weights as float64 (n_users,), finite and not negative."""
    if user_weight is None:
        return None
    if isinstance(user_weight, np.ma.MaskedArray):
        raise InputTypeError("user_weight must not be a masked array: fill it first")
    array = as_array(user_weight, "user_weight")
    if array.dtype.kind not in "iufb" or array.dtype.itemsize > 8:
        raise InputTypeError(f"user_weight must be numbers of at most 64 bits, found dtype {array.dtype}")
    if array.shape != (n_users,):
        raise InputError(f"user_weight must have one weight per user, {n_users}; found shape {array.shape}")
    weights = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"user_weight must be finite and not negative, found {weights[at]} at user {at}")
    largest = weights.max(initial=0.0)
    if largest > LARGEST_WEIGHT or (largest > 0 and weights[weights > 0].min() < 1 / LARGEST_WEIGHT):
        raise InputError(
            f"user_weight must be 0 or from {1 / LARGEST_WEIGHT} to {LARGEST_WEIGHT}, as squares are summed"
        )
    return weights


def check_groups(groups: Any, n_users: int) -> tuple[Array, list[tuple[str, str | int]]]:
    """Groups as 1-based codes, int32 (n_groupings, n_users), and the (grouping, label) of each code."""
    if groups is None:
        return np.zeros((0, n_users), np.int32), []
    groupings = groups if isinstance(groups, Mapping) else {"group": groups}
    codes = np.zeros((len(groupings), n_users), np.int32)
    keys: list[tuple[str, str | int]] = []
    for row, (name, labels) in enumerate(groupings.items()):
        if not isinstance(name, str):
            raise InputTypeError(f"the names of groups must be texts, found {shown(name)}")
        array = _labels(labels, f"groups[{name!r}]" if isinstance(groups, Mapping) else "groups", n_users)
        if array.dtype.kind not in "iuU":
            raise InputTypeError(f"the labels of groups[{name!r}] must be all integers or all texts{_kinds(array)}")
        distinct, own = np.unique(array, return_inverse=True)
        codes[row] = own + 1 + len(keys)
        keys += [(name, label) for label in distinct.tolist()]
    return codes, keys


def alike(ids: Sequence[Array]) -> list[Array]:
    """Arrays of ids in types that can be compared: NumPy takes int64 and uint64 together as floats, which merge ids."""
    if len({own.dtype.kind for own in ids} & {"i", "u"}) < 2:
        return list(ids)
    largest = np.iinfo(np.int64).max
    fits = all(own.size == 0 or own.dtype.kind != "u" or own.max() <= largest for own in ids)
    return [own.astype(np.int64 if fits else object) if own.dtype.kind in "iu" else own for own in ids]


class SeenUsers:
    """Ids of the users of several batches, to find one that comes twice.

    Integers and texts are kept in sorted runs of growing length, so that adding n users costs n log n in all; other
    keys of dicts in a set.
    """

    def __init__(self) -> None:
        self._runs: list[Array] = []
        self._others: set[Any] = set()

    def find(self, users: Array) -> Any:
        """A user that was seen before, or None."""
        if users.dtype == object:
            return next((user for user in users.tolist() if user in self._others or self._in_runs(user)), None)
        for run in self._runs:
            if run.dtype.kind == users.dtype.kind and len(users):
                at = np.minimum(np.searchsorted(run, users), len(run) - 1)
                again = run[at] == users
                if again.any():
                    return users[int(again.argmax())].item()
        if self._others:
            return next((user for user in users.tolist() if user in self._others), None)
        return None

    def _in_runs(self, user: Any) -> bool:
        kind = "U" if isinstance(user, str) else "i" if isinstance(user, int) else None
        return kind is not None and any(run.dtype.kind == kind and user in run for run in self._runs)

    def add(self, users: Array) -> None:
        """Remember users."""
        if users.dtype == object:
            self._others.update(users.tolist())
            return
        run = np.sort(users)
        while self._runs and len(self._runs[-1]) <= len(run) and self._runs[-1].dtype.kind == run.dtype.kind:
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        if len(run):
            self._runs.append(run)

    def merge(self, other: SeenUsers) -> None:
        """Remember what another has seen."""
        for run in list(other._runs):
            self.add(run)
        self._others |= other._others

    def common(self, other: SeenUsers) -> Any:
        """A user that both have seen, or None."""
        parts = [*other._runs, np.fromiter(other._others, dtype=object, count=len(other._others))]
        return next((user for part in parts if (user := self.find(part)) is not None), None)
