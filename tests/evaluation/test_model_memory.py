"""Models in parts of their users: the same bits and errors as all users at once, within the memory of the call."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import model_room
from fastrec.evaluation.model_room import find_room, users_of_block
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.models import read_model
from support.bits import group_bits, mean_bits, user_bits

N_USERS, N_ITEMS = 50, 30
METRICS = ["ndcg@3", "mrr"]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank eight users at a time, in blocks of four."""
    for name, number in {"MAX_USERS_OF_BLOCK": 4, "MIN_USERS_OF_BLOCK": 4, "MAX_USERS_OF_PART": 8}.items():
        monkeypatch.setattr(model_room, name, number)


def call_of(seed: int = 0, *, named: bool) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    scores = draw.permuted(np.tile(np.arange(N_ITEMS), (N_USERS, 1)), axis=1).astype(float)
    truth: Any = [
        {item: float(draw.integers(1, 4)) for item in draw.permutation(N_ITEMS)[: draw.choice([0, 1, 5])].tolist()}
        for _ in range(N_USERS)
    ]
    exclude: Any = [draw.permutation(N_ITEMS)[: draw.choice([0, 4, N_ITEMS])].tolist() for _ in range(N_USERS)]
    call: dict[str, Any] = {"model": scores, "per_user": True}
    if not named:
        labels = {"groups": draw.choice(["a", "b"], N_USERS).tolist(), "user_weight": draw.random(N_USERS)}
        return {**call, "truth": truth, "exclude": exclude, **labels}
    names = [f"u{user}" for user in draw.permutation(N_USERS)]
    sides = {name: dict(zip(names, side, strict=True)) for name, side in (("truth", truth), ("exclude", exclude))}
    sides["truth"]["nobody"] = {1: 1.0}
    return {**call, **sides, "user_ids": names, "by": {name: name[-1] for name in names}}


def evaluate(call: dict[str, Any], metrics: Any = METRICS, **more: Any) -> fastrec.Report:
    return fastrec.evaluate_model(metrics=metrics, **{**call, **more})


def as_frames(call: dict[str, Any]) -> dict[str, Any]:
    """Return the call with data frames of PyArrow."""
    pa = pytest.importorskip("pyarrow")
    rows = [(user, item, gain) for user, own in call["truth"].items() for item, gain in own.items()]
    seen = [(user, item) for user, own in call["exclude"].items() for item in own]
    truth = pa.table(dict(zip(("user_id", "item_id", "gain"), map(list, zip(*rows, strict=True)), strict=True)))
    exclude = pa.table(dict(zip(("user_id", "item_id"), map(list, zip(*seen, strict=True)), strict=True)))
    return {**call, "truth": truth, "exclude": exclude}


@pytest.mark.parametrize("form", ["arrays", "dicts", "frames"])
@pytest.mark.parametrize("metrics", [["ndcg@3", "mrr"], ["gini@4", "personalization@2"], ["gini", "recall@5"]])
def test_parts_give_the_bits_of_all_users_at_once(
    form: str, metrics: list[str], request: pytest.FixtureRequest
) -> None:
    call = call_of(named=form != "arrays")
    call = as_frames(call) if form == "frames" else call
    if form == "arrays" and "mrr" not in metrics:
        del call["user_weight"]  # for which metrics of the exposure of items have no meaning
    wanted = evaluate(call, metrics)
    request.getfixturevalue("small_parts")
    seen: list[tuple[int, int]] = []
    found = evaluate(call, metrics, progress=lambda done, total: seen.append((done, total)))
    assert len({done for done, _ in seen}) > 5
    assert {total for _, total in seen} == {N_USERS} and [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (N_USERS, N_USERS)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert user_bits(found) == user_bits(wanted)
    assert group_bits(found) == group_bits(wanted)
    assert {**found.data} == {**wanted.data} and found.users == wanted.users and found.settings == wanted.settings


def test_lists_that_do_not_fit_are_made_again(small_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    call, asked = call_of(named=False), []
    del call["user_weight"]
    wanted = evaluate(call, ["gini", "mrr"])
    assert np.isfinite(wanted.estimates["gini"].std_error)
    monkeypatch.setattr(model_room, "DEFAULT_MEMORY", 10_000)
    seen: list[tuple[int, int]] = []

    def score(users: Any) -> Any:
        asked.extend(users.tolist())
        return call["model"][users]

    found = evaluate(
        {**call, "model": score}, ["gini", "mrr"], n_items=N_ITEMS, progress=lambda *done: seen.append(done)
    )
    assert asked == [*range(N_USERS)] * 2
    assert seen[-1] == (2 * N_USERS, 2 * N_USERS)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert user_bits(found) == user_bits(wanted)


def test_a_model_without_users_is_one_part() -> None:
    with pytest.warns(fastrec.FastrecWarning, match="truth"):
        report = fastrec.evaluate_model(np.ones((0, 3)), [], "mrr", groups=[])
    assert report.users["total"] == 0 and np.isnan(report["mrr"])
    assert fastrec.top_items(np.ones((0, 3)), 2)[1].tolist() == [0]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": [[1]] * 33 + [[2, 2]] + [[1]] * 16}, "user 33: item 2 appears twice"),
        ({"truth": [[1]] * 33 + [[-2]] + [[1]] * 16}, "user 33: item ids must not be negative, found -2"),
        (
            {"truth": [{1: 2.0}] * 33 + [{1: np.inf}] + [{1: 1.0}] * 16},
            "gains must be finite, found inf at position 33",
        ),
    ],
)
def test_errors_name_users_of_later_parts(change: dict[str, Any], message: str) -> None:
    with pytest.raises(fastrec.InputError, match=message):
        evaluate({**call_of(named=False), **change}, ["ndcg@3"])
    scores = np.ones((N_USERS, N_ITEMS))
    scores[33, 3] = np.nan
    with pytest.raises(fastrec.InputError, match="found NaN for user 33"):
        evaluate({**call_of(named=False), "model": scores}, ["ndcg@3"])


