"""Conversion of a file of reports to a folder of encoded blocks, which is opened without parsing."""

from pathlib import Path
from typing import NamedTuple

from crowdveil.channels.alphabet import Alphabet
from crowdveil.data.columnar_store import STORE_FILES, write_encoded
from crowdveil.data.ingest.validation import Duplicates
from crowdveil.data.read_options import Kind
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, staged_outputs
from crowdveil.workflow.evidence import evidence_files, read_evidence
from crowdveil.workflow.export import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    collection_outputs,
    crowd_of_blocks,
    report_directory,
)

COPIED_FILES = (CERTIFICATE_FILE, ASSIGNMENT_FILE, CROWD_FILE)


class Encoded(NamedTuple):
    """Reports as opened from the folder of their blocks, and warnings about the reports that were read."""

    reports: Reports
    notes: tuple[str, ...]


def encode(
    path: Path,
    out: Path,
    *,
    alphabet: Alphabet | None = None,
    kind: Kind | None = None,
    duplicates: Duplicates = "error",
    merge_labels: bool = False,
    accept_edited: bool = False,
    replace: bool = False,
) -> Encoded:
    """Write reports and their collection files as encoded blocks; return the opened blocks, with warnings.

    Args:
        path: CSV or Parquet file, or other encoded blocks; read and checked as for inference.
        out: folder for the blocks, and for `crowd.json`, `certificate.json` and `assignment.csv` if they exist.
        alphabet, kind, duplicates, merge_labels, accept_edited: as `read_evidence`.
        replace: whether an earlier collection in the folder is removed.

    Raises:
        ReportsError, CertificateError: as `read_evidence`.
        SettingsError: the folder cannot be written, is the input folder, or holds another collection.
    """
    outputs = encoded_outputs(path, out, replace=replace)
    outputs.check(inputs=evidence_files(path))
    evidence = read_evidence(
        path,
        alphabet=alphabet,
        kind=kind,
        duplicates=duplicates,
        merge_labels=merge_labels,
        accept_edited=accept_edited,
    )
    reports, crowd = evidence.reports, evidence.crowd
    copied = {name: (report_directory(path) / name).read_bytes() for name in outputs.names if name in COPIED_FILES}
    with staged_outputs(outputs) as temporary:
        for name, contents in copied.items():
            (temporary / name).write_bytes(contents)
        write_encoded(temporary, reports.chunks(), reports.tasks, reports.workers, reports.alphabet)
        if crowd is not None:
            (temporary / CROWD_FILE).write_bytes(crowd_of_blocks(crowd, temporary))
    return Encoded(Reports.open(out), evidence.notes)


def encoded_outputs(path: Path, out: Path, *, replace: bool) -> Outputs:
    """Return the outputs of `encode`: blocks and copied collection files.

    Raises:
        SettingsError: the output folder is the input folder.
    """
    if out.resolve() == report_directory(path).resolve():
        raise SettingsError(
            "blocks need a folder other than the input folder", value=str(out), hint="Choose another --out."
        )
    copied = [name for name in COPIED_FILES if (report_directory(path) / name).is_file()]
    return collection_outputs(out, (*copied, *STORE_FILES), replace=replace)
