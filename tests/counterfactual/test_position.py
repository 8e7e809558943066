"""`fastrec.ctr_by_rank` and `fastrec.position_bias` against plain definitions, by hand, and their laws."""

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.counterfactual import curves
from fastrec.runtime.launcher import Launcher
from support import position_oracle as oracle
from support.position_oracle import Row

METHODS = ["ctr", "pivot", "adjacent", "em"]
CLOSE = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}


def rows_of(*counts: tuple[Any, Any, int, int, int]) -> list[Row]:
    """Return rows of (query, item, rank, impressions, clicks)."""
    return [
        Row(int(nth < clicks), rank, query, item) for query, item, rank, shown, clicks in counts for nth in range(shown)
    ]


WORKED = rows_of(
    ("q", "d1", 1, 10, 6),
    ("q", "d1", 2, 10, 3),
    ("q", "d2", 1, 10, 2),
    ("q", "d2", 2, 5, 1),
    ("q", "d3", 2, 4, 2),
    ("q", "d3", 3, 4, 1),
)


def bias_of(rows: Sequence[Row], **options: Any) -> fastrec.PositionBias:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    return fastrec.position_bias(*columns, **options)


def random_rows(seed: int, n: int = 300, n_ranks: int = 5, ids: Callable[[int], Any] = int) -> list[Row]:
    rng = random.Random(seed)
    attraction = [rng.random() for _ in range(40)]
    rows = []
    for _ in range(n):
        rank, query, item = rng.randint(1, n_ranks), rng.randint(0, 3), rng.randint(0, 7)
        chance = attraction[8 * query + item] / rank
        rows.append(Row(int(rng.random() < chance), rank, ids(query), ids(item)))
    return rows


# By hand


def test_the_worked_case() -> None:
    assert bias_of(WORKED, method="adjacent").curve.tolist() == pytest.approx([1, 0.625, 0.3125], abs=1e-15)
    found = bias_of(WORKED)  # pivot
    assert found.curve[:2].tolist() == pytest.approx([1, 0.625], abs=1e-15)
    assert math.isnan(found.curve[2])
    assert found.pairs.tolist() == [2, 2, 0]
    once = bias_of(WORKED, method="em", n_rounds=1)
    assert once.examination is not None
    # 8 clicks and 12 rows without, of which a third was examined: (1 + 8 + 4) / 22; then (1 + 6 + 13 / 3) / 21
    assert once.examination.tolist() == pytest.approx([13 / 22, 34 / 63, 0.5], abs=1e-15)
    assert once.curve.tolist() == pytest.approx([1, 34 / 63 * 22 / 13, 11 / 13], abs=1e-15)
    of_all = bias_of(WORKED, method="ctr")
    assert of_all.curve.tolist() == pytest.approx([1, (6 / 19) / (8 / 20), (1 / 4) / (8 / 20)], abs=1e-15)


def test_wilson_by_hand() -> None:
    labels = [1] * 30 + [0] * 70 + [1] * 12 + [0] * 68 + [1] * 3 + [0] * 57
    found = fastrec.ctr_by_rank(labels, [1] * 100 + [2] * 80 + [3] * 60)
    assert found.ratio.tolist() == [0.3, 0.15, 0.05]
    assert found.low.tolist() == pytest.approx([0.2189488529, 0.0879404051, 0.0171495022], abs=1e-10)
    assert found.high.tolist() == pytest.approx([0.3958485463, 0.2441322856, 0.1370051648], abs=1e-10)
    assert found.std_error is None
    assert found.users is None


def test_a_ratio_over_users_by_hand() -> None:
    """Users click 2 of 2 and 0 of 2 at rank 1: R = 1/2, residuals 1 and -1, error^2 = 2/1 * 2 / 16 = 1/4."""
    found = fastrec.ctr_by_rank([1, 1, 0, 0], [1] * 4, user_ids=["a", "a", "b", "b"])
    assert (found.ratio[0], found.std_error[0], found.users[0]) == (0.5, 0.5, 2)
    alone = fastrec.ctr_by_rank([1, 1, 0, 0], [1] * 4, user_ids=[1, 2, 3, 4])
    # independent rows: R (1 - R) / n * n / (n - 1)
    assert alone.std_error[0] == pytest.approx(math.sqrt(0.25 / 3), rel=1e-15)


