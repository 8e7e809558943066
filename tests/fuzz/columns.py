"""Random names of columns in files of every format, with the values of plain dicts on every route.

Names differ only in case, are empty, hold quotes or line breaks, occur twice or look like names that a query makes.
`scripts/fuzz --target columns` makes them by the thousand, `test_fuzz` for a few seconds.
"""

import atexit
import contextlib
import gzip
import io
import json
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

import fastrec
from fastrec.files import job
from fuzz.calls import Draw, Finding, one_in, set_up

__all__ = ["describe", "draw_case", "run_case", "set_up"]

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-columns-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

USUAL = ["user_id", "item_id", "rank", "score", "gain", "label"]
MADE = [change(name) for name in USUAL for change in (str, str, str.upper, str.title, lambda name: name + "_1")]
ODD = [
    "",
    " ",
    "a b",
    "a,b",
    "a;b",
    'a"b',
    '"',
    "a\nb",
    "a\rb",
    "a\r\nb",
    "\n",
    "é",
    "É",
    "ß",
    "SS",
    "\u0131",
    "I",
    "i",
    "İ",
]
ODD += ["c0", "c9", "c0_1", "rowid", "fastrec file", "Fastrec File", "fastrec file_", "filename", "t", "0", "$", "*"]
ODD += ["a.b", "a", "A", "x/y~z", "a\\b", "[a]", "{a}", "#", "'", "row", "json", "line", "place", "user", "item", "by0"]
DEFAULTS = {"user": "user_id", "item": "item_id", "rank": "rank", "score": "score", "gain": "gain", "label": "label"}
TEXTS = [
    "x",
    "a,b",
    'x"y',
    "a\nb",
    "a\rb",
    "a\r\nb",
    '"',
    '"\n"',
    '""',
    " x ",
    "\n",
    "\r",
    "1,2\n3,4\n",
    "é",
    "NULL",
    "#",
]
LINE_ENDS = ["\n", "\r\n", "\r"]
LISTS_METRICS = ["ndcg@3", "recall@2", "mrr"]
ROWS_METRICS = ["auc", "gauc", "log_loss"]
Rows = list[list[Any]]


class Side(NamedTuple):
    """Table and how to write it: names and rows; the call uses the columns before `n_wanted`."""

    names: list[str]
    rows: Rows
    n_wanted: int
    format: str
    n_files: int
    packed: bool
    partition: int | None  # the column in the names of folders


class Case(NamedTuple):
    """Files, their arguments, and the expected result: {metric: value}, and the same of each group."""

    sides: dict[str, Side]
    options: dict[str, Any]
    metrics: list[str]
    expected: dict[str, dict[str, float]]
    by: str | None
    style: random.Random  # of choices without effect: line ends, delimiters, the order of columns
    route: str


def draw_names(r: Draw, n: int, taken: Sequence[str] = ()) -> list[str]:
    """Draw distinct names, some of which differ only in case."""
    names: list[str] = []
    while len(names) < n:
        name = r.choice(r.choice([MADE, MADE, ODD]))
        if names and one_in(r, 3):
            name = r.choice([str.upper, str.lower, str.swapcase, lambda text: text + "_1"])(r.choice(names))
        if name not in names and name not in taken:
            names.append(name)
    return names


def draw_roles(r: Draw, roles: Sequence[str]) -> dict[str, str]:
    """Draw {role: name}; a usual name, which is found without an argument, names no other column."""
    while True:
        names = dict(zip(roles, draw_names(r, len(roles)), strict=True))
        if all(name == role or name not in ("rank", "score", "gain") for role, name in names.items()):
            return names


def draw_side(
    r: Draw, formats: Sequence[str], names: list[str], rows: Rows, taken: set[str], label: int | None
) -> Side:
    """Draw a table with columns that the call does not use; those of Parquet may occur twice."""
    format_ = r.choice(formats)
    more = draw_names(r, r.choice([0, 1, 2, 5]), [*taken, *names])
    if more and format_ != "jsonl" and one_in(r, 3):
        more.append(r.choice(more))
    draw = r.choice([lambda: r.randrange(1, 9), lambda: r.choice(TEXTS)])
    rows = [[*row, *(draw() for _ in more)] for row in rows]
    partition = label if label is not None and one_in(r, 3) and names[label] and "\0" not in names[label] else None
    return Side([*names, *more], rows, len(names), format_, r.choice([1, 1, 1, 2, 3]), one_in(r, 5), partition)


def draw_case(seed: int) -> Case:
    """Return the files of a seed."""
    r = random.Random(seed)
    formats = r.choice([["parquet"], ["parquet"], ["csv"], ["jsonl"], ["parquet", "csv", "jsonl"]])
    users: list[Any] = r.choice([[1, 2, 3, 4], [7, -3, 2**40, 0], ["a", "B", "ü", "b"], ["a\nb", "x\r", 'q"', " s "]])
    case = (lists_case if one_in(r, 2) else rows_case)(r, formats, users)
    route = r.choice(["whole", "streamed"])
    return case._replace(route=route, style=random.Random(seed))


