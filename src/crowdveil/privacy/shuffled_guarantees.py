"""Guarantees of shuffled reports, for accounts: per answer and per worker, with their conditions."""

from dataclasses import dataclass, replace

from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.largest_posterior import posterior_sentences
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_worker_guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledGuarantees:
    """Central guarantees against a curator who does not work with the shuffler.

    Attributes:
        reports: least number of honest reports on the same task in a batch.
        linked: reports of a worker that stay together in one message.
        cells: cells of one worker in a round.
        per_answer, per_worker: guarantees of one answer and of all answers of one worker, over all rounds.
    """

    reports: int
    linked: int
    cells: int
    per_answer: Guarantee
    per_worker: Guarantee

    @property
    def sentences(self) -> tuple[str, ...]:
        """What holds, on which condition, and what an adversary can learn, in plain words; the worker first."""
        answer, worker = self.per_answer, self.per_worker
        each = f"epsilon {format_bound(answer.epsilon, 4)} per single answer"
        whole = f"epsilon {format_bound(worker.epsilon, 4)} for all answers of one worker, "
        apart = f"in messages of {self.linked} reports" if self.linked > 1 else "each report apart from the others"
        return (
            f"If a party that does not work with the curator mixes at least {self.reports:,} honest reports on each "
            f"task and removes what identifies their senders, {apart}, the curator's loss is smaller: {whole}{each}, "
            f"at delta {format_delta(answer.delta)}. If the two work together, only the figures without mixing hold.",
            *posterior_sentences(answer, worker, shuffled=True),
        )


def shuffled_guarantees(
    mechanism: Mechanism, *, tasks: int, rounds: int = 1, reports: int, delta: float, linked: int = 1
) -> ShuffledGuarantees:
    """Return the guarantees of a mechanism's reports that are shuffled on each task, each round on its own.

    Args:
        mechanism: of every worker's device.
        tasks: cells of one worker in a round.
        rounds: number of campaigns with the same tasks.
        reports: least number of honest reports in a batch, the worker's own included.
        delta: below 1 / reports, for all cells together.
        linked: reports of a worker that stay together in one message.

    Raises:
        SettingsError: a mechanism whose cells are dependent, delta that is not below 1 / reports (a scheme that
            publishes one whole answer at random would pass), a number outside its limits, or more linked reports than
            cells.
    """
    if not isinstance(mechanism, ChannelMechanism):
        raise SettingsError(
            "shuffling is computed for mechanisms with a channel per cell",
            value=mechanism.name,
            hint="The cells of one worker share a secret, which links them.",
        )
    if not delta * reports < 1:
        raise SettingsError(
            f"delta must be below 1/{reports}: else publishing one whole answer at random would pass",
            value=delta,
            hint="1e-6 is usual.",
        )
    channel, batch = mechanism.channel(), {"reports": reports, "linked": linked}
    worker = shuffled_worker_guarantee(channel, cells=tasks * rounds, delta=delta, **batch)
    answer = shuffled_cell_guarantee(channel, delta=delta, **batch)
    if rounds > 1:
        answer = replace(shuffled_worker_guarantee(channel, cells=rounds * linked, delta=delta, **batch), unit="cell")
    return ShuffledGuarantees(reports=reports, linked=linked, cells=tasks, per_answer=answer, per_worker=worker)
