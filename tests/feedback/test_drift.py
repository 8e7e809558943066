"""`fastrec.drift` against plain definitions, by hand and on small random logs."""

import dataclasses
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.feedback.changes import find_trend
from fastrec.report.estimates import Estimate
from support import item_oracle
from support.interval_oracle import student
from support.item_cases import BASE, SHOP
from support.item_oracle import Shop, divergence_of, exposure, gini_of, labels, listed

Lists = Mapping[str, Sequence[int]]
K = 3
USERS = [f"u{n}" for n in range(12)]
ITEMS = {
    item: {
        "segment": "head" if item < 4 else "tail",
        "category": ["A", "B", "C"][item % 3 :],
        "brand": [f"b{item % 4}", "own"] if item % 5 == 0 else f"b{item % 4}",
    }
    for item in range(12)
}


def shops_of(seed: int) -> list[Shop]:
    """Draw four logs of the same shop; users come and go, some have an empty list."""
    rng = random.Random(seed)
    history = {user: [rng.choice(list(ITEMS)) for _ in range(rng.choice([0, 1, 4]))] for user in USERS}
    history["stranger"] = [1, 1, 2]
    logs = [
        {user: rng.sample(list(ITEMS), rng.choice([0, 1, 2, 4, 5])) for user in rng.sample(USERS, rng.randint(9, 12))}
        for _ in range(4)
    ]
    shops = [Shop(lists, history=history, items=ITEMS) for lists in logs]
    return [dataclasses.replace(shop, reference=before) for shop, before in zip(shops, [None, *logs[:3]], strict=True)]


def drift_of(shops: Sequence[Shop], **options: Any) -> fastrec.Drift:
    given = {"history": shops[0].history, "items": shops[0].items} | options
    return fastrec.drift([shop.lists for shop in shops], k=K, **given)


def shares(shop: Shop, column: str, weights: Mapping[Any, float] | None = None) -> dict[Any, float]:
    """Share of exposure of each label, for weighted users."""
    found: dict[Any, float] = dict.fromkeys([label for row in ITEMS.values() for label in labels(row[column])], 0.0)
    for user, items in listed(shop, K).items():
        for own in (labels(ITEMS[item][column]) for item in items):
            for label in own:
                found[label] += (1.0 if weights is None else weights[user]) / len(own)
    total = sum(found.values())
    return {label: share / total for label, share in found.items()}


def past_shares(shop: Shop, column: str) -> dict[Any, float]:
    rows = {"all": [item for items in (shop.history or {}).values() for item in items]}
    counts: dict[Any, float] = defaultdict(float)
    for own in (labels(ITEMS[item][column]) for item in rows["all"]):
        for label in own:
            counts[label] += 1 / len(own) / len(rows["all"])
    return counts


def gini_of_shares(found: Mapping[Any, float]) -> float:
    return float(gini_of([share for share in found.values() if share], len(found)))


OF_SHARES: dict[str, Callable[[Shop, Any], float]] = {
    "share(segment=head)": lambda shop, w: shares(shop, "segment", w)["head"],
    "amplification(segment=tail)": lambda shop, w: (
        shares(shop, "segment", w)["tail"] / past_shares(shop, "segment")["tail"]
    ),
    "hhi(brand)": lambda shop, w: sum(share**2 for share in shares(shop, "brand", w).values()),
    "provider_gini(brand)": lambda shop, w: gini_of_shares(shares(shop, "brand", w)),
}
OF_LISTS = {
    "gini": item_oracle.gini_influence,
    "shannon_entropy": item_oracle.entropy_influence,
    "personalization": item_oracle.personalization_influence,
}


def derivatives(shop: Shop, value: Callable[[Shop, Any], float]) -> dict[Any, float]:
    """The effect of each user's list: the number of users times the derivative by the user's weight."""
    users, step = list(listed(shop, K)), 1e-4
    found = {}
    for user in users:
        ends = [value(shop, dict.fromkeys(users, 1.0) | {user: 1.0 + sign * step}) for sign in (1, -1)]
        found[user] = len(users) * (ends[0] - ends[1]) / (2 * step)
    return found


