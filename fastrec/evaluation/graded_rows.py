"""Rows with graded labels, collected over all users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.evaluation.row_rules import weights_of
from fastrec.inputs.grouping import Grouping, group_rows
from fastrec.inputs.rows import RowSides
from fastrec.scored.pairs import GradedRows

if TYPE_CHECKING:
    from fastrec.evaluation.accumulators import Collected, Keys

Array = np.ndarray[Any, Any]


def collect_graded_rows(sides: RowSides, _: float, __: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield all rows of a batch with their labels, and the rows of each group."""
    rows = sides.rows
    weights, lengths = weights_of(rows), np.diff(rows.indptr)
    yield None, _graded_rows(rows.labels, rows.scores, weights)
    for codes in rows.users.groups:
        by_group = group_rows(np.repeat(codes, lengths), n_threads)
        own = [None if column is None else by_group.take(column) for column in (rows.labels, rows.scores, weights)]
        for code, start, stop in zip(by_group.ids.tolist(), *_edges_of(by_group), strict=True):
            part = [None if column is None else column[start:stop] for column in own]
            yield rows.users.keys[code - 1], _graded_rows(*part)
        for code in np.setdiff1d(codes, by_group.ids).tolist():  # groups whose users have no rows
            yield rows.users.keys[code - 1], GradedRows(weighted=weights is not None)


def _edges_of(grouping: Grouping) -> tuple[list[int], list[int]]:
    edges = grouping.indptr.tolist()
    return edges[:-1], edges[1:]


def _graded_rows(labels: Any, scores: Any, weights: Any) -> GradedRows:
    found = GradedRows(weighted=weights is not None)
    found.add(labels, scores, weights)
    return found
