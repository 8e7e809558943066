"""Accuracy against the use of the catalogue, system by system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastrec.report.estimates import Estimate, with_intervals
from fastrec.report.plans import known_calls, sides_of_settings
from fastrec.show.charts import Estimated, scatter
from fastrec.show.numbers import percent
from fastrec.show.tables import Chart, Section, Table

OF_CATALOGUE = ("item_coverage", "novelty", "gini")
TITLE = "Accuracy and catalogue"


class TradeOffs(NamedTuple):
    """A section of a page, empty if the systems lack such metrics, and its metrics."""

    section: Section
    metrics: Sequence[str] = ()


def trade_offs(estimates: Mapping[str, Mapping[str, Estimate]], compared: Sequence[str], level: float) -> TradeOffs:
    """Return a chart of the first metric of accuracy against each of OF_CATALOGUE, with the numbers below.

    `estimates` are {system: {metric: estimate}}, `compared` the metrics to look at first.
    """
    shared = [name for name in next(iter(estimates.values()), {}) if all(name in own for own in estimates.values())]
    calls = known_calls(dict.fromkeys([*(name for name in compared if name in shared), *shared]))
    accuracy = next((name for name, sides in sides_of_settings(calls, {}).items() if sides == {"recs", "truth"}), None)
    if accuracy is None:
        return TradeOffs(Section(TITLE))
    found: dict[str, str] = {}
    for name in sorted(calls, key=lambda name: calls[name].k != calls[accuracy].k):  # those of its cut-off first
        found.setdefault(calls[name].metric.name, name)
    metrics = [found[name] for name in OF_CATALOGUE if name in found]
    if not metrics:
        return TradeOffs(Section(TITLE))
    charts = []
    for metric in metrics:
        better = calls[metric].metric.direction.words
        title = f"{accuracy} against {metric}: {better} {metric} is better"
        points = [(_estimated(own[metric], level), _estimated(own[accuracy], level)) for own in estimates.values()]
        charts.append(Chart(title, scatter(title, (metric, accuracy), list(estimates), points)))
    cells = with_intervals(([own[name] for name in (accuracy, *metrics)] for own in estimates.values()), level)
    rows = [[system, *row] for system, row in zip(estimates, cells, strict=True)]
    notes = [
        "A mean counts all users of its system; a difference counts the users of both systems.",
        f"Intervals are of {percent(level)}. A metric without a standard error has none.",
        "A point without room for its name shows it under a pointer.",
    ]
    table = Table("Systems by accuracy and catalogue", ["system", accuracy, *metrics], rows, notes=notes, n_narrow=3)
    return TradeOffs(Section(TITLE, [table], charts), (accuracy, *metrics))


def _estimated(one: Estimate, level: float) -> Estimated:
    return Estimated(one.mean, *one.interval(level))
