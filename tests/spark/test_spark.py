"""Evaluation of Spark data frames in a real session on this machine, against the same evaluation without Spark."""

import contextlib
import datetime as dt
import json
import math
import os
import re
import shutil
import subprocess
import sys
import types
import venv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrec
import fastrec.spark
from fastrec.clusters import spark
from fastrec.clusters.job import Job, states_of_rows, without_rows
from fastrec.evaluation.lists import ListEvaluation
from support.documents import DOCS, programs
from support.spark import MARKS, as_lists, assert_same, having, make_lists

ROOT = Path(__file__).parents[2]
pytestmark = MARKS
cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="no PySpark: pip install 'fastrec-eval[spark]'")
pyspark = pytest.importorskip("pyspark", reason="no PySpark: pip install 'fastrec-eval[spark]'")
functions = pytest.importorskip("pyspark.sql.functions")

LISTS = ["ndcg", "ndcg(gain=exp2)", "recall", "precision", "map", "mrr", "hit_rate", "rbp(p=0.8)"]
ROWS = ["gauc", "auc", "average_precision", "ks", "ndcg@5", "log_loss", "calibration", "brier"]
ROWS += ["auc(min_fpr=0.1)", "eer", "precision_at_recall(at=0.9)", "ece(norm=l2)", "g_mean(threshold=0.5)", "r2"]
ROWS += ["xauc", "xauc(average=user)"]


