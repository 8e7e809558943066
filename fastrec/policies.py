"""Every named choice of a call: its values, the effect of each, and the code that kernels know it by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from fastrec.checks import check_choice
from fastrec.kernels import codes as op

__all__ = [
    "BY_ID",
    "DUPLICATES",
    "ITEM_POLICIES",
    "LEFT_OUT",
    "NO_FEATURES",
    "NO_HISTORY",
    "NO_RECS",
    "NO_TRUTH",
    "NO_TRUTH_OF_ROWS",
    "ONE_CLASS",
    "ORDERS",
    "POLICIES",
    "RANK_GAPS",
    "SAMPLING",
    "TIES",
    "TIES_OF_ROWS",
    "UNSEEN",
    "Correct",
    "Duplicates",
    "NoFeatures",
    "NoHistory",
    "NoRecs",
    "NoTruth",
    "OneClass",
    "Policy",
    "Sample",
    "Ties",
    "Unseen",
]

Ties = Literal["expected", "input", "worst", "best", "id_asc", "id_desc", "error"]
NoTruth = Literal["skip", "zero", "nan", "error", "judged", "listed"]
NoHistory = Literal["skip", "zero", "nan", "error"]
NoFeatures = Literal["error", "drop"]
Unseen = Literal["zero", "one", "max", "drop", "error"]
NoRecs = Literal["skip", "zero", "nan", "error"]
Duplicates = Literal["error", "first", "miss"]
OneClass = Literal["drop", "half", "zero", "nan", "error"]
Sample = Literal["uniform", "popularity"]
Correct = Literal["none", "rank"]


class PolicyValue(NamedTuple):
    """A value of a policy: its effect in documentation, and the code that kernels know it by, if they read it.

    `outcome` says what became of the data: "3 users without a list, left out".
    """

    effect: str
    code: int = -1
    outcome: str = ""


@dataclass(frozen=True, eq=False)
class Policy:
    """A named choice: the case that it decides, the value if a call gives none, and all values."""

    name: str
    case: str
    default: str
    values: Mapping[str, PolicyValue]
    note: str = ""

    def check(self, value: object) -> None:
        """Raise InputError unless the value is one of this policy."""
        check_choice(self.name, value, self.values)

    def code(self, value: str) -> int:
        """Return the code that kernels know a value by."""
        return self.values[value].code

    def describe(self) -> str:
        """Return the effects of the values for documentation."""
        return " ".join(
            f"``{name}``{' (default)' if name == self.default else ''}: {value.effect}."
            for name, value in self.values.items()
        )


LEFT_OUT, AS_ZERO, NAN = "left out", "counted as 0", "NaN"
SKIP = PolicyValue("leave the user out", op.SKIP, LEFT_OUT)
ZERO = PolicyValue("count the user as 0", op.ZERO, AS_ZERO)
MAKE_NAN = PolicyValue("make the mean NaN", op.NAN, NAN)
RAISE = PolicyValue("raise an error", op.ERROR)

TIES = Policy(
    "ties",
    "order of items with equal scores",
    "expected",
    {
        "expected": PolicyValue("the mean over all orders, in closed form", op.EXPECTED),
        "input": PolicyValue("the given order", op.INPUT),
        "worst": PolicyValue("the lowest gain first", op.WORST),
        "best": PolicyValue("the highest gain first", op.BEST),
        "id_asc": PolicyValue("the smallest id first", op.ID_ASC),
        "id_desc": PolicyValue("the largest id first", op.ID_DESC),
        "error": PolicyValue(
            "raise an error if two items of a list have equal scores; of a model, if a relevant item has the score of "
            "another",
            op.REFUSE,
        ),
    },
    note="Under ``best`` and ``worst``, items of equal gain are in ascending order of their ids.",
)
BY_ID = ("id_asc", "id_desc")  # the values of `TIES` that need ids of items
ORDERS = ("input", "worst", "best", "id_asc", "id_desc")  # the values of `TIES` that choose one order
TIES_OF_ROWS = replace(
    TIES,
    case="order of rows with equal scores, in metrics of lists",
    values={
        **TIES.values,
        "error": PolicyValue("raise an error if a relevant item has the score of another item", op.REFUSE),
    },
    note="Metrics of curves (auc, gauc, average_precision, ks) always treat equal scores as one threshold.",
)
NO_TRUTH = Policy(
    "no_truth",
    "users without a relevant item, with a list or without",
    "skip",
    {
        "skip": SKIP,
        "zero": ZERO,
        "nan": MAKE_NAN,
        "error": RAISE,
        "judged": PolicyValue(
            "count the user as 0 if the truth has rows of the user (with no_recs=skip: and the user has a list), else "
            "leave the user out",
            op.JUDGED,
            "counted as 0 if in the truth",
        ),
        "listed": PolicyValue(
            "0 if the user has a list, else leave the user out", op.LISTED, "counted as 0 if they have a list"
        ),
    },
)
OF_ANY_ROWS = "0 if the user has rows, else leave the user out"
NO_TRUTH_OF_ROWS = Policy(
    "no_truth",
    "users without a positive row, in metrics of lists",
    "skip",
    {
        **NO_TRUTH.values,
        "judged": PolicyValue(OF_ANY_ROWS, op.JUDGED, AS_ZERO),
        "listed": PolicyValue(OF_ANY_ROWS, op.LISTED, AS_ZERO),
    },
)
NO_RECS = Policy(
    "no_recs",
    "users with a relevant item, and an empty list or none",
    "zero",
    {"skip": SKIP, "zero": ZERO, "nan": MAKE_NAN, "error": RAISE},
)
DUPLICATES = Policy(
    "duplicates",
    "an item twice in a list",
    "error",
    {
        "error": RAISE,
        "first": PolicyValue("drop later copies and close the gaps"),
        "miss": PolicyValue("later copies keep their ranks, as misses"),
    },
    "Copies in the truth raise an error under ``error``; else they are merged, with the largest gain. Copies in "
    "``reference`` are treated as those in the lists, if a metric reads it.",
)
NO_HISTORY = Policy(
    "no_history",
    "users without a history, in metrics that read their own",
    "skip",
    {"skip": SKIP, "zero": ZERO, "nan": MAKE_NAN, "error": RAISE},
)
NO_FEATURES = Policy(
    "no_features",
    "an item without the category or vector that a metric reads",
    "error",
    {"error": RAISE, "drop": PolicyValue("leave the item out, and lists of such items alone")},
)
UNSEEN = Policy(
    "unseen",
    "an item of a list without popularity",
    "",
    {
        "zero": PolicyValue("its popularity or novelty is 0"),
        "one": PolicyValue("it has one user, or one row"),
        "max": PolicyValue("it has the largest novelty of all items"),
        "drop": PolicyValue("leave the item out, and lists of such items alone"),
        "error": RAISE,
    },
    "By default each metric has its own, and an item that a column of ``items`` lacks is an error.",
)
ONE_CLASS = Policy(
    "one_class",
    "users with rows of one class only, in gauc",
    "drop",
    {
        "drop": PolicyValue("leave the user out", outcome=LEFT_OUT),
        "half": PolicyValue("count the user as 0.5", outcome="counted as 0.5"),
        "zero": PolicyValue("count the user as 0", outcome=AS_ZERO),
        "nan": PolicyValue("make the mean NaN", outcome=NAN),
        "error": RAISE,
    },
)
RANK_GAPS = Policy(  # of a tool; no argument of a call sets it
    "rank_gaps",
    "ranks without an item",
    "close",
    {
        "close": PolicyValue(
            "an item counts at its place in the list",
            outcome="ranks of lists have gaps, which fastrec closes: an item counts at its place in the list, not at "
            "its rank",
        ),
        "keep": PolicyValue("a rank without an item is a miss"),
        "error": PolicyValue(
            "raise an error",
            outcome="ranks of lists have gaps, and this tool reads ranks as places in some metrics and as an order in "
            "others",
        ),
    },
)
SAMPLE = Policy(
    "sample",
    "how items are drawn, with ``negatives``",
    "uniform",
    {
        "uniform": PolicyValue("each item with the same chance"),
        "popularity": PolicyValue(
            "one after the other, with chances in proportion to the popularity of the items that are left"
        ),
    },
    "The popularity is the column ``popularity`` of ``items``, else the rows of ``history``, else the rows of "
    "``exclude`` and ``truth``. Items without any are not drawn.",
)
CORRECT = Policy(
    "correct",
    "estimate of the metrics of the whole catalogue from sampled lists (Krichene & Rendle 2020)",
    "none",
    {
        "none": PolicyValue("the metrics of the sampled lists"),
        "rank": PolicyValue("those at an unbiased estimate of the rank of each relevant item"),
    },
    "Metrics must be sums over relevant items of a value of their rank, such as recall, precision, dcg and ndcg; "
    "hit_rate and mrr if users have one relevant item. Samples must be uniform.",
)
SAMPLING = {policy.name: policy for policy in (SAMPLE, CORRECT)}
"""The policies of lists that hold a sample of the catalogue."""
POLICIES = {policy.name: policy for policy in (TIES, NO_TRUTH, NO_RECS, DUPLICATES, ONE_CLASS, RANK_GAPS)}
"""The policies by name, with the effects that they have on lists."""
ITEM_POLICIES = {policy.name: policy for policy in (UNSEEN, NO_HISTORY, NO_FEATURES)}
"""The policies of metrics of items and histories; a call that gives none takes the default of each metric."""
