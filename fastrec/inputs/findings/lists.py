"""The evidence for findings in lists and truth of a batch, whatever their form was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.arguments.groups import MinGain
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.findings.evidence import Evidence
from fastrec.inputs.findings.ids import evidence_of_cells, evidence_of_ids
from fastrec.inputs.findings.sides import evidence_of_gains, evidence_of_padding, evidence_of_scores
from fastrec.inputs.ragged import longest_row
from fastrec.inputs.sides import SIDES

__all__ = ["evidence_of_lists"]

Array = np.ndarray[Any, Any]


def evidence_of_lists(
    sides: Mapping[str, FlatSide],
    users: Array | None,
    strings: Sequence[Any] | None,
    name_of: Callable[[int], str],
    min_gain: MinGain | None,
) -> Iterator[Evidence]:
    """Yield evidence for findings in lists, truth and other sides as passed.

    `users` are their ids, `strings` those that the items encode, and `name_of` names an item in a message.
    """
    recs, truth = sides["recs"], sides["truth"]
    n_rows = len(recs.items) + len(truth.items)
    yield from evidence_of_scores(recs)
    yield from evidence_of_padding(recs, name_of)
    yield from evidence_of_gains(recs, truth, min_gain)
    if users is not None and users.dtype.kind in "UO":
        names = users if users.dtype.kind == "U" else [*map(_joined, users.tolist())]
        having, listed = (np.diff(own.indptr) > 0 for own in (truth, recs))
        yield from evidence_of_ids("user", "truth", names, having, listed, n_rows)
    if strings is None or not len(strings) or not isinstance(strings[0], str):
        return
    in_recs, in_truth = (_among(strings, own) for own in (recs, truth))
    for name, own in sides.items():
        if name != "recs" and (name in SIDES or name == "items"):
            yield from evidence_of_ids("item", name, strings, _among(strings, own), in_recs, n_rows)
    if longest_row(recs.indptr) == 1:
        yield from evidence_of_cells("recs", strings, in_recs, in_truth, n_rows)
    if longest_row(truth.indptr) == 1:
        yield from evidence_of_cells("truth", strings, in_truth, in_recs, n_rows)


def _joined(user: Any) -> str:
    """Return a user as a string, with a space between the ids of several columns."""
    return " ".join(map(str, user)) if isinstance(user, tuple) else str(user)


def _among(strings: Sequence[Any], side: FlatSide) -> Array:
    """Return a mask over strings: whether an item of a side is one of them."""
    mask = np.zeros(len(strings), bool)
    mask[side.items] = True
    return mask
