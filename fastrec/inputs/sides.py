"""The sides of an evaluation of lists: what a call passes as rows of users and items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fastrec.checks import with_article
from fastrec.exceptions import Argument, InputError, InputTypeError


class SideKind(NamedTuple):
    """A side: the name of its argument, and what the numbers beside its items are."""

    name: str
    numbers: str  # in messages, of the third array of a tuple, or the values of a dict {user: {item: number}}
    columns: tuple[str, ...] = ()  # of numbers that frames and files may have: the first that is named, else found
    has_users: bool = False  # whether its users are evaluated; rows of other users on other sides are left out
    has_several: bool = False  # whether an item may have several numbers
    judgement: str = ""  # a column that frames and files may have, whose numbers must be above 0
    beside: str = ""  # the side for whose rows it may give numbers alone

    @property
    def is_ordered(self) -> bool:
        """Whether its rows are lists, best item first, by ranks or scores."""
        return "rank" in self.columns

    def number_column(self, named: Any, has: Callable[[str], bool]) -> tuple[str, Any]:
        """Return the role and the name of its column of numbers, `None` without one.

        `named` has the names that a call gives, by role, and as `ordered_by` the role that goes first; `has` says
        whether there is a column.
        """
        given = ((role, getattr(named, role)) for role in self.columns if getattr(named, role) is not None)
        found = ((role, role) for role in sorted(self.columns, key=lambda role: role != named.ordered_by) if has(role))
        return next(given, None) or next(found, ("", None))

    def judgement_column(self, named: Any, has: Callable[[str], bool]) -> Any:
        """Return the name of its column of judgements, `None` without one; arguments as for `number_column`."""
        name = (getattr(named, self.judgement) or self.judgement) if self.judgement else None
        return name if name is not None and has(name) else None


SIDES = {
    side.name: side
    for side in (
        SideKind("recs", "scores", ("rank", "score"), has_users=True),
        SideKind("truth", "gains", ("gain",), has_users=True),
        SideKind("exclude", "scores"),
        SideKind("history", "scores"),
        SideKind("reference", "scores", ("rank", "score")),
        SideKind("subtopics", "subtopics", ("subtopic",), has_several=True, judgement="gain"),
        SideKind("logged", "propensities", ("propensity", "logged_rank"), beside="truth"),
    )
}

READ_SIDES = SIDES | {"candidates": SideKind("candidates", "scores")}
"""The sides, and items of users that a call with a model passes in the same forms."""

UNJUDGED = "unjudged"  # as `exclude`: items without a row of gain 0 or more in the truth
NAMED = {("exclude", "history"): "history", ("exclude", UNJUDGED): "truth", ("logged", "truth"): "truth"}
"""Sides that a call may name in place of rows, and the side that it needs for that."""


READABLE = (*SIDES, "items", "users", "names", "rows", "listed rows")  # by functions of users


class NamedSides:
    """The sides of a batch as attributes, which providers and accumulators of users read by name: `sides["recs"]`."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a side that functions of users may read, or `default` if the call lacks it."""
        side = getattr(self, name.replace(" ", "_"), None) if name in READABLE else None
        return default if side is None else side

    def __getitem__(self, name: str) -> Any:
        if (side := self.get(name)) is None:
            raise KeyError(name)
        return side

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None


def shared_rows(given: Mapping[str, Any]) -> dict[str, str]:
    """Return {side: its name} of the sides that follow from another: `exclude="history"`, `logged="truth"`."""
    found = {}
    for (name, value), other in NAMED.items():
        if isinstance(given.get(name), str) and given[name] == value:
            if given.get(other) is None:
                raise InputError(Argument(name, (value,)), " needs ", Argument(other, (...,)))
            found[name] = value
    return found


def joined_exclude(one: str | None, other: str | None) -> str | None:
    """Return what batches exclude together; None before the first batch."""
    return other if one is None else one if other in (one, None) else "given"


def with_logged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return sides in which `logged="truth"` is the truth itself, for engines that read columns of a side first."""
    shared = shared_rows({"history": "", **given})
    return {**given, "logged": given["truth"]} if "logged" in shared else dict(given)


def kind_of(value: Any) -> str:
    """Return the type of a value as written in an error."""
    place = f"{type(value).__module__}.{type(value).__name__}"
    mend = ", which fastrec.ray.evaluate takes" if place.startswith("ray.data.") else ""
    return f"{with_article(place.removeprefix('builtins.'))}{mend}"


def mixed_forms(given: Mapping[str, Any], what: str, wrong: str) -> InputTypeError:
    """Return the error about a side that has another form than those that are matched by user."""
    return InputTypeError(f"{_spoken(given)} must all be {what}, or none of them: {wrong} is {kind_of(given[wrong])}")


def _spoken(names: Iterable[str]) -> str:
    """Return names in a sentence: "recs, truth and history"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
