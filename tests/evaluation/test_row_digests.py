"""A report has the digest of its truth or labels: equal for the same rows on every route, other for other rows."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.files import job
from fastrec.report.archive import read_archive, write_archive
from fastrec.report.row_digests import Digest
from fastrec.runtime.launcher import Launcher

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")

Rows = list[tuple[Any, Any, float]]  # user, item, gain
METRIC = "recall@2"


def make_rows(n_users: int = 30, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    return [
        (user, int(item), float(rng.integers(0, 5)) / 2)
        for user in range(n_users)
        for item in rng.choice(50, rng.integers(0, 6), replace=False)
    ]


def as_dict(rows: Rows) -> dict[Any, dict[Any, float]]:
    found: dict[Any, dict[Any, float]] = {}
    for user, item, gain in rows:
        found.setdefault(user, {})[item] = gain
    return found


def of_dicts(rows: Rows, **more: Any) -> Digest | None:
    truth = as_dict(rows)
    return fastrec.evaluate(
        {user: list(own) for user, own in truth.items()}, truth, METRIC, per_user=True, **more
    ).digest


def of_arrays(rows: Rows, dtype: Any = np.int64, **more: Any) -> Digest | None:
    rows = sorted(rows, key=lambda row: row[0])
    users, counts = np.unique([row[0] for row in rows], return_counts=True)
    items, indptr = np.array([row[1] for row in rows], dtype), np.append(0, np.cumsum(counts))
    truth = items, indptr, np.array([row[2] for row in rows])
    return fastrec.evaluate(
        (items, indptr), truth, METRIC, per_user=True, **{"user_ids": users.astype(dtype), **more}
    ).digest


def frame_of(rows: Rows) -> Any:
    return pd.DataFrame(rows, columns=["user_id", "item_id", "gain"])


def lists_of(rows: Rows) -> Any:
    return frame_of(rows).drop(columns="gain").assign(rank=lambda own: own.groupby("user_id").cumcount() + 1)


def of_frames(rows: Rows) -> Digest | None:
    return fastrec.evaluate(lists_of(rows), frame_of(rows), METRIC, per_user=True).digest


def of_files(rows: Rows, folder: Path, ending: str) -> Digest | None:
    for name, frame in (("recs", lists_of(rows)), ("truth", frame_of(rows))):
        path = folder / f"{name}{ending}"
        frame.to_parquet(path, index=False) if ending == ".parquet" else frame.to_csv(path, index=False)
    return fastrec.evaluate_files(folder / f"recs{ending}", folder / f"truth{ending}", METRIC, per_user=True).digest


def of_model(rows: Rows) -> Digest | None:
    return fastrec.evaluate_model(
        np.zeros((30, 50)), as_dict(rows), METRIC, user_ids=range(30), ties="best", per_user=True
    ).digest


@pytest.mark.parametrize("spelled", [False, True], ids=["integers", "strings"])
def test_all_routes_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: bool) -> None:
    rows = [
        (f"ü{user}" if spelled else user, f"item {item:0>20}" if spelled else item, g) for user, item, g in make_rows()
    ]
    one = of_dicts(rows)
    assert one is not None and (one.rows, one.users) == (len(rows), "strings" if spelled else "integers")
    found = [of_frames(rows), of_dicts(rows[::-1])]
    if not spelled:
        found += [of_arrays(rows, dtype) for dtype in (np.int8, np.int32, np.uint64)]
        found.append(of_model(rows))
    for copies in (1, 1 << 40):  # in memory, and as files that do not fit there
        monkeypatch.setattr(job, "COPIES", copies)
        found += [of_files(rows, tmp_path, ending) for ending in (".parquet", ".csv")]
    assert found == [one] * len(found)


def test_compiled_and_threaded_sums_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = make_rows(3000)
    strings = [(f"{user}" * 9, "x" * item, gain) for user, item, gain in numbers]
    for rows in (numbers, strings):
        monkeypatch.setattr(Launcher, "way", "interpreted")
        interpreted = of_dicts(rows[:300])
        monkeypatch.undo()
        monkeypatch.setattr(Launcher, "way", "compiled")
        assert of_dicts(rows[:300]) == interpreted
        assert of_dicts(rows, n_threads=1) == of_dicts(rows, n_threads=3)
        monkeypatch.undo()


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows[1:], (rows[0][0] + 1000, *rows[0][1:])],
        lambda rows: [*rows[1:], (rows[0][0], 77, rows[0][2])],
        lambda rows: [(item, user, gain) for user, item, gain in rows],
        lambda rows: [*rows[1:], (*rows[0][:2], rows[0][2] + 2**-40)],
        lambda rows: [*rows[2:], (*rows[0][:2], rows[1][2] + 1), (*rows[1][:2], rows[0][2])],
    ],
    ids=["a row less", "user", "item", "users as items", "gain", "two gains"],
)
def test_each_change_of_a_row_shows(change: Callable[[Rows], Rows]) -> None:
    rows = make_rows()
    one, other = of_dicts(rows), of_dicts(change(rows))
    assert one is not None and other is not None and one.with_gains != other.with_gains
    pairs = [Counter(row[:2] for row in own) for own in (rows, change(rows))]
    assert (one.without_gains == other.without_gains) == (pairs[0] == pairs[1])


def test_labels_that_change_places_show() -> None:
    """Weak sums of hashes with places are equal for some of these pairs of a long log."""
    n, swaps = 60_000, [(24896, 45124), (1, 2), (7, 8), (255, 256), (4095, 40950)]
    scores, found = np.zeros(n), []
    for ours in [(), *swaps]:
        labels = np.arange(n) % 7 == 0
        labels[list(ours)] ^= True
        labels[list(ours)[:1]] = True
        found.append(fastrec.evaluate_scores(labels, scores, [0, n], "mse", per_user=True).digest)
    assert len({own.in_order for own in found if own is not None}) == len(found)


def test_digests_of_small_truths_have_no_pattern() -> None:
    """Half of the bits of digests differ, in both halves, and those of equal sums of items do too."""
    found = [
        fastrec.evaluate([[1]], [own], METRIC, per_user=True).digest
        for own in ([1, 4], [2, 3], [1, 5, 6], [2, 3, 7], [0, 5], [5])
    ]
    sums = [int(own.without_gains, 16) for own in found if own is not None]
    for at, one in enumerate(sums):
        for other in sums[:at]:
            assert all(10 < ((one ^ other) >> shift & (1 << 64) - 1).bit_count() < 54 for shift in (0, 64))


def test_copies_count_and_minus_zero_is_zero() -> None:
    pairs = [[1, 1, 2], [1, 2], [2], [1, 1, 1, 1, 2]]
    found = {fastrec.evaluate([[1]], [own], METRIC, duplicates="first", per_user=True).digest for own in pairs}
    assert len(found) == len(pairs)
    assert of_dicts([(1, 2, 0.0)]) == of_dicts([(1, 2, -0.0)]) != of_dicts([(1, 2, 1.0)])
    labels = [
        fastrec.evaluate_scores([0.5, own], [1, 2], [0, 2], metrics=["mse"], per_user=True).digest
        for own in (0.0, -0.0, 5e-324)
    ]
    assert labels[0] == labels[1] != labels[2]


def test_users_without_ids_have_no_positions() -> None:
    truth = [[1, 2], [3], [], [4, 5, 6]]
    digests = [
        fastrec.evaluate([[1]] * 4, own, METRIC, per_user=True).digest
        for own in (truth, truth[::-1], [[2, 1], [], [3], [6, 4, 5]], [[1, 3], [2], [], [4, 5, 6]])
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]
    assert digests[0] is not None and digests[0].users is None


def test_strings_of_digits_are_told_from_integers() -> None:
    rows = make_rows()
    one, other = of_dicts(rows), of_dicts([(user, str(item), gain) for user, item, gain in rows])
    assert one is not None and other is not None
    assert other == one._replace(items="strings") != one
    for text in ("01", "+1", "1.0", " 1", "-0", "1\0"):
        assert of_dicts([("a", text, 1.0)]) != of_dicts([("a", "1", 1.0)])
    for number in (0, -7, 2**63 - 1, -(2**63) + 1, 2**63, 2**80):
        both = [of_dicts([(user, 1, 1.0)]) for user in (number, str(number))]
        assert both[0] is not None and both[0]._replace(users="strings") == both[1]


def test_batches_add_up_and_are_sent() -> None:
    rows = make_rows()
    whole = of_dicts(rows)
    parts = []
    for third in range(3):
        evaluator = fastrec.Evaluator([METRIC], per_user=True)
        for rest in (third, third + 3):
            truth = as_dict([row for row in rows if row[0] % 6 == rest])
            evaluator.update({user: list(own) for user, own in truth.items()}, truth)
        parts.append(fastrec.Evaluator.from_bytes(evaluator.to_bytes()))
    parts[2].merge(parts[0]).merge(parts[1])
    assert parts[2].result().digest == whole
    parts[2].reset()
    assert parts[2].result().digest == Digest()


def test_a_part_without_a_digest_makes_the_sum_unknown() -> None:
    evaluator = fastrec.Evaluator([METRIC], per_user=True)
    evaluator.update({1: [1]}, {1: [1]})
    document, arrays = read_archive(io.BytesIO(evaluator.to_bytes()), "evaluator")
    document["seen"]["digest"] = None
    stream = io.BytesIO()
    write_archive(stream, "evaluator", document, arrays, small=True)
    old = fastrec.Evaluator.from_bytes(stream.getvalue())
    assert old.result().digest is None
    other = fastrec.Evaluator([METRIC], per_user=True)
    other.update({2: [1]}, {2: [1]})
    assert other.merge(old).result().digest is None
    named = fastrec.evaluate({frozenset("a"): [1]}, {frozenset("a"): [1]}, METRIC)
    assert named.digest is None  # users of a type without a canonical form


def test_users_of_several_columns() -> None:
    frame = pd.DataFrame({"u": [1, 1, 2], "s": ["a", "b", "a"], "label": [1, 0, 1], "score": [0.1, 0.2, 0.3]})
    found = [
        fastrec.evaluate_scores(own, metrics=["auc"], user=["u", "s"], per_user=True).digest
        for own in (frame, frame[::-1], frame.assign(s=["a", "a", "b"]))
    ]
    assert found[0] == found[1] != found[2]
    assert found[0] is not None and found[0].users == "tuples"


def test_labels_of_all_routes_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"user_id": rng.permutation(np.repeat(np.arange(40), 5)), "score": rng.random(200)})
    frame = frame.assign(label=rng.integers(0, 2, 200), weight=rng.integers(1, 4, 200) / 2)
    columns = [frame[name].to_numpy() for name in ("label", "score", "user_id", "weight")]
    labels, scores, users, weights = columns
    ask: dict[str, Any] = {"metrics": ["auc"], "per_user": True}
    one = fastrec.evaluate_scores(labels, scores, user_ids=users, sample_weight=weights, **ask).digest
    assert one is not None and one.rows == 200 and None not in (one.with_gains, one.in_order)
    found = [fastrec.evaluate_scores(labels.astype(float), scores, user_ids=users, sample_weight=weights, **ask).digest]
    found.append(fastrec.evaluate_scores(frame, sample_weight="weight", user="user_id", **ask).digest)
    frame.to_parquet(path := tmp_path / "log.parquet", index=False)
    for copies in (1, 1 << 40):
        monkeypatch.setattr(job, "COPIES", copies)
        found += [fastrec.evaluate_files(path, metrics="auc", sample_weight="weight", per_user=True).digest]
    assert found == [one] * len(found)
    turned = fastrec.evaluate_scores(
        labels[::-1], scores[::-1], user_ids=users[::-1], sample_weight=weights[::-1], **ask
    )
    assert turned.digest is not None and turned.digest._replace(in_order=one.in_order) == one != turned.digest


def test_labels_of_batches_add_up() -> None:
    rng = np.random.default_rng(4)
    for labels in (rng.integers(0, 2, 9000), rng.integers(0, 9, 9000) / 8):
        scores, metric, users = rng.random(9000), ["mse"], np.repeat(np.arange(1500), 6)
        whole = fastrec.evaluate_scores(labels, scores, user_ids=users, metrics=metric, per_user=True).digest
        evaluator = fastrec.ScoreEvaluator(metric, per_user=True)
        for own in (slice(5400, None), slice(6), slice(6, 5400)):
            evaluator.update(labels[own], scores[own], user_ids=users[own])
        assert evaluator.result().digest == whole


def test_reports_keep_it(tmp_path: Path) -> None:
    report = fastrec.evaluate({1: [1]}, {1: {1: 2.0}}, METRIC, groups=["a"], per_user=True)
    assert report.digest is not None and report.to_dict()["digest"] == report.digest._asdict()
    report.save(path := tmp_path / "report.fastrec")
    assert fastrec.load(path).digest == report.digest
    assert report.with_groups({}).digest == report.digest
