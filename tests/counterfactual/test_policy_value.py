"""`fastrec.policy_value` against plain definitions, by hand, on random logs, and on simulated ones."""

import itertools
import json
import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastrec
from fastrec import FastrecWarning, InputError, InputTypeError, PolicyEstimate, PolicyEstimates
from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.kernels.weights import MAX_VALUE
from fastrec.runtime.launcher import Launcher
from support import policy_oracle
from support.policy_logs import check, draw_slates, flat
from support.policy_oracle import Slate

NAMES = list(ESTIMATORS)
PLAIN = [name for name in NAMES if not ESTIMATORS[name].predicted]
OF_SLATES = ("sips", "iips", "rips", "snsips", "sniips", "snrips")


def quietly(slates: Sequence[Slate], **options: Any) -> PolicyEstimates:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FastrecWarning)
        found: PolicyEstimates = fastrec.policy_value(**flat(slates), **{"estimator": NAMES, **options})
    return found


def bits(found: dict[str, PolicyEstimate]) -> str:
    return json.dumps({name: one.to_dict() for name, one in found.items()})


# By hand


WORKED = {  # rewards 1, 0 | 0, 1; weights 1, 1/2 | 2, 3/2
    "ips": (2.5 / 4, 0.125),  # 1 and 1.5 over two rows each
    "snips": (2.5 / 5, 0.1),  # (1 - 0.5 * 1.5, 1.5 - 0.5 * 3.5) = (0.25, -0.25): sqrt(2 / 1 * 0.125) / 5
    "sips": (1.75, 1.25),  # 0.5 and 3
    "iips": (1.25, 0.25),  # 1 and 1.5
    "rips": (2.0, 1.0),  # 1 and 3
    "snsips": (1.0, 0.0),  # each slate earns 1
    "sniips": (1 / 3 + 0.75, 5 / 72),  # 1/3 + 2/3 (1 - 1/3) + 3/4 + (0 - 3/8) = 83/72, and 73/72
    "snrips": (1 / 3 + 6 / 7, 88 / 441),  # 1/3 + 4/9 + 6/7 + 4/7 (0 - 3/7) = 613/441, and 437/441
    "dr": (3.5 / 4, 0.375),  # 0.25 + 1 * 0.5 + 0.5 + 0.5 * -0.5 = 1, and 1 + 2 * -0.25 + 0.5 + 1.5 * 1 = 2.5
    "cascade_dr": (2.75, 1.75),  # 0.25 + 0.5 + 1 * 0.5 + 0.5 * -0.5 = 1, and 1 - 0.5 + 2 * 0.5 + 3 * 1 = 4.5
}
PREDICTED = [0.5, 0.5, 0.25, 0], [0.25, 0.5, 1, 0.5]


def worked(name: str, **options: Any) -> PolicyEstimate:
    found: PolicyEstimate = fastrec.policy_value(
        [1, 0, 0, 1], [0.5, 0.5, 0.25, 0.5], [0.5, 0.25, 0.5, 0.75], [0, 2, 4], estimator=name, **options
    )
    return found


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("name", NAMES)
def test_worked_case(name: str) -> None:
    found = worked(name, predictions=PREDICTED)
    assert (found.value, found.std_error) == pytest.approx(WORKED[name], rel=1e-12)
    assert (found.slates, found.rows, found.empty_slates, found.clipped) == (2, 4, 0, 0)


def test_weights_of_the_worked_case() -> None:
    found = worked("iips")
    assert found.effective_sample_size == pytest.approx(10 / 3, rel=1e-15)  # 5^2 / (1 + 0.25 + 4 + 2.25)
    assert (found.mean_weight, found.max_weight, found.weights) == (1.25, 2.0, 4)
    assert found.mean_weight_error == pytest.approx(0.5)  # 1.5 and 3.5 of two rows: sqrt(2 * 2 * 1) / 4
    whole = worked("sips")
    assert (whole.mean_weight, whole.max_weight, whole.weights) == (1.75, 3.0, 2)
    assert worked("rips").max_weight == 3.0


