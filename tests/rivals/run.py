"""Ask the real tools: `python tests/rivals/run.py [TOOL ...] [--data FOLDER] [--environments FOLDER] [--check]`.

TOOL_items are the metrics of items and histories of a tool, asked with cases of their own in the same environment,
and TOOL_models its evaluation of models. ultr_bias_toolkit estimates position bias, and tools of slates estimate the
value of a policy; they have cases of their own, too.

pip cannot install pyclick. It is asked only by name, in an environment that --environments has.

pip installs each tool into its own environment. There `tools/TOOL.py` reads cases from its standard input and prints
the tool's answers. By default the script takes the newest version, writes the answers to `TOOL.json.gz` beside this
file and prints the changes. With --check it takes the versions of the kept answers and writes nothing, and any
difference is an error.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402 - a neighbour, wherever this is started

REQUIREMENTS = {
    "cornac": ["cornac"],
    "implicit": ["implicit"],
    "ir_measures": ["ir-measures", "cwl-eval", "pyndeval"],
    "lenskit": ["torch==2.13.0", "lenskit"],
    "pytrec_eval": ["pytrec-eval-terrier"],
    "ranx": ["ranx"],
    "recbole": ["torch==2.13.0", "recbole", "numpy<1.24"],
    "recommenders": ["recommenders"],
    "rectools": ["rectools"],
    "replay": ["replay-rec"],
    "sklearn": ["scikit-learn"],
    "spark": ["pyspark", "numpy"],
    "torchmetrics": ["torch==2.13.0", "torchmetrics"],
}
ITEM_REQUIREMENTS = {
    "evidently_items": ["evidently", "pandas<3"],
    "lenskit_items": REQUIREMENTS["lenskit"],
    "recbole_items": REQUIREMENTS["recbole"],
    "recmetrics_items": ["recmetrics", "funcsigs", "numpy<2", "matplotlib<3.9"],
    "recommenders_items": REQUIREMENTS["recommenders"],
    "rectools_items": REQUIREMENTS["rectools"],
    "replay_items": REQUIREMENTS["replay"],
    "rexmex_items": ["rexmex", "six"],
    "warprec_items": ["warprec"],
}
POSITION_REQUIREMENTS = {"ultr_bias_toolkit": ["ultr-bias-toolkit", "pandas<3"]}
SESSION_TOOLS = ("pyclick",)  # nothing to install with pip
NOT_INSTALLED = 4  # the status if such a tool has no environment
SLATE_REQUIREMENTS = {
    "obp": ["torch==2.13.0", "scikit-learn", "pandas", "matplotlib", "seaborn", "tqdm", "pyyaml"],
}
# packages to install without what they require: versions of 2022 that this Python lacks
WITHOUT_PINS = {"obp": ["obp"]}
MODEL_REQUIREMENTS = {"implicit_models": REQUIREMENTS["implicit"], "rectools_models": REQUIREMENTS["rectools"]}
REAL_DATA = os.environ.get("FASTREC_TEST_DATA") or None
PYTHONS = {"warprec_items": "python3.12"}  # of tools that need a newer one than this
ALL_REQUIREMENTS = REQUIREMENTS | ITEM_REQUIREMENTS | POSITION_REQUIREMENTS | SLATE_REQUIREMENTS | MODEL_REQUIREMENTS
MAX_DIFFERENCE = 1e-9
SHOWN = 20  # differences of a tool


def digest(given: Any) -> str:
    """Return an identifier of the cases."""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def all_cases(data: Path | None, tool: str = "") -> dict[str, list[Any]]:
    """Return the cases for a tool: the stored ones and, with a folder of real data, those made of it."""
    if tool in ITEM_REQUIREMENTS:
        return {"items": cases.item_cases()}
    if tool in POSITION_REQUIREMENTS:
        return {"positions": cases.position_cases()}
    if tool in SLATE_REQUIREMENTS:
        return {"slates": cases.slate_cases()}
    if tool in SESSION_TOOLS:
        return {"sessions": cases.session_cases()}
    if tool in MODEL_REQUIREMENTS:
        return {"models": cases.model_cases()}
    lists = cases.list_cases() + ([cases.real_case(data)] if data is not None else [])
    return {"lists": lists, "rows": cases.score_cases()}


def golden_path(tool: str) -> Path:
    """Return the path of a tool's kept answers."""
    return HERE / f"{tool}.json.gz"


def load_golden(tool: str) -> dict[str, Any]:
    """Return the kept answers of a tool, or none."""
    if not golden_path(tool).exists():
        return {"versions": {}, "values": {}}
    with gzip.open(golden_path(tool), "rt", encoding="utf-8") as stream:
        found: dict[str, Any] = json.load(stream)
    return found


