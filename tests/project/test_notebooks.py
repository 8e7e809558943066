"""Every notebook runs from top to bottom, and prints the numbers that it is stored with: scripts/notebooks.py."""

import os
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
DATA = "FASTREC_TEST_DATA"  # names the folder with real data, for the tests and for notebooks


def needs_data(notebook):
    return any(DATA in cell.source for cell in notebook.cells)


def test_there_are_notebooks():
    assert NOTEBOOKS


NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def texts(cell):
    """Return what a cell prints, without warnings, which name its process; pictures differ between versions."""
    outputs = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def numbers(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_prints_its_stored_numbers(path):
    stored, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
    if DATA not in os.environ and needs_data(notebook):
        pytest.skip(f"{DATA} names no folder with real data")
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    assert not any(output.output_type == "error" for cell in notebook.cells for output in cell.get("outputs", []))
    for old, new in zip(stored.cells, notebook.cells, strict=True):
        assert NUMBER.sub("0", texts(old)).split() == NUMBER.sub("0", texts(new)).split()
        assert numbers(texts(old)) == pytest.approx(numbers(texts(new)), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_stored_with_the_outputs_of_one_run(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
