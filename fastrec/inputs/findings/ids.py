"""Ids of a side that no list has, because they are spelled otherwise there, or stand with others in one cell."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from fastrec.exceptions import shortened, shown
from fastrec.inputs.findings.evidence import MAX_EXAMPLES, Evidence, evidence_of_no_common_id
from fastrec.inputs.ids import spell

Array = np.ndarray[Any, Any]
FEWEST, AT_MOST, ROWS_PER_ID = 2_000, 12_000, 100  # ids to look at: so many, and one in so many rows
FEW_PAIRS = 5  # of samples, which show nothing
MOST_OF_ONE_CORE = 10  # ids with the same digits to compare
ENOUGH = 0.9  # share of ids with one core that have the same affix
WITH_AFFIXES = re.compile(r"(\D*)(\d|\d.*\d)(\D*)", re.DOTALL)
SEPARATORS = re.compile(r"[\s,|;+]+")
LARGEST = 2.0**53  # of a float that stands for one integer


def _number(text: str) -> str:
    """Return an integer as `str` writes it, if a string is one in another spelling, such as 1e+05."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < LARGEST and "_" not in text else text


# (difference, what removes it), the smallest change first
CHANGES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("spaces around them", str.strip),
    ("upper and lower case", str.casefold),
    ("Unicode composition", lambda text: unicodedata.normalize("NFC", text)),
    ("leading zeros", lambda text: text.lstrip("0") or text[:1]),
    ("a trailing '.0'", lambda text: re.sub(r"\.0+$", "", text)),
    ("quotes around them", lambda text: text.strip("'\"")),
    ("the codes of URLs", unquote),
    ("the spelling of numbers", _number),
)
# what a change may have an effect on in lines of ASCII, besides letters in upper case
AT_STARTS = re.compile(r"^-?(?:0|\d+[eE])", re.MULTILINE)  # the same if there is no such character as these
SPECIAL = re.compile(r"[ '\"+%.\t\r\f\v\x1c-\x1f]")
CHANGED = re.compile(r"^[ '\"+]|^-?0|^-?[\d.]+[eE.]|[ '\"]$|\.0+$|%|[^\S\n ]", re.MULTILINE)


