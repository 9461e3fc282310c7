"""Database of a served campaign, for the commands that close, export and purge it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.campaign.serve import database_errors_as_refusals, database_url, require_service_packages
from crowdveil.cli.display import next_row
from crowdveil.cli.options import CAMPAIGN_FILE
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    from crowdveil.campaign.rules.document import Campaign
    from crowdveil.campaign.service.store import Store

REASONS = {
    "unknown": ("the database must hold the campaign", "Give the --database of crowdveil campaign serve."),
    "purged": ("the campaign must not be purged", "Its data were deleted."),
}


@contextmanager
def open_campaign(file: Path, database: str | None) -> Iterator[tuple[Store, Campaign]]:
    """Yield the store and the campaign of a campaign.json.

    Raises:
        SettingsError: no such database, or it does not hold the campaign, or holds it purged.
        CampaignError, CertificateError: the file is damaged.
    """
    require_service_packages()
    from crowdveil.campaign.service.campaign_registration import folder_of_campaign_json
    from crowdveil.campaign.service.problems import Problem
    from crowdveil.campaign.service.store import Store

    campaign = folder_of_campaign_json(file).campaign
    if database is None and not (file.parent / "reports.sqlite").exists():
        raise SettingsError(
            "the campaign must have been served",
            value=str(file),
            hint="crowdveil campaign serve creates reports.sqlite next to it.",
        )
    try:
        with database_errors_as_refusals(), closing(Store.open(database_url(file, database))) as store:
            yield store, campaign
    except Problem as problem:
        rule, hint = REASONS[problem.name]
        raise SettingsError(rule, value=campaign.name, hint=hint) from problem


def report_count_text(number: int | None, least: int) -> str:
    """Return a number of reports, which is not stated below the least number."""
    return f"{number:,}" if number is not None else f"fewer than {least}: nothing is released"


campaign_argument = click.argument("file", type=CAMPAIGN_FILE, metavar="CAMPAIGN")


def following_rows(campaign: Campaign, out: Path) -> list[tuple[str, str]]:
    """Return rows with the command that reads the collection: ranks of comparisons, shares of a survey, else truths.

    A campaign does not say whether its tasks have one right answer, so that one with labels has a row for opinions.
    """
    from crowdveil.campaign.files.campaign_reports import verb_of_results
    from crowdveil.campaign.planning.expected_share import is_survey_campaign
    from crowdveil.channels.alphabet import Categories

    verb, shares = verb_of_results(campaign), next_row("share", out, "--page", "shares.html")
    if verb == "rank":
        return [next_row(verb, out)]
    if is_survey_campaign(campaign):
        return [shares]
    labels = not campaign.questions and isinstance(campaign.channels[0].alphabet, Categories)
    return [next_row(verb, out), *([("opinions", shares[1])] if labels else [])]
