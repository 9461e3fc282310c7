"""Encoded blocks: a folder with reports as columns of codes, memory-mapped when it is opened.

On opening, the manifest, the size of each file, the names and the index of tasks are checked; codes and the order of
rows are checked piece by piece when first used. The checksums find damage, not forgery: whoever can write the folder
can write new ones. A forged folder is read or refused; no number in it is used before its range is checked.
"""

import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, has_valid_magnitude
from crowdveil.data.blocks import Block
from crowdveil.data.identifiers import (
    Identifiers,
    LazyIdentifiers,
    NumberedIdentifiers,
    read_identifiers,
    write_identifiers,
)
from crowdveil.data.store_manifest import (
    INDEX_FILE,
    MANIFEST_FILE,
    NAMES_FILES,
    VALUE_FILE,
    WORKER_FILE,
    FileEntry,
    Manifest,
    PairsWritten,
    damaged,
    read_manifest,
    workers_ascend,
    write_manifest,
)
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, staged_outputs

STORE_FILES = (INDEX_FILE, WORKER_FILE, VALUE_FILE, *NAMES_FILES, MANIFEST_FILE)
"""In the order in which they are put in place: without the last, a folder holds no encoded blocks."""
PIECE_BYTES = 1 << 22
"""Bytes under one checksum."""
ROWS_COMPARED = 1 << 13
"""Rows whose order is checked together: memory limits of fits do not count what the check takes, so it takes little."""
TASKS_AT_ONCE = 1 << 18
"""Entries of the index of tasks written or checked together."""


class ReportChunk(NamedTuple):
    """Some rows in canonical order: columns of equal length."""

    task: NDArray[np.integer]
    worker: NDArray[np.integer]
    value: NDArray[Any]


class OpenedReports(NamedTuple):
    """An opened folder: its rows, and what they speak of."""

    rows: "MappedRows"
    tasks: LazyIdentifiers
    workers: LazyIdentifiers
    alphabet: Alphabet | None


def write_encoded(
    folder: Path, parts: Iterable[ReportChunk], tasks: Identifiers, workers: Identifiers, alphabet: Alphabet | None
) -> None:
    """Write all `STORE_FILES` into a folder that exists; memory follows one part, and names that are held in memory.

    Args:
        folder: where to.
        parts: rows in canonical order, part after part.
        tasks, workers: names in code order.
        alphabet: what a value can be; None for float64 numbers.

    Raises:
        SettingsError: the rows are not in canonical order.
        ReportsError: a name is no text that can be written in UTF-8.
    """
    with ExitStack() as stack:
        streams = [stack.enter_context(open(folder / name, "wb")) for name in (WORKER_FILE, VALUE_FILE, INDEX_FILE)]
        worker_sink, value_sink, index_sink = (_Sealing(stream) for stream in streams)
        index, pairs = _Index(index_sink), PairsWritten()
        for part in (part for part in parts if len(part.task)):
            index.add(part.task)
            pairs.add(part.task, part.worker)
            worker_sink.write(np.ascontiguousarray(part.worker, dtype="<i4"))
            value_sink.write(np.ascontiguousarray(part.value, dtype=_value_type(alphabet)))
        index.end(len(tasks))
    files = {WORKER_FILE: worker_sink.entry(), VALUE_FILE: value_sink.entry(), INDEX_FILE: index_sink.entry()}
    for name, names in zip(NAMES_FILES, (tasks, workers), strict=True):
        write_identifiers(folder / name, names)
        size = (folder / name).stat().st_size
        files[name] = FileEntry(size, _checksums(folder / name, size, PIECE_BYTES))
    counts = {"reports": index.rows, "tasks": len(tasks), "workers": len(workers)}
    numbered = any(isinstance(names, NumberedIdentifiers) for names in (tasks, workers))
    rules: dict[str, object] = {"piece_bytes": PIECE_BYTES, "repeats": pairs.repeats}
    write_manifest(folder / MANIFEST_FILE, counts, alphabet, files, rules, numbered=numbered)


def save_encoded(
    folder: str | PathLike[str],
    parts: Iterable[ReportChunk],
    tasks: Identifiers,
    workers: Identifiers,
    alphabet: Alphabet | None,
) -> None:
    """As `write_encoded`, into a folder that need not exist; the files appear whole or not at all."""
    with staged_outputs(Outputs(folder=Path(folder), names=STORE_FILES, kind="blocks")) as temporary:
        write_encoded(temporary, parts, tasks, workers, alphabet)


