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
