"""The four calls, written out: each option has its name, type, default and documentation here.

A function of `fastrec` implements each call, and others take some of its options; see `fastrec.arguments.options`.
Policies have the documentation of `fastrec.policies`. What a call leaves undocumented is as in `evaluate`.
Annotations are types, not strings, because `inspect.signature` and `help` show them.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastrec import policies
from fastrec.arguments.options import documents
from fastrec.checks import MinGain

Path = str | os.PathLike[str]
Progress = Callable[[int, int], Any]


@documents(*policies.POLICIES.values(), *policies.ITEM_POLICIES.values(), *policies.SAMPLING.values())
def evaluate(
    recs: Any,
    truth: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    groups: Any = None,
    user_weight: Any = None,
    user_ids: Any = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    items: Any = None,
    history: Any = None,
    n_users: int | None = None,
    unseen: policies.Unseen | None = None,
    no_history: policies.NoHistory | None = None,
    no_features: policies.NoFeatures | None = None,
    examination: Sequence[float] | None = None,
    reference: Any = None,
    logged: Any = None,
    subtopics: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    propensity: str | None = None,
    logged_rank: str | None = None,
    subtopic: str | None = None,
    item_sep: str | None = None,
    by: Any = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    no_recs: policies.NoRecs | None = None,
    duplicates: policies.Duplicates | None = None,
    n_threads: int | None = None,
    sampled_from: int | None = None,
    correct: policies.Correct = "none",
    progress: Progress | None = None,
) -> None:
    """Take recommended lists and held-out truth: the call of `fastrec.evaluate`.

    Parameters
    ----------
    k : cut-offs for the metrics without a cut-off of their own
    per_user : keep the value of every user, as float64, NaN for users that are not counted
    groups : one label per user, or a dict {name: labels}
        The report has mean, standard error and users per label. Labels are in the order of `Report.user_ids`, with
        dicts that of the keys of the truth; ``by={user: label}`` is matched by id. For scored rows with one key per
        row in ``user_ids``: one entry per row, equal for all rows of a user.
    user_weight : weight of each user in means, 0 or from 1e-100 to 1e100; with data frames the name of a column
        One weight per user, in the order that ``groups`` has, or {user: weight}, which is matched by id.
        In scored rows it multiplies the weights of the user's rows, and the weight in gauc.
    user_ids : a distinct label per user, for `Report.user_ids` and error messages
    min_gain : the gain from which an item is relevant; default: any gain above 0
        ``"any"``: every row of the truth is relevant, whatever its gain, and gains below 0 count as 0.
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
    n_items : size of the catalogue, for the metrics that need it
    exclude : items that a user has seen, in the forms of ``recs``; they are removed from the lists and the gaps closed
        ``"history"``: remove the items of ``history``. ``"unjudged"``: remove items without a gain of 0 or more.
    items : table of items, for the metrics that read columns of it
        A data frame or a dict of columns with ``item_id``, or a dict {item: {column: value}}. Columns hold numbers,
        categories (one or several per item) or vectors. Its number of rows is the default of ``n_items``.
    history : past interactions of the users, in the forms of ``truth``, for the metrics that read them
        An `Evaluator` takes dicts or data frames that hold the users of all batches; lists by position are the history
        of one batch. Its saved state keeps digests of the columns and counts that its metrics read; `merge` raises an
        error if they differ.
    n_users : number of users that column ``popularity`` of ``items`` counts; default: users of ``history`` with a row
    examination : probability that a user looks at rank 1, 2, ..., up to a factor for ``snips``, as from `position_bias`
        The propensity of a click is then that of its rank in ``logged``.
    reference : lists of the same users to compare with, in the forms of ``recs``, for the metrics that read them
    logged : propensities of the relevant items, for ``ips`` and ``snips``; with ``examination`` the ranks they had
        One number per row of ``truth``, or rows in the forms of ``truth`` with a number each. With data frames
        ``"truth"``: the columns of ``truth``.
    subtopics : subtopics that items cover for a user, numbers, for `alpha_dcg` and its kin: rows (user, item, subtopic)
        ``(items, indptr, subtopics)``, {user: {item: subtopic or list of subtopics}}, or a data frame. An item has a
        row for each subtopic. Leave out rows that say that an item does not cover a subtopic.
    user : name of the column of a data frame with users; default: ``user_id``
        Several names make a user of lists together, such as a user and a day; models have one.
    item : name of the column of a data frame with items; default: ``item_id``
    rank : name of the column of ranks, from 1, which order the lists; default: ``rank``, if present
        Without rank and score, lists keep the order of rows. `Report.data` says which applied. A warning names
        the only unused column of numbers that differs within lists if it implies another order.
    score : name of the column of scores, which order lists without ranks; default: ``score``, if present
    gain : name of the column of gains in the truth; default: ``gain``, if present, else all gains are 1
    propensity : name of the column of propensities in ``logged``; default: ``propensity``, if present
    logged_rank : name of the column in ``logged`` with the ranks of items, from 1; default: ``logged_rank``, if present
    subtopic : name of the column of subtopics in ``subtopics``; default: ``subtopic``, if present
    item_sep : what separates ids in cells of the column of items, as in ``"0706 0372"``; default: a cell has one id
        Each row is then the list of a user, in the order of its cell, and ids are strings. An empty cell has none.
    by : column or columns of data frames to group users by, or labels by user
        Columns do for data frames what ``groups`` does for arrays. Labels by user are {user: label}, such as
        ``dict(zip(users, segment_users(history, users)))``, {grouping: {user: label}}, a data frame of users in
        which each further column is a grouping, or a Series of pandas with the users as its index. Labels are all
        integers or all strings, and become strings.
        Users without a label, or with the label ``"(none)"``, form the group ``"(none)"``.
    like : a tool whose names, definitions and policies apply, such as ``"trec_eval"``; `explain` lists the tools
        ``metrics`` have their names in that tool and are computed as it does. Its values of ``min_gain`` and of
        the policies apply where the call does not give them. A tool that sorts by scores reads those of a frame or
        file that has ranks, too. A warning says if its number may be another.
    n_threads : threads to use; default: all that the machine grants
        The number does not change the bits.
    sampled_from : size of the catalogue, if each list holds the user's relevant items and a sample of the other items
        The samples are uniform, without replacement, from all items outside the user's truth.
    progress : called as progress(users done, users)
    """


@documents(policies.SAMPLING["sample"], others=evaluate)
def evaluate_model(
    model: Any,
    truth: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    users: Any = None,
    user_ids: Any = None,
    item_ids: Any = None,
    candidates: Any = None,
    user_bias: Any = None,
    item_bias: Any = None,
    groups: Any = None,
    user_weight: Any = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    items: Any = None,
    history: Any = None,
    n_users: int | None = None,
    unseen: policies.Unseen | None = None,
    no_history: policies.NoHistory | None = None,
    no_features: policies.NoFeatures | None = None,
    reference: Any = None,
    logged: Any = None,
    subtopics: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    propensity: str | None = None,
    logged_rank: str | None = None,
    subtopic: str | None = None,
    item_sep: str | None = None,
    by: Any = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    no_recs: policies.NoRecs | None = None,
    duplicates: policies.Duplicates | None = None,
    negatives: int | None = None,
    seed: int = 1,
    sample: policies.Sample = "uniform",
    correct: policies.Correct = "none",
    memory: int | str | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Take a model and held-out truth: the call of `fastrec.evaluate_model`.

    Parameters
    ----------
    users : the rows of the model to use, an integer array; default: all
        Row ``users[i]`` belongs to user i of the other arguments, or to the user of that name in ``user_ids``.
    user_ids : a distinct label per row of the model, which dicts and data frames name; default: row numbers, from 0
        Users of ``truth`` that the model lacks count as users without a list. Without ``user_ids`` they are an error.
    item_ids : a distinct id per item of the model, integers or strings; default: column numbers, from 0
        Items of other arguments that the model lacks are never listed, and the report counts those of ``truth`` and
        ``exclude``. Without ``item_ids`` they are an error; ``range(n)`` says that ids are column numbers.
    candidates : items that may be listed: array of ids for all users, or items of each user in the forms of ``truth``
        By default all items may. The size of the catalogue stays that of the model.
    user_bias : array (n_users,), added to the products of factors
    item_bias : array (n_items,), added to the products of factors
    n_items : the number of items that the model scores, which a function does not say; default: that of other models
        More, if metrics are to count items that the model lacks; a function must score as many.
    negatives : number of items to draw for each user, without replacement, in place of the whole catalogue
        Neither items of the user's truth nor excluded ones are drawn. The list of a user is these items and those of
        the truth. A user with fewer items left gets all of them, and the report counts such users.
    seed : seed of the draws, from 0 to 2^63 - 1
        The draws of a user follow from the seed, the user's row of the model and the items that are left.
    memory : bytes for scores and lists at a time, or a string such as ``"4GB"``, at least 64 MB; default: 512 MiB
        With less, fewer users are ranked at a time, and fewer threads work on large catalogues. The bits stay. Input,
        values per user and the returned lists take further memory, and so does a copy of the items' factors or weights
        if ``candidates`` choose some for all users, or ``ties="id_asc"`` or ``"id_desc"`` orders them.
    """


