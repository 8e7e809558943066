"""Forms of models: data frames, sparse matrices, functions, and numbers that overflow."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fastrec

SCORES = np.random.default_rng(0).random((4, 5))
FACTORS = np.random.default_rng(1).random((4, 3)), np.random.default_rng(2).random((5, 3))
USERS, ITEMS = [30, 10, 20, 40], ["d", "a", "e", "b", "c"]
TRUTH = {30: ["a"], 10: ["b"], 20: ["d"], 40: ["e"]}


def mrr(model: Any, truth: Any, **call: Any) -> float:
    return fastrec.evaluate_model(model, truth, "mrr", **call)["mrr"]


def test_labels_of_frames_name_users_and_items() -> None:
    pd = pytest.importorskip("pandas")
    named: dict[str, Any] = {"user_ids": USERS, "item_ids": ITEMS}
    frame = pd.DataFrame(SCORES, index=USERS, columns=ITEMS)
    assert mrr(frame, TRUTH) == mrr(SCORES, TRUTH, **named)
    assert mrr(frame.iloc[::-1, ::-1], TRUTH) == mrr(SCORES, TRUTH, **named)
    assert fastrec.top_items(frame, 2)[0].tolist() == fastrec.top_items(SCORES, 2, item_ids=ITEMS)[0].tolist()
    factors = pd.DataFrame(FACTORS[0], index=USERS), pd.DataFrame(FACTORS[1], index=ITEMS)
    wanted = mrr(FACTORS, TRUTH, **named)
    assert mrr(factors, TRUTH) == wanted
    assert mrr((factors[0], FACTORS[1]), TRUTH, item_ids=ITEMS) == wanted
    assert mrr(factors, TRUTH, item_bias=pd.Series([0.0] * 5, index=ITEMS)) == wanted
    other = {f"u{user}": items for user, items in TRUTH.items()}
    assert mrr(frame, other, user_ids=[f"u{user}" for user in USERS]) == mrr(SCORES, TRUTH, **named)
    plain = [[1], [3], [0], [2]]
    assert mrr(pd.DataFrame(SCORES), plain) == mrr(SCORES, plain)
    with pytest.raises(
        fastrec.InputError, match="truth of user 0 has item 9, but the 5 items of the model are numbered"
    ):
        mrr(pd.DataFrame(SCORES), [[9], [3], [0], [2]])


def test_labels_of_a_frame_beside_a_sparse_matrix_count() -> None:
    """They were ignored, so a frame with its columns in another order gave the items other scores."""
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    users, weights = np.eye(4, 5), np.random.default_rng(3).random((5, 5))
    wanted = mrr(users @ weights, TRUTH, user_ids=USERS, item_ids=ITEMS)
    x, b = pd.DataFrame(users, index=USERS), pd.DataFrame(weights, columns=ITEMS)
    assert mrr((sparse.csr_array(users), b.iloc[:, ::-1]), TRUTH, user_ids=USERS) == wanted
    assert mrr((x.iloc[::-1], sparse.csr_array(weights)), TRUTH, item_ids=ITEMS) == wanted
    both = x.set_axis(ITEMS, axis=1)
    assert mrr((both, sparse.csr_array(weights)), TRUTH) == wanted
    turned = both.iloc[:, ::-1], sparse.csr_array(weights[::-1, ::-1])
    assert mrr(turned, TRUTH) == wanted
    assert mrr((x.set_axis([*"vwxyz"], axis=1), sparse.csr_array(weights)), TRUTH, item_ids=ITEMS) == wanted
    wide = pd.DataFrame(np.eye(4, 3), USERS, ["f", "g", "h"]), sparse.csr_array(weights[:3])  # from features to items
    assert mrr(wide, TRUTH, item_ids=ITEMS) == mrr(np.eye(4, 3) @ weights[:3], TRUTH, user_ids=USERS, item_ids=ITEMS)
    plain = [[1], [3], [0], [2]]
    assert mrr((sparse.csr_array(users), pd.DataFrame(weights)), plain) == mrr(users @ weights, plain)
    with pytest.raises(fastrec.InputTypeError, match="found a tuple of 3"):
        mrr((x, b, b), TRUTH)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("strings", [["c", "a", "e", "b"], ["c", "a\0", "é", ""]])
def test_series_of_lists_of_strings(library: str, strings: list[str]) -> None:
    series = pytest.importorskip(library).Series
    items = [*strings, "d"]
    lists = [[own] for own in strings]
    sides: dict[str, Any] = {"exclude": lists[1:] + lists[:1], "candidates": [strings] * 4}
    wanted = mrr(SCORES, lists, item_ids=items, **sides)
    assert mrr(SCORES, series(lists), item_ids=items, **sides) == wanted
    assert mrr(SCORES, lists, item_ids=items, **{name: series(side) for name, side in sides.items()}) == wanted


def test_series_with_other_indexes_are_errors() -> None:
    """They were matched by position, the truth of one user with the items to exclude of another."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SCORES[:2], index=["a", "b"])
    truth, ordered = [[1], [2]], ["a", "b"]
    for name, own in {"exclude": [[0], [3]], "history": [[0], [3]], "candidates": [[1, 0], [2, 3]]}.items():
        more = {"exclude": "history"} if name == "history" else {}
        same, other = pd.Series(own, index=ordered), pd.Series(own, index=["b", "a"])
        for model, side, first in ((SCORES[:2], pd.Series(truth, index=ordered), "truth"), (frame, truth, "model")):
            with pytest.raises(fastrec.InputError, match=f"^{first} and {name} are Series with different indexes"):
                mrr(model, side, **{name: other}, **more)
            assert mrr(model, side, **{name: same}, **more) == mrr(SCORES[:2], truth, **{name: own}, **more)


