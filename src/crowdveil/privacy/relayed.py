"""Guarantee of a campaign with a relay: the shuffled loss beside the local one, each with what must be trusted."""

from crowdveil.campaign.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_worker_guarantee

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
        delta = f"delta {format_delta(DELTA)} is not below 1 / {campaign.slots:,}, the number of workers."
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
