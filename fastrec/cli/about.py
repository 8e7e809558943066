"""Commands about fastrec itself: its metrics, an example, completion, compilation."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from fastrec.cli.completion import SHELLS, complete_metrics, script
from fastrec.cli.draw import draw_demo, draw_metrics, draw_one_metric
from fastrec.cli.output import emit

if TYPE_CHECKING:
    from rich.console import Console

from fastrec.cli.group import program, showing_progress


@program.command()
@click.argument("name", required=False, shell_complete=complete_metrics)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format on standard output.",
)
def metrics(name: str | None, format_: str) -> None:
    """List the metrics, or show everything about one.

    Lists and scored rows share some names, such as precision: both metrics are shown.
    """
    from fastrec.metrics.calls import catalogue, parse

    known = catalogue()
    if name is not None:
        found = [metric for metric in known if metric["name"] == name]
        if not found:
            # "ndcg(gain=exp2)@10" shows ndcg; `parse` rejects an unknown name with a suggestion.
            asked = parse(name).metric
            found = [metric for metric in known if (metric["name"], metric["kind"]) == (asked.name, asked.family.kind)]
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
    help="Number of users.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="S",
    help="Seed; the same seed gives the same files.",
)
@click.option("-o", "--output", default="fastrec-demo", show_default=True, metavar="DIR", help="Folder for the files.")
def demo(users: int, seed: int, output: str) -> None:
    """Compare two recommenders on the data of a made-up shop."""
    from fastrec.comparison.compare import compare
    from fastrec.demo import evaluate_demo, write_demo

    with showing_progress() as watch:
        watch("generating users, items and two recommenders")
        paths = write_demo(output, n_users=users, seed=seed)
        watch("evaluating both")
        reports = evaluate_demo(paths)
        watch("comparing")
        found = compare(reports, next(iter(reports)))
        about = {"data": f"a made-up shop, {users:,} users, seed {seed}"}
        found.to_html(os.path.join(output, "comparison.html"), title="Two recommenders of a made-up shop", about=about)
    emit(lambda console: draw_demo(console, reports, found, paths), None)


@program.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands in a shell.

    It also completes metrics with their options and cut-offs, tools and files.

    \b
    fastrec completion bash > ~/.local/share/bash-completion/completions/fastrec
    fastrec completion fish > ~/.config/fish/completions/fastrec.fish
    echo 'eval "$(fastrec completion zsh)"' >> ~/.zshrc
    """  # noqa: D301 - a backspace tells click to keep the lines
    emit(f"{script(program, shell).rstrip()}\n", None)


@program.command(short_help="Compile the kernels in advance.")
@click.argument("what", type=click.Choice(["lists", "scores", "logs", "all"]), default="all")
def warmup(what: str) -> None:
    """Compile the kernels in advance, so that no evaluation waits for them.

    lists: for recommended lists; scores: for scored rows; logs: for clicks by rank, position bias and values of
    policies; all: for all of these, the default.
    """
    from fastrec import precompile

    with showing_progress() as watch:
        precompile.warmup(what, progress=lambda done, total: watch(f"compiling, {done} of {total} done"))
