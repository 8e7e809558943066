"""Selection of the default tests, and assertions of helpers shown like those of tests."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
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


@pytest.fixture(params=["in memory", "in parts"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test once with files that fit in memory, and once with rows put into parts on disk."""
    if request.param == "in parts":
        monkeypatch.setattr("fastrec.files.job.COPIES", 1 << 60)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a string or bytes as they are, or a table as Parquet, into new folders too; return the path as a string."""
    pa, pq = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    numbers = itertools.count()

    def write_file(content: Any, name: str | None = None, row_group_size: int | None = None) -> str:
        path = tmp_path / (name or f"file{next(numbers)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            pq.write_table(pa.table(content), path, row_group_size=row_group_size)
        return str(path)

    return write_file


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
