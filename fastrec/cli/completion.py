"""Shell completion: commands, options, metrics with options and cut-offs, tools, files of systems."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FASTREC_COMPLETE"  # a shell sets it to ask; click derives it from the name of the program
CUTOFFS = (5, 10, 20, 50, 100)
EXAMPLES = ("0.5", "0.9")  # of a number that has no default
NOT_PLAIN = frozenset(" \t'\"\\()[]{}<>|&;*?$`!#")  # characters that bash interprets outside of quotes
BREAKS = frozenset("=:")  # bash gives these as the current word where the cursor is right behind them
BASH = """\
_fastrec_completion() {
    local type value
    COMPREPLY=()
    while IFS=$'\\t' read -r type value; do
        case "$type" in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            part) compopt -o nospace 2>/dev/null; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_CUR="${COMP_WORDS[COMP_CWORD]}" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _fastrec_completion %(prog_name)s 2>/dev/null || complete -F _fastrec_completion %(prog_name)s
"""
FISH = """\
function _fastrec_completion
    set -l asked %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t)
    for line in (env $asked %(prog_name)s 2>/dev/null)
        set -l item (string split -m 1 , -- $line)
        switch $item[1]
            case dir
                __fish_complete_directories $item[2]
            case file
                __fish_complete_path $item[2]
            case '*'
                echo $item[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(_fastrec_completion)"
"""


def script(program: click.Command, shell: str) -> str:
    """Return the script that a shell reads once to complete the command `fastrec`."""
    kind = get_completion_class(shell)
    assert kind is not None
    return str(kind(program, {}, "fastrec", VARIABLE).source())


def complete_metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last name of a list of metrics: its name, its options after `name(`, its cut-off after `name@`."""
    from fastrec.metrics.calls import catalogue

    before, name = _split(incomplete)
    known = catalogue()
    stem, bracket, rest = name.partition("(")
    if bracket and ")" not in rest:
        own = [metric["options"] for metric in known if metric["name"] == stem]
        found = [text for options in own for text in _options_of(f"{before}{stem}(", rest, options)]
    elif "@" in name:
        stem = name.rpartition("@")[0]
        found = [f"{before}{stem}@{k}" for k in CUTOFFS]
    else:
        found = [f"{before}{metric['name']}" for metric in known]
    # lists and scored rows share some names
    return [CompletionItem(text, is_open=True) for text in dict.fromkeys(found) if text.startswith(incomplete)]


def _split(text: str) -> tuple[str, str]:
    """Split a list of metrics before its last name. Commas in brackets separate options, not names."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            start = at + 1
    return text[:start], text[start:]


def _options_of(before: str, rest: str, options: Mapping[str, Any]) -> list[str]:
    """Return strings that begin with `before`: the options not given yet or, once one is clear, its values.

    A shell with a single offer closes the quote, so the offer closes the bracket.
    """
    given, comma, last = rest.rpartition(",")
    blank = last[: len(last) - len(last.lstrip())]
    before, last = f"{before}{given}{comma}{blank}", last.lstrip()
    taken = {part.partition("=")[0].strip() for part in given.split(",")}
    meant = [name for name in options if name not in taken and f"{name}=".startswith(last.partition("=")[0])]
    if "=" in last:
        meant = [name for name in meant if name == last.partition("=")[0]]
    if len(meant) != 1:
        return [f"{before}{name}=" for name in meant]
    (name,) = meant
    default, kind = options[name]["default"], options[name]["kind"]
    examples = [] if kind in ("column", "separator") else EXAMPLES
    shown = default if isinstance(default, str) else f"{default:g}" if default is not None else ""
    values = options[name]["choices"] or (examples if default is None else [shown])
    return [f"{before}{name}={value})" for value in values]


def complete_tools(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a tool that has a recipe."""
    from fastrec.metrics.recipes import RECIPES

    return [CompletionItem(name) for name in RECIPES if name.startswith(incomplete)]


def complete_systems(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete files, alone or after NAME=. Hidden files are offered once their first character is typed."""
    name, equals, path = incomplete.partition("=")
    if not equals:
        path = incomplete
    before = f"{name}=" if equals else ""
    folder, start = os.path.split(path)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    found = [entry for entry in entries if entry.name.startswith(start) and (start or entry.name[0] != ".")]
    return [
        CompletionItem(f"{before}{os.path.join(folder, entry.name)}{'/' * entry.is_dir()}", is_open=entry.is_dir())
        for entry in found
    ]


class _Bash(BashComplete):
    """Completion in bash, which also splits words at "=", "@" and ":", and does not quote the offers."""

    source_template = BASH

    def source(self) -> str:
        """Return the script, which itself copes with old versions of bash, so that none is checked here."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the incomplete word at it."""
        line = os.environ["COMP_LINE"]
        raw = _last_word(line)
        words = split_arg_string(line[: len(line) - len(raw)])
        return words[1:], "".join(split_arg_string(raw))

    def complete(self) -> str:
        """Return a line per offer, without the part that bash counts to an earlier word."""
        arguments, incomplete = self.get_completion_args()
        raw, current = _last_word(os.environ["COMP_LINE"]), os.environ["COMP_CUR"]
        if set(current) <= BREAKS:
            current = ""
        done = raw[: len(raw) - len(current)] if raw.endswith(current) else ""
        done = done.removesuffix("@")  # bash counts it to the word that it begins
        quote = raw[:1] if raw[:1] in ("'", '"') else ""
        lines = []
        for item in self.get_completions(arguments, incomplete):
            text = item.value if quote else _escaped(item.value)
            if text.startswith(done):
                lines.append(f"{'part' if item.is_open else item.type}\t{text[len(done) :]}")
        return "\n".join(lines)


def _last_word(line: str) -> str:
    """Return the last word of a line as typed, with its quotes; empty after a blank between words."""
    quote, start, escaped = "", 0, False
    for at, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character.isspace():
            start = at + 1
    return line[start:]


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in NOT_PLAIN else character for character in text)


class _Fish(FishComplete):
    """Completion in fish: the script of click would cut an offer at its first comma."""

    source_template = FISH


add_completion_class(_Bash)
add_completion_class(_Fish)
