"""Tables in files of every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def write_table(table: Any, path: Path, n_rows: int = 300) -> str:
    """Write a table, or its columns, in the format of the ending and batches of some rows; return the path."""
    pa, csv, pq = map(pytest.importorskip, ("pyarrow", "pyarrow.csv", "pyarrow.parquet"))
    table = table if isinstance(table, pa.Table) else pa.table(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=n_rows)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, n_rows)
    elif path.suffix in (".arrow", ".feather"):
        packing = pa.ipc.IpcWriteOptions(compression="lz4" if path.suffix == ".feather" else None)
        with pa.ipc.new_file(path, table.schema, options=packing) as writer:
            writer.write_table(table, n_rows)
    elif path.suffix == ".jsonl":
        rows = (json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist())
        path.write_text("".join(f"{row}\n" for row in rows))
    else:
        with pa.output_stream(path) as stream:  # packs by the ending
            csv.write_csv(table, stream)
    return str(path)
