"""The report: numbers, names, exports, saving; built from plain data, without any evaluation."""

import io
import itertools
import json
import math
import os
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

import fastrec
from fastrec.exceptions import InputError, MetricError, MetricNotFoundError, MissingExtraError
from fastrec.report.archive import write_archive
from fastrec.report.estimates import Estimate, GroupEstimate
from fastrec.report.report import Report, load
from fastrec.runtime.extras import require
from support.pages import Tags

NAN = math.nan


def quantile(level):
    """Return the quantile of Student's distribution with two degrees of freedom, as of three users."""
    return level / math.sqrt((1 - level**2) / 2)


T95 = quantile(0.95)


def make_report(**changes):
    """Return a report of two metrics over four users, one of them not counted."""
    fields = {
        "estimates": {"ndcg@10": Estimate(0.5, 0.1, 3), "hits@5": Estimate(1.25, 0.25, 3)},
        "users": {"total": 4, "evaluated": 3, "no_truth": 1, "no_recs": 0},
        "data": {
            "rec_rows": 40,
            "truth_rows": 9,
            "truth_rows_not_relevant": 0,
            "duplicates_in_recs": 0,
            "duplicates_in_truth": 0,
            "excluded_items": 0,
            "truth_users_with_recs": 1.0,
            "truth_items_in_recs": 0.75,
        },
        "settings": {"ties": "expected", "no_truth": "skip", "no_recs": "zero", "min_gain": None},
        "groups": {},
        "per_user": None,
        "user_ids": None,
        "fastrec_version": "0.1.0",
    }
    return Report(**(fields | changes))


# values of four users, with the means and errors of `make_report`
VALUES = {
    "ndcg@10": np.array([0.5 - math.sqrt(0.03), 0.5, 0.5 + math.sqrt(0.03), NAN]),
    "hits@5": np.array([1.0, 1.0, 1.75, NAN]),
}


def make_grouped_report():
    estimates = {"ndcg@10": Estimate(0.5, 0.1, 3)}
    groups = {
        "country": {"BE": {"ndcg@10": Estimate(0.2, NAN, 1)}, "NL": {"ndcg@10": Estimate(0.65, 0.05, 2)}},
        "age": {18: {"ndcg@10": Estimate(0.5, 0.1, 3)}},
    }
    return make_report(estimates=estimates, groups=groups)


# Numbers and names


def test_a_report_is_a_mapping_from_metric_to_mean():
    report = make_report()
    assert report["ndcg@10"] == 0.5
    assert list(report) == ["ndcg@10", "hits@5"]
    assert len(report) == 2
    assert dict(report) == {"ndcg@10": 0.5, "hits@5": 1.25}
    assert report.get("recall@3") is None
    assert report.std_error("hits@5") == 0.25


def test_any_spelling_of_a_metric_finds_it():
    values = np.array([0.5, 0.4, 0.6, NAN])
    report = make_report(per_user={"ndcg@10": values})
    assert report["ndcg(gain=linear, discount=log2)@10"] == 0.5
    assert report.interval("ndcg(gain=linear)@10") == report.interval("ndcg@10")
    assert report.per_user["ndcg(gain=linear)@10"] is values
    assert "ndcg(gain=linear)@10" in report
    assert "ndcg(gain=exp2)@10" not in report
    grouped = make_grouped_report().groups["country"]["NL"]
    assert grouped["ndcg(ideal=truth)@10"].mean == 0.65


@pytest.mark.parametrize("name", ["recall@3", "no_such_metric", "ndcg@", 10, None])
def test_an_absent_metric_says_what_is_there(name):
    report = make_report()
    assert name not in report
    with pytest.raises(KeyError, match=r"this report has ndcg@10, hits@5$") as caught:
        report[name]
    assert isinstance(caught.value, MetricError)


def test_two_reports_of_the_same_numbers_are_two_objects():
    report = make_report()
    assert report == report  # noqa: PLR0124 - the point of the test
    assert report != make_report()
    assert len({report, make_report()}) == 2


def test_interval_by_hand():
    report = make_report()
    assert pytest.approx(4.302652729749464, abs=1e-14) == T95  # from tables
    assert report.interval("ndcg@10") == pytest.approx((0.5 - 0.1 * T95, 0.5 + 0.1 * T95), abs=1e-14)
    assert report.interval("hits@5", 0.9)[0] == pytest.approx(1.25 - 0.25 * quantile(0.9), abs=1e-14)
    assert report.interval("hits@5", level=0.99)[1] == pytest.approx(1.25 + 0.25 * quantile(0.99), abs=1e-14)


def test_interval_at_levels_close_to_the_ends():
    estimate = Estimate(0.0, 1.0, 9)
    assert estimate.interval(1e-300) == (0.0, 0.0)
    level = math.nextafter(1, 0)
    assert estimate.margin(level) == pytest.approx(-stdtrit(8, (1 - level) / 2), rel=1e-12)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, NAN])