def test_series_have_the_index_of_the_chosen_rows_of_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame, lists = pd.DataFrame(SCORES[:2], index=["a", "b"]), [[0], [3]]
    exclude = pd.Series(lists, index=["b", "a"])

    def top(model: Any, **call: Any) -> list[int]:
        return fastrec.top_items(model, 2, **call)[0].tolist()

    with pytest.raises(fastrec.InputError, match=r"^model and exclude are Series with different indexes"):
        top(frame, exclude=exclude)
    assert top(frame, exclude=exclude, users=[1, 0]) == top(SCORES[:2], exclude=lists, users=[1, 0])
    assert top(frame, exclude=exclude, user_ids=["x", "y"]) == top(SCORES[:2], exclude=lists)  # other names of users
    assert top(frame, candidates=pd.Series([1, 2], index=["b", "a"])) == top(SCORES[:2], candidates=[1, 2])  # of all


def test_ids_that_contradict_the_order_of_labels_are_errors() -> None:
    pd = pytest.importorskip("pandas")
    frame, factors = pd.DataFrame(SCORES, index=USERS, columns=ITEMS), pd.DataFrame(FACTORS[0], index=USERS)
    assert mrr(frame, TRUTH, user_ids=np.array(USERS), item_ids=pd.Index(ITEMS)) == mrr(frame, TRUTH)
    other_users, other_items = sorted(USERS), sorted(ITEMS)
    for model, call in (
        (frame, {"user_ids": other_users}),
        (frame, {"user_ids": np.array(other_users)}),
        (frame, {"item_ids": other_items}),
        (frame, {"item_ids": pd.Series(other_items)}),
        ((factors, FACTORS[1]), {"item_ids": ITEMS, "user_ids": other_users}),
    ):
        with pytest.raises(fastrec.InputError, match="has the labels of the data frame in another order: leave it out"):
            mrr(model, TRUTH, **call)
    swapped = [1, 0, 2, 3]  # the labels of a frame that has none are its positions
    assert mrr(pd.DataFrame(SCORES), [[1]] * 4, user_ids=swapped) == mrr(SCORES, [[1]] * 4)
    with pytest.raises(fastrec.InputTypeError, match="item_ids must be"):
        mrr(frame, TRUTH, item_ids=[["a"], ["b"], ["c"], ["d"], ["e"]])


