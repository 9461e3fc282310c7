"""`crowdveil campaign collect`: report files of a campaign without a service, as the folder that `infer` reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import print_result, printable
from crowdveil.cli.options import CAMPAIGN_FILE, PATH, json_option
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.campaign.document import Campaign


EXAMPLE = """crowdveil campaign collect received --campaign essays/campaign.json
                           --out collected"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    main_options=("campaign", "key", "as_json"),
    short_help="Join report files, or the batches of a relay, for infer.",
)
@click.argument("folder", type=PATH)
@click.option("--campaign", type=CAMPAIGN_FILE, metavar="FILE", help="campaign.json. [default: that in FOLDER]")
@click.option("--key", type=PATH, metavar="FILE", help="The curator's private key, for the batches of a relay.")
@click.option("--out", type=PATH, required=True, metavar="FOLDER", help="Folder that infer reads.")
@json_option
def collect(folder: Path, campaign: Path | None, key: Path | None, out: Path, as_json: bool) -> None:
    """Check the report files in FOLDER and write the folder that infer reads.

    Token, length and symbols are checked as by the service. Equal copies count once; of two different reports for one
    token none counts. Files that do not count are listed with the reason, in files.csv. Nothing in FOLDER is changed,
    and a second run writes the same bytes. Below the campaign's least number of reports nothing is written.

    With --key, FOLDER holds the batches of a relay: they are opened, and reports get numbers without meaning.
    """
    from crowdveil.campaign.folder import CampaignFolder
    from crowdveil.folder.campaign.export import EXPORT_FILES, export_folders
    from crowdveil.folder.campaign.report_files import ACCEPTED, LIST_FILE, read_report_files, write_collected

    asked = CampaignFolder((campaign or folder / "campaign.json").parent)
    if key is not None:
        return _collect_batches(folder, asked.campaign, key, out, as_json)
    if asked.campaign.relay is not None:
        raise click.UsageError(
            "The reports of a campaign with a relay are opened with --key, the curator's private key."
        )
    collected = read_report_files(folder, asked)
    counts = Counter(collected.states.values())
    left = {name: state for name, state in collected.states.items() if state != ACCEPTED}
    rows = [("reports that count", f"{len(collected.accepted):,} of {asked.campaign.slots:,} workers")]
    rows += [(printable(name), state) for name, state in left.items()]
    if not as_json:
        print_result({}, rows, as_json=False)
    folders = export_folders(out, asked.campaign)
    files = [*(str(folder / name) for folder in folders for name in EXPORT_FILES), str(out / LIST_FILE)]
    replaced = [file for file in files if Path(file).exists()]
    exported = write_collected(out, asked, collected)
    data = {
        "campaign": asked.campaign.name,
        "workers": len(collected.accepted),
        "reports": sum(len(one.reports) for one in exported),
        "states": dict(sorted(counts.items())),
        "digest": collected.digest,
        "files": files,
        "replaced": replaced,
    }
    rows = [("SHA-256 of the reports", collected.digest), *(("written", str(folder)) for folder in folders)]
    print_result(data, rows, as_json=as_json)


def _collect_batches(folder: Path, campaign: Campaign, key: Path, out: Path, as_json: bool) -> None:
    """Open the batches of a relay and write the folder that infer reads."""
    from crowdveil.folder.campaign.curator_key import require_sealing
    from crowdveil.folder.campaign.relay_batches import OPENED_FILES, read_batches, write_opened
    from crowdveil.folder.campaign.report_files import LIST_FILE

    opened = read_batches(folder, campaign, require_sealing().read_key(key.read_bytes()))
    files = [str(out / name) for name in (*OPENED_FILES, LIST_FILE)]
    replaced = [file for file in files if Path(file).exists()]
    reports = write_opened(out, campaign, opened)
    data = {
        "campaign": campaign.name,
        "workers": len(opened.accepted),
        "reports": len(reports),
        "refused": opened.refused,
        "states": dict(sorted(Counter(opened.states.values()).items())),
        "digest": opened.digest,
        "files": files,
        "replaced": replaced,
    }
    rows = [("reports that count", f"{len(opened.accepted):,} of {campaign.slots:,} workers")]
    rows += [("refused", f"{opened.refused:,} that cannot be opened, are invalid or came twice")] * bool(opened.refused)
    rows += [(printable(name), state) for name, state in opened.states.items()]
    print_result(data, [*rows, ("SHA-256 of the batches", opened.digest), ("written", str(out))], as_json=as_json)
