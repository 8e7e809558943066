"""Imports and sizes of modules: read from the sources, and from a fresh interpreter."""

import ast
import functools
import graphlib
import inspect
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import fastrec
from fastrec.metrics.recipe import DEFAULT_POLICIES

PACKAGE = Path(fastrec.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A module may import from its own package and from the lines below.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("demo", "explanation"),
    ("files", "spark", "dask", "ray", "precompile"),
    ("clusters",),
    ("feedback", "counterfactual"),
    ("api",),
    ("evaluation", "comparison"),
    ("report",),
    ("items", "scored"),
    ("segments",),
    ("show",),
    ("inputs", "metrics"),
    ("arguments",),
    ("policies",),
    ("kernels",),
    ("runtime",),
    ("checks",),
    ("exceptions", "_version"),
)
HEIGHTS = {package: -at for at, line in enumerate(LAYERS) for package in line}
LINES_OF_FILE = 600
LINES, LINES_OF_KERNEL = 70, 40  # at most, for a function without its docstring
ARGUMENTS_OF_KERNEL = 25  # at most: arrays make compilation slow
ENTRIES = 31  # at most in the package, so that `ls` shows the architecture


def module_of(path: Path) -> str:
    """Return `fastrec.inputs.ids` for fastrec/inputs/ids.py."""
    parts = ["fastrec", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


class Import(NamedTuple):
    module: str
    line: int
    runs_on_import: bool
    for_types: bool


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(node: ast.AST, *, inside: bool = False, for_types: bool = False) -> Iterator[Import]:
    """Yield every import in a syntax tree, those in functions and for type checks too."""
    found: list[str] = []
    if isinstance(node, ast.Import):
        found = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level in {0, 1}, "relative import"
        module = f"fastrec.kernels.{node.module}" if node.level == 1 else node.module  # see `fastrec.kernels.jit`
        found = [f"{module}.{alias.name}" for alias in node.names]
    for module in found:
        yield Import(module, node.lineno, not (inside or for_types), for_types)  # type: ignore[attr-defined]
    inside |= isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for child in ast.iter_child_nodes(node):
        yield from imports_of(child, inside=inside, for_types=for_types or is_for_types_only(node))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_module_has_a_layer() -> None:
    assert {layer_of(module_of(path)) for path in SOURCES} == {*HEIGHTS, "__init__"}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_imports_point_down(path: Path) -> None:
    own = layer_of(module_of(path))
    if own == "__init__":  # re-exports the public names of all layers
        return
    for found in imports_of(tree_of(path)):
        if found.module.split(".")[0] != "fastrec":
            continue
        other = layer_of(found.module)
        if other not in HEIGHTS:  # a name of the package itself
            pytest.fail(f"line {found.line} imports {found.module}: import it from its module")
        if other != own:
            assert HEIGHTS[own] > HEIGHTS[other], f"line {found.line} imports {found.module}"


def test_no_modules_import_one_another() -> None:
    """Imports for type checks may form cycles; those in functions may not."""
    modules = {module_of(path): path for path in SOURCES}
    arrows = {
        name: {next(m for m in (i.module, i.module.rpartition(".")[0]) if m in modules) for i in own} - {"fastrec"}
        for name, path in modules.items()
        if (own := [i for i in imports_of(tree_of(path)) if i.module.startswith("fastrec.") and not i.for_types])
    }
    assert arrows["fastrec.api.calls"] > {"fastrec.evaluation.lists"}
    del arrows["fastrec"]  # it imports names at first use
    graphlib.TopologicalSorter(arrows).prepare()  # raises CycleError


def test_no_test_module_imports_another() -> None:
    """What tests share is in `tests/support`."""
    tests = PACKAGE.parent / "tests"
    modules = [*tests.glob("*/*.py")]
    assert len(modules) > 80
    found = {(path.name, i.module) for path in modules for i in imports_of(tree_of(path))}
    assert not {(name, module) for name, module in found if re.search(r"(^|\.)test_", module)}


def test_the_package_fits_a_screen() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.name != "__pycache__"]) <= ENTRIES


def test_no_file_is_too_long() -> None:
    assert not {path.name for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > LINES_OF_FILE}


