"""The command line: arguments in, text out. `fastrec.evaluate` and `fastrec.evaluate_scores` compute.

Results go to standard output; progress, warnings and errors to standard error. The exit code is 0, or 1 when
a `--fail-under` is not met, or 2 for wrong usage and bad data (one line, no traceback). Whatever is slow to
import is imported inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import json
import math
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec._version import __version__
from fastrec.checks import some_names
from fastrec.cli.completion import SHELLS, complete_metrics, complete_systems, complete_tools, script
from fastrec.cli.draw import draw_demo, draw_metrics, draw_one_metric
from fastrec.cli.output import (
    FORMATS_OF,
    SAVED,
    TITLED,
    check_outputs,
    console,
    csv_text,
    emit,
    endings_of,
    format_of,
    save_report,
    write_comparison,
    write_explanation,
    write_report,
)
from fastrec.cli.standard_input import Inputs, open_inputs
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, cut_line, one_line
from fastrec.files.formats.recognise import FORMATS
from fastrec.files.paths import DATA_ENDINGS
from fastrec.metrics.declaration import NO_RECS_CHOICES, NO_TRUTH_CHOICES
from fastrec.metrics.directions import Direction
from fastrec.report.report import is_saved, load, reword
from fastrec.runtime.extras import require
from fastrec.runtime.limits import NO_MEMORY
from fastrec.runtime.outputs import atomic_write
from fastrec.runtime.signals import end_on_signals, exit_code, undone_by
from fastrec.show.terminal import wrap
from fastrec.show.views import Gap, known_call, shown_difference

if TYPE_CHECKING:
    from rich.console import Console

    from fastrec.comparison.comparison import Comparison, ComparisonRow
    from fastrec.explanation.explanation import Explanation
    from fastrec.files.job import Evaluated
    from fastrec.files.resources import Resources
    from fastrec.files.tables import ScoreColumns
    from fastrec.metrics.declaration import Call
    from fastrec.report.report import Report

PIPE_CLOSED = 141
HANG = "  "  # of the second and later lines of a message in a terminal
REPORT_ENDINGS = (f".{SAVED}", ".npz")
NARROW = 60  # columns; in fewer, progress has no times and no bar
PASSED_ON = ("min_gain", "n_items", "ties", "no_truth")
OF_LISTS = ("rank_col", "gain_col", "no_recs", "duplicates", "exclude")
OF_LOGS = ("label_col", "target_col", "prediction_col", "weight_col", "one_class", "curves")
OF_REPORTS = (  # options of compare that make sense for reports that were saved
    *("systems", "baseline", "test", "correction", "level", "rounds", "seed", "missing", "fail_if_worse", "metrics"),
    *("format_", "output", "html", "title", "memory", "temp_dir", "threads"),
)
OF_ROLES = {  # what the columns hold that an option names
    "user": "users",
    "item": "items",
    "rank": "ranks",
    "score": "scores",
    "gain": "gains",
    "target": "true ratings",
    "prediction": "predicted ratings",
    "weight": "weights",
}
RATING_METRICS = ("mae", "rmse", "mse")
COLUMNS = {"item": "item_col", "rank": "rank_col", "score": "score_col", "gain": "gain_col", "label": "label_col"}
ARGUMENTS = {  # of `evaluate_files`: the options, as click names them, that say the same
    **COLUMNS,
    "sample_weight": "weight_col",
    "n_threads": "threads",
    "temp_directory": "temp_dir",
    **{name: name for name in (*PASSED_ON, *OF_LISTS, *OF_LOGS, "input_format", "memory") if "_col" not in name},
}
OPTIONS = ARGUMENTS | {  # arguments of any call
    "user": "user_col",
    "n_rounds": "rounds",
    **{name: name for name in ("like", "by", "users", "metrics", "missing", "level", "seed", "baseline", "test")},
}
QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
IN_PYTHON = re.compile(  # arguments as the library writes them; a quoted text before them may be the user's
    rf"""
    (?<!\w)(?P<text>{QUOTED})
    | ^(?P<subject>{"|".join(OPTIONS)})(?=[ ]must[ ])
    | ^(?P<cutoff>k=)(?=\d+[ ]has[ ]no[ ]effect)
    | (?<![\w.])(?P<argument>{"|".join(OPTIONS)})=
      (?P<value>{QUOTED}(?:(?:,[ ]|[ ]or[ ]){QUOTED})*|\.\.\.|[\d.]+(?=[ ])|(?=[ ,]))(?![/\w])
    | (?P<call>fastrec\.catalogue\(\))
    | (?P<names>:[ ]list\(report\)\))
    """,
    re.VERBOSE,
)


class _Program(click.Group):
    """A group whose every error is one line on standard error and an exit code, never a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run and exit, as click's own `main` does."""
        sys.exit(self._run(*args, **extra | {"standalone_mode": False}) or 0)

    def _run(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            return _fail(error.format_message())
        except FastrecError as error:  # before OSError, which a missing file is too
            return _fail(str(error))
        except BrokenPipeError:
            _abandon(sys.stdout)
            return PIPE_CLOSED
        except OSError as error:
            _abandon(sys.stdout)
            reason = error.strerror or str(error)
            return _fail(reason if not error.filename else f"{error.filename}: {reason}")
        except MemoryError as error:
            return _fail(f"not enough memory: {str(error) or NO_MEMORY}")
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors that click would turn into something else become ours here."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(exit_code()) from None


def _fail(message: str) -> int:
    _say(f"fastrec: error: {cut_line(_in_options(message))}")
    return 2


def _warn(message: str) -> None:
    _say(f"fastrec: warning: {one_line(_in_options(message))}")


def _in_options(message: str) -> str:
    """A message of the library, with options of the command in place of arguments of Python."""
    return IN_PYTHON.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    """`ties='input' or 'worst'` as --ties input or worst; a text in quotes alone as it is."""
    fixed = {"cutoff": "-k ", "call": "fastrec metrics", "names": ")", "text": found["text"]}
    if found.lastgroup in fixed:
        return str(fixed[found.lastgroup])
    argument, value = found["subject"] or found["argument"], found["value"]
    if value in (None, "", "..."):
        return _flag(argument)
    plain = re.sub(QUOTED, lambda quoted: quoted[0][1:-1], value)
    return f"{_flag(argument)} {shlex.quote(plain) if argument in COLUMNS else plain}"


def _flag(argument: str) -> str:
    return f"--{OPTIONS[argument].replace('_', '-')}"


def _say(text: str) -> None:
    """A line on standard error, as wide as a terminal. That it cannot be written is no reason for another exit code."""
    try:
        lines = wrap(text, shutil.get_terminal_size().columns, HANG) if sys.stderr.isatty() else [text]
        click.echo("\n".join(lines), err=True)
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: IO[str]) -> None:
    """Nobody reads on: let the interpreter's last flush go nowhere instead of failing."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def main() -> None:
    """Entry point of the `fastrec` command."""
    warnings.showwarning = lambda message, *_, **__: _warn(str(message))
    if hasattr(sys.stdout, "reconfigure"):  # where a sign cannot be shown, "?" is better than an error
        sys.stdout.reconfigure(errors="replace")
    end_on_signals()
    os.environ.setdefault("FASTREC_NOTICE", "1")  # compilation is told of where stderr is no terminal, too
    program(prog_name="fastrec")


@click.group(cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="fastrec %(version)s")
@click.pass_context
def program(ctx: click.Context, /) -> None:
    """Exact offline evaluation of recommenders, at memory speed."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


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


