"""Freed memory is kept for later arrays."""

import os
import platform
import subprocess
import sys

import pytest

OF_MALLOC = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")  # variables that change how memory is kept
FAULTS = """
import resource, sys
import numpy as np
from fastrec.runtime.memory import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for n_bytes in range(1 << 19, 1 << 22, 1 << 16):  # each is larger than all before
    np.ones(n_bytes, np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or sys.maxsize < 1 << 32, reason="only glibc of 64 bits keeps memory so"
)
def test_the_system_gives_memory_only_once():
    usual = {name: own for name, own in os.environ.items() if not name.startswith(OF_MALLOC)}
    faults = {
        how: int(subprocess.check_output([sys.executable, "-c", FAULTS, how], env=usual)) for how in ("give", "keep")
    }
    assert faults["keep"] < faults["give"] / 10
