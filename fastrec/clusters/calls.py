"""Options of calls on a cluster that differ from those on one machine, written out as in `fastrec.api.calls`."""

import os
from collections.abc import Sequence
from typing import Any

from fastrec.api.calls import evaluate

Path = str | os.PathLike[str]


def frames(
    *,
    user_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    exclude: Any = None,
    items: Any = None,
    history: Any = None,
    reference: Any = None,
    logged: Any = None,
    subtopics: Any = None,
    n_threads: int | None = None,
    n_partitions: int | None = None,
) -> None:
    """Take data frames of Dask or datasets of Ray.

    Parameters
    ----------
    user_weight : name of the column with the weight of each user in means
    by : name of the column, or several, to group users by
    exclude : data frame of items that a user has seen; they are removed and the gaps closed
        ``"history"``: remove the items of ``history``. ``"unjudged"``: remove items without a gain of 0 or more.
    items : table of items, for the metrics that read columns of it: a data frame, or as in `fastrec.evaluate`
        The driver collects it, and every task gets a copy. Its number of rows is the default of ``n_items``.
    history : data frame of past interactions of the users, for the metrics that read them
    reference : data frame of lists of the same users to compare with, for the metrics that read them
        It needs ranks or scores as ``recs`` does.
    logged : data frame with the propensities of the relevant items, for ``ips`` and ``snips``
        With ``examination`` it has the ranks they had. ``"truth"``: the columns of ``truth``.
    subtopics : data frame with the subtopics (user, item, subtopic) that items cover, for `alpha_dcg` and its kin
    n_threads : threads of each task; default: 1, as engines run a task per core
    n_partitions : tasks that evaluate; default: the largest number of partitions of a side; on Ray, one per 256 MB
        A task holds its partition in memory, which has all rows of its users.
    """


def parquet_files(
    *,
    exclude: Path | None = None,
    items: Path | None = None,
    history: Path | None = None,
    reference: Path | None = None,
    logged: Path | None = None,
    subtopics: Path | None = None,
) -> None:
    """Take paths of Parquet files.

    Parameters
    ----------
    exclude : path of items (user, item) to remove; ``"history"``: those of ``history``; ``"unjudged"``: all not judged
        Items are judged if the truth has a gain of 0 or more for them. ``"./history"`` names a file.
    items : path of the table of items, for the metrics that read columns of it
        One row per item: its id and further columns, with numbers, categories or lists. Its number of rows is the
        default of ``n_items``.
    history : path of past interactions (user, item) of the users, for the metrics that read them
    reference : path of lists to compare with, in the form of ``recs``, for the metrics that read them
    logged : path of the propensities (user, item, propensity) of the relevant items, for ``ips`` and ``snips``
        With ``examination`` it has the ranks they had. ``"truth"``: the columns of ``truth``.
    subtopics : path of the subtopics (user, item, subtopic) that items cover, for `alpha_dcg` and its kin
    """


def spark_tasks(*, n_threads: int | None = None, n_partitions: int | None = None) -> None:
    """Take the number of Spark tasks.

    Parameters
    ----------
    n_threads : threads of each task; default: ``spark.task.cpus``
    n_partitions : tasks that evaluate; default: ``spark.sql.shuffle.partitions``, small ones joined by Spark
        A task holds a part of its partition in memory, but always all rows of a user.
    """


SIDE_OPTIONS = "exclude items history reference logged subtopics"
TASK_OPTIONS = "n_threads n_partitions"
LIST_OPTIONS = (  # the options of lists, without their sides and tasks
    (evaluate, "k"),
    (frames, "user_weight"),
    (evaluate, "min_gain n_items user item rank score gain propensity logged_rank subtopic item_sep"),
    (frames, "by"),
    (evaluate, "n_users unseen no_history no_features examination like ties no_truth no_recs duplicates"),
    (evaluate, "sampled_from correct"),
)
