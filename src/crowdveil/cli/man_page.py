"""Manual page in roff (section 1), made from the help texts of the commands."""

import inspect
import re
from collections.abc import Iterator
from importlib.metadata import version

import click

from crowdveil.cli.verb import Verb


def man_page(main: click.Group) -> str:
    """Return the manual page of a group of commands: its help, then each command with example and all options."""
    name = main.name or "crowdveil"
    first, *rest = _paragraphs(main.help or "")
    lines = [
        f'.TH "{name.upper()}" 1 "" "{name} {version("crowdveil")}" "User commands"',
        ".SH NAME",
        f"{name} \\- {_escaped(first)}",
        ".SH SYNOPSIS",
        f".B {name}",
        "COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        *_text(rest),
        ".SH COMMANDS",
        *(line for path, command in leaves(main, (name,)) for line in _command(path, command)),
    ]
    return "\n".join(lines) + "\n"


def leaves(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its full name."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def _command(path: str, command: click.Command) -> Iterator[str]:
    """Yield the lines of one command."""
    context = click.Context(command, info_name=path, max_content_width=100)
    yield f".SS {_escaped(path)}"
    yield f".B {_escaped(path)} {_escaped(' '.join(command.collect_usage_pieces(context)))}"
    yield from _text(_paragraphs(command.full_text if isinstance(command, Verb) else command.help or ""))
    if isinstance(command, Verb):
        yield from (".PP", "Example:", ".PP", ".nf", ".RS", _escaped(command.example), ".RE", ".fi")
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None:
            yield from (".TP", f".B {_escaped(record[0])}", _escaped(record[1]))


def _paragraphs(text: str) -> list[str]:
    return re.split(r"\n\s*\n", inspect.cleandoc(text))


def _text(paragraphs: list[str]) -> Iterator[str]:
    """Yield paragraphs; one after a mark of click for fixed lines keeps its lines."""
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            yield from (".PP", ".nf", _escaped(paragraph.removeprefix("\b").strip("\n")), ".fi")
        else:
            yield from (".PP", _escaped(" ".join(paragraph.split())))


def _escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
