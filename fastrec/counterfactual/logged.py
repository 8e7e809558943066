"""Logged slates, read from arrays or a data frame into flat arrays with slate pointers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import is_number, with_article
from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.counterfactual.sums import MAX_POSITIONS, Fault
from fastrec.exceptions import Argument, InputError, InputTypeError, RowNumber, Text, shown, shown_number
from fastrec.inputs.arrow import Frame, open_foreign, read_ids, read_numbers, refuse_other_indexes
from fastrec.inputs.columns import check_numbers
from fastrec.inputs.findings.columns import evidence_of_slates, rows_of_frame
from fastrec.inputs.findings.evidence import findings_of
from fastrec.inputs.grouping import Grouping, group_rows
from fastrec.inputs.ids import Ids, Strings
from fastrec.inputs.ragged import check_indptr, longest_row, read_only
from fastrec.inputs.users import encode_keys
from fastrec.kernels import weights as kernels

Array = np.ndarray[Any, Any]
ROLES = {role: role for role in ("reward", "pscore", "new_pscore", "rank", "baseline_pscore")}
ROLES |= {"slate": "slate_id", "user": "user_id"}
"""The columns of a log, and their usual names."""
VALUES = ("rewards", "pscore", "new_pscore", "predictions[0]", "predictions[1]")


class Logged(NamedTuple):
    """Checked columns; the values of rows are checked while they are added."""

    slates: kernels.Slates
    names: tuple[str, ...]  # of the columns, in errors, in the order of `VALUES`
    order: Array | None  # where each row was passed; None if rows are in that order
    ids: Any  # spells the id of a slate by its number; None without ids
    hints: tuple[str, ...] = ()  # columns that may be meant to order slates
    users: Array | None = None  # int64 (n_users + 1,): user u has the slates users[u]:users[u + 1]
    baseline: Logged | None = None  # the same rows with the propensities of another policy as new ones

    def where(self, row: int) -> Text:
        """Return the place of a row for errors."""
        place = row if self.order is None else int(self.order[row])
        slate = int(np.searchsorted(self.slates.indptr, row, side="right")) - 1
        return Text(RowNumber.at(place), f" (slate {self.spell(slate)})")

    def spell(self, slate: int) -> str:
        """Return the name of a slate for errors."""
        return str(slate) if self.ids is None else shown(self.ids(np.array([slate]))[0])


# Arguments


def check_estimators(estimator: Any, predictions: Any) -> tuple[list[str], bool]:
    """Return the names of estimators, and whether one was given alone."""
    alone = isinstance(estimator, str)
    if not alone and not (isinstance(estimator, list | tuple) and estimator):
        raise InputTypeError(Argument("estimator"), f" must be a name, or a list of names; found {shown(estimator)}")
    names = [estimator] if alone else list(estimator)
    for name in names:
        if not isinstance(name, str) or name not in ESTIMATORS:
            raise InputError(Argument("estimator"), f" must be one of {', '.join(ESTIMATORS)}; found {shown(name)}")
        if ESTIMATORS[name].predicted and predictions is None:
            raise InputError(
                f"{name} needs ",
                Argument("predictions"),
                ": the predicted reward of each row, and that of the new policy in its place",
            )
    if len(set(names)) < len(names):
        raise InputError(Argument("estimator"), f" must name each estimator once, found {shown(names)}")
    return names, alone


def check_clip(clip: Any) -> float | None:
    """Return the largest weight, or None without a clip."""
    if clip is None:
        return None
    if not is_number(clip):
        raise InputTypeError(Argument("clip"), f" must be a number, found {shown(clip)}")
    if not 0 < clip <= kernels.MAX_VALUE:
        raise InputError(Argument("clip"), f" must be above 0 and at most {kernels.MAX_VALUE:g}, found {shown(clip)}")
    return float(clip)


# Reading


def read_logged(
    rewards: Any,
    pscore: Any,
    new_pscore: Any,
    indptr: Any,
    predictions: Any,
    slate_ids: Any,
    columns: Mapping[str, Any],
    n_threads: int,
    user_ids: Any = None,
    baseline_pscore: Any = None,
) -> Logged:
    """Return logged slates; `columns` names those of a data frame, by role, None for the usual name."""
    if isinstance(rewards, str | os.PathLike):
        kind = with_article(type(rewards).__name__)
        wanted = "the command fastrec policy-value reads files"
        raise InputTypeError(f"rewards must be data, found {kind}, {shown(rewards)}: {wanted}")
    value = open_foreign(rewards, "the frame")
    if isinstance(value, Frame):
        if indptr is not None or slate_ids is not None:
            raise InputError("a data frame names its column of slates by ", Argument("slate"), ", not by indptr=")
        if user_ids is not None:
            raise InputError("a data frame names its column of users by ", Argument("user"), ", not by user_ids=")
        named = {**columns, "pscore": pscore, "new_pscore": new_pscore, "baseline_pscore": baseline_pscore}
        return _read_frame(value, named, predictions, n_threads)
    wrong = next((role for role, name in columns.items() if name is not None), None)
    if wrong is not None:
        raise InputTypeError(Argument(wrong), " names a column of a data frame, but rewards is no data frame")
    for name, own in (("pscore", pscore), ("new_pscore", new_pscore)):
        if own is None:
            raise InputTypeError(Argument(name), " must be given unless rewards is a data frame")
    given = [rewards, pscore, new_pscore, *_pair(predictions)]
    others = {"slate_ids": slate_ids, "user_ids": user_ids, "baseline_pscore": baseline_pscore}
    refuse_other_indexes({**dict(zip(VALUES, given, strict=False)), **others})
    found = [_numbers(own, name) for name, own in zip(VALUES, given, strict=False)]
    _check_lengths(found, VALUES)
    n_rows = len(found[0])
    if slate_ids is not None:
        if indptr is not None:
            raise InputError("slates are given by indptr= or by slate_ids=, found both")
        logged = _grouped(found, VALUES, _by_ids(slate_ids, n_rows, n_threads), None, "")
    else:
        pointers = np.arange(n_rows + 1) if indptr is None else check_indptr(indptr, n_rows, "indptr")
        logged = Logged(_slates(found, pointers), VALUES, None, None)
    if user_ids is not None:
        logged = _by_user(logged, user_ids, "user_ids", n_threads)
    if baseline_pscore is None:
        return logged
    return _with_baseline(logged, _numbers(baseline_pscore, "baseline_pscore"), "baseline_pscore")


def _read_frame(frame: Frame, named: Mapping[str, Any], predictions: Any, n_threads: int) -> Logged:
    columns = {}
    for role, usual in ROLES.items():
        name = usual if named[role] is None else named[role]
        if not isinstance(name, str):
            raise InputTypeError(Argument(role), f" must be the name of a column, found {shown(name)}")
        if named[role] is not None or role in ("reward", "pscore", "new_pscore") or frame.has(usual):
            columns[role] = name
    wanted = [columns["reward"], columns["pscore"], columns["new_pscore"], *_pair(predictions)]
    wrong = next((name for name in wanted if not isinstance(name, str)), None)
    if wrong is not None:
        raise InputTypeError(Argument("predictions"), f" must be names of columns, found {shown(wrong)}")
    names = tuple(frame.where(name) for name in wanted)
    roles = ("reward", "pscore", "new_pscore", "predictions", "predictions")
    read = [frame.read(name, argument=role) for name, role in zip(wanted, roles, strict=False)]
    found = [_numbers(read_numbers(column, where), where) for column, where in zip(read, names, strict=True)]
    if named["rank"] is not None and "slate" not in columns:
        raise InputError(Argument("rank"), " orders the rows of slates: name their column by ", Argument("slate"))
    ranks, where = None, ""
    if "rank" in columns and "slate" in columns:
        where = frame.where(columns["rank"])
        ranks = check_numbers(read_numbers(frame.read(columns["rank"]), where), where)
    logged = Logged(_slates(found, np.arange(len(found[0]) + 1)), names, None, None)
    if "slate" in columns:
        ids = read_ids(frame.read(columns["slate"]), frame.where(columns["slate"]), n_threads)
        slates = _by_ids(ids, len(found[0]), n_threads)
        logged = _grouped(found, names, slates, ranks, where)
        if ranks is None:
            logged = logged._replace(hints=_hints_of_slates(frame, ids, {*columns.values(), *wanted}))
    if "user" in columns:
        where = frame.where(columns["user"])
        logged = _by_user(logged, read_ids(frame.read(columns["user"]), where, n_threads), where, n_threads)
    if "baseline_pscore" not in columns:
        return logged
    where = frame.where(columns["baseline_pscore"])
    column = frame.read(columns["baseline_pscore"], argument="baseline_pscore")
    return _with_baseline(logged, _numbers(read_numbers(column, where), where), where)


def _by_user(logged: Logged, user_ids: Any, where: str, n_threads: int) -> Logged:
    """Bring the slates of each user together."""
    slates, indptr = logged.slates, logged.slates.indptr
    n_rows, n_slates = len(slates.rewards), len(indptr) - 1
    keys = encode_keys(user_ids, n_rows, where)
    codes = keys.codes if logged.order is None else keys.codes[logged.order]
    lengths = np.diff(indptr)
    if (lengths == 0).any():
        empty = int((lengths == 0).argmax())
        raise InputError(where, f" has a user for each row, but slate {logged.spell(empty)} has no rows: leave it out")
    wrong = codes != np.repeat(codes[indptr[:-1]], lengths)
    if wrong.any():
        at = logged.where(int(wrong.argmax()))
        raise InputError(where, " must have one user for all rows of a slate; found another", at)
    users = group_rows(codes[indptr[:-1]], n_threads)
    if users.mover is not None:
        moved = users.take(np.arange(n_slates))
        pointers = np.append(0, np.cumsum(lengths[moved]))
        rows = np.arange(n_rows) + np.repeat(indptr[moved] - pointers[:-1], lengths[moved])
        ids = logged.ids
        spell = (lambda some: moved[some].tolist()) if ids is None else lambda some: ids(moved[some])
        columns = [own[rows] for own in slates[:5] if len(own)]
        order = rows if logged.order is None else logged.order[rows]
        logged = logged._replace(slates=_slates(columns, pointers), order=order, ids=spell)
    return logged._replace(users=users.indptr)


def _with_baseline(logged: Logged, pscore: Array, name: str) -> Logged:
    _check_lengths([logged.slates.rewards, pscore], (logged.names[0], name))
    slates = logged.slates._replace(new=read_only(pscore if logged.order is None else pscore[logged.order]))
    other = logged._replace(slates=slates, names=(*logged.names[:2], name, *logged.names[3:]))
    return logged._replace(baseline=other)


def _pair(predictions: Any) -> tuple[Any, ...]:
    if predictions is None:
        return ()
    if not isinstance(predictions, list | tuple) or len(predictions) != 2:
        raise InputTypeError(
            Argument("predictions"),
            " must be a pair: predicted rewards of the rows, and those of the new policy; found "
            f"{shown(type(predictions).__name__)}",
        )
    return tuple(predictions)


def _numbers(values: Any, name: str) -> Array:
    return np.ascontiguousarray(check_numbers(values, name), np.float64)


def _check_lengths(found: list[Array], names: tuple[str, ...]) -> None:
    for own, name in zip(found, names, strict=False):
        if len(own) != len(found[0]):
            raise InputError(f"{names[0]} and {name} must have the same length, found {len(found[0])} and {len(own)}")


class _SlateIds(NamedTuple):
    grouping: Grouping
    spell: Any


def _by_ids(slate_ids: Any, n_rows: int, n_threads: int) -> _SlateIds:
    keys = encode_keys(slate_ids, n_rows, "slate_ids")
    grouping = group_rows(keys.codes, n_threads)
    return _SlateIds(grouping, lambda some: keys.name_of(grouping.ids[some]).tolist())


def _grouped(found: list[Array], names: tuple[str, ...], ids: _SlateIds, ranks: Array | None, where: str) -> Logged:
    """Bring rows into the order of slates, and into that of their ranks."""
    grouping = ids.grouping
    if ranks is None and grouping.mover is None:
        return Logged(_slates(found, grouping.indptr), names, None, ids.spell)
    rows = np.arange(len(found[0]))
    order = grouping.take(rows)
    if ranks is not None:
        order = _by_rank(order, ranks, ids, where)
    return Logged(_slates([own[order] for own in found], grouping.indptr), names, order, ids.spell)


def _by_rank(order: Array, ranks: Array, ids: _SlateIds, where: str) -> Array:
    """Order the rows of each slate by rank; ranks must run from 1, or from 0, without repeats and gaps."""
    indptr = ids.grouping.indptr
    slates = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = order[np.lexsort((ranks[order], slates))]
    own = ranks[order]
    twice = (own[1:] == own[:-1]) & (slates[1:] == slates[:-1])
    if twice.any():
        at = int(twice.argmax())
        raise InputError(where, f" holds rank {own[at]:g} twice in slate {shown(ids.spell(slates[at : at + 1])[0])}")
    first = own[indptr[:-1]]
    start = first.min() if len(first) else 1
    place = np.arange(len(own)) - indptr[slates] + start
    if start not in (0, 1) or (own != place).any():
        at = int((own != place).argmax())
        raise InputError(
            where,
            f" must run from 1, or from 0, without gaps in each slate; found {own[at]:g} as row "
            f"{at - int(indptr[slates[at]]) + 1} of slate {shown(ids.spell(slates[at : at + 1])[0])}: "
            "a missing row changes the weights of the rows below it",
        )
    return order


def _slates(found: list[Array], indptr: Array) -> kernels.Slates:
    rewards, logged, new, shown, expected = map(read_only, [*found, np.zeros(0), np.zeros(0)][:5])
    return kernels.Slates(rewards, logged, new, shown, expected, read_only(indptr))


def check_lengths_of(slates: kernels.Slates, names: list[str]) -> None:
    """Raise InputError for slates too long for an estimator with sums per position."""
    own = [name for name in names if ESTIMATORS[name].by_position]
    if own and (longest := longest_row(slates.indptr)) > MAX_POSITIONS:
        raise InputError(
            f"{own[0]} keeps products of positions, for slates of at most {MAX_POSITIONS} rows; found one of {longest}"
        )


# Faults


def refuse(logged: Logged, names: list[str], fault: Fault) -> InputError:
    """Return the error for a slate that the kernel could not add: that of its first wrong row."""
    slates = logged.slates
    first, last = (int(at) for at in slates.indptr[fault.slate : fault.slate + 2])
    if fault.code == kernels.EXPLODED:
        return _exploded(logged, fault.slate, first, last, names)
    columns = dict(zip(logged.names, slates[:5], strict=False))
    of_values = {name: values for name, values in columns.items() if name not in logged.names[1:3]}
    wrong = {name: ~(np.abs(values[first:last]) <= kernels.MAX_VALUE) for name, values in of_values.items()}
    logged_now, new = slates.logged[first:last], slates.new[first:last]
    wrong[logged.names[1]] = ~((logged_now > 0) & (logged_now <= kernels.MAX_PROPENSITY))
    wrong[logged.names[2]] = ~((new >= 0) & (new <= kernels.MAX_PROPENSITY))
    name, rows = min(((name, rows) for name, rows in wrong.items() if rows.any()), key=lambda own: int(own[1].argmax()))
    at = first + int(rows.argmax())
    wanted = f"finite, and at most {kernels.MAX_VALUE:g} in size"
    if name == logged.names[1]:
        wanted = "a probability above 0 and at most 1, since the row was shown"
    elif name == logged.names[2]:
        wanted = "a probability, at least 0 and at most 1"
    return InputError(name, f" must be {wanted}; found {shown_number(columns[name][at])}", logged.where(at))


def _exploded(logged: Logged, slate: int, first: int, last: int, names: list[str]) -> InputError:
    slates = logged.slates
    with np.errstate(over="ignore"):
        row = first + int(np.argmax(slates.new[first:last] / slates.logged[first:last]))
    return InputError(
        f"the weights of slate {logged.spell(slate)} explode: for {', '.join(names)} they, or what they earn, exceed "
        f"{kernels.MAX_VALUE:g}; the largest of a row is {slates.new[row]:g} / {slates.logged[row]:g}",
        logged.where(row),
        "; raise small propensities to a floor, or split long slates",
    )


def _hints_of_slates(frame: Frame, ids: Ids, used: set[Any]) -> tuple[str, ...]:
    """Return hints about unused columns that have ranks of slates in another order than the rows."""
    rows = rows_of_frame(frame, ids.codes if isinstance(ids, Strings) else ids)
    return tuple(finding.text for finding in findings_of(evidence_of_slates(frame.columns, used, rows)))
