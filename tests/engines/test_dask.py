"""What only Dask does with data frames of pandas."""

import numpy as np
import pytest

import fastrec
import fastrec.dask
from fastrec.exceptions import InputTypeError
from tests.support.engines import OnDask, make_lists

pytest.importorskip("dask.dataframe")
engine = OnDask()


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize(
    "shape", [list, tuple, np.array, lambda items: items[:1]], ids=["list", "tuple", "array", "one"]
)
def test_lists_that_became_strings_are_no_ids(strings, shape):
    recs, truth = make_lists(20, strings)
    lists = truth.groupby("user_id", as_index=False).agg({"item_id": list})
    lists["item_id"] = lists["item_id"].map(shape)
    message = (
        r"^truth: column 'item_id' has strings such as \"[\[(].*[\])]\", lists that dask.dataframe.from_pandas turned "
    )
    message = message if strings else "item ids must be of one type|" + message
    with pytest.raises(InputTypeError, match=message):
        fastrec.dask.evaluate(engine.make(recs), engine.make(lists), "ndcg@3")


def test_ids_may_have_brackets():
    recs, truth = make_lists(20, strings=True)
    for frame in (recs, truth):
        frame["user_id"] = frame["user_id"].map("[{}".format)
        frame["item_id"] = frame["item_id"].str.replace("item ", "[").map("{}]".format)
    found = fastrec.dask.evaluate(engine.make(recs), engine.make(truth), "ndcg@3")
    assert found["ndcg@3"] == fastrec.evaluate(recs, truth, "ndcg@3")["ndcg@3"]


def test_labels_may_be_intervals():
    recs, truth = make_lists(20)
    for frame in (recs, truth):
        frame["age"] = frame["plan"].map({0: "(0, 18]", 1: "(18, 25]", 2: "(25, 99]"})
    found = fastrec.dask.evaluate(engine.make(recs), engine.make(truth), "ndcg@3", by="age")
    assert {*found.groups["age"]} >= {"(0, 18]", "(18, 25]", "(25, 99]"}


def test_a_column_is_no_data_frame():
    recs, truth = make_lists(20)
    with pytest.raises(InputTypeError, match=r"^recs must be a Dask data frame, found a Series"):
        fastrec.dask.evaluate(engine.make(recs)["item_id"], engine.make(truth), "ndcg@3")


def test_names_of_other_columns_are_any():
    recs, truth = make_lists(20)
    recs[7] = 1
    found = fastrec.dask.evaluate(engine.make(recs), engine.make(truth), "ndcg@3")
    assert found["ndcg@3"] == fastrec.evaluate(recs, truth, "ndcg@3")["ndcg@3"]


def test_columns_that_are_not_needed_are_of_any_type():
    recs, truth = make_lists(20)
    wanted = fastrec.evaluate(recs, truth, "ndcg@3")["ndcg@3"]
    truth["phase"] = np.ones(len(truth), np.complex128)  # which Arrow lacks
    assert fastrec.dask.evaluate(engine.make(recs), engine.make(truth), "ndcg@3")["ndcg@3"] == wanted
