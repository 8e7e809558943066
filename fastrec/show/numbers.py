"""How numbers are printed in every medium."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat

DASH = "–"  # for a number that is not known
LARGE = 1e6  # more has four digits, not four decimals
SMALL = 5e-5  # less would vanish in four decimals
MOST_DECIMALS = 12


class Gap(NamedTuple):
    """Difference with its interval."""

    difference: float
    low: float
    high: float


def figures(leading: float, *numbers: float, width: float = math.nan) -> list[str]:
    """Format numbers with four decimals or, if these would hide the leading one, with four digits.

    Numbers about an interval have as many decimals as its `width` needs.
    """
    form = f"z.{_decimals(width)}f" if leading == 0 or 1e-3 <= abs(leading) < LARGE else "z.3e"
    return [DASH if math.isnan(number) else format(number, form) for number in numbers]


def _decimals(width: float) -> int:
    """Return four, or the decimals that show two digits of the width of an interval."""
    return min(max(4, 1 - math.floor(math.log10(width))), MOST_DECIMALS) if 0 < width < math.inf else 4


def margins(numbers: Sequence[float]) -> list[str]:
    """Format half the widths of intervals in one form."""
    known, largest = [number for number in numbers if number > 0], max(numbers, default=0.0)
    return figures(largest if largest >= LARGE else 0.0, *numbers, width=min(known, default=math.nan))


def span(leading: float, low: float, high: float) -> str:
    """Format an interval with the precision of its leading number."""
    texts = figures(leading, low, high, width=high - low)
    return DASH if DASH in texts else f"{texts[0]} {DASH} {texts[1]}"


def with_interval(mean: float, low: float, high: float, *, symmetric: bool) -> str:
    """Format a mean with its interval, if it has one: with half its width if all of a table are symmetric."""
    if math.isnan(low):
        return one_figure(mean)
    if symmetric:
        return " ±".join(figures(mean, mean, high - mean, width=high - low))
    return f"{one_figure(mean, high - low)} ({span(mean, low, high)})"


def one_figure(number: float, width: float = math.nan) -> str:
    """Format a number with four decimals, or with four digits if these would hide it; see `figures`."""
    return figures(number, number, width=width)[0]


def _signed(leading: float, *numbers: float) -> list[str]:
    texts = zip(numbers, figures(leading, *numbers), strict=True)
    return [f"+{text}" if number > 0 and float(text) != 0 else text for number, text in texts]


def shown_difference(gap: Gap) -> tuple[str, str]:
    """Format a difference and its interval, with four decimals unless these would hide the interval."""
    leading = gap.difference if math.isnan(gap.low) else max(abs(gap.low), abs(gap.high))
    text, *ends = _signed(leading, *gap)
    return text, DASH if DASH in ends else f"{ends[0]} to {ends[1]}"


def change(number: float) -> str:
    """Format the change of a mean; "0" only if it is exactly 0."""
    if math.isnan(number):
        return DASH
    return "0" if number == 0 else f"{number:+.4f}" if abs(number) >= SMALL else f"{number:+.0e}"


def effect(number: float) -> str:
    """Format how much one user changes a mean, which may be very little."""
    return DASH if math.isnan(number) else f"{number:+.2e}"


def p_value(number: float, *, at_most: bool = False) -> str:
    """Format a p-value with four decimals, or with two digits if these would show 0; "≤" if it may be smaller."""
    text = DASH if math.isnan(number) else f"{number:.1e}" if 0 < number < SMALL else rate(number)
    return f"≤ {text}" if at_most else text


def shown_count(number: SupportsFloat | None) -> str:
    """Format a count with all its digits, a sum of weights with six, and None as a dash."""
    return DASH if number is None else f"{number:,.6g}" if isinstance(number, float) else f"{number:,}"


def rate(number: float) -> str:
    """Format a rate, such as a precision, with four decimals."""
    return f"{number:.4f}"


def share(number: float) -> str:
    """Format a share as a percentage."""
    return DASH if math.isnan(number) else f"{100 * number:.1f} %"


def relative(number: float) -> str:
    """Format a relative difference as a percentage with its sign, with one decimal below 10 %."""
    if math.isnan(number):
        return DASH
    return f"{100 * number:+z,.{0 if abs(number) >= 0.1 else 1}f} %"


def percent(level: float) -> str:
    """Format the level of an interval."""
    return f"{100 * level:g} %"
