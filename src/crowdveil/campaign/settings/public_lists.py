"""CSV files of tasks and of workers, and the pictures that tasks name."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from crowdveil.campaign.rules.address import normal_host
from crowdveil.campaign.rules.document import Picture, Task
from crowdveil.campaign.settings.section import checked_and_normalized_text
from crowdveil.errors import ReportsError, RowSource, place_of_lines
from crowdveil.standalone.checks import (
    LINK,
    MAX_ALT,
    MAX_ID,
    MAX_PICTURE_BYTES,
    MAX_TEXT,
    BadTable,
    fits,
    read_table,
    visible_form,
)

TASK_COLUMNS = ("id", "text", "picture", "alt", "link", "not_for")
WORKER_COLUMNS = ("name",)
MAX_FILE_BYTES = 50_000_000
SAFE = "".join(map(chr, range(33, 127)))
"""Printable ASCII, which stays as it is in an address."""
ReadBytes = Callable[[Path], bytes]
"""Function that returns the content of a file as comma-separated text, or its first `MAX_FILE_BYTES` + 1 bytes."""
SEPARATOR = ";"
"""Separator of several workers in `not_for`."""
SIGNATURES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
)
"""First bytes of each type of picture."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """Task of a file: the task, the bytes of its picture or None, and the workers who must not get it."""

    task: Task
    picture: bytes | None
    not_for: tuple[str, ...]


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, one more than are accepted."""
    with open(path, "rb") as stream:
        return stream.read(MAX_FILE_BYTES + 1)


def read_tasks(path: Path, read: ReadBytes = first_bytes) -> tuple[TaskRow, ...]:
    """Return the tasks of a CSV file with columns id, text and, where needed, picture, alt, link and not_for.

    Pictures are named relative to the folder of the file. `read` returns its content.

    Raises:
        ReportsError: an unreadable file, an unknown column, an empty or repeated id, or a picture that is none.
    """
    rows = read_rows(path, TASK_COLUMNS, required=("id", "text"), read=read)
    tasks = tuple(_task_row(path, line, row) for line, row in rows.items())
    _require_visibly_distinct(path, "id", dict(zip(rows, (row.task.id for row in tasks), strict=True)))
    return tasks


def read_worker_names(path: Path, read: ReadBytes = first_bytes) -> tuple[str, ...]:
    """Return the names of a CSV file with the column name; the order gives the slots.

    Raises:
        ReportsError: an unreadable file, an unknown column, or an empty or repeated name.
    """
    rows = read_rows(path, WORKER_COLUMNS, required=WORKER_COLUMNS, read=read)
    names = {line: checked_cell(path, line, "name", row["name"], MAX_ID) for line, row in rows.items()}
    _require_visibly_distinct(path, "name", names)
    return tuple(names.values())


def read_rows(
    path: Path, columns: Sequence[str], required: Sequence[str], read: ReadBytes = first_bytes
) -> dict[int, Mapping[str, str]]:
    """Return the rows of a text file by their first line; missing columns are empty text, blank rows are skipped.

    Raises:
        ReportsError: an unreadable file, an unknown, repeated or missing column, or as `read_table`.
    """
    source = _source_counted_in_lines(path)
    try:
        data = read(path)
        if len(data) > MAX_FILE_BYTES:
            raise ReportsError(f"at most {MAX_FILE_BYTES:,} bytes are read", source=source)
        header, rows = read_table(data, str(path))
    except OSError as error:
        raise ReportsError("the file must be readable", source=source, hint=f"{error.strerror or error}.") from error
    except BadTable as error:
        raise ReportsError(error.rule, source=source, rows=(error.line,), hint=error.hint) from error
    unknown = sorted(set(header) - set(columns))
    missing = [name for name in required if name not in header]
    if unknown or missing or len(set(header)) != len(header):
        raise ReportsError(
            f"the first row must name the columns {', '.join(required)}",
            source=source,
            examples=", ".join(header)[:200],
            hint=f"Known columns: {', '.join(columns)}.",
        )
    if not rows:
        raise ReportsError("the file must have a row", source=source)
    return {line: dict.fromkeys(columns, "") | dict(zip(header, row, strict=True)) for line, row in rows.items()}


