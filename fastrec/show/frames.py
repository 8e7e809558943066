"""Rows as data frames of pandas, Polars or PyArrow."""

from __future__ import annotations

from typing import Any

from fastrec.checks import check_choice
from fastrec.exceptions import InputError, MissingExtraError
from fastrec.runtime.extras import require
from fastrec.runtime.installed import installing

FRAME_KINDS = ("pandas", "polars", "pyarrow")


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns of one type each."""
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    labels = columns.get("group", [])
    if not all(isinstance(label, int) for label in labels if label is not None):
        columns["group"] = [None if label is None else str(label) for label in labels]
    return columns


def _first_installed(kinds: tuple[str, ...]) -> str:
    for kind in kinds:
        try:
            require(kind, "frames")
        except MissingExtraError:
            continue
        return kind
    raise MissingExtraError(f"to_frame needs one of {', '.join(kinds)}: {installing('frames')}")


def users_as_columns(ids: list[Any]) -> dict[str, list[Any]]:
    """Return ids of users as columns of one type each: `user`, or `user_1`, `user_2`, ... for tuples of one length."""
    lengths = {len(own) if isinstance(own, tuple) else 0 for own in ids}
    if len(lengths) == 1 and 0 not in lengths:
        named = {f"user_{nth}": list(part) for nth, part in enumerate(zip(*ids, strict=True), 1)}
    else:
        named = {"user": ids}
    return {name: own if len({*map(type, own)}) < 2 else [*map(str, own)] for name, own in named.items()}


def as_frame(rows: list[dict[str, Any]], kind: str | None) -> Any:
    """Return rows as a data frame of a kind, by default of the first installed library."""
    return frame_of(_columns(rows), kind)


def frame_of(columns: dict[str, Any], kind: str | None) -> Any:
    """Return columns as a data frame of a kind, by default of the first installed library."""
    if kind is not None:
        check_choice("kind", kind, FRAME_KINDS)
    kind = kind or _first_installed(FRAME_KINDS)
    library = require(kind, "frames", what=f"to_frame({kind!r})")
    try:
        if kind == "pyarrow":
            return library.table(columns)
        if kind == "pandas" and "group" in columns:
            # A plain list with None in it would turn integer labels into floats.
            columns = columns | {"group": library.array(columns["group"])}
        return library.DataFrame(columns)
    except UnicodeEncodeError as error:
        raise InputError(f"{kind} cannot hold a label with an unpaired surrogate: {error}") from None
