"""Kernels without Numba: compiled code takes any arguments, raises what it should, and loads no compiler."""

import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from fastrec.runtime import compiler, numba_settings, values
from support.processes import check, run


class Pair(NamedTuple):
    table: Any
    row: Any
    n: int


def work_on(pair, factor, nothing, flag, number):
    """Use every kind of argument, and return every kind of number."""
    found = 0.0
    for i in range(pair.table.shape[0]):
        for j in range(pair.table.shape[1]):
            found += factor * pair.table[i, j] * (i + 2 * j)
    made = np.zeros(pair.n)
    for i in range(len(pair.row)):
        made[i % pair.n] += pair.row[i]
    if flag and nothing is None:
        found += made[pair.n - 1]
    return found, len(pair.row), flag, number


ENTRY = compiler.Entry(work_on, "test-of-arguments", allocates=True)
TABLE, ROW = np.arange(12.0).reshape(3, 4), np.arange(7)


def misaligned(array):
    found = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    found[:] = array
    return found


def fixed(array):
    found = array.copy()
    found.setflags(write=False)
    return found


def mapped(array, path):
    np.save(path / "array.npy", array)
    return np.load(path / "array.npy", mmap_mode="r")


CALLS = {
    "plain": lambda _: (Pair(TABLE, ROW, 3), 2, None, True, 5),
    "other numbers": lambda _: (Pair(TABLE, ROW, np.int64(3)), np.float64(2.5), None, np.bool_(False), np.uint64(5)),
    "narrow numbers": lambda _: (Pair(TABLE, ROW, np.int32(3)), np.float32(0.1), None, True, np.uint8(255)),
    "the largest number": lambda _: (Pair(TABLE, ROW, 3), 2, None, True, 2**64 - 1),
    "the least number": lambda _: (Pair(TABLE, ROW, 3), 2, None, True, -(2**63)),
    "columns": lambda _: (Pair(TABLE.T, ROW, 3), 2, None, True, 5),
    "gaps": lambda _: (Pair(TABLE[::2, ::-1], ROW[::3], 3), 2, None, True, 5),
    "nothing in them": lambda _: (Pair(TABLE[:0], ROW[:0], 3), 2, None, True, 5),
    "read-only": lambda _: (Pair(fixed(TABLE), fixed(ROW), 3), 2, None, True, 5),
    "narrow": lambda _: (Pair(TABLE.astype(np.float32), ROW.astype(np.uint8), 3), 2, None, True, 5),
    "long long": lambda _: (Pair(TABLE, ROW.astype(np.longlong), 3), 2, None, True, 5),
    "misaligned": lambda _: (Pair(TABLE, misaligned(ROW), 3), 2, None, True, 5),
    "sent": lambda _: (Pair(TABLE, pickle.loads(pickle.dumps(ROW)), 3), 2, None, True, 5),
    "in a file": lambda path: (Pair(TABLE, mapped(ROW, path), 3), 2, None, True, 5),
}


@pytest.mark.thorough(except_for="^(plain|gaps|read-only|long long|sent|the largest number)$")
@pytest.mark.parametrize("call", CALLS)
def test_compiled_code_takes_what_python_takes(call, tmp_path):
    """Twice, and after arguments of other types: the quick way must not take them for the last ones."""
    arguments = CALLS[call](tmp_path)
    for given in (arguments, arguments, CALLS["plain"](None), arguments):
        found, wanted = ENTRY.compiled(*given), ENTRY.interpreted(*given)
        assert found == wanted
        assert [type(value) for value in found] == [float, int, bool, int]


def test_arrays_with_other_bytes_are_refused():
    with pytest.raises(Exception, match=r">i8|dtype"):
        ENTRY.compiled(Pair(TABLE, ROW.astype(">i8"), 3), 2, None, True, 5)


def test_an_array_of_another_kind_is_never_read():
    """Compiled code looks at the arrays before it reads any: this one has no shape."""
    ENTRY.compiled(*CALLS["plain"](None))
    routine = ENTRY._routines[values.describe(CALLS["plain"](None))]
    for row in (np.array(5), TABLE, ROW.astype(np.int32), ROW[::2], fixed(ROW)):
        leaves = values.flatten((Pair(TABLE, row, 3), 2, None, True, 5))[1]
        assert routine(leaves) is compiler.MISFIT


def fail(n, index):
    made = np.empty(n)
    made[0] = 1.0
    return made[index]


@pytest.mark.parametrize(("n", "error"), [(1 << 45, MemoryError), (-1, ValueError), (1 << 62, ValueError)])
def test_errors_of_kernels_are_raised(n, error):
    entry = compiler.Entry(fail, "test-of-errors", allocates=True)
    assert entry.compiled(3, 0) == 1.0
    for _ in range(2):
        with pytest.raises(error, match=r"Allocation failed|negative|too big"):
            entry.compiled(n, 0)
    assert entry.compiled(3, 0) == 1.0


