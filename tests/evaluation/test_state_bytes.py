"""Evaluators as bytes: equal after the way back, or an error."""

import functools
import io
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import state
from fastrec.metrics import declaration
from fastrec.report.archive import read_archive, write_archive
from support.bits import mean_bits, user_bits
from support.list_calls import for_kind, random_log, recs_of, truth_of
from support.row_users import ORDER_OF_ROWS, USERS

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

N_USERS = 200
LOG = random_log("integer", N_USERS, seed=9)
TEXTS = [ask.text for ask in for_kind("integer")][::7]
FULL = {"metrics": TEXTS, "per_user": True, "n_items": 100, "min_gain": 1.0, "no_recs": "nan"}


def lists_evaluator(ids: Any = None, users: slice = slice(None), **options: Any) -> fastrec.Evaluator:
    evaluator = fastrec.Evaluator(**(FULL | options))
    chosen = range(N_USERS)[users]
    recs, truth = recs_of(LOG), truth_of(LOG)
    evaluator.update(
        [row_of(recs, u) for u in chosen],
        pairs_of(truth, chosen),
        user_ids=None if ids is None else ids[users],
        groups={"half": np.arange(N_USERS)[users] % 2, "name": np.array(["a", "b", "ö"] * N_USERS)[:N_USERS][users]},
        user_weight=1.0 + np.arange(N_USERS)[users] % 3,
    )
    return evaluator


def row_of(recs: Any, u: int) -> Any:
    items, indptr = recs[:2]
    return items[indptr[u] : indptr[u + 1]].tolist()


def pairs_of(truth: Any, chosen: range) -> Any:
    items, indptr, gains = truth
    rows = np.concatenate([np.arange(indptr[u], indptr[u + 1]) for u in chosen]) if len(chosen) else np.zeros(0, int)
    return items[rows], np.cumsum([0, *(indptr[u + 1] - indptr[u] for u in chosen)]), gains[rows]


def scores_evaluator(users: slice = slice(None), *, row_weights: bool = False) -> fastrec.ScoreEvaluator:
    evaluator = fastrec.ScoreEvaluator([*ORDER_OF_ROWS, "rmse"], per_user=True)
    call = USERS.call(users, row_weights=row_weights)
    evaluator.update(**call, user_ids=np.array([f"u{u}" for u in range(len(USERS.labels))])[users])
    return evaluator


def assert_same(found: fastrec.Report, expected: fastrec.Report) -> None:
    assert mean_bits(found.estimates) == mean_bits(expected.estimates)
    assert user_bits(found) == user_bits(expected)
    assert found.to_dict() == expected.to_dict()
    assert (found.user_ids is None) == (expected.user_ids is None)
    if found.user_ids is not None:
        assert expected.user_ids is not None
        assert found.user_ids.tolist() == expected.user_ids.tolist()


MAKERS: dict[str, Any] = {
    "lists": lists_evaluator,
    "integer ids": functools.partial(lists_evaluator, np.arange(N_USERS) + 2**60),
    "text ids": functools.partial(lists_evaluator, np.array([f"ü{u}" for u in range(N_USERS)])),
    "scores": scores_evaluator,
    "weighted scores": functools.partial(scores_evaluator, row_weights=True),
}


@pytest.mark.parametrize("kind", list(MAKERS))
def test_the_same_on_the_other_side(kind: str) -> None:
    evaluator = MAKERS[kind]()
    again = type(evaluator).from_bytes(evaluator.to_bytes())
    assert_same(again.result(), evaluator.result())
    assert again.to_bytes() == evaluator.to_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", list(MAKERS))
def test_parts_that_travelled_merge_to_the_whole(kind: str) -> None:
    whole = MAKERS[kind]()
    parts = [MAKERS[kind](users=part) for part in (slice(70), slice(70, 71), slice(71, None))]
    first, *others = (type(part).from_bytes(part.to_bytes()) for part in parts)
    for other in others:
        first.merge(other)
    assert_same(first.result(), whole.result())


def test_before_the_first_batch() -> None:
    again = fastrec.Evaluator.from_bytes(fastrec.Evaluator(["ndcg"], k=[5, 10]).to_bytes())
    again.update([[1, 2]], [[2]])
    assert list(again.result()) == ["ndcg@5", "ndcg@10"]


def test_users_are_remembered() -> None:
    ids = np.arange(N_USERS)
    again = fastrec.Evaluator.from_bytes(lists_evaluator(ids, slice(9)).to_bytes())
    with pytest.raises(fastrec.InputError, match="pass all rows of a user in one update"):
        again.merge(lists_evaluator(ids, slice(8, 20)))


