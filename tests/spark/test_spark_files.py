"""Parquet files on Spark, read by tasks in buckets of users or in any order, or by Spark: the same bits."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrec
import fastrec.spark
from fastrec.spark import buckets, files, mounted, spans
from fastrec.spark.bucket_hash import hashes_of
from support.spark import MARKS, as_lists, assert_same, having, make_lists

pytestmark = MARKS
pyspark = pytest.importorskip("pyspark", reason="no PySpark: pip install 'fastrec-eval[spark]'")
functions = pytest.importorskip("pyspark.sql.functions", reason="no PySpark: pip install 'fastrec-eval[spark]'")
LISTS = ["ndcg@5", "recall@20", "map", "mrr"]
numbers = itertools.count()


@pytest.fixture
def in_buckets(session, tmp_path):
    """Return the folder in which Spark has written a table in buckets."""

    def write(table, n_buckets=4, by=("user_id",), n_tasks=2):
        name = f"table{next(numbers)}"
        place = tmp_path / name
        frame = session.createDataFrame(table) if isinstance(table, pa.Table) else table
        frame.repartition(n_tasks).write.bucketBy(n_buckets, *by).saveAsTable(name, path=str(place))
        session.sql(f"DROP TABLE {name}")  # the files remain
        return place

    return write


@pytest.fixture
def moved(monkeypatch):
    """Return the list that gets an entry for each evaluation whose rows Spark moves."""
    found = []

    def move(plan, *arguments, **named):
        found.append(plan)
        return evaluate_moved(plan, *arguments, **named)

    evaluate_moved = files.evaluate_moved
    monkeypatch.setattr(files, "evaluate_moved", move)
    return found


def with_users(table, kind):
    users = table["user_id"]
    return having(
        table, user_id=users.cast(kind) if kind != pa.string() else [f"ü{user}" for user in users.to_pylist()]
    )


def parts_of(folder):
    return sorted(folder.rglob("*.parquet"))


def forget_checksums(folder):
    """Remove Spark's checksums of files that a test has changed."""
    for path in folder.glob(".*.crc"):
        path.unlink()


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.string()], ids=str)
def test_files_in_buckets_have_the_bits_of_one_machine(session, in_buckets, moved, kind):
    recs, truth = (with_users(table, kind) for table in make_lists())
    options = {"k": [1, 5], "by": "plan", "user_weight": "weight", "per_user": True}
    report = fastrec.spark.evaluate_files(in_buckets(recs, 8), in_buckets(truth, 4), LISTS, **options)
    assert not moved
    wanted = fastrec.evaluate(recs, truth, LISTS, **options)
    assert_same(report, wanted)
    values = report.per_user.toArrow().sort_by("user_id")
    assert values["user_id"].to_pylist() == sorted(wanted.user_ids.tolist())
    found = dict(zip(values["user_id"].to_pylist(), values["map@5"].to_pylist(), strict=True))
    assert found == {
        user: None if np.isnan(value) else value
        for user, value in zip(wanted.user_ids.tolist(), wanted.per_user["map@5"].tolist(), strict=True)
    }


@pytest.mark.parametrize("n_partitions", [1, 3, 100])
def test_a_task_may_have_several_buckets_or_none(in_buckets, moved, n_partitions):
    recs, truth = make_lists(30)
    report = fastrec.spark.evaluate_files(in_buckets(recs, 8), in_buckets(truth, 8), LISTS, n_partitions=n_partitions)
    assert not moved
    assert_same(report, fastrec.evaluate(recs, truth, LISTS))