# Against the oracle


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("ids", [int, str])
def test_curves_are_those_of_the_oracle(seed: int, ids: Callable[[int], Any]) -> None:
    rows = random_rows(seed, n=[0, 1, 5, 40, 300][seed % 5], n_ranks=1 + seed % 7, ids=ids)
    for method in ("ctr", "pivot", "adjacent"):
        wanted = getattr(oracle, method)(rows) if rows else []
        assert bias_of(rows, method=method).curve.tolist() == pytest.approx(wanted, **CLOSE)
    found = bias_of(rows, method="em", n_rounds=7).examination
    assert found is not None
    assert found.tolist() == pytest.approx(oracle.em(rows, 7), **CLOSE)


@pytest.mark.parametrize("seed", range(20))
def test_rates_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(seed, n=[1, 3, 30, 200][seed % 4])
    users = [rng.randint(0, 9) for _ in rows]
    device = [rng.choice(["app", "web"]) for _ in rows]
    clicks, ranks, *_ = map(list, zip(*rows, strict=True))
    found = fastrec.ctr_by_rank(clicks, ranks, user_ids=users, row_groups={"device": device})
    plain = fastrec.ctr_by_rank(clicks, ranks, row_groups=device)
    every = zip(clicks, ranks, users, device, strict=True)
    rows_by = [(click, rank, user, name) for click, rank, user, name in every]
    parts = [(found, plain, rows_by)]
    for name in sorted(set(device)):
        own = [row for row in rows_by if row[3] == name]
        parts.append((found.groups["device"][name], plain.groups["row_group"][name], own))
    for of_users, of_rows, wanted in parts:
        for at, rank in enumerate(range(1, max(ranks) + 1)):
            here = [(click, user) for click, own, user, _ in wanted if own == rank]
            ratio, error = oracle.ratio_over_users(here)
            n = sum(click for click, _ in here)
            assert (of_users.clicks[at], of_users.impressions[at]) == (n, len(here))
            assert of_users.users[at] == len({user for _, user in here})
            assert of_users.ratio[at] == pytest.approx(ratio, **CLOSE)
            assert of_users.std_error[at] == pytest.approx(error, **CLOSE)
            ends = of_users.low[at], of_users.high[at]
            assert ends == pytest.approx(oracle.interval_over_users(here), rel=1e-9, abs=1e-9, nan_ok=True)
            assert not ends[1] - ends[0] < (of_rows.high - of_rows.low)[at] - 1e-12, "never narrower than without users"
            ends = of_rows.low[at], of_rows.high[at]
            assert ends == pytest.approx(oracle.score_interval(n, len(here)), rel=1e-9, abs=1e-9, nan_ok=True)


def test_intervals_are_percentiles_of_fits_to_drawn_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw is the oracle's fit, where copies of a query are queries of their own."""
    rows = random_rows(3)
    queries = sorted({row.query for row in rows})
    draws: list[np.ndarray] = []
    real = curves.Fitting._weigh
    monkeypatch.setattr(curves.Fitting, "_weigh", lambda own, drawn: draws.extend(drawn.copy()) or real(own, drawn))
    for method in METHODS:
        draws.clear()
        found = bias_of(rows, method=method, n_samples=25, n_threads=1, **({"n_rounds": 4} if method == "em" else {}))
        low, high = found.interval(0.8)
        assert [own.sum() for own in draws] == [len(queries)] * 26
        fits = []
        for drawn in draws[1:]:
            copies = [
                row._replace(query=(row.query, nth)) for row in rows for nth in range(drawn[queries.index(row.query)])
            ]
            fit = getattr(oracle, method)(copies, 4) if method == "em" else getattr(oracle, method)(copies)
            fits.append([own / fit[0] for own in fit] if method == "em" else fit)
        for at in range(len(low)):
            known = [fit[at] for fit in fits if at < len(fit) and not math.isnan(fit[at])]
            ends = np.quantile(known, [0.1, 0.9]).tolist() if not math.isnan(found.curve[at]) else [math.nan] * 2
            assert [low[at], high[at]] == pytest.approx(ends, **CLOSE)


