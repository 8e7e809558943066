"""Value of a policy from Spark data frames of logged slates, on their cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from fastrec._version import __version__
from fastrec.arguments.calls import SparkPolicyOptions
from fastrec.arguments.signature import pick, takes
from fastrec.arguments.slates import PropensityColumnNames, SlateColumnNames
from fastrec.counterfactual.logged import ROLES, check_clip, check_estimators, read_logged
from fastrec.counterfactual.policy import sums_of
from fastrec.counterfactual.sums import SlateSums
from fastrec.counterfactual.value import PolicyEstimate, PolicyEstimates, estimates_of
from fastrec.engines.job import error_of, without_rows
from fastrec.engines.side import check_partitions, or_usual
from fastrec.exceptions import Argument, FastrecError, InputError, warn
from fastrec.inputs.arrow import Frame
from fastrec.runtime.limits import resolve_threads
from fastrec.spark.side import (
    FrameSide,
    column_of,
    read_column,
    running_python,
    start_task,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["policy_value"]

Batch = Any  # pyarrow.RecordBatch
STATES = "state string, error string, message string"


@overload
def policy_value(log: DataFrame, *, estimator: str = "iips", **given: Unpack[SparkPolicyOptions]) -> PolicyEstimate: ...


@overload
def policy_value(
    log: DataFrame, *, estimator: list[str] | tuple[str, ...], **given: Unpack[SparkPolicyOptions]
) -> PolicyEstimates: ...


@takes(SparkPolicyOptions)
def policy_value(
    log: DataFrame, *, estimator: str | list[str] | tuple[str, ...] = "iips", **given: Unpack[SparkPolicyOptions]
) -> PolicyEstimate | PolicyEstimates:
    """Estimate what a new policy would have earned, from a Spark data frame: `fastrec.policy_value` on a cluster.

    Parameters
    ----------
    log : a data frame with a row per shown item
    estimator : as in `fastrec.policy_value`
        Slates need ranks, as Spark rows have no order.

    Returns
    -------
    PolicyEstimate, or PolicyEstimates, a dict by name, if ``estimator`` is a list
        Has the bits of `fastrec.policy_value` on the same rows, for any partitions.

    Raises
    ------
    InputError, InputTypeError, MissingExtraError
        As in `fastrec.policy_value`, also for faults that a task finds; without row numbers.

    Examples
    --------
    >>> fastrec.spark.policy_value(
    ...     log, estimator="rips", rank="position"
    ... ).value  # doctest: +SKIP
    0.3214
    """
    predictions = given["predictions"]
    names, alone = check_estimators(estimator, predictions)
    limit = check_clip(given["clip"])
    named: dict[str, Any] = {**pick(SlateColumnNames, given), **pick(PropensityColumnNames, given)}
    rank = given["rank"]
    side = FrameSide.open("log", log)
    there = side.columns
    optional = {"slate": given["slate"], "user": given["user"], "baseline_pscore": given["baseline_pscore"]}
    for role, own in optional.items():
        named[role] = ROLES[role] if own is None and ROLES[role] in there else own
    slates, user, baseline = (named[role] for role in optional)
    if slates is not None and rank is None and ROLES["rank"] not in there:
        raise InputError("log needs a column of ranks, as Spark rows have no order: name it by ", Argument("rank"))
    numbers = [or_usual(named[role], ROLES[role]) for role in ("reward", "pscore", "new_pscore")]
    numbers += [*(predictions or ()), *([] if slates is None else [or_usual(rank, ROLES["rank"])])]
    numbers += [] if baseline is None else [baseline]
    ids = [name for name in (user, slates) if name is not None]
    side = side.having([*numbers, *ids])
    for name in numbers:
        read_column(side.all_columns(), name)
    for name in ids:
        Frame("log", there, side.all_columns().column).read(name)
    task = _Task(names, limit, predictions, named, given["n_threads"])
    frame, count = side.selected(), check_partitions(given["n_partitions"])
    if ids:
        key = column_of(ids[0])
        frame = frame.repartition(key) if count is None else frame.repartition(count, key)
    with running_python(log.sparkSession):
        states = frame.mapInArrow(task.states, STATES).collect()
    none: list[Any] = [None if name is None else [] for name in (user, baseline)]
    empty = sums_of(read_logged([], [], [], [0], _NONE if predictions else None, None, {}, 1, *none), names, limit, 1)
    found = estimates_of(_merged(empty, states))
    warn(found.warnings)
    return found[names[0]] if alone else found


_NONE: tuple[list[float], list[float]] = ([], [])


def _merged(sums: list[SlateSums], states: list[Any]) -> list[SlateSums]:
    """Add the states of tasks; raise the first error."""
    for state in states:
        if state["error"] is not None:
            raise error_of(state["error"], state["message"])
        parts = [SlateSums.from_plain(own) for own in json.loads(state["state"])]
        sums = [one.add(other) for one, other in zip(sums, parts, strict=True)]
    return sums


class _Task:
    """The work on a partition."""

    def __init__(
        self,
        names: list[str],
        clip: float | None,
        predictions: tuple[str, str] | None,
        named: Mapping[str, Any],
        n_threads: int | None,
    ) -> None:
        self._given = names, clip, n_threads
        self._predictions = predictions
        self._named = named
        self._version = __version__

    def states(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield one row: the sums over a partition, or its error; nothing for an empty partition."""
        import pyarrow as pa

        start_task()
        kept = [batch for batch in batches if batch.num_rows]
        if not kept:
            return
        row: dict[str, Any] = {"state": None, "error": None, "message": None}
        try:
            row["state"] = json.dumps([one.to_plain() for one in self._sums(pa.Table.from_batches(kept))])
        except FastrecError as error:
            row |= without_rows(error)
        yield pa.record_batch({name: pa.array([value], pa.string()) for name, value in row.items()})

    def _sums(self, rows: Any) -> list[SlateSums]:
        if self._version != __version__:
            raise InputError(f"the driver has fastrec {self._version}, but an executor has {__version__}")
        names, clip, n_threads = self._given
        columns = {role: self._named[role] for role in ("reward", "slate", "rank", "user")}
        pscores, baseline = (self._named["pscore"], self._named["new_pscore"]), self._named["baseline_pscore"]
        threads = resolve_threads(n_threads)
        logged = read_logged(rows, *pscores, None, self._predictions, None, columns, threads, None, baseline)
        return sums_of(logged, names, clip, threads)
