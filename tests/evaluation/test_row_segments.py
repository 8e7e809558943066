"""Segments of rows: each has what its rows alone would have, however users, batches and threads divide the rows."""

from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import row_segments
from fastrec.inputs import grouping, row_groups
from support import score_oracle
from support.bits import group_bits, mean_bits, user_bits
from support.row_users import ASKS, N_ITEMS, N_USERS, ORDER_OF_ROWS, TEXTS, USERS

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

ALL = slice(None)
N_ROWS = len(USERS.call(ALL)["labels"])
DRAW = np.random.default_rng(4)
DEVICES = DRAW.choice(["phone", "tv", "web"], N_ROWS, p=[0.6, 0.395, 0.005])
POSITIONS = DRAW.integers(-2, 9, N_ROWS)
SEGMENTS = {"device": DEVICES, "position": POSITIONS}
ROW_TEXTS = [ask.text for ask in ASKS if score_oracle.is_of_rows(ask.name, ask.options)]
KINDS = [(False, False), (True, False), (False, True), (True, True)]
FEW = [*TEXTS[::29], *ORDER_OF_ROWS]
OF_DEVICES = ["auc", "log_loss"]


def evaluate(metrics: list[str], call: dict[str, Any], **more: Any) -> fastrec.Report:
    return fastrec.evaluate_scores(**{"metrics": metrics, "n_items": N_ITEMS} | call | more)


def rows_of(call: dict[str, Any], chosen: Any) -> dict[str, Any]:
    """Return a call on some rows of users, all of whom stay."""
    users = np.repeat(np.arange(len(call["indptr"]) - 1), np.diff(call["indptr"]))[chosen]
    counts = np.bincount(users, minlength=len(call["indptr"]) - 1)
    rows = {name: call[name][chosen] for name in ("labels", "scores", "sample_weight") if name in call}
    return {**call, **rows, "indptr": np.concatenate([[0], np.cumsum(counts)])}


def row_places(users: Any) -> Any:
    """Return the rows of some users among those of all."""
    indptr = USERS.call(ALL)["indptr"]
    parts = [np.arange(indptr[user], indptr[user + 1]) for user in np.arange(N_USERS)[users].tolist()]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@pytest.mark.thorough(except_for="False-False")
@pytest.mark.parametrize(("weighted", "row_weights"), KINDS)
def test_a_segment_is_what_its_rows_alone_are(weighted: bool, row_weights: bool) -> None:
    texts = (ROW_TEXTS if row_weights else TEXTS)[::2] + (["auc"] if row_weights else ORDER_OF_ROWS)
    texts = list(dict.fromkeys(texts))
    call = USERS.call(ALL, weighted=weighted, row_weights=row_weights)
    report = evaluate(texts, call, row_groups=SEGMENTS)
    assert report.row_groupings == ["device", "position"]
    assert list(report.groups) == ["plan", "year", "device", "position"]
    del call["groups"]
    for name, labels in SEGMENTS.items():
        assert list(report.groups[name]) == np.unique(labels).tolist()
        for label in np.unique(labels).tolist():
            alone = evaluate(texts, rows_of(call, labels == label))
            counted = {text: own for text, own in alone.estimates.items() if own.users}
            found = {text: report.groups[name][label][text] for text in counted}
            assert mean_bits(found) == mean_bits(counted)


def test_users_without_rows_in_a_segment_are_not_its_users() -> None:
    labels, scores, users = [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.6], [1, 1, 2, 2]
    report = fastrec.evaluate_scores(
        labels, scores, user_ids=users, metrics=["auc", "gauc"], row_groups=["tv", "web", "tv", "tv"]
    )
    assert report.groups["row_group"]["tv"]["auc"].mean == 0.5
    assert report.groups["row_group"]["tv"]["auc"].users == 2
    assert report.groups["row_group"]["web"]["auc"].users == 1
    assert np.isnan(report.groups["row_group"]["web"]["auc"].mean)  # without a positive row
    assert report["auc"] == 0.75
    assert np.isnan(report.groups["row_group"]["tv"]["gauc"].rest.mean)


