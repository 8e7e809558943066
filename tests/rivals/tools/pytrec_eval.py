"""Answers of pytrec_eval (trec_eval 9 in C), under trec_eval's own names.

It takes {query: {document: grade}} and {query: {document: score}} with strings as ids, so ids become strings. It gives
a value per query; `compute_aggregated_measure` makes one of them, as in its examples. trec_eval orders by score, and
equal scores by document, descending.
"""

import json
import math
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import pytrec_eval

UNCUT = ("map", "ndcg", "recip_rank", "Rprec", "set_P", "set_recall", "set_relative_P", "set_map", "set_F")
UNCUT += ("11pt_avg", "binG", "bpref", "infAP", "iprec_at_recall", "Rprec_mult", "utility")
UNCUT += ("G", "Rndcg", "ndcg_rel", "gm_map", "gm_bpref")
CUT = ("map_cut", "ndcg_cut", "P", "recall", "relative_P", "success")
COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
F_PARAMETERS = ("0.25", "4.0")  # trec_eval calls it beta; it is the square
GRADED = ("graded", "tied", "judged_alone", "judged_empty", "real")
SKIPPED = {
    "rows": "pytrec_eval ranks documents of queries, and has no metrics of labelled rows",
    "duplicates": "a run is a dict, which holds a document once; parse_run: AssertionError in all cases",
}


def dicts_of(case):
    """Return truth and lists in the form of pytrec_eval."""
    return case["truth"], {user: {str(item): score for item, score in rows} for user, rows in case["recs"].items()}


def averages(qrels, run, measures, **options):
    """Return one value per measure, over the queries that are in both."""
    per_query = pytrec_eval.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
    names = sorted({name for values in per_query.values() for name in values})
    return {
        name: pytrec_eval.compute_aggregated_measure(name, [values[name] for values in per_query.values()])
        for name in names
    }


def ask(case):
    """Return every measure, at level 1 and, of graded truth, at level 2."""
    qrels, run = dicts_of(case)
    cut = [f"{name}.{','.join(map(str, case['ks']))}" for name in CUT]
    values = averages(qrels, run, {*UNCUT, *COUNTS, *cut})
    for parameter in F_PARAMETERS:
        found = averages(qrels, run, {f"set_F.{parameter}"})
        values[f"set_F_{parameter}"] = found["set_F"]
    if case["kind"] in GRADED:
        found = averages(qrels, run, {*UNCUT, *COUNTS, *cut}, relevance_level=2)
        values.update({f"{name}(relevance_level=2)": value for name, value in found.items()})
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"pytrec-eval-terrier": pytrec_eval.__version__},
            "values": {case["name"]: ask(case) for case in given["lists"] if case["kind"] not in SKIPPED},
            "skipped": SKIPPED,
            "names": sorted(pytrec_eval.supported_measures),
        }
    )
)
