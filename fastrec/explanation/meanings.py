"""Meanings of a metric's name in fastrec and other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fastrec._version import __version__
from fastrec.checks import MinGain, listed, near_name
from fastrec.exceptions import InputTypeError, MetricError, shown
from fastrec.explanation.explanation import ARITHMETIC, OURS, POLICIES, Side
from fastrec.metrics.calls import make_call, parse, refuse_long
from fastrec.metrics.declaration import LISTS, ROWS, Call, known_metrics
from fastrec.metrics.plan import UNREAD, Asked, Plan, make_plan
from fastrec.metrics.recipe import DEFAULT_POLICIES, NoMetricError, Recipe
from fastrec.metrics.recipes import RECIPES, find_recipe
from fastrec.metrics.spelling import print_value
from fastrec.metrics.statistics import UnseenRule
from fastrec.policies import NO_FEATURES, NO_HISTORY


class Meaning(NamedTuple):
    """Meaning of a metric in one tool."""

    tool: str
    name: str
    call: Call
    kind: str  # of data: "lists" or "rows"
    recipe: Recipe | None = None

    def side(self, given: Mapping[str, Any], *, with_mean: bool) -> Side:
        """Return the side with the definition, without numbers. `with_mean`: other sides have another mean."""
        version, notes = __version__, list[str]()
        if self.recipe is not None:
            version, notes = self.recipe.version, self.recipe.notes_on(self.call.metric.name)
        mean = {"mean": self.call.mean or ARITHMETIC} if with_mean else {}
        return Side(self.tool, version, self.name, self.call.text, self.options(given) | mean, tuple(notes))

    def options(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return everything that decides the value, as strings; `given` arguments apply to all tools."""
        call = self.call
        found = {"metric": call.metric.name} | {name: _text(value) for name, value in call.options}
        if found.get("one_class") == "call":
            found["one_class"] = str(given.get("one_class", "drop"))
        plan = self._plan(given) if call.metric.family is LISTS and self.kind == "lists" else None
        for name, policy in () if plan is None else _usual_policies(plan):
            if found.get(name) == "none":
                found[name] = policy
        condition = None if plan is None else plan.conditions[call.text]
        reads_truth = condition is None or condition.no_truth != UNREAD
        if "targets" not in call.metric.needs and reads_truth:
            absent = "above 0" if call.metric.family is LISTS else "1"
            found["min_gain"] = _text(self.own_min_gain(given) or given.get("min_gain"), absent)
        if call.metric.family is LISTS:
            policies = DEFAULT_POLICIES if self.recipe is None else self.recipe.policies
            found["ties"] = given.get("ties") or policies["ties"]
            own = call if condition is None else condition
            for name in POLICIES if self.kind == "lists" else POLICIES[:1]:
                if name != "no_truth" or reads_truth:
                    found[name] = getattr(own, name) or given.get(name) or policies[name]
        return found

    def _plan(self, given: Mapping[str, Any]) -> Plan:
        """Return the plan of the metric; the size of the catalogue does not matter."""
        return make_plan((self.call,), Asked(n_items=1, no_recs_given=given.get("no_recs") is not None))

    def own_min_gain(self, given: Mapping[str, Any]) -> MinGain | None:
        """Return the smallest gain of a relevant item if the metric or the tool sets it, not the call."""
        of_tool = None if self.recipe is None or self.kind == "rows" else self.recipe.min_gain
        return self.call.min_gain or (of_tool if given.get("min_gain") is None else None)


def _usual_policies(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the policies of items that hold if the metric has no option of its own."""
    yield from ((policy.name, policy.default) for policy in (NO_HISTORY, NO_FEATURES))
    yield from (
        ("unseen", part.policy) for key in plan.provided for part in _parts(key) if isinstance(part, UnseenRule)
    )


def _parts(key: Any) -> Iterator[Any]:
    """Yield a key and all that is in it."""
    yield key
    for part in key if isinstance(key, tuple) else ():
        yield from _parts(part)


def _text(value: Any, absent: str = "none") -> str:
    return absent if value is None else print_value(value)


def meanings_of(
    metric: str, like: str | Iterable[str] | None, kind: str | None, min_gain: MinGain | None
) -> tuple[dict[str, Meaning], dict[str, MetricError]]:
    """Return the meaning on each side, ours first, and the error why some tools have no such metric."""
    if like is not None and not isinstance(like, Iterable):
        raise InputTypeError(f"like must be a tool such as 'trec_eval', or several, found {shown(like)}")
    if isinstance(metric, str):
        refuse_long(metric)  # here, not once by each tool
    named = [like] if isinstance(like, str) else None if like is None else listed(like, "like")
    recipes = list(RECIPES.values()) if named is None else [find_recipe(name) for name in named]
    kinds = ("lists", "rows") if kind is None else (kind,)
    if kind is None and _is_of_rows(metric):
        kinds = ("rows", "lists")
    found: dict[str, Meaning] = {}
    why: dict[str, MetricError] = {}
    for recipe in recipes:
        try:
            found[recipe.name] = _find(recipe, metric, kinds, min_gain)
        except MetricError as error:
            why[recipe.name] = error
    ours = _find_ours(metric, [meaning.call for meaning in found.values()], list(why.values()))
    for recipe in recipes:
        if recipe.name in found:
            continue
        try:
            found[recipe.name] = _find(recipe, _default(ours).text, kinds, min_gain)
        except MetricError as error:
            if named is not None:
                raise why[recipe.name] from error
    sides = {OURS: Meaning(OURS, ours.text, ours, "rows" if ours.metric.family is ROWS else kinds[0])}
    sides |= {recipe.name: found[recipe.name] for recipe in recipes if recipe.name in found}
    return sides, {tool: error for tool, error in why.items() if tool not in found}


def _is_of_rows(metric: str) -> bool:
    """Return whether a name is ours and of a metric of scored rows."""
    try:
        return parse(metric).metric.family is ROWS
    except MetricError:
        return False


def _find(recipe: Recipe, metric: str, kinds: Sequence[str], min_gain: MinGain | None) -> Meaning:
    """Return the meaning of a name in a tool, in the first of `kinds` where the tool has it."""
    errors = []
    for kind in kinds:
        try:
            ((name, call),) = recipe.translate(metric, None, kind, min_gain).items()
        except MetricError as error:
            errors.append(error)
        else:
            return Meaning(recipe.name, name, call, kind, recipe)
    # Prefer the error of a kind in which the tool has metrics: it says more.
    raise next((error for error, kind in zip(errors, kinds, strict=True) if getattr(recipe, kind)), errors[0])


def _find_ours(metric: str, theirs: list[Call], errors: list[MetricError]) -> Call:
    """Return our metric of this name; for a name of a tool, our metric with default options."""
    try:
        return parse(metric)
    except MetricError as error:
        if theirs:
            return _default(theirs[0])
        of_tool = len(errors) == 1 and not (isinstance(errors[0], NoMetricError) and _is_misspelt(metric, errors[0]))
        raise (errors[0] if of_tool else error) from None


def _is_misspelt(metric: str, error: NoMetricError) -> bool:
    """Return whether a name is like one of ours, and like none of the tool."""
    base = re.split(r"[(@\s]", metric.strip(), maxsplit=1)[0]
    return not error.has_near and near_name(base, [known.name for known in known_metrics()]) is not None


def _default(call: Call) -> Call:
    """Return the metric with required options only."""
    must = {name: value for name, value in call.options if call.metric.options[name].required}
    return make_call(call.metric, must, call.k)