def error_of_difference(before: Mapping[Any, float], after: Mapping[Any, float]) -> float:
    """The standard error of the difference of two means over users, of whom some are in both."""
    both = sorted(set(before) & set(after))
    variance = sum(np.var(list(own.values()), ddof=1) / len(own) for own in (before, after))
    covariance = np.cov([before[user] for user in both], [after[user] for user in both])[0, 1]
    return math.sqrt(variance - 2 * len(both) * covariance / len(before) / len(after))


def close(value: float, digits: float = 1e-9) -> Any:
    return pytest.approx(value, rel=digits, abs=digits, nan_ok=True)


# By hand


def test_the_worked_example_holds() -> None:
    found = fastrec.drift([BASE.lists, SHOP.lists], k=2, n_items=6)
    expected = {
        "item_coverage@2": (1 / 3, 2 / 3),
        "gini@2": (0.6666666667, 0.4047619048),
        "shannon_entropy@2": (1, 1.9502120649),
        "personalization@2": (0, 0.75),
    }
    assert list(found.logs[0].levels) == list(expected)
    for column, levels in expected.items():
        assert [log.levels[column].mean for log in found.logs] == [pytest.approx(level, abs=5e-11) for level in levels]
    (step,) = found.steps
    assert step.exposure_shift == pytest.approx(0.6284905946, abs=5e-11)
    overlaps, own = [0, 0, 1 / 3, 1 / 2], [0, 0, 0.45, 0.45]
    for estimate, values in ((step.overlap, overlaps), (step.rbo, own)):
        assert estimate[:3] == close_estimate(values)
    assert (step.log, step.before, step.users) == ("log 2", "log 1", 4)


def close_estimate(values: Sequence[float]) -> Any:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return (pytest.approx(np.mean(values)), pytest.approx(error, nan_ok=True), len(values))


def test_equal_logs_do_not_drift() -> None:
    found = fastrec.drift([SHOP.lists] * 3, k=2, n_items=6, history=SHOP.history)
    for step in found.steps:
        assert step.exposure_shift == 0
        assert step.overlap[:2] == step.rbo[:2] == (1, 0)
        assert {change[:2] for name, change in step.changes.items() if name != "item_coverage@2"} == {(0, 0)}
    assert {trend.slope for trend in found.trends.values()} == {0}


# Against the oracle


@pytest.mark.parametrize("seed", range(8))
def test_levels_are_those_of_the_metrics(seed: int) -> None:
    shops = shops_of(seed)
    found = drift_of(shops)
    names = ["item_coverage", "gini", "shannon_entropy", "personalization", "popularity", "aplt", "miscalibration"]
    for log, shop in zip(found.logs, shops, strict=True):
        assert list(log.levels) == [f"{name}@{K}" for name in names]
        assert log.users == len(listed(shop, K))
        for name in names:
            wanted = item_oracle.evaluate(shop, name, k=K)
            level = log.levels[f"{name}@{K}"]
            assert level.mean == close(wanted.value)
            assert level.std_error == close(math.nan if wanted.std_error is None else wanted.std_error)