def test_biases_with_an_index_in_another_order_are_errors() -> None:
    """They were added by position, so items had the biases of others."""
    pd = pytest.importorskip("pandas")
    bias = pd.Series(np.arange(5.0), ITEMS)
    named: dict[str, Any] = {"user_ids": USERS, "item_ids": ITEMS}
    wanted = mrr(FACTORS, TRUTH, **named, item_bias=np.arange(5.0))
    for own in (bias, bias.reset_index(drop=True)):
        assert mrr(FACTORS, TRUTH, **named, item_bias=own) == wanted
    columns = pd.DataFrame({"item": [2, 0, 1, 4, 3], "bias": np.arange(5.0)}, [4, 3, 2, 1, 0])
    truth = {user: [0] for user in USERS}
    of_columns = {"user_ids": USERS, "item_ids": columns["item"]}
    found = mrr(FACTORS, truth, **of_columns, item_bias=columns["bias"])
    assert found == mrr(FACTORS, truth, user_ids=USERS, item_ids=[2, 0, 1, 4, 3], item_bias=np.arange(5.0))
    says = "^{0}_bias has an index with the {0}s in another order, .* pass {0}_bias.{1}, or"
    for side, call, mend in (
        ("item", named | {"item_bias": bias.sort_index()}, r"loc\[item_ids\]"),
        ("user", named | {"user_bias": pd.Series(np.arange(4.0), sorted(USERS))}, r"loc\[user_ids\]"),
        ("item", {"user_ids": USERS, "item_bias": pd.Series(np.arange(5.0), [4, 3, 2, 1, 0])}, r"sort_index\(\)"),
    ):
        with pytest.raises(fastrec.InputError, match=says.format(side, mend)):
            mrr(FACTORS, TRUTH if "item_ids" in call else truth, **call)


def test_frames_whose_columns_are_not_clear_are_errors() -> None:
    pd = pytest.importorskip("pandas")
    with_id = [
        pd.DataFrame(own).assign(**{name: range(len(own))}) for own, name in zip(FACTORS, ("user", "item"), strict=True)
    ]
    with pytest.raises(
        fastrec.InputError, match=r"must have the same columns in the same order, found .*'user'.*'item'"
    ):
        mrr(tuple(with_id), [[1]] * 4)
    factors = [pd.DataFrame(own, columns=list("abc")) for own in FACTORS]
    with pytest.raises(fastrec.InputError, match="the same columns in the same order"):
        mrr((factors[0], factors[1][["b", "a", "c"]]), [[1]] * 4)
    with pytest.raises(fastrec.InputError, match="item_bias and item_factors must have the same index"):
        mrr(tuple(factors), [[1]] * 4, item_bias=pd.Series([0.0] * 5, index=ITEMS))
    ids, bias = pd.Series(ITEMS, index=ITEMS), pd.Series([0.0] * 5, index=ITEMS)  # an index like that of the ids
    with pytest.raises(fastrec.InputError, match="item_bias and item_factors must have the same index"):
        mrr(tuple(factors), [[1]] * 4, item_ids=ids, item_bias=bias)
    levels = pd.DataFrame(SCORES, index=pd.MultiIndex.from_product([[1, 2], [3, 4]]))
    with pytest.raises(fastrec.InputError, match=r"must have one level: pass user_ids=\.\.\."):
        mrr(levels, [[1]] * 4)
    assert mrr(levels, [[1]] * 4, user_ids=range(4)) == mrr(SCORES, [[1]] * 4)


def test_frames_without_an_index_are_errors() -> None:
    pl = pytest.importorskip("polars")
    sparse = pytest.importorskip("scipy.sparse")
    beside = sparse.csr_array(np.eye(4)), pl.DataFrame(SCORES)
    for model in (pl.DataFrame(SCORES), tuple(map(pl.DataFrame, FACTORS)), beside):
        with pytest.raises(fastrec.InputTypeError, match=r"a polars data frame: pass arrays \(to_numpy\(\)\)"):
            mrr(model, [[1]] * 4)


