"""Odd values: NumPy types that only look like numbers, strings that end in NUL, names that control a terminal.

Data frames and files give the same values for them, or the same kind of error.
"""

import importlib.util
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import warn
from fastrec.metrics import calls
from support.command_line import run_fastrec
from support.tables import write_table

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
FINE = {  # which keeps its meaning
    ("bool", "classes"),
    ("float16", "a number"),
    ("datetime64", "user_ids that are a list"),  # values that differ, like tuples
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
    with pytest.raises(fastrec.InputTypeError, match="user ids must be integers or strings"):
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


def lines_run(call: Callable[[], Any]) -> int:
    """Count the lines of Python that a call runs until its fastrec error."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(fastrec.FastrecError):
            call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")
@pytest.mark.parametrize("what", LONG_TEXTS)
def test_what_is_too_long_is_refused_before_it_is_read(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pattern and no loop sees its characters: one line of Python per ten characters would be 100,000."""
    parse, read = calls._parse, [""]
    monkeypatch.setattr(calls, "_parse", lambda text, *more: (read.append(text), parse(text, *more))[1])
    lines_run(LONG_TEXTS[what])  # imports the modules it needs
    assert lines_run(LONG_TEXTS[what]) < 50_000
    assert max(map(len, read)) <= calls.MAX_LENGTH


HOSTILE = "\x1b]0;owned\x07\x9b31m\nnext"


def shown_texts(tmp_path: Any) -> dict[str, str]:
    """Return everything that shows a name from data."""
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


# The same odd values in data frames and in files

NAN, INF = float("nan"), float("inf")
INEXACT = 2**53 + 1  # no double equals this integer
ROUTES = [f"{kind}{how}" for kind in ("csv", "parquet", "jsonl") for how in ("", ", streamed")]
RANKS: dict[str, list[Any]] = {
    "integers with a gap": [1, 1000],
    "floats with a gap": [1.0, 1000.0],
    "floats without a gap": [1.0, 2.0],
    "no whole number": [1.5, 2.5],
    "past every integer": [1.0, 1e20],
    "past what floats tell apart": [2.0**53, 2.0**53 + 2],
    "64-bit integers": [INEXACT, INEXACT - 1],
    "past 64 bits": [1, 2**64 - 1],
    "negative": [-1, 1],
    "negative floats": [-1.0, 1.0],
    "NaN": [1.0, NAN],
    "infinite": [1.0, INF],
    "booleans": [True, False],
}
NUMBERS: dict[str, list[Any]] = {
    "the largest exact integers": [2**53 - 1, 2**53],
    "an integer past 2**53": [2**53, INEXACT],
    "an integer past -2**53": [-INEXACT, 0],
    "past 64 bits": [1, 2**64 - 1],
    "booleans": [False, True],
    "NaN": [1.0, NAN],
    "infinite": [1.0, INF],
    "large": [1.0, 1e200],
}
NUL = {
    "one text with NUL at the end": ["x\0", "x"],
    "two of them": ["y\0", "x\0"],
    "one of them and none": [None, "x\0"],
}
LABELS: dict[str, list[Any]] = {
    "small": [1, 2],
    "from -2**63": [-(2**63), 0],
    "past 64 bits": [2**63, 2**64 - 1],
    "booleans": [True, False],
    "a null": [1, None],
    "with zeros": ["01", "1"],
    **NUL,
}
TYPED_LABELS: dict[str, list[Any]] = {"texts of integers": ["10", "9"]}  # which a CSV cannot tell from integers


def odd_lists(**order: list[Any]) -> dict[str, dict[str, list[Any]]]:
    return {"recs": {"user_id": [1, 1], "item_id": [7, 8], **order}, "truth": {"user_id": [1, 1], "item_id": [8, 9]}}


def odd_truth(values: list[Any]) -> dict[str, dict[str, list[Any]]]:
    rows = {"user_id": [1, 1], "item_id": [7, 8]}
    return {"recs": rows, "truth": {**rows, "gain": values}}


def odd_rows(**columns: list[Any]) -> dict[str, dict[str, list[Any]]]:
    return {"log": {"label": [0, 1], "score": [0.25, 0.5], **columns}}


def labelled(values: list[Any]) -> dict[str, dict[str, list[Any]]]:
    rows = {"user_id": [1, 2], "item_id": [7, 8]}
    return {"recs": rows, "truth": {**rows, "plan": values}}


def labelled_twice(recs: list[Any], truth: list[Any]) -> dict[str, dict[str, list[Any]]]:
    rows = {"user_id": [1, 2], "item_id": [7, 8]}
    return {"recs": {**rows, "plan": recs}, "truth": {**rows, "plan": truth}}


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"ranks, {name}": (odd_lists(rank=own), {"metrics": "mrr"}) for name, own in RANKS.items()},
    "ranks as places": (odd_lists(rank=[1.0, 1000.0]), {"metrics": "ndcg@3", "like": "rectools"}),
    "ranks that a tool takes in two ways": (odd_lists(rank=[1.0, 3.0]), {"metrics": "ndcg@3", "like": "lenskit"}),
    **{f"scores of lists, {name}": (odd_lists(score=own), {"metrics": "mrr"}) for name, own in NUMBERS.items()},
    **{f"gains, {name}": (odd_truth(own), {"metrics": "ndcg"}) for name, own in NUMBERS.items()},
    **{f"scores of rows, {name}": (odd_rows(score=own), {"metrics": "auc"}) for name, own in NUMBERS.items()},
    **{f"targets, {name}": (odd_rows(label=own), {"metrics": "mae"}) for name, own in NUMBERS.items()},
    **{
        f"weights, {name}": (odd_rows(weight=own), {"metrics": "mae", "sample_weight": "weight"})
        for name, own in NUMBERS.items()
    },
    **{
        f"labels to group by, {name}": (labelled(own), {"metrics": "mrr", "by": "plan"})
        for name, own in {**LABELS, **TYPED_LABELS}.items()
    },
}
ONE_THIRD = Decimal("0.333333333333333314829616256247")
DECIMALS: dict[str, list[Any]] = {
    "places": [Decimal("0.1"), Decimal("0.3")],
    "many places": [ONE_THIRD, ONE_THIRD - Decimal(10) ** -16],
    "no places": [Decimal(0), Decimal(1)],
    "no places, past 53 bits": [Decimal(INEXACT), Decimal(1)],
    "no places, past 64 bits": [Decimal(10**30), Decimal(1)],
}
OF_DECIMALS: dict[str, tuple[Any, dict[str, Any]]] = {
    f"{what}, {name}": (make(own), options)
    for what, make, options in (
        ("ranks", lambda own: odd_lists(rank=own), {"metrics": "mrr"}),
        ("scores of lists", lambda own: odd_lists(score=own), {"metrics": "mrr"}),
        ("gains", odd_truth, {"metrics": "ndcg"}),
        ("scores of rows", lambda own: odd_rows(score=own), {"metrics": ["auc", "mse"]}),
        ("labels", lambda own: odd_rows(label=own), {"metrics": "auc"}),
        ("targets", lambda own: odd_rows(label=own), {"metrics": "mse"}),
        ("weights", lambda own: odd_rows(weight=own), {"metrics": "mse", "sample_weight": "weight"}),
    )
    for name, own in DECIMALS.items()
}
LABELS_OF_BOTH: dict[str, tuple[list[Any], list[Any]]] = {
    "integers of several widths": ([1, 2**40], [1, 2**40]),
    "integers and nulls": ([1, 2], [None, None]),
    "texts and nulls": (["1", "2"], [None, None]),
    "nulls": ([None, None], [None, None]),
    "integers and texts": ([1, None], [None, "a"]),
    "integers and texts of integers": ([1, 2], ["1", "2"]),
}
CASES |= {
    f"labels of both sides, {name}": (labelled_twice(*own), {"metrics": "mrr", "by": "plan"})
    for name, own in LABELS_OF_BOTH.items()
}
NOT_IN_CSV = {  # which has no zero bytes and no types
    *(f"labels to group by, {name}" for name in (*NUL, *TYPED_LABELS, "past 64 bits", "booleans")),
    *(f"labels of both sides, {name}" for name in LABELS_OF_BOTH if "texts" in name),
}


