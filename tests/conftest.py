"""Selection of the default tests, and assertions of helpers shown like those of tests."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("support", "fuzz")
DEFAULT = "not thorough"  # as in pyproject.toml


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a headless browser; see `support.browser`."""
    from support.browser import Browser

    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def pytest_configure(config: pytest.Config) -> None:
    """Run every test that is named by `::`, thorough or not: `pytest tests/files/test_streams.py::test_logs`."""
    if config.option.markexpr == DEFAULT and any("::" in argument for argument in config.args):
        config.option.markexpr = ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a few cases of a thorough test in the default run: those with an id that matches `except_for`."""
    kept = {}
    for item in items:
        mark = item.get_closest_marker("thorough")
        if mark is None or "except_for" not in mark.kwargs:
            continue
        name = item.nodeid.partition("[")[0]
        kept.setdefault(name, False)
        if re.search(mark.kwargs["except_for"], item.callspec.id):
            item.own_markers = [each for each in item.own_markers if each.name != "thorough"]
            kept[name] = True
    if config.option.markexpr == DEFAULT and not all(kept.values()):
        raise pytest.UsageError(f"except_for finds no case of {[name for name, found in kept.items() if not found]}")
