"""The oracle of items, histories and other lists: the worked example, closed forms, edges, standard errors."""

import dataclasses
import math
import random
import statistics
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from support import item_cases, item_oracle, worked_cases
from support.item_cases import BASE, CLICKS, RANKINGS, SHOP
from support.item_oracle import Result, Shop

NAN = math.nan
SEEDS = range(40)


def run(text: str, shop: Shop = SHOP, **call: Any) -> Result:
    metric, options, k = worked_cases.parse(text)
    return item_oracle.evaluate(shop, metric, k=k, options=options, **call)


def shop_of(*lists: list[Any], **sides: Any) -> Shop:
    """A shop with these lists for users 0, 1, ..."""
    return Shop(lists=dict(enumerate(lists)), **sides)


def values(text: str, shop: Shop, **call: Any) -> list[float | None]:
    return list(run(text, shop, **call).per_user.values())


# The worked example


@pytest.mark.parametrize("text", item_cases.VALUES)
def test_value(text: str) -> None:
    assert run(text).value == pytest.approx(item_cases.VALUES[text], rel=1e-15, abs=0)


@pytest.mark.parametrize("text", item_cases.CLICKS_VALUES)
def test_value_of_weighted_clicks(text: str) -> None:
    assert run(text, CLICKS).value == pytest.approx(item_cases.CLICKS_VALUES[text], rel=1e-15, abs=0)


def test_weights_over_all_clicks() -> None:
    assert item_oracle.weights_over_all(CLICKS) == pytest.approx(item_cases.CLICKS_DATA)


@pytest.mark.parametrize(
    ("shop", "table"),
    [
        (SHOP, item_cases.ROUNDED),
        (BASE, item_cases.BASE_ROUNDED),
        (RANKINGS, item_cases.RANKINGS_ROUNDED),
    ],
    ids=["shop", "base", "rankings"],
)
def test_rounded_values(shop: Shop, table: dict[str, float]) -> None:
    assert {text: run(text, shop).value for text in table} == pytest.approx(table, rel=0, abs=5.1e-11)


@pytest.mark.parametrize("text", item_cases.USERS)
def test_values_of_users(text: str) -> None:
    for found, expected in zip(values(text, SHOP), item_cases.USERS[text], strict=True):
        assert found == (expected if expected is None else pytest.approx(expected, rel=1e-15, abs=1e-16))


def test_rounded_values_of_users() -> None:
    for text, expected in item_cases.USERS_ROUNDED.items():
        assert values(text, SHOP) == pytest.approx(expected, rel=0, abs=5.1e-11)


@pytest.mark.parametrize("text", item_cases.FIRST_USER)
def test_value_of_the_first_user(text: str) -> None:
    assert run(text).per_user["u1"] == pytest.approx(item_cases.FIRST_USER[text], rel=1e-15, abs=0)


def test_exposure_shift() -> None:
    """The Jensen-Shannon divergence of the exposures of two sets of lists, for the drift between them."""
    before, after = (item_oracle.exposure(item_oracle.listed(shop, 2).values()) for shop in (BASE, SHOP))
    shares = [{item: c / sum(counts.values()) for item, c in counts.items()} for counts in (before, after)]
    assert item_oracle.divergence_of(*shares, "js", 0, 2) == pytest.approx(0.6284905946, rel=0, abs=5.1e-11)


def test_default_segments_of_the_example() -> None:
    """Items 3 and 4 begin at 6 of 8 rows, before 80 %: by popularity they are in the head, which the column denies."""
    assert item_oracle.head_and_tail(item_oracle.popularity_table(SHOP, "rows")) == dict.fromkeys([1, 2, 3, 4], "head")
    bare = dataclasses.replace(SHOP, items=None, n_items=6)
    assert values("aplt@3", bare) == pytest.approx([1 / 3, 1 / 3, 0, 0])


def test_rates_of_segments() -> None:
    """Seen items are never among those that could have been shown; `no` leaves them among the shown ones."""
    one_seen = Shop(
        lists={1: ["a", "b", "c"]},
        history={1: ["a"]},
        items={item: {"segment": segment} for item, segment in zip("abcd", "xxyy", strict=True)},
    )
    # x: 1 of 1 and y: 1 of 2, then x: 2 of 1
    assert run("rsp", one_seen).value == pytest.approx(Fraction(1, 3))
    assert run("rsp(exclude_seen=no)", one_seen).value == pytest.approx(Fraction(3, 5))