@documents(policies.TIES_OF_ROWS, policies.NO_TRUTH_OF_ROWS, policies.ONE_CLASS, others=evaluate)
def evaluate_scores(
    labels: Any,
    scores: Any = None,
    indptr: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    user_ids: Any = None,
    item_ids: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    user_weight: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    label: str | None = None,
    score: str | None = None,
    by: Any = None,
    row_groups: Any = None,
    row_by: str | Sequence[str] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    one_class: policies.OneClass = "drop",
    n_threads: int | None = None,
    per_user: bool = False,
    progress: Progress | None = None,
) -> None:
    """Take scored, labelled rows: the call of `fastrec.evaluate_scores`.

    Parameters
    ----------
    user_ids : with ``indptr`` one label per user; without it one key per row, rows in any order
        A tuple of several such arrays makes each combination of keys a user. Without ``indptr`` and ``user_ids``,
        only metrics over all rows are available.
    item_ids : array (n,), for ``ties='id_asc'`` and ``'id_desc'``
    sample_weight : array (n,), weights of rows, 0 or from 1e-100 to 1e100; metrics of lists take none
    user : name of the column of a data frame with users; default: ``user_id``, if present
        Several names make a user together.
    item : name of the column of a data frame with items, for ``ties='id_asc'`` and ``'id_desc'``
    label : name of the column of a data frame with labels; default: ``label``
    score : name of the column of a data frame with scores; default: ``score``
    row_groups : one label per row, or a dict {name: labels}, that may vary within a user: a position, a device
        The report has for each label what it would have for the rows with this label alone, in ``groups["row_group"]``
        or ``groups[name]``. Labels are integers or strings; a row with None, or a missing value of pandas,
        Polars or PyArrow, is in no segment.
    row_by : name of the column of a data frame, or several, to segment rows by
        Columns do for data frames what ``row_groups`` does for arrays. A row without a value is in no segment.
    min_gain : the label from which a row is positive
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
    """


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
) -> None:
    """Take paths of files: the call of `fastrec.evaluate_files`.

    Parameters
    ----------
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
    """
