"""Settings of every test and example: doctests use `fastrec` without importing it."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import fastrec
from fastrec.metrics import declaration
from fastrec.runtime import compiler

# Tests use compiled kernels; test_interpreted.py checks that interpreted ones give the same bits.
compiler.Entry.eager = True

# The output of a command to stderr must not depend on whether its kernels are compiled already.
os.environ["FASTREC_NOTICE"] = "0"

# A busy machine must not fail a test.
settings.register_profile("fastrec", deadline=None)
settings.load_profile("fastrec")


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["fastrec"] = fastrec


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    """Forget the metrics that a test or an example declares."""
    metrics = declaration.ranking_metrics()
    before = dict(metrics)
    yield
    metrics.clear()
    metrics.update(before)
    declaration.forget_parsed()
