"""Backup of a running service: a copy of its SQLite database at one moment, in one file."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import Engine, text

from crowdveil.campaign.service.schema import SQLITE
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import PRIVATE_FILE, folder_errors
from crowdveil.files.filesystem import move_to_new_name, temporary_folder


def write_backup(engine: Engine, path: Path) -> None:
    """Write all that is committed into a new file (mode 0600), in the order of keys; the service may run meanwhile.

    A plain copy of the database's file lacks what stands in its log (`-wal`), which can be all reports.

    Raises:
        SettingsError: the file exists or cannot be written, or the database is not one of SQLite.
    """
    if engine.dialect.name != SQLITE:
        raise SettingsError(
            "a backup is made of a database of SQLite",
            value=engine.dialect.name,
            hint="PostgreSQL has a command of its own, pg_dump.",
        )
    with folder_errors(path.parent), temporary_folder(path.parent) as temporary:
        copy = temporary / "copy"
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM INTO :copy"), {"copy": str(copy)})
        with copy.open("rb") as stream:
            os.fsync(stream.fileno())
        try:
            move_to_new_name(copy, path)
        except FileExistsError:
            raise SettingsError(
                "a backup is written into a new file", value=str(path), hint="Choose another name."
            ) from None
