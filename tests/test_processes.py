"""What a process goes through: threads, forks, cold starts at once, folders that cannot be written. In subprocesses."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COLD_STARTS = int(os.environ.get("FASTREC_TEST_COLD_STARTS", "4"))  # .ci/full asks for more

MANY = """
import numpy as np, fastrec
from fastrec.kernels.jit import Entry
Entry.eager = True
n = 6000
items = np.tile(np.arange(100, dtype=np.int32), n)
indptr = np.arange(n + 1) * 100
def many(**call):
    return fastrec.evaluate((items, indptr), (items, indptr), ["ndcg@10", "recall@10"], **call)
def few():
    return fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["recall@3"])["recall@3"]
"""


def run(code, *, cwd=None, **environment):
    full = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    for name in [name for name, value in full.items() if value is None]:
        del full[name]
    return subprocess.run(
        [sys.executable, "-c", MANY + code], env=full, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def check(result, wanted):
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == wanted.split()


def test_no_cache_at_all():
    check(run("print(few())", FASTREC_CACHE="0"), "0.5")


def test_what_one_process_compiled_serves_the_next_however_it_is_called(tmp_path):
    for code in ("few()", "many(n_threads=2)", "few()"):
        check(run(code, FASTREC_CACHE_DIR=str(tmp_path), NUMBA_NUM_THREADS="2"), "")
    kept = Counter(path.parent.name for path in tmp_path.rglob("*.nbc"))
    assert kept == {"evaluate_bin-int32-plain": 1, "evaluate_bins-int32-plain": 1, "evaluate_bin-int64-plain": 1}


def test_a_parallel_driver_is_compiled_when_it_is_used_again(tmp_path):
    code = "Entry.eager = False; many(n_threads=2); " * 2
    check(run("Entry.eager = False; many(n_threads=2)", FASTREC_CACHE_DIR=str(tmp_path)), "")
    assert not list(tmp_path.rglob("evaluate_bins*/*.nbc"))
    check(run(code, FASTREC_CACHE_DIR=str(tmp_path)), "")
    assert list(tmp_path.rglob("evaluate_bins*/*.nbc"))


def test_no_home_and_nothing_to_write_to(tmp_path):
    locked = tmp_path / "file"
    locked.write_text("a file where a folder should be")
    settings = {"HOME": str(locked), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None, "FASTREC_CACHE_DIR": str(locked)}
    check(run("print(few())", **settings), "0.5")


def test_a_read_only_package_without_a_home(tmp_path):
    site, locked = tmp_path / "site", tmp_path / "file"
    locked.write_text("a file where a folder should be")
    shutil.copytree(ROOT / "fastrec", site / "fastrec", ignore=shutil.ignore_patterns("__pycache__"))
    files = sorted(site.rglob("*"))
    for path in files:
        path.chmod(path.stat().st_mode & ~0o222)
    settings = {"HOME": None, "XDG_CACHE_HOME": str(locked), "NUMBA_CACHE_DIR": None, "FASTREC_CACHE_DIR": None}
    code = "print(few(), fastrec.__file__)"
    result = run(code, cwd=tmp_path, PYTHONPATH=str(site), PYTHONDONTWRITEBYTECODE="1", **settings)
    for path in files:
        path.chmod(path.stat().st_mode | 0o200)
    check(result, f"0.5 {site / 'fastrec' / '__init__.py'}")
    assert sorted(site.rglob("*")) == files, "nothing is written into the package"


def test_cold_starts_at_once_share_an_empty_cache(tmp_path):
    code = MANY + "print(few(), many(n_threads=2)['recall@10'])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(COLD_STARTS)
    ]
    assert [process.communicate(timeout=600)[0].split() for process in started] == [["0.5", "0.1"]] * COLD_STARTS
    assert not list(tmp_path.rglob("*.tmp"))
    assert list(tmp_path.rglob("*.nbc")), "compiled code was kept"
    check(run("print(few())", FASTREC_CACHE_DIR=str(tmp_path)), "0.5")


THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numba
with ThreadPoolExecutor(8) as pool:
    values = set(pool.map(lambda _: many(n_threads=2)["recall@10"], range(40)))
print(values == {0.1}, numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS)
"""


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_several_python_threads_at_once(layer):
    result = run(THREADS, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")
    if layer == "omp" and "No threading layer could be loaded" in result.stderr:
        pytest.skip("Numba has no OpenMP layer here")
    check(result, "True True")


MIXED = """
from concurrent.futures import ThreadPoolExecutor
weights, groups = np.arange(1, n + 1) % 5, np.arange(n) % 3
def one(i):
    gains = () if i % 2 else (np.arange(len(items)) % 4 + 1.0,)
    report = fastrec.evaluate(
        (items, indptr), (items, indptr, *gains), [f"ndcg@{i % 7 + 1}", f"map@{i % 5 + 1}", "dcg"],
        user_weight=weights if i % 3 else None, groups=groups if i % 4 else None, n_threads=i % 3 + 1,
    )
    return repr(report.to_dict())
alone = [one(i) for i in range(24)]
with ThreadPoolExecutor(8) as pool:
    print(list(pool.map(one, range(24))) == alone, len(set(alone)))
"""


@pytest.mark.parametrize("layer", ["workqueue", None])
def test_different_calls_at_once_do_not_mix(layer):
    check(run(MIXED, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2"), "True 24")


FORK = """
import os, warnings
warnings.simplefilter("ignore")
before = many(n_threads=2)["ndcg@10"]
child = os.fork()
if child == 0:
    os._exit(0 if many(n_threads=2)["ndcg@10"] == before else 3)
print(os.waitpid(child, 0)[1], many(n_threads=2)["ndcg@10"] == before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("layer", ["workqueue", None])
def test_a_forked_child_evaluates(layer):
    check(run(FORK, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2"), "0 True")


GLOBAL = """
import numba, os, sys, threading
numba.set_num_threads(1)
def state():
    layers = (numba.threading_layer(), numba.config.THREADING_LAYER, numba.get_num_threads(), numba.config.CACHE_DIR)
    return layers, np.geterr(), threading.active_count(), dict(os.environ)
before = state()
many(n_threads=2); few(); many(per_user=True, n_threads=1)
print(before == state())
"""


def test_nothing_global_is_changed():
    check(run(GLOBAL, NUMBA_NUM_THREADS="2"), "True")


@pytest.mark.parametrize(("value", "exit_code"), [("3", 0), ("0", 1), ("two", 1), ("²", 1)])
def test_the_default_number_of_threads(value, exit_code):
    result = run("few()", FASTREC_NUM_THREADS=value)
    assert result.returncode == exit_code
    if exit_code:
        assert result.stderr.strip().splitlines()[-1].startswith("fastrec.exceptions.InputError: FASTREC_NUM_THREADS")


def test_import_leaves_numba_alone():
    code = "import sys, fastrec; assert 'numba' not in sys.modules; print(fastrec.__version__ != '')"
    check(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False), "True")
