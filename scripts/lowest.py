"""Print the oldest supported versions of all packages that fastrec and its extras for users need, for pip."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("cli", "frames", "models", "plot", "spark", "stats")


def lowest() -> list[str]:
    """Return NAME==VERSION for each lower bound, sorted."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    return sorted({re.sub(r"\[.*\]|>=", lambda found: "==" if found[0] == ">=" else "", line) for line in wanted})


if __name__ == "__main__":
    print(*lowest())