def test_hits_of_segments() -> None:
    # head: no relevant item
    assert math.isnan(run("reo@3").value)
    more = dataclasses.replace(
        SHOP, truth={"u1": {5: 1.0, 2: 1.0}, "u2": {3: 1.0, 6: 1.0}, "u3": {3: 1.0}, "u4": {2: 1.0}}
    )
    # u1 has seen 2: head 1/1 and tail 3/4; with it head 2/2
    assert run("reo@3", more).value == pytest.approx((1 - 3 / 4) / (1 + 3 / 4))
    assert run("reo(exclude_seen=no)@3", more).value == pytest.approx((1 - 3 / 4) / (1 + 3 / 4))
    assert run("reo@1", more).value == pytest.approx((1 - 1 / 4) / (1 + 1 / 4))
    # the lists begin with 4, 3, 2, 2: head 1/2, since u1 does not show 2 at once
    assert run("reo(exclude_seen=no)@1", more).value == pytest.approx((1 / 2 - 1 / 4) / (1 / 2 + 1 / 4))


# Closed forms


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_catalogue_from_counts(seed: int, k: int) -> None:
    shop = dataclasses.replace(item_cases.random_shop(seed), items=None, n_items=15)
    lists = [items[:k] for items in shop.lists.values() if items]
    counts = Counter(item for items in lists for item in items)
    n_users, total = len(lists), counts.total()
    if n_users > 1:
        together = sum(c * (c - 1) for c in counts.values())
        assert run(f"personalization@{k}", shop).value == pytest.approx(1 - together / (k * n_users * (n_users - 1)))
        sums = {item: math.fsum(1 / math.sqrt(len(own)) for own in lists if item in own) for item in counts}
        cosines = math.fsum(s * s for s in sums.values()) - n_users
        assert run(f"personalization(overlap=cosine)@{k}", shop).value == pytest.approx(
            1 - cosines / (n_users * (n_users - 1))
        )
    if not total:
        assert all(math.isnan(run(f"{name}@{k}", shop).value) for name in ("gini", "shannon_entropy"))
        return
    of_all = [*counts.values(), *[0] * (15 - len(counts))]
    pairs = sum(abs(a - b) for a in of_all for b in of_all)
    assert run(f"gini@{k}", shop).value == pytest.approx(pairs / (2 * 15 * total), abs=1e-15)
    logs = math.fsum(c * math.log2(c) for c in counts.values())
    assert run(f"shannon_entropy@{k}", shop).value == pytest.approx(math.log2(total) - logs / total, abs=1e-14)


def test_cosine_from_the_sum_of_vectors() -> None:
    """A zero vector adds nothing to the length of the sum, so only the others are subtracted."""
    vectors = [[1.0, 2.0], [0.0, 0.0], [-1.0, 0.5], [3.0, 3.0]]
    shop = shop_of([0, 1, 2, 3], items={i: {"features": v} for i, v in enumerate(vectors)})
    units = [[x / math.hypot(*v) for x in v] for v in vectors if any(v)]
    square = math.fsum(math.fsum(column) ** 2 for column in zip(*units, strict=True))
    assert run("intra_list_diversity", shop).value == pytest.approx(1 - (square - 3) / (4 * 3))


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds(seed: int, k: int | None) -> None:
    shop = item_cases.random_shop(seed)
    cut = "" if k is None else f"@{k}"
    call: dict[str, Any] = {"no_features": "drop", "unseen": "zero"}
    shares = [
        *(f"rbo(form={form})" for form in ("ext", "min", "truncated")),
        *(f"overlap(denominator={denominator})" for denominator in ("union", "n_rec", "k", "min")),
        *(f"serendipity(expected={expected})" for expected in ("popular", "reference", "rank")),
        *("unexpectedness", "repeat_ratio", "category_coverage", "aplt", "user_coverage", "epc"),
        *("miscalibration(divergence=js)", "miscalibration(divergence=hellinger)"),
        *("intra_list_diversity(distance=jaccard)", "popularity(scale=percentile)", "popularity(scale=max)"),
    ]
    if all("segment" not in row for row in (shop.items or {}).values()):
        shares.remove("aplt")
    for text in shares:
        for value in values(text + cut, shop, **call):
            assert value is None or -1e-12 <= value <= 1 + 1e-12, (text, value)
    for value in values("miscalibration" + cut, shop, **call):
        assert value is None or -1e-12 <= value <= math.log2(100) + 1e-12


