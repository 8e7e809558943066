"""Recipes of tools that have metrics of lists against truth and of scored rows, but none of items or histories."""

from __future__ import annotations

import numpy as np

from fastrec.metrics.recipe import EXTREME_SCORES, Limit, Recipe

_SAME = {name: name for name in ("precision", "recall", "f1", "hit_rate", "mrr")}
_BINARY_NDCG = {"ndcg": "ndcg(gain=binary)"}
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
    "set_map": "set_ap",
}
_TREC |= {"gm_map": "map(denominator=n_rel, mean=geometric)", "gm_bpref": "bpref(mean=geometric)"}
_TREC |= {"bpref": "bpref", "infAP": "inf_ap", "11pt_avg": "eleven_point_average", "binG": "bin_g"}
_TREC |= {"G": "normalized_gain", "ndcg_rel": "ndcg_rel", "Rndcg": "rndcg"}
_TREC |= {"iprec_at_recall_{level}": "iprec_at_recall(level={level})"}
_TREC |= {"rbp_resid": "rbp_residual(p=0.9, tail=unjudged)", "unj_{k}": "unjudged"}
_TREC |= {"Rprec_mult_{multiple}": "r_precision(multiple={multiple})"}
_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_ALL_TREC = (
    *("map", "gm_map", "Rprec", "bpref", "recip_rank"),
    *(f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)),
    *(f"{name}_{k}" for name in ("P", "recall") for k in _CUTS),
    *("infAP", "gm_bpref"),
    *(f"Rprec_mult_{tenths / 10:.2f}" for tenths in range(2, 22, 2)),
    *("11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg"),
    *(f"{name}_{k}" for name in ("ndcg_cut", "map_cut", "relative_P") for k in _CUTS),
    *(f"success_{k}" for k in (1, 5, 10)),
    *("set_P", "set_relative_P", "set_recall", "set_map", "set_F", "rbp_resid"),
    *(f"unj_{k}" for k in (5, 10, 20)),
)
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
    "SetAP": "set_ap",
    "Bpref": "bpref",
    "nDCG(dcg='exp-log2')@{k}": "ndcg(gain=exp2)",
    "ERR@{k}": "err(max_gain=4)",
    "RBP(rel=1)": "rbp(gain=binary)",
    "RBP(rel=1,p={p})": "rbp(p={p}, gain=binary)",
    "IPrec@{level}": "iprec_at_recall(level={level})",
}
_SUBTOPICS = {
    "NRBP": "nrbp",
    "NRBP(alpha={alpha})": "nrbp(alpha={alpha})",
    "NRBP(beta={beta})": "nrbp(p={beta})",
    "NRBP(alpha={alpha},beta={beta})": "nrbp(alpha={alpha}, p={beta})",
    "AP_IA": "map_ia",
    "P_IA@{k}": "precision_ia",
    "StRecall@{k}": "subtopic_recall",
}
_USER_MODELS = {
    "Compat": "compatibility",
    "Compat(p={p})": "compatibility(p={p})",
    "Compat(normalize=False)": "compatibility(normalize=no)",
    "Compat(p={p},normalize=False)": "compatibility(p={p}, normalize=no)",
    "INSQ(max_rel={m})": "insq(max_gain={m}, depth=1000)",
    "INSQ(max_rel={m},T={t})": "insq(max_gain={m}, t={t}, depth=1000)",
    "INST(max_rel={m})": "inst(max_gain={m}, depth=1000)",
    "INST(max_rel={m},T={t})": "inst(max_gain={m}, t={t}, depth=1000)",
    "BPM(max_rel={m})@{k}": "bpm(max_gain={m}, depth=1000)",
    "BPM(max_rel={m},T={t})@{k}": "bpm(max_gain={m}, t={t}, depth=1000)",
    "NERR8(max_rel={m})@{k}": "nerr(max_gain={m}, model=cut, depth=1000)",
    "NERR9(max_rel={m})@{k}": "nerr(max_gain={m}, depth=1000)",
    "NERR10(max_rel={m})": "nerr(max_gain={m}, model=patience, depth=1000)",
    "NERR10(max_rel={m},p={p})": "nerr(max_gain={m}, model=patience, p={p}, depth=1000)",
    "NERR11(max_rel={m})": "nerr(max_gain={m}, model=goal, depth=1000)",
    "NERR11(max_rel={m},T={t})": "nerr(max_gain={m}, model=goal, t={t}, depth=1000)",
}
_TORCH = {
    "precision": "precision",
    "precision(adaptive_k=True)": "precision(denominator=min_k_n_rec)",
    "hit_rate": "hit_rate",
    "mrr": "mrr",
    "map": "map(denominator=hits)",
}
_TORCH_POINTS = {
    "RecallAtFixedPrecision": "recall_at_fixed_precision(min_precision=0.5)",
    "PrecisionAtFixedRecall": "precision_at_fixed_recall(min_recall=0.5)",
    "SensitivityAtSpecificity": "sensitivity_at_specificity(min_specificity=0.5)",
    "SpecificityAtSensitivity": "specificity_at_sensitivity(min_sensitivity=0.5)",
}
_NO_LEVEL = frozenset(
    {"G", "Rndcg", "ndcg", "ndcg_cut_{k}", "ndcg_rel", "nDCG", "nDCG(dcg='exp-log2')@{k}", "ERR@{k}"}
)  # of trec_eval and gdeval
_COUNTS = (
    "it is a sum over users there, and a mean here: ask without like= for num_ret, num_rel, num_rel_ret or "
    "num_nonrel_judged_ret"
)
_RBP = "it scales grades by limits that it does not set: use rbp(p=0.9), which agrees for grades of 0 and 1"
_UTILITY = "it has a value for queries without a relevant item, which count as 0 here: ask for utility without like="
_JUDGED = "it has a value for queries without a relevant item, which count as 0 here: ask for judged without like="
_OF_JUDGED_ALONE = (
    *("AP", "AP_IA", "IPrec", "nDCG", "P", "P_IA", "RR"),
    *("Rprec", "SetAP", "SetF", "SetP", "Success"),
)
_OF_JUDGED = "lists of judged items alone are an argument of the call: exclude='unjudged'"
_N_USERS = "it is a number of users, which Report.users has"

