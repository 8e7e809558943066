"""Results for terminals: tables that fit the width, and lines below that say which users were counted."""

from __future__ import annotations

import itertools
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from fastrec.checks import counted
from fastrec.comparison.pairing import estimate_in
from fastrec.comparison.tables import CELLS, meaning_of_mark, row_cells
from fastrec.feedback.tables import MARK, whole
from fastrec.inputs.users import NO_LABEL
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.directions import Direction
from fastrec.policies import LEFT_OUT, NO_RECS, NO_TRUTH, NO_TRUTH_OF_ROWS, ONE_CLASS, Policy
from fastrec.report.definitions import known_call
from fastrec.report.doubts import describe_sample
from fastrec.report.estimates import Estimate, with_intervals
from fastrec.report.tables import (
    about_intervals,
    estimated,
    in_several,
    notes_on_data,
    order_of_lists,
    size_of_groups,
)
from fastrec.show.numbers import (
    DASH,
    Gap,
    share,
    shown_count,
    shown_difference,
)
from fastrec.show.tables import Table
from fastrec.show.terminal import Sheet, code_lines, shell_lines, wrap

if TYPE_CHECKING:
    from rich.console import Console

    from fastrec.comparison.comparison import Comparison
    from fastrec.comparison.row import ComparisonRow
    from fastrec.counterfactual.result import CtrByRank, PositionBias
    from fastrec.counterfactual.value import PolicyEstimates
    from fastrec.explanation.explanation import Explanation
    from fastrec.feedback.result import Drift
    from fastrec.report.report import Report

KINDS = {"ranking": "lists", "scores": "scored rows"}
POLICIES = ("ties", "no_truth", "no_recs")
MAX_LABELS = 100  # of a grouping that are drawn
NARROW = 50  # columns; with fewer, a definition is printed below its name


# A report


def draw_report(console: Console, report: Report) -> None:
    """Draw the metrics over all users, then by group, and the counts."""
    sheet = Sheet(console)
    overall = estimated(report)
    sheet.table(overall, optional=range(len(overall.head) - 1, 1, -1))
    for grouping, by_label in _groups(report).items():
        names = list(next(iter(by_label.values()), {}))
        whose = ["users"] if report.users["total"] else []
        drawn = dict(itertools.islice(by_label.items(), MAX_LABELS))
        means = with_intervals([own[name] for name in names] for own in drawn.values())
        cells = [
            [str(label), *(_numbers_of_users(own) for _ in whose), *row]
            for (label, own), row in zip(drawn.items(), means, strict=True)
        ]
        sheet.line()
        sheet.table(Table("", [grouping, *whose, *names], cells))
    sheet.line()
    marks = describe_sample(report.settings)
    several, cut = in_several(report, report.groups), _about_many_labels(report)
    sheet.notes([*marks, *cut, *size_of_groups(report), *several, *_about_intervals(report), *counts(report)])


def _about_many_labels(report: Report) -> Iterator[str]:
    for grouping, by_label in report.groups.items():
        if len(by_label) > MAX_LABELS:
            yield f"by {grouping}: the first {MAX_LABELS} of {len(by_label):,} labels; --format json has all"


def _numbers_of_users(estimates: Mapping[str, Estimate]) -> str:
    """Return the number of users in a group, as a range if metrics with a min_gain of their own count other users."""
    found = sorted({one.users for one in estimates.values()})
    return DASH.join(map(shown_count, dict.fromkeys((found[0], found[-1]))))


def _about_intervals(report: Report) -> Iterator[str]:
    yield from about_intervals(report)
    groups = [one for by_label in _groups(report).values() for label in by_label.values() for one in label.values()]
    if any(one.users == 1 for one in groups):
        yield "no interval for a group of one user"


def _groups(report: Report) -> dict[str, dict[Any, Any]]:
    """Return the groups to show: the users without a label only if some of them were evaluated."""
    return {
        grouping: {
            label: estimates
            for label, estimates in by_label.items()
            if label != NO_LABEL or any(one.users for one in estimates.values())
        }
        for grouping, by_label in report.groups.items()
    }


