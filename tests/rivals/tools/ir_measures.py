"""Answers of ir_measures, under its own names (`str` of each measure).

It takes {query: {document: grade}} and {query: {document: score}} with strings as ids, so ids become strings.
`calc_aggregate` averages over the queries of the truth. It passes measures on to other programs: most to pytrec_eval,
`RR@k` to a copy of MS MARCO's script, `ERR` and `nDCG(dcg='exp-log2')` to gdeval.pl, which prints five digits, `RBP`
and `SDCG` to cwl_eval, and measures of subtopics to pyndeval, which takes cut-offs up to 20.
"""

import importlib.metadata
import json
import logging
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.pop(0)  # this folder, with files named like the tools
sys.path.append(str(Path(__file__).resolve().parent.parent))

import cases
import ir_measures
from ir_measures import (
    AP,
    AP_IA,
    BPM,
    ERR,
    INSQ,
    INST,
    NERR8,
    NERR9,
    NERR10,
    NERR11,
    NRBP,
    P_IA,
    RBP,
    RR,
    SDCG,
    Accuracy,
    Bpref,
    Compat,
    IPrec,
    Judged,
    NumRet,
    P,
    R,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    StRecall,
    Success,
    infAP,
    nDCG,
)
from ir_measures.util import GenericQrel

logging.disable(logging.WARNING)  # cwl_eval warns in every run of grades that did not occur
MAX_GRADES = {"real": 10}  # by kind, otherwise:
MAX_GRADE = 4  # which is also the largest that gdeval.pl takes
MAX_CUTOFF = 20  # of pyndeval
GRADED = ("graded", "tied", "judged_alone", "judged_empty", "real")
SKIPPED = {
    "rows": "ir_measures ranks documents of queries, and has no metrics of labelled rows",
    "duplicates": "a run is a dict, which holds a document once; rows of a document twice are made into such a dict",
}


def measures_of(case):
    """Return the measures, to be asked one by one, because measures of one call can share a program's run."""
    largest = MAX_GRADES.get(case["kind"], MAX_GRADE)
    exp2 = {grade: 2**grade - 1 for grade in range(1, largest + 1)}
    asked = [AP, nDCG, RR, Rprec, SetP, SetR, SetF, SetAP, SetP(relative=True), NumRet(rel=1), Accuracy]
    asked += [RBP(rel=1), RBP(rel=1, p=0.5), SetF(beta=0.25), SetF(beta=4.0), nDCG(gains=exp2)]
    asked += [Bpref, infAP, Compat, Compat(p=0.8), Compat(p=0.8, normalize=False)]
    asked += [IPrec @ level for level in (0.0, 0.1, 0.5, 1.0)]
    for measure in (INSQ, INST, NERR11):
        asked += [measure(max_rel=largest), measure(max_rel=largest, T=2.5)]
    asked += [NERR10(max_rel=largest), NERR10(max_rel=largest, p=0.7)]
    for k in case["ks"]:
        asked += [measure @ k for measure in (P, R, AP, RR, nDCG, Success, ERR, Accuracy, Judged)]
        asked += [measure(max_rel=largest) @ k for measure in (BPM, NERR8, NERR9)]
        asked.append(BPM(max_rel=largest, T=2.5) @ k)
        asked += [nDCG(dcg="exp-log2") @ k, SDCG(max_rel=1) @ k, nDCG(gains=exp2) @ k]
    if case["kind"] in GRADED:
        asked += [AP(rel=2), RR(rel=2), Rprec(rel=2), SetP(rel=2), SetR(rel=2), RBP(rel=2)]
        for k in case["ks"]:
            asked += [measure(rel=2) @ k for measure in (P, R, AP, RR, Success)]
            asked.append(SDCG(max_rel=largest) @ k)
    return asked


def of_subtopics(case):
    """Return the measures of subtopics."""
    asked = [NRBP, NRBP(alpha=0.3, beta=0.8), NRBP(alpha=0.3), NRBP(beta=0.8), AP_IA]
    asked += [measure @ k for measure in (P_IA, StRecall) for k in case["ks"] if k <= MAX_CUTOFF]
    if case["kind"] in GRADED:
        asked += [NRBP(rel=2), AP_IA(rel=2), *(measure(rel=2) @ 3 for measure in (P_IA, StRecall))]
    return asked


def said(error):
    """Return the message of an error, without the names of temporary files."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"gdeval.pl ends with exit status {error.returncode}: it takes grades up to {MAX_GRADE}"
    return f"{type(error).__name__}: {error}"


def ask(case, failures):
    """Return the average of each measure, or its error."""
    run = {user: {str(item): score for item, score in rows} for user, rows in case["recs"].items()}
    judged = [
        GenericQrel(user, item, grade, str(subtopic))
        for user, own in case["truth"].items()
        for item, grade in own.items()
        for subtopic in cases.subtopics_of(int(item))
    ]
    asked = [(measure, case["truth"]) for measure in measures_of(case)]
    values = {}
    for measure, truth in [*asked, *((measure, judged) for measure in of_subtopics(case))]:
        try:
            value = float(ir_measures.calc_aggregate([measure], truth, run)[measure])
        except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
            failures[f"{case['kind']}: {measure}: {said(error)}"] += 1
        else:
            values[str(measure)] = value if math.isfinite(value) else None
    return values


def main():
    """Answer the cases on standard input."""
    given, failures = json.load(sys.stdin), Counter()
    values = {case["name"]: ask(case, failures) for case in given["lists"] if case["kind"] not in SKIPPED}
    packages = ("ir-measures", "pytrec-eval-terrier", "cwl-eval", "pyndeval")
    answer = {
        "versions": {package: importlib.metadata.version(package) for package in packages},
        "values": values,
        "names": sorted(ir_measures.measures.registry),
        "skipped": SKIPPED | {what: f"in {count} cases" for what, count in sorted(failures.items())},
    }
    print(json.dumps(answer))


main()
