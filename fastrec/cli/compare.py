"""`fastrec compare` and `fastrec report`: comparisons on the same users, and saved reports."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.checks import counted
from fastrec.cli.completion import complete_metrics
from fastrec.cli.output import check_outputs, name_files, write_comparison
from fastrec.cli.standard_input import open_inputs
from fastrec.comparison.tables import CELLS, alpha, least_p_values, what_helps
from fastrec.exceptions import InputError, MetricNotFoundError, one_line
from fastrec.files.paths import the_same_files
from fastrec.metrics.directions import Direction
from fastrec.report.definitions import known_call
from fastrec.report.report import is_saved, load, reword

if TYPE_CHECKING:
    from fastrec.comparison.comparison import Comparison
    from fastrec.comparison.row import ComparisonRow
    from fastrec.report.report import Report
from fastrec.cli.evaluate import (
    check_groupings,
    check_kind,
    columns_of_log,
    evaluate_any,
    hints_of_log,
    holds_log,
    make_scorer,
    naming_options,
    open_files,
    paths_of,
    quietly,
    usual_metrics,
    write_evaluated,
)
from fastrec.cli.group import REPORT_OPTIONS, in_options, program, say, say_warning, showing_progress
from fastrec.cli.options import (
    FAIL_UNDER,
    GROUPS,
    HTML,
    ITEM_OPTIONS,
    METRIC_OPTIONS,
    PAIRED_COLUMN_OPTIONS,
    PAPER,
    POLICIES,
    RESOURCES,
    SAMPLED_OPTIONS,
    WEIGHT,
    check_named,
    choose_format,
    missed_floors,
    names_of_metrics,
    output_options,
    planned,
    refuse_floor,
    resources_of,
    systems_argument,
    take_policies,
    with_options,
)


@program.command(short_help="Compare systems on the same users, with tests.")
@systems_argument("systems", "[NAME=]RECS|LOG ...")
@click.option("--truth", type=click.Path(), metavar="TRUTH", help="Relevant items; without it, systems are LOGs.")
@click.option("--baseline", metavar="NAME", help="System to compare the others with.  [default: compare every pair]")
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
    help="Correction of p-values for many comparisons.",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, metavar="SHARE", help="Level of intervals and tests."
)
@click.option("--rounds", type=int, default=10_000, show_default=True, metavar="N", help="Rounds of resampling.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="S", help="Seed; the same seed gives the same numbers."
)
@click.option(
    "--missing",
    type=click.Choice(["drop", "zero", "error"]),
    default="drop",
    show_default=True,
    help="Users counted for one system only: leave out, count as 0 for the other, or fail.",
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    metavar="P",
    help="Chance of finding a detectable difference.",
)
@click.option(
    "--fail-if-worse",
    multiple=True,
    metavar="METRIC",
    shell_complete=complete_metrics,
    help="Exit with 1 if a system is significantly worse than the baseline (of two systems, the first by default); may "
    "be repeated. Exits with 2 if the truth or the labels of the systems differ.",
)
@click.option(
    "--different-truth", is_flag=True, help="Let --fail-if-worse judge systems with different truth or labels."
)
@with_options(METRIC_OPTIONS, PAIRED_COLUMN_OPTIONS, WEIGHT, GROUPS, POLICIES, ITEM_OPTIONS, SAMPLED_OPTIONS)
@with_options(output_options("comparison"), HTML, PAPER, RESOURCES)
@click.pass_context
def compare(ctx: click.Context, /, systems: dict[str, str], truth: str | None, **options: Any) -> int:
    """Compare systems on the same users, with tests and intervals.

    Give each system as NAME=FILE, or as FILE, which names it after the file. A file is read as in `fastrec evaluate`,
    or is a report that --save wrote. --by compares within groups of users too.

    Scored LOGs must have the same rows, users, labels and weights. Rows match by their order, or by --row-key. Columns
    of --by are in the first LOG. Or give one LOG and a --score-col per model. Without a column of users, each row is a
    user of its own.

    \b
    fastrec compare a.parquet b.parquet --truth truth.parquet -m ndcg@10,mrr
    fastrec compare old=a.csv new=b.csv --truth t.csv --fail-if-worse ndcg@10
    fastrec compare log.parquet --score-col old --score-col new -m auc,gauc
    fastrec compare log_a.csv log_b.csv --row-key id -m auc -o report.html
    fastrec compare monday.fastrec today=recs.csv --truth t.csv -m ndcg@10
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.comparison.compare import compare, truth_warnings
    from fastrec.report.values import check_resampling

    models = _take_scores(options)
    if models and (len(systems) > 1 or truth is not None):
        raise click.UsageError("several columns of scores are the systems of one LOG: give one LOG, or one column")
    names = models or list(systems)
    if len(names) < 2:
        raise click.UsageError(
            "compare needs two systems or more, as in old=a.parquet new=b.parquet, or a LOG with two --score-col"
        )
    if options["fail_if_worse"] and options["baseline"] is None:
        if len(names) > 2:
            raise click.UsageError("with more than two systems, --fail-if-worse needs --baseline NAME to compare with")
        options["baseline"] = names[0]
    if options["baseline"] not in (None, *names):
        raise click.UsageError(f"--baseline {options['baseline']} is not one of the systems {', '.join(names)}")
    check_resampling(options["level"], options["rounds"], options["seed"])
    choose_format(options, "comparison")
    with open_files({**systems, "--truth": truth}, options) as inputs:
        truth = inputs.pop("--truth")
        systems = {name: path for name, path in inputs.items() if path is not None}
        reports, wanted = _evaluate_systems(ctx, systems, truth, options, models)
        for report in reports.values():
            reword(report, in_options)
        if options["fail_if_worse"] and not options["different_truth"] and (differ := truth_warnings(reports)):
            raise InputError(differ[0], "; with --different-truth, --fail-if-worse judges all the same")
        with showing_progress() as watch, quietly():
            progress = functools.partial(watch, "comparing")
            passed_on = ("baseline", "test", "correction", "level", "seed", "missing", "power")
            arguments = {name: options[name] for name in passed_on} | {"n_rounds": options["rounds"]}
            found = compare(reports, metrics=wanted, n_threads=options["threads"], progress=progress, **arguments)
        gated = _gated_rows(found, options["fail_if_worse"], next(iter(reports.values())))
        left_out = {metric: in_options(why) for metric, why in found.left_out.items()}
        found = dataclasses.replace(found, left_out=left_out, warnings=tuple(map(in_options, found.warnings)))
        write_comparison(found, reports, options)
        for warning in found.warnings:
            say_warning(warning)
    worse = [row for row in gated if row.verdict == "worse"]
    for row in worse:
        text = f"{row.system} is worse than {row.baseline}: {row.metric} {CELLS['difference'](row)}"
        say(one_line(f"fastrec: {text} {Direction(row.direction, row.target).of_difference}".rstrip()))
    return 1 if worse else _say_which_cannot_fail(gated, found)


