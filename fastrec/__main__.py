"""Entry of the `fastrec` command and of `python -m fastrec`."""

from __future__ import annotations

import os
import sys

from fastrec._version import __version__
from fastrec.exceptions import MissingExtraError
from fastrec.runtime.extras import require
from fastrec.runtime.installed import other_package
from fastrec.runtime.signals import exit_code


def main() -> None:
    """Run the command line; if its packages are missing or damaged, print in one line how to install them."""
    _open_closed_streams()
    if found := other_package():
        print(f"fastrec: {found}", file=sys.stderr)
        sys.exit(2)
    try:
        for module in ("click", "rich"):
            require(module, "cli", what="the command line")
    except MissingExtraError as error:
        if sys.argv[1:] == ["--version"]:  # for reports of faults, from people who use Python alone
            print(f"fastrec {__version__}")
            sys.exit()
        print(f"fastrec: {error}", file=sys.stderr)
        sys.exit(2)
    try:
        from fastrec.cli.program import main as run

        run()
    except KeyboardInterrupt:  # so early that the command does not handle it yet
        sys.exit(exit_code())


def _open_closed_streams() -> None:
    """Open closed standard streams on the null device; else the next opened file would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8", errors="replace")  # noqa: SIM115 - open until the process ends
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
