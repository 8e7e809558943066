"""Grouping of rows by user: against plain Python, with the compiled way forced on small inputs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrec.inputs import grouping
from fastrec.inputs.grouping import (
    find_blocks,
    find_users,
    group_rows,
    join_users,
    order_by_rank,
    order_of_ids,
    take_blocks,
)

Array = np.ndarray[Any, Any]
LOW, HIGH = -(2**63), 2**63 - 1


@pytest.fixture(params=["as it is", "counted", "kernels", "wide codes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run small inputs normally, or as if they were large."""
    if request.param != "as it is":
        monkeypatch.setattr(grouping, "SMALL_ROWS", 1)
    if request.param in ("kernels", "wide codes"):
        monkeypatch.setattr(grouping, "ROWS_TO_COUNT", 0)
        monkeypatch.setattr(grouping, "ROWS_PER_RANGE", 4)
        monkeypatch.setattr(grouping, "ROWS_PER_BUCKET", 2)
    if request.param == "wide codes":
        monkeypatch.setattr(grouping, "WIDEST_CODE", 1)
    return str(request.param)


def as_lists(keys: Array, values: Array) -> dict[int, list[Any]]:
    """Return the values of each key, in their order: the oracle."""
    lists: dict[int, list[Any]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        lists.setdefault(key, []).append(value)
    return lists


def check(keys: Array, n_threads: int) -> grouping.Grouping:
    found = group_rows(keys, n_threads)
    rows = np.arange(len(keys))
    wanted = as_lists(keys, rows)
    assert found.indptr[0] == 0
    assert found.indptr[-1] == len(keys)
    assert sorted(found.ids.tolist()) == sorted(wanted)
    for kind in (np.int64, np.float32, np.int8):
        taken = found.take(rows.astype(kind))
        assert taken.dtype == kind
        for user, (first, last) in enumerate(zip(found.indptr[:-1], found.indptr[1:], strict=True)):
            assert taken[first:last].tolist() == np.array(wanted[int(found.ids[user])]).astype(kind).tolist()
    if found.mover is None:
        assert found.take(rows) is rows
    else:
        assert (found.ids[1:] > found.ids[:-1]).all()
    assert [found.origin(row) for row in range(len(keys))] == found.take(rows).tolist()
    return found


keys_of_rows = st.one_of(
    st.lists(st.integers(0, 5)),
    st.lists(st.integers(-3, 40)),
    st.lists(st.sampled_from([LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH])),
    st.lists(st.integers(LOW, HIGH)),
    st.lists(st.integers(-(2**31), 2**31 - 1)),
)


@pytest.mark.thorough
@pytest.mark.parametrize("n_threads", [1, 3])
@given(keys=keys_of_rows)
@settings(max_examples=60, deadline=None, suppress_health_check=["function_scoped_fixture"])
def test_any_keys(way: str, n_threads: int, keys: list[int]) -> None:
    check(np.array(keys, np.int64), n_threads)
    if all(abs(key) < 2**31 for key in keys):
        check(np.array(keys, np.int32), n_threads)


@pytest.mark.thorough(except_for="as it is")
@given(lengths=st.lists(st.integers(1, 30), max_size=12), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=["function_scoped_fixture"])
def test_runs_of_keys(way: str, lengths: list[int], data: st.DataObject) -> None:
    users = data.draw(st.lists(st.integers(0, 6), min_size=len(lengths), max_size=len(lengths)))
    keys = np.repeat(np.array(users, np.int64), lengths)
    found = check(keys, 2)
    runs = 1 + int((keys[1:] != keys[:-1]).sum()) if len(keys) else 0
    if runs == len(set(users)) and runs * grouping.LONG_RUN <= len(keys):
        assert found.mover is None


@pytest.mark.parametrize("ids", [[1, 2, 3], [3, 1, 2], [HIGH, LOW, 0]])
def test_grouped_rows_are_not_copied(way: str, ids: list[int]) -> None:
    keys = np.repeat(np.array(ids), 20)
    found = group_rows(keys, 2)
    assert found.ids.tolist() == ids
    assert found.indptr.tolist() == [0, 20, 40, 60]
    items = np.arange(60)
    assert found.take(items) is items


def test_no_rows() -> None:
    found = group_rows(np.zeros(0, np.int64), 2)
    assert found.indptr.tolist() == [0]
    assert len(found.ids) == 0


def large_keys(kind: str) -> Array:
    rng = np.random.default_rng(5)
    users = {
        "dense": rng.integers(0, 3_000, 600_000),
        "dense, counted": rng.integers(-9, 3_000, 400_000),
        "widest, counted": np.append(rng.integers(HIGH - 65_535, HIGH, 399_998), [HIGH, HIGH - 65_535]),
        "narrow, counted": rng.integers(-900, 3_000, 400_000).astype(np.int32),
        "one row each": rng.permutation(400_000),
        "sparse": rng.integers(LOW, HIGH, 3_000)[rng.integers(0, 3_000, 400_000)],
        "one user has most": np.where(rng.random(400_000) < 0.9, 7, rng.integers(0, 2**40, 400_000)),
        "multiples of a power": rng.integers(0, 3_000, 400_000) << 50,
        "at both ends": np.where(rng.random(400_000) < 0.5, LOW, HIGH),
    }
    return users[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "dense",
        "dense, counted",
        "widest, counted",
        "narrow, counted",
        "one row each",
        "sparse",
        "one user has most",
        "multiples of a power",
        "at both ends",
    ],
)
def test_many_rows_for_any_threads(kind: str) -> None:
    keys = large_keys(kind)
    order = np.argsort(keys, kind="stable")
    ids, starts = np.unique(keys[order], return_index=True)
    for n_threads in (1, 2, 5):
        found = group_rows(keys, n_threads)
        assert np.array_equal(found.ids, ids)
        assert np.array_equal(found.indptr, np.append(starts, len(keys)))
        assert np.array_equal(found.take(np.arange(len(keys))), order)


