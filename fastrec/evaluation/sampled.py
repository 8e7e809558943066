"""Lists that hold a sample of the catalogue: settings, draws, and estimates of the metrics of the whole catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.arguments import calls
from fastrec.arguments.options import options_in
from fastrec.checks import whole_number
from fastrec.evaluation.digests import COLUMN
from fastrec.exceptions import Argument, FastrecError, InputError, MetricError, shown
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.lists import Lists, Names
from fastrec.inputs.slots import MADE, BatchSides
from fastrec.metrics.declaration import Call
from fastrec.metrics.plan import Asked, call_on_arrays, make_plan
from fastrec.metrics.providers import gains_in_lists, is_relevant, provider
from fastrec.metrics.rank_weights import is_continuous, weight_between
from fastrec.metrics.sampled import OF_ALL_HITS, OF_ONE_HIT, SAMPLED
from fastrec.metrics.statistics import ListStatistics
from fastrec.policies import CORRECT, SAMPLE, SAMPLING

Array = np.ndarray[Any, Any]
MAX_SEED = 2**63 - 1
MAX_SIZE = 2**53  # of a catalogue
DEFAULTS_OF_DRAWS = {name: options_in(calls.evaluate_model)[name].default for name in ("sample", "seed")}
MAX_TOTAL = 1 << 44  # of the weights of items, so that draws are in proportion to 2^-20


# Settings


class Sample(NamedTuple):
    """What to draw for each user of a model."""

    negatives: int
    seed: int
    kind: str  # "uniform" or "popularity"


def read_sampling(given: Mapping[str, Any], calls: Iterable[Call]) -> dict[str, Any]:
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
    if not found:
        return {}
    for call in calls if correct == CORRECT.default else ():  # estimates refuse these metrics, too
        _refuse_size(call)
    return found | {"correct": correct}


def _refuse_size(call: Call) -> None:
    """Raise MetricError for a metric of users that reads the size of the catalogue.

    It takes all other items for ones that a list could have held, but a list holds a sample. Metrics of all lists
    together, such as item_coverage, may read the size: their lists can hold any item of the catalogue.
    """
    try:
        plan = make_plan((call,), Asked(n_items=MAX_SIZE))
    except FastrecError:  # the plan of the evaluator raises it, or has a setting that this one lacks
        return
    value, reads_size = plan.values[0], plan.reads_size
    if value.on_arrays:  # of such a formula the plan does not know it
        statistics = plan.statistics_of(call, lambda _: np.ones(1))
        call_on_arrays(call, statistics, 1)
        reads_size = isinstance(statistics, ListStatistics) and statistics.reads_size
    if not reads_size or value.over is not None:
        return
    other = "use limited_auc(unseen=list_only), or " if call.metric.name == "limited_auc" else ""
    raise MetricError(
        f"{call.text} reads the size of the catalogue, but the lists hold a sample of it: {other}leave the metric out"
    )


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
        about = {"negatives": "draws items of a model; lists that hold a sample go with "}
        about["sampled_from"] = "is about lists that hold a sample; to draw items of a model pass "
        other = {"negatives": "sampled_from", "sampled_from": "negatives"}[name]
        raise InputError(Argument(name, (settings[name],)), f" {about[name]}", Argument(other, (...,)))


# Popularity


def popularity_of(sides: BatchSides) -> tuple[Array, Array] | None:
    """Return items with a popularity, and this: the column of the table of items, or rows of the history, if given."""
    from fastrec.items.popularity import Popularity

    known = Popularity(sides)
    return known.known(None, "rows") if known.is_given else None


def used_by(sample: Sample | None, sides: BatchSides) -> set[str]:
    """Return the sides besides lists and truth that draws depend on, as `BatchSides.used` names them."""
    if sample is None or sample.kind == SAMPLE.default:
        return set()
    from fastrec.items.popularity import Popularity

    column = Popularity(sides).column(None)
    return {"counts"} if column is None else {f"{COLUMN}{column}"}


def as_weights(values: Array) -> Array:
    """Return popularities as integers to draw by: as they are, if they are integers, else in proportion."""
    whole = values.astype(np.int64) if values.max(initial=0.0) <= MAX_TOTAL else np.zeros(0, np.int64)
    if len(whole) and (whole == values).all() and int(whole.sum()) <= MAX_TOTAL:
        return whole
    scale = MAX_TOTAL / 2 / math.fsum(values)
    weights: Array = np.where(values > 0, np.maximum(np.rint(values * scale), 1), 0).astype(np.int64)
    return weights


# Estimates


class SampledSide(NamedTuple):
    """What estimates read of a batch: the side `SAMPLED`."""

    lists: Lists
    others: Array | None  # int64 (n_users,): items that could be drawn; None if `sampled_from` says so
    settings: Mapping[str, Any]
    names: Names


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


class Rank(NamedTuple):
    """The rank of a relevant item in a sampled list, and how many items the sample is drawn from."""

    others: int
    drawn: int
    known: int  # items of the truth with a higher score, all of which are in the list
    above: int  # drawn items with a higher score
    tied: int  # drawn items with the same score
    tied_known: int  # items of the truth with the same score, itself included

    def mean_weight(self, cutoff: int | None, weight: Any) -> float:
        """Return the mean weight of the estimated rank, over all orders of equal scores."""
        if self.tied == 0 and self.tied_known == 1:
            return self._weight(cutoff, weight, 0, 0)
        others, own = self.tied, self.tied_known - 1
        shares = []
        for i in range(own + 1):  # of the truth, and of the drawn items, that come first
            for j in range(others + 1):
                ways = math.comb(own, i) * math.comb(others, j)
                share = ways / (math.comb(own + others, i + j) * (own + others + 1))
                shares.append(share * self._weight(cutoff, weight, i, j))
        return math.fsum(shares)

    def _weight(self, cutoff: int | None, weight: Any, n_known: int, n_drawn: int) -> float:
        """Return the weight of the unbiased estimate of the rank, if so many items with the same score come first.

        It is 1 + items of the truth above + others x the share of drawn items above.
        """
        known, above, drawn = self.known + n_known, self.above + n_drawn, max(self.drawn, 1)  # 0 drawn of 0 others
        if cutoff is not None and (1 + known) * drawn + self.others * above > cutoff * drawn:
            return 0.0
        return weight_between(weight, 1 + known + self.others * above / drawn)


class SampledRanks:
    """The ranks of the relevant items of a batch among the drawn items."""

    def __init__(self, sides: BatchSides) -> None:
        self._side: SampledSide = sides[SAMPLED]
        lists, truth = self._side.lists, sides["truth"]
        recs = FlatSide(lists.rec_items, lists.rec_indptr, None)
        gains = gains_in_lists({"recs": recs, "truth": truth})
        rows = np.flatnonzero(~np.isnan(gains))
        self.gains, self.users = gains[rows], recs.users[rows]
        self.n_users = lists.n_users
        above = recs.ranks[rows] - 1 if lists.blocks is None else lists.blocks[0][rows].astype(np.int64)
        tied = np.ones_like(above) if lists.blocks is None else lists.blocks[1][rows].astype(np.int64)
        listed = np.bincount(self.users, minlength=self.n_users)
        firsts = np.cumsum(listed) - listed
        starts = np.ones(len(rows), bool)  # of rows with one score
        starts[1:] = (self.users[1:] != self.users[:-1]) | (above[1:] != above[:-1])
        block = np.cumsum(starts) - 1
        known = np.flatnonzero(starts)[block] - firsts[self.users]
        tied_known = np.bincount(block, minlength=1)[block]
        drawn, others = self._sizes(listed, truth)
        columns = (others[self.users], drawn[self.users], known, above - known, tied - tied_known, tied_known)
        distinct, self._which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        self._which = self._which.reshape(-1)
        self.ranks = [Rank(*row) for row in distinct.tolist()]

    def _sizes(self, listed: Array, truth: FlatSide) -> tuple[Array, Array]:
        """Return how many items were drawn for each user, and from how many."""
        lists, others, settings = self._side.lists, self._side.others, self._side.settings
        lengths = np.diff(lists.rec_indptr) if lists.lengths is None else lists.lengths
        drawn = lengths - listed
        if others is not None:
            return drawn, others
        others = settings["sampled_from"] - np.diff(truth.indptr)
        size = Argument("sampled_from", (settings["sampled_from"],))
        if (wrong := drawn > others).any():
            user = int(wrong.argmax())
            raise InputError(
                f"recs of user {self._side.names.user(user)} have {drawn[user]} items outside the truth, but ",
                size,
                f" leaves {max(int(others[user]), 0)} beside the {int(np.diff(truth.indptr)[user])} of the truth",
            )
        if (wrong := (drawn == 0) & (listed > 0) & (others > 0)).any():
            who = self._side.names.user(int(wrong.argmax()))
            raise InputError(
                f"recs of user {who} have no item outside the truth, which tells nothing about the ranks among ", size
            )
        return drawn, others

    def sums(self, keys: Sequence[Any]) -> list[Array]:
        """Return, for each key (cut-off, weight, gain, least gain), the estimated sum of each user."""
        sums = []
        for cutoff, weight, gain, least in keys:
            if not is_continuous(weight):
                raise MetricError(
                    "has a table of weights of whole ranks, and estimates lie between them: leave the metric out, or ",
                    Argument("correct", (CORRECT.default,)),
                )
            own = np.array([rank.mean_weight(cutoff, weight) for rank in self.ranks])
            mapped = _map_gains(self.gains, gain)
            terms = np.where(is_relevant(self.gains, least), own[self._which] * mapped, 0.0)
            sums.append(np.bincount(self.users, terms, self.n_users))
        return sums


def _map_gains(gains: Array, gain: Any) -> Array:
    """Return what formulas make of the gains of relevant items."""
    if gain == "binary":
        return np.ones(len(gains))
    gains = np.maximum(gains, 0.0)  # min_gain="any" makes those below 0 relevant, too
    if gain == "linear":
        return gains
    known, which = np.unique(gains, return_inverse=True)
    mapped = [math.exp2(one) - 1.0 if gain == "exp2" else gain[int(one)] for one in known.tolist()]
    found: Array = np.array(mapped, float)[which.reshape(-1)]
    return found


MADE["sampled ranks"] = SampledRanks


@provider(OF_ALL_HITS, sides=["recs", "truth", SAMPLED], is_ordered=False)
def fill_sums(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill estimated sums over relevant items; keys are (cut-off, weight, gain, least gain)."""
    out[:] = sides["sampled ranks"].sums(keys)


@provider(OF_ONE_HIT, sides=["recs", "truth", SAMPLED], is_ordered=False)
def fill_single(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill estimates about the only relevant item of each user; keys as in `fill_sums`."""
    truth = sides["truth"]
    for least in dict.fromkeys(key[-1] for key in keys):
        counts = np.bincount(truth.users[is_relevant(truth.gains, least)], minlength=truth.n_users)
        if (wrong := counts > 1).any():
            user = int(wrong.argmax())
            raise MetricError(
                f"has estimates for users with one relevant item only, found {counts[user]} of user "
                f"{sides['names'].user(user)}: leave the metric out, or ",
                Argument("correct", (CORRECT.default,)),
            )
    out[:] = sides["sampled ranks"].sums(keys)