# Laws


@pytest.mark.parametrize("method", METHODS)
def test_order_batches_and_threads_do_not_change_a_bit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(8, n=800, ids=lambda number: f"é{number}")
    monkeypatch.setattr(curves, "CELLS_PER_TASK", 8)
    whole = bias_of(rows, method=method, n_samples=40, n_threads=1)
    mixed = random.Random(1).sample(rows, len(rows))
    others = [
        bias_of(mixed, method=method, n_samples=40, n_threads=3),
        bias_of(mixed[:100], method=method, n_samples=40).merge(
            bias_of(mixed[500:], method=method, n_samples=40).merge(
                bias_of(mixed[100:500], method=method, n_samples=40)
            )
        ),
        bias_of([], method=method, n_samples=40).merge(whole),
    ]
    for other in others:
        assert other.to_json() == whole.to_json()
        for name in ("curve", "low", "high"):
            assert getattr(other, name).tobytes() == getattr(whole, name).tobytes()


@pytest.mark.parametrize("with_users", [False, True])
def test_counts_merge(with_users: bool) -> None:
    rng = np.random.default_rng(5)
    n = 400
    labels, ranks, users = rng.integers(0, 2, n), rng.integers(1, 7, n), np.sort(rng.integers(0, 40, n))
    groups = rng.integers(0, 3, n)

    def of(part: Any) -> fastrec.CtrByRank:
        given = {"user_ids": users[part]} if with_users else {}
        return fastrec.ctr_by_rank(labels[part], ranks[part], row_groups=groups[part], **given)

    whole = of(slice(None))
    cut = int(np.searchsorted(users, 17))  # between two users
    for merged in (of(slice(cut)).merge(of(slice(cut, n))), of(slice(cut, n)).merge(of(slice(cut)))):
        assert merged.to_json() == whole.to_json()
        assert ("no user is taken to be in two of them" in repr(merged)) == with_users
    assert "taken to be" not in repr(whole)
    order = rng.permutation(n)
    assert of(order).to_json() == whole.to_json()


def test_merged_groups_reach_up_to_the_highest_rank_of_all() -> None:
    """Only rows of b and c have rank 3, and only one part has it."""
    labels, ranks, groups = [1, 0, 1, 0], [1, 2, 1, 3], ["a", "b", "c", "b"]
    whole = fastrec.ctr_by_rank(labels, ranks, row_groups=groups)
    one, other = (fastrec.ctr_by_rank(labels[p], ranks[p], row_groups=groups[p]) for p in (slice(2), slice(2, 4)))
    for merged in (one.merge(other), other.merge(one)):
        assert merged.to_json() == whole.to_json() and repr(merged.to_rows()) == repr(whole.to_rows())
        assert [own.ranks.tolist() for own in merged.groups["row_group"].values()] == [[1, 2, 3]] * 3


def test_compiled_and_interpreted_kernels_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(4, n=500)
    clicks, ranks, query, item = map(list, zip(*rows, strict=True))

    def all_of_them() -> list[str]:
        found = [bias_of(rows, method=method, n_samples=20).to_json() for method in METHODS]
        return [*found, fastrec.ctr_by_rank(clicks, ranks, user_ids=query, row_groups=item).to_json()]

    monkeypatch.setattr(Launcher, "way", "compiled")
    compiled = all_of_them()
    monkeypatch.setattr(Launcher, "way", "interpreted")
    assert all_of_them() == compiled


