"""`crowdveil campaign close`: end of the collection."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.campaign.database import campaign_argument, number_text, open_campaign
from crowdveil.cli.campaign.serve import database_option
from crowdveil.cli.display import print_result
from crowdveil.cli.options import json_option
from crowdveil.cli.verb import Verb

HELP = """End the collection of a campaign: no further report is accepted, for good.

CAMPAIGN is its campaign.json. A running service may go on: devices that send a stored report again get their receipt.
The number of reports is stated from the campaign's least number on."""


@click.command(
    cls=Verb,
    help=HELP,
    example="crowdveil campaign close essays/campaign.json",
    main_options=("database", "as_json"),
    short_help="Accept no further reports.",
)
@campaign_argument
@database_option
@json_option
def close(file: Path, database: str | None, as_json: bool) -> None:
    """Close a campaign and print the number of its reports."""
    with open_campaign(file, database) as (store, campaign):
        reports = store.close_campaign(campaign.digest)
    data = {"campaign": campaign.name, "reports": reports, "min_reports": campaign.min_reports}
    rows = [("closed", campaign.name), ("reports", number_text(reports, campaign.min_reports))]
    print_result(data, rows, as_json=as_json)
