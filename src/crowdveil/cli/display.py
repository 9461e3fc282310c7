"""Output of commands: a table that fits any terminal, or one JSON document for results and errors alike.

The page `docs/reference/json-output.md` and the schema `docs/reference/schemas/crowdveil-json-1.json` describe the JSON
documents.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.cli.named_options import running_command
from crowdveil.cli.progress import LOG_FORMAT
from crowdveil.cli.temporary_errors import is_temporary
from crowdveil.cli.verb import wants_json, wants_json_log
from crowdveil.display.counts import number_of
from crowdveil.errors import CrowdveilError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from crowdveil.privacy.shuffling import ShuffledGuarantees

FORMAT = "crowdveil-json/1"
FLAG = "--json"
BOUND_NAMES = {"exact": "the composed loss distribution", "advanced": "advanced composition"}
"""Names of the bounds on composed losses that hold at a delta above 0."""
FILE_HINT = "Check the name of the file and its folder, and your right to read or write there."
"""Hint of an error of the file system."""
ERROR_MEMBERS = ("rule", "value", "hint", "temporary")
"""Attributes of an error with their own JSON members; the others are its `details`."""


def print_result(data: Mapping[str, Any], rows: Sequence[tuple[str, str]]) -> None:
    """Print `data` as the JSON document of the running command with --json, else `rows` as a table.

    Raises:
        SettingsError: as `checked_stdout`.
    """
    with checked_stdout():
        click.echo(json_text(document_of_running_command(data)) if wants_json() else _two_column_table(rows))


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Context in which a failure of stdout, such as a full disk, becomes a SettingsError; a closed pipe does not.

    Raises:
        SettingsError: the result cannot be printed.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = f"{error.strerror or error}. The command has written its files; print the result elsewhere."
        raise SettingsError("the result must be printed", value="stdout", hint=hint) from error


def _two_column_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return the rows as a table of two columns; long values wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(printable(name)), Text(printable(value)))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def print_written(
    data: Mapping[str, Any],
    rows: Sequence[tuple[str, str]],
    files: Sequence[Path],
    replaced: Sequence[Path],
    following: Sequence[tuple[str, str]] = (),
) -> None:
    """Print a result as `print_result`; its table ends with the replaced and written files, and `following` rows."""
    ends = [*row_of_replaced_files(replaced), *(("written", str(path)) for path in files), *following]
    print_result({**data, "files": files, "replaced": replaced}, [*rows, *ends])


def next_row(*words: object) -> tuple[str, str]:
    """Return the row with the command that comes next, with its words after `crowdveil`."""
    return "next", shlex.join(["crowdveil", *map(str, words)])


def warning_rows(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the warnings of a result as table rows."""
    return [("warning", text) for text in data["warnings"]]


def row_of_replaced_files(replaced: Sequence[object]) -> list[tuple[str, str]]:
    """Return the row of replaced files; no row if there are none."""
    return [("replaced", ", ".join(map(str, replaced)))] if replaced else []


def print_warning(text: str) -> None:
    """Print a warning on stderr; as JSON where the progress is."""
    line = {"format": LOG_FORMAT, "warning": text} if wants_json_log() else None
    click.echo(f"Warning: {printable(text)}" if line is None else json.dumps(line), err=True)


def number_with_six_digits(value: float) -> str:
    """Return a number with six digits, rounded to the nearest; privacy bounds use `format_bound`, which rounds up."""
    return "none (infinite)" if math.isinf(value) else "unknown" if math.isnan(value) else f"{value:.6g}"


def printable(text: str) -> str:
    """Return the text with non-printing characters replaced: names in files could move the cursor."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in text)


def account_rows(accounts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return table rows of an account: exact and claimed epsilon, the worker's before the cell's; then reasons."""
    rows = []
    for row in sorted(accounts, key=lambda row: (row["rounds"], row["unit"] != "worker")):
        slack = f", delta {format_delta(row['delta'])}" if row["delta"] else ""
        scope = f"(per {row['unit']}{_cells_and_rounds(row)}, participation {row['participation']})"
        rows.append(
            (
                "epsilon",
                f"exact {format_bound(row['exact'])}, claimed {number_with_six_digits(row['claimed'])}{slack} {scope}",
            )
        )
    reasons = dict.fromkeys(row["reason"] for row in accounts if row["reason"])
    return rows + [("because", reason) for reason in reasons]


def worker_loss(accounts: Sequence[Mapping[str, Any]], compositions: Sequence[Mapping[str, Any]]) -> float:
    """Return the least bound on the loss of a worker over all rounds, at the delta of compositions, if there are any.

    Infinity without any account.
    """
    if compositions:
        return min(
            row[name] for row in compositions if row["unit"] == "worker" for name in ("pure", "advanced", "exact")
        )
    return max((row["exact"] for row in accounts if row["unit"] == "worker"), default=math.inf)


