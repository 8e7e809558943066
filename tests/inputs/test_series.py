"""Series of pandas are matched by position, so different indexes of one length are an error, wherever arrays go."""

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import InputError

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

LABELS, SCORES = pd.Series([1, 0, 1, 0], list("abcd")), pd.Series([0.9, 0.8, 0.3, 0.2], list("abcd"))
USERS, ONES = pd.Series([1, 1, 2, 2], list("abcd")), pd.Series([1, 1, 1, 1], list("abcd"))
CALLS = {
    "scores": lambda change: fastrec.evaluate_scores(LABELS, change(SCORES), metrics="auc"),
    "user_ids": lambda change: fastrec.evaluate_scores(LABELS, SCORES, metrics="gauc", user_ids=change(USERS)),
    "user_ids of two keys": lambda change: fastrec.evaluate_scores(
        LABELS, SCORES, metrics="gauc", user_ids=(USERS, change(ONES))
    ),
    "item_ids": lambda change: fastrec.evaluate_scores(
        LABELS, SCORES, metrics="mrr", user_ids=USERS, item_ids=change(pd.Series([1, 2, 1, 2], list("abcd")))
    ),
    "weights": lambda change: fastrec.evaluate_scores(LABELS, SCORES, metrics="auc", sample_weight=change(ONES)),
    "row_groups": lambda change: fastrec.evaluate_scores(LABELS, SCORES, metrics="auc", row_groups=change(USERS)),
    "named row_groups": lambda change: fastrec.evaluate_scores(
        LABELS, SCORES, metrics="auc", row_groups={"device": change(USERS)}
    ),
    "groups of rows": lambda change: fastrec.evaluate_scores(
        LABELS, SCORES, metrics="gauc", user_ids=USERS, groups=change(USERS)
    ),
    "an evaluator": lambda change: fastrec.ScoreEvaluator("auc").update(LABELS, change(SCORES)),
    "predictions": lambda change: fastrec.rmse(LABELS, change(SCORES)),
    "two keys of an evaluator": lambda change: fastrec.ScoreEvaluator("gauc").update(
        LABELS, SCORES, user_ids=(USERS, change(ONES))
    ),
    "two keys of models": lambda change: fastrec.compare_scores(
        LABELS, {"a": SCORES, "b": SCORES}, "log_loss", user_ids=(USERS, change(ONES))
    ),
    "a model": lambda change: fastrec.compare_scores(LABELS, {"a": SCORES, "b": change(SCORES)}, "log_loss"),
    "auc": lambda change: fastrec.auc(LABELS, change(SCORES)),
    "auc_test": lambda change: fastrec.auc_test(LABELS, SCORES, change(SCORES)),
    "bounded_auc": lambda change: fastrec.bounded_auc(LABELS, change(SCORES)),
    "a histogram": lambda change: fastrec.ScoreHistogram(16).add(LABELS, change(SCORES)),
    "roc_curve": lambda change: fastrec.roc_curve(LABELS, change(SCORES)),
    "calibration_curve": lambda change: fastrec.calibration_curve(LABELS, change(SCORES)),
    "two keys of calibration": lambda change: fastrec.calibration_curve(
        LABELS, SCORES, bins=1, user_ids=(USERS, change(ONES))
    ),
    "row_groups of calibration": lambda change: fastrec.calibration_curve(LABELS, SCORES, row_groups=change(USERS)),
    "named row_groups of calibration": lambda change: fastrec.calibration_curve(
        LABELS, SCORES, row_groups={"device": change(USERS)}
    ),
    "confusion_matrix": lambda change: fastrec.confusion_matrix(LABELS, change(SCORES), [0.5]),
    "count_classes": lambda change: fastrec.count_classes(LABELS, change(ONES)),
    "ctr_by_rank": lambda change: fastrec.ctr_by_rank(LABELS, change(ONES)),
    "two keys of ranks": lambda change: fastrec.ctr_by_rank(
        LABELS, pd.Series([1, 1, 2, 2], list("abcd")), user_ids=(USERS, change(ONES))
    ),
    "policy_value": lambda change: fastrec.policy_value(LABELS, change(SCORES), SCORES),
    "slate_ids": lambda change: fastrec.policy_value(SCORES, SCORES, SCORES, slate_ids=change(USERS)),
    "two keys of slates": lambda change: fastrec.policy_value(SCORES, SCORES, SCORES, slate_ids=(USERS, change(ONES))),
}


@pytest.mark.parametrize("call", CALLS)
def test_other_indexes_are_an_error_and_arrays_are_taken_by_position(call):
    with pytest.raises(InputError, match=r" different indexes, but Series are matched by position: .*loc"):
        CALLS[call](lambda series: series[::-1])
    CALLS[call](lambda series: series)
    CALLS[call](lambda series: series.to_numpy())


LISTS, TRUTH = pd.Series([[1, 5], [2, 6]], ["ann", "bob"]), pd.Series([[5], [6]], ["ann", "bob"])
OF_LISTS = {
    "groups": pd.Series(["x", "y"], ["ann", "bob"]),
    "user_weight": pd.Series([1.0, 3.0], ["ann", "bob"]),
    "exclude": pd.Series([[2], [1]], ["ann", "bob"]),
    "history": pd.Series([[2], [1]], ["ann", "bob"]),
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_other_indexes_beside_lists_are_an_error(name):
    metrics = "repeat_ratio@1" if name == "history" else "recall@1"
    with pytest.raises(
        InputError, match=rf"^recs and {name} are Series with different indexes, .* {name}.to_numpy\(\)$"
    ):
        fastrec.evaluate(LISTS, TRUTH, metrics, **{name: OF_LISTS[name][::-1]})
    fastrec.evaluate(LISTS, TRUTH, metrics, **{name: OF_LISTS[name]})


def test_logs_of_drift_with_other_indexes_are_an_error():
    with pytest.raises(InputError, match="are Series with different indexes"):
        fastrec.drift([LISTS, LISTS[::-1]], k=2)
    assert fastrec.drift([LISTS, LISTS], k=2)


@pytest.mark.parametrize("name", ["groups", "user_weight"])
@pytest.mark.parametrize(
    "call",
    [
        lambda given: fastrec.evaluate({"ann": [1], "bob": [2]}, {"ann": [1], "bob": [3]}, "recall@1", **given),
        lambda given: fastrec.evaluate([[1], [2]], [[1], [3]], "recall@1", user_ids=["ann", "bob"], **given),
        lambda given: fastrec.evaluate_scores(
            np.array([1, 0, 1, 0]), np.array([3, 2, 1, 0]), [0, 2, 4], "gauc", user_ids=["ann", "bob"], **given
        ),
    ],
    ids=["dicts", "ids of lists", "ids of rows"],
)
def test_an_index_of_users_in_another_order_is_an_error(call, name):
    with pytest.raises(InputError, match=rf"^{name} is a Series whose index has the users in another order: .*user: "):
        call({name: OF_LISTS[name][::-1]})
    wanted = call({name: OF_LISTS[name]})
    for other in (OF_LISTS[name].reset_index(drop=True), OF_LISTS[name].to_numpy(), OF_LISTS[name].set_axis([5, 7])):
        assert call({name: other}).to_dict() == wanted.to_dict()
