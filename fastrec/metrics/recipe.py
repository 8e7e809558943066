"""Conventions of another tool as data: names of metrics, our equivalents, and the treatment of users and ties."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec.checks import listed_in_order, near_name, nearest
from fastrec.exceptions import Argument, InputTypeError, MetricError, cut_value, shown
from fastrec.metrics.calls import DEFAULT_K, parse, read_cutoffs, read_k, refuse_long
from fastrec.metrics.declaration import FAMILIES, Call
from fastrec.policies import DUPLICATES, NO_RECS, NO_TRUTH, TIES

Array = np.ndarray[Any, Any]
WORDS = {"lists": "lists", "rows": "scored rows"}
FORMS = {"lists": "", "rows": " (one log of labels and scores)"}
NUMBER = re.compile(r"\{(\w+)\}")  # that is part of a name
ABOVE_0 = 5e-324  # as min_gain: the smallest number above 0
DEFAULT_POLICIES = {policy.name: policy.default for policy in (TIES, NO_TRUTH, NO_RECS, DUPLICATES)}


class NoMetricError(MetricError):
    """Error that says no more than that a tool lacks a metric; `has_near`: it has one with a similar name."""

    has_near = False


class Limit(NamedTuple):
    """Input on which metrics of a tool have other numbers than here, or none: the call warns of it."""

    metrics: str  # our names, a regular expression; options may follow
    of: Literal["scores", "gains", "lengths", "ties", "judged", "relevant", "level", "values"]  # see `Recipe.warnings`
    outside: Callable[[Array], Any]  # which of these numbers are outside the limit
    why: str


def _are_extreme(scores: Array) -> Array:
    least = max(np.finfo(scores.dtype).eps if scores.dtype.kind == "f" else 0, 1e-15)
    return (scores < least) | (scores > 1 - least)


_CLIPS = "it takes probabilities as at least 1e-15 from 0 and 1; here it is the machine epsilon of their dtype"
EXTREME_SCORES = Limit("log_loss", "scores", _are_extreme, _CLIPS)


@dataclass(frozen=True, eq=False)
class Recipe:
    """The conventions of one tool."""

    name: str
    tool: str  # as its authors spell it
    version: str  # that the recipe was compared with
    lists: Mapping[str, str]  # its metrics of lists -> ours; {k} is a cut-off in a name, {t} a number in both
    rows: Mapping[str, str]  # its metrics of scored rows -> ours
    ties: str = "input"
    no_truth: str = "skip"
    no_recs: str = "zero"
    ordered_by: Literal["rank", "score"] = "rank"  # the column that orders lists in a frame or file with both
    rank_gaps: Literal["close", "keep", "error"] = "close"  # "keep" if ranks of frames are places, including gaps
    ties_of_strings: bool = False  # whether its rule for ties orders items as strings
    min_gain: float | Literal["any"] | None = None  # of lists: "any" if it counts each row of the truth as relevant
    tolerance: float = 1e-9  # of its numbers: some tools compute in float32, some print few digits
    aliases: tuple[str, ...] = ()
    above_0: frozenset[str] = frozenset()  # its metrics that count any gain above 0, whatever the min_gain of a call
    limits: tuple[Limit, ...] = ()  # of what its metrics take
    declined: Mapping[str, str] = field(default_factory=dict)  # its metrics that fastrec cannot reproduce -> why
    spelled: Mapping[str, str] = field(default_factory=dict)  # its own names of metrics -> their names here
    sets: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # its names of several metrics -> their names here
    lacking: str = ""  # its own names of metrics that fastrec does not have yet; * stands for anything
    notes: tuple[str, ...] = ()  # about all its metrics
    notes_of: Mapping[str, str] = field(
        default_factory=dict
    )  # our names of metrics -> what to know about their numbers

    @property
    def policies(self) -> dict[str, str]:
        """Its treatment of ties, users and duplicates, unless a call sets another."""
        return {"ties": self.ties, "no_truth": self.no_truth, "no_recs": self.no_recs, "duplicates": "error"}

    def warnings(self, calls: Sequence[Call], ties: str, numbers: Mapping[str, Callable[[], Array]]) -> Iterator[str]:
        """Yield a warning for each limit of some metrics that numbers are outside of, with the `ties` of the call.

        `numbers` may have the scores; the gains or labels; the lengths of users' rows, of lists with ties (`ties`), of
        the truth of users with a list (`judged`); the largest relevant gain of such users, or 0 (`relevant`, and
        `level` if the call has a `min_gain`); and the values of these metrics.
        """
        for limit in self.limits:
            if limit.of not in numbers or (limit.of == "ties" and ties != self.ties):
                continue
            pattern = rf"(?:{limit.metrics})(?:\(.*\))?(?:@.*)?"
            own = [nth for nth, call in enumerate(calls) if re.fullmatch(pattern, call.text)]
            if own and np.any(limit.outside(numbers[limit.of]()[own if limit.of == "values" else ...])):
                yield f"the number of {self.tool} may be another: {limit.why}"

    def notes_on(self, metric: str) -> list[str]:
        """Return what to know about the number of one of our metrics, by its name without options."""
        return [*(note for names, note in self.notes_of.items() if metric in names.split()), *self.notes]

    def meaning(self, text: str, kind: str) -> str | None:
        """Return our name of a metric of this tool in any spelling, on "lists" or on "rows"; None if it has none."""
        known = self.lists if kind == "lists" else self.rows
        for name, theirs in [*self.spelled.items(), *zip(known, known, strict=True)]:
            if theirs in known and (_matches(name, text) or _is_form_of(name, text)):
                return known[theirs].partition("(")[0]
        return None

    def translate(
        self, metrics: str | Iterable[str] | None, k: Any, kind: str, min_gain: Any = None
    ) -> dict[str, Call]:
        """Return our equivalents of metrics of this tool, on "lists" or on "rows": {name with cut-off: metric}.

        `min_gain` is that of the call; some metrics of the tool ignore it.
        """
        known = self.lists if kind == "lists" else self.rows
        if not known:
            raise self._why_none(metrics, kind)
        usual_k = [DEFAULT_K] if metrics is None and k is None else []
        if metrics is None:
            metrics = [name for name in FAMILIES[kind].usual if name in known]
        if isinstance(metrics, str):
            metrics = [metrics]
        if not isinstance(metrics, Iterable):
            raise InputTypeError(f"metrics must be strings such as 'ndcg@10', found {shown(metrics)}")
        asked: dict[str, Call] = {}
        for text in self._members(listed_in_order(metrics, "metrics"), kind):
            refuse_long(text)
            call = _find(self, text, kind)
            if min_gain is not None and call.min_gain is not None:
                raise MetricError(
                    Argument("like", (self.name,)),
                    f" asks for {call.text}, so ",
                    Argument("min_gain", (min_gain,)),
                    " cannot apply: leave it out",
                )
            if min_gain is not None and any(_matches(name, text) for name in self.above_0):
                call = replace(call, min_gain=ABOVE_0)
            asked[text] = call
        if not asked:
            raise MetricError("metrics must name at least one metric")
        cutoffs = usual_k or read_cutoffs(k, list(asked.values()))
        found = {
            text if own.k == call.k else f"{text}@{own.k}": own
            for text, call in asked.items()
            for own in call.at(cutoffs)
        }
        texts = {call.text: call for call in found.values()}
        for name, call in found.items():
            if texts.get(name, call) != call:
                raise MetricError(
                    f"{name} of {self.tool} is {call.text} here, but {name} is also another requested metric: "
                    "ask for one of them at a time"
                )
        return found

    def _why_none(self, metrics: Any, kind: str) -> MetricError:
        """Return the error of a tool without any metric of this kind."""
        other = "rows" if kind == "lists" else "lists"
        if isinstance(metrics, str) and _is_of(metrics, getattr(self, other)):
            return MetricError(f"{cut_value(metrics)} of {self.tool} is a metric of {WORDS[other]}{FORMS[other]}")
        only = f", only of {WORDS[other]}{FORMS[other]}" if getattr(self, other) else ""
        return NoMetricError(f"{self.tool} has no metrics of {WORDS[kind]}{only}")

    def _members(self, metrics: Iterable[Any], kind: str) -> Iterator[str]:
        """Yield the names of metrics, for a name of several of them each of these."""
        for text in metrics:
            if not isinstance(text, str):
                raise MetricError(f"a metric of {self.tool} must be a string such as 'ndcg@10', found {shown(text)}")
            yield from self.sets.get(text.strip(), (text,)) if kind == "lists" else (text,)


def _is_of(text: str, known: Iterable[str]) -> bool:
    """Return whether a string is a metric of these, perhaps in another form."""
    return any(_matches(name, text) or _is_form_of(name, text) for name in known)


@functools.lru_cache(maxsize=4096)
def _find(recipe: Recipe, text: str, kind: str) -> Call:
    """Return our equivalent of a metric of a tool, on lists or on rows."""
    known = recipe.lists if kind == "lists" else recipe.rows
    for name, ours in known.items():
        if (found := _matches(name, text)) is None:
            continue
        numbers = found.groupdict()
        call = parse(
            "".join(part if not nth % 2 else str(numbers[part]) for nth, part in enumerate(NUMBER.split(ours)))
        )
        if numbers["k"] is None or call.metric.family.takes_cutoffs:
            return replace(call, k=read_k(numbers["k"], text))
    raise _why_not(recipe, text, kind)


def _why_not(recipe: Recipe, text: str, kind: str) -> MetricError:
    """Return the error that says why a string names no metric of a tool on lists or on rows."""
    other = "rows" if kind == "lists" else "lists"
    known, others = getattr(recipe, kind), getattr(recipe, other)
    asked = cut_value(text)
    for name, why in recipe.declined.items():
        if _matches(name, text) or _is_form_of(name, text):
            return MetricError(f"fastrec cannot reproduce {asked} of {recipe.tool}: {why}")
    base, mark, cutoff = "".join(text.split()).partition("@")
    for name, ours in [*recipe.spelled.items(), *zip(known, known, strict=True)]:
        if _is_form_of(name, text) and "(" not in text and base != ours:
            spelling = f"{ours}{mark}{cut_value(cutoff)}" if "{k}" not in ours else ours
            return MetricError(f"{asked} of {recipe.tool} is called {spelling!r} here")
    if _is_of(text, others):
        return MetricError(f"{asked} of {recipe.tool} is a metric of {WORDS[other]}")
    if any(_is_form_of(name, text) for name in recipe.lacking.split()):
        return MetricError(f"fastrec does not have {asked} of {recipe.tool} yet")
    error = NoMetricError(f"{recipe.tool} has no metric {shown(text)}{nearest(base, list(known))}")
    error.has_near = near_name(base, known) is not None
    return error


def sample_of(ours: str) -> Call:
    """Return our equivalent of a metric of a tool, with some numbers in place of those that its name has."""
    return parse(NUMBER.sub("0.5", ours))


def _matches(name: str, text: str) -> re.Match[str] | None:
    """Match a string with a name of a tool, its numbers, and its cut-off, which is at `{k}` or may follow."""
    return _pattern(name).fullmatch("".join(text.split()))


@functools.cache
def _pattern(name: str) -> re.Pattern[str]:
    before, *pairs = NUMBER.split("".join(name.split()))
    pattern = re.escape(before)
    for number, after in zip(pairs[::2], pairs[1::2], strict=True):
        digits = "[0-9]+" if number == "k" else r"[0-9]+(?:\.[0-9]+)?"
        pattern += f"(?P<{number}>{digits}){re.escape(after)}"
    return re.compile(pattern if "k" in pairs[::2] else f"{pattern}(?:@(?P<k>.+))?")


def _is_form_of(name: str, text: str) -> bool:
    """Return whether a string spells a name differently, with any options: NDCGAt and ndcg_score(k=5) for ndcg."""
    plain = re.sub(r"\(.*|@.*|\s", "", text)
    return any(fnmatchcase(_folded(one), _folded(name)) for one in (plain, _without_cutoff(plain)))


def _without_cutoff(name: str) -> str:
    """Return a name without a cut-off at its end, such as _5 or .5; a regular expression would take quadratic time."""
    rest = name.rstrip("0123456789.")
    numbers = name[len(rest) :]
    if numbers and rest.endswith("_"):
        return rest[:-1]
    dot = numbers.find(".")
    return rest + numbers[:dot] if 0 <= dot < len(numbers) - 1 else name


def _folded(name: str) -> str:
    """Return a name without the parts in which spellings differ."""
    return re.sub("(?<=.)(atk|at|score)$", "", re.sub("[-_]", "", name).lower())
