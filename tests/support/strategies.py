"""Hypothesis strategies: small logs in which the awkward cases are common."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MAX_ID = 2**63 - 1
LONGEST = 12
GAINS = [1.0, 2.0, 3.0, 4.0, 0.5, 1.5, 2.25, 0.0, -1.0, -0.5]
INTEGER_GAINS = [1.0, 2.0, 3.0, 4.0, 0.0, -1.0]
SHAPES = ["any", "any", "any", "no list", "no truth", "neither", "all hits", "long truth"]
SCORES = [0.0, -0.0, 0.5, 0.25, 1.0, 1.0 + 2.0**-52, -3.0, 1e300, float("inf"), float("-inf")]


@dataclass(frozen=True)
class Log:
    """Lists in rank order and (id, gain) pairs, one of each per user."""

    recs: list[list[int]]
    truth: list[list[tuple[int, float]]]


@st.composite
def id_pools(draw: st.DrawFn) -> list[int]:
    """Draw 1 to 2 * LONGEST distinct ids of one kind, each awkward for a hash table."""
    size = draw(st.sampled_from([1, 2, 3, LONGEST, 2 * LONGEST]))
    kind = draw(st.sampled_from(["small", "largest", "progression", "same low bits", "any"]))
    if kind == "small":
        return list(range(size))
    if kind == "largest":
        return [MAX_ID - i for i in range(size)]
    if kind == "progression":
        start = draw(st.integers(0, 1000))
        step = draw(st.sampled_from([2, 3, 10, 1000, 2**16 + 1, 2**31 - 1, 2**32 + 1]))
        return [start + i * step for i in range(size)]
    if kind == "same low bits":
        start = draw(st.integers(0, 15))
        step = draw(st.sampled_from([2**4, 2**8, 2**16, 2**32, 2**58]))
        return [start + i * step for i in range(size)]
    return draw(st.lists(st.integers(0, MAX_ID), min_size=size, max_size=size, unique=True))


@st.composite
def users(
    draw: st.DrawFn, pool: list[int], gains: list[float], duplicates: bool
) -> tuple[list[int], list[tuple[int, float]]]:
    """Draw one user's list and truth; the shape comes first, so that every shape is common."""
    shape = draw(st.sampled_from(SHAPES))
    items = st.sampled_from(pool)
    recs = draw(st.lists(items, max_size=LONGEST, unique=not duplicates))
    relevant = draw(st.lists(items, max_size=LONGEST, unique=not duplicates))
    if shape in ("no list", "neither"):
        recs = []
    if shape in ("no truth", "neither"):
        relevant = []
    if shape == "all hits":
        relevant = draw(st.permutations(sorted(set(recs))))
    if shape == "long truth":
        relevant = draw(st.permutations(pool))
    if shape == "all hits":
        gains = [gain for gain in gains if gain > 0]
    return recs, [(item, draw(st.sampled_from(gains))) for item in relevant]


@st.composite
def logs(
    draw: st.DrawFn,
    *,
    duplicates: bool = False,
    graded: bool = True,
    integer: bool = False,
    max_users: int = 6,
) -> Log:
    """Draw a log of up to `max_users` users with ids from one pool.

    `duplicates`: items may come twice in a list and in a truth. `graded=False`: every gain is 1.
    `integer`: graded, with integer gains only (-1 to 4), as a gain table needs them.
    """
    gains = [1.0] if not graded else INTEGER_GAINS if integer else GAINS
    pool = draw(id_pools())
    drawn = draw(st.lists(users(pool, gains, duplicates), max_size=max_users))
    return Log([recs for recs, _ in drawn], [truth for _, truth in drawn])


def cutoffs(huge: int = 2**31) -> st.SearchStrategy[int | None]:
    """Draw None, 1 to 12, or a cut-off far past every list."""
    return st.one_of(st.none(), st.integers(1, 12), st.just(huge))


def min_gains() -> st.SearchStrategy[float | None]:
    """Draw None, or a value below, on, between or above the gains of `logs`."""
    return st.sampled_from([None, -2.0, 0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 100.0])


def scores(log: Log) -> st.SearchStrategy[list[list[float]]]:
    """Draw scores parallel to the lists, with many ties, both zeros, neighbours in float64 and infinities."""
    return st.tuples(
        *(st.lists(st.sampled_from(SCORES), min_size=len(items), max_size=len(items)) for items in log.recs)
    ).map(list)