def lists_case(r: Draw, formats: Sequence[str], users: list[Any]) -> Case:
    order = r.choice(["rank", "score", None])
    roles = ["user", "item", *([order] if order else []), *r.choice([[], ["gain"]]), *r.choice([[], ["by"]])]
    names = draw_roles(r, roles)
    taken = {*names.values(), *DEFAULTS.values()}
    recs = {user: r.sample(range(9), r.randint(1, 5)) for user in users}
    truth = {user: {item: r.randint(1, 3) for item in r.sample(range(9), r.randint(1, 3))} for user in users}
    seen = {user: r.sample(range(9), 2) for user in users} if one_in(r, 3) else None
    labels = {user: r.choice("ab") for user in users}
    columns = {
        "recs": ["user", "item", *([order] if order else [])],
        "truth": ["user", "item"],
        "exclude": ["user", "item"],
    }
    if "gain" in roles:
        columns["truth"].append("gain")
    else:
        truth = {user: dict.fromkeys(items, 1) for user, items in truth.items()}
    if "by" in roles:
        columns[r.choice(["recs", "truth"])].append("by")
    places = {user: r.sample(range(1, 20), len(items)) for user, items in recs.items()}
    values: dict[str, list[dict[str, Any]]] = {"truth": [], "recs": [], "exclude": []}
    for user, items in recs.items():
        for item, place in zip(items, sorted(places[user]), strict=True):
            values["recs"].append({"item": item, "rank": place, "score": -place / 2, "user": user})
    values["truth"] = [
        {"user": user, "item": item, "gain": gain} for user in users for item, gain in truth[user].items()
    ]
    values["exclude"] = [{"user": user, "item": item} for user in users for item in (seen or {}).get(user, ())]
    sides = {}
    for side, wanted in columns.items():
        if order or side != "recs":
            r.shuffle(values[side])
        rows = [[{**row, "by": labels[row["user"]]}[role] for role in wanted] for row in values[side]]
        at = wanted.index("by") if "by" in wanted else None
        if side != "exclude" or seen is not None:
            sides[side] = draw_side(r, formats, [names[role] for role in wanted], rows, taken, at)
    expected = {}
    for label in [None, *"ab"][: 3 if "by" in roles else 1]:
        own = [user for user in users if label in (None, labels[user])]
        if own:
            given = [{user: side[user] for user in own} for side in (recs, truth)]
            exclude = {user: seen[user] for user in own} if seen else None
            report = fastrec.evaluate(*given, LISTS_METRICS, exclude=exclude)
            expected[label or ""] = {name: report[name] for name in LISTS_METRICS}
    return Case(sides, asked(r, names), LISTS_METRICS, expected, names.get("by"), r, "")


def rows_case(r: Draw, formats: Sequence[str], users: list[Any]) -> Case:
    roles = ["user", "label", "score", *r.choice([[], ["sample_weight"]]), *r.choice([[], ["by"]])]
    names = draw_roles(r, roles)
    n = r.randint(4, 12)
    columns = {"user": [r.choice(users) for _ in range(n)], "label": [0, 1, *(r.randint(0, 1) for _ in range(n - 2))]}
    columns |= {
        "score": [r.randint(1, 99) / 100 for _ in range(n)],
        "sample_weight": [r.randint(1, 4) for _ in range(n)],
    }
    labels = {user: r.choice("ab") for user in users}
    columns["by"] = [labels[user] for user in columns["user"]]
    at = roles.index("by") if "by" in roles else None
    rows = [list(row) for row in zip(*(columns[role] for role in roles), strict=True)]
    sides = {"recs": draw_side(r, formats, [*names.values()], rows, {*names.values(), *DEFAULTS.values()}, at)}
    expected = {}
    for label in [None, *"ab"][: 3 if "by" in roles else 1]:
        own = [n for n in range(len(rows)) if label in (None, columns["by"][n])]
        own.sort(key=lambda n: users.index(columns["user"][n]))
        if own:
            present = [columns["user"][n] for n in own]
            indptr = [0, *(at for at in range(1, len(own)) if present[at] != present[at - 1]), len(own)]
            weights = [columns["sample_weight"][n] for n in own] if "sample_weight" in roles else None
            given = [[columns[role][n] for n in own] for role in ("label", "score")]
            report = fastrec.evaluate_scores(*given, indptr, ROWS_METRICS, sample_weight=weights)
            expected[label or ""] = {name: report[name] for name in ROWS_METRICS}
    return Case(sides, asked(r, names), ROWS_METRICS, expected, names.get("by"), r, "")


def asked(r: Draw, names: dict[str, str]) -> dict[str, Any]:
    """Return the arguments that name columns; usual names may be left out."""
    return {role: name for role, name in names.items() if name != DEFAULTS.get(role) or one_in(r, 2)}


# Files


