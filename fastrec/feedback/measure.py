"""Measurement of one log: which levels the given sides allow, and what later steps need of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import check_text, listed
from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import Argument, InputError
from fastrec.feedback.rows import PAIRS, Share
from fastrec.inputs.items import ItemTable
from fastrec.items.exposure import Exposure, Key
from fastrec.items.popularity import SEGMENT, has_tail
from fastrec.items.shares import Labelled
from fastrec.metrics.calls import check_k
from fastrec.metrics.declaration import Call
from fastrec.report.estimates import Estimate
from fastrec.report.report import Report, record

Array = np.ndarray[Any, Any]
MAX_GROWTH = 1.1  # of the number of users
MIN_PLACES = 5  # of lists, per item: with fewer, errors of first order are too small
MAX_SEGMENTS = 100  # each has metrics of its own


class Measured(NamedTuple):
    """One log, measured."""

    name: str
    levels: dict[str, Estimate]
    values: dict[str, Array]  # of users, or of pairs, by column; NaN for those without one
    user_ids: Array | None
    exposure: Exposure | None  # None without users
    own: dict[str, Estimate]  # "overlap" and "rbo" with the lists of the log before
    shares: list[Share]
    warnings: list[str]

    @property
    def users(self) -> int:
        """The number of users with a list."""
        return 0 if self.exposure is None else self.exposure.n_lists


class Question:
    """What is measured of each log."""

    def __init__(
        self,
        k: Any,
        by: Any,
        provider: Any,
        sep: Any = None,
        *,
        n_items: int | None,
        has_history: bool,
        n_threads: int | None = None,
    ) -> None:
        self.k, self.sep = check_k(k, "k"), None if sep is None else check_text("sep", sep)
        self.by, self.provider = _columns("by", by), None if provider is None else check_text("provider", provider)
        self._n_items, self._has_history, self._n_threads = n_items, has_history, n_threads
        self._labelled: dict[str, Labelled] = {}
        self._own: list[Call] = []
        self._table: ItemTable | None = None
        self._size: Any = n_items

    @property
    def key(self) -> Key:
        """What the exposures of items count."""
        return self.k, "one"

    def evaluation(self, table: ItemTable | None, *, has_reference: bool, history: Any = None) -> ListEvaluation:
        """Return the evaluation of a log."""
        metrics: Any = self._calls(table, has_reference=has_reference)
        sides: dict[str, Any] = {"items": table, "history": history}
        return ListEvaluation(metrics, n_items=self._n_items, per_user=True, n_threads=self._n_threads, **sides)

    def _calls(self, table: ItemTable | None, *, has_reference: bool) -> list[str | Call]:
        """Return the metrics to compute."""
        if (self.by or self.provider is not None) and table is None:
            raise InputError(Argument("by" if self.by else "provider"), " needs ", Argument("items", (...,)))
        if table is not None and self._table is not table:
            self._table, self._own = table, []
            self._labelled = {name: Labelled(table, name, self.sep) for name in self._columns_of_items()}
            for name in self.by:
                if (n_labels := len(self._labelled[name].names)) > MAX_SEGMENTS:
                    wanted = f" takes columns of at most {MAX_SEGMENTS} segments, found {n_labels:,} in {name!r}: "
                    raise InputError(Argument("by"), wanted, Argument("provider"), " takes more")
                self._own += self._labelled[name].calls_of_shares(self.k)
            if self.provider is not None:
                self._own += self._labelled[self.provider].calls_of_concentration(self.k)
        names = [*self._names(table), *(["overlap", "rbo"] if has_reference else [])]
        return [*(f"{name}@{self.k}" for name in names), *self._own]

    def _columns_of_items(self) -> list[str]:
        return list(dict.fromkeys([*self.by, *([] if self.provider is None else [self.provider])]))

    def _names(self, table: ItemTable | None) -> Iterator[str]:
        """Yield the metrics of fastrec that the sides allow."""
        if table is None and self._n_items is None:
            yield "item_coverage(denominator=one)"
        else:
            yield from ("item_coverage", "gini")
        yield from ("shannon_entropy", "personalization")
        columns = set() if table is None else set(table.columns)
        if self._has_history or "popularity" in columns:
            yield "popularity"
        if table is not None and SEGMENT in columns:
            yield from ["aplt"] if has_tail(table) else []
        elif self._has_history or "popularity" in columns:
            yield "aplt"
        if table is not None and self._has_history and "category" in columns:
            lacks = (np.diff(table.categories("category", self.sep).indptr) == 0).any()
            options = [f"sep={self.sep}"] * (self.sep is not None) + ["no_features=drop"] * bool(lacks)
            yield f"miscalibration({', '.join(options)})" if options else "miscalibration"

    def measure(self, name: str, evaluation: ListEvaluation, report: Report, pairs: Array | None = None) -> Measured:
        """Return what the evaluation of a log found; `pairs` are the overlaps of pairs of users."""
        self._size = report.settings["n_items"]
        state = evaluation.state
        found = {} if state is None else state.accumulators
        exposure = next((one for of, one in found.items() if of.kind == "exposure" and of.group is None), None)
        assert exposure is None or isinstance(exposure, Exposure)
        levels, values = dict(report.estimates), dict(report.per_user)
        own = {metric: levels.pop(f"{metric}@{self.k}", NOTHING) for metric in ("overlap", "rbo")}
        shares: list[Share] = []
        for column, labelled in self._labelled.items():
            counts = evaluation.counts_of_history
            past = np.full(len(labelled.names), math.nan)
            if counts is not None:
                past = labelled.of_rows(counts.ids, counts.rows)
            now = np.full(len(past), math.nan) if exposure is None else labelled.of_exposure(exposure, self.key)
            rows = zip(labelled.names, now.tolist(), past.tolist(), strict=True)
            shares += [Share(name, column, *row) for row in rows]
            if column in self.by and self._has_history:
                _amplify(levels, values, column, labelled.names, past, self.k)
        if pairs is not None:
            del levels[f"personalization@{self.k}"]
            levels[f"{PAIRS}@{self.k}"] = mean_of(pairs)
            values[f"{PAIRS}@{self.k}"] = pairs
            if exposure is not None and np.isnan(pairs).all():
                record(report, ("no pair has lists of both users: do the ids match?",))
        return Measured(name, levels, values, report.user_ids, exposure, own, shares, list(report.warnings))

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the call."""
        return {"k": self.k, "by": list(self.by), "provider": self.provider, "n_items": self._size, "sep": self.sep}


