"""Results of a closed campaign: reports, certificate, truths, workers, page and statement, computed in memory.

Files exist in a temporary folder while they are computed. The result is kept in memory until the process ends or
learns of the purge, within an hour; no session reaches it after the purge. Each process computes its own, with the same
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from threading import Lock

from crowdveil.campaign.folder import CAMPAIGN_FILE
from crowdveil.data.facts.inputs import Input
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.files.atomic_write import write_outputs
from crowdveil.files.filesystem import temporary_folder
from crowdveil.folder.crowd import ASSIGNMENT_FILE, CERTIFICATE_FILE, CROWD_FILE, REPORTS_FILE
from crowdveil.folder.estimate_files import page_outputs, write_estimate
from crowdveil.folder.evidence import read_evidence
from crowdveil.folder.results.result_files import Results as InferredResults
from crowdveil.inference.infer import infer
from crowdveil.privacy.statement import PrivacyStatement, statement_text
from crowdveil.release.privacy_statement import joint_statement_of_questions, statement_of_evidence
from crowdveil.release.results_page import QuestionResults, campaign_text, results_page
from crowdveil.service.export_and_purge import export_closed_campaign
from crowdveil.service.store import Store

PAGE_FILE, STATEMENT_FILE, TRUTHS_FILE = "report.html", "statement.txt", "truths.csv"
DOWNLOADS = {
    REPORTS_FILE: "reports, as infer reads them",
    CERTIFICATE_FILE: "certificate of the channel",
    CROWD_FILE: "tasks, workers and provenance of the reports",
    ASSIGNMENT_FILE: "which task was assigned to whom",
    TRUTHS_FILE: "inferred truths",
    "workers.csv": "inferred quality of workers",
    CAMPAIGN_FILE: "the campaign",
    PAGE_FILE: "the page of results, to mail or file",
    STATEMENT_FILE: "the statement of privacy",
}
"""Files of a result, with what they hold."""


@dataclass(frozen=True, eq=False)
class CampaignResult:
    """Files of a result by name, the statement of privacy, warnings of the inference, and what the truths depend on.

    With several questions the names of their files begin with their folder; digest and inputs are those of the first.
    """

    files: dict[str, bytes]
    statement: PrivacyStatement
    warnings: tuple[str, ...]
    reports_sha256: str
    inputs: tuple[Input, ...]


class Results:
    """Results of the campaigns of a store, one computation at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._computed: dict[bytes, CampaignResult] = {}
        store.on_purge(self.drop_computed_result)

    def computed_result_or_none(self, digest: bytes) -> CampaignResult | None:
        """Return a result that this process has computed; None without one."""
        return self._computed.get(digest)

    def result_computed_once_after_closing(self, digest: bytes) -> CampaignResult:
        """Return the result of a closed campaign, computed on the first call.

        Raises:
            Problem: `unknown` or `purged`.
            SettingsError: the campaign is open, or has fewer than `min_reports` reports.
        """
        with self._lock:
            if digest not in self._computed:
                with temporary_folder(Path(gettempdir())) as folder:
                    self._computed[digest] = _infer_and_render_results(self._store, digest, folder / "results")
            return self._computed[digest]

    def drop_computed_result(self, digest: bytes) -> None:
        """Remove a result, after a computation in progress."""
        with self._lock:
            self._computed.pop(digest, None)


def _infer_and_render_results(store: Store, digest: bytes, folder: Path) -> CampaignResult:
    campaign = store.campaign(digest)
    exported = export_closed_campaign(store, digest, folder)
    answered, notes = [], list[str]()
    for one in exported:
        evidence = read_evidence(one.folder / REPORTS_FILE)
        inference = infer(evidence)
        write_estimate(one.folder, inference.estimate, reports_sha256=evidence.sha256, inputs=inference.inputs)
        digest_of_truths = content_digest(one.folder / TRUTHS_FILE)
        results = InferredResults(
            inference.estimate, digest_of_truths, evidence.sha256, inference.notes, inference.inputs
        )
        answered.append(
            QuestionResults(results, statement_of_evidence(evidence, campaign), evidence, campaign_text(one.campaign))
        )
        notes += [note if len(exported) == 1 else f"{one.folder.name}: {note}" for note in inference.notes]
    text, statement = campaign_text(campaign), joint_statement_of_questions([one.statement for one in answered])
    write_outputs(page_outputs(folder / PAGE_FILE), {PAGE_FILE: results_page(answered, statement, text=text).html})
    (folder / STATEMENT_FILE).write_text(statement_text(statement, text.facts), "utf-8")
    (folder / CAMPAIGN_FILE).write_bytes(campaign.to_bytes())
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name in DOWNLOADS]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    first = answered[0].results
    return CampaignResult(files, statement, tuple(notes), first.reports_sha256, first.inputs)
