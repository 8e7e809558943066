"""Charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastrec.show.html import escaped
from fastrec.show.labels import Box, Label, cut, place_names, width_of

WIDTH, HEIGHT = 320, 190
TALL, HEAD, EDGE = 270, 24, 302  # height of a scatter, its top, and its right end with room for half a number
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 34  # margins of a chart
WHISKER = 120  # width of .w in page.css
MIN_SPAN = 1e-300  # of an axis; a smaller one counts as 0, since 10 ** power would underflow
MIN_SHARE = 0.01  # of an axis in its largest number; points that differ less are shown at about one place
MAX_TICKS = 8  # points labelled under a chart
CHARACTER = 6.2  # width of a character of a label, on average
LINE, MAX_NAME = 20, 124  # of an interval chart: height of a line, and the largest width of its names


class Estimated(NamedTuple):
    """A number with the ends of its interval, NaN without one."""

    mean: float
    low: float
    high: float


class Interval(NamedTuple):
    """A line of an interval chart: a name, its number, strings beside it, and its colour.

    kind : "up", "down", "flat" for a number without a verdict, or "".
    """

    name: str
    number: Estimated
    texts: Sequence[str]
    kind: str = ""


def whisker(low: float, middle: float, high: float, largest: float, kind: str = "") -> str:
    """Return a picture of an interval on a scale from -largest to largest; the text beside it has the numbers.

    kind : colour: "up", "down", or neither.
    """
    if not largest > 0 or not all(map(math.isfinite, (low, middle, high))):
        return ""
    left, at, right = (round((1 + number / largest) * WHISKER / 2) for number in (low, middle, high))
    return f"<svg class='w {kind}' aria-hidden=true><path d='M{left} 8H{right}M{at} 3v10'/></svg>"


def interval_chart(title: str, lines: Sequence[Interval], rule: float | None = None) -> str:
    """Return a chart with a line per number: its name, its point with its interval, and its strings.

    rule : number that a vertical line marks. Numbers that are not finite have no point.
    """
    marked = [Estimated(rule, rule, rule)] if rule is not None else []
    left = min(MAX_NAME, max(width_of(line.name) for line in lines)) + 10
    ends_of_texts, right = _columns_of([line.texts for line in lines])
    axis = _spread([*(line.number for line in lines), *marked], left, right)
    bottom = LINE * len(lines) + 4
    grid = "".join(f"M{x:.1f} 0V{bottom}" for x, _ in axis.ticks())
    ends = [axis.ticks()[0], axis.ticks()[-1]]
    drawn = [f'<path class="grid" d="{grid}"/>']
    drawn += [f'<path class="rule" d="M{axis.place(rule):.1f} 0V{bottom}"/>'] if rule is not None else []
    drawn += [_line_of(line, LINE * n + 12, axis, left, ends_of_texts) for n, line in enumerate(lines)]
    drawn += [f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{name}</text>' for x, name in ends]
    return _svg(title, "".join(drawn), bottom + 20)


def _columns_of(texts: Sequence[Sequence[str]]) -> tuple[list[float], float]:
    """Return the right end of each column of strings, and where the first begins; columns fill from the left."""
    at, ends = WIDTH - 2.0, []
    for nth in reversed(range(max(map(len, texts)))):
        ends.append(at)
        at -= CHARACTER * max(len(own[nth]) for own in texts if nth < len(own)) + 10
    return ends[::-1], at


def _line_of(line: Interval, y: float, axis: _Axis, left: float, ends: Sequence[float]) -> str:
    """Return a line of an interval chart. A name without room is cut; the text that a pointer shows has all of it."""
    name = cut(line.name, max(1, int(len(line.name) * (left - 10) / max(width_of(line.name), 1.0))))
    whole = f"<title>{escaped(line.name)}</title>"
    drawn = f'<text class="name" x="2" y="{y + 4}">{escaped(name)}{whole}</text>'
    for text, end in zip(line.texts, ends, strict=False):
        drawn += f'<text class="name" x="{end:.1f}" y="{y + 4}" text-anchor="end">{escaped(text)}</text>'
    mean, low, high = line.number
    if not math.isfinite(mean):
        return drawn
    bar = f'<path class="bar" d="M{axis.place(low):.1f} {y}H{axis.place(high):.1f}"/>' if math.isfinite(low) else ""
    return f'{drawn}<g class="{line.kind}">{bar}<circle cx="{axis.place(mean):.1f}" cy="{y}" r="3.5"/></g>'


def line_chart(
    title: str,
    names: Sequence[str],
    points: Sequence[tuple[float, float, float]],
    axis_name: str = "k",
    *,
    joined: bool = True,
) -> str:
    """Return a chart of points (mean, low, high) from left to right; the vertical axis includes 0.

    joined : whether a line joins the points, which says that their order means something
    """
    numbers = [number for point in points for number in point if math.isfinite(number)]
    axis = _vertical(min([0.0, *numbers]), max([0.0, *numbers]))
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
    path = f'<path class="line" d="{line}"/>' if joined else ""
    drawn = f'{path}<path class="bar" d="{whiskers}"/>{dots}'
    return _svg(title, f"{_rows(axis)}{drawn}{below}{_label((LEFT + WIDTH - RIGHT) / 2, axis_name, 30)}")


def histogram(title: str, counts: Sequence[int], low: str, high: str) -> str:
    """Return a chart of counts in bins of equal width from low to high."""
    axis = _vertical(0.0, float(max([1, *counts])), decimals=0)
    step = (WIDTH - LEFT - RIGHT) / len(counts)
    bars = "".join(
        f"M{LEFT + n * step + 0.5:.1f} {axis.place(0):.1f}V{axis.place(count):.1f}h{step - 1:.1f}V{axis.place(0):.1f}z"
        for n, count in enumerate(counts)
        if count
    )
    ends = _label(LEFT, low, anchor="start") + _label(WIDTH - RIGHT, high, anchor="end")
    return _svg(title, f'{_rows(axis)}<path class="fill" d="{bars}"/>{ends}')


def scatter(
    title: str, axes: tuple[str, str], names: Sequence[str], points: Sequence[tuple[Estimated, Estimated]]
) -> str:
    """Return a chart of points (across, up) with their intervals; `axes` names both directions.

    A point has its name beside it, if there is room, and in the text that a pointer shows. Points without a mean are
    left out.
    """
    known = [(name, *point) for name, point in zip(names, points, strict=True) if _are_finite(point)]
    across = _spread([x for _, x, _ in known], LEFT, EDGE)
    up = _spread([y for _, _, y in known], TALL - BOTTOM, HEAD)
    places = [(across.place(x.mean), up.place(y.mean)) for _, x, y in known]
    bars = []
    for (_, x, y), (at_x, at_y) in zip(known, places, strict=True):
        bars.append(Box(across.place(x.low), at_y, across.place(x.high), at_y))
        bars.append(Box(at_x, up.place(y.high), at_x, up.place(y.low)))
    bars = [bar for bar in bars if all(map(math.isfinite, bar))]
    frame = Box(LEFT, HEAD, WIDTH - 2, TALL - BOTTOM)
    labels = place_names(places, [name for name, _, _ in known], bars, frame)
    drawn = [_rows(up, EDGE), _columns(across), _names_of_axes(axes), *_marks(known, places, bars, labels)]
    return _svg(title, "".join(drawn), TALL)


def curve_chart(
    title: str, axes: tuple[str, str], points: Sequence[tuple[float, float]], rule: Sequence[tuple[float, float]]
) -> str:
    """Return a chart of a line through points of [0, 1] x [0, 1], and of a dotted line to compare it with, if any."""
    across, up = _Axis(0, 1, LEFT, EDGE), _Axis(0, 1, TALL - BOTTOM, HEAD)
    drawn = [_rows(up, EDGE), _columns(across), _names_of_axes(axes)]
    drawn += [_path("rule", rule, across, up)] if rule else []
    return _svg(title, "".join([*drawn, _path("line", points, across, up)]), TALL)


def reliability_chart(title: str, axes: tuple[str, str], points: Sequence[tuple[float, Estimated]]) -> str:
    """Return a chart of shares with their intervals against predictions, and of the line where they are equal.

    Both axes begin at 0 and have the same scale.
    """
    largest = max([0.0, *(number for x, y in points for number in (x, *y) if math.isfinite(number))])
    across, up = _Axis(0.0, largest, LEFT, EDGE), _Axis(0.0, largest, TALL - BOTTOM, HEAD)
    places = [(across.place(x), up.place(y.mean)) for x, y in points]
    bars = "".join(
        f"M{x:.1f} {up.place(y.low):.1f}V{up.place(y.high):.1f}"
        for (x, _), (_, y) in zip(places, points, strict=True)
        if math.isfinite(y.low)
    )
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
    equal = _path("rule", [(0.0, 0.0), (across.end, across.end)], across, up)
    line = _path("line", [(x, y.mean) for x, y in points], across, up)
    drawn = [_rows(up, EDGE), _columns(across), _names_of_axes(axes), equal, line]
    return _svg(title, "".join([*drawn, f'<path class="bar" d="{bars}"/>', dots]), TALL)


def _path(kind: str, points: Sequence[tuple[float, float]], across: _Axis, up: _Axis) -> str:
    """Return a line through points; those that share a place with the one before are left out."""
    places = [f"{across.place(x):.1f} {up.place(y):.1f}" for x, y in points]
    steps = [place for n, place in enumerate(places) if n == 0 or place != places[n - 1]]
    return f'<path class="{kind}" d="M{"L".join(steps)}"/>'


def _marks(
    known: Sequence[tuple[str, Estimated, Estimated]],
    places: Sequence[tuple[float, float]],
    bars: Sequence[Box],
    labels: Sequence[Label | None],
) -> Iterator[str]:
    """Yield the intervals, points and names of a scatter, and the lines from points to names that are far."""
    lines = "".join(f"M{bar.left:.1f} {bar.top:.1f}L{bar.right:.1f} {bar.bottom:.1f}" for bar in bars)
    yield f'<path class="cross" d="{lines}"/>'
    for (name, _, _), (x, y), label in zip(known, places, labels, strict=True):
        if label is not None and label.leader is not None:
            yield f'<path class="leader" d="M{x:.1f} {y:.1f}L{label.leader[0]:.1f} {label.leader[1]:.1f}"/>'
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escaped(name)}</title></circle>'
        if label is not None:
            at = f'x="{label.at[0]:.1f}" y="{label.at[1]:.1f}" text-anchor="{label.anchor}"'
            yield f'<text class="name" {at}>{escaped(label.text)}</text>'


def _are_finite(point: tuple[Estimated, Estimated]) -> bool:
    return all(math.isfinite(number.mean) for number in point)


def _spread(numbers: Sequence[Estimated], start: float, end: float) -> _Axis:
    """Return an axis for numbers and their intervals, which need not include 0."""
    ends = [end for number in numbers for end in number if math.isfinite(end)] or [0.0]
    low, high = min(ends), max(ends)
    lacking = max(0.0, MIN_SHARE * max(map(abs, ends)) - (high - low)) / 2
    return _Axis(low - lacking, high + lacking, start, end)


def _names_of_axes(axes: tuple[str, str]) -> str:
    """Return the names of both axes: below, and above the vertical one."""
    across, up = map(escaped, axes)
    below = f'<text x="{(LEFT + EDGE) / 2:.0f}" y="{TALL - 4}" text-anchor="middle">{across}</text>'
    return f'<text x="2" y="12">{up}</text>{below}'


class _Axis:
    """Axis with round numbers at its ticks, from one position to another."""

    def __init__(self, low: float, high: float, start: float, end: float, decimals: int | None = None) -> None:
        self._start, self._end = start, end
        wide = (high - low) / 3.5 if high - low > MIN_SPAN else 1.0
        power = math.floor(math.log10(wide))
        step = next(size for size in (1, 2, 2.5, 5, 10) if size * 10.0**power >= wide * 0.999) * 10.0**power
        if decimals == 0:
            step = max(1.0, math.ceil(step))
        self._step, self._first = step, math.floor(low / step)
        self._last = max(math.ceil(high / step), self._first + 1)
        self._decimals = max(0, -power) + (2.5 * 10.0**power == step) if decimals is None else decimals

    def place(self, number: float) -> float:
        """Return the position of a number."""
        share = (number / self._step - self._first) / (self._last - self._first)
        return self._start - share * (self._start - self._end)

    @property
    def end(self) -> float:
        """The number at the last tick."""
        return self._last * self._step

    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions of the ticks with their numbers."""
        ticks = [n * self._step for n in range(self._first, self._last + 1)]
        return [(self.place(tick), self._name(tick)) for tick in ticks]

    def _name(self, tick: float) -> str:
        if abs(tick) >= 10_000 or self._decimals > 4:
            return f"{tick:.3g}"
        return f"{tick:.{self._decimals}f}"