# Rank-biased overlap


def test_rank_biased_overlap_of_equal_lists() -> None:
    same = shop_of([1, 2, 3], reference={0: [1, 2, 3]})
    assert run("rbo@10", same).value == pytest.approx(1)
    # nothing is assumed: the depths to 10 are asked for, and the lists end at 3
    assert run("rbo(form=truncated, p=0.85)@10", same).value == pytest.approx(0.749, abs=5e-4)
    assert run("rbo(form=truncated, p=0.85)@3", same).value == pytest.approx(1)


def test_rank_biased_overlap_of_unequal_lists() -> None:
    """A list that is the beginning of the other agrees with all of it, as far as is known."""
    assert run("rbo", shop_of([1, 2], reference={0: [1, 2, 3, 4, 5]})).value == pytest.approx(1)
    one_way = run("rbo", shop_of([1, 2, 9], reference={0: [2, 1, 4, 9, 5]})).value
    assert run("rbo", shop_of([2, 1, 4, 9, 5], reference={0: [1, 2, 9]})).value == one_way


def test_least_overlap_is_the_limit_of_disagreeing_lists() -> None:
    """Lists that share nothing below the known depth come to the lower bound."""
    longer = shop_of([1, 2, 3, *range(100, 600)], reference={0: [2, 1, 4, *range(1000, 1500)]})
    assert run("rbo(form=ext)", longer).value == pytest.approx(run("rbo(form=min)@3", RANKINGS).value, abs=1e-12)


# Edges


def test_nothing_to_count() -> None:
    empty = shop_of([], [], history={5: [1]}, n_items=3)
    assert run("item_coverage", empty).value == 0
    for text in ("gini", "shannon_entropy", "rsp", "personalization(overlap=cosine)", "popularity", "novelty"):
        assert math.isnan(run(text, empty).value), text
    assert values("popularity", empty) == [None, None]
    assert values("popularity", empty, no_recs="zero") == [0, 0]
    assert math.isnan(run("personalization@1", shop_of([1], [])).value)


def test_cut_offs_that_must_be() -> None:
    for text in ("personalization", "user_coverage(min_items=k)"):
        with pytest.raises(ValueError, match="cut-off"):
            run(text)


def test_catalogue_that_is_too_small() -> None:
    lists = shop_of([1, 2], [3], n_items=2)
    for text in ("gini", "item_coverage", "shannon_entropy(normalize=n_items)"):
        with pytest.raises(ValueError, match="n_items"):
            run(text, lists)
        assert run(f"{text}@1", lists).value >= 0
    assert run("gini(zeros=exclude)", lists).value == 0
    with pytest.raises(ValueError, match="n_items or items"):
        run("gini", shop_of([1]))
    assert run("gini(correction=n_minus_1)", shop_of([1], n_items=1)).value == 0
    assert run("shannon_entropy(normalize=n_items)", shop_of([1], n_items=1)).value == 0


def test_users_of_user_coverage() -> None:
    shop = Shop(lists={1: [5], 2: [], 9: [5]}, truth={1: {}, 2: {}, 3: {}}, history={2: [], 4: [5]})
    assert run("user_coverage", shop).per_user == {1: 1, 2: 0, 9: 1, 3: 0}
    assert run("user_coverage", Shop(lists=shop.lists)).per_user == {1: 1, 2: 0, 9: 1}


