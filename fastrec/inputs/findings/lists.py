"""The evidence for findings in lists and truth of a batch, whatever their form was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fastrec.arguments.groups import MinGain
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.findings.evidence import Evidence
from fastrec.inputs.findings.ids import evidence_of_cells, evidence_of_ids
from fastrec.inputs.findings.sides import evidence_of_gains, evidence_of_padding, evidence_of_scores
from fastrec.inputs.ragged import longest_row

__all__ = ["evidence_of_lists"]

Array = np.ndarray[Any, Any]


def evidence_of_lists(
    recs: FlatSide,
    truth: FlatSide,
    users: Array | None,
    strings: Sequence[Any] | None,
    name_of: Callable[[int], str],
    min_gain: MinGain | None,
) -> Iterator[Evidence]:
    """Yield evidence for findings in lists and truth as passed.

    `users` are their ids, `strings` those that the items encode, and `name_of` names an item in a message.
    """
    n_rows = len(recs.items) + len(truth.items)
    yield from evidence_of_scores(recs)
    yield from evidence_of_padding(recs, name_of)
    yield from evidence_of_gains(recs, truth, min_gain)
    if users is not None and users.dtype.kind == "U":
        having, listed = (np.diff(own.indptr) > 0 for own in (truth, recs))
        yield from evidence_of_ids("user", users, having, listed, n_rows)
    if strings is None or not len(strings) or not isinstance(strings[0], str):
        return
    in_recs, in_truth = np.zeros((2, len(strings)), bool)
    in_recs[recs.items] = in_truth[truth.items] = True
    yield from evidence_of_ids("item", strings, in_truth, in_recs, n_rows)
    if longest_row(recs.indptr) == 1:
        yield from evidence_of_cells("recs", strings, in_recs, in_truth, n_rows)
    if longest_row(truth.indptr) == 1:
        yield from evidence_of_cells("truth", strings, in_truth, in_recs, n_rows)
