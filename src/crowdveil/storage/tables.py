"""Tables of reviews and workers as CSV, or as a spreadsheet."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from crowdveil.answers.identifiers import TEXTS, Identifiers, identifiers_as_arrow
from crowdveil.answers.write_reports import (
    NAMES_LOOKED_AT,
    TableForm,
    formula_names_warning,
    require_form,
    write_table,
)
from crowdveil.files.atomic_write import Outputs, write_outputs


def write_columns(outputs: Outputs, columns: Mapping[str, Identifiers]) -> tuple[str, ...]:
    """Write columns as the only file of the outputs, .xlsx or CSV by its name; nan becomes empty.

    Returns a warning of a text that a spreadsheet reads as a formula; empty without any.

    Raises:
        SettingsError: a file of that name is not an earlier table of this kind, or the system refuses to write there.
    """
    table = pa.table({name: identifiers_as_arrow(column) for name, column in columns.items()})
    form = table_form(Path(outputs.names[0]))
    write_outputs(outputs, {outputs.names[0]: lambda stream: write_table(stream, table, form)})
    texts = (column[:NAMES_LOOKED_AT].to_pylist() for column in table.columns if column.type in TEXTS)
    return formula_names_warning(form, *texts)


def table_form(path: Path) -> TableForm:
    """Return the form of a table by the end of its name, .xlsx or CSV.

    Raises:
        SettingsError: what writes this form is not installed.
    """
    form: TableForm = "xlsx" if path.suffix.lower() == ".xlsx" else "csv"
    require_form(form)
    return form
