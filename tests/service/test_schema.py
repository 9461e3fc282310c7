"""Tables of the service: creation, their version, and refusal of other databases."""

from pathlib import Path

import pytest
from sqlalchemy import text

from crowdveil.errors import SettingsError
from crowdveil.service.schema import VERSION, connect, prepare, version_of


def test_an_empty_database_gets_the_tables_once(database_url: str) -> None:
    """The database names the version of its tables, and a second preparation keeps their rows."""
    engine = connect(database_url)
    prepare(engine)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO campaign (hash, state) VALUES (:h, 'purged')"), {"h": bytes(32)})

    prepare(engine)

    with engine.connect() as connection:
        assert VERSION == version_of(connection)
        assert "purged" == connection.execute(text("SELECT state FROM campaign")).scalar_one()
    engine.dispose()


def test_tables_of_another_version_are_refused(database_url: str) -> None:
    """A database of another version of the program is left as it is."""
    engine = connect(database_url)
    prepare(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 0"))

    with pytest.raises(SettingsError, match="must have schema 1, got 0"):
        prepare(engine)
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
