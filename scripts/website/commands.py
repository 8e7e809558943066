"""The page of the command line, from click."""

from __future__ import annotations

import re

import click

from fastrec.cli.program import program

PATH = "reference/command-line.md"
ENDS = "Exit codes: 0, or 1 if `--fail-under` or `--fail-if-worse` fails, or 2 for wrong usage or bad data."


def page() -> str:
    """Return the page: each command with its arguments and options."""
    with click.Context(program, info_name="fastrec", **program.context_settings) as context:
        commands = [(name, program.get_command(context, name)) for name in program.list_commands(context)]
    parts = ["# Command line", f"`fastrec COMMAND --help` prints the same in a terminal. {ENDS}"]
    rows = [f"| [`fastrec {name}`](#fastrec-{name}) | {summary(command)} |" for name, command in commands if command]
    parts.append("\n".join(["| command | what it does |", "|---|---|", *rows]))
    for name, command in commands:
        if command:
            parts += section(name, command)
    return "\n\n".join(parts) + "\n"


def summary(command: click.Command) -> str:
    """Return the first sentence of the help."""
    return cell((command.help or "").partition("\n")[0])


def section(name: str, command: click.Command) -> list[str]:
    """Return the parts of a command: its help, its usage and its options."""
    # with the names of the help option: a command keeps the option that its first context makes
    context = click.Context(command, info_name=f"fastrec {name}", **program.context_settings)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## fastrec {name} {{ #fastrec-{name} }}", f"```sh\nfastrec {name} {usage}\n```"]
    for block in re.split(r"\n\s*\n", command.help or ""):
        if block.strip("\n").startswith("\b"):
            lines = [line.strip() for line in block.replace("\b", "").strip("\n").splitlines()]
            parts.append("\n".join(["```sh", *(line for line in lines if line), "```"]))
        elif block.strip():
            parts.append(cell(" ".join(block.split())))
    records = [option(parameter, context) for parameter in command.params if isinstance(parameter, click.Option)]
    rows = [f"| {names} | {cell(text)} |" for names, text in records if text]
    if rows:
        parts.append("\n".join(["| option | what it does |", "|---|---|", *rows]))
    return parts


def option(parameter: click.Option, context: click.Context) -> tuple[str, str]:
    """Return the names of an option with its values, and its help; nothing for a hidden one."""
    record = parameter.get_help_record(context)
    return (code(record[0]), record[1]) if record else ("", "")


def code(text: str) -> str:
    """Return code for a cell of a table, where a bar must not end the cell."""
    return "<code>" + text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;") + "</code>"


def cell(text: str) -> str:
    """Return a text for a cell, with options as code."""
    text = text.replace("|", "&#124;").replace("<", "&lt;").replace("*", "&#42;").replace("_", "&#95;")
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]+)", r"`\1`", text)
