"""Tables of reviews, links and workers as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from crowdveil.data.identifiers import Identifiers, as_arrow
from crowdveil.data.write_reports import write_table
from crowdveil.files.atomic_write import Outputs, write_outputs


def write_columns(outputs: Outputs, columns: Mapping[str, Identifiers]) -> None:
    """Write columns as a CSV file, the only one of the outputs; nan becomes empty.

    Raises:
        SettingsError: a file of that name is not an earlier table of this kind, or the system refuses to write there.
    """
    table = pa.table({name: as_arrow(column) for name, column in columns.items()})
    write_outputs(outputs, {outputs.names[0]: lambda stream: write_table(stream, table)})


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a CSV file with quotes where needed."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()
