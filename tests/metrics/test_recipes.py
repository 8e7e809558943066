"""Recipes against the answers of the real tools from `tests/rivals/run.py`: every number, or the reason for none."""

import itertools
import math
import os
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import fastrec
from fastrec.metrics.recipes import RECIPES, find_recipe
from support.documents import DOCS
from support.rivals import agrees, cases, run

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")

DATA = os.environ.get("FASTREC_TEST_DATA")
LISTS = {case["name"]: case for case in cases.list_cases()}
ROWS = {case["name"]: case for case in cases.score_cases()}
LOG_AUC = "log_auc(interpolation=log)"
RECIPE_OF = {tool: "trec_eval" if tool == "pytrec_eval" else tool for tool in run.REQUIREMENTS}
ENOUGH = 300

OF_SUBTOPICS = "NRBP|AP_IA|P_IA|StRecall"

# Kinds of cases that a tool distinguishes and one policy of fastrec does not, and the call for the same number.
CALLS = {
    ("pytrec_eval", "empty_list"): {"no_recs": "zero"},  # an empty list is a list there, in a dict
    ("pytrec_eval", "judged_empty"): {"no_recs": "zero"},
    ("lenskit", "empty_list"): {"no_recs": "zero"},  # the same
    ("lenskit", "judged_empty"): {"no_truth": "zero", "no_recs": "zero"},
    ("spark", "no_recs"): {"no_recs": "skip"},  # a user in no row of the RDD does not count
    ("spark", "judged_alone"): {"no_truth": "listed", "no_recs": "skip"},
    ("recbole", "no_truth"): {"no_truth": "zero"},  # its own pipeline has no such users
    ("recbole", "grade_zero"): {"no_truth": "zero"},
    ("recbole", "judged_empty"): {"no_truth": "zero"},
    ("recbole", "one_class"): {"no_truth": "zero"},
}
# Parts of a name beside the metric, and the arguments that replace them; None if fastrec has none.
VARIANTS = {
    "pytrec_eval": {r"\(relevance_level=2\)": {"min_gain": 2.0}},
    "ir_measures": {r"\(rel=2\)": {"min_gain": 2.0}, f"^(?={OF_SUBTOPICS})": {"ties": "id_asc", "subtopics": True}},
    "ranx": {r"\(inputs=dict\)": {}, r"\(make_comparable=True\)": {}, "-l2": {"min_gain": 2.0}},
    "replay": {r"\(input=polars\)": {}, r"\(input=dict\)": {"ties": "input"}},
    "cornac": {r"\(rating_threshold=3\)": {"min_gain": 3.0}},
    "recommenders": {r"^map\(k=(?P<k>\d+)\)$": {}},
    "sklearn": {"^weighted ": {"sample_weight": True}},
    "spark": {"^weighted ": {"sample_weight": True}},
}
# Names of a tool without a recipe, and the reason.
UNREAD = {
    "cornac": {r"gauc.*": "declined", r".*user_based=True.*": "average=user of the same errors"},
    "implicit": {r"limited_auc.*": "declined, as auc"},
    "ir_measures": {
        r"SDCG.*": "its ideal is k items of the largest grade of the collection",
        r"SetF\(beta=.*": "f_beta(beta=...) with the square root of this beta",
        r"nDCG\(gains=.*": "ndcg(gain=[...]) with the table of gains",
        r"RBP\(rel=2\)": "rbp(gain=binary, min_gain=2)",
        r"Accuracy.*|Judged.*|NumRet.*": "declined",
    },
    "lenskit": {
        r".*global_metrics.*": "means in which one user without truth is NaN for all",
        r"rbp\(normalize=True\).*": "declined",
    },
    "pytrec_eval": {
        r"set_F_.*": "f_beta(beta=...) with the square root of this number",
        r"num_.*": "declined",
        r"utility.*": "declined",
    },
    "rectools": {r"accuracy.*|mcc.*|pap.*|partial_auc.*": "declined"},
    "recommenders": {r"r_precision.*": "declined"},
    "replay": {r"roc_auc.*": "declined"},
    "spark": {
        r".*(python, relevance).*": "PySpark drops grades",
        r"ndcg\(relevance.*": "declined: it depends on the order of the labels",
        r".*threshold=0.5.*": "the same at a threshold, with every metric of classes",
    },
    "torchmetrics": {
        r"fallout.*|mcc.*": "declined",
        r"r_precision.*": "declined for lists",
        r"gauc\(.*": "of users with both classes only, or of a part of the curve: no option here",
        r".*empty_target_action=.*": "a policy of the call: no_truth, on rows; none counts empty users as 1",
        r".*threshold=.*": "of all rows, at a threshold above which rows are positive",
        r"ece\(n_bins.*": "ece(bins=5)",
        r"r2": "in float32 it has 6 digits, as its variance is that of rounded sums",
        r"log_auc": "log_auc(interpolation=log), see test_log_auc_is_that_of_torchmetrics_but_for_the_order_of_a_rise",
    },
}


