"""Names of metrics that fastrec does not have, and the metrics that people mean by them."""

from __future__ import annotations

import functools

from fastrec.exceptions import MetricError
from fastrec.metrics.calls import make_call
from fastrec.metrics.declaration import DECLARED, ROWS, Changes, Family, Metric, known_metrics
from fastrec.metrics.plan import Asked, make_plan
from fastrec.metrics.recipes import RECIPES
from fastrec.metrics.spelling import plain_spelling

USUAL = {  # usual names that are of no tool with a recipe
    "rows": {
        "average_precision": "ap pr_auc auc_pr auprc area_under_pr_curve",
        "log_loss": "bce binary_cross_entropy cross_entropy nll negative_log_likelihood logistic_loss",
        "normalized_entropy": "normalized_cross_entropy",
        "gauc": "uauc wuauc session_auc group_auc grouped_auc user_auc",
        "calibration": "copc pcoc",
        "ece": "expected_calibration_error",
        "ks": "ks_statistic kolmogorov_smirnov",
        "mcc": "matthews matthews_correlation",
        "recall": "sensitivity tpr true_positive_rate",
        "specificity": "tnr true_negative_rate",
        "fpr": "false_positive_rate",
        "cohen_kappa": "kappa",
    },
    "lists": {
        "map": "ap",
        "ndcg": "normalized_discounted_cumulative_gain",
        "dcg": "discounted_cumulative_gain",
        "err": "expected_reciprocal_rank",
        "mar": "mean_average_recall",
        "shannon_entropy": "entropy",
    },
}


def meaning_of(name: str, family: Family | None) -> str | None:
    """Return our name of a metric that tools or people call otherwise; of those that an input of a family takes."""
    known, key = names_for(family), plain_spelling(name)
    for kind in ("rows", "lists") if family is ROWS else ("lists", "rows"):
        found = [recipe.meaning(name, kind) for recipe in RECIPES.values()]
        found += [ours for ours, others in USUAL[kind].items() if key in map(plain_spelling, others.split())]
        if (ours := next((own for own in found if own in known), None)) is not None:
            return ours
    return None


def names_for(family: Family | None) -> list[str]:
    """Return the names of the metrics that an input of a family takes, or of all."""
    return _names_for(family, Changes.n)


@functools.lru_cache(maxsize=8)
def _names_for(family: Family | None, _changes: int) -> list[str]:
    if family is ROWS:
        return [*DECLARED["rows"], *(name for name, metric in DECLARED["lists"].items() if _takes_rows(metric))]
    return list(dict.fromkeys(metric.name for metric in known_metrics() if family in (None, metric.family)))


def _takes_rows(metric: Metric) -> bool:
    """Return whether a metric of lists reads no more than scored rows tell."""
    needed = {option.name: option.choices[0] if option.choices else 0.5 for option in metric.options.values()}
    given = {name: value for name, value in needed.items() if metric.options[name].required}
    try:
        plan = make_plan((make_call(metric, given, None),), Asked(n_items=1000))
    except MetricError:
        return False
    return not any(plan.filled.values()) and plan.values[0].over is None
