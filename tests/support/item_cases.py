"""Worked example of the metrics over items, histories and other lists, and small hostile shops.

`SHOP` is a catalogue of six items. `VALUES` must hold for every evaluator, with metrics as strings like
"gini(correction=n_minus_1)@3"; `USERS` holds values per user in the order of the users. `BASE` has the list [1, 2]
for everyone, which is also the reference of `SHOP`; `RANKINGS` has one user with two rankings. `CLICKS` has
propensities.
"""

import dataclasses
import math
import random
from itertools import product
from typing import Any

from support.item_oracle import Id, Shop

ALL = ("u1", "u2", "u3", "u4")
CATEGORIES = {1: "A", 2: "AB", 3: "B", 4: "C", 5: "AC", 6: "C"}
SHOP = Shop(
    lists={"u1": [4, 5, 2], "u2": [3, 4, 5], "u3": [2, 3], "u4": [2]},
    truth={"u1": {5: 1.0}, "u2": {3: 1.0, 6: 1.0}, "u3": {3: 1.0}, "u4": {}},
    history={"u1": [1, 2, 3], "u2": [1, 2], "u3": [1, 4], "u4": [1]},
    items={
        item: {
            "segment": "head" if item <= 2 else "tail",
            "category": list(labels),
            "features": [float(label in labels) for label in "ABC"],
        }
        for item, labels in CATEGORIES.items()
    },
    reference={user: [1, 2] for user in ALL},
)
PROPENSITIES = {1: 1.0, 2: 1.0, 3: 0.8, 4: 1.0, 5: 0.5, 6: 0.2}
CLICKS = dataclasses.replace(SHOP, items={item: {"propensity": p} for item, p in PROPENSITIES.items()})
BASE = dataclasses.replace(SHOP, lists={user: [1, 2] for user in ALL})
RANKINGS = Shop(lists={"u1": [1, 2, 3]}, reference={"u1": [2, 1, 4]})
# Items 1, 2 and 3 of the list of u1 cover 2, 1 and 1 of three subtopics; u2 has one item, of one of two.
COVERED = Shop(
    lists={"u1": [1, 2, 3], "u2": [4, 1]},
    truth={"u1": {1: 1.0, 2: 1.0, 3: 1.0}, "u2": {1: 1.0, 5: 1.0, 4: 0.0}},
    subtopics={"u1": {1: [1, 2], 2: [2], 3: [3]}, "u2": {4: [2], 1: [1], 5: [1, 2]}},
)
COVERED_VALUES = {
    # = (2 + .5 / log2 3 + 1 / log2 3) / 2
    "alpha_dcg@2": 1.4731973151785933,
    # ideals 2 + 1 / log2 3 and 2 + .5 / log2 3
    "alpha_dcg(denominator=ideal)@2": 0.5762894495694008,
    # = ((2 + .5 / 2) / (3 * 1.25) + .5 / (2 * 1.25)) / 2
    "err_ia@2": 0.4,
    # = ((2 + .5 / 2) / 2 / 3 + .5 / 2 / 2) / 2
    "err_ia(denominator=n_subtopics)@2": 0.25,
    # = (2.25 / 2.5 + .5 / 2.25) / 2
    "err_ia(denominator=ideal)@2": (0.9 + 2 / 9) / 2,
    # = (3/4 * (2 + .5 / 2) / 3 + 3/4 * .5 / 2) / 2
    "nrbp@2": 0.375,
    "nrbp(denominator=ideal)@2": (2.25 / 2.5 + 0.5 / 2.25) / 2,
    # = (2/3 + 1/2) / 2
    "subtopic_recall@2": 7 / 12,
    # = (3/6 + 1/4) / 2
    "precision_ia@2": 0.375,
    # = ((1 + (1 + 1) / 2 + 0) / 3 + (1/2 / 2 + 0) / 2) / 2
    "map_ia@2": 19 / 48,
}

