"""Statement of privacy of a collection: mechanism, epsilon per answer and per worker, participation, and exclusions.

Epsilon is stated only if all of these hold; each check that fails gives the reason in its place:
- `crowd.json` belongs to the reports (digest), is no simulation, and its reports are not edited;
- its certificate is present, belongs to it (digest) and was verified in integers;
- the lists of labels, tasks and workers that the guarantee needs were public;
- the truths were inferred from these reports: the same tasks, and as many reports on each;
- with a campaign: its document has the certificates, tasks and slots of these reports.
"""

from pathlib import Path

import numpy as np

from crowdveil.campaign.document import Campaign
from crowdveil.campaign.document_fields import FORMAT as CAMPAIGN_FORMAT
from crowdveil.campaign.folder import find_campaign, read_campaign
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.certificate import has_format, require_json_file
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.text_validation import parse_json
from crowdveil.data.public_lists import NO_GUARANTEE_PREFIXES, not_public_text
from crowdveil.errors import ClaimError, ReportsError, SettingsError
from crowdveil.mechanisms.memoised import MemoisedTables, is_memoised
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.privacy.relayed import relay_sentences
from crowdveil.privacy.statement import (
    FROM_DEVICES,
    MARKED,
    PrivacyStatement,
    campaign_guarantee,
    no_guarantee_reason,
    not_covered,
    state_campaign,
    state_channel,
    state_memoised,
)
from crowdveil.privacy.verification import read_bytes, read_parts, verify
from crowdveil.release.result_files import InferredTruths, has_truths, read_truths
from crowdveil.workflow.campaigns.export import worker_name
from crowdveil.workflow.evidence import (
    Evidence,
    campaign_of,
    read_evidence,
)
from crowdveil.workflow.export import CERTIFICATE_FILE, REPORTS_FILES, SUMS_FILE, Crowd, find_crowd, read_crowd

NOTHING_STATED = "No collection of protected reports was given with these results."
UNTIED = "There is a certificate, but no crowd.json that ties it to the reports."
NO_CERTIFICATE = "The mechanism has no certificate that can be checked, so no epsilon is stated here."
EDITED = "The reports were edited after they were sent."
Facts = tuple[tuple[str, str], ...]
HOLDER = "The holder of the answers, who sees them all: these reports were made from a file of answers."


def find_reports(folder: Path) -> Path | None:
    """Return the reports in a folder that has a crowd.json; None without them."""
    names = [REPORTS_FILES["csv"][0], REPORTS_FILES["parquet"][0], SUMS_FILE]
    found = [folder / name for name in names if (folder / name).is_file()]
    if found or find_crowd(folder / names[0]) is None:
        return found[0] if found else None
    return folder if (folder / REPORTS_FILES["blocks"][0]).exists() else None


def state_source(path: Path, *, answers: int | None = None) -> tuple[PrivacyStatement, Facts]:
    """Return the statement of privacy of a folder, a certificate or a campaign, with further facts.

    Args:
        path: folder of reports or of results, `certificate.json`, or `campaign.json`; a folder with a campaign and no
            reports is that campaign.
        answers: largest number of answers of one worker under a certificate; None if it is unknown.

    Raises:
        SettingsError: `answers` without a certificate, or a file of another kind.
        ClaimError: the independent check of the campaign, and of the parts beside it, finds a false claim.
        CertificateError, CampaignError, ReportsError: as the readers of these files and `state_privacy`.
    """
    if not path.exists():
        raise ReportsError(
            "the folder or file must exist", source=str(path), hint="Nothing is stated of no collection."
        )
    source = path.read_bytes() if path.is_file() else None
    if source is not None:
        require_json_file(source, str(path))
    if source is not None and not is_campaign(source):
        return _state_certificate(source, answers), ()
    if answers is not None:
        raise SettingsError("the number of answers is given with a certificate only", value=answers)
    named = path if source is not None else find_campaign(path)
    campaign = None if named is None else read_campaign(named)
    if named is not None:
        _require_claims(named)
    facts = () if campaign is None else campaign_facts(campaign)
    reports = None if source is not None else find_reports(path)
    if campaign is not None and reports is None:
        return state_campaign(campaign), facts
    truths = read_truths(path) if has_truths(path) else None
    return state_privacy(truths, reports, campaign), facts