@pytest.mark.parametrize("form", ["whole", "one user"])
def test_against_the_definition(form: str) -> None:
    labels, scores, device = (part[:400] for part in (USERS.call(ALL)["labels"], USERS.call(ALL)["scores"], DEVICES))
    users = np.zeros(400, int) if form == "one user" else np.arange(400) // 7
    found = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=OF_DEVICES, row_groups=device)
    for label, own in found.groups["row_group"].items():
        y, p = labels[device == label].astype(float), scores[device == label]
        pairs = [(a > b) + (a == b) / 2 for a in p[y == 1] for b in p[y == 0]]
        assert own["auc"].mean == pytest.approx(sum(pairs) / len(pairs) if pairs else np.nan, rel=1e-12, nan_ok=True)
        p = np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps)
        losses = -(y * np.log(p) + (1 - y) * np.log(1 - p))
        assert own["log_loss"].mean == pytest.approx(losses.mean(), rel=1e-12)
        names, of_rows = np.unique(users[device == label], return_inverse=True)
        assert own["log_loss"].users == len(names)
        if len(names) > 1:  # clusters: users with rows in the segment
            off = np.bincount(of_rows, losses - losses.mean())
            error = np.sqrt(len(names) / (len(names) - 1) * (off**2).sum()) / len(y)
            assert own["log_loss"].std_error == pytest.approx(error, rel=1e-9)
        else:
            assert np.isnan(own["log_loss"].std_error)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_order_of_rows_and_users_and_number_of_threads(n_threads: int) -> None:
    call = USERS.call(ALL)
    del call["groups"]
    expected = evaluate(["auc", "ece", "gauc", "ks"], call, row_groups=SEGMENTS)
    users = np.repeat(DRAW.permutation(N_USERS), np.diff(call["indptr"]))  # ids that do not ascend
    order = DRAW.permutation(N_ROWS)
    order = order[np.argsort(DRAW.permutation(N_USERS)[users[order]], kind="stable")] if n_threads == 1 else order
    found = fastrec.evaluate_scores(
        call["labels"][order],
        call["scores"][order],
        user_ids=users[order],
        metrics=["auc", "ece", "gauc", "ks"],
        row_groups={name: own[order] for name, own in SEGMENTS.items()},
        n_threads=n_threads,
    )
    assert group_bits(found) == group_bits(expected)


def test_many_rows() -> None:
    draw = np.random.default_rng(3)
    n = 300_000
    users, places = draw.integers(0, 20_000, n), draw.integers(0, 700, n)  # more segments than are summed at once
    scores = draw.random(n).astype(np.float32)
    labels = draw.random(n) < scores
    metrics = ["auc", "calibration", "brier"]
    one = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=metrics, row_groups=places, n_threads=1)
    two = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=metrics, row_groups=places, n_threads=4)
    assert group_bits(one) == group_bits(two)
    named = np.array([f"place {place:03}" for place in range(700)])[places]
    texts = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=metrics, row_groups=named)
    renamed = {key.replace("place ", ""): own for key, own in group_bits(texts).items()}
    assert renamed == {f"row_group={int(key[10:]):03}": own for key, own in group_bits(one).items()}
    for place in (0, 255, 256, 699):
        inside = places == place
        alone = fastrec.evaluate_scores(labels[inside], scores[inside], user_ids=users[inside], metrics=metrics)
        assert mean_bits(one.groups["row_group"][place]) == mean_bits(alone.estimates)


