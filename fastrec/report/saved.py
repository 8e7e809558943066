"""The schema of a saved report, and checks of its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import COUNT, LABEL, NUMBER, SETTING, SHARE, MaybeNone, Rule, check_form, one_of
from fastrec.exceptions import Argument, InputError, Text, shown
from fastrec.inputs.row_digests import FORM as FORM_OF_DIGEST
from fastrec.inputs.sides import EXCLUDES
from fastrec.policies import NO_RECS, NO_TRUTH, SAMPLING
from fastrec.report.estimates import Effects, Estimate, GroupEstimate, IntervalKind
from fastrec.report.plain import number_of

__all__ = [
    "FORM",
    "FORM_OF_LISTS",
    "FORM_OF_ROWS",
    "HEAD",
    "PREFIX",
    "SCHEMA",
    "check_names",
    "datum_of",
    "estimate_of",
    "group_estimates_of",
    "pack_clips",
    "pack_warnings",
    "unpack_clips",
    "unpack_effects",
    "unpack_values",
    "unpack_warnings",
]


SCHEMA = 1
PREFIX = re.compile(r"(?:[A-Za-z_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*/?)?", re.ASCII)
SHARES = ("truth_users_with_recs", "truth_items_in_recs", "largest_weight_share")
SIZES = ("effective_sample_size",)


def form_of_datum(name: str) -> Rule:
    """Return the form of an entry of `Report.data`; its name may end with options of metrics in brackets."""
    kind = name.partition("(")[0]
    return SHARE if kind in SHARES else NUMBER if kind in SIZES else COUNT


def datum_of(name: str, value: Any) -> Any:
    """Return an entry of `Report.data` from its plain form."""
    return value if form_of_datum(name) is COUNT else number_of(value)


OF_INTERVALS = {  # missing in files of versions with normal intervals only
    "degrees?": NUMBER,
    "kind?": one_of(get_args(IntervalKind)),
    "range?": (NUMBER, NUMBER),
    "note?": str,
    "low?": NUMBER,
    "high?": NUMBER,
}
ESTIMATE = {"mean": NUMBER, "std_error": NUMBER, "users": COUNT, **OF_INTERVALS}
HEAD = {"schema": COUNT, "fastrec": str}  # fields that every version of `Report.save` writes
FORM: dict[str, Any] = {
    "metrics": {str: ESTIMATE},
    "users": {"total": COUNT, "evaluated": COUNT, str: COUNT},
    "data": {str: form_of_datum},
    "groups": {str: {str: {str: ESTIMATE | {"rest": ESTIMATE}}}},
    "settings": {"like?": str, "names?": {str: str}, "row_groupings?": [str], str: SETTING},
    "warnings?": MaybeNone([str]),  # missing in files of versions that kept only the counts
    "per_user": MaybeNone([str]),
    "labels": {str: [LABEL]},
    "labelled?": [str],
    "digest?": MaybeNone(FORM_OF_DIGEST),  # missing in files of the first versions
    "effects?": [(str, MaybeNone(str))],
    "named_warnings?": [[(str, str, [SETTING])]],  # parts: a string, the argument that it names, values to pass
}
CLIPS = [(Rule("a float above 0 and below 1", lambda value: isinstance(value, float) and 0 < value < 1), bool)]
OF_LISTS = {
    "exclude?": one_of(EXCLUDES),
    "no_truth": one_of(NO_TRUTH.values),
    "no_recs": one_of(NO_RECS.values),
    "min_gain": SETTING,
    **{f"{name}?": COUNT for name in ("negatives", "seed", "sampled_from")},
    **{f"{name}?": one_of(policy.values) for name, policy in SAMPLING.items()},
}
FORM_OF_LISTS = {"data": {"rec_rows": COUNT, "truth_rows": COUNT}, "settings": OF_LISTS}
FORM_OF_ROWS = {"data": {"rows": COUNT}, "settings": {"no_truth": one_of(NO_TRUTH.values), "min_gain": SETTING}}


def pack_warnings(lines: Iterable[str]) -> list[list[list[Any]]]:
    """Return the parts of the warnings that name arguments."""
    texts = [line for line in lines if isinstance(line, Text) and line.names()]
    return [[_pack_part(part) for part in text.parts] for text in texts]


def _pack_part(part: object) -> list[Any]:
    if not isinstance(part, Argument):
        return [str(part), "", []]
    return [str(part), part.name, [None if value is ... else value for value in part.values]]


def unpack_warnings(document: Mapping[str, Any]) -> list[str] | None:
    """Return the warnings, with the names in them."""
    texts = [Text(*(_unpack_part(*part) for part in parts)) for parts in document.get("named_warnings", ())]
    lines: list[str] | None = document.get("warnings")
    return lines and [next((text for text in texts if text == line), line) for line in lines]


def _unpack_part(text: str, name: str, values: list[Any]) -> object:
    return Argument(name, tuple(... if value is None else value for value in values)) if name else text


def pack_clips(clips: Mapping[float, bool]) -> dict[str, Any]:
    """Return how metrics clipped the scores, see `note_clips`, as a field of a document; empty if none did."""
    return {"clips": [list(own) for own in sorted(clips.items())]} if clips else {}


def unpack_clips(document: Mapping[str, Any], where: str) -> dict[float, bool]:
    """Undo `pack_clips`. Documents of earlier versions lack the field. `where` names the document in errors."""
    listed = document.get("clips", [])
    check_form(listed, CLIPS, f"{where}.clips")
    found: dict[float, bool] = dict(listed)
    if len(found) < len(listed):
        raise InputError(f"{where}.clips must have each eps once, found {shown(listed)}")
    return found


def check_names(document: Mapping[str, Any]) -> None:
    """Raise InputError if a part of a document names a metric or group that the document lacks."""
    metrics = document["metrics"]
    for where, names in (
        ("values of users", document["per_user"] or ()),
        ("effects of users", [metric for metric, _ in document.get("effects", ())]),
        ("a name of a tool", document["settings"].get("names", {}).values()),
    ):
        for name in names:
            if name not in metrics:
                raise InputError(f"it has {where} of {name!r}, but no such metric")
    if metrics and document["per_user"] == []:
        raise InputError("it has values of users, but of no metric")
    labels = {grouping: list(map(str, own)) for grouping, own in document["labels"].items()}
    groups = {grouping: list(by_label) for grouping, by_label in document["groups"].items()}
    if labels != groups:
        raise InputError(f"labels must name each group once, in order: found {shown(labels)} for {shown(groups)}")


def unpack_values(
    names: list[str] | None, arrays: Mapping[str, NDArray[Any]], n_users: int
) -> dict[str, NDArray[Any]] | None:
    """Return the values of users: {metric: array}. None if the report kept none."""
    if names is None:
        return None
    found = {name: _values_of_users(arrays[f"per_user_{nth}"], name, n_users) for nth, name in enumerate(names)}
    if len(found) < len(names):
        raise InputError(f"each metric must have its values of users once, found {shown(names)}")
    return found


def _values_of_users(values: NDArray[Any], name: str, n_users: int) -> NDArray[Any]:
    if values.dtype != np.float64 or values.shape != (n_users,):
        raise InputError(f"values of {name!r} must be float64 ({n_users},), found {values.dtype} {values.shape}")
    return values


def unpack_effects(
    names: Iterable[tuple[str, str | None]], arrays: Mapping[str, NDArray[Any]], n_users: int
) -> Effects:
    """Return the effects of users: {metric: {grouping: array}}."""
    found: Effects = {}
    for nth, (metric, grouping) in enumerate(names):
        effects = _values_of_users(arrays[f"effects_{nth}"], metric, n_users)
        if np.isinf(effects).any():
            raise InputError(f"effects of users on {metric!r} must be finite, found {effects[np.isinf(effects)][0]}")
        found.setdefault(metric, {})[grouping] = effects
    for metric, by in found.items():
        if None not in by:
            raise InputError(f"effects of users on {metric!r} in groups come without those of all users")
    return found


def group_estimates_of(metrics: dict[str, dict[str, Any]]) -> dict[str, GroupEstimate]:
    """Return the estimates of a group from their plain form."""
    return {
        name: GroupEstimate(*estimate_of(fields), rest=estimate_of(fields["rest"])) for name, fields in metrics.items()
    }


def estimate_of(fields: dict[str, Any]) -> Estimate:
    """Return an estimate from its plain form."""
    low, high = map(number_of, fields.get("range", ("-Infinity", "Infinity")))
    return Estimate(
        number_of(fields["mean"]),
        number_of(fields["std_error"]),
        fields["users"],
        number_of(fields.get("degrees")),
        fields.get("kind", "student"),
        (low, high),
        fields.get("note", ""),
    )
