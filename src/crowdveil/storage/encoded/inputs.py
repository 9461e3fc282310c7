"""Files that encoded blocks hold, as their manifest lists them."""

import os
from pathlib import Path

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.sources.answer_source import AnswerSource, local_source
from crowdveil.answers.sources.local_copies import url_without_credentials
from crowdveil.answers.store_manifest import MANIFEST_FILE, EncodedFile, read_manifest
from crowdveil.files.filesystem import scheme_of


def encoded_files(source: Path | AnswerSource, folder: Path) -> tuple[EncodedFile, ...]:
    """Return the files of a source as the manifest of blocks in a folder lists them; of blocks, those that they list.

    Raises:
        ReportsError: a file cannot be read.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    if opened.is_block_folder:
        return read_manifest(opened.path / MANIFEST_FILE).history.inputs
    return tuple(
        EncodedFile(_recorded_name(file, folder), file.path.stat().st_size, content_digest(file.path))
        for file in opened.files
    )


def _recorded_name(file: ExportFile, folder: Path) -> str:
    """Return the path relative to the folder; of a copy, what the user named, without a password."""
    if file.name == str(file.path):
        name = Path(os.path.relpath(file.path, folder)).as_posix()
    else:
        name = url_without_credentials(file.name) if scheme_of(file.name) else file.name
    return os.fsencode(name).decode("utf-8", "replace")
