"""Encoded blocks: a folder of reports as memory-mapped columns with checksums.

Opening checks the manifest, the size of each file, the identifiers and the task index. Codes and row order are checked
piece by piece on first use. The checksums detect damage, not forgery: a user who can write the folder can write new
ones. A forged folder is read or refused; no number is used before its range is checked.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block
from crowdveil.answers.identifiers import Identifiers, LazyIdentifiers, read_identifiers, write_identifiers
from crowdveil.answers.store_manifest import (
    DATA_FILES,
    INDEX_FILE,
    MANIFEST_FILE,
    NAMES_FILES,
    NEW,
    VALUE_FILE,
    WORKER_FILE,
    FileEntry,
    History,
    Manifest,
    damage_error,
    data_file,
    read_manifest,
    write_manifest,
)
from crowdveil.channels.alphabet import Alphabet, squares_safely
from crowdveil.errors import ReportsError
from crowdveil.files.atomic_write import Outputs, staged_outputs

STORE_FILES = (INDEX_FILE, WORKER_FILE, VALUE_FILE, *NAMES_FILES, MANIFEST_FILE)
"""All files of a folder to which nothing was appended, in writing order; without the last one it holds no blocks."""
BLOCKS = "blocks"
"""Kind of these files as outputs that stand alone."""
PIECE_BYTES = 1 << 22
"""Bytes per checksum."""
ROWS_COMPARED = 1 << 13
"""Rows per pass of the order check; small, because the memory limit of a fit excludes its temporary arrays."""
TASKS_AT_ONCE = 1 << 18
"""Entries of the task index written or checked per pass."""


class ReportChunk(NamedTuple):
    """All rows of consecutive tasks, in canonical order: columns of equal length."""

    task: NDArray[np.integer]
    worker: NDArray[np.integer]
    value: NDArray[Any]


class OpenedReports(NamedTuple):
    """Content of an opened folder."""

    rows: "MappedRows"
    tasks: LazyIdentifiers
    workers: LazyIdentifiers
    alphabet: Alphabet | None


def write_encoded(
    folder: Path,
    chunks: Iterable[ReportChunk],
    tasks: Identifiers,
    workers: Identifiers,
    alphabet: Alphabet | None,
    history: History = NEW,
) -> None:
    """Write all files into an existing folder; memory is bounded by one chunk and in-memory identifiers.

    Args:
        folder: target folder.
        chunks: rows in canonical order.
        tasks, workers: identifiers in code order.
        alphabet: possible values; None for float64 numbers.
        history: files that these rows are from; it decides the names of the files.

    Raises:
        ReportsError: an identifier cannot be written in UTF-8.
    """
    repeats, paths = False, {name: folder / data_file(name, history.appends) for name in DATA_FILES}
    with (
        open(paths[WORKER_FILE], "wb") as worker_stream,
        open(paths[VALUE_FILE], "wb") as value_stream,
        open(paths[INDEX_FILE], "wb") as index_stream,
    ):
        index = _IndexWriter(index_stream)
        for chunk in (chunk for chunk in chunks if len(chunk.task)):
            index.add_ascending_task_codes(chunk.task)
            repeats |= bool(((chunk.task[1:] == chunk.task[:-1]) & (chunk.worker[1:] == chunk.worker[:-1])).any())
            worker_stream.write(np.ascontiguousarray(chunk.worker, dtype="<i4").data)
            value_stream.write(np.ascontiguousarray(chunk.value, dtype=_dtype_of_numbers_or_codes(alphabet)).data)
        index.write_trailing_offsets(len(tasks))
    for name, names in zip(NAMES_FILES, (tasks, workers), strict=True):
        write_identifiers(paths[name], names)
    files = {name: _file_entry(paths[name]) for name in (WORKER_FILE, VALUE_FILE, INDEX_FILE, *NAMES_FILES)}
    counts = {"reports": index.rows, "tasks": len(tasks), "workers": len(workers)}
    rules: dict[str, object] = {"piece_bytes": PIECE_BYTES, "repeats": repeats}
    write_manifest(folder / MANIFEST_FILE, counts, alphabet, files, rules, history)


def save_encoded(
    folder: str | PathLike[str],
    chunks: Iterable[ReportChunk],
    tasks: Identifiers,
    workers: Identifiers,
    alphabet: Alphabet | None,
) -> None:
    """Write atomically as `write_encoded` does, into a folder that is created if absent."""
    with staged_outputs(Outputs(folder=Path(folder), names=STORE_FILES, kind=BLOCKS, remove_stale=True)) as temporary:
        write_encoded(temporary, chunks, tasks, workers, alphabet)


def open_encoded(folder: Path) -> OpenedReports:
    """Open a folder of encoded blocks.

    The manifest, file sizes, identifiers and task index are checked now; workers and values piece by piece on first
    use. If another process appends at this moment, and removes the old columns, the new ones are opened.

    Raises:
        ReportsError: no such folder, another format, or a file that is absent, cut, too long or damaged.
    """
    manifest = read_manifest(folder / MANIFEST_FILE)
    try:
        return _open_columns(folder, manifest)
    except (ReportsError, FileNotFoundError):
        later = read_manifest(folder / MANIFEST_FILE)
        if later.seal == manifest.seal:
            raise
        return _open_columns(folder, later)


def _open_columns(folder: Path, manifest: Manifest) -> OpenedReports:
    """Open the columns that a manifest describes; errors as `open_encoded`."""
    alphabet, reports = manifest.alphabet, manifest.reports
    columns = {
        INDEX_FILE: _Column.map(folder, manifest, INDEX_FILE, np.dtype("<i8"), manifest.tasks + 1, reports + 1),
        WORKER_FILE: _Column.map(folder, manifest, WORKER_FILE, np.dtype("<i4"), reports, manifest.workers),
        VALUE_FILE: _Column.map(
            folder,
            manifest,
            VALUE_FILE,
            _dtype_of_numbers_or_codes(alphabet),
            reports,
            None if alphabet is None else alphabet.size,
        ),
    }
    rows = MappedRows(columns[INDEX_FILE], columns[WORKER_FILE], columns[VALUE_FILE], manifest.repeats)
    if not _ascend_from_zero_to_rows(rows.pointers, reports):
        raise damage_error(rows.index.path, "pointers that do not ascend to the number of reports")
    names = [
        _read_identifiers(folder, manifest, name, count)
        for name, count in zip(NAMES_FILES, (manifest.tasks, manifest.workers), strict=True)
    ]
    return OpenedReports(rows, names[0], names[1], alphabet)


def read_blocks_seal(folder: Path) -> str:
    """Return the seal (SHA-256) that identifies encoded blocks.

    Raises:
        ReportsError: the folder holds no encoded blocks.
    """
    return read_manifest(folder / MANIFEST_FILE).seal


def block_files(folder: Path) -> tuple[str, ...]:
    """Return the names of the files of encoded blocks; those of new ones if there is no readable manifest."""
    try:
        manifest = read_manifest(folder / MANIFEST_FILE)
    except ReportsError:
        return STORE_FILES
    return (*map(manifest.file_name, DATA_FILES), MANIFEST_FILE)


def has_repeated_pairs(folder: Path) -> bool:
    """Return whether encoded blocks may hold several reports of a worker on a task.

    Errors are those of `read_blocks_seal`.
    """
    return read_manifest(folder / MANIFEST_FILE).repeats


@dataclass(frozen=True, eq=False)
class _Column:
    """Memory-mapped file, checked piece by piece on first use.

    Attributes:
        path: the file.
        array: read-only, shape (rows,).
        size: exclusive upper bound of codes; None for numbers, which must satisfy `squares_safely`.
        crcs: CRC-32 of each piece.
        piece_bytes: bytes per checksum; a multiple of the item width.
        checked: pieces that passed the check, shape (pieces,).
    """

    path: Path
    array: NDArray[Any]
    size: int | None
    crcs: list[int]
    piece_bytes: int
    checked: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def map(
        cls, folder: Path, manifest: Manifest, name: str, dtype: np.dtype[Any], rows: int, size: int | None
    ) -> "_Column":
        """Map a file that must have exactly `rows` items."""
        entry, path = manifest.files[name], folder / manifest.file_name(name)
        _refuse_if_size_differs(path, entry.size)
        if entry.size != rows * dtype.itemsize:
            raise damage_error(path, f"{entry.size} bytes for {rows} rows")
        array: NDArray[Any] = np.empty(0, dtype=dtype)
        if rows:
            array = np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)
        checked = np.zeros(len(entry.checksums), dtype=bool)
        return cls(path, array, size, entry.checksums, manifest.piece_bytes, checked)

    def read(self, first: int, stop: int) -> NDArray[Any]:
        """Return rows first .. stop-1 after checking every piece that contains them.

        Raises:
            ReportsError: a piece is damaged or holds a value out of range.
        """
        width = self.piece_bytes // self.array.itemsize
        for piece in range(first // width, -(-stop // width)):
            if not self.checked[piece]:
                self._check_piece(piece, self.array[piece * width : (piece + 1) * width])
        return self.array[first:stop]

    def _check_piece(self, piece: int, held: NDArray[Any]) -> None:
        if zlib.crc32(held.data) != self.crcs[piece]:
            raise damage_error(self.path, f"piece {piece + 1} of {len(self.crcs)} has another checksum")
        good = squares_safely(held).all() if self.size is None else held.min() >= 0 and held.max() < self.size
        if not good:
            raise damage_error(self.path, f"piece {piece + 1} of {len(self.crcs)} holds a value out of range")
        self.checked[piece] = True


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Rows of an opened folder; a piece that is damaged or out of order raises a ReportsError on first use.

    Attributes:
        index, workers, values: the columns.
        repeats: whether a worker may have several rows on a task.
    """

    index: _Column
    workers: _Column
    values: _Column
    repeats: bool

    @property
    def worker(self) -> NDArray[np.int32]:
        """Worker code of each row; checks the whole column."""
        return self._checked_workers_of_rows(0, len(self))

    @property
    def value(self) -> NDArray[Any]:
        """Label code or number of each row; checks the whole column."""
        return self.values.read(0, len(self))

    @cached_property
    def task(self) -> NDArray[np.int32]:
        """Task code of each row; computed in memory, as the folder does not store it. Blocks do not need it."""
        codes = np.arange(len(self.pointers) - 1, dtype=np.int32)
        task = np.repeat(codes, np.diff(self.pointers))
        task.flags.writeable = False
        return task

    @cached_property
    def pointers(self) -> NDArray[np.int64]:
        """Row offset of each task, then the number of rows."""
        return self.index.read(0, len(self.index.array))

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports."""
        ends = self.pointers[first : stop + 1]
        rows = (int(ends[0]), int(ends[-1]))
        return Block(first, stop, ends - ends[0], self._checked_workers_of_rows(*rows), self.values.read(*rows))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.workers.array)

    @cached_property
    def _piece_passed_order_check(self) -> NDArray[np.bool_]:
        """Pieces of `workers` that passed the order check, shape (pieces,)."""
        return np.zeros(len(self.workers.crcs), dtype=bool)

    def _checked_workers_of_rows(self, first: int, stop: int) -> NDArray[np.int32]:
        """Return worker codes of rows first .. stop-1 after checking codes and order of their pieces."""
        found = self.workers.read(first, stop)
        width = self.workers.piece_bytes // found.itemsize
        for piece in range(first // width, -(-stop // width)):
            if not self._piece_passed_order_check[piece]:
                self._check_worker_order_in_piece(piece, max(piece * width - 1, 0), min((piece + 1) * width, len(self)))
        return found

    def _check_worker_order_in_piece(self, piece: int, first: int, stop: int) -> None:
        """Check the order of a piece and the row before it, in runs that overlap by one row."""
        for start in range(first, stop, ROWS_COMPARED):
            end = min(start + ROWS_COMPARED + 1, stop)
            after, before = np.searchsorted(self.pointers, start, "right"), np.searchsorted(self.pointers, end)
            worker = self.workers.array[start:end]
            follows = worker[1:] >= worker[:-1] if self.repeats else worker[1:] > worker[:-1]
            follows[self.pointers[after:before] - start - 1] = True  # the first rows of tasks
            if not follows.all():
                or_repeat = "" if self.repeats else ", or one repeats"
                raise damage_error(
                    self.workers.path, f"piece {piece + 1}: the workers on a task do not ascend{or_repeat}"
                )
        self._piece_passed_order_check[piece] = True


class _IndexWriter:
    """Streaming writer of the task index.

    Attributes:
        rows: rows added so far.
        known: tasks whose row offset is written.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.rows, self.known = stream, 0, 0

    def add_ascending_task_codes(self, task: NDArray[np.integer]) -> None:
        """Add the task codes of the next rows."""
        last = int(task[-1])
        for begin in range(self.known, last + 1, TASKS_AT_ONCE):
            codes = np.arange(begin, min(begin + TASKS_AT_ONCE, last + 1))
            self._write_task_beginnings(self.rows + np.searchsorted(task, codes))
        self.rows += len(task)

    def write_trailing_offsets(self, tasks: int) -> None:
        """Write the offsets of trailing tasks without rows, then the number of rows."""
        while self.known <= tasks:
            self._write_task_beginnings(np.full(min(tasks + 1 - self.known, TASKS_AT_ONCE), self.rows))

    def _write_task_beginnings(self, beginnings: NDArray[np.integer]) -> None:
        self.stream.write(beginnings.astype("<i8").data)
        self.known += len(beginnings)


