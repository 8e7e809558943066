"""Lists and truth prepared for the engine: ids encoded, lists ordered, excluded items and duplicates handled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import MinGain, refuse_path
from fastrec.exceptions import Argument, InputError, RowNumber, shown
from fastrec.inputs.arrays import (
    FlatSide,
    InputForm,
    RawSide,
    classify,
    find_tied_user,
    finite_gains,
    read_sides,
    refuse_model,
)
from fastrec.inputs.arrow import Frame, read_foreign, refuse_other_indexes
from fastrec.inputs.column_names import Columns, refuse_columns
from fastrec.inputs.findings.evidence import Evidence, remark
from fastrec.inputs.findings.sides import (
    evidence_of_lists,
    evidence_of_other_sides,
    evidence_of_unreachable,
    hints_of_ties,
    numbers_of_lists,
)
from fastrec.inputs.frames import read_frames, users_with_gaps
from fastrec.inputs.ids import are_integers, encode_strings, match_widths
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import UserLabels, Users, check_groups, check_order_of_users, check_user_ids, check_weights
from fastrec.kernels import list_order
from fastrec.policies import ORDERS, RANK_GAPS, TIES
from fastrec.runtime.launcher import edges_of, launch

Array = np.ndarray[Any, Any]
NO_IDS = np.zeros(0, np.int32)
MAY_BE_NARROW = ("recs", "truth", "history", "exclude", "candidates")  # long sides, whose ids stay int32 if they are
PLACES_PER_ROW, MIN_PLACES = 64, 1 << 20  # limits on the places that ranks name


class Names(NamedTuple):
    """Names of users and items for errors."""

    users: Array | None
    strings: Sequence[Any] | None

    def user(self, u: int) -> str:
        """Return a user as written in an error."""
        label = u if self.users is None else self.users[u]
        return shown(label.item() if isinstance(label, np.generic) else label)

    def item(self, code: int) -> str:
        """Return an item as written in an error."""
        return repr(self.strings[code] if self.strings is not None else int(code))


class Settings(NamedTuple):
    """Options for preparing lists."""

    ties: str
    duplicates: str
    n_threads: int
    rank_gaps: str = "close"
    min_gain: MinGain | None = None  # of a relevant item
    checked: bool = False  # whether to reject negative ids here: providers read the items before kernels do
    by_kernels: bool = False  # whether these are left to kernels for lists and truth
    logged: str = "propensity"  # what the numbers of logged rows are: "propensity" or "logged_rank"
    only_judged: bool = False  # whether to remove items that the truth does not judge
    tool: str = ""  # whose rule for ties orders items as strings
    warnings_of: Callable[[Mapping[str, Callable[[], Array]]], Iterable[str]] | None = None  # of a tool


class AboutUsers(NamedTuple):
    """Arguments about users, besides their items."""

    user_ids: Any
    groups: Any
    user_weight: Any
    columns: Columns
    labels: UserLabels | None = None  # by id
    elsewhere: tuple[str, ...] = ()  # roles of the columns that name those of a table that is no side, too


class Lists(NamedTuple):
    """Lists and truth of the same users, as flat arrays."""

    rec_items: Array
    rec_indptr: Array
    truth_items: Array
    truth_indptr: Array
    gains: Array | None
    lowest: int = 0
    blocks: Array | None = None  # int32 (2, n_rec_rows): rows of the list with a higher score, and with the same
    lengths: Array | None = None  # int64 (n_users,) if the rows are only the items of the truth that whole lists have

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.rec_indptr) - 1

    @property
    def longest(self) -> tuple[int, int]:
        """Lengths of the longest list and the longest truth."""
        longest_list = longest_row(self.rec_indptr) if self.lengths is None else int(self.lengths.max(initial=0))
        return longest_list, longest_row(self.truth_indptr)


class Prepared(NamedTuple):
    """Input for the engine, and counts of what was changed."""

    lists: Lists
    users: Users
    names: Names
    counts: dict[str, int]
    evidence: tuple[Evidence, ...] = ()  # for findings
    sides: Mapping[str, Any] = {}  # besides lists and truth, for providers of statistics
    exclude: str = "none"  # or "history", or "given"
    recs: FlatSide | None = None  # the lists for providers, if those of `lists` have only items of the truth
    tied_user: int | None = None  # the first user with tied scores in `recs`
    truth: FlatSide | None = None  # as given, with copies
    others: Array | None = None  # int64 (n_users,): items that could be drawn, if lists of a model hold samples


class JoinedSides(NamedTuple):
    """All sides of the same users, with items of one integer type."""

    sides: dict[str, FlatSide]
    users: Users
    strings: Sequence[Any] | None  # that the items encode
    known: Mapping[str, Any]  # data of items, by name; `sides` has their ids, too
    order: str = "place"  # how lists without scores are ordered
    ranks: Array | None = None  # as in `RawSide`
    from_zero: bool = False  # as in `RawSide`
    evidence: tuple[Evidence, ...] = ()  # for findings
    logged: str = ""  # the role of the column of a frame that `logged` has

    @property
    def names(self) -> Names:
        """Names of users and items for errors."""
        return Names(self.users.ids, self.strings)


def prepare(given: Mapping[str, Any], about: AboutUsers, settings: Settings, known: Mapping[str, Any]) -> Prepared:
    """Read all sides, order the lists, and handle excluded items and duplicates.

    `known` has data of items that all users share, by name.
    """
    sides, users, evidence = read_given(given, about, settings)
    return arrange(join_sides(sides, users, known, evidence), settings)


def join_sides(
    sides: Mapping[str, RawSide], users: Users, known: Mapping[str, Any], evidence: tuple[Evidence, ...]
) -> JoinedSides:
    """Return sides with items of one integer type; string ids are encoded together."""
    for name, *roles in (("logged", "propensity", "logged_rank"), ("subtopics", "subtopic")):
        if name in sides and sides[name].extra is None and (name == "logged" or len(sides[name].items)):
            columns = (part for nth, role in enumerate(roles) for part in (" or " * (nth > 0), Argument(role, (...,))))
            forms = ", or in Python pass {user: {item: number}}"
            raise InputError(f"{name} has no numbers, only items: name their column with ", *columns, forms)
    for name, table in known.items():
        sides = {**sides, name: RawSide(table.ids, np.zeros(1, np.int64), None)}
    joined, strings = _join_ids(sides)
    recs = sides["recs"]
    order, role = "score" if recs.extra is not None else recs.order, sides["logged"].role if "logged" in sides else ""
    return JoinedSides(joined, users, strings, known, order, recs.ranks, recs.from_zero, evidence, role)


def arrange(given: JoinedSides, settings: Settings) -> Prepared:
    """Order the lists, and handle excluded items and duplicates."""
    joined, names, ranks = given.sides, given.names, given.ranks
    rec_side, truth_side = joined["recs"], joined["truth"]
    duplicates, n_threads = settings.duplicates, settings.n_threads
    if truth_side.extra is not None:
        truth_side = finite_gains(truth_side)
    if "logged" in joined:
        _check_logged(joined["logged"], given.logged, names, settings)
    counts = {"excluded_items": 0, "duplicates_in_recs": 0, "duplicates_in_truth": 0, "rec_lists_with_gaps": 0}
    evidence = [*given.evidence]
    if given.from_zero and settings.rank_gaps != "close":
        raise InputError("recs has ranks from 0, and this tool counts ranks from 1: add 1 to them")
    if ranks is not None:
        gaps = _look_at_gaps(ranks, rec_side.indptr, names, settings.rank_gaps)
        counts["rec_lists_with_gaps"] = gaps.count
        evidence += [gaps] * (settings.rank_gaps != "keep")
    evidence += evidence_of_lists({**joined, "truth": truth_side}, *names, names.item, settings.min_gain)
    if settings.only_judged or "exclude" in joined or "history" in joined:
        rec_side, counts_of_sides, unreachable = _leave_out(joined, truth_side, names, settings)
        counts |= counts_of_sides
        evidence += unreachable
    if duplicates != "error":
        truth_side, counts["duplicates_in_truth"] = _merge_copies(truth_side, n_threads)
    others, more_counts = _other_sides(given, truth_side, settings)
    if settings.warnings_of is not None:
        evidence += map(remark, settings.warnings_of(numbers_of_lists(rec_side, truth_side, settings.min_gain)))
    if rec_side.extra is not None:
        rec_side, is_tied = _order(rec_side, truth_side, names, settings)
        are_numbers = is_tied and names.strings is None
        evidence += map(remark, hints_of_ties(settings.tool, rec_side.items) if are_numbers else ())
    lowest = 0
    if duplicates != "error":
        refuse_negative_ids(rec_side, "recs", names)
        ordered = rec_side
        rec_side, counts["duplicates_in_recs"] = _drop_copies(rec_side, n_threads, blank=duplicates == "miss")
        if counts["duplicates_in_recs"] and ordered.extra is not None:
            _refuse_tied_copies(ordered, ordered.extra, names)
        lowest = -1 if duplicates == "miss" else 0
    n_rows = len(rec_side.items)
    if ranks is not None and settings.rank_gaps == "keep":
        if n_rows != len(ranks) or duplicates != "error":
            raise InputError("this tool keeps gaps between ranks: leave out exclude and duplicates, which close them")
        refuse_negative_ids(rec_side, "recs", names)
        rec_side, lowest = _fill_gaps(rec_side, ranks, names), -1
    lists = Lists(
        rec_side.items,
        rec_side.indptr,
        truth_side.items,
        truth_side.indptr,
        truth_side.extra,
        lowest,
        None if rec_side.extra is None else _find_blocks(rec_side, n_threads),
    )
    counts |= more_counts | {
        "rec_rows": n_rows,
        "rec_rows_by_rank": n_rows * (given.order == "rank"),
        "rec_rows_by_score": n_rows * (given.order == "score"),
        "rec_rows_by_place": n_rows * (given.order == "place"),
        "truth_rows_with_gains": 0 if joined["truth"].extra is None else len(truth_side.items),
    }
    return Prepared(lists, given.users, names, counts, tuple(evidence), others, truth=joined["truth"])


def look_at_truth(joined: Mapping[str, FlatSide], settings: Settings) -> tuple[dict[str, int], tuple[Evidence, ...]]:
    """Return how many rows of the truth stand in the history and in `exclude`, and evidence of the latter."""
    truth, counts, evidence = joined["truth"], {}, ()  # type: tuple[FlatSide, dict[str, int], tuple[Evidence, ...]]
    for name in ("history", "exclude"):
        if name in joined:
            known = ~_is_not_in(truth, joined[name], settings.n_threads)
            counts[f"truth_rows_in_{name}"] = int(known.sum())
            evidence = (evidence_of_unreachable(truth, known, settings.min_gain),) if name == "exclude" else ()
    return counts, evidence


def _check_logged(side: FlatSide, role: str, names: Names, settings: Settings) -> None:
    """Raise InputError for logged rows with other numbers than the call needs, or with contradictions."""
    if role and role != (wanted := settings.logged):
        needs = ("with", "ranks") if wanted == "logged_rank" else ("without", "propensities")
        found = f" logged must have a column of {needs[1]}, found that of {role}: name it with "
        raise InputError(f"{needs[0]} ", Argument("examination"), found, Argument(wanted, (...,)))
    first = np.ones(len(side.items), bool)
    _mark_copies(side, np.zeros(0), first, settings.n_threads)
    if first.all():
        return
    rows, copies = _find_copies(side)
    numbers = np.asarray(side.extra)[rows]
    differ = copies & ~((numbers[1:] == numbers[:-1]) | (np.isnan(numbers[1:]) & np.isnan(numbers[:-1])))
    if differ.any():
        at = int(differ.argmax())
        who, item = names.user(int(side.users[rows[at]])), names.item(int(side.items[rows[at]]))
        raise InputError(f"logged of user {who}: item {item} has the numbers {numbers[at]} and {numbers[at + 1]}")


def _find_copies(side: FlatSide) -> tuple[Array, Array]:
    """Return rows by user and item, in their order for each, and whether each but the first copies the one before."""
    users = side.users
    rows = np.lexsort((side.items, users))
    return rows, (np.diff(users[rows]) == 0) & (np.diff(side.items[rows]) == 0)


def _other_sides(given: JoinedSides, truth_side: FlatSide, settings: Settings) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the sides besides lists and truth, with lists in order and without copies, and counts of copies."""
    joined, names = given.sides, given.names
    others: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for name, side in joined.items():
        if name not in SIDES:
            if name in given.known:
                others[name] = given.known[name]._replace(codes=side.items)
            continue
        is_other = name not in ("recs", "truth")
        if settings.checked and (is_other or not settings.by_kernels):
            refuse_negative_ids(side, name, names)
        if is_other:
            others[name] = side
        if not (is_other and settings.checked and SIDES[name].is_ordered):
            continue
        ordered = side
        if side.extra is not None:
            ordered, _ = _order(side, truth_side, names, settings)
            user = find_tied_user(_find_blocks(ordered, settings.n_threads), ordered.indptr)
            if user is not None and settings.ties == "expected":
                who = names.user(user)
                wanted = Argument("ties", ORDERS)
                raise InputError(f"{name} of user {who} has tied scores; choose an order with ", wanted)
        if settings.duplicates == "error":
            _refuse_copies(ordered, name, names, settings.n_threads)
            others[name] = ordered
        else:
            below = -longest_row(joined["recs"].indptr)  # so that no miss of a reference equals a miss of a list
            blank = settings.duplicates == "miss"
            found = _drop_copies(ordered, settings.n_threads, blank=blank, below=below)
            others[name], counts[f"duplicates_in_{name}"] = found
    return others, counts


