"""PyBossa: task runs as JSON or CSV; the content of an answer is the project's own."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, final

from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.importer import Importer, Submission
from crowdveil.data.ingest.column_readers import ColumnNames

PREFIXES = ("taskrun__", "task_run__", "")
"""Beginnings of the names of columns; JSON has none."""
INFO = "info"


@final
class PyBossa(Importer):
    """PyBossa's task runs."""

    tool = "pybossa"
    title = "PyBossa"
    expected = "PyBossa's task runs have 'task_id', 'user_id' and 'info'."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are tasks, users and contents."""
        return _column_prefix(columns) is not None

    def submissions(self, export: ExportFile, names: ColumnNames) -> Iterator[Submission]:
        """Yield the task runs; workers without an account are told apart by their address, which is not kept."""
        prefix = _column_prefix(export.columns) or ""
        inner = {
            name: name.removeprefix(f"{prefix}{INFO}").lstrip("_")
            for name in export.columns
            if name.startswith(f"{prefix}{INFO}_")
        }
        for row in export.records:
            yield Submission(
                row.get(f"{prefix}task_id"),
                _or_none(row.get(f"{prefix}user_id")),
                # Presenters of tasks write data of the task beside the answers.
                unsure={key: _or_none(row.get(name)) for name, key in inner.items()}
                or _answers_by_question(row.get(f"{prefix}{INFO}")),
                address=_or_none(row.get(f"{prefix}external_uid")) or _or_none(row.get(f"{prefix}user_ip")),
            )


def _column_prefix(columns: Sequence[str]) -> str | None:
    """Return the beginning of the names of the columns of task runs; None without them."""
    names = set(columns)
    for prefix in PREFIXES:
        if {f"{prefix}task_id", f"{prefix}user_id"} <= names and any(
            name.startswith(prefix + INFO) for name in columns
        ):
            return prefix
    return None


def _or_none(cell: Any) -> Any:
    """Return a cell; None if it holds Python's text for nothing."""
    return None if cell in ("", "None") else cell


def _answers_by_question(info: Any) -> dict[str, Any]:
    """Return the content by question; a content that is no mapping is that of the question `info`."""
    if isinstance(info, str) and info[:1] in ("{", "["):
        with suppress(ValueError):
            info = json.loads(info)
    return {str(key): value for key, value in info.items()} if isinstance(info, Mapping) else {INFO: _or_none(info)}
