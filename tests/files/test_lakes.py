"""Delta and Iceberg tables: the current version has the bits of a frame, and damages are errors of one line."""

import gzip
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import fastrec
from fastrec import evaluate_files
from fastrec.exceptions import InputError, InputTypeError, MissingExtraError, MissingFileError
from fastrec.files import job, opened, paths
from support.bits import bits_of
from support.logs import ranked_lists
from support.read_files import fails

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pq = pytest.importorskip("pyarrow.parquet")

METRICS = ["ndcg@5", "recall@3", "mrr"]


TRUTH = ranked_lists(n_users=120, n_items=3, seed=2).drop_columns("rank")
SHOP = pa.table({"item_id": np.arange(30), "genre": ["a", "b", "c"] * 10})


@pytest.fixture
def truth(tmp_path):
    pq.write_table(TRUTH, tmp_path / "truth.parquet")
    return tmp_path / "truth.parquet"


def check(path, rows, truth, **options):
    """Compare a table on disk with a frame, read as a whole and in parts."""
    wanted = bits_of(fastrec.evaluate(rows, TRUTH, METRICS, **options))
    assert bits_of(evaluate_files(path, truth, METRICS, **options)) == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "COPIES", 10**9)
        assert bits_of(evaluate_files(path, truth, METRICS, memory="64MB", **options)) == wanted


# Without the packages


def plain_table(folder, kind, metadata="v1.metadata.json"):
    """Write two files, and what marks the folder as a table; return the path of the first file."""
    mark = {"delta": "_delta_log/0.json", "iceberg": f"metadata/{metadata}", "hudi": ".hoodie/x"}[kind]
    data = folder / {"delta": "day=1", "iceberg": "data", "hudi": "day=1"}[kind]
    for path in (data, (folder / mark).parent):
        path.mkdir(parents=True)
    (folder / mark).write_text("{}")
    for at in range(2):
        pq.write_table(ranked_lists(at * 40), data / f"{at}.parquet")
    return data / "0.parquet"


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_without_its_package_is_an_error(tmp_path, truth, monkeypatch, kind):
    plain_table(tmp_path / "recs", kind)
    monkeypatch.setitem(sys.modules, {"delta": "deltalake", "iceberg": "pyiceberg"}[kind], None)
    for name in [name for name in sys.modules if name.startswith("pyiceberg.")]:
        monkeypatch.delitem(sys.modules, name)
    told = fails(tmp_path / "recs", truth, error=MissingExtraError)
    package = {"delta": "Delta tables needs deltalake", "iceberg": "Iceberg tables needs pyiceberg"}[kind]
    assert told == f"reading {package}: pip install 'fastrec-eval[{kind}]'"


@pytest.mark.parametrize("path", ["", "recs/{data}", "recs/{data}/*.parquet", "recs/**", "re*", "recs/{data}/[0]*"])
@pytest.mark.parametrize("kind", ["delta", "iceberg", "hudi"])
def test_a_folder_or_pattern_that_finds_files_in_a_table_is_an_error(tmp_path, truth, kind, path):
    file = plain_table(tmp_path / "shop" / "recs", kind)
    told = fails(tmp_path / "shop" / path.format(data=file.parent.name), truth)
    table = f"{tmp_path}/shop/recs, {'an' if kind == 'iceberg' else 'a'} {kind.title()} table"
    assert f"is in {table}, which may keep files of earlier versions: name that folder, or single files" in told


@pytest.mark.parametrize("kind", ["delta", "iceberg", "hudi"])
def test_a_single_file_of_a_table_is_read_as_it_is(tmp_path, truth, kind):
    check(plain_table(tmp_path / "recs", kind), ranked_lists(), truth)


