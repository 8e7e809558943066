"""Arguments of calls on logged slates, declared once as in `fastrec.arguments.groups`."""

from typing import Annotated, Any, TypedDict


class Baseline(TypedDict, total=False):
    """Another policy on the same logged slates."""

    baseline_pscore: Annotated[
        Any,
        """numbers (n,) as new_pscore, of another policy, or the name of a column (default: ``baseline_pscore``)
        The result then has `PolicyEstimate.baseline` and `PolicyEstimate.difference`. Not for dr and cascade_dr.
        """,
    ]


class Clipping(TypedDict, total=False):
    """Weights of rows of logged slates."""

    clip: Annotated[
        float | None,
        """largest weight: larger ones count as this
        Products of several rows are clipped, not their factors. The v_before of a first row stays 1.
        """,
    ]


class Predictions(TypedDict, total=False):
    """Predicted rewards of logged slates."""

    predictions: Annotated[
        Any,
        """pair (q, q_new) of numbers (n,), or of names of columns, for dr and cascade_dr
        q is the predicted reward of the logged row; q_new its expectation over what the new policy would show there.
        """,
    ]


class SlateIds(TypedDict, total=False):
    """Ids of logged slates."""

    slate_ids: Annotated[
        Any,
        """array (n,) of integers or strings, the slate of each row, in place of ``indptr``
        Rows may be in any order; those of a slate keep theirs.
        """,
    ]
    user_ids: Annotated[
        Any,
        """array (n,) of integers or strings, the user of each row, the same in all rows of a slate
        Errors are then over users, since the slates of a user are not independent. Slates need rows.
        """,
    ]


class PropensityColumnNames(TypedDict, total=False):
    """Names of the columns of propensities in data frames on a cluster."""

    pscore: Annotated[str | None, "name of the column of logged propensities; default: ``pscore``"]
    new_pscore: Annotated[str | None, "name of the column of those of the new policy; default: ``new_pscore``"]


class SlateColumnNames(TypedDict, total=False):
    """Names of other columns of logged slates in data frames."""

    reward: Annotated[str | None, "name of the column of a data frame with rewards; default: ``reward``"]
    slate: Annotated[
        str | None,
        """name of the column of a data frame with slates; default: ``slate_id``, if present
        Without slates each row is one.
        """,
    ]
    rank: Annotated[
        str | None,
        """name of the column of ranks, from 1 or 0 in every slate; default: ``rank``, if present
        Ranks order the rows of a slate. They neither repeat nor have gaps. Without ranks, rows keep their order.
        """,
    ]
    user: Annotated[str | None, "name of the column of users of a data frame; default: ``user_id``, if present"]
