"""`crowdveil campaign collect`: report files of a campaign without a service, as the folder that `infer` reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.campaign.database import following_rows, report_count_text
from crowdveil.cli.display import print_result, printable, warning_rows
from crowdveil.cli.options import CAMPAIGN_FILE, FILE_PATH, FOLDER_PATH
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.campaign.files.report_files import CollectedFiles
    from crowdveil.campaign.rules.document import Campaign

EXAMPLE = """crowdveil campaign collect received --campaign essays/campaign.json
                           --out collected"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    main_options=("campaign", "key", "as_json"),
    short_help="Join report files, or the batches of a relay, for infer.",
)
@click.argument("folder", type=FOLDER_PATH)
@click.option("--campaign", type=CAMPAIGN_FILE, help="campaign.json. [default: that in FOLDER]")
@click.option("--key", type=FILE_PATH, help="The curator's private key, for the batches of a relay.")
@click.option("--out", type=FOLDER_PATH, required=True, help="Folder that infer reads.")
def collect(folder: Path, campaign: Path | None, key: Path | None, out: Path) -> None:
    """Check the report files in FOLDER and write the folder that infer reads.

    The command checks token, length and symbols as the service does. Identical copies count once. If two different
    reports have the same token, neither counts. The file files.csv lists the files that do not count, with the reason.
    FOLDER is not changed, and a second run writes the same bytes. With fewer reports than the campaign's least number,
    nothing is written.

    With --key, FOLDER holds the batches of a relay. The command opens them and gives each report a number that says
    nothing about who sent it.
    """
    from crowdveil.campaign.files.campaign_reports import (
        EXPORT_FILES,
        export_folder_per_question,
        warning_of_formulas,
    )
    from crowdveil.campaign.files.curator_key import require_sealing
    from crowdveil.campaign.files.folder import CampaignFolder
    from crowdveil.campaign.files.relay_batches import read_batches
    from crowdveil.campaign.files.report_files import LIST_FILE, read_report_files, write_collections

    asked = CampaignFolder((campaign or folder / "campaign.json").parent)
    document = asked.campaign
    if key is not None:
        collected = read_batches(folder, document, require_sealing().read_key(key.read_bytes()))
    elif document.relay is not None:
        raise click.UsageError(
            "Give --key, the curator's private key: it opens the reports that came through the relay."
        )
    else:
        collected = read_report_files(folder, asked)
    if not wants_json():
        print_result({}, _rows_of_states(collected, document))
    folders = export_folder_per_question(out, document)
    files = [*(one / name for one in folders for name in EXPORT_FILES), out / LIST_FILE]
    replaced = [str(path) for path in files if path.exists()]
    exported = write_collections(out, document, collected)
    data: dict[str, Any] = {
        "campaign": document.name,
        "workers": len(collected.accepted),
        "reports": sum(len(one.reports) for one in exported),
        **({} if key is None else {"refused": collected.refused}),
        "states": dict(sorted(Counter(collected.states.values()).items())),
        "digest": collected.closing.digest,
        "files": [str(path) for path in files if path.exists()],
        "replaced": replaced,
        "warnings": list(warning_of_formulas(document)),
    }
    rows = [*warning_rows(data), ("SHA-256 of the reports", collected.closing.digest)]
    print_result(data, [*rows, *(("written", str(one)) for one in folders), *following_rows(document, out)])


def _rows_of_states(collected: CollectedFiles, campaign: Campaign) -> list[tuple[str, str]]:
    """Return the number of reports that count, and each file that does not, with the reason."""
    from crowdveil.campaign.files.report_files import ACCEPTED

    count, least = len(collected.accepted), campaign.min_reports
    enough = f"{count:,} of {number_of(campaign.slots, 'worker')}"
    rows = [("reports that count", report_count_text(None, least) if count < least else enough)]
    if collected.refused:
        rows.append(("refused", f"{collected.refused:,} that cannot be opened, are invalid or were sent twice"))
    return rows + [(printable(name), state) for name, state in collected.states.items() if state != ACCEPTED]
