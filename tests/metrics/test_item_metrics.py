"""Metrics of items, histories and other lists against the oracle, the worked example, and laws."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import fastrec
from fastrec.metrics.calls import parse
from fastrec.report.plans import known_calls, with_effects_of_settings
from support import item_cases, item_oracle
from support.item_calls import check, evaluate, same, values_of
from support.item_cases import BASE, CLICKS, COVERED, RANKINGS, SHOP, metric_texts, random_shop
from support.item_oracle import Shop
from support.known import OF_ITEMS

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

CALLS_OF_SHOP = 12


# The worked example


WORKED = [(SHOP, item_cases.VALUES), (CLICKS, item_cases.CLICKS_VALUES), (COVERED, item_cases.COVERED_VALUES)]


@pytest.mark.parametrize(("shop", "text", "value"), [(shop, *row) for shop, table in WORKED for row in table.items()])
def test_worked_value(shop: Shop, text: str, value: float) -> None:
    assert evaluate(shop, text)[text] == pytest.approx(value, rel=1e-15, abs=1e-15)


ROUNDED = [(SHOP, item_cases.ROUNDED), (BASE, item_cases.BASE_ROUNDED), (RANKINGS, item_cases.RANKINGS_ROUNDED)]


@pytest.mark.parametrize(("shop", "text", "value"), [(shop, *row) for shop, table in ROUNDED for row in table.items()])
def test_worked_value_to_its_digits(shop: Shop, text: str, value: float) -> None:
    assert evaluate(shop, text)[text] == pytest.approx(value, abs=5e-11)


@pytest.mark.parametrize("text", item_cases.USERS)
def test_worked_values_of_users(text: str) -> None:
    found = values_of(evaluate(SHOP, text), text)
    assert all(
        same(found[user], value, 1e-15) for user, value in zip(item_cases.ALL, item_cases.USERS[text], strict=True)
    )


@pytest.mark.parametrize("text", item_cases.FIRST_USER)
def test_worked_value_of_the_first_user(text: str) -> None:
    assert values_of(evaluate(SHOP, text), text)["u1"] == pytest.approx(item_cases.FIRST_USER[text], rel=1e-15)


# Random shops


TEXTS = [text for k in (None, 1, 3) for text in metric_texts(k)]


@pytest.mark.thorough(except_for="^[012]$")
@pytest.mark.parametrize("block", range(12))
def test_random_shops(block: int) -> None:
    draw = random.Random(block)
    compared = 0
    for seed in range(50 * block, 50 * block + 50):
        shop = random_shop(seed)
        compared += sum(check(shop, text) for text in draw.sample(TEXTS, CALLS_OF_SHOP))
    assert compared > 200


def test_every_metric_has_an_oracle() -> None:
    assert set(OF_ITEMS) == {*item_oracle.USERS, *item_oracle.CATALOGUE} == set(item_cases.OPTIONS)


def test_options_are_those_of_the_oracle() -> None:
    """Columns and the policies that every call can give have tests of their own."""
    declared = {str(metric["name"]): set(metric["options"]) for metric in fastrec.catalogue()}
    of_calls = {"column", "sep", "no_truth", "no_recs", "no_history", "no_features", "min_gain", "mean"}
    for name, options in item_cases.OPTIONS.items():
        assert declared[name] - of_calls == set(options) - of_calls, name
    assert all(parse(text).k == 3 for text in metric_texts(3))


# Laws

METRICS = [
    *("item_coverage", "item_coverage(denominator=history)", "gini", "gini(discount=rbp)", "shannon_entropy"),
    *("personalization", "personalization(overlap=cosine)", "popularity", "novelty", "popularity_lift", "aplt", "epc"),
    *("efd", "repeat_ratio", "overlap", "rbo", "unexpectedness", "category_coverage", "category_entropy"),
    *("miscalibration", "miscalibration(divergence=js)", "intra_list_diversity", "serendipity", "rsp", "reo"),
    *("intra_list_diversity(distance=jaccard)", "intra_list_diversity(distance=hamming)", "user_coverage", "ndcg"),
    *("serendipity(expected=history)", "serendipity(expected=reference)", "ips", "ips(of=dcg, clip=0.1)", "snips"),
    *("ips(of=precision, average=pooled)", "snips(of=rbp, clip=0.3)", "snips(average=pooled)"),
]


def large_shop(n_users: int = 300) -> Shop:
    draw = random.Random(4)
    items = list(range(40))
    shop: dict[Any, dict[str, Any]] = {
        item: {
            "category": draw.sample("ABCDE", draw.choice([1, 2, 3])),
            "features": [draw.random() - 0.3 for _ in range(4)],
            "segment": draw.choice(["head", "tail"]),
            "propensity": 0.001 + 0.999 * draw.random(),
        }
        for item in items
    }
    return Shop(
        lists={user: draw.sample(items, draw.choice([0, 1, 6])) for user in range(n_users)},
        truth={user: dict.fromkeys(draw.sample(items, draw.choice([0, 1, 3])), 1.0) for user in range(n_users)},
        history={user: [draw.choice(items[:30]) for _ in range(draw.choice([0, 2, 9]))] for user in range(n_users)},
        items=shop,
        reference={user: draw.sample(items, draw.choice([0, 4])) for user in range(n_users)},
    )


LARGE = large_shop()
PLANS = {user: "ab"[user % 2] for user in LARGE.lists}


@pytest.fixture(scope="module")
def whole() -> fastrec.Report:
    return evaluate(LARGE, METRICS, k=[2, 6], by=PLANS)


def test_threads_leave_the_bits(whole: fastrec.Report) -> None:
    one = evaluate(LARGE, METRICS, k=[2, 6], by=PLANS, n_threads=1)
    assert one.estimates == whole.estimates and one.groups == whole.groups
    for name in whole:
        assert np.array_equal(one.per_user[name], whole.per_user[name], equal_nan=True), name


def test_users_in_another_order_leave_the_bits(whole: fastrec.Report) -> None:
    users = random.Random(1).sample(list(LARGE.lists), len(LARGE.lists))
    sides = [
        {user: side[user] for user in users} for side in (LARGE.lists, LARGE.truth, LARGE.history, LARGE.reference)
    ]  # type: ignore[index]
    moved = Shop(sides[0], truth=sides[1], history=sides[2], items=LARGE.items, reference=sides[3])
    assert evaluate(moved, METRICS, k=[2, 6], by=PLANS).estimates == whole.estimates


def test_a_history_in_another_order_leaves_the_bits(whole: fastrec.Report) -> None:
    assert LARGE.history is not None
    history = {user: items[::-1] for user, items in LARGE.history.items()}
    moved = Shop(LARGE.lists, truth=LARGE.truth, history=history, items=LARGE.items, reference=LARGE.reference)
    assert evaluate(moved, METRICS, k=[2, 6]).estimates == whole.estimates


@pytest.mark.parametrize("ids", ["strings", "sparse"])
def test_other_ids_leave_the_values(ids: str, whole: fastrec.Report) -> None:
    """The new ids have the order of the old ones: sums over a history follow this order."""

    def renamed(item: int) -> Any:
        return f"item {item:03d}" if ids == "strings" else 10**12 * (item + 1)

    def of(side: Any) -> Any:
        return {user: [renamed(item) for item in items] for user, items in side.items()}

    assert LARGE.truth is not None and LARGE.items is not None
    truth = {user: {renamed(item): gain for item, gain in row.items()} for user, row in LARGE.truth.items()}
    table = {renamed(item): row for item, row in LARGE.items.items()}
    moved = Shop(of(LARGE.lists), truth=truth, history=of(LARGE.history), items=table, reference=of(LARGE.reference))
    assert evaluate(moved, METRICS, k=[2, 6], by=PLANS).estimates == whole.estimates


def test_batches_and_merging_leave_the_bits(whole: fastrec.Report) -> None:
    """Standard errors of metrics of exposure need the lists a second time, which batches do not give."""
    evaluators = [fastrec.Evaluator(METRICS, k=[2, 6], history=LARGE.history, items=LARGE.items) for _ in range(3)]
    assert LARGE.truth is not None and LARGE.reference is not None
    for nth, evaluator in enumerate(evaluators):
        users = [user for user in LARGE.lists if user % 3 == nth]
        lists, truth, other = ({u: side[u] for u in users} for side in (LARGE.lists, LARGE.truth, LARGE.reference))
        evaluator.update(lists, truth, reference=other, by=PLANS)
    first, second, third = (fastrec.Evaluator.from_bytes(own.to_bytes()) for own in evaluators)
    merged = third.merge(first).merge(second).result()
    for name in whole:
        found, wanted = merged.estimates[name], whole.estimates[name]
        assert (found.mean, found.users) == (wanted.mean, wanted.users), name
        is_exposure = parse(name).metric.formula.__module__ == "fastrec.metrics.exposure"
        assert math.isnan(found.std_error) if is_exposure else found.std_error == wanted.std_error, name
        assert merged.groups["group"]["a"][name].mean == whole.groups["group"]["a"][name].mean


def test_a_group_is_as_if_alone(whole: fastrec.Report) -> None:
    """Popularity stays that of the whole history."""
    assert LARGE.truth is not None and LARGE.reference is not None
    users = [user for user in LARGE.lists if PLANS[user] == "a"]
    parts = [{user: side[user] for user in users} for side in (LARGE.lists, LARGE.truth, LARGE.reference)]
    alone = Shop(parts[0], truth=parts[1], history=LARGE.history, items=LARGE.items, reference=parts[2])
    found = evaluate(alone, METRICS, k=[2, 6])
    for name, estimate in whole.groups["group"]["a"].items():
        assert (estimate.mean, estimate.users) == (found[name], found.estimates[name].users), name
        assert same(estimate.std_error, found.estimates[name].std_error, 1e-14), name


# Standard errors


@pytest.mark.parametrize("text", ["gini@10", "shannon_entropy@10", "personalization@10", "gini(discount=log2)@10"])
def test_standard_errors_are_those_of_repeated_logs(text: str) -> None:
    draw = np.random.default_rng(8)
    weights = 1 / np.arange(1, 61) ** 0.7

    def log() -> list[list[int]]:
        return np.argsort(draw.exponential(size=(200, 60)) / weights, axis=1)[:, :10].tolist()

    reports = [fastrec.evaluate(log(), None, text, n_items=60) for _ in range(120)]
    real = np.std([report[text] for report in reports], ddof=1)
    estimated = np.mean([report.estimates[text].std_error for report in reports])
    assert 0.8 < estimated / real < 1.25


def test_values_of_users_average_to_the_metric() -> None:
    for name in ("gini@6", "shannon_entropy@6", "personalization@6", "personalization(overlap=cosine)@6"):
        report = evaluate(LARGE, name)
        values = report.per_user[name]
        assert np.nanmean(values) == pytest.approx(report[name], rel=1e-12)
        n = np.count_nonzero(~np.isnan(values))
        assert np.nanstd(values, ddof=1) / math.sqrt(n) == pytest.approx(report.estimates[name].std_error, rel=1e-9)
        assert report.is_mean(name)


def test_compare_pairs_the_effects_of_users() -> None:
    other = Shop({user: items[:3] for user, items in LARGE.lists.items()}, history=LARGE.history, items=LARGE.items)
    reports = {"whole": evaluate(LARGE, ["gini@6", "popularity@6"]), "cut": evaluate(other, ["gini@6", "popularity@6"])}
    rows = {row.metric: row for row in fastrec.compare(reports, seed=0).rows}
    difference = reports["cut"]["gini@6"] - reports["whole"]["gini@6"]
    assert rows["gini@6"].difference == pytest.approx(difference, abs=1e-12)
    assert rows["gini@6"].direction == "lower" and rows["gini@6"].low < difference < rows["gini@6"].high


EFFECTS = ("gini@2", "shannon_entropy@2", "personalization@2", "personalization(overlap=cosine)@2")


def test_pages_draw_no_values_of_users_of_numbers_of_all_lists() -> None:
    page = evaluate(LARGE, ["gini@6", "popularity@6", "personalization@6"]).to_html() or ""
    assert "popularity@6: " in page and " users by value" in page
    assert "gini@6: " not in page and "personalization@6: 1" not in page
    assert "gini@6, personalization@6: a number of all lists together, so it has effects of lists" in page.replace(
        "<wbr>", ""
    )


def with_values(lists: Any, by: Any = None) -> fastrec.Report:
    groups = None if by is None else [by[user] for user in lists]
    return fastrec.evaluate(lists, None, [*EFFECTS, "user_coverage@2"], n_items=9, per_user=True, groups=groups)


@pytest.mark.parametrize("lists", [{1: [1, 2], 2: [1, 3], 3: [4, 5], 9: [1, 2]}, {1: [1, 2], 2: [1, 3], 3: [4], 4: []}])
def test_compare_leaves_out_exposures_of_other_users(lists: Any) -> None:
    """Effects of shared users do not add up to a difference of the reports."""
    reports = {"a": with_values({1: [1, 2], 2: [1, 3], 3: [4, 5], 4: [6, 7]}), "b": with_values(lists)}
    found = fastrec.compare(reports)
    assert {row.metric for row in found.rows} == {"user_coverage@2"} and list(found.left_out) == list(EFFECTS)
    why = "can be compared only if the same users have lists in all reports"
    assert all(why in reason for reason in found.left_out.values()) and why in repr(found)
    with pytest.raises(fastrec.InputError, match=why):
        fastrec.compare(reports, metrics="gini@2")


def test_compare_gives_the_difference_of_exposures() -> None:
    """Also if some users have no list, in any order of users, and not within groups, whose exposures are others."""
    chance = random.Random(5)
    lists = {user: chance.sample(range(9), chance.randint(1, 4)) if user % 3 else [] for user in range(60)}
    others = {user: [8, *(item for item in items[1:] if item != 8)] for user, items in reversed(lists.items()) if items}
    others |= {user: [] for user, items in lists.items() if not items}
    by = {user: "even" if user % 2 == 0 else "odd" for user in lists}
    reports = {"a": with_values(lists, by), "b": with_values(others, by)}
    found = fastrec.compare(reports, n_rounds=10)
    rows = {row.metric: row for row in found.rows}
    for name in EFFECTS:
        assert rows[name].difference == reports["b"][name] - reports["a"][name] != 0.0
        assert (rows[name].mean, rows[name].users) == (reports["b"][name], 40)
        assert rows[name].wins is rows[name].ties is rows[name].losses is None  # of users, who have no such number
    assert None not in rows["user_coverage@2"][10:13]
    assert {row.metric for row in found.segments["group"]} == {"user_coverage@2"}
    assert list(found.left_out) == [f"{name} within groups" for name in EFFECTS]
    (row,) = fastrec.compare(dict.fromkeys("ab", with_values({1: [], 2: []})), metrics="gini@2").rows
    assert row.users == 0 and math.isnan(row.mean) and math.isnan(row.difference)
    alone = fastrec.compare(reports, metrics="gini@2", n_rounds=10)
    assert len(alone.rows) == 1 and not alone.segments and "gini@2 within groups: " in repr(alone)


def test_values_that_are_effects_of_lists_are_saved(tmp_path: Path) -> None:
    """They may lie outside the range of the metric, as effects may have either sign."""
    texts = ["gini@3", *(parse(text).text for k in (3, None) for text in metric_texts(k))]
    names = sorted(with_effects_of_settings(known_calls(texts), {"n_items": 20}))
    assert {name.partition("(")[0].partition("@")[0] for name in names} == {
        "gini",
        "shannon_entropy",
        "personalization",
    }
    chance = random.Random(0)
    lists = [chance.sample(range(20), chance.randint(1, 8)) for _ in range(20)]
    history = [chance.sample(range(20), 4) for _ in lists]
    report = fastrec.evaluate(lists, None, names, n_items=20, history=history, groups=["x", "y"] * 10, per_user=True)
    assert report.per_user["gini@3"].min() < 0 and report.per_user["personalization@3"].max() > 1
    report.save(tmp_path / "report.npz")
    loaded = fastrec.load(tmp_path / "report.npz")
    assert loaded.to_dict() == report.to_dict() and list(loaded.per_user) == list(report.per_user) == names
    assert all(loaded.per_user[name].tobytes() == values.tobytes() for name, values in report.per_user.items())


def streamed(shop: Shop, metrics: Any) -> fastrec.Report:
    evaluator = fastrec.Evaluator(metrics, history=shop.history, items=shop.items, per_user=True)
    for nth in range(2):
        evaluator.update({user: items for user, items in shop.lists.items() if user % 2 == nth})
    return evaluator.result()


def test_compare_names_the_metrics_of_exposure_that_it_cannot_pair() -> None:
    """Coverage has no effects of users' lists; those of other metrics need the lists a second time."""
    other = Shop({user: items[:3] for user, items in LARGE.lists.items()}, history=LARGE.history, items=LARGE.items)
    metrics = ["item_coverage@6", "gini@6", "personalization@6", "popularity@6"]
    found = fastrec.compare({"whole": evaluate(LARGE, metrics), "cut": evaluate(other, metrics)}, n_rounds=10)
    assert list(dict.fromkeys(row.metric for row in found.rows)) == ["gini@6", "personalization@6", "popularity@6"]
    why = "is a number of all lists together without a known standard error, which compare needs"
    assert found.left_out == {"item_coverage@6": why}
    batches = {"whole": streamed(LARGE, metrics), "cut": streamed(other, metrics)}
    found = fastrec.compare(batches, n_rounds=10)
    assert [row.metric for row in found.rows] == ["popularity@6"]
    why = "has no values per user in a report made from batches, which compare needs: evaluate all lists in one call"
    assert found.left_out["gini@6"] == found.left_out["personalization@6"] == why
    assert f"gini@6: {why}" in repr(found)
    with pytest.raises(fastrec.InputError, match=f"^gini@6 {why}$"):
        fastrec.compare(batches, metrics="gini@6")


