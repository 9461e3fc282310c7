"""Guarantees of shuffled reports, for accounts and statements: per answer and per worker, with their conditions."""

from dataclasses import dataclass, replace

from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.posterior import posterior_sentences
from crowdveil.privacy.shuffling import shuffled, shuffled_worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledFigures:
    """Central guarantees against a curator who does not work with the shuffler.

    Attributes:
        reports: least number of honest reports on the same task in a batch.
        linked: reports of a worker that stay together in one message.
        cells: cells of one worker; None if unknown.
        per_answer: guarantee of one answer.
        per_worker: guarantee of all answers of one worker; None if `cells` is unknown.
    """

    reports: int
    linked: int
    cells: int | None
    per_answer: Guarantee
    per_worker: Guarantee | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What holds, on which condition, and what an adversary can learn, in plain words; the worker first."""
        answer, worker = self.per_answer, self.per_worker
        each = f"epsilon {format_bound(answer.epsilon, 4)} per single answer"
        whole = "" if worker is None else f"epsilon {format_bound(worker.epsilon, 4)} for all answers of one worker, "
        apart = f"in messages of {self.linked} reports" if self.linked > 1 else "each report apart from the others"
        return (
            f"If a party that does not work with the curator mixes at least {self.reports:,} honest reports on each "
            f"task and removes what identifies their senders, {apart}, the curator's loss is smaller: {whole}{each}, "
            f"at delta {format_delta(answer.delta)}. If the two work together, only the figures without mixing hold.",
            *posterior_sentences(answer, worker, shuffled=True),
        )


def shuffled_figures(
    channel: Channel, *, reports: int, delta: float, cells: int | None, linked: int = 1
) -> ShuffledFigures:
    """Return the guarantees of reports that are shuffled on each task.

    Args:
        channel: certified table of every cell.
        reports: least number of honest reports in a batch, the worker's own included.
        delta: below 1 / reports, for all cells together.
        cells: cells of one worker; None if unknown.
        linked: reports of a worker that stay together in one message.

    Raises:
        SettingsError: delta that is not below 1 / reports (a scheme that publishes one whole answer at random would
            pass), a number outside its limits, or more linked reports than cells.
    """
    if not delta * reports < 1:
        raise SettingsError(
            f"delta must be below 1/{reports}: else publishing one whole answer at random would pass",
            value=delta,
            hint="1e-6 is usual.",
        )
    worker = None
    if cells is not None:
        worker = shuffled_worker(channel, reports=reports, cells=cells, delta=delta, linked=linked)
    answer = shuffled(channel, reports=reports, delta=delta, linked=linked)
    return ShuffledFigures(reports=reports, linked=linked, cells=cells, per_answer=answer, per_worker=worker)


def mechanism_figures(
    mechanism: Mechanism, *, tasks: int, rounds: int, reports: int, delta: float, linked: int = 1
) -> ShuffledFigures:
    """Return the guarantees of a mechanism's shuffled reports; each round is shuffled on its own.

    Raises:
        SettingsError: a mechanism whose cells are dependent.
    """
    if not isinstance(mechanism, ChannelMechanism):
        raise SettingsError(
            "shuffling is computed for mechanisms with a channel per cell",
            value=mechanism.name,
            hint="The cells of one worker share a secret, which links them.",
        )
    channel = mechanism.channel()
    figures = shuffled_figures(channel, reports=reports, delta=delta, cells=tasks * rounds, linked=linked)
    if rounds == 1:
        return figures
    answer = shuffled_worker(channel, reports=reports, cells=rounds * linked, delta=delta, linked=linked)
    return replace(figures, cells=tasks, per_answer=replace(answer, unit="cell"))