def test_keys_that_were_made_to_collide_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrec.kernels import grouping as groups

    multipliers = np.array([grouping.MULTIPLIER, groups.SECOND_MULTIPLIER], np.uint64)
    # keys with two products that both begin with many zeros, found by the inverse of the second
    inverse = np.uint64(pow(int(multipliers[1]), -1, 2**64))
    with np.errstate(over="ignore"):
        keys = (np.arange(2**21, dtype=np.uint64) * inverse).view(np.int64)
        high = (keys.view(np.uint64) * multipliers[0]) >> np.uint64(58)
    keys = keys[high == 0]
    assert len(keys) > 2**14
    monkeypatch.setattr(grouping, "SMALL_ROWS", 1)
    sorts = []
    monkeypatch.setattr(grouping, "_sort", lambda own: sorts.append(1) or original(own))
    shuffled = np.random.default_rng(1).permutation(keys)
    found = group_rows(shuffled, 2)
    assert sorts
    assert np.array_equal(found.ids, np.sort(keys))
    assert np.array_equal(found.take(shuffled), np.sort(keys))


original = grouping._sort


ranked_users = st.lists(
    st.one_of(
        st.integers(0, 9).flatmap(lambda n: st.permutations(range(n))),
        st.lists(st.integers(-3, 12), max_size=9, unique=True),
        st.lists(st.integers(LOW, HIGH), max_size=9, unique=True),
    ),
    max_size=8,
)


@given(users=ranked_users, narrow=st.booleans())
@settings(max_examples=100, deadline=None)
def test_items_by_rank(users: list[list[int]], narrow: bool) -> None:
    ranks = np.array([rank for user in users for rank in user], np.int64)
    if narrow and len(ranks) and abs(ranks.astype(float)).max() < 2**31:
        ranks = ranks.astype(np.int32)
    indptr = np.cumsum([0, *map(len, users)])
    items = np.arange(len(ranks)) * 7
    ordered, twice = order_by_rank(items, ranks, indptr, 2)
    assert twice is None
    wanted = [items[first + at] for first, user in zip(indptr, users, strict=False) for at in np.argsort(user)]
    assert ordered.tolist() == wanted


