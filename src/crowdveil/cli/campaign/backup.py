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

    CAMPAIGN is its campaign.json. The copy holds all that was stored when it began. A plain copy of a running SQLite
    database is no backup: new reports stand in its log. PostgreSQL has pg_dump. To go back, end the service, move
    reports.sqlite and its -wal and -shm away, and put the copy in their place: reports that came later are lost, though
    their workers have receipts. A purge does not reach backups: delete them yourself.
    """
    with open_campaign(file, database) as (store, campaign):
        from crowdveil.campaign.service.backup import write_backup

        write_backup(store.engine, out)
    print_result({"campaign": campaign.name, "files": [str(out)]}, [("campaign", campaign.name), ("written", str(out))])
