"""`crowdveil campaign page`: the worker's device as one file."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import print_result, replaced_rows
from crowdveil.cli.options import PATH, json_option
from crowdveil.cli.verb import Verb

HELP = """Write the worker's page with the whole campaign in one HTML file.

For workers who do not trust a page from your server, and for campaigns without a service. The page connects to nothing:
it gives the report as a file and as a QR code, and the worker hands it in. Print the SHA-256 with the invitations."""
EXAMPLE = "crowdveil campaign page essays --out device.html"
DETAILS = """`crowdveil collect` joins the files that were handed in. Whoever opens the page needs a link of
`crowdveil campaign invite`: after the name of the file, or pasted into the page."""


@click.command(cls=Verb, help=HELP, example=EXAMPLE, details=DETAILS, short_help="Write the worker's page as one file.")
@click.argument("folder", type=PATH)
@click.option("--out", type=PATH, required=True, metavar="FILE", help="The page.")
@json_option
def page(folder: Path, out: Path, as_json: bool) -> None:
    """Write the page; see `HELP`."""
    from hashlib import sha256

    from crowdveil.campaign.folder import CampaignFolder
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.service.one_file_page import one_file_page, page_outputs

    outputs = page_outputs(out)
    replaced = list(map(str, outputs.check()))
    campaign_folder = CampaignFolder(folder)
    html = one_file_page(campaign_folder)
    write_outputs(outputs, {out.name: html})
    name, digest = campaign_folder.campaign.name, sha256(html).hexdigest()
    data = {"campaign": name, "sha256": digest, "bytes": len(html), "files": [str(out)], "replaced": replaced}
    rows = [
        ("campaign", f"{name} (to compare: {name[:8]})"),
        ("sha256", digest),
        ("size", f"{len(html):,} bytes"),
        *replaced_rows(replaced),
        ("written", str(out)),
    ]
    print_result(data, rows, as_json=as_json)