def _ascend_from_zero_to_rows(pointers: NDArray[np.int64], rows: int) -> bool:
    """Return whether pointers ascend from 0 to the number of rows."""
    if pointers[0] != 0 or pointers[-1] != rows:
        return False
    parts = (pointers[first : first + TASKS_AT_ONCE + 1] for first in range(0, len(pointers) - 1, TASKS_AT_ONCE))
    return all(bool((part[1:] >= part[:-1]).all()) for part in parts)


def _file_entry(path: Path) -> FileEntry:
    """Return the entry of a written file in the manifest."""
    size = path.stat().st_size
    return FileEntry(size, _checksums(path, size, PIECE_BYTES))


def _checksums(path: Path, size: int, piece_bytes: int) -> list[int]:
    """Return the CRC-32 of each piece of a file; memory is bounded by one piece."""
    most = max(min(piece_bytes, size), 1)
    with open(path, "rb") as stream:
        return [zlib.crc32(piece) for piece in iter(lambda: stream.read(most), b"")]


def _dtype_of_numbers_or_codes(alphabet: Alphabet | None) -> np.dtype[Any]:
    return np.dtype("<f8" if alphabet is None else "<i2")


def _read_identifiers(folder: Path, manifest: Manifest, name: str, count: int) -> LazyIdentifiers:
    """Check and map a file of identifiers."""
    entry, path = manifest.files[name], folder / manifest.file_name(name)
    _refuse_if_size_differs(path, entry.size)
    if _checksums(path, entry.size, manifest.piece_bytes) != entry.checksums:
        raise damage_error(path, "another checksum")
    names = read_identifiers(path)
    if len(names) != count:
        raise damage_error(path, f"{len(names)} names, {count} expected")
    return names


def _refuse_if_size_differs(path: Path, size: int) -> None:
    found = path.stat().st_size if path.is_file() else None
    if found != size:
        raise damage_error(path, "no such file" if found is None else f"{found} bytes, {size} expected")
