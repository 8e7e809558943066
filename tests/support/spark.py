"""Lists for tests on a Spark session of this machine."""

import os
import shutil

import pyarrow as pa
import pytest

from support.cluster_lists import rows_of_lists

JAVA = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '/nowhere')}/bin{os.pathsep}{os.environ['PATH']}")
MARKS = [
    pytest.mark.skipif(
        JAVA is None, reason="no Java: Spark needs 17 or newer (apt-get install openjdk-17-jre-headless)"
    ),
    # PySpark's own warning, about an unused library
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:ranks of lists have gaps"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # PySpark's sockets
]


def make_lists(n_users=120, texts=False, seed=0):
    """Return lists, and a truth that lacks some of their users and has others."""
    recs, truth = map(pa.Table.from_pylist, rows_of_lists(n_users, strings=texts, seed=seed))
    return recs, truth


def having(table, **columns):
    """Return the table with other values in some columns."""
    for name, values in columns.items():
        column = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def as_lists(table):
    """Return one row per user, with columns of lists in the order of ranks or scores."""
    order = "rank" if "rank" in table.column_names else "item_id"
    table = table.sort_by([("user_id", "ascending"), (order, "ascending")])
    columns = [name for name in table.column_names if name not in ("user_id", "plan", "weight", "device")]
    grouped = table.group_by("user_id", use_threads=False).aggregate([(name, "list") for name in columns])
    return grouped.rename_columns([name.removesuffix("_list") for name in grouped.column_names])


def assert_same(report, wanted):
    assert report.to_dict() == wanted.to_dict() | {"digest": None}  # which reports of clusters lack
    assert repr(report.groups) == repr(wanted.groups)  # labels keep their types
