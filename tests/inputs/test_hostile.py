"""Hostile or careless calls: each once crashed, read past an array, or gave a wrong number."""

import math
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastrec
from fastrec.exceptions import LONGEST


def declare(formula: Any, low: float = -1e300, high: float | None = None) -> None:
    fastrec.ranking_metric(range=(low, high), name="mine")(formula)


def test_a_ragged_whose_pointers_were_changed_is_checked_again():
    indptr = np.array([0, 1000, 2000, 3000])
    lists = fastrec.Ragged(np.arange(3000), indptr)
    indptr[3] += 4_000_000
    with pytest.raises(fastrec.InputError, match="must end at the number of values"):
        fastrec.evaluate(lists, [[1], [1001], [2001]], "hits", exclude=[[], [], []])


@pytest.mark.parametrize("text", ["cg(gain=[0])", "ndcg(gain=[0])", "ndcg(gain=[0], ideal=k)"])
def test_plain_truth_must_be_in_a_gain_table_too(text):
    with pytest.raises(fastrec.InputError, match="grades 0"):
        fastrec.evaluate([[1, 2]], [[1, 2]], text)


@pytest.mark.parametrize("grade", [1e12, 1e5, 1.5])
def test_a_table_inside_a_formula_is_checked(grade):
    declare(lambda s: s.gain_sum((0.0, 1.0, 3.0), "one"))
    with pytest.raises(fastrec.InputError, match="gain table of 3"):
        fastrec.evaluate([[1]], [{1: grade}], "mine")


@pytest.mark.parametrize(
    ("truth", "wanted"), [([[1, 2, 3]], 1 + 1 / math.log2(3)), ([{1: 5.0, 2: 1.0}], 5 + 1 / math.log2(3))]
)
def test_an_ideal_alone_reaches_as_far_as_its_cutoff(truth, wanted):
    declare(lambda s: s.ideal_sum("linear", "log2", "truth"))
    assert fastrec.evaluate([[1, 2]], truth, "mine@2")["mine@2"] == pytest.approx(wanted, rel=1e-15)


def test_an_ideal_with_a_table_on_plain_truth():
    declare(lambda s: s.ideal_sum([0, 5], "one", "truth"))
    assert fastrec.evaluate([[1, 2]], [[1, 9]], "mine@2")["mine@2"] == 10


def test_merging_after_groups_grew():
    other = fastrec.Evaluator("hits")
    other.update([[1], [1]], [[1], [1]], groups=["a", "b"])
    other.update([[1]], [[1]], groups=["c"])
    report = fastrec.Evaluator("hits").merge(other).result()
    assert {label: row["hits"].users for label, row in report.groups["group"].items()} == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "formula",
    [
        lambda s: (s.hits == 0) * 1.0,
        lambda s: 1.0 - (s.hits != 0),
        lambda s: np.where(s.hits == 0, 1.0, 0.0),
    ],
)
def test_comparing_for_equality_compares_numbers(formula):
    declare(formula)
    assert fastrec.evaluate([[1], [2]], [[1], [9]], "mine", per_user=True).per_user["mine"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("ndcg(discount=[1e308, 1e308])", {1: 1.0, 2: 1.0}),
        ("ndcg(discount=[1e300, 1])", {1: 1e10}),
        ("ndcg(gain=[0, 1.7e308])@2", {1: 1.0, 2: 1.0}),
        ("ndcg", {1: 1.7e308, 2: 1.7e308}),
        ("dcg", {1: 1.7e308, 2: 1.7e308}),
    ],
)
def test_a_value_that_is_no_number_is_refused_by_name(text, truth):
    with pytest.raises(fastrec.InputError, match=r"of user 0 (is|needs sums that are) too large for a double"):
        fastrec.evaluate([[1, 2]], [truth], text)


@pytest.mark.parametrize("text", ["err(max_gain=1100)", "f_beta(beta=1e200)", "f_beta(beta=-1)"])
def test_options_that_would_leave_the_doubles_are_refused(text):
    with pytest.raises(fastrec.MetricError, match="number"):
        fastrec.evaluate([[1]], [[1]], text)


