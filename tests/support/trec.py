"""The run, the judgements and the printed values that come with trec_eval."""

import os
from collections import defaultdict
from pathlib import Path

FOLDER = os.environ.get("FASTREC_TEST_DATA")


def read_trec():
    folder = Path(FOLDER) / "trec_eval"
    run, judged, printed = defaultdict(dict), defaultdict(dict), defaultdict(dict)
    for line in (folder / "results.test").read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        run[topic][document] = float(score)
    for line in (folder / "qrels.test").read_text().splitlines():
        topic, _, document, grade = line.split()
        judged[topic][document] = float(grade)
    for line in (folder / "out.test.aq").read_text().splitlines():
        measure, topic, value = line.split()
        printed[topic][measure] = value
    return run, judged, printed


TREC = {
    "map": "map(denominator=n_rel)",
    "Rprec": "r_precision",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    "rbp": "rbp(p=0.9)",
    "num_rel_ret": "hits",
    "set_P": "precision(denominator=min_k_n_rec)@1000",
    "set_relative_P": "precision(denominator=min_k_n_rel)@500",  # every topic has 500 documents
    "set_recall": "recall",
    "set_F": "f1@500",
}
