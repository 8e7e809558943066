"""Options that several commands share, and the functions that parse and apply them."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.api.calls import evaluate_model
from fastrec.arguments import options_in
from fastrec.checks import is_any_url, shown_url, some_names
from fastrec.cli.completion import complete_metrics, complete_systems, complete_tools
from fastrec.cli.output import FORMATS_OF, OF_PAPERS, SAVED, TITLED, endings_of, format_of
from fastrec.exceptions import InputError, renamed
from fastrec.files.calls import evaluate_files
from fastrec.files.formats.recognise import data_endings, format_asked, input_formats
from fastrec.files.packing import ENDINGS
from fastrec.policies import ITEM_POLICIES, SAMPLING
from fastrec.policies import POLICIES as POLICIES_OF_CALLS

if TYPE_CHECKING:
    from fastrec.files.resources import Resources, Watch
    from fastrec.metrics.declaration import Call
    from fastrec.report.report import Report
from fastrec.cli.group import FILES_OF_LISTS, OF_SAMPLES, say

CHOICES = POLICIES_OF_CALLS | ITEM_POLICIES | SAMPLING
REPORT_ENDINGS = (f".{SAVED}", ".npz")


@dataclass(frozen=True)
class _Threshold:
    metric: str
    minimum: float


def _read_cutoffs(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[int]:
    """Parse integers of at least 1, separated by commas."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) < 20 and int(part) > 0):
            raise click.BadParameter(f"expected integers of at least 1, as in 5,10,20, found {part[:40]!r}")
    return [int(part) for part in parts]


