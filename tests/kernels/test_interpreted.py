"""Small inputs are interpreted: they give the bits of compiled code, and no call waits for a compiler."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import engine
from fastrec.kernels.codes import BLOCK
from fastrec.report.significance import run_test
from fastrec.runtime import launcher
from fastrec.runtime.launcher import Launcher
from support.bits import mean_bits, user_bits
from support.list_calls import for_kind, random_log, recs_of, truth_of
from support.row_users import N_ITEMS, ORDER_OF_ROWS, TEXTS, USERS
from support.strategies import Log

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

N_USERS = BLOCK + 8
KINDS = ["plain", "integer", "graded"]
TIES = ["expected", "input", "worst", "best", "id_asc", "id_desc"]


@pytest.fixture
def assert_same_bits(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], fastrec.Report]], None]:
    """Check that a call gives the same report compiled and interpreted."""

    def check(call: Callable[[], fastrec.Report]) -> None:
        monkeypatch.setattr(Launcher, "way", "compiled")
        compiled = call()
        monkeypatch.setattr(Launcher, "way", "interpreted")
        found = call()
        monkeypatch.undo()
        assert mean_bits(found.estimates) == mean_bits(compiled.estimates)
        assert user_bits(found) == user_bits(compiled)
        assert {name: mean_bits(group) for by in found.groups.values() for name, group in by.items()} == {
            name: mean_bits(group) for by in compiled.groups.values() for name, group in by.items()
        }
        assert (found.users, found.data) == (compiled.users, compiled.data)

    return check


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_lists(assert_same_bits: Any, kind: str) -> None:
    n_users = 80
    log = random_log(kind, n_users, seed=5)
    texts = [ask.text for ask in for_kind(kind)]
    users = {"groups": {"half": np.arange(n_users) % 2}, "user_weight": np.arange(n_users) % 3 * 0.7}
    for more in ({}, users, {"min_gain": "any"}):
        assert_same_bits(
            lambda more=more: fastrec.evaluate(recs_of(log), truth_of(log), texts, n_items=100, per_user=True, **more)
        )


def test_gains_that_are_no_whole_numbers(assert_same_bits: Any) -> None:
    """Powers are the only function that libraries round differently."""
    draw = np.random.default_rng(8)
    log = random_log("plain", N_USERS, seed=6)
    graded = Log(log.recs, [[(item, float(9 * draw.random())) for item, _ in row] for row in log.truth])
    texts = ["ndcg(gain=exp2)", "dcg(gain=exp2)@3", "err(max_gain=9)", "rbp(p=0.37)", "ndcg(discount=log2_flat2)@9"]
    assert_same_bits(lambda: fastrec.evaluate(recs_of(graded), truth_of(graded), texts, per_user=True))


@pytest.mark.thorough
@pytest.mark.parametrize("duplicates", ["first", "miss"])
@pytest.mark.parametrize("ties", TIES)
def test_lists_that_are_put_right(assert_same_bits: Any, ties: str, duplicates: str) -> None:
    draw = np.random.default_rng(4)
    items = draw.integers(0, 50, N_USERS * 12)
    indptr = np.arange(N_USERS + 1) * 12
    # copies of an item with one score would be an error without a rule
    scores = draw.integers(0, 5, len(items)) + draw.permuted(np.tile(np.arange(12), (N_USERS, 1)), axis=1).ravel() // 3
    lists = (items % 13 if ties != "expected" else np.tile(np.arange(12), N_USERS), indptr, scores.astype(float))
    truth = (items % 17, indptr, draw.random(len(items)))
    seen = (draw.integers(0, 13, N_USERS), np.arange(N_USERS + 1))
    options = {"ties": ties, "duplicates": duplicates, "exclude": seen, "per_user": True}
    metrics = ["ndcg@5", "map", "err(max_gain=1)@3", "mrr"]
    assert_same_bits(lambda: fastrec.evaluate(lists, truth, metrics, **options))


@pytest.mark.thorough(except_for="True-float64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores(assert_same_bits: Any, weighted: bool, dtype: Any) -> None:
    call = USERS.call(slice(100), weighted=weighted, row_weights=weighted)
    call["scores"] = call["scores"].astype(dtype)
    texts = [*ORDER_OF_ROWS, *TEXTS[::3]]
    if weighted:
        texts = [*ORDER_OF_ROWS, "log_loss", "brier", "ece", "ece(bins=7, strategy=quantile)", "mae", "rmse"]
    call["row_groups"] = np.arange(len(call["labels"])) % 7
    assert_same_bits(lambda: fastrec.evaluate_scores(**{"metrics": texts, "n_items": N_ITEMS, "per_user": True} | call))


@pytest.mark.parametrize("weighted", [False, True])
def test_thresholds(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    call = USERS.call(slice(40))
    weights = USERS.call(slice(40), row_weights=True)["sample_weight"] if weighted else None
    arguments = call["labels"], call["scores"], [0.25, 0.5, 0.1]
    compiled = fastrec.confusion_matrix(*arguments, indptr=call["indptr"], sample_weight=weights)
    monkeypatch.setattr(Launcher, "way", "interpreted")
    found = fastrec.confusion_matrix(*arguments, indptr=call["indptr"], sample_weight=weights)
    for name in ("tp", "fp", "fn", "tn"):
        assert np.array_equal(getattr(found, name), getattr(compiled, name))


@pytest.mark.thorough(except_for="^(0|1|500)-")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [0, 1, 500, 3000])
def test_all_rows_together(monkeypatch: pytest.MonkeyPatch, n_rows: int, dtype: Any) -> None:
    draw = np.random.default_rng(n_rows)
    scores = np.round(draw.normal(size=n_rows), 2).astype(dtype)
    labels, weights = draw.random(n_rows) < 0.3, draw.choice([0.1, 0.3, 1e-9, 7.0], n_rows)

    def values() -> list[Any]:
        found: list[Any] = []
        for own in (None, weights, weights.astype(np.float32)) if n_rows else (None,):
            found += [fastrec.auc(labels, scores, sample_weight=own, max_fpr=limit) for limit in (None, 0.2)]
            found += fastrec.roc_curve(labels, scores, sample_weight=own) if labels.any() and not labels.all() else ()
        found += fastrec.bounded_auc(labels, scores)
        return [np.asarray(value).tobytes() for value in found]

    compiled = values()
    monkeypatch.setattr(Launcher, "way", "interpreted")
    assert values() == compiled


# Choice of the way


def run(code: str, folder: Path, **variables: str) -> Any:
    """Return the JSON that a fresh process with an empty cache prints."""
    environment = os.environ | {"FASTREC_CACHE_DIR": str(folder)} | variables
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


SMALL = "fastrec.evaluate([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1], [5, 6], [0]])"


def test_a_small_input_loads_no_compiler(tmp_path: Path) -> None:
    code = f"import json, sys, fastrec; {SMALL}; print(json.dumps(['numba' in sys.modules, 'scipy' in sys.modules]))"
    assert run(code, tmp_path) == [False, False]
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_large_input_is_compiled(tmp_path: Path) -> None:
    code = "import json, sys, numpy as np, fastrec; n = np.arange(150_001); fastrec.evaluate((n[1:], n), (n[1:], n))"
    assert run(f"{code}; print(json.dumps('numba' in sys.modules))", tmp_path)
    assert list(tmp_path.iterdir())


def test_a_kernel_is_compiled_once_interpreting_it_has_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs a kernel longer if its code is not on disk."""
    monkeypatch.setattr(Launcher, "way", "")
    monkeypatch.setattr(launcher, "LOADING", 100)
    monkeypatch.setattr(launcher, "COMPILING", 200)
    for on_disk, ways in (True, [True, True, False, False]), (False, [True, True, True, False]):
        monkeypatch.setattr(launcher, "_is_on_disk", lambda kernel, on_disk=on_disk: on_disk)
        monkeypatch.setattr(launcher, "_work_done", {})
        assert [launcher._is_interpreted((print,), work) for work in (40, 60, 100, 1)] == ways
        assert not launcher._is_interpreted((max, print), 201)


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_resampling(monkeypatch: pytest.MonkeyPatch, test: str) -> None:
    differences = np.random.default_rng(0).normal(size=4_100)
    options = {"level": 0.95, "n_rounds": 3, "seed": 5, "n_threads": 1}
    monkeypatch.setattr(Launcher, "way", "compiled")
    compiled = run_test(differences, test, **options)
    monkeypatch.setattr(Launcher, "way", "interpreted")
    assert run_test(differences, test, **options) == compiled