def counts(report: Report) -> list[str]:
    """Return lines on the users counted and on the data."""
    users, data = report.users, report.data
    if "rows" in data:
        return [*_names_of_tool(report), *_counts_of_log(report)]
    lines = [*_names_of_tool(report), f"{users['evaluated']:,} of {users['total']:,} users evaluated"]
    for policy, words in ((NO_TRUTH, "without a relevant item"), (NO_RECS, "without a list")):
        if users.get(policy.name):
            lines.append(f"{users[policy.name]:,} {words}, {_treated(policy, report.settings)}")
    rows = [f"{data['rec_rows']:,} rows of lists"]
    rows += [f"{data['truth_rows']:,} of truth"] if data["truth_rows"] else []
    lines += [", ".join(rows), *notes_on_data(data), *order_of_lists(data)]
    if not math.isnan(data.get("truth_items_in_recs", math.nan)):
        lines.append(f"{share(data['truth_items_in_recs'])} of the relevant items are in the lists")
    return lines


def _names_of_tool(report: Report) -> list[str]:
    """Return a line on the names and policies of the tool in `like`, if there is one."""
    settings = report.settings
    if "like" not in settings:
        return []
    names = [f"{name} is {text}" for name, text in cast("dict[str, str]", settings.get("names", {})).items()]
    policies = [f"{name}={settings[name]}" for name in POLICIES if name in settings]
    if settings["min_gain"] is not None:
        policies.append(f"min_gain={settings['min_gain']}")
    return [f"like {settings['like']}: {', '.join([*names, *policies])}"]


def _counts_of_log(report: Report) -> list[str]:
    """Return lines on the rows, and on the users that a policy treats."""
    users, data, settings = report.users, report.data, report.settings
    calls = [call for name in report if (call := known_call(name)) is not None]
    positive = f" ({data['positive_rows']:,} positive)" if "positive_rows" in data else ""
    whose = f" of {counted(users['total'], 'user')}" if users["total"] else ""
    lines = [f"{counted(int(data['rows']), 'row')}{positive}{whose}", *notes_on_data(data)]
    if users.get("no_truth") and any(call.metric.family is LISTS for call in calls):
        how = _treated(NO_TRUTH_OF_ROWS, settings, "metrics of lists")
        lines.append(f"{users['no_truth']:,} without a positive row, {how}")
    ruled = {call.metric.name: call.options for call in calls if "one_class" in call.metric.options}
    if "one_class" not in settings or not ruled:
        return lines
    if one_class := users.get("no_truth", 0) + users.get("no_negatives", 0):
        own = any(("one_class", "call") not in options for options in ruled.values())
        how = "" if own else f", {_treated(ONE_CLASS, settings, ' and '.join(ruled))}"
        lines.append(f"{one_class:,} with rows of one class only{how}")
    if users.get("constant_scores"):
        lines.append(f"{users['constant_scores']:,} with rows of both classes and one score")
    return lines


def _treated(policy: Policy, settings: Mapping[str, object], metrics: str = "") -> str:
    """Return what became of users, in some metrics, or the name of a policy that another version has saved."""
    value = str(settings[policy.name])
    outcome = policy.values[value].outcome if value in policy.values else value
    if policy is NO_TRUTH and value == "judged" and settings["no_recs"] == "skip":
        outcome += " and with a list"
    return f"{outcome} {'of' if outcome == LEFT_OUT else 'in'} {metrics}" if metrics else outcome


# A comparison


def draw_comparison(console: Console, found: Comparison, reports: Mapping[str, Report]) -> None:
    """Draw the means of the systems, their differences over all users and by group, and notes."""
    sheet = Sheet(console)
    means, *differences = tables_of_comparison(found, reports)
    sheet.table(means)
    for table in differences:
        sheet.line()
        numbers = table.head[table.n_texts :]  # the columns before may be named by users
        optional = [table.n_texts + numbers.index(name) for name in ("p", "interval") if name in numbers]
        sheet.table(table, optional)
    sheet.line()
    marks = describe_sample(next(iter(reports.values())).settings)  # the same for all
    sheet.notes([*marks, *legend_of(found, reports)])


def legend_of(found: Comparison, reports: Mapping[str, Report]) -> list[str]:
    """Return the notes of a comparison, and the number of users of each system where some are not compared."""
    alike: dict[str, list[str]] = {}  # metrics by their counts
    for metric in dict.fromkeys(row.metric for row in found.rows if row.unpaired):
        n_users = {name: report.estimates[metric].users for name, report in reports.items()}
        alike.setdefault(_users_in(n_users), []).append(metric)
    lines = (f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} {line}" for line, names in alike.items())
    from fastrec.comparison.comparison import legend_of_marks

    return [*found.notes(), *legend_of_marks(found, found.all_rows()), *lines]


