"""Tables in terminals of any width: no word, number or label is broken, and a line names everything without room."""

import ast
import io
import json
import re
import shlex

import numpy as np
import pytest

import fastrec

pytest.importorskip("click")
pytest.importorskip("rich")

from rich.console import Console

from fastrec.cli import draw as drawings
from fastrec.metrics.declaration import COMMON_OPTIONS
from fastrec.show.terminal import code_lines, fit, shell_lines, wrap

WIDTHS = (20, 30, 40, 50, 60, 70, 80, 100, 132, 200)
METRICS = ["ndcg@10", "recall@20", "map@10", "ndcg(gain=exp2, min_gain=3)@10"]
LABELS = ["a-plain-label", "日本語のラベル", "with blanks in it"]


def drawn(draw, width):
    """Return the lines on a console of a width."""
    stream = io.StringIO()
    draw(Console(file=stream, width=width, force_terminal=False, highlight=False, emoji=False))
    return stream.getvalue().split("\n")


def make_report(seed, n_users=60, grouping="a grouping of users"):
    rng = np.random.default_rng(seed)
    recs = [rng.permutation(50)[:20] for _ in range(n_users)]
    rng = np.random.default_rng(99)  # all reports have the same truth
    truth = [{int(item): 3.0 for item in rng.permutation(50)[:5]} for _ in range(n_users)]
    groups = {grouping: [LABELS[n % 3] for n in range(n_users)]}
    return fastrec.evaluate(recs, truth, METRICS, groups=groups, per_user=True)


@pytest.fixture(scope="module")
def reports():
    return {name: make_report(seed) for seed, name in enumerate(["popularity", "neighbours-of-items", "old"])}


@pytest.fixture(scope="module")
def pictures(reports):
    """Drawable objects, and the words that must be whole in them at every width."""
    one = next(iter(reports.values()))
    found = fastrec.compare(reports, n_rounds=1_000)
    two = fastrec.compare(dict(list(reports.items())[:2]), baseline="popularity", n_rounds=1_000)
    log = fastrec.evaluate_scores([1, 0, 1, 0], [0.5, 0.2, 0.7, 0.9], metrics=["auc", "log_loss", "mcc(threshold=0.5)"])
    known = fastrec.catalogue()
    why = fastrec.explain("ndcg@10", [[1, 2], [3]], [[1], [4]])
    numbers = [f"{one[name]:.4f}" for name in METRICS]
    names = [metric["name"] for metric in known]
    own = [option for metric in known for name, option in metric["options"].items() if name not in COMMON_OPTIONS]
    options = {value for option in own for value in option["choices"]}
    return {
        "report": (lambda console: drawings.draw_report(console, one), [*METRICS, *LABELS, *numbers]),
        "all pairs": (lambda console: drawings.draw_comparison(console, found, reports), [*METRICS, *LABELS, *reports]),
        "a baseline": (lambda console: drawings.draw_comparison(console, two, reports), [*METRICS, *LABELS, *numbers]),
        "log": (lambda console: drawings.draw_report(console, log), list(log)),
        "metrics": (lambda console: drawings.draw_metrics(console, known), [*names, *options, "van Rijsbergen"[:3]]),
        "metric": (lambda console: drawings.draw_one_metric(console, known[0]), [known[0]["name"]]),
        "why": (lambda console: drawings.draw_explanation(console, why), ["trec_eval", "recommenders", "log2_flat2*"]),
    }


ALL = ("report", "all pairs", "a baseline", "log", "metrics", "metric", "why")


@pytest.mark.thorough(except_for="-(20|80)$")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL)
def test_no_word_number_or_label_is_broken(pictures, name, width):
    """Every word at any width is also a word with room for all; every expected string is in one line."""
    draw, wanted = pictures[name]
    lines, wide = drawn(draw, width), drawn(draw, 500)
    for text in wanted:
        assert any(text in line for line in lines), text
    words = {"...", *(word for line in wide for word in line.split())}  # of examples that continue in the next line
    told = re.compile(r"no room in \d+ columns for")
    for line in lines:
        broken = [word.removesuffix(":") for word in line.split() if word not in words and set(word) != {"─"}]
        broken = [word for word in broken if word not in words]
        assert not broken or told.search(" ".join(lines)), (line, broken)


