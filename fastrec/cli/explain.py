"""`fastrec explain`: why the number of another tool differs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.cli.completion import complete_metrics, complete_tools
from fastrec.cli.output import (
    check_outputs,
    write_explanation,
)

if TYPE_CHECKING:
    from fastrec.explanation.explanation import Explanation
from fastrec.cli.evaluate import check_kind, column_of, has_ratings, open_files, quietly
from fastrec.cli.group import ARGUMENTS, in_options, program, showing_progress
from fastrec.cli.options import COLUMN_OPTIONS, POLICIES, RESOURCES, WEIGHT, choose_format, output_options, with_options

__all__ = []


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
@with_options(COLUMN_OPTIONS, WEIGHT, POLICIES, output_options("explanation"), RESOURCES)
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

    choose_format(options, "explanation")
    if recs is not None:
        check_kind(ctx, is_log=truth is None)
        explain(metric, like=options["like"] or None)  # a typo is found before any file is read
    with open_files({"LOG" if truth is None else "RECS": recs, "TRUTH": truth}, options) as inputs:
        recs, truth = inputs.paths.values()
        check_outputs([recs, truth, options["exclude"]], options)
        arguments = {} if recs is None else _arguments_of_files(ctx, options, is_log=truth is None)
        with showing_progress() as watch, quietly():
            if recs is not None:
                watch("reading")
                arguments["progress"] = functools.partial(watch, "evaluating")
            why = explain(metric, recs, truth, like=options["like"] or None, n_users=options["show_users"], **arguments)
        why = _reworded(why, lambda text: in_options(inputs.shown(text)))
    write_explanation(why, options)


def _reworded(why: Explanation, change: Callable[[str], str]) -> Explanation:
    """The explanation with other words in its warnings and in why there is no number."""
    sides = {tool: dataclasses.replace(side, problem=change(side.problem)) for tool, side in why.sides.items()}
    return dataclasses.replace(why, sides=sides, warnings=tuple(map(change, why.warnings)))


def _arguments_of_files(ctx: click.Context, options: dict[str, Any], *, is_log: bool) -> dict[str, Any]:
    """Arguments of `evaluate_files` for the options that were given."""
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
    return given | ({"user": (list(users) if is_log else users[0])} if users else {})