def test_the_true_curve_is_found() -> None:
    """A log with known examination, in which good items stand high: rates alone mislead, the fits do not."""
    rng = np.random.default_rng(7)
    n, true = 60_000, np.array([1.0, 0.6, 0.4, 0.25])
    query = rng.integers(0, 60, n)
    item = rng.integers(0, 4, n)
    attraction = np.tile([0.6, 0.45, 0.3, 0.15], (60, 1)) * rng.uniform(0.8, 1.2, (60, 4))
    best_first = rng.random(n) < 0.6
    ranks = np.where(best_first, item, rng.integers(0, 4, n)) + 1
    clicks = rng.random(n) < true[ranks - 1] * attraction[query, item]
    for method in ("pivot", "adjacent", "em"):
        found = fastrec.position_bias(clicks, ranks, query, item, method=method, n_samples=60)
        assert found.curve == pytest.approx(true, abs=0.05), method
        if method != "em":  # 50 rounds are not yet at the end, and the added clicks pull
            assert ((found.low <= true + 1e-12) & (true - 1e-12 <= found.high)).all(), method
    naive = fastrec.position_bias(clicks, ranks, query, item, method="ctr", n_samples=60)
    assert (naive.high[1:] < true[1:]).all()


@pytest.mark.thorough
def test_intervals_cover() -> None:
    """In 200 logs of drawn queries, intervals of 90 % hold the true curve in 80 to 97 %."""
    true, held = np.array([1.0, 0.5]), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        query = np.repeat(np.arange(60), 40)
        attraction = rng.uniform(0.2, 0.9, 60)
        ranks = rng.integers(1, 3, len(query))
        clicks = rng.random(len(query)) < true[ranks - 1] * attraction[query]
        found = fastrec.position_bias(clicks, ranks, query, np.zeros(len(query), int), level=0.9, n_samples=200)
        held += found.low[1] <= 0.5 <= found.high[1]
    assert 160 <= held <= 194


