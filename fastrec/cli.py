"""The command line: arguments in, text out. What it computes, `fastrec.evaluate` computes.

Results go to standard output; progress, warnings and errors to standard error. The exit code is 0, or 1 when
a `--fail-under` is not met, or 2 for wrong usage and bad data (one line, no traceback). Whatever is slow to
import is imported inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

from fastrec._version import __version__
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, require

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fastrec.files import Logs
    from fastrec.registry import Call
    from fastrec.report import Estimate, Report

INTERRUPTED = 130
PIPE_CLOSED = 141
PASSED_ON = ("min_gain", "n_items", "ties", "no_truth", "no_recs", "duplicates")
FORMATS = ("table", "json", "csv", "md")
WIDTH = 80
DASH = "–"


class _Program(click.Group):
    """A group whose every error is one line on standard error and an exit code, never a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run and exit, as click's own `main` does."""
        sys.exit(self._run(*args, **extra | {"standalone_mode": False}) or 0)

    def _run(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            return _fail(error.format_message())
        except BrokenPipeError:
            _abandon_stdout()
            return PIPE_CLOSED
        except OSError as error:
            _abandon_stdout()
            reason = error.strerror or str(error)
            return _fail(reason if not error.filename else f"{error.filename}: {reason}")
        except FastrecError as error:
            return _fail(str(error))
        except MemoryError as error:
            return _fail(f"not enough memory: {error}")
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors that click would turn into something else become ours here."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None


def _fail(message: str) -> int:
    click.echo(f"fastrec: error: {_one_line(message)}", err=True)
    return 2


def _warn(message: str) -> None:
    click.echo(f"fastrec: warning: {_one_line(message)}", err=True)


def _one_line(text: str) -> str:
    """Line ends become spaces, and what a terminal would obey is shown instead."""
    joined = " ".join(line.strip() for line in text.splitlines())
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in joined)


def _abandon_stdout() -> None:
    """Nobody reads on: let the interpreter's last flush go nowhere instead of failing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Entry point of the `fastrec` command."""
    warnings.showwarning = lambda message, *_, **__: _warn(str(message))
    if hasattr(sys.stdout, "reconfigure"):  # where a sign cannot be shown, "?" is better than an error
        sys.stdout.reconfigure(errors="replace")
    program(prog_name="fastrec")


@click.group(cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="fastrec %(version)s")
@click.pass_context
def program(ctx: click.Context, /) -> None:
    """Exact offline evaluation of recommenders, at memory speed."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


@dataclass(frozen=True)
class _Threshold:
    metric: str
    least: float


def _read_cutoffs(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[int]:
    """Whole numbers of at least 1, separated by commas."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part) > 0):
            raise click.BadParameter(f"{part!r}: whole numbers of at least 1 are wanted, as in 5,10,20")
    return [int(part) for part in parts]


