"""Guarantee of a later round of a campaign: the epsilons of a worker's answers add up over all rounds.

The channels of a round are chosen from the reports of earlier ones, so each answer keeps its guarantee given these
(docs/explanation/campaign-guarantees.md).
"""

from crowdveil.campaign.document import Campaign
from crowdveil.channels.rounding import format_bound


def round_sentences(campaign: Campaign | None) -> tuple[str, ...]:
    """Return what earlier rounds add to the epsilon of a worker, in plain words; empty in a first round."""
    if campaign is None or not campaign.earlier:
        return ()
    number = len(campaign.earlier) + 1
    rounds = [(one.cells, one.epsilon) for one in campaign.earlier]
    each = "; ".join(
        f"round {place}: at most {cells:,} at epsilon {format_bound(epsilon, 4)} each"
        for place, (cells, epsilon) in enumerate([*rounds, (campaign.cells, campaign.epsilon)], start=1)
    )
    return (
        f"This is round {number} of a campaign, and the epsilon of a worker is the sum over all answers in {number} "
        f"rounds ({each}). The channels of a round follow from the reports of the rounds before.",
    )
