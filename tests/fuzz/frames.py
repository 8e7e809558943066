"""Random data frames of every library, valid and invalid, with rows in any order.

Lists and scored rows come as long tables or as columns of lists; lists, rows, oracle and expected results are those of
`fuzz.calls`. `scripts/fuzz --target frames` runs them by the thousand, `test_fuzz` for a few seconds.
"""

import datetime as dt
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import fastrec
from fuzz.calls import (
    EITHER,
    EQUAL,
    REFUSED,
    WRONG,
    Arguments,
    Case,
    Draw,
    Finding,
    ScoresCall,
    check_report,
    check_sane,
    draw_lists,
    draw_scores,
    draw_text,
    menu,
    one_in,
    run,
    set_up,
    shown,
)
from support import row_calls
from support.frames import FORMS, LIST_FORMS, Table
from support.row_calls import Form

NAMES: list[Callable[[int], Any]] = [int, int, lambda item: f"{item:020}", lambda item: f"é{item:020}\0"]
NEVER_LISTS = {"note": [dt.date(2020, 1, 1), b"\0", 0.5, "x"]}  # possible contents of a column that the call ignores


def build(form: Callable[[Table], Any], table: Table) -> Any:
    """Return the frame, by PyArrow if the library makes no such columns, as for unsigned ids below 0 or no rows."""
    try:
        return form(table)
    except Exception:  # noqa: BLE001 - every library has errors of its own
        return pa.table(table)


def encoded(name: str) -> Callable[[Table], Any]:
    """Return a PyArrow table with a column that has its nulls in the dictionary."""

    def build(table: Table) -> Any:
        whole = pa.table(table)
        column = whole[name].combine_chunks().dictionary_encode(null_encoding="encode")
        return whole.set_column(whole.column_names.index(name), name, column)

    return build


def draw_ids(r: Draw, n: int) -> list[Any]:
    """Draw distinct ids of users, in any order."""
    drawn = r.sample(range(-5, n + 20), n)
    return r.choice([drawn, [f"ü{at}" for at in drawn], [2**62 + at for at in drawn], [str(2**at) for at in range(n)]])


def in_order(r: Draw, owners: Sequence[int], *, free: bool) -> list[int]:
    """Draw an order of rows: unchanged, any that keeps each user's rows in order, or any at all."""
    rows = list(range(len(owners)))
    kind = r.randrange(3)
    if kind == 0:
        return rows
    r.shuffle(rows)
    if kind == 1 and free:
        return rows
    places: dict[int, list[int]] = {}
    for row in sorted(rows, reverse=True):
        places.setdefault(owners[row], []).append(row)
    return [places[owners[row]].pop() for row in rows]


def long_table(r: Draw, ids: list[Any], columns: dict[str, list[list[Any]]], about: Table, *, free: bool) -> Table:
    """Return one row per item: columns of each user's values, and the per-user arguments."""
    lengths = [len(rows) for rows in columns["item_id"]]
    owners = [user for user, length in enumerate(lengths) for _ in range(length)]
    order = in_order(r, owners, free=free)
    table: Table = {"user_id": [ids[owners[row]] for row in order]}
    for name, rows in columns.items():
        values = [value for own in rows for value in own]
        table[name] = [values[row] for row in order]
    return table | {name: [values[owners[row]] for row in order] for name, values in about.items()}


def list_table(r: Draw, ids: list[Any], columns: dict[str, list[list[Any]]], about: Table) -> Table:
    """Return one row per user that has items."""
    users = [user for user, rows in enumerate(columns["item_id"]) if rows]
    r.shuffle(users)
    table: Table = {"user_id": [ids[user] for user in users]}
    return table | {name: [rows[user] for user in users] for name, rows in (columns | about).items()}


def draw_side(r: Draw, ids: list[Any], columns: dict[str, list[list[Any]]], about: Table, *, ordered: bool) -> Any:
    """Return a frame of lists; if their order counts, by the order of rows or, without scores, by rank."""
    if one_in(r, 4):
        return r.choice(list(LIST_FORMS.values())), list_table(r, ids, columns, about)
    ranked = ordered and "score" not in columns and one_in(r, 2)
    if ranked:
        columns = columns | {"rank": [list(range(1, len(rows) + 1)) for rows in columns["item_id"]]}
    table = long_table(r, ids, columns, about, free=ranked or not ordered)
    if one_in(r, 4):
        table["note"] = [r.choice(NEVER_LISTS["note"])] * len(table["user_id"])
    return r.choice(list(FORMS.values())), table


