"""Arrow files: how they are recognised, their types and sizes, several at once, and faults in them."""

import numpy as np
import pytest

import fastrec
from fastrec import evaluate, evaluate_files
from fastrec.exceptions import InputTypeError
from fastrec.files.formats import arrow
from support.bits import bits_of
from support.read_files import fails
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FORMS = ("arrow", "arrows", "feather")
LISTS = {"user_id": [1, 1, 2, 3], "item_id": ["a", "b", "a", "c"], "rank": [1, 2, 1, 1]}
TRUTH = {"user_id": [1, 2, 3], "item_id": ["b", "a", "d"]}
METRICS = ["ndcg@2", "recall@1", "mrr"]


@pytest.fixture
def write(tmp_path):
    return lambda table, name: write_table(table, tmp_path / name, 2)


@pytest.mark.parametrize("form", FORMS)
def test_first_bytes_tell_the_format(write, tmp_path, form):
    paths = [write(LISTS, f"recs.{form}"), write(TRUTH, f"truth.{form}")]
    wanted = bits_of(evaluate(pa.table(LISTS), pa.table(TRUTH), METRICS))
    assert bits_of(evaluate_files(*paths, METRICS)) == wanted
    assert bits_of(evaluate_files(*paths, METRICS, input_format="arrow")) == wanted
    (tmp_path / "plain").write_bytes((tmp_path / f"recs.{form}").read_bytes())
    assert bits_of(evaluate_files(tmp_path / "plain", paths[1], METRICS)) == wanted


@pytest.mark.parametrize("form", FORMS)
def test_errors_name_the_file_the_column_and_the_row(write, form):
    truth = write(TRUTH, f"truth.{form}")
    lacking = write({"user": [1], "item_id": ["a"], "rank": [1]}, f"lacking.{form}")
    assert fails(lacking, truth).startswith(f"{lacking}: no column 'user_id' (did you mean 'user'?)")
    floats = write({**LISTS, "user_id": [1.0, 1.0, 2.0, 3.0]}, f"floats.{form}")
    assert fails(floats, truth, error=InputTypeError).startswith(
        f"{floats}: column 'user_id' must hold integers or strings, found double"
    )
    empty = write({**LISTS, "item_id": ["a", "b", None, "c"]}, f"empty.{form}")
    assert fails(empty, truth) == f"{empty}: column 'item_id' must not be null, found null in row 3"
    twice = pa.Table.from_arrays([pa.array([1])] * 3, ["user_id", "item_id", "item_id"])
    path = write(twice, f"twice.{form}")
    assert fails(path, truth) == f"{path}: the file has the column 'item_id' 2 times"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_an_error_that_names_it(write, tmp_path, form, share):
    n = 4000
    path = write({"user_id": np.arange(n) // 4, "item_id": np.arange(n), "rank": np.arange(n) % 4 + 1}, f"whole.{form}")
    whole = (tmp_path / f"whole.{form}").read_bytes()
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(whole[: int(share * len(whole))])
    truth = write({"user_id": [1], "item_id": [5]}, f"truth.{form}")
    assert fails(cut, truth).startswith(f"{cut}: cannot be read as Arrow: ")
    assert evaluate_files(path, truth, METRICS)["recall@1"] == 0


@pytest.mark.parametrize("form", FORMS)
def test_damaged_bytes_give_an_error_or_a_report(write, tmp_path, form):
    """PyArrow trusts lengths and codes in files."""
    users = pa.array([f"user {n % 7}" for n in range(40)]).dictionary_encode()
    write({"user_id": users, "item_id": [f"item {n}" for n in range(40)]}, f"whole.{form}")
    whole = (tmp_path / f"whole.{form}").read_bytes()
    truth = write({"user_id": ["user 1"], "item_id": ["item 1"]}, f"truth.{form}")
    rng, n_errors = np.random.default_rng(3), 0
    for nth in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(8, len(whole), 3):
            damaged[at] = rng.integers(256)
        path = tmp_path / f"damaged {nth}.{form}"
        path.write_bytes(damaged)
        try:
            evaluate_files(path, truth, METRICS)
        except fastrec.FastrecError:
            n_errors += 1
    assert n_errors > 5


def test_a_stream_cut_between_batches_is_an_error(write, tmp_path):
    truth, path = write(TRUTH, "truth.arrows"), tmp_path / "recs.arrows"
    write(LISTS, path.name)
    whole = path.read_bytes()
    assert whole.endswith(arrow.END)
    second = whole.rindex(arrow.STREAM, 0, -len(arrow.END))  # where the last batch begins
    for cut in (whole[:second], whole[: -len(arrow.END)]):
        path.write_bytes(cut)
        wanted = f"{path}: cannot be read as Arrow: the stream has no end; it may have been cut, or its writer was"
        assert fails(path, truth).startswith(wanted)
    path.write_bytes(whole + whole)
    assert fails(path, truth).endswith(f"cannot be read as Arrow: the stream ends {len(whole)} bytes before the file")


def test_a_name_that_is_not_utf8_is_an_error(write, tmp_path):
    path = tmp_path / "recs.arrow"
    write({**LISTS, "name of a column": [1] * 4}, path.name)
    path.write_bytes(path.read_bytes().replace(b"name of a column", b"name of a colum\xff"))
    assert fails(path, write(TRUTH, "truth.arrow")).startswith(f"{path}: cannot be read as Arrow: 'utf-8' codec")


def test_codes_of_dictionaries_are_checked(tmp_path, write):
    whole = pa.table({"user_id": pa.array(["ann", "bob"]).dictionary_encode(), "item_id": ["x", "y"]})
    path = tmp_path / "recs.arrow"
    codes = pa.py_buffer(np.array([0, 1 << 20], np.int32).tobytes())
    users = pa.DictionaryArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), 2, [None, codes]), ["ann", "bob"], safe=False
    )
    batch = pa.RecordBatch.from_arrays([users, pa.array(["x", "y"])], schema=whole.schema)
    with pa.ipc.new_file(path, whole.schema) as writer:
        writer.write_batch(batch)
    assert "cannot be read as Arrow" in fails(path, write({"user_id": ["ann"], "item_id": ["x"]}, "truth.arrow"))


