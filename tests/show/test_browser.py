"""Pages in a browser: a headless Chromium."""

import base64
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fastrec
from support.browser import CHROMIUM, Browser
from support.pages import HOSTILE, compared, drifted, evaluated, hostile, large, modelled, scored, traded

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO BROWSER: pages are not tested as they are shown; apt-get install chromium"
)

PAGES: dict[str, Callable[[], str | None]] = {
    "report": lambda: evaluated().to_html(),
    "comparison": lambda: compared().to_html(),
    "pairs": lambda: compared(None).to_html(),
    "drift": lambda: drifted().to_html(),
    "hostile drift": lambda: drifted(HOSTILE).to_html(title=HOSTILE),
    "policy": lambda: fastrec.policy_value(
        [1, 0] * 50, [0.5] * 100, [0.25, 0.75] * 50, estimator=["ips", "snips"]
    ).to_html(),
    "position": lambda: fastrec.position_bias(
        [1, 1, 0, 0, 1, 0, 0, 0] * 9, [1, 1, 1, 1, 2, 2, 2, 2] * 9, list(range(9)) * 8, ["a"] * 72
    ).to_html(),
    "catalogue": lambda: traded().to_html(),
    "hostile catalogue": lambda: traded([HOSTILE, "b" * 300]).to_html(),
    "log": lambda: scored()[0].to_html(curves=scored()[1]),
    "hostile log": lambda: scored(HOSTILE)[0].to_html(curves=scored(HOSTILE)[1]),
    "calibration": scored()[1][2].to_html,
    "models": lambda: modelled().to_html(),
    "hostile report": lambda: hostile()[0].to_html(title=HOSTILE),
    "hostile comparison": lambda: hostile()[1].to_html(title=HOSTILE * 5),
}
COLUMN = """
(caption, name) => {
  const table = [...document.querySelectorAll("table")].find(one => one.caption.textContent === caption);
  const heads = [...table.tHead.rows[0].cells];
  const at = heads.findIndex(head => head.textContent === name);
  return [heads[at], () => [...table.tBodies[0].rows].map(row => row.cells[at].textContent), table];
}
"""
LUMINANCE = """
(() => {
  const style = getComputedStyle(document.body);
  const sum = text => text.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
  return [sum(style.backgroundColor), sum(style.color)];
})()
"""


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    """Show a page."""

    def shown(text: str | None, **options: object) -> Browser:
        assert text is not None
        path = tmp_path / "page.html"
        path.write_text(text, "utf-8")
        browser.open(path, **options)
        return browser

    return shown


def click(browser: Browser, caption: str, name: str) -> tuple[list[str], str]:
    """Return the column of a table after a click on its head, and its stated sorting."""
    script = f"[head, cells] = ({COLUMN})({caption!r}, {name!r}); head.querySelector('button').click();"
    found = browser.run(f"{{ let head, cells; {script} [cells(), head.getAttribute('aria-sort')] }}")
    return found[0], found[1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_shown_without_errors_in_any_window(show, name, width, scheme) -> None:
    browser = show(PAGES[name](), width=width, scheme=scheme)
    assert browser.run("document.readyState") == "complete"
    assert browser.run("document.querySelectorAll('table').length") >= 2
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("file:")] == []
    assert len(browser.requests()) == 1
    assert browser.run("[innerWidth, document.documentElement.scrollWidth <= innerWidth]") == [width, True]
    ground, ink = browser.run(LUMINANCE)
    assert (ground > ink) == (scheme == "light")
    assert abs(ground - ink) > 450  # of 765: easy to read


@pytest.mark.parametrize("name", [name for name in PAGES if "hostile" not in name])
def test_no_word_breaks_on_a_small_screen(show, name) -> None:
    assert show(PAGES[name](), width=375).broken_words() == []


