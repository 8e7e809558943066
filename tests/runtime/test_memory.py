"""Freed memory is kept for later arrays, and modules are exempt from garbage collection."""

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

COLLECTED = """
import gc, weakref
from fastrec.runtime.memory import keep_modules

class Cycle:
    def __init__(self):
        self.own = self

def dies():
    return weakref.ref(Cycle())

gc.disable()
first = dies()
keep_modules()
kept = gc.get_freeze_count()
assert kept > 1000 and first() is None  # garbage of before is not kept
later = dies()
keep_modules()
assert gc.get_freeze_count() <= kept and later() is not None  # nothing new is loaded
gc.collect()
assert later() is None
import wave
keep_modules()
assert gc.get_freeze_count() > kept
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


def test_modules_are_kept_once_they_are_loaded():
    subprocess.run([sys.executable, "-c", COLLECTED], check=True)
