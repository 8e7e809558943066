"""Hooks of MkDocs: add the generated pages, draw charts and formulas, and link public names."""

from __future__ import annotations

import re
import sys
from html import escape, unescape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from mkdocs.structure.files import File, Files  # noqa: E402 - needs the path for what follows

from website import commands, drawings, examples, interface, messages, metrics, notebooks, repository, speed  # noqa: E402
from website.mathematics import with_mathml  # noqa: E402

PICTURE = re.compile(r"^<!-- (?:chart|drawing): ([a-z-]+) -->$", re.MULTILINE)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<!\[)`(fastrec\.[A-Za-z_]+)(\([^`]*\))?`(?!\])")
BLOCK = re.compile(r'<div class="([^"]*)highlight">(.*?)</div>', re.DOTALL)
BLOCKS = re.compile(r"(<pre.*?</pre>)", re.DOTALL)
LONG = re.compile(r"<(code|h[1-3])\b[^>]*>[^<]{20,}")  # too long for what is left of a line on a phone
JOINT = re.compile(r"(?:[./=(_]|::)(?=\w)(?![^<]*>)")  # after it, a name may go on in the next line
PICTURES = speed.CHARTS | drawings.DRAWINGS


def on_config(config: Any) -> Any:
    """Add the pages of metrics and of notebooks to the navigation."""
    reference, listed = below(config.nav, "Reference"), below(config.nav, "Notebooks")
    listed += [path for path, _ in notebooks.pages() if path.endswith(".md")]
    for home, (title, _) in metrics.FAMILIES.items():
        paths = [metrics.path_of(home, entry["name"]) for own, entry in metrics.entries() if own == home]
        below(reference, "Metrics").append({title: paths})
    return config


def below(nav: list[Any], title: str) -> list[Any]:
    """Return the pages below a title of the navigation."""
    found: list[Any] = next(part[title] for part in nav if isinstance(part, dict) and title in part)
    return found


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = [*interface.pages(), *metrics.pages(), *notebooks.pages(), *repository.pages(), *examples.pages()]
    pages += [(commands.PATH, commands.page()), (messages.PATH, messages.page())]
    for path, content in pages:
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Draw charts, mark examples as sessions of Python, and link files and public names outside of code."""
    text = PICTURE.sub(lambda match: PICTURES[match.group(1)](), markdown)
    parts, end = [], 0
    path = page.file.src_uri
    links = interface.anchors(path.rpartition("/")[0])

    def prose(words: str) -> str:
        return linked(repository.with_links(words, f"docs/{path}", path), links)

    for match in FENCE.finditer(text):
        parts += [prose(text[end : match.start()]), session(match.group())]
        end = match.end()
    return "".join([*parts, prose(text[end:])])


def session(block: str) -> str:
    """Return a block of code as it is shown: a doctest without its marks of empty lines."""
    if ">>> " not in block:
        return block
    return block.replace("```python", "```pycon", 1).replace("<BLANKLINE>", "").replace("\n\n```", "\n```")


def linked(text: str, links: dict[str, str]) -> str:
    """Return a text in which `fastrec.evaluate` leads to its reference."""

    def link(match: re.Match[str]) -> str:
        address = links.get(match.group(1).removeprefix("fastrec."))
        return f"[{match.group()}]({address})" if address else match.group()

    return NAME.sub(link, text)


def on_page_content(html: str, **_: Any) -> str:
    """Draw formulas, let names break between their words only, and have copied sessions run."""
    html = BLOCK.sub(copied, html)
    parts = BLOCKS.split(html)
    parts[::2] = [LONG.sub(lambda match: JOINT.sub(r"\g<0><wbr>", match.group()), part) for part in parts[::2]]
    return with_mathml("".join(parts))


def copied(match: re.Match[str]) -> str:
    """Return a block whose copy button copies what runs: a session of Python without prompts and outputs."""
    lines = unescape(re.sub("<[^>]*>", "", match[2])).splitlines()
    if not any(line.startswith(">>> ") for line in lines):
        return match.group()
    code = "\n".join(line[4:] for line in lines if line[:4].strip() in (">>>", "..."))
    return f'<div class="{match[1]}highlight" data-copy="{escape(code)}">{match[2]}</div>'