def adapted(tool, case, recipe):
    """Return lists and truth in the form of a fastrec user who comes from this tool."""
    key = str if recipe.ties_of_strings else int
    truth = {key(user): {key(item): grade for item, grade in held.items()} for user, held in case["truth"].items()}
    scored = recipe.ties != "input" and case["kind"] != "duplicates"
    recs = {
        key(user): {key(item): score for item, score in rows} if scored else [key(item) for item, _ in rows]
        for user, rows in case["recs"].items()
    }
    return (completed(recs, truth, case) if tool == "cornac" else recs), truth


def completed(recs, truth, case):
    """Return lists followed by the rest of the catalogue, like a tool that ranks all of it for every user."""
    known = sorted({item for held in (*recs.values(), *truth.values()) for item in held})
    others = range(10**18, 10**18 + case["n_items"] - len(known))
    return {
        user: [*recs.get(user, []), *(item for item in known if item not in recs.get(user, [])), *others]
        for user in {**truth, **recs}
    }


def read(tool, name):
    """Return the name of a metric in a recipe, and the other arguments of the call."""
    call = {}
    for pattern, more in VARIANTS.get(tool, {}).items():
        if (found := re.search(pattern, name)) is not None:
            name = f"map(k=K)@{found['k']}" if "k" in found.groupdict() else re.sub(pattern, "", name)
            call |= more
    return name, call


def evaluate(tool, case, names, call):
    """Return the report of one case with the lists or rows of this tool."""
    recipe = find_recipe(RECIPE_OF[tool])
    call = call | CALLS.get((tool, case["kind"]), {})
    if case["name"] in ROWS:
        weights = case["weights"] if call.pop("sample_weight", False) else None
        options = {"user_ids": case["users"], "sample_weight": weights, "like": recipe.name, **call}
        return fastrec.evaluate_scores(case["labels"], case["scores"], metrics=names, **options)
    recs, truth = adapted(tool, case, recipe)
    if call.pop("subtopics", False):
        covered = {user: {item: cases.subtopics_of(int(item)) for item in own} for user, own in truth.items()}
        call["subtopics"] = covered
    return fastrec.evaluate(recs, truth, names, like=recipe.name, **call)


def groups_of(tool, case, answers):
    """Return names that one call can evaluate: {(how, ...): {name of the answer: name in the recipe}}."""
    recipe = find_recipe(RECIPE_OF[tool])
    kind = "rows" if case["name"] in ROWS else "lists"
    found = {}
    for answer in answers:
        if any(re.fullmatch(pattern, answer) for pattern in UNREAD.get(tool, {})):
            continue
        name, call = read(tool, answer)
        if kind == "rows" and name in ("precision", "recall", "hit_rate"):
            continue  # they do not look at the scores: an error here
        recipe.translate(name, None, kind)
        if tool == "torchmetrics" and case["kind"] == "graded_rows" and name not in ("mae", "mse", "rmse", "mape"):
            call = call | {"min_gain": 1.0}  # graded targets are made binary before
        key = ("(" in name, *sorted(call.items()))
        found.setdefault(key, {})[answer] = name
    return found


def tolerance_of(tool, name):
    """Return the tolerance of a number: the tool prints some with five digits."""
    printed = tool == "ir_measures" and name.startswith(("ERR@", "nDCG(dcg="))
    return 5.1e-6 if printed else find_recipe(RECIPE_OF[tool]).tolerance


def is_open(tool, case, name):
    """Return whether a tool leaves this number to chance, or a note of its recipe says that the number differs."""
    if case["kind"] in ("tied", "tied_rows") and tool == "ranx" and "inputs=dict" in name:
        return True  # reversed order
    if case["kind"] == "tied" and tool == "ir_measures":
        others = ("RR@", "RR(rel=2)@", "RBP", "Compat", "BPM", "INS", "NERR")
        return name.startswith(others)  # other providers, other orders
    if tool in ("pytrec_eval", "ir_measures") and name.startswith(("iprec_at_recall", "11pt_avg", "IPrec")):
        return case["kind"] in ("empty_list", "judged_empty")  # NaN there
    if tool == "pytrec_eval" and name == "Rndcg(relevance_level=2)":
        return case["kind"] in ("graded", "judged_alone", "judged_empty", "tied")  # 0 for a query without grade 2
    if tool == "cornac" and case["kind"] == "tied":
        return True  # hits below all items tied with them
    if name == "mape":
        return 0 in case["labels"]  # huge, and equal to fewer digits
    if tool == "recbole" and name.startswith("recall"):
        return case["kind"] in ("no_truth", "grade_zero", "judged_empty", "one_class")  # NaN for all
    return False


def lines_to(limit, fpr, tpr):
    """Return the heights at a limit of lines between any points of the rises before and after; ours is the last."""
    before, after = fpr[fpr < limit].max(), fpr[fpr >= limit].min()
    share = (limit - before) / (after - before)
    return [a + share * (b - a) for a in tpr[fpr == before] for b in tpr[fpr == after][::-1]]


def log_area(fpr, tpr, limits, heights):
    """Return the area over log FPR between limits at which the curve has these heights, as TorchMetrics sorts them."""
    y, x = np.sort([*tpr, *heights]), np.sort([*fpr, *limits])
    first, last = (np.flatnonzero(x == limit)[-1] for limit in limits)
    x, y = np.log(x[first : last + 1]), y[first : last + 1]
    return (np.diff(x) * (y[1:] + y[:-1])).sum() / 2 / (x[-1] - x[0])


