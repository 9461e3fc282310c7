"""Tables of a review as CSV files."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from crowdveil.data.identifiers import Identifiers, as_arrow
from crowdveil.data.report_tables import write_table
from crowdveil.files.atomic_write import Outputs, write_outputs


def table_outputs(path: Path, kind: str) -> Outputs:
    """Return a table of one kind, such as "agreement", as outputs."""
    return Outputs(folder=path.parent, names=(path.name,), kind=kind)


def write_columns(path: Path, kind: str, columns: Mapping[str, Identifiers]) -> None:
    """Write columns as a CSV file; nan becomes empty.

    Raises:
        SettingsError: a file of that name is not an earlier table of this kind, or the system refuses to write there.
    """
    table = pa.table({name: as_arrow(column) for name, column in columns.items()})
    write_outputs(table_outputs(path, kind), {path.name: lambda stream: write_table(stream, table)})
