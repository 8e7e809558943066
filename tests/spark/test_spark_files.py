"""Parquet files on Spark: the bits of one machine, of whatever files Spark reads, and errors that name the path."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrec
import fastrec.spark
from support.spark import MARKS, assert_same, having, make_lists

pytestmark = MARKS
pyspark = pytest.importorskip("pyspark", reason="no PySpark: pip install 'fastrec-eval[spark]'")
LISTS = ["ndcg@5", "recall@20", "map", "mrr"]
numbers = itertools.count()


@pytest.fixture
def in_files(session, tmp_path):
    """Return the folder in which rows are in several files of several row groups, in any order."""

    def write(table, n_files=3, rows_per_group=50):
        place = tmp_path / f"files{next(numbers)}"
        place.mkdir()
        order = np.random.default_rng(len(table)).permutation(len(table))
        for nth, own in enumerate(np.array_split(order, n_files)):
            pq.write_table(table.take(own), place / f"part-{nth}.parquet", row_group_size=rows_per_group)
        return place

    return write


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.string()], ids=str)
def test_files_in_any_order(in_files, kind):
    tables = make_lists()
    users = [[f"ü{user}" for user in own["user_id"].to_pylist()] for own in tables]
    named = zip(tables, users, strict=True)
    recs, truth = (
        having(own, user_id=texts if kind == pa.string() else own["user_id"].cast(kind)) for own, texts in named
    )
    options = {"k": [1, 5], "by": "plan", "user_weight": "weight", "per_user": True}
    report = fastrec.spark.evaluate_files(in_files(recs), in_files(truth, 2), LISTS, **options, n_partitions=5)
    wanted = fastrec.evaluate(recs, truth, LISTS, **options)
    assert_same(report, wanted)
    assert report.per_user.count() == len(wanted.user_ids)


def test_every_side_may_be_in_files(in_files):
    recs, truth = make_lists(40)
    seen = recs.filter(pa.array(np.arange(len(recs)) % 5 == 0)).select(["user_id", "item_id"])
    items = pa.table({"item_id": np.arange(80), "price": np.arange(80) * 1.5})
    call = {"metrics": ["recall@20", "popularity@5", "popularity(column=price)@5"], "exclude": "history"}
    sides = {"history": seen, "items": items}
    paths = {name: in_files(side, 1) for name, side in sides.items()}
    report = fastrec.spark.evaluate_files(in_files(recs), in_files(truth), **paths, **call)
    assert_same(report, fastrec.evaluate(recs, truth, **sides, **call))
    assert fastrec.spark.evaluate_files(in_files(recs), None, "item_coverage@5", n_items=80)


def test_files_in_buckets_and_folders_with_labels(session, in_files, tmp_path):
    """Files that Spark has written in buckets of users, with labels in the names of folders, spaces and signs."""
    recs, truth = make_lists(40)
    place = tmp_path / "a b%20+é=1#2"
    writer = session.createDataFrame(recs).write.partitionBy("plan").bucketBy(4, "user_id")
    writer.saveAsTable("recs", path=str(place))
    session.sql("DROP TABLE recs")  # the files remain
    report = fastrec.spark.evaluate_files(place, in_files(truth.drop_columns("plan")), LISTS, by="plan")
    wanted = fastrec.evaluate(recs, truth, LISTS, by="plan")
    assert dict(report) == dict(wanted) and report.groups.keys() == wanted.groups.keys()


def test_files_that_differ_are_read_as_spark_reads_them(session, in_files):
    """Columns in capitals, in another order, not null, of large strings, and files without rows."""
    recs, truth = (having(own, item_id=own["item_id"].cast(pa.string())) for own in make_lists())
    places = in_files(recs), in_files(truth)
    first, second, last = sorted(places[0].iterdir())
    pq.write_table(pq.read_table(first).rename_columns({"rank": "RANK"}), first)
    own = pq.read_table(second)
    strict = pa.schema([own.field(name).with_nullable(False) for name in own.column_names])
    at = strict.get_field_index("item_id")
    own = own.cast(strict.set(at, pa.field("item_id", pa.large_string(), nullable=False)))
    pq.write_table(own.select(own.column_names[::-1]), second)
    pq.write_table(recs.slice(0, 0), places[0] / "none.parquet")
    found = fastrec.spark.evaluate_files(*places, LISTS)
    assert_same(found, fastrec.spark.evaluate(*(session.read.parquet(str(place)) for place in places), LISTS))
    assert_same(found, fastrec.evaluate(recs, truth, LISTS))
    whole = last.read_bytes()
    last.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises(Exception, match="part-2"):
        fastrec.spark.evaluate_files(*places, LISTS)


def test_paths_that_cannot_be_read_are_errors(session, tmp_path, monkeypatch):
    whole, text, empty = (tmp_path / name for name in ("recs.parquet", "text.parquet", "empty"))
    pq.write_table(make_lists(10)[0], whole)
    text.write_text("user_id,item_id")
    empty.mkdir()
    for recs, truth, error, message in (
        ("/no/such", whole, fastrec.MissingFileError, r"recs: Spark cannot read '/no/such': PATH_NOT_FOUND"),
        (whole, empty, fastrec.InputError, r"truth: Spark cannot read .*: UNABLE_TO_INFER_SCHEMA"),
        (whole, text, fastrec.InputError, r"truth: Spark cannot read .*/text.parquet': .*footer"),
        (whole, "none://x", fastrec.InputError, "truth: Spark cannot read 'none://x': No FileSystem"),
        (None, whole, fastrec.InputTypeError, "recs must be a path"),
        (
            session.range(3),
            whole,
            fastrec.InputTypeError,
            "recs must be .* found a data frame",
        ),
        (whole, 7, fastrec.InputTypeError, r"truth must be a path, a string or an os.PathLike, found 7"),
    ):
        with pytest.raises(error, match=message):
            fastrec.spark.evaluate_files(recs, truth, "map")
    monkeypatch.setattr("pyspark.sql.SparkSession.active", no_session)
    with pytest.raises(fastrec.InputError, match="there is no Spark session"):
        fastrec.spark.evaluate_files(whole, whole, "map")


@pytest.mark.parametrize("mark", ["_delta_log/00.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
@pytest.mark.parametrize("is_cached", [False, True])
def test_tables_of_lakes_are_not_read_as_parquet(session, in_files, mark, is_cached):
    """Their folders may hold files of earlier versions."""
    recs, truth = make_lists(10)
    places = in_files(recs), in_files(truth)
    marked = places[1] / mark
    marked.parent.mkdir()
    marked.write_text("{}")
    if is_cached:
        session.read.parquet(str(places[1])).cache().count()
    with pytest.raises(fastrec.InputError, match=r"truth: .* is in a table of Delta, Iceberg or Hudi"):
        fastrec.spark.evaluate_files(*places, "map")
    session.catalog.clearCache()


def no_session():
    raise pyspark.errors.PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})
