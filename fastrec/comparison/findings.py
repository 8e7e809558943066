"""The findings of a comparison in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from fastrec.comparison.row import ComparisonRow, means_of, reverse
from fastrec.inputs.users import NO_LABEL
from fastrec.metrics.directions import Direction
from fastrec.report.estimates import Estimate
from fastrec.report.plans import known_calls, sides_of_settings
from fastrec.show.numbers import Gap, one_figure, relative, shown_difference

MAX_LINES = 8  # about single systems; the table has all of them
ANY_SIZE = 1 << 40  # of a catalogue: the sides of a metric do not depend on it
MAX_NAMES, MAX_LISTED = 3, 5  # of metrics, of anything, in a sentence
Rows = Sequence[ComparisonRow]
Estimates = Mapping[str, Mapping[str, Estimate]]  # by system and metric
OF_EACH = "Means are over the users of each system, tests over the users of both"


def findings(rows: Rows, segments: Mapping[str, Rows], baseline: str | None, estimates: Estimates) -> list[str]:
    """Return sentences on a comparison over all users, the most important first.

    "beats" and "is worse" are verdicts, so significant. They count metrics of accuracy that could be tested, and name
    the segments where a system is worse. The numbers are those of the first of these metrics. Without a baseline,
    systems have one mean each, over their own users if pairs share others.
    """
    accuracy = metrics_of_accuracy(row.metric for row in rows if row.direction != "none")
    first = next(iter(accuracy), rows[0].metric)
    rows = [row for row in rows if row.metric in accuracy or row.metric == first]
    inside = [row for own in segments.values() for row in own if row.metric in accuracy]
    pairs: dict[tuple[str, str], list[ComparisonRow]] = {}
    for row in rows:
        pairs.setdefault((row.system, row.baseline), []).append(row)
    if baseline is None and len(pairs) > 1:
        of_first, inside = ([row for row in own if row.metric == first] for own in (rows, inside))
        return _of_all(of_first, inside, estimates)
    if baseline is None:
        (own,) = pairs.values()
        if {row.verdict for row in own} - {None} == {"worse"}:
            own, inside = list(map(reverse, own)), list(map(reverse, inside))
        return [_of_pair(own, inside, first, accuracy)]
    best_first = sorted(pairs.values(), key=lambda own: _gain(own, first), reverse=True)
    lines = [_of_pair(own, inside, first, accuracy) for own in best_first]
    lead = [row for own in best_first for row in own if row.metric == first]
    if len(lines) > 1 and all(row.verdict is not None and row.verdict != "better" for row in lead):
        lines = [f"No system beats {baseline} on {first}", *lines]
    return _limited(lines)


def _limited(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_LINES
    return [*lines[:MAX_LINES], f"{more:,} more systems: see the table"] if more > 1 else lines


def _gain(rows: Rows, metric: str) -> float:
    """Return how much better the system is by a metric; -inf if nothing is known."""
    row = next(row for row in rows if row.metric == metric)
    gain = row.difference * (Direction(row.direction, row.target).sign or 1)
    return -math.inf if math.isnan(gain) else gain


def metrics_of_accuracy(metrics: Iterable[str]) -> list[str]:
    """Return the metrics that judge lists or scores by relevant items alone, with those that are not declared here."""
    names = list(dict.fromkeys(metrics))
    sides = sides_of_settings(known_calls(names), {"n_items": ANY_SIZE})
    return [name for name in names if name not in sides or {"truth", "rows"} & sides[name] == sides[name] - {"recs"}]


def _of_pair(rows: Rows, inside: Rows, first: str, accuracy: Sequence[str]) -> str:
    """Return a sentence on a system and its baseline, with the numbers of a metric. `inside` are rows of segments."""
    system, other = rows[0].system, rows[0].baseline
    judged = [row for row in rows if row.verdict is not None and row.metric in accuracy]
    better, worse, unclear = (
        [row.metric for row in judged if row.verdict == verdict] for verdict in ("better", "worse", "not clear")
    )
    lead = ":" if [row.metric for row in judged] == [first] else f"; {first}"
    numbers = f"{lead} {_numbers(next(row for row in rows if row.metric == first))}"
    if not judged:
        why = "without a verdict" if accuracy else "no metric of accuracy"
        return f"{system} against {other}, {why}{numbers}"
    parts, lost = [], [] if worse and not better else _groups_lost(inside, system, [other])
    if better:
        parts.append(f"beats {other} on {_metrics(better, len(judged))}")
    if worse:
        parts.append(f"is worse {'' if better else f'than {other} '}on {_metrics(worse, len(judged))}")
    in_segments = f"is worse for {_listed(lost)} users" if lost else ""
    if not parts:
        exception = f", but {system} {in_segments}" if lost else ""
        return (
            f"No clear difference between {system} and {other} on {_metrics(unclear, len(judged))}{exception}{numbers}"
        )
    if unclear:
        parts.append(f"differs not clearly on {_metrics(unclear, len(judged))}")
    return f"{system} {_listed(parts)}{f', but {in_segments}' if lost else ''}{numbers}"


def _groups_lost(inside: Rows, system: str, others: Iterable[str]) -> list[str]:
    """Return the groups in which a system is worse than one of others."""
    lost = [row.group for row in inside if row.verdict == "worse" and row.system == system and row.baseline in others]
    return list(dict.fromkeys("unlabelled" if group == NO_LABEL else str(group) for group in lost))


def _metrics(names: Sequence[str], n: int) -> str:
    """Return how many of n metrics these are, with their names if they are few."""
    if n == 1:
        return names[0]
    if len(names) == n:
        return "both metrics" if n == 2 else f"all {n} metrics"
    return _listed(names) if len(names) <= MAX_NAMES else f"{len(names)} of {n} metrics"


def _numbers(row: ComparisonRow) -> str:
    """Return the difference of a row and both means, as in: +54 % (0.0810 → 0.1250)."""
    share = relative(row.relative)
    gap = shown_difference(Gap(row.difference, row.low, row.high))[0] if math.isnan(row.relative) else share
    return f"{gap} ({one_figure(row.baseline_mean)} → {one_figure(row.mean)})"


def _of_all(rows: Rows, inside: Rows, estimates: Estimates) -> list[str]:
    """Return sentences on every system against every other by one metric. `inside` are rows of segments."""
    metric, direction = rows[0].metric, Direction(rows[0].direction, rows[0].target)
    both = [*rows, *(reverse(row) for row in rows)]
    known, differ = means_of(rows, estimates)
    means = {name: mean for (name, _), mean in known.items() if not math.isnan(mean)}
    if not direction.sign or not means:
        return []
    beaten = {name: [row.baseline for row in both if (row.system, row.verdict) == (name, "better")] for name in means}
    order = sorted(means, key=lambda name: direction.sign * _place(means[name], direction), reverse=True)
    n = len(means) - 1
    top = order[0]
    best = {"higher": "highest", "lower": "lowest"}.get(direction.kind, "best")
    above = [name for name in order if top in beaten[name]]  # only if some pairs share other users
    near = [name for name in order[1:] if name not in (*beaten[top], *above)]
    of_each = [OF_EACH] if differ else []
    if not any(beaten.values()):
        head = f"No system clearly beats another on {metric}; {top} has the {best} ({one_figure(means[top])})"
        return [head, *of_each]
    if near or above:
        head = f"{top} has the {best} {metric} ({one_figure(means[top])})"
        head += f", not clearly apart from {_listed(near)}" if near else ""
        head += f", but is worse than {_listed(above)} on the users of both" if above else ""
    else:
        head = f"{top} beats {'both' if n == 2 else f'all {n}'} others on {metric} ({one_figure(means[top])})"
    if lost := _groups_lost([*inside, *map(reverse, inside)], top, means):
        head += f", but is worse than another for {_listed(lost)} users"
    winners = [name for name in order if beaten[name] and (near or above or name != top)]
    lines = [head, *(f"{name} ({one_figure(means[name])}) beats {_listed(beaten[name])}" for name in winners)]
    return [*_limited(lines), *of_each]


def _place(mean: float, direction: Direction) -> float:
    return mean if direction.target is None else abs(mean - direction.target)


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    if len(known) > MAX_LISTED:
        known = [*known[: MAX_LISTED - 1], f"{len(known) - MAX_LISTED + 1} more"]
    *others, last = known
    return f"{', '.join(others)} and {last}" if others else last
