"""Names of metrics: parsing, printing, the catalogue, and declaring your own."""

import itertools
import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastrec
from fastrec.exceptions import MetricError
from fastrec.metrics import calls, declaration
from fastrec.metrics.calls import expand, parse
from fastrec.metrics.declaration import FAMILIES
from fastrec.metrics.kinds import AboveZero
from fastrec.metrics.names import USUAL, names_for
from fastrec.metrics.recipe import _without_cutoff
from fastrec.metrics.spelling import split_outside_brackets
from support.bits import group_bits, mean_bits, user_bits
from support.known import OF_ITEMS
from support.list_calls import CI, MATRIX, flat, random_log, recs_of, truth_of

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

# Parsing and printing

CANONICAL = {
    "ndcg": "ndcg",
    " ndcg @ 10 ": "ndcg@10",
    "ndcg()@010": "ndcg@10",
    "ndcg(gain=linear, discount=log2, ideal=truth)@5": "ndcg@5",
    "ndcg( ideal = list,gain=exp2 )": "ndcg(gain=exp2, ideal=list)",
    "ndcg(min_gain=2, gain=exp2)@3": "ndcg(gain=exp2, min_gain=2)@3",
    "ndcg(gain=[0,1.0,  3])": "ndcg(gain=[0, 1, 3])",
    "ndcg(discount=[1, .5], gain=[0, 1])@2": "ndcg(gain=[0, 1], discount=[1, 0.5])@2",
    "map(denominator=n_rel)@100": "map(denominator=n_rel)@100",
    "f_beta(beta=1.0)": "f_beta",
    "f_beta(beta=1)@1": "f_beta@1",
    "f_beta(beta=0.10)": "f_beta(beta=0.1)",
    "f_beta(beta=5e-1)": "f_beta(beta=0.5)",
    "rbp(p=0.8)": "rbp",
    "rbp(p=.95)@10": "rbp(p=0.95)@10",
    "err(max_gain=4)": "err(max_gain=4)",
    "recall(average=pooled, denominator=n_rel)": "recall(average=pooled)",
    "hits(min_gain=2.50)": "hits(min_gain=2.5)",
    "hits(min_gain= any)@3": "hits(min_gain=any)@3",
    "hits(no_recs=skip, no_truth=zero, min_gain=2)@3": "hits(min_gain=2, no_truth=zero, no_recs=skip)@3",
    "mrr\n(\n) @\t7": "mrr@7",
    f"mrr@{2**31 - 1}": f"mrr@{2**31 - 1}",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_one_metric_has_one_text(text: str) -> None:
    assert parse(text).text == CANONICAL[text]
    assert parse(CANONICAL[text]) == parse(text)


def test_printing_and_reading_are_inverse() -> None:
    texts = {ask.text: parse(ask.text) for ask in MATRIX}
    canonical = {call.text for call in texts.values()}
    assert len(canonical) == len(texts)
    for call in texts.values():
        assert parse(call.text) == call
        assert parse(call.text).text == call.text


def test_order_and_spaces_do_not_matter() -> None:
    for ask in MATRIX:
        inside = "  ,".join(f"{key} = {value}" for key, value in reversed(ask.options.items()))
        spaced = f"  {ask.name} ({inside.replace('(', '[').replace(')', ']')})"
        assert parse(spaced if ask.k is None else f"{spaced}@ {ask.k}") == parse(ask.text)


@CI
@given(st.floats(0, 1000, exclude_min=True), st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_numbers_keep_all_their_digits(positive: float, fraction: float) -> None:
    for name, option, value in [("err", "max_gain", positive), ("hits", "min_gain", positive), ("rbp", "p", fraction)]:
        call = parse(f"{name}({option}={value!r})")
        assert dict(call.options).get(option, call.min_gain) == value
        assert parse(call.text) == call


@CI
@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=8))
def test_tables_keep_all_their_digits(numbers: list[float]) -> None:
    for name, option, table in [
        ("dcg", "discount", sorted(numbers, reverse=True)),
        ("cg", "gain", [0.0, *sorted(numbers)]),
    ]:
        call = parse(f"{name}({option}={table})")
        assert dict(call.options)[option] == tuple(table)
        assert parse(call.text) == call


