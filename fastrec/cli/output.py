"""Results as files and on standard output; the ending of a file name sets the format."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, cast

import click

from fastrec.checks import with_article
from fastrec.cli.draw import (
    counts,
    draw_comparison,
    draw_curve,
    draw_drift,
    draw_explanation,
    draw_policy,
    draw_report,
    legend_of,
    tables_of_comparison,
)
from fastrec.cli.standard_input import STANDARD_INPUT
from fastrec.exceptions import shown_characters
from fastrec.files.paths import find_files
from fastrec.report.plain import OTHER_FORMATS, refuse_ending
from fastrec.runtime.outputs import atomic_write
from fastrec.show.markdown import as_markdown, bullets, heading
from fastrec.show.tables import warning_lines, with_notes
from fastrec.show.trec import as_trec, names_there

if TYPE_CHECKING:
    from rich.console import Console

    from fastrec.comparison.comparison import Comparison
    from fastrec.counterfactual.result import CtrByRank, PositionBias
    from fastrec.counterfactual.value import PolicyEstimates
    from fastrec.explanation.explanation import Explanation
    from fastrec.feedback.result import Drift
    from fastrec.report.report import Report
    from fastrec.show.shown import Charted

Text = str | Callable[["Console"], None]  # a string, or a function that draws on a console
Forms = dict[str, Callable[[], Text]]  # by format, without the last newline
ALL_USERS = "all"  # as trec_eval calls them
DATE = "date"  # the fact about a page that needs no option
WIDTH = 80  # of output that goes to no terminal
ENDINGS = {ending: "table" if ending == ".txt" else ending.removeprefix(".") for ending in OTHER_FORMATS}
SAVED = "fastrec"  # the format that only files have
TREC = "trec"  # the format of trec_eval
FORMATS = ENDINGS | {f".{name}": name for name in (TREC, SAVED)}
FORMATS_OF = {  # formats of each kind of result
    "report": (*ENDINGS.values(), TREC, SAVED),
    "comparison": tuple(ENDINGS.values()),
    "drift": tuple(ENDINGS.values()),
    "curve": tuple(ENDINGS.values()),
    "explanation": ("table", "json", "md"),
    "policy": tuple(ENDINGS.values()),
}
TITLED = ("html", "md")  # formats that have a title
OF_PAPERS = ("md", "tex")
ENDINGS_OF_OPTIONS = {
    "per_user": (".csv", ".parquet", f".{TREC}"),
    "curves": (".csv", ".json"),
    "plot": (".png", ".pdf", ".svg"),
}
FILES = ("output", "save", "html", *ENDINGS_OF_OPTIONS)  # options that name a file to write


def format_of(options: Mapping[str, Any], what: str) -> str:
    """Return the format in `--format`, else that of the ending of `-o`, else "table"."""
    output = options["output"] or ""
    if options["format_"] is not None:
        _refuse_saved(output, str(options["format_"]), what)
        return str(options["format_"])
    if os.path.basename(output).lower() in FORMATS:
        raise click.UsageError(f"-o {output}: expected a name before the ending")
    ending = os.path.splitext(output)[1].lower()
    if ending and ending not in endings_of(what):
        raise click.UsageError(
            f"-o {output}: {with_article(what)} has no format with the ending {ending}; "
            f"end the name in {_either(endings_of(what))}, or give --format"
        )
    return FORMATS.get(ending, "table")


def _refuse_saved(output: str, form: str, what: str) -> None:
    """Reject the ending of a saved report for another format, as `refuse_ending` rejects the reverse."""
    if output.lower().endswith(f".{SAVED}"):
        ending = next(ending for ending, name in FORMATS.items() if name == form)
        save = "leave out --format to save one, or " if what == "report" else ""
        raise click.UsageError(f"-o {output}: only a saved report ends in .{SAVED}: {save}end the name in {ending}")


def endings_of(what: str) -> list[str]:
    """Return the endings of files for a kind of result."""
    return [ending for ending, name in FORMATS.items() if name in FORMATS_OF[what]]


def _either(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def check_outputs(inputs: Sequence[str | None], options: Mapping[str, Any]) -> None:
    """Reject outputs that cannot be written or would overwrite an input, before any work."""
    for option in FILES:
        if options.get(option) in ("", "-"):
            found = "standard output, which only -o can write to" if options[option] else "an empty name"
            raise click.UsageError(f"--{option.replace('_', '-')}: expected a file name, found {found}")
    for option, endings in ENDINGS_OF_OPTIONS.items():
        path = options.get(option)
        if path is not None and not path.lower().endswith(endings):
            raise click.UsageError(f"--{option.replace('_', '-')} {path}: the name must end in {_either(endings)}")
    if options.get("save") is not None:
        refuse_ending(options["save"], by_command=True)
    files = [file for path in inputs if path is not None for file in find_files(path).on_disk]
    taken = {os.path.realpath(path): path for path in files}
    for path in map(options.get, FILES):
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in taken and (os.path.isfile(real) or not os.path.exists(real)):
            raise click.UsageError(f"{path} would overwrite {taken[real]}")
        if not os.path.isdir(os.path.dirname(real)):
            raise click.UsageError(f"{path}: the folder {os.path.dirname(real)} does not exist")
        if os.path.isdir(real):
            raise click.UsageError(f"{path} is a folder, expected a file name")
        taken[real] = path


def name_files(options: dict[str, Any], paths: Mapping[str, str | None]) -> None:
    """Keep the names of the input files, before standard input gets a file of its own.

    An option loses its dashes, unless a system has its name. A system called like the date has more than its name.
    """
    files = {}
    for name, path in paths.items():
        if path is not None:
            bare = f"system {DATE}" if name == DATE else name.removeprefix("--")
            files[name if bare in paths else bare] = STANDARD_INPUT if path == "-" else path
    options["files"] = files


def facts_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts at the head of a page: the date, the files, and those that the options add or replace."""
    return {DATE: datetime.now().astimezone().date().isoformat(), **options["files"], **options["about"]}


