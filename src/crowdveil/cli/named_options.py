"""Arguments of the library as options of the running command, for hints and warnings."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from crowdveil.hints import Naming

OPTION_OF_ARGUMENT = {
    "left": ("left_column",),
    "right": ("right_column",),
    "task": ("task_column",),
    "worker": ("worker_column",),
    "label": ("label_column",),
    "value": ("value_column",),
    "alphabet": ("labels", "scale"),
    "people": ("workers",),
}
"""Options of arguments that have another name; each that the command has is one way to state the argument."""


def option_naming(command: click.Command | None) -> Naming:
    """Return the function that names arguments as options of a command; None for options that it does not have."""
    flags = _flag_by_name(command)

    def name_option(name: str, *value: Any) -> str | None:
        names = OPTION_OF_ARGUMENT.get(name, (name,))
        found = [flags[one] for one in names if one in flags]
        if not found:
            return None
        return _with_value(found, value[0]) if value else " or ".join(found)

    return name_option


def running_command(group: click.Group, words: Sequence[str]) -> tuple[list[str], click.Command | None]:
    """Return the words that name a command in the arguments of a group, and the command; none of both if unknown."""
    names, here, command = list[str](), group, None
    for word in words:
        found = here.commands.get(word)
        if found is None:
            break
        command = found
        names.append(word)
        if not isinstance(found, click.Group):
            break
        here = found
    return names, command


def _flag_by_name(command: click.Command | None) -> dict[str, str]:
    """Return the long form of each option, by the name of its parameter and by its own."""
    flags = dict[str, str]()
    for parameter in () if command is None else command.params:
        if isinstance(parameter, click.Option):
            flag = max(parameter.opts, key=len)
            flags[str(parameter.name)] = flags[flag.removeprefix("--").replace("-", "_")] = flag
    return flags


def _with_value(flags: Sequence[str], value: Any) -> str:
    """Return an option with its value as on a command line."""
    from crowdveil.channels.alphabet import Categories, Scale

    if isinstance(value, Scale):
        return f"{flags[-1]} {value.low:g}:{value.high:g}" + ("" if value.step == 1 else f":{value.step:g}")
    if isinstance(value, Categories):
        return f"{_with_value(flags[:1], value.names)}{' --ordered' if value.ordered else ''}"
    if isinstance(value, bool):
        return flags[0]
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{flags[0]} {shlex.quote(text)}"
