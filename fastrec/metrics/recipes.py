"""Conventions of other tools as data: names of metrics, our equivalents, and the treatment of users and ties.

Each recipe was compared with the real tool, in the named version, on the cases in `tests/rivals`. Metrics that fastrec
cannot reproduce are listed with the reason. Input that a tool gets wrong, such as an item twice in a list, is an error
here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from fastrec.checks import listed_in_order, nearest
from fastrec.exceptions import Argument, InputTypeError, MetricError, cut_value, shown
from fastrec.metrics.calls import DEFAULT_K, parse, read_cutoffs, read_k, refuse_long
from fastrec.metrics.declaration import FAMILIES, Call
from fastrec.policies import DUPLICATES, NO_RECS, NO_TRUTH, TIES

__all__ = ["DEFAULT_POLICIES", "RECIPES", "Recipe", "find_recipe"]

WORDS = {"lists": "lists", "rows": "scored rows"}
ABOVE_0 = 5e-324  # as min_gain: the smallest number above 0
DEFAULT_POLICIES = {policy.name: policy.default for policy in (TIES, NO_TRUTH, NO_RECS, DUPLICATES)}


@dataclass(frozen=True)
class Recipe:
    """The conventions of one tool."""

    name: str
    tool: str  # as its authors spell it
    version: str  # that the recipe was compared with
    lists: Mapping[str, str]  # its metrics of lists -> ours; {k} stands for a cut-off that is part of a name
    rows: Mapping[str, str]  # its metrics of scored rows -> ours
    ties: str = "input"
    no_truth: str = "skip"
    no_recs: str = "zero"
    rank_gaps: Literal["close", "keep", "error"] = "close"  # "keep" if ranks of frames are places, including gaps
    min_gain: float | Literal["any"] | None = None  # of lists: "any" if it counts each row of the truth as relevant
    tolerance: float = 1e-9  # of its numbers: some tools compute in float32, some print few digits
    aliases: tuple[str, ...] = ()
    above_0: frozenset[str] = frozenset()  # its metrics that count any gain above 0, whatever the min_gain of a call
    declined: Mapping[str, str] = field(default_factory=dict)  # its metrics that fastrec cannot reproduce -> why
    spelled: Mapping[str, str] = field(default_factory=dict)  # its own names of metrics -> their names here
    lacking: str = ""  # its own names of metrics that fastrec does not have yet; * stands for anything
    notes: tuple[str, ...] = ()

    @property
    def policies(self) -> dict[str, str]:
        """Its treatment of ties, users and duplicates, unless a call sets another."""
        return {"ties": self.ties, "no_truth": self.no_truth, "no_recs": self.no_recs, "duplicates": "error"}

    def translate(
        self, metrics: str | Iterable[str] | None, k: Any, kind: str, min_gain: Any = None
    ) -> dict[str, Call]:
        """Return our equivalents of metrics of this tool, on "lists" or on "rows": {name with cut-off: metric}.

        `min_gain` is that of the call; some metrics of the tool ignore it.
        """
        known = self.lists if kind == "lists" else self.rows
        if not known:
            raise MetricError(f"{self.tool} has no metrics of {WORDS[kind]}")
        usual_k = [DEFAULT_K] if metrics is None and k is None else []
        if metrics is None:
            metrics = [name for name in FAMILIES[kind].usual if name in known]
        if isinstance(metrics, str):
            metrics = [metrics]
        if not isinstance(metrics, Iterable):
            raise InputTypeError(f"metrics must be strings such as 'ndcg@10', found {shown(metrics)}")
        asked: dict[str, Call] = {}
        for text in listed_in_order(metrics, "metrics"):
            if not isinstance(text, str):
                raise MetricError(f"a metric of {self.tool} must be a string such as 'ndcg@10', found {shown(text)}")
            refuse_long(text)
            call = _find(self.name, text, kind)
            if min_gain is not None and call.min_gain is not None:
                raise MetricError(
                    Argument("like", (self.name,)),
                    f" asks for {call.text}, so ",
                    Argument("min_gain", (min_gain,)),
                    " cannot apply: leave it out",
                )
            if min_gain is not None and any(_matches(name, text) for name in self.above_0):
                call = replace(call, min_gain=ABOVE_0)
            asked[text] = call
        if not asked:
            raise MetricError("metrics must name at least one metric")
        cutoffs = usual_k or read_cutoffs(k, list(asked.values()))
        found = {
            text if own.k == call.k else f"{text}@{own.k}": own
            for text, call in asked.items()
            for own in call.at(cutoffs)
        }
        texts = {call.text: call for call in found.values()}
        for name, call in found.items():
            if texts.get(name, call) != call:
                raise MetricError(
                    f"{name} of {self.tool} is {call.text} here, but {name} is also another requested metric: "
                    "ask for one of them at a time"
                )
        return found


@functools.lru_cache(maxsize=4096)
def _find(tool: str, text: str, kind: str) -> Call:
    """Return our equivalent of a metric of a tool, on lists or on rows."""
    recipe = RECIPES[tool]
    known = recipe.lists if kind == "lists" else recipe.rows
    for name, ours in known.items():
        found, call = _matches(name, text), parse(ours)
        if found is not None and (found["k"] is None or call.metric.family.takes_cutoffs):
            return replace(call, k=read_k(found["k"], text))
    raise MetricError(_why_not(recipe, text, kind))


def _why_not(recipe: Recipe, text: str, kind: str) -> str:
    """Say why a string names no metric of a tool on lists or on rows."""
    other = "rows" if kind == "lists" else "lists"
    known, others = getattr(recipe, kind), getattr(recipe, other)
    asked = cut_value(text)
    for name, why in recipe.declined.items():
        if _matches(name, text) or _is_form_of(name, text):
            return f"fastrec cannot reproduce {asked} of {recipe.tool}: {why}"
    base = "".join(text.split()).partition("@")[0]
    for name, ours in [*recipe.spelled.items(), *zip(known, known, strict=True)]:
        if _is_form_of(name, text) and "(" not in text and base != ours:
            return f"{asked} of {recipe.tool} is called {ours!r} here"
    if any(_matches(name, text) or _is_form_of(name, text) for name in others):
        return f"{asked} of {recipe.tool} is a metric of {WORDS[other]}"
    if any(_is_form_of(name, text) for name in recipe.lacking.split()):
        return f"fastrec does not have {asked} of {recipe.tool} yet"
    return f"{recipe.tool} has no metric {shown(text)}{nearest(base, list(known))}"


def _matches(name: str, text: str) -> re.Match[str] | None:
    """Match a string with a name of a tool and its cut-off, which is at `{k}` in the name, or may follow it."""
    before, mark, after = "".join(name.split()).partition("{k}")
    cut_off = "(?P<k>[0-9]+)" if mark else "(?:@(?P<k>.+))?"
    return re.fullmatch(re.escape(before) + cut_off + re.escape(after), "".join(text.split()))


def _is_form_of(name: str, text: str) -> bool:
    """Return whether a string spells a name differently, with any options: NDCGAt and ndcg_score(k=5) for ndcg."""
    plain = re.sub(r"\(.*|@.*|\s", "", text)
    return any(fnmatchcase(_folded(one), _folded(name)) for one in (plain, _without_cutoff(plain)))


def _without_cutoff(name: str) -> str:
    """Return a name without a cut-off at its end, such as _5 or .5; a regular expression would take quadratic time."""
    rest = name.rstrip("0123456789.")
    numbers = name[len(rest) :]
    if numbers and rest.endswith("_"):
        return rest[:-1]
    dot = numbers.find(".")
    return rest + numbers[:dot] if 0 <= dot < len(numbers) - 1 else name


def _folded(name: str) -> str:
    """Return a name without the parts in which spellings differ."""
    return re.sub("(?<=.)(atk|at|score)$", "", re.sub("[-_]", "", name).lower())


def find_recipe(name: Any) -> Recipe:
    """Return the recipe of a tool."""
    for recipe in RECIPES.values():
        if isinstance(name, str) and name.lower().replace("-", "_") in (recipe.name, *recipe.aliases):
            return recipe
    raise MetricError(
        Argument("like", (name,)),
        " is not a tool with a recipe",
        nearest(name if isinstance(name, str) else "", list(RECIPES)),
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
_ABOVE_0 = f"min_gain={ABOVE_0}"  # if other metrics of the tool count rows of gain 0 as relevant
_NO_LEVEL = frozenset(
    {"ndcg", "ndcg_cut_{k}", "nDCG", "nDCG(dcg='exp-log2')@{k}", "ERR@{k}"}
)  # of trec_eval and gdeval
_COUNTS = "it is a sum over users, but every metric here is a mean or a ratio"

_TREC_SPELLED = {
    "P": "P_{k}",
    "map_cut": "map_cut_{k}",
    "ndcg_cut": "ndcg_cut_{k}",
    "success": "success_{k}",
    "relative_P": "relative_P_{k}",
    "MAP": "AP",
    "MRR": "RR",
    "Precision": "P@{k}",
    "R": "R@{k}",
    "ERR": "ERR@{k}",
    "SetRelP": "SetP(relative=True)",
}
_TREC_LACKING = (
    "11pt_avg G Rndcg Rprec_mult binG bpref gm_bpref gm_map infAP iprec_at_recall ndcg_rel num_nonrel_judged_ret rbp "
    "rbp_resid relstring runid utility unj dcg ideal_dcg yaap prefs_* *_avgjg "
    "*_IA BPM Compat INSQ INST IPrec Judged NERR8 NERR9 NERR10 NERR11 NRBP SDCG StRecall alpha_* \u03b1_* nNRBP"
)
_SET_F = "its beta is the square of the usual beta: use f_beta(beta=...) without like="
_RETRIEVAL = {"MAP": "map", "MRR": "mrr", "NormalizedDCG": "ndcg", "AUROC": "gauc", "FallOut": "fall_out"}
_ERROR_NAMES = {"mean_absolute_error": "mae", "mean_squared_error": "mse", "root_mean_squared_error": "rmse"}

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
            above_0=_NO_LEVEL,
            spelled=_TREC_SPELLED,
            lacking=_TREC_LACKING,
            declined={
                "set_map": "it is precision x recall per user, which no metric here computes",
                "set_F": _SET_F,
                "num_q": _COUNTS,
                "num_ret": _COUNTS,
                "num_rel": _COUNTS,
                "num_rel_ret": _COUNTS,
            },
            notes=(
                "queries without a list are left out, as without -c; like=ir_measures counts them as 0, as with -c",
                "equal scores are ordered by item, descending as strings: pass items as strings",
                "-l (relevance_level) is min_gain, which ndcg ignores",
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
            above_0=_NO_LEVEL,
            spelled=_TREC_SPELLED,
            lacking=_TREC_LACKING,
            declined={
                "SetAP": "it is precision x recall per user, which no metric here computes",
                "SetF": _SET_F,
                "NumQ": _COUNTS,
                "NumRel": _COUNTS,
                "NumRelRet": _COUNTS,
                "NumRet": _COUNTS,
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
            spelled={"average_precision": "map", "reciprocal_rank": "mrr", "rank_biased_precision": "rbp.80"},
            declined={"rbp": "only rbp.80 and rbp.95 have names here: ask fastrec itself for rbp(p=...)"},
            lacking="bpref interpolated_precision_at_recall",
            notes=(
                "it needs equal queries on both sides, or make_comparable=True, which counts those without a list as 0",
                "equal scores keep the order of the input in lists of up to 15; longer lists have no defined order",
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
            no_truth="listed",
            spelled={"roc_auc": "auc", "brier_score_loss": "brier", "matthews_corrcoef": "mcc(threshold=0.5)"}
            | {name: f"{name}(threshold=0.5)" for name in ("precision", "recall", "f1", "accuracy")}
            | _ERROR_NAMES,
            lacking=(
                "*_accuracy class_likelihood_ratios cohen_kappa coverage_error d2_* *_deviance explained_variance "
                "fbeta hamming_loss hinge_loss jaccard label_ranking_* max_error mean_absolute_percentage_error "
                "mean_pinball_loss *mean_squared_log_error median_absolute_error precision_recall_fscore_support r2 "
                "zero_one_loss"
            ),
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
            spelled={"F1Beta": "f_beta"},
            lacking=(
                "AvgRecPopularity CatalogCoverage CoveredUsers Intersection IntraListDiversity MeanInvUserFreq "
                "Serendipity SufficientReco UnrepeatedReco"
            ),
            declined={
                "accuracy": "it treats every list as k items long, and falls below 0 in a catalogue of fewer than k",
                "mcc": "it treats every list as k items long, and is NaN in a catalogue of fewer than k",
                "partial_auc": "no metric here stops at the k-th item that is not relevant",
                "pap": "no metric here stops at the k-th item that is not relevant",
            },
            rank_gaps="keep",
            notes=(
                "the ideal of ndcg has k relevant items for every user, so a perfect list can be below 1",
                "ranks of data frames are positions: a rank without an item is a miss",
            ),
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
            lacking="catalog_coverage distributional_coverage *diversity exp_var *novelty rsquared *serendipity",
            declined={
                "r_precision": "it is the mean over users with a hit only, and NaN if all hits are below rank R",
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
            lacking="CategoricalDiversity Coverage Novelty Surprisal Unexpectedness",
            declined={"roc_auc": "it is 1 for lists of hits only and 0 for lists without, which no option here gives"},
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
            spelled={"hit": "hit_rate"},
            lacking="averagepopularity giniindex itemcoverage shannonentropy tailpercentage",
            notes=(
                "values are rounded to four places there (metric_decimal_place)",
                "it removes users without truth before its metrics: one of them would make recall NaN for all",
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
            no_truth="listed",
            no_recs="skip",
            min_gain="any",
            rank_gaps="error",  # ndcg, dcg and rbp use the numbers, other metrics the order of rows
            spelled={"AveragePrecision": "map", "Hit": "hit_rate", "RecipRank": "mrr"},
            lacking=(
                "ExposureGini ListGini ListLength MeanPopRank TestItemCount entropy least_item_promoted "
                "rank_biased_entropy rank_biased_overlap"
            ),
            declined={"rbp(normalize=True)": "no ideal of fastrec ends with the list of the user"},
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
            spelled={"areaUnderROC": "auc", "areaUnderPR": "average_precision", "meanAveragePrecision": "map"}
            | _ERROR_NAMES,
            lacking="accuracy confusionMatrix explainedVariance fMeasure *PositiveRate r2 weighted*",
            declined={
                "ndcg(relevance)": "its ideal follows the order of the labels as given, so it depends on that order",
            },
            notes=(
                "a user without a row in the RDD does not count: leave it out, or no_truth='listed' and no_recs='skip'",
            ),
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
            no_truth="listed",
            no_recs="skip",
            tolerance=3e-7,
            spelled={f"Retrieval{name}": own for name, own in _RETRIEVAL.items()}
            | {f"Retrieval{name}": name for name in ("precision", "recall", "hit_rate", "r_precision")}
            | {"AUROC": "auc", "BinaryAUROC": "auc", "BinaryAveragePrecision": "average_precision"}
            | _ERROR_NAMES,
            lacking=(
                "RetrievalPrecisionRecallCurve RetrievalRecallAtFixedPrecision Binary* Multiclass* Multilabel* EER "
                "ROC Accuracy CalibrationError CohenKappa ConfusionMatrix ExactMatch F1Score FBetaScore "
                "HammingDistance HingeLoss JaccardIndex LogAUC MatthewsCorrCoef NegativePredictiveValue *Curve "
                "*AtFixed* *Sensitivity* Specificity StatScores ConcordanceCorrCoef ContinuousRankedProbabilityScore "
                "CosineSimilarity CriticalSuccessIndex ExplainedVariance *Divergence KendallRankCorrCoef LogCoshError "
                "*PercentageError MeanSquaredLogError MinkowskiDistance NormalizedRootMeanSquaredError "
                "PearsonCorrCoef R2Score RelativeSquaredError SpearmanCorrCoef TweedieDevianceScore"
            ),
            declined={
                "r_precision": "on lists, it does not know relevant items outside the list",
                "mcc": "it is not 0 if all rows are of one class",
                "fall_out": "users with relevant rows only count as 1",
            },
            notes=(
                "only scored rows exist: a relevant item outside the list does not count against recall",
                "rows with scores of 0 and below are not hits in precision, recall, mrr and map there",
                "the order of equal scores is undefined there: they are an error here, except in ndcg and gauc",
            ),
        ),
        Recipe(
            name="implicit",
            tool="implicit",
            version="implicit 0.7.3",
            lists={"precision": "precision(denominator=min_k_n_rel, average=pooled)", "map": "map"} | _BINARY_NDCG,
            rows={},
            min_gain="any",
            spelled={"mean_average_precision": "map"},
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
            spelled={"AUC": "gauc", "FMeasure": "f1", "HitRatio": "hit_rate"},
            declined={
                "gauc": "it counts equal scores as lost, and is NaN if a user has relevant rows only",
                "ncrr": "it needs the whole catalogue in the order of the model",
            },
            notes=("it ranks the whole catalogue, and the largest k cuts all metrics that are asked for together",),
        ),
    )
}
