"""Pages of the Python interface, from its docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import fastrec
import fastrec.dask
import fastrec.metrics.providers
import fastrec.ray
import fastrec.spark
from website.docstrings import Link, link_in, signature, to_markdown

FOLDER = "reference/api"
# Title of a page, its file, what it is about, and its names in the order of reading.
PAGES = (
    (
        "Evaluate",
        "evaluate",
        "Lists, scored rows, files and models against what users did.",
        (
            "evaluate evaluate_files evaluate_model evaluate_by_items evaluate_scores top_items gauc mae mse rmse "
            "Ragged load warmup"
        ),
    ),
    ("Batches and parts", "evaluators", "Users in batches, parts that merge.", "Evaluator ScoreEvaluator"),
    ("Reports", "reports", "The result of an evaluation.", "Report Estimate GroupEstimate"),
    ("Compare", "compare", "Which system is better.", "compare compare_scores Comparison ComparisonRow"),
    ("Explain", "explain", "Why another tool has another number.", "explain explain_scores Explanation catalogue"),
    (
        "Scored rows",
        "scored",
        "Curves, areas, thresholds and classes over all rows.",
        (
            "auc auc_test AucTest bounded_auc BoundedAuc ScoreHistogram roc_curve RocCurve pr_curve PrCurve "
            "interpolated_pr_curve InterpolatedPrCurve "
            "compare_curves CurveComparison break_even_point confusion_matrix Confusion count_classes ClassCounts "
            "calibration_curve CalibrationCurve plot_roc plot_pr"
        ),
    ),
    ("Segments", "segments", "Groups of users and of items.", "segment_users segment_items"),
    ("Drift", "drift", "Lists in the order of time.", "drift Drift"),
    (
        "Bias and policies",
        "bias",
        "Position bias, propensities, and what another policy would have earned.",
        (
            "ctr_by_rank CtrByRank position_bias PositionBias popularity_propensity policy_value PolicyEstimate "
            "PolicyEstimates"
        ),
    ),
    (
        "Your own metrics",
        "metrics",
        "Metrics of your own, with every option and check.",
        "list_metric ranking_metric score_metric",
    ),
    (
        "Errors",
        "errors",
        "Every error is a `FastrecError` and a built-in error.",
        (
            "FastrecError InputError InputTypeError MetricError MetricNotFoundError MissingFileError "
            "MissingExtraError FastrecWarning"
        ),
    ),
)
CONSTRUCTED = ("Evaluator", "ScoreEvaluator", "Ragged", "ScoreHistogram")  # results of calls have no call to show
MODULES = (
    ("Spark", "spark", "Data frames of Spark, evaluated on the cluster.", fastrec.spark, fastrec.spark.__all__),
    ("Dask", "dask", "Data frames of Dask, evaluated on the cluster.", fastrec.dask, fastrec.dask.__all__),
    ("Ray", "ray", "Datasets of Ray, evaluated on the cluster.", fastrec.ray, fastrec.ray.__all__),
    (
        "Providers",
        "providers",
        "Statistics for your own metrics of lists.",
        fastrec.metrics.providers,
        ("provider", "gains_in_lists", "is_relevant"),
    ),
)


def names_of_pages() -> dict[str, str]:
    """Return {public name: file of its page}."""
    return {name: file for _, file, _, names in PAGES for name in names.split()}


def anchors(folder: str) -> dict[str, str]:
    """Return the addresses of the public names, as seen from a folder of the site."""
    up = "../" * len(folder.split("/")) if folder else ""
    return {name: f"{up}{FOLDER}/{file}.md#fastrec.{name}" for name, file in names_of_pages().items()}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page."""
    for title, file, about, names in PAGES:
        parts = [f"# {title}", about]
        for name in names.split():
            parts += documented(name, getattr(fastrec, name), neighbours(file))
        yield f"{FOLDER}/{file}.md", "\n\n".join(parts) + "\n"
    for title, file, about, module, listed in MODULES:
        parts = [f"# {title}", about]
        for name in listed:
            parts += documented(name, getattr(module, name), neighbours(file), module.__name__)
        yield f"{FOLDER}/{file}.md", "\n\n".join(parts) + "\n"


def neighbours(file: str) -> Link:
    """Return the links from a page of this folder."""
    own = names_of_pages()
    return link_in({name: f"{'' if at == file else f'{at}.md'}#fastrec.{name}" for name, at in own.items()})


def documented(name: str, value: Any, link: Link, home: str = "fastrec") -> list[str]:
    """Return the parts of the documentation of a function or class, with those of its methods."""
    parts = [f"## {name} {{ #{home}.{name} }}"]
    is_class = inspect.isclass(value)
    is_error = is_class and issubclass(value, Exception)
    text = inspect.getdoc(value) or ""
    if not is_class or name in CONSTRUCTED:
        parts.append(f"```python\n{signature(f'{home}.{name}', value)}\n```")
    if is_error:
        bases = " and ".join(f"`{base.__name__}`" for base in value.__bases__)
        parts.append(f"A {bases}.")
    parts.append(to_markdown(text, link))
    if is_class:
        for attribute, found in members(value):
            parts.append(f"### {name}.{attribute} {{ #{home}.{name}.{attribute} }}")
            if callable(found):
                parts.append(f"```python\n{signature(f'{name}.{attribute}', found)}\n```")
            parts.append(to_markdown(inspect.getdoc(found) or "", link))
    return parts


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the documented methods and properties that fastrec defines."""
    for name in sorted(dir(owner)):
        if name.startswith("_"):
            continue
        home = next(base for base in owner.__mro__ if name in vars(base))
        own = vars(home)[name]
        found = own.__func__ if isinstance(own, classmethod | staticmethod) else own
        is_documented = isinstance(found, property) or inspect.isfunction(found)
        if home.__module__.startswith("fastrec") and is_documented and inspect.getdoc(found):
            yield name, found
