"""Explanations: definitions against the recipes, numbers against `like=`, steps and users that add up."""

import json
import math
import random
import re

import numpy as np
import pytest

import fastrec
from fastrec.metrics.recipes import RECIPES
from support.explanations import names_of

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")


def some_lists(seed, *, tied=False):
    """Return lists and truth as dicts: graded, short, without a list, without truth."""
    chance = random.Random(seed)
    recs, truth = {}, {}
    for user in range(40):
        shown = chance.sample(range(30), chance.randint(0, 12))
        if chance.random() < 0.9:
            scores = [chance.randint(0, 3) for _ in shown] if tied else chance.sample(range(100), len(shown))
            recs[user] = dict(zip(shown, map(float, scores), strict=True))
        if chance.random() < 0.9:
            held = chance.sample(range(30), chance.randint(0, 5))
            truth[user] = {item: chance.randint(0, 3) for item in held}
    return recs, truth


def some_items(seed):
    """Return the other sides of `some_lists`: every item in the history, some users lack a side."""
    chance = random.Random(seed)
    labels = {item: chance.sample("abcd", chance.randint(1, 3)) for item in range(30)}
    return {
        "items": {
            item: {"category": own, "features": [float(x in own) for x in "abcd"], "propensity": 0.1 + item / 40}
            for item, own in labels.items()
        },
        "history": {user: chance.choices(range(30), k=3) for user in range(5, 40)} | {99: list(range(30))},
        "reference": {user: chance.sample(range(30), 6) for user in range(35)},
        "subtopics": {
            user: {item: chance.sample(range(1, 6), chance.randint(1, 3)) for item in range(30)} for user in range(38)
        },
    }


def some_rows(seed):
    chance = random.Random(seed)
    users = sorted(chance.randint(0, 20) for _ in range(150))
    labels = [chance.randint(0, 1) for _ in users]
    return labels, [chance.random() for _ in users], users


@pytest.mark.thorough(except_for="^recommenders-serendipity")
@pytest.mark.parametrize(("tool", "name"), list(names_of("lists")))
def test_numbers_are_those_of_like_and_steps_and_users_add_up(tool, name):
    recs, truth = some_lists(3)
    options = {"n_items": 30, **some_items(4)}
    why = fastrec.explain(name, recs, truth, like=tool, n_users=1000, **options)
    ours, theirs = why.ours, why.sides[tool]
    report = fastrec.evaluate(recs, truth, name, like=tool, per_user=True, **options)
    assert theirs.estimate == report.estimates[theirs.metric]
    assert ours.estimate == fastrec.evaluate(recs, truth, why.metric, **options).estimates[why.metric]
    gap = theirs.estimate.mean - ours.estimate.mean
    if "metric" not in why.differing:
        assert set(theirs.steps) == set(why.differing)
        assert math.fsum(step for step in theirs.steps.values() if not math.isnan(step)) == pytest.approx(
            gap, abs=1e-12
        )
    assert theirs.n_different == len(theirs.users)
    is_plain = not {"pooled", "geometric"} & set(re.findall(r"\w+", theirs.metric))
    if is_plain and not np.isnan(report.per_user[theirs.metric]).all():
        assert math.fsum(user.moved for user in theirs.users) == pytest.approx(gap, abs=1e-12)
        assert [abs(user.moved) for user in theirs.users] == sorted(
            (abs(user.moved) for user in theirs.users), reverse=True
        )
    values = dict(zip(report.user_ids, report.per_user[theirs.metric], strict=True))
    assert all(np.array_equal(user.theirs, values[user.user], equal_nan=True) for user in theirs.users)


@pytest.mark.parametrize(("tool", "name"), list(names_of("rows")))
def test_numbers_of_rows_are_those_of_like(tool, name):
    labels, scores, users = some_rows(5)
    options = {"user_ids": users, "n_items": 200}
    why = fastrec.explain_scores(name, labels, scores, like=tool, **options)
    theirs = why.sides[tool]
    report = fastrec.evaluate_scores(labels, scores, None, name, like=tool, **options)
    assert theirs.estimate == report.estimates[theirs.metric]
    if theirs.steps:
        assert math.fsum(theirs.steps.values()) == pytest.approx(
            theirs.estimate.mean - why.ours.estimate.mean, abs=1e-12
        )


