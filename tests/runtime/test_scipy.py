"""SciPy, which Numba imports only to know whether it is there."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
from fastrec.inputs.grouping import group_rows

group_rows(np.arange(1 << 16) // 2, 1)
assert "numba" in sys.modules and "scipy.linalg" not in sys.modules

from numba import njit

assert np.allclose(njit(lambda a: np.dot(a, a))(np.ones((3, 3))), 3)
assert np.allclose(njit(lambda a: np.cov(a))(np.eye(3)), np.cov(np.eye(3)))
assert "scipy.linalg" in sys.modules
"""


def test_kernels_do_not_import_scipy_and_other_code_still_can():
    pytest.importorskip("scipy")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
