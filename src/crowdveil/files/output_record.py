"""Record of the files that were written into a folder: `.crowdveil.json`, with kind, size and SHA-256 of each.

It tells apart what may be replaced from what belongs to somebody else. It finds accidents, not forgery: whoever can
write the folder can write another record. It names files of its own folder only, no times and no people.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from crowdveil.channels.text_validation import parse_json, text_defect
from crowdveil.errors import SettingsError
from crowdveil.files.filesystem import PREFIX, open_regular

RECORD_FILE = ".crowdveil.json"
RECORD_FORMAT = "crowdveil-record/1"
LARGEST = 1 << 24
"""Bytes of a record at most."""
RESERVED = (RECORD_FILE, PREFIX)
"""Beginnings of names that outputs cannot have: those of the record and of temporary folders."""
DIGEST = re.compile("[0-9a-f]{64}")


class OutputEntry(NamedTuple):
    """One file of the folder, as it was written.

    Attributes:
        name: of the file.
        kind: of output, such as "estimate"; only outputs of the same kind replace it.
        size: in bytes.
        sha256: of its contents, in hexadecimal.
    """

    name: str
    kind: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path, kind: str) -> "OutputEntry":
        """Return the entry of a file as it is now."""
        with open_regular(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return cls(path.name, kind, os.fstat(stream.fileno()).st_size, digest)

    def describes(self, path: Path) -> bool:
        """Return whether a file is as it was written."""
        return self.size == path.stat().st_size and self == OutputEntry.of(path, self.kind)


def read_record(folder: Path) -> tuple[OutputEntry, ...]:
    """Return the entries of a folder's record, none where there is no record; a name has two while it is replaced.

    Raises:
        SettingsError: a record that is not one.
    """
    path = folder / RECORD_FILE
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > LARGEST:
                raise ValueError(f"more than {LARGEST} bytes")
            data = parse_json(stream.read(size))
        return tuple(_entry(**entry) for entry in _files(data))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            "the record of a folder must be readable, as it says which files may be replaced",
            value=str(path),
            hint="Choose another folder (--out), or remove the record: then no file of the folder is replaced.",
        ) from error


def record_text(entries: Iterable[OutputEntry]) -> str:
    """Return the contents of a record, in the order of names."""
    files = [entry._asdict() for entry in sorted(set(entries))]
    return json.dumps({"format": RECORD_FORMAT, "files": files}, ensure_ascii=False, indent=1) + "\n"


def file_name_fault(name: str) -> str:
    """Return why a text cannot be the name of an output in a folder, empty if it can."""
    if name in ("", ".", "..") or "\0" in name or Path(name).name != name:
        return "it must name a file of the folder itself"
    if name.startswith(RESERVED):
        return f"names that begin with {' or '.join(RESERVED)} are kept for the record and for temporary folders"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "it must be text in UTF-8"
    return ""


def _files(data: Any) -> list[dict[str, Any]]:
    if set(data) != {"format", "files"} or data["format"] != RECORD_FORMAT:
        raise ValueError(f"a record has the format {RECORD_FORMAT!r}")
    return list(data["files"])


def _entry(name: str, kind: str, size: int, sha256: str) -> OutputEntry:
    if not all(isinstance(text, str) for text in (name, kind, sha256)) or type(size) is not int:
        raise TypeError("an entry has a name, a kind, a size and a digest")
    fault = file_name_fault(name)
    if fault:
        raise ValueError(f"{name!r}: {fault}")
    if text_defect(kind) or size < 0 or not DIGEST.fullmatch(sha256):
        raise ValueError("a kind prints, a size is at least 0, and a digest has 64 hexadecimal digits")
    return OutputEntry(name, kind, size, sha256)
