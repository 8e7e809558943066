"""Ids, groups and weights of users."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import is_whole, with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, RowNumber, shown
from fastrec.inputs.arrow import index_of
from fastrec.inputs.columns import MAX_WEIGHT, WANTED_WEIGHTS
from fastrec.inputs.ids import SPELL_ALIKE, Ids, Spelled, Strings, as_objects, check_ids, encode_strings, spell
from fastrec.inputs.ragged import as_array
from fastrec.inputs.tensors import refuse_unusual

Array = np.ndarray[Any, Any]
INT64, UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)
KINDS_OF_IDS = "iuU"  # of arrays, as saved files hold them
NO_IDS = (type(None), np.bool_, Number)


class Users(NamedTuple):
    """Ids, groups and weights of users."""

    ids: Array | None
    groups: Array  # int32 (n_groupings, n_users)
    keys: list[tuple[str, str | int]]
    weights: Array | None
    order: Array | None = None  # positions by ascending id, for reports; None to report in the present order

    def labels(self) -> dict[str, Array]:
        """Return the label of each user in each grouping, in the order of the report; {} without users."""
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
    """Return distinct user ids as an array of integers, strings, or objects (such as dict keys that are tuples)."""
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
    """Check that user ids that are Python objects have one type on all sides, as in data frames.

    Ids of different types never match. NaN does not even match itself, and 1.0, True and Decimal(1) would match 1.
    """
    kinds = {}
    for name, ids in sides.items():
        types = sorted(set(map(type, ids)), key=str)
        wrong = next((kind for kind in types if issubclass(kind, NO_IDS) and not is_whole(kind)), None)
        if wrong is not None:
            found = next(own for own in ids if type(own) is wrong)
            raise InputTypeError(f"user ids must be integers or strings, found {found!r} in {name}")
        kinds[name] = list(dict.fromkeys(map(_kind_of_id, types)))
    if len({kind for own in kinds.values() for kind in own}) > 1:
        listed = ", ".join(f"{name}: {' and '.join(own) or 'none'}" for name, own in kinds.items())
        raise InputTypeError(f"user ids must be of one type on all sides, found {listed}{SPELL_ALIKE}")


def _kind_of_id(kind: type) -> str:
    """Return the name of a type of ids; ids under one name can be equal."""
    if is_whole(kind):
        return "integers"
    return "strings" if issubclass(kind, str) else kind.__name__


def _labels(values: Any, name: str, n: int, per: str = "user") -> Array:
    """Return a 1-D array of integers, strings or objects with one label per user, or per row."""
    refuse_unusual(values, name)
    by_id = ("; labels by user are for ", Argument("by")) if isinstance(values, Mapping) and per == "user" else ()
    array = as_objects(values, name, f"one label per {per}", by_id)
    if array.shape != (n,):
        raise InputError(f"{name} must have one label per {per}, {n}; found shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype == object:
        at = next((i for i, label in enumerate(array) if not is_hashable(label)), None)
        if at is not None:
            kind = with_article(type(array[at]).__name__)
            raise InputTypeError(f"{name} must be integers or strings, found {kind} at position {at}")
        return _plain(array)
    if array.dtype.kind == "T":
        return _plain(array.astype(object))
    if array.dtype.kind == "S":
        return array.astype(object)
    if array.dtype.kind not in "iuUS":
        raise InputTypeError(f"{name} must be integers or strings, found dtype {array.dtype}")
    if array.dtype.kind in "iu" and not (array.dtype == np.uint64 and array.max() > INT64.max):
        return array.astype(np.int64, copy=per != "row")  # labels of rows are only read
    return array


def is_hashable(label: Any) -> bool:
    """Return whether a label is hashable; its type does not tell, e.g. for a tuple that holds a list."""
    try:
        hash(label)
    except (TypeError, ValueError):
        return False
    return True


def check_labels_of(labels: Any, name: str, n: int, per: str) -> Array:
    """Return one label per user, or per row: all integers or all strings. Strings that end in NUL are objects."""
    array = _labels(labels, name, n, per)
    values = array.tolist() if array.dtype.kind not in "iuU" else []
    if not all(issubclass(kind, str) for kind in set(map(type, values))):
        kinds = {"NaN" if isinstance(own, float) and math.isnan(own) else type(own).__name__ for own in values}
        found = f", found {', '.join(sorted(kinds))}"
        raise InputTypeError(f"the labels of {name} must be all integers or all strings{found}")
    return array


def as_labels(values: list[Any]) -> Array:
    """Return labels of one kind as an array of integers or strings."""
    if not values:
        return np.zeros(0, np.int64)
    return _plain(np.fromiter(values, object, len(values)))


def spelled_labels(strings: Sequence[Any], codes: Array) -> Array:
    """Return the strings of some codes as labels."""
    plain = strings.pick_plain(codes) if isinstance(strings, Spelled) else None
    return as_labels(spell(strings, codes)) if plain is None else plain


def _plain(array: Array) -> Array:
    """Convert an object array to integers or strings if all elements are; NumPy scalars become Python's own."""
    values = array.tolist()
    values = [int(v) if isinstance(v, np.integer) and is_whole(type(v)) else v for v in values]
    values = [v[:] if isinstance(v, np.str_) else v for v in values]  # its str() and pickles lose a NUL at the end
    kinds = set(map(type, values))
    if kinds and all(map(is_whole, kinds)):
        lowest, highest = min(values), max(values)  # NumPy 1 wraps an integer that does not fit uint64
        for width in (INT64, UINT64):
            if width.min <= lowest and highest <= width.max:
                return np.array(values, width.dtype)
    # NumPy's fixed-width strings drop trailing NULs, so strings that end in one stay objects
    if kinds and all(issubclass(kind, str) for kind in kinds) and not any(string.endswith("\0") for string in values):
        return np.array(values, str)
    return np.fromiter(values, object, len(values))


