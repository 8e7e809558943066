"""Models in random forms against lists of all their items: the same bits, or the same error.

`scripts/fuzz --target models` runs it for long, `test_fuzz` for a few seconds.
"""

import functools
import warnings
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import fastrec
from fastrec.arguments.calls import ModelBatch
from fastrec.arguments.signature import arguments_of
from fastrec.evaluation import model_room
from fastrec.evaluation.lists import evaluate_model_at_once
from fastrec.inputs.models import read_call
from fastrec.metrics.calls import parse
from fuzz.calls import Finding
from support.bits import group_bits, mean_bits, user_bits
from support.list_calls import for_kind

__all__ = ["Finding", "describe", "run_case"]

TIES = ("expected", "expected", "input", "best", "worst", "id_asc", "id_desc")
GAINS = {"plain": [1.0], "integer": [0.0, 1.0, 2.0, 4.0, -1.0], "graded": [0.5, 1.0, 2.25, 3.0, 0.0, -2.0]}
METRICS = 6


class Case(NamedTuple):
    """A model, and everything that a call says about it."""

    form: str
    model: Any
    scores: Any  # float64 (n_users, n_items): of this model
    named: bool  # whether users and items have names
    rows: list[int] | None  # the users of the call
    truth: list[dict[int, float]]
    exclude: list[list[int]] | None
    candidates: list[list[int]] | None
    once: bool  # whether candidates are the same for all users
    metrics: list[str]
    call: dict[str, Any]


@functools.cache
def texts(kind: str, *, linear: bool) -> list[str]:
    """Return metrics, or those with a closed form for tied scores."""
    found = [ask.text for ask in for_kind(kind)]
    if not linear:
        return found
    plan = fastrec.Evaluator(found, n_items=10)._plan(weighted=False)
    return [text for text in found if parse(text).text not in plan.not_linear]


def draw_case(seed: int) -> Case:
    """Return a case; all scores are exact, so that products have the same bits everywhere."""
    r = np.random.default_rng(seed)
    n_users, n_items = int(r.choice([1, 2, 9, 40, 140])), int(r.choice([1, 2, 10, 63, 64, 65, 300]))
    form = str(r.choice(["matrix", "factors", "sparse", "function"]))
    dtype = r.choice([np.float32, np.float64])
    scores, model = draw_model(r, form, n_users, n_items, dtype)
    kind = str(r.choice(list(GAINS)))
    ties = str(r.choice(TIES))

    def rows(sizes: list[int], top: int) -> list[list[int]]:
        return [r.permutation(top)[: int(r.choice(sizes))].tolist() for _ in range(n_users)]

    truth = [{item: float(r.choice(GAINS[kind])) for item in own} for own in rows([0, 1, 3, 4, 12, 80], n_items + 4)]
    candidates = rows([1, 5, n_items], n_items) if r.random() < 0.3 else None
    once = candidates is not None and r.random() < 0.5
    if once and candidates is not None:
        candidates = [candidates[0]] * n_users
    chosen = r.permutation(n_users)[: int(r.integers(1, n_users + 1))].tolist() if r.random() < 0.3 else None
    known = texts(kind, linear=ties == "expected")
    cut = str(r.choice(["", "@1", "@3", "@10"])) if r.random() < 0.7 else None
    known = known if cut is None else [text for text in known if text.endswith(cut or (")",))]
    call: dict[str, Any] = {"ties": ties, "per_user": True, "n_threads": int(r.choice([1, 2]))}
    call |= {
        "no_truth": str(r.choice(["skip", "zero", "judged", "listed"])),
        "no_recs": str(r.choice(["skip", "zero"])),
    }
    return Case(
        form,
        model,
        scores,
        bool(r.random() < 0.4),
        chosen,
        truth,
        rows([0, 1, 10, n_items], n_items + 2) if r.random() < 0.7 else None,
        candidates,
        once,
        [str(text) for text in r.choice(known, METRICS)],
        call,
    )


def draw_model(r: Any, form: str, n_users: int, n_items: int, dtype: Any) -> tuple[Any, Any]:
    """Return the scores of a model, and the model."""
    if form in ("factors", "sparse"):
        width = int(r.choice([1, 3, 20]))
        users, items = (r.integers(-3, 4, (n, width)).astype(dtype) for n in (n_users, n_items))
        scores = users.astype(float) @ items.astype(float).T
        if form == "factors":
            return scores, (users, items)
        import scipy.sparse

        return scores, (scipy.sparse.csr_array(users), items.T)
    scores = r.integers(0, int(r.choice([1, 3, 50, 10**6])), (n_users, n_items)).astype(dtype)
    scores[r.random(scores.shape) < r.choice([0, 0.3, 1])] = r.choice([-np.inf, np.inf, -0.0])
    return scores.astype(float), scores if form == "matrix" else lambda rows: scores[rows]


def describe(seed: int) -> str:
    case = draw_case(seed)
    return "\n".join(f"{name}: {value}" for name, value in case._asdict().items())


