"""Registry of importers: tools by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from crowdveil.registry import Entry, entries_by_command_line_name

if TYPE_CHECKING:
    from crowdveil.data.importers.export_file import ExportFile
    from crowdveil.data.importers.importer import Importer

IMPORTER_ENTRIES: Mapping[str, Entry] = entries_by_command_line_name(
    Entry("label-studio", "data.importers.label_studio", "LabelStudio"),
    Entry("argilla", "data.importers.argilla", "Argilla"),
    Entry("toloka", "data.importers.toloka", "Toloka"),
    Entry("mturk", "data.importers.mturk", "MechanicalTurk"),
    Entry("prodigy", "data.importers.prodigy", "Prodigy"),
    Entry("wide", "data.importers.wide", "Wide"),
)
"""Importers, in the order in which they are asked whether they recognise a file."""
TOOLS = tuple(IMPORTER_ENTRIES)


def importer_of(tool: str) -> Importer:
    """Return the importer of a tool."""
    return cast("Importer", IMPORTER_ENTRIES[tool].import_class()())


def find_importer(export: ExportFile) -> Importer | None:
    """Return the first importer whose layout a file has; None if there is none."""
    return next((one for one in map(importer_of, TOOLS) if one.recognises(export.columns)), None)