ON_IMPORT = {
    "numpy": {*HEIGHTS},
    "numba": {"kernels"},
    "click": {"cli"},
}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_only_what_is_always_installed_is_imported_on_import(path: Path) -> None:
    """Only the command line needs click: `__main__` says if it is missing."""
    for found in imports_of(tree_of(path)):
        package = found.module.split(".")[0]
        if found.runs_on_import and package != "fastrec" and package not in sys.stdlib_module_names:
            own = layer_of(module_of(path))
            assert own in ON_IMPORT.get(package, ()), f"line {found.line} imports {found.module}"


def test_the_package_itself_imports_only_what_is_light() -> None:
    found = {
        i.module.split(".")[1]
        for i in imports_of(tree_of(PACKAGE / "__init__.py"))
        if i.runs_on_import and "." in i.module
    }
    here = {"_version", "exceptions", "inputs", "runtime"}
    assert found - {"abc"} <= here | {"TYPE_CHECKING", "Any", "annotations"}


COMPILERS = {"njit", "jit", "prange", "vectorize", "guvectorize", "cfunc", "generated_jit"}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_only_kernels_are_compiled(path: Path) -> None:
    if layer_of(module_of(path)) in ("kernels", "runtime"):
        return
    used = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    assert not used & COMPILERS


def test_the_kernels_are_where_we_look() -> None:
    """Otherwise the test above would pass on any source."""
    drivers = [path.name for path in (PACKAGE / "kernels").glob("*.py") if "@njit(parallel=True" in path.read_text()]
    assert {"hits.py", "users.py", "sorting.py"} <= set(drivers)


RUN_TEXT = {"eval", "exec", "compile", "__import__"}
UNSAFE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "subprocess", "pty", "tarfile"}
UNSAFE_CALLS = (
    r"os\.(system|popen|exec\w*|spawn\w*|startfile)|(np|numpy)\.load|\w+\.(read_pickle|unpack_archive|extractall)"
)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_nothing_runs_text_or_programs_or_reads_pickles(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in RUN_TEXT, f"line {node.lineno}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant), f"line {node.lineno}"
            assert node.value.value is False, f"line {node.lineno}"
        if isinstance(node, ast.keyword):
            assert node.arg != "shell", f"line {node.lineno}"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert not re.fullmatch(UNSAFE_CALLS, called), f"line {node.lineno}: {called}"
            if called.endswith((".read_array", ".write_array")):
                assert "allow_pickle" in {keyword.arg for keyword in node.keywords}, f"line {node.lineno}"
    assert not {found.module.split(".")[0] for found in imports_of(tree_of(path))} & UNSAFE


# In a fresh interpreter


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_loads_numpy_and_nothing_else() -> None:
    program = """
import sys
before = set(sys.modules)
import fastrec
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - set(sys.stdlib_module_names)))
"""
    assert run(program) == "['fastrec', 'numpy']"


LIGHT = [
    "fastrec",
    "fastrec._version",
    "fastrec.checks",
    "fastrec.exceptions",
    "fastrec.inputs",
    "fastrec.inputs.ragged",
    "fastrec.runtime",
    "fastrec.runtime.threads",
    "fastrec.inputs.tensors",
]


def test_importing_reads_no_metric_and_no_kernel() -> None:
    program = "import sys, fastrec; print(sorted(name for name in sys.modules if name.startswith('fastrec')))"
    assert run(program) == str(sorted(LIGHT))


def test_lists_need_nothing_of_scored_rows_models_items_and_pages() -> None:
    program = """
import sys, fastrec
str(fastrec.evaluate([[1, 2]], [[2]], ["ndcg@2"]))
others = ("fastrec.scored", "fastrec.items", "fastrec.evaluation.rows", "fastrec.evaluation.models",
          "fastrec.inputs.models", "fastrec.report.pages", "fastrec.show.charts", "fastrec.show.html")
print([name for name in sys.modules if name.startswith(others)])
"""
    assert run(program) == "[]"


def test_the_catalogue_needs_no_compiler() -> None:
    program = "import sys, fastrec; fastrec.catalogue(); fastrec.Report; print('numba' in sys.modules)"
    assert run(program) == "False"


def test_public_names_are_those_that_are_listed() -> None:
    assert sorted(dir(fastrec)) == sorted(fastrec.__all__)
    with pytest.raises(AttributeError, match="'fastrec' has no attribute 'evalute'"):
        fastrec.evalute  # noqa: B018


def test_public_names_outlive_calls() -> None:
    """Importing a submodule binds its name in the package: no submodule may replace a function."""
    program = f"""
import fastrec, importlib, io, pkgutil, tempfile, types, warnings
report = fastrec.evaluate([[1, 2]], [[2]], ["ndcg@2"])
with tempfile.TemporaryDirectory() as folder:
    report.save(folder + "/report.npz")
    fastrec.load(folder + "/report.npz")
fastrec.catalogue()
for module in pkgutil.walk_packages(fastrec.__path__, "fastrec."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in {fastrec.__all__}:
    assert not isinstance(getattr(fastrec, name), types.ModuleType), name
assert fastrec.load(__import__("os").devnull) if False else callable(fastrec.load)
assert fastrec.evaluate([[1, 2]], [[2]], ["mrr"])["mrr"] == 0.5
assert fastrec.Evaluator("mrr").merge(fastrec.Evaluator("mrr")).result().users["total"] == 0
assert len(fastrec.Ragged([1], [0, 1])) == 1 and fastrec.catalogue() and isinstance(report, fastrec.Report)
assert isinstance(report.estimates["ndcg@2"], fastrec.Estimate) and isinstance(fastrec.__version__, str)
assert issubclass(fastrec.MetricNotFoundError, fastrec.MetricError) and callable(fastrec.warmup)
print("all there")
"""
    assert run(program) == "all there"


def test_errors_are_also_the_built_in_ones() -> None:
    for error, builtin in [
        (fastrec.InputError, ValueError),
        (fastrec.InputTypeError, TypeError),
        (fastrec.MetricError, ValueError),
        (fastrec.MetricNotFoundError, KeyError),
        (fastrec.MissingExtraError, ImportError),
        (fastrec.MissingFileError, FileNotFoundError),
    ]:
        assert issubclass(error, fastrec.FastrecError)
        assert issubclass(error, builtin)
    assert issubclass(fastrec.FastrecWarning, UserWarning)


def test_the_arguments_of_evaluate() -> None:
    """api.txt lists them."""
    parameters = inspect.signature(fastrec.evaluate).parameters
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name not in ("recs", "truth", "metrics"))
    defaults = {name: p.default for name, p in parameters.items() if isinstance(p.default, str)}
    assert defaults == {"correct": "none"}  # for others, None means the policy of `like`, or else these
    assert DEFAULT_POLICIES == {"ties": "expected", "no_truth": "skip", "no_recs": "zero", "duplicates": "error"}


