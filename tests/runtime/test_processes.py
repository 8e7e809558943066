"""Processes: threads, forks, simultaneous cold starts, read-only folders. In subprocesses."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections import Counter
from types import ModuleType

import numpy as np
import pytest

from fastrec.files import resources
from fastrec.runtime import limits as process_limits
from fastrec.runtime import threads
from support.processes import MANY, ROOT, check, run

COLD_STARTS = int(os.environ.get("FASTREC_TEST_COLD_STARTS", "4"))  # .ci/full sets more


@pytest.mark.thorough
def test_no_cache_at_all():
    check(run("print(few())", FASTREC_CACHE="0"), "0.5")


@pytest.mark.thorough
def test_what_one_process_compiled_serves_the_next_however_it_is_called(tmp_path):
    for code in ("few()", "many(n_threads=2)", "few()"):
        check(run(code, FASTREC_CACHE_DIR=str(tmp_path), NUMBA_NUM_THREADS="2"), "")
    kept = Counter(path.name.partition("-")[0] for path in tmp_path.rglob("*.nbc"))
    ids = {"hits.find_block_hits": 2, "users.evaluate_users": 2}  # of either width
    assert kept == {"row_programs.run_block": 1, **ids}


def test_where_numba_is_told_not_to_compile():
    check(run("print(few())", NUMBA_DISABLE_JIT="1"), "0.5")


@pytest.mark.thorough
def test_no_home_and_nothing_to_write_to(tmp_path):
    locked = tmp_path / "file"
    locked.write_text("a file where a folder should be")
    settings = {"HOME": str(locked), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None, "FASTREC_CACHE_DIR": str(locked)}
    check(run("print(few())", **settings), "0.5")


@pytest.mark.thorough
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
    assert sorted(site.rglob("*")) == files, "the call writes nothing into the package"


@pytest.mark.thorough
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
def call(i):
    return (many(n_threads=2)["recall@10"], 0.1) if i % 25 == 0 else (few(), 0.5)
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(call, range(1000)))
print(all(value == wanted for value, wanted in found), numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS)
print(numba.threading_layer())
"""