def evidence_of_ids(
    role: str, side: str, strings: Sequence[str] | Array, own: Array, recs: Array, n_rows: int
) -> Iterator[Evidence]:
    """Yield evidence of ids that differ in spelling alone, and of a truth without any id of the lists.

    `role` is "user" or "item", `side` the side that is compared with the lists. `own` and `recs` are masks over the
    distinct `strings` of both. How many of them are looked at follows from the number of all rows.
    """
    n, unmatched, others = int(own.sum()), np.flatnonzero(own & ~recs), np.flatnonzero(recs)
    if not (len(unmatched) and len(others)):
        yield Evidence("ids_differ", 0, n, (), (role, side))
        if n and len(others):
            yield evidence_of_no_common_id(role)
        return
    size = to_look_at(n_rows)
    ours, theirs = _sample(strings, unmatched, size // 4), _sample(strings, others, size)
    found = _respelled(ours, theirs)
    if found is None and not _have_one_form([*ours, *theirs]):  # ids that match as they are may be parts of others
        others = others[~own[others]]
        theirs = _sample(strings, others, size)
        found = _with_affixes(ours, theirs)
    difference, pairs = found or ("", [])
    drawn = len(ours) / len(unmatched) * len(theirs) / max(len(others), 1)
    if drawn < 1 and len(pairs) < FEW_PAIRS:  # chance may have made them
        pairs = []
    shown = (f"{difference}: {shortened(other)} in recs, {shortened(one)} in {side}" for one, other in pairs)
    count = min(round(len(pairs) / drawn), len(unmatched)) if pairs else 0
    yield Evidence("ids_differ", count, n, tuple(sorted(shown)[:MAX_EXAMPLES]), (role, side))
    if side == "truth":
        yield evidence_of_no_common_id(role, *((ours, theirs) if len(unmatched) == n else ()))


def to_look_at(n_rows: int) -> int:
    """Return how many ids to look at: their cost is a small part of that of evaluating so many rows."""
    return min(max(n_rows // ROWS_PER_ID, FEWEST), AT_MOST)


def _sample(strings: Sequence[str] | Array, codes: Array, size: int) -> list[str]:
    """Return strings of some codes: all, or so many, drawn apart, as two sides may be in one order."""
    if len(codes) > size:
        codes = np.sort(np.random.default_rng(len(codes)).choice(codes, size, replace=False))
    found = strings[codes].tolist() if isinstance(strings, np.ndarray) else spell(strings, codes)
    if not found or isinstance(found[0], str):
        return found
    return [" / ".join(own if isinstance(own, str) else shown(own) for own in user) for user in found]


def _respelled(ours: list[str], theirs: list[str]) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the change after which most ids of ours are among theirs, and the pairs that it makes equal."""

    def fold(text: str) -> str:
        for _, change in CHANGES:
            text = change(text)
        return text

    if _are_plain([*ours, *theirs]) or {*map(fold, ours)}.isdisjoint(map(fold, theirs)):
        return None
    found = []
    for difference, change in (*CHANGES, ("several of case, spaces, zeros, quotes and codes", fold)):
        changed = {change(other): other for other in reversed(theirs)}
        found.append((difference, [(own, changed[key]) for own in ours if (key := change(own)) and key in changed]))
    return max(found, key=lambda pair: len(pair[1]))


def _are_plain(ids: list[str]) -> bool:
    """Return whether no change has an effect on any of these ids, without a look at each."""
    lines = "\n".join(ids)
    if not lines.isascii() or lines != lines.lower() or lines.count("\n") >= len(ids):
        return False
    return (AT_STARTS if SPECIAL.search(lines) is None else CHANGED).search(lines) is None


def _have_one_form(ids: list[str]) -> bool:
    """Return whether all ids are one prefix, which may be empty, and digits."""
    prefix = ids[0].rstrip("0123456789")
    if not (min(ids).startswith(prefix) and max(ids).startswith(prefix)):
        return False
    return "\n".join(["", *ids]).replace(f"\n{prefix}", "").isdigit()


def _with_affixes(ours: list[str], theirs: list[str]) -> tuple[str, list[tuple[str, str]]] | None:
    """Return that ids have one prefix or suffix on one side alone, and the pairs of ids that are equal but for it."""
    cores: dict[str, list[tuple[str, str, str]]] = {}
    for other in theirs:
        if (parts := WITH_AFFIXES.fullmatch(other)) is not None:
            cores.setdefault(parts[2], []).append((parts[1], parts[3], other))
    pairs: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for own in ours:
        if (parts := WITH_AFFIXES.fullmatch(own)) is None:
            continue
        for before, after, other in cores.get(parts[2], ())[:MOST_OF_ONE_CORE]:
            changes = (parts[1], before), (parts[3], after)
            is_affix = [one != two and not (one and two) for one, two in changes]
            if sum(is_affix) == 1 and sum(one != two for one, two in changes) == 1:
                pairs.setdefault((*changes[0], *changes[1]), []).append((own, other))
    if not pairs:
        return None
    best = max(pairs.values(), key=len)
    return (
        ("characters before or after the digits", best) if len(best) >= ENOUGH * sum(map(len, pairs.values())) else None
    )


def evidence_of_cells(name: str, strings: Sequence[str], cells: Array, known: Array, n_rows: int) -> Iterator[Evidence]:
    """Yield evidence of cells that hold several ids; `cells` and `known` are masks, the second of the other side's."""
    alone = np.flatnonzero(cells & ~known)
    texts = _sample(strings, alone, to_look_at(n_rows)) if len(alone) else []
    if SEPARATORS.search("".join(texts)) is None:
        return
    split = [text for text in texts if len(SEPARATORS.split(text.strip())) > 1]
    if not split:
        return
    ids = {*spell(strings, np.flatnonzero(known))}
    several = [text for text in split if not ids.isdisjoint(SEPARATORS.split(text.strip()))]
    if several:
        examples = tuple(map(shortened, sorted(several)[:MAX_EXAMPLES]))
        count = len(several) * len(alone) // len(texts)
        yield Evidence("several_ids", count, len(alone), examples, name)
