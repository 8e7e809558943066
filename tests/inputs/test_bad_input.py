"""Arguments x faults x the expected errors, over the whole public surface; and that no fault leaves anything behind.

Tests of one function check its particular faults (`test_inputs.py`, `test_scores.py`, `test_files.py` and so on). This
module has the faults that all arguments of a kind share.
"""

import contextlib
import functools
import math
import os
import pickle
import re
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import fastrec
from fastrec.exceptions import LONGEST
from fastrec.files.columns import ColumnError
from fastrec.metrics import declaration
from support.command_line import run_fastrec

sparse = pytest.importorskip("scipy.sparse")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("matplotlib").use("Agg")
pytest.importorskip("click")

Value, Type, Metric = fastrec.InputError, fastrec.InputTypeError, fastrec.MetricError


# No fault leaves anything behind


def footprint(folder: Path) -> dict[str, Any]:
    """Return what a call might leave behind or change: files, threads, open files, settings of the process."""
    descriptors = Path("/proc/self/fd")
    return settings_of_process() | {
        "files": sorted(folder.rglob("*")),
        "open files": len(list(descriptors.iterdir())) if descriptors.is_dir() else None,
        # PyArrow names threads of DuckDB that read a CSV "Dummy-1", and fsspec keeps a pool with those of asyncio
        "threads": sum(not own.name.startswith(("Dummy-", "asyncio_")) for own in threading.enumerate()),
    }


def settings_of_process() -> dict[str, Any]:
    """Settings that belong to the whole process, not to fastrec."""
    return {
        "threads of Numba": numba.get_num_threads(),
        "environment": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "current folder": Path.cwd(),
        "errors of NumPy": np.geterr(),
        "random numbers": np.random.get_state(legacy=False)["state"]["pos"],  # noqa: NPY002 - those of the caller
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "metrics": list(declaration.DECLARED["lists"]),
    }


@pytest.fixture(scope="module", autouse=True)
def _used() -> None:
    """Load and use everything once: libraries open files and start threads then, and change no settings."""
    before = settings_of_process()
    for call in CALLS.values():
        call.run({})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lists.csv")
        path.write_text("user_id,item_id\n1,1\n")
        fastrec.evaluate_files(path, path, "mrr", memory="64MB")
        with contextlib.suppress(fastrec.FastrecError):  # fsspec starts a thread
            fastrec.evaluate_files("http://127.0.0.1:9/recs.csv", path, "mrr")
    assert settings_of_process() == before


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, beside the one for temporary files; a test makes its own files before the call."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = footprint(temporary)
    yield work
    after = footprint(temporary)
    assert {name: (before[name], found) for name, found in after.items() if found != before[name]} == {}


def refuse(call: Callable[[], Any], error: type[Exception], says: str) -> str:
    """Check for a fastrec error of this kind, in one line of reasonable length, and for no written file."""
    listed = sorted(Path.cwd().rglob("*"))
    with pytest.raises(fastrec.FastrecError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, error), f"{type(caught.value).__name__}: {message}"
    assert re.search(says, message), message
    assert message.isprintable() and 10 < len(message) <= LONGEST
    assert sorted(Path.cwd().rglob("*")) == listed
    return message


# Arrays


class Call(NamedTuple):
    """Function and good arguments, by the names in errors; and the kind of each array."""

    function: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]

    def run(self, change: dict[str, Any]) -> str:
        """Return the result as a string that tells bits apart."""
        return shown(self.function(self.good | change))


def shown(result: Any) -> str:
    if isinstance(result, fastrec.Report):
        values = {name: own.tolist() for name, own in result.per_user.items()} if result.has_values else {}
        return repr((result.to_dict(), values))
    if isinstance(result, dict):
        return repr({name: shown(value) for name, value in result.items()})
    if isinstance(result, fastrec.Explanation):
        return result.to_json()
    if isinstance(result, fastrec.Ragged):
        return repr((result.values.tolist(), result.indptr.tolist()))
    if isinstance(result, fastrec.CalibrationCurve | fastrec.CtrByRank | fastrec.PositionBias):
        return result.to_json()
    if isinstance(result, fastrec.Confusion | fastrec.ClassCounts):
        return repr(result)
    if isinstance(result, tuple | np.ndarray):
        return repr([np.asarray(part).tolist() for part in result])
    return repr(result) if isinstance(result, float) else type(result).__name__


ITEMS, POINTERS = np.array([1, 2, 3, 4, 5]), np.array([0, 3, 5])
HELD, HELD_POINTERS = np.array([2, 4, 9]), np.array([0, 1, 3])
LABELS, SCORES, WEIGHTS = np.array([1, 0, 1, 0, 1]), np.array([2.0, 0.5, 1.0, 0.25, 4.0]), np.array([1.0, 2, 1, 0.5, 4])


def curve_of_lists(given: dict[str, Any]) -> Any:
    return fastrec.interpolated_pr_curve(
        (given["recs items"], given["recs indptr"], given["recs scores"]),
        (given["truth items"], given["truth indptr"], given["truth gains"]),
        user_ids=given["user_ids"],
        groups=given["groups"],
    )


def lists(given: dict[str, Any]) -> fastrec.Report:
    return fastrec.evaluate(
        (given["recs items"], given["recs indptr"], given["recs scores"]),
        (given["truth items"], given["truth indptr"], given["truth gains"]),
        ["ndcg", "mrr"],
        user_ids=given["user_ids"],
        groups=given["groups"],
        user_weight=given["user_weight"],
        exclude=(given["exclude items"], given["exclude indptr"]),
        per_user=True,
    )


