"""Additions from outside: each through the registration that the built-in ones use, without a change of the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

import fastrec
import fastrec.evaluation.rows  # registers score counts
from fastrec.evaluation.accumulators import ACCUMULATORS, AccumulatorKind
from fastrec.metrics.declaration import ranking_metric, score_metric
from fastrec.metrics.providers import PROVIDERS, gains_in_lists, is_relevant, provider
from fastrec.metrics.statistics import Over

RECS = {"ann": ["a", "b", "c"], "bob": ["c", "a"], "cy": []}
TRUTH = {"ann": ["b"], "bob": ["d"], "cy": ["a"]}
SHOP = {"item_id": ["a", "b", "c", "d"], "popularity": [4, 1, 2, 8]}


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    """Forget what a test registers; `conftest.py` forgets metrics."""
    tables: list[dict[str, Any]] = [PROVIDERS, ACCUMULATORS]
    before = [dict(table) for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


def test_a_metric_of_lists() -> None:
    @ranking_metric(range=(0, 1), source="ours", aliases=["share_of_hits"])
    def hit_share(s: Any, *, of: Literal["list", "truth"] = "list") -> Any:
        """Share of the list, or of the truth, that is a hit."""
        return s.hits / (s.k if of == "list" else s.n_rel)

    report = fastrec.evaluate(RECS, TRUTH, ["hit_share@2", "share_of_hits(of=truth)@2"])
    assert {name: report[name] for name in report} == {
        "hit_share@2": pytest.approx(0.5 / 3),
        "hit_share(of=truth)@2": pytest.approx(1 / 3),
    }


def test_a_metric_of_rows() -> None:
    @score_metric(range=(0, 1), needs="probabilities", source="ours", higher_is_better=False)
    def caution(s: Any, *, over: Literal["rows", "users"] = "users") -> Any:
        """Mean of 1 - score."""
        return (s.rows - s.score_sum) / s.rows if over == "users" else s.ratio(s.rows - s.score_sum, s.rows)

    report = fastrec.evaluate_scores(
        [1, 0, 1], [0.5, 0.9, 0.4], [0, 2, 3], ["caution", "caution(over=rows)"], per_user=True
    )
    assert report["caution"] == pytest.approx(0.45) and report["caution(over=rows)"] == pytest.approx(0.4)
    assert report.per_user["caution"].tolist() == pytest.approx([0.3, 0.6])
    with pytest.raises(fastrec.InputError, match="scores must be probabilities for caution, found 3"):
        fastrec.evaluate_scores([1, 0], [0.5, 3.0], [0, 2], "caution")


def test_a_metric_of_rows_with_a_new_statistic() -> None:
    @provider("spread", sides=["rows"])
    def fill_spread(sides: Mapping[str, Any], keys: Sequence[Any], out: Any) -> None:
        """Fill the difference between the largest and the smallest score of each user."""
        rows = sides["rows"]
        for user, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
            scores = rows.scores[start:end]
            out[:, user] = scores.max() - scores.min() if len(scores) else 0.0
        assert keys == [("scores",)]

    @score_metric(range=(0, None), source="ours")
    def spread(s: Any) -> Any:
        """Difference between the largest and the smallest score."""
        return s.provided("spread", "scores")

    scores = [0.5, 0.75, 0.25, 1.0]
    report = fastrec.evaluate_scores([1, 0, 1, 0], scores, [0, 3, 4], ["spread", "auc"], per_user=True)
    assert report["spread"] == 0.25 and report.per_user["spread"].tolist() == [0.5, 0.0]
    weighted = fastrec.evaluate_scores([1, 0, 1, 0], scores, [0, 3, 4], "spread", user_weight=[3, 1], groups=["x", "y"])
    assert weighted["spread"] == 0.375 and weighted.groups["group"]["x"]["spread"].mean == 0.5


def test_a_formula_of_rows_is_arithmetic() -> None:
    @score_metric(range=(0, None), source="ours")
    def log_rows(s: Any) -> Any:
        """Logarithm of 1 + the number of rows."""
        return np.log1p(s.rows)

    with pytest.raises(fastrec.MetricError, match="formula of log_rows must be arithmetic on statistics, found log1p"):
        fastrec.evaluate_scores([0, 1], [0.5, 0.9], [0, 2], "log_rows")


@pytest.mark.parametrize("min_gain", [None, 2.0, "any"])
def test_a_metric_with_a_new_statistic_of_lists(min_gain: Any) -> None:
    """Like `misses`, but only judged items count: numbers of judged items that are not relevant, above the cut-off."""

    @provider("judged misses", sides=["recs", "truth"])
    def fill(sides: Mapping[str, Any], keys: Sequence[Any], out: Any) -> None:
        gains, indptr = gains_in_lists(sides), sides["recs"].indptr
        ranks = np.arange(len(gains)) - np.repeat(indptr[:-1], np.diff(indptr))
        users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        for nth, (k, least) in enumerate(keys):
            misses = ~np.isnan(gains) & ~is_relevant(gains, least) & (ranks < k)
            out[nth] = np.bincount(users[misses], minlength=len(indptr) - 1)

    @ranking_metric(range=(0, None), source="ours", higher_is_better=False)
    def judged_misses(s: Any) -> Any:
        """Number of judged items among the first k that are not relevant."""
        return s.provided("judged misses", s.cutoff, s.min_gain)

    truth = {"ann": {"a": 0.0, "b": 1.0, "c": 3.0}, "bob": {"c": 1.0, "z": 2.0}, "cy": {"a": 2.0}}
    ask = {
        "metrics": ["judged_misses@1", "judged_misses@3"],
        "min_gain": min_gain,
        "per_user": True,
        "no_truth": "zero",
    }
    report = fastrec.evaluate(RECS, truth, **ask)
    expected = {None: ([1, 0], [1, 0]), 2.0: ([1, 1], [2, 1]), "any": ([0, 0], [0, 0])}[min_gain]
    found = [report.per_user[f"judged_misses@{k}"].tolist()[:2] for k in (1, 3)]
    assert found == [list(map(float, own)) for own in expected]
    tied = {user: dict.fromkeys(items, 1.0) for user, items in RECS.items()}
    with pytest.raises(fastrec.MetricError, match="judged_misses@1 has no closed form for the mean over orders"):
        fastrec.evaluate(tied, truth, **ask)


@pytest.fixture
def popularity() -> str:
    """Declare a metric of lists and the table of items."""

    @provider("popularity", sides=["recs", "items"])
    def fill(sides: Mapping[str, Any], keys: Sequence[Any], out: Any) -> None:
        """Fill the sum of the popularity of the first k items."""
        recs, items = sides["recs"], sides["items"]
        known = dict(zip(items.codes.tolist(), items.numbers("popularity").tolist(), strict=True))
        for nth, (k,) in enumerate(keys):
            for user, (start, end) in enumerate(zip(recs.indptr[:-1], recs.indptr[1:], strict=True)):
                out[nth, user] = sum(known[item] for item in recs.items[start:end][:k].tolist())

    @ranking_metric(range=(0, None), source="ours")
    def mean_popularity(s: Any) -> Any:
        """Mean popularity of the first k items."""
        return s.provided("popularity", s.cutoff) / s.within_k(s.n_rec)

    return "mean_popularity"


def test_a_metric_of_items(popularity: str) -> None:
    ask = [f"{popularity}@1", f"{popularity}@2", "recall@2"]
    report = fastrec.evaluate(RECS, TRUTH, ask, items=SHOP, per_user=True, no_recs="skip")
    assert report.per_user["mean_popularity@2"].tolist()[:2] == [2.5, 3.0]
    assert (report["mean_popularity@1"], report["mean_popularity@2"]) == (3.0, 2.75)
    assert fastrec.evaluate(RECS, metrics=ask[:2], items=SHOP, no_recs="skip")["mean_popularity@2"] == 2.75
    with pytest.raises(fastrec.MetricError, match=r"^mean_popularity@1 needs items=\.\.\.$"):
        fastrec.evaluate(RECS, TRUTH, ask)


def test_a_metric_of_items_has_the_same_bits_for_any_batches_and_threads(popularity: str) -> None:
    """Also for a formula that runs on arrays, weights, and a state that travels."""

    @ranking_metric(range=(0, None), source="ours")
    def log_popularity(s: Any) -> Any:
        """Logarithm of 1 + the popularity of the list."""
        return np.log1p(s.provided("popularity", None))

    r = np.random.default_rng(5)
    recs = {user: r.permutation(50)[: r.integers(1, 9)].tolist() for user in range(1200)}
    truth = {user: r.permutation(50)[:3].tolist() for user in recs}
    shop = {"item_id": np.arange(50), "popularity": r.random(50)}
    ask: dict[str, Any] = {"metrics": [f"{popularity}@3", "log_popularity", "ndcg@5"], "items": shop}
    whole = fastrec.evaluate(recs, truth, **ask, n_threads=1)
    parts = [fastrec.Evaluator(**ask, n_threads=2) for _ in range(2)]
    for nth, evaluator in enumerate(parts):
        own = [user for user in recs if user % 2 == nth]
        evaluator.update({user: recs[user] for user in own}, {user: truth[user] for user in own})
    travelled = fastrec.Evaluator.from_bytes(parts[1].to_bytes())
    joined = parts[0].merge(travelled).result()
    assert {name: joined.estimates[name] for name in joined} == whole.estimates
    expected = [np.mean([shop["popularity"][item] for item in items[:3]]) for items in recs.values()]
    assert whole[f"{popularity}@3"] == pytest.approx(np.mean(expected))


class ItemCounts:
    """Numbers of lists that have each item, by id."""

    weighted = False

    def __init__(self, counts: Mapping[int, int] = {}) -> None:
        self.counts = Counter(counts)

    def merge(self, other: ItemCounts) -> None:
        self.counts += other.counts

    def pack(self) -> dict[str, Any]:
        items = sorted(self.counts)
        return {"items": np.array(items, np.int64), "counts": np.array([self.counts[own] for own in items], np.int64)}


def collect_items(sides: Mapping[str, Any], least: float, n_threads: int) -> Iterable[tuple[Any, ItemCounts]]:
    recs, users = sides["recs"], sides["users"]
    of_rows = np.repeat(np.arange(len(recs.indptr) - 1), np.diff(recs.indptr))
    yield None, ItemCounts(Counter(recs.items.tolist()))
    for codes in users.groups:
        for code in np.unique(codes).tolist():
            yield users.keys[code - 1], ItemCounts(Counter(recs.items[codes[of_rows] == code].tolist()))


def test_an_accumulator() -> None:
    """A statistic of all lists at once: merged, by group, and through bytes."""
    ACCUMULATORS["item_counts"] = AccumulatorKind(
        "item_counts",
        lambda weighted: ItemCounts(),
        lambda arrays, weighted: ItemCounts(
            dict(zip(*(arrays[own].tolist() for own in ("items", "counts")), strict=True))
        ),
        collect_items,
    )

    @ranking_metric(range=(0, None), source="ours")
    def distinct_items(s: Any) -> Any:
        """Number of distinct recommended items."""
        return Over("item_counts", lambda own: float(len(own.counts)), None, s.n_rec, s.one)

    first, second = fastrec.Evaluator("distinct_items"), fastrec.Evaluator("distinct_items")
    first.update([[1, 2], [2, 3]], groups=["x", "y"])
    second.update([[3, 4], [9]], groups=["y", "x"])
    report = first.merge(fastrec.Evaluator.from_bytes(second.to_bytes())).result()
    assert report["distinct_items"] == 5.0
    assert {label: own["distinct_items"].mean for label, own in report.groups["group"].items()} == {"x": 3.0, "y": 3.0}
