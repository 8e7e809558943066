"""Options of calls on a cluster that differ from those on one machine, written out as in `fastrec.arguments.calls`."""

from collections.abc import Sequence
from typing import Any

from fastrec.arguments import calls


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
    (calls.evaluate, "k"),
    (frames, "user_weight"),
    (calls.evaluate, "min_gain n_items user item rank score gain propensity logged_rank subtopic item_sep"),
    (frames, "by"),
    (calls.evaluate, "n_users unseen no_history no_features examination like ties no_truth no_recs duplicates"),
    (calls.evaluate, "sampled_from correct"),
)