_TREC_SPELLED = {
    "P": "P_{k}",
    "map_cut": "map_cut_{k}",
    "ndcg_cut": "ndcg_cut_{k}",
    "success": "success_{k}",
    "relative_P": "relative_P_{k}",
    "Rprec_mult": "Rprec_mult_{multiple}",
    "iprec_at_recall": "iprec_at_recall_{level}",
    "IPrec": "IPrec@{level}",
    "unj": "unj_{k}",
    "MAP": "AP",
    "MRR": "RR",
    "Precision": "P@{k}",
    "R": "R@{k}",
    "ERR": "ERR@{k}",
    "SetRelP": "SetP(relative=True)",
}
_MODELS_SPELLED = {name.partition("(")[0]: name for name in _USER_MODELS if name.count("=") == 1 and "{m}" in name}
_SUBTOPICS_SPELLED = {"MAP_IA": "AP_IA", "P_IA": "P_IA@{k}", "StRecall": "StRecall@{k}", "strec": "StRecall@{k}"}
_TREC_LACKING = "relstring runid dcg ideal_dcg yaap prefs_* *_avgjg"
_OF_SUBTOPICS = {
    **dict.fromkeys(
        ("alpha_DCG", "\u03b1_DCG", "ERR_IA"),
        "at k = 1 it does not divide: ask without like=, with subtopics=, for alpha_dcg(denominator=all_subtopics) or "
        "err_ia",
    ),
    **dict.fromkeys(
        ("alpha_nDCG", "\u03b1_nDCG", "nERR_IA", "nNRBP"),
        "its ideal breaks ties by document: ask without like=, with subtopics=, for alpha_ndcg, nerr_ia or nnrbp",
    ),
}
_UNMAPPED_SUBTOPICS = dict.fromkeys(
    ("NRBP", "StRecall", "P_IA", "AP_IA", "MAP_IA"),
    "pytrec_eval does not have it: use like='ir_measures' with subtopics=",
)
_SET_F = "its beta is the square of the usual beta: use f_beta(beta=...) without like="
_RETRIEVAL = {"MAP": "map", "MRR": "mrr", "NormalizedDCG": "ndcg", "AUROC": "gauc", "FallOut": "fall_out"}
_ERROR_NAMES = {"mean_absolute_error": "mae", "mean_squared_error": "mse", "root_mean_squared_error": "rmse"}

