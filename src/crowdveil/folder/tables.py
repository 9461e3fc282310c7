"""Tables of reviews and workers as CSV, or as a spreadsheet."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from crowdveil.data.identifiers import Identifiers, identifiers_as_arrow
from crowdveil.data.write_reports import TableForm, require_form, write_table
from crowdveil.files.atomic_write import Outputs, write_outputs


def write_columns(outputs: Outputs, columns: Mapping[str, Identifiers]) -> None:
    """Write columns as the only file of the outputs, .xlsx or CSV by its name; nan becomes empty.

    Raises:
        SettingsError: a file of that name is not an earlier table of this kind, or the system refuses to write there.
    """
    table = pa.table({name: identifiers_as_arrow(column) for name, column in columns.items()})
    form = table_form(Path(outputs.names[0]))
    write_outputs(outputs, {outputs.names[0]: lambda stream: write_table(stream, table, form)})


def table_form(path: Path) -> TableForm:
    """Return the form of a table by the end of its name, .xlsx or CSV.

    Raises:
        SettingsError: what writes this form is not installed.
    """
    form: TableForm = "xlsx" if path.suffix.lower() == ".xlsx" else "csv"
    require_form(form)
    return form
