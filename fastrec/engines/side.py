"""The sides of an evaluation on a cluster: which columns they have and need, checked where the call is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fastrec.checks import listed_in_order, whole_number
from fastrec.engines.packets import is_string
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.arrow import Frame
from fastrec.inputs.column_names import Columns, user_column
from fastrec.inputs.frames import extra_column
from fastrec.inputs.ids import kind_of_ids
from fastrec.inputs.items import ItemTable
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import NO_LABEL

__all__ = [
    "EngineSide",
    "check_partitions",
    "check_same_types",
    "check_ties",
    "columns_of_lists",
    "listed_names",
    "numbered_labels",
    "or_usual",
    "spelled",
    "user_columns",
    "with_strings",
]

Table = Any  # pyarrow.Table
MAX_PARTITIONS = 1 << 20


@dataclass(frozen=True, eq=False)
class EngineSide(ABC):
    """A data frame of an engine, and an Arrow table of its needed columns without rows."""

    engine: ClassVar[str]  # in messages
    name: str
    frame: Any
    empty: Table = None

    def once(self, names: Iterable[Any]) -> list[str]:
        """Return those of some columns that exist once, in the order of the data frame."""
        wanted, columns = list(names), self.columns
        return [name for name in columns if name in wanted and columns.count(name) == 1]

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of all columns."""

    @abstractmethod
    def having(self, names: Iterable[Any]) -> Self:
        """Return the side with the needed columns: the named ones that exist once."""

    @abstractmethod
    def holds_numbers(self, name: str) -> bool:
        """Return whether a column, needed or not, holds numbers or lists of numbers, by its type."""

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


def listed_names(value: Any, name: str) -> Any:
    """Return an argument that may be an iterator as a list, so that several readers get its values."""
    return listed_in_order(value, name) if isinstance(value, Iterable) and not isinstance(value, str) else value


def or_usual(name: str | None, usual: str) -> str:
    """Return the named column, or the usual one for None. A name may be an empty string."""
    return usual if name is None else name


def columns_of_lists(side: EngineSide, columns: Columns, user_weight: str | None) -> list[str]:
    """Return the columns that a side of lists may need."""
    extra = extra_column(side.as_frame(), columns)[1]
    judged = SIDES[side.name].judgement_column(columns, side.as_frame().has)
    of_users = (*columns.groupings(), user_weight) if SIDES[side.name].has_users else ()
    needed = (user_column(columns.user), or_usual(columns.item, "item_id"), extra, judged, *of_users)
    return [name for name in needed if name is not None]


def user_columns(side: EngineSide, columns: Columns) -> tuple[str, ...]:
    """Return the columns that make a user of a log; empty if rows have no users."""
    if columns.user is None:
        return ("user_id",) if "user_id" in side.columns or columns.by is not None else ()
    return (columns.user,) if isinstance(columns.user, str) else tuple(columns.user)


def check_same_types(sides: Mapping[str, EngineSide], roles: Mapping[str, str], items: ItemTable | None) -> None:
    """Raise if ids of a role have different types, so that they cannot match."""
    of_table = {} if items is None else {"item": {"items": kind_of_ids(items.ids)}}
    for role, name in roles.items():
        kinds = {side.name: side.kind_of_ids(name) for side in sides.values()} | of_table.get(role, {})
        if len(set(kinds.values())) > 1 and all(kinds.values()):
            found = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputTypeError(f"{role} ids must be of one type on all sides, found {found}")


def check_ties(evaluator: Evaluator | ScoreEvaluator, engine: str) -> None:
    """Raise if ties should keep the order of rows, which no engine has."""
    if evaluator.settings["ties"] == "input":
        raise InputError(f"ties='input' needs columns of lists, as {engine} rows have no order")


def numbered_labels(sides: Mapping[str, EngineSide], columns: Columns) -> set[str]:
    """Return the columns to group by that hold integers.

    Tasks read labels of these as strings: else a partition in which a user lacks a label would do so by itself.
    """
    from pyarrow import types

    found = {}
    for name in columns.groupings():
        kinds = [side.empty.schema.field(name).type for side in sides.values() if name in side.empty.column_names]
        found[name] = all(map(types.is_integer, kinds))
    return {name for name, numbered in found.items() if numbered}


def with_strings(empty: Table, names: Collection[str]) -> Table:
    """Return a table without rows with some columns of strings."""
    import pyarrow as pa

    kinds = [own.with_type(pa.string()) if own.name in names else own for own in empty.schema]
    return pa.schema(kinds).empty_table()


def spelled(groups: Mapping[Any, Any], *, numbered: bool) -> dict[Any, Any]:
    """Return groups with their integer labels restored, if every user has a label."""
    if not numbered or NO_LABEL in groups:
        return dict(groups)
    return dict(sorted((int(label), estimates) for label, estimates in groups.items()))


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
