"""The command, run in this process."""

from __future__ import annotations

from typing import NamedTuple

import pytest

__all__ = ["Done", "run_fastrec"]


class Done(NamedTuple):
    """What a run of the command printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr


def run_fastrec(*arguments: object, text: str | None = None) -> Done:
    """Run the command, with a string as standard input."""
    testing = pytest.importorskip("click.testing")
    from fastrec.cli.program import program

    try:
        runner = testing.CliRunner(mix_stderr=False)  # click before 8.2
    except TypeError:
        runner = testing.CliRunner()
    done = runner.invoke(program, [*map(str, arguments)], prog_name="fastrec", input=text)
    return Done(done.exit_code, done.stdout, done.stderr, done.exception)
