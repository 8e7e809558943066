"""Compiled code on disk: whatever happened to the files, results are right, and at worst code compiles again."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import fastrec
from fastrec.runtime import code_folder
from support.processes import ROOT, check, run

pytest.importorskip("resource", reason="no limits of processes on this system")

# A call of a driver that compiles in some seconds: its value, and whether its code was compiled or read.
ASK = """
from fastrec.kernels import resampling
from fastrec.runtime import launcher
def ask():
    sums = np.zeros(2, np.int64)
    launcher._compiled.clear()
    launcher.launch(resampling.flip_signs, 1, np.arange(5), np.uint64(7), sums, work=1, n_threads=1)
    (twin,) = launcher._compiled.values()
    stats = getattr(twin.function, "stats", None)
    return int(sums.sum()), "read" if stats.cache_hits else "compiled"
"""
VALUE = "13"


def ask(folder, code="print(*ask())", **settings):
    result = run(ASK + code, FASTREC_CACHE_DIR=str(folder), **settings)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.nb?")}


def test_what_a_process_compiled_is_read_and_kept_once(tmp_path):
    assert ask(tmp_path) == [VALUE, "compiled"]
    files = files_of(tmp_path)
    assert len(files) == 2
    assert ask(tmp_path) == [VALUE, "read"]
    assert files_of(tmp_path) == files


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("content", [b"", b"no pickle", None])
def test_a_damaged_file_is_compiled_again(tmp_path, name, content):
    ask(tmp_path)
    (path,) = tmp_path.rglob(name)
    path.write_bytes(path.read_bytes()[:100] if content is None else content)
    assert ask(tmp_path)[0] == VALUE
    assert not list(tmp_path.rglob("*.nb?"))
    assert ask(tmp_path) == [VALUE, "compiled"]
    assert ask(tmp_path) == [VALUE, "read"]


@pytest.mark.thorough
def test_a_function_that_a_kernel_calls_is_changed(tmp_path):
    """Numba looks at the file of the kernel only, and the function may stand in another one."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "fastrec", site / "fastrec", ignore=shutil.ignore_patterns("__pycache__"))
    gains = site / "fastrec/kernels/gains.py"
    gains.write_text(gains.read_text().replace("return grown if", "return 3.0 * grown if"))
    code = (
        "print(fastrec.evaluate([[1, 2]], ([1], [0, 1], [2.0]), 'dcg(gain=exp2)@2', n_threads=1)['dcg(gain=exp2)@2'])"
    )
    for folder, value in ((ROOT, "3.0"), (site, "9.0"), (ROOT, "3.0")):
        check(run(code, cwd=tmp_path, PYTHONPATH=str(folder), FASTREC_CACHE_DIR=str(tmp_path / "cache")), value)
    assert len(list(tmp_path.glob("cache/fastrec/*"))) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{"NUMBA_OPT": "1"}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_CPU_NAME": "generic"}])
def test_code_of_other_settings_is_not_used(tmp_path, settings):
    assert ask(tmp_path) == [VALUE, "compiled"]
    assert ask(tmp_path, **settings) == [VALUE, "compiled"]
    assert ask(tmp_path) == ask(tmp_path, **settings) == [VALUE, "read"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, who can give folders away")
def test_folders_of_others_and_of_everyone_are_not_used(tmp_path):
    code = "from fastrec.runtime.code_folder import code_folder; print(code_folder())"
    folder = Path(ask(tmp_path, code)[0])
    for own in (folder, folder.parent):
        mode = own.stat().st_mode & 0o777
        assert not mode & 0o022
        os.chown(own, 12345, 12345)
        assert ask(tmp_path, code) == ["None"]
        os.chown(own, 0, 0)
        own.chmod(0o777)
        assert ask(tmp_path, code) == ["None"]
        own.chmod(mode)
    assert ask(tmp_path, code) == [str(folder)]


def test_a_folder_that_can_only_be_read_is_read(tmp_path):
    """Numba reads code only where it may write, so a copy serves this process alone."""
    before = "import os\nmay = os.access\nos.access = lambda path, mode: mode != os.W_OK and may(path, mode)\n"
    assert ask(tmp_path) == [VALUE, "compiled"]
    files, others = files_of(tmp_path), tmp_path / "others"
    others.mkdir()
    assert ask(tmp_path, before + "print(*ask())", TMPDIR=str(others)) == [VALUE, "read"]
    assert files_of(tmp_path) == files
    assert not list(others.iterdir())


@pytest.mark.thorough
def test_no_room_for_the_files(tmp_path):
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); print(*ask())"
    assert ask(tmp_path, code) == [VALUE, "compiled"]
    assert ask(tmp_path)[0] == VALUE


@pytest.mark.thorough
def test_a_full_disk(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", tmp_path]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system of our own: {mounted.stderr.decode().strip()}")
    try:
        (tmp_path / "fills").write_bytes(bytes(16_000))
        assert ask(tmp_path) == [VALUE, "compiled"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_folders_of_other_versions_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTREC_CACHE_DIR", str(tmp_path))
    own, other = tmp_path / "fastrec" / code_folder._version(), tmp_path / "fastrec" / "0.1.0-abc"
    for folder in (own, other):
        folder.mkdir(parents=True)
    code_folder.remove_other_code()
    assert list((tmp_path / "fastrec").iterdir()) == [own]


def test_code_of_each_signature_lies_in_a_folder_of_its_own(tmp_path):
    """Of two processes that keep code in one folder at once, one may give the other's a name of its own."""
    narrow = ASK.replace("np.arange(5)", "np.arange(5, dtype=np.int32)")
    assert ask(tmp_path) == ask(tmp_path, narrow + "print(*ask())") == [VALUE, "compiled"]
    assert len({path.parent.parent for path in tmp_path.rglob("*.nbi")}) == 2


@pytest.mark.thorough
def test_nothing_is_kept_inside_the_package(tmp_path):
    settings = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator", "FASTREC_CACHE_DIR": str(tmp_path)}
    check(run("print(few())", **settings), "0.5")
    assert not list((ROOT / "fastrec").rglob("*.nb[ic]"))


def drivers():
    """Yield all kernels that are compiled for several threads."""
    for path in (Path(fastrec.__file__).parent / "kernels").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and "parallel=True" in "".join(map(ast.unparse, node.decorator_list)):
                yield path.stem, node


@pytest.mark.parametrize("driver", [node for _, node in drivers()], ids=[f"{m}.{n.name}" for m, n in drivers()])
def test_a_driver_runs_ranges_of_tasks(driver):
    """Its code is kept, and its body is one loop, of which other threads may run other tasks."""
    assert [ast.unparse(own) for own in driver.decorator_list] == ["njit(parallel=True, cache=True)"]
    assert [own.arg for own in driver.args.args[:2]] == ["first", "last"]
    docstring, *loops = driver.body
    assert isinstance(docstring, ast.Expr)
    assert [ast.unparse(loop.iter) for loop in loops] == ["prange(first, last)"]
    assert len(ast.unparse(loops[0]).splitlines()) <= 6
