"""Hits that a provider of statistics has found are those of the kernel, and faults of lists stay errors."""

from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import engine
from fastrec.evaluation.sources import ListSource
from fastrec.kernels.codes import COUNT
from support.bits import mean_bits, user_bits

OWN = ["hits", "ndcg", "map", "mrr"]  # kernels of their own find these hits
SHARED = ["bpref", "compatibility"]  # providers find hits first
PROVIDED = ["bpref", "normalized_gain", "rndcg", "inst(max_gain=1)", "compatibility", "ordered_pair_accuracy"]
FAULTS: dict[str, tuple[Any, Any]] = {
    "a copy in a list": ([[1, 2], [3, 4, 3]], [[1], [4]]),
    "a copy in the truth": ([[1, 2], [3, 4]], [[1], [4, 5, 4]]),
    "a negative id in a list": ([[1, 2], [3, -4]], [[1], [3]]),
    "a negative id in the truth": ([[1, 2], [3, 4]], [[1], [3, -4]]),
    "a list without truth": ([[1, 2], [3, 4]], [[1], []]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_as_without_providers(fault: str) -> None:
    recs, truth = FAULTS[fault]
    messages = []
    for metric in ("ndcg@3", *(f"{name}@3" for name in PROVIDED)):
        with pytest.raises(fastrec.FastrecError) as error:
            fastrec.evaluate(recs, truth, [metric, "ndcg@3"], no_truth="error")
        messages.append(str(error.value).replace(metric, "ndcg@3"))
    assert len(set(messages)) == 1


@pytest.mark.parametrize("options", [{}, {"min_gain": "any"}, {"duplicates": "miss"}, {"exclude": "unjudged"}], ids=str)
@pytest.mark.parametrize("graded", [False, True], ids=["plain", "graded"])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_hits_are_those_without_providers(options: dict[str, Any], graded: bool, width: Any) -> None:
    rng = np.random.default_rng(7)
    recs = [rng.choice(60, size, replace=False).astype(width) for size in rng.integers(0, 40, 300)]
    truth: list[Any] = [rng.choice(60, size, replace=False).astype(width) for size in rng.integers(0, 12, 300)]
    if options.get("duplicates"):
        recs = [np.concatenate([row, row[:3]]) for row in recs]
    if graded:
        truth = [dict(zip(row.tolist(), rng.integers(0, 4, len(row)).astype(float), strict=True)) for row in truth]
    alone = fastrec.evaluate(recs, truth, OWN, k=[1, 5, 50], per_user=True, **options)
    both = fastrec.evaluate(recs, truth, [*OWN, *SHARED], k=[1, 5, 50], per_user=True, **options)
    names = list(alone)
    assert mean_bits({name: both.estimates[name] for name in names}) == mean_bits(alone.estimates)
    own, other = user_bits(alone), user_bits(both)
    assert {name: other[name] for name in own} == own


def long_lists() -> tuple[list[list[int]], list[list[int]]]:
    """Return lists of 300 items, with hits at all depths, and truths of up to 40 items."""
    rng = np.random.default_rng(3)
    recs = [rng.permutation(900)[:300].tolist() for _ in range(60)]
    return recs, [rng.permutation(900)[: rng.integers(1, 40)].tolist() for _ in range(60)]


AT_ANY_CUTOFF = ["compatibility", "inst(max_gain=1)", "insq(max_gain=1)", "nerr(max_gain=1)", "bpm(max_gain=1)"]
AT_ANY_CUTOFF += ["ndcg_rel", "rndcg", "normalized_gain", "bpref", "inf_ap", "median_rank", "eleven_point_average"]


@pytest.mark.parametrize("metric", AT_ANY_CUTOFF)
def test_a_value_has_the_same_bits_beside_other_cutoffs(metric: str) -> None:
    recs, truth = long_lists()
    alone = fastrec.evaluate(recs, truth, [metric], k=200, per_user=True)
    beside = fastrec.evaluate(recs, truth, [metric], k=[17, 50, 101, 200, 300], per_user=True)
    (name,) = alone
    assert user_bits(beside)[name] == user_bits(alone)[name]


OF_FEW_MISSES = ["inst(max_gain=1)", "inst(max_gain=1,t=4)", "nerr(max_gain=2,model=goal,t=2)", "normalized_gain"]
OF_MANY_MISSES = ["inst(max_gain=1000,t=13.5)", "nerr(max_gain=1000,model=goal,t=27)", "rndcg"]


@pytest.mark.parametrize("metric", [*OF_FEW_MISSES, *OF_MANY_MISSES])
def test_a_value_has_the_same_bits_beside_other_users(metric: str) -> None:
    recs = [list(range(1200)), list(range(1200))]
    for rank in (3, 457, 700):
        truth = [{rank - 1: 1.0, rank + 20: 1.0}, {1189: 1.0}]
        both = fastrec.evaluate(recs, truth, [metric], k=1200, per_user=True)
        alone = fastrec.evaluate(recs[:1], truth[:1], [metric], k=1200, per_user=True)
        (name,) = alone
        assert user_bits(both)[name][:1] == user_bits(alone)[name]


@pytest.mark.filterwarnings("ignore:no row of the truth has a gain above 0")
def test_tables_of_gains_may_have_one_entry() -> None:
    truth = [{1: 0.0, 2: 0.0, 3: 0.0}, {4: 0.0}]
    report = fastrec.evaluate([[1, 2, 3], [4, 5]], truth, ["ndcg(gain=[0])@3"], no_truth="zero")
    assert report["ndcg(gain=[0])@3"] == 0.0


def test_hits_are_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    rows = ListSource.rows
    monkeypatch.setattr(ListSource, "rows", lambda own, *others: given.append(others[1].hits) or rows(own, *others))
    fastrec.evaluate([[1, 2], [3, 4]], [[1], [5]], ["bpref@2", "ndcg@2"])
    fastrec.evaluate([[1, 2], [3, 4]], [[1], [5]], ["ndcg@2"])
    known, unknown = given
    assert known.spans[COUNT].tolist() == [1, 0] and unknown is None


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_fault_in_one_part_is_found_beside_others(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "USERS_PER_PART", 4096)
    n_users = 20_000
    recs = np.tile(np.arange(4), (n_users, 1))
    truth = [[1, 9]] * n_users
    groups = {"third": np.arange(n_users) % 3}
    options: dict[str, Any] = {"n_threads": n_threads, "groups": groups}
    both = fastrec.evaluate(recs, truth, ["bpref@4", "ndcg@4"], **options)
    alone = fastrec.evaluate(recs, truth, ["ndcg@4"], **options)
    assert both["ndcg@4"] == alone["ndcg@4"]
    assert {key: own["ndcg@4"] for key, own in both.groups["third"].items()} == {
        key: own["ndcg@4"] for key, own in alone.groups["third"].items()
    }
    recs[17_000, 3] = recs[17_000, 0]
    with pytest.raises(fastrec.InputError, match="recs of user 17000: item 0 appears twice"):
        fastrec.evaluate(recs, truth, ["bpref@4", "ndcg@4"], **options)


def test_a_catalogue_that_is_too_small_is_found_with_known_hits() -> None:
    for user in (2, 700):
        truth = [[1, 2]] * 800
        truth[user] = [9, 8]
        with pytest.raises(fastrec.InputError, match=rf"user {user} have 5 items"):
            fastrec.evaluate([[1, 2, 3]] * 800, truth, ["bpref", "accuracy@3"], n_items=4)


@pytest.mark.parametrize("metric", ["rndcg", "ndcg_rel", "compatibility"])
def test_gains_below_all_normal_numbers_count_by_their_ratio(metric: str) -> None:
    names = [f"{metric}@{k}" for k in (1, 2)]
    tiny, plain = (
        fastrec.evaluate([[7, 1]], [{9: 2.0 * step, 1: step}], metric, k=[1, 2]) for step in (2.0**-1040, 1.0)
    )
    assert [tiny[name] for name in names] == pytest.approx([plain[name] for name in names], rel=1e-9)


@pytest.mark.parametrize(
    ("recs", "truth"),
    [
        ([2, 1, 0], {0: 1e-18, 1: 1e-17, 2: 0.7313302949248555}),
        ([1, 100, 101, 102], {0: 1e-18, 1: 3.5980401486402362, 2: 1e-17}),
    ],
)
def test_rounding_takes_no_mean_of_ndcg_above_1(recs: list[int], truth: dict[int, float]) -> None:
    report = fastrec.evaluate([recs], [truth], "rndcg", k=[1, 2, 50], per_user=True)
    assert max(own.max() for own in report.per_user.values()) <= 1.0


@pytest.mark.parametrize(
    ("recs", "truth", "wanted"),
    [
        ([12, 0, 8, 7, 1], {1: 1e32, 5: 1.0, 12: 1e32, 7: 1e32, 8: 3.0}, 0.5467789803119856),
        ([10, 4, 12, 14, 6], {4: 1e20, 5: 1e5, 12: 1e40}, 0.060205894545490996),
        ([7, 10, 11, 0, 5, 1, 14, 13, 3, 9], {1: 1e20, 4: 1.0, 9: 1e40}, 0.3010299956639812),
    ],
)
def test_lost_gain_is_exact_where_gains_are_far_apart(recs: list[int], truth: dict[int, float], wanted: float) -> None:
    assert fastrec.evaluate([recs], [truth], "normalized_gain")["normalized_gain"] == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize("no_truth", ["zero", "skip"])
def test_no_row_of_a_plain_truth_has_a_gain_of_2(no_truth: str) -> None:
    metrics = [f"{name}@3" for name in PROVIDED]
    report = fastrec.evaluate([[1, 2, 3], []], [[2, 9], [1]], metrics, min_gain=2, no_truth=no_truth, per_user=True)
    for name in metrics:
        assert set(np.nan_to_num(report.per_user[name]).tolist()) == {0.0}


TOGETHER = ["median_rank", "r_precision", "r_precision(multiple=0.4)", "ndcg(min_gain=2)", "recall", "cg", "hits"]


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("options", [{}, {"user_weight": True}, {"ties": "expected"}], ids=str)
@pytest.mark.parametrize("n_users", [1, 2, 513])
def test_metrics_have_the_same_bits_alone_and_together(options: dict[str, Any], n_users: int) -> None:
    rng = np.random.default_rng(n_users)
    for hits in ((0, 0), (0, n_users // 2), (n_users // 2, n_users), (0, n_users)):  # the users who may have some
        recs = [rng.permutation(30)[: rng.integers(1, 20)].tolist() for _ in range(n_users)]
        ids = [
            rng.permutation(30)[: rng.integers(0, 9)] + (0 if hits[0] <= u < hits[1] else 30) for u in range(n_users)
        ]
        truth = [{int(item): float(rng.integers(1, 4)) for item in own} for own in ids]
        ask = {"k": [1, 5, 50], "groups": {"g": rng.integers(0, 3, n_users)}, **options}
        if "user_weight" in ask:
            ask["user_weight"] = rng.random(n_users)
        metrics = TOGETHER
        if "ties" in ask:
            recs = [{item: float(rng.integers(0, 3)) for item in own} for own in recs]
            metrics = [name for name in TOGETHER if name not in ("median_rank", *TOGETHER[1:3])]
        together = fastrec.evaluate(recs, truth, metrics, **ask)
        for name in metrics:
            alone = fastrec.evaluate(recs, truth, [name], **ask)
            assert mean_bits({key: together.estimates[key] for key in alone}) == mean_bits(alone.estimates)
            for label, own in alone.groups["g"].items():
                assert repr({key: together.groups["g"][label][key] for key in own}) == repr(dict(own))


@pytest.mark.parametrize("groups", [None, {"half": np.arange(1200) % 2}], ids=["alone", "groups"])
def test_an_overflow_names_the_user_of_a_later_block(groups: dict[str, Any] | None) -> None:
    truth: list[Any] = [{0: 1.0, 1: 1.0}] * 1200
    truth[700] = {0: 1e308, 1: 1e308}
    with pytest.raises(fastrec.InputError, match="cg@2 of user 700 is too large for a double"):
        fastrec.evaluate([[0, 1]] * 1200, truth, ["cg@2", "hits@2"], groups=groups)


@pytest.mark.parametrize("metric", AT_ANY_CUTOFF)
def test_batches_without_rows_leave_the_bits(metric: str) -> None:
    whole = fastrec.evaluate([[1, 2], [], [], [5]], [[2], [], [7], []], [metric], k=10, no_truth="zero")
    evaluator = fastrec.Evaluator([metric], k=10, no_truth="zero")
    for recs, truth in (([[1, 2]], [[2]]), ([[]], [[]]), ([[], [5]], [[7], []])):
        evaluator.update(recs, truth)
    assert mean_bits(evaluator.result().estimates) == mean_bits(whole.estimates)
