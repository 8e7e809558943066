"""Tables for papers: systems × metrics, the best in bold, marks of significance, and a caption."""

import math
import re

import numpy as np
import pytest

import fastrec
from fastrec.comparison.comparison import Comparison
from fastrec.exceptions import InputError
from support.pages import HOSTILE, compared, evaluated, hostile, large, traded


def cells_of(text: str) -> dict[str, dict[str, str]]:
    """Return the cells of the one table of a Markdown text, by system and metric."""
    head, _, *rows = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|"))
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_means_of_systems_with_the_best_in_bold() -> None:
    found = compared()
    cells = cells_of(found.to_markdown(form="paper"))
    assert list(cells) == ["old", "new", "other"]
    assert list(cells["old"]) == list(dict.fromkeys(row.metric for row in found.rows))
    for metric in cells["old"]:
        means = {name: found.estimates[name][metric].mean for name in cells}
        best = max(means, key=means.__getitem__)
        for name, mean in means.items():
            text = f"{mean:.4f}"
            assert re.sub("<sup>.*", "", cells[name][metric]) == (f"**{text}**" if name == best else text)


def test_marks_against_a_baseline_are_the_verdicts() -> None:
    found = compared(test="t")
    other = fastrec.compare({"old": evaluated(0.1, 1), "new": evaluated(0.9, 2)}, baseline="new", test="t")
    seen = set()
    for comparison in (found, other):
        cells = cells_of(comparison.to_markdown(form="paper"))
        for row in comparison.rows:
            mark = {"better": r"<sup>\*</sup>", "worse": "<sup>†</sup>"}.get(str(row.verdict), "")
            assert re.sub(r"^[*\d.]+", "", cells[row.system][row.metric]) == mark
            assert "<sup>" not in cells[row.baseline][row.metric]
            seen.add(row.verdict)
    assert seen == {"better", "worse", "not clear"}


def test_letters_name_the_systems_that_are_worse() -> None:
    found = compared(None)
    cells = cells_of(found.to_markdown(form="paper"))
    assert list(cells) == ["a old", "b new", "c other"]
    letters = {name[2:]: name[0] for name in cells}
    for name, own in cells.items():
        for metric, cell in own.items():
            rows = [row for row in found.rows if row.metric == metric]
            wanted = [row.baseline for row in rows if (row.system, row.verdict) == (name[2:], "better")]
            wanted += [row.system for row in rows if (row.baseline, row.verdict) == (name[2:], "worse")]
            marks = re.findall("<sup>(.*)</sup>", cell)
            assert marks == (["".join(sorted(letters[each] for each in wanted))] if wanted else [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test": "t", "correction": "none"}, "Two-sided paired t-test, p ≤ 0.05, not corrected."),
        (
            {"correction": "bh"},
            "randomization test, 2,000 rounds, p ≤ 0.05, corrected by Benjamini and Hochberg for 12",
        ),
        (
            {"test": "bootstrap"},
            "Two-sided paired bootstrap test, 2,000 rounds, p ≤ 0.05, corrected by Holm for 12 com",
        ),
        (
            {"test": "wilcoxon", "correction": "bonferroni", "level": 0.9},
            "Wilcoxon signed-rank test, p ≤ 0.1, corrected",
        ),
    ],
)
def test_the_caption_names_the_test(options: dict[str, object], words: str) -> None:
    found = compared(**options)
    *_, caption = found.to_markdown(form="paper").split("\n\n")
    assert caption.startswith(f"Table: Means over {found.rows[0].users} users. Bold: best mean. ")
    assert "* significantly better, † significantly worse than old." in caption
    assert words in caption
    assert "Letters: significantly better than these systems." in compared(None).to_markdown(form="paper")


def test_the_caption_counts_one_comparison() -> None:
    one, other = (fastrec.evaluate(lists, [[1], [2]], "mrr", per_user=True) for lists in ([[1], [2]], [[3], [2]]))
    found = fastrec.compare({"one": one, "other": other})
    assert found.to_latex(form="paper").count("corrected by Holm for 1 comparison.") == 1


def test_metrics_without_a_test_have_their_means() -> None:
    found = traded()
    text = found.to_markdown(form="paper")
    assert "Lower is better: gini@10. Not tested: item_coverage@10." in text
    for name, own in cells_of(text).items():
        assert own["item_coverage@10"] == f"{found.estimates[name]['item_coverage@10'].mean:.4f}"
    gini = {name: found.estimates[name]["gini@10"].mean for name in found.estimates}
    (best,) = (name for name, own in cells_of(text).items() if "**" in own["gini@10"])
    assert best == min(gini, key=gini.__getitem__)


