"""Metrics of clicks weighted by inverse propensity: where propensities come from, laws, and what the report says."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastrec
from fastrec.items.propensities import exact_sums
from support import item_cases, item_oracle
from support.item_calls import evaluate
from support.item_cases import CLICKS

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

RECS = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
TRUTH = [[5], [3, 6], [3], []]
PROPENSITIES = [0.5, 0.8, 0.2, 0.8]  # of the rows of the truth
METRICS = ["ips@2", "snips(of=dcg)@2", "ips(of=rbp, clip=0.3)"]
WANTED = dict(fastrec.evaluate(CLICKS.lists, CLICKS.truth, METRICS, items=CLICKS.items))


# Where propensities come from

FLAT = np.array([5, 3, 6, 3]), np.array([0, 1, 3, 4, 4])
OF_ROWS = {
    "list": PROPENSITIES,
    "array": np.array(PROPENSITIES),
    "float32": np.array(PROPENSITIES, np.float32),
    "arrow": pa.array(PROPENSITIES),
    "rows": (*FLAT, PROPENSITIES),
    "dicts": [{5: 0.5}, {6: 0.2, 3: 0.8}, {3: 0.8, 9: 7.0}, {}],
}


@pytest.mark.parametrize("form", OF_ROWS)
def test_a_number_per_row_of_the_truth(form: str) -> None:
    found = fastrec.evaluate(RECS, TRUTH, METRICS, logged=OF_ROWS[form])
    assert dict(found) == pytest.approx(WANTED, rel=1e-6 if form == "float32" else 0, abs=0)


def test_numbers_are_those_of_the_truth_in_its_form() -> None:
    for truth in (FLAT, (*FLAT, [2.0, 1.0, 3.0, 1.0]), pa.array(TRUTH), [{5: 1.0}, {3: 1.0, 6: 1.0}, {3: 1.0}, {}]):
        assert dict(fastrec.evaluate(RECS, truth, METRICS, logged=PROPENSITIES)) == WANTED


def test_dicts_match_by_user() -> None:
    logged = {"u3": {3: 0.8}, "u2": {6: 0.2, 3: 0.8}, "u1": {5: 0.5}, "other": {1: 0.5}}
    assert dict(fastrec.evaluate(CLICKS.lists, CLICKS.truth, METRICS, logged=logged)) == WANTED


def frames(kind: str) -> tuple[Any, Any]:
    recs = pd.DataFrame([(u, i, r) for u, row in enumerate(RECS) for r, i in enumerate(row, 1)])
    recs.columns = ["user_id", "item_id", "rank"]
    truth = pd.DataFrame({"user_id": [1, 0, 2, 1], "item_id": [6, 5, 3, 3], "propensity": [0.2, 0.5, 0.8, 0.8]})
    truth["logged_rank"] = [3, 2, 1, 1]
    if kind == "pandas":
        return recs, truth
    if kind == "polars":
        return pl.from_pandas(recs), pl.from_pandas(truth)
    return pa.Table.from_pandas(recs), pa.Table.from_pandas(truth)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_of_the_truth(kind: str) -> None:
    recs, truth = frames(kind)
    assert dict(fastrec.evaluate(recs, truth, METRICS, logged="truth")) == WANTED
    assert dict(fastrec.evaluate(recs, truth, METRICS, logged=truth)) == WANTED
    curve = [0.8, 0.5, 0.2]
    ranked = fastrec.evaluate(recs, truth, METRICS, logged="truth", logged_rank="logged_rank", examination=curve)
    assert dict(ranked) == WANTED


def test_a_stream_that_can_be_read_once() -> None:
    recs, truth = frames("arrow")
    assert dict(fastrec.evaluate(recs, truth.to_reader(), METRICS, logged="truth")) == WANTED


def test_named_columns_and_columns_of_lists() -> None:
    recs, truth = frames("pandas")
    renamed = truth.rename(columns={"propensity": "p"}).drop(columns="logged_rank")
    assert dict(fastrec.evaluate(recs, truth, METRICS, logged=renamed, propensity="p")) == WANTED
    listed = truth.groupby("user_id").agg(list).reset_index()
    wide = pl.from_pandas(recs).group_by("user_id", maintain_order=True).agg("item_id")
    assert dict(fastrec.evaluate(wide, pl.from_pandas(listed), METRICS, logged="truth")) == WANTED


def test_ranks_and_the_curve_of_examination() -> None:
    for curve in ([0.8, 0.5, 0.2], np.array([0.8, 0.5, 0.2]), (0.8, 0.5, 0.2, math.nan)):
        assert dict(fastrec.evaluate(RECS, TRUTH, METRICS, logged=[2, 1, 3, 1], examination=curve)) == WANTED


def test_numbers_alone_need_rows_in_order() -> None:
    sets = [{5}, {3, 6}, {3}, set()]
    series = pd.Series(sets)
    for truth in (sets, list(map(frozenset, sets)), series, nw.from_native(series, series_only=True)):
        with pytest.raises(fastrec.InputTypeError, match=r"truth\[1\] is a set, which has no order .* of logged"):
            fastrec.evaluate(RECS, truth, METRICS, logged=PROPENSITIES)
    small = [{5}, {6}, {3}, set()]
    found, wanted = (
        fastrec.evaluate(RECS, truth, METRICS, logged=[0.5, 0.2, 0.8]) for truth in (small, [*map(list, small)])
    )
    assert dict(found) == dict(wanted)
    assert dict(fastrec.evaluate(RECS, sets, METRICS, logged=OF_ROWS["dicts"])) == WANTED


def test_the_curve_of_position_bias() -> None:
    clicks, ranks = [1] * 8 + [1] * 5 + [0] * 3 + [1] * 2 + [0] * 6, [1] * 8 + [2] * 8 + [3] * 8
    found = fastrec.position_bias(clicks, ranks, [7] * 24, ["a"] * 24)
    assert found.curve.tolist() == [1.0, 0.625, 0.25]
    logged = [2, 1, 3, 1]
    taken = fastrec.evaluate(RECS, TRUTH, METRICS, logged=logged, examination=found.curve)
    assert dict(taken) == dict(fastrec.evaluate(RECS, TRUTH, METRICS, logged=[0.625, 1.0, 0.25, 1.0]))


def test_what_precedes() -> None:
    """`logged` precedes the table of items, unless a metric names a column of it."""
    shop = {item: {"propensity": 1.0, "p": p} for item, p in item_cases.PROPENSITIES.items()}
    found = fastrec.evaluate(RECS, TRUTH, ["ips@2", "ips(column=propensity)@2"], items=shop, logged=PROPENSITIES)
    assert found["ips@2"] == WANTED["ips@2"] and found["ips(column=propensity)@2"] == 2.5 / 3
    assert fastrec.evaluate(RECS, TRUTH, "ips(column=p)@2", items=shop)["ips(column=p)@2"] == WANTED["ips@2"]


def test_propensities_of_popularity() -> None:
    found = fastrec.popularity_propensity(CLICKS.history, power=0.5)
    assert found["item_id"].tolist() == [1, 2, 3, 4]
    assert found["propensity"].tolist() == [1.0, math.sqrt(0.5), 0.5, 0.5]
    floored = fastrec.popularity_propensity(CLICKS.history, power=1.0, floor=0.3, items=[6, 5, 4])
    assert floored["item_id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert floored["propensity"].tolist() == [1.0, 0.5, 0.3, 0.3, 0.3, 0.3]
    assert fastrec.evaluate(RECS, TRUTH, "ips@2", items=floored)["ips@2"] == pytest.approx((10 / 3 * 2.5) / 3)
    repeated = [["a", "a", "b"], ["a"], ["b", "c"]]
    assert fastrec.popularity_propensity(repeated, power=1.0)["propensity"].tolist() == [1.0, 1.0, 0.5]
    rows = fastrec.popularity_propensity(repeated, power=1.0, counts="rows")
    assert rows["propensity"].tolist() == [1.0, 2 / 3, 1 / 3] and rows["item_id"].tolist() == ["a", "b", "c"]
    frame = pl.DataFrame({"u": [1, 2, 2], "i": ["x", "x", "y"]})
    assert fastrec.popularity_propensity(frame, user="u", item="i", power=2)["propensity"].tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"power": -1}, "power must be from 0 to 100, found -1"),
        ({"power": "x"}, "power must be a number, found 'x'"),
        ({"floor": 2}, "floor must be from 0 to 1, found 2"),
        ({"counts": "clicks"}, "counts must be one of users, rows; found 'clicks'"),
        ({"items": "abc"}, "items must be ids of items, found 'abc'"),
        ({"items": ["x"]}, "item ids must be of one type on all sides, found history: integers, items: strings"),
        ({"items": [1, 9, 8]}, "floor must be above 0: no user of the history has 2 of the items, such as 8"),
        ({"history": [[], []]}, "history has no rows, so no item has a popularity"),
    ],
)
def test_wrong_popularity(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(fastrec.FastrecError, match=message):
        fastrec.popularity_propensity(**{"history": [[1, 2], [1]], **wrong})


# Laws


def random_clicks(seed: int, n_users: int = 40) -> dict[str, Any]:
    draw = random.Random(seed)
    recs = [draw.sample(range(30), draw.choice([0, 3, 8])) for _ in range(n_users)]
    truth = [draw.sample(range(30), draw.choice([0, 1, 3, 25])) for _ in range(n_users)]
    logged = [{item: 0.001 + 0.999 * draw.random() for item in row} for row in truth]
    return {"recs": recs, "truth": truth, "logged": logged}


OF = ("recall", "precision", "dcg", "arhr", "rbp")


@pytest.mark.parametrize("of", OF)
def test_without_bias_it_is_the_metric(of: str) -> None:
    call = random_clicks(1) | {"logged": [1.0] * sum(map(len, random_clicks(1)["truth"]))}
    for k in (None, 1, 5):
        cut = "" if k is None else f"@{k}"
        found = fastrec.evaluate(**call, metrics=[f"ips(of={of}){cut}", f"{of}{cut}"], per_user=True)
        ours, plain = found.per_user.values()
        np.testing.assert_allclose(ours, plain, rtol=1e-14)
        assert found.data["effective_sample_size"] == found.data["truth_rows"]
        assert found.data["largest_weight_share"] == 1 / found.data["truth_rows"]


@pytest.mark.parametrize("of", OF)
def test_a_common_factor(of: str) -> None:
    """It divides ips and leaves snips; a power of two does so to the last bit."""
    call = random_clicks(2)
    eighth = [{item: p / 8 for item, p in row.items()} for row in call["logged"]]
    more = [{item: p * 8 for item, p in row.items()} for row in call["logged"]]
    metrics = [f"ips(of={of})@5", f"snips(of={of})@5"]
    plain, scaled = (fastrec.evaluate(**call | {"logged": side}, metrics=metrics) for side in (call["logged"], eighth))
    assert scaled[metrics[0]] == 8 * plain[metrics[0]] and scaled[metrics[1]] == plain[metrics[1]]
    assert fastrec.evaluate(**call | {"logged": more}, metrics=metrics[1])[metrics[1]] == plain[metrics[1]]
    for name in ("effective_sample_size", "largest_weight_share"):
        assert scaled.data[name] == plain.data[name]


def test_snips_stays_in_its_range_and_ips_is_its_numerator() -> None:
    call = random_clicks(3)
    found = fastrec.evaluate(**call, metrics=["ips(of=dcg)@5", "snips(of=dcg)@5"], per_user=True)
    ours, shares = (values[~np.isnan(values)] for values in found.per_user.values())
    totals = [sum(1 / p for p in sorted(row.values(), reverse=True)) for row in call["logged"] if row]
    np.testing.assert_allclose(ours, shares * totals, rtol=1e-13)
    assert shares.min() >= 0 and shares.max() <= 1


def test_the_order_of_the_truth_leaves_the_bits() -> None:
    call = random_clicks(4)
    metrics = ["ips(of=dcg)@5", "snips(of=dcg)@5", "snips(of=rbp, clip=0.01)"]
    moved = call | {
        "truth": [row[::-1] for row in call["truth"]],
        "logged": [dict(reversed(row.items())) for row in call["logged"]],
    }
    one, other = (fastrec.evaluate(**side, metrics=metrics) for side in (call, moved))
    assert one.estimates == other.estimates and one.data == other.data


def test_ips_is_right_on_average() -> None:
    """Clicks that users see with their propensity estimate the metric of all clicks that they would make."""
    draw = np.random.default_rng(5)
    wanted, lists = draw.permuted(np.tile(np.arange(20), (4000, 1)), axis=1)[:, :4], np.tile(np.arange(5), (4000, 1))
    chance = np.linspace(1.0, 0.1, 20)
    seen = draw.random(wanted.shape) < chance[wanted]
    truth = [row[own].tolist() for row, own in zip(wanted, seen, strict=True)]
    logged = [dict(zip(row, chance[row].tolist(), strict=True)) for row in truth]
    naive, weighted = "dcg@5", "ips(of=dcg)@5"
    found = fastrec.evaluate(lists, truth, [naive, weighted], logged=logged, no_truth="zero")
    ideal = fastrec.evaluate(lists, wanted, naive)[naive]
    low, high = found.interval(weighted, 0.999)
    assert low < ideal < high and found.interval(naive, 0.999)[1] < ideal


def test_values_of_scores_with_an_order() -> None:
    recs = (np.array([5, 4, 2]), np.array([0, 3]), np.array([0.5, 0.7, 0.1]))
    assert fastrec.evaluate(recs, [[5]], "ips@1", logged=[0.5])["ips@1"] == 0
    tied = (*recs[:2], np.array([0.5, 0.5, 0.1]))
    with pytest.raises(fastrec.InputError, match="tied scores"):
        fastrec.evaluate(tied, [[5]], "ips@1", logged=[0.5])
    assert fastrec.evaluate(tied, [[5]], "ips@1", logged=[0.5], ties="input")["ips@1"] == 2


@pytest.mark.parametrize("n", [3, 16, 17, 200])
def test_long_truths(n: int) -> None:
    truth = random.Random(n).sample(range(1000), n)
    recs = [7, *range(900, 1000), *(item for item in truth if item < 900 and item != 7)]
    logged = [1 / (1 + item % 5) for item in truth]
    found = fastrec.evaluate([recs], [truth], ["ips@50", "ips", "snips(of=arhr)"], logged=logged)
    weights = {item: 1 + item % 5 for item in truth}
    hits = [(rank, weights[item]) for rank, item in enumerate(recs, 1) if item in weights]
    assert found["ips@50"] == pytest.approx(sum(w for rank, w in hits if rank <= 50) / n)
    assert found["ips"] == pytest.approx(sum(w for _, w in hits) / n)
    assert found["snips(of=arhr)"] == pytest.approx(sum(w / rank for rank, w in hits) / sum(weights.values()))


# What the report says


def test_data_of_the_worked_example() -> None:
    assert (
        evaluate(CLICKS, "snips@2").data.items()
        >= {name: pytest.approx(value) for name, value in item_cases.CLICKS_DATA.items()}.items()
    )


def test_data_of_several_clips_and_conditions() -> None:
    truth = [{5: 2.0}, {3: 1.0, 6: 2.0}, {3: 2.0}, {}]
    metrics = ["ips@2", "snips(of=dcg)@1", "snips(clip=0.5)@2"]
    data = fastrec.evaluate(RECS, truth, metrics, logged=PROPENSITIES).data
    assert data["effective_sample_size(clip=0)"] == pytest.approx(item_cases.CLICKS_DATA["effective_sample_size"])
    assert data["clipped_rows(clip=0)"] == 0 and data["clipped_rows(clip=0.5)"] == 1
    assert data["effective_sample_size(clip=0.5)"] == pytest.approx(6.5**2 / (8 + 2 * 1.5625))
    data = fastrec.evaluate(RECS, truth, ["ips@2", "ips(min_gain=2)@2"], logged=PROPENSITIES).data
    assert data["effective_sample_size(min_gain=2)"] == pytest.approx(8.25**2 / (4 + 25 + 1.5625))
    shop = {item: {"a": p, "propensity": 1.0} for item, p in item_cases.PROPENSITIES.items()}
    data = fastrec.evaluate(RECS, TRUTH, ["ips@2", "ips(column=a)@2"], items=shop).data
    assert data["effective_sample_size(column=propensity)"] == 4
    assert data["effective_sample_size(column=a)"] == pytest.approx(item_cases.CLICKS_DATA["effective_sample_size"])


@pytest.mark.parametrize("seed", range(20))
def test_data_are_those_of_the_oracle(seed: int) -> None:
    call = random_clicks(seed, 15)
    found = fastrec.evaluate(**call, metrics="snips(clip=0.2)@3").data
    sides = {name: dict(enumerate(side)) for name, side in call.items()}
    truth = {user: dict.fromkeys(row, 1.0) for user, row in sides["truth"].items()}
    wanted = item_oracle.weights_over_all(
        item_oracle.Shop(sides["recs"], truth=truth, logged=sides["logged"]), clip=0.2
    )
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-14, nan_ok=True)


def test_no_click_has_no_sample() -> None:
    found = fastrec.evaluate([[1]], [[]], "ips@1", logged=np.zeros(0))
    assert math.isnan(found.data["effective_sample_size"]) and found.data["clipped_rows"] == 0
    assert math.isnan(found["ips@1"])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_batches_merge_to_the_same_bits(n_threads: int, tmp_path: Path) -> None:
    call, metrics = random_clicks(6, 300), ["ips@3", "snips(clip=0.2, of=dcg)@5"]
    whole = fastrec.evaluate(**call, metrics=metrics, n_threads=n_threads)
    parts = []
    for nth in range(3):
        evaluator = fastrec.Evaluator(metrics)
        sides = {name: side[nth::3] for name, side in call.items()}
        evaluator.update(sides["recs"], sides["truth"], logged=sides["logged"])
        parts.append(fastrec.Evaluator.from_bytes(evaluator.to_bytes()))
    for order in itertools.permutations(range(3)):
        merged = fastrec.Evaluator(metrics)
        for nth in order:
            merged.merge(parts[nth])
        found = merged.result()
        assert found.estimates == whole.estimates and found.data == whole.data
    whole.save(tmp_path / "report.fastrec")
    assert fastrec.load(tmp_path / "report.fastrec").data == whole.data


def test_merging_needs_the_same_curve() -> None:
    def evaluator(curve: list[float]) -> fastrec.Evaluator:
        found = fastrec.Evaluator("snips@2", examination=curve)
        found.update(RECS, TRUTH, logged=[1, 2, 1, 2])
        return found

    assert evaluator([1.0, 0.5]).merge(evaluator([1.0, 0.5])).result().users["total"] == 8
    with pytest.raises(fastrec.InputError, match="merge needs the same examination on both sides"):
        evaluator([1.0, 0.5]).merge(evaluator([1.0, 0.4]))


def test_exact_sums() -> None:
    draw = np.random.default_rng(0)
    values = np.ldexp(draw.random(5000), draw.integers(-330, 330, 5000))
    wanted = sum(map(Fraction, values.tolist()), Fraction(0))
    squares = sum(Fraction(value * value) for value in values.tolist())
    assert [Fraction(total, 1 << 1074) for total in exact_sums(values)] == [wanted, squares]
    parts = exact_sums(values[:77]), exact_sums(values[77:])
    assert exact_sums(values[::-1]) == tuple(map(sum, zip(*parts, strict=True)))
    assert exact_sums(np.array([5e-324, 0.0])) == (1, 0) and exact_sums(np.zeros(0)) == (0, 0)


def test_printed_and_drawn() -> None:
    page = (
        fastrec.evaluate(RECS, TRUTH, ["ips@2", "ips(clip=0.5)@2"], logged=PROPENSITIES).to_html().replace("<wbr>", "")
    )
    for words in ("effective sample size of the weighted clicks (clip=0.5)", "2.8093", "52.6 %"):
        assert words in page


# Segments, comparison, explanation


def test_segments_of_items_and_comparison() -> None:
    found = fastrec.evaluate_by_items(RECS, TRUTH, {5: "a", 3: "b", 6: "b"}, "ips@2", logged=PROPENSITIES)
    assert found["a"]["ips@2"] == 2 and found["b"]["ips@2"] == (1.25 / 2 + 1.25) / 2
    assert found["a"].data["effective_sample_size"] == 1
    reports = {
        name: fastrec.evaluate(lists, TRUTH, "snips@2", logged=PROPENSITIES, per_user=True)
        for name, lists in (("a", RECS), ("b", [row[::-1] for row in RECS]))
    }
    (row,) = fastrec.compare(reports).rows
    assert row.difference == pytest.approx(reports["b"]["snips@2"] - reports["a"]["snips@2"])


def test_explain_takes_logged() -> None:
    assert "ips@2" in repr(fastrec.explain("ips@2", RECS, TRUTH, logged=PROPENSITIES))


# Bad input

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, r"ips@2 needs items=\.\.\. or logged=\.\.\."),
    "zero": ({"logged": [0.5, 0.8, 0, 1]}, "propensity of item 6 in the truth of user 1 must be from 1e-100 to 1"),
    "negative": ({"logged": [0.5, -0.8, 1, 1]}, "item 3 in the truth of user 1 must be .*, found -0.8"),
    "tiny": ({"logged": [0.5, 1e-101, 1, 1]}, "must be from 1e-100 to 1, found 1e-101"),
    "just above": ({"logged": [0.5, 0.8, 1 + 2**-52, 1]}, "from 1e-100 to 1, found 1.0000000000000002; snips takes"),
    "above": ({"logged": [0.5, 0.8, 2, 1]}, "found 2; snips takes larger ones"),
    "infinite": ({"logged": [0.5, 0.8, math.inf, 1]}, "found inf"),
    "nan": ({"logged": [0.5, 0.8, math.nan, 1]}, "logged must not be NaN, found NaN at position 2"),
    "few": ({"logged": [0.5, 0.8]}, r"logged must have one number per item, 4; found shape \(2,\)"),
    "words": ({"logged": np.array(["a"] * 4)}, "logged must be numbers of at most 64 bits"),
    "a word": ({"logged": "items"}, "logged must be data, found a str"),
    "shared": ({"logged": "truth"}, "logged='truth' needs a truth with a column of propensities, a data frame"),
    "no numbers": ({"logged": TRUTH}, r"logged has no numbers, only items: name .* or in Python pass \{user: "),
    "ranks as items": ({"logged": [[1, 2], [1], [1], []]}, "logged has no numbers, only items"),
    "missing row": ({"logged": [{5: 0.5}, {3: 0.8}, {3: 1.0}, {}]}, "logged has no propensity of item 6 in the truth"),
    "two numbers": (
        {"logged": (np.array([5, 3, 6, 6, 3]), np.array([0, 1, 4, 5, 5]), [0.5, 0.8, 0.2, 0.3, 1])},
        "logged of user 1: item 6 has the numbers 0.2 and 0.3",
    ),
    "no column": ({"items": {5: {"p": 1.0}}}, "items has no column 'propensity': add one, or pass logged="),
    "other column": ({"items": {5: {"propensity": 0.5}}}, "items column 'propensity' has no propensity of item 3 in"),
    "empty cell": (
        {"items": {5: {"propensity": 0.5}, 3: {"propensity": None}, 6: {"propensity": 1}}},
        "items column 'propensity' has no propensity of item 3 in the truth of user 1; popularity_propensity.* adds",
    ),
    "rank 0": ({"logged": [0, 1, 1, 1], "examination": [1, 1]}, "rank of item 5 in the truth of user 0 must be an int"),
    "half": ({"logged": [1.5, 1, 1, 1], "examination": [1, 1]}, "must be an integer from 1 to 2, .*; found 1.5"),
    "no rank": ({"logged": [{5: 1}, {3: 1}, {3: 1}, {}], "examination": [1.0]}, "logged has no rank of item 6 in the"),
    "deep": ({"logged": [3, 1, 1, 1], "examination": [1, 1]}, "must be an integer from 1 to 2, .*; found 3"),
    "unknown": ({"logged": [2, 1, 1, 1], "examination": [1, math.nan]}, "examination is NaN at rank 2, which is that"),
    "dead": ({"logged": [2, 1, 1, 1], "examination": [1, 0]}, "examination: the propensity of item 5 .* found 0"),
    "no curve": ({"logged": [1] * 4, "examination": []}, "examination must be one number for each of the ranks"),
    "no ranks": (
        {"items": {item: {"propensity": 0.5} for item in (3, 5, 6)}, "examination": [1.0]},
        r"examination needs logged=\.\.\., the ranks of clicks",
    ),
    "a result": (
        {"logged": [1] * 4, "examination": fastrec.position_bias([1], [1], [1], [1])},
        "examination must be numbers of ranks 1, 2, ..., found a PositionBias: pass its curve",
    ),
    "a string": ({"logged": [1] * 4, "examination": "1,2"}, "examination must be numbers of ranks 1, 2, "),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(fastrec.FastrecError, match=message):
        fastrec.evaluate(RECS, TRUTH, "ips@2", **call)


def test_a_batch_without_clicks() -> None:
    """It was refused: "logged has no numbers, only items"."""
    for last in ({}, {"b": {}}):
        evaluator = fastrec.Evaluator("ips@1")
        evaluator.update({"a": [1]}, {"a": [1]}, logged={"a": {1: 0.5}})
        evaluator.update({"b": [2]}, {}, logged=last)
        assert evaluator.result().users == {"total": 2, "evaluated": 1, "no_truth": 1, "no_recs": 0}
    evaluator.update({}, {}, logged={})
    with pytest.raises(fastrec.InputError, match="logged has no propensity of item 1 in the truth of user 'a'"):
        fastrec.evaluate({"a": [1]}, {"a": [1]}, "ips@1", logged={})


def test_columns_of_the_other_kind() -> None:
    recs, truth = frames("pandas")
    both = {"logged": "truth", "examination": [1.0, 0.5, 0.2]}
    with pytest.raises(fastrec.InputError, match="with examination logged must have a column of ranks, found that of"):
        fastrec.evaluate(recs, truth, "snips@2", **both)
    ranks = truth.drop(columns="propensity")
    with pytest.raises(fastrec.InputError, match="without examination logged must have a column of propensities"):
        fastrec.evaluate(recs, ranks, "snips@2", logged="truth")
    assert fastrec.evaluate(recs, ranks, "snips@2", **both)["snips@2"] > 0
    bare = ranks.drop(columns="logged_rank")
    with pytest.raises(fastrec.InputError, match="logged has no numbers"):
        fastrec.evaluate(recs, bare, "snips@2", logged="truth")
    with pytest.raises(fastrec.InputError, match="logged='truth' needs truth="):
        fastrec.evaluate(recs, None, "popularity@2", logged="truth", history=truth)


@pytest.mark.parametrize("of", ["hit_rate", "mrr", "map", "ndcg"])
def test_metrics_that_are_no_sums_are_refused_by_name(of: str) -> None:
    with pytest.raises(fastrec.MetricError, match=f"of={of} must be recall or .*: {of} is not a sum over relevant"):
        fastrec.evaluate(RECS, TRUTH, f"ips(of={of})@2", logged=PROPENSITIES)


def test_rows_that_are_not_relevant_need_no_propensity() -> None:
    truth = [{5: 1.0}, {3: 1.0, 6: 0.0}, {3: 1.0}, {}]
    shop = {5: {"propensity": 0.5}, 3: {"propensity": 1.0}}
    assert fastrec.evaluate(RECS, truth, "ips@2", items=shop)["ips@2"] == pytest.approx(4 / 3)
    with pytest.raises(fastrec.InputError, match="no propensity of item 6"):
        fastrec.evaluate(RECS, truth, "ips@2", items=shop, min_gain="any")


def test_duplicates_in_the_truth() -> None:
    twice = (np.array([5, 3, 6, 6, 3]), np.array([0, 1, 4, 5, 5]))
    logged = [0.5, 0.8, 0.2, 0.2, 0.8]
    with pytest.raises(fastrec.InputError, match="truth of user 1: item 6 appears twice"):
        fastrec.evaluate(RECS, twice, "ips@2", logged=logged)
    found = fastrec.evaluate(RECS, twice, METRICS, logged=logged, duplicates="first")
    assert dict(found) == WANTED and found.data["duplicates_in_truth"] == 1
    copied = [[4, 5, 5, 2], *RECS[1:]]
    assert fastrec.evaluate(copied, TRUTH, "ips@2", logged=PROPENSITIES, duplicates="miss")["ips@2"] == WANTED["ips@2"]
    with pytest.raises(fastrec.InputError, match="recs of user 0: item 5 appears twice"):
        fastrec.evaluate(copied, TRUTH, "ips@3", logged=PROPENSITIES)


def test_one_user_and_weights_of_users() -> None:
    found = fastrec.evaluate([[1, 2]], [[2]], ["ips@2", "snips@2"], logged=[0.25])
    assert dict(found) == {"ips@2": 4.0, "snips@2": 1.0} and math.isnan(found.estimates["ips@2"].std_error)
    weighted = fastrec.evaluate(RECS, TRUTH, "ips@2", logged=PROPENSITIES, user_weight=[1, 2, 0, 1])
    assert weighted["ips@2"] == pytest.approx((2 + 2 * 0.625) / 3)
    assert weighted.data["effective_sample_size"] == pytest.approx(item_cases.CLICKS_DATA["effective_sample_size"])


def test_the_oracle_needs_a_propensity_of_every_click() -> None:
    assert CLICKS.items is not None
    lacking = dataclasses.replace(CLICKS, items={**CLICKS.items, 3: {}})
    with pytest.raises(ValueError, match="no propensity of 3"):
        item_oracle.evaluate(lacking, "ips", k=2)
