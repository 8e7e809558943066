"""Every tool on the same lists: `python -m bench.field [--users N ...] [--tools TOOL ...] [--environments FOLDER]`.

pip installs each tool into an environment of its own. There `field_tools.py` builds the objects that the tool takes,
evaluates every metric that it has, and measures time and memory. The values must equal those of fastrec under the
definitions that `field_tools.py` names. A tool that would take more than two minutes, or 70 % of the memory, is
not run; its numbers follow from those of fewer users and are marked.

`field_features.py` checks there what the tools can do; `--only features` and `--only times` keep the rest of the file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bench import cases, field_features
from bench.measure import ROOT, compact, describe_machine, wait_until_calm

HOME = Path(__file__).resolve().parent
TOOLS, FEATURES, RESULTS = HOME / "field_tools.py", HOME / "field_features.py", HOME / "field.json"
LENGTH = 100
USERS = (10_000, 100_000, 1_000_000)
WARM_UP_USERS = 500
LONGEST = 120.0  # seconds of a tool
MOST_MEMORY = 0.7  # of the machine's
TOLERANCE = 1e-9
TOLERANCES = {"torchmetrics": 1e-5}  # it computes in float32
HERE = {"fastrec": "fastrec-eval"}  # tools that run in this environment, and their distributions
OWN_REQUIREMENTS = {"polars": ["polars", "numpy"], "duckdb": ["duckdb", "pyarrow", "numpy"]}
KEYS = {  # of the environments in which the tests ask tools
    "ranx": "ranx",
    "pytrec-eval-terrier": "pytrec_eval",
    "ir-measures": "ir_measures",
    "rectools": "rectools",
    "recommenders": "recommenders",
    "replay-rec": "replay",
    "recbole": "recbole",
    "torchmetrics": "torchmetrics",
    "scikit-learn": "sklearn",
}
NAMES = (*HERE, *OWN_REQUIREMENTS, *KEYS)
PARTS = ("times", "features")


class Measured(NamedTuple):
    """What a tool took for some users."""

    tool: str
    version: str
    users: int
    values: int
    prepared: float  # seconds to build its objects from flat arrays
    evaluated: float  # seconds to evaluate them
    memory: int  # bytes beyond the arrays
    extrapolated: bool

    def for_users(self, users: int) -> Measured:
        """Return what it would take for more users, if time and memory grew as their number."""
        times = users / self.users
        return self._replace(
            users=users,
            prepared=self.prepared * times,
            evaluated=self.evaluated * times,
            memory=int(self.memory * times),
            extrapolated=True,
        )

    @property
    def is_too_large(self) -> bool:
        """Whether a machine like this one cannot do it in two minutes."""
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MOST_MEMORY
        return self.prepared + self.evaluated > LONGEST or self.memory > most


def environments() -> ModuleType:
    """Return the module that makes environments of tools for the tests."""
    spec = importlib.util.spec_from_file_location("rivals_run", ROOT / "tests" / "rivals" / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ALL_REQUIREMENTS.update(OWN_REQUIREMENTS)
    return module


def pythons_of(tools: Iterable[str], home: Path) -> dict[str, str]:
    """Return the Python of each tool's environment, and make those that a folder lacks."""
    made = environments()
    return {
        tool: sys.executable if tool in HERE else made.environment(KEYS.get(tool, tool), home, {}) for tool in tools
    }


