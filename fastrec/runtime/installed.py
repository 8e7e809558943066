"""The installed distribution: the command that adds an extra, and other packages that write into its folder.

On the public index, `fastrec` is another project, whose files lie in a folder `fastrec/` too. If both are installed,
the later one replaces `fastrec/__init__.py`, and removing either removes it.
"""

from __future__ import annotations

import sys

from fastrec._version import DISTRIBUTION, __version__

NAMESAKE = "fastrec"


def installing(extra: str) -> str:
    """Return the command that installs an extra.

    Examples
    --------
    >>> installing("cli")
    "pip install 'fastrec-eval[cli]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


MEND = f"pip uninstall {NAMESAKE} {DISTRIBUTION}, then {installing('cli')}"


def other_package() -> str | None:
    """Return a message if `fastrec/__init__.py` is missing or of another package. It looks at what is imported."""
    package = sys.modules["fastrec"]
    if getattr(package, "__version__", None) == __version__:
        return None
    state = "is missing" if getattr(package, "__file__", None) is None else "is that of another package"
    return f"fastrec/__init__.py of {DISTRIBUTION} {__version__} {state}: {MEND}"


def other_distribution() -> str | None:
    """Return a message if the distribution `fastrec` is installed too. It reads metadata, in milliseconds."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(NAMESAKE)
    except PackageNotFoundError:
        return None
    if not any(file.as_posix() == "fastrec/__init__.py" for file in found.files or ()):
        return None  # an editable installation, which writes no folder
    return (
        f"{NAMESAKE} {found.version}, another distribution, is installed too, and both write into the folder fastrec/:"
        f" {MEND}"
    )
