"""Answers of Spark: `pyspark.mllib.evaluation`, in a session on this machine.

A row of `RankingMetrics` is (list, relevant items) of a user, or (list, judged items, their grades). Rows are made of
the users who have a list, even an empty one; users without a list are in no row, as after a join, but at the edges,
where they have an empty one. Ids are 64-bit integers. Grade 0 is left out of the relevant items, and passed with
grades. Python's `RankingMetrics` takes grades but does not pass them on, so that of Java gets them too. There the order
of the judged items matters: they come in the order of the truth, and again by descending grade.

Each number is a job of some 50 ms, mostly waiting, so two cases run at a time, and grades only if there are any.
"""

import contextlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.pop(0)  # this folder, with files named like the tools

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.mllib.evaluation import BinaryClassificationMetrics, MulticlassMetrics, RankingMetrics, RegressionMetrics
from pyspark.sql import SparkSession

AT_ONCE = 2
GRADED_KINDS = ("graded", "tied", "grade_zero", "judged_alone", "judged_empty", "real")
THRESHOLD = 0.5
CLASSES = (BinaryClassificationMetrics, MulticlassMetrics, RankingMetrics, RegressionMetrics)


def session():
    """Return a quiet session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{AT_ONCE}]").appName("rivals")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": "true",  # half as long a job
    }.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate().sparkContext
    found.setLogLevel("OFF")
    return found


def ask_lists(sc, case):
    """Return rankings of the users with a list."""
    users = [(user, [item for item, _ in recs]) for user, recs in case["recs"].items()]
    if case["kind"] == "outside":
        users += [(user, []) for user in case["truth"] if user not in case["recs"]]
    relevant = [
        (items, [int(item) for item, grade in case["truth"].get(user, {}).items() if grade > 0])
        for user, items in users
    ]
    call = RankingMetrics(sc.parallelize(relevant, 1))
    values = {"map": call.meanAveragePrecision}
    for k in case["ks"]:
        values[f"precision@{k}"] = call.precisionAt(k)
        values[f"recall@{k}"] = call.recallAt(k)
        values[f"map@{k}"] = call.meanAveragePrecisionAt(k)
        values[f"ndcg@{k}"] = call.ndcgAt(k)
    if case["kind"] in GRADED_KINDS:
        grades = [list(case["truth"].get(user, {}).items()) for user, _ in users]
        ordered = [sorted(pairs, key=lambda pair: -pair[1]) for pairs in grades]
        values.update(ask_python(sc, case, with_grades(users, grades)))
        values.update(ask_java(sc, case, with_grades(users, grades), "relevance"))
        values.update(ask_java(sc, case, with_grades(users, ordered), "relevance, descending"))
    return values


def with_grades(users, grades):
    """Return rows of (list, judged items, their grades)."""
    return [
        (items, [int(item) for item, _ in pairs], [float(grade) for _, grade in pairs])
        for (_, items), pairs in zip(users, grades, strict=True)
    ]


def ask_python(sc, case, rows):
    """Evaluate grades in Python, at one cut-off: it accepts them, and does not use them."""
    call, k = RankingMetrics(sc.parallelize(rows, 1)), case["ks"][1]
    return {
        f"ndcg(python, relevance)@{k}": call.ndcgAt(k),
        f"precision(python, relevance)@{k}": call.precisionAt(k),
        f"recall(python, relevance)@{k}": call.recallAt(k),
        f"map(python, relevance)@{k}": call.meanAveragePrecisionAt(k),
    }


def ask_java(sc, case, rows, name):
    """Evaluate grades in `RankingMetrics.of`: gains are 2^grade - 1, also in the ideal, in the order of the row."""
    java = sc._jvm

    def java_list(values):
        found = java.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    tuples = java_list(java.scala.Tuple3(*map(java_list, row)) for row in rows)
    call = java.org.apache.spark.mllib.evaluation.RankingMetrics.of(sc._jsc.parallelize(tuples, 1))
    return {f"ndcg({name})@{k}": call.ndcgAt(k) for k in case["ks"]}


def ask_rows(sc, case):
    """Return rating errors and, if labels are 0 and 1, classification; with and without weights."""
    labels, scores = map(float, case["labels"]), case["scores"]
    pairs = list(zip(scores, labels, strict=True))
    weighted = [(*pair, weight) for pair, weight in zip(pairs, case["weights"], strict=True)]
    values = {}
    for rows, name in ((pairs, ""), (weighted, "weighted ")):
        errors = RegressionMetrics(sc.parallelize(rows, 1))
        values[f"{name}mae"] = errors.meanAbsoluteError
        values[f"{name}mse"] = errors.meanSquaredError
        values[f"{name}rmse"] = errors.rootMeanSquaredError
        if case["kind"] == "graded_rows":
            continue
        curve = BinaryClassificationMetrics(sc.parallelize(rows, 1))
        values[f"{name}auc"] = curve.areaUnderROC
        values[f"{name}average_precision"] = curve.areaUnderPR
        values.update({name + metric: value for metric, value in classification(sc, rows).items()})
    return values


def classification(sc, rows):
    """Predict class 1 from a threshold on: Spark takes predicted classes, and probabilities for the log loss."""
    full = [
        (float(score >= THRESHOLD), label, *(weight or [1.0]), [1 - score, score]) for score, label, *weight in rows
    ]
    classes = MulticlassMetrics(sc.parallelize(full, 1))
    return {
        f"accuracy(threshold={THRESHOLD})": classes.accuracy,
        f"precision(threshold={THRESHOLD})": value_or_error(classes.precision, 1.0),
        f"recall(threshold={THRESHOLD})": value_or_error(classes.recall, 1.0),
        f"f1(threshold={THRESHOLD})": value_or_error(classes.fMeasure, 1.0),
        f"f_beta(beta=2.0, threshold={THRESHOLD})": value_or_error(classes.fMeasure, 1.0, 2.0),
        f"fpr(threshold={THRESHOLD})": value_or_error(classes.falsePositiveRate, 1.0),
        "log_loss": value_or_error(classes.logLoss),
    }


def value_or_error(question, *arguments):
    """Return the number, or the error of Java as a string: only edges have one, such as labels of one class."""
    try:
        return question(*arguments)
    except Py4JJavaError as error:
        return str(error.java_exception)


def storable(values):
    """Return a value for JSON, which has no NaN."""
    return {name: None if value != value else value for name, value in values.items()}  # noqa: PLR0124 - NaN


def answers(ask, cases):
    """Return the answers to each case: {name of the case: {name: value}}."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda case: storable(ask(context, case)), cases)
        return dict(zip((case["name"] for case in cases), found, strict=True))


given = json.load(sys.stdin)
with contextlib.redirect_stdout(sys.stderr):
    context = session()
    found = answers(ask_lists, given["lists"]) | answers(ask_rows, given["rows"])
    context.stop()
print()
print(
    json.dumps(
        {
            "versions": {"pyspark": pyspark.__version__},
            "values": found,
            "names": sorted({name for one in CLASSES for name in vars(one) if not name.startswith("_")}),
            "skipped": {
                "tied": "lists are in an order, and have no scores",
                "no_recs": "a user without a list is in no row, unless given an empty list",
            },
        }
    )
)
