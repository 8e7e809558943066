"""`exclude="unjudged"`: lists without the items that the truth does not judge."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from support.list_calls import flat, random_log

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

METRICS = ["recall@3", "ndcg@5", "mrr", "num_ret", "judged@4", "bpref", "map"]
RUN = {"a": {"d0": 5.0, "d1": 4.0, "d3": 3.0, "d2": 2.0, "d9": 1.0}}
QRELS = {"a": {"d1": -1.0, "d2": 1.0, "d3": 0.0}}  # d1 was in the pool, and not judged


def test_numbers_of_trec_eval_with_judged_documents_only() -> None:
    """trec_eval -J, as pytrec_eval-terrier 0.5.11 runs it: num_ret 2, recip_rank 0.5, set_P 0.5, infAP 0.500005."""
    names = ["recip_rank", "set_P", "infAP", "P_5"]
    report = fastrec.evaluate(RUN, QRELS, names, like="trec_eval", exclude="unjudged")
    assert [report[name] for name in names] == pytest.approx([0.5, 0.5, 0.500004999900002, 0.2], rel=1e-15)
    assert fastrec.evaluate(RUN, QRELS, "num_ret", exclude="unjudged")["num_ret"] == 2
    assert report.data["excluded_items"] == 3 and report.settings["exclude"] == "unjudged"


@pytest.mark.parametrize("kind", ["plain", "integer", "graded"])
def test_they_are_the_lists_without_those_items(kind: str) -> None:
    log = random_log(kind, 200, seed=4)
    judged = [{item for item, gain in rows if gain >= 0} for rows in log.truth]
    kept = [[item for item in items if item in own] for items, own in zip(log.recs, judged, strict=True)]
    truth = [dict(rows) for rows in log.truth]
    found = fastrec.evaluate(log.recs, truth, METRICS, exclude="unjudged", per_user=True)
    wanted = fastrec.evaluate(kept, truth, METRICS, per_user=True)
    assert found.estimates == wanted.estimates
    for metric in METRICS:
        assert found.per_user[metric].tobytes() == wanted.per_user[metric].tobytes(), metric
    parts = [fastrec.Evaluator(METRICS) for _ in range(2)]
    for at, part in enumerate(parts):
        own = slice(at * 100, at * 100 + 100)
        part.update(log.recs[own], truth[own], exclude="unjudged")
    merged = fastrec.Evaluator.from_bytes(parts[0].to_bytes()).merge(parts[1]).result()
    assert merged.estimates == wanted.estimates and merged.settings["exclude"] == "unjudged"


def test_frames_and_files(tmp_path: Path) -> None:
    pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    log = random_log("integer", 60, seed=5)
    (recs, starts), (truth, ends) = flat(log.recs), flat([[item for item, _ in rows] for rows in log.truth])
    gains = flat([[gain for _, gain in rows] for rows in log.truth], np.float64)[0]

    def frame(items: Any, indptr: Any, **more: Any) -> Any:
        return pa.table({"user_id": np.repeat(np.arange(60), np.diff(indptr)), "item_id": items, **more})

    lists, judgements = frame(recs, starts), frame(truth, ends, gain=gains)
    columns = {"user": "user_id", "item": "item_id"}
    found = fastrec.evaluate(lists, judgements, METRICS, exclude="unjudged", gain="gain", **columns)
    plain = fastrec.evaluate((recs, starts), (truth, ends, gains), METRICS, exclude="unjudged", no_truth="skip")
    assert [round(one, 12) for one in found.values()] == [round(one, 12) for one in plain.values()]
    csv.write_csv(lists, tmp_path / "recs.csv")
    csv.write_csv(judgements, tmp_path / "truth.csv")
    for memory in (None, "100MB"):
        more = {} if memory is None else {"memory": memory}
        files = fastrec.evaluate_files(
            tmp_path / "recs.csv", tmp_path / "truth.csv", METRICS, exclude="unjudged", gain="gain", **more
        )
        assert files.estimates == found.estimates and files.data["excluded_items"] == found.data["excluded_items"]


def test_what_it_needs() -> None:
    with pytest.raises(fastrec.InputError, match=r"exclude='unjudged' needs truth="):
        fastrec.evaluate([[1]], None, "num_ret", exclude="unjudged")
    with pytest.raises(fastrec.InputError, match=r"exclude='unjudged' is for lists: pass the items to rank as cand"):
        fastrec.evaluate_model((np.ones((1, 2)), np.ones((3, 2))), [[1]], "mrr", exclude="unjudged")
    with pytest.raises(
        fastrec.MetricError, match=r"judged items alone are an argument of the call: exclude='unjudged'"
    ):
        fastrec.evaluate(RUN, QRELS, "AP(judged_only=True)", like="ir_measures")


def test_reports_that_exclude_differently_do_not_compare() -> None:
    reports = [
        fastrec.evaluate({**RUN, "b": {"x": 1.0}}, {**QRELS, "b": {"x": 1.0}}, "mrr", per_user=True, exclude=exclude)
        for exclude in (None, "unjudged")
    ]
    with pytest.raises(fastrec.InputError, match="exclude"):
        fastrec.compare(dict(zip("ab", reports, strict=True)))
