"""fastrec: exact offline evaluation of recommenders at memory speed.

Importing fastrec imports only NumPy; other modules load at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fastrec._version import __version__
from fastrec.exceptions import (
    FastrecError,
    FastrecWarning,
    InputError,
    InputTypeError,
    MetricError,
    MetricNotFoundError,
    MissingExtraError,
    MissingFileError,
)
from fastrec.inputs.ragged import Ragged
from fastrec.runtime.threads import uninterrupted

if TYPE_CHECKING:
    from fastrec.api.calls import evaluate, evaluate_model, evaluate_scores
    from fastrec.api.evaluators import Evaluator, ScoreEvaluator
    from fastrec.api.variants import (
        compare_scores,
        evaluate_by_items,
        gauc,
        interpolated_pr_curve,
        mae,
        mse,
        rmse,
        top_items,
    )
    from fastrec.comparison.compare import compare
    from fastrec.comparison.comparison import Comparison
    from fastrec.comparison.row import ComparisonRow
    from fastrec.counterfactual.policy import policy_value
    from fastrec.counterfactual.position import ctr_by_rank, position_bias
    from fastrec.counterfactual.result import CtrByRank, PositionBias
    from fastrec.counterfactual.value import PolicyEstimate, PolicyEstimates
    from fastrec.counterfactual.weights import popularity_propensity
    from fastrec.evaluation.list_metric import list_metric
    from fastrec.explanation.explain import explain, explain_scores
    from fastrec.explanation.explanation import Explanation
    from fastrec.feedback.drift import drift
    from fastrec.feedback.result import Drift
    from fastrec.files.calls import evaluate_files
    from fastrec.metrics.calls import catalogue
    from fastrec.metrics.declaration import ranking_metric, score_metric
    from fastrec.precompile import warmup
    from fastrec.report.calibration import CalibrationCurve, calibration_curve
    from fastrec.report.estimates import Estimate, GroupEstimate
    from fastrec.report.report import Report, load
    from fastrec.scored.auc import AucTest, auc, auc_test
    from fastrec.scored.classes import ClassCounts, count_classes
    from fastrec.scored.confusion import Confusion, confusion_matrix
    from fastrec.scored.curves import (
        CurveComparison,
        InterpolatedPrCurve,
        PrCurve,
        RocCurve,
        break_even_point,
        compare_curves,
        pr_curve,
        roc_curve,
    )
    from fastrec.scored.histogram import BoundedAuc, ScoreHistogram, bounded_auc
    from fastrec.scored.plots import plot_pr, plot_roc
    from fastrec.segments import segment_items, segment_users

_ENGINES = ("dask", "ray", "spark")  # modules that need no import of their own
_LAZY = {
    "AucTest": "fastrec.scored.auc",
    "BoundedAuc": "fastrec.scored.histogram",
    "CalibrationCurve": "fastrec.report.calibration",
    "ClassCounts": "fastrec.scored.classes",
    "Comparison": "fastrec.comparison.comparison",
    "ComparisonRow": "fastrec.comparison.row",
    "Confusion": "fastrec.scored.confusion",
    "CtrByRank": "fastrec.counterfactual.result",
    "CurveComparison": "fastrec.scored.curves",
    "Drift": "fastrec.feedback.result",
    "Estimate": "fastrec.report.estimates",
    "GroupEstimate": "fastrec.report.estimates",
    "Explanation": "fastrec.explanation.explanation",
    "Evaluator": "fastrec.api.evaluators",
    "InterpolatedPrCurve": "fastrec.scored.curves",
    "PositionBias": "fastrec.counterfactual.result",
    "PolicyEstimate": "fastrec.counterfactual.value",
    "PolicyEstimates": "fastrec.counterfactual.value",
    "PrCurve": "fastrec.scored.curves",
    "Report": "fastrec.report.report",
    "RocCurve": "fastrec.scored.curves",
    "ScoreEvaluator": "fastrec.api.evaluators",
    "ScoreHistogram": "fastrec.scored.histogram",
    "auc": "fastrec.scored.auc",
    "auc_test": "fastrec.scored.auc",
    "bounded_auc": "fastrec.scored.histogram",
    "break_even_point": "fastrec.scored.curves",
    "calibration_curve": "fastrec.report.calibration",
    "catalogue": "fastrec.metrics.calls",
    "compare": "fastrec.comparison.compare",
    "compare_curves": "fastrec.scored.curves",
    "compare_scores": "fastrec.api.variants",
    "confusion_matrix": "fastrec.scored.confusion",
    "count_classes": "fastrec.scored.classes",
    "ctr_by_rank": "fastrec.counterfactual.position",
    "drift": "fastrec.feedback.drift",
    "evaluate": "fastrec.api.calls",
    "evaluate_by_items": "fastrec.api.variants",
    "evaluate_files": "fastrec.files.calls",
    "evaluate_model": "fastrec.api.calls",
    "evaluate_scores": "fastrec.api.calls",
    "explain": "fastrec.explanation.explain",
    "explain_scores": "fastrec.explanation.explain",
    "gauc": "fastrec.api.variants",
    "interpolated_pr_curve": "fastrec.api.variants",
    "load": "fastrec.report.report",
    "mae": "fastrec.api.variants",
    "mse": "fastrec.api.variants",
    "plot_pr": "fastrec.scored.plots",
    "plot_roc": "fastrec.scored.plots",
    "position_bias": "fastrec.counterfactual.position",
    "policy_value": "fastrec.counterfactual.policy",
    "popularity_propensity": "fastrec.counterfactual.weights",
    "pr_curve": "fastrec.scored.curves",
    "list_metric": "fastrec.evaluation.list_metric",
    "ranking_metric": "fastrec.metrics.declaration",
    "score_metric": "fastrec.metrics.declaration",
    "rmse": "fastrec.api.variants",
    "roc_curve": "fastrec.scored.curves",
    "segment_items": "fastrec.segments",
    "segment_users": "fastrec.segments",
    "top_items": "fastrec.api.variants",
    "warmup": "fastrec.precompile",
}

__all__ = [
    "AucTest",
    "BoundedAuc",
    "CalibrationCurve",
    "ClassCounts",
    "Comparison",
    "ComparisonRow",
    "Confusion",
    "CtrByRank",
    "CurveComparison",
    "Drift",
    "Estimate",
    "Evaluator",
    "Explanation",
    "FastrecError",
    "FastrecWarning",
    "GroupEstimate",
    "InputError",
    "InputTypeError",
    "InterpolatedPrCurve",
    "MetricError",
    "MetricNotFoundError",
    "MissingExtraError",
    "MissingFileError",
    "PolicyEstimate",
    "PolicyEstimates",
    "PositionBias",
    "PrCurve",
    "Ragged",
    "Report",
    "RocCurve",
    "ScoreEvaluator",
    "ScoreHistogram",
    "__version__",
    "auc",
    "auc_test",
    "bounded_auc",
    "break_even_point",
    "calibration_curve",
    "catalogue",
    "compare",
    "compare_curves",
    "compare_scores",
    "confusion_matrix",
    "count_classes",
    "ctr_by_rank",
    "drift",
    "evaluate",
    "evaluate_by_items",
    "evaluate_files",
    "evaluate_model",
    "evaluate_scores",
    "explain",
    "explain_scores",
    "gauc",
    "interpolated_pr_curve",
    "list_metric",
    "load",
    "mae",
    "mse",
    "plot_pr",
    "plot_roc",
    "policy_value",
    "popularity_propensity",
    "position_bias",
    "pr_curve",
    "ranking_metric",
    "rmse",
    "roc_curve",
    "score_metric",
    "segment_items",
    "segment_users",
    "top_items",
    "warmup",
]


if not TYPE_CHECKING:  # else type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name in _ENGINES:
            return uninterrupted(lambda: importlib.import_module(f"fastrec.{name}"))
        if name not in _LAZY:
            raise AttributeError(f"module 'fastrec' has no attribute {name!r}")
        value = getattr(uninterrupted(lambda: importlib.import_module(_LAZY[name])), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
