"""Files as DuckDB tables with checked columns."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fastrec.checks import counted
from fastrec.exceptions import Argument, FastrecError, InputError, InputTypeError, Text, joined, shortened
from fastrec.files.database import run
from fastrec.files.formats.base import FILE, NO_EXTENSIONS, Source, one_row, quoted, refuse_other_folders
from fastrec.files.formats.foreign import disk_is_full, first_sentence, was_interrupted
from fastrec.files.opened import Opened, open_files
from fastrec.files.paths import unchanged, utf8_path
from fastrec.inputs.arrow import WANTED_LABELS
from fastrec.inputs.columns import EXACT_BITS, MAX_EXACT_INTEGER, NUMBER_FIRST, says_rounded
from fastrec.inputs.sides import SIDES
from fastrec.runtime.extras import require
from fastrec.runtime.limits import resolve_threads

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from fastrec.files.columns import LABELLED, OF_ITEM, USERS, ColumnError, RowColumns, TooLargeError, several_names

__all__ = [
    "BOOLEANS",
    "File",
    "check_groupings",
    "check_label_type",
    "first_where",
    "has_column",
    "joint_kind",
    "label_sql",
    "labels_are_strings",
    "load",
    "number_sql",
    "open_database",
    "string_bytes",
    "used_bytes",
]


SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGER_TYPES = frozenset((*SIGNED_TYPES, *(f"U{name}" for name in SIGNED_TYPES)))
NARROW_INTEGERS = frozenset(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"))
NULLS = '"NULL"'  # the type of a Parquet column that has only nulls
TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
TEXT_TYPES = frozenset(("VARCHAR", "UUID"))
MAX_ID = 2**63 - 1
BOOLEANS = "('true', 'True', 'TRUE', 'false', 'False', 'FALSE')"  # spellings in columns without a type
WIDE_LABELS = "integers to group by must be from -(2^63) to 2^63 - 1: write these labels as strings"
NOT_FLOATS = "write ids as integers (missing values turn them into floats: drop those rows first) or as strings"


@dataclass(frozen=True)
class File:
    """A file, or several, loaded into the DuckDB table `table`, one column per role."""

    table: str
    path: str
    source: Source
    rows: int
    names: Mapping[str, str]  # role -> name of the column in the file
    types: Mapping[str, str]  # role -> DuckDB type

    def at(self, role: str) -> str:
        """Return how errors name the column of a role."""
        return Text(self.path, f": column {self.names[role]!r}")

    def place(self, position: int) -> str:
        """Return how errors name the row at a position."""
        place = self.source.place(position)
        return f"{place} of {self.rows}" if place == f"row {position + 1}" else place


@dataclass(frozen=True)
class _Ids:
    """The ids of one file and role; `kind` is "integer", "string" or, for integers without a type, "open".

    With `are_strings` all ids are strings, ordered as strings, but they may match integers elsewhere.
    """

    where: str
    kind: str
    are_strings: bool = False
    integers: int = 0  # number of string ids that spell an integer
    example: str = ""


@contextlib.contextmanager
def open_database(
    n_threads: int | None, folder: str | None = None, memory: int | None = None
) -> Iterator[DuckDBPyConnection]:
    """Open a database of our own, which installs nothing: in memory without temporary files, or in a folder."""
    duckdb = require("duckdb", "cli", what="reading files")
    require("pyarrow", "cli", what="reading files")  # DuckDB imports it to return tables
    place = "" if folder is None else utf8_path(folder)
    config: dict[str, Any] = {
        "temp_directory": place,
        **NO_EXTENSIONS,
        "preserve_insertion_order": "true",
        "threads": resolve_threads(n_threads),
    }
    if memory is not None:
        config["memory_limit"] = f"{memory}B"
    con = duckdb.connect(os.path.join(place, "rows.duckdb") if place else ":memory:", config=config)
    try:
        # lets `query_progress` tell how far a statement is, and prints nothing
        con.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0")
        yield con
    except (duckdb.InterruptException, RuntimeError) as error:
        if not (isinstance(error, duckdb.InterruptException) or was_interrupted(error)):
            raise
        raise KeyboardInterrupt from None
    except (duckdb.Error, OSError) as error:
        if folder is not None and disk_is_full(error):
            advice = "name another folder (temp_directory, --temp-dir)"
            raise FastrecError(f"the folder for temporary files is full: {folder}; {advice}") from error
        if not isinstance(error, duckdb.OutOfMemoryException):
            raise
        raise TooLargeError("the files do not fit in memory: ", first_sentence(error)) from error
    finally:
        con.close()


def has_column(path: str | os.PathLike[str], name: str, input_format: str) -> bool:
    """Return whether a file has a column; False for a damaged file, of which reading the rows says what is wrong."""
    opened = open_files({"log": path}, RowColumns(), input_format)["log"]
    with open_database(1) as con:
        import duckdb

        try:
            return name in opened.source(con).columns
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            return False


def used_bytes(con: DuckDBPyConnection) -> int:
    """Return the bytes of memory that a database uses."""
    (found,) = one_row(con, "SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
    return int(found)


def string_bytes(con: DuckDBPyConnection, table: str, roles: Sequence[str]) -> int:
    """Return the bytes of the strings in some columns of a table."""
    if not roles:
        return 0
    lengths = " + ".join(f"strlen({quoted(role)}::VARCHAR)" for role in roles)
    (found,) = one_row(con, f"SELECT coalesce(sum({lengths}), 0) FROM {quoted(table)}")
    return int(found)


def load(con: DuckDBPyConnection, opened: Opened) -> File:
    """Copy the wanted columns of files into the table of their name, columns named by role, and check them."""
    table = opened.table
    with unchanged(opened.stamps):
        source, names = _copy(con, opened)
    n_rows = _count_rows(con, table, source)
    lost = source.find_lost(n_rows)
    if lost is not None:
        raise InputError(
            f"{lost}: DuckDB read no row, but the file has more than a header; write it as Parquet instead"
        )
    types = {role: source.columns[name][1] for role, name in names.items()}
    types |= _convert_booleans(con, table, [role for role, name in names.items() if name in source.untyped])
    file = File(table, opened.files.path, replace(source, n_rows=n_rows), sum(n_rows.values()), names, types)
    for role in names:
        if not role.startswith(OF_ITEM):
            _check_column(con, file, role)
    return file


def _count_rows(con: DuckDBPyConnection, table: str, source: Source) -> Mapping[str, int]:
    """Return {path: rows} of the files that have rows, counted in the table: reading the files again takes long."""
    if source.file_sql() is None:
        (rows,) = one_row(con, f"SELECT count(*) FROM {quoted(table)}")
        return source.n_rows or {utf8_path(source.files.paths[0]): rows}
    n_rows = dict(run(con, f"SELECT {quoted(FILE)}, count(*) FROM {quoted(table)} GROUP BY ALL").fetchall())
    run(con, f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(FILE)}")
    return n_rows


def _convert_booleans(con: DuckDBPyConnection, table: str, roles: Sequence[str]) -> dict[str, str]:
    """Convert columns for numbers that have no type and hold only booleans; return {role: type} of these."""
    converted = {}
    for role in filter(_is_number_role, roles):
        column = quoted(role)
        first = f"(SELECT {column} FROM {quoted(table)} LIMIT 1)"  # mostly decides without reading all rows
        if one_row(con, f"SELECT count(*) FROM {first} WHERE {column} IN {BOOLEANS}") == (0,):
            continue
        if one_row(con, f"SELECT bool_and({column} IN {BOOLEANS}) FROM {quoted(table)}") == (True,):
            run(con, f"ALTER TABLE {quoted(table)} ALTER COLUMN {column} TYPE BOOLEAN")
            converted[role] = "BOOLEAN"
    return converted


def _copy(con: DuckDBPyConnection, opened: Opened) -> tuple[Source, dict[str, str]]:
    """Make the table; return the source of its rows and {role: column}."""
    import duckdb

    files, format_ = opened.files, opened.format
    for attempt in range(format_.attempts):
        try:
            source = opened.source(con, attempt)
            names = _find_roles(source, opened)
            _refuse_types(source, names)
            picked = [f"{_readable(*source.columns[name])} AS {quoted(role)}" for role, name in names.items()]
            if (file_sql := source.file_sql()) is not None:
                picked.append(f"{file_sql} AS {quoted(FILE)}")
            run(con, f"CREATE OR REPLACE TABLE {quoted(opened.table)} AS SELECT {', '.join(picked)} FROM {source.sql}")
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except duckdb.Error as error:
            if disk_is_full(error):
                raise
            cause = error
        else:
            refuse_other_folders(con, source, names.values())
            return source, names
    if len(files.paths) > 1:  # find the file that cannot be read, so that the error names it
        for each in opened.each():
            _copy(con, each)
    reason = format_.reason(files.paths[0]) or first_sentence(cause, files.paths[0])
    raise InputError(files.path, f": cannot be read as {format_.title}: ", reason) from cause


def _find_roles(source: Source, opened: Opened) -> dict[str, str]:
    """Return {role: column}; raise unless all files have the same columns of the same types."""
    (first, found), *others = source.variants
    names = opened.roles(first, list(found))
    for path, other in others:
        theirs = opened.roles(path, list(other))
        for name, role in {name: role for own in (names, theirs) for role, name in own.items()}.items():
            mine, yours = name in names.values(), name in theirs.values()
            if not (mine and yours):
                lacking, having = (path, first) if mine else (first, path)
                raise ColumnError(lacking, f": no column {name!r}, which {having} has", role=role.rstrip("0123456789"))
            if found[name][1] != other[name][1]:
                raise InputTypeError(
                    path,
                    f": column {name!r} holds {other[name][1]}, but {found[name][1]} in {first}: "
                    "files that are read together must have the same types",
                )
    return names


def _refuse_types(source: Source, names: Mapping[str, str]) -> None:
    """Raise if a column that is needed has a type that DuckDB lacks; metrics ask for columns of items later."""
    for role, name in names.items():
        refusal = "" if role.startswith(OF_ITEM) else source.refusal(name)
        if refusal:
            raise InputTypeError(source.variants[0][0], f": column {name!r}", refusal)


def _readable(column: str, type_: str) -> str:
    """Return the SQL that reads UUIDs and enumerations as strings, and decimals without places as integers."""
    if type_ == "UUID" or type_.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)"
    if _is_integer(type_) and type_.startswith("DECIMAL"):
        return f"CAST({column} AS HUGEINT)"
    return column


def _is_integer(type_: str) -> bool:
    return type_ in INTEGER_TYPES or (type_.startswith("DECIMAL") and type_.endswith(",0)"))


def _is_string(type_: str) -> bool:
    return type_ in TEXT_TYPES or type_.startswith("ENUM")


def _is_label(type_: str) -> bool:
    return _is_integer(type_) or _is_string(type_) or type_ in ("BOOLEAN", "DATE", *TIMES, NULLS)


def label_sql(file: File, role: str, prefix: str = "") -> str:
    """Return the SQL of group labels as strings; booleans and times are spelled as in data frames."""
    column, type_ = f"{prefix}{quoted(role)}", file.types[role]
    if type_ == "BOOLEAN":
        return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
    return f"CAST({column} AS VARCHAR)"


def _is_number(type_: str) -> bool:
    return _is_integer(type_) or type_ in ("FLOAT", "DOUBLE", "BOOLEAN") or type_.startswith("DECIMAL")


def check_groupings(files: Mapping[str, File], by: Sequence[str]) -> None:
    """Raise unless each column to group by is in a file and has a type for labels."""
    having = [file for table, file in files.items() if table in LABELLED]
    mend = "" if USERS in files else Text("; ", Argument("users", (...,)), " adds a file with a row per user")
    for n, name in enumerate(by):
        for file in having:
            if f"by{n}" in file.names:
                check_label_type(file, f"by{n}")
        if any(f"by{n}" in file.names for file in having):
            continue
        several = several_names("by", name, {column for file in having for column in file.source.columns})
        if len(having) == 1:
            role = "" if several else "by"
            raise ColumnError(having[0].path, f": no column {name!r} to group by", several or mend, role=role)
        paths = joined((file.path for file in having), " nor ")
        raise InputError("neither ", paths, f" has the column {name!r} to group by", several or mend)


def check_label_type(file: File, role: str) -> None:
    """Raise unless a column to group by has a type for labels."""
    if not _is_label(file.types[role]):
        kind = role.rstrip("0123456789")
        raise ColumnError(file.at(role), f" holds {file.types[role]}; {WANTED_LABELS}", role=kind)


def labels_are_strings(con: DuckDBPyConnection, files: Sequence[File], role: str) -> bool:
    """Return whether the labels of a grouping are strings; raise if files disagree."""
    having: dict[str, File] = {}
    for file in files:
        if role not in file.names or file.names[role] in file.source.untyped:
            continue
        if one_row(con, f"SELECT count({quoted(role)}) FROM {quoted(file.table)}") != (0,):
            having.setdefault("integers" if _is_integer(file.types[role]) else "strings", file)
    if len(having) > 1:
        found = joined((Text(file.at(role), f" holds {kind}") for kind, file in having.items()), ", ")
        raise InputTypeError("labels to group by must be of one type in all files, found ", found)
    return "strings" in having


def _check_column(con: DuckDBPyConnection, file: File, role: str) -> None:
    """Raise if a column has nulls, or a column of numbers has other values."""
    if not file.rows:
        return
    if role.startswith(("by", "row_by")):
        _check_labels(con, file, role)
        return
    column, table = quoted(role), quoted(file.table)
    empty, first = one_row(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {column} IS NULL")
    if empty:
        rows = f"{empty} rows, the first is {file.place(first)}" if empty > 1 else file.place(first)
        raise InputError(file.at(role), f" has no value (null) in {rows}")
    if not _is_number_role(role):
        return
    if _is_string(file.types[role]):
        _check_number_strings(con, file, role)
    elif not _is_number(file.types[role]):
        what = role.rstrip("0123456789")
        raise InputTypeError(file.at(role), f" holds {file.types[role]}: a {what} must be a number")
    value = f"CAST({column} AS DOUBLE)"
    is_score = role.startswith("score")
    wrong = f"isnan({value})" if is_score else f"NOT isfinite({value})"
    bad, first = one_row(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {wrong}")
    if bad:
        what = "NaN" if is_score else "NaN or infinite"
        raise InputError(file.at(role), f" is {what} in {counted(bad, 'row')}, the first is {file.place(first)}")
    (_check_ranks if role == "rank" else _check_exact)(con, file, role)


def _check_labels(con: DuckDBPyConnection, file: File, role: str) -> None:
    """Raise if an integer label does not fit signed 64 bits, as in data frames."""
    column = quoted(role)
    if _is_integer(file.types[role]) and file.types[role] not in NARROW_INTEGERS:
        wrong = f"{column} IS NOT NULL AND TRY_CAST({column} AS BIGINT) IS NULL"
        first, found = first_where(con, file, role, wrong)
        if first is not None:
            raise InputError(file.at(role), f" holds {found} in {file.place(first)}; {WIDE_LABELS}")


def _is_number_role(role: str) -> bool:
    return not (role.startswith(("user", "by", "row_by", "key", OF_ITEM)) or role in ("item", "query"))


def _check_exact(con: DuckDBPyConnection, file: File, role: str) -> None:
    """Raise for integers, also in strings, that a double would round; decimals are rounded as in data frames."""
    column, type_ = quoted(role), file.types[role]
    inexact = f"NOT BETWEEN {-MAX_EXACT_INTEGER} AND {MAX_EXACT_INTEGER}"
    if _is_string(type_):
        wrong = (
            f"abs(CAST({column} AS DOUBLE)) >= {MAX_EXACT_INTEGER} AND {_is_integer_string(column)} "
            f"AND coalesce(TRY_CAST({column} AS HUGEINT) {inexact}, true)"
        )
    elif type_ == "UHUGEINT":
        wrong = f"{column} > {MAX_EXACT_INTEGER}"
    elif _is_integer(type_) and type_ not in NARROW_INTEGERS:
        wrong = f"CAST({column} AS HUGEINT) {inexact}"
    else:
        return
    first, found = first_where(con, file, role, wrong)
    if first is not None:
        advice = "; give a rank column" if file.table in SIDES and SIDES[file.table].is_ordered else ""
        raise InputError(says_rounded(file.at(role), found, f" in {file.place(first)}"), advice)


def _check_ranks(con: DuckDBPyConnection, file: File, role: str) -> None:
    """Raise unless ranks are integers, as in data frames: of 64 bits, or exact in a float (up to 2**53)."""
    column, type_ = quoted(role), file.types[role]
    value = f"CAST({column} AS DOUBLE)"
    if type_ == "BOOLEAN":
        raise InputTypeError(file.at(role), " must hold integers, found booleans")
    whole = f"TRY_CAST({column} AS BIGINT) IS NOT NULL"
    if not _is_integer(type_):
        exact = f"abs({value}) <= {MAX_EXACT_INTEGER}"
        exact = f"({exact} OR {_is_integer_string(column)})" if _is_string(type_) else exact
        whole = f"coalesce(TRY_CAST({column} AS BIGINT) = {value}, false) AND {exact}"
    first, found = first_where(con, file, role, f"NOT ({whole})")
    if first is not None:
        most = "of 64 bits" if _is_integer(type_) else f"up to 2**{EXACT_BITS}"
        raise InputError(file.at(role), f" must hold integers {most}, found {found} in {file.place(first)}")


def first_where(con: DuckDBPyConnection, file: File, role: str, condition: str) -> tuple[int | None, str]:
    """Return the position of the first row that meets a condition, and its value as a string; None if no row does."""
    value = f"arg_min(CAST({quoted(role)} AS VARCHAR), rowid)"
    first, found = one_row(con, f"SELECT min(rowid), {value} FROM {quoted(file.table)} WHERE {condition}")
    return first, str(found).strip()


def _is_integer_string(column: str) -> str:
    """Return the SQL of whether a string is an integer without a point or an exponent."""
    return f"regexp_full_match(trim({column}), '[+-]?[0-9]+')"


def _check_number_strings(con: DuckDBPyConnection, file: File, role: str) -> None:
    column, table = quoted(role), quoted(file.table)
    bad, value, first = one_row(
        con,
        f"SELECT count(*), arg_min({column}, rowid), min(rowid) FROM {table} "
        f"WHERE TRY_CAST({column} AS DOUBLE) IS NULL",
    )
    if bad:
        mend = NUMBER_FIRST if role == "subtopic" else ""
        found = f"{file.source.place(first)} holds {shortened(value)}{mend}"
        raise InputTypeError(file.at(role), f" must hold numbers; {found}")


def joint_kind(con: DuckDBPyConnection, role: str, files: list[File]) -> str:
    """Return the kind of the ids of a role in all files, "integer" or "string"; raise if they cannot match."""
    ids = [_inspect_ids(con, file, role) for file in files if file.rows]
    strings = [one for one in ids if one.kind == "string"]
    integers = [one for one in ids if one.kind == "integer"]
    # Integers without a type can be read as strings too. That helps only if some string looks like an integer: else no
    # id could match one on the other side.
    if strings and not any(one.integers for one in strings):
        integers += [one for one in ids if one.kind == "open" and not one.are_strings]
    if strings and integers:
        raise InputTypeError(
            f"{role.rstrip('0123456789')} ids cannot be matched: ",
            integers[0].where,
            " holds integers, ",
            strings[0].where,
            f" holds strings such as {strings[0].example}; write both as integers or both as strings",
        )
    return "string" if strings or (not integers and any(one.are_strings for one in ids)) else "integer"


def _inspect_ids(con: DuckDBPyConnection, file: File, role: str) -> _Ids:
    type_, where = file.types[role], file.at(role)
    if _is_integer(type_):
        _check_id_range(con, file, role)
        return _Ids(where, "integer")
    if not _is_string(type_):
        advice = "ids must be integers or strings"
        if type_.endswith("]"):
            advice = "expected one row per user and item"
        elif type_ in ("FLOAT", "DOUBLE") or type_.startswith("DECIMAL"):
            advice = NOT_FLOATS
        elif type_.startswith(("DATE", "TIMESTAMP")):
            advice = "write days as strings, such as '2024-01-31'"
        raise InputTypeError(where, f" holds {type_}: {advice}")
    return _inspect_string_ids(con, file, role)


def _inspect_string_ids(con: DuckDBPyConnection, file: File, role: str) -> _Ids:
    """Inspect string ids. "7" spells an integer, as the integer is written so; "007", "+7" and " 7" do not."""
    column, where = quoted(role), file.at(role)
    is_integer = f"coalesce(CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}, false)"
    integers, example = one_row(
        con,
        f"SELECT count(*) FILTER ({is_integer}), arg_min({column}, rowid) FILTER (NOT {is_integer}) "
        f"FROM {quoted(file.table)}",
    )
    if file.names[role] not in file.source.untyped:
        return _Ids(where, "string", integers=integers, example="digits" if example is None else shortened(example))
    if integers == file.rows:
        _check_id_range(con, file, role)
        return _Ids(where, "open", file.source.format.ids_are_strings)
    is_decimal = rf"regexp_full_match({column}, '[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?')"
    decimals, decimal = one_row(
        con,
        f"SELECT count(*) FILTER ({is_decimal}), arg_min({column}, rowid) FILTER ({is_decimal}) "
        f"FROM {quoted(file.table)}",
    )
    if decimals and decimals + integers == file.rows:
        raise InputTypeError(where, f" holds decimal numbers such as {shortened(decimal)}: {NOT_FLOATS}")
    return _Ids(where, "string", integers=integers, example=shortened(example))


def _check_id_range(con: DuckDBPyConnection, file: File, role: str) -> None:
    number = f"CAST({quoted(role)} AS HUGEINT)"
    if file.types[role] == "UHUGEINT":
        number = quoted(role)
    low, high = one_row(con, f"SELECT min({number}), max({number}) FROM {quoted(file.table)}")
    if high > MAX_ID:
        raise InputError(file.at(role), f" holds {high}, above 2^63 - 1: write these ids as strings")
    if low < 0 and role == "item":
        raise InputError(file.at(role), f" holds {low}: item ids must not be negative; write these ids as strings")
    if low < -MAX_ID - 1:
        raise InputError(file.at(role), f" holds {low}, below -(2^63): write these ids as strings")


def number_sql(file: File, role: str) -> str:
    """Return the SQL of a column of numbers: ranks as integers, small labels as TINYINT, others as FLOAT or DOUBLE."""
    column, type_ = f"t.{quoted(role)}", file.types[role]
    if role == "label" and type_ in ("BOOLEAN", "TINYINT"):
        return f"CAST({column} AS TINYINT)"
    if role == "rank":
        return column if type_ in NARROW_INTEGERS else f"CAST({column} AS BIGINT)"
    if type_.startswith("DECIMAL"):  # DuckDB 1 rounds those of more than 15 digits twice
        column = f"CAST({column} AS VARCHAR)"
    return column if type_ == "FLOAT" else f"CAST({column} AS DOUBLE)"
