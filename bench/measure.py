"""Timing: calls in turns, ratios within a turn and their medians; processes from start to exit."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CALM = 0.1  # processors that other processes may use during a turn
REST = 0.1  # seconds before each call: threads of BLAS wait actively for some 20 ms after a call
BUSY = 0.25  # processors used by others meanwhile; above it a ratio means nothing
SHORTEST_TURN = 0.2  # seconds; the system counts in hundredths, too coarse for shorter turns


class Spread(NamedTuple):
    """Median and quartiles of measurements."""

    median: float
    low: float
    high: float
    others: float = 0.0  # processors that other processes used meanwhile

    @classmethod
    def of(cls, values: Any, others: float = 0.0) -> Spread:
        """Return the median and quartiles of some values."""
        low, median, high = np.quantile(np.asarray(values, float), [0.25, 0.5, 0.75]).tolist()
        return cls(median, low, high, others)


class Others:
    """Number of processors that other processes, or other machines on the same hardware, use from now on (Linux)."""

    def __init__(self) -> None:
        self._start = self.read()

    def share(self) -> float:
        """Return their mean number since then, or 0 if unknown."""
        wall, busy, own = (now - before for now, before in zip(self.read(), self._start, strict=True))
        return max(0.0, (busy - own) / wall) if wall > SHORTEST_TURN else 0.0

    @staticmethod
    def read() -> tuple[float, float, float]:
        """Return seconds of the clock, of all processors at work, and of this process with its children."""
        try:
            counts = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        except OSError:
            return perf_counter(), 0.0, 0.0
        user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, counts[1:9])
        busy = user + nice + system + sum(interrupts_and_stolen)
        return perf_counter(), busy / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def wait_until_calm(limit: float) -> None:
    """Wait until others have left the processors alone for three seconds; `limit` seconds at most."""
    start, calm = perf_counter(), 0
    while calm < 3 and perf_counter() - start < limit:
        others = Others()
        sleep(1)
        calm = calm + 1 if others.share() <= CALM else 0


class Turns:
    """Seconds of several calls made in turns, so that a slow minute of the machine slows all of them.

    If other processes use the processors too, a long call loses more than a short one, which would not cancel in a
    ratio. So such a turn is repeated, up to four times as many turns as `rounds`.
    """

    def __init__(self, calls: dict[str, Callable[[], Any]], rounds: int, others_of: type[Others] = Others) -> None:
        """Make each call once to warm up, then `rounds` times in turns; each turn starts with another call."""
        for call in calls.values():
            call()
        names = list(calls)
        turns: list[tuple[float, dict[str, float]]] = []
        for turn in range(4 * rounds):
            first = turn % len(names)
            others = others_of()
            took = {}
            for name in names[first:] + names[:first]:
                sleep(REST)
                took[name] = seconds_of(calls[name])
            turns.append((others.share(), took))
            if sum(share <= CALM for share, _ in turns) == rounds:
                break
        calmest = sorted(turns, key=lambda pair: max(pair[0], CALM))[:rounds]
        self.seconds = {name: [took[name] for _, took in calmest] for name in names}
        self.others = float(np.mean([share for share, _ in calmest]))

    def median(self, name: str) -> float:
        """Return the median of the seconds of one call."""
        return float(np.median(self.seconds[name]))

    def ratio(self, name: str, other: str, scale: float = 1.0) -> Spread:
        """Return the seconds of one call over those of another in the same turn, times `scale`."""
        return Spread.of(np.array(self.seconds[name]) / np.array(self.seconds[other]) * scale, self.others)

    def each(self, name: str, scale: float) -> Spread:
        """Return the seconds of one call, times `scale`."""
        return Spread.of(np.array(self.seconds[name]) * scale, self.others)


def compact(number: int) -> str:
    """Return 1000000 as 1M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{letter}"
    return str(number)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = perf_counter()
    call()
    return perf_counter() - start


def run_python(code: str, *arguments: str, cache: Path | None = None) -> tuple[float, str]:
    """Run `code` in a fresh Python with this checkout's fastrec; return its seconds and its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    if cache is not None:
        environment["FASTREC_CACHE_DIR"] = str(cache)
    start = perf_counter()
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a process of the benchmark failed:\n{done.stderr}")
    return seconds, done.stdout


def reset_peak_memory() -> None:
    """Count the peak memory of this process from now on, if the system can do that (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory(*, peak: bool) -> int:
    """Return the bytes that this process holds, or its peak since the reset.

    Linux does not use `ru_maxrss`: it starts with the memory of the parent process. Other systems return the peak since
    the start for both.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM" if peak else "VmRSS"))
    return int(line.split()[1]) * 1024


def describe_machine() -> dict[str, Any]:
    """Return the machine in one line, and the versions that matter."""
    import llvmlite
    import numba

    import fastrec

    return {
        "machine": f"{_processor()}, {_granted()} of {os.cpu_count()} processors, {platform.system()}",
        "numba_threads": numba.get_num_threads(),
        "threading_layer": numba.threading_layer(),
        "versions": {
            "fastrec": fastrec.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "llvmlite": llvmlite.__version__,
        },
    }


def _granted() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """Return the name of the processor, with the name that LLVM gives its architecture."""
    import llvmlite.binding

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{found[0] if found else name} ({llvmlite.binding.get_host_cpu_name()})"
