"""Logs in Parquet files that are sorted by user: users and their first rows are kept in place of a user of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.files.columns import DoubtError
from fastrec.files.parquet import ROWS_PER_PIECE, Grouped, Plain, PlainTables, doubting, groups_of
from fastrec.inputs.grouping import loading_kernels
from fastrec.runtime.threads import run_in_threads

__all__ = ["SortedLog", "read_sorted"]

Array = np.ndarray[Any, Any]


class SortedLog(PlainTables):
    """A log that was read by user."""

    def __init__(self, found: Mapping[str, Plain], rows: Grouped) -> None:
        super().__init__(found)
        self._held = [rows]

    def take_grouped(self, _: int) -> Grouped:
        """Return the rows by user, once: their memory is freed with what is returned."""
        return self._held.pop()


def read_sorted(found: Mapping[str, Plain], firsts: Sequence[Array], n_threads: int) -> SortedLog | None:
    """Read the only table; `firsts` are the users of the first rows of some row groups. None if these do not ascend.

    Raise DoubtError in doubt and if other users do not ascend, and WideError as `Plain.pieces` does.
    """
    if not _ascend(np.concatenate(firsts), strictly=False):
        return None
    ((_, plain),) = found.items()
    kept, (user,) = plain.kept(), plain.users
    columns = {role: np.empty(plain.rows, own) for role, own in kept.items() if role != user}
    users_of: dict[int, tuple[Array, Array]] = {}  # first row of a piece -> its users, and where each begins

    def read(nth: int) -> None:
        with doubting():
            for first, piece in plain.pieces(groups[nth][1], ROWS_PER_PIECE):
                users = piece.pop(user)
                starts = np.append(0, np.flatnonzero(users[1:] != users[:-1]) + 1)
                users_of[first] = users[starts], starts + first
                if not _ascend(users[starts], strictly=True):
                    raise DoubtError
                for role, values in piece.items():
                    columns[role][first : first + len(values)] = values

    groups = groups_of(found)
    with loading_kernels(plain.rows):
        run_in_threads(read, range(len(groups)), n_threads)
    ids, starts = (np.concatenate(own) for own in zip(*(users_of[first] for first in sorted(users_of)), strict=True))
    begins = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))  # a user may go on in the next piece
    if not _ascend(ids[begins], strictly=True):
        raise DoubtError
    return SortedLog(found, Grouped(columns, ids[begins], np.append(starts[begins], plain.rows)))


def _ascend(users: Array, *, strictly: bool) -> bool:
    above = users[1:] > users[:-1] if strictly else users[1:] >= users[:-1]
    return bool(above.all())
