"""Guarantees of campaigns with levels, several questions or a relay, and their sentences.

The epsilons of a worker's answers add up over questions. With levels a worker has the guarantee of the own one; with a
relay the shuffled loss stands beside the local one (docs/explanation/campaign-guarantees.md).
"""

from collections.abc import Sequence

from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta, percent_rounded_up, sum_rounded_up
from crowdveil.privacy.largest_posterior import certainty_text
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_worker_guarantee

NOT_COVERED = "The level of privacy that a worker chose: it is sent as it is."


def level_guarantees(campaign: Campaign) -> tuple[Guarantee, ...]:
    """Return the guarantee of all answers of one worker at each level, the most private one first.

    Empty in a campaign without levels.
    """
    if campaign.levels is None:
        return ()
    losses = (sum_rounded_up([(channel.epsilon, campaign.cells)]) for channel in campaign.channels)
    return tuple(Guarantee(epsilon=loss, unit="worker", participation=campaign.participation) for loss in losses)


def publishable_level_counts(campaign: Campaign, chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the number of workers at each level if it may be stated, else nothing: of all but one the last follows."""
    return tuple(chosen) if campaign.levels and min(chosen) >= campaign.min_reports else ()


def level_sentences(campaign: Campaign, chosen: Sequence[int] | None = None) -> tuple[str, ...]:
    """Return what each level promises and how many workers chose it, in plain words; empty without levels.

    Numbers are stated only if every level was chosen by at least `min_reports` workers.

    Args:
        campaign: the campaign.
        chosen: number of workers at each level; None before there are reports.
    """
    guarantees = level_guarantees(campaign)
    if not guarantees:
        return ()
    each = "; ".join(
        f"level {number}: epsilon {format_bound(one.epsilon, 4)}, "
        f"{certainty_text(percent_rounded_up(one.largest_guess_probability))} between two sets of answers"
        for number, one in enumerate(guarantees, start=1)
    )
    first = (
        f"Each worker chooses one of {len(guarantees)} levels before any question is shown, and has the guarantee of "
        f"that level for all answers ({each}). The figures above are those of the last level, which hold for everybody."
    )
    visible = "The level that a worker chose is visible."
    if chosen is None:
        return first, visible
    if not publishable_level_counts(campaign, chosen):
        few = f"fewer than {campaign.min_reports:,} chose one of them"
        return first, visible, f"How many chose which level is not stated: {few}."
    counts = ", ".join(f"{count:,} level {number}" for number, count in enumerate(chosen, start=1))
    return first, visible, f"Chosen: {counts}."


def question_sentences(campaign: Campaign | None) -> tuple[str, ...]:
    """Return what each question adds to the epsilon of a worker, in plain words; empty with one question."""
    if campaign is None or not campaign.questions:
        return ()
    each = "; ".join(
        f"question {number}: at most {question.cells:,} at epsilon {format_bound(channel.epsilon, 4)} each"
        for number, (question, channel) in enumerate(zip(campaign.questions, campaign.channels, strict=True), start=1)
    )
    count = len(campaign.questions)
    return (
        f"The campaign asks {count} questions, and the epsilon of a worker is the sum over all answers to all of them "
        f"({each}).",
    )


DELTA = 1e-6
"""Additive slack of the stated guarantees, for all cells together; they need fewer than 1 / `DELTA` workers."""
MOST_LINKED = 5
"""Cells of a report that stays together, above which no smaller epsilon is computed."""


def relayed_guarantees(campaign: Campaign) -> tuple[Guarantee, Guarantee] | None:
    """Return the shuffled guarantees of a cell and of a worker, for the least batch.

    None without a relay, where more than `MOST_LINKED` cells stay together, or where delta is not below 1 / workers: a
    scheme that publishes all answers of one worker would pass. The local guarantee stands alone then.
    """
    relay = campaign.relay
    if relay is None or campaign.slots * DELTA >= 1 or (relay.unit == "report" and campaign.cells > MOST_LINKED):
        return None
    linked = campaign.cells if relay.unit == "report" else 1
    channel, batch = campaign.channels[0], {"reports": relay.least_batch, "linked": linked}
    worker = shuffled_worker_guarantee(channel, cells=campaign.cells, delta=DELTA, **batch)
    return shuffled_cell_guarantee(channel, delta=DELTA, **batch), worker


def relay_sentences(campaign: Campaign) -> tuple[str, ...]:
    """Return what a relay changes, in plain words; empty without one."""
    relay = campaign.relay
    if relay is None:
        return ()
    together = "whole reports stay together" if relay.unit == "report" else "single cells are shuffled apart"
    first = (
        "Reports are encrypted and go through a relay, which cannot read them. It forwards those of at least "
        f"{relay.least_batch:,} workers at once, in random order and without names ({together})."
    )
    if campaign.slots * DELTA >= 1:
        delta = f"delta {format_delta(DELTA)} is not below 1 / {campaign.slots:,} (1 / number of workers)."
        return first, f"No smaller epsilon is stated for it: {delta}"
    found = relayed_guarantees(campaign)
    if found is None:
        return first, "No smaller epsilon is stated for it: too many answers of a worker stay together."
    local = campaign.channels[0].guarantee
    alone = local, local.per_worker(campaign.cells)
    cell, worker = (format_bound(guarantee.epsilon, 4) for guarantee in found)
    if [cell, worker] == [format_bound(guarantee.epsilon, 4) for guarantee in alone]:
        return first, "No smaller epsilon is stated for it: a batch of the least size hides too little."
    return (
        first,
        f"As long as relay and curator do not work together, and at least {relay.least_batch:,} workers of a batch are "
        f"honest, the curator learns less: epsilon {worker} for all answers of one worker and {cell} per single "
        f"answer, at delta {format_delta(DELTA)} (shuffled), which is below 1 / {campaign.slots:,}, the number of "
        "workers. If they work together, the epsilon above holds, and no smaller one.",
    )
