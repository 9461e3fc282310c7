"""Columns of files of answers, read in batches: codes go to temporary files, and only the names stay in memory."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.arrow_columns import SpilledColumn, lists_as_text
from crowdveil.answers.ingest.column_readers import ReportColumns, report_columns
from crowdveil.answers.ingest.csv_files import BLOCK_BYTES, Progress, header_or_raise, read_csv_batches
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
"""Blocks of text, each parsed at once, that the limit would hold."""
BUFFER_BYTES = 1 << 20
"""Bytes of a column of Parquet that are read at a time."""


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
        """Add batches whose columns are in the order of the roles, of which some become text; return their rows."""
        before, most = self.rows, self._limit.memory // GROUPS_IN_LIMIT
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, list(self._columns))
            for role in text:
                place = named.schema.get_field_index(role)
                named = named.set_column(place, role, named.column(place).cast(pa.string()))
            self._group.append(named)
            self._group_bytes += named.nbytes
            self.rows += len(named)
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
    text = _roles_of_several_types(files, roles)
    for file, own, shown in zip(files, roles, progress, strict=True):
        consume = partial(columns.add, text=text)
        names = list(own.values())
        if file.form == "text":
            header = header_or_raise(file.sniffed.headers, file.delimiter)
            stated = file.delimiter, shown, file.encoding, header, min(BLOCK_BYTES, limit.memory // BLOCKS_IN_LIMIT)
            lengths.append(read_csv_batches(file.sheet_path, names, consume, *stated))
        else:
            lengths.append(consume(file.batches(names, BUFFER_BYTES)))
        if shown is not None:
            size = file.path.stat().st_size
            shown(size, size)
    sources = [file.row_source for file in files]
    return columns, sources[0] if len(files) == 1 else source_of_files(name, sources, lengths)


def _roles_of_several_types(files: Sequence[ExportFile], roles: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the roles whose columns have several types, which then are read as text."""
    schemas = [file.schema for file in files]
    return [
        role
        for role in roles[0]
        if len({schema.field(own[role]).type for schema, own in zip(schemas, roles, strict=True)}) > 1
    ]