LISTS = {
    "recs items": (ITEMS, "ids"),
    "recs indptr": (POINTERS, "pointers"),
    "recs scores": (SCORES, "numbers"),
    "truth items": (HELD, "ids"),
    "truth indptr": (HELD_POINTERS, "pointers"),
    "truth gains": (np.array([1.0, 2.0, 4.0]), "numbers"),
    "exclude items": (np.array([1, 5]), "ids"),
    "exclude indptr": (np.array([0, 1, 2]), "pointers"),
    "user_ids": (np.array([7, 8]), "labels"),
    "groups": (np.array([1, 2]), "labels"),
    "user_weight": (np.array([1.0, 2.0]), "weights"),
}
ROWS = {
    "labels": (LABELS, "classes"),
    "scores": (SCORES, "numbers"),
    "indptr": (POINTERS, "pointers"),
    "sample_weight": (WEIGHTS, "weights"),
    "item_ids": (ITEMS, "ids"),
    "user_ids": (np.array([7, 8]), "labels"),
    "groups": (np.array([1, 2]), "labels"),
    "row_groups": (np.array([1, 2, 1, 2, 2]), "row labels"),
    "user_weight": (np.array([1.0, 2.0]), "weights"),
}
CURVE = {"labels": (LABELS, "classes"), "scores": (SCORES, "numbers"), "sample_weight": (WEIGHTS, "weights")}
CHANCES = CURVE | {"scores": (SCORES / 4, "numbers")}
TARGETS = {
    "targets": (SCORES, "numbers"),
    "predictions": (SCORES[::-1].copy(), "numbers"),
    "sample_weight": (WEIGHTS, "weights"),
}
HISTORY = np.array([1, 1, 2, 3])


def call_of(function: Callable[..., Any], arguments: dict[str, tuple[Any, str]], *, by_name: bool = True) -> Call:
    """Return a call with arguments by name, or all together."""
    good = {name: array for name, (array, _) in arguments.items()}
    kinds = {name: kind for name, (_, kind) in arguments.items()}
    return Call((lambda given: function(**given)) if by_name else function, good, kinds)


def closing(plot: Callable[..., Any]) -> Callable[..., str]:
    def drawn(**given: Any) -> str:
        import matplotlib.pyplot as plt

        try:
            return type(plot(**given)).__name__
        finally:
            plt.close("all")

    return drawn


def updated(evaluator: Any, given: dict[str, Any]) -> fastrec.Report:
    evaluator.update(**given)
    report: fastrec.Report = evaluator.result()
    return report


SIDES_OF_CURVES = ("recs", "truth", "user_ids", "groups")
CALLS: dict[str, Call] = {
    "evaluate": call_of(lists, LISTS, by_name=False),
    "interpolated_pr_curve": call_of(
        curve_of_lists, {name: LISTS[name] for name in LISTS if name.split()[0] in SIDES_OF_CURVES}, by_name=False
    ),
    "evaluate_scores": call_of(lambda **given: fastrec.evaluate_scores(metrics=["auc", "gauc"], **given), ROWS),
    "ScoreEvaluator": call_of(lambda **given: updated(fastrec.ScoreEvaluator(["auc", "gauc"]), given), ROWS),
    "evaluate_scores, a key per row": call_of(
        lambda **given: fastrec.evaluate_scores(metrics="gauc", **given),
        CURVE | {"user_ids": (np.array([7, 8, 7, 8, 8]), "ids")},
    ),
    "gauc": call_of(fastrec.gauc, {name: ROWS[name] for name in ("labels", "scores", "indptr", "sample_weight")}),
    "mae": call_of(fastrec.mae, TARGETS),
    "mse": call_of(fastrec.mse, TARGETS),
    "rmse": call_of(fastrec.rmse, TARGETS),
    "auc": call_of(fastrec.auc, CURVE),
    "roc_curve": call_of(fastrec.roc_curve, CURVE),
    "pr_curve": call_of(fastrec.pr_curve, CURVE),
    "break_even_point": call_of(fastrec.break_even_point, CURVE),
    "bounded_auc": call_of(fastrec.bounded_auc, {name: CURVE[name] for name in ("labels", "scores")}),
    "ScoreHistogram.add": call_of(
        lambda **rows: fastrec.ScoreHistogram(16).add(**rows), {name: CURVE[name] for name in ("labels", "scores")}
    ),
    "auc_test": call_of(
        fastrec.auc_test, {"labels": CURVE["labels"], "scores_a": CURVE["scores"], "scores_b": TARGETS["predictions"]}
    ),
    "confusion_matrix": call_of(
        fastrec.confusion_matrix,
        CURVE | {"thresholds": (np.array([0.5, 1.0]), "thresholds"), "indptr": (POINTERS, "pointers")},
    ),
    "calibration_curve": call_of(fastrec.calibration_curve, CHANCES),
    "ctr_by_rank": call_of(
        fastrec.ctr_by_rank,
        {"labels": CURVE["labels"], "ranks": (ITEMS, "ranks"), "user_ids": (np.array([7, 8, 7, 8, 8]), "ids")},
    ),
    "position_bias": call_of(
        fastrec.position_bias,
        {
            "clicks": CURVE["labels"],
            "ranks": (np.array([1, 1, 2, 2, 1]), "ranks"),
            "query": (np.array([1, 2, 1, 2, 1]), "ids"),
            "item": (np.array([7, 8, 7, 8, 8]), "ids"),
        },
    ),
    "count_classes": call_of(
        fastrec.count_classes,
        {
            "labels": (LABELS, "names"),
            "predictions": (LABELS[::-1].copy(), "names"),
            "sample_weight": CURVE["sample_weight"],
        },
    ),
    "Ragged": call_of(fastrec.Ragged, {"values": (ITEMS, "anything"), "indptr": (POINTERS, "pointers")}),
    "segment_users": call_of(
        fastrec.segment_users, {"history": (HISTORY, "free ids"), "user_ids": (ITEMS[:3], "free ids")}
    ),
    "segment_items": call_of(fastrec.segment_items, {"history": (HISTORY, "free ids")}),
    "evaluate_by_items": call_of(
        lambda given: fastrec.evaluate_by_items(
            (given["recs items"], POINTERS), (given["truth items"], HELD_POINTERS), {2: "a", 4: "b"}, "mrr"
        ),
        {name: LISTS[name] for name in ("recs items", "truth items")},
        by_name=False,
    ),
    "explain": call_of(
        lambda given: fastrec.explain(
            "ndcg@2", (given["recs items"], POINTERS), (given["truth items"], HELD_POINTERS), like="ranx"
        ),
        {name: LISTS[name] for name in ("recs items", "truth items")},
        by_name=False,
    ),
    "explain_scores": call_of(
        lambda **given: fastrec.explain_scores("gauc", **given, like="torchmetrics"),
        {name: ROWS[name] for name in ("labels", "scores", "indptr")},
    ),
    "plot_roc": call_of(closing(fastrec.plot_roc), CURVE),
    "plot_pr": call_of(closing(fastrec.plot_pr), CURVE),
}
NUMBERS = ("numbers", "weights", "classes")  # numbers to count with
IDS = ("ids", "labels")
EVERY = (*NUMBERS, *IDS, "pointers")


