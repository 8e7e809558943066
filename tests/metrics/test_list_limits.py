"""Measures of lists at their limits: users without a list, perfect lists, the least and largest gains and options."""

import math
from fractions import Fraction

import pytest

import fastrec
from fastrec.exceptions import InputError, MetricError
from support import oracle

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
    with pytest.raises(InputError, match="truth of user 1: the gains add up to more than a double holds"):
        fastrec.evaluate([[1], [1, 2]], [{1: 1.0}, {1: 1.7e308, 2: 1.7e308}], metric)
    with pytest.raises(InputError, match="truth of user 'b'"):
        fastrec.evaluate({"b": [1, 2], "a": [1]}, {"a": {1: 1.0}, "b": {1: 1e308, 2: 1e308}}, metric)
    assert fastrec.evaluate([[1]], [{1: 1.7e308}], metric)[metric] == 1.0


@pytest.mark.parametrize("list_of_one", [[3, 1, 2], [2, 1], [9]])
def test_an_ideal_that_overflows_is_no_ndcg_of_0(list_of_one: list[int]) -> None:
    with pytest.raises(InputError, match="ndcg of user 0 needs sums that are too large for a double"):
        fastrec.evaluate([list_of_one], [{1: 1.7e308, 2: 1.7e308}], "ndcg")


@pytest.mark.parametrize("huge", [1e6, 1e12, 1e16])
def test_normalized_gain_keeps_digits_beside_huge_gains(huge: float) -> None:
    found = fastrec.evaluate([[9, 0, 1, 2]], [{0: huge, 1: 1.1, 2: 3.3}], "normalized_gain")["normalized_gain"]
    assert found == pytest.approx(
        oracle.normalized_gain(oracle.User([0.0, huge, 1.1, 3.3], [huge, 3.3, 1.1])), rel=1e-14
    )


def test_bpm_compares_exact_sums_of_gains_with_the_goal() -> None:
    """Ten times the double next to 0.1 is above 1, and 0.03 is below the product of 0.3 and 0.1."""
    ten = [dict.fromkeys(range(10), 0.1)]
    assert fastrec.evaluate([list(range(30))], ten, "bpm(max_gain=1)@20")["bpm(max_gain=1)@20"] == pytest.approx(0.1)
    (value,) = fastrec.evaluate([[1, 2, 3, 4, 5]], [{1: 0.03}], "bpm(max_gain=0.3, t=0.1)@5").values()
    assert value == pytest.approx(0.02)
    all_hits = [dict.fromkeys(range(30), 0.1)]
    (most,) = fastrec.evaluate([list(range(30))], all_hits, "bpm(max_gain=0.1, t=3)@20").values()
    assert most == 1.0


def test_a_patient_user_who_nearly_never_stops() -> None:
    p, depth = 0.999999999, 7
    weights = [Fraction(1), *(Fraction(p) ** (rank - 1) / 2 for rank in range(2, depth + 1))]
    (value,) = fastrec.evaluate(
        [[1, 2]], [{1: 1.0}], f"nerr(max_gain=2, model=patience, p={p}, depth={depth})"
    ).values()
    assert value == pytest.approx(float(Fraction(1, 2) / sum(weights)), rel=1e-14)


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


@pytest.mark.parametrize("texts", [["num_rel(min_gain=2)"], ["num_ret", "num_rel(min_gain=2)"]])
def test_the_truth_is_counted_from_its_own_smallest_gain_where_no_rank_is_read(texts: list[str]) -> None:
    rows = {"labels": [1.0, 2.0, 3.0, 2.0, 0.0], "scores": [0.1, 0.2, 0.3, 0.4, 0.5], "indptr": [0, 3, 5]}
    report = fastrec.evaluate_scores(**rows, metrics=texts, per_user=True)
    assert report.per_user["num_rel(min_gain=2)"].tolist() == [2, 1]
