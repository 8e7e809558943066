"""The sides of an evaluation on a cluster: which columns they have and need, checked where the call is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from fastrec.checks import whole_number, with_article
from fastrec.clusters.job import Job, Work, rows_of_states, states_of_rows
from fastrec.clusters.packets import Table, is_string, plain_types
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.arrow import Frame
from fastrec.inputs.column_names import Columns
from fastrec.runtime.extras import require

Count = Callable[[Table, int | None], bytes]  # of rows, on some threads
MAX_PARTITIONS = 1 << 20


@dataclass(frozen=True, eq=False)
class EngineSide(ABC):
    """A data frame of an engine, and an Arrow table of its needed columns without rows."""

    engine: ClassVar[str]  # in messages
    form: ClassVar[str]  # the name of its data in messages
    module: ClassVar[str]  # the module to import
    name: str
    frame: Any
    empty: Table = None

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
    def to_memory(frame: Any) -> Any:
        """Return all rows of a data frame in a form that `fastrec.evaluate` takes."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of all columns."""

    @abstractmethod
    def first_rows(self, names: list[str]) -> Table:
        """Return some columns as a table with their types, and with rows only if the engine does not know these."""

    @classmethod
    @abstractmethod
    def run(cls, sides: Sequence[Self], job: Job, work: Work, n_partitions: int | None) -> Iterable[Any]:
        """Return all rows that tasks make of the packets of sides; one task has all packets of its users."""

    def having(self, names: Iterable[Any]) -> Self:
        """Return the side with the needed columns: the named ones that exist once."""
        wanted, columns = list(names), self.columns
        rows = self.first_rows([name for name in columns if name in wanted and columns.count(name) == 1])
        return replace(self, empty=plain_types(rows.schema).empty_table())

    def holds_numbers(self, name: str) -> bool:
        """Return whether a column, needed or not, holds numbers or lists of numbers, by its type."""
        from pyarrow import types

        try:
            kind = self.first_rows([name]).schema.field(0).type
        except InputTypeError:
            return False
        kind = getattr(kind, "value_type", kind)
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))

    def as_frame(self) -> Frame:
        """Return a `Frame` of the column names, for code that reads no values."""
        return Frame(self.name, self.columns, _never)

    def all_columns(self) -> Table:
        """Return all columns without rows, unneeded ones without a type, so that errors can list their names."""
        import pyarrow as pa

        columns = self.columns
        needed = set(self.empty.column_names)
        own = [self.empty.column(name) if name in needed else pa.nulls(0) for name in columns]
        return pa.table(own, names=[str(name) for name in columns])

    def kind_of_ids(self, name: str) -> str:
        """Return how errors name the ids in a needed column, or in its lists; "" for a type that ids cannot have."""
        from pyarrow import types

        kind = self.empty.schema.field(name).type
        kind = kind if self.is_long(name) else kind.value_type
        if types.is_integer(kind):
            return "integers"
        return "strings" if is_string(kind) else ""

    def is_long(self, name: str) -> bool:
        """Return whether a needed column has one value per row, not a list."""
        from pyarrow import types

        kind = self.empty.schema.field(name).type
        return not (types.is_list(kind) or types.is_large_list(kind))


def states_of_side(
    side: EngineSide, keys: tuple[str, ...], count: Count, n_partitions: int | None = None, n_threads: int | None = None
) -> Iterator[bytes]:
    """Yield what `count` makes of a side without rows, which checks its columns, and of parts with whole users."""
    yield count(side.all_columns(), 1)
    job = Job(ListEvaluation, {}, {}, keys, n_threads, empty={side.name: side.empty})

    def work(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
        return rows_of_states(
            count(table, job.n_threads) for tables in job.tables(batches) for table in tables.values()
        )

    yield from states_of_rows(side.run([side], job, work, n_partitions))


def or_usual(name: str | None, usual: str) -> str:
    """Return the named column, or the usual one for None. A name may be an empty string."""
    return usual if name is None else name


def user_columns(side: EngineSide, columns: Columns) -> tuple[str, ...]:
    """Return the columns that make a user of a log; empty if rows have no users."""
    if columns.user is None:
        return ("user_id",) if "user_id" in side.columns or columns.by is not None else ()
    return (columns.user,) if isinstance(columns.user, str) else tuple(columns.user)


def check_ties(evaluation: ListEvaluation | RowEvaluation, engine: str) -> None:
    """Raise if ties should keep the order of rows, which no engine has."""
    if evaluation.settings["ties"] == "input":
        raise InputError(f"ties='input' needs columns of lists, as {engine} rows have no order")


def check_partitions(n_partitions: int | None) -> int | None:
    """Return the number of partitions to evaluate in; None leaves it to the engine."""
    number = whole_number(n_partitions)
    if n_partitions is not None and number is None:
        raise InputTypeError(f"n_partitions must be an integer, found {n_partitions!r}")
    if number is not None and not 1 <= number <= MAX_PARTITIONS:
        raise InputError(f"n_partitions must be from 1 to {MAX_PARTITIONS}, found {n_partitions}")
    return number


def _never(name: str) -> Any:
    raise AssertionError(name)
