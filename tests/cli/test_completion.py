"""Completion: the offers, and that bash, zsh and fish insert them when the user presses Tab."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

import fastrec
from fastrec.metrics.recipes import RECIPES
from support.command_line import run_fastrec

pytest.importorskip("click")

from click.shell_completion import ShellComplete

from fastrec.cli.program import program

NAMES = list(dict.fromkeys(metric["name"] for metric in fastrec.catalogue()))


def offered(*words):
    """Return the offers for the last of some words."""
    *before, incomplete = words
    items = ShellComplete(program, {}, "fastrec", "_FASTREC_COMPLETE").get_completions(before, incomplete)
    return [item.value for item in items]


def test_commands_and_options():
    assert offered("ev") == ["evaluate"]
    assert offered("co") == ["compare", "completion"]
    assert {"--metrics", "--min-gain"} <= set(offered("evaluate", "--m"))
    assert offered("evaluate", "--ties", "id_") == ["id_asc", "id_desc"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]


def test_metrics():
    for words in (["evaluate", "-m"], ["compare", "--metrics"], ["explain"], ["metrics"], ["evaluate", "--fail-under"]):
        assert offered(*words, "") == NAMES
    assert offered("evaluate", "-m", "nd") == ["ndcg", "ndcg_rel", "ndpm"]
    assert offered("evaluate", "-m", "mrr,nd") == ["mrr,ndcg", "mrr,ndcg_rel", "mrr,ndpm"]
    assert offered("evaluate", "-m", "ndcg(gain=exp2, min_gain=2)@5,arh") == ["ndcg(gain=exp2, min_gain=2)@5,arhr"]
    assert offered("compare", "a=x", "b=y", "--fail-if-worse", "hit") == ["hits", "hit_rate"]
    assert offered("evaluate", "-m", "xyz") == []


def test_options_and_cutoffs_of_a_metric():
    ndcg = {name for metric in fastrec.catalogue() if metric["name"] == "ndcg" for name in metric["options"]}
    assert set(offered("evaluate", "-m", "ndcg(")) == {f"ndcg({name}=" for name in ndcg}
    assert offered("evaluate", "-m", "ndcg(gain=") == ["ndcg(gain=linear)", "ndcg(gain=exp2)", "ndcg(gain=binary)"]
    assert offered("evaluate", "-m", "mrr,ndcg(ga") == [
        f"mrr,ndcg(gain={gain})" for gain in ("linear", "exp2", "binary")
    ]
    assert offered("evaluate", "-m", "ndcg(gain=exp2, disc") == [
        "ndcg(gain=exp2, discount=log2)",
        "ndcg(gain=exp2, discount=log2_flat2)",
    ]
    assert "ndcg(gain=exp2,gain=" not in offered("evaluate", "-m", "ndcg(gain=exp2,")
    assert offered("evaluate", "-m", "f_beta(be") == ["f_beta(beta=1)"]
    assert offered("evaluate", "-m", "nothing(") == []
    assert "ndcg@10" in offered("evaluate", "-m", "ndcg@")
    assert offered("evaluate", "-m", "ndcg(gain=exp2)@1") == ["ndcg(gain=exp2)@10", "ndcg(gain=exp2)@100"]


def test_every_offer_can_be_parsed():
    """An offer for an option is a metric once its required arguments are given."""
    from fastrec.metrics.calls import parse

    for metric in fastrec.catalogue():
        cut = "@5" if metric["kind"] == "ranking" else ""
        for option in metric["options"]:
            required = [name for name, own in metric["options"].items() if own["required"] and name != option]
            before = "".join(f"{name}=0.5, " for name in required)
            for text in offered("evaluate", "-m", f"{metric['name']}({before}{option}="):
                value = text.rpartition("=")[2].removesuffix(")")
                if value in metric["options"][option]["choices"] or value[0].isdigit():
                    assert parse(f"{text}{cut}").metric.name == metric["name"]


def test_tools():
    assert offered("evaluate", "--like", "") == list(RECIPES)
    assert offered("explain", "ndcg", "--like", "rec") == [name for name in RECIPES if name.startswith("rec")]


def test_files_of_systems(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("recs_a.csv", "recs b.csv", ".hidden"):
        Path(name).touch()
    Path("runs").mkdir()
    Path("runs/x.csv").touch()
    assert offered("compare", "old=") == ["old=recs b.csv", "old=recs_a.csv", "old=runs/"]
    assert offered("compare", "old=x", "new=runs/") == ["new=runs/x.csv"]
    assert offered("compare", "old=.h") == ["old=.hidden"]
    assert offered("compare", "old=gone/x") == offered("compare", "ol") == []
    assert offered("compare", "recs_") == ["recs_a.csv"] and offered("compare", "runs/") == ["runs/x.csv"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed(shell):
    result = run_fastrec("completion", shell)
    assert result.exit_code == 0 and "_FASTREC_COMPLETE" in result.output


def test_an_unknown_shell():
    result = run_fastrec("completion", "tcsh")
    assert result.exit_code == 2 and "bash" in result.stderr


# In a real shell


class Shell:
    """An interactive shell on its own terminal, without start files."""

    STARTS: ClassVar = {
        "bash": (["--norc", "--noprofile", "-i"], "source ./script; bind 'set bell-style none'; PS1='> '"),
        "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; source ./script; PS1='> '; unsetopt beep"),
        "fish": (["--no-config", "-i"], "source ./script; function fish_prompt; echo '> '; end"),
    }

    def __init__(self, name):
        arguments, start = self.STARTS[name]
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ |= {"TERM": "dumb" if name != "fish" else "xterm", "HISTFILE": "", "HOME": os.getcwd()}
            os.execvp(name, [name, *arguments])
        self.read(1.0)
        self.send(f"{start}\n")
        self.send("echo re''ady\n")
        self.wait("ready")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read(self, seconds):
        """Return the output until there is silence for this long."""
        text = b""
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                text += os.read(self.terminal, 65536)
            except OSError:
                break
        return text.decode(errors="replace")

    def wait(self, wanted, seconds=60):
        text, end = "", time.monotonic() + seconds
        while wanted not in text and time.monotonic() < end:
            text += self.read(0.2)
        assert wanted in text, text
        return text

    def completed(self, typed, wanted):
        """Return the command line after Tab at the end of a string: the arguments that a printing command receives."""
        out = Path("arguments")
        out.unlink(missing_ok=True)
        self.send(f"{typed}\t")
        self.wait(wanted)  # completing starts Python
        self.read(0.3)
        self.send("\n")
        end = time.monotonic() + 120
        while not out.exists() and time.monotonic() < end:
            self.read(0.2)
        self.read(0.5)
        return out.read_text().splitlines()

    def close(self):
        os.close(self.terminal)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a `fastrec` that completes like the real one, and otherwise writes its arguments to a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fastrec.__file__).parents[1]))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    Path("fastrec").write_text(
        f'#!/bin/sh\nif [ -n "$_FASTREC_COMPLETE" ]; then exec {sys.executable} -m fastrec "$@"; fi\n'
        'printf "%s\\n" "$@" > arguments.part; mv arguments.part arguments\n'
    )
    Path("fastrec").chmod(0o755)
    Path("recs_monday.csv").touch()
    return tmp_path


CASES = {
    "fastrec evalu": ["evaluate"],
    "fastrec evaluate --like trec": ["evaluate", "--like", "trec_eval"],
    "fastrec evaluate -m normalized_e": ["evaluate", "-m", "normalized_entropy"],
    "fastrec evaluate recs_m": ["evaluate", "recs_monday.csv"],
    "fastrec compare old=recs_m": ["compare", "old=recs_monday.csv"],
    "fastrec evaluate -m mrr@10,arh": ["evaluate", "-m", "mrr@10,arhr"],
    'fastrec evaluate -m "arhr(denominator=on': ["evaluate", "-m", "arhr(denominator=one)"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_completes(folder, name):
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    made = subprocess.run([sys.executable, "-m", "fastrec", "completion", name], capture_output=True, check=True)
    assert made.stderr == b""
    Path("script").write_bytes(made.stdout)
    shell = Shell(name)
    try:
        for typed, wanted in CASES.items():
            assert shell.completed(typed, wanted[-1]) == wanted, typed
    finally:
        shell.close()
