"""`crowdveil campaign page`: the worker's device as one file."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import next_row, print_written
from crowdveil.cli.options import CAMPAIGN_FOLDER, FILE_PATH
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb,
    example="crowdveil campaign page essays --out device.html",
    short_help="Write the worker's page as one file.",
    main_options=("out", "program"),
)
@click.argument("folder", type=CAMPAIGN_FOLDER, required=False)
@click.option("--out", type=FILE_PATH, help="HTML file of the page.")
@click.option("--python", "program", type=FILE_PATH, help="File of the Python program.")
def page(folder: Path | None, out: Path | None, program: Path | None) -> None:
    """Write the worker's page with the whole campaign in one HTML file.

    Use it for workers who do not trust a page from your server, and for campaigns without a service. The page makes no
    connections. It gives the report as a file and as text, and the worker hands it in. Print the SHA-256 with the
    invitations.

    Give --python instead of FOLDER and --out to write one readable Python program without dependencies, for every
    campaign.

    \f
    `crowdveil campaign collect` joins the files that workers hand in. To use the page, a worker needs a link of
    `crowdveil campaign invite`: after the name of the file, or pasted into the page. The links name the campaign by its
    SHA-256, so a campaign that was edited after they were made is refused.
    """
    if program is not None and folder is None and out is None:
        _write_program(program)
    elif folder is not None and out is not None and program is None:
        _write_one_file_page(folder, out)
    else:
        raise click.UsageError("Give FOLDER and --out FILE for the page, or --python FILE for the program.")


def _write_one_file_page(folder: Path, out: Path) -> None:
    from hashlib import sha256

    from crowdveil.campaign.files.folder import TOKENS_FILE, CampaignFolder
    from crowdveil.campaign.rules.document import spaced_name_to_compare
    from crowdveil.campaign.service.one_file_page import KIND, one_file_page
    from crowdveil.files.atomic_write import Outputs, write_outputs

    outputs = Outputs(folder=out.parent, names=(out.name,), kind=KIND)
    replaced = outputs.check_replaced_files()
    campaign_folder = CampaignFolder(folder)
    if (folder / TOKENS_FILE).exists():
        _ = campaign_folder.tokens  # refuses a campaign that was edited after its links were made
    html = one_file_page(campaign_folder)
    write_outputs(outputs, {out.name: html})
    name, digest = campaign_folder.campaign.name, sha256(html).hexdigest()
    data = {"campaign": name, "sha256": digest, "bytes": len(html)}
    rows = [
        ("campaign", name),
        ("to compare", spaced_name_to_compare(name)),
        ("sha256", digest),
        ("size", f"{len(html):,} bytes"),
    ]
    collect = ("campaign", "collect", "received", "--campaign", folder / "campaign.json", "--out", "collected")
    following = [] if campaign_folder.campaign.url else [next_row(*collect)]
    print_written(data, rows, [out], replaced, following)


def _write_program(program: Path) -> None:
    from crowdveil.files.atomic_write import write_atomically
    from crowdveil.standalone.program import is_program, joined_program, program_digest

    replaced = [program] if program.exists() else []
    written, digest = joined_program(), program_digest()
    write_atomically(program, written, kind="device program", recognize=lambda path: is_program(path.read_bytes()))
    data = {"campaign": None, "sha256": digest, "bytes": len(written)}
    print_written(data, [("sha256", digest)], [program], replaced)
