"""What every test and example starts from: doctests use `fastrec` without importing it."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import fastrec
from fastrec.metrics import declaration
from fastrec.runtime import compiler

# Tests speak of compiled kernels; test_interpreted.py says that interpreted ones give the same bits.
compiler.Entry.eager = True

# What a command writes to stderr must not depend on whether its kernels were compiled before.
os.environ["FASTREC_NOTICE"] = "0"

# A machine that is busy with other things makes no test wrong.
settings.register_profile("fastrec", deadline=None)
settings.load_profile("fastrec")


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["fastrec"] = fastrec


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    """Metrics that a test or an example declares are gone after it."""
    metrics = declaration.ranking_metrics()
    before = dict(metrics)
    yield
    metrics.clear()
    metrics.update(before)
    declaration.forget_parsed()