def save_report(report: Report, options: Mapping[str, Any]) -> None:
    """Save the report to the files that the options name for it."""
    if options.get("save") is not None:
        report.save(options["save"])
    if options["format_"] == SAVED:
        report.save(options["output"])


def write_report(report: Report, options: Mapping[str, Any], curves: Sequence[Charted] = ()) -> None:
    """Write everything that the options ask for, except saved reports; print last. Pages also have the curves."""
    own: Forms = {
        "table": lambda: lambda console: draw_report(console, report),
        "md": lambda: "\n\n".join([*_heading(options), report.to_markdown(), bullets(counts(report))]),
        TREC: lambda: "\n".join(_trec_lines(report)),
    }
    _write(report, own | _of_paper(report, options), options, {"curves": curves})


def names_of_tool(report: Report) -> list[tuple[str, str]]:
    """Return what the tool of `--like` calls each metric of a report, and the metric."""
    return names_there(report, cast("Mapping[str, str]", report.settings.get("names", {})))


def _trec_lines(report: Report) -> Iterator[str]:
    """Yield the lines over all users, after their number."""
    yield from as_trec([("num_q", ALL_USERS, report.users["evaluated"])])
    yield from as_trec((name, ALL_USERS, report[metric]) for name, metric in names_of_tool(report))


def write_comparison(found: Comparison, reports: Mapping[str, Report], options: Mapping[str, Any]) -> None:
    """Write everything that the options ask for; print last."""
    notes = [*legend_of(found, reports), *warning_lines(found.warnings)]
    tables = with_notes(tables_of_comparison(found, reports), notes)
    own: Forms = {
        "table": lambda: lambda console: draw_comparison(console, found, reports),
        "md": lambda: "\n\n".join([*_heading(options), as_markdown(tables)]),
    }
    _write(found, own | _of_paper(found, options), options)


