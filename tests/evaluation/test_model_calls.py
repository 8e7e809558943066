"""Calls with models, besides their values: messages, tools, groups, comparisons, progress, interrupts."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import fastrec
from support.bits import group_bits, mean_bits, user_bits

SCORES = np.random.default_rng(0).random((6, 9))
USERS = list("abcdef")
TRUTH = {user: [at, at + 2] for at, user in enumerate(USERS)}


def table(users: list[Any], items: list[Any], **more: list[Any]) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table({"user_id": users, "item_id": items, **more})


def evaluate(truth: Any, metrics: Any = "mrr", **call: Any) -> fastrec.Report:
    return fastrec.evaluate_model(SCORES, truth, metrics, **call)


def whole_lists(scores: Any = SCORES) -> Any:
    return np.tile(np.arange(9), 6), np.arange(7) * 9, scores.ravel()


def test_a_table_of_items_smaller_than_the_model_is_told() -> None:
    """The error was about n_items, which the call had not."""
    says = (
        r"^items has 3 rows, but list and truth of user 'a' have 9 items: add what it lacks, or .* as n_items=\.\.\.$"
    )
    with pytest.raises(fastrec.InputError, match=says):
        evaluate(TRUTH, "item_coverage@1", items={"item_id": [3, 1, 2]}, user_ids=USERS)
    assert evaluate(TRUTH, "item_coverage@1", items={"item_id": [3, 1, 2]}, user_ids=USERS, n_items=9)


MIXED = [
    ((["a"], [1]), {}, "user ids must be of one type on all sides, found user_ids: integers, truth: strings"),
    (([1], [1]), {"user_ids": USERS}, "found user_ids: strings, truth: integers"),
    (
        (["a"], [1]),
        {"user_ids": USERS, "exclude": ([1], [2])},
        "found user_ids: strings, truth: strings, exclude: integers",
    ),
    (
        (["a"], [1]),
        {"user_ids": USERS, "by": "plan"},
        r"neither user_ids nor truth has a column 'plan'; its columns are 'item_id', 'user_id'; by=[^;]+ users[^;]+$",
    ),
    ((["a"], [1]), {"user_ids": USERS, "rank": "r"}, "rank='r' names a column of lists: with a model, only a data"),
    ((["a"], [1]), {"user_ids": USERS, "score": "s"}, "score='s' names a column of lists"),
]


@pytest.mark.parametrize(("truth", "call", "message"), MIXED, ids=range(len(MIXED)))
def test_messages_about_frames_name_no_lists(truth: Any, call: dict[str, Any], message: str) -> None:
    if "exclude" in call:
        call = {**call, "exclude": table(*call["exclude"])}
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError), match=message) as raised:
        evaluate(table(*truth), **call)
    assert "recs" not in str(raised.value)


def as_form(form: str, side: dict[Any, list[int]]) -> Any:
    if form == "arrays":
        return list(side.values())
    if form == "dicts":
        return side
    return table([user for user, own in side.items() for _ in own], [item for own in side.values() for item in own])


NUMBERED = dict(enumerate(TRUTH.values()))
OTHER_IDS: list[tuple[str, dict[str, Any], str]] = [
    ("users", {"truth": {**NUMBERED, 6: [1]}}, "truth has user 6, but the 6 users of the model are numbered from 0"),
    ("users", {"truth": {-1: [1]}}, "truth has user -1, but"),
    ("users", {"exclude": {7: [1]}}, "exclude has user 7, but"),
    ("users", {"reference": {9: [1], 2: [2]}}, "reference has user 9, but"),
    ("users", {"candidates": {9: [1], 2: [2]}}, "candidates has user 9, but"),
    (
        "items",
        {"truth": {**NUMBERED, 3: [2, 9]}},
        "truth of user 3 has item 9, but the 9 items of the model are numbered",
    ),
    ("items", {"exclude": {**NUMBERED, 0: [12]}}, "exclude of user 0 has item 12, but"),
    ("items", {"reference": {**NUMBERED, 1: [9]}}, "reference of user 1 has item 9, but"),
]


@pytest.mark.parametrize("form", ["arrays", "dicts", "frames"])
@pytest.mark.parametrize(("which", "sides", "message"), OTHER_IDS, ids=range(len(OTHER_IDS)))
def test_ids_that_are_no_numbers_of_rows_and_columns_are_an_error(
    form: str, which: str, sides: dict[str, Any], message: str
) -> None:
    """Without user_ids and item_ids; otherwise a number would quietly be that of other users or items."""
    if form == "arrays" and which == "users":
        pytest.skip("positions have no ids")
    given = {name: as_form(form, side) for name, side in {"truth": NUMBERED, **sides}.items()}
    call: dict[str, Any] = {"metrics": ["mrr", "overlap@3"] if "reference" in sides else "mrr", **given}
    argument = {"users": "user_ids", "items": "item_ids"}[which]
    with pytest.raises(fastrec.InputError, match=f"{message}.*: name them with {argument}=...$"):
        evaluate(**call)
    ids = {"users": {"user_ids": range(6)}, "items": {"item_ids": range(9)}}[which]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluate(**call, **ids)


@pytest.mark.parametrize("form", ["arrays", "dicts", "frames"])
def test_candidates_of_users_are_items_of_the_model(form: str) -> None:
    given = {"truth": as_form(form, NUMBERED), "candidates": as_form(form, {**NUMBERED, 5: [1, 9]})}
    with pytest.raises(fastrec.InputError, match=r"^candidates of user 5 must be items of the model, found 9$"):
        evaluate(**given, item_ids=range(9), user_ids=None if form == "arrays" else range(6))


def test_items_and_pointers_of_lists_are_long_integers() -> None:
    items, indptr, _ = fastrec.top_items(SCORES, 2, item_ids=np.arange(9, dtype=np.int32))
    assert items.dtype == indptr.dtype == np.int64


def test_ids_of_tables_and_histories_are_columns_too() -> None:
    items = {item: {"popularity": 1.0} for item in range(10)}
    with pytest.raises(
        fastrec.InputError, match=r"^items has item 9, but the 9 items of the model are numbered from 0"
    ):
        evaluate(list(TRUTH.values()), "novelty@3", items=items)
    history = {user: [user, 11] for user in range(6)}
    with pytest.raises(fastrec.InputError, match=r"^history of user 0 has item 11, but"):
        evaluate(NUMBERED, "popularity@3", history=history)
    with pytest.raises(fastrec.InputError, match=r"^exclude of user 2 has item 9, but"):
        fastrec.top_items(SCORES, 2, exclude=[[], [], [9], [], [], []])


def test_items_that_the_model_lacks_are_counted() -> None:
    truth, exclude = [[1, 20], [3], [], [8], [30, 31], [5]], [[0], [20], [], [21], [], []]
    items = {item: {"popularity": 1.0} for item in range(9)}
    for metrics in ("mrr", ["popularity", "mrr"]):
        report = evaluate(truth, metrics, exclude=exclude, item_ids=range(9), items=items)
        assert (report.data["truth_rows_not_scored"], report.data["exclude_rows_not_scored"]) == (3, 2)
        assert "3 rows of truth with an item that the model does not score" in str(report)
    evaluator = fastrec.Evaluator("mrr")
    evaluator.update_model(SCORES[:3], truth[:3], item_ids=range(9))
    evaluator.update_model(SCORES[3:], truth[3:], item_ids=range(9))
    assert evaluator.result().data["truth_rows_not_scored"] == 3
    with pytest.warns(fastrec.FastrecWarning, match=r"^exclude removed no item of the model: do the item ids match\?$"):
        evaluate(list(TRUTH.values()), exclude=[[11]] * 6, item_ids=range(9))


def test_columns_need_a_frame() -> None:
    with pytest.raises(fastrec.InputError, match=r"^user='u' names a column, but no side of the call is a data frame$"):
        evaluate([[1]] * 6, user="u")


@pytest.mark.parametrize("form", ["dicts", "frames"])
def test_rows_of_other_users_are_said(form: str) -> None:
    def side(user: str) -> Any:
        return {user: [3]} if form == "dicts" else table([user], [3])

    given: dict[str, Any] = {"truth": side("a"), "user_ids": USERS}
    for name, metrics in {"exclude": "mrr", "history": "popularity@3", "reference": "overlap@3"}.items():
        with pytest.warns(fastrec.FastrecWarning, match=f"^no user of {name} has a list: do the user ids match"):
            report = evaluate(**given, metrics=[metrics], **{name: side("z")})
        assert len(report.warnings) == 1
        assert not evaluate(**given, metrics=[metrics], **{name: side("b")}).warnings
    both = (
        "no user of exclude has a list: do the user ids match?",
        "no user of history has a list: do the user ids match?",
    )
    with pytest.warns(fastrec.FastrecWarning):
        report = evaluate(**given, metrics="mrr", history=side("z"), exclude="history")
    assert sorted(report.warnings) == [*both]
    assert not evaluate([[1]] * 6, exclude=[[]] * 6).warnings


@pytest.mark.parametrize(
    ("like", "metrics"),
    [
        ("rectools", ["ndcg@3", "recall@3"]),
        ("trec_eval", ["ndcg_cut_3", "recip_rank", "map"]),
        ("implicit", ["ndcg@3"]),
        ("recbole", ["ndcg@3", "mrr@3"]),
    ],
)
def test_definitions_of_a_tool_are_those_for_lists(like: str, metrics: list[str]) -> None:
    tied = np.round(SCORES * 4)
    truth = list(TRUTH.values())
    rule: Any = {"ties": "input"} if like == "recbole" else {}  # without one, it takes no tied lists
    wanted = fastrec.evaluate(whole_lists(tied), truth, metrics, like=like, n_items=9, **rule)
    found = fastrec.evaluate_model(tied, truth, metrics, like=like, **rule)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert found.settings == wanted.settings


def test_groups_weights_and_values_of_users_of_frames() -> None:
    """By columns of the truth, with a weight there, against lists of all items."""
    truth = table(
        [user for user in reversed(USERS) for _ in range(2)],
        [item for user in reversed(USERS) for item in TRUTH[user]],
        plan=[plan for at in range(6) for plan in [f"p{at % 2}"] * 2],
        weight=[weight for at in range(6) for weight in [1.0 + at] * 2],
    )
    lists = table(USERS * 9, [item for item in range(9) for _ in USERS], score=SCORES.T.ravel().tolist())
    call: dict[str, Any] = {"metrics": ["ndcg@3", "mrr"], "by": "plan", "user_weight": "weight", "per_user": True}
    wanted = fastrec.evaluate(lists, truth, **call, n_items=9)
    found = evaluate(truth, **call, user_ids=USERS)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert group_bits(found) == group_bits(wanted) and len(found.groups["plan"]) == 2
    assert user_bits(found) == user_bits(wanted)
    assert found.user_ids.tolist() == wanted.user_ids.tolist() == USERS


def test_a_model_is_compared_with_lists_of_another() -> None:
    other = np.random.default_rng(1).random((6, 9))
    lists = {user: dict(enumerate(other[at].tolist())) for at, user in enumerate(USERS)}
    call: dict[str, Any] = {"metrics": ["ndcg@3", "mrr"], "per_user": True, "n_items": 9}
    reports = {"model": evaluate(TRUTH, user_ids=USERS, **call), "lists": fastrec.evaluate(lists, TRUTH, **call)}
    of_lists = {"model": fastrec.evaluate(whole_lists(), list(TRUTH.values()), user_ids=USERS, **call)}
    found, wanted = fastrec.compare(reports), fastrec.compare({**of_lists, "lists": reports["lists"]})
    assert found.to_dict()["rows"] == wanted.to_dict()["rows"]
    assert len(found.to_dict()["rows"]) == 2


def test_progress_of_a_function() -> None:
    scores, truth = np.random.default_rng(0).random((1000, 20)), [[1]] * 1000
    seen: list[tuple[int, int]] = []
    fastrec.evaluate_model(
        lambda rows: scores[rows], truth, "mrr", progress=lambda *done: seen.append(done), n_threads=1, n_items=20
    )
    assert len(seen) > 2 and seen == sorted(set(seen)) and seen[-1] == (1000, 1000)
    with pytest.raises(fastrec.InputTypeError, match="progress must be callable as"):
        fastrec.evaluate_model(scores, truth, "mrr", progress=3)  # type: ignore[arg-type]


class Stop(BaseException):
    """An interrupt, or an error of a user's function."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Stop, ValueError])
