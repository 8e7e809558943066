"""Recipes of tools that have metrics of items and histories, beside those of accuracy."""

from __future__ import annotations

from fastrec.metrics.recipe import ABOVE_0, EXTREME_SCORES, Limit, Recipe

_SAME = {name: name for name in ("precision", "recall", "f1", "hit_rate", "mrr")}
_BINARY_NDCG = {"ndcg": "ndcg(gain=binary)"}
_RANKED = {name: name for name in ("precision", "recall", "hit_rate", "mrr", "map")} | _BINARY_NDCG
_CO_OCCURRENCE = "its similarity counts users with both items; here vectors are compared (item_feature_vector)"
_NO_OVERLAP = "lists that hold items of the user's history are an error there: exclude='history' removes them"
_PER_USER = "it is a table of users, not a number: per_user=True gives one"
_TIED_BORDER = (
    "head and tail are its own: mark them in the column 'segment' of items= where counts are equal at the border"
)
_GROWS = "its Diversity divides the sum over pairs by the length of the list, so it grows with k: use fastrec's"
_OUT_OF_RANGE = (
    "it divides a sum over pairs by the length of the history alone, so it can be below 0: use "
    "serendipity(expected=history)"
)
_FULL_LISTS = "it takes every list for one of k items: use fastrec's personalization"
_ONE_MINUS_ILD = "it is 1 - intra_list_diversity, and undefined for lists of one item: use intra_list_diversity"
_COUNT_OF_USERS = "it is a number of users, not a share: use user_coverage"
_LOW_RATINGS = "ratings below 0 count there, and count as 0 here"
_LOW_GRADES = Limit("(?!.*gain=binary)(ndcg|dcg)", "gains", lambda gains: gains < 0, _LOW_RATINGS)
_OUTSIDE = Limit("user_coverage", "judged", lambda rows: rows == 0, "it leaves out users outside the truth")
_ABOVE_0 = f"min_gain={ABOVE_0}"  # if other metrics of the tool count rows of gain 0 as relevant


