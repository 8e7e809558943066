"""Options that several commands share, and what is made of their texts."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.checks import some_names
from fastrec.cli.completion import complete_metrics, complete_tools
from fastrec.cli.output import (
    FORMATS_OF,
    SAVED,
    TITLED,
    endings_of,
    format_of,
)
from fastrec.exceptions import InputError
from fastrec.files.formats.recognise import FORMATS
from fastrec.files.paths import DATA_ENDINGS
from fastrec.metrics.declaration import NO_RECS_CHOICES, NO_TRUTH_CHOICES

if TYPE_CHECKING:
    from fastrec.files.resources import Resources
    from fastrec.metrics.declaration import Call
    from fastrec.report.report import Report
from fastrec.cli.group import say

__all__ = [
    "COLUMN_OPTIONS",
    "FAIL_UNDER",
    "GROUPS",
    "HTML",
    "METRIC_OPTIONS",
    "MORE_OUTPUT",
    "POLICIES",
    "RESOURCES",
    "WEIGHT",
    "check_named",
    "check_thresholds",
    "choose_format",
    "missed_floors",
    "names_of_metrics",
    "output_options",
    "planned",
    "read_systems",
    "refuse_floor",
    "resources_of",
    "take_policies",
    "with_options",
]


REPORT_ENDINGS = (f".{SAVED}", ".npz")


@dataclass(frozen=True)
class _Threshold:
    metric: str
    least: float


def _read_cutoffs(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[int]:
    """Whole numbers of at least 1, separated by commas."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) < 20 and int(part) > 0):
            raise click.BadParameter(f"{part[:40]!r}: whole numbers of at least 1 are wanted, as in 5,10,20")
    return [int(part) for part in parts]


