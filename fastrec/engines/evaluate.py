"""Evaluation of lists on engines that move packets of users between tasks of Python."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self, Unpack

from fastrec.arguments.calls import EngineListOptions
from fastrec.arguments.signature import takes
from fastrec.checks import with_article
from fastrec.engines.history import count_items, join_counts
from fastrec.engines.job import Job
from fastrec.engines.lists import plan_lists
from fastrec.engines.packets import Work, is_number, lists_of_tensors, plain_types
from fastrec.engines.side import EngineSide, check_partitions
from fastrec.evaluation.lists import Evaluator
from fastrec.exceptions import InputTypeError
from fastrec.inputs.history import HistoryCounts
from fastrec.report.report import Report
from fastrec.runtime.extras import require

__all__ = ["EvaluateLists", "PackedSide", "evaluation_on"]

Table = Any  # pyarrow.Table
DOCUMENTATION = """Evaluate recommended lists in {form}s against held-out truth: `fastrec.evaluate` on a cluster.

Parameters
----------
recs, truth : {form}s with one row per user and item, or one row per user with columns of {lists}
    Rows lose their order: lists with one row per item need a column of ranks or scores, and ``ties='input'`` needs
    columns of lists. Metrics that read no truth need none.
metrics : as in `fastrec.evaluate`

Returns
-------
Report
    Has the bits of `fastrec.evaluate` on the same rows, however they are split. Where the order of rows matters, as in
    sums of fractional gains of items with equal scores, rows are in the order of the items.

Raises
------
InputError, InputTypeError, MetricError
    As in `fastrec.evaluate`. Messages have no row numbers, as the rows have no order.
MissingExtraError
    If {engine} or PyArrow is not installed; the extra ``{extra}`` installs both.

Examples
--------
>>> report = fastrec.{extra}.evaluate(
...     recs, truth, ["ndcg@10", "recall@20"], by="plan"
... )  # doctest: +SKIP
>>> report["ndcg@10"]  # doctest: +SKIP
0.3214
"""


class PackedSide(EngineSide):
    """A side whose engine runs any function of Python on packets."""

    form: ClassVar[str]  # the name of its data in messages
    lists: ClassVar[str] = "lists"  # that its columns may hold
    module: ClassVar[str]  # the module to import

    def having(self, names: Iterable[Any]) -> Self:
        """Return the side with the needed columns: the named ones that exist once."""
        rows = lists_of_tensors(self.first_rows(self.once(names)))
        return replace(self, empty=plain_types(rows.schema).empty_table())

    def holds_numbers(self, name: str) -> bool:
        """Return whether a column, needed or not, holds numbers or lists of numbers, by its type."""
        return is_number(self.kinds()[name])

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.kinds())

    @classmethod
    def open(cls, name: str, frame: Any) -> Self:
        """Return the side of a data frame; raise for anything else."""
        extra = cls.engine.lower()
        for module in ("pyarrow", cls.module):
            require(module, extra, what=f"fastrec.{extra}")
        if not cls.is_frame(frame):
            found = with_article(type(frame).__name__)
            raise InputTypeError(f"{name} must be a {cls.form}, found {found}; fastrec.evaluate takes other data")
        return cls(name, frame)

    @staticmethod
    @abstractmethod
    def is_frame(frame: Any) -> bool:
        """Return whether an argument is a data frame of the engine."""

    @abstractmethod
    def first_rows(self, names: list[str]) -> Table:
        """Return some columns as a table with their types, and with rows only if the engine does not know these."""

    @abstractmethod
    def kinds(self) -> dict[str, Any]:
        """Return the types of all columns: those of Arrow, or of the engine where it has others."""

    @staticmethod
    @abstractmethod
    def collect(value: Any) -> Any:
        """Return the table of items in memory, from a data frame of the engine or any other form."""

    @classmethod
    @abstractmethod
    def run(cls, sides: Sequence[Self], job: Job, work: Work, n_partitions: int | None) -> Table:
        """Return all rows that tasks of a job make of packets; one task has all packets of its users."""


class EvaluateLists(Protocol):
    """The function `evaluate` of an engine."""

    def __call__(
        self,
        recs: Any,
        truth: Any = None,
        metrics: str | Iterable[str] | None = None,
        **given: Unpack[EngineListOptions],
    ) -> Report:
        """Evaluate recommended lists against held-out truth, with the options of `fastrec.evaluate`."""


def evaluation_on(kind: type[PackedSide]) -> EvaluateLists:
    """Return the documented function `evaluate` of the module in which the side of an engine is."""

    def evaluate(
        recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **given: Unpack[EngineListOptions]
    ) -> Report:
        return _evaluate_lists((recs, truth), metrics, given, kind)

    evaluate.__module__, evaluate.__qualname__ = kind.__module__, "evaluate"
    evaluate.__doc__ = DOCUMENTATION.format(
        engine=kind.engine, form=kind.form, lists=kind.lists, extra=kind.engine.lower()
    )
    return takes(EngineListOptions)(evaluate)


def _evaluate_lists(frames: tuple[Any, Any], metrics: Any, given: Mapping[str, Any], kind: type[PackedSide]) -> Report:
    """Evaluate lists and truth in data frames of an engine."""
    n_partitions = check_partitions(given["n_partitions"])

    def count_history(side: PackedSide, user: str, item: str) -> HistoryCounts:
        own = side.having([user, item])
        for name in (user, item):
            if name not in own.empty.column_names:
                own.as_frame().read(name)  # raises
        job = Job(Evaluator, {}, {}, (user,), 1, empty={own.name: own.empty})
        return join_counts(kind.run([own], job, functools.partial(count_items, job, item), n_partitions), item)

    plan = plan_lists(frames, metrics, given, kind.open, kind.collect, count_history)
    job = plan.job._replace(n_threads=plan.job.n_threads or 1)
    job.merge(kind.run(list(plan.sides.values()), job, job.states, n_partitions).to_pylist(), plan.evaluator)
    return plan.report()
