"""Pages that are files of the repository: the reliability promises, the changelog and how to contribute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {"RELIABILITY.md": "reliability.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page, with links to where things are on the site."""
    for source, path in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        yield path, ELSEWHERE.sub(link, text)


def link(match: re.Match[str]) -> str:
    """Return the link to a page of the site, or the plain words where a file is only in the repository."""
    words, target = match.groups()
    file, _, anchor = target.removeprefix("docs/").partition("#")
    file = PAGES.get(file, file)
    on_site = file in PAGES.values() or target.startswith("docs/")
    return f"[{words}]({file}{'#' + anchor if anchor else ''})" if on_site else f"{words} (`{target}`)"
