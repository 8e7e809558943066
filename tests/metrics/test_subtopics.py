"""Metrics of novelty and diversity: published examples, forms of `subtopics=`, ties of ideals, errors."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import InputError, InputTypeError, MetricError
from support import item_cases, item_oracle
from support.bits import mean_bits, user_bits
from support.item_oracle import Shop

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
METRICS = [
    *("alpha_dcg@3", "alpha_ndcg@3", "alpha_dcg(denominator=all_subtopics)@3", "alpha_ndcg(alpha=0.3)", "err_ia@3"),
    *("nerr_ia", "err_ia(denominator=n_subtopics)", "nrbp", "nnrbp(p=0.8)", "strecall@2", "precision_ia@2", "map_ia"),
]


def log_2(rank: int) -> float:
    return 1 / math.log2(rank + 1)


TFR = [  # lists by descending score of the tests of TF-Ranking's AlphaDCGMetric, and alpha-DCG
    ([[1], [], []], 1.0),
    ([[], [1], []], log_2(2)),
    ([[1], [2], []], 1 + log_2(2)),
    ([[1], [1], [1]], 1 + 0.5 * log_2(2) + 0.25 * log_2(3)),
    ([[1, 2, 4], [2, 3], [2]], 3 + 1.5 * log_2(2) + 0.25 * log_2(3)),
]


@pytest.mark.parametrize(("covered", "expected"), TFR)
def test_alpha_dcg_is_that_of_tf_ranking(covered: list[list[int]], expected: float) -> None:
    subtopics = {"q": dict(enumerate(covered))}
    report = fastrec.evaluate({"q": [0, 1, 2]}, {"q": [0, 1, 2]}, "alpha_dcg", subtopics=subtopics)
    assert report["alpha_dcg"] == pytest.approx(expected, abs=1e-15)


NDEVAL_TRUTH = {
    "1": {"a": [1, 2], "b": [2], "c": [3], "d": [1]},
    "2": {"a": [1], "f": [2, 3], "g": [2]},
}
NDEVAL_LISTS = {"1": ["e", "a", "b", "d", "x", "c"], "2": ["g", "f", "x"]}
NDEVAL = {  # pyndeval 0.0.8, by query
    "nrbp": (0.3046875, 0.4375),
    "nnrbp": (0.45348837209302323, 0.6666666666666666),
    "map_ia": (0.4166666666666667, 0.5),
    "err_ia@5": (0.3126575895108422, 0.42360060514372166),
    "nerr_ia@5": (0.46268656716417916, 0.65625),
    "alpha_dcg(denominator=all_subtopics)@5": (0.3791511574876689, 0.4272688298541904),
    "alpha_ndcg@5": (0.5578321282233113, 0.6756133598690708),
    "precision_ia@5": (0.26666666666666666, 0.2),
    "subtopic_recall@5": (0.6666666666666666, 0.6666666666666666),
    "nrbp(alpha=0.3, p=0.8)": (0.4009984, 0.34613333333333346),
    "nnrbp(alpha=0.3, p=0.8)": (0.7581188997338065, 0.726600985221675),
    "err_ia(alpha=0.3)@5": (0.28501213915608076, 0.3743946443352067),
    "nerr_ia(alpha=0.3)@5": (0.48424068767908307, 0.676829268292683),
    "alpha_dcg(alpha=0.3, denominator=all_subtopics)@5": (0.3309252210802662, 0.3584682603297995),
    "alpha_ndcg(alpha=0.3)@5": (0.5829061505076261, 0.6952799134526114),
}


def test_the_values_of_ndeval() -> None:
    """Without ties of ideals, and beyond rank 1."""
    truth = {query: list(own) for query, own in NDEVAL_TRUTH.items()}
    report = fastrec.evaluate(NDEVAL_LISTS, truth, list(NDEVAL), subtopics=NDEVAL_TRUTH, per_user=True)
    assert len(report) == len(NDEVAL)
    for own, expected in zip(report.per_user.values(), NDEVAL.values(), strict=True):
        assert own.tolist() == pytest.approx(list(expected), rel=1e-12)


def shop_of(seed: int) -> Shop:
    rng = random.Random(seed)
    users, items = [f"u{n:02}" for n in range(30)], [f"i{n:02}" for n in range(40)]
    truth = {user: dict.fromkeys(rng.sample(items, 12), 1.0) for user in users}
    covered = {
        user: {item: [float(n) for n in rng.sample(range(6), rng.choice([0, 1, 2, 3]))] for item in own}
        for user, own in truth.items()
    }
    return Shop(lists={user: rng.sample(items, 15) for user in users}, truth=truth, subtopics=covered)


def rows_of(shop: Shop) -> list[tuple[Any, Any, float]]:
    covered: Any = shop.subtopics
    return [(user, item, n) for user, own in covered.items() for item, topics in own.items() for n in topics]


def write(path: Path, head: str, rows: Any) -> str:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return str(path)


def test_every_form_has_the_same_bits(tmp_path: Path) -> None:
    """Dicts, data frames with rows in any order and repeated, and files."""
    pandas = pytest.importorskip("pandas")
    shop = shop_of(1)
    wanted = fastrec.evaluate(shop.lists, shop.truth, METRICS, subtopics=shop.subtopics, per_user=True)
    rows = rows_of(shop)
    random.Random(2).shuffle(rows)
    recs = [(user, item, rank) for user, own in shop.lists.items() for rank, item in enumerate(own, start=1)]
    truth: Any = [(user, item) for user, own in (shop.truth or {}).items() for item in own]
    frames = [
        pandas.DataFrame(own, columns=names)
        for own, names in (
            (recs, ["user_id", "item_id", "rank"]),
            (truth, ["user_id", "item_id"]),
            ([*rows, *rows[:20]], ["user_id", "item_id", "topic"]),
        )
    ]
    found = fastrec.evaluate(*frames[:2], METRICS, subtopics=frames[2], subtopic="topic", per_user=True)
    paths = (
        write(tmp_path / "recs.csv", "user_id,item_id,rank", recs),
        write(tmp_path / "truth.csv", "user_id,item_id", truth),
        write(tmp_path / "subtopics.csv", "user_id,item_id,subtopic", rows),
    )
    of_files = fastrec.evaluate_files(*paths[:2], METRICS, subtopics=paths[2], per_user=True)
    for report in (found, of_files):
        assert mean_bits(report.estimates) == mean_bits(wanted.estimates)
        assert user_bits(report) == user_bits(wanted)


def test_batches_and_threads_change_no_bit() -> None:
    shop = shop_of(3)
    wanted = fastrec.evaluate(shop.lists, shop.truth, METRICS, subtopics=shop.subtopics)
    evaluator = fastrec.Evaluator(METRICS, n_threads=1)
    users = list(shop.lists)
    parts = []
    for part in (users[20:], users[:7], users[7:20]):
        own = ({user: side[user] for user in part} for side in (shop.lists, shop.truth or {}, shop.subtopics or {}))
        recs, truth, subtopics = own
        evaluator.update(recs, truth, subtopics=subtopics)
        alone = fastrec.Evaluator(METRICS)
        alone.update(recs, truth, subtopics=subtopics)
        parts.append(alone.to_bytes())
    assert mean_bits(evaluator.result().estimates) == mean_bits(wanted.estimates)
    merged = fastrec.Evaluator.from_bytes(parts[0])
    for state in parts[1:]:
        merged.merge(fastrec.Evaluator.from_bytes(state))
    assert mean_bits(merged.result().estimates) == mean_bits(wanted.estimates)
    threads = [fastrec.evaluate(shop.lists, shop.truth, METRICS, subtopics=shop.subtopics, n_threads=n) for n in (1, 3)]
    assert all(mean_bits(report.estimates) == mean_bits(wanted.estimates) for report in threads)


def test_names_of_items_and_rows_do_not_matter() -> None:
    """Many items tie in the ideal order; only their subtopics decide."""
    shop = shop_of(4)
    names = {f"i{n:02}": f"x{39 - n:02}" for n in range(40)}

    def renamed(side: Any) -> Any:
        if isinstance(side, dict):
            return {names[item]: own for item, own in reversed(side.items())}
        return [names[item] for item in side]

    sides: Any = (shop.lists, shop.truth, shop.subtopics)
    recs, truth, subtopics = ({user: renamed(own) for user, own in side.items()} for side in sides)
    found = fastrec.evaluate(recs, truth, METRICS, subtopics=subtopics)
    wanted = fastrec.evaluate(*sides[:2], METRICS, subtopics=sides[2])
    assert mean_bits(found.estimates) == mean_bits(wanted.estimates)


def test_one_subtopic_for_each_item_is_a_plain_metric() -> None:
    """If all relevant items cover the same subtopic and alpha is 0, alpha-nDCG is nDCG."""
    shop = shop_of(5)
    subtopics = {user: dict.fromkeys(own, 1) for user, own in (shop.truth or {}).items()}
    metrics = ["alpha_ndcg(alpha=0)@5", "ndcg@5", "precision_ia@5", "precision@5", "map_ia", "map(denominator=n_rel)"]
    report = fastrec.evaluate(shop.lists, shop.truth, metrics, subtopics=subtopics)
    values = list(report.values())
    np.testing.assert_allclose(values[::2], values[1::2], rtol=1e-14)


def test_only_relevant_items_cover() -> None:
    truth = {"q": {1: 2.0, 2: 1.0, 3: 0.0}}
    subtopics = {"q": {1: [1], 2: [2], 3: [3], 4: [4]}}
    for min_gain, expected in ((None, 1.0), (2, 1.0), ("any", 2 / 3)):
        report = fastrec.evaluate({"q": [1, 2]}, truth, "strecall", subtopics=subtopics, min_gain=min_gain)
        assert report["strecall"] == pytest.approx(expected)


def test_greedy_ideals_of_many_items() -> None:
    """The oracle tries all items at each rank, with fractions."""
    shop = shop_of(6)
    for alpha in (0.5, 0.3, 1.0):
        text = f"alpha_dcg(alpha={alpha}, denominator=ideal)@8"
        report = fastrec.evaluate(shop.lists, shop.truth, text, subtopics=shop.subtopics)
        options = {"alpha": alpha, "denominator": "ideal"}
        wanted = item_oracle.evaluate(shop, "alpha_dcg", k=8, options=options)
        assert report[text] == pytest.approx(wanted.value, abs=1e-12)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, MetricError, "needs subtopics="),
    ({"subtopics": {"q": [1]}}, InputError, "subtopics has no numbers, only items: name their column with subtopic="),
    ({"subtopics": {"q": {1: math.nan}}}, InputError, "subtopics subtopics must not be NaN"),
    ({"subtopics": {"q": {1: [2**53, 2**53 + 1]}}}, InputError, "past 2\\*\\*53, which would be rounded"),
    ({"subtopics": {"q": {1: ["a"]}}}, InputTypeError, "must be numbers.*: number the strings first"),
    ({"subtopics": {"q": {1: [None]}}}, InputTypeError, "subtopics subtopics must be numbers"),
    ({"subtopics": {"q": {1: [[1]]}}}, InputError, "must have one number per item"),
    ({"subtopics": {"q": {"a": 1}}}, InputTypeError, "item ids must be of one type on all sides"),
    ({"subtopics": {"q": {-1: 1}}}, InputError, "subtopics of user 'q': item ids must not be negative"),
    ({"subtopics": "truth"}, InputTypeError, "subtopics must be data, found a str"),
    ({"subtopics": [[1]]}, InputTypeError, "must all be dicts"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_wrong_subtopics(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fastrec.evaluate({"q": [1]}, {"q": [1]}, "alpha_dcg", **given)


WRONG_METRICS = ["alpha_dcg(alpha=1.5)", "err_ia(alpha=-0.1)", "nrbp(alpha=nan)", "nrbp(p=1)", "alpha_ndcg(alpha=x)"]


@pytest.mark.parametrize("metric", WRONG_METRICS)
def test_options_outside_their_range(metric: str) -> None:
    with pytest.raises(MetricError, match=r"(alpha|p)=.* must be a number"):
        fastrec.evaluate({"q": [1]}, {"q": [1]}, metric, subtopics={"q": {1: 1}})


def test_a_list_that_covers_everything_has_at_most_so_many_ranks() -> None:
    text = "err_ia@10000001"
    with pytest.raises(MetricError, match="needs k <= 10000000, found k = 10000001"):
        fastrec.evaluate({"q": [1]}, {"q": [1]}, text, subtopics={"q": {1: 1}})


@pytest.mark.parametrize("own", [2, [2], (2, 2), {2}, np.array([2]), np.array(2), range(2, 3), [2.0, 2]])
def test_forms_of_the_subtopics_of_an_item(own: Any) -> None:
    """Copies count once, and -0.0 is 0."""
    subtopics = {"q": {1: own, 3: [-0.0, 0]}}
    report = fastrec.evaluate({"q": [1, 3]}, {"q": [1, 3]}, ["alpha_dcg", "strecall@1"], subtopics=subtopics)
    assert list(report.values()) == [pytest.approx(1 + log_2(2)), 0.5]


@pytest.mark.filterwarnings("default::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("subtopics", [{}, {"q": {}}, {"q": {1: []}}, {"q": {9: [1]}}])
def test_nobody_has_a_subtopic(subtopics: Any) -> None:
    """Ids that do not match are the usual cause."""
    with pytest.warns(fastrec.FastrecWarning, match="no relevant item has a row in subtopics: do the item ids match"):
        report = fastrec.evaluate({"q": [1]}, {"q": [1]}, ["alpha_dcg", "mrr"], subtopics=subtopics)
    assert math.isnan(report["alpha_dcg"]) and report["mrr"] == 1.0


def test_users_without_a_subtopic_are_counted_and_left_out() -> None:
    recs = {"q": [1], "r": [1], "s": [1], "t": [1]}
    truth = {"q": [1], "r": [1], "s": [2], "u": [1]}
    subtopics = {"q": {1: [1]}, "r": {7: [1]}, "s": {2: [1]}, "t": {1: [1]}, "u": {1: [1]}}
    report = fastrec.evaluate(recs, truth, "strecall", subtopics=subtopics)
    assert report["strecall"] == pytest.approx(1 / 3)  # q, s, and u, who has no list
    assert report.data["users_without_subtopics"] == 1
    assert "1 user with relevant items that cover no subtopic" in str(report)
    counted = fastrec.evaluate(recs, truth, "strecall", subtopics=subtopics, no_truth="zero", no_recs="skip")
    assert counted["strecall"] == pytest.approx(1 / 3)  # q, s and t


def test_weights_of_users() -> None:
    call: dict[str, Any] = {"subtopics": {"q": {1: 1}, "r": {1: 1, 2: 2}}, "user_weight": [1.0, 3.0]}
    report = fastrec.evaluate({"q": [1], "r": [1]}, {"q": [1], "r": [1, 2]}, "strecall", **call)
    assert report["strecall"] == (1 + 3 / 2) / 4


def test_rows_of_a_judgement_of_0_are_an_error(tmp_path: Path) -> None:
    """As in a table of judgements by subtopic, where most rows are 0."""
    pandas = pytest.importorskip("pandas")
    lists = pandas.DataFrame({"user_id": [1, 1], "item_id": [5, 6]})
    judged = pandas.DataFrame({"user_id": [1, 1], "item_id": [5, 6], "subtopic": [1, 2], "gain": [1, 0]})
    message = "subtopics column 'gain' must be above 0 in all rows, found 0 at position 1; leave out"
    with pytest.raises(InputError, match=message):
        fastrec.evaluate(lists, lists, "strecall", subtopics=judged)
    renamed = judged.rename(columns={"gain": "grade"})
    with pytest.raises(InputError, match="'grade' must be above 0"):
        fastrec.evaluate(lists, lists.assign(grade=1), "strecall", subtopics=renamed, gain="grade")
    for table, name in ((lists, "lists"), (judged, "judged")):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = str(tmp_path / "lists.csv"), str(tmp_path / "lists.csv")
    with pytest.raises(InputError, match="must be above 0 in all rows, found 0"):
        fastrec.evaluate_files(*paths, "strecall", subtopics=tmp_path / "judged.csv")
    assert fastrec.evaluate(lists, lists, "strecall", subtopics=judged[:1])["strecall"] == 1.0


def test_tied_items_need_an_order() -> None:
    lists, truth = {"q": {1: 0.5, 2: 0.5}}, {"q": [1]}
    subtopics = {"q": {1: 1}}
    with pytest.raises(MetricError, match="ties="):
        fastrec.evaluate(lists, truth, "alpha_dcg", subtopics=subtopics)
    assert fastrec.evaluate(lists, truth, "alpha_dcg", subtopics=subtopics, ties="id_asc")["alpha_dcg"] == 1.0


def test_worked_values_of_the_oracle() -> None:
    for text, value in item_cases.COVERED_VALUES.items():
        name, _, rest = text.partition("@")[0].partition("(")
        options = dict(pair.split("=") for pair in rest.rstrip(")").split(", ") if pair)
        found = item_oracle.evaluate(item_cases.COVERED, name, k=2, options=options).value
        assert found == pytest.approx(value, rel=1e-15)
