"""Benchmarks still run, at tiny size; logs have their documented form; tables say what was measured."""

import json
import sys

import numpy as np
import pytest

from bench import cases, field, field_features, file_rivals, files, floor, plan, report, rivals, run
from bench.measure import Spread


@pytest.mark.thorough(except_for="^import$")
@pytest.mark.filterwarnings("ignore:.* few slates decide")
@pytest.mark.parametrize("name", run.BENCHMARKS)
def test_each_benchmark_runs(name, tmp_path):
    rows = run.BENCHMARKS[name](run.TINY, tmp_path)
    for row in rows:
        assert np.isfinite(row.spread).all()
        assert row.to_dict()["name"] in run.to_text(rows)
        json.dumps(row.to_dict(), allow_nan=False)


def rows_of(items, indptr):
    return [row.tolist() for row in np.split(items, indptr[1:-1])]


@pytest.mark.parametrize("length", [3, 20, 100, (20, 100)])
def test_logs_have_no_duplicates_and_the_hits_asked_for(length):
    log = cases.make_log(2_000, length, n_items=5_000, hit_share=0.15, seed=5)
    lists, held = rows_of(*log.recs), rows_of(*log.truth)
    assert all(len(set(row)) == len(row) for row in lists + held)
    low, high = (length, length) if isinstance(length, int) else length
    assert {len(row) for row in lists} <= set(range(low, high + 1))
    assert 8 < np.mean([len(row) for row in held]) < 9.5
    if low >= 20:
        hits = sum(len(set(a) & set(b)) for a, b in zip(lists, held, strict=True))
        assert 0.12 < hits / len(log.truth_items) < 0.17
    counts = np.sort(np.bincount(log.rec_items, minlength=5_000))[::-1]
    assert counts[:500].sum() > 2 * counts[-2_500:].sum()  # a long tail
    assert log.rec_items.min() >= 0 and log.rec_items.max() < 5_000


def test_chunks_leave_no_seam(monkeypatch):
    monkeypatch.setattr(cases, "ROWS_PER_CHUNK", 1_000)
    log = cases.make_log(500, 20)
    assert all(len(set(row)) == 20 for row in rows_of(*log.recs))
    assert log.rec_indptr[-1] == len(log.rec_items) and log.truth_indptr[-1] == len(log.truth_items)


def test_the_same_seed_gives_the_same_log():
    first, second, third = (cases.make_log(50, 20, seed=seed) for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first.rec_items, third.rec_items)


def test_wide_ids_are_the_same_items():
    log = cases.make_log(200, 20)
    wide = cases.widen(log)
    assert wide.rec_items.dtype == np.int64 and 2**60 < wide.rec_items.max() < 2**62
    pairs = {*zip(log.rec_items.tolist(), wide.rec_items.tolist(), strict=True)}
    pairs |= {*zip(log.truth_items.tolist(), wide.truth_items.tolist(), strict=True)}
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


def test_the_giant_stands_in_the_middle():
    log = cases.make_log(10, 20)
    giant = cases.add_giant(log, 1_000)
    assert np.diff(giant.rec_indptr).tolist() == [20] * 5 + [1_000] + [20] * 5
    lists, held = rows_of(*giant.recs), rows_of(*giant.truth)
    assert lists[:5] + lists[6:] == rows_of(*log.recs)
    assert len(set(lists[5])) == len(set(held[5])) == 1_000
    assert len(set(lists[5]) & set(held[5])) == 150


def test_saved_logs_come_back(tmp_path):
    log = cases.make_log(20, 20)
    cases.save(log, tmp_path / "log")
    assert all(np.array_equal(a, b) for a, b in zip(log, cases.load(tmp_path / "log"), strict=True))


def test_the_floor_reads_everything():
    log = cases.make_log(100, 20)
    floor.check(log)
    changed = log._replace(truth_items=np.append(log.truth_items[:-1], log.truth_items[-1] + 1))
    assert floor.index(changed) == floor.index(log) + 1


def test_a_rival_with_other_numbers_is_found_out():
    with pytest.raises(AssertionError, match=r"differ in recall@5: 0\.5 and 0\.25"):
        rivals.check_equal("theirs", {"recall@5": 0.5}, {"recall@5": 0.25})


@pytest.fixture
def results():
    rows = [
        run.Row("1M users x 100 items: means / floor", Spread(3.14159, 3.1, 3.2), "x", 4, 3, "100 ms / 30 ms"),
        run.Row("a call", Spread(0.7, 0.6, 0.8), "ms", 0.5),
        run.Row("something to compare with", Spread(2.0, 2.0, 2.0), "x"),
        run.Row("a way to bring 100k rows: arrays", Spread(0.5, 0.5, 0.5), "s", note="0.2M rows/s"),
        run.Row("a way to bring 10M rows: arrays", Spread(5.0, 5.0, 5.0), "s", note="2M rows/s"),
        run.Row("a way to bring 10M rows: files", Spread(9.0, 9.0, 9.0), "s", note="1.1M rows/s"),
    ]
    return {
        "schema": 1,
        "quick": False,
        "machine": "a machine",
        "versions": {"fastrec": "1.2.3"},
        "rows": [row.to_dict() for row in rows],
    }