class Fault(NamedTuple):
    """Changes of a good array, and the expected error by the kind of array; None: it is as good."""

    make: Callable[[Any], Any]
    says: dict[str, tuple[type[Exception], str] | None]


def all_kinds(error: type[Exception], says: str, **others: tuple[type[Exception], str] | None) -> Any:
    return dict.fromkeys(EVERY, (error, says)) | others


def second(array: Any, value: float) -> Any:
    """Return the array with another second element."""
    return np.where(np.arange(len(array)) == 1, value, array)


class NoArray:
    """Object that has a length, and nothing in it."""

    def __len__(self) -> int:
        return 2


AS_GOOD: Any = dict.fromkeys((*EVERY, "anything"))
ONE_D = "1-D|shape|one element more"
NOT_NUMBERS = (Type, "numbers|dtype")
NO_IDS = (Type, "integers or strings|all integers or all strings")
NO_ITEMS = (Type, "must be a list or an array of ids|one label per (?:user|row)|one per row")
NO_POINTERS = (Type, "must hold integers, found dtype")
FAULTS: dict[str, Fault] = {
    # forms
    "a number": Fault(
        lambda a: 3, all_kinds(Value, ONE_D, ids=NO_ITEMS, labels=NO_ITEMS, weights=(fastrec.FastrecError, ONE_D))
    ),
    "a text": Fault(
        lambda a: "abc", all_kinds(fastrec.FastrecError, f"{ONE_D}|numbers", ids=NO_ITEMS, labels=NO_ITEMS)
    ),
    "a thing": Fault(
        lambda a: NoArray(), all_kinds(fastrec.FastrecError, f"{ONE_D}|numbers", ids=NO_ITEMS, labels=NO_ITEMS)
    ),
    "a scalar array": Fault(lambda a: np.array(1), all_kinds(Value, ONE_D, anything=(Value, ONE_D))),
    "2-D": Fault(lambda a: np.stack([a, a]), all_kinds(Value, r"shape \(2, \d\)", anything=(Value, r"shape \(2, 5\)"))),
    "a matrix": Fault(np.asmatrix, all_kinds(Type, r"np\.matrix", anything=(Type, r"np\.matrix"))),
    "masked": Fault(
        lambda a: np.ma.masked_array(a, [True] + [False] * (len(a) - 1)),
        all_kinds(Type, "masked", anything=(Type, "masked")),
    ),
    "CSR": Fault(sparse.csr_matrix, all_kinds(fastrec.FastrecError, f"{ONE_D}|{NO_IDS[1]}|dtype")),
    "COO": Fault(sparse.coo_matrix, all_kinds(fastrec.FastrecError, f"{ONE_D}|{NO_IDS[1]}|dtype|coo_matrix")),
    "parts of different lengths": Fault(
        lambda a: [[1], [1, 2], *([1] for _ in a[2:])],
        all_kinds(Type, "cannot be converted to an array", ids=NO_IDS, labels=NO_IDS),
    ),
    "too few": Fault(
        lambda a: a[:-1], all_kinds(Value, "length|end at|must have one|found shape|one element more|agree")
    ),
    "too many": Fault(
        lambda a: np.append(a, a[-1]),
        dict.fromkeys((*NUMBERS, *IDS), (Value, "length|must have one|one label per|end at|shape")),
    ),
    # types
    "objects of no number": Fault(
        lambda a: np.array([None] * len(a), object),
        all_kinds(Type, "dtype object|NoneType", labels=(fastrec.FastrecError, "None")),
    ),
    "decimals": Fault(
        lambda a: [Decimal(1)] * len(a),
        all_kinds(Type, "dtype object|Decimal", labels=(fastrec.FastrecError, "Decimal|all integers or all strings")),
    ),
    "longdouble": Fault(
        lambda a: a.astype(np.longdouble),
        all_kinds(Type, "found (dtype )?float", labels=NO_IDS),
    ),
    "complex": Fault(lambda a: a.astype(complex), all_kinds(Type, "complex128")),
    "dates": Fault(lambda a: a.astype("M8[s]"), all_kinds(Type, r"datetime64\[s\]")),
    "durations": Fault(lambda a: a.astype("m8[s]"), all_kinds(Type, r"timedelta64\[s\]")),
    "records": Fault(lambda a: np.zeros(len(a), [("a", int)]), all_kinds(Type, r"dtype \[\('a', '<i8'\)\]")),
    "texts": Fault(
        lambda a: np.array(["a"] * len(a)), dict.fromkeys((*NUMBERS, "pointers"), (Type, "found dtype <U1"))
    ),
    "bool ids": Fault(
        lambda a: a.astype(bool), {"ids": (Type, "bool"), "labels": (Type, "bool"), "pointers": NO_POINTERS}
    ),
    "float ids": Fault(
        lambda a: a.astype(float), {"ids": (Type, "float64"), "labels": (Type, "float64"), "pointers": NO_POINTERS}
    ),
    "float16": Fault(
        lambda a: a.astype(np.float16),
        all_kinds(Type, "float16", numbers=None, weights=None, classes=None),
    ),
    # values
    "NaN": Fault(
        lambda a: second(a, math.nan),
        dict.fromkeys(NUMBERS, (Value, "(?i)nan.* (row|position|user) 1"))
        | dict.fromkeys((*IDS, "pointers"), (Type, "float64")),
    ),
    "past 2**63": Fault(
        lambda a: np.full(len(a), 2**64 - 1, np.uint64),
        {
            "ids": (Value, "must not exceed 2|fit 64 bits|twice"),
            "pointers": (Value, r"must not exceed 2\*\*63 - 1, found 18446744073709551615"),
            "numbers": (Value, r"past 2\*\*53"),
            "classes": (Value, r"18446744073709551615"),
        },
    ),
    "a number past all doubles": Fault(
        lambda a: [10**400] * len(a),
        {"numbers": NOT_NUMBERS, "weights": NOT_NUMBERS, "classes": NOT_NUMBERS, "pointers": NO_POINTERS}
        | {
            "ids": (Value, "must not exceed|fit 64 bits"),
            "labels": (fastrec.FastrecError, "twice|all integers or all strings"),
        },
    ),
    "negative": Fault(
        lambda a: second(a, -1).astype(a.dtype),
        {
            "pointers": (Value, r"must not decrease: (\w+ )?indptr\[0\] = 0 > (\w+ )?indptr\[1\] = -1"),
            "classes": (Value, "0 or 1.*, found -1 at row 1"),
            "weights": (Value, "found -1.0 at (row|user) 1"),
        },
    ),
    "pointers past the end": Fault(
        lambda a: np.append(a[:-1], a[-1] + 1),
        {"pointers": (Value, r"end at the number of values, \d; found .*\[-1\] = \d")},
    ),
    "pointers that overflow": Fault(
        lambda a: np.array([0, 2**63 - 1, -(2**63)][: len(a)]), {"pointers": (Value, "must not decrease")}
    ),
    # as good
    "big-endian": Fault(lambda a: a.astype(a.dtype.newbyteorder(">")), AS_GOOD),
    "strided": Fault(lambda a: np.repeat(a, 3)[::3], AS_GOOD),
    "backwards": Fault(lambda a: a[::-1].copy()[::-1], AS_GOOD),
    "not aligned": Fault(
        lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1),
        AS_GOOD,
    ),
    "read-only": Fault(lambda a: np.frombuffer(a.tobytes(), a.dtype), AS_GOOD),
    "a list": Fault(lambda a: a.tolist(), AS_GOOD),
    "a memoryview": Fault(memoryview, AS_GOOD),
    "a Series": Fault(pd.Series, AS_GOOD),
    "objects that are integers": Fault(lambda a: a.astype(object), dict.fromkeys(IDS)),
    "booleans": Fault(lambda a: a.astype(bool), {"classes": None}),
}