def _vertical(low: float, high: float, decimals: int | None = None) -> _Axis:
    return _Axis(low, high, HEIGHT - BOTTOM, TOP, decimals)


def _rows(axis: _Axis, right: int = WIDTH - RIGHT) -> str:
    """Return the grid lines of a vertical axis, up to their right end, with their numbers."""
    grid = "".join(f"M{LEFT} {y:.1f}H{right}" for y, _ in axis.ticks())
    names = "".join(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{name}</text>' for y, name in axis.ticks())
    return f'<path class="grid" d="{grid}"/>{names}'


def _columns(axis: _Axis) -> str:
    """Return the grid lines of a horizontal axis with their numbers."""
    bottom = TALL - BOTTOM
    grid = "".join(f"M{x:.1f} {HEAD}V{bottom}" for x, _ in axis.ticks())
    names = "".join(
        f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{name}</text>' for x, name in axis.ticks()
    )
    return f'<path class="grid" d="{grid}"/>{names}'


def _label(x: float, name: str, down: int = 15, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + down}" text-anchor="{anchor}">{escaped(name)}</text>'


def _svg(title: str, drawn: str, height: int = HEIGHT) -> str:
    return f'<svg role="img" viewBox="0 0 {WIDTH} {height}"><title>{escaped(title)}</title>{drawn}</svg>'
