"""Lists in Spark data frames and files, evaluated on their cluster: the driver collects no rows of users.

Tasks pack rows into packets by user, and Spark moves packets so that all rows of a user meet
(`fastrec.clusters.packets`). There each partition becomes one row, the state of an evaluation, and the driver merges
these states (`fastrec.clusters.job`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fastrec.api import calls
from fastrec.arguments import options_of
from fastrec.checks import check_path, shown_url
from fastrec.clusters.calls import LIST_OPTIONS, SIDE_OPTIONS, TASK_OPTIONS, Path, frames, parquet_files, spark_tasks
from fastrec.clusters.lists import evaluate_lists
from fastrec.clusters.spark import FrameSide, SparkReport, report_of
from fastrec.clusters.table_folders import ENDINGS, MARKS, METADATA, find_inside
from fastrec.exceptions import Argument, InputError, InputTypeError, MissingFileError
from fastrec.inputs.sides import NAMED, SIDES
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOT_FOUND = "PATH_NOT_FOUND"  # Spark's name of the condition


@options_of(*LIST_OPTIONS, (frames, SIDE_OPTIONS), (calls.evaluate, "per_user"), (spark_tasks, TASK_OPTIONS))
def evaluate(
    recs: DataFrame,
    truth: DataFrame | None = None,
    metrics: str | Iterable[str] | None = None,
    **given: Any,
) -> SparkReport:
    """Evaluate recommended lists in Spark data frames against held-out truth: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth : data frames with one row per user and item, or one row per user with columns of lists
        Users and items are integers or strings. Spark rows have no order: lists with one row per item need a column of
        ranks or scores, and ``ties='input'`` needs columns of lists. A warning names an unused column of numbers in the
        truth with a name like a gain (``rating``). Unlike `fastrec.evaluate` it looks at the type only, as reading the
        values would take another Spark job. Metrics that read no truth need none. With ``per_user``,
        `SparkReport.per_user` is a data frame.
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    SparkReport
        Has the bits of `fastrec.evaluate` on the same rows, for any partitions. If the order of rows matters, as in
        sums of fractional gains of items with equal scores or of the numbers of a user's history, rows are in the
        order of the items.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`, also for faults that a task finds; without row numbers, as Spark rows have no order.
    MissingExtraError
        If PySpark or PyArrow is not installed; the extra ``spark`` installs both.

    Examples
    --------
    >>> report = fastrec.spark.evaluate(
    ...     recs, truth, ["ndcg@10", "recall@20"], by="plan"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    report, plan = evaluate_lists(FrameSide, (recs, truth), metrics, given)
    return report_of(report, list(plan.sides.values()), plan.job, given)


@options_of(*LIST_OPTIONS, (parquet_files, SIDE_OPTIONS), (calls.evaluate, "per_user"), (spark_tasks, TASK_OPTIONS))
def evaluate_files(
    recs: Path,
    truth: Path | None = None,
    metrics: str | Iterable[str] | None = None,
    **given: Any,
) -> SparkReport:
    """Evaluate recommended lists in Parquet files against held-out truth, on a Spark cluster.

    Spark reads the files, as ``spark.read.parquet`` does, and `evaluate` takes their data frames.

    Parameters
    ----------
    recs, truth : paths of Parquet files, as ``spark.read.parquet`` takes them; rows as in `evaluate`
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    SparkReport
        Has the bits of `evaluate` on the same rows. With ``per_user``, files must stay as they are until
        `SparkReport.per_user` has been read.

    Raises
    ------
    InputError, InputTypeError, MetricError, MissingExtraError
        As in `evaluate`; also if there is no session, or if Spark finds no Parquet files at a path.

    Examples
    --------
    >>> report = fastrec.spark.evaluate_files(
    ...     "/logs/recs", "/logs/truth", "ndcg@10"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    session = _active_session()
    asked: dict[str, Any] = {"recs": recs, "truth": truth, **given}
    frames = {name: _read(session, name, asked[name]) for name in (*SIDES, "items") if name in asked}
    return evaluate(metrics=metrics, **asked | frames)


def _active_session() -> SparkSession:
    require("pyarrow", "spark", what="fastrec.spark")
    sql = require("pyspark.sql", "spark", what="fastrec.spark")
    from pyspark.errors import PySparkRuntimeError

    try:
        session: SparkSession = sql.SparkSession.active()
    except PySparkRuntimeError:
        raise InputError("there is no Spark session: SparkSession.builder.getOrCreate() starts one") from None
    return session


def _read(session: SparkSession, name: str, path: Any) -> Any:
    """Return the data frame of Parquet files; None and names of sides as they are."""
    if (path is None and name != "recs") or (isinstance(path, str) and (name, path) in NAMED):
        return path
    if hasattr(path, "mapInArrow"):
        found = "found a data frame, which fastrec.spark.evaluate takes"
        raise InputTypeError(Argument(name), f" must be a path of Parquet files, {found}")
    place = check_path(name, path)
    try:
        frame = session.read.parquet(place)
        frame.schema  # noqa: B018 - Spark Connect looks at the files only now
    except Exception as error:  # of PySpark, or of Java
        reason = _reason(error)
        if reason is None:
            raise
        kind = MissingFileError if reason == NOT_FOUND else InputError
        raise kind(Argument(name), f": Spark cannot read {shown_url(place)!r}: {reason}") from error
    if _is_table(session, place, frame.inputFiles()):
        why = "is in a table of Delta, Iceberg or Hudi, which may keep files of earlier versions"
        mend = "fastrec.spark.evaluate takes the data frame of the table"
        raise InputError(Argument(name), f": {shown_url(place)!r} {why}: {mend}")
    return frame


def _is_table(session: SparkSession, place: str, uris: Sequence[str]) -> bool:
    """Return whether the files of a path are in the folder of a table with versions."""
    if uris and all(uri.startswith("file:") for uri in uris):
        return find_inside(unquote(urlsplit(uri).path) for uri in uris) is not None
    marks = ",".join([*MARKS, *(f"{METADATA}/*{ending}" for ending in ENDINGS)])
    try:
        session.read.text(f"{place}/{{{marks}}}").schema  # noqa: B018 - Spark finds no files where there is no mark
    except Exception as error:
        if _reason(error) != NOT_FOUND:
            raise
        return False
    return True


def _reason(error: Exception) -> str | None:
    """Return why Spark cannot read files: its name of the condition or Java's words; None for errors of others."""
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        condition: str | None = error.getCondition()
        return condition
    java = getattr(error, "java_exception", None)
    return None if java is None else str(java.getMessage())
