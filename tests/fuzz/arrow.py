"""Arrow files and streams changed at random: fastrec reads what PyArrow finds valid, or raises its own errors.

Values must have the bits of `evaluate` on the columns that PyArrow reads and validates. The files hold integers,
floats, strings of every kind, dictionaries with deltas and columns of lists, plain, lz4 and zstd.
`scripts/fuzz --target arrow` changes them by the thousand, `test_fuzz` for a few seconds.
"""

import atexit
import itertools
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import fastrec
from fuzz.calls import Draw, Finding, one_in, set_up
from fuzz.readers import NUMBERS, change

__all__ = ["describe", "draw_case", "run_case", "set_up"]

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-arrow-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
METRICS = ["ndcg@2", "recall@1", "mrr"]
USED = ("user_id", "item_id", "rank", "score")
N_USERS, N_EACH = 12, 4
DAMAGES = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError, OverflowError)


class ArrowFile(NamedTuple):
    """Bytes of a file of lists; whether ids are strings."""

    name: str
    data: bytes
    strings: bool


def columns_of(kind: str) -> dict[str, Any]:
    """Return the columns of lists, of one kind of type."""
    users, items = np.repeat(np.arange(N_USERS), N_EACH), np.tile(np.arange(N_EACH), N_USERS)
    ranks = {"rank": items + 1}
    names = [f"the user {user}" for user in users.tolist()], [f"item {item}" for item in items.tolist()]
    if kind == "integers":
        return {"user_id": users, "item_id": items.astype(np.uint16), **ranks}
    if kind == "floats":
        return {"user_id": users.astype(np.int32), "item_id": items, "score": np.float32(-items), "x": items / 3}
    if kind == "dictionaries":
        return {
            "user_id": pa.array(names[0]).dictionary_encode(),
            "item_id": pa.array(names[1]).dictionary_encode(),
            **ranks,
        }
    if kind in ("string", "large_string", "string_view"):
        of_type = getattr(pa, kind)()
        return {"user_id": pa.array(names[0], of_type), "item_id": pa.array(names[1], of_type), **ranks}
    lists = [[0, 1, 2, 3]] * N_USERS
    if kind == "lists":
        return {"user_id": range(N_USERS), "item_id": lists, "score": [[4.0, 3.0, 2.0, 1.0]] * N_USERS}
    if kind == "lists of strings":
        return {"user_id": sorted({*names[0]}), "item_id": [names[1][:N_EACH]] * N_USERS}
    kinds = {"views of lists": pa.list_view(pa.int64()), "lists of one length": pa.list_(pa.int64(), N_EACH)}
    if kind in kinds:
        return {"user_id": range(N_USERS), "item_id": pa.array(lists, kinds[kind])}
    more = pa.array([{"a": [1, 2], "b": "x"}] * len(users))
    return {"user_id": users, "item_id": items, **ranks, "more": more}


KINDS = ("integers", "floats", "dictionaries", "string", "large_string", "string_view")
KINDS += ("lists", "lists of strings", "views of lists", "lists of one length", "structs")


def write(kind: str, is_stream: bool, packing: str | None) -> ArrowFile:
    table = pa.table(
        {
            name: values if isinstance(values, pa.Array) else pa.array(values)
            for name, values in columns_of(kind).items()
        }
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=packing, emit_dictionary_deltas=True)
    with (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(sink, table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=20):
            writer.write_batch(with_deltas(batch) if kind == "dictionaries" else batch)
    strings = not pa.types.is_integer(table.schema.field("user_id").type)
    return ArrowFile(f"{kind}, {'stream' if is_stream else 'file'}, {packing}", sink.getvalue().to_pybytes(), strings)


def with_deltas(batch: Any) -> Any:
    """Return a batch whose dictionaries end with its largest codes, so that later ones add to them."""
    columns = [
        pa.DictionaryArray.from_arrays(each.indices, each.dictionary[: max(each.indices.to_pylist()) + 1])
        if pa.types.is_dictionary(each.type)
        else each
        for each in batch.columns
    ]
    return pa.record_batch(columns, batch.schema)


FILES = [write(*each) for each in itertools.product(KINDS, (False, True), (None, "lz4", "zstd"))]
TRUTH = {
    strings: {
        "user_id": [f"the user {user}" if strings else user for user in range(N_USERS)],
        "item_id": [f"item {user % N_EACH}" if strings else user % N_EACH for user in range(N_USERS)],
    }
    for strings in (False, True)
}


def overwrite(r: Draw, data: bytes) -> bytes:
    """Return the bytes with one or two aligned numbers replaced: lengths, offsets, codes and values."""
    out = bytearray(data)
    for _ in range(r.choice([1, 1, 2])):
        size = r.choice([1, 1, 2, 4, 8])
        at = r.randrange(8, len(out) - 8) // size * size
        number = r.choice([*NUMBERS, 2, 3, len(out), r.randrange(256)])
        out[at : at + size] = (number & (256**size - 1)).to_bytes(size, "little")
    return bytes(out)


def draw_case(seed: int) -> tuple[ArrowFile, bytes]:
    """Return a file, and its changed bytes."""
    r = random.Random(seed)
    file = r.choice(FILES)
    return file, change(r, file.data) if one_in(r, 3) else overwrite(r, file.data)


def as_pyarrow_reads(data: bytes) -> Any:
    """Return the used columns of a file; raise an error of PyArrow unless they are valid."""
    is_stream = data.startswith(b"\xff\xff\xff\xff")
    open_bytes = pa.ipc.open_stream if is_stream else pa.ipc.open_file
    schema = open_bytes(data).schema
    used = [at for at, name in enumerate(schema.names) if name in USED]
    reader = open_bytes(data, options=pa.ipc.IpcReadOptions(included_fields=used))
    batches = list(reader) if is_stream else [reader.get_batch(at) for at in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, reader.schema)


def run_case(seed: int) -> bool:
    """Evaluate the file of a seed; return whether it gave values."""
    file, data = draw_case(seed)
    recs, truth = FOLDER / "recs.arrow", FOLDER / "truth.arrow"
    recs.write_bytes(data)
    table = pa.table(TRUTH[file.strings])
    with pa.ipc.new_file(truth, table.schema) as writer:
        writer.write_table(table)
    try:
        found = fastrec.evaluate_files(recs, truth, METRICS, n_threads=1)
    except fastrec.FastrecError:
        return False
    except Exception as error:
        raise Finding("foreign error", f"{file.name}: {type(error).__name__}: {error}") from error
    try:
        lists = as_pyarrow_reads(data)
    except DAMAGES as error:
        raise Finding("wrong value", f"{file.name}: fastrec read what PyArrow rejects: {error}") from error
    wanted = fastrec.evaluate(lists, table, METRICS, n_threads=1)
    if [np.float64(found[name]).tobytes() for name in found] != [np.float64(wanted[name]).tobytes() for name in wanted]:
        raise Finding("wrong value", f"{file.name}: {dict(found)}, but evaluate gives {dict(wanted)}")
    return True


def describe(seed: int) -> str:
    """Return the file of a seed for a replay."""
    file, data = draw_case(seed)
    return f"{file.name}: {data!r}"
