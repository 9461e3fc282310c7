"""The worker's half of a campaign, played for a file of answers: what would devices have sent, and what did it cost?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.accounting import Account, account, account_channel_table
from crowdveil.channels.certificate import LISTS_MARK, simulation_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.public_lists import ListName, guarantee_text, missing_lists, not_public_text
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.filesystem import temporary_folder
from crowdveil.mechanisms import MatrixFactorization, MatrixFactorizationPublished, Mechanism
from crowdveil.randomness import Source, secure, seeded
from crowdveil.simulate import MAX_REPORTS, perturb, perturb_cells, public_report_count
from crowdveil.workflow.channel_assignment import Setup
from crowdveil.workflow.evidence import SIMULATION, guarantee_of, notes_of, refuse_missing
from crowdveil.workflow.export import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    REPORTS_FILES,
    SUMS_FILE,
    Crowd,
    Form,
    describe_crowd,
    require_apart,
    write_reports,
    write_sums,
)
from crowdveil.workflow.factorization_sums import Sums, answer_vectors, collect_sums, sums_text
from crowdveil.workflow.mechanism_settings import describe

Progress = Callable[[int, int], None]
HELD_ROWS = 1 << 24
"""Expected reports that are held in memory at most, where a disk can take their place."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Collection:
    """What devices would have sent.

    Attributes:
        answers: what was perturbed.
        setup: through which channels, and which cells report.
        sent: the reports, or their sum where only the sum is used.
        seed: of a simulation, which protects nobody; None if the randomness was secure.
        accounts: claimed and exact epsilon, per cell and per worker; empty where lists were taken from the answers,
            which leaves nothing to promise.
    """

    answers: Reports
    setup: Setup
    sent: Reports | Sums
    seed: int | None
    accounts: tuple[Account, ...]

    @property
    def mechanism(self) -> Mechanism:
        """What was asked for."""
        return self.setup.mechanism

    @property
    def size(self) -> int:
        """How many reports say something; of reports that are summed, how many there are."""
        return len(self.sent) if isinstance(self.sent, Reports) else len(self.answers.workers)

    @property
    def missing_lists(self) -> tuple[ListName, ...]:
        """Lists that the guarantee needs to be public, and that were taken from the answers."""
        return missing_lists(self.answers.public_lists, self.mechanism.participation)

    @property
    def caveat(self) -> str:
        """Reasons why the reports carry no privacy; empty if they do: secure randomness, and all lists public."""
        if self.seed is not None:
            return SIMULATION
        return not_public_text(self.missing_lists) if self.missing_lists else ""

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The channel's certificate, which says if nothing is promised; None where cells are not independent."""
        channel = self.setup.channel
        if channel is None:
            return None
        # Under the seal, so that a certificate that is parted from crowd.json still says so.
        if self.seed is not None:
            return _marked(channel, simulation_mark(self.seed)).certificate()
        if self.missing_lists:
            return _marked(channel, LISTS_MARK).certificate()
        return channel.certificate()

    @property
    def crowd(self) -> Crowd:
        """What `crowd.json` says: who there is, by which mechanism, with what guarantee."""
        return describe_crowd(
            self.sent if isinstance(self.sent, Reports) else self.answers,
            mechanism=self.description,
            guarantee=guarantee_of(self.setup),
            participation=self.mechanism.participation,
            notes=self._notes,
            simulation=self.seed is not None,
            seed=self.seed,
            certificate=self.certificate,
            assignment=None if self.setup.assignment is None else self.setup.assignment.to_csv(),
        )

    @property
    def description(self) -> str:
        """Mechanism and settings in words, and how cells differ; without a promise no setting reads like one."""
        table = self.setup.table
        named = self.mechanism.name if self.seed is None and self.missing_lists else describe(self.mechanism)
        return named if table is None else f"{named}; {_in_words(table)}"

    @property
    def promise(self) -> str:
        """The guarantee in words, and against whom; or why there is none."""
        made_up = self.seed is not None
        return guarantee_text(guarantee_of(self.setup), self.missing_lists, simulation=made_up, notes=self._notes)

    @property
    def _notes(self) -> tuple[str, ...]:
        protected, assigned = self.mechanism.participation == "protected", self.setup.assignment is not None
        return notes_of(assigned=assigned, protected=protected, simulation=self.seed is not None)


