"""The numbers of both tools on the user's own data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError
from fastrec.explanation.explanation import OURS, POLICIES, Side, UserDifference
from fastrec.explanation.meanings import Meaning
from fastrec.report.estimates import Estimate
from fastrec.report.report import Report
from fastrec.report.values import is_plain_mean

__all__ = ["Numbers"]


Array = np.ndarray[Any, Any]
TOLERANCE = 1e-12  # of values that are the same: equal formulas may round differently


class Answer(NamedTuple):
    """What an evaluation gave for one metric."""

    estimate: Estimate
    values: Array  # of users, none where rows have no users


class Numbers:
    """The numbers of all sides and of ours with one option of theirs, from one evaluation per policy for ties."""

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
        self._data = ""
        self.warnings: tuple[str, ...] = ()
        self._has_gaps = False
        self._ways = {tool: self._way_to(tool) for tool in sides if tool != OURS}
        asked = [*map(self._asked, sides), *(step for way in self._ways.values() for step in way.values())]
        texts = {ties: [text for other, text in dict.fromkeys(asked) if other == ties] for ties, _ in asked}
        self._answers = {
            (ties, text): answer for ties, metrics in texts.items() for text, answer in self._ask(ties, metrics)
        }
        self._ours = cast(Answer, self._answers[self._asked(OURS)])

    def _asked(self, tool: str) -> tuple[str | None, str]:
        """The policy for ties and the metric, complete, that make a side."""
        options = self._sides[tool].options
        own: dict[str, Any] = {name: options[name] for name in POLICIES if name in options}
        own["min_gain"] = self._meanings[tool].own_min_gain(self._options)
        return options.get("ties"), replace(self._meanings[tool].call, **own).text

    def _way_to(self, tool: str) -> dict[str, tuple[str | None, str]]:
        """From our number to theirs, an option at a time: {option: (ties, metric) once it is theirs}."""
        ours, theirs = self._sides[OURS].options, self._sides[tool].options
        if ours["metric"] != theirs["metric"]:
            return {}
        own: dict[str, Any] = {name: ours[name] for name in POLICIES if name in ours}
        call, other = replace(self._meanings[OURS].call, **own), self._meanings[tool].call
        ties, found = ours.get("ties"), {}
        for name, value in theirs.items():
            if ours[name] == value:
                continue
            if name == "ties":
                ties = value
            elif name in POLICIES:
                changed: dict[str, Any] = {name: value}
                call = replace(call, **changed)
            elif name == "min_gain":
                call = replace(call, min_gain=self._meanings[tool].own_min_gain(self._options))
            else:
                options = dict(call.options) | {name: dict(other.options)[name]}
                call = replace(call, options=tuple(options.items()))
            found[name] = (ties, call.text)
        return found

    def _ask(self, ties: str | None, texts: list[str]) -> Iterator[tuple[str, Answer | FastrecError]]:
        """The answer to each; where some cannot be had, each on its own."""
        try:
            report = self._run(ties, texts)
        except (InputError, InputTypeError) as error:
            if self._users is None and self._may_lack_users():
                yield from self._ask(ties, texts)
                return
            if len(texts) == 1:
                yield texts[0], error
            else:
                for text in texts:
                    yield from self._ask(ties, [text])
            return
        self._check_same(report)
        for text in texts:
            yield text, Answer(report.estimates[text], report.per_user[text] if self._per_user else np.empty(0))

    def _may_lack_users(self) -> bool:
        """After a first failure: an error if ours fails too, since then the data are wrong; or rows have no users."""
        ties, ours = self._asked(OURS)
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
            if self._users is not None:  # said once
                warnings.simplefilter("ignore", FastrecWarning)
            return self._evaluate(metrics=texts, per_user=self._per_user, **options)

    def _check_same(self, report: Report) -> None:
        """Data that cannot be read again would give wrong numbers quietly."""
        ids = np.arange(report.users["total"]) if report.user_ids is None else report.user_ids
        if self._users is None:
            self._users, self._data = ids, str(report.data)  # as text: NaN is NaN
            self.warnings = tuple(report.warnings)
            self._has_gaps = bool(report.data.get("rec_lists_with_gaps"))
        if not np.array_equal(self._users, ids) or self._data != str(report.data):
            raise InputError(
                "the data were other ones when they were read again: explain needs data that can be read several times"
            )

    def complete(self, tool: str, n_users: int) -> Side:
        """The side with its numbers, and the users that matter most."""
        side, found = self._sides[tool], self._answers[self._asked(tool)]
        recipe = self._meanings[tool].recipe
        if self._has_gaps and recipe is not None and recipe.rank_gaps != "close":
            return replace(side, problem=f"ranks have gaps, which it does not close: evaluate with like={tool!r}")
        if isinstance(found, FastrecError):
            return replace(side, problem=str(found))
        if tool == OURS:
            return replace(side, estimate=found.estimate)
        n_different, users = self._users_that_differ(found, n_users)
        return replace(side, estimate=found.estimate, steps=self._steps(tool), n_different=n_different, users=users)

    def _steps(self, tool: str) -> dict[str, float]:
        """What each option does to the mean, after those before it; where one cannot be had, with the next."""
        steps, mean = {}, self._ours.estimate.mean
        for name, asked in self._ways[tool].items():
            found = self._answers[asked]
            if isinstance(found, FastrecError):
                steps[name] = math.nan
            else:
                steps[name], mean = found.estimate.mean - mean, found.estimate.mean
        return steps

    def _users_that_differ(self, there: Answer, n_users: int) -> tuple[int, tuple[UserDifference, ...]]:
        """How many users have another value or are counted on one side only, and those that move the mean most."""
        ours, theirs, mean = self._ours.values, there.values, self._ours.estimate.mean
        counted, counted_there = ~np.isnan(ours), ~np.isnan(theirs)
        # Who is counted on one side only is compared with our mean: so the shares add up to the whole difference.
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