def _users_in(n_users: Mapping[str, int]) -> str:
    """Return the numbers of users by system, as in: values for 3 users in 'new', 2 in 'old'."""
    (first, n), *others = n_users.items()
    more = (f", {number:,} in {name!r}" for name, number in others)
    return f"values for {counted(n, 'user')} in {first!r}{''.join(more)}"


def tables_of_comparison(found: Comparison, reports: Mapping[str, Report]) -> list[Table]:
    """Return tables of the means of all systems and of the differences over all users and within groups."""
    baseline = found.settings["baseline"]
    pairs = {(row.system, row.baseline) for row in found.rows}
    one = " - ".join(next(iter(pairs))) if len(pairs) == 1 else None
    what = f"difference {one}" if one else "differences" if baseline is None else f"difference to {baseline}"
    level = found.settings["level"]
    system = [] if one else ["pair" if baseline is None else "system"]
    tables = [_means(found, reports)]
    everything: list[tuple[str | None, Sequence[ComparisonRow]]] = [(None, found.rows), *found.segments.items()]
    for grouping, rows in everything:
        first, last = (["group"], ["p corrected"]) if grouping else ([], ["p", "p corrected"])
        names = ["metric", *first, *system, "difference", "interval", *last]
        heads = {"group": str(grouping), "pair": "system", "p corrected": "corrected"}
        head = [heads.get(name, name) for name in names]
        body = [row_cells(row, names, level, blank=" ") for row in rows if row.users]
        title = f"{what}, by {grouping}" if grouping else what
        tables.append(Table(title, head, body, names.index("difference")))
    return tables


def _means(found: Comparison, reports: Mapping[str, Report]) -> Table:
    """Return the table of the means that were compared."""
    n_pairs = Counter(row.metric for row in found.rows)
    # A ratio of sums or a number of all lists, which have no ties, is over all users of each system in every pair.
    differ = any(row.unpaired and row.ties is not None and n_pairs[row.metric] > 1 for row in found.rows)
    return _means_by_pair(found, reports) if differ else _means_by_system(found, reports)


def _means_by_pair(found: Comparison, reports: Mapping[str, Report]) -> Table:
    """Return a table with a row per pair, for pairs over different users."""
    means = with_intervals(_means_of_pair(row, reports).values() for row in found.rows)
    cells = [
        [row.metric, row.system, row.baseline, *own, shown_count(row.users)]
        for row, own in zip(found.rows, means, strict=True)
    ]
    head = ["metric", "system", "baseline", "mean", "baseline mean", "users"]
    return Table("means over the users of each pair", head, cells, 3)


def _means_by_system(found: Comparison, reports: Mapping[str, Report]) -> Table:
    """Return a table with a column per system, for pairs over the same users. It includes metrics not compared."""
    metrics = {row.metric for row in found.rows} | set(found.left_out)
    means = {
        (metric, system): report.estimates[metric]
        for system, report in reports.items()
        for metric in report
        if metric in metrics
    }
    for row in found.rows:
        means |= {(row.metric, system): mean for system, mean in _means_of_pair(row, reports).items()}
    shown = [metric for metric in next(iter(reports.values())) if metric in metrics]
    cells = with_intervals([means[metric, name] for name in reports] for metric in shown)
    return Table("", ["mean", *reports], [[metric, *own] for metric, own in zip(shown, cells, strict=True)])


def _means_of_pair(row: ComparisonRow, reports: Mapping[str, Report]) -> dict[str, Estimate]:
    """Return both means over the compared users, with an error if these are all users of the system."""
    means = {row.system: row.mean, row.baseline: row.baseline_mean}
    estimates = {name: estimate_in(reports[name], row.metric, row.grouping, row.group) for name in means}
    return {
        name: estimates[name]
        if row.ties is None or estimates[name].users == row.users
        else Estimate(mean, math.nan, row.users)
        for name, mean in means.items()
    }


# A drift


def draw_drift(console: Console, found: Drift) -> None:
    """Draw the tables of a drift, with their notes below the last."""
    sheet = Sheet(console)
    for table in whole(found.logs, found.steps, found.trends):
        sheet.table(table)
        sheet.line()
    sheet.notes([MARK, *found.notes()])


# Curves by rank


def draw_curve(console: Console, found: CtrByRank | PositionBias) -> None:
    """Draw the tables of a curve by rank, with their notes below the last."""
    sheet = Sheet(console)
    for n, table in enumerate(found.tables()):
        if n:
            sheet.line()
        sheet.table(table)


# Values of a policy