@pytest.mark.parametrize("seed", range(8))
def test_steps_follow_from_the_lists(seed: int) -> None:
    shops = shops_of(seed)
    found = drift_of(shops)
    for step, before, after in zip(found.steps, shops, shops[1:], strict=False):
        both = set(listed(before, K)) & set(listed(after, K))
        assert step.users == len(both)
        one, other = ({i: c / sum(own.values()) for i, c in own.items()} for own in map(counts_of, (before, after)))
        assert step.exposure_shift == close(divergence_of(one, other, "js", 0, 2))
        for name in ("overlap", "rbo"):
            wanted = item_oracle.evaluate(after, name, k=K)
            assert getattr(step, name)[:3] == (close(wanted.value), close(wanted.std_error), wanted.users)
        for name in ("popularity", "aplt", "miscalibration"):
            values = [item_oracle.evaluate(shop, name, k=K).per_user for shop in (before, after)]
            pairs = [[own.get(user) for own in values] for user in both]
            gaps = [there - here for here, there in pairs if here is not None and there is not None]
            assert step.changes[f"{name}@{K}"][:3] == close_estimate(gaps)
        for name, influence in OF_LISTS.items():
            effects = [dict(zip(listed(shop, K), influence(shop, K), strict=True)) for shop in (before, after)]
            levels = [item_oracle.evaluate(shop, name, k=K).value for shop in (before, after)]
            assert step.changes[f"{name}@{K}"].mean == close(levels[1] - levels[0])
            assert step.changes[f"{name}@{K}"].std_error == close(error_of_difference(*effects))


def counts_of(shop: Shop) -> dict[Any, Any]:
    return exposure(listed(shop, K).values())


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_segments_and_providers(seed: int) -> None:
    shops = shops_of(seed)
    found = drift_of(shops, by="segment", provider="brand")
    of_rows = {(row.log, row.column, row.label): row for row in found.shares}
    effects: dict[str, list[dict[Any, float]]] = defaultdict(list)
    for log, shop in zip(found.logs, shops, strict=True):
        for column in ("segment", "brand"):
            now, past = shares(shop, column), past_shares(shop, column)
            for label, share in now.items():
                row = of_rows.pop((log.log, column, label))
                assert (row.share, row.history_share) == (close(share), close(past.get(label, 0.0)))
        for name, value in OF_SHARES.items():
            effects[name].append(derivatives(shop, value))
            level = log.levels[f"{name}@{K}"]
            error = np.std(list(effects[name][-1].values()), ddof=1) / math.sqrt(log.users)
            assert level[:3] == (close(value(shop, None)), close(error, 1e-5), log.users)
    assert not of_rows
    for name in OF_SHARES:
        error = error_of_difference(*effects[name][:2])
        assert found.steps[0].changes[f"{name}@{K}"].std_error == close(error, 1e-4)


@pytest.mark.parametrize("with_ids", [True, False])
def test_given_pairs_stand_in_place_of_all_pairs(with_ids: bool) -> None:
    rng = random.Random(5)
    lists = [[rng.sample(range(8), rng.choice([0, 2, 4, 4])) for _ in range(9)] for _ in range(3)]
    pairs = [(0, 1), (2, 3), (4, 5), (0, 5), (3, 1), (6, 7), (7, 8), (0, 8)]
    logs: list[Any] = [{f"u{n}": own for n, own in enumerate(log)} for log in lists] if with_ids else lists
    asked = [(f"u{a}", f"u{b}") for a, b in pairs] if with_ids else pairs
    found = fastrec.drift(logs, k=3, n_items=8, pairs=asked)
    assert "personalization@3" not in found.logs[0].levels
    values = []
    for log in lists:
        sets = [set(own[:3]) for own in log]
        values.append(
            [len(sets[a] & sets[b]) / len(sets[a] | sets[b]) if sets[a] and sets[b] else None for a, b in pairs]
        )
    for log, own in zip(found.logs, values, strict=True):
        known = [value for value in own if value is not None]
        assert log.levels["pair_overlap@3"].mean == close(np.mean(known))
        assert log.levels["pair_overlap@3"].users == len(known)
    gaps = [b - a for a, b in zip(*values[:2], strict=True) if a is not None and b is not None]
    assert found.steps[0].changes["pair_overlap@3"].mean == close(np.mean(gaps))


def test_segments_without_a_tail_have_no_share_of_it() -> None:
    logs = [BASE.lists, SHOP.lists]
    for segments, has_aplt in ((("old", "new"), False), (("head", "tail"), True), (("head", None), True)):
        items = {item: {"segment": segments[item % 2]} for item in range(9)}
        found = fastrec.drift(logs, k=2, items=items, history=SHOP.history)
        assert ("aplt@2" in found.logs[0].levels) == has_aplt


