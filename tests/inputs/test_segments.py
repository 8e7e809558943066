"""Segments of users and items, against plain Python and against a truth limited beforehand."""

import random

import numpy as np
import pandas as pd
import pytest

import fastrec
from support.interval_oracle import student

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")


def test_users_by_activity():
    history = [user for user in range(9) for _ in range(user + 1)]
    labels = fastrec.segment_users(history, range(11))
    assert labels.tolist() == ["light"] * 3 + ["medium"] * 3 + ["heavy"] * 3 + ["none"] * 2
    texts = fastrec.segment_users(["b", "a", "b"], ["a", "b", "c"], names=("few", "many"), shares=(0.5,))
    assert texts.tolist() == ["few", "many", "none"]


def test_users_as_active_are_in_the_same_segment():
    labels = fastrec.segment_users([1, 2, 3, 4, 5, 5], [1, 2, 3, 4, 5])
    assert labels.tolist() == ["light"] * 4 + ["heavy"]


def test_users_without_any_history():
    assert fastrec.segment_users([], [1, 2]).tolist() == ["none", "none"]
    assert fastrec.segment_users([1], []).tolist() == []


def test_items_by_popularity():
    chance = random.Random(0)
    history = [min(int(chance.paretovariate(0.8)), 40) for _ in range(3_000)]
    found = fastrec.segment_items(history)
    counts = {item: history.count(item) for item in set(history)}
    for item, label in found.items():
        before = sum(count for count in counts.values() if count > counts[item]) / len(history)
        assert label == ("head" if before < 0.5 else "mid" if before < 0.8 else "tail")
    assert set(found) == set(history)
    assert [counts[item] for item in found] == sorted(counts.values(), reverse=True)
    assert fastrec.segment_items([]) == {}


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("graded", [False, True])
def test_only_items_of_the_segment_count(texts, graded):
    chance = random.Random(2)
    name = (lambda item: f"i{item}") if texts else (lambda item: item)
    recs = {user: [name(item) for item in chance.sample(range(30), 10)] for user in range(50)}
    truth = {
        user: {name(item): chance.randint(0, 3) if graded else 1 for item in chance.sample(range(30), 4)}
        for user in range(50)
    }
    segments = {name(item): ("head", "mid", "tail")[item % 3] for item in range(28)}  # two items are in no segment
    metrics = ["ndcg@5", "recall@10", "map"]
    groups = {"half": [user % 2 for user in range(50)]}
    found = fastrec.evaluate_by_items(recs, truth, segments, metrics, per_user=True, groups=groups)
    assert list(found) == ["head", "mid", "tail"]
    for label, report in found.items():
        held = {
            user: {item: gain for item, gain in gains.items() if segments.get(item) == label}
            for user, gains in truth.items()
        }
        wanted = fastrec.evaluate(recs, held, metrics, per_user=True, groups=groups)
        assert report.estimates == wanted.estimates and report.groups == wanted.groups
        assert report.users == wanted.users and report.data == wanted.data
        assert all(np.array_equal(report.per_user[m], wanted.per_user[m], equal_nan=True) for m in metrics)


JUDGED = [
    *("judged@4", "unjudged@4", "bpref", "inf_ap", "rbp_residual(tail=unjudged)", "num_nonrel_judged_ret", "ndcg@5"),
    *("recall(no_truth=judged)@3", "compatibility", "iprec_at_recall"),
]


@pytest.mark.parametrize("form", ["graded", "plain"])
@pytest.mark.parametrize("policy", ["skip", "judged"])
def test_items_of_other_segments_stay_judged(form, policy):
    chance = random.Random(4)
    recs = [chance.sample(range(20), 8) for _ in range(40)]
    gains = [-1, 0, 1, 3] if form == "graded" else [1]
    truth = [{item: chance.choice(gains) for item in chance.sample(range(20), chance.randint(0, 8))} for _ in range(40)]
    passed = truth if form == "graded" else [list(own) for own in truth]
    segments = {item: "ab"[item % 2] for item in range(18)}  # two items are in no segment
    options = {"per_user": True, "no_truth": policy, "min_gain": 2 if form == "graded" else None}
    for label, report in fastrec.evaluate_by_items(recs, passed, segments, JUDGED, **options).items():
        judged = [
            {item: gain if segments.get(item) == label else min(gain, 0) for item, gain in own.items()} for own in truth
        ]
        wanted = fastrec.evaluate(recs, judged, JUDGED, **options)
        assert report.estimates == wanted.estimates and report.users == wanted.users
        assert report.data["truth_rows"] == sum(segments.get(item) == label for own in truth for item in own)