def found_in(evaluate: Callable[[], fastrec.Report]) -> Any:
    """Return values of users and groups and the warnings of a report, or the kind of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            report = evaluate()
        except fastrec.FastrecError as error:
            return type(error)
    groups = [(by, label, str(dict(own))) for by, groups in report.groups.items() for label, own in groups.items()]
    return str(dict(report)), groups, report.warnings


def odd_table(columns: dict[str, list[Any]]) -> Any:
    pa = pytest.importorskip("pyarrow")

    def kind(values: list[Any]) -> Any:
        return pa.uint64() if any(type(value) is int and value >= 2**63 for value in values) else None

    return pa.table({name: pa.array(values, kind(values)) for name, values in columns.items()})


def in_files_and_frames(case: Any, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return what files give, and what data frames give."""
    tables, options = case
    kind, _, streamed = route.partition(", ")
    if streamed:
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    frames = {name: odd_table(columns) for name, columns in tables.items()}
    paths = {name: write_table(odd_table(columns), tmp_path / f"{name}.{kind}") for name, columns in tables.items()}
    entry: Any = fastrec.evaluate if "truth" in tables else fastrec.evaluate_scores
    wanted = found_in(lambda: entry(*frames.values(), **options))
    found = found_in(lambda: fastrec.evaluate_files(paths.get("recs", paths.get("log")), paths.get("truth"), **options))
    return found, wanted


