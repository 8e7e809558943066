"""Statistics of items and histories in the form that the engine takes: importing this module registers them."""

from __future__ import annotations

from typing import Any

from fastrec.evaluation.accumulators import ACCUMULATORS, AccumulatorKind, Keys
from fastrec.items import categories as _categories  # noqa: F401 - registers providers
from fastrec.items import ideal_gains as _ideal_gains  # noqa: F401 - registers providers
from fastrec.items import judgements as _judgements  # noqa: F401 - registers providers
from fastrec.items import others as _others  # noqa: F401 - registers providers
from fastrec.items import pairs as _pairs  # noqa: F401 - registers providers
from fastrec.items import popularity as _popularity  # noqa: F401
from fastrec.items import subtopics as _subtopics  # noqa: F401 - registers providers
from fastrec.items import user_models as _user_models  # noqa: F401 - registers providers
from fastrec.items import vectors as _vectors  # noqa: F401
from fastrec.items.counting import collect_exposure
from fastrec.items.disparity import SegmentRates, collect_rates, unpack_rates
from fastrec.items.exposure import Exposure, unpack_exposure
from fastrec.items.propensities import KIND, WeightSums, collect_weights, describe_weights, unpack_weights


def _empty(keys: Keys, _: bool) -> Exposure:  # noqa: FBT001 - called by position
    return Exposure(keys)  # type: ignore[arg-type]


def _unpack(arrays: dict[str, Any], keys: Keys, _: bool) -> Exposure:  # noqa: FBT001 - called by position
    return unpack_exposure(arrays, keys)  # type: ignore[arg-type]


def _empty_rates(keys: Keys, _: bool) -> SegmentRates:  # noqa: FBT001 - called by position
    return SegmentRates(keys)  # type: ignore[arg-type]


def _unpack_rates(arrays: dict[str, Any], keys: Keys, _: bool) -> SegmentRates:  # noqa: FBT001 - called by position
    return unpack_rates(arrays, keys)  # type: ignore[arg-type]


RATES = "segment rates"
ACCUMULATORS[RATES] = AccumulatorKind(RATES, _empty_rates, _unpack_rates, collect_rates, frozenset({"recs"}))
ACCUMULATORS["exposure"] = AccumulatorKind("exposure", _empty, _unpack, collect_exposure, frozenset({"recs"}))


def _empty_weights(keys: Keys, _: bool) -> WeightSums:  # noqa: FBT001 - called by position
    return WeightSums(keys)  # type: ignore[arg-type]


def _unpack_weights(arrays: dict[str, Any], keys: Keys, _: bool) -> WeightSums:  # noqa: FBT001 - called by position
    return unpack_weights(arrays, keys)  # type: ignore[arg-type]


ACCUMULATORS[KIND] = AccumulatorKind(
    KIND, _empty_weights, _unpack_weights, collect_weights, frozenset({"truth", "propensity"}), describe_weights
)