_NOTHING_RELEVANT = "unj and rbp_resid have a value for queries without a relevant item, which count as 0 here"
_OF_JUDGEMENTS = Limit("unjudged|rbp_residual", "relevant", lambda gains: gains <= 0, _NOTHING_RELEVANT)
_NO_LEVEL_IN_QUERY = "Rndcg is 0 for queries without a document of this level, which count as without it here"
_OF_LEVELS = Limit("rndcg", "level", lambda gains: gains <= 0, _NO_LEVEL_IN_QUERY)
_OF_CLASSES = "auc|eer|recall_at_precision|precision_at_recall|sensitivity_at_specificity|specificity_at_sensitivity"
_ONE_CLASS = "it is 0 or 1 there if all rows are of one class, and NaN here"
_OTHER_TIES = "mrr@.*|rbp|compatibility|insq|inst|bpm|nerr|nrbp|map_ia|precision_ia|subtopic_recall"
_ORDER_OF_TIES = (
    "RR@k, RBP, Compat and measures of user models and subtopics have other orders of equal scores: see explain"
)
_LONG_TIES = "equal scores have no defined order there in lists longer than 15: choose one with ties="
_LOW_LABELS = "labels below 0 count as they are in dcg_score and are an error in ndcg_score, and count as 0 here"
_EQUAL_TARGETS = "if all targets are equal, r2_score is 1 without an error, else 0 (NaN for one row), and NaN here"
_EMPTY_CLASS = "if a class has no row, balanced_accuracy_score is the recall of the other, and NaN here"
_CLIPPED = "it clips predictions to the range of the ratings that the model has learnt"
_NO_HITS = "rows with scores of 0 and below are no hits in precision, recall, mrr and map there"