# Kinds that equal another one except for some faults: labels may be any names of classes, thresholds any number, and
# rows of a history belong to no other array.
LIKE = {
    "row labels": ("labels", {"objects of no number"}),  # None: the row is in no segment
    "names": (
        "numbers",
        {
            "texts",
            "parts of different lengths",
            "decimals",
            "longdouble",
            "float16",
            "NaN",
            "past 2**63",
            "a number past all doubles",
        },
    ),
    "thresholds": ("numbers", {"a number", "a scalar array", "too few", "too many"}),
    "free ids": ("ids", {"too few", "too many"}),
    "ranks": ("numbers", set()),
}


def faults_of(kind: str) -> dict[str, tuple[type[Exception], str] | None]:
    """Changes by fault, for an array of some kind."""
    like, leave_out = LIKE.get(kind, (kind, set()))
    return {name: says[like] for name, (_, says) in FAULTS.items() if like in says and name not in leave_out}


ARRAYS = [(call, argument) for call, (_, _, kinds) in CALLS.items() for argument in kinds]


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    """The result of each call on good arguments."""
    return {name: call.run({}) for name, call in CALLS.items()}


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning", "ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_an_array_is_as_good_or_refused_by_name(name: str, argument: str, plain: dict[str, str]) -> None:
    call = CALLS[name]
    for fault, expected in faults_of(call.kinds[argument]).items():
        change = {argument: FAULTS[fault].make(call.good[argument])}
        if expected is None:
            assert call.run(change) == plain[name], fault
            continue
        error, text = expected
        message = refuse(functools.partial(call.run, change), error, text)
        assert any(word.rstrip("s") in message for word in argument.split()), f"{fault}: {message}"


@pytest.mark.thorough  # kernels are compiled for this type
@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name, argument in ARRAYS if CALLS[name].kinds[argument] in (*NUMBERS, "thresholds")],
)
def test_numbers_may_be_float32(name: str, argument: str, plain: dict[str, str]) -> None:
    call = CALLS[name]
    assert call.run({argument: call.good[argument].astype(np.float32)}) == plain[name]