def test_other_settings_are_refused_when_merged() -> None:
    again = fastrec.Evaluator.from_bytes(lists_evaluator().to_bytes())
    with pytest.raises(fastrec.InputError, match="no_recs is 'nan' here and 'skip' there"):
        again.merge(lists_evaluator(no_recs="skip"))


@pytest.mark.thorough
def test_another_process_reads_it(tmp_path: Any) -> None:
    path = tmp_path / "state"
    path.write_bytes(scores_evaluator().to_bytes())
    code = (
        "import sys, fastrec; print(fastrec.ScoreEvaluator.from_bytes(open(sys.argv[1], 'rb').read()).result()['auc'])"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert float(done.stdout) == scores_evaluator().result()["auc"]


def test_it_is_compact() -> None:
    """It has a few hundred bytes per metric, whatever the number of users."""
    evaluator = fastrec.Evaluator(["ndcg", "recall"], k=[5, 10])
    items = np.tile(np.arange(10), 50_000)
    evaluator.update((items, np.arange(50_001) * 10), (items, np.arange(50_001) * 10))
    assert len(evaluator.to_bytes()) < 4000


# Errors


@pytest.mark.thorough
def test_damaged_bytes() -> None:
    data = lists_evaluator(np.arange(N_USERS)).to_bytes()
    for cut in range(0, len(data), 97):
        with pytest.raises(fastrec.InputError, match="state"):
            fastrec.Evaluator.from_bytes(data[:cut])
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 300):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        try:
            again = fastrec.Evaluator.from_bytes(bytes(flipped))
        except fastrec.FastrecError:
            continue
        assert again.result().to_dict() == lists_evaluator(np.arange(N_USERS)).result().to_dict()  # such as a date


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"kind": "ScoreEvaluator"}, "those of a ScoreEvaluator: use ScoreEvaluator.from_bytes"),
        ({"state": 3}, "format 3"),
        ({"metrics": ["recall"]}, "computes its metrics differently"),
        ({"settings": {"ties": "no"}}, "ties must be"),
        ({"metrics": ["nothing"]}, "nothing"),
        ({"seen": {}}, "not a state"),
    ],
)
def test_what_does_not_fit(fields: dict[str, Any], match: str) -> None:
    with pytest.raises(fastrec.FastrecError, match=match):
        fastrec.Evaluator.from_bytes(forged(lists_evaluator(), fields))


def test_columns_of_other_lengths() -> None:
    with pytest.raises(fastrec.InputError, match="different lengths"):
        fastrec.ScoreEvaluator.from_bytes(forged(scores_evaluator(), accumulators_0_positives=lambda own: own[:-1]))


def test_nothing_in_it_is_run() -> None:
    out = io.BytesIO()
    np.savez(out, evaluator=np.array([{"kind": "Evaluator"}], dtype=object))
    with pytest.raises(fastrec.InputError, match="not the state of an evaluator"):
        fastrec.Evaluator.from_bytes(out.getvalue())


