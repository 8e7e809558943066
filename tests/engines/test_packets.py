"""Rows packed by user: no row is lost, buckets come out whole, and the state of a task's evaluator does not grow."""

import numpy as np
import pyarrow as pa
import pytest

from fastrec.clusters import packets
from fastrec.clusters.packets import from_bytes, pack, tables_of_packets
from fastrec.exceptions import InputTypeError

WIDE = 2**40


def make_rows(n=10_000, seed=0):
    """Draw rows of integers that fit 32 bits or do not, strings and lists, in batches."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 300, n)
    table = pa.table(
        {
            "user": users,
            "wide": users * WIDE,
            "text": pa.array([f"item {item}" for item in rng.integers(0, 99, n)]),
            "list": pa.array([[int(user)] * (user % 3) for user in users], pa.list_(pa.int64())),
            "number": rng.random(n).astype(np.float32),
        }
    )
    return table, table.to_batches(max_chunksize=700)


def unpacked(batches):
    """Return the packets of packed batches, in the order of buckets as a cluster delivers them."""
    return pa.Table.from_batches(batches).sort_by("bucket").to_batches()


def in_order(table):
    return table.sort_by([("user", "ascending"), ("number", "ascending"), ("text", "ascending")])


@pytest.mark.parametrize("packed", [1, 20_000, 1 << 25])
@pytest.mark.parametrize("handed_out", [1, 20_000, 1 << 25])
def test_rows_come_out_as_they_went_in(monkeypatch, packed, handed_out):
    monkeypatch.setattr(packets, "PACKED_BYTES", packed)
    monkeypatch.setattr(packets, "BATCH_BYTES", handed_out)
    table, batches = make_rows()
    empty = {"recs": table.slice(0, 0), "truth": table.select(["user"]).slice(0, 0)}
    given = [*pack(iter(batches), "recs", ["user"], 50)]
    given += pack(table.select(["user"]).to_batches(), "truth", ["user"], 50)
    out = list(tables_of_packets(unpacked(given), empty))
    assert (len(out) == 1) == (handed_out == 1 << 25)
    assert len(out) <= 50
    for side, columns in (("recs", empty["recs"].column_names), ("truth", ["user"])):
        tables = [tables[side].cast(empty[side].schema) for tables in out]
        whole = pa.concat_tables(tables)
        if side == "recs":
            assert in_order(whole).equals(in_order(table.select(columns)))
        else:
            assert sorted(whole["user"].to_pylist()) == sorted(table["user"].to_pylist())
        users = [set(part["user"].to_pylist()) for part in tables]
        assert sum(map(len, users)) == len(set().union(*users))  # a user is in only one table


def test_integers_that_fit_travel_narrow():
    _, batches = make_rows()
    (packed,) = pack(batches, "recs", ["user"], 50)
    kinds = {field.name: field.type for field in from_bytes(packed.column("rows")[0].as_py()).schema}
    assert kinds["user"] == pa.int16() and kinds["wide"] == pa.int64() and kinds["list"] == pa.list_(pa.int16())


def test_rows_beside_a_slice_do_not_matter():
    lists = pa.array([[1, 2], [WIDE], None, [3]])
    table = pa.table({"user": [1, 2, 3, 4], "own": lists})
    for first, n_rows in ((0, 1), (2, 2)):
        part = table.slice(first, n_rows)
        (out,) = tables_of_packets(unpacked(pack(part.to_batches(), "recs", ["user"], 1)), {"recs": table})
        assert out["recs"]["own"].to_pylist() == part["own"].to_pylist()


def test_a_side_without_rows_has_its_columns():
    table, _ = make_rows(100)
    empty = {"recs": table.slice(0, 0), "truth": table.select(["user"]).slice(0, 0)}
    for tables in tables_of_packets(unpacked(pack(table.to_batches(), "recs", ["user"], 70_000)), empty):
        assert tables["truth"] is empty["truth"]
    assert list(tables_of_packets([], empty)) == []
    assert list(pack([], "recs", ["user"], 5)) == []


def test_dictionaries_are_packed_as_their_values():
    texts = pa.array(["ann", None, "bob", "ann"])
    table = pa.table(
        {
            "text": texts,
            "number": pa.array([1, 2, None, WIDE]),
            "list": pa.ListArray.from_arrays([0, 2, 2, 3, 4], texts),
            "absent": pa.array([None] * 4, pa.string()),
        }
    )
    encoded = table
    for at, name in enumerate(("text", "number")):
        encoded = encoded.set_column(at, name, table[name].dictionary_encode())
    encoded = encoded.set_column(2, "list", pa.ListArray.from_arrays([0, 2, 2, 3, 4], texts.dictionary_encode()))
    encoded = encoded.set_column(3, "absent", pa.array([None] * 4, pa.dictionary(pa.int8(), pa.string())))
    assert packets.plain_types(encoded.schema) == table.schema
    for users in (["text"], ["number"], ["text", "number"]):
        packed = list(pack(table.to_batches(), "recs", users, 4))
        assert list(pack(encoded.to_batches(), "recs", users, 4)) == packed
        assert packets.pack_rows([encoded], "recs", table.slice(0, 0), users, 4).to_batches() == packed
    (out,) = tables_of_packets(unpacked(packed), {"recs": encoded.slice(0, 0)})
    assert sorted(map(str, out["recs"].to_pylist())) == sorted(map(str, table.to_pylist()))


FITTING = {
    pa.int64(): [pa.int32(), pa.null()],
    pa.float64(): [pa.uint8(), pa.float32()],
    pa.string(): [pa.large_string(), pa.dictionary(pa.int8(), pa.large_string()), pa.string_view()],
    pa.list_(pa.int64()): [pa.large_list(pa.int32()), pa.list_(pa.int64(), 2)],
    pa.list_(pa.string()): [pa.list_(pa.null())],
    pa.timestamp("ns"): [pa.timestamp("us")],
    pa.date64(): [pa.date32()],
}
OTHERS = {
    pa.float32(): [pa.float64()],
    pa.int64(): [pa.float64(), pa.string(), pa.bool_(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int64())],
    pa.string(): [pa.int64(), pa.float64(), pa.date32(), pa.binary()],
    pa.list_(pa.int64()): [pa.list_(pa.string())],
    pa.list_(pa.string()): [pa.list_(pa.int64(), 2)],
    pa.timestamp("us"): [pa.timestamp("us", "UTC")],
}


@pytest.mark.parametrize("fits", [True, False])
def test_parts_of_other_kinds_are_an_error(fits):
    for wanted, kinds in (FITTING if fits else OTHERS).items():
        for found in kinds:
            rows, empty = (pa.table({"user": [1], "own": pa.nulls(1, kind)}) for kind in (found, wanted))
            if fits:
                assert packets.pack_rows([rows], "recs", empty.slice(0, 0), ["user"], 4).num_rows == 1
                continue
            with pytest.raises(InputTypeError) as raised:
                packets.pack_rows([rows], "recs", empty.slice(0, 0), ["user"], 4)
            told = f"recs: a part of the rows has columns own {found}, expected own {wanted}: cast them to one type"
            assert str(raised.value) == told


def test_labels_of_integers_are_read_as_strings():
    rows = pa.table({"user": [1, 2], "label": [7, None]})
    empty = pa.schema({"user": pa.int64(), "label": pa.string()}).empty_table()
    (out,) = tables_of_packets(unpacked(pack(rows.to_batches(), "recs", ["user"], 1)), {"recs": empty})
    assert out["recs"].to_pylist() == [{"user": 1, "label": "7"}, {"user": 2, "label": None}]


def test_buckets_know_values_and_not_their_types():
    users = pa.chunked_array([[1, 2], [None, 7]], pa.int32())
    texts = pa.chunked_array([["ann", "bob"], [None, "ann"]])

    def of(*columns):
        return packets._buckets(columns, 2**20).tolist()

    assert of(users) == of(users.cast(pa.int64())) and len(set(of(users))) == 4
    assert of(texts) == of(texts.cast(pa.large_string()))
    assert of(texts)[0] == of(texts)[3] and len(set(of(texts))) == 3
    assert len(set(of(texts, users))) == 4
    spread = np.bincount(packets._buckets([pa.chunked_array([np.arange(51_200)])], 512))
    assert spread.min() > 50 and spread.max() < 200
