"""The worker's half of a campaign, played for a file of answers: what would devices have sent, and what did it cost?"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.accounting import Account, account
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import MatrixFactorization, MatrixFactorizationPublished, Mechanism, TwoLayer
from crowdveil.output import (
    CERTIFICATE_FILE,
    CROWD_FILE,
    REPORTS_FILE,
    Crowd,
    describe_crowd,
    write_reports,
    write_together,
)
from crowdveil.randomness import Source, secure, seeded
from crowdveil.reports import Reports
from crowdveil.simulate import MAX_REPORTS, expected_reports, perturb
from crowdveil.workflow.choice import describe
from crowdveil.workflow.sums import SUMS_FILE, Sums, answer_vectors, collect_sums, sums_text

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Collection:
    """What devices would have sent.

    Attributes:
        answers: what was perturbed.
        mechanism: by which mechanism.
        sent: the reports, or their sum where only the sum is used.
        seed: of a simulation, which protects nobody; None if the randomness was secure.
        accounts: claimed and exact epsilon, per cell and per worker.
    """

    answers: Reports
    mechanism: Mechanism
    sent: Reports | Sums
    seed: int | None
    accounts: tuple[Account, ...]

    @property
    def size(self) -> int:
        """How many reports say something; of reports that are summed, how many there are."""
        return len(self.sent) if isinstance(self.sent, Reports) else len(self.answers.workers)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The channel's certificate, which says if it belongs to a simulation; None where cells are not independent."""
        channel = self.mechanism.channel()
        if channel is None:
            return None
        if self.seed is not None:
            # Under the seal: a certificate that is parted from crowd.json must not pass for that of a real collection.
            channel = replace(channel, mechanism=f"{channel.mechanism}, SIMULATION from seed {self.seed}: no privacy")
        return channel.certificate()

    @property
    def crowd(self) -> Crowd:
        """What `crowd.json` says: who there is, by which mechanism, with what guarantee."""
        guarantee = str(self.mechanism.guarantee)
        if self.seed is not None:
            guarantee = f"none: a simulation carries no privacy; devices would have: {guarantee}"
        return describe_crowd(
            self.sent if isinstance(self.sent, Reports) else self.answers,
            mechanism=describe(self.mechanism),
            guarantee=guarantee,
            simulation=self.seed is not None,
            seed=self.seed,
            certificate=self.certificate,
        )


def collect(
    answers: Reports, mechanism: Mechanism, *, seed: int | None = None, progress: Progress | None = None
) -> Collection:
    """Perturb every worker's answers: securely, or, with a seed, reproducibly and without any privacy.

    Raises:
        ReportsError: a worker answers a task twice, or the answers are not in the mechanism's alphabet.
        SettingsError: more reports than can be held, or a mechanism that refuses secure randomness.
        NoMinimiserError: the published matrix factorization has no report for a worker.
    """
    _refuse_repeats(answers)
    expected = rows_expected(answers, mechanism)
    if expected > MAX_REPORTS:
        raise SettingsError(
            f"at most {MAX_REPORTS:,} reports are made at once",
            value=round(expected),
            way_out="Take a part of the tasks, a larger epsilon, or public participation.",
        )
    accounts = account(mechanism, tasks=cells_per_worker(answers, mechanism))
    source = secure() if seed is None else seeded(seed)
    sent = _sent(answers, mechanism, source, progress)
    return Collection(answers=answers, mechanism=mechanism, sent=sent, seed=seed, accounts=accounts)


def rows_expected(answers: Reports, mechanism: Mechanism) -> float:
    """Return the expected number of rows of `reports.csv`."""
    if isinstance(mechanism, MatrixFactorization):
        return 0.0
    channel = mechanism.single_cell_channel() if isinstance(mechanism, TwoLayer) else mechanism.channel()
    if channel is None:
        return float(len(answers.tasks) * len(answers.workers))
    return expected_reports(answers, channel)


def cells_per_worker(answers: Reports, mechanism: Mechanism) -> int:
    """Return the most cells one worker sends: all tasks if participation is protected, else the most answers of one."""
    if mechanism.participation == "protected":
        return max(len(answers.tasks), 1)
    return max(int(answers.per_worker.max(initial=0)), 1)


def collection_files(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of the files that `write_collection` writes for a mechanism."""
    if isinstance(mechanism, MatrixFactorization):
        return SUMS_FILE, CROWD_FILE
    sealed = () if mechanism.channel() is None else (CERTIFICATE_FILE,)
    return REPORTS_FILE, *sealed, CROWD_FILE


def write_collection(directory: Path, collection: Collection) -> None:
    """Write what the curator gets: `collection_files`.

    Raises:
        SettingsError: the folder cannot be written.
    """
    crowd, sent = collection.crowd, collection.sent
    if isinstance(sent, Reports):
        write_reports(directory, sent, collection.certificate, crowd)
    else:
        crowd_text = json.dumps(crowd, ensure_ascii=False, indent=1) + "\n"
        write_together(directory, {CROWD_FILE: crowd_text, SUMS_FILE: sums_text(sent)})


def _sent(answers: Reports, mechanism: Mechanism, source: Source, progress: Progress | None) -> Reports | Sums:
    if isinstance(mechanism, MatrixFactorization):
        return collect_sums(answers, mechanism, source, progress)
    if isinstance(mechanism, MatrixFactorizationPublished):
        return _made_up_tables(answers, mechanism, source)
    return perturb(answers, mechanism, source, progress=progress)


def _made_up_tables(answers: Reports, mechanism: MatrixFactorizationPublished, source: Source) -> Reports:
    """Return the published mechanism's number for every task of every worker, answered or not."""
    table = np.array([mechanism.perturb(codes, source) for codes in answer_vectors(answers)])
    worker, task = np.divmod(np.arange(table.size), table.shape[1])
    return Reports(task, worker, table.ravel(), answers.tasks, answers.workers)


def _refuse_repeats(answers: Reports) -> None:
    repeated = (answers.task[1:] == answers.task[:-1]) & (answers.worker[1:] == answers.worker[:-1])
    if repeated.any():
        raise ReportsError(
            f"one cell sends one report, but {int(repeated.sum())} answers repeat a (task, worker) pair",
            way_out="Choose duplicates='first' or 'last' (--duplicates on the command line).",
        )
