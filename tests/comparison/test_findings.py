"""The findings of comparisons and reports in words, at the head of their pages."""

import math
import re
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.comparison.findings import findings
from fastrec.comparison.row import ComparisonRow, reverse
from fastrec.exceptions import InputTypeError
from fastrec.report.estimates import Estimate
from support.pages import compared, evaluated

MEANS = {"better": (0.125, 0.081), "worse": (0.05, 0.1), "not clear": (0.101, 0.1)}


def row(metric: str, verdict: Any, system: str = "svd", baseline: str = "popularity", **changes: Any) -> ComparisonRow:
    mean, other = MEANS.get(verdict, (0.3, 0.2))
    gap = mean - other
    numbers = (mean, other, gap, gap - 0.01, gap + 0.01, 0.01, 0.01)
    made = ComparisonRow(metric, system, baseline, *numbers, 3, 1, 0, 4, 0, 0.1, verdict=verdict)
    return made._replace(**changes)


def of(*verdicts: str | None) -> str:
    """Return the first finding about rows with these verdicts, of ndcg@1, ndcg@2, ..."""
    return findings([row(f"ndcg@{n}", verdict) for n, verdict in enumerate(verdicts, 1)], {}, "popularity", {})[0]


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["better"] * 8, "svd beats popularity on all 8 metrics; ndcg@1 +54 % (0.0810 → 0.1250)"),
        (["better"] * 2, "svd beats popularity on both metrics; ndcg@1 +54 % (0.0810 → 0.1250)"),
        (["better"], "svd beats popularity on ndcg@1: +54 % (0.0810 → 0.1250)"),
        (["worse"] * 3, "svd is worse than popularity on all 3 metrics; ndcg@1 -50 % (0.1000 → 0.0500)"),
        (["not clear"], "No clear difference between svd and popularity on ndcg@1: +1.0 % (0.1000 → 0.1010)"),
        (
            ["better", "worse", "not clear"],
            (
                "svd beats popularity on ndcg@1, is worse on ndcg@2 and differs not clearly on ndcg@3; "
                "ndcg@1 +54 % (0.0810 → 0.1250)"
            ),
        ),
        (
            ["worse"] + ["better"] * 5,
            "svd beats popularity on 5 of 6 metrics and is worse on ndcg@1; ndcg@1 -50 % (0.1000 → 0.0500)",
        ),
        ([None], "svd against popularity, without a verdict; ndcg@1 +50 % (0.2000 → 0.3000)"),
        (["better", None], "svd beats popularity on ndcg@1: +54 % (0.0810 → 0.1250)"),
    ],
)
def test_a_pair_in_words(verdicts: list[str | None], words: str) -> None:
    assert of(*verdicts) == words


def test_the_numbers_are_of_a_metric_with_a_direction() -> None:
    neutral = row("popularity@5", None, direction="none")
    (words,) = findings([neutral, row("mrr", "better")], {}, "popularity", {})
    assert words == "svd beats popularity on mrr: +54 % (0.0810 → 0.1250)"
    (words,) = findings([neutral], {}, "popularity", {})
    assert words == "svd against popularity, no metric of accuracy; popularity@5 +50 % (0.2000 → 0.3000)"


def test_two_systems_without_a_baseline_name_the_better_first() -> None:
    (words,) = findings([row("mrr", "worse", "a", "b"), row("ndcg@5", "worse", "a", "b")], {}, None, {})
    assert words == "b beats a on both metrics; mrr +100 % (0.0500 → 0.1000)"


def test_the_best_system_is_first() -> None:
    rows = [row("mrr", "worse", "random"), row("mrr", "not clear", "near"), row("mrr", "better", "svd")]
    assert [line.split()[0] for line in findings(rows, {}, "popularity", {})] == ["svd", "No", "random"]
    assert findings(rows[:2], {}, "popularity", {})[0] == "No system beats popularity on mrr"
    lower = [one._replace(direction="lower", difference=-one.difference) for one in rows[::2]]
    assert [line.split()[0] for line in findings(lower, {}, "popularity", {})] == ["svd", "random"]
    many = [row("mrr", "better", f"system {n}") for n in range(12)]
    assert findings(many, {}, "popularity", {})[-1] == "4 more systems: see the table"


