"""Files of a perturbed collection: the channels that are read, and the reports or sums that are written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from crowdveil.answers.ingest.column_readers import delimiter_and_roles
from crowdveil.answers.ingest.csv_files import read_csv_table
from crowdveil.answers.reports import Reports
from crowdveil.errors import ReportsError
from crowdveil.mechanisms import MatrixFactorization
from crowdveil.simulate.channel_assignment import ChannelAssignment, ChannelRows
from crowdveil.simulate.perturbed_collection import PerturbedCollection
from crowdveil.storage.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    SUMS_FILE,
    CrowdRecord,
    crowd_of_reports,
)
from crowdveil.storage.sums import sums_text
from crowdveil.storage.write_collection import REPORTS_FILES, Form, write_reports, write_sums

KNOWN_COLUMNS = ("worker", "task", "epsilon", "cuts")


def read_channel_rows(path: Path) -> ChannelRows:
    """Return the settings in a CSV file with a column `worker` or `task`, and `epsilon` or `cuts` (or both) of each.

    Raises:
        ReportsError: not one of the columns `worker` and `task`, neither `epsilon` nor `cuts`, an unknown column, or a
            name that is empty or repeated.
    """
    source = str(path)
    delimiter, columns = delimiter_and_roles(path, _channel_columns)
    key, *settings = columns
    table = read_csv_table(path, [key, *settings], delimiter)
    names = [str(name) for name in table[key].to_pylist()]
    if "" in names or len(set(names)) != len(names):
        raise ReportsError(
            f"every {key} must have one row", source=source, hint="Complete the file, and leave repeated rows out."
        )
    rows = zip(*([str(cell) for cell in table[name].to_pylist()] for name in settings), strict=True)
    role: Literal["worker", "task"] = "worker" if key == "worker" else "task"
    return ChannelRows(key=role, settings=tuple(settings), rows=dict(zip(names, rows, strict=True)), source=source)


def _channel_columns(found: Sequence[str], source: str) -> dict[str, str]:
    key, settings = ([name for name in names if name in found] for names in (KNOWN_COLUMNS[:2], KNOWN_COLUMNS[2:]))
    if not set(found) <= {*KNOWN_COLUMNS} or len(key) != 1 or not settings:
        raise ReportsError(
            "a file of channels has the column worker or task, and epsilon or cuts",
            source=source,
            examples=", ".join(found),
            hint="Name its columns so, such as worker,epsilon.",
        )
    return {name: name for name in (*key, *settings)}


def collection_files(setup: ChannelAssignment, form: Form = "csv") -> tuple[str, ...]:
    """Return the names of the files that `write_collection` writes for a campaign; sums have one form only."""
    if isinstance(setup.mechanism, MatrixFactorization):
        return SUMS_FILE, CROWD_FILE
    sealed = () if setup.channel is None else (CERTIFICATE_FILE,)
    assigned = () if setup.assignment is None else (ASSIGNMENT_FILE,)
    return *REPORTS_FILES[form], *sealed, *assigned, CROWD_FILE


def crowd_of_collection(collection: PerturbedCollection) -> CrowdRecord:
    """Return the contents of `crowd.json`: tasks, workers, and the facts of the collection."""
    setup, mechanism = collection.setup, collection.mechanism
    return crowd_of_reports(
        collection.sent if isinstance(collection.sent, Reports) else collection.answers,
        mechanism=mechanism.name,
        description=collection.description,
        guarantee=setup.least_protected_cell_guarantee,
        participation=mechanism.participation,
        simulation=collection.seed is not None,
        seed=collection.seed,
        certificate=collection.certificate,
        assignment=None if setup.assignment is None else setup.assignment.to_csv(),
    )


def write_collection(
    directory: Path, collection: PerturbedCollection, form: Form = "csv", *, replace: bool = False
) -> None:
    """Write `collection_files`; `replace` removes an earlier collection.

    Raises:
        SettingsError: the folder holds another collection, or the folder cannot be written.
    """
    crowd, sent = crowd_of_collection(collection), collection.sent
    if isinstance(sent, Reports):
        assignment = collection.setup.assignment
        assignment_csv = None if assignment is None else assignment.to_csv()
        write_reports(
            directory, sent, collection.certificate, crowd, assignment=assignment_csv, form=form, replace=replace
        )
    else:
        write_sums(directory, sums_text(sent), crowd, replace=replace)
