"""Arguments of calls on clusters: the tasks that evaluate, and their threads."""

from typing import Annotated, TypedDict


class EngineTasks(TypedDict, total=False):
    """Threads and tasks of Dask and Ray."""

    n_threads: Annotated[int | None, "threads of each task; default: 1, as engines run a task per core"]
    n_partitions: Annotated[
        int | None,
        """tasks that evaluate; default: the largest number of partitions of a side; on Ray, one per 256 MB
        A task holds its partition in memory, which has all rows of its users.
        """,
    ]


class SparkTasks(TypedDict, total=False):
    """Threads and tasks of Spark."""

    n_threads: Annotated[int | None, "threads of each task; default: ``spark.task.cpus``"]
    n_partitions: Annotated[
        int | None,
        """tasks that evaluate; default: ``spark.sql.shuffle.partitions``, small ones joined by Spark
        A task holds a part of its partition in memory, but always all rows of a user.
        """,
    ]
