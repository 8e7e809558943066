"""Commands about fastrec itself: its metrics, an example, completion, compilation."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from fastrec.cli.completion import SHELLS, complete_metrics, script
from fastrec.cli.draw import draw_demo, draw_metrics, draw_one_metric
from fastrec.cli.output import (
    emit,
)

if TYPE_CHECKING:
    from rich.console import Console

from fastrec.cli.group import program, showing_progress

__all__ = []


@program.command()
@click.argument("name", required=False, shell_complete=complete_metrics)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def metrics(name: str | None, format_: str) -> None:
    """List the metrics, or tell everything about one.

    A name that lists and scored rows share, such as precision, is told about twice.
    """
    from fastrec.metrics.calls import catalogue, parse

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

    with showing_progress() as watch:
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

    with showing_progress() as watch:
        precompile.warmup(what, progress=lambda done, total: watch(f"compiling, {done} of {total} done"))
