"""Explain why another tool gives another number for a metric."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastrec.api.calls import evaluate, evaluate_scores
from fastrec.arguments import options_of
from fastrec.checks import whole_number
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.explanation.answers import Numbers
from fastrec.explanation.explanation import OURS, Explanation
from fastrec.explanation.meanings import meanings_of
from fastrec.files.calls import evaluate_files
from fastrec.metrics.recipe import NoMetricError
from fastrec.report.report import Report

USERS_SHOWN = 5  # per tool, where tools are named


@options_of(
    (evaluate, "groups user_weight user_ids exclude items history reference logged subtopics"),
    (evaluate_files, "user item rank score gain propensity logged_rank subtopic item_sep label sample_weight"),
    (evaluate_files, "by users input_format csv"),
    (evaluate, "min_gain n_items examination ties no_truth no_recs duplicates"),
    (evaluate_files, "one_class memory temp_directory"),
    (evaluate, "n_threads progress"),
    fill=False,
)
def explain(
    metric: str,
    recs: Any = None,
    truth: Any = None,
    *,
    like: str | Iterable[str] | None = None,
    n_users: int | None = None,
    **given: Any,
) -> Explanation:
    """Explain why other tools give another number for a metric of lists: definitions and, on data, numbers.

    Numbers of sampled lists are a cause that no definition shows. Many publications, and some tools on request, rank
    each relevant item among about 100 drawn items, not among all. Such values are much higher, and may order models in
    another way. `fastrec.evaluate_model` has ``negatives=`` to reproduce them. With ``sampled_from=`` and ``correct=``,
    `fastrec.evaluate` estimates the values of the whole catalogue from such lists. When to sample: almost never. A
    model scores all items in any case, so the whole catalogue costs no more scores, and its numbers are exact.

    Parameters
    ----------
    metric : a string such as ``"ndcg@10"``, with our name or that of a tool
    recs, truth : as in `evaluate`; or paths of files, as in `evaluate_files`. Without them, definitions only.
        Other arguments are those of `evaluate` or `evaluate_files`. A given policy applies to fastrec and all tools.
    like : a tool, or several; by default all that have such a metric
    n_users : number of users to show per tool, those that move the mean most; by default 5 if ``like`` is given, else 0

    Returns
    -------
    Explanation
        The options of fastrec and each tool. With data also their numbers, the effect of each option that differs, and
        the users that differ. Data are evaluated once for each way to treat equal scores.

    Raises
    ------
    MetricError
        If neither fastrec nor a tool has the metric, or a tool in ``like`` has no such metric; the message lists what
        the tool has.
    InputError, InputTypeError
        As `evaluate`. If a tool has no number for these data, for example because it does not define the order of
        equal scores, the result has the reason in its place.

    Examples
    --------
    >>> recs, truth = [[1, 2, 3], [4, 5, 6]], [[1, 3], [6]]
    >>> fastrec.explain("ndcg@3", recs, truth, like="rectools", n_users=2)
    ndcg@3 in fastrec and other tools (* differs from fastrec)
                 gain  ideal  min_gain      ties
    fastrec    linear  truth   above 0  expected
    rectools  binary*     k*      any*    input*
    the same on all sides: discount=log2, no_truth=skip, no_recs=zero
    ndcg@3 of rectools 0.19.0 is ndcg(gain=binary, ideal=k)@3 here
      the ideal of ndcg has k relevant items for every user, so a perfect list can be below 1
      ranks of data frames are positions: a rank without an item is a miss
    <BLANKLINE>
    On these data
                mean  difference  users
    fastrec   0.7099                  2
    rectools  0.4693     -0.2406      2
    <BLANKLINE>
    The difference, option by option, from left to right
              gain    ideal  min_gain  ties
    rectools     0  -0.2406         0     0
    <BLANKLINE>
    rectools: the users that matter most, of 2 with another value
    user  fastrec  rectools  moves the mean by
    1      0.5000    0.2346          -1.33e-01
    0      0.9197    0.7039          -1.08e-01
    """
    has_data = recs is not None
    if truth is not None and not has_data:
        raise InputTypeError("explain needs recs with truth, found truth alone")
    if isinstance(recs, str | os.PathLike):
        from fastrec.files.evaluate import is_of_lists

        run = functools.partial(evaluate_files, recs, truth)
        kind = "lists" if truth is not None or is_of_lists(recs, _named_here(metric, like, given), given) else "rows"
    else:
        run, kind = functools.partial(evaluate, recs, truth), "lists"
    return explain_side(metric, like, n_users, run if has_data else None, kind if has_data else None, given)


@options_of(
    (evaluate_scores, "user_ids item_ids sample_weight groups user_weight user item label score by"),
    (evaluate_scores, "min_gain n_items ties no_truth one_class n_threads progress"),
    fill=False,
)
def explain_scores(
    metric: str,
    labels: Any = None,
    scores: Any = None,
    indptr: Any = None,
    *,
    like: str | Iterable[str] | None = None,
    n_users: int | None = None,
    **given: Any,
) -> Explanation:
    """Explain why other tools give another number for a metric of scored rows; see `explain`.

    Parameters
    ----------
    metric, like, n_users : as in `explain`
    labels, scores, indptr : as in `evaluate_scores`

    Examples
    --------
    >>> labels, scores, users = (
    ...     [1, 0, 1, 0, 0],
    ...     [0.9, 0.8, 0.2, 0.4, 0.1],
    ...     [7, 7, 7, 8, 8],
    ... )
    >>> why = fastrec.explain_scores(
    ...     "gauc", labels, scores, user_ids=users, like="torchmetrics"
    ... )
    >>> {tool: side.estimate.mean for tool, side in why.sides.items()}
    {'fastrec': 0.5, 'torchmetrics': 0.25}
    >>> why.sides["torchmetrics"].steps
    {'weight': 0.0, 'one_class': -0.25}
    """
    run = None if labels is None else functools.partial(evaluate_scores, labels, scores, indptr)
    return explain_side(metric, like, n_users, run, "rows", given)


def explain_side(
    metric: Any,
    like: str | Iterable[str] | None,
    n_users: int | None,
    evaluate_data: Callable[..., Report] | None,
    kind: str | None,
    options: Mapping[str, Any],
) -> Explanation:
    """Explain what one side, or each of several tools, makes of data that `evaluate_data` evaluates."""
    if not isinstance(metric, str):
        raise InputTypeError(f"explain takes one metric, a string such as 'ndcg@10', found {shown(metric)}")
    n_shown = _check_n_users(n_users, USERS_SHOWN if like is not None else 0)
    known, absent = meanings_of(metric, like, kind, options.get("min_gain"))
    with_mean = len({meaning.call.mean for meaning in known.values()}) > 1
    sides = {tool: meaning.side(options, with_mean=with_mean) for tool, meaning in known.items()}
    warnings: tuple[str, ...] = ()
    if evaluate_data is not None:
        numbers = Numbers(evaluate_data, dict(options), known, sides)
        sides = {tool: numbers.complete(tool, n_shown) for tool in sides}
        warnings = numbers.warnings
    unknown = tuple(tool for tool, error in absent.items() if isinstance(error, NoMetricError))
    why = {tool: str(error) for tool, error in absent.items()}
    return Explanation(known[OURS].call.text, sides, why, brief=like is None, warnings=warnings, unknown=unknown)


def _named_here(metric: str, like: str | Iterable[str] | None, given: Mapping[str, Any]) -> str:
    """Return our name of a metric, which may have the name of a tool."""
    return meanings_of(metric, like, None, given.get("min_gain"))[0][OURS].call.text


def _check_n_users(n_users: Any, default: int) -> int:
    if n_users is None:
        return default
    number = whole_number(n_users)
    if number is None or number < 0:
        raise InputError(f"n_users must be an integer of at least 0, found {shown(n_users)}")
    return number
