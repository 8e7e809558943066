"""Lists that hold a sample of the catalogue: settings, draws, and checks of lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.checks import whole_number
from fastrec.evaluation.digests import COLUMN
from fastrec.exceptions import Argument, InputError, MetricError, shown
from fastrec.inputs.lists import Lists, Names
from fastrec.metrics.plan import Plan
from fastrec.policies import CORRECT, SAMPLE, SAMPLING

if TYPE_CHECKING:
    from fastrec.items.popularity import Popularity

Array = np.ndarray[Any, Any]
MAX_SEED = 2**63 - 1
MAX_SIZE = 2**53  # of a catalogue
DEFAULTS_OF_DRAWS = {"sample": SAMPLE.default, "seed": 1}
MAX_TOTAL = 1 << 44  # of the weights of items, so that draws are in proportion to 2^-20


# Settings


class Sample(NamedTuple):
    """What to draw for each user of a model."""

    negatives: int
    seed: int
    kind: str  # "uniform" or "popularity"


def read_sampling(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a call about samples, checked; none if its lists hold no samples."""
    for name, policy in SAMPLING.items():
        policy.check(given[name])
    seed, correct = whole_number(given["seed"]), given["correct"]
    if seed is None or not 0 <= seed <= MAX_SEED:
        raise InputError(Argument("seed"), f" must be an integer from 0 to 2^63 - 1, found {shown(given['seed'])}")
    found: dict[str, Any] = {name: _size(name, given[name]) for name in ("negatives", "sampled_from")}
    found = {name: size for name, size in found.items() if size is not None}
    if len(found) == 2:
        raise InputError(
            Argument("negatives"),
            " draws from the catalogue of a model, ",
            Argument("sampled_from"),
            " is about lists that hold a sample: pass one of them",
        )
    if "negatives" in found:
        found |= {"seed": seed, "sample": given["sample"]}
    for name in ("sample", "seed") if "negatives" not in found else ():
        if given[name] != DEFAULTS_OF_DRAWS[name]:
            raise InputError(Argument(name, (given[name],)), " needs ", Argument("negatives", (...,)))
    if not found and correct != CORRECT.default:
        one, other = Argument("negatives", (...,)), Argument("sampled_from", (...,))
        raise InputError(Argument("correct", (correct,)), " needs lists that hold a sample: ", one, " or ", other)
    if correct != CORRECT.default and given["sample"] != SAMPLE.default:
        raise InputError(
            Argument("correct", (correct,)),
            " needs uniform samples: leave out ",
            Argument("sample", (given["sample"],)),
        )
    return found and found | {"correct": correct}


def refuse_size(plan: Plan) -> None:
    """Raise MetricError for a metric of users that reads the size of the catalogue, of which lists hold a sample.

    It takes all other items for ones that a list could have held. Metrics of all lists together, such as
    item_coverage, may read the size: their lists can hold any item of the catalogue.
    """
    for value in plan.values:
        if value.over is None and value.call.text in plan.reads_size:
            other = "use limited_auc(unseen=list_only), or " if value.call.metric.name == "limited_auc" else ""
            found = f"{value.call.text} reads the size of the catalogue, but the lists hold a sample of it"
            raise MetricError(f"{found}: {other}leave the metric out")


def _size(name: str, value: Any) -> int | None:
    number = whole_number(value)
    if value is not None and (number is None or not 1 <= number <= MAX_SIZE):
        raise InputError(Argument(name), f" must be an integer from 1 to 2^53, found {shown(value)}")
    return number


def sample_of(settings: Mapping[str, Any]) -> Sample | None:
    """Return what to draw for users of a model; None for the whole catalogue."""
    if "negatives" not in settings:
        return None
    return Sample(settings["negatives"], settings["seed"], settings["sample"])


def refuse_setting(name: str, settings: Mapping[str, Any]) -> None:
    """Raise InputError for lists where a model is to be sampled, or for a model where lists hold samples."""
    if name in settings:
        about = {
            "negatives": (" draws items of a model; lists that hold a sample go with ", "sampled_from"),
            "sampled_from": (" is about lists that hold a sample; to draw items of a model pass ", "negatives"),
        }
        raise InputError(Argument(name, (settings[name],)), about[name][0], Argument(about[name][1], (...,)))


# Popularity


def popularity_of(known: Mapping[str, Any]) -> Popularity:
    """Return the popularity in the table of items or the counts of a history, by name."""
    from fastrec.items.popularity import Popularity  # most calls draw nothing by popularity

    return Popularity(known.get("counts"), known.get("items"), None, set())


def used_by_draws(settings: Mapping[str, Any], known: Mapping[str, Any]) -> set[str]:
    """Return the sides besides lists and truth that draws depend on, as `BatchSides.used` names them."""
    if settings.get("sample", SAMPLE.default) == SAMPLE.default:
        return set()
    column = popularity_of(known).column(None)
    return {"counts"} if column is None else {f"{COLUMN}{column}"}


def as_weights(values: Array) -> Array:
    """Return popularities as integers to draw by: as they are, if they are integers, else in proportion."""
    whole = values.astype(np.int64) if values.max(initial=0.0) <= MAX_TOTAL else np.zeros(0, np.int64)
    if len(whole) and (whole == values).all() and int(whole.sum()) <= MAX_TOTAL:
        return whole
    scale = MAX_TOTAL / 2 / math.fsum(values)
    weights: Array = np.where(values > 0, np.maximum(np.rint(values * scale), 1), 0).astype(np.int64)
    return weights


# Checks


def check_catalogue(settings: Mapping[str, Any]) -> None:
    """Raise InputError for lists that are sampled from a catalogue of another size than metrics count."""
    n_items, size = settings["n_items"], settings.get("sampled_from")
    if n_items is not None and size is not None and n_items != size:
        named = Argument("n_items", (n_items,)), " and ", Argument("sampled_from", (size,))
        raise InputError(*named, " are both the size of the catalogue: leave out one of them")


def check_lengths(lists: Lists, settings: Mapping[str, Any], names: Names) -> None:
    """Raise InputError for lists that are longer than the catalogue, or that have places without an item."""
    if "sampled_from" in settings and lists.longest[0] > settings["sampled_from"]:
        user = int(np.diff(lists.rec_indptr).argmax())
        raise InputError(
            f"recs of user {names.user(user)} have {lists.longest[0]} items, more than ",
            Argument("sampled_from", (settings["sampled_from"],)),
        )
    if settings.get("correct", CORRECT.default) != CORRECT.default and lists.lowest < 0:
        raise InputError(
            Argument("correct", (settings["correct"],)),
            " counts the sampled items above others, but lists have places without an item: leave out ",
            Argument("duplicates", ("miss",)),
            " and ranks with gaps",
        )
