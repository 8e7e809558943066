"""A user comes whole in one batch, whatever the types of the ids in which batches name their users."""

import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastrec
from support.arrays import STRINGS

LARGE = 2**63  # more than an int64 holds
Batch = list[Any] | np.ndarray[Any, Any]

# A user of the first batch is in the second, too.
SAME: dict[str, tuple[Batch, Batch]] = {
    "int64 and uint64": ([1, 2], [1, LARGE]),
    "uint64 on both sides": ([1, LARGE], [LARGE, 2]),
    "int32 and uint64": (np.array([1, 2], np.int32), np.array([2, LARGE], np.uint64)),
    "int64 and objects past 64 bits": ([1, 2], [2**64, 2]),
    "uint64 and objects past 64 bits": ([1, LARGE], [2**64, LARGE]),
    "int64 and objects from negative to large": ([-1, 2], [LARGE, -1]),
    "uint64 and objects from negative to large": ([1, LARGE], [-1, LARGE]),
    "objects past 64 bits": ([2**64, 1], [2, 2**64]),
    "integers of Python and of NumPy": ([1, 2**70], [np.int64(1), np.uint64(7)]),
    "texts, and objects with one that ends in NUL": (["a", "b"], ["b\0", "a"]),
    "texts that end in NUL": (["a", "b\0"], ["b", "b\0"]),
    "texts of two widths": (["a", "bb"], ["a long one", "a"]),
    "texts of Python and of NumPy": (["a", "b\0"], [np.str_("a"), np.str_("c")]),
    "bytes": ([b"a", b"b"], [b"c", b"a"]),
    "tuples": ([(1, "a"), (2, "a")], [(np.int64(2), "a"), (3, "a")]),
}
# All users differ.
OTHERS: dict[str, tuple[Batch, Batch]] = {
    "integers that one double stands for": ([2**53, 2**60], [2**53 + 1, 2**60 + 1, LARGE]),
    "large integers that one double stands for": ([1, LARGE], [2, LARGE + 1]),
    "texts with and without NUL": (["b"], ["b\0"]),
    "texts without and with NUL": (["b\0", "c"], ["b"]),
}
# The ids are of two types, so a user could be in both batches.
MIXED: dict[str, tuple[Batch, Batch]] = {
    "integers and their digits": ([1, 2], ["1", "2"]),
    "large integers and their digits": ([2**70], [str(2**70)]),
    "texts and bytes": (["a"], [b"a"]),
    "texts that end in NUL and bytes": (["a\0"], [b"a\0"]),
    "an integer and a tuple of it": ([1], [(1,)]),
}


def by_argument(evaluator: Any, ids: Batch) -> None:
    evaluator.update([[1]] * len(ids), [[1]] * len(ids), user_ids=ids)


def by_dict(evaluator: Any, ids: Batch) -> None:
    own = ids if isinstance(ids, list) else ids.tolist()
    lists = {user: [1] for user in own}
    evaluator.update(lists, lists)


def of_rows(evaluator: Any, ids: Batch) -> None:
    n = len(ids)
    evaluator.update([1, 0] * n, [0.5, 0.25] * n, np.arange(n + 1) * 2, user_ids=ids)


FORMS: dict[str, tuple[Callable[[], Any], Callable[[Any, Batch], None]]] = {
    "user_ids": (lambda: fastrec.Evaluator("recall@1"), by_argument),
    "dicts": (lambda: fastrec.Evaluator("recall@1"), by_dict),
    "scored rows": (lambda: fastrec.ScoreEvaluator("gauc"), of_rows),
}


def one_after_the_other(make: Callable[[], Any], add: Any, batches: list[Batch]) -> Any:
    evaluator = make()
    for batch in batches:
        add(evaluator, batch)
    return evaluator


def merged(make: Callable[[], Any], add: Any, batches: list[Batch]) -> Any:
    parts = [one_after_the_other(make, add, [batch]) for batch in batches]
    return functools.reduce(lambda one, other: one.merge(other), parts)


def sent(make: Callable[[], Any], add: Any, batches: list[Batch]) -> Any:
    """All but the last batch travel as bytes, if ids can be kept so."""
    evaluator = one_after_the_other(make, add, batches[:-1])
    if all(isinstance(user, str | int) for batch in batches[:-1] for user in batch):
        evaluator = type(evaluator).from_bytes(evaluator.to_bytes())
    else:
        evaluator = pickle.loads(pickle.dumps(evaluator))
    add(evaluator, batches[-1])
    return evaluator


