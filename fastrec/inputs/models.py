"""Models that score every item for every user: factors, similarities, a matrix of scores, or a function."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import listed, refuse_path
from fastrec.exceptions import Argument, InputError, InputTypeError, Place, RowNumber, shown
from fastrec.inputs.arrow import (
    Frame,
    chunked,
    index_of,
    is_column,
    is_other_order,
    list_column,
    open_foreign,
    read_ids,
)
from fastrec.inputs.columns import refuse_rounded, refuse_rounded_list
from fastrec.inputs.ids import Ids, Strings, check_ids, integer_ids, spell
from fastrec.inputs.ragged import as_array
from fastrec.inputs.sides import kind_of
from fastrec.inputs.users import check_user_ids

Array = np.ndarray[Any, Any]
ROWS_CHECKED = 1 << 14  # rows of factors that are checked at a time
LOAD = "numpy.load reads arrays, and the command `fastrec evaluate --user-factors` takes files"
MAX_ITEMS = 2**31 - 1  # kernels number columns by int32
WANTED = (
    "a tuple (user_factors, item_factors), a tuple (X, B) of a sparse matrix and item weights, a 2-D array of scores, "
    "or a function of users"
)


class Model(ABC):
    """A model: it writes the scores of all items for some of its users."""

    copies = 1  # of a block of scores that are in memory while it is written, at most
    bound = 0.0  # of scores that are sums of finite products, ignoring rounding

    def __init__(self, n_users: int | None, n_items: int, dtype: np.dtype[Any]) -> None:
        self.n_users = n_users  # None for a function: only the main thread may ask it, for blocks of users in order
        self.n_items = n_items
        self.dtype = dtype  # of the scores: float32 or float64

    @abstractmethod
    def write(self, users: Array, out: Array) -> None:
        """Write the scores of users, in (n, n_items) of the dtype of the model."""

    @abstractmethod
    def restricted(self, columns: Array) -> Model:
        """Return the model with these of its items only, in this order."""


class Factors(Model):
    """Scores that are products of factors, with biases of items and users."""

    def __init__(
        self, users: Array, items: Array, user_bias: Array | None, item_bias: Array | None, bound: float
    ) -> None:
        super().__init__(len(users), len(items), users.dtype)
        self._users, self._items, self.bound = users, items, bound
        self._user_bias, self._item_bias = user_bias, item_bias

    def write(self, users: Array, out: Array) -> None:
        """Multiply factors and add biases."""
        rows = slice(users[0], users[-1] + 1) if users[-1] - users[0] == len(users) - 1 else users
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported by user
            np.matmul(self._users[rows], self._items.T, out=out)
            if self._item_bias is not None:
                out += self._item_bias
            if self._user_bias is not None:
                out += self._user_bias[rows, None]

    def restricted(self, columns: Array) -> Factors:
        """Return the factors with these items only."""
        bias = None if self._item_bias is None else self._item_bias[columns]
        return Factors(self._users, np.ascontiguousarray(self._items[columns]), self._user_bias, bias, self.bound)


class Similarities(Model):
    """Scores that are products of rows of users and weights of items, at least one of them sparse."""

    copies = 5  # a sparse product has an index beside each number, and becomes dense

    def __init__(self, users: Any, weights: Any, dtype: np.dtype[Any], bound: float) -> None:
        super().__init__(users.shape[0], weights.shape[1], dtype)
        self._users, self._weights, self.bound = users, weights, bound

    def write(self, users: Array, out: Array) -> None:
        """Multiply rows of users and weights."""
        rows = self._users[users]
        product = (self._weights.T @ rows.T).T if isinstance(rows, np.ndarray) else rows @ self._weights
        np.copyto(out, product if isinstance(product, np.ndarray) else product.toarray())

    def restricted(self, columns: Array) -> Similarities:
        """Return the weights of these items only."""
        return Similarities(self._users, self._weights[:, columns], self.dtype, self.bound)


class ReadScores(Model):
    """Scores that are read for some users: rows of a matrix in memory or on disk, or the answers of a function."""

    copies = 3

    def __init__(
        self,
        read: Callable[[Array], Array],
        shape: tuple[int | None, int],
        dtype: np.dtype[Any],
        columns: Array | None = None,
    ) -> None:
        super().__init__(shape[0], shape[1] if columns is None else len(columns), dtype)
        self._read, self._shape, self._columns = read, shape, columns

    def write(self, users: Array, out: Array) -> None:
        """Copy the scores."""
        rows = self._read(users)
        np.copyto(out, rows if self._columns is None else rows[:, self._columns])

    def restricted(self, columns: Array) -> ReadScores:
        """Return the scores of these items only."""
        columns = columns if self._columns is None else self._columns[columns]
        return ReadScores(self._read, self._shape, self.dtype, columns)


def _read_rows(scores: Array, users: Array) -> Array:
    rows = scores[users]
    refuse_rounded(rows.reshape(-1), "model", "position")
    return rows


def _ask(function: Callable[[Array], Any], n_items: int, users: Array) -> Array:
    """Call a function that scores all items for a block of users, and check its answer."""
    asked = users.copy()
    asked.flags.writeable = False
    try:
        found = function(asked)
    except StopIteration as error:  # which would end the loop over users
        raise RuntimeError("the model raised StopIteration") from error
    except Exception as error:
        error.add_note(f"in the model, called for the {len(users)} users from row {users[0]} to row {users[-1]}")
        raise
    if is_sparse(found):
        raise InputTypeError(f"the answer of the model is sparse, {kind_of(found)}: answer with its .toarray()")
    answer = as_array(found, "the answer of the model")
    if answer.ndim == 0:
        raise InputTypeError(f"the answer of the model must be an array of scores, found {kind_of(found)}")
    if answer.shape != (len(users), n_items):
        raise InputError(
            f"the model must answer with one row of {n_items} scores per user, expected shape {(len(users), n_items)} "
            f"for the users from row {users[0]} to row {users[-1]}, found {answer.shape}"
        )
    _check_numbers(found, answer, "the answer of the model")
    return answer


def read_model(model: Any, given: Mapping[str, Any]) -> Model:
    """Return a model in one of its forms, checked, with the biases and `n_items` of the call, if given.

    Raises InputError or InputTypeError.
    """
    refuse_path("model", model, LOAD)
    n_items, found = given.get("n_items"), _read_form(model, given)
    if n_items is not None and n_items < found.n_items:
        raise InputError(
            Argument("n_items", (n_items,)), f" is less than the {found.n_items} items that the model scores"
        )
    if found.n_items == 0:
        raise InputError("the model scores no items: its catalogue is empty")
    return found


def _read_form(model: Any, given: Mapping[str, Any]) -> Model:
    if isinstance(model, tuple) and len(model) == 2 and not any(map(is_sparse, model)):
        return _read_factors(model, given)
    if given.get("user_bias") is not None or given.get("item_bias") is not None:
        raise InputError("user_bias and item_bias go with factors: pass (user_factors, item_factors)")
    if isinstance(model, tuple):
        if len(model) != 2:
            raise InputTypeError(f"model must be {WANTED}; found a tuple of {len(model)}")
        return _read_similarities(*model)
    if callable(model) and not hasattr(model, "__array__"):
        if (n_items := given.get("n_items")) is None:
            raise InputError(
                "a function as the model needs ", Argument("n_items", (...,)), ", the items that it scores"
            )
        if n_items > MAX_ITEMS:
            raise InputError(Argument("n_items", (n_items,)), f" is more than a model can score: at most {MAX_ITEMS:,}")
        return ReadScores(functools.partial(_ask, model, n_items), (None, n_items), np.dtype(np.float64))
    if is_sparse(model):
        raise InputTypeError("model is a sparse matrix: pass its scores as an array, or a product as (X, B)")
    scores = as_array(model, "model") if not isinstance(model, np.memmap) else model
    if scores.ndim != 2:
        raise InputError(f"model must be {WANTED}; found an array of shape {scores.shape}")
    check_dtype(scores, "model")
    refuse_rounded_list(model, scores, "model", "position")
    return ReadScores(functools.partial(_read_rows, scores), scores.shape, float_type(scores))


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr") and hasattr(value, "toarray")


def _check_numbers(given: Any, values: Array, name: str) -> None:
    """Check that the array of what is given holds numbers, and that it has rounded none."""
    check_dtype(values, name)
    refuse_rounded(values.reshape(-1), name, "position")
    refuse_rounded_list(given, values, name, "position")


def check_dtype(values: Array, name: str) -> None:
    """Check that an array holds numbers."""
    if values.dtype.kind not in "fiu" or values.dtype.itemsize > 8:
        raise InputTypeError(name, f" must be floats or integers of at most 64 bits, found dtype {values.dtype}")


def float_type(values: Array) -> np.dtype[Any]:
    """Return the type of scores that holds values exactly: float32 for short floats, else float64."""
    return np.dtype(np.float32 if values.dtype.kind == "f" and values.dtype.itemsize <= 4 else np.float64)


def _read_factors(model: tuple[Any, Any], given: Mapping[str, Any]) -> Factors:
    tables = []
    for name, values in zip(("user_factors", "item_factors"), model, strict=True):
        refuse_path(name, values, LOAD)
        table = as_array(values, name)
        if table.ndim != 2:
            found = f"shape {table.shape}" if table.ndim else kind_of(values)
            raise InputError(f"{name} must be 2-D, one row per {name[:4]}, found {found}")
        tables.append(_finite(values, table, name, given.get(f"{name[:4]}_ids")))
    widths = [table.shape[1] for table in tables]
    if widths[0] != widths[1]:
        raise InputError(
            f"user_factors and item_factors must have the same number of columns, found {widths[0]} and {widths[1]}: "
            "both have one row per user or item"
        )
    if tables[1].shape[0] == widths[1] > 1 and not np.array_equal(tables[1], tables[1].T):
        raise InputError(
            f"item_factors are square, {tables[1].shape}: if they are weights B of items, make X or B sparse, or pass "
            "X @ B; if they are factors, pass user_factors @ item_factors.T"
        )
    biases = {}
    for name, table in zip(("user_bias", "item_bias"), tables, strict=True):
        if (values := given.get(name)) is not None:
            bias = as_array(values, name)
            if bias.shape != (len(table),):
                raise InputError(f"{name} must have one number per {name[:4]}, {len(table)}; found shape {bias.shape}")
            biases[name] = _finite(values, bias, name, given.get(f"{name[:4]}_ids"))
    dtype = np.result_type(*tables, *biases.values())
    first, second = (np.ascontiguousarray(table, dtype) for table in tables)
    own = {name: np.ascontiguousarray(bias, dtype) for name, bias in biases.items()}
    bound = widths[0] * _largest(first) * _largest(second) + sum(map(_largest, own.values()))
    return Factors(first, second, own.get("user_bias"), own.get("item_bias"), bound)


def _largest(values: Array) -> float:
    """Return the largest absolute value; 0 without values."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _finite(given: Any, values: Array, name: str, ids: Any = None, of_row: str = "row") -> Array:
    """Return numbers as float32 or float64, all finite; `ids` name the rows of users or items in errors."""
    _check_numbers(given, values, name)
    for first in range(0, len(values), ROWS_CHECKED):
        part = values[first : first + ROWS_CHECKED]
        if part.size and not np.isfinite([part.min(), part.max()]).all():  # NaN is the lowest and the highest
            at = tuple(np.argwhere(~np.isfinite(part))[0].tolist())
            row = first + at[0]
            found = values[(row, *at[1:])]
            own = () if ids is None else as_array(ids, f"{name[:4]}_ids")[row : row + 1].tolist()
            who = f", {name[:4]} {shown(own[0])}" if own else ""
            raise InputError(Place(name), f" must be finite, found {found}", RowNumber.at(row, of_row), who)
    return values.astype(float_type(values), copy=False)


