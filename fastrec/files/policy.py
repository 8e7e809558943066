"""Value of a policy from logs of slates in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.counterfactual.logged import read_logged
from fastrec.counterfactual.policy import hints_of, sums_of
from fastrec.counterfactual.sums import SlateSums
from fastrec.counterfactual.value import PolicyEstimates, estimates_of
from fastrec.exceptions import Argument, InputError
from fastrec.files.columns import SlateColumns
from fastrec.files.hints import hints_of_log
from fastrec.files.job import FileJob
from fastrec.files.resources import Path, Resources
from fastrec.files.rows import map_log
from fastrec.runtime.limits import resolve_threads


def policy_value_of_files(
    path: Path,
    names: Sequence[str],
    clip: float | None,
    columns: SlateColumns,
    resources: Resources,
) -> tuple[PolicyEstimates, Sequence[str]]:
    """Return the results of estimators for a log of any size, and hints; slates of rows anywhere in the file.

    Rows are read in batches of whole slates if they do not fit in memory. The sums are exact, so the batches change no
    bit.
    """
    needing = next((name for name in names if ESTIMATORS[name].predicted), None)
    if needing is not None and columns.predictions is None:
        raise InputError(f"{needing} needs ", Argument("predictions"), ": two columns of predicted rewards")
    job = FileJob.open({"log": path}, columns, resources)
    threads = resolve_threads(resources.n_threads)
    (first, *rest), log = map_log(job, lambda rows, roles: _sums_of_rows(rows, roles, list(names), clip, threads))
    for part in rest:
        first = [one.add(other) for one, other in zip(first, part, strict=True)]
    return estimates_of(first), hints_of(names, hints_of_log(log))


def _sums_of_rows(
    rows: Any, roles: Mapping[str, str], names: list[str], clip: float | None, n_threads: int
) -> list[SlateSums]:
    """Return the sums over rows of a table; `roles` are {role: column}."""
    columns = {role: roles.get(role) for role in ("slate", "rank", "reward")} | {"user": roles.get("user0")}
    predictions = (roles["shown"], roles["expected"]) if "shown" in roles else None
    scores = roles["pscore"], roles["new_pscore"]
    baseline = roles.get("baseline_pscore")
    logged = read_logged(rows, *scores, None, predictions, None, columns, n_threads, baseline_pscore=baseline)
    return sums_of(logged, names, clip, n_threads)
