"""Output files of a campaign: reports, `crowd.json` and estimates, as CSV, Parquet or encoded blocks.

`reports.csv` holds non-NULL reports only. `crowd.json` lists all tasks and workers, so that NULL counts include workers
whose reports are all NULL. For encoded blocks, which have these lists, it holds the digest of the blocks. Files are
written block by block, with bounded memory, and replaced as a whole.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

import pyarrow as pa

from crowdveil.channels.alphabet import Scale, alphabet_from_json, alphabet_to_json
from crowdveil.channels.certificate import certificate_mechanisms, has_no_privacy_mark
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.text_validation import first_confusable_pair, parse_json, text_defect
from crowdveil.data.columnar_store import STORE_FILES, read_seal, write_encoded
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.data.public_lists import (
    LISTS,
    ListName,
    guarantee_text,
    is_guarantee_text,
    missing_lists,
    not_public_text,
)
from crowdveil.data.report_tables import TABLE_FORMS, TableForm, block_tables, report_schema, write_tables
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, Writer, remove_outputs, staged_outputs, write_outputs
from crowdveil.files.atomic_write import write_atomically as write_atomically
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, read_record, refuse_unfinished

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


REPORTS_FILE, CERTIFICATE_FILE, CROWD_FILE = "reports.csv", "certificate.json", "crowd.json"
ASSIGNMENT_FILE, SUMS_FILE = "assignment.csv", "sums.json"
SUMS_MARK, MARK_WITHIN = b'"crowdveil-sums/', 4096
"""Start of the format of sums, and the bytes from the start of a file within which it stands."""
COLLECTION = "collection"
ONE_COLLECTION = "a folder holds one collection; a second collection adds to the privacy loss"
ESTIMATE_FILES: dict[TableForm, tuple[str, str]] = {form: (f"truths.{form}", f"workers.{form}") for form in TABLE_FORMS}
"""Names of the files of truths and of workers, by their form."""
ESTIMATE, QUESTION_ESTIMATE, DEMO = "estimate", "estimate of one of several questions", "campaign demo"
"""Kinds of files with truths and workers; those of a demo of a campaign are among its other files."""
PAGE, PREDICTIONS = "page of results", "predictions"
FROM_REPORTS = (PAGE, PREDICTIONS, "shares", "agreement", "review", "next answers")
"""Kinds of outputs that follow from reports or their truths."""
INFER_AGAIN = "Give a folder that `crowdveil infer` wrote, unchanged, or run `infer` again."
CROWD_FORMAT = "crowdveil-crowd/2"
EDITED = (
    f"The reports were edited after they were sent: the guarantee and the channel in {CROWD_FILE} and the certificate "
    "belong to other reports."
)
SIMULATED_REPORTS = "The reports are a simulation: they carry no privacy."


class Crowd(TypedDict):
    """Contents of `crowd.json`; names are text, in the order of the codes of the reports.

    With `blocks_sha256`, the seal of encoded blocks, tasks and workers are None: they are those of the blocks.
    `lists_from_answers` names the lists that the guarantee needs to be public and that were taken from the answers.
    `reports_sha256` is the digest of the reports file, or of `sums.json`, as it was written; None for encoded blocks,
    and before they are written. `edited`: reports with another digest were accepted on purpose.
    """

    format: str
    tasks: list[str] | None
    workers: list[str] | None
    simulation: bool
    mechanism: str
    guarantee: str
    certificate_sha256: str | None
    kind: Literal["categorical", "numeric"]
    alphabet: dict[str, object] | None
    seed: int | None
    lists_from_answers: list[ListName]
    edited: bool
    reports_sha256: str | None
    assignment_sha256: str | None
    blocks_sha256: str | None


FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "tasks": (list, type(None)),
    "workers": (list, type(None)),
    "simulation": (bool,),
    "mechanism": (str,),
    "guarantee": (str,),
    "certificate_sha256": (str, type(None)),
    "kind": (str,),
    "alphabet": (dict, type(None)),
    "seed": (int, type(None)),
    "lists_from_answers": (list,),
    "edited": (bool,),
    "reports_sha256": (str, type(None)),
    "assignment_sha256": (str, type(None)),
    "blocks_sha256": (str, type(None)),
}


def describe_crowd(
    reports: Reports,
    *,
    mechanism: str,
    guarantee: Guarantee,
    simulation: bool,
    participation: Participation = "public",
    notes: Sequence[str] = (),
    seed: int | None = None,
    certificate: Mapping[str, Any] | None = None,
    assignment: str | None = None,
    edited: bool = False,
) -> Crowd:
    """Return the contents of `crowd.json` for these reports.

    Args:
        reports: `public_lists` names their public lists.
        mechanism: name and settings.
        guarantee: guarantee of one unit; replaced by a reason for a simulation, or without the public lists that its
            participation needs.
        simulation, seed: of reports without privacy.
        participation: "protected" if any cell is; the guarantee is that of the least protected cell, but then all
            lists must be public.
        notes: `evidence.guarantee_notes`.
        certificate, assignment: contents of the files in the same folder.
        edited: whether they were made from reports that were edited after they were sent.
    """
    protected = "protected" in (participation, guarantee.participation)
    missing = missing_lists(reports.public_lists, "protected" if protected else "public")
    return Crowd(
        format=CROWD_FORMAT,
        tasks=[str(name) for name in reports.tasks],
        workers=[str(name) for name in reports.workers],
        simulation=simulation,
        mechanism=mechanism,
        guarantee=guarantee_text(guarantee, missing, simulation=simulation, notes=notes),
        certificate_sha256=None if certificate is None else str(certificate["sha256"]),
        kind="numeric" if reports.alphabet is None or isinstance(reports.alphabet, Scale) else "categorical",
        alphabet=None if reports.alphabet is None else alphabet_to_json(reports.alphabet),
        seed=seed,
        lists_from_answers=list(missing),
        edited=edited,
        reports_sha256=None,
        assignment_sha256=None if assignment is None else text_digest(assignment.encode()),
        blocks_sha256=None,
    )


def crowd_of_blocks(crowd: Crowd, folder: Path) -> bytes:
    """Return the `crowd.json` of the encoded blocks in a folder, which list the same tasks and workers."""
    named = {"tasks": None, "workers": None, "reports_sha256": None, "blocks_sha256": read_seal(folder)}
    return _json({**crowd, **named})


def crowd_of_file(crowd: Crowd, path: Path) -> bytes:
    """Return the `crowd.json` that names the reports, or the sums, in a file by their digest."""
    return _json({**crowd, "reports_sha256": content_digest(path)})


def as_edited(crowd: Crowd) -> Crowd:
    """Return the crowd of edited reports: the guarantee is unknown."""
    if crowd["edited"]:
        return crowd
    guarantee = f"unknown: the reports were edited after they were sent; stated before: {crowd['guarantee']}"
    return {**crowd, "edited": True, "guarantee": guarantee}


def caveats(crowd: Crowd) -> list[str]:
    """Return warnings if the guarantee or the channel of a crowd does not hold."""
    edited = [EDITED] if crowd["edited"] else []
    if crowd["simulation"]:
        return [SIMULATED_REPORTS, *edited]
    missing = crowd["lists_from_answers"]
    return [*([f"{not_public_text(missing).capitalize()}."] if missing else []), *edited]


def listed_names(crowd: Crowd) -> tuple[list[str], list[str]]:
    """Return the names of tasks and workers in the crowd of a file."""
    tasks, workers = crowd["tasks"], crowd["workers"]
    assert tasks is not None
    assert workers is not None
    return tasks, workers


def text_digest(text: bytes) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text).hexdigest()


def write_reports(
    directory: str | PathLike[str],
    reports: Reports,
    certificate: Mapping[str, Any] | None,
    crowd: Crowd,
    *,
    assignment: str | None = None,
    form: Form = "csv",
    replace: bool = False,
) -> None:
    """Write `REPORTS_FILES[form]`, `crowd.json` and, if given, `certificate.json` and `assignment.csv`.

    Raises:
        SettingsError: the crowd does not belong to the reports or the certificate; or as `collection_outputs`.
    """
    _check_belongs(reports, certificate, crowd)
    metadata: dict[str, bytes] = {}
    if certificate is not None:
        metadata[CERTIFICATE_FILE] = _json(certificate)
    if assignment is not None:
        metadata[ASSIGNMENT_FILE] = assignment.encode("utf-8")
    names = (*metadata, CROWD_FILE, *REPORTS_FILES[form])
    with staged_outputs(collection_outputs(directory, names, replace=replace)) as temporary:
        for name, contents in metadata.items():
            (temporary / name).write_bytes(contents)
        write_report_files(temporary, reports, form)
        file = temporary / REPORTS_FILES[form][0]
        crowd_json = crowd_of_blocks(crowd, temporary) if form == "blocks" else crowd_of_file(crowd, file)
        (temporary / CROWD_FILE).write_bytes(crowd_json)


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


def write_sums(directory: str | PathLike[str], sums: str, crowd: Crowd, *, replace: bool = False) -> None:
    """Write `sums.json`, and the `crowd.json` that names it by its digest; arguments and errors as `write_reports`."""
    named = _json({**crowd, "reports_sha256": text_digest(sums.encode())})
    outputs = collection_outputs(directory, (CROWD_FILE, SUMS_FILE), replace=replace)
    write_outputs(outputs, {CROWD_FILE: named, SUMS_FILE: sums})


def is_sums(path: Path) -> bool:
    """Return whether a file is one of sums: by its name, or by the format in its first bytes."""
    if path.name == SUMS_FILE:
        return True
    try:
        with path.open("rb") as stream:
            return SUMS_MARK in stream.read(MARK_WITHIN)
    except OSError:
        return False


def write_estimate(
    directory: str | PathLike[str],
    estimate: Estimate,
    *,
    form: TableForm = "csv",
    kind: str = ESTIMATE,
    reports_sha256: str = "",
    reading: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write truths and workers as `ESTIMATE_FILES[form]`; a task without reports has an empty or null number.

    Truths are written in parts, with bounded memory. Recorded files of an earlier estimate are removed.

    Args:
        directory, form, kind: as `estimate_outputs`.
        estimate: the truths and workers.
        reports_sha256: `Evidence.digest` of the reports, which the record names; without it no release accepts reports.
        reading: how they were read (`recorded_reading.reading_text`), which the record names, too.
        progress: called with the number of tasks written and of all.

    Raises:
        SettingsError: a file of that name is not an earlier estimate, or the system refuses to write there.
    """
    schema = next(estimate.parts()).tasks_frame().schema
    workers = estimate.workers_frame()
    writers: list[Writer] = [
        lambda stream: write_tables(stream, schema, lambda: _task_frames(estimate, progress), form),
        lambda stream: write_tables(stream, workers.schema, lambda: [workers], form),
    ]
    outputs = replace(estimate_outputs(directory, form, kind), reports_sha256=reports_sha256, reading=reading)
    remove_earlier_estimates(outputs.folder)
    write_outputs(outputs, dict(zip(ESTIMATE_FILES[form], writers, strict=True)))


