"""What may have been meant to order lists or to grade the truth: a second look at columns that nobody named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import LABEL, MaybeNone

__all__ = [
    "HINT",
    "Example",
    "Hint",
    "LeftOpen",
    "are_disordered",
    "are_gapless",
    "hints_of_columns",
    "users_with_gaps",
]

Array = np.ndarray[Any, Any]
# what tools and people call such columns, without regard to case and signs between words
RANKS = frozenset(("rank", "ranks", "ranking", "position"))
SCORES = frozenset(
    (
        "score",
        "scores",
        "pred",
        "preds",
        "prediction",
        "predictions",
        "predicted",
        "predictedscore",
        "predictedrating",
        "rating",
        "relevance",
        "est",
        "similarity",
    )
)


GAINS = frozenset(("rating", "ratings", "stars", "score", "scores", "relevance", "grade", "grades"))


class Example(NamedTuple):
    """A user, and what was found there."""

    user: Any
    found: str


class Hint(NamedTuple):
    """What may have been meant; with the name of a count of the report, and the first of the users that it counts."""

    text: str
    counted: str = ""
    example: Example | None = None

    def line(self, counts: Mapping[str, Any]) -> str:
        """A sentence."""
        if self.example is None or self.counted not in counts:
            return self.text
        lists = f"{counts[self.counted]:,} list{'' if counts[self.counted] == 1 else 's'}"
        return f"{self.text} ({lists}, as of user {self.example.user!r}: {self.example.found})"

    def joined(self, other: Hint | None) -> Hint:
        """The same of more users: the first of them does not depend on which came first."""
        examples = [hint.example for hint in (self, other) if hint is not None and hint.example is not None]
        first = min(examples, key=lambda own: (isinstance(own.user, str), own.user), default=None)
        return self._replace(example=first)


HINT = (str, str, MaybeNone((LABEL, str)))  # the form of one in the state of an evaluator


def are_gapless(ranks: Array, lengths: Array) -> bool:
    """Whether it can be seen at once that distinct ranks count every list from 1, or from 0; lists are of `lengths`."""
    lowest = int(ranks.min(initial=1))
    return lowest in (0, 1) and int(ranks.max(initial=0)) - lowest < int(lengths.min(initial=len(ranks)))


def users_with_gaps(ranks: Array, indptr: Array) -> Array:
    """Where the users are whose distinct ranks do not count from 1, or from 0, without a gap."""
    having = np.flatnonzero(np.diff(indptr))
    first, last = (limit.reduceat(ranks, indptr[having]).astype(np.int64) for limit in (np.minimum, np.maximum))
    gapless = ((first == 0) | (first == 1)) & (last - first < np.diff(indptr)[having])
    return np.asarray(having[~gapless])


def _spelled(name: Any) -> str:
    return "".join(filter(str.isalnum, str(name).lower()))


class LeftOpen(NamedTuple):
    """What the columns that are used leave open."""

    order: bool  # no column orders the lists, which are in the order of their rows
    gain: bool  # no column has gains, which would make a difference
    sides: bool  # no gain is named, so the two sides may have been swapped


def hints_of_columns(
    recs: Collection[Any],
    truth: Collection[Any],
    used: Collection[Any],
    left: LeftOpen,
    is_disordered: Callable[[str, str], bool],
    has_gains: Callable[[str], bool | None],
) -> Iterator[str]:
    """Yield hints about columns that no argument names.

    `is_disordered` is given a role and a column of the lists, and tells whether its values fall or rise against the
    order of the rows; `has_gains` whether a column of the truth has numbers other than 1, None without numbers. They
    are called for likely columns only, as looking at values takes time.
    """
    swapped = _hint_of_sides(recs, truth)
    if left.order:
        yield from swapped if left.sides else ()
        for role, name in _likely_orders(recs, used):
            if is_disordered(role, name):
                yield _hint_of_order(role, name)
    if left.gain and not swapped:
        yield from _hint_of_gain({name: has_gains(name) for name in _likely_gains(truth, used)})


def _likely_gains(found: Iterable[Any], used: Collection[Any]) -> list[str]:
    """Columns of the truth that are called like gains, and are not used as something else."""
    return [name for name in found if name not in used and _spelled(name) in GAINS]


def _hint_of_gain(found: Mapping[str, bool | None]) -> list[str]:
    """What to say of such columns: whether there are numbers other than 1 in each; None where it holds no numbers."""
    numeric = [name for name, graded in found.items() if graded is not None]
    if len(numeric) != 1 or not found[numeric[0]]:
        return []
    (name,) = numeric
    line = f"truth has a column {name!r}, not used: all gains are 1, each row is relevant; gain={name!r} takes"
    return [f"{line} it as the gain, and with it min_gain=... is the least gain of a relevant item"]


def _likely_orders(found: Iterable[Any], used: Collection[Any]) -> Iterator[tuple[str, str]]:
    """Columns that are called like ranks or scores, and are not used as something else: (role, name)."""
    for name in found:
        spelled = _spelled(name)
        if name not in used and spelled in RANKS | SCORES:
            yield "rank" if spelled in RANKS else "score", name


def are_disordered(role: str, values: Array, indptr: Array) -> bool:
    """Whether ranks fall, or scores rise, from one row of a user to the next; the rows of users stand end to end."""
    if len(values) < 2:
        return False
    wrong = values[1:] < values[:-1] if role == "rank" else values[1:] > values[:-1]
    ends = indptr[(indptr > 0) & (indptr < len(values))] - 1  # between users nothing is wrong
    wrong[ends] = False
    return bool(wrong.any())


def _hint_of_order(role: str, name: str) -> str:
    """What to say where such a column tells another order than the rows."""
    return (
        "no column of recs is called 'rank' or 'score': lists are in the order of their rows, which is not that of the "
        f"column {name!r}; name it as the {role} if it is what orders them"
    )


def _hint_of_sides(recs: Collection[Any], truth: Collection[Any]) -> list[str]:
    """What to say where the lists have gains, and what is held out has ranks or scores."""
    orders = [name for name in ("rank", "score") if name in truth]
    if "gain" not in recs or "gain" in truth or not orders or {"rank", "score"} & {*recs}:
        return []
    return [f"recs have a column 'gain', and truth has a column {orders[0]!r}: have the two been swapped?"]
