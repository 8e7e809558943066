"""Kinds of ids and labels in several tables: integers or strings, the same in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastrec.exceptions import Argument, InputError, InputTypeError, Text, joined, shortened
from fastrec.files.columns import LABELLED, USERS, ColumnError, several_names
from fastrec.files.formats.base import holds_strings
from fastrec.files.reader import TableReader, is_label


def joint_types(readers: Mapping[str, TableReader]) -> dict[str, dict[str, Any]]:
    """Return {table: {column: type}} of ids without a type, once all rows were read; raise if ids cannot match."""
    import pyarrow as pa
    from pyarrow.types import is_integer

    found: dict[str, dict[str, Any]] = {table: {} for table in readers}
    for reader in readers.values():
        reader.finish()
    for role in dict.fromkeys(role for reader in readers.values() for role in reader.open_ids.values()):
        having = [reader for reader in readers.values() if role in reader.names]
        opened = [reader for reader in having if reader.names[role] in reader.open_ids]
        typed = [reader for reader in having if reader not in opened]
        integers = [reader for reader in opened if reader.spellings[reader.names[role]].all_integers]
        strings = [reader for reader in opened if reader not in integers]
        of_strings = [reader for reader in typed if holds_strings(reader.schema[reader.names[role]])]
        as_strings = bool(strings or of_strings)
        if not as_strings and len(typed) == 0:
            as_strings = not is_label(role) and any(reader.format.ids_are_strings for reader in integers)
        if not is_label(role):
            others = [reader for reader in typed if is_integer(reader.schema[reader.names[role]])] or integers
            _refuse_apart(role, others, strings if not of_strings else [])
        for reader in opened:
            found[reader.table][reader.names[role]] = pa.string() if as_strings else pa.int64()
    return found


def groupings_of_integers(
    readers: Mapping[str, TableReader], kinds: Mapping[str, Mapping[str, Any]], by: Sequence[str]
) -> frozenset[str]:
    """Return the columns of labels, not of users, that are integers in all tables; `kinds` as of `joint_types`."""
    from pyarrow.types import is_integer

    found: dict[str, list[Any]] = {name: [] for name in by}
    for table, reader in readers.items():
        for name in by:
            if name in reader.schema and not any(role.startswith("user") for role in reader.roles_of(name)):
                found[name].append(kinds[table].get(name, reader.schema[name]))
    return frozenset(name for name, own in found.items() if own and all(map(is_integer, own)))


def _refuse_apart(role: str, integers: Sequence[TableReader], strings: Sequence[TableReader]) -> None:
    """Raise for integers in some tables, and in others strings of which none spells an integer."""
    found = [reader.spellings[reader.names[role]] for reader in strings]
    integers = [reader for reader in integers if reader.total]
    if not integers or not found or any(own.any_integer for own in found):
        return
    raise InputTypeError(
        f"{role.rstrip('0123456789')} ids cannot be matched: ",
        integers[0].at(role),
        " holds integers, ",
        strings[0].at(role),
        f" holds strings such as {shortened(found[0].example)}; write both as integers or both as strings",
    )


def check_groupings(readers: Mapping[str, TableReader], by: Sequence[str]) -> None:
    """Raise unless each column to group by is in a table."""
    having = [reader for table, reader in readers.items() if table in LABELLED]
    mend = "" if USERS in readers else Text("; ", Argument("users", (...,)), " adds a file with a row per user")
    for nth, name in enumerate(by):
        if any(f"by{nth}" in reader.names for reader in having):
            continue
        several = several_names("by", name, {column for reader in having for column in reader.listed})
        if len(having) == 1:
            role = "" if several else "by"
            raise ColumnError(having[0].path, f": no column {name!r} to group by", several or mend, role=role)
        paths = joined((reader.path for reader in having), " nor ")
        raise InputError("neither ", paths, f" has the column {name!r} to group by", several or mend)
