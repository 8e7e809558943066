"""Lists in the order of their scores: that of a stable sort, whatever their length, ties and width."""

import numpy as np
import pytest

from fastrec.kernels import list_order
from fastrec.kernels.codes import EXPECTED, ID_ASC, ID_DESC
from fastrec.runtime.compiler import Entry

RUN = list_order.RUN
LENGTHS = [0, 1, 2, 3, RUN - 1, RUN, RUN + 1, 2 * RUN, 2 * RUN + 1, 5 * RUN + 7]
KINDS = (np.float32, np.float64)
ENTRIES = {kind: Entry(list_order.order_lists, f"test-of-order-{kind.__name__}", allocates=True) for kind in KINDS}


def order(scores, items, ties, *, compiled):
    """Return items by score, the scores in that order, and how many lists have ties."""
    indptr = np.array([0, len(scores)])
    recs = list_order.ListSide(items, indptr, scores)
    truth = list_order.ListSide(items[:0], np.zeros(2, np.int64), np.zeros(0))
    out, ordered = np.empty_like(items), np.empty(len(items))
    entry = ENTRIES[scores.dtype.type]
    kernel, run = (entry.compiled, RUN) if compiled else (entry.interpreted, list_order.RUN_INTERPRETED)
    for array in (items, indptr, scores, *truth):
        array.setflags(write=False)
    tied, *refused = kernel(recs, truth, ties, run, out, ordered, 0, 1)
    assert refused == [-1, 0, 0]
    return out, ordered, tied


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_the_order_is_that_of_a_stable_sort(n, kind):
    rng = np.random.default_rng(n)
    items = rng.permutation(n).astype(np.int64)
    odd = np.array([-0.0, 0.0, np.inf, -np.inf, 1.0, np.nextafter(1.0, 2.0)])
    for numbers in (rng.random(n), rng.integers(0, max(n // 2, 1), n), rng.choice(odd, n), np.zeros(n)):
        scores = numbers.astype(kind)
        wanted = np.argsort(-scores, kind="stable")
        ties = len(np.unique(scores)) < n
        for compiled in (True, False):
            out, ordered, tied = order(scores, items, EXPECTED, compiled=compiled)
            assert out.tolist() == items[wanted].tolist() and ordered.tolist() == scores[wanted].tolist()
            assert tied == ties
        for code, ids in ((ID_ASC, items), (ID_DESC, -items)):
            out, *_ = order(scores, items, code, compiled=True)
            assert out.tolist() == items[np.lexsort((ids, -scores))].tolist()