def test_every_side_may_be_in_files(in_buckets, moved):
    recs, truth = make_lists(40)
    seen = recs.filter(pa.array(np.arange(len(recs)) % 5 == 0)).select(["user_id", "item_id"])
    items = pa.table({"item_id": np.arange(80), "price": np.arange(80) * 1.5})
    metrics = ["recall@20", "popularity@5", "popularity(column=price)@5"]
    paths = [in_buckets(table) for table in (recs, truth, seen)]
    place = paths[0].parent / "items.parquet"
    pq.write_table(items, place)
    report = fastrec.spark.evaluate_files(
        *paths[:2], metrics, history=paths[2], exclude="history", items=str(place), ties="worst"
    )
    assert not moved
    wanted = fastrec.evaluate(recs, truth, metrics, history=seen, exclude="history", items=items, ties="worst")
    assert_same(report, wanted)


@pytest.mark.parametrize("way", ["in_buckets", "in_files"])
def test_columns_of_lists(request, moved, way):
    write = request.getfixturevalue(way)
    recs, truth = map(as_lists, make_lists(40))
    recs = recs.select(["user_id", "item_id"])
    report = fastrec.spark.evaluate_files(write(recs), write(truth), LISTS)
    assert not moved
    assert_same(report, fastrec.evaluate(recs, truth, LISTS))


def test_metrics_without_a_truth(in_buckets, moved):
    recs, _ = make_lists(40)
    assert fastrec.spark.evaluate_files(in_buckets(recs), None, "item_coverage@5", n_items=80)
    assert not moved


def swap_names(folder):
    """Give two files the buckets of each other."""
    first, *_, last = parts_of(folder)
    own, other = (part.name.rpartition("_")[2] for part in (first, last))
    assert own != other
    first.rename(first.with_name(first.name.replace(own, other)))
    last.rename(last.with_name(last.name.replace(other, own)))


def add_a_stranger(folder):
    """Add a row of a user of another bucket at the end of a file, after those that tell the number of buckets."""
    first, *_, last = parts_of(folder)
    rows, strange = pq.read_table(first), pq.read_table(last).slice(0, 1)
    pq.write_table(pa.concat_tables([rows, having(strange, rank=[99], item_id=[999])]), first)


def narrow_the_last(folder):
    """Write the last file with another type, which Spark widens."""
    last = parts_of(folder)[-1]
    rows = pq.read_table(last)
    pq.write_table(having(rows, rank=rows["rank"].cast(pa.int32())), last)


def capitalise_the_last(folder):
    """Write the last file with a column in capitals, which Spark takes for the same."""
    last = parts_of(folder)[-1]
    pq.write_table(pq.read_table(last).rename_columns({"rank": "RANK"}), last)


def name_plainly(folder):
    for nth, part in enumerate(parts_of(folder)):
        part.rename(part.with_name(f"{nth}.parquet"))


def name_with_dates(folder):
    for nth, part in enumerate(parts_of(folder)):
        part.rename(part.with_name(f"recs_2026010112304512345{nth}.parquet"))


REFUSED_BY_TASKS = {"a stranger": add_a_stranger, "narrow": narrow_the_last, "capitals": capitalise_the_last}
CHANGES = REFUSED_BY_TASKS | {"swapped": swap_names, "plain names": name_plainly, "dates": name_with_dates}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("n_partitions", [None, 1])
def test_files_whose_names_are_wrong_give_the_same_bits(session, in_buckets, moved, monkeypatch, change, n_partitions):
    recs, truth = make_lists()
    places = in_buckets(recs, 4), in_buckets(truth, 4)
    CHANGES[change](places[0])
    forget_checksums(places[0])
    monkeypatch.setattr(buckets, "FIRST_ROWS", 40)
    tried = []
    monkeypatch.setattr(files, "find_buckets", lambda *sides: tried.append(buckets.find_buckets(*sides)) or tried[-1])
    options = {"n_partitions": n_partitions, "no_truth": "zero"}
    found = fastrec.spark.evaluate_files(*places, LISTS, **options)
    assert tried[0] is not None or change not in REFUSED_BY_TASKS
    assert len(moved) == (change in ("narrow", "capitals"))  # else tasks read them as files in any order
    frames = [session.read.parquet(str(place)) for place in places]
    assert_same(found, fastrec.spark.evaluate(*frames, LISTS, **options))
    assert found["recall@20"] > 0


