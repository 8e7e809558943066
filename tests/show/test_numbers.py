"""Number formats, which all media share, and the same table in each of them."""

import math

import numpy as np
import pytest

from fastrec.show import numbers
from fastrec.show.html import as_html
from fastrec.show.latex import as_latex
from fastrec.show.markdown import as_markdown
from fastrec.show.numbers import Gap
from fastrec.show.tables import Table, with_notes
from fastrec.show.text import as_text


@pytest.mark.parametrize(
    ("text", "form", "arguments"),
    [
        ("0.1235", "one_figure", (0.123456,)),
        ("0.0000", "one_figure", (-0.0,)),
        ("5.025e-06", "one_figure", (5.0249e-06,)),
        ("–", "one_figure", (math.nan,)),
        ("0.4000 – 0.6000", "span", (0.5, 0.4, 0.6)),
        ("–", "span", (0.5, math.nan, math.nan)),
        (("+0.1000", "0.0000 to +0.2000"), "shown_difference", (Gap(0.1, -1e-6, 0.2),)),
        ("0.0500", "p_value", (0.05,)),
        ("1.2e-09", "p_value", (1.234e-9,)),
        ("0.0000", "p_value", (0.0,)),
        ("1,234,567", "shown_count", (1234567,)),
        ("1,234,567", "shown_count", (np.int64(1234567),)),
        ("1.23457e+06", "shown_count", (1234567.0,)),
        ("–", "shown_count", (None,)),
        ("12.3 %", "share", (0.1234,)),
        ("99.9 %", "percent", (0.999,)),
        ("0", "change", (0.0,)),
        ("+0.0001", "change", (1e-4,)),
        ("-1e-09", "change", (-1e-9,)),
        ("+1.67e-03", "effect", (1 / 600,)),
    ],
)
def test_formats(text, form, arguments):
    assert getattr(numbers, form)(*arguments) == text


def test_means_with_intervals():
    ends = (0.5, 0.498, 0.502)
    assert numbers.with_interval(*ends, symmetric=True) == "0.5000 ±0.0020"
    assert numbers.with_interval(*ends, symmetric=False) == "0.5000 (0.4980 – 0.5020)"
    assert numbers.with_interval(0.5, math.nan, math.nan, symmetric=True) == "0.5000"
    assert numbers.p_value(0.05, at_most=True) == "≤ 0.0500"


def test_every_medium_has_title_head_rows_and_notes():
    (table,) = with_notes([Table("a_b", ["metric", "mean"], [["mrr", "-0.5000"]], notes=["  first"])], ["x_y"])
    assert as_text([table, table]).split("\n\n")[1] == "a_b\nmetric     mean\nmrr     -0.5000\n  first\nx_y"
    assert as_markdown([table]) == "**a_b**\n\n| metric | mean |\n| --- | ---: |\n| mrr | -0.5000 |\n\n- first\n- x_y"
    rows = ["metric & mean \\\\", "\\midrule", "mrr & $-$0.5000 \\\\"]
    begin, end = (
        ["% a_b", "", "\\begin{tabular}{lr}", "\\toprule"],
        ["\\bottomrule", "\\end{tabular}", "", "% first", "% x_y"],
    )
    assert as_latex([table]).split("\n") == [*begin, *rows, *end]
    assert as_html([table]) == (
        "<div><table><caption>a_b</caption><thead><tr><th>metric</th><th>mean</th></tr></thead><tbody><tr><td>mrr</td>"
        "<td>-0.5000</td></tr></tbody></table><div>  first</div><div>x_y</div></div>"
    )
