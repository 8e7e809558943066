"""`fastrec compare --fail-if-worse`: a gate that cannot fail is an error."""

from typing import Any

import pytest

import fastrec
from support.command_line import run_fastrec

pytest.importorskip("click")


@pytest.mark.parametrize(
    ("n", "options", "code", "words"),
    [
        (5, (), 2, "mrr cannot fail: its p-value is at least 0.0625, as 5 users differ; take more users or --test t"),
        (6, (), 1, "bad is worse than good: mrr -0.5000"),
        (
            6,
            ("-m", "mrr,hits@1"),
            2,
            "at least 0.0312, as 6 users differ, before the correction for 2 rows; take more users",
        ),
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


def test_a_row_that_others_do_not_help_is_blind(tmp_path: Any) -> None:
    """By Bonferroni each row counts alone: the second has a floor of 2 / 2^6, times 2 rows."""
    for name, lists, second in (("good", [1, 2], [1, 2]), ("bad", [2, 1], [2, 3])):
        recs = [lists] * 59 + [second] * 6
        report = fastrec.evaluate(recs, [[1]] * 65, ["mrr", "hit_rate@2"], per_user=True)
        report.save(tmp_path / f"{name}.fastrec")
    systems = [f"{name}={tmp_path / name}.fastrec" for name in ("good", "bad")]
    gate = ("compare", *systems, "--baseline", "good", "--correction", "bonferroni", "--fail-if-worse")
    blind = run_fastrec(*gate, "hit_rate@2", "--test", "randomization")
    assert (
        blind.exit_code == 2
        and "at least 0.0312, as 6 of 65 users differ, before the correction for 2 rows" in blind.stderr
    )
    assert run_fastrec(*gate, "mrr").exit_code == 1
