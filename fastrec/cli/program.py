"""The program `fastrec`: its commands and its entry point."""

from __future__ import annotations

import os
import sys
import warnings

from fastrec.cli import (  # each adds its commands to the group
    about,
    compare,
    drift,
    evaluate,
    explain,
    policy,
    position,
    top_items,
)
from fastrec.cli.group import program, say_warning
from fastrec.exceptions import FastrecWarning
from fastrec.runtime.signals import end_on_signals

__all__ = ["about", "compare", "drift", "evaluate", "explain", "main", "policy", "position", "program", "top_items"]


def _show(found: Warning | str) -> None:
    say_warning(found.text if isinstance(found, FastrecWarning) else str(found))


def main() -> None:
    """Entry point of the `fastrec` command."""
    warnings.showwarning = lambda found, *_, **__: _show(found)
    if hasattr(sys.stdout, "reconfigure"):  # "?" for a character that the terminal cannot show, not an error
        sys.stdout.reconfigure(errors="replace")
    end_on_signals()
    os.environ.setdefault("FASTREC_NOTICE", "1")  # announce compilation even where stderr is no terminal
    program(prog_name="fastrec")