@pytest.mark.parametrize("scale", [1.0, 1e9, 1e16, 1e80])
def test_weighted_standard_errors_at_every_scale(scale):
    rng = np.random.default_rng(0)
    gains, weights = (1 + rng.random(50)) * scale, 0.5 + rng.random(50)
    report = fastrec.evaluate([[1]] * 50, [{1: gain} for gain in gains], "cg", user_weight=weights)
    mean = (weights * gains).sum() / weights.sum()
    wanted = math.sqrt(50 / 49 * (weights**2 * (gains - mean) ** 2).sum()) / weights.sum()
    assert report.std_error("cg") == pytest.approx(wanted, rel=1e-9)


@pytest.mark.filterwarnings("ignore:no truth item")
def test_best_and_worst_follow_the_gain_whatever_the_min_gain():
    scored = ([1, 2], [0, 2], [1.0, 1.0])
    for ties, wanted in (("best", 1.0), ("worst", 0.5)):
        report = fastrec.evaluate(scored, [{2: 2.0, 9: 3.0}], "mrr(min_gain=2)", min_gain=3, ties=ties)
        assert report["mrr(min_gain=2)"] == wanted


def test_sets_have_no_order():
    with pytest.raises(fastrec.InputTypeError, match="a set has no order"):
        fastrec.evaluate([{1, 2, 3}], [[1]], "mrr")
    with pytest.raises(fastrec.InputTypeError, match="groups"):
        fastrec.evaluate([[1], [2]], [[1], [2]], "mrr", groups={1, 2})
    assert fastrec.evaluate([[1, 2, 3]], [{1}], "mrr")["mrr"] == 1


ONE_ROW, ROWS = np.array([[0.9, 0.5, 0.1]]), ([1, 0, 0], [0.5, 0.5, 0.5])
CALLS_WITH_IDS: dict[str, Callable[[Any], Any]] = {
    "items of a model": lambda ids: fastrec.evaluate_model(ONE_ROW, {"u": ["x"]}, "mrr", user_ids=["u"], item_ids=ids),
    "items of lists from a model": lambda ids: fastrec.top_items(ONE_ROW, 2, item_ids=ids),
    "items of lists": lambda ids: fastrec.evaluate((ids, [0, 3]), [["x"]], "mrr"),
    "items of rows": lambda ids: fastrec.evaluate_scores(*ROWS, metrics="mrr", user_ids=["u"] * 3, item_ids=ids),
    "users of rows": lambda ids: fastrec.evaluate_scores(*ROWS, metrics="mrr", user_ids=ids),
    "items of clicks": lambda ids: fastrec.position_bias([1, 0, 1], [1, 2, 1], ["q"] * 3, ids),
    "slates": lambda ids: fastrec.policy_value([1, 0, 1], [0.5] * 3, [0.2] * 3, slate_ids=ids),
    "users of a history": lambda ids: fastrec.segment_users(["a", "b"], user_ids=ids),
}


@pytest.mark.parametrize("call", CALLS_WITH_IDS.values(), ids=CALLS_WITH_IDS)
@pytest.mark.parametrize(
    "ids", [{"x", "y", "z"}, frozenset(("x", "y", "z")), {"z": 2, "y": 1, "x": 0}], ids=["set", "frozenset", "dict"]
)
def test_ids_in_a_set_or_a_dict_have_no_positions(call, ids):
    with pytest.raises(fastrec.InputTypeError, match=rf"found a {type(ids).__name__}"):
        call(ids)


def test_ids_in_a_view_of_a_dict_are_in_its_order():
    columns = {"x": 0, "y": 1, "z": 2}
    assert fastrec.top_items(ONE_ROW, 2, item_ids=columns.keys())[0].tolist() == ["x", "y"]
    assert fastrec.top_items(ONE_ROW, 2, item_ids={0: "x", 1: "y", 2: "z"}.values())[0].tolist() == ["x", "y"]


TABLE = pd.DataFrame({"user_id": ["a", "b"], "item_id": ["x", "y"]})


@pytest.mark.parametrize("form", ["list", "series", "dict", "records", "index"])
def test_columns_and_records_are_no_users(form):
    found, says = TABLE.to_dict(form), "has the keys 'user_id' and 'item_id', which are names of columns"
    with pytest.raises(fastrec.InputTypeError, match=f"recs {says}"):
        fastrec.evaluate(found, found, "recall@1")
    users = [["x"]] * 2 if form == "records" else {0 if form == "index" else "a": ["x"]}
    with pytest.raises(fastrec.InputTypeError, match=f"truth {says}"):
        fastrec.evaluate(users, found, "recall@1")
    with pytest.raises(fastrec.InputTypeError, match=f"exclude {says}"):
        fastrec.evaluate(users, users, "recall@1", exclude=found)
    with pytest.raises(fastrec.InputTypeError, match=f"history {says}"):
        fastrec.popularity_propensity(found)


