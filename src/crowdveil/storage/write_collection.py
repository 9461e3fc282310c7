"""Reports of a collection as CSV, Parquet or encoded blocks, or their sums, with the files beside them.

`reports.csv` holds non-NULL reports only. Files are written block by block, with bounded memory, and replaced as a
whole.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from crowdveil.answers.columnar_store import STORE_FILES, write_encoded
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.reports import Reports
from crowdveil.answers.write_reports import block_tables, report_schema, write_tables
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, staged_outputs, write_outputs
from crowdveil.standalone.checks import marks_no_privacy
from crowdveil.storage.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    SUMS_FILE,
    CrowdRecord,
    crowd_of_blocks,
    crowd_of_json,
    json_bytes,
    sha256_hex,
)

Form = Literal["csv", "parquet", "blocks"]
REPORTS_FILES: dict[Form, tuple[str, ...]] = {
    "csv": ("reports.csv",),
    "parquet": ("reports.parquet",),
    "blocks": STORE_FILES,
}
"""File names of each form, in the order in which they are put in place."""


def write_report_files(folder: Path, reports: Reports, form: Form) -> None:
    """Write `REPORTS_FILES[form]` into a folder that exists."""
    if form == "blocks":
        write_encoded(folder, reports.chunks(), reports.tasks, reports.workers, reports.alphabet)
        return
    with open(folder / REPORTS_FILES[form][0], "wb") as stream:
        write_tables(stream, report_schema(reports), lambda: block_tables(reports), form)


COLLECTION = "collection"
ONE_COLLECTION = "a folder holds one collection; a second collection adds to the privacy loss"


def write_reports(
    directory: str | PathLike[str],
    reports: Reports,
    certificate: Mapping[str, Any] | None,
    crowd: CrowdRecord,
    *,
    assignment: str | None = None,
    form: Form = "csv",
    replace: bool = False,
) -> None:
    """Write `REPORTS_FILES[form]`, `crowd.json` and, if given, certificate and `assignment.csv`.

    Raises:
        SettingsError: the crowd does not belong to the reports or the certificate; or as `collection_outputs`.
    """
    _require_files_belong_together(reports, certificate, crowd)
    metadata: dict[str, bytes] = {}
    if certificate is not None:
        metadata[CERTIFICATE_FILE] = json_bytes(certificate)
    if assignment is not None:
        metadata[ASSIGNMENT_FILE] = assignment.encode("utf-8")
    names = (*metadata, CROWD_FILE, *REPORTS_FILES[form])
    with staged_outputs(collection_outputs(directory, names, replace=replace)) as temporary:
        for name, contents in metadata.items():
            (temporary / name).write_bytes(contents)
        write_report_files(temporary, reports, form)
        if form == "blocks":
            named = crowd_of_blocks(crowd, temporary)
        else:
            named = dataclasses.replace(crowd, reports_sha256=content_digest(temporary / REPORTS_FILES[form][0]))
        (temporary / CROWD_FILE).write_bytes(named.to_json_bytes())


def report_files_in_memory(
    reports: Reports,
    certificate: Mapping[str, Any] | None,
    crowd: CrowdRecord,
    *,
    assignment: str | None = None,
    beside: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Return what `write_reports` writes as CSV, by file name, and the files beside it; for small collections.

    Raises:
        SettingsError: the crowd does not belong to the reports or the certificate.
    """
    _require_files_belong_together(reports, certificate, crowd)
    stream = BytesIO()
    write_tables(stream, report_schema(reports), lambda: block_tables(reports), "csv")
    written = stream.getvalue()
    metadata = {
        CERTIFICATE_FILE: None if certificate is None else json_bytes(certificate),
        ASSIGNMENT_FILE: None if assignment is None else assignment.encode("utf-8"),
        **beside,
        CROWD_FILE: dataclasses.replace(crowd, reports_sha256=sha256_hex(written)).to_json_bytes(),
    }
    present = {name: contents for name, contents in metadata.items() if contents is not None}
    return {**present, REPORTS_FILES["csv"][0]: written}


def collection_outputs(directory: str | PathLike[str], names: Sequence[str], *, replace: bool) -> Outputs:
    """Return the files of a collection as outputs, which refuse an earlier collection without `replace`.

    Args:
        directory: output folder.
        names: file names; the last one is put in place after the others.
        replace: whether the recorded files of an earlier collection are removed, in any form.
    """
    return Outputs(
        folder=Path(directory),
        names=tuple(names),
        kind=COLLECTION,
        remove_stale=True,
        also_replaced=(
            CERTIFICATE_FILE,
            CROWD_FILE,
            SUMS_FILE,
            *(name for files in REPORTS_FILES.values() for name in files),
        ),
        must_be_new="" if replace else ONE_COLLECTION,
    )


def write_sums(directory: str | PathLike[str], sums: str, crowd: CrowdRecord, *, replace: bool = False) -> None:
    """Write `sums.json`, and the `crowd.json` that names it by its digest; arguments and errors as `write_reports`."""
    named = dataclasses.replace(crowd, reports_sha256=sha256_hex(sums.encode())).to_json_bytes()
    outputs = collection_outputs(directory, (CROWD_FILE, SUMS_FILE), replace=replace)
    write_outputs(outputs, {CROWD_FILE: named, SUMS_FILE: sums})


def _require_files_belong_together(reports: Reports, certificate: Mapping[str, Any] | None, crowd: CrowdRecord) -> None:
    crowd_of_json(json.loads(crowd.to_json_bytes()))
    facts = crowd.collection
    if crowd.task_and_worker_names != (tuple(map(str, reports.tasks)), tuple(map(str, reports.workers))):
        raise SettingsError("the crowd must list the tasks and workers of the reports", value=facts.mechanism)
    sealed = None if certificate is None else certificate["sha256"]
    if facts.certificate_sha256 != sealed:
        raise SettingsError("the crowd must name the certificate written with it", value=facts.certificate_sha256)
    parts = [] if certificate is None else certificate.get("channels", [certificate])
    named = [str(part["mechanism"]) for part in parts if "mechanism" in part]
    if facts.lists_from_answers and named and not any(map(marks_no_privacy, named)):
        raise SettingsError(
            "if lists were taken from the answers, the certificate must be marked as without privacy",
            value=named[0],
            hint="Mark the channel's mechanism with certificate.LISTS_MARK, or give lists that are public.",
        )