def test_memory_limits_users_and_threads_but_not_the_block() -> None:
    model = read_model(np.broadcast_to(np.float32(0), (1, 500_000)), {})
    model.copies = 1
    sides = {"exclude": FlatSide(np.zeros(0, np.int64), np.zeros(1, np.int64), None)}
    usual, small, large = (find_room(model, sides, 1000, 10, memory) for memory in (None, 100_000_000, 10**10))
    n = users_of_block(model)
    assert {room.users_of_block for room in (usual, small, large)} == {n}
    assert (small.blocks, usual.blocks) == (1, 6) and large.blocks > 50
    assert all(room.users_of_part % n == 0 for room in (usual, small, large))
    assert usual.blocks * n * 500_000 * 4 < 512 * 2**20
    whole = find_room(model, sides, 1000, None, None)
    assert (whole.users_of_block, whole.keeps_lists, usual.keeps_lists) == (2, False, True)


@pytest.mark.parametrize("memory", ["64MB", 10**8, "2 GB", None])
def test_the_memory_does_not_change_the_bits(memory: Any) -> None:
    draw = np.random.default_rng(0)
    model = draw.normal(size=(900, 16)).astype(np.float32), draw.normal(size=(3000, 16)).astype(np.float32)
    truth = draw.integers(0, 3000, (900, 1))
    metrics = ["ndcg@10", "mrr", "gini"]
    found, wanted = (fastrec.evaluate_model(model, truth, metrics, ties="input", memory=m) for m in (memory, "300MB"))
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    tops = [fastrec.top_items(model, 7, memory=m) for m in (memory, "300MB")]
    assert all(np.array_equal(one, other) for one, other in zip(*tops, strict=True))


