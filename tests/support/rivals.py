"""Cases and kept answers of other tools from `tests/rivals`, whose modules run without fastrec, too."""

import math
import sys
from pathlib import Path

RIVALS = Path(__file__).parents[1] / "rivals"
sys.path.insert(0, str(RIVALS))

import cases  # noqa: E402 - beside the answers
import run  # noqa: E402

__all__ = ["RIVALS", "agrees", "cases", "run"]


def agrees(ours, theirs, tolerance):
    """Return whether a number is that of a tool; None is NaN."""
    if theirs is None:
        return math.isnan(ours)
    return abs(ours - theirs) <= tolerance
