"""Results of `ctr_by_rank` and `position_bias`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastrec._version import __version__
from fastrec.checks import check_level, counted, whole_number
from fastrec.counterfactual.counts import PairCounts, RankTables, join_pairs, join_tables
from fastrec.counterfactual.curves import Fitting
from fastrec.counterfactual.tables import brief, chart_of, curve_table, page_of_settings, rank_table
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.metrics.intervals import normal_quantile, student_quantile, wilson
from fastrec.report.plain import plain_document
from fastrec.runtime.threads import once
from fastrec.scored.clusters import clustered_error, effective_rows
from fastrec.show.plots import check_target, draw_band
from fastrec.show.shown import Charted, Exported
from fastrec.show.tables import Lead, Section, Table, with_notes

Array = np.ndarray[Any, Any]
NOT_BIAS = "a falling curve alone is not bias: items differ by rank (see position_bias)"
BOOTSTRAP = "bootstrap of queries"


class CtrByRank(Exported, Charted):
    """Click-through rates by rank, as returned by `ctr_by_rank`. Arrays have one number per rank, from rank 1.

    ranks : 1, 2, ..., the highest rank.
    impressions, clicks : counts, int64.
    ratio : clicks / impressions; NaN without impressions.
    low, high : interval of the ratio.
    std_error : of the ratio, clustered by user; None without users.
    users : number of users with an impression; None without users.
    groups : {grouping: {label: CtrByRank}}, up to the highest rank of all.
    level : of the intervals.
    """

    _title = "Clicks by rank"

    def __init__(self, table: Array, groups: Mapping[str, Mapping[Any, Array]], level: float, *, by_user: bool) -> None:
        self._table, self._tables_of_groups, self._by_user, self.level = table, groups, by_user, level
        self._is_merged = False
        self.ranks = np.arange(1, len(table) + 1)
        self.impressions, self.clicks = table[:, 0].copy(), table[:, 1].copy()
        with np.errstate(invalid="ignore"):
            self.ratio: Array = self.clicks / self.impressions
        self.users = table[:, 2].copy() if by_user else None
        self.std_error = clustered_error(table) if by_user else None
        self.low, self.high = self.interval()
        self.groups = {
            grouping: {label: CtrByRank(own, {}, level, by_user=by_user) for label, own in tables.items()}
            for grouping, tables in groups.items()
        }

    def interval(self, level: float | None = None) -> tuple[Array, Array]:
        """Return the ends of the intervals, by default of the level of the call.

        It is the score interval (Wilson 1927) of a number of rows. With users this is the number of independent rows
        that tell as much, at most that of all rows, * (z / t)^2 for Student's t of the users less 1 (Korn & Graubard
        1998); NaN for fewer than two users.
        """
        level = self.level if level is None else check_level(level)
        if self.users is None:
            return wilson(self.clicks, self.impressions, level)
        quantiles = np.array([student_quantile(level, users - 1) for users in self.users.tolist()])
        sizes = np.minimum(self.impressions, effective_rows(self._table, weighted=False))
        sizes = sizes * (normal_quantile(level) / quantiles) ** 2
        return wilson(self.ratio * sizes, sizes, level)

    def merge(self, other: CtrByRank) -> CtrByRank:
        """Return the result for the rows of both, with the same bits as one call on all rows.

        With users, no user may be in both: the interval needs the counts of whole users. Results keep no ids, so this
        is not checked; the printed result says that it was taken for granted.

        Raises
        ------
        InputError, InputTypeError
            If only one of them has users, or they have other groupings or levels.
        """
        if not isinstance(other, CtrByRank):
            raise InputTypeError(f"a CtrByRank merges with another, found {shown(other)}")
        if self._by_user != other._by_user:
            raise InputError("both results must have users, or neither, to be merged")
        if self.groups.keys() != other.groups.keys():
            found = f"{', '.join(self.groups) or 'none'} and {', '.join(other.groups) or 'none'}"
            raise InputError(f"results must have the same groupings to be merged, found {found}")
        if self.level != other.level:
            raise InputError(f"results must have the same level to be merged: {self.level}, {other.level}")
        merged = CtrByRank(
            *join_tables([self._tables_by_rank(), other._tables_by_rank()]), self.level, by_user=self._by_user
        )
        merged._is_merged = True
        return merged

    def _tables_by_rank(self) -> RankTables:
        return self._table, self._tables_of_groups

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict per rank, over all rows and for each group.

        Keys: "grouping", "group", "rank", "impressions", "clicks", "ratio", "low", "high", and with users "std_error"
        and "users".
        """
        return [row for grouping, label, own in self._parts() for row in _rows_of(own, grouping, label)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        settings = {"level": self.level, "interval": "users" if self._by_user else "wilson"}
        return plain_document({"settings": settings, "rows": self.to_rows()})

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the ratio by rank with its interval as a band, on the given axes or new ones; one curve per group.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        check_target(ax, label, "plot")
        groups = [(str(name), own) for by in self.groups.values() for name, own in by.items()]
        curves: list[tuple[str | None, CtrByRank]] = [*groups] or [(label, self)]
        for name, own in curves:
            ax = draw_band(own.ranks, own.ratio, own.low, own.high, ax, name)
        ax.set(xlabel="Rank", ylabel=f"Clicks / impressions, {100 * self.level:g} % interval")
        return ax

    def _parts(self) -> Iterator[tuple[str | None, Any, CtrByRank]]:
        yield None, None, self
        for grouping, by_label in self.groups.items():
            for label, own in by_label.items():
                yield grouping, label, own

    def _rows_and_titles(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for grouping, label, own in self._parts():
            yield "" if grouping is None else f"{grouping}: {label}", list(_rows_of(own, grouping, label))

    def notes(self) -> list[str]:
        """Return lines on the numbers."""
        kind = (
            "Wilson 1927 for as many rows as users are worth"
            if self._by_user
            else "Wilson 1927; rows are taken as independent"
        )
        merged = ["merged results: no user is taken to be in two of them"] if self._is_merged and self._by_user else []
        return [f"intervals of {100 * self.level:g} %: {kind}", *merged, NOT_BIAS]

    def tables(self) -> list[Table]:
        """Return the tables for terminals, the first ranks of each, with their notes."""
        return with_notes([brief(table) for table in self._rank_tables()], self.notes())

    def _printed(self) -> list[Table]:
        return self.tables()

    def _tables(self) -> list[Table]:
        return with_notes(self._rank_tables(), self.notes())

    def _rank_tables(self) -> list[Table]:
        return [rank_table(title, rows) for title, rows in self._rows_and_titles()]

    def _lead(self) -> Lead:
        return Lead(notes=[*self.notes(), f"fastrec {__version__}"])

    def _sections(self) -> list[Section]:
        return [
            Section(
                title or "All rows", [rank_table("By rank", rows)], [chart_of("clicks / impressions", rows, "ratio")]
            )
            for title, rows in self._rows_and_titles()
        ]

    def _in_report(self) -> list[Section]:
        parts = list(self._rows_and_titles())
        tables = [rank_table(title or "By rank", rows) for title, rows in parts]
        charts = [chart_of(title or "All rows: clicks / impressions", rows, "ratio") for title, rows in parts]
        return [Section("Clicks by rank", tables, charts, self.notes())]


def _rows_of(result: CtrByRank, grouping: str | None, label: Any) -> Iterator[dict[str, Any]]:
    names = ["impressions", "clicks", "ratio", "low", "high"]
    names += ["std_error", "users"] if result.users is not None else []
    columns = [result.ranks, *(getattr(result, name) for name in names)]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield {"grouping": grouping, "group": label, **dict(zip(["rank", *names], row, strict=True))}


class PositionBias(Exported, Charted):
    """Curve of position bias, as returned by `position_bias`. Arrays have one number per rank, from rank 1.

    curve : chance that a rank is examined, relative to rank 1; NaN for a rank that nothing connects to rank 1.
    examination : of method "em", the chance that a rank is examined; else None.
    pairs : number of (query, item) behind a rank: seen at it and at the rank that the method compares it with.
    impressions, clicks : counts by rank, int64.
    low, high : interval of the curve; they are computed when they are first read.
    n_queries : number of queries.
    settings : method, n_rounds (of "em"), level, n_samples, seed.
    """

    _title = "Position bias"

    def __init__(self, counts: PairCounts, settings: Mapping[str, Any], n_threads: int) -> None:
        self._counts, self.settings, self._n_threads = counts, dict(settings), n_threads
        self._fitting = Fitting(counts, settings["method"], settings["n_rounds"] or 0, n_threads)
        self.curve, self.examination, self.pairs = self._fitting.fit()
        self._resampled: dict[tuple[int, int], Array] = {}
        self.n_queries = len(counts.queries)
        self.ranks = np.arange(1, counts.n_ranks + 1)
        cells = counts.cells
        self.impressions, self.clicks = (np.zeros(counts.n_ranks, np.int64) for _ in range(2))
        np.add.at(self.impressions, cells.ranks, cells.shown)
        np.add.at(self.clicks, cells.ranks, cells.clicked)

    def interval(
        self, level: float | None = None, n_samples: int | None = None, seed: int | None = None
    ) -> tuple[Array, Array]:
        """Return the ends of the intervals: percentiles of curves of queries drawn with replacement (Efron 1979).

        A draw in which a rank is unknown does not count for it. Ends are NaN for an unknown rank, for a log of one
        query, and with fewer than two draws that count. The same seed gives the same bits for any number of threads.

        Parameters
        ----------
        level, n_samples, seed : default: those of the call
        """
        level = self.settings["level"] if level is None else check_level(level)
        n_samples = self.settings["n_samples"] if n_samples is None else check_count("n_samples", n_samples, 0)
        seed = self.settings["seed"] if seed is None else check_count("seed", seed, 0)
        low, high = np.full((2, len(self.curve)), np.nan)
        if self.n_queries < 2 or n_samples < 2:
            return low, high
        places = np.flatnonzero(~np.isnan(self.curve))
        if (n_samples, seed) not in self._resampled:
            self._resampled[n_samples, seed] = self._fitting.resample(n_samples, seed, places)
        for at, drawn in zip(places, self._resampled[n_samples, seed].T, strict=True):
            known = drawn[~np.isnan(drawn)]
            if len(known) > 1:
                low[at], high[at] = np.quantile(known, [(1 - level) / 2, 1 - (1 - level) / 2])
        return low, high

    @once
    def _interval(self) -> tuple[Array, Array]:
        return self.interval()

    @property
    def low(self) -> Array:
        """Lower ends of the intervals."""
        return self._interval[0]

    @property
    def high(self) -> Array:
        """Upper ends of the intervals."""
        return self._interval[1]

    def merge(self, other: PositionBias) -> PositionBias:
        """Return the result for the rows of both, with the same bits as one call on all rows.

        Queries and items may be in both: the counts of a (query, item) at a rank add up.

        Raises
        ------
        InputError, InputTypeError
            If they have other settings, or ids of another type.
        """
        if not isinstance(other, PositionBias):
            raise InputTypeError(f"a PositionBias merges with another, found {shown(other)}")
        for name, value in self.settings.items():
            if other.settings[name] != value:
                raise InputError(f"results must have the same {name} to be merged: {value}, {other.settings[name]}")
        joined = join_pairs([self._counts.columns(), other._counts.columns()], self._n_threads)
        return PositionBias(joined, self.settings, self._n_threads)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict per rank: "rank", "curve", "low", "high", "impressions", "clicks", "pairs", "examination"."""
        examination = [None] * len(self.curve) if self.examination is None else self.examination.tolist()
        columns = [self.ranks, self.curve, self.low, self.high, self.impressions, self.clicks, self.pairs]
        names = ["rank", "curve", "low", "high", "impressions", "clicks", "pairs", "examination"]
        values = zip(*(column.tolist() for column in columns), examination, strict=True)
        return [dict(zip(names, row, strict=True)) for row in values]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        return plain_document({"settings": self.settings, "queries": self.n_queries, "rows": self.to_rows()})

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the curve with its interval as a band, on the given axes or new ones.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        check_target(ax, label, "plot")
        ax = draw_band(self.ranks, self.curve, self.low, self.high, ax, label)
        ax.set(xlabel="Rank", ylabel=f"Examination / that of rank 1, {100 * self.settings['level']:g} % interval")
        return ax

    def notes(self) -> list[str]:
        """Return lines on the numbers."""
        settings = self.settings
        rounds = f", rounds: {settings['n_rounds']}" if settings["method"] == "em" else ""
        queries = counted(self.n_queries, "query", "queries")
        lines = [f"method {settings['method']}{rounds}, {queries}"]
        if self.n_queries < 2:
            lines.append("no intervals: they need two queries or more")
        elif settings["n_samples"] >= 2:
            lines.append(f"intervals of {100 * settings['level']:g} %: {BOOTSTRAP}, {settings['n_samples']:,} draws")
        unknown = np.flatnonzero(np.isnan(self.curve)) + 1
        if len(unknown):
            lines.append(f"unknown at {_spoken(unknown)}: nothing connects them to rank 1, or no click there")
        none = np.flatnonzero(self.curve == 0) + 1
        if len(none):
            lines.append(f"0 at {_spoken(none)}: no click there, so the interval cannot say how far above 0 it is")
        if settings["method"] == "ctr":
            lines.append("method ctr is right only where the order was random")
        return lines

    def tables(self) -> list[Table]:
        """Return the table for terminals, of the first ranks, with its notes."""
        return with_notes([brief(curve_table(self.to_rows()))], self.notes())

    def _printed(self) -> list[Table]:
        return self.tables()

    def _tables(self) -> list[Table]:
        return with_notes([curve_table(self.to_rows())], self.notes())

    def _lead(self) -> Lead:
        return Lead(notes=[*self.notes(), f"fastrec {__version__}"])

    def _sections(self) -> list[Section]:
        (curve,) = self._in_report()
        return [
            curve._replace(title="Curve", lines=()),
            Section("Settings", [page_of_settings(self.settings)]),
        ]

    def _in_report(self) -> list[Section]:
        rows = self.to_rows()
        chart = chart_of("examination / that of rank 1", rows, "curve")
        return [Section("Position bias", [curve_table(rows)._replace(title="By rank")], [chart], self.notes())]


def check_count(name: str, value: Any, least: int) -> int:
    """Return an integer of at least `least`."""
    number = whole_number(value)
    if number is None:
        raise InputTypeError(Argument(name), f" must be an integer, found {shown(value)}")
    if number < least:
        raise InputError(Argument(name), f" must be at least {least}, found {shown(number)}")
    return number


def _spoken(ranks: Array) -> str:
    """Return ranks for a line, at most five of them."""
    some = ", ".join(f"{rank:,}" for rank in ranks[:5])
    return f"rank{'s' if len(ranks) > 1 else ''} {some}{', …' if len(ranks) > 5 else ''}"
