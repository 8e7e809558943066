"""Kernels that other kernels call as C functions."""

from support.processes import run

BREAK = """
from fastrec.evaluation import engine
before = engine.memory_of
engine.memory_of = lambda sizes: (8, *before(sizes)[1:])  # as a fault of ours would
many(n_threads=2)
"""


def test_what_a_callback_raises_is_an_error():
    """Numba writes it to stderr and goes on, so the totals say whether each block was finished."""
    result = run(BREAK)
    assert result.returncode == 1
    assert "a kernel failed" in result.stderr.splitlines()[-1]