class Keys(NamedTuple):
    """The id of each row, or user, as an integer, and the ids of these integers."""

    codes: Array  # int32 or int64
    name_of: Callable[[Array], Array]  # the ids of some codes; ascending codes are ascending ids


def encode_keys(user_ids: Any, n: int, name: str = "user_ids") -> Keys:
    """Encode the key of each row, or several keys that identify a user together; `name` is the argument."""
    if not isinstance(user_ids, tuple):
        return encode_key(user_ids, name, n)
    if not user_ids:
        raise InputError(f"{name} must hold at least one key per row, found an empty tuple")
    return combine_keys([encode_key(part, f"{name}[{at}]", n) for at, part in enumerate(user_ids)])


def combine_keys(keys: Sequence[Keys]) -> Keys:
    """Number the distinct tuples of several keys of each row; their ids are tuples."""
    codes, distinct = number_codes(keys[0].codes)
    pairs = []  # what each further key made of the codes before it
    for key in keys[1:]:
        own, present = number_codes(key.codes)
        codes, combined = number_codes(codes * len(present) + own)  # small again, so that the next product fits
        pairs.append((key, combined, present))

    def name_of(some: Array) -> Array:
        parts = []
        for key, combined, present in reversed(pairs):
            some, own = np.divmod(combined[some], len(present))
            parts.append(key.name_of(present[own]).tolist())
        parts.append(keys[0].name_of(distinct[some]).tolist())
        return np.fromiter(zip(*reversed(parts), strict=True), object, len(some))

    return Keys(codes, name_of)


def number_codes(codes: Array) -> tuple[Array, Array]:
    """Return numbers from 0 for codes, in the order of codes, and the distinct codes."""
    if not len(codes):
        return np.zeros(0, np.int64), codes
    lowest = int(codes.min())
    if int(codes.max()) - lowest < len(codes):
        present = np.bincount(codes - lowest) > 0
        return (np.cumsum(present) - 1)[codes - lowest], np.flatnonzero(present) + lowest
    distinct, numbers = np.unique(codes, return_inverse=True)
    return numbers, distinct


def encode_key(values: Any, name: str, n: int) -> Keys:
    """Encode the key of each row; ascending codes are ascending keys."""
    ids = values if isinstance(values, Strings) else check_ids(values, name)
    if len(ids) != n:
        raise InputError(name, f" must have one key per row, {n}; found {len(ids)}")
    (codes,), name_of = encode_sides([ids])
    return Keys(codes, name_of)


def encode_sides(ids: Sequence[Ids]) -> tuple[list[Array], Callable[[Array], Array]]:
    """Return ids of one kind of several sides as integers, and a function that names these as in `Keys`."""
    integers = [own for own in ids if isinstance(own, np.ndarray) and own.dtype != object]
    if len(integers) == len(ids):
        return integers, lambda codes: codes.astype(np.int64, copy=False)
    codes, strings = encode_strings(own if len(own) else np.zeros(0, object) for own in ids)
    return codes, functools.partial(spelled_labels, strings)