def test_merging_tells_formulas_of_the_same_name_apart():
    declare(lambda s: s.hits)
    first = fastrec.Evaluator("mine")
    declare(lambda s: s.hits * 100)
    with pytest.raises(fastrec.InputError, match="formulas"):
        first.merge(fastrec.Evaluator("mine"))


@pytest.mark.parametrize(
    "formula",
    [
        lambda s: s.hit_sum("log"),
        lambda s: s.gain_sum("exp", "log2"),
        lambda s: s.ideal_sum("linear", "log2", "trth"),
        lambda s: s.gain_sum("linear", [1.0, math.nan]),
    ],
)
def test_a_formula_that_misspells_a_statistic(formula):
    declare(formula)
    with pytest.raises(fastrec.MetricError, match="mine has no"):
        fastrec.evaluate([[1]], [[1]], "mine")


def test_arrays_may_be_changed_in_place_by_a_formula():
    def formula(s: Any) -> Any:
        values = np.where(s.hits > 0, s.hits, 0.0)
        values += 1
        return np.divide(values, s.k, out=np.zeros_like(values), where=np.asarray(s.k) > 0)

    declare(formula)
    assert fastrec.evaluate([[1, 2]], [[1]], "mine@2")["mine@2"] == 1


def test_a_masked_ragged_is_refused():
    with pytest.raises(fastrec.InputTypeError, match="masked"):
        fastrec.Ragged(np.ma.masked_array([1, 2], [0, 1]), [0, 2])


def test_a_text_is_no_list_of_items():
    with pytest.raises(fastrec.InputTypeError, match="recs items"):
        fastrec.evaluate(("abc", [0, 3]), [["a"]], "hits")


@pytest.mark.parametrize("lists", [[[1, -1, -1]], [[-5]]])
def test_negative_ids_are_told_from_duplicates_and_never_dropped(lists):
    with pytest.raises(fastrec.InputError, match="negative"):
        fastrec.evaluate(lists, [[1]], "hits")
    with pytest.raises(fastrec.InputError, match="negative"):
        fastrec.evaluate(lists, [[1]], "hits", exclude=[[-1, -5]])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"recs": (5, [0, 1])}, "recs items"),
        ({"recs": ([1, 2], [[0], [1, 2]])}, "recs indptr"),
        ({"recs": ([1, 2], [0, 2], [[1], [2, 3]])}, "recs scores"),
        ({"user_weight": [[1], [2, 3]]}, "user_weight"),
        ({"k": [np.array([1, 2])]}, "k must be"),
        ({"n_items": np.array([1, 2])}, "n_items"),
        ({"n_threads": np.array([1, 2])}, "n_threads"),
        ({"metrics": "hits@" + "1" * 5000}, "cut-off"),
    ],
)
def test_no_error_but_ours(call, error):
    with pytest.raises(fastrec.FastrecError, match=error):
        fastrec.evaluate(**{"recs": [[1]], "truth": [[1]], "metrics": "hits", **call})


def test_an_evaluator_travels_to_another_process():
    evaluator = fastrec.Evaluator(["recall(average=pooled)", "f1(average=means)@5", "ndcg"], per_user=True)
    evaluator.update([[1, 2], [3]], [[1], [9]], groups=["a", "b"], user_weight=[1.0, 2.0], user_ids=[1, 2])
    copy = pickle.loads(pickle.dumps(evaluator))
    assert copy.result().to_dict() == evaluator.result().to_dict()
    other = fastrec.Evaluator(["recall(average=pooled)", "f1(average=means)@5", "ndcg"], per_user=True)
    other.update([[1]], [[1]], groups=["a"], user_weight=[1.0], user_ids=[3])
    assert other.merge(copy).result().users["total"] == 3