def test_products_that_overflow_are_an_error() -> None:
    """With fused multiplication, inf + finite x finite is never NaN: such an item had rank 1."""
    sparse = pytest.importorskip("scipy.sparse")
    users, items = np.full((8, 2), 1e20, np.float32), np.full((32, 2), 1e10, np.float32)
    items[0] = [2e19, -9e19]
    for model in ((users, items), (sparse.csr_array(users), items.T)):
        with pytest.raises(
            fastrec.InputError, match=r"^products of user 'u0' and items overflow float32: pass float64"
        ):
            mrr(model, {"u0": [0]}, user_ids=[f"u{user}" for user in range(8)])
    assert mrr((users.astype(float), items), [[0]] * 8) == 1 / 32
    assert mrr((users, items * np.float32(1e-5)), [[0]] * 8) == 1 / 32  # large, but they do not overflow
    with pytest.raises(fastrec.InputError, match="overflow float64: scale the factors"):
        mrr((users.astype(float) * 1e200, items.astype(float) * 1e200), [[0]] * 8)
    with pytest.raises(fastrec.InputError, match="products of user 0 and items overflow float32"):
        mrr(
            (users, items * np.float32(1e-5)),
            [[0]] * 8,
            user_bias=np.full(8, 3.3e38, np.float32),
            item_bias=np.full(32, 3.3e38, np.float32),
        )


def test_square_weights_of_items_are_no_factors() -> None:
    weights = np.random.default_rng(3).random((5, 5))
    with pytest.raises(fastrec.InputError, match=r"item_factors are square, \(5, 5\): if they are weights B of items"):
        mrr((SCORES, weights), [[1]] * 4)
    symmetric = weights + weights.T
    assert mrr((SCORES, symmetric), [[1]] * 4) == mrr(SCORES @ symmetric, [[1]] * 4)


def broken(kind: str) -> Any:
    sparse = pytest.importorskip("scipy.sparse")
    good = sparse.csr_array(SCORES)
    if kind == "coo":
        wrong = good.tocoo()
        wrong.col[3] = 99
        return wrong
    wrong = good.tocsc() if kind == "csc" else good
    wrong.indices[3] = 99
    return wrong


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_indices_past_the_shape_are_an_error(kind: str) -> None:
    """SciPy reads wherever they point, and may crash."""
    with pytest.raises(fastrec.InputError, match=r"^X is not a valid sparse matrix"):
        mrr((broken(kind), np.ones((5, 6))), [[1]] * 4)
    with pytest.raises(fastrec.InputError, match=r"^B is not a valid sparse matrix"):
        mrr((np.ones((3, 4)), broken(kind)), [[1]] * 3)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "objects", "iterator", "strings", "set"])
def test_candidates_for_all_users_in_any_array(form: str) -> None:
    chosen = ["a", "c", "d"]
    forms: dict[str, Any] = {
        "pandas": lambda: pytest.importorskip("pandas").Series(chosen),
        "polars": lambda: pytest.importorskip("polars").Series(chosen),
        "pyarrow": lambda: pytest.importorskip("pyarrow").array(chosen),
        "objects": lambda: np.array(chosen, object),
        "iterator": lambda: iter(chosen),
        "strings": lambda: np.array(chosen),
        "set": lambda: set(chosen),
    }
    for own in (forms[form](), forms[form]()):
        items = fastrec.top_items(SCORES, 9, item_ids=ITEMS, candidates=own)[0]
        assert sorted(set(items.tolist())) == chosen
    if form in ("pandas", "polars"):
        own = pytest.importorskip(form).Series([1, 3])
        assert sorted(set(fastrec.top_items(SCORES, 9, candidates=own)[0].tolist())) == [1, 3]


