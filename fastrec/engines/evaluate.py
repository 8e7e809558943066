"""Evaluation of lists on engines that move packets of users between tasks of Python."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from fastrec.checks import with_article
from fastrec.engines.history import count_items, join_counts
from fastrec.engines.job import Job
from fastrec.engines.lists import plan_lists
from fastrec.engines.packets import Work
from fastrec.engines.side import EngineSide, check_partitions
from fastrec.evaluation.lists import Evaluator
from fastrec.exceptions import InputTypeError
from fastrec.inputs.history import HistoryCounts
from fastrec.report.report import Report
from fastrec.runtime.extras import require

__all__ = ["PackedSide", "evaluate_lists"]

Table = Any  # pyarrow.Table


class PackedSide(EngineSide):
    """A side whose engine runs any function of Python on packets."""

    form: ClassVar[str]  # the name of its data in messages
    module: ClassVar[str]  # the module to import

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

    @staticmethod
    @abstractmethod
    def collect(value: Any) -> Any:
        """Return the table of items in memory, from a data frame of the engine or any other form."""

    @classmethod
    @abstractmethod
    def run(cls, sides: Sequence[Self], job: Job, work: Work, n_partitions: int | None) -> Table:
        """Return all rows that tasks of a job make of packets; one task has all packets of its users."""


def evaluate_lists(frames: tuple[Any, Any], metrics: Any, given: Mapping[str, Any], kind: type[PackedSide]) -> Report:
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
