"""Evaluators merge only if they read the same table of items, the same history and the same number of users.

A history by position serves one batch.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import fastrec

ITEMS = {
    "item_id": [3, 1, 2],
    "popularity": [1, 2, 3],
    "category": [["x"], ["x", "y"], ["y"]],
    "features": [[0.0, 1.0], [1.0, 2.0], [2.0, 0.5]],
}
HISTORY = {"a": [1, 2], "b": [1, 3], "c": [2]}


def part(user: Any, metric: str, **sides: Any) -> fastrec.Evaluator:
    evaluator = fastrec.Evaluator([metric], **sides)
    evaluator.update({user: [1, 2]}, {user: [1]})
    return evaluator


def sent(evaluator: fastrec.Evaluator) -> fastrec.Evaluator:
    return fastrec.Evaluator.from_bytes(evaluator.to_bytes())


def merged(first: Any, second: Any) -> list[float]:
    """Merge two evaluators directly, from bytes, and into an empty one; each way gives the same."""
    found = []
    for one, other in ((first(), second()), (sent(first()), sent(second())), (first(), sent(second()))):
        report = one.merge(other).result()
        found += [report[name] for name in report]
    assert len(set(found)) == 1
    return found


def changed(column: str, *values: Any) -> dict[str, Any]:
    return ITEMS | {column: list(values)}


@pytest.mark.parametrize(
    ("metric", "mine", "theirs", "match"),
    [
        (
            "novelty@2",
            {"items": ITEMS, "n_users": 5},
            {"items": ITEMS, "n_users": 500},
            "equal n_users, found 5 here and 500",
        ),
        ("novelty@2", {"history": HISTORY}, {"history": HISTORY | {"d": [1]}}, "same history"),
        ("novelty@2", {"history": HISTORY}, {"history": {"a": [1, 2], "b": [1, 3], "c": [2, 3]}}, "same history"),
        ("novelty@2", {"items": ITEMS, "n_users": 3}, {"history": HISTORY}, "only those (here|there) read"),
        ("item_coverage(denominator=history)@2", {"history": HISTORY}, {"history": {"a": [1, 2]}}, "same history"),
        ("popularity@2", {"items": ITEMS}, {"items": changed("popularity", 1, 2, 4)}, "items column 'popularity'"),
        ("popularity@2", {"items": ITEMS}, {"items": changed("item_id", 1, 3, 2)}, "items column 'popularity'"),
        ("category_coverage@2", {"items": ITEMS}, {"items": changed("category", "x", "x", "y")}, "column 'category'"),
        (
            "intra_list_diversity@2",
            {"items": ITEMS},
            {"items": changed("features", [0.0, 1.0], [1.0, 2.0], [2.0, 0.25])},
            "column 'features'",
        ),
        (
            "rsp@1",
            {"items": changed("segment", "head", "tail", "tail")},
            {"items": ITEMS, "history": HISTORY},
            "only those (here|there) read",
        ),
    ],
)
def test_other_sides_do_not_merge(metric: str, mine: Any, theirs: Any, match: str) -> None:
    whole, n_items = part("a", metric, **mine), 3 if "items" in mine else None
    if ("items" in mine) != ("items" in theirs):
        theirs = theirs | {"n_items": n_items}
    for other in (part("b", metric, **theirs), sent(part("b", metric, **theirs))):
        for one in (whole, sent(whole), fastrec.Evaluator([metric], n_items=n_items).merge(whole)):
            before = one.result().to_dict()
            with pytest.raises(fastrec.InputError, match=f"^merge needs .*{match}"):
                one.merge(other)
            assert one.result().to_dict() == before


PART_OF_A_PROCESS = """
import sys
import fastrec
shop = {"item_id": [1, 2], "category": [{"x", "y", "z", "drama", "war"}, {"war", "y"}]}
evaluator = fastrec.Evaluator("category_coverage@2", items=shop)
evaluator.update({sys.argv[1]: [1, 2]})
sys.stdout.buffer.write(evaluator.to_bytes())
"""


def test_sets_of_categories_merge_from_two_processes() -> None:
    states = [
        subprocess.run(
            [sys.executable, "-c", PART_OF_A_PROCESS, user],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for user, seed in (("a", "1"), ("b", "2"))
    ]
    first, second = map(fastrec.Evaluator.from_bytes, states)
    assert first.merge(second).result()["category_coverage@2"] == 1.0


def test_the_order_of_the_categories_of_an_item_does_not_matter() -> None:
    turned = ITEMS | {"category": [own[::-1] for own in ITEMS["category"]]}
    assert merged(
        lambda: part("a", "category_coverage@2", items=ITEMS), lambda: part("b", "category_coverage@2", items=turned)
    )


@pytest.mark.parametrize("metric", ["novelty@2", "category_coverage@2", "intra_list_diversity@2", "popularity@2"])
def test_the_order_of_rows_and_the_form_do_not_matter(metric: str) -> None:
    turned = {name: values[::-1] for name, values in ITEMS.items()}
    by_item = {
        item: {name: ITEMS[name][at] for name in ITEMS if name != "item_id"} for at, item in enumerate([3, 1, 2])
    }
    forms = [ITEMS, turned, by_item, pd.DataFrame(turned)]
    found: set[float] = set()
    for items in forms:
        found |= set(
            merged(
                lambda: part("a", metric, items=ITEMS, n_users=5),
                lambda items=items: part("b", metric, items=items, n_users=5),
            )
        )
    assert len(found) == 1  # the same from every form


def test_forms_of_columns_with_one_content() -> None:
    names = [f"item {at}" for at in range(50)]
    chance = random.Random(0)
    numbers, labels = np.arange(50), [chance.choice("xyz") for _ in names]
    vectors = np.eye(50)[:, :8]
    items = {"item_id": names, "popularity": numbers + 1, "category": labels, "features": vectors}
    order = chance.sample(range(50), 50)
    ids = [names[at] for at in order]
    columns = {"popularity": numbers[order] + 1.0, "category": [labels[at] for at in order]}
    frame = pl.DataFrame({"item_id": ids, **columns, "features": vectors[order].tolist()})
    sparse_items = items | {"features": sparse.csr_matrix(vectors)}
    turned_sparse = {"item_id": ids, "features": sparse.csr_matrix(vectors[order])}

    def of(user: str, table: Any, metric: str) -> fastrec.Evaluator:
        evaluator = fastrec.Evaluator(metric, items=table, n_users=60)
        evaluator.update({user: names[3:6]})
        return evaluator

    for metric in ("novelty@2", "category_coverage@2", "intra_list_diversity@2"):
        for other in (frame, frame.to_pandas(), frame.to_arrow()):
            assert merged(lambda: of("a", items, metric), lambda: of("b", other, metric))  # noqa: B023 - called at once
    merged(
        lambda: of("a", sparse_items, "intra_list_diversity@2"),
        lambda: of("b", turned_sparse, "intra_list_diversity@2"),
    )


def test_the_history_may_be_in_any_order() -> None:
    turned = {user: HISTORY[user][::-1] for user in reversed(HISTORY)}
    frame = pd.DataFrame([(user, item) for user, items in turned.items() for item in items], columns=["u", "i"])
    first = part("a", "novelty@2", history=HISTORY)
    merged(lambda: part("a", "novelty@2", history=HISTORY), lambda: part("b", "novelty@2", history=turned))
    other = fastrec.Evaluator("novelty@2", history=frame)
    other.update(pd.DataFrame({"u": ["d"], "i": [1], "rank": [1]}), user="u", item="i", rank="rank")
    assert sent(first).merge(other).result().users["total"] == 2


@pytest.mark.parametrize(
    ("metric", "mine", "theirs"),
    [
        ("popularity@2", {"items": ITEMS, "n_users": 5}, {"items": changed("category", "z", "z", "z"), "n_users": 6}),
        ("novelty@2", {"history": HISTORY, "n_users": 5}, {"history": HISTORY}),
        (
            "novelty(column=popularity)@2",
            {"items": ITEMS, "n_users": 5, "history": {"a": [1]}},
            {"items": ITEMS, "n_users": 5, "history": {"b": [2]}},
        ),
        ("repeat_ratio@2", {"history": {"a": [1]}}, {"history": {"b": [2]}}),
    ],
)
def test_what_no_metric_reads_may_differ(metric: str, mine: Any, theirs: Any) -> None:
    """A part may have the history of its own users, unless its counts are read."""
    one, other = part("a", metric, **mine), part("b", metric, **theirs)
    assert sent(one).merge(sent(other)).merge(part("c", metric, **mine)).result().users["total"] == 3


def test_updates_after_merging_need_the_same_sides() -> None:
    evaluator = fastrec.Evaluator("novelty@2", history=HISTORY).merge(part("b", "novelty@2", history={"b": [1, 2, 3]}))
    with pytest.raises(fastrec.InputError, match="same history"):
        evaluator.update({"a": [1]})
    assert evaluator.result().users["total"] == 1
    evaluator.reset()
    evaluator.update({"a": [1]})
    assert evaluator.merge(part("b", "novelty@2", history=HISTORY)).result().users["total"] == 2


def test_evaluation_without_merging_makes_no_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrec.evaluation import lists

    asked: list[Any] = []
    monkeypatch.setattr(lists, "digest_of_counts", lambda *side: asked.append(side) or "digest")
    report = fastrec.evaluate({"a": [1, 2]}, None, "novelty@2", history=HISTORY, per_user=True)
    evaluator = part("a", "novelty@2", history=HISTORY)
    evaluator.update({"b": [1]})
    assert evaluator.result().users["total"] == 2 and report.has_values and not asked
    assert evaluator.to_bytes() and evaluator.to_bytes() and len(asked) == 1


@pytest.mark.parametrize("metric", ["gini@2", "item_coverage@2"])
def test_items_of_two_types_do_not_mix(metric: str) -> None:
    def of(user: str, *items: Any) -> fastrec.Evaluator:
        evaluator = fastrec.Evaluator(metric, n_items=9)
        evaluator.update({user: list(items)})
        return evaluator

    whole, names = of("a", 1, 2), of("b", "1", "2")
    whole.update({"c": []})
    with pytest.raises(fastrec.InputTypeError, match="one type in all batches, found strings after integers"):
        whole.update({"d": ["1"]})
    names.update({"c": []})
    with pytest.raises(fastrec.InputTypeError, match="found integers after strings"):
        sent(names).update({"d": [1]})
    for one in (whole, sent(whole), of("e").merge(whole)):
        for other in (names, sent(names)):
            with pytest.raises(fastrec.InputError, match="having strings as item ids is False here and True there"):
                one.merge(other)
    for own in (names, sent(names)):  # comparing them with bytes raised a TypeError
        with pytest.raises(fastrec.InputTypeError, match="one type in all batches, found bytes after strings"):
            own.update({"d": [b"1"]})
        with pytest.raises(fastrec.InputError, match="having bytes as item ids is False here and True there"):
            own.merge(of("d", b"1"))
        assert own.result().users["total"] == 2
    assert of("a", b"1").merge(of("b", b"2")).result()[metric] == of("a", 1).merge(of("b", 2)).result()[metric]


LISTS = [[1], [2]]  # a history by position
BY_POSITION: list[Any] = [
    LISTS,
    (np.array([1, 2]), np.array([0, 1, 2])),
    np.array([[1], [2]]),
    sparse.csr_array(np.array([[0, 1, 0], [0, 0, 1]])),
    pd.Series(LISTS),
    pl.Series(LISTS),
    fastrec.Ragged(np.array([1, 2]), np.array([0, 1, 2])),
]


def add(evaluator: fastrec.Evaluator, *, by_model: bool = False) -> None:
    if by_model:
        evaluator.update_model(np.eye(2, 9), [[5], [6]], exclude="history")
    else:
        evaluator.update([[1, 5], [2, 6]], [[5], [6]], exclude="history")


@pytest.mark.parametrize("history", BY_POSITION, ids=lambda history: type(history).__name__)
@pytest.mark.parametrize("by_model", [False, True])
def test_a_history_by_position_serves_one_batch(history: Any, *, by_model: bool) -> None:
    """It gave the histories of the first users to each batch of that length."""
    evaluator = fastrec.Evaluator("recall@1", n_items=9, history=history)
    add(evaluator)
    with pytest.raises(fastrec.InputError, match=r"^history by position holds the users of one batch, found a second"):
        add(evaluator, by_model=by_model)
    assert evaluator.result()["recall@1"] == 1.0
    evaluator.reset()
    add(evaluator, by_model=by_model)
    assert evaluator.result().users["total"] == 2


def test_a_history_by_position_serves_one_of_merged_evaluators() -> None:
    def of(history: Any) -> fastrec.Evaluator:
        evaluator = fastrec.Evaluator("recall@1", history=history)
        add(evaluator)
        return evaluator

    with pytest.raises(fastrec.InputError, match=r"^history by position .*, found it in both evaluators: pass dicts"):
        of(LISTS).merge(of(LISTS))
    whole = of(LISTS).merge(of([[1], [2]]))  # a part may have the history of its own users
    assert whole.result().users["total"] == 4
    merged_first = fastrec.Evaluator("recall@1", history=LISTS).merge(of(LISTS))
    with pytest.raises(fastrec.InputError, match="found a second batch"):
        add(merged_first)


def test_a_history_by_user_serves_all_batches() -> None:
    frame = pd.DataFrame({"user_id": ["a", "b"], "item_id": [1, 2]})
    for history, as_side in (({"a": [1], "b": [2]}, dict), (frame, as_frame), (pl.from_pandas(frame).lazy(), as_frame)):
        evaluator = fastrec.Evaluator("recall@1", history=history)
        other = fastrec.Evaluator("recall@1", history=history)
        for one, user, items in ((evaluator, "a", [1, 5]), (other, "b", [2, 6])):
            one.update(as_side({user: items}), as_side({user: items[1:]}), exclude="history")
        assert evaluator.merge(other).result()["recall@1"] == 1.0


def as_frame(lists: dict[str, list[int]]) -> pd.DataFrame:
    rows = [(user, item, rank) for user, items in lists.items() for rank, item in enumerate(items, start=1)]
    return pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
