"""Lists and truth in every accepted form, as flat arrays of the same users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import is_number, listed
from fastrec.exceptions import InputError, InputTypeError, RowNumber, shown
from fastrec.inputs.arrow import Frame, is_foreign, list_column, read_ids, read_numbers, split_lists
from fastrec.inputs.columns import NUMBER_FIRST, check_numbers_of_items
from fastrec.inputs.ids import Ids, check_ids
from fastrec.inputs.ragged import Ragged, check_indptr, chosen_rows, read_only
from fastrec.inputs.sides import READ_SIDES, kind_of, mixed_forms
from fastrec.inputs.tensors import as_numpy, holds_tensors, is_tensor, refuse_unusual, why_unusual
from fastrec.inputs.users import check_keys

Array = np.ndarray[Any, Any]
BESIDE_OTHERS = frozenset(name for name, kind in READ_SIDES.items() if kind.beside)  # read after the others
READ_AT_ONCE = frozenset((list, tuple))  # Python reads these without letting another thread in


class RawSide(NamedTuple):
    """Lists or truth of all users, end to end, with items as passed."""

    items: Ids
    indptr: Array  # int64 (n_users + 1,)
    extra: Array | None  # scores of lists, gains of truth: float64 (n,)
    order: str = ""  # how lists of a frame without scores are ordered: by "rank", or by "place" of their rows
    ranks: Array | None = None  # of each item, ascending within a user; None if no user's ranks have gaps
    role: str = ""  # of the column of a frame that `extra` holds
    from_zero: bool = False  # whether the ranks of a user begin with 0


class FlatSide(NamedTuple):
    """Lists or truth of all users, end to end."""

    items: Array  # int32 or int64
    indptr: Array  # int64 (n_users + 1,)
    extra: Array | None  # scores of lists, gains of truth: float64 (n,)

    def read_only(self) -> FlatSide:
        """Return views that nobody can write to: the arrays may be those of the caller."""
        return FlatSide(
            read_only(self.items), read_only(self.indptr), None if self.extra is None else read_only(self.extra)
        )

    def of_users(self, at: Array) -> FlatSide:
        """Return the rows of the users at some positions; those of neighbours are not copied."""
        if len(at) and at[-1] - at[0] == len(at) - 1 and (np.diff(at) == 1).all():
            return self.part(at[0], at[-1] + 1)
        rows, ends = chosen_rows(self.indptr, at)
        return FlatSide(self.items[rows], ends, None if self.extra is None else self.extra[rows])

    def part(self, first: int, last: int) -> FlatSide:
        """Return the rows of the users first..last-1, without a copy."""
        ends = self.indptr[first : last + 1]
        rows = slice(ends[0], ends[-1])
        return FlatSide(self.items[rows], ends - ends[0], None if self.extra is None else self.extra[rows])

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Array:
        """The user of each row, from 0."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    @property
    def ranks(self) -> Array:
        """The place of each row among the rows of its user, from 1."""
        ranks: Array = np.arange(1, len(self.items) + 1) - self.indptr[self.users]
        return ranks

    @property
    def gains(self) -> Array:
        """The gain of each row of the truth, 1 if none are given."""
        return np.ones(len(self.items)) if self.extra is None else self.extra


class InputForm(Enum):
    """What holds the rows of all users."""

    TUPLE = 1
    ARRAY = 2
    RAGGED = 3
    ROWS = 4
    DICT = 5
    FRAME = 6
    FOREIGN = 7  # a data frame, a Series or an Arrow array: `open_foreign` makes it a frame or an Arrow column
    TENSOR = 8
    CSR = 9
    OTHER = 10


def classify(value: Any) -> InputForm:
    """Return the form of a value, as the only place that asks for it. The usual forms come first."""
    if isinstance(value, Frame):  # which is a tuple
        return InputForm.FRAME
    for kind, form in PLAIN_FORMS:
        if isinstance(value, kind):
            return InputForm.FOREIGN if form is InputForm.ROWS and is_foreign(value) else form
    if is_foreign(value):
        return InputForm.FOREIGN
    if isinstance(value, Mapping):
        return InputForm.DICT
    if is_tensor(value):
        return InputForm.TENSOR
    is_sparse = hasattr(value, "tocsr") or all(map(functools.partial(hasattr, value), CSR_PARTS))
    return InputForm.CSR if is_sparse else InputForm.OTHER


