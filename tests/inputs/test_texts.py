"""Strings numbered by kernels: the numbers of a dict in Python, however the column is cut."""

import random

import numpy as np
import pytest

from fastrec import evaluate, evaluate_scores
from fastrec.inputs import arrow, ids, strings, users
from fastrec.inputs.ids import Strings, encode_strings
from fastrec.kernels import strings as kernels

pa = pytest.importorskip("pyarrow")
BITS = 2**64


def expected(values):
    """Return the first position of each value's equal."""
    first = {}
    return [first.setdefault(value, at) for at, value in enumerate(values)]


def check(column, n_threads):
    """Equal strings have equal numbers, and numbers lead back to their strings."""
    values = column.to_pylist()
    codes, distinct = strings.number_column(column, n_threads)
    assert codes.dtype == np.int32 and sorted(set(codes.tolist())) == list(range(len(distinct)))
    assert [distinct[code].as_py() for code in codes.tolist()] == values
    assert expected(codes.tolist()) == expected(values)


def random_texts(rng, n, longest):
    letters = "ab\0é漢"
    return ["".join(rng.choices(letters, k=rng.randint(0, longest))) for _ in range(n)]


@pytest.mark.thorough
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("longest", [1, 3, 9, 40])
def test_texts_of_any_length(longest, n_threads):
    rng = random.Random(longest)
    values = random_texts(rng, 3000, longest)
    check(pa.chunked_array([values[:7], values[7:7], values[7:2000], values[2000:]], pa.string()), n_threads)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_every_type_of_texts(kind):
    values = random_texts(random.Random(1), 500, 20)
    column = pa.chunked_array([values[:300], values[300:]], pa.string()).cast(pa.binary()).cast(kind)
    check(column, 2)
    check(column.slice(3, 400), 2)


def test_lists_grow():
    values = [f"user {nth}" for nth in range(40_000)]
    check(pa.chunked_array([values + values[::-1]]), 1)
    check(pa.chunked_array([values + values[::-1]]), 3)
    long = ["x" * nth for nth in range(1000)]
    check(pa.chunked_array([long + long]), 2)


def test_neighbours_differ_in_one_byte():
    for n in (1, 7, 8, 9, 15, 16, 17, 24, 33):
        texts_ = [bytes(n)] + [bytes(at) + b"\1" + bytes(n - at - 1) for at in range(n)] + [bytes(n + 1)]
        check(pa.chunked_array([texts_ + texts_], pa.binary()), 1)


def collide(n):
    """Return strings of sixteen bytes that all have the same hash."""
    inverse = pow(kernels.MULTIPLIER, -1, BITS)
    mixed = 12345
    found = []
    for first in range(n):
        before = int(kernels.mixed(np.uint64(16), np.uint64(first)))
        last = before ^ (mixed * inverse % BITS)
        found.append(first.to_bytes(8, "little") + last.to_bytes(8, "little"))
    return found


def test_texts_that_were_made_to_collide():
    with np.errstate(all="ignore"):
        values = collide(2000)
    column = pa.chunked_array([values], pa.binary())
    assert strings.number_column(column, 1) is None
    assert strings.number_column(column.slice(0, 2), 1) is not None


def test_frames_of_many_texts(monkeypatch):
    rng = random.Random(2)
    users, items = random_texts(rng, 400, 4), [f"item {nth}" for nth in range(400)]
    recs = pa.table({"user_id": users, "item_id": items, "score": [rng.random() for _ in items]})
    truth = pa.table({"user_id": users[::3], "item_id": items[::3]})
    log = pa.table({"user_id": users, "label": [1, *(rng.randint(0, 1) for _ in users[1:])], "score": recs["score"]})
    few, few_rows = evaluate(recs, truth, per_user=True), evaluate_scores(log, metrics="ndcg@3", per_user=True)
    monkeypatch.setattr(arrow, "MANY_STRINGS", 1)
    many = evaluate(recs, truth, per_user=True)
    assert few.to_dict() == many.to_dict() and few.user_ids.tolist() == many.user_ids.tolist()
    many_rows = evaluate_scores(log, metrics="ndcg@3", per_user=True)
    assert few_rows.to_dict() == many_rows.to_dict() and few_rows.user_ids.tolist() == many_rows.user_ids.tolist()


def test_collisions_leave_the_texts_to_pyarrow(monkeypatch):
    with np.errstate(all="ignore"):
        values = collide(500)
    monkeypatch.setattr(arrow, "MANY_STRINGS", 1)
    recs = pa.table({"user_id": [1] * 500, "item_id": pa.array(values, pa.binary()), "rank": range(1, 501)})
    truth = pa.table({"user_id": [1], "item_id": pa.array(values[4:5], pa.binary())})
    assert evaluate(recs, truth, "mrr")["mrr"] == 1 / 5


@pytest.mark.parametrize("words", [["a", "b", "é"], ["b", "a", "é"], ["a", "a", "b"], ["é", "b"], []])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_columns_with_one_dictionary(words, kind):
    """Codes stay if the dictionary ascends, and the strings are in order in any case."""
    are_bytes = kind == pa.large_binary()
    values = pa.array([word.encode() for word in words] if are_bytes else words, kind)
    codes = [np.arange(len(words), dtype=np.int32), np.zeros(min(len(words), 1), np.int32)]
    found, spelled = encode_strings(Strings(own, values, "bytes" if are_bytes else "strings") for own in codes)
    assert list(spelled) == sorted(set(values.to_pylist()))
    for own, new in zip(codes, found, strict=True):
        assert [spelled[code] for code in new.tolist()] == [values[code].as_py() for code in own.tolist()]
    if words == ["a", "b", "é"] and kind != pa.string():
        assert all(own is new for own, new in zip(codes, found, strict=True))


FEW = [["a", "bb", ""], ["", ""], ["é", "a"], ["a\0", "b"], ["a\0b", "b"], ["a" * 500, *"bcdefg"], ["~", "\x7f"], []]


@pytest.mark.parametrize("texts", FEW)
@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary()])
def test_labels_of_distinct_strings(texts, kind):
    """A short way for ASCII gives what the long way gives."""
    values = ids.Spelled(pa.array(texts, pa.large_string()).cast(kind))
    codes = np.arange(len(texts))[::-1].repeat(2)
    is_short = kind == pa.large_string() and texts in (["a", "bb", ""], ["~", "\x7f"])
    assert (values.pick_plain(codes) is not None) == is_short
    found, expected = users.spelled_labels(values, codes), users.as_labels(ids.spell(values, codes))
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
