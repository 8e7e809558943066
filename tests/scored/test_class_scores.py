"""Areas and log loss of scores of several classes: worked cases, the naive oracle, scikit-learn, bad input."""

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import InputError, InputTypeError
from fastrec.scored.sorting import SMALL_ROWS
from support.score_oracle import DOUBLE_EPS, Row, all_pairs, cross_entropy

SCORES = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0.1, 0.6, 0.3]]
LABELS = ["a", "b", "c", "c"]
CLOSE = 1e-12
SCHEMES = [("ovr", "macro"), ("ovr", "weighted"), ("ovr", "micro"), ("ovo", "macro"), ("ovo", "weighted")]


def area(labels: list[bool], scores: list[float], weights: list[float]) -> Fraction | None:
    rows = [Row(float(label), score, Fraction(own)) for label, score, own in zip(labels, scores, weights, strict=True)]
    return all_pairs(tuple(row for row in rows if row.weight))


def naive_auc(codes: list[int], table: list[list[float]], weights: list[float], scheme: str, average: str) -> float:
    n_classes = len(table[0]) if table else 0
    if average == "micro":
        flat = [
            (code == at, own[at], w)
            for code, own, w in zip(codes, table, weights, strict=True)
            for at in range(n_classes)
        ]
        found = area(*map(list, zip(*flat, strict=True)))
        return math.nan if found is None else float(found)
    parts = []
    groups = [(at,) for at in range(n_classes)] if scheme == "ovr" else itertools.combinations(range(n_classes), 2)
    for group in groups:
        kept = [at for at, code in enumerate(codes) if scheme == "ovr" or code in group]
        own = [
            area([codes[at] == one for at in kept], [table[at][one] for at in kept], [weights[at] for at in kept])
            for one in group
        ]
        size = sum(Fraction(weights[at]) for at in kept if codes[at] in group)
        if None not in own:
            parts.append((sum(own) / len(own), size if average == "weighted" else 1))  # type: ignore[arg-type]
    whole = sum(size for _, size in parts)
    return float(sum(value * size for value, size in parts) / whole) if whole else math.nan


def random_rows(seed: int) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(seed)
    n, n_classes = int(draw.integers(1, 30)), int(draw.integers(2, 6))
    table = draw.integers(1, 5, (n, n_classes)).astype(float)
    table /= table.sum(axis=1, keepdims=True)
    weights = None if seed % 2 else draw.choice([0.0, 1.0, 0.3, 2.5], n)
    return draw.integers(0, n_classes, n), table, weights


# Worked cases


def test_one_versus_rest() -> None:
    """a beats all; b beats two of three; of c, two rows at .3 tie with b and beat a: 1/2 and 1 of 2, twice."""
    assert fastrec.multiclass_auc(LABELS, SCORES, average="none").tolist() == [1, 2 / 3, 3 / 4]
    assert fastrec.multiclass_auc(LABELS, SCORES) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3, abs=CLOSE)
    assert fastrec.multiclass_auc(LABELS, SCORES, average="weighted") == pytest.approx(
        (1 + 2 / 3 + 3 / 2) / 4, abs=CLOSE
    )


def test_one_versus_one() -> None:
    """a and b: 1; a and c: 1; b and c: b beats one of two rows of c, which tie with it at .3: 1/2."""
    assert fastrec.multiclass_auc(LABELS, SCORES, scheme="ovo") == pytest.approx((1 + 1 + 1 / 2) / 3, abs=CLOSE)
    weighted = fastrec.multiclass_auc(LABELS, SCORES, scheme="ovo", average="weighted")
    assert weighted == pytest.approx((2 * 1 + 3 * 1 + 3 / 2) / 8, abs=CLOSE)


def test_log_loss_of_classes() -> None:
    table = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]
    found = fastrec.multiclass_log_loss([7, 9], table, classes=[7, 8, 9])
    assert found == pytest.approx(-(math.log(0.5) + math.log(0.8)) / 2, abs=CLOSE)
    weighted = fastrec.multiclass_log_loss([7, 9], table, classes=[7, 8, 9], sample_weight=[3, 1])
    assert weighted == pytest.approx(-(3 * math.log(0.5) + math.log(0.8)) / 4, abs=CLOSE)
    assert fastrec.multiclass_log_loss([0, 1], [[0.0, 1.0], [0.0, 1.0]]) == pytest.approx(26 * math.log(2), rel=1e-12)