def _task_frames(estimate: Estimate, progress: Callable[[int, int], None] | None) -> Iterator[pa.Table]:
    """Yield the tables of truths, part by part."""
    done = 0
    for part in estimate.parts():
        yield part.tasks_frame()
        done += len(part.tasks)
        if progress is not None:
            progress(done, len(estimate.tasks))


def question_estimate(folder: Path) -> str:
    """Return the kind of the files in the folder of one of several questions; it is not that of a copy elsewhere."""
    return f"{QUESTION_ESTIMATE}, in {folder.name}"


def estimate_outputs(directory: str | PathLike[str], form: TableForm = "csv", kind: str = ESTIMATE) -> Outputs:
    """Return the files of an estimate as outputs, which replace an earlier estimate of any form.

    In the folder of one of several questions it stays the estimate of that question.
    """
    every = tuple(name for names in ESTIMATE_FILES.values() for name in names)
    kinds = (entry.kind for entry in read_record(Path(directory)))
    kind = next((one for one in kinds if one.startswith(QUESTION_ESTIMATE)), kind)
    return Outputs(folder=Path(directory), names=ESTIMATE_FILES[form], kind=kind, also_replaced=every)


def earlier_estimates(folder: Path, questions: Collection[Path] = ()) -> list[Outputs]:
    """Return the outputs that a new estimate in a folder makes obsolete.

    They are the estimates in folders of questions that are not inferred again (not in copies of these) and, if
    `questions` names the folders of a new estimate, that of the folder itself.
    """
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    recorded = [path for path in inside if not path.is_symlink() and os.path.isfile(path / RECORD_FILE)]
    kinds = {path: question_estimate(path) for path in recorded if path not in questions}
    kinds = {path: kind for path, kind in kinds.items() if any(entry.kind == kind for entry in read_record(path))}
    kinds |= {folder: ESTIMATE} if questions else {}
    return [Outputs(folder=path, names=(), kind=kind, remove_stale=True) for path, kind in kinds.items()]


