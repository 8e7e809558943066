"""What a release takes along: the conda recipe, the citation, the changelog, templates of issues."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fastrec

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
METADATA = PROJECT["project"]
NAMES_OF_CONDA = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base", "ray": "ray-data"}


def load_yaml(text: str) -> Any:
    return pytest.importorskip("yaml", reason="no PyYAML: pip install 'fastrec-eval[docs]'").safe_load(text)


@pytest.fixture(scope="module")
def recipe() -> Any:
    """The recipe, rendered as conda-build does."""
    jinja2 = pytest.importorskip("jinja2", reason="no Jinja: pip install 'fastrec-eval[docs]'")
    path = ROOT / "recipe" / "meta.yaml"

    def load_file_regex(load_file: str, regex_pattern: str, *, from_recipe_dir: bool) -> re.Match[str] | None:
        assert from_recipe_dir
        return re.search(regex_pattern, (path.parent / load_file).read_text(encoding="utf-8"))

    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(path.read_text(encoding="utf-8"))
    return load_yaml(template.render(PYTHON="python", load_file_regex=load_file_regex))


def as_conda(lines: list[str]) -> list[str]:
    """Return requirements of pip in the words of conda."""
    found = []
    for line in lines:
        name, extra, bound = re.fullmatch(r"([\w-]+)(\[\w+\])?(>=[\d.]+)", line).groups()  # type: ignore[union-attr]
        assert extra in (None, "[sql]", "[dataframe]", "[pyarrow]", "[data]", "[http]"), line
        found.append(f"{NAMES_OF_CONDA.get(name, name)} {bound}")
    return found


def test_the_recipe_has_the_requirements_of_the_project(recipe: Any) -> None:
    extras, needs = METADATA["optional-dependencies"], recipe["requirements"]
    python = f"python {METADATA['requires-python']}"
    assert needs["run"] == [python, *as_conda(METADATA["dependencies"] + extras["cli"])]
    assert needs["host"] == [python, "pip", *as_conda(PROJECT["build-system"]["requires"])]
    names = ("frames", "plot", "stats", "models", "spark", "dask", "ray", "remote", "delta", "iceberg")
    others = [line for name in names for line in as_conda(extras[name])]
    assert needs["run_constrained"] == [line for line in others if line not in needs["run"]]
    assert {"cli", "arrow", "frames", "plot", "stats", "models", "spark"} == set(
        re.findall(r"\w+", extras["all"][0].partition("[")[2])
    )


def test_the_recipe_describes_the_project(recipe: Any) -> None:
    assert recipe["package"] == {"name": METADATA["name"], "version": fastrec.__version__}
    about = {"summary": METADATA["description"], "license": METADATA["license"], "license_file": "LICENSE"}
    assert recipe["about"] == about
    assert recipe["build"]["entry_points"] == [f"{name} = {call}" for name, call in METADATA["scripts"].items()]
    assert (ROOT / "recipe" / recipe["source"]["path"]).resolve() == ROOT


def name_of_author(author: dict[str, str]) -> str:
    """Return the name of an entity, or of a person."""
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def test_people_and_entities_are_authors() -> None:
    assert name_of_author({"given-names": "Ada", "family-names": "Lovelace", "orcid": "x"}) == "Ada Lovelace"
    assert name_of_author({"name": "The fastrec authors"}) == "The fastrec authors"


def test_the_citation_describes_the_project() -> None:
    citation = load_yaml((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"]
    assert citation["title"] == f"fastrec: {METADATA['description'][0].lower()}{METADATA['description'][1:]}"
    assert list(map(name_of_author, citation["authors"])) == [author["name"] for author in METADATA["authors"]]
    assert citation["license"] == METADATA["license"] and citation["keywords"] == METADATA["keywords"]
    assert "version" not in citation, "only fastrec/_version.py has the version"


def test_the_changelog_begins_with_this_version_or_with_what_follows_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", text, re.MULTILINE)
    versions = dict(heads)
    assert next(name for name, _ in heads if name != "Unreleased") == fastrec.__version__
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", versions[fastrec.__version__])
    assert "Unreleased" not in versions or heads[0] == ("Unreleased", "")


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem)
def test_a_template_of_an_issue_asks_for_the_versions(path: Path) -> None:
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert set(load_yaml(head)) == {"name", "about"}
    assert "`fastrec --version`" in body
    for file in re.findall(r"`([\w/]+\.md)`", body):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("name", ["demo", "test"])
def test_commands_of_the_readme_can_be_read(name: str) -> None:
    done = subprocess.run([ROOT / "scripts" / "readme_command", name], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("python3 -m venv .venv && ") and done.stdout.count("\n") == 1


def test_a_command_that_the_readme_lacks_is_an_error() -> None:
    done = subprocess.run([ROOT / "scripts" / "readme_command", "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and "<!-- x command -->" in done.stderr


def test_a_python_of_pyenv_is_found(tmp_path: Path) -> None:
    python = tmp_path / "versions" / "3.98.1" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for version, wanted in (("3.98", (0, f"{sys.executable}\n")), ("3.97", (1, ""))):
        command = ["bash", "-c", f"source scripts/find_python.sh; find_python {version}"]
        environment = {**os.environ, "PYENV_ROOT": str(tmp_path)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == wanted
    for script in ("scripts/release", ".ci/full"):
        assert "source scripts/find_python.sh\n" in (ROOT / script).read_text(encoding="utf-8")