@pytest.mark.thorough(except_for="-(20|80)$")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL)
def test_lines_fit_unless_they_are_one_word(pictures, name, width):
    draw, wanted = pictures[name]
    longest = max(map(len, [*wanted, *METRICS])) + 12  # beside its name, or after an indent
    for line in drawn(draw, width):
        if name != "metric":  # with examples that are code
            assert fits(line, width) or len(line) <= longest, line


def test_everything_about_a_metric_fits_in_80_columns():
    for metric in fastrec.catalogue():
        lines = drawn(lambda console, metric=metric: drawings.draw_one_metric(console, metric), 80)
        assert max(map(len, lines)) <= 80, metric["name"]


def fits(line, width):
    from rich.cells import cell_len

    return cell_len(line) <= width


def test_what_has_no_room_is_said_in_one_line(reports):
    found = fastrec.compare(dict(list(reports.items())[:2]), metrics=["ndcg@10"], n_rounds=1_000)
    shown = {}
    for width in (80, 60):
        shown[width] = drawn(lambda console: drawings.draw_comparison(console, found, reports), width)
    (at,) = (n for n, line in enumerate(shown[60]) if line.startswith("no room"))
    title = f"difference {' - '.join(reversed(list(reports)[:2]))}"
    said = f"no room in 60 columns for: p in '{title}'; interval in '{title}, by a grouping of users'"
    assert " ".join(shown[60][at : at + 3]).startswith(said)
    heads = {width: [line.split() for line in lines if line.startswith("metric")] for width, lines in shown.items()}
    grouping = ["a", "grouping", "of", "users"]
    assert heads[60] == [
        ["metric", "difference", "interval", "corrected"],
        ["metric", *grouping, "difference", "corrected"],
    ]
    assert heads[80][0] == ["metric", "difference", "interval", "p", "corrected"]


@pytest.mark.parametrize("name", ["p", "interval"])
def test_a_grouping_that_is_called_as_a_number_keeps_its_labels(name):
    reports = {system: make_report(seed, grouping=name) for seed, system in enumerate(["old", "new"])}
    found = fastrec.compare(reports, metrics=["ndcg@10"], n_rounds=1_000)
    lines = drawn(lambda console: drawings.draw_comparison(console, found, reports), 60)
    heads = [line.split() for line in lines if line.startswith("metric")]
    assert heads[1] == ["metric", name, "difference", "corrected"]


def test_users_are_dropped_before_intervals():
    few = fastrec.evaluate([[1, 2], [3, 4]], [[1], [3]], ["recall@10", "ndcg@10"])
    lines = drawn(lambda console: drawings.draw_report(console, few), 40)
    assert lines[0].split() == ["metric", "mean", "95", "%", "interval"]
    assert "no room in 40 columns for: users" in lines
    labelled = fastrec.evaluate([[1, 2], [3, 4]], [[1], [3]], ["recall@10"], by=None, groups={"of": ["a", "b"]})
    lines = drawn(lambda console: drawings.draw_report(console, labelled), 40)
    assert "no room in 40 columns for: users in" in lines and lines.index("'metric'") > 0
    lines = drawn(lambda console: drawings.draw_report(console, few), 20)
    assert lines[0].split() == ["metric", "mean"]
    assert max(map(len, lines)) <= 22


def test_blocks_hold_every_column():
    head, row = ["metric", "difference", "p"], ["a metric with a long name", "+0.1234", "0.0312"]
    for optional in ((), (2,)):
        assert fit(head, [row], 24, optional=optional).lines == [
            "metric: a metric with a long name",
            "  difference  +0.1234",
            "  p           0.0312",
        ]
    assert fit(head, [row], 14).lines[1:] == ["  difference", "    +0.1234", "  p", "    0.0312"]