def arrow_parts() -> dict[str, Any]:
    """Return inconsistent Arrow arrays, like those in foreign bytes: PyArrow itself does not check them."""
    pa = pytest.importorskip("pyarrow")

    def lists(offsets: list[int]) -> Any:
        buffers = [None, pa.py_buffer(np.array(offsets, np.int32))]
        values = [pa.array([1, 2, 3])]
        return pa.ListArray.from_buffers(pa.list_(pa.int64()), len(offsets) - 1, buffers, children=values)

    def texts(offsets: list[int], data: bytes = b"abc") -> Any:
        buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
        return pa.table({"user_id": [1, 1], "item_id": pa.StringArray.from_buffers(2, buffers[1], buffers[2])})

    def codes(indices: list[int]) -> Any:
        own = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False)
        return pa.table({"user_id": [1, 1], "item_id": own})

    return {
        "lists that fall": lists([0, 3, 1, 3]),
        "lists past the end": lists([0, 2**30, 3, 3]),
        "lists before the start": lists([0, -5, 1, 3]),
        "texts that fall": texts([0, 2, 1]),
        "texts past the end": texts([0, 2**20, 3]),
        "no text": texts([0, 1, 2], b"\xff\xfe"),
        "codes past the end": codes([0, 2**20]),
        "negative codes": codes([0, -1]),
    }


@pytest.mark.parametrize(
    "name",
    [
        "lists that fall",
        "lists past the end",
        "lists before the start",
        "texts that fall",
        "texts past the end",
        "no text",
        "codes past the end",
        "negative codes",
    ],
)
def test_arrow_arrays_whose_parts_do_not_fit(name):
    held = arrow_parts()[name]
    truth = held if hasattr(held, "column_names") else [[1]] * len(held)
    for recs, other in ((held, truth), (truth, held)):
        with pytest.raises(fastrec.InputError, match=r"not a valid Arrow array|not UTF-8"):
            fastrec.evaluate(recs, other, "hits")


def test_an_arrow_table_whose_column_has_no_name_that_can_be_read():
    pa = pytest.importorskip("pyarrow")
    stream = pa.BufferOutputStream()
    table = pa.table({"user_id": [1], "item_id": [1]})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    broken = pa.ipc.open_stream(stream.getvalue().to_pybytes().replace(b"item_id", b"\xfftem_id")).read_all()
    with pytest.raises(fastrec.InputError, match="recs has a column name that is not UTF-8"):
        fastrec.evaluate(broken, table, "hits")


class LongList(list[int]):
    """List that claims to be longer than it is."""

    def __len__(self) -> int:
        return 4_000_000


class EmptyTuple(tuple[int, ...]):
    """Tuple that claims to be empty."""

    __slots__ = ()

    def __len__(self) -> int:
        return 0


class LongDict(dict[int, float]):
    """Dict that claims to hold more than it does."""

    def __len__(self) -> int:
        return 4_000_000


class LongArray(np.ndarray):  # type: ignore[type-arg]
    """Array that claims to be longer than it is."""

    def __len__(self) -> int:
        return 4_000_000


@pytest.mark.parametrize("container", [list, dict])
@pytest.mark.parametrize("side", ["recs", "truth", "exclude"])
@pytest.mark.parametrize(
    "row",
    [LongList([1, 2]), EmptyTuple([1, 2]), LongDict({1: 2.0, 2: 1.0}), np.array([1, 2]).view(LongArray)],
    ids=lambda row: type(row).__name__,
)
def test_what_is_read_counts_not_what_a_row_says_of_its_length(row, side, container):
    def call(own: Any) -> dict[str, Any]:
        sides = {"recs": [[2, 1, 7], [3, 8]], "truth": [[1, 7], [8]], "exclude": [[2], []]} | {side: own}
        if container is dict:
            sides = {name: dict(zip("ab", rows, strict=True)) for name, rows in sides.items()}
        return fastrec.evaluate(**sides, metrics=["mrr", "ndcg", "recall"], per_user=True).per_user

    plain = {1: 2.0, 2: 1.0} if isinstance(row, dict) else [1, 2]
    rest: Any = {3: 1.0} if isinstance(row, dict) else [3]
    found, wanted = call([row, rest]), call([plain, rest])
    assert {name: values.tolist() for name, values in found.items()} == {
        name: values.tolist() for name, values in wanted.items()
    }


def test_rows_that_another_thread_grows_are_read_once():
    rows, stop = [[1, 2, 3] for _ in range(2000)], threading.Event()

    def grow() -> None:
        while not stop.is_set():
            for row in rows:
                row.append(4) if len(row) < 5 else row.pop()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=grow)
    thread.start()
    try:
        for _ in range(20):
            report = fastrec.evaluate(rows, [[1]] * 2000, "mrr", duplicates="first", n_threads=1)
            assert report["mrr"] == 1  # lists cut at the pointers of another begin with another item
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


