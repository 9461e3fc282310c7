"""File that says whose each task is, for tables of results."""

from pathlib import Path

from crowdveil.answers.spreadsheets.sheets import file_and_sheet, is_named_as_workbook, sheet_or_file_text
from crowdveil.errors import ReportsError
from crowdveil.standalone.checks import BadTable, read_table, visible_form

TASK_NAMES = ("task", "id")
"""Names of the column of tasks in a file of names: a file of tasks has the second one."""


def read_names_of_tasks(path: Path) -> dict[str, str]:
    """Return whose each task is, by the visible form of its name, from the columns task (or id) and name of a table.

    The table is a CSV file, or a sheet of a workbook.

    Raises:
        ReportsError: an unreadable file, no such columns, or a task twice.
    """
    try:
        is_sheet = is_named_as_workbook(file_and_sheet(path).file)
        header, rows = read_table(sheet_or_file_text(path) if is_sheet else path.read_bytes(), str(path))
    except OSError as error:
        raise ReportsError("the file must be readable", source=str(path), hint=f"{error.strerror or error}.") from error
    except BadTable as error:
        raise ReportsError(f"line {error.line}: {error.rule}", source=str(path), hint=error.hint) from error
    tasks = [name for name in header if name in TASK_NAMES]
    if len(tasks) != 1 or header.count("name") != 1:
        rule = "a file of names has one column task (or id) and one column name"
        raise ReportsError(rule, source=str(path), examples=", ".join(header)[:200])
    found: dict[str, str] = {}
    for line, row in rows.items():
        task = row[header.index(tasks[0])]
        if found.setdefault(visible_form(task), name := row[header.index("name")]) != name:
            raise ReportsError(f"line {line}: a task has one name", source=str(path), examples=task)
    return found