@pytest.mark.parametrize("form", ["users", "dicts", "frames"])
@pytest.mark.parametrize("metrics", [["ndcg@3", "mrr"], ["gini", "mrr"]])
def test_parts_do_not_decide_which_users_share_a_block(
    form: str, metrics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS rounds by the position in a block; so does this model, and users are in another order than its rows."""
    for name in ("MAX_USERS_OF_BLOCK", "MIN_USERS_OF_BLOCK"):
        monkeypatch.setattr(model_room, name, 4)
    draw = np.random.default_rng(3)
    call = call_of(named=form != "users")
    call = as_frames(call) if form == "frames" else call
    if form == "users":
        del call["user_weight"]
        call["users"] = draw.permutation(N_USERS)
    else:
        call["user_ids"] = draw.permutation(call["user_ids"])
    scores = call.pop("model")
    asked: list[list[int]] = []
    seen: list[tuple[int, int]] = []

    def score(rows: Any) -> Any:
        asked.append(rows.tolist())
        return scores[rows] * (1 + np.arange(len(rows)))[:, None] % N_ITEMS

    def answer(most: int) -> Any:
        asked.clear()
        monkeypatch.setattr(model_room, "MAX_USERS_OF_PART", most)
        report = evaluate({**call, "model": score}, metrics, n_items=N_ITEMS, ties="input")
        own = {name: call[name] for name in ("exclude", "user_ids", "users") if name in call}
        top = fastrec.top_items(score, 4, n_items=N_ITEMS, **own, progress=lambda *done: seen.append(done))
        assert seen[-1] == (N_USERS, N_USERS)
        return report, top, [*asked]

    (wanted, top, blocks), *others = (answer(most) for most in (1 << 16, 8, 4))
    assert max(map(len, blocks)) == 4 and sorted(itertools.chain(*blocks))[::2] == [*range(N_USERS)]
    for found, own_top, own_blocks in others:
        assert own_blocks == blocks
        assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
        assert user_bits(found) == user_bits(wanted) and group_bits(found) == group_bits(wanted)
        assert (found.user_ids is None) == (wanted.user_ids is None)
        assert found.user_ids is None or found.user_ids.tolist() == wanted.user_ids.tolist()
        assert found.labels.keys() == wanted.labels.keys()
        assert all(np.array_equal(found.labels[name], wanted.labels[name]) for name in wanted.labels)
        assert all(np.array_equal(one, other) for one, other in zip(own_top, top, strict=True))


def test_too_little_memory_is_an_error() -> None:
    scores, truth = np.broadcast_to(np.float32(0), (2, 2_000_000)), [[1], [2]]
    for ask in (
        lambda memory: fastrec.evaluate_model(scores, truth, "mrr", memory=memory),
        lambda memory: fastrec.top_items(scores, 2, memory=memory),
    ):
        with pytest.raises(fastrec.InputError, match="memory must be at least 256 MB for 2,000,000 items, found 64 MB"):
            ask("64MB")
        with pytest.raises(fastrec.InputError, match="memory must be a size of at least 64 MB, such as '4GB', found 7"):
            ask(7)


PEAK = """
import numpy as np, fastrec

def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024

n_users, seen = {n_users}, 60
draw = np.random.default_rng(0)
{model}
own = draw.integers(0, {n_items}, n_users * seen, dtype=np.int32)
truth = np.arange(n_users * 10, dtype=np.int32) % {n_items}
indptr = np.arange(n_users + 1)

def evaluate(n):
    sides = (truth[: n * 10], indptr[: n + 1] * 10), (own[: n * seen], indptr[: n + 1] * seen)
    model, more = part(n)
    fastrec.evaluate_model(model, sides[0], {metrics}, exclude=sides[1], n_threads=2, **more)

evaluate(200)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
evaluate(n_users)
print((status("VmHWM") - before) >> 20)
"""


FACTORS = """
users, items = (draw.normal(size=(n, 4)).astype(np.float32) for n in (n_users, {n_items}))
part = lambda n: ((users[:n], items), dict(ties="input"))
"""
SPARSE = """
import scipy.sparse as sparse
X = sparse.random_array((n_users, 5000), density=0.02, random_state=draw, format="csr", dtype=np.float32)
B = draw.normal(size=(5000, {n_items})).astype(np.float32)
part = lambda n: ((X[:n] if n < n_users else X, B), dict(ties="id_asc"))
"""
MATRIX = """
scores = np.broadcast_to(draw.normal(size={n_items}).astype(np.float32), (n_users, {n_items}))
part = lambda n: (scores[:n], dict(ties="id_asc"))
"""
FUNCTION = """
scores = draw.normal(size={n_items}).astype(np.float32)
part = lambda n: (lambda rows: np.tile(scores, (len(rows), 1)), dict(ties="id_asc", n_items={n_items}))
"""
WIDE = """
users, items = (draw.normal(size=(n, 400)).astype(np.float32) for n in (n_users, {n_items}))
part = lambda n: ((users[:n], items), dict(ties="id_asc"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process of Linux")
@pytest.mark.thorough(except_for="lists|sparse")
@pytest.mark.parametrize(
    ("model", "n_users", "n_items", "metrics", "limit"),
    [
        pytest.param(FACTORS, 400, 50_000, ["gini", "ndcg@10"], 300, id="lists"),
        pytest.param(FACTORS, 1_000_000, 300, ["ndcg@10", "mrr"], 250, id="users"),
        pytest.param(FACTORS, 300, 500_000, ["ndcg@10", "mrr"], 250, id="items"),
        pytest.param(SPARSE, 1000, 20_000, ["ndcg@10", "mrr"], 250, id="sparse"),
        pytest.param(WIDE, 1000, 200_000, ["ndcg@10", "mrr"], 250, id="wide"),
        pytest.param(MATRIX, 2000, 50_000, ["ndcg@10", "mrr"], 250, id="matrix"),
        pytest.param(FUNCTION, 2000, 50_000, ["ndcg@10", "mrr"], 250, id="function"),
    ],
)
def test_a_call_takes_little_memory_beside_its_input(
    model: str, n_users: int, n_items: int, metrics: list[str], limit: int
) -> None:
    """Both together stay under 512 MB for a million users and 500,000 items; lists of all items would take 1 GB."""
    pytest.importorskip("scipy.sparse")
    script = PEAK.format(n_users=n_users, n_items=n_items, metrics=metrics, model=model.format(n_items=n_items))
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(answer.stdout) < limit