@pytest.mark.thorough(
    except_for="(gains|weights).*-csv$|(ranks, no whole number|scores of .*, infinite|labels .*, a null)-csv"
)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", CASES)
def test_odd_values_are_in_files_what_they_are_in_frames(
    case: str, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if route.startswith("csv") and case in NOT_IN_CSV:
        pytest.skip("a CSV cannot hold it")
    found, wanted = in_files_and_frames(CASES[case], route, tmp_path, monkeypatch)
    assert found == wanted


@pytest.mark.parametrize("route", ["parquet", "parquet, streamed"])
@pytest.mark.parametrize("case", OF_DECIMALS)
def test_decimals_are_in_files_what_they_are_in_frames(
    case: str, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = in_files_and_frames(OF_DECIMALS[case], route, tmp_path, monkeypatch)
    assert found == wanted


def test_decimals_are_rounded_once_in_frames() -> None:
    pa = pytest.importorskip("pyarrow")
    decimals = [Decimal(n) / 1000 for n in range(1000)]  # PyArrow's own cast gives another double for many of them
    zeros, values = [0.0] * len(decimals), list(map(float, decimals))
    wanted = fastrec.evaluate_scores(zeros, values, metrics="mae", user_ids=range(1000), per_user=True).per_user["mae"]
    frame = pa.table({"label": zeros, "score": pa.array(decimals), "user_id": range(1000)})
    found = fastrec.evaluate_scores(frame, metrics="mae", per_user=True)
    assert np.array_equal(found.per_user["mae"], wanted)


def test_ranks_in_a_csv_are_exact_however_they_are_written(tmp_path: Path) -> None:
    truth = write_table({"user_id": [1], "item_id": [8]}, tmp_path / "truth.csv")
    for first, second in (("9007199254740993", "9007199254740992"), ("9007199254740993.0", "9007199254740992.0")):
        recs = tmp_path / "recs.csv"
        recs.write_text(f"user_id,item_id,rank\n1,7,{first}\n1,8,{second}\n")
        with pytest.warns(fastrec.FastrecWarning, match="user 1: 9007199254740992, 9007199254740993"):
            assert fastrec.evaluate_files(recs, truth, "mrr")["mrr"] == 1.0


@pytest.mark.parametrize("number", [str(INEXACT), f"+{INEXACT}", f" {INEXACT}", "1" + "0" * 50])
def test_an_integer_in_a_csv_is_not_rounded_beside_decimals(number: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"label,score\n0,0.5\n1,{number}\n")
    with pytest.raises(fastrec.InputError, match=r"'score' holds an integer past 2\*\*53.* in row 2"):
        fastrec.evaluate_files(log, metrics="auc")
    log.write_text("label,score\n0,0.5\n1,1e50\n")
    assert fastrec.evaluate_files(log, metrics="auc")["auc"] == 1.0


def test_users_of_two_columns_may_end_in_nul(tmp_path: Path) -> None:
    from fastrec.evaluation.rows import RowEvaluation
    from fastrec.files.columns import RowColumns
    from fastrec.files.resources import Resources
    from fastrec.files.rows import evaluate_log

    columns = {"a": ["x", "x", "x\0", "x\0"], "b": [1, 1, 2, 2], "label": [0, 1, 1, 0], "score": [1, 2, 1, 2]}
    path = write_table(columns, tmp_path / "log.parquet")
    found = evaluate_log(
        lambda _: RowEvaluation("gauc", per_user=True),
        {"log": path},
        RowColumns(users=("a", "b")),
        Resources(),
    )
    assert {name: users.tolist() for name, users in found.users.items()} == {"a": ["x", "x\0"], "b": [1, 2]}


def odd_types() -> dict[str, Any]:
    """Return columns of two values in types that ids, labels or numbers rarely have."""
    pa = pytest.importorskip("pyarrow")
    days = pa.array([0, 86_400_000_000])
    return {
        "lists": pa.array([[1], [2]]),
        "lists of one length": pa.array([[1], [2]], pa.list_(pa.int64(), 1)),
        "maps": pa.array([[(1, 2)], []], pa.map_(pa.int64(), pa.int64())),
        "structs": pa.array([{"a": 1}, {"a": 2}]),
        "bytes": pa.array([b"1", b"2"]),
        "views of bytes": pa.array([b"1", b"2"]).cast(pa.binary_view()),
        "views of strings": pa.array(["1", "2"]).cast(pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, 2])),
        "times": days.cast(pa.timestamp("us")),
        "times of a zone": days.cast(pa.timestamp("us", "Europe/Berlin")),
        "categories of times": days.cast(pa.timestamp("us")).dictionary_encode(),
        "categories of bytes": pa.array([b"1", b"2"]).dictionary_encode(),
        "categories of integers": pa.array([1, 2]).dictionary_encode(),
        "past 64 bits": pa.array([2**63, 2**63 + 1], pa.uint64()),
        "booleans": pa.array([True, False]),
        "floats": pa.array([1.0, 2.0]),
        "decimals": pa.array([Decimal("1.5"), Decimal("2.5")]),
        "strings": pa.array(["1", "2"]),
        "zeros": pa.array(["01", "2"]),
        "nulls": pa.nulls(2),
        "a null": pa.array([1, None]),
    }