@pytest.mark.parametrize("form", FORMS)
def test_several_files_and_partitions_are_read_in_order(write, tmp_path, form):
    rows = pa.table(LISTS)
    for nth, day in enumerate(("2024-01-01", "2024-01-02")):
        part = rows.slice(2 * nth, 2)
        write(part if nth else part.select(["rank", "item_id", "user_id"]), f"logs/day={day}/part.{form}")
    truth = write(TRUTH, f"truth.{form}")
    found = evaluate_files(tmp_path / "logs", truth, METRICS)
    assert bits_of(found) == bits_of(evaluate(rows, pa.table(TRUTH), METRICS))
    days = evaluate_files(f"{tmp_path}/logs/*/*.{form}", truth, METRICS, by="day")
    assert set(days.groups["day"]) == {"2024-01-01", "2024-01-02"}
    write({**LISTS, "rank": [1, None, 1, 1]}, f"logs/day=2024-01-02/part.{form}")
    assert f"found null in row 2 of {tmp_path}/logs/day=2024-01-02/part.{form}" in fails(tmp_path / "logs", truth)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_batches_too_large_for_memory_are_mapped(tmp_path, monkeypatch, compression):
    monkeypatch.setattr(arrow, "MAPPED_BATCH", 1)
    monkeypatch.setattr(arrow, "ROWS_AT_ONCE", 1)
    opened = []
    mapped = arrow.mmap.mmap
    monkeypatch.setattr(arrow.mmap, "mmap", lambda *file, **options: opened.append(file) or mapped(*file, **options))
    paths = tmp_path / "recs.arrow", tmp_path / "truth.arrow"
    large = tmp_path / "large.arrow"
    n = 1 << 16
    for path, rows in zip((*paths, large), (LISTS, TRUTH, {"user_id": range(n)}), strict=True):
        table, options = pa.table(rows), pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(path, table.schema, options=options) as file:
            file.write(table)
    assert bits_of(evaluate_files(*paths, METRICS)) == bits_of(evaluate(pa.table(LISTS), pa.table(TRUTH), METRICS))
    assert opened
    before = pa.total_allocated_bytes()
    rows = next(arrow.ARROW.batches(str(large), {0: pa.int64()}))
    assert rows and (pa.total_allocated_bytes() - before < n) == (compression is None)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_rows_has_columns(write, form):
    recs = write(pa.table(LISTS).slice(0, 0), f"recs.{form}")
    with pytest.warns(fastrec.FastrecWarning):
        assert evaluate_files(recs, write(TRUTH, f"truth.{form}"), METRICS)["recall@1"] == 0


# Types that metrics do not read

HALVES = np.array([0.5, 0.25, 0.75, 0.125], np.float16)


def column_of(kind):
    """Return a column of four rows of a type that few readers know."""
    numbers = pa.array(HALVES)
    if kind == "decimal256":
        return pa.array([1, 2, 3, 4], pa.int64()).cast(pa.decimal256(50, 0))
    if kind == "dense union":
        codes, places = pa.array([0] * 4, pa.int8()), pa.array(range(4), pa.int32())
        return pa.UnionArray.from_dense(codes, places, [pa.array([1, 2, 3, 4])])
    if kind == "struct":
        return pa.StructArray.from_arrays([numbers], ["x"])
    if kind == "list view":
        return pa.ListViewArray.from_arrays([0, 1, 2, 3], [1, 1, 1, 1], numbers)
    return {
        "float16": numbers,
        "list": pa.ListArray.from_arrays([0, 1, 2, 3, 4], numbers),
        "large list": pa.LargeListArray.from_arrays([0, 1, 2, 3, 4], numbers),
        "fixed list": pa.FixedSizeListArray.from_arrays(numbers, 1),
    }[kind]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind", ["float16", "list", "large list", "fixed list", "list view", "decimal256", "dense union", "struct"]
)
def test_an_unused_column_of_an_unusual_type_is_left(write, form, kind):
    recs, truth = write({**LISTS, "score": column_of(kind)}, f"recs.{form}"), write(TRUTH, f"truth.{form}")
    assert bits_of(evaluate_files(recs, truth, METRICS, rank="rank")) == bits_of(
        evaluate(pa.table(LISTS), pa.table(TRUTH), METRICS)
    )