def test_a_level_outside_0_to_1_is_an_error(level):
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        make_report().interval("ndcg@10", level)


@pytest.mark.parametrize("estimate", [Estimate(NAN, NAN, 0), Estimate(0.5, NAN, 1)])
def test_without_a_standard_error_there_is_no_interval(estimate):
    assert all(map(math.isnan, estimate.interval()))


def test_per_user_values_must_have_been_asked_for():
    with pytest.raises(InputError, match=r"were not kept: use evaluate\(\.\.\., per_user=True\)"):
        _ = make_report().per_user


# Warnings and text forms


NOTHING_HELD = "the truth has no rows: there is nothing to compare the lists with"


@pytest.mark.parametrize("form", ["lists", "arrays", "dicts", "frames", "nothing at all"])
def test_truth_without_rows_is_said(form):
    recs, truth = {
        "lists": ([[1], [2]], [[], []]),
        "arrays": ((np.array([1, 2]), [0, 1, 2]), (np.zeros(0, int), [0, 0, 0])),
        "dicts": ({1: [1]}, {}),
        "frames": [{"user_id": np.arange(n), "item_id": np.arange(n)} for n in (2, 0)],
        "nothing at all": ([], []),
    }[form]
    if form == "frames":
        pyarrow = pytest.importorskip("pyarrow")
        recs, truth = pyarrow.table(recs), pyarrow.table(truth)
    with pytest.warns(fastrec.FastrecWarning, match=NOTHING_HELD) as caught:
        assert math.isnan(fastrec.evaluate(recs, truth, "mrr")["mrr"])
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("users", "items", "warnings"),
    [
        (1.0, 0.5, []),
        (1.0, 0.0, ["no truth item is in its user's list: do the ids match?"]),
        (0.0, 0.0, ["no user with truth has a list: do the user ids match?"]),
        (NAN, NAN, []),
    ],
)
def test_warnings(users, items, warnings):
    data = make_report().data | {"truth_users_with_recs": users, "truth_items_in_recs": items}
    report = make_report(data=data)
    assert report.warnings == warnings
    assert make_report(data=data | {"truth_rows": 0}).warnings == [NOTHING_HELD]
    assert [line for line in repr(report).splitlines() if "warning" in line] == [f"warning: {w}" for w in warnings]
    assert ("warning" in report._repr_html_()) == bool(warnings)


def test_repr_is_an_aligned_table():
    estimates = {
        "ndcg(gain=exp2)@10": Estimate(0.123456, 0.01, 1_000_000),
        "cg": Estimate(2_500_000.0, NAN, 1),
        "mrr": Estimate(0.0, 0.00001, 3),
        "map": Estimate(NAN, NAN, 0),
    }
    policies = ["3 without a relevant item (no_truth=skip)", "2 without a list (no_recs=zero)"]
    users = {"total": 1_000_003, "evaluated": 1_000_000, "no_truth": 3, "no_recs": 2}
    assert repr(make_report(estimates=estimates, users=users)).splitlines() == [
        "metric                   mean    ± 95 %      users",
        "ndcg(gain=exp2)@10     0.1235  0.019600  1,000,000",
        "cg                  2.500e+06         –          1",
        "mrr                  0.000000  0.000043          3",
        "map                         –         –          0",
        "; ".join(["1,000,000 of 1,000,003 users counted", *policies]),
        "no interval for cg: only one user is counted",
    ]


def test_repr_names_the_groupings():
    assert "groups: country (2), age (1), in .groups and .to_frame()" in repr(make_grouped_report()).splitlines()


def test_repr_of_an_empty_report():
    assert repr(make_report(estimates={})).splitlines()[0].split() == [
        "metric",
        "mean",
        "±",
        "95",
        "%",
        "users",
    ]


def test_html_escapes_everything():
    hostile = "<script>alert('1')</script>&\"<img src=x onerror=y>"
    estimates = {hostile: Estimate(0.5, 0.1, 3)}
    report = make_report(
        estimates=estimates,
        groups={hostile: {hostile: estimates}},
        settings={"no_truth": hostile},
    )
    page = Tags(report._repr_html_())
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes == []
    assert sum(hostile in word for word in page.words) == 3


# Rows, dict, JSON


def test_rows():
    assert make_report().to_rows() == [
        {
            "metric": "ndcg@10",
            "mean": 0.5,
            "std_error": 0.1,
            "low": pytest.approx(0.5 - 0.1 * T95, abs=1e-14),
            "high": pytest.approx(0.5 + 0.1 * T95, abs=1e-14),
            "users": 3,
            "note": "",
        },
        {
            "metric": "hits@5",
            "mean": 1.25,
            "std_error": 0.25,
            "low": pytest.approx(1.25 - 0.25 * T95, abs=1e-14),
            "high": pytest.approx(1.25 + 0.25 * T95, abs=1e-14),
            "users": 3,
            "note": "",
        },
    ]