def _state_certificate(source: bytes, answers: int | None) -> PrivacyStatement:
    """Return the statement of a certificate of any format; errors as its reader."""
    if is_memoised(source):
        tables = MemoisedTables.from_certificate(source)
        return state_memoised(tables, sha256=str(parse_json(source)["sha256"]), answers=answers)
    table = is_channel_table(source)
    channel = ChannelTable.from_certificate(source) if table else Channel.from_certificate(source)
    return state_channel(channel, sha256=str(parse_json(source)["sha256"]), answers=answers)


def _require_claims(campaign: Path) -> None:
    """Refuse a campaign of which a claim is false, such as the number of tasks that its parts ask of a worker."""
    claims = verify(read_bytes(campaign), read_parts(campaign)).claims
    false = tuple(claim.claim for claim in claims if not claim.holds)
    if false:
        raise ClaimError(str(campaign), false, [claim._asdict() for claim in claims])


def is_campaign(source: bytes) -> bool:
    """Return whether a text has the format of a campaign; its content is not checked."""
    return has_format(source, CAMPAIGN_FORMAT)


def campaign_facts(campaign: Campaign) -> Facts:
    """Return further lines of the statement of a campaign, as pairs of name and text."""
    return (
        ("Campaign", campaign.name),
        ("Days (UTC)", f"{campaign.opens.isoformat()} to {campaign.closes.isoformat()}"),
        ("Workers asked", f"{campaign.slots:,}"),
        ("Least number of reports", f"{campaign.min_reports:,}; below it nothing is released"),
    )


def state_privacy(
    truths: InferredTruths | None, reports: Path | None, campaign: Campaign | None = None
) -> PrivacyStatement:
    """Return the statement of privacy for truths and the reports from which they were inferred.

    Args:
        truths: result of the inference; None if only the reports are stated.
        reports: file of reports, folder of encoded blocks, or `sums.json`; None if there is none.
        campaign: campaign that collected the reports; None without one.

    Raises:
        ReportsError: crowd.json does not belong to the reports, the truths were inferred from other reports, or the
            reports are not those of the campaign.
        CertificateError: the certificate is damaged, missing, or belongs to other reports.
    """
    if reports is None:
        return PrivacyStatement(status="none", reason=NOTHING_STATED)
    found = find_crowd(reports)
    if found is None:
        untied = (reports.parent / CERTIFICATE_FILE).is_file()
        return PrivacyStatement(status="none", reason=UNTIED if untied else NOTHING_STATED)
    crowd = read_crowd(found)
    if crowd["simulation"]:
        return PrivacyStatement(status="simulation", reason="The reports follow from a seed.")
    if reports.name == SUMS_FILE:
        return PrivacyStatement(status="none", reason=NO_CERTIFICATE, mechanism=_name(crowd))
    evidence = read_evidence(reports, accept_edited=True)
    if truths is not None:
        _require_same_reports(truths, evidence, reports)
    if campaign is not None:
        _require_campaign(campaign, evidence, reports)
    made_from_answers = campaign_of(crowd) is None
    return _of_evidence(evidence, campaign, made_from_answers=made_from_answers)


def _require_same_reports(truths: InferredTruths, evidence: Evidence, source: Path) -> None:
    """Refuse truths of other tasks, or from another number of reports on a task."""
    names = tuple(map(str, evidence.reports.tasks))
    if names != truths.tasks or not np.array_equal(evidence.reports.per_task, truths.reports):
        raise ReportsError(
            "the truths must be inferred from these reports: tasks, or numbers of reports on a task, differ",
            source=str(source),
            hint="Give the reports that `infer` read (--reports), or run `infer` again.",
        )


def _require_campaign(campaign: Campaign, evidence: Evidence, source: Path) -> None:
    """Refuse reports with other certificates, tasks or workers than those of the campaign."""
    channel, reports = evidence.channel, evidence.reports
    named = None if evidence.crowd is None else campaign_of(evidence.crowd)
    channels = channel.channels if isinstance(channel, ChannelTable) else (channel,)
    sealed = {certificate["sha256"] for certificate in campaign.certificates}
    foreign = [
        name
        for name, ok in (
            ("campaign", named in (None, campaign.name)),
            ("certificate", all(one is not None and one.certificate()["sha256"] in sealed for one in channels)),
            ("tasks", set(map(str, reports.tasks)) <= {task.id for task in campaign.tasks}),
            ("workers", set(map(str, reports.workers)) <= set(map(worker_name, range(campaign.slots)))),
        )
        if not ok
    ]
    if foreign:
        raise ReportsError(
            "the reports must be those of the campaign",
            source=str(source),
            examples=f"other {' and '.join(foreign)}",
            hint="Give the campaign.json from which these reports were exported.",
        )


