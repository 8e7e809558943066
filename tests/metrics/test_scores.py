"""Every metric of scored rows, with every choice of its options, in every form of input, against the naive oracle.

`fastrec.catalogue()` generates the matrix, as in `test_metrics`. Here it has the metrics of lists, on ranks from
scores, and the metrics of rows.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.kernels.codes import BLOCK
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import DECLARED
from fastrec.runtime.launcher import Launcher
from support import oracle, score_oracle, strategies, worked_cases
from support.known import COUNTS_ALL, OF_ITEMS, OF_JUDGEMENTS
from support.list_calls import CI, Ask, flat, recs_of, same, truth_of, write
from support.row_calls import (
    FORMS,
    MATRIX,
    OF_ROWS,
    ORDERS,
    RANKED,
    Form,
    Rows,
    arguments,
    check_estimate,
    expect,
    refuses_ties,
    rounded,
    takes,
)
from support.strategies import Log, ScoredLog
from support.worked_cases import ScoredCase

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

POLICIES = ["skip", "zero", "nan"]
SPARE = settings(CI, max_examples=15)


def test_the_matrix_is_that_of_the_oracle() -> None:
    assert {ask.name for ask in OF_ROWS} == {*score_oracle.ROWS, *score_oracle.CLASSES, "gauc"}
    of_lists = {
        metric["name"]
        for metric in fastrec.catalogue()
        if metric["kind"] == "ranking" and metric["name"] not in OF_ITEMS
    }
    assert of_lists == set(oracle.METRICS) >= {ask.name for ask in RANKED}


# Forms of rows that a call accepts


PLAIN = Form()


def check_call(rows: Rows, asks: list[Ask], form: Form = PLAIN, **call: Any) -> None:
    """Every value, standard error, count and group of one call equals that of the oracle."""
    if form.form != "indptr":
        rows = rows.of([u for u, own in enumerate(rows.log.labels) if own])
    rows = rounded(rows, form)
    given, keys = arguments(rows, form)
    report = fastrec.evaluate_scores(**given, metrics=[ask.text for ask in asks], per_user=True, **call)
    assert keys is None or (report.user_ids is not None and report.user_ids.tolist() == keys)
    assert report.users["total"] == len(rows.log.labels)
    members: dict[str, list[int]] = {}
    for user, label in enumerate(rows.groups or ()):
        members.setdefault(label, []).append(user)
    assert set(report.groups.get("group", {})) == set(members)
    parts = {label: rows.of(users) for label, users in members.items()}
    for ask in asks:
        expected = expect(rows, ask, form, **call)
        check_estimate(report.estimates[ask.text], expected, ask.text)
        values = report.per_user[ask.text].tolist()
        for user, (mine, theirs) in enumerate(zip(values, expected.per_user, strict=True)):
            assert same(mine, math.nan if theirs is None else theirs), f"{ask.text}: user {user}: {mine}, {theirs}"
        for label, part in parts.items():
            found = report.groups["group"][label][ask.text]
            check_estimate(found, expect(part, ask, form, **call), f"{ask.text} of group {label}")


# The matrix


@st.composite
def forms(draw: st.DrawFn, labels: str) -> Form:
    types = {"binary": [bool, np.int8, np.int64, np.float32, np.float64], "integer": [np.int8, np.int64, np.float32]}
    return Form(
        draw(st.sampled_from(FORMS)),
        draw(st.sampled_from([np.float32, np.float64])),
        draw(st.sampled_from(types.get(labels, [np.float32, np.float64]))),
    )


@st.composite
def rows_with_users(draw: st.DrawFn, log: ScoredLog) -> Rows:
    n_users = len(log.labels)
    labels = st.lists(st.sampled_from("ab"), min_size=n_users, max_size=n_users)
    return Rows(log, draw(st.none() | strategies.scored_user_weights(log)), draw(st.none() | labels))


def sampled(draw: Any, asks: list[Ask], stride: int) -> list[Ask]:
    """Return every `stride`-th metric: over many examples all of them."""
    return asks[draw(st.integers(0, stride - 1)) :: stride]


@pytest.mark.thorough
@pytest.mark.parametrize("labels", strategies.LABELS)
@CI
@given(data=st.data())
def test_ranks_from_tied_scores(labels: str, data: st.DataObject) -> None:
    """ties=expected: the mean over all orders of tied rows."""
    log = data.draw(strategies.scored_logs(labels=labels, max_users=4))
    asks = [ask for ask in RANKED if takes(ask, labels, "any") and not refuses_ties(ask)]
    check_call(
        data.draw(rows_with_users(log)),
        sampled(data.draw, asks, 9),
        data.draw(forms(labels)),
        n_items=data.draw(st.sampled_from([6, 100, 10**9 + 7])),
        min_gain=data.draw(st.sampled_from([None, 1.0, 2.25])),
        no_truth=data.draw(st.sampled_from(POLICIES)),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("labels", strategies.LABELS)
@CI
@given(data=st.data())
def test_ranks_from_ordered_scores(labels: str, data: st.DataObject) -> None:
    """Any other policy: one order, which may be long."""
    log = data.draw(strategies.scored_logs(labels=labels, longest=20))
    kind = data.draw(st.sampled_from([int, str]))
    ids = [data.draw(st.permutations(range(len(own)))) for own in log.labels]
    rows = data.draw(rows_with_users(log))._replace(item_ids=[[kind(1000 + i) for i in own] for own in ids])
    asks = [ask for ask in RANKED if takes(ask, labels, "any")]
    check_call(
        rows,
        sampled(data.draw, asks, 4),
        data.draw(forms(labels)),
        ties=data.draw(st.sampled_from(ORDERS)),
        n_items=data.draw(st.sampled_from([20, 100])),
        no_truth=data.draw(st.sampled_from(POLICIES)),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("scores", strategies.SCORE_POOLS)
@pytest.mark.parametrize("labels", strategies.LABELS)
@SPARE
@given(data=st.data())
def test_metrics_of_rows(labels: str, scores: str, data: st.DataObject) -> None:
    log = data.draw(strategies.scored_logs(labels=labels, scores=scores, longest=10))
    min_gain = data.draw(st.sampled_from([None, 1.0, 2.25]))
    rows = data.draw(rows_with_users(log))
    if sum(map(len, log.labels)) and data.draw(st.booleans(), label="weights of rows"):
        weights = data.draw(strategies.row_weights(log))
        some = [own for own in weights if own]
        some[0][0] = some[0][0] or 1.0  # only weights of 0 are an error
        rows = rows._replace(sample_weight=weights)
    check_call(
        rows,
        sampled(data.draw, [ask for ask in OF_ROWS if takes(ask, labels, scores, min_gain)], 3),
        data.draw(forms(labels)),
        min_gain=min_gain,
        one_class=data.draw(st.sampled_from(["drop", "half", "zero", "nan"])),
    )


def random_rows(labels: str, scores: str, n_users: int, seed: int, longest: int = 6) -> Rows:
    """Users with few and many rows, with one class and with ties, in three groups, some of weight 0."""
    draw = np.random.default_rng(seed)
    pool = strategies.SCORE_POOLS[scores]
    lengths = draw.integers(0, longest + 1, n_users)
    few = [pool[: int(size)] for size in draw.choice([1, 3, len(pool)], n_users)]
    log = ScoredLog(
        [draw.choice(strategies.LABELS[labels], n).tolist() for n in lengths],
        [draw.choice(own, n).tolist() for own, n in zip(few, lengths, strict=True)],
    )
    return Rows(
        log, draw.choice([0.0, 0.25, 1.0, 7.3], n_users).tolist(), draw.choice(["a", "b", "c"], n_users).tolist()
    )


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", strategies.LABELS)
def test_all_ranking_metrics_on_a_batch(labels: str, form: str) -> None:
    """Each form evaluates a quarter of the matrix."""
    rows = random_rows(labels, "any", 12, seed=FORMS.index(form), longest=5)
    asks = [ask for ask in RANKED if takes(ask, labels, "any") and not refuses_ties(ask)]
    check_call(rows, asks[FORMS.index(form) :: 4], Form(form), n_items=100)


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", strategies.LABELS)
def test_all_metrics_of_rows_on_a_batch(labels: str, weighted: bool) -> None:
    rows = random_rows(labels, "unit", 40, seed=3, longest=9)
    if weighted:
        draw = np.random.default_rng(5)
        rows = rows._replace(
            sample_weight=[draw.choice([0.0, 0.3, 1.0, 2.5], len(own)).tolist() for own in rows.log.labels]
        )
    check_call(rows, [ask for ask in OF_ROWS if takes(ask, labels, "unit")])
    check_call(rows._replace(weights=None), [ask for ask in OF_ROWS if takes(ask, labels, "unit")][::11])


@pytest.mark.thorough
def test_both_kinds_of_metric_in_one_call() -> None:
    rows = random_rows("binary", "unit", BLOCK + 40, seed=8)
    asks = [ask for ask in MATRIX if takes(ask, "binary", "unit") and not refuses_ties(ask)]
    for dtype in (np.float32, np.float64):
        check_call(rows._replace(groups=None), asks[::43], Form(scores=dtype, labels=np.int8), n_items=50)


REFUSING = [ask for ask in RANKED if refuses_ties(ask) and ask.allowed("integer")]


@pytest.mark.thorough
@SPARE
@given(data=st.data(), ask=st.sampled_from(REFUSING))
def test_metrics_without_a_closed_form(data: st.DataObject, ask: Ask) -> None:
    """They need none if no relevant row is tied, and otherwise an error names them."""
    gains = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=6))
    scores = [float(rank) if gain > 0 else 9.0 for rank, gain in enumerate(gains)]
    check_call(Rows(ScoredLog([gains], [scores])), [ask], n_items=20)
    with pytest.raises(fastrec.MetricError, match=rf"{ask.name}.*user 1.*'input', 'worst', 'best'"):
        fastrec.evaluate_scores(
            [1, 0, 0, 2, 0], [2, 1, 1, 1, 0], [0, 2, 5], write(ask.name, ask.options, 2), n_items=20
        )


# Worked cases


def evaluate_case(case: ScoredCase, form: Form = PLAIN) -> fastrec.Report:
    call = dict(case.call)
    rows = Rows(
        ScoredLog(case.labels, case.scores),
        weights=call.pop("weights", None),
        sample_weight=call.pop("sample_weight", None),
        item_ids=call.pop("item_ids", None),
    )
    return fastrec.evaluate_scores(**arguments(rows, form)[0], metrics=case.metric, **call)


@pytest.mark.parametrize("case", worked_cases.SCORED_CASES, ids=lambda case: case.name)
def test_worked_case(case: ScoredCase) -> None:
    report = evaluate_case(case)
    assert worked_cases.agrees(report[case.metric], case.expected, case.tolerance)
    if case.std_error is not None:
        assert worked_cases.agrees(report.std_error(case.metric), case.std_error, case.tolerance)


@pytest.mark.parametrize("case", worked_cases.SCORED_REFUSED, ids=lambda case: case.name)
def test_refused(case: ScoredCase) -> None:
    with pytest.raises(fastrec.InputError):
        evaluate_case(case)


@pytest.mark.parametrize("case", worked_cases.SCORED_DEFINED, ids=lambda case: case.name)
@pytest.mark.parametrize("labels", [bool, np.int8, np.int64, np.float32])
def test_numbered_cases_in_every_type(case: ScoredCase, labels: Any) -> None:
    found = evaluate_case(case, Form(labels=labels))[case.metric]
    assert worked_cases.agrees(found, case.expected, case.tolerance)


# Lists with scores


@pytest.mark.thorough
@CI
@given(data=st.data(), kind=st.sampled_from(["plain", "integer", "graded"]))
def test_expected_ties_of_lists(data: st.DataObject, kind: str) -> None:
    """Like rows, but truth may be in no list, and seen items may be excluded."""
    drawn = data.draw(strategies.logs(max_users=4, graded=kind != "plain", integer=kind == "integer"))
    log = Log([items[: strategies.MAX_ROWS] for items in drawn.recs], drawn.truth)
    pool = st.sampled_from(data.draw(st.sampled_from([strategies.SCORES, [0.0, -0.0, 1.0]])))
    scores = [data.draw(st.lists(pool, min_size=len(items), max_size=len(items))) for items in log.recs]
    asks = sampled(data.draw, [ask for ask in RANKED if ask.allowed(kind) and not refuses_ties(ask)], 9)
    weights = data.draw(st.none() | strategies.weights(log))
    seen = data.draw(st.none() | strategies.seen_items(log))
    call = {
        "n_items": data.draw(st.sampled_from([2 * strategies.LONGEST, 10**9 + 7])),
        "no_truth": data.draw(st.sampled_from(POLICIES)),
        "no_recs": data.draw(st.sampled_from(POLICIES)),
    }
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    with np.errstate(over="ignore"):
        own = flat(scores, np.float64)[0].astype(dtype)
        scores = [np.array(row, np.float64).astype(dtype).tolist() for row in scores]
    texts = [ask.text for ask in asks]
    excluded = None if seen is None else flat(seen)
    report = fastrec.evaluate(
        (*recs_of(log), own), truth_of(log), texts, per_user=True, user_weight=weights, exclude=excluded, **call
    )
    for ask in asks:
        rest = {"k": ask.k, "options": ask.options, "weights": weights, "exclude": seen, **call}
        expected = score_oracle.evaluate_lists(log.recs, log.truth, scores, ask.name, **rest)
        check_estimate(report.estimates[ask.text], expected, ask.text)
        for mine, theirs in zip(report.per_user[ask.text].tolist(), expected.per_user, strict=True):
            assert same(mine, math.nan if theirs is None else theirs), ask.text


@pytest.mark.parametrize("text", ["set_ap@2", "ndcg(ideal=list_at_k)@2"])
def test_lists_with_ties_that_no_closed_form_covers(text: str) -> None:
    recs, scores = [[1, 2, 3], [4, 5, 6]], [3.0, 2.0, 1.0, 1.0, 1.0, 0.0]
    with pytest.raises(fastrec.MetricError, match=r"user 'b'.*ties='input'"):
        fastrec.evaluate((*flat(recs), scores), [{1: 2.0}, {4: 2.0}], text, n_items=10, user_ids=["a", "b"])
    untied = fastrec.evaluate((*flat(recs), scores), [{1: 2.0}, {9: 2.0}], text, n_items=10, per_user=True)
    assert not np.isnan(untied.per_user[text]).any()


@pytest.mark.parametrize(("duplicates", "expected"), [("first", 1 / 2), ("miss", 5 / 12)])
def test_copies_of_an_item_among_ties(duplicates: Any, expected: float) -> None:
    """The later copy of 2 ties with 5: without it 5 has rank 2 alone, as a miss it shares ranks 2 and 3."""
    scored = ([2, 5, 2], [0, 3], [3.0, 1.0, 1.0])
    assert same(fastrec.evaluate(scored, [[5]], "mrr", duplicates=duplicates)["mrr"], expected)


# Long blocks and long users


LONG = ["hits@3", "hit_rate@3", "precision@9", "f1@7", "r_precision", "mrr", "mrr@5", "arhr@9", "map", "map@20"]
LONG += ["map(denominator=hits)@15", "dcg", "ndcg", "ndcg@10", "ndcg(gain=exp2)@30", "rbp(p=0.5)", "mcc@12"]


AREAS = ["limited_auc", "limited_auc@25", "limited_auc(unseen=list_only)", "limited_auc(unseen=list_only)@25"]


def tie_blocks(labels: Any, scores: Any) -> Any:
    return score_oracle.tie_blocks(labels.tolist(), scores.tolist())


@pytest.mark.thorough
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("n", [60, 300])
def test_long_tie_blocks(n: int, graded: bool) -> None:
    """Closed forms with fractions, because all orders are too many."""
    draw = np.random.default_rng(n)
    labels = draw.choice([0.0, 1.0, 2.0, 3.0], n, p=[0.7, 0.1, 0.1, 0.1])
    if not graded:
        labels = np.minimum(labels, 1.0)
    texts = [*LONG, *AREAS, "err(max_gain=3)@10", *(["err(max_gain=3)"] if n == 60 else [])]
    for pool in ([0.5], [0.1, 0.2], draw.random(n // 8)):
        scores = draw.choice(pool, n)
        report = fastrec.evaluate_scores(labels, scores, [0, n], texts, n_items=1000)
        blocks = tie_blocks(labels, scores)
        truth = sorted(labels[labels > 0].tolist(), reverse=True)
        for text in texts:
            metric, options, k = worked_cases.parse(text)
            user = oracle.User([gain for block in blocks for gain in block], truth, k, 1000)
            expected = score_oracle.closed_form(metric, user, blocks, **options)
            assert same(report[text], expected), (text, report[text], expected)


ROWS_OF_LONG = ["average_precision", "average_precision(interpolation=trapezoid, average=user)", "ks"]
ROWS_OF_LONG += ["average_precision(interpolation=davis_goadrich, average=user)", "ks(average=user)", "log_loss"]
ROWS_OF_LONG += ["ece(strategy=quantile, average=user)", "ece", "f1(threshold=0.5)", "rmse", "calibration"]


@pytest.mark.thorough(except_for="0.5-True-float32")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_long_users(share: float, tied: bool, dtype: Any) -> None:
    """One user has so many rows of both classes that sorting replaces counting, beside short users."""
    draw = np.random.default_rng(6)
    lengths = [1500, 1, 0, 30, 500, 2000, 20_000]
    indptr = np.cumsum([0, *lengths])
    labels = (draw.random(indptr[-1]) < share).astype(np.int8)
    scores = draw.random(indptr[-1]).astype(dtype)
    if tied:
        scores = np.round(scores, 2)
    report = fastrec.evaluate_scores(labels, scores, indptr, ["gauc", "auc"], per_user=True)
    spans = [slice(a, b) for a, b in itertools.pairwise(indptr.tolist())]
    np.testing.assert_array_equal(report.per_user["gauc"], [exact_auc(labels[span], scores[span]) for span in spans])
    assert report["auc"] == exact_auc(labels, scores)

    n = indptr[-2]
    report = fastrec.evaluate_scores(labels[:n], scores[:n], indptr[:-1], ROWS_OF_LONG)
    own = [labels[span].tolist() for span in spans[:-1]], [scores[span].tolist() for span in spans[:-1]]
    for text in ROWS_OF_LONG:
        metric, options, _ = worked_cases.parse(text)
        expected = score_oracle.evaluate(*own, metric, options=options, eps=float(np.finfo(dtype).eps), errors=False)
        assert same(report[text], expected.value), text


def exact_auc(labels: Any, scores: Any) -> float:
    """Return the quotient of two integers, rounded once."""
    n_pos, n_neg = int((labels == 1).sum()), int((labels == 0).sum())
    if n_pos == 0 or n_neg == 0:
        return math.nan
    return float(Fraction(score_oracle.twice_won(labels.tolist(), scores.tolist()), 2 * n_pos * n_neg))


@pytest.mark.parametrize("ties", ["expected", *ORDERS])
def test_ranks_of_long_users(ties: str) -> None:
    draw = np.random.default_rng(9)
    lengths = [3000, 7, 1200]
    indptr = np.cumsum([0, *lengths])
    labels = draw.choice([0.0, 0.0, 1.0, 3.0], indptr[-1])
    scores = np.round(draw.random(indptr[-1]), 3 if ties != "expected" else 9)
    ids = draw.permutation(indptr[-1])
    texts = [*LONG, "err(max_gain=3)@10", "ndcg(ideal=list)@100", "limited_auc@50", "ndcg(ideal=list_at_k)@10"]
    report = fastrec.evaluate_scores(
        labels, scores, indptr, texts, item_ids=ids, ties=ties, n_items=10**6, per_user=True
    )
    spans = [slice(a, b) for a, b in itertools.pairwise(indptr.tolist())]
    items = [ids[span].tolist() for span in spans]
    truth = [list(zip(own, labels[span].tolist(), strict=True)) for own, span in zip(items, spans, strict=True)]
    for text in texts:
        metric, options, k = worked_cases.parse(text)
        call = {"k": k, "options": options, "n_items": 10**6, "ties": "error" if ties == "expected" else ties}
        expected = oracle.evaluate(items, truth, metric, scores=[scores[span].tolist() for span in spans], **call)
        assert same(report[text], expected.value), text


@pytest.mark.parametrize("n_positives", [191, 192, 193, 194])
@pytest.mark.parametrize("n_negatives", [1, 192, 193, 1000])
def test_around_the_change_of_algorithm(n_positives: int, n_negatives: int) -> None:
    draw = np.random.default_rng(n_positives)
    labels = draw.permutation(np.repeat([1, 0], [n_positives, n_negatives]))
    for dtype in (np.float32, np.float64):
        ends = [-np.inf, -float(np.finfo(dtype).max), -1e-30, -0.0, 0.0, 1e-30, float(np.finfo(dtype).max), np.inf]
        n = len(labels)
        spreads = (
            draw.random(n),
            draw.normal(size=n) * 10,
            draw.integers(-10, 10, n) / 16,
            np.zeros(n),
            draw.choice(ends, n),
        )
        for scores in spreads:
            call = labels, scores.astype(dtype), [0, len(labels)]
            alone = fastrec.evaluate_scores(*call, "gauc", per_user=True).per_user["gauc"]
            beside = fastrec.evaluate_scores(*call, ["gauc", "ndcg@5", "ks"], per_user=True).per_user["gauc"]
            assert alone == beside == exact_auc(*call[:2])
            varied = fastrec.evaluate_scores(*call, ["gauc", "gauc(constant=drop)"])["gauc(constant=drop)"]
            assert math.isnan(varied) == (not scores.any())


def test_more_pairs_than_an_int32_holds() -> None:
    draw = np.random.default_rng(1)
    labels, scores = draw.integers(0, 2, 120_000), np.round(draw.random(120_000), 4)
    assert labels.sum() * (1 - labels).sum() > 2**31
    report = fastrec.evaluate_scores(labels, scores, [0, len(labels)], ["auc", "gauc"], per_user=True)
    assert report["auc"] == report.per_user["gauc"][0] == exact_auc(labels, scores)


# Labels of every size


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("min_gain", [0.5, 1, 99.5, 100, 101, 127, 128, 300])
def test_min_gain_beside_labels(dtype: Any, min_gain: float) -> None:
    labels, scores = [100, 0, 3, 101, 127, 0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    texts = ["auc", "gauc", "ks(average=user)", "hits@4", "ndcg", "average_precision(average=user)", "brier"]
    chances = (np.array(scores) / 10).tolist()
    found = fastrec.evaluate_scores(np.array(labels, dtype), chances, [0, 6], texts, min_gain=min_gain)
    for text in texts:
        metric, options, k = worked_cases.parse(text)
        expected = score_oracle.evaluate([labels], [chances], metric, k=k, options=options, min_gain=min_gain)
        assert same(found[text], expected.value), text


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["ks(average=user)", "average_precision(average=user)", "gauc", "ndcg"])
def test_metrics_of_several_limits_beside_each_other(text: str) -> None:
    """Each metric uses its own positives, whatever else the call evaluates."""
    name, options, _ = worked_cases.parse(text)
    labels, scores = [3.0, 2.0, 2.5, 0.0, 1.0, 1.0], [9.0, 5.0, 4.0, 3.0, 3.0, 0.0]
    texts = [write(name, options | {"min_gain": limit}, None) for limit in (1.0, 2.0, 2.25, 3.0, 4.0)]
    beside = fastrec.evaluate_scores(labels, scores, [0, 6], [*texts, "ks(average=user, min_gain=1)"])
    for each in texts:
        _, own, _ = worked_cases.parse(each)
        expected = score_oracle.evaluate([labels], [scores], name, options=own).value
        assert same(fastrec.evaluate_scores(labels, scores, [0, 6], each)[each], expected), each
        assert same(beside[each], expected), f"{each} beside others"


# Weights with rounded sums


@pytest.mark.parametrize("weights", [[0.1, 0.1, 0.1], [0.1, 0.3, 0.7], [0.1, 0.7, 0.3], [0.3, 2.5, 0.7]])
@pytest.mark.parametrize("average", ["row", "user"])
def test_an_empty_side_stays_empty_under_rounding(weights: list[float], average: str) -> None:
    """All rows reach the threshold: 0/0, however the weights round."""
    for labels in ([1, 0, 0], [1, 1, 0], [0, 1, 0]):
        for name in ("mcc", "fpr"):
            text = f"{name}(threshold=0, zero_division=1, average={average})"
            found = fastrec.evaluate_scores(labels, [0.5, 0.6, 0.7], [0, 3], text, sample_weight=weights)
            assert found[text] == 1, (labels, text)


@pytest.mark.parametrize("weights", [[1e-100], [1e100], [1e-77, 3e-78], [1e77, 3e77], [1e-100, 1e100, 1.0, 1e50]])
@pytest.mark.parametrize("average", ["row", "user"])
@pytest.mark.parametrize("name", [*score_oracle.NOT_SUMS, "f1"])
def test_formulas_of_matrices_take_all_weights(name: str, average: str, weights: list[float]) -> None:
    """A product of four sums is too large or too small for a double."""
    labels, scores = [[1, 0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0]], [[0.9, 0.8, 0.7, 0.2, 0.1], [0.6, 0.3, 0.2, 0.7]]
    scores.append([0.1, 0.8, 0.6])
    of_rows = list(itertools.islice(itertools.cycle(weights), 12))
    options = {"threshold": 0.5, "average": average}
    text = write(name, options, None)
    given = {"metrics": text, "sample_weight": of_rows}
    found = fastrec.evaluate_scores(np.concatenate(labels), np.concatenate(scores), [0, 5, 9, 12], **given)
    own = [of_rows[:5], of_rows[5:9], of_rows[9:]]
    expected = score_oracle.evaluate(labels, scores, name, options=options, sample_weight=own)
    assert found[text] == pytest.approx(expected.value, rel=1e-14)
    if len(weights) < 3:
        assert found.std_error(text) == pytest.approx(expected.std_error, rel=1e-13)


@pytest.mark.parametrize(("of_row", "of_user"), [(1, 1e-100), (1, 1e100), (1e-50, 1e-50), (1e50, 1e50)])
@pytest.mark.parametrize("name", ["mcc", "g_mean"])
def test_formulas_of_matrices_take_weights_of_rows_and_users(name: str, of_row: float, of_user: float) -> None:
    text = f"{name}(threshold=0.5)"
    rows = ([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.2, 0.1], [0, 3, 5], text)
    found = fastrec.evaluate_scores(*rows, sample_weight=[of_row] * 5, user_weight=[of_user] * 2)
    expected = fastrec.evaluate_scores(*rows)
    assert found[text] == pytest.approx(expected[text], rel=1e-14)
    assert found.std_error(text) == pytest.approx(expected.std_error(text), rel=1e-13)


@pytest.mark.parametrize(("name", "expected"), [("g_mean", 1e-200), ("mcc", -1.0)])
def test_formulas_of_matrices_take_weights_far_apart(name: str, expected: float) -> None:
    """Two rates of 1e-200: one heavy row of each class is on the wrong side, and a light row on the right one."""
    text = f"{name}(threshold=0.5)"
    rows = ([1, 1, 0, 0], [0.9, 0.1, 0.1, 0.9], [0, 1, 2, 3, 4], text)
    found = fastrec.evaluate_scores(*rows, sample_weight=[1e-100, 1e100, 1e-100, 1e100])
    assert found[text] == pytest.approx(expected, rel=1e-14, abs=0)
    assert math.isfinite(found.std_error(text))


@pytest.mark.thorough(except_for=r"-1000\.0$")
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("average", ["row", "user"])
def test_interpolated_precision_keeps_its_digits(scale: float, average: str) -> None:
    """Few positives under many negatives: the area is a small difference of large terms."""
    labels, scores, weights = [0.0, 0.0, 1.0, 1.0], [3.0, 2.0, 2.0, 1.0], [scale, scale, 1.0, 1.0]
    options = {"interpolation": "davis_goadrich", "average": average}
    text = write("average_precision", options, None)
    found = fastrec.evaluate_scores(labels, scores, [0, 4], text, sample_weight=weights)[text]
    expected = score_oracle.evaluate([labels], [scores], "average_precision", options=options, sample_weight=[weights])
    assert found == pytest.approx(expected.value, rel=1e-9)


@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("average", ["row", "user"])
def test_the_entropy_of_a_rare_class_keeps_its_digits(rare: int, average: str) -> None:
    """The logarithm of a share that is nearly 1."""
    labels, scores = [[rare, 1 - rare], [rare, 1 - rare]], [[0.5, 0.25], [0.75, 0.5]]
    weights = [[1.0, 1e12], [2.0, 3e12]]
    text = f"normalized_entropy(average={average})"
    flat_rows = [np.array(column).ravel() for column in (labels, scores)]
    report = fastrec.evaluate_scores(*flat_rows, [0, 2, 4], text, sample_weight=np.ravel(weights))
    expected = score_oracle.evaluate(
        labels, scores, "normalized_entropy", options={"average": average}, sample_weight=weights
    )
    assert report[text] == pytest.approx(expected.value, rel=1e-14)
    assert report.estimates[text].std_error == pytest.approx(expected.std_error, rel=1e-12)


# Bins and thresholds: rows on the edges


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 49, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_on_the_edges_of_bins(bins: int, dtype: Any) -> None:
    scores = (np.arange(bins + 1) / bins).astype(dtype)
    scores = np.concatenate([scores, np.nextafter(scores, dtype(0)), np.clip(np.nextafter(scores, dtype(2)), 0, 1)])
    scores = scores.astype(dtype)
    labels = (np.arange(len(scores)) % 3 == 0).astype(int)
    for average in ("row", "user"):
        text = f"ece(bins={bins}, average={average})"
        found = fastrec.evaluate_scores(labels, scores, [0, len(scores)], text)[text]
        expected = score_oracle.evaluate(
            [labels.tolist()], [scores.tolist()], "ece", options={"bins": bins, "average": average}
        )
        assert same(found, expected.value)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.9, 1 / 3, math.nextafter(0.5, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_at_a_threshold(threshold: float, dtype: Any) -> None:
    near = dtype(threshold)
    scores = np.array([np.nextafter(near, dtype(0)), near, np.nextafter(near, dtype(2))], dtype)
    text = f"recall(threshold={threshold})"
    found = fastrec.evaluate_scores([1, 1, 1], scores, [0, 3], text)[text]
    assert found == sum(score >= threshold for score in scores.tolist()) / 3


# Functions


@SPARE
@given(data=st.data())
def test_gauc_function(data: st.DataObject) -> None:
    log = data.draw(strategies.scored_logs(longest=8))
    labels, indptr = flat(log.labels, np.float64)
    scores = flat(log.scores, np.float64)[0]
    options = {
        "weight": data.draw(st.sampled_from(["impressions", "positives", "negatives", "pairs", "equal"])),
        "constant": data.draw(st.sampled_from(["half", "drop"])),
    }
    one_class = data.draw(st.sampled_from(["drop", "half", "zero", "nan"]))
    weights = data.draw(st.none() | strategies.row_weights(log))
    own = None if weights is None else flat(weights, np.float64)[0]
    if own is not None and not own.any():
        weights = own = None
    found = fastrec.gauc(labels, scores, indptr, one_class=one_class, sample_weight=own, **options)
    call = {"options": options, "one_class": one_class, "sample_weight": weights}
    assert type(found) is float
    assert same(found, score_oracle.evaluate(log.labels, log.scores, "gauc", **call).value)


@pytest.mark.parametrize("name", ["mae", "mse", "rmse", "rmse(average=user)"])
def test_predictions_without_error_are_sure(name):
    values = [1.0, 0.0, 1.0, 0.5]
    found = fastrec.evaluate_scores(values, values, [0, 2, 3, 4], name).estimates[name]
    assert found[:3] == (0.0, 0.0, 3)


@SPARE
@given(data=st.data(), name=st.sampled_from(["mae", "mse", "rmse"]))
def test_error_functions(data: st.DataObject, name: str) -> None:
    size = data.draw(st.integers(0, 20))

    def column(values: list[float]) -> list[float]:
        return data.draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    targets, predictions = column([-1.0, 0.0, 2.5, 1e6]), column(strategies.FINITE_SCORES)
    weights = data.draw(st.none() | st.just(column([0.5, 1.0, 3.0])))
    found = getattr(fastrec, name)(targets, predictions, sample_weight=weights)
    own = None if weights is None else [weights]
    assert type(found) is float
    assert same(found, score_oracle.evaluate([targets], [predictions], name, sample_weight=own).value)


# scikit-learn


@pytest.mark.thorough(except_for="^[0-9]$")
@pytest.mark.parametrize("seed", range(60))
def test_scikit_learn(seed: int) -> None:
    rivals = pytest.importorskip("support.score_rivals", exc_type=ImportError)
    labels, scores, weights = rivals.awkward_rows(seed)
    report = fastrec.evaluate_scores(labels, scores, metrics=list(rivals.RIVALS), sample_weight=weights)
    present = labels if weights is None else labels[weights > 0]
    for text, rival in rivals.RIVALS.items():
        if text.startswith(rivals.ONE_CLASS_IS_NAN) and len(set(present.tolist())) < 2:
            assert math.isnan(report[text]), text
        else:
            assert same(report[text], rivals.ask(rival, labels, scores, weights)), text
    targets = np.random.default_rng(seed).choice([-1.0, 0.5, 3.0], len(labels))
    errors = fastrec.evaluate_scores(targets, scores, metrics=list(rivals.ERRORS), sample_weight=weights)
    for text, rival in rivals.ERRORS.items():
        assert same(errors[text], rivals.ask(rival, targets, scores, weights)), text


def test_users_of_scikit_learn() -> None:
    """Its value for each user alone, also with infinite scores, and its gains under ties."""
    rivals = pytest.importorskip("support.score_rivals", exc_type=ImportError)
    draw = np.random.default_rng(12)
    lengths = draw.integers(2, 40, 60)
    indptr = np.cumsum([0, *lengths])
    grades, scores = draw.integers(0, 4, indptr[-1]), draw.choice(rivals.POOL, indptr[-1])
    texts = ["gauc(min_gain=2)", "average_precision(average=user, min_gain=2)", "ndcg", "ndcg@5", "dcg@3"]
    report = fastrec.evaluate_scores(grades, scores, indptr, texts, per_user=True, no_truth="zero")
    for user, (start, end) in enumerate(itertools.pairwise(indptr.tolist())):
        gains, own = grades[start:end], scores[start:end]
        expected = [
            rivals.ask(rivals.RIVALS["auc"], gains >= 2, own, None),
            rivals.ask(rivals.RIVALS["average_precision"], gains >= 2, own, None) if max(gains) >= 2 else math.nan,
            rivals.expected_ndcg(gains, own, None),
            rivals.expected_ndcg(gains, own, 5),
            rivals.expected_dcg(gains, own, 3),
        ]
        for text, wanted in zip(texts, expected, strict=True):
            assert same(float(report.per_user[text][user]), wanted), (text, user)


# Users and their counts


def test_users_are_counted_by_what_befell_them() -> None:
    labels = [1, 0, 1, 1, 0, 0, 1, 0]
    indptr = [0, 2, 4, 5, 5, 8]
    report = fastrec.evaluate_scores(labels, [0.9, 0.1, 0.5, 0.5, 0.2, 0.3, 0.3, 0.3], indptr, ["gauc", "ndcg"])
    counts = {"total": 5, "no_truth": 1, "no_negatives": 1, "constant_scores": 1, "no_rows": 1}
    assert counts.items() <= report.users.items()
    assert report.estimates["gauc"].users == 2
    assert report.estimates["ndcg"].users == 3
    assert "gauc" in repr(report)
    assert fastrec.evaluate_scores(labels, [0.5] * 8, indptr).to_dict()["users"]["total"] == 5


UNORDERED = ["f_beta(beta=2)", "recall(denominator=listed)", "f1(average=means)", "cg(gain=exp2)", "cg(gain=binary)"]
UNORDERED += [
    "precision(average=pooled)",
    "hit_rate(mean=geometric)",
    "utility(a=2)",
    "f1_score",
    "mar(denominator=hits)",
]


def spoilt(text: str) -> str:
    """Return the error of a metric of a log without users."""
    with pytest.raises(fastrec.MetricError, match="without a cut-off counts all rows of a user") as caught:
        fastrec.evaluate_scores([1, 0, 0], [0.9, 0.1, 0.2], metrics=text)
    return str(caught.value)


@pytest.mark.parametrize("text", [*COUNTS_ALL, *UNORDERED])
def test_metrics_that_no_score_changes_are_errors(text: str) -> None:
    """The best model and the worst had the same number: without a cut-off, such a metric counts all rows."""
    call = parse(text)
    cut = replace(call, k=10)
    assert f"{cut.text} counts the first 10 rows" in spoilt(text)
    at_threshold = f"{call.metric.name}({'beta=2, ' if 'beta=2' in text else ''}threshold=0.5)"
    has_threshold = call.metric.name in DECLARED["rows"]
    assert has_threshold == ("threshold=0.5" in spoilt(text))
    own = [cut.text, *([parse(at_threshold).text] if has_threshold else [])]
    assert all(name in spoilt(text) for name in own)
    rows = ([1, 0, 0], [0.9, 0.1, 0.2], [0, 3])
    assert list(fastrec.evaluate_scores(*rows, own, n_items=20)) == own
    assert list(fastrec.evaluate_scores(*rows, text, k=2, n_items=20)) == [replace(call, k=2).text]
    for refused in (lambda: fastrec.ScoreEvaluator([text]), lambda: fastrec.evaluate_scores(*rows, ["auc", text])):
        with pytest.raises(fastrec.MetricError, match="without a cut-off"):
            refused()
    with pytest.raises(fastrec.MetricError, match="without a cut-off"):
        fastrec.compare_scores(rows[0], {"a": rows[1], "b": rows[1]}, [text], user_ids=[1, 1, 1])


def test_only_metrics_that_no_score_changes_are_errors() -> None:
    """Each other metric has two values on two orders of some rows; counts that describe a log stay."""
    labels, draw = [1, 0, 0, 1, 0, 1], np.random.default_rng(0)
    orders = [draw.permutation(6) for _ in range(9)]
    for name, metric in DECLARED["lists"].items():
        if name in COUNTS_ALL or name in (*OF_ITEMS, *OF_JUDGEMENTS):
            continue
        needed = ", ".join(f"{option.name}=1" for option in metric.options.values() if option.required)
        text = f"{name}({needed})" if needed else name
        found = [fastrec.evaluate_scores(labels, order, [0, 6], text, n_items=9)[text] for order in orders]
        assert len(set(found)) > 1 or metric.direction.kind == "none", text


def test_a_metric_of_your_own_that_no_score_changes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECLARED, "lists", dict(DECLARED["lists"]))
    declared = {"found": lambda s: s.hits / s.n_rel, "first": lambda s: s.first_reciprocal, "long": lambda s: s.n_rec}
    for name, formula in declared.items():
        fastrec.ranking_metric(range=(0, None), name=name)(formula)
    assert "found@10" in spoilt("found")
    assert "threshold" not in spoilt("found")
    report = fastrec.evaluate_scores([1, 0, 0], [0.9, 0.1, 0.2], [0, 3], ["found@1", "first", "long"])
    assert dict(report) == {"found@1": 1.0, "first": 1.0, "long": 3.0}


def test_keys_come_out_sorted() -> None:
    report = fastrec.evaluate_scores(
        [1, 0, 0, 1, 1], [1, 2, 3, 4, 5], metrics="mrr", user_ids=(["b", "a", "b", "a", "b"], [2, 1, 1, 1, 2])
    )
    assert report.user_ids is not None
    assert report.user_ids.tolist() == [("a", 1), ("b", 1), ("b", 2)]


def test_rows_without_users() -> None:
    labels, scores = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]
    report = fastrec.evaluate_scores(
        labels, scores, metrics=["auc", "average_precision", "brier", "f1(threshold=0.5)", "rmse"]
    )
    for text in report:
        metric, options, _ = worked_cases.parse(text)
        assert same(report[text], score_oracle.evaluate([labels], [scores], metric, options=options).value)
        assert math.isnan(report.std_error(text)) == (text not in ("auc", "average_precision"))


def test_default_metrics() -> None:
    report = fastrec.evaluate_scores([1, 0], [0.5, 0.25], [0, 2])
    assert report["auc"] == 1
    assert len(report) > 3


def test_k_is_for_metrics_of_lists() -> None:
    report = fastrec.evaluate_scores([1, 0], [0.5, 0.25], [0, 2], ["auc", "ndcg", "precision(threshold=0.3)"], k=[1, 2])
    assert set(report) == {"auc", "ndcg@1", "ndcg@2", "precision(threshold=0.3)"}


# Bad input


GOOD: dict[str, Any] = {"labels": [1, 0, 1], "scores": [0.3, 0.2, 0.1], "indptr": [0, 2, 3], "metrics": "gauc"}
BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "path": (
        {"labels": "log.csv", "scores": None, "indptr": None},
        fastrec.InputTypeError,
        "labels must be data.*'log.csv'.*evaluate_f",
    ),
    "NaN score": ({"scores": [0.3, math.nan, 0.1]}, fastrec.InputError, "NaN at row 1"),
    "NaN score in rankings": ({"scores": [math.nan] * 3, "metrics": "ndcg"}, fastrec.InputError, "NaN at row 0"),
    "NaN float32": ({"scores": np.array([0, 0, math.nan], np.float32)}, fastrec.InputError, "NaN at row 2"),
    "NaN label": ({"labels": [1, math.nan, 0]}, fastrec.InputError, "labels.*row 1"),
    "infinite target": ({"labels": [1, math.inf, 0], "metrics": "mae"}, fastrec.InputError, "labels.*inf.*row 1"),
    "infinite prediction": ({"scores": [1, 2, math.inf], "metrics": "mse"}, fastrec.InputError, "inf.*row 2"),
    "label 2": ({"labels": [1, 2, 0]}, fastrec.InputError, "gauc.*2 at row 1.*min_gain"),
    "label -1": ({"labels": [1, 0, -1], "metrics": "auc"}, fastrec.InputError, "auc.*-1 at row 2.*min_gain"),
    "label half": ({"labels": [1, 0.5, 0], "metrics": "ks"}, fastrec.InputError, "ks.*0.5 at row 1.*min_gain"),
    "labels are texts": ({"labels": ["a", "b", "c"]}, fastrec.InputTypeError, "labels"),
    "scores are texts": ({"scores": ["a", "b", "c"]}, fastrec.InputTypeError, "scores"),
    "scores are objects": ({"scores": [None, 1, 2]}, fastrec.InputTypeError, "scores"),
    "scores of two dimensions": ({"scores": [[1, 2, 3]]}, fastrec.InputError, "scores"),
    "masked scores": ({"scores": np.ma.masked_array([1.0, 2, 3], [0, 1, 0])}, fastrec.InputTypeError, "masked"),
    "masked labels": ({"labels": np.ma.masked_array([1, 0, 1], [0, 1, 0])}, fastrec.InputTypeError, "masked"),
    "more labels": ({"labels": [1, 0, 1, 1]}, fastrec.InputError, "labels"),
    "fewer scores": ({"scores": [1, 2]}, fastrec.InputError, "(labels|scores).*2"),
    "more weights": ({"sample_weight": [1, 1, 1, 1]}, fastrec.InputError, "sample_weight"),
    "negative weight": ({"sample_weight": [1, -1, 1]}, fastrec.InputError, "sample_weight.*-1.*row 1"),
    "NaN weight": ({"sample_weight": [1, 1, math.nan]}, fastrec.InputError, "sample_weight.*row 2"),
    "infinite weight": ({"sample_weight": [math.inf, 1, 1]}, fastrec.InputError, "sample_weight.*row 0"),
    "weights of 0": ({"sample_weight": [0, 0, 0]}, fastrec.InputError, "sample_weight.*0"),
    "text weights": ({"sample_weight": ["a", "b", "c"]}, fastrec.InputTypeError, "sample_weight"),
    "indptr too short": ({"indptr": [0, 2]}, fastrec.InputError, "indptr"),
    "indptr falls": ({"indptr": [0, 3, 2, 3]}, fastrec.InputError, r"indptr\[1\] = 3"),
    "indptr starts late": ({"indptr": [1, 3]}, fastrec.InputError, "indptr"),
    "indptr of floats": ({"indptr": [0.0, 3.0]}, fastrec.InputTypeError, "indptr"),
    "no users": ({"indptr": None}, fastrec.InputError, "gauc.*indptr.*user_ids"),
    "no users for lists": ({"indptr": None, "metrics": "ndcg@2"}, fastrec.InputError, "ndcg@2.*indptr.*user_ids"),
    "no users for means": ({"indptr": None, "metrics": "ks(average=user)"}, fastrec.InputError, "ks.*indptr"),
    "no users, groups": ({"indptr": None, "metrics": "auc", "groups": [1, 1, 1]}, fastrec.InputError, "groups"),
    "user_ids per user": ({"user_ids": [1, 2, 3]}, fastrec.InputError, "user_ids.*2"),
    "user_ids per row": ({"indptr": None, "user_ids": [1, 2]}, fastrec.InputError, "user_ids.*3"),
    "user twice": ({"user_ids": ["a", "a"]}, fastrec.InputError, "'a' twice"),
    "keys of other lengths": ({"indptr": None, "user_ids": ([1, 2, 3], [1])}, fastrec.InputError, r"user_ids\[1\]"),
    "no key": ({"indptr": None, "user_ids": ()}, fastrec.InputError, "user_ids"),
    "groups differ": (
        {"indptr": None, "user_ids": [7, 7, 8], "groups": ["a", "b", "a"]},
        fastrec.InputError,
        "groups.*user 7",
    ),
    "weights differ": (
        {"indptr": None, "user_ids": [7, 7, 8], "user_weight": [1, 2, 1]},
        fastrec.InputError,
        "user_weight.*user 7",
    ),
    "negative user_weight": ({"user_weight": [1, -1]}, fastrec.InputError, "user_weight"),
    "groups of rows with indptr": ({"groups": ["a", "b", "c"]}, fastrec.InputError, "groups.*2"),
    "score above 1": ({"scores": [0.3, 1.5, 1], "metrics": "log_loss"}, fastrec.InputError, "log_loss.*1.5 at row 1"),
    "score below 0": ({"scores": [0.3, -0.5, 1], "metrics": "brier"}, fastrec.InputError, "brier.*-0.5 at row 1"),
    "infinite chance": ({"scores": [0, math.inf, 1], "metrics": "ece"}, fastrec.InputError, "ece.*inf at row 1"),
    "infinite sum": ({"scores": [1, math.inf, 1], "metrics": "calibration"}, fastrec.InputError, "calibration|finite"),
    "one class": ({"one_class": "error"}, fastrec.InputError, "user 1.*one class"),
    "one class of the metric": (
        {"metrics": "gauc(one_class=error)", "user_ids": ["a", "b"]},
        fastrec.InputError,
        "user 'b'.*one class",
    ),
    "no truth": (
        {"metrics": "mrr", "no_truth": "error", "labels": [1, 0, 0]},
        fastrec.InputError,
        "user 1.*no_truth='error'",
    ),
    "ties": ({"metrics": "mrr", "ties": "error", "scores": [1, 1, 1]}, fastrec.InputError, "user 0.*ties='error'"),
    "no item_ids": ({"metrics": "mrr", "ties": "id_asc"}, fastrec.InputError, "id_asc.*item_ids"),
    "more item_ids": ({"metrics": "mrr", "ties": "id_asc", "item_ids": [1, 2]}, fastrec.InputError, "item_ids.*3"),
    "ties unknown": ({"ties": "any"}, fastrec.InputError, "ties must be one of"),
    "one_class unknown": ({"one_class": "any"}, fastrec.InputError, "one_class must be one of"),
    "no_truth unknown": ({"no_truth": "any"}, fastrec.InputError, "no_truth must be one of"),
    "min_gain 0": ({"min_gain": 0}, fastrec.InputError, "min_gain"),
    "min_gain a text": ({"min_gain": "a"}, fastrec.InputTypeError, "min_gain"),
    "no n_items": ({"metrics": "accuracy@2"}, fastrec.MetricError, "n_items"),
    "n_items small": ({"metrics": "accuracy@2", "n_items": 1}, fastrec.InputError, "n_items = 1"),
    "weights of rows in lists": (
        {"metrics": ["gauc", "ndcg@3", "mrr"], "sample_weight": [1, 1, 1]},
        fastrec.MetricError,
        "sample_weight.*ndcg@3, mrr",
    ),
    "grade past a table": ({"metrics": "cg(gain=[0, 1])@2", "labels": [1, 2, 0]}, fastrec.InputError, "gain table"),
    "grade above max_gain": ({"metrics": "err(max_gain=1)", "labels": [1, 2, 0]}, fastrec.InputError, "max_gain"),
    "n_threads": ({"n_threads": 0}, fastrec.InputError, "n_threads"),
    "progress": ({"progress": 3}, fastrec.InputTypeError, "progress"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, match = BAD[name]
    with pytest.raises(error, match=match):
        fastrec.evaluate_scores(**{**GOOD, **call})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("precision(threshold=0.5)@10", "threshold"),
        ("auc@10", "auc.*cut-off"),
        ("gauc(weight=clicks)", "weight"),
        ("gauc(one_class=keep)", "one_class"),
        ("gauc(constant=zero)", "constant"),
        ("auc(max_fpr=0)", "max_fpr"),
        ("auc(max_fpr=1.5)", "max_fpr"),
        ("auc(min_tpr=0.5, max_tpr=0.5)", "needs min_tpr below max_tpr, found 0.5 and 0.5"),
        ("auc(min_tpr=0.50000001, max_tpr=0.5)", "needs min_tpr below max_tpr, found 0.50000001 and 0.5"),
        ("auc(min_tpr=0.5, max_fpr=0.5)", "false positive rate or of the true positive rate, found both"),
        ("auc(scale=none)", "scale"),
        ("log_auc(min_fpr=0)", "min_fpr"),
        ("log_auc(min_fpr=0.2)", "needs min_fpr below max_fpr, found 0.2 and 0.1"),
        ("recall_at_precision", "needs the option at"),
        ("recall_at_precision(at=1.1)", "at=1.1 must be a number from 0 to 1"),
        ("eer(interpolation=log)", "interpolation"),
        ("ece(norm=l3)", "norm"),
        ("ece(bins=0)", "bins"),
        ("ece(bins=2.5)", "bins"),
        ("ece(strategy=equal)", "strategy"),
        ("average_precision(interpolation=linear)", "interpolation"),
        ("precision(threshold=nan)", "threshold"),
        ("precision(threshold=half)", "threshold"),
        ("precision(threshold=0.5, zero_division=2)", "zero_division"),
        ("precision(threshold=0.5, average=pooled)", "average"),
        ("precision(average=row)", "average"),
        ("precision(threshold=0.5, denominator=k)", "denominator"),
        ("fpr", "threshold"),
        ("gacu", "did you mean 'gauc'"),
        ("rmse(average=group)", "average"),
    ],
)
def test_bad_metrics(text: str, match: str) -> None:
    with pytest.raises(fastrec.MetricError, match=match):
        fastrec.evaluate_scores(**{**GOOD, "metrics": text})


@pytest.mark.parametrize("text", ["gauc", "auc", "log_loss", "rmse", "precision(threshold=0.5)"])
def test_lists_have_no_metrics_of_rows(text: str) -> None:
    with pytest.raises(fastrec.MetricError, match="evaluate_scores"):
        fastrec.evaluate([[1]], [[1]], text)


def test_nothing_at_all() -> None:
    """No rows and no users: NaN and a warning, no error."""
    texts = ["gauc", "auc", "ndcg@3", "log_loss", "ks", "ks(average=user)", "ece", "mcc(threshold=0.5)", "mae"]
    for call in ({"indptr": [0]}, {"indptr": [0, 0, 0]}, {"user_ids": []}):
        report = fastrec.evaluate_scores([], [], metrics=[*texts, "average_precision"], per_user=True, **call)  # type: ignore[arg-type]
        assert report["average_precision"] == 0
        assert all(math.isnan(report[text]) for text in texts)
        assert report.warnings == ["the input has no rows: there is nothing to evaluate"]


def test_the_extremes_of_log_loss_are_clipped() -> None:
    for dtype, eps in ((np.float64, 2.0**-52), (np.float32, 2.0**-23), (np.float16, 2.0**-23)):
        report = fastrec.evaluate_scores([0, 1], np.array([1, 0], dtype), metrics="log_loss")
        assert report["log_loss"] == pytest.approx(-math.log(eps), rel=1e-12)


@pytest.mark.parametrize("power", [-600, -500, -20, 0, 3, 500])
@pytest.mark.parametrize("binades", [0, 19, 20, 21, 40])
def test_sums_over_users_are_exact_whatever_the_sizes(power: int, binades: int) -> None:
    """Values of one size are added many at a time, others one by one; so are those of groups, always."""
    rng = np.random.default_rng(1000 + power + binades)
    values = np.ldexp(rng.random(1300) + 1.0, power - rng.integers(0, binades + 1, 1300))
    values[rng.random(1300) < 0.1] = 0.0
    groups = np.ones(len(values), int)
    metrics = ["mae(average=user)", "mae"]
    report = fastrec.evaluate_scores(0 * values, values, np.arange(len(values) + 1), metrics, groups=groups)
    assert report["mae"] == float(sum(map(Fraction, values.tolist())) / len(values))
    (found,) = next(iter(report.groups.values())).values()
    assert found == report.estimates


@pytest.mark.thorough
@pytest.mark.parametrize("ties", ["id_asc", "id_desc"])
def test_rows_without_item_ids_need_none_where_no_list_is_asked_for(ties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels read past the end of an array here, which only interpreted kernels notice."""
    monkeypatch.setattr(Launcher, "way", "interpreted")
    rows = random_rows("binary", "unit", 40, seed=3)
    asks = [ask for ask in OF_ROWS if takes(ask, "binary", "unit")][::5]
    check_call(rows, asks, ties=ties)
    weights = [[1.5 + at for at, _ in enumerate(own)] for own in rows.log.labels]
    check_call(rows._replace(sample_weight=weights), asks, ties=ties)


@pytest.mark.parametrize("average", ["row", "user"])
def test_calibration_has_no_bounds(average: str) -> None:
    """Scores may be any numbers, like those of a model of profits."""
    name = f"calibration(average={average})"
    evaluator = fastrec.ScoreEvaluator(name)
    evaluator.update([1, 0], [-0.8, 0.4], [0, 2])
    report = fastrec.ScoreEvaluator.from_bytes(evaluator.to_bytes()).result()
    assert report[name] == fastrec.evaluate_scores([1, 0], [-0.8, 0.4], [0, 2], name)[name] == -0.4
    assert next(metric["range"] for metric in fastrec.catalogue() if metric["name"] == "calibration") == (None, None)
