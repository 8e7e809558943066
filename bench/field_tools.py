"""One tool on lists of a folder: `field_tools.py TOOL DISTRIBUTION FOLDER ROUNDS`, in the environment of the tool.

It prints JSON: the seconds to build the tool's own objects from flat arrays, those to evaluate them, the most memory
beyond the arrays, the values under the names of fastrec, and the version. It imports nothing of this project, because
tools need versions of packages that fastrec does not take.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Values = dict[str, float]
CUTOFFS = (5, 10, 20, 50, 100)
USERS_AT_ONCE = 4096  # of a matrix of scores
LONG = 30.0  # seconds after which a call is not repeated


class Lists:
    """Lists and truth of the same users as flat arrays, best items first."""

    def __init__(self, folder: Path) -> None:
        names = ("rec_items", "rec_indptr", "truth_items", "truth_indptr")
        self.rec_items, self.rec_indptr, self.truth_items, self.truth_indptr = (
            np.load(folder / f"{name}.npy") for name in names
        )
        self.n_users = len(self.rec_indptr) - 1

    def rows(self) -> tuple[Array, Array, Array]:
        """Return the users, the items and the ranks from 1 of all rows of the lists."""
        users = np.repeat(np.arange(self.n_users), np.diff(self.rec_indptr))
        return users, self.rec_items, np.arange(len(users)) - self.rec_indptr[users] + 1

    def held(self) -> tuple[Array, Array]:
        """Return the users and the items of all rows of the truth."""
        return np.repeat(np.arange(self.n_users), np.diff(self.truth_indptr)), self.truth_items

    def hits(self) -> Array:
        """Return which rows of the lists are in the user's truth."""
        users, items, _ = self.rows()
        of_truth, held = self.held()
        width = int(max(items.max(), held.max())) + 1
        return np.isin(users * width + items, of_truth * width + held)

    def dicts(self) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
        """Return lists and truth as dicts of strings, as tools of information retrieval take them."""
        recs, truth = (
            np.split(items, indptr[1:-1])
            for items, indptr in ((self.rec_items, self.rec_indptr), (self.truth_items, self.truth_indptr))
        )
        run = {str(u): {str(i): -float(at) for at, i in enumerate(row.tolist())} for u, row in enumerate(recs)}
        return run, {str(u): dict.fromkeys(map(str, row.tolist()), 1) for u, row in enumerate(truth)}


def names_of(metrics: str) -> list[str]:
    """Return names of metrics at all cut-offs; {k} stands for the cut-off."""
    return [name.replace("{k}", str(k)) for name in metrics.split() for k in CUTOFFS]


# Each function builds the objects of a tool, and returns a call that evaluates them; values have the names of fastrec.


def fastrec(lists: Lists) -> Callable[[], Values]:
    """All six metrics, from the arrays themselves."""
    import fastrec as tool

    recs, truth = (lists.rec_items, lists.rec_indptr), (lists.truth_items, lists.truth_indptr)
    wanted = names_of("ndcg@{k} recall@{k} precision@{k} map@{k} mrr@{k} hit_rate@{k}")
    return lambda: dict(tool.evaluate(recs, truth, wanted).items())


def ranx(lists: Lists) -> Callable[[], Values]:
    """All six metrics; its average precision divides by the number of relevant items."""
    import ranx as tool

    run, qrels = lists.dicts()
    given = tool.Qrels(qrels), tool.Run(run)
    ours = names_of("ndcg@{k} recall@{k} precision@{k} map(denominator=n_rel)@{k} mrr@{k} hit_rate@{k}")
    theirs = [name.replace("(denominator=n_rel)", "") for name in ours]

    def evaluate() -> Values:
        found = tool.evaluate(*given, theirs)
        return {name: float(found[own]) for name, own in zip(ours, theirs, strict=True)}

    return evaluate