VALUES = {
    # = 4/6, {2, 3, 4} of {1, 2, 3, 4}, {2, 3, 4, 5}
    "item_coverage@3": 0.6666666666666666,
    "item_coverage(denominator=history)@3": 0.75,
    "item_coverage(denominator=one)@3": 4.0,
    "user_coverage@3": 1.0,
    "user_coverage(min_items=k)@3": 0.5,
    # counts 0, 0, 2, 2, 2, 3: 21/54, 21/45, 3/36, 3/27
    "gini@3": 0.3888888888888889,
    "gini(correction=n_minus_1)@3": 0.4666666666666667,
    "gini(zeros=exclude)@3": 0.08333333333333333,
    "gini(zeros=exclude, correction=n_minus_1)@3": 0.1111111111111111,
    "gini(discount=log2)@3": 0.43264510645191634,
    # = 1/3 log2 3 + 2/3 log2 4.5
    "shannon_entropy@3": 1.974937501201927,
    "shannon_entropy(base=e)@3": 1.3689223607402192,
    "shannon_entropy(normalize=n_items)@3": 0.7640101164527363,
    # = 1 - (3 pairs of 6 share 1 of 2) and 1 - (1/2 + 1/2 + 1/sqrt(2)) / 6
    "personalization@2": 0.75,
    "personalization(overlap=cosine)@2": 0.7154822031355754,
    "popularity@3": 1.2916666666666667,
    "popularity(scale=share)@3": 0.3229166666666667,
    "popularity(scale=share, counts=rows)@3": 0.16145833333333334,
    "popularity(unseen=drop)@3": 1.5,
    "popularity(scale=percentile)@3": 0.484375,
    "aplt@3": 0.5416666666666666,
    # = .322917 / .739583 - 1
    "popularity_lift@3": -0.5633802816901408,
    "popularity_lift(average=user)@3": -0.5623015873015873,
    "novelty@3": 1.5416666666666667,
    "novelty(unseen=drop)@3": 1.5,
    "novelty(unseen=zero)@3": 1.2083333333333333,
    "novelty(normalize=max, denominator=k)@3": 0.625,
    "novelty(share=rows, unseen=zero, average=pooled)@3": 2.0,
    "epc@3": 0.31272685363627956,
    "efd(unseen=one)@3": 1.1522134442231633,
    "intra_list_diversity(distance=jaccard)@3": 0.513888888888889,
    "intra_list_diversity@3": 0.41370550783893856,
    "intra_list_diversity(distance=hamming)@3": 1.25,
    "category_coverage@3": 0.8333333333333334,
    "miscalibration@3": 1.8387098607997736,
    "miscalibration(divergence=js)@3": 0.4227631437087481,
    "miscalibration(divergence=hellinger)@3": 0.6234697644616993,
    "serendipity@3": 0.1111111111111111,
    "serendipity(expected=rank, denominator=n_rec, no_truth=zero)@3": 0.11805555555555555,
    "repeat_ratio@3": 0.08333333333333333,
    # = |3/2 - 6/14| / (3/2 + 6/14), and |2/2 - 6/14| / (2/2 + 6/14) without the seen item 2 of u1
    "rsp(exclude_seen=no)@3": 0.5555555555555556,
    "rsp@3": 0.4,
}
CLICKS_VALUES = {
    # = (1/.5 + 1/.8 / 2 + 1/.8) / 3, then of clicks 5; 3, 6; 3: 1, 1.25 / 6.25, 1
    "ips@2": 1.2916666666666667,
    "ips(of=precision)@2": 0.75,
    "snips@2": 0.7333333333333334,
    "snips(of=precision)@2": 0.7333333333333334,
    # 6 counts 2 instead of 5
    "snips(clip=0.5)@2": 0.7948717948717948,
    # = 4.5 of 4 clicks and of 9.5
    "ips(average=pooled)@2": 1.125,
    "snips(average=pooled)@2": 0.47368421052631576,
    "snips(of=dcg)@2": 0.48728650238097165,
    # = (2 / 2 + 1.25 + 1.25 / 2) / 3 and (2 * .8 + 1.25 + 1.25 * .8) / 5 / 3
    "ips(of=arhr)@2": 0.9583333333333334,
    "ips(of=rbp)@2": 0.25666666666666665,
}
CLICKS_DATA = {"effective_sample_size": 2.8093385214007782, "largest_weight_share": 5 / 9.5, "clipped_rows": 0}
# Ten digits.
ROUNDED = {
    "item_coverage@2": 0.6666666667,
    "gini@2": 0.4047619048,
    "shannon_entropy@2": 1.9502120649,
}
BASE_ROUNDED = {
    "item_coverage@2": 0.3333333333,
    "gini@2": 0.6666666667,
    "shannon_entropy@2": 1.0,
    "personalization@2": 0.0,
}
RANKINGS_ROUNDED = {
    "rbo@3": 0.63,
    "rbo(form=min)@3": 0.3116855762,
    "rbo(form=truncated)@3": 0.5313653136531366,
}
USERS: dict[str, list[float | None]] = {
    "popularity@3": [1, 2 / 3, 3 / 2, 2],
    "popularity(unseen=drop)@3": [3 / 2, 1, 3 / 2, 2],
    "popularity(scale=percentile)@3": [0.375, 0.25, 0.5625, 0.75],
    "aplt@3": [2 / 3, 1, 1 / 2, 0],
    "popularity_lift(average=user)@3": [-4 / 7, -7 / 9, -0.4, -0.5],
    "novelty@3": [5 / 3, 2, 3 / 2, 1],
    "novelty(unseen=drop)@3": [1.5, 2, 1.5, 1],
    "novelty(unseen=zero)@3": [1, 4 / 3, 1.5, 1],
    "intra_list_diversity(distance=jaccard)@3": [13 / 18, 0.8333333333333334, 0.5, 0],
    "intra_list_diversity(distance=hamming)@3": [2, 2, 1, 0],
    "category_coverage@3": [1, 1, 2 / 3, 2 / 3],
    "serendipity@3": [1 / 3, 0, 0, None],
    "serendipity(expected=rank, denominator=n_rec, no_truth=zero)@3": [5 / 18, 1 / 9, 1 / 12, 0],
    "repeat_ratio@3": [1 / 3, 0, 0, 0],
    "overlap@2": [0, 0, 1 / 3, 1 / 2],
    "unexpectedness@2": [1, 1, 1 / 2, 0],
    "rbo@2": [0, 0, 0.45, 0.45],
}
# Ten digits.
USERS_ROUNDED: dict[str, list[float]] = {
    "intra_list_diversity@3": [0.5976310729, 0.7642977396, 0.2928932188, 0],
}
FIRST_USER = {
    "category_entropy@3": 1.459147917027245,
    "miscalibration@3": 1.0670801739206688,
    "miscalibration(divergence=js)@3": 0.32501121082417717,
    "miscalibration(divergence=hellinger)@3": 0.5505239095092276,
}

