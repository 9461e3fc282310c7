"""`crowdveil campaign export`: reports of a closed campaign as the folder that infer reads."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.campaign.database import campaign_argument, open_campaign
from crowdveil.cli.campaign.serve import database_option
from crowdveil.cli.display import next_row, print_written, warning_rows
from crowdveil.cli.options import FOLDER_PATH, replace_option
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of


@click.command(
    cls=Verb,
    example="crowdveil campaign export essays/campaign.json --out collected",
    main_options=("database", "replace", "as_json"),
    short_help="Write the reports of a closed campaign for infer.",
)
@campaign_argument
@database_option
@click.option("--out", type=FOLDER_PATH, required=True, help="Folder of the collection.")
@replace_option
def export(file: Path, database: str | None, out: Path, replace: bool) -> None:
    """Write the reports of a closed campaign as a collection for infer.

    CAMPAIGN is the campaign.json. The folder has reports.csv, certificate.json, assignment.csv, crowd.json and a copy
    of campaign.json. Workers are named by their slots, such as w0017; only workers who sent a report are listed. If
    there are several questions, each has such a folder inside: question-1 and so on. With fewer reports than the
    campaign's least number, nothing is written. To export truths, use `crowdveil data export`.
    """
    with open_campaign(file, database) as (store, campaign):
        from crowdveil.campaign.files.campaign_reports import (
            EXPORT_FILES,
            export_folder_per_question,
            verb_of_results,
            warning_of_formulas,
        )
        from crowdveil.campaign.service.export_and_purge import export_closed_campaign
        from crowdveil.storage.write_collection import collection_outputs

        folders = export_folder_per_question(out, campaign)
        outputs = [collection_outputs(folder, EXPORT_FILES, replace=replace) for folder in folders]
        replaced = [path for one in outputs for path in one.check_replaced_files(inputs=[file])]
        sent = export_closed_campaign(store, campaign.digest, out, replace=replace)
        warnings, verb = warning_of_formulas(campaign), verb_of_results(campaign)
    reports = sum(len(one.reports) for one in sent)
    data = {
        "campaign": campaign.name,
        "workers": len({worker for one in sent for worker in one.reports.workers}),
        "rows": reports,
        "warnings": list(warnings),
    }
    rows = [
        ("campaign", campaign.name),
        ("workers", f"{data['workers']:,} with a report"),
        ("rows", f"{number_of(reports, 'report')} other than NULL"),
        *warning_rows(data),
    ]
    print_written(data, rows, [path for one in outputs for path in one.paths], replaced, [next_row(verb, out)])
