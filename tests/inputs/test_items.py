"""The table of items, histories and references: their forms, and errors that say what is missing or wrong."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import fastrec
from fastrec.inputs.items import read_items
from fastrec.metrics.providers import PROVIDERS, provider

COLUMNS: dict[str, Any] = {
    "item_id": ["a", "b", "c"],
    "price": [1.0, 2.5, 0.0],
    "brand": ["u", "v", "u"],
    "genre": [["x", "y"], ["x"], ["z", "x", "y"]],
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
}
ROWS = {item: {name: COLUMNS[name][at] for name in COLUMNS if name != "item_id"} for at, item in enumerate("abc")}
FORMS = {
    "columns": COLUMNS,
    "arrays": {name: np.array(own) if name in ("price", "brand", "vector") else own for name, own in COLUMNS.items()},
    "rows": ROWS,
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
}
RECS, TRUTH = [["a", "b"], ["c"]], [["b"], ["a"]]
UNMATCHED = pytest.mark.filterwarnings("ignore:no truth item is in its user's list")


@pytest.fixture(autouse=True)
def _providers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrec.metrics.providers.PROVIDERS", dict(PROVIDERS))


@pytest.fixture
def length() -> str:
    @fastrec.ranking_metric(range=(0, None), source="ours")
    def length(s: Any) -> Any:
        """Length of the list."""
        return s.n_rec

    return "length"


@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_read_as_what_a_metric_needs(form: str) -> None:
    table = read_items(FORMS[form])
    assert table.numbers("price").tolist() == [1.0, 2.5, 0.0]
    codes, indptr, names = table.categories("brand")
    assert (codes.tolist(), indptr.tolist(), names) == ([0, 1, 0], [0, 1, 2, 3], ["u", "v"])
    codes, indptr, names = table.categories("genre")
    assert (codes.tolist(), indptr.tolist(), names) == ([0, 1, 0, 0, 1, 2], [0, 2, 3, 6], ["x", "y", "z"])
    assert table.vectors("vector").matrix.tolist() == COLUMNS["vector"]


@pytest.mark.parametrize("item", ["item_id", "sku"])
def test_the_keys_of_rows_are_the_items(item: str) -> None:
    frame = pd.DataFrame({item: [1, 0, 2], "price": [90.0, 1.0, 5.0]})
    with pytest.raises(fastrec.InputError, match=f"^items has the key 0 for a row whose '{item}' is 1, but keys must"):
        read_items(frame.to_dict("index"), item)
    table = read_items(frame.set_index(item, drop=False).to_dict("index"), item)
    assert (table.ids.tolist(), table.numbers("price").tolist()) == ([1, 0, 2], [90.0, 1.0, 5.0])
    some = read_items({1: {"price": 1.0}, 2: {item: 2, "price": 2.0}}, item)
    assert (some.ids.tolist(), some.numbers("price").tolist()) == ([1, 2], [1.0, 2.0])


@pytest.mark.parametrize("id_", ["1", 1.0, None, [1]])
def test_the_key_of_a_row_has_the_type_of_its_item(id_: Any) -> None:
    with pytest.raises(fastrec.InputError, match=r"^items has the key 1 for a row whose 'item_id' is "):
        read_items({1: {"item_id": id_, "price": 1.0}})


def test_vectors_may_be_a_sparse_matrix() -> None:
    matrix = sparse.csr_matrix(np.eye(3))
    assert read_items(COLUMNS | {"vector": matrix}).vectors("vector").matrix is matrix


@pytest.mark.parametrize("form", ["coo", "csc", "lil", "dok", "bsr"])
def test_any_sparse_matrix_may_hold_vectors(form: str) -> None:
    for made in (getattr(sparse, f"{form}_matrix")(np.eye(3)), getattr(sparse, f"{form}_array")(np.eye(3))):
        matrix = read_items(COLUMNS | {"vector": made}).vectors("vector").matrix
        assert (matrix.format, matrix.toarray().tolist()) == ("csr", np.eye(3).tolist())


@pytest.mark.parametrize("columns", [[0, 0, 0, 1], [1, 0, 0, 1], [1, 0, 1, 1]])
def test_a_sparse_matrix_may_hold_a_cell_twice_and_in_any_order(columns: list[int]) -> None:
    made = sparse.csr_matrix((np.array([1.0, 2.0, 3.0, 4.0]), np.array(columns), np.array([0, 2, 4])), shape=(2, 2))
    metric = "intra_list_diversity@2"
    dense, found = (
        fastrec.evaluate([[1, 2]], None, metric, items={"item_id": [1, 2], "features": features})[metric]
        for features in (made.toarray(), made)
    )
    assert found == pytest.approx(dense, rel=1e-14)
    assert (made.data.tolist(), made.indices.tolist()) == ([1.0, 2.0, 3.0, 4.0], columns)


COUNTED = pd.Series([3.0, 1.0], ["b", "a"])
AS_IN_PANDAS: dict[str, tuple[Any, Any, str]] = {
    "ids in another order": (
        ["a", "b"],
        COUNTED,
        r"^items\['n'\] has an index with the items in another order, but .*",
    ),
    "an array of ids": (np.array(["a", "b"]), COUNTED, r"pass items\['n'\].loc\[items\['item_id'\]\], or, if it is in"),
    "ids with an index": (pd.Series(["a", "b"], [7, 8]), COUNTED, "has an index with the items in another order"),
    "integers": ([1, 0], pd.Series([3.0, 1.0], [0, 1]), "has an index with the items in another order"),
    "a range": ([2, 1], pd.Series([3.0, 1.0], range(1, 3)), "has an index with the items in another order"),
    "two indexes": (
        pd.Series(["a", "b"], [7, 8]),
        pd.Series([3.0, 1.0], [8, 7]),
        r"^items\['item_id'\] and items\['n'\] are Series with different indexes, but Series are matched by position",
    ),
}


@pytest.mark.parametrize("name", AS_IN_PANDAS)
def test_series_of_items_with_another_index_are_refused(name: str) -> None:
    ids, column, says = AS_IN_PANDAS[name]
    with pytest.raises(fastrec.InputError, match=says):
        read_items({"item_id": ids, "n": column})


@pytest.mark.parametrize(
    ("ids", "index"),
    [
        (["b", "a"], ["b", "a"]),
        (pd.Series(["b", "a"]), ["b", "a"]),
        (["b", "a"], None),
        ([1, 0], None),
        ([5, 6], [7, 8]),
    ],
)
def test_series_of_items_in_their_order_are_read(ids: Any, index: Any) -> None:
    table = read_items({"item_id": ids, "n": pd.Series([3.0, 1.0], index), "m": pd.Series([1.0, 2.0], index)})
    assert table.numbers("n").tolist() == [3.0, 1.0]
    frame = pd.DataFrame({"item_id": [1, 0], "n": [3.0, 1.0]}, [0, 1])
    assert read_items({"item_id": frame["item_id"], "n": frame["n"]}).numbers("n").tolist() == [3.0, 1.0]


ONE_HOT = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    "made",
    [
        ONE_HOT,
        ONE_HOT.astype(float),
        np.array([[1, 0], [0, 1], [1, 0]]),
        ONE_HOT.tolist(),
        list(ONE_HOT),
        pd.Series(ONE_HOT.tolist()),
        pa.array(ONE_HOT.tolist()),
    ],
    ids=["integers", "floats", "two columns", "lists", "arrays", "series", "arrow"],
)
def test_one_hot_columns_are_no_categories(made: Any) -> None:
    with pytest.raises(
        fastrec.InputError, match=r"^items column 'c' must hold .* found rows of 0 and 1, as in one-hot"
    ):
        read_items({"item_id": [1, 2, 3], "c": made}).categories("c")


@pytest.mark.parametrize(
    "made", [[[0, 1], [1], [0]], [0, 1, 0], np.array([[0], [1], [0]]), np.array([[0, 5], [1, 0], [0, 0]])]
)
def test_categories_may_be_numbers(made: Any) -> None:
    rows = made.tolist() if isinstance(made, np.ndarray) else made
    wanted = [set(row) if isinstance(row, list) else {row} for row in rows]
    codes, indptr, names = read_items({"item_id": [1, 2, 3], "c": made}).categories("c")
    assert [{names[code] for code in codes[a:b]} for a, b in itertools.pairwise(indptr)] == wanted


@pytest.mark.parametrize(
    "made", [np.array([[1, -1], [1, 2], [2, -1]]), np.array([[1.0, -1.0], [1.0, 2.0], [2.0, 3.0]])]
)
def test_padding_is_no_category(made: Any) -> None:
    says = (
        r"^items column 'c' must hold categories from 0 in a 2-D array, found -1.*: if it pads short rows, pass lists"
    )
    table = read_items({"item_id": [1, 2, 3], "c": made})
    with pytest.raises(fastrec.InputError, match=says):
        table.categories("c")
    assert table.vectors("c").matrix.tolist() == made.tolist()
    assert read_items({"item_id": [1, 2], "c": np.array([-1, 4])}).categories("c").names == [-1, 4]


WRITTEN = ["['drama', 'war']", "['war']", "[]"]


@pytest.mark.parametrize("made", [WRITTEN, np.array(WRITTEN), pa.array(WRITTEN), pd.Series([*WRITTEN[:2], None])])
@pytest.mark.parametrize("sep", [None, "|"])
def test_lists_that_were_written_as_text_are_no_categories(made: Any, sep: str | None) -> None:
    says = r"^items column 'c' holds lists written as text, such as .*: save them as Parquet or JSON lines, or as text"
    with pytest.raises(fastrec.InputError, match=says):
        read_items({"item_id": [1, 2, 3], "c": made}).categories("c", sep)


def test_one_category_may_have_brackets() -> None:
    assert read_items({"item_id": [1, 2], "c": ["[none]", "drama"]}).categories("c").names == ["[none]", "drama"]


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


@pytest.mark.parametrize("read", ["numbers", "categories", "vectors"])
@pytest.mark.parametrize(
    "made",
    [
        MASKED,
        MASKED.astype(int),
        MASKED.astype(object),
        np.ma.array([MASKED] * 3),
        [[1.0, 2.0, 3.0], MASKED, [1.0, 2.0, 3.0]],
        [1.0, np.ma.masked, 2.0],
    ],
    ids=["floats", "integers", "objects", "2-D", "rows", "a value"],
)
def test_masked_values_of_items_are_refused(made: Any, read: str) -> None:
    with pytest.raises(fastrec.InputTypeError, match=r"^items column 'c' must not be a masked array: fill it first$"):
        getattr(read_items({"item_id": [1, 2, 3], "c": made}), read)("c")


SPARSE: dict[str, tuple[Any, str]] = {
    "a column outside": (
        sparse.csr_matrix((np.ones(2), np.array([0, 2]), np.array([0, 1, 2])), shape=(2, 2)),
        r"\.indices must be columns of the matrix, from 0 to 1, found 2$",
    ),
    "complex": (sparse.csr_matrix(np.eye(2) * 1j), r" must be numbers of at most 64 bits, found dtype complex128$"),
    "infinite": (sparse.csr_matrix([[np.inf], [1.0]]), " must hold finite numbers, found inf$"),
    "too few": (sparse.csr_matrix(np.ones((1, 2))), " must have one value per item, 2; found 1$"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_matrix_that_cannot_be_read(name: str) -> None:
    made, says = SPARSE[name]
    with pytest.raises(fastrec.FastrecError, match=f"^items column 'v'{says}"):
        read_items({"item_id": [1, 2], "v": made}).vectors("v")


def test_another_column_may_hold_the_ids() -> None:
    assert read_items({"sku": [7, 8], "price": [1, 2]}, "sku").ids.tolist() == [7, 8]


FAULTS: dict[str, tuple[Any, str]] = {
    "a number": (3, r"items must be a data frame or a dict of columns with 'item_id', .*; found an int"),
    "a path": ("items.csv", r"items must be data, found a str"),
    "twice": ({"item_id": [1, 2, 1]}, r"items column 'item_id' must have each item once, found 1 again at row 2"),
    "twice a string": (
        pl.DataFrame({"item_id": ["a", "a"]}),
        r"items column 'item_id' must have each item once, found 'a' again at row 1",
    ),
    "floats": ({"item_id": [0.5]}, r"items column 'item_id' must be integers or strings"),
    "a row that is no dict": ({1: {"p": 1}, 2: 3}, r"items must be .* found a row that is 3"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_table_that_is_none(name: str) -> None:
    value, says = FAULTS[name]
    with pytest.raises(fastrec.FastrecError, match=f"^{says}"):
        read_items(value)


MISSING: list[Any] = [
    {1: {"p": 1.5, "v": [1.0]}, 2: {}},
    {"item_id": [1, 2], "p": [1.5, None], "v": [[1.0], None]},
    {"item_id": [1, 2], "p": np.array([1.5, np.nan]), "v": [[1.0], np.nan]},
    pd.DataFrame({"item_id": [1, 2], "p": [1.5, None], "v": [[1.0], None]}),
    pl.DataFrame({"item_id": [1, 2], "p": [1.5, None], "v": [[1.0], None]}),
    pa.table({"item_id": [1, 2], "p": [1.5, None], "v": [[1.0], None]}),
]


@pytest.mark.parametrize("form", range(len(MISSING)))
def test_an_item_may_lack_a_value(form: int) -> None:
    table = read_items(MISSING[form])
    assert np.array_equal(table.numbers("p"), [1.5, np.nan], equal_nan=True)
    matrix, known = table.vectors("v")
    assert (matrix.tolist(), known.tolist()) == ([[1.0], [0.0]], [True, False])


def test_an_item_may_lack_a_category() -> None:
    for column in (["a", None], [["a"], []], [["a", "a"], None], pa.array(["a", None]), np.array(["a", None])):
        codes, indptr, names = read_items({"item_id": [1, 2], "genre": column}).categories("genre")
        assert (codes.tolist(), indptr.tolist(), names) == ([0], [0, 1, 1], ["a"])


@pytest.mark.parametrize("form", ["list", "array", "arrow", "pandas", "nullable", "polars"])
def test_whole_floats_are_categories(form: str) -> None:
    """pandas makes floats of integers where an item has none."""
    values = [4.0, None, 2.0]
    made: Any = {
        "list": {"item_id": [1, 2, 3], "c": [4.0, float("nan"), 2.0]},
        "array": {"item_id": [1, 2, 3], "c": np.array(values, float)},
        "arrow": {"item_id": [1, 2, 3], "c": pa.array([4.0, float("nan"), 2.0])},
        "pandas": pd.DataFrame({"item_id": [1, 2, 3], "c": values}),
        "nullable": {"item_id": [1, 2, 3], "c": pd.array([4, None, 2], dtype="Int64")},
        "polars": pl.DataFrame({"item_id": [1, 2, 3], "c": values}),
    }[form]
    codes, indptr, names = read_items(made).categories("c")
    assert (codes.tolist(), indptr.tolist(), names) == ([1, 0], [0, 1, 1, 2], [2, 4])
    assert {type(name) for name in names} == {int}


def test_strings_may_hold_several_categories() -> None:
    for column in (["b|a", "a||"], pa.array(["b|a", "a||"]), np.array(["b|a", "a||"])):
        codes, indptr, names = read_items({"item_id": [1, 2], "genre": column}).categories("genre", "|")
        assert (codes.tolist(), indptr.tolist(), names) == ([0, 1, 0], [0, 2, 3], ["a", "b"])
    with pytest.raises(fastrec.InputTypeError, match=r"items column 'genre' must hold strings with sep=|, found 3"):
        read_items({"item_id": [1], "genre": [3]}).categories("genre", "|")


NAN, LARGE = float("nan"), 2**53 + 1
WITH_NAN, WITH_LARGE = [[1.0, 2.0], [3.0, NAN], [5.0, 6.0]], [[1, 2], [3, 4], [5, LARGE]]


@pytest.mark.parametrize(
    ("kind", "column", "row"),
    [
        ("vectors", WITH_NAN, 1),
        ("vectors", np.array(WITH_NAN), 1),
        ("vectors", pa.array(WITH_NAN), 1),
        ("vectors", sparse.csr_matrix(np.array(WITH_NAN)), 1),
        ("vectors", [[1.0, 2.0], None, [3.0, NAN]], 2),
        ("vectors", WITH_LARGE, 2),
        ("vectors", np.array(WITH_LARGE), 2),
        ("vectors", pa.array(WITH_LARGE), 2),
        ("vectors", sparse.csr_matrix(np.array(WITH_LARGE)), 2),
        ("vectors", pa.array([[1, 2], None, [3, LARGE]]), 2),
        ("numbers", [1, None, LARGE], 2),
        ("numbers", pa.array([1, None, LARGE]), 2),
    ],
    ids=str,
)
def test_errors_name_the_row_of_a_number(kind: str, column: Any, row: int) -> None:
    table = read_items({"item_id": [1, 2, 3], "c": column})
    with pytest.raises(fastrec.InputError, match=rf"^items column 'c' (must not be NaN|holds).* at position {row}$"):
        getattr(table, kind)("c")


@pytest.mark.parametrize("column", [WITH_NAN, WITH_LARGE])
def test_errors_of_files_name_the_row_of_a_vector(column: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    lists, items = tmp_path / "lists.csv", tmp_path / "items.parquet"
    lists.write_text("user_id,item_id\n1,1\n1,2\n1,3\n")
    parquet.write_table(pa.table({"item_id": [1, 2, 3], "c": column}), items)
    row = 2 if column is WITH_NAN else 3
    with pytest.raises(fastrec.InputError, match=rf"column 'c' (must not be NaN|holds).* in row {row}$"):
        fastrec.evaluate_files(lists, metrics="intra_list_diversity(column=c)@3", items=items)


READS: dict[str, tuple[str, str, Any, str]] = {
    "no such column": ("numbers", "pirce", [1, 2], r"items has no column 'pirce'; did you mean 'price'\?"),
    "strings as numbers": ("numbers", "price", ["x", "y"], r"items column 'price' must be numbers"),
    "too few": ("numbers", "price", [1.0], r"items column 'price' must have one value per item, 2; found 1"),
    "numbers as categories": ("categories", "price", [0.5, 1.5], r"items column 'price' must hold categories"),
    "mixed": ("categories", "price", ["a", 1], r"items column 'price' must hold all strings or all integers"),
    "of bytes": ("categories", "price", ["a", b"a"], r"items column 'price' must hold categories, .* found b'a'"),
    "a dict": ("categories", "price", {1: "a", 2: "b"}, r"items column 'price' must be a list or an array, found {1"),
    "a string": ("categories", "price", "ab", r"items column 'price' must be a list or an array, found 'ab'"),
    "a number": ("numbers", "price", 3, r"items column 'price' must be a list or an array, found 3"),
    "of two lengths": (
        "vectors",
        "price",
        [[1.0], [1.0, 2.0]],
        r"items column 'price' must hold vectors of one length",
    ),
    "large floats as categories": ("categories", "price", [1e300, 1.0], "items column 'price' must hold categories"),
    "a None in a vector": (
        "vectors",
        "price",
        [[1.0, None], [1.0, 2.0]],
        r"items column 'price' must hold vectors of numbers, found \[1\.0, None\]$",
    ),
    "vectors of strings": ("vectors", "price", [["a"], ["b"]], "items column 'price' must hold vectors of numbers"),
    "a generator": (
        "vectors",
        "price",
        (row for row in [[1.0], [2.0]]),
        "items column 'price' must be a list or an array, found a generator$",
    ),
    "a sparse matrix as numbers": (
        "numbers",
        "price",
        sparse.csr_matrix(np.eye(2)),
        "items column 'price' must hold one number per item, found a sparse matrix$",
    ),
    "a sparse matrix as categories": (
        "categories",
        "price",
        sparse.coo_matrix(np.eye(2)),
        "items column 'price' must hold categories, found a sparse matrix$",
    ),
    "a frame as vectors": (
        "vectors",
        "price",
        pd.DataFrame({"a": [1.0, 2.0]}),
        r"items column 'price' must be a list or an array, found a data frame: pass its to_numpy\(\)$",
    ),
    "a frame as numbers": ("numbers", "price", pl.DataFrame({"a": [1.0, 2.0]}), ".* found a data frame: pass its"),
    "infinite": ("vectors", "price", [[1.0], [np.inf]], r"items column 'price' must hold finite numbers, found inf"),
}


def test_categories_of_an_item_have_one_order() -> None:
    forms: list[Any] = [[["b", "a"], ["c", "a", "b"]], [["a", "b"], ["b", "c", "a"]], [{"a", "b"}, {"a", "b", "c"}]]
    for made in [*forms, pd.Series(forms[2]), pa.array(forms[0])]:
        found = read_items({"item_id": [1, 2], "c": made}).categories("c")
        assert (found.codes.tolist(), found.indptr.tolist(), found.names) == ([0, 1, 0, 1, 2], [0, 2, 5], list("abc"))


@pytest.mark.parametrize("name", READS)
def test_a_column_that_a_metric_cannot_read(name: str) -> None:
    kind, column, values, says = READS[name]
    table = read_items({"item_id": [1, 2], "price": values})
    with pytest.raises(fastrec.FastrecError, match=f"^{says}"):
        getattr(table, kind)(column)


def test_a_metric_names_the_side_that_it_needs() -> None:
    with pytest.raises(fastrec.MetricError, match=r"^ndcg@2 needs truth=\.\.\.$"):
        fastrec.evaluate(RECS, metrics="ndcg@2")


def test_a_metric_of_lists_alone_needs_no_truth_and_counts_every_list(length: str) -> None:
    alone = fastrec.evaluate(RECS, metrics=length)
    assert (alone[length], alone.users["evaluated"], alone.users["no_truth"], alone.warnings) == (1.5, 2, 0, [])
    both = fastrec.evaluate(RECS, [["b"], []], [length, "recall@2"])
    assert (both[length], both["recall@2"], both.users["no_truth"]) == (1.5, 1.0, 1)


@pytest.mark.parametrize("form", FORMS)
def test_items_give_the_size_of_the_catalogue(form: str) -> None:
    assert fastrec.evaluate(RECS, TRUTH, "recall@1", items=FORMS[form]).settings["n_items"] == 3
    with pytest.raises(fastrec.InputError, match=r"^n_items must be at least 3, the number of rows of items$"):
        fastrec.evaluate(RECS, TRUTH, "recall@1", items=FORMS[form], n_items=2)


def test_a_small_table_of_items_matters_to_metrics_that_need_its_size() -> None:
    shop = {"item_id": ["a"], "price": [1]}
    assert fastrec.evaluate(RECS, TRUTH, "recall@1", items=shop).settings["n_items"] == 1
    says = "^items has 1 rows?, but list and truth of user 0 have .* items: add what it lacks, or give the size of the"
    with pytest.raises(fastrec.InputError, match=says):
        fastrec.evaluate(RECS, TRUTH, "accuracy@1", items=shop)


def test_items_have_the_ids_of_lists() -> None:
    with pytest.raises(fastrec.InputTypeError, match="item ids must be of one type on all sides, found recs: strings"):
        fastrec.evaluate(RECS, TRUTH, "recall@1", items={"item_id": [1, 2]})


HISTORY = {
    "lists": ([[1, 2, 3], [4, 5]], [[2], [5]], [[1], [4]]),
    "dicts": ({7: [1, 2, 3], 8: [4, 5]}, {7: [2], 8: [5]}, {8: [4], 7: [1], 9: [3]}),
    "frames": (
        pd.DataFrame({"user_id": [7, 7, 7, 8, 8], "item_id": [1, 2, 3, 4, 5]}),
        pd.DataFrame({"user_id": [7, 8], "item_id": [2, 5]}),
        pl.DataFrame({"user_id": [8, 9, 7], "item_id": [4, 3, 1]}),
    ),
}


@pytest.mark.parametrize("form", HISTORY)
def test_a_history_may_be_what_to_exclude(form: str) -> None:
    recs, truth, history = HISTORY[form]
    report = fastrec.evaluate(recs, truth, "mrr", history=history, exclude="history")
    assert (report["mrr"], report.data["excluded_items"]) == (1.0, 2)
    assert fastrec.evaluate(recs, truth, "mrr", history=history)["mrr"] == 0.5
    evaluator = fastrec.Evaluator("mrr", history=history)
    evaluator.update(recs, truth, exclude="history", reference=recs)
    assert evaluator.result()["mrr"] == 1.0


def test_excluding_a_history_needs_one() -> None:
    with pytest.raises(fastrec.InputError, match=r"^exclude='history' needs history=\.\.\.$"):
        fastrec.evaluate(RECS, TRUTH, "mrr", exclude="history")


@pytest.mark.parametrize("side", ["history", "reference"])
def test_sides_must_have_the_same_users(side: str) -> None:
    more: dict[str, Any] = {side: [["a"]]}
    with pytest.raises(fastrec.InputError, match=f"^recs and {side} must have the same users in the same order"):
        fastrec.evaluate(RECS, TRUTH, "mrr", **more)


@UNMATCHED
def test_a_history_that_can_be_read_once_serves_all_batches() -> None:
    history = pa.table({"user_id": [1, 2], "item_id": [5, 6]})
    for given in (history, history.to_reader()):
        evaluator = fastrec.Evaluator("mrr", history=given)
        for user in (1, 2):
            recs = pa.table({"user_id": [user, user], "item_id": [5, 6], "rank": [1, 2]})
            evaluator.update(recs, pa.table({"user_id": [user], "item_id": [7]}), exclude="history")
        assert evaluator.result().data["excluded_items"] == 2


def test_a_history_with_another_index_than_the_lists_is_an_error() -> None:
    """pandas 3 can export Series, and the index got lost."""
    lists, history = pd.Series([[1], [2]], index=["a", "b"]), pd.Series([[1], [2]], index=["b", "a"])
    with pytest.raises(fastrec.InputError, match="recs and history are Series with different indexes"):
        fastrec.evaluate(lists, lists, "mrr", history=history, exclude="history")


def test_a_reference_is_ordered_by_its_scores() -> None:
    found = []

    @provider("first of reference", sides=["reference"])
    def fill(sides: Any, keys: Any, out: Any) -> None:
        found.append(sides["reference"].items.tolist())
        out[:] = 0.0

    @fastrec.ranking_metric(range=(0, 1), source="ours")
    def first_of_reference(s: Any) -> Any:
        """Nothing: the provider keeps what it gets."""
        return s.provided("first of reference")

    fastrec.evaluate([[5, 6]], metrics="first_of_reference", reference=[{5: 0.1, 6: 0.9}])
    assert found == [[6, 5]]
    tied: list[dict[int, float]] = [{5: 0.5, 6: 0.5}]
    with pytest.raises(fastrec.InputError, match=r"^reference of user 0 has tied scores; choose an order with ties="):
        fastrec.evaluate([[5, 6]], metrics="first_of_reference", reference=tied)
    fastrec.evaluate([[5, 6]], metrics="first_of_reference", reference=tied, ties="id_desc")
    assert found[1:] == [[6, 5]]


COPIES: dict[str, tuple[Any, Any]] = {  # lists, and references with an item twice
    "lists": ([[5, 6]], [[5, 5, 6]]),
    "dicts": ({0: [5, 6]}, {0: [5, 5, 6]}),
    "arrays": (([5, 6], [0, 2]), ([5, 5, 6], [0, 3])),
    "scores": ([[5, 6]], ([6, 5, 5], [0, 3], [0.1, 0.9, 0.8])),
    "frames": (
        pd.DataFrame({"user_id": [0, 0], "item_id": [5, 6]}),
        pl.DataFrame({"user_id": [0] * 3, "item_id": [6, 5, 5], "score": [0.1, 0.9, 0.8]}),
    ),
}


@pytest.mark.parametrize("form", COPIES)
def test_copies_in_a_reference_are_treated_as_those_in_lists(form: str) -> None:
    recs, reference = COPIES[form]
    metrics = ["rbo@2", "overlap@2"]
    says = r"^reference of user 0: item 5 appears twice, the second time at rank 2; duplicates='first' or 'miss' would"
    with pytest.raises(fastrec.InputError, match=says):
        fastrec.evaluate(recs, None, metrics, reference=reference)
    closed = fastrec.evaluate(recs, None, metrics, reference=reference, duplicates="first")
    assert (closed["rbo@2"], closed["overlap@2"], closed.data["duplicates_in_reference"]) == (1.0, 1.0, 1)
    blank = fastrec.evaluate(recs, None, metrics, reference=reference, duplicates="miss")
    assert (blank["rbo@2"], blank["overlap@2"]) == (pytest.approx(0.55), 1 / 3)


def test_misses_of_a_reference_are_not_those_of_the_list() -> None:
    report = fastrec.evaluate([[5, 5]], None, "overlap@2", reference=[[5, 5]], duplicates="miss")
    assert (report["overlap@2"], report.data["duplicates_in_reference"]) == (1 / 3, 1)


def test_a_reference_that_no_metric_reads_may_have_copies() -> None:
    assert fastrec.evaluate([[5]], [[5]], "mrr", reference=[[5, 5]])["mrr"] == 1.0


@pytest.mark.parametrize("fault", ["leaves numbers out", "writes to the lists"])
def test_a_provider_that_goes_wrong(fault: str) -> None:
    @provider("wrong", sides=["recs"])
    def fill(sides: Any, keys: Any, out: Any) -> None:
        if fault == "writes to the lists":
            sides["recs"].items[:] = 0

    @fastrec.ranking_metric(range=(0, 1), source="ours")
    def wrong(s: Any) -> Any:
        """What the provider fills."""
        return s.provided("wrong")

    recs = np.array([[5, 6]])
    with pytest.raises((fastrec.MetricError, ValueError), match=r"must fill finite numbers, found nan|read-only"):
        fastrec.evaluate(recs, metrics="wrong")
    assert recs.tolist() == [[5, 6]]


def test_sides_of_a_provider_are_a_list() -> None:
    with pytest.raises(fastrec.InputTypeError, match=r"sides must be a list of names, found the string 'recs': write"):
        provider("letters", sides="recs")


def test_the_column_of_items_may_have_another_name() -> None:
    recs, truth = pd.DataFrame({"user_id": [1], "sku": [2]}), pd.DataFrame({"user_id": [1], "sku": [2]})
    report = fastrec.evaluate(recs, truth, "mrr", item="sku", items={"sku": [2, 3, 4], "price": [1, 2, 3]})
    assert report.settings["n_items"] == 3


def test_the_column_of_items_may_have_another_name_beside_dicts_and_arrays() -> None:
    """It was refused: "item='sku' names a column, but recs and truth are not data frames"."""
    shop: dict[str, Any] = {"sku": [1, 0], "popularity": [1, 3]}
    by_item = {1: {"sku": 1, "popularity": 1}, 0: {"popularity": 3, "sku": 0}}
    for items in (shop, pd.DataFrame(shop), by_item):
        for recs in ({"a": [1, 0]}, [[1, 0]], np.array([[1, 0]])):
            assert fastrec.evaluate(recs, None, "popularity@2", items=items, item="sku")["popularity@2"] == 2.0
        model: dict[str, Any] = {"model": np.array([[0.2, 0.1]]), "metrics": "popularity@2", "user_ids": ["a"]}
        for truth in ({"a": [0]}, [[0]]):
            assert fastrec.evaluate_model(**model, truth=truth, items=items, item="sku")["popularity@2"] == 2.0
    says = "^item='sku' names a column, but recs and truth are not data frames"
    for call in ({}, {"items": {"item_id": [1, 0], "popularity": [1, 3]}}):  # no table has the column
        with pytest.raises(fastrec.InputError, match=says):
            fastrec.evaluate([[1, 0]], [[1]], "mrr", item="sku", **call)
    with pytest.raises(fastrec.InputError, match=r"^rank='r' names a column"):
        fastrec.evaluate([[1, 0]], [[1]], "mrr", items=shop, item="sku", rank="r")


def test_an_evaluator_with_items_can_be_copied() -> None:
    for form in FORMS.values():
        evaluator = fastrec.Evaluator("mrr", items=form)
        evaluator.update(RECS, TRUTH)
        again = pickle.loads(pickle.dumps(evaluator))
        assert again.result().to_dict() == evaluator.result().to_dict()


@UNMATCHED
def test_segments_of_items_read_the_table_once(length: str) -> None:
    shop = pa.table({"item_id": ["a", "b", "c"], "price": [1, 2, 3]})
    reports = fastrec.evaluate_by_items(RECS, TRUTH, {"a": "x", "b": "y"}, "recall@2", items=shop.to_reader())
    assert {report.settings["n_items"] for report in reports.values()} == {3}


def test_shares_of_users_are_those_of_the_truth(length: str) -> None:
    for metrics in (length, [length, "recall@1"]):
        assert fastrec.evaluate(RECS, [["b"], []], metrics).data["truth_users_with_recs"] == 1.0
    assert np.isnan(fastrec.evaluate(RECS, metrics=length).data["truth_users_with_recs"])


def test_a_metric_of_lists_alone_has_no_errors_about_the_truth(length: str) -> None:
    assert fastrec.evaluate(RECS, metrics=length, no_truth="error")[length] == 1.5
    with pytest.raises(fastrec.InputError, match="has no relevant item, and no_truth='error'"):
        fastrec.evaluate(RECS, [["b"], []], [length, "recall@1"], no_truth="error")
