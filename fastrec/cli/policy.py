"""`fastrec policy-value`: what another ranking would have earned."""

from __future__ import annotations

from typing import Any

import click

from fastrec.cli.evaluate import column_of, naming_options, open_files, quietly
from fastrec.cli.group import program, say_warning, showing_progress
from fastrec.cli.options import (
    HTML,
    INPUT_OPTIONS,
    RESOURCES,
    choose_format,
    output_options,
    resources_of,
    with_options,
)
from fastrec.cli.output import check_outputs, write_policy

HINTS = {
    "reward": "--reward-col names the column of rewards, such as clicks",
    "pscore": "--pscore-col names the column of logged propensities",
    "new_pscore": "--new-pscore-col names the column of propensities of the new policy",
    "slate": "--slate-col names the column of slates",
    "user": "--user-col names the column of users",
    "baseline_pscore": "--baseline-pscore-col names the column of propensities of the baseline",
}


def _column(role: str, text: str, **settings: Any) -> Any:
    return click.option(f"--{role}-col", metavar="NAME", help=text, **settings)


COLUMNS = (
    _column("slate", "Column of slates.  [default: slate_id, if present, else each row is a slate]"),
    _column("rank", "Column of ranks in a slate, from 1 or 0.  [default: rank, if present, else the order of rows]"),
    _column("reward", "Column of rewards.  [default: reward]"),
    _column("pscore", "Column of the propensities of the logged policy.  [default: pscore]"),
    _column("new-pscore", "Column of the propensities of the new policy.  [default: new_pscore]"),
    _column("baseline-pscore", "Column of the propensities of a baseline.  [default: baseline_pscore, if present]"),
    _column(
        "user", "Column of users, over whom errors are.  [default: user_id, if present, else they are over slates]"
    ),
    click.option(
        "--predictions",
        nargs=2,
        metavar="NAME NAME",
        help="Columns of predicted rewards for dr and cascade_dr: of the row, and of the new policy in its place.",
    ),
)


@program.command("policy-value", short_help="Estimate what a new policy would have earned.")
@click.argument("log", metavar="LOG")
@click.option(
    "-e",
    "--estimator",
    multiple=True,
    default=("iips",),
    show_default=True,
    metavar="NAME",
    help="ips, snips, sips, iips, rips, snsips, sniips, snrips, dr or cascade_dr; may be repeated.",
)
@click.option("--clip", type=float, metavar="NUMBER", help="Largest weight; larger ones count as this.")
@with_options(COLUMNS, INPUT_OPTIONS, output_options("policy"), HTML, RESOURCES)
def policy_value(log: str, **options: Any) -> None:
    """Estimate what a new policy would have earned, from a LOG of another policy with propensities.

    LOG has a row per shown item: its reward, and its propensity under the logged and the new policy. For ips, snips,
    dr, iips (default) and sniips, this is the probability of the item at its position; for rips, snrips, sips, snsips
    and cascade_dr, that given the rows of its slate before it. They agree if rows are drawn independently. A slate is
    one list that was shown. Estimators are those of `fastrec.policy_value`.

    \b
    fastrec policy-value log.parquet
    fastrec policy-value log.parquet -e ips -e snips --clip 50
    fastrec policy-value log.csv -e rips --slate-col session --rank-col position
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.counterfactual.logged import check_clip, check_estimators
    from fastrec.files.columns import SlateColumns
    from fastrec.files.policy import policy_value_of_files

    choose_format(options, "policy")
    names, _ = check_estimators(list(options["estimator"]), options["predictions"])
    clip = check_clip(options["clip"])
    with open_files({"LOG": log}, options) as inputs:
        path = str(inputs["LOG"])
        check_outputs([path], options)
        columns = SlateColumns(
            column_of(options, "reward_col", "reward"),
            column_of(options, "pscore_col", "pscore"),
            column_of(options, "new_pscore_col", "new_pscore"),
            options["slate_col"],
            options["rank_col"],
            options["predictions"] or None,
            options["baseline_pscore_col"],
            users=None if options["user_col"] is None else (options["user_col"],),
        )
        with showing_progress() as watch, quietly(), naming_options(HINTS):
            watch("reading")
            found, hints = policy_value_of_files(path, names, clip, columns, resources_of(options, watch))
        write_policy(found, options)
        for warning in (*hints, *found.warnings):
            say_warning(warning)
