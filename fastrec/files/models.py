"""Models in files: factors of users and items, evaluated against files of truth, and their first items."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from fastrec.api.calls import evaluate_model
from fastrec.api.variants import top_items
from fastrec.arguments import options_in
from fastrec.checks import check_file
from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import Argument, InputError, InputTypeError, Name, renaming
from fastrec.files.columns import ListColumns
from fastrec.files.job import Evaluated, FileJob, FileRows, finished
from fastrec.files.resources import Path, Resources
from fastrec.files.types import holds_lists
from fastrec.inputs.arrow import read_ids
from fastrec.inputs.models import plain_ids, read_call
from fastrec.inputs.sides import shared_rows
from fastrec.inputs.values import find_nulls, values_of
from fastrec.runtime.extras import require

Array = np.ndarray[Any, Any]
SCORING = "scoring"  # name of a stage
# of damaged arrays and archives: RuntimeError of those that look encrypted or packed in another way
FAULTS = (ValueError, EOFError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error)


class FactorFile(NamedTuple):
    """Factors in a file."""

    factors: Array  # float32 or float64 (n, d)
    ids: Any  # of rows; None for row numbers
    bias: Array | None  # (n,)


def read_factors(path: Path, id_column: str) -> FactorFile:
    """Read factors, one row per user or item.

    A ``.npy`` file holds an array (n, d); its rows are named by their numbers, from 0. An ``.npz`` file holds such an
    array as ``factors``, and may hold ``ids`` and ``bias``, one per row. A Parquet file has a column of ids, a column
    of lists, and may have a column ``bias``.
    """
    name = check_file("factors", path)
    if name.lower().endswith(".parquet"):
        return _read_parquet(name, id_column)
    try:
        if not zipfile.is_zipfile(name):
            return FactorFile(np.lib.format.open_memmap(name, mode="r"), None, None)
        with zipfile.ZipFile(name) as archive:
            parts = FactorFile(*(_read_part(archive, part) for part in FactorFile._fields))
    except FAULTS as error:
        raise _no_factors(name, error) from None
    if parts.factors is None:
        raise InputError(name, " has no array 'factors'")
    return parts


def _no_factors(name: str, error: Exception) -> InputError:
    return InputError(name, f" is no file of factors: expected .npy, .npz or .parquet ({error})")


def _read_part(archive: zipfile.ZipFile, part: str) -> Any:
    """Return an array of an archive of NumPy; None if it lacks the array."""
    if f"{part}.npy" not in archive.namelist():
        return None
    with archive.open(f"{part}.npy") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _read_parquet(path: str, id_column: str) -> FactorFile:
    parquet = require("pyarrow.parquet", "cli", what="reading factors in Parquet")
    import pyarrow as pa
    from pyarrow import compute

    try:
        table = parquet.read_table(path)
    except pa.ArrowException as error:
        raise _no_factors(path, error) from None
    if id_column not in table.column_names:
        raise InputError(path, f" has no column {id_column!r}, found {', '.join(table.column_names)}")
    lists = [field.name for field in table.schema if holds_lists(field.type)]
    if len(lists) != 1:
        raise InputError(path, f" must have one column of lists, the factors, found {', '.join(lists) or 'none'}")
    column = table.column(lists[0]).combine_chunks()
    flat = column.flatten()
    width = len(flat) // max(len(column), 1)
    lengths = values_of(compute.list_value_length(column).drop_null())
    if column.null_count or flat.null_count or (lengths != width).any():
        raise InputError(path, f": column {lists[0]!r} must hold lists of one length, without nulls")
    for name in {id_column, "bias"} & {*table.column_names}:
        if (null := find_nulls(table.column(name))).any():
            raise InputError(path, f": column {name!r} must not be null, found null in row {int(null.argmax()) + 1}")
    names = plain_ids(read_ids(table.column(id_column), f"{path}: column {id_column!r}"))
    bias = values_of(table.column("bias").combine_chunks()) if "bias" in table.column_names else None
    return FactorFile(values_of(flat).reshape(len(column), width), names, bias)


def _arguments_of(users: FactorFile, items: FactorFile, resources: Resources) -> dict[str, Any]:
    """Return the arguments about a model."""
    names = {"user_ids": users.ids, "item_ids": items.ids, "user_bias": users.bias, "item_bias": items.bias}
    progress = lambda done, total: resources.watch(SCORING, done, total)  # noqa: E731 - one line
    return {**names, "memory": resources.memory, "progress": progress}


@contextmanager
def _reading_sides(
    paths: Mapping[str, Path], columns: ListColumns, resources: Resources, user_ids: Any
) -> Iterator[tuple[FileRows, dict[str, Any]]]:
    """Read files of sides whole; the errors of the block name files."""
    with FileJob.open(paths, columns, resources).rows() as rows:
        if rows.is_streamed:
            raise InputError("the rows beside the factors do not fit in the memory of this call: raise --memory")
        tables = next(rows.batches())
        with rows.named(), renaming(_in_files):
            _refuse_other_ids(user_ids, tables, columns.users[0])
            yield rows, tables


def evaluate_factors(
    make_evaluation: Callable[..., ListEvaluation],
    factors: tuple[FactorFile, FactorFile],
    paths: Mapping[str, Path],
    columns: ListColumns,
    resources: Resources,
) -> Evaluated:
    """Evaluate factors of users and items against files of sides, "truth" at least; see `evaluate_lists`.

    `make_evaluation` gets `items`, `history` and `n_items`, the number of items of the model.
    """
    shared = shared_rows(paths)
    own = {name: path for name, path in paths.items() if name not in shared}
    given = dict.fromkeys(options_in(evaluate_model)) | _arguments_of(*factors, resources)
    call = read_call((factors[0].factors, factors[1].factors), given)
    with _reading_sides(own, columns, resources, factors[0].ids) as (rows, tables):
        truth, history = tables.pop("truth"), tables.pop("history", None)
        evaluation = make_evaluation(items=rows.items, history=history, n_items=call.n_items)
        given |= {"user": columns.users[0], "item": columns.item, "by": columns.by or None, "gain": columns.gain}
        given |= {**tables, **shared, "item_sep": columns.item_sep}
        evaluation.evaluate_model(call, truth, given)
        return finished(evaluation.report(), rows)


def _in_files(name: Name) -> object:
    """Return what takes the place of an argument for files of factors."""
    kinds = {Argument("user_ids", (...,)): "user", Argument("item_ids", (...,)): "item"}
    return f"ids in the file of {kinds[name]} factors (.npz or .parquet)" if name in kinds else name


def _refuse_other_ids(ids: Any, sides: Mapping[str, Any], user: str) -> None:
    """Raise InputTypeError if users of files are named in another way than those of the factors."""
    import pyarrow as pa

    strings = ids is not None and np.asarray(ids).dtype.kind not in "iu"
    for name, side in sides.items():
        if pa.types.is_integer(side.schema.field(user).type) == strings:
            found = ("strings", "integers") if strings else ("integers", "strings")
            raise InputTypeError(
                f"the ids of users must be of one type, found {found[0]} in the factors and {found[1]} in {name}; "
                "an .npz file may hold ids= beside factors="
            )


def top_items_of_factors(
    factors: tuple[FactorFile, FactorFile],
    k: int,
    exclude: Path | None,
    columns: ListColumns,
    resources: Resources,
) -> Any:
    """Return the first k items of each user as an Arrow table with columns of users, items, ranks and scores."""
    import pyarrow as pa

    call = _arguments_of(*factors, resources) | {"n_threads": resources.n_threads}
    with ExitStack() as sides:
        if exclude is not None:
            reading = _reading_sides({"exclude": exclude}, columns, resources, factors[0].ids)
            _, tables = sides.enter_context(reading)
            call |= {"exclude": tables["exclude"], "user": columns.users[0], "item": columns.item}
        items, indptr, scores = top_items((factors[0].factors, factors[1].factors), k, **call)
    ids = np.arange(len(indptr) - 1) if factors[0].ids is None else np.asarray(factors[0].ids)
    users = np.repeat(np.arange(len(ids)), np.diff(indptr))
    ranks = np.arange(1, len(items) + 1) - indptr[users]
    columns_of_table = {columns.users[0]: ids[users], columns.item: items, "rank": ranks, "score": scores}
    return pa.table({name: pa.array(values) for name, values in columns_of_table.items()})
