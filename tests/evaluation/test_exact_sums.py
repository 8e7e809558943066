"""Exact sums of values of users: by group, on any threads, of any doubles."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fastrec.evaluation import engine
from fastrec.inputs import hits
from fastrec.kernels.codes import GENERAL_SCALE, OVERFLOW

DRAW = np.random.default_rng(8)
N_USERS = 2_000
VALUES = {
    "similar": DRAW.normal(size=N_USERS),
    "of any size": DRAW.normal(size=N_USERS) * 10.0 ** DRAW.integers(-200, 150, N_USERS),
    "mostly 0": np.where(DRAW.random(N_USERS) < 0.01, 0.1, 0.0),
    "0": np.zeros(N_USERS),
}
GROUPS: dict[str, Any] = {
    "none": None,
    "one": np.ones(N_USERS, np.int32),
    "neighbours": np.sort(DRAW.integers(1, 9, N_USERS)).astype(np.int32),
    "any order, some in none": DRAW.integers(0, 4, N_USERS).astype(np.int32),
}


def in_steps(value: float) -> int:
    """Return a double in steps of 2^-GENERAL_SCALE."""
    exact = Fraction(value) * 2**GENERAL_SCALE
    assert exact.denominator == 1
    return exact.numerator


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("groups", GROUPS)
def test_sums_are_exact(groups: str, n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "SMALL_WORK", 1)
    codes, values = GROUPS[groups], np.stack(list(VALUES.values()))
    found = engine.sum_exactly(values, codes, n_threads)
    for code in [0] if codes is None else np.unique(codes[codes > 0]).tolist():
        chosen = slice(None) if codes is None else codes == code
        for row, own in enumerate(values):
            total = sum(map(in_steps, own[chosen].tolist()))
            assert found[code, row, 0] == total
            squares = sum(Fraction(value) ** 2 for value in own[chosen].tolist())
            assert abs(Fraction(int(found[code, row, 1]), 2**GENERAL_SCALE) - squares) <= squares * Fraction(1, 2**51)
    assert np.array_equal(found, engine.sum_exactly(values, codes, 1))
    if codes is None:
        assert np.array_equal(found[0], engine.sum_exactly(values, np.ones(N_USERS, np.int32), n_threads)[1])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(value: float, n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "SMALL_WORK", 1)
    values = np.stack(list(VALUES.values()))
    values[1, [700, 1_500]] = value
    values[0, [710, 1_400]] = value
    with pytest.raises(engine.KernelError) as found:
        engine.sum_exactly(values, None, n_threads)
    assert found.value.failure[:2] == (OVERFLOW, 710)  # of a block of users, the first row that has one