def archive(members: dict[str, bytes], *, times: int = 1) -> bytes:
    """Return a compressed archive with each member this many times in its directory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile warns of a name that is there twice
        for name, content in members.items():
            for _ in range(times):
                file.writestr(f"{name}.npy", content)
    return out.getvalue()


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


def overlapping() -> bytes:
    """Return a directory of a thousand members that are all the same 10 MB of zeros."""
    data = archive({"a": header((1_250_000,)) + bytes(10_000_000)})
    entry = data[data.index(b"PK\x01\x02") : data.index(b"PK\x05\x06")]
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1000, 1000, 1000 * len(entry), data.index(b"PK\x01\x02"), 0)
    return data[: data.index(b"PK\x01\x02")] + entry * 1000 + end


LYING = {
    "a huge array": lambda: archive({"evaluator": header((10**9,))}),
    "a huge shape": lambda: archive({"evaluator": header((2**40, 2**40)) + bytes(80)}),
    "a negative shape": lambda: archive({"evaluator": header((-1,)) + bytes(80)}),
    "elements without bytes": lambda: archive({"evaluator": header((10**12,), "<U0")}),
    "objects": lambda: archive({"evaluator": header((10,), "|O") + bytes(80)}),
    "more bytes than it says": lambda: archive({"evaluator": header((1,)) + bytes(10_000_000)}),
    "members on top of each other": overlapping,
    "no array": lambda: archive({"evaluator": b"{}"}),
}


@pytest.mark.parametrize("name", LYING)
def test_sizes_that_are_claimed_are_not_believed(name: str, tmp_path: Any) -> None:
    """A rejected file reserves no memory for its claims."""
    data = LYING[name]()
    path = tmp_path / "report.npz"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        for call in (lambda: fastrec.Evaluator.from_bytes(data), lambda: fastrec.load(path)):
            with pytest.raises(fastrec.InputError, match=r"not the state|not a readable fastrec report"):
                call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_what_is_unpacked_is_at_most_what_deflate_can_hold() -> None:
    """Zeros, the smallest of all, are read; the same file with a larger size in its directory is an error."""
    evaluator = fastrec.Evaluator("mrr", per_user=True)
    users = 200_000
    evaluator.update(
        (np.zeros(users, np.int64), np.arange(users + 1)), (np.ones(users, np.int64), np.arange(users + 1))
    )
    data = evaluator.to_bytes()
    assert len(data) * 100 < 8 * users
    assert fastrec.Evaluator.from_bytes(data).result().per_user["mrr"].tolist() == [0.0] * users


@pytest.mark.parametrize("data", ["text", None, 3, [1]])
def test_what_is_not_bytes(data: Any) -> None:
    with pytest.raises(fastrec.InputTypeError, match="from_bytes takes the bytes of to_bytes"):
        fastrec.Evaluator.from_bytes(data)


def test_ids_that_cannot_be_kept() -> None:
    evaluator = fastrec.Evaluator(["recall"])
    evaluator.update({(1, 0.5): [1]}, {(1, 0.5): [1]})
    with pytest.raises(fastrec.InputError, match="only string and integer user_ids"):
        evaluator.to_bytes()


def declare_share(of: str) -> None:
    def share(s: Any) -> Any:
        """Share of hits."""
        return s.hits / (s.k if of == "k" else s.n_rel)

    fastrec.ranking_metric(range=(0, 1))(share)


def test_a_metric_of_ones_own() -> None:
    declare_share("k")
    evaluator = fastrec.Evaluator(["share@2"])
    evaluator.update([[1, 2]], [[1]])
    data = evaluator.to_bytes()
    assert fastrec.Evaluator.from_bytes(data).result()["share@2"] == 0.5
    declaration.DECLARED["lists"].pop("share")
    declaration.forget_parsed()
    with pytest.raises(fastrec.MetricError, match="unknown metric 'share'"):
        fastrec.Evaluator.from_bytes(data)
    declare_share("n_rel")
    with pytest.raises(fastrec.InputError, match="computes its metrics differently"):
        fastrec.Evaluator.from_bytes(data)


def with_members(data: bytes, **members: bytes) -> bytes:
    """Return the archive with some members replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, members.get(name.removesuffix(".npy"), old.read(name)))
    return out.getvalue()


def test_a_member_that_is_no_array() -> None:
    with pytest.raises(fastrec.InputError, match="magic string"):
        fastrec.Evaluator.from_bytes(with_members(lists_evaluator().to_bytes(), per_user=b"no array"))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("positives", lambda own: own.astype(np.float64)),
        ("positives", lambda own: own - 1_000),
        ("scores", lambda own: own[::-1]),
        ("scores", lambda own: own * np.nan),
        ("scores", lambda own: own.astype(np.float32)),
    ],
)
def test_sorted_rows_that_are_none(name: str, column: Any) -> None:
    """Kernels rely on their types, order and signs."""
    with pytest.raises(fastrec.InputError, match="sorted rows"):
        fastrec.ScoreEvaluator.from_bytes(forged(scores_evaluator(), **{f"accumulators_0_{name}": column}))


