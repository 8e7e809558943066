"""Recipes of metrics of items and histories against the answers of the real tools: every number, or the reason."""

import math
import operator
import re
import statistics
from collections import Counter

import pytest

import fastrec
from fastrec.metrics.calls import parse
from fastrec.metrics.recipes import RECIPES
from support.rivals import agrees, cases, run

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")

CASES = {case["name"]: case for case in cases.item_cases()}
TOOLS = {tool: tool.removesuffix("_items") for tool in run.ITEM_REQUIREMENTS}
ENOUGH = 1000
TOLERANCES = {  # of numbers that a tool rounds or computes in float32
    ("warprec", ".*"): 1e-6,
    ("lenskit", "exposure_gini.*"): 1e-6,
    ("rexmex", ".*coverage.*"): 5.1e-4,
}
# Answers that are kept to show what a tool does, and are declined by name or differ by a note of the recipe.
UNREAD = {
    "evidently": "diversity|serendipity|personalization",
    "lenskit": "category_entropy|rank_biased_entropy",
    "recbole": "shannonentropy|tailpercentage",
    "recmetrics": "intra_list_similarity|prediction_coverage",
    "recommenders": "catalog_coverage",
    "replay": "share_of_new",
    "rexmex": "intra_list_similarity",
    "warprec": "srecall",
}


def items_of(case, head):
    """Return the table of items, with the head and tail of a tool that has its own."""
    table = {int(item): dict(row) for item, row in case["items"].items()}
    for item, row in table.items() if head is not None else ():
        row["segment"] = "head" if item in head else "tail"
    shop = fastrec.popularity_propensity(list(case["history"].values()), power=0.5, floor=0.1, items=list(table))
    for item, propensity in zip(*(column.tolist() for column in shop.values()), strict=True):
        table.setdefault(item, {})["propensity"] = propensity
    return table


def evaluate(tool, case, names, head=None):
    """Return the report of one case, as a user who comes from this tool would ask for it."""
    recs, reference = (
        {int(user): [item for item, _ in pairs] for user, pairs in case[side].items()} for side in ("recs", "reference")
    )
    truth = {int(user): [int(item) for item in held] for user, held in case["truth"].items()}
    if tool == "warprec":
        recs, truth = ({user: side[user] for user in recs if user in truth} for side in (recs, truth))
    return fastrec.evaluate(
        recs,
        truth,
        names,
        like=tool,
        history={int(user): items for user, items in case["history"].items()},
        items=items_of(case, head),
        reference=reference,
        n_items=case["n_items"] + (tool == "recbole"),
    )


def is_open(tool, case, name, answer):
    """Return whether a note of the recipe says that this number differs."""
    if (tool, name.partition("@")[0]) in (("evidently", "gini"), ("warprec", "reo")) and answer is None:
        return True
    if tool == "rectools" and name.startswith("serendipity"):
        return case["kind"] == "repeated"
    if name.startswith("user_coverage"):
        return case["kind"] == "no_truth"
    return False


def names_of_items(tool):
    """Return the names of a tool that are metrics of items, histories and other lists."""
    modules = ("fastrec.metrics.items", "fastrec.metrics.exposure", "fastrec.metrics.weighted")
    return [name for name, ours in RECIPES[tool].lists.items() if parse(ours).metric.formula.__module__ in modules]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_number_of_the_tool(tool):
    golden, own = run.load_golden(tool), TOOLS[tool]
    assert golden["cases"] == run.digest(run.all_cases(None, tool)), "made from other cases: run tests/rivals/run.py"
    agreed, wrong, kept_open = Counter(), [], 0
    for name, answers in golden["values"].items():
        case, head = CASES[name], golden.get("heads", {}).get(name)
        wanted = {
            answer: re.sub(r"\(input=\w+\)", "", answer)
            for answer in answers
            if not re.match(UNREAD.get(own, "-"), answer)
        }
        try:
            report = evaluate(own, case, list(dict.fromkeys(wanted.values())), head)
        except fastrec.InputError:  # of one metric: which of them is asked next
            report = {}
            for asked in dict.fromkeys(wanted.values()):
                try:
                    report[asked] = evaluate(own, case, asked, head)[asked]
                except fastrec.InputError:
                    assert not any(wanted[answer] == asked for answer in answers if answers[answer] is not None), asked
        for answer, asked in wanted.items():
            tolerance = next(
                (t for (of, metric), t in TOLERANCES.items() if of == own and re.match(metric, asked)), 1e-9
            )
            if asked in report and agrees(report[asked], answers[answer], tolerance):
                agreed[answer.partition("@")[0]] += 1
            elif is_open(own, case, asked, answers[answer]):
                kept_open += 1
            elif asked in report:
                wrong.append(f"{name}: {answer} is {answers[answer]} there and {report[asked]} here")
    known = RECIPES[own].lists
    assert {known[name] for name in names_of_items(own)} <= {
        known[re.sub(r"\(input=\w+\)", "", name)] for name in agreed
    }
    assert not wrong, f"{len(wrong)} of {agreed.total()}: " + "; ".join(wrong[:8])
    assert agreed.total() > ENOUGH and kept_open < agreed.total() / 10
    assert {CASES[name]["kind"] for name in golden["values"]} | set(golden["skipped"]) >= set(cases.ITEM_KINDS)


