"""Record of the outputs in a folder: `.crowdveil.json`, with kind, size and SHA-256 of each file.

It separates files that may be replaced from all others. It detects accidents, not forgery: a user who can write the
folder can write the record. It names files of its own folder only, and no times or users.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.filesystem import PREFIX, open_regular
from crowdveil.hints import command_advice
from crowdveil.standalone.checks import HEX, fits, text_defect
from crowdveil.standalone.verification import parse_json

RECORD_FILE = ".crowdveil.json"
RECORD_FORMAT = "crowdveil-record/1"
UNFINISHED = "unfinished"
"""Member of the record during a commit; absent from a finished one."""
MAX_RECORD_BYTES = 1 << 24
RESERVED_PREFIXES = (RECORD_FILE, PREFIX)
"""Prefixes of the names of records and of temporary folders, which outputs cannot have."""
OBJECTS, LISTS = ("reading", "gold", "notes"), ("inputs",)
"""Members of an entry that are JSON objects, and lists of them."""
_ABSENT = {"reports_sha256": "", **{name: {} for name in OBJECTS}, **{name: [] for name in LISTS}}
_ENTRY = {"name": str, "kind": str, "size": range(2**53), "sha256": HEX, "reports_sha256": f"({HEX})?"}
_ENTRY |= dict.fromkeys(OBJECTS, dict) | {name: [dict] for name in LISTS}


class OutputEntry(NamedTuple):
    """One output file at the time of writing.

    Attributes:
        name: file name.
        kind: kind of output, such as "estimate"; only outputs of the same kind replace it.
        size: bytes.
        sha256: digest of the contents, hexadecimal.
        reports_sha256: digest of the reports that an estimate was inferred from; empty for other outputs.
        reading: JSON object that says how these reports were read; empty if they cannot be read again.
        gold: JSON object that says what cross-validation found on known truths; empty without.
        notes: JSON object with the warnings of an inference as a list; empty without any.
        inputs: JSON list of what the file depends on; empty if it is not recorded.
    """

    name: str
    kind: str
    size: int
    sha256: str
    reports_sha256: str = ""
    reading: str = ""
    gold: str = ""
    notes: str = ""
    inputs: str = ""

    @classmethod
    def of(cls, path: Path, kind: str, *more: str) -> "OutputEntry":
        """Return the entry for the present state of a file; `more` are the members after its digest."""
        with open_regular(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return cls(path.name, kind, os.fstat(stream.fileno()).st_size, digest, *more)

    def is_file_unchanged(self, path: Path) -> bool:
        """Return whether a file is unchanged since it was written."""
        return self.size == path.stat().st_size and self.sha256 == OutputEntry.of(path, self.kind).sha256


def read_record(folder: Path) -> tuple[OutputEntry, ...]:
    """Return the entries of a folder's record; empty without a record. During a commit, a name may have two entries.

    Raises:
        SettingsError: the record is unreadable or malformed.
    """
    return _is_unfinished_and_entries(folder)[1]


def _is_unfinished_and_entries(folder: Path) -> tuple[bool, tuple[OutputEntry, ...]]:
    """Return whether a record is unfinished, and its entries; errors as `read_record`."""
    path = folder / RECORD_FILE
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_RECORD_BYTES:
                raise ValueError(f"more than {MAX_RECORD_BYTES} bytes")
            data = parse_json(stream.read(size))
        if set(data) - {UNFINISHED} != {"format", "files"} or data["format"] != RECORD_FORMAT:
            raise ValueError(f"a record has the format {RECORD_FORMAT!r}")
        return UNFINISHED in data, tuple(map(_checked_output_entry, data["files"]))
    except (FileNotFoundError, NotADirectoryError):
        return False, ()
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            "the record of a folder must be readable, as it says which files may be replaced",
            value=str(path),
            hint=f"Choose another folder{command_advice(' ({out})')}, or remove the record: then no file of the folder "
            "is replaced.",
        ) from error


def record_text(entries: Iterable[OutputEntry], *, unfinished: bool = False) -> str:
    """Return the text of a record, sorted by name; `unfinished` marks the record of a commit that goes on."""
    files = []
    for entry in sorted(set(entries)):
        file = {name: value for name, value in entry._asdict().items() if value != ""}
        files.append(file | {name: parse_json(file[name].encode()) for name in (*OBJECTS, *LISTS) if name in file})
    record = {"format": RECORD_FORMAT, "files": files}
    return json.dumps(record | ({UNFINISHED: True} if unfinished else {}), ensure_ascii=False, indent=1) + "\n"


def refuse_partial_output(folder: Path) -> None:
    """Refuse a folder that an interrupted command left with a part of its files.

    Raises:
        ReportsError: the record is unfinished, and one of its files is absent.
        SettingsError: the record is damaged.
    """
    unfinished, entries = _is_unfinished_and_entries(folder)
    absent = [entry.name for entry in entries if not (folder / entry.name).is_file()]
    if unfinished and absent:
        raise ReportsError(
            "the command that wrote this folder must have ended",
            source=str(folder),
            examples=f"it was interrupted, and {absent[0]} is absent",
            hint="Run it again into the same folder: it replaces what was left.",
        )


def file_name_fault(name: str) -> str:
    """Return the defect of a text as the name of an output file; empty if there is none."""
    if name in ("", ".", "..") or "\0" in name or Path(name).name != name:
        return "it must name a file of the folder itself"
    if name.startswith(RESERVED_PREFIXES):
        return f"names that begin with {' or '.join(RESERVED_PREFIXES)} are reserved for records and temporary folders"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "it must be text in UTF-8"
    return ""


def _checked_output_entry(data: dict[str, Any]) -> OutputEntry:
    """Return an entry of a record; ValueError or TypeError if it is none."""
    entry = _ABSENT | data
    if not fits(entry, _ENTRY) or text_defect(entry["kind"]) or file_name_fault(entry["name"]):
        raise ValueError("an entry has a name of the folder, a kind that prints, a size and a digest")
    texts = {
        name: json.dumps(entry[name], ensure_ascii=False, sort_keys=True) if entry[name] else ""
        for name in (*OBJECTS, *LISTS)
    }
    return OutputEntry(**entry | texts)
