"""Answers of RecTools for models: metrics of what `ImplicitALSWrapperModel` recommends with the factors of a case.

The wrapped `AlternatingLeastSquares` is fitted first, as the tool requires, and then gets the factors. Items of `train`
are left out by `filter_viewed`; every item of the case is in the data set. Without `filter_viewed` nothing is left out;
these values end in "(viewed)". The model knows no users without items in `train`; their truth is left out.
"""

import importlib.metadata
import json
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import numpy as np
import pandas as pd
from implicit.als import AlternatingLeastSquares
from rectools import Columns
from rectools.dataset import Dataset, IdMap, Interactions
from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics
from rectools.models import ImplicitALSWrapperModel

METRICS = {"precision": Precision, "recall": Recall, "map": MAP, "ndcg": NDCG, "mrr": MRR, "hit_rate": HitRate}


def interactions(rows):
    """Return rows of items as a table."""
    pairs = [(user, item, 1.0, "2020-01-01") for user, own in enumerate(rows) for item in own]
    return pd.DataFrame(pairs, columns=[Columns.User, Columns.Item, Columns.Weight, Columns.Datetime])


def ask(case):
    """Return all metrics of a case at every cut-off."""
    users, items = (np.array(case[name], dtype=np.float32) for name in ("users", "items"))
    maps = [IdMap.from_values(np.arange(len(factors))) for factors in (users, items)]
    data = Dataset(*maps, Interactions.from_raw(interactions(case["train"]), *maps))
    model = ImplicitALSWrapperModel(AlternatingLeastSquares(factors=users.shape[1], iterations=1, num_threads=1))
    model.fit(data)
    model.model.user_factors, model.model.item_factors = users, items
    truth, values = interactions(case["truth"]), {}
    for filtered, end in ((True, ""), (False, "(viewed)")):
        seen = [user for user, own in enumerate(case["train"]) if own]
        reco = model.recommend(seen, data, k=max(case["ks"]), filter_viewed=filtered)
        asked = {f"{name}{end}@{k}": metric(k=k) for name, metric in METRICS.items() for k in case["ks"]}
        values |= calc_metrics(asked, reco=reco, interactions=truth[truth[Columns.User].isin(seen)])
    return {name: float(value) for name, value in values.items()}


def main():
    """Ask for every case."""
    values = {case["name"]: ask(case) for case in json.load(sys.stdin)["models"]}
    versions = {package: importlib.metadata.version(package) for package in ("rectools", "pandas", "numpy")}
    print(json.dumps({"versions": versions, "values": values, "skipped": {}, "names": []}))


main()
