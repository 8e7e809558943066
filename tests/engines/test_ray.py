"""What only Ray has: vectors, blocks of pandas, types that differ between blocks, and CPUs of tasks."""

import numpy as np
import pytest

import fastrec
from fastrec.clusters import ray
from fastrec.exceptions import InputError, InputTypeError
from support.engines import OnRay, make_lists

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

METRICS = ["ndcg@10", "recall@10", "mrr"]
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Ray
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def engine():
    engine = OnRay()
    yield engine
    engine.close()


def test_vectors_are_lists(engine):
    """A batch of a model is often an array of users and a matrix of items."""
    draw = np.random.default_rng(0)
    items = np.array([draw.permutation(50)[:10] for _ in range(40)])
    truth = pd.DataFrame({"user_id": np.arange(40), "item_id": items[:, 3]})
    wanted = fastrec.evaluate(dict(enumerate(items)), dict(enumerate(items[:, 3:4])), METRICS)
    users = engine.data.from_numpy(np.arange(40)).repartition(3)

    def as_matrix(batch):
        return {"user_id": batch["data"], "item_id": items[batch["data"]]}

    def as_vectors(batch):
        """Return vectors of 10 items, but one of 9."""
        lists = [items[user, : 9 if user == 20 else 10] for user in batch["data"]]
        vectors = np.empty(len(lists), object)
        vectors[:] = lists
        return {"user_id": batch["data"], "item_id": vectors}

    for made in (as_matrix, as_vectors):
        for recs in (users.map_batches(made), users.map_batches(made).materialize()):
            found = fastrec.ray.evaluate(recs, engine.make(truth), METRICS)
            assert [found[name] for name in METRICS] == [wanted[name] for name in METRICS]


def test_blocks_of_pandas_and_of_arrow_in_one_dataset(engine):
    recs, truth = make_lists(50, strings=True)
    wanted = fastrec.evaluate(recs, truth, METRICS)
    half = len(recs) // 2
    in_arrow = engine.data.from_arrow(pa.Table.from_pandas(recs[:half], preserve_index=False))
    in_pandas = engine.make(recs[half:]).map_batches(lambda batch: batch, batch_format="pandas")
    for own in (in_arrow.union(in_pandas), in_pandas.union(in_arrow)):
        found = fastrec.ray.evaluate(own, engine.make(truth), METRICS)
        assert [found[name] for name in METRICS] == [wanted[name] for name in METRICS]


def test_ids_of_other_kinds_do_not_match(engine):
    """A cast would make user 20 of "020" and of 20.0."""
    recs, truth = make_lists(30)
    first, rest = recs[recs["user_id"] < 20], recs[recs["user_id"] >= 20]
    for users in ("0" + rest["user_id"].astype(str), rest["user_id"].astype(float), rest["user_id"] + 0.5):
        mixed = engine.make(first, 1).union(engine.make(rest.assign(user_id=users), 1))
        with pytest.raises(InputTypeError, match=r"^recs: a part of the rows has columns user_id .* to one type$"):
            fastrec.ray.evaluate(mixed, engine.make(truth), METRICS)
    labelled = engine.make(first, 1).union(engine.make(rest.assign(plan="0" + rest["plan"].astype(str)), 1))
    with pytest.raises(InputTypeError, match=r"plan \w*string.*, expected .*plan int64"):
        fastrec.ray.evaluate(labelled, engine.make(truth), METRICS, by="plan")


def test_blocks_without_a_common_schema_are_an_error(engine):
    recs, truth = make_lists(20)
    table = pa.Table.from_pandas(recs, preserve_index=False)
    named = table.set_column(0, "user_id", table["user_id"].cast(pa.string()))
    with pytest.raises(InputTypeError, match=r"^recs has blocks with different types of a column: .*user_id.*$"):
        fastrec.ray.evaluate(engine.data.from_arrow([table, named]), engine.make(truth), METRICS)