def test_log_auc_is_that_of_torchmetrics_but_for_the_order_of_a_rise():
    """It sorts points of equal FPR in any order before it draws the line at a limit."""
    others = 0
    for name, answers in run.load_golden("torchmetrics")["values"].items():
        if name not in ROWS or "log_auc" not in answers:
            continue
        labels, scores = np.array(ROWS[name]["labels"]) >= 1, np.array(ROWS[name]["scores"])
        if labels.all() or not labels.any():
            continue
        fpr, tpr, _ = fastrec.roc_curve(labels, scores)
        found = fastrec.evaluate_scores(labels, scores, metrics=LOG_AUC)[LOG_AUC]
        limits = (0.001, 0.1)
        pairs = itertools.product(*(lines_to(limit, fpr, tpr) for limit in limits))
        areas = [log_area(fpr, tpr, limits, pair) for pair in pairs]
        assert found == pytest.approx(areas[-1], abs=1e-12)
        if answers["log_auc"] != pytest.approx(found, abs=1e-6):
            assert min(abs(answers["log_auc"] - area) for area in areas) < 1e-6
            others += 1
    assert others == 13


@pytest.mark.thorough(except_for="pytrec_eval|sklearn")
@pytest.mark.parametrize("tool", run.REQUIREMENTS)
def test_every_number_of_the_tool(tool):
    golden = run.load_golden(tool)
    everything = dict(LISTS | ROWS)
    if DATA is not None:
        everything["ml-latest-small"] = cases.real_case(Path(DATA))
    assert golden["cases"] == run.digest(run.all_cases(None)), "made from other cases: run tests/rivals/run.py"
    agreed, wrong, refused = Counter(), [], Counter()
    for name, answers in golden["values"].items():
        if name not in everything:
            continue
        case = everything[name]
        for (_, *call), names in groups_of(tool, case, answers).items():
            try:
                report = evaluate(tool, case, list(names.values()), dict(call))
            except (fastrec.InputError, fastrec.InputTypeError):
                refused[case["kind"]] += 1
                continue
            for answer, own in names.items():
                ours, theirs = report[own], answers[answer]
                if agrees(ours, theirs, tolerance_of(tool, own)) or is_open(tool, case, answer):
                    agreed[answer] += 1
                else:
                    wrong.append(f"{name}: {answer} is {theirs} there and {ours} here")
    assert set(refused) <= {"duplicates", "tied", "tied_rows"}, refused
    assert not wrong, f"{len(wrong)} of {sum(agreed.values())}: " + "; ".join(wrong[:8])
    assert sum(agreed.values()) > ENOUGH


@pytest.mark.parametrize("tool", run.REQUIREMENTS)
def test_the_tool_was_asked_enough(tool):
    golden = run.load_golden(tool)
    everything = LISTS | ROWS
    answered = {name for name, values in golden["values"].items() if values and name in everything}
    assert len(answered) >= ENOUGH
    kinds = {everything[name]["kind"] for name in answered}
    for all_kinds, general in ((cases.LIST_KINDS, "lists"), (cases.SCORE_KINDS, "rows")):
        left_out = set(all_kinds) - kinds
        assert all(golden["skipped"].get(kind) or golden["skipped"].get(general) for kind in left_out), left_out


def test_answers_that_were_not_asked_for_are_not_compared():
    kept = {"values": {"a": {"map": 0.5, "mrr": None}, "real": {"map": 0.25}}}
    assert run.differences(kept, {"values": {"a": {"map": 0.5 + 1e-12, "mrr": None}}}, {"a"}) == []
    assert run.differences(kept, {"values": {"a": {"map": 0.75}}}, {"a", "b"}) == [
        "a: map: 0.5 is now 0.75",
        "a: mrr: None is now absent",
    ]
    assert run.differences(kept, {"values": {}}, {"real"}) == ["real: map: 0.25 is now absent"]


EDGES = {case["name"]: case for kind in cases.edge_cases().values() for case in kind}
TOOLS_OF_EDGES = [tool for tool in run.REQUIREMENTS if "edges" in run.load_golden(tool)]


def with_scores(tool, case, recipe):
    """Return lists with their scores, also for a tool that keeps the order of the input."""
    recs, truth = adapted(tool, case, recipe)
    if recipe.ordered_by == "rank" or tool == "cornac":
        return recs, truth
    of_users = {str(user): dict(map(tuple, rows)) for user, rows in case["recs"].items()}
    lists = {user: {item: of_users[str(user)].get(int(item), 0.0) for item in items} for user, items in recs.items()}
    return lists, truth


