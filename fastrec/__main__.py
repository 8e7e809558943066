"""Entry of the `fastrec` command and of `python -m fastrec`."""

from __future__ import annotations

import sys

from fastrec.endings import exit_code
from fastrec.exceptions import MissingExtraError, require


def main() -> None:
    """Run the command line; where its packages are missing, say in one line how to install them."""
    try:
        for module in ("click", "rich"):
            require(module, "cli", what="the command line")
    except MissingExtraError as error:
        print(f"fastrec: {error}", file=sys.stderr)
        sys.exit(2)
    try:
        from fastrec.cli import main as run

        run()
    except KeyboardInterrupt:  # so early that the command does not yet see to it
        sys.exit(exit_code())


if __name__ == "__main__":
    main()
