"""Everything that other programs depend on changes only on purpose: names, arguments, JSON, types."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import fastrec
from fastrec._version import DISTRIBUTION

pytest.importorskip("click")
pytest.importorskip("pyarrow")
describe_api = pytest.importorskip("describe_api")
typed_program = pytest.importorskip("support.typed_program")

PROGRAM = Path(typed_program.__file__)


def test_names_arguments_and_fields_are_those_that_are_kept() -> None:
    """After an intended change: python tests/describe_api.py, and a line in CHANGELOG.md."""
    assert describe_api.described().splitlines() == describe_api.FILE.read_text().splitlines()


def test_the_typed_program_uses_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fastrec"
    }
    assert used == set(fastrec.__all__)


def test_the_typed_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    typed_program.main()
    assert capsys.readouterr().out == "all names are there True\n"


# A comment that expects an error is itself an error if there is none.
MISTAKES = """
import fastrec

fastrec.evalaute([[1]], [[1]])  # type: ignore[attr-defined]
fastrec.evaluate([[1]], [[1]], tise="worst")  # type: ignore[call-arg]

@fastrec.ranking_metric(range=(0, 1))
def misses(statistics: object) -> float:
    return 0.0

misses()  # type: ignore[call-arg]
"""


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy, of the extra dev")
def test_the_typed_program_is_right_for_mypy(tmp_path: Path) -> None:
    """Check a program strictly and without the settings of this project, like a user. mypy finds its errors."""
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    settings = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, PROGRAM, "mistakes.py"],
        env={"MYPYPATH": str(Path(fastrec.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Success"), done.stdout


ROOT = PROGRAM.parents[2]
LOCK = ROOT / "requirements" / "dev.lock"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_all_that_is_kept_is_given_away() -> None:
    """The tests read more files than the package."""
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not kept:
        pytest.skip("no repository of git")
    given = {*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]}
    of_hatchling = {".gitignore", "LICENSE", "README.md", "pyproject.toml"}
    assert given | of_hatchling == {line.split("/")[0] for line in kept.splitlines()}


def test_extras_and_messages_name_the_distribution() -> None:
    assert PROJECT["project"]["name"] == DISTRIBUTION
    lines = [line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra]
    assert not [line for line in lines if re.match(r"fastrec(?!-eval)", line)]
    for folder in ("fastrec", "docs", "examples", "notebooks", "scripts", "tests"):
        for path in (ROOT / folder).rglob("*.*"):
            if path.suffix in {".py", ".md", ".ipynb", ".toml", ".html"}:
                text = path.read_text(encoding="utf-8")
                assert not re.search(r"['\"]fastrec\[[a-z]", text), f"{path}: an extra of another project"


def test_all_extras_for_users_are_one() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    names = list(extras)
    assert extras["all"] == [f"{DISTRIBUTION}[{','.join(names[: names.index('all')])}]"], "those declared before it"
    assert not {"test", "bench", "dev", "fuzz"}.intersection(names[: names.index("all")])


def test_the_lock_has_all_extras_within_their_bounds() -> None:
    """If it fails: scripts/lock."""
    packaging = pytest.importorskip("packaging.requirements")
    lines = re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(), re.MULTILINE)
    pinned: dict[str, list[str]] = {}
    for name, version in lines:  # several if they differ between systems or versions of Python
        pinned.setdefault(re.sub(r"[-_.]+", "-", name).lower(), []).append(version)
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    for requirement in map(packaging.Requirement, wanted):
        if requirement.name != DISTRIBUTION:
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            assert any(version in requirement.specifier for version in pinned[name]), requirement
    assert "//" not in LOCK.read_text()


@pytest.mark.parametrize(
    ("packages", "exit_code", "says"),
    [
        (
            [{"name": "a", "version": "1", "vulns": []}],
            0,
            "1 of 1 packages could be looked up, 0 with known vulnerabilities",
        ),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}, {"name": "b"}],
            1,
            "a 1: CVE-1, fixed in 2\n1 of 2 packages could be looked up, 1 with known vulnerabilities",
        ),
        ([{"name": "a", "skip_reason": "not found"}], 3, "0 of 1 packages could be looked up"),
        ([], 3, "0 of 0 packages could be looked up"),
    ],
)
def test_the_audit_tells_no_fault_from_nothing_known(
    packages: list[dict[str, Any]], exit_code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = runpy.run_path(str(ROOT / "scripts" / "audit.py"))
    assert audit["report"](packages) == exit_code
    assert says in capsys.readouterr().out