@pytest.mark.parametrize("side", ["recs", "truth", "exclude"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_per_user_is_refused_by_user(library, side):
    frame = pytest.importorskip(library)
    make = frame.table if library == "pyarrow" else frame.DataFrame
    rows = {"recs": {"u": [1], "v": [2]}, "truth": {"u": [1], "v": [2]}, "exclude": {"u": [], "v": []}}
    rows[side]["v"] = make({"user_id": ["v", "v"], "item_id": [5, 6]})
    with pytest.raises(fastrec.InputTypeError, match=rf"{side}\['v'\] is a data frame, .*the whole frame"):
        fastrec.evaluate(**rows, metrics="mrr")
    lists = {name: list(own.values()) for name, own in rows.items()}
    with pytest.raises(fastrec.InputTypeError, match=rf"{side}\[1\] is a data frame, .*the whole frame"):
        fastrec.evaluate(**lists, metrics="mrr")


@pytest.mark.filterwarnings("ignore:no truth item")
def test_one_column_per_user_is_a_list():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user_id": [7, 7, 9], "item_id": [5, 6, 8]})
    columns = dict(list(frame.groupby("user_id")["item_id"]))
    assert fastrec.evaluate(columns, {7: [6], 9: [1]}, "mrr")["mrr"] == 0.25


def test_masked_rows_are_refused():
    with pytest.raises(fastrec.InputTypeError, match=r"recs\[0\] must not be a masked array"):
        fastrec.evaluate([np.ma.masked_array([1, 2], [0, 1]), [1]], [[1], [1]], "mrr")


@pytest.mark.parametrize("value", [None, {"u": [1]}, 3])
def test_an_array_of_no_dimension_is_no_list_of_users(value):
    with pytest.raises(fastrec.InputTypeError, match="recs must be"):
        fastrec.evaluate(np.array(value, dtype=object), [[1]], "mrr")


@pytest.mark.parametrize("length", [1, 40_000])
@pytest.mark.parametrize("column", ["user_id", "item_id", "rank", "score", "group", "weight"])
@pytest.mark.parametrize("form", ["long", "in blocks", "lists"])
def test_columns_of_different_lengths_never_reach_a_kernel(form, column, length):
    """This happens with a frame that another thread changes while its columns are read."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    class Changing(pd.DataFrame):  # type: ignore[misc]
        def __getitem__(self, name: Any) -> Any:
            values = np.array(super().__getitem__(name))
            return pd.Series(np.resize(values, length if name == column else len(values)))

    Changing.__module__ = "pandas"
    table: dict[str, Any] = {
        "long": {"user_id": [1, 2, 1], "item_id": [10, 11, 12], "rank": [1, 1, 2]},
        "in blocks": {"user_id": [1, 1, 2], "item_id": [10, 11, 12], "rank": [1, 2, 1]},
        "lists": {"user_id": [1, 2], "item_id": [[10, 11], [12]], "rank": [[1, 2], [1]]},
    }[form]
    if column == "score":
        table["score"] = table.pop("rank")
    table |= {"group": ["a"] * len(table["user_id"]), "weight": [1.0] * len(table["user_id"])}
    truth = pd.DataFrame({"user_id": [1, 2], "item_id": [10, 12]})
    with pytest.raises(fastrec.InputError, match=r"length|rows|one number per item"):
        fastrec.evaluate(Changing(table), truth, "mrr", by="group", user_weight="weight", n_threads=1)


class Unshown:
    """Value that Python cannot print."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("mine")


def of_reports(**options: Any) -> Any:
    report = fastrec.evaluate([[1], [2]], [[1], [1]], "mrr", per_user=True)
    return fastrec.compare({"a": report, "b": report}, **options)


def of_interval(**options: Any) -> Any:
    report = fastrec.evaluate([[1], [2]], [[1], [1]], "mrr", per_user=True)
    return report.interval("mrr", **{"method": "bootstrap", **options})


def of_lists(**options: Any) -> Any:
    return fastrec.evaluate(**{"recs": [[1]], "truth": [[1]], "metrics": "mrr", **options})


def of_rows(**options: Any) -> Any:
    return fastrec.evaluate_scores([1, 0], [0.1, 0.2], metrics="auc", **options)


GIVEN: dict[str, tuple[Any, str]] = {
    "evaluate": (
        of_lists,
        (
            "metrics k per_user min_gain n_items groups user_ids user_weight exclude like user by ties no_truth "
            "no_recs duplicates n_threads progress"
        ),
    ),
    "evaluate_scores": (of_rows, "k one_class ties n_threads like per_user item_ids user_ids groups sample_weight"),
    "compare": (of_reports, "level n_rounds seed test correction missing baseline metrics n_threads progress"),
    "interval": (of_interval, "level n_rounds seed method"),
    "explain": (lambda **given: fastrec.explain(**{"metric": "mrr", **given}), "metric like"),
    "auc": (lambda **given: fastrec.auc([1, 0], [0.1, 0.2], **given), "max_fpr"),
    "ScoreHistogram": (fastrec.ScoreHistogram, "bits"),
    "segment_users": (lambda **given: fastrec.segment_users([1, 2], **{"user_ids": [1], **given}), "user_ids names"),
    "ranking_metric": (fastrec.ranking_metric, "range"),
    "f_beta": (lambda **given: fastrec.count_classes([1, 0], [1, 0]).f_beta(**given), "beta"),
    "precision": (
        lambda **given: fastrec.confusion_matrix([1, 0], [0.1, 0.2], 0.5).precision(**given),
        "zero_division",
    ),
}
OF_GIVEN = [(name, argument) for name, (_, arguments) in GIVEN.items() for argument in arguments.split()]


@pytest.mark.parametrize("value", [10**5000, Unshown()], ids=["5,000 digits", "no repr"])
@pytest.mark.parametrize(("function", "argument"), OF_GIVEN)
def test_what_cannot_be_shown_is_refused_by_an_error_of_ours(function, argument, value):
    with pytest.raises(fastrec.FastrecError) as caught:
        GIVEN[function][0](**{argument: value})
    assert 10 < len(str(caught.value)) <= LONGEST


@pytest.mark.parametrize(
    "call",
    [
        lambda: of_lists(recs=[[10**5000]]),
        lambda: of_lists(recs=([10**5000], [0, 1])),
        lambda: of_lists(recs={10**5000: 5}, truth={10**5000: [1]}),
        lambda: of_lists(recs={10**5000: [1]}, truth={10**5000: []}, no_truth="error"),
        lambda: of_lists(recs=[[1], [1]], truth=[[1], [1]], user_ids=[10**5000] * 2),
        lambda: fastrec.count_classes([10**5000], [1]),
        lambda: fastrec.evaluate_by_items([[1]], [[1]], 10**5000, "mrr"),
        lambda: fastrec.ranking_metric(range=(10**5000, None)),
    ],
)
def test_numbers_too_long_to_be_shown_within_data(call):
    with pytest.raises(fastrec.FastrecError, match=r"cannot be shown|range must be"):
        call()


def test_a_long_value_is_shown_in_part():
    with pytest.raises(fastrec.FastrecError, match=r"found \[0, 1, 2, .* … .*998, 999\]$") as caught:
        of_lists(n_items=list(range(1000)))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("wanted", ["9" * 20, "9" * 5000, "0", "1048577"])
def test_no_more_threads_than_there_can_be(wanted, monkeypatch):
    with pytest.raises(fastrec.InputError, match="n_threads must be at least 1 and at most 1,048,576"):
        of_lists(n_threads=2**63 if len(wanted) > 10 else int(wanted))
    monkeypatch.setenv("FASTREC_NUM_THREADS", wanted)
    with pytest.raises(fastrec.InputError, match="FASTREC_NUM_THREADS must be an integer from 1 to 1,048,576"):
        of_lists()


@pytest.mark.parametrize(("history", "users"), [([b"a"], ["a"]), (["a"], [b"a"]), ([b"a"], [1])])
def test_bytes_and_texts_are_not_the_same_users(history, users):
    with pytest.raises(fastrec.InputTypeError, match=r"must be of one type, found \w+ and \w+"):
        fastrec.segment_users(history, users)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_label_that_no_frame_can_hold(kind):
    pytest.importorskip(kind, minversion="3" if kind == "pandas" else None)  # pandas 2 holds any text
    report = fastrec.evaluate([[1]], [[1]], "mrr", groups=["\ud800"])
    with pytest.raises(fastrec.InputError, match=f"{kind} cannot hold a label with an unpaired surrogate"):
        report.to_frame(kind)