def test_users_without_a_side() -> None:
    shop = Shop(
        lists={1: [5], 2: [5], 3: []},
        truth={1: {5: 1.0}, 3: {5: 1.0}, 4: {5: 0.0}},
        history={1: [5, 6], 2: [], 3: [5]},
        reference={1: [6], 3: [5]},
    )
    assert run("epc", shop).per_user == {1: 0, 2: None, 3: 0, 4: None}
    assert run("epc(relevance=none)", shop).per_user == {1: 0, 2: 0, 3: None, 4: None}
    assert run("overlap", shop).per_user == {1: 0, 2: None, 3: None, 4: None}
    assert run("overlap", shop, no_recs="zero").per_user == {1: 0, 2: None, 3: 0, 4: None}
    assert run("repeat_ratio", shop).per_user == {1: 1, 2: None, 3: None, 4: None}
    assert run("repeat_ratio", shop, no_history="zero").per_user == {1: 1, 2: 0, 3: None, 4: 0}
    assert run("serendipity", shop, no_truth="zero").per_user == {1: 0, 2: 0, 3: 0, 4: 0}
    with pytest.raises(ValueError, match="no history"):
        run("repeat_ratio", shop, no_history="error")


def test_repeated_rows_of_the_history() -> None:
    shop = Shop(lists={1: [7]}, history={1: [7, 7, 8], 2: [8]}, items={7: {"category": "x"}, 8: {"category": "y"}})
    assert [run(f"popularity(counts={counts})", shop).value for counts in ("users", "rows")] == [1, 2]
    assert run("popularity(scale=share, counts=rows)", shop).value == 0.5
    assert run("novelty", shop).value == 1
    assert run("novelty(share=rows)", shop).value == 1
    # a history of 2/3 x: p log p/q with q = (.99 + .01 * 2/3, .01 * 1/3)
    smoothed = [0.99 + 0.01 * 2 / 3, 0.01 / 3]
    expected = 2 / 3 * math.log2(2 / 3 / smoothed[0]) + 1 / 3 * math.log2(1 / 3 / smoothed[1])
    assert run("miscalibration", shop).value == pytest.approx(expected)
    # mean of 1/2, 1/2 and 2/2 in the history
    assert run("popularity_lift", shop).value == pytest.approx(0.5 / (2 / 3) - 1)


def test_unseen_items() -> None:
    shop = Shop(lists={1: [7, 9], 2: [9]}, history={1: [7, 8], 2: [8], 3: [8], 4: [8]})
    found = {
        text: values(text, shop)
        for text in (
            "popularity",
            "popularity(unseen=one)",
            "popularity(unseen=drop)",
            "popularity(unseen=drop, denominator=k)@4",
            "popularity(scale=percentile, unseen=one)",
            "popularity(scale=max, unseen=one)",
            "novelty(unseen=max)",
            "novelty(unseen=zero)",
            "novelty(unseen=drop)",
            "efd(relevance=none, discount=none)",
        )
    }
    assert found == {
        "popularity": [0.5, 0],
        "popularity(unseen=one)": [1, 1],
        "popularity(unseen=drop)": [1, None],
        "popularity(unseen=drop, denominator=k)@4": [0.25, None],
        "popularity(scale=percentile, unseen=one)": [0.5, 0.5],
        "popularity(scale=max, unseen=one)": [0.25, 0.25],
        "novelty(unseen=max)": [2, 2],
        "novelty(unseen=zero)": [1, 0],
        "novelty(unseen=drop)": [2, None],
        "efd(relevance=none, discount=none)": pytest.approx([math.log2(5), math.log2(5)]),
    }
    with pytest.raises(ValueError, match="history"):
        run("popularity(unseen=error)", shop)


def test_items_that_the_table_lacks() -> None:
    shop = Shop(lists={1: [7, 9]}, history={1: [7]}, items={7: {"category": "x"}})
    for text in ("popularity", "category_coverage", "popularity(unseen=error)"):
        with pytest.raises(ValueError, match="table"):
            run(text, shop)
    assert run("popularity(unseen=zero)", shop).value == 0.5
    with pytest.raises(ValueError, match="1 items have no features"):
        run("category_coverage", shop, unseen="zero")
    assert run("category_coverage(no_features=drop)", shop, unseen="zero").value == 1


def test_column_of_popularity() -> None:
    items = {7: {"popularity": 4, "sales": 1}, 8: {"popularity": 1}, 9: {"popularity": 0}}
    shop = Shop(lists={1: [7, 9]}, history={1: [9]}, items=items, n_users=8)
    assert run("popularity", shop).value == 2
    assert run("popularity(scale=share)", shop).value == 0.25
    assert run("popularity(scale=share, counts=rows)", shop).value == 0.4
    assert run("popularity(column=sales)", shop).value == 0.5
    with pytest.raises(ValueError, match="no column price"):
        run("popularity(column=price)", shop)
    with pytest.raises(ValueError, match="above 0"):
        run("popularity", Shop(lists={1: [7]}, items={7: {"popularity": 0}}, n_users=8))