@pytest.mark.parametrize("no_truth", ["zero", "skip", "nan"])
@pytest.mark.parametrize(("weighted", "row_weights"), KINDS)
def test_metrics_of_the_order_of_rows_are_the_same_alone(weighted: bool, row_weights: bool, no_truth: str) -> None:
    """Without weights, they need no sums over users but the number of these."""
    call = USERS.call(ALL, weighted=weighted, row_weights=row_weights) | {"no_truth": no_truth}
    metrics = ["auc", "average_precision", "ks"]
    alone = evaluate(metrics, call, row_groups=SEGMENTS)
    among = evaluate([*metrics, "log_loss"], call, row_groups=SEGMENTS)
    for name in SEGMENTS:
        for label, own in alone.groups[name].items():
            expected = {metric: among.groups[name][label][metric] for metric in metrics}
            assert mean_bits(own) == mean_bits(expected)
            assert [one.users for one in own.values()] == [one.users for one in expected.values()]


def test_a_user_without_truth_in_a_segment_is_an_error_of_metrics_of_the_order_of_rows() -> None:
    labels, scores, parts = [1, 0, 1, 0, 1, 0], [0.9, 0.2, 0.8, 0.3, 0.4, 0.5], ["a", "b", "a", "a", "b", "b"]
    for metrics in ("auc", ["auc", "gauc"]):
        with pytest.raises(fastrec.InputError, match=r"user 0 has no relevant item.*among the rows with 'b' in 'd'"):
            fastrec.evaluate_scores(labels, scores, [0, 2, 4, 6], metrics, no_truth="error", row_groups={"d": parts})


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_first_rows_of_users_in_segments(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "ROWS_PER_RANGE", 50)
    lengths = DRAW.integers(0, 7, 90)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    codes = DRAW.integers(-1, 4, indptr[-1]).astype(np.int32)
    seen: set[tuple[int, int]] = set()
    expected = []
    for user, code in zip(np.repeat(np.arange(90), lengths).tolist(), codes.tolist(), strict=True):
        expected.append((user, code) not in seen)
        seen.add((user, code))
    found = grouping.first_of_users(codes, indptr, 4, n_threads)
    assert found.tolist() == expected
    assert grouping.places_of(found).tolist() == [*np.flatnonzero(expected).tolist(), len(codes)]


