"""Declaration of metrics (name, options, formula, source), and the table of declared metrics."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from fastrec.checks import MinGain, check_text, explain_formula, listed, listed_in_order, near_name, nearest
from fastrec.exceptions import FastrecError, InputTypeError, MetricError, shown
from fastrec.metrics.directions import Declared, Direction, read_direction
from fastrec.metrics.kinds import ABOVE_ZERO, COLUMN, KINDS, NUMBERS, SEPARATOR, TABLE
from fastrec.metrics.spelling import plain_spelling, print_value, read_value, split_outside_brackets, unquoted
from fastrec.policies import NO_RECS, NO_TRUTH, NoRecs
from fastrec.runtime.threads import once

Formula = typing.TypeVar("Formula", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """An option of a metric: its default and its allowed values."""

    name: str
    default: Any
    required: bool
    choices: tuple[str, ...]
    kind: str | None

    def check(self, value: Any, metric: str) -> Any:
        """Return the value in its canonical form, or raise an error that names the allowed values."""
        if not isinstance(value, (list, tuple)) and print_value(value) in self.choices:
            return print_value(value)  # the parser reads choices such as 0 and nan as numbers
        if self.kind == TABLE and isinstance(value, (list, tuple)):
            return self._check_table(value, metric)
        if self.kind in (COLUMN, SEPARATOR) and isinstance(value, str | float):
            return unquoted(print_value(value))  # the parser reads a column called 2024 as a number
        if self._allows(value):
            return float(value)
        kind = f"{TABLE}, {self._table_example}" if self.kind == TABLE else self.kind
        wanted = " or ".join([*self.choices, *([kind] if kind else [])])
        near = near_name(str(value), self.choices)
        hint = "" if near is None else f"; did you mean {near!r}?"
        if self.name == "of" and str(value) in DECLARED["lists"]:
            hint = f": {value} is not a sum over relevant items, so weights of these cannot correct it"
        raise MetricError(f"{metric}: {self.name}={print_value(value)} must be {wanted}{hint}")

    def _allows(self, value: Any) -> bool:
        allowed = NUMBERS.get(self.kind or "")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return allowed is not None and is_number and allowed(float(value))

    @property
    def _falls(self) -> bool:
        """Whether its table has the weights of ranks, which do not increase; others have the gains of grades."""
        return self.name == "discount"

    @property
    def _table_example(self) -> str:
        return "such as [1, 0.5] for ranks 1 and 2" if self._falls else "such as [0, 1] for grades 0 and 1"

    def _check_table(self, value: Iterable[Any], metric: str) -> tuple[float, ...]:
        try:
            table = tuple(float(number) for number in value)
        except (TypeError, ValueError):
            raise MetricError(f"{metric}: the table {self.name}={print_value(value)} must hold numbers") from None
        falling = self._falls
        steps = list(itertools.pairwise(table))
        if not table or not all(math.isfinite(number) and number >= 0 for number in table):
            raise MetricError(f"{metric}: the table {self.name}={print_value(value)} must hold finite numbers >= 0")
        if falling and any(a < b for a, b in steps):
            raise MetricError(f"{metric}: a discount table must not increase with the rank, found {print_value(value)}")
        if not falling and (table[0] != 0 or any(a > b for a, b in steps)):
            raise MetricError(
                f"{metric}: a gain table gives the gain of grades 0, 1, 2, ...; it must start with 0 and "
                f"not decrease, found {print_value(value)}"
            )
        return table


@dataclass(frozen=True, eq=False)
class Family:
    """A family of metrics: metrics of lists against truth, or of scored rows."""

    name: str
    kind: str  # in the catalogue
    usual: tuple[str, ...]  # the metrics of a call that names none
    options: tuple[Option, ...]  # of every metric; by default those of the call
    takes_cutoffs: bool
    needs_users: bool
    entry: str  # the call that takes the metrics, after the name of one
    example: str  # of a metric with a required option

    def __reduce__(self) -> Any:
        """Pickle the name: metrics are compared by their family."""
        return find_family, (self.name,)


LISTS = Family(
    name="lists",
    kind="ranking",
    usual=("ndcg", "recall", "precision", "map", "mrr", "hit_rate"),
    options=(
        Option("min_gain", None, required=False, choices=("any",), kind=ABOVE_ZERO),
        Option("no_truth", None, required=False, choices=tuple(NO_TRUTH.values), kind=None),
        Option("no_recs", None, required=False, choices=tuple(NO_RECS.values), kind=None),
        Option("mean", None, required=False, choices=("geometric",), kind=None),
    ),
    takes_cutoffs=True,
    needs_users=True,
    entry="takes lists and their truth: fastrec.evaluate(recs, truth, ...)",
    example="{metric}({option}=4)@10",
)
ROWS = Family(
    name="rows",
    kind="scores",
    usual=("auc", "gauc", "average_precision", "log_loss", "calibration", "ndcg"),
    options=(Option("min_gain", None, required=False, choices=(), kind=ABOVE_ZERO),),
    takes_cutoffs=False,
    needs_users=False,
    entry="takes scored, labelled rows: fastrec.evaluate_scores(labels, scores, ...)",
    example="{metric}({option}=0.5)",
)
FAMILIES = {family.name: family for family in (LISTS, ROWS)}


def find_family(name: str) -> Family:
    """Return the family of a name."""
    return FAMILIES[name]


COMMON_OPTIONS = tuple(option.name for option in LISTS.options)


@dataclass(frozen=True, eq=False)
class Metric:
    """A declared metric: a formula over the statistics of a user's list, or of a user's scored rows."""

    name: str
    formula: Callable[..., Any]
    range: tuple[float, float | None]
    expression: str
    source: str
    direction: Direction
    builtin: bool
    family: Family
    needs: frozenset[str] = frozenset()  # of labels, scores and users; see `Need`
    no_recs: str | None = None  # the policy of a call that gives none
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names -> the options that they imply

    @once
    def options(self) -> Mapping[str, Option]:
        """The options of its own by name: the keyword-only arguments of the formula."""
        return _options_of(self.formula)

    @property
    def common(self) -> tuple[Option, ...]:
        """The options that metrics of its family share; no gain makes a target relevant."""
        return () if "targets" in self.needs else self.family.options

    @property
    def limits(self) -> tuple[float, float]:
        """The range, with an infinity in place of None."""
        low, high = self.range
        return low, math.inf if high is None else high

    @property
    def is_good_at_zero(self) -> bool:
        """Whether 0 may be a good value: for errors, metrics with a target, and metrics that are never above 0."""
        high = self.range[1]
        return self.direction.kind in ("lower", "target") or (high is not None and high <= 0)

    @property
    def doc(self) -> str:
        """The formula's docstring."""
        return inspect.getdoc(self.formula) or ""

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.partition("\n")[0]