def lists_case(r: Draw, asked: Draw) -> Case:
    expect, asks, said, options, gains = draw_lists(r, asked)
    ids = draw_ids(r, len(expect.log.recs))
    present = [user for user, rows in enumerate(expect.log.recs) if rows or expect.log.truth[user]]
    users = sorted(present, key=lambda user: ids[user])
    expect, ids = expect.of(users), [ids[user] for user in users]
    name = r.choice(NAMES)
    about: Table = {} if expect.weights is None else {"w": expect.weights}
    groups = None if said["groups"] is None else [said["groups"][user] for user in users]
    about |= {} if groups is None else {"group": groups}
    recs: dict[str, Any] = {"item_id": [[name(item) for item in rows] for rows in expect.log.recs]}
    recs |= {} if expect.scores is None else {"score": expect.scores}
    truth: dict[str, Any] = {"item_id": [[name(item) for item, _ in rows] for rows in expect.log.truth]}
    truth |= {} if gains is None else {"gain": [[gain for _, gain in rows] for rows in expect.log.truth]}
    # the position of the second of two tied copies of an item depends on the order of rows
    ordered = expect.scores is None or expect.ties == "input" or expect.duplicates != "error"
    sides = {
        "recs": draw_side(r, ids, recs, about, ordered=ordered),
        "truth": draw_side(r, ids, truth, about, ordered=False),
    }
    if expect.seen is not None:
        seen = {"item_id": [[name(item) for item in rows] for rows in expect.seen]}
        sides["exclude"] = draw_side(r, ids, seen, {}, ordered=False)
    options |= {} if expect.weights is None else {"user_weight": "w"}
    options |= {} if groups is None else {"by": r.choice(["group", ["group"]])}
    verdict, why = EQUAL, "as it should be"
    if any(not table["user_id"] for _, table in sides.values()):
        verdict, why = EITHER, "an empty frame, whose columns have no type"
    if one_in(r, 2):
        verdict, why = spoil(r, sides, options)
    frames = {side: build(*made) for side, made in sides.items()}
    check = check_sane
    if verdict == EQUAL:
        per_user = options["per_user"]
        check = lambda report: check_report(report, asks, len(users), groups, expect, per_user=per_user)  # noqa: E731
    return Case(fastrec.evaluate, {**frames, **options}, verdict, check, len(users), why)


def scores_case(r: Draw, asked: Draw) -> Case:
    rows, asks, types, rules = draw_scores(r, asked)
    kept = one_in(asked, 2)
    library = r.choice(list(FORMS))
    width = np.float64 if library == "Spark rows" else r.choice([np.float32, np.float64])
    form = Form(r.choice(["integers", "texts", "keys"]), width, np.dtype(r.choice(types)))
    rows = row_calls.rounded(rows.of([user for user, own in enumerate(rows.log.labels) if own]), form)
    given, _ = row_calls.arguments(rows, form)
    users = given["user_ids"]
    options: Arguments = {"metrics": [ask.text for ask in asks], "per_user": kept, "n_threads": r.choice([None, 1, 2])}
    table: dict[str, Any] = {"label": given["labels"], "score": given["scores"]}
    table |= {"user_id": users} if form.form != "keys" else {"user_id": users[0], "part": users[1]}
    options |= rules | ({"user": ["user_id", "part"]} if form.form == "keys" else {})
    for name, column in (("sample_weight", "w"), ("user_weight", "importance"), ("groups", "group")):
        if given[name] is not None:
            table[column] = given[name]
            options["by" if name == "groups" else name] = column
    if given["item_ids"] is not None:
        table["item_id"] = given["item_ids"]
    if library == "Spark rows":
        table = {name: np.asarray(values).tolist() for name, values in table.items()}
    sides: dict[str, Any] = {"labels": (FORMS[library], table)}
    verdict, why = EQUAL, "as it should be"
    if len(table["label"]) == 0:
        verdict, why = EITHER, "an empty frame, whose columns have no type"
    if one_in(r, 2):
        verdict, why = spoil(r, sides, options)
    check = check_sane
    if verdict == EQUAL:
        expect, n_users = ScoresCall(rows, form, rules), len(rows.log.labels)
        check = lambda report: check_report(report, asks, n_users, rows.groups, expect, per_user=kept)  # noqa: E731
    return Case(fastrec.evaluate_scores, {"labels": build(*sides["labels"]), **options}, verdict, check, 0, why)


# Faults of a frame


