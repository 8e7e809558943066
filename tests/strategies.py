"""Hypothesis strategies: small logs in which the awkward cases are common."""

from dataclasses import dataclass

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
    """1 to 2 * LONGEST distinct ids of one kind: the kinds are what a hash table may stumble over."""
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
    """One user's list and truth, of a shape drawn first so that every shape is common."""
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
    """A log of up to `max_users` users whose ids come from one pool.

    `duplicates`: items may come twice in a list and in a truth. `graded=False`: every gain is 1.
    `integer`: graded, with integer gains only (-1 to 4), as a gain table needs them.
    """
    gains = [1.0] if not graded else INTEGER_GAINS if integer else GAINS
    pool = draw(id_pools())
    drawn = draw(st.lists(users(pool, gains, duplicates), max_size=max_users))
    return Log([recs for recs, _ in drawn], [truth for _, truth in drawn])


def cutoffs(huge: int = 2**31) -> st.SearchStrategy[int | None]:
    """None, 1 to 12, and one far past every list."""
    return st.one_of(st.none(), st.integers(1, 12), st.just(huge))


def min_gains() -> st.SearchStrategy[float | None]:
    """None, and values below, on, between and above the gains of `logs`."""
    return st.sampled_from([None, -2.0, 0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 100.0])


def scores(log: Log) -> st.SearchStrategy[list[list[float]]]:
    """Scores parallel to the lists, with many ties, both zeros, neighbours in float64 and infinities."""
    return st.tuples(
        *(st.lists(st.sampled_from(SCORES), min_size=len(items), max_size=len(items)) for items in log.recs)
    ).map(list)


@st.composite
def seen_items(draw: st.DrawFn, log: Log) -> list[list[int]]:
    """Items to exclude: some or all of each user's list, and at times an item that is nowhere."""
    seen = []
    for items in log.recs:
        some = [item for item in items if draw(st.booleans())]
        seen.append(draw(st.sampled_from([[], some, some, items, [*some, 987_654_321]])))
    return seen


def weights(log: Log) -> st.SearchStrategy[list[float]]:
    """One positive weight per user."""
    n_users = len(log.recs)
    return st.lists(st.sampled_from([1.0, 0.5, 2.0, 3.25, 1e-3, 1e3]), min_size=n_users, max_size=n_users)
