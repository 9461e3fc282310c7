"""File of imported answers: columns task, worker and label, as CSV, Parquet, JSON or JSON lines."""

from pathlib import Path

from crowdveil.data.importers.collecting import ImportedAnswers
from crowdveil.data.report_tables import TABLE_FORMS, TableForm, write_tables
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, write_outputs


def form_of_output(out: Path, form: TableForm | None) -> TableForm:
    """Return the stated form of a file, else that of its name.

    Raises:
        SettingsError: the name has none.
    """
    if form is not None:
        return form
    found = out.suffix.removeprefix(".").lower()
    for known in TABLE_FORMS:
        if known == found:
            return known
    raise SettingsError(
        f"the file must end in .{', .'.join(TABLE_FORMS)}", value=out.name, hint="State the form with --format."
    )


def answers_outputs(out: Path) -> Outputs:
    """Return the file of imported answers as an output."""
    return Outputs(folder=out.parent, names=(out.name,), kind="answers")


def write_answers(out: Path, imported: ImportedAnswers, form: TableForm) -> None:
    """Write imported answers.

    Raises:
        SettingsError: a file of that name is not an earlier one of answers, or the system refuses to write there.
    """
    table = imported.table
    write_outputs(
        answers_outputs(out), {out.name: lambda stream: write_tables(stream, table.schema, lambda: [table], form)}
    )
