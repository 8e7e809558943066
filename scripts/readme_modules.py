"""Write the table of packages and modules in CONTRIBUTING.md, from the first lines of their docstrings."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastrec"
BEGIN, END = "<!-- modules -->\n", "<!-- end of modules -->\n"


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".")


def modules_of(folder: Path) -> list[str]:
    """Return the names of a package's modules, its own before those of its subpackages."""
    own = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    inner = [
        f"{path.parent.name}/{name}"
        for path in sorted(folder.glob("*/__init__.py"))
        for name in modules_of(path.parent)
    ]
    return own + inner


def table(layers: tuple[tuple[str, ...], ...]) -> str:
    """Return the table in Markdown: a row for each top-level package or module, in the order of the layers."""
    lines = ["| in `fastrec/` | what it holds | modules |", "|---|---|---|"]
    for name in (name for layer in layers for name in layer):
        folder = PACKAGE / name
        if folder.is_dir():
            modules = ", ".join(f"`{module}`" for module in modules_of(folder))
            lines.append(f"| `{name}/` | {first_line(folder / '__init__.py')} | {modules} |")
        elif not name.startswith("_version"):
            lines.append(f"| `{name}.py` | {first_line(folder.with_suffix('.py'))} | |")
    return "\n".join(lines) + "\n"


def written(layers: tuple[tuple[str, ...], ...]) -> str:
    """Return the text of CONTRIBUTING.md with a current table."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(layers) + END + rest.split(END)[1]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "project"))
    from test_architecture import LAYERS

    (ROOT / "CONTRIBUTING.md").write_text(written(LAYERS), encoding="utf-8")
