"""Parquet files on a Spark cluster: tasks read them, and shuffle nothing if they are in buckets of users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

from fastrec.arguments.calls import SparkFileOptions
from fastrec.arguments.groups import Path
from fastrec.arguments.signature import takes
from fastrec.checks import check_path, shown_url
from fastrec.engines.lists import plan_lists
from fastrec.engines.side import check_partitions
from fastrec.exceptions import Argument, InputError, InputTypeError, MissingFileError
from fastrec.inputs.sides import NAMED, SIDES
from fastrec.inputs.table_folders import ENDINGS, MARKS, METADATA, find_inside
from fastrec.runtime.extras import require
from fastrec.spark.buckets import find_buckets
from fastrec.spark.evaluation import SparkReport, evaluate_moved, report_of
from fastrec.spark.mounted import MOUNTED, OtherReaderError, states_or_refusal
from fastrec.spark.side import FrameSide, collect, count_history, states_of, usual_partitions
from fastrec.spark.spans import find_spans, move_spans, tables_or_refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["evaluate_files"]

NOT_FOUND = "PATH_NOT_FOUND"  # Spark's name of the condition


@takes(SparkFileOptions)
def evaluate_files(
    recs: Path,
    truth: Path | None = None,
    metrics: str | Iterable[str] | None = None,
    **given: Unpack[SparkFileOptions],
) -> SparkReport:
    """Evaluate recommended lists in Parquet files against held-out truth, on a Spark cluster.

    If Spark has written the files of all sides in buckets of users, each task reads the files of a bucket, and Spark
    shuffles no lists and no truth. The least number of buckets must divide the others. Tasks check the bucket of every
    user. Otherwise the rows may be in any order: tasks read the files, and Spark brings the rows of each user together.

    Parameters
    ----------
    recs, truth : paths of Parquet files, as ``spark.read.parquet`` takes them; rows as in `evaluate`
        Tasks read files that the driver and all executors see under the same local path. Spark reads all others, and
        columns of other types than integers, floats, booleans, strings and lists of these. With buckets, a task has one
        in memory at a time, and ``n_partitions`` is by default, and at most, their number.
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
    >>> recs.write.bucketBy(64, "user_id").saveAsTable(
    ...     "recs", path="/logs/recs"
    ... )  # doctest: +SKIP
    >>> truth.write.bucketBy(64, "user_id").saveAsTable(
    ...     "truth", path="/logs/truth"
    ... )  # doctest: +SKIP
    >>> report = fastrec.spark.evaluate_files(
    ...     "/logs/recs", "/logs/truth", "ndcg@10"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    n_partitions = check_partitions(given["n_partitions"])
    session = _active_session()
    asked: dict[str, Any] = {"recs": recs, "truth": truth, **given}
    asked |= {name: _read(session, name, asked[name]) for name in (*SIDES, "items") if name in asked}
    frames = asked.pop("recs"), asked.pop("truth")
    plan = plan_lists(frames, metrics, asked, FrameSide.open, collect, count_history)
    buckets = find_buckets(plan.sides, *plan.job.keys)
    if buckets is not None:
        job = plan.job._replace(read=buckets.tables)
        rows = session.range(0, buckets.number, 1, min(n_partitions or buckets.number, buckets.number))
        states = states_of(rows, job, states_or_refusal)
        if all(own["error"] is None for own in states):  # else rows may be in buckets that are not theirs
            return report_of(plan._replace(job=job), rows, states, per_user=given["per_user"])
    spans = find_spans(plan.sides, usual_partitions(session, None))
    if spans is not None:
        job = plan.job._replace(read=tables_or_refusal)
        rows = move_spans(session, spans, plan.sides, job, n_partitions)
        states = states_of(rows, job, states_or_refusal)
        if all(own["error"] != OtherReaderError.__name__ for own in states):
            return report_of(plan._replace(job=job), rows, states, per_user=given["per_user"])
    return evaluate_moved(plan, n_partitions, per_user=given["per_user"])


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
    if uris and all(uri.startswith(MOUNTED) for uri in uris):
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
