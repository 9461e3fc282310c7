"""Manifest of encoded blocks, `blocks.json`: format, counts, alphabet, and size and checksums of every file.

It says which files were encoded, and how often files were appended: each time the columns are written anew, under other
names, and the new manifest replaces the old one. Every field is checked for type and range before any is used. Within a
task, workers ascend; a worker repeats only if `repeats` is set.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.channels.alphabet import Alphabet, alphabet_from_json, alphabet_to_json
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.filesystem import open_regular
from crowdveil.standalone.checks import HEX, digest, fits
from crowdveil.standalone.verification import parse_json

FORMAT = "crowdveil-blocks/1"
MANIFEST_FILE = "blocks.json"
INDEX_FILE, WORKER_FILE, VALUE_FILE = "pointers.i64", "worker.i32", "value.bin"
NAMES_FILES = ("tasks.arrow", "workers.arrow")
DATA_FILES = (INDEX_FILE, WORKER_FILE, VALUE_FILE, *NAMES_FILES)
FIELDS = {"format", "reports", "tasks", "workers", "alphabet", "piece_bytes", "repeats", "files", "sha256"}
APPENDS, INPUTS = "appends", "inputs"
"""Further fields, which are absent if they are 0 or empty."""
ENCODE_AGAIN = "Encode the reports again (crowdveil data encode)."
MAX_REPORTS, MAX_IDENTIFIERS, MAX_CHECKSUM = 2**60, 2**31 - 1, 2**32 - 1
"""Limits of counts: identifiers have int32 codes, and 2**60 reports need fewer than 2**63 bytes."""
MAX_ITEM_BYTES = 8
"""Bytes per item of the widest column; checksummed pieces hold whole items."""
MAX_PIECE_BYTES = 1 << 26
"""Largest number of bytes per checksum; a piece of identifiers is read into memory as a whole."""
MAX_BYTES = 1 << 28
"""Largest size of the manifest in bytes; enough for the checksums of 50 terabytes."""
MAX_APPENDS = 2**31
READING = "reading"
"""Further field of an encoded file, which earlier versions did not write."""
INPUT_FORM = {
    "name": ".+",
    "bytes": range(2**60),
    "sha256": HEX,
    READING: ({"sheet": (str, None), "keys": dict, "columns": dict, "question": (str, None)}, None),
}
"""Form of an encoded file, as `standalone.checks.fits` takes it."""


def data_file(name: str, appends: int) -> str:
    """Return the name of a file of `DATA_FILES` after so many appends: worker.i32, then worker-1.i32.

    >>> data_file("worker.i32", 2)
    'worker-2.i32'
    """
    stem, end = name.split(".")
    return f"{stem}-{appends}.{end}" if appends else name


def is_data_file(name: str) -> bool:
    """Return whether a file has a name of `data_file`, after any number of appends."""
    return re.sub(r"-[1-9][0-9]*(?=\.)", "", name) in DATA_FILES


@dataclass(frozen=True, slots=True)
class InputReading:
    """Which answers of a file were read.

    Attributes:
        sheet: sheet of a workbook; None for other files.
        keys: values of the keys of folders that were read as columns.
        columns: columns by role of a table; empty for the export of a tool.
        question: the question that was answered; empty for several that were read together, None if none is named.
    """

    sheet: str | None = None
    keys: dict[str, str | None] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    question: str | None = None


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """File of answers that the blocks hold.

    Attributes:
        name: path relative to the folder of the blocks, or what the user named instead of a local file.
        bytes: its size.
        sha256: digest of its uncompressed content, in hexadecimal.
        reading: which of its answers were read; None if it is not recorded.
    """

    name: str
    bytes: int
    sha256: str
    reading: InputReading | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class History:
    """Number of the last append, which is in the names of the columns, and all files that were encoded, in order."""

    appends: int = 0
    inputs: tuple[EncodedFile, ...] = ()


NEW = History()
"""Blocks of no recorded file."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size of a file in bytes, and the CRC-32 of each of its pieces."""

    size: int
    checksums: list[int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Checked content of `blocks.json`.

    Attributes:
        reports, tasks, workers: counts.
        alphabet: possible values; None for float64 numbers.
        piece_bytes: bytes per checksum.
        repeats: whether a worker may have several reports on a task.
        files: entry of each of `DATA_FILES`.
        history: what was encoded.
        seal: SHA-256 of all other fields, hexadecimal.
    """

    reports: int
    tasks: int
    workers: int
    alphabet: Alphabet | None
    piece_bytes: int
    repeats: bool
    files: dict[str, FileEntry]
    history: History
    seal: str

    def file_name(self, name: str) -> str:
        """Return the name of a file of `DATA_FILES` in the folder."""
        return data_file(name, self.history.appends)


def write_manifest(
    path: Path,
    counts: dict[str, int],
    alphabet: Alphabet | None,
    files: dict[str, FileEntry],
    rules: dict[str, object],
    history: History = NEW,
) -> None:
    """Write `blocks.json`.

    Args:
        path: output file.
        counts: numbers of reports, tasks and workers.
        alphabet: possible values; None for float64 numbers.
        files: entry of each of `DATA_FILES`.
        rules: `piece_bytes` and `repeats`, as in `Manifest`.
        history: as in `Manifest`.
    """
    described = None if alphabet is None else alphabet_to_json(alphabet)
    entries = {name: {"bytes": entry.size, "crc32": entry.checksums} for name, entry in files.items()}
    manifest: dict[str, object] = {"format": FORMAT, **counts, "alphabet": described}
    manifest |= {**rules, "files": entries}
    further = {APPENDS: history.appends, INPUTS: [one.to_json() for one in history.inputs]}
    manifest |= {name: value for name, value in further.items() if value}
    text = json.dumps({**manifest, "sha256": digest(manifest)}, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_manifest(path: Path) -> Manifest:
    """Read and check `blocks.json`.

    Raises:
        ReportsError: unreadable, another format, a field missing, unknown, of the wrong type or out of range, or a
            seal that does not match.
    """
    data = _parsed_manifest_file(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReportsError(
            f"encoded blocks must have format {FORMAT!r}",
            source=str(path),
            examples=repr(data.get("format") if isinstance(data, dict) else data)[:200],
            hint=f"{ENCODE_AGAIN[:-1]}, with this version.",
        )
    if set(data) - {APPENDS, INPUTS} != FIELDS or data["sha256"] != digest(data):
        raise damage_error(path, "the seal does not match: it was changed or cut")
    try:
        return _manifest_of_fields(data)
    except SettingsError as error:
        raise damage_error(path, str(error)[:200]) from error


def damage_error(path: Path, found: str) -> ReportsError:
    """Return the error for a damaged file, with the defect found."""
    return ReportsError(
        "encoded blocks must be complete and undamaged", source=str(path), examples=found, hint=ENCODE_AGAIN
    )


def _parsed_manifest_file(path: Path) -> Any:
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_BYTES:  # read(limit) would allocate the whole limit beforehand
                raise ValueError(f"more than {MAX_BYTES} bytes")
            return parse_json(stream.read(size))
    except (OSError, ValueError) as error:
        raise ReportsError(
            f"a folder of encoded blocks must have a readable {MANIFEST_FILE}",
            source=str(path.parent),
            examples=str(error)[:200],
            hint=ENCODE_AGAIN,
        ) from error


def _manifest_of_fields(data: dict[str, Any]) -> Manifest:
    """Return the manifest of parsed fields.

    Raises:
        SettingsError: a field has the wrong type or is out of range.
    """
    piece_bytes = _checked_count("piece_bytes", data["piece_bytes"], MAX_PIECE_BYTES)
    if piece_bytes == 0 or piece_bytes % MAX_ITEM_BYTES:
        raise SettingsError(f"'piece_bytes' must be a multiple of {MAX_ITEM_BYTES}", value=piece_bytes)
    if not isinstance(data["repeats"], bool):
        raise SettingsError("'repeats' must be true or false", value=str(data["repeats"])[:50])
    files = data["files"]
    if not isinstance(files, dict) or set(files) != set(DATA_FILES):
        raise SettingsError(f"'files' must hold exactly {', '.join(DATA_FILES)}", value=str(files)[:100])
    return Manifest(
        reports=_checked_count("reports", data["reports"], MAX_REPORTS),
        tasks=_checked_count("tasks", data["tasks"], MAX_IDENTIFIERS),
        workers=_checked_count("workers", data["workers"], MAX_IDENTIFIERS),
        alphabet=None if data["alphabet"] is None else alphabet_from_json(data["alphabet"]),
        piece_bytes=piece_bytes,
        repeats=data["repeats"],
        files={name: _checked_file_entry(name, files[name], piece_bytes) for name in DATA_FILES},
        history=_checked_history(data),
        seal=str(data["sha256"]),
    )


def _checked_history(data: dict[str, Any]) -> History:
    inputs = data.get(INPUTS, [])
    listed = [{READING: None} | one if isinstance(one, dict) else one for one in inputs]
    if not fits({INPUTS: listed}, {INPUTS: [INPUT_FORM]}) or not isinstance(inputs, list):
        raise SettingsError("'inputs' must list files with name, bytes and sha256", value=str(inputs)[:100])
    encoded = tuple(EncodedFile(**{**one, READING: _checked_reading(one[READING])}) for one in listed)
    return History(_checked_count(APPENDS, data.get(APPENDS, 0), MAX_APPENDS), encoded)


def _checked_reading(data: dict[str, Any] | None) -> InputReading | None:
    """Return how a file was read, whose fields have their types, after a check of keys and columns."""
    if data is None:
        return None
    texts = [*data["columns"].values(), *(value for value in data["keys"].values() if value is not None)]
    if not all(isinstance(text, str) for text in texts):
        raise SettingsError("keys and columns of 'reading' must be texts", value=str(data)[:100])
    return InputReading(**data)


def _checked_file_entry(name: str, entry: Any, piece_bytes: int) -> FileEntry:
    """Return the entry of a file after checking its fields."""
    if not isinstance(entry, dict) or set(entry) != {"bytes", "crc32"} or not isinstance(entry["crc32"], list):
        raise SettingsError(f"the entry of {name} must hold bytes and a list crc32", value=str(entry)[:100])
    size = _checked_count(f"bytes of {name}", entry["bytes"], MAX_REPORTS * MAX_ITEM_BYTES)
    checksums = [_checked_count(f"crc32 of {name}", number, MAX_CHECKSUM) for number in entry["crc32"]]
    if len(checksums) != -(-size // piece_bytes):
        raise SettingsError(f"{name} must have a checksum for every {piece_bytes} bytes", value=len(checksums))
    return FileEntry(size, checksums)


def _checked_count(name: str, number: Any, maximum: int) -> int:
    """Return a count after checking its type and range; bool, a subclass of int, is refused."""
    if type(number) is not int or not 0 <= number <= maximum:
        raise SettingsError(f"{name!r} must be a whole number from 0 to {maximum}", value=str(number)[:50])
    return number
