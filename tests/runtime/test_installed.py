"""Another package of the name `fastrec`, which writes into the same folder: what the command says about it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastrec
from fastrec import __main__ as command
from fastrec._version import DISTRIBUTION
from fastrec.exceptions import MissingExtraError
from fastrec.runtime import installed

pytest.importorskip("click")
pytest.importorskip("rich")

PACKAGE = Path(fastrec.__file__).parent
MEND = f"pip uninstall fastrec {DISTRIBUTION}, then pip install '{DISTRIBUTION}[cli]'"

START = """
import os, sys
site = sys.argv.pop(1)
sys.path[:] = [site, *(folder for folder in sys.path if not os.path.isdir(os.path.join(folder, "fastrec")))]
from fastrec.__main__ import main
main()
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages that holds a copy of fastrec."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "fastrec", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def add_namesake(site: Path, *files: str) -> None:
    folder = site / "fastrec-0.0.4.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: fastrec\nVersion: 0.0.4\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in (*files, "fastrec-0.0.4.dist-info/METADATA")))


def run(site: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the command as its script does, with the packages of a folder and without any other fastrec."""
    command = [sys.executable, "-c", START, str(site), *arguments]
    done = subprocess.run(command, cwd=site.parent, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_package_of_its_own_says_nothing(site: Path) -> None:
    add_namesake(site, "fastrec.pth")  # as an editable installation of our own has it
    assert run(site, "--version") == (0, f"fastrec {fastrec.__version__}\n", "")


def test_the_version_names_a_distribution_that_shares_the_folder(site: Path) -> None:
    add_namesake(site, "fastrec/__init__.py", "fastrec/RecAPI.py")
    found = f"fastrec 0.0.4, another distribution, is installed too, and both write into the folder fastrec/: {MEND}"
    assert run(site, "--version") == (0, f"fastrec {fastrec.__version__}\n", f"fastrec: {found}\n")


@pytest.mark.parametrize(
    ("text", "state"),
    [(None, "is missing"), ("from .RecAPI import app", "is that of another package")],
    ids=["removed", "replaced"],
)
@pytest.mark.parametrize("arguments", [["--version"], ["metrics"]], ids=" ".join)
def test_a_replaced_package_is_an_error_that_says_how_to_mend_it(
    site: Path, text: str | None, state: str, arguments: list[str]
) -> None:
    (site / "fastrec" / "__init__.py").unlink()
    if text is not None:
        (site / "fastrec" / "__init__.py").write_text(text)
        (site / "fastrec" / "RecAPI.py").write_text("app = None")
    message = f"fastrec: fastrec/__init__.py of {DISTRIBUTION} {fastrec.__version__} {state}: {MEND}\n"
    assert run(site, *arguments) == (2, "", message)


def test_this_environment_has_no_other_package() -> None:
    assert installed.other_package() is None


def test_the_version_needs_no_package_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(*_: object, **__: object) -> None:
        raise MissingExtraError("the command line needs click")

    monkeypatch.setattr(command, "require", lacks)
    for arguments, code, told in ((["--version"], None, f"fastrec {fastrec.__version__}"), (["demo"], 2, "")):
        monkeypatch.setattr(sys, "argv", ["fastrec", *arguments])
        with pytest.raises(SystemExit) as ended:
            command.main()
        assert (ended.value.code, capsys.readouterr().out.strip()) == (code, told)


@pytest.mark.parametrize("engine", ["spark", "dask", "ray"])
def test_engines_need_no_import_of_their_own(engine: str) -> None:
    code = f"import fastrec; print(fastrec.{engine}.evaluate.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"fastrec.clusters.{engine}")