def test_segments_of_many_rows_are_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    call, metrics = USERS.call(ALL), ["auc", "log_loss", "ece"]
    together = evaluate(metrics, call, row_groups=SEGMENTS)
    cuts, threads_of = [], []
    part, evaluate_part = row_segments.CutRows.part, row_segments._evaluate_part
    monkeypatch.setattr(
        row_segments.CutRows, "part", lambda cut, first, last: cuts.append((first, last)) or part(cut, first, last)
    )
    monkeypatch.setattr(
        row_segments, "_evaluate_part", lambda *given: threads_of.append(given[-1]) or evaluate_part(*given)
    )
    monkeypatch.setattr(row_segments, "ROWS_PER_PART", 3000)
    assert group_bits(evaluate(metrics, call, row_groups=SEGMENTS, n_threads=1)) == group_bits(together)
    assert cuts[:2] == [(0, 1), (1, 3)]  # phones have more rows than that, the others fewer
    for n_threads in (2, 7):
        threads_of.clear()
        assert group_bits(evaluate(metrics, call, row_groups=SEGMENTS, n_threads=n_threads)) == group_bits(together)
        assert set(threads_of) == {1, n_threads}  # phones have more rows than the share of a thread


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_the_error_is_that_of_the_first_segment_for_any_threads(
    monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    """The second segment has most rows, so all threads work on it first."""
    monkeypatch.setattr(row_segments, "ROWS_PER_PART", 10)
    labels, users = np.ones(600, np.int8), np.repeat(np.arange(30), 20)
    groups = np.where(np.arange(600) % 20 < 2, "a", "b")
    labels[groups == "a"] = users[groups == "a"] != 4
    labels[groups == "b"] = users[groups == "b"] != 2
    rows = {"labels": labels, "scores": np.linspace(0, 1, 600), "user_ids": users, "row_groups": groups}
    with pytest.raises(fastrec.InputError, match=r"user 4 .* among the rows with 'a' in 'row_group'"):
        fastrec.evaluate_scores(**rows, metrics=["ndcg"], no_truth="error", n_threads=n_threads)


def test_rows_without_users() -> None:
    call = USERS.call(ALL)
    texts = [text for text in ROW_TEXTS[::3] if "average=user" not in text and not text.startswith("gauc")]
    report = fastrec.evaluate_scores(call["labels"], call["scores"], metrics=texts, row_groups=DEVICES)
    for label, own in report.groups["row_group"].items():
        inside = label == DEVICES
        alone = fastrec.evaluate_scores(call["labels"][inside], call["scores"][inside], metrics=texts)
        assert mean_bits(own) == mean_bits(alone.estimates)
    assert "may be in several" not in str(report)


@pytest.mark.parametrize("labels", [["a", None, "b", None], [3, None, 1, None], [None] * 4, np.array(["a", None] * 2)])
def test_a_row_without_a_label_is_in_no_segment(labels: Any) -> None:
    rows = {"labels": [1, 0, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "user_ids": [1, 1, 2, 2], "metrics": "brier"}
    report = fastrec.evaluate_scores(**rows, row_groups=labels)
    known = [label for label in labels if label is not None]
    assert list(report.groups.get("row_group", {})) == sorted(set(known))
    assert report["brier"] == fastrec.evaluate_scores(**rows)["brier"]
    for label, own in report.groups.get("row_group", {}).items():
        assert own["brier"].users == len({rows["user_ids"][at] for at in range(4) if labels[at] == label})


@pytest.mark.parametrize("labels", [["a", None, "b", None], [3, None, 1, None], [None] * 4])
def test_missing_values_of_other_libraries_are_no_labels(labels: list[Any]) -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = {"labels": [1, 0, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "metrics": "brier"}
    expected = group_bits(fastrec.evaluate_scores(**rows, row_groups=labels))
    dtype = "Int64" if labels[0] == 3 else None
    series = [pd.Series(labels, dtype=dtype), pl.Series(labels), pa.array(labels), pa.chunked_array([labels])]
    if labels[0] == "a":
        series.append(pa.array(labels, pa.string_view()))
        series += [pd.Series(labels, dtype=dtype) for dtype in ("string", "category", object)]
    for own in series:
        assert group_bits(fastrec.evaluate_scores(**rows, row_groups=own)) == expected


def test_rows_in_no_segment_are_counted() -> None:
    rows = {"labels": [1, 0, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "metrics": "brier"}
    labels = {"device": ["a", None, "b", None], "place": [1, 2, 3, 3], "none": [None] * 4}
    report = fastrec.evaluate_scores(**rows, row_groups=labels)
    assert report.data == {
        "rows": 4,
        "positive_rows": 2,
        "rows_in_no_segment(device)": 2,
        "rows_in_no_segment(none)": 4,
    }
    assert "2 rows without a value of device: in no segment" in str(report)
    assert "rows in no segment (device)" in report.to_html().replace("<wbr>", "")
    one, other = fastrec.ScoreEvaluator("brier"), fastrec.ScoreEvaluator("brier")
    one.update([1, 0], [0.1, 0.2])  # of a log without this grouping
    one.update([1, 0], [0.1, 0.2], row_groups={"device": ["a", None]})
    other.update([1], [0.5], row_groups={"place": [3]})
    merged = fastrec.ScoreEvaluator.from_bytes(one.to_bytes()).merge(other)
    assert merged.result().data == {
        "rows": 5,
        "positive_rows": 3,
        "rows_in_no_segment(device)": 4,
        "rows_in_no_segment(place)": 4,
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("has_users", [False, True])
def test_more_segments_than_rows_are_scattered_to(
    monkeypatch: pytest.MonkeyPatch, weighted: bool, has_users: bool
) -> None:
    from fastrec.scored import keys

    call = USERS.call(ALL, row_weights=weighted)
    users = {"user_ids": np.repeat(np.arange(N_USERS), np.diff(call["indptr"]))} if has_users else {}
    rows = {name: call[name] for name in ("labels", "scores", "sample_weight") if name in call} | users
    texts = ["auc", "average_precision", "ks", "log_loss"]
    few = fastrec.evaluate_scores(**rows, metrics=texts, row_groups=SEGMENTS)
    only_order = fastrec.evaluate_scores(**rows, metrics=texts[:3], row_groups=SEGMENTS)
    monkeypatch.setattr(keys, "MAX_CODES", 2)
    many = fastrec.evaluate_scores(**rows, metrics=texts, row_groups=SEGMENTS)
    assert group_bits(many) == group_bits(few)
    for name, by_label in only_order.groups.items():
        for label, own in by_label.items():
            assert mean_bits(own) == mean_bits({text: few.groups[name][label][text] for text in texts[:3]})


def test_keeping_values_or_segments_changes_no_number() -> None:
    call = USERS.call(ALL)
    plain, kept = evaluate(FEW, call), evaluate(FEW, call, row_groups=SEGMENTS, per_user=True)
    segmented = evaluate(FEW, call, row_groups=SEGMENTS)
    bare = evaluate(FEW, {name: own for name, own in call.items() if name != "groups"})
    assert mean_bits(bare.estimates) == mean_bits(plain.estimates) == mean_bits(segmented.estimates)
    assert mean_bits(kept.estimates) == mean_bits(plain.estimates)
    assert group_bits(evaluate(FEW, call | {"groups": ["all"] * N_USERS})) == {"group=all": mean_bits(bare.estimates)}
    assert group_bits(kept) == group_bits(segmented)
    assert group_bits(plain).items() <= group_bits(kept).items()
    assert user_bits(kept) == user_bits(evaluate(FEW, call, per_user=True))
    assert set(kept.labels) == {"plan", "year"}  # a user has no label of its rows
    assert kept.users == plain.users and kept.data == plain.data


def test_your_own_metrics_of_rows() -> None:
    name = "mean_score_of_segments"
    if name not in {own["name"] for own in fastrec.catalogue()}:

        @fastrec.score_metric(range=(0, 1), needs="probabilities")
        def mean_score_of_segments(s: Any) -> Any:
            """Mean score."""
            return s.score_sum / s.rows

    call = USERS.call(ALL)
    report = evaluate([name], call, row_groups=DEVICES)
    for label, own in report.groups["row_group"].items():
        alone = evaluate([name], rows_of(USERS.call(ALL), label == DEVICES))
        assert own[name].mean == alone[name]


def batch(user: int, **given: Any) -> dict[str, Any]:
    return {"labels": [1, 0], "scores": [0.4, 0.6], "user_ids": [user, user], **given}


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ({"groups": {"device": ["a", "a"]}}, {"row_groups": {"device": ["a", "b"]}}, "'device' names groups of users"),
        ({"row_groups": {"device": ["a", "b"]}}, {"groups": {"device": ["a", "a"]}}, "'device' names groups of users"),
        ({"row_groups": [1, 2]}, {"row_groups": ["1", "2"]}, "has the labels 1 and '1'"),
    ],
)
def test_batches_that_disagree(first: dict[str, Any], second: dict[str, Any], match: str) -> None:
    evaluator, other = fastrec.ScoreEvaluator("auc"), fastrec.ScoreEvaluator("auc")
    evaluator.update(**batch(1, **first))
    before = group_bits(evaluator.result())
    with pytest.raises(fastrec.InputError, match=match):
        evaluator.update(**batch(2, **second))
    other.update(**batch(2, **second))
    with pytest.raises(fastrec.InputError, match=match):
        evaluator.merge(other)
    assert group_bits(evaluator.result()) == before
    with pytest.raises(fastrec.InputError, match="'device' names groups of users and segments of rows"):
        fastrec.evaluate_scores(**batch(1), metrics="auc", groups={"device": [1, 1]}, row_groups={"device": [1, 2]})


def test_too_many_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "MAX_SEGMENTS", 3)
    rows = {"labels": [0, 1, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4], "metrics": "auc"}
    assert len(fastrec.evaluate_scores(**rows, row_groups=[1, 2, 3, 3]).groups["row_group"]) == 3
    with pytest.raises(fastrec.InputError, match=r"row_groups\['x'\] has 4 distinct labels, at most 3"):
        fastrec.evaluate_scores(**rows, row_groups={"x": ["a", "b", "c", "d"]})
    evaluator = fastrec.ScoreEvaluator("auc")
    evaluator.update([0, 1], [0.1, 0.2], row_groups=[1, 2])
    with pytest.raises(fastrec.InputError, match=r"row_groups\['row_group'\] has 4 distinct labels, at most 3"):
        evaluator.update([0, 1], [0.1, 0.2], row_groups=[3, 4])
    evaluator.update([0, 1], [0.1, 0.2], row_groups=[2, 3])
    other = fastrec.ScoreEvaluator("auc")
    other.update([0, 1], [0.1, 0.2], row_groups=[4, 4])
    with pytest.raises(fastrec.InputError, match="has 4 distinct labels"):
        evaluator.merge(other)


def test_an_error_about_a_user_names_the_segment() -> None:
    call = {"labels": [1, 0, 0], "scores": [0.1, 0.2, 0.3], "user_ids": ["ann", "ann", "ann"]}
    with pytest.raises(fastrec.InputError, match=r"user 'ann' has no relevant item.*, among the rows with 'tv' in"):
        fastrec.evaluate_scores(**call, metrics="ndcg", no_truth="error", row_groups=["web", "tv", "tv"])


def test_reports_keep_segments_and_comparisons_leave_them_out(tmp_path: Any) -> None:
    call = {**USERS.call(ALL), "metrics": OF_DEVICES, "per_user": True, "row_groups": SEGMENTS}
    report = fastrec.evaluate_scores(**call)
    report.save(tmp_path / "report.npz")
    loaded = fastrec.load(tmp_path / "report.npz")
    assert group_bits(loaded) == group_bits(report)
    assert loaded.row_groupings == report.row_groupings == ["device", "position"]
    for text in (str(loaded), loaded.to_html(), loaded.to_markdown()):
        assert "segments of rows by" in text and "a user may be in several" in text
    rows = [row for row in report.to_rows() if row["grouping"] == "device"]
    assert len(rows) == 6 and all(np.isnan(row["difference"]) for row in rows)
    found = fastrec.compare({"a": report, "b": fastrec.evaluate_scores(**call | {"row_groups": None})})
    assert set(found.segments) == {"plan", "year"}
    assert [name for name in found.left_out if "segments" in name] == [
        "segments of rows by device",
        "segments of rows by position",
    ]


def test_a_table_of_labels_has_its_shape_in_the_error() -> None:
    table = pytest.importorskip("pandas").DataFrame({"a": ["x", None], "b": ["y", "z"]})
    with pytest.raises(fastrec.InputError, match=r"row_groups must have one label per row, 2; found shape \(2, 2\)"):
        fastrec.evaluate_scores([0, 1], [0.1, 0.2], metrics="auc", row_groups=table)


def test_a_row_without_weight_must_be_valid() -> None:
    with pytest.raises(fastrec.InputError, match="scores must not be NaN"):
        fastrec.evaluate_scores([0, 1, 1], [0.1, 0.2, np.nan], metrics="log_loss", sample_weight=[1, 1, 0])


@pytest.mark.parametrize("of", ["groups", "row_groups"])
def test_a_group_without_weight_has_no_order(of: str) -> None:
    metrics, undefined = ["auc", "ks", "eer", "ece", "average_precision"], 4
    users = {"user_ids": [1, 1, 2, 2]} if of == "groups" else {}
    given: dict[str, Any] = {"sample_weight": [1, 2, 0, 0], of: {"g": ["a", "a", "b", "b"]}, **users}
    report = fastrec.evaluate_scores([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4], metrics=metrics, **given)
    found = report.groups["g"]["b"]
    assert [found[metric].mean for metric in metrics] == pytest.approx([np.nan] * undefined + [0], nan_ok=True)
    assert all(np.isnan(found[metric].std_error) for metric in metrics[:undefined])