def test_data_that_change_between_two_reads_are_refused():
    class Changing:
        n_reads = 0

        def __array__(self, dtype=None, copy=None):
            self.n_reads += 1
            return np.array([[1, 2, 3 + self.n_reads % 2]])

    with pytest.raises(fastrec.InputError, match="the data changed between two reads"):
        fastrec.explain("ndcg@3", Changing(), [[4]], like=["ranx", "rectools"])


def test_what_holds_for_all_sides_is_no_difference():
    recs, truth = some_lists(1, tied=True)
    given = {"ties": "worst", "no_truth": "zero", "no_recs": "skip", "min_gain": 2}
    why = fastrec.explain("precision@5", recs, truth, **given)
    assert not {"ties", "no_truth", "min_gain"} & set(why.differing)
    assert why.same | {"min_gain": "2", "ties": "worst", "no_truth": "zero"} == why.same
    ranx = fastrec.evaluate(recs, truth, "precision@5", like="ranx", **given)
    assert why.sides["ranx"].estimate == ranx.estimates["precision@5"]


def test_a_tool_for_which_the_data_are_undefined_has_the_reason():
    recs, truth = some_lists(1, tied=True)
    why = fastrec.explain("ndcg@5", recs, truth, like=["recbole", "ranx"])
    assert why.sides["recbole"].estimate is None and "have the same score" in why.sides["recbole"].problem
    assert why.sides["ranx"].estimate is not None and "recbole: no number: recs of user" in repr(why)


def test_a_step_that_cannot_be_had_is_part_of_the_next():
    recs, truth = some_lists(2)
    why = fastrec.explain("ndcg(ideal=truth, gain=exp2)@5", recs, truth, like="rectools")
    steps = why.sides["rectools"].steps
    assert list(steps) == ["gain", "ideal", "min_gain", "ties"] and not math.isnan(steps["gain"])


@pytest.mark.parametrize(
    ("name", "like", "ours", "theirs"),
    [
        ("ndcg@3", "rectools", "ndcg@3", "ndcg(gain=binary, ideal=k)@3"),
        ("nDCG@3", "ir_measures", "ndcg@3", "ndcg@3"),
        ("map(k=K)@3", "recommenders", "map@3", "map(denominator=n_rel, no_recs=skip)@3"),
        ("ERR@3", "ir_measures", "err(max_gain=4)@3", "err(max_gain=4)@3"),
        ("ndcg(gain=exp2)@3", "recbole", "ndcg(gain=exp2)@3", "ndcg(gain=binary)@3"),
        ("gauc@3", "torchmetrics", "limited_auc@3", "limited_auc(unseen=list_only)@3"),
        ("map@3", "cornac", "map@3", "map@3"),
    ],
)
def test_definitions(name, like, ours, theirs):
    why = fastrec.explain(name, like=like)
    assert (why.metric, why.sides[like].metric) == (ours, theirs)
    assert why.ours.estimate is None and len(why.tables()) == 1
    assert why.sides[like].version == RECIPES[like].version


def test_all_tools_that_have_the_metric():
    why = fastrec.explain("gauc")
    assert list(why.sides) == ["fastrec", "recbole", "torchmetrics"]
    assert set(why.sides) | set(why.absent) == {"fastrec", *RECIPES}
    assert why.differing == ["weight", "one_class"] and why.ours.options["one_class"] == "drop"
    assert "cannot reproduce" in why.absent["cornac"]
    assert "no such metric: trec_eval, ir_measures, ranx" in repr(why) and "has no metric" not in repr(why)
    assert "has no metric" in why.absent["trec_eval"] and "cornac: fastrec cannot reproduce" in repr(why)
    assert "of recbole" not in repr(why) and "gauc of recbole" in repr(fastrec.explain("gauc", like="recbole"))


def test_tools_that_have_the_metric_for_rows_alone():
    why = fastrec.explain("ndcg@3", [[1, 2]], [[2]])
    assert "sklearn" not in why.unknown and "sklearn: ndcg@3 of scikit-learn is a metric of scored rows" in repr(why)