@dataclass(frozen=True)
class Call:
    """A metric with its options and cut-off, as parsed from `ndcg(gain=exp2)@10`."""

    metric: Metric
    options: tuple[tuple[str, Any], ...]
    k: int | None
    min_gain: MinGain | None = None  # if None, these three are those of the call
    no_truth: str | None = None
    no_recs: str | None = None
    mean: str | None = None  # or "geometric"

    @once
    def text(self) -> str:
        """The canonical string: without defaults, options in the order of the declaration."""
        given = [
            f"{name}={print_value(value)}" for name, value in self.options if value != self.metric.options[name].default
        ]
        own = ((option.name, getattr(self, option.name)) for option in self.metric.common)
        given += [f"{name}={print_value(value)}" for name, value in own if value is not None]
        options = f"({', '.join(given)})" if given else ""
        return f"{self.metric.name}{options}{'' if self.k is None else f'@{self.k}'}"

    @property
    def takes_cutoff(self) -> bool:
        """Whether the cut-offs of a call apply: the metric takes one, and has none of its own."""
        return self.k is None and self.metric.family.takes_cutoffs

    def at(self, cutoffs: Sequence[int]) -> list[Call]:
        """Return the metric at each cut-off; itself without cut-offs, or if it takes none."""
        return [replace(self, k=k) for k in cutoffs] if cutoffs and self.takes_cutoff else [self]

    @property
    def needs_users(self) -> bool:
        """Whether the metric needs rows that belong to users."""
        metric = self.metric
        return metric.family.needs_users or "users" in metric.needs or ("average", "user") in self.options

    def evaluate(self, statistics: Any) -> Any:
        """Return the formula's value for these statistics."""
        try:
            return self.metric.formula(statistics, **dict(self.options))
        except (AttributeError, TypeError, ValueError) as error:
            if self.metric.builtin or isinstance(error, FastrecError):
                raise
            raise MetricError(f"cannot be computed: {explain_formula(error, statistics)}") from error


DECLARED: dict[str, dict[str, Metric]] = {name: {} for name in FAMILIES}
"""The metrics of each family by name."""


