"""Rows with graded labels as an accumulator, and pairs and ranks of them as statistics of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastrec.evaluation.accumulators import ACCUMULATORS, AccumulatorKind, Collected, Keys
from fastrec.evaluation.row_rules import weights_of
from fastrec.inputs.grouping import Grouping, group_rows
from fastrec.inputs.rows import Rows
from fastrec.metrics.providers import provider
from fastrec.metrics.row_statistics import GRADED_ROWS
from fastrec.scored.pairs import GradedRows, fill_pairs, fill_ranks

Array = np.ndarray[Any, Any]


def _collect_graded_rows(sides: Mapping[str, Any], _: float, __: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield all rows of a batch with their labels, and the rows of each group."""
    rows: Rows = sides["rows"]
    weights, lengths = weights_of(rows), np.diff(rows.indptr)
    yield None, _graded_rows(rows.labels, rows.scores, weights)
    for codes in rows.users.groups:
        by_group = group_rows(np.repeat(codes, lengths), n_threads)
        own = [None if column is None else by_group.take(column) for column in (rows.labels, rows.scores, weights)]
        for code, start, stop in zip(by_group.ids.tolist(), *_edges_of(by_group), strict=True):
            part = [None if column is None else column[start:stop] for column in own]
            yield rows.users.keys[code - 1], _graded_rows(*part)
        for code in np.setdiff1d(codes, by_group.ids).tolist():  # groups whose users have no rows
            yield rows.users.keys[code - 1], _empty_graded_rows((), weights is not None)


def _edges_of(grouping: Grouping) -> tuple[list[int], list[int]]:
    edges = grouping.indptr.tolist()
    return edges[:-1], edges[1:]


def _graded_rows(labels: Any, scores: Any, weights: Any) -> GradedRows:
    found = _empty_graded_rows((), weights is not None)
    found.add(labels, scores, weights)
    return found


def _empty_graded_rows(_: Keys, weighted: bool) -> GradedRows:  # noqa: FBT001 - called by position
    return GradedRows(weighted=weighted)


def _unpack_graded_rows(arrays: dict[str, Array], _: Keys, weighted: bool) -> GradedRows:  # noqa: FBT001 - called by position
    return GradedRows.unpack(arrays, weighted=weighted)


provider("graded_pairs", sides=["rows"], is_ordered=False)(fill_pairs)
provider("graded_ranks", sides=["rows"], is_ordered=False)(fill_ranks)
ACCUMULATORS[GRADED_ROWS] = AccumulatorKind(
    GRADED_ROWS, _empty_graded_rows, _unpack_graded_rows, _collect_graded_rows, frozenset({"rows"})
)
