"""Answers of Cornac, from `BaseMethod.from_splits(...).evaluate`.

It evaluates a model, so it gets one with a `score` that returns the scores of the lists. It ranks the whole catalogue
for every user of its test set: after a list come the other items of the case, by ascending id, then the rest of the
catalogue, each with its own score below 0. Its metrics with cut-offs run once per cut-off, and those without run
alone, because it sorts only as far as the largest cut-off of a call. A user who has seen everything makes the
catalogue known; ids stay unchanged. Each scored row is an item of one user only.
"""

import contextlib
import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import cornac
import numpy as np
from cornac import metrics
from cornac.eval_methods import BaseMethod
from cornac.models import Recommender

AT_K = {
    "hit_rate": metrics.HitRatio,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
    "f1": metrics.FMeasure,
    "ndcg": metrics.NDCG,
    "ncrr": metrics.NCRR,
}
UNCUT = {"mrr": metrics.MRR} | AT_K
OF_SCORES = {"map": metrics.MAP, "gauc": metrics.AUC}  # these tell ties from an order
ERRORS = {"mae": metrics.MAE, "mse": metrics.MSE, "rmse": metrics.RMSE}
SKIPPED = {
    "no_recs": "it ranks the catalogue for every user: nobody is without a list",
    "empty_list": "it ranks the catalogue for every user: no list is empty",
    "judged_alone": "it ranks the catalogue for every user: nobody is without a list",
    "judged_empty": "it ranks the catalogue for every user: no list is empty",
    "duplicates": "it ranks items by their scores: none comes twice",
    "tied": "equal scores stand in the order that an unstable sort leaves them in; only its map and AUC are kept",
}
EVERYTHING, LEAST, MOST = 0, 0.0, 5.0  # a user, and the range for clipping predicted ratings
THRESHOLD = 3  # beside the 1 that is relevant by default


class Scored(Recommender):
    """Model that knows its scores beforehand."""

    def __init__(self, scores):
        super().__init__("Scored")
        self.scores = scores

    def score(self, user_idx, item_idx=None):
        """Return the scores of all items for a user, or one of them."""
        user = list(self.train_set.uid_map)[user_idx]
        found = np.array([self.scores[user][item] for item in self.train_set.iid_map])
        return found if item_idx is None else found[item_idx]


def evaluate(splits, asked, *, user_based=True, threshold=1.0):
    """Return the means that it reports: {our name: value}."""
    train, test, scores = splits
    method = BaseMethod.from_splits(train, test, rating_threshold=threshold, seed=1)
    result, _ = method.evaluate(Scored(scores), list(asked.values()), user_based=user_based)
    return {name: number(result.metric_avg_results[metric.name]) for name, metric in asked.items()}


def catalogue(case):
    """Return the items that occur, in ascending order, and then all others."""
    items = {item for pairs in case["recs"].values() for item, _ in pairs}
    items |= {int(item) for held in case["truth"].values() for item in held}
    return [*sorted(items), *(f"other {at}" for at in range(len(items), case["n_items"]))]


def splits_of_lists(case):
    """Return training, test and scores."""
    items = catalogue(case)
    users = {int(user): user for user in (*case["truth"], *case["recs"])}
    below = {item: -float(at + 1) for at, item in enumerate(items)}
    scores = {user: below | dict(case["recs"].get(text, [])) for user, text in users.items()}
    train = [(EVERYTHING, item, MOST) for item in items] + [(user, items[0], LEAST) for user in users]
    test = [
        (int(user), int(item), float(grade)) for user, held in case["truth"].items() for item, grade in held.items()
    ]
    return train, test, scores


def ask_lists(case):
    """Return groups of metrics that one call can evaluate; of grades also with a threshold."""
    splits, cut = (
        splits_of_lists(case),
        [{f"{name}@{k}": metric(k) for name, metric in AT_K.items()} for k in case["ks"]],
    )
    groups = [made(OF_SCORES)] if case["kind"] == "tied" else [made(OF_SCORES), *cut, made(UNCUT)]
    values, errors = answers(splits, groups)
    if case["kind"] == "graded":
        found, more = answers(splits, [made(OF_SCORES), *cut], threshold=THRESHOLD)
        values.update({with_threshold(name): value for name, value in found.items()})
        errors += [f"rating_threshold={THRESHOLD}: {text}" for text in more]
    return values, errors


def made(classes):
    """Return metrics without cut-offs."""
    return {name: metric() for name, metric in classes.items()}


def with_threshold(metric):
    """Return a name with the threshold."""
    name, at, k = metric.partition("@")
    return f"{name}(rating_threshold={THRESHOLD}){at}{k}"


def splits_of_rows(case):
    """Return a training set in which every user has seen the rows of the others, a test set and scores."""
    of = dict(enumerate(case["users"]))
    train = [(EVERYTHING, row, MOST if row else LEAST) for row in of]
    train += [(user, row, 1.0) for user in set(case["users"]) for row in of if of[row] != user]
    test = [
        (user, row, float(label)) for row, (user, label) in enumerate(zip(of.values(), case["labels"], strict=True))
    ]
    scores = dict(enumerate(case["scores"]))
    return train, test, dict.fromkeys(of.values(), scores)


def ask_rows(case):
    """Return errors over rows and by user, and metrics that rank the rows of a user."""
    splits = splits_of_rows(case)
    values, errors = answers(splits, [] if case["kind"] == "graded_rows" else [made(OF_SCORES)])
    values.update(evaluate(splits, made(ERRORS), user_based=False))
    by_user = evaluate(splits, made(ERRORS))
    return values | {f"{name}(user_based=True)": value for name, value in by_user.items()}, errors


def answers(splits, groups, **options):
    """Return its answers for each group of metrics, with its errors."""
    values, errors = {}, []
    for asked in groups:
        try:
            values.update(evaluate(splits, asked, **options))
        except (ValueError, ZeroDivisionError, IndexError) as error:
            errors.append(f"{next(iter(asked))}: {type(error).__name__}: {error}")
    return values, errors


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case that it can hold."""
    warnings.simplefilter("ignore")
    given = json.load(sys.stdin)
    values, errors = {}, Counter()
    with contextlib.redirect_stdout(sys.stderr):
        for ask, cases in ((ask_lists, given["lists"]), (ask_rows, given["rows"])):
            for case in cases:
                if case["kind"] not in SKIPPED or case["kind"] == "tied":
                    values[case["name"]], found = ask(case)
                    errors.update((case["kind"], text) for text in found)
    skipped = dict(SKIPPED)
    for (kind, text), count in errors.items():
        skipped[kind] = "; ".join([*filter(None, [skipped.get(kind)]), f"{text} in {count} cases"])
    names = sorted(name for name, one in vars(metrics).items() if isinstance(one, type))
    answer = {"versions": {"cornac": cornac.__version__}, "values": values, "skipped": skipped, "names": names}
    print(json.dumps(answer))


main()
