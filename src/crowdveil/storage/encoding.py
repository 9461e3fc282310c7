"""Conversion of a file of reports to a folder of encoded blocks, which is opened without parsing."""

from pathlib import Path

from crowdveil.answers.columnar_store import STORE_FILES, write_encoded
from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.answers.store_manifest import NEW, History
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, staged_outputs
from crowdveil.storage.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    CrowdRecord,
    crowd_of_blocks,
    report_directory,
    sha256_hex,
)
from crowdveil.storage.encoded.inputs import encoded_files
from crowdveil.storage.evidence import NO_OPTIONS, EvidenceOptions, evidence_files, read_evidence
from crowdveil.storage.write_collection import collection_outputs

COPIED_FILES = (CERTIFICATE_FILE, ASSIGNMENT_FILE, CROWD_FILE)


def encode(
    source: Path | AnswerSource,
    out: Path,
    reading: EvidenceOptions = NO_OPTIONS,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> tuple[Reports, tuple[str, ...]]:
    """Write reports and their collection files as encoded blocks; return the opened blocks, with warnings.

    Args:
        source: file, other encoded blocks, or any opened source; read and checked as for inference.
        out: folder for the blocks, and for `crowd.json`, `certificate.json` and `assignment.csv` if they exist.
        reading, progress: as `read_evidence`.
        replace: whether an earlier collection in the folder is removed.

    Raises:
        ReportsError, CertificateError: as `read_evidence`.
        SettingsError: the folder cannot be written, is the input folder, or holds another collection.
    """
    outputs = encoded_outputs(source, out, replace=replace)
    outputs.check_replaced_files(inputs=evidence_files(source))
    evidence = read_evidence(source, reading, progress=progress)
    reports = evidence.reports
    beside = _folder_unless_several_files(source)
    copied = {} if beside is None else {name: (beside / name).read_bytes() for name in _existing_files_to_copy(beside)}
    with staged_outputs(outputs) as temporary:
        for name, contents in copied.items():
            (temporary / name).write_bytes(contents)
        # Nothing is appended to the reports of a collection, whose crowd.json names their digest.
        plain = not copied and evidence.collection is None
        history = History(inputs=encoded_files(source, out)) if plain else NEW
        write_encoded(temporary, reports.chunks(), reports.tasks, reports.workers, reports.alphabet, history)
        if evidence.collection is not None:
            crowd = CrowdRecord(
                collection=evidence.collection,
                tasks=None,
                workers=None,
                alphabet=reports.alphabet,
                assignment_sha256=sha256_hex(copied[ASSIGNMENT_FILE]) if evidence.assignment is not None else None,
            )
            (temporary / CROWD_FILE).write_bytes(crowd_of_blocks(crowd, temporary).to_json_bytes())
    return Reports.open(out), evidence.notes


def _folder_unless_several_files(source: Path | AnswerSource) -> Path | None:
    """Return the folder of the files of a collection; None for several files."""
    path = source.collection_path if isinstance(source, AnswerSource) else source
    return None if path is None else report_directory(path)


def _existing_files_to_copy(folder: Path) -> list[str]:
    return [name for name in COPIED_FILES if (folder / name).is_file()]


def encoded_outputs(source: Path | AnswerSource, out: Path, *, replace: bool) -> Outputs:
    """Return the outputs of `data encode`: blocks and copied collection files.

    Raises:
        SettingsError: the output folder is the input folder.
    """
    beside = _folder_unless_several_files(source)
    if beside is not None and out.resolve() == beside.resolve():
        raise SettingsError(
            "blocks need a folder other than the input folder", value=str(out), hint="Choose another folder."
        )
    copied = [] if beside is None else _existing_files_to_copy(beside)
    return collection_outputs(out, (*copied, *STORE_FILES), replace=replace)
