"""`fastrec top-items`: the items with the highest scores of a model in files."""

from __future__ import annotations

from typing import Any

import click

from fastrec.cli.evaluate import column_of, has_factors, naming_options, paths_of, quietly
from fastrec.cli.group import program, showing_progress
from fastrec.cli.options import (
    INPUT_OPTIONS,
    MODEL_OPTIONS,
    RESOURCES_IN_MEMORY,
    LocalPath,
    column,
    resources_of,
    with_options,
)
from fastrec.cli.output import check_outputs
from fastrec.runtime.extras import require
from fastrec.runtime.outputs import atomic_write


@program.command("top-items", short_help="List the best K items of each user from factors.")
@with_options(MODEL_OPTIONS)
@click.option("-k", "--k", "cutoff", type=click.IntRange(min=1), required=True, metavar="K", help="Items per user.")
@click.option(
    "--exclude", type=click.Path(), metavar="FILE", help="Path of seen items (user, item), which are not listed."
)
@with_options((column("user"), column("item")))
@click.option(
    "-o",
    "--output",
    type=LocalPath(),
    required=True,
    metavar="FILE",
    help="Write the lists to FILE, which ends in .parquet.",
)
@with_options(INPUT_OPTIONS, RESOURCES_IN_MEMORY)
def top_items(**options: Any) -> None:
    """List the K items with the highest scores of each user, exactly, from factors.

    The rows of the Parquet file have a user, an item, a rank from 1 and a score. Equal scores are in the order of the
    item factors. Without ids, users and items are row numbers from 0.

    \b
    fastrec top-items --user-factors u.npy --item-factors i.npy -k 9 -o l.parquet
    """  # noqa: D301 - a backspace tells click to keep the lines
    from fastrec.files.columns import ListColumns
    from fastrec.files.models import read_factors, top_items_of_factors

    if options["exclude"] == "history":  # the name of a file, as there is no history
        options["exclude"] = "./history"
    if not has_factors(options):
        raise click.UsageError("--user-factors and --item-factors are needed")
    if not options["output"].lower().endswith(".parquet"):
        raise click.UsageError(f"--output {options['output']}: the name must end in .parquet")
    user, item = column_of(options, "user_col", "user_id"), column_of(options, "item_col", "item_id")
    if len({user, item, "rank", "score"}) < 4:
        raise click.UsageError(
            f"the columns of users, items, 'rank' and 'score' must differ, found {user!r} and {item!r}"
        )
    check_outputs(paths_of(options), options)
    parquet = require("pyarrow.parquet", "cli", what="writing Parquet")
    with showing_progress() as watch, quietly(), naming_options():
        watch("reading")
        factors = read_factors(options["user_factors"], user), read_factors(options["item_factors"], item)
        found = top_items_of_factors(
            factors,
            options["cutoff"],
            options["exclude"],
            ListColumns(users=(user,), item=item),
            resources_of(options, watch),
        )
        with atomic_write(options["output"]) as stream:
            parquet.write_table(found, stream)