# All other arguments


REPORT = fastrec.evaluate([[1], [2]], [[1], [3]], ["mrr", "ndcg@5"], per_user=True)
COMPARISON = fastrec.compare({"a": REPORT, "b": REPORT}, n_rounds=10)
FRAME = pd.DataFrame({"user_id": [1], "item_id": [1]})
ODD: dict[str, Any] = {  # no string, no number, no object that can be compared or hashed
    "an array": np.array([1, 2]),
    "an empty array": np.zeros(0),
    "a scalar array": np.array("mrr"),
    "a sparse matrix": sparse.coo_matrix(np.eye(2)),
    "a dict": {1: 2},
    "a list of lists": [[1]],
    "a complex number": 1j,
    "bytes": b"mrr",
    "a large integer": 10**400,
    "NaN": math.nan,
    "a text of two lines": "a\nb\x1b[31m",
    "a text without end": "x" * 100_000,
    "an unpaired surrogate": "\ud800",
}


class Setting(NamedTuple):
    """Call with one argument, its name in errors, and values that are no fault there."""

    call: Callable[[Any], Any]
    name: str
    fine: tuple[str, ...] = ()


def declare(**options: Any) -> None:
    fastrec.ranking_metric(**{"range": (0, 1), "name": "mine"} | options)(lambda s: s.hits)


NUMBER = ("a large integer",)
TEXTS = ("a text of two lines", "a text without end", "an unpaired surrogate")
INTERVAL = {"name": "metric|report"} | {name: name for name in ("level", "method", "n_rounds", "seed")}
SETTINGS: dict[str, Setting] = {
    **{
        f"Evaluator({name})": Setting(lambda value, name=name: fastrec.Evaluator(**{name: value}), name.rstrip("s"))
        for name in ("metrics", "like", "ties", "per_user", "min_gain", "n_items", "no_truth", "no_recs", "duplicates")
    },
    **{
        f"ScoreEvaluator({name})": Setting(
            lambda value, name=name: fastrec.ScoreEvaluator(**{name: value}), name.rstrip("s")
        )
        for name in ("metrics", "like", "ties", "per_user", "min_gain", "n_items", "no_truth", "one_class")
    },
    "Evaluator(k)": Setting(lambda value: fastrec.Evaluator(k=value), "k ", ("an array", "a dict")),
    "ScoreEvaluator(k)": Setting(lambda value: fastrec.ScoreEvaluator(k=value), "k ", ("an array", "a dict")),
    "Evaluator(n_threads)": Setting(lambda value: fastrec.Evaluator(n_threads=value), "n_threads", NUMBER),
    **{
        f"evaluate({name})": Setting(
            lambda value, name=name: fastrec.evaluate(FRAME, FRAME, "mrr", **{name: value}), f"{name}|no column"
        )
        for name in ("user", "item", "rank", "score", "gain", "progress")
    },
    "evaluate(by)": Setting(
        lambda value: fastrec.evaluate(FRAME, FRAME, "mrr", by=value), "by|column", ("an empty array", "a dict")
    ),
    "evaluate_by_items(segments)": Setting(
        lambda value: fastrec.evaluate_by_items([[1]], [[1]], value, "mrr"), "segments", ("a dict",)
    ),
    **{
        f"compare({name})": Setting(
            lambda value, name=name: fastrec.compare({"a": REPORT, "b": REPORT}, **{"n_rounds": 5, name: value}), name
        )
        for name in ("baseline", "test", "correction", "level", "n_rounds", "seed", "missing", "progress")
    },
    "compare(metrics)": Setting(
        lambda value: fastrec.compare({"a": REPORT, "b": REPORT}, metrics=value, n_rounds=5), "metric"
    ),
    "compare(reports)": Setting(fastrec.compare, "reports"),
    "compare_curves": Setting(lambda value: fastrec.compare_curves(value, value), "curve"),
    "explain(metric)": Setting(fastrec.explain, "metric"),
    "explain(like)": Setting(lambda value: fastrec.explain("ndcg@5", like=value), "like", ("an empty array",)),
    "explain(n_users)": Setting(lambda value: fastrec.explain("ndcg@5", n_users=value), "n_users", NUMBER),
    **{
        f"Report.interval({name})": Setting(
            lambda value, name=name: REPORT.interval(
                **{"name": "mrr", "method": "bootstrap", "n_rounds": 5, name: value}
            ),
            says,
        )
        for name, says in INTERVAL.items()
    },
    "Estimate.margin": Setting(REPORT.estimates["mrr"].margin, "level"),
    "Report[name]": Setting(REPORT.__getitem__, "this report has mrr, ndcg@5"),
    "Report.per_user[name]": Setting(REPORT.per_user.__getitem__, "this report has mrr, ndcg@5"),
    "Report.name_of": Setting(REPORT.name_of, "this report has mrr, ndcg@5"),
    "Report.std_error": Setting(REPORT.std_error, "this report has mrr, ndcg@5"),
    "Report.is_mean": Setting(REPORT.is_mean, "this report has mrr, ndcg@5"),
    "Report.to_frame": Setting(REPORT.to_frame, "kind"),
    "Report.plot": Setting(REPORT.plot, "ax"),
    "Report.to_html(title)": Setting(lambda value: REPORT.to_html(title=value), "title", TEXTS),
    "Report.to_html(path)": Setting(REPORT.to_html, "path", TEXTS),
    "Report.save": Setting(REPORT.save, "path", TEXTS),
    "Comparison.to_frame": Setting(COMPARISON.to_frame, "kind"),
    "Comparison.plot": Setting(COMPARISON.plot, "metric"),
    "Comparison.is_significant": Setting(COMPARISON.is_significant, "row"),
    "Comparison.to_html(path)": Setting(COMPARISON.to_html, "path", TEXTS),
    "load": Setting(fastrec.load, "path", TEXTS),
    "Evaluator.from_bytes": Setting(fastrec.Evaluator.from_bytes, "from_bytes|state"),
    "ScoreEvaluator.from_bytes": Setting(fastrec.ScoreEvaluator.from_bytes, "from_bytes|state"),
    "Evaluator.merge": Setting(fastrec.Evaluator("mrr").merge, "merge"),
    "ScoreHistogram.merge": Setting(fastrec.ScoreHistogram(16).merge, "merge"),
    "ScoreEvaluator.merge": Setting(fastrec.ScoreEvaluator("auc").merge, "merge"),
    "segment_users(names)": Setting(lambda value: fastrec.segment_users([1], [1], names=value), "names"),
    "segment_items(shares)": Setting(lambda value: fastrec.segment_items([1], shares=value), "shares"),
    "ranking_metric(range)": Setting(lambda value: declare(range=value), "range", ("an array",)),
    "score_metric(needs)": Setting(
        lambda value: fastrec.score_metric(range=(0, 1), needs=value), "needs", ("an empty array",)
    ),
    "ranking_metric(name)": Setting(lambda value: declare(name=value), "name", ("a text without end",)),
    "bounded_auc(bits)": Setting(lambda value: fastrec.bounded_auc(LABELS, SCORES, bits=value), "bits"),
    "ScoreHistogram": Setting(fastrec.ScoreHistogram, "bits"),
    "auc(max_fpr)": Setting(lambda value: fastrec.auc(LABELS, SCORES, max_fpr=value), "max_fpr"),
    "gauc(weight)": Setting(lambda value: fastrec.gauc(LABELS, SCORES, POINTERS, weight=value), "weight"),
    "gauc(one_class)": Setting(lambda value: fastrec.gauc(LABELS, SCORES, POINTERS, one_class=value), "one_class"),
    "gauc(constant)": Setting(lambda value: fastrec.gauc(LABELS, SCORES, POINTERS, constant=value), "constant"),
    "interpolated_pr_curve(levels)": Setting(
        lambda value: fastrec.interpolated_pr_curve([[1]], [[1]], levels=value), "levels"
    ),
    "interpolated_pr_curve(rounding)": Setting(
        lambda value: fastrec.interpolated_pr_curve([[1]], [[1]], rounding=value), "rounding"
    ),
    "calibration_curve(bins)": Setting(lambda value: fastrec.calibration_curve(LABELS, SCORES / 4, bins=value), "bins"),
    "calibration_curve(level)": Setting(
        lambda value: fastrec.calibration_curve(LABELS, SCORES / 4, level=value), "level"
    ),
    "calibration_curve(min_gain)": Setting(
        lambda value: fastrec.calibration_curve(LABELS, SCORES / 4, min_gain=value), "min_gain"
    ),
    "Report.to_html(curves)": Setting(
        lambda value: REPORT.to_html(curves=value), "curves", ("an empty array", "an empty list")
    ),
    "calibration_curve(strategy)": Setting(
        lambda value: fastrec.calibration_curve(LABELS, SCORES / 4, strategy=value), "strategy"
    ),
    "plot_roc(ax)": Setting(lambda value: fastrec.plot_roc(LABELS, SCORES, ax=value), "ax"),
    "plot_pr(label)": Setting(lambda value: fastrec.plot_pr(LABELS, SCORES, label=value), "label", TEXTS),
}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", SETTINGS)
def test_odd_values_of_other_arguments_are_refused_by_name(name: str) -> None:
    call, says, fine = SETTINGS[name]
    for odd, value in ODD.items():
        if odd not in fine:
            refuse(functools.partial(call, value), fastrec.FastrecError, says)


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_may_have_any_title(name: str) -> None:
    page = REPORT.to_html(title=ODD[name])
    assert page is not None
    assert page.encode().startswith(b"<!doctype html>")


