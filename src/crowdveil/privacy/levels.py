"""Guarantee of a campaign whose workers each choose a level of privacy: that of the level, which itself is visible."""

from collections.abc import Sequence

from crowdveil.campaign.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, percent_rounded_up, sum_rounded_up
from crowdveil.privacy.largest_posterior import certainty_text

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
