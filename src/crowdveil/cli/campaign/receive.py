"""`crowdveil campaign receive`: the curator's side of a relay, which stores the batches it sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.campaign.serve import require_service_packages, server_options
from crowdveil.cli.display import next_row, print_result
from crowdveil.cli.options import CAMPAIGN_FILE, FOLDER_PATH
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb,
    example="crowdveil campaign receive essays/campaign.json --out batches",
    main_options=("out", "host", "port"),
    short_help="Store the batches that a relay sends.",
)
@click.argument("campaign", type=CAMPAIGN_FILE)
@click.option("--out", type=FOLDER_PATH, required=True, help="Folder of the batches.")
@server_options
def receive(campaign: Path, out: Path, **listening_options: Any) -> None:
    """Store the batches that a relay sends.

    CAMPAIGN is the campaign.json of a campaign with a relay. A batch is stored durably before it is confirmed. A batch
    that is sent again is stored once. The relay authenticates with the token in relay-token.txt, which the first start
    writes into FOLDER. The curator's key is not needed here: crowdveil campaign collect opens the batches.
    """
    require_service_packages()
    from crowdveil.campaign.files.curator_key import key_path
    from crowdveil.campaign.relay import receiver as processes
    from crowdveil.campaign.rules.report import relay_of
    from crowdveil.campaign.service import server
    from crowdveil.campaign.service.campaign_registration import folder_of_campaign_json, read_or_make_token

    settings = server.ServerSettings(database="", **listening_options)
    key = key_path(campaign.parent)
    asked = folder_of_campaign_json(campaign).campaign
    relay_of(asked)  # refuses a campaign without one
    with server.open_listening_socket(settings) as listening:
        folder = processes.private_folder(out)
        token = folder / processes.TOKEN_FILE
        read_or_make_token(token)
        url = server.address_of(settings, listening)
        data = {"campaign": asked.name, "url": url, "token_file": str(token), "files": [str(token)]}
        rows = [
            ("campaign", asked.name),
            ("for the relay", f"--to {url}, token in {token}"),
            ("batches", str(out)),
            next_row("campaign", "collect", out, "--campaign", campaign, "--key", key, "--out", "collected"),
        ]
        print_result(data, rows)
        processes.run_receiver(settings, listening, asked, folder)
