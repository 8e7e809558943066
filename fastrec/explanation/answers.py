"""The numbers of fastrec and other tools on given data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError
from fastrec.explanation.explanation import ARITHMETIC, OURS, POLICIES, Side, UserDifference
from fastrec.explanation.meanings import Meaning
from fastrec.report.estimates import Estimate
from fastrec.report.report import Report
from fastrec.report.values import is_plain_mean

Array = np.ndarray[Any, Any]
LISTS_BY_RANK = {"ordered_by": "rank", "rank_gaps": "close"}  # what fastrec does with ranks
TOLERANCE = 1e-12  # between equal values: equal formulas may round differently


class Answer(NamedTuple):
    """The estimate of a metric, and the values per user."""

    estimate: Estimate
    values: Array  # per user; empty if rows have no users


class ByRules(NamedTuple):
    """The answer of a call with `like`, and what of its treatment of ranks changed the lists."""

    answer: Answer | FastrecError
    options: Mapping[str, str]


class Numbers:
    """The numbers of all tools, and ours with options of theirs, from one evaluation per policy for ties.

    One more is that of a call with `like`, for each tool that may take these data in another way.
    """

    def __init__(
        self,
        evaluate_data: Callable[..., Report],
        options: dict[str, Any],
        meanings: Mapping[str, Meaning],
        sides: Mapping[str, Side],
    ) -> None:
        self._evaluate, self._options = evaluate_data, options
        self._meanings, self._sides = meanings, sides
        self._users: Array | None = None
        self._per_user = True
        self._data: dict[str, Any] = {}
        self.warnings: tuple[str, ...] = ()
        self._ranks: dict[str, int] = {}
        self._steps_of_tools = {tool: self._steps_to(tool) for tool in sides if tool != OURS}
        asked = [
            *map(self._request_of, sides),
            *(step for steps in self._steps_of_tools.values() for step in steps.values()),
        ]
        wanted = {ties: [metric for other, metric in dict.fromkeys(asked) if other == ties] for ties, _ in asked}
        self._answers = {
            (ties, metric): answer for ties, metrics in wanted.items() for metric, answer in self._answer(ties, metrics)
        }
        self._ours = cast(Answer, self._answers[self._request_of(OURS)])
        self._rules = {tool: found for tool in meanings if (found := self._answer_by_rules(tool))}
        asked_for = {name for found in self._rules.values() for name in found.options}
        self._more = {name: LISTS_BY_RANK[name] for name in LISTS_BY_RANK if name in asked_for}

    def _request_of(self, tool: str) -> tuple[str | None, str]:
        """Return the policy for ties and the complete metric of a tool."""
        options = self._sides[tool].options
        own: dict[str, Any] = {name: options[name] for name in POLICIES if name in options}
        if "min_gain" in options:
            own["min_gain"] = self._meanings[tool].own_min_gain(self._options)
        return options.get("ties"), replace(self._meanings[tool].call, **own).text

    def _steps_to(self, tool: str) -> dict[str, tuple[str | None, str]]:
        """Return the steps from our number to theirs: {option: (ties, metric) with all options up to it theirs}."""
        ours, theirs = self._sides[OURS].options, self._sides[tool].options
        if ours["metric"] != theirs["metric"]:
            return {}
        own: dict[str, Any] = {name: ours[name] for name in POLICIES if name in ours}
        call, other = replace(self._meanings[OURS].call, **own), self._meanings[tool].call
        ties, found = ours.get("ties"), {}
        for name in sorted(theirs, key=ours.__contains__):  # first what ours does not read: no step of its own
            value = theirs[name]
            if ours.get(name) == value:
                continue
            if name == "ties":
                ties = value
            elif name in POLICIES:
                changed: dict[str, Any] = {name: value}
                call = replace(call, **changed)
            elif name == "mean":
                call = replace(call, mean=None if value == ARITHMETIC else value)
            elif name == "min_gain":
                call = replace(call, min_gain=self._meanings[tool].own_min_gain(self._options))
            else:
                options = dict(call.options) | {name: dict(other.options)[name]}
                call = replace(call, options=tuple(options.items()))
            if name in ours:
                found[name] = (ties, call.text)
        return found

    def _answer(self, ties: str | None, texts: list[str]) -> Iterator[tuple[str, Answer | FastrecError]]:
        """Yield the answer for each metric. If evaluating all fails, evaluate each on its own."""
        try:
            report = self._run(ties, texts)
        except (InputError, InputTypeError) as error:
            if self._users is None and self._may_lack_users():
                yield from self._answer(ties, texts)
                return
            if len(texts) == 1:
                yield texts[0], error
            else:
                for text in texts:
                    yield from self._answer(ties, [text])
            return
        self._check_same(report)
        for text in texts:
            yield text, Answer(report.estimates[text], report.per_user[text] if self._per_user else np.empty(0))

    def _may_lack_users(self) -> bool:
        """Return whether rows have no users, after a first failure. Raise if our metric fails in any case."""
        ties, ours = self._request_of(OURS)
        try:
            self._run(ties, [ours])
        except (InputError, InputTypeError):
            self._per_user = False
            self._run(ties, [ours])
            return True
        return False

    def _run(self, ties: str | None, texts: list[str]) -> Report:
        options = self._options | ({} if ties is None else {"ties": ties})
        with warnings.catch_warnings():
            if self._users is not None:  # warn once
                warnings.simplefilter("ignore", FastrecWarning)
            return self._evaluate(metrics=texts, per_user=self._per_user, **options)

    def _check_same(self, report: Report) -> None:
        """Raise if the data changed: data that can be read only once would give wrong numbers silently."""
        ids = np.arange(report.users["total"]) if report.user_ids is None else report.user_ids
        if self._users is None:
            self._users, self._data = ids, dict(report.data)
            self.warnings = tuple(report.warnings)
            self._ranks = {name: int(report.data.get(name, 0)) for name in ("rec_rows_by_rank", "rec_lists_with_gaps")}
        counted_twice = self._data.keys() & report.data.keys()  # what a call counts depends on its metrics
        changed = any(repr(self._data[name]) != repr(report.data[name]) for name in counted_twice)  # NaN equals NaN
        if changed or not np.array_equal(self._users, ids):
            raise InputError("the data changed between two reads: explain needs data that can be read several times")

    def _answer_by_rules(self, tool: str) -> ByRules | None:
        """Return the answer of a call with `like`, if the tool may take these data in another way than its options."""
        recipe, name = self._meanings[tool].recipe, self._meanings[tool].name
        of_ranks = recipe is not None and (recipe.ordered_by == "score" or recipe.rank_gaps != "close")
        if recipe is None or not (recipe.limits or (of_ranks and self._ranks["rec_rows_by_rank"])):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FastrecWarning)
            try:
                report = self._evaluate(metrics=[name], like=tool, per_user=self._per_user, **self._options)
            except (InputError, InputTypeError) as error:  # a tool that orders by score may refuse ties
                return ByRules(error, {"ordered_by": "score"} if of_ranks and recipe.ordered_by == "score" else {})
        self.warnings += tuple(line for line in report.warnings if line not in self.warnings)
        (metric,) = report
        values = report.per_user[metric] if self._per_user else np.empty(0)
        options: dict[str, str] = {}
        if self._ranks["rec_rows_by_rank"] and report.data["rec_rows_by_score"]:
            options["ordered_by"] = recipe.ordered_by
        elif self._ranks["rec_lists_with_gaps"] and recipe.rank_gaps != "close":
            options["rank_gaps"] = recipe.rank_gaps
        return ByRules(Answer(report.estimates[metric], values), options)

    def complete(self, tool: str, n_users: int) -> Side:
        """Return the side of a tool with its numbers, and the users that move the mean most."""
        side, found = self._sides[tool], self._answers[self._request_of(tool)]
        rules = self._rules.get(tool)
        if self._meanings[tool].kind == "lists":
            side = replace(side, options={**side.options, **self._more, **({} if rules is None else rules.options)})
        if rules is not None:
            found = rules.answer
        if isinstance(found, FastrecError):
            return replace(side, problem=found.text if found.text == str(found) else str(found))
        if tool == OURS:
            return replace(side, estimate=found.estimate)
        n_different, users = self._users_that_differ(found, n_users)
        steps = self._steps(tool)
        if rules is not None and rules.options:
            here = self._answers[self._request_of(tool)]
            rest = math.nan if isinstance(here, FastrecError) else found.estimate.mean - here.estimate.mean
            steps |= {max(rules.options): rest}
        return replace(side, estimate=found.estimate, steps=steps, n_different=n_different, users=users)

    def _steps(self, tool: str) -> dict[str, float]:
        """Return the effect of each option on the mean, after those before it. NaN: the next step includes it."""
        steps, mean = {}, self._ours.estimate.mean
        for name, asked in self._steps_of_tools[tool].items():
            found = self._answers[asked]
            if isinstance(found, FastrecError):
                steps[name] = math.nan
            else:
                steps[name], mean = found.estimate.mean - mean, found.estimate.mean
        return steps

    def _users_that_differ(self, there: Answer, n_users: int) -> tuple[int, tuple[UserDifference, ...]]:
        """Return the number of users that differ in value or in being counted, and those that move the mean most."""
        ours, theirs, mean = self._ours.values, there.values, self._ours.estimate.mean
        counted, counted_there = ~np.isnan(ours), ~np.isnan(theirs)
        # Users counted on one side only are compared with our mean, so that the shares add up to the whole difference.
        gaps = np.where(counted_there, theirs, mean) - np.where(counted, ours, mean)
        different = np.flatnonzero((counted != counted_there) | (np.abs(gaps) > TOLERANCE))
        largest = different[np.argsort(-np.abs(gaps[different]), kind="stable")[:n_users]]
        means = all(is_plain_mean(each.values, each.estimate.mean) for each in (there, self._ours))
        n_there = counted_there.sum() if means and counted_there.any() else math.nan
        ids = np.arange(len(ours)) if self._users is None else self._users
        return len(different), tuple(
            UserDifference(ids[n : n + 1].tolist()[0], float(ours[n]), float(theirs[n]), float(gaps[n] / n_there))
            for n in largest
        )