@pytest.mark.parametrize(
    ("like", "metric", "match"),
    [
        ("recbole", "ShannonEntropy@10", "it is the entropy in nats / the number of distinct recommended items"),
        ("evidently", "DiversityMetric@10", "divides the sum over pairs by the length of the list"),
        ("evidently", "intra_list_diversity@10", "divides the sum over pairs by the length of the list"),
        ("evidently", "SerendipityMetric@10", "by the length of the history alone"),
        ("evidently", "PersonalizationMetric@10", "it takes every list for one of k items"),
        ("evidently", "ItemBias@10", "it is a plot, and drops rows of reference data by user"),
        ("rectools", "Intersection(ref_reco=reco)@10", "it is 1 for a frame with itself"),
        ("lenskit", "RankBiasedEntropy@10", "raises where the data set lacks an item"),
        ("lenskit", "entropy@10", "adds 0.000001 to the weight of every category"),
        ("lenskit", "least_item_promoted@10", "from a position counted from 0"),
        ("lenskit", "ILS@10", "1 for a list of one item"),
        ("replay", "NCISPrecision@10", "subtracts the smallest of these, which overflows: use snips.of=precision."),
        ("replay", "Novelty@10", "it is 1 - repeat_ratio, and 1 for users without a list"),
        ("recommenders", "catalog_coverage@10", "it can be above 1"),
        ("recommenders", "diversity(item_sim_measure=item_cooccurrence_count)@10", "its similarity counts users"),
        ("recmetrics", "catalog_coverage@10", "it draws lists at random"),
        ("elliot", "GiniIndex@10", r"it is 1 - gini.correction=n_minus_1.: ask fastrec for that"),
        ("elliot", "ShannonEntropy@10", "only if all lists are equally long"),
        ("elliot", "nDCG@10", "its metrics of accuracy were not compared"),
        ("warprec", "SRecall@10", "the categories of the user's relevant items"),
    ],
)
def test_what_a_tool_gets_wrong_is_declined_by_name(like, metric, match):
    with pytest.raises(fastrec.MetricError, match=rf"cannot reproduce .*{match}"):
        fastrec.evaluate([[1]], [[1]], metric, like=like, history=[[1]], n_items=2)


def test_input_that_a_tool_gets_wrong():
    lists, history = [[1, 2], [3]], [[1], [1, 2]]
    with pytest.raises(fastrec.InputError, match="3"):  # a KeyError there
        fastrec.evaluate(lists, None, "popularity@2", like="elliot", history=history)
    assert fastrec.evaluate(lists, None, "overlap@1", like="rectools", reference=lists)["overlap@1"] == 1.0
    with_itself = fastrec.evaluate([[1, 2, 3]], None, "rbo@10", like="lenskit", reference=[[1, 2, 3]])
    assert with_itself["rbo@10"] == pytest.approx(0.749, abs=5e-4)  # as there
    new = fastrec.evaluate(lists, None, "unexpectedness@4", like="replay", reference=lists)["unexpectedness@4"]
    assert new == 1 - (2 / 4 + 1 / 4) / 2


