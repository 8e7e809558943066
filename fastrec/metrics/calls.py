"""Metric strings: parsed, checked, expanded over cut-offs; and the list of all metrics as data."""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastrec.checks import listed_in_order, nearest, whole_number
from fastrec.exceptions import Argument, InputTypeError, MetricError, shown
from fastrec.metrics.declaration import LISTS, ROWS, Call, Changes, Family, Metric, Option, known_metrics, read_options
from fastrec.metrics.kinds import COLUMN, SEPARATOR, TABLE
from fastrec.metrics.spelling import plain_spelling, split_outside_brackets

MAX_LENGTH = 10_000  # of a metric string with all its options
# name(options)@k; possessive parts never backtrack, so time grows linearly with the length of the string
METRIC_STRING = re.compile(r"\s*+([^\s(@]++)\s*+(?>\((.*)\))?\s*+(?:@\s*+(\S++)\s*+)?", re.DOTALL)
DEFAULT_K = 10
SEVERAL = {  # names that people use for several metrics, by their plain spelling; the most usual first
    "coverage": ("item_coverage", "user_coverage", "category_coverage"),
    "diversity": ("intra_list_diversity", "personalization", "category_entropy"),
}
OF_LISTS = {
    "calibration": "miscalibration",
    "average_precision": "map",
}  # metrics of scored rows, and what people mean by the name for lists
N_SPREAD = 8  # metrics that an error names, from all kinds
KINDS = {TABLE: "table", COLUMN: "column", SEPARATOR: "separator"}  # of options in the catalogue; others are numbers
MAX_K = 2**31 - 1