def test_judged_items_of_one_user_by_hand():
    truth, segments = [{"a": 1, "b": 1, "c": 0}], {"a": "A", "b": "B", "c": "B"}
    metrics = ["judged", "bpref", "rbp_residual(p=0.5, tail=unjudged)", "num_nonrel_judged_ret"]
    found = fastrec.evaluate_by_items([["c", "b", "a"]], truth, segments, metrics)["A"]
    assert [*found.values()] == [1.0, 0.0, 0.0, 2.0]
    left = fastrec.evaluate_by_items([["x", "b", "a"]], truth, segments, "mrr", exclude="unjudged")
    assert (left["A"]["mrr"], left["B"]["mrr"]) == (0.5, 1.0), "items of all segments stay in lists"
    found = fastrec.evaluate_by_items([["a"], ["b"]], [["a"], ["b"]], segments, "recall", no_truth="judged")
    assert found["A"]["recall"] == 0.5, "the second user has rows in the truth"


@pytest.mark.parametrize(
    ("metrics", "options", "error", "named"),
    [
        (["mrr", "judged"], {"min_gain": "any"}, fastrec.MetricError, "judged"),
        (["bpref(min_gain=any)"], {}, fastrec.MetricError, r"bpref\(min_gain=any\)"),
        (["mrr(min_gain=any)", "inf_ap"], {}, fastrec.MetricError, "inf_ap"),
        ("mrr", {"min_gain": "any", "no_truth": "judged"}, fastrec.InputError, "no_truth='judged'"),
        ("mrr(no_truth=judged)", {"min_gain": "any"}, fastrec.InputError, "no_truth='judged'"),
    ],
)
def test_judgements_are_unknown_if_each_row_is_relevant(metrics, options, error, named):
    with pytest.raises(
        error, match=f"^{named} is unknown by segment under min_gain='any': .* pass a number as min_gain"
    ):
        fastrec.evaluate_by_items([[1, 2]], [{1: 0, 2: 1}], {1: "a", 2: "b"}, metrics, **options)


def test_relevant_items_of_a_segment_are_known_if_each_row_is_relevant():
    metrics = ["mrr", "iprec_at_recall", "compatibility"]
    found = fastrec.evaluate_by_items([[2, 1]], [{1: 0, 2: 1}], {1: "a", 2: "b"}, metrics, min_gain="any")["a"]
    wanted = fastrec.evaluate([[2, 1]], [{1: 0}], metrics, min_gain="any")
    assert dict(found) == dict(wanted) and found["mrr"] == 0.5


def test_forms_and_options():
    segments = {1: "head", 2: "tail"}
    report = fastrec.evaluate_by_items([[1, 2]], [[2]], segments, "mrr", no_truth="zero")["head"]
    assert report["mrr"] == 0.0 and report.users["no_truth"] == 1
    by_tool = fastrec.evaluate_by_items([[1, 2]], [[2]], segments, "P_1", like="trec_eval")
    assert by_tool["tail"]["P_1"] == 0.0
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"user_id": [1, 1], "item_id": [1, 2], "rank": [1, 2]})
    assert fastrec.evaluate_by_items(frame, frame, segments, "mrr")["tail"]["mrr"] == 0.5


