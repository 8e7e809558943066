"""Clicks weighted by inverse propensity: sums for each user, and how far a few rows decide over all users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.exceptions import Argument, InputError, MetricError, Place, Text, shown_number
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.inputs.users import pack_ids, unpack_ids
from fastrec.items.slots import Slots
from fastrec.items.sums import cuts_of, find_numbers, launch_users
from fastrec.kernels import propensities as kernels
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import Weight, rank_weights
from fastrec.runtime.launcher import call

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
Key = tuple[str | None, float, bool]  # the column of items, the clip, and whether propensities must be at most 1
USUAL = "propensity"
SMALLEST = 1e-100  # propensity, and the largest is its inverse: squares of weights are summed
SCALE = 1074  # bits after the point of any double
HALF = 26  # bits of the lower half of a significand
LACKING = "; popularity_propensity(..., items=..., floor=...) adds items that the history lacks"
EXAMINED = Text(Argument("examination"))
ROWS_AT_ONCE = 1 << 15  # whose squares stay in the cache
NAMES = ("effective_sample_size", "largest_weight_share", "clipped_rows")


class Propensities:
    """The propensities of the rows of the truth of a batch, and the weights that follow from them."""

    def __init__(self, sides: BatchSides) -> None:
        self._truth, self._logged, self._examination = sides.truth, sides.logged, sides.examination
        self._items, self._names, self._n_threads, self._used = sides.items, sides.names, sides.n_threads, sides.used
        self._known: dict[str | None, tuple[Array, Text]] = {}
        self._weights: dict[Any, Array] = {}
        self._ranks: Array | None = None  # logged, of the rows of the truth

    def relevant(self, least: float) -> Array:
        """Return which rows of the truth are relevant, for the `min_gain` of a formula's statistics."""
        gains = self._truth.extra
        return np.ones(len(self._truth.items), bool) if gains is None else is_relevant(gains, least)

    def of_rows(self, column: str | None, least: float, *, bounded: bool) -> Array:
        """Return the propensity of each row of the truth, float64 (n_rows,); those of relevant rows are checked.

        `bounded`: whether they must be at most 1.
        """
        if column not in self._known:
            self._known[column] = self._read(column)
        found, where = self._known[column]
        most = 1.0 if bounded else 1 / SMALLEST
        if len(found) and found.min() >= SMALLEST and found.max() <= most:  # NaN is not
            return found
        wrong = self.relevant(least) & ~((found >= SMALLEST) & (found <= most))
        if wrong.any():
            self._refuse(at := int(wrong.argmax()), float(found[at]), where, bounded=bounded)
        return found

    def weights(self, column: str | None, clip: float, least: float, *, bounded: bool) -> Array:
        """Return 1 / max(propensity, clip) of each row of the truth, float64 (n_rows,); 0 if it is not relevant."""
        key = column, clip, least, bounded
        if key not in self._weights:
            found = self.of_rows(column, least, bounded=bounded)
            relevant = self.relevant(least)
            used = np.maximum(found, clip) if clip else found
            if not relevant.all():
                used = np.where(relevant, used, math.inf)
            self._weights[key] = read_only(np.divide(1.0, used))
        return self._weights[key]

    def _read(self, column: str | None) -> tuple[Array, Text]:
        """Return the propensity of each row of the truth, NaN for rows without one, and its source for errors."""
        if column is None and self._logged is not None:
            numbers = _beside(self._truth, self._logged, self._n_threads)
            if self._examination is None:
                return numbers, Text(Place("logged"))
            self._used.add("examination")
            self._ranks = numbers
            return _examined(self._examination, numbers), EXAMINED
        table = self._items
        if table is None:
            raise MetricError(f"column={column} needs ", Argument("items", (...,)))
        name = USUAL if column is None else column
        if column is None and name not in table.columns:
            wanted = f" has no column {name!r}: add one, or pass "
            raise InputError(Place("items"), wanted, Argument("logged", (...,)), f"; {table.columns_like(name)}")
        assert table.codes is not None
        slots = Slots.of(self._truth.items)
        found: Array = slots.spread(table.codes, table.numbers(name), math.nan)[slots.of_rows]
        return found, Text(Place("items", name))

    def _refuse(self, at: int, number: float, where: Text, *, bounded: bool) -> None:
        """Raise InputError for the propensity of a row of the truth."""
        row = self._named(at)
        if self._ranks is not None and math.isnan(number) and where == EXAMINED:
            self._refuse_rank(self._ranks[at], row)
        if math.isnan(number):
            mend = "" if self._logged is not None else LACKING
            raise InputError(where, f" has no propensity of {row}{mend}")
        wanted = f"from {SMALLEST:g} to {'1' if bounded else f'{1 / SMALLEST:g}'}"
        hint = "; snips takes larger ones" if bounded and number > 1 else ""
        raise InputError(where, f": the propensity of {row} must be {wanted}, found {shown_number(number)}{hint}")

    def _refuse_rank(self, rank: float, row: str) -> None:
        """Raise InputError for a logged rank without a known examination."""
        if math.isnan(rank):
            raise InputError(Place("logged"), f" has no rank of {row}")
        assert self._examination is not None
        n_ranks = len(self._examination)
        if 1 <= rank <= n_ranks and rank == math.floor(rank):
            raise InputError(EXAMINED, f" is NaN at rank {rank:g}, which is that of {row}: leave out such rows")
        wanted = f"an integer from 1 to {n_ranks}, the ranks of the curve in examination"
        raise InputError(Place("logged"), f": the rank of {row} must be {wanted}; found {rank:g}")

    def _named(self, at: int) -> str:
        """Return a row of the truth as written in an error."""
        user = int(np.searchsorted(self._truth.indptr, at, side="right")) - 1
        item = self._names.item(int(self._truth.items[at]))
        return f"item {item} in the truth of user {self._names.user(user)}"