def cautions(users: Sequence[int], wanted: Question) -> list[str]:
    """Return warnings about logs that are too small, or of too different sizes, for their exposures to compare."""
    found, n_items = [], wanted.settings()["n_items"]
    if max(users) > MAX_GROWTH * min(users):
        sizes = f"logs have from {min(users):,} to {max(users):,} users"
        found.append(f"{sizes}: coverage, Gini index and entropy depend on this number; compare samples of one size")
    if n_items is not None and min(users) * wanted.k < MIN_PLACES * n_items:
        places = f"lists have fewer than {MIN_PLACES} places per item of the catalogue"
        found.append(f"{places}: errors of the Gini index and the entropy may be too small")
    return found


NOTHING = Estimate(math.nan, math.nan, 0)


def _columns(argument: str, given: Any) -> tuple[str, ...]:
    """Return the names of columns in an argument, which may be one name or several."""
    if given is None:
        return ()
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else listed(given, argument)
    return tuple(dict.fromkeys(check_text(argument, name) for name in names))


def _amplify(
    levels: dict[str, Estimate], values: dict[str, Array], column: str, names: list[Any], past: Array, k: int
) -> None:
    """Add the share of exposure / the share of the history of each segment; NaN for those not in the history."""
    for name, share in zip(names, past.tolist(), strict=True):
        source, target = (f"{what}({column}={name})@{k}" for what in ("share", "amplification"))
        factor = 1 / share if share else math.nan
        own = levels[source]
        ends = own.range[0] * factor, own.range[1] * factor
        made = own._replace(mean=own.mean * factor, std_error=own.std_error * factor, range=ends)
        levels[target] = made._replace(kind="student") if own.kind == "wilson" else made
        values[target] = values[source] * factor


def mean_of(values: Array) -> Estimate:
    """Return the mean of values other than NaN, with its standard error."""
    known = values[~np.isnan(values)]
    n = len(known)
    mean = math.fsum(known) / n if n else math.nan
    spread = math.fsum((known - mean) ** 2)
    return Estimate(mean, math.sqrt(spread / (n - 1) / n) if n > 1 else math.nan, n)