def read_sides(
    given: Mapping[str, Any], forms: Mapping[str, InputForm], passed: Mapping[str, Any]
) -> tuple[dict[str, RawSide], list[Any] | None]:
    """Return sides for the same users, and the users' keys if the sides are dicts.

    `passed` has the sides before Series became Arrow columns, in which sets are lists.
    """
    for name, form in forms.items():
        if form is InputForm.DICT and READ_SIDES[name].has_users:
            return _read_dicts(given, passed)
    sides: dict[str, RawSide] = {}
    for name in sorted(given, key=BESIDE_OTHERS.__contains__):
        kind, value = READ_SIDES[name], given[name]
        rows = sides.get(kind.beside)
        numbers = None if rows is None else _plain_numbers(value, forms[name], name)
        if rows is not None and numbers is not None:
            _refuse_sets(kind.beside, passed[kind.beside], name)
            sides[name] = RawSide(rows.items, rows.indptr, check_numbers_of_items(numbers, int(rows.indptr[-1]), name))
        else:
            sides[name] = READERS[forms[name]](value, name, kind.numbers)
    n_users = len(sides["recs"].indptr) - 1
    for name, side in sides.items():
        if len(side.indptr) - 1 != n_users:
            raise InputError(
                f"recs and {name} must have the same users in the same order, "
                f"found {n_users} and {len(side.indptr) - 1} users"
            )
    return sides, None


def _refuse_sets(name: str, rows: Any, numbers: str) -> None:
    """Raise InputTypeError for sets among the rows of a side whose numbers another argument gives in their order."""
    if not isinstance(rows, list) and str(getattr(rows, "dtype", "")).lower() != "object":
        return
    at = next((at for at, row in enumerate(rows) if isinstance(row, set | frozenset) and len(row) > 1), None)
    if at is not None:
        raise InputTypeError(
            f"{name}[{at}] is a set, which has no order to match it with the numbers of {numbers}: pass lists in {name}"
        )


def refuse_model(name: str, value: Any) -> None:
    """Raise InputTypeError for a model in place of lists: a function, two matrices, or a matrix of scores."""
    if callable(value) and not hasattr(value, "__array__"):
        found = "a function"
    elif isinstance(value, tuple) and [getattr(part, "ndim", 0) for part in value] == [2, 2]:
        found = "a tuple of two matrices"
    elif isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f":
        found = f"a float array of shape {value.shape}"
    else:
        return
    raise InputTypeError(
        f"{name} is {found}, but must hold lists of items: fastrec.evaluate_model takes a model, and fastrec.top_items "
        "makes lists of it"
    )


def _plain_numbers(value: Any, form: InputForm, name: str) -> Any:
    """Return numbers that are given without items; None for any other value."""
    if form is InputForm.FOREIGN:
        return None if list_column(value) else read_numbers(value, name)
    if form is InputForm.ROWS:
        return value if value and all(map(is_number, value)) else None
    array = as_numpy(value, name) if form is InputForm.TENSOR else value
    return array if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype != object else None


def read_lists(value: Any, name: str) -> RawSide:
    """Return one side for its own users, passed in any form but a data frame."""
    if isinstance(value, Mapping):
        _refuse_columns(name, value)
        check_keys({name: value})
        return _read_rows(list(value.values()), name, READ_SIDES[name].numbers, list(value))
    return read_side(value, name, READ_SIDES[name].numbers)


def _refuse_columns(name: str, keys: Collection[Any]) -> None:
    """Raise InputTypeError for a dict whose keys are names of columns: they would be users, or items of a user."""
    if "user_id" in keys and "item_id" in keys:
        raise InputTypeError(
            f"{name} has the keys 'user_id' and 'item_id', which are names of columns, not users or items: pass a data "
            f"frame, e.g. pandas.DataFrame({name})"
        )


