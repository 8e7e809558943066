"""Cases for every tool: small, random, always the same, and awkward in one way each.

They use only Python's own generator, with the same numbers in every version, and no library, because every tool has its
own environment.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

KS = (1, 3, 10)
FAR_K = 50  # past the end of every list
STEPS = 256  # scores are multiples of 1 / STEPS, which float32 holds too
LISTS_OF_A_KIND = 34
ROWS_OF_A_KIND = 75  # so 300 cases, also for tools with only metrics of scored rows
LARGEST = 2**62
ITEM_KS = (1, 3, 5)
ITEMS_OF_A_KIND = 34
LOGS_OF_A_KIND = 40
SESSIONS_OF_A_KIND = 8
SESSION_KINDS = ("shuffled", "mostly_sorted", "sorted", "all_clicks", "no_clicks", "short", "repeated")
MODELS = 60

Case = dict[str, Any]


def list_cases() -> list[Case]:
    """Lists against truth: {name, kind, ks, n_items, recs: {user: [[item, score], ...]}, truth: {user: {item: grade}}}.

    Lists are in descending order of their scores. Keys of users and of items in the truth are strings, as in JSON; all
    are integers.
    """
    return [_list_case(kind, nth) for kind in LIST_KINDS for nth in range(LISTS_OF_A_KIND)]


def subtopics_of(item: int) -> list[int]:
    """Return the subtopics that an item covers for every user: one or two of five."""
    return sorted({item % 3, item % 5})


def score_cases() -> list[Case]:
    """Scored, labelled rows: {name, kind, users: [user of each row], labels, scores, weights}."""
    return [_score_case(kind, nth) for kind in SCORE_KINDS for nth in range(ROWS_OF_A_KIND)]


def item_cases() -> list[Case]:
    """Lists against items and histories, as `list_cases`, without grades, and with

    history: {user: [item, ...]}, with repeated rows; items: {item: {category: [label, ...], features: [number, ...]}};
    reference: {user: [[item, score], ...]}. Only lists of the kind "seen_again" hold items of the user's history.
    """
    return [_item_case(kind, nth) for kind in ITEM_KINDS for nth in range(ITEMS_OF_A_KIND)]


def position_cases() -> list[Case]:
    """Impressions in random orders: {name, kind, rows: [[click, rank, query, item], ...]}."""
    return [_position_case(kind, nth) for kind in POSITION_KINDS for nth in range(LOGS_OF_A_KIND)]


def session_cases() -> list[Case]:
    """Lists as they were shown, with clicks: {name, kind, sessions: [[query, [[item, click], ...]], ...]}."""
    return [_session_case(kind, nth) for kind in SESSION_KINDS for nth in range(SESSIONS_OF_A_KIND)]


def model_cases() -> list[Case]:
    """Return factors with relevant and seen items; no two items of a user have one score."""
    return [_model_case(nth) for nth in range(MODELS)]


def _model_case(nth: int) -> Case:
    rng = random.Random(f"model {nth}")
    n_users, n_items, width = rng.choice([5, 40]), rng.choice([20, 120]), rng.choice([2, 8])

    def factors(n: int) -> list[list[float]]:
        return [[round(rng.gauss(0, 1), 3) for _ in range(width)] for _ in range(n)]

    rows = [rng.sample(range(n_items), rng.randint(1, 14)) for _ in range(n_users)]
    cuts = [rng.randint(0, len(row) - 1) for row in rows]
    return {
        "name": f"model/{nth}",
        "kind": "model",
        "users": factors(n_users),
        "items": factors(n_items),
        "train": [row[:cut] for row, cut in zip(rows, cuts, strict=True)],
        "truth": [row[cut:] if rng.random() < 0.9 else [] for row, cut in zip(rows, cuts, strict=True)],
        "ks": [1, 5, 10, 20],
    }


def _list_case(kind: str, nth: int) -> Case:
    rng = random.Random(f"{kind} {nth}")
    n_users, n_items = rng.choice([1, 1, 2, 5]), rng.choice([6, 12, 40])
    ids = rng.sample(range(2**53, LARGEST), n_items) if kind == "large_ids" else list(range(1, n_items + 1))
    users = rng.sample(range(2**53, LARGEST) if kind == "large_ids" else range(1, 100), n_users)
    graded = kind in GRADED_KINDS
    recs: dict[str, list[list[Any]]] = {}
    truth: dict[str, dict[str, int]] = {}
    for user in users:
        length = rng.randint(1, 4) if kind == "short" else rng.randint(min(6, n_items), min(14, n_items))
        items = rng.sample(ids, min(length, n_items))
        if kind == "duplicates":
            items[rng.randrange(1, len(items))] = items[0]
        recs[str(user)] = [list(pair) for pair in zip(items, _scores(rng, len(items), kind), strict=True)]
        held = rng.sample(ids, rng.randint(1, min(6, n_items)))
        if rng.random() < 0.8:  # mostly with a hit
            held = list(dict.fromkeys([rng.choice(items), *held]))
        truth[str(user)] = {str(item): rng.randint(1, 4) if graded else 1 for item in held}
    AWKWARD.get(kind, lambda *_: None)(rng, recs, truth, ids)
    ks = [*KS, FAR_K] if kind == "far_k" else list(KS)
    return {
        "name": f"{kind}-{nth}",
        "kind": kind,
        "ks": ks,
        "n_items": n_items,
        "recs": recs,
        "truth": truth,
    }


def _scores(rng: random.Random, n: int, kind: str) -> list[float]:
    """Return scores above 0 in descending order, all different unless the kind says otherwise."""
    steps = [rng.randint(1, 4) for _ in range(n)] if kind == "tied" else rng.sample(range(1, STEPS), n)
    return [step / STEPS for step in sorted(steps, reverse=True)]


def _another_user(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any]) -> str:
    return str(rng.choice([user for user in range(100, 120) if str(user) not in recs and str(user) not in truth]))


def _without_list(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    truth[_another_user(rng, recs, truth)] = {str(rng.choice(ids)): 1}


def _with_empty_list(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    user = _another_user(rng, recs, truth)
    recs[user], truth[user] = [], {str(rng.choice(ids)): 1}


def _without_truth(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    recs[_another_user(rng, recs, truth)] = [[rng.choice(ids), 0.5]]


def _judged_irrelevant(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    """Give some of the judged items grade 0; one user has no others."""
    for held in truth.values():
        for item in list(held)[1:]:
            held[item] = rng.choice([0, held[item]])
    user = _another_user(rng, recs, truth)
    item = rng.choice(ids)
    recs[user], truth[user] = [[item, 0.5]], {str(item): 0}


def _judged_alone(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    """Return judged users without a list: nothing is relevant to one, nothing above grade 1 to another.

    A further user with a list has nothing relevant, and a fourth is only in the lists.
    """
    for grade in (0, 1):
        items = rng.sample(ids, 2)
        truth[_another_user(rng, recs, truth)] = {str(items[0]): grade, str(items[1]): 0}
    _judged_irrelevant(rng, recs, truth, ids)
    _without_truth(rng, recs, truth, ids)


def _judged_with_empty_list(rng: random.Random, recs: dict[str, Any], truth: dict[str, Any], ids: list[int]) -> None:
    """Give the same two users a list that is empty."""
    for grade in (0, 1):
        user = _another_user(rng, recs, truth)
        recs[user], truth[user] = [], {str(rng.choice(ids)): grade}


AWKWARD: dict[str, Callable[..., None]] = {
    "no_recs": _without_list,
    "empty_list": _with_empty_list,
    "no_truth": _without_truth,
    "grade_zero": _judged_irrelevant,
    "judged_alone": _judged_alone,
    "judged_empty": _judged_with_empty_list,
}
GRADED_KINDS = ("graded", "tied", "judged_alone", "judged_empty")
LIST_KINDS = (
    "binary",
    "graded",
    "tied",
    "short",
    "far_k",
    "large_ids",
    "no_recs",
    "empty_list",
    "no_truth",
    "grade_zero",
    "duplicates",
    "judged_alone",
    "judged_empty",
)
ITEM_KINDS = ("full", "unequal", "single", "repeated", "unseen", "cold", "no_truth", "categories", "seen_again")
POSITION_KINDS = ("connected", "sparse", "few_clicks", "apart", "no_first")
SCORE_KINDS = ("rows", "tied_rows", "one_class", "graded_rows")


def _score_case(kind: str, nth: int) -> Case:
    rng = random.Random(f"{kind} {nth}")
    users, labels, scores = [], [], []
    for user in range(1, rng.choice([1, 2, 5]) + 1):
        n = rng.randint(2, 9)
        own = [1, 0, *(rng.randint(0, 1) for _ in range(n - 2))]
        if kind == "graded_rows":
            own = [rng.randint(0, 4) for _ in range(n - 1)] + [3]
        if kind == "one_class" and user > 1:
            own = [rng.randint(0, 1)] * n
        steps = [rng.randint(1, 4) for _ in own] if kind == "tied_rows" else rng.sample(range(1, STEPS), n)
        users += [user] * n
        labels += own
        scores += [step / STEPS for step in steps]
    weights = [rng.randint(1, 8) / 4 for _ in labels]
    return {
        "name": f"{kind}-{nth}",
        "kind": kind,
        "users": users,
        "labels": labels,
        "scores": scores,
        "weights": weights,
    }


def _position_case(kind: str, nth: int) -> Case:
    """Items of "apart" are shown at ranks 1 to 3 or at ranks 4 to 6, those of "no_first" never at rank 1."""
    rng = random.Random(f"{kind} {nth}")
    n_ranks, n_rows = rng.choice([3, 6]), rng.randint(5, 20) if kind == "sparse" else rng.randint(150, 400)
    attraction = {(query, item): rng.random() for query in range(3) for item in range(6)}
    rows = []
    for _ in range(n_rows):
        pair, rank = rng.choice(list(attraction)), rng.randint(2 if kind == "no_first" else 1, n_ranks)
        if kind == "apart":
            rank = rng.randint(1, 3) + 3 * (pair[1] % 2)
        chance = attraction[pair] / rank / (20 if kind == "few_clicks" else 1)
        rows.append([int(rng.random() < chance), rank, *pair])
    return {"name": f"{kind}-{nth}", "kind": kind, "rows": rows}


def _session_case(kind: str, nth: int) -> Case:
    """Lists of at most ten items; those of "repeated" may show an item twice."""
    rng = random.Random(f"{kind} {nth}")
    n_queries, n_items = rng.choice([1, 3]), rng.randint(4, 10)
    attraction = {(query, item): rng.random() for query in range(n_queries) for item in range(n_items)}
    sessions = []
    for _ in range(rng.randint(20, 60)):
        query = rng.randrange(n_queries)
        items = sorted(range(n_items), key=lambda item: -attraction[query, item])
        if kind != "sorted" and (kind != "mostly_sorted" or rng.random() < 0.3):
            rng.shuffle(items)
        if kind == "repeated":
            items[rng.randrange(1, n_items)] = items[0]
        shown = []
        for rank, item in enumerate(items[: rng.randint(1, 3) if kind == "short" else n_items], 1):
            chance = {"all_clicks": 1.0, "no_clicks": 0.0}.get(kind, attraction[query, item] / rank)
            shown.append([item, int(rng.random() < chance)])
        sessions.append([query, shown])
    return {"name": f"{kind}-{nth}", "kind": kind, "sessions": sessions}


def _item_case(kind: str, nth: int) -> Case:
    rng = random.Random(f"{kind} {nth}")
    n_items, users = rng.choice([12, 15, 30]), sorted(rng.sample(range(1, 100), rng.choice([2, 3, 6])))
    ids = list(range(1, n_items + 1))
    recs, reference, truth, history = {}, {}, {}, {}
    for user in users:
        least, most = {"single": (1, 1), "unequal": (1, 8)}.get(kind, (max(ITEM_KS), max(ITEM_KS)))
        items = rng.sample(ids, rng.randint(least, most))
        others = [item for item in ids if item not in items]
        past = rng.sample(ids if kind == "seen_again" else others, rng.randint(1, 3))
        held = [item for item in ids if item not in past]
        recs[user], history[user] = items, past
        truth[user] = dict.fromkeys([*rng.sample(held, rng.randint(1, 4)), rng.choice(held)], 1)
        reference[user] = rng.sample(ids, len(items))
    if kind == "cold":
        del history[users[0]]
    if kind == "no_truth":
        del truth[users[0]]
        truth[100] = {rng.choice(ids): 1}
    if kind == "repeated":
        history = {user: past + rng.choices(past, k=rng.randint(1, 4)) for user, past in history.items()}
    if kind != "unseen":  # a user without a list has what the others have not
        known = {item for own in history.values() for item in own}
        history[101] = sorted({ids[0], *(item for own in recs.values() for item in own)} - known) or [ids[0]]
    labels = "abcd"
    return {
        "name": f"{kind}-{nth}",
        "kind": kind,
        "ks": list(ITEM_KS),
        "n_items": n_items,
        "recs": {str(user): _with_scores(rng, items) for user, items in recs.items()},
        "truth": {str(user): {str(item): 1 for item in held} for user, held in truth.items()},
        "history": {str(user): past for user, past in history.items()},
        "reference": {str(user): _with_scores(rng, items) for user, items in reference.items()},
        "items": {
            str(item): {
                "category": rng.sample(labels, rng.randint(1, 3) if kind == "categories" else 1),
                "features": [rng.randint(0, 3), rng.randint(0, 3), rng.randint(1, 3)],
            }
            for item in ids
        },
    }


def _with_scores(rng: random.Random, items: list[int]) -> list[list[Any]]:
    return [list(pair) for pair in zip(items, _scores(rng, len(items), ""), strict=True)]


def edge_cases() -> dict[str, list[Case]]:
    """Return lists and rows at the edges of what tools take, in the forms of `list_cases` and `score_cases`."""
    return {
        "lists": [_list_edge(kind, nth) for kind in LIST_EDGES for nth in range(EDGES_OF_A_KIND)],
        "rows": [_row_edge(kind, nth) for kind in ROW_EDGES for nth in range(EDGES_OF_A_KIND)],
    }


EDGES_OF_A_KIND = 2
LIST_EDGES = ("ties_3", "ties_16", "ties_100", "equal_scores", "low_scores", "unit_scores", "low_grades", "outside")
ROW_EDGES = ("positives", "negatives", "equal_scores", "low_scores", "unit_scores", "low_labels", "one_row", "targets")


def _edge_scores(rng: random.Random, n: int, kind: str) -> list[float]:
    """Return scores in descending order: with ties, all equal, some of 0 and below, or some of exactly 0 and 1."""
    if kind.startswith("ties_"):
        return sorted((rng.randint(1, max(2, n // 4)) / STEPS for _ in range(n)), reverse=True)
    if kind == "equal_scores":
        return [0.5] * n
    scores = [step / STEPS for step in sorted(rng.sample(range(2, STEPS), n), reverse=True)]
    if kind == "low_scores":
        return [score - scores[n // 2] for score in scores]
    return [1.0, *scores[1:-1], 0.0] if kind == "unit_scores" else scores


def _list_edge(kind: str, nth: int) -> Case:
    rng = random.Random(f"edge {kind} {nth}")
    length = int(kind.removeprefix("ties_")) if kind.startswith("ties_") else 6
    ids = list(range(1, 2 * length + 1))
    recs, truth = {}, {}
    for user in (7, 8, 9):
        items = rng.sample(ids, length)
        recs[str(user)] = [list(pair) for pair in zip(items, _edge_scores(rng, length, kind), strict=True)]
        held = dict.fromkeys([items[length // 2], items[-1], rng.choice(items), rng.choice(ids)], 1)
        truth[str(user)] = {str(item): 1 for item in held}
        if kind == "low_grades":
            truth[str(user)][str(items[0])] = -1
    if kind == "outside":
        del truth["9"]
        truth["5"] = {str(ids[0]): 1}
    name = f"lists/{kind}-{nth}"
    return {"name": name, "kind": kind, "ks": list(KS), "n_items": len(ids), "recs": recs, "truth": truth}


def _row_edge(kind: str, nth: int) -> Case:
    rng = random.Random(f"edge {kind} {nth}")
    users, labels, scores = [], [], []
    for user in (1, 2, 3):
        n = 1 if kind == "one_row" and user == 2 else 4
        one = {"positives": 1, "negatives": 0, "targets": 2}.get(kind)
        own = [one] * n if one is not None else [1, 0, rng.randint(0, 1), 1][-n:]
        own[-1] = -1 if kind == "low_labels" else own[-1]
        order = _edge_scores(rng, n, kind)
        rng.shuffle(order)
        users, labels, scores = users + [user] * n, labels + own, scores + order
    if kind == "targets" and nth:
        scores = list(map(float, labels))
    return {
        "name": f"rows/{kind}-{nth}",
        "kind": kind,
        "users": users,
        "labels": labels,
        "scores": scores,
        "weights": [1.0] * len(users),
    }


SLATE_KINDS = ("full", "ragged", "single", "constant")


def slate_cases() -> list[Case]:
    """Return logs of slates: of one length, of several, of one row, and with one reward everywhere."""
    return [slate_case(kind, nth) for kind in SLATE_KINDS for nth in range(3)]


def slate_case(kind: str, nth: int) -> Case:
    """Return a log of slates; items are drawn from one distribution per row, with replacement.

    `pscore` and `new_pscore` are of the logged row given those before it; `q_hat` and `action_dist` of all items.
    """
    rng = random.Random(f"slates-{kind}-{nth}")
    n_actions, len_list = 4, 1 if kind == "single" else 3
    case: Case = {"name": f"{kind}-{nth}", "kind": kind, "len_list": len_list, "n_actions": n_actions}
    columns = ("slate_id", "position", "action", "reward", "pscore", "new_pscore", "q_hat", "action_dist")
    case |= {column: [] for column in columns}
    for slate in range(40):
        for position in range(rng.randint(1, len_list) if kind == "ragged" else len_list):
            old, new = ([rng.randint(1, 8) for _ in range(n_actions)] for _ in range(2))
            action = rng.choices(range(n_actions), old)[0]
            q_hat = [rng.randint(0, 8) / 8 for _ in range(n_actions)]
            reward = 1.0 if kind == "constant" else float(rng.random() < q_hat[action])
            shares = [own / sum(new) for own in new]
            row = (slate, position, action, reward, old[action] / sum(old), shares[action], q_hat, shares)
            for column, value in zip(columns, row, strict=True):
                case[column].append(value)
    return case


def real_case(folder: Path) -> Case:
    """Return the most popular films that each user of ml-latest-small has not rated before, and the last five ratings.

    The case is computed from the data if they are there, and never stored.
    """
    with open(folder / "ml-latest-small" / "ratings.csv", encoding="utf-8", newline="") as stream:
        ratings = [
            (row["userId"], int(row["movieId"]), float(row["rating"]), int(row["timestamp"]))
            for row in csv.DictReader(stream)
        ]
    by_user: dict[str, list[Any]] = {}
    for user, movie, rating, time in ratings:
        by_user.setdefault(user, []).append((time, movie, rating))
    truth, counts = {}, {}
    for user, rows in by_user.items():
        rows.sort()
        truth[user] = {str(movie): int(2 * rating) for _, movie, rating in rows[-5:]}
        for _, movie, _ in rows[:-5]:
            counts[movie] = counts.get(movie, 0) + 1
    popular = sorted(counts, key=lambda movie: (-counts[movie], movie))
    recs = {}
    for user, rows in by_user.items():
        seen = {movie for _, movie, _ in rows[:-5]}
        unseen = [movie for movie in popular if movie not in seen][:20]
        recs[user] = [[movie, (STEPS - rank) / STEPS] for rank, movie in enumerate(unseen)]
    return {
        "name": "ml-latest-small",
        "kind": "real",
        "ks": [1, 5, 10],
        "n_items": len(popular),
        "recs": recs,
        "truth": truth,
    }
