"""Clicks by rank and curves of position bias on random logs, against the oracle; some have hostile values.

`scripts/fuzz --target positions` runs it for long, `test_fuzz` for a few seconds.
"""

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import fastrec
from fuzz.calls import Finding
from support import position_oracle as oracle
from support.position_oracle import Row

__all__ = ["Finding", "describe", "run_case"]

ODD: list[Any] = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    2,
    1.5,
    0.0,
    1e300,
    10**400,
    10**7,
    2**63,
    -(2**63),
    "x",
    "",
]
ODD += [b"x", [], [1], {}, True, np.int8(1), np.uint64(2**64 - 1), np.float16(0.5)]
METHODS = ("ctr", "pivot", "adjacent", "em")
IDS: dict[str, Any] = {
    "small": int,
    "wide": lambda number: (number * 2_862_933_555_777_941_757) % 2**64 - 2**63,
    "strings": lambda number: f"\u00e9{number}\0"[: 2 + number % 2],
}


class Case(NamedTuple):
    """A log, an array form, a split into batches, and whether a value is hostile."""

    rows: list[Row]
    users: list[Any]
    form: Any
    cut: int
    n_threads: int
    method: str
    is_hostile: bool


def draw_case(seed: int) -> Case:
    r = random.Random(seed)
    n, n_ranks = r.choice([0, 1, 2, 5, 20, 60]), r.choice([1, 2, 3, 6])
    ids, chance = IDS[r.choice(list(IDS))], r.choice([0.0, 0.1, 0.5, 1.0])
    rank_of = r.choice([lambda: r.randint(1, n_ranks), lambda: r.choice([1, 3, 4]), lambda: r.randint(2, 1 + n_ranks)])
    rows = [Row(int(r.random() < chance), rank_of(), ids(r.randint(0, 3)), ids(r.randint(0, 4))) for _ in range(n)]
    users = [ids(r.randint(0, 4)) for _ in rows]
    is_hostile = bool(rows) and r.random() < 0.3
    if is_hostile:
        at, field = r.randrange(n), r.choice(Row._fields)
        rows[at] = rows[at]._replace(**{field: r.choice(ODD)})
    # an array of NumPy loses the NUL at the end of strings
    form = r.choice([list, tuple, np.array] if ids is not IDS["strings"] and not is_hostile else [list, tuple])
    return Case(rows, users, form, r.randint(0, n), r.randint(1, 3), r.choice(METHODS), is_hostile)


def describe(seed: int) -> str:
    case = draw_case(seed)
    return "\n".join(
        [f"{case.method}, cut {case.cut}, {case.n_threads} threads", *map(str, case.rows), str(case.users)]
    )


def run_case(seed: int) -> bool:
    """Compare one log; return whether it was not refused."""
    case = draw_case(seed)
    try:
        if case.is_hostile:
            return check_hostile(case)
        check_bias(case)
        check_counts(case)
    except AssertionError as error:
        raise Finding("wrong value", str(error)) from None
    except Exception as error:
        raise Finding("foreign error", repr(error)) from error
    return True


def columns_of(rows: Sequence[Row], form: Any = list) -> list[Any]:
    return [form(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]


def bias_of(case: Case, rows: Sequence[Row]) -> fastrec.PositionBias:
    options = {"n_rounds": 5} if case.method == "em" else {}
    columns = columns_of(rows, case.form)
    return fastrec.position_bias(*columns, method=case.method, n_samples=4, n_threads=case.n_threads, **options)


def check_bias(case: Case) -> None:
    found = bias_of(case, case.rows)
    if case.method == "em":
        assert found.examination is not None
        ours, wanted = found.examination.tolist(), oracle.em(case.rows, 5)
    else:
        ours, wanted = found.curve.tolist(), getattr(oracle, case.method)(case.rows) if case.rows else []
    assert_close(ours, wanted, case.method)
    low, high = found.interval()
    assert not (low > high).any(), "an interval has its ends the wrong way round"
    parts = [bias_of(case, part) for part in (case.rows[case.cut :], case.rows[: case.cut])]
    assert parts[0].merge(parts[1]).to_json() == found.to_json(), "merged batches differ"


def check_counts(case: Case) -> None:
    clicks, ranks, query, _ = columns_of(case.rows, case.form)
    of_users = fastrec.ctr_by_rank(clicks, ranks, user_ids=case.users, row_groups=query, n_threads=case.n_threads)
    plain = fastrec.ctr_by_rank(clicks, ranks, n_threads=case.n_threads)
    labels = {None: of_users, **of_users.groups["row_group"]}
    assert plain.impressions.sum() == len(case.rows), "rows are lost"
    for label, found in labels.items():
        for at, rank in enumerate(of_users.ranks.tolist()):
            here = [
                (row.click, user)
                for row, user in zip(case.rows, case.users, strict=True)
                if row.rank == rank and label in (None, row.query)
            ]
            ratio, error = oracle.ratio_over_users(here)
            assert_close([found.ratio[at], found.std_error[at]], [ratio, error], f"rank {rank} of {label!r}")
            if label is None:
                ends = oracle.score_interval(sum(click for click, _ in here), len(here))
                assert_close([plain.low[at], plain.high[at]], ends, f"interval at rank {rank}")


def assert_close(ours: Sequence[float], wanted: Sequence[float], what: str) -> None:
    assert len(ours) == len(wanted), f"{what}: {len(ours)} ranks, not {len(wanted)}"
    for own, other in zip(ours, wanted, strict=True):
        same = math.isnan(own) and math.isnan(other)
        assert same or abs(own - other) <= 1e-9 * max(1.0, abs(other)), f"{what}: {own} is not {other}"


def check_hostile(case: Case) -> bool:
    """Fit a log that must be refused, or counted in full."""
    try:
        found = bias_of(case, case.rows)
        clicks, ranks, *_ = columns_of(case.rows)
        counts = fastrec.ctr_by_rank(clicks, ranks, user_ids=case.users)
    except fastrec.FastrecError:
        return False
    assert found.impressions.sum() == len(case.rows) == counts.impressions.sum(), "rows are lost"
    assert all(row.click in (0, 1) and 1 <= row.rank <= 1_000_000 for row in case.rows), "wrong rows were accepted"
    return True