def test_an_error_that_follows_from_wrong_names_is_none(in_buckets, moved, monkeypatch):
    """A user whose truth is in another bucket has one: a task that looks at one bucket cannot know."""
    recs, truth = make_lists(40)
    users = sorted({*recs["user_id"].to_pylist()} & {*truth["user_id"].to_pylist()})
    recs, truth = (side.filter(pa.compute.field("user_id").isin(users)) for side in (recs, truth))
    places, found = (in_buckets(recs, 4), in_buckets(truth, 4)), []

    def find(*sides):
        found.append(buckets.find_buckets(*sides))
        *files_of_truth, last = found[0].files["truth"]
        return found[0]._replace(files={**found[0].files, "truth": [last, *files_of_truth]})

    monkeypatch.setattr(files, "find_buckets", find)
    report = fastrec.spark.evaluate_files(*places, LISTS, no_truth="error", n_partitions=1)
    assert not moved
    assert_same(report, fastrec.evaluate(recs, truth, LISTS, no_truth="error"))


def test_the_first_rows_may_be_of_one_user(in_buckets, moved, monkeypatch):
    monkeypatch.setattr(buckets, "FIRST_ROWS", 1)
    recs, truth = make_lists(60)
    place = in_buckets(recs)
    for part in parts_of(place):
        pq.write_table(pq.read_table(part).sort_by("user_id"), part)
    forget_checksums(place)
    report = fastrec.spark.evaluate_files(place, in_buckets(truth), LISTS)
    assert not moved
    assert_same(report, fastrec.evaluate(recs, truth, LISTS))


def test_rows_in_the_memory_of_spark_are_not_forgotten(session, in_buckets, moved):
    """Spark names no files of a data frame that it has in memory."""
    recs, truth = make_lists(40)
    seen = recs.filter(pa.array(np.arange(len(recs)) % 5 == 0)).select(["user_id", "item_id"])
    places = [in_buckets(table) for table in (recs, truth, seen)]
    cached = session.read.parquet(str(places[2])).cache()
    cached.count()
    report = fastrec.spark.evaluate_files(*places[:2], LISTS, exclude=places[2])
    assert len(moved) == 1
    assert_same(report, fastrec.evaluate(recs, truth, LISTS, exclude=seen))
    cached.unpersist()


@pytest.mark.parametrize("n_users", [1, 2])
def test_few_users(in_buckets, n_users):
    recs, truth = (side.filter(pa.compute.field("user_id").isin([1, 3][:n_users])) for side in make_lists(10))
    report = fastrec.spark.evaluate_files(in_buckets(recs), in_buckets(truth), LISTS)
    assert_same(report, fastrec.evaluate(recs, truth, LISTS))


def test_files_that_are_not_in_buckets_of_users(session, in_buckets, moved, tmp_path):
    recs, truth = make_lists(40)
    wanted = fastrec.evaluate(recs, truth, LISTS, by="plan")
    whole = tmp_path / "whole.parquet"
    pq.write_table(truth, whole)
    narrow = having(truth, user_id=truth["user_id"].cast(pa.int32()))  # Spark hashes integers of other widths to others
    by_plan = tmp_path / "by plan"
    writer = session.createDataFrame(recs).write.partitionBy("plan").bucketBy(4, "user_id")
    writer.saveAsTable("partitioned", path=str(by_plan))
    session.sql("DROP TABLE partitioned")
    both = in_buckets(recs, by=("user_id", "item_id"))
    good = in_buckets(recs), in_buckets(truth)
    pairs = [(good[0], whole), (good[0], in_buckets(narrow)), (both, good[1]), (in_buckets(recs, 3), good[1])]
    pairs += [(by_plan, in_buckets(truth.drop_columns(["plan"])))]
    for nth, pair in enumerate(pairs):
        report = fastrec.spark.evaluate_files(*pair, LISTS, by="plan")
        assert len(moved) == (nth == 4), pair  # tasks know no labels of folders
        if nth < 4:
            assert_same(report, wanted)
        else:
            assert dict(report) == dict(wanted)