def _read_similarities(users: Any, weights: Any) -> Similarities:
    sides: list[Any] = []
    dtypes, bound = [], 1.0
    for name, values in (("X", users), ("B", weights)):
        side = _as_csr(values, name) if is_sparse(values) else as_array(values, name)
        if len(side.shape) != 2:
            raise InputError(f"{name} must be 2-D, found shape {side.shape}")
        numbers: Any = side.data if is_sparse(side) else side
        finite = _finite(values, numbers, name, of_row="position" if is_sparse(side) else "row")
        sides.append(side)
        dtypes.append(finite.dtype)
        bound *= _largest(finite)
    if sides[0].shape[1] != sides[1].shape[0]:
        raise InputError(f"the columns of X must be the rows of B, found shapes {sides[0].shape} and {sides[1].shape}")
    dtype = np.result_type(*dtypes)
    first, second = (side.astype(dtype, copy=False) for side in sides)
    return Similarities(first, second, np.dtype(dtype), bound * sides[0].shape[1])


def _as_csr(values: Any, name: str) -> Any:
    """Return a sparse matrix as CSR; SciPy reads wherever its indices point, so they are checked first."""
    at = (values.row, values.col) if values.format == "coo" else ()
    if any(len(own) and not 0 <= own.min() <= own.max() < n for own, n in zip(at, values.shape, strict=False)):
        raise InputError(f"{name} is not a valid sparse matrix: it has an index outside its shape {values.shape}")
    if hasattr(values, "check_format"):
        try:
            values.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"{name} is not a valid sparse matrix: {error}") from None
    return values.tocsr()


