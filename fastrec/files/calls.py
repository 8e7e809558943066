"""The call that evaluates files: each option has its name, type, default and documentation here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastrec import policies
from fastrec.api.calls import evaluate
from fastrec.arguments import differing, documents, pick
from fastrec.checks import MinGain
from fastrec.files.resources import Path, Progress
from fastrec.report.report import Report


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
    from fastrec.files.evaluate import report_of_files  # the command line reads the options of this call alone

    options = pick(evaluate_files, locals())
    return report_of_files(recs, truth, metrics, options, differing(evaluate_files, options))
