"""Options of reading that the record of a folder of results keeps, so that verbs on results read the reports again.

The record names local files, by paths relative to the folder, and data sets. Standard input cannot be read twice, and
an address may hold a password: neither is recorded.
"""

import json
import os
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any, Self

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.answers.sources.location import DATASET, STDIN, Layout, database_and_table
from crowdveil.channels.alphabet import alphabet_from_json, alphabet_to_json
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
from crowdveil.files.output_record import read_record
from crowdveil.standalone.verification import parse_json
from crowdveil.storage.estimate_files import INFER_AGAIN, estimate_names, recorded_ranks
from crowdveil.storage.evidence import NO_OPTIONS, EvidenceOptions

PATHS = ("certificate", "tasks", "workers")
"""Options that name a file."""
ADDRESS = "://"
"""Part of every source that is an address."""


@dataclass(frozen=True, kw_only=True)
class NamedReports:
    """Reports by the names of their sources, and how they are read.

    Attributes:
        sources: names, as `open_source` takes them.
        layout: what the user stated of their layout.
        options: as `read_evidence` takes them.
        reports_sha256: `Evidence.sha256` in the record of an estimate; empty without one.
    """

    sources: tuple[str, ...]
    layout: Layout
    options: EvidenceOptions
    reports_sha256: str = ""

    def portable_json(self, folder: Path) -> str:
        """Return the reading as JSON text, with paths relative to an output folder; empty if it cannot be repeated."""
        if any(ADDRESS in source or source == STDIN for source in self.sources):
            return ""
        names = {name: value for name, value in asdict(self.layout.names).items() if value is not None}
        layout = {f"{name}_column": value for name, value in names.items()}
        stated = {name: value for name, value in asdict(self.layout).items() if name != "names"}
        layout |= {name: value for name, value in stated.items() if value != getattr(Layout(), name)}
        data = {
            "sources": [_relative_path_or_dataset_name(source, folder) for source in self.sources],
            "layout": layout,
        }
        return json.dumps(data | {"options": _changed_options(self.options, folder)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, folder: Path, reports_sha256: str) -> Self:
        """Return the reading in the record of a folder.

        Raises:
            SettingsError: it is damaged.
        """
        try:
            data = parse_json(text.encode())
            stated = dict(data["layout"])
            names = {
                name: stated.pop(f"{name}_column", None) for name in ("task", "worker", "label", "value", "weight")
            }
            sources = tuple(_path_of_source_in_folder(source, folder) for source in data["sources"])
            layout = Layout(names=ColumnNames(**names), **stated)
            if not sources:
                raise ValueError("there is no source")
            return cls(
                sources=sources,
                layout=layout,
                options=_options_from_json(data["options"], folder),
                reports_sha256=reports_sha256,
            )
        except (CrowdveilError, ValueError, TypeError, KeyError, AttributeError) as error:
            rule = "the record of a folder must say how its reports were read"
            raise SettingsError(rule, value=str(folder), hint=INFER_AGAIN) from error

    def require_same_reports(self, evidence: Evidence, source: AnswerSource) -> None:
        """Refuse reports other than those of the estimate.

        Raises:
            ReportsError: the digest differs.
        """
        if evidence.sha256 != self.reports_sha256:
            raise ReportsError(
                "the reports must be those from which the truths in the folder were inferred",
                source=source.name,
                hint="They were changed since: name the reports themselves, or run `infer` again.",
            )

    @property
    def source_files_exist(self) -> bool:
        """Whether the files are where the record says."""
        return all(
            source.startswith(DATASET) or Path(source.partition("?")[0]).exists() or glob(source, recursive=True)
            for source in self.sources
        )


def recorded_reports(folder: Path) -> NamedReports | None:
    """Return the reports of the estimate or ranking in a folder as its record names them; None without any.

    Raises:
        SettingsError: the record is damaged.
        ReportsError: as `estimate_names` and `recorded_ranks`.
    """
    names = estimate_names(folder) if folder.is_dir() else None
    entries = [] if names is None else [entry for entry in read_record(folder) if entry.name == names[0]]
    ranks = recorded_ranks(folder) if names is None and folder.is_dir() else None
    entries += [] if ranks is None else [ranks]
    if not entries or not entries[0].reading or not entries[0].reports_sha256:
        return None
    return NamedReports.from_json(entries[0].reading, folder, entries[0].reports_sha256)


def _relative_path_or_dataset_name(source: str, folder: Path) -> str:
    path, rest = _path_and_query(source)
    return source if source.startswith(DATASET) else Path(os.path.relpath(path, folder)).as_posix() + rest


def _path_and_query(source: str) -> tuple[str, str]:
    """Return the path of a source, and what follows the path of a database: its table or query, which is no path."""
    if database_and_table(source) is None:
        return source, ""
    path, mark, rest = source.partition("?")
    return path, mark + rest


def _path_of_source_in_folder(source: Any, folder: Path) -> str:
    if not isinstance(source, str) or source in ("", STDIN) or ADDRESS in source:
        raise ValueError("a source is a file")
    path, rest = _path_and_query(source)
    return source if source.startswith(DATASET) else os.path.normpath(folder / path) + rest


def _changed_options(reading: EvidenceOptions, folder: Path) -> dict[str, Any]:
    """Return the options that are not the default as JSON values."""
    given = {name: value for name, value in vars(reading).items() if value != getattr(NO_OPTIONS, name)}
    if reading.alphabet is not None:
        given["alphabet"] = alphabet_to_json(reading.alphabet)
    for name in PATHS:
        if given.get(name) is not None:
            given[name] = _relative_path_or_dataset_name(str(given[name]), folder)
    return given


def _options_from_json(options: dict[str, Any], folder: Path) -> EvidenceOptions:
    """Return the options; TypeError for an unknown one."""
    alphabet, paths = options.get("alphabet"), {name: options.get(name) for name in PATHS}
    stated = {
        "alphabet": None if alphabet is None else alphabet_from_json(alphabet),
        **{
            name: None if path is None else Path(_path_of_source_in_folder(path, folder))
            for name, path in paths.items()
        },
        "truths": tuple(map(str, options.get("truths", ()))),
    }
    return EvidenceOptions(**options | stated)