def test_clip_of_the_worked_case() -> None:
    found = worked("iips", clip=1.2)
    assert (found.value, found.clipped) == (1.1, 2)  # 1 and 1.2
    assert (found.mean_weight, found.max_weight) == (1.25, 2.0)  # of the weights before
    assert found.effective_sample_size == pytest.approx(3.9**2 / (1 + 0.25 + 2 * 1.44))
    whole = worked("sips", clip=2)
    assert (whole.value, whole.clipped) == (1.25, 2)  # 0.5 and 2; both rows of the slate are clipped


# Against the oracle


@pytest.mark.parametrize("clip", [None, 0.7, 1.37])
@pytest.mark.parametrize("seed", range(8))
def test_random_logs_agree_with_the_definitions(seed: int, clip: float | None) -> None:
    slates = draw_slates(seed, n=[0, 1, 2, 3, 7, 20, 40, 90][seed])
    found = quietly(slates, clip=clip)
    assert list(found) == NAMES
    for name in NAMES:
        check(found[name], policy_oracle.policy_value(name, slates, clip))


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_each_row_is_a_slate_without_pointers() -> None:
    slates = draw_slates(3, longest=1, ragged=False)
    given = flat(slates)
    del given["indptr"]
    found = fastrec.policy_value(**given, estimator=NAMES)
    assert bits(found) == bits(quietly(slates))
    for same in (("ips", "iips", "sips", "rips"), ("snips", "snsips", "sniips", "snrips"), ("dr", "cascade_dr")):
        assert len({one.value for name, one in found.items() if name in same}) == 1, same


def test_errors_are_nearly_those_of_a_bootstrap() -> None:
    slates = draw_slates(11, n=400, longest=3)
    found = quietly(slates)
    rng = np.random.default_rng(0)
    drawn = [quietly([slates[at] for at in rng.integers(0, 400, 400)]) for _ in range(150)]
    for name in NAMES:
        spread = float(np.std([one[name].value for one in drawn], ddof=1))
        assert found[name].std_error == pytest.approx(spread, rel=0.25), name


# Laws


@pytest.mark.parametrize("clip", [None, 1.37])
def test_order_and_merging_change_no_bit(clip: float | None) -> None:
    slates = draw_slates(5, n=900)
    whole = quietly(slates, clip=clip)
    shuffled = list(slates)
    random.Random(1).shuffle(shuffled)
    assert bits(quietly(shuffled, clip=clip)) == bits(whole)
    cuts = [0, 1, 13, 13, 600, 900]
    parts = [quietly(slates[first:last], clip=clip) for first, last in itertools.pairwise(cuts)]
    random.Random(2).shuffle(parts)
    for name in NAMES:
        merged = parts[0][name]
        for part in parts[1:]:
            merged = merged.merge(part[name])
        assert merged == whole[name] or "nan" in repr(merged)
        assert bits({name: merged}) == bits({name: whole[name]})


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrec.counterfactual.sums.MIN_ROWS_OF_THREAD", 100)
    slates = draw_slates(6, n=1500)
    found = {bits(quietly(slates, n_threads=n)) for n in (1, 2, 3, 8)}
    assert len(found) == 1


def test_interpreted_and_compiled_code_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    slates = draw_slates(7, n=50)
    monkeypatch.setattr(Launcher, "way", "interpreted")
    plain = bits(quietly(slates))
    monkeypatch.setattr(Launcher, "way", "compiled")
    assert bits(quietly(slates)) == plain


def test_values_of_any_size_add_exactly() -> None:
    rewards = [1e60, 1.0, -1e60, 1e-60, 3.0]
    found = fastrec.policy_value(rewards, [1.0] * 5, [1.0] * 5, estimator="ips")
    assert found.value == 0.8  # plain sums give 0.6