def check_order_of_users(recs: Collection[Any] | None, ids: Array | None, groups: Any, user_weight: Any) -> None:
    """Check that labels and weights by position have one meaning.

    The keys of `recs`, if it has any, and the indexes of Series must not have the users in another order.
    """
    weights = None if isinstance(user_weight, Mapping) else user_weight
    if ids is None or (groups is None and weights is None):
        return
    users = ids.tolist()
    named = groups if isinstance(groups, Mapping) else {"": groups}
    by_id = [("groups", own, "by", "label") for own in named.values()] + [
        ("user_weight", weights, "user_weight", "weight")
    ]
    apart = None if recs is None else _first_apart(recs, users)
    for name, value, other, each in by_id:
        if value is None:
            continue
        hint = (": to match it by key, pass ", Argument(other), f"={{user: {each}}}")
        if apart is not None:
            first, second = map(shown, apart)
            order = (f"{name} is in the order of the keys of the truth, but ", Argument("recs"))
            raise InputError(*order, f" has user {first} before {second}", *hint)
        own = users if (index := index_of(value)) is None else index.tolist()
        if own != users and Counter(own) == Counter(users):
            raise InputError(f"{name} is a Series whose index has the users in another order", *hint)


def _first_apart(recs: Collection[Any], users: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the first key of `recs` that is not in the order of the users, and the user in its place."""
    pairs = zip(recs, (user for user in users if user in recs), strict=True)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def check_weights(user_weight: Any, n_users: int, ids: Array | None = None, *, by_row: bool = False) -> Array | None:
    """Return weights as float64 (n_users,), finite and not negative; `ids` of users for {user: weight}.

    `by_row`: rows stand in place of users.
    """
    if user_weight is None:
        return None
    if isinstance(user_weight, Mapping):
        user_weight = _weights_by_id(user_weight, ids)
    array = as_array(user_weight, "user_weight")
    if array.dtype.kind not in "iufb" or array.dtype.itemsize > 8:
        raise InputTypeError(f"user_weight must be numbers of at most 64 bits, found dtype {array.dtype}")
    if array.shape != (n_users,):
        wanted, other = ("row", ", or be {user: weight}") if by_row else ("user", "")
        raise InputError(f"user_weight must have one weight per {wanted}, {n_users}{other}; found shape {array.shape}")
    weights = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"user_weight must be finite and not negative, found {weights[at]}", RowNumber.at(at, "user"))
    largest = weights.max(initial=0.0)
    if largest > MAX_WEIGHT or (largest > 0 and weights[weights > 0].min() < 1 / MAX_WEIGHT):
        raise InputError(f"user_weight must be {WANTED_WEIGHTS}, because squares are summed")
    return weights


def _weights_by_id(weights: Mapping[Any, Any], ids: Array | None) -> list[Any]:
    """Return the weight of each user."""
    if ids is None:
        raise InputError("user_weight has weights by user, but these users have no ids: pass user_ids or dicts")
    users = ids.tolist()
    check_keys({"user_weight": weights, **({"the data": users} if weights and users else {})})
    without = next((user for user in users if user not in weights), None)
    if without is not None:
        raise InputError(f"user_weight has no weight of user {shown(without)}")
    return [weights[user] for user in users]


def check_groups(groups: Any, n_users: int) -> tuple[Array, list[tuple[str, str | int]]]:
    """Return groups as 1-based codes, int32 (n_groupings, n_users), and the (grouping, label) of each code."""
    if groups is None:
        return np.zeros((0, n_users), np.int32), []
    groupings = groups if isinstance(groups, Mapping) else {"group": groups}
    codes = np.zeros((len(groupings), n_users), np.int32)
    keys: list[tuple[str, str | int]] = []
    for row, (name, labels) in enumerate(groupings.items()):
        if not isinstance(name, str):
            raise InputTypeError(f"the names of groups must be strings, found {shown(name)}")
        where = f"groups[{name!r}]" if isinstance(groups, Mapping) else "groups"
        distinct, own = np.unique(check_labels_of(labels, where, n_users, "user"), return_inverse=True)
        codes[row] = own + 1 + len(keys)
        keys += [(name, label) for label in distinct.tolist()]
    return codes, keys


def alike(ids: Sequence[Array]) -> list[Array]:
    """Return arrays of ids in comparable types: NumPy compares int64 with uint64 as floats, which merges ids."""
    if len({own.dtype.kind for own in ids} & {"i", "u"}) < 2:
        return list(ids)
    fits = all(own.size == 0 or own.dtype.kind != "u" or own.max() <= INT64.max for own in ids)
    return [own.astype(np.int64 if fits else object) if own.dtype.kind in "iu" else own for own in ids]


NO_LABEL = "(none)"


def check_labels(labels: Iterable[Any]) -> None:
    """Check that labels are all integers or all strings: 1 and "1" would become one group."""
    first: dict[bool, Any] = {}  # by whether it is a string
    for label in labels:
        is_string = isinstance(label, str)
        if not is_string and not is_whole(type(label)):
            raise InputTypeError(f"the labels in by must be integers or strings, found {shown(label)}")
        first.setdefault(is_string, label)
    if len(first) > 1:
        found = " and ".join(map(shown, first.values()))
        raise InputTypeError(f"the labels in by must be all integers or all strings, found {found}")


def refuse_row_numbers(series: Any, user: Any) -> None:
    """Reject a Series of pandas with the index that a column of a data frame has: it numbers rows, not users.

    A Series of {1: label, ...} has a range as its index, too, but from 1.
    """
    index = series.index
    if type(index).__name__ == "RangeIndex" and index.name is None and index.start == 0 and len(index):
        name = user if isinstance(user, str) else "user_id"
        raise InputError(
            f"by is a Series whose index numbers its rows from 0, expected the users as its index: pass "
            f"users.set_index({name!r})[{series.name!r}], or series.rename_axis({name!r}) if users are numbered from 0"
        )


class UserLabels:
    """Labels by user id, in one grouping or several, as `by` accepts them instead of column names."""

    def __init__(self, groupings: Mapping[str, Mapping[Any, Any]], user: str | None = None) -> None:
        self.user = user  # the column of users, if they come from a data frame
        for name, labels in groupings.items():
            if not isinstance(name, str):
                raise InputTypeError(f"the names of groupings in by must be strings, found {shown(name)}")
            check_keys({"by": labels.keys()})
            check_labels(labels.values())
        self.groupings = {name: {user: str(label) for user, label in own.items()} for name, own in groupings.items()}

    @classmethod
    def of_mapping(cls, by: Mapping[Any, Any], user: Any = None) -> UserLabels:
        """Read {user: label}, or {grouping: {user: label}}; `user` names the column of users, `user_id` by default.

        A grouping of this name is that of a data frame of users as a dict, whose keys number rows.
        """
        several = len(by) > 0 and all(isinstance(labels, Mapping) for labels in by.values())
        users = "user_id" if user is None else user
        if several and isinstance(users, str) and users in by:
            raise InputError(
                f"by has a grouping {users!r}, the name of the column of users, as a data frame has it as a dict: "
                "pass the data frame, or {grouping: {user: label}}"
            )
        return cls(by if several else {"group": by})

    def of(self, ids: Array | None) -> dict[str, list[str]]:
        """Return the label of each user by grouping; NO_LABEL for users without one."""
        if ids is None:
            raise InputError("by has labels by user, but these users have no ids: pass user_ids, dicts or data frames")
        users = ids.tolist()
        for labels in self.groupings.values() if users else ():
            check_keys({"by": list(itertools.islice(labels, 1)), "the data": users})
        return {name: [labels.get(user, NO_LABEL) for user in users] for name, labels in self.groupings.items()}


def check_saved_ids(ids: Array | None) -> Array | None:
    """Check that user ids read from bytes are distinct."""
    if ids is not None:
        if ids.dtype == object:
            n_distinct = len(set(ids.tolist()))
        else:  # most ids ascend, which shows without a sort that they are distinct
            n_distinct = len(ids) if (ids[1:] > ids[:-1]).all() else len(np.unique(ids))
        if n_distinct < len(ids):
            raise InputError("each user must appear once, found one twice")
    return ids


def join_ids(parts: Sequence[Array]) -> Array | None:
    """Join the ids (or labels) of batches in one array, of the type that one batch would have."""
    if not parts:
        return None
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if len({part.dtype.kind for part in filled}) > 1:
        return _plain(np.concatenate([part.astype(object) for part in filled]))
    return np.concatenate(filled)


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
