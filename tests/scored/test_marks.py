"""Pairs of rows that are looked up among those of the rarer class: those of the sorted rows, on any threads."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import InputError
from fastrec.inputs import rows
from fastrec.runtime.launcher import Launcher
from fastrec.scored import auc, influence, marks
from fastrec.scored.keys import sort_rows
from fastrec.scored.owned_keys import pairs_of_owners
from fastrec.scored.score_counts import ScoreCounts

N = 400
KINDS: dict[str, Callable[[Any], Any]] = {
    "all differ": lambda draw: draw.normal(size=N),
    "ties": lambda draw: np.round(draw.normal(size=N), 1),
    "few": lambda draw: draw.integers(0, 3, N) / 2,
    "near 0 and far": lambda draw: draw.normal(size=N) * 10.0 ** draw.integers(-40, 30, N),
    "ends": lambda draw: draw.choice([-np.inf, -0.0, 0.0, np.inf, 1.0], N),
    "one": lambda draw: np.zeros(N),
}


def make_rows(kind: str, share: float, dtype: Any) -> tuple[Any, Any]:
    draw = np.random.default_rng(len(kind))
    return (draw.random(N) < share).astype(np.int8), KINDS[kind](draw).astype(dtype)


def twice_pairs(labels: Any, scores: Any) -> list[int]:
    """Return twice the ordered pairs that each row is in, by comparing all pairs."""
    found = []
    for label, score in zip(labels, scores, strict=True):
        others = scores[labels != label]
        right = others < score if label else others > score
        found.append(2 * int(right.sum()) + int((others == score).sum()))
    return found


@pytest.fixture(params=[1, 3])
def n_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(marks, "SMALL_ROWS", 1)
    threads: int = request.param
    return threads


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_rows_are_those_of_comparing_all(kind: str, share: float, dtype: Any, n_threads: int) -> None:
    labels, scores = make_rows(kind, share, dtype)
    pairs, own = marks.pairs_of_rows(labels, scores, n_threads)
    expected = twice_pairs(labels, scores)
    assert own.dtype == np.uint32
    assert own.tolist() == expected
    assert pairs == (sum(np.array(expected)[labels == 1]), labels.sum(), N - labels.sum())


@pytest.mark.parametrize("lengths", ["one", "few", "many", "none and all"])
@pytest.mark.parametrize("kind", KINDS)
def test_effects_of_owners_are_those_of_sorted_rows(
    kind: str, lengths: str, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks.kernels, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(Launcher, "way", "interpreted")
    labels, scores = make_rows(kind, 0.2, np.float64)
    draw = np.random.default_rng(5)
    some = draw.integers(0, N + 1, 150)
    inner = {"one": np.arange(1, N), "few": some, "many": [9, 211], "none and all": [0, 0, N, N]}
    indptr = np.concatenate([[0], np.sort(inner[lengths]), [N]]).astype(np.int64)
    found = marks.owned_rows(labels, scores, marks.Owners.of(indptr), n_threads)
    rows = sort_rows(labels, scores, n_threads)
    classes = np.array([np.bincount(own, minlength=2) for own in np.split(labels, indptr[1:-1])])
    sums = pairs_of_owners(labels, scores, indptr, 0, n_threads)[1]
    expected = influence.effects_on_auc(sums, 0, classes, rows.pairs())
    assert np.array_equal(found.effects, expected)
    assert found.owners_by_class == np.count_nonzero(classes, axis=0).tolist()
    assert found.pairs() == rows.pairs()
    for own, other in zip(found.runs(), rows.runs(), strict=True):
        assert np.array_equal(own, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_and_interpreted_kernels_agree(compiled: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, scores = make_rows("ties", 0.3, dtype)
    way = "compiled" if compiled else "interpreted"
    monkeypatch.setattr(Launcher, "way", way)
    assert marks.pairs_of_rows(labels, scores, 1)[1].tolist() == twice_pairs(labels, scores)
    owners = marks.Owners.of(np.arange(0, N + 1, 8))
    found = marks.owned_rows(labels, scores, owners, 1)
    assert sum(found.effects) == pytest.approx(0, abs=1e-12)


def test_no_rows() -> None:
    none = np.zeros(0, np.int8), np.zeros(0)
    assert marks.pairs_of_rows(*none, 2)[0] == (0, 0, 0)
    found = marks.owned_rows(*none, marks.Owners.of(np.zeros(3, np.int64)), 2)
    assert found.effects.tolist() == [0.0, 0.0] and found.owners_by_class == [0, 0]


def test_owners_need_not_begin_at_row_0() -> None:
    labels, scores = make_rows("ties", 0.3, np.float32)
    indptr = np.array([0, 3, 50, 51, N])
    whole = marks.owned_rows(labels, scores, marks.Owners.of(indptr), 1)
    part = marks.owned_rows(labels, scores, marks.Owners.of(indptr + 1000), 1)
    assert np.array_equal(whole.effects, part.effects)


@pytest.mark.parametrize("at", [0, 5, 399])
@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000001])
def test_the_first_nan_is_named(at: int, bits: int, n_threads: int) -> None:
    labels, scores = make_rows("all differ", 0.3, np.float64)
    scores[[at, 399]] = np.array([bits], np.uint64).view(np.float64)
    with pytest.raises(InputError, match=rf"must not be NaN, found NaN.* row {at}\b"):
        marks.pairs_of_rows(labels, scores, n_threads)


def test_rows_are_sorted_where_the_rarer_class_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, scores = make_rows("ties", 0.4, np.float64)
    expected = marks.pairs_of_rows(labels, scores, 1)
    monkeypatch.setattr(marks, "MAX_ROWS_OF_MARKS", min(labels.sum(), N - labels.sum()) - 1)
    pairs, own = marks.pairs_of_rows(labels, scores, 1)
    assert own.dtype == np.int64  # of the other way
    assert pairs == expected[0] and np.array_equal(own, expected[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_effects_have_the_same_bits_either_way(kind: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, scores = make_rows(kind, share, np.float64)
    indptr = np.array([7, 7, 20, 21, 300, N + 7])
    one = marks.owned_rows(labels, scores, marks.Owners.of(indptr), 1)
    monkeypatch.setattr(marks, "MAX_ROWS_OF_MARKS", -1)
    other = marks.owned_rows(labels, scores, marks.Owners.of(indptr), 2)
    assert np.array_equal(one.effects, other.effects)
    assert one.pairs() == other.pairs() and one.owners_by_class == other.owners_by_class


def test_rows_are_sorted_where_many_scores_are_close_together() -> None:
    labels = np.tile([0, 1, 1], 20_000).astype(np.int8)
    scores = 0.5 + np.random.default_rng(1).permutation(len(labels)) * 1e-13
    assert marks.pairs_of_rows(labels, scores, 2)[1].dtype == np.int64  # of the other way
    assert marks.pairs_of_rows(labels, scores, 2)[0] == sort_rows(labels, scores, 1).pairs()


def test_rows_between_crowded_marks_are_found() -> None:
    """Of most marks, each has its own bins; some share one, and most other rows are among these."""
    draw = np.random.default_rng(2)
    crowd = 0.5 + np.arange(60) * 1e-12
    own = np.concatenate([draw.random(4000), crowd])
    others = np.concatenate([draw.choice(crowd, 5000) + draw.choice([0.0, 5e-13], 5000), draw.random(500)])
    scores = np.concatenate([own, others])
    labels = np.repeat([1, 0], [len(own), len(others)]).astype(np.int8)
    pairs, found = marks.pairs_of_rows(labels, scores, 1)
    expected, sums = pairs_of_owners(labels, scores, np.arange(len(scores) + 1), 0, 1)
    assert found.dtype == np.uint32
    assert np.array_equal(found, sums) and pairs == expected


def test_a_state_of_owned_rows_merges_like_one_of_sorted_rows() -> None:
    labels, scores = make_rows("ties", 0.3, np.float64)
    half, indptr = N // 2, np.arange(0, N // 2 + 1, 10)
    whole, found, other = ScoreCounts(), ScoreCounts(), ScoreCounts()
    whole.add(labels, scores)
    for state, part in ((found, slice(half)), (other, slice(half, N))):
        state.add(labels[part], scores[part], owners=marks.Owners.of(indptr))
    assert found.owners_by_class is not None
    found.merge(other)
    assert found.owners_by_class is None
    assert found.auc() == whole.auc()
    for name in ("average_precision", "ks", "auc_error"):
        assert getattr(found, name)() == getattr(whole, name)()
    assert found.pack().keys() == whole.pack().keys()
    assert all(np.array_equal(own, whole.pack()[name]) for name, own in found.pack().items())


@pytest.mark.parametrize(("first", "second"), [(np.uint32, np.uint32), (np.uint32, np.int64), (np.int64, np.int64)])
def test_squares_of_differences_are_exact(first: Any, second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks.kernels, "ROWS_PER_SUM", 50)
    draw = np.random.default_rng(3)
    top = {np.uint32: 2**32, np.int64: 2**41}
    one, other = (draw.integers(0, top[kind], N).astype(kind) for kind in (first, second))
    labels = (draw.random(N) < 0.4).astype(np.int8)
    expected = [
        sum((int(a) - int(b)) ** 2 for a, b, own in zip(one, other, labels, strict=True) if own == label)
        for label in (0, 1)
    ]
    assert marks.squared_differences(labels, one, other, 2) == expected


def test_the_test_of_two_areas_has_the_same_bits_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, one = make_rows("ties", 0.4, np.float64)
    other = make_rows("all differ", 0.4, np.float64)[1]
    expected = fastrec.auc_test(labels, one, other)
    monkeypatch.setattr(marks, "MAX_ROWS_OF_MARKS", 0)
    assert fastrec.auc_test(labels, one, other) == expected
    order = np.random.default_rng(0).permutation(N)
    assert fastrec.auc_test(labels[order], one[order], other[order]) == expected


@pytest.mark.parametrize(("threads", "side_by_side"), [(1, 0), (2, 1), (3, 1), (4, 0)])
def test_both_models_of_the_test_are_looked_up_at_once(
    threads: int, side_by_side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, one = make_rows("ties", 0.4, np.float64)
    other = make_rows("all differ", 0.4, np.float64)[1]
    expected = fastrec.auc_test(labels, one, other)
    run = mock.Mock(wraps=auc.run_side_by_side)
    monkeypatch.setattr(auc, "run_side_by_side", run)
    monkeypatch.setattr(auc, "no_threads_if_small", lambda *_: threads)
    assert fastrec.auc_test(labels, one, other) == expected
    assert run.call_count == side_by_side
    monkeypatch.setattr(rows, "ROWS_SIDE_BY_SIDE", 2 * N - 1)
    assert fastrec.auc_test(labels, one, other) == expected
    assert run.call_count == side_by_side
    with pytest.raises(InputError, match=r"^scores_b must not be NaN, found NaN at row 3$"):
        fastrec.auc_test(labels, one, np.where(np.arange(N) == 3, np.nan, other))
