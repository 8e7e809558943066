"""Compiled code on disk: whatever happened to the files, results are right, and at worst code compiles again."""

import os
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from fastrec.runtime import code_cache
from support.processes import ROOT, check, run

pytest.importorskip("resource", reason="no limits of processes on this system")

# A kernel that compiles in a moment, and whether its code came from the folder.
ASKED = """
import os, random
from pathlib import Path
from fastrec.runtime import code_cache, compiler

def total(numbers):
    found = 0
    for number in numbers:
        found += number
    return found

def product(numbers):
    found = 1
    for number in numbers:
        found *= number
    return found

compilations = []
announced = compiler._announced
def counted():
    compilations.append(True)
    return announced()
compiler._announced = counted

def ask(function=total):
    compilations.clear()
    value = compiler.Entry(function, function.__name__).compiled(np.arange(1, 6))
    assert value == {total: 15, product: 120}[function], value
    return not compilations

def file_of(function=total):
    (path,) = Path(os.environ["FASTREC_CACHE_DIR"]).rglob(f"{function.__name__}-*.nbc")
    return path
"""


def ask(code, folder, **settings):
    result = run(ASKED + code, FASTREC_CACHE_DIR=str(folder), **settings)
    assert result.returncode == 0, result.stderr
    assert not list(folder.rglob("*.tmp"))
    return result.stdout.split()


@pytest.mark.thorough
def test_compiled_code_is_kept(tmp_path):
    assert ask("print(ask(), ask())", tmp_path) == ["False", "True"]
    assert ask("print(ask())", tmp_path) == ["True"]


TWO_SIGNATURES = """
compiled = compiler.Entry(total, "total").compiled
print(*[compiled(np.arange(1, 6) / divisor) for divisor in (2, 1)], compiled(np.arange(1, 6)))
print(2 - len(compilations))
"""


def test_code_for_other_types_is_not_used(tmp_path):
    """One function for two types of arrays has two files."""
    assert ask(TWO_SIGNATURES, tmp_path) == ["7.5", "15.0", "15", "0"]
    assert ask(TWO_SIGNATURES, tmp_path) == ["7.5", "15.0", "15", "2"]
    assert len(list(tmp_path.rglob("total-*.nbc"))) == 2


DAMAGED = """
ask(), ask(product)
path, other = file_of(), file_of(product).read_bytes()
good = path.read_bytes()
chance = random.Random(0)
lengths = [0, 1, 32, 33, len(good) // 2, len(good) - 1]
contents = [good[:length] for length in lengths]
contents += [good + b"x", chance.randbytes(len(good)), chance.randbytes(9), other]
for at in [0, 31, 32, 33, 40, *(chance.randrange(len(good)) for _ in range(10)), len(good) - 1]:
    flipped = bytearray(good)
    flipped[at] ^= 1 << chance.randrange(8)
    contents.append(bytes(flipped))
for content in contents:
    path.write_bytes(content)
    assert not ask(), "a damaged file is not used"
    assert ask(), "and it is replaced"
print(len(contents))
"""


def test_a_damaged_file_is_compiled_again(tmp_path):
    assert ask(DAMAGED, tmp_path) == ["26"]


NO_FILE = """
ask()
path = file_of()
path.unlink()
path.symlink_to(path)  # cannot be opened, not even by the system's user
assert not ask() and ask()
path.chmod(0)
assert os.geteuid() == 0 or not ask()
path.unlink(missing_ok=True)
path.mkdir()
assert not ask() and not ask()
path.rmdir()
assert not ask() and ask()
print("fine")
"""


@pytest.mark.thorough
def test_what_cannot_be_read_is_compiled_again(tmp_path):
    assert ask(NO_FILE, tmp_path) == ["fine"]


