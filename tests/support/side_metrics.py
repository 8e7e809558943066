"""Metrics of lists that read items, histories and references, each with a provider of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.metrics.providers import PROVIDERS, provider

ALONE = ["own_price", "own_genres", "own_size", "own_repeats", "own_first"]  # none reads the truth


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the metrics known during a test."""
    monkeypatch.setattr("fastrec.metrics.providers.PROVIDERS", dict(PROVIDERS))

    def per_item(sides: Mapping[str, Any], values: Any, out: Any) -> None:
        """Sum a value of each item over the lists."""
        recs, items = sides["recs"], sides["items"]
        order = np.argsort(items.codes)
        at = order[np.searchsorted(items.codes[order], recs.items)]
        out[0] = np.bincount(recs.users, values[at], recs.n_users)

    @provider("own price", sides=["recs", "items"])
    def price(sides: Any, keys: Any, out: Any) -> None:
        per_item(sides, sides["items"].numbers("price"), out)

    @provider("own genres", sides=["recs", "items"])
    def genres(sides: Any, keys: Any, out: Any) -> None:
        codes, indptr, _ = sides["items"].categories("genre")
        per_item(sides, np.add.reduceat(codes, indptr[:-1]) + np.diff(indptr) / 8, out)

    @provider("own size", sides=["recs", "items"])
    def size(sides: Any, keys: Any, out: Any) -> None:
        per_item(sides, sides["items"].vectors("vector").matrix @ np.array([1.0, 0.1]), out)

    @provider("own repeats", sides=["recs", "history"])
    def repeats(sides: Any, keys: Any, out: Any) -> None:
        recs, history = sides["recs"], sides["history"]
        for user in range(recs.n_users):
            own, seen = (s.items[s.indptr[user] : s.indptr[user + 1]] for s in (recs, history))
            out[0, user] = np.isin(own, seen).sum() + len(seen) / 100

    @provider("own first", sides=["recs", "reference"])
    def first(sides: Any, keys: Any, out: Any) -> None:
        recs, reference = sides["recs"], sides["reference"]
        for user in range(recs.n_users):
            own, other = (s.items[s.indptr[user] : s.indptr[user + 1]] for s in (recs, reference))
            same = own[: min(len(own), len(other))] == other[: min(len(own), len(other))]
            out[0, user] = (same / np.arange(1, len(same) + 1)).sum()

    for name in ALONE:
        formula = metric_of(name)
        fastrec.ranking_metric(range=(0, None), source="ours")(formula)


def metric_of(name: str) -> Any:
    def formula(s: Any) -> Any:
        return s.provided(name.replace("_", " "))

    formula.__name__, formula.__doc__ = name, "What the provider fills."
    return formula