def _read_thresholds(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[_Threshold]:
    """METRIC=NUMBER; the metric may itself have "=" in brackets."""
    thresholds = []
    for text in texts:
        metric, _equals, number = text.rpartition("=")
        try:
            least = float(number)
        except ValueError:
            least = math.nan
        if not metric or math.isnan(least):
            raise click.BadParameter(f"{text!r}: a metric and a number are wanted, as in ndcg@10=0.2")
        thresholds.append(_Threshold(metric.strip(), least))
    return thresholds


_OPTIONS = (
    click.option(
        "-m",
        "--metrics",
        multiple=True,
        metavar="NAMES",
        help="Metrics, separated by commas; may be repeated.",
    ),
    click.option(
        "-k",
        "cutoffs",
        callback=_read_cutoffs,
        multiple=True,
        metavar="K,K,...",
        help="Cut-offs for metrics without @k.",
    ),
    click.option(
        "--user-col",
        default="user_id",
        show_default=True,
        metavar="NAME",
        help="Column of user ids, in all files.",
    ),
    click.option(
        "--item-col",
        default="item_id",
        show_default=True,
        metavar="NAME",
        help="Column of item ids, in all files.",
    ),
    click.option("--rank-col", metavar="NAME", help="Column of ranks in RECS, 1 the best.  [default: rank, if there]"),
    click.option(
        "--score-col",
        metavar="NAME",
        help="Column of scores in RECS, without ranks.  [default: score, if there]",
    ),
    click.option("--gain-col", metavar="NAME", help="Column of gains in TRUTH.  [default: gain, if there]"),
    click.option("--by", multiple=True, metavar="NAME", help="Also by the values of this column; may be repeated."),
    click.option(
        "--ties",
        type=click.Choice(["expected", "input", "worst", "best", "id_asc", "id_desc", "error"]),
        default="expected",
        show_default=True,
        help="Order of equal scores.",
    ),
    click.option(
        "--no-truth",
        type=click.Choice(["skip", "zero", "nan", "error"]),
        default="skip",
        show_default=True,
        help="Users without a relevant item.",
    ),
    click.option(
        "--no-recs",
        type=click.Choice(["zero", "skip", "nan", "error"]),
        default="zero",
        show_default=True,
        help="Users with relevant items and no list.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "miss"]),
        default="error",
        show_default=True,
        help="An item twice in a list.",
    ),
    click.option(
        "--min-gain",
        type=float,
        metavar="GAIN",
        help="Least gain of a relevant item.  [default: any above 0]",
    ),
    click.option("--n-items", type=click.IntRange(min=1), metavar="N", help="Number of items in the catalogue."),
    click.option(
        "--exclude",
        type=click.Path(),
        metavar="FILE",
        help="Seen items (user, item), taken out of the lists.",
    ),
    click.option("--format", "format_", type=click.Choice(FORMATS), help="[default: by the ending of -o, else table]"),
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        metavar="FILE",
        help="Write the result there, not to standard output.",
    ),
    click.option(
        "--per-user",
        type=click.Path(),
        metavar="FILE",
        help="Also write each user's values: .csv or .parquet.",
    ),
    click.option(
        "--fail-under",
        callback=_read_thresholds,
        multiple=True,
        metavar="METRIC=NUMBER",
        help="Exit with 1 if the mean is below; may be repeated.",
    ),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads to use.  [default: all cores]"),
)


def _evaluate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@program.command()
@click.argument("recs", type=click.Path())
@click.argument("truth", type=click.Path())
@_evaluate_options
def evaluate(recs: str, truth: str, **options: Any) -> int:
    """Compare the lists in RECS with what is relevant in TRUTH.

    Both are Parquet or CSV files with one row per user and item. A list is ordered by the rank column, else
    by the score column, else as its rows stand in the file.

    \b
    fastrec evaluate recs.parquet truth.parquet -m ndcg,recall -k 5,10
    fastrec evaluate recs.csv truth.csv -m "ndcg(gain=exp2)@10" --by country
    """  # noqa: D301 - click's mark for lines to keep, a backspace
    from fastrec import api
    from fastrec.files import Columns, read_logs

    calls = _plan(options["metrics"], options["cutoffs"], options["fail_under"])
    _check_outputs([recs, truth, options["exclude"]], options["output"], options["per_user"])
    columns = Columns(
        user=options["user_col"],
        item=options["item_col"],
        rank=options["rank_col"],
        score=options["score_col"],
        gain=options["gain_col"],
        by=tuple(dict.fromkeys(options["by"])),
    )
    with _progress() as (stage, progress):
        stage("reading")
        logs = read_logs(recs, truth, columns, exclude=options["exclude"], n_threads=options["threads"])
        stage("evaluating")
        with _item_names(logs.item_texts), warnings.catch_warnings():
            # The report holds these warnings too; they are shown below, after the result.
            warnings.simplefilter("ignore", FastrecWarning)
            report = api.evaluate(
                logs.recs,
                logs.truth,
                [call.text for call in calls],
                per_user=options["per_user"] is not None,
                groups=logs.groups or None,
                user_ids=logs.user_ids,
                exclude=logs.exclude,
                n_threads=options["threads"],
                progress=progress,
                **{name: options[name] for name in PASSED_ON},
            )
    if options["per_user"] is not None:
        _write_per_user(options["per_user"], report, logs, columns.user)
    _emit(_render(report, _format_of(options["format_"], options["output"])), options["output"])
    for warning in report.warnings:
        _warn(warning)
    return _missed(report, options["fail_under"])


