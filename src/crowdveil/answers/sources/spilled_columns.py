"""Columns of files of answers, read in batches: codes go to temporary files, and only the names stay in memory."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.arrow_columns import SpilledColumn, lists_as_text
from crowdveil.answers.ingest.column_readers import ReportColumns, report_columns
from crowdveil.answers.ingest.csv_files import BLOCK_BYTES, Progress
from crowdveil.answers.ingest.mapped_codes import ReadingLimit, return_unused_memory
from crowdveil.answers.ingest.row_sources import source_of_files
from crowdveil.display.counts import number_of, size_text
from crowdveil.errors import SettingsError

FILES_IN_BATCHES = frozenset({"text", "parquet", "arrow", "arrow stream"})
"""Forms of files that are read in batches."""
BYTES_OF_BATCHES = 50_000_000
"""Bytes that reading needs beside the names: the text that is parsed ahead, and a group of batches."""
GROUPS_IN_LIMIT = 32
"""Groups of batches that the limit would hold."""
BLOCKS_IN_LIMIT = 128
"""Blocks of text, or of a column of Parquet, each read at once, that the limit would hold."""


class SpilledColumns:
    """Columns of roles, to which the batches of one file after the other are added.

    Batches are coded in groups, also of several files: for each group the names of all before it are hashed again.
    """

    def __init__(self, roles: Sequence[str], limit: ReadingLimit, source: str) -> None:
        self.rows, self._limit = 0, limit
        self._columns = {role: SpilledColumn(limit.folder, source) for role in roles}
        self._group: list[pa.RecordBatch] = []
        self._group_bytes = 0

    def add(self, batches: Iterable[pa.RecordBatch], text: Sequence[str] = ()) -> int:
        """Add batches with a column for each role, of which some become text; return their rows."""
        before, most = self.rows, self._limit.memory // GROUPS_IN_LIMIT
        for batch in batches:
            columns = [
                batch.column(role).cast(pa.string()) if role in text else batch.column(role) for role in self._columns
            ]
            self._group.append(pa.RecordBatch.from_arrays(columns, list(self._columns)))
            self._group_bytes += batch.nbytes
            self.rows += len(batch)
            if self._group_bytes >= most:
                self._code_group()
        return self.rows - before

    def _code_group(self) -> None:
        """Code the batches that are held; there is at least one.

        Raises:
            SettingsError: the names take more memory than the limit.
        """
        table = pa.Table.from_batches(self._group)
        self._group, self._group_bytes = [], 0
        for role, column in self._columns.items():
            column.add(lists_as_text(table[role]) if role == "value" else table[role])
        del table
        return_unused_memory()
        self._refuse_names_beyond_limit()

    def _refuse_names_beyond_limit(self) -> None:
        least = BYTES_OF_BATCHES + sum(column.name_bytes for column in self._columns.values())
        if least > self._limit.memory:
            raise SettingsError(
                f"memory must be more than {size_text(least)} for the names in the first "
                f"{number_of(self.rows, 'answer')}, got {size_text(self._limit.memory)}",
                value=self._limit.memory,
                hint="Raise the limit: names of tasks and workers, and numbers that differ, are held in memory.",
                value_in_rule=True,
            )

    def finish(self, roles: Mapping[str, str], source: str, value_name: str | None) -> ReportColumns:
        """Return the columns; arguments as of `report_columns`."""
        if self._group:
            self._code_group()
        coded = {role: column.finish() for role, column in self._columns.items()}
        return_unused_memory()
        return report_columns(coded, roles, source, value_name)


def spill_files(
    files: Sequence[ExportFile],
    roles: Sequence[Mapping[str, str]],
    limit: ReadingLimit,
    name: str,
    progress: Sequence[Progress | None],
) -> tuple[SpilledColumns, str]:
    """Return the columns of files, of which each has a column for each role, and the source of their rows.

    Args:
        files: of `FILES_IN_BATCHES`, each with the delimiter that it has.
        roles: name of the column of each role, for each file.
        limit: of memory.
        name: of all files.
        progress: function for each file.
    """
    columns, lengths = SpilledColumns(list(roles[0]), limit, name), []
    text, block_bytes = _roles_of_several_types(files, roles), min(BLOCK_BYTES, limit.memory // BLOCKS_IN_LIMIT)
    for file, own, shown in zip(files, roles, progress, strict=True):
        lengths.append(file.read_batches(own, partial(columns.add, text=text), shown, block_bytes))
        if shown is not None:
            size = file.path.stat().st_size
            shown(size, size)
    sources = [file.row_source for file in files]
    return columns, sources[0] if len(files) == 1 else source_of_files(name, sources, lengths)


def _roles_of_several_types(files: Sequence[ExportFile], roles: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the roles whose columns have several types, which then are read as text."""
    return [
        role
        for role in roles[0]
        if len({file.type_of_column(own[role]) for file, own in zip(files, roles, strict=True)}) > 1
    ]
