"""JSON documents of the command line: one envelope for every command, for results and for errors.

The page `docs/reference/json-output.md` and the schema `docs/reference/schemas/crowdveil-json-1.json` describe every
document.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from crowdveil.errors import CrowdveilError

FORMAT = "crowdveil-json/1"
FLAG = "--json"
APART = ("rule", "value", "hint")
"""Attributes of an error that have members of their own; all others are its `details`."""


def result(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of the command that is being run, and was done.

    Args:
        data: the command's own members; `warnings`, `files` and `replaced` are empty lists unless it gives them.
    """
    envelope = {"format": FORMAT, "command": _command(click.get_current_context()), "status": "done"}
    assert not envelope.keys() & data.keys(), "the envelope's own members"
    return envelope | {"warnings": [], "files": [], "replaced": []} | dict(data)


def failure(error: Exception, group: click.Group, words: Sequence[str]) -> dict[str, Any]:
    """Return the document of a command that failed.

    Args:
        error: a refusal of crowdveil, of click or of the file system.
        group: the command line.
        words: what the group was called with.
    """
    return {"format": FORMAT, "command": _named(group, words), "status": "error", "error": _described(error)}


def json_wanted(words: Sequence[str]) -> bool:
    """Return whether the words of a command line ask for JSON; after `--` there are no options."""
    options = words[: words.index("--")] if "--" in words else words
    return FLAG in options


def as_text(document: Mapping[str, Any]) -> str:
    """Return the text of one JSON object; infinity is "infinity" or "-infinity", not a number is null."""
    return json.dumps(_json_value(document), indent=1, allow_nan=False)


def shortened(items: Sequence[Any], of: int) -> dict[str, Any]:
    """Return a list that was cut: its first items, how many these are, and of how many."""
    return {"shown": len(items), "of": of, "items": list(items)}


def _command(context: click.Context) -> str:
    """Return the name of the running command, without the program's: `datasets list`."""
    names = list[str]()
    here: click.Context | None = context
    while here is not None and here.parent is not None:
        names.insert(0, here.info_name or "")
        here = here.parent
    return " ".join(names)


def _named(group: click.Group, words: Sequence[str]) -> str | None:
    """Return the name of the command that the words call; None where they name none."""
    names, here = list[str](), group
    for word in words:
        command = here.commands.get(word)
        if command is None:
            break
        names.append(word)
        if not isinstance(command, click.Group):
            break
        here = command
    return " ".join(names) or None


def _described(error: Exception) -> dict[str, Any]:
    """Return the members of an error: its type, the rule, the value found, what to do, and the whole message."""
    if isinstance(error, CrowdveilError):
        details = {name: value for name, value in vars(error).items() if name not in APART}
        return _error(type(error).__name__, error.rule, error.value, error.hint, str(error), details)
    if isinstance(error, OSError):
        return _error("OSError", error.strerror, error.filename, None, str(error), {"errno": error.errno})
    if isinstance(error, click.UsageError):
        context = error.ctx
        hint = None if context is None else f"Try '{context.command_path} --help' for help."
        return _error("UsageError", error.format_message(), None, hint, error.format_message(), {})
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return _error(type(error).__name__, message, None, None, message, {})


def _error(
    kind: str, rule: str | None, value: object, hint: str | None, message: str, details: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": kind,
        "rule": rule or None,
        "value": value,
        "hint": hint or None,
        "message": " ".join(message.split()),
        "details": details,
    }


def _json_value(value: Any) -> Any:
    """Return what JSON can hold of a value; the text of one that it has no form for."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if isinstance(value, float):
        sign = "-" if value < 0 else ""
        return None if math.isnan(value) else f"{sign}infinity" if math.isinf(value) else float(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