def test_two_classes_are_the_usual_metrics() -> None:
    draw = np.random.default_rng(3)
    labels, scores = draw.integers(0, 2, 500), draw.integers(1, 20, 500) / 20
    table = np.stack([1 - scores, scores], axis=1)
    assert fastrec.multiclass_auc(labels, table, average="none")[1] == fastrec.auc(labels, scores)
    expected = fastrec.evaluate_scores(labels, scores, metrics="log_loss")["log_loss"]
    assert fastrec.multiclass_log_loss(labels, table) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("labels", [[2, 5, 9, 9], [True, False, True, True], ["x", "y", "z", "z"]])
def test_classes_are_the_sorted_labels(labels: list[Any]) -> None:
    names = sorted(set(labels))
    table = np.array(SCORES)[:, : len(names)]
    codes = [names.index(label) for label in labels]
    for classes in (None, names):
        found = fastrec.multiclass_auc(labels, table, classes=classes)
        assert found == pytest.approx(naive_auc(codes, table.tolist(), [1.0] * 4, "ovr", "macro"), abs=CLOSE)
    turned = fastrec.multiclass_auc(labels, table[:, ::-1], classes=names[::-1])
    assert turned == pytest.approx(fastrec.multiclass_auc(labels, table), abs=CLOSE)


def test_absent_classes_have_no_area() -> None:
    found = fastrec.multiclass_auc([0, 1], [[0.9, 0.1, 0.3], [0.2, 0.8, 0.1]], classes=[0, 1, 2], average="none")
    assert found[:2].tolist() == [1.0, 1.0]
    assert math.isnan(found[2])
    assert fastrec.multiclass_auc([0, 1], [[0.9, 0.1, 0.3], [0.2, 0.8, 0.1]], classes=[0, 1, 2]) == 1.0
    assert math.isnan(fastrec.multiclass_auc([0, 0], [[0.9, 0.1], [0.2, 0.8]], classes=[0, 1]))
    for scheme, average in SCHEMES:
        assert math.isnan(fastrec.multiclass_auc([], np.zeros((0, 2)), classes=[0, 1], scheme=scheme, average=average))
    assert math.isnan(fastrec.multiclass_log_loss([], np.zeros((0, 2)), classes=[0, 1]))


# Against the oracle and scikit-learn


@pytest.mark.parametrize("seed", range(20))
def test_random_rows(seed: int) -> None:
    labels, table, weights = random_rows(seed)
    own = [1.0] * len(labels) if weights is None else weights.tolist()
    classes = range(table.shape[1])
    for scheme, average in SCHEMES:
        options = {"classes": classes, "scheme": scheme, "average": average, "sample_weight": weights}
        found, expected = (
            fastrec.multiclass_auc(labels, table, **options),
            naive_auc(labels.tolist(), table.tolist(), own, scheme, average),
        )
        assert found == pytest.approx(expected, abs=CLOSE, nan_ok=True), (scheme, average)
    found = fastrec.multiclass_log_loss(labels, table, classes=classes, sample_weight=weights)
    losses = [
        cross_entropy(Row(1.0, row[label], Fraction(1)), DOUBLE_EPS)
        for label, row in zip(labels.tolist(), table.tolist(), strict=True)
    ]
    expected = sum(w * loss for w, loss in zip(own, losses, strict=True)) / sum(own) if sum(own) else math.nan
    assert found == pytest.approx(expected, abs=CLOSE, nan_ok=True)


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed: pip install scikit-learn")
    draw = np.random.default_rng(seed)
    labels, table = draw.permutation(np.arange(60) % 4), draw.integers(1, 6, (60, 4)).astype(float)
    table /= table.sum(axis=1, keepdims=True)
    for scheme, average in SCHEMES:
        theirs = metrics.roc_auc_score(labels, table, multi_class=scheme, average=average)
        assert fastrec.multiclass_auc(labels, table, scheme=scheme, average=average) == pytest.approx(theirs, abs=CLOSE)
    weights = draw.choice([1.0, 0.3, 2.5], 60)
    for average in ("macro", "weighted", "micro"):
        theirs = metrics.roc_auc_score(labels, table, multi_class="ovr", average=average, sample_weight=weights)
        found = fastrec.multiclass_auc(labels, table, average=average, sample_weight=weights)
        assert found == pytest.approx(theirs, abs=CLOSE)
    theirs = metrics.log_loss(labels, table, sample_weight=weights)
    assert fastrec.multiclass_log_loss(labels, table, sample_weight=weights) == pytest.approx(theirs, abs=CLOSE)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype: Any) -> None:
    draw = np.random.default_rng(1)
    n = 2 * SMALL_ROWS
    labels, table = draw.integers(0, 3, n), draw.random((n, 3)).astype(dtype)
    for scheme, average in SCHEMES:
        own = {fastrec.multiclass_auc(labels, table, scheme=scheme, average=average, n_threads=k) for k in (1, 2, 3)}
        assert len(own) == 1