@pytest.mark.thorough(except_for="rectools|sklearn|torchmetrics")
@pytest.mark.parametrize("tool", TOOLS_OF_EDGES)
def test_no_number_at_an_edge_is_another_in_silence(tool):
    """Each number of the tool is ours, or our call refuses the input or says that the number may be another."""
    recipe, agreed, wrong = find_recipe(RECIPE_OF[tool]), Counter(), []
    for name, answers in run.load_golden(tool)["edges"].items():
        case = EDGES[name]
        if tool == "cornac" and case["kind"].startswith(("ties", "equal_scores")):
            continue  # it ranks the catalogue, which a list with its ties cannot hold
        for answer, theirs in answers.items():
            if any(re.fullmatch(pattern, answer) for pattern in UNREAD.get(tool, {})):
                continue
            own, call = read(tool, answer)
            try:
                if "labels" in case:
                    weights = case["weights"] if call.pop("sample_weight", False) else None
                    options = {"user_ids": case["users"], "sample_weight": weights, "like": recipe.name, **call}
                    report = fastrec.evaluate_scores(case["labels"], case["scores"], metrics=own, **options)
                else:
                    recs, truth = with_scores(tool, case, recipe)
                    if call.pop("subtopics", False):
                        subtopics = {u: {i: cases.subtopics_of(int(i)) for i in held} for u, held in truth.items()}
                        call |= {"subtopics": subtopics}
                    report = fastrec.evaluate(recs, truth, own, like=recipe.name, **call)
            except (fastrec.InputError, fastrec.InputTypeError):
                continue
            told = any(f"the number of {recipe.tool} may be another" in line for line in report.warnings)
            same = not isinstance(theirs, str) and agrees(report[own], theirs, tolerance_of(tool, own))
            agreed[case["kind"]] += same
            huge = answer == "mape" and report[own] == pytest.approx(theirs, rel=1e-6)
            if not same and not told and not huge and not (tool == "ranx" and "inputs=dict" in answer):
                wrong.append(f"{name}: {answer} is {theirs} there and {report[own]} here")
    assert not wrong, f"{len(wrong)} of {sum(agreed.values())}: " + "; ".join(wrong[:8])
    assert sum(agreed.values()) > 50


RANKED = {
    "user_id": ["q1", "q1", "q2", "q2"],
    "item_id": ["a", "b", "a", "b"],
    "rank": [1, 2, 1, 2],
    "score": [1.0, 1, 1, 2],
}
JUDGED = {"user_id": ["q1", "q2"], "item_id": ["a", "a"]}


@pytest.mark.parametrize(
    ("like", "metric", "wanted"),
    [
        ("ir_measures", "RR", 0.5),  # of ir_measures 0.4.3; q1 has a tie, and the larger id goes first
        ("trec_eval", "recip_rank", 0.5),  # of pytrec_eval
        ("ranx", "mrr", 0.75),  # of ranx 0.3.21, which keeps the order of a tie
        ("rectools", "mrr@10", 1.0),  # it reads ranks alone
        (None, "mrr", 1.0),
    ],
)
def test_a_tool_of_scores_reads_scores_beside_ranks(tmp_path, like, metric, wanted):
    pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    recs, truth = pa.table(RANKED), pa.table(JUDGED)
    assert fastrec.evaluate(recs, truth, metric, like=like)[metric] == wanted
    evaluator = fastrec.Evaluator(metric, like=like)
    for query in ("q1", "q2"):
        evaluator.update(*(table.filter(pa.compute.equal(table["user_id"], query)) for table in (recs, truth)))
    report = fastrec.Evaluator.from_bytes(evaluator.to_bytes()).result()
    assert report[metric] == wanted and report.data["rec_rows_by_score"] == 4 * (wanted < 1)
    if like in ("ir_measures", "trec_eval", "ranx"):
        side = fastrec.explain(metric, recs, truth, like=like).sides[like]
        assert side.estimate.mean == wanted and side.options["ordered_by"] == "score"
        assert sum(side.steps.values()) == pytest.approx(wanted - 1.0)
        named = fastrec.evaluate(recs, truth, metric, like=like, rank="rank")
        assert named[metric] == 1.0  # what the call says goes before the tool
        with pytest.raises(fastrec.InputError, match="ordered_by is 'score' here and 'rank' there"):
            evaluator.merge(fastrec.Evaluator(metric, **(find_recipe(like).policies)))
    for name, table in (("recs.csv", recs), ("truth.csv", truth)):
        csv.write_csv(table, tmp_path / name)
    paths = tmp_path / "recs.csv", tmp_path / "truth.csv"
    assert fastrec.evaluate_files(*paths, metric, like=like)[metric] == wanted


@pytest.mark.parametrize("like", ["rectools", "lenskit"])
@pytest.mark.parametrize("ranks", [[0, 1, 2], [0, 2, 3], [0, 1, 1]])
def test_ranks_from_0_where_the_tool_counts_from_1(like, ranks):
    pa = pytest.importorskip("pyarrow")
    users = [1, 1, 1] if ranks[-1] > 1 else [1, 1, 2]  # of the last, one list is from 0 and one from 1
    recs, truth = (
        pa.table({"user_id": users, "item_id": [10, 20, 30], "rank": ranks}),
        {"user_id": [1], "item_id": [20]},
    )
    with pytest.raises(fastrec.InputError, match="ranks from 0"):
        fastrec.evaluate(recs, pa.table(truth), "mrr@10", like=like)
    assert "ranks from 0" in str(fastrec.explain("mrr@10", recs, pa.table(truth), like=like))


