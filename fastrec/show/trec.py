"""Values in the format of trec_eval: the name of a measure, a query or `all`, and the value, with tabs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.exceptions import InputError


def names_there(metrics: Iterable[str], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the name of each metric in another tool, and the metric: {name: metric} has those that differ.

    A metric may have several names, and appears once for each.
    """
    found: dict[str, list[str]] = {}
    for name, metric in names.items():
        found.setdefault(metric, []).append(name)
    return [(name, metric) for metric in metrics for name in found.get(metric, [metric])]


def as_trec(rows: Iterable[tuple[str, str, float]]) -> Iterator[str]:
    """Yield a line for each measure, query and value, as trec_eval prints them: counts whole, others to four digits.

    The name of a measure loses its blanks, which separate the fields.
    """
    for measure, query, value in rows:
        number = str(value) if isinstance(value, int) else f"{value:6.4f}"
        yield f"{''.join(measure.split()):<22s}\t{query}\t{number}"


def lines_of_users(
    names: Sequence[tuple[str, str]], users: Iterable[object], values: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the lines of each user with a value, as `trec_eval -q` does before those over all; `values` are arrays.

    Raises
    ------
    InputError
        If an id has white space, which separates the fields of this format.
    """
    for at, user in enumerate(users):
        query = str(user)
        if query.split() != [query]:
            raise InputError(f"the format of trec_eval cannot hold user {query!r}: it is empty or has white space")
        yield from as_trec(
            (name, query, own)
            for name, metric in names
            if (own := float(values[metric][at])) == own  # no NaN
        )
