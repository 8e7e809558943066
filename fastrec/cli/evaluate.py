"""`fastrec evaluate`: files of lists against truth, or of scored rows."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastrec.checks import shown_url
from fastrec.cli.curves import curves_of_page, makes_page, write_curves
from fastrec.cli.output import SAVED, TREC, check_outputs, name_files, names_of_tool, save_report, write_report
from fastrec.cli.standard_input import open_inputs, without_paths
from fastrec.exceptions import FastrecWarning, InputError
from fastrec.files.places import fetched
from fastrec.inputs.row_groups import check_apart
from fastrec.inputs.sides import shared_rows
from fastrec.report.plans import known_calls, with_effects_of_settings
from fastrec.report.report import is_saved, reword
from fastrec.runtime.extras import require
from fastrec.runtime.outputs import atomic_write
from fastrec.show.trec import lines_of_users

if TYPE_CHECKING:
    from fastrec.evaluation.rows import RowEvaluation
    from fastrec.files.columns import ListColumns, RowColumns
    from fastrec.files.job import Evaluated
    from fastrec.metrics.declaration import Call
    from fastrec.report.report import Report
    from fastrec.show.shown import Charted
from fastrec.cli.group import (
    CONTENTS_OF_ROLES,
    FILES_OF_LISTS,
    LIST_OPTIONS,
    LOG_OPTIONS,
    OF_ITEMS,
    PASSED_ON,
    in_options,
    program,
    say_warning,
    showing_progress,
)
from fastrec.cli.options import (
    COLUMN_OPTIONS,
    DRAW_OPTIONS,
    FAIL_UNDER,
    GROUPS,
    HTML,
    ITEM_OPTIONS,
    METRIC_OPTIONS,
    MODEL_OPTIONS,
    MORE_OUTPUT,
    PAPER,
    POLICIES,
    RESOURCES_WITH_MODELS,
    ROW_GROUPS,
    SAMPLED_OPTIONS,
    WEIGHT,
    check_thresholds,
    choose_format,
    missed_floors,
    names_of_metrics,
    output_options,
    planned,
    resources_of,
    sampling_of,
    take_policies,
    with_options,
)

RATING_METRICS = ("mae", "rmse", "mse")


@program.command()
@click.argument("recs", type=click.Path(), metavar="RECS|LOG")
@click.argument("truth", type=click.Path(), required=False)
@with_options(METRIC_OPTIONS, COLUMN_OPTIONS, WEIGHT, GROUPS, ROW_GROUPS, POLICIES, ITEM_OPTIONS, MODEL_OPTIONS)
@with_options(DRAW_OPTIONS, SAMPLED_OPTIONS)
@with_options(output_options("report"), HTML, PAPER, MORE_OUTPUT, FAIL_UNDER, RESOURCES_WITH_MODELS)
@click.pass_context
def evaluate(ctx: click.Context, /, recs: str, truth: str | None, **options: Any) -> int:
    """Evaluate recommended lists against TRUTH, or a scored LOG.

    RECS and TRUTH have one row per user and item. The rank column orders a list, else the score column, else the
    order of rows in the file. A LOG has one row per impression, with a label and a score, or one row per rating,
    with the true and the predicted rating. It may have a column of users. Metrics that read no truth take RECS alone.

    Files are Parquet, Arrow, CSV, JSON lines or TREC (a run and judgements). A folder, or a pattern such as
    'logs/*.parquet', is read as one file, and subfolders such as date=2024-01-01 add a column. The folder of a Delta
    or Iceberg table is read as its current version. A file named - is standard input. Scores order a TREC run;
    --ties id_desc --no-truth judged --no-recs skip counts as trec_eval does.

    With --user-factors and --item-factors, TRUTH stands alone: the lists are all items in the order of their scores.
    With --negatives, they hold a sample, to compare with published numbers; full rankings are exact.

    \b
    fastrec evaluate recs.parquet truth.parquet -m ndcg,recall -k 5,10
    fastrec evaluate recs.csv truth.csv -m "ndcg(gain=exp2)@10" -o report.html
    zcat recs.csv.gz | fastrec evaluate - truth.csv --save monday.fastrec
    fastrec evaluate log.parquet --label-col clicked -m auc,gauc,ndcg@10
    fastrec evaluate ratings.csv --target-col stars --prediction-col guess
    fastrec evaluate truth.csv --user-factors u.npy --item-factors i.npy
    """  # noqa: D301 - a backspace tells click to keep the lines
    take_policies(ctx, options)
    choose_format(options, "report")
    is_model = has_factors(options)
    if is_model and truth is not None:
        raise click.UsageError("--user-factors and --item-factors take the place of RECS: give TRUTH alone")
    given = {"RECS" if truth is not None else "LOG": recs, "TRUTH": truth}
    with open_files({"TRUTH": recs} if is_model else given, options) as inputs:
        if is_model:
            check_kind(ctx, is_log=False)
            (truth_file,) = inputs.values()
            return _finish(_evaluate_model(truth_file, options), recs, options)
        recs_file, truth_file = inputs.values()
        is_log = holds_log(recs_file, truth_file, names_of_metrics(options), options)
        check_kind(ctx, is_log=is_log)
        result = evaluate_any(recs_file, truth_file, options, is_log=is_log, per_user=_needs_user_values(options))
        return _finish(result, recs_file or recs, options)


def _finish(result: Evaluated, path: str, options: dict[str, Any]) -> int:
    """Write what options ask for of a file; return 1 if a mean is below its floor."""
    if options["per_user"] is not None:
        _write_per_user(options["per_user"], result)
    lacking = () if options["curves"] is None else write_curves(path, result, options)
    write_evaluated(
        result.report, options, curves_of_page(path, result, options, column_of(options, "label_col", "label"))
    )
    for warning in (*result.report.warnings, *lacking):
        say_warning(warning)
    return missed_floors(result.report, options["fail_under"])


def write_evaluated(report: Report, options: dict[str, Any], curves: Sequence[Charted] = ()) -> None:
    """Save the report for `load`, then print it with arguments of Python as options of the command."""
    reword(report, without_paths)
    save_report(report, options)
    reword(report, in_options)
    write_report(report, options, curves)


@contextlib.contextmanager
def open_files(given: dict[str, str | None], options: dict[str, Any]) -> Iterator[dict[str, str | None]]:
    """Open the given files, and those of options; any one may be standard input."""
    named = {f"--{name}": path for name, path in _inputs_of(options).items()}
    factors = {f"--{side}-factors": options.get(f"{side}_factors") for side in ("user", "item")}
    paths = given | named | factors
    name_files(options, {name: path and shown_url(path) for name, path in paths.items()})
    with open_inputs(given | named, options["temp_dir"]) as opened, fetched(opened, options["temp_dir"]) as inputs:
        options |= {name.removeprefix("--"): inputs.pop(name) for name in named}
        yield inputs


def holds_log(recs: str | None, truth: str | None, metrics: list[str], options: dict[str, Any]) -> bool:
    """Return whether a file is a log: it comes without a truth, and is not one of lists for metrics that read none."""
    if truth is not None or recs is None or has_ratings(options) or options.get("curves") is not None:
        return truth is None
    if is_saved(recs):
        return True
    from fastrec.files.evaluate import is_of_lists

    names = {"label": "label_col", "sample_weight": "weight_col", "k": "cutoffs"}
    names |= {name: name for name in ("like", "min_gain", "input_format", "row_by", *FILES_OF_LISTS)}
    return not is_of_lists(recs, metrics or None, {name: options.get(own) or None for name, own in names.items()})


def _inputs_of(options: dict[str, Any]) -> dict[str, str]:
    """Return the options that name files, and their values."""
    return {name: options[name] for name in (*FILES_OF_LISTS, "users") if options.get(name) is not None}


def paths_of(options: dict[str, Any]) -> list[str]:
    """Return the paths that options give; `--exclude history` and `--logged truth` give none."""
    given = _inputs_of(options)
    shared = shared_rows({"truth": "", **given})
    factors = [options[name] for name in ("user_factors", "item_factors") if options.get(name) is not None]
    return [*factors, *(path for name, path in given.items() if name not in shared)]


def evaluate_any(
    recs: str | None, truth: str | None, options: dict[str, Any], *, is_log: bool, per_user: bool
) -> Evaluated:
    """Evaluate lists or a log."""
    assert recs is not None
    check_groupings(options)
    for path in (recs, truth):
        if path is not None and is_saved(path):
            raise InputError(path, " is a saved report, not rows: fastrec report and fastrec compare read it")
    if is_log:
        return _evaluate_log(recs, options, per_user=per_user)
    return _evaluate_lists(recs, truth, options, per_user=per_user)


def check_groupings(options: dict[str, Any]) -> None:
    """Reject a file of users without a column to group by."""
    if options["users"] is not None and not options["by"]:
        raise click.UsageError("--users has labels of users, but no column of them is named: add --by NAME")


def _needs_user_values(options: dict[str, Any]) -> bool:
    """Return whether the report needs values per user."""
    return options["save"] is not None or options["format_"] == SAVED or options["per_user"] is not None


def check_kind(ctx: click.Context, *, is_log: bool) -> None:
    """Reject options of lists for a log, and options of a log for lists."""
    others, where = (LIST_OPTIONS, "lists: give TRUTH") if is_log else (LOG_OPTIONS, "a LOG: leave out TRUTH")
    for param in ctx.command.params:
        if param.name in others and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} is for {where}")


def has_factors(options: dict[str, Any]) -> bool:
    """Return whether options give a model; raise if they give a part of one."""
    given = [options[name] is not None for name in ("user_factors", "item_factors")]
    if any(given) and not all(given):
        raise click.UsageError("--user-factors and --item-factors go together")
    return all(given)


def _evaluate_model(truth: str | None, options: dict[str, Any]) -> Evaluated:
    """Evaluate factors in files."""
    from fastrec.evaluation.lists import ListEvaluation
    from fastrec.files.models import evaluate_factors, read_factors
    from fastrec.metrics.calls import of_lists_instead
    from fastrec.metrics.declaration import LISTS

    assert truth is not None
    named = planned(options, None)
    for call in named.values():
        if call.metric.family is not LISTS:
            why = f"{call.text} is a metric of scored rows, which a model does not have"
            raise click.UsageError(why + of_lists_instead(call.metric))
    if options["users"] is not None:
        raise click.UsageError("--users is for lists and logs: with factors, name a column of TRUTH by --by")
    for name in ("rank_col", "score_col"):
        if options[name] is not None and options["reference"] is None:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} names a column of lists: with factors, only --reference has one")
    columns = _columns_of_lists(options)
    if len(columns.users) > 1:
        raise click.UsageError("with factors, one --user-col names the users")
    names = (*PASSED_ON, "like", "no_recs", "duplicates", *OF_ITEMS)
    settings = {name: options[name] for name in names if name != "n_items"}
    settings |= sampling_of(options) | {"per_user": _needs_user_values(options), "n_threads": options["threads"]}

    def make(*, items: Any, history: Any, n_items: int) -> ListEvaluation:
        size = options["n_items"] if options["n_items"] is not None or items is not None else n_items
        return ListEvaluation(list(named), items=items, history=history, n_items=size, **settings)

    check_outputs([truth, *paths_of(options)], options)
    with showing_progress() as watch, quietly(), naming_options():
        watch("reading")
        factors = (
            read_factors(options["user_factors"], columns.users[0]),
            read_factors(options["item_factors"], columns.item),
        )
        paths = {"truth": truth} | _inputs_of(options)
        return evaluate_factors(make, factors, paths, columns, resources_of(options, watch))


def _columns_of_lists(options: dict[str, Any]) -> ListColumns:
    """Return the columns that options name."""
    from fastrec.files.columns import ListColumns
    from fastrec.metrics.recipes import order_of

    return ListColumns(
        users=tuple(dict.fromkeys(options["user_col"])) or ("user_id",),
        item=column_of(options, "item_col", "item_id"),
        rank=options["rank_col"],
        score=options["score_col"],
        gain=options["gain_col"],
        propensity=options["propensity_col"],
        logged_rank=options["logged_rank_col"],
        subtopic=options["subtopic_col"],
        item_sep=options["item_sep"],
        by=tuple(dict.fromkeys(options["by"])),
        ordered_by=order_of(options["like"]),
    )


def _evaluate_lists(recs: str, truth: str | None, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec.files.evaluate import maker_of_lists
    from fastrec.files.lists import evaluate_lists
    from fastrec.metrics.calls import of_lists_instead
    from fastrec.metrics.declaration import LISTS

    named = planned(options, None)
    for call in named.values():
        if call.metric.family is not LISTS:
            why = f"{call.text} is a metric of scored rows: give a LOG and leave out TRUTH"
            raise click.UsageError(why + of_lists_instead(call.metric))
    check_outputs([recs, truth, *paths_of(options)], options)
    columns = _columns_of_lists(options)
    with showing_progress() as watch, quietly(), naming_options():
        watch("reading")
        settings = {name: options[name] for name in (*PASSED_ON, "like", "no_recs", "duplicates", "items", *OF_ITEMS)}
        settings |= sampling_of(options)
        make = maker_of_lists(list(named), {**settings, "per_user": per_user, "n_threads": options["threads"]})
        paths = {"recs": recs} | ({} if truth is None else {"truth": truth}) | _inputs_of(options)
        return evaluate_lists(make, paths, columns, resources_of(options, watch))


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Silence warnings, which the report also holds: the command prints them after the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FastrecWarning)
        yield


def _evaluate_log(path: str, options: dict[str, Any], *, per_user: bool) -> Evaluated:
    from fastrec.files.rows import evaluate_log

    named = planned(options, usual_metrics(options))
    calls = list(named.values())
    check_outputs([path, options["users"]], options)
    check_apart(options["by"], options.get("row_by", ()))
    make_evaluation = make_scorer(named, options, per_user=lambda has_users: has_users and per_user)
    with showing_progress() as watch, quietly(), naming_options(hints_of_log(options, calls)):
        watch("reading")
        columns = columns_of_log(options, calls)
        paths = {"log": path} | ({} if options["users"] is None else {"users": options["users"]})
        return evaluate_log(make_evaluation, paths, columns, resources_of(options, watch))


def make_scorer(
    named: dict[str, Call], options: dict[str, Any], *, per_user: Callable[[bool], bool]
) -> Callable[[bool], RowEvaluation]:
    """Return a function that makes the evaluation of a log with or without users.

    `per_user` returns whether the evaluation keeps the values of users.
    """
    from fastrec.evaluation.rows import RowEvaluation

    def make(has_users: bool) -> RowEvaluation:  # noqa: FBT001 - called by position
        all_of_them = bool(options["metrics"]) or has_users
        asked = {name: call for name, call in named.items() if all_of_them or not call.needs_users}
        check_thresholds(options["fail_under"], asked)
        evaluation = RowEvaluation(
            list(asked),
            like=options["like"],
            per_user=per_user(has_users),
            n_threads=options["threads"],
            **{name: options[name] for name in (*PASSED_ON, "one_class")},
        )
        if options["curves"] is not None or (makes_page(options) and not evaluation.needs_targets):
            evaluation.keep_score_counts(needed=options["curves"] is not None, users=makes_page(options))
        return evaluation

    return make


def usual_metrics(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the default metrics of a log, those that need users included."""
    from fastrec.metrics.calls import parse
    from fastrec.metrics.declaration import ROWS

    if has_ratings(options):
        return RATING_METRICS
    return tuple(name for name in ROWS.usual if options["weight_col"] is None or parse(name).metric.family is ROWS)


