"""Models over their whole catalogue: reports equal those of lists of all items, for every metric, with many ties."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import fastrec
from fastrec.arguments import options_in, pick
from fastrec.evaluation.lists import ListEvaluation
from fastrec.inputs.models import read_call
from fastrec.metrics.calls import parse
from support.bits import group_bits, mean_bits, number_bits, user_bits
from support.item_cases import metric_texts
from support.list_calls import for_kind

N_ITEMS = 40
RULES = ("expected", "input", "best", "worst", "id_asc", "id_desc")


class Case(NamedTuple):
    scores: Any
    truth: Any
    exclude: Any


def draw_case(seed: int, kind: str = "graded", n_users: int = 30) -> Case:
    """Draw scores with many ties and -inf, users with any truth, and users with everything excluded."""
    draw = np.random.default_rng(seed)
    levels = draw.choice([1, 3, 12, 1000])
    scores = draw.integers(0, levels + 1, (n_users, N_ITEMS)).astype(draw.choice(["float32", "float64"]))
    scores[draw.random(scores.shape) < draw.choice([0, 0.2])] = -np.inf
    gains = {"plain": [1.0], "integer": [0.0, 1.0, 2.0, 4.0, -1.0], "graded": [0.5, 1.0, 2.25, 3.0, 0.0, -2.0]}[kind]

    def rows(sizes: list[int], top: int = N_ITEMS) -> list[Any]:
        return [draw.permutation(top)[: draw.choice(sizes)].tolist() for _ in range(n_users)]

    truth = [{item: float(draw.choice(gains)) for item in own} for own in rows([0, 1, 3, 10, 30], N_ITEMS + 5)]
    return Case(scores, truth, rows([0, 0, 4, 20, N_ITEMS]))


def whole_lists(scores: Any) -> Any:
    n_users, n_items = scores.shape
    return np.tile(np.arange(n_items), n_users), np.arange(n_users + 1) * n_items, scores.ravel()


NOTED = ("rec_rows_unseen", "rec_rows_without_features")  # among the rows that metrics of items read
OF_MODELS = ("truth_rows_not_scored", "exclude_rows_not_scored")


def check_equal(found: fastrec.Report, wanted: fastrec.Report) -> None:
    names = list(wanted)
    assert list(found) == names
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert user_bits(found) == user_bits(wanted)
    assert group_bits(found) == group_bits(wanted)
    assert found.users == wanted.users
    assert found.data.keys() - OF_MODELS == wanted.data.keys()
    for name in wanted.data.keys() - NOTED:
        assert number_bits(found.data[name]) == number_bits(wanted.data[name]), name
    assert found.settings == wanted.settings


def answer(ask: Any) -> tuple[fastrec.Report | None, str]:
    try:
        return ask(), ""
    except fastrec.FastrecError as error:
        return None, str(error)


OF_BATCH = ("exclude", "reference", "groups", "user_weight")


def compare(case: Case, metrics: Any, **call: Any) -> bool:
    """Compare a model with its lists; return whether both have a report, not the same error."""
    call = {"per_user": True, "exclude": case.exclude, "n_items": N_ITEMS + 5, **call}

    def of_model() -> fastrec.Report:
        own = {name: value for name, value in call.items() if name not in OF_BATCH}
        evaluator = fastrec.Evaluator(metrics, **own)
        batch = {name: call[name] for name in OF_BATCH if name in call}
        evaluator.update_model(case.scores, case.truth, item_ids=range(case.scores.shape[1]), **batch)
        return evaluator.result()

    wanted, message = answer(lambda: fastrec.evaluate(whole_lists(case.scores), case.truth, metrics, **call))
    found, own_message = answer(of_model)
    assert own_message == message
    if found is None or wanted is None:
        return False
    check_equal(found, wanted)
    return True


def linear(texts: list[str]) -> list[str]:
    """Return the metrics with a closed form for tied scores."""
    plan = ListEvaluation(texts, n_items=N_ITEMS + 5).plan(weighted=False)
    return [text for text in texts if parse(text).text not in plan.not_linear]


@pytest.mark.thorough(except_for="-0$")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["plain", "integer", "graded"])
def test_every_metric_of_accuracy_equals_that_of_whole_lists(kind: str, seed: int) -> None:
    case = draw_case(seed, kind)
    texts = [ask.text for ask in for_kind(kind)]
    for ties in RULES:
        known = linear(texts) if ties == "expected" else texts
        assert compare(case, known, ties=ties)
        assert compare(case, [text for text in known if text.endswith(("@3", "@10"))], ties=ties)


def shop_of(seed: int, n_users: int) -> dict[str, Any]:
    """Draw a table of items, histories and other lists."""
    draw = np.random.default_rng(seed + 100)
    items = {
        item: {
            "segment": str(draw.choice(["head", "tail"])),
            "category": [str(label) for label in draw.choice(list("ABCD"), draw.choice([1, 2]), replace=False)],
            "features": draw.integers(-2, 3, 3).astype(float).tolist(),
        }
        for item in range(N_ITEMS + 5)
    }
    history = {user: draw.integers(0, N_ITEMS, draw.choice([0, 3, 15])).tolist() for user in range(n_users)}
    reference = {user: draw.permutation(N_ITEMS)[: draw.choice([0, 2, 12])].tolist() for user in range(n_users)}
    return {"items": items, "history": history, "reference": reference}


def as_dicts(case: Case) -> dict[str, Any]:
    users = range(len(case.scores))
    truth, exclude = (dict(zip(users, side, strict=True)) for side in (case.truth, case.exclude))
    lists = {user: dict(enumerate(case.scores[user].tolist())) for user in users}
    return {"recs": lists, "truth": truth, "exclude": exclude}


@pytest.mark.parametrize("ties", ["expected", "input", "id_desc", "best"])
@pytest.mark.parametrize("k", [3, None])
def test_every_metric_of_items_equals_that_of_whole_lists(k: int | None, ties: str) -> None:
    case = draw_case(3, "graded", 12)
    if ties == "expected":
        case = case._replace(
            scores=np.random.default_rng(1).permuted(case.scores.argsort(axis=1), axis=1).astype(float)
        )
    sides, shop = as_dicts(case), shop_of(3, 12)
    texts = [text for text in metric_texts(k) if "error" not in text]
    texts += ["ndcg@10", "mrr", "recall@50"]
    call = {"per_user": True, "n_items": N_ITEMS + 5, "n_users": 40, "ties": ties, **shop}
    batches = [texts[first : first + 60] for first in range(0, len(texts), 60)]
    n_values = 0
    for batch in batches:
        wanted, message = answer(lambda batch=batch: fastrec.evaluate(**sides, metrics=batch, **call))
        found, own = answer(lambda batch=batch: of_items(case, sides, batch, call))
        assert own == message
        if found is not None and wanted is not None:
            check_equal(found, wanted)
            n_values += len(batch)
    assert n_values > len(texts) / 2


def of_items(case: Case, sides: dict[str, Any], metrics: list[str], call: dict[str, Any]) -> fastrec.Report:
    """Evaluate a model with the reference and history of a call; n_items is larger than its catalogue."""
    evaluation = ListEvaluation(metrics, **pick(ListEvaluation.__init__, call))
    given = {
        **dict.fromkeys(options_in(fastrec.Evaluator.update_model)),
        **pick(fastrec.Evaluator.update_model, call),
        "exclude": sides["exclude"],
        "memory": None,
        "item_ids": range(N_ITEMS),
    }
    evaluation.evaluate_model(read_call(case.scores, {**given, "n_items": None}), sides["truth"], given)
    return evaluation.report()


def test_groups_weights_and_large_catalogues_equal_those_of_whole_lists() -> None:
    """With compiled kernels, selections in several steps, and relevant items beyond the largest cut-off."""
    draw = np.random.default_rng(0)
    n_users, n_items = 150, 3000
    for levels in (40, 10**6):
        scores = draw.integers(0, levels, (n_users, n_items)).astype(np.float32)
        truth = [draw.permutation(n_items)[: draw.choice([0, 2, 3, 4, 50])].tolist() for _ in range(n_users)]
        exclude = [draw.permutation(n_items)[: draw.choice([0, 100, n_items - 20])].tolist() for _ in range(n_users)]
        call: dict[str, Any] = {
            "exclude": exclude,
            "groups": [str(user % 3) for user in range(n_users)],
            "per_user": True,
        }
        call["user_weight"] = draw.random(n_users)
        for metrics in (["ndcg@10", "recall@100", "map@20"], ["mrr", "ndcg@5", "limited_auc"]):
            wanted = fastrec.evaluate(whole_lists(scores), truth, metrics, n_items=n_items, **call)
            check_equal(fastrec.evaluate_model(scores, truth, metrics, **call), wanted)


def first_items(scores: Any, k: int, exclude: Any) -> Any:
    """Return the first items of one user by a stable sort."""
    order = np.argsort(-scores, kind="stable")
    return order[~np.isin(order, exclude)][:k].tolist()


@pytest.mark.parametrize("n_items", [1, 5, 63, 64, 65, 500, 2500])
@pytest.mark.parametrize("levels", [1, 7, 10**6])
def test_top_items_are_those_of_a_stable_sort(n_items: int, levels: int) -> None:
    draw = np.random.default_rng(n_items + levels)
    scores = draw.integers(0, levels, (20, n_items)).astype(draw.choice([np.float32, np.float64]))
    scores[draw.random(scores.shape) < 0.1] = -np.inf
    scores[0], scores[1] = -np.inf, np.arange(n_items)
    exclude = [draw.permutation(n_items)[: draw.choice([0, 3, n_items])].tolist() for _ in range(20)]
    before = scores.copy()
    for k in (1, 3, 100, n_items, n_items + 10):
        items, indptr, found = fastrec.top_items(scores, k, exclude=exclude)
        for user in range(20):
            own = items[indptr[user] : indptr[user + 1]].tolist()
            assert own == first_items(scores[user], k, exclude[user])
            assert found[indptr[user] : indptr[user + 1]].tolist() == scores[user][own].tolist()
        assert found.dtype == scores.dtype
    assert np.array_equal(scores, before), "the scores of the caller changed"


def small_case() -> tuple[Any, list[list[int]]]:
    return np.random.default_rng(0).integers(0, 4, (6, 9)).astype(float), [[1, 2], [3], [], [8, 0], [5], [4]]


METRICS = ["ndcg@3", "mrr", "recall@5"]
USERS, ITEMS = list("abcdef"), [f"i{item}" for item in range(9)]


def values(report: fastrec.Report) -> list[float]:
    return [report[name] for name in METRICS]


@pytest.mark.parametrize("form", ["dicts", "pandas", "polars"])
def test_users_and_items_are_matched_by_id(form: str) -> None:
    scores, truth = small_case()
    wanted = values(fastrec.evaluate_model(scores, truth, METRICS))
    own: Any = {user: [f"i{item}" for item in items] for user, items in zip(USERS, truth, strict=True)}
    if form != "dicts":
        library = pytest.importorskip(form)
        rows = [(user, item) for user, items in own.items() for item in items]
        own = library.DataFrame({"user_id": [row[0] for row in rows], "item_id": [row[1] for row in rows]})
    names = {"user_ids": USERS, "item_ids": ITEMS}
    assert values(fastrec.evaluate_model(scores, own, METRICS, **names)) == wanted
    order = np.array([4, 0, 5, 2, 1, 3])
    moved = {"user_ids": [USERS[row] for row in order], "item_ids": ITEMS}
    report = fastrec.evaluate_model(scores[order], own, METRICS, per_user=True, **moved)
    assert values(report) == wanted
    assert sorted(report.user_ids.tolist()) == USERS
    part = fastrec.evaluate_model(scores, own, METRICS, users=[3, 0], per_user=True, **names)
    assert values(part) == values(fastrec.evaluate_model(scores[[3, 0]], [truth[3], truth[0]], METRICS))
    assert sorted(part.user_ids.tolist()) == ["a", "d"]


def test_users_that_the_model_lacks_have_no_list() -> None:
    scores, truth = small_case()
    own = dict(enumerate(truth)) | {99: [1]}
    report = fastrec.evaluate_model(scores, own, METRICS, user_ids=range(6))
    assert report.users["no_recs"] == 1
    assert report["mrr"] == pytest.approx(5 / 6 * fastrec.evaluate_model(scores, truth, METRICS)["mrr"])


def test_rows_of_positions() -> None:
    scores, truth = small_case()
    found = fastrec.evaluate_model(scores, [truth[3], truth[0]], METRICS, users=[3, 0])
    assert values(found) == values(fastrec.evaluate_model(scores[[3, 0]], [truth[3], truth[0]], METRICS))
    items, indptr, _ = fastrec.top_items(scores, 3, users=[5, 1], exclude={5: [1]})
    assert items.tolist() == [*first_items(scores[5], 3, [1]), *first_items(scores[1], 3, [])]
    assert indptr.tolist() == [0, 3, 6]


@pytest.mark.parametrize("once", [True, False])
def test_candidates_are_all_that_is_listed(once: bool) -> None:
    scores, truth = small_case()
    chosen = [1, 2, 3, 8]
    wanted = fastrec.evaluate([{item: row[item] for item in chosen} for row in scores.tolist()], truth, METRICS)
    candidates: Any = chosen if once else [chosen] * 6
    found = fastrec.evaluate_model(scores, truth, METRICS, candidates=candidates)
    assert values(found) == values(wanted)
    assert found.data["rec_rows"] == wanted.data["rec_rows"]
    assert set(fastrec.top_items(scores, 9, candidates=candidates)[0].tolist()) == set(chosen)


@pytest.mark.parametrize("ties", ["id_asc", "id_desc"])
def test_candidates_keep_their_items_in_the_order_of_ids(ties: str) -> None:
    """Both choose columns of the model, one after the other."""
    scores, truth = np.arange(9.0) % 2 + np.zeros((6, 1)), small_case()[1]
    chosen, ids = [8, 2, 5, 3], [30, 10, 20, 0, 80, 50, 40, 70, 60]
    truth = [[ids[item] for item in items if item < 9] for items in truth]
    lists = [{ids[item]: row[item] for item in sorted(chosen)} for row in scores.tolist()]
    wanted = fastrec.evaluate(lists, truth, METRICS, ties=ties)
    call: dict[str, Any] = {"candidates": [ids[item] for item in chosen], "item_ids": ids, "ties": ties}
    for model in (scores, (scores, np.eye(9)), lambda rows: scores[rows]):
        size = {"n_items": 9} if callable(model) else {}
        assert values(fastrec.evaluate_model(model, truth, METRICS, **call, **size)) == values(wanted)


def test_all_forms_of_one_model_agree(tmp_path: Any) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    draw = np.random.default_rng(5)
    users, items = draw.integers(-2, 3, (6, 4)).astype(np.float32), draw.integers(-2, 3, (9, 4)).astype(np.float32)
    user_bias, item_bias = draw.integers(0, 2, 6), draw.integers(0, 2, 9)
    truth = small_case()[1]
    scores = users @ items.T
    wanted = values(fastrec.evaluate_model(scores, truth, METRICS))
    np.save(tmp_path / "scores.npy", scores)
    asked = []

    def answer_users(rows: Any) -> Any:
        asked.append(rows.tolist())
        return scores[rows]

    models = {
        "factors": (users, items),
        "doubles": (users.astype(float), items),
        "integers": (users.astype(np.int8), items.astype(np.int64)),
        "matrix of integers": scores.astype(np.int64),
        "csr, dense": (sparse.csr_matrix(users), items.T),
        "csr, csr": (sparse.csr_array(users), sparse.csr_array(items.T)),
        "dense, csc": (users, sparse.csc_matrix(items.T)),
        "columns": np.asfortranarray(scores),
        "memory map": np.load(tmp_path / "scores.npy", mmap_mode="r"),
    }
    for name, model in models.items():
        assert values(fastrec.evaluate_model(model, truth, METRICS)) == wanted, name
    assert values(fastrec.evaluate_model(answer_users, truth, METRICS, n_items=9)) == wanted
    assert asked == [[0, 1, 2, 3, 4, 5]]
    biased = fastrec.evaluate_model((users, items), truth, METRICS, user_bias=user_bias, item_bias=item_bias)
    assert values(biased) == values(fastrec.evaluate_model(scores + item_bias + user_bias[:, None], truth, METRICS))


def test_a_function_is_asked_for_blocks_in_order_and_may_reuse_its_memory() -> None:
    draw = np.random.default_rng(2)
    scores = draw.random((300, 20))
    truth = draw.integers(0, 20, (300, 1))
    memory, asked = np.empty((300, 20)), []

    def answer_users(rows: Any) -> Any:
        asked.extend(rows.tolist())
        memory[: len(rows)] = scores[rows]
        return memory[: len(rows)]

    found = fastrec.evaluate_model(answer_users, truth, "mrr", n_items=20)
    assert found["mrr"] == fastrec.evaluate_model(scores, truth, "mrr")["mrr"]
    assert asked == list(range(300))


def test_the_number_of_threads_does_not_change_the_bits() -> None:
    pytest.importorskip("threadpoolctl")
    draw = np.random.default_rng(8)
    users, items = draw.normal(size=(700, 33)).astype(np.float32), draw.normal(size=(900, 33)).astype(np.float32)
    truth = [draw.permutation(900)[:6].tolist() for _ in range(700)]
    reports = [
        fastrec.evaluate_model((users, items), truth, ["ndcg@10", "mrr"], n_threads=n, per_user=True) for n in (1, 2, 3)
    ]
    lists = [fastrec.top_items((users, items), 50, n_threads=n) for n in (1, 2, 3)]
    for report, found in zip(reports, lists, strict=True):
        assert user_bits(report) == user_bits(reports[0])
        assert all(np.array_equal(one, other) for one, other in zip(found, lists[0], strict=True))


def blas_threads() -> list[int]:
    import threadpoolctl

    return [found["num_threads"] for found in threadpoolctl.threadpool_info() if found["user_api"] == "blas"]


@pytest.mark.parametrize("installed", [True, False])
def test_without_threadpoolctl_blas_keeps_its_threads(monkeypatch: pytest.MonkeyPatch, *, installed: bool) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    draw = np.random.default_rng(8)
    factors = draw.integers(-3, 4, (300, 8)).astype(float), draw.integers(-3, 4, (50, 8)).astype(float)
    truth = draw.integers(0, 50, (300, 1))
    seen: list[list[int]] = []
    if not installed:
        monkeypatch.setattr("fastrec.runtime.blas.importlib.util.find_spec", lambda _: None)
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        found = fastrec.evaluate_model(factors, truth, METRICS, progress=lambda *_: seen.append(blas_threads()))
    assert set(seen[0]) == ({1} if installed else {2})
    assert values(found) == values(fastrec.evaluate_model(factors[0] @ factors[1].T, truth, METRICS))


def test_batches_and_merged_evaluators_equal_one_call() -> None:
    case = draw_case(1, n_users=40)
    ids = range(N_ITEMS)
    whole = fastrec.evaluate_model(case.scores, case.truth, METRICS, exclude=case.exclude, item_ids=ids)
    parts = []
    for first in (0, 15):
        own = slice(first, 15 if first == 0 else 40)
        parts.append(fastrec.Evaluator(METRICS, n_items=N_ITEMS))
        parts[-1].update_model(case.scores[own], case.truth[own], exclude=case.exclude[own], item_ids=ids)
    found = parts[0].merge(fastrec.Evaluator.from_bytes(parts[1].to_bytes())).result()
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(whole.estimates))
    assert found.data == whole.data


def with_nan(values: Any, *at: int) -> Any:
    out = np.array(values, float)
    out[at] = np.nan
    return out


SCORES, TRUTH = small_case()
FACTORS = np.ones((6, 3)), np.ones((9, 3))
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    ((FACTORS[0], FACTORS[1][:, :2]), {}, "the same number of columns, found 3 and 2"),
    ((with_nan(FACTORS[0], 3, 1), FACTORS[1]), {}, "user_factors must be finite, found nan at row 3"),
    ((FACTORS[0], FACTORS[1] * np.inf), {}, "item_factors must be finite, found inf at row 0"),
    ((FACTORS[0], FACTORS[1][0]), {}, r"item_factors must be 2-D, one row per item, found shape \(3,\)"),
    (FACTORS, {"user_bias": [1.0]}, r"user_bias must have one number per user, 6; found shape \(1,\)"),
    (FACTORS, {"item_bias": with_nan(np.ones(9), 2)}, "item_bias must be finite, found nan at row 2"),
    (SCORES, {"item_bias": np.ones(9)}, "user_bias and item_bias go with factors"),
    (with_nan(SCORES, 2, 2), {}, "must not score NaN, found NaN for user 2: -inf ranks an item last"),
    (with_nan(SCORES, 2, 2), {"user_ids": USERS}, "found NaN for user 'c'"),
    (SCORES.astype(np.int64) << 60, {}, r"model holds an integer past 2\*\*53, which would be rounded"),
    (
        ((FACTORS[0] * 2**60).astype(np.int64) + 1, FACTORS[1]),
        {},
        r"user_factors holds an integer past 2\*\*53, which would be rounded: \d+ at position 0",
    ),
    (SCORES.astype(str), {}, "model must be floats or integers of at most 64 bits, found dtype <U"),
    (SCORES[0], {}, r"found an array of shape \(9,\)"),
    (SCORES[:, :0], {}, "the model scores no items: its catalogue is empty"),
    ((SCORES,), {}, "found a tuple of 1"),
    ("scores.npy", {}, "model must be data, found a str"),
    (SCORES, {"n_items": 8}, "n_items=8 is less than the 9 items that the model scores"),
    (SCORES[:4], {}, "the model and truth must have the same users in the same order, found 4 and 6 users"),
    (SCORES, {"users": [1, 1]}, "users must hold each row once"),
    (SCORES, {"users": [1, 6]}, "users must be rows from 0 and below 6, the number of users of the model, found 6"),
    (SCORES, {"users": [0.5]}, "users must be a 1-D array of row numbers"),
    (SCORES, {"user_ids": USERS[:3]}, "user_ids must have one label per user, 6"),
    (SCORES, {"item_ids": ITEMS[:3]}, "item_ids must have one id per item of the model, 9; found 3"),
    (SCORES, {"item_ids": [1] * 9}, "item_ids must hold each item once, found 1 twice"),
    (SCORES, {"item_ids": range(-1, 8)}, "item_ids must not be negative, found -1 at position 0"),
    (
        SCORES,
        {"item_ids": ITEMS},
        "item ids must be of one type on all sides, found item_ids: strings, truth: integers",
    ),
    (SCORES, {"candidates": [1, 9]}, "candidates must be items of the model, found 9"),
    (SCORES, {"candidates": []}, "candidates must hold an item, found none"),
    (SCORES, {"exclude": {1: [2]}}, "truth and exclude must all be dicts, or none of them: truth is a list"),
    (lambda rows: SCORES[rows], {}, "a function as the model needs n_items=..., the items that it scores"),
    (
        lambda rows: SCORES[rows][1:],
        {"n_items": 9},
        r"expected shape \(6, 9\) for the users from row 0 to row 5, found \(5, 9\)",
    ),
    (lambda rows: None, {"n_items": 9}, "the answer of the model must be an array of scores, found a NoneType"),
    (lambda rows: SCORES[rows], {"n_items": 10}, r"expected shape \(6, 10\) for .* found \(6, 9\)"),
    (lambda rows: SCORES[rows].astype(str), {"n_items": 9}, "the answer of the model must be floats or integers"),
    (
        lambda rows: SCORES[rows].astype(np.int64) << 60 | 2**55 + 1,
        {"n_items": 9},
        "the answer of the model holds an integer past",
    ),
    (lambda rows: SCORES[rows], {"n_items": 0}, r"n_items must be from 1 to 2\*\*53, found 0"),
    ((FACTORS[0], FACTORS[1][:0]), {}, "the model scores no items: its catalogue is empty"),
    (np.ma.masked_array(SCORES, SCORES > 1), {}, "model must not be a masked array: fill it first"),
    (lambda rows: with_nan(SCORES, 4, 4), {"n_items": 9}, "found NaN for user 4"),
    (SCORES, {"ties": "error"}, "user 0 has a relevant item with the same score as another item, and ties='error'"),
]


@pytest.mark.parametrize(("model", "call", "message"), WRONG, ids=range(len(WRONG)))
def test_errors_say_what_is_wrong(model: Any, call: dict[str, Any], message: str) -> None:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError), match=message):
        fastrec.evaluate_model(model, TRUTH, "mrr", **call)


def test_an_error_of_a_function_says_which_users_it_was_asked_for() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        fastrec.evaluate_model(lambda rows: 1 / 0, TRUTH, "mrr", n_items=9)
    assert raised.value.__notes__ == ["in the model, called for the 6 users from row 0 to row 5"]
    with pytest.raises(fastrec.InputError, match=r"a function as the model needs users=... or user_ids=..."):
        fastrec.evaluate_model(lambda rows: SCORES[rows], {0: [1]}, "mrr", n_items=9)
    with pytest.raises(fastrec.InputError, match="truth of user 1: item ids must not be negative, found -2"):
        fastrec.evaluate_model(SCORES, [[1], [-2], [], [], [], []], "mrr")
    for k in (0, 1.5, True):
        with pytest.raises(fastrec.InputError, match="k must be an integer of at least 1"):
            fastrec.top_items(SCORES, k)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_scores_past_the_integers_of_short_floats_keep_their_order(dtype: Any) -> None:
    """Integers and doubles are compared as doubles; 2^24 + 1 is no float32."""
    scores = np.array([[2**24, 2**24 + 1, 2**24 - 1]]).astype(dtype)
    rank = fastrec.evaluate_model(scores, [[1]], "mrr", ties="worst")
    assert rank["mrr"] == (0.5 if dtype == np.float32 else 1.0)
    for factor in (scores.T, np.asfortranarray(scores.T)):
        assert (
            fastrec.evaluate_model((np.ones((1, 1), dtype), factor), [[1]], "mrr", ties="worst")["mrr"] == rank["mrr"]
        )


def test_a_cutoff_beyond_the_catalogue_is_the_whole_list() -> None:
    report = fastrec.evaluate_model(SCORES, TRUTH, ["recall@100", "ndcg@9", "ndcg@100"])
    assert report["recall@100"] == 1.0 and report["ndcg@9"] == report["ndcg@100"]
    assert np.diff(fastrec.top_items(SCORES, 100)[1]).tolist() == [9] * 6


def test_users_without_truth_are_counted_by_the_policies() -> None:
    empty: list[list[int]] = [[] for _ in range(6)]
    with pytest.warns(fastrec.FastrecWarning, match="truth"):
        report = fastrec.evaluate_model(SCORES, empty, "mrr", no_truth="zero")
    assert report["mrr"] == 0.0
    assert report.users == {"total": 6, "evaluated": 6, "no_truth": 6, "no_recs": 0}
    with pytest.warns(fastrec.FastrecWarning, match="exclude removed 54 rows"):
        report = fastrec.evaluate_model(SCORES, TRUTH, "mrr", exclude=[list(range(9))] * 6)
    assert report.users["no_recs"] == 5


@pytest.mark.parametrize("ties", ["expected", "input", "id_asc", "id_desc", "best", "worst"])
def test_a_tie_at_the_cutoff_is_not_mixed_with_items_beyond_it(ties: str) -> None:
    scores = np.zeros((1, 400))
    scores[0, [5, 69, 133]], scores[0, 20:27] = 10, 9  # three items, with one peak, fill the cut-off; seven are tied
    truth = [{23: 2.0, 100: 1.0, 200: 1.0, 300: 1.0}]
    metrics = ["recall@3", "ndcg@3", "recall@4", "mrr@10"]
    for chosen in (metrics[:2], metrics):
        call: dict[str, Any] = {"ties": ties, "per_user": True, "n_items": 400}
        wanted = fastrec.evaluate(whole_lists(scores), truth, chosen, **call)
        check_equal(fastrec.evaluate_model(scores, truth, chosen, **call), wanted)


@pytest.mark.parametrize("truth", [[[126, 127]], [[125, 126, 127]]])
@pytest.mark.parametrize("metric", ["recall@2", "recall@20", "mrr"])
def test_a_tie_of_a_relevant_item_is_an_error_at_any_rank(truth: Any, metric: str) -> None:
    scores = np.arange(400, 0, -1.0)[None]
    scores[0, 120:130] = 5.5
    with pytest.raises(fastrec.InputError, match="user 0 has a relevant item with the same score"):
        fastrec.evaluate_model(scores, truth, metric, ties="error")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_items_where_the_bound_of_peaks_is_zero(dtype: Any) -> None:
    scores = np.zeros((4, 1000), dtype)
    scores[:, 5:10] = 1
    items = fastrec.top_items(scores, 10)[0].reshape(4, 10)
    assert (items == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]).all()