@pytest.mark.thorough
@given(users=ranked_users, first=st.sampled_from([0, 1, -7, 2**40]), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=["function_scoped_fixture"])
def test_shuffled_items_by_user_and_rank(way: str, users: list[list[int]], first: int, data: st.DataObject) -> None:
    if data.draw(st.booleans()):  # like most ranks
        users = [[first + at for at in range(len(user))] for user in users]
    rows = [(user * 3, rank) for user, ranks in enumerate(users) for rank in ranks]
    rows = data.draw(st.permutations(rows))
    keys, ranks = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    items = np.arange(len(rows))
    found = group_rows(keys, 2)
    ordered, twice = found.take_by_rank(items, ranks, 2)
    assert twice is None
    wanted = {user: sorted(own, key=lambda at: rows[at][1]) for user, own in as_lists(keys, items).items()}
    assert ordered.tolist() == [at for user in found.ids.tolist() for at in wanted[user]]


def test_rows_by_rank_after_other_moves(way: str) -> None:
    """Moves take the memory of the codes of rows."""
    draw = np.random.default_rng(3)
    keys = draw.permutation(np.repeat(np.arange(40), 5))
    ranks = np.zeros(len(keys), np.int64)
    for key in range(40):
        ranks[keys == key] = draw.permutation(5) + 1
    items = np.arange(len(keys))
    found, other = group_rows(keys, 2), group_rows(keys, 2)
    ordered, _ = found.take_by_rank(items, ranks, 2)
    moved = other.take(items).tolist()
    again, twice = other.take_by_rank(items, ranks, 2)
    assert twice is None and again.tolist() == ordered.tolist()
    assert found.take(items).tolist() == other.take(items).tolist() == moved


def test_shuffled_rows_with_a_rank_twice(way: str) -> None:
    keys, ranks = np.array([4, 2, 4, 2, 4, 2]), np.array([1, 0, 2, 1, 2, 2])
    _, twice = group_rows(keys, 2).take_by_rank(np.arange(6), ranks, 2)
    assert twice == (1, 2)


@pytest.mark.parametrize("ranks", [[1, 2, 2, 5], [5, 1, 5], [0, 2**60, 0], [-1, -1]])
def test_a_rank_that_stands_twice(ranks: list[int]) -> None:
    keys = np.array([1, *ranks])
    _, twice = order_by_rank(np.arange(len(keys)), keys, np.array([0, 1, len(keys)]), 2)
    assert twice == (1, max(ranks, key=ranks.count))


def test_blocks_of_rows() -> None:
    taken = take_blocks(np.arange(10, dtype=np.float32), np.array([7, 0, 2]), np.array([0, 3, 3, 5]), 2)
    assert taken.tolist() == [7, 8, 9, 2, 3]


distinct_ids = st.lists(st.integers(0, 12), unique=True)


@given(wanted=distinct_ids, users=distinct_ids)
def test_finding_users(wanted: list[int], users: list[int]) -> None:
    found = find_users(np.array(wanted, np.int64), np.array(users, np.int32))
    assert found.tolist() == [users.index(user) if user in users else -1 for user in wanted]


@given(first=distinct_ids, second=distinct_ids)
def test_joining_users(first: list[int], second: list[int]) -> None:
    joined = join_users(np.array(first, np.int64), np.array(second, np.int64)).tolist()
    if first == sorted(first) and second == sorted(second):
        assert joined == sorted({*first, *second})
    else:
        assert joined == [*first, *(user for user in second if user not in first)]


@given(wanted=distinct_ids, users=distinct_ids, data=st.data())
def test_rows_of_other_users(wanted: list[int], users: list[int], data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=len(users), max_size=len(users)))
    indptr = np.cumsum([0, *lengths])
    blocks = find_blocks(np.array(wanted, np.int64), np.array(users, np.int64), indptr, 2)
    rows = blocks.take(np.arange(indptr[-1]))
    for at, user in enumerate(wanted):
        own = rows[blocks.indptr[at] : blocks.indptr[at + 1]].tolist()
        place = users.index(user) if user in users else None
        assert own == ([] if place is None else list(range(indptr[place], indptr[place + 1])))


def test_the_order_of_ids() -> None:
    assert order_of_ids(np.array([1, 2, 5])) is None
    order = order_of_ids(np.array([5, 1, 2]))
    assert order is not None
    assert order.tolist() == [1, 2, 0]
