"""The cost of an empty cache: which calls compile, and which do not."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastrec

ROOT = Path(__file__).parents[2]

# Calls of the usual forms, each large enough to be compiled, and the kernels whose code each adds to the cache.
FORMS = """
import json, os, pathlib, sys
import numpy as np, fastrec
from fastrec.report.significance import run_test
from fastrec.runtime.launcher import Launcher

Launcher.way = "compiled"

def kept():
    return set(pathlib.Path(os.environ["FASTREC_CACHE_DIR"]).rglob("*.nbc"))

N = 8_000
LISTS = np.tile(np.arange(100), N)
METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]

def lists(dtype=np.int32, *, n=N, gains=False, ties=False, metrics=METRICS, **call):
    items, indptr = LISTS[: n * 100].astype(dtype), np.arange(n + 1) * 100
    truth = (items, indptr, items % 3 + 1.0) if gains else (items, indptr)
    recs = (items, indptr, (items // 2).astype(float)) if ties else (items, indptr)
    fastrec.evaluate(recs, truth, metrics, k=[1, 10], **call)

def rows(dtype=np.float32, metrics="gauc", *, n=N, **call):
    scores = (LISTS[: n * 100] / 7).astype(dtype)
    fastrec.evaluate_scores(LISTS[: n * 100] < 5, scores, np.arange(n + 1) * 100, metrics, **call)

FORMS = {FORMS}
found = {}
for name, call in FORMS.items():
    found[name] = []
    for _ in range(2):
        before = kept()
        call()
        found[name].append(sorted({path.name.split(".")[1].partition("-")[0] for path in kept() - before}))
print(json.dumps(found))
"""


def compiled_by(forms: str, cache: Path) -> dict[str, list[list[str]]]:
    """Return the compilations of the first and the second call of each form, from an empty cache."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-c", FORMS.replace("{FORMS}", forms)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, list[list[str]]] = json.loads(done.stdout)
    return found


PLAIN = """{
    "threads": lambda: lists(n_threads=2),
    "one thread": lambda: lists(n_threads=1),
    "one user": lambda: lists(n=1),
    "wide ids": lambda: lists(np.int64),
    "other metrics": lambda: fastrec.evaluate((LISTS.astype(np.int32), np.arange(N + 1) * 100), [[1]] * N, "rbp@7"),
    "segments": lambda: lists(groups=np.arange(N) % 3, user_weight=np.arange(N) + 1.0, per_user=True, n_threads=2),
}"""


@pytest.mark.thorough
def test_lists_compile_once_whatever_the_ids_threads_users_and_metrics(tmp_path: Path) -> None:
    found = compiled_by(PLAIN, tmp_path)
    (first, second), *others = found.values()
    assert {"find_block_hits", "run_block", "evaluate_users"} <= set(first) and not second
    *others, (of_values, again) = others
    assert all("run_block" not in own and not more for own, more in others)  # ids of another width are found anew
    assert "add_hashes" in of_values and "run_block" not in of_values and not again


EXPOSURE = """{
    "lists": lists,
    "exposure": lambda: lists(metrics=["gini"], n_items=100, groups=np.arange(N) % 3),
}"""


@pytest.mark.thorough
def test_standard_errors_of_exposure_need_no_kernel_of_their_own_to_be_added(tmp_path: Path) -> None:
    _, (first, second) = compiled_by(EXPOSURE, tmp_path).values()
    assert {"count_lists", "add_effects"} <= set(first) and not second
    assert "run_block" not in first


KERNELS = """
import sys
import numpy as np, fastrec
items, indptr = np.tile(np.arange(100, dtype=np.int32), 6000), np.arange(6001) * 100
for gains in sys.argv[1:]:
    truth = (items, indptr, items % 3 + 1.0) if gains == "gains" else (items, indptr)
    print(round(fastrec.evaluate((items, indptr), truth, "ndcg@10", n_threads=2)["ndcg@10"], 3))
"""


@pytest.mark.thorough
def test_kernels_that_two_processes_compiled_are_told_apart(tmp_path: Path) -> None:
    """Both number their functions from 1, and the loader uses names."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)}
    for forms, values in (["none"], ["1.0"]), (["gains"], ["0.601"]), (["none", "gains"], ["1.0", "0.601"]):
        command = [sys.executable, "-c", KERNELS, *forms]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stdout.split()) == (0, values), done.stderr


OTHERS = """{
    "gains": lambda: lists(gains=True, n_threads=2),
    "ties": lambda: lists(ties=True, n_threads=2),
    "rows": lambda: rows(n_threads=2),
    "ranks of rows": lambda: rows(metrics=["gauc", "ndcg@10"], n_threads=2),
    "all rows": lambda: fastrec.auc(LISTS < 5, LISTS / 7, n_threads=2),
    "tests": lambda: run_test(np.arange(20_000.0), "bootstrap", level=0.95, n_rounds=500, seed=5, n_threads=2),
}"""


@pytest.mark.thorough
def test_a_second_call_of_the_same_form_compiles_nothing(tmp_path: Path) -> None:
    found = compiled_by(OTHERS, tmp_path)
    assert all(first for first, _ in found.values())
    assert {name: second for name, (_, second) in found.items() if second} == {}


LARGE = """
import sys
import numpy as np, fastrec
n = np.arange(150_001)
print(fastrec.evaluate((n[1:], n), (n[1:], n), "recall@1", n_threads=int(sys.argv[1]))["recall@1"])
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "more", "lines"),
    [
        ("1", "", 1),
        ("0", "", 0),
        (None, "", 0),
        (None, "sys.modules['ipykernel'] = sys", 1),
        ("0", "import logging; logging.basicConfig(level='INFO')", 1),
    ],
)
def test_compilation_is_told_of(tmp_path: Path, setting: str | None, more: str, lines: int) -> None:
    """By default on a terminal, in notebooks and in logs; the second process reads the code, and says nothing."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)}
    del environment["FASTREC_NOTICE"]
    environment |= {} if setting is None else {"FASTREC_NOTICE": setting}
    at_once = f"import sys\nfrom fastrec.runtime import announcement; announcement.NOTICE_AFTER = 0\n{more}\n"
    for expected in (lines, 0):
        command = [sys.executable, "-c", at_once + LARGE, "1"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert told.stdout == "1.0\n"
        assert (
            told.stderr.count("fastrec compiles the kernels that this call needs")
            == told.stderr.count("\n")
            == expected
        )


@pytest.mark.thorough
@pytest.mark.parametrize(("megabytes", "threads", "warned"), [(600, 2, True), (900, 1000, True), (3000, 1000, False)])
def test_a_small_address_space(tmp_path: Path, megabytes: int, threads: int, warned: bool) -> None:
    """LLVM would end the process with a signal."""
    resource = pytest.importorskip("resource", reason="no limits of processes on this system")
    limit = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(threads)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
    assert ("address space" in done.stderr) == warned


@pytest.mark.thorough(except_for="^(300|2000)$")
@pytest.mark.parametrize("megabytes", [300, 400, 700, 1000, 2000])
def test_the_command_in_a_small_address_space(tmp_path: Path, megabytes: int) -> None:
    """PyArrow would end the process with a signal, or fail with errors of the dynamic loader."""
    resource = pytest.importorskip("resource", reason="no limits of processes on this system")
    pytest.importorskip("pyarrow")
    (tmp_path / "log.jsonl").write_text('{"user_id": 1, "item_id": 2}\n')
    limit = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-m", "fastrec", "evaluate", "log.jsonl", "log.jsonl", "-m", "mrr", "--threads", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    if megabytes >= 2000:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    says = (
        r"fastrec: error: not enough memory: reading files needs about 400 MB of address space for "
        r"pyarrow, but `ulimit -v` leaves \d+ MB: raise the limit \(`ulimit -v unlimited`\); to limit memory, use "
        r"--memory or a control group\n"
    )
    assert re.fullmatch(says, done.stderr)


WARM_UP = """
import fastrec
told = []
fastrec.warmup("lists", progress=lambda done, total: told.append((done, total)))
assert told == [(done, len(told) - 1) for done in range(len(told))], told
"""


@pytest.mark.thorough
def test_a_part_is_compiled_ahead(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", WARM_UP], check=True, env=environment)
    kept = Counter(path.name.partition("-")[0] for path in tmp_path.rglob("*.nbc"))
    assert kept["row_programs.run_block"] >= 3 and kept["hits.find_block_hits"] >= 2
    assert not kept["rows.score_block"]
    with pytest.raises(fastrec.InputError, match="what must be"):
        fastrec.warmup("everything")


KEPT_AFTER = """
import os, pathlib, sys
import fastrec, numpy as np
def kept():
    return set(pathlib.Path(sys.argv[1]).rglob("*.nbc"))