DISCOUNTS = ("none", "log2", "log2_flat2", "rbp", "[1, 0.5, 0.25]")
POWERS = ("0.85", "0.3")
CLICK_METRICS = ("recall", "precision", "dcg", "arhr", "rbp")
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "item_coverage": {"denominator": ("n_items", "history", "one")},
    "gini": {"zeros": ("include", "exclude"), "correction": ("none", "n_minus_1"), "discount": DISCOUNTS, "p": POWERS},
    "shannon_entropy": {"base": ("2", "e", "10"), "normalize": ("none", "n_items"), "discount": DISCOUNTS, "p": POWERS},
    "personalization": {"overlap": ("k", "cosine")},
    "rsp": {"exclude_seen": ("yes", "no"), "column": ("segment",)},
    "reo": {"exclude_seen": ("yes", "no"), "column": ("segment",)},
    "user_coverage": {"min_items": ("1", "2", "k")},
    "popularity": {
        "scale": ("count", "share", "max", "percentile"),
        "counts": ("users", "rows"),
        "unseen": ("zero", "drop", "one", "error"),
        "denominator": ("n_rec", "k"),
    },
    "aplt": {"denominator": ("n_rec", "k", "one"), "tail": ("tail", "head")},
    "popularity_lift": {"average": ("means", "user"), "no_history": ("skip", "zero", "nan", "error")},
    "novelty": {
        "share": ("users", "rows"),
        "unseen": ("one", "drop", "zero", "max"),
        "base": ("2", "e", "10"),
        "normalize": ("none", "max"),
        "denominator": ("n_rec", "k"),
        "average": ("user", "pooled"),
    },
    "epc": {
        "discount": ("log2", "none", "rbp", "[1, 0.5, 0.25]"),
        "p": POWERS,
        "relevance": ("truth", "none"),
        "unseen": ("zero", "one"),
    },
    "efd": {
        "discount": ("log2", "none", "rbp", "[1, 0.5, 0.25]"),
        "p": POWERS,
        "relevance": ("truth", "none"),
        "unseen": ("max", "one"),
    },
    "intra_list_diversity": {
        "distance": ("cosine", "jaccard", "hamming"),
        "single": ("zero", "skip"),
        "no_features": ("drop", "error"),
    },
    "category_coverage": {
        "denominator": ("n_categories", "k"),
        "relevance": ("none", "truth"),
        "no_features": ("drop", "error"),
    },
    "category_entropy": {
        "base": ("2", "e", "10"),
        "discount": ("none", "log2", "rbp", "[1, 0.5, 0.25]"),
        "p": POWERS,
        "no_features": ("drop", "error"),
    },
    "miscalibration": {
        "divergence": ("kl", "js", "hellinger"),
        "alpha": ("0.01", "0.5"),
        "base": ("2", "e", "10"),
        "discount": ("none", "log2", "[1, 0.5, 0.25]"),
        "no_features": ("drop", "error"),
    },
    "serendipity": {
        "expected": ("popular", "reference", "rank", "history"),
        "denominator": ("k", "n_rec"),
        "no_truth": ("skip", "zero", "nan", "error"),
        "no_features": ("drop", "error"),
    },
    "unexpectedness": {"denominator": ("n_rec", "k")},
    "overlap": {"denominator": ("union", "n_rec", "k", "min")},
    "rbo": {"p": ("0.9", "0.5"), "form": ("ext", "min", "truncated")},
    "repeat_ratio": {},
    "alpha_dcg": {"alpha": ("0.5", "0", "1", "0.3"), "denominator": ("one", "ideal", "all_subtopics")},
    "err_ia": {"alpha": ("0.5", "0.3"), "denominator": ("all_subtopics", "n_subtopics", "ideal")},
    "nrbp": {"alpha": ("0.5", "0.3"), "p": ("0.5", "0.8"), "denominator": ("all_subtopics", "ideal")},
    "subtopic_recall": {},
    "precision_ia": {},
    "map_ia": {},
    "ips": {"of": CLICK_METRICS, "p": POWERS, "clip": ("0", "0.3"), "average": ("user", "pooled")},
    "snips": {"of": CLICK_METRICS, "p": POWERS, "clip": ("0", "0.3"), "average": ("user", "pooled")},
}