def _not_asked(names: str) -> dict[str, str]:
    """Decline metrics of accuracy of a tool that has a recipe for its metrics of items alone."""
    return dict.fromkeys(names.split(), "its metrics of accuracy were not compared, those of items were")


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
            "popularity": "popularity(counts=rows)",
            "popularity(normalize=True)": "popularity(scale=share, counts=rows)",
            "novelty": "novelty",
            "item_coverage": "item_coverage(denominator=one)",
            "item_coverage(normalize=True)": "item_coverage",
            "serendipity": "serendipity(expected=rank, denominator=n_rec, no_truth=listed, no_recs=skip)",
            "intra_list_diversity": "intra_list_diversity(distance=hamming)",
            "overlap": "overlap(denominator=n_rec)",
            "user_coverage": "user_coverage",
            "sufficient_reco": "user_coverage(min_items=k, no_recs=skip)",
        },
        rows={},
        min_gain="any",
        spelled={
            "F1Beta": "f_beta",
            "AvgRecPopularity": "popularity",
            "MeanInvUserFreq": "novelty",
            "CatalogCoverage": "item_coverage",
            "Intersection": "overlap",
            "CoveredUsers": "user_coverage",
        },
        declined={
            "Intersection(ref_reco=reco)": "it is 1 for a frame with itself, whatever k: overlap compares the lists",
            "UnrepeatedReco": "an item twice in a list is an error here, or see duplicates=",
            "accuracy": "it treats every list as k items long, and falls below 0 in a catalogue of fewer than k",
            "mcc": "it treats every list as k items long, and is NaN in a catalogue of fewer than k",
            "partial_auc": "no metric here stops at the k-th item that is not relevant",
            "pap": "no metric here stops at the k-th item that is not relevant",
        },
        rank_gaps="keep",
        limits=(_OUTSIDE,),
        notes=("ranks of data frames are positions: a rank without an item is a miss",),
        notes_of={
            "ndcg": "the ideal of ndcg has k relevant items for every user, so a perfect list can be below 1",
            "serendipity": "it ranks items by rows of the history, not by users: repeated rows give another number",
            "user_coverage": "it leaves out users outside the truth; here they count if they have a list",
            "overlap": "users without a reference count as 0 there, and not at all here",
        },
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
            "shannon_entropy": "shannon_entropy",
            "novelty": "novelty(share=rows, unseen=zero, average=pooled)",
            "intra_list_diversity": "intra_list_diversity(single=skip)",
            "serendipity": "serendipity(expected=history, denominator=n_rec, no_truth=listed, no_recs=skip)",
        },
        rows={"rmse": "rmse", "mae": "mae", "auc": "auc", "log_loss": "log_loss"},
        ordered_by="score",
        limits=(_LOW_GRADES,),
        min_gain="any",
        spelled={"distributional_coverage": "shannon_entropy", "diversity": "intra_list_diversity"},
        lacking="exp_var rsquared",
        declined={
            "item_coverage": "it divides by the items of the history but counts others too, so it can be above 1: use "
            "item_coverage(denominator=history)",
            "catalog_coverage": "it divides by the items of the history but counts others too, so it can be above 1: "
            "use item_coverage(denominator=history)",
            "diversity(item_sim_measure=item_cooccurrence_count)": _CO_OCCURRENCE,
            "serendipity(item_sim_measure=item_cooccurrence_count)": _CO_OCCURRENCE,
            "user_diversity": _PER_USER,
            "user_serendipity": _PER_USER,
            "user_item_serendipity": "it is a table of users and items, not a number",
            "historical_item_novelty": "it is a table of items, not a number",
            "r_precision": "it is the mean over users with a hit only, and NaN if all hits are below rank R",
        },
        notes_of={
            "precision recall map ndcg": "users without a list are left out of precision, recall and map, and count "
            "as 0 in ndcg",
            "ndcg": "with score_type raw or exp, users with ratings of 0 only are left out there",
            "novelty": f"items that the history lacks count with novelty 0 there and lower the mean; {_NO_OVERLAP}",
            "shannon_entropy": _NO_OVERLAP,
            "intra_list_diversity": f"it is that of item_feature_vector; {_NO_OVERLAP}",
            "serendipity": f"it is that of item_feature_vector, with the relevance of the truth; {_NO_OVERLAP}",
        },
    ),
    Recipe(
        name="replay",
        tool="RePlay",
        version="replay-rec 0.22.0",
        lists=_RANKED
        | {
            "item_coverage": "item_coverage(denominator=history)",
            "novelty": "novelty(normalize=max, denominator=k)",
            "surprisal": "novelty(normalize=max, denominator=k)",
            "unexpectedness": "unexpectedness(denominator=k)",
            "category_coverage": "category_coverage(denominator=k)",
        },
        rows={},
        ties="id_desc",
        ordered_by="score",
        min_gain="any",
        spelled={"CategoricalDiversity": "category_coverage", "Coverage": "item_coverage"},
        declined={
            "NCISPrecision": "it weighs recommended items by a soft-max of scores and subtracts the smallest of these, "
            "which overflows: use snips(of=precision)",
            "Novelty": "it is 1 - repeat_ratio, and 1 for users without a list: use repeat_ratio; novelty here is "
            "its Surprisal",
            "roc_auc": "it is 1 for lists of hits only and 0 for lists without, which no option here gives",
        },
        notes=("equal scores are ordered by item, descending, in frames; dicts keep the order of the input",),
        notes_of={
            "unexpectedness": "users without a reference count as 0 there, and not at all here",
            "category_coverage": "each row of the lists has one category there",
        },
    ),
    Recipe(
        name="recbole",
        tool="RecBole",
        version="recbole 1.2.1",
        lists=_RANKED | {"popularity": "popularity(counts=rows)", "item_coverage": "item_coverage", "gini": "gini"},
        rows=_RANKED
        | {
            "gauc": "gauc(weight=positives)",
            "auc": "auc",
            "log_loss": "log_loss",
            "mae": "mae",
            "rmse": "rmse",
        },
        ties="error",
        ordered_by="score",
        limits=(EXTREME_SCORES,),
        tolerance=3e-7,
        spelled={"hit": "hit_rate", "averagepopularity": "popularity", "giniindex": "gini"},
        declined={
            "shannon_entropy": "it is the entropy in nats / the number of distinct recommended items, so it falls when "
            "more items are shown: use shannon_entropy(base=e)",
            "tailpercentage": "its tail is the least popular tenth of the items, ties by id, without unseen items: "
            "mark it in a column of items= and use aplt(column=...)",
        },
        notes=(
            "values are rounded to four places there (metric_decimal_place)",
            "it removes users without truth before its metrics: one of them would make recall NaN for all",
            "the order of equal scores is that of torch.topk, which is undefined: they are an error here",
        ),
        notes_of=dict.fromkeys(("item_coverage", "gini"), "the padding id 0 is an item there: pass n_items + 1"),
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
            "gini": "gini",
            "exposure_gini": "gini(discount=rbp, p=0.85)",
            "exposure_gini(weight=LogRankWeight())": "gini(discount=log2_flat2)",
            "popularity": "popularity(scale=percentile)",
            "popularity(count=interactions)": "popularity(scale=percentile, counts=rows)",
            "rbo": "rbo(form=truncated, p=0.85)",
        },
        rows={"rmse": "rmse(average=user)", "mae": "mae(average=user)"},
        no_truth="listed",
        no_recs="skip",
        min_gain="any",
        limits=(_LOW_GRADES,),
        rank_gaps="error",  # ndcg, dcg and rbp use the numbers, other metrics the order of rows
        spelled={
            "AveragePrecision": "map",
            "Hit": "hit_rate",
            "RecipRank": "mrr",
            "ListGini": "gini",
            "MeanPopRank": "popularity",
            "rank_biased_overlap": "rbo",
        },
        lacking="ListLength TestItemCount",
        declined={
            "rbp(normalize=True)": "no ideal of fastrec ends with the list of the user",
            "entropy": "it adds 0.000001 to the weight of every category, so one category alone is not 0: use "
            "category_entropy",
            "rank_biased_entropy": "it adds 0.000001 to the weight of every category, and raises where the data set "
            "lacks an item: use category_entropy(discount=rbp, p=0.85)",
            "ILS": "it is 1 - intra_list_diversity, but 1 for a list of one item: use intra_list_diversity",
            "least_item_promoted": "it subtracts a length from a position counted from 0",
        },
        notes_of={
            "ndcg": "ndcg does not discount ranks 1 and 2",
            "precision recall hit_rate mrr map ndcg dcg rbp": "values are those of list_summary, where users without "
            "truth count as 0",
            "gini": "n_items is the number of items of its data set; later versions raise for an item that it lacks; "
            "ExposureGini computes in float32",
            "rbo": "lists shorter than n have an overlap below 1 with themselves",
        },
    ),
)
MONITORS = (
    Recipe(
        name="evidently",
        tool="Evidently",
        version="evidently 0.7.23",
        lists={
            "popularity": "popularity(unseen=drop)",
            "popularity(normalize_arp=True)": "popularity(scale=max, unseen=drop)",
            "item_coverage": "item_coverage(denominator=history)",
            "gini": "gini(zeros=exclude, correction=n_minus_1)",
            "novelty": "novelty(unseen=drop)",
        },
        rows={},
        spelled={"PopularityBiasMetric": "popularity", "PopularityBias": "popularity", "NoveltyMetric": "novelty"},
        declined={
            "intra_list_diversity": _GROWS,
            "Diversity*": _GROWS,
            "serendipity": _OUT_OF_RANGE,
            "SerendipityMetric": _OUT_OF_RANGE,
            "personalization": _FULL_LISTS,
            "PersonalizationMetric": _FULL_LISTS,
            "ItemBias": "it is a plot, and drops rows of reference data by user",
            "UserBias": "it is a plot",
        }
        | _not_asked("PrecisionTopK RecallTopK FBetaTopK MAP MRR NDCG HitRate"),
        lacking="ScoreDistribution RecCasesTable",
        notes=("equal scores take a mean rank there, so items at the border of k can both be lost",),
        notes_of={
            "popularity item_coverage gini": "PopularityBiasMetric is popularity, with metric=coverage item_coverage "
            "and with metric=gini gini",
            "gini": "it is undefined there if one item is shown, and 0 here",
            "item_coverage": "of reference data it counts all rows, beyond k, and items that the history lacks",
        },
    ),
    Recipe(
        name="elliot",
        tool="Elliot",
        version="elliot 0.3.1 (read, not run)",
        lists={
            "popularity": "popularity(unseen=error)",
            "aplt": "aplt",
            "aclt": "aplt(denominator=one)",
            "epc": "epc",
            "efd": "efd",
            "rsp": "rsp(exclude_seen=no)",
            "reo": "reo",
            "item_coverage": "item_coverage(denominator=one)",
            "category_coverage": "category_coverage(relevance=truth)",
        },
        rows={},
        no_recs="skip",
        spelled={"ARP": "popularity", "PopRSP": "rsp", "PopREO": "reo", "SRecall": "category_coverage"},
        declined={
            "gini": "its GiniIndex is 1 - gini(correction=n_minus_1): ask fastrec for that",
            "GiniIndex": "it is 1 - gini(correction=n_minus_1): ask fastrec for that",
            "shannon_entropy": "it is the mean over lists of their mean -log2 p, which is the entropy only if all "
            "lists are equally long: use shannon_entropy",
            "user_coverage": _COUNT_OF_USERS,
            "UserCoverageAtN": _COUNT_OF_USERS,
            "NumRetrieved": "it is a number of items, not a share",
        }
        | _not_asked("Precision Recall HR MRR MAP MAR nDCG nDCGRendle2020 F1 DSC AUC GAUC LAUC MAE MSE RMSE"),
        lacking="BiasDisparity* *MAD* ExtendedF1",
        notes=("its history has one row per user and item",),
        notes_of={
            "popularity": "it fails for an item that the history lacks and for an empty list",
            "aplt": _TIED_BORDER,
            "rsp": _TIED_BORDER,
            "reo": f"{_TIED_BORDER}; it reads the truth of users with a list only",
        },
    ),
    Recipe(
        name="warprec",
        tool="WarpRec",
        version="warprec 2.2.8",
        lists={
            "gini": "gini(correction=n_minus_1)",
            "shannon_entropy": "shannon_entropy(base=e)",
            "item_coverage": "item_coverage(denominator=one)",
            "popularity": "popularity(unseen=one)",
            "aplt": "aplt",
            "aclt": "aplt(denominator=one)",
            "epc": "epc(unseen=one)",
            "efd": "efd(unseen=one)",
            "rsp": "rsp",
            "reo": "reo",
            "ips_recall": "ips",
            "snips_recall": "snips",
            "ips_dcg": "ips(of=dcg)",
            "snips_dcg": "snips(of=dcg)",
        },
        rows={},
        no_recs="skip",
        tolerance=1e-6,
        spelled={"ARP": "popularity", "PopRSP": "rsp", "PopREO": "reo"},
        declined={
            "srecall": "it divides by the categories of the user's relevant items: category_coverage(relevance=truth) "
            "divides by all",
            "user_coverage": _COUNT_OF_USERS,
            "UserCoverageAtN": _COUNT_OF_USERS,
            "NumRetrieved": "it is a number of items, not a share",
        }
        | _not_asked("Precision Recall HitRate MRR MAP MAR NDCG NDCGRendle2020 F1 AUC GAUC LAUC LogLoss MAE MSE RMSE"),
        lacking="BiasDisparity* *MAD* EucDistance Hypervolume",
        notes=(
            "it counts users with truth only: leave out the lists of others",
            "it computes in float32, and a repeated row of the history is one",
        ),
        notes_of={
            "aplt": _TIED_BORDER,
            "rsp": f"{_TIED_BORDER}; before 2.2 it ignored what users had seen",
            "reo": f"{_TIED_BORDER}; it is undefined there without a hit; before 2.2 it counted all items",
            "ips": "its propensities: popularity_propensity(history, power=0.5, floor=0.1, items=all of the catalogue)",
        },
    ),
    Recipe(
        name="recmetrics",
        tool="recmetrics",
        version="recmetrics 0.1.5",
        lists={
            "novelty": "novelty(unseen=error, denominator=k)",
            "personalization": "personalization(overlap=cosine)",
        },
        rows={},
        declined={
            "item_coverage": "its prediction_coverage is 100 x item_coverage, with two decimals",
            "prediction_coverage": "it is 100 x item_coverage, with two decimals",
            "catalog_coverage": "it draws lists at random: use item_coverage",
            "intra_list_similarity": _ONE_MINUS_ILD,
            "make_confusion_matrix": "it is a plot",
        }
        | _not_asked("mark recommender_precision recommender_recall mse rmse"),
        notes_of={
            "novelty": "the counts of items are those of users, and n is k",
            "personalization": "it compares all pairs of users; here no pair is looked at",
        },
    ),
    Recipe(
        name="rexmex",
        tool="rexmex",
        version="rexmex 0.1.3",
        lists={
            "novelty": "novelty(unseen=error, denominator=k)",
            "personalization": "personalization(overlap=cosine)",
            "item_coverage": "item_coverage",
            "user_coverage": "user_coverage",
        },
        rows={},
        declined={"intra_list_similarity": _ONE_MINUS_ILD}
        | _not_asked(
            "average_precision_at_k average_recall_at_k discounted_cumulative_gain gmean_rank hits_at_k kendall_tau "
            "mean_average_precision_at_k mean_average_recall_at_k mean_rank mean_reciprocal_rank "
            "normalized_discounted_cumulative_gain normalized_distance_based_performance_measure rank reciprocal_rank "
            "spearmans_rho"
        ),
        notes_of={
            "novelty": "it needs lists of k items and counts those of users, to which it adds 1e-10",
            "item_coverage": "it is rounded to three digits there",
            "user_coverage": "it is rounded to three digits there, and leaves out users who are not among the possible",
        },
    ),
)
