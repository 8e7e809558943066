"""Arguments of lists that hold a sample of the catalogue, declared once as in `fastrec.arguments.groups`."""

from typing import Annotated, TypedDict

from fastrec.policies import SAMPLING, Correct, Sample


class Negatives(TypedDict, total=False):
    """Samples of the catalogue of a model."""

    negatives: Annotated[
        int | None,
        """number of items to draw for each user, without replacement, in place of the whole catalogue
        Neither items of the user's truth nor excluded ones are drawn. The list of a user is these items and those of
        the truth. A user with fewer items left gets all of them, and the report counts such users.
        """,
    ]
    seed: Annotated[
        int,
        """seed of the draws, from 0 to 2^63 - 1
        The draws of a user follow from the seed, the user's row of the model and the items that are left.
        """,
    ]
    sample: Annotated[Sample, SAMPLING["sample"]]


class Sampled(TypedDict, total=False):
    """Lists that already hold a sample."""

    sampled_from: Annotated[
        int | None,
        """size of the catalogue, if each list holds the user's relevant items and a sample of the other items
        The samples are uniform, without replacement, from all items outside the user's truth.
        """,
    ]


class Corrected(TypedDict, total=False):
    """Estimates of the whole catalogue."""

    correct: Annotated[Correct, SAMPLING["correct"]]
