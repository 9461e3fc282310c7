"""Statement of privacy of a campaign document: the reports that its workers will send."""

from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.statement.sentences import NOT_COVERED as LEVEL_NOT_COVERED
from crowdveil.campaign.statement.sentences import level_sentences, question_sentences, relay_sentences
from crowdveil.channels.guarantee import Guarantee
from crowdveil.privacy.statement import FROM_DEVICES, PrivacyStatement, uncovered_sentences

LEAST_NOT_COVERED = "The least number of reports, {}: the curator promises to release nothing below it."


def campaign_statement(campaign: Campaign) -> PrivacyStatement:
    """Return the statement for reports that the workers of a checked campaign will send."""
    single = len(campaign.channels) == 1
    protected = campaign.participation == "protected"
    return PrivacyStatement(
        status="protected",
        subject="campaign",
        mechanism=mechanism_names(campaign),
        per_answer=campaign.guarantee,
        per_worker=campaign.worker_guarantee,
        cells=campaign.cells,
        not_covered=uncovered_sentences(campaign_exclusions(campaign), protected=protected, assigned=True),
        campaign=campaign.name,
        relay=relay_sentences(campaign),
        levels=level_sentences(campaign),
        level_guarantees=tuple(channel.guarantee for channel in campaign.channels) if campaign.levels else (),
        questions=question_sentences(campaign),
        question_guarantees=question_guarantees_if_several(campaign),
        certificate_sha256=str(campaign.certificates[0]["sha256"]) if single else None,
        channel=campaign.channels[0] if single else None,
    )


def mechanism_names(campaign: Campaign) -> str:
    """Return the names of the mechanisms of a campaign."""
    return " / ".join(dict.fromkeys(channel.mechanism for channel in campaign.channels))


def question_guarantees_if_several(campaign: Campaign) -> tuple[Guarantee, ...]:
    """Return the guarantee per answer of each question of a campaign; empty with one."""
    return tuple(channel.guarantee for channel in campaign.channels) if campaign.questions else ()


def campaign_exclusions(campaign: Campaign | None) -> tuple[str, ...]:
    """Return what the devices of a campaign, None if it is unknown, leave uncovered, as sentences."""
    if campaign is None:
        return FROM_DEVICES
    least = LEAST_NOT_COVERED.format(f"{campaign.min_reports:,}")
    return (*FROM_DEVICES, least, *([] if campaign.levels is None else [LEVEL_NOT_COVERED]))