def _look_at_gaps(ranks: Array, indptr: Array, names: Names, rank_gaps: str) -> Evidence:
    """Return evidence of gaps between ranks, with the first user that has one."""
    found = users_with_gaps(ranks, indptr)
    known = found if names.users is None else names.users[found]
    at = int(found[np.argmin(known) if known.dtype.kind in "iu" else min(range(len(known)), key=known.__getitem__)])
    user = at if names.users is None else names.users[at : at + 1].tolist()[0]
    example = user, _around_gap(ranks[indptr[at] : indptr[at + 1]].tolist())
    gaps = Evidence("rank_gaps", len(found), len(indptr) - 1, (example,), RANK_GAPS.values[rank_gaps].outcome)
    if rank_gaps == "error":
        raise InputError(f"{gaps.text}; number them 1, 2, 3, ...")
    return gaps


def _around_gap(ranks: list[int]) -> str:
    """Return the ranks around the first gap of a list as a string."""
    gaps = (at for at in range(1, len(ranks)) if ranks[at] - ranks[at - 1] > 1)
    first = next(gaps, 1) - 1 if ranks[0] in (0, 1) else 0
    before, after = ["..."] * (first > 0), ["..."] * (len(ranks) > first + 3)
    return ", ".join([*before, *map(str, ranks[first : first + 3]), *after])