fastrec.warmup(sys.argv[2])
before = kept()
"""
EVALUATE_LOGS = """
n = 1 << 18
clicks, ids = np.arange(n) % 2, np.arange(n) % 512
for dtype in (np.int16, np.int32, np.int64):
    ranks = (np.arange(n) % 5 + 1).astype(dtype)
    fastrec.ctr_by_rank(clicks, ranks, user_ids=ids)
    for method in ("ctr", "pivot", "adjacent", "em"):
        fastrec.position_bias(clicks, ranks, ids, ids, method=method, n_samples=2).interval()
fastrec.policy_value(clicks, np.ones(n), np.ones(n), estimator=["ips", "rips", "sniips"])
"""
GROUP_LOGS = """
import pyarrow as pa, pyarrow.parquet as pq
from fastrec.files import rows
draw = np.random.default_rng(1)
rows.ROWS_TO_GROUP = 100_000
for n, users in ((300_000, 20_000), (700_000, 90_000)):
    ids, labels = draw.integers(0, users, n), (draw.random(n) < 0.2).astype(np.int8)
    for kind in (np.int32, np.int64):
        fastrec.evaluate_scores(labels, draw.random(n), user_ids=ids.astype(kind), metrics=["auc", "gauc"])
        path = os.path.join(sys.argv[1], "log.parquet")
        pq.write_table(pa.table({"user_id": ids.astype(kind), "label": labels, "score": draw.random(n)}), path)
        fastrec.evaluate_files(path, metrics=["auc", "gauc"])
