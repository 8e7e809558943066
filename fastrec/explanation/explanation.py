"""Why a tool's number is another: definitions side by side, and on data what each difference does to the mean."""

from __future__ import annotations

import functools
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from fastrec._version import __version__
from fastrec.api import evaluate, evaluate_scores
from fastrec.checks import listed, whole_number
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError, MetricError, one_line, shown
from fastrec.metrics.declaration import Call, MinGain, make_call, parse, print_value
from fastrec.metrics.recipes import DEFAULT_POLICIES, RECIPES, Recipe, find_recipe
from fastrec.report.archive import dump_json
from fastrec.report.estimates import Estimate
from fastrec.report.plain import aligned, plain_data
from fastrec.report.report import Report, is_plain_mean
from fastrec.show.html import Table, as_html, as_markdown, markdown_text
from fastrec.show.views import one_figure, warning_lines

__all__ = ["Explanation", "Side", "UserDifference", "explain", "explain_scores"]

Array = np.ndarray[Any, Any]
OURS = "fastrec"
USERS_SHOWN = 5  # per tool, where tools are named
TOLERANCE = 1e-12  # of values that are the same: equal formulas may round differently
SMALL = 5e-5  # what four decimals would hide
DASH = "–"
POLICIES = ("no_truth", "no_recs")  # that a metric may have of its own


class UserDifference(NamedTuple):
    """A user with another value there than here.

    user : its id, or its position where users have no ids.
    ours, theirs : the values; NaN where the user was not counted.
    moved : by how much this user moves the mean from ours to theirs; over all users these add up to the difference of
        the means. NaN where the number is no mean of users' values, as in a pooled metric.
    """

    user: Any
    ours: float
    theirs: float
    moved: float


