"""`crowd.json`: all tasks and workers of a collection, its mechanism and guarantee, and the digest of its reports.

It lists all tasks and workers, so that NULL counts include workers whose reports are all NULL. For encoded blocks,
which have these lists, it holds the digest of the blocks.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from math import isinf
from os import PathLike
from pathlib import Path
from typing import Any

from crowdveil.answers.columnar_store import read_blocks_seal
from crowdveil.answers.facts.asked import LISTS, STATED, Asked, require_distinguishable
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.location import COMPANIONS, folders_of_links
from crowdveil.channels.alphabet import Alphabet, alphabet_from_json, alphabet_to_json
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import refuse_partial_output
from crowdveil.hints import advice
from crowdveil.standalone.checks import HEX, misfit, text_defect
from crowdveil.standalone.verification import parse_json
from crowdveil.storage.crowd_second_format import (
    SECOND_FORMAT,
    fields_of_second_format,
    is_guarantee_text,
    states_no_guarantee,
)

REPORTS_FILE, CERTIFICATE_FILE, CROWD_FILE = "reports.csv", "certificate.json", "crowd.json"
ASSIGNMENT_FILE, SUMS_FILE = "assignment.csv", "sums.json"
SUMS_MARK, MARK_WITHIN = b'"crowdveil-sums/', 4096
"""Start of the format of sums, and the bytes from the start of a file within which it stands."""
CROWD_FORMAT = "crowdveil-crowd/3"


@dataclass(frozen=True, kw_only=True)
class CrowdRecord:
    """Contents of `crowd.json`.

    Attributes:
        collection: facts of the collection.
        tasks, workers: names as text, in the order of the codes of the reports; None for encoded blocks, which have
            them.
        alphabet: possible reports; None for numbers on no grid.
        reports_sha256: digest of the reports file, or of `sums.json`, as it was written; empty for encoded blocks, and
            before they are written.
        blocks_sha256: checksum of encoded blocks; empty for a file.
        assignment_sha256: digest of the assignment; None without one.
    """

    collection: Collection
    tasks: tuple[str, ...] | None
    workers: tuple[str, ...] | None
    alphabet: Alphabet | None
    reports_sha256: str = ""
    blocks_sha256: str = ""
    assignment_sha256: str | None = None

    @property
    def asked(self) -> Asked:
        """Who was asked: all names of the collection, those that were stated as stated."""
        return Asked(stated=STATED.stated.difference(self.collection.lists_from_answers), complete=True)

    @property
    def task_and_worker_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of tasks and workers in the crowd of a file."""
        assert self.tasks is not None
        assert self.workers is not None
        return self.tasks, self.workers

    def to_json_bytes(self) -> bytes:
        """Return the text of the file."""
        facts = self.collection
        data: dict[str, Any] = {"format": CROWD_FORMAT, "tasks": self.tasks, "workers": self.workers}
        data |= {name: getattr(facts, name) for name in FACTS}
        data["guarantee"] = None if facts.guarantee is None else guarantee_to_json(facts.guarantee)
        data["alphabet"] = None if self.alphabet is None else alphabet_to_json(self.alphabet)
        digests = {name: getattr(self, name) or None for name in DIGESTS}
        return json_bytes(data | digests)


