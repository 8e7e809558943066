"""Compiler of formulas: the row program that a kernel runs for a set of rows."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.kernels import codes as op
from fastrec.metrics.providers import Provided, find_provider
from fastrec.metrics.rank_weights import Weight, rank_weights
from fastrec.metrics.statistics import Row

Array = np.ndarray[Any, Any]
UNCUT = op.UNCUT
MAX_IDEAL_RANKS = 10_000_000


class Extent(NamedTuple):
    """Lengths of the longest list and the longest truth that a program runs on."""

    n_rec: int
    n_rel: int


class ConditionRows(NamedTuple):
    """Rows with the same relevant items."""

    min_gain: float
    rows: tuple[Row, ...]  # to store
    checks: tuple[tuple[Row, float, float], ...] = ()
    sums: tuple[tuple[int, Row], ...] = ()  # to sum, each after the number of its sum

    @property
    def filled(self) -> tuple[Row, ...]:
        """Rows that operations fill. Those to sum are filled without the mask of a `SELECT`, which sums apply."""
        parts = (row.parts if row.key == op.SELECT else (row,) for _, row in self.sums)
        return (*(check[0] for check in self.checks), *self.rows, *itertools.chain.from_iterable(parts))

    @property
    def kept(self) -> tuple[Row, ...]:
        """Rows that stay in their places: those to store, and masks, which kernels know again by their numbers."""
        return (*self.rows, *(row.parts[0] for _, row in self.sums if row.key == op.SELECT))


def walk(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield every row after all its parts."""
    for row in rows:
        yield from walk(row.parts)
        yield row


def is_leaf(row: Row) -> bool:
    """Return whether a row has no parts."""
    return isinstance(row.key, tuple)


def vanishes(row: Row) -> bool:
    """Return True if the row is always 0 for a user without hits."""
    if is_leaf(row):
        return row.key[0] in _FROM_HITS or row.key == ("constant", 0.0)
    parts = [vanishes(part) for part in row.parts]
    if row.key == op.MULTIPLY:
        return any(parts) and all(map(is_leaf, row.parts))
    if row.key in (op.DIVIDE, op.SELECT):
        return parts[0] if row.key == op.DIVIDE else any(parts)
    if row.key == op.MINIMUM:
        return all(parts) or (any(parts) and all(map(_at_least_zero, row.parts)))
    return row.key != op.LOGARITHM and all(parts)


def sides_of(row: Row) -> frozenset[str]:
    """Return the sides that a row is computed from."""
    if is_leaf(row) and row.key[0] == "provided":
        return find_provider(row.key[1]).sides
    own = _SIDES.get(row.key[0], ()) if is_leaf(row) else ()
    return frozenset(own).union(*map(sides_of, row.parts))


def is_linear(row: Row) -> bool:
    """Return True if the mean of the row over orders of tied rows follows from the means of its leaves."""
    return _degree(row) <= 1


def counts_all(rows: Sequence[Row]) -> bool:
    """Return True if rows count relevant items of a list, but no other order of the list can change them."""
    names = {row.key[0] for row in walk(rows) if is_leaf(row)}
    return not names.isdisjoint(_FROM_HITS) and "provided" not in names and not any(map(_degree, rows))


def _degree(row: Row) -> int:
    """Return 0 for rows independent of the order of tied rows, 1 for linear functions of means, else 2."""
    if is_leaf(row):
        return _degree_of_leaf(row)
    degrees = [_degree(part) for part in row.parts]
    if not any(degrees):
        return 0
    if row.key == op.ADD:
        return max(degrees)
    if row.key == op.MULTIPLY:
        return sum(degrees)
    # a divisor, a mask, a minimum or a root must not depend on the order
    linear = {op.DIVIDE: degrees[0], op.SELECT: degrees[-1], op.BLANK: degrees[-1]}
    fixed = {op.DIVIDE: degrees[-1], op.SELECT: degrees[0], op.BLANK: degrees[0]}
    return linear[row.key] if row.key in linear and fixed[row.key] == 0 else 2