def _say_which_cannot_fail(gated: Sequence[ComparisonRow], found: Comparison) -> int:
    """Return 2, and say why, if a gate could not fail, whatever the differences are; else return 0."""
    most = alpha(found.settings["level"])
    least = least_p_values(found.rows, found.settings)
    blind = next((row for row, p in zip(found.rows, least, strict=True) if p > most and row in gated), None)
    if blind is None:
        return 0
    users = f"{blind.users - blind.ties:,} of " if blind.ties and blind.ties < blind.users else ""
    why = f"its p-value is at least {blind.p_floor:.3g}, as {users}{counted(blind.users, 'user')} differ"
    if blind.p_floor <= most:
        tested = sum(not math.isnan(p) for p in least)
        why = f"{why}, before the correction for {counted(tested, 'row')}"
    help_ = in_options(what_helps([blind] if blind.p_floor > most else found.rows, found.settings))
    say(one_line(f"fastrec: --fail-if-worse {blind.metric} cannot fail: {why}; {help_}"))
    return 2


def _take_scores(options: dict[str, Any]) -> list[str]:
    """Leave one column of scores, or of predictions, in the options; return all of them if there are several."""
    several: list[str] = []
    for option in ("score_col", "prediction_col"):
        names = options[option]
        options[option] = names[0] if names else None
        if len(names) > 1:
            several = list(names)
    if len({*several}) < len(several):
        twice = next(name for name in several if several.count(name) > 1)
        raise click.UsageError(f"two systems have the scores of the column {twice!r}")
    return several


