"""`sums.json`: exact sum over workers of matrix-factorization reports, a sufficient statistic.

Tasks, workers and scale are in `crowd.json` of the same folder.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.answers.evidence import Evidence, SummedReports
from crowdveil.answers.identifiers import immutable_identifiers
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.channels.alphabet import Scale
from crowdveil.design.mechanism_from_settings import description_with_parameters, mechanism_parameters_by_name
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import MatrixFactorization
from crowdveil.simulate.sums import Sums
from crowdveil.standalone.checks import fits
from crowdveil.standalone.verification import parse_json
from crowdveil.storage.crowd import CROWD_FILE, CrowdRecord, crowd_if_digest_matches, find_crowd, read_crowd

SUMS_FORMAT = "crowdveil-sums/1"
MAX_SUM = 1 << 62
"""Bound of the absolute value of a sum; sums are 64-bit integers."""
SETTINGS = {"epsilon": (int, float), "dimensions": (int, None)}
"""Settings of the mechanism, with their types."""


def sums_text(sums: Sums) -> str:
    """Return the contents of `sums.json`; numbers are in the units of the reports."""
    values, participation = np.split(sums.summed, 2)
    data = {"format": SUMS_FORMAT, **mechanism_parameters_by_name(sums.mechanism)}
    return json.dumps({**data, "values": values.tolist(), "participation": participation.tolist()}, indent=1) + "\n"


def read_sums(path: str | PathLike[str], crowd: CrowdRecord) -> Sums:
    """Return the checked sums of a `sums.json`.

    Raises:
        ReportsError: unreadable, another format, a field of the wrong type, or a mechanism other than the
            crowd's.
        SettingsError: the mechanism refuses a setting.
    """
    source = str(path)
    try:
        with open(path, "rb") as stream:
            data = parse_json(stream.read())
    except (OSError, ValueError) as error:
        raise ReportsError("sums must be readable JSON", source=source, examples=str(error)[:200]) from error
    if not _is_well_formed(data):
        raise ReportsError(
            f"sums must have format {SUMS_FORMAT!r}, settings {sorted(SETTINGS)}, and two lists of whole numbers",
            source=source,
            hint="Give the sums.json that perturb wrote.",
        )
    alphabet, facts = crowd.alphabet, crowd.collection
    if not isinstance(alphabet, Scale):
        raise _sums_mismatch_error(source, crowd, "numbers on a scale")
    try:
        mechanism = MatrixFactorization(alphabet=alphabet, **{name: data[name] for name in SETTINGS})
    except SettingsError as error:
        raise ReportsError(error.rule, source=source, examples=repr(error.value)) from error
    named = (
        mechanism.name if facts.lists_from_answers and not facts.simulation else description_with_parameters(mechanism)
    )
    if named != facts.description:
        raise _sums_mismatch_error(source, crowd, description_with_parameters(mechanism))
    return Sums(mechanism, np.array(data["values"] + data["participation"], dtype=np.int64))


def _is_well_formed(data: Any) -> bool:
    if not fits(data, {"format": SUMS_FORMAT, **SETTINGS, "values": [int], "participation": [int]}):
        return False
    values, participation = data["values"], data["participation"]
    return len(values) == len(participation) and all(abs(number) < MAX_SUM for number in values + participation)


def _sums_mismatch_error(source: str, crowd: CrowdRecord, expected: str) -> ReportsError:
    return ReportsError(
        f"the sums belong to {expected}, crowd.json names another mechanism",
        source=source,
        examples=crowd.collection.description,
        hint="Keep sums.json and the crowd.json written with it together.",
    )


def evidence_of_sums(path: Path, *, accept_edited: bool = False) -> Evidence:
    """Return the sums of matrix factorization as evidence; `crowd.json` must be in the same folder.

    Raises:
        ReportsError: no crowd, or sums that are damaged or not the crowd's.
    """
    found = find_crowd(path)
    if found is None:
        raise ReportsError(
            f"the {CROWD_FILE} of these sums must be in the same folder",
            source=str(path),
            hint="Keep the files that perturb wrote together.",
        )
    crowd = crowd_if_digest_matches(read_crowd(found), path, accept_edited=accept_edited)
    sums = read_sums(path, crowd)
    tasks, workers = crowd.task_and_worker_names
    totals = sums.mechanism.totals_in_answer_units(sums.summed, tasks=len(tasks), workers=len(workers))
    observed = SummedReports(
        totals=totals,
        tasks=immutable_identifiers(np.array(tasks)),
        workers=immutable_identifiers(np.array(workers)),
        sha256=content_digest(path),
    )
    return Evidence(observed=observed, asked=crowd.asked, collection=crowd.collection)
