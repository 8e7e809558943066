"""Drawings of how fastrec works: boxes from top to bottom."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable

WIDTH, HEIGHT, STEP = 420, 56, 82  # of a drawing, of a box, and from box to box, in its own units

FLOWS = {
    "flow": (
        "The way of the lists, from a call to a report",
        (
            ("recs, truth", "frames, dicts, arrays, files, Spark"),
            ("flat arrays, a pointer per user", "read once; int32 and int64 ids are not copied"),
            ("plan of all metrics", "each statistic once, for all cut-offs"),
            ("kernel", "512 users at a time, on all threads"),
            ("exact sums", "integers: the order of adding does not matter"),
            ("Report", "means, standard errors, groups, values per user"),
        ),
    ),
    "program": (
        "How the formula of recall@10 becomes a row program",
        (
            ("recall@10", "a string of the call"),
            ("s.hits / s.n_rel", "the declared formula, run once with symbols"),
            ("HITS at 10 → a row", "a leaf: the kernel counts hits up to rank 10"),
            ("N_REL → a row", "a leaf: the kernel counts relevant items"),
            ("DIVIDE → a row", "arithmetic on rows; 0 / 0 is 0"),
            ("sum of the row", "exact, with its squares for the standard error"),
        ),
    ),
    "files": (
        "How files larger than memory are read",
        (
            ("Parquet, CSV, JSON lines, TREC", "recognised by their first bytes"),
            ("does it fit?", "yes: read as a whole, with the same numbers"),
            ("parts of users", "on disk, by a hash of users"),
            ("streams", "recs, truth, history: the rows of the same users"),
            ("batches of whole users", "cut at the same user in every stream"),
            ("Evaluator.update", "as for any batch, then one report"),
        ),
    ),
}


def flow(name: str) -> str:
    """Return a drawing of steps: a box each, and an arrow to the next."""
    title, steps = FLOWS[name]
    parts, middle = [], WIDTH // 2
    for n, (box, words) in enumerate(steps):
        y = 4 + n * STEP
        parts.append(
            f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{HEIGHT}" rx="6"/>'
            f'<text class="head" x="{middle}" y="{y + 24}">{html.escape(box)}</text>'
            f'<text x="{middle}" y="{y + 43}">{html.escape(words)}</text>'
        )
        if n + 1 < len(steps):
            parts.append(f'<path d="M{middle} {y + HEIGHT}v{STEP - HEIGHT - 2}m-5 -6l5 6l5 -6"/>')
    height = 8 + (len(steps) - 1) * STEP + HEIGHT
    picture = f'<svg class="drawing" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">'
    return f"<figure>{picture}{''.join(parts)}</svg><figcaption>{html.escape(title)}</figcaption></figure>"


DRAWINGS: dict[str, Callable[[], str]] = {name: functools.partial(flow, name) for name in FLOWS}