def _read_dicts(given: Mapping[str, Any], passed: Mapping[str, Any]) -> tuple[dict[str, RawSide], list[Any]]:
    """Match dicts by key: users of the truth first, then users with a list only."""
    for name, side in given.items():
        if not isinstance(side, Mapping):
            raise mixed_forms({own: passed.get(own, given[own]) for own in given}, "dicts", name)
        _refuse_columns(name, side)
    check_keys(given)
    truth = given.get("truth", {})
    users = [*truth, *(user for user in given["recs"] if user not in truth)]
    empty: tuple[Any, ...] = ()
    sides = {
        name: _read_rows([side.get(user, empty) for user in users], name, READ_SIDES[name].numbers, users)
        for name, side in given.items()
    }
    if "logged" in given and not given["logged"]:  # as {user: {}} has, of a batch without truth
        sides["logged"] = sides["logged"]._replace(extra=np.zeros(0))
    return sides, users


def read_side(value: Any, name: str, extra: str) -> RawSide:
    """Return one side, passed in any form but a dict or a data frame."""
    return READERS[classify(value)](value, name, extra)


def _read_other(value: Any, name: str, extra: str) -> RawSide:
    wanted = (
        f"(items, indptr), (items, indptr, {extra}), a Ragged, a 2-D integer array padded with -1, a SciPy CSR matrix, "
        "a list with one list of items per user, an Arrow array of lists"
    )
    raise InputTypeError(
        f"{name} must be {wanted}, or dicts {{user: items}} or data frames on both sides; found {kind_of(value)}"
    )


def _read_tensor(value: Any, name: str, extra: str) -> RawSide:
    return _read_array(as_numpy(value, name), name, extra)


def _read_list(value: list[Any], name: str, extra: str) -> RawSide:
    return _read_rows(value, name, extra, None)


def _read_ragged(value: Ragged, name: str, _: str) -> RawSide:
    # checked again: the caller may have changed the arrays since
    items = check_ids(value.values, f"{name}.values")
    return RawSide(items, check_indptr(value.indptr, len(items), f"{name}.indptr"), None)


def _read_column(value: Any, name: str, _: str) -> RawSide:
    """Return the side in an Arrow array of lists, one per user."""
    if not list_column(value):
        raise InputTypeError(f"{name} must hold one list of items per user, found an Arrow array of {value.type}")
    flat, indptr = split_lists(value, name)
    return RawSide(read_ids(flat, f"{name} items"), indptr, None)


def _read_tuple(value: tuple[Any, ...], name: str, extra: str) -> RawSide:
    if len(value) not in (2, 3):
        raise InputError(
            f"{name} is a tuple of {len(value)}, expected (items, indptr) or (items, indptr, {extra}); "
            "pass lists of users as a list, not as a tuple"
        )
    items = check_ids(value[0], f"{name} items")
    indptr = check_indptr(value[1], len(items), f"{name} indptr")
    if len(value) == 2 or value[2] is None:
        return RawSide(items, indptr, None)
    narrow = name == "recs"  # only the order of scores matters, which is the same
    return RawSide(items, indptr, check_numbers_of_items(value[2], len(items), f"{name} {extra}", narrow=narrow))


def _read_array(value: Array, name: str, extra: str) -> RawSide:
    """Return the side in a rectangular array of items, -1 pads the ends of short rows; or in an array of lists."""
    refuse_unusual(value, name, "pad with -1 instead")
    if value.dtype == object:
        return _read_rows(list(value), name, extra, None) if value.ndim else _read_other(value, name, extra)
    if value.dtype.kind == "f":
        raise InputTypeError(
            f"{name} is a float array of shape {value.shape}: lists hold item ids, best first. "
            "fastrec.evaluate_model takes a matrix of scores, and fastrec.top_items makes lists of it"
        )
    if value.ndim != 2:
        mend = f"; for one item per user pass {name}.reshape(-1, 1)" if value.ndim == 1 else ""
        raise InputError(f"{name} is an array of shape {value.shape}: pass (items, indptr), or a 2-D array{mend}")
    if value.dtype.kind not in "iu":
        mend = f": pass {name}.tolist()" if value.dtype.kind in "USO" else ""
        raise InputTypeError(f"{name} must hold integers when it is a 2-D array, found dtype {value.dtype}{mend}")
    _refuse_unsigned_padding(value, name)
    n_users, width = value.shape
    flat = check_ids(value.reshape(-1), name)
    if not flat.size or flat.min() >= 0:
        return RawSide(flat, np.arange(n_users + 1, dtype=np.int64) * width, None)
    rows = flat.reshape(n_users, width)
    kept = rows != -1
    broken = (kept[:, 1:] & ~kept[:, :-1]).any(axis=1)
    if broken.any():
        at = int(broken.argmax())
        raise InputError(f"{name}[{at}] has an item after its padding of -1: {rows[at].tolist()}")
    return RawSide(flat[kept.reshape(-1)], np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64), None)


