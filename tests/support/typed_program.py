"""A user's program that uses every public name, with the promised types: mypy checks it strictly.

`test_api.py` runs it, and checks that it uses every public name.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, assert_type

import matplotlib as mpl
import numpy as np

import fastrec

RECS, TRUTH = [[1, 2, 3], [4, 5, 6]], [[1, 3], [6]]
LABELS, SCORES, INDPTR = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], [0, 2, 4]


def evaluate_lists() -> fastrec.Report:
    @fastrec.ranking_metric(range=(0, 1), source="ours")
    def misses(statistics: Any) -> Any:
        """Share of the first k that is not relevant."""
        return 1 - statistics.hits / statistics.k

    @fastrec.list_metric
    def found_first(items: list[Any], gains: dict[Any, float]) -> bool:
        """Whether the first item is relevant."""
        return items[0] in gains

    names = ["ndcg", "misses", "found_first"]
    report = fastrec.evaluate(RECS, TRUTH, names, k=[1, 3], per_user=True, groups={"plan": ["a", "b"]})
    assert_type(report, fastrec.Report)
    assert_type(report["ndcg@3"], float)
    assert_type(report.estimates["ndcg@3"].interval(level=0.9), tuple[float, float])
    assert_type(report.interval("ndcg@3", method="bootstrap", n_rounds=10, seed=1), tuple[float, float])
    assert_type(report.per_user["ndcg@3"].tolist(), Any)
    assert_type(report.users["evaluated"], int)
    assert_type(report.to_json(), str)
    assert_type(report.warnings, list[str])
    estimate: fastrec.Estimate = report.estimates["ndcg@3"]
    assert_type(estimate.users, int)
    group = fastrec.GroupEstimate(0.5, 0.1, 3, rest=estimate)
    assert_type(group.difference(level=0.9), tuple[float, float, float])
    return report


def weigh_clicks() -> float:
    shop = fastrec.popularity_propensity(RECS, power=0.5, floor=0.1, items=[9])
    assert_type(shop["propensity"].tolist(), Any)
    report = fastrec.evaluate(RECS, TRUTH, "ips@2", items=shop)
    return report["ips@2"] - fastrec.evaluate(RECS, TRUTH, "snips@2", logged=[1, 2, 1], examination=[1, 0.5])["snips@2"]


def evaluate_in_parts() -> None:
    evaluator = fastrec.Evaluator("mrr", k=3, ties="worst", no_truth="zero", duplicates="first", min_gain="any")
    evaluator.update(fastrec.Ragged([1, 2, 3], [0, 3]), [[1]], user_ids=["ann"])
    other = fastrec.Evaluator.from_bytes(evaluator.to_bytes())
    assert_type(other, fastrec.Evaluator)
    assert_type(fastrec.Evaluator("mrr").merge(fastrec.Evaluator("mrr")), fastrec.Evaluator)
    scorer = fastrec.ScoreEvaluator(["auc", "gauc"], one_class="half")
    scorer.update(LABELS, SCORES, INDPTR)
    assert_type(scorer.merge(fastrec.ScoreEvaluator(["auc", "gauc"], one_class="half")).result(), fastrec.Report)


def declare_a_metric_of_rows() -> float:
    @fastrec.score_metric(range=(0, 1), needs=("probabilities", "users"), source="ours", higher_is_better=False)
    def caution(statistics: Any) -> Any:
        """Mean of 1 - score."""
        return 1 - statistics.score_sum / statistics.rows

    return fastrec.evaluate_scores(LABELS, SCORES, INDPTR, "caution")["caution"]


def misspell() -> None:
    """Type checkers know the arguments of functions that pass them on, and their values."""
    fastrec.evaluate(RECS, TRUTH, tie="worst")  # type: ignore[call-arg]
    fastrec.evaluate_files("recs.csv", "truth.csv", ties="first")  # type: ignore[arg-type]


def value_a_policy() -> None:
    one = fastrec.policy_value(SCORES, [0.5] * 4, [0.25] * 4, INDPTR, clip=3)
    assert_type(one, fastrec.PolicyEstimate)
    assert_type(one.interval(level=0.9), tuple[float, float])
    several = fastrec.policy_value(SCORES, [0.5] * 4, [0.25] * 4, INDPTR, estimator=["ips", "snips"])
    assert_type(several, fastrec.PolicyEstimates)
    assert_type(several.merge(several)["ips"].merge(several["ips"]).value, float)


def evaluate_segments() -> None:
    segments = fastrec.segment_items([1, 1, 2, 3, 6])
    assert_type(segments, dict[Any, str])
    assert_type(
        fastrec.evaluate_by_items(RECS, TRUTH, segments, "recall@2", no_truth="skip"), dict[str, fastrec.Report]
    )
    model = np.array([[0.1, 0.9, 0.5]])
    assert_type(fastrec.evaluate_model(model, [[2]], "mrr", exclude=[[1]]), fastrec.Report)
    assert_type(fastrec.top_items(model, 2)[0].tolist(), Any)
    assert_type(fastrec.segment_users([7, 7, 8], [7, 8]).tolist(), Any)


def evaluate_rows() -> None:
    report = fastrec.evaluate_scores(LABELS, SCORES, INDPTR, ["auc", "gauc"], one_class="drop")
    assert_type(report["auc"], float)
    assert_type(fastrec.gauc(LABELS, SCORES, INDPTR, weight="equal", constant="drop"), float)
    assert_type(fastrec.auc(LABELS, SCORES, max_fpr=0.5), float)
    bounded: fastrec.BoundedAuc = fastrec.bounded_auc(LABELS, SCORES)
    assert_type(bounded.bound, float)
    histogram = fastrec.ScoreHistogram()
    histogram.add(np.array(LABELS), np.array(SCORES))
    assert_type(histogram.auc(), float)
    test: fastrec.AucTest = fastrec.auc_test(LABELS, SCORES, SCORES[::-1])
    models: fastrec.Comparison = fastrec.compare_scores(LABELS, {"a": SCORES, "b": SCORES[::-1]}, "auc", test="t")
    assert_type(models.rows[0].difference, float)
    assert_type(test.p_value, float)
    assert_type([fastrec.mae(SCORES, SCORES), fastrec.mse(SCORES, SCORES), fastrec.rmse(SCORES, SCORES)], list[float])
    confusion: fastrec.Confusion = fastrec.confusion_matrix(LABELS, SCORES, [0.5])
    assert_type(confusion.precision().tolist(), Any)
    counts: fastrec.ClassCounts = fastrec.count_classes(["a", "b"], ["a", "a"])
    assert_type(counts.accuracy(), float)


def draw_curves() -> None:
    roc: fastrec.RocCurve = fastrec.roc_curve(LABELS, SCORES)
    pr: fastrec.PrCurve = fastrec.pr_curve(LABELS, SCORES, thin=True)
    assert_type([roc.area, pr.area, fastrec.break_even_point(LABELS, SCORES)], list[float])
    compared: fastrec.CurveComparison = fastrec.compare_curves(roc, roc)
    assert compared.dominates == "equal"
    bins: fastrec.CalibrationCurve = fastrec.calibration_curve(
        LABELS, SCORES, row_groups={"plan": ["free"] * len(LABELS)}
    )
    assert_type([bins.ece, bins.calibration], list[float])
    of_lists: fastrec.InterpolatedPrCurve = fastrec.interpolated_pr_curve(RECS, TRUTH, 3, rounding="nearest")
    assert_type(of_lists.area, float)
    fastrec.plot_pr(of_lists)
    fastrec.evaluate_scores(LABELS, SCORES, metrics="auc").to_html(curves=[roc, pr, bins, of_lists])
    for plot in (fastrec.plot_roc, fastrec.plot_pr):
        plot(LABELS, SCORES, label="model")


def follow_logs() -> None:
    found: fastrec.Drift = fastrec.drift({"old": [[1], [2]], "new": [[1], [1]]}, k=1, n_items=2)
    assert found.steps[0].changes["item_coverage@1"].mean == -0.5
    assert found.trends["gini@1"].logs == 2
    assert found.logs[0].users == 2


def compare_systems(report: fastrec.Report) -> None:
    found = fastrec.compare({"old": report, "new": report}, baseline="old", test="t", correction="bh", missing="zero")
    assert_type(found, fastrec.Comparison)
    rows: list[fastrec.ComparisonRow] = list(found.all_rows())
    assert_type(rows[0].p_value, float)
    assert_type(found.is_significant(rows[0]), bool)
    why: fastrec.Explanation = fastrec.explain("ndcg@3", RECS, TRUTH, like=["rectools", "ranx"])
    assert_type(why.sides["ranx"].metric, str)
    assert_type(fastrec.explain_scores("auc"), fastrec.Explanation)


def count_clicks() -> None:
    clicks, ranks, users = np.array([1, 0, 1, 0]), np.array([1, 2, 1, 2]), ["ann", "ann", "bob", "bob"]
    counted: fastrec.CtrByRank = fastrec.ctr_by_rank(clicks, ranks, user_ids=users, row_groups={"plan": ["free"] * 4})
    assert_type(
        counted.merge(fastrec.ctr_by_rank([1], [1], user_ids=["eve"], row_groups={"plan": ["paid"]})).level, float
    )
    bias: fastrec.PositionBias = fastrec.position_bias(clicks, ranks, users, [7] * 4, method="em", n_samples=5)
    assert_type(bias.to_rows(), list[dict[str, Any]])
    bias.plot(counted.plot(), label="bias")


def keep(report: fastrec.Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.npz")
        report.save(path)
        assert_type(fastrec.load(path), fastrec.Report)
        assert_type(report.to_html(Path(folder, "page.html"), title="ours"), str | None)
        lists = Path(folder, "lists.csv")
        lists.write_text("user_id,item_id\nann,x\n")
        assert_type(fastrec.evaluate_files(lists, str(lists), "mrr", memory="1GB"), fastrec.Report)


def take_errors_apart() -> list[type[Exception]]:
    caught: list[type[Exception]] = []
    kinds = (fastrec.InputError, fastrec.InputTypeError, fastrec.MetricError, fastrec.MetricNotFoundError)
    for metrics in ("ndgc", 3):
        try:
            fastrec.evaluate(RECS, TRUTH, metrics)  # type: ignore[arg-type]
        except (fastrec.MissingExtraError, fastrec.MissingFileError, *kinds) as error:
            caught.append(type(error))
        except fastrec.FastrecError:
            raise
    return [*caught, fastrec.FastrecWarning]


def main() -> None:
    """Run all of it."""
    mpl.use("Agg")
    report = evaluate_lists()
    weigh_clicks()
    evaluate_in_parts()
    assert_type(declare_a_metric_of_rows(), float)
    evaluate_segments()
    evaluate_rows()
    draw_curves()
    compare_systems(report)
    follow_logs()
    count_clicks()
    value_a_policy()
    keep(report)
    assert take_errors_apart() == [fastrec.MetricError, fastrec.InputTypeError, fastrec.FastrecWarning]
    assert_type(fastrec.__version__, str)
    assert_type(fastrec.catalogue(), list[dict[str, Any]])
    print("all names are there", callable(fastrec.warmup))


if __name__ == "__main__":
    main()
