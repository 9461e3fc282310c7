"""`crowdveil campaign purge`: deletion of the data of a closed campaign."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.campaign.database import campaign_argument, open_campaign
from crowdveil.cli.campaign.serve import database_option, require_service_packages
from crowdveil.cli.display import print_result, print_warning
from crowdveil.cli.verb import Verb
from crowdveil.errors import SettingsError


@click.command(
    cls=Verb,
    example="crowdveil campaign purge essays/campaign.json --yes",
    main_options=("database", "yes", "as_json"),
    short_help="Delete the data of a closed campaign.",
)
@campaign_argument
@database_option
@click.option("--yes", is_flag=True, help="Confirm the deletion, which cannot be undone.")
def purge(file: Path, database: str | None, yes: bool) -> None:
    """Delete reports, links, keys and documents of a closed campaign from the database.

    CAMPAIGN is the campaign.json. If the campaign has a day of deletion, crowdveil campaign serve purges it from that
    day on. The campaign's hash, its state and the number of reports stay, so that it cannot be served again. The files
    of the database are then rewritten. If another connection prevents this, the exit code is 1: run the command
    again. Run it again after an interrupt, too. The campaign's folder, exported files and backups of the database are
    not touched: delete them yourself.
    """
    if not yes:
        raise SettingsError(
            "a purge must be confirmed",
            value=str(file),
            hint=f"{_day_of_deletion_text(file)} Export what you still need, then give --yes.",
        )
    require_service_packages()
    from crowdveil.campaign.service.export_and_purge import undelivered_warnings

    with open_campaign(file, database) as (store, campaign):
        deleted = store.purge(campaign.digest)
        warnings = undelivered_warnings(deleted, campaign)
        try:
            store.rewrite_due_files()
        except SettingsError:
            for text in warnings:  # the next purge no longer knows it
                print_warning(text)
            raise
    reports = deleted.reports if deleted.reports >= campaign.min_reports else None
    data = {
        "warnings": warnings,
        "campaign": campaign.name,
        "reports": reports,
        "links": deleted.tokens,
        "parts": deleted.parts,
        "pictures": deleted.pictures,
        "min_reports": campaign.min_reports,
    }
    rows = [
        ("purged", campaign.name),
        ("reports", "all: " + (f"{reports:,}" if reports is not None else f"fewer than {campaign.min_reports}")),
        ("links", f"{deleted.tokens:,}"),
        ("documents", f"the campaign, {deleted.parts:,} assignment parts, {deleted.pictures:,} pictures"),
        *(("warning", text) for text in warnings),
        ("kept", "hash, state and number of reports; backups and exported files are not covered"),
    ]
    print_result(data, rows)


def _day_of_deletion_text(file: Path) -> str:
    """Return the sentence on the campaign's day of deletion."""
    require_service_packages()
    from crowdveil.campaign.service.campaign_registration import folder_of_campaign_json

    day = folder_of_campaign_json(file).campaign.purge_day
    return "It has no day of deletion." if day is None else f"It is due on {day.isoformat()} (UTC)."