def _degree_of_leaf(row: Row) -> int:
    if row.key[:2] in _UNCUT or (row.key[:2] == ("series", None) and row.key[2:4] in _TOTALS):
        return 0  # counts and sums over the whole list do not depend on its order
    if row.key[0] == "series" and row.key[2] == op.LAST:
        return 2
    if row.key[0] == "provided":
        return 2 if find_provider(row.key[1]).is_ordered else 0
    if row.key[0] == "cumulative":
        return 2 if _degree(row.parts[0]) else 0
    if row.key[0] == "ideal" and row.key[1] == op.FROM_CUT_LIST:
        return 2
    return 1 if row.key[0] in _FROM_HITS else 0


def _rows_read(operation: tuple[int, int, int, int, int]) -> set[int]:
    """Return the numbers of the rows that an operation reads."""
    code, _, a, b, _ = operation
    return {row for row, codes in ((a, _READS_A), (b, _READS_B)) if code in codes}


def _same_as(row: Row) -> Row | None:
    """Return the other part of a product with a factor of 1. A quotient by 1 is another row: it has no -0."""
    if row.key != op.MULTIPLY:
        return None
    return next((row.parts[1 - at] for at in (1, 0) if row.parts[at].key == ("constant", 1.0)), None)


def _operation_of(row: Row) -> tuple[int, Sequence[Row]]:
    """Return the code and the parts of the operation that fills a row: x - y in place of x + (-1 * y)."""
    for first, second in (row.parts, row.parts[::-1]) if row.key == op.ADD else ():
        if second.key == op.MULTIPLY and second.parts[0].key == ("constant", -1.0):
            return op.SUBTRACT, (first, second.parts[1])
    return row.key, row.parts


def _at_least_zero(row: Row) -> bool:
    return is_leaf(row) and not (row.key[0] == "constant" and row.key[1] < 0)


