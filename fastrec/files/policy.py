"""Value of a policy from logs of slates in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.counterfactual.logged import read_logged
from fastrec.counterfactual.policy import hints_of, sums_of
from fastrec.counterfactual.sums import SlateSums
from fastrec.counterfactual.value import PolicyEstimates, estimates_of
from fastrec.exceptions import Argument, InputError
from fastrec.files.columns import SlateColumns, users_of
from fastrec.files.faults import named_as_in
from fastrec.files.hints import hints_of_log
from fastrec.files.job import Data, FileJob, batches, roles_of_log, select_sql
from fastrec.files.resources import Path, Resources, Watch
from fastrec.runtime.limits import resolve_threads

__all__ = ["policy_value_of_files"]

NUMBERS = ("rank", "reward", "pscore", "new_pscore", "shown", "expected", "baseline_pscore")


def policy_value_of_files(
    path: Path,
    names: Sequence[str],
    clip: float | None,
    columns: SlateColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
) -> tuple[PolicyEstimates, Sequence[str]]:
    """Return the results of estimators for a log of any size, and hints; slates of rows anywhere in the file.

    Rows are read in batches of whole slates if they do not fit in memory. The sums are exact, so the batches change no
    bit.
    """
    needing = next((name for name in names if ESTIMATORS[name].predicted), None)
    if needing is not None and columns.predictions is None:
        raise InputError(f"{needing} needs ", Argument("predictions"), ": two columns of predicted rewards")
    job = FileJob.open({"log": path}, columns, resources, watch, input_format)
    threads = resolve_threads(resources.n_threads)
    found: list[list[SlateSums]] = []

    def add(rows: Any) -> None:
        found.append(_sums_of_rows(rows, list(names), clip, threads))

    whole = job.read_whole()
    if whole is not None and job.take_whole(whole.n_rows, lambda _: add(whole.tables["log"])):
        return estimates_of(found[0]), hints_of(names, hints_of_log(job, whole.listed["log"]))
    with job.database(roles_of_log) as loaded:
        file = loaded.files["log"]
        select = select_sql(file, NUMBERS, loaded.ids, loaded.labels)
        for batch in batches(Data(loaded, {"log": select}, watch), users_of(file.names)):
            with named_as_in({"log": file}, streamed=loaded.streamed is not None):
                add(batch["log"])
        listed = list(file.source.columns)
    first, *rest = found
    for part in rest:
        first = [one.add(other) for one, other in zip(first, part, strict=True)]
    return estimates_of(first), hints_of(names, hints_of_log(job, listed))


def _sums_of_rows(rows: Any, names: list[str], clip: float | None, n_threads: int) -> list[SlateSums]:
    """Return the sums over rows of a table whose columns are named by role."""
    having = rows.column_names
    roles = {"slate": ("item", "user"), "rank": ("rank",), "user": ("user1",)}
    named = {role: next((name for name in names if name in having), None) for role, names in roles.items()}
    predictions = ("shown", "expected") if "shown" in having else None
    logged = read_logged(rows, None, None, None, predictions, None, {"reward": None, **named}, n_threads)
    return sums_of(logged, names, clip, n_threads)