def _fill_gaps(rec_side: FlatSide, ranks: Array, names: Names) -> FlatSide:
    """Move items to the places that their ranks name, from 1; each empty place is a miss with its own negative id."""
    lengths = np.diff(rec_side.indptr)
    having = np.flatnonzero(lengths)
    lowest, longest = ranks[rec_side.indptr[having]], np.zeros(len(lengths), np.int64)
    longest[having] = ranks[rec_side.indptr[having + 1] - 1]
    if len(lowest) and lowest.min() < 1:
        who = names.user(int(having[lowest.argmin()]))
        raise InputError(f"recs of user {who}: this tool counts ranks from 1, found {lowest.min()}")
    if longest.sum(dtype=np.float64) > max(MIN_PLACES, PLACES_PER_ROW * len(ranks)):
        raise InputError(
            f"recs of user {names.user(int(longest.argmax()))}: rank {longest.max()} is too large for a place in a list"
        )
    indptr = np.concatenate([[0], np.cumsum(longest)])
    starts = np.repeat(indptr[:-1], lengths)
    items = (-1 - (np.arange(indptr[-1]) - np.repeat(indptr[:-1], longest))).astype(rec_side.items.dtype)
    items[starts + ranks - 1] = rec_side.items
    return FlatSide(items, indptr, None)