class Writer:
    """Operations for the rows of some conditions, and the tables that they read.

    `graded` programs read gains. Plain programs give every truth item gain 1, so ideals are table look-ups.
    """

    def __init__(
        self,
        conditions: list[ConditionRows],
        *,
        graded: bool,
        expected: bool = False,
        provided: Provided | None = None,
    ) -> None:
        self.graded = graded
        self._provided = provided or Provided({}, {}, ())
        self._expected = expected
        self._row_of: list[dict[Hashable, int]] = []
        self._ops: list[tuple[int, int, int, int, int]] = []
        self._weights: dict[Weight, int] = {"zero": 0}
        self._gain_maps: dict[Any, int] = {"linear": 0}
        self._limits: list[tuple[float, float]] = []
        self._statistics: list[tuple[int, float, int]] = []
        everything = list(walk(row for condition in conditions for row in condition.filled))
        leaves = [row for row in everything if is_leaf(row)]
        self._constants = {
            value: i for i, value in enumerate(dict.fromkeys(row.key[1] for row in leaves if row.key[0] == "constant"))
        }
        self._n_rows = len(self._constants)
        self.reads_truth = any("truth" in _SIDES.get(row.key[0], ()) for row in leaves)
        self._measure(leaves)
        self._min_gains = [condition.min_gain for condition in conditions]
        self._condition_ops = [0]
        for condition in conditions:
            self._write_condition(condition)
            self._condition_ops.append(len(self._ops))
        self._share_rows(conditions)

    def _measure(self, leaves: list[Row]) -> None:
        """Find the requested cut-offs, and how far the tables must reach."""
        cutoffs = {row.key[1] for row in leaves if row.key[0] in _CUT}
        cutoffs |= {row.key[2] for row in leaves if row.key[0] == "ideal" and row.key[1] == op.FROM_CUT_LIST}
        self._cutoffs = sorted(UNCUT if k is None else k for k in cutoffs)
        limits = [row.parts[0] for row in leaves if row.key[0] in ("ideal", "cumulative")]
        parts = [part.key for limit in limits for part in (limit.parts if limit.key == op.MINIMUM else (limit,))]
        self._uncut = UNCUT in self._cutoffs or any(is_leaf(row) and row.key[0] != "constant" for row in limits)
        ordered = [row.key[1] for row in leaves if row.key[0] in _CUT and row.key[0] != "hits"]
        self.depth = None if None in ordered else max((k for k in self._cutoffs if k != UNCUT), default=1)
        reached = [k for k in self._cutoffs if k != UNCUT] + [int(key[1]) for key in parts if key[0] == "constant"]
        self._largest_cutoff = max(reached, default=0)
        self._largest_ideal = max(
            (int(row.key[1]) for row in limits if is_leaf(row) and row.key[0] == "constant"), default=0
        )
        if self._largest_ideal > MAX_IDEAL_RANKS:
            raise MetricError(f"ideal=k needs k <= {MAX_IDEAL_RANKS}, found k = {self._largest_ideal}")
        self.gains = {row.key[4] if row.key[0] in _READ else row.key[3] for row in leaves if row.key[0] in _GAINED}
        self.has_plain_ideal = any(row.key[:2] == ("cumulative", True) for row in leaves)
        self._ideal_weights = {row.key[-1] for row in leaves if row.key[0] in ("ideal", "cumulative")}

    def row_number(self, condition: int, row: Row) -> int:
        """Return the number of a row that the program fills."""
        return self._row_of[condition][row.identity]

    def _write_condition(self, condition: ConditionRows) -> None:
        self._known: dict[Hashable, int] = {}
        self._row_of.append(self._known)
        self._leaves = {row.identity: row for row in walk(condition.filled) if is_leaf(row)}
        for row, low, high in condition.checks:
            self._ops.append((op.CHECK, 0, self._write(row), len(self._limits), 0))
            self._limits.append((low, high))
        for row in condition.rows:
            self._write(row)
        for number, row in condition.sums:
            mask, value = row.parts if row.key == op.SELECT else (row, row)
            self._ops.append((op.ADD_UP, 0, self._write(value), self._write(mask), number))

    def _share_rows(self, conditions: list[ConditionRows]) -> None:
        """Number rows again, so that a row takes the place of one that no later operation reads.

        Fewer rows stay in faster caches. No operation writes to a row that it reads: compilers would make its loop work
        on one value at a time. Kernels read some rows after all operations.
        """
        own = zip(self._row_of, conditions, strict=True)
        wanted = [{row.identity: known[row.identity] for row in condition.kept} for known, condition in own]
        filled = range(len(self._constants))
        places, free = {row: place for place, row in enumerate(filled)}, list[int]()
        last = {row: at for at, operation in enumerate(self._ops) for row in _rows_read(operation)}
        last |= dict.fromkeys([*filled, *(row for rows in wanted for row in rows.values())], len(self._ops))
        self._n_rows = len(filled)
        for at, (code, row, a, b, c) in enumerate(self._ops):
            if code not in _WITHOUT_ROW:
                places[row] = free.pop() if free else self._n_rows
                self._n_rows = max(self._n_rows, places[row] + 1)
            free += [places[each] for each in _rows_read(self._ops[at]) if last[each] == at]
            read = places[a] if code in _READS_A else a, places[b] if code in _READS_B else b
            self._ops[at] = (code, places.get(row, 0), *read, c)
        self._row_of = [{name: places[row] for name, row in rows.items()} for rows in wanted]

    def _write(self, row: Row) -> int:
        """Write the operations that fill a row, and return its number."""
        name = row.identity
        if name in self._known:
            return self._known[name]
        if is_leaf(row):
            self._write_leaf(row)
        elif (same := _same_as(row)) is not None:
            self._known[name] = self._write(same)
        else:
            code, parts = _operation_of(row)
            first, *second = map(self._write, parts)
            self._emit(code, name, first, *second)
        return self._known[name]

    def _emit(self, code: int, name: Hashable, a: int = 0, b: int = 0) -> None:
        self._known[name] = self._n_rows
        self._ops.append((code, self._n_rows, a, b, 0))
        self._n_rows += 1

    def _write_leaf(self, row: Row) -> None:
        kind, name = row.key[0], row.identity
        if kind == "constant":
            self._known[name] = self._constants[row.key[1]]
        elif kind == "series" and self._series_of(row) == _NUMBER_OF_HITS:
            self._known[name] = self._write(Row(("hits", row.key[1])))
        elif kind in _READ:
            self._write_series(self._series_of(row))
        elif kind == "ideal" and self.graded:
            self._write_ideals(row.key[1:3])
        elif kind in ("ideal", "cumulative"):
            self._emit(op.CUMULATIVE, name, self._weight(row.key[-1]), self._write(row.parts[0]))
        elif kind == "fact":
            self._statistics.append((row.key[1], row.key[2], len(self._row_of) - 1))
            self._emit(op.GIVEN, name, len(self._provided.rows) + len(self._statistics))  # 0 is the weight of a user
        elif kind == "provided":
            at, cutoff = self._provided.place(row.key)
            self._emit(op.GIVEN if cutoff < 0 else op.GIVEN_AT, name, at, cutoff)
        elif kind == "hits_at":
            self._write_hits_at(row)
        elif kind in _COUNTED:
            self._emit(_COUNTED[kind], name, self._cutoff(row.key[1]))
        else:
            self._emit(_PLAIN_LEAVES[kind], name, row.key[1] if kind == "given" else 0)

    def _write_hits_at(self, row: Row) -> None:
        """Write the hits within limits at all cut-offs, one operation after the other: kernels count them once."""
        limits = self._write(row.parts[0])
        for name, leaf in self._leaves.items():
            if leaf.key[0] == "hits_at" and leaf.parts[0].identity == row.parts[0].identity:
                self._emit(op.HITS_AT, name, self._cutoff(leaf.key[1]), limits)

    def _series_of(self, row: Row) -> tuple[Any, ...]:
        """Return the series that a row reads. In plain programs all gains are 1."""
        kind, weight, gain = row.key[2:]
        is_plain = kind == op.GAIN_WEIGHT and not self.graded
        return (op.WEIGHT, weight, "linear") if is_plain else (kind, weight, gain)

    def _write_series(self, series: tuple[Any, ...]) -> None:
        """Write one walk over the hits that yields the values at all cut-offs."""
        kind, weight, gain = series
        self._ops.append((op.SERIES, 0, kind, self._weight(weight), self._gain_map(gain)))
        for name, leaf in self._leaves.items():
            if leaf.key[0] in _READ and self._series_of(leaf) == series:
                self._emit(_READ[leaf.key[0]], name, self._cutoff(leaf.key[1]))

    def _write_ideals(self, source: tuple[int, int | None]) -> None:
        """Write one sort of the gains of a source, and one walk per gain and weight for all limits."""
        leaves = [leaf for leaf in self._leaves.values() if leaf.key[0] == "ideal" and leaf.key[1:3] == source]
        limits = {leaf.identity: self._write(leaf.parts[0]) for leaf in leaves}
        cutoff = self._cutoff(source[1]) if source[0] == op.FROM_CUT_LIST else 0
        self._ops.append((op.SORT_GAINS, 0, source[0], cutoff, 0))
        for gain, weight in dict.fromkeys(leaf.key[3:] for leaf in leaves):
            self._ops.append((op.SORTED_SERIES, 0, self._weight(weight), self._gain_map(gain), 0))
            for leaf in leaves:
                if leaf.key[3:] == (gain, weight):
                    self._emit(op.READ_SORTED, leaf.identity, limits[leaf.identity])

    def _cutoff(self, k: int | None) -> int:
        return self._cutoffs.index(UNCUT if k is None else k)

    def _weight(self, weight: Weight) -> int:
        return self._weights.setdefault(weight, len(self._weights))

    def _gain_map(self, gain: Any) -> int:
        return self._gain_maps.setdefault(gain, len(self._gain_maps))

    def statistics(self) -> tuple[Array, Array]:
        """Return the statistics of rows to read (kind, parameter, condition), and the parameters."""
        table = [(kind, i, condition) for i, (kind, _, condition) in enumerate(self._statistics)]
        parameters = np.array([parameter for _, parameter, _ in self._statistics], float)
        return np.array(table, np.int64).reshape(-1, op.STATISTIC_WIDTH), parameters

    def arrays(self, extent: Extent) -> dict[str, Any]:
        """Return the fields of a kernel's `Program` that follow from the rows."""
        weights, ideals = self._weight_tables(extent)
        gain_maps, gain_tables = self._gain_arrays()
        return {
            "ops": np.array(self._ops, np.int64).reshape(-1, op.OP_WIDTH),
            "condition_ops": np.array(self._condition_ops, np.int64),
            "min_gains": np.array(self._min_gains, float),
            "cutoffs": np.array(self._cutoffs or [UNCUT], np.int64),  # never empty: an operation may refer to the first
            "bucket": self._buckets(extent),
            "weights": weights,
            "ideals": ideals,
            "gain_maps": gain_maps,
            "gain_tables": gain_tables,
            "constants": np.array(list(self._constants), float),
            "limits": np.array(self._limits, float).reshape(-1, 2),
            "n_rows": max(self._n_rows, 1),
            "depth": UNCUT if self.depth is None else self.depth,
            "graded": self.graded,
        }

    def _buckets(self, extent: Extent) -> Array:
        """Return the first cut-off that includes each rank; the last entry is for all ranks past the table."""
        finite = [k for k in self._cutoffs if k != UNCUT]
        longest = min(max(finite, default=0), extent.n_rec)
        return np.searchsorted(self._cutoffs, np.arange(longest + 2)).astype(np.int32)

    def _weight_tables(self, extent: Extent) -> tuple[Array, Array]:
        """Return weights and cumulative weights for the ranks in the data."""
        longest = max(extent)
        reach = longest if self._uncut else min(longest, self._largest_cutoff)
        weights = np.zeros((len(self._weights), longest + 1))
        ideals = np.zeros((len(self._weights), max(reach, self._largest_ideal) + 1))
        for weight, i in self._weights.items():
            weights[i, : reach + 1] = rank_weights(weight, reach)
            if self._expected or weight in self._ideal_weights:
                with np.errstate(over="ignore"):  # the kernel rejects values that are not finite
                    np.cumsum(rank_weights(weight, ideals.shape[1] - 1), out=ideals[i])
        return weights, ideals

    def _gain_arrays(self) -> tuple[Array, Array]:
        tables = [gain for gain in self._gain_maps if isinstance(gain, tuple) and gain[0] != "stop"]
        width = max(map(len, tables), default=1)
        gain_tables = np.zeros((max(len(tables), 1), width))
        for i, table in enumerate(tables):
            gain_tables[i, : len(table)] = table
        kinds: dict[str, tuple[int, float]] = {"linear": (op.LINEAR, 0.0), "exp2": (op.EXP2, 0.0)}
        maps = []
        for gain in self._gain_maps:
            if isinstance(gain, str):
                maps.append(kinds[gain])
            elif gain[0] == "stop":
                maps.append((op.STOP, gain[1]))
            else:
                maps.append((op.TABLE, float(tables.index(gain))))
        return np.array(maps, float), gain_tables