def draw_policy(console: Console, found: PolicyEstimates) -> None:
    """Draw the tables of estimators, with their notes."""
    from fastrec.counterfactual.value import printed

    tables, sheet = printed(list(found.values()), warned=False), Sheet(console)
    for table in tables:
        sheet.table(table._replace(notes=[]))
        sheet.line()
    sheet.notes(tables[-1].notes)


# An explanation


def draw_explanation(console: Console, why: Explanation) -> None:
    """Draw the tables of an explanation, each with its notes."""
    sheet = Sheet(console)
    for n, found in enumerate(why.tables()):
        if n:
            sheet.line()
        sheet.table(found, n_labels=1)


# Metrics


def draw_metrics(console: Console, known: Sequence[Mapping[str, Any]]) -> None:
    """Draw a list of each kind of metrics, with a note on their common options."""
    from fastrec.metrics.declaration import COMMON_OPTIONS

    sheet = Sheet(console)
    notes = {
        "ranking": "Each takes a cut-off and min_gain, the smallest gain of a relevant item: "
        "ndcg(gain=exp2, min_gain=3)@10. Each also takes no_truth and no_recs, which work like the options --no-truth "
        "and --no-recs. In a scored log, scores rank the rows of a user.",
        "scores": "Each takes min_gain, the smallest label of a positive row, and no cut-off. "
        "For everything about one metric: fastrec metrics ndcg",
    }
    for kind, note in notes.items():
        own = [metric for metric in known if metric["kind"] == kind]
        sheet.line(KINDS[kind].capitalize(), "bold")
        sheet.text("Each entry gives the formula, the options (* is the default) and the source.", "dim")
        sheet.text("Higher is better unless an entry says otherwise.", "dim")
        sheet.line()
        indent = 2 + max(len(metric["name"]) for metric in own)
        for metric in own:
            options = _options(metric, leave_out=COMMON_OPTIONS)
            direction = [] if metric["direction"] == "higher" else [_better(metric)]
            texts = [metric["formula"], *direction, *options, metric["source"]]
            _definition(sheet, console.width, metric["name"], indent, texts)
        sheet.line()
        sheet.text(note)
        if kind == "ranking":
            sheet.line()


def _definition(sheet: Sheet, width: int, name: str, indent: int, texts: Iterable[str]) -> None:
    """Print strings beside their name, or below it in a narrow terminal."""
    beside = width >= NARROW
    blank = " " * (indent if beside else 2)
    lines = [f"{blank}{line}" for text in texts for line in wrap(text, width - len(blank), "  ")]
    if beside and lines:
        lines[0] = name.ljust(indent) + lines[0][indent:]
    elif name:
        lines.insert(0, name)
    for line in lines:
        sheet.marked(line)


def _options(metric: Mapping[str, Any], leave_out: Sequence[str] = ()) -> list[str]:
    """Return a line per option: its name and its values, * after the default."""
    lines = []
    for name, option in metric["options"].items():
        if name in leave_out:
            continue
        default = option["default"]
        values = list(option["choices"])
        if "number" in option["kind"]:
            values.append("a number" if default is None or default in values else f"{default:g}")
        if option["kind"] == "separator":
            values.append("a separator")
        if "column" in option["kind"]:
            values.append("a column" if default is None else default)
        if "table" in option["kind"]:
            values.append("[table]")
        marked = [
            f"{value}*" if default is not None and (value == default or not option["choices"]) else value
            for value in values
        ]
        lines.append(f"{name}: {' | '.join(marked)}{', required' if option['required'] else ''}")
    return lines


def _better(metric: Mapping[str, Any]) -> str:
    """Return which values of a metric in the catalogue are better, in words."""
    return f"{Direction(metric['direction'], metric['target']).words} is better"


def draw_one_metric(console: Console, metric: Mapping[str, Any]) -> None:
    """Draw everything that the catalogue knows about one metric."""
    from rich.text import Text

    sheet = Sheet(console)
    low, high = metric["range"]
    bounds = "any number" if low is None else f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    sheet.line(metric["name"], "bold")
    for name, texts in {
        "of": [KINDS[metric["kind"]]],
        "formula": [metric["formula"]],
        "range": [f"{bounds}, {_better(metric)}"],
        "options": [*_options(metric), *(["* is the default"] if metric["options"] else [])],
        "source": [metric["source"]],
    }.items():
        _definition(sheet, console.width, name, len("options") + 2, texts)
    for paragraph in metric["doc"].split("\n\n"):
        sheet.line()
        # Prose is wrapped to this width; examples and tables keep their lines.
        is_prose = not any(line.startswith((" ", ">>>", "---")) for line in paragraph.splitlines())
        if is_prose:
            sheet.text(" ".join(paragraph.split()))
        else:
            for line in paragraph.splitlines():
                console.print(Text("\n".join(code_lines(line, console.width))), soft_wrap=True)


