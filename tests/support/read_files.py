"""The input that an evaluator gets from files, as flat arrays with user pointers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator
from fastrec.files import job
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Resources
from fastrec.files.rows import evaluate_log
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import NO_LABEL
from fastrec.report.report import Report


class Logs(NamedTuple):
    """Lists, truth and seen items of the same users, ascending; string items become their position among all."""

    recs: tuple[Any, ...]
    truth: tuple[Any, ...]
    user_ids: Any
    groups: dict[str, Any]
    exclude: tuple[Any, ...] | None


class ScoredLog(NamedTuple):
    """Rows by user, ascending, otherwise in the order of the file."""

    labels: Any
    scores: Any
    weights: Any
    items: Any
    indptr: Any
    user_ids: Any
    users: dict[str, Any]
    groups: dict[str, Any]


class Keeper:
    """Replacement of an evaluator that keeps its input."""

    _needs_review = _reads_popularity = False
    _evidence: Mapping[Any, Any] = MappingProxyType({})
    score_counts: Mapping[Any, Any] = MappingProxyType({})
    users_by_bin: Mapping[Any, Any] = MappingProxyType({})

    def __init__(self) -> None:
        self.tables: dict[str, list[Any]] = {name: [] for name in (*SIDES, "log")}
        self.call: dict[str, Any] = {}
        self.settings = {"min_gain": None}

    def update(self, log: Any, **call: Any) -> None:
        self.update_sides({"log": log}, **call)

    def update_sides(self, sides: Mapping[str, Any], **call: Any) -> None:
        roles = {} if "log" in sides else {role: call.get(role) or role for role in ("item", "rank", "score", "gain")}
        roles |= {"user": call["user"][0]} if roles else {}
        for name, table in sides.items():
            columns = {own: table.column(own) for own in table.column_names}
            columns |= {role: table.column(own) for role, own in roles.items() if own in table.column_names}
            self.tables[name].append(type(table).from_pydict(columns))
        self.call = call

    def _read(self, log: Any, scores: Any, indptr: Any, call: Mapping[str, Any]) -> None:
        self.update(log, **call)

    def _prepare(self, sides: Mapping[str, Any], call: Mapping[str, Any]) -> Any:
        self.update_sides(sides, **{name: value for name, value in call.items() if value is not None})
        return SimpleNamespace(apart=())

    def _add(self, prepared: Any, progress: Any, *, at_once: bool = False) -> None: ...

    def _check_all(self) -> None: ...

    def _review(self, prepared: Any, sides: Any = None) -> None: ...

    def column(self, table: str, name: str) -> list[Any]:
        return [value for part in self.tables[table] for value in part.column(name).to_pylist()]

    def has(self, table: str, name: str) -> bool:
        return any(name in part.column_names for part in self.tables[table])

    def users(self) -> list[Any]:
        if self.tables["log"]:
            names = self.call["user"]
            if names is None:
                return []
            if isinstance(names, str):
                return ascending(set(self.column("log", names)))
            keys = zip(*(self.column("log", name) for name in names), strict=True)
            return sorted(set(keys), key=lambda key: [bits(part) for part in key])
        return ascending({*self.column("recs", "user"), *self.column("truth", "user")})

    def result(self) -> Report:
        groups, labels = {}, {}
        for name in self.call.get("by") or []:
            of_users: dict[Any, Any] = {}
            for table in (table for table in ("recs", "truth", "log") if self.has(table, name)):
                who = self.call["user"] if table == "log" else "user"
                columns = [self.column(table, own) for own in ([who] if isinstance(who, str) else who)]
                keys = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
                pairs = zip(keys, self.column(table, name), strict=True)
                of_users |= {user: label for user, label in pairs if label is not None}
            labels[name] = np.array([of_users.get(user, NO_LABEL) for user in self.users()], object)
            groups[name] = {label: {} for label in labels[name].tolist()}
        ids = np.empty(len(self.users()), dtype=object)
        ids[:] = self.users()
        data = {"truth_users_with_recs": 1, "truth_items_in_recs": 1.0}  # as if ids matched
        empty: dict[str, Any] = {"estimates": {}, "users": {}, "data": data, "settings": {}, "fastrec_version": ""}
        return Report(groups=groups, labels=labels, per_user={}, user_ids=ids, **empty)

    def item_codes(self) -> dict[Any, Any]:
        of_log = [] if self.call.get("item") is None else [("log", self.call["item"])]
        having = [(table, name) for table, name in (("recs", "item"), ("truth", "item"), *of_log) if self.tables[table]]
        found = {item for table, name in having for item in self.column(table, name)}
        texts = any(isinstance(item, str) for item in found)
        return {item: code if texts else item for code, item in enumerate(ascending(found))}


def bits(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def ascending(values: Any) -> list[Any]:
    return sorted(values, key=bits)


def in_parts() -> Any:
    """Put all rows into parts: readers then check what evaluators check, and a `Keeper` does not."""
    return mock.patch.object(job, "COPIES", 1 << 40)


def evaluate_logs(recs: Any, truth: Any, columns: ListColumns | None = None, *, input_format: str = "auto") -> None:
    """Evaluate files of lists, to see the error."""
    make, paths = (lambda _: Evaluator(["mrr"])), {"recs": recs, "truth": truth}
    with warnings.catch_warnings(action="ignore"):
        evaluate_lists(make, paths, columns or ListColumns(), Resources(input_format=input_format))


def evaluate_scored(path: Any, columns: RowColumns | None = None) -> None:
    """Evaluate a file of scored rows, to see the error."""
    evaluate_log(lambda _: ScoreEvaluator(["mae"]), {"log": path}, columns or RowColumns(), Resources())


def read_logs(
    recs: Any,
    truth: Any,
    columns: ListColumns | None = None,
    *,
    exclude: Any = None,
    input_format: str = "auto",
    **resources: Any,
) -> Logs:
    """Return the input that `evaluate_lists` reads."""
    keeper = Keeper()
    paths = {"recs": recs, "truth": truth} | ({} if exclude is None else {"exclude": exclude})
    limits = Resources(**resources, input_format=input_format)
    with in_parts():
        found = evaluate_lists(lambda _: keeper, paths, columns or ListColumns(), limits)  # type: ignore[arg-type]
    users, codes = keeper.users(), keeper.item_codes()

    def side(table: str, *values: str) -> tuple[Any, ...]:
        of_user: dict[Any, list[Any]] = {user: [] for user in users}
        names = ["item", *(name for name in values if keeper.has(table, name))]
        for user, *row in zip(*(keeper.column(table, name) for name in ("user", *names)), strict=True):
            if user in of_user and (table != "exclude" or row[0] in codes or not texts):
                of_user[user].append((codes.get(row[0], row[0]), *row[1:]))
        if "rank" in names:
            of_user = {user: sorted(rows, key=lambda row: row[1]) for user, rows in of_user.items()}
            names = ["item"]
        flat = [row for user in users for row in of_user[user]]
        kinds = [keeper.tables[table][0].schema.field(name).type.to_pandas_dtype() for name in names[1:]]
        arrays = [np.array([row[at] for row in flat], kind) for at, kind in enumerate([None, *kinds])]
        return arrays[0], np.cumsum([0, *(len(of_user[user]) for user in users)]), *arrays[1:]

    texts = any(isinstance(item, str) for item in codes)
    seen = side("exclude") if exclude is not None else None
    ids = found.users.get((columns or ListColumns()).users[0], np.array(users))
    return Logs(side("recs", "rank", "score"), side("truth", "gain"), ids, found.groups, seen)


def read_scores(path: Any, columns: RowColumns | None = None, **resources: Any) -> ScoredLog:
    """Return the input that `evaluate_log` reads."""
    keeper = Keeper()
    with in_parts():
        found = evaluate_log(lambda _: keeper, {"log": path}, columns or RowColumns(), Resources(**resources))  # type: ignore[arg-type, return-value]
    users, names, codes = keeper.users(), keeper.call["user"], keeper.item_codes()
    keys: list[Any] = [None] * len(keeper.column("log", keeper.call["label"]))
    if isinstance(names, str):
        keys = keeper.column("log", names)
    elif names is not None:
        keys = list(zip(*(keeper.column("log", name) for name in names), strict=True))
    place = {user: at for at, user in enumerate(users)} or {None: 0}
    places = np.array([place[key] for key in keys], np.int64)
    order = np.argsort(places, kind="stable")

    def ordered(role: str | None) -> Any:
        if role is None:
            return None
        return np.concatenate([part.column(role).to_numpy() for part in keeper.tables["log"]])[order]

    items = None
    if keeper.call["item"] is not None:
        items = np.array([codes[item] for item in keeper.column("log", keeper.call["item"])])[order]
    ids = np.empty(len(users), dtype=object)
    ids[:] = users
    return ScoredLog(
        labels=ordered(keeper.call["label"]),
        scores=ordered(keeper.call["score"]),
        weights=ordered(keeper.call["sample_weight"]),
        items=items,
        indptr=None if names is None else np.cumsum([0, *np.bincount(places, minlength=len(users))]),
        user_ids=None if names is None else ids,
        users=found.users,
        groups=found.groups,
    )