_ARITHMETIC = range(op.ADD, op.BLANK + 1)
_READS_A = frozenset([op.READ_SORTED, op.CHECK, op.ADD_UP, *_ARITHMETIC])  # operations with a row as a
_READS_B = frozenset([op.HITS_AT, op.CUMULATIVE, op.ADD_UP, *_ARITHMETIC]) - {op.SQUARE_ROOT, op.LOGARITHM}
_WITHOUT_ROW = frozenset([op.SERIES, op.SORT_GAINS, op.SORTED_SERIES, op.CHECK, op.ADD_UP])  # they fill none
_COUNTED = {"hits": op.HITS, "any_hit": op.ANY_HIT}
_UNCUT = [(name, None) for name in _COUNTED]
_TOTALS = [(kind, "one") for kind in (op.WEIGHT, op.GAIN_WEIGHT)]  # kinds and weights of series
_NUMBER_OF_HITS = (op.WEIGHT, "one", "linear")
_READ = {"series": op.READ, "mean_precision": op.READ_MEAN, "listed_pairs": op.READ_PAIRS}
_FROM_HITS = _CUT = (*_COUNTED, "hits_at", *_READ)
_GAINED = (*_READ, "ideal")
_SIDES = dict.fromkeys(_FROM_HITS, ("recs", "truth")) | {"n_rec": ("recs",)}
_SIDES |= {"n_rel": ("truth",), "ideal": ("recs", "truth"), "fact": ("rows",)}
_PLAIN_LEAVES = {
    "n_rec": op.N_REC,
    "n_rel": op.N_REL,
    "counted": op.COUNTED,
    "included": op.INCLUDED,
    "given": op.GIVEN,
}
