"""`fastrec drift`: logs of lists in time."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import click

from fastrec.cli.evaluate import column_of, naming_options, open_files, paths_of, quietly
from fastrec.cli.group import in_options, program, say_warning, showing_progress
from fastrec.cli.options import (
    HTML,
    INPUT_OPTIONS,
    RESOURCES,
    argument,
    choose_format,
    column,
    output_options,
    resources_of,
    systems_argument,
    with_options,
)
from fastrec.cli.output import check_outputs, write_drift
from fastrec.exceptions import InputError

SIDES = (
    *(argument(name, type=click.Path(), metavar="FILE") for name in ("history", "items")),
    argument("n_items", type=click.IntRange(min=1), metavar="N"),
    click.option("--by", multiple=True, metavar="NAME", help="Column of --items that holds segments; may be repeated."),
    click.option("--provider", metavar="NAME", help="Column of --items that holds providers, such as sellers."),
    click.option("--sep", metavar="TEXT", help="Text between the labels of one item in --items, such as '|'."),
)


@program.command(short_help="Compare lists of several days in order of time.")
@systems_argument("logs", "[NAME=]RECS ...")
@click.option("-k", "--k", "cutoff", type=click.IntRange(min=1), required=True, metavar="K", help="Cut-off of lists.")
@with_options(SIDES, tuple(map(column, ("user", "item", "rank", "score"))), INPUT_OPTIONS)
@with_options(output_options("drift"), HTML, RESOURCES)
def drift(logs: dict[str, str], **options: Any) -> None:
    """Compare lists in the order of time: does the recommender narrow what it shows?

    Give each log as NAME=FILE, or as FILE, which names it after the file, the oldest first. A file is read as in
    `fastrec evaluate`. --history holds interactions from before the first log: popularity is counted there.

    \b
    fastrec drift day1.parquet day2.parquet day3.parquet -k 10 --n-items 50000
    fastrec drift day?.parquet -k 10 --history train.parquet --items shop.parquet
    fastrec drift old=a.csv new=b.csv -k 5 --items shop.csv --by genre -o d.html
    """  # noqa: D301, D400 - a backspace tells click to keep the lines
    from fastrec.feedback.drift import check_logs
    from fastrec.feedback.measure import Question
    from fastrec.files.columns import ListColumns
    from fastrec.files.drift import drift_of_files

    choose_format(options, "drift")
    _refuse_one(logs)
    check_logs(len(logs))
    with open_files(dict(logs), options) as inputs:
        paths = {name: path for name, path in inputs.items() if path is not None}
        check_outputs([*paths.values(), *paths_of(options)], options)
        others = {name: options[name] for name in ("history", "items") if options[name] is not None}
        given = {name: options[name] for name in ("by", "provider", "sep", "n_items")}
        wanted = Question(options["cutoff"], **given, has_history="history" in others, n_threads=options["threads"])
        columns = ListColumns(
            users=(column_of(options, "user_col", "user_id"),),
            item=column_of(options, "item_col", "item_id"),
            rank=options["rank_col"],
            score=options["score_col"],
        )
        with showing_progress() as watch, quietly(), naming_options():
            watch("reading")
            found = drift_of_files(paths, others, wanted, columns, resources_of(options, watch))
        found = dataclasses.replace(found, warnings=tuple(map(in_options, found.warnings)))
        write_drift(found, options)
        for warning in found.warnings:
            say_warning(warning)


def _refuse_one(logs: Mapping[str, str]) -> None:
    """Raise InputError if the one log is a folder or a pattern, which may hold the logs that are meant."""
    path = next(iter(logs.values()))
    if len(logs) > 1 or not (set(path) & set("*?[") or os.path.isdir(path)):
        return
    what, instead = ("folder", "name its files") if os.path.isdir(path) else ("pattern", "write it without quotes")
    raise InputError(
        "drift needs two logs or more, in the order of time; found 1: ",
        path,
        f" is a {what}, read as one log; {instead}",
    )