def read_given(
    given: Mapping[str, Any], about: AboutUsers, settings: Settings
) -> tuple[dict[str, RawSide], Users, tuple[Evidence, ...]]:
    """Return all sides for the same users, these users, and evidence for findings."""
    forms, opened = {}, dict(given)
    for name, value in given.items():
        forms[name] = classify(value)
        if forms[name] is InputForm.OTHER:
            refuse_path(name, value)
    refuse_model("recs", given.get("recs"))
    if InputForm.FOREIGN in forms.values() or about.groups is not None or about.user_weight is not None:
        refuse_other_indexes({**given, "groups": about.groups, "user_weight": about.user_weight})
    for name, form in forms.items():
        if form is InputForm.FOREIGN:
            opened[name] = read_foreign(given[name], name)
        if isinstance(opened[name], Frame):
            forms[name], opened[name] = InputForm.FRAME, opened[name]._replace(name=name)
    if InputForm.FRAME in forms.values():
        sides, users, evidence = _read_frames(opened, about, settings)
    else:
        (sides, users), evidence = _read_arrays(opened, forms, given, about), ()
    if InputForm.FRAME in forms.values() or InputForm.DICT in forms.values():
        evidence = (*evidence, *evidence_of_other_sides(given, sides))
    return sides, users, evidence