def pytrec_eval(lists: Lists) -> Callable[[], Values]:
    """Five of the metrics, per query by trec_eval in C; MRR has no cut-off there."""
    import pytrec_eval as tool

    run, qrels = lists.dicts()
    cut = ",".join(map(str, CUTOFFS))
    theirs = {
        "ndcg_cut": "ndcg@{k}",
        "recall": "recall@{k}",
        "P": "precision@{k}",
        "map_cut": "map(denominator=n_rel)@{k}",
        "success": "hit_rate@{k}",
    }
    evaluator = tool.RelevanceEvaluator(qrels, {f"{name}.{cut}" for name in theirs})

    def evaluate() -> Values:
        found = list(evaluator.evaluate(run).values())
        return {
            ours.replace("{k}", str(k)): sum(one[f"{name}_{k}"] for one in found) / len(found)
            for name, ours in theirs.items()
            for k in CUTOFFS
        }

    return evaluate


def ir_measures(lists: Lists) -> Callable[[], Values]:
    """All six metrics by its default providers."""
    import ir_measures as tool

    run, qrels = lists.dicts()
    theirs = {
        "ndcg@{k}": tool.nDCG,
        "recall@{k}": tool.R,
        "precision@{k}": tool.P,
        "map(denominator=n_rel)@{k}": tool.AP,
        "mrr@{k}": tool.RR,
        "hit_rate@{k}": tool.Success,
    }
    asked = {measure @ k: name.replace("{k}", str(k)) for name, measure in theirs.items() for k in CUTOFFS}

    def evaluate() -> Values:
        found = tool.calc_aggregate(list(asked), qrels, run)
        return {name: float(found[measure]) for measure, name in asked.items()}

    return evaluate


def rectools(lists: Lists) -> Callable[[], Values]:
    """All six metrics; its NDCG has the ideal of k relevant items, its average precision divides by all of them."""
    import pandas as pd
    from rectools import Columns, metrics

    users, items, ranks = lists.rows()
    of_truth, held = lists.held()
    recs = pd.DataFrame({Columns.User: users, Columns.Item: items, Columns.Rank: ranks})
    truth = pd.DataFrame({Columns.User: of_truth, Columns.Item: held})
    theirs = {
        "ndcg(ideal=k)@{k}": metrics.NDCG,
        "recall@{k}": metrics.Recall,
        "precision@{k}": metrics.Precision,
        "map(denominator=n_rel)@{k}": metrics.MAP,
        "mrr@{k}": metrics.MRR,
        "hit_rate@{k}": metrics.HitRate,
    }
    asked = {name.replace("{k}", str(k)): metric(k=k) for name, metric in theirs.items() for k in CUTOFFS}
    return lambda: {name: float(own) for name, own in metrics.calc_metrics(asked, recs, truth).items()}


def recommenders(lists: Lists) -> Callable[[], Values]:
    """Four metrics, one call each."""
    import pandas as pd
    from recommenders.evaluation import python_evaluation as tool

    users, items, ranks = lists.rows()
    of_truth, held = lists.held()
    recs = pd.DataFrame({"userID": users, "itemID": items, "prediction": -ranks.astype(float)})
    truth = pd.DataFrame({"userID": of_truth, "itemID": held, "rating": 1.0})
    theirs = {
        "ndcg@{k}": tool.ndcg_at_k,
        "recall@{k}": tool.recall_at_k,
        "precision@{k}": tool.precision_at_k,
        "map@{k}": tool.map_at_k,
    }
    return lambda: {
        name.replace("{k}", str(k)): float(metric(truth, recs, k=k)) for name, metric in theirs.items() for k in CUTOFFS
    }


def replay(lists: Lists) -> Callable[[], Values]:
    """All six metrics, from Polars frames, its fastest input."""
    import polars as pl
    from replay import metrics

    users, items, ranks = lists.rows()
    of_truth, held = lists.held()
    recs = pl.DataFrame({"query_id": users, "item_id": items, "rating": -ranks.astype(float)})
    truth = pl.DataFrame({"query_id": of_truth, "item_id": held})
    theirs = {
        "ndcg": metrics.NDCG,
        "recall": metrics.Recall,
        "precision": metrics.Precision,
        "map": metrics.MAP,
        "mrr": metrics.MRR,
        "hit_rate": metrics.HitRate,
    }

    def evaluate() -> Values:
        found = {}
        for name, metric in theirs.items():
            for text, value in metric(list(CUTOFFS))(recs, truth).items():
                found[f"{name}@{text.partition('@')[2]}"] = float(value)
        return found

    return evaluate


