"""Tables of what metrics and settings mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastrec.exceptions import MetricError
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import Call
from fastrec.metrics.spelling import print_value
from fastrec.policies import POLICIES, SAMPLING
from fastrec.show.numbers import DASH
from fastrec.show.tables import Table

SETTINGS = {
    **{name: policy.case for name, policy in POLICIES.items()},
    **{name: policy.case.replace("`", "") for name, policy in SAMPLING.items()},
    "min_gain": "the gain from which an item is relevant",
    "n_items": "size of the catalogue, for the metrics that need it",
    "negatives": "items drawn for each user, in place of the whole catalogue",
    "sampled_from": "size of the catalogue that lists hold a sample of",
    "exclude": "items taken from the lists: of the history, or of a side of their own",
    "weighted": "whether users have weights",
    "row_weights": "rows have weights",
    "row_groupings": "groupings of rows: a user may be in several of their segments",
    "like": "tool whose names, definitions and policies apply",
    "names": "names of the metrics in that tool",
    "units": "what the intervals of metrics of the order of all rows take as independent",
    "clustered": "metrics of all rows together: users are compared by the effects of their rows",
    "baseline": "system that all others are compared with",
    "test": "test of the mean difference, two-sided, on users",
    "correction": "correction of p-values for many comparisons",
    "level": "level of intervals and of significance",
    "n_rounds": "random rounds of the test",
    "seed": "seed of the random rounds, or of the drawn items",
    "missing": "users counted on one side only",
}


def known_call(text: str) -> Call | None:
    """Parse a metric; None for one not declared in this process, as in a loaded report."""
    try:
        return parse(text)
    except MetricError:
        return None


def definitions(metrics: Iterable[str]) -> Table:
    """Return a table with the definition of each metric from the catalogue, one row for all its cut-offs."""
    cutoffs: dict[str, list[str]] = {}
    for text in metrics:
        family, mark, k = text.rpartition("@")
        cutoffs.setdefault(f"{family}@" if mark else text, []).extend([k] if mark else [])
    rows = [[f"{name}{', '.join(k)}", *_definition(name.removesuffix("@"))] for name, k in cutoffs.items()]
    head = ["metric", "what it is", "formula with default options", "options", "better", "source"]
    return Table("Definitions of the metrics", head, rows, len(head), n_narrow=2)


def _definition(text: str) -> list[str]:
    call = known_call(text)
    if call is None:
        return ["declared elsewhere", *[DASH] * 4]
    own = call.metric
    options = [*call.options, *((option.name, getattr(call, option.name)) for option in own.common)]
    given = ", ".join(f"{name}={print_value(value)}" for name, value in options if value is not None)
    better = own.direction.words
    return [own.summary.replace("`", ""), own.expression or DASH, given or DASH, better, own.source or DASH]


def settings_table(settings: Mapping[str, object]) -> Table:
    """Return a table of settings with their meaning."""
    rows = [[name, SETTINGS.get(name, DASH), _setting(value)] for name, value in settings.items()]
    return Table("Settings", ["setting", "what it decides", "value"], rows, 3)


def _setting(value: object) -> str:
    """Format the value of a setting."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} is {text}" for name, text in value.items())
    return "not given" if value is None else print_value(value)
