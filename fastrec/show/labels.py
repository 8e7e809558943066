"""Places for the names of points in a chart, such that no name covers another or a point."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Point = tuple[float, float]
MAX_CHARACTERS = 18
WIDTHS = {False: 7.0, True: 11.0}  # of a character of 11 px: a wide letter, or a sign of East Asia
HEIGHT, BELOW = 12.0, 3.0  # of a line of text, and how much of it is below its baseline
RADIUS = 4.0  # of a point with its edge
APART = 2.0  # between a point and the name of another
DISTANCES = (2.0, 8.0, 16.0, 26.0, 38.0, 52.0)  # from a point to its name
LEADER = 8.0  # from this distance on a line joins both
STEP = 3.0  # between the places of a leader that are looked at
WAYS = tuple(math.pi * n / 8 for n in (0, 8, 12, 4, 14, 2, 10, 6, 15, 1, 9, 7, 13, 3, 11, 5))  # right, left, above, ...


class Box(NamedTuple):
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether two rectangles share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def is_within(self, other: Box) -> bool:
        """Return whether the rectangle is inside another."""
        left, top, right, bottom = other
        return left <= self.left and self.right <= right and top <= self.top and self.bottom <= bottom


class Label(NamedTuple):
    """A name at its place: the end of its baseline that `anchor` says, and the line to its point if it is far."""

    text: str
    at: Point
    anchor: str
    box: Box
    leader: Point | None


def width_of(text: str) -> float:
    """Return the width of a name, at least that of its letters."""
    return sum(WIDTHS[unicodedata.east_asian_width(character) in "WF"] for character in text)


def cut(name: str, most: int = MAX_CHARACTERS) -> str:
    """Return a name with at most this many characters, a longer one without its middle: versions differ at the end."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end].rstrip()}…{name[len(name) - end :].lstrip()}"


def place_names(points: Sequence[Point], names: Sequence[str], lines: Sequence[Box], frame: Box) -> list[Label | None]:
    """Return the name of each point at a place within a frame, the nearest that is free; None without one.

    A name covers no point and no other name, and `lines` only if there is no other place. Long names are cut.
    """
    wide = RADIUS + APART
    around = [Box(x - wide, y - wide, x + wide, y + wide) for x, y in points]
    found: list[Label | None] = []
    for nth, (point, name) in enumerate(zip(points, names, strict=True)):
        text = cut(name)
        taken = [*around[:nth], *around[nth + 1 :], *(label.box for label in found if label)]
        chosen = None
        for label in _labels(point, text):
            if label.box.is_within(frame) and not any(
                own.meets(box) for own in _covered(point, label) for box in taken
            ):
                if not any(label.box.meets(line) for line in lines):
                    chosen = label
                    break
                chosen = chosen or label
        found.append(chosen)
    return found


def _labels(point: Point, text: str) -> Iterator[Label]:
    """Yield a name at places around its point, the nearest first."""
    width = width_of(text)
    for distance in DISTANCES:
        for way in WAYS:
            across, down = math.cos(way), math.sin(way)
            x, y = point[0] + across * (RADIUS + distance), point[1] + down * (RADIUS + distance)
            # the side or corner of the box that is nearest to the point is at (x, y)
            side, edge = (max(-1.0, min(1.0, 2 * part)) for part in (across, down))
            left, top = x + (side - 1) * width / 2, y + (edge - 1) * HEIGHT / 2
            box = Box(left, top, left + width, top + HEIGHT)
            anchor = "start" if side > 0.5 else "end" if side < -0.5 else "middle"
            end = {"start": box.left, "end": box.right, "middle": (box.left + box.right) / 2}[anchor]
            yield Label(text, (end, box.bottom - BELOW), anchor, box, (x, y) if distance >= LEADER else None)


def _covered(point: Point, label: Label) -> Iterator[Box]:
    """Yield the box of a name, and places on the line from its point."""
    yield label.box
    if label.leader is not None:
        across, down = label.leader[0] - point[0], label.leader[1] - point[1]
        n_steps = int(math.hypot(across, down) / STEP)
        for step in range(1, n_steps):
            x, y = point[0] + across * step / n_steps, point[1] + down * step / n_steps
            yield Box(x, y, x, y)
