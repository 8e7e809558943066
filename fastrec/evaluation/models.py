"""Evaluation of models over their whole catalogue: scores in blocks of users, ranks of relevant items, first items."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.model_room import Room, find_room
from fastrec.evaluation.sampled import Sample, as_weights, popularity_of
from fastrec.exceptions import Argument, InputError, InputTypeError, renaming
from fastrec.inputs.arrays import FlatSide, RawSide, read_side
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.frames import refuse_columns
from fastrec.inputs.ids import kind_of_ids
from fastrec.inputs.lists import (
    AboutUsers,
    JoinedSides,
    Lists,
    Names,
    Prepared,
    Settings,
    arrange,
    finite_gains,
    join_sides,
    read_given,
    sides_apart,
)
from fastrec.inputs.models import Model, ModelCall
from fastrec.inputs.parts import part_of_users, take_rows
from fastrec.inputs.ragged import read_only
from fastrec.inputs.sides import READ_SIDES, spoken
from fastrec.inputs.slots import BatchSides
from fastrec.inputs.users import Users, as_labels, check_groups, check_keys
from fastrec.kernels import models as kernels
from fastrec.runtime.blas import one_blas_thread
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads

__all__ = ["ModelParts", "Reads", "Working", "find_top"]

Array = np.ndarray[Any, Any]
Watch = Callable[[int, int], Any]
BLOCKS_PER_ROUND = 16  # of each thread; between rounds a call can be interrupted and reports progress
ROWS_AT_ONCE, USERS_AT_ONCE = 1 << 20, 1 << 16
NO_NUMBERS = read_only(np.zeros(0, np.int64))
NO_DRAW = kernels.Draw(0, 0, NO_NUMBERS, NO_NUMBERS, NO_NUMBERS)
NO_ROWS = kernels.ItemRows(read_only(np.zeros(0, np.int32)), read_only(np.zeros(1, np.int64)))


class Working(NamedTuple):
    """How to work through the users of a model."""

    memory: int | None  # bytes for scores and lists; None for the default
    whole: bool  # whether the call has all users: they are prepared in parts, and draws may depend on all of them
    reviewed: bool  # whether a second pass follows
    progress: Watch | None
    exclude: str = "none"  # as in `Prepared`


class Reads(NamedTuple):
    """What the metrics of a call read."""

    depth: int | None  # the rank up to which they read the order of hits; None for all ranks
    n_listed: int | None  # items of lists that providers read; None for whole lists
    sample: Sample | None = None  # what to draw for each user; None for the whole catalogue


# Users and sides


class _ModelUsers(NamedTuple):
    """The sides of users, and the row of the model of each user; -1 for users that the model lacks."""

    joined: JoinedSides
    rows: Array


def _read_users(
    call: ModelCall, given: Mapping[str, Any], about: AboutUsers, settings: Settings, known: Mapping[str, Any]
) -> _ModelUsers:
    """Read the sides of the users of a model."""
    given = {name: open_foreign(side, name) for name, side in given.items()}
    given = {name: own._replace(name=name) if isinstance(own, Frame) else own for name, own in given.items()}
    matched = any(isinstance(side, Mapping | Frame) for side in given.values())
    if not any(isinstance(side, Frame) for side in given.values()):
        refuse_columns(about.columns, "no side of the call is a data frame")
    for role in ("rank", "score"):
        if getattr(about.columns, role) is not None and not isinstance(given.get("reference"), Frame):
            named = Argument(role, (getattr(about.columns, role),))
            raise InputError(named, " names a column of lists: with a model, only a data frame as reference has one")
    chosen = _chosen_rows(call, given, matched=matched)
    names = chosen if call.user_ids is None else call.user_ids[chosen]
    if matched:
        _check_forms(given, names)
        recs = _users_as_lists(names, given, about)
        with renaming(lambda name: "user_ids" if name == Argument("recs") else name):
            sides, users, lines = read_given({"recs": recs, **given}, about._replace(user_ids=None), settings)
        assert users.ids is not None
        of_names = dict(zip(names.tolist(), chosen.tolist(), strict=True))
        rows = np.fromiter((of_names.get(user, -1) for user in users.ids.tolist()), np.int64, len(users.ids))
    else:
        given = {name: _as_tuple(read_side(side, name, READ_SIDES[name].numbers)) for name, side in given.items()}
        _check_numbers_of_users(given, len(chosen))
        ids = names if call.user_ids is not None or call.rows is not None else None
        nobody = (np.zeros(0, np.int64), np.zeros(len(chosen) + 1, np.int64))
        sides, users, lines = read_given({"recs": nobody, **given}, about._replace(user_ids=ids), settings)
        rows = chosen
    kinds = {name: kind_of_ids(side.items) for name, side in sides.items()} | {"recs": kind_of_ids(call.item_ids)}
    if len(set(kinds.values()) - {"none"}) > 1:
        listing = ", ".join(f"{'item_ids' if name == 'recs' else name}: {kind}" for name, kind in kinds.items())
        raise InputTypeError(f"item ids must be of one type on all sides, found {listing}")
    sides["recs"] = RawSide(call.item_ids, np.zeros(len(rows) + 1, np.int64), None)
    joined = join_sides(sides, users, known, lines)._replace(order="score")
    found = _ModelUsers(joined, rows)
    return _take_users(found, np.flatnonzero(rows >= 0)) if call.rows is not None and (rows < 0).any() else found


def _check_forms(given: Mapping[str, Any], names: Array) -> None:
    """Raise InputTypeError unless sides that are matched by user are all dicts, or all data frames."""
    for kind, what in ((Mapping, "dicts"), (Frame, "data frames")):
        if any(isinstance(side, kind) for side in given.values()):
            wrong = next((name for name, side in given.items() if not isinstance(side, kind)), None)
            if wrong is not None:
                found = type(given[wrong]).__name__
                raise InputTypeError(f"{spoken(given)} must all be {what}, or none of them: {wrong} is a {found}")
            if kind is Mapping:
                check_keys({"user_ids": names.tolist(), **given})


def _as_tuple(side: RawSide) -> tuple[Any, ...]:
    return side.items, side.indptr, side.extra


def _chosen_rows(call: ModelCall, given: Mapping[str, Any], *, matched: bool) -> Array:
    """Return the rows of the model that are evaluated, or that sides may name."""
    if call.rows is not None:
        return call.rows
    if call.model.n_users is not None:
        return np.arange(call.model.n_users)
    if call.user_ids is not None:
        return np.arange(len(call.user_ids))
    if matched or not given:
        raise InputError(
            "a function as the model needs ",
            Argument("users", (...,)),
            " or ",
            Argument("user_ids", (...,)),
            ": the users that it scores",
        )
    name = next(iter(given))
    return np.arange(len(read_side(given[name], name, READ_SIDES[name].numbers).indptr) - 1)


def _users_as_lists(names: Array, given: Mapping[str, Any], about: AboutUsers) -> Any:
    """Return lists that name the users of a model, in the form of the other sides."""
    if not any(isinstance(side, Frame) for side in given.values()):
        return dict.fromkeys(names.tolist(), ())
    import pyarrow as pa

    user, item = about.columns.user, about.columns.item
    none = np.zeros(len(names), np.int64)
    ordering = {name: none + 1 for name in (about.columns.rank, about.columns.score) if name is not None}
    return pa.table({**ordering, item or "item_id": none, user or "user_id": names.tolist()})


def _check_numbers_of_users(given: Mapping[str, tuple[Any, ...]], n_users: int) -> None:
    """Raise InputError unless sides that are matched by position have the users of the model."""
    for name, side in given.items():
        if len(side[1]) - 1 != n_users:
            raise InputError(
                f"the model and {name} must have the same users in the same order, found {n_users} and "
                f"{len(side[1]) - 1} users: choose rows of the model with ",
                Argument("users", (...,)),
                ", or match dicts or data frames with ",
                Argument("user_ids", (...,)),
            )


def _take_users(given: _ModelUsers, at: Array) -> _ModelUsers:
    """Return some users."""
    joined, users = given.joined, given.joined.users
    sides = {
        name: take_rows(side, at) if name in READ_SIDES and len(side.indptr) == len(given.rows) + 1 else side
        for name, side in joined.sides.items()
        if name != "recs"
    }
    sides["recs"] = joined.sides["recs"]._replace(indptr=np.zeros(len(at) + 1, np.int64))
    plain = users._replace(order=None)
    codes, keys = check_groups({name: labels[at] for name, labels in plain.labels().items()} or None, len(at))
    order = None if users.order is None else np.argsort(np.argsort(users.order)[at])
    ids = None if users.ids is None else as_labels(users.ids[at].tolist())
    weights = None if users.weights is None else users.weights[at]
    return _ModelUsers(joined._replace(sides=sides, users=Users(ids, codes, keys, weights, order)), given.rows[at])


def _as_columns(side: FlatSide | None, codes: Array) -> kernels.ItemRows:
    """Return items as columns of the scores, -1 for items that the model lacks."""
    if side is None:
        return NO_ROWS
    columns = np.empty(len(side.items), np.int32)
    order = None if np.array_equal(codes, np.arange(len(codes))) else np.argsort(codes)
    known = codes if order is None else codes[order]
    for first in range(0, len(columns), ROWS_AT_ONCE):  # whole columns of 64-bit numbers would take much memory
        items = side.items[first : first + ROWS_AT_ONCE]
        if order is None:
            found = np.where((items >= 0) & (items < len(codes)), items, -1)
        else:
            at = np.minimum(np.searchsorted(known, items), len(codes) - 1)
            found = np.where(known[at] == items, order[at], -1)
        columns[first : first + ROWS_AT_ONCE] = found
    return kernels.ItemRows(read_only(columns), read_only(side.indptr))


# Blocks of users


@functools.cache
def _entry(scores: str) -> Entry:
    return Entry(kernels.visit_block, f"visit_block-{scores}", allocates=True)


Work = Callable[[kernels.ScoredBlock], int]  # returns the position of a user with a score of NaN, or -1


class _Walk(NamedTuple):
    """A walk over the users of a model, in blocks."""

    model: Model
    users: Array  # int64: those that the model has, by ascending row
    rows: Array  # int64: their rows
    names: Names
    room: Room
    n_threads: int
    report: Watch

    def run(self, work: Work) -> None:
        """Score all users in blocks of fixed size, and work on each block."""
        model, n = self.model, self.room.users_of_block
        blocks = range(-(-len(self.rows) // n))
        if model.is_called:
            self._run_in_order(work, blocks, n)
            return
        spare: list[Array] = []
        n_threads = min(self.n_threads, self.room.blocks)

        def score(at: int) -> None:
            own = slice(at * n, min((at + 1) * n, len(self.rows)))
            try:
                memory = spare.pop()
            except IndexError:
                memory = np.empty((n, model.n_items), model.dtype)
            scores = memory[: own.stop - own.start]
            model.write(self.rows[own], scores)
            self._check(work(kernels.ScoredBlock(scores, read_only(self.users[own]))), own.start)
            spare.append(memory)

        per_round = n_threads * BLOCKS_PER_ROUND
        with one_blas_thread():
            for start in range(0, len(blocks), per_round):
                done = min(start + per_round, len(blocks))
                run_in_threads(score, range(start, done), n_threads)
                self.report(min(done * n, len(self.rows)), len(self.rows))

    def _run_in_order(self, work: Work, blocks: range, n: int) -> None:
        """Ask a model for one block after the other, and work on each in threads."""
        memory = np.empty((n, self.model.n_items), self.model.dtype)
        for at in blocks:
            first, last = at * n, min((at + 1) * n, len(self.rows))
            scores = memory[: last - first]
            self.model.write(self.rows[first:last], scores)
            edges = np.linspace(0, last - first, self.n_threads + 1).astype(int).tolist()

            def work_on(part: int, first: int = first, scores: Array = scores, edges: list[int] = edges) -> None:
                own = slice(edges[part], edges[part + 1])
                users = read_only(self.users[first + own.start : first + own.stop])
                self._check(work(kernels.ScoredBlock(scores[own], users)), first + own.start)

            run_in_threads(work_on, range(self.n_threads), self.n_threads)
            self.report(last, len(self.rows))

    def _check(self, wrong: int, first: int) -> None:
        if wrong >= 0:
            user = self.names.user(int(self.users[first + wrong]))
            raise InputError(f"the model must not score NaN, found NaN for user {user}: -inf ranks an item last")


def _walk(model: Model, given: _ModelUsers, room: Room, n_threads: int, counter: _PartedProgress) -> _Walk:
    users = np.flatnonzero(given.rows >= 0)
    users = users[np.argsort(given.rows[users], kind="stable")]
    return _Walk(model, users, given.rows[users], given.joined.names, room, n_threads, counter.next_part(len(users)))


def _parts(given: _ModelUsers, room: Room) -> Iterator[_ModelUsers]:
    """Yield users of the model in parts, in the order of the report; at least one part."""
    order = given.joined.users.order
    order = np.arange(len(given.rows)) if order is None else order
    for first in range(0, max(len(order), 1), room.users_of_part):
        at = order[first : first + room.users_of_part]
        yield _ModelUsers(part_of_users(given.joined, at), given.rows[at])


class _PartedProgress:
    """Progress over parts and passes."""

    def __init__(self, watch: Watch | None, total: int) -> None:
        self._watch, self._total, self._before = watch, total, 0

    def next_part(self, n_users: int) -> Watch:
        """Return the watch of the next part."""
        before = self._before
        self._before += n_users

        def report(done: int, _: int) -> None:
            if self._watch is not None:
                self._watch(before + done, self._total)

        return report


class _Visit(NamedTuple):
    """What a walk finds."""

    ranked: kernels.Ranked
    top: kernels.FirstItems


def _visit(walk: _Walk, n_users: int, sides: kernels.Sides, depth: int, k: int, draw: kernels.Draw = NO_DRAW) -> _Visit:
    """Rank the relevant items of all users, and list the first k items."""
    model, n_rows = walk.model, len(sides.relevant.columns)
    above, tied, before = (np.full(n_rows, first, np.int32) for first in (-1, 0, 0))
    lengths, excluded, others, n_first = (np.zeros(n_users, np.int64) for _ in range(4))
    ranked = kernels.Ranked(above, tied, before, lengths, excluded, others)
    shape = n_users, min(k, model.n_items)
    top = kernels.FirstItems(np.zeros(shape, np.int32), np.zeros(shape, model.dtype), n_first)
    arguments = sides, draw, min(depth, model.n_items), shape[1], ranked, top
    none = kernels.ScoredBlock(np.empty((0, model.n_items), model.dtype), read_only(np.zeros(0, np.int64)))
    kernel = _entry(str(model.dtype)).suited_to(len(walk.rows) * model.n_items, none, *arguments)
    walk.run(lambda block: kernel(block, *arguments))
    return _Visit(ranked, top)


# Ranks and lists


def _place(ranked: kernels.Ranked, lists: Lists, ties: str, names: Names) -> Lists:
    """Return lists of the relevant items that are listed, by rank, with the lengths of the whole lists."""
    listed = np.concatenate([[0], np.cumsum(ranked.above >= 0)])
    indptr = listed[lists.truth_indptr].astype(np.int64)
    items, blocks = np.empty(indptr[-1], lists.truth_items.dtype), np.empty((2, indptr[-1]), np.int32)
    for first in range(0, lists.n_users, USERS_AT_ONCE):  # sorts and products of all users would take much memory
        last = min(first + USERS_AT_ONCE, lists.n_users)
        own, places = _place_some(ranked, lists, ties, names, first, last)
        part = slice(indptr[first], indptr[last])
        items[part] = lists.truth_items[own]
        blocks[:, part] = places
    return lists._replace(rec_items=items, rec_indptr=indptr, blocks=blocks, lengths=ranked.lengths)


def _place_some(
    ranked: kernels.Ranked, lists: Lists, ties: str, names: Names, first: int, last: int
) -> tuple[Array, Array]:
    """Return the rows of the relevant items of users first..last-1 that are listed, by rank, and their blocks."""
    start, end = lists.truth_indptr[first], lists.truth_indptr[last]
    at = start + np.flatnonzero(ranked.above[start:end] >= 0)
    users = np.searchsorted(lists.truth_indptr[first : last + 1], at, side="right") - 1 + first
    above, tied, before = ranked.above[at], ranked.tied[at], ranked.before[at]
    gains = np.ones(len(at)) if lists.gains is None else np.maximum(lists.gains[at], 0.0)
    if ties == "error":
        wrong = (tied > 1) & (gains > 0)
        if wrong.any():
            who = names.user(int(users[wrong.argmax()]))
            rule = Argument("ties", ("error",))
            raise InputError(f"user {who} has a relevant item with the same score as another item, and ", rule)
    elif ties in ("best", "worst"):
        above = above + _places_by_gain(users, above, tied, before, gains, best=ties == "best")
    elif ties != "expected":
        above = above + before
    if ties != "expected":
        tied = np.ones_like(tied)
    order = np.lexsort((before, above, users))  # tied items in the order of the list, as kernels add gains
    return at[order], np.stack([above[order], tied[order]])


def _places_by_gain(users: Array, above: Array, tied: Array, before: Array, gains: Array, *, best: bool) -> Array:
    """Return the places of relevant items among the items with their score, ordered by gain, then by column."""
    block = np.unique(np.stack([users, above]), axis=1, return_inverse=True)[1].reshape(-1)
    width = int(tied.max(initial=0)) + 1
    keys, positive = block * width + before, gains > 0
    places = np.empty(len(users), np.int64)
    own = np.flatnonzero(positive)
    order = own[np.lexsort((before[own], -gains[own] if best else gains[own], block[own]))]
    firsts = np.searchsorted(block[order], block[order])
    sizes = np.searchsorted(block[order], block, side="right") - np.searchsorted(block[order], block)
    places[order] = np.arange(len(order)) - firsts + (0 if best else (tied - sizes)[order])
    known = np.sort(keys[own])
    earlier = np.searchsorted(known, keys) - np.searchsorted(known, block * width)
    others = before - earlier + (sizes if best else 0)
    places[~positive] = others[~positive]
    return places


def _flat_top(top: kernels.FirstItems, codes: Array, k: int) -> FlatSide:
    """Return the first k items of all users, end to end."""
    lengths = np.minimum(top.lengths, k)
    listed = np.arange(top.columns.shape[1]) < lengths[:, None]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return FlatSide(codes[top.columns[listed]], indptr, top.scores[listed])


def _find_tied(top: kernels.FirstItems) -> int | None:
    """Return the first user with equal scores among the first items; None without any."""
    same = (top.scores[:, 1:] == top.scores[:, :-1]) & (np.arange(1, top.scores.shape[1]) < top.lengths[:, None])
    return int(same.any(axis=1).argmax()) if same.any() else None


def find_top(
    call: ModelCall,
    k: int,
    given: Mapping[str, Any],
    about: AboutUsers,
    n_threads: int,
    progress: Watch | None,
    memory: int | None,
) -> tuple[Array, Array, Array]:
    """Return the first k items of each row of a model that the call chooses: items, indptr, scores."""
    sides = dict(given) if call.candidates is None else {**given, "candidates": call.candidates}
    matched = any(isinstance(open_foreign(side, name), Mapping | Frame) for name, side in sides.items())
    named = call._replace(rows=_chosen_rows(call, sides, matched=matched))
    users = _read_users(named, sides, about, Settings("input", "first", n_threads), {})
    assert named.rows is not None
    at = np.empty(len(named.rows), np.int64)
    at[np.argsort(named.rows)] = np.argsort(users.rows)
    users = _take_users(users, at)
    codes, sides_of_users = users.joined.sides["recs"].items, users.joined.sides
    room = find_room(call.model, sides_of_users, len(at), k, memory)
    lists, counter = [], _PartedProgress(progress, len(at))
    for part in _parts(users, room):
        walk = _walk(call.model, part, room, n_threads, counter)
        found = _visit(walk, len(part.rows), _sides_of(part, NO_ROWS), 1, k)
        lists.append(_flat_top(found.top, np.arange(len(codes)), k))
    items, scores = (np.concatenate(own) for own in zip(*((own.items, own.extra) for own in lists), strict=True))
    ends = np.concatenate([np.diff(own.indptr) for own in lists])
    return call.item_ids[items], np.concatenate([[0], np.cumsum(ends)]).astype(np.int64), scores


def _sides_of(users: _ModelUsers, relevant: kernels.ItemRows) -> kernels.Sides:
    sides = users.joined.sides
    codes = sides["recs"].items
    return kernels.Sides(relevant, *(_as_columns(sides.get(name), codes) for name in ("exclude", "candidates")))


# Evaluation


class ModelParts:
    """Users of a model, prepared as `prepare` does lists of all items that the model scores, part by part.

    Lists are not made if the metrics read only hits and first items. Each iteration scores all users again.
    """

    def __init__(
        self,
        call: ModelCall,
        given: Mapping[str, Any],
        about: AboutUsers,
        settings: Settings,
        known: Mapping[str, Any],
        reads: Reads,
        working: Working,
    ) -> None:
        sides = dict(given) if call.candidates is None else {**given, "candidates": call.candidates}
        self._users, self._model = _read_users(call, sides, about, settings, known), call.model
        joined = self._users.joined
        codes, columns = joined.sides["recs"].items, np.arange(self._model.n_items)
        if settings.ties in ("id_asc", "id_desc"):  # columns in this order, which kernels keep among tied items
            order = np.argsort(codes if settings.ties == "id_asc" else -codes)
            self._model, codes, columns = self._model.restricted(order), codes[order], np.argsort(order)
            joined.sides["recs"] = joined.sides["recs"]._replace(items=codes)
        self._settings, self._reads, self._exclude = settings, reads, working.exclude
        self._draw = NO_DRAW if reads.sample is None else _draw(reads.sample, self._users, columns, whole=working.whole)
        n_users = len(self._users.rows)
        self._room = find_room(self._model, joined.sides, n_users, reads.n_listed, working.memory)
        self.made_again = working.reviewed and not self._room.keeps_lists  # whether a second pass scores users again
        self._counter = _PartedProgress(working.progress, (1 + self.made_again) * int((self._users.rows >= 0).sum()))
        if not working.whole:
            self._room = self._room._replace(users_of_part=max(n_users, 1))
        elif joined.sides["truth"].extra is not None:
            finite_gains(joined.sides["truth"])  # here, as its errors count the rows of all users

    @property
    def apart(self) -> tuple[str, ...]:
        """The sides of which no user of the model has a row."""
        return tuple(sides_apart(self._users.joined.sides, self._users.rows >= 0))

    def __iter__(self) -> Iterator[Prepared]:
        """Yield parts of the users."""
        has_ids = self._users.joined.users.ids is not None
        for part in _parts(self._users, self._room):
            prepared = self._prepare(part)
            users = prepared.users if has_ids else prepared.users._replace(ids=None)
            yield prepared._replace(users=users, exclude=self._exclude)

    def _prepare(self, users: _ModelUsers) -> Prepared:
        model, settings, reads, joined = self._model, self._settings, self._reads, users.joined
        codes, n_users = joined.sides["recs"].items, len(users.rows)
        walk = _walk(model, users, self._room, settings.n_threads, self._counter)
        apart = {name: side for name, side in joined.sides.items() if name not in ("exclude", "candidates")}
        apart["recs"] = FlatSide(codes[:0], np.zeros(n_users + 1, np.int64), None)
        draw = self._draw._replace(rows=read_only(users.rows))
        if reads.n_listed is None:
            kept = NO_ROWS if reads.sample is None else _as_columns(joined.sides["truth"], codes)
            found = _visit(walk, n_users, _sides_of(users, kept), 1, model.n_items, draw)
            whole = _flat_top(found.top, codes, model.n_items)
            assert whole.extra is not None
            apart["recs"] = whole._replace(extra=whole.extra.astype(np.float64))
            prepared = arrange(joined._replace(sides=apart), settings)
        else:
            prepared = arrange(joined._replace(sides=apart), settings)
            lists = prepared.lists
            truth = _as_columns(FlatSide(lists.truth_items, lists.truth_indptr, None), codes)
            more = reads.n_listed + 1 if reads.n_listed else 0  # the next one may have the score of the last
            found = _visit(walk, n_users, _sides_of(users, truth), reads.depth or model.n_items, more, draw)
            lists = _place(found.ranked, lists, settings.ties, joined.names)
            prepared = prepared._replace(lists=lists)
            if more:
                recs = _flat_top(found.top, codes, reads.n_listed)._replace(extra=None)
                prepared = prepared._replace(recs=recs, tied_user=_find_tied(found.top))
        ranked = found.ranked
        n_rows = int(ranked.lengths.sum())
        counts = {"rec_rows": n_rows, "rec_rows_by_score": n_rows, "excluded_items": int(ranked.excluded.sum())}
        if reads.sample is not None:
            listed = np.zeros(n_users, bool)
            listed[walk.users] = True
            counts["users_short_of_negatives"] = int((listed & (ranked.others < reads.sample.negatives)).sum())
        return prepared._replace(counts={**prepared.counts, **counts}, others=ranked.others)


def _draw(sample: Sample, users: _ModelUsers, columns: Array, *, whole: bool) -> kernels.Draw:
    """Return what to draw for each user. `columns` have an order that does not depend on `ties`."""
    joined = users.joined
    codes, weights = joined.sides["recs"].items, NO_NUMBERS
    if sample.kind == "popularity":
        known = {name: own._replace(codes=joined.sides[name].items) for name, own in joined.known.items()}
        found = popularity_of(BatchSides(known))
        values = np.zeros(len(codes))
        if found is not None:
            at = _as_columns(FlatSide(found[0], np.zeros(1, np.int64), None), codes).columns
            values[at[at >= 0]] = found[1][at >= 0]
        elif not whole:
            raise InputError(
                Argument("sample", ("popularity",)),
                " in batches needs the popularity of all items at once: pass ",
                Argument("history", (...,)),
                " or a column popularity of ",
                Argument("items", (...,)),
            )
        else:
            for name in joined.sides.keys() & {"truth", "exclude"}:
                at = _as_columns(joined.sides[name], codes).columns
                values += np.bincount(at[at >= 0], minlength=len(codes))
        weights = as_weights(values)
        if not weights.any():
            raise InputError(
                Argument("sample", ("popularity",)), " found no item of the model with a popularity above 0"
            )
    n = min(sample.negatives, len(codes))
    return kernels.Draw(n, sample.seed, read_only(users.rows), read_only(columns), read_only(weights))