@contextlib.contextmanager
def _item_names(texts: Any) -> Iterator[None]:
    """Errors about items name the text of an item, which is evaluated as a code, its position in `texts`."""
    try:
        yield
    except InputError as error:
        if texts is None:
            raise
        message = re.sub(r"(?<=\bitem )\d+", lambda code: repr(texts[int(code[0])]), str(error))
        pair = r"(?<=\bitems )(\d+) and (\d+)"
        message = re.sub(pair, lambda both: " and ".join(repr(texts[int(code)]) for code in both.groups()), message)
        raise InputError(message) from None


def _plan(metrics: Sequence[str], cutoffs: Sequence[int], thresholds: Sequence[_Threshold]) -> list[Call]:
    """The metrics to compute. Unknown names and thresholds on other metrics fail here, before any reading."""
    from fastrec.registry import expand, parse, split_outside_brackets

    names = [name for text in metrics for name in split_outside_brackets(text)]
    if metrics and not names:
        raise click.UsageError("-m names no metric")
    calls = expand(names or None, cutoffs or None)
    known = [call.text for call in calls]
    for threshold in thresholds:
        if parse(threshold.metric).text not in known:
            raise click.UsageError(f"--fail-under {threshold.metric}: not evaluated here; there is {', '.join(known)}")
    return calls


def _check_outputs(inputs: Sequence[str | None], output: str | None, per_user: str | None) -> None:
    """Fail before the work rather than after it, and never write over an input."""
    if per_user is not None and not per_user.lower().endswith((".csv", ".parquet")):
        raise click.UsageError(f"--per-user {per_user}: the name must end in .csv or .parquet")
    taken = {os.path.realpath(path): path for path in inputs if path is not None}
    for path in (output, per_user):
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in taken and (os.path.isfile(real) or not os.path.exists(real)):
            raise click.UsageError(f"{path} would be written over {taken[real]}")
        if not os.path.isdir(os.path.dirname(real)):
            raise click.UsageError(f"{path}: there is no folder {os.path.dirname(real)}")
        if os.path.isdir(real):
            raise click.UsageError(f"{path}: is a folder; a file name is wanted")
        taken[real] = path


@contextlib.contextmanager
def _progress() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None] | None]]:
    """Two functions, to name the stage and to tell how far it is: a bar, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield (lambda _: None), None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield (lambda stage: bar.update(task, description=stage)), advance


def _missed(report: Report, thresholds: Sequence[_Threshold]) -> int:
    """1 if a mean is below its threshold (or there is no mean), with a line for each; else 0."""
    code = 0
    for threshold in thresholds:
        mean = report[threshold.metric]
        if not mean >= threshold.least:
            found = "has no value" if math.isnan(mean) else f"= {mean!r}"
            click.echo(f"fastrec: {threshold.metric} {found}, wanted at least {threshold.least!r}", err=True)
            code = 1
    return code


def _write_per_user(path: str, report: Report, logs: Logs, user_column: str) -> None:
    """One row per user: id, groups, and each metric's value, empty (null) where the user was not counted."""
    require("pyarrow", "cli", what="--per-user")
    import pyarrow as pa
    from pyarrow import csv as pc
    from pyarrow import parquet as pq

    from fastrec.files import output_file

    columns = {user_column: logs.user_ids, **logs.groups}
    arrays = [pa.array(values) for values in columns.values()]
    arrays += [pa.array(values, from_pandas=True) for values in report.per_user.values()]
    # Not from a dict: a column to group by may have the name of a metric.
    table = pa.Table.from_arrays(arrays, names=[*columns, *report.per_user])
    with output_file(path) as stream:
        if path.lower().endswith(".csv"):
            pc.write_csv(table, stream)
        else:
            pq.write_table(table, stream)