NO_IDS: list[Callable[[list[Any]], list[Any]]] = [
    lambda values: [at + 0.5 for at in range(len(values))],
    lambda values: [at % 2 == 0 for at in range(len(values))],
    lambda values: [dt.datetime(2020, 1, 1, 0, 0, at % 60, tzinfo=dt.UTC) for at in range(len(values))],
    lambda values: [{"a": at} for at in range(len(values))],
    lambda values: [[[at]] for at in range(len(values))],
]
NO_NUMBERS: list[Callable[[list[Any]], list[Any]]] = [
    *NO_IDS[2:],
    lambda values: [str(value) for value in values],
    lambda values: [float("nan")] * len(values),
]
ODD: list[Callable[[list[Any]], list[Any]]] = [  # which may be valid
    lambda values: values[::-1],
    lambda values: [values[0]] * len(values),
    lambda values: [b"\xff%d" % at for at in range(len(values))],
    lambda values: [2**63 - 1 - at for at in range(len(values))],
    lambda values: [-1] * len(values),
    lambda values: [-(2**63)] * len(values),
    lambda values: [10.0**300] * len(values),
    lambda values: ["\ud7ff\U0001f600" * 50] * len(values),
    lambda values: [""] * len(values),
]
BY_NAME = {"recs": ["user", "item", "rank", "score", "gain", "by"], "labels": ["user", "item", "score", "label", "by"]}
BY_POSITION = {"recs": ["user_ids", "groups", "exclude"], "labels": ["user_ids", "groups", "indptr", "item_ids"]}


def spoil(r: Draw, sides: dict[str, Any], options: Arguments) -> tuple[str, str]:
    """Make a column, its name or an option wrong, in place; return the expected result and the fault."""
    first, side = next(iter(sides)), r.choice(list(sides))
    _, table = sides[side]
    names = [name for name in table if name != "note"]
    name = r.choice(names)
    kind = r.choice(["null", "type", "type", "odd", "odd", "sets", "gone", "option", "metric", "name", "pointless"])
    if kind == "option":
        name = r.choice([name for name in WRONG if name in options or name in ("k", "like", "progress")])
        options[name] = r.choice(WRONG[name])
        return REFUSED, name
    if kind == "metric":
        options["metrics"] = draw_text(r)
        return EITHER, "a random metric"
    if kind == "name":
        options[r.choice(BY_NAME[first])] = r.choice([name, "nope", 3, None, ["user_id", "user_id"], "", "é\0"])
        return EITHER, "a name of a column"
    values = list(table[name].tolist() if isinstance(table[name], np.ndarray) else table[name])
    if not values or kind == "pointless":
        options[r.choice(BY_POSITION[first])] = r.choice([[1], {}, "x", 3, {1: [1]}, np.zeros(2)])
        return EITHER, "an argument of arrays"
    must = EITHER
    if kind == "gone":
        del table[name]
        must = REFUSED if name in ("item_id", "label", "score") and side != "exclude" else EITHER
        return (must if name != "score" or side == "labels" else EITHER), f"no column {name}"
    if kind == "null":
        values[r.randrange(len(values))] = None
        must = EITHER if name == "group" else REFUSED  # a row without a label says nothing
        if one_in(r, 2) and not any(isinstance(value, list) for value in values):
            sides[side] = (encoded(name), table)
    elif kind == "sets":
        if not isinstance(values[0], list):
            return EITHER, "as it should be"
        table[name] = [set(value) for value in values]
        sides[side] = (FORMS["pandas"], table)
        ordered = side == "recs" or name != "item_id" or "gain" in table
        return (REFUSED if ordered and side != "exclude" else EITHER), f"{side} column {name}, sets"
    elif kind == "type":
        of_ids = name.endswith("_id") or name in ("part", "group")
        values = r.choice(NO_IDS if of_ids else NO_NUMBERS)(values)
        must = REFUSED if name in ("item_id", "user_id", "rank") and side != "labels" else EITHER
    else:
        values = r.choice(ODD)(values)
    try:
        pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return EITHER, "as it should be or not"
    table[name] = values
    return (must if side != "labels" or kind == "null" else EITHER), f"{side} column {name}, {kind}"


# Running


def draw_case(seed: int) -> tuple[Case, bool]:
    """Return the case of a seed, and whether to interpret kernels."""
    r = random.Random(seed)
    interpreted = one_in(r, 4)
    return r.choice([lists_case, scores_case])(r, menu(seed, r)), interpreted


def run_case(seed: int) -> bool:
    """Make the call of a seed; return whether it gave a value. Raise `Finding` for a forbidden result."""
    return run(*draw_case(seed))


def describe(seed: int) -> str:
    """Return the call of a seed for a replay."""
    return shown(*draw_case(seed))


__all__ = ["Finding", "describe", "draw_case", "run_case", "set_up"]