def test_the_tables_say_what_was_measured(results):
    text = report.table(results)
    assert "| 1M users × 100 items: means / floor (100 ms / 30 ms) | 3.14 × | ≤ 4 |" in text
    assert "| a call | 0.7 ms | ≤ 0.5, **missed** |" in text
    assert "| something to compare with | 2 × |  |" in text
    assert "a way to bring" not in text and "a machine; fastrec 1.2.3." in text
    routes = report.table_of_routes(results)
    assert "| way | 100k rows | 10M rows |\n|---|---|---|\n| arrays | 0.5 s, 0.2M rows/s | 5 s, 2M rows/s |" in routes
    assert "| files |  | 9 s, 1.1M rows/s |" in routes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quick": True}, "quick run"),
        ({"schema": 2}, "not those of this version"),
        ({"rows": [{"name": "lists", "used_by_others": 1.0}]}, "measure again: lists"),
    ],
)
def test_results_that_say_little_are_refused(results, change, message):
    with pytest.raises(SystemExit, match=message):
        report.check_results(results | change)


def test_on_a_busy_machine_nothing_is_met():
    row = run.Row("it", Spread(1, 1, 1, others=0.9), "x", 2)
    assert row.met is None
    assert "machine busy" in run.to_text([row]) and "met" not in run.to_text([row])
    assert run.Row("it", Spread(1, 1, 1, others=0.1), "x", 2).met


def test_the_command_writes_what_the_report_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "QUICK", run.TINY)
    file = tmp_path / "results.json"
    run.main(["--quick", "--only", "small_call", "--wait", "0", "--json", str(file)])
    assert "one user, 3 items" in capsys.readouterr().out
    results = json.loads(file.read_text()) | {"quick": False}
    for row in results["rows"]:
        row["used_by_others"] = 0.0
    report.check_results(results)
    assert "| one user, 3 items, 30 values: a call |" in report.table(results)


def test_rows_that_are_measured_anew_take_the_place_of_old_ones():
    old = [{"name": name, "value": 1} for name in "abc"]
    new = [{"name": name, "value": 2} for name in "db"]
    assert [(row["name"], row["value"]) for row in run.replaced(old, new)] == [("a", 1), ("b", 2), ("c", 1), ("d", 2)]


def test_rows_of_another_machine_or_size_are_not_kept(tmp_path):
    file, machine = tmp_path / "results.json", {"machine": "ours", "versions": {}}
    assert run.kept_rows(file, machine, quick=False) == []
    file.write_text(json.dumps({"schema": 1, "quick": True, **machine, "rows": [{"name": "a"}]}))
    assert run.kept_rows(file, machine, quick=True) == [{"name": "a"}]
    with pytest.raises(SystemExit, match="measured with another quick: run without --only"):
        run.kept_rows(file, machine, quick=False)
    with pytest.raises(SystemExit, match="another machine"):
        run.kept_rows(file, machine | {"machine": "theirs"}, quick=True)


def test_tools_on_the_same_lists_have_the_values_of_fastrec(tmp_path):
    pytest.importorskip("polars")
    log = cases.make_log(60, 100)
    cases.save(log, tmp_path)
    cases.save(cases.first_users(log, 20), tmp_path / "small")
    for tool in ("fastrec", "polars", "duckdb"):
        found = field.ask(field.TOOLS, tool, sys.executable, str(tmp_path), "1")
        assert len(found["values"]) == 30 and found["memory"] >= 0
        assert min(found["prepared"], found["evaluated"]) > 0
        field.check_equal(tool, log, found["values"])
    with pytest.raises(AssertionError, match=r"polars and fastrec differ in recall@5: 2\.0 and 0\."):
        field.check_equal("polars", log, {"recall@5": 2.0})


def test_tools_that_take_too_long_are_extrapolated():
    row = field.Measured("a tool", "1.0", 10_000, 30, prepared=1.0, evaluated=2.0, memory=1 << 20, extrapolated=False)
    assert not row.is_too_large and not row.for_users(300_000).is_too_large
    large = row.for_users(1_000_000)
    assert large.is_too_large and large.extrapolated and (large.prepared, large.evaluated) == (100.0, 200.0)
    assert row._replace(memory=1 << 60).is_too_large
    line = " ".join(field.line_of(large).split())
    assert line == "a tool 1.0 1M users 30 values ~ 100 s to prepare ~ 200 s to evaluate ~ 100 MB"