def test_a_table_is_split_into_tables_of_about_equal_width():
    head = ["plan", "users", *(f"metric@{k}" for k in range(1, 6))]
    row = ["free", "16", *["0.3851 ±0.1546"] * 5]
    heads = [line.split() for line in fit(head, [row], 80).lines if line.startswith("plan")]
    assert heads == [["plan", "users", "metric@1", "metric@2"], ["plan", "metric@3", "metric@4", "metric@5"]]
    assert fit(head, [row], 200).lines[0].split() == head


def test_texts_are_wrapped_between_words():
    assert wrap("10,000 rounds at 95 %", 13) == ["10,000 rounds", "at 95 %"]
    assert wrap("  ndcg(gain=exp2, min_gain=4)@10: why", 10) == ["  ndcg(gain=exp2, min_gain=4)@10:", "  why"]
    assert wrap("日本 語の ラベル", 9) == ["日本 語の", "ラベル"]


def test_zero_has_no_sign_and_users_without_a_group_are_none():
    from fastrec.show.numbers import Gap, shown_difference, span

    assert shown_difference(Gap(0.1, -0.00001, 0.2)) == ("+0.1000", "0.0000 to +0.2000")
    assert span(0.5, -0.00001, 1.0) == "0.0000 – 1.0000"
    report = fastrec.evaluate({1: [1], 2: [1]}, {1: [1], 2: [1]}, "mrr", by={"plan": {1: "free"}})
    assert list(report.groups["plan"]) == ["(none)", "free"]
    assert "groups: plan (1), in .groups and .to_frame()" in repr(report)


@pytest.mark.parametrize("width", [30, 60, 90])
def test_commands_and_examples_are_the_same_in_several_lines(width):
    command = "fastrec compare 'a=my demo/a.csv' b=b.csv --truth 'my demo/truth.csv' -m ndcg@10,recall@20 --by segment"
    lines = shell_lines(command, width)
    assert shlex.split("".join(line.removesuffix("\\") for line in lines)) == shlex.split(command)
    assert max(map(len, lines)) <= width + 5 and all(line.endswith(" \\") for line in lines[:-1])
    assert any("-m ndcg@10,recall@20" in line for line in lines)
    code = """>>> f([1, 2, 3], {"a, b": (4, 5)}, ["ndcg(gain=exp2, ideal=list)@10", 'it, "is"'], k=10)["x, y"]"""
    lines = code_lines(code, width)
    assert ast.dump(ast.parse("\n".join(line[4:] for line in lines))) == ast.dump(ast.parse(code[4:]))
    assert all(line.startswith("... ") for line in lines[1:]) and (len(lines) > 1) == (len(code) > width)


# Explanations of marks and missing values


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_a_star_is_explained_wherever_it_is_printed(reports, level):
    better = {"old": make_report(3), "new": make_report(3)}
    truth = [[1]] * 29 + [[2]]
    best, worst = (fastrec.evaluate(lists, truth, "mrr", per_user=True) for lists in (truth, [[2]] * 30))
    clear = fastrec.compare({"best": best, "worst": worst}, level=level)
    meaning = f"significant (*): a corrected p-value of at most {1 - level:.4g}"
    for found, systems, is_marked in (
        (clear, {"best": best, "worst": worst}, True),
        (fastrec.compare(better, level=level, n_rounds=1_000), better, False),
    ):
        text = "\n".join(drawn(lambda console, f=found, s=systems: drawings.draw_comparison(console, f, s), 80))
        for shown in (text, repr(found), found._repr_html_(), found.to_markdown(), found.to_latex()):
            assert (meaning in shown.replace("\\", "")) == is_marked
            assert ("*" in shown.replace("(*)", "")) == is_marked
    one = drawn(lambda console: drawings.draw_one_metric(console, fastrec.catalogue()[2]), 80)
    assert any("* is the default" in line for line in one)
    listed = drawn(lambda console: drawings.draw_metrics(console, fastrec.catalogue()), 80)
    assert sum("* is the default" in line for line in listed) == 2


