"""Doctests use `fastrec` without importing it."""

import pytest

import fastrec


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["fastrec"] = fastrec