@pytest.mark.parametrize(
    ("like", "metric", "data", "match"),
    [
        ("rectools", "user_coverage@1", ({1: [5], 2: [5]}, {1: [5]}), "leaves out users outside the truth"),
        ("trec_eval", "unj_2", ({"a": ["x", "z"], "b": ["y"]}, {"a": {"x": 0}, "b": {"y": 1}}), "unj and rbp_resid"),
        ("trec_eval", "rbp_resid", ({"a": ["x"], "b": ["y"]}, {"a": {"x": 0}, "b": {"y": 1}}), "unj and rbp_resid"),
        ("ranx", "mrr", ({1: dict.fromkeys(range(16), 0.5)}, {1: [3]}), "longer than 15"),
        ("torchmetrics", "map", ({1: {5: 0.5, 6: 0.0}}, {1: [6]}), "scores of 0 and below"),
    ],
)
def test_a_call_warns_of_what_it_cannot_follow(like, metric, data, match):
    with pytest.warns(fastrec.FastrecWarning, match=match):
        fastrec.evaluate(*data, metric, like=like)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastrec.evaluate(*data, "precision@1", like=None)
    if like != "trec_eval":
        assert re.search(match, " ".join(fastrec.explain(metric, *data, like=like).warnings))


def test_warnings_do_not_depend_on_batches():
    """Users outside the truth may be in a batch without any truth."""
    evaluator = fastrec.Evaluator("user_coverage@1", like="rectools", n_users=2)
    evaluator.update({1: [5]}, {1: [5]})
    evaluator.update({2: [5]}, {2: []})
    assert any("outside the truth" in line for line in evaluator.result().warnings)


def test_scikit_learn_at_the_edges_of_segments():
    """A segment of one class, or of equal targets, has another number in scikit-learn."""
    labels, scores = [1, 1, 1, 0], [0.9, 0.8, 0.1, 0.2]
    for metric in ("balanced_accuracy(threshold=0.5)", "r2"):
        report = fastrec.evaluate_scores(labels, scores, metrics=metric, row_groups=list("aabb"), like="sklearn")
        assert math.isfinite(report[metric]) and "scikit-learn may be another" in " ".join(report.warnings)
        assert not fastrec.evaluate_scores(labels, scores, metrics=metric, like="sklearn").warnings


LISTS_OF_TWO = [[1, 2, 3], [4, 5, 6]], [[2, 9], [4]]


def test_names_of_the_tool_find_the_values():
    report = fastrec.evaluate(*LISTS_OF_TWO, ["map_cut_3", "P_2", "ndcg", "nDCG@2"], like="trec_eval")
    assert list(report) == ["map(denominator=n_rel)@3", "precision@2", "ndcg", "ndcg@2"]
    assert report["map_cut_3"] == report["map(denominator=n_rel)@3"] == 0.625
    assert report.settings["like"] == "trec_eval" and report.settings["ties"] == "id_desc"
    assert report.settings["names"] == {
        "map_cut_3": "map(denominator=n_rel)@3",
        "P_2": "precision@2",
        "nDCG@2": "ndcg@2",
    }
    report.settings["names"].clear()  # which is no name of a later call
    again = fastrec.evaluate(*LISTS_OF_TWO, ["map_cut_3", "P_2", "ndcg", "nDCG@2"], like="trec_eval")
    assert again["map_cut_3"] == 0.625


@pytest.mark.parametrize("metric", ["log_loss", "brier"])
def test_explanations_tell_of_the_precision_of_scikit_learn(metric):
    why = fastrec.explain_scores(metric, [1, 0], np.array([0.5, 0.25], np.float32), like="sklearn")
    assert "of scores in float32, they are computed in float32 there" in str(why)


def test_cut_offs_and_defaults():
    report = fastrec.evaluate(*LISTS_OF_TWO, ["map", "recall@1"], k=[2, 3], like="ranx", per_user=True)
    assert list(report) == ["map(denominator=n_rel)@2", "map(denominator=n_rel)@3", "recall@1"]
    assert report.per_user["map@3"].tolist() == [0.25, 1.0]
    assert list(fastrec.evaluate(*LISTS_OF_TWO, like="implicit")) == [
        "ndcg(gain=binary)@10",
        "precision(denominator=min_k_n_rel, average=pooled)@10",
        "map@10",
    ]


def test_what_the_call_says_goes_before_the_tool():
    recs = {1: {5: 0.5, 6: 0.5}}, {1: [6]}
    assert fastrec.evaluate(*recs, "mrr", like="replay")["mrr"] == 1.0
    assert fastrec.evaluate(*recs, "mrr", like="replay", ties="id_asc")["mrr"] == 0.5
    with pytest.raises(fastrec.InputError, match="appears twice"):
        fastrec.evaluate([[1, 1]], [[1]], "precision@2", like="rectools")
    assert fastrec.evaluate([[1, 1]], [[1]], "precision@2", like="rectools", duplicates="miss")["precision@2"] == 0.5


