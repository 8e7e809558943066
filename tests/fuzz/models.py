"""Models in random forms against lists of all their items, or of a sample of them: the same bits, or the same error.

Draws are those of the oracle, and so are the estimates of the whole catalogue.

`scripts/fuzz --target models` runs it for long, `test_fuzz` for a few seconds.
"""

import functools
import math
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import fastrec
from fastrec.arguments import options_in
from fastrec.evaluation import model_room
from fastrec.evaluation.lists import ListEvaluation
from fastrec.inputs.models import read_call
from fastrec.metrics.calls import parse
from fuzz.calls import Finding
from support.bits import group_bits, mean_bits, user_bits
from support.list_calls import for_kind, of_sampled_lists
from support.sampled_oracle import draw_items, estimate_weights

__all__ = ["Finding", "describe", "run_case"]

TIES = ("expected", "expected", "input", "best", "worst", "id_asc", "id_desc")
GAINS = {"plain": [1.0], "integer": [0.0, 1.0, 2.0, 4.0, -1.0], "graded": [0.5, 1.0, 2.25, 3.0, 0.0, -2.0]}
METRICS = 6
MAX_ORDERS = 6  # items with one score, whose orders the oracle of estimates takes one by one
MAX_OTHERS = 70  # from which a table of the oracle takes long
ESTIMATED = ("recall@3", "ndcg@10", "arhr", "precision@5", "dcg@2")


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
    sample: dict[str, Any]  # the arguments about samples; empty for whole lists


@functools.cache
def texts(kind: str, *, linear: bool) -> list[str]:
    """Return metrics, or those with a closed form for tied scores."""
    found = [ask.text for ask in for_kind(kind)]
    if not linear:
        return found
    plan = ListEvaluation(found, n_items=10).plan(weighted=False)
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
    sample: dict[str, Any] = {}
    if r.random() < 0.5:
        sample = {"negatives": int(r.choice([1, 3, 10, 100, 10**6])), "seed": int(r.integers(0, 2**63))}
        sample["sample"] = str(r.choice(["uniform", "popularity"]))
    metrics = [str(text) for text in r.choice(known, METRICS)]
    if sample:
        metrics = of_sampled_lists(metrics) or ["recall@3"]
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
        metrics,
        call,
        sample,
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
        found, wanted = outcome(case, lambda: of_model(case)), outcome(case, lambda: of_lists(case))
        if found != wanted:
            raise Finding("wrong value", f"{case.metrics}: {found} is not {wanted}")
        check_top(case, seed)
        if case.sample.get("sample") == "uniform":
            check_estimates(case, seed)
    return METRICS


def in_parts(seed: int) -> Any:
    """Let calls rank few users of a model at a time for some seeds, as they do of large ones."""
    n = int(np.random.default_rng(seed + 2).choice([1, 4, 128]))
    at_once = 2 * n if n < 128 else model_room.MAX_USERS_OF_PART
    return mock.patch.multiple(
        model_room, MAX_USERS_OF_BLOCK=n, MIN_USERS_OF_BLOCK=min(n, 8), MAX_USERS_OF_PART=at_once
    )


def outcome(case: Case, ask: Any) -> Any:
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
        counts(case, report),
    ]


def counts(case: Case, report: fastrec.Report) -> list[str]:
    of_models = {"truth_rows_not_scored", "exclude_rows_not_scored"}  # which lists do not have
    of_models |= {"excluded_items", "users_short_of_negatives"} if case.sample else set()
    return [f"{name}: {value}" for name, value in report.data.items() if name not in of_models]


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


def listed_items(case: Case) -> list[list[int]] | None:
    """Return the items that each row of the model lists by the oracle; None if nothing can be drawn."""
    n_items = case.scores.shape[1]
    counts: Counter[int] = Counter()
    if case.sample["sample"] == "popularity":
        sides = [case.truth, *([] if case.exclude is None else [case.exclude])]
        columns = range(n_items) if not case.once or case.candidates is None else case.candidates[0]
        users = users_of(case)
        counts.update(item for side in sides for user in users for item in side[user] if item in set(columns))
        if not counts:
            return None
    found = []
    for row, truth in enumerate(case.truth):
        allowed = range(n_items) if case.candidates is None else case.candidates[row]
        left = sorted(set(allowed) - set([] if case.exclude is None else case.exclude[row]))
        others = [item for item in left if item not in truth]
        weights = counts if case.sample["sample"] == "popularity" else None
        drawn = draw_items(others, case.sample["negatives"], case.sample["seed"], row, weights)
        found.append(sorted([*drawn, *(item for item in left if item in truth)]))
    return found


def given_of(case: Case) -> dict[str, Any]:
    """Return the arguments of a model besides itself and the truth."""
    n_users, n_items = case.scores.shape
    more: dict[str, Any] = {} if case.exclude is None else {"exclude": side(case, case.exclude)}
    if case.candidates is not None:
        all_of_them = [f"i{item:03}" if case.named else item for item in case.candidates[0]]
        more["candidates"] = all_of_them if case.once else side(case, case.candidates)
    if case.named:
        more["user_ids"] = [f"u{user:03}" for user in range(n_users)]
    more["item_ids"] = [f"i{item:03}" if case.named else item for item in range(n_items)]
    return more


def of_model(case: Case) -> fastrec.Report:
    n_items = case.scores.shape[1]
    evaluation = ListEvaluation(case.metrics, n_items=n_items + 4, **case.call, **case.sample)
    names = (*options_in(fastrec.Evaluator.update_model), "memory")
    given = {**dict.fromkeys(names), **given_of(case), "users": case.rows}
    call = read_call(case.model, {**given, "n_items": n_items})
    evaluation.evaluate_model(call, side(case, case.truth), given)
    return evaluation.report()


