"""Metrics that are a plain Python function of one user's list."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from fastrec.checks import is_number
from fastrec.exceptions import InputTypeError, MetricError, shown
from fastrec.inputs.ids import spell
from fastrec.metrics.declaration import DECLARED, ranking_metric
from fastrec.metrics.directions import Declared
from fastrec.metrics.providers import is_relevant, provider

if TYPE_CHECKING:
    from fastrec.items.listed import ListsAndTruth

Array = np.ndarray[Any, Any]
Formula = TypeVar("Formula", bound=Callable[..., Any])
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@overload
def list_metric(function: Formula, /) -> Formula: ...


@overload
def list_metric(
    *,
    range: tuple[float, float | None] = ...,
    source: str = ...,
    higher_is_better: bool | None = ...,
    name: str | None = ...,
    direction: Declared | None = ...,
) -> Callable[[Formula], Formula]: ...


def list_metric(
    function: Formula | None = None,
    /,
    *,
    range: tuple[float, float | None] = (0, 1),  # noqa: A002 - the word of the field
    source: str = "",
    higher_is_better: bool | None = None,
    name: str | None = None,
    direction: Declared | None = None,
) -> Callable[[Formula], Formula] | Formula:
    """Declare a metric that is a plain Python function of one user's list and truth.

    The decorated function takes ``items``, a list of the first k ids, best first, and ``gains``, a dictionary with the
    gain of each relevant item. It returns a number; the metric is the mean over users. A function of ``items`` alone
    needs no truth. Keyword-only arguments, annotated with a ``Literal`` of strings, are the metric's options.

    This is slow: Python calls the function once per user and cut-off, so a million users take half a minute, where
    `ranking_metric` takes a fraction of a second. It is not called for users without items, nor, if it takes gains, for
    those without a relevant item: where the policies ``no_recs`` and ``no_truth`` count them, their value is 0. Equal
    scores are an error under ``ties="expected"``. With ``duplicates="miss"`` a repeated item is None.

    Parameters
    ----------
    function : callable, optional
        As ``@fastrec.list_metric`` without arguments passes it.
    range, source, higher_is_better, name, direction
        As in `ranking_metric`.

    Raises
    ------
    MetricError
        As `ranking_metric`. In an evaluation: if the function raises an error, or returns no finite number; the message
        names the user.

    Examples
    --------
    >>> @fastrec.list_metric
    ... def first_and_last(items, gains):
    ...     \"\"\"Whether both ends of the list are relevant.\"\"\"
    ...     return items[0] in gains and items[-1] in gains
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3], [4, 5, 6]], [[1, 3], [4]], ["first_and_last@3"]
    ... )
    >>> report["first_and_last@3"]
    0.5
    """

    def declare(own: Formula) -> Formula:
        formula = _Formula(own, name)
        ranking_metric(range=range, source=source, higher_is_better=higher_is_better, name=name, direction=direction)(
            formula
        )
        provider(formula.known, sides=("recs", "truth")[: formula.n_inputs])(formula.fill)
        return own

    if function is None:
        return declare
    if not callable(function):
        raise InputTypeError(f"range, source and so on are passed by name, found {shown(function)}")
    return declare(function)


class _Formula:
    """The formula of a list metric: what the provider of its name has filled by calling the function."""

    def __init__(self, function: Any, name: str | None) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            raise MetricError(f"a list metric must be a function of items and gains, found {shown(function)}") from None
        inputs = [parameter for parameter in parameters if parameter.kind in BY_POSITION]
        if len(inputs) not in (1, 2) or inputs[0].name == "gains":
            found = ", ".join(parameter.name for parameter in inputs) or "none"
            how = "options are keywords with the strings they may be, as in *, base: Literal['2', '10'] = '2'"
            raise MetricError(f"a list metric takes items, or items and gains, found the arguments: {found}; {how}")
        if name is None and not hasattr(function, "__name__"):
            raise MetricError(f"a list metric without a name of its own needs name=..., found {shown(function)}")
        functools.update_wrapper(self, function)
        options = parameters[len(inputs) :]
        hints = getattr(function, "__annotations__", {})
        self.__annotations__ = {own.name: hints[own.name] for own in options if own.name in hints}
        self.__signature__ = inspect.Signature([inputs[0], *options])
        self.function, self.n_inputs = function, len(inputs)
        self.known = f"list metric {function.__name__ if name is None else name}"

    def __call__(self, s: Any, /, **options: Any) -> Any:
        return s.provided(self.known, s.cutoff, *((s.min_gain,) if self.n_inputs > 1 else ()), *options.items())

    def __reduce__(self) -> Any:
        return _formula_of, (self.function,)

    def fill(self, sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
        """Fill the value of each user; keys are (cut-off, least gain if there are gains, options)."""
        names, recs, has_gains = sides.names, sides.recs, self.n_inputs > 1
        lists = _by_user(_spelled(names.strings, recs.items), recs.indptr)
        truth = sides.truth if has_gains else None
        gains_of = functools.cache(functools.partial(_gains_of_users, names.strings, truth))
        for nth, (k, *rest) in enumerate(keys):
            gains = [gains_of(rest[0])] if has_gains else []
            options = dict(rest[len(gains) :])
            for user, (items, *known) in enumerate(zip(lists, *gains, strict=True)):
                inputs = [items[:k], *map(dict, known)]  # copies, which the function may change
                out[nth, user] = _value(self.function, inputs, options, names, user) if all(inputs) else 0.0


def _formula_of(function: Callable[..., Any]) -> Any:
    """Return the declared formula of a function that was pickled: its import has declared it."""
    formulas = (metric.formula for metric in DECLARED["lists"].values())
    return next(own for own in formulas if isinstance(own, _Formula) and own.function is function)


def _gains_of_users(strings: Sequence[Any] | None, truth: Any, min_gain: float) -> list[dict[Any, float]]:
    """Return the gains of the relevant items of each user."""
    rows = zip(
        _spelled(strings, truth.items), truth.gains.tolist(), is_relevant(truth.gains, min_gain).tolist(), strict=True
    )
    return [{item: gain for item, gain, relevant in own if relevant} for own in _by_user(list(rows), truth.indptr)]


def _by_user(rows: list[Any], indptr: Array) -> list[list[Any]]:
    """Return the rows of each user."""
    return [rows[start:end] for start, end in itertools.pairwise(indptr.tolist())]


def _spelled(strings: Sequence[Any] | None, items: Array) -> list[Any]:
    """Return items as passed, None for places without one."""
    spelled = items.tolist() if strings is None else spell(strings, np.maximum(items, 0))
    return [None if item < 0 else own for item, own in zip(items.tolist(), spelled, strict=True)]


def _value(
    function: Callable[..., Any], inputs: Sequence[Any], options: dict[str, Any], names: Any, user: int
) -> float:
    """Return the value of a user; raise MetricError if the function does, or if the value is no finite number."""
    try:
        value = function(*inputs, **options)
    except Exception as error:
        raise MetricError(f"of user {names.user(user)} raises {shown(error)}") from error
    try:
        number = float(value) if isinstance(value, bool | np.bool_) or is_number(value) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MetricError(f"of user {names.user(user)} must be a finite number, found {shown(value)}")
    return number