def _examined(curve: Array, ranks: Array) -> Array:
    """Return the examination of each rank; NaN for a rank without one."""
    known = (ranks >= 1) & (ranks <= len(curve)) & (np.floor(ranks) == ranks)
    found = np.full(len(ranks), math.nan)
    found[known] = curve[ranks[known].astype(np.int64) - 1]
    return found


def _beside(truth: FlatSide, logged: FlatSide, n_threads: int) -> Array:
    """Return the number of `logged` for each row of the truth, NaN for rows that it lacks."""
    assert logged.extra is not None
    if np.array_equal(truth.indptr, logged.indptr) and np.array_equal(truth.items, logged.items):
        return logged.extra
    return find_numbers(truth, logged, logged.extra, n_threads)


def fill_propensities(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill sums of weights: of all clicks, ("weights", source, gain), or of those within k, times weights of ranks.

    The latter are ("clicks", source, gain, weight of ranks, k). A source is a column, a clip, and whether propensities
    must be at most 1.
    """
    known = sides.propensities
    truth, n_threads = sides.truth, sides.n_threads
    sources = list(dict.fromkeys(tuple(key[1:5]) for key in keys))
    weights = [known.weights(column, clip, least, bounded=bounded) for column, clip, bounded, least in sources]
    for nth, key in enumerate(keys):
        if key[0] == "weights":
            own = weights[sources.index(key[1:5])]
            given = own, read_only(truth.indptr), out[nth]
            launch_users(kernels.sum_weights, truth.n_users, *given, work=4 * len(own), n_threads=n_threads)
    clicks = [nth for nth, key in enumerate(keys) if key[0] == "clicks"]
    if clicks:
        series = list(dict.fromkeys(keys[nth][1:6] for nth in clicks))
        cuts, at = cuts_of([keys[nth][-1] for nth in clicks])
        of_series = [(sources.index(key[:4]), key[4]) for key in series]
        sums = _sum_clicks(sides.recs, truth, weights, of_series, cuts, n_threads)
        out[clicks] = sums[[series.index(keys[nth][1:6]) for nth in clicks], at]


def _sum_clicks(
    recs: FlatSide,
    truth: FlatSide,
    weights: Sequence[Array],
    series: Sequence[tuple[int, Weight]],
    cuts: Array,
    n_threads: int,
) -> Array:
    """Return sums of weights of hits, times the weights of their ranks, float64 (n_series, n_cuts, n_users).

    A series is the position of its weights, and a weight of ranks.
    """
    deepest = min(int(cuts.max()), longest_row(recs.indptr))
    together = weights[0].reshape(1, -1) if len(weights) == 1 else np.stack(weights)
    sums = np.empty((len(series), len(cuts), truth.n_users))
    sources = np.array([source for source, _ in series])
    discounts = np.array([rank_weights(discount, deepest)[1:] for _, discount in series])
    given = recs.items, recs.indptr, truth.items, truth.indptr, together, sources, discounts, cuts
    work = min(len(recs.items), deepest * recs.n_users) + 8 * len(truth.items)
    launch_users(kernels.sum_clicks, recs.n_users, *map(read_only, given), sums, work=work, n_threads=n_threads)
    return sums


class WeightSums:
    """Sums over all clicks of their weights and of the squares of these, the largest weight, and counts.

    They add and merge in any order: sums are integers, in steps of 2^-1074.
    """

    weighted = False

    def __init__(self, keys: Sequence[Key], rows: Sequence[Sequence[Any]] | None = None) -> None:
        self.keys = tuple(keys)
        # of each key: sum of weights, sum of squares, largest weight, clipped rows
        self.rows: list[list[Any]] = [[0, 0, 0.0, 0] for _ in keys] if rows is None else [list(row) for row in rows]

    def merge(self, other: WeightSums) -> None:
        """Add the clicks of other users."""
        for mine, theirs in zip(self.rows, other.rows, strict=True):
            largest = max(mine[2], theirs[2])
            mine[:] = [own + more for own, more in zip(mine, theirs, strict=True)]
            mine[2] = largest

    def pack(self) -> dict[str, Array]:
        """Return the sums as arrays."""
        sums = [f"{number:x}" for row in self.rows for number in row[:2]]
        return {
            **pack_ids(np.array(sums or [""]), "sums"),
            "largest": np.array([row[2] for row in self.rows], np.float64),
            "clipped": np.array([row[3] for row in self.rows], np.int64),
        }

    def described(self, key: Key) -> dict[str, float]:
        """Return the effective sample size, the share of the largest weight, and the number of clipped rows."""
        total, squares, largest, clipped = self.rows[self.keys.index(key)]
        size, share = math.nan, math.nan
        if total:
            size = (total * total) / (squares << SCALE)  # of integers, rounded once
            share = _steps(largest) / total
        return dict(zip(NAMES, (size, share, clipped), strict=True))


def _steps(number: float) -> int:
    """Return a double as an integer in steps of 2^-1074."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator << SCALE) // denominator


def unpack_weights(arrays: Mapping[str, Array], keys: Sequence[Key]) -> WeightSums:
    """Undo `pack`; raise InputError for arrays that no `pack` writes."""
    largest, clipped = arrays["largest"], arrays["clipped"]
    sums = unpack_ids(arrays, max(2 * len(keys), 1), "sums")
    if sums is None or largest.shape != (len(keys),) or clipped.shape != (len(keys),):
        raise InputError("sums of weights must be those of each key")
    if largest.dtype != np.float64 or clipped.dtype.kind not in "iu" or not np.isfinite(largest).all():
        raise InputError("weights must be finite numbers and counts integers")
    numbers = [int(text, 16) for text in sums.tolist()] if len(keys) else []
    if min([0, *numbers, *largest.tolist(), *clipped.tolist()]) < 0:
        raise InputError("sums of weights must not be negative")
    rows = zip(numbers[::2], numbers[1::2], largest.tolist(), clipped.tolist(), strict=True)
    return WeightSums(keys, [list(row) for row in rows])


def collect_weights(
    sides: BatchSides, least: float, keys: tuple[Any, ...], _n_threads: int
) -> Iterator[tuple[None, WeightSums]]:
    """Yield the sums of weights of a batch, over all users."""
    known = sides.propensities
    relevant = known.relevant(least)
    rows = []
    for column, clip, bounded in keys:
        weights = known.weights(column, clip, least, bounded=bounded)
        clipped = relevant & (known.of_rows(column, least, bounded=bounded) < clip) if clip else relevant[:0]
        rows.append([*exact_sums(weights), float(weights.max(initial=0.0)), int(np.count_nonzero(clipped))])
    yield None, WeightSums(keys, rows)


def exact_sums(values: Array) -> tuple[int, int]:
    """Return the exact sum of doubles from 0, and that of their squares, as integers in steps of 2^-1074."""
    digits = np.zeros((2, kernels.EXPONENTS, 2), np.int64)
    for first in range(0, len(values), ROWS_AT_ONCE):
        part = values[first : first + ROWS_AT_ONCE]
        given = read_only(part.view(np.int64)), read_only((part * part).view(np.int64))
        call(kernels.add_digits, *given, digits, work=4 * len(part))
    return _total(digits[0]), _total(digits[1])


def _total(digits: Array) -> int:
    """Return the integer of which `digits` has parts by exponent."""
    total = 0
    for exponent in np.flatnonzero(digits.any(axis=1)).tolist():
        high, low = digits[exponent].tolist()
        total += ((high << HALF) + low) << max(exponent - 1, 0)
    return total


def describe_weights(found: Iterable[tuple[float, WeightSums]]) -> dict[str, float]:
    """Return the counts of reports; with several clips, columns or conditions their names say which.

    `found` are pairs of the least gain of a condition and its sums.
    """
    of_sources = {
        (key[0], key[1], least): sums.described(key) for least, sums in found for key in sums.keys
    }  # ips and snips of one source have the same weights
    differs = [len(set(values)) > 1 for values in zip(*of_sources, strict=True)]
    named: dict[str, float] = {}
    for source, numbers in of_sources.items():
        texts = zip(("column", "clip", "min_gain"), source, differs, strict=True)
        options = ", ".join(f"{name}={_spelled(name, value)}" for name, value, is_named in texts if is_named)
        named |= {f"{name}({options})" if options else name: number for name, number in numbers.items()}
    return named


def _spelled(name: str, value: Any) -> str:
    if name == "column":
        return USUAL if value is None else value
    return "any" if value < 0 else f"{value:g}"