def test_a_name_that_several_tools_write_differently():
    why = fastrec.explain("ndcg_cut_10", like=["trec_eval", "lenskit"])
    assert [side.name for side in why.sides.values()] == ["ndcg@10", "ndcg_cut_10", "ndcg@10"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (("ndgc@3",), {}, fastrec.MetricError, "unknown metric 'ndgc'; did you mean 'ndcg'"),
        (("ndgc@3",), {"like": "lenskit"}, fastrec.MetricError, "LensKit has no metric 'ndgc@3'; did you mean 'ndcg'"),
        (("minscalibration@3",), {"like": "rectools"}, fastrec.MetricError, "unknown.*did you mean 'miscalibration'"),
        (("auc",), {"like": "implicit"}, fastrec.MetricError, "it fills lists up to k"),
        (("ndcg@3",), {"like": ["recbole", "nix"]}, fastrec.MetricError, "like='nix' is not a tool with a recipe"),
        (("gauc",), {"like": ["recbole", "ranx"]}, fastrec.MetricError, "ranx has no metric"),
        (("ndcg@3",), {"k": 5}, fastrec.InputTypeError, "takes no argument 'k'"),
        ((["ndcg@3"],), {}, fastrec.InputTypeError, "takes one metric"),
        (("ndcg@3",), {"no_rec": "zero"}, fastrec.InputTypeError, "takes no argument 'no_rec'"),
        (
            ("ndcg@3",),
            {"like": 3},
            fastrec.InputTypeError,
            "like must be a tool such as 'trec_eval', or several, found 3",
        ),
        (("ndcg@3",), {"n_users": -1}, fastrec.InputError, "n_users must be an integer of at least 0, found -1"),
        (("ndcg@3", [[1, 1]], [[1]]), {}, fastrec.InputError, "twice"),
        (("ndcg@3", [[1]], [[1], [2]]), {}, fastrec.InputError, "users"),
    ],
)
def test_what_cannot_be_explained(arguments, options, error, match):
    with pytest.raises(error, match=match):
        fastrec.explain(*arguments, **options)


def test_data_that_can_be_read_only_once_are_an_error():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"user_id": [1, 1, 2], "item_id": [1, 2, 3]})
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError)):
        fastrec.explain("ndcg@3", table.to_reader(), table, like="ranx")


