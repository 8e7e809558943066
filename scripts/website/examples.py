"""Pages that fastrec itself writes, shown on the site as they are: the comparison and the report of the demo."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import fastrec
from fastrec.demo import evaluate_demo, write_demo

FOLDER = "examples"
USERS = 2000


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the HTML of each page."""
    with tempfile.TemporaryDirectory() as folder:
        reports = evaluate_demo(write_demo(folder, n_users=USERS, seed=0))
    about = {"data": f"a made-up shop, {USERS:,} users"}
    comparison = fastrec.compare(reports, baseline=next(iter(reports)))
    yield f"{FOLDER}/comparison.html", comparison.to_html(title="Two recommenders", about=about)
    for name, report in reports.items():
        yield f"{FOLDER}/{name}.html", report.to_html(title=f"The recommender {name}", about=about)
