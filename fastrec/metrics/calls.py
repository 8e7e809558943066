"""Metrics as texts: parsed, checked, expanded over cut-offs; and the list of all metrics as data."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastrec.checks import listed_in_order, whole_number
from fastrec.exceptions import InputTypeError, MetricError, shown
from fastrec.metrics.declaration import (
    TABLE,
    Call,
    Changes,
    Metric,
    Option,
    known_metrics,
    nearest,
    plain_spelling,
    read_options,
    split_outside_brackets,
)

__all__ = [
    "DEFAULT_K",
    "DEFAULT_METRICS",
    "catalogue",
    "expand",
    "make_call",
    "parse",
    "read_cutoffs",
    "read_k",
    "refuse_long",
]


MAX_LENGTH = 10_000  # of a metric with all its options
# name(options)@k; no part gives back what it took, so a text is read in time that grows with its length alone
WHOLE_TEXT = re.compile(r"\s*+([^\s(@]++)\s*+(?>\((.*)\))?\s*+(?:@\s*+(\S++)\s*+)?", re.DOTALL)
DEFAULT_METRICS = ("ndcg", "recall", "precision", "map", "mrr", "hit_rate")
DEFAULT_K = 10
MAX_K = 2**31 - 1


def _find_metric(name: str, inside: str) -> tuple[Metric, str]:
    """The metric of a name or an alias, in any case, and its options; of two of one name, that of scored rows if a
    threshold is given. `_check_names` sees to it that no other has the same spelling.
    """
    known, key = known_metrics(), plain_spelling(name)
    found = [metric for metric in known if metric.name == name]
    found = found or [metric for metric in known if plain_spelling(metric.name) == key]
    if found:
        return found[-1] if re.search(r"(?:^|,)\s*threshold\s*=", inside) else found[0], inside
    for metric in known:
        for alias, options in metric.aliases.items():
            if plain_spelling(alias) == key:
                return _find_metric(metric.name, ", ".join(filter(None, (options, inside))))
    names = list(dict.fromkeys(metric.name for metric in known))
    raise MetricError(f"unknown metric {name!r}{nearest(name, names, 'fastrec.catalogue()')}")


def parse(text: str) -> Call:
    """Read a metric's text.

    Raises MetricError, with the nearest known name, for what it does not know.

    >>> from fastrec.metrics.calls import parse
    >>> parse("ndcg( ideal=list, gain = exp2 ) @ 10").text
    'ndcg(gain=exp2, ideal=list)@10'
    """
    return _parse(_check_text(text), Changes.n)


def refuse_long(text: str) -> None:
    """Refuse the text of a metric that is too long for an error to show."""
    if len(text) > MAX_LENGTH:
        found = f"found {len(text):,}: {shown(text)}"
        raise MetricError(f"the text of a metric has at most {MAX_LENGTH:,} signs, {found}")


def _check_text(text: Any) -> str:
    if isinstance(text, str):
        refuse_long(text)
        return text
    raise MetricError(f"a metric is named by a text such as 'ndcg@10', found {shown(text)}")


@functools.lru_cache(maxsize=4096)
def _parse(text: str, _changes: int) -> Call:
    if len(several := split_outside_brackets(text)) > 1:
        raise MetricError(f"{text!r} names several metrics: pass a list of texts, {several}")
    match = WHOLE_TEXT.fullmatch(text)
    if match is None:
        raise MetricError(f"cannot read the metric {text!r}: write name(option=value)@k, as in 'ndcg(gain=exp2)@10'")
    name, inside, k = match.groups()
    metric, options = _find_metric(name, inside or "")
    given = read_options(options, metric, text)
    if k is not None and metric.kind == "scores":
        why = "a threshold and a cut-off exclude each other" if "threshold" in given else "it takes no cut-off"
        raise MetricError(f"{text.strip()}: {metric.name} looks at all rows of a user, {why}")
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
            example = (
                f"{metric.name}({option.name}=4)@10"
                if metric.kind == "ranking"
                else f"{metric.name}({option.name}=0.5)"
            )
            raise MetricError(f"{metric.name} needs the option {option.name}, as in {example}")
        else:
            options.append((option.name, option.default))
    return Call(metric, tuple(options), k, **common)


def read_k(k: str | None, text: str) -> int | None:
    """A cut-off as it stands in a text."""
    if k is None:
        return None
    if not k.isascii() or not k.isdigit() or len(k) > len(str(MAX_K)):
        raise MetricError(f"the cut-off in {text!r} must be a whole number of at most {MAX_K}, found {k[:20]!r}")
    return check_k(int(k), f"the cut-off in {text!r}")


def check_k(k: Any, name: str) -> int:
    """A cut-off as an int of at least 1."""
    number = whole_number(k)
    if number is None:
        raise MetricError(f"{name} must be a whole number, found {shown(k)}")
    if not 1 <= number <= MAX_K:
        raise MetricError(f"{name} must be from 1 to {MAX_K}, found {shown(k)}")
    return number


def expand(
    metrics: str | Call | Iterable[str | Call] | None,
    k: int | Iterable[int] | None = None,
    default: tuple[str, ...] | None = None,
) -> list[Call]:
    """The calls that `metrics` and `k` ask for, each once: every metric without a cut-off of its own, at every k."""
    usual_k = [DEFAULT_K] if metrics is None and k is None else []
    if metrics is None:
        metrics = default or DEFAULT_METRICS
    if isinstance(metrics, (str, Call)):
        metrics = [metrics]
    if not isinstance(metrics, Iterable):
        raise InputTypeError(f"metrics must be texts such as 'ndcg@10', found {shown(metrics)}")
    calls = [metric if isinstance(metric, Call) else parse(metric) for metric in listed_in_order(metrics, "metrics")]
    if not calls:
        raise MetricError("metrics must name at least one metric")
    cutoffs = usual_k or read_cutoffs(k, calls)
    return list({own.text: own for call in calls for own in call.at(cutoffs)}.values())


def read_cutoffs(k: int | Iterable[int] | None, calls: Sequence[Call]) -> list[int]:
    """Check the cut-offs of a call and return them. At least one of its metrics must take them."""
    if k is None:
        return []
    cutoffs = [check_k(value, "k") for value in _as_list(k)]
    if not cutoffs:
        raise MetricError("k must hold at least one cut-off")
    if not any(call.takes_cutoff for call in calls):
        with_own = next((call.text for call in calls if call.k is not None), None)
        why = "no metric here takes a cut-off" if with_own is None else f"{with_own} has a cut-off of its own"
        raise MetricError(f"k={cutoffs[0]} has no effect: {why}; leave out one of them")
    return cutoffs


def _as_list(k: Any) -> list[Any]:
    scalar = isinstance(k, str | bytes | bytearray) or not isinstance(k, Iterable) or getattr(k, "ndim", 1) == 0
    return [k] if scalar else listed_in_order(k, "k")


def catalogue() -> list[dict[str, Any]]:
    """Every metric as data: name, summary, formula, options, range, direction, source.

    "direction" says which values are better: "higher", "lower", "target" (those nearer to the number "target", which
    else is None) or "none". "higher_is_better" is True for "higher", False for "lower" and None for the others.
    "range" is (low, high), where None is no bound.

    >>> [metric["name"] for metric in fastrec.catalogue()][:3]
    ['hits', 'hit_rate', 'precision']
    """
    return [
        {
            "name": metric.name,
            "kind": metric.kind,
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
    kinds += [] if option.kind is None else ["table" if option.kind == TABLE else "number"]
    return {
        "default": option.default,
        "required": option.required,
        "choices": list(option.choices),
        "kind": " or ".join(kinds),
    }