def test_labels_that_two_readers_may_spell_differently(in_buckets, moved):
    recs, truth = make_lists(20)
    days = np.datetime64("2026-01-01") + recs["plan"].to_numpy()
    with_days = recs.append_column("day", pa.array(days))
    report = fastrec.spark.evaluate_files(in_buckets(with_days), in_buckets(truth), LISTS, by="day")
    assert len(moved) == 1
    assert_same(report, fastrec.evaluate(with_days, truth, LISTS, by="day"))


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
@pytest.mark.parametrize("task_bytes", [1 << 11, 1 << 23], ids=["shares", "whole"])
def test_files_in_any_order(in_files, moved, monkeypatch, kind, task_bytes):
    monkeypatch.setattr(spans, "SMALLEST_TASK", task_bytes)
    monkeypatch.setattr(spans, "LARGEST_TASK", task_bytes)
    recs, truth = (with_users(table, kind) for table in make_lists())
    for n_partitions in (None, 1, 5):
        report = fastrec.spark.evaluate_files(
            in_files(recs), in_files(truth, 2), LISTS, by="plan", n_partitions=n_partitions, per_user=True
        )
        wanted = fastrec.evaluate(recs, truth, LISTS, by="plan", per_user=True)
        assert_same(report, wanted)
        values = report.per_user.toArrow().sort_by("user_id")
        order = np.argsort(wanted.user_ids)
        assert values["user_id"].to_pylist() == wanted.user_ids[order].tolist()
        for metric in LISTS:
            assert np.array_equal(values[metric].to_numpy(), wanted.per_user[metric][order], equal_nan=True)
    assert not moved


def test_every_side_may_be_in_files_in_any_order(in_files, moved):
    recs, truth = make_lists(40)
    seen = recs.filter(pa.array(np.arange(len(recs)) % 5 == 0)).select(["user_id", "item_id"])
    metrics, options = ["recall@20", "popularity@5"], {"exclude": "history", "ties": "worst"}
    found = fastrec.spark.evaluate_files(*map(in_files, (recs, truth)), metrics, history=in_files(seen), **options)
    assert not moved
    assert_same(found, fastrec.evaluate(recs, truth, metrics, history=seen, **options))


@pytest.mark.parametrize("change", [narrow_the_last, capitalise_the_last])
def test_files_that_only_spark_reads_as_it_does(session, in_files, moved, change):
    recs, truth = make_lists()
    places = in_files(recs), in_files(truth)
    change(places[0])
    found = fastrec.spark.evaluate_files(*places, LISTS)
    assert len(moved) == 1
    assert_same(found, fastrec.spark.evaluate(*(session.read.parquet(str(place)) for place in places), LISTS))
    assert found["recall@20"] > 0


def test_names_that_spark_cannot_tell_apart_are_not_read_by_tasks(tmp_path):
    pq.write_table(pa.table({"user_id": [1], "USER_ID": [2], "item_id": [3]}), tmp_path / "rows.parquet")
    uri = (tmp_path / "rows.parquet").as_uri()
    with pytest.raises(mounted.OtherReaderError):
        mounted.read_columns(uri, pa.schema([("user_id", pa.int64())]))
    assert mounted.read_columns(uri, pa.schema([("item_id", pa.int64())])).column(0).to_pylist() == [3]