def _read_thresholds(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[_Threshold]:
    """METRIC=NUMBER; the metric may itself have "=" in brackets."""
    thresholds = []
    for text in texts:
        metric, _equals, number = text.rpartition("=")
        try:
            least = float(number)
        except ValueError:
            least = math.nan
        if not metric or math.isnan(least):
            raise click.BadParameter(f"{text!r}: a metric and a number are wanted, as in ndcg@10=0.2")
        thresholds.append(_Threshold(metric.strip(), least))
    return thresholds


def read_systems(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """NAME=FILE, or FILE alone, which is called as the file without its ending; each name once.

    A text that is a path as a whole, such as date=1/recs.csv, is FILE alone.
    """
    systems: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text) or any(glob.iglob(text)):
            name, path = _name_of_file(text), text
        if not name.strip() or not path:
            raise click.BadParameter(f"{text!r}: a name and a file are wanted, as in new=recs.parquet")
        if name in systems:
            raise click.BadParameter(f"the name {name!r} stands twice: give each its own, as in new={path}")
        systems[name] = path
    return systems


def _name_of_file(path: str) -> str:
    """The name of a file or folder without .gz and one ending of data or reports; standard input has none."""
    if path == "-":
        return ""
    name = os.path.basename(os.path.normpath(path))
    if name.lower().endswith(".gz"):
        name = name[: -len(".gz")]
    stem, ending = os.path.splitext(name)
    return stem if ending.lower() in (*DATA_ENDINGS, *REPORT_ENDINGS) else name


def _read_output(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """A file, or standard output as where none is named."""
    return None if path == "-" else path


def _read_min_gain(_: click.Context, __: click.Parameter, text: str | None) -> float | str | None:
    """A number, or any."""
    if text is None or text == "any":
        return text
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: a number is wanted, or any") from None


def _read_size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Bytes, with or without a unit."""
    from fastrec.files.resources import read_size

    try:
        return read_size(text)
    except InputError as error:
        raise click.BadParameter(str(error).removeprefix("memory ")) from None


METRIC_OPTIONS = (
    click.option(
        "-m",
        "--metrics",
        multiple=True,
        metavar="NAMES",
        shell_complete=complete_metrics,
        help="Metrics, separated by commas; may be repeated.",
    ),
    click.option(
        "-k",
        "cutoffs",
        callback=_read_cutoffs,
        multiple=True,
        metavar="K,K,...",
        help="Cut-offs for metrics without @k.",
    ),
    click.option(
        "--like",
        metavar="TOOL",
        shell_complete=complete_tools,
        help="Name metrics, and compute and count, as this tool does: trec_eval, ranx, recbole, ...",
    ),
)
COLUMN_OPTIONS = (
    click.option(
        "--user-col",
        multiple=True,
        metavar="NAME",
        help="Column of user ids, in all files. In a LOG, several make a user together.  [default: user_id]",
    ),
    click.option(
        "--item-col",
        metavar="NAME",
        help="Column of item ids, in all files. In a LOG, for ties by id only.  [default: item_id]",
    ),
    click.option("--rank-col", metavar="NAME", help="Column of ranks in RECS, 1 the best.  [default: rank, if there]"),
    click.option(
        "--score-col",
        metavar="NAME",
        help="Column of scores in RECS, without ranks, or in LOG.  [default: score]",
    ),
    click.option("--gain-col", metavar="NAME", help="Column of gains in TRUTH.  [default: gain, if there]"),
    click.option("--label-col", metavar="NAME", help="Column of labels in LOG.  [default: label]"),
    click.option(
        "--target-col",
        metavar="NAME",
        help="Column of true ratings in a LOG of ratings.  [with --prediction-col: target]",
    ),
    click.option(
        "--prediction-col",
        metavar="NAME",
        help="Column of predicted ratings in a LOG of ratings.  [with --target-col: prediction]",
    ),
)
WEIGHT = (click.option("--weight-col", metavar="NAME", help="Column of weights of rows in LOG."),)
GROUPS = (
    click.option("--by", multiple=True, metavar="NAME", help="Also by the values of this column; may be repeated."),
    click.option("--users", type=click.Path(), metavar="FILE", help="Users with columns for --by."),
)
POLICIES = (
    click.option(
        "--ties",
        type=click.Choice(["expected", "input", "worst", "best", "id_asc", "id_desc", "error"]),
        default="expected",
        show_default=True,
        help="Order of equal scores.",
    ),
    click.option(
        "--no-truth",
        type=click.Choice(NO_TRUTH_CHOICES),
        default="skip",
        show_default=True,
        help="Users without a relevant item.",
    ),
    click.option(
        "--no-recs",
        type=click.Choice(NO_RECS_CHOICES),
        default="zero",
        show_default=True,
        help="Users with relevant items and no list.",
    ),
    click.option(
        "--one-class",
        type=click.Choice(["drop", "half", "zero", "nan", "error"]),
        default="drop",
        show_default=True,
        help="Users with labels of one class only, in gauc.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "miss"]),
        default="error",
        show_default=True,
        help="An item twice in a list.",
    ),
    click.option(
        "--min-gain",
        callback=_read_min_gain,
        metavar="GAIN",
        help="Least gain or label of a relevant item, or any: all of TRUTH.  [default: above 0; in LOG, label 1]",
    ),
    click.option("--n-items", type=click.IntRange(min=1), metavar="N", help="Number of items in the catalogue."),
    click.option(
        "--exclude",
        type=click.Path(),
        metavar="FILE",
        help="Seen items (user, item), taken out of the lists.",
    ),
    click.option(
        "--input-format",
        type=click.Choice(FORMATS),
        default="auto",
        show_default=True,
        help="Format of all files; auto: of each by how it begins.",
    ),
)


def output_options(what: str) -> tuple[Callable[..., Any], ...]:
    """Options of where a result goes and in which format."""
    printed = [name for name in FORMATS_OF[what] if name != SAVED]
    return (
        click.option("--format", "format_", type=click.Choice(printed), help="[default: as -o ends, else table]"),
        click.option(
            "-o",
            "--output",
            type=click.Path(),
            callback=_read_output,
            metavar="FILE",
            help=f"Write the result there, as the name ends: {', '.join(endings_of(what))}; - is standard output.",
        ),
    )


HTML = (
    click.option(
        "--html",
        type=click.Path(),
        metavar="FILE",
        help="Also write a page for people: tables, charts, definitions.",
    ),
    click.option("--title", metavar="TEXT", help="Title of the page, or of the result in Markdown."),
)
FAIL_UNDER = (
    click.option(
        "--fail-under",
        callback=_read_thresholds,
        multiple=True,
        metavar="METRIC=NUMBER",
        help="Exit with 1 if the mean is below; not for metrics of which lower is better; may be repeated.",
        shell_complete=complete_metrics,
    ),
)
MORE_OUTPUT = (
    click.option(
        "--save",
        type=click.Path(),
        metavar="FILE",
        help="Also keep the report, with users' values, for fastrec compare, fastrec report and fastrec.load.",
    ),
    click.option(
        "--per-user",
        type=click.Path(),
        metavar="FILE",
        help="Also write each user's values: .csv or .parquet.",
    ),
    click.option(
        "--curves",
        type=click.Path(),
        metavar="FILE",
        help="Also write the ROC and precision-recall curves of LOG: .csv or .json.",
    ),
)
RESOURCES = (
    click.option(
        "--memory",
        callback=_read_size,
        metavar="SIZE",
        help="Memory to keep to, as in 4GB; larger files are sorted on disk.  [default: half of it]",
    ),
    click.option(
        "--temp-dir",
        type=click.Path(exists=True, file_okay=False, writable=True),
        metavar="DIR",
        help="Folder for what does not fit in memory.  [default: that of the system]",
    ),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads to use.  [default: all cores]"),
)


def with_options(*groups: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """A decorator that gives a command these options, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def choose_format(options: dict[str, Any], what: str) -> None:
    """Set the output format; warn if it has no title."""
    options["format_"] = format_of(options, what)
    if options.get("title") is not None and options["html"] is None and options["format_"] not in TITLED:
        say("fastrec: --title is not used: only pages and Markdown have a title (--html page.html, -o page.md)")


def take_policies(ctx: click.Context, options: dict[str, Any]) -> None:
    """The policies of the tool, where the command does not say them."""
    from fastrec.metrics.recipes import find_recipe

    if options["like"] is not None:
        policies = find_recipe(options["like"]).policies
        options |= {
            name: policy
            for name, policy in policies.items()
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        }


def resources_of(options: dict[str, Any]) -> Resources:
    """Return the resources that options ask for."""
    from fastrec.files.resources import Resources

    return Resources(options["memory"], options["temp_dir"], options["threads"])


def names_of_metrics(options: dict[str, Any]) -> list[str]:
    """Return the texts of the metrics that are asked for."""
    from fastrec.metrics.declaration import split_outside_brackets

    return [name for text in options["metrics"] for name in split_outside_brackets(text)]


def planned(options: dict[str, Any], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """The metrics to compute, by name: those of a log if some are usual there.

    Unknown names and thresholds on other metrics fail here, before any reading.
    """
    names = names_of_metrics(options)
    if options["metrics"] and not names:
        raise click.UsageError("-m names no metric")
    named = translated(options, names, usual)
    lists = [name for name, call in named.items() if call.metric.kind == "ranking"]
    if options["weight_col"] is not None and lists:
        raise click.UsageError(f"--weight-col weighs rows, which metrics of lists cannot: leave out {lists[0]}")
    check_thresholds(options["fail_under"], named)
    return named


def translated(options: dict[str, Any], names: list[str], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """The metrics that names stand for, as fastrec or a tool has them, at all cut-offs."""
    from fastrec.metrics.calls import expand
    from fastrec.metrics.recipes import find_recipe

    cutoffs = options["cutoffs"] or None
    if options["like"] is None:
        return {call.text: call for call in expand(names or None, cutoffs, usual)}
    kind = "lists" if usual is None else "rows"
    return find_recipe(options["like"]).translate(names or None, cutoffs, kind, options["min_gain"])


def check_named(option: str, metrics: Iterable[str], named: dict[str, Call]) -> None:
    """An option may name only metrics that are evaluated."""
    from fastrec.metrics.calls import parse

    known = [call.text for call in named.values()]
    for metric in metrics:
        if metric not in named and parse(metric).text not in known:
            raise click.UsageError(f"{option} {metric}: not evaluated here; there is {some_names(list(named))}")


def check_thresholds(thresholds: Sequence[_Threshold], named: dict[str, Call]) -> None:
    """A floor is for metrics that are evaluated, and not for errors."""
    from fastrec.metrics.calls import parse

    metrics = [threshold.metric for threshold in thresholds]
    check_named("--fail-under", metrics, named)
    for metric in metrics:
        refuse_floor(metric, named.get(metric) or parse(metric))


def refuse_floor(metric: str, call: Call | None) -> None:
    """A floor for an error, or for a metric with a target, may pass the worse model."""
    if call is not None and call.metric.direction.kind in ("lower", "target"):
        raise click.UsageError(
            f"--fail-under {metric}: {call.metric.direction.words} is better, so a floor may fail the better model; "
            "fastrec compare --fail-if-worse gates it"
        )


def missed_floors(report: Report, thresholds: Sequence[_Threshold]) -> int:
    """1 if a mean is below its threshold (or there is no mean), with a line for each; else 0."""
    code = 0
    for threshold in thresholds:
        mean = report[threshold.metric]
        if not mean >= threshold.least:
            found = "has no value" if math.isnan(mean) else f"= {mean!r}"
            say(f"fastrec: {threshold.metric} {found}, wanted at least {threshold.least!r}")
            code = 1
    return code