@pytest.mark.parametrize("where", ["progress", "function", "scores"])
def test_a_call_that_ends_early_leaves_no_thread_and_the_threads_of_blas(kind: type[BaseException], where: str) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def state() -> tuple[list[int], int]:
        found = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        return found, threading.active_count()

    seen: list[tuple[int, list[int]]] = []

    def fail(*given: Any) -> Any:
        seen.append((given[-1], state()[0]))
        raise kind

    draw = np.random.default_rng(0)
    scores, truth = draw.random((5000, 50)), draw.integers(0, 50, (5000, 1))
    before = state()
    evaluator = fastrec.Evaluator("mrr", n_items=50)
    model: Any = {"progress": (scores, np.eye(50)), "function": fail, "scores": scores.copy()}[where]
    call: dict[str, Any] = {"progress": fail} if where == "progress" else {}
    if where == "scores":
        model[4000, 3], kind = np.nan, fastrec.InputError
    with pytest.raises(kind):
        fastrec.evaluate_model(model, truth, "mrr", n_items=50, **call)
    with pytest.raises(kind):
        evaluator.update_model(model, truth, **call)
    assert state() == before
    assert where != "progress" or (seen[0][0] == 5000 and set(seen[0][1]) <= {1})
    evaluator.update_model(scores, truth)
    assert evaluator.result()["mrr"] == fastrec.evaluate_model(scores, truth, "mrr")["mrr"]