def _read_arrays(
    opened: dict[str, Any], forms: Mapping[str, InputForm], given: Mapping[str, Any], about: AboutUsers
) -> tuple[dict[str, RawSide], Users]:
    refuse_columns(about.columns._replace(**dict.fromkeys(about.elsewhere)), "recs and truth are not data frames")
    sides, keys = read_sides(opened, forms, given)
    if keys is not None and about.user_ids is not None:
        raise InputError("user_ids must not be given with dicts: their keys are the users")
    n_users = len(sides["recs"].indptr) - 1
    if keys is None and about.user_ids is about.groups is about.user_weight is about.labels is None:
        return sides, Users(None, np.zeros((0, n_users), np.int32), [], None)
    ids = check_user_ids(keys if keys is not None else about.user_ids, n_users)
    check_order_of_users(None if keys is None else opened["recs"], ids, about.groups, about.user_weight)
    if about.labels is not None and about.groups is not None:
        raise InputError("groups and by both label users: pass one of them")
    codes, labels = check_groups(about.groups if about.labels is None else about.labels.of(ids), n_users)
    return sides, Users(ids, codes, labels, check_weights(about.user_weight, n_users, ids))


def _read_frames(
    frames: dict[str, Any], about: AboutUsers, settings: Settings
) -> tuple[dict[str, RawSide], Users, tuple[Evidence, ...]]:
    if about.user_ids is not None:
        raise InputError("user_ids must not be given with data frames: user=... names their column")
    if about.groups is not None:
        raise InputError("groups must not be given with data frames: by=... names the columns to group by")
    graded = settings.min_gain != "any"
    return read_frames(frames, about.columns, about.labels, about.user_weight, settings.n_threads, graded=graded)


def _join_ids(sides: Mapping[str, RawSide]) -> tuple[dict[str, FlatSide], Sequence[Any] | None]:
    """Return the sides with ids in one integer width, or encoded together, and the encoded strings.

    A call without truth gets an empty one.
    """
    named = (("history" if name == "counts" else name, side.items) for name, side in sides.items())  # of one argument
    has_integers = are_integers("item", named)
    if "truth" not in sides:
        indptr = np.zeros(len(sides["recs"].indptr), np.int64)
        sides = {**sides, "truth": RawSide(np.zeros(0, np.int32), indptr, None)}
    strings: Sequence[Any] | None = None
    if has_integers:
        arrays: list[Array] = []
        for name, side in sides.items():
            ids = side.items if isinstance(side.items, np.ndarray) and side.items.dtype != object else NO_IDS
            arrays.append(ids if name in MAY_BE_NARROW else ids.astype(np.int64, copy=False))
    else:
        arrays, strings = encode_strings(
            np.zeros(0, object) if len(own.items) == 0 else own.items for own in sides.values()
        )
    flat = {}
    for (name, side), items in zip(sides.items(), arrays, strict=True):
        flat[name] = FlatSide(items, side.indptr, side.extra)
    if strings is None:
        recs, truth = match_widths(flat["recs"].items, flat["truth"].items)
        flat |= {"recs": flat["recs"]._replace(items=recs), "truth": flat["truth"]._replace(items=truth)}
    return flat, strings


