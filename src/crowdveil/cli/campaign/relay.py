"""`crowdveil campaign relay`: forwards sealed reports to the curator, in shuffled batches and without names."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.campaign.serve import (
    database_errors_as_refusals,
    database_option,
    database_url,
    require_service_packages,
    server_options,
)
from crowdveil.cli.display import print_result
from crowdveil.cli.options import CAMPAIGN_FILE, FILE_PATH, FOLDER_PATH
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.campaign.relay.forwarder import Send


@click.command(
    cls=Verb,
    example="crowdveil campaign relay essays/campaign.json\n                         --to https://curator.example.org",
    main_options=("to", "token_file", "out", "database", "host", "port"),
    short_help="Forward sealed reports in shuffled batches.",
)
@click.argument("campaign", type=CAMPAIGN_FILE)
@click.option("--to", metavar="URL", help="Address of crowdveil campaign receive at the curator.")
@click.option("--token-file", type=FILE_PATH, help="relay-token.txt of the curator, with --to.")
@click.option("--out", type=FOLDER_PATH, help="Folder of the batches, without --to.")
@database_option
@server_options
def relay(
    campaign: Path,
    to: str | None,
    token_file: Path | None,
    out: Path | None,
    database: str | None,
    **listening_options: Any,
) -> None:
    """Forward sealed reports to the curator: shuffled, in batches, without names.

    Somebody other than the curator runs this command. CAMPAIGN is the campaign.json of a campaign with a relay; its
    folder holds the hashes of the links. A sealed report is stored durably before its receipt is sent. The relay cannot
    open it.

    \f
    Reports are forwarded when the campaign is closed: after its last day, or by crowdveil campaign close. They are sent
    in one random order, each together with those of at least as many workers as the campaign's least batch. If there
    are fewer, they are held back and never sent. A batch holds no time, link, address or order.

    With --to, the batches are sent to crowdveil campaign receive until it confirms them. With --out, they are written
    into a folder, which you hand over. Until the day of deletion, the database shows which link sent which report.
    """
    if (to is None) == (out is None) or (to is None) != (token_file is None):
        raise click.UsageError("Give either --to URL with --token-file FILE, or --out FOLDER.")
    require_service_packages()
    from crowdveil.campaign.relay import receiver as processes
    from crowdveil.campaign.relay.receiver import store_batch_file
    from crowdveil.campaign.service import server

    settings = server.ServerSettings(database=database_url(campaign, database), **listening_options)
    with server.open_listening_socket(settings) as listening, database_errors_as_refusals():
        prepared, left_out = processes.prepare_relay(settings.database, campaign)
        send: Send
        if out is not None:
            send = partial(store_batch_file, prepared, processes.private_folder(out))
        else:
            assert to is not None
            assert token_file is not None
            send = processes.url_sender(prepared, to, token_file)
        address = server.address_of(settings, listening)
        assert prepared.relay is not None
        data = {
            "campaign": prepared.name,
            "page": f"{address}/a/",
            "least_batch": prepared.relay.least_batch,
            "unit": prepared.relay.unit,
            "links_left_out": left_out,
            "purge_day": str(prepared.purge_day),
        }
        rows = [
            ("campaign", prepared.name),
            ("workers' page", data["page"]),
            ("forwarded", f"when closed, {prepared.relay.least_batch:,} reports or more; fewer are never sent"),
            ("together", f"the {'whole report of a worker' if prepared.relay.unit == 'report' else 'single cells'}"),
            ("deleted", f"from {data['purge_day']} (UTC) on"),
            *([("links left out", ", ".join(map(str, left_out)))] if left_out else []),
        ]
        print_result(data, [(name, str(text)) for name, text in rows])
        processes.run_relay(settings, listening, prepared, send)
