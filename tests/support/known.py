"""Names of the metrics of fastrec by what they read."""

from fastrec.metrics.declaration import DECLARED

MODULES = ("fastrec.metrics.items", "fastrec.metrics.exposure", "fastrec.metrics.weighted", "fastrec.metrics.subtopics")
OF_ITEMS = [name for name, metric in DECLARED["lists"].items() if metric.formula.__module__ in MODULES]
"""Metrics of lists that do not compare a list with the truth alone; their oracle is `item_oracle`."""
OF_JUDGEMENTS = [
    name
    for name, metric in DECLARED["lists"].items()
    if (
        metric.formula.__module__.removeprefix("fastrec.metrics.") in ("graded", "judged", "user_models")
        and name != "insq"
    )
    or name in ("ordered_pair_accuracy", "ndpm")
]
"""Metrics of lists with statistics of a provider, which scored rows do not have."""
COUNTS_ALL = ("hits", "hit_rate", "precision", "recall", "f_beta", "f1", "cg", "accuracy", "specificity", "fallout")
COUNTS_ALL += ("mcc", "utility", "set_ap", "mar")
"""Metrics of lists that do not depend on the order of a list without a cut-off."""
