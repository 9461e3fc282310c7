"""Files of a collection that is stated: certificate, campaign, or reports with their results; read into values."""

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.sources.answer_source import AnswerSource, local_source, open_source
from crowdveil.campaign.files.campaign_reports import FIRST_QUESTION, existing_question_folders
from crowdveil.campaign.files.folder import PLAN_FILE, find_campaign, read_campaign
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.certificate import has_format, require_certificate_or_campaign
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.errors import ClaimError, CrowdveilError, ReportsError, SettingsError
from crowdveil.hints import advice, command_advice, one_of
from crowdveil.standalone.checks import CAMPAIGN_FORMAT
from crowdveil.standalone.verification import parse_json, read_bounded, read_parts, read_prior, verify
from crowdveil.storage.crowd import SUMS_FILE, find_crowd, is_sums_file, read_crowd, report_directory
from crowdveil.storage.estimate_files import estimate_names, recorded_ranks
from crowdveil.storage.evidence import NO_OPTIONS, EvidenceOptions, is_certificate_of_question, read_evidence
from crowdveil.storage.given_files import recorded_inputs
from crowdveil.storage.recorded_reading_options import recorded_reports
from crowdveil.storage.results.result_files import read_results
from crowdveil.storage.write_collection import REPORTS_FILES


class StatedReports(NamedTuple):
    """Reports from which truths were inferred, as far as there are any.

    Attributes:
        evidence: reports that were checked against their crowd.json, certificate and truths; None without any.
        facts_of_sums: facts of the crowd.json of sums, which have no certificate; None for others.
    """

    evidence: Evidence | None = None
    facts_of_sums: Collection | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class StatedSource:
    """What is stated: the channel of a certificate, a campaign, or reports.

    Attributes:
        channel, sha256: of a certificate, and its digest; None and empty without one.
        one_of_several_questions: whether a certificate is that of one of several questions.
        answers: largest number of answers of one worker under a certificate; None if it is unknown.
        campaign: campaign, or that of the reports; None without one.
        plan: contents of its plan.json; empty without one.
        reports: reports that are stated; None for a certificate or a campaign alone.
        inputs: what the truths depend on, as recorded; None if only the reports are stated.
    """

    channel: Channel | ChannelTable | None = None
    sha256: str = ""
    one_of_several_questions: bool = False
    answers: int | None = None
    campaign: Campaign | None = None
    plan: bytes = b""
    reports: StatedReports | None = None
    inputs: tuple[Input, ...] | None = None


def find_recorded_reports(folder: Path) -> Path | None:
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
        found = find_campaign(one) or _results_campaign(one)
        if found is not None:
            return found
    return None


def _results_campaign(results: Path) -> Path | None:
    recorded = recorded_reports(results)
    for source in () if recorded is None else map(Path, recorded.sources):
        crowd, beside = find_crowd(source), find_campaign(report_directory(source))
        if crowd and beside and read_crowd(crowd).collection.campaign == read_campaign(beside).name:
            return beside
    return None


