"""Arguments of calls with models, declared once as in `fastrec.arguments.groups`."""

from typing import Annotated, Any, TypedDict


class ModelNames(TypedDict, total=False):
    """Rows and columns of a model."""

    users: Annotated[
        Any,
        """the rows of the model to use, an integer array; default: all
        Row ``users[i]`` belongs to user i of the other arguments, or to the user of that name in ``user_ids``.
        """,
    ]
    user_ids: Annotated[
        Any,
        """a distinct label per row of the model, which dicts and data frames name; default: row numbers, from 0
        Users of ``truth`` that the model lacks count as users without a list. Without ``user_ids`` they are an error.
        """,
    ]
    item_ids: Annotated[
        Any,
        """a distinct id per item of the model, integers or strings; default: column numbers, from 0
        Items of other arguments that the model lacks are never listed, and the report counts those of ``truth`` and
        ``exclude``. Without ``item_ids`` they are an error; ``range(n)`` says that ids are column numbers.
        """,
    ]
    candidates: Annotated[
        Any,
        """items that may be listed: an array of ids for all users, or items of each user in the forms of ``truth``
        By default all items may. The size of the catalogue stays that of the model.
        """,
    ]
    user_bias: Annotated[Any, "array (n_users,), added to the products of factors"]
    item_bias: Annotated[Any, "array (n_items,), added to the products of factors"]


class ModelCatalogue(TypedDict, total=False):
    """Size of the catalogue of a model."""

    n_items: Annotated[
        int | None,
        """the number of items that the model scores, which a function does not say; default: that of other models
        More, if metrics are to count items that the model lacks; a function must score as many.
        """,
    ]


class WorkingMemory(TypedDict, total=False):
    """Limit of the memory for the scores of a model."""

    memory: Annotated[
        int | str | None,
        """bytes for scores and lists at a time, or a string such as ``"4GB"``, at least 64 MB; default: 512 MiB
        With less, fewer users are ranked at a time, and fewer threads work on large catalogues. The bits stay. Input,
        values per user and the returned lists take further memory, and so does a copy of the items' factors or weights
        if ``candidates`` choose some for all users, or ``ties="id_asc"`` or ``"id_desc"`` orders them.
        """,
    ]
