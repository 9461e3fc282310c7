"""`crowdveil collect`: report files of a campaign without a service, as the folder that `infer` reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from crowdveil.cli.display import print_result, printable
from crowdveil.cli.options import CAMPAIGN_FILE, PATH, json_option
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb,
    example="crowdveil collect received --campaign essays/campaign.json --out collected",
    main_options=("campaign", "as_json"),
    short_help="Join the report files of a campaign.",
)
@click.argument("folder", type=PATH)
@click.option("--campaign", type=CAMPAIGN_FILE, metavar="FILE", help="campaign.json. [default: that in FOLDER]")
@click.option("--out", type=PATH, required=True, metavar="FOLDER", help="Folder that infer reads.")
@json_option
def collect(folder: Path, campaign: Path | None, out: Path, as_json: bool) -> None:
    """Check the report files in FOLDER and write the folder that infer reads.

    Token, length and symbols are checked as by the service. Equal copies count once; of two different reports for one
    token none counts. Files that do not count are listed with the reason, in files.csv. Nothing in FOLDER is changed,
    and a second run writes the same bytes. Below the campaign's least number of reports nothing is written.
    """
    from crowdveil.campaign.folder import CampaignFolder
    from crowdveil.workflow.campaigns.export import EXPORT_FILES
    from crowdveil.workflow.campaigns.report_files import ACCEPTED, LIST_FILE, read_report_files, write_collected

    asked = CampaignFolder((campaign or folder / "campaign.json").parent)
    collected = read_report_files(folder, asked)
    counts = Counter(collected.states.values())
    left = {name: state for name, state in collected.states.items() if state != ACCEPTED}
    rows = [("reports that count", f"{len(collected.accepted):,} of {asked.campaign.slots:,} workers")]
    rows += [(printable(name), state) for name, state in left.items()]
    if not as_json:
        print_result({}, rows, as_json=False)
    files = [str(out / name) for name in (*EXPORT_FILES, LIST_FILE)]
    replaced = [file for file in files if Path(file).exists()]
    reports = write_collected(out, asked, collected)
    data = {
        "campaign": asked.campaign.name,
        "workers": len(collected.accepted),
        "reports": len(reports),
        "states": dict(sorted(counts.items())),
        "digest": collected.digest,
        "files": files,
        "replaced": replaced,
    }
    print_result(data, [("SHA-256 of the reports", collected.digest), ("written", str(out))], as_json=as_json)