# Calls with a model


class ModelCall(NamedTuple):
    """A model, and the names of its rows and columns."""

    model: Model
    rows: Array | None  # int64, distinct: the rows that the call chooses
    user_ids: Array | None  # of all rows
    item_ids: Array  # of all columns
    candidates: Any  # of each user, as a side; None without
    n_items: int  # of the model, with items that are no candidates
    has_item_ids: bool  # otherwise items are numbered from 0
    indexed: Mapping[str, Any] = {}  # Series of pandas whose indexes name all rows, and the users of the candidates


def read_call(model: Any, given: Mapping[str, Any]) -> ModelCall:
    """Return the arguments about a model, checked, with the candidates of all users as its catalogue."""
    labels, arrays = _open_frames(model)
    of_frame = {name: index for name, index in labels.items() if given[name] is None}
    if wide := next((name for name, index in of_frame.items() if index.nlevels > 1), None):
        raise InputError("the labels of a model must have one level: pass ", Argument(wide, (...,)))
    given = {**given, **of_frame}
    own = read_model(arrays, given)
    rows = None if given["users"] is None else _check_rows(given["users"], own.n_users)
    names, n_users = given["user_ids"], own.n_users
    if names is not None:
        n_users = len(names if hasattr(names, "shape") else listed(names, "user_ids")) if n_users is None else n_users
        names = check_user_ids(names, n_users)
    if rows is not None and names is not None and len(rows) and rows.max() >= len(names):
        raise InputError(f"users must be rows that user_ids names, below {len(names)}, found {rows.max()}")
    items = np.arange(own.n_items) if given["item_ids"] is None else check_ids(given["item_ids"], "item_ids")
    if len(items) != own.n_items:
        raise InputError(f"item_ids must have one id per item of the model, {own.n_items}; found {len(items)}")
    if given["item_ids"] is not None:
        _check_items(items)
    for name, ids in (("user_ids", names), ("item_ids", items)):
        if ids is not None and name in labels.keys() - of_frame and is_other_order(labels[name], ids.tolist()):
            have = " has the labels of the data frame in another order: leave it out, or pass to_numpy()"
            raise InputError(Argument(name), have)
    _check_indexes_of_biases(model, given, names, items)
    candidates = chunked(open_foreign(given["candidates"], "candidates"))
    if isinstance(candidates, Iterator):
        candidates = list(candidates)
    indexed = {"model": of_frame["user_ids"].to_series()} if "user_ids" in of_frame else {}
    call = ModelCall(own, rows, names, items, candidates, own.n_items, given["item_ids"] is not None, indexed)
    of_no_users = rows is not None and not len(rows) and isinstance(candidates, list) and not candidates
    if candidates is None or of_no_users or not _is_for_all_users(candidates):
        return call._replace(indexed={**indexed, "candidates": given["candidates"]})
    candidates = list(candidates) if isinstance(candidates, set | frozenset) else candidates
    wanted = read_ids(candidates, "candidates") if is_column(candidates) else check_ids(candidates, "candidates")
    columns = _columns_of_ids(items, plain_ids(wanted))
    return call._replace(model=own.restricted(columns), item_ids=items[columns], candidates=None)


