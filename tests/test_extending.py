"""Additions from outside, through the same registration as built-in ones: no file of the package changes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import fastrec
from fastrec.clusters.job import Job
from fastrec.evaluation.accumulators import ACCUMULATORS, AccumulatorKind
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.files import job
from fastrec.files.formats.base import FileHead, Format
from fastrec.files.formats.registry import FORMATS, register
from fastrec.items import providers as of_lists
from fastrec.metrics.declaration import ranking_metric, score_metric
from fastrec.metrics.providers import BUILT_IN, PROVIDERS, gains_in_lists, is_relevant, provider
from fastrec.metrics.statistics import Over
from fastrec.scored import pairs as of_rows
from support import toy_engine
from support.command_line import run_fastrec

# A format of files


class MovieLens(Format):
    """The ratings of MovieLens: user::item::rating::time, without a header."""

    name, title = "movielens", "MovieLens"
    endings = (".dat",)

    def __init__(self, columns: Any = None) -> None:
        self._columns = columns

    def bound(self, columns: Any, n_threads: int) -> MovieLens:
        return MovieLens(columns)

    def head(self, path: str) -> FileHead:
        names = (self._columns.usual["user"], self._columns.usual["item"])
        schema = pa.schema([pa.field(name, pa.int64()) for name in names])
        return FileHead(schema, Path(path).read_text().count("\n"))

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        rows = [line.split("::") for line in Path(path).read_text().splitlines()]
        columns = [pa.array([row[at] for row in rows]).cast(kind) for at, kind in wanted.items()]
        yield pa.RecordBatch.from_arrays(columns, names=[f"c{at}" for at in wanted])


class NumpyFiles(Format):
    """Record arrays of NumPy."""

    name, title = "npy", "NumPy"
    endings = (".npy",)
    magic = b"\x93NUMPY"

    def head(self, path: str) -> FileHead:
        rows = np.load(path)
        kinds = [pa.from_numpy_dtype(rows.dtype[name]) for name in rows.dtype.names]
        return FileHead(pa.schema(zip(rows.dtype.names, kinds, strict=True)), len(rows))

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        rows = np.load(path)
        names = [rows.dtype.names[at] for at in wanted]
        yield pa.RecordBatch.from_arrays([pa.array(rows[name]) for name in names], names=names)


@pytest.fixture
def formats() -> Iterator[None]:
    known = dict(FORMATS)
    yield
    FORMATS.clear()
    FORMATS.update(known)


ROWS = [(1, 5), (1, 6), (2, 7), (2, 5)]


def write_ids(path: Path, rows: list[tuple[int, int]]) -> str:
    users, items = zip(*rows, strict=True)
    if path.suffix == ".dat":
        path.write_text("".join(f"{user}::{item}::4.5::978300760\n" for user, item in rows))
    elif path.suffix in (".npy", ""):
        with path.open("wb") as file:
            np.save(file, np.rec.fromarrays([users, items], names="user_id,item_id"))
    else:
        path.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in rows))
    return str(path)


@pytest.mark.usefixtures("formats")
@pytest.mark.parametrize(
    ("format_", "name"), [(MovieLens(), "recs.dat"), (NumpyFiles(), "recs.npy"), (NumpyFiles(), "recs")]
)
def test_a_format_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: Format, name: str) -> None:
    truth = write_ids(tmp_path / "truth.csv", [(1, 6), (2, 7)])
    recs = write_ids(tmp_path / name, ROWS)
    wanted = fastrec.evaluate_files(write_ids(tmp_path / "recs.csv", ROWS), truth, ["mrr", "recall@1"])
    with pytest.raises(fastrec.InputError):
        fastrec.evaluate_files(recs, truth, "mrr")
    register(format_)
    for copies in (job.COPIES, 10**9):  # whole, and sorted on disk
        monkeypatch.setattr(job, "COPIES", copies)
        assert fastrec.evaluate_files(recs, truth, ["mrr", "recall@1"]).to_dict() == wanted.to_dict()
        assert fastrec.evaluate_files(recs, recs, "mrr", input_format=format_.name)["mrr"] == 1.0
    told = run_fastrec("evaluate", recs, truth, "-m", "mrr", "--format", "json")
    assert told.exit_code == 0 and json.loads(told.stdout)["metrics"]["mrr"]["mean"] == wanted["mrr"]


@pytest.mark.usefixtures("formats")
def test_messages_and_choices_name_a_registered_format(tmp_path: Path) -> None:
    csv = write_ids(tmp_path / "recs.csv", ROWS)
    (tmp_path / "recs.npy").write_text("no NumPy")
    (tmp_path / "zeros").write_bytes(b"\0" * 9)
    register(NumpyFiles())
    choices = "auto, parquet, arrow, csv, jsonl, trec, npy"
    for path, chosen, says in (
        (csv, "avro", f"input_format must be one of {choices}; found 'avro'"),
        (csv, "npy", "recs.csv: not a NumPy file (it does not begin with \\x93NUMPY)"),
        (tmp_path / "recs.npy", "auto", "recs.npy: not a NumPy file (it does not begin with \\x93NUMPY)"),
        (tmp_path / "zeros", "auto", "zeros: neither Parquet, Arrow, NumPy nor text in UTF-8: it has zero bytes"),
    ):
        with pytest.raises(fastrec.InputError, match=re.escape(says)):
            fastrec.evaluate_files(path, csv, "mrr", input_format=chosen)
    told = run_fastrec("evaluate", csv, csv, "--input-format", "avro").output
    assert all(f"'{choice}'" in told for choice in choices.split(", "))
    assert "npy" in run_fastrec("evaluate", "--help").output


# An engine


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(len(table)))


def draw_lists() -> tuple[pa.Table, pa.Table]:
    draw = np.random.default_rng(3)
    users = np.repeat(np.arange(120), 10)
    items = np.concatenate([draw.permutation(60)[:10] for _ in range(120)])
    recs = pa.table(
        {"user_id": users, "item_id": items, "score": draw.random(1200), "plan": np.array(["free", "paid"])[users % 2]}
    )
    return recs, recs.select(["user_id", "item_id"]).take(np.flatnonzero(draw.random(1200) < 0.2))


@pytest.mark.thorough(except_for="3")
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_an_engine_evaluates_lists(n_partitions: int) -> None:
    recs, truth = draw_lists()
    metrics = ["ndcg@5", "map@10", "recall@3"]
    job = Job(ListEvaluation, {"metrics": metrics}, {"by": "plan"}, ("user_id",), n_threads=1)
    sides = {"recs": shuffled(recs, 1), "truth": shuffled(truth, 2)}
    found = toy_engine.evaluate(job, sides, n_partitions=n_partitions)
    assert found.to_dict() == fastrec.evaluate(recs, truth, metrics, by="plan").to_dict()


def test_an_engine_passes_every_side() -> None:
    recs, truth = draw_lists()
    history = shuffled(recs.select(["user_id", "item_id"]), 6).slice(0, 300)
    metrics, shop = ["ndcg@5", "recall@3"], {"item_id": np.arange(60), "price": np.ones(60)}
    options: dict[str, Any] = {"metrics": metrics, "items": shop}
    job = Job(ListEvaluation, options, {"exclude": "history"}, ("user_id",), n_threads=1)
    sides = {"recs": recs, "truth": truth, "history": history, "reference": recs}
    found = toy_engine.evaluate(job, sides, n_partitions=2)
    wanted = fastrec.evaluate(recs, truth, **options, history=history, exclude="history", reference=recs)
    assert found.to_dict() == wanted.to_dict()
    assert (wanted.data["excluded_items"], wanted.settings["n_items"]) == (300, 60)


def test_an_engine_evaluates_rows() -> None:
    draw = np.random.default_rng(4)
    log = pa.table({"user_id": np.arange(900) % 70, "label": draw.integers(0, 2, 900), "score": draw.random(900)})
    log = log.sort_by([("score", "ascending"), ("label", "ascending")])
    metrics = ["gauc", "mrr", "log_loss"]
    job = Job(RowEvaluation, {"metrics": metrics}, {}, ("user_id",), n_threads=1, order=("score", "label"))
    found = toy_engine.evaluate(job, {"log": shuffled(log, 5)}, n_partitions=4)
    assert found.to_dict() == fastrec.evaluate_scores(log, metrics=metrics).to_dict()


def test_an_engine_raises_the_errors_of_its_processes() -> None:
    recs, truth = draw_lists()
    twice = pa.concat_tables([recs, recs.slice(0, 1)])
    job = Job(ListEvaluation, {"metrics": ["mrr"]}, {}, ("user_id",), n_threads=1)
    with pytest.raises(fastrec.InputError, match="twice"):
        toy_engine.evaluate(job, {"recs": twice, "truth": truth}, n_partitions=2)


# Metrics, statistics and accumulators

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
    with pytest.raises(fastrec.MetricError, match="'caution' is already a metric of rows: choose another name"):
        ranking_metric(range=(0, 1), name="caution")(lambda s: s.hits)
    with pytest.raises(fastrec.InputError, match="scores must be probabilities for caution, found 3"):
        fastrec.evaluate_scores([1, 0], [0.5, 3.0], [0, 2], "caution")


def test_each_provider_of_fastrec_has_its_function() -> None:
    assert [own.name for own in BUILT_IN] == [*of_lists.FILLS, *of_rows.FILLS]


def test_a_provider_reads_public_sides_by_name() -> None:
    @provider("names of sides", sides=["recs", "history"])
    def fill(sides: Any, keys: Sequence[Any], out: Any) -> None:
        assert sides["recs"].items.tolist() == [1, 2] and sides.get("history") is sides["history"]
        assert "history" in sides and "reference" not in sides and sides.get("reference", 7) == 7
        for name in ("reference", "slots", "n_threads", "anything"):
            with pytest.raises(KeyError, match=name):
                sides[name]
        out[:] = 0.0

    @ranking_metric(range=(0, 1), source="ours")
    def nothing(s: Any) -> Any:
        """Nothing: the provider looks at what it gets."""
        return s.provided("names of sides")

    assert fastrec.evaluate([[1, 2]], None, "nothing", history=[[3]])["nothing"] == 0.0


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


def test_values_of_a_metric_of_rows_are_in_its_range() -> None:
    @score_metric(range=(0, 1), source="ours")
    def number(s: Any) -> Any:
        """Number of rows, which is no share."""
        return s.rows

    with pytest.raises(fastrec.InputError, match=r"number of user 0 is not a number within range=\(0.0, 1.0\), its"):
        fastrec.evaluate_scores([0, 1], [0.5, 0.9], [0, 2], "number")


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
    misses_tied = {"ann": {"b": 0.9, "c": 0.8, "x": 0.5, "y": 0.5}}  # which no hit is among
    for recs in (tied, misses_tied):
        with pytest.raises(fastrec.MetricError, match="judged_misses@1 has no closed form for the mean over orders"):
            fastrec.evaluate(recs, truth, **ask)
        fastrec.evaluate(recs, truth, ties="worst", **ask)
    with pytest.raises(fastrec.InputError, match="recs of user 0: item ids must not be negative, found -1"):
        fastrec.evaluate([[-1, 2]], [[2]], **ask)
    with pytest.raises(fastrec.MetricError, match=r"^judged_misses@1 reads more of lists than scored rows tell"):
        fastrec.evaluate_scores([1, 0], [0.5, 0.2], [0, 2], "judged_misses@1")


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
    with pytest.raises(fastrec.MetricError, match=r"^mean_popularity@1, mean_popularity@2 need items=\.\.\.$"):
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


def collect_items(
    sides: Mapping[str, Any], least: float, keys: Any, n_threads: int
) -> Iterable[tuple[Any, ItemCounts]]:
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
        lambda keys, weighted: ItemCounts(),
        lambda arrays, keys, weighted: ItemCounts(
            dict(zip(*(arrays[own].tolist() for own in ("items", "counts")), strict=True))
        ),
        collect_items,
        frozenset({"recs"}),
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
    with pytest.raises(fastrec.MetricError, match="has no closed form for the mean over orders"):
        fastrec.evaluate([{1: 0.5, 2: 0.5}], metrics="distinct_items")
    del ACCUMULATORS["item_counts"]
    with pytest.raises(fastrec.MetricError, match="kind 'item_counts' are not registered in this process"):
        fastrec.evaluate([[1, 2]], metrics="distinct_items")


def test_a_formula_on_arrays_beside_known_hits_of_many_events() -> None:
    """The arrays come from users without rows, whose block has room for one event of each user."""

    @ranking_metric(range=(0, 1), source="ours")
    def bounded_hits(s: Any) -> Any:
        """Hyperbolic tangent of the number of hits."""
        return np.tanh(s.hits)

    items = np.arange(40 * 20).reshape(40, 20)
    report = fastrec.evaluate(items, items, ["bounded_hits@20", "compatibility@20"])
    assert report["bounded_hits@20"] == pytest.approx(np.tanh(20))
    assert report["compatibility@20"] == pytest.approx(1)
