"""Standard input in place of a file (`-`), kept in a temporary file while the command runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from fastrec.exceptions import Name, Text, renamed
from fastrec.runtime.outputs import temporary_folder

MARK = "-"
STANDARD_INPUT = "standard input"  # the name of its file in messages


@dataclass(frozen=True)
class StandardInput(Name):
    """The temporary file of standard input, in messages."""

    path: str

    def __str__(self) -> str:
        return self.path


def without_paths(text: str) -> str:
    """Return a text that names standard input in place of its file, which is about to go."""
    return renamed(text, lambda name: STANDARD_INPUT if isinstance(name, StandardInput) else name)


@contextlib.contextmanager
def open_inputs(paths: Mapping[str, str | None], folder: str | None) -> Iterator[dict[str, str | None]]:
    """Open paths, one of which may be `-`, for a `with` block; `folder` is for the temporary file."""
    asked = [name for name, path in paths.items() if path == MARK]
    if not asked:
        yield dict(paths)
        return
    if len(asked) > 1:
        raise click.UsageError(
            f"{' and '.join(asked)} are both -, but standard input can be read only once: give a file for the other"
        )
    if sys.stdin.isatty():
        raise click.UsageError(f"{asked[0]} is -, but nothing is piped in: try cat rows.csv | fastrec ...")
    with temporary_folder(folder) as place:
        kept = Text(StandardInput(os.path.join(place, "standard-input")))
        with open(kept, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield {name: kept if path == MARK else path for name, path in paths.items()}