def metric_texts(k: int | None) -> list[str]:
    """Every metric with every combination of its options, at a cut-off or without one."""
    cut = "" if k is None else f"@{k}"
    return [
        f"{metric}({', '.join(f'{name}={value}' for name, value in zip(options, chosen, strict=True))}){cut}"
        for metric, options in OPTIONS.items()
        for chosen in product(*options.values())
        if k is not None or not ({"k"} & set(chosen) and metric in ("personalization", "user_coverage"))
    ]


def random_row(rng: random.Random, complete: bool) -> dict[str, Any]:
    """Columns of one item; labels and features may be missing unless `complete`."""
    zero = rng.random() < 0.15
    row: dict[str, Any] = {
        "segment": rng.choice(["head", "tail", "tail"]),
        "category": rng.sample(["A", "B", "C", "D"], rng.choice([1, 1, 2, 3] if complete else [0, 1, 1, 2, 4])),
        "features": [0.0] * 3 if zero else [rng.choice([0.0, 1.0, -1.0, 0.5, 3.0]) for _ in range(3)],
    }
    if not complete and rng.random() < 0.1:
        del row["features"]
    return row


def random_clicks(rng: random.Random, truth: dict[Id, dict[Id, float]]) -> dict[str, Any]:
    """Logged propensities or ranks of the truth, complete but for some; nothing for most shops."""
    if rng.random() < 0.6:
        return {}
    ranked = rng.random() < 0.5
    numbers = [1, 2, 3] if ranked else [1.0, 0.5, 0.05]
    spoilt = [0, 4, 1.5, -1] if rng.random() < 0.2 else []
    logged = {
        user: {item: float(rng.choice(numbers + spoilt)) for item in items if rng.random() < 0.98}
        for user, items in truth.items()
    }
    return {"logged": logged, "examination": [1.0, rng.choice([0.5, math.nan]), 0.25] if ranked else None}


