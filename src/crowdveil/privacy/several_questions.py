"""Guarantee of a campaign with several questions, or in rounds: the epsilons of a worker's answers add up over all.

The channels of a round are chosen from the reports of earlier ones, so each answer keeps its guarantee given these
(docs/explanation/campaign-guarantees.md).
"""

from crowdveil.campaign.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound

OTHERS = (
    "This holds for one answer only, and the loss of a whole worker is not known here: the answers are to one question "
    "of a campaign that asked several, and the epsilons of a worker's other answers add. Its campaign.json gives the "
    "sum over all of them."
)
"""What the statement of one question says without the campaign."""


def single_question_sentences(cells: int, own: Guarantee | None) -> tuple[str, ...]:
    """Return what is said of one of several questions without the campaign.

    Args:
        cells: largest number of answers of a worker to this question.
        own: guarantee of these answers; None if their number is unknown.
    """
    if own is None:
        return (OTHERS,)
    epsilon = format_bound(own.epsilon, 4)
    return (OTHERS, f"The answers of a worker to this question (at most {cells:,}) alone add up to epsilon {epsilon}.")


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
