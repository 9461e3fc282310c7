"""Collection of reports from a file of answers: perturbation as on workers' devices, and privacy account."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crowdveil.answers.facts.asked import ListName, join_words, missing_lists_reason, require_distinguishable
from crowdveil.answers.reports import Reports
from crowdveil.channels.certificate import LISTS_MARK, simulation_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.design.mechanism_from_settings import description_with_parameters
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.mechanisms import MatrixFactorization, Mechanism
from crowdveil.privacy.accounting import Account, account, account_channel_table
from crowdveil.randomness import Source, secure, seeded
from crowdveil.simulate import MAX_REPORTS, expected_report_count, perturb_cells, perturb_reports
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbation import dense_reports, require_single_answers
from crowdveil.simulate.sums import Sums, sum_device_reports

Progress = Callable[[int, int], None]
SIMULATION = "the reports follow from the seed: a simulation carries no privacy"


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbedCollection:
    """Reports that devices would have sent, with their privacy account.

    Attributes:
        answers: perturbed answers.
        setup: channels, and the cells that report.
        sent: the reports, or their sum where only the sum is used.
        seed: seed of a simulation, which has no privacy; None if the randomness was secure.
        accounts: claimed and exact epsilon, per cell and per worker; empty without a guarantee, where
            lists were taken from the answers.
    """

    answers: Reports
    setup: ChannelAssignment
    sent: Reports | Sums
    seed: int | None
    accounts: tuple[Account, ...]

    @property
    def mechanism(self) -> Mechanism:
        """Requested mechanism."""
        return self.setup.mechanism

    @property
    def lists_taken_from_answers(self) -> tuple[ListName, ...]:
        """Lists that the guarantee needs to be public, and that were taken from the answers."""
        return self.answers.asked.missing_lists(self.mechanism.participation)

    @property
    def reasons_for_no_privacy(self) -> str:
        """Reasons why the reports carry no privacy; empty if they do: secure randomness, and all lists public."""
        if self.seed is not None:
            return SIMULATION
        return missing_lists_reason(self.lists_taken_from_answers) if self.lists_taken_from_answers else ""

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Certificate of the channel, marked if there is no privacy; None where cells are not independent."""
        channel = self.setup.channel
        if channel is None:
            return None
        # The mark is inside the digest, so that it also holds for a certificate without crowd.json.
        if self.seed is not None:
            return _with_mark_after_mechanism(channel, simulation_mark(self.seed)).certificate()
        if self.lists_taken_from_answers:
            return _with_mark_after_mechanism(channel, LISTS_MARK).certificate()
        return channel.certificate()

    @property
    def description(self) -> str:
        """Mechanism, its parameters and the table of channels as text; without a guarantee, no epsilon is named."""
        table = self.setup.table
        named = (
            self.mechanism.name
            if self.seed is None and self.lists_taken_from_answers
            else description_with_parameters(self.mechanism)
        )
        return named if table is None else f"{named}; {_table_description(table)}"


def perturb_collection(
    answers: Reports,
    setup: ChannelAssignment,
    *,
    seed: int | None = None,
    lists_from_answers: bool = False,
    progress: Progress | None = None,
) -> PerturbedCollection:
    """Return the perturbed answers of all workers: with secure randomness, or with a seed and without privacy.

    Args:
        answers: answers to perturb; `answers.asked` names their public lists.
        setup: channels, and the cells that report.
        seed: seed of a simulation.
        lists_from_answers: accept lists that are not public without a seed; there is no guarantee then.
        progress: called with the finished and the whole work.

    Raises:
        ReportsError: a worker answers a task twice, or the answers are not in the mechanism's alphabet.
        CertificateError: labels that a certificate cannot hold.
        SettingsError: a list that is not public, confusable names of tasks or workers, too many reports, or a mechanism
            that refuses secure randomness.
        NoMinimiserError: the published matrix factorization has no report for a worker.
    """
    missing = answers.asked.missing_lists(setup.mechanism.participation)
    if seed is None and not lists_from_answers:
        _refuse_inferred_lists(missing)
    require_single_answers(answers)
    _refuse_uncertifiable_names(answers, setup)
    if expected_report_rows(answers, setup) > MAX_REPORTS:
        raise SettingsError(
            f"at most {MAX_REPORTS:,} reports can be collected at once",
            value=f"{len(answers.tasks):,} tasks and {len(answers.workers):,} workers",
            hint="Use fewer tasks, a larger epsilon, or public participation.",
        )
    accounts = () if seed is None and missing else accounts_of(answers, setup)
    sent = _collect_reports(answers, setup, secure() if seed is None else seeded(seed), progress)
    return PerturbedCollection(answers=answers, setup=setup, sent=sent, seed=seed, accounts=accounts)