def test_the_same_policy_earns_what_was_earned() -> None:
    slates = [[row._replace(new=row.logged) for row in slate] for slate in draw_slates(8, n=200, ragged=False)]
    found = quietly(slates)
    totals = np.array([sum(row.reward for row in slate) for slate in slates])
    for name in OF_SLATES:
        one = found[name]
        assert one.value == pytest.approx(totals.mean(), rel=1e-12)
        assert (one.mean_weight, one.mean_weight_error, one.max_weight) == (1.0, 0.0, 1.0)
        assert one.effective_sample_size == one.weights
    for name in ("iips", "sips", "rips"):
        assert found[name].std_error == pytest.approx(totals.std(ddof=1) / math.sqrt(200), rel=1e-12)
    assert found["ips"].value == pytest.approx(totals.mean() / 4, rel=1e-12)


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("name", PLAIN)
def test_values_are_the_truth_with_the_propensities_that_docs_name(name: str) -> None:
    """Two of three items, drawn without replacement by weight: 84 slates are all of them, as often as they come."""
    old, new, earns = (5, 1, 1), (1, 1, 5), (0.1, 0.3, 0.6)
    pairs = list(itertools.permutations(range(3), 2))

    def given_before(weights: Sequence[int], one: int, other: int) -> tuple[float, ...]:
        return weights[one] / sum(weights), weights[other] / (sum(weights) - weights[one])

    def at_position(weights: Sequence[int], *shown: int) -> tuple[float, ...]:
        joint = {pair: math.prod(given_before(weights, *pair)) for pair in pairs}
        return tuple(sum(p for pair, p in joint.items() if pair[n] == shown[n]) for n in range(2))

    joint_old, joint_new = ({pair: math.prod(given_before(own, *pair)) for pair in pairs} for own in (old, new))
    slates = [pair for pair in pairs for _ in range(round(84 * joint_old[pair]))]
    chosen = at_position if name in ("ips", "snips", "iips", "sniips") else given_before
    rewards = [earns[item] for pair in slates for item in pair]
    pscore, new_pscore = ([p for pair in slates for p in chosen(own, *pair)] for own in (old, new))
    truth = sum(p * sum(earns[item] for item in pair) for pair, p in joint_new.items())
    found = fastrec.policy_value(rewards, pscore, new_pscore, range(0, 169, 2), estimator=name)
    assert found.value == pytest.approx(truth / 2 if name in ("ips", "snips") else truth)
    if name == "iips":  # its rows are no steps of a cascade
        steps = ([p for pair in slates for p in given_before(own, *pair)] for own in (old, new))
        assert abs(fastrec.policy_value(rewards, *steps, range(0, 169, 2)).value - truth) > 0.2


def test_doubled_rewards_double_values() -> None:
    slates = draw_slates(9)
    twice = [[row._replace(reward=2 * row.reward) for row in slate] for slate in slates]
    once, other = quietly(slates, estimator=PLAIN), quietly(twice, estimator=PLAIN)
    for name in PLAIN:
        assert (other[name].value, other[name].std_error) == (2 * once[name].value, 2 * once[name].std_error)


def test_self_normalised_values_ignore_the_scale_of_weights() -> None:
    slates = draw_slates(10, ragged=False, longest=3)
    halved = [[row._replace(new=row.new / 2) for row in slate] for slate in slates]
    for name in ("snips", "snsips", "sniips", "snrips"):
        once, other = quietly(slates, estimator=[name])[name], quietly(halved, estimator=[name])[name]
        assert (other.value, other.std_error) == pytest.approx((once.value, once.std_error), rel=1e-12)


def test_right_predictions_leave_no_spread() -> None:
    """Where q is the reward and q_new the same in every row, weights do not matter."""
    slates = [[row._replace(shown=row.reward, expected=0.25) for row in slate] for slate in draw_slates(12, longest=1)]
    found = quietly([slate for slate in slates if slate], estimator=["dr", "cascade_dr"])
    assert {(one.value, one.std_error) for one in found.values()} == {(0.25, 0.0)}


# On simulated logs