def test_all_trec_is_every_measure_of_trec_eval_but_those_with_a_reason(tmp_path):
    recs, truth = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}}, {"a": {"y": 1, "x": 0}, "b": {"x": 1}}
    report = fastrec.evaluate(recs, truth, "all_trec", like="trec_eval")
    recipe = find_recipe("trec_eval")
    names = list(recipe.translate("all_trec", None, "lists"))
    assert names[:3] == ["map", "gm_map", "Rprec"] and len(names) == len(set(names)) == 91
    assert all(report[name] >= 0 for name in names) and report["P_5"] == 0.2
    for measure in run.load_golden("pytrec_eval")["names"]:
        if not any(name == measure or re.match(rf"{measure}_[\d.]+$", name) for name in names):
            assert re.search("cannot reproduce|does not have", str(why_not(recipe, measure))), measure


RECS = {1: [1, 2, 3, 4], 2: [4, 5, 6]}
LOW_GRADES = {1: {1: -1.0, 2: 3.0, 9: 0.0}, 2: {5: -2.0}}


@pytest.mark.parametrize("tool", ["rectools", "recommenders", "replay", "lenskit"])
def test_a_tool_that_reads_no_grades_counts_every_row(tool):
    """The numbers are those of the real tools, in the versions of the kept answers, for cases without gains below 0."""
    report = fastrec.evaluate(RECS, LOW_GRADES, ["precision@3", "recall@3"], like=tool)
    assert [report["precision@3"], report["recall@3"]] == [pytest.approx(1 / 2), pytest.approx(5 / 6)]
    assert report.settings["min_gain"] == "any" and report.data["truth_rows_not_relevant"] == 0
    own = fastrec.evaluate(RECS, LOW_GRADES, "recall@3", like=tool, min_gain=1)
    assert own.settings["min_gain"] == 1.0 and own.data["truth_rows_not_relevant"] == 3


def test_a_metric_with_a_least_grade_of_its_own():
    with pytest.raises(fastrec.MetricError, match=r"ndcg\(min_gain=5e-324\)@3, so min_gain=2 cannot apply"):
        fastrec.evaluate(RECS, LOW_GRADES, "ndcg(score_type=raw)@3", like="recommenders", min_gain=2)
    names = ["ndcg@3", "ndcg(score_type=raw)@3"]
    report = fastrec.evaluate(RECS, {1: {1: 0, 2: 3, 9: 0}, 2: {5: 0}}, names, like="recommenders")
    assert [report.estimates[name].users for name in names] == [2, 1]


def test_explain_counts_every_row_where_the_tool_does():
    why = fastrec.explain("recall@3", RECS, LOW_GRADES, like=["rectools", "trec_eval"])
    assert {tool: side.estimate.mean for tool, side in why.sides.items()} == {
        "fastrec": 1.0,
        "rectools": pytest.approx(5 / 6),
        "trec_eval": 0.5,
    }
    assert why.sides["rectools"].steps["min_gain"] == pytest.approx(-1 / 6)
    own = fastrec.explain("recall@3", RECS, LOW_GRADES, like="rectools", min_gain=1)
    assert own.sides["rectools"].estimate.mean == 1.0 and own.same["min_gain"] == "1"


def test_the_least_grade_of_a_tool():
    truth = {1: {1: 0.5, 2: 3.0, 9: 0.5}, 2: {5: 0.5}}
    report = fastrec.evaluate(RECS, truth, ["precision@3", "recall@3", "mrr"], like="cornac")
    assert [report["precision@3"], report["recall@3"], report["mrr"]] == [1 / 3, 1.0, 0.5]  # as it says itself
    assert fastrec.evaluate(RECS, truth, "mrr", like="cornac", min_gain=0.5)["mrr"] == 0.75


def test_evaluators_keep_the_least_grade_of_a_tool():
    evaluator = fastrec.Evaluator("recall@3", like="rectools")
    evaluator.update(RECS, LOW_GRADES)
    assert fastrec.Evaluator.from_bytes(evaluator.to_bytes()).result()["recall@3"] == pytest.approx(5 / 6)
    with pytest.raises(fastrec.InputError, match="min_gain is 'any' here and None there"):
        evaluator.merge(fastrec.Evaluator("recall@3", ties="input"))