def test_a_metric_that_is_not_there_does_not_list_all_that_are() -> None:
    """The error names the nearest metric if one is near, else a few and how to list the others; all if nothing lists
    them."""
    many = fastrec.evaluate([[1]], [[1]], ["ndcg", "recall"], k=range(1, 200), per_user=True)
    both = fastrec.compare({"a": many, "b": many}, n_rounds=10)
    calls: list[Callable[[], Any]] = [
        lambda: fastrec.explain("zzz"),
        lambda: fastrec.explain("zzz", like=["ranx", "recbole"]),
        lambda: fastrec.evaluate([[1]], [[1]], "zzz"),
        lambda: many["zzz"],
        lambda: many["ndcg@500"],
        lambda: both.plot("zzz"),
        lambda: both.plot("ndcg@500"),
    ]
    for call in calls:
        assert len(refuse(call, Value, "zzz|ndcg@500")) < 220
    of_tool = refuse(lambda: fastrec.evaluate([[1]], [[1]], "zzz", like="trec_eval"), Value, "zzz")
    assert len(of_tool) < 600 and of_tool.endswith("IPrec@{level}") and "…" not in of_tool
    assert "did you mean 'recall'?" in refuse(lambda: many["recal@3"], fastrec.MetricNotFoundError, "recal")
    refuse(lambda: fastrec.explain("zzz"), Metric, r"known: hits, .*… \(\d+ of them: fastrec.catalogue\(\)\)")