def read_stated_source(path: Path, *, answers: int | None = None) -> StatedSource:
    """Return what is stated of a folder, a certificate or a campaign.

    Args:
        path: folder of reports or of results, `certificate.json`, or `campaign.json`; a folder with a campaign and no
            reports, or with the folders of several questions, is that campaign.
        answers: largest number of answers of one worker under a certificate; None if it is unknown.

    Raises:
        SettingsError: `answers` without a certificate, a file of another kind, folders of questions without their
            campaign, or as `existing_question_folders`.
        ClaimError: the independent check of the campaign, and of the parts beside it, finds a false claim.
        CertificateError, CampaignError, ReportsError: as the readers of these files and `read_stated_reports`.
    """
    if not path.exists():
        raise SettingsError("the folder or file must exist", value=str(path), hint="Check the path.")
    source = path.read_bytes() if path.is_file() else None
    if source is not None:
        require_certificate_or_campaign(source, str(path))
    if source is not None and not has_format(source, CAMPAIGN_FORMAT):
        return _stated_certificate(path, source, answers)
    if answers is not None:
        raise SettingsError(
            "the number of answers can be given with a certificate only",
            value=answers,
            hint=advice("Leave {answers} out: a campaign or folder has its own number."),
        )
    named = path if source is not None else find_campaign_file(path)
    campaign = None if named is None else read_campaign(named)
    if named is not None:
        refuse_false_claims(named)
    plan = b"" if named is None else _bytes_or_empty(named.parent / PLAN_FILE)
    whole = source is not None or (campaign is not None and bool(existing_question_folders(path, campaign)))
    recorded = None if whole else recorded_reports(path)
    readable = recorded is not None and recorded.source_files_exist
    reports = None if whole or readable else find_recorded_reports(path)
    if named is not None and campaign is not None and reports is None and recorded is None:
        return StatedSource(campaign=campaign, plan=plan)
    inferred_from, inputs = _origin_of_results(path)
    if reports is None and recorded is None and inferred_from is None and (path / FIRST_QUESTION).is_dir():
        raise SettingsError(
            "a statement on the folders of several questions needs the campaign.json of their campaign",
            value=str(path),
            hint="Copy it into one of them, or give the folder of one question.",
        )
    if recorded is None or not readable:
        found = read_stated_reports(inferred_from, reports)
    else:
        with open_source(recorded.sources, recorded.layout) as opened:
            read: Path | AnswerSource = opened.path if is_sums_file(opened.path) else opened
            found = read_stated_reports(inferred_from, read, recorded.options)
    return StatedSource(campaign=campaign, plan=plan, reports=found, inputs=inputs)


def _origin_of_results(folder: Path) -> tuple[str | None, tuple[Input, ...] | None]:
    """Return digest of the reports and recorded inputs of truths or a ranking; None and None without them."""
    if estimate_names(folder) is not None:
        results = read_results(folder)
        return results.reports_sha256, results.inputs
    ranks = recorded_ranks(folder) if folder.is_dir() else None
    return (None, None) if ranks is None else (ranks.reports_sha256, recorded_inputs(ranks, folder))


def _bytes_or_empty(path: Path) -> bytes:
    """Return the contents of a file; empty if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _stated_certificate(path: Path, source: bytes, answers: int | None) -> StatedSource:
    """Return the channel of a certificate of any format; errors as its reader, and as that of a crowd.json beside."""
    table = is_channel_table(source)
    channel = ChannelTable.from_certificate(source) if table else Channel.from_certificate(source)
    sha256, apart = str(parse_json(source)["sha256"]), is_certificate_of_question(path)
    return StatedSource(channel=channel, sha256=sha256, one_of_several_questions=apart, answers=answers)


def refuse_false_claims(campaign: Path) -> None:
    """Refuse a campaign of which a claim is false, such as the number of tasks that its parts ask of a worker.

    Raises:
        ClaimError: with the false claims.
    """
    claims = verify(read_bounded(campaign), read_parts(campaign), read_prior(campaign)).claims
    false = tuple(claim.claim for claim in claims if not claim.holds)
    if false:
        raise ClaimError(str(campaign), false, [claim._asdict() for claim in claims])


def read_stated_reports(
    inferred_from: str | None,
    source: Path | AnswerSource | None,
    reading: EvidenceOptions = NO_OPTIONS,
    asked: str = "",
) -> StatedReports:
    """Return the reports from which truths were inferred, if there are any.

    Args:
        inferred_from: digest of the reports of the truths; None if only the reports are stated.
        source: reports, as `infer` reads them, or the file of sums; None if there are none.
        reading: options with which `infer` read the reports.
        asked: question that a page will name; empty for none.

    Raises:
        ReportsError: crowd.json does not belong to the reports, or the truths were inferred from other reports or those
            to another question.
        CertificateError: the certificate is damaged, missing, or belongs to other reports.
    """
    if source is None:
        return StatedReports()
    if isinstance(source, Path) and is_sums_file(source):
        return _read_stated_sums(inferred_from, source)
    return StatedReports(_read_reports_behind_truths(inferred_from, source, reading, asked))


def _read_stated_sums(inferred_from: str | None, sums: Path) -> StatedReports:
    """Return the facts of sums; none without a crowd.json."""
    found = find_crowd(sums)
    if inferred_from not in (None, content_digest(sums)):
        raise _other_reports_error(str(sums))
    return StatedReports() if found is None else StatedReports(facts_of_sums=read_crowd(found).collection)


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