def test_every_system_against_every_other() -> None:
    def found(*verdicts: str) -> list[str]:
        pairs = [("b", "a", 0.2, 0.1), ("c", "a", 0.3, 0.1), ("c", "b", 0.3, 0.2)]
        return findings(
            [
                row("mrr", verdict, system, other, mean=mean, baseline_mean=base, difference=mean - base)
                for verdict, (system, other, mean, base) in zip(verdicts, pairs, strict=True)
            ],
            {},
            None,
            {},
        )

    assert found("better", "better", "better") == [
        "c beats both others on mrr (0.3000)",
        "b (0.2000) beats a",
    ]
    assert found("not clear", "better", "not clear") == [
        "c has the highest mrr (0.3000), not clearly apart from b",
        "c (0.3000) beats a",
    ]
    assert found(*["not clear"] * 3) == ["No system clearly beats another on mrr; c has the highest (0.3000)"]


def only(ranks: dict[int, int]) -> fastrec.Report:
    """Return the report of a system whose lists hold the relevant item of each user at a rank; 0: not at all."""
    lists = {user: [*range(1000, 999 + rank), *([user] if rank else [])] for user, rank in ranks.items()}
    return fastrec.evaluate(lists, {user: [user] for user in ranks}, "mrr", per_user=True)


@pytest.mark.filterwarnings("ignore")
def test_the_best_system_is_that_of_its_own_users_if_pairs_share_others() -> None:
    """The means of the last pair are those of one user, where b has 1.0; over its users it has 0.1667."""
    hits = {
        "a": dict.fromkeys(range(20), 2),
        "b": {0: 1} | dict.fromkeys(range(1, 6), 0),
        "c": {0: 1} | dict.fromkeys(range(10, 14), 2),
    }
    found = fastrec.compare({name: only(ranks) for name, ranks in hits.items()}, test="t")
    words = findings(found.rows, {}, None, found.estimates)
    assert words == [
        "No system clearly beats another on mrr; c has the highest (0.6000)",
        "Means are over the users of each system, tests over the users of both",
    ]
    page = found.to_html()
    assert all(line in page for line in words)


def test_a_system_with_the_best_mean_may_be_worse_on_shared_users() -> None:
    """c is best over its own users, but b beats it on those of both."""
    pairs = [("b", "a", 0.2, 0.2), ("c", "a", 0.4, 0.1), ("c", "b", 0.1, 0.3)]
    rows = [
        row("mrr", verdict, system, other, mean=mean, baseline_mean=base, difference=mean - base)
        for verdict, (system, other, mean, base) in zip(("not clear", "not clear", "worse"), pairs, strict=True)
    ]
    estimates = {name: {"mrr": Estimate(mean, 0.1, 9)} for name, mean in (("a", 0.1), ("b", 0.2), ("c", 0.4))}
    assert findings(rows, {}, None, estimates) == [
        "c has the highest mrr (0.4000), not clearly apart from a, but is worse than b on the users of both",
        "b (0.2000) beats c",
        "Means are over the users of each system, tests over the users of both",
    ]


def test_the_relative_difference() -> None:
    assert row("mrr", "better").relative == pytest.approx(0.125 / 0.081 - 1)
    for changes in ({"baseline_mean": 0.0}, {"baseline_mean": -1.0}, {"mean": -1.0}, {"target": 1.0}):
        assert math.isnan(row("mrr", "better", **changes).relative)
    assert (
        "mrr: +0.0440 (0.0000 → 0.1250)" in findings([row("mrr", "better", baseline_mean=0.0)], {}, "popularity", {})[0]
    )


def test_a_reversed_row_is_the_comparison_of_the_baseline() -> None:
    a, b = (evaluated(quality, seed, metrics="mrr", k=None, groups=None) for quality, seed in ((0.1, 1), (0.9, 2)))
    for options in ({"test": "t"}, {"test": "randomization", "n_rounds": 200}):
        (one,), (other,) = (
            fastrec.compare({"a": a, "b": b}, baseline=name, metrics="mrr", **options).rows for name in "ab"
        )
        assert reverse(one)._replace(detectable=0.0) == pytest.approx(other._replace(detectable=0.0), abs=1e-12)
        assert reverse(reverse(one)) == one


def test_the_head_of_a_comparison() -> None:
    page = str(compared().to_html())
    assert "<p class=headline>new beats old on all 6 metrics; ndcg@5 +345 %" in page
    assert page.index("class=headline") < page.index("class=findings") < page.index('<svg role="img"')
    assert page.index('<svg role="img"') < page.index("<table")