def _of_evidence(evidence: Evidence, campaign: Campaign | None, *, made_from_answers: bool) -> PrivacyStatement:
    """Return the statement for checked reports; fail closed."""
    crowd, channel = evidence.crowd, evidence.channel
    assert crowd is not None
    reason = _no_guarantee_reason(crowd, channel)
    if reason or channel is None:
        return PrivacyStatement(status="none", reason=reason, mechanism=_name(crowd))
    guarantee, (cells, per_worker) = channel.guarantee, _worker_guarantee(evidence, channel)
    if campaign is not None:
        guarantee, cells = campaign.guarantee, campaign.cells
        per_worker = campaign_guarantee(campaign)
    return PrivacyStatement(
        status="protected",
        mechanism=channel.mechanism,
        per_answer=guarantee,
        per_worker=per_worker,
        cells=cells,
        not_covered=not_covered(
            (HOLDER,) if made_from_answers else FROM_DEVICES,
            protected=channel.protects_participation,
            assigned=evidence.assignment is not None,
        ),
        campaign=None if campaign is None else campaign.name,
        relay=() if campaign is None else relay_sentences(campaign),
        certificate_sha256=crowd["certificate_sha256"],
        channel=channel if isinstance(channel, Channel) else None,
        batch=_least_batch(evidence, channel),
    )


def _least_batch(evidence: Evidence, channel: Channel | ChannelTable) -> int:
    """Return the number of reports, those without an answer included where they are sent, on the task with the fewest.

    Where participation is protected every asked cell is a report; where it is public the received ones are.
    """
    reports, assignment = evidence.reports, evidence.assignment
    if not channel.protects_participation:
        return int(reports.per_task.min(initial=0)) if len(reports.tasks) else 0
    if assignment is None:
        return len(reports.workers)
    codes = assignment.aligned(reports.tasks, reports.workers) // max(len(reports.workers), 1)
    return int(np.bincount(codes, minlength=len(reports.tasks)).min()) if len(reports.tasks) else 0


def _no_guarantee_reason(crowd: Crowd, channel: Channel | ChannelTable | None) -> str:
    """Return why there is no guarantee; empty with one. Text of crowd.json, which may name an epsilon, is not in it."""
    if crowd["edited"]:
        return EDITED
    if crowd["lists_from_answers"]:
        text = not_public_text(crowd["lists_from_answers"])
        return f"{text[0].upper()}{text[1:]}."
    if channel is None:
        return NO_CERTIFICATE
    reason = no_guarantee_reason(channel)
    return MARKED if not reason and crowd["guarantee"].startswith(NO_GUARANTEE_PREFIXES) else reason


def _name(crowd: Crowd) -> str:
    """Return the name of the mechanism, without its settings, which are not checked."""
    return crowd["mechanism"].partition(" ")[0].rstrip(";")


def _worker_guarantee(evidence: Evidence, channel: Channel | ChannelTable) -> tuple[int, Guarantee]:
    """Return the largest number of cells of a worker, and the guarantee of all answers of one worker."""
    reports, assignment = evidence.reports, evidence.assignment
    if isinstance(channel, ChannelTable):
        loss = account_channel_table(channel, tasks=reports.tasks, workers=reports.workers, assignment=assignment)[1]
        return loss.cells, Guarantee(epsilon=loss.exact, unit="worker", participation=loss.participation)
    if assignment is not None:
        cells = int(assignment.per_worker.max(initial=0))
    elif channel.participation == "public" and NULL not in channel.outputs:
        cells = int(reports.per_worker.max(initial=0))  # one report for each answer
    else:
        cells = len(reports.tasks)
    cells = max(cells, 1)
    return cells, channel.guarantee.per_worker(cells)
