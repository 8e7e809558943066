"""Evaluation by partitions, for any engine that moves rows by user: it knows none of them.

Sums in the states of evaluations are exact, so neither the number of partitions nor a task that runs twice changes a
result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec import exceptions
from fastrec._version import __version__
from fastrec.clusters.packets import (
    BATCH_BYTES,
    Batch,
    Table,
    packet_schema,
    tables_of,
    tables_of_packets,
)
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, RowNumber
from fastrec.inputs.sides import SIDES


class Job(NamedTuple):
    """The instructions of a task: how to make an evaluation, and which arguments to give it.

    The user's engine moves the packets of all sides (`fastrec.clusters.packets.pack`) so that each bucket is in one
    partition, next to each other. A task turns a partition into the state of an evaluation (`states`), or into the
    values of its users (`values`). The driver merges states (`merge`). Other work of tasks makes states of `tables`.
    """

    make: type[ListEvaluation | RowEvaluation]
    options: dict[str, Any]
    arguments: dict[str, Any]  # of `update`, also a side that is given by name: exclude="history"
    keys: tuple[str, ...]  # the columns that make a user
    n_threads: int | None
    order: tuple[str, ...] = ()  # the columns to sort long rows by
    empty: Mapping[str, Table] = {}
    version: str = __version__

    def check(self, tables: Mapping[str, Table], *, per_user: bool) -> ListEvaluation | RowEvaluation:
        """Check arguments and columns, given as tables without rows, and return the evaluation of the driver."""
        if per_user:
            self.update(self.start(per_user=True), tables)
        evaluation = self.start().as_part()
        self.update(evaluation, tables)
        return evaluation

    def start(self, *, per_user: bool = False) -> ListEvaluation | RowEvaluation:
        """Return a new evaluation."""
        return self.make(**self.options, per_user=per_user, n_threads=self.n_threads)

    def update(self, evaluation: Any, tables: Mapping[str, Table]) -> None:
        """Add tables of whole users to an evaluation."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        if isinstance(evaluation, ListEvaluation):
            named = {name: given.pop(name) for name in SIDES if name in given}
            evaluation.update({**tables, **named}, given)
        else:
            (log,) = tables.values()
            evaluation.update(log, None, None, given)

    def tables(self, batches: Iterable[Batch]) -> Iterator[dict[str, Table]]:
        """Yield the rows of a partition in tables of whole users."""
        if self.version != __version__:
            raise InputError(
                f"the driver has fastrec {self.version}, but an executor has {__version__}: install one version"
            )
        if not self.keys:
            yield from ({name: table} for name in self.empty for table in tables_of(batches, BATCH_BYTES))
            return
        for tables in tables_of_packets(batches, self.empty):
            yield {name: _in_order(table, self.order) for name, table in tables.items()}

    def states(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield one row: the state of an evaluation after a partition, or its error; nothing for an empty partition."""

        def evaluate() -> Iterator[bytes]:
            evaluation = None
            for tables in self.tables(batches):
                evaluation = self.start().as_part() if evaluation is None else evaluation
                self.update(evaluation, tables)
            if evaluation is not None:
                yield evaluation.to_bytes()

        yield from rows_of_states(evaluate())

    def values(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the values of the users of a partition."""
        import pyarrow as pa

        for tables in self.tables(batches):
            evaluation = self.start(per_user=True)
            self.update(evaluation, tables)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FastrecWarning)  # the driver has already warned
                report = evaluation.report(is_part=True)
            ids = report.user_ids
            assert ids is not None
            columns = [ids] if len(self.keys) == 1 else list(zip(*ids.tolist(), strict=True))
            columns += [pa.array(values, from_pandas=True) for values in report.per_user.values()]
            yield from pa.table(list(map(pa.array, columns)), [*self.keys, *report.per_user]).to_batches()

    def merge(self, rows: Iterable[Any], evaluation: Any) -> None:
        """Merge the rows of `states` of all partitions into the evaluation of the driver; raise the first error."""
        for state in states_of_rows(rows):
            evaluation.merge(self.make.from_bytes(state))


Work = Callable[[Job, Iterable[Batch]], Iterator[Batch]]  # of a task, on its partition


def work_on(job: Job, work: Work, *tables: Table) -> list[dict[str, Any]]:
    """Return the rows that a task makes of its packets, which it reads one by one."""
    import pyarrow as pa

    packets = pa.concat_tables([packet_schema().empty_table(), *tables])
    order = np.argsort(packets.column("bucket").to_numpy(), kind="stable").tolist()
    batches = (batch for at in order for batch in packets.slice(at, 1).to_batches())
    return [row for batch in work(job, batches) for row in batch.to_pylist()]


def rows_of_states(states: Iterable[bytes]) -> Iterator[Batch]:
    """Yield the rows that a task sends to the driver: one per state, or its error."""
    import pyarrow as pa

    columns = pa.schema([("state", pa.binary()), ("error", pa.string()), ("message", pa.string())])
    try:
        for state in states:
            yield pa.RecordBatch.from_pylist([{"state": state}], columns)
    except FastrecError as error:
        yield pa.RecordBatch.from_pylist([without_rows(error)], columns)


def states_of_rows(rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield the states in the rows of all tasks; raise the first error."""
    for row in rows:
        check_errors([row])
        yield bytes(row["state"])


def check_errors(rows: Iterable[Any]) -> None:
    """Raise the first error of tasks."""
    for row in rows:
        if row["error"] is not None:
            raise getattr(exceptions, row["error"])(row["message"])


def without_rows(error: FastrecError) -> dict[str, str]:
    """Return the class and the message of an error, without the numbers of rows: partitions have no order."""
    message = error.renamed(lambda name: name.unnumbered if isinstance(name, RowNumber) else name)
    return {"error": type(error).__name__, "message": str(message)}


def _in_order(table: Table, names: Sequence[str]) -> Table:
    """Return long rows sorted by some columns; tables with lists stay as they are."""
    from pyarrow import types

    keys = [(name, "ascending") for name in names if name in table.column_names]
    lists = any(types.is_nested(table.schema.field(name).type) for name, _ in keys)
    return table if lists or not keys else table.sort_by(keys)
