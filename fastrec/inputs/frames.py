"""Data frames, long or with columns of lists, as lists and truth of the same users, or as scored rows.

Users are matched by id. A frame that is grouped by user is not copied: users keep its order, and `Users.order` sorts
reported values by id.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import suggest_name
from fastrec.exceptions import Argument, FastrecError, InputError, InputTypeError, RowNumber, Text, shown
from fastrec.inputs.arrays import RawSide, check_judgements
from fastrec.inputs.arrow import (
    Frame,
    check_same_lengths,
    list_column,
    open_foreign,
    read_ids,
    read_labels,
    read_numbers,
    split_lists,
)
from fastrec.inputs.column_names import Columns, names_of, one_name, user_column
from fastrec.inputs.columns import NUMBER_FIRST, check_numbers_of_items, check_whole
from fastrec.inputs.findings.columns import LeftOpen, evidence_of_columns, hints_of_columns, rows_of_frame
from fastrec.inputs.findings.evidence import Evidence, remark
from fastrec.inputs.grouping import (
    Grouping,
    find_blocks,
    find_users,
    group_rows,
    join_users,
    one_per_user,
    order_of_ids,
)
from fastrec.inputs.ids import Ids, Strings, are_integers
from fastrec.inputs.sides import READ_SIDES, mixed_forms
from fastrec.inputs.users import (
    NO_LABEL,
    Keys,
    UserLabels,
    Users,
    as_labels,
    check_groups,
    check_labels,
    check_weights,
    combine_keys,
    encode_sides,
    refuse_row_numbers,
)
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]


def read_user_labels(by: Any, user: Any) -> UserLabels | None:
    """Return labels by user, from a mapping, a Series or a data frame of users; None if `by` names columns."""
    if by is None or isinstance(by, UserLabels | str | list | tuple):
        return by if isinstance(by, UserLabels) else None
    if isinstance(by, Mapping):
        return UserLabels.of_mapping(by, user)
    if hasattr(by, "to_dict") and hasattr(by, "index") and not hasattr(by, "columns"):  # a Series of pandas
        refuse_row_numbers(by, user)
        known = by.dropna()
        check_labels(known.tolist())
        return UserLabels({"group": _labels_by_user(known.index.tolist(), known.tolist(), "by")})
    frame = open_foreign(by, "by")
    if not isinstance(frame, Frame):
        return None
    name = user_column(user)
    users = frame.read_scalars(name).to_pylist()
    groupings = {own: frame.read_scalars(own, nulls=True).to_pylist() for own in frame.columns if own != name}
    if not groupings:
        raise InputError(f"by has no column besides {name!r}, expected a column with labels of users")
    found = {own: _labels_by_user(users, labels, frame.where(own)) for own, labels in groupings.items()}
    return UserLabels(found, user=name)


def _labels_by_user(users: Sequence[Any], labels: Sequence[Any], where: str) -> dict[Any, Any]:
    """Return {user: label} of rows, which must agree within a user; ignore nulls."""
    check_labels(label for label in labels if label is not None)
    found: dict[Any, Any] = {}
    for row, (user, label) in enumerate(zip(users, labels, strict=True)):
        if label is not None and found.setdefault(user, label) != label:
            number = RowNumber(row, f", row {row} from the user's first")
            raise InputError(where, f" must agree within a user, but rows of user {user!r} differ", number)
    return found


class FrameRows(NamedTuple):
    """The rows of a frame, grouped by user, and a reader of its columns."""

    frame: Frame
    grouping: Grouping
    lists: bool  # whether a row of the frame holds the lists of a user

    def read(self, name: str, argument: str = "", *, nulls: bool = False) -> Any:
        """Return a column with one value per item, in the order of the frame."""
        column = self.frame.read(name, nulls=nulls, argument=argument)
        if list_column(column) != self.lists:
            found, wanted = ("lists", "one value") if list_column(column) else ("one value", "lists")
            raise InputTypeError(self.frame.where(name), f" holds {found} per row, expected {wanted} as in the items")
        if not self.lists:
            return column
        if name in self.frame.unordered:
            raise InputTypeError(self.frame.where(name), " holds sets, which have no order: expected lists")
        flat, indptr = split_lists(column, self.frame.where(name), nulls=nulls)
        check_same_lengths(indptr, self.grouping.indptr, self.frame.where(name))
        return flat

    def of_users(self, values: Array, valid: Array | None, name: str, users: Keys) -> tuple[Array, Array]:
        """Return the value of each user of this frame, and who has one; all rows of a user must agree."""
        if len(values) != (len(self.grouping.ids) if self.lists else self.grouping.indptr[-1]):
            raise InputError(
                self.frame.where(name), f" must be as long as the column of users, found {len(values)} rows"
            )
        if self.lists:
            return values, np.ones(len(values), bool) if valid is None else valid
        return one_per_user(values, valid, self.grouping, users.name_of, self.frame.where(name))


def read_frames(
    frames: Mapping[str, Any],
    columns: Columns,
    labels: UserLabels | None,
    user_weight: Any,
    n_threads: int,
    *,
    graded: bool,
) -> tuple[dict[str, RawSide], Users, tuple[Evidence, ...]]:
    """Read frames as sides of the same users, and evidence about columns that no argument names.

    `labels` are those of users by id; `graded` tells whether gains matter.
    """
    opened = [_open(_as_frame(name, frames), columns) for name in frames]
    of_each = max(1, n_threads // 2)  # columns of users and of items are read at the same time
    named = _id_columns(opened)
    ids = run_in_threads(lambda at: read_ids(*named[at], of_each), range(len(named)), n_threads)
    items = ids[-len(opened) :]
    keys, name_of = _encode_users(ids[: -len(opened)], [table.frame for table in opened])
    nobody = Keys(keys[0][:0], name_of)
    sides = {
        table.frame.name: _read_side(table, own, own_items, columns, nobody, n_threads)
        for table, own, own_items in zip(opened, keys, items, strict=True)
    }
    having = [rows for name, (rows, _) in sides.items() if READ_SIDES[name].has_users]
    users = nobody._replace(codes=functools.reduce(join_users, (rows.grouping.ids for rows in having)))
    order = order_of_ids(users.codes)
    groups: Any = {name: _read_labels(name, having, users) for name in columns.groupings()} or None
    weights = _read_user_weights(user_weight, having, users)
    moved = {name: _of_users(users.codes, rows, side, n_threads) for name, (rows, side) in sides.items()}
    evidence: list[Evidence] = []
    if "truth" in sides:
        (recs, _), (truth, _) = sides["recs"], sides["truth"]
        used = {name for table in opened for name in (*table.user, table.item)} | {*columns.groupings(), user_weight}
        graded = graded and moved["truth"].extra is None
        evidence += map(
            remark,
            hints_of_columns(
                recs.frame.columns,
                truth.frame.columns,
                used,
                LeftOpen(moved["recs"].order == "place", graded, columns.gain is None),
                lambda name: _has_gains(truth, name),
            ),
        )
        at = [table.frame.name for table in opened].index("recs")
        codes = items[at].codes if isinstance(items[at], Strings) else items[at]
        rows = rows_of_frame(recs.frame, keys[at], codes)
        ordering = extra_column(recs.frame, columns)
        evidence += () if recs.lists else evidence_of_columns(recs.frame.columns, used, *ordering, rows)
    user_ids, n_users = users.name_of(users.codes), len(users.codes)
    grouped = check_groups(groups if labels is None else labels.of(user_ids), n_users)
    return moved, Users(user_ids, *grouped, check_weights(weights, n_users), order), tuple(evidence)


def read_frame(frame: Frame, columns: Columns, n_threads: int) -> RawSide:
    """Return one frame as a side for its own users."""
    table = _open(frame, columns)
    *users, items = (read_ids(column, where, n_threads) for column, where in _id_columns([table]))
    (keys,), name_of = _encode_users(users, [frame])
    return _read_side(table, keys, items, columns, Keys(keys[:0], name_of), n_threads)[1]


def _has_gains(truth: FrameRows, name: str) -> bool:
    """Return whether a column that no argument names holds numbers or booleans, not all 1."""
    try:
        return bool((read_numbers(truth.read(name), name) != 1).any())
    except FastrecError:
        return False


def _as_frame(name: str, given: Mapping[str, Any]) -> Frame:
    value = given[name]
    if not isinstance(value, Frame):
        raise mixed_forms(given, "data frames", name)
    return value


def _encode_ids(ids: Sequence[Ids], frames: Sequence[Frame], role: str) -> tuple[list[Array], Callable[[Array], Array]]:
    """Encode ids of several frames, which must be of one kind; see `encode_sides`."""
    are_integers(role, zip((frame.name for frame in frames), ids, strict=True))
    return encode_sides(ids)


def _encode_users(ids: Sequence[Ids], frames: Sequence[Frame]) -> tuple[list[Array], Callable[[Array], Array]]:
    """Encode the users of several frames, which several columns may name together.

    `ids` are those of all columns of the first frame, then of the next.
    """
    n_columns = len(ids) // len(frames)
    columns = [_encode_ids(ids[nth::n_columns], frames, "user") for nth in range(n_columns)]
    if n_columns == 1:
        return columns[0]
    keys = combine_keys([Keys(np.concatenate(codes), name_of) for codes, name_of in columns])
    ends = np.cumsum([len(codes) for codes in columns[0][0]])
    return np.split(keys.codes, ends[:-1]), keys.name_of


class _Opened(NamedTuple):
    """A frame and its columns of users and items."""

    frame: Frame
    user: tuple[str, ...]
    users: list[Any]  # the values of each column
    item: str
    items: Any  # of all rows, end to end
    indptr: Array | None  # where the items of each row begin; None unless rows hold lists


def _open(frame: Frame, columns: Columns) -> _Opened:
    user = tuple(names_of("user_id" if columns.user is None else columns.user, "user"))
    item = "item_id" if columns.item is None else one_name(columns.item, "item")
    users = [frame.read_scalars(name, argument="user") for name in user]
    items, indptr = frame.read(item, argument="item", nulls=columns.item_sep is not None), None
    if columns.item_sep is not None:
        items = _split_cells(items, columns.item_sep, frame.where(item))
    if list_column(items):
        ordered = READ_SIDES[frame.name].is_ordered
        if item in frame.unordered and (ordered or extra_column(frame, columns)[1] is not None):
            why = "best item first" if ordered else "as in the column of gains"
            raise InputTypeError(frame.where(item), f" must hold lists, {why}: a set has no order")
        items, indptr = split_lists(items, frame.where(item))
    n_rows = len(items) if indptr is None else len(indptr) - 1
    for name, values in zip(user, users, strict=True):
        if len(values) != n_rows:
            raise InputError(
                frame.where(name), f" and {item!r} must have the same length, found {len(values)} and {n_rows} rows"
            )
    return _Opened(frame, user, users, item, items, indptr)


def _split_cells(column: Any, sep: Any, where: str) -> Any:
    """Return cells of several ids as lists of strings; a null has none. Lists stay, and cells that all have one id."""
    import pyarrow as pa
    from pyarrow import compute

    if not isinstance(sep, str) or not sep:
        raise InputTypeError(f"item_sep must be a string with at least one character, found {shown(sep)}")
    if list_column(column):
        return column
    read_ids(column.drop_null(), where)  # raises for values that are no ids
    cells = column.cast(pa.large_string()).fill_null("").combine_chunks()
    lists = compute.split_pattern(cells, sep)
    ids = compute.utf8_trim_whitespace(lists.flatten())
    of_cells = compute.list_parent_indices(lists).to_numpy()
    filled = compute.not_equal(ids, "")
    counts = np.bincount(of_cells[filled.to_numpy(zero_copy_only=False)], minlength=len(cells))
    if (counts == 1).all():
        return pa.chunked_array([ids.filter(filled)])
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
    return pa.chunked_array([pa.LargeListArray.from_arrays(offsets, ids.filter(filled))])


def _id_columns(opened: Sequence[_Opened]) -> list[tuple[Any, str]]:
    """Return the id columns of all frames, users first, and their names for errors."""
    users = [
        (values, table.frame.where(name))
        for table in opened
        for name, values in zip(table.user, table.users, strict=True)
    ]
    return users + [(table.items, table.frame.where(table.item)) for table in opened]


def _read_side(
    table: _Opened, keys: Array, ids: Ids, columns: Columns, users: Keys, n_threads: int
) -> tuple[FrameRows, RawSide]:
    """Return the items of one frame by user, ordered by rank if there are ranks, and their scores or gains."""
    frame = table.frame
    if table.indptr is not None:
        _refuse_repeated(keys, frame, users)
        rows = FrameRows(frame, Grouping(keys, table.indptr, None), lists=True)
    else:
        rows = FrameRows(frame, group_rows(keys, n_threads), lists=False)
    indptr, take = rows.grouping.indptr, rows.grouping.take
    role, name = extra_column(frame, columns)
    _check_judgements(rows, columns)
    if name is None:
        return rows, RawSide(map_ids(take, ids), indptr, None, "" if rows.lists else "place")
    where = frame.where(name)
    values = read_numbers(rows.read(name), where, NUMBER_FIRST if role == "subtopic" else "")
    if role != "rank":
        narrow = frame.name == "recs"  # only their order matters, which is the same
        numbers = take(check_numbers_of_items(values, len(ids), where, narrow=narrow))
        return rows, RawSide(map_ids(take, ids), indptr, numbers, role=role)
    ranks = check_whole(values, where, "hold integers", "position")
    ordered = map_ids(lambda own: _order(own, ranks, rows, where, users, n_threads), ids)
    return rows, RawSide(ordered, indptr, None, "rank", _ranks_with_gaps(ranks, rows.grouping), "", 0 in ranks)


def _check_judgements(rows: FrameRows, columns: Columns) -> None:
    """Raise if a frame whose rows say that something is so has a row of another judgement."""
    frame, kind = rows.frame, READ_SIDES.get(rows.frame.name)
    name = None if kind is None else kind.judgement_column(columns, frame.has)
    if name is not None:
        check_judgements(read_numbers(rows.read(name), frame.where(name)), frame.where(name), frame.name)


def _ranks_with_gaps(ranks: Array, grouping: Grouping) -> Array | None:
    """Return ascending ranks per user; None if the ranks of every user run from 1, or from 0, without a gap."""
    indptr = grouping.indptr
    lengths = np.diff(indptr)
    lowest = int(ranks.min(initial=1))
    if lowest in (0, 1) and int(ranks.max(initial=0)) - lowest < int(lengths.min(initial=len(ranks))):
        return None  # as their minimum and maximum show
    by_user = grouping.take(ranks)
    if not len(users_with_gaps(by_user, indptr)):
        return None
    return by_user[np.lexsort((by_user, np.repeat(np.arange(len(lengths)), lengths)))]


def users_with_gaps(ranks: Array, indptr: Array) -> Array:
    """Return the positions of users with distinct ranks that do not run from 1, or from 0, without a gap."""
    having = np.flatnonzero(np.diff(indptr))
    first, last = (limit.reduceat(ranks, indptr[having]).astype(np.int64) for limit in (np.minimum, np.maximum))
    gapless = ((first == 0) | (first == 1)) & (last - first < np.diff(indptr)[having])
    return np.asarray(having[~gapless])


def _refuse_repeated(keys: Array, frame: Frame, users: Keys) -> None:
    """Reject users with several rows: columns of lists have one row per user."""
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    if again.any():
        at = int(again.argmax())
        who = users.name_of(keys[order[at : at + 1]]).tolist()[0]
        raise InputError(
            f"{frame.name} has columns of lists, one row per user, but user {who!r} stands",
            RowNumber(int(order[at]), f" in rows {order[at]} and {order[at + 1]}, counted from 0", " in several rows"),
        )


def map_ids(change: Callable[[Array], Array], ids: Ids) -> Ids:
    """Apply a change to an array of ids, or to the codes of strings."""
    return ids.having(change(ids.codes)) if isinstance(ids, Strings) else change(ids)


def extra_column(frame: Frame, columns: Columns) -> tuple[str, str | None]:
    """Return the role and the name of the column that orders lists or holds gains; the name is None without one."""
    if frame.name not in READ_SIDES:
        return "", None
    role, name = READ_SIDES[frame.name].number_column(columns, frame.has)
    return role, None if name is None else one_name(name, role)


def _order(items: Array, ranks: Array, rows: FrameRows, where: str, users: Keys, n_threads: int) -> Array:
    ordered, twice = rows.grouping.take_by_rank(items, ranks, n_threads)
    if twice is not None:
        user, rank = twice
        who = users.name_of(rows.grouping.ids[user : user + 1]).tolist()[0]
        own = slice(*rows.grouping.indptr[user : user + 2])
        there = rows.grouping.take(items)[own][rows.grouping.take(ranks)[own] == rank]
        advice = "if a user has several lists, name what tells them apart as well: user=['user_id', 'date']; "
        advice += "to order by scores, with ties, name the score column"
        if (there == there[0]).all():
            advice = "each time with the same item: drop the repeated row"
        raise InputError(where, f" holds a rank twice for one user: user {who!r}, rank {rank}; {advice}")
    return ordered


def _of_users(users: Array, rows: FrameRows, side: RawSide, n_threads: int) -> RawSide:
    """Return a side for these users, in their order."""
    blocks = find_blocks(users, rows.grouping.ids, side.indptr, n_threads)
    extra, ranks = (None if column is None else blocks.take(column) for column in (side.extra, side.ranks))
    return side._replace(items=map_ids(blocks.take, side.items), indptr=blocks.indptr, extra=extra, ranks=ranks)


def _having(name: str, sides: Sequence[FrameRows], mend: str = "") -> list[FrameRows]:
    """Return the sides that have a column. `mend` ends the error if there are none."""
    having = [rows for rows in sides if rows.frame.has(name)]
    if not having:
        found = list(dict.fromkeys(column for rows in sides for column in rows.frame.columns))
        raise InputError(
            "neither ",
            Argument("recs"),
            " nor ",
            Argument("truth"),
            f" has a column {name!r}{suggest_name(name, found)}",
            mend,
        )
    return having


def _read_labels(name: str, sides: Sequence[FrameRows], users: Keys) -> Array:
    """Return the label of each user, integers or strings; NO_LABEL if no frame with the column has the user."""
    having = _having(
        name, sides, Text("; ", Argument("by", (...,)), " also takes a data frame of users, or {user: label}")
    )
    frames = [rows.frame for rows in having]
    found = [read_labels(frame.read_scalars(name, nulls=True), frame.where(name)) for frame in frames]
    codes, name_of = _encode_ids([own.ids for own in found], frames, f"{name!r} of")
    spread = [own.spread(of_rows) for own, of_rows in zip(found, codes, strict=True)]
    values, present = _join_values(spread, [own.valid for own in found], name, having, users)
    return spell_labels(name_of(values[present]), present)


def spell_labels(labels: Array, present: Array) -> Array:
    """Return the label of each user from the labels of users who have one; NO_LABEL for the others."""
    if present.all():
        return labels
    spelled = np.full(len(present), NO_LABEL, object)
    spelled[present] = list(map(str, labels.tolist()))
    return as_labels(spelled.tolist())


def _read_user_weights(name: Any, sides: Sequence[FrameRows], users: Keys) -> Array | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InputTypeError("user_weight must be the name of a column when recs and truth are data frames")
    having = _having(name, sides)
    columns = [(rows.frame.where(name), rows.frame.read_scalars(name)) for rows in having]
    numbers = [check_numbers_of_items(read_numbers(column, where), len(column), where) for where, column in columns]
    values, present = _join_values(numbers, [None] * len(numbers), name, having, users)
    if not present.all():
        who = users.name_of(users.codes[~present][:1]).tolist()[0]
        raise InputError(
            f"user {who!r} has no row in {having[0].frame.name}, so its column {name!r} has no weight of this user"
        )
    return values


def _join_values(
    values: Sequence[Array], valid: Sequence[Array | None], name: str, sides: Sequence[FrameRows], users: Keys
) -> tuple[Array, Array]:
    """Return the value of each user from the sides that have one, and who has any; sides must agree."""
    joined, present = np.zeros(len(users.codes), values[0].dtype), np.zeros(len(users.codes), bool)
    for own, own_valid, rows in zip(values, valid, sides, strict=True):
        at = find_users(users.codes, rows.grouping.ids)
        first, having = rows.of_users(own, own_valid, name, users)
        here = at >= 0
        here[here] = having[at[here]]
        given = np.zeros_like(joined)
        given[here] = first[at[here]]
        wrong = present & here & (given != joined)
        if wrong.any():
            who = users.name_of(users.codes[wrong][:1]).tolist()[0]
            raise InputError(f"column {name!r} must agree within a user, but recs and truth differ for user {who!r}")
        joined = np.where(here, given, joined)
        present |= here
    return joined, present