# Bad input

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"scores": [0.1, 0.2]}, InputError, "a row per label and a column per class, found shape"),
    ({"scores": [["a", "b"]] * 2}, InputTypeError, "scores must hold numbers"),
    ({"scores": [[0.1, 0.9]]}, InputError, "labels and scores must have the same length, found 2 and 1"),
    ({"scores": [[0.1, 0.9, 0.0]] * 2}, InputError, "scores have 3 columns, but labels have 2 classes: pass classes="),
    ({"scores": [[0.1, 0.9], [math.nan, 0.5]]}, InputError, "scores must not be NaN, found NaN.*1"),
    ({"classes": [0, 2]}, InputError, "labels must be in classes, found .*1"),
    ({"classes": [0, 0]}, InputError, "classes must differ"),
    ({"classes": [0, 1, 2]}, InputError, "scores have 2 columns, but classes have 3"),
    ({"classes": ["a", "b"]}, InputTypeError, "classes and labels must be of one kind, found strings and integers"),
    ({"labels": [0.5, 1.5]}, InputTypeError, "labels must be all integers or all strings, found float"),
    ({"sample_weight": [1]}, InputError, "one weight per row, 2; found 1"),
    ({"sample_weight": [1, -1]}, InputError, "sample_weight must be"),
]


@pytest.mark.parametrize("function", [fastrec.multiclass_auc, fastrec.multiclass_log_loss])
@pytest.mark.parametrize(("given", "error", "match"), BAD)
def test_bad_input(function: Any, given: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        function(**{"labels": [0, 1], "scores": [[0.1, 0.9], [0.5, 0.5]]} | given)


def test_bad_options() -> None:
    for options in ({"scheme": "one"}, {"average": "mean"}, {"scheme": "ovo", "average": "none"}):
        with pytest.raises(InputError, match="must be"):
            fastrec.multiclass_auc([0, 1], [[0.1, 0.9], [0.5, 0.5]], **options)
    with pytest.raises(InputError, match=r"scores must be probabilities from 0 to 1, found \[-0.1, 1.1\]"):
        fastrec.multiclass_log_loss([0, 1], [[0.1, 0.9], [-0.1, 1.1]])
    with pytest.raises(InputError, match=r"scores of a row must add to 1, found 1.1"):
        fastrec.multiclass_log_loss([0, 1], [[0.1, 1.0], [0.5, 0.5]])
    with pytest.raises(InputError, match=r"scores of a row must add to 1, found 1.0000003"):
        fastrec.multiclass_log_loss([0, 1], [[0.5, 0.5000003], [0.5, 0.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [3, 7, 10])
@pytest.mark.parametrize("digits", [2, 3, 4, 6])
def test_rounded_probabilities_are_taken_as_they_are(digits: int, n_classes: int, dtype: Any) -> None:
    draw = np.random.default_rng(digits)
    exact = draw.dirichlet(np.full(n_classes, 20.0), 80)
    scores, labels = np.round(exact, digits).astype(dtype), draw.integers(0, n_classes, 80)
    own = np.maximum(scores[np.arange(80), labels].astype(float), np.finfo(dtype).eps)
    is_off = bool((np.abs(scores.sum(axis=1, dtype=float) - 1) > math.sqrt(np.finfo(dtype).eps)).any())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fastrec.multiclass_log_loss(labels, scores, classes=range(n_classes))
    assert found == pytest.approx(-np.log(own).mean(), rel=CLOSE)
    assert [f"rounded to {digits} decimals" in str(one.message) for one in caught] == [True] * is_off


@pytest.mark.parametrize(
    "row",
    [
        [0.31, 0.33, 0.33],  # by 0.03: three classes in 2 decimals lose 0.015
        [0.3332, 0.3332, 0.3334],  # by 0.0002: in 4 decimals 0.00015
        [0.3, 0.3, 0.3],
        [0.01] * 90,  # 0.1, of at most 0.05 whatever the decimals
        [0.123456789012345, 0.5, 0.376543],  # not rounded
    ],
)
def test_rows_that_rounding_does_not_explain_are_errors(row: list[float]) -> None:
    with pytest.raises(InputError, match="scores of a row must add to 1, found"):
        fastrec.multiclass_log_loss([0], [row], classes=range(len(row)))


def framed(library: str, columns: list[Any]) -> Any:
    """Return probabilities of which the first column is of "b", the second of "a" and the third of "c"."""
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    module = pytest.importorskip(library)
    if library == "pandas":
        return module.DataFrame(table, columns=columns)
    return getattr(module, "table", getattr(module, "DataFrame", None))(dict(zip(columns, table.T, strict=True)))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_a_frame_are_classes(library: str) -> None:
    """Columns were taken as those of the sorted labels, whatever their names."""
    labels, table, classes = ["b", "a", "c"], framed(library, ["b", "a", "c"]), ["b", "a", "c"]
    assert fastrec.multiclass_auc(labels, table) == fastrec.multiclass_auc(labels, table, classes=classes) == 1.0
    assert fastrec.multiclass_log_loss(labels, table) == pytest.approx(-math.log(0.7 * 0.8 * 0.6) / 3, rel=CLOSE)
    assert fastrec.multiclass_auc(["b", "a", "a"], table, average="none").tolist()[:2] == [1.0, 0.75]  # none of class c
    with pytest.raises(InputError, match=r"^classes has the columns of scores in another order: leave it out"):
        fastrec.multiclass_auc(labels, table, classes=sorted(classes))
    with pytest.raises(InputError, match=r"^labels must be in the columns of scores, found 'd' at row 2: pass"):
        fastrec.multiclass_auc(["b", "a", "d"], table)
    with pytest.raises(InputTypeError, match=r"^the columns of scores and labels must be of one kind"):
        fastrec.multiclass_auc([1, 0, 2], framed(library, ["1", "0", "2"]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_that_name_no_label_are_those_of_the_sorted_labels(library: str) -> None:
    table = framed(library, ["p_b", "p_a", "p_c"])
    plain = framed("pandas", [0, 1, 2]).to_numpy()
    assert fastrec.multiclass_auc(["b", "a", "c"], table) == fastrec.multiclass_auc(["b", "a", "c"], plain) < 1.0
    assert fastrec.multiclass_auc(["b", "a", "c"], table, classes=["b", "a", "c"]) == 1.0  # other names


def test_columns_that_are_numbers() -> None:
    assert fastrec.multiclass_auc([1, 0, 2], framed("pandas", [1, 0, 2])) == 1.0
    assert fastrec.multiclass_auc([2, 1, 3], framed("pandas", [0, 1, 2])) < 1.0  # positions, not classes
    assert fastrec.multiclass_auc([2, 1, 3], framed("pandas", [2, 1, 3])) == 1.0
    with pytest.raises(InputTypeError, match="columns of scores must be all integers or all strings, found float"):
        fastrec.multiclass_auc([2, 1, 3], framed("pandas", [2.0, 1.0, 3.0]))
    with pytest.raises(InputError, match=r"^the columns of scores must differ, found one twice"):
        fastrec.multiclass_auc(["b", "a", "c"], framed("pandas", ["b", "b", "c"]))
