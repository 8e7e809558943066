"""Engines give the bits of one machine, for any partitions, and the same errors: Dask, and Ray on a local cluster."""

import functools
import importlib
import sys

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import FastrecError, FastrecWarning, InputError, InputTypeError, MissingExtraError
from support.documents import DOCS, programs
from support.engines import OnDask, OnRay, make_lists

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

METRICS = ["ndcg@10", "ndcg(gain=exp2)@5", "recall@10", "map@10", "mrr", "hit_rate@1", "rbp(p=0.8)"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:ranks of lists have gaps"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the engines
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


ENGINES = {"dask": OnDask, "dask cluster": functools.partial(OnDask, distributed=True), "ray": OnRay}


@pytest.fixture(
    scope="module",
    params=["dask", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("dask cluster", "ray"))],
)
def engine(request):
    engine = ENGINES[request.param]()
    engine.evaluate = importlib.import_module(f"fastrec.{engine.name.lower()}").evaluate
    yield engine
    engine.close()


def bits_of(report):
    groups = {
        (name, label): np.array([estimates[metric].mean for metric in report]).tobytes()
        for name, labels in report.groups.items()
        for label, estimates in labels.items()
    }
    return {name: np.float64(report[name]).tobytes() for name in report}, dict(report.users), groups


def as_lists(frame):
    """Return one row per user, with columns of lists in the order of ranks or items."""
    order = "rank" if "rank" in frame else "item_id"
    frame = frame.sort_values(["user_id", order]).groupby("user_id", as_index=False).agg(list)
    # Dask makes strings of Python objects
    return pa.Table.from_pandas(frame, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("strings", [False, True], ids=["integers", "strings"])
def test_bits_are_those_of_one_machine(engine, strings):
    recs, truth = make_lists(strings=strings)
    options = {"metrics": METRICS, "by": "plan", "user_weight": "weight"}
    wanted = fastrec.evaluate(recs, truth, METRICS, by="plan", user_weight="weight")
    for n_partitions in (None, 1, 5):
        found = engine.evaluate(engine.make(recs), engine.make(truth, 2), **options, n_partitions=n_partitions)
        assert bits_of(found) == bits_of(wanted)
        assert found.estimates == wanted.estimates


def test_columns_of_lists(engine):
    recs, truth = (as_lists(frame.drop(columns=["plan", "weight"])) for frame in make_lists(60))
    wanted = fastrec.evaluate(recs, truth, METRICS)
    assert bits_of(engine.evaluate(engine.make(recs), engine.make(truth), METRICS)) == bits_of(wanted)


def test_other_sides_and_items(engine):
    recs, truth = (frame.drop(columns=["plan", "weight"]) for frame in make_lists(80))
    history, _ = make_lists(80, seed=5)
    history = history[["user_id", "item_id"]]
    items = pd.DataFrame({"item_id": np.arange(80), "genre": np.arange(80) % 7})
    metrics = ["ndcg@10", "novelty@10", "item_coverage@5", "category_coverage(column=genre)@5"]
    options = {"history": history, "exclude": "history", "items": items}
    wanted = fastrec.evaluate(recs, truth, metrics, **options)
    for given in (items, engine.make(items)):
        options |= {"history": engine.make(history), "items": given}
        assert bits_of(engine.evaluate(engine.make(recs), engine.make(truth), metrics, **options)) == bits_of(wanted)


@pytest.mark.parametrize("strings", [False, True], ids=["integers", "strings"])
@pytest.mark.parametrize("is_known", [False, True], ids=["unknown", "known"])
def test_categories(engine, strings, is_known):
    """Dask may know the categories of pandas only in its tasks; Parquet keeps them as dictionaries."""
    frames = make_lists(40, strings=strings)
    named = [frame.assign(plan="plan " + frame["plan"].astype(str)) for frame in frames]
    missing = [frame.assign(plan=frame["plan"].where(frame["plan"] != "plan 0")) for frame in named]

    def made(frame, names):
        kinds = dict.fromkeys(names, "category")
        if is_known or engine.name == "Ray":
            return engine.make(frame.astype(kinds))
        return engine.make(frame).astype(kinds)

    for recs, truth in (frames, named, missing):
        wanted = fastrec.evaluate(recs, truth, METRICS, by="plan")
        categories = made(recs, ["user_id", "item_id", "plan"])
        for other in (made(truth, ["user_id", "item_id", "plan", "gain"]), engine.make(truth)):
            assert bits_of(engine.evaluate(categories, other, METRICS, by="plan")) == bits_of(wanted)


@pytest.mark.parametrize("kind", ["floats", "ranges"])
def test_categories_that_fastrec_refuses_as_labels(engine, kind):
    if engine.name == "Ray" and kind == "ranges":
        pytest.skip("Ray cannot move ranges of pandas")

    def with_plans(frame):
        plans = (frame["plan"] + 0.5).astype("category") if kind == "floats" else pd.cut(frame["plan"], [-1, 1, 5])
        return frame.assign(plan=plans)

    recs, truth = map(with_plans, make_lists(20))
    with pytest.raises(InputTypeError) as wanted:
        fastrec.evaluate(recs, truth, METRICS, by="plan")
    with pytest.raises(InputTypeError) as found:
        engine.evaluate(engine.make(recs), engine.make(truth), METRICS, by="plan")
    assert str(found.value) == str(wanted.value)


def test_users_are_groups(engine):
    recs, truth = make_lists(20)
    wanted = fastrec.evaluate(recs, truth, METRICS, by="user_id")
    found = engine.evaluate(engine.make(recs), engine.make(truth), METRICS, by="user_id")
    assert bits_of(found) == bits_of(wanted)


def test_partitions_without_rows(engine):
    recs, truth = make_lists(4)
    wanted = fastrec.evaluate(recs, truth, METRICS)
    found = engine.evaluate(engine.make(recs, 1), engine.make(truth, 1), METRICS, n_partitions=9)
    assert bits_of(found) == bits_of(wanted)


def test_errors_are_those_of_fastrec(engine):
    recs, truth = make_lists(30)
    good = engine.make(recs), engine.make(truth)

    def fails(*sides, error=FastrecError, metrics=METRICS, **options):
        with pytest.raises(error) as raised:
            engine.evaluate(*sides, metrics, **options)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    assert fails(*good, user="user").startswith("recs has no column 'user'")
    unordered = engine.make(recs.drop(columns="rank"))
    wanted = f"recs must have a column of ranks or scores, as {engine.name} rows have no order"
    assert fails(unordered, good[1], error=InputError) == wanted
    assert "must be a" in fails(recs, good[1], error=InputTypeError)
    as_strings = engine.make(truth.assign(user_id=truth["user_id"].astype(str)))
    assert "user ids must be of one type on all sides" in fails(good[0], as_strings, error=InputTypeError)
    twice = pd.concat([recs, recs.iloc[:1]], ignore_index=True)
    with pytest.raises(InputError):
        fastrec.evaluate(twice, truth, METRICS)
    message = fails(engine.make(twice), good[1], error=InputError)
    assert "Traceback" not in message and "row " not in message
    history = pd.DataFrame({"user_id": np.arange(40), "item_id": [*map(str, range(39)), None]})
    strings = [engine.make(frame.assign(item_id=frame["item_id"].astype(str))) for frame in (recs, truth)]
    message = fails(*strings, history=engine.make(history), metrics=["novelty@5"], error=InputError)
    assert message == "history column 'item_id' must not be null, found null"
    assert "n_partitions" in fails(*good, n_partitions=0)


def test_a_column_that_may_hold_gains_is_named(engine):
    recs, truth = make_lists(20)
    truth = truth[["user_id", "item_id", "gain"]].rename(columns={"gain": "rating"})
    for form in (lambda frame: frame, as_lists):
        with pytest.warns(FastrecWarning, match="rating"):
            engine.evaluate(engine.make(form(recs)), engine.make(form(truth)), METRICS)


def test_the_program_of_the_documentation(engine):
    recs, truth = make_lists(20)
    page = programs(DOCS / "guides" / "dask-and-ray.md")
    (program,) = (own for own in page if f"fastrec.{engine.name.lower()}." in own)
    names = {"recs": engine.make(recs), "truth": engine.make(truth)}
    exec(program, names)
    assert bits_of(names["report"]) == bits_of(fastrec.evaluate(recs, truth, ["ndcg@10", "recall@20"], by="plan"))


@pytest.mark.parametrize(("extra", "module"), [("dask", "dask.dataframe"), ("ray", "ray.data")])
def test_a_missing_package_is_one_line(monkeypatch, extra, module):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"^fastrec\.{extra} needs {extra}: pip install 'fastrec-eval\[{extra}\]'$"
    with pytest.raises(MissingExtraError, match=message):
        importlib.import_module(f"fastrec.{extra}").evaluate(*make_lists(3), METRICS)
