"""What every test and example starts from: doctests use `fastrec` without importing it."""

from collections.abc import Iterator

import pytest

import fastrec
from fastrec import registry
from fastrec.kernels import jit

# Tests speak of compiled kernels; test_interpreted.py says that interpreted ones give the same bits.
jit.Entry.eager = True


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["fastrec"] = fastrec


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    """Metrics that a test or an example declares are gone after it."""
    metrics = registry.ranking_metrics()
    before = dict(metrics)
    yield
    metrics.clear()
    metrics.update(before)
    registry.forget_parsed()