@pytest.mark.parametrize("n_groups", [0, 1, 3, 7, 20])
@pytest.mark.parametrize("n_shares", [1, 3, 7])
def test_shares_of_a_file_have_each_row_once(tmp_path, n_groups, n_shares):
    rows = pa.table({"user_id": np.arange(n_groups * 5)})
    place = tmp_path / "rows.parquet"
    pq.write_table(rows, place, row_group_size=5)
    shares = [mounted.GroupShare(nth, n_shares) for nth in range(n_shares)]
    size = place.stat().st_size
    found = [own for share in shares for own in mounted.read_batches(place.as_uri(), rows.schema, share, n_bytes=size)]
    assert sorted(user for own in found for user in own["user_id"].to_pylist()) == list(range(n_groups * 5))
    with pytest.raises(mounted.OtherReaderError):
        list(mounted.read_batches(place.as_uri(), rows.schema, n_bytes=size + 1))


def test_files_of_other_writers(session, in_files, moved):
    """Columns that must not be null, in another order, or of large strings and lists."""
    recs, truth = (with_users(table, pa.string()) for table in make_lists())
    places = in_files(recs), in_files(truth)
    first, second, *_ = parts_of(places[0])
    for path, kind in ((first, pa.large_string()), (second, pa.string())):
        own = pq.read_table(path)
        strict = pa.schema([own.field(name).with_nullable(False) for name in own.column_names])
        own = own.cast(strict.set(strict.get_field_index("user_id"), pa.field("user_id", kind, nullable=False)))
        pq.write_table(own.select(own.column_names[::-1]), path)
    lists = as_lists(truth)
    at = lists.column_names.index("item_id")
    large = lists.set_column(at, "item_id", lists["item_id"].cast(pa.large_list(pa.int64())))
    for held in (places[1], in_files(large)):
        assert_same(fastrec.spark.evaluate_files(places[0], held, LISTS), fastrec.evaluate(recs, truth, LISTS))
    assert not moved


def test_a_damaged_file_among_others_is_an_error(in_files, moved):
    recs, truth = make_lists()
    places = in_files(recs), in_files(truth)
    damaged = parts_of(places[0])[1]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises(Exception, match="part-1"):
        fastrec.spark.evaluate_files(*places, LISTS)
    assert len(moved) == 1


def test_a_file_without_rows_and_one_without_row_groups(in_files, moved, tmp_path):
    recs, truth = make_lists()
    places = in_files(recs), in_files(truth)
    pq.write_table(recs.slice(0, 0), places[0] / "none.parquet")
    with pq.ParquetWriter(places[1] / "nothing.parquet", truth.schema):
        pass
    report = fastrec.spark.evaluate_files(*places, LISTS)
    assert not moved
    assert_same(report, fastrec.evaluate(recs, truth, LISTS))


