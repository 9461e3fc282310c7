"""`crowdveil campaign invite`: single-use links of the workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import next_row, print_result
from crowdveil.cli.options import CAMPAIGN_FOLDER
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.campaign.rules.document import Campaign

NEXT_START = "reads the new link at its next start, but keeps the old one if that has stored a report"


@click.command(
    cls=Verb,
    example="crowdveil campaign invite essays",
    main_options=("replace", "accept_second_report"),
    short_help="Write single-use links for the workers.",
)
@click.argument("folder", type=CAMPAIGN_FOLDER)
@click.option(
    "--replace", metavar="WORKER", help="Make a new link for this worker (slot or name) and revoke the old one."
)
@click.option(
    "--accept-second-report",
    is_flag=True,
    help="With --replace, without a service: accept that the worker may report twice.",
)
def invite(folder: Path, replace: str | None, accept_second_report: bool) -> None:
    """Write a single-use link for each worker: links.csv, and links.html to print, with QR codes.

    Only these files contain the links (mode 0600); tokens.json keeps their hashes. Anyone who has a link can answer
    with it once. Send each worker one link, then delete the files.

    \f
    --replace makes a new link for a worker who lost the old one, in separate files, and revokes the old one. The
    service reads the new link at its next start. If the old link has stored a report, the service keeps the old link,
    unless it is started with --accept-second-report. A second report is a second draw: the epsilons of both reports add
    up (per answer, called a cell, and per worker; participation as in the campaign).
    """
    if accept_second_report and replace is None:
        raise click.UsageError("--accept-second-report requires --replace.")
    from crowdveil.campaign.files import invitations
    from crowdveil.campaign.rules.document import spaced_name_to_compare

    if replace is None:
        made = invitations.write_first_links(folder)
    else:
        made = invitations.replace_link(folder, replace, accept_second_report=accept_second_report)
    data = {
        "campaign": made.campaign.name,
        "links": len(made.slots),
        "replaced_slot": None if replace is None else made.slots[0],
        "warnings": list(made.warnings),
        "files": list(map(str, made.files)),
    }
    rows = [
        *(("warning", text) for text in made.warnings),
        ("campaign", made.campaign.name),
        ("to compare", spaced_name_to_compare(made.campaign.name)),
        ("links", f"{len(made.slots):,}, each for one report"),
        *([] if replace is None else [("revoked", f"the old link of worker {replace}")]),
        *([] if replace is None or made.campaign.url is None else [("service", NEXT_START)]),
        *(("written", str(path)) for path in made.files),
        *([] if replace is not None else [_next_row(made.campaign, folder)]),
    ]
    print_result(data, rows)


def _next_row(campaign: Campaign, folder: Path) -> tuple[str, str]:
    """Return the command that collects reports: of the service, of a relay, or the page that workers get as a file."""
    if campaign.url is None:
        return next_row("campaign", "page", folder, "--out", "device.html")
    if campaign.relay is not None:
        return next_row("campaign", "receive", folder / "campaign.json", "--out", "batches")
    return next_row("campaign", "serve", folder / "campaign.json")
