"""Blocks of code in the pages of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return the language and the code of each block of a page, in order."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def programs(path: Path) -> list[str]:
    """Return the blocks of Python that are no doctests."""
    return [code for language, code in blocks(path) if language == "python" and ">>> " not in code]


def commands(path: Path) -> list[str]:
    """Return the lines of the blocks for a shell."""
    return [line for language, code in blocks(path) if language == "sh" for line in code.splitlines() if line]