def test_items_and_labels_of_numpy_are_those_of_python():
    segments = {np.int64(1): np.str_("head"), 2: "head", np.int32(3): "tail"}
    assert list(fastrec.evaluate_by_items([[1, 2]], [[2]], segments, "mrr")) == ["head", "tail"]
    by_flag = fastrec.evaluate_by_items([[1, 2]], [[2]], {1: False, 2: True, 3: np.True_}, "mrr")
    assert by_flag[True]["mrr"] == 0.5 and len(by_flag) == 2


def test_segments_can_be_compared():
    truth = [[n % 4] for n in range(40)]
    segments = {0: "head", 1: "head", 2: "tail", 3: "tail"}
    popular = fastrec.evaluate_by_items([[0, 1]] * 40, truth, segments, "recall@2", per_user=True)
    broad = fastrec.evaluate_by_items([[0, 3]] * 40, truth, segments, "recall@2", per_user=True)
    head, tail = (
        fastrec.compare({"popular": popular[label], "broad": broad[label]}).rows[0] for label in ("head", "tail")
    )
    assert (head.difference, tail.difference) == (-0.5, 0.5)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: fastrec.segment_users([1], ["a"]), fastrec.InputTypeError, "must be of one type"),
        (
            lambda: fastrec.segment_users([1, "1"], [1]),
            fastrec.InputTypeError,
            "all integers or all strings, found int, str",
        ),
        (lambda: fastrec.segment_users([[1], [1, 2]], [1]), fastrec.InputTypeError, "all strings, found list"),
        (lambda: fastrec.segment_users([1], [1], shares=None), fastrec.InputTypeError, "shares numbers"),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {"1": "a"}, "mrr"),
            fastrec.InputTypeError,
            "must be integers",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: ["a"]}, "mrr"),
            fastrec.InputTypeError,
            "labels of segments",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: "a", float(2**53 + 1): "b"}, "mrr"),
            fastrec.InputTypeError,
            "items of segments must be integers or strings, found a float at position 1",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {True: "a"}, "mrr"),
            fastrec.InputTypeError,
            "items of segments must be all integers or all strings, found bool",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: "a", "1": "a"}, "mrr"),
            fastrec.InputTypeError,
            "items of segments must be all integers or all strings, found int, str",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: 1, 2: True}, "mrr"),
            fastrec.InputTypeError,
            "labels of segments must be all integers or all strings, found 1 and True",
        ),
        (lambda: fastrec.segment_users([[1]], [1]), fastrec.InputTypeError, "history must be all integers"),
        (
            lambda: fastrec.segment_users([1.5], [1]),
            fastrec.InputTypeError,
            "integers or strings, found a float at position 0: 1.5",
        ),
        (lambda: fastrec.segment_items("abc"), fastrec.InputTypeError, "found a str"),
        (lambda: fastrec.segment_items([1], shares=(0.8, 0.5)), fastrec.InputError, "shares must rise between 0 and 1"),
        (lambda: fastrec.segment_items([1], names=("a", "b")), fastrec.InputError, "one more than shares"),
        (lambda: fastrec.segment_items([1], names="abc"), fastrec.InputTypeError, "names must be strings"),
        (lambda: fastrec.segment_users([1], [1], names=("none", "b", "c")), fastrec.InputError, "must not hold 'none'"),
        (lambda: fastrec.evaluate_by_items([[1]], [[1]], {}, "mrr"), fastrec.InputTypeError, "segments must be a dict"),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], pd.DataFrame({"item_id": [1], "genre": ["a"]}), "mrr"),
            fastrec.InputTypeError,
            "found a data frame: pass dict",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: "a"}, "mrr", ties="best"),
            fastrec.InputError,
            "ties='best'",
        ),
        (
            lambda: fastrec.evaluate_by_items([[1]], [[1]], {1: "a"}, "mrr", progress=print),
            fastrec.InputTypeError,
            "progress",
        ),
        (lambda: fastrec.evaluate_by_items([[1, 1]], [[1]], {1: "a"}, "mrr"), fastrec.InputError, "twice"),
        *(
            (
                lambda metric=metric: fastrec.evaluate_by_items(
                    [[1]], [[1]], {1: "a"}, ["mrr", metric], history=[[1]], n_items=2
                ),
                fastrec.MetricError,
                f"^{metric} reads no truth, so it has one value for all segments: fastrec.evaluate gives it$",
            )
            for metric in ("gini@3", "novelty@3", "item_coverage@3", "rsp@3")
        ),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_large_ids_and_shares_that_are_reached_exactly():
    big = 2**60
    users = np.array([big, big + 1, big + 2, 5], np.uint64)
    assert fastrec.segment_users([big, big, big + 1, big + 2, 5], users).tolist() == ["heavy", *["light"] * 3]
    assert fastrec.segment_items(["a"] * 55 + ["b"] * 45, names=("h", "t"), shares=(0.55,)) == {"a": "h", "b": "t"}


