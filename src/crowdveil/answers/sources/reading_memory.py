"""Memory that reading files of answers takes, estimated from their sizes before anything is read, and its limit.

A row of a table took 170 to 195 bytes at the peak of reading a million rows as CSV, gzipped CSV and Parquet: the parsed
columns, their codes and the sorted order.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import SEEK_END
from pathlib import Path
from tempfile import gettempdir

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.mapped_codes import ReadingLimit
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.answers.sources.spilled_columns import BYTES_OF_BATCHES
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.display.counts import size_text
from crowdveil.errors import SettingsError
from crowdveil.files.filesystem import temporary_folder
from crowdveil.hints import command_advice

BYTES_PER_ROW, COPIES_OF_TEXT, LONGEST_TEXT = 150, 2, 100
"""Bytes per row at the peak of reading, beside two copies of its text; text above a length is in columns not read."""
SAMPLE_BYTES = 1 << 22
"""Text at the start of a file that tells the length of a row, and how far a file is compressed."""
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@contextmanager
def read_within_memory(
    source: AnswerSource, memory: int | None, alphabet: Alphabet | None = None
) -> Iterator[AnswerSource]:
    """Yield a source whose files are read within a limit in bytes: at once if they fit, else in batches.

    Temporary files of batches are removed with the context. Encoded blocks and data sets are not read at once.

    Args:
        source: the source.
        memory: the limit; None for none.
        alphabet: what is stated of the answers; numbers are put on a scale at once.

    Raises:
        SettingsError: the limit is below what reading needs at least.
    """
    least = 0 if memory is None else _bytes_to_read(source.files)
    if memory is None or least <= memory:
        yield source
    elif not isinstance(alphabet, Scale) and source.is_readable_in_batches:
        _refuse_below(BYTES_OF_BATCHES, memory, "Raise the limit.")
        with _unused_memory_returned(), temporary_folder(Path(gettempdir())) as folder:
            yield replace(source, limit=ReadingLimit(folder, memory))
    else:
        encode = command_advice("on a larger machine encode them (crowdveil data encode)", "use Reports.save there")
        _refuse_below(
            least,
            memory,
            "Raise the limit: exports, JSON, questions, choices, confidences and scales are read at once. Or "
            f"{encode} and infer from the blocks.",
        )


@contextmanager
def _unused_memory_returned() -> Iterator[None]:
    """Let Arrow use the allocator of the system, which returns what is freed; its own keeps as much as was used."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _refuse_below(least: int, memory: int, hint: str) -> None:
    if memory < least:
        raise SettingsError(
            f"memory must be about {size_text(least)} or more to read these files, got {size_text(memory)}",
            value=memory,
            hint=hint,
            value_in_rule=True,
        )


def _bytes_to_read(files: Sequence[ExportFile]) -> int:
    return sum(_bytes_to_read_file(file.path) for file in files)


def _bytes_to_read_file(path: Path) -> int:
    """Return the estimate of one file; 0 for one that reading will refuse."""
    try:
        if path.suffix.lower() == ".parquet":
            rows = pq.ParquetFile(path).metadata.num_rows
            return int(rows) * (BYTES_PER_ROW + COPIES_OF_TEXT * LONGEST_TEXT // 4)
        text, start = _size_and_start_of_text(path)
    except (OSError, pa.ArrowException):
        return 0
    length = max(1.0, len(start) / max(1, start.count(b"\n")))
    return int(text / length * (BYTES_PER_ROW + COPIES_OF_TEXT * min(length, LONGEST_TEXT)))


def _size_and_start_of_text(path: Path) -> tuple[float, bytes]:
    """Return the size of the unpacked text, in proportion to its start, and the start."""
    size, codec = path.stat().st_size, CODECS.get(path.suffix.lower())
    with path.open("rb") as raw:
        if codec is None:
            return size, raw.read(SAMPLE_BYTES)
        raw.seek(-4, SEEK_END)
        # A gzipped file ends with the size of its content, modulo 2^32.
        stated = int.from_bytes(raw.read(), "little") if codec == "gzip" else 0
        raw.seek(0)
        with pa.CompressedInputStream(raw, codec) as unpacked:
            start = unpacked.read(SAMPLE_BYTES)
            return max(stated, size * len(start) / max(1, raw.tell())), start