def ask(script: Path, tool: str, python: str, *arguments: str) -> dict[str, Any] | None:
    """Return what a script printed about a tool; None if it took too long."""
    try:
        done = subprocess.run(  # noqa: S603 - our own code
            [python, str(script), tool, HERE.get(tool, tool), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * LONGEST,
            env={**os.environ, "PYTHONPATH": str(ROOT) if tool in HERE else "", "PYTHONWARNINGS": "ignore"},
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{tool}: exit {done.returncode}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check_equal(tool: str, log: cases.Log, values: dict[str, float]) -> None:
    """Raise AssertionError unless fastrec has the same values."""
    import fastrec

    ours = fastrec.evaluate(log.recs, log.truth, list(values))
    most = TOLERANCES.get(tool, TOLERANCE)
    for name, value in values.items():
        if not abs(ours[name] - value) <= most:
            raise AssertionError(f"{tool} and fastrec differ in {name}: {value} and {ours[name]}")


def measure(pythons: dict[str, str], sizes: Sequence[int], rounds: int, wait: float) -> list[Measured]:
    """Return what tools take at each size."""
    last: dict[str, Measured] = {}
    found = []
    for users in sorted(sizes):
        log = cases.make_log(users, LENGTH)
        with tempfile.TemporaryDirectory(prefix="fastrec-field-") as name:
            folder = Path(name)
            cases.save(log, folder)
            cases.save(cases.first_users(log, WARM_UP_USERS), folder / "small")
            for tool, python in pythons.items():
                guess = last[tool].for_users(users) if tool in last else None
                answer = None
                if guess is None or not guess.is_too_large:
                    wait_until_calm(wait)
                    answer = ask(TOOLS, tool, python, str(folder), str(rounds))
                if answer is None:
                    if guess is None:
                        raise RuntimeError(f"{tool} takes more than {LONGEST:g} s for {users} users: begin with fewer")
                    found.append(guess)
                else:
                    check_equal(tool, log, answer["values"])
                    numbers = (answer[key] for key in ("prepared", "evaluated", "memory"))
                    counts = answer["version"], users, len(answer["values"])
                    last[tool] = Measured(tool, *counts, *numbers, extrapolated=False)
                    found.append(last[tool])
                print(line_of(found[-1]), flush=True)
    return found


def features(pythons: dict[str, str]) -> dict[str, Any]:
    """Return the version and the claims of each tool that has any."""
    found = {}
    for tool in (tool for tool in pythons if tool in field_features.CLAIMS):
        own = ask(FEATURES, tool, pythons[tool])
        if own is None:
            raise RuntimeError(f"{tool}: its features took more than {2 * LONGEST:g} s")
        found[tool] = {**own, "documented": field_features.DOCUMENTED.get(tool, {})}
        print(f"{tool:20} {own['version']:10} {', '.join(own['checked'])}", flush=True)
    return found


def line_of(row: Measured) -> str:
    """Return a measurement as a line."""
    mark = "~" if row.extrapolated else " "
    return (
        f"{row.tool:20} {row.version:10} {compact(row.users):>5} users {row.values:3} values "
        f"{mark}{row.prepared:9.3g} s to prepare {mark}{row.evaluated:9.3g} s to evaluate "
        f"{mark}{row.memory / 2**20:8.0f} MB"
    )


def table_of_field(found: dict[str, Any]) -> str:
    """Return a table of measurements, the fastest tool first."""
    rows = [Measured(**row) for row in found["rows"]]
    sizes = sorted({row.users for row in rows})
    tools = {row.tool: {own.users: own for own in rows if own.tool == row.tool} for row in rows}
    ordered = sorted(tools.values(), key=lambda of_tool: of_tool[sizes[-1]].prepared + of_tool[sizes[-1]].evaluated)
    head = ["tool", "values", *(f"{compact(users)} users" for users in sizes), f"memory, {compact(sizes[-1])} users"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for of_tool in ordered:
        last = of_tool[sizes[-1]]
        cells = [f"{last.tool} {last.version}", str(last.values), *(_cell(of_tool[users]) for users in sizes)]
        mark = "~ " if last.extrapolated else ""
        lines.append(f"| {' | '.join(cells)} | {mark}{last.memory / 1e6:,.0f} MB |")
    return "\n".join([*lines, "", found["machine"]])


def table_of_features(found: dict[str, Any]) -> str:
    """Return a table of what tools can do: a mark for what was checked, another for what is documented."""
    names = field_features.FEATURES
    lines = [f"| tool | {' | '.join(names.values())} |", "|---" * (len(names) + 1) + "|"]
    for tool, own in found["features"].items():
        marks = ["✓" if key in own["checked"] else "(✓)" if key in own["documented"] else "–" for key in names]
        lines.append(f"| {tool} {own['version']} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _cell(row: Measured) -> str:
    """Return the seconds in all, and those to evaluate alone."""
    mark = "~ " if row.extrapolated else ""
    return f"{mark}{_seconds(row.prepared + row.evaluated)} ({_seconds(row.evaluated)})"


def _seconds(number: float) -> str:
    return f"{number:,.0f} s" if number >= 100 else f"{number:.3g} s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure tools, print a line for each and size, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.field", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, nargs="+", default=USERS)
    parser.add_argument("--tools", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for a calm machine")
    parser.add_argument("--environments", type=Path, help="folder to keep them in; by default they are gone afterwards")
    parser.add_argument("--json", type=Path, help=f"write the results to a file, such as {RESULTS.name}")
    parser.add_argument("--only", choices=PARTS, help="measure times alone, or check features alone")
    options = parser.parse_args(arguments)
    kept = json.loads(options.json.read_text(encoding="utf-8")) if options.json and options.json.exists() else {}
    parts = PARTS if options.only is None else (options.only,)
    with tempfile.TemporaryDirectory(prefix="fastrec-field-") as folder:
        pythons = pythons_of(options.tools, options.environments or Path(folder))
        if "times" in parts:
            rows = measure(pythons, options.users, options.rounds, options.wait)
            kept |= {"machine": describe_machine()["machine"], "rows": [row._asdict() for row in rows]}
        if "features" in parts:
            kept["features"] = features(pythons)
    if options.json is not None:
        options.json.write_text(json.dumps({"schema": 1} | kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