def remove_earlier_estimates(folder: Path, questions: Collection[Path] = ()) -> None:
    """Remove `earlier_estimates`; errors as `remove_outputs`."""
    for outputs in earlier_estimates(folder, questions):
        remove_outputs(outputs.folder, outputs.kind)


def estimate_names(folder: Path) -> tuple[str, str] | None:
    """Return the names of truths and workers in the record of a folder; None without them.

    Raises:
        ReportsError: truths in several forms, which may be of different runs, or an interrupted run.
        SettingsError: the record is damaged.
    """
    refuse_unfinished(folder)
    kinds = (ESTIMATE, QUESTION_ESTIMATE, DEMO)
    recorded = {entry.name for entry in read_record(folder) if entry.kind.startswith(kinds)}
    found = [names for names in ESTIMATE_FILES.values() if recorded.issuperset(names)]
    if len(found) > 1:
        raise ReportsError(
            "a folder must hold truths in one form: those in several may be of different runs",
            source=str(folder),
            examples=", ".join(truths for truths, _ in found),
            hint="Run `infer` again: it removes the earlier ones.",
        )
    return found[0] if found else None


def outdated_notes(folder: Path, reports_sha256: str, questions: Collection[Path] = ()) -> tuple[str, ...]:
    """Return a warning that names outputs of an earlier run in a folder and in those of its `earlier_estimates`.

    Args:
        folder: before new truths are written there.
        reports_sha256: `Evidence.digest` of the new reports; tables of the same reports are not outdated.
        questions: folders of a new estimate of several questions.
    """
    folders = dict.fromkeys([folder, *(outputs.folder for outputs in earlier_estimates(folder, questions))])
    same = {entry.reports_sha256 for entry in read_record(folder) if entry.reports_sha256} == {reports_sha256}
    kinds = (PAGE, PREDICTIONS) if same else FROM_REPORTS
    found = [str(path) for one in folders for path in _recorded(one, kinds)]
    return (f"{', '.join(found)}: of earlier truths or reports. Write them again, or remove them.",) if found else ()


