"""Guarantee of a campaign with several questions: the epsilons of a worker's answers add up over all of them."""

from crowdveil.campaign.document import Campaign
from crowdveil.channels.rounding import format_bound

OTHERS = (
    "These figures are of one question of a campaign that asked several: the epsilons of a worker's other answers add. "
    "Its campaign.json gives the sum over all of them."
)
"""What the statement of one question says without the campaign."""


def question_sentences(campaign: Campaign) -> tuple[str, ...]:
    """Return what each question adds to the epsilon of a worker, in plain words; empty with one question."""
    if not campaign.questions:
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