@pytest.mark.parametrize("sample", ["uniform", "popularity"])
def test_samples_of_a_model(assert_same_bits: Any, sample: str) -> None:
    draw = np.random.default_rng(12)
    scores = draw.integers(0, 30, (60, 80)).astype(float)
    truth, seen = ([draw.permutation(80)[: draw.integers(0, most)].tolist() for _ in range(60)] for most in (6, 70))
    call: dict[str, Any] = {"exclude": seen, "negatives": 12, "seed": 2**62, "sample": sample, "per_user": True}
    for correct in ("none", "rank") if sample == "uniform" else ("none",):
        assert_same_bits(
            lambda correct=correct: fastrec.evaluate_model(
                scores, truth, ["recall@5", "ndcg@5", "arhr", "dcg"], correct=correct, **call
            )
        )


def expected_err(tied: int, gains: list[int], max_gain: int, k: int) -> float:
    """Return the mean of err@k over all orders of tied items, some of which have gains, in exact fractions."""
    goes_on = [Fraction(math.comb(tied - len(gains), m)) for m in range(k + 1)]
    stops = [Fraction(0)] * (k + 1)
    for stop in (Fraction(2**gain - 1, 2**max_gain) for gain in gains):
        for m in range(k, 0, -1):
            stops[m] += stops[m - 1] * (1 - stop) + stop * goes_on[m]
            goes_on[m] += goes_on[m - 1] * (1 - stop)
        stops[0] += stop * goes_on[0]
    return float(sum(stops[m] / (tied * math.comb(tied - 1, m) * (m + 1)) for m in range(min(k, tied))))


