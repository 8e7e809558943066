"""Evaluation of models over their whole catalogue: scores in blocks of users, ranks of relevant items, first items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.model_places import find_tied, flat_top, place
from fastrec.evaluation.model_room import Room, find_room
from fastrec.evaluation.sampled import Sample, as_weights, popularity_of
from fastrec.exceptions import Argument, InputError
from fastrec.inputs.arrays import FlatSide, finite_gains
from fastrec.inputs.lists import AboutUsers, Prepared, Settings, arrange, look_at_truth
from fastrec.inputs.model_users import NO_ROWS, ModelColumns, ModelUsers, read_users
from fastrec.inputs.models import Model, ModelCall
from fastrec.inputs.ragged import read_only
from fastrec.kernels import models as kernels
from fastrec.runtime import launcher
from fastrec.runtime.blas import one_blas_thread
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
Watch = Callable[[int, int], Any]
BLOCKS_PER_ROUND = 16  # of each thread; between rounds a call can be interrupted and reports progress
NO_NUMBERS = read_only(np.zeros(0, np.int64))
NO_DRAW = kernels.Draw(0, 0, NO_NUMBERS, NO_NUMBERS, NO_NUMBERS)


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


# Blocks of users


Work = Callable[[kernels.ScoredBlock], int]  # returns the position of a user with a score of NaN, or -1


class _Progress:
    """Progress over parts and passes."""

    def __init__(self, watch: Watch | None, total: int) -> None:
        self._watch, self._total, self._done = watch, total, 0

    def add(self, n_users: int) -> None:
        self._done += n_users
        if self._watch is not None:
            self._watch(self._done, self._total)


class _Walk:
    """A walk over the users of a model, in blocks."""

    def __init__(self, model: Model, given: ModelUsers, room: Room, n_threads: int, progress: _Progress) -> None:
        self.model, self._room, self._n_threads, self._progress = model, room, n_threads, progress
        self._names = given.joined.names
        self.users = np.flatnonzero(given.rows >= 0)  # those that the model has, by ascending row
        self._rows = given.rows[self.users]

    def run(self, work: Work) -> None:
        """Score all users in blocks of fixed size, and work on each block."""
        n = self._room.users_of_block
        firsts, shape = range(0, len(self._rows), n), (n, self.model.n_items)
        if self.model.n_users is None:  # a function: this thread asks it for one block after the other
            memory = np.empty(shape, self.model.dtype)
            for first in firsts:
                scores = self._score(first, memory)
                ends = np.linspace(0, len(scores), self._n_threads + 1).astype(int).tolist()

                def work_on(part: int, first: int = first, scores: Array = scores, ends: list[int] = ends) -> None:
                    self._work(work, scores[ends[part] : ends[part + 1]], first + ends[part])

                run_in_threads(work_on, range(self._n_threads), self._n_threads)
                self._progress.add(len(scores))
            return
        spare: list[Array] = []

        def score_and_work(first: int) -> None:
            try:
                memory = spare.pop()
            except IndexError:
                memory = np.empty(shape, self.model.dtype)
            self._work(work, self._score(first, memory), first)
            spare.append(memory)

        n_threads = min(self._n_threads, self._room.blocks)
        per_round = n_threads * BLOCKS_PER_ROUND
        with one_blas_thread():
            for start in range(0, len(firsts), per_round):
                blocks = firsts[start : start + per_round]
                run_in_threads(score_and_work, blocks, n_threads)
                self._progress.add(min(len(blocks) * n, len(self._rows) - blocks[0]))

    def _score(self, first: int, memory: Array) -> Array:
        """Return the scores of a block of users."""
        scores = memory[: len(self._rows) - first]
        self.model.write(self._rows[first : first + len(scores)], scores)
        return scores

    def _work(self, work: Work, scores: Array, first: int) -> None:
        """Work on the scores of users.

        Raises InputError for NaN, and if products overflow: they are finite, but items would have wrong ranks.
        """
        users, dtype = self.users[first : first + len(scores)], self.model.dtype
        if self.model.bound >= float(np.finfo(dtype).max) / 2 and not (finite := np.isfinite(scores).all(axis=1)).all():
            user = self._names.user(int(users[finite.argmin()]))
            mend = "scale the factors" if dtype == np.float64 else "pass float64 numbers"
            raise InputError(f"products of user {user} and items overflow {dtype}: {mend}")
        if (wrong := work(kernels.ScoredBlock(scores, read_only(users)))) >= 0:
            user = self._names.user(int(users[wrong]))
            raise InputError(f"the model must not score NaN, found NaN for user {user}: -inf ranks an item last")


def _order_of_walk(rows: Array) -> Array:
    """Return the positions of users by ascending row, then of those that the model lacks.

    Parts are whole blocks in this order, so that they do not decide which users share a block.
    """
    return np.lexsort((rows, rows < 0))


def _parts(given: ModelUsers, room: Room) -> Iterator[ModelUsers]:
    """Yield users of the model in parts, in the order of the walk; at least one part."""
    order = _order_of_walk(given.rows)
    for first in range(0, max(len(order), 1), room.users_of_part):
        yield given.part(order[first : first + room.users_of_part])


def _visit(
    walk: _Walk, n_users: int, sides: kernels.Sides, depth: int, k: int, draw: kernels.Draw = NO_DRAW
) -> tuple[kernels.Ranked, kernels.FirstItems]:
    """Rank the relevant items of all users, and list the first k items."""
    model, n_rows = walk.model, len(sides.relevant.columns)
    above, tied, before = (np.full(n_rows, first, np.int32) for first in (-1, 0, 0))
    lengths, excluded, others, n_first = (np.zeros(n_users, np.int64) for _ in range(4))
    ranked = kernels.Ranked(above, tied, before, lengths, excluded, others)
    shape = n_users, min(k, model.n_items)
    top = kernels.FirstItems(np.zeros(shape, np.int32), np.zeros(shape, model.dtype), n_first)

    def visit(block: kernels.ScoredBlock, work: int = 0) -> int:
        given = block, sides, draw, min(depth, model.n_items), shape[1], ranked, top
        return int(launcher.call(kernels.visit_block, *given, work=work))

    none = kernels.ScoredBlock(np.empty((0, model.n_items), model.dtype), read_only(np.zeros(0, np.int64)))
    visit(none, len(walk.users) * model.n_items)  # here, where an interrupt ends the loading of the kernel at once
    walk.run(visit)
    return ranked, top


# First items


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
    users = read_users(call, given, about, Settings("input", "first", n_threads), {}, keeps_others=False)
    k = min(k, call.model.n_items)
    room = find_room(call.model, users.joined.sides, len(users.rows), k, memory)
    tops, counter = [], _Progress(progress, len(users.rows))
    for part in _parts(users, room):
        walk = _Walk(call.model, part, room, n_threads, counter)
        tops.append(_visit(walk, len(part.rows), _sides_of(part, NO_ROWS), 1, k)[1])
    top = kernels.FirstItems(*map(np.concatenate, zip(*tops, strict=True)))
    if call.rows is not None:  # the walk is by ascending rows
        order = np.argsort(np.argsort(call.rows))
        top = kernels.FirstItems(*(own[order] for own in top))
    found = flat_top(top, call.item_ids, k)
    assert found.extra is not None
    items = found.items if found.items.dtype == object else found.items.astype(np.int64, copy=False)
    return items, found.indptr, found.extra


def _sides_of(users: ModelUsers, relevant: kernels.ItemRows) -> kernels.Sides:
    sides = users.joined.sides
    return kernels.Sides(relevant, *(users.columns.of(sides.get(name)) for name in ("exclude", "candidates")))


# Evaluation


class ModelParts:
    """Users of a model, prepared as `prepare` does lists of all items that the model scores, part by part.

    Lists are not made if the metrics read only hits and first items. Each iteration scores all users again, in an
    order of its own: `order` has the positions in it of the users of the report, if the call has all users.
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
        self._users, self._model = read_users(call, given, about, settings, known), call.model
        joined, codes = self._users.joined, self._users.columns.codes
        columns = np.arange(len(codes))
        if settings.ties in ("id_asc", "id_desc"):  # columns in this order, which kernels keep among tied items
            order = np.argsort(codes if settings.ties == "id_asc" else -codes)
            if not np.array_equal(order, columns):  # another order takes a copy of the items
                self._model, columns = self._model.restricted(order), np.argsort(order)
                self._users = self._users._replace(columns=ModelColumns(codes[order]))
        self._settings = settings._replace(tool="")  # most ways of ranking items do not find all ties
        self._reads, self._exclude, self._whole = reads, working.exclude, working.whole
        self._draw = NO_DRAW if reads.sample is None else _draw(reads.sample, self._users, columns, whole=working.whole)
        n_users = len(self._users.rows)
        self._room = find_room(self._model, joined.sides, n_users, reads.n_listed, working.memory)
        self.made_again = working.reviewed and not self._room.keeps_lists  # whether a second pass scores users again
        self._counter = _Progress(working.progress, (1 + self.made_again) * int((self._users.rows >= 0).sum()))
        if not working.whole:
            self._room = self._room._replace(users_of_part=max(n_users, 1))
        elif joined.sides["truth"].extra is not None:
            finite_gains(joined.sides["truth"])  # here, as its errors count the rows of all users

    @property
    def order(self) -> Array:
        """The position of each user of the report among those of all parts."""
        order = self._users.joined.users.order
        places = np.argsort(_order_of_walk(self._users.rows))
        return places if order is None else places[order]

    def __iter__(self) -> Iterator[Prepared]:
        """Yield parts of the users."""
        has_ids = self._users.joined.users.ids is not None
        for part in _parts(self._users, self._room):
            prepared = self._prepare(part)
            users = prepared.users if has_ids else prepared.users._replace(ids=None)
            users = users._replace(order=None) if self._whole else users
            yield prepared._replace(users=users, exclude=self._exclude)

    def _prepare(self, users: ModelUsers) -> Prepared:
        model, settings, reads, joined = self._model, self._settings, self._reads, users.joined
        codes, n_users = users.columns.codes, len(users.rows)
        walk = _Walk(model, users, self._room, settings.n_threads, self._counter)
        own = {name: side for name, side in joined.sides.items() if name not in ("exclude", "candidates")}
        own["recs"] = FlatSide(codes[:0], np.zeros(n_users + 1, np.int64), None)
        draw = self._draw._replace(rows=read_only(users.rows))
        if reads.n_listed is None:
            kept = NO_ROWS if reads.sample is None else users.columns.of(joined.sides["truth"])
            ranked, top = _visit(walk, n_users, sides := _sides_of(users, kept), 1, model.n_items, draw)
            whole = flat_top(top, codes, model.n_items)
            assert whole.extra is not None
            own["recs"] = whole._replace(extra=whole.extra.astype(np.float64))
            prepared = arrange(joined._replace(sides=own), settings)
            truth = _truth_of(prepared, users)
        else:
            prepared = arrange(joined._replace(sides=own), settings)
            lists, truth = prepared.lists, _truth_of(prepared, users)
            more = reads.n_listed + 1 if reads.n_listed else 0  # the next one may have the score of the last
            sides = _sides_of(users, truth)
            ranked, top = _visit(walk, n_users, sides, reads.depth or model.n_items, more, draw)
            lists = place(ranked, lists, settings.ties, joined.names)
            prepared = prepared._replace(lists=lists)
            if more:
                recs = flat_top(top, codes, reads.n_listed)._replace(extra=None)
                prepared = prepared._replace(recs=recs, tied_user=find_tied(top))
        n_rows = int(ranked.lengths.sum())
        counts = {"rec_rows": n_rows, "rec_rows_by_score": n_rows, "excluded_items": int(ranked.excluded.sum())}
        counts |= {
            f"{name}_rows_not_scored": int((side.columns < 0).sum())
            for name, side in (("truth", truth), ("exclude", sides.exclude))
        }
        if reads.sample is not None:
            listed = np.zeros(n_users, bool)
            listed[walk.users] = True
            counts["users_short_of_negatives"] = int((listed & (ranked.others < reads.sample.negatives)).sum())
        in_sides, evidence = look_at_truth(joined.sides, settings)
        return prepared._replace(
            counts={**prepared.counts, **counts, **in_sides},
            others=ranked.others,
            evidence=(*prepared.evidence, *evidence),
        )


