"""The group of commands, its errors, warnings and progress."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import IO, Any

import click

from fastrec._version import __version__
from fastrec.cli.output import console
from fastrec.cli.standard_input import STANDARD_INPUT, StandardInput
from fastrec.exceptions import Argument, FastrecError, Known, Listing, Name, Text, cut_line, one_line, renamed
from fastrec.inputs.sides import SIDES
from fastrec.runtime.installed import other_distribution
from fastrec.runtime.signals import exit_code, undone_by
from fastrec.show.terminal import wrap

PIPE_CLOSED = 141
NO_MEMORY = "the system gives this process no more; try fewer threads, a smaller --memory, or a higher `ulimit -v`"
HANG = "  "  # indent of the second and later lines of a message in a terminal
NARROW = 60  # columns; with fewer, progress has no times and no bar
PASSED_ON = ("min_gain", "n_items", "ties", "no_truth")
FILES_OF_LISTS = (*(name for name in SIDES if name not in ("recs", "truth")), "items")
OF_ITEMS = ("n_users", "examination", "unseen", "no_history", "no_features")
OF_SAMPLES = {  # arguments: options as click names them; --seed of other commands is that of a test
    **{name: name for name in ("negatives", "sample", "sampled_from", "correct")},
    "seed": "sample_seed",
}
LIST_OPTIONS = (
    "rank_col",
    "gain_col",
    "propensity_col",
    "logged_rank_col",
    "subtopic_col",
    "item_sep",
    "no_recs",
    "duplicates",
    *OF_ITEMS,
    *OF_SAMPLES.values(),
    *FILES_OF_LISTS,
)
LOG_OPTIONS = (
    *("label_col", "target_col", "prediction_col", "weight_col", "one_class", "curves", "row_key", "row_by"),
)
REPORT_OPTIONS = (  # options of compare that apply to saved reports
    *("systems", "baseline", "test", "correction", "level", "rounds", "seed", "missing", "metrics"),
    *("fail_if_worse", "different_truth"),
    *("format_", "output", "html", "title", "about", "paper", "memory", "temp_dir", "threads"),
)
CONTENTS_OF_ROLES = {  # what the column of a role holds
    "user": "users",
    "item": "items",
    "rank": "ranks",
    "score": "scores",
    "gain": "gains",
    "propensity": "propensities",
    "logged_rank": "logged ranks",
    "subtopic": "subtopics",
    "target": "true ratings",
    "prediction": "predicted ratings",
    "weight": "weights",
}
COLUMNS = {
    name: f"{name}_col" for name in ("item", "rank", "score", "gain", "propensity", "logged_rank", "subtopic", "label")
}
ARGUMENTS = {  # arguments of `evaluate_files`: the option of the same meaning, as click names it
    **COLUMNS,
    "sample_weight": "weight_col",
    "n_threads": "threads",
    "temp_directory": "temp_dir",
    **{
        name: name for name in (*PASSED_ON, *LIST_OPTIONS, *LOG_OPTIONS, "input_format", "memory") if "_col" not in name
    },
}
OPTIONS = ARGUMENTS | {  # the same for arguments of any call
    "user": "user_col",
    "k": "k",
    "n_rounds": "rounds",
    **{
        name: name
        for name in ("like", "by", "users", "metrics", "missing", "level", "seed", "baseline", "test", "provider")
    },
    **{name: name for name in ("estimator", "clip", "predictions")},
}
LISTINGS = {"fastrec.catalogue()": ": fastrec metrics"}  # commands for expressions of Python


class _Program(click.Group):
    """A group of commands that reports each error in one line and an exit code, never a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run and exit, like `main` of click."""
        sys.exit(self._run(*args, **extra | {"standalone_mode": False}) or 0)

    def _run(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except click.NoSuchOption as error:
            said = error.format_message()
            return _fail(f"{said}{'' if said[-1] in '.?)' else '.'}{self._others_with(error)}")
        except click.ClickException as error:
            return _fail(error.format_message())
        except FastrecError as error:  # before OSError, since the error for a missing file is both
            return _fail(error.text)
        except BrokenPipeError:
            _abandon(sys.stdout)
            return PIPE_CLOSED
        except OSError as error:
            _abandon(sys.stdout)
            reason = error.strerror or str(error)
            return _fail(reason if not error.filename else f"{error.filename}: {reason}")
        except MemoryError as error:
            why = next((part for part in error.args if isinstance(part, Text)), str(error))
            return _fail(Text("not enough memory: ", why or NO_MEMORY))
        return code

    def _others_with(self, error: click.NoSuchOption) -> str:
        """Return a sentence that names the commands that have an option, as a hint to its misuse with another."""
        names = [
            name
            for name, command in self.commands.items()
            if any(error.option_name in param.opts for param in command.params)
        ]
        return f" It is an option of: fastrec {', fastrec '.join(names)}." if names else ""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn an interrupt into our exit code before click turns it into its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(exit_code()) from None


def _fail(text: str) -> int:
    say(f"fastrec: error: {cut_line(in_options(text))}")
    return 2


def say_warning(text: str) -> None:
    """Print a warning, with arguments of Python as options."""
    say(f"fastrec: warning: {one_line(in_options(text))}")


def in_options(text: str) -> str:
    """Return a text of the library with arguments of Python as options of the command."""
    return renamed(text, _in_options)


def _in_options(name: Name) -> object:
    """Return `ties='input' or 'worst'` as --ties input or worst."""
    if isinstance(name, Argument) and name.name in OPTIONS:
        flag = "-k" if name.name == "k" else f"--{OPTIONS[name.name].replace('_', '-')}"
        if name.values in ((), (...,)):
            return flag
        if isinstance(name.values[0], list):  # an option that is given several times
            return " ".join(f"{flag} {shlex.quote(value)}" for value in name.values[0])
        return f"{flag} {name.listed(shlex.quote if name.name in COLUMNS else str)}"
    if isinstance(name, Known):
        return in_options(name.text)
    if isinstance(name, Listing):
        return LISTINGS.get(name.code, "")
    return STANDARD_INPUT if isinstance(name, StandardInput) else name


def say(text: str) -> None:
    """Print a line on standard error, wrapped to a terminal. A failure to print it does not change the exit code."""
    try:
        lines = wrap(text, shutil.get_terminal_size().columns, HANG) if sys.stderr.isatty() else [text]
        click.echo("\n".join(lines), err=True)
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: IO[str]) -> None:
    """Redirect a broken stream, so that the last flush of the interpreter does not fail."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool, /) -> None:  # noqa: FBT001 - click passes it
    if is_wanted and not ctx.resilient_parsing:
        click.echo(f"fastrec {__version__}")
        if found := other_distribution():
            say(f"fastrec: {found}")
        ctx.exit()