def ask(tool: str, python: str, given: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the answers of a tool: {versions, values: {case: {metric: value}}, skipped: {kind: why}, names}.

    A kept file has the answers to `cases.edge_cases`, too: {edges: {case: {metric: value, or an error as a string}}}.
    """
    done = subprocess.run(
        [python, str(HERE / "tools" / f"{tool}.py")],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"},
    )
    if done.returncode:
        raise SystemExit(f"{tool}: exit {done.returncode}\n{done.stderr[-4000:]}")
    answer: dict[str, Any] = json.loads(
        done.stdout[done.stdout.index("\n{") + 1 :] if not done.stdout.startswith("{") else done.stdout
    )
    return answer


def environment(tool: str, folder: Path, versions: dict[str, str]) -> str:
    """Return the Python of an environment with the tool, in these versions of the packages."""
    home = folder / tool.removesuffix("_items").removesuffix("_models")
    python = home / "bin" / "python"
    if not python.exists():
        if tool in PYTHONS and sys.version_info < (3, 12):
            subprocess.run([PYTHONS[tool], "-m", "venv", home], check=True)
        else:
            venv.create(home, with_pip=True)
        # 2.13.0+cpu is the build of 2.13.0 in some registries
        exact = {package: f"{package}=={version.partition('+')[0]}" for package, version in versions.items()}
        loose = [exact.pop(package, package) for package in WITHOUT_PINS.get(tool, [])]
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *ALL_REQUIREMENTS[tool], *exact.values()], check=True)
        if loose:
            subprocess.run([*install, "--no-deps", "--ignore-requires-python", *loose], check=True)
    return str(python)


def differences(old: dict[str, Any], new: dict[str, Any], asked: set[str]) -> list[str]:
    """Yield the values of common cases that differ between two answers."""
    found = []
    for case in sorted(asked & {*old["values"], *new["values"]}):
        ours, theirs = old["values"].get(case, {}), new["values"].get(case, {})
        for metric in sorted({*ours, *theirs}):
            a, b = ours.get(metric, "absent"), theirs.get(metric, "absent")
            same = a == b or (
                isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, abs_tol=MAX_DIFFERENCE)
            )
            if not same:
                found.append(f"{case}: {metric}: {a} is now {b}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the tools, and keep or compare their answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "tools", nargs="*", choices=[*ALL_REQUIREMENTS, *SESSION_TOOLS, []], metavar="TOOL", help="by default all"
    )
    parser.add_argument(
        "--data", type=Path, default=REAL_DATA, help="folder of real data; by default FASTREC_TEST_DATA"
    )
    parser.add_argument("--environments", type=Path, help="folder to keep them in; by default they are gone afterwards")
    parser.add_argument("--check", action="store_true", help="only compare with what is kept")
    options = parser.parse_args(arguments)
    n_changed = 0
    with tempfile.TemporaryDirectory(prefix="fastrec-rivals-") as folder:
        for tool in options.tools or ALL_REQUIREMENTS:
            if tool in SESSION_TOOLS and not (options.environments and (options.environments / tool).is_dir()):
                print(f"{tool}: make an environment of it in a folder, and pass it as --environments", file=sys.stderr)
                raise SystemExit(NOT_INSTALLED)
            given, kept = all_cases(options.data, tool), load_golden(tool)
            asked = {case["name"] for kind in given.values() for case in kind}
            python = environment(tool, options.environments or Path(folder), kept["versions"] if options.check else {})
            answer = ask(tool, python, given)
            answer["cases"] = digest(all_cases(None, tool))
            edges = cases.edge_cases() if tool in REQUIREMENTS else {}
            answer["edges"] = ask(tool, python, edges)["values"] if edges else {}
            print(f"{tool}: {answer['versions']}, {sum(map(len, answer['values'].values()))} values", flush=True)
            changed = differences(kept, answer, asked)
            of_edges = {"values": kept.get("edges", {})}, {"values": answer["edges"]}
            changed += differences(*of_edges, {case["name"] for kind in edges.values() for case in kind})
            n_changed += len(changed)
            print("".join(f"  {line}\n" for line in changed[:SHOWN]) + f"  {len(changed)} changed", flush=True)
            if options.check:
                continue
            text = json.dumps(answer, sort_keys=True, separators=(",", ":"))
            with open(golden_path(tool), "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as stream:
                stream.write(text.encode())
    return int(options.check and n_changed > 0)


if __name__ == "__main__":
    sys.exit(main())