WAYS = (one_after_the_other, merged, sent)


@pytest.mark.thorough(except_for="user_ids")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", SAME)
def test_a_user_of_two_batches_is_refused_whatever_the_types_of_ids(case: str, form: str, way: Any) -> None:
    first, second = SAME[case]
    for batches in ([first, second], [second, first], [first, [], second]):
        with pytest.raises(fastrec.InputError, match="pass all rows of a user in one update"):
            way(*FORMS[form], batches)


@pytest.mark.thorough(except_for="user_ids")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", OTHERS)
def test_other_users_are_taken_whatever_the_types_of_ids(case: str, form: str, way: Any) -> None:
    first, second = OTHERS[case]
    for batches in ([first, second], [second, first]):
        report = way(*FORMS[form], batches).result()
        assert report.users["total"] == len(first) + len(second)
        assert report.user_ids is not None
        assert report.user_ids.tolist() == [*batches[0], *batches[1]]


@pytest.mark.thorough(except_for="user_ids")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", MIXED)
def test_ids_of_two_types_are_refused_as_in_one_call(case: str, form: str, way: Any) -> None:
    """They counted 1 and "1" as two users."""
    first, second = MIXED[case]
    for batches in ([first, second], [second, first], [first, [], second]):
        with pytest.raises(fastrec.InputTypeError, match="user ids must be of one type on all sides, found "):
            way(*FORMS[form], batches)


def test_the_ids_of_batches_are_joined_as_those_of_one_call() -> None:
    """Reports of the same users can be compared, however these were cut into batches."""
    users = {1: [1], 2: [1], LARGE: [1]}
    cut = fastrec.Evaluator("recall@1", per_user=True)
    cut.update({1: [1], 2: [1]}, {1: [1], 2: [1]})
    cut.update({LARGE: [1]}, {LARGE: [1]})
    whole = fastrec.evaluate(users, users, "recall@1", per_user=True)
    joined = cut.result()
    assert joined.user_ids is not None
    assert whole.user_ids is not None
    assert joined.user_ids.dtype == whole.user_ids.dtype == np.uint64
    assert joined.user_ids.tolist() == whole.user_ids.tolist() == list(users)
    compared = fastrec.compare({"cut": joined, "whole": whole})
    assert compared.rows[0].users == 3


def test_a_batch_without_users_leaves_the_type_of_ids() -> None:
    evaluator = fastrec.Evaluator("recall@1")
    evaluator.update([], [], user_ids=[])
    evaluator.update([[1]], [[1]], user_ids=["a"])
    ids = evaluator.result().user_ids
    assert ids is not None
    assert ids.dtype.kind == "U"


@pytest.mark.skipif(not STRINGS, reason="NumPy has strings of variable width from 2.0 on")
def test_texts_of_numpy_that_end_in_nul_keep_it() -> None:
    """Those of variable width keep it; NumPy drops it from those of fixed width beforehand."""
    ids = np.array(["b", "b\0"], *STRINGS)
    report = fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", user_ids=ids)
    assert report.user_ids is not None
    assert report.user_ids.tolist() == ["b", "b\0"]


def test_numpy_integers_do_not_wrap_around_beside_large_ones() -> None:
    ids = [np.int64(-1), 2**63]
    report = fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", user_ids=ids)
    assert report.user_ids is not None
    assert report.user_ids.tolist() == [-1, 2**63]


def test_batches_of_unlike_ids_are_sent_and_remembered() -> None:
    """Integers past 64 bits, strings that end in NUL, and those of NumPy, which pickles without the NUL."""
    for batches in (([1, 2], [np.int64(3), 2**70]), (["a", "b"], [np.str_("c\0")])):
        evaluator = one_after_the_other(*FORMS["user_ids"], batches)
        for again in (fastrec.Evaluator.from_bytes(evaluator.to_bytes()), pickle.loads(pickle.dumps(evaluator))):
            found = again.result().user_ids
            assert found is not None
            assert found.tolist() == [user for batch in batches for user in batch]
            for known in found.tolist():
                with pytest.raises(fastrec.InputError, match="pass all rows of a user in one update"):
                    by_argument(again, [known])