FACTS = (
    *("mechanism", "description", "participation", "lists_from_answers", "simulation", "seed", "edited"),
    *("campaign", "question", "linked", "certificate_sha256", "stated_guarantee"),
)
"""Fields of `Collection` that are written as they are."""
DIGESTS = ("reports_sha256", "assignment_sha256", "blocks_sha256")
_DIGEST = (HEX, None)
_GUARANTEE = {
    "epsilon": (float, "infinity"),
    "delta": float,
    "unit": "cell|worker",
    "participation": "protected|public",
    "claimed": (float, None),
    "reason": str,
}
_FORM = {
    "format": CROWD_FORMAT,
    "tasks": ([str], None),
    "workers": ([str], None),
    "mechanism": str,
    "description": str,
    "guarantee": (_GUARANTEE, None),
    "participation": "protected|public",
    "lists_from_answers": ["|".join(LISTS)],
    "simulation": bool,
    "seed": (int, None),
    "edited": bool,
    "campaign": ("[A-Za-z0-9_-]{43}", None),
    "question": ([int], None),
    "linked": bool,
    "stated_guarantee": str,
    "certificate_sha256": _DIGEST,
    "alphabet": (dict, None),
    "reports_sha256": _DIGEST,
    "assignment_sha256": _DIGEST,
    "blocks_sha256": _DIGEST,
}
"""Form of the file, as `standalone.checks.misfit` takes it."""


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as JSON data."""
    epsilon = "infinity" if isinf(guarantee.epsilon) else float(guarantee.epsilon)
    claimed = None if guarantee.claimed is None else float(guarantee.claimed)
    return {**asdict(guarantee), "epsilon": epsilon, "delta": float(guarantee.delta), "claimed": claimed}


def crowd_of_reports(
    reports: Reports,
    *,
    mechanism: str,
    description: str,
    guarantee: Guarantee,
    participation: Participation = "public",
    certificate: Mapping[str, Any] | None = None,
    assignment: str | None = None,
    **facts: Any,
) -> CrowdRecord:
    """Return the crowd of these reports, without the digest of their file.

    Args:
        reports: `asked` says which lists were stated.
        mechanism, description: as of `Collection`.
        guarantee: of one unit; left out without the stated lists that its participation needs, unless the reports are
            a simulation.
        participation: "protected" if any cell is; then all lists must be stated.
        certificate, assignment: contents of the files in the same folder.
        facts: other fields of `Collection`.
    """
    protected = "protected" in (participation, guarantee.participation)
    missing = reports.asked.missing_lists("protected" if protected else "public")
    collection = Collection(
        mechanism=mechanism,
        description=description,
        guarantee=None if missing and not facts.get("simulation") else guarantee,
        participation="protected" if protected else "public",
        lists_from_answers=missing,
        certificate_sha256=None if certificate is None else str(certificate["sha256"]),
        assigned=assignment is not None,
        **facts,
    )
    return CrowdRecord(
        collection=collection,
        tasks=tuple(map(str, reports.tasks)),
        workers=tuple(map(str, reports.workers)),
        alphabet=reports.alphabet,
        assignment_sha256=None if assignment is None else sha256_hex(assignment.encode()),
    )


def crowd_of_blocks(crowd: CrowdRecord, folder: Path) -> CrowdRecord:
    """Return the crowd of the encoded blocks in a folder, which list the same tasks and workers."""
    seal = read_blocks_seal(folder)
    return replace(crowd, tasks=None, workers=None, reports_sha256="", blocks_sha256=seal)


def sha256_hex(text: bytes) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text).hexdigest()


def is_sums_file(path: Path) -> bool:
    """Return whether a file is one of sums: by its name, or by its first bytes; those of a pipe are not read."""
    if path.name == SUMS_FILE:
        return True
    try:
        with path.open("rb") if path.is_file() else BytesIO() as stream:
            return SUMS_MARK in stream.read(MARK_WITHIN)
    except OSError:
        return False


def read_crowd(path: str | PathLike[str]) -> CrowdRecord:
    """Return the checked contents of a `crowd.json`, of this or the second format.

    Raises:
        ReportsError: unreadable, a repeated key, another format, a field that is missing, unknown or of the wrong type,
            a name that is repeated, not text or confusable with another, or an invalid alphabet.
    """
    try:
        data = parse_json(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ReportsError("the crowd must be readable JSON", source=str(path), examples=str(error)[:200]) from error
    try:
        crowd = crowd_of_json(data)
        if (not crowd.reports_sha256) == (not crowd.blocks_sha256):
            raise SettingsError(
                "a crowd names a file by 'reports_sha256' or blocks by 'blocks_sha256'", value=crowd.reports_sha256
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
    """Return the folder of a file of reports; for encoded blocks, the folder itself.

    A link to reports is in the folder of their collection, unless there is a file of a collection beside the link.
    """
    path = Path(reports_path)
    if path.is_dir():
        return path
    folders = folders_of_links(path)
    of_collection = [folder for folder in folders if any((folder / name).is_file() for name in COMPANIONS)]
    return (of_collection or folders)[0]


def find_crowd(reports_path: str | PathLike[str]) -> Path | None:
    """Return the path of the `crowd.json` in the folder of the reports; None without one.

    Raises:
        ReportsError: an interrupted command left the folder with a part of its files.
    """
    refuse_partial_output(report_directory(reports_path))
    path = report_directory(reports_path) / CROWD_FILE
    return path if path.is_file() else None


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """Return an object as indented JSON text."""
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def crowd_of_json(data: Any) -> CrowdRecord:
    """Return the crowd in JSON data if every field has its type and range; raises SettingsError."""
    if not isinstance(data, dict):
        raise SettingsError("a crowd must be a JSON object", value=data)
    if data.get("format") == SECOND_FORMAT:
        data = fields_of_second_format(data)
    if fault := misfit(data, _FORM):
        field = fault[0].partition("[")[0]
        raise SettingsError(f"{fault[0]!r} of a crowd of format {CROWD_FORMAT!r} {fault[1]}", value=data.get(field))
    _refuse_contradictions(data)
    facts = {name: data[name] for name in FACTS}
    facts["lists_from_answers"] = tuple(data["lists_from_answers"])
    facts["question"] = None if data["question"] is None else tuple(data["question"])
    facts["assigned"] = data["assignment_sha256"] is not None
    facts["stated_none"] = states_no_guarantee(data["stated_guarantee"])
    return CrowdRecord(
        collection=Collection(guarantee=_guarantee_of_json(data["guarantee"]), **facts),
        alphabet=None if data["alphabet"] is None else alphabet_from_json(data["alphabet"]),
        tasks=None if data["tasks"] is None else tuple(data["tasks"]),
        workers=None if data["workers"] is None else tuple(data["workers"]),
        reports_sha256=data["reports_sha256"] or "",
        blocks_sha256=data["blocks_sha256"] or "",
        assignment_sha256=data["assignment_sha256"],
    )


def _guarantee_of_json(data: Mapping[str, Any] | None) -> Guarantee | None:
    if data is None:
        return None
    return Guarantee(**{**data, "epsilon": float(data["epsilon"])})


def _refuse_contradictions(data: Mapping[str, Any]) -> None:
    """Refuse fields that do not go together; raises SettingsError."""
    for field in ("tasks", "workers"):
        names = data[field]
        if (names is None) != (data["blocks_sha256"] is not None):
            raise SettingsError(f"{field!r} must be listed by a crowd, or by blocks that it names", value=names)
        if "" in (names or ()) or len(set(names or ())) != len(names or ()):
            raise SettingsError(f"{field!r} of a crowd must be distinct, non-empty texts", value=names)
        require_distinguishable(field, names or ())
    for field in ("mechanism", "description", "stated_guarantee"):
        if data[field] and text_defect(data[field]):
            raise SettingsError(f"{field!r} of a crowd must be printing text", value=data[field])
    if data["stated_guarantee"] and not is_guarantee_text(data["stated_guarantee"]):
        raise SettingsError(
            "'stated_guarantee' of a crowd must be a guarantee as crowdveil writes it, or have the prefix 'none: '",
            value=data["stated_guarantee"],
        )
    if data["guarantee"] is not None and text_defect("; " + data["guarantee"]["reason"]):
        raise SettingsError("'guarantee' of a crowd must be printing text", value=data["guarantee"])
    if not data["mechanism"]:
        raise SettingsError("'mechanism' of a crowd must be named", value=data["mechanism"])
    if data["seed"] is not None and not data["simulation"]:
        raise SettingsError("a crowd with a seed is a simulation", value=data["seed"])
    if data["question"] is not None and not (
        len(data["question"]) == 2 and 1 <= data["question"][0] <= data["question"][1]
    ):
        raise SettingsError("'question' of a crowd must be its number and how many there are", value=data["question"])
    voided = bool(data["lists_from_answers"]) and not data["simulation"]
    stated = data["guarantee"] is not None or bool(data["stated_guarantee"])
    if (voided and data["guarantee"] is not None) or not (voided or stated):
        raise SettingsError("a crowd has a guarantee, or names the lists that void it", value=data["guarantee"])


def crowd_if_digest_matches(crowd: CrowdRecord, path: Path, *, accept_edited: bool = False) -> CrowdRecord:
    """Return the crowd, if the digest of the reports (or sums, or blocks) is the one that it names.

    Raises:
        ReportsError: another digest, unless `accept_edited`, which marks the crowd.
    """
    blocks = path.is_dir()
    if blocks != bool(crowd.blocks_sha256):
        raise ReportsError(
            f"the {CROWD_FILE} of this folder belongs to {'a file of reports' if blocks else 'encoded blocks'}",
            source=str(path),
            hint="Keep each collection in its own folder.",
        )
    named = crowd.blocks_sha256 if blocks else crowd.reports_sha256
    found = read_blocks_seal(path) if blocks else content_digest(path)
    if found == named:
        return crowd
    if accept_edited:
        return replace(crowd, collection=crowd.collection.as_edited)
    raise ReportsError(
        f"reports must be unchanged since the {CROWD_FILE} of their folder was written",
        source=str(path),
        examples=f"SHA-256 {found}, {CROWD_FILE} names {named}",
        hint="Keep the files of one collection together, in its own folder"
        + advice("; if you edited the reports on purpose, add {accept_edited}", accept_edited=True)
        + ".",
    )