def test_every_public_function_is_in_a_table() -> None:
    named = set(re.findall(r"\w+", " ".join([*CALLS, *SETTINGS])))
    results = {"AucTest", "BoundedAuc", "ComparisonRow", "CurveComparison", "Explanation", "GroupEstimate"}
    results |= {"CalibrationCurve", "CtrByRank", "InterpolatedPrCurve", "PositionBias", "PrCurve", "RocCurve"}
    results |= {name for name in fastrec.__all__ if name.endswith(("Error", "Warning"))}
    in_calls = {"Confusion", "ClassCounts", "evaluate_files"}  # the first two in test_classes.py, the last below
    in_calls |= {"drift", "Drift", "evaluate_model", "top_items"}  # in test_drift.py and test_models.py
    in_calls |= {"popularity_propensity"}  # in test_weighted.py
    in_calls |= {"list_metric"}  # in test_list_metric.py
    in_calls |= {"compare_scores"}  # in test_compare_scores.py
    in_calls |= {"policy_value", "PolicyEstimate", "PolicyEstimates"}  # in test_policy_value.py
    assert set(fastrec.__all__) - named - results - in_calls == {"__version__", "catalogue", "warmup"}


def test_a_file_error_survives_its_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(ColumnError("a.csv: no column 'x'", role="label")))
    assert (str(error), error.role) == ("a.csv: no column 'x'", "label")


# Files


LISTS_OF_FILE = {"user_id": [1, 1, 2], "item_id": [10, 11, 12], "score": [0.5, 0.25, 0.5]}
TRUTH_OF_FILE = {"user_id": [1, 2], "item_id": [11, 12], "gain": [1.0, 2.0]}
LOG_OF_FILE = {"user_id": [1, 1, 2], "label": [1, 0, 1], "score": [0.5, 0.25, 0.5]}
HOSTILE = '"; DROP TABLE x; --'
WRITERS: dict[str, Callable[[Path, dict[str, Any]], Any]] = {
    "csv": lambda path, columns: pd.DataFrame(columns).to_csv(path, index=False),
    "parquet": lambda path, columns: pq.write_table(pa.table(columns), path),
    "jsonl": lambda path, columns: pd.DataFrame(columns).to_json(path, orient="records", lines=True),
}


class FileFault(NamedTuple):
    """Column of a file to replace, leave out (None) or add; and the expected error."""

    columns: dict[str, Any]
    says: str


FILE_FAULTS: dict[str, FileFault] = {
    "no such column": FileFault({"user_id": None, "User": [1, 1, 2]}, r"no column 'user_id' \(did you mean 'User'\?\)"),
    "a null": FileFault(
        {"user_id": pd.array([1, None, 2], "Int64")}, r"column 'user_id' must not be null, found null in (row|line) 2"
    ),
    "a text among numbers": FileFault(
        {"score": ["0.5", "many", "1"]}, "column 'score' must hold numbers, found 'many' in (row|line) 2"
    ),
    "texts against integers": FileFault(
        {"user_id": ["a", "b", "c"]}, "user ids (cannot be matched|must be of one type)"
    ),
    "decimals as ids": FileFault(
        {"user_id": [1.5, 2.5, 3.5]}, "column 'user_id' (holds decimal numbers|must hold .*found double)"
    ),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("memory", [None, "64MB"])
@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_lists_in_files_are_refused_by_file_column_and_row(fault: str, form: str, memory: Any, here: Path) -> None:
    change, says = FILE_FAULTS[fault]
    WRITERS[form](here / f"recs.{form}", without_none(LISTS_OF_FILE | change))
    WRITERS[form](here / f"truth.{form}", TRUTH_OF_FILE)
    paths = here / f"recs.{form}", here / f"truth.{form}"
    message = refuse(lambda: fastrec.evaluate_files(*paths, "mrr", memory=memory), fastrec.FastrecError, says)
    assert str(paths[0]) in message


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("fault", [name for name in FILE_FAULTS if name != "texts against integers"])
def test_logs_in_files_are_refused_by_file_column_and_row(fault: str, form: str, here: Path) -> None:
    change, says = FILE_FAULTS[fault]
    path = here / f"log.{form}"
    WRITERS[form](path, without_none(LOG_OF_FILE | change))
    call = functools.partial(fastrec.evaluate_files, path, metrics=["auc", "gauc"], user="user_id")
    assert str(path) in refuse(call, fastrec.FastrecError, says)


def without_none(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in columns.items() if values is not None}


def write_recs(name: str, content: bytes = b"user_id,item_id\n1,10\n") -> str:
    Path(name).write_bytes(content)
    return name


def twice() -> str:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([10]), pa.array([11])], ["user_id", "item_id", "item_id"])
    pq.write_table(table, "twice.parquet")
    return "twice.parquet"


def loop() -> str:
    Path("loop").symlink_to("loop")
    return "loop"


def emptied(name: str) -> str:
    Path(name).mkdir()
    return name