def test_rows_of_groups_follow_and_keep_the_type_of_labels():
    rows = make_grouped_report().to_rows()
    assert [(row["grouping"], row["group"], row["mean"]) for row in rows] == [
        (None, None, 0.5),
        ("country", "BE", 0.2),
        ("country", "NL", 0.65),
        ("age", 18, 0.5),
    ]
    assert len({tuple(row) for row in rows}) == 1


@pytest.mark.parametrize(
    "groups", [["x", "y"], {"plan": ["x", "y"]}, {"plan": {"x": [0]}}, {"plan": {"x": {"mrr": 1.0}}}]
)
def test_groups_of_a_report_are_estimates(groups):
    report = fastrec.evaluate([[1], [2]], [[1], [2]], "mrr")
    with pytest.raises(fastrec.InputTypeError, match=r"^groups must be estimates by grouping, label and metric, as in"):
        report.with_groups(groups)


def plain(mean, std_error, users, low=None, high=None):
    """Return what JSON has of an estimate; low and high to 1e-14."""
    ends = {
        name: end if end is None else pytest.approx(end, abs=1e-14)
        for name, end in zip(("low", "high"), (low, high), strict=True)
    }
    numbers = {"mean": mean, "std_error": std_error, "users": users, "degrees": None, "kind": "student"}
    return numbers | {"range": ["-Infinity", "Infinity"], "note": ""} | ends


def test_dict_is_schema_1():
    report, nobody = make_grouped_report(), plain(None, None, 0)
    all_users, q1 = plain(0.5, 0.1, 3, 0.5 - 0.1 * T95, 0.5 + 0.1 * T95), math.tan(math.pi * 0.475)  # of Cauchy
    assert report.to_dict() == {
        "schema": 1,
        "fastrec": "0.1.0",
        "metrics": {"ndcg@10": all_users},
        "users": {"total": 4, "evaluated": 3, "no_truth": 1, "no_recs": 0},
        "data": report.data,
        "groups": {
            "country": {
                "BE": {"ndcg@10": plain(0.2, None, 1) | {"rest": nobody}},
                "NL": {"ndcg@10": plain(0.65, 0.05, 2, 0.65 - 0.05 * q1, 0.65 + 0.05 * q1) | {"rest": nobody}},
            },
            "age": {"18": {"ndcg@10": all_users | {"rest": nobody}}},
        },
        "settings": {"ties": "expected", "no_truth": "skip", "no_recs": "zero", "min_gain": None},
        "warnings": [],
        "digest": None,
    }


def strict_json(text):
    """Parse JSON by the standard, without Python's NaN and Infinity."""

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_keeps_all_digits():
    report = make_report(
        estimates={"map": Estimate(0.1 + 0.2, NAN, 1), "cg": Estimate(math.inf, -math.inf, 2)},
        data=make_report().data | {"truth_items_in_recs": NAN},
        settings={"gain": np.array([0.0, 1.5]), "n_items": np.int64(7), "k": (5, 10), "flag": np.True_},
    )
    document = strict_json(report.to_json(indent=2))
    assert document == report.to_dict()
    assert document["metrics"]["map"] == plain(0.30000000000000004, None, 1)
    assert document["metrics"]["cg"] == plain("Infinity", "-Infinity", 2)
    assert document["data"]["truth_items_in_recs"] is None
    assert document["settings"] == {"gain": [0.0, 1.5], "n_items": 7, "k": [5, 10], "flag": True}
    assert "\n" in report.to_json(indent=2)
    assert "\n" not in report.to_json()
    assert report.to_json(indent=np.int64(0)) == report.to_json(indent=0)