def random_subtopics(rng: random.Random, users: list[Id], items: list[Id]) -> dict[Id, dict[Id, list[float]]] | None:
    """Subtopics of most items for most users, also of items that are not relevant, and some twice."""
    if rng.random() < 0.2:
        return None
    numbers = [0.0, 1.0, 2.0, 7.0, -3.0]
    return {
        user: {item: rng.choices(numbers, k=rng.choice([1, 1, 2, 4])) for item in items if rng.random() < 0.8}
        for user in users
        if rng.random() < 0.9
    }


def random_shop(seed: int) -> Shop:
    """Draw a small shop in which the awkward cases are common.

    Empty lists and lists of one item, few items with tied popularity, items that the history, the table or the truth
    lack, users without history, truth, list or reference, repeated rows, several or no categories, zero vectors, one
    user or one item, ids that are integers or strings.
    """
    rng = random.Random(seed)
    n_items, n_users = rng.choice([1, 2, 4, 8, 12]), rng.choice([1, 2, 3, 6])
    numbers = rng.sample(range(100), n_items)
    catalogue: list[Id] = [f"i{number}" for number in numbers] if rng.random() < 0.5 else list(numbers)
    users: list[Id] = [f"u{n}" for n in range(n_users)] if rng.random() < 0.5 else [7 * n + 1 for n in range(n_users)]
    complete = rng.random() < 0.7
    in_table = catalogue if complete or rng.random() < 0.5 else rng.sample(catalogue, rng.randint(1, n_items))
    in_history = rng.sample(catalogue, rng.randint(1, n_items))

    def some(items: list[Id], longest: int) -> list[Id]:
        return rng.sample(items, rng.choice([0, 1, min(len(items), longest), rng.randint(0, min(len(items), longest))]))

    table = {item: random_row(rng, complete) for item in in_table}
    with_counts = rng.random() < 0.2
    if with_counts:
        for row in table.values():
            row["popularity"] = rng.choice([0, 1, 1, 2, 5])
    if rng.random() < 0.3:
        for row in table.values():
            del row["segment"]
    if rng.random() < 0.7:
        for row in table.values():
            row["propensity"] = rng.choice([1.0, 0.5, 0.2, 0.01])
        if rng.random() < 0.15:
            table[rng.choice(list(table))]["propensity"] = rng.choice([0.0, 2.0, -1.0, None])
    history = {user: [rng.choice(in_history) for _ in range(rng.choice([0, 1, 2, 5]))] for user in users}
    history |= {"other" if isinstance(users[0], str) else 1000: [in_history[0]] * 2}  # there is a row at least
    truth = {user: {item: rng.choice([1.0, 1.0, 2.0, 0.0]) for item in some(catalogue, 4)} for user in users}
    return Shop(
        lists={user: some(catalogue, 6) for user in users if rng.random() < 0.95},
        truth=truth,
        history={user: items for user, items in history.items() if items or rng.random() < 0.5},
        items=table,
        reference={user: some(catalogue, 6) for user in users if rng.random() < 0.7},
        n_items=rng.choice([None, n_items, n_items + 3]) if len(table) == n_items else n_items,
        n_users=5 + n_users if with_counts else None,
        **random_clicks(rng, truth),
        subtopics=random_subtopics(rng, users, catalogue),
    )