@click.group(cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def program(ctx: click.Context, /) -> None:
    """Exact offline evaluation of recommenders, at memory speed."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


COUNTED = {"scoring": "users"}
"""What stages count, if not rows."""


@contextlib.contextmanager
def showing_progress() -> Iterator[Callable[..., None]]:
    """Yield a function that shows the stage, rows done and total rows in a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = console(sys.stderr)
    stage, pace = TextColumn("{task.description}"), TextColumn("{task.fields[pace]}")
    is_narrow = shown.width < NARROW
    between = () if is_narrow else (TimeElapsedColumn(), BarColumn(bar_width=None))
    columns = (SpinnerColumn(), stage, *between, pace)
    with Progress(*columns, console=shown, transient=True) as bar, undone_by(bar.stop):
        bar.add_task("", total=None, pace="")
        (task,) = bar.tasks

        def watch(stage: str, done: int = 0, total: int | None = None) -> None:
            if stage != task.description:
                bar.reset(task.id, total=total, description=stage, pace="")
            bar.update(task.id, completed=done)
            if total is not None:
                share, speed = f"{done / max(total, 1):.0%}", (task.speed, task.time_remaining)
                bar.update(task.id, pace=share if is_narrow else _pace(done, total, *speed, COUNTED.get(stage, "rows")))

        yield watch


def _pace(done: int, total: int, speed: float | None, left: float | None, counted: str = "rows") -> str:
    """Return the rows done and, if known, the rows per second and the time left."""
    pace = f"{_short(done)} of {_short(total)} {counted}"
    if speed is not None and left is not None:
        pace += f", {_short(speed)}/s, {timedelta(seconds=math.ceil(left))} left"
    return pace


def _short(number: float) -> str:
    """Return a number with four digits at most, as in 12.3M."""
    from rich.filesize import pick_unit_and_suffix

    unit, letter = pick_unit_and_suffix(int(number), ["", "k", "M", "G"], 1000)
    return f"{number / unit:.{0 if unit == 1 else 1}f}{letter}"
