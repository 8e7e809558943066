"""Answers of implicit for models: `ranking_metrics_at_k` of an `AlternatingLeastSquares` with the factors of a case.

Rows of users without relevant items are left out by the tool. Items of `train` count as seen.
"""

import json
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import implicit
import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix

NAMES = {"precision": "precision", "map": "map", "ndcg": "ndcg"}


def matrix(rows, shape):
    """Return rows of items as a sparse matrix."""
    indptr = np.cumsum([0, *map(len, rows)])
    items = np.array([item for row in rows for item in row], dtype=np.int32)
    return csr_matrix((np.ones(len(items), dtype=np.float32), items, indptr), shape=shape)


def ask(case):
    """Return all metrics of a case at every cut-off."""
    model = AlternatingLeastSquares(factors=len(case["items"][0]), num_threads=1)
    model.user_factors = np.array(case["users"], dtype=np.float32)
    model.item_factors = np.array(case["items"], dtype=np.float32)
    shape = (len(case["users"]), len(case["items"]))
    train, test = matrix(case["train"], shape), matrix(case["truth"], shape)
    values = {}
    for k in case["ks"]:
        found = ranking_metrics_at_k(model, train, test, K=k, show_progress=False, num_threads=1)
        values.update({f"{NAMES[name]}@{k}": float(value) for name, value in found.items() if name in NAMES})
    return values


def main():
    """Ask for every case."""
    values = {case["name"]: ask(case) for case in json.load(sys.stdin)["models"]}
    print(json.dumps({"versions": {"implicit": implicit.__version__}, "values": values, "skipped": {}, "names": []}))


main()
