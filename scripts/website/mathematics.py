"""Formulas as MathML, which browsers draw themselves: the site needs no script and no font for them."""

from __future__ import annotations

import functools
import html
import re

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


@functools.cache
def mathml(latex: str, display: str) -> str:
    """Return a formula of LaTeX as an element of MathML."""
    return convert(html.unescape(latex).strip(), display=display)


def with_mathml(page: str) -> str:
    """Return a page with MathML in place of the formulas that pymdownx.arithmatex has marked."""
    page = INLINE.sub(lambda match: mathml(match.group(1), "inline"), page)
    return BLOCK.sub(lambda match: f'<div class="formula">{mathml(match.group(1), "block")}</div>', page)