def test_tasks_have_files_of_similar_size():
    sizes = {"large": 10 << 27, "some": 1 << 26, **{f"small {nth}": 10 for nth in range(300)}, "empty": 0}
    found = spans._spans_of(sizes, 10)
    of_large = [own for task in found for own in task if own.uri == "large"]
    assert of_large == [("large", (nth, 10), sizes["large"]) for nth in range(10)]
    assert {own.uri for task in found for own in task} == set(sizes)
    weights = [sum(sizes[own.uri] // own.share.of + spans.OPEN_BYTES for own in task) for task in found]
    assert max(weights) <= 2 * sorted(weights)[len(weights) // 2] and len(found) <= 20


WRONG = {
    "a null user": lambda recs: having(recs, user_id=pa.array([None, *recs["user_id"].to_pylist()[1:]], pa.int64())),
    "a rank twice": lambda recs: having(recs, rank=[1] * len(recs)),
    "no such column": lambda recs: recs.rename_columns({"item_id": "itemid"}),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("way", ["in_buckets", "in_files"])
def test_errors_are_those_of_one_machine(request, wrong, way):
    write = request.getfixturevalue(way)
    recs, truth = make_lists(20)
    recs = WRONG[wrong](recs)
    with pytest.raises(fastrec.FastrecError) as local:
        fastrec.evaluate(recs, truth, LISTS)
    with pytest.raises(fastrec.FastrecError) as found:
        fastrec.spark.evaluate_files(write(recs), write(truth), LISTS)
    assert type(found.value) is type(local.value)
    assert str(found.value).split(" ")[:4] == str(local.value).split(" ")[:4]


def test_paths_that_cannot_be_read_are_errors(session, tmp_path, monkeypatch):
    with pytest.raises(fastrec.MissingFileError, match=r"recs: Spark cannot read '/no/such': PATH_NOT_FOUND"):
        fastrec.spark.evaluate_files("/no/such", "/no/such", "map")
    whole = tmp_path / "recs.parquet"
    pq.write_table(make_lists(10)[0], whole)
    (tmp_path / "empty").mkdir()
    with pytest.raises(fastrec.InputError, match=r"truth: Spark cannot read .*: UNABLE_TO_INFER_SCHEMA"):
        fastrec.spark.evaluate_files(whole, tmp_path / "empty", "map")
    text = tmp_path / "text.parquet"
    text.write_text("user_id,item_id")
    with pytest.raises(fastrec.InputError, match=r"truth: Spark cannot read .*/text.parquet': .*footer"):
        fastrec.spark.evaluate_files(whole, text, "map")
    with pytest.raises(fastrec.InputError, match="truth: Spark cannot read 'none://x': No FileSystem"):
        fastrec.spark.evaluate_files(whole, "none://x", "map")
    with pytest.raises(fastrec.InputTypeError, match="recs must be a path"):
        fastrec.spark.evaluate_files(None, whole, "map")
    with pytest.raises(fastrec.InputTypeError, match=r"recs must be .* found a data frame.*fastrec.spark.evaluate"):
        fastrec.spark.evaluate_files(session.range(3), whole, "map")
    with pytest.raises(fastrec.InputTypeError, match=r"truth must be a path, a string or an os.PathLike, found 7"):
        fastrec.spark.evaluate_files(whole, 7, "map")
    monkeypatch.setattr("pyspark.sql.SparkSession.active", no_session)
    with pytest.raises(fastrec.InputError, match="there is no Spark session"):
        fastrec.spark.evaluate_files(whole, whole, "map")


@pytest.mark.parametrize("mark", ["_delta_log/00.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
@pytest.mark.parametrize("is_cached", [False, True])
def test_tables_of_lakes_are_not_read_as_parquet(session, in_buckets, mark, is_cached):
    """Their folders may hold files of earlier versions."""
    recs, truth = make_lists(10)
    places = in_buckets(recs), in_buckets(truth)
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


def test_the_hash_is_that_of_spark(session):
    draw = np.random.default_rng(5)
    tables = []
    for kind in ("int8", "int16", "int32", "int64"):
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        tables.append(np.append(draw.integers(least, most, 300, kind, endpoint=True), np.array([least, most], kind)))
    texts = ["", "a", "ab", "abc", "abcd", "abcdé", "用户 1", "\0", "a\0", "x" * 5000]
    texts += ["".join(map(chr, draw.integers(1, 0xD7FF, length))) for length in draw.integers(0, 40, 300)]
    for ids in (*tables, list(dict.fromkeys(texts))):
        table = pa.table({"id": ids})
        wanted = session.createDataFrame(table).coalesce(1).select(functions.hash("id")).toArrow().column(0)
        assert np.concatenate(list(hashes_of(table["id"]))).tolist() == wanted.to_pylist()
        cut = pa.chunked_array([table["id"].chunk(0).slice(3, 4), pa.array([None], table["id"].type)])
        assert np.concatenate(list(hashes_of(cut))).tolist() == wanted.to_pylist()[3:7]


def test_spaces_and_signs_in_paths(in_buckets, moved, session):
    recs, truth = make_lists(20)
    places = [in_buckets(table) for table in (recs, truth)]
    odd = places[0].with_name("a b%20+é=1#2")
    places[0].rename(odd)
    assert_same(fastrec.spark.evaluate_files(odd, places[1], LISTS), fastrec.evaluate(recs, truth, LISTS))
    assert not moved
