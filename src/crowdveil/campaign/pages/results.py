"""Results of a closed campaign: reports, certificate, truths or shares, page and statement, computed in memory.

No file exists while they are computed. The result is kept in memory until the process ends or learns of the purge,
within an hour; no session reaches it after the purge. Each process computes its own, with the same bytes.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.write_reports import write_table
from crowdveil.campaign.files.campaign_reports import (
    CollectedQuestion,
    export_folder_per_question,
    verb_of_results,
    warning_of_formulas,
)
from crowdveil.campaign.files.folder import CAMPAIGN_FILE
from crowdveil.campaign.planning.expected_share import is_survey_campaign
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.service.export_and_purge import collect_closed_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.campaign.statement.collection import joint_statement_of_questions, statement_of_evidence
from crowdveil.campaign.statement.facts import campaign_text
from crowdveil.inference.infer import infer
from crowdveil.inference.ranking.rank import rank_comparisons
from crowdveil.pages.ranking_page import ranking_page
from crowdveil.pages.results_page import QuestionResults, content_security_policy, results_page
from crowdveil.pages.sections_page import sections_style_sheet
from crowdveil.pages.share_page import share_page
from crowdveil.privacy.statement import PrivacyStatement, statement_text
from crowdveil.quality.shares.share_function import share
from crowdveil.storage.crowd import ASSIGNMENT_FILE, CERTIFICATE_FILE, CROWD_FILE, REPORTS_FILE
from crowdveil.storage.estimate_files import RANKS, estimate_files_in_memory
from crowdveil.storage.ranking.comparisons import comparisons_of_collection
from crowdveil.storage.ranking.files import PAIRS, WORKERS, ranking_files_in_memory
from crowdveil.storage.results.result_files import Results

PAGE_FILE, STATEMENT_FILE, TRUTHS_FILE, SHARES_FILE = "report.html", "statement.txt", "truths.csv", "shares.csv"
DOWNLOADS = {
    REPORTS_FILE: "reports, as infer reads them",
    CERTIFICATE_FILE: "certificate of the channel",
    CROWD_FILE: "tasks, workers and provenance of the reports",
    ASSIGNMENT_FILE: "which task was assigned to whom",
    TRUTHS_FILE: "inferred truths",
    WORKERS: "inferred quality of workers",
    CAMPAIGN_FILE: "the campaign",
    PAGE_FILE: "the page of results, to mail or file",
    STATEMENT_FILE: "the statement of privacy",
}
"""Files of a result with truths, with what they hold."""
DESCRIPTIONS = DOWNLOADS | {
    RANKS: "ranks of the items",
    PAIRS: "probability of the order of each pair of items",
    SHARES_FILE: "shares of the answers, with intervals",
}
"""Files of any result; a survey has shares, and neither truths nor workers, and comparisons have ranks."""


@dataclass(frozen=True, eq=False)
class CampaignResult:
    """Files of a result by name, its statement of privacy, warnings, what it depends on, and the policy of its page.

    With several questions the names of their files begin with their folder; digest and inputs are those of the first.
    """

    files: dict[str, bytes]
    statement: PrivacyStatement
    warnings: tuple[str, ...]
    reports_sha256: str
    inputs: tuple[Input, ...]
    policy: str = field(default_factory=content_security_policy)


class ResultCache:
    """Results of the campaigns of a store, one computation at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._computed: dict[bytes, CampaignResult] = {}
        store.on_purge(self.drop_computed_result)

    def computed_result_or_none(self, digest: bytes) -> CampaignResult | None:
        """Return a result that this process has computed; None without one."""
        return self._computed.get(digest)

    def get(self, digest: bytes) -> CampaignResult:
        """Return the result of a closed campaign, computed on the first call.

        Raises:
            Problem: `unknown` or `purged`.
            SettingsError: the campaign is open, or has fewer than `min_reports` reports.
        """
        with self._lock:
            if digest not in self._computed:
                self._computed[digest] = _infer_and_render_results(self._store, digest)
            return self._computed[digest]

    def drop_computed_result(self, digest: bytes) -> None:
        """Remove a result, after a computation in progress."""
        with self._lock:
            self._computed.pop(digest, None)