def refuse_negative_ids(side: FlatSide, name: str, names: Names) -> None:
    """Reject negative ids, which stand for misses in later steps."""
    if len(side.items) and side.items.min() < 0:
        at = int((side.items < 0).argmax())
        user = int(np.searchsorted(side.indptr, at, side="right")) - 1
        place = int(at - side.indptr[user])
        found = f"{name} of user {names.user(user)}: item ids must not be negative, found {side.items[at]}"
        raise InputError(found, f" at rank {place + 1}" if name == "recs" else RowNumber.at(place, "position"))


def _over_users(kernel: Any, n_users: int, *given: Any, n_rows: int, n_threads: int) -> None:
    """Run a kernel that sorts the rows of users."""
    edges = edges_of(n_users, n_threads)
    launch(kernel, len(edges) - 1, *given, edges, work=32 * n_rows, n_threads=n_threads)


def _leave_out(
    joined: Mapping[str, FlatSide], truth_side: FlatSide, names: Names, settings: Settings
) -> tuple[FlatSide, dict[str, int], tuple[Evidence, ...]]:
    """Return the lists without excluded items, or without items that have no gain of 0 or more; counts and evidence."""
    rec_side, n_threads = joined["recs"], settings.n_threads
    if settings.only_judged or "exclude" in joined:
        refuse_negative_ids(rec_side, "recs", names)
    counts, evidence = look_at_truth(joined, settings)
    if "exclude" in joined:
        keep = _is_not_in(rec_side, joined["exclude"], n_threads)
        rec_side, counts["excluded_items"] = _compact(rec_side, keep)
    if settings.only_judged:
        judged, _ = _compact(truth_side, truth_side.gains >= 0)
        rec_side, counts["excluded_items"] = _compact(rec_side, ~_is_not_in(rec_side, judged, n_threads))
    return rec_side, counts, evidence


def _is_not_in(rec_side: FlatSide, exclude_side: FlatSide, n_threads: int) -> Array:
    """Return which rows hold an item that the other side of the user lacks."""
    keep = np.ones(len(rec_side.items), bool)
    known, known_indptr = read_only(exclude_side.items.astype(np.int64)), read_only(exclude_side.indptr)
    given = read_only(rec_side.items), read_only(rec_side.indptr), known, known_indptr, keep
    n_users, n_rows = len(rec_side.indptr) - 1, len(keep) + len(known)
    _over_users(list_order.mark_excluded, n_users, *given, n_rows=n_rows, n_threads=n_threads)
    return keep


def _merge_copies(truth_side: FlatSide, n_threads: int) -> tuple[FlatSide, int]:
    """Merge duplicates in the truth into one item with the largest gain."""
    keep = np.ones(len(truth_side.items), bool)
    gains = np.zeros(0) if truth_side.extra is None else truth_side.extra.copy()
    _mark_copies(truth_side, gains, keep, n_threads)
    return _compact(truth_side._replace(extra=None if truth_side.extra is None else gains), keep)


def _refuse_copies(side: FlatSide, name: str, names: Names, n_threads: int) -> None:
    """Reject lists with an item twice. Kernels find copies in the lists that they evaluate, but not on other sides."""
    first = np.ones(len(side.items), bool)
    _mark_copies(side, np.zeros(0), first, n_threads)
    if not first.all():
        at = int(first.argmin())
        user = int(np.searchsorted(side.indptr, at, side="right")) - 1
        raise InputError(
            f"{name} of user {names.user(user)}: item {names.item(side.items[at])} appears twice, the second time at "
            f"rank {at - side.indptr[user] + 1}; ",
            Argument("duplicates", ("first", "miss")),
            " would accept it",
        )


def _drop_copies(rec_side: FlatSide, n_threads: int, *, blank: bool, below: int = 0) -> tuple[FlatSide, int]:
    """Remove later copies from a list, or with `blank` keep them as misses with an id under `below`."""
    keep = np.ones(len(rec_side.items), bool)
    _mark_copies(rec_side, np.zeros(0), keep, n_threads)
    if not blank:
        return _compact(rec_side, keep)
    # each gets its own negative id, which matches neither an item nor another copy
    ranks = np.arange(len(keep)) - np.repeat(rec_side.indptr[:-1], np.diff(rec_side.indptr))
    items = np.where(keep, rec_side.items, (below - 1 - ranks).astype(rec_side.items.dtype))
    return rec_side._replace(items=items), int(len(keep) - keep.sum())


