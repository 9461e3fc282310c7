"""Encoded blocks: a folder with reports as columns of codes, memory-mapped when it is opened.

`blocks.json` states format, sizes, alphabet and a CRC-32 for every few megabytes of every file. On opening, its seal,
the size of each file, the names and the index of tasks are checked; codes are checked piece by piece when first used.
The checksums find damage, not forgery: whoever can write the folder can write new ones.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.blocks import Block
from crowdveil.certificate import digest
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.labels import Alphabet, alphabet_from_json, alphabet_to_json
from crowdveil.placing import placed

FORMAT = "crowdveil-blocks/1"
MANIFEST_FILE = "blocks.json"
INDEX_FILE, WORKER_FILE, VALUE_FILE = "pointers.i64", "worker.i32", "value.bin"
NAMES_FILES = ("tasks.arrow", "workers.arrow")
FILES = (INDEX_FILE, WORKER_FILE, VALUE_FILE, *NAMES_FILES, MANIFEST_FILE)
"""In the order in which they are put in place: without the last, a folder holds no encoded blocks."""
PIECE_BYTES = 1 << 22
"""Bytes under one checksum."""
FIELDS = {"format", "reports", "tasks", "workers", "alphabet", "piece_bytes", "files", "sha256"}
WAY_OUT = "Encode the reports again (crowdveil encode)."


class Part(NamedTuple):
    """Some rows in canonical order: columns of equal length."""

    task: NDArray[np.integer]
    worker: NDArray[np.integer]
    value: NDArray[Any]


class Opened(NamedTuple):
    """An opened folder: its rows, and what they speak of."""

    rows: "Stored"
    tasks: NDArray[Any]
    workers: NDArray[Any]
    alphabet: Alphabet | None


def write_encoded(
    folder: Path, parts: Iterable[Part], tasks: NDArray[Any], workers: NDArray[Any], alphabet: Alphabet | None
) -> None:
    """Write all `FILES` into a folder that exists; memory follows one part, the tasks and the workers.

    Args:
        folder: where to.
        parts: rows in canonical order, part after part.
        tasks, workers: names in code order.
        alphabet: what a value can be; None for float64 numbers.

    Raises:
        SettingsError: the parts are not in order.
        ReportsError: a name is no text that can be written in UTF-8.
    """
    per_task = np.zeros(len(tasks), dtype=np.int64)
    with open(folder / WORKER_FILE, "wb") as worker_file, open(folder / VALUE_FILE, "wb") as value_file:
        worker_sink, value_sink = _Sealing(worker_file), _Sealing(value_file)
        last = -1
        for part in (part for part in parts if len(part.task)):
            first, stop = int(part.task[0]), int(part.task[-1]) + 1
            if first < last:
                raise SettingsError("parts must be written in the order of tasks", value=(last, first))
            last = stop - 1
            per_task[first:stop] += np.bincount(part.task - first, minlength=stop - first)
            worker_sink.write(np.ascontiguousarray(part.worker, dtype="<i4"))
            value_sink.write(np.ascontiguousarray(part.value, dtype=_value_type(alphabet)))
    pointers = np.concatenate(([0], np.cumsum(per_task))).astype("<i8")
    files = {WORKER_FILE: worker_sink.entry, VALUE_FILE: value_sink.entry}
    files[INDEX_FILE] = _write_sealed(folder / INDEX_FILE, pointers)
    for name, names in zip(NAMES_FILES, (tasks, workers), strict=True):
        files[name] = _write_sealed(folder / name, _names_bytes(names, name))
    sizes = {"reports": int(pointers[-1]), "tasks": len(tasks), "workers": len(workers)}
    _write_manifest(folder / MANIFEST_FILE, sizes, alphabet, files)


def save_encoded(
    folder: str | PathLike[str],
    parts: Iterable[Part],
    tasks: NDArray[Any],
    workers: NDArray[Any],
    alphabet: Alphabet | None,
) -> None:
    """As `write_encoded`, into a folder that need not exist; the files appear whole or not at all."""
    with placed(folder, FILES) as temporary:
        write_encoded(temporary, parts, tasks, workers, alphabet)
        Path(folder, MANIFEST_FILE).unlink(missing_ok=True)


def open_encoded(folder: Path) -> Opened:
    """Open a folder of encoded blocks; what is checked now and what later, the module says.

    Raises:
        ReportsError: no such folder, another format, or a file that is absent, cut, too long or damaged.
    """
    manifest = _read_manifest(folder / MANIFEST_FILE)
    alphabet = None if manifest["alphabet"] is None else alphabet_from_json(manifest["alphabet"])
    reports, tasks = manifest["reports"], manifest["tasks"]
    columns = {
        INDEX_FILE: _Column.map(folder, manifest, INDEX_FILE, np.dtype("<i8"), tasks + 1, reports + 1),
        WORKER_FILE: _Column.map(folder, manifest, WORKER_FILE, np.dtype("<i4"), reports, manifest["workers"]),
        VALUE_FILE: _Column.map(
            folder, manifest, VALUE_FILE, _value_type(alphabet), reports, None if alphabet is None else alphabet.size
        ),
    }
    rows = Stored(columns[INDEX_FILE], columns[WORKER_FILE], columns[VALUE_FILE])
    ends = rows.pointers
    if ends[0] != 0 or ends[-1] != reports or (np.diff(ends) < 0).any():
        raise _damaged(folder / INDEX_FILE, "pointers that do not ascend to the number of reports")
    names = [
        _read_names(folder, manifest, name, manifest[what])
        for name, what in zip(NAMES_FILES, ("tasks", "workers"), strict=True)
    ]
    return Opened(rows, names[0], names[1], alphabet)


@dataclass(frozen=True, eq=False)
class _Column:
    """A file as a memory-mapped array, checked piece by piece when it is first used.

    Attributes:
        path: of the file.
        array: read-only, shape (rows,).
        size: codes must be below it, and not negative; None for finite numbers of any size.
        crcs: checksum of each piece.
        piece_bytes: bytes under one checksum; a multiple of the width of a number.
        checked: which pieces were found whole.
    """

    path: Path
    array: NDArray[Any]
    size: int | None
    crcs: list[int]
    piece_bytes: int
    checked: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def map(
        cls, folder: Path, manifest: dict[str, Any], name: str, dtype: np.dtype[Any], rows: int, size: int | None
    ) -> "_Column":
        """Map a file that must have exactly `rows` numbers."""
        entry, piece_bytes = manifest["files"][name], manifest["piece_bytes"]
        _check_size(folder / name, entry["bytes"])
        if entry["bytes"] != rows * dtype.itemsize or len(entry["crc32"]) != -(-entry["bytes"] // piece_bytes):
            raise _damaged(folder / name, f"{entry['bytes']} bytes for {rows} rows")
        array: NDArray[Any] = np.empty(0, dtype=dtype)
        if rows:
            array = np.memmap(folder / name, dtype=dtype, mode="r").view(np.ndarray)
        return cls(folder / name, array, size, entry["crc32"], piece_bytes, np.zeros(len(entry["crc32"]), dtype=bool))

    def part(self, first: int, stop: int) -> NDArray[Any]:
        """Return some rows, once every piece that they lie in was checked.

        Raises:
            ReportsError: a piece is damaged, or holds what is no code.
        """
        width = self.piece_bytes // self.array.itemsize
        for piece in range(first // width, -(-stop // width)):
            if not self.checked[piece]:
                self._check(piece, self.array[piece * width : (piece + 1) * width])
        return self.array[first:stop]

    def _check(self, piece: int, held: NDArray[Any]) -> None:
        if zlib.crc32(held.data) != self.crcs[piece]:
            raise _damaged(self.path, f"piece {piece + 1} of {len(self.crcs)} has another checksum")
        good = np.isfinite(held).all() if self.size is None else held.min() >= 0 and held.max() < self.size
        if not good:
            raise _damaged(self.path, f"piece {piece + 1} of {len(self.crcs)} holds what is no code or number")
        self.checked[piece] = True


@dataclass(frozen=True, eq=False)
class Stored:
    """Rows in an opened folder; a piece that is damaged raises a ReportsError when it is first used."""

    index: _Column
    workers: _Column
    values: _Column

    @property
    def worker(self) -> NDArray[np.int32]:
        """Worker code of each row; checks the whole column."""
        return self.workers.part(0, len(self))

    @property
    def value(self) -> NDArray[Any]:
        """Label code or number of each row; checks the whole column."""
        return self.values.part(0, len(self))

    @cached_property
    def task(self) -> NDArray[np.int32]:
        """Task code of each row; not in the folder, so that it takes memory: blocks do without."""
        codes = np.arange(len(self.pointers) - 1, dtype=np.int32)
        task = np.repeat(codes, np.diff(self.pointers))
        task.flags.writeable = False
        return task

    @cached_property
    def pointers(self) -> NDArray[np.int64]:
        """Where each task's rows begin, and the number of rows."""
        return self.index.part(0, len(self.index.array))

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports."""
        ends = self.pointers[first : stop + 1]
        rows = (int(ends[0]), int(ends[-1]))
        return Block(first, stop, ends - ends[0], self.workers.part(*rows), self.values.part(*rows))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.workers.array)


class _Sealing:
    """A file under checksums: `entry` is what the manifest says of it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.entry: dict[str, Any] = {"bytes": 0, "crc32": []}

    def write(self, data: Any) -> None:
        """Write and count; pieces go on where the last write ended."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.file.write(view)
        while len(view):
            inside = self.entry["bytes"] % PIECE_BYTES
            held, view = view[: PIECE_BYTES - inside], view[PIECE_BYTES - inside :]
            if inside:
                self.entry["crc32"][-1] = zlib.crc32(held, self.entry["crc32"][-1])
            else:
                self.entry["crc32"].append(zlib.crc32(held))
            self.entry["bytes"] += len(held)


def _write_sealed(path: Path, data: Any) -> dict[str, Any]:
    with open(path, "wb") as file:
        sink = _Sealing(file)
        sink.write(data)
    return sink.entry


def _write_manifest(path: Path, sizes: dict[str, int], alphabet: Alphabet | None, files: dict[str, Any]) -> None:
    described = None if alphabet is None else alphabet_to_json(alphabet)
    manifest: dict[str, object] = {"format": FORMAT, **sizes, "alphabet": described}
    manifest |= {"piece_bytes": PIECE_BYTES, "files": files}
    text = json.dumps({**manifest, "sha256": digest(manifest)}, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _value_type(alphabet: Alphabet | None) -> np.dtype[Any]:
    return np.dtype("<f8" if alphabet is None else "<i2")


def _names_bytes(names: NDArray[Any], source: str) -> bytes:
    """Return names as an Arrow file with one column: whole numbers as they are, all else as text."""
    try:
        column: Any = pa.array(names) if names.dtype.kind in "iu" else pa.array(names.tolist(), pa.large_string())
    except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
        raise ReportsError("names must be whole numbers or text", source=source, examples=str(error)[:200]) from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema([("name", column.type)])) as writer:
        writer.write_batch(pa.record_batch([column], names=["name"]))
    return sink.getvalue().to_pybytes()


def _read_names(folder: Path, manifest: dict[str, Any], name: str, count: int) -> NDArray[Any]:
    entry, path = manifest["files"][name], folder / name
    _check_size(path, entry["bytes"])
    data = path.read_bytes()
    pieces = [data[at : at + manifest["piece_bytes"]] for at in range(0, len(data), manifest["piece_bytes"])]
    if [zlib.crc32(piece) for piece in pieces] != entry["crc32"]:
        raise _damaged(path, "another checksum")
    names = pa.ipc.open_file(pa.BufferReader(data)).read_all()["name"].combine_chunks()
    if len(names) != count:
        raise _damaged(path, f"{len(names)} names, {count} expected")
    return names.to_numpy(zero_copy_only=False)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ReportsError(
            f"a folder of encoded blocks must have a readable {MANIFEST_FILE}",
            source=str(path.parent),
            examples=str(error)[:200],
            way_out=WAY_OUT,
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReportsError(
            f"encoded blocks must have format {FORMAT!r}",
            source=str(path),
            examples=repr(manifest.get("format") if isinstance(manifest, dict) else manifest)[:200],
            way_out=f"{WAY_OUT[:-1]}, with this version.",
        )
    if set(manifest) != FIELDS or manifest["sha256"] != digest(manifest):
        raise _damaged(path, "the seal does not match: it was changed or cut")
    return manifest


def _check_size(path: Path, size: int) -> None:
    found = path.stat().st_size if path.is_file() else None
    if found != size:
        raise _damaged(path, "no such file" if found is None else f"{found} bytes, {size} expected")


def _damaged(path: Path, found: str) -> ReportsError:
    return ReportsError("encoded blocks must be whole", source=str(path), examples=found, way_out=WAY_OUT)
