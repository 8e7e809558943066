"""Statistics of a user's list, as formulas of metrics read them; `metrics.row_statistics` has those of scored rows.

The plan calls a formula once with `Statistics`. Their attributes are `Row`s, which record the operations on them. The
record becomes a *row program*: a few operations on rows of numbers, one number per user, that a kernel runs over a
block of users at a time. A formula that does more than arithmetic with its rows (`np.where`, a function of SciPy) is
called again, on arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from fastrec.exceptions import Argument, MetricError
from fastrec.kernels import codes as op
from fastrec.metrics.intervals import RowError
from fastrec.metrics.rank_weights import FAMILIES, WEIGHTS, Weight

Array = np.ndarray[Any, Any]
Measure = Callable[[Any], float]  # of an accumulator
Gain = Any  # "linear", "exp2" or a table: a tuple of floats
SIZES = Argument("n_items", (...,)), " or, for lists, ", Argument("items", (...,))  # arguments with that of a catalogue
MAX_OPERATIONS = 300  # of a formula on rows: walks are recursive, and visit a row once per use


class UntraceableError(Exception):
    """An operation on a row that a row program cannot express."""


class Row:
    """One number per user, not yet computed: a leaf (`key`) or arithmetic on other rows."""

    __slots__ = ("identity", "key", "parts", "size")
    __array_priority__ = 1000

    def __init__(self, key: Any, parts: tuple[Row, ...] = ()) -> None:
        self.key = key
        self.parts = parts
        self.identity: Hashable = (key, *(part.identity for part in parts))  # equal for rows with equal numbers
        self.size: int = 1 + sum(part.size for part in parts)  # a row that is used twice counts twice

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Row:
        build = _UFUNCS.get(ufunc)
        if build is None or method != "__call__" or kwargs:
            raise UntraceableError(ufunc.__name__)
        return build(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Row:
        raise UntraceableError(function.__name__)

    def __bool__(self) -> bool:
        raise UntraceableError("a truth value")

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise UntraceableError("a conversion to an array")

    def __add__(self, other: Any) -> Row:
        return _combine(op.ADD, self, other)

    def __radd__(self, other: Any) -> Row:
        return _combine(op.ADD, other, self)

    def __sub__(self, other: Any) -> Row:
        return _difference(self, other)

    def __rsub__(self, other: Any) -> Row:
        return _difference(other, self)

    def __mul__(self, other: Any) -> Row:
        return _combine(op.MULTIPLY, self, other)

    def __rmul__(self, other: Any) -> Row:
        return _combine(op.MULTIPLY, other, self)

    def __truediv__(self, other: Any) -> Row:
        return _combine(op.DIVIDE, self, other)

    def __rtruediv__(self, other: Any) -> Row:
        return _combine(op.DIVIDE, other, self)

    def _untraceable(self, *_: Any) -> Any:
        raise UntraceableError("an operator other than + - * /")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _untraceable
    __pow__ = __rpow__ = __neg__ = __abs__ = __pos__ = __round__ = _untraceable
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _untraceable
    __len__ = __contains__ = __float__ = __int__ = __iter__ = __getitem__ = _untraceable
    __and__ = __or__ = __invert__ = _untraceable
    __hash__ = None  # type: ignore[assignment]


def constant(value: float) -> Row:
    """Return a row that holds the same number for every user."""
    return Row(("constant", float(value)))


GAINS = ("linear", "exp2", "binary")
IDEALS = ("truth", "truth_uncut", "list", "list_at_k", "k")
N_REC = Row(("n_rec",))
N_REL = Row(("n_rel",))


def _as_row(value: Any) -> Row:
    if isinstance(value, Row):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)):
        return constant(float(value))
    raise UntraceableError(f"arithmetic with {type(value).__name__}")


def _combine(code: int, *parts: Any) -> Row:
    row = Row(code, tuple(_as_row(part) for part in parts))
    if row.size > MAX_OPERATIONS:
        raise UntraceableError(f"more than {MAX_OPERATIONS} operations")
    return row


def _difference(first: Any, second: Any) -> Row:
    return _combine(op.ADD, first, _negative(second))


def _negative(value: Any) -> Row:
    return _combine(op.MULTIPLY, -1.0, value)


# the same bits as a difference and a maximum, with fewer operations in the kernel
_UFUNCS: dict[np.ufunc, Callable[..., Row]] = {
    np.add: functools.partial(_combine, op.ADD),
    np.subtract: _difference,
    np.multiply: functools.partial(_combine, op.MULTIPLY),
    np.divide: functools.partial(_combine, op.DIVIDE),
    np.minimum: functools.partial(_combine, op.MINIMUM),
    np.maximum: lambda first, second: _negative(_combine(op.MINIMUM, _negative(first), _negative(second))),
    np.sqrt: functools.partial(_combine, op.SQUARE_ROOT),
}


def minimum(first: Row, second: Row | float) -> Row:
    """Return the smaller of two rows or arrays, or of one and a number."""
    return cast(Row, np.minimum(first, second))


def maximum(first: Row, second: Row | float) -> Row:
    """Return the larger of two rows or arrays."""
    return cast(Row, np.maximum(first, second))


def sqrt(value: Any) -> Any:
    """Return the square root of a row, an array or a number."""
    return np.sqrt(value) if isinstance(value, (Row, np.ndarray)) else math.sqrt(value)


def ratio(numerator: Any, denominator: Any, undefined: float = 0.0) -> Any:
    """Divide numbers, dual numbers, arrays or rows; `undefined` stands for a division by 0, in rows always 0."""
    if isinstance(denominator, Row):
        return numerator / denominator
    if isinstance(denominator, np.ndarray):
        values = np.full(denominator.shape, undefined)
        return np.divide(numerator, denominator, out=values, where=denominator != 0)
    return numerator / denominator if denominator else undefined


over = functools.partial(ratio, undefined=math.nan)


class Values(np.ndarray[Any, Any]):
    """The rows of a block as arrays, with 0 / 0 = 0 as everywhere in formulas."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(part) if isinstance(part, Values) else part for part in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(np.asarray(part) if isinstance(part, Values) else part for part in kwargs["out"])
        result = getattr(ufunc, method)(*plain, **kwargs)
        if ufunc is np.divide and method == "__call__":
            result = np.where((np.asarray(plain[0]) == 0) & (np.asarray(plain[1]) == 0), 0.0, result)
        return result.view(Values) if isinstance(result, np.ndarray) else result