def run_case(seed: int) -> int:
    """Compare a report and first items of one model with those of its lists; return how many values."""
    case = draw_case(seed)
    with warnings.catch_warnings(), in_parts(seed):
        warnings.simplefilter("ignore", fastrec.FastrecWarning)
        found, wanted = outcome(lambda: of_model(case)), outcome(lambda: of_lists(case))
        if found != wanted:
            raise Finding("wrong value", f"{case.metrics}: {found} is not {wanted}")
        check_top(case, seed)
    return METRICS


def in_parts(seed: int) -> Any:
    """Let calls rank few users of a model at a time for some seeds, as they do of large ones."""
    n = int(np.random.default_rng(seed + 2).choice([1, 4, 128]))
    at_once = 2 * n if n < 128 else model_room.MAX_USERS_OF_PART
    return mock.patch.multiple(
        model_room, MAX_USERS_OF_BLOCK=n, MIN_USERS_OF_BLOCK=min(n, 8), MAX_USERS_OF_PART=at_once
    )


def outcome(ask: Any) -> Any:
    """Return the bits of a report, or the message of an error."""
    try:
        report = ask()
    except fastrec.FastrecError as error:
        return str(error)
    except Exception as error:
        raise Finding("foreign error", repr(error)) from error
    order = np.argsort(report.user_ids) if report.user_ids is not None else slice(None)
    return [
        mean_bits(dict(report.estimates)),
        group_bits(report),
        user_bits(report, order),
        report.users,
        counts(report),
    ]


def counts(report: fastrec.Report) -> list[str]:
    return [f"{name}: {value}" for name, value in report.data.items()]


def users_of(case: Case) -> list[int]:
    return list(range(len(case.scores))) if case.rows is None else case.rows


def side(case: Case, rows: list[Any]) -> Any:
    """Return a side in the form of the case: by name, or by position."""
    users = users_of(case)
    if not case.named:
        return [rows[user] for user in users]

    def of_row(row: Any) -> Any:
        return (
            {f"i{item:03}": gain for item, gain in row.items()} if isinstance(row, dict) else [f"i{i:03}" for i in row]
        )

    return {f"u{user:03}": of_row(rows[user]) for user in users}


def of_model(case: Case) -> fastrec.Report:
    n_users, n_items = case.scores.shape
    more: dict[str, Any] = {} if case.exclude is None else {"exclude": side(case, case.exclude)}
    if case.candidates is not None:
        all_of_them = [f"i{item:03}" if case.named else item for item in case.candidates[0]]
        more["candidates"] = all_of_them if case.once else side(case, case.candidates)
    if case.named:
        more["user_ids"] = [f"u{user:03}" for user in range(n_users)]
        more["item_ids"] = [f"i{item:03}" for item in range(n_items)]
    evaluator = fastrec.Evaluator(case.metrics, n_items=n_items + 4, **case.call)

    given = {**dict.fromkeys((*arguments_of(ModelBatch), "memory")), **more, "users": case.rows}
    call = read_call(case.model, {**given, "n_items": n_items})
    evaluate_model_at_once(evaluator, call, side(case, case.truth), given)
    return evaluator.result()


def of_lists(case: Case) -> fastrec.Report:
    n_items = case.scores.shape[1]
    listed = [
        {item: own[item] for item in (range(n_items) if allowed is None else sorted(set(allowed)))}
        for own, allowed in zip(case.scores.tolist(), case.candidates or [None] * len(case.scores), strict=True)
    ]
    more = {} if case.exclude is None else {"exclude": side(case, case.exclude)}
    recs, truth = side(case, listed), side(case, case.truth)
    if not case.named and case.rows is not None:  # a model names the users that a call chooses
        more["user_ids"] = case.rows
    return fastrec.evaluate(recs, truth, case.metrics, n_items=n_items + 4, **more, **case.call)


def check_top(case: Case, seed: int) -> None:
    """Compare first items with a stable sort."""
    k = int(np.random.default_rng(seed + 1).choice([1, 4, 30, 500]))
    names = {"user_ids": [f"u{user:03}" for user in range(len(case.scores))]} if case.named else {}
    names |= {"item_ids": [f"i{item:03}" for item in range(case.scores.shape[1])]} if case.named else {}
    given: dict[str, Any] = {} if case.exclude is None else {"exclude": side(case, case.exclude)}
    size = {"n_items": case.scores.shape[1]}
    users = users_of(case)
    items, indptr, scores = fastrec.top_items(case.model, k, users=users, **given, **names, **size)
    for nth, user in enumerate(users):
        order = np.argsort(-case.scores[user], kind="stable")
        wanted = order[~np.isin(order, [] if case.exclude is None else case.exclude[user])][:k].tolist()
        found = items[indptr[nth] : indptr[nth + 1]].tolist()
        expected = [f"i{item:03}" if case.named else item for item in wanted]
        same = scores[indptr[nth] : indptr[nth + 1]].tolist() == case.scores[user][wanted].tolist()
        if found != expected or not same:
            raise Finding("wrong value", f"top {k} of user {user}: {found}, not {expected}")