def estimate_notes(folder: Path) -> tuple[str, ...]:
    """Return a warning that names the results of a folder, before its reports are replaced."""
    found = _recorded(folder, (ESTIMATE, *FROM_REPORTS))
    named = ", ".join(str(path) for path in found)
    return (f"{named}: from the earlier reports. Run crowdveil infer again.",) if found else ()


def _recorded(folder: Path, kinds: Collection[str]) -> list[Path]:
    """Return the files of these kinds that are in the record of a folder and still there."""
    paths = [folder / entry.name for entry in read_record(folder) if entry.kind in kinds]
    return [path for path in paths if path.is_file()]


def unchanged_output(path: Path) -> OutputEntry:
    """Return the entry of a file in the record of its folder.

    Raises:
        ReportsError: the file is not readable, not recorded, or was changed after it was written.
        SettingsError: the record is damaged.
    """
    entries = [entry for entry in read_record(path.parent) if entry.name == path.name]
    try:
        return next(entry for entry in entries if entry.matches(path))
    except OSError as error:
        raise ReportsError(
            "the file must be readable", source=str(path), examples=str(error), hint=INFER_AGAIN
        ) from error
    except StopIteration:
        rule = "the file must be unchanged since `infer` wrote it"
        raise ReportsError(rule, source=str(path), hint=INFER_AGAIN) from None


