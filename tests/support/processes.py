"""Programs in separate processes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANY = """
import numpy as np, fastrec
from fastrec.runtime.launcher import Launcher
Launcher.way = "compiled"
n = 6000
items = np.tile(np.arange(100, dtype=np.int32), n)
indptr = np.arange(n + 1) * 100
def many(**call):
    return fastrec.evaluate((items, indptr), (items, indptr), ["ndcg@10", "recall@10"], **call)
def few():
    return fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["recall@3"])["recall@3"]
"""


def run(code, *, before="", cwd=None, timeout=300, **environment):
    full = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    for name in [name for name, value in full.items() if value is None]:
        del full[name]
    command = [sys.executable, "-c", before + MANY + code]
    return subprocess.run(command, env=full, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def check(result, wanted):
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == wanted.split()
