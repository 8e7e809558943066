"""Evaluators of lists and of scored rows, in batches, which threads may share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from fastrec.api.calls import evaluate, evaluate_model, evaluate_scores
from fastrec.arguments import options_of
from fastrec.checks import with_article
from fastrec.evaluation.accumulators import Accumulator, AccumulatorKey, GroupKey
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.protocol import Evaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import InputError, InputTypeError
from fastrec.report.report import Report
from fastrec.runtime.shared import Shared, synchronized
from fastrec.runtime.threads import uninterrupted

if TYPE_CHECKING:
    from fastrec.scored.score_counts import ScoreCounts

Array = np.ndarray[Any, Any]
SIDE_OPTIONS = "exclude reference logged subtopics"  # options of each batch: rows of its users
COLUMN_OPTIONS = "user item rank score gain propensity logged_rank subtopic item_sep by"  # and names of their columns
E = TypeVar("E", bound=Evaluation)


class BaseEvaluator(Shared, Generic[E]):
    """The base of evaluators: an evaluation that one thread at a time reads or changes."""

    _remedy = "call reset() and update it again"

    def __init__(self, evaluation: E) -> None:
        super().__init__()
        self._evaluation = evaluation

    @classmethod
    @abstractmethod
    def _kind(cls) -> type[E]:
        """Return the class of the evaluation."""

    def _is_torn(self) -> bool:
        return self._evaluation.is_torn

    def reset(self) -> None:
        """Forget all users and keep the metrics and settings, for example before the next epoch.

        After `reset`, an interrupted evaluator can be used again.

        Examples
        --------
        >>> evaluator = fastrec.Evaluator("recall@1")
        >>> for epoch in [[[1], [2]], [[1], [3]]]:
        ...     evaluator.update(epoch, [[1], [3]])
        ...     print(evaluator.result()["recall@1"])
        ...     evaluator.reset()
        0.5
        1.0
        """
        with self._locked():
            self._evaluation.reset()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the call: min_gain, n_items and the policies."""
        return dict(self._evaluation.settings)

    def as_part(self) -> Self:
        """Make this the evaluator of one part of the data, and return it. The caller must keep each user in one part.

        Its memory then does not grow with users or rows. It keeps no user ids, so it does not notice a user who comes
        twice. It does not keep the order of all rows, which `add_order` adds. Rows without users are summed one by
        one, so that the sums do not depend on the split into parts.
        """
        self._evaluation.as_part()
        return self

    def _merge(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise InputTypeError(f"merge takes {with_article(type(self).__name__)}, found {type(other).__name__}")
        if other is self:
            raise InputError(
                f"{with_article(type(self).__name__)} cannot be merged with itself: its users would count twice"
            )
        with self._both_locked(other):
            self._evaluation.merge(other._evaluation)
        return self

    @synchronized
    def to_bytes(self) -> bytes:
        """Return the state as bytes, from which `from_bytes` makes an equal evaluator on any machine.

        The bytes are a compressed archive of numbers and strings, without code. They have the names of metrics only,
        so register custom metrics before reading them. Reading the bytes elsewhere and merging gives the same result,
        to the last bit, as evaluating everything in one place. With metrics of the exposure of items the bytes grow
        with the distinct items of the lists: before compression the id and 8 bytes per cut-off for each, in all and in
        each group.

        Raises
        ------
        InputError
            If user ids are neither strings nor integers.
        """
        return self._evaluation.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, *, n_threads: int | None = None) -> Self:
        """Return the evaluator that `to_bytes` wrote, with its metrics, settings and state.

        Raises
        ------
        InputError
            If the bytes are damaged or changed, from another kind of evaluator, or from a version that differs.
        MetricError
            If a metric is not registered in this process.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InputTypeError(f"from_bytes takes the bytes of to_bytes, found {type(data).__name__}")
        evaluator = cls.__new__(cls)
        # what a handler of signals raises is no error of data
        BaseEvaluator.__init__(evaluator, uninterrupted(lambda: cls._kind().from_bytes(data, n_threads=n_threads)))
        return evaluator

    @synchronized
    def result(self) -> Report:
        """Return the report on all users so far. More users may follow."""
        return self._evaluation.report(copied=True)


class Evaluator(BaseEvaluator[ListEvaluation]):
    """An evaluator of lists in batches, on one machine or many. Evaluators merge in any order.

    All rows of a user must be in one batch. The sums are exact, so the result has the same bits for any split of the
    users into batches, any order of merging and any number of threads. Standard errors that need the lists a second
    time, as of ``gini``, are missing: `evaluate` has them. The constructor takes the settings of `evaluate`, and
    `Evaluator.update` its data. An evaluator serves one thread at a time; other threads wait. For parallel updates, use
    one evaluator per thread and merge them at the end.

    Examples
    --------
    >>> first = fastrec.Evaluator(["recall@2"])
    >>> first.update([[1, 2]], [[2, 9]])
    >>> second = fastrec.Evaluator(["recall@2"])
    >>> second.update([[3, 4]], [[4]])
    >>> first.merge(second).result()["recall@2"]
    0.75
    """

    @options_of(
        (evaluate, "k per_user min_gain n_items items history n_users unseen no_history no_features examination"),
        (evaluate, "like ties no_truth no_recs duplicates"),
        (evaluate_model, "negatives seed sample"),
        (evaluate, "sampled_from correct n_threads"),
    )
    def __init__(self, metrics: str | Iterable[str] | None = None, **given: Any) -> None:
        """Make an evaluator without users.

        Parameters
        ----------
        metrics : as in `evaluate`
        """
        super().__init__(ListEvaluation(metrics, **given))

    @classmethod
    def _kind(cls) -> type[ListEvaluation]:
        return ListEvaluation

    @options_of((evaluate, f"user_ids groups user_weight {SIDE_OPTIONS} {COLUMN_OPTIONS} progress"))
    @synchronized
    def update(self, recs: Any, truth: Any = None, **given: Any) -> None:
        """Add a batch of users. If a batch fails, the evaluator keeps its state.

        This also holds for an interrupt, except in the moment when the batch is added to the sums. After an interrupt
        in that moment, every call but `reset` raises an error.

        With ``user_ids`` (or dicts, or data frames) a user in a second batch is an error. Either all batches have ids
        or none, and the same holds for weights.

        Parameters
        ----------
        recs, truth : as in `evaluate`
        """
        self._evaluation.update(self._evaluation.sides(recs, truth, given), given)

    @options_of(
        (evaluate_model, "users user_ids item_ids candidates user_bias item_bias"),
        (evaluate_model, f"groups user_weight {SIDE_OPTIONS} {COLUMN_OPTIONS} progress"),
    )
    @synchronized
    def update_model(self, model: Any, truth: Any = None, **given: Any) -> None:
        """Add a batch of users whose lists are all items, as a model scores them; see `fastrec.evaluate_model`.

        A function as the model needs an evaluator with ``n_items``. The evaluator's ``negatives``, ``seed``, ``sample``
        and ``correct`` hold for all batches. A standard error that needs the lists a second time is missing, as with
        `update`.

        Parameters
        ----------
        model, truth : as in `fastrec.evaluate_model`

        Examples
        --------
        >>> evaluator = fastrec.Evaluator("mrr")
        >>> evaluator.update_model(
        ...     np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]]), [[2], [0]]
        ... )
        >>> evaluator.result()["mrr"]
        0.75
        """
        self._evaluation.update_model(model, truth, given)

    @options_of((evaluate, f"user_ids groups user_weight {COLUMN_OPTIONS} progress"))
    @synchronized
    def update_sides(self, sides: Mapping[str, Any], **given: Any) -> None:
        """Add a batch of users as {name: side}, for engines that move the rows of all sides by user.

        Unlike `update`, it takes ``history`` with each batch: the rows of these users.
        """
        self._evaluation.update(sides, given)

    def merge(self, other: Evaluator) -> Evaluator:
        """Add the users of another evaluator with the same metrics and settings, and return this evaluator.

        Columns of `items`, the counts of the items of `history` and `n_users` must be the same if a metric reads them.
        """
        return self._merge(other)


class ScoreEvaluator(BaseEvaluator[RowEvaluation]):
    """An evaluator of scored, labelled rows in batches, on one machine or many. Evaluators merge in any order.

    All rows of a user must be in one batch. The sums are exact, and metrics over the order of all rows (auc,
    average_precision, ks) keep counts per distinct score. So the result has the same bits for any split of the users
    into batches, any order of merging and any number of threads. The intervals of auc and average_precision take rows
    as independent, and the report says so: those over users, which `evaluate_scores` has, need the rows a second time.

    The constructor takes the settings of `evaluate_scores`, and `ScoreEvaluator.update` its data. An evaluator serves
    one thread at a time; other threads wait. For parallel updates, use one evaluator per thread and merge them at the
    end.

    Examples
    --------
    >>> first = fastrec.ScoreEvaluator(["auc"])
    >>> first.update([1, 0], [0.9, 0.2])
    >>> second = fastrec.ScoreEvaluator(["auc"])
    >>> second.update([1, 0], [0.1, 0.5])
    >>> first.merge(second).result()["auc"]
    0.5
    """

    @options_of((evaluate_scores, "k per_user min_gain n_items like ties no_truth one_class n_threads"))
    def __init__(self, metrics: str | Iterable[str] | None = None, **given: Any) -> None:
        """Make an evaluator without users.

        Parameters
        ----------
        metrics : as in `evaluate_scores`
        """
        super().__init__(RowEvaluation(metrics, **given))

    @classmethod
    def _kind(cls) -> type[RowEvaluation]:
        return RowEvaluation

    @options_of(
        (evaluate_scores, "user_ids item_ids sample_weight groups user_weight user item label score by"),
        (evaluate_scores, "row_groups row_by progress"),
    )
    @synchronized
    def update(self, labels: Any, scores: Any = None, indptr: Any = None, **given: Any) -> None:
        """Add a batch of users. If a batch fails, the evaluator keeps its state.

        This also holds for an interrupt, except in the moment when the batch is added to the sums. After an interrupt
        in that moment, every call but `reset` raises an error.

        With ``user_ids`` a user in a second batch is an error. Either all batches have users or none, and the same
        holds for ids and weights.

        Parameters
        ----------
        labels, scores, indptr : as in `evaluate_scores`
        """
        self._evaluation.update(labels, scores, indptr, given)

    def merge(self, other: ScoreEvaluator) -> ScoreEvaluator:
        """Add the users of another evaluator with the same metrics and settings, and return this evaluator."""
        return self._merge(other)

    def keep_score_counts(self, *, needed: bool, users: bool) -> Self:
        """Keep the counts of rows by score, whatever the metrics are, for `score_counts`; return the evaluator.

        needed : reject labels other than 0 and 1, if no `min_gain` says which are positive. Else there are no counts.
        users : keep sums over users by bin of scores too, for `users_by_bin`.
        """
        self._evaluation.keep_score_counts(needed=needed, users=users)
        return self

    @property
    def score_counts(self) -> dict[GroupKey | None, ScoreCounts]:
        """The counts of rows by score, of all rows and of each group; empty if they are not kept."""
        return self._evaluation.score_counts

    @property
    def users_by_bin(self) -> dict[GroupKey | None, Array]:
        """The sums over users by bin of scores, likewise, as tables of `scored.clusters`."""
        return self._evaluation.users_by_bin

    @property
    def ordered_calls(self) -> list[str]:
        """The metrics that need the order of all rows."""
        return self._evaluation.ordered_calls

    @property
    def ordered(self) -> dict[int, float]:
        """The conditions of metrics that need the order of all rows: {condition: smallest positive label}."""
        return self._evaluation.ordered

    @property
    def needs_targets(self) -> bool:
        """Whether all metrics compare targets with predictions, so that none needs labels."""
        return self._evaluation.needs_targets

    @synchronized
    def add_order(self, found: Iterable[tuple[AccumulatorKey, Accumulator]]) -> None:
        """Add the score counts of conditions and groups that the evaluator of a part leaves out."""
        self._evaluation.add_order(found)
