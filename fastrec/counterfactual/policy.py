"""Value of a policy: what another ranking would have earned, from a log with propensities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from fastrec.api.calls import evaluate
from fastrec.arguments import options_of
from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.counterfactual.logged import Logged, check_clip, check_estimators, check_lengths_of, read_logged, refuse
from fastrec.counterfactual.sums import Fault, SlateSums, add_slates
from fastrec.counterfactual.value import PolicyEstimate, PolicyEstimates, estimates_of
from fastrec.exceptions import Argument, InputError, warn
from fastrec.runtime.limits import resolve_threads


@overload
def policy_value(
    rewards: Any,
    pscore: Any = None,
    new_pscore: Any = None,
    indptr: Any = None,
    *,
    estimator: str = "iips",
    **given: Any,
) -> PolicyEstimate: ...


@overload
def policy_value(
    rewards: Any,
    pscore: Any = None,
    new_pscore: Any = None,
    indptr: Any = None,
    *,
    estimator: list[str] | tuple[str, ...],
    **given: Any,
) -> PolicyEstimates: ...


@options_of((evaluate, "n_threads"))
def policy_value(
    rewards: Any,
    pscore: Any = None,
    new_pscore: Any = None,
    indptr: Any = None,
    *,
    estimator: str | list[str] | tuple[str, ...] = "iips",
    clip: float | None = None,
    predictions: Any = None,
    baseline_pscore: Any = None,
    slate_ids: Any = None,
    user_ids: Any = None,
    reward: str | None = None,
    slate: str | None = None,
    rank: str | None = None,
    user: str | None = None,
    **options: Any,
) -> PolicyEstimate | PolicyEstimates:
    """Estimate what a new policy would have earned, from a log of another policy with propensities.

    A slate is one list that was shown. The weight of a row is w = new_pscore / pscore. With r the reward of a row:

    - ``ips``: mean over rows of w r. ``snips``: sum of w r / sum of w, over rows (Swaminathan & Joachims 2015).
    - ``iips`` (default): mean over slates of the sum of w r. A reward depends on its own row and position only (Li et
      al. 2018).
    - ``rips``: mean over slates of the sum of v r, v the product of w up to the row. A reward depends on the rows
      before it, too (McInerney et al. 2020).
    - ``sips``: mean over slates of (product of w) * (sum of r). A reward depends on the whole slate.
    - ``snsips``: sum of (product of w) (sum of r) / sum of (product of w), over slates.
    - ``sniips``, ``snrips``: sum over positions of (share of slates with that position) * (sum of w r / sum of w
      there); snrips with v in place of w.
    - ``dr``: mean over rows of q_new + w (r - q), with predictions q (Dudik, Langford & Li 2011).
    - ``cascade_dr``: mean over slates of the sum of v (r - q) + v_before q_new, with v_before = 1 in the first row
      (Kiyohara et al. 2022).

    Standard errors are over slates: the sample standard deviation / sqrt(n) for means over slates. Ratios have the
    error of the delta method, n / (n - 1) * sum of (a_s - value b_s)^2 / (sum of b_s)^2 for a ratio of sums of a and
    b, so that the error of the divisor counts, and rows of a slate need not be independent. With users, terms of slates
    are summed by user first, and n is the number of users. Intervals are Student's with n - 1 degrees of freedom.

    With ``baseline_pscore`` the difference of both policies has an error of its own, by the same method from the
    differences of what each slate adds to both values (Jeunen & Ustimenko 2024). Both policies share the luck of the
    log, so this error is smaller than that of two separate values.

    No weight repairs what the log lacks: where the new policy shows what the old one never did, the value misses it,
    and the mean weight falls below 1.

    Parameters
    ----------
    rewards : numbers (n,), finite, at most 1e76 in size; or a data frame with a row per shown item
        A data frame has the columns ``reward``, ``pscore`` and ``new_pscore``, or others that ``reward``, ``pscore``
        and ``new_pscore`` name.
    pscore : numbers (n,), above 0 and at most 1; or the name of a column
        The propensity of each row when it was logged. For ips, snips, dr, iips (default) and sniips it must be the
        probability of the item at its position, over all slates. For rips, snrips, sips, snsips and cascade_dr it must
        be the probability given the rows of its slate before it: products over the slate give that of the slate. The
        two agree if the rows of a slate are drawn independently.
    new_pscore : numbers (n,), from 0 to 1; or the name of a column
        The same under the new policy, for the row that was logged.
    indptr : integers (n_slates + 1,), optional
        The rows of slate s are ``indptr[s]:indptr[s + 1]``, first row first. By default each row is a slate.
    estimator : name, or several names, all from one pass
    clip : largest weight: larger ones count as this
        Products of several rows are clipped, not their factors. The v_before of a first row stays 1.
    predictions : pair (q, q_new) of numbers (n,), or of names of columns, for dr and cascade_dr
        q is the predicted reward of the logged row; q_new its expectation over what the new policy would show there.
    baseline_pscore : numbers (n,) as new_pscore, of another policy, or name of a column (default: ``baseline_pscore``)
        The result then has `PolicyEstimate.baseline` and `PolicyEstimate.difference`. Not for dr and cascade_dr.
    slate_ids : array (n,) of integers or strings, the slate of each row, in place of ``indptr``
        Rows may be in any order; those of a slate keep theirs.
    user_ids : array (n,) of integers or strings, the user of each row, the same in all rows of a slate
        Errors are then over users, since the slates of a user are not independent. Slates need rows.
    reward : name of the column of a data frame with rewards; default: ``reward``
    slate : name of the column of a data frame with slates; default: ``slate_id``, if present
        Without slates each row is one.
    rank : name of the column of ranks, from 1 or 0 in every slate; default: ``rank``, if present
        Ranks order the rows of a slate. They neither repeat nor have gaps. Without ranks, rows keep their order.
    user : name of the column of users of a data frame; default: ``user_id``, if present

    Returns
    -------
    PolicyEstimate, or PolicyEstimates, a dict by name, if ``estimator`` is a list
        Slates without rows earn 0. Without slates the value is NaN, as it is where all weights that it divides by are
        0. If all weights are below 1e-150, their errors and their effective sample size are NaN. Sums over slates are
        exact: order, threads and `PolicyEstimate.merge` change no bit.

    Raises
    ------
    InputError, InputTypeError
        For propensities of 0, above 1, below 0 or NaN, rewards that are not finite, weights above 1e76, ranks that
        repeat or have gaps, slates of several users, dr or cascade_dr with a baseline, slates of more than 128 rows for
        sniips and snrips, and different lengths.

    Warns
    -----
    FastrecWarning
        If all weights are below 1e-150.
        If a data frame has slates, but no ranks, and an unused column with a name like a rank implies another order of
        their rows than that of the frame, for rips, sniips, snrips and cascade_dr, which depend on it.
        If no slate, or no user, differs from the value: then there is no interval.
        From 30 slates on, if the mean weight differs from 1 by more than 5 of its standard errors and 0.01, if the
        effective sample size is below 10, or below 1 % of the weights, or if few slates decide about the error:
        (sum of x)^2 / sum of x^2 is below 20, where x are the squares of the weights of slates, or of what they earn.

    Examples
    --------
    Two slates of two rows; their weights are 1, 0.5 and 2, 1.5:

    >>> rewards, old, new = (
    ...     [1, 0, 0, 1],
    ...     [0.5, 0.5, 0.25, 0.5],
    ...     [0.5, 0.25, 0.5, 0.75],
    ... )
    >>> found = fastrec.policy_value(
    ...     rewards, old, new, [0, 2, 4], estimator=["iips", "sips", "snrips"]
    ... )
    >>> {name: round(one.value, 4) for name, one in found.items()}
    {'iips': 1.25, 'sips': 1.75, 'snrips': 1.1905}
    >>> (
    ...     round(found["iips"].std_error, 4),
    ...     round(found["iips"].effective_sample_size, 4),
    ... )
    (0.25, 3.3333)
    """
    names, alone = check_estimators(estimator, predictions)
    limit, threads = check_clip(clip), resolve_threads(options["n_threads"])
    columns = {"reward": reward, "slate": slate, "rank": rank, "user": user}
    more = user_ids, baseline_pscore
    logged = read_logged(rewards, pscore, new_pscore, indptr, predictions, slate_ids, columns, threads, *more)
    found = estimates_of(sums_of(logged, names, limit, threads))
    warn([*hints_of(names, logged.hints), *found.warnings])
    return found[names[0]] if alone else found


def hints_of(names: Iterable[str], hints: Sequence[str]) -> Sequence[str]:
    """Return hints about the order of rows, if an estimator depends on it."""
    return hints if any(ESTIMATORS[name].is_ordered for name in names) else ()


def sums_of(logged: Logged, names: list[str], clip: float | None, n_threads: int) -> list[SlateSums]:
    """Return the sums of several estimators over logged slates."""
    check_lengths_of(logged.slates, names)
    policies = [logged] if logged.baseline is None else [logged, logged.baseline]
    if logged.baseline is not None and (needing := [name for name in names if ESTIMATORS[name].predicted]):
        raise InputError(
            f"{needing[0]} has no difference to a baseline: predictions are of one policy; leave out ",
            Argument("baseline_pscore"),
        )
    sums = add_slates([one.slates for one in policies], logged.users, names, clip, n_threads)
    if isinstance(sums, Fault):
        raise refuse(policies[sums.of_baseline], names, sums)
    return sums