def simulate(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Slates of two rows of three items; the second click is likelier after the first. Also the true values."""
    old, new = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    quality = np.array([0.1, 0.3, 0.6])
    items = rng.choice(3, size=(n, 2), p=old)
    first = rng.random(n) < quality[items[:, 0]]
    second = rng.random(n) < quality[items[:, 1]] * np.where(first, 1.0, 0.5)
    rewards = np.stack([first, second], axis=1).astype(float)
    share = float(new @ quality)
    truth = share + share * share + (1 - share) * share / 2
    given = {"rewards": rewards.ravel(), "pscore": old[items].ravel(), "new_pscore": new[items].ravel()}
    return given | {"indptr": np.arange(0, 2 * n + 1, 2)}, dict.fromkeys(("sips", "rips", "snsips", "snrips"), truth)


def test_intervals_cover_the_truth() -> None:
    rng = np.random.default_rng(7)
    inside: dict[str, list[bool]] = {}
    for _ in range(300):
        given, truth = simulate(rng, 1500)
        found = fastrec.policy_value(**given, estimator=list(truth))
        for name, value in truth.items():
            low, high = found[name].interval()
            inside.setdefault(name, []).append(low <= value <= high)
    for name, own in inside.items():
        assert 0.92 <= np.mean(own) <= 0.98, name


# Data frames


LOG = {
    "slate_id": ["b", "a", "b", "a", "c"],
    "rank": [2, 1, 1, 2, 1],
    "reward": [1.0, 1.0, 0.0, 0.0, 1.0],
    "pscore": [0.5, 0.5, 0.25, 0.5, 0.5],
    "new_pscore": [0.75, 0.5, 0.5, 0.25, 0.25],
}
ORDER = [1, 3, 2, 0, 4]


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_give_the_bits_of_arrays(make: Any) -> None:
    rewards, old, new = (np.array(LOG[name])[ORDER] for name in ("reward", "pscore", "new_pscore"))
    wanted = fastrec.policy_value(rewards, old, new, [0, 2, 4, 5], estimator=PLAIN)
    assert bits(fastrec.policy_value(make(LOG), estimator=PLAIN)) == bits(wanted)
    renamed = {f"my_{name}": values for name, values in LOG.items()}
    names = {"reward": "my_reward", "slate": "my_slate_id", "rank": "my_rank"}
    own = fastrec.policy_value(make(renamed), "my_pscore", "my_new_pscore", **names, estimator=PLAIN)
    assert bits(own) == bits(wanted)


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_ids_of_slates_in_any_order() -> None:
    rewards, old, new, ids = (np.array(LOG[name]) for name in ("reward", "pscore", "new_pscore", "slate_id"))
    order = [2, 1, 0, 3, 4]  # rows of a slate in the order of ranks
    found = fastrec.policy_value(*(own[order] for own in (rewards, old, new)), slate_ids=ids[order], estimator=PLAIN)
    assert bits(found) == bits(fastrec.policy_value(pd.DataFrame(LOG), estimator=PLAIN))


def test_a_frame_without_slates_has_a_row_per_slate() -> None:
    frame = pd.DataFrame(LOG).drop(columns=["slate_id", "rank"])
    found = fastrec.policy_value(frame)
    assert (found.slates, found.value) == (5, pytest.approx((1.5 + 1 + 0.5) / 5))


def test_ranks_may_begin_at_0() -> None:
    frame = pd.DataFrame(LOG).assign(rank=lambda own: own["rank"] - 1)
    assert bits({"iips": fastrec.policy_value(frame)}) == bits({"iips": fastrec.policy_value(pd.DataFrame(LOG))})


def test_predictions_by_name() -> None:
    frame = pd.DataFrame(LOG).assign(q=0.5, q_new=0.25)
    found = fastrec.policy_value(frame, predictions=("q", "q_new"), estimator="dr")
    weights = np.array(LOG["new_pscore"]) / np.array(LOG["pscore"])
    assert found.value == pytest.approx(np.mean(0.25 + weights * (np.array(LOG["reward"]) - 0.5)))


# Wrong input


OLD, NEW = [0.5, 0.5, 0.5], [0.5, 0.25, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pscore": [0.5, 0.0, 0.5]}, "pscore must be a probability above 0 and at most 1.*found 0 at row 1"),
        ({"pscore": [0.5, 0.5, 1.5]}, "found 1.5 at row 2"),
        ({"pscore": [0.5, -0.5, 1.5]}, "found -0.5 at row 1"),
        ({"pscore": [math.nan, 0.5, 0.5]}, "pscore.*found nan at row 0"),
        ({"pscore": [0.5, 1.0000001, 0.5]}, "above 0 and at most 1.*found 1.0000001 at row 1"),
        ({"new_pscore": [0.5, math.nan, 0.5]}, "new_pscore must be a probability, at least 0.*found nan at row 1"),
        ({"new_pscore": [0.5, 0.5, 1.5]}, "new_pscore.*found 1.5 at row 2"),
        ({"new_pscore": [0.5, 0.5, -1e-9]}, "new_pscore.*found -1e-09 at row 2"),
        ({"rewards": [1, math.inf, 0]}, "rewards must be finite.*found inf at row 1"),
        ({"rewards": [1, math.nan, 0]}, "rewards must be finite.*found nan at row 1"),
        ({"rewards": [1, 2 * MAX_VALUE, 0]}, "rewards must be finite, and at most 1e"),
        ({"pscore": [0.5, 1e-80, 0.5]}, r"weights of slate 1 explode.*0.25 / 1e-80 at row 1"),
        ({"pscore": [0.5, 5e-324, 0.5]}, "explode"),
        ({"pscore": [0.5, 0.5]}, "rewards and pscore must have the same length, found 3 and 2"),
        ({"pscore": None}, "pscore must be given"),
        ({"pscore": ["a", "b", "c"]}, "pscore must be numbers"),
        ({"indptr": [0, 2]}, "indptr must end at the number of values, 3"),
        ({"indptr": [0, 2, 1, 3]}, "indptr must not decrease"),
        ({"indptr": [0, 3], "slate_ids": [1, 1, 1]}, "found both"),
        ({"slate_ids": [1, 1]}, "slate_ids must have one key per row, 3; found 2"),
        ({"estimator": "dm"}, "estimator must be one of ips, snips.*found 'dm'"),
        ({"estimator": []}, "estimator must be a name, or a list of names"),
        ({"estimator": ["ips", "ips"]}, "each estimator once"),
        ({"estimator": "dr"}, "dr needs predictions"),
        ({"estimator": "dr", "predictions": [1, 2, 3]}, "predictions must be a pair"),
        ({"estimator": "dr", "predictions": ([0, 0, math.nan], [0, 0, 0])}, r"predictions\[0\].*found nan at row 2"),
        ({"clip": 0}, "clip must be above 0"),
        ({"clip": math.nan}, "clip must be above 0"),
        ({"clip": "1"}, "clip must be a number"),
        ({"slate": "x"}, "slate names a column of a data frame"),
        ({"rewards": "log.csv"}, "rewards must be data, found a str, 'log.csv': the command"),
        ({"clipping": 3}, "takes no argument 'clipping'"),
    ],
)
def test_wrong_input_is_a_clear_error(change: dict[str, Any], message: str) -> None:
    given = {"rewards": [1, 0, 1], "pscore": OLD, "new_pscore": NEW, **change}
    with pytest.raises((InputError, InputTypeError), match=message):
        fastrec.policy_value(given.pop("rewards"), given.pop("pscore"), given.pop("new_pscore"), **given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": [2, 1, 2, 2, 1]}, "column 'rank' holds rank 2 twice in slate 'b'"),
        ({"rank": [3, 1, 1, 2, 1]}, "without gaps in each slate; found 3 as row 2 of slate 'b'"),
        ({"rank": [3, 2, 2, 3, 2]}, "must run from 1"),
        ({"pscore": [0.5, 0.5, 0.25, 0.0, 0.5]}, r"column 'pscore' must be.*found 0 at row 3 \(slate 'a'\)"),
        ({"reward": ["x"] * 5}, "column 'reward' must hold numbers"),
    ],
)
def test_wrong_frames_are_clear_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=message):
        fastrec.policy_value(pd.DataFrame(LOG | change))


def test_missing_columns_of_frames() -> None:
    frame = pd.DataFrame(LOG)
    with pytest.raises(InputError, match=r"has no column 'pscore'.*; pscore=\.\.\. names another$"):
        fastrec.policy_value(frame.drop(columns="pscore"))
    with pytest.raises(InputError, match="rank orders the rows of slates"):
        fastrec.policy_value(frame.drop(columns="slate_id"), rank="rank")
    with pytest.raises(InputError, match="not by indptr"):
        fastrec.policy_value(frame, indptr=[0, 5])


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_long_slates_are_an_error_for_sums_per_position() -> None:
    with pytest.raises(InputError, match="sniips keeps products of positions, for slates of at most 128 rows"):
        fastrec.policy_value(np.ones(129), np.ones(129), np.ones(129), [0, 129], estimator="sniips")
    found = fastrec.policy_value(np.ones(256), np.ones(256), np.ones(256), [0, 128, 256], estimator="snrips")
    assert (found.value, found.std_error) == (128.0, 0.0)


def test_products_that_explode_in_a_slate() -> None:
    pscore = [1e-30] * 4
    with pytest.raises(InputError, match="weights of slate 0 explode: for rips"):
        fastrec.policy_value([1] * 4, pscore, [1] * 4, [0, 4], estimator="rips")
    assert fastrec.policy_value([1] * 4, pscore, [1] * 4, [0, 4]).value == pytest.approx(4e30)


# Few data


@pytest.mark.parametrize("name", NAMES)
def test_no_slates_and_one_slate(name: str) -> None:
    none = fastrec.policy_value([], [], [], [0], estimator=name, predictions=([], []))
    assert math.isnan(none.value)
    assert math.isnan(none.effective_sample_size)
    one = fastrec.policy_value([1.0], [0.5], [0.25], estimator=name, predictions=([0.0], [0.0]))
    assert one.value == (1.0 if name.startswith("sn") else 0.5)
    assert math.isnan(one.std_error)
    assert math.isnan(one.interval()[0])
    assert none.merge(one).value == one.value


def test_slates_without_rows_earn_nothing() -> None:
    found = fastrec.policy_value([1.0, 1.0], [0.5, 0.5], [0.5, 0.5], [0, 0, 2, 2])
    assert (found.value, found.slates, found.empty_slates) == (2 / 3, 3, 2)
    assert "slates without rows, which earn 0: 2" in repr(found)


@pytest.mark.parametrize("name", ["snips", "snsips", "sniips", "snrips"])
def test_weights_of_0_leave_no_value(name: str) -> None:
    found = fastrec.policy_value([1.0, 1.0], [0.5, 0.5], [0.0, 0.0], estimator=name)
    assert math.isnan(found.value)
    assert (found.effective_sample_size, found.mean_weight) == (0.0, 0.0)


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_the_smallest_weights_leave_a_value() -> None:
    found = fastrec.policy_value([1.0, 1.0], [1.0, 1.0], [5e-324, 1.0], [0, 1, 2], estimator="sniips")
    assert (found.value, found.std_error) == (1.0, 0.0)
    found = fastrec.policy_value([1.0, 0.5, 0.5], [1.0] * 3, [1.0, 5e-324, 1.0], [0, 2, 3], estimator="sniips")
    assert math.isfinite(found.std_error)


@pytest.mark.parametrize("name", ["ips", "snips", "iips", "sips", "rips"])
def test_weights_without_squares_have_no_error(name: str) -> None:
    with pytest.warns(FastrecWarning, match=f"{name}: all weights are below 1e-150: too small to be squared"):
        found = fastrec.policy_value([1.0, 2.0], [1.0, 1.0], [5e-324, 5e-324], estimator=name)
    assert found.value == (1.5 if name == "snips" else 1e-323)
    assert all(map(math.isnan, (found.std_error, found.effective_sample_size, found.mean_weight_error)))
    fine = fastrec.policy_value([1.0, 2.0], [1.0, 1.0], [1e-149, 1e-149], estimator=name)
    assert math.isclose(fine.effective_sample_size, 2) and fine.std_error > 0


# Doubts


def test_warns_of_wrong_propensities() -> None:
    n = 100
    with pytest.warns(FastrecWarning, match="iips: the mean weight is 2.0000, more than 5 standard errors"):
        fastrec.policy_value(np.arange(n) % 2, np.full(n, 0.25), np.full(n, 0.5))
    with pytest.warns(FastrecWarning, match="shows what the log never does"):
        fastrec.policy_value(np.arange(n) % 2, np.full(n, 0.5), np.full(n, 0.25))


def test_warns_of_few_large_weights() -> None:
    pscore = np.full(2000, 0.5)
    pscore[0] = 1e-4
    with pytest.warns(FastrecWarning, match="few weights decide: the effective sample size is 2.* of 2,000 rows"):
        found = fastrec.policy_value(np.ones(2000), pscore, np.full(2000, 0.5))
    assert "warning: iips: few weights" in repr(found)


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_warns_of_ranks_with_another_name(make: Any) -> None:
    """Open Bandit Pipeline calls them position, and takes its rows in any order."""
    columns = {"position" if name == "rank" else name: values for name, values in LOG.items()}
    message = "so slates keep row order, but column 'position' implies another for 1 of 2 slates: pass rank='position'"
    for name in ("rips", "sniips", "snrips", ["ips", "rips"]):
        with pytest.warns(FastrecWarning, match=message):
            fastrec.policy_value(make(columns), estimator=name)
    in_order = {name: [values[at] for at in ORDER] for name, values in columns.items()}
    words = {**columns, "position": ["top", "low"] * 2 + ["top"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*no column 'rank'")
        for name in ("ips", "snips", "iips", "sips", "snsips"):
            fastrec.policy_value(make(columns), estimator=name)
        fastrec.policy_value(make(columns), estimator="rips", rank="position")
        fastrec.policy_value(make(in_order), estimator="rips")
        fastrec.policy_value(make(words), estimator="rips")


def test_right_propensities_do_not_warn() -> None:
    given, _ = simulate(np.random.default_rng(1), 500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fastrec.policy_value(**given, estimator=PLAIN)
    assert list(found) == list(PLAIN) and not any(one.warnings for one in found.values())


# Results


def test_results_in_all_media() -> None:
    found = worked("iips")
    assert max(map(len, repr(found).splitlines())) <= 80
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_dict()["value"] == 1.25
    assert found.to_frame("pandas")["effective_sample_size"].tolist() == [found.effective_sample_size]
    page = found.to_html()
    assert page is not None
    assert "mean over slates of the sum of w r" in page
    assert "| iips | 1.2500 | -1.9266 – 4.4266 |" in found.to_markdown()
    axes = found.plot()
    assert (axes.get_xlabel(), len(axes.get_yticks())) == ("Value of the policy per slate, 95 % interval", 1)


def test_several_results_in_all_media() -> None:
    found = quietly(draw_slates(2), clip=1.37)
    assert max(len(line) for line in repr(found).splitlines() if not line.startswith("warning")) <= 80
    assert [row["estimator"] for row in found.to_rows()] == NAMES
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_frame("pandas")["value"].tolist() == [one.value for one in found.values()]
    page = found.to_html()
    assert page is not None
    assert "<svg" in page
    assert page.count("<svg") == 2 and "Value per row, with" in page and 'class="line"' not in page
    axes = found.plot()
    per = {"ips": "row", "snips": "row", "dr": "row"}
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{name} (per {per.get(name, 'slate')})" for name in NAMES
    ]
    merged = found.merge(found)
    assert merged["iips"].slates == 2 * found["iips"].slates
    with pytest.raises(InputError, match="same estimators"):
        found.merge(quietly(draw_slates(2), estimator=["iips"]))


def test_merge_needs_the_same_estimator_and_clip() -> None:
    with pytest.raises(InputError, match="same estimator and clip"):
        worked("iips").merge(worked("rips"))
    with pytest.raises(InputError, match="same estimator and clip"):
        worked("iips").merge(worked("iips", clip=2.0))
    with pytest.raises(InputTypeError, match="merge takes a PolicyEstimate"):
        worked("iips").merge(1.0)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="merge takes PolicyEstimates, found None"):
        quietly(draw_slates(2)).merge(None)  # type: ignore[arg-type]
