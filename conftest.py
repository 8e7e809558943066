"""Settings of every test and example: doctests use `fastrec` without importing it."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

import fastrec
from fastrec.metrics import declaration
from fastrec.runtime import launcher
from fastrec.runtime.launcher import Launcher

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# The output of a command to stderr must not depend on whether its kernels are compiled already.
os.environ["FASTREC_NOTICE"] = "0"

# A busy machine must not fail a test.
settings.register_profile("fastrec", deadline=None)
settings.load_profile("fastrec")


def pytest_collection_finish() -> None:
    """Compile kernels from here on, and collect garbage rarely.

    Until then Python runs the kernels of modules that evaluate something at their import, and no module waits for the
    compiler; test_interpreted.py checks that both ways give the same bits. The compiler leaves much garbage, and every
    search for it would visit the many objects of the collected tests.
    """
    Launcher.way = "compiled"
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session", autouse=True)
def _one_worker_compiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have one worker of pytest-xdist compile a kernel; the others wait for it, then read the compiled code.

    Otherwise two workers compile most kernels twice, at the same time.
    """
    if fcntl is None or "PYTEST_XDIST_WORKER" not in os.environ or os.environ.get("FASTREC_CACHE") == "0":
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent / "compiling"  # the same for all workers of this run
    folder.mkdir(exist_ok=True)
    load = launcher._load

    def load_in_turn(kernel: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with open(folder / kernel.__name__, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            return load(kernel, *arguments, **options)

    launcher._load = load_in_turn
    yield
    launcher._load = load


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["fastrec"] = fastrec


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    """Forget the metrics and formats of files that a test or an example declares."""
    before = {family: dict(metrics) for family, metrics in declaration.DECLARED.items()}
    yield
    for family, metrics in declaration.DECLARED.items():
        metrics.clear()
        metrics.update(before[family])
    declaration.forget_parsed()
    registry = sys.modules.get("fastrec.files.formats.registry")
    if registry is not None:
        foreign = [name for name, own in registry.FORMATS.items() if not type(own).__module__.startswith("fastrec.")]
        for name in foreign:
            del registry.FORMATS[name]
