"""Users in parts: providers and formulas take some users at a time, in threads."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import fastrec
from bench.run import list_measures
from fastrec.evaluation import engine
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.sources import ListSource
from fastrec.items.listed import ListsAndTruth
from fastrec.kernels.codes import BLOCK
from fastrec.metrics.providers import PROVIDERS, SIDES_OF_PARTS, provider
from fastrec.runtime.threads import USERS_PER_RANGE
from support.bits import mean_bits
from support.list_calls import random_log
from support.processes import check, run

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

N_USERS = 1200  # three blocks of the kernels
MEASURES = [*list_measures(), "ndpm", "ordered_pair_accuracy"]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "USERS_PER_PART", 512)


def evaluate(kind: str, **options: Any) -> Any:
    log = random_log(kind, N_USERS, seed=5)
    truth = [dict(rows) for rows in log.truth]
    metrics = MEASURES if kind == "plain" else [name.replace("max_gain=1", "max_gain=4") for name in MEASURES]
    weights = np.random.default_rng(1).random(N_USERS)
    return fastrec.evaluate(
        log.recs, truth, metrics, k=[3, 10], n_items=60, per_user=True, user_weight=weights, **options
    )


@pytest.mark.parametrize("kind", ["plain", "integer", "graded"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_parts_change_no_bit(kind: str, n_threads: int, request: pytest.FixtureRequest) -> None:
    groups = {"plan": ["free", "paid", "trial"] * (N_USERS // 3)}
    whole = evaluate(kind, groups=groups)
    request.getfixturevalue("small_parts")
    parts = evaluate(kind, groups=groups, n_threads=n_threads)
    assert parts.to_dict() == whole.to_dict()
    for name, values in whole.per_user.items():
        assert values.tobytes() == parts.per_user[name].tobytes(), name


@pytest.mark.usefixtures("small_parts")
def test_errors_of_a_part_name_the_user() -> None:
    recs, truth = [[1, 2]] * N_USERS, [{1: 1.0}] * N_USERS
    truth[700] = {1: 1.7e308, 2: 1.7e308}
    with pytest.raises(fastrec.InputError, match="truth of user 700: the gains add up to more than a double holds"):
        fastrec.evaluate(recs, truth, "ndcg_rel")
    named = [f"u{user}" for user in range(N_USERS)]
    with pytest.raises(fastrec.InputError, match="truth of user 'u700'"):
        fastrec.evaluate(dict(zip(named, recs, strict=True)), dict(zip(named, truth, strict=True)), "ndcg_rel")


@pytest.mark.usefixtures("small_parts")
def test_a_provider_of_parts_sees_its_users_only_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    @provider("length of truth", sides=SIDES_OF_PARTS, by_part=True)
    def fill(sides: Any, keys: Any, out: Any) -> None:
        assert sides["recs"].n_users == sides["truth"].n_users == out.shape[1]
        sizes.append(out.shape[1])
        out[0] = np.diff(sides["truth"].indptr)
        out[0, out[0] == 3] = np.inf

    monkeypatch.setitem(PROVIDERS, "length of truth", PROVIDERS["length of truth"])

    @fastrec.ranking_metric(range=(0, None), source="ours")
    def truth_length(s: Any) -> Any:
        """What the provider fills."""
        return s.provided("length of truth")

    truth = [[1, 2][: 1 + user % 2] for user in range(N_USERS)]
    report = fastrec.evaluate([[1]] * N_USERS, truth, "truth_length", n_threads=2)
    assert report["truth_length"] == 1.5
    assert sorted(sizes) == [N_USERS - 1024, 512, 512]
    truth[1100] = [1, 2, 3]
    wanted = r"the provider length of truth must fill finite numbers, found inf for the user at position 1100"
    with pytest.raises(fastrec.MetricError, match=wanted):
        fastrec.evaluate([[1]] * N_USERS, truth, "truth_length")


def test_providers_of_parts_need_lists_and_truth_only() -> None:
    with pytest.raises(fastrec.InputError, match=r"by_part=True gives a provider recs and truth only, found 'history'"):
        provider("habits", sides=["recs", "history"], by_part=True)


def awkward_truth() -> dict[int, dict[int, float]]:
    """Return gains of many sizes, of users with none above 0, with one alone, with many, and without a list."""
    rng = np.random.default_rng(11)
    truth = {}
    for user in range(N_USERS):
        gains = [[0.0, -1.0], [0.5], [3.0, 1e-300, 2.0, -2.0], [1e300], list(range(9))][user % 5]
        truth[user] = dict(zip(rng.permutation(30)[: len(gains)].tolist(), map(float, gains), strict=True))
    return truth


def declare_rows_so_far(monkeypatch: pytest.MonkeyPatch, key: Any, broken: int | None = None) -> None:
    """Declare `rows_so_far`: the rows of the truth within a cut-off. The event at `broken` has none."""

    @provider("rows so far", sides=SIDES_OF_PARTS, by_part=True, by_event=True)
    def fill(sides: Any, keys: Any, out: Any) -> None:
        assert keys == [("of", 2)]  # once for all cut-offs
        ranks = sides["listed rows"].ranks[: out.shape[1]]
        so_far = np.cumsum(ranks > 0)
        out[0] = so_far - np.maximum.accumulate(np.where(ranks == 0, so_far, 0))
        out[0, [] if broken is None else broken] = np.nan

    monkeypatch.setitem(PROVIDERS, "rows so far", PROVIDERS["rows so far"])

    @fastrec.ranking_metric(range=(0, None), source="ours")
    def rows_so_far(s: Any) -> Any:
        """What the provider fills."""
        return s.provided("rows so far", *key(s))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("gain", [1.0, 2.0])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_provider_of_events_is_read_at_each_cutoff(
    monkeypatch: pytest.MonkeyPatch, gain: float, n_threads: int
) -> None:
    declare_rows_so_far(monkeypatch, lambda s: (s.cutoff, "of", 2))
    log = random_log("plain", N_USERS, seed=5)
    truth = [{item: gain for item, _ in rows} for rows in log.truth]
    for cutoffs in ([1, 3, 10], None):
        both = ["rows_so_far", "hits"]
        found = fastrec.evaluate(log.recs, truth, both, k=cutoffs, n_threads=n_threads, per_user=True)
        for name in (name for name in found if name.startswith("hits")):
            own = name.replace("hits", "rows_so_far")
            assert found.per_user[own].tobytes() == found.per_user[name].tobytes()
            assert found[own] == found[name] > 0


def test_a_new_process_finds_the_events_of_a_provider() -> None:
    program = """
