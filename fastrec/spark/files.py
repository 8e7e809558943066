"""Parquet files on a Spark cluster: Spark reads them, and their data frames are evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

from fastrec.arguments.calls import SparkFileOptions
from fastrec.arguments.groups import Path
from fastrec.arguments.signature import takes
from fastrec.checks import check_path, shown_url
from fastrec.exceptions import Argument, InputError, InputTypeError, MissingFileError
from fastrec.inputs.sides import NAMED, SIDES
from fastrec.inputs.table_folders import ENDINGS, MARKS, METADATA, find_inside
from fastrec.runtime.extras import require
from fastrec.spark.evaluation import SparkReport, evaluate

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
