"""Changes to scored rows that must not change a bit: order of users, division of the work, form of rows, scale of
scores."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.evaluation.rows import RowEvaluation
from fastrec.runtime.launcher import SMALL_WORK
from support import strategies
from support.bits import group_bits, mean_bits, number_bits, user_bits
from support.list_calls import CI, flat, recs_of, truth_of
from support.row_calls import RANKED, refuses_ties, takes
from support.row_users import ASKS, N_ITEMS, N_USERS, ORDER_OF_ROWS, TEXTS, USERS
from support.strategies import Log, ScoredLog

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

FEWER = settings(CI, max_examples=12)
FEW = TEXTS[::29]
WEIGHTED = [ask.text for ask in ASKS if ask.text not in {ranked.text for ranked in RANKED}][::9]
ORDER_METRICS = [ask.text for ask in RANKED if takes(ask, "binary", "any") and not refuses_ties(ask)][::17]
for interpolation in ("step", "trapezoid", "davis_goadrich"):
    ORDER_OF_ROWS.append(f"average_precision(interpolation={interpolation})")
    ORDER_OF_ROWS.append(f"average_precision(interpolation={interpolation}, average=user)")
ORDER_METRICS += ORDER_OF_ROWS


ALL = slice(None)
INDPTR = USERS.call(ALL)["indptr"]
DRAW = np.random.default_rng(4)
SEGMENTS = {"device": DRAW.choice(["phone", "tv"], INDPTR[-1]), "position": DRAW.integers(-2, 9, INDPTR[-1])}


def evaluate(metrics: list[str], call: dict[str, Any], **more: Any) -> fastrec.Report:
    return fastrec.evaluate_scores(**{"metrics": metrics, "n_items": N_ITEMS, "per_user": True} | call | more)


def all_bits(report: fastrec.Report) -> Any:
    return mean_bits(report.estimates), user_bits(report), group_bits(report), report.users, report.data


def assert_same(found: fastrec.Report, expected: fastrec.Report, order: Any = ALL) -> None:
    """Check for the same bits; the users of the found report come in `order` in the expected one."""
    assert mean_bits(found.estimates) == mean_bits(expected.estimates)
    assert group_bits(found) == group_bits(expected)
    assert user_bits(found) == user_bits(expected, order)
    assert found.users == expected.users
    assert found.data == expected.data


# Order of users and division of the work


KINDS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.thorough(except_for="True-False")
@pytest.mark.parametrize(("weighted", "row_weights"), KINDS)
def test_the_order_of_users_does_not_matter(weighted: bool, row_weights: bool) -> None:
    order = np.random.default_rng(1).permutation(N_USERS)
    texts = WEIGHTED if row_weights else TEXTS[::3]
    kind = {"weighted": weighted, "row_weights": row_weights}
    assert_same(evaluate(texts, USERS.call(order, **kind)), evaluate(texts, USERS.call(ALL, **kind)), order)


@pytest.mark.thorough(except_for="^(plain-False|True-False)$")
@pytest.mark.parametrize(("weighted", "row_weights"), KINDS)
@FEWER
@given(data=st.data())
def test_any_split_and_any_order_of_merging(weighted: bool, row_weights: bool, data: st.DataObject) -> None:
    texts = WEIGHTED if row_weights else FEW
    kind = {"weighted": weighted, "row_weights": row_weights}

    def evaluator() -> fastrec.ScoreEvaluator:
        return fastrec.ScoreEvaluator(texts, n_items=N_ITEMS, per_user=True)

    def add(to: fastrec.ScoreEvaluator, users: slice) -> None:
        ids = np.arange(N_USERS)[users]
        chosen = slice(*INDPTR[[*ids[:1], *ids[-1:] + 1]].tolist()) if len(ids) else slice(0)
        named = {name: labels[chosen] for name, labels in SEGMENTS.items()}
        to.update(**USERS.call(users, **kind), user_ids=ids, row_groups=named)

    whole = evaluator()
    add(whole, ALL)
    # so wide that no part has only rows of weight 0, which are errors
    edges = sorted(data.draw(st.lists(st.integers(0, 14).map(lambda nth: 50 * nth), max_size=5)))
    parts: list[fastrec.ScoreEvaluator] = []
    for start, end in zip([0, *edges], [*edges, N_USERS], strict=True):
        if not parts or data.draw(st.booleans(), label="in an evaluator of its own"):
            parts.append(evaluator())
        add(parts[-1], slice(start, end))
    if data.draw(st.booleans(), label="with one that saw nobody"):
        parts.append(evaluator())
    if data.draw(st.booleans(), label="travelled"):
        parts = [pickle.loads(pickle.dumps(part)) for part in parts]
    found, expected = strategies.merged(data, parts).result(), whole.result()
    assert found.user_ids is not None
    assert_same(found, expected, found.user_ids)
    assert found.settings == expected.settings


def test_rows_without_users_may_be_cut_anywhere() -> None:
    texts = ["auc", "auc(max_fpr=0.4)", "average_precision", "ks", "brier", "ece", "log_loss", "f1(threshold=0.5)"]
    call = USERS.call(ALL)
    labels, scores = call["labels"], call["scores"]
    whole = fastrec.evaluate_scores(labels, scores, metrics=["auc", "average_precision", "ks"])
    for cut in (0, 1, 4096, len(labels) - 1):
        first, second = fastrec.ScoreEvaluator(texts), fastrec.ScoreEvaluator(texts)
        first.update(labels[cut:], scores[cut:])
        second.update(labels[:cut], scores[:cut])
        report = first.merge(second).result()
        for text in whole:
            assert number_bits([report[text]]) == number_bits([whole[text]])
            assert number_bits([report.std_error(text)]) == number_bits([whole.std_error(text)])


def test_before_the_first_batch_is_as_after_an_empty_one() -> None:
    first, second = (fastrec.ScoreEvaluator(ORDER_METRICS, n_items=N_ITEMS) for _ in range(2))
    second.update([], [], [0])
    assert mean_bits(first.result().estimates) == mean_bits(second.result().estimates)


def of_type(dtype: Any, user: str) -> fastrec.ScoreEvaluator:
    evaluator = fastrec.ScoreEvaluator(["auc", "log_loss"])
    evaluator.update([1, 0], np.array([0.9, 0.2], dtype), user_ids=[user, user])
    return evaluator


@pytest.mark.parametrize(("first", "second"), [(np.float32, np.float64), (np.float64, np.float32), (np.float16, int)])
def test_batches_have_one_type_of_scores(first: Any, second: Any) -> None:
    """Each batch had its own clips: that of one type with all rows has other bits."""
    evaluator, other = of_type(first, "a"), of_type(second, "b")
    kept = evaluator.to_bytes()
    batch = np.array([1, 0]), np.array([1, 0], second)
    merged = fastrec.ScoreEvaluator(["auc", "log_loss"]).merge(of_type(first, "a"))
    for one in (evaluator, fastrec.ScoreEvaluator.from_bytes(kept), merged):
        with pytest.raises(fastrec.InputTypeError, match=r"scores hold float\d\d, but float\d\d in earlier batches"):
            one.update(*batch, user_ids=["c", "c"])
        with pytest.raises(fastrec.InputError, match=r"the type of scores is 'float.*' here and 'float.*' there"):
            one.merge(other)
        one.update([], np.zeros(0, second), user_ids=np.zeros(0, "U1"))
        one.update([1, 0], np.array([1, 0], first), user_ids=["d", "d"])
    evaluator.reset()
    evaluator.update(*batch, user_ids=["c", "c"])


def test_a_user_comes_whole() -> None:
    evaluator = fastrec.ScoreEvaluator(["gauc"])
    evaluator.update([1, 0], [0.5, 0.4], user_ids=["a", "a"])
    with pytest.raises(fastrec.InputError, match="'a'"):
        evaluator.update([1, 0], [0.5, 0.4], user_ids=["b", "a"])
    other = fastrec.ScoreEvaluator(["gauc"])
    other.update([1], [0.5], user_ids=["a"])
    with pytest.raises(fastrec.InputError, match="'a'"):
        evaluator.merge(other)
    assert evaluator.result().users["total"] == 1


def test_an_error_leaves_an_evaluator_as_it_was() -> None:
    evaluator = fastrec.ScoreEvaluator(["gauc", "auc", "mrr"], ties="error")
    evaluator.update([1, 0], [0.5, 0.4], [0, 2])
    before = evaluator.result().to_dict()
    for labels, scores in (([1, 0], [0.5, math.nan]), ([2, 0], [0.5, 0.1]), ([1, 0], [0.5, 0.5])):
        with pytest.raises(fastrec.InputError):
            evaluator.update(labels, scores, [0, 2])
        assert evaluator.result().to_dict() == before
    evaluator.update([1, 0], [0.4, 0.5], [0, 2])
    assert evaluator.result()["gauc"] == 0.5


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (lambda: fastrec.ScoreEvaluator(["gauc"]), "metrics"),
        (lambda: fastrec.ScoreEvaluator(["auc"], ties="best"), "ties"),
        (lambda: fastrec.ScoreEvaluator(["auc"], one_class="half"), "one_class"),
        (lambda: fastrec.ScoreEvaluator(["auc"], min_gain=2), "min_gain"),
    ],
)
def test_what_cannot_be_merged(other: Any, match: str) -> None:
    with pytest.raises(fastrec.InputError, match=match):
        fastrec.ScoreEvaluator(["auc"]).merge(other())
    with pytest.raises(fastrec.InputTypeError, match="ScoreEvaluator"):
        fastrec.ScoreEvaluator(["auc"]).merge(fastrec.Evaluator(["mrr"]))


def test_a_merged_evaluator_leaves_the_other_alone() -> None:
    first, second = fastrec.ScoreEvaluator(["auc", "gauc"]), fastrec.ScoreEvaluator(["auc", "gauc"])
    first.update([1, 0], [0.5, 0.4], [0, 2])
    second.update([1, 0], [0.1, 0.4], [0, 2])
    before = second.result().to_dict()
    first.merge(second)
    first.update([1, 0, 0], [0.1, 0.4, 0.7], [0, 3])
    assert second.result().to_dict() == before
    third = fastrec.ScoreEvaluator(["auc", "gauc"])
    third.merge(second)
    third.update([1, 0, 0], [0.1, 0.4, 0.7], [0, 3])
    assert second.result().to_dict() == before


@pytest.mark.thorough
@pytest.mark.parametrize("row_weights", [False, True])
def test_any_number_of_threads_on_few_rows(row_weights: bool) -> None:
    texts = WEIGHTED if row_weights else FEW
    call = USERS.call(ALL, weighted=True, row_weights=row_weights)
    one = all_bits(evaluate(texts, call, n_threads=1))
    for n_threads in range(2, 9):
        assert all_bits(evaluate(texts, call, n_threads=n_threads)) == one


LARGE_TEXTS = ["gauc", "gauc(weight=pairs, constant=drop)", "auc", "average_precision(average=user)", "log_loss", "ece"]
LARGE_TEXTS += ["ks(average=user)", "ece(strategy=quantile, average=user)", "mcc(threshold=0.5)", "rmse(average=user)"]
RANKED_TEXTS = ["ndcg@10", "map", "mrr@5", "hit_rate@3", "map(denominator=hits)@10", "f1(average=means)@5", "rbp"]


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    """Return enough rows to run in parallel; one user has a fifth of them."""
    draw = np.random.default_rng(4)
    lengths = draw.integers(0, 200, 5500)
    lengths[3000] = 120_000
    n = int(lengths.sum())
    assert n > SMALL_WORK
    return {
        "labels": draw.random(n) < 0.3,
        "scores": np.round(draw.random(n), 3).astype(np.float32),
        "indptr": np.cumsum([0, *lengths]),
        "groups": draw.integers(0, 4, 5500),
        "user_weight": draw.choice([0.0, 1.0, 3.3], 5500),
    }


@pytest.mark.thorough
def test_any_number_of_threads_on_many_rows(large: dict[str, Any]) -> None:
    texts = LARGE_TEXTS + RANKED_TEXTS
    one = all_bits(evaluate(texts, large, n_threads=1, n_items=10**6))
    for n_threads in (2, 3):
        assert all_bits(evaluate(texts, large, n_threads=n_threads, n_items=10**6)) == one
    weights = np.random.default_rng(8).choice([0.0, 0.7, 2.0], len(large["labels"]))
    call = large | {"sample_weight": weights, "scores": large["scores"].astype(np.float64)}
    one = all_bits(evaluate(LARGE_TEXTS, call, n_threads=1, n_items=10**6))
    for n_threads in (2, 3):
        assert all_bits(evaluate(LARGE_TEXTS, call, n_threads=n_threads, n_items=10**6)) == one


# Order and types of rows


@pytest.mark.parametrize("n", [300, pytest.param(30_000, marks=pytest.mark.thorough)])
def test_shuffled_rows_with_keys(n: int) -> None:
    """Untied rows of a user may come in any order, between rows of other users."""
    draw = np.random.default_rng(3)
    lengths = draw.integers(1, 30, n)
    indptr = np.cumsum([0, *lengths])
    owners = np.repeat(np.arange(n), lengths)
    labels, scores = draw.integers(0, 2, len(owners)), draw.permutation(len(owners)) / len(owners)
    scores = scores if n == 300 else scores.round(3)  # with ties
    groups = {"letter": draw.choice(["a", "b"], n), "number": draw.integers(0, 3, n)}
    call = {"metrics": ["auc", "gauc", "ks(average=user)", *RANKED_TEXTS], "per_user": True}
    expected = fastrec.evaluate_scores(labels, scores, indptr, groups=groups, **call)
    order = draw.permutation(len(owners))
    mixed = owners[order]
    for keys in (mixed, -(n - mixed), (mixed // 10, mixed % 10), [f"{user:05}" for user in mixed.tolist()]):
        own = {name: labels[mixed] for name, labels in groups.items()}
        found = fastrec.evaluate_scores(labels[order], scores[order], user_ids=keys, groups=own, **call)
        assert_same(found, expected)


TYPES = [(bool, np.float64), (np.int8, np.float64), (np.int64, np.float64), (np.uint16, np.float64)]
TYPES += [(np.float32, np.float64), (np.float64, np.float32), (np.float16, np.float64), (np.int32, np.float32)]


@pytest.mark.thorough
def test_types_of_labels_and_scores() -> None:
    call = USERS.call(ALL)
    call["scores"] = np.round(call["scores"] * 64) / 64  # values that any type holds
    texts = [text for text in FEW if "log_loss" not in text and "entropy" not in text]
    expected = evaluate(texts, call)
    for labels, scores in TYPES:
        own = call | {"labels": call["labels"].astype(labels), "scores": call["scores"].astype(scores)}
        assert_same(evaluate(texts, own), expected)
    lists = call | {name: call[name].tolist() for name in ("labels", "scores", "indptr")}
    assert_same(evaluate(texts, lists), expected)
    strided = call | {name: np.repeat(call[name], 2)[::2] for name in ("labels", "scores")}
    assert_same(evaluate(texts, strided), expected)
    swapped = call | {"scores": call["scores"].astype(">f8"), "labels": call["labels"].astype(">i4")}
    assert_same(evaluate(texts, swapped), expected)


def test_integer_scores_are_converted() -> None:
    expected = fastrec.evaluate_scores([1, 0, 1], [3.0, 2.0, 2.0], [0, 3], ["gauc", "mrr", "mae"])
    for scores in ([3, 2, 2], np.array([3, 2, 2], np.uint8), np.array([3, 2, 2], np.int64)):
        found = fastrec.evaluate_scores([1, 0, 1], scores, [0, 3], ["gauc", "mrr", "mae"])
        assert mean_bits(found.estimates) == mean_bits(expected.estimates)


def test_arguments_are_left_alone() -> None:
    call = USERS.call(ALL, weighted=True)
    kept = {name: np.array(value, copy=True) for name, value in call.items() if name != "groups"}
    evaluate(FEW, call)
    for name, value in kept.items():
        np.testing.assert_array_equal(call[name], value)
    for value in (call["labels"], call["scores"], call["indptr"]):
        value.flags.writeable = False
    evaluate(FEW, call)


# Scale of scores


@pytest.mark.parametrize(
    "transform",
    [lambda x: 2 * x, lambda x: x**3, np.exp, lambda x: -1 / (x + 1), lambda x: np.log(x + 1e-9), lambda x: x * 1e300],
)
def test_monotone_transforms_change_no_order_metric(transform: Any) -> None:
    call = USERS.call(ALL)
    call["scores"] = np.round(call["scores"], 2)
    moved = transform(call["scores"])
    assert len(np.unique(moved)) == len(np.unique(call["scores"]))
    assert_same(evaluate(ORDER_METRICS, call | {"scores": moved}), evaluate(ORDER_METRICS, call))


def test_negated_scores_turn_the_order() -> None:
    call = USERS.call(ALL)
    texts = ["auc", "gauc", "gauc(weight=equal)"]
    report, mirror = evaluate(texts, call), evaluate(texts, call | {"scores": -call["scores"]})
    for text in texts:
        assert report[text] == pytest.approx(1 - mirror[text], abs=1e-15)
    np.testing.assert_allclose(report.per_user["gauc"], 1 - mirror.per_user["gauc"], rtol=0, atol=1e-15)


@pytest.mark.thorough
def test_infinities_are_scores() -> None:
    scores = np.array([math.inf, 3.0, math.inf, -math.inf, -2.0, -math.inf])
    finite = np.array([9.0, 3.0, 9.0, -9.0, -2.0, -9.0])
    labels = [1, 0, 0, 1, 1, 0]
    for dtype in (np.float32, np.float64):
        found = fastrec.evaluate_scores(labels, scores.astype(dtype), [0, 3, 6], ORDER_METRICS, n_items=10)
        expected = fastrec.evaluate_scores(labels, finite.astype(dtype), [0, 3, 6], ORDER_METRICS, n_items=10)
        assert mean_bits(found.estimates) == mean_bits(expected.estimates)


@pytest.mark.thorough(except_for="^4-float64$")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [4, 1000])
def test_zeros_are_equal(n: int, dtype: Any) -> None:
    """-0.0 ties with 0.0, whether rows are counted or sorted."""
    draw = np.random.default_rng(n)
    labels = draw.integers(0, 2, n)
    labels[:2] = 0, 1
    plain = np.where(draw.random(n) < 0.6, 0.0, draw.choice([-1.0, 1.0], n)).astype(dtype)
    mixed = np.where((plain == 0) & (draw.random(n) < 0.5), dtype(-0.0), plain).astype(dtype)
    assert np.signbit(mixed).sum() > np.signbit(plain).sum()
    for more in ({}, {"sample_weight": draw.choice([0.5, 1.0], n)}):
        texts = ORDER_METRICS if not more else ORDER_OF_ROWS
        found = fastrec.evaluate_scores(labels, mixed, [0, n], texts, n_items=n, **more)
        expected = fastrec.evaluate_scores(labels, plain, [0, n], texts, n_items=n, **more)
        assert mean_bits(found.estimates) == mean_bits(expected.estimates)


@pytest.mark.parametrize("n", [2, 1000])
def test_doubles_that_are_one_float32_stay_apart(n: int) -> None:
    labels = np.arange(n) % 2
    scores = 0.5 + np.arange(n) * 2.0**-50
    assert len(np.unique(scores.astype(np.float32))) == 1
    texts = ["auc", "gauc", "mrr", "average_precision", "ks"]
    found = fastrec.evaluate_scores(labels, scores, [0, n], texts)
    expected = fastrec.evaluate_scores(labels, np.arange(n), [0, n], texts)
    assert mean_bits(found.estimates) == mean_bits(expected.estimates)
    single = fastrec.evaluate_scores(labels, scores.astype(np.float32), [0, n], texts)
    assert single["auc"] == single["gauc"] == 0.5


# Lists and rows


@pytest.mark.thorough
@CI
@given(data=st.data(), kind=st.sampled_from(["plain", "integer", "graded"]))
def test_lists_with_scores_are_rows(data: st.DataObject, kind: str) -> None:
    """If all truth is in the lists, `evaluate` and `evaluate_scores` give the same bits."""
    drawn = data.draw(strategies.logs(graded=kind != "plain", integer=kind == "integer"))
    truth = [
        [(item, gain) for item, gain in rows if item in set(items)]
        for items, rows in zip(drawn.recs, drawn.truth, strict=True)
    ]
    log = Log(drawn.recs, truth)
    scores = flat(data.draw(strategies.scores(log)), np.float64)[0]
    labels = flat(
        [[dict(rows).get(item, 0.0) for item in items] for items, rows in zip(log.recs, truth, strict=True)], np.float64
    )[0]
    items, indptr = recs_of(log)
    ties = data.draw(st.sampled_from(["expected", "input", "worst", "best", "id_asc", "id_desc"]))
    asks = [ask for ask in RANKED if ask.allowed(kind) and not (ties == "expected" and refuses_ties(ask))]
    texts = [ask.text for ask in asks[data.draw(st.integers(0, 12)) :: 13]]
    call = {"n_items": 50, "per_user": True, "ties": ties, "no_truth": data.draw(st.sampled_from(["skip", "zero"]))}
    of_lists = fastrec.evaluate((items, indptr, scores), truth_of(log), texts, **call)
    of_rows = fastrec.evaluate_scores(labels, scores, indptr, texts, item_ids=items, **call)
    assert mean_bits(of_rows.estimates) == mean_bits(of_lists.estimates)
    assert user_bits(of_rows) == user_bits(of_lists)


@pytest.mark.thorough(except_for="float64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_in_falling_order_are_lists(dtype: Any) -> None:
    """Without ties the bits are those of lists in rank order, under every policy."""
    draw = np.random.default_rng(2)
    lengths = draw.integers(0, 60, 800)
    indptr = np.cumsum([0, *lengths])
    gains = draw.choice([0.0, 0.0, 1.0, 2.0, 3.0], indptr[-1])
    ranks = np.concatenate([np.arange(n) for n in lengths])
    texts = [ask.text for ask in RANKED if ask.allowed("integer")][::7]
    expected = fastrec.evaluate((ranks, indptr), (ranks, indptr, gains), texts, n_items=100, per_user=True)
    for ties in ("expected", "input", "worst", "best", "error"):
        found = fastrec.evaluate_scores(
            gains, (-ranks).astype(dtype), indptr, texts, n_items=100, per_user=True, ties=ties
        )
        assert mean_bits(found.estimates) == mean_bits(expected.estimates)
        assert user_bits(found) == user_bits(expected)


@CI
@given(log=strategies.scored_logs(longest=12))
def test_worst_and_best_enclose_every_policy(log: ScoredLog) -> None:
    labels, indptr = flat(log.labels, np.float64)
    scores = flat(log.scores, np.float64)[0]
    texts = ["hits@2", "mrr", "map@3", "ndcg@4", "rbp", "hit_rate@1", "f1@3"]

    def values(ties: str) -> Any:
        report = fastrec.evaluate_scores(labels, scores, indptr, texts, per_user=True, ties=ties, no_truth="zero")
        return np.array([report.per_user[text] for text in texts])

    low, high = values("worst"), values("best")
    for ties in ("expected", "input"):
        assert (values(ties) >= low - 1e-12).all()
        assert (values(ties) <= high + 1e-12).all()


# Weights


def test_weights_of_one_are_no_weights() -> None:
    call = USERS.call(ALL)
    plain = evaluate(WEIGHTED, call)
    ones = evaluate(WEIGHTED, call | {"sample_weight": np.ones(len(call["labels"]))})
    for text in WEIGHTED:
        np.testing.assert_allclose(ones.per_user[text], plain.per_user[text], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(ones[text], plain[text], rtol=1e-13, atol=1e-14)
        assert ones.estimates[text].users == plain.estimates[text].users


def test_rows_of_weight_zero_are_no_rows() -> None:
    call = USERS.call(ALL, row_weights=True)
    kept = call["sample_weight"] > 0
    lengths = np.add.reduceat(np.append(kept, 0), call["indptr"][:-1]) * (np.diff(call["indptr"]) > 0)
    without = call | {name: call[name][kept] for name in ("labels", "scores", "sample_weight")}
    without["indptr"] = np.cumsum([0, *lengths])
    for text in WEIGHTED:
        found, expected = evaluate([text], call), evaluate([text], without)
        np.testing.assert_allclose(found.per_user[text], expected.per_user[text], rtol=1e-13, atol=1e-14, err_msg=text)
        assert found.estimates[text].users == expected.estimates[text].users, text
        np.testing.assert_allclose(found[text], expected[text], rtol=1e-13, atol=1e-14, err_msg=text)


@pytest.mark.parametrize("scale", [2.0**-60, 1e-50, 1e50])
def test_the_scale_of_weights_does_not_matter(scale: float) -> None:
    call = USERS.call(ALL, weighted=True, row_weights=True)
    call["user_weight"] = USERS.weights * 1.0
    expected = evaluate(WEIGHTED, call)
    found = evaluate(WEIGHTED, call | {"sample_weight": call["sample_weight"] * scale})
    for text in WEIGHTED:
        np.testing.assert_allclose(found.per_user[text], expected.per_user[text], rtol=1e-12, atol=1e-13, err_msg=text)
        np.testing.assert_allclose(found[text], expected[text], rtol=1e-12, atol=1e-13, err_msg=text)
        np.testing.assert_allclose(found.std_error(text), expected.std_error(text), rtol=1e-9, atol=1e-12, err_msg=text)


# Other metrics in the call


@pytest.mark.thorough
def test_a_metric_is_the_same_alone_and_among_others() -> None:
    call = USERS.call(ALL)
    together = evaluate(TEXTS, call)
    for text in FEW:
        alone = evaluate([text], call)
        assert number_bits(alone.per_user[text]) == number_bits(together.per_user[text]), text
        assert number_bits([alone[text], alone.std_error(text)]) == number_bits(
            [together[text], together.std_error(text)]
        ), text


def test_groups_are_what_their_users_alone_are() -> None:
    call = USERS.call(ALL, weighted=True)
    report = evaluate(FEW, call)
    for name, labels in USERS.groups.items():
        for label in np.unique(labels).tolist():
            alone = evaluate(FEW, USERS.call(labels == label, weighted=True))
            assert mean_bits(report.groups[name][label]) == mean_bits(alone.estimates)


def test_progress_reaches_the_end() -> None:
    seen: list[tuple[int, int]] = []
    evaluate(FEW, USERS.call(ALL), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (N_USERS, N_USERS)
    assert seen == sorted(seen)


# Batches without weight


UNWEIGHTED = "sample_weight must not be 0 for all rows"
OF_WEIGHTS = [
    "auc",
    "gauc",
    "average_precision",
    "log_loss",
    "calibration",
    "rmse",
    "ece",
    "ks",
    "average_precision(average=user)",
    "precision(threshold=0.5)",
    "mcc(threshold=0.5)",
]


def weighted_batches(weighted: tuple[bool, ...]) -> list[dict[str, Any]]:
    """Return batches of 20 users, with groups of users and of rows; the others have rows of weight 0 only."""
    draw = np.random.default_rng(7)
    return [
        {
            "labels": draw.integers(0, 2, 200),
            "scores": draw.integers(1, 20, 200) / 20,
            "user_ids": np.repeat(np.arange(20), 10) + 20 * nth,
            "groups": np.repeat(np.arange(20), 10) % 3,
            "row_groups": {"place": draw.integers(0, 3, 200)},
            "sample_weight": draw.integers(0, 4, 200) * 0.37 * own,
        }
        for nth, own in enumerate(weighted)
    ]


def joined(batches: list[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {
        name: np.concatenate([own[name] for own in batches]) for name in batches[0] if name != "row_groups"
    }
    return whole | {"row_groups": {"place": np.concatenate([own["row_groups"]["place"] for own in batches])}}


def in_turn(batches: list[dict[str, Any]]) -> fastrec.ScoreEvaluator:
    evaluator = fastrec.ScoreEvaluator(OF_WEIGHTS, per_user=True)
    for batch in batches:
        evaluator.update(**batch)
    return evaluator


def merged(batches: list[dict[str, Any]]) -> fastrec.ScoreEvaluator:
    first, *others = [fastrec.ScoreEvaluator.from_bytes(in_turn([batch]).to_bytes()) for batch in batches]
    for other in others:
        first.merge(other)
    return fastrec.ScoreEvaluator.from_bytes(first.to_bytes())


def with_second_pass(batches: list[dict[str, Any]]) -> fastrec.Report:
    evaluation = RowEvaluation(OF_WEIGHTS, per_user=True)
    prepared = [evaluation.prepare(own["labels"], own["scores"], own.get("indptr"), own) for own in batches]
    for rows in prepared:
        evaluation.add(rows, None)
    for rows in prepared:
        evaluation.second_pass(rows)
    return evaluation.report()


@pytest.mark.parametrize("weighted", [(True, False, True), (False, True, False)])
def test_batches_without_weight(weighted: tuple[bool, ...]) -> None:
    batches = weighted_batches(weighted)
    one_batch = in_turn([joined(batches)]).result()
    for route in (in_turn, merged):
        assert all_bits(route(batches).result()) == all_bits(one_batch)
    with_errors = fastrec.evaluate_scores(metrics=OF_WEIGHTS, per_user=True, **joined(batches))
    assert all_bits(with_second_pass(batches)) == all_bits(with_errors)


@pytest.mark.parametrize("route", [in_turn, merged])
def test_batches_that_all_lack_weight(route: Any) -> None:
    evaluator = route(weighted_batches((False, False)))
    for found in (evaluator, pickle.loads(pickle.dumps(evaluator))):
        with pytest.raises(fastrec.InputError, match=f"^{UNWEIGHTED}$"):
            found.result()


def test_the_second_pass_needs_weight() -> None:
    with pytest.raises(fastrec.InputError, match=f"^{UNWEIGHTED}$"):
        with_second_pass(weighted_batches((False, False)))


def test_rows_that_all_lack_weight() -> None:
    whole = joined(weighted_batches((False, False)))
    with pytest.raises(fastrec.InputError, match=f"^{UNWEIGHTED}$"):
        fastrec.evaluate_scores(metrics=OF_WEIGHTS, **whole)
    del whole["row_groups"]
    models = {"a": whole.pop("scores"), "b": whole["labels"] * 0.5}
    with pytest.raises(fastrec.InputError, match=UNWEIGHTED):
        fastrec.compare_scores(whole.pop("labels"), models, metrics=OF_WEIGHTS, **whole)
