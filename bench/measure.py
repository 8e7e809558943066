"""Timing: calls in turns, ratios within a turn, medians of those; processes from start to exit."""

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
CALM = 0.1  # processors that other processes may use in a turn
BUSY = 0.25  # processors used by others meanwhile; with more a ratio means nothing
SHORTEST_TURN = 0.2  # seconds; what others use in less cannot be told: the system counts in hundredths


class Spread(NamedTuple):
    """Median and quartiles."""

    median: float
    low: float
    high: float
    others: float = 0.0  # processors that other processes used meanwhile

    @classmethod
    def of(cls, values: Any, others: float = 0.0) -> Spread:
        """Median and quartiles of some values."""
        low, median, high = np.quantile(np.asarray(values, float), [0.25, 0.5, 0.75]).tolist()
        return cls(median, low, high, others)


class Others:
    """Processors that other processes, or other machines on the same hardware, use from now on (Linux)."""

    def __init__(self) -> None:
        self._start = self.read()

    def share(self) -> float:
        """Their mean number since then, 0 where it cannot be told."""
        wall, busy, own = (now - before for now, before in zip(self.read(), self._start, strict=True))
        return max(0.0, (busy - own) / wall) if wall > SHORTEST_TURN else 0.0

    @staticmethod
    def read() -> tuple[float, float, float]:
        """Seconds: the clock, all processors at work, this process and its children at work."""
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
    """Seconds of several calls that were made in turns, so that a slow minute of the machine slows all of them.

    A long call loses more than a short one when other processes want the processors too, which would not cancel in
    a ratio. So a turn in which they had them is made again, up to four times as many turns as `rounds`.
    """

    def __init__(self, calls: dict[str, Callable[[], Any]], rounds: int, others_of: type[Others] = Others) -> None:
        """Make each call once to warm up, then `rounds` times in turns, each turn beginning with another call."""
        for call in calls.values():
            call()
        names = list(calls)
        turns: list[tuple[float, dict[str, float]]] = []
        for turn in range(4 * rounds):
            first = turn % len(names)
            others = others_of()
            took = {name: seconds_of(calls[name]) for name in names[first:] + names[:first]}
            turns.append((others.share(), took))
            if sum(share <= CALM for share, _ in turns) == rounds:
                break
        calmest = sorted(turns, key=lambda pair: max(pair[0], CALM))[:rounds]
        self.seconds = {name: [took[name] for _, took in calmest] for name in names}
        self.others = float(np.mean([share for share, _ in calmest]))

    def median(self, name: str) -> float:
        """The median of the seconds of one call."""
        return float(np.median(self.seconds[name]))

    def ratio(self, name: str, other: str, scale: float = 1.0) -> Spread:
        """Seconds of one call over those of another in the same turn, times `scale`."""
        return Spread.of(np.array(self.seconds[name]) / np.array(self.seconds[other]) * scale, self.others)

    def each(self, name: str, scale: float) -> Spread:
        """Seconds of one call, times `scale`."""
        return Spread.of(np.array(self.seconds[name]) * scale, self.others)


def seconds_of(call: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = perf_counter()
    call()
    return perf_counter() - start


def run_python(code: str, *arguments: str, cache: Path | None = None) -> tuple[float, str]:
    """Run `code` in a fresh Python with this checkout's fastrec: seconds from start to exit, and what it printed."""
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
    """Let the highest memory of this process be counted from now on, where the system can do that (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory(*, peak: bool) -> int:
    """Bytes that this process holds, or has held at most since the reset.

    Not `ru_maxrss` on Linux: that begins with the memory of the process that started this one. Elsewhere the highest
    since the start stands for both.
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
    """The machine in one line, and the versions that matter."""
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
    """The name of the processor, with its family and model where the name is a mere brand."""
    import llvmlite.binding

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{found[0] if found else name} ({llvmlite.binding.get_host_cpu_name()})"
