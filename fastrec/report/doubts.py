"""Warnings about the data of an evaluation, drawn from its counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastrec.checks import counted
from fastrec.inputs.users import NO_LABEL
from fastrec.policies import SAMPLING

NOTES = (
    ("no_truth", "without a relevant item", ("no_truth", "one_class")),
    ("no_recs", "without a list", ("no_recs",)),
    ("no_negatives", "without a negative row", ("one_class",)),
    ("constant_scores", "with equal scores only", ()),
    ("no_rows", "without rows", ()),
)
NO_TRUTH = "the truth has no rows: there is nothing to compare the lists with"
NO_ROWS = "the input has no rows: there is nothing to evaluate"


def doubts(data: Mapping[str, Any], *, ids_match: bool = False) -> list[str]:
    """Return a warning if the counts of the data suggest that the numbers mean nothing.

    `ids_match` tells that ids are known to match, by other parts of the truth.
    """
    if data.get("truth_rows") == 0:
        return [NO_TRUTH]
    if data.get("rows") == 0:
        return [NO_ROWS]
    if ids_match:
        return []
    # Without a shared user no item is shared either: name only the cause.
    if data.get("truth_users_with_recs") == 0:
        return [_apart("no user with truth has a list", "user ids", data)]
    if data.get("truth_items_in_recs") == 0:
        return [_apart("no truth item is in its user's list", "ids", data)]
    return []


def doubts_of_items(data: Mapping[str, Any], with_truth: int) -> list[str]:
    """Return warnings if no item has a popularity or a subtopic, or if a model scores no item of `exclude`.

    `data` has counts that a report does not show, too; `with_truth` is the number of users with a relevant item.
    """
    found = []
    if with_truth and data.get("users_without_subtopics") == with_truth:
        found.append("no relevant item has a row in subtopics: do the item ids match?")
    if data.get("rec_rows_unseen") and data["rec_rows_unseen"] == data.get("rec_rows_searched", data["rec_rows"]):
        found.append("no item of the lists has a popularity: do the item ids match?")
    if data.get("exclude_rows_not_scored") and not data["excluded_items"]:
        found.append("exclude removed no item of the model: do the item ids match?")
    return found


def doubts_of_groups(groups: Mapping[str, Mapping[Any, Any]]) -> Iterator[str]:
    """Yield a warning for each grouping of users, {label: users}, in which no user has a label."""
    for name, by_label in groups.items():
        if [*by_label] == [NO_LABEL]:
            yield f"no user has a label in {name!r}: has it no values, or do the user ids not match?"


def describe_one_class(data: Mapping[str, Any]) -> str:
    """Return that all rows of a log are of one class, so that metrics of both classes have no value; else nothing."""
    if not data.get("rows") or data.get("positive_rows") not in (0, data["rows"]):
        return ""
    return "all rows are positive" if data["positive_rows"] else "no row is positive"


def describe_sample(settings: Mapping[str, Any]) -> list[str]:
    """Return the line that marks a report of sampled lists wherever it is shown; nothing for other reports."""
    if "negatives" in settings:
        how = "uniformly" if settings["sample"] == SAMPLING["sample"].default else "by popularity"
        n = settings["negatives"]
        drawn = f"{counted(n, 'item')} drawn {how} for each user (seed {settings['seed']})"
    elif "sampled_from" in settings:
        drawn = f"samples of a catalogue of {settings['sampled_from']:,} items"
    else:
        return []
    if settings["correct"] == SAMPLING["correct"].default:
        own = " and relevant ones" if "negatives" in settings else ""
        return [f"sampled: ranks are among {drawn}{own}, not among all"]
    return [f"sampled: estimates (correct={settings['correct']}) of the whole catalogue, from {drawn}"]


def _apart(found: str, ids: str, data: Mapping[str, Any]) -> str:
    """Return a warning about lists without a hit: ids differ, or the lists lost the items of the truth."""
    removed = data.get("excluded_items")
    if not removed:
        return f"{found}: do the {ids} match?"
    rows = counted(removed, "row")
    return f"{found}: exclude removed {rows} of the lists; does it hold the truth, or do the {ids} not match?"
