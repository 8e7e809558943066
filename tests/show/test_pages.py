"""Pages, Markdown, LaTeX and pictures of reports and comparisons, by their contents."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrec
from fastrec.comparison.comparison import Comparison
from fastrec.comparison.row import ComparisonRow
from fastrec.exceptions import InputError, InputTypeError
from fastrec.show import html
from fastrec.show.charts import Estimated, Interval, histogram, interval_chart, line_chart, scatter, whisker
from fastrec.show.html import as_html, html_page
from fastrec.show.labels import RADIUS, Box, place_names
from fastrec.show.latex import as_latex
from fastrec.show.markdown import as_markdown
from fastrec.show.tables import Drawn, Section, Table
from support.pages import HOSTILE, N_USERS, SETTINGS, Page, compared, evaluated, hostile, large, traded

PAGES = {
    "report": lambda: evaluated().to_html(),
    "bare report": lambda: evaluated(per_user=False, groups=None, k=5).to_html(),
    "log": lambda: fastrec.evaluate_scores([1, 0, 1, 0], [0.9, 0.8, 0.1, 0.2], [0, 2, 4], per_user=True).to_html(),
    "rows of nobody": lambda: fastrec.evaluate_scores([1, 0, 1], [0.9, 0.8, 0.1], metrics=["auc"]).to_html(),
    "comparison": lambda: compared().to_html(),
    "pairs": lambda: compared(None).to_html(),
    "catalogue": lambda: traded().to_html(),
}


@pytest.fixture(scope="module", params=PAGES)
def text(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param]()


# Every page


def test_every_table_has_a_caption_and_scoped_heads(text: str) -> None:
    page = Page(text)
    assert page.tables
    for caption, rows in page.tables.items():
        assert caption
        assert {len(row) for row in rows} == {len(rows[0])}
    heads = page.all("th")
    assert len(heads) == sum(len(rows[0]) + len(rows) - 1 for rows in page.tables.values())
    assert {head["scope"] for head in heads} == {"col", "row"}
    sortable = [head for head in heads if head["scope"] == "col"]
    assert {head["aria-sort"] for head in sortable} == {"none"}
    assert len(page.all("button")) == len(sortable)


def test_pages_have_a_language_a_title_and_headings_in_order(text: str) -> None:
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert page.titles[0] == page.headings[0][1]
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= one + 1 for one, later in itertools.pairwise(levels))
    links = [link["href"] for link in page.all("a")]
    assert links == [f"#{section['id']}" for section in page.all("section")]


def test_pages_load_nothing(text: str) -> None:
    assert "://" not in text and "@import" not in text and "url(" not in text
    page = Page(text)
    names = {name for _, attributes in page.tags for name in attributes}
    assert not names & {"src", "srcset", "data", "poster", "action"}
    assert not any(name.startswith("on") for name in names)
    assert {link["href"][:1] for link in page.all("a") if link["href"]} <= {"#"}
    assert {tag for tag, _ in page.tags}.isdisjoint({"link", "img", "iframe", "object", "embed", "base"})
    assert "default-src 'none'" in str(page.all("meta"))
    assert len(page.all("script")) == len(page.all("style")) == 1


def test_pictures_say_what_they_show_or_are_hidden(text: str) -> None:
    page = Page(text)
    pictures = page.all("svg")
    shown = [picture for picture in pictures if picture.get("role") == "img"]
    assert len(re.findall(r'<svg role="img"[^>]*><title>[^<]+</title>', text)) == len(shown)
    assert all(page.titles)
    assert all(picture.get("aria-hidden") == "true" for picture in pictures if picture not in shown)


# Reports


def test_the_numbers_are_those_of_the_report() -> None:
    report = evaluated()
    tables = Page(report.to_html()).tables
    head, *rows = tables["Metrics over all users"]
    assert head == ["metric", "mean", "95 % interval", "users"]
    assert [row[0] for row in rows] == list(report)
    for name, mean, interval, users in rows:
        low, high = report.interval(name)
        assert (mean, interval) == (f"{report[name]:.4f}", f"{low:.4f} – {high:.4f}")
        assert users == str(report.estimates[name].users)
    assert [caption for caption in tables if caption.startswith("Metrics")] == ["Metrics over all users"]
    values = report.per_user["hits@10"]
    values = values[~np.isnan(values)]
    (row,) = (row for row in tables["Values of users"] if row[0] == "hits@10")
    assert row[1:3] == [str(len(values)), f"{100 * np.mean(values == 0):.1f} %"]
    assert row[3:] == [f"{number:.4f}" for number in np.quantile(values, [0, 0.1, 0.5, 0.9, 1])]


def test_groups_differ_from_the_rest_as_their_users_do() -> None:
    report = evaluated()
    _, *rows = Page(report.to_html()).tables["By plan"]
    assert len(rows) == 3 * len(report)
    assert "too few users" not in report.to_html()
    for label, name, mean, _, users, gap, interval in rows:
        values, inside = report.per_user[name], report.labels["plan"] == label
        own, rest = (part[~np.isnan(part)] for part in (values[inside], values[~inside]))
        difference = own.mean() - rest.mean()
        low, high = stats.ttest_ind(own, rest, equal_var=False).confidence_interval()  # of Welch
        assert (mean, users) == (f"{own.mean():.4f}", str(len(own)))
        assert gap == f"{difference:+.4f}"
        assert interval == f"{low:+.4f} to {high:+.4f}"


def test_no_difference_to_the_rest_where_there_is_none() -> None:
    text = evaluated(groups=["one"] * N_USERS).to_html()
    _, *rows = next(rows for title, rows in Page(text).tables.items() if title[:3] == "By ")
    assert {tuple(row[-2:]) for row in rows} == {("–", "–")}
    assert "too few users are counted in the group or outside" in text


def test_groups_say_which_metrics_depend_on_their_size() -> None:
    recs, truth = [[1, 2], [1, 3], [4, 2], [5, 6]], [[1], [3], [2], [9]]
    metrics = ["item_coverage@2", "gini@2", "personalization@2", "mrr@2"]
    report = fastrec.evaluate(recs, truth, metrics, groups=["a", "a", "b", "b"], n_items=9)
    text = (report.to_html() or "").replace("<wbr>", "")
    assert "of item_coverage@2, gini@2, personalization@2: no mean over users" in text
    assert "too few users" not in text and "order of all rows" not in text
    line = "item_coverage@2, gini@2 depend on the number of users of a group"
    assert line in text and line in report.to_markdown() and line not in repr(report)
    alone = fastrec.evaluate(recs, truth, "mrr@2", groups=["a", "b", "b", "b"]).to_html() or ""
    assert "of mrr@2: too few users are counted in the group or outside" in alone.replace("<wbr>", "")
    rows = fastrec.evaluate_scores([1, 0, 1, 0], [4, 3, 2, 1], [0, 2, 4], "auc", groups=["a", "b"])
    assert "of auc: needs the order of all rows" in (rows.to_html() or "")


def test_definitions_settings_and_data() -> None:
    recs, truth = [[1, 2], [3, 4], [5, 6]], [[1], [], [9]]
    metrics = ["map(denominator=n_rel)@1", "map(denominator=n_rel)@2", "mrr@1", "mrr", "hit_rate"]
    report = fastrec.evaluate(recs, truth, metrics, min_gain=0.5)
    tables = Page(report.to_html()).tables
    definition, *others = tables["Definitions of the metrics"][1:]
    assert [row[0] for row in others] == ["mrr@1", "mrr", "hit_rate"]
    assert others[0][1:] == others[1][1:] != others[2][1:]
    assert definition[0] == "map(denominator=n_rel)@1, 2"
    assert definition[1].startswith("Mean average precision")
    assert (definition[3], definition[5]) == ("denominator=n_rel", "Buckley & Voorhees 2000")
    settings = {row[0]: row[2] for row in tables["Settings"]}
    assert settings.items() >= {"min_gain": "0.5", "n_items": "not given", "ties": "expected"}.items()
    assert ["without a relevant item", "no_truth=skip", "1"] in tables["Users"]
    assert ["rows of lists", "6"] in tables["Data"]
    assert ["mean length of the lists", "2.0000"] in tables["Data"]
    assert ["relevant items that are in the lists", "50.0 %"] in tables["Data"]


def test_a_metric_that_was_declared_elsewhere() -> None:
    row = ComparisonRow("theirs@5", "a", "b", 0.5, 0.4, 0.1, 0.05, 0.15, 0.01, 0.01, 3, 1, 0, 4, 0, 0.1)
    comparison = Comparison((row,), settings=SETTINGS)
    page = Page(comparison.to_html())
    assert page.tables["Definitions of the metrics"][1][:2] == ["theirs@5", "declared elsewhere"]


@pytest.mark.filterwarnings("ignore:the truth has no rows")
def test_nan_is_a_dash() -> None:
    report = fastrec.evaluate([[1]], [[1]], ["mrr"], groups=["only"])
    (row,) = Page(report.to_html()).tables["Metrics over all users"][1:]
    assert row == ["mrr", "1.0000", "–", "1"]
    nobody = fastrec.evaluate([[1]], [[]], ["mrr"], per_user=True)
    (row,) = Page(nobody.to_html()).tables["Metrics over all users"][1:]
    assert row == ["mrr", "–", "–", "0"]


def test_pages_are_written_whole(tmp_path: Path) -> None:
    report = evaluated()
    assert report.to_html(tmp_path / "report.html", title="A & B") is None
    assert (tmp_path / "report.html").read_text("utf-8") == report.to_html(title="A & B")
    comparison = compared()
    assert comparison.to_html(str(tmp_path / "comparison.html")) is None
    assert (tmp_path / "comparison.html").read_text("utf-8") == comparison.to_html()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(InputError, match="does not exist"):
        report.to_html(tmp_path / "no" / "report.html")


# Comparisons


def test_the_numbers_are_those_of_the_comparison() -> None:
    comparison = compared()
    tables = Page(comparison.to_html()).tables
    _, *shown = tables["Differences to old"]
    assert len(shown) == len(comparison.rows) == 12
    for cells, row in zip(shown, comparison.rows, strict=True):
        better = "▲ better" if row.difference > 0 else "▼ worse"
        verdict = better if comparison.is_significant(row) else "≈ not clear"
        assert cells[:4] == [row.metric, row.system, verdict, f"{row.difference:+.4f}"]
        share = row.difference / row.baseline_mean * 100
        assert cells[4] == (f"{share:+.0f} %" if abs(share) >= 10 else f"{share:+.1f} %")
        assert cells[5] == f"{row.low:+.4f} to {row.high:+.4f}"
        floor = "≤ " if row.p_value == 1 / 2_001 else ""  # no drawn sum is as large
        assert cells[6:9] == [f"{floor}{row.p_corrected:.4f}", f"{row.mean:.4f}", f"{row.baseline_mean:.4f}"]
        assert cells[9] == f"{floor}{row.p_value:.4f}"
        assert cells[10:15] == [str(count) for count in (row.wins, row.ties, row.losses, row.users, row.unpaired)]
        assert cells[15] == f"{row.detectable:.4f}"
    assert {cells[2] for cells in shown} == {"▲ better", "≈ not clear"}
    assert {cells[9][0] for cells in shown} == {"≤", "0"}
    _, *shown = tables["Differences to old by plan"]
    rows = comparison.segments["plan"]
    assert [cells[:3] for cells in shown] == [[row.group, row.metric, row.system] for row in rows]
    assert [cells[-1] for cells in shown] == [str(row.users) for row in rows]


def test_of_errors_less_is_better() -> None:
    targets, users = np.arange(40) % 5.0, np.arange(41)
    good, bad = (
        fastrec.evaluate_scores(targets, targets + gap, users, metrics=["mae(average=user)"], per_user=True)
        for gap in (0.1, 1.0)
    )
    comparison = fastrec.compare({"good": good, "bad": bad}, baseline="bad", test="t")
    head, cells = Page(comparison.to_html()).tables["Differences to bad"]
    found = dict(zip(head, cells, strict=True))
    assert [found[name] for name in ("verdict", "difference", "relative", "wins")] == [
        "▲ better",
        "-0.9000",
        "-90 %",
        "40",
    ]


def test_all_pairs_are_a_matrix() -> None:
    comparison = compared(None)
    tables = {title: rows for title, rows in Page(comparison.to_html()).tables.items() if "row minus column" in title}
    assert len(tables) == 6
    head, *rows = tables["ndcg@5: row minus column; ▲ the row is better, ▼ worse, no mark: not clear"]
    assert head == ["system", "old", "new", "other"]
    found = {(row[0], name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}
    for row in (row for row in comparison.rows if row.metric == "ndcg@5"):
        marks = (" ▲", " ▼") if comparison.is_significant(row) else ("", "")
        assert found[row.system, row.baseline] == f"{row.difference:+.4f}{marks[row.difference < 0]}"
        assert found[row.baseline, row.system] == f"{-row.difference:+.4f}{marks[row.difference > 0]}"
    assert [found[name, name] for name in head[1:]] == ["", "", ""]


def test_segments_without_users_are_left_out() -> None:
    report = evaluated(groups={"plan": ["all"] * N_USERS})
    rows = [ComparisonRow("mrr", "a", "b", *[math.nan] * 7, 0, 0, 0, 0, 0, math.nan, "plan", "(none)")]
    rows.append(ComparisonRow("mrr", "a", "b", *[0.1] * 7, 3, 1, 0, 4, 0, 0.1, "plan", "some"))
    page = Page(Comparison((rows[1]._replace(grouping=None),), {"plan": tuple(rows)}, SETTINGS).to_html())
    assert [row[0] for row in page.tables["Differences to b by plan"][1:]] == ["some"]
    empty = {name: fastrec.Estimate(math.nan, math.nan, 0) for name in report}
    with_nobody = report.with_groups({"plan": {"nobody": empty, **report.groups["plan"]}})
    assert {row[0] for row in Page(with_nobody.to_html()).tables["By plan"][1:]} == {"all"}


def test_what_is_left_out_is_said() -> None:
    systems = {name: evaluated(0.3, seed, metrics=["mrr", "recall(average=pooled)"]) for seed, name in enumerate("ab")}
    comparison = fastrec.compare(systems, baseline="a", n_rounds=1_000)
    _, *rows = Page(comparison.to_html()).tables["Not compared"]
    assert [row[0] for row in rows] == ["recall(average=pooled)@5", "recall(average=pooled)@10"]


def test_tiny_differences_and_chances_keep_their_digits() -> None:
    row = ComparisonRow("mrr", "a", "b", 1e-5, 0.0, 1e-5, 5e-6, 1.5e-5, 1.234e-9, 0.0, 3, 1, 0, 4, 0, 1e-6)
    comparison = Comparison((row,), settings=SETTINGS)
    cells = Page(comparison.to_html()).tables["Differences to b"][1]
    assert cells[3:6] == ["+1.000e-05", "–", "+5.000e-06 to +1.500e-05"]
    assert [cells[6], cells[9]] == ["0.0000", "1.2e-09"]


# Hostile strings, and large ones


def test_hostile_texts_are_shown() -> None:
    report, comparison = hostile()
    shown = HOSTILE.replace("\ud800", "\\ud800").replace("\x1b", "\\x1b")
    for text in (report.to_html(title=HOSTILE), comparison.to_html(title=HOSTILE)):
        text.encode()
        page = Page(text)
        assert page.headings[0][1] == shown
        assert len(page.all("script")) == 1
        assert any(shown in cell for rows in page.tables.values() for row in rows for cell in row)
    for text in (report.to_markdown(), comparison.to_markdown()):
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {5, 8, 14, 15}
        assert "<script>" not in text and "\x1b" not in text
    for text in (report.to_latex(), comparison.to_latex()):
        body = "\n".join(line for line in text.splitlines() if line.startswith(r"\textless")).replace("$-$", "")
        assert r"\textless{}script\textgreater{}" in body
        assert not re.search(r"(?<!\\)[%$#_]", body)
        assert not re.search(r"[~^|\x1b]", body.replace("|", ""))


@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [False, True])
def test_large_comparisons_are_at_most_3_mb(pairs: bool) -> None:
    comparison = large(pairs=pairs)
    text = comparison.to_html()
    assert len(text.encode()) <= 3_000_000
    page = Page(text)
    n_rows = len(comparison.segments["country"])
    (title,) = (title for title in page.tables if "by country" in title)
    assert len(page.tables[title]) - 1 == (2_600 if pairs else n_rows)
    assert ("the 2,600 with the smallest corrected p-value, of 114,000" in title) == pairs
    if pairs:
        kept = [float(row[-2]) for row in page.tables[title][1:]]
        assert max(kept) < 0.03  # as many of all rows, with uniform chances


# Markdown and LaTeX


def test_markdown_of_a_report_has_its_groups() -> None:
    report = evaluated(metrics="mrr", k=None)
    overall, by_plan, note = report.to_markdown().split("\n\n")
    values = report.per_user["mrr"][~np.isnan(report.per_user["mrr"])]
    assert (1 - values).sum() ** 2 / ((1 - values) ** 2).sum() < 20  # so few users have another value than 1
    assert note == "- mrr: few users with a hit: the interval may be too narrow"
    assert overall.splitlines()[:2] == ["| metric | mean | 95 % interval | users |", "| --- | ---: | ---: | ---: |"]
    assert by_plan.splitlines()[:2] == [
        "| plan | metric | mean | 95 % interval | users | difference to the rest | its 95 % interval |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    assert by_plan.splitlines()[2].startswith(f"| free | mrr | {report.groups['plan']['free']['mrr'].mean:.4f} | ")


def test_what_is_significant_is_marked() -> None:
    comparison = compared()
    for text, end in ((comparison.to_markdown(), "|"), (comparison.to_latex(), "&")):
        tables = text.split("\n\n")
        assert len(tables) == 3
        rows = [line for line in tables[0].splitlines() if re.match(r"(\| )?(ndcg|recall|hits)@", line)]
        marked = ["*" in row for row in rows]
        assert marked == [comparison.is_significant(row) for row in comparison.rows]
        assert len(set(marked)) == 2
        assert all(
            f"{row.p_corrected:.4f}{'*' * mark} {end}" in line
            for row, mark, line in zip(comparison.rows, marked, rows, strict=True)
        )
        assert "significant (*): a corrected p-value of at most 0.05" in tables[-1]
        assert "correction=holm" in tables[-1]


def test_latex_has_the_rules_of_booktabs() -> None:
    lines = compared().to_latex().split("\n\n")[1].splitlines()
    assert lines[0] == r"\begin{tabular}{llllrrrrrrrrrr}"
    assert [lines[1], lines[3], lines[-2], lines[-1]] == [r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"]
    assert all(line.endswith(r" \\") and line.count(" & ") == 13 for line in [lines[2], *lines[4:-2]])


def test_signs_are_escaped() -> None:
    table = Table("", ["a|b", "n"], [["x\\y & 50 %\nz", "–"]])
    assert as_markdown([table]).splitlines() == ["| a\\|b | n |", "| --- | ---: |", "| x\\\\y & 50 % z | – |"]
    assert as_latex([table]).splitlines()[2] == r"a\textbar{}b & n \\"
    assert as_latex([table]).splitlines()[4] == r"x\textbackslash{}y \& 50 \% z & -- \\"


def test_control_characters_are_shown_in_html() -> None:
    hostile = "a\x1b[31m\0\x85\ud800é<b>"
    shown = "a\\x1b[31m\\x00\\x85\\ud800é&lt;b&gt;"
    table = Table(hostile, ["metric"], [[hostile]], notes=[hostile])
    assert as_html([table]).count(shown) == 3
    page = html_page(hostile, [Section(hostile, [table], lines=[hostile])])
    assert page.count(shown) >= 5 and not any(sign in page for sign in "\x1b\0\x85\ud800")


# Pieces


def test_sections_without_anything_are_left_out() -> None:
    page = Page(html_page("t", [Section("empty"), Section("full", lines=["text"])]))
    assert page.headings == [(1, "t"), (2, "full")]


def test_a_whisker_is_to_scale() -> None:
    assert "M60 8H90M75 3v10" in whisker(0.0, 0.25, 0.5, 1.0)
    assert whisker(math.nan, 0.1, math.nan, 1.0) == whisker(0.0, 0.0, 0.0, 0.0) == ""


def points_of(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]


def test_a_line_chart_is_to_scale_and_begins_at_0() -> None:
    svg = line_chart("t", ["5", "10", "20"], [(0.2, 0.1, 0.3), (0.4, math.nan, math.nan), (math.nan,) * 3])
    (x1, y1), (x2, y2) = points_of(svg)
    ticks = {float(text): float(y) - 4 for y, text in re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', svg)}
    assert {0.0, 0.4} <= set(ticks)
    assert x1 < x2
    assert y2 == pytest.approx(ticks[0.4], abs=0.1)
    assert y1 == pytest.approx((ticks[0.0] + ticks[0.4]) / 2, abs=0.1)
    assert "nan" not in svg


@pytest.mark.parametrize("names", [["5", "10", "20"], [f"2024-01-{day:02}" for day in range(1, 31)], ["x" * 16] * 9])
def test_names_below_a_line_chart_do_not_overlap(names: list[str]) -> None:
    svg = line_chart("t", names, [(0.5, 0.4, 0.6)] * len(names), "log")
    places = [float(x) for x, name in re.findall(r'<text x="([\d.]+)" y="171" text-anchor="middle">([^<]+)', svg)]
    assert len(places) >= min(2, len(names))
    assert all(after - before > 6 * len(names[0]) for before, after in itertools.pairwise(places))


@pytest.mark.parametrize("value", [0.0, -0.3, 1e-12, 1e-320, 1e12, 1e300])
def test_charts_of_odd_numbers(value: float) -> None:
    svg = line_chart("t", ["1"], [(value, value, value)])
    ((_, y),) = points_of(svg)
    assert 0 <= y <= 190
    assert "nan" not in svg


def test_an_interval_chart_is_to_scale() -> None:
    lines = [
        Interval("old", Estimated(0.0, math.nan, math.nan), ["0.1"], "flat"),
        Interval("new <b>", Estimated(0.5, 0.25, 1.0), ["0.6", "+500 %"], "up"),
        Interval("lost", Estimated(math.nan, math.nan, math.nan), ["–"]),
    ]
    svg = interval_chart("t", lines, 0.0)
    (x1, y1), (x2, y2) = points_of(svg)
    ((low, high),) = ((float(a), float(b)) for a, b in re.findall(r'"bar" d="M([\d.]+) [\d.]+H([\d.]+)"', svg))
    rule = float(re.findall(r'"rule" d="M([\d.]+) ', svg)[0])
    assert rule == x1 < low < x2 < high
    assert low - x1 == pytest.approx((x2 - x1) / 2, abs=0.15)
    assert high - x1 == pytest.approx((x2 - x1) * 2, abs=0.15)
    assert y1 < y2
    assert "new &lt;b&gt;" in svg and "nan" not in svg and svg.count('class="flat"') == svg.count('class="up"') == 1
    right = [float(x) for x in re.findall(r'x="([\d.]+)" y="\d+" text-anchor="end"', svg)]
    assert len(right) == 4 and right[0] == right[1] == right[3] < right[2]


def test_a_name_without_room_is_cut_in_an_interval_chart() -> None:
    name = "a very long name of a system"
    svg = interval_chart("t", [Interval(name, Estimated(1.0, 0.0, 2.0), ["1"])])
    assert f"<title>{name}</title>" in svg
    (shown,) = re.findall(r'class="name" x="2" y="16">([^<]+)<', svg)
    start, end = shown.split("…")
    assert name.startswith(start) and name.endswith(end) and len(shown) <= 18
    other = interval_chart("t", [Interval(f"{name} 2", Estimated(1.0, 0.0, 2.0), ["1"])])
    assert shown not in other  # versions differ at the end


def test_a_folded_section_shows_its_tables_on_demand() -> None:
    table = Table("numbers", ["a", "b"], [["x", "1"]])
    text = html_page("t", [Section("one", [table], lines=["why"], folded="Show"), Section("two", [table])])
    one, two = text.partition("<section id=s0>")[2].split("<section id=s1>")
    assert (
        one.index("why")
        < one.index("<details><summary>Show</summary>")
        < one.index("<table")
        < one.rindex("</details>")
    )
    assert "<details" not in two
    assert "Show histograms" in str(evaluated().to_html()) and "Show hist" not in str(
        evaluated(per_user=False).to_html()
    )


def test_bars_are_as_high_as_their_counts() -> None:
    svg = histogram("t", [4, 0, 2], "0", "1")
    bars = [(float(low), float(high)) for low, high in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)h", svg)]
    heights = [low - high for low, high in bars]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)
    assert len(heights) == 2


def test_a_drawn_cell_is_its_text_in_other_forms() -> None:
    assert as_markdown([Table("", ["a"], [[Drawn("1", "<svg>")]])]).endswith("| 1 |")


def test_rows_that_are_shown_at_first_are_few() -> None:
    assert "FIRST_ROWS = 200;" in compared().to_html()


def test_style_and_script_are_shipped() -> None:
    """They are files beside the modules, and a page holds them whole."""
    text = compared().to_html()
    for name in ("page.css", "page.js"):
        assert Path(html.__file__).with_name(name).read_text("utf-8") in text


# Pictures of matplotlib


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib = pytest.importorskip(
        "matplotlib", reason="matplotlib is not installed: pip install 'fastrec-eval[plot]'"
    )
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def ends(ax: Any, at: int) -> list[list[float]]:
    """Return the ends of the intervals of one series."""
    return [sorted(map(float, path.ravel())) for path in ax.containers[at].lines[2][0].get_segments()]


def test_metrics_are_drawn_against_cutoffs(pyplot: Any) -> None:
    report = evaluated()
    ax = report.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ndcg", "recall", "hits"]
    for line, name in zip([bars.lines[0] for bars in ax.containers], ["ndcg", "recall", "hits"], strict=True):
        assert line.get_ydata().tolist() == [report[f"{name}@5"], report[f"{name}@10"]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["5", "10"]
    low, high = report.interval("recall@5")
    assert ends(ax, 1)[0][-2:] != [] and {round(low, 9), round(high, 9)} <= {round(y, 9) for y in ends(ax, 1)[0]}


def test_metrics_are_bars_where_there_is_one_cutoff(pyplot: Any) -> None:
    report = evaluated(metrics=["mrr@5", "ndcg@10", "ndcg@5"], k=None)
    _, own = pyplot.subplots()
    ax = report.plot(own)
    assert ax is own
    assert [label.get_text() for label in ax.get_yticklabels()] == list(report)
    assert [bar.get_width() for bar in ax.patches] == [report[name] for name in report]


def test_differences_are_drawn_with_a_panel_for_each_metric(pyplot: Any) -> None:
    comparison = compared()
    panels = comparison.plot()
    assert [panel.get_title() for panel in panels] == list(dict.fromkeys(row.metric for row in comparison.rows))
    assert len(panels[0].figure.axes) == 6
    rows = [row for row in comparison.rows if row.metric == "ndcg@5"]
    marks = [line for line in panels[0].get_lines() if line.get_marker() == "o"]
    assert [mark.get_xdata().tolist() for mark in marks] == [[row.difference] for row in rows]
    assert [mark.get_markerfacecolor() != "white" for mark in marks] == [comparison.is_significant(row) for row in rows]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["new − old", "other − old"]


@pytest.mark.filterwarnings("ignore:no truth item is in")
def test_an_interval_without_its_difference_is_drawn(pyplot: Any) -> None:
    """One round of the bootstrap gives an interval of one point."""
    lists = {"old": [[7, 8, 9]] * 3, "new": [[7, 8, 0], [7, 1, 8], [2, 7, 8]]}
    reports = {name: fastrec.evaluate(own, [[0], [1], [2]], "mrr", per_user=True) for name, own in lists.items()}
    comparison = fastrec.compare(reports, test="bootstrap", n_rounds=1)
    (row,) = comparison.rows
    assert not row.low <= row.difference <= row.high
    ax = comparison.plot("mrr")
    assert ends(ax, 0)[0][2:] == pytest.approx([row.low, row.high])  # after both heights, which are 0
    assert [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "o"] == [row.difference]


def test_one_metric_on_axes_of_ones_own(pyplot: Any) -> None:
    comparison = compared()
    _, own = pyplot.subplots()
    assert comparison.plot("ndcg(gain=linear)@5", ax=own) is own
    assert own.get_title() == "ndcg@5"
    with pytest.raises(InputError, match=r"ax takes one metric"):
        comparison.plot(ax=own)
    with pytest.raises(InputError, match=r"'mrr' is not compared here, only ndcg@5"):
        comparison.plot("mrr")
    with pytest.raises(InputTypeError, match="ax must be one matplotlib axes"):
        comparison.plot("ndcg@5", ax="here")
    with pytest.raises(InputTypeError, match="ax must be one matplotlib axes"):
        evaluated().plot("here")


def test_pictures_show_hostile_names(pyplot: Any) -> None:
    name = "$x^{$ & <b>"
    report = evaluated()
    panels = fastrec.compare({name: report, "b": report}, baseline="b", n_rounds=500).plot()
    panels[0].figure.canvas.draw()
    assert evaluated(groups={name: [name] * N_USERS}).plot().figure.canvas.draw() is None


# Accuracy and catalogue


def test_accuracy_is_drawn_against_the_catalogue() -> None:
    found = traded()
    page = Page(found.to_html())
    metrics = ["ndcg@10", "item_coverage@10", "novelty@10", "gini@10"]
    assert "Accuracy and catalogue" in [title for _, title in page.headings]
    titles = [title for title in page.titles if " against " in title]
    assert [title.partition(" against ")[2].partition(":")[0] for title in titles] == metrics[1:]
    assert titles[-1].endswith(": lower gini@10 is better")
    head, *rows = page.tables["Systems by accuracy and catalogue"]
    assert head == ["system", *metrics]
    assert [row[0] for row in rows] == list(found.estimates) == ["popular", "near", "far"]
    for system, *cells in rows:
        for metric, cell in zip(metrics, cells, strict=True):
            one = found.estimates[system][metric]
            low, high = one.interval()  # those of gini end at 1, so all of the table have both ends
            ends = "" if metric == "item_coverage@10" else f" ({low:.4f} – {high:.4f})"
            assert cell == f"{one.mean:.4f}{ends}"
    left_out = ["item_coverage@10", "gini@10 within groups"]
    assert list(found.left_out) == left_out == [row[0] for row in page.tables["Not compared"][1:]]
    assert {row[0] for row in page.tables["Definitions of the metrics"][1:]} == set(metrics)
    scatters = [
        svg for svg in str(found.to_html()).split('<svg role="img"')[1:] if " against " in svg.partition("</title>")[0]
    ]
    assert [svg.count("<circle") for svg in scatters] == [3, 3, 3]
    for other in (repr(found), found.to_markdown(), found.to_latex(), found.to_json()):
        assert "catalogue" not in other


def test_the_catalogue_has_the_cutoff_of_the_accuracy() -> None:
    page = Page(traded(metrics=["item_coverage", "gini", "recall", "ndcg"], k=[5, 10]).to_html())
    assert page.tables["Systems by accuracy and catalogue"][0] == ["system", "recall@5", "item_coverage@5", "gini@5"]


@pytest.mark.parametrize("metrics", [["ndcg@10", "recall@5"], ["item_coverage@10", "gini@10"], ["epc@5", "gini@5"]])
def test_no_trade_off_without_accuracy_or_catalogue(metrics: list[str]) -> None:
    assert "Accuracy and catalogue" not in str(traded(metrics=metrics, k=None).to_html())


def test_reports_from_batches_are_drawn_without_intervals(tmp_path: Path) -> None:
    reports = {}
    for n, name in enumerate(("one", "other")):
        evaluator = fastrec.Evaluator(["ndcg@2", "gini@2"], n_items=9, per_user=True)
        evaluator.update([[n, 2], [3, 4]], [[2], [4]])
        evaluator.result().save(tmp_path / name)
        reports[name] = fastrec.load(tmp_path / name)
    page = Page(fastrec.compare(reports, n_rounds=10).to_html())
    assert [row[2] for row in page.tables["Systems by accuracy and catalogue"][1:]] == ["0.5556", "0.5556"]


NAN = Estimated(math.nan, math.nan, math.nan)


@pytest.mark.parametrize(
    "numbers",
    [
        [(0.5, 0.4, 0.6), (0.5, 0.4, 0.6)],
        [(0.0, 0.0, 0.0)],
        [(1.0, math.nan, math.nan), (1.0 + 1e-15, math.nan, math.nan)],
        [(1e-300, 0.0, 1e300), (-4.0, -5.0, -3.0)],
        [(3.0, 2.9, 3.1), (math.nan, math.nan, math.nan), (math.inf, math.inf, math.inf)],
        [(math.nan, math.nan, math.nan)],
        [],
    ],
)
def test_odd_numbers_are_drawn(numbers: list[tuple[float, float, float]]) -> None:
    points = [(Estimated(*number), Estimated(0.1 * n, 0.0, 1.0)) for n, number in enumerate(numbers)]
    names = [f"<{n}>" for n in range(len(numbers))]
    drawn = scatter("a < b", ("across", "up"), names, points)
    assert "nan" not in drawn and "inf" not in drawn and "<0>" not in drawn
    assert drawn.count("<circle") == sum(math.isfinite(mean) for mean, _, _ in numbers)
    assert scatter("", ("", ""), ["a"], [(Estimated(1.0, 1.0, 1.0), NAN)]).count("<circle") == 0


@pytest.mark.parametrize("n", [1, 8, 60])
def test_names_cover_no_other_and_no_point(n: int) -> None:
    rng = np.random.default_rng(n)
    frame = Box(46, 24, 318, 236)
    points = [(float(x), float(y)) for x, y in rng.uniform((46, 24), (302, 236), (n, 2))]
    lines = [Box(x - 9, y, x + 9, y) for x, y in points]
    found = place_names(points, ["長い名前" * 9 if n % 5 == 4 else f"system {n}" for n in range(n)], lines, frame)
    known = [label for label in found if label is not None]
    assert len(known) >= min(n, 8)
    for one, other in itertools.combinations(known, 2):
        assert not one.box.meets(other.box)
    for label, own in zip(found, points, strict=True):
        if label is not None:
            assert label.box.is_within(frame) and len(label.text) <= 18
            around = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points if (x, y) != own]
            assert not any(label.box.meets(point) for point in around)


def test_long_names_wrap_behind_underscores() -> None:
    page = fastrec.evaluate_scores([0, 1], [0.1, 0.2], metrics=["average_precision", "auc"]).to_html()
    assert "average_<wbr>precision" in str(page)
