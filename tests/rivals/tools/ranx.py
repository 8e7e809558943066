"""Answers of ranx, under its own names.

`Qrels` and `Run` are made of dicts with strings as ids, so ids become strings. By default queries must be the same on
both sides; otherwise the call has `make_comparable=True`, an option of `evaluate`. `evaluate` also takes plain dicts
and orders them differently: these are the variants with `inputs=dict`.
"""

import contextlib
import importlib.metadata
import json
import math
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import ranx

CUT = ("hits", "hit_rate", "precision", "recall", "f1", "mrr", "map", "dcg", "dcg_burges", "ndcg", "ndcg_burges")
UNCUT = (*CUT, "r-precision", "rbp.80", "rbp.95")
GRADED = ("graded", "tied", "judged_alone", "judged_empty", "real")
DICTS = ("binary", "graded", "tied", "short", "real")
SKIPPED = {
    "rows": "ranx ranks documents of queries, and has no metrics of labelled rows",
    "duplicates": "a Run is made of a dict, which holds a document once",
}


def names_of(case):
    """Return the values of `evaluate` by name."""
    names = [*UNCUT, *(f"{name}@{k}" for name in CUT for k in case["ks"])]
    if case["kind"] in GRADED:
        names += [f"{name}-l2" for name in names]
    return names


def ask_objects(case, names, *, make_comparable):
    """Evaluate `Qrels` and `Run`."""
    qrels, run = ranx.Qrels(case["truth"]), ranx.Run(dicts_of(case))
    return ranx.evaluate(qrels, run, names, make_comparable=make_comparable)


def ask_dicts(case, names):
    """Evaluate plain dicts, which must have the same order of queries."""
    run = dicts_of(case)
    return ranx.evaluate(case["truth"], {user: run[user] for user in case["truth"]}, names)


def dicts_of(case):
    """Return lists as dicts of scores."""
    return {user: {str(item): score for item, score in rows} for user, rows in case["recs"].items()}


def variants(values, option):
    """Return names with an option: ndcg(option)@3."""
    found = {}
    for name, value in values.items():
        plain, at, k = name.partition("@")
        found[f"{plain}({option}){at}{k}"] = value
    return found


def ask(case, failures):
    """Return the answers by default, if there are any, and with the options."""
    names, values = names_of(case), {}
    ways = [("", lambda: ask_objects(case, names, make_comparable=False))]
    if case["recs"].keys() != case["truth"].keys() or case["kind"] in ("empty_list", "judged_empty"):
        ways.append(("make_comparable=True", lambda: ask_objects(case, names, make_comparable=True)))
    if case["kind"] in DICTS:
        ways.append(("inputs=dict", lambda: ask_dicts(case, names)))
    for option, way in ways:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = way()
        except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
            failures[f"{case['kind']}: {option or 'default'}: {type(error).__name__}: {error}"] += 1
        else:
            values |= variants(found, option) if option else found
    return {name: float(value) if math.isfinite(value) else None for name, value in values.items()}


def main():
    """Answer the cases on standard input."""
    given, failures = json.load(sys.stdin), Counter()
    values = {case["name"]: ask(case, failures) for case in given["lists"] if case["kind"] not in SKIPPED}
    answer = {
        "versions": {package: importlib.metadata.version(package) for package in ("ranx", "numba", "numpy")},
        "values": values,
        "names": sorted(ranx.metrics.__all__),
        "skipped": SKIPPED | {what: f"in {count} cases" for what, count in sorted(failures.items())},
    }
    print(json.dumps(answer))


main()
