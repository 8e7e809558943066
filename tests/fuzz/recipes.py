"""Recipes at the edges of what tools take, against plain Python: ranks beside scores, ties, odd labels and scores.

A call with `like=` has the number of the tool, or refuses the input, or warns that the number may be another. The
tools are those of `tests/rivals`; their rules here are those that the kept answers show.

`scripts/fuzz --target recipes` runs it for long, `test_fuzz` for a few seconds.
"""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

import fastrec
from fuzz.calls import Finding

__all__ = ["Finding", "describe", "run_case"]

RECIPROCAL = {"trec_eval": "recip_rank", "ir_measures": "RR", "ranx": "mrr", "rectools": "mrr@20", None: "mrr"}
SCORES = [-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0]


class ListCase(NamedTuple):
    """Rows of lists with ranks and scores, the relevant items, and a tool."""

    tool: str | None
    rows: list[tuple[str, str, int, float]]  # user, item, rank, score
    truth: list[tuple[str, str]]
    in_batches: bool


class RowCase(NamedTuple):
    """Rows of users with labels and scores; each user has at least one."""

    users: list[int]
    labels: list[int]
    scores: list[float]


def draw_case(seed: int) -> ListCase | RowCase:
    r = random.Random(seed)
    if r.random() < 0.5:
        users = [user for user in range(r.randint(1, 3)) for _ in range(r.choice([1, 2, 4]))]
        labels = r.choice([[0, 1], [1], [0], [-1, 0, 1], [2]])
        return RowCase(users, [r.choice(labels) for _ in users], [r.choice(SCORES) for _ in users])
    rows, truth, first = [], [], r.choice([0, 1, 1, 1])
    for user in "abc"[: r.randint(1, 3)]:
        items = r.sample("klmnopqrstuvwxyz", r.choice([1, 2, 3, 16]))
        ranks = r.sample(range(first, first + len(items) + r.choice([0, 0, 2])), len(items))
        rows += [(user, item, rank, r.choice(SCORES)) for item, rank in zip(items, ranks, strict=True)]
        truth += [(user, item) for item in r.sample("klmnopqrstuvwxyz", 3)]
    r.shuffle(rows)
    return ListCase(r.choice(list(RECIPROCAL)), rows, truth, r.random() < 0.5)


def describe(seed: int) -> str:
    return str(draw_case(seed))


def run_case(seed: int) -> int:
    """Compare the numbers of a case; return how many the call has given."""
    case = draw_case(seed)
    answers = list_answers(case) if isinstance(case, ListCase) else row_answers(case)
    n_given = 0
    for what, ask, wanted, tool in answers:
        try:
            ours, told = ask()
        except (fastrec.InputError, fastrec.MetricError):
            continue
        except Exception as error:
            raise Finding("foreign error", f"{what}: {error!r}") from error
        n_given += 1
        same = math.isclose(ours, wanted, abs_tol=1e-6) or (math.isnan(ours) and math.isnan(wanted))
        if not same and not any(f"{tool} may be another" in line for line in told):
            raise Finding("wrong value", f"{what}: {wanted} there, {ours} here, which says {told}")
    return n_given


Answers = Iterator[tuple[str, Callable[[], tuple[float, list[str]]], float, str]]


def list_answers(case: ListCase) -> Answers:
    """Yield the mean reciprocal rank of a tool, whose order is that of ranks or of scores."""
    found = []
    for user in sorted({row[0] for row in case.rows}):
        rows = [row[1:] for row in case.rows if row[0] == user]
        relevant = {item for own, item in case.truth if own == user}
        if case.tool in ("trec_eval", "ir_measures"):
            rows.sort(key=lambda row: (row[2], row[0]), reverse=True)
        else:
            rows.sort(key=lambda row: -row[2] if case.tool == "ranx" else row[1])
        places = [row[1] if case.tool == "rectools" else nth for nth, row in enumerate(rows, 1)]
        hits = [place for place, row in zip(places, rows, strict=True) if row[0] in relevant]
        found.append(1 / (hits[0] or math.nan) if hits and hits[0] <= 20 else 0.0)
    wanted = sum(found) / len(found)
    metric, tool = RECIPROCAL[case.tool], case.tool or "no tool"
    yield f"{metric} of {tool}", lambda: _evaluate_lists(case, metric), wanted, tool


def _evaluate_lists(case: ListCase, metric: str) -> tuple[float, list[str]]:
    evaluator = fastrec.Evaluator(metric, like=case.tool)
    users = sorted({row[0] for row in case.rows})
    for batch in [[user] for user in users] if case.in_batches else [users]:
        rows = list(zip(*(row for row in case.rows if row[0] in batch), strict=True))
        truth = list(zip(*(row for row in case.truth if row[0] in batch), strict=True))
        recs = pa.table(dict(zip(("user_id", "item_id", "rank", "score"), map(list, rows), strict=True)))
        evaluator.update(recs, pa.table(dict(zip(("user_id", "item_id"), map(list, truth), strict=True))))
    report = evaluator.result()
    return report[metric], report.warnings


def row_answers(case: RowCase) -> Answers:
    """Yield numbers of scikit-learn and TorchMetrics, NaN for an error there."""

    def ask(metric: str, like: str) -> Callable[[], tuple[float, list[str]]]:
        def evaluate() -> tuple[float, list[str]]:
            options: dict[str, Any] = {"metrics": metric, "user_ids": case.users, "like": like}
            report = fastrec.evaluate_scores(case.labels, case.scores, **options)
            return report[metric], report.warnings

        return evaluate

    for metric, wanted in (("balanced_accuracy(threshold=0.5)", recalls(case)), ("r2", determination(case))):
        yield metric, ask(metric, "sklearn"), wanted, "scikit-learn"
    for metric, function in (("dcg", gain), ("precision", precision)):
        tool = "scikit-learn" if metric == "dcg" else "TorchMetrics"
        own = [[row[1:] for row in zip(*case, strict=True) if row[0] == user] for user in sorted(set(case.users))]
        values = [function(rows) for rows in own]
        yield metric, ask(metric, "sklearn" if metric == "dcg" else "torchmetrics"), sum(values) / len(values), tool


def recalls(case: RowCase) -> float:
    """Return the mean of the recalls of the classes that have rows."""
    found = []
    for label in {*case.labels}:
        right = [(score >= 0.5) == label for own, score in zip(case.labels, case.scores, strict=True) if own == label]
        found.append(sum(right) / len(right))
    return sum(found) / len(found)


def determination(case: RowCase) -> float:
    mean = sum(case.labels) / len(case.labels)
    errors = sum((label - score) ** 2 for label, score in zip(case.labels, case.scores, strict=True))
    spread = sum((label - mean) ** 2 for label in case.labels)
    return math.nan if len(case.labels) == 1 else 1 - errors / spread if spread else float(not errors)


def gain(rows: list[tuple[int, float]]) -> float:
    """Return the DCG of scikit-learn, where rows of one score share the mean of their labels."""
    shared = {score: [label for label, own in rows if own == score] for _, score in rows}
    ordered = [sum(shared[score]) / len(shared[score]) for _, score in sorted(rows, key=lambda row: -row[1])]
    return math.nan if len(rows) == 1 else sum(own / math.log2(nth + 2) for nth, own in enumerate(ordered))


def precision(rows: list[tuple[int, float]]) -> float:
    return sum(label > 0 and score > 0 for label, score in rows) / len(rows)