def column_of(options: dict[str, Any], option: str, usual: str) -> str:
    """Return the column that an option names, by default `usual`. A name may be empty."""
    return usual if options[option] is None else str(options[option])


def has_ratings(options: dict[str, Any]) -> bool:
    """Return whether a log names targets or predictions."""
    return options["target_col"] is not None or options["prediction_col"] is not None


def _needing_users(options: dict[str, Any], calls: list[Call]) -> list[str]:
    """Return the metrics and options in use that need users."""
    needing = [call.text for call in calls if options["metrics"] and call.needs_users]
    return needing + [name for name, value in (("--by", options["by"]), ("--per-user", options["per_user"])) if value]


def columns_of_log(options: dict[str, Any], calls: list[Call]) -> RowColumns:
    """Return the columns that the metrics need."""
    from fastrec.files.columns import RowColumns

    ratings = has_ratings(options)
    if ratings and (options["label_col"] is not None or options["score_col"] is not None):
        raise click.UsageError("a LOG has labels and scores, or targets and predictions: name columns of one kind")
    by_id = options["ties"] in ("id_asc", "id_desc")
    names = ("target", "prediction") if ratings else ("label", "score")
    label, score = (column_of(options, f"{name}_col", name) for name in names)
    return RowColumns(
        label=label,
        score=score,
        ratings=ratings,
        users=tuple(dict.fromkeys(options["user_col"])) or (("user_id",) if _needing_users(options, calls) else None),
        item="item_id" if options["item_col"] is None and by_id else options["item_col"],
        weight=options["weight_col"],
        by=tuple(dict.fromkeys(options["by"])),
        row_by=tuple(dict.fromkeys(options.get("row_by", ()))),
    )


