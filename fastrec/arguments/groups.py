"""Every argument of a call, declared once: its name, type, default and documentation.

A group is the type of the keyword arguments of a function, `**given: Unpack[Group]`; see `fastrec.arguments.signature`.
So an argument is added to one group, and every function that takes the group has it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from fastrec.policies import (
    DUPLICATES,
    NO_FEATURES,
    NO_HISTORY,
    NO_RECS,
    NO_TRUTH,
    NO_TRUTH_OF_ROWS,
    ONE_CLASS,
    SAMPLING,
    TIES,
    TIES_OF_ROWS,
    UNSEEN,
    Duplicates,
    NoFeatures,
    NoHistory,
    NoRecs,
    NoTruth,
    OneClass,
    Ties,
    Unseen,
)

MinGain = float | Literal["any"]
Path = str | os.PathLike[str]
Progress = Callable[[int, int], Any]


DEFAULTS = {"per_user": False, "one_class": ONE_CLASS.default, "input_format": "auto", "seed": 1}
DEFAULTS |= {name: policy.default for name, policy in SAMPLING.items()}
"""The defaults other than None. None takes the policy of the tool in `like`, else the default of the policy."""


# Groups of arguments that several functions share, in the order of signatures


class Cutoffs(TypedDict, total=False):
    """Cut-offs of metrics."""

    k: Annotated[int | Iterable[int] | None, "cut-offs for the metrics without a cut-off of their own"]


class PerUser(TypedDict, total=False):
    """Values per user."""

    per_user: Annotated[bool, "keep the value of every user, as float64, NaN for users that are not counted"]


class ArraysOfUsers(TypedDict, total=False):
    """Arrays about users."""

    groups: Annotated[
        Any,
        """one label per user, or a dict {name: labels}
        The report has mean, standard error and users per label. Labels are in the order of `Report.user_ids`, with
        dicts that of the keys of the truth; ``by={user: label}`` is matched by id. For scored rows with one key per
        row in ``user_ids``: one entry per row, equal for all rows of a user.
        """,
    ]
    user_weight: Annotated[
        Any,
        """weight of each user in means, 0 or from 1e-100 to 1e100; with data frames the name of a column
        One weight per user, in the order that ``groups`` has, or {user: weight}, which is matched by id.
        In scored rows it multiplies the weights of the user's rows, and the weight in gauc.
        """,
    ]


class UserIds(TypedDict, total=False):
    """Ids of users of lists."""

    user_ids: Annotated[Any, "a distinct label per user, for `Report.user_ids` and error messages"]


class RowIds(TypedDict, total=False):
    """Ids and weights of scored rows."""

    user_ids: Annotated[
        Any,
        """with ``indptr`` one label per user; without it one key per row, rows in any order
        A tuple of several such arrays makes each combination of keys a user. Without ``indptr`` and ``user_ids``,
        only metrics over all rows are available.
        """,
    ]
    item_ids: Annotated[Any, "array (n,), for ``ties='id_asc'`` and ``'id_desc'``"]
    sample_weight: Annotated[Any, "array (n,), weights of rows, 0 or from 1e-100 to 1e100; metrics of lists take none"]


class Relevance(TypedDict, total=False):
    """Which items of a truth are relevant."""

    min_gain: Annotated[
        MinGain | None,
        """the gain from which an item is relevant; default: any gain above 0
        ``"any"``: every row of the truth is relevant, whatever its gain, and gains below 0 count as 0.
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
        """,
    ]


class FileRelevance(TypedDict, total=False):
    """Which items of a truth are relevant, or which rows of a log are positive."""

    min_gain: Annotated[
        MinGain | None,
        """the gain or label from which an item is relevant; default: any gain above 0, in a log label 1
        ``"any"``: every row of the truth is relevant, whatever its gain, and gains below 0 count as 0.
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
        """,
    ]


class RowRelevance(TypedDict, total=False):
    """Which scored rows are positive."""

    min_gain: Annotated[
        float | None,
        """the label from which a row is positive
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
        """,
    ]


class Catalogue(TypedDict, total=False):
    """Size of the catalogue."""

    n_items: Annotated[int | None, "size of the catalogue, for the metrics that need it"]


class ItemData(TypedDict, total=False):
    """Data of items and past interactions."""

    items: Annotated[
        Any,
        """table of items, for the metrics that read columns of it
        A data frame or a dict of columns with ``item_id``, or a dict {item: {column: value}}. Columns hold numbers,
        categories (one or several per item) or vectors. Its number of rows is the default of ``n_items``.
        """,
    ]
    history: Annotated[
        Any,
        """past interactions of the users, in the forms of ``truth``, for the metrics that read them
        An `Evaluator` takes dicts or data frames that hold the users of all batches; lists by position are the history
        of one batch. Its saved state keeps digests of the columns and counts that its metrics read; `merge` raises an
        error if they differ.
        """,
    ]


class ItemPolicies(TypedDict, total=False):
    """Policies of metrics of items and histories."""

    n_users: Annotated[
        int | None,
        "number of users that the column ``popularity`` of ``items`` counts; default: users of ``history`` with a row",
    ]
    unseen: Annotated[Unseen | None, UNSEEN]
    no_history: Annotated[NoHistory | None, NO_HISTORY]
    no_features: Annotated[NoFeatures | None, NO_FEATURES]


class Examination(TypedDict, total=False):
    """How likely users are to look at a rank."""

    examination: Annotated[
        Sequence[float] | None,
        """probability that a user looks at rank 1, 2, ..., up to a factor for ``snips``, as from ``position_bias``
        The propensity of a click is then that of its rank in ``logged``.
        """,
    ]


class Seen(TypedDict, total=False):
    """Items to remove from lists."""

    exclude: Annotated[
        Any,
        """items that a user has seen, in the forms of ``recs``; they are removed from the lists and the gaps closed
        ``"history"``: remove the items of ``history``. ``"unjudged"``: remove items without a gain of 0 or more.
        """,
    ]


class SeenAlone(TypedDict, total=False):
    """Items to leave out of the first items of a model."""

    exclude: Annotated[Any, "items that a user has seen, in the forms of ``truth`` in `evaluate`; they are not listed"]


class IdColumnNames(TypedDict, total=False):
    """Names of the columns of ids in data frames."""

    user: Annotated[
        str | Sequence[str] | None,
        """name of the column of a data frame with users; default: ``user_id``
        Several names make a user of lists together, such as a user and a day; models have one.
        """,
    ]
    item: Annotated[str | None, "name of the column of a data frame with items; default: ``item_id``"]


Propensity = Annotated[
    str | None, "name of the column of propensities in ``logged``; default: ``propensity``, if present"
]
LoggedRank = Annotated[
    str | None,
    "name of the column in ``logged`` with the ranks that items had, from 1; default: ``logged_rank``, if present",
]
ItemSep = Annotated[
    str | None,
    """what separates ids in cells of the column of items, as in ``"0706 0372"``; default: a cell has one id
    Each row is then the list of a user, in the order of its cell, and ids are strings. An empty cell has none.
    """,
]
Subtopic = Annotated[str | None, "name of the column of subtopics in ``subtopics``; default: ``subtopic``, if present"]


class ListColumnNames(IdColumnNames, total=False):
    """Names of the columns of lists and truth in data frames."""

    rank: Annotated[
        str | None,
        """name of the column of ranks, from 1, which order the lists; default: ``rank``, if present
        Without rank and score, lists keep the order of rows. `Report.data` says which applied. A warning names
        the only unused column of numbers that differs within lists if it implies another order.
        """,
    ]
    score: Annotated[
        str | None,
        "name of the column of scores, which order lists without ranks; default: ``score``, if present",
    ]
    gain: Annotated[
        str | None,
        "name of the column of gains in the truth; default: ``gain``, if present, else all gains are 1",
    ]
    propensity: Propensity
    logged_rank: LoggedRank
    subtopic: Subtopic
    item_sep: ItemSep


class RowColumnNames(TypedDict, total=False):
    """Names of the columns of scored rows in a data frame."""

    user: Annotated[
        str | Sequence[str] | None,
        """name of the column of a data frame with users; default: ``user_id``, if present
        Several names make a user together.
        """,
    ]
    item: Annotated[
        str | None,
        "name of the column of a data frame with items, for ``ties='id_asc'`` and ``'id_desc'``",
    ]
    label: Annotated[str | None, "name of the column of a data frame with labels; default: ``label``"]
    score: Annotated[str | None, "name of the column of a data frame with scores; default: ``score``"]


class Groupings(TypedDict, total=False):
    """Groups of users."""

    by: Annotated[
        Any,
        """column or columns of data frames to group users by, or labels by user
        Columns do for data frames what ``groups`` does for arrays. Labels by user are {user: label}, such as
        ``dict(zip(users, segment_users(history, users)))``, {grouping: {user: label}}, a data frame of users in
        which each further column is a grouping, or a Series of pandas with the users as its index. Labels are all
        integers or all strings, and become strings.
        Users without a label, or with the label ``"(none)"``, form the group ``"(none)"``.
        """,
    ]


class RowSegments(TypedDict, total=False):
    """Segments of scored rows."""

    row_groups: Annotated[
        Any,
        """one label per row, or a dict {name: labels}, that may vary within a user: a position, a device
        The report has for each label what it would have for the rows with this label alone, in ``groups["row_group"]``
        or ``groups[name]``. Labels are integers or strings; a row with None, or a missing value of pandas,
        Polars or PyArrow, is in no segment.
        """,
    ]
    row_by: Annotated[
        str | Sequence[str] | None,
        """name of the column of a data frame, or several, to segment rows by
        Columns do for data frames what ``row_groups`` does for arrays. A row without a value is in no segment.
        """,
    ]


class Like(TypedDict, total=False):
    """Definitions of another tool."""

    like: Annotated[
        str | None,
        """a tool whose names, definitions and policies apply, such as ``"trec_eval"``; `explain` lists the tools
        ``metrics`` have their names in that tool and are computed as it does. Its values of ``min_gain`` and of
        the policies apply where the call does not give them. A tool that sorts by scores reads those of a frame or
        file that has ranks, too. A warning says if its number may be another.
        """,
    ]


class ListPolicies(TypedDict, total=False):
    """Policies of lists."""

    ties: Annotated[Ties | None, TIES]
    no_truth: Annotated[NoTruth | None, NO_TRUTH]
    no_recs: Annotated[NoRecs | None, NO_RECS]
    duplicates: Annotated[Duplicates | None, DUPLICATES]


class RowPolicies(TypedDict, total=False):
    """Policies of scored rows."""

    ties: Annotated[Ties | None, TIES_OF_ROWS]
    no_truth: Annotated[NoTruth | None, NO_TRUTH_OF_ROWS]


class Classes(TypedDict, total=False):
    """Policy of rows of one class."""

    one_class: Annotated[OneClass, ONE_CLASS]


class Threads(TypedDict, total=False):
    """Threads to use."""

    n_threads: Annotated[
        int | None,
        """threads to use; default: all that the machine grants
        The number does not change the bits.
        """,
    ]


class Watched(TypedDict, total=False):
    """Progress."""

    progress: Annotated[Progress | None, "called as progress(users done, users)"]


class FileColumnNames(TypedDict, total=False):
    """Names of columns in files."""

    user: Annotated[
        str | Sequence[str] | None,
        """name of the column of users in all files; default: ``user_id``, in a log if present
        Several names of a log make a user together.
        """,
    ]
    item: Annotated[
        str | None,
        """name of the column of items in all files; default: ``item_id``
        A log needs it for ``ties='id_asc'`` and ``'id_desc'`` only.
        """,
    ]
    rank: Annotated[
        str | None,
        """name of the column of ranks in ``recs``, from 1; default: ``rank``, if present
        Rank orders the lists, else score, else the order of rows in the file. Some tools of ``like`` read score first.
        """,
    ]
    score: Annotated[
        str | None,
        "name of the column of scores in a log, or in ``recs`` without ranks; default: ``score``",
    ]
    gain: Annotated[str | None, "name of the column of gains in ``truth``; default: ``gain``, if present"]
    propensity: Propensity
    logged_rank: LoggedRank
    subtopic: Subtopic
    item_sep: ItemSep
    label: Annotated[
        str | None,
        """name of the column of labels in a log; default: ``label``
        ``label`` and ``score`` may be true and predicted ratings.
        """,
    ]
    sample_weight: Annotated[str | None, "name of the column with the weights of the rows of a log"]
    by: Annotated[
        Any,
        """name of the column, or several, to group users by, in any of the files, one value per user
        Or labels by user, as in `evaluate`.
        """,
    ]


class FileSegments(TypedDict, total=False):
    """Segments of the rows of a log in files."""

    row_by: Annotated[
        str | Sequence[str] | None,
        """name of the column of a log, or several, to segment rows by, such as a position or a device
        The report has for each value what it would have for the rows with this value alone. A row without a value
        is in no segment.
        """,
    ]


class FileOfUsers(TypedDict, total=False):
    """Labels of users in a file."""

    users: Annotated[
        Path | None,
        "path of a file with one row per user: the column of users and the columns that ``by=`` names",
    ]


class FileOfSeen(TypedDict, total=False):
    """Items to remove from lists, in a file."""

    exclude: Annotated[
        Path | None,
        """path of items (user, item) to remove; ``"history"``: those of ``history=``; ``"unjudged"``: those not judged
        Items are judged if the truth has a gain of 0 or more for them. ``"./history"`` names a file.
        """,
    ]


class FileOfItems(TypedDict, total=False):
    """Data of items in a file."""

    items: Annotated[
        Path | None,
        """path of the table of items, for the metrics that read columns of it
        One row per item: its id and further columns, with numbers, categories or, in Parquet and JSON lines, lists.
        Its number of rows is the default of ``n_items``.
        """,
    ]


class InputFormat(TypedDict, total=False):
    """How to read files."""

    input_format: Annotated[
        str,
        """format of all files; ``"auto"``: detect the format of each file from its beginning
        The others are ``"parquet"``, ``"arrow"``, ``"csv"``, ``"jsonl"`` and ``"trec"``; lines of the last may also
        have three words: query, document and rank.
        """,
    ]
    csv: Annotated[
        Mapping[str, str] | None,
        """how the values of CSV files are written, as ``{"delimiter": ";", "decimal": ","}``; all text is then CSV
        Further names are ``"quote"`` (``""``: quotes are characters like others), ``"escape"``, the character before
        a quote within a value, and ``"encoding"``. What is not named is as the file shows: one of four delimiters, or
        the one after ``sep=`` in the first line; commas as decimal points where semicolons separate; backslashes
        before quotes; UTF-16 with a byte order mark, else UTF-8.
        """,
    ]


class Limits(TypedDict, total=False):
    """Limits of an evaluation of files."""

    memory: Annotated[
        int | str | None,
        """bytes, or a string such as ``"4GB"``, at least 64 MB; default: half of the available memory
        Python, the packages and compiled code take up to 400 MB more. These grow beyond the limit: the rows of
        the largest user, user ids (about 16 bytes per character of the longest, for each user), values per user,
        the distinct scores of a global AUC, the rows of a global XAUC, and curves. Ids of more than 1,000
        characters may need 300 MB or more; with less, the call may fail. The table of ``items`` is held in memory.
        """,
    ]
    temp_directory: Annotated[
        Path | None,
        "folder for temporary files when the rows do not fit in memory; default: that of the system",
    ]


class WatchedRows(TypedDict, total=False):
    """Progress in files."""

    progress: Annotated[
        Progress | None,
        "called as ``progress(done, total)`` with numbers of rows, while fastrec evaluates them",
    ]


class FrameWeights(TypedDict, total=False):
    """Weights in data frames on a cluster."""

    user_weight: Annotated[str | None, "name of the column with the weight of each user in means"]


class FrameGroupings(TypedDict, total=False):
    """Groups of users in data frames on a cluster."""

    by: Annotated[str | Sequence[str] | None, "name of the column, or several, to group users by"]


class FrameSegments(TypedDict, total=False):
    """Segments of scored rows in data frames on a cluster."""

    row_by: Annotated[str | Sequence[str] | None, "name of the column, or several, to segment rows by"]


class FrameOfWeights(TypedDict, total=False):
    """Weights of rows in a data frame on a cluster."""

    sample_weight: Annotated[
        str | None,
        """name of the column with the weights of rows
        With weights, metrics of the order of all rows are not available.
        """,
    ]