@pytest.mark.parametrize("indent", ["report.json", Path("report.json"), "\t", -1, True, 1.5], ids=repr)
def test_json_is_written_nowhere(indent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = [[1], [2]]
    report = fastrec.evaluate([[1], [3]], truth, "mrr", per_user=True)
    comparison = fastrec.compare({"a": report, "b": fastrec.evaluate([[3], [2]], truth, "mrr", per_user=True)})
    for found in (report, comparison, fastrec.explain("mrr")):
        with pytest.raises(fastrec.InputTypeError, match=r"indent must be an integer .* Report\.save writes"):
            found.to_json(indent)
    assert not list(tmp_path.iterdir())


def test_labels_that_are_the_same_text_are_refused_by_json():
    estimates = {"ndcg@10": Estimate(0.5, 0.1, 3)}
    with pytest.raises(InputError, match=r"the same string: \[1, '1'\]"):
        make_report(groups={"g": {1: estimates, "1": estimates}}).to_dict()


# Frames


def column(frame, name):
    """Return a column of any kind of frame as a list, with None for missing values."""
    if hasattr(frame, "to_pylist"):
        return frame.column(name).to_pylist()
    if hasattr(frame, "get_column"):
        return frame.get_column(name).to_list()
    return frame[name].astype(object).where(frame[name].notna(), None).tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
class TestFrames:
    def test_columns_and_values(self, kind):
        pytest.importorskip(kind)
        frame = make_report().to_frame(kind)
        assert type(frame).__module__.startswith(kind)
        rows = make_report().to_rows()
        for name in ("metric", "mean", "std_error", "low", "high", "users"):
            assert column(frame, name) == [row[name] for row in rows]

    def test_labels_of_two_types_are_text(self, kind):
        pytest.importorskip(kind)
        frame = make_grouped_report().to_frame(kind)
        assert column(frame, "group") == [None, "BE", "NL", "18"]
        assert column(frame, "grouping") == [None, "country", "country", "age"]

    def test_integer_labels_stay_exact(self, kind):
        pytest.importorskip(kind)
        estimates = {"ndcg@10": Estimate(0.5, 0.1, 3)}
        frame = make_report(estimates=estimates, groups={"cohort": {2**60 + 1: estimates, -3: estimates}}).to_frame(
            kind
        )
        assert column(frame, "group") == [None, 2**60 + 1, -3]
        assert "int64" in str(frame["group"].type if kind == "pyarrow" else frame["group"].dtype).lower()


def test_the_first_installed_frame_library_is_taken(monkeypatch):
    for kind in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(kind)
    kinds = []
    for missing in ("pandas", "polars", "pyarrow"):
        kinds.append(type(make_report().to_frame()).__module__.partition(".")[0])
        monkeypatch.setitem(sys.modules, missing, None)
    assert kinds == ["pandas", "polars", "pyarrow"]
    with pytest.raises(MissingExtraError, match=r"pandas, polars, pyarrow: pip install 'fastrec-eval\[frames\]'"):
        make_report().to_frame()
    with pytest.raises(MissingExtraError, match=r"^to_frame\('polars'\) needs polars: pip"):
        make_report().to_frame("polars")


def test_an_unknown_kind_of_frame_is_an_error():
    with pytest.raises(InputError, match="kind must be one of pandas, polars, pyarrow; found 'spark'"):
        make_report().to_frame("spark")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import what_it_needs", "which needs what_it_needs: install it$"),
        (
            "raise ImportError('numpy.core.multiarray\\nfailed')",
            "which is installed but cannot be imported: numpy.core.multiarray failed. Mostly versions clash",
        ),
    ],
)
def test_require_names_a_clash_of_versions(monkeypatch, tmp_path, source, found):
    (tmp_path / "clashing_package.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    match = f"^reading needs clashing_package, {found}"
    with pytest.raises(MissingExtraError, match=match) as caught:
        require("clashing_package", "cli", what="reading")
    assert isinstance(caught.value.__cause__, ImportError) and "\n" not in str(caught.value)


# Save and load


def assert_same(report, other):
    """Check that every part is equal, arrays to the bit and with their types."""
    assert repr(other.estimates) == repr(report.estimates)
    assert repr(other.groups) == repr(report.groups)
    assert repr(other.data) == repr(report.data)
    assert other.to_dict() == report.to_dict()
    assert other.users == report.users
    assert other.fastrec_version == report.fastrec_version
    arrays = {"user_ids": (report.user_ids, other.user_ids)}
    assert (report._per_user is None) == (other._per_user is None)
    if report._per_user is not None:
        assert list(report.per_user) == list(other.per_user)
        arrays |= {name: (report.per_user[name], other.per_user[name]) for name in report.per_user}
    for ours, theirs in arrays.values():
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            same = ours.tolist() == theirs.tolist() if ours.dtype.hasobject else ours.tobytes() == theirs.tobytes()
            assert same


def saved_and_loaded(report, tmp_path):
    report.save(tmp_path / "report.npz")
    return load(tmp_path / "report.npz")


@pytest.mark.parametrize(
    "user_ids",
    [
        None,
        np.array([3, 1, 2**62, -5]),
        np.array([3, 1, 2**63, 5], dtype=np.uint64),
        np.array(["anna", "böb", "", "c/d"]),
        np.array(["anna", "böb\0", "\ud800", "c" * 1000], dtype=object),
        np.array([7, "7", 2**80, ""], dtype=object),
        np.array([], dtype=object),
    ],
)
def test_save_and_load_are_exact(user_ids, tmp_path):
    per_user = {
        "mine@5": np.array([0.1 + 0.2, NAN, -0.0, 5e-324]),
        "mine(gain=[0, 1, 3])@10": np.array([1.0, 0.0, NAN, 1 / 3]),
    }
    if user_ids is not None:
        per_user = {name: values[: len(user_ids)] for name, values in per_user.items()}
    n_users = 4 if user_ids is None else len(user_ids)
    estimates = {
        "mine@5": Estimate(0.1 + 0.2, 1 / 3, n_users),
        "cg": Estimate(math.inf, NAN, 0),
        "mine(gain=[0, 1, 3])@10": Estimate(NAN, NAN, 0),
    }
    groups = {
        "age": {18: estimates, -1: estimates},
        "country": {
            "NL": estimates,
            "18": estimates,
            "": {"cg": GroupEstimate(0.5, 0.1, 0, rest=Estimate(NAN, 1 / 3, n_users))},
        },
    }
    report = make_report(
        estimates=estimates,
        groups=groups,
        per_user=per_user,
        user_ids=user_ids,
        users={"total": n_users, "evaluated": n_users},
        data=make_report().data | {"truth_items_in_recs": NAN, "truth_users_with_recs": 1 / 7},
    )
    assert_same(report, saved_and_loaded(report, tmp_path))


@given(st.tuples(st.floats(), st.floats(), st.integers(0, 2**62)))
def test_every_estimate_survives(tmp_path_factory, numbers):
    mean, std_error, users = numbers
    estimates = {"mine": Estimate(mean, abs(std_error), users)}
    report = make_report(estimates=estimates, users={"total": 2**62, "evaluated": 3})
    assert_same(report, saved_and_loaded(report, tmp_path_factory.getbasetemp()))


def test_a_report_without_per_user_values_loads_without(tmp_path):
    report = saved_and_loaded(make_report(), tmp_path)
    assert_same(make_report(), report)
    with pytest.raises(InputError, match="were not kept"):
        _ = report.per_user


@pytest.mark.parametrize(
    ("metrics", "rules"),
    [
        (["auc"], ("", "")),
        (["auc", "log_loss"], ("", "")),
        (["auc", "gauc"], (" (one_class=drop)", " (one_class=drop)")),
        (["gauc(one_class=half)"], ("", "")),
        (["auc", "ndcg@2"], (" (no_truth=skip)", "")),
        (["gauc", "ndcg@2"], (" (no_truth=skip, one_class=drop)", " (one_class=drop)")),
    ],
)
def test_the_notes_name_the_policies_that_a_metric_follows(metrics, rules):
    """No policy leaves a user out of an AUC over all rows."""
    report = fastrec.evaluate_scores([0, 0, 1, 1, 0, 1], np.arange(6.0) / 10, [0, 2, 4, 6], metrics)
    wanted = f"6 rows of 3 users; 1 without a relevant item{rules[0]}; 1 without a negative row{rules[1]}"
    assert wanted in repr(report).splitlines()
    assert wanted in report.to_html()


def test_a_report_survives_pickle():
    estimate = GroupEstimate(0.5, 0.1, 3, rest=Estimate(0.25, 0.1, 2))
    report = make_report(groups={"age": {18: {"ndcg@10": estimate}}})
    assert_same(report, pickle.loads(pickle.dumps(report)))
    assert report.to_dict()["groups"]["age"]["18"]["ndcg@10"]["rest"]["mean"] == 0.25


def test_the_path_is_taken_as_it_is(tmp_path):
    make_report().save(str(tmp_path / "résumé of réports"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["résumé of réports"]
    assert_same(make_report(), load(str(tmp_path / "résumé of réports")))


def test_saving_again_replaces_and_gives_the_same_bytes(tmp_path):
    path = tmp_path / "report.npz"
    path.write_bytes(b"an older file")
    make_report().save(path)
    first = path.read_bytes()
    make_report().save(path)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links as POSIX has them")
def test_a_saved_file_has_the_usual_permissions_and_links_are_followed(tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "link").symlink_to("report.npz")
    make_report().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "report.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("older", [None, b"an older file"])
def test_a_failure_in_the_middle_leaves_nothing_behind(tmp_path, older, monkeypatch):
    path = tmp_path / "report.npz"
    if older is not None:
        path.write_bytes(older)
    before = list(tmp_path.iterdir())
    users = {"total": 100_000, "evaluated": 3}
    estimates = {name: Estimate(0.0, 0.0, 100_000) for name in VALUES}
    broken = make_report(estimates=estimates, per_user={name: np.zeros(100_000) for name in VALUES}, users=users)
    write, written = np.lib.format.write_array, []

    def fail_at_the_third(stream, array, **options):
        if len(written) == 2:
            raise ValueError("no room")
        written.append(array)
        write(stream, array, **options)

    monkeypatch.setattr(np.lib.format, "write_array", fail_at_the_third)
    with pytest.raises(ValueError, match="no room"):
        broken.save(path)
    assert list(tmp_path.iterdir()) == before
    assert older is None or path.read_bytes() == older


def test_saving_into_no_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"the folder .*absent does not exist"):
        make_report().save(tmp_path / "absent" / "report.npz")


def test_ids_that_json_cannot_hold_are_refused(tmp_path):
    ids = np.empty(2, dtype=object)
    ids[:] = [("a", 1.5), "b"]
    with pytest.raises(InputError, match="only string and integer user_ids can be saved, not float"):
        make_report(user_ids=ids).save(tmp_path / "report.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_file_is_an_error_at_every_length(tmp_path):
    path = tmp_path / "report.npz"
    make_report(per_user=VALUES, user_ids=np.arange(4)).save(path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 41):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=re.escape(f"{path} is not a readable fastrec report: ")):
            load(path)


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_members(path, **members):
    np.savez(path, **{name: np.frombuffer(data, dtype=np.uint8) for name, data in members.items()})


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("metric,mean\n"),
        lambda path: path.write_bytes(npy_bytes(np.arange(3))),
        lambda path: np.savez(path, weights=np.arange(3)),
        lambda path: np.savez(path, report=np.array([{"schema": 1}], dtype=object)),
        lambda path: write_members(path, report=b"\xff not text"),
        lambda path: write_members(path, report=b"not json"),
        lambda path: write_members(path, report=b"[1, 2]"),
        lambda path: write_members(path, report=b"{}"),
        lambda path: write_members(path, report=b'{"schema": 1, "fastrec": "0.1.0"}'),
        lambda path: write_members(path, report=b'{"schema": 1, "per_user": null, "metrics": {"mrr": 3}}'),
    ],
)
def test_a_foreign_file_is_an_error(tmp_path, write):
    path = tmp_path / "foreign.npz"
    write(path)
    with pytest.raises(InputError, match=r"foreign\.npz is not a readable fastrec report: "):
        load(path)


