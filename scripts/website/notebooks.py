"""Pages of notebooks with the outputs that are stored in them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FOLDER = "notebooks"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def pages() -> Iterator[tuple[str, str | bytes]]:
    """Yield the path and the content of each page and of each of its pictures."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        parts, pictures = [], []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data:
                    name = f"{path.stem}_{len(pictures)}.png"
                    pictures.append((f"{FOLDER}/{name}", base64.b64decode("".join(data["image/png"]))))
                    parts.append(f"![Output of the cell above]({name})")
                elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n"):
                    parts.append(f"```text\n{COLOURS.sub('', text)}\n```")
        parts.append(
            f"This page is `notebooks/{path.name}` with the outputs that it is stored with; a test runs it "
            "again and compares the numbers."
        )
        yield f"{FOLDER}/{path.stem}.md", "\n\n".join(parts) + "\n"
        yield from pictures
