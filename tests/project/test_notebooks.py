"""Every notebook runs from top to bottom. It is stored without outputs, unless it needs data that readers may lack."""

import os
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


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    if DATA not in os.environ and needs_data(notebook):
        pytest.skip(f"{DATA} names no folder with real data")
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_has_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if needs_data(notebook):  # those of one run, from top to bottom
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
        assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    else:
        assert all(not cell.outputs and cell.execution_count is None for cell in cells)
