"""Recipes of tools that have metrics of items and histories, beside those of accuracy."""

from __future__ import annotations

from fastrec.metrics.recipe import ABOVE_0, Recipe

__all__ = ["RECOMMENDERS"]

_SAME = {name: name for name in ("precision", "recall", "f1", "hit_rate", "mrr")}
_BINARY_NDCG = {"ndcg": "ndcg(gain=binary)"}
_RANKED = {name: name for name in ("precision", "recall", "hit_rate", "mrr", "map")} | _BINARY_NDCG
_ABOVE_0 = f"min_gain={ABOVE_0}"  # if other metrics of the tool count rows of gain 0 as relevant

RECOMMENDERS = (
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
)
