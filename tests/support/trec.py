"""The run, the judgements and the printed values that come with trec_eval."""

import os
from collections import defaultdict
from pathlib import Path

from fastrec.metrics.calls import parse

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
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_nonrel_judged_ret": "num_nonrel_judged_ret",
    "utility": "utility",
    "set_map": "set_ap",
    "bpref": "bpref",
    "infAP": "inf_ap",
    "binG": "bin_g",
    "G": "normalized_gain",
    "ndcg_rel": "ndcg_rel",
    "Rndcg": "rndcg",
    "11pt_avg": "eleven_point_average(rounding=nearest)",  # of trec_eval 10
    "rbp_resid": "rbp_residual(p=0.9, tail=unjudged)",
    "set_P": "precision(denominator=min_k_n_rec)@1000",
    "set_relative_P": "precision(denominator=min_k_n_rel)@500",  # every topic has 500 documents
    "set_recall": "recall",
    "set_F": "f1@500",
}
TREC |= {f"iprec_at_recall_{i / 10:.2f}": f"iprec_at_recall(level={i / 10}, rounding=nearest)" for i in range(11)}
TREC |= {f"Rprec_mult_{i / 10:.2f}": f"r_precision(multiple={i / 10})" for i in range(2, 22, 2)}
TREC |= {f"unj_{k}": f"unjudged@{k}" for k in (5, 10, 20)}
TREC = {measure: parse(text).text for measure, text in TREC.items()}
