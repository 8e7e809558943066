"""fastrec: the offline evaluator for recommenders. Every metric, exact, at memory speed.

Nothing but NumPy is imported here; what is used is loaded at its first use.
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
from fastrec.ragged import Ragged
from fastrec.runtime.threads import uninterrupted

if TYPE_CHECKING:
    from fastrec.api import (
        Evaluator,
        ScoreEvaluator,
        evaluate,
        evaluate_by_items,
        evaluate_scores,
        gauc,
        mae,
        mse,
        rmse,
        warmup,
    )
    from fastrec.classes import ClassCounts, Confusion, confusion_matrix, count_classes
    from fastrec.comparison import Comparison, ComparisonRow, compare
    from fastrec.curves import (
        AucTest,
        BoundedAuc,
        CurveComparison,
        PrCurve,
        RocCurve,
        ScoreHistogram,
        auc,
        auc_test,
        bounded_auc,
        break_even_point,
        compare_curves,
        pr_curve,
        roc_curve,
    )
    from fastrec.explanation import Explanation, explain, explain_scores
    from fastrec.files import evaluate_files
    from fastrec.plots import plot_calibration, plot_pr, plot_roc
    from fastrec.registry import catalogue, ranking_metric
    from fastrec.report import Estimate, GroupEstimate, Report, load
    from fastrec.segments import segment_items, segment_users

_LAZY = {
    "AucTest": "fastrec.curves",
    "BoundedAuc": "fastrec.curves",
    "ClassCounts": "fastrec.classes",
    "Comparison": "fastrec.comparison",
    "ComparisonRow": "fastrec.comparison",
    "Confusion": "fastrec.classes",
    "CurveComparison": "fastrec.curves",
    "Estimate": "fastrec.report",
    "GroupEstimate": "fastrec.report",
    "Explanation": "fastrec.explanation",
    "Evaluator": "fastrec.api",
    "PrCurve": "fastrec.curves",
    "Report": "fastrec.report",
    "RocCurve": "fastrec.curves",
    "ScoreEvaluator": "fastrec.api",
    "ScoreHistogram": "fastrec.curves",
    "auc": "fastrec.curves",
    "auc_test": "fastrec.curves",
    "bounded_auc": "fastrec.curves",
    "break_even_point": "fastrec.curves",
    "catalogue": "fastrec.registry",
    "compare": "fastrec.comparison",
    "compare_curves": "fastrec.curves",
    "confusion_matrix": "fastrec.classes",
    "count_classes": "fastrec.classes",
    "evaluate": "fastrec.api",
    "evaluate_by_items": "fastrec.api",
    "evaluate_files": "fastrec.files",
    "evaluate_scores": "fastrec.api",
    "explain": "fastrec.explanation",
    "explain_scores": "fastrec.explanation",
    "gauc": "fastrec.api",
    "load": "fastrec.report",
    "mae": "fastrec.api",
    "mse": "fastrec.api",
    "plot_calibration": "fastrec.plots",
    "plot_pr": "fastrec.plots",
    "plot_roc": "fastrec.plots",
    "pr_curve": "fastrec.curves",
    "ranking_metric": "fastrec.registry",
    "rmse": "fastrec.api",
    "roc_curve": "fastrec.curves",
    "segment_items": "fastrec.segments",
    "segment_users": "fastrec.segments",
    "warmup": "fastrec.api",
}

__all__ = [
    "AucTest",
    "BoundedAuc",
    "ClassCounts",
    "Comparison",
    "ComparisonRow",
    "Confusion",
    "CurveComparison",
    "Estimate",
    "Evaluator",
    "Explanation",
    "FastrecError",
    "FastrecWarning",
    "GroupEstimate",
    "InputError",
    "InputTypeError",
    "MetricError",
    "MetricNotFoundError",
    "MissingExtraError",
    "MissingFileError",
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
    "catalogue",
    "compare",
    "compare_curves",
    "confusion_matrix",
    "count_classes",
    "evaluate",
    "evaluate_by_items",
    "evaluate_files",
    "evaluate_scores",
    "explain",
    "explain_scores",
    "gauc",
    "load",
    "mae",
    "mse",
    "plot_calibration",
    "plot_pr",
    "plot_roc",
    "pr_curve",
    "ranking_metric",
    "rmse",
    "roc_curve",
    "segment_items",
    "segment_users",
    "warmup",
]


if not TYPE_CHECKING:  # for which any name would be there

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module 'fastrec' has no attribute {name!r}")
        value = getattr(uninterrupted(lambda: importlib.import_module(_LAZY[name])), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