def recbole(lists: Lists) -> Callable[[], Values]:
    """All six metrics, from the positions of hits that its trainer collects."""
    import torch
    from recbole.data.interaction import Interaction  # noqa: F401 - sets up torch as its trainer does
    from recbole.evaluator import Evaluator
    from recbole.evaluator.collector import DataStruct

    width = max(CUTOFFS)
    hits = lists.hits().reshape(lists.n_users, width)
    n_relevant = np.diff(lists.truth_indptr)[:, None]
    collected = DataStruct()
    collected.set("rec.topk", torch.from_numpy(np.concatenate([hits, n_relevant], axis=1).astype(np.int32)))
    config = {
        "metrics": ["NDCG", "Recall", "Precision", "MAP", "MRR", "Hit"],
        "topk": list(CUTOFFS),
        "metric_decimal_place": 15,
        "eval_args": {"mode": "full"},
        "device": "cpu",
    }
    evaluator = Evaluator(config)

    def evaluate() -> Values:
        found = evaluator.evaluate(collected)
        return {name.replace("hit@", "hit_rate@"): float(value) for name, value in found.items()}

    return evaluate


def torchmetrics(lists: Lists) -> Callable[[], Values]:
    """Three metrics that do not need relevant items outside the lists, each at each cut-off."""
    import torch
    from torchmetrics import retrieval

    users, _, ranks = lists.rows()
    given = torch.from_numpy((1 / ranks).astype(np.float32)), torch.from_numpy(lists.hits()), torch.from_numpy(users)
    theirs = {
        "precision@{k}": retrieval.RetrievalPrecision,
        "mrr@{k}": retrieval.RetrievalMRR,
        "hit_rate@{k}": retrieval.RetrievalHitRate,
    }

    def evaluate() -> Values:
        found = {}
        for name, metric in theirs.items():
            for k in CUTOFFS:
                found[name.replace("{k}", str(k))] = float(metric(top_k=k)(*given[:2], indexes=given[2]))
        return found

    return evaluate


def sklearn(lists: Lists) -> Callable[[], Values]:
    """NDCG alone: rows of scores, with places for relevant items outside the list."""
    from sklearn.metrics import ndcg_score

    hits = lists.hits().reshape(lists.n_users, max(CUTOFFS))
    missed = np.diff(lists.truth_indptr) - hits.sum(axis=1)
    places = np.arange(int(missed.max()))
    relevant = np.concatenate([hits, places < missed[:, None]], axis=1).astype(np.float32)
    scores = -np.arange(relevant.shape[1], dtype=np.float32)
    blocks = range(0, lists.n_users, USERS_AT_ONCE)

    def evaluate() -> Values:
        totals = dict.fromkeys(CUTOFFS, 0.0)
        for first in blocks:
            own = relevant[first : first + USERS_AT_ONCE]
            for k in CUTOFFS:
                totals[k] += ndcg_score(own, np.broadcast_to(scores, own.shape), k=k, ignore_ties=True) * len(own)
        return {f"ndcg@{k}": float(total) / lists.n_users for k, total in totals.items()}

    return evaluate


def polars(lists: Lists) -> Callable[[], Values]:
    """All six metrics by one query, written by hand."""
    import polars as pl

    users, items, ranks = lists.rows()
    of_truth, held = lists.held()
    recs = pl.DataFrame({"user": users, "item": items, "rank": ranks})
    truth = pl.DataFrame({"user": of_truth, "item": held})
    ideals = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(max(CUTOFFS)) + 2))])
    sums = []
    for k in CUTOFFS:
        within = pl.col("rank") <= k
        sums += [
            within.sum().alias(f"hits{k}"),
            (1 / (pl.col("rank") + 1).log(2)).filter(within).sum().alias(f"dcg{k}"),
            (pl.col("found") / pl.col("rank")).filter(within).sum().alias(f"precisions{k}"),
        ]

    def evaluate() -> Values:
        hits = recs.lazy().join(truth.lazy(), on=["user", "item"]).sort("user", "rank")
        hits = hits.with_columns(found=pl.col("rank").cum_count().over("user"))
        by_user = hits.group_by("user").agg(*sums, first=pl.col("rank").min())
        sizes = truth.lazy().group_by("user").agg(n_rel=pl.len())
        table = sizes.join(by_user, on="user", how="left").collect()
        return _means({name: table[name].fill_null(0).to_numpy() for name in table.columns}, ideals)

    return evaluate