def on_layer(layer, code):
    """Run where Numba has to use a threading layer; skip if it cannot be loaded."""
    # pip puts the library of oneTBB here, and Numba looks for it elsewhere
    libraries = os.pathsep.join([f"{sys.prefix}/lib", *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    result = run(code, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2", LD_LIBRARY_PATH=libraries)
    if layer != "workqueue" and "No threading layer could be loaded" in result.stderr:
        pytest.skip(f"Numba has no {layer} layer here")
    return result


LAYERS = pytest.mark.parametrize("layer", ["workqueue", "omp", "tbb"])


@pytest.mark.thorough(except_for="workqueue")
@LAYERS
def test_several_python_threads_at_once(layer):
    check(on_layer(layer, THREADS), f"True True {layer}")


def test_a_call_while_another_thread_imports_multiprocessing(monkeypatch):
    monkeypatch.setitem(sys.modules, "multiprocessing.process", ModuleType("multiprocessing.process"))
    assert threads.was_forked() is False


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


@pytest.mark.thorough
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


FORK_BEFORE_A_CALL = """
import numba, os
@numba.njit(parallel=True)
def double(values):
    for i in numba.prange(len(values)):
        values[i] *= 2
double(np.ones(10**6))
child = os.fork()
if child == 0:
    os._exit(0 if many(n_threads=2)["ndcg@10"] == 1.0 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_of_a_process_that_used_the_threads_of_numba_but_not_fastrec():
    check(run(FORK_BEFORE_A_CALL, NUMBA_NUM_THREADS="2"), "0")


FORK_AND_COMPILE = """
import numba, os, threading, warnings
warnings.simplefilter("ignore")
few()
child = os.fork()
if child == 0:
    own = threading.Thread(target=lambda: numba.njit(lambda number: number + 1)(1), daemon=True)
    own.start()
    own.join(60)
    os._exit(3 if own.is_alive() else 0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_any_thread_of_a_forked_child_compiles():
    """The lock of the compiler, which the parent holds during the fork, belongs to no thread of the child."""
    check(run(FORK_AND_COMPILE), "0")


FORK_DURING = """
import numba, os, threading, time, warnings
from fastrec.runtime import launcher
warnings.simplefilter("ignore")
kept = []  # no process drops code, and to do so would take a lock of LLVM
def call():
    kept.append(list(launcher._compiled.values()))
    launcher._compiled.clear()
    launcher._load.cache_clear()  # so that kernels are loaded each time
    return many(n_threads=2).to_json(), few()
wanted, going = call(), True
def keep_calling():
    while going:
        assert call() == wanted
thread = threading.Thread(target=keep_calling)
thread.start()
children = set()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if call() == wanted else 3)
    children.add(child)
    time.sleep(0.003)
going, until = False, time.monotonic() + 120
thread.join()
ended = []
while children and time.monotonic() < until:
    for child in list(children):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            children.remove(child)
            ended.append(status)
    time.sleep(0.01)
for child in children:
    os.kill(child, 9)
print(ended == [0] * 20)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@LAYERS
def test_a_fork_during_a_call_of_another_thread(layer):
    result = on_layer(layer, FORK_DURING)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-1] == "True"  # oneTBB writes a line at each fork


FORKS_AT_ONCE = """
import os, threading, time, warnings
from fastrec.runtime.threads import _Forks
warnings.simplefilter("ignore")
few()
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
def end(threads):
    for thread in threads:
        thread.join(30)
    return not any(thread.is_alive() for thread in threads)
threads = [threading.Thread(target=work, daemon=True) for work in (fork, fork, fork, many)]
with _Forks.busy:  # as if this thread compiled
    for thread in threads[:3]:
        thread.start()
    time.sleep(0.3)
print(end(threads[:3]), flush=True)
threads[3].start()
print(end(threads), flush=True)
os._exit(0)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_that_fork_at_once():
    """Each fork takes the locks of the hook, and none keeps them."""
    check(run(FORKS_AT_ONCE, before="import logging"), "True True")  # otherwise its hook would run forks one by one


LOADING = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
Launcher.way = ""
few()
Launcher.way = "compiled"
class Slowly:
    def find_spec(self, name, *_):
        if name == "llvmlite.binding":
            seen.set()
            time.sleep(0.5)
seen = threading.Event()
sys.meta_path.insert(0, Slowly())
thread = threading.Thread(target=many)
thread.start()
assert seen.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if many()["ndcg@10"] == 1.0 else 3)
thread.join()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_loads_the_compiler():
    check(run(LOADING), "0")


IMPORTING = """
import os, signal, sys, threading, time
from importlib.machinery import SourceFileLoader
Launcher.way = ""  # the compiler imports all parts of NumPy
begun = threading.Event()
def array():
    return len(np.ma.array([2, 1]))  # as np.unique and others do in some versions
def score():
    return 2 * int(fastrec.evaluate_scores([1, 0], [0.5, 0.25], [0, 2], ["gauc"])["gauc"])
execute = SourceFileLoader.exec_module
def slowly(self, module):
    if module.__name__ == LATE:
        begun.set()
        time.sleep(1)
    execute(self, module)
few()
SourceFileLoader.exec_module = slowly
assert LATE not in sys.modules
threading.Thread(target=WORK).start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # the child ends if it waits for ever
    os._exit(WORK())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.skipif(int(np.__version__.partition(".")[0]) < 2, reason="NumPy 1 imports all of its parts at once")
def test_a_fork_while_another_thread_imports_a_part_of_numpy():
    check(run(IMPORTING.replace("LATE", "'numpy.ma.core'").replace("WORK", "array")), "2")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_imports_what_scored_rows_need():
    check(run(IMPORTING.replace("LATE", "'fastrec.scored.sorting'").replace("WORK", "score")), "2")


OUTLIVING = """
import threading
def work():
    threading.main_thread().join()
    print(few(), many(n_threads=2)["ndcg@10"], fastrec.auc(np.arange(10**6) % 2, np.arange(10**6.), n_threads=2) > 0)
many(n_threads=2) if WARM else None
threading.Thread(target=work).start()
"""


@pytest.mark.thorough(except_for="False-None")
@pytest.mark.parametrize("layer", ["workqueue", None])
@pytest.mark.parametrize("warm", [True, False])
def test_a_thread_that_outlives_the_main_one(warm, layer):
    check(run(OUTLIVING.replace("WARM", str(warm)), NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2"), "0.5 1.0 True")


LAST_WORDS = """
import atexit
atexit.register(lambda: print(many(n_threads=2)["ndcg@10"]))
"""


@pytest.mark.thorough
def test_a_call_while_the_program_ends():
    check(run(LAST_WORDS, NUMBA_NUM_THREADS="2"), "1.0")


NO_THREADS = """
import threading
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
print(few(), many(n_threads=2)["ndcg@10"], fastrec.auc(np.arange(10**6) % 2, np.arange(10**6.), n_threads=2) > 0)
"""


@pytest.mark.thorough
def test_where_no_thread_can_be_started(tmp_path):
    files = f"""
import pyarrow as pa, pyarrow.csv, pyarrow.parquet
lists = pa.table({{"user_id": np.arange(40_000) // 2, "item_id": np.arange(40_000), "rank": np.arange(40_000) % 2}})
pa.parquet.write_table(lists, "{tmp_path}/lists.parquet")
pa.csv.write_csv(lists, "{tmp_path}/lists.csv")
print(*(fastrec.evaluate_files(*[f"{tmp_path}/lists.{{kind}}"] * 2, "mrr")["mrr"] for kind in ("parquet", "csv")))
"""
    result = run(NO_THREADS + files, NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="2")
    check(result, "0.5 1.0 True 1.0 1.0")


@pytest.mark.thorough
@pytest.mark.parametrize("layer", ["no such layer", "tbb"])
def test_a_threading_layer_that_cannot_be_had(layer):
    check(run("print(many(n_threads=2)['ndcg@10'])", NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2"), "1.0")


POOL = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, fastrec
def work(n_threads):
    items = np.tile(np.arange(100, dtype=np.int32), 6000)
    indptr = np.arange(6001) * 100
    return fastrec.evaluate((items, indptr), (items, indptr), "ndcg@10", per_user=True, n_threads=n_threads)
if __name__ == "__main__":
    here = work(2)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        for there in pool.map(work, [1, 2, 2, 1]):
            assert there.to_json() == here.to_json()
            assert (there.per_user["ndcg@10"] == here.per_user["ndcg@10"]).all()
    print("fine")
"""


@pytest.mark.thorough(except_for="^fork$")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    (tmp_path / "job.py").write_text(POOL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, tmp_path / "job.py", method]
    check(subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False), "fine")


SUITE = """
import fastrec, pytest
from fastrec.runtime.launcher import Launcher
Launcher.way = "compiled"
@pytest.mark.parametrize("i", range(8))
def test_evaluates(i):
    assert fastrec.evaluate([[i, 10, 11]], [[i, 12]], ["recall@3"])["recall@3"] == 0.5
"""


@pytest.mark.thorough
def test_a_suite_on_several_workers_with_an_empty_cache(tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_suite.py").write_text(SUITE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", tmp_path]
    result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "8 passed" in result.stdout, result.stdout


BESIDE = """
import threading, numba
from numba import objmode, prange
numbers = np.ones(2_000_000)
@numba.njit(parallel=True, nogil=True)
def own(numbers):
    found = 0.0
    for i in prange(len(numbers)):
        found += numbers[i] ** 0.5
    return found
own(numbers)
going, sums = True, []
def keep_calling():
    while going:
        sums.append(own(numbers))
thread = threading.Thread(target=keep_calling)
thread.start()
values = {many(n_threads=2)["recall@10"] for _ in range(50)}
going = False
thread.join()
print(values == {0.1}, len(sums) > 5, set(sums) == {2e6})

def ours():
    return many(n_threads=2)["recall@10"]
@numba.njit(parallel=True)
def between(numbers):
    found = 0.0
    for i in prange(len(numbers)):
        found += numbers[i]
    with objmode(value="float64"):
        value = ours()
    for i in prange(len(numbers)):
        found += value * numbers[i]
    return found
@numba.njit(parallel=True)
def within(n):
    found = 0.0
    for i in prange(n):
        with objmode(value="float64"):
            value = ours()
        found += value
    return found
print(round(between(numbers)), round(within(6), 9))
"""


@pytest.mark.thorough
@LAYERS
def test_a_parallel_program_of_the_users_own(layer):
    """A separate parallel kernel runs beside our calls, and calls us from within."""
    check(on_layer(layer, BESIDE), "True True True 2200000 0.6")


FEW_PROCESSORS = """
from fastrec.runtime.limits import resolve_threads
if {pinned}:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
print(resolve_threads(None), many()["recall@10"], many(n_threads=4)["recall@10"], few())
"""


def test_one_thread_of_numba():
    check(run("import os" + FEW_PROCESSORS.format(pinned=False), NUMBA_NUM_THREADS="1"), "1 0.1 0.1 0.5")


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_one_processor_by_affinity():
    check(run("import os" + FEW_PROCESSORS.format(pinned=True), NUMBA_NUM_THREADS=None), "1 0.1 0.1 0.5")


def of_version_1(quota):
    return {"cpu.cfs_quota_us": str(quota), "cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("own", "limits", "granted"),
    [
        ("0::/", {"": {"cpu.max": "150000 100000\n"}}, 2),
        ("0::/", {"": {"cpu.max": "50000 100000\n"}}, 1),
        ("0::/", {"": {"cpu.max": "max 100000\n"}}, None),
        ("0::/user/job", {"": {"cpu.max": "max 100000\n"}, "user": {"cpu.max": "300000 100000"}}, 3),
        ("0::/user/job", {"user": {"cpu.max": "900000 100000"}, "user/job": {"cpu.max": "400000 100000"}}, 4),
        ("0::/elsewhere", {"": {"cpu.max": "200000 100000"}}, 2),
        ("4:memory:/\n2:cpu,cpuacct:/job", {"cpu/job": of_version_1(250_000)}, 3),
        ("2:cpu,cpuacct:/job", {"cpu/job": of_version_1(-1)}, None),
        ("2:cpu:/docker/x", {"cpu": of_version_1(200_000)}, 2),
        ("0::/", {"": {"cpu.max": "no numbers"}}, None),
        ("nonsense", {}, None),
        (None, {}, None),
    ],
)
def test_the_quota_of_a_control_group(tmp_path, monkeypatch, own, limits, granted):
    pretend_groups(tmp_path, monkeypatch, own, limits)
    assert process_limits._quota.__wrapped__() == (1 << 30 if granted is None else granted)


def pretend_groups(folder, monkeypatch, own, limits):
    """Return the control groups of this process, and the files of some."""
    for group, texts in limits.items():
        made = folder / "groups" / group
        made.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (made / name).write_text(text)
    if own is not None:
        (folder / "own").write_text(own + "\n")
    monkeypatch.setattr(process_limits, "OWN_GROUPS", folder / "own")
    monkeypatch.setattr(process_limits, "CONTROL_GROUPS", folder / "groups")


MB = 1_000_000


@pytest.mark.parametrize(
    ("own", "limits", "granted"),
    [
        ("0::/", {"": {"memory.max": f"{300 * MB}\n"}}, 300 * MB),
        ("0::/", {"": {"memory.max": "max\n"}}, None),
        ("0::/user/job", {"user": {"memory.max": f"{200 * MB}"}, "user/job": {"memory.max": f"{300 * MB}"}}, 200 * MB),
        ("0::/user/job", {"user/job": {"memory.max": f"{300 * MB}", "memory.high": f"{100 * MB}"}}, 100 * MB),
        ("4:memory:/docker/x", {"memory": {"memory.limit_in_bytes": f"{300 * MB}"}}, 300 * MB),
        ("4:memory:/a\n2:cpu:/b", {"memory/a": {"memory.limit_in_bytes": f"{400 * MB}"}}, 400 * MB),
        ("4:memory:/a\n2:cpu:/b", {"memory/b": {"memory.limit_in_bytes": f"{400 * MB}"}}, None),
        ("4:memory:/", {"memory": {"memory.limit_in_bytes": "9223372036854771712"}}, None),
        ("0::/", {"": {"memory.max": "no number"}}, None),
        (None, {}, None),
    ],
)
def test_the_memory_of_a_control_group(tmp_path, monkeypatch, own, limits, granted):
    pretend_groups(tmp_path, monkeypatch, own, limits)
    everything = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert resources.installed_memory() == (everything if granted is None else granted)
    assert resources.Resources().limit() == resources.installed_memory() // 2


@pytest.mark.thorough
def test_a_real_control_group():
    """Half a processor gives one thread, and the call works."""
    group = process_limits.CONTROL_GROUPS / "cpu" / f"fastrec-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        pytest.skip(f"no control group of our own: {error}")
    try:
        code = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n"
        check(run(code + FEW_PROCESSORS.format(pinned=False), NUMBA_NUM_THREADS=None), "1 0.1 0.1 0.5")
    finally:
        group.rmdir()


@pytest.mark.thorough
def test_busy_processors():
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        check(run("print({many(n_threads=2)['recall@10'] for _ in range(5)})"), "{0.1}")
    finally:
        for process in spinning:
            process.kill()
            process.wait()


GLOBAL = """
import numba, os, sys, threading
numba.set_num_threads(1)
def state():
    layers = (numba.threading_layer(), numba.config.THREADING_LAYER, numba.get_num_threads(), numba.config.CACHE_DIR)
    return layers, np.geterr(), threading.active_count(), dict(os.environ)
before = state()
Launcher.way = ""  # Python runs small calls, and NumPy's error state applies there
for ours in (np.geterr(), dict.fromkeys(np.geterr(), "raise")):
    with np.errstate(**ours):
        few()
        print(np.geterr() == ours)
Launcher.way = "compiled"
many(n_threads=2); few(); many(per_user=True, n_threads=1)
print(before == state())
items[-1] = 0  # it is twice in the last user's list and truth, which the kernel finds
def stop(done, of):
    raise KeyboardInterrupt
for wrong, call in [
    (fastrec.InputError, lambda: many(n_threads=2)),
    (fastrec.MetricError, lambda: fastrec.evaluate([[1]], [[1]], "nothing")),
    (KeyboardInterrupt, lambda: many(duplicates="first", n_threads=2, progress=stop)),
]:
    try:
        call()
    except wrong:
        print(before == state())
"""


def test_nothing_global_is_changed():
    check(run(GLOBAL, NUMBA_NUM_THREADS="2"), "True " * 6)


@pytest.mark.thorough
@pytest.mark.parametrize(("value", "exit_code"), [("3", 0), ("0", 1), ("two", 1), ("²", 1)])
def test_the_default_number_of_threads(value, exit_code):
    result = run("few()", FASTREC_NUM_THREADS=value)
    assert result.returncode == exit_code
    if exit_code:
        assert result.stderr.strip().splitlines()[-1].startswith("fastrec.exceptions.InputError: FASTREC_NUM_THREADS")


AS_TOLD = """
from fastrec.evaluation import engine
engine.STEPS_PER_PART = 100_000  # of each thread, so that the number of threads shows
def launches(n_threads):
    done = []
    many(n_threads=n_threads, progress=lambda *at: done.append(at))
    return len(done)
print(launches(None) == launches(3) < launches(1))
"""


def test_as_many_threads_as_the_environment_says():
    check(run(AS_TOLD, FASTREC_NUM_THREADS="3"), "True")


def test_import_leaves_numba_alone():
    code = "import sys, fastrec; assert 'numba' not in sys.modules; print(fastrec.__version__ != '')"
    check(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False), "True")
