"""Release of a closed campaign as the folder that `infer` reads."""

from __future__ import annotations

from os import PathLike

from crowdveil.campaign.report_body import decode
from crowdveil.data.reports import Reports
from crowdveil.service.store import Store
from crowdveil.workflow.campaigns.export import AcceptedReport, write_campaign_reports


def export(store: Store, digest: bytes, directory: str | PathLike[str], *, replace: bool = False) -> Reports:
    """Write the collection of a closed campaign; return its non-NULL reports.

    Raises:
        Problem: `unknown` or `purged`.
        SettingsError: as `Store.released_reports` and `write_campaign_reports`.
    """
    campaign = store.campaign(digest)
    accepted = []
    for slot, body in store.released_reports(digest):
        tasks = store.tasks(digest, slot)
        accepted.append(AcceptedReport(slot, tasks, decode(body, campaign, slot, tasks)))
    return write_campaign_reports(directory, campaign, accepted, replace=replace)