def test_a_metric_with_a_target_is_best_near_to_it() -> None:
    rng = np.random.default_rng(0)
    labels, scores, users = rng.random(400) < 0.4, rng.uniform(0.2, 0.6, 400), np.arange(0, 401, 10)
    metric = "calibration(average=user)"
    reports = {
        name: fastrec.evaluate_scores(labels, scores * factor, users, metrics=[metric], per_user=True)
        for name, factor in (("low", 0.5), ("right", 0.75), ("high", 1.2))
    }
    (name,) = (
        name
        for name, own in cells_of(fastrec.compare(reports, baseline="low", test="t").to_markdown(form="paper")).items()
        if "**" in own[metric]
    )
    assert name == "right"


def test_users_of_some_systems_only() -> None:
    """Means over different pairs would not fit into one table: it has those over the users of each system."""
    truth = [[1], [2], [3], [4], [5], [6]]
    lists = {
        "a": [[1], [2], [3], [9], [9], [9]],
        "b": [[9], [2], [3], [4], [9], [6]],
        "c": [[1], [9], [3], [9], [5], [9]],
    }
    reports = {
        name: fastrec.evaluate(
            [own if n != skipped else [] for n, own in enumerate(recs)], truth, "mrr", no_recs="skip", per_user=True
        )
        for skipped, (name, recs) in enumerate(lists.items())
    }
    found = fastrec.compare(reports, test="t")
    text = found.to_markdown(form="paper")
    assert "Means over the users of each system; tests over the 4 users of both." in text
    for name, own in cells_of(text).items():
        assert own["mrr"].strip("*") == f"{reports[name[2:]]['mrr']:.4f}"


def test_many_systems_have_numbers_for_letters() -> None:
    made = large(30, 1, 1, pairs=True)
    rows = tuple(row._replace(mean=0.5, baseline_mean=0.4, verdict="better") for row in made.rows)
    cells = cells_of(Comparison(rows, settings=made.settings).to_markdown(form="paper"))
    assert list(cells)[:2] == ["1, system_0", "2, system_1"] and len(cells) == 30
    marks = ",".join(str(n) for n in range(1, 30))
    assert cells["30, system_29"]["ndcg@1"].endswith(f"<sup>{marks}</sup>")
    cells = cells_of(Comparison(rows[:3], settings=made.settings).to_markdown(form="paper"))
    assert list(cells) == ["a system_0", "b system_1", "c system_2", "d system_3"]


def test_means_that_are_not_known_are_dashes() -> None:
    made = large(3, 1, 1, pairs=True)  # whose means differ between pairs, without estimates
    cells = cells_of(made.to_markdown(form="paper"))
    assert {cell for own in cells.values() for cell in own.values()} == {"–"}


def test_latex_is_a_float_with_a_caption() -> None:
    found = compared()
    lines = found.to_latex(form="paper").splitlines()
    assert lines[:2] == [r"\begin{table}", r"\centering"] and lines[-1] == r"\end{table}"
    assert lines[2].startswith(r"\caption{Means over ") and r"\textdagger{} significantly worse than old" in lines[2]
    assert lines[3] == r"\begin{tabular}{lrrrrrr}"
    (row,) = (line for line in lines if line.startswith("new & "))
    mean = f"{found.estimates['new']['ndcg@5'].mean:.4f}"
    assert row.startswith(rf"new & \textbf{{{mean}}}\textsuperscript{{*}} & ") and row.count(" & ") == 6


def test_a_report_has_a_row_per_group() -> None:
    report = evaluated()
    cells = cells_of(report.to_markdown(form="paper"))
    assert list(cells) == ["all", "plan: free", "plan: paid", "plan: trial"]
    for label, own in report.groups["plan"].items():
        assert cells[f"plan: {label}"] == {m: f"{one.mean:.4f} ±{one.margin():.4f}" for m, one in own.items()}
    assert f"Table: Means over {report.users['evaluated']} users with 95 % intervals." in report.to_markdown(
        form="paper"
    )
    assert r"\caption{Means over " in report.to_latex(form="paper")


@pytest.mark.filterwarnings("ignore")
def test_warnings_end_the_caption_of_a_table_for_a_paper() -> None:
    report = fastrec.evaluate([[1]], [[9]], ["mrr"])
    assert report.to_markdown(form="paper").endswith(f" 1 user. Warning: {report.warnings[0]}.")
    assert f" 1 user. Warning: {report.warnings[0]}.}}\n" in report.to_latex(form="paper")
    assert math.isnan(report.std_error("mrr")) and "±" not in report.to_markdown(form="paper")


def test_hostile_names_are_escaped_in_tables_for_papers() -> None:
    for found in hostile():
        markdown, latex = found.to_markdown(form="paper"), found.to_latex(form="paper")
        assert "<script>" not in markdown and "\x1b" not in markdown + latex and HOSTILE not in markdown
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines() if line.startswith("|")}) == 1
        assert r"\textless{}script\textgreater{}" in latex


def test_another_form_is_an_error() -> None:
    for write in (evaluated().to_markdown, evaluated().to_latex, compared().to_markdown, compared().to_latex):
        with pytest.raises(InputError, match="form must be one of full, paper; found 'journal'"):
            write(form="journal")  # type: ignore[arg-type]