def _find_metric(name: str, inside: str, family: Family | None) -> tuple[Metric, str]:
    """Return the metric of a name or an alias, regardless of case, and its options.

    The error for an unknown name suggests one that an input of the family takes.

    Of two metrics with one name, return that of scored rows if a threshold is given. No others have the same spelling:
    see `check_declaration`.
    """
    known, key = known_metrics(), plain_spelling(name)
    found = [metric for metric in known if metric.name == name]
    found = found or [metric for metric in known if plain_spelling(metric.name) == key]
    if found:
        return found[-1] if re.search(r"(?:^|,)\s*threshold\s*=", inside) else found[0], inside
    for metric in known:
        for alias, options in metric.aliases.items():
            if plain_spelling(alias) == key:
                return _find_metric(metric.name, ", ".join(filter(None, (options, inside))), family)
    if key in SEVERAL and family is not ROWS:
        *most, last = map(repr, SEVERAL[key])
        raise MetricError(f"unknown metric {name!r}; did you mean {', '.join(most)} or {last}?")
    others = importlib.import_module("fastrec.metrics.names")  # only errors need it, and it needs this module
    if (ours := others.meaning_of(name, family)) is not None:
        raise MetricError(f"unknown metric {name!r}; did you mean {ours!r}?")
    names = others.names_for(family)
    spread = dict.fromkeys([*names[:: -(-len(names) // N_SPREAD)], *names])
    raise MetricError(f"unknown metric {name!r}", nearest(name, list(spread), "fastrec.catalogue()"))


def of_lists_instead(metric: Metric) -> str:
    """Return the end of an error on a metric of scored rows: the metric of lists that its name may stand for."""
    return f"; for lists there is {OF_LISTS[metric.name]}" if metric.name in OF_LISTS else ""


def parse(text: str, family: Family | None = None) -> Call:
    """Parse the string of a metric.

    Raises MetricError for an unknown name, and suggests what other tools mean by it, else the nearest known one. With a
    family, it suggests metrics that lists or scored rows take.

    >>> from fastrec.metrics.calls import parse
    >>> parse("ndcg( ideal=list, gain = exp2 ) @ 10").text
    'ndcg(gain=exp2, ideal=list)@10'
    """
    return _parse(_check_text(text), family, Changes.n)


def refuse_long(text: str) -> None:
    """Reject the string of a metric that is too long to show in an error."""
    if len(text) > MAX_LENGTH:
        found = f"found {len(text):,}: {shown(text)}"
        raise MetricError(f"a metric has at most {MAX_LENGTH:,} characters, {found}")


def _check_text(text: Any) -> str:
    if isinstance(text, str):
        refuse_long(text)
        return text
    name = str(getattr(text, "__name__", "")) if callable(text) else ""
    hint = f": pass its name, {name + '@10'!r}" if name.isidentifier() else ""  # a lambda has none
    raise MetricError(f"a metric must be a string such as 'ndcg@10', found {shown(text)}{hint}")


@functools.lru_cache(maxsize=4096)
def _parse(text: str, family: Family | None, _changes: int) -> Call:
    if len(several := split_outside_brackets(text)) > 1:
        raise MetricError(f"{text!r} names several metrics: pass a list of strings, {several}")
    match = METRIC_STRING.fullmatch(text)
    if match is None:
        raise MetricError(f"cannot read the metric {text!r}: write name(option=value)@k, as in 'ndcg(gain=exp2)@10'")
    name, inside, k = match.groups()
    metric, options = _find_metric(name, inside or "", family)
    given = read_options(options, metric, text)
    if k is not None and not metric.family.takes_cutoffs:
        why = "a threshold and a cut-off exclude each other" if "threshold" in given else "it takes no cut-off"
        raise MetricError(f"{text.strip()}: {metric.name} looks at all rows of a user, {why}{of_lists_instead(metric)}")
    return make_call(metric, given, read_k(k, text))


def make_call(metric: Metric, given: Mapping[str, Any], k: int | None) -> Call:
    """Check options and put them in the order of the declaration."""
    common = {
        option.name: option.check(given[option.name], metric.name) for option in metric.common if option.name in given
    }
    options = []
    for option in metric.options.values():
        if option.name in given:
            options.append((option.name, option.check(given[option.name], metric.name)))
        elif option.required:
            example = metric.family.example.format(metric=metric.name, option=option.name)
            raise MetricError(f"{metric.name} needs the option {option.name}, as in {example}")
        else:
            options.append((option.name, option.default))
    return Call(metric, tuple(options), k, **common)


def read_k(k: str | None, text: str) -> int | None:
    """Read a cut-off from the string of a metric."""
    if k is None:
        return None
    if not k.isascii() or not k.isdigit() or len(k) > len(str(MAX_K)):
        raise MetricError(f"the cut-off in {text!r} must be an integer of at most {MAX_K}, found {k[:20]!r}")
    return check_k(int(k), f"the cut-off in {text!r}")


def check_k(k: Any, name: str) -> int:
    """Return a cut-off as an int of at least 1."""
    number = whole_number(k)
    if number is None:
        raise MetricError(f"{name} must be an integer, found {shown(k)}")
    if not 1 <= number <= MAX_K:
        raise MetricError(f"{name} must be from 1 to {MAX_K}, found {shown(k)}")
    return number


def expand(
    metrics: str | Call | Iterable[str | Call] | None,
    k: int | Iterable[int] | None = None,
    family: Family = LISTS,
    usual: Sequence[str] | None = None,
) -> list[Call]:
    """Return the distinct calls that `metrics` and `k` ask for: every metric without its own cut-off, at every k.

    Without `metrics` they are the `usual` ones, by default those of the family.
    """
    usual_k = [DEFAULT_K] if metrics is None and k is None else []
    if metrics is None:
        metrics = family.usual if usual is None else usual
    if isinstance(metrics, (str, Call)):
        metrics = [metrics]
    if not isinstance(metrics, Iterable):
        raise InputTypeError(f"metrics must be strings such as 'ndcg@10', found {shown(metrics)}")
    listed = listed_in_order(metrics, "metrics")
    calls = [metric if isinstance(metric, Call) else parse(metric, family) for metric in listed]
    if not calls:
        raise MetricError("metrics must name at least one metric")
    cutoffs = usual_k or read_cutoffs(k, calls)
    return list({own.text: own for call in calls for own in call.at(cutoffs)}.values())


def read_cutoffs(k: int | Iterable[int] | None, calls: Sequence[Call]) -> list[int]:
    """Check and return the cut-offs of a call; at least one of its metrics must take them."""
    if k is None:
        return []
    cutoffs = [check_k(value, "k") for value in _as_list(k)]
    if not cutoffs:
        raise MetricError("k must hold at least one cut-off")
    if not any(call.takes_cutoff for call in calls):
        with_own = next((call.text for call in calls if call.k is not None), None)
        why = "no metric here takes a cut-off" if with_own is None else f"{with_own} has its own cut-off"
        raise MetricError(Argument("k", (cutoffs[0],)), f" has no effect: {why}; leave out one of them")
    return cutoffs


def _as_list(k: Any) -> list[Any]:
    scalar = isinstance(k, str | bytes | bytearray) or not isinstance(k, Iterable) or getattr(k, "ndim", 1) == 0
    return [k] if scalar else listed_in_order(k, "k")


def catalogue() -> list[dict[str, Any]]:
    """Return every metric as data: a dict each, with name, summary, formula, options, range, direction and source.

    "kind" is "ranking" for metrics of lists and "scores" for those of scored rows. "options" are {name: default and
    allowed values}, "aliases" {other name: metric}, and "doc" is the whole documentation. "direction" says which values
    are better: "higher", "lower", "target" (values nearer to the number "target") or "none". Without a target, "target"
    is None. "higher_is_better" is True for "higher", False for "lower", else None. "range" is (low, high), where None
    means no bound.

    >>> [metric["name"] for metric in fastrec.catalogue()][:3]
    ['hits', 'hit_rate', 'precision']
    """
    return [
        {
            "name": metric.name,
            "kind": metric.family.kind,
            "summary": metric.summary,
            "formula": metric.expression,
            "options": {option.name: _describe(option) for option in (*metric.options.values(), *metric.common)},
            "range": tuple(None if bound == -math.inf else bound for bound in metric.range),
            "higher_is_better": metric.direction.higher_is_better,
            "direction": metric.direction.kind,
            "target": metric.direction.target,
            "aliases": {
                alias: f"{metric.name}({options})" if options else metric.name
                for alias, options in metric.aliases.items()
            },
            "source": metric.source,
            "doc": metric.doc,
        }
        for metric in known_metrics()
    ]


def _describe(option: Option) -> dict[str, Any]:
    kinds = ["choice"] if option.choices else []
    kinds += [] if option.kind is None else [KINDS.get(option.kind, "number")]
    return {
        "default": option.default,
        "required": option.required,
        "choices": list(option.choices),
        "kind": " or ".join(kinds),
    }