def of_lists(case: Case) -> fastrec.Report:
    n_items = case.scores.shape[1]
    allowed = case.candidates or [range(n_items)] * len(case.scores)
    if case.sample and (sampled := listed_items(case)) is None:
        raise fastrec.InputError("sample='popularity' found no item of the model with a popularity above 0")
    if case.sample:
        allowed = sampled
    listed = [
        {item: own[item] for item in sorted(set(items))}
        for own, items in zip(case.scores.tolist(), allowed, strict=True)
    ]
    more = {} if case.exclude is None else {"exclude": side(case, case.exclude)}
    recs, truth = side(case, listed), side(case, case.truth)
    if not case.named and case.rows is not None:  # a model names the users that a call chooses
        more["user_ids"] = case.rows
    return fastrec.evaluate(recs, truth, case.metrics, n_items=n_items + 4, **more, **case.call)


def check_estimates(case: Case, seed: int) -> None:
    """Compare estimates of the whole catalogue with the oracle, for a few users with few equal scores."""
    sample = {**case.sample, "negatives": min(case.sample["negatives"], 10)}
    case = case._replace(sample=sample, call={**case.call, "no_truth": "zero", "no_recs": "zero"})
    metric = str(np.random.default_rng(seed + 2).choice(ESTIMATED))
    n_items = case.scores.shape[1]
    call = {**case.call, **sample, "correct": "rank"}
    more = {"n_items": n_items} if case.form == "function" else {}
    model, truth, given = case.model, side(case, case.truth), given_of(case)
    report = fastrec.evaluate_model(model, truth, metric, users=case.rows, **given, **call, **more)
    found = dict(zip(users_in(report, case), report.per_user[metric].tolist(), strict=True))
    sampled = listed_items(case)
    assert sampled is not None
    for user in users_of(case)[:3]:
        scores, own = case.scores[user], case.truth[user]
        left = set(range(n_items) if case.candidates is None else case.candidates[user])
        left -= set([] if case.exclude is None else case.exclude[user])
        n_others = len(left - set(own))
        largest = max(Counter(scores[sampled[user]].tolist()).values(), default=0)
        in_one_order = case.call["ties"] != "expected"
        if n_others <= MAX_OTHERS and (largest <= MAX_ORDERS or in_one_order):
            check_user(case, metric, user, n_others, sampled[user], found[user])


def users_in(report: fastrec.Report, case: Case) -> list[int]:
    """Return the rows of the model that are the users of a report, in its order."""
    if report.user_ids is None:
        return users_of(case)
    return [int(str(user).removeprefix("u")) for user in report.user_ids.tolist()]


def check_user(case: Case, metric: str, user: int, n_others: int, items: list[int], value: float) -> None:
    """Compare the estimate of a user with that of the oracle."""
    own = {item: gain for item, gain in case.truth[user].items() if gain > 0}
    scores = dict(zip(items, case.scores[user][items].tolist(), strict=True))
    if case.call["ties"] != "expected":  # no two items have one score then
        order = order_of(case, user, scores)
        scores = {item: -float(place) for place, item in enumerate(order)}
    terms = estimate_weights(list(scores.items()), case.truth[user], n_others, FUNCTIONS[metric])
    gains = {item: gain if metric.startswith(("ndcg", "dcg")) else 1.0 for item, gain in own.items()}
    total = math.fsum(gains[item] * term for item, term in terms.items() if item in own)
    k = int(metric.partition("@")[2] or 10**9)
    best = sorted(own.values(), reverse=True)[:k]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, start=1))
    by = {"recall": len(own), "precision": k, "ndcg": ideal}.get(metric.partition("@")[0], 1.0)
    wanted = total / by if own and items else 0.0
    if not math.isclose(value, wanted, rel_tol=1e-8, abs_tol=1e-9):
        raise Finding("wrong value", f"{metric} of user {user}: {value} is not {wanted}")


def order_of(case: Case, user: int, scores: dict[int, float]) -> list[int]:
    """Return the items of a user, the best first, as the rule for equal scores says."""
    gains, sign = case.truth[user], {"best": -1.0, "worst": 1.0}.get(case.call["ties"], 0.0)

    def key(item: int) -> tuple[float, float, int]:
        own = max(gains.get(item, 0.0), 0.0)
        return -scores[item], sign * own, -item if case.call["ties"] == "id_desc" else item

    return sorted(scores, key=key)


def function_of(metric: str) -> Callable[..., float]:
    name, _, k = metric.partition("@")
    discounted = {"ndcg": lambda r: 1 / math.log2(r + 1), "dcg": lambda r: 1 / math.log2(r + 1)}
    value = {**discounted, "arhr": lambda r: 1 / float(r)}.get(name, lambda _: 1.0)
    return lambda rank: value(rank) if rank <= int(k or 10**9) else 0.0


FUNCTIONS = {metric: function_of(metric) for metric in ESTIMATED}


def check_top(case: Case, seed: int) -> None:
    """Compare first items with a stable sort."""
    k = int(np.random.default_rng(seed + 1).choice([1, 4, 30, 500]))
    names = {"user_ids": [f"u{user:03}" for user in range(len(case.scores))]} if case.named else {}
    names["item_ids"] = [f"i{item:03}" if case.named else item for item in range(case.scores.shape[1])]
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