def test_the_head_of_a_report() -> None:
    report = evaluated()
    low, high = report.interval("ndcg@5")
    page = str(report.to_html())
    users = f"{report.estimates['ndcg@5'].users} of {report.users['total']} users"
    words = f"ndcg@5 is {report['ndcg@5']:.4f} (95 % interval {low:.4f} – {high:.4f}) over {users}"
    assert f"<p class=headline>{words}\n" in page
    groups = {label: own["ndcg@5"].mean for label, own in report.groups["plan"].items()}
    best, worst = max(groups, key=groups.__getitem__), min(groups, key=groups.__getitem__)
    ends = f"highest for {best} ({groups[best]:.4f}) and lowest for {worst} ({groups[worst]:.4f})"
    assert f"<li>By plan, ndcg@5 is {ends}" in page
    rows = fastrec.evaluate_scores([1, 0, 1], [0.9, 0.8, 0.1], metrics=["auc"]).to_html() or ""
    assert "<p class=headline>auc is 0.5000\n" in rows


@pytest.mark.filterwarnings("ignore")
def test_warnings_have_a_frame_of_their_own() -> None:
    report = fastrec.evaluate([[1]], [[]], ["mrr"])
    page = str(report.to_html())
    assert "headline" not in page.partition("<header>")[2]
    assert page.count("the truth has no rows") == 1
    assert '<div class=warnings role=note aria-label="Warnings"><p>warning: the truth has no rows' in page
    assert "class=warnings" not in str(evaluated().to_html()).partition("<header>")[2]


@pytest.mark.filterwarnings("ignore")
def test_samples_are_marked_before_any_number_of_a_table() -> None:
    rng = np.random.default_rng(0)
    users, truth = rng.random((30, 4)), [[int(item)] for item in rng.integers(0, 50, 30)]
    reports = {
        name: fastrec.evaluate_model((users, rng.random((50, 4))), truth, "mrr@5", negatives=9, per_user=True)
        for name in "ab"
    }
    mark = "sampled: ranks are among 9 items drawn uniformly for each user"
    found = fastrec.compare(reports, test="t")
    for one in (reports["a"], found):
        page = str(one.to_html())
        assert page.index("<div class=warnings") < page.index(mark) < page.index("<svg" if one is found else "<table")
        *_, caption = one.to_markdown(form="paper").splitlines()
        assert mark in caption and mark in one.to_latex(form="paper").splitlines()[2]


def test_facts_about_an_evaluation_are_at_the_head_of_its_page() -> None:
    report, comparison = evaluated(), compared()
    for found in (report, comparison):
        page = str(found.to_html(about={"date": "2026-01-31", "data": "a & b"}))
        assert "<dl class=about><div><dt>date<dd>2026-01-31</div><div><dt>data<dd>a &amp; b</div></dl>" in page
        assert found.to_html() == found.to_html(about={})
        assert "<dl" not in str(found.to_html())
        with pytest.raises(InputTypeError, match=r"about must be strings by name, as in .*, found \['x'\]"):
            found.to_html(about=["x"])
        with pytest.raises(InputTypeError, match="about must be strings by name"):
            found.to_html(about={"users": np.int64(3)})


def test_segments_are_drawn_against_a_baseline():
    """A chart for each metric and grouping of at least two groups with users; none if all systems are compared."""
    lists, truth = [[1, 2], [2, 1], [2, 3], [1, 3]], [[1], [1], [1], [1]]
    groups = {"plan": ["a", "a", "<b>", "<b>"], "all": ["x"] * 4}
    reports = {
        name: fastrec.evaluate(own, truth, ["mrr", "recall@1"], groups=groups, per_user=True)
        for name, own in (("old", lists), ("new", lists[::-1]))
    }
    page = fastrec.compare(reports, baseline="old").to_html()
    titles = re.findall(r"<figcaption>(.*? by .*?)</figcaption>", page)
    assert titles == ["mrr of new by plan", "recall@1 of new by plan"]
    chart = page.partition("<figcaption>mrr of new by plan")[2].partition("</svg>")[0]
    lines = [line for line in re.findall(r"<text[^>]*>([^<]*)", chart) if line in ("a", "&lt;b&gt;")]
    assert lines == ["&lt;b&gt;", "a"]
    assert " of new by plan" not in fastrec.compare(reports).to_html()