# The demo


def draw_demo(console: Console, reports: Mapping[str, Report], found: Comparison, paths: Mapping[str, str]) -> None:
    """Draw the accuracy of both recommenders, also by segment, their use of the catalogue, and commands to try next."""
    from fastrec.demo import ACCURACY, CATALOGUE

    sheet = Sheet(console)
    first, second = reports
    folder, names = os.path.dirname(paths[first]), [os.path.basename(path) for path in paths.values()]
    compared = {row.metric: row for row in found.rows}
    sheet.text(f"In {folder}: {', '.join(names)}")
    sheet.line()

    def draw_means(title: str, metrics: Iterable[str], notes: Sequence[str] = ()) -> None:
        pairs = [
            _compared(compared[name], found, reports) if name in compared else _not_compared(name, reports)
            for name in metrics
        ]
        rows = [[name, *cells] for name, cells in zip(metrics, _cells_of_pairs(pairs), strict=True)]
        sheet.table(Table("", [title, first, second, "difference"], rows, notes=notes))
        sheet.line()

    draw_means("accuracy", ACCURACY)
    draw_means("catalogue", CATALOGUE, [f"{name.partition('@')[0]}: {words}" for name, words in CATALOGUE.items()])
    main_metric = ACCURACY[0]
    for grouping, own in found.segments.items():
        inside = [row for row in own if row.metric == main_metric and row.users]  # users without a truth have no value
        cells = _cells_of_pairs([_compared(row, found, reports) for row in inside])
        rows = [[str(row.group), shown_count(row.users), *pair] for row, pair in zip(inside, cells, strict=True)]
        title = f"{main_metric} by {grouping}"
        sheet.table(Table(title, [grouping, "users", first, second, "difference"], rows), (1,))
    sheet.line()
    untested = [f"{metric}: {why}" for metric, why in found.left_out.items()]
    mark = meaning_of_mark(found.settings["level"])
    sheet.notes([*counts(reports[second])[:-2], *found.notes()[:2], *untested, mark])
    sheet.line()
    sheet.text(f"HTML page of the comparison: {os.path.join(folder, 'comparison.html')}")
    sheet.line()
    sheet.line("Next, try:")
    systems = " ".join(f"{name}={shlex.quote(paths[name])}" for name in reports)
    truth = shlex.quote(paths["truth"])
    catalogue = " ".join(f"--{side} {shlex.quote(paths[side])}" for side in ("history", "items"))
    for command in (
        f"fastrec evaluate {shlex.quote(paths[second])} {truth} -m ndcg,recall -k 5,10,20 --by segment",
        f"fastrec compare {systems} --truth {truth} -m recall@20 --by segment",
        f"fastrec evaluate {shlex.quote(paths[second])} -m novelty,miscalibration -k 10 {catalogue}",
        f"fastrec explain ndcg@10 {shlex.quote(paths[second])} {truth}",
    ):
        for line in shell_lines(command, console.width - 2):
            sheet.line(f"  {line}", "bold")


def _compared(row: ComparisonRow, found: Comparison, reports: Mapping[str, Report]) -> tuple[Estimate, Estimate, str]:
    """Return the means of baseline and system over the compared users, and their difference, * if significant."""
    means = _means_of_pair(row, reports)
    mark = "*" if found.is_significant(row) else " "
    return means[row.baseline], means[row.system], f"{CELLS['difference'](row)}{mark}"


def _not_compared(metric: str, reports: Mapping[str, Report]) -> tuple[Estimate, Estimate, str]:
    """Return the same for a metric without a test: the means of the reports, and their difference."""
    one, other = (report.estimates[metric] for report in reports.values())
    gap = Gap(other.mean - one.mean, math.nan, math.nan)
    return one, other, f"{shown_difference(gap)[0]} "


def _cells_of_pairs(pairs: Sequence[tuple[Estimate, Estimate, str]]) -> list[list[str]]:
    """Return the cells of a table of such pairs."""
    cells = with_intervals(pair[:2] for pair in pairs)
    return [[*own, pair[2]] for own, pair in zip(cells, pairs, strict=True)]
