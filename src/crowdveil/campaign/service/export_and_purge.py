"""End of a campaign: release as the folder that `infer` reads, and deletion from the promised day on."""

from __future__ import annotations

import logging
from os import PathLike
from threading import Event, Thread

from sqlalchemy.exc import SQLAlchemyError

from crowdveil.campaign.files.campaign_reports import (
    AcceptedReport,
    CollectedQuestion,
    ExportedQuestion,
    collected_questions,
    read_accepted_report,
    write_questions,
)
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.store import Purged, Store
from crowdveil.errors import SettingsError

CHECK_SECONDS = 3600.0
"""Time between two looks at the day (UTC)."""
RETRY_SECONDS = 60.0
"""Time until the next try of a purge that failed."""
logger = logging.getLogger("crowdveil.campaign.service")


def export_closed_campaign(
    store: Store, digest: bytes, directory: str | PathLike[str], *, replace: bool = False
) -> list[ExportedQuestion]:
    """Write the collection of each question of a closed campaign; return them.

    Raises:
        Problem: `unknown` or `purged`.
        SettingsError: as `Store.reports_under_valid_links` and `write_questions`.
    """
    return write_questions(directory, *_accepted_reports_of_closed(store, digest), replace=replace)


def collect_closed_campaign(store: Store, digest: bytes) -> list[CollectedQuestion]:
    """Return the collection of each question of a closed campaign in memory; errors as `export_closed_campaign`."""
    return collected_questions(*_accepted_reports_of_closed(store, digest))


def _accepted_reports_of_closed(store: Store, digest: bytes) -> tuple[Campaign, list[AcceptedReport]]:
    """Return a closed campaign with its reports under valid links."""
    campaign = store.campaign(digest)
    if campaign.relay is not None:
        raise SettingsError(
            "the reports of a relay are sealed: they are forwarded, not exported",
            value=campaign.name,
            hint="The curator joins the batches with crowdveil campaign collect.",
        )
    accepted = []
    for slot, body in store.reports_under_valid_links(digest):
        tasks = store.tasks(digest, slot)
        accepted.append(read_accepted_report(campaign, slot, tasks, body))
    return campaign, accepted


def purge_due_campaigns(store: Store) -> int:
    """Close and purge every campaign whose day of deletion has come; return their number.

    Campaigns that another process purged are removed from memory. A rewrite of the files that failed is tried again.

    Raises:
        SettingsError: rows are deleted, and the rewrite of the files failed.
    """
    purged, today = 0, store.today()
    for digest in store.digests_of_unpurged_campaigns():
        try:
            campaign = store.campaign(digest)
            due = campaign.purge_day
            if due is not None and due <= today:
                for sentence in undelivered_warnings(store.purge(digest, even_open=True), campaign):
                    logger.error("day of deletion: %s", sentence)
                purged += 1
        except Problem:
            continue  # another process was first
    store.forget_purged_campaigns()
    store.rewrite_due_files()
    return purged


def purge_due_or_log(store: Store) -> bool:
    """Run `purge_due_campaigns`, and log a failure; return whether it succeeded."""
    try:
        purge_due_campaigns(store)
    except (SettingsError, SQLAlchemyError) as error:
        reason = error if isinstance(error, SettingsError) else type(error).__name__
        logger.error("purge failed, it is tried again: %s", reason)
        return False
    return True


def undelivered_warnings(deleted: Purged, campaign: Campaign) -> list[str]:
    """Return a sentence on the reports of a relay that were deleted and never forwarded, unless there are none."""
    reports, left, least = deleted.undelivered_reports, deleted.undelivered_batches, campaign.min_reports
    if not reports:
        return []
    count = f"{reports:,}" if reports >= least else f"fewer than {least}"
    return [f"{count} reports were deleted before they were forwarded; batches not delivered: {left:,}."]


class PurgeThread:
    """Thread that runs `purge_due_campaigns` at the start, then every hour, and sooner after a failure."""

    def __init__(self, store: Store, *, seconds: float = CHECK_SECONDS) -> None:
        self._store, self._seconds = store, seconds
        self._ends = Event()
        self._thread = Thread(target=self._purge_until_stopped, name="crowdveil-retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after a purge in progress."""
        self._ends.set()
        self._thread.join()

    def _purge_until_stopped(self) -> None:
        while not self._ends.is_set():
            done = purge_due_or_log(self._store)
            self._ends.wait(self._seconds if done else min(self._seconds, RETRY_SECONDS))