def test_a_column_that_a_block_lacks_is_an_error(engine):
    recs, truth = make_lists(20)
    table = pa.Table.from_pandas(recs, preserve_index=False)
    lacking = engine.data.from_arrow([table, table.drop_columns("item_id")])
    with pytest.raises(InputError, match=r"^recs: a block lacks the column 'item_id'$"):
        fastrec.ray.evaluate(lacking, engine.make(truth), METRICS)


def test_categories_in_parquet(engine, tmp_path):
    recs, truth = make_lists(50, strings=True)
    kinds = dict.fromkeys(["user_id", "item_id", "plan"], "category")
    wanted = fastrec.evaluate(recs, truth, METRICS, by="plan")
    sides = []
    for name, frame in (("recs", recs), ("truth", truth)):
        frame.astype(kinds).to_parquet(tmp_path / f"{name}.parquet")
        sides.append(engine.data.read_parquet(str(tmp_path / f"{name}.parquet")))
    assert any(isinstance(kind, pa.DictionaryType) for kind in sides[0].schema().types)
    found = fastrec.ray.evaluate(*sides, METRICS, by="plan")
    assert [found[name] for name in METRICS] == [wanted[name] for name in METRICS]
    assert found.groups == wanted.groups


@pytest.mark.parametrize("size", [1, 1000, 3000])
def test_small_blocks_are_packed_together(engine, monkeypatch, size):
    monkeypatch.setattr(ray, "TASK_BYTES", size)
    recs, truth = make_lists(50)
    wanted = fastrec.evaluate(recs, truth, METRICS)
    for n_partitions in (None, 1, 4):
        given = engine.make(recs, 7), engine.make(truth, 2)
        found = fastrec.ray.evaluate(*given, METRICS, n_partitions=n_partitions)
        assert [found[name] for name in METRICS] == [wanted[name] for name in METRICS]


def test_settings_stay_and_tasks_ask_for_no_more_cpus_than_a_node_has(engine):
    recs, truth = (engine.make(frame) for frame in make_lists(20))
    before = repr(engine.data.DataContext.get_current())
    found = fastrec.ray.evaluate(recs, truth, METRICS, n_threads=64)
    assert found.users == fastrec.ray.evaluate(recs, truth, METRICS).users
    assert repr(engine.data.DataContext.get_current()) == before


@pytest.mark.filterwarnings("ignore:no user with truth has a list")
@pytest.mark.filterwarnings("ignore:the truth has no rows")
def test_datasets_without_rows(engine):
    recs, truth = make_lists(20)
    wanted = fastrec.evaluate(recs[:0], truth, METRICS)
    rows = engine.make(recs)
    nothing = [
        engine.data.from_arrow(pa.Table.from_pandas(recs[:0], preserve_index=False)),
        rows.map_batches(lambda batch: batch[:0], batch_format="pandas"),
        rows.map_batches(lambda batch: batch.slice(0, 0), batch_format="pyarrow"),
    ]
    for none in nothing:
        found = fastrec.ray.evaluate(none, engine.make(truth), METRICS)
        assert found.users == wanted.users and [found[name] for name in METRICS] == [wanted[name] for name in METRICS]
    for n_partitions in (None, 3):
        fastrec.ray.evaluate(none, none.select_columns(["user_id", "item_id"]), METRICS, n_partitions=n_partitions)


def test_evaluate_names_the_function_that_takes_datasets(engine):
    recs, truth = make_lists(5)
    with pytest.raises(InputTypeError, match=r"found a ray\.data\.\S+, which fastrec\.ray\.evaluate takes$"):
        fastrec.evaluate(engine.make(recs), engine.make(truth))
    with pytest.raises(InputTypeError, match=r"recs is a ray\.data\.\S+, which fastrec\.ray\.evaluate takes$"):
        fastrec.evaluate(engine.make(recs), truth)
