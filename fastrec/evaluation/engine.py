"""The evaluation of a batch: blocks of users go through kernels and formulas into exact sums."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.evaluation.exact import sum_digits
from fastrec.evaluation.given import NO_EVENTS, GivenPart, GivenRows
from fastrec.evaluation.sources import ListSource, Source, SourceRows
from fastrec.exceptions import MetricError
from fastrec.inputs.hits import edges_of_blocks, first_fault
from fastrec.inputs.ragged import read_only
from fastrec.inputs.users import Users
from fastrec.kernels import codes as op
from fastrec.kernels.hits import BlockHits
from fastrec.kernels.program import Program, deepest_read, pack
from fastrec.kernels.row_programs import Memory, Sizes, Tables, UserNumbers, memory_of, run_block
from fastrec.kernels.sums import Totals, add_values, size_of_totals, totals_of
from fastrec.kernels.users import evaluate_users
from fastrec.metrics.plan import Plan, Policies, call_on_arrays
from fastrec.metrics.program import Extent
from fastrec.metrics.statistics import Row, Values
from fastrec.metrics.sums import Failure, SumList
from fastrec.runtime.launcher import SMALL_WORK, launch
from fastrec.runtime.threads import USERS_PER_RANGE, run_in_threads

if TYPE_CHECKING:
    from fastrec.inputs.rows import RowSides
    from fastrec.items.listed import ListsAndTruth

Array = np.ndarray[Any, Any]

USERS_PER_PART = USERS_PER_RANGE  # users at a time for providers and formulas on arrays
ROWS_PER_PART = 1 << 22  # of lists and truth: fewer users at a time where these have many rows
STEPS_PER_OPERATION = 16  # for each block, besides one for each user
STEPS_PER_PART = 1 << 24  # of each thread: enough for a launch, and few enough for progress and interrupts
REFUSED_VALUES = (op.OUT_OF_LIMITS, op.OUT_OF_RANGE, op.OVERFLOW)


class KernelError(Exception):
    """A `Failure` on its way to the code that knows the names of users and items."""

    def __init__(self, failure: Failure, metric: str = "", message: str = "") -> None:
        super().__init__(failure)
        self.failure = failure
        self.metric, self.message = metric, message


class Outcome(NamedTuple):
    """The sums and values of one batch of users."""

    n_users: int
    totals: Array  # object (n_groups + 1, n_sums, 2): Python integers, see `fastrec.evaluation.exact`
    counts: Array  # int64 (n_groups + 1, n_conditions, 4)
    data_counts: Array  # int64 (N_DATA_COUNTS,)
    per_user: Array | None  # float64 (n_kept, n_users): values of metrics, then `Plan.shares`


def evaluate_source(
    plan: Plan,
    policies: Policies,
    source: Source,
    sides: ListsAndTruth | RowSides | None,
    users: Users,
    n_threads: int,
    progress: Callable[[int, int], Any] | None = None,
) -> Outcome:
    """Evaluate a batch of users; providers of statistics, if there are any, read the sides. Raises KernelError."""
    program = plan.program(Extent(*source.longest), policies, graded=source.is_graded)
    n_groups = int(users.groups.max()) if users.groups.size else 0
    given = GivenRows(plan, sides, users.weights, source.n_users)
    batch = Batch(source, users.groups, given, n_groups)
    outcome = _empty_outcome(plan, source.n_users, n_groups)
    run = _run_parts if plan.formulas or given.in_parts else _run_direct
    for done, part in run(plan, program, batch, outcome.per_user, n_threads):
        outcome.totals[...] += part.totals
        outcome.counts[...] += part.counts
        outcome.data_counts[...] += part.data_counts
        if progress is not None:
            progress(done, source.n_users)
    return outcome


class Batch(NamedTuple):
    """The data of one call."""

    source: Source
    groups: Array  # int32 (n_groupings, n_users)
    given: GivenRows
    n_groups: int


class BatchSums(NamedTuple):
    """The sums of some users, as in `Outcome`."""

    totals: Array
    counts: Array
    data_counts: Array


def _over_tasks(digits: Array) -> Array:
    """Return the sum over bins, without a copy of a single one."""
    own: Array = digits[0] if len(digits) == 1 else digits.sum(axis=0)
    return own


class _LaunchSums:
    """The sums of some launches, which threads add. Their digits become Python's integers once, not in each launch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: list[Array] = []  # fixed and general digits for each launch of a part, counts, data_counts

    def add(self, *launches: Totals) -> None:
        """Add launches over the same users. Their counts are equal, so only those of the first are added."""
        own = [_over_tasks(digits) for totals in launches for digits in (totals.fixed, totals.general)]
        own += [_over_tasks(launches[0].counts), _over_tasks(launches[0].data_counts)]
        with self._lock:
            if not self._arrays:
                self._arrays = own
                return
            for mine, more in zip(self._arrays, own, strict=True):
                np.add(mine, more, out=mine)

    def read(self) -> BatchSums:
        """Return the sums."""
        *digits, counts, data_counts = self._arrays
        totals = map(sum_digits, digits[::2], digits[1::2])
        return BatchSums(np.concatenate(list(totals), axis=1), counts, data_counts)