UNREADABLE = [
    "",
    "   ",
    "@10",
    "(gain=exp2)",
    "ndcg@",
    "ndcg@-1",
    "ndcg@1.5",
    "ndcg@1e3",
    "ndcg@\uff11\uff10",
    "ndcg@10@20",
    "-ndcg@10",
    "!hit_rate@2",
    "ndcgé@3",
    "mrr²",
    "mrr?",
    "ndcg%@3",
    "ndcg 10",
    "ndcg(gain=exp2",
    "ndcg gain=exp2)",
    "ndcg(gain=exp2))",
    "ndcg(gain)",
    "ndcg(=exp2)",
    "ndcg(gain=)",
    "ndcg(gain=[0, 1)",
    "ndcg(gain=[0, [1]])",
    "ndcg[10]",
    "ndcg(k=10)",
    "ndcg(Gain=exp2)",
    f"ndcg@{2**31}",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(fastrec.MetricError):
        parse(text)


@pytest.mark.parametrize("thing", [None, 3, b"ndcg", ["ndcg"], ("ndcg", 10), object()])
def test_only_texts_are_read(thing: Any) -> None:
    with pytest.raises(fastrec.FastrecError, match="string"):
        fastrec.evaluate([[1]], [[1]], [thing])


SUGGESTIONS = {
    "ndgc@10": "'ndcg'",
    "mapp": "'map'",
    "precison@5": "'precision'",
    "auc_limited": "'limited_auc'",
    "map(denominatr=k)": "'denominator'",
    "map(denominator=nrel)": "'n_rel'",
    "ndcg(ideal=lists)": "'list'",
    "dcg(discount=log_2)": "'log2'",
    "hits(mingain=2)": "'min_gain'",
}


SUGGESTIONS |= {"Coverage@5": "'item_coverage', 'user_coverage' or 'category_coverage'"}


@pytest.mark.parametrize("text", SUGGESTIONS)
def test_the_nearest_is_suggested(text: str) -> None:
    with pytest.raises(fastrec.MetricError, match=f"did you mean {SUGGESTIONS[text]}"):
        parse(text)


def test_what_is_near_nothing_gets_some_names_and_where_the_others_are() -> None:
    known = fastrec.catalogue()
    names = {metric["name"] for metric in known}
    with pytest.raises(
        fastrec.MetricError, match=rf"hits, .*… \({len(names)} of them: fastrec.catalogue\(\)\)$"
    ) as found:
        parse("xyzzy")
    shown = str(found.value).partition("known: ")[2].partition(", …")[0].split(", ")
    of_items = {name for name in OF_ITEMS if name in shown}
    of_rows = {metric["name"] for metric in known if metric["kind"] == "scores" and metric["name"] in shown}
    assert of_items and of_rows and set(shown) - of_items - of_rows  # not of accuracy only


@pytest.mark.parametrize("text", ["calibration", "calibration@5"])
def test_calibration_of_lists_has_another_name(text: str) -> None:
    with pytest.raises(fastrec.MetricError, match=r"; for lists there is miscalibration$"):
        fastrec.evaluate([[1]], [[1]], text)


def test_names_of_the_field_are_aliases() -> None:
    names = {"ild": "intra_list_diversity", "rank_biased_overlap": "rbo", "catalogue_coverage": "item_coverage"}
    assert {alias: parse(alias).text for alias in names} == names


OTHER_NAMES = {
    "rows": {
        "average_precision": "pr_auc PR-AUC aucpr auprc average_precision_score ap areaUnderPR BinaryAveragePrecision",
        "log_loss": "bce binary_crossentropy cross_entropy neg_log_loss BinaryCrossEntropy",
        "auc": "roc_auc_score BinaryAUROC areaUnderROC",
        "gauc": "uauc wuauc session_auc group_auc RetrievalAUROC",
        "mcc": "matthews_corrcoef",
        "mse": "mean_squared_error",
        "calibration": "copc calibraton",
        "ks": "ks_statistic",
        "ndcg": "ndgc ndcg_cut_10",
        "normalized_entropy": "category_entropy_",  # and no metric of items
    },
    "lists": {
        "novelty": "MeanInvUserFreq surprisal NoveltyMetric",
        "popularity": "AvgRecPopularity MeanPopRank",
        "precision": "P_5",
        "map": "ap",
        "ndcg": "RetrievalNormalizedDCG ndgc",
        "gini": "giniindex",
        "recall": "recal",
    },
}


@pytest.mark.parametrize(
    ("kind", "ours", "name"),
    [(kind, ours, name) for kind, own in OTHER_NAMES.items() for ours, names in own.items() for name in names.split()],
)
def test_unknown_names_have_the_meaning_of_other_tools(kind: str, ours: str, name: str) -> None:
    call = {"rows": lambda: fastrec.evaluate_scores([1, 0], [0.9, 0.1], [0, 2], name)}
    call["lists"] = lambda: fastrec.evaluate([[1]], [[1]], f"{name}@5")
    with pytest.raises(MetricError, match=f"unknown metric .*; did you mean '{ours}'"):
        call[kind]()


def test_usual_other_names_are_not_ours() -> None:
    for kind, table in USUAL.items():
        assert table.keys() <= set(names_for(FAMILIES[kind]))
        for name in " ".join(table.values()).split():
            with pytest.raises(MetricError, match="unknown metric"):
                parse(name)


def test_splitting_leaves_brackets_whole() -> None:
    text = "ndcg(gain=[0, 1, 3], ideal=list)@10, recall@5,,map(denominator=k)"
    assert split_outside_brackets(text) == ["ndcg(gain=[0, 1, 3], ideal=list)@10", "recall@5", "map(denominator=k)"]


# Metrics of a call


def names(*arguments: Any) -> list[str]:
    return [call.text for call in expand(*arguments)]


def test_cutoffs_go_to_the_metrics_without_one() -> None:
    assert names(["ndcg", "map@7", "hits"], [5, 10]) == ["ndcg@5", "ndcg@10", "map@7", "hits@5", "hits@10"]
    assert names("ndcg(gain=exp2)", 3) == ["ndcg(gain=exp2)@3"]
    assert names(["ndcg", "ndcg@3"]) == ["ndcg", "ndcg@3"]


@pytest.mark.parametrize("like", [None, "ranx"])
def test_a_cutoff_that_no_metric_takes_is_an_error(like: str | None) -> None:
    lists: Any = ([[1]], [[1]])
    message = r"^k=5 has no effect: ndcg@10 has its own cut-off; leave out one of them$"
    with pytest.raises(fastrec.MetricError, match=message):
        fastrec.evaluate(*lists, ["ndcg@10", "mrr@10"], k=[5, 6], like=like)
    with pytest.raises(fastrec.MetricError, match="k=10 has no effect: ndcg@10 has"):
        fastrec.Evaluator("ndcg@10", k=10, like=like)
    with pytest.raises(fastrec.MetricError, match="k=5 has no effect: no metric here takes a cut-off"):
        fastrec.evaluate_scores([0, 1], [0.2, 0.8], metrics="auc", k=5, like=like and "sklearn")
    assert list(fastrec.evaluate(*lists, ["ndcg@10", "mrr"], k=5, like=like)) == ["ndcg@10", "mrr@5"]
    assert list(fastrec.evaluate(*lists, k=10, like=like)) == list(fastrec.evaluate(*lists, like=like))
    with pytest.raises(fastrec.MetricError, match="must name at least one metric"):
        fastrec.evaluate(*lists, [], like=like)


def test_each_metric_comes_once_in_the_order_it_was_asked_for() -> None:
    asked = ["recall", "ndcg(gain=linear)", "recall@5", "ndcg", "recall(average=user)"]
    assert names(asked, [5, 1]) == ["recall@5", "recall@1", "ndcg@5", "ndcg@1"]


def test_default_metrics() -> None:
    at_ten = ["ndcg@10", "recall@10", "precision@10", "map@10", "mrr@10", "hit_rate@10"]
    assert list(fastrec.evaluate([[1]], [[1]])) == at_ten
    assert names(None, [3, 10]) == [text.replace("@10", f"@{k}") for text in at_ten for k in (3, 10)]


def test_a_report_finds_any_spelling() -> None:
    report = fastrec.evaluate([[1, 2]], [[2]], "ndcg(gain=exp2)@2", per_user=True, groups=["a"])
    spelled = "ndcg( discount=log2,gain=exp2 )@ 2"
    assert report[spelled] == report["ndcg(gain=exp2)@2"]
    assert report.per_user[spelled].tolist() == [report[spelled]]
    assert report.groups["group"]["a"][spelled].mean == report[spelled]


# The catalogue

AVERAGE = {"average": ["user", "pooled"]}
GAIN, DISCOUNT = {"gain": ["linear", "exp2", "binary", "table"]}, {"discount": ["log2", "log2_flat2", "table"]}
USER_MODEL = {"max_gain": ["number"], "t": ["number"], "depth": ["all", "number"]}
DEFINED: dict[str, dict[str, list[str]]] = {
    "hits": {},
    "hit_rate": {},
    "precision": {"denominator": ["k", "min_k_n_rec", "min_k_n_rel", "min_k_n_rel_n_rec"], **AVERAGE},
    "recall": {"denominator": ["n_rel", "min_k_n_rel", "min_k_n_rel_n_rec", "listed"], **AVERAGE},
    "f_beta": {"beta": ["number"], "average": ["user", "pooled", "means"]},
    "f1": {"average": ["user", "pooled", "means"]},
    "r_precision": {"multiple": ["number"]},
    "mrr": {},
    "arhr": {"denominator": ["one", "n_rel"]},
    "map": {"denominator": ["min_k_n_rel", "n_rel", "k", "hits", "min_n_rel_n_rec", "min_k_n_rel_n_rec"]},
    "cg": GAIN,
    "dcg": GAIN | DISCOUNT,
    "ndcg": GAIN | DISCOUNT | {"ideal": ["truth", "truth_uncut", "list", "list_at_k", "k"]},
    "rbp": {"p": ["number"], "gain": ["linear", "binary"]},
    "err": {"max_gain": ["number"]},
    "accuracy": {},
    "specificity": {},
    "fallout": {},
    "mcc": {},
    "limited_auc": {"unseen": ["tail_mean", "list_only"]},
    "ndcg_rel": {},
    "rndcg": {},
    "normalized_gain": {},
    "bpref": {"denominator": ["min_n_rel_n_other", "n_rel"]},
    "inf_ap": {},
    "judged": {},
    "unjudged": {},
    "num_nonrel_judged_ret": {},
    "rbp_residual": {"p": ["number"], "tail": ["always", "unjudged"]},
    "iprec_at_recall": {"level": ["number"], "rounding": ["up", "nearest"]},
    "eleven_point_average": {"rounding": ["up", "nearest"]},
    "bin_g": {},
    "median_rank": {},
    "num_ret": {},
    "num_rel": {},
    "utility": {name: ["number"] for name in "abcd"},
    "set_ap": {},
    "mar": {"denominator": ["n_rel", "hits"]},
    "mean_precision": {},
    "mean_recall": {},
    "ncrr": {},
    "average_relevance_position": GAIN | AVERAGE,
    "coverage_error": {},
    "ordered_pair_accuracy": AVERAGE,
    "ndpm": {},
    "insq": USER_MODEL,
    "inst": USER_MODEL,
    "bpm": USER_MODEL,
    "nerr": {
        "max_gain": ["number"],
        "model": ["reciprocal", "cut", "patience", "goal"],
        "p": ["number"],
        "t": ["number"],
        "depth": ["all", "number"],
    },
    "compatibility": {"p": ["number"], "normalize": ["yes", "no"]},
}
DEFAULT_NUMBERS = {"beta": 1.0, "p": 0.8, "max_gain": None, "multiple": 1.0, "t": 1.0, "level": 0.1}
DEFAULT_NUMBERS |= {"a": 1.0, "b": -1.0, "c": 0.0, "d": 0.0}
DEFAULTS = {("nerr", "p"): 0.9, ("compatibility", "p"): 0.95}
CATALOGUE = {
    metric["name"]: metric
    for metric in fastrec.catalogue()
    if metric["kind"] == "ranking" and metric["name"] not in OF_ITEMS
}


def test_the_catalogue_is_complete() -> None:
    assert list(CATALOGUE) == list(DEFINED)
    names = [
        metric["name"]
        for metric in fastrec.catalogue()
        if metric["kind"] == "ranking" and metric["name"] not in OF_ITEMS
    ]
    assert len(names) == len(CATALOGUE)


@pytest.mark.parametrize("name", DEFINED)
def test_options_and_defaults(name: str) -> None:
    """The first choice is the default; every metric also takes min_gain and policies."""
    options = dict(CATALOGUE[name]["options"])
    assert options.pop("min_gain") == {
        "default": None,
        "required": False,
        "choices": ["any"],
        "kind": "choice or number",
    }
    policies = ["skip", "zero", "nan", "error"]
    for policy, choices in (("no_truth", [*policies, "judged", "listed"]), ("no_recs", policies)):
        assert options.pop(policy) == {"default": None, "required": False, "choices": choices, "kind": "choice"}
    assert options.pop("mean") == {"default": None, "required": False, "choices": ["geometric"], "kind": "choice"}
    assert list(options) == list(DEFINED[name])
    for option, choices in DEFINED[name].items():
        kinds = [["choice"] if set(choices) - {"number", "table"} else [], {"number", "table"}.intersection(choices)]
        kind = " or ".join(itertools.chain(*kinds))
        texts = [choice for choice in choices if choice not in ("table", "number")]
        assert options[option] == {
            "default": DEFAULTS.get((name, option), DEFAULT_NUMBERS[option]) if kind == "number" else choices[0],
            "required": option == "max_gain",
            "choices": texts,
            "kind": kind,
        }


@pytest.mark.parametrize("name", DEFINED)
def test_every_metric_is_documented(name: str) -> None:
    metric = CATALOGUE[name]
    assert metric["doc"].startswith(metric["summary"])
    assert metric["summary"].endswith((".", ":"))
    assert "\n" not in metric["summary"]
    assert "Formula: " in metric["doc"]
    assert re.search(rf"(>>>|\.\.\.) .*\b{name}\b", metric["doc"]), "an example that uses it"
    words = [*DEFINED[name], *(choice for choices in DEFINED[name].values() for choice in choices if "_" in choice)]
    assert [word for word in words if word not in metric["doc"]] == [], "every option and choice is explained"
    assert re.search(r"\b(19|20)\d\d\b", metric["source"]), "author and year"
    assert metric["formula"]
    low, high = metric["range"]
    assert (-math.inf if low is None else low) < (math.inf if high is None else high)


def test_the_catalogue_is_a_copy() -> None:
    fastrec.catalogue()[0]["options"]["min_gain"]["choices"].append("mine")
    assert fastrec.catalogue()[0]["options"]["min_gain"]["choices"] == ["any"]


# Declaring a metric


@pytest.fixture(autouse=True)
def _forget_own_metrics() -> Iterator[None]:
    known = dict(declaration.DECLARED["lists"])
    yield
    declaration.DECLARED["lists"].clear()
    declaration.DECLARED["lists"].update(known)
    declaration.forget_parsed()


def declare(formula: Callable[..., Any], **fields: Any) -> None:
    fastrec.ranking_metric(**{"range": (0, 1), "name": "mine"} | fields)(formula)


def test_the_metrics_of_fastrec_pass_the_checks_of_declared_ones() -> None:
    for metric in declaration.known_metrics():
        assert metric.builtin
        declaration.check_declaration(metric)


def test_a_formula_on_arrays_may_limit_gains() -> None:
    declare(lambda s: np.where(s.hits > 0, s.cascade(2.0), 0.0))
    assert fastrec.evaluate([[1]], [{1: 2.0}], "mine")["mine"] == 0.75
    with pytest.raises(fastrec.InputError, match=r"truth gains must not exceed mine's max_gain = 2\.0, found 3\.0"):
        fastrec.evaluate([[1]], [{1: 3.0}], "mine")


LOG = random_log("integer", 9000, seed=21)  # more users than a formula on arrays takes at a time
RECS, TRUTH = recs_of(LOG), truth_of(LOG)
USERS: dict[str, Any] = {
    "groups": np.random.default_rng(3).choice(["a", "b", "c"], 9000),
    "user_weight": np.random.default_rng(4).choice([0.3, 1.0, 2.0], 9000),
}


def check_twins(own: str, built_in: str, **call: Any) -> None:
    """Check that both metrics have the same bits everywhere."""
    report = fastrec.evaluate(RECS, TRUTH, [own, built_in, "hits@3"], n_items=100, per_user=True, **call)
    first, second = parse(own).text, parse(built_in).text
    means, values = mean_bits(report.estimates), user_bits(report)
    assert means[first] == means[second]
    assert values[first] == values[second]
    for by_metric in group_bits(report).values():
        assert by_metric[first] == by_metric[second]


def doubled(s: Any) -> Any:
    """Written out, this is 2^200 operations."""
    row = s.hits / s.k
    for _ in range(200):
        row = (row + row) * 0.5
    return row


def added_up(s: Any) -> Any:
    """A sum nested deeper than Python's own stack."""
    row = 0.0 * s.hits
    for _ in range(2048):
        row = row + s.hits
    return row / s.k / 2048.0


FORMULAS: dict[str, tuple[Callable[[Any], Any], str, tuple[float, float | None]]] = {
    "a ratio": (lambda s: s.hits / s.k, "precision", (0, 1)),
    "a sum": (lambda s: s.hit_sum("reciprocal"), "arhr", (0, None)),
    "gains": (lambda s: s.gain_sum("exp2", "log2"), "dcg(gain=exp2)", (0, None)),
    "an ideal": (
        lambda s: s.gain_sum("linear", "log2") / s.ideal_sum("linear", "log2", "list"),
        "ndcg(ideal=list)",
        (0, 1),
    ),
    "a minimum": (lambda s: np.minimum(s.hits, s.one), "hit_rate", (0, 1)),
    "within k": (lambda s: s.precision_sum / s.within_k(s.n_rel), "map", (0, 1)),
    "the catalogue": (lambda s: (s.within_k(s.n_rec) - s.hits) / (s.n_items - s.n_rel), "fallout", (0, 1)),
    "where": (lambda s: np.where(s.hits > 0, s.hits / s.k, 0.0), "precision", (0, 1)),
    "a row used again and again": (doubled, "precision", (0, 1)),
    "a very long sum": (added_up, "precision", (0, 1)),
    "where, gains": (lambda s: np.where(s.hits > 0, s.gain_sum("exp2", "log2"), 0.0), "dcg(gain=exp2)", (0, None)),
    "where, n_rel": (lambda s: np.where(s.n_rel > 0, s.hits / s.n_rel, 0.5), "recall", (0, 1)),
    "a comparison": (lambda s: s.hits > 0, "hit_rate", (0, 1)),
    "an operator": (lambda s: abs(-s.first_reciprocal), "mrr", (0, 1)),
    "a power": (lambda s: s.hits**1, "hits", (0, None)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("at", ["", "@3"])
@pytest.mark.parametrize("name", FORMULAS)
def test_an_own_formula_has_the_bits_of_the_built_in(name: str, at: str) -> None:
    formula, built_in, bounds = FORMULAS[name]
    declare(formula, range=bounds)
    check_twins(f"mine{at}", f"{built_in}{at}")
    check_twins(f"mine{at}", f"{built_in}{at}", **USERS)
    for policy in ("zero", "nan"):
        check_twins(f"mine{at}", f"{built_in}{at}", no_truth=policy)
    own, twin = f"mine(min_gain=2){at}", parse(f"{built_in}{at}").text
    options = ", ".join(part for part in (twin.partition("(")[2].partition(")")[0], "min_gain=2") if part)
    check_twins(own, f"{parse(twin).metric.name}({options}){at}")


def test_a_formula_on_arrays_is_exact_whatever_the_cut() -> None:
    declare(lambda s: np.where(s.hits > 1, np.cbrt(s.hits / 7.0), 0.1))
    one = fastrec.evaluate(RECS, TRUTH, ["mine@5", "ndcg@5"], per_user=True, n_threads=1, **USERS)
    for n_threads in (2, 5):
        more = fastrec.evaluate(RECS, TRUTH, ["mine@5", "ndcg@5"], per_user=True, n_threads=n_threads, **USERS)
        assert mean_bits(more.estimates) == mean_bits(one.estimates)
        assert user_bits(more) == user_bits(one)
        assert group_bits(more) == group_bits(one)
    parts = [fastrec.Evaluator(["mine@5", "ndcg@5"]) for _ in range(3)]
    for part, (start, end) in zip(parts, [(8200, 9000), (0, 511), (511, 8200)], strict=True):
        users = {name: values[start:end] for name, values in USERS.items()}
        part.update(flat(LOG.recs[start:end]), list(map(dict, LOG.truth[start:end])), **users)
    merged = parts[1].merge(parts[2]).merge(parts[0]).result()
    assert mean_bits(merged.estimates) == mean_bits(one.estimates)
    assert group_bits(merged) == group_bits(one)
    whole = fastrec.evaluate(RECS, TRUTH, "mine@5", per_user=True)
    values = [Fraction(value) for value in whole.per_user["mine@5"].tolist() if not math.isnan(value)]
    error = abs(Fraction(whole["mine@5"]) - sum(values, Fraction(0)) / len(values))
    assert error <= Fraction(1, 2**60) + Fraction(math.ulp(whole["mine@5"])) / 2


def test_an_own_option() -> None:
    @fastrec.ranking_metric(range=(0, 1), source="our own", formula="h / k or h / n_rel", higher_is_better=False)
    def share(s: Any, *, of: Literal["k", "n_rel"] = "k") -> Any:
        """Share of something."""
        return s.hits / (s.k if of == "k" else s.n_rel)

    check_twins("share@5", "precision@5")
    check_twins("share(of=n_rel)@5", "recall@5")
    assert parse("share( of = k )@5").text == "share@5"
    entry = next(metric for metric in fastrec.catalogue() if metric["name"] == "share")
    assert (entry["name"], entry["summary"], entry["source"]) == ("share", "Share of something.", "our own")
    assert (entry["formula"], entry["range"], entry["higher_is_better"]) == ("h / k or h / n_rel", (0, 1), False)
    assert entry["options"]["of"] == {"default": "k", "required": False, "choices": ["k", "n_rel"], "kind": "choice"}
    with pytest.raises(fastrec.MetricError, match="of=n must be k or n_rel"):
        parse("share(of=n)")
    with pytest.raises(fastrec.MetricError, match="no option 'by'"):
        parse("share(by=n)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "epc(discount=a tabel)",
            r"discount=a tabel must be log2 or none or rbp or a table, such as \[1, 0\.5\] for ranks",
        ),
        (
            "cg(gain=expp)",
            r"gain=expp must be .* or a table, such as \[0, 1\] for grades 0 and 1; did you mean 'exp2'\?$",
        ),
        ("rbo(p=2)", r"p=2 must be a number above 0 and below 1$"),
    ],
)
def test_an_error_about_an_option_shows_its_form(text, says):
    with pytest.raises(fastrec.MetricError, match=says):
        parse(text)


@pytest.mark.parametrize("name", ["mae", "mse", "rmse", "mape", "r2", "xauc", "kendall_tau", "spearman_rho"])
def test_metrics_of_targets_have_no_smallest_gain(name: str) -> None:
    with pytest.raises(fastrec.MetricError, match=f"{name} has no option 'min_gain'"):
        parse(f"{name}(min_gain=2)")
    assert "min_gain" not in next(each for each in fastrec.catalogue() if each["name"] == name)["options"]


def test_a_required_option() -> None:
    def formula(s: Any, *, of: Literal["k", "n_rel"]) -> Any:
        return s.hits / (s.k if of == "k" else s.n_rel)

    declare(formula)
    check_twins("mine(of=k)@5", "precision@5")
    with pytest.raises(fastrec.MetricError, match="mine needs the option of"):
        parse("mine@5")


def test_declaring_again_replaces() -> None:
    declare(lambda s: s.hits / s.k)
    check_twins("mine@5", "precision@5")
    declare(lambda s: s.hits / s.n_rel)
    check_twins("mine@5", "recall@5")
    assert [metric["name"] for metric in fastrec.catalogue()].count("mine") == 1


def test_a_metric_with_a_blank_in_its_name_is_outside_its_range() -> None:
    """A kernel's failure has a metric or a message, and a blank does not tell which."""

    @fastrec.ranking_metric(range=(0, 1))
    def wide(s: Any, *, a: Literal["x", "y"] = "x", b: Literal["x", "y"] = "x") -> Any:
        return s.hits * (2 if a == b else 0)

    wrong = "wide(a=y, b=y)@1 of user 0 is not a number within range=(0.0, 1.0), its range: declare range=(low, high)"
    with pytest.raises(fastrec.InputError, match=re.escape(wrong)):
        fastrec.evaluate([[1]], [[1]], "wide(a=y, b=y)@1")


def test_a_declaration_without_arguments_is_of_values_from_0_to_1() -> None:
    @fastrec.ranking_metric
    def missed(s: Any) -> Any:
        return 1 - s.hits / s.k

    assert fastrec.evaluate([[1, 2, 3, 4]], [[1]], "missed@4")["missed@4"] == 0.75
    assert [metric["range"] for metric in fastrec.catalogue() if metric["name"] == "missed"] == [(0.0, 1.0)]
    for wrong in ("missed", (0, 1)):
        with pytest.raises(fastrec.InputTypeError, match="are passed by name, found"):
            fastrec.ranking_metric(wrong)  # type: ignore[call-overload]


def test_a_decorated_function_stays_a_function() -> None:
    @fastrec.ranking_metric(range=(0, 1))
    def mine(s: Any) -> Any:
        return s.hits / s.k

    class Numbers:
        hits, k = 3.0, 4.0

    assert mine(Numbers) == 0.75


BAD_NAMES = ["", "Mine", "my-metric", "9th", "two words", "_mine", "ndcg", "map", "f1"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(fastrec.MetricError, match=re.escape(repr(name))):
        fastrec.ranking_metric(range=(0, 1), name=name)(named(name))


def named(name: str) -> Callable[..., Any]:
    def formula(s: Any) -> Any:
        return s.hits

    formula.__name__ = name
    return formula


def test_a_built_in_cannot_be_replaced_even_before_it_is_loaded() -> None:
    program = """
import fastrec
try:
    @fastrec.ranking_metric(range=(0, 1))
    def ndcg(s):
        return 1 - s.hits / s.k
except fastrec.MetricError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'ndcg' is a metric of fastrec" in found.stdout


def positional(s: Any, of: Literal["k"] = "k") -> Any:
    return s.hits


def anything(s: Any, **options: Any) -> Any:
    return s.hits


def without_choices(s: Any, *, of: str = "k") -> Any:
    return s.hits


def without_annotation(s: Any, *, of="k") -> Any:  # type: ignore[no-untyped-def]
    return s.hits


def numbers_for_choices(s: Any, *, of: Literal[1, 2] = 1) -> Any:
    return s.hits


def default_not_a_choice(s: Any, *, of: Literal["k", "n_rel"] = "n") -> Any:  # type: ignore[assignment]
    return s.hits


def min_gain_of_its_own(s: Any, *, min_gain: Literal["k"] = "k") -> Any:
    return s.hits


BAD_OPTIONS: list[Callable[..., Any]] = [positional, anything, without_choices, without_annotation, numbers_for_choices]
BAD_OPTIONS += [default_not_a_choice, min_gain_of_its_own]


@pytest.mark.parametrize("formula", BAD_OPTIONS, ids=lambda formula: formula.__name__)
def test_options_that_cannot_be(formula: Callable[..., Any]) -> None:
    option = "min_gain" if formula is min_gain_of_its_own else "options" if formula is anything else "of"
    with pytest.raises(fastrec.MetricError, match=f"'{option}'"):
        fastrec.ranking_metric(range=(0, 1))(formula)


OUT_OF_RANGE: dict[str, Callable[[Any], Any]] = {
    "too large": lambda s: s.hits + 0.5,
    "too small": lambda s: s.hits / s.k - 1,
    "infinite": lambda s: s.n_rel / (s.k - s.k),
    "not a number": lambda s: np.sqrt(s.hits - 9),
    "too large, on arrays": lambda s: np.where(s.hits > 0, s.hits + 0.5, 0.0),
    "too small, on arrays": lambda s: np.where(s.hits > 0, -s.hits, 0.0),
    "infinite, on arrays": lambda s: np.where(s.hits > 0, math.inf, 0.0),
    "not a number, on arrays": lambda s: np.where(s.hits > 0, math.nan, 0.0),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_values_outside_the_declared_range_are_refused(name: str) -> None:
    declare(OUT_OF_RANGE[name])
    recs, truth = [[1], [2], [3]], [[], [2], [3]]
    with pytest.raises(fastrec.InputError, match=r"mine@4 of user 'bob' is not .* within range="):
        fastrec.evaluate(recs, truth, ["recall@4", "mine@4"], user_ids=["ann", "bob", "eve"])


@pytest.mark.parametrize("policy", ["skip", "zero", "nan"])
def test_users_who_are_not_counted_may_have_any_value(policy: str) -> None:
    declare(lambda s: np.where(s.n_rel > 0, 1.0, math.nan))
    report = fastrec.evaluate([[1], [2]], [[], [2]], "mine", no_truth=policy)  # type: ignore[arg-type]
    mean = {"skip": 1.0, "zero": 0.5, "nan": math.nan}[policy]
    assert report["mine"] == mean or math.isnan(mean)


WRONG_SHAPES: dict[str, Callable[[Any], Any]] = {
    "three values": lambda s: np.ones(3),
    "one value": lambda s: np.where(s.hits > 0, 1.0, 0.0)[:1],
    "two for each": lambda s: np.stack([np.where(s.hits > 0, 1.0, 0.0)] * 2),
    "a text": lambda s: "0.5",
    "nothing": lambda s: None,
}


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_formula_gives_one_number_per_user(name: str) -> None:
    declare(WRONG_SHAPES[name])
    with pytest.raises(fastrec.MetricError, match="mine"):
        fastrec.evaluate([[1], [2], [3], [4]], [[1], [2], [3], [4]], "mine")


def test_a_constant_is_a_formula() -> None:
    declare(lambda s: 0.25)
    report = fastrec.evaluate([[1], [2], []], [[1], [], [3]], "mine", per_user=True)
    assert report.per_user["mine"][[0, 2]].tolist() == [0.25, 0.0]
    assert report["mine"] == 0.125


def test_a_formulas_own_error_comes_through() -> None:
    def formula(s: Any) -> Any:
        raise ZeroDivisionError("mine alone")

    declare(formula)
    with pytest.raises(ZeroDivisionError, match="mine alone"):
        fastrec.evaluate([[1]], [[1]], "mine")


def test_a_formula_says_when_it_needs_the_catalogue() -> None:
    declare(lambda s: np.where(s.n_items > 3, s.hits / s.n_items, 0.0))
    with pytest.raises(fastrec.MetricError, match=r"mine@2 needs .*n_items"):
        fastrec.evaluate([[1]], [[1]], "mine@2")
    assert fastrec.evaluate([[1]], [[1]], "mine@2", n_items=4)["mine@2"] == 0.25


def test_zero_over_zero_is_zero_in_every_formula() -> None:
    declare(lambda s: (s.hits - s.hits) / (s.n_rel - s.n_rel))
    assert fastrec.evaluate([[1]], [[1]], "mine")["mine"] == 0
    declare(lambda s: np.where(s.hits > -1, (s.hits - s.hits) / (s.n_rel - s.n_rel), 1.0))
    assert fastrec.evaluate([[1]], [[1]], "mine")["mine"] == 0
    declare(lambda s: np.where(s.hits > -1, np.divide(s.hits - s.hits, s.n_rel - s.n_rel), 1.0))
    assert fastrec.evaluate([[1]], [[1]], "mine")["mine"] == 0


@pytest.mark.parametrize("elsewhere", ["AP", "ap", "AP_", "A.P."])
def test_what_a_metric_is_called_elsewhere_is_suggested(elsewhere):
    """It may be map of lists or average_precision of rows, so it is an alias of neither."""
    with pytest.raises(MetricError, match="did you mean 'map'"):
        parse(f"{elsewhere}@10")


@pytest.mark.parametrize(
    ("text", "canonical"),
    {
        "NDCG@10": "ndcg@10",
        "nDCG(gain=exp2)@3": "ndcg(gain=exp2)@3",
        "HitRate@5": "hit_rate@5",
        "hr@10": "hit_rate@10",
        "HR@10": "hit_rate@10",
        "P@5": "precision@5",
        "precision(threshold=0.5)": "precision(threshold=0.5)",
        "Prec(threshold=0.5)": "precision(threshold=0.5)",
        "AUROC": "auc",
        "roc_auc": "auc",
        "LogLoss": "log_loss",
        "map_cut@10": "map(denominator=n_rel)@10",
        "map_cut(min_gain=2)@10": "map(denominator=n_rel, min_gain=2)@10",
        "ndcg_cut@10": "ndcg@10",
    }.items(),
)
def test_other_case_and_usual_names_are_found(text, canonical):
    assert parse(text).text == canonical


def test_a_report_is_asked_by_other_names():
    report = fastrec.evaluate([[1, 2]], [[2]], ["HR@2", "MRR"])
    assert list(report) == ["hit_rate@2", "mrr"] and report["hr@2"] == report["Success@2"] == 1


def test_aliases_are_those_of_one_metric_and_in_the_catalogue():
    owners = {}
    for metric in fastrec.catalogue():
        required = ", ".join(f"{name}=0.5" for name, option in metric["options"].items() if option["required"])
        given = f"({required})" if required else ""
        for alias, text in metric["aliases"].items():
            if given:  # an alias chooses no value either
                with pytest.raises(MetricError, match=f"^{metric['name']} needs the option "):
                    parse(alias)
            call = parse(f"{text}{given}")
            assert parse(f"{alias}{given}").text == call.text and call.metric.name == metric["name"]
            owners.setdefault(re.sub(r"[^a-z0-9]", "", alias.lower()), set()).add(metric["name"])
    names = {re.sub(r"[^a-z0-9]", "", metric["name"]) for metric in fastrec.catalogue()}
    assert len(owners) > 15 and all(len(own) == 1 for own in owners.values()) and not names & set(owners)


def test_an_option_that_an_alias_stands_for_is_not_given_twice():
    with pytest.raises(MetricError, match="the option denominator appears twice"):
        parse("map_cut(denominator=k)@10")


@pytest.mark.parametrize(
    ("aliases", "says"),
    [
        ("hh", r"aliases must be a list of strings, found the string 'hh': write \['hh'\]"),
        (["a b"], "an alias must be a name, optionally with options in brackets, found 'a b'"),
        (["hr"], "the alias 'hr' of mine is already an alias of hit_rate"),
        (["HitRatio"], "the alias 'HitRatio' of mine is already an alias of hit_rate"),
        (["NDCG"], "the alias 'NDCG' of mine is already the metric ndcg"),
        (["log_loss"], "the alias 'log_loss' of mine is already the metric log_loss"),
        (["taken"], "the alias 'taken' of mine is already an alias of other"),
        (["mine(x=2)"], "the alias 'mine' of mine is already the metric itself"),
        (["hh", "h_h(x=2)"], r"aliases name 'hh' twice, the second time as 'h_h\(x=2\)'"),
        (["hh(y=1)"], "mine has no option 'y'"),
        (["hh(x=-1)"], r"the alias hh\(x=-1\) of mine: x=-1 must be a number above 0"),
        (["hh(no_truth=maybe)"], r"the alias hh\(no_truth=maybe\) of mine: no_truth=maybe must be skip or zero"),
        (["hh(,)"], r"cannot read '' in 'hh\(,\)'"),
    ],
)
def test_aliases_are_checked_when_they_are_declared(aliases, says):
    def formula(s, *, x: AboveZero = 1.0):
        return x * s.hits

    fastrec.ranking_metric(range=(0, None), name="other", aliases=["taken"])(lambda s: s.hits)
    for _ in range(2):  # a notebook cell that runs again declares its metric again
        fastrec.ranking_metric(range=(0, None), name="mine", aliases=["hh(x=2, no_truth=zero)"])(formula)
    with pytest.raises(fastrec.FastrecError, match=says):
        fastrec.ranking_metric(range=(0, None), name="mine", aliases=aliases)(formula)
    assert parse("HH@3").text == "mine(x=2, no_truth=zero)@3", "the declaration before it stays"


def test_a_metric_is_not_called_like_an_alias_of_another():
    with pytest.raises(MetricError, match="'p' equals an alias of precision, except for case and '_': choose"):
        fastrec.ranking_metric(range=(0, 1), name="p")(lambda s: s.hits / s.k)
    with pytest.raises(MetricError, match="the alias 'brier' of loss is already the metric brier"):
        declaration.score_metric(range=(0, 1), source="", formula="", needs="classes", aliases=["brier"])(loss)
    assert "loss" not in [metric.name for metric in declaration.known_metrics()]


def loss(s):
    return s


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("n_dcg", "the metric ndcg"),
        ("hitrate", "the metric hit_rate"),
        ("au_c", "the metric auc"),
        ("m_i_n_e", "the metric mine"),
        ("o_k", "an alias of mine"),
        ("hit_r_atio", "an alias of hit_rate"),
    ],
)
def test_a_metric_is_not_spelled_like_another(name, whose):
    """Otherwise neither could be found in another case."""
    fastrec.ranking_metric(range=(0, 1), name="mine", aliases=["ok"])(lambda s: s.hits / s.k)
    with pytest.raises(MetricError, match=f"'{name}' equals {whose}, except for case and '_': choose another"):
        fastrec.ranking_metric(range=(0, 1), name=name)(lambda s: s.hits / s.k)
    assert parse("NDCG@1").text == parse("N_DCG@1").text == "ndcg@1"
    assert parse("MI-NE@1").text == parse("O.K@1").text == "mine@1"


@pytest.mark.parametrize(
    "text", ["ndcg(,)@3", "ndcg(gain=exp2,)@3", "ndcg(, gain=exp2)", "ndcg(gain=exp2,,ideal=list)"]
)
def test_a_comma_stands_between_options(text):
    with pytest.raises(MetricError, match=r"cannot read '' in .*: write options as name=value"):
        parse(text)


@pytest.mark.parametrize("text", ["cg(gain=[0,,1])", "cg(gain=[0, 1,])", "cg(gain=[,])"])
def test_a_comma_stands_between_numbers_of_a_table(text):
    with pytest.raises(MetricError, match="must hold numbers"):
        parse(text)


N = 1_000_000
LONG = {
    "blanks": "ndcg" + " " * N + "x",
    "blanks alone": " " * N,
    "brackets and cut-offs": "ndcg(" + ")@" * (N // 2) + " y",
    "brackets and blanks": "ndcg(" + ") " * (N // 2) + "x",
    "open brackets": "ndcg(" * (N // 5),
    "cut-offs": "ndcg" + "@" * N,
    "commas": "ndcg(" + ", " * (N // 2) + "x)",
    "an option": "log_loss(" + ",  threshold" * (N // 12) + ")",
    "a table": "cg(gain=[" + "1," * (N // 2) + "x])",
    "dots": "." * N + "x",
    "numbers": "ndcg" + ".1_" * (N // 3),
}


@pytest.fixture
def long_texts(monkeypatch):
    """Patterns with quadratic time would read these strings for hours; an alarm stops them."""

    def hang(*_):
        raise AssertionError("the time grows faster than the text")

    monkeypatch.setattr(calls, "MAX_LENGTH", 2 * N)
    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms on this system")
@pytest.mark.parametrize("name", LONG)
def test_reading_a_text_takes_time_that_grows_with_its_length_alone(name, long_texts):
    with pytest.raises(MetricError):
        parse(LONG[name])
    with pytest.raises(MetricError):
        fastrec.Evaluator(LONG[name][-N // 10 :], like="trec_eval")


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("ndcg_cut_5", "ndcg_cut"),
        ("P.5", "P"),
        ("P.5.10", "P"),
        ("ndcg1.5", "ndcg1"),
        ("ndcg_", "ndcg_"),
        ("ndcg.", "ndcg."),
        ("ndcg5", "ndcg5"),
        ("ndcg_.5", "ndcg"),
        ("...", ""),
        ("", ""),
    ],
)
def test_a_name_without_its_cut_off(name, rest):
    assert _without_cutoff(name) == rest == re.sub("[_.][0-9.]+$", "", name)


@pytest.mark.parametrize("bounds", [(1, 0), (math.nan, 1), (0, math.nan)])
def test_a_range_has_its_lower_bound_first(bounds: tuple[float, float]) -> None:
    for declared in (fastrec.ranking_metric, fastrec.score_metric):
        with pytest.raises(fastrec.MetricError, match=r"^range must be \(low, high\), where high may be None; found"):
            declared(range=bounds)