def test_intervals_over_users_cover_where_those_of_rows_do_not() -> None:
    held = {"users": 0, "rows": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        users = np.repeat(np.arange(150), 20)
        clicks = rng.random(len(users)) < rng.choice([0.1, 0.5], 150)[users]
        ranks = np.ones(len(users), int)
        for name, given in {"users": {"user_ids": users}, "rows": {}}.items():
            found = fastrec.ctr_by_rank(clicks, ranks, **given)
            held[name] += found.low[0] <= 0.3 <= found.high[0]
    assert held["users"] >= 180
    assert held["rows"] < 140


@pytest.mark.parametrize(("n_users", "share"), [(10, 0.3), (10, 0.95), (30, 0.03)])
def test_intervals_over_few_users_cover(n_users: int, share: float) -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(1000):
        chance = rng.beta(8 * share, 8 * (1 - share), n_users).repeat(4)
        found = fastrec.ctr_by_rank(
            rng.random(4 * n_users) < chance, [1] * 4 * n_users, user_ids=np.arange(4 * n_users) // 4
        )
        held += found.low[0] <= share <= found.high[0]
    assert held >= 930


# What is not known


@pytest.mark.parametrize(
    ("rows", "method", "curve"),
    [
        # ranks 1, 2 and 3, 4 are connected, 2 and 3 are not
        (rows_of((1, 1, 1, 4, 2), (1, 1, 2, 4, 1), (1, 2, 3, 4, 2), (1, 2, 4, 4, 1)), "adjacent", [1, 0.5, None, None]),
        (rows_of((1, 1, 1, 4, 2), (1, 1, 2, 4, 1), (1, 2, 3, 4, 2), (1, 2, 4, 4, 1)), "pivot", [1, 0.5, None, None]),
        (rows_of((1, 1, 1, 4, 0), (1, 1, 2, 4, 1)), "pivot", [1, None]),
        (rows_of((1, 1, 1, 4, 0), (1, 1, 2, 4, 1)), "ctr", [1, None]),
        (rows_of((1, 1, 2, 4, 1), (1, 1, 3, 4, 1)), "adjacent", [None, None, None]),
        (rows_of((1, 1, 1, 4, 1), (1, 1, 3, 4, 1)), "em", [1, None, 1]),
        (rows_of((1, 1, 1, 4, 4), (1, 1, 2, 4, 0), (1, 1, 3, 4, 2)), "adjacent", [1, 0, None]),
    ],
)
def test_an_unconnected_rank_is_nan(rows: list[Row], method: str, curve: list[float | None]) -> None:
    wanted = [math.nan if own is None else own for own in curve]
    found = bias_of(rows, method=method)
    assert found.curve.tolist() == pytest.approx(wanted, nan_ok=True, abs=1e-3 if method == "em" else 1e-12)
    if None in curve:
        assert "unknown at rank" in repr(found)
    assert ("0 at rank 2: no click there" in repr(found)) == (0 in curve)


def test_one_query_has_no_interval() -> None:
    found = bias_of(rows_of((1, 1, 1, 4, 2), (1, 1, 2, 4, 1)))
    assert found.curve.tolist() == [1, 0.5]
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
    assert "pivot, 1 query\nno intervals: they need two queries or more" in repr(found)


def test_no_rows() -> None:
    assert fastrec.ctr_by_rank([], []).to_rows() == []
    assert fastrec.ctr_by_rank([], [], user_ids=[], row_groups=[]).to_rows() == []
    for method in METHODS:
        assert bias_of([], method=method).to_rows() == []
        assert "0 queries" in repr(bias_of([], method=method))


def test_one_user_has_no_interval() -> None:
    found = fastrec.ctr_by_rank([1, 0], [1, 3], user_ids=[4, 4])
    assert found.ratio.tolist() == pytest.approx([1, math.nan, 0], nan_ok=True)
    assert np.isnan([found.low, found.high, found.std_error]).all()


def test_large_ids_and_ranks() -> None:
    rows = rows_of((2**62, -(2**62), 1, 4, 2), (2**62, -(2**62), 1_000_000, 4, 1), (-(2**62), 2**62, 1, 3, 1))
    found = bias_of(rows, n_samples=0)
    assert len(found.curve) == 1_000_000
    assert found.curve[[0, -1]].tolist() == [1, 0.5]
    assert np.isnan(found.curve[1:-1]).all()
    assert found.n_queries == 2
    assert found.merge(found).impressions[[0, -1]].tolist() == [14, 8]


@pytest.mark.parametrize("method", ["ctr", "pivot", "em"])
def test_one_row_at_a_high_rank_leaves_fits_small(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 1,000 draws took the time of a million ranks."""
    shapes = set()
    real = curves.Fitting._weigh

    def weigh(own: curves.Fitting, drawn: np.ndarray) -> np.ndarray:
        found = real(own, drawn)
        shapes.add(found.shape[1:])
        return found

    monkeypatch.setattr(curves.Fitting, "_weigh", weigh)
    rows = random_rows(5, n_ranks=3)
    high = [row._replace(rank=1_000_000) if row.rank == 3 else row for row in rows]
    near, far = (bias_of(own, method=method, n_samples=30) for own in (rows, high))
    for name in ("curve", "low", "high", "pairs", "impressions"):
        assert getattr(far, name)[[0, 1, -1]].tobytes() == getattr(near, name).tobytes()
    assert np.isnan(far.curve[2:-1]).all()
    assert shapes == {(3, 3)}


def test_large_labels_of_groups_keep_their_sign() -> None:
    labels = np.array([2**64 - 1, 3, 2**63], np.uint64)
    found = fastrec.ctr_by_rank([1, 0, 0], [1, 1, 1], row_groups=labels).groups["row_group"]
    assert {label: own.clicks.tolist() for label, own in found.items()} == {3: [0], 2**63: [0], 2**64 - 1: [1]}
    scored = fastrec.evaluate_scores([1, 0, 0], [0.5, 0.2, 0.1], user_ids=[1, 2, 3], metrics="mae", groups=labels)
    assert list(scored.groups["group"]) == [3, 2**63, 2**64 - 1]


# Errors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0, 2], [1, 1]), "labels must be 0 or 1, found 2 at row 1"),
        (([0, 1], [1, 0]), "ranks must be integers from 1 to 1,000,000, found 0 at row 1; ranks count from 1: add 1"),
        (([0, 1], [1, -3]), "found -3 at row 1"),
        (([0, 1], [1_000_001, 1]), "found 1000001 at row 0"),
        (([0, 1], [1, 1.5]), "ranks must be integers from 1, found 1.5 at row 1"),
        (([0, 1], [1, math.nan]), "ranks must be integers from 1, found nan at row 1"),
        (([0, 1], [True, True]), "found booleans"),
        (([0, 1], [1]), "labels and ranks must have the same length, found 2, 1"),
        (([0, 1], None), "ranks must be given unless the labels are a data frame"),
        (("log.parquet", None), "labels must be 1-D data, found a path, 'log.parquet'"),
    ],
)
def test_wrong_rows_are_errors(given: Any, message: str) -> None:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError)) as caught:
        fastrec.ctr_by_rank(*given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method must be one of ctr, pivot, adjacent, em; found 'guess'"),
        ({"n_rounds": 3}, "n_rounds is an option of method 'em', found method 'pivot'"),
        ({"method": "em", "n_rounds": 0}, "n_rounds must be at least 1, found 0"),
        ({"n_samples": -1}, "n_samples must be at least 0, found -1"),
        ({"n_samples": 2.5}, "n_samples must be an integer, found 2.5"),
        ({"seed": -1}, "seed must be at least 0, found -1"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"rank": "position"}, "rank='position' names a column, but the labels are no data frame"),
    ],
)
def test_wrong_options_are_errors(options: Any, message: str) -> None:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError)) as caught:
        fastrec.position_bias([1], [1], [1], [1], **options)
    assert message in str(caught.value).replace("clicks are", "labels are")


def test_other_errors() -> None:
    with pytest.raises(fastrec.InputError, match="clicks must be 0 or 1, found 3"):
        fastrec.position_bias([3], [1], [1], [1])
    with pytest.raises(fastrec.InputTypeError, match="item must be a list or an array of ids, one per row, found None"):
        fastrec.position_bias([1], [1], [1])
    with pytest.raises(fastrec.InputError, match="item must have one key per row, 1; found 2"):
        fastrec.position_bias([1], [1], [1], [1, 2])
    with pytest.raises(
        fastrec.InputError, match=r"row_groups\['g'\] must have one label per row, 1; found shape \(2,\)"
    ):
        fastrec.ctr_by_rank([1], [1], row_groups={"g": [1, 2]})
    with pytest.raises(fastrec.InputTypeError, match=r"row_groups must be one label per row, found a str"):
        fastrec.ctr_by_rank([1], [1], row_groups="a")
    with pytest.raises(fastrec.InputError, match="ranks must be integers from 1 to 1,000,000, found 0"):
        fastrec.position_bias([1], [0], [1], [1])
    with pytest.raises(fastrec.InputError, match="must have users, or neither"):
        fastrec.ctr_by_rank([1], [1]).merge(fastrec.ctr_by_rank([1], [1], user_ids=[1]))
    with pytest.raises(fastrec.InputError, match="must have the same groupings"):
        fastrec.ctr_by_rank([1], [1]).merge(fastrec.ctr_by_rank([1], [1], row_groups=[1]))
    with pytest.raises(fastrec.InputError, match=r"the same level to be merged: 0\.95, 0\.9"):
        fastrec.ctr_by_rank([1], [1]).merge(fastrec.ctr_by_rank([1], [1], level=0.9))
    with pytest.raises(fastrec.InputTypeError, match="a CtrByRank merges with another, found None"):
        fastrec.ctr_by_rank([1], [1]).merge(None)  # type: ignore[arg-type]
    with pytest.raises(fastrec.InputTypeError, match="a PositionBias merges with another, found 3"):
        bias_of(WORKED).merge(3)  # type: ignore[arg-type]
    with pytest.raises(fastrec.InputError, match="the same method to be merged: pivot, ctr"):
        bias_of(WORKED).merge(bias_of(WORKED, method="ctr"))
    with pytest.raises(fastrec.InputTypeError, match="query must be all integers or all strings"):
        bias_of(WORKED).merge(bias_of(rows_of((1, "d1", 1, 1, 1))))


# Data frames and results


def frames(columns: dict[str, Any]) -> list[Any]:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return [pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)]


def test_data_frames() -> None:
    rows = random_rows(6, ids=lambda number: f"n{number}")
    click, rank, query, item = map(list, zip(*rows, strict=True))
    users, device = [f"u{n % 9}" for n in range(len(rows))], ["app" if n % 3 else "web" for n in range(len(rows))]
    usual = {"label": click, "rank": rank, "query_id": query, "item_id": item, "user_id": users, "device": device}
    other = {"c": click, "r": rank, "q": query, "i": item, "u": users, "d": device}
    wanted = fastrec.position_bias(click, rank, query, item, n_samples=10).to_json()
    counts = fastrec.ctr_by_rank(click, rank, user_ids=users, row_groups={"device": device})
    for frame, named in zip(frames(usual), frames(other), strict=True):
        assert fastrec.position_bias(frame, n_samples=10).to_json() == wanted
        found = fastrec.position_bias(named, query="q", item="i", label="c", rank="r", n_samples=10)
        assert found.to_json() == wanted
        assert fastrec.ctr_by_rank(frame, row_by="device").to_json() == counts.to_json()
        found_counts = fastrec.ctr_by_rank(named, label="c", rank="r", user="u", row_by="d")
        assert found_counts.to_json() == counts.to_json().replace('"device"', '"d"')
        assert fastrec.ctr_by_rank(named, label="c", rank="r").users is None
    with pytest.raises(fastrec.InputError, match="no column 'query_id'"):
        fastrec.position_bias(frames(other)[0], label="c", rank="r")
    with pytest.raises(fastrec.InputError, match="ranks must not be given with a data frame"):
        fastrec.ctr_by_rank(frames(usual)[0], rank)


def test_rows_without_a_label_count_in_no_group() -> None:
    usual = {"label": [1, 0, 1], "rank": [1, 1, 2], "user_id": [5, 6, 6], "device": ["app", None, "app"]}
    for frame in frames(usual):
        found = fastrec.ctr_by_rank(frame, row_by="device")
        assert found.impressions.tolist() == [2, 1]
        assert found.groups["device"]["app"].impressions.tolist() == [1, 1]
        assert found.groups["device"]["app"].users.tolist() == [1, 1]


def test_results_in_every_form(tmp_path: Any) -> None:
    bias = bias_of(random_rows(2), n_samples=20)
    counts = fastrec.ctr_by_rank([1, 0, 1], [1, 2, 2], row_groups={"device": ["<app>", "web", "web"]})
    for found in (bias, counts):
        json.loads(found.to_json())
        assert max(map(len, repr(found).splitlines())) <= 80
        assert found.to_markdown().count("|") > 10
        assert "tabular" in found.to_latex()
        page = found.to_html()
        assert page is not None
        assert "<app>" not in page
        assert "<svg" in page
        found.to_html(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert list(bias.to_rows()[0]) == ["rank", "curve", "low", "high", "impressions", "clicks", "pairs", "examination"]
    for kind in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(kind)
        assert len(bias.to_frame(kind)) == len(bias.curve)
        assert len(counts.to_frame(kind)) == 6
    long = fastrec.ctr_by_rank([1] * 50, np.arange(1, 51))
    assert "20 more ranks" in repr(long)


def test_plots() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    bias = bias_of(random_rows(2), n_samples=20)
    ax = bias.plot(label="a $ sign")
    assert ax.get_lines()[0].get_ydata().tolist() == pytest.approx(bias.curve.tolist(), nan_ok=True)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(np.nanmax(bias.high))
    counts = fastrec.ctr_by_rank([1, 0, 1], [1, 2, 2], row_groups={"device": ["app", "web", "web"]})
    assert [text.get_text() for text in counts.plot().get_legend().get_texts()] == ["app", "web"]
    assert len(counts.plot(bias.plot(), label="all").get_lines()) == 3
    alone = fastrec.ctr_by_rank([1, 0], [1, 2]).plot()
    assert alone.get_legend() is None
    assert all(tick == int(tick) for tick in alone.get_xticks())


def test_every_table_of_a_page_has_a_caption() -> None:
    clicks, ranks = [1, 1, 0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 2, 2, 2, 2]
    pages = (
        fastrec.ctr_by_rank(clicks, ranks, row_groups=[1, 2] * 4).to_html(),
        fastrec.position_bias(clicks, ranks, [7] * 8, ["a"] * 8, n_samples=9).to_html(),
        fastrec.policy_value(clicks, [0.5] * 8, [0.5] * 8, estimator=["ips"]).to_html(),
    )
    for page in pages:
        assert "<table" in str(page) and "<caption></caption>" not in str(page)