def test_frames_and_files_give_the_same(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    recs, truth = some_lists(4)
    lists = [(f"u{user}", item, score) for user, held in recs.items() for item, score in held.items()]
    held = [(f"u{user}", item, gain) for user, gains in truth.items() for item, gain in gains.items()]
    frames = [
        pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        for names, rows in ((("user_id", "item_id", "score"), lists), (("user_id", "item_id", "gain"), held))
    ]
    paths = [tmp_path / "recs.parquet", tmp_path / "truth.parquet"]
    for frame, path in zip(frames, paths, strict=True):
        pq.write_table(frame, path)
    of_frames, of_files = (
        fastrec.explain("ndcg@5", *data, like=["lenskit", "trec_eval"], n_users=3) for data in (frames, paths)
    )
    assert of_files.to_dict() == of_frames.to_dict()
    assert all(user.user.startswith("u") for user in of_files.sides["lenskit"].users)


def test_files_of_scored_rows(tmp_path):
    labels, scores, users = some_rows(6)
    log = tmp_path / "log.csv"
    lines = [f"{user},{label},{score!r}" for user, label, score in zip(users, labels, scores, strict=True)]
    log.write_text("\n".join(["user_id,label,score", *lines]))
    of_file = fastrec.explain("gauc", log, user="user_id", like="torchmetrics")
    of_arrays = fastrec.explain_scores("gauc", labels, scores, user_ids=users, like="torchmetrics")
    assert of_file.sides["torchmetrics"].estimate == of_arrays.sides["torchmetrics"].estimate


def test_notes_of_a_tool_are_indented():
    shown = repr(fastrec.explain("ndcg@3", like="rectools")).splitlines()
    at = shown.index("ndcg@3 of rectools 0.19.0 is ndcg(gain=binary, ideal=k)@3 here")
    assert len(shown) > at + 1 and all(line.startswith("  ") and line[2] != " " for line in shown[at + 1 :])


@pytest.mark.parametrize(
    ("metric", "like", "sides", "marks"),
    [
        ("auc", ["sklearn"], ["fastrec", "sklearn"], "no option differs"),
        ("arhr", None, ["fastrec"], "no other tool has it"),
    ],
)
def test_without_a_difference_the_table_has_the_names(metric, like, sides, marks):
    why = fastrec.explain(metric, like=like)
    assert why.differing == []
    table = why.tables()[0]
    assert table.title == f"{metric} in fastrec and other tools ({marks})"
    assert table.texts() == [["", "name"], *([tool, metric] for tool in sides)]
    assert any(note.startswith("the same on all sides: ") for note in table.notes)


def test_as_data_and_as_html():
    recs, truth = {"<b>ann": [1, 2]}, {"<b>ann": {2: 1.0, 3: 2.0}}
    why = fastrec.explain("ndcg@2", recs, truth, like="rectools")
    document = json.loads(why.to_json())
    assert document["schema"] == 1 and document["sides"]["rectools"]["users"][0]["user"] == "<b>ann"
    assert document["sides"]["rectools"]["estimate"]["mean"] == why.sides["rectools"].estimate.mean
    page = why._repr_html_()
    assert "&lt;b&gt;ann" in page and "<b>ann" not in page and page.count("<table>") == len(why.tables()) == 4


def test_pooled_numbers_have_no_shares():
    why = fastrec.explain("precision@5", *some_lists(7), like="implicit")
    assert why.sides["implicit"].users and all(math.isnan(user.moved) for user in why.sides["implicit"].users)
    assert "moves the mean by" not in repr(why)


def test_warnings_are_given_once(recwarn):
    fastrec.explain("ndcg@2", {1: [1]}, {2: [1]}, like=["ranx", "replay"])
    assert len(recwarn) <= 1


def test_rows_without_users_have_numbers():
    why = fastrec.explain_scores("average_precision", [1, 0, 1, 0], [0.4, 0.3, 0.2, 0.1], like="spark", n_users=3)
    theirs = why.sides["spark"]
    assert theirs.estimate.mean != why.ours.estimate.mean and theirs.users == () and theirs.n_different == 0
    assert theirs.steps == {"interpolation": theirs.estimate.mean - why.ours.estimate.mean}
    with pytest.raises(fastrec.InputError, match="gauc needs users"):
        fastrec.explain_scores("gauc", [1, 0, 1, 0], [0.4, 0.3, 0.2, 0.1])


def test_metrics_of_items_show_what_decides_them():
    lists, history = [[4, 5, 2], [3, 4, 5], [2, 3], [2], []], [[1, 2, 3], [1, 2], [1, 4], [1], []]
    why = fastrec.explain("gini@3", lists, like=["lenskit", "evidently", "warprec"], history=history, n_items=6)
    assert why.differing == ["zeros", "correction", "ties"]  # neither the truth nor its policies
    assert {tool: side.estimate.mean for tool, side in why.sides.items()} == pytest.approx(
        {"fastrec": 21 / 54, "lenskit": 21 / 54, "evidently": 1 / 9, "warprec": 21 / 45}
    )
    assert why.sides["evidently"].steps == pytest.approx({"zeros": 3 / 36 - 21 / 54, "correction": 1 / 36, "ties": 0})
    assert "evidently: the lists that matter most, of 4 with another effect on the metric" in repr(why)
    why = fastrec.explain("novelty@3", lists, like=["recommenders", "replay", "evidently"], history=history)
    assert "novelty 0" in str(why.sides["recommenders"].notes) and "item_feature" not in str(why)
    assert why.ours.options["unseen"] == "one" and why.ours.options["no_recs"] == "skip"
    assert {tool: side.options["unseen"] for tool, side in why.sides.items() if tool != "fastrec"} == {
        "recommenders": "zero",
        "replay": "one",
        "evidently": "drop",
    }
    values = [side.estimate.mean for side in why.sides.values()]
    assert values == pytest.approx([37 / 24, 2, 0.625, 1.5])
    every = fastrec.explain("novelty@3", lists, like="replay", history=history, no_recs="zero")
    assert every.same["no_recs"] == "zero" and every.ours.estimate.mean == pytest.approx(37 / 24 * 4 / 5)


def test_a_metric_that_reads_the_truth_only_in_one_tool():
    shop = {item: {"category": label} for item, label in zip(range(1, 7), "ABACBC", strict=True)}
    why = fastrec.explain("category_coverage@3", [[4, 5, 2], [2]], [[4], [1]], like="elliot", items=shop)
    assert why.differing == ["relevance", "ties"] and "no_truth" not in why.ours.options
    assert why.sides["elliot"].steps == pytest.approx({"relevance": 1 / 6 - 1 / 2, "ties": 0})


def test_notes_are_about_the_metric():
    notes = fastrec.explain("serendipity@3", like="recommenders").sides["recommenders"].notes
    assert "item_feature_vector" in notes[0] and not any("ndcg" in note or "score_type" in note for note in notes)
    assert "score_type" in str(fastrec.explain("ndcg@3", like="recommenders").sides["recommenders"].notes)
    names = {name for recipe in RECIPES.values() for key in recipe.notes_of for name in key.split()}
    assert names <= {metric["name"] for metric in fastrec.catalogue()}
