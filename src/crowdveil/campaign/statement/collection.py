"""Statement of privacy of a collection: mechanism, epsilon per answer and per worker, participation, and exclusions.

Epsilon is stated only if all of these hold; each check that fails gives the reason in its place:
- `crowd.json` belongs to the reports (digest), is no simulation, and its reports are not edited;
- its certificate is present, belongs to it (digest) and was verified in integers;
- the lists of labels, tasks and workers that the guarantee needs were public;
- the truths were inferred from these reports: the record of the truths has their digest;
- with a campaign: its document has the certificates, tasks and slots of these reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import missing_lists_reason
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.facts.inputs import Input
from crowdveil.campaign.files.campaign_reports import exported_name_of_slot
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.statement.document import (
    campaign_exclusions,
    campaign_statement,
    mechanism_names,
    question_guarantees_if_several,
)
from crowdveil.campaign.statement.facts import YARDSTICK, Facts, facts_for_ethics_board
from crowdveil.campaign.statement.sentences import (
    level_sentences,
    publishable_level_counts,
    question_sentences,
    relay_sentences,
)
from crowdveil.campaign.statement.source import StatedReports, StatedSource
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.display.quotes import quoted
from crowdveil.errors import ReportsError
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.privacy.statement import (
    MARKED,
    PrivacyStatement,
    channel_statement,
    no_guarantee_reason,
    single_question_sentences,
    uncovered_sentences,
)
from crowdveil.privacy.statement_of_inputs import statement_of_inputs
from crowdveil.registry import MECHANISM_NAMES

NOTHING_STATED = "No collection of protected reports was given with these results."
PLAIN = "The answers were read as they are: they have no certificate of a mechanism."
SIMULATION = "The reports follow from a seed."
UNTIED = "There is a certificate, but no crowd.json that ties it to the reports."
NO_CERTIFICATE = "The mechanism has no certificate that can be checked, so no epsilon is stated here."
EDITED = "The reports were edited after they were sent."
CHANNEL_VISIBLE = "The channel of a worker, such as a level of privacy that the worker chose: it is visible."
HOLDER = "The holder of the answers, who sees them all: these reports were made from a file of answers."


def statement_of_source(source: StatedSource) -> tuple[PrivacyStatement, Facts]:
    """Return the statement of privacy of a folder, a certificate or a campaign, with further facts.

    Raises:
        ReportsError: the reports are not those of the campaign.
    """
    if source.channel is not None:
        stated = channel_statement(
            source.channel,
            sha256=source.sha256,
            answers=source.answers,
            one_of_several_questions=source.one_of_several_questions,
        )
        return stated, YARDSTICK
    campaign = source.campaign
    facts = YARDSTICK if campaign is None else (*facts_for_ethics_board(campaign, source.plan), *YARDSTICK)
    if source.reports is None:
        assert campaign is not None
        return campaign_statement(campaign), facts
    return statement_of_results(source.reports, campaign, inputs=source.inputs), facts


def statement_of_results(
    reports: StatedReports, campaign: Campaign | None = None, *, inputs: Sequence[Input] | None = None
) -> PrivacyStatement:
    """Return the statement of privacy for truths and the reports from which they were inferred.

    Args:
        reports: as `read_stated_reports` found them.
        campaign: campaign that collected the reports; None without one.
        inputs: what the truths depend on, as recorded; None if only the reports are stated.

    Raises:
        ReportsError: the reports are not those of the campaign.
    """
    facts = reports.facts_of_sums
    if facts is not None:
        if facts.simulation:
            return PrivacyStatement(status="simulation", reason=SIMULATION)
        return PrivacyStatement(status="none", reason=NO_CERTIFICATE, mechanism=_mechanism_name(facts))
    stated = statement_of_evidence(reports.evidence, campaign)
    return stated if inputs is None else statement_of_inputs(stated, inputs)


def statement_of_evidence(evidence: Evidence | None, campaign: Campaign | None) -> PrivacyStatement:
    """Return the statement for reports that were checked against their crowd.json, certificate and truths."""
    facts = None if evidence is None else evidence.collection
    if evidence is None or facts is None:
        reason = NOTHING_STATED if evidence is None else PLAIN if evidence.channel is None else UNTIED
        return PrivacyStatement(status="none", reason=reason, without_reports=evidence is None)
    if facts.simulation:
        return PrivacyStatement(status="simulation", reason=SIMULATION)
    if campaign is not None:
        _require_reports_of_campaign(campaign, evidence)
    return _statement_of_checked_reports(evidence, campaign, made_from_answers=facts.campaign is None)


def _require_reports_of_campaign(campaign: Campaign, evidence: Evidence) -> None:
    """Refuse reports with other certificates, tasks or workers than those of the campaign."""
    channel, reports = evidence.channel, evidence.reports
    named = None if evidence.collection is None else evidence.collection.campaign
    asked = question_that_reports_answer(evidence, campaign)
    if asked is None:
        raise ReportsError(
            "the reports must name the question of the campaign that they answer",
            source="reports",
            hint="Give the folder of one question, as it was exported.",
        )
    foreign = [
        name
        for name, ok in (
            ("campaign", named in (None, campaign.name)),
            ("certificate", _certificates_match_campaign(channel, asked)),
            ("tasks", set(map(str, reports.tasks)) <= {task.id for task in asked.tasks}),
            ("workers", set(map(str, reports.workers)) <= set(map(exported_name_of_slot, range(campaign.slots)))),
        )
        if not ok
    ]
    if foreign:
        raise ReportsError(
            "the reports must be those of the campaign",
            source="reports",
            examples=f"other {' and '.join(foreign)}",
            hint="Give the campaign.json from which these reports were exported.",
        )


def require_every_question(campaign: Campaign, evidence: Mapping[str, Evidence | None]) -> None:
    """Refuse a page of several questions unless each folder holds the results of the question of its number, once.

    Args:
        campaign: campaign with several questions.
        evidence: reports from which the truths in each folder were inferred, by its name, in the order of questions.

    Raises:
        ReportsError: a question is missing, stands in the folder of another one or twice, or has other tasks.
    """
    parts, seen = campaign.by_question, set[str]()
    for number, ((folder, found), part) in enumerate(zip(evidence.items(), parts, strict=True), start=1):
        place = None if found is None else found.question
        if found is None or place != (number, len(parts)):
            named = "no reports that name it" if place is None else f"question {place[0]} of {place[1]}"
            raise _question_folder_error(folder, f"{named} in place of question {number} of {len(parts)}")
        _require_reports_of_campaign(campaign, found)
        if set(map(str, found.reports.tasks)) != {task.id for task in part.tasks}:
            raise _question_folder_error(folder, f"other tasks than those of question {number}")
        if found.sha256 in seen:
            raise _question_folder_error(folder, "the reports of an earlier question once more")
        seen.add(found.sha256)


def _question_folder_error(folder: str, found: str) -> ReportsError:
    return ReportsError(
        "a page of several questions needs the results of each, once, in the folder of its number",
        source=folder,
        examples=found,
        hint="Infer the folder of each question, as it was exported, into a folder of the same name.",
    )


def question_that_reports_answer(evidence: Evidence, campaign: Campaign) -> Campaign | None:
    """Return the campaign as the question that the reports answer; None if they name none of its questions."""
    parts = campaign.by_question
    places = [(number, len(parts)) if len(parts) > 1 else None for number in range(1, len(parts) + 1)]
    return dict(zip(places, parts, strict=True)).get(evidence.question)


def _certificates_match_campaign(channel: Channel | ChannelTable | None, campaign: Campaign) -> bool:
    """Return whether the certificates are those of a campaign; with levels all of them, in order, one a group."""
    channels = channel.channels if isinstance(channel, ChannelTable) else (channel,)
    found = [None if one is None else one.certificate()["sha256"] for one in channels]
    sealed = [certificate["sha256"] for certificate in campaign.certificates]
    if campaign.levels is None:
        return set(found) <= set(sealed)
    one_each = tuple((level,) for level in range(campaign.levels))
    return isinstance(channel, ChannelTable) and (found, channel.choice) == (sealed, one_each)


def _statement_of_checked_reports(
    evidence: Evidence, campaign: Campaign | None, *, made_from_answers: bool
) -> PrivacyStatement:
    """Return the statement for checked reports; fail closed."""
    facts, channel = evidence.collection, evidence.channel
    assert facts is not None
    reason = _no_guarantee_reason(facts, channel)
    if reason or channel is None:
        return PrivacyStatement(status="none", reason=reason, mechanism=_mechanism_name(facts))
    chosen = isinstance(channel, ChannelTable) and len(channel.choice) > 1
    chosen &= campaign is None and not made_from_answers
    apart = campaign is None and facts.question is not None
    guarantee, (cells, per_worker) = (
        channel.guarantee,
        _worker_guarantee(evidence, channel, workers_chose_channels=chosen),
    )
    workers = _workers_at_each_level(evidence, channel)
    if campaign is not None:
        guarantee, cells, per_worker = (
            campaign.guarantee,
            campaign.cells,
            campaign.worker_guarantee,
        )
    return PrivacyStatement(
        status="protected",
        mechanism=channel.mechanism if campaign is None else mechanism_names(campaign),
        per_answer=guarantee,
        per_worker=None if apart else per_worker,
        of_question=channel.guarantee if campaign is not None and campaign.questions else None,
        cells=0 if apart else cells,
        not_covered=uncovered_sentences(
            (HOLDER,) if made_from_answers else campaign_exclusions(campaign) + (CHANNEL_VISIBLE,) * chosen,
            protected=channel.protects_participation,
            assigned=evidence.assignment is not None,
        ),
        campaign=None if campaign is None else campaign.name,
        relay=() if campaign is None else relay_sentences(campaign),
        levels=() if campaign is None else level_sentences(campaign, workers),
        level_guarantees=_channel_guarantees_by_epsilon(channel)
        if chosen or (campaign is not None and campaign.levels)
        else (),
        level_workers=() if campaign is None else publishable_level_counts(campaign, workers),
        questions=single_question_sentences(cells, per_worker) if apart else question_sentences(campaign),
        question_guarantees=() if campaign is None else question_guarantees_if_several(campaign),
        certificate_sha256=facts.certificate_sha256,
        channel=channel if isinstance(channel, Channel) else None,
    )


def joint_statement_of_questions(statements: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """Return the statement of all reports, from those of the questions of a campaign; one is returned as it is."""
    first = statements[0]
    if len(statements) == 1 or any(one.status != "protected" for one in statements):
        return next((one for one in statements if one.status != "protected"), first)
    return replace(first, of_question=None, channel=None, certificate_sha256=None)


def _workers_at_each_level(evidence: Evidence, channel: Channel | ChannelTable) -> list[int]:
    """Return the number of workers of each channel of a table by worker."""
    if not isinstance(channel, ChannelTable):
        return []
    of_worker = channel.groups((), evidence.reports.workers)[1]
    return np.bincount(of_worker, minlength=len(channel.choice)).tolist()


def _channel_guarantees_by_epsilon(channel: Channel | ChannelTable) -> tuple[Guarantee, ...]:
    """Return the guarantee per answer of each channel of a table, the most private first."""
    channels = channel.channels if isinstance(channel, ChannelTable) else (channel,)
    return tuple(sorted((one.guarantee for one in channels), key=lambda guarantee: guarantee.epsilon))


def _no_guarantee_reason(facts: Collection, channel: Channel | ChannelTable | None) -> str:
    """Return why there is no guarantee; empty with one. Text of crowd.json, which may name an epsilon, is not in it."""
    if facts.edited:
        return EDITED
    if facts.lists_from_answers:
        text = missing_lists_reason(facts.lists_from_answers)
        return f"{text[0].upper()}{text[1:]}."
    if channel is None:
        return NO_CERTIFICATE
    reason = no_guarantee_reason(channel)
    return MARKED if not reason and facts.stated_none else reason


def _mechanism_name(facts: Collection) -> str:
    """Return the name of the mechanism, which is not checked; an unknown one in quotes."""
    known = set(facts.mechanism.split("+")) <= set(MECHANISM_NAMES)
    return facts.mechanism if known else quoted(facts.mechanism)


def _worker_guarantee(
    evidence: Evidence, channel: Channel | ChannelTable, *, workers_chose_channels: bool
) -> tuple[int, Guarantee]:
    """Return the largest number of cells of a worker, and the guarantee of all answers of one worker.

    If workers may have chosen their channels, all cells count as those of the weakest channel of the table: the worst
    worker who is present would tell what was chosen.
    """
    reports, assignment = evidence.reports, evidence.assignment
    if isinstance(channel, ChannelTable) and not workers_chose_channels:
        loss = account_channel_table(channel, tasks=reports.tasks, workers=reports.workers, assignment=assignment)[1]
        return loss.cells, Guarantee(epsilon=loss.exact, unit="worker", participation=loss.participation)
    if assignment is not None:
        cells = int(assignment.per_worker.max(initial=0))
    elif isinstance(channel, Channel) and channel.participation == "public" and NULL not in channel.outputs:
        cells = int(reports.per_worker.max(initial=0))  # one report for each answer
    else:
        cells = len(reports.tasks)
    cells = max(cells, 1)
    return cells, channel.guarantee.per_worker(cells)