def split(numbers, fractions, exponents, joined):
    for i in range(len(numbers)):
        fractions[i], exponents[i] = math.frexp(numbers[i])
        joined[i] = math.ldexp(fractions[i], exponents[i])


def test_the_functions_that_are_compiled_in_are_those_of_python():
    rng = np.random.default_rng(0)
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -2.2e-308, 1.7976931348623157e308, 1.0, 0.5]
    numbers = np.array([*odd, *np.ldexp(rng.normal(size=200), rng.integers(-1080, 1000, 200))])
    room = [np.empty(len(numbers)), np.empty(len(numbers), np.int64), np.empty(len(numbers))]
    compiler.Entry(split, "test-of-functions").compiled(numbers, *room)
    wanted = [math.frexp(number) for number in numbers]
    assert room[0].tobytes() == np.array([fraction for fraction, _ in wanted]).tobytes()
    assert room[1].tolist() == [exponent for _, exponent in wanted]
    assert np.array_equal(room[2], numbers, equal_nan=True)


def total(numbers):
    found = numbers[0]
    for number in numbers[1:]:
        found += number
    return found


def test_kernels_of_other_kinds_are_called_by_numba(monkeypatch):
    monkeypatch.setattr(compiler.Helper, "plain", False)
    entry = compiler.Entry(total, "test-of-others")
    assert [entry.compiled(np.array([1j, 2.0])) for _ in range(2)] == [2 + 1j] * 2
    assert entry.compiled(np.array([1.0, 2.0])) == 3.0


def test_arrays_are_where_compiled_code_looks_for_them():
    assert values.reads_arrays()


# Without Numba

MORE = """
import sys
lists, scores = (items, indptr, (items % 7).astype(float)), (items % 13 / 16 + 0.1).astype(np.float32)
found = [
    many(n_threads=2), many(n_threads=1), many(n_threads=2, groups=np.arange(n) % 3, per_user=True),
    fastrec.evaluate(lists, (items, indptr, items % 3 + 1.0), ["ndcg", "err(max_gain=4)"], ties="expected"),
    fastrec.evaluate_scores(items % 3 == 0, scores, indptr, ["gauc", "log_loss", "ndcg@10"], n_threads=2),
]
numbers = [fastrec.auc(items % 3 == 0, scores), *fastrec.bounded_auc(items % 3 == 0, scores)]
print(hash(repr([report.to_json() for report in found] + numbers)), IS_FIRST or "numba" not in sys.modules)
"""


def test_a_process_with_compiled_kernels_needs_no_compiler():
    """Nor SciPy, which Numba imports."""
    code = "many(n_threads=2); print(*[name for name in ('numba', 'scipy', 'llvmlite') if name in sys.modules])"
    run("many(n_threads=2)")
    check(run("import sys\n" + code), "llvmlite")


@pytest.mark.thorough
def test_kernels_give_the_same_bits_without_a_compiler():
    first, second = (run(MORE.replace("IS_FIRST", str(own)), PYTHONHASHSEED="0") for own in (True, False))
    assert first.returncode == 0, first.stderr
    check(second, first.stdout)


# Settings of Numba


@pytest.fixture
def _no_settings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in numba_settings._environment():
        monkeypatch.delenv(f"NUMBA_{name}")


@pytest.mark.usefixtures("_no_settings")
def test_settings_of_numba_are_seen_whether_it_is_loaded_or_not(monkeypatch, tmp_path):
    def seen(**environment):
        code = (
            "from fastrec.runtime import numba_settings as own; import sys; print(repr(own.settings()), own.version())"
        )
        return run(f"{code}; assert 'numba' not in sys.modules", before="", cwd=tmp_path, **environment).stdout

    usual = seen()
    assert usual.split() == ["''", numba_settings.version()]
    assert seen(NUMBA_NUM_THREADS="1", NUMBA_CACHE_DIR=str(tmp_path)) == usual
    assert len({usual, seen(NUMBA_BOUNDSCHECK="1"), seen(NUMBA_OPT="1"), seen(NUMBA_ENABLE_AVX="0")}) == 4
    (tmp_path / ".numba_config.yaml").write_text("opt: 1\n")
    assert "opt: 1" in seen()

    config = pytest.importorskip("numba").config
    assert numba_settings.version() == pytest.importorskip("numba").__version__
    before = numba_settings.settings()
    monkeypatch.setattr(config, "LOOP_VECTORIZE", 0)
    assert numba_settings.settings() != before
    assert not numba_settings.is_told_to_interpret()
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert numba_settings.is_told_to_interpret()