SHARED = """
[...document.querySelectorAll("svg")].map(svg => {
  const frame = svg.getBoundingClientRect(), names = [...svg.querySelectorAll(".name")];
  const boxes = names.map(name => name.getBoundingClientRect());
  const line = frame.width / 320 * 12;  // boxes of letters are higher than lines
  const meet = (a, b) => a.left < b.right && b.left < a.right && Math.abs(a.bottom - b.bottom) < line - 0.5;
  const pairs = boxes.flatMap((a, n) => boxes.slice(n + 1).filter(b => meet(a, b)));
  const isScatter = svg.firstChild.textContent.includes(" against ");
  const isInside = boxes.every(box => frame.left <= box.left && box.right <= frame.right + 1);
  return [isScatter, boxes.length, pairs.length, isInside];
}).filter(found => found[1])
"""


@pytest.mark.parametrize("width", [375, 1280])
def test_names_of_systems_do_not_overlap(show, width) -> None:
    few, many = (traded([f"system {n}" for n in range(count)]).to_html() for count in (3, 15))
    intervals = [[False, 8, 0, True]] * 3  # names, means and relative differences
    scatters = [[True, 3, 0, True]] * 3
    segments = [[False, 9, 0, True]] * 4  # of two metrics and two systems, with three groups
    assert show(few, width=width).run(SHARED) == intervals + scatters + segments
    found = show(many, width=width).run(SHARED)
    assert len(found) == 3 + 3 + 6
    assert all(n >= 5 and overlaps == 0 and inside for _, n, overlaps, inside in found)


WIDE = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
OPEN_ALL = "for (const one of document.querySelectorAll('.more')) one.open = true;"


@pytest.mark.parametrize("name", ["report", "comparison", "pairs", "catalogue", "models"])
@pytest.mark.parametrize("width", [375, 1280])
def test_the_columns_that_matter_are_visible(show, name, width) -> None:
    browser = show(PAGES[name](), width=width)
    assert browser.run(f"{WIDE}.map(one => one.getAttribute('aria-label'))") == []
    hidden = "[...document.querySelectorAll('thead th')].filter(one => !one.checkVisibility()).length"
    before = browser.run(hidden)
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true;")
    assert browser.run(hidden) == 0
    assert before > 0


@pytest.mark.thorough
def test_every_limit_of_columns_has_a_rule(show) -> None:
    """A switch is there exactly if its table hides columns."""
    for name, page in PAGES.items():
        for width in (375, 1280):
            browser = show(page(), width=width)
            found = browser.run("""
            [...document.querySelectorAll('.frame')].filter(one => one.checkVisibility()).map(frame => {
              const heads = [...frame.querySelectorAll('thead th')], more = frame.querySelector('.more');
              return [heads.some(one => !one.checkVisibility()), more !== null && more.checkVisibility()];
            })
            """)
            assert found and all(hides == switch for hides, switch in found), (name, width, found)


@pytest.mark.thorough
def test_what_does_not_fit_scrolls_in_its_own_frame(show) -> None:
    browser = show(compared().to_html(), width=375)
    browser.run(OPEN_ALL)
    assert browser.run(f"{WIDE}.length") > 0
    assert browser.run(f"{WIDE}.every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))")


DARKER = """
(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,PICTURE";
  await image.decode();
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  [canvas.width, canvas.height] = [image.width, image.height];
  context.drawImage(image, 0, 0);
  const column = x => [...Array(image.height).keys()].map(y => context.getImageData(x, y, 1, 1).data[0]);
  return Math.max(...column(2)) - Math.max(...column(image.width - 2));
})()
"""


def test_a_table_that_scrolls_sideways_has_a_shade_at_its_edge(show) -> None:
    """The right edge is darker than the cells beside it until a reader has scrolled to the end."""
    browser = show(compared().to_html(), width=375)
    browser.run(OPEN_ALL + "document.querySelector('main').replaceChildren(document.querySelector('.frame'));")
    pictures = []
    for place in ("0", "one.scrollWidth"):
        box = browser.run(f"""{{
          const one = document.querySelector('.scroll');
          one.scrollLeft = {place};
          const {{left, top, height}} = one.getBoundingClientRect();
          [left + one.clientLeft + one.clientWidth, top + height / 2]
        }}""")
        clip = {"x": box[0] - 40, "y": box[1] - 40, "width": 38, "height": 80, "scale": 1}
        pictures.append(browser.call("Page.captureScreenshot", clip=clip)["data"])
    browser.call("Page.navigate", url="about:blank")  # the policy of a page allows no pictures
    found = [browser.run(DARKER.replace("PICTURE", picture)) for picture in pictures]
    assert found[0] > 20 and found[1] == 0


