"""Run the notebooks and store their outputs: python scripts/notebooks.py [NAME ...].

The pages of the site show the stored outputs, and a test runs the notebooks again and compares the numbers. The
notebook about real data needs FASTREC_TEST_DATA.
"""

import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"


def main() -> None:
    """Run the named notebooks, or all."""
    named = [FOLDER / name for name in sys.argv[1:]]
    for path in named or sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        settings = {"timeout": 300, "record_timing": False, "coalesce_streams": True}
        nbclient.NotebookClient(notebook, **settings, resources={"metadata": {"path": str(FOLDER)}}).execute()
        notebook.metadata.language_info = {"name": "python"}  # without the version of this machine
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