def _mark_copies(side: FlatSide, values: Array, keep: Array, n_threads: int) -> None:
    given = read_only(side.items), read_only(side.indptr), values, keep
    _over_users(list_order.mark_copies, len(side.indptr) - 1, *given, n_rows=len(keep), n_threads=n_threads)


def _compact(side: FlatSide, keep: Array) -> tuple[FlatSide, int]:
    """Return the side without the rows that `keep` leaves out, and their number."""
    dropped = int(len(keep) - keep.sum())
    if not dropped:
        return side, 0
    before = np.concatenate([[0], np.cumsum(keep)])
    extra = None if side.extra is None else side.extra[keep]
    return FlatSide(side.items[keep], before[side.indptr].astype(np.int64), extra), dropped


def _order(rec_side: FlatSide, truth_side: FlatSide, names: Names, settings: Settings) -> tuple[FlatSide, bool]:
    """Order lists by descending score, keep the scores if ties=expected and some are tied; return if some are tied."""
    assert rec_side.extra is not None
    scores, items, indptr = read_only(rec_side.extra), read_only(rec_side.items), read_only(rec_side.indptr)
    n_users, ties, n_threads = len(indptr) - 1, settings.ties, settings.n_threads
    n_tasks = len(edges_of(n_users, n_threads)) - 1
    unordered, found = np.empty(n_tasks, np.int64), np.empty((n_tasks, 4), np.int64)
    given: tuple[Any, ...] = indptr, scores, unordered
    _over_users(list_order.find_unordered, n_users, *given, n_rows=len(items), n_threads=n_threads)
    if unordered.max() < 0:
        return rec_side._replace(extra=None), False
    gains = np.maximum(np.ones(len(truth_side.items)) if truth_side.extra is None else truth_side.extra, 0.0)
    out, n_rows = np.empty(len(items), items.dtype), len(items) + len(truth_side.items)
    truth = read_only(truth_side.items), read_only(truth_side.indptr), read_only(gains)

    def order(ordered: Array) -> None:
        given = items, indptr, scores, *truth, TIES.code(ties), out, ordered, found
        _over_users(list_order.order_lists, n_users, *given, n_rows=n_rows, n_threads=n_threads)

    order(np.empty(0))
    for user, first, second in found[found[:, 1] >= 0, 1:].tolist():
        row = slice(indptr[user], indptr[user + 1])
        a, b = (names.item(items[row][at]) for at in (first, second))
        raise InputError(
            f"recs of user {names.user(user)}: items {a} and {b} have the same score {scores[row][first]}; "
            "choose a rule with ",
            Argument("ties", ("expected", *ORDERS)),
        )
    is_tied = bool(found[:, 0].any())
    if ties != "expected" or not is_tied:
        return rec_side._replace(items=out, extra=None), is_tied
    ordered = np.empty(len(items))
    order(ordered)
    return rec_side._replace(items=out, extra=ordered), True


def _refuse_tied_copies(rec_side: FlatSide, scores: Array, names: Names) -> None:
    """Reject tied copies of an item in lists by score: without a rule, none of them comes first."""
    rows, copies = _find_copies(rec_side)
    tied = copies & (scores[rows[1:]] == scores[rows[:-1]])
    if tied.any():
        at = rows[int(tied.argmax())]
        who, item = names.user(int(rec_side.users[at])), names.item(rec_side.items[at])
        raise InputError(
            f"recs of user {who}: item {item} appears twice with the "
            "same score; remove one, or choose which copy comes first with ",
            Argument("ties", ORDERS),
        )


def _find_blocks(rec_side: FlatSide, n_threads: int) -> Array | None:
    """Count, per row of the ordered lists, rows with a higher score and with the same; None without ties."""
    if rec_side.extra is None:
        return None
    blocks = np.empty((2, len(rec_side.items)), np.int32)
    given = read_only(rec_side.indptr), read_only(rec_side.extra), blocks
    n_users, n_rows = len(rec_side.indptr) - 1, len(rec_side.items)
    _over_users(list_order.find_blocks, n_users, *given, n_rows=n_rows, n_threads=n_threads)
    return blocks if blocks[1].max(initial=1) > 1 else None
