"""LaTeX of every kind of result compiles, with any name in it."""

import shutil
import subprocess

import pytest

import fastrec
from support.pages import compared

NAMES = {r"a_b & 50 %": "[one]", "~^#$": "*two*", r"{\x}": "(none)", "é|<ü>": "\\"}
DOCUMENT = r"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{}\end{{document}}"


def results():
    """Return a result of each kind, with the arguments of its LaTeX."""
    truth = {user: ["x"] for user in NAMES}
    ask = {"metrics": ["ndcg(gain=binary)@2", "mrr"], "per_user": True, "groups": {"a_b %": NAMES}}
    lists = {name: {user: ["x" if n >= own else "y"] for n, user in enumerate(NAMES)} for own, name in enumerate(NAMES)}
    reports = {name: fastrec.evaluate(own, truth, **ask) for name, own in lists.items()}
    first = next(iter(reports.values()))
    for form in ("full", "paper"):
        yield from ((found, {"form": form}) for found in (first, fastrec.compare(reports), compared()))
    yield fastrec.drift(lists, k=1, n_items=6), {}
    yield fastrec.policy_value([1, 0, 1], [0.5] * 3, [0.25] * 3, estimator=["ips", "snips"]), {}
    yield fastrec.position_bias([1, 1, 0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 2, 2, 2, 2], [7] * 8, ["a"] * 8), {}


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: apt-get install texlive-latex-recommended")
def test_latex_compiles(tmp_path):
    texts = [found.to_latex(**given) for found, given in results()]
    for n, text in enumerate(texts):
        (tmp_path / f"{n}.tex").write_text(DOCUMENT.format(f"\n{text}\n"), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{n}.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}"


@pytest.mark.parametrize("name", ["[a]", "*a", "(a)"])
def test_names_are_no_arguments_of_the_row_before(name):
    report = fastrec.evaluate([[1], [2]], [[1], [2]], "mrr", groups={"g": [name, "b"]})
    assert f"\n{{}}{name} & mrr & 1.0000" in report.to_latex()
