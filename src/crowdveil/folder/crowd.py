"""`crowd.json`: all tasks and workers of a collection, its mechanism and guarantee, and the digest of its reports.

It lists all tasks and workers, so that NULL counts include workers whose reports are all NULL. For encoded blocks,
which have these lists, it holds the digest of the blocks.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

from crowdveil.channels.alphabet import Scale, alphabet_from_json, alphabet_to_json
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.data.columnar_store import read_seal_of_encoded_blocks
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.data.public_lists import (
    LISTS,
    ListName,
    guarantee_or_reason_for_none,
    is_guarantee_text,
    missing_lists,
    why_missing_lists_void_privacy,
)
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import refuse_if_interrupted_command_left_parts
from crowdveil.standalone.checks import first_confusable_pair, misfit, text_defect
from crowdveil.standalone.verification import parse_json

REPORTS_FILE, CERTIFICATE_FILE, CROWD_FILE = "reports.csv", "certificate.json", "crowd.json"
ASSIGNMENT_FILE, SUMS_FILE = "assignment.csv", "sums.json"
SUMS_MARK, MARK_WITHIN = b'"crowdveil-sums/', 4096
"""Start of the format of sums, and the bytes from the start of a file within which it stands."""
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


_DIGEST = (str, None)
_FORM = {
    "format": CROWD_FORMAT,
    "tasks": ([str], None),
    "workers": ([str], None),
    "simulation": bool,
    "mechanism": str,
    "guarantee": str,
    "certificate_sha256": _DIGEST,
    "kind": "categorical|numeric",
    "alphabet": (dict, None),
    "seed": (int, None),
    "lists_from_answers": ["|".join(LISTS)],
    "edited": bool,
    "reports_sha256": _DIGEST,
    "assignment_sha256": _DIGEST,
    "blocks_sha256": _DIGEST,
}
"""Form of a `Crowd`, as `standalone.checks.misfit` takes it."""


def contents_of_crowd_json(
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
        notes: `evidence.notes_on_assignment_and_answer_holder`.
        certificate, assignment: contents of the files in the same folder.
    """
    protected = "protected" in (participation, guarantee.participation)
    missing = missing_lists(reports.public_lists, "protected" if protected else "public")
    return Crowd(
        format=CROWD_FORMAT,
        tasks=[str(name) for name in reports.tasks],
        workers=[str(name) for name in reports.workers],
        simulation=simulation,
        mechanism=mechanism,
        guarantee=guarantee_or_reason_for_none(guarantee, missing, simulation=simulation, notes=notes),
        certificate_sha256=None if certificate is None else str(certificate["sha256"]),
        kind="numeric" if reports.alphabet is None or isinstance(reports.alphabet, Scale) else "categorical",
        alphabet=None if reports.alphabet is None else alphabet_to_json(reports.alphabet),
        seed=seed,
        lists_from_answers=list(missing),
        edited=False,
        reports_sha256=None,
        assignment_sha256=None if assignment is None else sha256_hex(assignment.encode()),
        blocks_sha256=None,
    )


def crowd_json_with_digest_of_blocks(crowd: Crowd, folder: Path) -> bytes:
    """Return the `crowd.json` of the encoded blocks in a folder, which list the same tasks and workers."""
    named = {
        "tasks": None,
        "workers": None,
        "reports_sha256": None,
        "blocks_sha256": read_seal_of_encoded_blocks(folder),
    }
    return json_bytes({**crowd, **named})


def crowd_json_with_digest_of_file(crowd: Crowd, path: Path) -> bytes:
    """Return the `crowd.json` that names the reports, or the sums, in a file by their digest."""
    return json_bytes({**crowd, "reports_sha256": content_digest(path)})


def marked_as_edited(crowd: Crowd) -> Crowd:
    """Return the crowd of edited reports: the guarantee is unknown."""
    if crowd["edited"]:
        return crowd
    guarantee = f"unknown: the reports were edited after they were sent; stated before: {crowd['guarantee']}"
    return {**crowd, "edited": True, "guarantee": guarantee}


def crowd_warnings(crowd: Crowd) -> list[str]:
    """Return warnings if the guarantee or the channel of a crowd does not hold."""
    edited = [EDITED] if crowd["edited"] else []
    if crowd["simulation"]:
        return [SIMULATED_REPORTS, *edited]
    missing = crowd["lists_from_answers"]
    return [*([f"{why_missing_lists_void_privacy(missing).capitalize()}."] if missing else []), *edited]


def task_and_worker_names(crowd: Crowd) -> tuple[list[str], list[str]]:
    """Return the names of tasks and workers in the crowd of a file."""
    tasks, workers = crowd["tasks"], crowd["workers"]
    assert tasks is not None
    assert workers is not None
    return tasks, workers


def sha256_hex(text: bytes) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text).hexdigest()


def is_sums_file(path: Path) -> bool:
    """Return whether a file is one of sums: by its name, or by the format in its first bytes."""
    if path.name == SUMS_FILE:
        return True
    try:
        with path.open("rb") as stream:
            return SUMS_MARK in stream.read(MARK_WITHIN)
    except OSError:
        return False


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
        crowd = checked_crowd_fields(data)
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
    refuse_if_interrupted_command_left_parts(report_directory(reports_path))
    path = report_directory(reports_path) / CROWD_FILE
    return path if path.is_file() else None


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """Return an object as indented JSON text."""
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def require_distinguishable(field: str, names: Iterable[str]) -> None:
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


def checked_crowd_fields(data: Any) -> Crowd:
    """Return the crowd if every field has its type and range; raises SettingsError."""
    if not isinstance(data, dict):
        raise SettingsError("a crowd must be a JSON object", value=data)
    if fault := misfit(data, _FORM):
        field = fault[0].partition("[")[0]
        raise SettingsError(f"{fault[0]!r} of a crowd of format {CROWD_FORMAT!r} {fault[1]}", value=data.get(field))
    for field in ("tasks", "workers"):
        names = data[field]
        if (names is None) != (data["blocks_sha256"] is not None):
            raise SettingsError(f"{field!r} must be listed by a crowd, or by blocks that it names", value=names)
        if "" in (names or ()) or len(set(names or ())) != len(names or ()):
            raise SettingsError(f"{field!r} of a crowd must be distinct, non-empty texts", value=names)
        require_distinguishable(field, names or ())
    for field in ("mechanism", "guarantee"):
        if text_defect(data[field]):
            raise SettingsError(f"{field!r} of a crowd must be printing text", value=data[field])
    if not is_guarantee_text(data["guarantee"]):
        raise SettingsError(
            "'guarantee' of a crowd must be a guarantee as crowdveil writes it, or have the prefix 'none: '",
            value=data["guarantee"],
        )
    if data["seed"] is not None and not data["simulation"]:
        raise SettingsError("a crowd with a seed is a simulation", value=data["seed"])
    if data["alphabet"] is None and data["kind"] == "numeric":
        return Crowd(**data)  # type: ignore[typeddict-item]
    scale = isinstance(alphabet_from_json(data["alphabet"]), Scale)
    if data["kind"] != ("numeric" if scale else "categorical"):
        raise SettingsError("'kind' of a crowd must fit its alphabet", value=data["kind"])
    return Crowd(**data)  # type: ignore[typeddict-item]
