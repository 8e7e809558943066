"""Take pictures of the pages of the demo: python scripts/screenshots.py [FOLDER].

Without a folder, it takes those of the documentation: the top of the comparison in windows of 375 and 1280 pixels,
light and dark, as docs/assets/comparison-WIDTH-SCHEME.png. With one, it takes all pages, more of each, and as on paper,
as FOLDER/PAGE-WIDTH-SCHEME.png and FOLDER/PAGE-paper.png. The same version of fastrec and of Chromium gives the same
pictures.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import fastrec
from fastrec.demo import evaluate_demo, write_demo
from support.browser import CHROMIUM, Browser

ASSETS = Path(__file__).resolve().parents[1] / "docs" / "assets"
WIDTHS, SCHEMES, HEIGHT = (375, 1280), ("light", "dark"), 1600
HEIGHTS_OF_DOCS = {375: 1000, 1280: 800}  # the finding, and the first charts
PAPER = 1040  # pixels of a landscape page within its margins


def pages(folder: Path, n_users: int) -> Iterator[Path]:
    """Write the comparison and the report of the demo, and yield their paths."""
    reports = evaluate_demo(write_demo(folder, n_users=n_users, seed=0))
    baseline, other = reports
    about = {"data": f"a made-up shop, {n_users:,} users"}
    found = fastrec.compare(reports, baseline=baseline)
    found.to_html(folder / "comparison.html", title="Two recommenders", about=about)
    yield folder / "comparison.html"
    reports[other].to_html(folder / "report.html", title=f"The recommender {other}", about=about)
    yield folder / "report.html"


def take(browser: Browser, page: Path, folder: Path, heights: Mapping[int, int]) -> None:
    """Take pictures of a page on a screen, of the height for each width."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.open(page, width=width, scheme=scheme)
            browser.screenshot(folder / f"{page.stem}-{width}-{scheme}.png", size=(width, heights[width]))


def take_paper(browser: Browser, page: Path, folder: Path) -> None:
    """Take a picture of a page as on paper."""
    browser.open(page, width=PAPER)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    browser.screenshot(folder / f"{page.stem}-paper.png", size=(PAPER, HEIGHT))


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder for the pictures; made if it does not exist")
    parser.add_argument("--users", type=int, default=20_000, metavar="N", help="users of the demo")
    given = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("screenshots.py needs a Chromium: apt-get install chromium")
    folder = given.folder or ASSETS
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        browser = Browser(Path(place, "profile"))
        try:
            if given.folder is None:
                take(browser, next(pages(Path(place), given.users)), folder, HEIGHTS_OF_DOCS)
                return
            for page in pages(Path(place), given.users):
                take(browser, page, folder, dict.fromkeys(WIDTHS, HEIGHT))
                take_paper(browser, page, folder)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