@pytest.mark.parametrize("form", FORMS)
def test_float16_is_read(write, form):
    lists = {"user_id": LISTS["user_id"], "item_id": LISTS["item_id"], "score": pa.array(HALVES)}
    truth = {**TRUTH, "gain": pa.array(HALVES[:3])}
    paths = write(lists, f"recs.{form}"), write(truth, f"truth.{form}")
    assert bits_of(evaluate_files(*paths, METRICS)) == bits_of(evaluate(pa.table(lists), pa.table(truth), METRICS))
    log = {"label": [1, 0, 1, 0], "score": pa.array(np.array([0, 1, 0.5, 0.25], np.float16))}
    found = evaluate_files(write(log, f"log.{form}"), None, ["log_loss", "auc"])
    assert dict(found) == dict(fastrec.evaluate_scores(pa.table(log), metrics=["log_loss", "auc"]))


@pytest.mark.parametrize("kind", ["dense union", "struct", "list view"])
def test_a_used_column_of_an_unusual_type_is_named(write, kind):
    column, truth = column_of(kind), write(TRUTH, "truth.arrow")
    recs = write({"user_id": LISTS["user_id"], "item_id": LISTS["item_id"], "score": column}, "recs.arrow")
    assert fails(recs, truth, error=InputTypeError).startswith(f"{recs}: column 'score' ")
    items = write({"item_id": ["a", "b", "c", "d"], "score": column, "price": [[1.0], [2.0], [3.0], [4.0]]}, "i.arrow")
    lists = write(LISTS, "lists.arrow")
    assert evaluate_files(lists, truth, "intra_list_diversity(column=price)@2", items=items)
    if kind != "list view":
        with pytest.raises(fastrec.InputError) as raised:
            evaluate_files(lists, truth, "intra_list_diversity(column=score)@2", items=items)
        assert str(raised.value).startswith(f"{items}: column 'score' must ")


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
def test_vectors_of_float16_are_read(write, kind):
    half = pa.float16()
    types = {
        "list": pa.list_(half),
        "large": pa.large_list(half),
        "fixed": pa.list_(half, 2),
    }
    items = {"item_id": ["a", "b", "c"], "vector": pa.array([HALVES[:2], HALVES[1:3], HALVES[2:]], types[kind])}
    metric, recs, truth = "intra_list_diversity(column=vector)@2", pa.table(LISTS), pa.table(TRUTH)
    found = evaluate_files(write(recs, "r.arrow"), write(truth, "t.arrow"), metric, items=write(items, "i.arrow"))
    assert bits_of(found) == bits_of(evaluate(recs, truth, metric, items=pa.table(items))) and found[metric] > 0


STRINGS = {
    "string": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "narrow codes": pa.dictionary(pa.int8(), pa.string()),
    "wide codes": pa.dictionary(pa.int16(), pa.large_string()),
    "codes of views": pa.dictionary(pa.int32(), pa.string_view()),  # as Polars writes them
}


@pytest.mark.parametrize("first", STRINGS)
@pytest.mark.parametrize("second", STRINGS)
def test_files_may_have_several_types_of_strings(tmp_path, first, second):
    """As categories of pandas, which get wider codes when there are more of them."""
    users, plans = ["a", "a", "b", "c", "c", "d"], ["one", "one", "two", "one", "one", "two"]
    rows = pa.table({"user_id": users, "item_id": ["x", "y", "x", "z", "x", "y"], "plan": plans})

    def cast(column, kind):
        if not pa.types.is_dictionary(kind):
            return column.cast(kind)
        codes = column.combine_chunks().dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            codes.indices.cast(kind.index_type), codes.dictionary.cast(kind.value_type)
        )

    folder = tmp_path / "recs"
    for nth, (kind, own) in enumerate([(first, rows.slice(0, 2)), (second, rows.slice(2))]):
        columns = [cast(column, STRINGS[kind]) for column in own.columns]
        write_table(pa.table(columns, names=own.column_names), folder / f"{nth}.arrow")
    truth = rows.select(["user_id", "item_id"]).slice(1)
    pq.write_table(truth, tmp_path / "truth.parquet")
    found = evaluate_files(folder, tmp_path / "truth.parquet", ["mrr", "recall@1"], by="plan")
    wanted = fastrec.evaluate(rows, truth, ["mrr", "recall@1"], by="plan")
    assert dict(found) == dict(wanted) and found.groups == wanted.groups