def plain_ids(ids: Ids) -> Array:
    """Return ids as an array; strings of Arrow columns become objects."""
    if isinstance(ids, Strings):
        return np.array(spell(ids.values.to_pylist(), ids.codes), object)
    return ids


def _open_frames(model: Any) -> tuple[dict[str, Any], Any]:
    """Return the ids that are labels of data frames of pandas, by argument, and the model as arrays.

    Labels 0, 1, ... are none.
    """
    parts = model if isinstance(model, tuple) else (model,)
    frames = [part for part in parts if hasattr(part, "columns") and hasattr(part, "shape")]
    for frame in frames:
        if not hasattr(frame, "index"):
            raise InputTypeError(
                f"model is {'' if len(parts) == 1 else 'of '}a {type(frame).__module__.partition('.')[0]} data frame: "
                "pass arrays (to_numpy()), and user_ids and item_ids"
            )
    if not frames or len(parts) > 2:
        return {}, model
    if len(parts) == 1:
        labels = {"user_ids": frames[0].index, "item_ids": frames[0].columns}
    elif any(map(is_sparse, parts)):  # the other is X, with a row per user, or B, with a column per item
        labels = {"user_ids": parts[0].index} if frames[0] is parts[0] else {"item_ids": parts[1].columns}
        if frames[0] is parts[0] and parts[1].shape == (len(parts[0].columns),) * 2:  # B leads from items to items
            labels["item_ids"] = parts[0].columns
    else:
        labels = {
            name: one.index for name, one in zip(("user_ids", "item_ids"), parts, strict=True) if hasattr(one, "index")
        }
        if len(frames) == 2 and not frames[0].columns.equals(frames[1].columns):
            raise InputError(
                "user_factors and item_factors must have the same columns in the same order, found "
                f"{shown(frames[0].columns.tolist())} and {shown(frames[1].columns.tolist())}: ids belong in the index"
            )
    arrays = tuple(part.to_numpy() if hasattr(part, "columns") else part for part in parts)
    found = {name: own for name, own in labels.items() if own.tolist() != list(range(len(own)))}
    return found, arrays if isinstance(model, tuple) else arrays[0]