def test_pairs_of_unknown_users_are_a_warning() -> None:
    with pytest.warns(fastrec.FastrecWarning, match="no pair has lists of both users"):
        found = fastrec.drift([BASE.lists, SHOP.lists], k=2, pairs=[(1, 2)])
    assert [line.partition(":")[0] for line in found.warnings] == ["log 1", "log 2"]
    assert "warning: log 2: no pair" in repr(found)


# Trends


def levels(means: Sequence[float], errors: Sequence[float] | float) -> list[Estimate]:
    of_each = [errors] * len(means) if isinstance(errors, float) else errors
    return [Estimate(mean, error, 10) for mean, error in zip(means, of_each, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_trends_are_those_of_polyfit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, errors = rng.normal(size=6), rng.uniform(0.1, 2, size=6)
    weighted, plain = find_trend(levels(means, errors)), find_trend(levels(means, math.nan))
    fit, covariance = np.polyfit(np.arange(6), means, 1, w=1 / errors, cov="unscaled")
    assert weighted == (close(fit[0]), close(math.sqrt(covariance[0, 0])), 6, True)
    fit, covariance = np.polyfit(np.arange(6), means, 1, cov=True)
    assert plain == (close(fit[0]), close(math.sqrt(covariance[0, 0])), 6, False)


def test_a_trend_with_known_weights() -> None:
    # weights 4, 1, 1: mean time .5, width 4 * .25 + .25 + 2.25 = 3.5; slope (4 * -.5 * 0 + .5 * 1 + 1.5 * 5) / 3.5
    found = find_trend(levels([0, 1, 5], [0.5, 1, 1]))
    assert found == (close(8 / 3.5), close(1 / math.sqrt(3.5)), 3, True)
    assert find_trend(levels([0, 1, 5], [0.5, 0, 1])) == find_trend(levels([0, 1, 5], math.nan))  # no weight 1 / 0
    assert find_trend(levels([0, 1, math.nan], 0.1))[2:] == (2, False)
    assert math.isnan(find_trend(levels([0, 1], 0.1)).slope)


def test_a_trend_is_unmoved_by_the_unit_of_errors() -> None:
    tiny, large = (find_trend(levels([0, 1, 5], [0.5 * unit, unit, unit])) for unit in (1e-200, 1e100))
    assert tiny.slope == large.slope == close(8 / 3.5)


# Forms and errors


def test_frames_arrays_and_dicts_give_the_same(tmp_path: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    logs = [BASE.lists, SHOP.lists, BASE.lists]
    wanted = fastrec.drift(logs, k=2, n_items=6).to_dict()

    def long(lists: Lists) -> Any:
        rows = [(user, item, rank) for user, own in lists.items() for rank, item in enumerate(own, 1)]
        return pa.table(dict(zip(("user_id", "item_id", "rank"), zip(*rows, strict=True), strict=True)))

    streams = [pa.RecordBatchReader.from_batches(own.schema, own.to_batches()) for own in map(long, logs)]
    flat = [(np.concatenate(list(own.values())), np.cumsum([0, *map(len, own.values())])) for own in logs]
    for forms in (list(map(long, logs)), streams, [list(own.values()) for own in logs], flat):
        found = fastrec.drift(forms, k=2, n_items=6).to_dict()
        assert found | {"warnings": wanted["warnings"]} == wanted


def test_items_and_histories_with_string_ids() -> None:
    def named(lists: Mapping[Any, Sequence[int]]) -> dict[Any, list[str]]:
        return {user: [f"i{item}" for item in own] for user, own in lists.items()}

    shops = shops_of(1)
    plain = drift_of(shops, by="segment", provider="brand").to_dict()
    table = {f"i{item}": row for item, row in ITEMS.items()}
    options = {"history": named(shops[0].history or {}), "items": table, "by": ["segment"], "provider": "brand"}
    assert fastrec.drift([named(shop.lists) for shop in shops], k=K, **options).to_dict() == plain


def test_names_are_given_or_counted() -> None:
    logs = [BASE.lists, SHOP.lists]
    assert [log.log for log in fastrec.drift(logs, k=2).logs] == ["log 1", "log 2"]
    named = fastrec.drift({"monday": logs[0], "tuesday": logs[1]}, k=2)
    assert [log.log for log in named.logs] == ["monday", "tuesday"]
    assert (named.steps[0].before, named.steps[0].log) == ("monday", "tuesday")


def test_without_a_catalogue_items_are_counted() -> None:
    found = fastrec.drift([BASE.lists, SHOP.lists], k=2)
    assert "gini@2" not in found.trends
    assert [log.levels["item_coverage(denominator=one)@2"].mean for log in found.logs] == [2, 4]
    assert "need its size, from n_items or items" in repr(found)


def test_two_logs_have_no_trend() -> None:
    found = fastrec.drift([BASE.lists, SHOP.lists], k=2)
    assert all(math.isnan(trend.slope) for trend in found.trends.values())
    assert "two points have a slope without an error" in repr(found)


def test_empty_logs_have_no_levels() -> None:
    found = fastrec.drift([BASE.lists, {}, SHOP.lists, {"u1": []}], k=2, n_items=6, by="segment", items=SHOP.items)
    assert [log.users for log in found.logs] == [4, 0, 4, 0]
    for log in found.logs[1::2]:
        assert math.isnan(log.levels["gini@2"].mean)
        assert log.levels["item_coverage@2"].mean == 0
        assert math.isnan(log.levels["share(segment=head)@2"].mean)
    for step in found.steps:
        assert step.users == 0
        assert math.isnan(step.exposure_shift)
        assert math.isnan(step.overlap.mean)
    assert "gini" in repr(found)
    assert found.to_html()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"logs": [SHOP.lists]}, "drift needs two logs or more, in the order of time; found 1"),
        ({"logs": {}}, "drift needs two logs or more, in the order of time; found 0"),
        ({"logs": "lists.csv"}, "logs must be a list of logs in the order of time, or a dict"),
        ({"logs": {1: SHOP.lists, 2: SHOP.lists}}, "names of logs must be strings, found 1"),
        ({"k": 0}, "k must be from 1"),
        ({"k": [5, 10]}, "k must be an integer"),
        ({"n_items": 3}, "log 2: gini@2: n_items=3 is too small"),
        ({"by": "segment"}, "by needs items="),
        ({"provider": "brand"}, "provider needs items="),
        ({"by": "sgment", "items": SHOP.items}, "items has no column 'sgment'; did you mean 'segment'?"),
        ({"by": "x", "items": {"item_id": [*range(101)], "x": [*range(101)]}}, "found 101 in 'x': provider takes more"),
        ({"by": 5, "items": SHOP.items}, "by must be a string"),
        (
            {
                "logs": [SHOP.lists, {"u1": [7]}],
                "items": {i: {"x": 1 if i == 7 else None} for i in range(9)},
                "by": "x",
            },
            "log 1: share(x=1)@2: items column 'x' has no value for 4 items of the lists, such as item 2",
        ),
        ({"logs": [SHOP.lists, {"u1": [2, 2]}]}, "log 2: recs"),
        ({"logs": [[[1]], [[1], [2]]]}, "log 2: "),
        ({"pairs": ["ann"]}, "pairs must be pairs of users"),
        ({"pairs": []}, "pairs must be pairs of users"),
        (
            {"pairs": [("u1", "u2"), (["u1"], "u2")]},
            "pairs must be pairs of users, as in [('ann', 'bob')], found (['u1'",
        ),
    ],
)
def test_wrong_arguments_are_errors(given: dict[str, Any], message: str) -> None:
    arguments = {"logs": [BASE.lists, SHOP.lists], "k": 2} | given
    with pytest.raises(fastrec.FastrecError) as caught:
        fastrec.drift(arguments.pop("logs"), **arguments)
    assert message in str(caught.value)


