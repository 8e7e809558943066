"""Results that are hard to show, and a reader of pages."""

import itertools
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

import numpy as np

import fastrec
from fastrec.comparison.comparison import Comparison
from fastrec.comparison.row import ComparisonRow
from fastrec.feedback.result import Drift
from fastrec.report.report import Report

HOSTILE = """<script>alert("x")</script>'&\\|$_^~#{}%`*[a](javascript:b)\x1b\n\ud800 – ü"""
N_USERS = 60
SETTINGS = {
    "baseline": "b",
    "test": "t",
    "correction": "holm",
    "level": 0.95,
    "n_rounds": 100,
    "seed": 0,
    "missing": "drop",
}


class Page(HTMLParser):
    """Contents of a page: tables as strings, headings, attributes of every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.headings: list[tuple[int, str]] = []
        self.titles: list[str] = []  # of pictures
        self._rows: list[list[str]] = []
        self._caption, self._open = "", ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((int(tag[1]), ""))
        elif tag == "title":
            self.titles.append("")
        if tag in ("td", "th", "caption", "h1", "h2", "h3", "title", "p", "style", "script", "figcaption", "a"):
            self._open = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            assert self._caption not in self.tables, "two tables with one caption"
            self.tables[self._caption] = self._rows
        if tag in ("caption", "title", "h1", "h2", "style", "script", "table"):
            self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("td", "th"):
            self._rows[-1][-1] += data.strip("\n")
        elif self._open == "caption":
            self._caption += data
        elif self._open in ("h1", "h2", "h3"):
            level, text = self.headings[-1]
            self.headings[-1] = level, text + data
        elif self._open == "title":
            self.titles[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def lists(quality: float, seed: int) -> tuple[np.ndarray, list[list[int]]]:
    rng = np.random.default_rng(0)
    truth = [rng.choice(50, rng.integers(0, 6), replace=False).tolist() for _ in range(N_USERS)]
    scores = np.random.default_rng(seed).random((N_USERS, 50))
    for own, relevant in zip(scores, truth, strict=True):
        own[relevant] += quality
    return np.argsort(-scores)[:, :30], truth


def evaluated(quality: float = 0.3, seed: int = 1, **options: Any) -> Report:
    groups = {"plan": np.array(["free", "paid", "trial"])[np.arange(N_USERS) % 3]}
    given = {"metrics": ["ndcg", "recall", "hits"], "k": [5, 10], "per_user": True, "groups": groups}
    return fastrec.evaluate(*lists(quality, seed), **(given | options))


def compared(baseline: str | None = "old", **options: Any) -> Comparison:
    systems = {"old": evaluated(0.1, 1), "new": evaluated(0.9, 2), "other": evaluated(0.15, 3)}
    return fastrec.compare(systems, baseline=baseline, n_rounds=2_000, **options)


def traded(names: Sequence[str] = ("popular", "near", "far"), **options: Any) -> Comparison:
    """Return a comparison of systems with metrics of accuracy and of the catalogue."""
    history = lists(0.2, 7)[0][:, :5].tolist()
    given = {"metrics": ["ndcg", "item_coverage", "novelty", "gini"], "k": 10, "n_items": 50, "history": history}
    systems = {name: evaluated(0.9 / (n + 1), n, **(given | options)) for n, name in enumerate(names)}
    return fastrec.compare(systems, baseline=names[0], n_rounds=2_000)


def hostile() -> tuple[Report, Comparison]:
    groups = {HOSTILE: [HOSTILE if user % 2 else "plain" for user in range(N_USERS)]}
    report = evaluated(groups=groups, metrics=["mrr"])
    return report, fastrec.compare({HOSTILE: report, HOSTILE + "2": report}, baseline=HOSTILE, n_rounds=100)


def drifted(name: str = "day", n_logs: int = 12) -> Drift:
    """Return the drift of logs with a table of items, all of whose names begin with `name`."""
    rng = np.random.default_rng(3)
    logs = {f"{name} {n}": np.argsort(rng.random((40, 30 - n)))[:, :6] for n in range(n_logs)}
    shop = {item: {name: f"{name}{item % 3}", "category": "AB"[item % 2]} for item in range(30)}
    return fastrec.drift(logs, k=5, history=logs[f"{name} 0"], items=shop, by=name, provider=name)


def scored(device: str = "phone") -> tuple[Report, list[Any]]:
    """Return a report on a log, and curves of the same rows."""
    draw = np.random.default_rng(4)
    users = draw.integers(0, 40, 1_500)
    scores = draw.random(1_500)
    labels = draw.random(1_500) < scores**1.5
    devices = {"device": np.array([device, "tv", "web"])[users % 3]}
    report = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=["auc", "average_precision", "ece"])
    curves = [
        fastrec.roc_curve(labels, scores, thin=True),
        fastrec.pr_curve(labels, scores, thin=True),
        fastrec.calibration_curve(labels, scores, user_ids=users, row_groups=devices, bins=15),
        fastrec.ctr_by_rank(labels, users % 7 + 1, user_ids=users, row_groups=devices),
    ]
    return report, curves


def modelled() -> Comparison:
    """Return a comparison of two models on one log."""
    draw = np.random.default_rng(5)
    users = np.repeat(np.arange(60), 12)
    scores = draw.random(720)
    labels = draw.random(720) < scores
    models = {"deep_ranking_model_v2": scores, "deep_ranking_model_v1": (scores + draw.random(720)) / 2}
    metrics = ["auc", "gauc", "average_precision", "normalized_entropy", "calibration", "ndcg@5"]
    return fastrec.compare_scores(
        labels, models, metrics, user_ids=users, baseline="deep_ranking_model_v1", groups={"plan": users % 2}
    )


def large(n_systems: int = 20, n_metrics: int = 30, n_groups: int = 20, *, pairs: bool = False) -> Comparison:
    """Return a comparison of this size, with made-up numbers."""
    rng = np.random.default_rng(0)
    systems, metrics = [f"system_{n}" for n in range(n_systems)], [f"ndcg@{k + 1}" for k in range(n_metrics)]
    named = [(b, a) for a, b in itertools.combinations(systems, 2)] if pairs else [(s, systems[0]) for s in systems[1:]]

    def rows(grouping: str | None, groups: list[Any]) -> Iterator[ComparisonRow]:
        for metric, pair, group in itertools.product(metrics, named, groups):
            mean, gap, half, p = rng.random(4).tolist()
            gap = (gap - 0.5) / 10
            numbers = (mean, mean - gap, gap, gap - half / 20, gap + half / 20, p, p)
            yield ComparisonRow(metric, *pair, *numbers, 123, 45, 67, 12345, 0, half, grouping, group)

    segments = {"country": tuple(rows("country", [f"group {n}" for n in range(n_groups)]))}
    settings = SETTINGS | {"baseline": None if pairs else systems[0]}
    return Comparison(tuple(rows(None, [None])), segments, settings)


class Tags(HTMLParser):
    """Tags and attributes of an HTML string, and its words."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.words.append(data)
