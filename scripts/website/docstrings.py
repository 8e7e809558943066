"""Docstrings as Markdown: sections, arguments, examples and links between public names."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping

SECTION = re.compile(r"^([A-Z]\w+(?: \w+)?)\n-{3,}$", re.MULTILINE)
NAMED, TYPED = ("Parameters", "Attributes"), ("Returns", "Raises", "Yields", "Warns")
NAMES = re.compile(r"[\w*]+(, [\w*]+)*")
CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
SPECIAL = re.compile(r"([*_<|\[\]$])")
BULLET = re.compile(r"^( *)([-*]|\d+\.) ")

Link = Callable[[str], str | None]


def to_markdown(text: str, link: Link) -> str:
    """Return a docstring as Markdown; `link` gives the address of a public name, or None."""
    first, *rest = SECTION.split(inspect.cleandoc(text))
    parts = [prose(first, link)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{title}**")
        is_list = title in NAMED or title in TYPED
        parts.append(entries(body, link, are_types=title in TYPED) if is_list else prose(body, link))
    return "\n\n".join(part for part in parts if part)


def prose(text: str, link: Link) -> str:
    """Return paragraphs, lists and examples; an example is a block that begins with `>>>`."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    found: list[str] = []
    for block in blocks:
        if block.lstrip().startswith(">>>"):
            lines = textwrap.dedent(block).replace("<BLANKLINE>", "").splitlines()
            found.append("\n".join(["```pycon", *lines, "```"]))
        elif block.strip():
            found.append(paragraph(block, link))
    return "\n\n".join(found)


def paragraph(block: str, link: Link) -> str:
    """Return a paragraph; a list in it starts after an empty line, as Markdown wants."""
    found: list[str] = []
    for line in block.splitlines():
        bullet = BULLET.match(line)
        mark = bullet.group() if bullet else ""
        if bullet and found and not BULLET.match(found[-1]) and not found[-1].startswith(" "):
            found.append("")
        found.append(mark + inline(line.removeprefix(mark), link))
    return "\n".join(found)


def inline(text: str, link: Link) -> str:
    """Return a line: code in backticks stays code and becomes a link if it is a public name."""
    parts, end = [], 0
    for match in CODE.finditer(text):
        parts.append(SPECIAL.sub(r"\\\1", text[end : match.start()].replace("\\|", "|")))
        code = match.group(1) or match.group(2)
        address = link(code)
        parts.append(f"[`{code}`]({address})" if address else f"`{code}`")
        end = match.end()
    parts.append(SPECIAL.sub(r"\\\1", text[end:].replace("\\|", "|")))
    return "".join(parts)


def entries(body: str, link: Link, *, are_types: bool) -> str:
    """Return a section of names, or of types, with their meaning as a list of definitions; paragraphs may follow."""
    body, *examples = re.split(r"\n\n(?=>>> )", body.strip("\n"), maxsplit=1)
    found = []
    for entry in re.split(r"\n(?=\S)", body):
        head, _, rest = entry.partition("\n")
        name, colon, meaning = head.partition(" : ")
        if not are_types and not NAMES.fullmatch(name):
            found.append(inline(entry, link))  # a line of a paragraph
            continue
        parts = name.split(", ") if NAMES.fullmatch(name) else [name]
        names = ", ".join(name_of(part, link) if NAMES.fullmatch(part) else inline(part, link) for part in parts)
        more = textwrap.dedent(rest)
        between = "\n" if more[:1].islower() or more[:1] == "(" else "\n\n"  # the sentence of the first line may go on
        text = prose(f"{meaning}{between}{more}" if colon else more, link)
        found.append(f"\n{names}\n:   {textwrap.indent(text, '    ').lstrip()}\n" if text else f"\n- {names}\n")
    listed = re.sub(r"\n{3,}", "\n\n", "\n".join(found)).strip("\n")
    return "\n\n".join([listed, *(prose(text, link) for text in examples)])


def name_of(name: str, link: Link) -> str:
    """Return an argument, or the link to a type."""
    address = link(name)
    return f"[`{name}`]({address})" if address else f"`{name}`"


def link_in(anchors: Mapping[str, str]) -> Link:
    """Return the links to public names: `evaluate`, `fastrec.evaluate`, `Report.users`, `evaluate(...)`."""

    def found(code: str) -> str | None:
        name = re.sub(r"\(.*\)$", "", code).removeprefix("fastrec.")
        if name in anchors:
            return anchors[name]
        owner = name.partition(".")[0]
        return anchors[owner] if "." in name and owner in anchors and re.fullmatch(r"[\w.]+", name) else None

    return found


def signature(name: str, value: Callable[..., object]) -> str:
    """Return the call with its defaults, a line for each argument if it is long."""
    own = inspect.signature(value)
    plain = [part.replace(annotation=inspect.Parameter.empty) for part in own.parameters.values()]
    plain = [part for part in plain if part.name not in ("self", "cls")]
    text = f"{name}{own.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"
    if len(text) <= 78:
        return text
    keyword = [part for part in plain if part.kind is part.KEYWORD_ONLY]
    free = [str(part) for part in plain if part.kind is not part.KEYWORD_ONLY]
    if keyword and not any(part.kind is part.VAR_POSITIONAL for part in plain):
        free.append("*")
    listed = textwrap.wrap(", ".join([*free, *map(str, keyword)]), 74)
    return f"{name}(\n" + "\n".join(f"    {line}" for line in listed) + "\n)"
