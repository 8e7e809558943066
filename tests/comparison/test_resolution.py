"""What a comparison of few users can find: intervals, the smallest p-values, detectable differences, headlines."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrec
from fastrec.comparison.findings import findings
from fastrec.report.significance import levels_of_steps
from support.interval_oracle import student

METRIC = "brier(average=user)"
FEW = "no row( by group)? can be significant"
WORKED = [0.05, 0, 0.05, 0.05, 0, 0.1]


def compared(gaps: Any, n_systems: int = 2, **options: Any) -> fastrec.Comparison:
    """Return a comparison of systems, each with these gaps of users above the values of the first."""
    n = len(gaps)
    groups = options.pop("groups", None)
    reports = {
        f"s{nth}": fastrec.evaluate_scores(
            np.zeros(n),
            np.sqrt(0.3 + np.array(gaps) * (nth > 0)),
            np.arange(n + 1),
            METRIC,
            groups=groups,
            per_user=True,
        )
        for nth in range(n_systems)
    }
    return fastrec.compare(reports, baseline="s0", **options)


def test_the_interval_and_the_p_value_of_few_users_may_disagree() -> None:
    with pytest.warns(fastrec.FastrecWarning, match=FEW):
        found = compared(WORKED)
    (row,) = found.rows
    assert (row.low, row.high) == pytest.approx((0.0022, 0.0812), abs=5e-5)
    assert (row.low, row.high) == pytest.approx(student(row.difference, float(stats.sem(WORKED)), 5), abs=1e-9)
    assert (row.p_value, row.p_floor, row.verdict) == (0.125, 2 / 2**4, "not clear")
    assert row.note.startswith("the interval excludes 0, but the verdict follows the corrected p-value")
    assert f"{METRIC} of s1: {row.note}" in repr(found).replace("\n", " ")
    t = compared(WORKED, test="t").rows[0]
    assert (t.low, t.high, t.p_floor) == (row.low, row.high, 0)
    assert t.p_value == pytest.approx(stats.ttest_1samp(WORKED, 0).pvalue, rel=1e-8)


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", "none"])
@pytest.mark.parametrize("n", [4, 5, 6, 8])
@pytest.mark.parametrize("n_systems", [2, 3])
def test_a_family_without_resolution_is_said(n: int, n_systems: int, correction: Any, recwarn: Any) -> None:
    found = compared([0.1] * n + [0], n_systems, correction=correction)
    (floor,) = {row.p_floor for row in found.rows}
    assert floor == 2 / 2**n == found.rows[0].p_value
    times = n_systems - 1 if correction in ("holm", "bonferroni") else 1
    assert bool(found.warnings) == (floor * times > 0.05) == bool(recwarn)
    if found.warnings:
        assert found.warnings[-1].startswith("no row can be significant: ")
        help_ = "take more users or test='t'" if floor > 0.05 else "take more users, test='t', or fewer rows"
        assert help_ in found.warnings[-1]


def test_each_grouping_is_a_family_of_its_own() -> None:
    with pytest.warns(fastrec.FastrecWarning, match="no row by group can be significant") as caught:
        compared([0.1] * 12, groups=["x", "y"] * 6)
    assert len(caught) == 1  # 2 / 2^12 for all users, twice 2 / 2^6 in groups
    compared([0.1] * 12, groups=["x", "y"] * 6, correction="bh")


def test_rounds_limit_p_values() -> None:
    with pytest.warns(fastrec.FastrecWarning, match="take more n_rounds or test='t'"):
        found = compared([0.1] * 40, n_rounds=15)
    assert found.rows[0].p_value == found.rows[0].p_floor == 1 / 16
    assert "≤ 0.0625" in repr(found)
    with pytest.warns(fastrec.FastrecWarning, match="test='bootstrap' finds too many differences with fewer than 20"):
        compared([0.1, 0.2] * 9, test="bootstrap")
    with pytest.warns(fastrec.FastrecWarning, match="test='wilcoxon' finds far too many"):
        compared([0.1, 0.2] * 500, test="wilcoxon")


@pytest.mark.parametrize(
    ("correction", "wanted"),
    [("none", [1, 1, 1]), ("bonferroni", [1 / 3] * 3), ("holm", [1 / 2, 1 / 3, 1]), ("bh", [2 / 3, 1 / 3, 1])],
)
def test_the_level_of_each_step(correction: str, wanted: list[float]) -> None:
    found = levels_of_steps([0.02, 0.01, 0.5, math.nan], correction, 0.05)
    assert found[:3] == pytest.approx([0.05 * share for share in wanted])
    assert found[3] == pytest.approx(found[2])


@pytest.mark.parametrize("power", [0.5, 0.9, 0.2])
def test_detectable_differences_have_their_power(power: float) -> None:
    gaps = np.linspace(-0.1, 0.3, 30)
    row = compared(gaps, level=0.9, power=power).rows[0]
    quantiles = stats.t.ppf(0.95, 29) + stats.t.ppf(power, 29)
    assert row.detectable == pytest.approx(quantiles * stats.sem(gaps), rel=1e-6)
    with pytest.raises(fastrec.InputError, match="power must lie between 0 and 1"):
        compared(gaps, power=1)


def test_headlines_count_metrics_of_accuracy_that_were_tested_and_name_lost_segments() -> None:
    row = compared(np.linspace(0.1, 0.3, 30)).rows[0]._replace(verdict="better", metric="ndcg@5", direction="higher")
    novelty, mrr = row._replace(metric="novelty@5"), row._replace(metric="mrr", verdict=None)
    lost = row._replace(grouping="plan", group="new", verdict="worse")
    (words,) = findings([novelty, row, mrr], {"plan": [lost, row._replace(group="old")]}, "s0", {})
    assert words.startswith("s1 beats s0 on ndcg@5, but is worse for new users: ")
    (words,) = findings([novelty, row._replace(verdict="not clear")], {}, "s0", {})
    assert words.startswith("No clear difference between s1 and s0 on ndcg@5: ")
    (words,) = findings([row._replace(verdict="worse")], {"plan": [lost]}, "s0", {})
    assert words.startswith("s1 is worse than s0 on ndcg@5: ")
    (words,) = findings([row], {"plan": [lost._replace(group="(none)")]}, "s0", {})
    assert "but is worse for unlabelled users" in words
    second = row._replace(system="s2", verdict="worse", baseline="s1")
    more = [row, row._replace(system="s2", verdict="not clear"), second]
    means = {"s0": 0.1, "s1": 0.9, "s2": 0.2}
    estimates = {name: {"ndcg@5": fastrec.Estimate(mean, 0.1, 30)} for name, mean in means.items()}
    words = findings(more, {"plan": [lost]}, None, estimates)[0]
    assert "s1 beats both others on ndcg@5" in words and words.endswith("but is worse than another for new users")
    (words,) = findings([novelty], {"plan": [novelty._replace(verdict="worse", group="new")]}, "s0", {})
    assert words.startswith("s1 against s0, no metric of accuracy; novelty@5 ")


def test_equal_differences_have_a_note_with_the_p_value_of_student() -> None:
    reports = {
        name: fastrec.evaluate([own] * 3, [[5]] * 3, "mrr", per_user=True) for name, own in (("a", [5]), ("b", [8, 5]))
    }
    row = fastrec.compare(reports, test="t").rows[0]
    assert (row.difference, row.p_value) == (-0.5, 0) and row.low < 0 < row.high and math.isnan(row.detectable)
    assert row.note == "all users differ by the same amount: the p-value takes it for certain, the interval does not"
    assert fastrec.compare(reports).rows[0].note == ""


def test_the_smallest_p_value_of_wilcoxon_is_that_of_its_distribution() -> None:
    """With ties SciPy takes the normal distribution, which goes below 2 / 2^5."""
    lists = {"a": [[1]] * 30, "b": [[9, 1]] * 5 + [[1]] * 25}
    reports = {name: fastrec.evaluate(own, [[1]] * 30, "mrr", per_user=True) for name, own in lists.items()}
    found = fastrec.compare(reports, test="wilcoxon")
    assert found.rows[0].p_value == found.rows[0].p_floor < 2 / 2**5 and not found.warnings
    weak = fastrec.compare(reports, test="t", power=1e-300)
    assert weak.rows[0].detectable == 0


def test_a_row_in_which_no_user_differs_silences_no_warning() -> None:
    lists = {"a": [[5]] * 10, "b": [[5]] * 6 + [[8, 5]] * 4}
    reports = {
        name: fastrec.evaluate(own, [[5]] * 10, ["mrr", "hit_rate"], per_user=True) for name, own in lists.items()
    }
    with pytest.warns(fastrec.FastrecWarning, match="no row can be significant.* at least 0.125, "):
        equal, few = fastrec.compare(reports, metrics=["hit_rate", "mrr"]).rows
    assert equal.note == "no user differs" and few.note.startswith("fewer than 20 users differ: the interval may be")