def test_a_report_says_why_a_metric_of_exposure_has_no_interval() -> None:
    metrics = ["item_coverage@6", "gini@6", "popularity@6"]
    lines = repr(streamed(LARGE, metrics)).splitlines()
    assert "no interval for item_coverage@6: this metric has no known standard error" in lines
    why = "the standard error needs the lists a second time, which batches do not give"
    assert f"no interval for gini@6: {why}" in lines
    assert "no interval for gini@2: only one user is counted" in repr(
        fastrec.evaluate([[1]], None, "gini@2", n_items=2)
    )


# What a call says


FAULTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no history": ("novelty@3", {}, r"^novelty@3 needs history=\.\.\. or items=\.\.\.$"),
    "no inputs of several metrics": (
        ["novelty@3", "category_coverage@3", "popularity@3"],
        {},
        r"^novelty@3, popularity@3 need history=\.\.\. or items=\.\.\.; category_coverage@3 needs items=\.\.\.$",
    ),
    "no reference": ("overlap@3", {}, r"^overlap@3 needs reference=\.\.\.$"),
    "no items": ("category_coverage@3", {}, r"^category_coverage@3 needs items=\.\.\.$"),
    "no size": ("gini@3", {}, r"^gini@3 needs the size of the catalogue: n_items=\.\.\. or, for lists, items=\.\.\.$"),
    "a small size": ("gini@3", {"n_items": 4}, r"^gini@3: n_items=4 is too small: the lists hold 5 distinct items$"),
    "no cut-off": ("personalization", {}, r"^personalization needs a cut-off, as in personalization@10, or overlap="),
    "no users": (
        "novelty@3",
        {"items": {item: {"popularity": 2} for item in range(7)}},
        r"^novelty@3 needs the number of users behind the popularity",
    ),
    "an item without row": (
        "popularity@3",
        {"items": {1: {"popularity": 2}}},
        r"^found 5 items of the lists, such as item 4, that items lacks; choose what such an item counts with unseen=",
    ),
    "an item without category": (
        "category_entropy@3",
        {"items": {item: {"category": "A" if item < 6 else None} for item in range(1, 7)}},
        r"^found 1 item of the lists, such as item 6, without a value in the items column 'category'; .*='drop'",
    ),
    "an item without row for its category": (
        "category_entropy@3",
        {"items": {item: {"category": "A" if item < 5 else None} for item in range(1, 6)}},
        r"^found 1 item of the lists, such as item 6, that items lacks; leave them out with no_features='drop'",
    ),
    "no vectors": (
        "intra_list_diversity@3",
        {"items": {item: {"category": "A"} for item in range(7)}},
        r"^items has no column 'features'; distance=cosine .* categories; name a column, as in .*; columns: category$",
    ),
    "categories as vectors": (
        "intra_list_diversity(column=category)@3",
        {"items": {item: {"category": "A"} for item in range(7)}},
        r"must hold one vector per item, found 'A'; for categories, intra_list_diversity takes distance=jaccard$",
    ),
    "no column of categories": (
        "miscalibration@3",
        {"items": {item: {"genre": "A"} for item in range(7)}, "history": [[1], [2], [], []]},
        r"has no column 'category'; name one, as in miscalibration\(column=genre\)@10; columns: genre$",
    ),
    "another popularity": (
        "popularity@3",
        {"items": {item: {"popularity": -0.5} for item in range(7)}, "history": [[1], [2], [], []]},
        r"found -0.5; it replaces the counts of history: drop or rename it if it is something else$",
    ),
    "a history of strings": (
        "novelty@3",
        {"history": [["a"], ["b"], [], []]},
        r"on all sides, found recs: integers, truth: integers, history: strings: write all as",
    ),
    "no such column": (
        "category_entropy(column=genre)@3",
        {"items": {1: {"brand": "A"}}},
        r"items has no column 'genre'",
    ),
    "a negative popularity": (
        "popularity@3",
        {"items": {item: {"popularity": -2} for item in range(7)}},
        r"must hold numbers from 0, found -2",
    ),
    "a tiny popularity": (
        "novelty@3",
        {"items": {item: {"popularity": 1e-320} for item in range(7)}, "n_users": 9},
        r"^items column 'popularity' must hold 0 or numbers from 1e-150 to 1e\+150, found 1e-320",
    ),
    "a huge popularity": (
        "popularity(scale=share, counts=rows)@3",
        {"items": {item: {"popularity": 1e308} for item in range(7)}},
        r"^items column 'popularity' must hold 0 or numbers from 1e-150 to 1e\+150, found 1e\+308",
    ),
    "less than one row": (
        "efd(unseen=one, relevance=none)@3",
        {"items": {item: {"popularity": 0.1 if item < 6 else 0} for item in range(7)}},
        r"^items column 'popularity' must add up to at least 1 for unseen=one and normalize=max, found 0\.6",
    ),
    "less than one row, normalised": (
        "novelty(share=rows, normalize=max)@3",
        {"items": {item: {"popularity": 0.1} for item in range(7)}},
        r"^items column 'popularity' must add up to at least 1 for unseen=one and normalize=max, found 0\.7",
    ),
    "no popularity": (
        "novelty@3",
        {"items": {1: {"price": 2}}},
        r"^items has no column 'popularity': add one, or pass history=\.\.\.; columns: price$",
    ),
    "no segments": (
        "rsp@3",
        {"items": {1: {"price": 2}}},
        r"^items has no column 'popularity' or 'segment': add one, or pass history=\.\.\.; columns: price$",
    ),
    "vectors of two lengths": (
        "intra_list_diversity@3",
        {"items": {1: {"features": [1.0]}, 2: {"features": [1.0, 2.0]}}},
        r"items column 'features' must hold vectors of one length, found 1 and 2$",
    ),
    "a NaN": ("intra_list_diversity@3", {"items": {1: {"features": [math.nan]}}}, r"'features' must not be NaN"),
    "weights": (
        "gini@3",
        {"n_items": 9, "user_weight": [1, 2, 1, 1]},
        r"^user_weight does not apply to metrics of the exp",
    ),
    "a label that no item has": (
        "aplt(tail=taill)@3",
        {"items": {item: {"segment": "tail" if item < 5 else None} for item in range(7)}},
        r"^items column 'segment' has no item with the label 'taill' of the tail; labels: tail$",
    ),
    "no tail": (
        "aplt@3",
        {"items": {item: {"segment": item % 2} for item in range(7)}},
        r"^items column 'segment' has no item with the label 'tail' of the tail; labels: 0, 1$",
    ),
    "an unknown policy": (
        "novelty@3",
        {"no_history": "none"},
        r"^no_history must be one of skip, zero, nan, error; found",
    ),
    "a policy of others": (
        "efd@3",
        {"unseen": "zero", "history": [[1]] * 4},
        r"^efd@3 takes unseen=max or one or error",
    ),
    "a negative item of the history": (
        "novelty@3",
        {"history": [[-1]] * 4},
        r"item ids must not be negative, found -1",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_call_that_cannot_be_evaluated(name: str) -> None:
    metrics, more, says = FAULTS[name]
    lists = [[4, 5, 2], [3, 4, 6], [2, 3], [2]]
    with pytest.raises(fastrec.FastrecError, match=says):
        fastrec.evaluate(lists, [[1]] * 4, metrics, **more)


def test_misses_have_no_item() -> None:
    with pytest.raises(fastrec.InputError, match=r"with duplicates='miss', later copies are .* use duplicates='first'"):
        fastrec.evaluate([[1, 1, 2]], None, "gini@3", n_items=9, duplicates="miss")
    with pytest.raises(fastrec.InputError, match=r"with duplicates='miss', later copies are .* use duplicates='first'"):
        fastrec.evaluate([[1, 1, 2]], None, "rsp@3", n_items=9, history=[[3]], duplicates="miss")  # were in the tail
    lists = pd.DataFrame({"user_id": [1, 1], "item_id": [4, 5], "rank": [1, 3]})
    with pytest.raises(
        fastrec.InputError, match=r"gaps between ranks are places without an item .* ranks without gaps"
    ):
        fastrec.evaluate(lists, None, "popularity@3", history=lists, like="rectools")
    assert (
        fastrec.evaluate([[1, 1, 2]], None, "item_coverage@3", n_items=4, duplicates="first")["item_coverage@3"] == 0.5
    )


@pytest.mark.parametrize(("policy", "mean"), [("skip", 1 / 3), ("zero", 1 / 6), ("nan", math.nan)])
def test_users_without_a_history(policy: str, mean: float) -> None:
    for metric, call in (("repeat_ratio@3", {"no_history": policy}), (f"repeat_ratio(no_history={policy})@3", {})):
        report = fastrec.evaluate([[4, 5, 2], [1]], None, metric, history=[[1, 2, 3], []], **call)
        assert same(report[metric], mean)
    with pytest.raises(fastrec.InputError, match=r"^user 1 has no history, and no_history=error$"):
        fastrec.evaluate([[1], [1]], None, "repeat_ratio@3", history=[[1], []], no_history="error")


@pytest.mark.parametrize("tail", [2, "2", 2**40])
def test_a_tail_may_be_an_integer(tail: int | str) -> None:
    other: Any = type(tail)(1)
    items = {item: {"kind": tail if item % 2 else other} for item in range(1, 6)}
    metric = f"aplt(column=kind, tail={tail})@3"
    assert fastrec.evaluate([[1, 3, 2], [4, 2]], None, metric, items=items)[metric] == pytest.approx(1 / 3)


def test_an_item_without_a_segment_is_in_the_tail() -> None:
    items = {1: {"segment": "head"}, 2: {"segment": None}}
    assert fastrec.evaluate([[1, 2]], None, "aplt@2", items=items)["aplt@2"] == 0.5


OTHER_IDS: dict[str, dict[str, Any]] = {
    "novelty@1": {},
    "aplt@1": {},
    "serendipity(expected=popular)@1": {},
    "serendipity(expected=rank)@1": {"n_items": 9},
    "rsp@1": {"n_items": 9},
    "item_coverage(denominator=history)@1": {},
}


@pytest.mark.parametrize("metric", OTHER_IDS)
def test_a_history_with_other_items_is_told(metric: str) -> None:
    call, truth, says = OTHER_IDS[metric], {1: [5], 2: [6]}, "^no item of the lists has a popularity: do the item ids"
    apart = {1: [70], 2: [80]}
    with pytest.warns(fastrec.FastrecWarning, match=says):
        report = fastrec.evaluate({1: [5], 2: [6]}, truth, metric, history=apart, **call)
    assert (report.data["rec_rows_unseen"], "rec_rows_searched" in report.data) == (2, False)
    parts = [fastrec.Evaluator(metric, history=apart, **call) for _ in range(2)]
    for user, part in enumerate(parts, 1):
        part.update({user: [4 + user]}, {user: truth[user]})
    with pytest.warns(fastrec.FastrecWarning, match=says):
        fastrec.Evaluator.from_bytes(parts[0].merge(parts[1]).to_bytes()).result()
    scores = np.eye(2, 3)
    model: dict[str, Any] = {"model": scores, "truth": truth, "user_ids": [1, 2], "item_ids": [5, 6, 7], **call}
    with pytest.warns(fastrec.FastrecWarning, match=says):  # of models, only the first items are looked at
        fastrec.evaluate_model(**model, metrics=metric, history=apart)
    assert not fastrec.evaluate_model(**model, metrics=metric, history={1: [5], 2: [80]}).warnings


def test_what_metrics_meet_is_counted() -> None:
    items = {1: {"category": "a"}, 2: {"category": None}, 3: {}}
    call: dict[str, Any] = {"history": [[1, 1], []], "items": items, "no_features": "drop"}
    report = fastrec.evaluate([[1, 2], [3, 1]], None, ["novelty@2", "miscalibration@2", "category_entropy@2"], **call)
    counted = ("rec_rows_unseen", "users_without_history", "rec_rows_without_features")
    assert [report.data[name] for name in counted] == [2, 1, 2]
    assert not set(counted) & set(fastrec.evaluate([[1]], [[1]], "recall@1", history=[[1]]).data)
    first, second = (fastrec.Evaluator("novelty@2", history={1: [1], 2: [1]}) for _ in range(2))
    first.update({1: [1, 2]})
    second.update({2: [3, 4]})
    merged = fastrec.Evaluator.from_bytes(first.merge(second).to_bytes()).result()
    assert merged.data["rec_rows_unseen"] == 3


@pytest.mark.parametrize(("policy", "mean"), [("skip", 1.0), ("zero", 0.5), ("nan", math.nan)])
def test_serendipity_of_users_without_a_history(policy: str, mean: float) -> None:
    items = {"item_id": [1, 2], "features": [[1, 0], [0, 1]]}
    call: dict[str, Any] = {"items": items, "history": {1: [2]}, "no_history": policy}
    metric = "serendipity(expected=history)@1"
    report = fastrec.evaluate({1: [1], 2: [2], 3: [2]}, {1: [1], 2: [2]}, metric, no_truth="skip", **call)
    assert same(report[metric], mean)


def test_users_without_a_list_count_as_the_call_says() -> None:
    """By default only metrics that read the truth count them."""
    lists, truth, history = [[1, 2], []], [[1], [2]], [[1, 2], [3]]
    metrics = ["repeat_ratio@2", "recall@2", "popularity@2"]
    found = fastrec.evaluate(lists, truth, metrics, history=history)
    assert {name: found[name] for name in found} == {"repeat_ratio@2": 1.0, "recall@2": 0.5, "popularity@2": 1.0}
    for policy, values in {"zero": [0.5, 0.5, 0.5], "skip": [1.0, 1.0, 1.0]}.items():
        given = fastrec.evaluate(lists, truth, metrics, history=history, no_recs=policy)
        assert [given[name] for name in metrics] == values
    own = fastrec.evaluate(lists, truth, "popularity(no_recs=zero)@2", history=history)
    assert own["popularity(no_recs=zero)@2"] == 0.5


@pytest.mark.parametrize("text", ["gini@2", "shannon_entropy@2", "personalization@2", "item_coverage@2", "rsp@2"])
@pytest.mark.parametrize("policy", ["zero", "nan"])
def test_users_without_a_list_add_nothing_to_exposure(text: str, policy: str) -> None:
    lists = {1: [1, 2], 2: [3, 4], 3: [1, 4], 4: []}
    shop = {item: {"segment": "head" if item < 3 else "tail"} for item in range(1, 6)}
    listed = fastrec.evaluate({user: own for user, own in lists.items() if own}, None, text, items=shop)
    found = fastrec.evaluate(lists, None, text, items=shop, no_recs=policy).estimates[text]
    assert found.users == 3
    if policy == "nan":
        assert math.isnan(found.mean)
    else:
        assert same(found.mean, listed[text], 0.0)
        assert same(found.std_error, listed.estimates[text].std_error, 0.0)


def test_users_without_a_list_count_zero_in_means() -> None:
    lists: dict[int, list[int]] = {1: [1, 2], 2: [3, 4], 3: [], 4: []}
    sides = {"reference": {user: [9] for user in lists}, "history": {user: [1, 5] for user in lists}}
    texts = ["unexpectedness@2", "popularity_lift(average=user)@2"]
    report = fastrec.evaluate(lists, None, texts, no_recs="zero", **sides)
    assert [report[text] for text in texts] == [0.5, -0.375]


def test_skipped_users_have_no_chances() -> None:
    shop = {1: {"segment": "a"}, 2: {"segment": "b"}}
    lists, truth = {1: [1], 2: [2]}, {1: [1], 2: [2], 3: [2]}
    texts = ["reo@1", "reo(no_recs=skip)@1"]
    assert fastrec.evaluate(lists, truth, texts[0], items=shop, no_recs="skip")[texts[0]] == 0.0
    report = fastrec.evaluate(lists, truth, texts, items=shop)
    assert [report[text] for text in texts] == [pytest.approx(1 / 3), 0.0]


@pytest.mark.parametrize("factor", [2.0**-100, 1e-30, 2047.0, 2048.0, 1e300])
def test_discounts_of_any_size(factor: float) -> None:
    weights = [1.0, 0.5, 0.25]
    lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    for metric in ("gini", "shannon_entropy"):
        known, scaled = (
            f"{metric}(discount={[one * factor for one in weights]})@3".replace(" ", "") for factor in (1.0, factor)
        )
        report = fastrec.evaluate(lists, None, [known, scaled], n_items=6)
        assert same(report[scaled], report[known], 1e-12)
        assert same(report.estimates[scaled].std_error, report.estimates[known].std_error, 1e-12)


def test_an_item_with_a_tiny_weight_is_shown() -> None:
    text = "gini(zeros=exclude,discount=rbp,p=0.5)@100"
    assert fastrec.evaluate([list(range(100))] * 5, None, text)[text] == pytest.approx(0.97, abs=1e-12)


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_a_catalogue_smaller_than_the_history(n_items: int) -> None:
    with pytest.raises(fastrec.MetricError, match=r"n_items=\d is too small: the history has 4 items"):
        fastrec.evaluate([[4], [2]], None, "rsp@3", history=[[1, 2, 3], [1, 4]], n_items=n_items)


@pytest.mark.parametrize("text", ["item_coverage@3", "gini@3", "rsp@3", "reo@3"])
def test_items_outside_the_catalogue(text: str) -> None:
    shop = {item: {"segment": "ab"[item % 2]} for item in (1, 2, 3)}
    with pytest.raises(fastrec.InputError, match="2 items of the lists, such as item 4"):
        fastrec.evaluate([[4, 5], [3, 4]], [[1], [2]], text, items=shop)


def test_lists_of_many_lengths_take_no_table_by_length() -> None:
    n = 300
    indptr = np.concatenate([[0], np.cumsum(np.arange(1, n + 1))])
    rows = np.concatenate([np.arange(length) for length in range(1, n + 1)])
    text = "personalization(overlap=cosine)"
    roots = np.sqrt(np.arange(1, n + 1))
    common = np.minimum.outer(np.arange(1, n + 1), np.arange(1, n + 1)) / np.outer(roots, roots)
    evaluator = fastrec.Evaluator([text])
    evaluator.update((rows, indptr))
    assert len(evaluator.to_bytes()) < 100_000
    assert evaluator.result()[text] == pytest.approx(1 - (common.sum() - n) / (n * (n - 1)), abs=1e-12)


def test_popularity_of_a_column() -> None:
    items = {1: {"popularity": 3, "sold": 30}, 2: {"popularity": 1, "sold": 0}, 3: {}}
    call: dict[str, Any] = {"items": items, "n_users": 4}
    metrics = ["popularity@2", "popularity(column=sold)@2", "novelty@2", "popularity(unseen=drop)@2"]
    found = fastrec.evaluate([[1, 2], [2, 3]], None, metrics, **call)
    assert [found[name] for name in metrics] == [1.25, 7.5, pytest.approx((math.log2(4 / 3) + 2 + 4) / 4), 1.5]
    both = fastrec.evaluate([[1], [1]], None, "popularity@1", history=[[1], [2]], items={1: {"brand": "x"}})
    assert both["popularity@1"] == 1.0


@pytest.mark.parametrize("form", ["lists", "array", "sparse"])
@pytest.mark.parametrize("size", [1e160, 1.7e308, 1e-170, 5e-324])
def test_the_length_of_vectors_does_not_matter(form: str, size: float) -> None:
    """Squares of such numbers overflow or underflow."""
    metrics = ["intra_list_diversity@3", *(["serendipity(expected=history)@3"] if form != "sparse" else [])]
    make: Any = {"lists": np.ndarray.tolist, "array": np.asarray, "sparse": sparse.csr_matrix}[form]
    usual, found = (
        fastrec.evaluate(
            [[1, 2, 3]],
            [[1, 2, 3]],
            metrics,
            history=[[1]],
            items={"item_id": [1, 2, 3], "features": make(np.array([[own, 0.0], [own, own], [0.0, own]]))},
        )
        for own in (1.0, size)
    )
    assert {name: found[name] for name in found} == {name: usual[name] for name in usual}


def test_a_fractional_popularity_counts_if_every_item_has_one() -> None:
    items = {1: {"popularity": 0.25}, 2: {"popularity": 0.25}}
    metric = "efd(unseen=one, relevance=none)@2"
    assert fastrec.evaluate([[1, 2]], None, metric, items=items)[metric] == 1.0


def test_a_column_may_have_any_name() -> None:
    shop = pd.DataFrame({"item_id": [1, 2], "2024": ["a", "b"], "main genre": ["x", "x"]})
    metrics = ["category_coverage(column=2024)@2", "category_coverage(column=main genre)@1"]
    report = fastrec.evaluate([[1, 2]], None, metrics, items=shop)
    assert {name: report[name] for name in report} == dict.fromkeys(metrics, 1.0)


def test_one_user_one_item() -> None:
    call: dict[str, Any] = {"n_items": 1, "history": [[7]], "reference": [[7]], "items": {7: {"category": "a"}}}
    metrics = ["gini@1", "gini(correction=n_minus_1)@1", "shannon_entropy(normalize=n_items)@1", "personalization@1"]
    metrics += ["novelty@1", "rbo@1", "intra_list_diversity(distance=jaccard)@1", "category_entropy@1"]
    report = fastrec.evaluate([[7]], None, metrics, **call)
    expected = [0.0, 0.0, 0.0, math.nan, 0.0, 1.0, 0.0, 0.0]
    assert all(same(report[name], value) for name, value in zip(metrics, expected, strict=True))
    nobody = fastrec.evaluate([[]], None, metrics, **call)
    assert all(math.isnan(nobody[name]) for name in metrics)


# What looks like a mistake


def test_a_separator_that_no_option_names() -> None:
    shop = {1: {"category": "a|b"}, 2: {"category": "a|c"}, 3: {"category": "c"}}
    for metric in ("category_entropy@2", "category_coverage@2", "intra_list_diversity(distance=jaccard)@2"):
        with pytest.warns(fastrec.FastrecWarning, match=r"2 of 3 categories .* hold '\|', such as 'a\|b': .* sep=\|$"):
            fastrec.evaluate([[1, 2]], None, metric, items=shop)
        separated = metric.replace(")", ", sep=|)") if "(" in metric else metric.replace("@", "(sep=|)@")
        assert not fastrec.evaluate([[1, 2]], None, separated, items=shop).warnings
    shop = {1: {"category": "a, b"}, 2: {"category": "a, c"}, 3: {"category": "c"}}
    with pytest.warns(fastrec.FastrecWarning, match=r"2 of 3 .* hold ', ', .*: if it separates categories, pass lists"):
        fastrec.evaluate([[1, 2]], None, "category_entropy@2", items=shop)
    assert parse("category_entropy(sep='|')@2").text == parse('category_entropy(sep="|")@2').text
    assert parse("category_entropy(sep='|')@2").text == "category_entropy(sep=|)@2"


def test_a_popularity_in_the_table_and_in_the_history() -> None:
    shop = {1: {"popularity": 3}, 2: {"popularity": 1}}
    with pytest.warns(fastrec.FastrecWarning, match="popularity is the column 'popularity' of items, not a count of"):
        fastrec.evaluate([[1, 2]], None, "popularity@2", items=shop, history=[[2]])
    assert not fastrec.evaluate([[1, 2]], None, "popularity(column=popularity)@2", items=shop, history=[[2]]).warnings


def test_sides_of_other_users_or_items() -> None:
    def frame(users: list[int], items: list[int]) -> pd.DataFrame:
        return pd.DataFrame({"user_id": users, "item_id": items, "rank": 1})

    lists, truth = frame([1, 2], [5, 6]), frame([1, 2], [5, 6])
    other = frame([8, 9], [5, 6])
    for given in ({"history": other}, {"reference": other}, {"exclude": other}):
        (name,) = given
        metrics = {"history": "repeat_ratio@1", "reference": "rbo@1"}.get(name, "recall@1")
        with pytest.warns(fastrec.FastrecWarning, match=f"^no user of {name} has a list: do the user ids match"):
            fastrec.evaluate(lists, truth, metrics, **given)
    assert not fastrec.evaluate(lists, truth, "recall@1", exclude=other[:0]).warnings
    assert not fastrec.evaluate({1: [5]}, {1: [5]}, "recall@1", exclude={8: []}).warnings
    assert not fastrec.evaluate([[5]], [[5]], "recall@1", exclude=[[]]).warnings
    with pytest.warns(fastrec.FastrecWarning, match="no item of the lists has a popularity: do the item ids match"):
        fastrec.evaluate(lists, None, "novelty@1", history=frame([1, 2], [70, 80]))