def test_claims_about_tools_are_checked():
    """Those of fastrec here, the others by `python -m bench.field`; the results have the claims that are declared."""
    found = field.features({"fastrec": sys.executable, "polars": "none"})
    assert {*found} == {"fastrec"} and {*found["fastrec"]["checked"]} == {*field_features.FEATURES}
    kept = json.loads(field.RESULTS.read_text(encoding="utf-8"))["features"]
    assert {tool: own["checked"] for tool, own in kept.items()} == field_features.CLAIMS
    assert {tool: own["documented"] for tool, own in kept.items() if own["documented"]} == field_features.DOCUMENTED
    for claim, error in (
        ("fastrec:nothing", AttributeError),
        ("fastrec:evaluate(nothing)", TypeError),
        ("nothing_at_all:evaluate", ModuleNotFoundError),
    ):
        with pytest.raises(error):
            field_features.check(claim)


def test_the_table_of_features_marks_what_is_documented():
    own = {"version": "1.0", "checked": {"users": "a:b"}, "documented": {"spark": "a:c"}}
    table = field.table_of_features({"features": {"a tool": own}})
    cells = [cell.strip() for cell in table.splitlines()[-1].split("|")[1:-1]]
    assert cells[:2] == ["a tool 1.0", "✓"] and cells.count("(✓)") == 1 and cells.count("–") == len(cells) - 3


def test_files_are_compared_on_the_same_values(tmp_path, capsys):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    path = tmp_path / "files.json"
    files.main(["--small", "--rounds", "1", "--wait", "0", "--only", "parquet, integers, sorted", "--json", str(path)])
    found = json.loads(path.read_text())
    assert [row["what"] for row in found["rows"]] == ["the same 30 values", "only reading", "30 values / NDCG@10 alone"]
    assert capsys.readouterr().out.count("\n") == 3
    lines = files.table_of_files(found).splitlines()
    assert len(lines) == 7 and lines[2].startswith("| parquet, integers, sorted, 30k rows | the same 30 values | ")
    assert "≤ 0.7" in lines[2] and "≤" not in lines[3]


def test_a_rival_of_files_with_other_values_is_found_out(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(file_rivals, "POLARS_LOG", "print('{\"gauc\": 0.5}')")
    with pytest.raises(AssertionError, match=r"gauc of Polars is 0\.5, of fastrec 0\."):
        files.compare(tmp_path, files.SMALL[-1], 1)


def event(kind, **more):
    return json.dumps({"Event": f"SparkListener{kind}", **more})


def test_the_costs_of_a_job_on_spark_come_from_its_events():
    task = {"Executor Run Time": 1500, "Result Size": 900, "Shuffle Write Metrics": {"Shuffle Bytes Written": 4000}}
    lines = [
        event("LogStart"),
        event("JobStart", **{"Stage IDs": [0, 1], "Properties": {"spark.jobGroup.id": "10"}}),
        event("JobStart", **{"Stage IDs": [2], "Properties": {"spark.jobGroup.id": "20"}}),
        event("TaskEnd", **{"Stage ID": 0, "Task Type": "ShuffleMapTask", "Task Metrics": task}),
        event("TaskEnd", **{"Stage ID": 1, "Task Type": "ResultTask", "Task Metrics": task}),
        event("TaskEnd", **{"Stage ID": 2, "Task Type": "ResultTask", "Task Metrics": task}),
    ]
    assert plan.costs_of_groups(lines) == {"10": (3.0, 8000, 900), "20": (1.5, 4000, 900)}


def test_costs_on_spark_are_predicted_from_smaller_jobs():
    sizes = (10**7, 2 * 10**7, 4 * 10**7)
    costs = [plan.Cost(n, plan.partitions_of(n), 2 + n / 1e6, 50 + 12 * n, 100 + n) for n in sizes]
    last = plan.Cost(16 * 10**7, 64, 180.0, 50 + 12 * 16 * 10**7, 2 * (100 + 16 * 10**7))
    assert plan.predicted(costs, 10**8).core_seconds == pytest.approx(102)
    misses = plan.misses([*costs, last])
    assert misses == pytest.approx({"core_seconds": -0.1, "shuffle_bytes": 0, "driver_bytes": -0.5}, abs=1e-6)
    rows = [cost._asdict() for cost in (*costs, last)]
    text = plan.table_of_plan({"machine": "a machine", "versions": {"spark": "4.0"}, "rows": rows})
    assert "| 10M, measured | 4 | 0.00333 | 0.12 GB | 10 MB, 2.5e+03 kB per partition |" in text
    assert "| the prediction is off by | | -10.0% | +0.0% | -50.0% |" in text
    assert "| **10^10, predicted** from all | 4,000 |" in text and text.endswith("a machine; spark 4.0.")