def _check_indexes_of_biases(model: Any, given: Mapping[str, Any], users: Array | None, items: Array) -> None:
    """Raise InputError for biases whose index is not that of their factors, or has the ids in another order."""
    for nth, (side, ids) in enumerate((("user", users), ("item", items))):
        index, own = index_of(given[f"{side}_bias"]), index_of(given[f"{side}_ids"])
        if index is None:
            continue
        if hasattr(model[nth], "columns"):
            if not index.equals(model[nth].index):
                raise InputError(f"{side}_bias and {side}_factors must have the same index")
        elif (own is None or not index.equals(own)) and is_other_order(
            index, list(range(len(index))) if ids is None else ids.tolist()
        ):
            ordered = "sort_index()" if given[f"{side}_ids"] is None else f"loc[{side}_ids]"
            mend = f"pass {side}_bias.{ordered}, or, if it is in their order, {side}_bias.to_numpy()"
            found = f"has an index with the {side}s in another order, but biases are matched by position"
            raise InputError(f"{side}_bias {found}: {mend}")


def _check_rows(users: Any, n_users: int | None) -> Array:
    """Return the rows of a model that a call chooses."""
    rows = as_array(users, "users")
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        raise InputTypeError(f"users must be a 1-D array of row numbers, found {rows.dtype} of shape {rows.shape}")
    rows = integer_ids(rows, "users").astype(np.int64) if rows.size else np.zeros(0, np.int64)
    if len(rows) and (rows.min() < 0 or (n_users is not None and rows.max() >= n_users)):
        wrong = rows[(rows < 0) | (rows >= (rows.max() + 1 if n_users is None else n_users))][0]
        end = "" if n_users is None else f" and below {n_users}, the number of users of the model"
        raise InputError(f"users must be rows from 0{end}, found {wrong}")
    if len(np.unique(rows)) < len(rows):
        raise InputError("users must hold each row once, found one twice")
    return rows


def _check_items(items: Array) -> None:
    """Raise InputError for ids of items that are negative or occur twice."""
    if items.dtype != object and len(items) and items.min() < 0:
        raise InputError(
            f"item_ids must not be negative, found {items.min()}", RowNumber.at(int(items.argmin()), "position")
        )
    distinct, counts = np.unique(items, return_counts=True)
    if len(distinct) < len(items):
        raise InputError(f"item_ids must hold each item once, found {shown(distinct.tolist()[counts.argmax()])} twice")


def _is_for_all_users(candidates: Any) -> bool:
    """Return whether candidates are items for all users, not one list per user."""
    if isinstance(candidates, Mapping | Frame) or (isinstance(candidates, tuple) and len(candidates) in (2, 3)):
        return isinstance(candidates, tuple) and all(isinstance(one, int | str | np.integer) for one in candidates)
    if is_column(candidates):
        return not list_column(candidates)
    if hasattr(candidates, "indptr") or not isinstance(candidates, Iterable):
        return not hasattr(candidates, "indptr")
    if hasattr(candidates, "shape") and str(getattr(candidates, "dtype", "")) != "object":
        return len(candidates.shape) == 1
    return all(isinstance(one, int | str | bytes | np.integer) for one in candidates)


def _columns_of_ids(items: Array, wanted: Array) -> Array:
    """Return the columns of candidates, ascending."""
    known = {item: column for column, item in enumerate(items.tolist())}
    found = [known.get(item, -1) for item in wanted.tolist()]
    if -1 in found:
        raise InputError(f"candidates must be items of the model, found {shown(wanted.tolist()[found.index(-1)])}")
    if not found:
        raise InputError("candidates must hold an item, found none")
    return np.unique(found)