def write(case: Case, name: str, folder: Path) -> Path:
    """Write a side; return its path, a folder if there are several files."""
    side, r = case.sides[name], case.style
    place = folder / name
    per = -(-len(side.rows) // side.n_files)
    parts = [side.rows[at : at + per] for at in range(0, len(side.rows), per)]
    columns = list(range(len(side.names)))
    r.shuffle(columns)
    dialect = r.choice(",,\t;|"), one_in(r, 2)
    paths = []
    for nth, rows in enumerate(parts):
        if side.format != "csv" and one_in(r, 2):
            r.shuffle(columns)
        values = sorted({row[side.partition] for row in rows}) if side.partition is not None else [None]
        for value in values:
            own = [row for row in rows if value is None or row[side.partition] == value]
            kept = [at for at in columns if value is None or at != side.partition]
            path = place / ("" if value is None else f"{quote(side.names[side.partition], safe='')}={value}")
            path.mkdir(parents=True, exist_ok=True)
            ending = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet"}[side.format]
            paths.append(path / f"{nth}.{ending}")
            data = content(r, side, kept, own, dialect)
            paths[-1].write_bytes(gzip.compress(data) if side.packed and side.format != "parquet" else data)
    return place if len(paths) > 1 or side.partition is not None else paths[0]


def content(r: Draw, side: Side, columns: list[int], rows: Rows, dialect: tuple[str, bool]) -> bytes:
    """Return the bytes of a file; the line ends of a CSV are of any kind, whatever breaks are in quotes."""
    names = [side.names[at] for at in columns]
    if side.format == "parquet":
        arrays = [pa.array([row[at] for row in rows]) for at in columns]
        stream = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, names=names), stream, row_group_size=r.choice([2, 100]))
        return stream.getvalue()
    if side.format == "jsonl":
        lines = [json.dumps({side.names[at]: row[at] for at in columns}) for row in rows]
        return "".join(line + r.choice(["\n", "\r\n", " \n\n"]) for line in lines).encode()
    delimiter, quoting = dialect
    looks_like_json = any(name.startswith("{") for name in names)
    special = re.compile(
        "" if quoting or looks_like_json else f'[\r\n"{re.escape(delimiter)}]'
    )  # Python's csv leaves a lone CR bare

    def cell(value: Any) -> str:
        return '"' + str(value).replace('"', '""') + '"' if special.search(str(value)) else str(value)

    table = [names, *([row[at] for at in columns] for row in rows)]
    end = r.choice(LINE_ENDS)
    return (r.choice(["", "", "\ufeff"]) + "".join(delimiter.join(map(cell, row)) + end for row in table)).encode()


@contextlib.contextmanager
def by_route(route: str) -> Iterator[None]:
    """Evaluate in memory, or in batches of parts on disk."""
    with mock.patch.object(job, "COPIES", 1 << 60) if route == "streamed" else contextlib.nullcontext():
        yield


def evaluate(case: Case, route: str) -> fastrec.Report:
    """Write the files and evaluate them."""
    folder = FOLDER / "case"
    shutil.rmtree(folder, ignore_errors=True)
    paths = {name: write(case, name, folder) for name in case.sides}
    options = dict(case.options)
    if {side.format for side in case.sides.values()} == {"csv"}:
        options["input_format"] = "csv"  # if a first name looks like JSON
    exclude = {"exclude": paths["exclude"]} if "exclude" in paths else {}
    with by_route(route):
        return fastrec.evaluate_files(
            paths["recs"], paths.get("truth"), case.metrics, n_threads=1, **exclude, **options
        )


def check(case: Case, report: fastrec.Report) -> None:
    """Check for the values of plain dicts, to the bit."""
    found = {"": {name: report[name] for name in case.metrics}}
    if case.by is not None:
        groups = report.groups[case.by]
        found |= {label: {name: groups[label][name].mean for name in case.metrics} for label in groups}
    if repr(found) != repr({label: case.expected[label] for label in found}) or len(found) != len(case.expected):
        raise Finding("wrong value", f"{found}, not {case.expected}")


def run_case(seed: int) -> bool:
    """Evaluate the files of a seed and compare the values with those of plain dicts."""
    case = draw_case(seed)
    try:
        report = evaluate(case, case.route)
    except fastrec.FastrecError as error:
        raise Finding("wrong value", f"valid files were refused: {error}") from error
    except Exception as error:
        raise Finding("foreign error", f"{type(error).__name__}: {error}") from error
    check(case, report)
    return True


def describe(seed: int) -> str:
    """Return the files of a seed for a replay."""
    case = draw_case(seed)
    lines = [f"{case.route}: {case.options}, expected {case.expected}"]
    for name, side in case.sides.items():
        kind = f"{side.format}, {side.n_files} files{', packed' if side.packed else ''}, partition {side.partition}"
        lines += [f"{name}: {kind}", f"  {side.names}", *(f"  {row}" for row in side.rows)]
    return "\n".join(lines)