def test_items_without_a_category_are_left_out() -> None:
    """They were an error that proposed an argument which drift lacks."""
    logs, history = [{"a": [1, 2], "b": [3]}, {"a": [1, 3], "b": [2]}], {"a": [1], "b": [2, 3]}
    shop = {1: {"category": "x"}, 2: {}, 3: {"category": "y"}}
    found = fastrec.drift(logs, k=2, items=shop, history=history)
    name = "miscalibration(no_features=drop)@2"
    for own, lists in zip(found.logs, logs, strict=True):
        wanted = fastrec.evaluate(lists, None, name, items=shop, history=history)
        assert own.levels[name] == wanted.estimates[name]
    assert "miscalibration pair the users of both logs" in found.notes()[1]
    with pytest.raises(
        fastrec.InputError, match=r"item 9, that items lacks; leave them out with rows of items without"
    ):
        fastrec.drift(logs, k=2, items={**shop, 2: {"category": "x"}}, history={"a": [9]})


def frames_of(**columns: Any) -> list[Any]:
    pd = pytest.importorskip("pandas")
    return [pd.DataFrame({"user_id": [1, 1], "item_id": [1, 2], **columns}) for _ in range(2)]


LACKING: dict[str, tuple[Any, str]] = {
    "ties": (lambda: {"logs": frames_of(score=[1.0, 1.0]), "k": 1}, "choose an order with ranks in place of scores$"),
    "duplicates": (
        lambda: {"logs": [[[1, 1]], [[1, 2]]]},
        "the second time at rank 2; drop it: no argument of drift would accept it; ",
    ),
    "unseen": (
        lambda: {"logs": [[[1, 2]], [[1, 3]]], "items": {1: {"popularity": 2}}, "n_items": 9},
        "item 2, that items lacks; choose what such an item counts with its row in items$",
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_errors_propose_no_argument_that_drift_lacks(name: str) -> None:
    make, says = LACKING[name]
    with pytest.raises(fastrec.FastrecError, match=f"^log 1: .*{says}"):
        fastrec.drift(**{"k": 2, "n_items": 9} | make())


def test_the_cut_off_is_required() -> None:
    with pytest.raises(TypeError, match="k"):
        fastrec.drift([BASE.lists, SHOP.lists])  # type: ignore[call-arg]


# Media


def full() -> fastrec.Drift:
    return drift_of(shops_of(3), by=["segment", "category"], provider="brand")


def test_the_printed_form_fits_a_terminal() -> None:
    text = repr(full())
    assert max(map(len, text.partition("\n*: the 95")[0].splitlines())) <= 80
    assert full().trends.keys() > {"hhi(brand)@3"}
    assert "log 1 to log 2" in text


def test_rows_hold_every_number() -> None:
    found = full()
    rows = found.to_rows()
    n = len(found.trends)
    kinds = [row["kind"] for row in rows]
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "level": 4 * n,
        "change": 3 * n,
        "step": 9,
        "trend": n,
        "share": 4 * 5,
    }
    trends = {row["column"]: row for row in rows if row["kind"] == "trend"}
    for column, trend in found.trends.items():
        wanted = student(trend.slope, trend.std_error, math.inf if trend.weighted else trend.logs - 2)
        row = trends[column]
        assert (row["low"], row["high"]) == pytest.approx(wanted, rel=1e-9, nan_ok=True)
    frame = found.to_frame("pyarrow")
    assert frame.column_names == ["kind", "log", "before", "column", "value", "std_error", "low", "high", "users"]
    assert len(frame) == len(rows)
    document = json.loads(found.to_json())
    assert document["logs"][0]["levels"]["gini@3"]["mean"] == found.logs[0].levels["gini@3"].mean
    assert document["steps"][0]["exposure_shift"] == found.steps[0].exposure_shift


def test_a_page_has_a_chart_for_each_column(tmp_path: Any) -> None:
    found = full()
    page = found.to_html()
    assert page is not None
    assert page.count("<figure>") == len(found.trends) + 3
    path = tmp_path / "drift.html"
    assert found.to_html(path, title="A loop") is None
    assert "<h1>A loop</h1>" in path.read_text("utf-8")
    assert all(column in page for column in found.trends)


def test_other_media() -> None:
    found = full()
    assert found.to_markdown().count("| log 1 to log 2 |") == 2
    assert r"\begin{tabular}" in found.to_latex()
    assert "<table>" in found._repr_html_()


def test_a_loop_that_degenerates_shows() -> None:
    rng = random.Random(1)
    clicks = dict.fromkeys(range(50), 1)
    logs = []
    for _ in range(6):
        log = {}
        for user in range(200):
            weights = [count**1.5 for count in clicks.values()]
            log[user] = list(dict.fromkeys(rng.choices(list(clicks), weights, k=20)))[:5]
        for own in log.values():
            clicks[own[0]] += 1
        logs.append(log)
    found = fastrec.drift(logs, k=5, n_items=50)
    slopes = {column: trend.slope / trend.std_error for column, trend in found.trends.items()}
    assert slopes["shannon_entropy@5"] < -5
    assert slopes["personalization@5"] < -5
    assert slopes["gini@5"] > 5


def test_logs_whose_exposures_compare_badly_are_said() -> None:
    chance = random.Random(3)
    lists = {user: chance.sample(range(10), 2) for user in range(60)}
    fewer = [{user: lists[user] for user in range(n)} for n in (55, 50)]
    assert fastrec.drift([lists, fewer[0]], k=2, n_items=10).warnings == ()
    (line,) = fastrec.drift([lists, fewer[1]], k=2, n_items=10).warnings
    assert line.startswith("logs have from 50 to 60 users: coverage, Gini index and entropy depend on this number")
    (line,) = fastrec.drift([lists, lists], k=2, n_items=30).warnings
    assert line.startswith("lists have fewer than 5 places per item of the catalogue: errors ")


def test_labels_in_one_string_are_separated() -> None:
    labels = {1: "a|b", 2: "a", 3: "b|c"}
    together = {item: {"category": label, "seller": item} for item, label in labels.items()}
    apart = {item: {"category": label.split("|"), "seller": item} for item, label in labels.items()}
    logs, history = [[[1, 2], [3]], [[1, 3], [2]]], [[1, 3], [2]]
    given: dict[str, Any] = {"k": 2, "history": history, "by": "category", "provider": "seller"}
    found = fastrec.drift(logs, items=together, sep="|", **given)
    wanted = fastrec.drift(logs, items=apart, **given)
    assert found.shares == wanted.shares and found.settings["sep"] == "|"
    level = "miscalibration{}@2".format
    for one, other in zip(found.logs, wanted.logs, strict=True):
        assert one.levels[level("(sep=|)")] == other.levels[level("")]
    some: Any = [{"a": [1, 2], "b": [3]}, {"b": [1, 3], "c": [2]}]  # changes pair the users of both logs
    given["history"] = {user: [1, 3] for user in "abc"}
    steps = [fastrec.drift(some, items=items, sep="|", **given).steps[0] for items in (together, apart)]
    assert steps[0].changes[level("(sep=|)")] == steps[1].changes[level("(sep=|)")]
    plain = fastrec.drift(some, items=apart, **given).steps[0].changes[level("")]
    assert steps[0].changes[level("(sep=|)")] == plain and plain.users == 1
    with pytest.warns(fastrec.FastrecWarning, match=r"2 of 3 categories .* 'category' hold '\|', .* the option sep=\|"):
        fastrec.drift(logs, items=together, k=2, history=history)