@pytest.mark.parametrize("tool", [tool for tool, own in TOOLS.items() if own not in run.REQUIREMENTS])
def test_no_metric_of_a_tool_is_called_unknown(tool):
    golden, recipe = run.load_golden(tool), RECIPES[TOOLS[tool]]
    for name in golden["names"]:
        assert name == "X" or "has no metric" not in answer_to(recipe, name)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_version_is_that_of_the_answers(tool):
    versions = run.load_golden(tool)["versions"].items()
    assert any(f"{package} {version}" in RECIPES[TOOLS[tool]].version for package, version in versions)


def answer_to(recipe, name):
    """Return our equivalent of a name, or the reason for none."""
    try:
        return str(recipe.translate(name, None, "lists"))
    except fastrec.MetricError as error:
        return str(error)


def test_users_without_a_list_do_not_count_where_the_truth_is_not_read():
    """They count as 0 in the metrics of truth of these tools; a call can say otherwise."""
    call = {"recs": {1: [5, 6]}, "truth": {1: [5], 2: [6]}, "history": {1: [6], 2: [6]}, "like": "rectools"}
    report = fastrec.evaluate(metrics=["recall@2", "popularity@2"], **call)
    assert (report["recall@2"], report["popularity@2"]) == (0.5, 1.0)
    assert fastrec.evaluate(metrics="popularity@2", no_recs="zero", **call)["popularity@2"] == 0.5


def of_elliot(case, k, head):
    """Return the numbers of Elliot by its definitions; the tool itself is not on the package index."""
    lists = {user: [item for item, _ in pairs[:k]] for user, pairs in case["recs"].items()}
    seen = {user: set(case["history"].get(user, ())) for user in lists}
    truth = {user: set(map(int, case["truth"][user])) for user in lists if user in case["truth"]}
    users = Counter(item for items in case["history"].values() for item in set(items))
    tail, n_users = set(range(1, case["n_items"] + 1)) - head, len(case["history"])
    rarest = -math.log2(min(users.values()) / users.total())

    def discounted(novelty):
        found = []
        for user, relevant in truth.items():
            weights = [1 / math.log2(rank + 1) for rank in range(1, len(lists[user]) + 1)]
            gains = [novelty(item) * (item in relevant) for item in lists[user]]
            found.append(sum(map(operator.mul, weights, gains)) / sum(weights))
        return statistics.fmean(found)

    def disparity(shown, possible):
        rates = [sum(len(a & group) for a in shown) / sum(len(a & group) for a in possible) for group in (head, tail)]
        return statistics.pstdev(rates) / statistics.fmean(rates)

    catalogue = head | tail
    return {
        "popularity": statistics.fmean(statistics.fmean(users[item] for item in items) for items in lists.values()),
        "aplt": statistics.fmean(len(tail.intersection(items)) / len(items) for items in lists.values()),
        "aclt": statistics.fmean(len(tail.intersection(items)) for items in lists.values()),
        "epc": discounted(lambda item: 1 - users[item] / n_users),
        "efd": discounted(lambda item: -math.log2(users[item] / users.total()) if users[item] else rarest),
        "item_coverage": len({item for items in lists.values() for item in items}),
        "rsp": disparity(list(map(set, lists.values())), [catalogue - seen[user] for user in lists]),
        "category_coverage": category_coverage(case, lists, truth),
    }


def category_coverage(case, lists, truth):
    labels = {int(item): set(row["category"]) for item, row in case["items"].items()}
    found = (set().union(*(labels[item] for item in set(lists[user]) & own)) for user, own in truth.items())
    return statistics.fmean(map(len, found)) / len(set().union(*labels.values()))


@pytest.mark.parametrize("kind", [kind for kind in cases.ITEM_KINDS if kind not in ("repeated", "unseen")])
def test_numbers_of_elliot_follow_from_its_definitions(kind):
    for case in (case for case in CASES.values() if case["kind"] == kind):
        for k in case["ks"]:
            head = {case["recs"][min(case["recs"])][0][0], 1}  # at least one is shown
            expected = of_elliot(case, k, head)
            report = evaluate("elliot", case, [f"{name}@{k}" for name in expected], head)
            assert {name: report[f"{name}@{k}"] for name in expected} == pytest.approx(expected, rel=0, abs=1e-12)