TYPES = tuple(odd_types()) if importlib.util.find_spec("pyarrow") else ()
IN_LOGS = {"user_id": {}, "label": {}, "score": {}, "w": {"sample_weight": "w"}, "by": {"by": "by"}}


@pytest.mark.parametrize("place", [*IN_LOGS, "users: user_id", "users: by", "items: item_id"])
@pytest.mark.parametrize("kind", TYPES)
def test_types_are_read_alike_whole_and_in_parts(
    kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa, odd = pytest.importorskip("pyarrow"), odd_types()[kind]
    side, _, name = place.rpartition(": ")
    plain = {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "label": [0, 1, 1, 0], "score": [0.1, 0.2, 0.3, 0.4]}
    tables = {"log": pa.table(plain), "users": pa.table({"user_id": [1, 2], "by": ["a", "b"]})}
    tables["items"] = pa.table({"item_id": [1, 2], "price": [1, 2]})
    own = tables[side or "log"].to_pydict()
    values = odd if side in ("users", "items") else pa.concat_arrays([odd, odd])
    tables[side or "log"] = pa.table({**own, name: values})
    paths = {table: write_table(rows, tmp_path / f"{table}.arrow") for table, rows in tables.items()}

    def read() -> Any:
        if side == "items":
            recs, truth = str(tmp_path / "recs.arrow"), paths["log"]
            write_table(tables["log"].drop_columns(["label", "score"]), tmp_path / "recs.arrow")
            return fastrec.evaluate_files(recs, truth, "own_price", items=paths["items"])
        users = {"users": paths["users"], "by": "by"} if side == "users" else IN_LOGS[name]
        return fastrec.evaluate_files(paths["log"], metrics=["auc", "log_loss"], user=["user_id"], **users)

    whole = found_in(read)
    spells_numbers = name in ("label", "score", "w") and kind in ("strings", "views of strings", "zeros")
    if side == "" and not isinstance(whole, type) and not spells_numbers:
        assert whole == found_in(
            lambda: fastrec.evaluate_scores(tables["log"], metrics=["auc", "log_loss"], **IN_LOGS[name])
        )
    monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    assert found_in(read) == whole


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_any_type_match_or_are_refused(kind: str, tmp_path: Path) -> None:
    odd = odd_types()[kind]
    table = pytest.importorskip("pyarrow").table({"key": odd, "label": [0, 1], "score": [0.25, 0.5]})
    paths = [write_table(table, tmp_path / f"{name}.arrow") for name in "ab"]
    told = run_fastrec("compare", *paths, "-m", "auc", "--row-key", "key")
    assert told.exit_code == 0 or "column 'key'" in told.stderr


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("labels", [["a", "b"], [1, 2]])
def test_labels_of_users_fill_rows_without_any(tmp_path: Path, labels: list[Any]) -> None:
    pa = pytest.importorskip("pyarrow")
    users = write_table(pa.table({"user_id": [1, 2], "by": labels}), tmp_path / "users.arrow")
    rows = {"user_id": [1, 2], "item_id": [1, 2]}
    recs = write_table(pa.table(rows), tmp_path / "recs.arrow")
    for kind in (pa.null(), pa.string(), pa.int64(), pa.dictionary(pa.int8(), pa.string())):
        truth = write_table(pa.table({**rows, "by": pa.nulls(2, kind)}), tmp_path / "truth.arrow")
        found = fastrec.evaluate_files(recs, truth, "mrr", users=users, by="by").groups["by"]
        assert [(label, own["mrr"].users) for label, own in found.items()] == [(label, 1) for label in labels]
