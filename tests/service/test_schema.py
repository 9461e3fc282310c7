"""Versions of the schema: creation, migration, and refusal of other databases."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from crowdveil.errors import SettingsError
from crowdveil.service.schema import connect, metadata, newest_version, prepare, upgrade, version_of


def test_the_migrations_make_the_tables_of_the_program(database_url: str) -> None:
    """An empty database gets the newest version, which differs in nothing from the tables that the program uses."""
    engine = connect(database_url)
    prepare(engine)

    with engine.connect() as connection:
        assert newest_version() == version_of(connection)
        assert [] == compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()


def test_an_older_schema_needs_migrate_and_keeps_its_rows(database_url: str) -> None:
    """A database of the first released version with a row in it is refused, then brought up to date with its row."""
    engine = connect(database_url)
    with engine.begin() as connection:
        upgrade(connection, "0001")
        connection.execute(text("INSERT INTO campaign (hash, state) VALUES (:h, 'purged')"), {"h": bytes(32)})
        if newest_version() == "0001":  # an unknown version has the same reply as an older one
            connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))

    with pytest.raises(SettingsError, match="crowdveil campaign serve --migrate"):
        prepare(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    prepare(engine, migrate=True)
    with engine.connect() as connection:
        assert newest_version() == version_of(connection)
        assert "purged" == connection.execute(text("SELECT state FROM campaign")).scalar_one()
    engine.dispose()


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """A database with a table of the same name but without a version is left as it is."""
    engine = connect(f"sqlite:///{tmp_path / 'other.sqlite'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE campaign (name TEXT)"))

    with pytest.raises(SettingsError, match="empty or one of the service"):
        prepare(engine)
    engine.dispose()


@pytest.mark.parametrize(("url", "rule"), [("nonsense", "as a URL"), ("mysql://u:secret@h/d", "sqlite or postgresql")])
def test_other_databases_are_refused_without_their_password(url: str, rule: str) -> None:
    """A URL of another database is refused, and its text is not repeated."""
    with pytest.raises(SettingsError, match=rule) as refused:
        connect(url)

    assert "secret" not in str(refused.value)


def test_sqlite_is_durable(tmp_path: Path) -> None:
    """Commits reach the disk (synchronous FULL), deleted rows are overwritten, and references are checked."""
    engine = connect(f"sqlite:///{tmp_path / 'durable.sqlite'}")
    with engine.connect() as connection:
        values = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        ]

    assert ["wal", 2, 1, 1] == values
    engine.dispose()