class Changes:
    """Number of changes of the known metrics."""

    n = 0


Need = typing.Literal["classes", "probabilities", "targets", "users"]
"""Labels of 0 and 1; these and scores in [0, 1]; labels and scores of one unit; rows that belong to users."""
NEEDS = typing.get_args(Need)


def score_metric(
    *,
    range: tuple[float, float | None],  # noqa: A002 - the word of the field
    source: str = "",
    formula: str = "",
    needs: Need | Iterable[Need] = "classes",
    higher_is_better: bool | None = None,
    name: str | None = None,
    direction: Declared | None = None,
    aliases: Iterable[str] = (),
) -> Callable[[Formula], Formula]:
    """Declare a metric of scored, labelled rows.

    The decorated function takes the statistics of users' rows. It returns one value per user, by arithmetic on them:
    the metric is the mean over users with rows. Or it returns `s.ratio(a, b)`, the sum of a over the sum of b over all
    rows, or `s.mean(value, counted)`, the mean over the users for whom `counted` is 1. Its keyword-only arguments are
    the metric's options. Parsing, printing, `fastrec.catalogue()`, groups, weights and standard errors follow. 0 / 0
    is 0. Statistics, which are sums over the rows of a user: `rows`, `positives`, `negatives`, `twice_won`,
    `constant`, `score_sum`, `log_loss_sum`, `brier_sum`, `squares`, `absolutes`, `entropy`, `cells(threshold)` with
    `tp`, `fp` and `below`, `gaps(bins, strategy)`, `average_precision_sum(interpolation)`, `largest_distance`
    and others. The class that ``from fastrec.metrics.row_statistics import RowStatistics`` imports defines them.

    Parameters
    ----------
    range, source, formula, higher_is_better, name, aliases, direction
        As in `ranking_metric`.
    needs : "classes", "probabilities", "targets" or "users", or several
        Values that the metric needs. ``"classes"``: labels of 0 and 1, or a ``min_gain``. ``"probabilities"``: these,
        and scores from 0 to 1. ``"targets"``: finite scores in the unit of the labels. ``"users"``: rows of users.

    Raises
    ------
    MetricError
        As `ranking_metric`, or if ``needs`` has an unknown value.

    Examples
    --------
    >>> @fastrec.score_metric(range=(0, 1), needs="probabilities", source="our own")
    ... def confidence(s):
    ...     \"\"\"Mean score of a user's rows.\"\"\"
    ...     return s.score_sum / s.rows
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.5, 0.7, 0.4], [0, 2, 3], "confidence"
    ... )
    >>> report["confidence"]
    0.5
    """
    wanted = [needs] if isinstance(needs, str) else listed(needs, "needs")
    for need in wanted:
        if not isinstance(need, str) or need not in NEEDS:
            raise MetricError(f"needs must be {', '.join(NEEDS)}, or several of them, found {shown(need)}")
    how, all_of = (direction, higher_is_better), frozenset(wanted)
    return _declaration(ROWS, range, source=source, formula=formula, name=name, how=how, aliases=aliases, needs=all_of)


@overload
def ranking_metric(function: Formula, /) -> Formula: ...


@overload
def ranking_metric(
    *,
    range: tuple[float, float | None] = ...,
    source: str = ...,
    formula: str = ...,
    higher_is_better: bool | None = ...,
    name: str | None = ...,
    direction: Declared | None = ...,
    aliases: Iterable[str] = ...,
    no_recs: NoRecs | None = ...,
) -> Callable[[Formula], Formula]: ...


