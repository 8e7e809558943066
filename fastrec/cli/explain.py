"""`fastrec explain`: why another tool gives another number."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.cli.completion import complete_metrics, complete_tools
from fastrec.cli.output import check_outputs, write_explanation

if TYPE_CHECKING:
    from fastrec.explanation.explanation import Explanation
from fastrec.cli.evaluate import check_kind, column_of, has_ratings, holds_log, open_files, paths_of, quietly
from fastrec.cli.group import ARGUMENTS, in_options, program, showing_progress
from fastrec.cli.options import COLUMN_OPTIONS, POLICIES, RESOURCES, WEIGHT, choose_format, output_options, with_options


@program.command()
@click.argument("metric", shell_complete=complete_metrics)
@click.argument("recs", type=click.Path(), required=False, metavar="[RECS|LOG]")
@click.argument("truth", type=click.Path(), required=False)
@click.option(
    "--like",
    multiple=True,
    metavar="TOOL",
    help="A tool to compare with; may be repeated.  [default: all with such a metric]",
    shell_complete=complete_tools,
)
@click.option(
    "--show-users",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of users to show per tool.  [default: 5 with --like, else 0]",
)
@with_options(COLUMN_OPTIONS, WEIGHT, POLICIES, output_options("explanation"), RESOURCES)
@click.pass_context
def explain(ctx: click.Context, /, metric: str, recs: str | None, truth: str | None, **options: Any) -> None:
    """Explain why other tools give another number for METRIC.

    The definitions of the tools are shown beside that of fastrec. With RECS and TRUTH, or a LOG, so are the numbers,
    the effect of each option that differs, and the users that differ most. An option such as --ties or --no-truth
    applies to fastrec and all tools.

    Numbers of sampled lists, in which an item is ranked among a few drawn items, are much higher than those of the
    whole catalogue: see --negatives and --sampled-from of fastrec evaluate.

    \b
    fastrec explain ndcg@10
    fastrec explain ndcg@10 --like recbole --like rectools
    fastrec explain map@10 recs.parquet truth.parquet --like trec_eval
    fastrec explain gauc log.parquet --label-col clicked --like torchmetrics
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.explanation.explain import explain

    choose_format(options, "explanation")
    ours = metric
    if recs is not None:
        ours = explain(metric, like=options["like"] or None).metric  # finds a typo before reading any file
    with open_files({"LOG" if truth is None else "RECS": recs, "TRUTH": truth}, options) as inputs:
        recs, truth = inputs.values()
        check_outputs([recs, truth, *paths_of(options)], options)
        arguments = {}
        if recs is not None:
            is_log = holds_log(recs, truth, [ours], {**options, "like": None})
            check_kind(ctx, is_log=is_log)
            arguments = _arguments_of_files(ctx, options)
        with showing_progress() as watch, quietly():
            if recs is not None:
                watch("reading")
                arguments["progress"] = functools.partial(watch, "evaluating")
            why = explain(metric, recs, truth, like=options["like"] or None, n_users=options["show_users"], **arguments)
    write_explanation(_in_options(why), options)


def _in_options(why: Explanation) -> Explanation:
    """Return the explanation with arguments of Python as options in its warnings and problems."""
    sides = {tool: dataclasses.replace(side, problem=in_options(side.problem)) for tool, side in why.sides.items()}
    return dataclasses.replace(why, sides=sides, warnings=tuple(map(in_options, why.warnings)))


def _arguments_of_files(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `evaluate_files` for the options given."""
    if has_ratings(options):
        options |= {
            "label_col": column_of(options, "target_col", "target"),
            "score_col": column_of(options, "prediction_col", "prediction"),
        }
    given = {
        name: options[option]
        for name, option in ARGUMENTS.items()
        if options.get(option) is not None and ctx.get_parameter_source(option) is not ParameterSource.DEFAULT
    }
    users = options["user_col"]
    return given | ({"user": users[0] if len(users) == 1 else list(users)} if users else {})