def _evaluate_systems(
    ctx: click.Context, systems: dict[str, str], truth: str | None, options: dict[str, Any], models: list[str]
) -> tuple[dict[str, Report], list[str] | None]:
    """Evaluate the systems, or load their saved reports. `models` are the columns of scores, if there are several.

    The second result is the metrics to compare, None for all that the reports share.
    """
    saved = [name for name, path in systems.items() if is_saved(path)]
    is_log = False
    if len(saved) < len(systems):
        names = names_of_metrics(options)
        is_log = all(holds_log(path, truth, names, options) for name, path in systems.items() if name not in saved)
        check_kind(ctx, is_log=is_log)
        if models and not is_log:
            raise click.UsageError("several columns of scores are for a LOG")
        if options["row_key"] and (saved or models):
            raise click.UsageError("--row-key is for several LOGs, none of them a saved report")
        take_policies(ctx, options)
        options |= {"fail_under": (), "curves": None, "per_user": None}
        if not is_log or saved:  # reports are compared over users
            options["user_col"] = options["user_col"] or ("user_id",)
        named = planned(options, usual_metrics(options) if is_log else None)
        check_named("--fail-if-worse", options["fail_if_worse"], named)
        wanted = list(named) if saved and options["metrics"] else None
    else:
        _refuse_evaluating(ctx)
        wanted = names_of_metrics(options) or None
    check_outputs([*systems.values(), truth, *paths_of(options)], options)
    if is_log and not saved:
        return dict(zip(models or systems, _evaluate_logs(list(systems.values()), models, options), strict=True)), None
    reports = {}
    with the_same_files(path for path in (truth, *paths_of(options)) if path is not None):
        for name, path in systems.items():
            if name in saved:
                reports[name] = _load_values(path)
                try:
                    for metric in (*(wanted or ()), *options["fail_if_worse"]):
                        reports[name].name_of(metric)
                except MetricNotFoundError as error:
                    raise InputError(path, ": ", error.text) from error
            else:
                alone = options | {"output": None, "html": None, "format_": "table"}
                found = evaluate_any(path, truth, alone, is_log=is_log, per_user=True)
                reports[name] = found.report
    return reports, wanted


def _evaluate_logs(paths: list[str], models: list[str], options: dict[str, Any]) -> list[Report]:
    """Evaluate logs with the same rows, or columns of scores of one log."""
    from fastrec.files.paired import evaluate_paired

    check_groupings(options)
    named = planned(options, usual_metrics(options))
    calls = list(named.values())
    with showing_progress() as watch, quietly(), naming_options(hints_of_log(options, calls)):
        watch("reading")
        keys = tuple(dict.fromkeys(options["row_key"]))
        columns = dataclasses.replace(columns_of_log(options, calls), others=tuple(models[1:]), keys=keys)
        make = make_scorer(named, options, per_user=lambda _: True)
        return evaluate_paired(make, paths, options["users"], columns, resources_of(options, watch))


def _refuse_evaluating(ctx: click.Context) -> None:
    """Reject options of an evaluation, which saved reports do not get."""
    for param in ctx.command.params:
        if (
            param.name not in REPORT_OPTIONS
            and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        ):
            raise click.UsageError(f"{param.opts[0]} is for files to evaluate, but all systems are saved reports")


def _load_values(path: str) -> Report:
    """Load a saved report that has values per user."""
    report = load(path)
    if not report.has_values:
        raise InputError(path, ": the report has no values per user, which compare needs; save it with evaluate --save")
    return report


def _gated_rows(found: Comparison, metrics: Sequence[str], report: Report) -> list[ComparisonRow]:
    """Return the rows over all users of the metrics that must not get worse."""
    names = [report.name_of(metric) for metric in metrics]
    for name in names:
        if name in found.left_out:
            raise InputError(f"--fail-if-worse {name}: ", found.left_out[name])
    for row in found.rows:
        if row.metric in names and row.direction == "none":
            raise click.UsageError(
                f"--fail-if-worse {row.metric}: the metric declares neither higher nor lower values as better"
            )
        if row.metric in names and math.isnan(row.p_value):
            few = "too few for a test"
            if row.users > 1 and row.metric in found.settings.get("clustered", ()):
                few = "fewer than two of them with rows of a class"
            users = counted(row.users, "user")
            raise InputError(f"--fail-if-worse {row.metric}: {row.system} and {row.baseline} share {users}, {few}")
    return [row for row in found.rows if row.metric in names]


@program.command()
@click.argument("file", type=click.Path())
@with_options(output_options("report"), HTML, PAPER, FAIL_UNDER)
def report(file: str, **options: Any) -> int:
    """Print a saved report.

    FILE is from --save, -o FILE.fastrec or Report.save; - is standard input.

    \b
    fastrec report monday.fastrec
    fastrec report monday.fastrec -o monday.html --title "Monday's model"
    """  # noqa: D301 - a backspace tells click to keep the lines
    choose_format(options, "report")
    name_files(options, {"FILE": file})
    with open_inputs({"FILE": file}, None) as inputs:
        path = inputs["FILE"] or ""
        check_outputs([path], options)
        found = load(path)
    for threshold in options["fail_under"]:
        refuse_floor(threshold.metric, known_call(found.name_of(threshold.metric)))
    write_evaluated(found, options)
    for warning in found.warnings:
        say_warning(warning)
    return missed_floors(found, options["fail_under"])