def test_a_newer_schema_is_named(tmp_path):
    with (tmp_path / "new.npz").open("wb") as file:
        write_archive(file, "report", {"schema": 2, "fastrec": "9.1"}, {}, small=False)
    with pytest.raises(InputError, match=r"it has schema 2 of fastrec 9\.1, this version reads schema 1$"):
        load(tmp_path / "new.npz")


def test_a_file_that_is_not_there_is_the_same_error_everywhere(tmp_path):
    (tmp_path / "file").touch()
    absent = [str(tmp_path / name) for name in ("absent.npz", "absent/report.npz", "file/report.npz")]
    pattern = str(tmp_path / "*.csv")
    for path, read in (*itertools.product(absent, (load, fastrec.evaluate_files)), (pattern, fastrec.evaluate_files)):
        with pytest.raises(fastrec.MissingFileError, match=f"^{re.escape(path)}: no such file") as caught:
            read(path)
        assert isinstance(caught.value, InputError) and isinstance(caught.value, FileNotFoundError)


def test_a_file_of_data_that_the_system_does_not_find_is_an_error_of_ours(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for name, says in (("loop", "symbolic links"), ("x" * 300, "too long")):
        with pytest.raises(InputError, match=f"{name}: cannot be read: .*{says}") as caught:
            fastrec.evaluate_files(tmp_path / name)
        assert not isinstance(caught.value, OSError)


def test_the_message_of_an_absent_metric_is_a_sentence():
    assert str(MetricNotFoundError("a sentence")) == "a sentence"


@pytest.mark.parametrize("per_user", [False, True])
def test_an_estimate_of_a_group_that_is_made_anew_is_whole(per_user):
    report = fastrec.evaluate([[1], [2], [1]], [[1], [1], [1]], "mrr", groups=["x", "x", "y"], per_user=per_user)
    found = report.groups["group"]["x"]["mrr"]
    changed = found._replace(mean=3.0)
    assert type(changed) is fastrec.GroupEstimate
    assert (changed.mean, changed[1:], changed.rest) == (3.0, found[1:], found.rest)
    assert changed.difference()[0] == 2.0
    assert found._replace(rest=found).difference()[0] == 0.0
    made = fastrec.GroupEstimate._make([1.0, 2.0, 3])
    assert made == Estimate(1.0, 2.0, 3) and made.rest.users == 0


@pytest.mark.filterwarnings("ignore:the truth has no rows")
def test_labels_of_users_stay_what_they_are():
    labels = [1, 2**64 - 1, 2**53 + 1]
    for own in (labels, np.array(labels, np.uint64)):
        report = fastrec.evaluate([[1]] * 3, [[1]] * 3, "mrr", groups={"g": own}, per_user=True)
        assert report.labels["g"].tolist() == labels
        assert list(report.groups["g"]) == sorted(labels)
    assert fastrec.evaluate([], [], "mrr", groups={"g": []}, per_user=True).labels == {}


REASONS = {
    "; its mean is NaN, as no_truth='nan' makes it$": {"no_truth": "nan"},
    "; its mean is weighted by user_weight$": {"user_weight": [1.0, 3.0]},
}


@pytest.mark.parametrize(("reason", "options"), REASONS.items())
def test_why_a_mean_is_none_of_values_is_said(reason, options):
    report = fastrec.evaluate([[1], [2]], [[1], [] if "no_truth" in options else [3]], "mrr", per_user=True, **options)
    calls = (
        lambda: report.interval("mrr", method="bootstrap"),
        lambda: fastrec.compare({"a": report, "b": report}),
        lambda: fastrec.compare({"a": report, "b": report}, metrics="mrr"),
    )
    for call in calls:
        with pytest.raises(fastrec.InputError, match=f"not a plain mean of users' values.*{reason}"):
            call()


@pytest.mark.parametrize("metric", ["ordered_pair_accuracy", "average_relevance_position"])
def test_a_pooled_metric_is_no_mean_even_if_it_equals_one(metric):
    pooled = f"{metric}(average=pooled)"
    report = fastrec.evaluate([[1, 2], [2, 1]], [[1], [2]], [metric, pooled], per_user=True)
    assert report[pooled] == report[metric] == report.per_user[pooled].mean()
    assert report.is_mean(metric) and not report.is_mean(pooled)


def test_a_weighted_mean_is_none_of_values_even_if_it_equals_the_plain_one():
    recs, truth, weights = [[1], [9], [1], [9]], [[1]] * 4, [1.0, 1.0, 3.0, 3.0]
    report = fastrec.evaluate(recs, truth, "mrr", per_user=True, user_weight=weights)
    assert report["mrr"] == report.per_user["mrr"].mean() and not report.is_mean("mrr")
    with pytest.raises(fastrec.InputError, match=r"its mean is weighted by user_weight$"):
        fastrec.compare({"a": report, "b": report})
    with pytest.raises(fastrec.InputError, match=r"its mean is weighted by user_weight$"):
        report.interval("mrr", method="bootstrap")


@pytest.mark.parametrize(
    ("document", "arrays", "says"),
    [
        ({}, {"per_user_0": np.array(list("abcd"))}, r"values of 'ndcg@10' must be float64 \(4,\), found <U1"),
        ({}, {"per_user_0": np.zeros((2, 2))}, r"values of 'ndcg@10' must be float64 \(4,\), found .* \(2, 2\)"),
        ({}, {"per_user_0": np.zeros(4, np.float32)}, "values of 'ndcg@10' must be float64"),
        ({}, {"per_user_0": np.zeros(7)}, r"must be float64 \(4,\), found float64 \(7,\)"),
        (
            {},
            {"user_ids": np.arange(7)},
            r"user_ids must be one string or integer for each of 4 users, found int64 \(7,\)",
        ),
        (
            {},
            {"user_ids": np.zeros((4, 1), np.int64)},
            r"user_ids must be one string or integer for each of 4 users, .* \(4, 1\)",
        ),
        ({}, {"user_ids": np.zeros(4)}, "user_ids must be one string or integer for each of 4 users, found float64"),
        (
            {},
            {"labels_0": np.arange(5)},
            r"labels_0 must be one string or integer for each of 4 users, found int64 \(5,\)",
        ),
        ({"labelled": ["plan", "country"]}, {}, "labels of 'country' are missing"),
        ({"per_user": ["ndcg@10", "hits@5"]}, {}, "per_user_1"),
    ],
)
def test_forged_arrays_are_an_error(tmp_path, document, arrays, says):
    values = {"ndcg@10": VALUES["ndcg@10"]}
    report = make_report(per_user=values, user_ids=np.arange(4), labels={"plan": np.arange(4)})
    whole, members = report._members()
    for forged, other in (({}, {}), (document, arrays)):
        with (tmp_path / "report.npz").open("wb") as file:
            write_archive(file, "report", whole | forged, members | other, small=False)
        if not forged and not other:
            assert load(tmp_path / "report.npz").to_json() == report.to_json()
    with pytest.raises(InputError, match=says):
        load(tmp_path / "report.npz")


@pytest.mark.parametrize("indent", [None, 2])
def test_the_text_of_to_json_is_not_loaded_and_says_what_is(tmp_path, indent):
    (tmp_path / "report.json").write_text(make_report().to_json(indent))
    with pytest.raises(InputError, match=r"JSON as to_json writes it, which load cannot read; use Report\.save"):
        load(tmp_path / "report.json")


CHANGED = {
    "a value of a user": {"per_user_0": lambda own: own[::-1]},
    "an id of a user": {"user_ids": lambda own: own + 1},
    "the type of ids": {"user_ids": lambda own: own.astype(np.int32)},
    "the shape of values": {"per_user_0": lambda own: own.reshape(2, 2)},
    "a digit of a mean": {"report": lambda own: np.frombuffer(own.tobytes().replace(b"0.5", b"0.6"), np.uint8)},
    "the checksum": {"checksum": lambda own: own ^ 1},
    "no checksum": {"checksum": lambda _: None},
    "no values": {"per_user_0": lambda _: None},
}


def rewritten(path, change):
    """Write an archive again by other means, with members changed by functions; None removes one."""
    with np.load(path) as members:
        found = {name: change.get(name, lambda own: own)(members[name]) for name in members.files}
    np.savez(path, **{name: own for name, own in found.items() if own is not None})


@pytest.mark.parametrize("name", CHANGED)
def test_a_file_that_was_changed_is_refused(tmp_path, name):
    path = tmp_path / "report.npz"
    make_report(per_user=VALUES, user_ids=np.arange(4)).save(path)
    with path.open("rb") as file:
        whole = file.read()
    rewritten(path, {})
    assert load(path).to_json() == make_report(per_user=VALUES, user_ids=np.arange(4)).to_json()
    path.write_bytes(whole)
    rewritten(path, CHANGED[name])
    with pytest.raises(
        InputError, match="not a readable fastrec report: its contents are not those that fastrec wrote"
    ):
        load(path)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    for wrong in (
        {"user_ids": np.arange(3)},
        {"user_ids": np.arange(4).astype("M8[s]")},
        {"per_user": {"hits@5": np.zeros(3)}},
        {"labels": {"plan": np.zeros(4)}},
    ):
        with pytest.raises(InputError):
            make_report(**wrong).save(tmp_path / "report.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_quantiles_of_the_values_of_users():
    recs, truth = [[1, 2], [3, 4], [5, 6], [7], []], [[1], [3, 4], [9], [], [8]]
    report = fastrec.evaluate(recs, truth, ["recall@1", "hits"], per_user=True, no_recs="skip")
    assert report.quantiles() == {"recall@1": {0.1: 0.1, 0.5: 0.5, 0.9: 0.9}, "hits": {0.1: 0.2, 0.5: 1.0, 0.9: 1.8}}
    assert report.quantiles(0.5) == report.quantiles([0.5]) == {"recall@1": {0.5: 0.5}, "hits": {0.5: 1.0}}
    draw = np.random.default_rng(1).permutation(40)
    lists = [list(range(int(item) + 1)) for item in draw]
    lengths = fastrec.evaluate(lists, [[0]] * 40, "num_ret", per_user=True).quantiles([0, 0.3, 1])["num_ret"]
    assert lengths == dict(zip((0, 0.3, 1), np.quantile(np.arange(1, 41), [0, 0.3, 1]).tolist(), strict=True))
    of_lists = fastrec.evaluate(recs, truth, "gini", per_user=True, n_items=10).quantiles()["gini"]
    assert all(math.isnan(own) for own in of_lists.values())
    nobody = fastrec.evaluate([[1]], [[]], "mrr", per_user=True)
    assert math.isnan(nobody.quantiles(0.5)["mrr"][0.5])


@pytest.mark.parametrize(
    ("at", "why"), [(1.5, "found 1.5"), ([0.5, "x"], "found 'x'"), ({0.5}, "must be a list"), (math.nan, "found nan")]
)
def test_quantiles_are_of_shares(at, why):
    with pytest.raises(fastrec.FastrecError, match=why):
        fastrec.evaluate([[1]], [[1]], "mrr", per_user=True).quantiles(at)


def test_quantiles_need_the_values_of_users():
    with pytest.raises(fastrec.InputError, match="per_user=True"):
        fastrec.evaluate([[1]], [[1]], "mrr").quantiles()


# Frames of users


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_per_user(kind):
    rows = pytest.importorskip("pyarrow").table(
        {"user_id": ["a", "a", "b"], "day": [1, 2, 1], "item_id": [1, 2, 3], "plan": ["x", "x", "y"]}
    )
    settings = {"metrics": ["mrr", "ndcg@1"], "user": ["user_id", "day"], "by": "plan", "per_user": True}
    report = fastrec.evaluate(rows, rows.slice(1), **settings)
    frame = report.to_frame(kind, per_user=True)
    columns = {name: list(frame[name].to_pylist() if kind == "pyarrow" else frame[name]) for name in frame_names(frame)}
    assert {name: columns[name] for name in ("user_1", "user_2", "plan")} == {
        "user_1": ["a", "a", "b"],
        "user_2": [1, 2, 1],
        "plan": ["x", "x", "y"],
    }
    for name in ("mrr", "ndcg@1"):
        np.testing.assert_array_equal(np.array(columns[name], float), report.per_user[name])
    assert len(columns) == 5


def frame_names(frame):
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def test_frames_of_users_that_are_refused():
    report = fastrec.evaluate([[1]], [[1]], "mrr", groups={"mrr": ["x"]}, per_user=True)
    with pytest.raises(InputError, match="a row per user would have two columns 'mrr': rename the column to group by"):
        report.to_frame(per_user=True)
    with pytest.raises(InputError, match="per-user values were not kept"):
        fastrec.evaluate([[1]], [[1]], "mrr").to_frame(per_user=True)
    numbered = fastrec.evaluate([[1], [2]], [[1], []], "mrr", per_user=True).to_frame("pyarrow", per_user=True)
    assert numbered.column("user").to_pylist() == [0, 1] and str(numbered.column("mrr").to_pylist()) == "[1.0, nan]"
