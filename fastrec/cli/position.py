"""`fastrec ctr` and `fastrec position-bias`: clicks by rank of a log of impressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fastrec.cli.evaluate import naming_options, open_files
from fastrec.cli.group import program, showing_progress
from fastrec.cli.options import (
    HTML,
    INPUT_OPTIONS,
    RESOURCES,
    choose_format,
    column,
    output_options,
    resources_of,
    with_options,
)
from fastrec.cli.output import check_outputs, write_curve

if TYPE_CHECKING:
    from fastrec.files.resources import Resources

LEVEL = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="Level of the intervals.",
)
COLUMNS = (
    click.option("--label-col", metavar="NAME", default="label", help="Column of clicks, 0 or 1.  [default: label]"),
    click.option("--rank-col", metavar="NAME", default="rank", help="Column of ranks, from 1.  [default: rank]"),
)
OUTPUT = (
    *output_options("curve"),
    *HTML,
    click.option("--plot", type=click.Path(), metavar="FILE", help="Also draw the curve: .png, .pdf or .svg."),
)
HINTS = {
    "label": "--label-col names the column of clicks",
    "rank": "--rank-col names the column of ranks",
    "query": "--query-col names the column of queries",
    "row_by": "--row-by names columns of groups",
}


@program.command()
@click.argument("log", type=click.Path(), metavar="LOG")
@with_options(COLUMNS, (column("user", multiple=True),))
@click.option(
    "--row-by", multiple=True, metavar="NAME", help="Column of groups of rows, such as a device; may be repeated."
)
@with_options((LEVEL, *INPUT_OPTIONS), OUTPUT, RESOURCES)
def ctr(log: str, **options: Any) -> None:
    """Count impressions and clicks by rank.

    LOG has one row per impression, with its rank and whether it was clicked. With a column of users, user_id if the
    file has it, intervals take clicks of one user as related. A falling curve alone is not position bias: items differ
    by rank.

    \b
    fastrec ctr log.parquet --rank-col position
    fastrec ctr log.csv --row-by device --plot clicks.png -o clicks.html
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.files.columns import ImpressionColumns
    from fastrec.files.positions import ctr_of_file

    columns = ImpressionColumns(
        label=options["label_col"],
        rank=options["rank_col"],
        users=tuple(dict.fromkeys(options["user_col"])) or None,
        groupings=tuple(dict.fromkeys(options["row_by"])),
    )
    _write(log, options, lambda path, resources: ctr_of_file(path, columns, options["level"], resources))


@program.command("position-bias", short_help="Estimate how much each rank is examined.")
@click.argument("log", type=click.Path(), metavar="LOG")
@with_options(COLUMNS)
@click.option("--query-col", metavar="NAME", default="query_id", help="Column of queries.  [default: query_id]")
@click.option("--item-col", metavar="NAME", default="item_id", help="Column of items.  [default: item_id]")
@click.option(
    "--method",
    type=click.Choice(["ctr", "pivot", "adjacent", "em"]),
    default="pivot",
    show_default=True,
    help="ctr: rates, for random orders; pivot: items seen at a rank and at rank 1; adjacent: at neighbouring ranks; "
    "em: expectation maximisation.",
)
@click.option("--rounds", type=click.IntRange(min=1), metavar="N", help="Rounds of em.  [default: 50]")
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help="Draws of queries for the intervals; 0: no intervals.  [default: 1000, em: 200]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of the draws."
)
@with_options((LEVEL, *INPUT_OPTIONS), OUTPUT, RESOURCES)
def position_bias(log: str, **options: Any) -> None:
    """Estimate how much each rank is examined, relative to rank 1.

    LOG has one row per impression, with its query, item and rank, and whether it was clicked. Items that were shown
    at several ranks tell the effect of the rank. A rank that no item connects to rank 1 has no value.

    \b
    fastrec position-bias log.parquet --query-col session_type --rank-col position
    fastrec position-bias log.csv --method em --samples 0 --format json
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.counterfactual.position import bias_settings
    from fastrec.files.columns import ImpressionColumns
    from fastrec.files.positions import bias_of_file

    asked = {"n_rounds": "rounds", "n_samples": "samples", "method": "method", "level": "level", "seed": "seed"}
    settings = bias_settings(**{name: options[own] for name, own in asked.items()})
    columns = ImpressionColumns(
        label=options["label_col"], rank=options["rank_col"], query=options["query_col"], item=options["item_col"]
    )
    _write(log, options, lambda path, resources: bias_of_file(path, columns, settings, resources))


def _write(log: str, options: dict[str, Any], count: Callable[[str, Resources], Any]) -> None:
    """Count a file, and write the result as the options ask."""
    choose_format(options, "curve")
    with open_files({"LOG": log}, options) as inputs:
        (path,) = inputs.values()
        assert path is not None
        check_outputs([path], options)
        with showing_progress() as watch, naming_options(HINTS):
            watch("reading")
            found = count(path, resources_of(options, watch))
    if options["plot"] is not None:
        found.plot().figure.savefig(options["plot"])
    write_curve(found, options)