RETRIEVAL = (
    Recipe(
        name="trec_eval",
        tool="trec_eval",
        version="pytrec-eval-terrier 0.5.11 (trec_eval 9.0.8)",
        aliases=("pytrec_eval",),
        lists=_TREC | _IR_MEASURES,
        rows={},
        ties="id_desc",
        ties_of_strings=True,
        no_truth="judged",
        no_recs="skip",
        ordered_by="score",
        above_0=_NO_LEVEL,
        limits=(_OF_JUDGEMENTS, _OF_LEVELS),
        spelled=_TREC_SPELLED,
        sets={"all_trec": _ALL_TREC},
        lacking=_TREC_LACKING,
        declined={
            "set_F": _SET_F,
            "rbp": _RBP,
            "utility": _UTILITY,
            **_OF_SUBTOPICS,
            **_UNMAPPED_SUBTOPICS,
            "num_q": _N_USERS,
            "num_ret": _COUNTS,
            "num_nonrel_judged_ret": _COUNTS,
            "num_rel": _COUNTS,
            "num_rel_ret": _COUNTS,
        },
        notes=(
            "queries without a list are left out, as without -c; like=ir_measures counts them as 0, as with -c",
            "equal scores are ordered by item, descending as strings: pass items as strings",
            "-l (relevance_level) is min_gain, which ndcg ignores",
        ),
        notes_of={
            "iprec_at_recall eleven_point_average": "they are NaN there for a query with an empty list, which only a "
            "dict can hold",
        },
    ),
    Recipe(
        name="ir_measures",
        tool="ir_measures",
        version="ir-measures 0.4.3",
        lists=_TREC | _IR_MEASURES | _USER_MODELS | _SUBTOPICS,
        rows={},
        ties="id_desc",
        ties_of_strings=True,
        no_truth="judged",
        ordered_by="score",
        above_0=_NO_LEVEL,
        limits=(_OF_JUDGEMENTS, _OF_LEVELS, Limit(_OTHER_TIES, "ties", lambda lengths: lengths > 1, _ORDER_OF_TIES)),
        spelled=_TREC_SPELLED | _MODELS_SPELLED | _SUBTOPICS_SPELLED,
        lacking=_TREC_LACKING,
        declined={
            "SetF": _SET_F,
            "rbp": _RBP,
            "utility": _UTILITY,
            **{f"{name}(judged_only=True)": _OF_JUDGED for name in _OF_JUDGED_ALONE},
            "Judged": _JUDGED,
            **_OF_SUBTOPICS,
            "SDCG": "its ideal is k items of the largest grade of the collection",
            "NumQ": _N_USERS,
            "NumRel": _COUNTS,
            "NumRelRet": _COUNTS,
            "NumRet": _COUNTS,
            "num_nonrel_judged_ret": _COUNTS,
            "Accuracy": "it leaves out users without a hit and divides by 0 for users with hits only",
        },
        notes_of={
            "iprec_at_recall": "it is NaN there for a query with an empty list, which only a dict can hold",
            "compatibility": "equal scores are ordered by item ascending, and equal grades of the ideal by score",
            "insq inst bpm nerr": "equal scores keep the order of the input: ties='input'",
            "mrr rbp": "equal scores are ordered by item ascending for RR@k, and as in the input for RBP: both need "
            "ties=",
            "nrbp map_ia precision_ia subtopic_recall": "equal scores are ordered by item ascending: ties='id_asc'; "
            "with min_gain=, subtopics= must leave out subtopics judged below it",
            "err ndcg": "ERR and nDCG(dcg='exp-log2') are printed there with five digits",
        },
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
        ordered_by="score",
        limits=(Limit(".*", "ties", lambda lengths: lengths > 15, _LONG_TIES),),
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
            for name in ("precision", "recall", "f1", "accuracy", "mcc", "hamming")
        }
        | {
            f"{name}(threshold=0.5)": f"{name}(threshold=0.5, zero_division=nan)"
            for name in ("balanced_accuracy", "cohen_kappa")
        }
        | {"mape": "mape", "r2": "r2"},
        ties="expected",
        no_truth="listed",
        limits=(
            Limit("ndcg|dcg", "gains", lambda labels: labels < 0, _LOW_LABELS),
            Limit("ndcg|dcg", "lengths", lambda rows: rows == 1, "a user with one row is an error there"),
            Limit("r2", "values", np.isnan, _EQUAL_TARGETS),
            Limit("balanced_accuracy", "values", np.isnan, _EMPTY_CLASS),
        ),
        spelled={"roc_auc": "auc", "brier_score_loss": "brier", "matthews_corrcoef": "mcc(threshold=0.5)"}
        | {"hamming_loss": "hamming(threshold=0.5)", "mean_absolute_percentage_error": "mape"}
        | {
            name: f"{name}(threshold=0.5)"
            for name in ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "cohen_kappa")
        }
        | _ERROR_NAMES,
        lacking=(
            "top_k_accuracy class_likelihood_ratios d2_* *_deviance explained_variance "
            "fbeta hinge_loss jaccard max_error "
            "mean_pinball_loss *mean_squared_log_error median_absolute_error precision_recall_fscore_support "
            "zero_one_loss"
        ),
        declined={
            "coverage_error": "equal scores count as in the worst order: ask without like= for it, with ties='worst'",
            "label_ranking_average_precision": "users without a positive row count as 1 there: use "
            "average_precision(average=user), which leaves them out",
            "label_ranking_loss": "users of one class count as 0 there, and tied pairs as wrong: without either it is "
            "1 - gauc(weight=equal)",
        },
        notes_of={
            "log_loss brier": "of scores in float32, they are computed in float32 there",
            "ndcg dcg": "ndcg_score and dcg_score take one row of scores per user, all of the same length",
            "balanced_accuracy": "rows of one class have the recall of this class there",
            "r2": "equal targets have 1 or 0 there",
        },
    ),
)
LIBRARIES = (
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
        limits=(Limit("auc", "values", np.isnan, _ONE_CLASS), EXTREME_SCORES),
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
            "auc(max_fpr=0.5)": "auc(max_fpr=0.5)",
            "average_precision": "average_precision",
            "ece": "ece",
            "ece(norm=l2)": "ece(norm=l2)",
            "ece(norm=max)": "ece(norm=max)",
            "eer": "eer(interpolation=nearest)",
            "recall_at_fixed_precision(min_precision=0.5)": "recall_at_precision(at=0.5)",
            "precision_at_fixed_recall(min_recall=0.5)": "precision_at_recall(at=0.5)",
            "sensitivity_at_specificity(min_specificity=0.5)": "sensitivity_at_specificity(at=0.5)",
            "specificity_at_sensitivity(min_sensitivity=0.5)": "specificity_at_sensitivity(at=0.5)",
            "mape": "mape(eps=1.17e-6)",
        }
        | _ERRORS,
        ties="error",
        no_truth="listed",
        no_recs="skip",
        ordered_by="score",
        limits=(
            Limit("precision|recall|mrr|map", "scores", lambda scores: scores <= 0, _NO_HITS),
            Limit("ece", "scores", lambda scores: scores == 1, "a score of 1 has a bin of its own there"),
            Limit("ndcg", "gains", lambda labels: labels < 0, "grades below 0 count there, and count as 0 here"),
            Limit(_OF_CLASSES, "values", np.isnan, _ONE_CLASS),
        ),
        tolerance=3e-7,
        spelled={f"Retrieval{name}": own for name, own in _RETRIEVAL.items()}
        | {f"Retrieval{name}": name for name in ("precision", "recall", "hit_rate", "r_precision")}
        | {"AUROC": "auc", "BinaryAUROC": "auc", "BinaryAveragePrecision": "average_precision"}
        | {"BinaryCalibrationError": "ece", "CalibrationError": "ece", "BinaryEER": "eer", "EER": "eer"}
        | {"MeanAbsolutePercentageError": "mape"}
        | {f"{kind}{name}": own for kind in ("", "Binary") for name, own in _TORCH_POINTS.items()}
        | _ERROR_NAMES,
        lacking=(
            "RetrievalPrecisionRecallCurve RetrievalRecallAtFixedPrecision Binary* Multiclass* Multilabel* "
            "ROC Accuracy CohenKappa ConfusionMatrix ExactMatch F1Score FBetaScore "
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
        notes=("the order of equal scores is undefined there: an error here, except in ndcg and gauc of scored rows",),
        notes_of={
            "recall": "only scored rows exist: a relevant item outside the list does not count against recall",
            "precision recall mrr map": _NO_HITS,
        },
    ),
    Recipe(
        name="implicit",
        tool="implicit",
        version="implicit 0.7.3",
        lists={"precision": "precision(denominator=min_k_n_rel, average=pooled)", "map": "map"} | _BINARY_NDCG,
        rows={},
        ordered_by="score",
        min_gain="any",
        spelled={"mean_average_precision": "map"},
        declined={"auc": "it fills lists up to k with items that are not relevant"},
        notes_of={"precision": "its precision is hits over min(k, relevant items), summed over all users"},
    ),
    Recipe(
        name="cornac",
        tool="Cornac",
        version="cornac 3.0.1",
        lists=_SAME | {"map": "map", "ncrr": "ncrr"} | _BINARY_NDCG,
        rows=_ERRORS | {"map": "average_precision(average=user)"},
        ties="error",
        ordered_by="score",
        limits=(Limit("mae|mse|rmse", "scores", lambda scores: scores < 0, _CLIPPED),),
        min_gain=1.0,
        spelled={"AUC": "gauc", "FMeasure": "f1", "HitRatio": "hit_rate"},
        declined={
            "gauc": "it counts equal scores as lost, and is NaN if a user has relevant rows only",
        },
        notes=("it ranks the whole catalogue, and the largest k cuts all metrics that are asked for together",),
    ),
)
