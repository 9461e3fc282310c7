"""Registry of importers: tools by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from crowdveil.errors import ReportsError
from crowdveil.registry import Entry, entries_by_name

if TYPE_CHECKING:
    from crowdveil.answers.importers.export_file import ExportFile
    from crowdveil.answers.importers.importer import Importer

IMPORTER_ENTRIES: Mapping[str, Entry] = entries_by_name(
    Entry("label-studio", "answers.importers.label_studio", "LabelStudio"),
    Entry("argilla", "answers.importers.argilla", "Argilla"),
    Entry("toloka", "answers.importers.toloka", "Toloka"),
    Entry("mturk", "answers.importers.mturk", "MechanicalTurk"),
    Entry("prodigy", "answers.importers.prodigy", "Prodigy"),
    Entry("zooniverse", "answers.importers.zooniverse", "Zooniverse"),
    Entry("doccano", "answers.importers.doccano", "Doccano"),
    Entry("wide", "answers.importers.wide", "Wide"),
)
"""Importers, in the order in which they are asked whether they recognise a file."""
TOOLS = tuple(IMPORTER_ENTRIES)
RECOGNISED_TOOLS = tuple(tool for tool in TOOLS if tool not in ("doccano", "wide"))
"""Tools whose exports are recognised; others are stated."""


def importer_of(tool: str) -> Importer:
    """Return the importer of a tool."""
    return cast("Importer", IMPORTER_ENTRIES[tool].import_class()())


def find_importer(export: ExportFile) -> Importer | None:
    """Return the first importer whose layout a file has, by any delimiter; None if there is none."""
    for one in export.by_each_delimiter:
        with suppress(ReportsError):  # the refusal of the file names its defects
            for importer in map(importer_of, TOOLS):
                if importer.recognises(one.columns):
                    return importer
    return None


def with_recognised_delimiter(export: ExportFile, importer: Importer) -> ExportFile:
    """Return a file with the delimiter by which its columns are those of the importer; else with the most columns."""
    choices = export.by_each_delimiter
    return next(
        (one for one in choices if importer.recognises(one.columns)), max(choices, key=lambda one: len(one.columns))
    )
