"""Statement of privacy of a collection: mechanism, epsilon per answer and per worker, participation, and exclusions.

Epsilon is stated only if all of these hold; each check that fails gives the reason in its place:
- `crowd.json` belongs to the reports (digest), is no simulation, and its reports are not edited;
- its certificate is present, belongs to it (digest) and was verified in integers;
- the lists of labels, tasks and workers that the guarantee needs were public;
- the truths were inferred from these reports: the record of the truths has their digest;
- with a campaign: its document has the certificates, tasks and slots of these reports.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from crowdveil.campaign.document import Campaign
from crowdveil.campaign.folder import find_campaign, read_campaign
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.certificate import has_format, require_certificate_or_campaign
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.evidence import Evidence
from crowdveil.data.facts.asked import why_missing_lists_void_privacy
from crowdveil.data.facts.collection import Collection
from crowdveil.data.facts.inputs import Input
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.data.sources.answer_source import AnswerSource, local_source, open_source
from crowdveil.errors import ClaimError, CrowdveilError, ReportsError, SettingsError
from crowdveil.folder.campaign.campaign_reports import (
    existing_question_folders,
    export_folder_per_question,
    exported_name_of_slot,
)
from crowdveil.folder.crowd import SUMS_FILE, find_crowd, is_sums_file, read_crowd, report_directory
from crowdveil.folder.estimate_files import estimate_names
from crowdveil.folder.evidence import (
    NO_OPTIONS,
    EvidenceOptions,
    is_certificate_of_question,
    read_evidence,
)
from crowdveil.folder.recorded_reading_options import recorded_reports
from crowdveil.folder.write_collection import REPORTS_FILES
from crowdveil.presentation.hints import advice, command_advice, one_of
from crowdveil.presentation.quotes import quoted
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.privacy.campaign_sentences import (
    level_sentences,
    publishable_level_counts,
    question_sentences,
    relay_sentences,
    single_question_sentences,
)
from crowdveil.privacy.statement import (
    MARKED,
    PrivacyStatement,
    campaign_exclusions,
    campaign_statement,
    channel_statement,
    mechanism_names,
    no_guarantee_reason,
    question_guarantees_if_several,
    uncovered_sentences,
)
from crowdveil.registry import MECHANISM_NAMES
from crowdveil.release.campaign_facts import YARDSTICK, Facts, facts_for_ethics_board
from crowdveil.release.result_files import read_results
from crowdveil.release.statement_of_inputs import statement_of_inputs
from crowdveil.standalone.checks import CAMPAIGN_FORMAT
from crowdveil.standalone.verification import (
    parse_json,
    read_bounded,
    read_parts,
    read_prior,
    verify,
)

FIRST_QUESTION = "question-1"
NOTHING_STATED = "No collection of protected reports was given with these results."
PLAIN = "The answers were read as they are: they have no certificate of a mechanism."
SIMULATION = "The reports follow from a seed."
UNTIED = "There is a certificate, but no crowd.json that ties it to the reports."
NO_CERTIFICATE = "The mechanism has no certificate that can be checked, so no epsilon is stated here."
EDITED = "The reports were edited after they were sent."
CHANNEL_VISIBLE = "The channel of a worker, such as a level of privacy that the worker chose: it is visible."
HOLDER = "The holder of the answers, who sees them all: these reports were made from a file of answers."


def find_reports_with_recorded_crowd(folder: Path) -> Path | None:
    """Return the reports in a folder that has a crowd.json; None without them."""
    names = [REPORTS_FILES["csv"][0], REPORTS_FILES["parquet"][0], SUMS_FILE]
    found = [folder / name for name in names if (folder / name).is_file()]
    if found or find_crowd(folder / names[0]) is None:
        return found[0] if found else None
    return folder if (folder / REPORTS_FILES["blocks"][0]).exists() else None


def find_campaign_file(folder: Path) -> Path | None:
    """Return the campaign.json of a folder of reports or results, or of its first question; None without one.

    That beside the reports from which results were inferred is the campaign if their crowd.json names it.
    """
    for one in (folder, folder / FIRST_QUESTION):
        found = find_campaign(one) or _campaign_beside_reports_of_results(one)
        if found is not None:
            return found
    return None


def _campaign_beside_reports_of_results(results: Path) -> Path | None:
    recorded = recorded_reports(results)
    for source in () if recorded is None else map(Path, recorded.sources):
        crowd, beside = find_crowd(source), find_campaign(report_directory(source))
        if crowd and beside and read_crowd(crowd).collection.campaign == read_campaign(beside).name:
            return beside
    return None


def statement_of_source(path: Path, *, answers: int | None = None) -> tuple[PrivacyStatement, Facts]:
    """Return the statement of privacy of a folder, a certificate or a campaign, with further facts.

    Args:
        path: folder of reports or of results, `certificate.json`, or `campaign.json`; a folder with a campaign and no
            reports, or with the folders of several questions, is that campaign.
        answers: largest number of answers of one worker under a certificate; None if it is unknown.

    Raises:
        SettingsError: `answers` without a certificate, a file of another kind, folders of questions without their
            campaign, or as `existing_question_folders`.
        ClaimError: the independent check of the campaign, and of the parts beside it, finds a false claim.
        CertificateError, CampaignError, ReportsError: as the readers of these files and `statement_of_results`.
    """
    if not path.exists():
        raise SettingsError(
            "the folder or file must exist", value=str(path), hint="Nothing is stated of no collection."
        )
    source = path.read_bytes() if path.is_file() else None
    if source is not None:
        require_certificate_or_campaign(source, str(path))
    if source is not None and not has_campaign_format(source):
        return _statement_of_certificate(path, source, answers), YARDSTICK
    if answers is not None:
        raise SettingsError(
            "the number of answers is given with a certificate only",
            value=answers,
            hint=advice("Leave {answers} out: a campaign or folder has its own number."),
        )
    named = path if source is not None else find_campaign_file(path)
    campaign = None if named is None else read_campaign(named)
    if named is not None:
        refuse_if_campaign_claims_are_false(named)
    facts = YARDSTICK if campaign is None or named is None else (*facts_for_ethics_board(campaign, named), *YARDSTICK)
    whole = source is not None or (campaign is not None and bool(existing_question_folders(path, campaign)))
    recorded = None if whole else recorded_reports(path)
    readable = recorded is not None and recorded.source_files_exist
    reports = None if whole or readable else find_reports_with_recorded_crowd(path)
    if named is not None and campaign is not None and reports is None and recorded is None:
        return campaign_statement(campaign), facts
    results = None if estimate_names(path) is None else read_results(path)
    inferred_from = None if results is None else results.reports_sha256
    inputs = None if results is None else results.inputs
    if reports is None and recorded is None and inferred_from is None and (path / FIRST_QUESTION).is_dir():
        raise SettingsError(
            "the folders of several questions are stated with the campaign.json of their campaign",
            value=str(path),
            hint="Copy it into one of them, or give the folder of one question.",
        )
    if recorded is None or not readable:
        return statement_of_results(inferred_from, reports, campaign, inputs=inputs)[0], facts
    with open_source(recorded.sources, recorded.layout) as opened:
        read: Path | AnswerSource = opened.path if is_sums_file(opened.path) else opened
        return statement_of_results(inferred_from, read, campaign, recorded.options, inputs=inputs)[0], facts


def _statement_of_certificate(path: Path, source: bytes, answers: int | None) -> PrivacyStatement:
    """Return the statement of a certificate of any format; errors as its reader, and as that of a crowd.json beside."""
    table = is_channel_table(source)
    channel = ChannelTable.from_certificate(source) if table else Channel.from_certificate(source)
    sha256, apart = str(parse_json(source)["sha256"]), is_certificate_of_question(path)
    return channel_statement(channel, sha256=sha256, answers=answers, one_of_several_questions=apart)


def refuse_if_campaign_claims_are_false(campaign: Path) -> None:
    """Refuse a campaign of which a claim is false, such as the number of tasks that its parts ask of a worker.

    Raises:
        ClaimError: with the false claims.
    """
    claims = verify(read_bounded(campaign), read_parts(campaign), read_prior(campaign)).claims
    false = tuple(claim.claim for claim in claims if not claim.holds)
    if false:
        raise ClaimError(str(campaign), false, [claim._asdict() for claim in claims])


def has_campaign_format(source: bytes) -> bool:
    """Return whether a text has the format of a campaign; its content is not checked."""
    return has_format(source, CAMPAIGN_FORMAT)


def statement_of_results(
    inferred_from: str | None,
    source: Path | AnswerSource | None,
    campaign: Campaign | None = None,
    reading: EvidenceOptions = NO_OPTIONS,
    asked: str = "",
    *,
    inputs: Sequence[Input] | None = None,
) -> tuple[PrivacyStatement, Evidence | None]:
    """Return the statement of privacy for truths, and the reports from which they were inferred, if there are any.

    Args:
        inferred_from: digest of the reports of the truths; None if only the reports are stated.
        source: reports, as `infer` reads them, or the file of sums; None if there are none.
        campaign: campaign that collected the reports; None without one.
        reading: options with which `infer` read the reports.
        asked: question that a page will name; empty for none.
        inputs: what the truths depend on, as recorded; None if only the reports are stated.

    Raises:
        ReportsError: crowd.json does not belong to the reports, the truths were inferred from other reports or those to
            another question, or the reports are not those of the campaign.
        CertificateError: the certificate is damaged, missing, or belongs to other reports.
    """
    if isinstance(source, Path) and is_sums_file(source):
        return _statement_of_sums(inferred_from, source), None
    evidence = None if source is None else _read_reports_behind_truths(inferred_from, source, reading, asked)
    stated = statement_of_evidence(evidence, campaign)
    return stated if inputs is None else statement_of_inputs(stated, inputs), evidence


def _refuse_page_naming_other_question(asked: str, name: str | None, questions: Container[str], source: str) -> None:
    """Refuse a page that would name another question of the reports than that of its truths."""
    if name is not None and asked in questions and asked != name:
        raise ReportsError(
            "a page names the question of its truths",
            source=source,
            examples=f"the question {asked!r}, but the truths are those of {name!r}",
            hint=one_of(
                "give the folder of the other question",
                advice("leave {question} out: it is a text of the page"),
            ),
        )


def _read_reports_behind_truths(
    inferred_from: str | None, source: Path | AnswerSource, reading: EvidenceOptions, asked: str
) -> Evidence:
    """Return the reports of a source; those to one question if the truths were inferred from them alone."""
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    questions = {} if inferred_from is None else opened.by_question(every=True)
    for name, one in (*questions.items(), (None, opened)):
        try:
            evidence = read_evidence(one, replace(reading, accept_edited=True))
        except CrowdveilError:
            if not questions:
                raise
        else:
            if inferred_from in (None, evidence.sha256):
                _refuse_page_naming_other_question(asked, name, questions, opened.name)
                return evidence
    raise _other_reports_error(opened.name)


def _other_reports_error(source: str) -> ReportsError:
    return ReportsError(
        "the truths must be inferred from these reports, but their record has the digest of other reports, or none",
        source=source,
        hint=f"Give the reports that `infer` read{command_advice(' ({reports})')}, with the same options, or run "
        "`infer` again.",
    )


def _statement_of_sums(inferred_from: str | None, sums: Path) -> PrivacyStatement:
    """Return the statement for sums, which have no certificate."""
    found = find_crowd(sums)
    if inferred_from not in (None, content_digest(sums)):
        raise _other_reports_error(str(sums))
    if found is None:
        return PrivacyStatement(status="none", reason=NOTHING_STATED, without_reports=True)
    facts = read_crowd(found).collection
    if facts.simulation:
        return PrivacyStatement(status="simulation", reason=SIMULATION)
    return PrivacyStatement(status="none", reason=NO_CERTIFICATE, mechanism=_mechanism_name(facts))


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


def require_every_question(campaign: Campaign, directory: Path, evidence: Mapping[Path, Evidence | None]) -> None:
    """Refuse a page of several questions unless each folder holds the results of the question of its number, once.

    Args:
        campaign: campaign with several questions.
        directory: folder with those of the questions.
        evidence: reports from which the truths in each folder were inferred.

    Raises:
        ReportsError: a question is missing, stands in the folder of another one or twice, or has other tasks.
    """
    parts, seen = campaign.by_question, set[str]()
    for number, (folder, part) in enumerate(
        zip(export_folder_per_question(directory, campaign), parts, strict=True), start=1
    ):
        found = evidence.get(folder)
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


def _question_folder_error(folder: Path, found: str) -> ReportsError:
    return ReportsError(
        "a page of several questions needs the results of each, once, in the folder of its number",
        source=str(folder),
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
        _largest_cells_and_worker_guarantee(evidence, channel, workers_chose_channels=chosen),
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
        text = why_missing_lists_void_privacy(facts.lists_from_answers)
        return f"{text[0].upper()}{text[1:]}."
    if channel is None:
        return NO_CERTIFICATE
    reason = no_guarantee_reason(channel)
    return MARKED if not reason and facts.stated_none else reason


def _mechanism_name(facts: Collection) -> str:
    """Return the name of the mechanism, which is not checked; an unknown one in quotes."""
    known = set(facts.mechanism.split("+")) <= set(MECHANISM_NAMES)
    return facts.mechanism if known else quoted(facts.mechanism)


def _largest_cells_and_worker_guarantee(
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