def _of_paper(found: Report | Comparison, options: Mapping[str, Any]) -> Forms:
    """Return the formats of a table for a paper, if the options ask for one."""
    if not options["paper"]:
        return {}
    return {
        "md": lambda: "\n\n".join([*_heading(options), found.to_markdown(form="paper")]),
        "tex": lambda: found.to_latex(form="paper"),
    }


def write_drift(found: Drift, options: Mapping[str, Any]) -> None:
    """Write everything that the options ask for; print last."""
    own: Forms = {
        "table": lambda: lambda console: draw_drift(console, found),
        "md": lambda: "\n\n".join([*_heading(options), found.to_markdown()]),
    }
    _write(found, own, options)


def write_curve(found: CtrByRank | PositionBias, options: Mapping[str, Any]) -> None:
    """Write everything that the options ask for; print last."""
    own: Forms = {
        "table": lambda: lambda console: draw_curve(console, found),
        "md": lambda: "\n\n".join([*_heading(options), found.to_markdown()]),
    }
    _write(found, own, options)


def write_policy(found: PolicyEstimates, options: Mapping[str, Any]) -> None:
    """Write everything that the options ask for; print last."""
    own: Forms = {
        "table": lambda: lambda console: draw_policy(console, found),
        "md": lambda: "\n\n".join([*_heading(options), found.to_markdown()]),
    }
    _write(found, own, options)


def write_explanation(why: Explanation, options: Mapping[str, Any]) -> None:
    """Write an explanation in the format of the options."""
    forms: Forms = {
        "table": lambda: lambda console: draw_explanation(console, why),
        "json": lambda: why.to_json(indent=2),
        "md": why.to_markdown,
    }
    _emit_form(forms, options)


def _write(
    found: Report | Comparison | Drift | CtrByRank | PositionBias | PolicyEstimates,
    own: Forms,
    options: Mapping[str, Any],
    of_page: Mapping[str, Any] | None = None,
) -> None:
    """Write the HTML page and the result; `own` has the formats that the command line makes itself."""
    page = {"about": facts_of(options), **(of_page or {})}
    if options["title"] is not None:
        page["title"] = options["title"]
    if options["html"] is not None:
        found.to_html(options["html"], **page)
    if options["format_"] == SAVED:
        return
    forms: Forms = {
        "json": lambda: found.to_json(indent=2),
        "csv": lambda: csv_text(list(next(iter(found.to_rows()), {})), found.to_rows()).removesuffix("\n"),
        "html": lambda: str(found.to_html(**page)).removesuffix("\n"),
        "tex": found.to_latex,
        **own,
    }
    _emit_form(forms, options)


def _emit_form(forms: Forms, options: Mapping[str, Any]) -> None:
    made = forms[options["format_"]]()
    emit(made if callable(made) else f"{made}\n", options["output"])


def _heading(options: Mapping[str, Any]) -> list[str]:
    return [] if options["title"] is None else [heading(options["title"])]


def emit(text: Text, output: str | None) -> None:
    """Write a string, or what a function draws on a console, to a file or to standard output."""
    if callable(text) and output is None and sys.stdout.isatty():
        text(console(sys.stdout))
        return
    if callable(text):
        drawn = io.StringIO()
        text(console(drawn))
        text = "".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines())
    if output is None:
        sys.stdout.write(shown_characters(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return
    with atomic_write(output) as stream:
        stream.write(text.encode(errors="backslashreplace"))  # UTF-8 has no unpaired surrogates


def console(stream: IO[str]) -> Console:
    """Return a console; without a terminal it has no colours and 80 columns, whatever the environment says."""
    from rich.console import Console

    if stream.isatty():
        return Console(file=stream, highlight=False, emoji=False)
    return Console(file=stream, highlight=False, emoji=False, force_terminal=False, width=WIDTH)


def csv_text(columns: list[str], rows: Iterable[dict[str, Any]]) -> str:
    """Return rows as CSV; NaN is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)  # noqa: PLR0124
    return text.getvalue()