def forged(evaluator: Any, fields: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    """Return the bytes of an evaluator, with other fields of its document, and members changed by functions."""
    document, members = read_archive(io.BytesIO(evaluator.to_bytes()), "evaluator")
    out = io.BytesIO()
    changed = {name: arrays.get(name, lambda own: own)(own) for name, own in members.items()}
    write_archive(out, "evaluator", document | (fields or {}), changed, small=True)
    return out.getvalue()


FORGED: dict[str, Any] = {
    "a row of values short": {"per_user": lambda own: own[:-1]},
    "values that are dates": {"per_user": lambda own: own.astype("M8[s]")},
    "values that are float32": {"per_user": lambda own: own.astype(np.float32)},
    "groups short": {"counts": lambda own: own[:-1]},
    "a user twice": {"user_ids": lambda own: own * 0},
    "users that are dates": {"user_ids": lambda own: own.astype("M8[s]")},
    "labels that are dates": {"labels_0": lambda own: own.astype("M8[s]")},
}


@pytest.mark.parametrize("name", FORGED)
def test_arrays_that_kernels_cannot_read_are_refused(name: str) -> None:
    data = forged(lists_evaluator(np.arange(N_USERS)), **FORGED[name])
    with pytest.raises(fastrec.InputError, match="not a state that this version reads"):
        fastrec.Evaluator.from_bytes(data)


@pytest.mark.parametrize("name", ["digits", "counts", "per_user", "user_ids", "evaluator"])
def test_bytes_that_were_changed_are_refused(name: str) -> None:
    data = lists_evaluator(np.arange(N_USERS)).to_bytes()
    with np.load(io.BytesIO(data)) as members:
        last = {name: np.concatenate([members[name].ravel()[:-1], members[name].ravel()[:1]])}
        last[name] = last[name].reshape(members[name].shape)
    out = io.BytesIO()
    np.save(out, last[name])
    with pytest.raises(fastrec.InputError, match="its contents are not those that fastrec wrote"):
        fastrec.Evaluator.from_bytes(with_members(data, **{name: out.getvalue()}))
    assert fastrec.Evaluator.from_bytes(with_members(data)).to_bytes() == data


def test_a_batch_with_a_user_without_a_label_says_so_where_labels_are_integers() -> None:
    pandas = pytest.importorskip("pandas")
    recs = pandas.DataFrame({"user_id": [1, 2, 3], "item_id": [1, 1, 1], "rank": 1, "plan": [7, 8, 7]})
    truth = pandas.DataFrame({"user_id": [1, 2, 3, 4], "item_id": 1})
    whole, part = (fastrec.Evaluator("mrr") for _ in range(2))
    whole.update(recs[:2], truth[:2], by="plan")
    why = (
        "labels 7 and '7', as labels are strings in a batch with a user without one: .* by the column in the truth, or"
    )
    with pytest.raises(fastrec.InputError, match=why):
        whole.update(recs[2:], truth[2:], by="plan")
    part.update(recs[2:], truth[2:], by="plan")
    with pytest.raises(fastrec.InputError, match=why):
        whole.merge(part)
    with pytest.raises(fastrec.InputError, match="labels '7' and 7, as"):
        part.merge(whole)
    whole.update(recs[2:], truth[2:].assign(plan=[7, 8]), by="plan")
    assert [*whole.result().groups["plan"]] == [7, 8]


def test_an_update_looks_at_the_labels_of_its_own_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many labels are known, only new ones become strings."""
    made: list[Any] = []

    def text(label: Any) -> str:
        made.append(label)
        return str(label)

    evaluator = fastrec.Evaluator("mrr")
    evaluator.update([[1]] * 500, [[1]] * 500, groups=np.arange(500))
    monkeypatch.setattr(state, "str", text, raising=False)
    evaluator.update([[1]], [[1]], groups=[7])
    evaluator.update([[1]], [[1]], groups=[900])
    assert set(made) == {7, 900}


def test_labels_of_batches_may_be_of_two_types() -> None:
    evaluator = fastrec.Evaluator("mrr", per_user=True)
    for labels in ([1, 2], ["a", "b\0"]):
        evaluator.update([[1], [2]], [[1], [3]], groups=labels)
    again = fastrec.Evaluator.from_bytes(evaluator.to_bytes()).result()
    assert again.labels["group"].tolist() == evaluator.result().labels["group"].tolist() == [1, 2, "a", "b\0"]


@pytest.mark.parametrize("labels", [([1, 2], ["1", "b"]), (["a", "2"], [1, 2])])
def test_labels_of_batches_that_are_one_text_are_refused_before_a_batch_is_taken(labels: Any) -> None:
    first, second = labels
    evaluator, other = (fastrec.Evaluator("mrr", per_user=True) for _ in range(2))
    evaluator.update([[1], [2]], [[1], [3]], groups=first)
    other.update([[1], [2]], [[1], [3]], groups=second)
    before = evaluator.to_bytes()
    for mix in (lambda: evaluator.update([[1], [2]], [[1], [3]], groups=second), lambda: evaluator.merge(other)):
        with pytest.raises(fastrec.InputError, match=r"groups\['group'\] has the labels .*two groups of one name"):
            mix()
    assert evaluator.to_bytes() == before
    rows = fastrec.ScoreEvaluator("gauc")
    rows.update([1, 0] * 2, [0.5, 0.4] * 2, [0, 2, 4], groups=first)
    with pytest.raises(fastrec.InputError, match="two groups of one name"):
        rows.update([1, 0] * 2, [0.5, 0.4] * 2, [0, 2, 4], groups=second)


@pytest.mark.parametrize("change", [lambda own: own + 2**62, lambda own: np.full_like(own, 2**63 - 1)])
def test_more_sorted_rows_than_can_be_counted_are_refused(change: Any) -> None:
    data = forged(scores_evaluator(), accumulators_0_positives=change)
    with pytest.raises(fastrec.InputError, match="sorted rows"):
        fastrec.ScoreEvaluator.from_bytes(data)
