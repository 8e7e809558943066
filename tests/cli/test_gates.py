"""`fastrec compare --fail-if-worse`: a gate that cannot fail is an error."""

from typing import Any

import pytest

import fastrec
from support.command_line import run_fastrec

pytest.importorskip("click")


@pytest.mark.parametrize(
    ("n", "options", "code", "words"),
    [
        (5, (), 2, "mrr cannot fail: its p-value is at least 0.062 with 5 users; take more users, or --test t"),
        (6, (), 1, "bad is worse than good: mrr -0.5000"),
        (6, ("-m", "mrr,hits@1"), 2, "at least 0.031 with 6 users, before the correction for 2 rows; take more users"),
        (6, ("-m", "mrr,hits@1", "--correction", "bh"), 1, "bad is worse than good"),
        (5, ("--test", "t"), 1, "bad is worse than good"),
    ],
)
def test_a_gate_that_cannot_fail_exits_with_2(n: int, options: Any, code: int, words: str, tmp_path: Any) -> None:
    for name, lists in (("good", [[1, 2]]), ("bad", [[2, 1]])):
        report = fastrec.evaluate(lists * n, [[1]] * n, ["mrr", "hits@1"], per_user=True)
        report.save(tmp_path / f"{name}.fastrec")
    systems = [f"{name}={tmp_path / name}.fastrec" for name in ("good", "bad")]
    chosen = options if "-m" in options else ("-m", "mrr", *options)
    done = run_fastrec("compare", *systems, "--baseline", "good", "--fail-if-worse", "mrr", *chosen)
    assert done.exit_code == code, done.output
    assert words in " ".join(done.stderr.split())
