"""Lists in the order of their scores: that of a stable sort, whatever their length, ties and width."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastrec
from fastrec.kernels import list_order
from fastrec.kernels.codes import EXPECTED, ID_ASC, ID_DESC
from fastrec.runtime.launcher import edges_of, launch

RUN = 128  # scores that compiled code orders by comparing all pairs
LENGTHS = [0, 1, 2, 3, RUN - 1, RUN, RUN + 1, 2 * RUN, 2 * RUN + 1, 5 * RUN + 7]
KINDS = (np.float32, np.float64)


def order(scores, items, ties, *, compiled):
    """Return items by score, the scores in that order, and how many lists have ties."""
    indptr = np.array([0, len(scores)])
    truth = items[:0], np.zeros(2, np.int64), np.zeros(0)
    out, ordered, found = np.empty_like(items), np.empty(len(items)), np.empty((1, 4), np.int64)
    for array in (items, indptr, scores, *truth):
        array.setflags(write=False)
    given = items, indptr, scores, *truth, ties, out, ordered, found, edges_of(1, 1)
    if compiled:
        launch(list_order.order_lists, 1, *given, work=1, n_threads=1)
    else:
        list_order.order_lists(0, 1, *given)
    (tied, *refused) = found[0].tolist()
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


TIED, TRUTH = {"ann": {2: 1.0, 10: 1.0}, "bob": {3: 2.0, 4: 1.0}}, {"ann": [10], "bob": [3]}
AS_STRINGS = "some scores are equal, and {} orders their items as strings; these are integers, ordered as numbers: "


@pytest.mark.parametrize("tool", ["trec_eval", "ir_measures"])
def test_a_tool_that_orders_tied_items_as_strings_warns_of_integers(tool, tmp_path):
    """10 comes before 2 as a number, and after it as a string."""
    metric = {"trec_eval": "recip_rank", "ir_measures": "RR"}[tool]
    paths = tmp_path / "recs.csv", tmp_path / "truth.csv"
    rows = [f"{user},{item},{score}\n" for user, own in TIED.items() for item, score in own.items()]
    paths[0].write_text("user_id,item_id,score\n" + "".join(rows))
    paths[1].write_text("user_id,item_id\nann,10\nbob,3\n")
    evaluators = [fastrec.Evaluator(metric, like=tool) for _ in TIED]
    for evaluator, user in zip(evaluators, TIED, strict=True):
        evaluator.update({user: TIED[user]}, {user: TRUTH[user]})
    whole = fastrec.Evaluator.from_bytes(evaluators[1].to_bytes()).merge(evaluators[0])
    for ask in (
        lambda: fastrec.evaluate(TIED, TRUTH, metric, like=tool),
        lambda: fastrec.evaluate_files(*paths, metric, like=tool),
        whole.result,
    ):
        with pytest.warns(fastrec.FastrecWarning, match=f"^{AS_STRINGS.format(tool)}pass strings") as caught:
            assert ask()["mrr"] == 1.0
        assert len(caught) == 1
    strings = {user: {str(item): score for item, score in own.items()} for user, own in TIED.items()}
    found = fastrec.evaluate(strings, {user: list(map(str, own)) for user, own in TRUTH.items()}, metric, like=tool)
    assert found["mrr"] == 0.75 and found.warnings == []


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ({2: 1.0, 10: 2.0}, {"like": "trec_eval"}),
        ({12: 1.0, 10: 1.0}, {"like": "trec_eval"}),  # the same order as strings
        ({2: 1.0, 10: 1.0}, {"like": "trec_eval", "ties": "id_asc"}),
        ({2: 1.0, 10: 1.0}, {"like": "replay"}),
        ({2: 1.0, 10: 1.0}, {"ties": "id_desc"}),
    ],
)
def test_other_orders_of_integers_do_not_warn(scores, options):
    assert fastrec.evaluate({"ann": scores}, {"ann": [10]}, "mrr", **options).warnings == []


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("ties", ["best", "worst"])
@pytest.mark.parametrize("ids", [[30, 10, 20, 40], ["c", "a", "b", "d"]])
def test_equal_gains_are_in_the_order_of_ids(ties: str, ids: list[Any]) -> None:
    """Metrics of items depended on the order of rows."""
    texts = ["novelty@2", "popularity@1", "gini@3", "mrr"]
    by_rank = sorted(ids[1:]) if ties == "worst" else [ids[0], *sorted(ids[1:])]
    by_rank += ids[:1] if ties == "worst" else []
    history = pd.DataFrame({"user_id": ["v", "v", "w", "x", "x"], "item_id": [*ids[:2], ids[1], *ids[1:3]]})
    sides = {"truth": pd.DataFrame({"user_id": "u", "item_id": ids[:1]}), "history": history, "n_items": 4}
    recs = pd.DataFrame({"user_id": "u", "item_id": by_rank, "score": [4.0, 3.0, 2.0, 1.0]})
    expected = dict(fastrec.evaluate(recs, metrics=texts, **sides))
    for order in itertools.permutations(range(4)):
        recs = pd.DataFrame({"user_id": "u", "item_id": [ids[at] for at in order], "score": 1.0})
        assert dict(fastrec.evaluate(recs, metrics=texts, ties=ties, **sides)) == expected