"""
EVALUATE_ROWS = """
draw = np.random.default_rng(1)
n = 1 << 17
labels, indptr = (draw.random(n) < 0.2).astype(np.int8), np.arange(0, n + 1, 64)
for dtype in (np.float32, np.float64):
    scores = draw.random(n).astype(dtype)
    fastrec.evaluate_scores(labels, scores, indptr, ["auc"], row_groups=draw.integers(0, 3, n))
"""
PAIRS_OF_USERS = {"mark_first_rows", "write_places", "add_values", "count_pairs"}
PAIRS_OF_USERS |= {"scatter", "write_pairs", "write_values", "add_hashes"}
TELL = """
names = [{path.name.split(".")[1].partition("-")[0] for path in paths} for paths in (before, kept() - before)]
print(*names[0], "/", *names[1])
"""
OF_LOGS = {"weigh_slates", "count_ranks", "add_users", "count_cells", "move_cells", "fill_entries", "draw_queries"}
OF_LOGS |= {"weigh_entries", "expect", "add_values"}


def compiled(folder: Path, what: str, program: str) -> tuple[set[str], set[str]]:
    """Return the kernels that `warmup` compiles, and those that a program then compiles."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FASTREC_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", KEPT_AFTER + program + TELL, str(folder), what]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    before, after = (set(part.split()) for part in done.stdout.split("/"))
    return before, after


@pytest.mark.thorough
def test_kernels_of_logs_are_compiled_ahead(tmp_path: Path) -> None:
    before, after = compiled(tmp_path, "logs", EVALUATE_LOGS)
    assert before >= OF_LOGS
    assert not after & OF_LOGS


@pytest.mark.thorough
def test_kernels_of_pairs_of_users_are_compiled_ahead(tmp_path: Path) -> None:
    before, after = compiled(tmp_path, "scores", EVALUATE_ROWS)
    assert before >= PAIRS_OF_USERS
    assert not after & {*PAIRS_OF_USERS, "score_block"}


@pytest.mark.thorough
def test_kernels_that_group_rows_are_compiled_ahead(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    before, after = compiled(tmp_path, "all", GROUP_LOGS)
    assert {"find_parts", "number_dense"} <= before
    assert not [name for name in after if name.startswith(("find_parts", "number_", "scatter", "move", "place_"))]
