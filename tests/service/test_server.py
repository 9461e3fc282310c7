"""The server's settings and its database schema."""

import secrets
import socket
import threading
import urllib.request
from pathlib import Path

import pytest
from benchmarks.service_harness import ServiceProcess
from sqlalchemy import text

from crowdveil.errors import SettingsError
from crowdveil.service.problems import REPORT_MEDIA_TYPE
from crowdveil.service.schema import VERSION, create_tables, engine_of, version_of
from crowdveil.service.server import ServerSettings, bind
from tests.campaign.builders import BuiltCampaign, build_campaign

DATABASE = "sqlite:///unused.sqlite"


def put_report(port: int, built: BuiltCampaign, slot: int) -> int:
    """Send a report and return the status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/campaigns/{built.campaign.name}/reports/{secrets.token_hex(16)}",
        data=b"\0" * built.campaign.body_bytes,
        headers={"Authorization": f"Bearer {built.tokens[slot].text}", "Content-Type": REPORT_MEDIA_TYPE},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return int(response.status)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_plain_http_stays_on_the_loopback_address(host: str) -> None:
    """Beyond the loopback address plain HTTP needs a proxy that ends TLS."""
    with pytest.raises(SettingsError, match="loopback address only"):
        ServerSettings(database=DATABASE, host=host)

    assert host == ServerSettings(database=DATABASE, host=host, behind_proxy=True).host
    for local in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert local == ServerSettings(database=DATABASE, host=local).host


def test_a_taken_address_is_refused() -> None:
    """A second service on the same port is refused by name."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = ServerSettings(database=DATABASE, port=other.getsockname()[1])
        with pytest.raises(SettingsError, match="must be free"):
            bind(settings)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--log-requests",)])
def test_sigterm_answers_what_was_asked_and_ends_with_0(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A report that is on its way when the service is stopped has its receipt; only if asked, its route is logged."""
    built = build_campaign()
    service = ServiceProcess(built.write(tmp_path / "campaign"), tmp_path / "log", *options)
    statuses: list[int] = []
    sender = threading.Thread(target=lambda: statuses.append(put_report(service.port, built, 0)))
    sender.start()
    sender.join()

    assert 0 == service.stop()
    assert [200] == statuses
    log = (tmp_path / "log").read_text()
    shown, logged = log.splitlines()[:4], log.splitlines()[4:]
    route = "INFO crowdveil.service: PUT /v1/campaigns/{hash}/reports/{report_id} 200 "
    assert ["campaign", "workers'", "curator's", "reports"] == [line.split()[0] for line in shown]
    assert bool(options) == bool(logged) == any(line.startswith(route) for line in logged)
    assert built.tokens[0].text not in log


def test_an_empty_database_gets_the_tables_once(database_url: str) -> None:
    """The database names the version of its tables, and a second preparation keeps their rows."""
    engine = engine_of(database_url)
    create_tables(engine)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO campaign (hash, state) VALUES (:h, 'purged')"), {"h": bytes(32)})

    create_tables(engine)

    with engine.connect() as connection:
        assert VERSION == version_of(connection)
        assert "purged" == connection.execute(text("SELECT state FROM campaign")).scalar_one()
    engine.dispose()


def test_tables_of_another_version_are_refused(database_url: str) -> None:
    """A database of another version of the program is left as it is."""
    engine = engine_of(database_url)
    create_tables(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 0"))

    with pytest.raises(SettingsError, match="must have schema 1, got 0"):
        create_tables(engine)
    engine.dispose()


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """A database with a table of the same name but without a version is left as it is."""
    engine = engine_of(f"sqlite:///{tmp_path / 'other.sqlite'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE campaign (name TEXT)"))

    with pytest.raises(SettingsError, match="empty or one of the service"):
        create_tables(engine)
    engine.dispose()


@pytest.mark.parametrize(("url", "rule"), [("nonsense", "as a URL"), ("mysql://u:secret@h/d", "sqlite or postgresql")])
def test_other_databases_are_refused_without_their_password(url: str, rule: str) -> None:
    """A URL of another database is refused, and its text is not repeated."""
    with pytest.raises(SettingsError, match=rule) as refused:
        engine_of(url)

    assert "secret" not in str(refused.value)


def test_sqlite_is_durable(tmp_path: Path) -> None:
    """Commits reach the disk (synchronous FULL), deleted rows are overwritten, and references are checked."""
    engine = engine_of(f"sqlite:///{tmp_path / 'durable.sqlite'}")
    with engine.connect() as connection:
        values = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        ]

    assert ["wal", 2, 1, 1] == values
    engine.dispose()
