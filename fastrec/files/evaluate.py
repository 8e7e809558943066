"""Evaluation of files: lists against truth, or scored rows, of any size."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastrec import policies
from fastrec.api.calls import evaluate
from fastrec.arguments import differing, documents, options_in, pick
from fastrec.checks import (
    MAX_ITEMS,
    MinGain,
    check_path,
    check_progress,
    check_text,
    listed,
    nearest,
    shown_url,
    with_article,
)
from fastrec.evaluation.list_rules import read_no_truth
from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.files.columns import ITEMS, USERS, ListColumns, RowColumns
from fastrec.files.formats.base import Format
from fastrec.files.formats.recognise import AUTO, format_asked
from fastrec.files.job import EVALUATING
from fastrec.files.lists import evaluate_lists
from fastrec.files.opened import has_column
from fastrec.files.places import fetched
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.items import ITEM_ID, ItemTable
from fastrec.inputs.row_groups import check_apart
from fastrec.inputs.sides import SIDES
from fastrec.metrics.recipes import order_of
from fastrec.policies import BY_ID
from fastrec.report.report import Report
from fastrec.runtime.limits import read_size

if TYPE_CHECKING:
    from fastrec.evaluation.rows import RowEvaluation

LOG = "a log, without truth"
COLUMNS = "item rank score gain propensity logged_rank subtopic item_sep label sample_weight"  # one name each
SETTINGS = (*options_in(ListEvaluation.__init__), "one_class")  # of lists and of logs


@documents(policies.ONE_CLASS, others=evaluate)
def evaluate_files(
    recs: Path,
    truth: Path | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    propensity: str | None = None,
    logged_rank: str | None = None,
    subtopic: str | None = None,
    item_sep: str | None = None,
    label: str | None = None,
    sample_weight: str | None = None,
    by: Any = None,
    row_by: str | Sequence[str] | None = None,
    users: Path | None = None,
    exclude: Path | None = None,
    items: Path | None = None,
    history: Path | None = None,
    reference: Path | None = None,
    logged: Path | None = None,
    subtopics: Path | None = None,
    input_format: str = "auto",
    csv: Mapping[str, str] | None = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    n_users: int | None = None,
    unseen: policies.Unseen | None = None,
    no_history: policies.NoHistory | None = None,
    no_features: policies.NoFeatures | None = None,
    examination: Sequence[float] | None = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    no_recs: policies.NoRecs | None = None,
    duplicates: policies.Duplicates | None = None,
    sampled_from: int | None = None,
    correct: policies.Correct = "none",
    one_class: policies.OneClass = "drop",
    memory: int | str | None = None,
    temp_directory: Path | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    r"""Evaluate files of any size: lists against truth or, without ``truth``, a log of scored, labelled rows.

    Without ``truth``, a file without a column of labels holds lists if no metric reads a truth.

    Files that fit in ``memory`` are read whole; others are put into parts by user on disk, with the same bits.

    Parameters
    ----------
    recs : path of the lists, or of the log
        Parquet, Arrow (Feather), CSV or JSON lines (the last two also packed with gzip or zstd), one row per user
        and item, or per impression, in any order. Or a TREC run and judgements; scores order a run. A folder, or a
        pattern such as ``"logs/*.parquet"``, is read as one file. Folders in it named like ``date=2024-01-01`` become
        columns. The folder of a Delta or Iceberg table is read as its current version. Any path may be a URL of
        ``https``, ``s3``, ``gs``, ``az``, ``abfss`` or ``hf``: its files are copied to ``temp_directory`` first.
    truth : path of the relevant items
    metrics : as in `evaluate` and `evaluate_scores`
    user : name of the column of users in all files; default: ``user_id``, in a log if present
        Several names of a log make a user together.
    item : name of the column of items in all files; default: ``item_id``
        A log needs it for ``ties='id_asc'`` and ``'id_desc'`` only.
    rank : name of the column of ranks in ``recs``, from 1; default: ``rank``, if present
        Rank orders the lists, else score, else the order of rows in the file. Some tools of ``like`` read score first.
    score : name of the column of scores in a log, or in ``recs`` without ranks; default: ``score``
    gain : name of the column of gains in ``truth``; default: ``gain``, if present
    label : name of the column of labels in a log; default: ``label``
        ``label`` and ``score`` may be true and predicted ratings.
    sample_weight : name of the column with the weights of the rows of a log
    by : name of the column, or several, to group users by, in any of the files, one value per user
        Or labels by user, as in `evaluate`.
    row_by : name of the column of a log, or several, to segment rows by, such as a position or a device
        The report has for each value what it would have for the rows with this value alone. A row without a value
        is in no segment.
    users : path of a file with one row per user: the column of users and the columns that ``by=`` names
    exclude : path of items (user, item) to remove; ``"history"``: those of ``history``; ``"unjudged"``: all not judged
        Items are judged if the truth has a gain of 0 or more for them. ``"./history"`` names a file.
    items : path of the table of items, for the metrics that read columns of it
        One row per item: its id and further columns, with numbers, categories or, in Parquet and JSON lines, lists.
        Its number of rows is the default of ``n_items``.
    history : path of past interactions (user, item) of the users, for the metrics that read them
    reference : path of lists to compare with, in the form of ``recs``, for the metrics that read them
    logged : path of the propensities (user, item, propensity) of the relevant items, for ``ips`` and ``snips``
        With ``examination`` it has the ranks they had. ``"truth"``: the columns of ``truth``.
    subtopics : path of the subtopics (user, item, subtopic) that items cover, for `alpha_dcg` and its kin
    input_format : format of all files; ``"auto"``: detect the format of each file from its beginning
        The others are ``"parquet"``, ``"arrow"``, ``"csv"``, ``"jsonl"`` and ``"trec"``; lines of the last may also
        have three words: query, document and rank.
    csv : how the values of CSV files are written, as ``{"delimiter": ";", "decimal": ","}``; all text is then CSV
        Further names are ``"quote"`` (``""``: quotes are characters like others), ``"escape"``, the character before
        a quote within a value, and ``"encoding"``. What is not named is as the file shows: one of four delimiters, or
        the one after ``sep=`` in the first line; commas as decimal points where semicolons separate; backslashes
        before quotes; UTF-16 with a byte order mark, else UTF-8.
    min_gain : the gain or label from which an item is relevant; default: any gain above 0, in a log label 1
        ``"any"``: every row of the truth is relevant, whatever its gain, and gains below 0 count as 0.
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
    memory : bytes, or a string such as ``"4GB"``, at least 64 MB; default: half of the available memory
        Python, the packages and compiled code take up to 400 MB more. These grow beyond the limit: the rows of
        the largest user, user ids (about 16 bytes per character of the longest, for each user), values per user,
        the distinct scores of a global AUC, the rows of a global XAUC, and curves. Ids of more than 1,000
        characters may need 300 MB or more; with less, the call may fail. The table of ``items`` is held in memory.
    temp_directory : folder for temporary files when the rows do not fit in memory; default: that of the system
    progress : called as ``progress(done, total)`` with numbers of rows, while fastrec evaluates them

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If a file cannot be read, or a column is missing or holds unusable values. Messages name files and rows; rows
        count from 1, without a header.
    MissingExtraError
        If PyArrow (extra ``cli`` or ``arrow``), a package for URLs (``remote``) or one for tables (``delta``,
        ``iceberg``) is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lists, truth = (
    ...         pathlib.Path(folder, "lists.csv"),
    ...         pathlib.Path(folder, "truth.csv"),
    ...     )
    ...     _ = lists.write_text("user_id,item_id\nann,x\nann,y\nbob,x\n")
    ...     _ = truth.write_text("user_id,item_id\nann,y\nbob,z\n")
    ...     fastrec.evaluate_files(lists, truth, ["recall@2", "mrr"])
    metric      mean    95 % interval  users
    recall@2  0.5000  0.0945 – 0.9055      2
    mrr       0.2500  0.0000 – 1.0000      2
    2 of 2 users counted
    mrr: few users with a hit: the interval may be too narrow
    lists in the order of their rows; all gains 1
    """
    asked, given = pick(evaluate_files, locals()), differing(evaluate_files, locals())
    paths = {"recs": recs, "truth": truth, **{name: asked[name] for name in asked if name in {*SIDES, USERS, ITEMS}}}
    for name, path in paths.items():
        if any(hasattr(path, part) for part in ("columns", "__arrow_c_stream__", "collect_schema")):
            kind = with_article(type(path).__name__)
            raise InputTypeError(f"{name} must be a path, found {kind}: evaluate takes data frames")
    file_format = format_asked(csv, input_format)
    resources = Resources(read_size(memory), temp_directory, n_threads, _watch_for(progress), file_format)
    labels = read_user_labels(by, user)
    groupings = () if labels is not None else _names(by, "by") or ()
    segments = tuple(dict.fromkeys(_names(row_by, "row_by") or ()))
    check_apart(groupings if labels is None else labels.groupings, segments)
    user_columns = _names(user, "user")
    names = {name: asked[name] for name in COLUMNS.split()}
    _check_given(check_text, **names)
    columns = {**names, "users": user_columns, "by": groupings, "row_by": segments, "weight": sample_weight}
    _check_given(check_path, **paths, temp_directory=temp_directory)
    if paths.get(USERS) is not None and not groupings:
        raise InputError(
            Argument(USERS), " has labels of users, but no column of them is named: add ", Argument("by", (...,))
        )
    if temp_directory is not None and not os.path.isdir(temp_directory):
        found = shown_url(os.fspath(temp_directory))
        raise InputError(Argument("temp_directory"), f" must be a folder, found {found!r}")
    metrics, asked["k"] = _kept(metrics), _kept(k)
    given["k"] = asked["k"]
    tables = {name: path for name, path in paths.items() if path is not None}
    with contextlib.ExitStack() as places:
        if truth is None:
            tables = places.enter_context(fetched(tables, temp_directory))
            if not is_of_lists(tables["recs"], metrics, asked):
                from fastrec.evaluation.rows import RowEvaluation
                from fastrec.files.rows import evaluate_log

                _reject(asked, ("rank", "gain", *(name for name in tables if name not in ("recs", USERS))), LOG)
                settings = _settings(RowEvaluation.__init__, LOG, given)
                tables = {"log": tables.pop("recs"), **tables}
                make = _maker(metrics, settings, weighted=sample_weight is not None)
                if columns["item"] is None:
                    columns["item"] = _item_of_log(tables["log"], make(has_users=True), file_format)
                of_rows = RowColumns(**_given(columns, RowColumns), ratings=make(has_users=True).needs_targets)
                return evaluate_log(make, tables, of_rows, resources, labels).report
        _reject(asked, ("label", "sample_weight", "row_by"), "lists, with truth")
        settings = _settings(ListEvaluation.__init__, "lists, with truth", given)
        if user_columns == ():
            raise InputTypeError(f"user must be the name of a column or several, found {shown(user)}")
        of_lists = ListColumns(**_given(columns, ListColumns), ordered_by=order_of(like))
        make_lists = maker_of_lists(metrics, settings)
        tables = places.enter_context(fetched(tables, temp_directory))
        return evaluate_lists(make_lists, tables, of_lists, resources, labels).report


def _kept(values: Any) -> Any:
    """Return values that can be read several times."""
    return list(values) if isinstance(values, Iterator) else values


def is_of_lists(recs: Path, metrics: Any, asked: Mapping[str, Any]) -> bool:
    """Return whether a file that comes without a truth holds lists, not a log of labelled rows.

    It does if no metric reads a truth, and neither an argument nor the file has labels. `asked` are arguments. Raise
    MetricError for wrong metrics.
    """
    if any(asked.get(name) is not None for name in ("label", "sample_weight", "row_by")) or metrics is None:
        return False
    of_lists = any(asked.get(name) is not None for name in (*SIDES, ITEMS) if name not in ("recs", "truth"))
    if not read_no_truth(metrics, *(asked.get(name) for name in ("like", "k", "min_gain")), of_lists=of_lists):
        return False
    return not has_column(recs, RowColumns().label, format_asked(asked.get("csv"), asked.get("input_format") or AUTO))


def _item_of_log(log: Path, evaluation: "RowEvaluation", input_format: str | Format) -> str | None:
    """Return the usual column of items of a log if ties need it and the log has it, as for frames."""
    return ITEM_ID if evaluation.settings["ties"] in BY_ID and has_column(log, ITEM_ID, input_format) else None


def maker_of_lists(metrics: Any, settings: Mapping[str, Any]) -> Callable[[ItemTable | None], ListEvaluation]:
    """Return a function that makes the evaluation of lists, given the table of items. Wrong metrics raise at once."""
    own = {name: value for name, value in settings.items() if name not in (*SIDES, ITEMS)}
    if settings.get(ITEMS) is None:
        evaluation = ListEvaluation(metrics, **own)
        return lambda _: evaluation
    size = {} if own.get("n_items") is not None else {"n_items": MAX_ITEMS}
    ListEvaluation(metrics, **{**own, **size})
    return lambda items: ListEvaluation(metrics, **own, items=items)


def _settings(constructor: Callable[..., Any], what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an evaluator that a call gives; raise for those of the other family."""
    own = options_in(constructor)
    for name in SETTINGS:
        if name not in own and given.get(name) is not None:
            raise InputTypeError(f"evaluate_files takes no argument {name!r} for {what}{nearest(name, list(own))}")
    return pick(constructor, given)