@pytest.mark.thorough
def test_a_flipped_bit_in_a_kernel(tmp_path):
    """Real kernels, end to end: the machine code of some of these would end the process."""
    code = "print(*fastrec.bounded_auc([1, 0, 1, 0], [0.7, 0.2, 0.1, 0.9]))"
    check(run(code, FASTREC_CACHE_DIR=str(tmp_path)), "0.25 0.0")
    for step in (5000, 3001, 701):
        for path in tmp_path.rglob("*.nbc"):
            damaged = bytearray(path.read_bytes())
            for at in range(step // 2, len(damaged), step):
                damaged[at] ^= 4
            path.write_bytes(damaged)
        check(run(code, FASTREC_CACHE_DIR=str(tmp_path)), "0.25 0.0")
        assert path.read_bytes() != damaged


OTHERS = """
os.umask(0)
ask()
path = file_of()
for made in (path, *path.parents[:4]):
    assert not made.stat().st_mode & 0o022, made
path.chmod(0o646)
assert not ask() and ask()
path.chmod(0o664)  # a group of the owner's choice
assert ask()
if os.geteuid() == 0:
    os.chown(path, 12345, 12345)
    assert not ask() and ask()
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner on this system")
def test_code_that_others_could_have_written_is_not_run(tmp_path):
    assert ask(OTHERS, tmp_path / "cache") == ["fine"]


LINKED = """
ask()
path = file_of()
good, victim = path.read_bytes(), Path(os.environ["FASTREC_CACHE_DIR"], "victim")
def is_whole():
    return victim.read_text() == "mine" and os.stat(victim).st_mode & 0o777 == 0o600
for make in (path.symlink_to, path.hardlink_to, os.mkfifo):
    victim.unlink(missing_ok=True)
    victim.write_text("mine")
    victim.chmod(0o600)
    path.unlink()
    os.mkfifo(path) if make is os.mkfifo else make(victim)
    assert not ask() and is_whole() and ask()
path.unlink()
victim.write_bytes(good)
path.symlink_to(victim)
assert not ask() and ask() and victim.read_bytes() == good, "files elsewhere are neither read nor written"
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_links_and_pipes_in_the_folder_are_replaced_and_not_followed(tmp_path):
    assert ask(LINKED, tmp_path) == ["fine"]


FOREIGN = """
ask()
path = file_of()
variant, version, fastrec_folder, cache = path.parents[:4]
def is_used():
    before = sorted(cache.rglob("*"))
    used = ask()
    path.unlink()
    ask()
    assert used == path.exists()
    assert used or sorted(cache.rglob("*")) == [each for each in before if each.name != path.name]
    path.write_bytes(good)
    return used
good = path.read_bytes()
for folder in (variant, version, fastrec_folder, cache):
    assert is_used()
    os.chown(folder, 12345, 12345)
    assert not is_used(), folder
    os.chown(folder, 0, 0)
moved = fastrec_folder.rename(cache / "moved")
fastrec_folder.symlink_to(moved)
assert is_used(), "a link of this user"
os.chown(fastrec_folder, 12345, 12345, follow_symlinks=False)
assert not is_used(), "a link of another user"
print("fine")
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, who can give folders away")
def test_folders_of_others_are_neither_read_nor_written(tmp_path):
    assert ask(FOREIGN, tmp_path / "cache") == ["fine"]


HELPERS = """
@compiler.helper
def twice(number):
    return 2 * number

@compiler.helper
def four_times(number):
    return twice(twice(number))

def sum_of_four(numbers):
    found = 0
    for number in numbers:
        found += four_times(number)
    return found

def compile_helpers():
    assert compiler.Entry(sum_of_four, "sum_of_four").compiled(np.arange(1, 6)) == 60
    return compiler.Helper.plain
"""
OTHER_NUMBAS = {  # replacements of parts that another version lacks or has changed
    "as it is": "",
    "without a module": "sys.modules['fastrec.runtime.helper_compiler'] = None",
    "without a method": """
from fastrec.runtime import helper_compiler
class Strange(helper_compiler._HelperLibrary):
    def _finalize_dynamic_globals(self):
        raise AttributeError("_finalize_dynamic_globals")
helper_compiler._HelperLibrary = Strange
""",
    "with other arguments": """
from fastrec.runtime import helper_compiler
class Strange(helper_compiler.DefaultPassBuilder):
    define_nopython_pipeline = staticmethod(lambda state, name: None)
helper_compiler.DefaultPassBuilder = Strange
""",
    "without kernels": "sys.modules['fastrec.runtime.kernel_compiler'] = None",
    "without an object file": """
from fastrec.runtime import kernel_compiler
def fail(*_):
    raise AttributeError("emit_object")
kernel_compiler._KernelLibrary.object_file = fail
""",
    "with other memory of arrays": """
from numba.core.runtime import nrtdynmod
fields = nrtdynmod._meminfo_struct_type.elements
nrtdynmod._meminfo_struct_type = nrtdynmod.ir.LiteralStructType([*fields, nrtdynmod._word_type])
""",
    "with another linker": """
from llvmlite import binding
def fail(*_, **__):
    raise RuntimeError("no such relocation")
binding.JITLibraryBuilder.link = fail
""",
    "with other arrays": """
from fastrec.runtime import compiler
compiler.reads_arrays = lambda: False
""",
}


@pytest.mark.thorough(except_for="without an object file")
@pytest.mark.parametrize("other", OTHER_NUMBAS)
def test_another_numba_is_slower_and_nothing_else(other, tmp_path):
    """Without its private parts, kernels are compiled by Numba alone, and no code is kept."""
    code = f"import numba, sys\n{OTHER_NUMBAS[other]}\nprint(compile_helpers(), compile_helpers())"
    assert ask(HELPERS + code, tmp_path) == [str(other != "as it is")] * 2
    assert len(list(tmp_path.rglob("*.nbc"))) == (other == "as it is")


BROKEN = """
def broken(numbers):
    return numbers.no_such_attribute

for _ in range(2):
    try:
        compiler.Entry(broken, "broken").compiled(np.arange(3))
    except Exception as error:
        assert "no_such_attribute" in str(error), error
    else:
        raise AssertionError("compiled")
print(compiler.Helper.plain, compile_helpers())
"""


@pytest.mark.thorough
def test_code_that_cannot_be_compiled_says_nothing_against_the_private_parts(tmp_path):
    assert ask(HELPERS + BROKEN, tmp_path) == ["False", "False"]


@pytest.mark.parametrize(
    ("owner", "mode", "ours"),
    [(1000, 0o644, True), (0, 0o644, True), (1000, 0o664, True), (1000, 0o646, False), (1001, 0o644, False)],
)
def test_an_image_that_root_builds_serves_others(monkeypatch, owner, mode, ours):
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert code_cache._is_ours(SimpleNamespace(st_uid=owner, st_mode=0o100000 | mode)) is ours


READ_ONLY = """
ask()
def refuse(path, mode):
    raise OSError(30, "Read-only file system")
code_cache.replacing = refuse
print(ask(), ask(product), ask(product))
"""


def test_a_folder_that_can_only_be_read_is_read(tmp_path):
    assert ask(READ_ONLY, tmp_path) == ["True", "False", "False"]


def test_no_room_for_the_files(tmp_path):
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); print(ask(), ask())"
    assert ask(code, tmp_path) == ["False", "False"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_disk(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system of our own: {mounted.stderr.decode().strip()}")
    try:
        (tmp_path / "fills").write_bytes(bytes(16_000))
        assert ask("print(ask(), ask())", tmp_path) == ["False", "False"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.thorough
def test_a_folder_that_is_removed_before_it_is_written_to(tmp_path):
    assert ask("code_cache._make_folder = lambda folder: None; print(ask(), ask())", tmp_path) == ["False", "False"]


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}, {"NUMBA_OPT": "1"}])
def test_the_code_of_another_processor_is_not_used(tmp_path, settings):
    assert ask("print(ask(), ask())", tmp_path, **settings) == ["False", "True"]
    assert ask("print(ask(), ask())", tmp_path) == ["False", "True"]
    other, own = sorted(tmp_path.glob("fastrec/*"), key=lambda folder: folder.stat().st_mtime)
    shutil.rmtree(own)
    other.rename(own)  # as if they had the same name
    assert ask("print(ask())", tmp_path) == ["False"]


def test_numpy_1_and_2_share_no_code(monkeypatch):
    folders = []
    for version in ("1.26.0", "1.26.4", "2.0.0", "2.4.6"):
        monkeypatch.setattr(np, "__version__", version)
        folders.append(code_cache._version_folder.__wrapped__())
    assert folders[0] == folders[1] != folders[2] == folders[3]


@pytest.mark.thorough
def test_two_versions_share_a_folder(tmp_path):
    """Only a kernel's helper differs, in another file than the kernel."""
    sites = ROOT, tmp_path / "site"
    shutil.copytree(ROOT / "fastrec", sites[1] / "fastrec", ignore=shutil.ignore_patterns("__pycache__"))
    helper = sites[1] / "fastrec/kernels/gains.py"
    changed = helper.read_text().replace("return grown if", "return 3.0 * grown if")
    assert changed != helper.read_text()
    helper.write_text(changed)
    code = (
        "print(fastrec.evaluate([[1, 2]], ([1], [0, 1], [2.0]), 'dcg(gain=exp2)@2', n_threads=1)['dcg(gain=exp2)@2'])"
    )
    for site, value in zip(sites * 2, ("3.0", "9.0") * 2, strict=True):
        found = run(code, cwd=tmp_path, PYTHONPATH=str(site), FASTREC_CACHE_DIR=str(tmp_path / "cache"))
        check(found, value)
    assert len(list(tmp_path.glob("cache/fastrec/*/*/*.nbc"))) == 2
