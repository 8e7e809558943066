"""The built site: links, search and looks. It needs the extra `docs`, and for its looks Chromium."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from support.browser import CHROMIUM, Browser
from support.documents import ROOT

pytest.importorskip("mkdocs", reason="no MkDocs: pip install 'fastrec-eval[docs]'")
pytest.importorskip("material", reason="no MkDocs Material: pip install 'fastrec-eval[docs]'")
pytest.importorskip("latex2mathml", reason="no latex2mathml: pip install 'fastrec-eval[docs]'")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER: the site is not tested as it is shown")

PAGES = (
    "index.html",
    "start/movielens.html",
    "why-numbers-differ.html",
    "performance.html",
    "reference/metrics/lists/ndcg.html",
    "reference/api/evaluate.html",
)
GROUND = """
(() => {
  const sum = text => text.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
  const style = getComputedStyle(document.body);
  return [sum(style.backgroundColor), sum(style.color)];
})()
"""
HEADS = """
[...document.querySelectorAll("article h1, article h2")].map(head => {
  const box = head.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && getComputedStyle(head).visibility === "visible";
})
"""
ASK = """
(() => {
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = "miscalibration";
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  field.dispatchEvent(new Event("input", {bubbles: true}));
})()
"""
ANSWERS = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; --strict makes a broken link or an omitted page an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture
def show(site: Path, browser: Browser) -> Callable[..., Browser]:
    def shown(page: str, **options: object) -> Browser:
        browser.open(site / page, **options)
        return browser

    return shown


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    """No page names a script, a style, a font or a picture of another host."""
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert len(pages) > 100
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text and "@import" not in text, path
        links = [line for line in text.splitlines() if "<link" in line and "http" in line]
        assert not links, path


def test_formulas_are_drawn_without_scripts(site: Path) -> None:
    text = (site / "reference/metrics/lists/ndcg.html").read_text(encoding="utf-8")
    assert "<math" in text and "arithmatex" not in text
    assert not [path for path in site.rglob("*.html") if "arithmatex" in path.read_text(encoding="utf-8")]


def test_examples_are_shown_as_people_see_them(site: Path) -> None:
    pages = [path.read_text(encoding="utf-8") for path in site.rglob("*.html")]
    assert not any("BLANKLINE" in text for text in pages)
    assert not any("<!-- chart:" in text or "<!-- drawing:" in text for text in pages)


@needs_browser
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_load_nothing_from_elsewhere(show, page: str, width: int, scheme: str) -> None:
    browser = show(page, width=width, scheme=scheme)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    heads = browser.run(HEADS)
    assert heads and all(heads)
    assert browser.complaints() == []
    assert [event for event in browser.events if event["method"] == "Network.loadingFailed"] == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
    ground, ink = browser.run(GROUND)
    assert (ground > ink) == (scheme == "light")


@needs_browser
def test_no_word_breaks_on_a_small_screen(site: Path, show) -> None:
    pages = [str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html"]
    broken = {page: show(page, width=375).broken_words() for page in pages}
    assert {page: words for page, words in broken.items() if words} == {}


def test_what_a_copy_button_copies_runs(site: Path) -> None:
    """A session of Python is copied without prompts and outputs."""
    page = (site / "guides/extending.html").read_text(encoding="utf-8")
    blocks = [unescape(block) for block in re.findall(r'data-copy="([^"]*)"', page)]
    assert len(blocks) == page.count('class="language-pycon highlight"') >= 4
    exec("\n".join(blocks), {})


@needs_browser
def test_search_works_without_a_server(show) -> None:
    browser = show("index.html")
    browser.run(ASK)
    for _ in range(100):
        if found := browser.run(ANSWERS):
            break
        time.sleep(0.1)
    assert any("reference/metrics/items/miscalibration.html" in url for url in found)
    assert browser.complaints() == []