@pytest.mark.parametrize("k", [1, 3, 10, 60])
@pytest.mark.parametrize(("tied", "n_gains"), [(1, 1), (2, 1), (5, 4), (30, 1), (30, 29), (60, 60), (300, 40)])
def test_expected_err_of_tied_items(tied: int, n_gains: int, k: int) -> None:
    draw = np.random.default_rng(tied)
    for max_gain, high in ((1, 1), (4, 4), (30, 2)):
        gains = draw.integers(1, high + 1, n_gains)
        lists, truth = (np.arange(tied), [0, tied], np.zeros(tied)), (np.arange(n_gains), [0, n_gains], gains * 1.0)
        text = f"err(max_gain={max_gain})@{k}"
        found = fastrec.evaluate(lists, truth, [text, "recall"])[text]
        assert found == pytest.approx(expected_err(tied, gains.tolist(), max_gain, k), rel=1e-13)
        assert found == fastrec.evaluate(lists, truth, text)[text]


@pytest.mark.parametrize(
    ("metric", "more"), [("err(max_gain=1)@9", 400 * 9), ("err(max_gain=1)", 400 * 400), ("mrr", 0)]
)
def test_work_on_ties_decides_what_is_interpreted(metric: str, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def launch(driver: Any, n_tasks: int, *arguments: Any, work: int, n_threads: int) -> None:
        asked.append(work)
        launcher.launch(driver, n_tasks, *arguments, work=work, n_threads=n_threads)

    monkeypatch.setattr(engine, "launch", launch)
    for scores in (-np.arange(400.0), np.zeros(400)):
        fastrec.evaluate((np.arange(400), [0, 400], scores), ([5], [0, 1]), metric)
    assert asked[1] - asked[0] == more