def test_an_evaluator_takes_what_evaluate_takes() -> None:
    def parameters(function: object) -> dict[str, object]:
        found = inspect.signature(function).parameters  # type: ignore[arg-type]
        return {name: parameter.default for name, parameter in found.items() if name != "self"}

    both = parameters(fastrec.Evaluator) | parameters(fastrec.Evaluator.update)
    of_models = {"negatives", "seed", "sample"}
    assert both == parameters(fastrec.evaluate) | {name: both[name] for name in of_models}
    assert of_models <= set(parameters(fastrec.evaluate_model))
    assert not set(parameters(fastrec.Evaluator)) & set(parameters(fastrec.Evaluator.update))


def test_the_table_of_modules_is_that_of_the_docstrings() -> None:
    script = runpy.run_path(str(PACKAGE.parent / "scripts" / "readme_modules.py"))
    assert script["written"](LAYERS) == (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module_of(path))
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}


def lines_of(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function without its arguments and its docstring."""
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    text = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (function.end_lineno or 0) - function.body[0].lineno + 1 - text


def test_strings_of_a_type_have_one_order() -> None:
    """Python may take one type for another that allows the same strings in another order."""
    found: dict[frozenset[str], set[str]] = {}
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Literal", "typing.Literal"):
                values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                found.setdefault(frozenset(map(ast.unparse, values)), set()).add(ast.unparse(node.slice))
    assert found and not [orders for orders in found.values() if len(orders) > 1]


def test_no_function_is_too_long() -> None:
    long = set()
    for path in SOURCES:
        limit = LINES_OF_KERNEL if layer_of(module_of(path)) == "kernels" else LINES
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and lines_of(node) > limit:
                long.add(node.name)
    assert not long


def test_no_kernel_takes_too_many_arguments() -> None:
    kernels = [node for path in (PACKAGE / "kernels").glob("*.py") for node in ast.walk(tree_of(path))]
    functions = [node for node in kernels if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 100
    assert not {each.name for each in functions if len(each.args.args) > ARGUMENTS_OF_KERNEL}
