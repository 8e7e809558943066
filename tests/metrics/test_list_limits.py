"""Measures of lists at their limits: users without a list, perfect lists, the least and largest gains and options."""

import math

import pytest

import fastrec
from fastrec.exceptions import InputError, MetricError

OF_RANKS = ["coverage_error", "mean_rank", "median_rank", "ndpm", "ordered_pair_accuracy"]


@pytest.mark.parametrize("metric", OF_RANKS)
def test_a_user_without_a_list_has_no_rank(metric: str) -> None:
    """A count as 0 would be the best of all ranks; who wants it says no_recs=zero."""
    lists, truth = [[1, 2, 3], []], [{1: 1.0, 3: 2.0}, {5: 1.0}]
    report = fastrec.evaluate(lists, truth, metric, per_user=True)
    alone = fastrec.evaluate(lists[:1], truth[:1], metric)
    assert report[metric] == alone[metric] > 0 and math.isnan(report.per_user[metric][1])
    assert fastrec.evaluate(lists, truth, metric, no_recs="zero")[metric] == alone[metric] / 2


@pytest.mark.parametrize("n_rel", [1, 7, 39])
@pytest.mark.parametrize("metric", ["compatibility", "compatibility(p=0.3)", "compatibility(p=0.999)"])
def test_a_list_that_begins_with_the_ideal_has_the_value_1(metric: str, n_rel: int) -> None:
    ideal = list(range(1, n_rel + 1))
    assert fastrec.evaluate([[*ideal, 90, 91]], [ideal], metric)[metric] == 1.0
    swapped = fastrec.evaluate([[90, *ideal]], [ideal], metric)[metric]
    assert swapped < 1.0


@pytest.mark.parametrize("k", [10, 10_000, 10_001, 20_000])
def test_mean_precision_of_hits_alone_is_1(k: int) -> None:
    items = list(range(k))
    value = fastrec.evaluate([items], [items], f"mean_precision@{k}")[f"mean_precision@{k}"]
    assert value == 1.0
    almost = fastrec.evaluate([items], [items[:-1]], f"mean_precision@{k}")[f"mean_precision@{k}"]
    assert 1.0 - 2 / k < almost < 1.0


def test_mean_precision_has_a_last_cutoff() -> None:
    with pytest.raises(MetricError, match="mean_precision@1000001 takes cut-offs up to 1,000,000"):
        fastrec.evaluate([[1]], [[1]], "mean_precision@1000001")


@pytest.mark.parametrize("metric", ["ndcg_rel", "rndcg", "normalized_gain"])
def test_gains_that_add_up_to_infinity_are_an_error(metric: str) -> None:
    with pytest.raises(
        MetricError, match=rf"{metric} needs gains whose sum is a double: those of user 1 are too large"
    ):
        fastrec.evaluate([[1], [1, 2]], [{1: 1.0}, {1: 1.7e308, 2: 1.7e308}], metric)
    assert fastrec.evaluate([[1]], [{1: 1.7e308}], metric)[metric] == 1.0


@pytest.mark.parametrize("metric", ["insq", "inst", "bpm", "nerr"])
@pytest.mark.parametrize("goal", ["1e-300", "0.0009", "1001", "1e300"])
def test_goals_are_numbers_that_sums_can_hold(metric: str, goal: str) -> None:
    with pytest.raises(MetricError, match=rf"{metric}: t=\S+ must be a number from 0.001 to 1000"):
        fastrec.evaluate([[1]], [[1]], f"{metric}(max_gain=1, t={goal})")


@pytest.mark.parametrize("goal", [0.001, 1000])
@pytest.mark.parametrize("metric", ["insq", "bpm", "nerr"])
def test_goals_at_the_ends(metric: str, goal: float) -> None:
    (value,) = fastrec.evaluate([[1, 2]], [[2]], f"{metric}(max_gain=1, t={goal})@2").values()
    assert 0 < value <= 1


def test_copies_of_an_item_are_the_error_that_they_are_elsewhere() -> None:
    with pytest.raises(InputError, match="item 1 appears twice"):
        fastrec.evaluate([[1, 1, 1]], [{1: 5.0}], "normalized_gain")


@pytest.mark.parametrize("metric", ["err", "insq", "inst", "bpm", "nerr"])
def test_a_gain_above_the_largest_is_an_error(metric: str) -> None:
    texts = ["ndcg", f"{metric}(max_gain=3)", f"{metric}(max_gain=2)", "recall"]
    with pytest.raises(InputError, match=rf"truth gains must not exceed {metric}'s max_gain = 2.0, found 2.5"):
        fastrec.evaluate([[1]], [{1: 2.5}], texts)
    assert fastrec.evaluate([[1]], [{1: 2.0}], texts)["recall"] == 1.0
