"""Arguments that pass sides of lists besides lists and truth, declared once as in `fastrec.arguments.groups`."""

from typing import Annotated, Any, TypedDict

from fastrec.arguments.groups import Path


class Reference(TypedDict, total=False):
    """Other lists to compare with."""

    reference: Annotated[
        Any, "lists of the same users to compare with, in the forms of ``recs``, for the metrics that read them"
    ]
    logged: Annotated[
        Any,
        """propensities of the relevant items, for ``ips`` and ``snips``; with ``examination`` the ranks they had
        One number per row of ``truth``, or rows in the forms of ``truth`` with a number each. With data frames
        ``"truth"``: the columns of ``truth``.
        """,
    ]
    subtopics: Annotated[
        Any,
        """the subtopics that items cover for a user, numbers, for `alpha_dcg` and its kin: rows (user, item, subtopic)
        ``(items, indptr, subtopics)``, {user: {item: subtopic or list of subtopics}}, or a data frame. An item has a
        row for each subtopic. Leave out rows that say that an item does not cover a subtopic.
        """,
    ]


class OtherFrames(TypedDict, total=False):
    """Sides besides lists and truth, and data of items, on a cluster."""

    exclude: Annotated[
        Any,
        """data frame of items that a user has seen; they are removed and the gaps closed
        ``"history"``: remove the items of ``history``. ``"unjudged"``: remove items without a gain of 0 or more.
        """,
    ]
    items: Annotated[
        Any,
        """table of items, for the metrics that read columns of it: a data frame, or as in `fastrec.evaluate`
        The driver collects it, and every task gets a copy. Its number of rows is the default of ``n_items``.
        """,
    ]
    history: Annotated[Any, "data frame of past interactions of the users, for the metrics that read them"]
    reference: Annotated[
        Any,
        """data frame of lists of the same users to compare with, for the metrics that read them
        It needs ranks or scores as ``recs`` does.
        """,
    ]
    logged: Annotated[
        Any,
        """data frame with the propensities of the relevant items, for ``ips`` and ``snips``
        With ``examination`` it has the ranks they had. ``"truth"``: the columns of ``truth``.
        """,
    ]
    subtopics: Annotated[
        Any, "data frame with the subtopics (user, item, subtopic) that items cover, for `alpha_dcg` and its kin"
    ]


class FilesOfUsers(TypedDict, total=False):
    """Further rows of users, in files."""

    history: Annotated[
        Path | None, "path of past interactions (user, item) of the users, for the metrics that read them"
    ]
    reference: Annotated[
        Path | None, "path of lists to compare with, in the form of ``recs``, for the metrics that read them"
    ]
    logged: Annotated[
        Path | None,
        """path of the propensities (user, item, propensity) of the relevant items, for ``ips`` and ``snips``
        With ``examination`` it has the ranks they had. ``"truth"``: the columns of ``truth``.
        """,
    ]
    subtopics: Annotated[
        Path | None,
        "path of the subtopics (user, item, subtopic) that items cover, for `alpha_dcg` and its kin",
    ]