def _format_of(format_: str | None, output: str | None) -> str:
    ending = os.path.splitext(output or "")[1].lower().lstrip(".")
    return format_ or (ending if ending in FORMATS else "table")


def _emit(text: str | Callable[[Console], None], output: str | None) -> None:
    """Write a text, or what a function draws on a console, to a file or to standard output."""
    if callable(text) and output is None and sys.stdout.isatty():
        text(_console(sys.stdout))
        return
    if callable(text):
        drawn = io.StringIO()
        text(_console(drawn))
        text = "".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines())
    if output is None:
        click.echo(text, nl=False)
        return
    from fastrec.files import output_file

    with output_file(output) as stream:
        stream.write(text.encode())


def _console(stream: IO[str]) -> Console:
    """A console; if the stream is no terminal, without colours and 80 wide whatever the environment says."""
    from rich.console import Console

    if stream.isatty():
        return Console(file=stream, highlight=False, emoji=False)
    return Console(file=stream, highlight=False, emoji=False, force_terminal=False, width=WIDTH)


def _render(report: Report, format_: str) -> str | Callable[[Console], None]:
    if format_ == "json":
        return report.to_json(indent=2) + "\n"
    if format_ == "csv":
        return _as_csv(report)
    if format_ == "md":
        return _as_markdown(report)
    return lambda console: _draw_report(console, report)


def _as_csv(report: Report) -> str:
    rows = report.to_rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)  # noqa: PLR0124
    return text.getvalue()


def _as_markdown(report: Report) -> str:
    lines = _markdown_table(["metric", "mean", "95 % interval", "users"], _overall_rows(report))
    for grouping, by_label in report.groups.items():
        rows = [[str(label), *row] for label, estimates in by_label.items() for row in _estimate_rows(estimates)]
        lines += ["", *_markdown_table([grouping, "metric", "mean", "95 % interval", "users"], rows)]
    return "\n".join([*lines, "", *(f"- {line}" for line in _counts(report))]) + "\n"