def make_log(n_users=60, seed=0):
    """Return a log with one to hundreds of rows per user, in the order in which Spark's route adds them up."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), np.ceil(400 / (1 + np.arange(n_users))).astype(int))
    n = len(users)
    log = pa.table(
        {
            "user_id": users,
            "label": (rng.random(n) < 0.3).astype(np.int32),
            "score": (rng.integers(0, 1000, n) / 1000).astype(np.float32),
            "device": np.array(["phone", "tv"])[users % 2],
            "weight": rng.integers(1, 9, n) / 8,
            "item_id": rng.integers(0, 10**6, n),
        }
    )
    return log.sort_by([("score", "ascending"), ("label", "ascending"), ("weight", "ascending")])


def pass_once(log, metrics, *, per_user=False, min_gain=None, **columns):
    """Return the report of rows that pass once, as on a cluster: intervals of auc take rows as independent."""
    evaluator = fastrec.ScoreEvaluator(metrics, per_user=per_user, min_gain=min_gain)
    evaluator.update(log, **columns)
    return evaluator.result()


@pytest.mark.thorough(except_for="^7$")
@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_lists_have_the_same_bits_in_any_number_of_partitions(on_spark, n_partitions):
    (recs, truth), (seen, _) = make_lists(texts=n_partitions == 1), make_lists(texts=n_partitions == 1, seed=1)
    options = {"k": [1, 5, 20], "by": "plan", "user_weight": "weight"}
    wanted = fastrec.evaluate(recs, truth, LISTS, exclude=seen, **options)
    options |= {"n_partitions": n_partitions, "exclude": on_spark(seen)}
    report = fastrec.spark.evaluate(on_spark(recs, 5), on_spark(truth, 4), LISTS, **options)
    assert_same(report, wanted)


def test_segments_of_rows_have_the_bits_of_one_machine(on_spark):
    log = make_log()
    draw = np.random.default_rng(7)
    columns = {
        "place": pa.array(draw.integers(1, 5, len(log))),
        "shop": pa.array(draw.choice(["a", "b"], len(log)), mask=draw.random(len(log)) < 0.3),
        "paid": pa.array(draw.random(len(log)) < 0.5),
    }
    for name, values in columns.items():
        log = log.append_column(name, values)
    options = {"row_by": list(columns), "by": "device"}
    report = fastrec.spark.evaluate_scores(on_spark(log, 5), ROWS, **options, n_partitions=7)
    assert_same(report, pass_once(log, ROWS, **options))
    assert list(report.groups["place"]) == [1, 2, 3, 4] and list(report.groups["shop"]) == ["a", "b"]
    assert report.data["rows_in_no_segment(shop)"] == log["shop"].null_count > 0


@pytest.mark.thorough
def test_what_is_evaluated_unless_metrics_are_named(on_spark):
    log = make_log()
    for own in (log, log.drop_columns("user_id")):
        assert list(fastrec.spark.evaluate_scores(on_spark(own, 3))) == list(fastrec.evaluate_scores(own))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "labels", [[True, False, None, True], [dt.date(2024, 1, 2), None, None, dt.date(2024, 1, 3)], [4, None, 30, 5]]
)
def test_labels_of_users_are_those_of_frames(on_spark, labels):
    recs = pa.table({"user_id": [1, 2, 3, 4], "item_id": [5, 6, 7, 8], "rank": [1, 1, 1, 1]})
    truth = pa.table({"user_id": [1, 2, 3, 4], "item_id": [5, 6, 9, 8], "own": labels})
    report = fastrec.spark.evaluate(on_spark(recs, 2), on_spark(truth, 3), "mrr", by="own")
    assert_same(report, fastrec.evaluate(recs, truth, "mrr", by="own"))


@pytest.mark.parametrize("source", ["truth", "frame", "ranks", "items"])
def test_propensities(on_spark, source):
    recs, truth = make_lists()
    truth, draw = truth.select(["user_id", "item_id"]), np.random.default_rng(3)
    items, n = np.unique(truth["item_id"].to_numpy()), len(truth)
    logged = truth.append_column("propensity", pa.array(0.05 + 0.9 * draw.random(n)))
    logged = logged.append_column("logged_rank", pa.array(draw.integers(1, 4, n)))
    call = {
        "truth": {"truth": logged, "logged": "truth"},
        "frame": {"truth": truth, "logged": logged},
        "ranks": {"truth": logged, "logged": "truth", "logged_rank": "logged_rank", "examination": [1.0, 0.5, 0.25]},
        "items": {"truth": truth, "items": {"item_id": items, "propensity": 0.1 + 0.9 * draw.random(len(items))}},
    }[source]
    metrics = ["ips@5", "snips(of=dcg, clip=0.3)@5"]
    wanted = fastrec.evaluate(recs, metrics=metrics, **call)
    frames = {name: on_spark(side) if isinstance(side, pa.Table) else side for name, side in call.items()}
    report = fastrec.spark.evaluate(on_spark(recs), metrics=metrics, **frames)
    assert report.estimates == wanted.estimates and report.data == wanted.data
    assert report.data["effective_sample_size(clip=0)"] > 1


def test_subtopics(on_spark):
    """Every user is whole in one task, so greedy ideals have the same order."""
    recs, truth = make_lists()
    draw = np.random.default_rng(4)
    rows = pa.concat_tables([side.select(["user_id", "item_id"]) for side in (truth, truth, recs)])
    rows = rows.append_column("topic", pa.array(draw.integers(0, 4, len(rows)))).take(draw.permutation(len(rows)))
    call = {"metrics": ["alpha_ndcg@5", "err_ia@5", "nnrbp", "strecall@5", "map_ia", "ndcg@5"], "subtopic": "topic"}
    wanted = fastrec.evaluate(recs, truth, subtopics=rows, by="plan", **call)
    found = fastrec.spark.evaluate(on_spark(recs), on_spark(truth), subtopics=on_spark(rows), by="plan", **call)
    assert_same(found, wanted)
    assert 0 < found["alpha_dcg(denominator=ideal)@5"] < 1
    judged = rows.append_column("gain", pa.array(np.arange(len(rows)) % 3))
    with pytest.raises(fastrec.InputError, match="subtopics column 'gain' must be above 0 in all rows, found 0"):
        fastrec.spark.evaluate(on_spark(recs), on_spark(truth), subtopics=on_spark(judged), **call)


ITEM_METRICS = [
    *("item_coverage", "gini", "shannon_entropy", "personalization", "novelty", "popularity_lift", "aplt", "rsp"),
    *("repeat_ratio", "overlap", "miscalibration", "category_entropy", "intra_list_diversity", "serendipity", "reo"),
]


@pytest.mark.parametrize("texts", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_metrics_of_items(on_spark, texts):
    """The popularity is that of the whole history, with users of other partitions and users without a list.

    Standard errors of metrics of exposure need the lists a second time, which Spark does not read.
    """
    recs, truth = make_lists(texts=texts)
    history, reference = (make_lists(130, texts=texts, seed=seed)[0] for seed in (1, 2))
    draw = np.random.default_rng(7)
    shop = pa.table(
        {
            "item_id": [f"item {item}" for item in range(80)] if texts else np.arange(80),
            "category": draw.choice(["a", "b", "c"], 80),
            "features": draw.random((80, 3)).tolist(),
        }
    )
    sides = {"recs": recs, "truth": truth, "history": history, "reference": reference}
    options = {"metrics": ITEM_METRICS, "k": 5, "by": "plan", "exclude": "history"}
    wanted = fastrec.evaluate(**sides, items=shop, **options)
    assert wanted.data["excluded_items"] > 0
    items = shop.to_pydict() if texts else on_spark(shop)
    found = fastrec.spark.evaluate(**{name: on_spark(side) for name, side in sides.items()}, items=items, **options)
    assert found.settings["exclude"] == "history"
    for name, ours in wanted.estimates.items():
        theirs = found.estimates[name]
        assert (ours.mean, ours.users) == (theirs.mean, theirs.users), name
        assert ours.std_error == theirs.std_error or np.isnan(theirs.std_error), name
    for label, own in wanted.groups["plan"].items():
        assert [own[name].mean for name in own] == [found.groups["plan"][label][name].mean for name in own]
    assert found.data == wanted.data | {"rec_rows_by_place": found.data["rec_rows_by_place"]}


@pytest.mark.thorough
@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True)])
def test_columns_of_lists(session, sides):
    recs, truth = make_lists()
    given = [as_lists(side) if lists else side for side, lists in zip((recs, truth), sides, strict=True)]
    frames = [session.createDataFrame(side) for side in given]
    wanted = fastrec.evaluate(*given, LISTS, k=10)
    assert_same(fastrec.spark.evaluate(*frames, LISTS, k=10, n_partitions=4), wanted)
    rated = frames[1].withColumnRenamed("gain", "rating")
    with pytest.warns(fastrec.FastrecWarning, match="truth has an unused column 'rating'"):
        fastrec.spark.evaluate(frames[0], rated, LISTS)


@pytest.mark.thorough
def test_options_reach_the_tasks(on_spark):
    recs, truth = make_lists()
    twice = pa.concat_tables([recs, having(recs, rank=np.arange(len(recs)) + 100)])
    options = {"duplicates": "miss", "no_recs": "skip", "no_truth": "zero", "min_gain": 2.0}
    options |= {"n_items": 500, "n_threads": 2, "k": iter([3, 5])}
    report = fastrec.spark.evaluate(on_spark(twice), on_spark(truth), ["limited_auc@5", "ndcg"], **options)
    wanted = fastrec.evaluate(twice, truth, ["limited_auc@5", "ndcg"], **(options | {"k": [3, 5]}))
    assert wanted.data["duplicates_in_recs"] == len(recs)
    assert_same(report, wanted)


@pytest.mark.thorough
def test_values_of_users_are_a_data_frame(on_spark):
    recs, truth = make_lists(texts=True)
    report = fastrec.spark.evaluate(on_spark(recs), on_spark(truth), LISTS, k=5, per_user=True)
    wanted = fastrec.evaluate(recs, truth, LISTS, k=5, per_user=True)
    assert_same(report, wanted)
    found = report.per_user.toArrow().sort_by("user_id")
    assert found.column_names == ["user_id", *wanted.per_user]
    assert found.column("user_id").to_pylist() == wanted.user_ids.tolist()
    for name, values in wanted.per_user.items():
        np.testing.assert_array_equal(found.column(name).to_numpy(), values)
        assert found.column(name).null_count == np.isnan(values).sum()


def test_values_of_users_are_there_only_if_they_were_asked_for(on_spark):
    report = fastrec.spark.evaluate(*map(on_spark, make_lists(20)), "mrr")
    assert not report.has_values and report.user_ids is None
    with pytest.raises(fastrec.InputError, match="per_user=True"):
        _ = report.per_user


@pytest.mark.thorough
def test_warnings_of_tasks_are_in_the_report(session, tmp_path):
    """Ranks with gaps, of users in several partitions: each list counts, and the warning names the first user."""
    recs = pa.table({"user_id": [5, 5, 4, 4, 3, 3], "item_id": [1, 2, 1, 2, 1, 2], "rank": [1, 3, 1, 2, 2, 3]})
    truth = pa.table({"user_id": [5, 4, 3], "item_id": [2, 2, 1]})
    with pytest.warns(fastrec.FastrecWarning, match="2 lists, e.g. of user 3: 2, 3"):
        local = fastrec.evaluate(recs, truth, "mrr")
    with pytest.warns(fastrec.FastrecWarning, match="2 lists, e.g. of user 3: 2, 3"):
        report = fastrec.spark.evaluate(*map(session.createDataFrame, (recs, truth)), "mrr", n_partitions=3)
    assert report.warnings == local.warnings and report.to_dict() == local.to_dict()
    report.save(tmp_path / "report")
    assert fastrec.load(tmp_path / "report").warnings == local.warnings


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the (truth|input) has no rows")
def test_empty_partitions_and_empty_frames(session, on_spark):
    recs, truth = make_lists(3)
    report = fastrec.spark.evaluate(on_spark(recs, 9), on_spark(truth, 9), "mrr", n_partitions=20)
    assert_same(report, fastrec.evaluate(recs, truth, "mrr"))
    nobody = recs.schema.empty_table(), truth.schema.empty_table()
    report = fastrec.spark.evaluate(*map(session.createDataFrame, nobody), "mrr")
    assert math.isnan(report["mrr"]) and report.users == fastrec.evaluate(*nobody, "mrr").users
    log = make_log(4)
    report = fastrec.spark.evaluate_scores(session.createDataFrame(log.schema.empty_table()), ROWS)
    assert report.to_dict() == pass_once(log.schema.empty_table(), ROWS).to_dict()


@pytest.mark.thorough
def test_tasks_that_fail_once_change_nothing(session, on_spark):
    assert session.conf.get("spark.speculation") == "true"

    def fail_once(batches):
        for batch in batches:
            yield batch
            if pyspark.TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("this task fails once")

    recs, truth = make_lists()
    frames = [on_spark(side) for side in (recs, truth)]
    failing = [frame.mapInArrow(fail_once, frame.schema) for frame in frames]
    assert_same(fastrec.spark.evaluate(*failing, LISTS, k=5), fastrec.evaluate(recs, truth, LISTS, k=5))


@pytest.mark.thorough
def test_users_of_several_columns_and_weights_of_rows(on_spark):
    log = make_log()
    metrics = ["gauc", "log_loss", "calibration"]
    names = {"user": ["user_id", "device"], "sample_weight": "weight"}
    report = fastrec.spark.evaluate_scores(on_spark(log), metrics, per_user=True, **names)
    wanted = pass_once(log, metrics, per_user=True, **names)
    assert_same(report, wanted)
    found = report.per_user.toArrow().sort_by([("user_id", "ascending"), ("device", "ascending")])
    users = zip(*(found.column(name).to_pylist() for name in names["user"]), strict=True)
    assert list(users) == wanted.user_ids.tolist()
    np.testing.assert_array_equal(found.column("gauc").to_numpy(), wanted.per_user["gauc"])


def test_rows_without_users(on_spark):
    log = make_log().select(["label", "score"])
    metrics = ["auc", "auc(max_fpr=0.1)", "average_precision", "ks", "log_loss", "brier", "accuracy(threshold=0.5)"]
    metrics += ["auc(min_tpr=0.4, scale=width)", "log_auc", "eer", "recall_at_precision(at=0.5)", "ece(norm=max)"]
    metrics += ["xauc", "cohen_kappa(threshold=0.5)"]
    wanted = fastrec.evaluate_scores(log, metrics=metrics)
    reports = [fastrec.spark.evaluate_scores(on_spark(log, n, seed=n), metrics) for n in (1, 5)]
    assert reports[0].to_dict() == reports[1].to_dict()
    for name in metrics:
        # sums of numbers are exact here, and nearly so on Spark
        exact = name.partition("(")[0] not in ("log_loss", "brier")
        assert reports[0][name] == (wanted[name] if exact else pytest.approx(wanted[name], rel=1e-14))
    assert reports[0].users == wanted.users and reports[0].data == wanted.data


@pytest.mark.thorough
def test_a_log_with_columns_of_lists_and_grades(session):
    log = make_log().append_column("stars", pa.array(np.random.default_rng(5).integers(0, 5, len(make_log()))))
    lists = as_lists(log)
    options = {"label": "stars", "min_gain": 3, "metrics": ["auc", "auc(min_gain=4)", "gauc", "ndcg@5"]}
    report = fastrec.spark.evaluate_scores(session.createDataFrame(lists), **options)
    assert_same(report, pass_once(lists, **options))


def test_ids_decide_between_equal_scores(on_spark):
    log = make_log()
    report = fastrec.spark.evaluate_scores(on_spark(log), ["ndcg@3", "mrr"], ties="id_asc")
    assert_same(report, fastrec.evaluate_scores(log, metrics=["ndcg@3", "mrr"], ties="id_asc"))


@pytest.mark.thorough
def test_the_bounded_auc(on_spark):
    log = make_log()
    found = fastrec.spark.bounded_auc(on_spark(log), bits=16)
    assert found == fastrec.bounded_auc(log["label"].to_numpy(), log["score"].to_numpy(), bits=16)
    assert found.bound > 0
    with pytest.raises(fastrec.InputError, match="labels must be 0 or 1"):
        fastrec.spark.bounded_auc(on_spark(log), label="user_id")


WRONG_LISTS = {
    "an item twice": (lambda recs: pa.concat_tables([recs, having(recs.slice(0, 1), rank=[99])]), {}),
    "a rank twice": (lambda recs: having(recs, rank=[1] * len(recs)), {}),
    "a null": (lambda recs: having(recs, weight=[None, *recs["weight"].to_pylist()[1:]]), {"user_weight": "weight"}),
    "floats for users": (lambda recs: having(recs, user_id=recs["user_id"].cast(pa.float64())), {}),
    "texts for items": (lambda recs: having(recs, item_id=recs["item_id"].cast(pa.string())), {}),
    "no such column": (lambda recs: recs.rename_columns({"user_id": "userid"}), {}),
    "groups that differ": (lambda recs: having(recs, plan=range(len(recs))), {"by": "plan"}),
    "a user without a list": (lambda recs: recs, {"no_recs": "error"}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", WRONG_LISTS)
def test_errors_are_those_of_the_local_evaluation(session, wrong):
    recs, truth = make_lists(1 + 10)
    spoil, options = WRONG_LISTS[wrong]
    recs = spoil(recs)
    with pytest.raises(fastrec.FastrecError) as local:
        fastrec.evaluate(recs, truth, **options)
    with pytest.raises(fastrec.FastrecError) as found:
        fastrec.spark.evaluate(*map(session.createDataFrame, (recs, truth)), **options, n_partitions=1)
    assert type(found.value) is type(local.value)
    # the error may name any of the wrong users
    wanted = without_rows(local.value)["message"]
    messages = [re.sub(r"user \d+", "user N", message) for message in (str(found.value), wanted)]
    assert messages[0] == messages[1]
    assert not any(part in messages[0] for part in ("Traceback", "row ", "counted from"))


CANNOT_BE_HAD = {
    "recs must be a Spark data frame, found a dict": {"recs": {}},
    "^recs .* ranks or scores, as Spark rows": {"recs": "ranked"},
    "^reference .* ranks or scores, as Spark rows": {"reference": "ranked"},
    "history must be a Spark data frame, found a dict": {"history": {}},
    "item ids must be of one type .* found recs: integers, truth: integers, items: str": {"items": {"item_id": ["a"]}},
    "ties='input' needs columns of lists": {"ties": "input"},
    "n_partitions must be from 1": {"n_partitions": 0},
    "n_partitions must be an integer": {"n_partitions": 1.5},
}


@pytest.mark.thorough
def test_what_cannot_be_had_is_an_error(on_spark):
    recs, truth = map(on_spark, make_lists(5))
    for message, given in CANNOT_BE_HAD.items():
        call = {name: recs.drop("rank") if value == "ranked" else value for name, value in given.items()}
        with pytest.raises(fastrec.FastrecError, match=message):
            fastrec.spark.evaluate(**{"recs": recs, "truth": truth} | call)
    log = on_spark(make_log(5))
    with pytest.raises(fastrec.MetricError, match="auc: with weights"):
        fastrec.spark.evaluate_scores(log, ["auc", "gauc"], sample_weight="weight")
    with pytest.raises(fastrec.InputError, match="ties='input' needs"):
        fastrec.spark.evaluate_scores(log, "ndcg@3", ties="input")
    with pytest.raises(fastrec.InputError, match="labels must be 0 or 1"):
        fastrec.spark.evaluate_scores(log, "gauc", label="user_id")


@pytest.mark.thorough
def test_batches_end_by_rows_while_spark_evaluates_and_the_limit_is_put_back(session):
    conf = session.conf
    default = conf.get(spark.BATCH_LIMIT)
    for before in (default, "1000"):
        with spark.batches_by_rows(session):
            with contextlib.suppress(ZeroDivisionError), spark.batches_by_rows(session):
                1 / 0  # noqa: B018
            assert conf.get(spark.BATCH_LIMIT) == spark.NO_LIMIT, "another evaluation still goes without"
        assert conf.get(spark.BATCH_LIMIT) == before
        conf.set(spark.BATCH_LIMIT, "1000")
    conf.set(spark.BATCH_ROWS, "0")
    with spark.batches_by_rows(session):
        assert conf.get(spark.BATCH_LIMIT) == "1000", "nothing else ends a batch"
    conf.set(spark.BATCH_ROWS, "500")
    conf.unset(spark.BATCH_LIMIT)


def test_threads_are_those_of_the_task(monkeypatch):
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: types.SimpleNamespace(cpus=lambda: 3))
    job = Job(ListEvaluation, {}, {}, ("user_id",), None)
    found = []
    for own in (job, job._replace(n_threads=2)):
        spark._in_task(own, lambda given, _: found.append(given.start().n_threads))([])
    assert found == [3, 2]


def test_code_is_kept_on_the_node(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk1/app,/disk2/app")
    monkeypatch.delenv("FASTREC_CACHE_DIR", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    spark.keep_code_on_this_node()
    assert os.environ["FASTREC_CACHE_DIR"] == "/disk1/app"
    monkeypatch.setenv("FASTREC_CACHE_DIR", "/named")
    spark.keep_code_on_this_node()
    assert os.environ["FASTREC_CACHE_DIR"] == "/named"


@pytest.mark.filterwarnings("ignore:.*copy keyword is deprecated")  # PySpark calls pandas 3 so
@pytest.mark.parametrize("get", ["collect", "toArrow", "toPandas"])
def test_what_the_driver_gets_goes_straight_in(session, get):
    recs, truth = make_lists()
    frames = [session.createDataFrame(side) for side in (recs, truth)]
    report = fastrec.evaluate(*(getattr(frame, get)() for frame in frames), LISTS, k=5)
    assert_same(report, fastrec.evaluate(recs, truth, LISTS, k=5))


def test_versions_that_differ_are_told_apart():
    (batch,) = Job(ListEvaluation, {}, {}, ("user_id",), None, version="0.0.9").states([])
    with pytest.raises(fastrec.InputError, match=r"^the driver has fastrec 0\.0\.9, but an executor has "):
        list(states_of_rows(batch.to_pylist()))


@pytest.mark.thorough
def test_a_submitted_job(environment, tmp_path):
    """The job ships the library in another version than the installed one."""
    shutil.copytree(ROOT / "fastrec", tmp_path / "shipped/fastrec", ignore=shutil.ignore_patterns("__pycache__"))
    version = tmp_path / "shipped/fastrec/_version.py"
    version.write_text(version.read_text().replace(fastrec.__version__, f"{fastrec.__version__}+shipped"))
    shipped = shutil.make_archive(tmp_path / "fastrec", "zip", tmp_path / "shipped")
    recs, truth = make_lists(40)
    for name, table in (("recs", recs), ("truth", truth)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    settings = ["spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1", "spark.driver.host=127.0.0.1"]
    submit = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]", "--py-files", shipped]
    submit += [part for setting in (*settings, f"spark.local.dir={tmp_path}") for part in ("--conf", setting)]
    job = [ROOT / "examples/spark_job.py", *(tmp_path / name for name in ("recs.parquet", "truth.parquet", "out.json"))]
    command = [*map(str, submit), *map(str, job), "--metrics", *LISTS]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    wanted = fastrec.evaluate(recs, truth, LISTS).to_dict()
    # the version shows that the driver ran the shipped library; a task with another version would have raised
    assert json.loads((tmp_path / "out.json").read_text()) == wanted | {"fastrec": f"{fastrec.__version__}+shipped"}


LACKING = """
from pyspark.sql import SparkSession
import fastrec
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.createDataFrame([(1, 5, 1)], ["user_id", "item_id", "rank"])
fastrec.spark.evaluate(rows, rows.drop("rank"), "mrr")
"""


@pytest.mark.thorough
def test_workers_that_lack_a_package_are_named_in_one_line(environment, tmp_path):
    venv.create(tmp_path / "bare", symlinks=True)
    variables = {"PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    variables |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LACKING]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | variables, cwd=tmp_path)
    *_, last = run.stderr.splitlines()
    assert run.returncode == 1
    assert last.startswith(
        "fastrec.exceptions.MissingExtraError: the Python of Spark's workers has no numpy: on every node"
    )


# Clicks by rank


def impressions_of(seed: int, n: int = 500) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    ranks = rng.integers(1, 6, n)
    return {
        "click": (rng.random(n) < 0.7 / ranks).astype(int).tolist(),
        "the rank": ranks.tolist(),
        "q": [f"é{number}" for number in rng.integers(0, 9, n)],
        "i": rng.integers(0, 6, n).tolist(),
        "user_id": rng.integers(0, 60, n).tolist(),
        "device": [None if number == 2 else ["app", "web"][number] for number in rng.integers(0, 3, n)],
        "day": rng.integers(-3, 3, n).tolist(),
    }


def test_clicks_by_rank_and_position_bias_have_the_bits_of_one_machine(session):
    table = pa.table(impressions_of(3))
    log = session.createDataFrame(table).repartition(4)
    named = {"label": "click", "rank": "the rank"}
    for more in ({"row_by": ["device", "day"]}, {"user": ["user_id", "q"], "level": 0.5}):
        found = fastrec.spark.ctr_by_rank(log, **named, **more)
        assert found.to_json() == fastrec.ctr_by_rank(table, **named, **more).to_json()
    plain = fastrec.spark.ctr_by_rank(log.drop("user_id"), **named, row_by="day")
    assert plain.to_json() == fastrec.ctr_by_rank(table.drop_columns("user_id"), **named, row_by="day").to_json()
    assert plain.users is None
    for method in ("ctr", "pivot", "adjacent", "em"):
        keys = {"query": "q", "item": "i", "method": method, "n_samples": 20}
        found = fastrec.spark.position_bias(log, **named, **keys)
        assert found.to_json() == fastrec.position_bias(table, **named, **keys).to_json()


def test_wrong_impressions_are_errors(session):
    log = session.createDataFrame(pa.table(impressions_of(3, 20)))
    named = {"label": "click", "rank": "the rank"}
    for options, message in (
        ({"label": "the rank", "rank": "the rank"}, "log column 'the rank' must be 0 or 1, found "),
        ({"label": "click", "rank": "day"}, "log column 'day' must be integers from 1 to 1,000,000, found "),
        ({"label": "clicked"}, "log has no column 'clicked' (did you mean 'click'?)"),
        ({**named, "user": "device"}, "log column 'device' must not be null, found null"),
    ):
        with pytest.raises(fastrec.InputError, match=re.escape(message)):
            fastrec.spark.ctr_by_rank(log, **options)
    halves = log.withColumn("half", functions.col("i") / 2)
    with pytest.raises(fastrec.InputTypeError, match="log column 'half' must hold integers or strings"):
        fastrec.spark.position_bias(halves, **named, query="half", item="i")
    with pytest.raises(fastrec.InputError, match="method must be one of"):
        fastrec.spark.position_bias(log, **named, query="q", item="i", method="guess")


POLICY = ["ips", "snips", "sips", "iips", "rips", "snsips", "sniips", "snrips", "dr", "cascade_dr"]


def make_slates(seed=0):
    rng = np.random.default_rng(seed)
    slates = np.repeat(np.arange(90), rng.integers(1, 5, 90))
    ranks = np.arange(len(slates)) - np.searchsorted(slates, slates) + 1
    columns = {"slate_id": [f"s{slate}" for slate in slates], "rank": ranks}
    numbers = {name: rng.uniform(0.2, 1, len(slates)) for name in ("reward", "pscore", "new_pscore", "q", "q_new")}
    return pa.table(columns | numbers)


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("n_partitions", [None, 1, 5])
def test_values_of_a_policy_have_the_bits_of_one_machine(on_spark, n_partitions):
    log = make_slates()
    users = [int(name[1:]) % 11 for name in log["slate_id"].to_pylist()]
    of_users = log.append_column("user_id", pa.array(users)).append_column("other", log["q"])
    for own, options in (
        (log, {"estimator": POLICY, "predictions": ("q", "q_new"), "clip": 2.5}),
        (of_users, {"estimator": POLICY[:-2], "baseline_pscore": "other"}),
        (log.drop_columns(["slate_id", "rank"]), {"estimator": "snips"}),
    ):
        found = fastrec.spark.policy_value(on_spark(own), **options, n_partitions=n_partitions)
        assert found.to_dict() == fastrec.policy_value(own, **options).to_dict()
        none = fastrec.spark.policy_value(on_spark(own).limit(0), **options)
        assert all(math.isnan(one.value) for one in ([none] if options["estimator"] == "snips" else none.values()))


def test_faults_of_logs_of_slates(on_spark):
    log = make_slates()
    with pytest.raises(fastrec.InputError, match="log needs a column of ranks, as Spark rows have no order"):
        fastrec.spark.policy_value(on_spark(log.drop_columns(["rank"])))
    with pytest.raises(fastrec.InputError, match="log has no column 'p'"):
        fastrec.spark.policy_value(on_spark(log), pscore="p")
    with pytest.raises(fastrec.InputTypeError, match="column 'slate_id' must hold numbers"):
        fastrec.spark.policy_value(on_spark(log), reward="slate_id")
    zero = log.set_column(3, "pscore", pa.array(np.where(np.arange(len(log)) == 7, 0.0, 0.5)))
    with pytest.raises(fastrec.InputError, match=r"column 'pscore' must be a probability above 0.*found 0 .slate 's"):
        fastrec.spark.policy_value(on_spark(zero))


def test_the_program_of_the_documentation(on_spark, tmp_path):
    program, of_files = programs(DOCS / "guides" / "spark.md")
    recs, truth = make_lists()
    log = make_log()
    log = log.rename_columns([{"label": "clicked", "device": "session"}.get(name, name) for name in log.column_names])
    names = {"recs": on_spark(recs), "truth": on_spark(truth), "log": on_spark(log), "folder": tmp_path}
    exec(program, names)
    wanted = fastrec.evaluate_scores(log, metrics="gauc", user=["user_id", "session"], label="clicked")
    assert names["report"]["gauc"] == wanted["gauc"]
    assert list(tmp_path.glob("values/*.parquet"))
    exec(of_files, names)
    assert_same(names["report"], fastrec.evaluate(recs, truth, ["ndcg@10", "recall@20"]))