def collect(
    answers: Reports,
    setup: Setup,
    *,
    seed: int | None = None,
    lists_from_answers: bool = False,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Collection:
    """Perturb every worker's answers: securely, or, with a seed, reproducibly and without any privacy.

    Args:
        answers: what is perturbed; `answers.public_lists` says which of their lists are public.
        setup: through which channels, and which cells report.
        seed: of a simulation.
        lists_from_answers: go on without a seed although a list is not public; then nothing is promised.
        progress: called as the work goes on.
        folder: where reports of a simulation with a per-cell channel are kept while they are drawn; without it, in
            memory.

    Raises:
        ReportsError: a worker answers a task twice, or the answers are not in the mechanism's alphabet.
        CertificateError: labels that no certificate holds.
        SettingsError: a list that is not public, tasks or workers that look alike, more reports than can be held, or a
            mechanism that refuses secure randomness.
        NoMinimiserError: the published matrix factorization has no report for a worker.
    """
    missing = missing_lists(answers.public_lists, setup.mechanism.participation)
    if seed is None and not lists_from_answers:
        refuse_missing(missing)
    _refuse_repeats(answers)
    _refuse_names(answers, setup)
    if expected_rows(answers, setup) > MAX_REPORTS and not (folder is not None and streams(setup, seed)):
        raise SettingsError(
            f"at most {MAX_REPORTS:,} reports are made at once",
            value=f"{len(answers.tasks):,} tasks and {len(answers.workers):,} workers",
            hint="Take a part of the tasks, a larger epsilon, or public participation.",
        )
    accounts = () if seed is None and missing else accounts_of(answers, setup)
    sent = _sent(answers, setup, secure() if seed is None else seeded(seed), progress, folder)
    return Collection(answers=answers, setup=setup, sent=sent, seed=seed, accounts=accounts)


def streams(setup: Setup, seed: int | None) -> bool:
    """Return whether reports can be kept in a folder while they are drawn: simulations through one per-cell channel."""
    return seed is not None and isinstance(setup.channel, Channel) and setup.assignment is None


@contextmanager
def spill_folder(out: Path, rows: float) -> Iterator[Path | None]:
    """Give a temporary folder, on the disk of `out`, for reports too many to hold in memory; None if they are few."""
    if rows <= HELD_ROWS:
        yield None
        return
    near = next(place for place in (out.absolute(), *out.absolute().parents) if place.is_dir())
    with temporary_folder(near) as folder:
        yield folder


def accounts_of(answers: Reports, setup: Setup) -> tuple[Account, ...]:
    """Return what the campaign costs, per cell and per worker."""
    if setup.table is None:
        return account(setup.mechanism, tasks=cells_per_worker(answers, setup))
    return account_channel_table(setup.table, tasks=answers.tasks, workers=answers.workers, assignment=setup.assignment)


def expected_rows(answers: Reports, setup: Setup) -> float:
    """Return the rows to expect of `reports.csv`; with an assignment or a table, the most there can be.

    Where participation is protected, they are those to expect if nobody answers, which follow from the lists alone: a
    refusal or a warning for size says nothing about the answers.
    """
    mechanism = setup.mechanism
    if isinstance(mechanism, MatrixFactorization):
        return 0.0
    if setup.assignment is not None:
        return float(len(setup.assignment))
    channel = mechanism.single_cell_channel()
    if channel is None or setup.table is not None:
        return float(len(answers.tasks) * len(answers.workers))
    return public_report_count(answers, channel)


def cells_per_worker(answers: Reports, setup: Setup) -> int:
    """Return the most cells one worker sends: all (assigned) tasks if participation is protected, else the most
    answers of one."""
    if setup.mechanism.participation == "public":
        return max(int(answers.per_worker.max(initial=0)), 1)
    if setup.assignment is not None:
        return max(int(setup.assignment.per_worker.max(initial=0)), 1)
    return max(len(answers.tasks), 1)


def collection_files(setup: Setup, form: Form = "csv") -> tuple[str, ...]:
    """Return the names of the files that `write_collection` writes for a campaign; sums have one form only."""
    if isinstance(setup.mechanism, MatrixFactorization):
        return SUMS_FILE, CROWD_FILE
    sealed = () if setup.channel is None else (CERTIFICATE_FILE,)
    assigned = () if setup.assignment is None else (ASSIGNMENT_FILE,)
    return *REPORTS_FILES[form], *sealed, *assigned, CROWD_FILE


def write_collection(directory: Path, collection: Collection, form: Form = "csv", *, replace: bool = False) -> None:
    """Write what the curator gets: `collection_files`; with `replace`, in place of the collection that is there.

    Raises:
        SettingsError: another collection is there, or the folder cannot be written.
    """
    crowd, sent = collection.crowd, collection.sent
    if isinstance(sent, Reports):
        assignment = collection.setup.assignment
        asked = None if assignment is None else assignment.to_csv()
        write_reports(directory, sent, collection.certificate, crowd, assignment=asked, form=form, replace=replace)
    else:
        write_sums(directory, sums_text(sent), crowd, replace=replace)


def _sent(
    answers: Reports, setup: Setup, source: Source, progress: Progress | None, folder: Path | None
) -> Reports | Sums:
    mechanism, channel = setup.mechanism, setup.channel
    if isinstance(mechanism, MatrixFactorization):
        return collect_sums(answers, mechanism, source, progress)
    if isinstance(mechanism, MatrixFactorizationPublished):
        return _made_up_tables(answers, mechanism, source)
    if channel is not None and (setup.table is not None or setup.assignment is not None):
        return perturb_cells(answers, channel, source, assignment=setup.assignment, progress=progress)
    return perturb(answers, mechanism, source, progress=progress, folder=folder)


def _marked(channel: Channel | ChannelTable, words: str) -> Channel | ChannelTable:
    """Return the same channels with a few words after each one's name."""
    if isinstance(channel, Channel):
        return replace(channel, mechanism=channel.mechanism + words)
    return replace(channel, channels=tuple(replace(one, mechanism=one.mechanism + words) for one in channel.channels))


def _in_words(table: ChannelTable) -> str:
    whose = " and ".join(name for name, groups in (("worker", table.workers), ("task", table.tasks)) if groups)
    return f"{len(table.channels)} channels by {whose}"


def _made_up_tables(answers: Reports, mechanism: MatrixFactorizationPublished, source: Source) -> Reports:
    """Return the published mechanism's number for every task of every worker, answered or not."""
    table = np.array([mechanism.perturb(codes, source) for codes in answer_vectors(answers)])
    worker, task = np.divmod(np.arange(table.size), table.shape[1])
    lists = answers.tasks, answers.workers, None, answers.public_lists
    return Reports(task, worker, table.ravel(), *lists)


def _refuse_names(answers: Reports, setup: Setup) -> None:
    """Refuse what could not be written afterwards: labels that no certificate holds, tasks or workers that look alike.

    Raises:
        CertificateError, SettingsError: naming them.
    """
    for field, names in (("tasks", answers.tasks), ("workers", answers.workers)):
        require_apart(field, map(str, names))
    if setup.channel is not None:
        setup.channel.certificate()


def _refuse_repeats(answers: Reports) -> None:
    repeated = (answers.task[1:] == answers.task[:-1]) & (answers.worker[1:] == answers.worker[:-1])
    if repeated.any():
        raise ReportsError(
            f"one cell sends one report, but {int(repeated.sum())} answers repeat a (task, worker) pair",
            hint="Choose duplicates='first' or 'last' (--duplicates on the command line).",
        )
