"""Odd values: types of NumPy that only look like numbers, texts that end in NUL, names that steer a terminal."""

import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import warn

ODD = {
    "timedelta64": np.array([1, 2], "m8[s]"),
    "datetime64": np.array([1, 2], "M8[s]"),
    "void": np.zeros(2, "V4"),
    "a structure": np.zeros(2, [("a", "i4")]),
    "complex": np.array([1, 2], np.complex64),
    "float16": np.array([1, 2], np.float16),
    "bool": np.array([True, False]),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "a row of lists": lambda odd: fastrec.evaluate([odd], [[1]], "recall@1"),
    "a row of truth": lambda odd: fastrec.evaluate([[1]], [odd], "recall@1"),
    "a list of scalars": lambda odd: fastrec.evaluate([list(odd)], [[1]], "recall@1"),
    "flat items": lambda odd: fastrec.evaluate((odd, [0, 2]), ([1], [0, 1]), "recall@1"),
    "user_ids": lambda odd: fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", user_ids=odd),
    "user_ids that are a list": lambda odd: fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", user_ids=list(odd)),
    "groups": lambda odd: fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", groups=odd),
    "groups that are a list": lambda odd: fastrec.evaluate([[1]] * 2, [[1]] * 2, "recall@1", groups=list(odd)),
    "keys of rows": lambda odd: fastrec.evaluate_scores([1, 0], [0.5, 0.4], user_ids=odd, metrics="gauc"),
    "keys of rows that are a list": lambda odd: fastrec.evaluate_scores(
        [1, 0], [0.5, 0.4], user_ids=list(odd), metrics="gauc"
    ),
    "classes": lambda odd: fastrec.count_classes(list(odd), list(odd)),
    "a number": lambda odd: fastrec.evaluate([[1]], [[1]], "recall@1", min_gain=odd[1]),
}
FINE = {  # what is taken for what it is
    ("bool", "classes"),
    ("float16", "a number"),
    ("datetime64", "user_ids that are a list"),  # things that can be told apart, as tuples are
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_number_and_no_text_is_refused_whatever_numpy_derives_it_from(odd: str, call: str) -> None:
    if (odd, call) in FINE:
        CALLS[call](ODD[odd])
        return
    with pytest.raises(fastrec.FastrecError):
        CALLS[call](ODD[odd])


@pytest.mark.parametrize("user", [Decimal(1), Fraction(1), 1 + 0j, True, 1.0, np.timedelta64(1, "s")])
def test_numbers_that_equal_an_integer_are_no_ids(user: Any) -> None:
    with pytest.raises(fastrec.InputTypeError, match="user ids must be integers or texts"):
        fastrec.evaluate({user: [1]}, {user: [1]}, "recall@1")


@pytest.mark.parametrize("form", ["array", "dict", "rows"])
def test_labels_that_end_in_nul_are_labels(form: str) -> None:
    labels = ["b", "b\0"]
    evaluator: Any = fastrec.Evaluator("recall@1", per_user=True)
    given: Any = {"plan": labels} if form == "dict" else labels
    if form == "rows":
        evaluator = fastrec.ScoreEvaluator("gauc", per_user=True)
        evaluator.update([1, 0] * 2, [0.5, 0.4] * 2, user_ids=[1, 1, 2, 2], groups=["b", "b", "b\0", "b\0"])
    else:
        evaluator.update([[1], [2]], [[1], [1]], groups=given)
    again = type(evaluator).from_bytes(evaluator.to_bytes())
    for report in (evaluator.result(), again.result()):
        ((grouping, found),) = report.groups.items()
        assert list(found) == labels
        assert report.labels[grouping].tolist() == labels


LONG = "a" * 10**6
LONG_TEXTS: dict[str, Callable[[], Any]] = {
    "a metric": lambda: fastrec.evaluate([[1]], [[1]], LONG),
    "a metric of a tool": lambda: fastrec.evaluate([[1]], [[1]], LONG, like="ranx"),
    "an option": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg({LONG}=1)"),
    "a choice": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg(gain={LONG})"),
    "a cut-off": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg@{'1' * 10**6}"),
    "options": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg({'a=1,' * 10**5})"),
    "blanks": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg{' ' * 10**6}x"),
    "brackets": lambda: fastrec.evaluate([[1]], [[1]], f"ndcg{'(' * 10**6}"),
    "a tool": lambda: fastrec.evaluate([[1]], [[1]], "ndcg", like=LONG),
    "a policy": lambda: fastrec.evaluate([[1]], [[1]], "ndcg", ties=LONG),  # type: ignore[arg-type]
    "of a report": lambda: fastrec.evaluate([[1]], [[1]], "ndcg")[LONG],
    "explained": lambda: fastrec.explain(LONG),
    "a user": lambda: fastrec.evaluate({"\x1b" * 10**5: [1, 1]}, {"\x1b" * 10**5: [1]}, "ndcg"),
}


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")
@pytest.mark.parametrize("what", LONG_TEXTS)
def test_what_is_too_long_is_refused_soon(what: str) -> None:
    before = time.process_time()
    with pytest.raises(fastrec.FastrecError):
        LONG_TEXTS[what]()
    assert time.process_time() - before < 1.5


HOSTILE = "\x1b]0;owned\x07\x9b31m\nnext"


def shown_texts(tmp_path: Any) -> dict[str, str]:
    """Whatever shows a name that came from data."""
    report = fastrec.evaluate(
        [[1], [2]], [[1], [1]], "recall@1", groups={HOSTILE: [HOSTILE, "b"]}, per_user=True, user_ids=[HOSTILE, "c"]
    )
    report.save(tmp_path / "report")
    loaded = fastrec.load(tmp_path / "report")
    compared = fastrec.compare({HOSTILE: report, "other": loaded})
    explained = fastrec.explain("ndcg@1", {HOSTILE: [HOSTILE, "x"]}, {HOSTILE: ["x"]}, like="ranx", n_users=3)
    counted = fastrec.count_classes([HOSTILE, "b"], ["b", HOSTILE])
    found = {"report": report, "loaded": loaded, "comparison": compared, "explanation": explained, "classes": counted}
    return {f"{how.__name__} of {name}": how(one) for name, one in found.items() for how in (repr, str)}


def test_no_name_steers_a_terminal(tmp_path: Any) -> None:
    for name, text in shown_texts(tmp_path).items():
        assert all(line.isprintable() for line in text.split("\n")), name
        assert "next" not in [line[:4] for line in text.split("\n")], name


def test_no_warning_steers_a_terminal() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn([HOSTILE])
    assert str(caught[0].message).isprintable()