def _infer_and_render_results(store: Store, digest: bytes) -> CampaignResult:
    campaign = store.campaign(digest)
    collected = collect_closed_campaign(store, digest)
    if verb_of_results(campaign) == "rank":
        return _ranking_of_comparisons(collected[0], campaign)
    if is_survey_campaign(campaign):
        return _shares_of_survey(collected[0], campaign)
    folders = export_folder_per_question(Path(), campaign)
    answered, notes, files = list[QuestionResults](), list[str](), dict[str, bytes]()
    for folder, one in zip(folders, collected, strict=True):
        found, written = _infer_question(one, campaign)
        answered.append(found)
        files |= {(folder / name).as_posix(): contents for name, contents in written.items()}
        said = [*found.results.notes, *warning_of_formulas(one.campaign)]
        notes += [note if len(collected) == 1 else f"{folder.name}: {note}" for note in said]
    text, statement = campaign_text(campaign), joint_statement_of_questions([one.statement for one in answered])
    files[PAGE_FILE] = results_page(answered, statement, text=text).html.encode("utf-8")
    files[STATEMENT_FILE] = statement_text(statement, text.facts).encode("utf-8")
    files[CAMPAIGN_FILE] = campaign.to_bytes()
    first = answered[0].results
    return CampaignResult(dict(sorted(files.items())), statement, tuple(notes), first.reports_sha256, first.inputs)


def _shares_of_survey(one: CollectedQuestion, campaign: Campaign) -> CampaignResult:
    """Return the result of a survey: shares, their page and the statement; a survey has no truths."""
    found, stated = share(one.evidence), statement_of_evidence(one.evidence, campaign)
    text, table = campaign_text(campaign), io.BytesIO()
    write_table(table, found.to_arrow(), "csv")
    files = {name: contents for name, contents in one.files.items() if name in DESCRIPTIONS} | {
        SHARES_FILE: table.getvalue(),
        PAGE_FILE: share_page(
            found,
            stated,
            title=text.title,
            questions=text.task_texts,
            sent_of=(len(one.evidence.reports.workers), campaign.slots),
        ).encode("utf-8"),
        STATEMENT_FILE: statement_text(stated, text.facts).encode("utf-8"),
        CAMPAIGN_FILE: campaign.to_bytes(),
    }
    notes = (*found.notes, *warning_of_formulas(campaign))
    policy = content_security_policy(sections_style_sheet())
    return CampaignResult(
        dict(sorted(files.items())), stated, notes, one.evidence.sha256, one.evidence.every_input, policy
    )


def _ranking_of_comparisons(one: CollectedQuestion, campaign: Campaign) -> CampaignResult:
    """Return the result of a campaign of comparisons, which has one question: the ranking of its items."""
    read = comparisons_of_collection(one.evidence, "reports")
    found = rank_comparisons(read.rows, sent=read.sent, notes=read.notes)
    statement, text = statement_of_evidence(one.evidence, campaign), campaign_text(campaign)
    files = {name: contents for name, contents in one.files.items() if name in DOWNLOADS}
    files |= ranking_files_in_memory(found)
    files[PAGE_FILE] = ranking_page(found, statement, title=campaign.title).encode("utf-8")
    files[STATEMENT_FILE] = statement_text(statement, text.facts).encode("utf-8")
    files[CAMPAIGN_FILE] = campaign.to_bytes()
    notes = (*found.notes, *warning_of_formulas(one.campaign))
    policy = content_security_policy(sections_style_sheet())
    return CampaignResult(
        dict(sorted(files.items())), statement, notes, one.evidence.sha256, one.evidence.every_input, policy
    )


def _infer_question(one: CollectedQuestion, campaign: Campaign) -> tuple[QuestionResults, dict[str, bytes]]:
    """Return the results of a question, and its files by name."""
    inference = infer(one.evidence)
    estimated = estimate_files_in_memory(inference.estimate)
    digest = hashlib.sha256(estimated[TRUTHS_FILE]).hexdigest()
    results = Results(inference.estimate, digest, one.evidence.sha256, inference.notes, inference.inputs)
    stated = statement_of_evidence(one.evidence, campaign)
    files = {name: contents for name, contents in (one.files | estimated).items() if name in DOWNLOADS}
    return QuestionResults(results, stated, one.evidence, campaign_text(one.campaign)), files