def _empty_outcome(plan: Plan, n_users: int, n_groups: int) -> Outcome:
    return Outcome(
        n_users,
        np.zeros((n_groups + 1, len(plan.scales), 2), dtype=object),
        np.zeros((n_groups + 1, len(plan.min_gains), 4), np.int64),
        np.zeros(op.N_DATA_COUNTS, np.int64),
        np.empty((len(plan.kept), n_users)) if plan.per_user else None,
    )


def _run_direct(
    plan: Plan, program: Program, batch: Batch, per_user: Array | None, n_threads: int
) -> Iterator[tuple[int, BatchSums]]:
    """Compute all metrics in kernels, for some users at a time with all threads."""
    stored = np.empty((plan.n_stored, 0)) if per_user is None else per_user
    for first, last in _ranges_of_steps(batch.source, len(program.ops), n_threads):
        part = GivenPart(batch.given.whole[:, first:last], *NO_EVENTS, None)
        sums = _LaunchSums()
        sums.add(_run_part(plan.direct, program, batch, (first, last), part, stored, first, n_threads))
        yield last, sums.read()


def _run_parts(
    plan: Plan, program: Program, batch: Batch, per_user: Array | None, n_threads: int
) -> Iterator[tuple[int, BatchSums]]:
    """Run providers, kernels, formulas on arrays and sums for some thousands of users at a time, in Python threads."""
    array_program = plan.array_program() if plan.formulas else None
    n_users, size = batch.source.n_users, _users_per_part(batch.source, n_threads)

    def work(sums: _LaunchSums, at: int) -> None:
        first, last = at * size, min((at + 1) * size, n_users)
        part = batch.given.part(first, last)
        stored = np.empty((plan.n_stored, 0 if array_program is None and per_user is None else last - first))
        launches = [_run_part(plan.direct, program, batch, (first, last), part, stored, 0, 1)]
        if array_program is not None:
            part = part._replace(rows=_fill_formulas(plan, stored, part.rows), hits=None)
            nothing = batch._replace(source=_nothing(n_users))
            launches.append(_run_part(plan.arrays, array_program, nothing, (first, last), part, np.empty((0, 0)), 0, 1))
        if per_user is not None:
            per_user[:, first:last] = stored[plan.kept]
        sums.add(*launches)

    tasks = -(-n_users // size)
    per_round = n_threads * 16  # between rounds, a call can be interrupted and reports progress
    for start in range(0, tasks, per_round):
        end, sums = min(start + per_round, tasks), _LaunchSums()
        run_in_threads(functools.partial(work, sums), range(start, end), n_threads)
        yield min(end * size, n_users), sums.read()


def _run_part(
    sums: SumList,
    program: Program,
    batch: Batch,
    span: tuple[int, int],
    given: GivenPart,
    stored: Array,
    offset: int,
    n_threads: int,
) -> Totals:
    """Run a program for the users first..last-1 of a batch; raise KernelError for the first one with a failure."""
    first, last = span
    source = batch.source.part(first, last)
    costs = source.costs()
    edges = edges_of_blocks(costs, n_threads)
    own = source.rows(program, given, len(edges) - 1)
    groups = np.ascontiguousarray(batch.groups[:, first:last])
    users = UserNumbers(own.indptr, own.gains, groups, own.given, given.events, given.last)
    n_users, n_blocks = len(costs) - 1, int(edges[-1])
    steps = own.steps + n_users * (1 + len(program.ops)) + n_blocks * len(program.ops) * STEPS_PER_OPERATION
    steps += _steps_of_ties(program, source) if program.expected and own.longest else 0
    totals = _launch_program(own, users, edges, stored, batch.n_groups, steps, n_threads, offset)
    fault = first_fault(totals.errors)
    if fault is not None:
        if fault.code == op.UNFINISHED:
            raise RuntimeError("a kernel failed, which is a fault of fastrec: stderr has its error")
        failure = Failure(fault.code, fault.user + first, fault.detail)
        raise KernelError(failure, *(sums.rejected(failure) if fault.code in REFUSED_VALUES else ()))
    return totals


def _launch_program(
    source: SourceRows,
    users: UserNumbers,
    edges: Array,
    stored: Array,
    n_groups: int,
    work: int,
    n_threads: int,
    offset: int,
) -> Totals:
    """Run a program over users, and return the totals of all tasks, each of its fields with a row per task.

    Task t takes the blocks edges[t]..edges[t + 1]-1. The values of the first user go to column `offset` of `stored`.
    """
    groups = users.groups
    if n_groups == len(groups) == 1 and groups.min() == 1:  # the sums of this group are those of all users
        everyone = users._replace(groups=groups[:0])
        return _of_one_group(_launch_program(source, everyone, edges, stored, 0, work, n_threads, offset))
    program, n_tasks, is_tied = source.program, len(edges) - 1, source.longest > 0
    sizes = n_groups, program.n_fixed, program.n_general, len(program.min_gains)
    totals = np.zeros((n_tasks, size_of_totals(*sizes)), np.int64)
    n_events = source.n_events
    n_gains, n_tied = n_events * program.graded, n_events * is_tied
    of_memory = Sizes(program.n_rows, len(program.cutoffs), len(groups), n_events, n_gains, n_tied, source.longest)
    hits = BlockHits(
        np.empty((n_tasks, 4, op.BLOCK), np.int64),
        np.empty((n_tasks, 2, n_events), np.int32),
        np.empty((n_tasks, 2, n_events) if is_tied else 0, np.int32),
    )
    tables = Tables(*pack(program, n_groups, offset), np.array(of_memory))
    kinds = zip(memory_of(of_memory), (np.int64, np.int32, np.float64), strict=True)
    memory = Memory(*(np.zeros((n_tasks, size), kind) for size, kind in kinds))  # pages that no block touches take none
    only_read = UserNumbers(*map(read_only, users)), Tables(*map(read_only, tables))
    steps = source.find, run_block, read_only(edges), hits, source.rows
    launch(evaluate_users, n_tasks, *steps, *only_read, memory, totals, stored, work=work, n_threads=n_threads)
    found: Totals = totals_of(totals, stored, offset, *sizes)
    return found


def _steps_of_ties(program: Program, source: Source) -> int:
    """Return the work of means over orders of ties that takes more than a step per row."""
    codes, kinds = program.ops[:, 0], program.ops[:, 2]
    at = np.flatnonzero((codes == op.SERIES) & (kinds == op.CASCADE))
    return sum(int(np.minimum(source.tied(), deepest_read(program, int(each))).sum()) for each in at)


def _of_one_group(totals: Totals) -> Totals:
    """Return totals of all users as those of a group, too."""
    fixed, general, counts = (np.repeat(own, 2, axis=1) for own in (totals.fixed, totals.general, totals.counts))
    return totals._replace(fixed=fixed, general=general, counts=counts)


def _ranges_of_steps(source: Source, steps_of_user: int, n_threads: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of users, with as much work as one launch should take."""
    first = np.arange(-(-source.n_users // op.BLOCK)) * op.BLOCK
    launches = (source.costs()[first] + first * steps_of_user) // (n_threads * STEPS_PER_PART)
    starts = [0, *(first[1:][np.diff(launches) > 0]).tolist(), source.n_users]
    yield from itertools.pairwise(starts) if len(first) else ()


def _users_per_part(source: Source, n_threads: int) -> int:
    """Return the users of each part: fewer where users have many rows, so that no thread waits for one part."""
    n_rows = int(source.costs()[-1])
    n_parts = max(-(-source.n_users // USERS_PER_PART), -(-n_rows // ROWS_PER_PART), 1)
    n_parts = max(n_parts, min(4 * n_threads, n_rows // SMALL_WORK))
    return max(-(-source.n_users // (n_parts * op.BLOCK)), 1) * op.BLOCK


def _fill_formulas(plan: Plan, stored: Array, weights: Array) -> Array:
    """Return, for each formula, the weights of the users it counts and its values, 0 for others. Also fill `stored`."""
    n_users = stored.shape[1]
    given = np.zeros((2 * len(plan.formulas), n_users))
    for i, formula in enumerate(plan.formulas):
        where = {name: np.nan_to_num(stored[at]).view(Values) for name, at in formula.leaves}
        statistics = plan.statistics_of(formula.call, functools.partial(_look_up, where))
        counted = stored[formula.counted] == 1.0
        if weights.shape[1]:
            given[2 * i] = np.where(counted, weights[0], 0.0)
        values = call_on_arrays(formula.call, statistics, n_users)
        given[2 * i + 1] = np.where(stored[formula.included] == 1.0, values, 0.0)
        if plan.per_user:
            stored[formula.position] = np.where(counted, given[2 * i + 1], np.nan)
    return given


def _look_up(where: dict[Hashable, Any], row: Row) -> Any:
    try:
        return where[row.identity]
    except KeyError:
        raise MetricError(
            "uses other statistics when it is called again: a formula must use the same statistics for all data"
        ) from None


def sum_exactly(values: Array, groups: Array | None, n_threads: int) -> Array:
    """Return the exact sums of rows (n, n_users) and of their squares by group; without groups, over all users.

    They are object (n_groups + 1, n, 2): Python integers in steps of 2^-GENERAL_SCALE. Those at 0 are of all users, or,
    with groups, of users in none.
    """
    n_rows, n_users = values.shape
    n_groups = 0 if groups is None else int(groups.max(initial=0))
    # of whole blocks, so that the user who is named for an error is the same for any number of threads
    edges = np.minimum(edges_of_blocks(np.arange(n_users + 1) * n_rows, n_threads) * op.BLOCK, n_users)
    general = np.zeros((len(edges) - 1, n_groups + 1, n_rows, 2, op.DIGITS), np.int64)
    failed = np.full(len(general), -1)
    codes = np.zeros(0, np.int32) if groups is None else groups
    own = map(read_only, (edges, values, codes))
    launch(add_values, len(general), *own, general, failed, work=32 * values.size, n_threads=n_threads)
    if (failed >= 0).any():
        raise KernelError(Failure(op.OVERFLOW, int(failed[failed >= 0].min()), 0))
    return sum_digits(np.zeros((n_groups + 1, 0, 6), np.int64), general.sum(axis=0))


def _nothing(n_users: int) -> ListSource:
    """Return users without rows, for programs that only read given numbers."""
    none = np.zeros(n_users + 1, np.int64)
    return ListSource(np.zeros(0, np.int32), none, np.zeros(0, np.int32), none, None)