def ranking_metric(
    function: Formula | None = None,
    /,
    *,
    range: tuple[float, float | None] = (0, 1),  # noqa: A002 - the word of the field
    source: str = "",
    formula: str = "",
    higher_is_better: bool | None = None,
    name: str | None = None,
    direction: Declared | None = None,
    aliases: Iterable[str] = (),
    no_recs: NoRecs | None = None,
) -> Callable[[Formula], Formula] | Formula:
    """Declare a metric of lists against truth.

    The decorated function takes the statistics of users' lists and returns one value per user, by arithmetic on
    them. Its keyword-only arguments are the metric's options. Everything else follows: parsing, printing,
    `fastrec.catalogue()`, every cut-off, groups, weights, standard errors. 0 / 0 is 0. Statistics: `hits`, `k`,
    `n_rel`, `n_rec`, `n_items`, `within_k(row)`, `first_reciprocal`, `precision_sum`, `hits_at_n_rel`,
    `hit_sum(weight)`, `gain_sum(gain, weight)`, `ideal_sum(gain, weight, ideal)` and others. The class that
    ``from fastrec.metrics.statistics import ListStatistics`` imports defines them.

    Parameters
    ----------
    function : callable, optional
        The formula, as ``@fastrec.ranking_metric`` without arguments passes it.
    range : (low, high)
        Bounds of a user's value, by default 0 and 1; ``high`` may be None. fastrec checks the values of your metric
        against them.
    source : str
        Author, year, equation.
    formula : str
        For the catalogue; by default the function's name.
    higher_is_better : bool, optional
        False is ``direction="lower"``, True is ``direction="higher"``.
    name : str, optional
        By default the function's name.
    aliases : strings, optional
        Other names. An alias with options in brackets, as ``"map_cut(denominator=n_rel)"``, implies these options.
    direction : "higher", "lower", "none" or a number, optional
        Which values are better: higher ones (the default), lower ones, or values nearer to a number, the best value.
        ``"none"``: neither, as for a plain count; `compare` then gives no verdict.
    no_recs : str, optional
        The policy for users without a list where a call gives none; by default ``"zero"``, or ``"skip"`` for a metric
        that reads no truth.

    Raises
    ------
    MetricError
        If the name is not lower snake case, if the name or an alias equals another metric's (except for case and
        ``_``), or if an option, the range or the direction is not declared correctly.

    Examples
    --------
    >>> @fastrec.ranking_metric(range=(0, 1), source="our own")
    ... def misses(s):
    ...     \"\"\"Share of the first k that is not relevant.\"\"\"
    ...     return 1 - s.hits / s.k
    >>> fastrec.evaluate([[1, 2, 3, 4]], [[1]], ["misses@4"])["misses@4"]
    0.75
    """
    how = direction, higher_is_better
    if no_recs is not None:
        NO_RECS.check(no_recs)
    declare = _declaration(
        LISTS, range, source=source, formula=formula, name=name, how=how, aliases=aliases, no_recs=no_recs
    )
    if function is None:
        return declare
    if not callable(function):
        raise InputTypeError(f"range, source and so on are passed by name, found {shown(function)}")
    return declare(function)


def _declaration(
    family: Family,
    within: tuple[float, float | None],
    *,
    source: str,
    formula: str,
    name: str | None,
    how: tuple[Declared | None, bool | None],
    aliases: Iterable[str],
    needs: frozenset[str] = frozenset(),
    no_recs: str | None = None,
) -> Callable[[Formula], Formula]:
    """Return the decorator that declares a metric of a family; `how` is its direction in one of two ways."""
    try:
        low, high = (None if bound is None else float(bound) for bound in within)
    except (OverflowError, TypeError, ValueError):
        low = high = None
    if low is None or math.isnan(low) or (high is not None and not high >= low):
        raise MetricError(f"range must be (low, high), where high may be None; found {shown(within)}")
    direction = read_direction(*how, (low, high))

    def declare(function: Formula) -> Formula:
        metric = Metric(
            name=function.__name__ if name is None else check_text("name", name),
            formula=function,
            range=(low, high),
            expression=formula,
            source=source,
            direction=direction,
            builtin=str(function.__module__).startswith("fastrec.metrics."),
            family=family,
            needs=needs,
            no_recs=no_recs,
            aliases=_read_aliases(aliases),
        )
        if not metric.builtin:  # a test checks those of fastrec: here it would take a sixth of the time of all imports
            check_declaration(metric)
        DECLARED[family.name][metric.name] = metric
        forget_parsed()
        return function

    return declare


def _read_aliases(aliases: Iterable[str]) -> dict[str, str]:
    """Return other names of a metric, and the options that each implies."""
    if isinstance(aliases, str):  # iterating would yield its characters
        raise InputTypeError(
            f"aliases must be a list of strings, found the string {shown(aliases)}: write [{shown(aliases)}]"
        )
    found: dict[str, str] = {}
    for text in listed_in_order(aliases, "aliases"):
        match = re.fullmatch(r"([A-Za-z]\w*)(?:\((.*)\))?", check_text("aliases", text), re.ASCII)
        if match is None:
            raise MetricError(f"an alias must be a name, optionally with options in brackets, found {shown(text)}")
        twice = next((alias for alias in found if plain_spelling(alias) == plain_spelling(match[1])), None)
        if twice is not None:
            raise MetricError(f"aliases name {twice!r} twice, the second time as {shown(text)}")
        found[match[1]] = match[2] or ""
    return found


