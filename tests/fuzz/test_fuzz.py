"""A few seconds of `scripts/fuzz`, and checks that it notices crashes, hangs and wrong values."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz import calls as fuzz_calls
from fuzz import frames as fuzz_frames
from fuzz import readers as fuzz_readers
from fuzz import reports as fuzz_reports
from fuzz.evaluators import Evaluators, of_machine

ROOT = Path(__file__).parents[2]
SECONDS = 3  # of each target


def fuzz(*arguments: object, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "fuzz"), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(path), *sys.path])}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "target",
    [
        *("calls", "frames", "reports", "items", "models", "positions", "policy", "users", "threads", "readers"),
        *("arrow", "columns", "sizes", "duels", "segments", "recipes", "intervals"),
    ],
)
def test_random_cases(target: str) -> None:
    """Every run tries other seeds, so that years of runs try many."""
    first = int.from_bytes(os.urandom(4), "big")
    done = fuzz("--target", target, "--seed", first, "--cases", 10**9, "--seconds", SECONDS, "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 crashes, 0 hangs, 0 wrong values, 0 foreign errors" in done.stdout


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_evaluators_in_any_order_of_steps() -> None:
    run_state_machine_as_test(Evaluators, settings=settings(of_machine(40), derandomize=True))


def test_readers_guided_by_coverage() -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("no atheris: pip install 'fastrec-eval[fuzz]'")
    done = fuzz("--target", "coverage", "--cases", 300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was found" in done.stdout


TARGET = """
import os, signal, time

class Finding(Exception):
    kind = "wrong value"

def run_case(seed):
    if seed == 13:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 16:
        time.sleep(1000)
    if seed == 19:
        raise Finding("two and two are five")
    return seed % 2 == 0

def describe(seed):
    return f"case {seed}"
"""


@pytest.mark.thorough
def test_a_crash_a_hang_and_a_wrong_value_are_found_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "broken_target.py").write_text(TARGET)
    done = fuzz("--target", "broken_target", "--seed", 10, "--cases", 20, "--timeout", 5, path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "seed 13: crash, status -11" in done.stdout
    assert "seed 16: hang" in done.stdout
    assert "seed 19: two and two are five" in done.stdout
    summary = done.stdout.splitlines()[-1]
    assert summary.startswith("broken_target from seed 10: 20 cases")
    assert summary.endswith("1 crashes, 1 hangs, 1 wrong values, 0 foreign errors")
    again = fuzz("--target", "broken_target", "--replay", 19, path=tmp_path)
    assert again.returncode == 1
    assert "case 19" in again.stdout


@pytest.mark.parametrize("target", [fuzz_calls, fuzz_frames])
def test_a_call_depends_on_its_seed_alone(target: ModuleType) -> None:
    shown = [target.describe(seed) for seed in range(60)]
    assert [target.describe(seed) for seed in reversed(range(60))] == shown[::-1]


def test_what_is_read_depends_on_its_seed_alone() -> None:
    drawn = [fuzz_readers.draw_case(seed) for seed in range(60)]
    assert [fuzz_readers.draw_case(seed) for seed in reversed(range(60))] == drawn[::-1]
    assert len({name for name, _ in drawn}) > 5


@pytest.mark.thorough
def test_cases_are_of_all_kinds() -> None:
    """Half of them are hostile; their requests are of every sort."""
    cases = [fuzz_calls.draw_case(seed) for seed in range(3000)]
    verdicts = [case.verdict for case, _ in cases]
    for verdict in (fuzz_calls.EQUAL, fuzz_calls.REFUSED, fuzz_calls.EITHER):
        assert verdicts.count(verdict) > 300
    assert 600 < sum(interpreted for _, interpreted in cases) < 900
    assert {case.function.__name__ for case, _ in cases} > {"evaluate", "evaluate_scores", "auc", "confusion_matrix"}
    assert any(case.n_users > 512 for case, _ in cases)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_cases_of_frames_and_reports_are_of_all_kinds() -> None:
    frames = [fuzz_frames.draw_case(seed)[0] for seed in range(600)]
    verdicts = [case.verdict for case in frames]
    assert all(verdicts.count(verdict) > 60 for verdict in (fuzz_calls.EQUAL, fuzz_calls.REFUSED, fuzz_calls.EITHER))
    assert len({type(next(iter(case.arguments.values()))).__module__.split(".")[0] for case in frames}) > 5
    reports = [fuzz_reports.draw_case(seed) for seed in range(300)]
    used = {"compare", "evaluate_by_items", "explain", "segment_items", "segment_users", "use"}
    assert {case.function.__name__ for case in reports} == used


@pytest.mark.thorough
def test_a_damaged_footer_of_parquet_that_ended_the_process() -> None:
    """PyArrow aborts if the sizes in a footer do not fit the levels of a string column."""
    done = fuzz("--target", "readers", "--replay", 198008500)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "refused"), done.stderr