def test_lists_without_pairs_or_features() -> None:
    items = {1: {"features": [0.0, 0.0]}, 2: {"features": [1.0, 0.0]}, 3: {}}
    shop = shop_of([1, 2], [2], [3, 2], [3], [], items=items)
    assert values("intra_list_diversity(no_features=drop)", shop) == [1, 0, 0, None, None]
    assert values("intra_list_diversity(no_features=drop, single=skip)", shop) == [1, None, None, None, None]
    with pytest.raises(ValueError, match="features"):
        run("intra_list_diversity", shop)


def test_serendipity_of_other_expectations() -> None:
    vectors = {1: [1.0, 0.0], 2: [0.0, 1.0], 3: [1.0, 1.0], 4: [0.0, 0.0]}
    shop = Shop(
        lists={"u": [2, 3, 4]},
        truth={"u": {2: 1.0, 4: 1.0}},
        history={"u": [1, 3]},
        items={item: {"features": vector} for item, vector in vectors.items()},
        reference={"u": [9, 2]},
    )
    assert run("serendipity(expected=reference)@3", shop).value == pytest.approx(1 / 3)
    # item 2: 1 - (0 + 1/sqrt 2) / 2, item 4: 1 - 0
    assert run("serendipity(expected=history)@3", shop).value == pytest.approx((2 - math.sqrt(0.125)) / 3)
    assert run("serendipity(expected=history)@1", shop).value == pytest.approx(1 - math.sqrt(0.125))
    # fewer items are known than k: all of them are expected
    assert run("serendipity@3", shop).value == pytest.approx(2 / 3)


