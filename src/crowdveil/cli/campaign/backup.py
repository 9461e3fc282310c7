"""`crowdveil campaign backup`: copy of the database of a running service."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.campaign.database import campaign_argument, open_campaign
from crowdveil.cli.campaign.serve import database_option
from crowdveil.cli.display import print_result
from crowdveil.cli.options import FILE_PATH
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb,
    example="crowdveil campaign backup essays/campaign.json --out monday.sqlite",
    main_options=("database", "out", "as_json"),
    short_help="Copy the database of a running service.",
)
@campaign_argument
@database_option
@click.option("--out", type=FILE_PATH, required=True, help="New file of the copy; only its owner may read it.")
def backup(file: Path, database: str | None, out: Path) -> None:
    """Copy the database of a running service into one new file.

    CAMPAIGN is the campaign.json. The copy holds everything that was stored when the command started. A plain copy of
    the files of a running SQLite database is no backup: new reports are still in its log. For PostgreSQL use pg_dump.

    To restore the copy, stop the service, move reports.sqlite and its -wal and -shm away, and put the copy in their
    place. Later reports are lost, although their workers have receipts. A purge does not delete backups: delete them
    yourself.
    """
    with open_campaign(file, database) as (store, campaign):
        from crowdveil.campaign.service.backup import write_backup

        write_backup(store.engine, out)
    print_result({"campaign": campaign.name, "files": [str(out)]}, [("campaign", campaign.name), ("written", str(out))])