def open_encoded(folder: Path, *, verify: bool = False) -> OpenedReports:
    """Open a folder of encoded blocks.

    Checked now: the manifest, the size of every file, the names, and the index of tasks. Checked piece by piece when
    first used, or now under `verify`: workers and values. Many unsorted names are compared under `verify` only.

    Raises:
        ReportsError: no such folder, another format, or a file that is absent, cut, too long or damaged.
    """
    manifest = read_manifest(folder / MANIFEST_FILE)
    alphabet, reports = manifest.alphabet, manifest.reports
    columns = {
        INDEX_FILE: _Column.map(folder, manifest, INDEX_FILE, np.dtype("<i8"), manifest.tasks + 1, reports + 1),
        WORKER_FILE: _Column.map(folder, manifest, WORKER_FILE, np.dtype("<i4"), reports, manifest.workers),
        VALUE_FILE: _Column.map(
            folder, manifest, VALUE_FILE, _value_type(alphabet), reports, None if alphabet is None else alphabet.size
        ),
    }
    rows = MappedRows(columns[INDEX_FILE], columns[WORKER_FILE], columns[VALUE_FILE], manifest.repeats)
    if not _ascends(rows.pointers, reports):
        raise damaged(folder / INDEX_FILE, "pointers that do not ascend to the number of reports")
    names = [
        _read_names(folder, manifest, name, count, verify)
        for name, count in zip(NAMES_FILES, (manifest.tasks, manifest.workers), strict=True)
    ]
    if verify:
        rows.verify()
    return OpenedReports(rows, names[0], names[1], alphabet)


def read_seal(folder: Path) -> str:
    """Return the seal of encoded blocks, which names them: no others have it.

    Raises:
        ReportsError: the folder holds none.
    """
    return read_manifest(folder / MANIFEST_FILE).seal


def has_repeated_pairs(folder: Path) -> bool:
    """Return whether encoded blocks may hold several reports of a worker on a task; errors as `read_seal`."""
    return read_manifest(folder / MANIFEST_FILE).repeats


