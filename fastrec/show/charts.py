"""Charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fastrec.show.html import escaped

__all__ = ["histogram", "line_chart", "whisker"]

WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 34  # margins of a chart
WHISKER = 120  # width of .w in page.css
MIN_SPAN = 1e-300  # of an axis; a smaller one counts as 0, since 10 ** power would underflow
MAX_TICKS = 8  # points labelled under a chart
CHARACTER = 6.2  # width of a character of a label, on average


def whisker(low: float, middle: float, high: float, largest: float, kind: str = "") -> str:
    """Return a picture of an interval on a scale from -largest to largest; the text beside it has the numbers.

    kind : colour: "up", "down", or neither.
    """
    if not largest > 0 or not all(map(math.isfinite, (low, middle, high))):
        return ""
    left, at, right = (round((1 + number / largest) * WHISKER / 2) for number in (low, middle, high))
    return f"<svg class='w {kind}' aria-hidden=true><path d='M{left} 8H{right}M{at} 3v10'/></svg>"


def line_chart(
    title: str, names: Sequence[str], points: Sequence[tuple[float, float, float]], axis_name: str = "k"
) -> str:
    """Return a chart of points (mean, low, high) from left to right; the vertical axis includes 0."""
    numbers = [number for point in points for number in point if math.isfinite(number)]
    axis = _Axis(min([0.0, *numbers]), max([0.0, *numbers]))
    step = (WIDTH - LEFT - RIGHT) / len(points)
    places = [LEFT + step * (n + 0.5) for n in range(len(points))]
    known = [(x, *point) for x, point in zip(places, points, strict=True) if math.isfinite(point[0])]
    line = "".join(f"{'L' if n else 'M'}{x:.1f} {axis.place(mean):.1f}" for n, (x, mean, _, _) in enumerate(known))
    dots = "".join(f'<circle cx="{x:.1f}" cy="{axis.place(mean):.1f}" r="3"/>' for x, mean, _, _ in known)
    whiskers = "".join(
        f"M{x:.1f} {axis.place(low):.1f}V{axis.place(high):.1f}" for x, _, low, high in known if math.isfinite(low)
    )
    room = (WIDTH - LEFT - RIGHT) // (CHARACTER * (max(map(len, names)) + 1))
    every = -(-len(names) // int(min(MAX_TICKS, max(room, 1))))
    below = "".join(_label(x, name) for x, name in list(zip(places, names, strict=True))[::every])
    drawn = f'<path class="line" d="{line}"/><path class="bar" d="{whiskers}"/>{dots}'
    return _svg(title, f"{axis.drawn()}{drawn}{below}{_label((LEFT + WIDTH - RIGHT) / 2, axis_name, 30)}")


def histogram(title: str, counts: Sequence[int], low: str, high: str) -> str:
    """Return a chart of counts in bins of equal width from low to high."""
    axis = _Axis(0.0, float(max([1, *counts])), decimals=0)
    step = (WIDTH - LEFT - RIGHT) / len(counts)
    bars = "".join(
        f"M{LEFT + n * step + 0.5:.1f} {axis.place(0):.1f}V{axis.place(count):.1f}h{step - 1:.1f}V{axis.place(0):.1f}z"
        for n, count in enumerate(counts)
        if count
    )
    ends = _label(LEFT, low, anchor="start") + _label(WIDTH - RIGHT, high, anchor="end")
    return _svg(title, f'{axis.drawn()}<path class="fill" d="{bars}"/>{ends}')


class _Axis:
    """Vertical axis with round numbers at its ticks."""

    def __init__(self, low: float, high: float, decimals: int | None = None) -> None:
        wide = (high - low) / 3.5 if high - low > MIN_SPAN else 1.0
        power = math.floor(math.log10(wide))
        step = next(size for size in (1, 2, 2.5, 5, 10) if size * 10.0**power >= wide * 0.999) * 10.0**power
        if decimals == 0:
            step = max(1.0, math.ceil(step))
        self._step, self._first = step, math.floor(low / step)
        self._last = max(math.ceil(high / step), self._first + 1)
        self._decimals = max(0, -power) + (2.5 * 10.0**power == step) if decimals is None else decimals

    def place(self, number: float) -> float:
        """Return the position of a number, from the top."""
        share = (number / self._step - self._first) / (self._last - self._first)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def drawn(self) -> str:
        """Return the grid lines with their numbers."""
        ticks = [n * self._step for n in range(self._first, self._last + 1)]
        grid = "".join(f"M{LEFT} {self.place(tick):.1f}H{WIDTH - RIGHT}" for tick in ticks)
        names = "".join(
            f'<text x="{LEFT - 5}" y="{self.place(tick) + 4:.1f}" text-anchor="end">{self._name(tick)}</text>'
            for tick in ticks
        )
        return f'<path class="grid" d="{grid}"/>{names}'

    def _name(self, tick: float) -> str:
        if abs(tick) >= 10_000 or self._decimals > 4:
            return f"{tick:.3g}"
        return f"{tick:.{self._decimals}f}"


def _label(x: float, name: str, down: int = 15, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + down}" text-anchor="{anchor}">{escaped(name)}</text>'


def _svg(title: str, drawn: str) -> str:
    return f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{escaped(title)}</title>{drawn}</svg>'
