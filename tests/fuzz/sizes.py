"""Files of random sizes and shapes under a random `memory=`: the bits of a run in memory, no peak beyond the promise.

`scripts/fuzz --target sizes` tries them by the hundred, `test_fuzz` for a few seconds.
"""

import atexit
import gc
import gzip
import json
import random
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import fastrec
from fuzz.calls import Finding, one_in

MB = 1_000_000
SPARE_MEMORY = 400 * MB
PACKAGES = 250 * MB  # Python and the packages take this much of it, which a running process already has
BYTES_PER_CHARACTER = 16  # of the longest id, for each user: reports have the ids of all users
VERY_LONG = 1000  # characters of an id; for longer ids `memory=` may be too small to read anything
IN_MEMORY = 1 << 40
MAX_BYTES = 40 * MB  # of the strings of a file, so that a case takes seconds
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-sizes-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


class Shape(NamedTuple):
    """Random choices of a case."""

    rows: int
    length: int  # rows of a user
    characters: tuple[int, int]  # the shortest and the longest id; (0, 0) for integers
    users_alike: bool  # one part of the file has all long ids, so that no sample shows them
    n_items: int
    form: str
    group_rows: int
    shuffled: bool
    scored: bool
    exclude: bool
    by: bool
    memory: int
    seed: int


def draw_shape(seed: int) -> Shape:
    """Return the shape of a seed."""
    r = random.Random(seed)
    longest = r.choice([0, 1, 8, 13, 40, 200, 700, 3000])
    shortest = r.choice([0, longest // 2, longest])
    rows = min(r.choice([1, 300, 5_000, 40_000, 150_000]), MAX_BYTES // max(1, longest))
    return Shape(
        rows=rows,
        length=r.choice([1, 20, 100, 5000]) if longest < 1000 else r.choice([20, 100]),
        characters=(shortest, longest),
        users_alike=one_in(r, 2),
        n_items=r.choice([3, 200, 10**9]),
        form=r.choice(["parquet", "parquet", "csv", "csv.gz", "jsonl", "jsonl.gz"]),
        group_rows=r.choice([100, 10_000, 1 << 20]),
        shuffled=one_in(r, 2),
        scored=one_in(r, 2),
        exclude=one_in(r, 4),
        by=one_in(r, 4),
        memory=r.choice([64, 80, 150, 300]) * MB,
        seed=seed,
    )


def spelled(numbers: Any, lengths: Any) -> Any:
    """Return integers as distinct strings of at least these lengths."""
    if not lengths.any():
        return pa.array(numbers)
    texts = [
        f"{number}".ljust(length, "é"[: length % 2] or "x")
        for number, length in zip(*map(np.ndarray.tolist, (numbers, lengths)), strict=True)
    ]
    return pa.array([f"i{text}" for text in texts])


def make(shape: Shape) -> Any:
    """Return the rows of lists, with distinct items for each user."""
    rng = np.random.default_rng(shape.seed)
    at = np.arange(shape.rows)
    users = at // shape.length
    items = (users * 7919 % shape.n_items) + at % shape.length
    low, high = shape.characters
    ids = np.arange(max(int(users.max()), int(items.max()) if shape.n_items < 10**9 else 0) + 1)
    lengths = np.where(ids < len(ids) // 2, low, high) if shape.users_alike else rng.integers(low, high + 1, len(ids))
    of_items = lengths[items % len(lengths)]
    columns = {"user_id": spelled(users, lengths[users]), "item_id": spelled(items, of_items)}
    if shape.scored:
        columns["score"] = pa.array(np.round(rng.random(shape.rows), 3))
    if shape.by:
        columns["plan"] = pa.array([f"plan {user % 3}" for user in users.tolist()])
    table = pa.table(columns)
    return table.take(rng.permutation(shape.rows)) if shape.shuffled else table


def write(table: Any, name: str, shape: Shape) -> Path:
    """Write the table in the format of the shape."""
    path = FOLDER / f"{name}.{shape.form}"
    if shape.form == "parquet":
        pq.write_table(table, path, row_group_size=shape.group_rows)
        return path
    with gzip.open(path, "wb", 3) if shape.form.endswith(".gz") else path.open("wb") as stream:
        if shape.form.startswith("csv"):
            pyarrow.csv.write_csv(table, stream)
        else:
            stream.writelines(f"{json.dumps(row)}\n".encode() for row in table.to_pylist())
    return path


def reset_peak() -> int:
    """Count the peak memory from now on; return the current memory."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return held("VmRSS")


def held(what: str) -> int:
    """Return the bytes that this process holds, or its peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def bits(report: Any) -> Any:
    """Return the contents of a report, to the last bit."""
    estimates = {name: tuple(map(repr, report.estimates[name])) for name in report}
    groups = {
        name: {str(g): tuple(map(repr, by.values())) for g, by in own.items()} for name, own in report.groups.items()
    }
    values = {name: own.tobytes() for name, own in report.per_user.items()} if report.has_values else {}
    return estimates, groups, values, report.users, report.data


def evaluate(paths: dict[str, Path], shape: Shape, memory: int) -> Any:
    """Evaluate the files within this memory."""
    return fastrec.evaluate_files(
        paths["recs"],
        paths["truth"],
        ["ndcg@10", "recall@5", "mrr"],
        exclude=paths.get("exclude"),
        by="plan" if shape.by else None,
        memory=memory,
        temp_directory=FOLDER,
        per_user=shape.seed % 2 == 0 and max(shape.characters) < 100,
    )


def set_up() -> None:
    """Load everything that all cases need, so that it does not count as memory of the first."""
    for shape in (
        draw_shape(seed)._replace(rows=40_000, characters=(8, 8), length=20, form="parquet") for seed in (0, 1)
    ):
        run_shape(shape, check=False)


def run_shape(shape: Shape, *, check: bool = True) -> bool:
    """Evaluate the files of a shape twice; return whether they gave a value. Raise `Finding` for a forbidden result."""
    for path in FOLDER.iterdir():  # of an interrupted case
        path.unlink()
    table = make(shape)
    paths = {"recs": write(table, "recs", shape), "truth": write(table.slice(0, 1 + shape.rows // 3), "truth", shape)}
    if shape.exclude:
        paths["exclude"] = write(table.slice(shape.rows // 2), "exclude", shape)
    del table
    before = reset_peak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastrec.FastrecWarning)
        try:
            found = bits(evaluate(paths, shape, shape.memory))
        except fastrec.FastrecError as error:
            if max(shape.characters) >= VERY_LONG and shape.memory < 300 * MB and "do not fit in memory" in str(error):
                return False  # DuckDB holds many such lines at once
            raise Finding("wrong value", f"refused: {error}; {shape}") from error
        more = held("VmHWM") - before
        wanted = bits(evaluate(paths, shape, IN_MEMORY))
    for path in paths.values():
        path.unlink()
    if found != wanted:
        raise Finding("wrong value", f"values depend on memory=: {shape}")
    if left := list(FOLDER.iterdir()):
        raise Finding("wrong value", f"left behind: {left}; {shape}")
    of_users = BYTES_PER_CHARACTER * max(shape.characters) * (shape.rows // shape.length + 1)
    if check and more > shape.memory + SPARE_MEMORY - PACKAGES + of_users:
        raise Finding("wrong value", f"{more // MB} MB more memory under memory={shape.memory // MB} MB: {shape}")
    return True


def run_case(seed: int) -> bool:
    """Evaluate the files of a seed."""
    return run_shape(draw_shape(seed))


def describe(seed: int) -> str:
    """Return the shape of a seed for a replay."""
    return str(draw_shape(seed))