PATHS: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: "", "must be a valid file name"),
    "a NUL in the name": (lambda: "a\0b.csv", "must be a valid file name"),
    "a long name": (lambda: "a" * 5000, "File name too long"),
    "a URL of another kind": (lambda: "ftp://place/recs.csv", "no such file; URLs begin with http, https, s3, gs, az,"),
    "a URL of no server": (lambda: "http://127.0.0.1:9/recs.csv", "cannot be read: Cannot connect to host 127.0.0.1:9"),
    "a link to itself": (loop, "Too many levels of symbolic links"),
    "below a file": (lambda: write_recs("recs.csv") + "/recs.csv", "no such file"),
    "an empty folder": (lambda: emptied("folder"), "no files in this folder"),
    "an empty file": (lambda: write_recs("empty.csv", b""), "empty, not even a header"),
    "a name that is not UTF-8": (lambda: write_recs(os.fsdecode(b"a\xff.csv")), "the name is not UTF-8"),
    "UTF-32": (
        lambda: write_recs("wide.csv", "user_id,item_id\n1,10\n".encode("utf-32-be")),
        "nor text in UTF-8|neither",
    ),
    "a column twice": (twice, "has the column 'item_id' 2 times"),
    "nested without end": (
        lambda: write_recs("deep.jsonl", b'{"user_id": 1, "item_id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
        "line 1|nested",
    ),
    "a number without end": (
        lambda: write_recs("long.jsonl", b'{"user_id": 1, "item_id": ' + b"9" * 5000 + b"}\n"),
        "cannot be read|must not exceed|above",
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_files_that_are_none(name: str) -> None:
    make, says = PATHS[name]
    path, good = make(), write_recs("good.csv")
    for call in (
        lambda: fastrec.evaluate_files(path, good, "mrr"),
        lambda: fastrec.evaluate_files(good, path, "mrr"),
        lambda: fastrec.evaluate_files(good, good, "mrr", exclude=path),
        lambda: fastrec.explain("mrr", path, good),
    ):
        refuse(call, fastrec.FastrecError, says)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users of a system that knows them")
def test_files_that_may_not_be_read(here: Path) -> None:
    recs = write_recs("recs.csv")
    Path(recs).chmod(0)
    ours = os.geteuid()
    for folder in (here, here.parent, here.parent.parent, here.parent.parent.parent):
        if ours == 0 and folder.stat().st_uid == 0:
            folder.chmod(0o755)
    if ours == 0:  # root may read everything
        os.seteuid(65534)
    try:
        with pytest.raises(OSError, match=r"Permission denied.*recs\.csv"):
            fastrec.evaluate_files(recs, recs, "mrr")
        with pytest.raises(OSError, match="Permission denied"):
            fastrec.load(recs)
        result = run_fastrec("evaluate", recs, recs)
    finally:
        os.seteuid(ours)
    assert (result.exit_code, result.output) == (2, "fastrec: error: recs.csv: Permission denied\n")


OF_FILES = {
    **{name: f"{name}|no column" for name in ("user", "item", "rank", "score", "gain")},
    **{
        name: f"{name} must|no such file|not UTF-8|File name too long"
        for name in ("truth", "users", "exclude", "temp_directory")
    },
    "by": "^by |the column|no column",
    "input_format": "input_format must be one of",
    "memory": "memory must be a size",
    "progress": "progress must be callable as",
}


@pytest.mark.parametrize("argument", OF_FILES)
def test_odd_values_of_arguments_for_files_are_refused_by_name(argument: str) -> None:
    path = write_recs("recs.csv")
    fine = {"by": ("an empty array", "a dict")}.get(argument, ())
    for odd, value in ODD.items():
        if odd not in fine:
            options = {"truth": path, "metrics": "mrr", argument: value}
            options |= {"by": "plan"} if argument == "users" else {}
            refuse(functools.partial(fastrec.evaluate_files, path, **options), fastrec.FastrecError, OF_FILES[argument])


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfuser_id,item_id\n1,10\n", b"user_id,item_id\r\n1,10\r\n"])
def test_marks_of_other_systems_are_no_fault(content: bytes) -> None:
    path = write_recs("marked.csv", content)
    assert fastrec.evaluate_files(path, path, "mrr")["mrr"] == 1.0


# The command line


COMPARE = ("compare", "a=gone.csv", "b=gone.csv", "--truth", "gone.csv", "-m", "ndcg@5,mrr")
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a metric that is not compared": (
        (*COMPARE, "--baseline", "a", "--fail-if-worse", "ndcg@10"),
        "--fail-if-worse ndcg@10: the metric is not evaluated, only ndcg@5, mrr",
    ),
    "a metric that is none": (
        (*COMPARE, "--baseline", "a", "--fail-if-worse", "ndgc@5"),
        "unknown metric 'ndgc'; did you mean 'ndcg'?",
    ),
    "a baseline that is none": ((*COMPARE, "--baseline", "old"), "--baseline old is not one of the systems a, b"),
    "a level that is none": ((*COMPARE, "--level", "95"), "level must lie between 0 and 1, both excluded, found 95.0"),
    "no rounds": ((*COMPARE, "--rounds", "0"), "--rounds must be an integer from 1 to 10000000, found 0"),
    "a negative seed": ((*COMPARE, "--seed", "-1"), "seed must be an integer from 0 to 18446744073709551615"),
    "a metric of a log": (
        ("compare", "a=gone.csv", "b=gone.csv", "-m", "auc", "--baseline", "a", "--fail-if-worse", "gauc"),
        "--fail-if-worse gauc: the metric is not evaluated, only auc",
    ),
    "a threshold on another metric": (
        ("evaluate", "gone.csv", "gone.csv", "-m", "mrr", "--fail-under", "ndcg@5=0.1"),
        "--fail-under ndcg@5: the metric is not evaluated, only mrr",
    ),
    "a tool that is none": (("evaluate", "gone.csv", "gone.csv", "--like", "trec"), "--like trec is not a tool"),
    "a metric that no side knows": (("explain", "zzz", "gone.csv", "gone.csv"), "unknown metric 'zzz'"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_typos_are_found_before_any_file_is_read(name: str, here: Path) -> None:
    """None of the files exists, and no error says so."""
    arguments, says = COMMANDS[name]
    result = run_fastrec(*arguments)
    lines = result.output.splitlines()
    assert result.exit_code == 2
    assert len(lines) == 1
    assert lines[0].startswith("fastrec: error: ")
    assert says in lines[0]
    assert list(here.iterdir()) == []