def read_crowd(path: str | PathLike[str]) -> Crowd:
    """Return the checked contents of a `crowd.json`.

    Raises:
        ReportsError: unreadable, a repeated key, another format, a field that is missing, unknown or of the wrong type,
            a name that is repeated, not text or confusable with another, or an invalid alphabet.
    """
    try:
        data = parse_json(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ReportsError("the crowd must be readable JSON", source=str(path), examples=str(error)[:200]) from error
    try:
        crowd = _checked(data)
        if (crowd["reports_sha256"] is None) == (crowd["blocks_sha256"] is None):
            raise SettingsError(
                "a crowd names a file by 'reports_sha256' or blocks by 'blocks_sha256'", value=crowd["reports_sha256"]
            )
        return crowd
    except SettingsError as error:
        raise ReportsError(
            error.rule,
            source=str(path),
            examples=repr(error.value)[:200],
            hint="Use the crowd.json that was written with the reports.",
        ) from error


def report_directory(reports_path: str | PathLike[str]) -> Path:
    """Return the folder of a file of reports; for encoded blocks, the folder itself."""
    path = Path(reports_path)
    return path if path.is_dir() else path.parent


def find_crowd(reports_path: str | PathLike[str]) -> Path | None:
    """Return the path of the `crowd.json` in the folder of the reports; None without one.

    Raises:
        ReportsError: an interrupted command left the folder with a part of its files.
    """
    refuse_unfinished(report_directory(reports_path))
    path = report_directory(reports_path) / CROWD_FILE
    return path if path.is_file() else None


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _check_belongs(reports: Reports, certificate: Mapping[str, Any] | None, crowd: Crowd) -> None:
    _checked(crowd)
    if crowd["tasks"] != [str(n) for n in reports.tasks] or crowd["workers"] != [str(n) for n in reports.workers]:
        raise SettingsError("the crowd must list the tasks and workers of the reports", value=crowd["mechanism"])
    sealed = None if certificate is None else certificate["sha256"]
    if crowd["certificate_sha256"] != sealed:
        raise SettingsError("the crowd must name the certificate written with it", value=crowd["certificate_sha256"])
    named = [] if certificate is None else certificate_mechanisms(certificate)
    if crowd["lists_from_answers"] and named and not any(map(has_no_privacy_mark, named)):
        raise SettingsError(
            "if lists were taken from the answers, the certificate must be marked as without privacy",
            value=named[0],
            hint="Mark the channel's mechanism with certificate.LISTS_MARK, or give lists that are public.",
        )


def require_apart(field: str, names: Iterable[str]) -> None:
    """Check that no two names of tasks or workers are confusable.

    Raises:
        SettingsError: two names differ only in surrounding spaces, Unicode form or invisible characters.
    """
    pair = first_confusable_pair(names)
    if pair is not None:
        raise SettingsError(
            f"{field!r} of a crowd must be distinguishable without spaces, Unicode forms and invisible characters",
            value=pair,
            hint="Rename one of them, or give both the same spelling.",
        )


def _checked(data: Any) -> Crowd:
    if not isinstance(data, dict) or data.get("format") != CROWD_FORMAT:
        raise SettingsError(f"a crowd must be a JSON object of format {CROWD_FORMAT!r}", value=data)
    if set(data) != set(FIELD_TYPES):
        raise SettingsError(f"a crowd has exactly the fields {sorted(FIELD_TYPES)}", value=sorted(data))
    for field, types in FIELD_TYPES.items():
        # A bool is an int to Python, but not a seed.
        if not isinstance(data[field], types) or (field == "seed" and isinstance(data[field], bool)):
            raise SettingsError(f"{field!r} of a crowd has the wrong type", value=data[field])
    for field in ("tasks", "workers"):
        names = data[field]
        if (names is None) != (data["blocks_sha256"] is not None):
            raise SettingsError(f"{field!r} must be listed by a crowd, or by blocks that it names", value=names)
        names = names or []
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
            raise SettingsError(f"{field!r} of a crowd must be distinct, non-empty texts", value=names)
        require_apart(field, names)
    for field in ("mechanism", "guarantee"):
        if text_defect(data[field]):
            raise SettingsError(f"{field!r} of a crowd must be printing text", value=data[field])
    if not is_guarantee_text(data["guarantee"]):
        raise SettingsError(
            "'guarantee' of a crowd must be a guarantee as crowdveil writes it, or have the prefix 'none: '",
            value=data["guarantee"],
        )
    if not all(name in LISTS for name in data["lists_from_answers"]):
        raise SettingsError(f"'lists_from_answers' of a crowd are among {LISTS}", value=data["lists_from_answers"])
    if data["seed"] is not None and not data["simulation"]:
        raise SettingsError("a crowd with a seed is a simulation", value=data["seed"])
    if data["alphabet"] is None and data["kind"] == "numeric":
        return Crowd(**data)  # type: ignore[typeddict-item]
    scale = isinstance(alphabet_from_json(data["alphabet"]), Scale)
    if data["kind"] != ("numeric" if scale else "categorical"):
        raise SettingsError("'kind' of a crowd must fit its alphabet", value=data["kind"])
    return Crowd(**data)  # type: ignore[typeddict-item]