def composition_rows(compositions: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return table rows of compositions: the least bound on epsilon, with its delta and name, then the others."""
    return [
        (
            "together",
            f"{loss_bounds_text(row)}, per {row['unit']}{_cells_and_rounds(row)}, participation {row['participation']}",
        )
        for row in sorted(compositions, key=lambda row: row["unit"] != "worker")
    ]


def loss_bounds_text(row: Mapping[str, Any]) -> str:
    """Return the least bound of composed losses by name, then the larger ones as such.

    The sum is the answer where no other is less in the digits shown: it holds at delta 0.

    Args:
        row: members `delta`, `pure`, `exact`, `advanced` and `least`.
    """
    slack, least = f"delta {format_delta(row['delta'])}", row["least"]
    if least is None:
        return f"epsilon none (infinite), also at {slack}"
    pure, advanced, found = (format_bound(row[name]) for name in ("pure", "advanced", least))
    if found == pure:
        return f"epsilon {pure} at delta 0, the sum; no less at {slack} (larger: advanced composition {advanced})"
    larger = f"sum {pure} at delta 0" + ("" if least == "advanced" else f", advanced composition {advanced}")
    return f"epsilon at most {found} at {slack}, by {BOUND_NAMES[least]} (larger: {larger})"


def shuffled_data(figures: ShuffledGuarantees | None) -> dict[str, Any] | None:
    """Return the guarantees of shuffled reports as JSON values; None without them."""
    if figures is None:
        return None
    return {
        "reports": figures.reports,
        "linked": figures.linked,
        "cells": figures.cells,
        "delta": figures.per_answer.delta,
        "epsilon_per_answer": figures.per_answer.epsilon,
        "epsilon_per_worker": figures.per_worker.epsilon,
        "participation": figures.per_answer.participation,
        "sentences": list(figures.sentences),
    }


def _cells_and_rounds(row: Mapping[str, Any]) -> str:
    """Return the cells and rounds that a row of an account covers."""
    of = f" of {number_of(row['cells'], 'cell')}" if row["unit"] == "worker" else ""
    return of + (f", {row['rounds']:,} rounds" if row["rounds"] > 1 else "")


def document_of_running_command(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of the running command.

    Args:
        data: members of the command; `warnings`, `files` and `replaced` default to empty lists.
    """
    envelope = {
        "format": FORMAT,
        "command": _command_path_without_program(click.get_current_context()),
        "status": "done",
    }
    assert not envelope.keys() & data.keys(), "reserved members"
    return envelope | {"warnings": [], "files": [], "replaced": []} | dict(data)


def error_document(error: Exception, group: click.Group, words: Sequence[str]) -> dict[str, Any]:
    """Return the document of a command that failed.

    Args:
        error: error of crowdveil, click or the file system.
        group: group of commands.
        words: arguments of the group.
    """
    name = " ".join(running_command(group, words)[0]) or None
    members = {**_error_members(error), "temporary": is_temporary(error)}
    return {"format": FORMAT, "command": name, "status": "error", "error": members}


def error_line(error: Exception) -> str:
    """Return the message of an error in one line; an error of the file system is the file and what the system says."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: the file cannot be used. Found: {error.strerror}. {FILE_HINT}"
    return " ".join(str(error).split())


def has_json_flag(words: Sequence[str]) -> bool:
    """Return whether the arguments contain --json before any `--`."""
    options = words[: words.index("--")] if "--" in words else words
    return FLAG in options


def json_text(document: Mapping[str, Any]) -> str:
    """Return the text of a JSON object; infinities are "infinity" and "-infinity", NaN is null."""
    return json.dumps(_json_value(document), indent=1, allow_nan=False)


def truncate_items(items: Sequence[Any], of: int) -> dict[str, Any]:
    """Return the first items of a longer list, with their number and the full length."""
    return {"shown": len(items), "of": of, "items": list(items)}


def truncated_json_rows(columns: Mapping[str, NDArray[Any]], most: int) -> dict[str, Any]:
    """Return the first rows of columns as a truncated list of objects."""
    cells = [column[:most].tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
    return truncate_items(rows, len(next(iter(columns.values()))))


def _command_path_without_program(context: click.Context) -> str:
    """Return the name of the running command without the program: `data list`."""
    names = list[str]()
    here: click.Context | None = context
    while here is not None and here.parent is not None:
        names.insert(0, here.info_name or "")
        here = here.parent
    return " ".join(names)


def _error_members(error: Exception) -> dict[str, Any]:
    """Return the JSON members of an error: type, rule, value, hint, message and details."""
    if isinstance(error, CrowdveilError):
        details = {name: value for name, value in vars(error).items() if name not in ERROR_MEMBERS}
        return _error_as_json(type(error).__name__, error.rule, error.value, error.hint, str(error), details)
    if isinstance(error, OSError):
        return _error_as_json("OSError", error.strerror, error.filename, FILE_HINT, str(error), {"errno": error.errno})
    if isinstance(error, click.UsageError):
        context = error.ctx
        hint = None if context is None else f"Try '{context.command_path} --help' for help."
        return _error_as_json("UsageError", error.format_message(), None, hint, error.format_message(), {})
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return _error_as_json(type(error).__name__, message, None, None, message, {})


def _error_as_json(
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
    """Return the JSON form of a value; text for types without one."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if isinstance(value, float):
        sign = "-" if value < 0 else ""
        return None if math.isnan(value) else f"{sign}infinity" if math.isinf(value) else float(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