@dataclass(frozen=True)
class Side:
    """One tool's meaning of a metric; `fastrec` is a side too, the first.

    tool : as in ``like=``.
    version : that the recipe was compared with.
    name : what the metric is called there.
    metric : what that is here, with the options in which it differs from our default.
    options : everything that decides its value: {option: text}, policies of the call included.
    notes : what else is to be known of the tool.
    estimate : its number on the data; None without data, or where there is none.
    problem : why there is no number.
    steps : {option: what the mean gains when it becomes theirs}, those before it being theirs already: together they
        are the whole difference. NaN where that cannot be had, then the next step holds both.
    n_different : how many users have another value, or are counted on one side only.
    users : those of them that move the mean most, largest first.
    """

    tool: str
    version: str
    name: str
    metric: str
    options: Mapping[str, str]
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    problem: str = ""
    steps: Mapping[str, float] = field(default_factory=dict)
    n_different: int = 0
    users: tuple[UserDifference, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A metric as several tools mean it, side by side; `explain` makes it.

    metric : ours, canonical.
    sides : {tool: Side}, ours first.
    absent : {tool: why it has no such metric}, where all tools were asked.
    warnings : each reason to doubt the numbers, as in `Report`; empty without data.
    brief : whether the text form leaves out what is to be known of each tool, as where all were asked.

    Examples
    --------
    >>> why = fastrec.explain("ndcg@3", like="rectools")
    >>> why.differing
    ['gain', 'ideal', 'min_gain', 'ties']
    >>> why.sides["rectools"].metric
    'ndcg(gain=binary, ideal=k)@3'
    """

    metric: str
    sides: Mapping[str, Side]
    absent: Mapping[str, str]
    brief: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def ours(self) -> Side:
        """The side of fastrec."""
        return self.sides[OURS]

    @property
    def differing(self) -> list[str]:
        """The options that are not the same on all sides that have them."""
        return [name for name, values in self._options() if len(values) > 1]

    @property
    def same(self) -> dict[str, str]:
        """The options that are: {option: value}."""
        return {name: values.pop() for name, values in self._options() if len(values) == 1}

    def _options(self) -> Iterator[tuple[str, set[str]]]:
        sides = self.sides.values()
        names = dict.fromkeys(name for side in sides for name in side.options)
        return ((name, {side.options[name] for side in sides if name in side.options}) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON can hold; NaN is None.

        >>> fastrec.explain("ndcg@3", like="rectools").to_dict()["differing"]
        ['gain', 'ideal', 'min_gain', 'ties']
        """
        sides = {
            tool: side.__dict__
            | {"users": [user._asdict() for user in side.users], "notes": list(side.notes)}
            | {"options": dict(side.options), "steps": dict(side.steps)}
            for tool, side in self.sides.items()
        }
        document = {"schema": 1, "fastrec": __version__, "metric": self.metric, "differing": self.differing}
        rest = {"same": self.same, "sides": sides, "absent": dict(self.absent), "warnings": self.warnings}
        found: dict[str, Any] = plain_data({**document, **rest})
        return found

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as strict JSON text; floats keep all their digits."""
        return dump_json(self.to_dict(), indent=indent)

    def tables(self) -> list[Table]:
        """What people are shown, as tables of texts: definitions, then numbers and users where there are data."""
        found = [self._definitions()]
        if self.ours.estimate is not None:
            found.append(self._numbers(self.ours.estimate.mean))
            if any(side.steps for side in self.sides.values()):
                found.append(self._steps())
            found += [self._users_of(side) for side in self.sides.values() if side.users]
        return found

    def _definitions(self) -> Table:
        names = self.differing
        rows = [[tool, *(self._option(side, name) for name in names)] for tool, side in self.sides.items()]
        same = [f"{name}={value}" for name, value in self.same.items() if name != "metric"]
        lines = [f"the same on all sides: {', '.join(same)}"] if same else []
        for tool, side in self.sides.items():
            if tool != OURS and not self.brief:
                lines += [f"{side.version} calls it {side.name}, here {side.metric}", *(f"  {n}" for n in side.notes)]
        lines += [f"{tool}: {why}" for tool, why in self.absent.items()]
        title = f"{self.metric} and what it is elsewhere (* differs from {OURS})"
        return Table(title, ["", *names], rows, len(names) + 1, lines)

    def _option(self, side: Side, name: str) -> str:
        value = side.options.get(name, "")
        return f"{value}*" if value and value != self.ours.options.get(name) else value

    def _numbers(self, mean: float) -> Table:
        rows, lines = [], []
        for tool, side in self.sides.items():
            if side.estimate is None:
                lines.append(f"{tool}: no number: {side.problem}")
                continue
            gap = "" if tool == OURS else _signed(side.estimate.mean - mean)
            rows.append([tool, one_figure(side.estimate.mean), gap, f"{side.estimate.users:,}"])
        lines += warning_lines(self.warnings)
        head = ["", "mean", "difference", "users"]
        if not any(side.estimate.users for side in self.sides.values() if side.estimate is not None):
            head, rows = head[:-1], [row[:-1] for row in rows]  # the rows belong to nobody
        return Table("On these data", head, rows, notes=lines)

    def _steps(self) -> Table:
        names = [name for name in self.differing if any(name in side.steps for side in self.sides.values())]
        rows = [
            [tool, *(_signed(side.steps[name]) if name in side.steps else "" for name in names)]
            for tool, side in self.sides.items()
            if side.steps
        ]
        return Table("The difference, option by option, from left to right", ["", *names], rows)

    def _users_of(self, side: Side) -> Table:
        moved = any(not math.isnan(user.moved) for user in side.users)
        rows = [
            [str(user.user), one_figure(user.ours), one_figure(user.theirs), *([f"{user.moved:+.2e}"] if moved else [])]
            for user in side.users
        ]
        title = f"{side.tool}: the users that matter most, of {side.n_different:,} with another value"
        return Table(title, ["user", OURS, side.tool, *(["moves the mean by"] if moved else [])], rows)

    def to_markdown(self) -> str:
        """The tables as Markdown, each with its title and notes.

        >>> print(fastrec.explain("mrr@3", like="recbole").to_markdown().splitlines()[0])
        **mrr@3 and what it is elsewhere (* differs from fastrec)**
        """
        parts = (
            f"**{markdown_text(table.title)}**\n\n{as_markdown([table], map(str.strip, table.notes))}"
            for table in self.tables()
        )
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        """The tables as aligned text."""
        tables = ([one_line(t.title), *aligned(t.texts()), *map(_as_line, t.notes)] for t in self.tables())
        return "\n\n".join(map("\n".join, tables))

    def _repr_html_(self) -> str:
        """The tables as HTML for notebooks."""
        return "".join(as_html(t.texts(), t.notes, t.title) for t in self.tables())


def _as_line(note: str) -> str:
    """A note as one line, which keeps its indent."""
    return " " * (len(note) - len(note.lstrip(" "))) + one_line(note)


def explain(
    metric: str,
    recs: Any = None,
    truth: Any = None,
    *,
    like: str | Iterable[str] | None = None,
    n_users: int | None = None,
    **options: Any,
) -> Explanation:
    """Why other tools give another number for a metric of lists: their definitions beside ours, and where data tell.

    Parameters
    ----------
    metric : a text such as ``"ndcg@10"``, by our name or as one of the tools calls it
    recs, truth : as in `evaluate`; or paths of files, as in `evaluate_files`. Without them, definitions only.
    like : a tool, or several; by default all that have such a metric
    n_users : how many users to name per tool, those that move the mean most; by default 5 if ``like`` is given, else 0
    **options : any other argument of `evaluate`, or of `evaluate_files`; a policy that is given holds for all sides

    Returns
    -------
    Explanation
        Of every side the options, and on data its number, what each option that differs does to ours, and the users
        whose values differ. Data are evaluated once for each way to treat equal scores.

    Raises
    ------
    MetricError
        If no side knows the metric, or a tool that was named has none like it; it says what the tool has.
    InputError, InputTypeError
        As `evaluate`. A tool for which these data are undefined, such as one without an order of equal scores, has
        the reason in place of a number.

    Examples
    --------
    >>> recs, truth = [[1, 2, 3], [4, 5, 6]], [[1, 3], [6]]
    >>> fastrec.explain("ndcg@3", recs, truth, like="rectools", n_users=2)
    ndcg@3 and what it is elsewhere (* differs from fastrec)
                 gain  ideal  min_gain      ties
    fastrec    linear  truth   above 0  expected
    rectools  binary*     k*      any*    input*
    the same on all sides: discount=log2, no_truth=skip, no_recs=zero
    rectools 0.19.0 calls it ndcg@3, here ndcg(gain=binary, ideal=k)@3
      ndcg takes all k positions as relevant for every user: a perfect list need not reach 1
      ranks of data frames are places: one that no item has is a miss
    <BLANKLINE>
    On these data
                mean  difference  users
    fastrec   0.7099                  2
    rectools  0.4693     -0.2406      2
    <BLANKLINE>
    The difference, option by option, from left to right
              gain    ideal  min_gain  ties
    rectools     0  -0.2406         0     0
    <BLANKLINE>
    rectools: the users that matter most, of 2 with another value
    user  fastrec  rectools  moves the mean by
    1      0.5000    0.2346          -1.33e-01
    0      0.9197    0.7039          -1.08e-01
    """
    has_data = recs is not None
    if truth is not None and not has_data:
        raise InputTypeError("explain takes recs with truth, found truth alone")
    if isinstance(recs, str | os.PathLike):
        from fastrec.files.evaluate import evaluate_files

        run = functools.partial(evaluate_files, recs, truth)
        kind = "rows" if truth is None else "lists"
    else:
        run, kind = functools.partial(evaluate, recs, truth), "lists"
    return _explain(metric, like, n_users, run if has_data else None, kind if has_data else None, options)


def explain_scores(
    metric: str,
    labels: Any = None,
    scores: Any = None,
    indptr: Any = None,
    *,
    like: str | Iterable[str] | None = None,
    n_users: int | None = None,
    **options: Any,
) -> Explanation:
    """Why other tools give another number for a metric of scored rows; see `explain`.

    Parameters
    ----------
    metric, like, n_users : as in `explain`
    labels, scores, indptr : as in `evaluate_scores`
    **options : any other argument of `evaluate_scores`

    Examples
    --------
    >>> labels, scores, users = [1, 0, 1, 0, 0], [0.9, 0.8, 0.2, 0.4, 0.1], [7, 7, 7, 8, 8]
    >>> why = fastrec.explain_scores("gauc", labels, scores, user_ids=users, like="torchmetrics")
    >>> {tool: side.estimate.mean for tool, side in why.sides.items()}
    {'fastrec': 0.5, 'torchmetrics': 0.25}
    >>> why.sides["torchmetrics"].steps
    {'weight': 0.0, 'one_class': -0.25}
    """
    run = None if labels is None else functools.partial(evaluate_scores, labels, scores, indptr)
    return _explain(metric, like, n_users, run, "rows", options)


def _explain(
    metric: Any,
    like: str | Iterable[str] | None,
    n_users: int | None,
    evaluate_data: Callable[..., Report] | None,
    kind: str | None,
    options: dict[str, Any],
) -> Explanation:
    if not isinstance(metric, str):
        raise InputTypeError(f"explain takes one metric, a text such as 'ndcg@10', found {shown(metric)}")
    n_shown = _check_n_users(n_users, USERS_SHOWN if like is not None else 0)
    _refuse(options)
    known, absent = _meanings(metric, like, kind, options.get("min_gain"))
    sides = {tool: meaning.side(options) for tool, meaning in known.items()}
    warnings: tuple[str, ...] = ()
    if evaluate_data is not None:
        numbers = _Numbers(evaluate_data, options, known, sides)
        sides = {tool: numbers.complete(tool, n_shown) for tool in sides}
        warnings = numbers.warnings
    return Explanation(known[OURS].call.text, sides, absent, brief=like is None, warnings=warnings)


def _check_n_users(n_users: Any, default: int) -> int:
    if n_users is None:
        return default
    number = whole_number(n_users)
    if number is None or number < 0:
        raise InputError(f"n_users must be a whole number of at least 0, found {shown(n_users)}")
    return number


def _refuse(options: dict[str, Any]) -> None:
    """Arguments that explain gives itself, or that there are not."""
    from fastrec.files.evaluate import evaluate_files

    known = {
        name for call in (evaluate, evaluate_scores, evaluate_files) for name in inspect.signature(call).parameters
    }
    for name in ("metrics", "k", "per_user", *(name for name in options if name not in known)):
        if name in options:
            raise InputTypeError(f"explain takes no argument {name!r}; it explains one metric, such as 'ndcg@10'")


class _Meaning(NamedTuple):
    """What a tool means by the metric."""

    tool: str
    name: str
    call: Call
    kind: str  # of data: "lists" or "rows"
    recipe: Recipe | None = None

    def side(self, given: Mapping[str, Any]) -> Side:
        """The definition, without numbers."""
        version, notes = (__version__, ()) if self.recipe is None else (self.recipe.version, self.recipe.notes)
        return Side(self.tool, version, self.name, self.call.text, self.options(given), notes)

    def options(self, given: Mapping[str, Any]) -> dict[str, str]:
        """All that decides the value, as texts; what the call is given holds for all."""
        call = self.call
        found = {"metric": call.metric.name} | {name: _text(value) for name, value in call.options}
        if found.get("one_class") == "call":
            found["one_class"] = str(given.get("one_class", "drop"))
        if call.metric.needs != "targets":
            absent = "above 0" if call.metric.kind == "ranking" else "1"
            found["min_gain"] = _text(self.own_min_gain(given) or given.get("min_gain"), absent)
        if call.metric.kind == "ranking":
            policies = DEFAULT_POLICIES if self.recipe is None else self.recipe.policies
            found["ties"] = given.get("ties") or policies["ties"]
            for name in POLICIES if self.kind == "lists" else POLICIES[:1]:
                found[name] = getattr(call, name) or given.get(name) or policies[name]
        return found

    def own_min_gain(self, given: Mapping[str, Any]) -> MinGain | None:
        """The least gain of a relevant item, where it is that of the metric or of the tool and not of the call."""
        of_tool = None if self.recipe is None or self.kind == "rows" else self.recipe.min_gain
        return self.call.min_gain or (of_tool if given.get("min_gain") is None else None)


def _text(value: Any, absent: str = "none") -> str:
    return absent if value is None else print_value(value)


def _meanings(
    metric: str, like: str | Iterable[str] | None, kind: str | None, min_gain: MinGain | None
) -> tuple[dict[str, _Meaning], dict[str, str]]:
    """What each side means, ours first, and why some tools have no such metric."""
    if like is not None and not isinstance(like, Iterable):
        raise InputTypeError(f"like must be a tool such as 'trec_eval', or several, found {shown(like)}")
    named = [like] if isinstance(like, str) else None if like is None else listed(like, "like")
    recipes = list(RECIPES.values()) if named is None else [find_recipe(name) for name in named]
    kinds = ("lists", "rows") if kind is None else (kind,)
    if kind is None and _is_of_rows(metric):
        kinds = ("rows", "lists")
    found: dict[str, _Meaning] = {}
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
    sides = {OURS: _Meaning(OURS, ours.text, ours, "rows" if ours.metric.kind == "scores" else kinds[0])}
    sides |= {recipe.name: found[recipe.name] for recipe in recipes if recipe.name in found}
    return sides, {tool: str(error) for tool, error in why.items() if tool not in found}


def _is_of_rows(metric: str) -> bool:
    """Whether it is our name of a metric of scored rows."""
    try:
        return parse(metric).metric.kind == "scores"
    except MetricError:
        return False


def _find(recipe: Recipe, metric: str, kinds: Sequence[str], min_gain: MinGain | None) -> _Meaning:
    """What a tool means by a name, of the first of these kinds in which it has it."""
    errors = []
    for kind in kinds:
        try:
            ((name, call),) = recipe.translate(metric, None, kind, min_gain).items()
        except MetricError as error:
            errors.append(error)
        else:
            return _Meaning(recipe.name, name, call, kind, recipe)
    # What a tool has no metrics of says less than what it has.
    raise next((error for error, kind in zip(errors, kinds, strict=True) if getattr(recipe, kind)), errors[0])


def _find_ours(metric: str, theirs: list[Call], errors: list[MetricError]) -> Call:
    """Our metric of this name; of a name of theirs, our metric of this kind as it is by default."""
    try:
        return parse(metric)
    except MetricError as error:
        if theirs:
            return _default(theirs[0])
        raise (errors[0] if len(errors) == 1 else error) from None


def _default(call: Call) -> Call:
    """The metric with the options that it must be given only."""
    must = {name: value for name, value in call.options if call.metric.options[name].required}
    return make_call(call.metric, must, call.k)


class _Answer(NamedTuple):
    """What an evaluation gave for one metric."""

    estimate: Estimate
    values: Array  # of users, none where rows have no users


class _Numbers:
    """The numbers of all sides and of ours with one option of theirs, from one evaluation per policy for ties."""

    def __init__(
        self,
        evaluate_data: Callable[..., Report],
        options: dict[str, Any],
        meanings: Mapping[str, _Meaning],
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
        self._ours = cast(_Answer, self._answers[self._asked(OURS)])

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

    def _ask(self, ties: str | None, texts: list[str]) -> Iterator[tuple[str, _Answer | FastrecError]]:
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
            yield text, _Answer(report.estimates[text], report.per_user[text] if self._per_user else np.empty(0))

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

    def _users_that_differ(self, there: _Answer, n_users: int) -> tuple[int, tuple[UserDifference, ...]]:
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


def _signed(number: float) -> str:
    """A change for people; 0 only where there is none."""
    if math.isnan(number):
        return DASH
    return "0" if number == 0 else f"{number:+.4f}" if abs(number) >= SMALL else f"{number:+.0e}"
