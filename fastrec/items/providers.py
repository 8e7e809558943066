"""The functions that fill the statistics of the providers of lists, by the name of the provider."""

from __future__ import annotations

from collections.abc import Mapping

from fastrec.items import (
    categories,
    ideal_gains,
    judgements,
    others,
    pairs,
    popularity,
    propensities,
    sampled,
    subtopics,
    user_models,
    vectors,
)
from fastrec.metrics.providers import Fill

FILLS: Mapping[str, Fill] = {
    "ideal gains": ideal_gains.fill,
    "ideal orders": ideal_gains.fill_orders,
    "compatibility": ideal_gains.fill_compatibility,
    "judgements": judgements.fill,
    "pairs of gains": pairs.fill,
    "user models": user_models.fill,
    "categories": categories.fill_categories,
    "categories of hits": categories.fill_categories_of_hits,
    "calibration": categories.fill_calibration,
    "diversity": vectors.fill_diversity,
    "distance to history": vectors.fill_distance,
    "popularity": popularity.fill_popularity,
    "popularity of history": popularity.fill_history,
    "popularity of hits": popularity.fill_hits,
    "popularity of ranks": popularity.fill_ranks,
    "history": others.fill_history,
    "reference": others.fill_reference,
    "hits outside of reference": others.fill_hits,
    "subtopics": subtopics.fill,
    "inverse propensities": propensities.fill_propensities,
    "ranks in the catalogue": sampled.fill_sums,
    "the rank in the catalogue": sampled.fill_single,
}