def _read_thresholds(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[_Threshold]:
    """Parse METRIC=NUMBER, several separated by commas; a metric may have "=" and commas in brackets."""
    from fastrec.metrics.spelling import split_outside_brackets

    thresholds = []
    for text in (part for own in texts for part in split_outside_brackets(own)):
        metric, _equals, number = text.rpartition("=")
        try:
            minimum = float(number)
        except ValueError:
            minimum = math.nan
        if not metric or math.isnan(minimum):
            raise click.BadParameter(f"expected a metric and a number, as in ndcg@10=0.2, found {text!r}")
        thresholds.append(_Threshold(metric.strip(), minimum))
    return thresholds


def _read_facts(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Parse NAME=TEXT."""
    facts = {}
    for text in texts:
        name, equals, fact = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f'expected a name and a text, as in "data=MovieLens 25M", found {text!r}')
        facts[name.strip()] = fact
    return facts


def read_systems(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Parse NAME=FILE, or FILE, which gets the name of the file without its ending. Names must differ.

    A string that is a path as a whole, such as date=1/recs.csv, is a FILE.
    """
    systems: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or is_any_url(name) or os.path.exists(text) or any(glob.iglob(text)):
            name, path = _name_of_file(shown_url(text)), text
        if not name.strip() or not path:
            raise click.BadParameter(f"expected a name and a file, as in new=recs.parquet, found {text!r}")
        if name in systems:
            again = f"new={shown_url(path)}"
            raise click.BadParameter(f"two systems have the name {name!r}: give each its own, as in {again}")
        systems[name] = path
    return systems


def systems_argument(name: str, metavar: str) -> Callable[[Any], Any]:
    """Return the decorator for the argument that takes files, each with a name or without."""
    return click.argument(
        name, nargs=-1, required=True, metavar=metavar, callback=read_systems, shell_complete=complete_systems
    )


class LocalPath(click.Path):
    """A path on this machine: a URL is refused, and shown without its credentials."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as click.Path does."""
        if is_any_url(value):
            self.fail(f"{shown_url(value)} is a URL; expected a path on this machine", param, ctx)
        return super().convert(value, param, ctx)


class InputFormats(click.Choice):  # type: ignore[type-arg] # generic since click 8.2
    """The formats that are registered when a command runs."""

    def __init__(self) -> None:
        super().__init__(input_formats())

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of the option."""
        return input_formats()

    @choices.setter
    def choices(self, _: object) -> None:
        """Ignore the formats at the time of the import."""


def _keep_dialect(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Keep an option about CSV for `_read_format`, which is called later."""
    if value is not None:
        ctx.meta.setdefault(DIALECT, {})[param.name] = "\t" if value == r"\t" else value


def _read_format(ctx: click.Context, _: click.Parameter, name: str) -> Any:
    """Return the format of input files: its name, or CSV as other options say."""
    return format_asked(ctx.meta.get(DIALECT), name)


def _name_of_file(path: str) -> str:
    """Return the name of a file or folder without .gz or .zst and its ending; empty for standard input."""
    if path == "-":
        return ""
    name = os.path.basename(os.path.normpath(path))
    name = next((name[: -len(ending)] for ending in ENDINGS if name.lower().endswith(ending)), name)
    stem, ending = os.path.splitext(name)
    return stem if ending.lower() in (*data_endings(), *REPORT_ENDINGS) else name


def _read_curve(_: click.Context, __: click.Parameter, text: str | None) -> list[float] | None:
    """Parse numbers, separated by commas."""
    try:
        return None if text is None else [float(number) for number in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"expected numbers, as in 1,0.6,0.4, found {text!r}") from None


def _read_output(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """Return the path, or None for standard output."""
    return None if path == "-" else path


def _read_min_gain(_: click.Context, __: click.Parameter, text: str | None) -> float | str | None:
    """Parse a number, or "any"."""
    if text is None or text == "any":
        return text
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"expected a number, or any, found {text!r}") from None


def _read_size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Parse a number of bytes, with or without a unit."""
    from fastrec.runtime.limits import read_size

    try:
        return read_size(text)
    except InputError as error:
        raise click.BadParameter(renamed(error.text, lambda _: "").strip()) from None  # click names the option


ARGUMENTS = options_in(evaluate_model) | options_in(evaluate_files)
DIALECT = "fastrec.csv"  # of the options about CSV in the context of a command
PLAIN = re.compile(r'`+"?(\w+)(=?)"?`+')  # names, values and arguments in documentation


def _in_commands(name: re.Match[str]) -> str:
    """Return a name in documentation as the command line writes it."""
    if name[2] or (name[1] in FILES_OF_LISTS and '"' not in name[0]):
        return f"--{name[1]}"
    if name[1] == "position_bias":
        return "fastrec position-bias"
    return name[1].upper() if name[1] in ("recs", "truth") else name[1]


def argument(name: str, flag: str = "", more: str = "", **settings: Any) -> Callable[..., Any]:
    """Return the option for an argument of `evaluate_files`, with the documentation of the argument, and more."""
    text = PLAIN.sub(_in_commands, ARGUMENTS[name].doc.partition("\n")[0]) + more
    if name in CHOICES:
        policy = CHOICES[name]
        shown = {"default": policy.default, "show_default": True} if policy.default else {}
        settings = {"type": click.Choice(list(policy.values)), **shown}
        text += ". " + ". ".join(f"{value}: {own.effect}" for value, own in policy.values.items())
    names = (flag or f"--{name.replace('_', '-')}", *settings.pop("names", ()))
    return click.option(*names, help=text and f"{text[0].upper()}{text[1:]}.", **settings)


def column(name: str, flag: str = "", **settings: Any) -> Callable[..., Any]:
    """Return the option for an argument that names a column."""
    return argument(name, flag or f"--{name}-col", metavar="NAME", **settings)


METRIC_OPTIONS = (
    click.option(
        "-m",
        "--metrics",
        multiple=True,
        metavar="NAMES",
        shell_complete=complete_metrics,
        help="Metrics, separated by commas; may be repeated.",
    ),
    argument("k", "-k", names=["cutoffs"], callback=_read_cutoffs, multiple=True, metavar="K,K,..."),
    argument("like", metavar="TOOL", shell_complete=complete_tools),
)


def _column_options(more: str = "", *, multiple: bool = False) -> tuple[Callable[..., Any], ...]:
    """Return the options that name columns; with `multiple`, those of scores may be repeated, which `more` explains."""
    return (
        column("user", multiple=True),
        *map(column, ("item", "rank")),
        column("score", more=more, multiple=multiple),
        *map(column, ("gain", "label", "propensity")),
        column("logged_rank", "--logged-rank-col"),
        column("subtopic"),
        argument("item_sep", metavar="CHAR"),
        click.option(
            "--target-col",
            metavar="NAME",
            help="Column of true ratings in a LOG of ratings.  [with --prediction-col: target]",
        ),
        click.option(
            "--prediction-col",
            metavar="NAME",
            multiple=multiple,
            help=f"Column of predicted ratings in a LOG of ratings{more}.  [with --target-col: prediction]",
        ),
    )


COLUMN_OPTIONS = _column_options()
PAIRED_COLUMN_OPTIONS = (
    *_column_options("; several of one LOG are compared as systems", multiple=True),
    click.option(
        "--row-key",
        multiple=True,
        metavar="NAME",
        help="Column that identifies a row, to match the rows of several LOGs; may be repeated, for several columns "
        "together.  [default: rows match by their order]",
    ),
)
WEIGHT = (column("sample_weight", "--weight-col"),)
ROW_GROUPS = (argument("row_by", multiple=True, metavar="NAME"),)
GROUPS = (
    argument("by", multiple=True, metavar="NAME"),
    argument("users", type=click.Path(), metavar="FILE"),
)
ITEM_OPTIONS = (
    argument("n_users", type=click.IntRange(min=1), metavar="N"),
    *map(argument, ITEM_POLICIES),
)
MODEL_OPTIONS = tuple(
    click.option(
        f"--{side}-factors",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help=f"Factors of {side}s: .npy, .npz (factors, ids, bias) or Parquet (a column of ids, one of lists).",
    )
    for side in ("user", "item")
)
SAMPLED_OPTIONS = (
    argument("sampled_from", type=click.IntRange(min=1), metavar="N"),
    argument("correct"),
)
DRAW_OPTIONS = (
    argument("negatives", type=click.IntRange(min=1), metavar="N"),
    argument(
        "seed", names=["sample_seed"], type=int, default=ARGUMENTS["seed"].default, show_default=True, metavar="S"
    ),
    argument("sample"),
)
INPUT_FORMAT = argument(
    "input_format",
    type=InputFormats(),
    default=ARGUMENTS["input_format"].default,
    show_default=True,
    callback=_read_format,
)
INPUT_OPTIONS = (
    INPUT_FORMAT,
    *(
        click.option(f"--{name}", metavar=metavar, is_eager=True, expose_value=False, callback=_keep_dialect, help=text)
        for name, metavar, text in (
            ("delimiter", "CHAR", "CSV: what separates values, \\t for tabs.  [default: as the header shows]"),
            ("quote", "CHAR", "CSV: what is around values; '' if quotes are characters like others."),
            ("escape", "CHAR", "CSV: what comes before a quote within a value, such as a backslash."),
            ("decimal", "CHAR", "CSV: the decimal point of numbers, a point or a comma."),
            ("encoding", "NAME", "CSV: the encoding.  [default: UTF-8, or UTF-16 with its mark]"),
        )
    ),
)
POLICIES = (
    *map(argument, ("ties", "no_truth", "no_recs", "one_class", "duplicates")),
    argument("min_gain", callback=_read_min_gain, metavar="GAIN"),
    argument("n_items", type=click.IntRange(min=1), metavar="N"),
    *(argument(name, type=click.Path(), metavar="FILE") for name in FILES_OF_LISTS),
    argument("examination", callback=_read_curve, metavar="P,P,..."),
    *INPUT_OPTIONS,
)


def output_options(what: str) -> tuple[Callable[..., Any], ...]:
    """Return the options for where a result goes and in which format."""
    printed = [name for name in FORMATS_OF[what] if name != SAVED]
    return (
        click.option(
            "--format",
            "format_",
            type=click.Choice(printed),
            help="Format of the result.  [default: from the ending of -o, else table]",
        ),
        click.option(
            "-o",
            "--output",
            type=LocalPath(),
            callback=_read_output,
            metavar="FILE",
            help=f"Write the result to FILE, in the format of its ending: {', '.join(endings_of(what))}; - is "
            "standard output.",
        ),
    )


HTML = (
    click.option(
        "--html",
        type=LocalPath(),
        metavar="FILE",
        help="Also write an HTML page with tables, charts and definitions.",
    ),
    click.option("--title", metavar="TEXT", help="Title of the HTML page or of the Markdown."),
    click.option(
        "--about",
        multiple=True,
        callback=_read_facts,
        metavar="NAME=TEXT",
        help='Fact at the head of the HTML page, such as "data=MovieLens 25M"; may be repeated. The page also has '
        "the date, which date=TEXT replaces, and the names of the files.",
    ),
)
PAPER = (
    click.option(
        "--paper",
        is_flag=True,
        help="Write Markdown or LaTeX as one table for a paper, with bold numbers and a caption.",
    ),
)
FAIL_UNDER = (
    click.option(
        "--fail-under",
        callback=_read_thresholds,
        multiple=True,
        metavar="METRIC=NUMBER",
        help="Exit with 1 if the mean is below NUMBER; may be repeated. Not for metrics with a target or where lower "
        "is better.",
        shell_complete=complete_metrics,
    ),
)
MORE_OUTPUT = (
    click.option(
        "--save",
        type=LocalPath(),
        metavar="FILE",
        help="Also save the report, with values per user, for fastrec compare, fastrec report and fastrec.load.",
    ),
    click.option(
        "--per-user",
        type=LocalPath(),
        metavar="FILE",
        help="Also write the values per user: .csv, .parquet, or .trec, as trec_eval -q does. Those of gini, "
        "shannon_entropy and personalization are the metric plus the effect of the user's list.",
    ),
    click.option(
        "--curves",
        type=LocalPath(),
        metavar="FILE",
        help="Also write the ROC and precision-recall curves of LOG: .csv or .json.",
    ),
)
_MEMORY, _MEMORY_OF_MODELS = (
    argument("memory", more=more, callback=_read_size, metavar="SIZE") for more in ("", "; with factors 512 MiB")
)
_MORE_RESOURCES = (
    argument(
        "temp_directory",
        "--temp-dir",
        type=LocalPath(exists=True, file_okay=False, writable=True),
        metavar="DIR",
    ),
    argument("n_threads", "--threads", type=click.IntRange(min=1), metavar="N"),
)
RESOURCES = (_MEMORY, *_MORE_RESOURCES)
RESOURCES_WITH_MODELS = (_MEMORY_OF_MODELS, *_MORE_RESOURCES)
RESOURCES_IN_MEMORY = (_MEMORY_OF_MODELS, *_MORE_RESOURCES[1:])


def with_options(*groups: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Return a decorator that adds these options to a command, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def choose_format(options: dict[str, Any], what: str) -> None:
    """Set the output format; warn if it has no title."""
    options["format_"] = format_of(options, what)
    if options.get("paper") and options["format_"] not in OF_PAPERS:
        raise click.UsageError("--paper is for Markdown and LaTeX: add -o table.md, -o table.tex or --format md")
    if options.get("title") is not None and options["html"] is None and options["format_"] not in TITLED:
        say("fastrec: --title has no effect: only pages and Markdown have a title (--html page.html, -o page.md)")
    if options.get("about") and options["html"] is None and options["format_"] != "html":
        say("fastrec: --about has no effect: only pages have facts (--html page.html, -o page.html)")


def take_policies(ctx: click.Context, options: dict[str, Any]) -> None:
    """Set the policies of the tool in --like, except those that the command line gives."""
    from fastrec.metrics.recipes import find_recipe

    if ctx.get_parameter_source("no_recs") is not ParameterSource.COMMANDLINE:
        options["no_recs"] = None  # each metric has its default
    if options["like"] is not None:
        policies = find_recipe(options["like"]).policies
        options |= {
            name: policy
            for name, policy in policies.items()
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        }


def resources_of(options: dict[str, Any], watch: Watch | None = None) -> Resources:
    """Return how options say that files are read."""
    from fastrec.files.resources import Resources

    found = Resources(options["memory"], options.get("temp_dir"), options["threads"])
    found = found._replace(input_format=options.get("input_format", found.input_format))
    return found if watch is None else found._replace(watch=watch)


def sampling_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments about sampled lists that options give."""
    return {name: options[option] for name, option in OF_SAMPLES.items() if option in options}


def names_of_metrics(options: dict[str, Any]) -> list[str]:
    """Return the metrics of -m as strings."""
    from fastrec.metrics.spelling import split_outside_brackets

    return [name for text in options["metrics"] for name in split_outside_brackets(text)]


def planned(options: dict[str, Any], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """Return the metrics to compute, by name. `usual` is the defaults of a log, None for lists.

    Unknown names and thresholds on other metrics fail here, before any file is read.
    """
    from fastrec.metrics.declaration import LISTS

    names = names_of_metrics(options)
    if options["metrics"] and not names:
        raise click.UsageError("-m names no metric")
    named = translated(options, names, usual)
    lists = [name for name, call in named.items() if call.metric.family is LISTS]
    if options["weight_col"] is not None and lists:
        raise click.UsageError(
            f"--weight-col weighs rows, but metrics of lists have no weights of rows: leave out {lists[0]}"
        )
    check_thresholds(options["fail_under"], named)
    return named


def translated(options: dict[str, Any], names: list[str], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """Return the metrics by name at all cut-offs, with names of fastrec or of the tool in --like."""
    from fastrec.metrics.calls import expand
    from fastrec.metrics.declaration import LISTS, ROWS
    from fastrec.metrics.recipes import find_recipe

    cutoffs = options["cutoffs"] or None
    if options["like"] is None:
        return {call.text: call for call in expand(names or None, cutoffs, LISTS if usual is None else ROWS, usual)}
    kind = "lists" if usual is None else "rows"
    return find_recipe(options["like"]).translate(names or None, cutoffs, kind, options["min_gain"])


def check_named(option: str, metrics: Iterable[str], named: dict[str, Call]) -> None:
    """Reject an option that names a metric which is not evaluated."""
    from fastrec.metrics.calls import parse

    known = [call.text for call in named.values()]
    for metric in metrics:
        if metric not in named and parse(metric).text not in known:
            raise click.UsageError(f"{option} {metric}: the metric is not evaluated, only {some_names(list(named))}")


def check_thresholds(thresholds: Sequence[_Threshold], named: dict[str, Call]) -> None:
    """Reject a threshold for a metric that is not evaluated, or that is not better when higher."""
    from fastrec.metrics.calls import parse

    metrics = [threshold.metric for threshold in thresholds]
    check_named("--fail-under", metrics, named)
    for metric in metrics:
        refuse_floor(metric, named.get(metric) or parse(metric))


def refuse_floor(metric: str, call: Call | None) -> None:
    """Reject a floor for an error or for a metric with a target: it could pass the worse model."""
    if call is not None and call.metric.direction.kind in ("lower", "target"):
        raise click.UsageError(
            f"--fail-under {metric}: {call.metric.direction.words} is better, so a floor may fail the better model; "
            "use fastrec compare --fail-if-worse"
        )


def missed_floors(report: Report, thresholds: Sequence[_Threshold]) -> int:
    """Return 1 if a mean is absent or below its threshold, else 0; print a line for each."""
    code = 0
    for threshold in thresholds:
        mean = report[threshold.metric]
        if not mean >= threshold.minimum:
            found = "has no value" if math.isnan(mean) else f"= {mean!r}"
            say(f"fastrec: {threshold.metric} {found}, expected at least {threshold.minimum!r}")
            code = 1
    return code