def duckdb(lists: Lists) -> Callable[[], Values]:
    """All six metrics by one query, written by hand."""
    import duckdb as tool
    import pyarrow as pa

    users, items, ranks = lists.rows()
    of_truth, held = lists.held()
    con = tool.connect()
    con.execute("SET enable_progress_bar = false")
    con.register("given", pa.table({"user_id": users, "item_id": items, "rank": ranks}))
    con.execute("CREATE TABLE recs AS FROM given")
    con.register("held", pa.table({"user_id": of_truth, "item_id": held}))
    con.execute("CREATE TABLE truth AS FROM held")
    ideals = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(max(CUTOFFS)) + 2))])
    sums = ", ".join(
        f"count(*) FILTER (rank <= {k}) AS hits{k}, sum(1 / log2(rank + 1)) FILTER (rank <= {k}) AS dcg{k}, "
        f"sum(found / rank) FILTER (rank <= {k}) AS precisions{k}"
        for k in CUTOFFS
    )
    query = f"""
        WITH hits AS (
            SELECT user_id, rank, row_number() OVER (PARTITION BY user_id ORDER BY rank) AS found
            FROM recs JOIN truth USING (user_id, item_id)
        ), by_user AS (SELECT user_id, min(rank) AS first, {sums} FROM hits GROUP BY user_id)
        SELECT * FROM (SELECT user_id, count(*) AS n_rel FROM truth GROUP BY user_id) LEFT JOIN by_user USING (user_id)
    """  # noqa: S608 - numbers of this file

    def evaluate() -> Values:
        table = con.execute(query).fetchnumpy()
        columns = {name: np.ma.filled(np.ma.asarray(column, dtype=float), 0.0) for name, column in table.items()}
        return _means(columns, ideals)

    return evaluate


def _means(of_users: dict[str, Array], ideals: Array) -> Values:
    """Return the metrics from sums by user."""
    n_rel, first = of_users["n_rel"].astype(int), of_users["first"]
    found = {}
    for k in CUTOFFS:
        hits, most = of_users[f"hits{k}"], np.minimum(n_rel, k)
        reached = np.where((first > 0) & (first <= k), 1 / np.maximum(first, 1), 0.0)
        of_k = {
            "ndcg": of_users[f"dcg{k}"] / ideals[most],
            "recall": hits / n_rel,
            "precision": hits / k,
            "map": of_users[f"precisions{k}"] / most,
            "mrr": reached,
            "hit_rate": hits > 0,
        }
        found |= {f"{name}@{k}": float(values.mean()) for name, values in of_k.items()}
    return found


TOOLS = {
    "fastrec": fastrec,
    "ranx": ranx,
    "pytrec-eval-terrier": pytrec_eval,
    "ir-measures": ir_measures,
    "rectools": rectools,
    "recommenders": recommenders,
    "replay-rec": replay,
    "recbole": recbole,
    "torchmetrics": torchmetrics,
    "scikit-learn": sklearn,
    "polars": polars,
    "duckdb": duckdb,
}


class Memory:
    """The most memory of this process from now on, in bytes."""

    def __init__(self) -> None:
        self._start = self._most = self._now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def most(self) -> int:
        """Return the most memory beyond that at the start."""
        self._stop.set()
        self._thread.join()
        return max(self._most, self._now()) - self._start

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self._most = max(self._most, self._now())

    @staticmethod
    def _now() -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


def main() -> None:
    """Print what was measured."""
    tool, distribution, folder, rounds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    small = Lists(folder / "small")
    TOOLS[tool](small)()  # imports and compiles what it needs
    lists = Lists(folder)
    memory = Memory()
    start = time.perf_counter()
    evaluate = TOOLS[tool](lists)
    prepared = time.perf_counter() - start
    seconds: list[float] = []
    values: Values = {}
    while len(seconds) < rounds and sum(seconds) < LONG:
        start = time.perf_counter()
        values = evaluate()
        seconds.append(time.perf_counter() - start)
    found = {
        "prepared": prepared,
        "evaluated": float(np.median(seconds)),
        "memory": memory.most(),
        "values": values,
        "version": importlib.metadata.version(distribution),
    }
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, with files named like packages
    main()