def _given(columns: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return the columns that a call names, of those of a kind."""
    names = (field.name for field in dataclasses.fields(kind))
    return {name: columns[name] for name in names if columns.get(name) is not None}


def _maker(metrics: Any, settings: dict[str, Any], *, weighted: bool) -> Callable[..., "RowEvaluation"]:
    """Return a function that makes an evaluation of a log with users or without; the usual metrics depend on it."""
    from fastrec.evaluation.rows import RowEvaluation, usual_of_rows

    if metrics is not None or settings.get("like") is not None:
        scorer = RowEvaluation(metrics, **settings)
        return lambda has_users: scorer  # noqa: ARG005 - called by name, too
    k = settings.pop("k", None)

    def make(has_users: bool) -> "RowEvaluation":  # noqa: FBT001 - called by position
        return RowEvaluation(usual_of_rows(k, has_users=has_users, weighted=weighted), **settings)

    return make


def _check_given(check: Callable[[str, Any], Any], **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            check(name, value)


def _names(names: Any, argument: str) -> tuple[str, ...] | None:
    """Return the names of columns in an argument, which may be one name or several."""
    if names is None:
        return None
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else listed(names, argument)
    return tuple(check_text(argument, name) for name in found)


def _watch_for(progress: Progress | None) -> Watch:
    """Return a `Watch` that reports rows of the evaluating stage only, not of the stages before."""
    check_progress(progress)

    def watch(stage: str, done: int, total: int) -> None:
        if progress is not None and stage == EVALUATING:
            progress(done, total)

    return watch


def _reject(asked: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    for name in names:
        if asked[name] is not None:
            raise InputError(f"{name} does not apply to {what}")