def _refuse_unsigned_padding(rows: Array, name: str) -> None:
    """Raise InputError if rows end in the largest value of an unsigned dtype, which -1 becomes there.

    One row of 8 or 16 bits may end in an item of this number; no list ends in an item twice.
    """
    if rows.dtype.kind != "u" or rows.dtype.itemsize == 8:  # `check_ids` refuses the largest value of 64 bits
        return
    copies, largest = 1 if rows.dtype.itemsize == 4 else 2, np.iinfo(rows.dtype).max
    padded = (rows[:, -copies:] == largest).all(axis=1)
    if rows.shape[1] >= copies and padded.any():
        found = f"{name}[{int(padded.argmax())}] ends in {largest}, which -1 becomes in {rows.dtype}"
        raise InputError(f"{found}: pad an array of signed integers, such as int64")


def _read_csr(value: Any, name: str, extra: str) -> RawSide:
    if (kind := getattr(value, "format", "csr" if hasattr(value, "indptr") else "other")) != "csr":
        raise InputTypeError(f"{name} is a sparse {kind} matrix: pass {name}.tocsr()")
    items = check_ids(value.indices, f"{name}.indices")
    indptr = check_indptr(value.indptr, len(items), f"{name}.indptr")
    return RawSide(items, indptr, check_numbers_of_items(value.data, len(items), f"{name}.data ({extra})"))


def _read_rows(rows: list[Any], name: str, extra: str, users: list[Any] | None) -> RawSide:
    """Read one collection of items per user: a list, tuple, set or array, or a dict from item to score or gain."""
    if not set(map(type, rows)) <= READ_AT_ONCE:
        if holds_tensors(rows):
            rows = [
                as_numpy(row, f"{name}[{shown(at if users is None else users[at])}]") if is_tensor(row) else row
                for at, row in enumerate(rows)
            ]
        for at, row in enumerate(rows):
            if type(row) not in READ_AT_ONCE and (wrong := _why_no_row(row, name)):
                raise InputTypeError(f"{name}[{shown(at if users is None else users[at])}] {wrong}")
        rows = [row if type(row) in READ_AT_ONCE else _take(row, name) for row in rows]
    weighted = [isinstance(row, dict) for row in rows]
    if any(weighted) and not all(is_dict or not len(row) for is_dict, row in zip(weighted, rows, strict=True)):
        raise InputTypeError(f"{name} must give {extra} for all users or for none: some rows are dicts, some are not")
    if any(weighted):
        _refuse_columns(name, rows[weighted.index(True)])
    if any(weighted) and READ_SIDES[name].has_several:
        rows, values = _one_by_one(rows)
        items, indptr = _flat_items(rows, f"{name} items")
        return RawSide(items, indptr, check_numbers_of_items(values, len(items), f"{name} {extra}", mend=NUMBER_FIRST))
    items, indptr = _flat_items(rows, f"{name} items")
    if not any(weighted):
        return RawSide(items, indptr, None)
    values = list(chain.from_iterable(row.values() for row in rows if isinstance(row, dict)))
    return RawSide(items, indptr, check_numbers_of_items(values, len(items), f"{name} {extra}"))


def _one_by_one(rows: list[Any]) -> tuple[list[list[Any]], list[Any]]:
    """Return the items of users, an item once for each of its numbers, and all numbers."""
    pairs = [[(item, one) for item, own in dict(row).items() for one in _several(own)] for row in rows]
    return [[item for item, _ in own] for own in pairs], [one for own in pairs for _, one in own]


def _several(numbers: Any) -> Iterable[Any]:
    """Return the numbers of an item, of which there may be one alone."""
    is_collection = isinstance(numbers, list | tuple | set | frozenset | range | np.ndarray)
    return numbers if is_collection and not _is_scalar(numbers) else (numbers,)