def _read_systems(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
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


_METRICS = (
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
_COLUMNS = (
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
_WEIGHT = (click.option("--weight-col", metavar="NAME", help="Column of weights of rows in LOG."),)
_GROUPS = (
    click.option("--by", multiple=True, metavar="NAME", help="Also by the values of this column; may be repeated."),
    click.option("--users", type=click.Path(), metavar="FILE", help="Users with columns for --by."),
)
_POLICIES = (
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


def _output(what: str) -> tuple[Callable[..., Any], ...]:
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


_HTML = (
    click.option(
        "--html",
        type=click.Path(),
        metavar="FILE",
        help="Also write a page for people: tables, charts, definitions.",
    ),
    click.option("--title", metavar="TEXT", help="Title of the page, or of the result in Markdown."),
)
_FAIL_UNDER = (
    click.option(
        "--fail-under",
        callback=_read_thresholds,
        multiple=True,
        metavar="METRIC=NUMBER",
        help="Exit with 1 if the mean is below; not for metrics of which lower is better; may be repeated.",
        shell_complete=complete_metrics,
    ),
)
_MORE_OUTPUT = (
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
_RESOURCES = (
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


def _with_options(*groups: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """A decorator that gives a command these options, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


@program.command()
@click.argument("recs", type=click.Path(), metavar="RECS|LOG")
@click.argument("truth", type=click.Path(), required=False)
@_with_options(_METRICS, _COLUMNS, _WEIGHT, _GROUPS, _POLICIES)
@_with_options(_output("report"), _HTML, _MORE_OUTPUT, _FAIL_UNDER, _RESOURCES)
@click.pass_context
def evaluate(ctx: click.Context, /, recs: str, truth: str | None, **options: Any) -> int:
    """Compare the lists in RECS with what is relevant in TRUTH; or evaluate a LOG.

    RECS and TRUTH have one row per user and item. A list is ordered by the rank column, else by the score
    column, else as its rows stand in the file. A LOG has one row per impression, with a label and a score, or per
    rating, with what it is and what was predicted; users are optional.

    Files are Parquet, CSV, JSON lines or TREC (a run and judgements). A folder, or a pattern such as
    'logs/*.parquet', is read as one file; folders named as date=2024-01-01 in it are columns too; - is standard
    input. A TREC run is ordered by its scores; --ties id_desc --no-truth judged --no-recs skip is what trec_eval
    does.

    \b
    fastrec evaluate recs.parquet truth.parquet -m ndcg,recall -k 5,10
    fastrec evaluate recs.csv truth.csv -m "ndcg(gain=exp2)@10" -o report.html
    zcat recs.csv.gz | fastrec evaluate - truth.csv --save monday.fastrec
    fastrec evaluate log.parquet --label-col clicked -m auc,gauc,ndcg@10
    fastrec evaluate ratings.csv --target-col stars --prediction-col guess
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    _check_kind(ctx, is_log=truth is None)
    _take_policies(ctx, options)
    _choose_format(options, "report")
    given = {"RECS" if truth is not None else "LOG": recs, "TRUTH": truth}
    with _open(given, options) as inputs:
        recs_file, truth_file = inputs.paths.values()
        result = _evaluate_any(recs_file, truth_file, options, per_user=_keeps_users(options))
        reword(result.report, inputs.shown)
        if options["per_user"] is not None:
            _write_per_user(options["per_user"], result)
        curves, lacking = result.curves or ("", ())
        if options["curves"] is not None:
            emit(curves, options["curves"])
        _write_report(result.report, options)
        for warning in (*result.report.warnings, *map(inputs.shown, lacking)):
            _warn(warning)
    return _missed(result.report, options["fail_under"])


def _write_report(report: Report, options: dict[str, Any]) -> None:
    """Save the report in the words of the library, which `load` gives back, and print it in those of the command."""
    save_report(report, options)
    reword(report, _in_options)
    write_report(report, options)


def _choose_format(options: dict[str, Any], what: str) -> None:
    """Set the output format; warn if it has no title."""
    options["format_"] = format_of(options, what)
    if options.get("title") is not None and options["html"] is None and options["format_"] not in TITLED:
        _say("fastrec: --title is not used: only pages and Markdown have a title (--html page.html, -o page.md)")


@contextlib.contextmanager
def _open(given: dict[str, str | None], options: dict[str, Any]) -> Iterator[Inputs]:
    """The files that are given, and of the options those of users and seen items; any one may be standard input."""
    named = {f"--{name}": options[name] for name in ("exclude", "users") if options.get(name) is not None}
    with open_inputs(given | named, options["temp_dir"]) as inputs:
        options |= {name.removeprefix("--"): inputs.paths.pop(name) for name in named}
        yield inputs


def _evaluate_any(recs: str | None, truth: str | None, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    assert recs is not None
    for path in (recs, truth):
        if path is not None and is_saved(path):
            raise click.UsageError(f"{path} is a saved report, not rows: fastrec report and fastrec compare read it")
    if truth is None:
        return _evaluate_log(recs, options, per_user=per_user)
    return _evaluate_lists(recs, truth, options, per_user=per_user)


def _keeps_users(options: dict[str, Any]) -> bool:
    """Whether the report is to have the values of users, where rows belong to users."""
    is_kept = options["save"] is not None or options["format_"] == SAVED
    if is_kept and len(options["user_col"]) > 1:
        raise click.UsageError("users of several --user-col cannot be saved: make one column of them")
    return is_kept or options["per_user"] is not None


def _check_kind(ctx: click.Context, *, is_log: bool) -> None:
    """Options of lists have no meaning for a log, nor those of a log for lists."""
    others, where = (OF_LISTS, "lists: give TRUTH") if is_log else (OF_LOGS, "a LOG: leave out TRUTH")
    for param in ctx.command.params:
        if param.name in others and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} is for {where}")


def _take_policies(ctx: click.Context, options: dict[str, Any]) -> None:
    """The policies of the tool, where the command does not say them."""
    from fastrec.metrics.recipes import find_recipe

    if options["like"] is not None:
        policies = find_recipe(options["like"]).policies
        options |= {
            name: policy
            for name, policy in policies.items()
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        }


def _evaluate_lists(recs: str, truth: str, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec.evaluation.lists import Evaluator
    from fastrec.files.lists import evaluate_lists
    from fastrec.files.tables import Columns

    named = _plan(options, None)
    for call in named.values():
        if call.metric.kind != "ranking":
            raise click.UsageError(f"{call.text} is a metric of scored rows: give a LOG and leave out TRUTH")
    users = options["user_col"] or ("user_id",)
    if len(users) > 1:
        raise click.UsageError("several --user-col are for a LOG: leave out TRUTH")
    check_outputs([recs, truth, options["exclude"], options["users"]], options)
    columns = Columns(
        user=users[0],
        item=_column(options, "item_col", "item_id"),
        rank=options["rank_col"],
        score=options["score_col"],
        gain=options["gain_col"],
        by=tuple(dict.fromkeys(options["by"])),
    )
    with _progress() as watch, _silent(), _words_of_options():
        watch("reading")
        evaluator = Evaluator(
            list(named),
            like=options["like"],
            per_user=per_user,
            n_threads=options["threads"],
            **{name: options[name] for name in (*PASSED_ON, "no_recs", "duplicates")},
        )
        more = {"seen": options["exclude"], "users": options["users"]}
        paths = {"recs": recs, "truth": truth} | {name: path for name, path in more.items() if path is not None}
        resources, format_ = _resources(options), options["input_format"]
        return evaluate_lists(evaluator, paths, columns, resources, watch, input_format=format_)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """The report holds its warnings too; they are shown after the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FastrecWarning)
        yield


def _resources(options: dict[str, Any]) -> Resources:
    from fastrec.files.resources import Resources

    return Resources(options["memory"], options["temp_dir"], options["threads"])


def _evaluate_log(path: str, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec.evaluation.rows import ScoreEvaluator
    from fastrec.files.rows import evaluate_log

    named = _plan(options, _usual_metrics(options))
    calls = list(named.values())
    check_outputs([path, options["users"]], options)

    def make_evaluator(has_users: bool) -> ScoreEvaluator:  # noqa: FBT001 - called by position
        all_of_them = bool(options["metrics"]) or has_users
        asked = {name: call for name, call in named.items() if all_of_them or not call.needs_users}
        _check_thresholds(options["fail_under"], asked)
        return ScoreEvaluator(
            list(asked),
            like=options["like"],
            per_user=has_users and per_user,
            n_threads=options["threads"],
            **{name: options[name] for name in (*PASSED_ON, "one_class")},
        )

    def curves(labels: Any, scores: Any, weights: Any) -> tuple[str, tuple[str, ...]]:
        return _curves_of(path, labels, scores, weights, options)

    wanted = None if options["curves"] is None else curves
    with _progress() as watch, _silent(), _words_of_options(_hints_of_log(options, calls)):
        watch("reading")
        columns = _columns_of_log(options, calls)
        paths = {"log": path} | ({} if options["users"] is None else {"users": options["users"]})
        resources, format_ = _resources(options), options["input_format"]
        return evaluate_log(make_evaluator, paths, columns, resources, watch, wanted, input_format=format_)


def _usual_metrics(options: dict[str, Any]) -> tuple[str, ...]:
    """What is evaluated in a log if no metric is named; without users, less."""
    from fastrec.metrics.declaration import DEFAULT_SCORE_METRICS, parse

    if _has_ratings(options):
        return RATING_METRICS
    return tuple(
        name for name in DEFAULT_SCORE_METRICS if options["weight_col"] is None or parse(name).metric.kind == "scores"
    )


def _column(options: dict[str, Any], option: str, usual: str) -> str:
    """The column that an option names, the usual one without it. A name may be empty."""
    return usual if options[option] is None else str(options[option])


def _has_ratings(options: dict[str, Any]) -> bool:
    return options["target_col"] is not None or options["prediction_col"] is not None


def _needing_users(options: dict[str, Any], calls: list[Call]) -> list[str]:
    """What was asked for that needs users."""
    needing = [call.text for call in calls if options["metrics"] and call.needs_users]
    return needing + [name for name, value in (("--by", options["by"]), ("--per-user", options["per_user"])) if value]


def _columns_of_log(options: dict[str, Any], calls: list[Call]) -> ScoreColumns:
    """The columns that the metrics need."""
    from fastrec.files.tables import ScoreColumns

    ratings = _has_ratings(options)
    if ratings and (options["label_col"] is not None or options["score_col"] is not None):
        raise click.UsageError("a LOG has labels and scores, or targets and predictions: name columns of one kind")
    by_id = options["ties"] in ("id_asc", "id_desc")
    names = ("target", "prediction") if ratings else ("label", "score")
    label, score = (_column(options, f"{name}_col", name) for name in names)
    return ScoreColumns(
        label=label,
        score=score,
        ratings=ratings,
        users=tuple(dict.fromkeys(options["user_col"])) or (("user_id",) if _needing_users(options, calls) else None),
        item="item_id" if options["item_col"] is None and by_id else options["item_col"],
        weight=options["weight_col"],
        by=tuple(dict.fromkeys(options["by"])),
    )


@contextlib.contextmanager
def _words_of_options(more: Mapping[str, str] | None = None) -> Iterator[None]:
    """An error says which option names a column that is missing; `more` has other hints, by the role of the column."""
    from fastrec.files.tables import ColumnError

    try:
        yield
    except ColumnError as error:
        usual = f"--{error.role}-col names the column of {OF_ROLES[error.role]}" if error.role in OF_ROLES else ""
        hint = (more or {}).get(error.role) or usual
        raise InputError(f"{error}; {hint}" if hint else str(error)) from None
    except InputError as error:
        if "must be 0 or 1, found" not in str(error) or "min_gain" in str(error):
            raise
        raise InputError(f"{error}; --min-gain says from which label a row is positive") from None  # of --curves


def _hints_of_log(options: dict[str, Any], calls: list[Call]) -> dict[str, str]:
    """What to say where a column of a log is missing, by its role."""
    needing, ties = _needing_users(options, calls), options["ties"]
    truth = "--truth FILE" if click.get_current_context().info_name == "compare" else "a second file, TRUTH"
    return {
        "label": f"lists need {truth}; a log needs labels and scores (--label-col, --score-col), or true and "
        "predicted ratings (--target-col, --prediction-col)",
        "user": f"{needing[0]} needs users: --user-col names their column" if needing else "",
        "item": f"--ties {ties} needs items: --item-col names their column" if options["item_col"] is None else "",
        "by": "with several --user-col, each combination of their values is a user",
    }


def _curves_of(
    path: str, labels: Any, scores: Any, weights: Any, options: dict[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """The ROC and the precision-recall curve, thinned, as JSON or CSV; and what to warn of."""
    from fastrec.scored.curves import pr_curve, roc_curve

    labels = labels if options["min_gain"] is None else labels >= options["min_gain"]
    roc = roc_curve(labels, scores, sample_weight=weights, thin=True)
    pr = pr_curve(labels, scores, sample_weight=weights, thin=True)
    lacking = (f"{path}: rows of one class only, so --curves lack rates",) if math.isnan(roc.area) else ()
    limits = [*pr.thresholds, math.nan]  # the last point, without rows, has no threshold
    columns: dict[str, dict[str, Any]] = {
        "roc": {"threshold": roc.thresholds, "fpr": roc.fpr, "tpr": roc.tpr},
        "pr": {"threshold": limits, "recall": pr.recall, "precision": pr.precision},
    }
    if options["curves"].lower().endswith(".csv"):
        rows = (
            {"curve": curve} | dict(zip(values, map(float, point), strict=True))
            for curve, values in columns.items()
            for point in zip(*values.values(), strict=True)
        )
        return csv_text(["curve", "threshold", "fpr", "tpr", "recall", "precision"], rows), lacking
    document: dict[str, Any] = {"schema": 1, "fastrec": __version__}
    for (curve, values), area in zip(columns.items(), (roc.area, pr.area), strict=True):
        points = {name: [_json_number(value) for value in column] for name, column in values.items()}
        document[curve] = {"area": _json_number(area), **points}
    return json.dumps(document, allow_nan=False) + "\n", lacking


def _json_number(number: float) -> float | str | None:
    """As in the JSON of a report: NaN is null, an infinity a text."""
    if math.isfinite(number):
        return float(number)
    return None if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _names_of_metrics(options: dict[str, Any]) -> list[str]:
    from fastrec.metrics.declaration import split_outside_brackets

    return [name for text in options["metrics"] for name in split_outside_brackets(text)]


def _plan(options: dict[str, Any], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """The metrics to compute, by name: those of a log if some are usual there.

    Unknown names and thresholds on other metrics fail here, before any reading.
    """
    names = _names_of_metrics(options)
    if options["metrics"] and not names:
        raise click.UsageError("-m names no metric")
    named = _translate(options, names, usual)
    lists = [name for name, call in named.items() if call.metric.kind == "ranking"]
    if options["weight_col"] is not None and lists:
        raise click.UsageError(f"--weight-col weighs rows, which metrics of lists cannot: leave out {lists[0]}")
    _check_thresholds(options["fail_under"], named)
    return named


def _translate(options: dict[str, Any], names: list[str], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """The metrics that names stand for, as fastrec or a tool has them, at all cut-offs."""
    from fastrec.metrics.declaration import expand
    from fastrec.metrics.recipes import find_recipe

    cutoffs = options["cutoffs"] or None
    if options["like"] is None:
        return {call.text: call for call in expand(names or None, cutoffs, usual)}
    kind = "lists" if usual is None else "rows"
    return find_recipe(options["like"]).translate(names or None, cutoffs, kind, options["min_gain"])


def _check_named(option: str, metrics: Iterable[str], named: dict[str, Call]) -> None:
    """An option may name only metrics that are evaluated."""
    from fastrec.metrics.declaration import parse

    known = [call.text for call in named.values()]
    for metric in metrics:
        if metric not in named and parse(metric).text not in known:
            raise click.UsageError(f"{option} {metric}: not evaluated here; there is {some_names(list(named))}")


def _check_thresholds(thresholds: Sequence[_Threshold], named: dict[str, Call]) -> None:
    """A floor is for metrics that are evaluated, and not for errors."""
    from fastrec.metrics.declaration import parse

    metrics = [threshold.metric for threshold in thresholds]
    _check_named("--fail-under", metrics, named)
    for metric in metrics:
        _refuse_floor(metric, named.get(metric) or parse(metric))


def _refuse_floor(metric: str, call: Call | None) -> None:
    """A floor for an error, or for a metric with a target, may pass the worse model."""
    if call is not None and call.metric.direction.kind in ("lower", "target"):
        raise click.UsageError(
            f"--fail-under {metric}: {call.metric.direction.words} is better, so a floor may fail the better model; "
            "fastrec compare --fail-if-worse gates it"
        )


@contextlib.contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    """What is told the stage and, where they are known, rows done and all rows: a bar, if there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = console(sys.stderr)
    stage, pace = TextColumn("{task.description}"), TextColumn("{task.fields[pace]}")
    is_narrow = shown.width < NARROW
    between = () if is_narrow else (TimeElapsedColumn(), BarColumn(bar_width=None))
    columns = (SpinnerColumn(), stage, *between, pace)
    with Progress(*columns, console=shown, transient=True) as bar, undone_by(bar.stop):
        bar.add_task("", total=None, pace="")
        (task,) = bar.tasks

        def watch(stage: str, done: int = 0, total: int | None = None) -> None:
            if stage != task.description:
                bar.reset(task.id, total=total, description=stage, pace="")
            bar.update(task.id, completed=done)
            if total is not None:
                share, speed = f"{done / max(total, 1):.0%}", (task.speed, task.time_remaining)
                bar.update(task.id, pace=share if is_narrow else _pace(done, total, *speed))

        yield watch


def _pace(done: int, total: int, speed: float | None, left: float | None) -> str:
    """Rows and, where they are known, their number per second and the time left."""
    pace = f"{_short(done)} of {_short(total)} rows"
    if speed is not None and left is not None:
        pace += f", {_short(speed)}/s, {timedelta(seconds=math.ceil(left))} left"
    return pace


def _short(number: float) -> str:
    """Four digits at most, as in 12.3M."""
    from rich.filesize import pick_unit_and_suffix

    unit, letter = pick_unit_and_suffix(int(number), ["", "k", "M", "G"], 1000)
    return f"{number / unit:.{0 if unit == 1 else 1}f}{letter}"


def _missed(report: Report, thresholds: Sequence[_Threshold]) -> int:
    """1 if a mean is below its threshold (or there is no mean), with a line for each; else 0."""
    code = 0
    for threshold in thresholds:
        mean = report[threshold.metric]
        if not mean >= threshold.least:
            found = "has no value" if math.isnan(mean) else f"= {mean!r}"
            _say(f"fastrec: {threshold.metric} {found}, wanted at least {threshold.least!r}")
            code = 1
    return code


def _write_per_user(path: str, result: Evaluated) -> None:
    """One row per user: id, groups, and each metric's value, empty (null) where the user was not counted."""
    require("pyarrow", "cli", what="--per-user")
    import pyarrow as pa
    from pyarrow import csv as pc
    from pyarrow import parquet as pq

    columns = {**result.users, **result.groups}
    arrays = [pa.array(values) for values in columns.values()]
    arrays += [pa.array(values, from_pandas=True) for values in result.report.per_user.values()]
    # Not from a dict: a column to group by may have the name of a metric.
    table = pa.Table.from_arrays(arrays, names=[*columns, *result.report.per_user])
    with atomic_write(path) as stream:
        if path.lower().endswith(".csv"):
            pc.write_csv(table, stream)
        else:
            pq.write_table(table, stream)


@program.command()
@click.argument(
    "systems",
    nargs=-1,
    required=True,
    metavar="[NAME=]RECS|LOG ...",
    callback=_read_systems,
    shell_complete=complete_systems,
)
@click.option("--truth", type=click.Path(), metavar="TRUTH", help="What is relevant; without it, systems are LOGs.")
@click.option("--baseline", metavar="NAME", help="The system to compare with.  [default: every pair]")
@click.option(
    "--test",
    type=click.Choice(["randomization", "bootstrap", "t", "wilcoxon"]),
    default="randomization",
    show_default=True,
    help="Test of the mean difference over users.",
)
@click.option(
    "--correction",
    type=click.Choice(["holm", "bonferroni", "bh", "none"]),
    default="holm",
    show_default=True,
    help="For many comparisons.",
)
@click.option("--level", type=float, default=0.95, show_default=True, metavar="SHARE", help="Of intervals and tests.")
@click.option("--rounds", type=int, default=10_000, show_default=True, metavar="N", help="Of resampling.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="The same seed, the same numbers.")
@click.option(
    "--missing",
    type=click.Choice(["drop", "zero", "error"]),
    default="drop",
    show_default=True,
    help="Users counted for one system only.",
)
@click.option(
    "--fail-if-worse",
    multiple=True,
    metavar="METRIC",
    shell_complete=complete_metrics,
    help="Exit with 1 if a system is significantly worse than the baseline (of two systems, the first); may be "
    "repeated.",
)
@_with_options(_METRICS, _COLUMNS, _GROUPS, _POLICIES, _output("comparison"), _HTML, _RESOURCES)
@click.pass_context
def compare(ctx: click.Context, /, systems: dict[str, str], truth: str | None, **options: Any) -> int:
    """Weigh systems on the same users: which differences are real, for whom, by how much.

    Each system is a name and its file, read as in `fastrec evaluate`, or a report that --save kept; without NAME= it is
    called as its file. --by compares within groups of users too.

    \b
    fastrec compare a.parquet b.parquet --truth truth.parquet -m ndcg@10,mrr
    fastrec compare old=a.csv new=b.csv --truth t.csv --fail-if-worse ndcg@10
    fastrec compare log_a.csv log_b.csv -m "gauc(weight=equal)" -o report.html
    fastrec compare monday.fastrec today=recs.csv --truth t.csv -m ndcg@10
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    from fastrec.comparison.compare import compare
    from fastrec.report.report import check_resampling

    if len(systems) < 2:
        raise click.UsageError("compare needs two systems or more, as in old=a.parquet new=b.parquet")
    if options["fail_if_worse"] and options["baseline"] is None:
        if len(systems) > 2:
            raise click.UsageError(
                "--fail-if-worse needs --baseline, the system that the others must not be worse than"
            )
        options["baseline"] = next(iter(systems))
    if options["baseline"] not in (None, *systems):
        raise click.UsageError(f"--baseline {options['baseline']}: none of the systems {', '.join(systems)}")
    check_resampling(options["level"], options["rounds"], options["seed"])
    _choose_format(options, "comparison")
    with _open({**systems, "--truth": truth}, options) as inputs:
        truth, systems = inputs.paths.pop("--truth"), {name: str(path) for name, path in inputs.paths.items()}
        evaluated, wanted = _evaluate_systems(ctx, systems, truth, options)
        reports = {name: each.report for name, each in evaluated.items()}
        names = ("baseline", "test", "correction", "level", "seed", "missing")
        for report in reports.values():
            reword(report, inputs.shown)
        with _progress() as watch, _silent():
            progress = functools.partial(watch, "comparing")
            arguments = {name: options[name] for name in names} | {"n_rounds": options["rounds"]}
            found = compare(reports, metrics=wanted, n_threads=options["threads"], progress=progress, **arguments)
        worse = _worse(found, options["fail_if_worse"], next(iter(reports.values())))
        left_out = {metric: _in_options(why) for metric, why in found.left_out.items()}
        found = dataclasses.replace(found, left_out=left_out, warnings=tuple(map(_in_options, found.warnings)))
        write_comparison(found, reports, options)
        for warning in found.warnings:
            _warn(warning)
    for row in worse:
        gap = shown_difference(Gap(row.difference, row.low, row.high))[0]
        text = f"{row.system} is worse than {row.baseline}: {row.metric} {gap}"
        _say(one_line(f"fastrec: {text} {Direction(row.direction, row.target).of_difference}".rstrip()))
    return int(bool(worse))


def _evaluate_systems(
    ctx: click.Context, systems: dict[str, str], truth: str | None, options: dict[str, Any]
) -> tuple[dict[str, Evaluated], list[str] | None]:
    """Each system's report, loaded where it was saved, and the metrics to compare, None for all that they share."""
    from fastrec.files.job import Evaluated

    saved = [name for name, path in systems.items() if is_saved(path)]
    if len(saved) < len(systems):
        _check_kind(ctx, is_log=truth is None)
        _take_policies(ctx, options)
        options |= {"fail_under": (), "weight_col": None, "curves": None, "per_user": None}
        options["user_col"] = options["user_col"] or ("user_id",)  # in a LOG too: users are what is compared
        named = _plan(options, None if truth is not None else _usual_metrics(options))
        _check_named("--fail-if-worse", options["fail_if_worse"], named)
        wanted = list(named) if saved and options["metrics"] else None
    else:
        _refuse_evaluating(ctx)
        wanted = _names_of_metrics(options) or None
    inputs = (truth, options["exclude"], options["users"])
    check_outputs([*systems.values(), *inputs], options)
    evaluated = {}
    for name, path in systems.items():
        if name in saved:
            evaluated[name] = Evaluated(_load_values(path), {}, {})
            for metric in (*(wanted or ()), *options["fail_if_worse"]):
                evaluated[name].report.name_of(metric)
        else:
            evaluated[name] = _evaluate_any(path, truth, options | {"output": None}, per_user=True)
    return evaluated, wanted


def _refuse_evaluating(ctx: click.Context) -> None:
    """Reports that were saved are not evaluated again."""
    for param in ctx.command.params:
        if param.name not in OF_REPORTS and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} is for files to evaluate: these reports were saved")


def _load_values(path: str) -> Report:
    """A saved report with the values of its users."""
    report = load(path)
    if not report.has_values:
        raise InputError(f"{path}: the report has no values of users, which are compared: evaluate --save keeps them")
    return report


def _worse(found: Comparison, metrics: Sequence[str], report: Report) -> list[ComparisonRow]:
    """Significant changes for the worse, over all users."""
    names = [report.name_of(metric) for metric in metrics]
    for name in names:
        if name in found.left_out:
            raise click.UsageError(f"--fail-if-worse {name}: {found.left_out[name]}")
    for row in found.rows:
        if row.metric in names and row.direction == "none":
            raise click.UsageError(
                f"--fail-if-worse {row.metric}: neither higher nor lower values of it are declared better"
            )
        if row.metric in names and math.isnan(row.p_value):
            raise InputError(
                f"--fail-if-worse {row.metric}: {row.system} and {row.baseline} share {row.users} users, "
                "too few to tell"
            )
    return [row for row in found.rows if row.metric in names and row.verdict == "worse"]


@program.command()
@click.argument("file", type=click.Path())
@_with_options(_output("report"), _HTML, _FAIL_UNDER)
def report(file: str, **options: Any) -> int:
    """Print a report that was saved.

    FILE is what --save, -o FILE.fastrec or Report.save wrote; - is standard input.

    \b
    fastrec report monday.fastrec
    fastrec report monday.fastrec -o monday.html --title "Monday's model"
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    _choose_format(options, "report")
    with open_inputs({"FILE": file}, None) as inputs:
        path = str(inputs.paths["FILE"])
        check_outputs([path], options)
        found = load(path)
    for threshold in options["fail_under"]:
        _refuse_floor(threshold.metric, known_call(found.name_of(threshold.metric)))
    _write_report(found, options)
    for warning in found.warnings:
        _warn(warning)
    return _missed(found, options["fail_under"])


@program.command()
@click.argument("metric", shell_complete=complete_metrics)
@click.argument("recs", type=click.Path(), required=False, metavar="[RECS|LOG]")
@click.argument("truth", type=click.Path(), required=False)
@click.option(
    "--like",
    multiple=True,
    metavar="TOOL",
    help="A tool; may be repeated.  [default: all that have it]",
    shell_complete=complete_tools,
)
@click.option(
    "--show-users",
    type=click.IntRange(min=0),
    metavar="N",
    help="Users to show per tool.  [default: 5 with --like]",
)
@_with_options(_COLUMNS, _WEIGHT, _POLICIES, _output("explanation"), _RESOURCES)
@click.pass_context
def explain(ctx: click.Context, /, metric: str, recs: str | None, truth: str | None, **options: Any) -> None:
    """Say why other tools give another number for METRIC.

    Their definitions beside ours; on the lists in RECS, or a LOG, the numbers too, what each option that differs does,
    and the users that make the difference. A policy that is given holds for all sides.

    \b
    fastrec explain ndcg@10
    fastrec explain ndcg@10 --like recbole --like rectools
    fastrec explain map@10 recs.parquet truth.parquet --like trec_eval
    fastrec explain gauc log.parquet --label-col clicked --like torchmetrics
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    from fastrec.explanation.explain import explain

    _choose_format(options, "explanation")
    if recs is not None:
        _check_kind(ctx, is_log=truth is None)
        explain(metric, like=options["like"] or None)  # a typo is found before any file is read
    with _open({"LOG" if truth is None else "RECS": recs, "TRUTH": truth}, options) as inputs:
        recs, truth = inputs.paths.values()
        check_outputs([recs, truth, options["exclude"]], options)
        arguments = {} if recs is None else _arguments_of_files(ctx, options, is_log=truth is None)
        with _progress() as watch, _silent():
            if recs is not None:
                watch("reading")
                arguments["progress"] = functools.partial(watch, "evaluating")
            why = explain(metric, recs, truth, like=options["like"] or None, n_users=options["show_users"], **arguments)
        why = _reworded(why, lambda text: _in_options(inputs.shown(text)))
    write_explanation(why, options)


def _reworded(why: Explanation, change: Callable[[str], str]) -> Explanation:
    """The explanation with other words in its warnings and in why there is no number."""
    sides = {tool: dataclasses.replace(side, problem=change(side.problem)) for tool, side in why.sides.items()}
    return dataclasses.replace(why, sides=sides, warnings=tuple(map(change, why.warnings)))


def _arguments_of_files(ctx: click.Context, options: dict[str, Any], *, is_log: bool) -> dict[str, Any]:
    """Arguments of `evaluate_files` for the options that were given."""
    if _has_ratings(options):
        options |= {
            "label_col": _column(options, "target_col", "target"),
            "score_col": _column(options, "prediction_col", "prediction"),
        }
    given = {
        name: options[option]
        for name, option in ARGUMENTS.items()
        if options.get(option) is not None and ctx.get_parameter_source(option) is not ParameterSource.DEFAULT
    }
    users = options["user_col"]
    return given | ({"user": (list(users) if is_log else users[0])} if users else {})


@program.command()
@click.argument("name", required=False, shell_complete=complete_metrics)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def metrics(name: str | None, format_: str) -> None:
    """List the metrics, or tell everything about one.

    A name that lists and scored rows share, such as precision, is told about twice.
    """
    from fastrec.metrics.declaration import catalogue, parse

    known = catalogue()
    if name is not None:
        found = [metric for metric in known if metric["name"] == name]
        if not found:
            # Asking for "ndcg(gain=exp2)@10" is asking for ndcg; what is not known fails with a suggestion.
            asked = parse(name).metric
            found = [metric for metric in known if (metric["name"], metric["kind"]) == (asked.name, asked.kind)]
        known = found
    if format_ == "json":
        shown = known[0] if name is not None and len(known) == 1 else known
        emit(json.dumps(shown, indent=2, ensure_ascii=False) + "\n", None)
    elif name is None:
        emit(lambda console: draw_metrics(console, known), None)
    else:
        emit(lambda console: _draw_each(console, known), None)


def _draw_each(console: Console, known: list[dict[str, Any]]) -> None:
    for n, metric in enumerate(known):
        if n:
            console.print()
        draw_one_metric(console, metric)


@program.command()
@click.option(
    "--users",
    type=click.IntRange(min=10),
    default=20_000,
    show_default=True,
    metavar="N",
    help="How many users.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="S",
    help="The same seed gives the same files.",
)
@click.option("-o", "--output", default="fastrec-demo", show_default=True, metavar="DIR", help="Folder for the files.")
def demo(users: int, seed: int, output: str) -> None:
    """Compare two recommenders on a made-up shop."""
    from fastrec.comparison.compare import compare
    from fastrec.demo import evaluate_demo, write_demo

    with _progress() as watch:
        watch("making up users, items and two recommenders")
        paths = write_demo(output, n_users=users, seed=seed)
        watch("evaluating both")
        reports = evaluate_demo(paths)
        watch("comparing")
        found = compare(reports, next(iter(reports)))
        found.to_html(os.path.join(output, "comparison.html"), title="Two recommenders of a made-up shop")
    emit(lambda console: draw_demo(console, reports, found, paths), None)


@program.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what a shell reads to complete commands, metrics and tools.

    \b
    fastrec completion bash > ~/.local/share/bash-completion/completions/fastrec
    fastrec completion fish > ~/.config/fish/completions/fastrec.fish
    echo 'eval "$(fastrec completion zsh)"' >> ~/.zshrc
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    emit(f"{script(program, shell).rstrip()}\n", None)


@program.command()
@click.argument("what", type=click.Choice(["lists", "scores", "all"]), default="all")
def warmup(what: str) -> None:
    """Compile what the first evaluation needs: of recommended lists, of scored rows, or all."""
    from fastrec import precompile

    with _progress() as watch:
        precompile.warmup(what, progress=lambda done, total: watch(f"compiling, {done} of {total} done"))