@st.composite
def seen_items(draw: st.DrawFn, log: Log) -> list[list[int]]:
    """Draw items to exclude: some or all of each user's list, and at times an item that is nowhere."""
    seen = []
    for items in log.recs:
        some = [item for item in items if draw(st.booleans())]
        seen.append(draw(st.sampled_from([[], some, some, items, [*some, 987_654_321]])))
    return seen


def weights(log: Log) -> st.SearchStrategy[list[float]]:
    """Draw one positive weight per user."""
    n_users = len(log.recs)
    return st.lists(st.sampled_from([1.0, 0.5, 2.0, 3.25, 1e-3, 1e3]), min_size=n_users, max_size=n_users)


@dataclass(frozen=True)
class ScoredLog:
    """Labels and scores of the rows of each user."""

    labels: list[list[float]]
    scores: list[list[float]]


UNIT_SCORES = [0.0, -0.0, 0.25, 0.5, 0.5 + 2.0**-24, 0.5 + 2.0**-53, 1.0, 0.1, 0.3, 1 / 3, 2 / 15, 1.0 - 2.0**-53]
FINITE_SCORES = [0.0, -0.0, 0.5, 0.25, 1.0, 1.0 + 2.0**-52, -3.0, 7.5, 1e-30, -1e6]
SCORE_POOLS = {"unit": UNIT_SCORES, "finite": FINITE_SCORES, "any": SCORES}
LABELS = {"binary": [0.0, 1.0], "integer": INTEGER_GAINS, "graded": GAINS}
ROW_SHAPES = ["any", "any", "any", "any", "few scores", "few scores", "constant", "positive", "negative", "one", "none"]
MAX_ROWS = 6  # so many tied rows allow trying all orders


@st.composite
def scored_users(draw: st.DrawFn, pool: list[float], gains: list[float], longest: int) -> list[tuple[float, float]]:
    """Draw the (label, score) rows of one user; the shape comes first, so that every shape is common."""
    shape = draw(st.sampled_from(ROW_SHAPES))
    if shape == "none":
        return []
    if shape == "constant":
        pool = [draw(st.sampled_from(pool))]
    if shape == "few scores":
        pool = draw(st.lists(st.sampled_from(pool), min_size=2, max_size=3))
    if shape == "positive":
        gains = [1.0]
    if shape == "negative":
        gains = [0.0]
    rows = st.tuples(st.sampled_from(gains), st.sampled_from(pool))
    return draw(st.lists(rows, min_size=1, max_size=1 if shape == "one" else longest))


@st.composite
def scored_logs(
    draw: st.DrawFn,
    *,
    labels: str = "binary",
    scores: str = "any",
    max_users: int = 5,
    longest: int = MAX_ROWS,
) -> ScoredLog:
    """Draw scored rows with many ties, users of one class, of one row and of none.

    `labels`: "binary", "integer" (-1 to 4) or "graded". `scores`: "unit" (0 to 1), "finite" or "any" (infinities too).
    """
    users = draw(st.lists(scored_users(SCORE_POOLS[scores], LABELS[labels], longest), max_size=max_users))
    return ScoredLog([[label for label, _ in rows] for rows in users], [[score for _, score in rows] for rows in users])


def row_weights(log: ScoredLog) -> st.SearchStrategy[list[list[float]]]:
    """Draw one weight per row, 0 at times, in fractions that doubles hold."""
    own = st.sampled_from([1.0, 0.5, 2.0, 3.25, 0.0, 2.0**-10, 1000.0])
    return st.tuples(*(st.lists(own, min_size=len(rows), max_size=len(rows)) for rows in log.labels)).map(list)


def scored_user_weights(log: ScoredLog) -> st.SearchStrategy[list[float]]:
    """Draw one weight per user, 0 at times."""
    n_users = len(log.labels)
    return st.lists(st.sampled_from([1.0, 0.5, 2.0, 3.25, 0.0, 1e3]), min_size=n_users, max_size=n_users)


def merged(data: st.DataObject, parts: list[Any]) -> Any:
    """Merge evaluators in any order."""
    while len(parts) > 1:
        other = parts.pop(data.draw(st.integers(1, len(parts) - 1)))
        into = parts[data.draw(st.integers(0, len(parts) - 1))]
        assert into.merge(other) is into
    return parts[0]
