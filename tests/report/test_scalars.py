"""Names of scalars that experiment trackers accept."""

import math
import re

import pytest

import fastrec
from fastrec.metrics.calls import parse
from fastrec.report.plain import scalar_name

TAKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-/]*")  # by all three
TABLES = ("cg(gain=[0, 1, 3])", "cg(gain=[0, 1.5])", "dcg(discount=[1, 0.5])@2")
NUMBERS = ("err(max_gain=4)@10", "rbp(p=0.25)", "ndcg(min_gain=1e-05)@3", "ndcg(min_gain=1e+20)@3")


def every_metric() -> list[str]:
    """Yield each metric with each choice of each of its options, in canonical form."""
    found = [parse(text).text for text in (*TABLES, *NUMBERS, "precision(threshold=-1)", "precision(threshold=1)")]
    for metric in fastrec.catalogue():
        required = [f"{name}=1" for name, option in metric["options"].items() if option["required"]]
        for name, option in metric["options"].items():
            for choice in option["choices"]:
                end = "" if metric["kind"] == "scores" else "@10"
                found.append(parse(f"{metric['name']}({', '.join([*required, f'{name}={choice}'])}){end}").text)
    return list(dict.fromkeys(found))


def test_names_are_taken_and_tell_metrics_apart() -> None:
    metrics = every_metric()
    names = [scalar_name(metric) for metric in metrics]
    assert len(metrics) > 100 and len(set(names)) == len(metrics)
    assert all(TAKEN.fullmatch(name) for name in names)


def test_mlflow_takes_every_name() -> None:
    validation = pytest.importorskip("mlflow.utils.validation")
    for metric in every_metric():
        for prefix in ("", "val/", "a.b/c-d_"):
            assert validation._validate_metric_name(prefix + scalar_name(metric)) is None  # it raises otherwise


def test_values_are_the_means() -> None:
    report = fastrec.evaluate([[1, 2], [3, 4]], [[2], [9]], ["ndcg", "recall"], k=[1, 2], groups=["a", "b"])
    found = report.to_scalars("val/")
    assert list(found) == ["val/ndcg_at_1", "val/ndcg_at_2", "val/recall_at_1", "val/recall_at_2"]
    assert list(found.values()) == list(report.values()) and all(type(value) is float for value in found.values())
    assert report.to_scalars() == {name.removeprefix("val/"): value for name, value in found.items()}
    nobody = fastrec.evaluate_scores([1, 1], [0.5, 0.4], metrics="auc").to_scalars()
    assert math.isnan(nobody["auc"])


@pytest.mark.parametrize("prefix", ["/val", "val//", "../", "a b/", "ä/", "1/", "a\n", "@", "a/../b/"])
def test_a_prefix_that_some_tracker_refuses_is_an_error(prefix: str) -> None:
    with pytest.raises(fastrec.InputError, match="prefix must be letters, digits"):
        fastrec.evaluate([[1]], [[1]], "mrr").to_scalars(prefix)
    with pytest.raises(fastrec.InputTypeError, match="prefix"):
        fastrec.evaluate([[1]], [[1]], "mrr").to_scalars(None)  # type: ignore[arg-type]