@pytest.mark.parametrize("name", ["00001-a-b.metadata.json", "v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_a_link_into_a_table_is_as_its_target(tmp_path, truth, name):
    """A link to a folder, and a folder of links to files; the names of metadata are those that writers give."""
    file = plain_table(tmp_path / "recs", "iceberg", name)
    (tmp_path / "today").symlink_to(file.parent)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "0.parquet").symlink_to(file)
    for path in ("today", "today/*.parquet", "links", "links/*"):
        assert f"is in {tmp_path}/recs, an Iceberg table, which may" in fails(tmp_path / path, truth)
    check(tmp_path / "links" / "0.parquet", ranked_lists(), truth)


def test_other_folders_and_files_with_such_names_are_no_tables(tmp_path, truth):
    """JSON lines, a file in place of a folder, and metadata that are not of Iceberg."""
    lines = "\n".join(map(json.dumps, ranked_lists().to_pylist()))
    path = tmp_path / "v1.metadata.json"
    path.write_text(lines)
    check(path, ranked_lists(), truth)
    (tmp_path / "recs" / "metadata").mkdir(parents=True)
    pq.write_table(ranked_lists(), tmp_path / "recs" / "0.parquet")
    (tmp_path / "recs" / "metadata" / "recs.metadata.json").touch()
    check(tmp_path / "recs" / "*.parquet", ranked_lists(), truth)
    shutil.rmtree(tmp_path / "recs" / "metadata")
    pq.write_table(ranked_lists(40), tmp_path / "recs" / "metadata")
    check(tmp_path / "recs" / "*.parquet", ranked_lists(), truth)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_name_of_a_table_that_is_not_utf8(tmp_path, truth, kind):
    plain_table(tmp_path / "recs", kind)
    folder = (tmp_path / "recs").rename(tmp_path / "recs\udcff")
    assert fails(folder, truth).endswith(": the name is not UTF-8; rename the file, or read a link to it")


def test_each_folder_is_looked_at_once(tmp_path, truth, monkeypatch):
    """Also one with a name that a pattern would take as one: no folder above it is listed."""
    for at in range(9):
        (tmp_path / "[recs]" / f"day=[{at}]").mkdir(parents=True)
        pq.write_table(ranked_lists(at * 9, 9), tmp_path / "[recs]" / f"day=[{at}]" / "0.parquet")
    listed = []
    monkeypatch.setattr(os, "listdir", lambda path, own=os.listdir: (listed.append(path), own(path))[1])
    assert len(paths.find_files(str(tmp_path / "[recs]")).paths) == 9
    assert len(listed) == len({*listed}) + 1 and {os.path.basename(path) for path in listed} == {"metadata"}


def test_hudi_tables_are_not_read(tmp_path, truth):
    plain_table(tmp_path / "recs", "hudi")
    assert fails(tmp_path / "recs", truth).startswith(f"{tmp_path}/recs: Hudi tables are not read; write the rows as")


# Delta


@pytest.fixture(scope="module")
def delta():
    return pytest.importorskip("deltalake", reason="no deltalake: .ci/full places installs it")


def commit(table, *actions):
    """Add a version to the log of a table, as another program may write it."""
    log = table / "_delta_log"
    path = log / f"{len(list(log.glob('*.json'))):020}.json"
    path.write_text("\n".join(map(json.dumps, actions)))


def action(table, kind):
    """Return an action of the first version of a table."""
    lines = (table / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return next(found[kind] for found in map(json.loads, lines) if kind in found)


def test_the_current_version_of_a_delta_table(delta, tmp_path, truth):
    table = tmp_path / "recs"
    old, new, more = ranked_lists(), ranked_lists(seed=3), ranked_lists(40, seed=4)
    delta.write_deltalake(table, old)
    check(table, old, truth)
    delta.write_deltalake(table, new, mode="overwrite")
    delta.write_deltalake(table, more, mode="append")
    check(table, pa.concat_tables([new, more]), truth)
    delta.DeltaTable(table).delete("user_id % 3 = 0")
    kept = pa.concat_tables([new, more])
    kept = kept.filter(pa.array([user % 3 != 0 for user in kept["user_id"].to_pylist()]))
    check(table, kept, truth)
    delta.DeltaTable(table).optimize.compact()
    delta.DeltaTable(table).create_checkpoint()
    check(table, kept, truth)
    n_files = len(list(table.glob("*.parquet")))
    delta.DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(list(table.glob("*.parquet"))) < n_files
    check(table, kept, truth)


def test_delta_tables_as_truth_items_and_logs(delta, tmp_path):
    rng = np.random.default_rng(5)
    log = pa.table({"user_id": np.repeat(np.arange(30), 8), "label": np.tile([0, 1], 120), "score": rng.random(240)})
    tables = {"truth": TRUTH, "items": SHOP, "log": log}
    for name, rows in tables.items():
        delta.write_deltalake(tmp_path / name, rows.slice(0, 7))
        delta.write_deltalake(tmp_path / name, rows, mode="overwrite")
    pq.write_table(ranked_lists(), tmp_path / "recs.parquet")
    asked = ["mrr", "category_coverage(column=genre)@5"]
    wanted = fastrec.evaluate(ranked_lists(), TRUTH, asked, items=SHOP)
    found = evaluate_files(tmp_path / "recs.parquet", tmp_path / "truth", asked, items=tmp_path / "items")
    assert bits_of(found) == bits_of(wanted)
    found = evaluate_files(tmp_path / "log", metrics=["auc", "gauc", "log_loss"])
    assert bits_of(found) == bits_of(fastrec.evaluate_scores(log, metrics=["auc", "gauc", "log_loss"]))


def test_partitions_of_a_delta_table(delta, tmp_path, truth):
    """Values have characters that folders escape, and a null; the old files of a partition are not read."""
    table = tmp_path / "recs"
    days = ["2024-01-01", "a b/c", "50 %", "é=?", None]
    rows = ranked_lists().append_column("day", pa.array(days * 8).take(ranked_lists()["user_id"]))
    delta.write_deltalake(table, rows.slice(0, 60), partition_by=["day"])
    delta.write_deltalake(table, rows, mode="overwrite", partition_by=["day"])
    check(table, rows, truth, by="day")
    delta.DeltaTable(table).delete("day = '50 %'")
    check(table, rows.filter(pc.fill_null(pc.not_equal(rows["day"], "50 %"), fill_value=True)), truth, by="day")


def test_partitions_of_numbers_and_dates(delta, tmp_path, truth):
    columns = {
        "whole": pa.array([-7, 2**40]),
        "share": pa.array([0.5, 1e20]),
        "date": pa.array([0, 19_000], pa.date32()),
        "price": pa.array(["1.50", "2.00"]).cast(pa.decimal128(5, 2)),
        "is_new": pa.array([True, False]),
        "time": pa.array([0, 3_600_000_000], pa.timestamp("us")),
        "code": pa.array(["7", "007"]),
        "week": pa.array(["10", "9"]),
    }
    rows = ranked_lists()
    for name, values in columns.items():
        rows = rows.append_column(name, values.take(pc.bit_wise_and(rows["user_id"], 1)))
    delta.write_deltalake(tmp_path / "recs", rows, partition_by=list(columns))
    check(tmp_path / "recs", rows, truth, by=["whole", "date", "is_new", "time", "code", "week"])
    for name in ("share", "price"):
        assert f"column {name!r} holds d" in fails(tmp_path / "recs", truth, error=InputTypeError, by=name)


def test_partitions_match_columns_of_other_files(delta, tmp_path):
    """Labels, ids and gains in the folders of one table are those in the files of another."""
    rows, held = (
        table.append_column("is_new", pc.equal(pc.bit_wise_and(table["user_id"], 1), 1))
        for table in (ranked_lists(), TRUTH)
    )
    held = held.append_column("gain", pa.array([0.5, 1.0, 2.0] * 120))
    delta.write_deltalake(tmp_path / "recs", rows, partition_by=["is_new", "user_id"])
    delta.write_deltalake(tmp_path / "held", held, partition_by=["gain"])
    wanted = fastrec.evaluate(rows, held, METRICS, by="is_new")
    assert bits_of(evaluate_files(tmp_path / "recs", tmp_path / "held", METRICS, by="is_new")) == bits_of(wanted)
    texts = rows.set_column(0, "user_id", rows["user_id"].cast(pa.string()))
    delta.write_deltalake(tmp_path / "texts", texts, partition_by=["user_id"])
    assert "user ids must be of one type" in fails(tmp_path / "texts", tmp_path / "held", error=InputTypeError)


def test_a_column_that_was_added_to_a_delta_table(delta, tmp_path, truth):
    table, new = tmp_path / "recs", ranked_lists(40).append_column("plan", pa.array(["free", "paid"] * 120))
    delta.write_deltalake(table, ranked_lists())
    delta.write_deltalake(table, new, mode="append", schema_mode="merge")
    check(table, pa.concat_tables([ranked_lists(), new.drop_columns("plan")]), truth)
    delta.DeltaTable(table).alter.add_columns([delta.Field("score", "double"), delta.Field("gain", "double")])
    told = fails(table, truth, score="score")
    assert told == f"{table}: column 'score' must not be null, found null in row 1"
    check(
        table, pa.concat_tables([ranked_lists(), new.drop_columns("plan")]), truth
    )  # neither is read beside the ranks
    delta.write_deltalake(tmp_path / "held", TRUTH)
    delta.DeltaTable(tmp_path / "held").alter.add_columns(delta.Field("gain", "double"))
    assert "column 'gain' must not be null, found null" in fails(table, tmp_path / "held")


FEATURES = {"minReaderVersion": 3, "minWriterVersion": 7}
VECTOR = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # rows 3, 4, 7, 11, 18, 29; from Delta's own tests


def change(table, case, place):
    """Write the next version of a Delta table, as another program may."""
    add, meta = action(table, "add"), action(table, "metaData")
    fields = json.loads(meta["schemaString"])
    for at, field in enumerate(fields["fields"]):
        own = {"delta.columnMapping.physicalName": field["name"], "delta.columnMapping.id": at}
        field["metadata"] = own if "mapping" in case else {}
    mapped = {**meta, "schemaString": json.dumps(fields)}
    vector = {"storageType": "i", "pathOrInlineDv": VECTOR, "sizeInBytes": 44, "cardinality": 6}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = {
        "mapping by name": [{"metaData": {**mapped, "configuration": {"delta.columnMapping.mode": "name"}}}],
        "mapping by id": [{"metaData": {**mapped, "configuration": {"delta.columnMapping.mode": "id"}}}],
        "vector": [{"protocol": {**FEATURES, **features}}, {"remove": {"path": add["path"], "dataChange": True}}],
        "vector elsewhere": [{"remove": {"path": add["path"], "dataChange": True}}],
        "vector above": [{"remove": {"path": add["path"], "dataChange": True}}],
        "vector without the feature": [{"remove": {"path": add["path"], "dataChange": True}}],
        "feature": [{"protocol": {**FEATURES, "readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}}],
        "unknown": [{"protocol": {**FEATURES, "readerFeatures": ["noSuch"], "writerFeatures": ["noSuch"]}}],
        "elsewhere": [{"add": {**add, "path": f"{place.as_uri()}/{add['path']}"}}],
        "bucket": [{"add": {**add, "path": f"s3://ann:secret@shop/{add['path']}?secret"}}],
        "above": [{"add": {**add, "path": f"../other/{add['path']}"}}],
        "gone": [{"add": {**add, "path": "no.parquet"}}],
        "partition": [{"metaData": {**meta, "partitionColumns": ["user_id"]}}],
        "damaged": [{"add": 7}],
    }[case]
    own = {"vector elsewhere": ("p", f"{place.as_uri()}/dv.bin"), "vector above": ("u", f"../other{'a' * 20}")}
    if case in own:
        vector |= {"storageType": own[case][0], "pathOrInlineDv": own[case][1], "offset": 1}
    if "mapping" in case:
        actions.append({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
    if "vector" in case:
        actions.append({"add": {**add, "deletionVector": vector}})
    commit(table, *actions)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("vector elsewhere", "the table has a deletion vector that may not be in its folder; write the rows as"),
        ("vector above", "the table has a deletion vector that may not be in its folder; write the rows as Parquet"),
        ("feature", "Delta table: External error: Transaction failed: Unsupported table features required: [TypeWid"),
        ("unknown", "cannot be read as a Delta table: Kernel error: Unsupported: Feature 'noSuch'"),
        ("elsewhere", "the table has the file file:///"),
        ("bucket", "the table has the file s3://shop/part-"),
        ("above", "the table has the file ../other/part-"),
        ("gone", "no.parquet is gone, but the current version of this table has it"),
        ("partition", "column 'user_id' must not be null, found null"),
        ("damaged", "cannot be read as a Delta table: Kernel error: Json error"),
    ],
)
def test_delta_tables_that_are_not_read(delta, tmp_path, truth, case, why):
    table = tmp_path / "recs"
    delta.write_deltalake(table, ranked_lists())
    delta.write_deltalake(tmp_path / "other", ranked_lists())
    check(table, ranked_lists(), truth)
    change(table, case, tmp_path / "other")
    told = fails(table, truth, error=MissingFileError if case == "gone" else InputError)
    assert why in told and told.startswith(f"{table}: ") and "secret" not in told


@pytest.mark.filterwarnings("ignore:ranks of lists have gaps")
@pytest.mark.parametrize("case", ["mapping by name", "mapping by id", "vector", "vector without the feature"])
def test_what_the_files_of_a_delta_table_do_not_tell(delta, tmp_path, truth, case):
    """Names of columns and deleted rows, also where a checkpoint has them."""
    table, kept = tmp_path / "recs", ranked_lists()
    delta.write_deltalake(table, kept)
    change(table, case, tmp_path)
    if "vector" in case:
        kept = kept.take([row for row in range(240) if row not in (3, 4, 7, 11, 18, 29)])
    check(table, kept, truth)
    delta.DeltaTable(table).create_checkpoint()
    check(table, kept, truth)


def test_the_log_tells_the_partition(delta, tmp_path, truth):
    """Not the name of the folder, as readers of Parquet take it."""
    table = tmp_path / "recs"
    delta.write_deltalake(table, ranked_lists().append_column("day", pa.array(["x"] * 240)), partition_by=["day"])
    commit(table, {"add": {**action(table, "add"), "partitionValues": {"day": "y"}}})
    check(table, ranked_lists().append_column("day", pa.array(["y"] * 240)), truth, by="day")


def test_rows_of_a_delta_table_come_in_the_order_of_its_log(delta, tmp_path, truth):
    """Files that were added last come first: lists without ranks have this order."""
    parts = [ranked_lists(seed=seed).drop_columns("rank") for seed in range(9)]
    for part in parts:
        delta.write_deltalake(tmp_path / "recs", part, mode="append")
    rows = pa.concat_tables(parts[::-1])
    told = [bits_of(evaluate_files(path, truth, METRICS, duplicates="first")) for path in [tmp_path / "recs"] * 3]
    assert told == [bits_of(fastrec.evaluate(rows, TRUTH, METRICS, duplicates="first"))] * 3


def test_a_log_that_is_a_link(delta, tmp_path, truth):
    delta.write_deltalake(tmp_path / "recs", ranked_lists())
    log = tmp_path / "recs" / "_delta_log" / f"{0:020}.json"
    log.rename(tmp_path / "log.json")
    log.symlink_to(tmp_path / "log.json")
    assert f"a link to {tmp_path}/log.json, which is not in its folder" in fails(tmp_path / "recs", truth)


@pytest.mark.parametrize("has_link", [False, True])
def test_a_file_that_a_delta_table_has_twice(delta, tmp_path, truth, has_link):
    """By two spellings of its path, and by a link in the folder: readers of Delta count its rows twice."""
    table = tmp_path / "recs"
    delta.write_deltalake(table, ranked_lists())
    add = action(table, "add")
    own, other = add["path"], f"{'link' if has_link else '%70'}{add['path'].removeprefix('p')}"
    if has_link:
        (table / other).symlink_to(own)
    commit(table, {"add": {**add, "path": other}})
    assert delta.DeltaTable(table).count() == 2 * len(ranked_lists())
    assert fails(table, truth).startswith(f"{table}: the table has the rows of {own} twice; write the rows as Parquet")


@pytest.mark.parametrize("name", ["my%20recs", "my\\recs", "my\nrecs"])
def test_a_delta_table_in_a_folder_that_deltalake_takes_for_another(delta, tmp_path, truth, name):
    """It reads the log of `my recs`, by itself and through a link."""
    delta.write_deltalake(tmp_path / "my recs", ranked_lists())
    table = Path(shutil.copytree(tmp_path / "my recs", tmp_path / name))
    (tmp_path / "link").symlink_to(table)
    for path in (table, tmp_path / "link"):
        assert fails(path, truth).endswith(", a control character or %XX: rename the folder")
    check(tmp_path / "my recs", ranked_lists(), truth)
    check(Path(shutil.move(table, tmp_path / "100%")), ranked_lists(), truth)


def test_a_message_of_deltalake_is_one_line_without_colours(delta, tmp_path, truth, monkeypatch):
    def fail(_):
        raise ValueError("\x1b[31mno log\x1b[0m\n  0: at a place in the library")

    delta.write_deltalake(tmp_path / "recs", ranked_lists())
    monkeypatch.setattr(delta, "DeltaTable", fail)
    assert fails(tmp_path / "recs", truth) == f"{tmp_path}/recs: cannot be read as a Delta table: no log"


def test_a_delta_table_without_rows(delta, tmp_path, truth):
    delta.DeltaTable.create(tmp_path / "recs", ranked_lists().schema)
    assert fails(tmp_path / "recs", truth) == f"{tmp_path}/recs: no files in this folder"
    (tmp_path / "void" / "_delta_log").mkdir(parents=True)
    assert fails(tmp_path / "void", truth).startswith(f"{tmp_path}/void: cannot be read as a Delta table: ")


def test_a_delta_table_that_changes_while_it_is_read(delta, tmp_path, truth, monkeypatch):
    """Files of the first version are enough, until one of them is removed."""
    table = tmp_path / "recs"
    delta.write_deltalake(table, ranked_lists())
    stamps_of = opened.stamps_of

    def stamp_and_write(files):
        found = stamps_of(files)
        if any("recs" in file for file in files):
            delta.write_deltalake(table, ranked_lists(seed=8), mode="overwrite")
            if is_vacuumed:
                delta.DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        return found

    monkeypatch.setattr(opened, "stamps_of", stamp_and_write)
    is_vacuumed = False
    wanted = fastrec.evaluate(ranked_lists(), TRUTH, METRICS)
    assert bits_of(evaluate_files(table, truth, METRICS)) == bits_of(wanted)
    is_vacuumed = True
    assert "changed while it was read" in fails(table, truth)


# Iceberg


@pytest.fixture
def catalog(tmp_path):
    memory = pytest.importorskip("pyiceberg.catalog.memory", reason="no pyiceberg: .ci/full places installs it")
    found = memory.InMemoryCatalog("shop", warehouse=str(tmp_path))
    found.create_namespace("shop")
    yield found
    found.close()


def create(catalog, rows, name="recs", **properties):
    """Make a table in the catalogue; return it and its folder."""
    table = catalog.create_table(f"shop.{name}", rows.schema, properties=properties)
    table.append(rows)
    return table, Path(table.location())


def test_the_current_version_of_an_iceberg_table(catalog, tmp_path, truth):
    old, new, more = ranked_lists(), ranked_lists(seed=3), ranked_lists(40, seed=4)
    table, folder = create(catalog, old)
    check(folder, old, truth)
    table.overwrite(new)
    table.append(more)
    check(folder, pa.concat_tables([more, new]), truth)
    first = table.metadata_location
    table.delete("user_id < 20")
    rows = pa.concat_tables([more, new])
    kept = rows.filter(pc.greater_equal(rows["user_id"], 20))
    check(folder, kept, truth)
    check(first, rows, truth)
    table.delete("user_id >= 0")
    assert fails(folder, truth) == f"{folder}: no files in this folder"


def test_an_iceberg_table_without_a_version(catalog, truth):
    folder = catalog.create_table("shop.void", ranked_lists().schema).location()
    assert fails(folder, truth) == f"{folder}: no files in this folder"


def test_partitions_of_an_iceberg_table_are_columns_of_its_files(catalog, truth):
    """The names of its folders are spelled in another way than those of Hive, and name no other columns."""
    days = ["2024-01-01", "a b/c", "50 %", "é=?", None]
    rows = ranked_lists().append_column("day", pa.array(days * 8).take(ranked_lists()["user_id"]))
    table = catalog.create_table("shop.recs", rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
        spec.add_field("rank", pytest.importorskip("pyiceberg.transforms").IdentityTransform(), "place")
    table.append(rows)
    assert list(Path(table.location()).glob("data/day=*/place=1/*.parquet"))
    check(table.location(), rows, truth, by="day")
    assert "has the column 'place' to group by" in fails(table.location(), truth, by="place")


def test_a_column_that_was_added_to_an_iceberg_table(catalog, truth):
    types = pytest.importorskip("pyiceberg.types")
    table, folder = create(catalog, ranked_lists())
    with table.update_schema() as schema:
        schema.add_column("score", types.DoubleType())
    told = fails(folder, truth, score="score")
    assert told == f"{folder}: column 'score' must not be null, found null in row 1"
    new = ranked_lists(40).append_column("score", pa.array(np.arange(240.0)))
    table.append(new)
    assert ": column 'score' must not be null, found null in row" in fails(folder, truth, score="score")
    check(folder, pa.concat_tables([ranked_lists(), new.drop_columns("score")]), truth, rank="rank")


def rename(table):
    with table.update_schema() as schema:
        schema.rename_column("rank", "place")


def drop(table):
    with table.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("rank")


def replace(table):
    drop(table)
    with table.update_schema() as schema:
        schema.add_column("rank", pytest.importorskip("pyiceberg.types").LongType())


@pytest.mark.parametrize(
    ("change", "has_ids"), [(rename, True), (drop, True), (replace, True), (rename, False), (drop, False)]
)
def test_columns_that_were_renamed_or_dropped(catalog, truth, change, has_ids):
    """Also in files without ids of columns, which names in the metadata stand for."""
    table, folder = create(catalog, ranked_lists())
    if not has_ids:
        table.delete("user_id >= 0")
        pq.write_table(ranked_lists(), folder / "data" / "own.parquet")
        table.add_files([str(folder / "data" / "own.parquet")])
        check(folder, ranked_lists(), truth)
    change(table)
    if change is replace:
        assert fails(folder, truth) == f"{folder}: column 'rank' must not be null, found null in row 1"
    elif change is rename:
        check(folder, ranked_lists().rename_columns(["user_id", "item_id", "place"]), truth, rank="place")
    else:
        check(folder, ranked_lists().drop_columns("rank"), truth)


@pytest.mark.parametrize("kind", ["positions", "equality", "orc"])
def test_deleted_rows_and_files_that_are_not_parquet(catalog, truth, monkeypatch, kind):
    """As another program writes them: PyIceberg writes neither."""
    import pyiceberg.manifest as own
    from pyiceberg.typedef import Record

    table, folder = create(catalog, ranked_lists())
    rows = next(folder.glob("data/*.parquet"))
    pq.write_table(pa.table({"file_path": [str(rows)] * 6, "pos": range(6)}), folder / "data" / "more")
    file = own.DataFile.from_args(
        content=own.DataFileContent({"positions": 1, "equality": 2, "orc": 0}[kind]),
        file_path=str(folder / "data" / "more"),
        file_format=own.FileFormat.ORC if kind == "orc" else own.FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
    )
    content = own.ManifestContent.DATA if kind == "orc" else own.ManifestContent.DELETES
    monkeypatch.setattr(own.ManifestWriterV2, "content", lambda _: content)
    snapshot, io = table.current_snapshot(), table.io
    places = [io.new_output(str(folder / "metadata" / name)) for name in ("more.avro", "all.avro")]
    with own.write_manifest(2, table.spec(), table.schema(), places[0], snapshot.snapshot_id, "null") as manifest:
        manifest.add_entry(own.ManifestEntry.from_args(status=own.ManifestEntryStatus.ADDED, data_file=file))
    with own.write_manifest_list(2, places[1], snapshot.snapshot_id, None, 1, "null") as listed:
        listed.add_manifests([*snapshot.manifests(io), manifest.to_manifest_file()])
    newest = Path(table.metadata_location)
    newest.write_text(newest.read_text().replace(snapshot.manifest_list, places[1].location))
    if kind == "positions":
        check(folder, ranked_lists().slice(6), truth)
        return
    why = {
        "equality": "cannot be read as an Iceberg table: PyIceberg does not yet support equality deletes",
        "orc": "data/more is not in Parquet; write the rows as Parquet",
    }[kind]
    assert re.match(f"{folder}: {why}", fails(folder, truth))


def test_files_of_an_iceberg_table_that_are_elsewhere(catalog, tmp_path, truth):
    table, folder = create(catalog, ranked_lists())
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert f"{copy}: the table has the file {folder}/metadata/snap-" in fails(copy, truth)
    pq.write_table(ranked_lists(40), tmp_path / "own.parquet")
    table.add_files([f"file://{tmp_path}/own.parquet"])
    why = "which is not in its folder; write the rows as Parquet, or pass them to fastrec.evaluate as a frame"
    assert fails(folder, truth) == f"{folder}: the table has the file file://{tmp_path}/own.parquet, {why}"
    moved = folder.rename(tmp_path / "moved")
    assert f"{moved}: the table has the file {folder}/metadata/snap-" in fails(moved, truth)


def test_a_file_that_an_iceberg_table_has_twice(catalog, truth):
    table, folder = create(catalog, ranked_lists())
    own = next(folder.glob("data/*.parquet"))
    (folder / "link").symlink_to(own)
    table.add_files([str(folder / "link")])
    assert fails(folder, truth).startswith(f"{folder}: the table has the rows of data/{own.name} twice; write the rows")


def test_a_file_of_an_iceberg_table_that_is_gone(catalog, truth):
    _, folder = create(catalog, ranked_lists())
    file = next(folder.glob("data/*.parquet"))
    file.unlink()
    told = fails(folder, truth, error=MissingFileError)
    assert told == f"{folder}: data/{file.name} is gone, but the current version of this table has it"
    shutil.rmtree(folder / "metadata")
    (folder / "metadata").mkdir()
    (folder / "metadata" / "v1.metadata.json").write_text("{}")
    told = fails(folder, truth)
    assert told.startswith(f"{folder}: metadata/v1.metadata.json cannot be read as metadata of an Iceberg table: ")


def test_a_damaged_file_of_an_iceberg_table(catalog, truth):
    _, folder = create(catalog, ranked_lists())
    file = next(folder.glob("data/*.parquet"))
    file.write_bytes(b"PAR1 and more")
    told = fails(folder, truth)
    assert told.startswith(f"{folder}: cannot be read as an Iceberg table: ") and "Parquet magic bytes" in told


def test_damaged_metadata_of_an_iceberg_table(catalog, truth):
    """A message has the first fault only, without the content of the file."""
    table, folder = create(catalog, ranked_lists())
    newest, manifest = Path(table.metadata_location), next(folder.glob("metadata/*-m0.avro"))
    sound = newest.read_text()
    for content, why in (
        (b'{"format-version": 2, "own": "text"}', "2.location: Field required"),
        (b"[]", "Input should be an object"),
        (b"{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ):
        newest.write_bytes(content)
        for path in (folder, newest):
            told = f"{path}: metadata/{newest.name} cannot be read as metadata of an Iceberg table: {why}"
            assert fails(path, truth) == told
    newest.write_text(sound)
    manifest.write_bytes(b"")
    assert fails(folder, truth).startswith(f"{folder}: cannot be read as an Iceberg table: ")


def test_metadata_that_pyiceberg_does_not_read_as_their_writer_did(catalog, truth, monkeypatch):
    """No such snapshot, a path that depends on the current folder, and the names of compressed metadata."""
    table, folder = create(catalog, ranked_lists())
    newest = Path(table.metadata_location)
    text, number = newest.read_text(), table.metadata.current_snapshot_id
    newest.write_text(text.replace(f'"current-snapshot-id":{number}', '"current-snapshot-id":7'))
    assert fails(folder, truth) == f"{folder}: its metadata names no snapshot 7, which is current"
    newest.write_text(text.replace(f'"{folder}/metadata/snap', '"metadata/snap'))
    monkeypatch.chdir(folder)
    assert f"{folder}: the table has the file 'metadata/snap-" in (told := fails(folder, truth))
    assert ", a relative path; write the rows" in told
    newest.unlink()
    for old in folder.glob("metadata/*.json"):
        old.unlink()
    (folder / "metadata" / "v2.gz.metadata.json").write_bytes(gzip.compress(text.encode()))
    (folder / "metadata" / "version-hint.text").write_text("2")
    check(folder, ranked_lists(), truth)
    (folder / "metadata" / "v2.gz.metadata.json").rename(folder / "metadata" / "v2.metadata.json.gz")
    for path in (folder, folder / "metadata" / "v2.metadata.json.gz"):
        assert "compressed metadata only from *.gz.metadata.json, not v2.metadata.json.gz" in fails(path, truth)


def test_the_metadata_of_the_current_version(catalog, truth):
    """A catalogue knows which of two is current; a folder does not, unless there is a hint."""
    table, folder = create(catalog, ranked_lists())
    table.append(ranked_lists(40))
    newest, rows = Path(table.metadata_location), pa.concat_tables([ranked_lists(40), ranked_lists()])
    hint = folder / "metadata" / "version-hint.text"
    for said in (newest.name, newest.name.removesuffix(".metadata.json")):
        hint.write_text(said)
        check(folder, rows, truth)
    unclear = f"{folder}: the files in metadata/ do not tell the current version: name its metadata file"
    hint.write_text("1")
    assert fails(folder, truth) == unclear
    hint.write_text("7\n")
    newest = newest.rename(folder / "metadata" / "v7.metadata.json")
    check(folder, rows, truth)
    hint.unlink()
    shutil.copy(newest, newest.with_name("00007-other.metadata.json"))
    assert fails(folder, truth) == unclear
    check(newest, rows, truth)


def test_paths_of_metadata(catalog, tmp_path, truth, monkeypatch):
    """Relative ones, and those that go up from the target of a link."""
    table, folder = create(catalog, ranked_lists())
    name = Path(table.metadata_location).name
    (folder / "deep").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "deep").symlink_to(folder / "deep")
    check(f"{tmp_path}/links/deep/../metadata/{name}", ranked_lists(), truth)
    for place, path in ((folder, f"metadata/{name}"), (folder / "metadata", name), (folder / "metadata", f"./{name}")):
        monkeypatch.chdir(place)
        check(path, ranked_lists(), truth)


def test_an_iceberg_table_fetches_nothing(catalog, tmp_path, truth):
    """Neither files at other places nor code that the metadata name."""
    table, folder = create(catalog, ranked_lists(), own="no")
    newest = Path(table.metadata_location)
    text = newest.read_text().replace('"own":"no"', '"py-io-impl":"no_such_module.Files"')
    newest.write_text(text)
    check(folder, ranked_lists(), truth)
    newest.write_text(text.replace(f'"{folder}/metadata/snap', '"s3://ann:secret@shop/snap'))
    told = fails(folder, truth)
    assert told.startswith(f"{folder}: the table has the file s3://shop/snap-") and "secret" not in told


def test_metadata_of_an_iceberg_table_that_are_links(catalog, tmp_path, truth):
    """One to a file of the table is as its target; no message shows a file outside its folder."""
    table, folder = create(catalog, ranked_lists())
    newest = Path(table.metadata_location)
    secret, hint = tmp_path / "secret.json", newest.with_name("version-hint.text")
    secret.write_text('{"password": "hunter2"}')
    newest.rename(folder / "own.json")
    for link, paths_of_table in ((newest, (folder, newest)), (hint, (folder,))):
        link.symlink_to(secret)
        for path in paths_of_table:
            told = fails(path, truth)
            assert told.startswith(f"{path}: the table has the file {link}, a link to {secret}, which is not in its fo")
        newest.unlink()
        newest.symlink_to(folder / "own.json")
    hint.unlink()
    check(folder, ranked_lists(), truth)
    check(newest, ranked_lists(), truth)
