"""The command line: arguments in, text out. `fastrec.evaluate` and `fastrec.evaluate_scores` compute.

Results go to standard output; progress, warnings and errors to standard error. The exit code is 0, or 1 when
a `--fail-under` is not met, or 2 for wrong usage and bad data (one line, no traceback). Whatever is slow to
import is imported inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import math
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from fastrec import formats, pages
from fastrec._version import __version__
from fastrec.endings import atomic_write, end_on_signals, exit_code, undone_by
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, one_line, require, shown_signs, some_names
from fastrec.pages import DASH
from fastrec.views import Gap, figures, order_of_lists, p_value, shown_difference, span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fastrec.comparison import Comparison, ComparisonRow
    from fastrec.explanation import Explanation
    from fastrec.files import Evaluated, Resources, ScoreColumns
    from fastrec.registry import Call
    from fastrec.report import Estimate, Report

PIPE_CLOSED = 141
PASSED_ON = ("min_gain", "n_items", "ties", "no_truth")
OF_LISTS = ("rank_col", "gain_col", "no_recs", "duplicates", "exclude")
OF_LOGS = ("label_col", "target_col", "prediction_col", "weight_col", "one_class", "curves")
RATING_METRICS = ("mae", "rmse", "mse")
KINDS = {"ranking": "lists", "scores": "scored rows"}
FORMATS = ("table", "json", "csv", "md")
WIDTH = 80


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
        except BrokenPipeError:
            _abandon(sys.stdout)
            return PIPE_CLOSED
        except OSError as error:
            _abandon(sys.stdout)
            reason = error.strerror or str(error)
            return _fail(reason if not error.filename else f"{error.filename}: {reason}")
        except FastrecError as error:
            return _fail(str(error))
        except MemoryError as error:
            return _fail(f"not enough memory: {error}")
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors that click would turn into something else become ours here."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(exit_code()) from None


def _fail(message: str) -> int:
    _say(f"fastrec: error: {one_line(message)}")
    return 2


def _warn(message: str) -> None:
    _say(f"fastrec: warning: {one_line(message)}")


def _say(line: str) -> None:
    """A line on standard error. That it cannot be written there is no reason for another exit code."""
    try:
        click.echo(line, err=True)
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
    program(prog_name="fastrec")


@click.group(cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="fastrec %(version)s")
@click.pass_context
def program(ctx: click.Context, /) -> None:
    """Exact offline evaluation of recommenders, at memory speed."""
    if ctx.invoked_subcommand is None:
        _say(ctx.get_help())
        ctx.exit(2)


@dataclass(frozen=True)
class _Threshold:
    metric: str
    least: float


def _read_cutoffs(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[int]:
    """Whole numbers of at least 1, separated by commas."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part) > 0):
            raise click.BadParameter(f"{part!r}: whole numbers of at least 1 are wanted, as in 5,10,20")
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
    """NAME=FILE, each name once."""
    systems: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path:
            raise click.BadParameter(f"{text!r}: a name and a file are wanted, as in new=recs.parquet")
        if name in systems:
            raise click.BadParameter(f"the name {name!r} stands twice")
        systems[name] = path
    return systems


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
    from fastrec.files import read_size

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
    click.option("--target-col", metavar="NAME", help="Column of true ratings in LOG.  [default: target]"),
    click.option("--prediction-col", metavar="NAME", help="Column of predicted ratings in LOG.  [default: prediction]"),
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
        type=click.Choice(["skip", "zero", "nan", "error", "judged"]),
        default="skip",
        show_default=True,
        help="Users without a relevant item.",
    ),
    click.option(
        "--no-recs",
        type=click.Choice(["zero", "skip", "nan", "error"]),
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
        type=click.Choice(formats.FORMATS),
        default="auto",
        show_default=True,
        help="Format of all files; auto: of each by how it begins.",
    ),
)
_OUTPUT = (
    click.option("--format", "format_", type=click.Choice(FORMATS), help="[default: by the ending of -o, else table]"),
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        metavar="FILE",
        help="Write the result there, not to standard output.",
    ),
)
_HTML = (
    click.option(
        "--html",
        type=click.Path(),
        metavar="FILE",
        help="Also write a page for people: tables, charts, definitions.",
    ),
)
_MORE_OUTPUT = (
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
    click.option(
        "--fail-under",
        callback=_read_thresholds,
        multiple=True,
        metavar="METRIC=NUMBER",
        help="Exit with 1 if the mean is below; may be repeated.",
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
@_with_options(_METRICS, _COLUMNS, _WEIGHT, _GROUPS, _POLICIES, _OUTPUT, _HTML, _MORE_OUTPUT, _RESOURCES)
@click.pass_context
def evaluate(ctx: click.Context, /, recs: str, truth: str | None, **options: Any) -> int:
    """Compare the lists in RECS with what is relevant in TRUTH; or evaluate a LOG.

    RECS and TRUTH have one row per user and item. A list is ordered by the rank column, else by the score
    column, else as its rows stand in the file. A LOG has one row per impression, with a label and a score, or per
    rating, with what it is and what was predicted; users are optional.

    Files are Parquet, CSV, JSON lines or TREC (a run and judgements). A folder, or a pattern such as
    'logs/*.parquet', is read as one file; folders named as date=2024-01-01 in it are columns too. A TREC run is
    ordered by its scores; --ties id_desc --no-recs skip is what trec_eval does.

    \b
    fastrec evaluate recs.parquet truth.parquet -m ndcg,recall -k 5,10
    fastrec evaluate recs.csv truth.csv -m "ndcg(gain=exp2)@10" --by country
    fastrec evaluate log.parquet --label-col clicked -m auc,gauc,ndcg@10
    fastrec evaluate ratings.csv --target-col stars --prediction-col guess
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    _check_kind(ctx, is_log=truth is None)
    _take_policies(ctx, options)
    result = _evaluate_any(recs, truth, options, per_user=options["per_user"] is not None)
    if options["per_user"] is not None:
        _write_per_user(options["per_user"], result)
    curves, lacking = result.curves or ("", ())
    if options["curves"] is not None:
        _emit(curves, options["curves"])
    if options["html"] is not None:
        result.report.to_html(options["html"])
    _emit(_render(result.report, _format_of(options["format_"], options["output"])), options["output"])
    for warning in (*result.report.warnings, *result.hints, *lacking):
        _warn(warning)
    return _missed(result.report, options["fail_under"])


def _evaluate_any(recs: str, truth: str | None, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    if truth is None:
        return _evaluate_log(recs, options, per_user=per_user)
    return _evaluate_lists(recs, truth, options, per_user=per_user)


def _check_kind(ctx: click.Context, *, is_log: bool) -> None:
    """Options of lists have no meaning for a log, nor those of a log for lists."""
    others, where = (OF_LISTS, "lists: give TRUTH") if is_log else (OF_LOGS, "a LOG: leave out TRUTH")
    for param in ctx.command.params:
        if param.name in others and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} is for {where}")


def _take_policies(ctx: click.Context, options: dict[str, Any]) -> None:
    """The policies of the tool, where the command does not say them."""
    from fastrec.recipes import find_recipe

    if options["like"] is not None:
        policies = find_recipe(options["like"]).policies
        options |= {
            name: policy
            for name, policy in policies.items()
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        }


def _evaluate_lists(recs: str, truth: str, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec import api
    from fastrec.files import Columns, evaluate_lists

    named = _plan(options, None)
    for call in named.values():
        if call.metric.kind != "ranking":
            raise click.UsageError(f"{call.text} is a metric of scored rows: give a LOG and leave out TRUTH")
    users = options["user_col"] or ("user_id",)
    if len(users) > 1:
        raise click.UsageError("several --user-col are for a LOG: leave out TRUTH")
    _check_outputs([recs, truth, options["exclude"], options["users"]], options)
    columns = Columns(
        user=users[0],
        item=options["item_col"] or "item_id",
        rank=options["rank_col"],
        score=options["score_col"],
        gain=options["gain_col"],
        by=tuple(dict.fromkeys(options["by"])),
    )
    with _progress() as watch, _silent():
        watch("reading")
        evaluator = api.Evaluator(
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
    from fastrec.files import Resources

    return Resources(options["memory"], options["temp_dir"], options["threads"])


def _evaluate_log(path: str, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec import api
    from fastrec.files import evaluate_log

    named = _plan(options, _usual_metrics(options))
    calls = list(named.values())
    _check_outputs([path, options["users"]], options)

    def make_evaluator(has_users: bool) -> api.ScoreEvaluator:  # noqa: FBT001 - called by position
        all_of_them = bool(options["metrics"]) or has_users
        asked = {name: call for name, call in named.items() if all_of_them or not call.needs_users}
        _check_named("--fail-under", [threshold.metric for threshold in options["fail_under"]], asked)
        return api.ScoreEvaluator(
            list(asked),
            like=options["like"],
            per_user=per_user,
            n_threads=options["threads"],
            **{name: options[name] for name in (*PASSED_ON, "one_class")},
        )

    def curves(labels: Any, scores: Any, weights: Any) -> tuple[str, tuple[str, ...]]:
        return _curves_of(path, labels, scores, weights, options)

    wanted = None if options["curves"] is None else curves
    with _progress() as watch, _silent(), _words_of_options(options, calls):
        watch("reading")
        columns = _columns_of_log(options, calls)
        paths = {"log": path} | ({} if options["users"] is None else {"users": options["users"]})
        resources, format_ = _resources(options), options["input_format"]
        return evaluate_log(make_evaluator, paths, columns, resources, watch, wanted, input_format=format_)


def _usual_metrics(options: dict[str, Any]) -> tuple[str, ...]:
    """What is evaluated in a log if no metric is named; without users, less."""
    from fastrec.registry import DEFAULT_SCORE_METRICS, parse

    if _has_ratings(options):
        return RATING_METRICS
    return tuple(
        name.partition("@")[0] if options["cutoffs"] else name
        for name in DEFAULT_SCORE_METRICS
        if options["weight_col"] is None or parse(name).metric.kind == "scores"
    )


def _has_ratings(options: dict[str, Any]) -> bool:
    return options["target_col"] is not None or options["prediction_col"] is not None


def _needing_users(options: dict[str, Any], calls: list[Call]) -> list[str]:
    """What was asked for that needs users."""
    needing = [call.text for call in calls if options["metrics"] and call.needs_users]
    return needing + [name for name, value in (("--by", options["by"]), ("--per-user", options["per_user"])) if value]


def _columns_of_log(options: dict[str, Any], calls: list[Call]) -> ScoreColumns:
    """The columns that the metrics need."""
    from fastrec.files import ScoreColumns

    ratings = _has_ratings(options)
    if ratings and (options["label_col"] is not None or options["score_col"] is not None):
        raise click.UsageError("a LOG has labels and scores, or targets and predictions: name columns of one kind")
    by_id = options["ties"] in ("id_asc", "id_desc")
    return ScoreColumns(
        label=(options["target_col"] or "target") if ratings else options["label_col"] or "label",
        score=(options["prediction_col"] or "prediction") if ratings else options["score_col"] or "score",
        ratings=ratings,
        users=tuple(dict.fromkeys(options["user_col"])) or (("user_id",) if _needing_users(options, calls) else None),
        item=options["item_col"] or ("item_id" if by_id else None),
        weight=options["weight_col"],
        by=tuple(dict.fromkeys(options["by"])),
    )


@contextlib.contextmanager
def _words_of_options(options: dict[str, Any], calls: list[Call]) -> Iterator[None]:
    """An error says which option names a column that is missing, or mends what is wrong."""
    from fastrec.files import ColumnError

    needing, ties = _needing_users(options, calls), options["ties"]
    try:
        yield
    except ColumnError as error:
        hints = {
            "label": "lists need a second file, TRUTH; a log needs labels and scores (--label-col, --score-col), or "
            "true and predicted ratings (--target-col, --prediction-col)",
            "score": "--score-col names the column of scores",
            "target": "--target-col names the column of true ratings",
            "prediction": "--prediction-col names the column of predicted ratings",
            "user": f"{needing[0]} needs users: --user-col names their column" if needing else "",
            "item": "" if options["item_col"] else f"--ties {ties} needs items: --item-col names their column",
            "by": "with several --user-col, each combination of their values is a user",
        }
        hint = hints.get(error.role)
        raise InputError(f"{error}; {hint}" if hint else str(error)) from None
    except InputError as error:
        message = str(error).replace("min_gain=...", "--min-gain")
        if "must be 0 or 1, found" in message:
            message += "; --min-gain says from which label a row is positive"
        raise InputError(message) from None


def _curves_of(
    path: str, labels: Any, scores: Any, weights: Any, options: dict[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """The ROC and the precision-recall curve, thinned, as JSON or CSV; and what to warn of."""
    from fastrec.curves import pr_curve, roc_curve

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
        return _csv_text(["curve", "threshold", "fpr", "tpr", "recall", "precision"], rows), lacking
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


def _plan(options: dict[str, Any], usual: tuple[str, ...] | None) -> dict[str, Call]:
    """The metrics to compute, by name: those of a log if some are usual there.

    Unknown names and thresholds on other metrics fail here, before any reading.
    """
    from fastrec.recipes import find_recipe
    from fastrec.registry import expand, split_outside_brackets

    names = [name for text in options["metrics"] for name in split_outside_brackets(text)]
    if options["metrics"] and not names:
        raise click.UsageError("-m names no metric")
    if options["like"] is None:
        named = {call.text: call for call in expand(names or None, options["cutoffs"] or None, usual)}
    else:
        kind = "lists" if usual is None else "rows"
        named = find_recipe(options["like"]).translate(names or None, options["cutoffs"] or None, kind)
    lists = [name for name, call in named.items() if call.metric.kind == "ranking"]
    if options["weight_col"] is not None and lists:
        raise click.UsageError(f"--weight-col weighs rows, which metrics of lists cannot: leave out {lists[0]}")
    _check_named("--fail-under", [threshold.metric for threshold in options["fail_under"]], named)
    return named


def _check_named(option: str, metrics: Iterable[str], named: dict[str, Call]) -> None:
    """An option may name only metrics that are evaluated."""
    from fastrec.registry import parse

    known = [call.text for call in named.values()]
    for metric in metrics:
        if metric not in named and parse(metric).text not in known:
            raise click.UsageError(f"{option} {metric}: not evaluated here; there is {some_names(list(named))}")


def _check_outputs(inputs: Sequence[str | None], options: dict[str, Any]) -> None:
    """Fail before the work rather than after it, and never write over an input."""
    for option, endings in (("per_user", (".csv", ".parquet")), ("curves", (".csv", ".json"))):
        path = options.get(option)
        if path is not None and not path.lower().endswith(endings):
            name = option.replace("_", "-")
            raise click.UsageError(f"--{name} {path}: the name must end in {' or '.join(endings)}")
    files = [file for path in inputs if path is not None for file in formats.find_files(path).paths]
    taken = {os.path.realpath(path): path for path in files}
    for path in (options["output"], *map(options.get, ("per_user", "curves", "html"))):
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in taken and (os.path.isfile(real) or not os.path.exists(real)):
            raise click.UsageError(f"{path} would be written over {taken[real]}")
        if not os.path.isdir(os.path.dirname(real)):
            raise click.UsageError(f"{path}: there is no folder {os.path.dirname(real)}")
        if os.path.isdir(real):
            raise click.UsageError(f"{path}: is a folder; a file name is wanted")
        taken[real] = path


@contextlib.contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    """What is told the stage and, where they are known, rows done and all rows: a bar, if there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    stage, pace = TextColumn("{task.description}"), TextColumn("{task.fields[pace]}")
    columns = (SpinnerColumn(), stage, TimeElapsedColumn(), BarColumn(bar_width=None), pace)
    with Progress(*columns, console=_console(sys.stderr), transient=True) as bar, undone_by(bar.stop):
        bar.add_task("", total=None, pace="")
        (task,) = bar.tasks

        def watch(stage: str, done: int = 0, total: int | None = None) -> None:
            if stage != task.description:
                bar.reset(task.id, total=total, description=stage, pace="")
            bar.update(task.id, completed=done)
            if total is not None:
                bar.update(task.id, pace=_pace(done, total, task.speed, task.time_remaining))

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


def _format_of(format_: str | None, output: str | None) -> str:
    ending = os.path.splitext(output or "")[1].lower().lstrip(".")
    return format_ or (ending if ending in FORMATS else "table")


def _emit(text: str | Callable[[Console], None], output: str | None) -> None:
    """Write a text, or what a function draws on a console, to a file or to standard output."""
    if callable(text) and output is None and sys.stdout.isatty():
        text(_console(sys.stdout))
        return
    if callable(text):
        drawn = io.StringIO()
        text(_console(drawn))
        text = "".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines())
    if output is None:
        sys.stdout.write(shown_signs(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return
    with atomic_write(output) as stream:
        stream.write(text.encode(errors="backslashreplace"))  # no file can hold an unpaired surrogate


def _console(stream: IO[str]) -> Console:
    """A console; if the stream is no terminal, without colours and 80 wide whatever the environment says."""
    from rich.console import Console

    if stream.isatty():
        return Console(file=stream, highlight=False, emoji=False)
    return Console(file=stream, highlight=False, emoji=False, force_terminal=False, width=WIDTH)


def _render(report: Report, format_: str) -> str | Callable[[Console], None]:
    if format_ == "json":
        return report.to_json(indent=2) + "\n"
    if format_ == "csv":
        return _as_csv(report)
    if format_ == "md":
        return _as_markdown(report)
    return lambda console: _draw_report(console, report)


def _as_csv(report: Report) -> str:
    rows = report.to_rows()
    return _csv_text(list(rows[0]), rows)


def _csv_text(columns: list[str], rows: Iterable[dict[str, Any]]) -> str:
    """Rows as CSV; NaN is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)  # noqa: PLR0124
    return text.getvalue()


def _as_markdown(report: Report) -> str:
    return "\n".join([report.to_markdown(), "", *(f"- {pages.markdown_text(line)}" for line in _counts(report))]) + "\n"


def _head(report: Report) -> list[str]:
    """The columns of the main table; rows that belong to nobody have no number of users."""
    return ["metric", "mean", "95 % interval", *(["users"] if report.users["total"] else [])]


def _overall_rows(report: Report) -> list[list[str]]:
    return [row[: len(_head(report))] for row in _estimate_rows(report.estimates)]


def _estimate_rows(estimates: dict[str, Estimate]) -> list[list[str]]:
    return [[name, _mean(one), span(one.mean, *one.interval()), f"{one.users:,}"] for name, one in estimates.items()]


def _mean(estimate: Estimate) -> str:
    return figures(estimate.mean, estimate.mean)[0]


def _with_margin(estimate: Estimate) -> str:
    mean, margin = figures(estimate.mean, estimate.mean, estimate.margin())
    return mean if margin == DASH else f"{mean} ±{margin}"


def _groups(report: Report) -> dict[str, dict[Any, Any]]:
    """The groups that people want to see: not the users without a label, if none of them was evaluated."""
    from fastrec.files import NO_LABEL

    return {
        grouping: {
            label: estimates
            for label, estimates in by_label.items()
            if label != NO_LABEL or any(one.users for one in estimates.values())
        }
        for grouping, by_label in report.groups.items()
    }


def _counts(report: Report) -> list[str]:
    """Who was counted and what was in the files, a line each."""
    users, data = report.users, report.data
    if "rows" in data:
        return [*_names_of_tool(report), *_counts_of_log(report)]
    treated = {"skip": "left out", "zero": "counted as 0", "nan": "NaN", "judged": "counted as 0 if in the truth"}
    lines = [*_names_of_tool(report), f"{users['evaluated']:,} of {users['total']:,} users evaluated"]
    for reason, words in (("no_truth", "without a relevant item"), ("no_recs", "without a list")):
        if users[reason]:
            lines.append(f"{users[reason]:,} {words}, {treated[str(report.settings[reason])]}")
    rows = [f"{data['rec_rows']:,} rows of lists", f"{data['truth_rows']:,} of truth"]
    for key, words in (
        ("truth_rows_not_relevant", "of these not relevant"),
        ("duplicates_in_recs", "copies in lists"),
        ("duplicates_in_truth", "copies in truth"),
        ("excluded_items", "seen items taken out"),
    ):
        if data[key]:
            rows.append(f"{data[key]:,} {words}")
    lines += [", ".join(rows), *order_of_lists(data)]
    if not math.isnan(data["truth_items_in_recs"]):
        lines.append(f"{100 * data['truth_items_in_recs']:.1f} % of the relevant items are in the lists")
    return lines


def _names_of_tool(report: Report) -> list[str]:
    """What the tool calls the metrics whose names and policies were asked for."""
    settings = report.settings
    if "like" not in settings:
        return []
    names = [f"{name} is {text}" for name, text in cast("dict[str, str]", settings["names"]).items()]
    policies = [f"{name}={settings[name]}" for name in ("ties", "no_truth", "no_recs") if name in settings]
    if settings["min_gain"] is not None:
        policies.append(f"min_gain={settings['min_gain']}")
    return [f"like {settings['like']}: {', '.join([*names, *policies])}"]


def _counts_of_log(report: Report) -> list[str]:
    """How many rows there are, and the users whom a policy treats, a line each."""
    from fastrec.registry import parse

    users, data, settings = report.users, report.data, report.settings
    calls = [parse(name) for name in report]
    ratings = all(call.metric.needs == "targets" for call in calls)
    positive = "" if ratings else f" ({data['positive_rows']:,} positive)"
    whose = f" of {users['total']:,} users" if users["total"] else ""
    lines = [f"{data['rows']:,} rows{positive}{whose}"]
    treated = {"skip": "left out of", "drop": "left out of", "zero": "0 in", "half": "0.5 in", "nan": "NaN in"}
    treated["judged"] = "0 in"  # every user of a log has rows
    if users.get("no_truth") and any(call.metric.kind == "ranking" for call in calls):
        how = treated[str(settings["no_truth"])]
        lines.append(f"{users['no_truth']:,} without a positive row, {how} metrics of lists")
    if not any(call.metric.name == "gauc" for call in calls):
        return lines
    if one_class := users["no_truth"] + users["no_negatives"]:
        own = any(("one_class", "call") not in call.options for call in calls if call.metric.name == "gauc")
        how = "" if own else f", {treated[str(settings['one_class'])]} gauc"
        lines.append(f"{one_class:,} with rows of one class only{how}")
    if users["constant_scores"]:
        lines.append(f"{users['constant_scores']:,} with rows of both classes and one score")
    return lines


def _table(*columns: str, left: int = 1) -> Table:
    """An empty table; the first `left` columns hold text, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for n, name in enumerate(columns):
        is_text = n < left
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    return table


def _draw_report(console: Console, report: Report) -> None:
    from rich.text import Text

    table = _table(*_head(report))
    for row in _overall_rows(report):
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print(table)
    for grouping, by_label in _groups(report).items():
        _draw_grouping(console, grouping, by_label)
    console.print()
    for line in _counts(report):
        console.print(Text(line, style="dim"))


def _draw_grouping(console: Console, grouping: str, by_label: dict[Any, dict[str, Estimate]]) -> None:
    """A row per label and a column per metric, in as many tables as the width asks for."""
    from rich.text import Text

    labels = [one_line(str(label)) for label in by_label]
    cells = {name: [_with_margin(one[name]) for one in by_label.values()] for name in next(iter(by_label.values()), {})}
    widths = {name: max(map(len, [name, *column])) + 3 for name, column in cells.items()}
    room = console.width - min(max(map(len, [grouping, *labels])), console.width // 2) - 12
    for shown in _fitting(widths, room):
        table = _table(one_line(grouping), "users", *shown)
        for n, (label, estimates) in enumerate(zip(labels, by_label.values(), strict=True)):
            # Metrics with a min_gain of their own may count other users.
            counts = sorted({estimates[name].users for name in shown})
            users = DASH.join(f"{count:,}" for count in (counts[:1] if len(counts) == 1 else [counts[0], counts[-1]]))
            table.add_row(Text(label), users, *(cells[name][n] for name in shown))
        console.print()
        console.print(table)


def _fitting(widths: dict[str, int], room: int) -> list[list[str]]:
    """The names in parts whose widths add up to at most the room, at least one in each."""
    parts: list[list[str]] = []
    left = 0
    for name, width in widths.items():
        if not parts or width > left:
            parts.append([])
            left = room
        parts[-1].append(name)
        left -= width
    return parts


@program.command()
@click.argument("systems", nargs=-1, required=True, metavar="NAME=RECS|LOG ...", callback=_read_systems)
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
    help="Exit with 1 if a system is significantly worse than the baseline; may be repeated.",
)
@_with_options(_METRICS, _COLUMNS, _GROUPS, _POLICIES, _OUTPUT, _HTML, _RESOURCES)
@click.pass_context
def compare(ctx: click.Context, /, systems: dict[str, str], truth: str | None, **options: Any) -> int:
    """Weigh systems on the same users: which differences are real, for whom, by how much.

    Each system is a name and its file, read as in `fastrec evaluate`; --by compares within groups of users too.

    \b
    fastrec compare old=recs_a.parquet new=recs_b.parquet --truth truth.parquet -m ndcg@10,recall@20
    fastrec compare old=a.csv new=b.csv --truth truth.csv --baseline old --fail-if-worse ndcg@10
    fastrec compare old=log_a.parquet new=log_b.parquet -m "gauc(weight=equal)" --html report.html
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    from fastrec.comparison import compare
    from fastrec.report import check_resampling

    if len(systems) < 2:
        raise click.UsageError("compare needs two systems or more, as in old=a.parquet new=b.parquet")
    if options["fail_if_worse"] and options["baseline"] is None:
        raise click.UsageError("--fail-if-worse needs --baseline, the system not to be worse than")
    if options["baseline"] not in (None, *systems):
        raise click.UsageError(f"--baseline {options['baseline']}: none of the systems {', '.join(systems)}")
    check_resampling(options["level"], options["rounds"], options["seed"])
    _check_kind(ctx, is_log=truth is None)
    _take_policies(ctx, options)
    options |= {"fail_under": (), "weight_col": None, "curves": None, "per_user": None}
    options["user_col"] = options["user_col"] or ("user_id",)  # in a LOG too: users are what is compared
    named = _plan(options, None if truth is not None else _usual_metrics(options))
    _check_named("--fail-if-worse", options["fail_if_worse"], named)
    _check_outputs([*systems.values(), truth, options["exclude"], options["users"]], options)
    evaluated = {
        name: _evaluate_any(path, truth, options | {"output": None}, per_user=True) for name, path in systems.items()
    }
    names = ("baseline", "test", "correction", "level", "seed", "missing")
    reports = {name: each.report for name, each in evaluated.items()}
    with _progress() as watch:
        progress = functools.partial(watch, "comparing")
        arguments = {name: options[name] for name in names} | {"n_rounds": options["rounds"]}
        found = compare(reports, n_threads=options["threads"], progress=progress, **arguments)
    worse = _worse(found, options["fail_if_worse"], next(iter(reports.values())))
    if options["html"] is not None:
        found.to_html(options["html"])
    _emit(_render_comparison(found, reports, _format_of(options["format_"], options["output"])), options["output"])
    for name, each in evaluated.items():
        for warning in (*each.report.warnings, *each.hints):
            _warn(f"{name}: {warning}")
    for row in worse:
        _say(one_line(f"fastrec: {row.system} is worse than {row.baseline}: {row.metric} {row.difference:+.4f}"))
    return int(bool(worse))


def _worse(found: Comparison, metrics: Sequence[str], report: Report) -> list[ComparisonRow]:
    """Significant changes for the worse, over all users."""
    from fastrec.registry import parse

    names = [report.name_of(metric) for metric in metrics]
    for name in names:
        if name in found.left_out:
            raise click.UsageError(f"--fail-if-worse {name}: {found.left_out[name]}")
    for row in found.rows:
        if row.metric in names and math.isnan(row.p_value):
            raise InputError(
                f"--fail-if-worse {row.metric}: {row.system} and {row.baseline} share {row.users} users, "
                "too few to tell"
            )
    return [
        row
        for row in found.rows
        if row.metric in names
        and found.is_significant(row)
        and (row.difference < 0) == parse(row.metric).metric.higher_is_better
    ]


def _render_comparison(found: Comparison, reports: dict[str, Report], format_: str) -> str | Callable[[Console], None]:
    if format_ == "json":
        return found.to_json(indent=2) + "\n"
    if format_ == "csv":
        rows = found.to_rows()
        return _csv_text(list(rows[0]), rows)
    if format_ == "md":
        parts = [("mean", _means_table(reports)), *_difference_tables(found)]
        tables = [pages.Table(title, head, rows, _n_texts(head)) for title, (head, *rows) in parts]
        return pages.as_markdown(tables) + "\n"
    return lambda console: _draw_comparison(console, found, reports)


def _means_table(reports: dict[str, Report]) -> list[list[str]]:
    """A row per metric and a column per system, its head first."""
    first = next(iter(reports.values()))
    rows = [[name, *(_with_margin(report.estimates[name]) for report in reports.values())] for name in first]
    return [["mean", *reports], *rows]


def _difference_tables(found: Comparison) -> list[tuple[str, list[list[str]]]]:
    """Title and table of the differences over all users and within groups."""
    baseline = found.settings["baseline"]
    pairs = {(row.system, row.baseline) for row in found.rows}
    one = " - ".join(next(iter(pairs))) if len(pairs) == 1 else None
    what = f"difference {one}" if one else "differences" if baseline is None else f"difference to {baseline}"
    columns: dict[str, Callable[[ComparisonRow], str]] = {
        "metric": lambda row: row.metric,
        "group": lambda row: str(row.group),
        "system": lambda row: row.system if baseline is not None else f"{row.system} - {row.baseline}",
        "difference": lambda row: _gap_of(row)[0],
        "interval": lambda row: _gap_of(row)[1],
        "p": lambda row: p_value(row.p_value),
        "corrected": lambda row: f"{p_value(row.p_corrected)}{'*' if found.is_significant(row) else ' '}",
    }
    tables = []
    everything: list[tuple[str | None, Sequence[ComparisonRow]]] = [(None, found.rows), *found.segments.items()]
    for grouping, rows in everything:
        left_out = {"system" if one else "", "p" if grouping else "group"}
        shown = {name: text for name, text in columns.items() if name not in left_out}
        head = [str(grouping) if name == "group" else name for name in shown]
        cells = [[text(row) for text in shown.values()] for row in rows if row.users]
        tables.append((f"{what}, by {grouping}" if grouping else what, [head, *cells]))
    return tables


def _n_texts(head: Sequence[str]) -> int:
    """How many columns of a table hold texts: those before the difference, else the first."""
    return head.index("difference") if "difference" in head else 1


def _gap_of(row: ComparisonRow) -> tuple[str, str]:
    return shown_difference(Gap(row.difference, row.low, row.high))


def _draw_comparison(console: Console, found: Comparison, reports: dict[str, Report]) -> None:
    from rich.text import Text

    for title, (head, *rows) in [("", _means_table(reports)), *_difference_tables(found)]:
        table = _table(*head, left=_n_texts(head))
        for row in rows:
            bold = "bold" if row[-1].endswith("*") else ""
            table.add_row(*(Text(one_line(cell), style=bold) for cell in row))
        if title:
            console.print(Text(f"\n{title}", style="bold"))
        console.print(table)
    console.print()
    for line in found.notes():
        console.print(Text(line, style="dim"))


@program.command()
@click.argument("metric")
@click.argument("recs", type=click.Path(), required=False, metavar="[RECS|LOG]")
@click.argument("truth", type=click.Path(), required=False)
@click.option("--like", multiple=True, metavar="TOOL", help="A tool; may be repeated.  [default: all that have it]")
@click.option(
    "--show-users",
    type=click.IntRange(min=0),
    metavar="N",
    help="Users to show per tool.  [default: 5 with --like]",
)
@_with_options(_COLUMNS, _WEIGHT, _POLICIES, _OUTPUT, _RESOURCES)
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
    from fastrec.explanation import explain

    if recs is not None:
        _check_kind(ctx, is_log=truth is None)
        explain(metric, like=options["like"] or None)  # a typo is found before any file is read
        _check_outputs([recs, truth, options["exclude"]], options)
    arguments = {} if recs is None else _arguments_of_files(ctx, options, is_log=truth is None)
    with _progress() as watch, _silent():
        if recs is not None:
            watch("reading")
            arguments["progress"] = functools.partial(watch, "evaluating")
        why = explain(metric, recs, truth, like=options["like"] or None, n_users=options["show_users"], **arguments)
    format_ = _format_of(options["format_"], options["output"])
    _emit(_render_explanation(why, format_), options["output"])


def _arguments_of_files(ctx: click.Context, options: dict[str, Any], *, is_log: bool) -> dict[str, Any]:
    """Arguments of `evaluate_files` for the options that were given."""
    names = {"sample_weight": "weight_col", "item": "item_col", "rank": "rank_col", "gain": "gain_col"}
    names |= {"label": "label_col", "score": "score_col", "n_threads": "threads", "temp_directory": "temp_dir"}
    names |= {name: name for name in (*PASSED_ON, *OF_LISTS, *OF_LOGS, "input_format", "memory") if "_col" not in name}
    if _has_ratings(options):
        options |= {
            "label_col": options["target_col"] or "target",
            "score_col": options["prediction_col"] or "prediction",
        }
    given = {
        name: options[option]
        for name, option in names.items()
        if options.get(option) is not None and ctx.get_parameter_source(option) is not ParameterSource.DEFAULT
    }
    users = options["user_col"]
    return given | ({"user": (list(users) if is_log else users[0])} if users else {})


def _render_explanation(why: Explanation, format_: str) -> str | Callable[[Console], None]:
    if format_ == "json":
        return why.to_json(indent=2) + "\n"
    if format_ == "csv":
        raise click.UsageError("an explanation is several tables: --format table, md or json")
    if format_ == "md":
        return why.to_markdown() + "\n"
    return lambda console: _draw_explanation(console, why)


def _draw_explanation(console: Console, why: Explanation) -> None:
    from rich.text import Text

    for n, found in enumerate(why.tables()):
        if n:
            console.print()
        console.print(Text(found.title, style="bold"))
        head, *rows = found.texts()
        first, *others = (max(map(len, column)) for column in zip(head, *rows, strict=True))
        widths = {name: width + 3 for name, width in zip(head[1:], others, strict=True)}
        for shown in _fitting(widths, console.width - first) or [[]]:
            table = _table(head[0], *shown)
            for label, *cells in rows:
                of = dict(zip(head[1:], cells, strict=True))
                row = (label, *(of[name] for name in shown))
                table.add_row(*(Text(one_line(cell), style="bold" if cell.endswith("*") else "") for cell in row))
            console.print(table)
        for line in found.notes:
            console.print(Text(line, style="dim"))


@program.command()
@click.argument("name", required=False)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def metrics(name: str | None, format_: str) -> None:
    """List the metrics, or tell everything about one.

    A name that lists and scored rows share, such as precision, is told about twice.
    """
    from fastrec.registry import catalogue, parse

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
        _emit(json.dumps(shown, indent=2, ensure_ascii=False) + "\n", None)
    elif name is None:
        _emit(lambda console: _draw_metrics(console, known), None)
    else:
        _emit(lambda console: _draw_each(console, known), None)


def _draw_metrics(console: Console, known: list[dict[str, Any]]) -> None:
    """A table for each kind of metrics, and what all of the kind have in common."""
    from rich.text import Text

    from fastrec.registry import COMMON_OPTIONS

    notes = {
        "ranking": "Each takes a cut-off and min_gain, the least gain of a relevant item:\n"
        "ndcg(gain=exp2, min_gain=3)@10; also no_truth and no_recs, which users count, as\n"
        "in the options of those names. In a scored log, scores rank the rows of a user.",
        "scores": "Each takes min_gain, the least label of a positive row, and no cut-off.\n"
        "Everything about one: fastrec metrics ndcg",
    }
    for kind, note in notes.items():
        table = _table("metric", "formula, source", "options, the default marked *", left=3)
        for metric in known:
            if metric["kind"] == kind:
                formula = Text(metric["formula"]).append(f"\n{metric['source']}", style="dim")
                table.add_row(
                    Text(metric["name"], style="bold"), formula, _option_grid(metric, leave_out=COMMON_OPTIONS)
                )
        console.print(Text(f"{KINDS[kind]}\n".capitalize(), style="bold"))
        console.print(table)
        console.print(f"\n{note}" + "\n" * (kind == "ranking"))


def _option_grid(metric: dict[str, Any], leave_out: Sequence[str] = ()) -> Table:
    """A line per option: its name, its values, the default bold and marked."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for name, option in metric["options"].items():
        if name in leave_out:
            continue
        default = option["default"]
        values = list(option["choices"])
        if "number" in option["kind"]:
            values.append("a number" if default is None else f"{default:g}")
        if "table" in option["kind"]:
            values.append("[table]")
        line = Text("")
        for n, value in enumerate(values):
            marked = default is not None and (value == default or not option["choices"])
            line.append(" | " if n else "").append(f"{value}*" if marked else value, style="bold" * marked)
        grid.add_row(Text(name, style="cyan"), line.append(", required" if option["required"] else ""))
    return grid


def _draw_each(console: Console, known: list[dict[str, Any]]) -> None:
    for n, metric in enumerate(known):
        if n:
            console.print()
        _draw_metric(console, metric)


def _draw_metric(console: Console, metric: dict[str, Any]) -> None:
    """Everything the catalogue knows about one metric."""
    from rich.text import Text

    low, high = metric["range"]
    bounds = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    table = _table("", "", left=2)
    table.show_header = False
    table.add_row(Text("of"), Text(KINDS[metric["kind"]]))
    table.add_row(Text("formula"), Text(metric["formula"]))
    table.add_row(Text("range"), Text(f"{bounds}, {'higher' if metric['higher_is_better'] else 'lower'} is better"))
    table.add_row(Text("options"), _option_grid(metric))
    table.add_row(Text("source"), Text(metric["source"]))
    console.print(Text(metric["name"], style="bold"))
    console.print(table)
    for paragraph in metric["doc"].split("\n\n"):
        console.print()
        # Prose is wrapped anew to the width at hand; examples and tables keep their lines.
        is_prose = not any(line.startswith((" ", ">>>", "---")) for line in paragraph.splitlines())
        console.print(Text(" ".join(paragraph.split()) if is_prose else paragraph), soft_wrap=not is_prose)


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
    from fastrec.comparison import compare
    from fastrec.demo import evaluate_demo, write_demo

    with _progress() as watch:
        watch("making up users, items and two recommenders")
        paths = write_demo(output, n_users=users, seed=seed)
        watch("evaluating both")
        reports = evaluate_demo(paths)
        watch("comparing")
        found = compare(reports, next(iter(reports)))
        found.to_html(os.path.join(output, "comparison.html"), title="Two recommenders of a made-up shop")
    _emit(lambda console: _draw_demo(console, reports, found, paths), None)


def _draw_demo(console: Console, reports: dict[str, Report], found: Comparison, paths: dict[str, str]) -> None:
    """Both recommenders side by side, over all users and by segment; * marks what is significant."""
    from rich.text import Text

    (first, one), (second, other) = reports.items()
    folder, names = os.path.dirname(paths[first]), [os.path.basename(path) for path in paths.values()]
    gaps = {
        (row.metric, row.group): f"{_gap_of(row)[0]}{'*' if found.is_significant(row) else ' '}"
        for row in found.all_rows()
    }
    console.print(Text(f"In {folder}: {', '.join(names)}\n"))
    table = _table("metric", first, second, "difference")
    for name in one:
        means = (_with_margin(report.estimates[name]) for report in (one, other))
        table.add_row(name, *means, gaps[name, None])
    console.print(table)
    main_metric = next(iter(one))
    for grouping, by_label in _groups(one).items():
        table = _table(f"{main_metric} by {grouping}", "users", first, second, "difference")
        for label, estimates in by_label.items():
            left, right = estimates[main_metric], other.groups[grouping][label][main_metric]
            cells = f"{left.users:,}", _with_margin(left), _with_margin(right), gaps[main_metric, label]
            table.add_row(Text(label), *cells)
        console.print()
        console.print(table)
    console.print()
    for line in (*_counts(other)[:-2], f"* significant: {found.notes()[0]}"):
        console.print(Text(line, style="dim"))
    console.print(
        Text(f"\nThe comparison as a page for a browser: {os.path.join(folder, 'comparison.html')}"), soft_wrap=True
    )
    console.print("\nNext, try:")
    systems = " ".join(f"{name}={shlex.quote(paths[name])}" for name in reports)
    truth = shlex.quote(paths["truth"])
    for command in (
        f"fastrec evaluate {shlex.quote(paths[second])} {truth} -m ndcg,recall -k 5,10,20 --by segment",
        f"fastrec compare {systems} --truth {truth} -m recall@20 --by segment",
        f"fastrec explain ndcg@10 {shlex.quote(paths[second])} {truth}",
    ):
        console.print(Text(f"  {command}", style="bold"), soft_wrap=True)


@program.command()
def warmup() -> None:
    """Compile what the first evaluation needs."""
    from fastrec import api

    with _progress() as watch:
        watch("compiling")
        api.warmup()