def test_hostile_names_are_not_run(show) -> None:
    for page in hostile():
        browser = show(page.to_html(title=HOSTILE))
        assert "Page.javascriptDialogOpening" not in {event["method"] for event in browser.events}
        assert browser.run("document.scripts.length") == 1
        assert browser.run("document.querySelectorAll('body *').length") == browser.run(
            "document.querySelectorAll('main, main *, body > script').length"
        )
        assert "<script>alert" in browser.run("document.querySelector('h1').textContent")


def test_the_policy_stops_what_would_slip_through(show) -> None:
    """A foreign script would not run, even if it came in."""
    text = evaluated().to_html()
    assert text is not None
    browser = show(text.replace("</main>", "<script>document.title = 'changed'</script></main>"))
    assert browser.run("document.title") == "Evaluation"
    assert "Content Security Policy" in str(browser.complaints())


def test_numbers_are_shown(show) -> None:
    report = evaluated()
    browser = show(report.to_html())
    means = browser.run(f"({COLUMN})('Metrics over all users', 'mean')[1]()")
    assert means == [f"{mean:.4f}" for mean in report.values()]


def test_numbers_sort_as_numbers_and_texts_as_texts(show) -> None:
    comparison = compared()
    browser = show(comparison.to_html())
    gaps = sorted(row.difference for row in comparison.rows)
    caption = "Differences to old"
    assert click(browser, caption, "difference") == ([f"{gap:+.4f}" for gap in reversed(gaps)], "descending")
    assert click(browser, caption, "difference") == ([f"{gap:+.4f}" for gap in gaps], "ascending")
    names, order = click(browser, caption, "metric")
    assert order == "ascending"
    assert list(dict.fromkeys(names)) == ["hits@5", "hits@10", "ndcg@5", "ndcg@10", "recall@5", "recall@10"]
    assert browser.run(f"({COLUMN})({caption!r}, 'difference')[0].getAttribute('aria-sort')") == "none"
    assert browser.complaints() == []


def test_counts_and_small_numbers_sort_and_nan_is_last(show) -> None:
    values = ["1,234", "99", "–", "-5.000e-04", "+0.0100", "12,000", "–", "0.0500*"]
    text = evaluated(metrics=["mrr"]).to_html()
    assert text is not None
    rows = "".join(f'<tr><th scope="row">{n}<td>{value}<td><td>' for n, value in enumerate(values))
    before, _, rest = text.partition("<tbody>\n")
    browser = show(before + "<tbody>\n" + rows + rest[rest.index("\n</tbody>") :])
    rising = ["-5.000e-04", "+0.0100", "0.0500*", "99", "1,234", "12,000"]
    assert click(browser, "Metrics over all users", "mean")[0] == [*reversed(rising), "–", "–"]
    assert click(browser, "Metrics over all users", "mean")[0] == [*rising, "–", "–"]


def test_a_head_is_reached_by_keys(show) -> None:
    browser = show(evaluated().to_html())
    browser.run("document.querySelector('th button').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
        )
    assert browser.run("document.querySelector('th').getAttribute('aria-sort')") == "ascending"


def test_rows_are_filtered_and_shown_in_parts(show) -> None:
    browser = show(large(6, 5, 20).to_html())  # 500 rows of segments
    visible = "[...document.querySelectorAll('section:nth-of-type(2) tbody tr')].filter(row => !row.hidden).length"
    status = "[...document.querySelectorAll('output')].at(-1).textContent"
    assert browser.run(f"[{visible}, {status}]") == [200, "200 of 500 rows shown"]
    type_ = "input = [...document.querySelectorAll('input')].at(-1); input.value = {!r};"
    type_ += " input.dispatchEvent(new Event('input'));"
    browser.run("var input;" + type_.format("Group 11"))
    assert browser.run(f"[{visible}, {status}]") == [25, "25 of 500 rows shown"]
    click(browser, "Differences to system_0 by country", "difference")
    assert browser.run(visible) == 25
    browser.run(type_.format(""))
    browser.run("[...document.querySelectorAll('.controls button')].at(-1).click()")
    assert browser.run(f"[{visible}, {status}]") == [500, "500 of 500 rows shown"]


