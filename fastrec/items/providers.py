"""The functions that fill the statistics of the providers of lists, by the name of the provider."""

from __future__ import annotations

from collections.abc import Mapping

from fastrec.items import (
    categories,
    gains,
    others,
    popularity,
    propensities,
    sampled,
    subtopics,
    vectors,
)
from fastrec.metrics.providers import Fill

FILLS: Mapping[str, Fill] = {
    "ideal gains": gains.fill_ideal_gains,
    "ideal orders": gains.fill_orders,
    "compatibility": gains.fill_compatibility,
    "judgements": gains.fill_judgements,
    "pairs of gains": gains.fill_pairs,
    "user models": gains.fill_user_models,
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