@dataclass(frozen=True, eq=False)
class _Column:
    """A file as a memory-mapped array, checked piece by piece when it is first used.

    Attributes:
        path: of the file.
        array: read-only, shape (rows,).
        size: codes must be below it, and not negative; None for numbers that `has_valid_magnitude` marks.
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
        cls, folder: Path, manifest: Manifest, name: str, dtype: np.dtype[Any], rows: int, size: int | None
    ) -> "_Column":
        """Map a file that must have exactly `rows` numbers."""
        entry = manifest.files[name]
        _check_size(folder / name, entry.size)
        if entry.size != rows * dtype.itemsize:
            raise damaged(folder / name, f"{entry.size} bytes for {rows} rows")
        array: NDArray[Any] = np.empty(0, dtype=dtype)
        if rows:
            array = np.memmap(folder / name, dtype=dtype, mode="r").view(np.ndarray)
        checked = np.zeros(len(entry.checksums), dtype=bool)
        return cls(folder / name, array, size, entry.checksums, manifest.piece_bytes, checked)

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
            raise damaged(self.path, f"piece {piece + 1} of {len(self.crcs)} has another checksum")
        good = has_valid_magnitude(held).all() if self.size is None else held.min() >= 0 and held.max() < self.size
        if not good:
            raise damaged(self.path, f"piece {piece + 1} of {len(self.crcs)} holds what is no code or number")
        self.checked[piece] = True


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Rows in an opened folder; a piece that is damaged or out of order raises a ReportsError when it is first used.

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
        return self._workers(0, len(self))

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
        return Block(first, stop, ends - ends[0], self._workers(*rows), self.values.part(*rows))

    def verify(self) -> None:
        """Check the whole of the columns, piece by piece.

        Raises:
            ReportsError: a piece is damaged or out of order.
        """
        self._workers(0, len(self))
        self.values.part(0, len(self))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.workers.array)

    @cached_property
    def _ordered(self) -> NDArray[np.bool_]:
        """Pieces of `workers` whose order was found right."""
        return np.zeros(len(self.workers.crcs), dtype=bool)

    def _workers(self, first: int, stop: int) -> NDArray[np.int32]:
        """Return workers of some rows, once all pieces that they lie in were checked, codes first and then order."""
        found = self.workers.part(first, stop)
        width = self.workers.piece_bytes // found.itemsize
        for piece in range(first // width, -(-stop // width)):
            if not self._ordered[piece]:
                self._check_order(piece, max(piece * width - 1, 0), min((piece + 1) * width, len(self)))
        return found

    def _check_order(self, piece: int, first: int, stop: int) -> None:
        """Check a piece of workers, together with the row before it, in runs that share one row with the next."""
        for start in range(first, stop, ROWS_COMPARED):
            end = min(start + ROWS_COMPARED + 1, stop)
            after, before = np.searchsorted(self.pointers, start, "right"), np.searchsorted(self.pointers, end)
            starts = self.pointers[after:before] - start
            if not workers_ascend(self.workers.array[start:end], starts, repeats=self.repeats):
                again = "" if self.repeats else ", or one comes again"
                raise damaged(self.workers.path, f"piece {piece + 1}: the workers on a task do not ascend{again}")
        self._ordered[piece] = True


class _Sealing:
    """A file under checksums."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.size = file, 0
        self.checksums: list[int] = []

    def entry(self) -> FileEntry:
        """Return the entry of the file in the manifest."""
        return FileEntry(self.size, self.checksums)

    def write(self, data: Any) -> None:
        """Write and count; pieces go on where the last write ended."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.file.write(view)
        while len(view):
            inside = self.size % PIECE_BYTES
            held, view = view[: PIECE_BYTES - inside], view[PIECE_BYTES - inside :]
            if inside:
                self.checksums[-1] = zlib.crc32(held, self.checksums[-1])
            else:
                self.checksums.append(zlib.crc32(held))
            self.size += len(held)


class _Index:
    """Where each task's rows begin, written while the rows go by.

    Attributes:
        rows: how many went by.
        known: how many tasks have their beginning written.
    """

    def __init__(self, sink: _Sealing) -> None:
        self.sink, self.rows, self.known = sink, 0, 0

    def add(self, task: NDArray[np.integer]) -> None:
        """Take the task codes of more rows, in order.

        Raises:
            SettingsError: they are not.
        """
        first, last = int(task[0]), int(task[-1])
        if first < self.known - 1:
            raise SettingsError("parts must be written in the order of tasks", value=(self.known - 1, first))
        for begin in range(self.known, last + 1, TASKS_AT_ONCE):
            codes = np.arange(begin, min(begin + TASKS_AT_ONCE, last + 1))
            self._write(self.rows + np.searchsorted(task, codes))
        self.rows += len(task)

    def end(self, tasks: int) -> None:
        """Write the beginnings of tasks without rows at the end, and the number of rows."""
        while self.known <= tasks:
            self._write(np.full(min(tasks + 1 - self.known, TASKS_AT_ONCE), self.rows))

    def _write(self, beginnings: NDArray[np.integer]) -> None:
        self.sink.write(beginnings.astype("<i8"))
        self.known += len(beginnings)


def _ascends(pointers: NDArray[np.int64], rows: int) -> bool:
    """Return whether pointers go from 0 to the number of rows, and never down."""
    if pointers[0] != 0 or pointers[-1] != rows:
        return False
    parts = (pointers[first : first + TASKS_AT_ONCE + 1] for first in range(0, len(pointers) - 1, TASKS_AT_ONCE))
    return all(bool((part[1:] >= part[:-1]).all()) for part in parts)


def _checksums(path: Path, size: int, piece_bytes: int) -> list[int]:
    """Return the CRC-32 of each piece of a file of that size; memory follows the smaller of piece and file."""
    most = max(min(piece_bytes, size), 1)
    with open(path, "rb") as stream:
        return [zlib.crc32(piece) for piece in iter(lambda: stream.read(most), b"")]


def _value_type(alphabet: Alphabet | None) -> np.dtype[Any]:
    return np.dtype("<f8" if alphabet is None else "<i2")


def _read_names(folder: Path, manifest: Manifest, name: str, count: int, verify: bool) -> LazyIdentifiers:
    """Check a file of names, piece by piece, and map it."""
    entry, path = manifest.files[name], folder / name
    _check_size(path, entry.size)
    if _checksums(path, entry.size, manifest.piece_bytes) != entry.checksums:
        raise damaged(path, "another checksum")
    names = read_identifiers(path, verify=verify)
    if len(names) != count:
        raise damaged(path, f"{len(names)} names, {count} expected")
    return names


def _check_size(path: Path, size: int) -> None:
    found = path.stat().st_size if path.is_file() else None
    if found != size:
        raise damaged(path, "no such file" if found is None else f"{found} bytes, {size} expected")