@pytest.mark.thorough
def test_large_tables_sort_all_rows_and_lay_out_the_first(show) -> None:
    """20 systems, 30 metrics, 20 segments: the largest table has 11,400 rows."""
    comparison = large()
    browser = show(comparison.to_html())
    sorted_ = f"""
    (() => {{
      const [head, cells, table] = ({COLUMN})("Differences to system_0 by country", "difference");
      head.querySelector("button").click();
      return [cells(), [...table.tBodies[0].rows].filter(row => row.checkVisibility()).length];
    }})()
    """
    cells, laid_out = browser.run(sorted_)
    shown = sorted((row.difference for row in comparison.segments["country"]), reverse=True)
    assert [float(cell) for cell in cells] == pytest.approx(shown, abs=5e-5)
    assert laid_out == 200


def test_pages_print_without_what_is_only_for_screens(show) -> None:
    browser = show(large(4, 3, 20).to_html(), width=1040)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    screen_only = "[...document.querySelectorAll('nav, .controls label, .controls button')]"
    hidden = f"{screen_only}.every(one => getComputedStyle(one).display === 'none')"
    assert browser.run(hidden)
    assert browser.run("document.querySelector('output').offsetHeight") > 0  # the number of rows missing on paper
    assert browser.run(
        "[...document.querySelectorAll('.scroll')].every(one => one.scrollHeight <= one.clientHeight + 1)"
    )
    heads = "[...document.querySelectorAll('section:first-of-type thead th')]"
    assert browser.run(f"{heads}.length > 12 && {heads}.every(one => one.checkVisibility())")  # all columns, on paper
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext: apt-get install poppler-utils")
def test_each_page_of_paper_has_the_heads_of_its_table(show, tmp_path) -> None:
    browser = show(large(4, 8, 20).to_html())
    printed = browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(printed))
    command = ["pdftotext", "-layout", "page.pdf", "-"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split("\f")
    with_rows = [page for page in found if page.count("\ngroup ") > 10]
    assert len(with_rows) > 4
    assert all("verdict" in page for page in with_rows)


@pytest.mark.parametrize("name", ["policy", "position", "log", "calibration"])
def test_narrow_tables_of_estimates_show_whole_numbers(show, name: str) -> None:
    """The columns that matter fit without scrolling, and no number is broken over two lines."""
    browser = show(PAGES[name](), width=375)
    tables = "[...document.querySelectorAll('.scroll:has(.t1)')]"
    found = browser.run(f"{tables}.map(one => one.scrollWidth <= one.clientWidth)")
    assert found and all(found)
    heights = browser.run("[...document.querySelectorAll('.t1 td:nth-child(2)')].map(one => one.offsetHeight)")
    assert heights and max(heights) < 48


@pytest.mark.thorough
def test_pictures_for_the_documentation(tmp_path) -> None:
    """The script takes every page in every window, light and dark, and on paper."""
    pytest.importorskip("pyarrow")
    script = Path(__file__).parents[2] / "scripts" / "screenshots.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "pictures"), "--users", "300"], check=True)
    names = {path.name: path.read_bytes() for path in (tmp_path / "pictures").iterdir()}
    windows = [f"{width}-{scheme}" for width in (375, 1280) for scheme in ("light", "dark")]
    assert set(names) == {f"{page}-{window}.png" for page in ("comparison", "report") for window in (*windows, "paper")}
    for name, picture in names.items():
        width = 1040 if "paper" in name else int(name.split("-")[1])
        assert struct.unpack(">II", picture[16:24]) == (width, 1600)
    assert len(set(names.values())) == len(names)