@pytest.mark.parametrize(
    ("metric", "like", "match"),
    [
        ("ndcg@3", "rectool", "did you mean 'rectools'"),
        ("ndcg@3", 7, "like=7 is not a tool with a recipe"),
        ("err@3", "rectools", "RecTools has no metric 'err@3'"),
        ("ndgc@3", "lenskit", "LensKit has no metric 'ndgc@3'; did you mean 'ndcg'"),
        ("yaap", "trec_eval", "fastrec does not have yaap of trec_eval yet"),
        ("iprec_at_recall", "trec_eval", "iprec_at_recall of trec_eval is called 'iprec_at_recall_{level}' here"),
        ("INST", "ir_measures", r"INST of ir_measures is called 'INST\(max_rel={m}\)' here"),
        ("\u03b1_nDCG@10", "ir_measures", "cannot reproduce \u03b1_nDCG@10 of ir_measures"),
        ("ndgc@10", "trec_eval", "trec_eval has no metric 'ndgc@10'; did you mean 'ndcg'"),
        (
            "set_F_4.0",
            "trec_eval",
            "fastrec cannot reproduce set_F_4.0 of trec_eval: its beta is the square of the usual beta",
        ),
        ("list_length@10", "lenskit", "fastrec does not have list_length@10 of LensKit yet"),
        ("catalog_coverage@10", "rectools", "catalog_coverage@10 of RecTools is called 'item_coverage@10' here"),
        ("NDCG@10", "rectools", "NDCG@10 of RecTools is called 'ndcg@10' here"),
        ("ndcg(log_base=7)@10", "rectools", "RecTools has no metric 'ndcg.log_base=7.@10'; did you mean"),
        ("success", "trec_eval", "success of trec_eval is called 'success_{k}' here"),
        ("gauc", "recbole", "gauc of RecBole is a metric of scored rows"),
        ("mcc@3", "rectools", "fastrec cannot reproduce mcc@3 of RecTools: it treats every list as k items long"),
        ("ndcg@0", "ranx", "must be from 1"),
        ("ndcg@x", "ranx", "must be an integer"),
        (["auc"], "sklearn", r"no metrics of lists, only of scored rows \(one log of labels and scores\)$"),
        (
            "ndcg@10",
            "sklearn",
            r"^ndcg@10 of scikit-learn is a metric of scored rows \(one log of labels and scores\)$",
        ),
        ("mrr", "sklearn", "^scikit-learn has no metrics of lists"),
        (["ndcg@3", "ndcg(gain=rating,weight=LogRankWeight(offset=1))@3"], "lenskit", "ask for one of them at a time"),
        (7, "ranx", "must be strings"),
        ([7], "ranx", "must be a string such as"),
    ],
)
def test_what_a_tool_does_not_have(metric, like, match):
    with pytest.raises((fastrec.MetricError, fastrec.InputTypeError), match=match):
        fastrec.evaluate(*LISTS_OF_TWO, metric, like=like)


# Exports of tools' modules that are no metrics, and metrics that fastrec has under another name than `like=` takes.
NO_METRICS = {
    "ranx": "get_hit_lists",
    "rectools": ".*Calculator|DebiasConfig|debias_interactions|calc_metrics",
    "recommenders": "get_top_k_items|merge_.*",
    "replay": "CalculationDescriptor|ConfidenceInterval|Experiment|Mean|Median|Metric|OfflineMetrics|PerUser",
    "lenskit": (
        "Metric.*|MeasurementCollector|.*Metric(Base)?|.*RankWeight|RunAnalysis.*|quick_measure_model|"
        "rank_biased_precision"
    ),
    "spark": "unpersist",
    "implicit": "ranking_metrics_at_k",
    "cornac": "R.*Metric",
    "sklearn": ".*_curve|.*confusion_matrix.*|classification_report|metric_at_thresholds",
}


@pytest.mark.parametrize("tool", run.REQUIREMENTS)
def test_no_metric_of_a_tool_is_called_unknown(tool):
    """Each name that the tool lists has a recipe or a reason: the recipe never says that the tool does not have it."""
    recipe, names = find_recipe(RECIPE_OF[tool]), run.load_golden(tool)["names"]
    metrics = [name for name in names if not re.fullmatch(NO_METRICS.get(tool, "-"), name)]
    assert len(metrics) >= 4
    for name in metrics:
        answers = []
        for kind in ("lists", "rows"):
            try:
                answers += map(str, recipe.translate(name, None, kind))
            except fastrec.MetricError as error:
                answers.append(str(error))
        assert not all(re.search("has no metric", answer) for answer in answers), answers
    for name, ours in recipe.spelled.items():
        assert {ours, ours + "@1"} & {*recipe.lists, *recipe.rows, *recipe.declined}, name
    for name in recipe.lacking.split():
        assert any(text in str(why_not(recipe, name.replace("*", "x"))) for text in ("does not have", "called")), name


@pytest.mark.parametrize(("tool", "title"), [("pytrec_eval", "trec_eval"), ("ir_measures", "ir_measures")])
def test_the_page_names_every_measure(tool, title):
    page = (DOCS / "reference" / "measures.md").read_text(encoding="utf-8")
    section = page.partition(f"## Every measure of {title}\n")[2].partition("\n## ")[0]
    assert {name for name in run.load_golden(tool)["names"] if f"`{name}`" not in section} == set()


def why_not(recipe, name):
    with pytest.raises(fastrec.MetricError) as raised:
        recipe.translate(name, None, "lists" if recipe.lists else "rows")
    return raised.value


ALONE = (
    {"a": ["x"]},
    {"a": {"x": 1}, "b": {"y": 0}, "c": {"z": 1}},
)  # b and c have no list, and nothing is relevant to b


@pytest.mark.parametrize(
    ("like", "means"),
    [
        ("trec_eval", (1.0, 1.0)),  # without -c
        ("ir_measures", (1 / 3, 0.0)),  # all judged queries
        ("ranx", (1 / 3, 0.0)),
        ("lenskit", (1.0, 1.0)),  # users with a list
        ("torchmetrics", (1.0, 1.0)),
        ("spark", (1 / 3, 0.0)),
    ],
)
def test_users_who_are_judged_and_have_no_list(like, means):
    name = "AP" if like in ("trec_eval", "ir_measures") else "map"
    assert fastrec.evaluate(*ALONE, name, like=like)[name] == means[0]
    if like not in ("lenskit", "torchmetrics", "spark"):
        graded = {"a": {"x": 2}, "b": {"y": 1}}
        assert fastrec.evaluate({"a": ["x"]}, graded, name, like=like, min_gain=2)[name] == (means[1] or 0.5)