def accounts_of(answers: Reports, setup: ChannelAssignment) -> tuple[Account, ...]:
    """Return the privacy losses of the campaign, per cell and per worker."""
    if setup.table is None:
        return account(setup.mechanism, tasks=most_worker_cells(answers, setup))
    return account_channel_table(setup.table, tasks=answers.tasks, workers=answers.workers, assignment=setup.assignment)


def expected_report_rows(answers: Reports, setup: ChannelAssignment) -> float:
    """Return the expected number of rows of `reports.csv`; with an assignment or a table, an upper bound.

    With protected participation it is the number without any answer. It depends on the lists alone, so that a refusal
    or a warning for size reveals nothing about the answers.
    """
    mechanism = setup.mechanism
    if isinstance(mechanism, MatrixFactorization):
        return 0.0
    if setup.assignment is not None:
        return float(len(setup.assignment))
    channel = mechanism.marginal_channel()
    if channel is None or setup.table is not None:
        return float(len(answers.tasks) * len(answers.workers))
    return expected_report_count(answers, channel)


def most_worker_cells(answers: Reports, setup: ChannelAssignment) -> int:
    """Return the largest number of cells of one worker: all (assigned) tasks if protected, else its answers."""
    if setup.mechanism.participation == "public":
        return max(int(answers.per_worker.max(initial=0)), 1)
    if setup.assignment is not None:
        return max(int(setup.assignment.per_worker.max(initial=0)), 1)
    return max(len(answers.tasks), 1)


def _collect_reports(
    answers: Reports, setup: ChannelAssignment, source: Source, progress: Progress | None
) -> Reports | Sums:
    mechanism, channel = setup.mechanism, setup.channel
    if isinstance(mechanism, MatrixFactorization):
        return sum_device_reports(answers, mechanism, source, progress)
    if mechanism.sends == "numbers":
        return dense_reports(answers, mechanism, source)
    if channel is not None and (setup.table is not None or setup.assignment is not None):
        return perturb_cells(answers, channel, source, assignment=setup.assignment, progress=progress)
    return perturb_reports(answers, mechanism, source, progress=progress)


def _with_mark_after_mechanism(channel: Channel | ChannelTable, mark: str) -> Channel | ChannelTable:
    """Return the same channels with a mark after each mechanism's name."""
    if isinstance(channel, Channel):
        return replace(channel, mechanism=channel.mechanism + mark)
    return replace(channel, channels=tuple(replace(one, mechanism=one.mechanism + mark) for one in channel.channels))


def _table_description(table: ChannelTable) -> str:
    keys = " and ".join(name for name, groups in (("worker", table.workers), ("task", table.tasks)) if groups)
    return f"{len(table.channels)} channels by {keys}"


def _refuse_uncertifiable_names(answers: Reports, setup: ChannelAssignment) -> None:
    """Check the names before the work.

    Raises:
        CertificateError: labels that a certificate cannot hold.
        SettingsError: confusable names of tasks or workers.
    """
    for field, names in (("tasks", answers.tasks), ("workers", answers.workers)):
        require_distinguishable(field, map(str, names))
    if setup.channel is not None:
        setup.channel.certificate()


def _refuse_inferred_lists(missing: Sequence[ListName]) -> None:
    """Refuse lists that were taken from the answers.

    Raises:
        SettingsError: there is one.
    """
    if not missing:
        return
    lists = {"labels": advice("{alphabet}"), "tasks": advice("{tasks}"), "workers": advice("{workers}")}
    options = ", ".join(lists[name] or f"the {name}" for name in missing)
    files = advice(" (or {assignment}, which lists both)") if {"tasks", "workers"} & set(missing) else ""
    without = advice(
        " For a run without privacy: {lists_from_answers}, or {seed} for a simulation.", lists_from_answers=True
    )
    raise SettingsError(
        "labels, tasks and workers must be listed before anyone answers: a list taken from the answers shows who "
        "answered and what",
        value=f"{join_words(missing)} taken from the answers",
        hint=f"Give {options}{files}.{without}",
    )