class Combined(NamedTuple):
    """Metric that is a function of several means, such as pooled recall: sum of hits / sum of relevant.

    `function` takes the means (rows, arrays, numbers or dual numbers).
    """

    function: Callable[..., Any]
    rows: tuple[Row, ...]


class Exact(NamedTuple):
    """Value of a `Ratio` from an accumulator, where sums over users lose digits.

    `accumulator` names its kind; `value` takes it. `is_steady` says of it whether the squares of users' sums have the
    digits for a standard error.
    """

    accumulator: str
    value: Measure
    is_steady: Callable[[Any], bool]


class Ratio(NamedTuple):
    """Metric that is a function of several sums over users, such as gauc or popularity_lift.

    `function` takes the sums, all divided by the same number, so its value must not change when all are multiplied.
    For the standard error it takes them as dual numbers, unless `std_error` is False. `each` is a user's own value, NaN
    without one. `counted` is 1 for users who count, else 0. `refused` is a row that must be 0 for every user, and the
    error message for others. `spoils` is a row that makes the value NaN unless it is 0.
    `among`, in metrics of lists, is 1 for the users to whom the policies of the call apply; by default all. `exact`
    gives the value in place of `function` where there is an accumulator.
    """

    function: Callable[..., Any]
    rows: tuple[Row, ...]
    each: Row
    counted: Row
    refused: tuple[Row, str] | None = None
    spoils: Row | None = None
    std_error: bool = True
    among: Row | None = None
    exact: Exact | None = None

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of a value over the users who count; a pooled metric divides by another sum."""
        return len(self.rows) == 2 and self.rows[-1] is self.counted


class Over(NamedTuple):
    """Metric that is no function of users' values, such as the AUC of all rows: a function of an accumulator.

    `accumulator` names its kind; see `fastrec.evaluation.accumulators`. Both functions take it, and that of the error
    returns a `RowError`. `each` and
    `counted` are as in `Ratio`. `key` is what the accumulator must collect for this metric, such as a cut-off; for
    that it reads `sides`, too. `effects`, of the accumulator, says what each list adds: the standard error needs a
    second pass. `influence`, of score counts and users, says what users' rows add. `is_ordered`: whether the order of
    lists matters, so that ties are an error under ``ties="expected"``. `by_size`: whether more lists alone change it.
    """

    accumulator: str
    value: Measure
    std_error: Callable[[Any], RowError] | None
    each: Row
    counted: Row
    key: Hashable = None
    sides: frozenset[str] = frozenset()
    effects: Callable[[Any], Any] | None = None
    influence: Callable[[Any, Any], Any] | None = None
    is_ordered: bool = True
    by_size: bool = False


class UnseenRule(NamedTuple):
    """The policy for items without popularity, and whether an item that a column of items lacks is an error."""

    policy: str
    is_strict: bool


class Statistics:
    """What a formula reads: float rows, one number per user, or the arrays that `value_of` returns for them."""

    __slots__ = ("_value_of", "max_gain")

    def __init__(self, value_of: Callable[[Row], Row] = lambda row: row) -> None:
        self._value_of = value_of
        self.max_gain = math.inf  # a larger gain is an error

    def provided(self, provider: str, *key: Hashable) -> Row:
        """Return a statistic that a provider fills; see `fastrec.metrics.providers`."""
        return self._value_of(Row(("provided", provider, *key)))

    def any_of(self, row: Row) -> Row:
        """Return 1 where the row is not 0, else 0."""
        return row / row

    def only(self, mask: Row, row: Row) -> Row:
        """Return the row with 0 where the mask is 0, whatever the row holds there."""
        return Row(op.SELECT, (_as_row(mask), _as_row(row)))

    def where(self, mask: Row | float, row: Row | float) -> Row:
        """Return the row with NaN where the mask is 0."""
        return Row(op.BLANK, (_as_row(mask), _as_row(row)))

    def mean(self, value: Row, counted: Row, among: Row | None = None) -> Ratio:
        """Return the mean of a value over the users for whom `counted` is 1."""
        return Ratio(over, (self.only(counted, value), counted), self.where(counted, value), counted, among=among)


class ListStatistics(Statistics):
    """Statistics of each user's list at one cut-off; `cutoff` is None if nothing is cut.

    An item is relevant if its gain is above 0 and at least `min_gain`; below 0, every item of the truth is relevant.
    """

    __slots__ = ("_n_items", "_policies", "cutoff", "min_gain", "reads_size")

    def __init__(
        self,
        cutoff: int | None,
        n_items: int | None,
        min_gain: float = 0.0,
        value_of: Callable[[Row], Row] = lambda row: row,
        policies: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(value_of)
        self._policies = policies or {}
        self.reads_size = False  # whether the formula asked for the size of the catalogue
        self.cutoff = cutoff
        self.min_gain = min_gain
        self._n_items = n_items

    def unseen(self, own: str | None, usual: str, choices: tuple[str, ...]) -> UnseenRule:
        """Return the policy for items without popularity, one of those that the metric takes, or the usual one."""
        found = self.policy("unseen", own)
        if found is not None and found not in choices:
            raise MetricError(f"takes unseen={' or '.join(choices)}, found {found}")
        return UnseenRule(found or usual, found is None)

    def policy(self, name: str, own: str | None) -> str | None:
        """Return the value of a policy of items: the metric's own option, else that of the call, else None."""
        return self._policies.get(name) if own is None else own

    @property
    def n_rec(self) -> Row:
        """Length of the whole list."""
        return self._value_of(N_REC)

    @property
    def n_rel(self) -> Row:
        """Number of relevant items."""
        return self._value_of(N_REL)

    @property
    def k(self) -> Row:
        """The cut-off; the length of the list without one."""
        return self._value_of(self._k)

    @property
    def one(self) -> Row:
        """1 for every user."""
        return self._value_of(constant(1.0))

    @property
    def n_items(self) -> float:
        """Size of the catalogue, as given in the call."""
        if self._n_items is None:
            raise MetricError("needs the size of the catalogue: ", *SIZES)
        self.reads_size = True
        return float(self._n_items)

    @property
    def size_of_catalogue(self) -> float | None:
        """Size of the catalogue; None if the call does not give it."""
        return None if self._n_items is None else float(self._n_items)

    @property
    def hits(self) -> Row:
        """Relevant items among the first k."""
        return self._value_of(Row(("hits", self.cutoff)))

    @property
    def hits_in_list(self) -> Row:
        """Relevant items anywhere in the list."""
        return self._value_of(Row(("hits", None)))

    @property
    def hits_at_n_rel(self) -> Row:
        """Relevant items among the first n_rel ranks within k."""
        return self._value_of(Row(("hits_at", self.cutoff), (N_REL,)))

    def hits_at_multiple(self, multiple: float) -> tuple[Row, Row]:
        """Return the relevant items among the first m ranks within k, and m: multiple x n_rel + 0.9, rounded down."""
        ranks = Row(("cumulative", False, ("multiple", float(multiple))), (N_REL,))
        return self._value_of(Row(("hits_at", self.cutoff), (ranks,))), self._value_of(ranks)

    @property
    def any_hit(self) -> Row:
        """1 with a relevant item among the first k, else 0."""
        return self._value_of(Row(("any_hit", self.cutoff)))

    @property
    def first_reciprocal(self) -> Row:
        """1 / rank of the first hit within k, 0 without one."""
        return self._series(op.FIRST, "reciprocal")

    @property
    def last_rank(self) -> Row:
        """Rank of the last hit within k, 0 without one."""
        return self._series(op.LAST, "rank")

    @property
    def precision_sum(self) -> Row:
        """Sum over hits within k of precision at their rank."""
        return self._series(op.PRECISION, "reciprocal")

    @property
    def mean_precision(self) -> Row:
        """Mean over hits within k of precision at their rank."""
        return self._value_of(Row(("mean_precision", self.cutoff, op.PRECISION, "reciprocal", "linear")))

    @property
    def listed_pairs(self) -> Row:
        """Share of the pairs (hit, other item) within k that are in the right order, 0 without one."""
        return self._value_of(Row(("listed_pairs", self.cutoff, op.WEIGHT, "rank", "linear")))

    def over_lists(
        self,
        value: Measure,
        weight: Weight = "one",
        effects: Callable[[Any], Any] | None = None,
        sides: Iterable[str] = (),
    ) -> Over:
        """Return a metric of the exposure of items within k; see `fastrec.items.exposure` for what is counted."""
        own, counted = self.where(0.0, 0.0), self.any_of(self.n_rec)
        return Over("exposure", value, None, own, counted, (self.cutoff, weight), frozenset(sides), effects)

    def within_k(self, row: Row) -> Row:
        """Return min(k, row); `row` itself if nothing is cut."""
        return row if self.cutoff is None else minimum(self.k, row)

    def rank_sum(self, weight: Weight) -> Row:
        """Return the sum of the weights of the ranks of the list within k."""
        return self._value_of(
            Row(("cumulative", False, _checked(weight, WEIGHTS, "weight")), (self._at_most_k(N_REC),))
        )

    def hit_sum(self, weight: Weight) -> Row:
        """Return the sum over hits within k of the weight of their rank."""
        return self._series(op.WEIGHT, _checked(weight, WEIGHTS, "weight"))

    def gain_sum(self, gain: Gain, weight: Weight) -> Row:
        """Return the sum over hits within k of gain x weight of their rank."""
        gain = _checked(gain, GAINS, "gain")
        if gain == "binary":
            return self.hit_sum(weight)
        return self._series(op.GAIN_WEIGHT, _checked(weight, WEIGHTS, "weight"), gain)

    def limit_gains(self, max_gain: float) -> None:
        """Make a larger gain an error."""
        self.max_gain = min(self.max_gain, float(max_gain))

    def cascade(self, max_gain: float) -> Row:
        """Return the expected reciprocal rank at which a user who reads downwards stops."""
        self.limit_gains(max_gain)
        return self._series(op.CASCADE, "reciprocal", ("stop", float(max_gain)))

    def ideal_sum(self, gain: Gain, weight: Weight, ideal: str) -> Row:
        """Return the gain sum of the best possible order; see `ndcg` for the choices of `ideal`."""
        gain, weight = _checked(gain, GAINS, "gain"), _checked(weight, WEIGHTS, "weight")
        _checked(ideal, IDEALS, "ideal")
        if gain == "binary":
            counts = {"k": self._k, "list_at_k": Row(("hits", self.cutoff)), "truth_uncut": N_REL}
            counts |= {"list": self._at_most_k(Row(("hits", None))), "truth": self._at_most_k(N_REL)}
            return self._value_of(Row(("cumulative", False, weight), (counts[ideal],)))
        if ideal == "k":
            ones = self._value_of(Row(("cumulative", True, weight), (self._k,)))
            return ones if isinstance(gain, str) else ones * (gain[1] if len(gain) > 1 else 0.0)
        if ideal == "list_at_k":
            key, limit = ("ideal", op.FROM_CUT_LIST, self.cutoff, gain, weight), Row(("hits", self.cutoff))
        elif ideal == "list":
            key, limit = ("ideal", op.FROM_LIST, None, gain, weight), self._at_most_k(Row(("hits", None)))
        else:
            limit = N_REL if ideal == "truth_uncut" else self._at_most_k(N_REL)
            key = ("ideal", op.FROM_TRUTH, None, gain, weight)
        return self._value_of(Row(key, (limit,)))

    @property
    def _k(self) -> Row:
        return N_REC if self.cutoff is None else constant(float(self.cutoff))

    def _at_most_k(self, row: Row) -> Row:
        return row if self.cutoff is None else Row(op.MINIMUM, (self._k, row))

    def _series(self, kind: int, weight: Weight, gain: Any = "linear") -> Row:
        return self._value_of(Row(("series", self.cutoff, kind, weight, gain)))


def _checked(value: Any, names: tuple[str, ...], what: str) -> Any:
    """Return a known name, or a table as a tuple of floats."""
    if isinstance(value, str) and value in names:
        return value
    if isinstance(value, tuple) and value and value[0] in FAMILIES:
        return value
    try:
        table = tuple(float(number) for number in value) if not isinstance(value, str) else ()
    except (TypeError, ValueError):
        table = ()
    if not table or what == "ideal" or not all(math.isfinite(number) and number >= 0 for number in table):
        raise MetricError(f"has no {what} {value!r}: known: {', '.join(names)}")
    return table
