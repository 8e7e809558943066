"""A log in a file is evaluated without its table."""

import weakref

import numpy as np
import pytest

from fastrec import evaluate_files
from fastrec.evaluation.rows import RowEvaluation

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_the_table_is_free_before_its_rows_are_evaluated(tmp_path, monkeypatch):
    n = 1000
    columns = {"user_id": np.arange(n) // 9, "label": np.arange(n) % 2, "score": np.arange(n) % 7 / 7}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    tables, is_free = [], []
    prepare, evaluate = RowEvaluation.prepare, RowEvaluation.evaluate

    def prepare_watched(evaluation, table, *given):
        tables.append(weakref.ref(table))
        return prepare(evaluation, table, *given)

    def evaluate_watched(*given):
        is_free.extend(table() is None for table in tables)
        evaluate(*given)

    monkeypatch.setattr(RowEvaluation, "prepare", prepare_watched)
    monkeypatch.setattr(RowEvaluation, "evaluate", evaluate_watched)
    evaluate_files(tmp_path / "log.parquet", metrics=["auc", "gauc"])
    assert is_free == [True]
