"""Files of the repository on the site: pages made of them, and links that lead to these pages.

In the repository, every link leads to a file where it is. `with_links` makes it a link to the page of that file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {"RELIABILITY.md": "reliability.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page."""
    for source, path in PAGES.items():
        yield path, with_links((ROOT / source).read_text(encoding="utf-8"), source, path)


def with_links(text: str, source: str, page: str) -> str:
    """Return the text of a file with links from its page: plain words where a file is only in the repository."""
    folder = posixpath.dirname(page) or "."

    def link(match: re.Match[str]) -> str:
        words, target = match.groups()
        file, hash_sign, anchor = target.partition("#")
        path = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), file)))
        if path is None:
            return f"{words} (`{target}`)"
        return f"[{words}]({posixpath.relpath(path, folder)}{hash_sign}{anchor})"

    return LINK.sub(link, text)


def page_of(file: str) -> str | None:
    """Return the page of a file of the repository, or None if it has none."""
    if file.startswith("notebooks/"):
        return file.replace(".ipynb", ".md")
    return file.removeprefix("docs/") if file.startswith("docs/") else PAGES.get(file)