def _why_no_row(row: Any, name: str) -> str | None:
    """Say why a value cannot hold the items of one user; None if it can."""
    if type(row) is np.ndarray and row.ndim > 0:
        return None
    if hasattr(row, "columns"):
        return (
            f"is a data frame, {kind_of(row)}: pass one of its columns as a list, or the whole frame, not split by user"
        )
    if (wrong := why_unusual(row, "drop the masked items first")) is not None:
        return wrong
    if isinstance(row, (str, bytes)) or not isinstance(row, Collection) or _is_scalar(row):
        mend = ": pass one item as [item]" if isinstance(row, int | str | np.integer) else ""
        return f"must be a list of items, found {kind_of(row)}{mend}"
    if READ_SIDES[name].is_ordered and isinstance(row, AbstractSet):
        return "must be a list, best item first: a set has no order"
    return None


def _is_scalar(row: Any) -> bool:
    return isinstance(row, np.ndarray) and row.ndim == 0


def _take(row: Any, name: str) -> Any:
    """Return the items of a user as a plain list, dict or array; other types need not contain what they iterate."""
    if isinstance(row, np.ndarray):
        return row if type(row) is np.ndarray else np.asarray(row)
    if isinstance(row, Mapping):
        return dict(row)
    return listed(row, f"a row of {name}")


def _flat_items(rows: list[Any], name: str) -> tuple[Ids, Array]:
    """Return the items of all rows, and pointers into them; integer arrays of one kind stay arrays.

    Pointers count the items that were read, never the length that a row claims.
    """
    filled = [row for row in rows if len(row)]
    if filled and all(isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in "iu" for row in filled):
        joined, ends = np.concatenate(filled), np.cumsum([0, *map(len, rows)], dtype=np.int64)
        if joined.dtype.kind in "iu" and len(joined) == ends[-1]:  # int64 with uint64 would have become float64
            return check_ids(joined, name), ends
    items: list[Any] = []
    indptr = [0]
    for row in rows:
        items.extend(row)
        indptr.append(len(items))
    return check_ids(items, name), np.array(indptr, np.int64)


def check_judgements(gains: Array, where: Any, name: str) -> None:
    """Raise InputError for a judgement of a side that is not above 0."""
    wrong = ~(gains > 0)
    if wrong.any():
        at = int(wrong.argmax())
        found = f" must be above 0 in all rows, found {gains[at]:g}"
        mend = f"; leave out the rows of {name} that are judged 0, or this column"
        raise InputError(where, found, RowNumber.at(at, "position"), mend)


CSR_PARTS = ("indptr", "indices", "data", "shape")
PLAIN_FORMS = (
    (tuple, InputForm.TUPLE),
    (np.ndarray, InputForm.ARRAY),
    (list, InputForm.ROWS),
    (dict, InputForm.DICT),
    (Ragged, InputForm.RAGGED),
    ((str, bytes, type(None)), InputForm.OTHER),
)
READERS: Mapping[InputForm, Callable[[Any, str, str], RawSide]] = {
    InputForm.TUPLE: _read_tuple,
    InputForm.ARRAY: _read_array,
    InputForm.RAGGED: _read_ragged,
    InputForm.ROWS: _read_list,
    InputForm.FOREIGN: _read_column,
    InputForm.TENSOR: _read_tensor,
    InputForm.CSR: _read_csr,
    **dict.fromkeys((InputForm.DICT, InputForm.FRAME, InputForm.OTHER), _read_other),
}
"""How to read each form: a value, the name of its side, and what the numbers of the side are."""


def finite_gains(truth_side: FlatSide) -> FlatSide:
    """Reject gains that are not finite; drop gains if all are 1, as truth without gains means the same."""
    gains = truth_side.extra
    assert gains is not None
    if len(gains) == 0:
        return truth_side._replace(extra=None)
    low, high = gains.min(), gains.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        at = int(np.isinf(gains).argmax())
        raise InputError("truth gains", f" must be finite, found {gains[at]}", RowNumber.at(at, "position"))
    return truth_side._replace(extra=None) if low == high == 1.0 else truth_side


def find_tied_user(blocks: Array | None, indptr: Array) -> int | None:
    """Return the first user with tied scores; None without any. `blocks` are as in `Lists`."""
    if blocks is None or not (tied := blocks[1] > 1).any():
        return None
    return int(np.searchsorted(indptr, tied.argmax(), side="right")) - 1