def check_declaration(metric: Metric) -> None:
    """Check that options of a metric and of its aliases are valid, and that no other metric has its name or an alias.

    Metrics of lists and of scored rows may share a name. A metric that is declared again replaces itself.
    """
    formula_options = metric.options
    if not re.fullmatch(r"[a-z][a-z0-9_]*", metric.name):
        raise MetricError(f"a metric's name must be lower snake case, found {metric.name!r}")
    others = known_metrics()
    if not metric.builtin and any(known.builtin and known.name == metric.name for known in others):
        raise MetricError(f"{metric.name!r} is a metric of fastrec: choose another name")
    taken: dict[str, str] = {}
    twin = next((known for known in others if known.name == metric.name and known.family is not metric.family), None)
    if not metric.builtin and twin is not None:
        raise MetricError(f"{metric.name!r} is already a metric of {twin.family.name}: choose another name")
    for known in others:
        if (known.name, known.family) != (metric.name, metric.family):
            taken |= {plain_spelling(alias): f"an alias of {known.name}" for alias in known.aliases}
        if known.name != metric.name:
            taken[plain_spelling(known.name)] = f"the metric {known.name}"
    if owner := taken.get(plain_spelling(metric.name)):
        raise MetricError(f"{metric.name!r} equals {owner}, except for case and '_': choose another name")
    taken[plain_spelling(metric.name)] = "the metric itself"
    for alias, options in metric.aliases.items():
        if owner := taken.get(plain_spelling(alias)):
            raise MetricError(f"the alias {alias!r} of {metric.name} is already {owner}: choose another")
        where = f"{alias}({options})"
        for name, value in read_options(options, metric, where).items():
            option = formula_options.get(name) or next(own for own in metric.common if own.name == name)
            option.check(value, f"the alias {where} of {metric.name}")


def _options_of(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the keyword-only arguments of a formula as options; their Literal types are the choices."""
    hints = typing.get_type_hints(function, include_extras=True)
    options = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or parameter.name in COMMON_OPTIONS:
            common = " or ".join(COMMON_OPTIONS)
            raise MetricError(
                f"{function.__name__}: the option {parameter.name!r} must be keyword-only, and not named {common}"
            )
        choices, kind = _allowed(hints.get(parameter.name))
        if (not choices and kind is None) or not all(isinstance(choice, str) for choice in choices):
            raise MetricError(f"{function.__name__}: annotate the option {parameter.name!r} with a Literal of strings")
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        default = float(default) if isinstance(default, int) else default
        option = Option(parameter.name, default, required, choices, kind)
        if not required and default is not None:
            try:
                option.check(default, function.__name__)
            except MetricError as error:
                raise MetricError(f"the default of the option {parameter.name!r} is not allowed: {error}") from None
        options[parameter.name] = option
    return options


def _allowed(hint: Any) -> tuple[tuple[str, ...], str | None]:
    """Return the choices and the kind of number that an annotation such as `Literal["log2"] | Table` allows."""
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint), None
    if typing.get_origin(hint) is typing.Annotated:
        kinds = [note for note in hint.__metadata__ if note in KINDS]
        return (), kinds[0] if kinds else None
    choices: tuple[str, ...] = ()
    kind = None
    for part in typing.get_args(hint):
        more, other = _allowed(part)
        choices += more
        kind = kind or other
    return choices, kind


def known_metrics() -> list[Metric]:
    """Return all declared metrics, metrics of lists first, in the order of declaration."""
    return [metric for declared in DECLARED.values() for metric in declared.values()]


def forget_parsed() -> None:
    """Forget all parsed strings, because metrics have changed."""
    Changes.n += 1


def read_options(inside: str, metric: Metric, text: str) -> dict[str, Any]:
    """Return the options in brackets by name; all must be options of the metric."""
    given: dict[str, Any] = {}
    if not inside.strip():
        return given
    for part in split_outside_brackets(inside, keep_empty=True):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        allowed = [*metric.options, *(option.name for option in metric.common)]
        if not equals or not value:
            raise MetricError(f"cannot read {part!r} in {text!r}: write options as name=value, separated by commas")
        if name not in allowed:
            raise MetricError(f"{metric.name} has no option {name!r}", nearest(name, allowed))
        if name in given:
            raise MetricError(f"the option {name} appears twice in {text!r}")
        given[name] = read_value(value)
    return given
