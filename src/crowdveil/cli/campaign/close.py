"""`crowdveil campaign close`: end of the collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.campaign.database import campaign_argument, open_campaign, report_count_text
from crowdveil.cli.campaign.serve import database_option, database_words
from crowdveil.cli.display import next_row, print_result
from crowdveil.cli.options import FOLDER_PATH
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.campaign.rules.document import Campaign


@click.command(
    cls=Verb,
    example="crowdveil campaign close essays/campaign.json",
    main_options=("database", "reports", "as_json"),
    short_help="Accept no further reports.",
)
@campaign_argument
@database_option
@click.option("--reports", type=FOLDER_PATH, help="Without a service: folder of the report files.")
def close(file: Path, database: str | None, reports: Path | None) -> None:
    """Close a campaign for good: it accepts no further reports.

    CAMPAIGN is the campaign.json. A running service may keep running: devices that send a stored report again get their
    receipt. The number of reports is printed only if it reaches the campaign's least number.

    Use --reports to close a campaign without a service. The file closed.json, next to CAMPAIGN, then holds the SHA-256
    of the reports that count, and collect names files that come later.
    """
    if reports is not None:
        count, digest, campaign = _close_by_report_files(file, reports)
    else:
        with open_campaign(file, database) as (store, campaign):
            count, digest = store.close_and_count_reports(campaign.digest), None
    data = {"campaign": campaign.name, "reports": count, "min_reports": campaign.min_reports, "digest": digest}
    rows = [("closed", campaign.name), ("reports", report_count_text(count, campaign.min_reports))]
    rows += [] if digest is None else [("SHA-256 of the reports", digest)]
    if reports is None:
        following = next_row("campaign", "export", file, *database_words(database), "--out", "collected")
    else:
        following = next_row("campaign", "collect", reports, "--campaign", file, "--out", "collected")
    print_result(data, [*rows, following])


def _close_by_report_files(file: Path, reports: Path) -> tuple[int | None, str, Campaign]:
    """Close a campaign without a service; return the number of reports, None below the least, and their digest."""
    from crowdveil.campaign.files.folder import CampaignFolder
    from crowdveil.campaign.files.report_files import close_by_report_files

    asked = CampaignFolder(file.parent)
    closed = close_by_report_files(reports, asked)
    count = len(closed.accepted)
    return count if count >= asked.campaign.min_reports else None, closed.closing.digest, asked.campaign