def _markdown_table(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---:" if name in ("mean", "95 % interval", "users") else "---" for name in head]
    cells = [[_one_line(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in row] for row in (head, *rows)]
    return [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]


def _overall_rows(report: Report) -> list[list[str]]:
    return _estimate_rows(report.estimates)


def _estimate_rows(estimates: dict[str, Estimate]) -> list[list[str]]:
    return [[name, _mean(one), _interval(one), f"{one.users:,}"] for name, one in estimates.items()]


def _figures(estimate: Estimate, *numbers: float) -> list[str]:
    """Numbers with four decimals or, where these would hide the mean, with four digits."""
    plain = estimate.mean == 0 or 1e-3 <= abs(estimate.mean) < 1e6
    return [DASH if math.isnan(number) else f"{number:.4f}" if plain else f"{number:.3e}" for number in numbers]


def _mean(estimate: Estimate) -> str:
    return _figures(estimate, estimate.mean)[0]


def _interval(estimate: Estimate) -> str:
    low, high = _figures(estimate, *estimate.interval())
    return DASH if low == DASH else f"{low} {DASH} {high}"


def _with_margin(estimate: Estimate) -> str:
    mean, margin = _figures(estimate, estimate.mean, estimate.margin())
    return mean if margin == DASH else f"{mean} ±{margin}"


def _groups(report: Report) -> dict[str, dict[Any, Any]]:
    """The groups that people want to see: not the users without a label, if none of them was evaluated."""
    from fastrec.files import NO_LABEL

    return {
        grouping: {
            label: estimates
            for label, estimates in by_label.items()
            if label != NO_LABEL or any(one.users for one in estimates.values())
        }
        for grouping, by_label in report.groups.items()
    }


def _counts(report: Report) -> list[str]:
    """Who was counted and what was in the files, a line each."""
    users, data = report.users, report.data
    treated = {"skip": "left out", "zero": "counted as 0", "nan": "NaN"}
    lines = [f"{users['evaluated']:,} of {users['total']:,} users evaluated"]
    for reason, words in (("no_truth", "without a relevant item"), ("no_recs", "without a list")):
        if users[reason]:
            lines.append(f"{users[reason]:,} {words}, {treated[str(report.settings[reason])]}")
    rows = [f"{data['rec_rows']:,} rows of lists", f"{data['truth_rows']:,} of truth"]
    for key, words in (
        ("truth_rows_not_relevant", "of these not relevant"),
        ("duplicates_in_recs", "copies in lists"),
        ("duplicates_in_truth", "copies in truth"),
        ("excluded_items", "seen items taken out"),
    ):
        if data[key]:
            rows.append(f"{data[key]:,} {words}")
    lines.append(", ".join(rows))
    if not math.isnan(data["truth_items_in_recs"]):
        lines.append(f"{100 * data['truth_items_in_recs']:.1f} % of the relevant items are in the lists")
    return lines


def _table(*columns: str, left: int = 1) -> Table:
    """An empty table; the first `left` columns hold text, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for n, name in enumerate(columns):
        is_text = n < left
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    return table


def _draw_report(console: Console, report: Report) -> None:
    from rich.text import Text

    table = _table("metric", "mean", "95 % interval", "users")
    for row in _overall_rows(report):
        table.add_row(*(Text(_one_line(cell)) for cell in row))
    console.print(table)
    for grouping, by_label in _groups(report).items():
        _draw_grouping(console, grouping, by_label)
    console.print()
    for line in _counts(report):
        console.print(Text(line, style="dim"))


def _draw_grouping(console: Console, grouping: str, by_label: dict[Any, dict[str, Estimate]]) -> None:
    """A row per label and a column per metric, in as many tables as the width asks for."""
    from rich.text import Text

    labels = [_one_line(str(label)) for label in by_label]
    cells = {name: [_with_margin(one[name]) for one in by_label.values()] for name in next(iter(by_label.values()), {})}
    widths = {name: max(map(len, [name, *column])) + 3 for name, column in cells.items()}
    room = console.width - min(max(map(len, [grouping, *labels])), console.width // 2) - 12
    for shown in _fitting(widths, room):
        table = _table(_one_line(grouping), "users", *shown)
        for n, (label, estimates) in enumerate(zip(labels, by_label.values(), strict=True)):
            # Metrics with a min_gain of their own may count other users.
            counts = sorted({estimates[name].users for name in shown})
            users = DASH.join(f"{count:,}" for count in (counts[:1] if len(counts) == 1 else [counts[0], counts[-1]]))
            table.add_row(Text(label), users, *(cells[name][n] for name in shown))
        console.print()
        console.print(table)


def _fitting(widths: dict[str, int], room: int) -> list[list[str]]:
    """The names in parts whose widths add up to at most the room, at least one in each."""
    parts: list[list[str]] = []
    left = 0
    for name, width in widths.items():
        if not parts or width > left:
            parts.append([])
            left = room
        parts[-1].append(name)
        left -= width
    return parts


@program.command()
@click.argument("name", required=False)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def metrics(name: str | None, format_: str) -> None:
    """List the metrics, or tell everything about one."""
    from fastrec.registry import catalogue

    known = {metric["name"]: metric for metric in catalogue()}
    if name is not None and name not in known:
        # Asking for "ndcg(gain=exp2)@10" is asking for ndcg; what is not known fails with a suggestion.
        from fastrec.registry import parse

        name = parse(name).metric.name
    if format_ == "json":
        click.echo(json.dumps(list(known.values()) if name is None else known[name], indent=2, ensure_ascii=False))
    elif name is None:
        _emit(lambda console: _draw_metrics(console, list(known.values())), None)
    else:
        _emit(lambda console: _draw_metric(console, known[name]), None)


def _draw_metrics(console: Console, known: list[dict[str, Any]]) -> None:
    from rich.text import Text

    table = _table("metric", "formula, source", "options, the default marked *", left=3)
    for metric in known:
        formula = Text(metric["formula"]).append(f"\n{metric['source']}", style="dim")
        table.add_row(Text(metric["name"], style="bold"), formula, _option_grid(metric, leave_out="min_gain"))
    console.print(table)
    console.print(
        "\nEvery metric takes a cut-off and min_gain, the least gain of a relevant item:\n"
        "ndcg(gain=exp2, min_gain=3)@10. Everything about one: fastrec metrics ndcg"
    )


def _option_grid(metric: dict[str, Any], leave_out: str = "") -> Table:
    """A line per option: its name, its values, the default bold and marked."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for name, option in metric["options"].items():
        if name == leave_out:
            continue
        default = option["default"]
        values = list(option["choices"])
        if "number" in option["kind"]:
            values.append("a number" if default is None else f"{default:g}")
        if "table" in option["kind"]:
            values.append("[table]")
        line = Text("")
        for n, value in enumerate(values):
            marked = default is not None and (value == default or not option["choices"])
            line.append(" | " if n else "").append(f"{value}*" if marked else value, style="bold" * marked)
        grid.add_row(Text(name, style="cyan"), line.append(", required" if option["required"] else ""))
    return grid


def _draw_metric(console: Console, metric: dict[str, Any]) -> None:
    """Everything the catalogue knows about one metric."""
    from rich.text import Text

    low, high = metric["range"]
    bounds = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    table = _table("", "", left=2)
    table.show_header = False
    table.add_row(Text("formula"), Text(metric["formula"]))
    table.add_row(Text("range"), Text(f"{bounds}, {'higher' if metric['higher_is_better'] else 'lower'} is better"))
    table.add_row(Text("options"), _option_grid(metric))
    table.add_row(Text("source"), Text(metric["source"]))
    console.print(Text(metric["name"], style="bold"))
    console.print(table)
    for paragraph in metric["doc"].split("\n\n"):
        console.print()
        # Prose is wrapped anew to the width at hand; examples and tables keep their lines.
        is_prose = not any(line.startswith((" ", ">>>", "---")) for line in paragraph.splitlines())
        console.print(Text(" ".join(paragraph.split()) if is_prose else paragraph), soft_wrap=not is_prose)


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
    from fastrec.demo import evaluate_demo, write_demo

    with _progress() as (stage, _):
        stage("making up users, items and two recommenders")
        paths = write_demo(output, n_users=users, seed=seed)
        stage("evaluating both")
        reports = evaluate_demo(paths)
    _emit(lambda console: _draw_demo(console, reports, paths), None)


def _draw_demo(console: Console, reports: dict[str, Report], paths: dict[str, str]) -> None:
    """Both recommenders side by side, over all users and by segment."""
    from rich.text import Text

    (first, one), (second, other) = reports.items()
    folder, names = os.path.dirname(paths[first]), [os.path.basename(path) for path in paths.values()]
    console.print(Text(f"In {folder}: {', '.join(names)}\n"))
    table = _table("metric", first, second, "difference")
    for name in one:
        table.add_row(name, *_side_by_side(one.estimates[name], other.estimates[name]))
    console.print(table)
    main_metric = next(iter(one))
    for grouping, by_label in _groups(one).items():
        table = _table(f"{main_metric} by {grouping}", "users", first, second, "difference")
        for label, estimates in by_label.items():
            left, right = estimates[main_metric], other.groups[grouping][label][main_metric]
            table.add_row(Text(label), f"{left.users:,}", *_side_by_side(left, right))
        console.print()
        console.print(table)
    console.print()
    for line in _counts(other)[:-2]:
        console.print(Text(line, style="dim"))
    asked = "-m ndcg,recall -k 5,10,20 --by segment"
    command = f"fastrec evaluate {shlex.quote(paths[second])} {shlex.quote(paths['truth'])} {asked}"
    console.print("\nNext, try:")
    console.print(Text(f"  {command}", style="bold"), soft_wrap=True)


def _side_by_side(one: Estimate, other: Estimate) -> list[str]:
    return [_with_margin(one), _with_margin(other), _gap(one.mean, other.mean)]


def _gap(one: float, other: float) -> str:
    return DASH if math.isnan(other - one) else f"{other - one:+.4f}"


@program.command()
def warmup() -> None:
    """Compile what the first evaluation needs."""
    from fastrec import api

    with _progress() as (stage, _):
        stage("compiling")
        api.warmup()