@pytest.mark.parametrize("text", ["gini(zeros=all)", "rbo(form=max)", "epc(discount=log2_flat2)"])
def test_unknown_choice(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        run(text)


# Standard errors


@pytest.mark.parametrize("text", ["shannon_entropy@3", "gini@3", "gini(discount=log2, correction=n_minus_1)@3"])
def test_influence_is_a_derivative(text: str) -> None:
    """Another copy of a user among very many of each moves the value by this user's influence.

    No items of the lists are tied, since the Gini coefficient has no derivative there.
    """
    shop = shop_of([2, 3, 4], [2, 3], [2, 4, 3], [2, 5], n_items=6)
    metric, options, k = worked_cases.parse(text)
    influence = item_oracle.INFLUENCES[metric](shop, k, **options)
    assert math.fsum(influence) == pytest.approx(0, abs=1e-12)
    times = 200
    copies = {(user, i): items for user, items in shop.lists.items() for i in range(times)}
    for user, expected in zip(shop.lists, influence, strict=True):
        more = dataclasses.replace(shop, lists={**copies, (user, times): shop.lists[user]})
        moved = (run(text, more).value - run(text, shop).value) * (len(copies) + 1)
        assert moved == pytest.approx(expected, rel=0.01, abs=0.01)


@pytest.mark.parametrize("text", ["personalization@2", "personalization(overlap=cosine)@3"])
def test_error_from_pairs_is_that_of_the_jackknife(text: str) -> None:
    """Leaving users out one by one gives 2 sd(h) / sqrt(U) times (U - 1) / (U - 2)."""
    n = len(SHOP.lists)
    without = [
        run(text, dataclasses.replace(SHOP, lists={u: v for u, v in SHOP.lists.items() if u != user})).value
        for user in SHOP.lists
    ]
    jackknife = math.sqrt((n - 1) ** 2 / n * statistics.variance(without))
    assert run(text).std_error == pytest.approx(jackknife * (n - 2) / (n - 1))


def test_influence_by_counts() -> None:
    """h_u = sum over L of (c_i - 1) / (k (U - 1)), whatever the lengths of the lists."""
    lists = item_oracle.listed(SHOP, 3)
    counts = Counter(item for items in lists.values() for item in items)
    h = [sum(counts[item] - 1 for item in items) / (3 * 3) for items in lists.values()]
    assert item_oracle.personalization_influence(SHOP, 3) == pytest.approx([2 * value for value in h])


def test_error_of_a_ratio_of_means() -> None:
    """The delta method from covariances: var a - 2 R cov ab + R² var b, over n b²."""
    a = [v / 4 for v in (1, 2 / 3, 3 / 2, 2)]
    b = [7 / 12, 3 / 4, 5 / 8, 1]
    r = statistics.fmean(a) / statistics.fmean(b)
    residuals = statistics.variance([x - r * y for x, y in zip(a, b, strict=True)])
    expected = math.sqrt(residuals / 4) / statistics.fmean(b)
    assert run("popularity_lift@3").std_error == pytest.approx(expected)


@pytest.mark.parametrize("text", ["gini@5", "shannon_entropy@5", "personalization@5"])
def test_errors_of_random_logs(text: str) -> None:
    """Estimated errors have the size of the real deviation over 150 logs of 60 users, each 5 of 20 items."""
    rng = random.Random(5)
    results = []
    for _ in range(150):
        lists = [sorted(range(20), key=lambda i: rng.expovariate(1 / (i + 2)))[:5] for _ in range(60)]
        results.append(run(text, shop_of(*lists, n_items=20)))
    real = statistics.stdev(result.value for result in results)
    estimated = statistics.fmean(result.std_error for result in results if result.std_error is not None)
    assert estimated == pytest.approx(real, rel=0.15)


def test_no_error() -> None:
    assert run("item_coverage@3").std_error is None
    assert math.isnan(run("gini@3", shop_of([1], n_items=2)).std_error or 0)
    assert math.isnan(run("novelty", shop_of([1], history={0: [1]})).std_error or 0)


# Hostile shops


def test_every_metric_takes_hostile_shops() -> None:
    """A metric gives a value or refuses with a ValueError; every metric gives values for many shops."""
    given: Counter[str] = Counter()
    for seed in SEEDS:
        shop, rng = item_cases.random_shop(seed), random.Random(seed)
        texts = item_cases.metric_texts(rng.choice([None, 1, 3]))
        for metric in (*item_oracle.USERS, *item_oracle.CATALOGUE):
            own = [text for text in texts if text.startswith(f"{metric}(")]
            for text in rng.sample(own, min(len(own), 4)):
                try:
                    given[metric] += not math.isnan(run(text, shop).value)
                except ValueError:
                    continue
    assert set(given) == {*item_oracle.USERS, *item_oracle.CATALOGUE}
    assert min(given.values()) > 10, given


def test_hostile_shops_are_hostile() -> None:
    shops = [item_cases.random_shop(seed) for seed in range(200)]
    assert item_cases.random_shop(3) == item_cases.random_shop(3)
    rows = [row for shop in shops for row in (shop.items or {}).values()]
    lists = [items for shop in shops for items in shop.lists.values()]
    seen = [{item for items in (shop.history or {}).values() for item in items} for shop in shops]
    common = {
        "empty list": sum(not items for items in lists),
        "one item": sum(len(items) == 1 for items in lists),
        "no list": sum(set(shop.truth or ()) > set(shop.lists) for shop in shops),
        "repeated row": sum(len(set(v)) < len(v) for shop in shops for v in (shop.history or {}).values()),
        "unseen item": sum(bool(set(v) - s) for shop, s in zip(shops, seen, strict=True) for v in shop.lists.values()),
        "cold user": sum(not (shop.history or {}).get(user) for shop in shops for user in shop.lists),
        "no category": sum(row["category"] == [] for row in rows),
        "several categories": sum(len(row["category"]) > 1 for row in rows),
        "zero vector": sum(row.get("features") == [0.0] * 3 for row in rows),
        "no features": sum("features" not in row for row in rows),
        "one user": sum(len(shop.truth or ()) == 1 for shop in shops),
        "one item in all": sum(len(shop.items or ()) == 1 for shop in shops),
        "no reference": sum(not (shop.reference or {}).get(user) for shop in shops for user in shop.lists),
        "string ids": sum(isinstance(user, str) for shop in shops for user in shop.lists),
        "not in the table": sum(bool(set(v) - set(shop.items or ())) for shop in shops for v in shop.lists.values()),
    }
    assert min(common.values()) > 10, common
