"""Standard input in place of a file (`-`), kept in a temporary file while the command runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from fastrec.exceptions import FastrecError, InputError
from fastrec.runtime.outputs import temporary_folder

__all__ = ["Inputs", "open_inputs"]

MARK = "-"
NAME = "standard input"


class Inputs(NamedTuple):
    """Paths by argument or option, and the temporary file of standard input, if any."""

    paths: dict[str, str | None]
    kept: str | None = None

    def shown(self, text: str) -> str:
        """Return a string that names the temporary file as standard input."""
        return text if self.kept is None else text.replace(self.kept, NAME)


@contextlib.contextmanager
def open_inputs(paths: Mapping[str, str | None], folder: str | None) -> Iterator[Inputs]:
    """Open paths, one of which may be `-`, for a `with` block; `folder` is for the temporary file."""
    asked = [name for name, path in paths.items() if path == MARK]
    if not asked:
        yield Inputs(dict(paths))
        return
    if len(asked) > 1:
        raise click.UsageError(
            f"{' and '.join(asked)} are both -, but standard input can be read only once: give a file for the other"
        )
    if sys.stdin.isatty():
        raise click.UsageError(f"{asked[0]} is -, but nothing is piped in: try cat rows.csv | fastrec ...")
    with temporary_folder(folder) as place:
        kept = os.path.join(place, "standard-input")
        with open(kept, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        inputs = Inputs({name: kept if path == MARK else path for name, path in paths.items()}, kept)
        try:
            yield inputs
        except (FastrecError, click.UsageError) as error:
            message = error.format_message() if isinstance(error, click.UsageError) else str(error)
            raise InputError(inputs.shown(message)) from None