def test_arguments_that_can_be_read_once():
    found = fastrec.evaluate_by_items([[1, 2]], [[1]], {1: "a", 2: "b"}, iter(["recall"]), k=iter([1, 2]))
    assert all(list(report) == ["recall@1", "recall@2"] for report in found.values())


LISTS = ["ndcg@5", "recall(average=pooled)@5", "f1(average=pooled)@5", "hits", "dcg(gain=exp2)@3", "map"]
ROWS = ["gauc", "log_loss", "calibration", "ndcg@3", "accuracy(threshold=0.2)"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["lists", "rows"])
def test_the_rest_is_all_other_users_to_the_last_bit(kind, weighted):
    chance = random.Random(3)
    n = 60
    half, third = ["ab"[user % 2] for user in range(n)], [user % 3 if user % 5 else None for user in range(n)]
    weights = [chance.random() for _ in range(n)]
    recs = [chance.sample(range(20), 8) for _ in range(n)]
    truth = [{item: chance.randint(1, 3) for item in chance.sample(range(20), chance.randint(0, 4))} for _ in range(n)]

    def evaluate(users, **options):
        if weighted:
            options["user_weight"] = [weights[user] for user in users]
        if kind == "lists":
            return fastrec.evaluate([recs[user] for user in users], [truth[user] for user in users], LISTS, **options)
        labels = [float(item in truth[user]) for user in users for item in recs[user]]
        scores = [1 / (2 + item) for user in users for item in recs[user]]
        return fastrec.evaluate_scores(labels, scores, np.arange(len(users) + 1) * 8, ROWS, **options)

    groups = {"half": half, "third": [str(label) for label in third]}
    found = evaluate(range(n), groups=groups).groups
    assert sum(map(len, found.values())) == 6
    for grouping, by_label in found.items():
        for label, estimates in by_label.items():
            others = evaluate([user for user in range(n) if groups[grouping][user] != label]).estimates
            assert {name: repr(estimate.rest) for name, estimate in estimates.items()} == {
                name: repr(estimate) for name, estimate in others.items()
            }
            for own in estimates.values():
                assert own.kind == own.rest.kind == "student"
                one, other, gap = own.std_error**2, own.rest.std_error**2, own.mean - own.rest.mean
                degrees = (one + other) ** 2 / (one**2 / own.degrees + other**2 / own.rest.degrees)  # of Welch
                width = own.range[1] - own.range[0]
                ends = student(gap, (one + other) ** 0.5, degrees, (-width, width))
                assert own.difference() == pytest.approx((gap, *ends), nan_ok=True)


def test_groups_of_which_nothing_else_is_known():
    labels, scores = [1, 0, 1, 0], [0.3, 0.4, 0.2, 0.1]
    found = fastrec.evaluate_scores(labels, scores, [0, 2, 4], ["auc", "gauc"], groups=["a", "b"]).groups
    own = found["group"]["a"]["auc"]
    assert (own.mean, own.rest.users) == (0.0, 1)
    assert np.isnan([own.rest.mean, *own.difference()]).all(), "the order of all rows is not kept for the rest"
    assert found["group"]["a"]["gauc"].rest.mean == 1.0
    (alone,) = fastrec.evaluate([[1]], [[1]], "mrr", groups=["all"]).groups["group"].values()
    assert alone["mrr"].rest.users == 0 and np.isnan(alone["mrr"].difference()).all()