class NoItems:
    """An answer of a model that is no array."""


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (
        ("u.npy", "i.npy"),
        {},
        "user_factors must be data, found a str, 'u.npy': numpy.load reads arrays, and the command",
    ),
    ("u.npy", {}, "model must be data, found a str, 'u.npy': numpy.load reads arrays, and the command"),
    (
        (np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 1.0), FACTORS[1]),
        {"user_ids": list("wxyz")},
        "user_factors must be finite, found nan at row 2, user 'y'",
    ),
    (FACTORS, {"item_bias": [1, 1, 1, np.inf, 1], "item_ids": np.array(ITEMS)}, "found inf at row 3, item 'b'"),
    ((None, FACTORS[1]), {}, "user_factors must be 2-D, one row per user, found a NoneType"),
    (({}, FACTORS[1]), {}, "user_factors must be 2-D, one row per user, found a dict"),
    (SCORES, {"candidates": 5}, "candidates must be a list or an array of ids, each at its position, found an int: 5"),
    (SCORES, {"users": np.array([0, 2**63], np.uint64)}, "users must not exceed 2**63 - 1, found 9223372036854775808"),
    (lambda rows: SCORES[rows], {"n_items": 2**40}, "n_items=1099511627776 is more than a model can score"),
    (lambda rows: "scores", {"n_items": 5}, "the answer of the model must be an array of scores, found a str"),
    (lambda rows: NoItems(), {"n_items": 5}, ".NoItems"),
]


@pytest.mark.parametrize(("model", "call", "message"), WRONG, ids=range(len(WRONG)))
def test_errors_name_what_was_found(model: Any, call: dict[str, Any], message: str) -> None:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError), match=re.escape(message)):
        mrr(model, [[1]] * 4, **call)


def test_a_function_must_not_answer_sparsely_or_stop() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(
        fastrec.InputTypeError, match=r"the answer of the model is sparse, a .*: answer with its .toarray"
    ):
        mrr(lambda rows: sparse.csr_array(SCORES[rows]), [[1]] * 4, n_items=5)

    def stop(_: Any) -> Any:
        raise StopIteration

    with pytest.raises(RuntimeError, match=r"^the model raised StopIteration$"):
        mrr(stop, [[1]] * 4, n_items=5)


@pytest.mark.parametrize("truth", ["arrays", "dicts", "frames"])
@pytest.mark.parametrize(
    ("model", "found"),
    [
        (FACTORS, "a tuple of two matrices"),
        (lambda rows: SCORES[rows], "a function"),
        (SCORES, r"a float array of shape \(4, 5\)"),
    ],
)
def test_a_model_in_place_of_lists_is_sent_to_its_function(model: Any, found: str, truth: str) -> None:
    sides: dict[str, Any] = {"arrays": [[1]] * 4, "dicts": {0: [1]}}
    side = pytest.importorskip("pyarrow").table({"user_id": [0], "item_id": [1]}) if truth == "frames" else sides[truth]
    message = f"^recs is {found}, but must hold lists of items: fastrec.evaluate_model takes a model"
    for ask in (fastrec.evaluate, fastrec.Evaluator("mrr").update):
        with pytest.raises(fastrec.InputTypeError, match=message):
            ask(model, side)
    with pytest.raises(fastrec.InputTypeError, match=message):
        fastrec.explain("ndcg@2", model, side)


def test_n_items_is_at_least_what_the_model_scores() -> None:
    """It is the size of the catalogue, which may have items that the model lacks."""
    one = fastrec.evaluate_model(SCORES, [[1]] * 4, "item_coverage@2", n_items=10, ties="input")
    evaluator = fastrec.Evaluator("item_coverage@2", n_items=10, ties="input")
    evaluator.update_model(SCORES, [[1]] * 4)
    assert one["item_coverage@2"] == evaluator.result()["item_coverage@2"]
    assert one["item_coverage@2"] == mean_coverage(10)


def mean_coverage(n_items: int) -> float:
    return len(set(np.argsort(-SCORES)[:, :2].ravel().tolist())) / n_items


@pytest.mark.parametrize("sides", [{"exclude": [[0]]}, {"candidates": [[0, 1]]}])
def test_an_empty_batch_of_a_model_has_empty_sides(sides: dict[str, Any]) -> None:
    evaluator = fastrec.Evaluator("recall@1")
    evaluator.update_model(SCORES, [], users=[], **{name: [] for name in sides})
    evaluator.update_model(SCORES, [[1]], users=[0], **sides)
    assert evaluator.result().users["total"] == 1
