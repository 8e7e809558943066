"""Folders of files of which one has a fault: told for any number of threads, and no row is left out."""

import gzip
import os
import re

import pytest

import fastrec

pytest.importorskip("pyarrow")

HEADER, ROWS = "user_id,label,score\n", "{0},1,0.9\n{0},0,0.2\n"
FAULTS = {
    "an open quote at the end": '{0},1,0.5\n"a',
    "an open quote before other rows": '{0},1,0.5\n"a,1,0.3\nb,0,0.2\nb,1,0.1\n',
    "an open quote before many rows": '{0},1,0.5\n"a,1,0.3\n' + "b,0,0.2\nb,1,0.1\n" * 20_000,
    "an open quote after quoted values": '"{0}",1,0.5\n"a"",",1,0.3\n"b,0,0.2\n',
    "an open quote after a literal one": '5",1,0.5\n"a,1,0.3\nb,0,0.2\n',
    "characters after a quote": '"{0}"x,1,0.5\n',
    "too few values": "{0},1\n",
    "too many values": "{0},1,0.5,7\n",
    "bytes that are not UTF-8": "{0}\udcff,1,0.5\n",
}


def write(folder, n_files, at, fault, packed):
    """Write files, of which the one at a position has the fault; return their pattern."""
    for nth in range(n_files):
        rows = (fault if nth == at else ROWS).replace("{0}", f"user {nth}")
        content = f"{HEADER}{rows}".encode(errors="surrogateescape")
        name = f"{nth}.csv{'.gz' if packed else ''}"
        (folder / name).write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return os.fspath(folder / "*.csv*")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("at", [0, 3, 8])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_file_is_told_for_any_threads(tmp_path, fault, at, packed):
    pattern = write(tmp_path, 9, at, FAULTS[fault], packed)
    messages = set()
    for n_threads in (1, 2, 5):
        with pytest.raises(fastrec.InputError, match=rf"{at}\.csv") as found:
            fastrec.evaluate_files(pattern, metrics=["auc"], n_threads=n_threads)
        messages.add(str(found.value))
    assert len(messages) == 1
    assert "open quote" not in fault or re.search(r"a quote is not closed|is a quote not closed\?", messages.pop())


@pytest.mark.parametrize("value", ['5"', '"5"""', '"a\nb"', '"a,b"', '""""', 'a"b"c'])
def test_quotes_that_are_closed_are_no_fault(tmp_path, value):
    pattern = write(tmp_path, 5, 2, f"{value},1,0.5\n{value},0,0.7\n", packed=False)
    found = [fastrec.evaluate_files(pattern, metrics=["auc"], n_threads=n_threads) for n_threads in (1, 2, 5)]
    assert {report.data["rows"] for report in found} == {10} and len({report["auc"] for report in found}) == 1
