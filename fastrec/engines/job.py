"""Evaluation by partitions, for any engine that moves rows by user: it knows nothing of Spark.

Sums in the states of evaluators are exact, so neither the number of partitions nor a task that runs twice changes a
result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fastrec import exceptions
from fastrec._version import __version__
from fastrec.engines.packets import BATCH_BYTES, Packet, batches_of_buckets, tables_of
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, RowNumber
from fastrec.inputs.sides import SIDES

__all__ = ["Job", "error_of", "error_within", "without_rows"]

Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch


def tables_of_packets(batches: Iterable[Batch], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield {side: rows of whole users} of a partition of packets, which it reads one by one: all may fill the memory.

    `empty` has the columns and types of each side.
    """
    packets = (
        Packet(*(batch.column(nth)[row].as_py() for nth in range(len(Packet._fields))))
        for batch in batches
        for row in range(batch.num_rows)
    )
    yield from batches_of_buckets(packets, empty)


class Job(NamedTuple):
    """The instructions of a task: how to make an evaluator, and which arguments to give it.

    The user's engine moves the packets of all sides (`fastrec.engines.packets.pack`) so that each bucket is in one
    partition, next to each other. A task turns a partition into the state of an evaluator (`states`), or into the
    values of its users (`values`). The driver merges states (`merge`).
    """

    make: type[Evaluator | ScoreEvaluator]
    options: dict[str, Any]
    arguments: dict[str, Any]  # of `update`, also a side that is given by name: exclude="history"
    keys: tuple[str, ...]  # the columns that make a user
    n_threads: int | None
    order: tuple[str, ...] = ()  # the columns to sort long rows by
    empty: Mapping[str, Table] = {}
    version: str = __version__

    def check(self, tables: Mapping[str, Table], *, per_user: bool) -> Evaluator | ScoreEvaluator:
        """Check arguments and columns, given as tables without rows, and return the evaluator of the driver."""
        if per_user:
            self.update(self.make(**self.options, per_user=True), tables)
        evaluator = self.make(**self.options, n_threads=self.n_threads).as_part()
        self.update(evaluator, tables)
        return evaluator

    def start(self, *, per_user: bool = False) -> Evaluator | ScoreEvaluator:
        """Return a new evaluator in a task."""
        if self.version != __version__:
            raise InputError(
                f"the driver has fastrec {self.version}, but an executor has {__version__}: install one version"
            )
        return self.make(**self.options, per_user=per_user, n_threads=self.n_threads)

    def update(self, evaluator: Any, tables: Mapping[str, Table]) -> None:
        """Add tables of whole users to an evaluator."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        if isinstance(evaluator, Evaluator):
            named = {name: given.pop(name) for name in SIDES if name in given}
            evaluator.update_sides({**tables, **named}, **given)
        else:
            evaluator.update(*tables.values(), **given)

    def tables(self, batches: Iterable[Batch]) -> Iterator[dict[str, Table]]:
        """Yield the rows of a partition in tables of whole users."""
        if not self.keys:
            yield from ({"log": table} for table in tables_of(batches, BATCH_BYTES))
            return
        for tables in tables_of_packets(batches, self.empty):
            yield {name: _in_order(table, self.order) for name, table in tables.items()}

    def states(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield one row: the state of an evaluator after a partition, or its error; nothing for an empty partition."""
        has_rows = False
        try:
            evaluator = self.start().as_part()
            for tables in self.tables(batches):
                self.update(evaluator, tables)
                has_rows = True
        except FastrecError as error:
            yield _one_row(state=None, **without_rows(error))
            return
        if has_rows:
            yield _one_row(state=evaluator.to_bytes(), error=None, message=None)

    def values(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the values of the users of a partition."""
        import pyarrow as pa

        for tables in self.tables(batches):
            evaluator = self.start(per_user=True)
            self.update(evaluator, tables)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FastrecWarning)  # the driver has already warned
                report = evaluator._report(copied=False, is_part=True)  # noqa: SLF001 - of some users of a report
            ids = report.user_ids
            assert ids is not None
            columns = [ids] if len(self.keys) == 1 else list(zip(*ids.tolist(), strict=True))
            columns += [pa.array(values, from_pandas=True) for values in report.per_user.values()]
            yield from pa.table(list(map(pa.array, columns)), [*self.keys, *report.per_user]).to_batches()

    def merge(self, states: Iterable[Any], evaluator: Any) -> None:
        """Merge the rows of `states` of all partitions into the evaluator of the driver; raise the first error."""
        for found in states:
            if found["error"] is not None:
                raise error_of(found["error"], found["message"])
            evaluator.merge(self.make.from_bytes(bytes(found["state"])))


def _one_row(**values: Any) -> Batch:
    """Return the row of a task: the state of its evaluator, or its error and message."""
    import pyarrow as pa

    kinds = {"state": pa.binary(), "error": pa.string(), "message": pa.string()}
    return pa.record_batch({name: pa.array([values[name]], kind) for name, kind in kinds.items()})


def _in_order(table: Table, names: Sequence[str]) -> Table:
    """Return long rows sorted by some columns; tables with lists stay as they are."""
    from pyarrow import types

    keys = [(name, "ascending") for name in names if name in table.column_names]
    lists = any(types.is_nested(table.schema.field(name).type) for name, _ in keys)
    return table if lists or not keys else table.sort_by(keys)


def without_rows(error: FastrecError) -> dict[str, str]:
    """Return the class and the message of an error, without the numbers of rows: partitions have no order."""
    message = error.renamed(lambda name: name.unnumbered if isinstance(name, RowNumber) else name)
    return {"error": type(error).__name__, "message": str(message)}


def error_within(error: Any) -> BaseException:
    """Return the error of fastrec that an engine has wrapped, maybe several times; the error itself without one."""
    cause = error
    while (inner := getattr(cause, "cause", None)) is not None:
        cause = inner
    return cause if isinstance(cause, FastrecError) else error


def error_of(error: str, message: str) -> FastrecError:
    """Return an error of a task, from what `without_rows` returned."""
    found: FastrecError = getattr(exceptions, error)(message)
    return found
