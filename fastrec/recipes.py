"""Other tools' conventions as data: what each calls a metric, what that is here, and which users and ties count how.

Each was compared with the real tool, of the version that is named, on the cases in `tests/rivals`. What a tool has and
cannot be had here is listed with the reason. Where a tool makes a number of input that it should refuse, such as an
item twice in a list, it is refused here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fastrec.exceptions import InputTypeError, MetricError, listed_in_order, shown
from fastrec.registry import DEFAULT_K, DEFAULT_METRICS, DEFAULT_SCORE_METRICS, Call, expand, nearest, parse, read_k

__all__ = ["DEFAULT_POLICIES", "RECIPES", "Recipe", "find_recipe"]

WORDS = {"lists": "lists", "rows": "scored rows"}
DEFAULT_POLICIES = {"ties": "expected", "no_truth": "skip", "no_recs": "zero", "duplicates": "error"}


@dataclass(frozen=True)
class Recipe:
    """The conventions of one tool."""

    name: str
    tool: str  # as its makers write it
    version: str  # that it was compared with
    lists: Mapping[str, str]  # its metrics of lists -> ours; {k} stands for a cut-off that is part of a name
    rows: Mapping[str, str]  # its metrics of scored rows -> ours
    ties: str = "input"
    no_truth: str = "skip"
    no_recs: str = "zero"
    min_gain: float | Literal["any"] | None = None  # of lists: "any" where it counts each row of the truth as relevant
    tolerance: float = 1e-9  # of its numbers: some tools compute in float32, some print few digits
    aliases: tuple[str, ...] = ()
    declined: Mapping[str, str] = field(default_factory=dict)  # its metrics that cannot be had -> why
    notes: tuple[str, ...] = ()

    @property
    def policies(self) -> dict[str, str]:
        """What it does with equal scores, users and copies, where a call does not say it."""
        return {"ties": self.ties, "no_truth": self.no_truth, "no_recs": self.no_recs, "duplicates": "error"}

    def translate(self, metrics: str | Iterable[str] | None, k: Any, kind: str) -> dict[str, Call]:
        """What this tool means by the names of its metrics, on "lists" or on "rows": {name with cut-off: metric}."""
        known = self.lists if kind == "lists" else self.rows
        if not known:
            raise MetricError(f"{self.tool} has no metrics of {WORDS[kind]}")
        if metrics is None:
            usual = DEFAULT_METRICS if kind == "lists" else DEFAULT_SCORE_METRICS
            metrics = [name for name in usual if name in known]
            k = DEFAULT_K if k is None else k
        if isinstance(metrics, str):
            metrics = [metrics]
        if not isinstance(metrics, Iterable):
            raise InputTypeError(f"metrics must be texts such as 'ndcg@10', found {shown(metrics)}")
        found: dict[str, Call] = {}
        for text in listed_in_order(metrics, "metrics"):
            if not isinstance(text, str):
                raise MetricError(f"a metric of {self.tool} is named by a text such as 'ndcg@10', found {shown(text)}")
            call = _find(self.name, text, kind)
            for own in expand(call, k):
                found[text if own.k == call.k else f"{text}@{own.k}"] = own
        texts = {call.text: call for call in found.values()}
        for name, call in found.items():
            if texts.get(name, call) != call:
                raise MetricError(
                    f"{name} of {self.tool} is {call.text} here, where {name} is another of the metrics asked for: "
                    "ask for one of them at a time"
                )
        return found


@functools.lru_cache(maxsize=4096)
def _find(tool: str, text: str, kind: str) -> Call:
    """What a tool means by the name of a metric, on lists or on rows."""
    recipe = RECIPES[tool]
    known = recipe.lists if kind == "lists" else recipe.rows
    spelled = "".join(text.split())
    for name, ours in known.items():
        found, call = re.fullmatch(_pattern(name), spelled), parse(ours)
        if found is not None and (found["k"] is None or call.metric.kind == "ranking"):
            return replace(call, k=read_k(found["k"], text))
    for name, why in recipe.declined.items():
        if re.fullmatch(_pattern(name), spelled):
            raise MetricError(f"{text} of {recipe.tool} cannot be had: {why}")
    raise MetricError(f"{recipe.tool} has no metric {text!r}{nearest(spelled.partition('@')[0], list(known))}")


def _pattern(name: str) -> str:
    """What matches a name of a tool and its cut-off, which stands where the name says or may stand behind it."""
    before, mark, after = "".join(name.split()).partition("{k}")
    if mark:
        return f"{re.escape(before)}(?P<k>[0-9]+){re.escape(after)}"
    return f"{re.escape(before)}(?:@(?P<k>.+))?"


def find_recipe(name: Any) -> Recipe:
    """The recipe of a tool."""
    for recipe in RECIPES.values():
        if isinstance(name, str) and name.lower().replace("-", "_") in (recipe.name, *recipe.aliases):
            return recipe
    raise MetricError(
        f"like={shown(name)} is no tool with a recipe{nearest(name if isinstance(name, str) else '', list(RECIPES))}"
    )


_SAME = {name: name for name in ("precision", "recall", "f1", "hit_rate", "mrr")}
_BINARY_NDCG = {"ndcg": "ndcg(gain=binary)"}
_RANKED = {name: name for name in ("precision", "recall", "hit_rate", "mrr", "map")} | _BINARY_NDCG
_ERRORS = {name: name for name in ("mae", "mse", "rmse")}
_TREC = _SAME | {
    "map": "map(denominator=n_rel)",
    "ndcg": "ndcg",
    "r_precision": "r_precision",
    "map_cut_{k}": "map(denominator=n_rel)",
    "P_{k}": "precision",
    "recall_{k}": "recall",
    "ndcg_cut_{k}": "ndcg",
    "success_{k}": "hit_rate",
    "relative_P_{k}": "precision(denominator=min_k_n_rel)",
    "recip_rank": "mrr",
    "Rprec": "r_precision",
    "set_P": "precision",
    "set_recall": "recall",
    "set_F": "f1",
    "set_relative_P": "precision(denominator=min_k_n_rel_n_rec)",
}
_IR_MEASURES = {
    "AP": "map(denominator=n_rel)",
    "nDCG": "ndcg",
    "P@{k}": "precision",
    "R@{k}": "recall",
    "Success@{k}": "hit_rate",
    "RR": "mrr",
    "SetP": "precision",
    "SetR": "recall",
    "SetF": "f1",
    "SetP(relative=True)": "precision(denominator=min_k_n_rel_n_rec)",
    "nDCG(dcg='exp-log2')@{k}": "ndcg(gain=exp2)",
    "ERR@{k}": "err(max_gain=4)",
    "RBP(rel=1)": "rbp(gain=binary)",
    "RBP(rel=1,p=0.5)": "rbp(p=0.5, gain=binary)",
}
_TORCH = {
    "precision": "precision",
    "precision(adaptive_k=True)": "precision(denominator=min_k_n_rec)",
    "hit_rate": "hit_rate",
    "mrr": "mrr",
    "map": "map(denominator=hits)",
}
_ABOVE_0 = "min_gain=5e-324"  # where other metrics of the tool count rows of gain 0 as relevant
_COUNTS = "a sum over users, where every metric here is a mean or a ratio"

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="trec_eval",
            tool="trec_eval",
            version="pytrec-eval-terrier 0.5.11 (trec_eval 9.0.8)",
            aliases=("pytrec_eval",),
            lists=_TREC | _IR_MEASURES,
            rows={},
            ties="id_desc",
            no_truth="judged",
            no_recs="skip",
            declined={
                "set_map": "it is precision x recall of each user, which no metric here is",
                "num_q": _COUNTS,
                "num_ret": _COUNTS,
                "num_rel": _COUNTS,
                "num_rel_ret": _COUNTS,
            },
            notes=(
                "queries without a list are left out, as without -c; like=ir_measures counts them as 0, as with -c",
                "equal scores are ordered by item, descending as texts: give items as texts",
                "-l (relevance_level) is min_gain; ndcg does not look at it there",
            ),
        ),
        Recipe(
            name="ir_measures",
            tool="ir_measures",
            version="ir-measures 0.4.3",
            lists=_TREC | _IR_MEASURES,
            rows={},
            ties="id_desc",
            no_truth="judged",
            declined={
                "SetAP": "it is precision x recall of each user, which no metric here is",
                "NumRet(rel=1)": _COUNTS,
                "Accuracy": "it leaves out users without a hit and divides by 0 for users with hits only",
            },
            notes=(
                "equal scores are ordered by item ascending for RR@k, and as in the input for RBP: both need ties=",
                "ERR and nDCG(dcg='exp-log2') are printed there with five digits",
            ),
        ),
        Recipe(
            name="ranx",
            tool="ranx",
            version="ranx 0.3.21",
            lists=_SAME
            | {
                "hits": "hits",
                "map": "map(denominator=n_rel)",
                "ndcg": "ndcg",
                "ndcg_burges": "ndcg(gain=exp2)",
                "dcg": "dcg",
                "dcg_burges": "dcg(gain=exp2)",
                "r-precision": "r_precision",
                "r_precision": "r_precision",
                "rbp.80": "rbp",
                "rbp.95": "rbp(p=0.95)",
            },
            rows={},
            no_truth="judged",
            notes=(
                "queries must be the same on both sides there, or make_comparable=True: without a list they count as 0",
                "equal scores stand in the order of the input in lists of up to 15, in no defined order in longer ones",
            ),
        ),
        Recipe(
            name="sklearn",
            tool="scikit-learn",
            version="scikit-learn 1.9.1",
            lists={},
            rows=_ERRORS
            | {
                "auc": "auc",
                "auc(max_fpr=0.5)": "auc(max_fpr=0.5)",
                "average_precision": "average_precision",
                "log_loss": "log_loss",
                "brier": "brier",
                "ndcg": "ndcg",
                "dcg": "dcg",
            }
            | {
                f"{name}(threshold=0.5)": f"{name}(threshold=0.5)"
                for name in ("precision", "recall", "f1", "accuracy", "mcc")
            },
            ties="expected",
            no_truth="zero",
            notes=("ndcg_score and dcg_score take one row of scores per user, all of the same length",),
        ),
        Recipe(
            name="rectools",
            tool="RecTools",
            version="rectools 0.19.0",
            lists=_SAME
            | {
                "precision(r_precision=True)": "precision(denominator=min_k_n_rel)",
                "f_beta": "f1",
                "f_beta(beta=2)": "f_beta(beta=2)",
                "f_beta(beta=0.5)": "f_beta(beta=0.5)",
                "map": "map(denominator=n_rel)",
                "map(divide_by_k=True)": "map(denominator=k)",
                "ndcg": "ndcg(gain=binary, ideal=k)",
                "ndcg(log_base=3)": "ndcg(gain=binary, ideal=k)",
                "ndcg(divide_by_achievable=True)": "ndcg(gain=binary)",
            },
            rows={},
            min_gain="any",
            declined={
                "accuracy": "it takes every list as k items long, and falls below 0 in a catalogue of fewer than k",
                "mcc": "it takes every list as k items long, and is NaN in a catalogue of fewer than k",
                "partial_auc": "no metric here stops at the k-th item that is not relevant",
                "pap": "no metric here stops at the k-th item that is not relevant",
            },
            notes=("ndcg takes all k positions as relevant for every user: a perfect list need not reach 1",),
        ),
        Recipe(
            name="recommenders",
            tool="recommenders",
            version="recommenders 1.2.1",
            lists={
                "precision": "precision(no_recs=skip)",
                "recall": "recall(no_recs=skip)",
                "map": "map(no_recs=skip)",
                "map(k=K)": "map(denominator=n_rel, no_recs=skip)",
                "ndcg": "ndcg(gain=binary)",
                "ndcg(score_type=raw)": f"ndcg({_ABOVE_0})",
                "ndcg(score_type=exp)": f"ndcg(gain=exp2, {_ABOVE_0})",
            },
            rows={"rmse": "rmse", "mae": "mae", "auc": "auc", "log_loss": "log_loss"},
            min_gain="any",
            declined={
                "r_precision": "it is the mean over users with a hit only, and NaN where hits stand below rank R alone",
            },
            notes=(
                "users without a list are left out of precision, recall and map, and count as 0 in ndcg",
                "users with ratings of 0 only are left out of ndcg with score_type raw or exp",
                "ratings below 0 count as 0 here in metrics with score_type",
            ),
        ),
        Recipe(
            name="replay",
            tool="RePlay",
            version="replay-rec 0.22.0",
            lists=_RANKED,
            rows={},
            ties="id_desc",
            min_gain="any",
            declined={"roc_auc": "it is 1 for lists of hits only and 0 for lists without, which no option here says"},
            notes=("equal scores are ordered by item, descending, in frames; dicts keep the order of the input",),
        ),
        Recipe(
            name="recbole",
            tool="RecBole",
            version="recbole 1.2.1",
            lists=_RANKED,
            rows=_RANKED
            | {
                "gauc": "gauc(weight=positives)",
                "auc": "auc",
                "log_loss": "log_loss",
                "mae": "mae",
                "rmse": "rmse",
            },
            ties="error",
            tolerance=3e-7,
            notes=(
                "values are rounded to four places there (metric_decimal_place)",
                "users without truth never reach its metrics: recall would be NaN for all",
                "the order of equal scores is that of torch.topk, which is undefined: they are an error here",
            ),
        ),
        Recipe(
            name="lenskit",
            tool="LensKit",
            version="lenskit 2025.8.1",
            lists={
                "precision": "precision(denominator=min_k_n_rec)",
                "recall": "recall(denominator=min_k_n_rel)",
                "hit_rate": "hit_rate",
                "mrr": "mrr",
                "map": "map(denominator=min_k_n_rel_n_rec)",
                "ndcg": "ndcg(gain=binary, discount=log2_flat2)",
                "ndcg(weight=LogRankWeight(offset=1))": "ndcg(gain=binary)",
                "ndcg(gain=rating)": "ndcg(discount=log2_flat2)",
                "ndcg(gain=rating,weight=LogRankWeight(offset=1))": "ndcg",
                "dcg": "dcg(gain=binary, discount=log2_flat2)",
                "dcg(weight=LogRankWeight(offset=1))": "dcg(gain=binary)",
                "dcg(gain=rating)": "dcg(discount=log2_flat2)",
                "dcg(gain=rating,weight=LogRankWeight(offset=1))": "dcg",
                "rbp": "rbp(p=0.85, gain=binary)",
                "rbp(patience=0.5)": "rbp(p=0.5, gain=binary)",
            },
            rows={"rmse": "rmse(average=user)", "mae": "mae(average=user)"},
            no_truth="zero",
            no_recs="skip",
            min_gain="any",
            declined={"rbp(normalize=True)": "no ideal here ends with the list of the user"},
            notes=(
                "ndcg does not discount ranks 1 and 2",
                "values are those of list_summary, where users without truth count as 0",
                "ratings below 0 count as 0 here in metrics with gain=rating",
            ),
        ),
        Recipe(
            name="spark",
            tool="Spark MLlib",
            version="pyspark 4.3.0",
            lists={"precision": "precision", "recall": "recall", "map": "map"} | _BINARY_NDCG,
            rows=_ERRORS
            | {
                "auc": "auc",
                "average_precision": "average_precision(interpolation=trapezoid)",
                "log_loss": "log_loss",
            },
            no_truth="zero",
            declined={
                "ndcg(relevance)": "its ideal follows the order of the labels as given, so it depends on that order",
            },
            notes=("a user who is in no row of the RDD does not count: leave it out, or no_recs='skip'",),
        ),
        Recipe(
            name="torchmetrics",
            tool="TorchMetrics",
            version="torchmetrics 1.9.0",
            lists=_TORCH
            | {
                "recall": "recall(denominator=listed)",
                "ndcg": "ndcg(ideal=list)",
                "gauc": "limited_auc(unseen=list_only)",
            },
            rows=_TORCH
            | {
                "recall": "recall",
                "ndcg": "ndcg",
                "r_precision": "r_precision",
                "gauc": "gauc(weight=equal, one_class=zero)",
                "gauc@{k}": "limited_auc(unseen=list_only)",
                "auc": "auc",
                "average_precision": "average_precision",
            }
            | _ERRORS,
            ties="error",
            no_truth="zero",
            no_recs="skip",
            tolerance=3e-7,
            declined={
                "r_precision": "of lists: relevant items that are not in the list are not known to it",
                "mcc": "it is not 0 where all rows fall into one class",
                "fall_out": "users without a row that is not relevant count as 1",
            },
            notes=(
                "only rows that were scored exist: a relevant item outside the list does not count against recall",
                "rows with scores of 0 and below are no hits in precision, recall, mrr and map there",
                "the order of equal scores is undefined there: an error here, but in ndcg and gauc",
            ),
        ),
        Recipe(
            name="implicit",
            tool="implicit",
            version="implicit 0.7.3",
            lists={"precision": "precision(denominator=min_k_n_rel, average=pooled)", "map": "map"} | _BINARY_NDCG,
            rows={},
            min_gain="any",
            declined={"auc": "it fills lists up to k with items that are not relevant"},
            notes=("its precision is hits over min(k, relevant items), summed over all users",),
        ),
        Recipe(
            name="cornac",
            tool="Cornac",
            version="cornac 3.0.1",
            lists=_SAME | {"map": "map"} | _BINARY_NDCG,
            rows=_ERRORS | {"map": "average_precision(average=user)"},
            ties="error",
            min_gain=1.0,
            declined={
                "gauc": "equal scores count as lost, and users without a row that is not relevant make it NaN",
                "ncrr": "it needs the whole catalogue in the order of the model",
            },
            notes=("it ranks the whole catalogue, and where metrics are asked together the largest k cuts them all",),
        ),
    )
}