def texts_of(report):
    """Return a report in every form that people read, a page too."""
    console = "\n".join(drawn(lambda console: drawings.draw_report(console, report), 200))
    return [console, repr(report), report._repr_html_(), report.to_markdown(), report.to_latex(), report.to_html()]


@pytest.mark.parametrize(
    ("indptr", "what"),
    [
        ([0, 2, 4], "interval of auc: over users, whose rows count together (clustered)"),
        (None, "interval of auc: rows are taken as independent"),
    ],
)
def test_an_interval_of_all_rows_says_what_it_takes_as_independent(indptr, what):
    for text in texts_of(fastrec.evaluate_scores([1, 0, 1, 0], [0.5, 0.2, 0.7, 0.6], indptr, "auc")):
        assert what in text


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: fastrec.evaluate([[1]], [[1]], ["mrr"]), "no interval for mrr: only one user is counted"),
        (
            lambda: fastrec.evaluate_scores([1, 0, 1, 0], [0.5, 0.2, 0.7, 0.9], metrics=["auc", "log_loss", "brier"]),
            "no interval for log_loss, brier: rows have no users",
        ),
        (
            lambda: fastrec.evaluate_scores([1, 0, 0], [0.5, 0.2, 0.7], metrics=["log_loss", "auc"]),
            "no interval for auc: a class has fewer than two rows",
        ),
        (
            lambda: fastrec.evaluate_scores([1, 0, 0], [0.5, 0.2, 0.7], [0, 2, 3], ["auc"]),
            "no interval for auc: a class has rows of fewer than two users",
        ),
        (
            lambda: fastrec.evaluate_scores([1, 0, 0, 1], [0.5, 0.2, 0.7, 0.9], metrics=["ks", "eer"]),
            "no interval for ks, eer: this metric has no known standard error",
        ),
        (
            lambda: fastrec.evaluate_scores([1, 0, 1, 0], [0.5, 0.2, 0.7, 0.9], [0, 2, 4], ["ks"]),
            "no interval for ks: this metric has no known standard error",
        ),
    ],
)
def test_a_missing_interval_says_why(make, why):
    report = make()
    for text in texts_of(report):
        assert why in text.replace("\\_", "_")
        assert "nan" not in text.partition("<h2>Definitions")[0].lower()


def test_intervals_that_are_there_need_no_word(reports):
    for text in texts_of(next(iter(reports.values()))):
        assert "no interval" not in text


def test_rows_without_users_have_no_number_of_users():
    report = fastrec.evaluate_scores([1, 0, 1], [0.5, 0.2, 0.7], metrics=["auc", "log_loss"])
    for text in texts_of(report):
        found = re.sub(r"rows have no users|<h2>Definitions.*?<h2>Data", "", text, flags=re.DOTALL)
        assert "users" not in found.replace("of users", "")
    assert json.loads(report.to_json())["users"]["total"] == 0  # JSON is for programs and stays unchanged


def test_an_explanation_of_rows_without_users_has_no_number_of_users():
    why = fastrec.explain_scores("auc", [1, 0, 1], [0.5, 0.2, 0.7], like="sklearn")
    text = "\n".join(drawn(lambda console: drawings.draw_explanation(console, why), 80))
    assert "users" not in text and "users" not in why.to_markdown()


def test_reports_print_what_items_and_users_lack_as_the_shell_does() -> None:
    metrics = ["novelty(unseen=drop)@3", "repeat_ratio@3"]
    report = fastrec.evaluate([[1, 2, 7], [1, 3, 8]], None, metrics, history=[[1, 2, 3], []])
    line = "2 rows of lists whose item has no popularity, 1 user without a history"
    assert line in repr(report).splitlines() and line in drawings.counts(report)