import fastrec
from fastrec.metrics.providers import provider

@provider("rank", sides=["recs", "truth"], by_part=True, by_event=True)
def fill(sides, keys, out):
    out[0] = sides["listed rows"].ranks[: out.shape[1]]

@fastrec.ranking_metric(range=(0, None), source="ours")
def last_rank(s):
    return s.provided("rank", s.cutoff)

recs, truth = [[1, 2, 3], [4, 5], [], [7, 8, 9, 10, 11]], [[2, 3], [9], [1], [7, 9]]
report = fastrec.evaluate(recs, truth, "last_rank", k=[1, 2, 3], per_user=True, no_recs="zero")
print([report.per_user[name].tolist() for name in report])
"""
    check(run(program), "[[0.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 1.0], [3.0, 0.0, 0.0, 3.0]]")


@pytest.mark.usefixtures("small_parts")
def test_parts_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    part_of = ListsAndTruth.part

    def noted(own: Any, first: int, last: int) -> Any:
        sides = part_of(own, first, last)
        made.append(weakref.ref(sides))
        return sides

    monkeypatch.setattr(ListsAndTruth, "part", noted)
    log = random_log("integer", N_USERS, seed=5)
    gc.disable()
    try:
        fastrec.evaluate(log.recs, [dict(rows) for rows in log.truth], ["rndcg", "compatibility", "bpref"], k=[3])
        assert [sides() for sides in made] == [None] * 3
    finally:
        gc.enable()


def test_a_batch_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    sides_of = ListEvaluation._sides_of

    def noted(*given: Any) -> Any:
        sides = sides_of(*given)
        made.append(weakref.ref(sides))
        return sides

    monkeypatch.setattr(ListEvaluation, "_sides_of", noted)
    shop = {"item_id": [1, 2, 3], "propensity": [0.5, 0.6, 0.7], "genre": ["a", "b", "b"], "popularity": [3, 2, 1]}
    metrics = ["ips@2", "item_coverage@2", "category_coverage(column=genre)@2", "novelty@2", "compatibility@2"]
    gc.disable()
    try:
        fastrec.evaluate([[1, 2], [3]], [[2], [3]], metrics, items=shop, n_users=5)
        assert [sides() for sides in made] == [None]
    finally:
        gc.enable()


def test_ranges_of_users_are_whole_blocks() -> None:
    assert engine.USERS_PER_PART == USERS_PER_RANGE
    assert USERS_PER_RANGE % BLOCK == 0


def test_parts_have_fewer_users_where_users_have_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ROWS_PER_PART", 4000)
    ends, none = np.arange(N_USERS + 1), np.zeros(0, np.int32)
    assert engine._users_per_part(ListSource(none, ends, none, ends, None), 1) == 1536
    assert engine._users_per_part(ListSource(none, 9 * ends, none, ends, None), 1) == 512


@pytest.mark.usefixtures("small_parts")
def test_faults_of_a_provider_of_events_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recs, truth = [[1, 2, 3]] * N_USERS, [[2, 3]] * N_USERS
    declare_rows_so_far(monkeypatch, lambda s: (s.cutoff, "of", 2), broken=3 * 5 + 1)  # of the sixth user of each part
    with pytest.raises(fastrec.MetricError, match=r"must fill finite numbers, found nan for the user at position 5"):
        fastrec.evaluate(recs, truth, "rows_so_far@2", n_threads=1)
    declare_rows_so_far(monkeypatch, lambda _: ("of", 2))
    with pytest.raises(fastrec.MetricError, match="'rows so far' must begin with a cut-off, found 'of'"):
        fastrec.evaluate(recs, truth, "rows_so_far@2")
    with pytest.raises(fastrec.InputError, match="by_event=True needs by_part=True"):
        provider("alone", sides=SIDES_OF_PARTS, by_event=True)


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("no_truth", ["zero", "skip"])
def test_trusted_providers_fill_all_with_finite_numbers(
    monkeypatch: pytest.MonkeyPatch, graded: bool, no_truth: str
) -> None:
    rng = np.random.default_rng(12)
    recs = {user: rng.permutation(30)[: user % 12].tolist() for user in range(3, N_USERS)}
    truth: Any = awkward_truth()
    if not graded:
        truth = {user: [item for item, gain in own.items() if gain > 0] for user, own in truth.items()}
    measures = [name for name in MEASURES if not (graded and "max_gain" in name)]
    ask = {"k": [1, 3, 10], "no_truth": no_truth, "n_items": 30, "min_gain": 1e-9 if graded else None}
    calls = [lambda: fastrec.evaluate(recs, truth, measures, **ask), lambda: evaluate("graded" if graded else "plain")]
    trusted = [call() for call in calls]
    ours = {name: own for name, own in PROVIDERS.items() if own.is_trusted}
    assert len(ours) == 6
    for name, own in ours.items():
        monkeypatch.setitem(PROVIDERS, name, own._replace(is_trusted=False))
    for call, wanted in zip(calls, trusted, strict=True):
        assert mean_bits(call().estimates) == mean_bits(wanted.estimates)