def _source_counted_in_lines(path: Path) -> RowSource:
    """Return the name of a file whose rows are counted by lines."""
    return RowSource(str(path), partial(place_of_lines, str(path)))


def _task_row(path: Path, line: int, row: Mapping[str, str]) -> TaskRow:
    identifier = checked_cell(path, line, "id", row["id"], MAX_ID)
    text = checked_cell(path, line, "text", row["text"], MAX_TEXT)
    excluded = not_for(row["not_for"])
    link = _link(path, line, row["link"])
    if not row["picture"].strip():
        return TaskRow(Task(identifier, text, link=link), None, excluded)
    data = _picture_bytes(path, line, row["picture"].strip())
    kind = next((kind for kind, signature in SIGNATURES if signature.match(data)), None)
    if kind is None:
        raise ReportsError(
            "a picture must be a PNG, JPEG or WebP file",
            source=_source_counted_in_lines(path),
            rows=(line,),
            examples=row["picture"],
            hint="SVG files can hold programs and are refused. Convert it.",
        )
    alt = checked_cell(path, line, "alt", row["alt"], MAX_ALT, "Describe the picture for those who cannot see it.")
    picture = Picture(sha256(data).hexdigest(), kind, len(data), alt)
    return TaskRow(Task(identifier, text, picture, link), data, excluded)


def not_for(cell: str) -> tuple[str, ...]:
    """Return the workers that a cell lists."""
    return tuple(name.strip() for name in unicodedata.normalize("NFC", cell).split(SEPARATOR) if name.strip())


def _link(path: Path, line: int, text: str) -> str | None:
    """Return the address of a cell, its host as browsers write it, other letters percent-encoded; None for no text."""
    if not text:
        return None
    found = re.fullmatch(r"(https?://)([^/?#:]{1,200})(.*)", text, re.IGNORECASE | re.DOTALL)
    address = quote(f"{found[1].lower()}{normal_host(found[2])}{found[3]}", safe=SAFE) if found else ""
    if not fits(address, LINK):
        raise ReportsError(
            "a link begins with https:// or http:// and a host, without a user",
            source=_source_counted_in_lines(path),
            rows=(line,),
            examples=text[:200],
            hint="Copy the address of what is judged from the browser.",
        )
    return address


def _picture_bytes(path: Path, line: int, name: str) -> bytes:
    try:
        with open(path.parent / name, "rb") as stream:
            data = stream.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise ReportsError(
            "a picture must be readable",
            source=_source_counted_in_lines(path),
            rows=(line,),
            examples=name,
            hint=f"{error.strerror or error}. Name it relative to the folder of {path.name}.",
        ) from error
    if not 1 <= len(data) <= MAX_PICTURE_BYTES:
        raise ReportsError(
            f"a picture has 1 to {MAX_PICTURE_BYTES:,} bytes",
            source=_source_counted_in_lines(path),
            rows=(line,),
            examples=name,
            hint="Make it smaller: phones load it.",
        )
    return data


def checked_cell(path: Path, line: int, column: str, value: str, most: int, hint: str = "") -> str:
    """Return a printable text of a cell; raise ReportsError with the line otherwise."""
    try:
        return checked_and_normalized_text(column, value, most)
    except ValueError as error:
        raise ReportsError(
            str(error).rstrip("."), source=_source_counted_in_lines(path), rows=(line,), hint=hint
        ) from error


def _require_visibly_distinct(path: Path, column: str, by_line: Mapping[int, str]) -> None:
    lines_of: dict[str, list[int]] = defaultdict(list)
    for line, name in by_line.items():
        lines_of[visible_form(name)].append(line)
    alike = next((lines for lines in lines_of.values() if len(lines) > 1), None)
    if alike is not None:
        raise ReportsError(
            f"every {column} must occur once, and no two may look alike",
            source=_source_counted_in_lines(path),
            rows=tuple(alike[:3]),
            examples=by_line[alike[0]],
        )