def test_no_truth_rules_who_has_neither_relevant_items_nor_a_list():
    cases = {"skip": (1.0, 1), "zero": (1 / 3, 3), "judged": (1.0, 1), "listed": (0.5, 2), "nan": (math.nan, 3)}
    for no_truth, (mean, evaluated) in cases.items():
        recs, truth = {"a": ["x"], "d": ["x"]}, ALONE[1]
        options = {"no_truth": no_truth, "no_recs": "skip", "per_user": True}
        report = fastrec.evaluate(recs, truth, "recall@1", **options)
        assert report["recall@1"] == pytest.approx(mean, nan_ok=True)
        assert report.users == {
            "total": 4,
            "evaluated": evaluated,
            "no_truth": 2,
            "no_recs": 1,
        }
    with pytest.raises(fastrec.InputError, match="user 'b' has no relevant item, and no_truth='error'"):
        fastrec.evaluate(*ALONE, "recall@1", no_truth="error", no_recs="skip")


@pytest.mark.parametrize(("like", "metric"), [("torchmetrics", "gauc"), ("torchmetrics", "map"), ("sklearn", "ndcg")])
def test_a_user_without_rows_is_none_for_a_tool_of_rows(like, metric):
    report = fastrec.evaluate_scores([1, 0, 0, 0], [0.5, 0.25, 0.75, 0.125], [0, 2, 2, 4], metric, like=like)
    assert report[metric] == 0.5  # 1, no rows, 0 without a positive row


@pytest.mark.parametrize("name", ["ndcg", "ndcg_cut_2", "nDCG@2"])
def test_the_level_of_trec_eval_does_not_reach_its_ndcg(name, tmp_path):
    recs, truth = {"a": ["x", "y"], "b": ["y"]}, {"a": {"x": 1, "y": 2}, "b": {"y": 1}}
    for like in ("trec_eval", "ir_measures"):
        report = fastrec.evaluate(recs, truth, [name, "recip_rank"], like=like, min_gain=2)
        assert report[name] == fastrec.evaluate(recs, truth, name, like=like)[name] > 0.9
        assert report["recip_rank"] == 0.25
    why = fastrec.explain(name, recs, truth, like="trec_eval", min_gain=2)
    assert why.sides["trec_eval"].estimate.mean == report[name]
    assert fastrec.evaluate(recs, truth, "ndcg", like="ranx", min_gain=2)["ndcg"] < 0.5  # ranx has a level for it


def test_the_options_named_for_trec_eval_are_those_of_its_recipe():
    cli = pytest.importorskip("fastrec.cli.program")
    policies = find_recipe("trec_eval").policies
    options = " ".join(f"--{name.replace('_', '-')} {policies[name]}" for name in ("ties", "no_truth", "no_recs"))
    page = (DOCS / "guides" / "command-line.md").read_text(encoding="utf-8")
    texts = [cli.program.commands["evaluate"].help, page]
    for text in texts:
        named = re.findall(r"--ties id_desc(?: +--no-\S+ \w+)*", " ".join(text.split()))
        assert named and set(named) == {options}


def test_evaluators_and_what_they_keep():
    whole = fastrec.evaluate(*LISTS_OF_TWO, ["ndcg", "map"], k=2, like="lenskit")
    first, second = (fastrec.Evaluator(["ndcg", "map"], k=2, like="lenskit") for _ in range(2))
    first.update([LISTS_OF_TWO[0][0]], [LISTS_OF_TWO[1][0]])
    second.update([LISTS_OF_TWO[0][1]], [LISTS_OF_TWO[1][1]])
    merged = fastrec.Evaluator.from_bytes(first.to_bytes()).merge(second).result()
    assert merged.to_dict() == whole.to_dict() and merged["ndcg@2"] == whole["ndcg@2"]
    scorer = fastrec.ScoreEvaluator(["auc", "gauc"], like="recbole")
    scorer.update([1, 0, 1, 0], [0.4, 0.3, 0.1, 0.2], [0, 2, 4])
    assert scorer.result()["gauc"] == 0.5


def test_a_report_keeps_the_names(tmp_path):
    report = fastrec.evaluate(*LISTS_OF_TWO, ["P_2"], like="trec_eval")
    report.save(tmp_path / "report.npz")
    assert fastrec.load(tmp_path / "report.npz")["P_2"] == report["P_2"]
    with pytest.raises(KeyError, match="P_3"):
        report["P_3"]


@pytest.mark.parametrize("tool", run.REQUIREMENTS)
def test_the_version_is_that_of_the_answers(tool):
    named = find_recipe(RECIPE_OF[tool]).version
    assert any(f"{package} {version}" in named for package, version in run.load_golden(tool)["versions"].items())


def test_the_page_of_other_tools_counts_the_cases():
    text = " ".join((DOCS / "why-numbers-differ.md").read_text(encoding="utf-8").split())
    assert f"on {len(LISTS)} cases of lists and {len(ROWS)} of scored rows" in text
    assert f"on {len(cases.item_cases())} with items and histories" in text
    assert all(f"`{name}`" in text for name in RECIPES)