@contextlib.contextmanager
def naming_options(more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Add to errors on missing columns the option that names them; `more` has other hints by role."""
    from fastrec.files.columns import ColumnError

    try:
        yield
    except ColumnError as error:
        contents = CONTENTS_OF_ROLES.get(error.role)
        of_all = more is None and error.role in ("user", "item")  # files of lists
        where = " in all files: rename it in one of them if they differ" if of_all else ""
        usual = f"--{error.role}-col names the column of {contents}{where}" if contents else ""
        hint = (more or {}).get(error.role) or usual
        raise InputError(error.text, f"; {hint}" if hint else "") from None


def hints_of_log(options: dict[str, Any], calls: list[Call]) -> dict[str, str]:
    """Return hints for missing columns of a log, by role."""
    needing, ties = _needing_users(options, calls), options["ties"]
    compares = click.get_current_context().info_name == "compare"
    truth = "--truth FILE" if compares else "a second file, TRUTH"
    alone = "; to compare models in a segment, pass its rows alone" if compares else ""
    return {
        "label": f"lists need {truth}; a log needs labels and scores (--label-col, --score-col), or true and "
        "predicted ratings (--target-col, --prediction-col)",
        "user": f"{needing[0]} needs users: --user-col names their column" if needing else "",
        "item": f"--ties {ties} needs items: --item-col names their column" if options["item_col"] is None else "",
        "row_by": "--row-by names columns of labels of rows",
        "key": "--row-key names the columns that identify a row",
        "by": "fastrec evaluate takes labels that vary within a user as --row-by; with several --user-col, each "
        f"combination of their values is a user{alone}",
    }


def _write_trec(path: str, result: Evaluated) -> None:
    """Write a line per user and metric, but for geometric means and for metrics that are no number of users."""
    report = result.report
    calls = known_calls(report.per_user)
    left = with_effects_of_settings(calls, report.settings) | {text for text, call in calls.items() if call.mean}
    names = [(name, metric) for name, metric in names_of_tool(report) if metric not in left]
    users = [" ".join(map(str, user)) for user in zip(*map(_listed, result.users.values()), strict=True)]
    with atomic_write(path) as stream:
        for line in lines_of_users(names, users, report.per_user):
            stream.write(f"{line}\n".encode(errors="backslashreplace"))


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _write_per_user(path: str, result: Evaluated) -> None:
    """Write a row per user: id, groups, and the value of each metric, null if the user was not counted.

    The format of trec_eval has a line per user and metric.
    """
    if path.lower().endswith(f".{TREC}"):
        _write_trec(path, result)
        return
    require("pyarrow", "cli", what="--per-user")
    import pyarrow as pa
    from pyarrow import csv as pc
    from pyarrow import parquet as pq

    columns = {**result.users, **result.groups}
    arrays = [pa.array(values) for values in columns.values()]
    arrays += [pa.array(values, from_pandas=True) for values in result.report.per_user.values()]
    # Not from a dict: a column to group by may have the same name as a metric.
    table = pa.Table.from_arrays(arrays, names=[*columns, *result.report.per_user])
    with atomic_write(path) as stream:
        if path.lower().endswith(".csv"):
            pc.write_csv(table, stream)
        else:
            pq.write_table(table, stream)
