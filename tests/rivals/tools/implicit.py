"""Answers of implicit, from `implicit.evaluation.ranking_metrics_at_k`.

It evaluates a model, so it gets one with a `recommend` that returns the lists. Users and items are positions in its
sparse matrices: ids are numbered in ascending order, those of a case first and the rest of the catalogue after them. A
list is as long as the cut-off; a shorter one is padded with -1, like the models of the tool do without further items.
Nothing counts as seen in training.
"""

import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import implicit
import numpy as np
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix

NAMES = {"precision": "precision", "map": "map", "ndcg": "ndcg", "auc": "limited_auc"}


class Lists:
    """Model that has made its recommendations beforehand."""

    def __init__(self, lists):
        self.lists = lists

    def recommend(self, userid, user_items, N=10, **_options):
        """Return the first N of the list of each user."""
        found = np.full((len(userid), N), -1, dtype=np.int32)
        for row, user in enumerate(userid):
            own = self.lists[user][:N]
            found[row, : len(own)] = own
        return found, np.zeros(found.shape, dtype=np.float32)


def numbered(case):
    """Return the position of each user and each item of a case."""
    users = sorted({*case["recs"], *case["truth"]}, key=int)
    items = {item for pairs in case["recs"].values() for item, _ in pairs}
    items |= {int(item) for held in case["truth"].values() for item in held}
    return {user: at for at, user in enumerate(users)}, {item: at for at, item in enumerate(sorted(items))}


def ask(case):
    """Return all its metrics at every cut-off."""
    users, items = numbered(case)
    shape = (len(users), max(case["n_items"], len(items)))
    rows = [
        (users[user], items[int(item)], grade) for user, held in case["truth"].items() for item, grade in held.items()
    ]
    at_user, at_item, grades = zip(*rows, strict=True)
    test = csr_matrix((np.array(grades, dtype=np.float32), (at_user, at_item)), shape=shape)
    train = csr_matrix(shape, dtype=np.float32)
    model = Lists({at: [items[item] for item, _ in case["recs"].get(user, [])] for user, at in users.items()})
    values = {}
    for k in case["ks"]:
        found = ranking_metrics_at_k(model, train, test, K=k, show_progress=False, num_threads=1)
        values.update({f"{NAMES[name]}@{k}": number(value) for name, value in found.items()})
    return values


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    given = json.load(sys.stdin)
    values, errors = {}, Counter()
    for case in given["lists"]:
        try:
            values[case["name"]] = ask(case)
        except (ValueError, ZeroDivisionError, IndexError) as error:
            errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    skipped["rows"] = "it takes no scored rows"
    names = sorted(name for name in vars(implicit.evaluation) if name.endswith("_at_k"))
    answer = {"versions": {"implicit": implicit.__version__}, "values": values, "skipped": skipped, "names": names}
    print(json.dumps(answer))


main()