def _truth_of(prepared: Prepared, users: ModelUsers) -> kernels.ItemRows:
    return users.columns.of(FlatSide(prepared.lists.truth_items, prepared.lists.truth_indptr, None))


def _draw(sample: Sample, users: ModelUsers, columns: Array, *, whole: bool) -> kernels.Draw:
    """Return what to draw for each user. `columns` are items in an order that no rule for ties changes."""
    joined, codes, weights = users.joined, users.columns.codes, NO_NUMBERS
    if sample.kind == "popularity":
        known = {name: own._replace(codes=joined.sides[name].items) for name, own in joined.known.items()}
        popularity = popularity_of(known)
        values = np.zeros(len(codes))
        if popularity.is_given:
            items, numbers = popularity.known(None, "rows")
            at = users.columns.of(FlatSide(items, np.zeros(1, np.int64), None)).columns
            values[at[at >= 0]] = numbers[at >= 0]
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
                at = users.columns.of(joined.sides[name]).columns
                values += np.bincount(at[at >= 0], minlength=len(codes))
        weights = as_weights(values)
        if not weights.any():
            raise InputError(
                Argument("sample", ("popularity",)), " found no item of the model with a popularity above 0"
            )
    n = min(sample.negatives, len(codes))
    return kernels.Draw(n, sample.seed, read_only(users.rows), read_only(columns), read_only(weights))
