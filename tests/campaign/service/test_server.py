"""The server's settings, its database schema, and the rate of requests of one address."""

import logging
import pickle
import secrets
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from benchmarks.service_harness import ServiceProcess
from sqlalchemy import text
from starlette.testclient import TestClient
from starlette.types import Scope

from crowdveil.campaign.service import rate_limit
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.metrics import metrics_served
from crowdveil.campaign.service.problems import PROBLEMS, REPORT_MEDIA_TYPE
from crowdveil.campaign.service.rate_limit import BURST_SECONDS, REQUESTS_PER_SECOND, RateLimit
from crowdveil.campaign.service.schema import VERSION, engine_of, ensure_tables, version_of
from crowdveil.campaign.service.server import ServerSettings, open_listening_socket
from crowdveil.campaign.service.store import Store
from crowdveil.cli.campaign.serve import serve
from crowdveil.errors import SettingsError
from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.campaign.service.browser import free_port

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

    assert "http" == ServerSettings(database=DATABASE, host=host, behind_proxy=True).scheme
    for local in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert local == ServerSettings(database=DATABASE, host=local).host


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    """TLS settings are checked before the start."""
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")

    with pytest.raises(SettingsError, match="a certificate and its key"):
        ServerSettings(database=DATABASE, tls_certificate=wrong)
    with pytest.raises(SettingsError, match="in PEM format"):
        ServerSettings(database=DATABASE, tls_certificate=wrong, tls_key=wrong)


def test_a_taken_address_is_refused() -> None:
    """A second service on the same port is refused by name."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = ServerSettings(database=DATABASE, port=other.getsockname()[1])
        with pytest.raises(SettingsError, match="must be free"):
            open_listening_socket(settings)


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
    shown, logged = log.splitlines()[:5], log.splitlines()[5:]
    route = "INFO crowdveil.campaign.service: PUT /v1/campaigns/{hash}/reports/{report_id} 200 "
    assert ["campaign", "workers'", "curator's", "reports", "next"] == [line.split()[0] for line in shown]
    assert bool(options) == bool(logged) == any(line.startswith(route) for line in logged)
    assert built.tokens[0].text not in log


@pytest.mark.slow
def test_metrics_count_requests_by_route_and_do_not_name_the_campaign(tmp_path: Path) -> None:
    """Eight stored reports are eight requests of one route on the metrics' own port, which must be free."""
    built = build_campaign(slots=8)
    port = free_port()
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(SettingsError, match="must be free"),
        metrics_served(port),
    ):
        pass
    service = ServiceProcess(built.write(tmp_path / "campaign"), tmp_path / "log", "--metrics-port", str(port))
    for slot in range(8):
        put_report(service.port, built, slot)

    counted = 'crowdveil_requests_total{route="PUT /v1/campaigns/{hash}/reports/{report_id}",status="200"} 8.0'
    text, end = "", time.monotonic() + 60  # a request is counted after its answer has left
    while counted not in text and time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            text = response.read().decode()

    assert 0 == service.stop()
    assert counted in text
    assert built.campaign.name not in text


def test_an_empty_database_gets_the_tables_once(database_url: str) -> None:
    """The database names the version of its tables, and a second preparation keeps their rows."""
    engine = engine_of(database_url)
    ensure_tables(engine)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO campaign (hash, state) VALUES (:h, 'purged')"), {"h": bytes(32)})

    ensure_tables(engine)

    with engine.connect() as connection:
        assert VERSION == version_of(connection)
        assert "purged" == connection.execute(text("SELECT state FROM campaign")).scalar_one()
    engine.dispose()


def test_tables_of_another_version_are_refused(database_url: str) -> None:
    """A database of another version of the program is left as it is."""
    engine = engine_of(database_url)
    ensure_tables(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 0"))

    with pytest.raises(SettingsError, match="must have schema 1, got 0"):
        ensure_tables(engine)
    engine.dispose()


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """A database with a table of the same name but without a version is left as it is."""
    engine = engine_of(f"sqlite:///{tmp_path / 'other.sqlite'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE campaign (name TEXT)"))

    with pytest.raises(SettingsError, match="empty or one of the service"):
        ensure_tables(engine)
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


CLASS, REQUESTS_OF_A_DEVICE = 72, 25


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time that was set."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def request(client: str, **headers: str) -> Scope:
    """The scope of a request from an address, with headers."""
    named = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": (client, 1), "headers": named}


def admitted(limit: RateLimit, scope: Scope, count: int) -> int:
    """The number of requests out of `count` that are answered."""
    return sum(limit.admit_and_count(scope) for _ in range(count))


def test_a_class_behind_one_address_passes_at_once(clock: Clock) -> None:
    """72 devices that load the page, pictures and all, in the same instant are all answered by default."""
    limit = RateLimit(REQUESTS_PER_SECOND, clock=clock)

    assert CLASS * REQUESTS_OF_A_DEVICE == admitted(limit, request("192.0.2.7"), CLASS * REQUESTS_OF_A_DEVICE)


def test_a_flood_is_held_to_the_rate_and_others_are_not(clock: Clock) -> None:
    """An empty bucket fills at the rate, up to the burst; other addresses have buckets of their own."""
    limit, flood, other = RateLimit(2, clock=clock), request("192.0.2.7"), request("192.0.2.8")

    assert 2 * BURST_SECONDS == admitted(limit, flood, 1000)
    assert limit.admit_and_count(other)
    clock.now += 3
    assert 6 == admitted(limit, flood, 1000)
    clock.now += 1000
    assert 2 * BURST_SECONDS == admitted(limit, flood, 1000)


def test_an_ipv6_network_counts_as_one_address(clock: Clock) -> None:
    """A client cannot change its bucket within its network; IPv4 in IPv6 is the same client."""
    limit = RateLimit(1, clock=clock)
    admitted(limit, request("2001:db8::1"), 1000)
    admitted(limit, request("192.0.2.7"), 1000)

    assert not limit.admit_and_count(request("2001:db8::ffff:1"))
    assert limit.admit_and_count(request("2001:db8:0:1::1"))
    assert not limit.admit_and_count(request("::ffff:192.0.2.7"))


def test_the_header_counts_only_where_it_was_named(clock: Clock) -> None:
    """Without `header`, a client cannot choose its address; with it, the last entry counts, which the proxy wrote."""
    direct, behind = RateLimit(1, clock=clock), RateLimit(1, header="X-Forwarded-For", clock=clock)

    assert BURST_SECONDS == sum(
        direct.admit_and_count(request("192.0.2.7", X_Forwarded_For=f"10.0.0.{n % 250}")) for n in range(1000)
    )
    for forged in ("10.0.0.{}, 192.0.2.7", "127.0.0.{}, 192.0.2.8"):
        scopes = [request("127.0.0.1", X_Forwarded_For=forged.format(n % 250 + 1)) for n in range(1000)]
        assert BURST_SECONDS == sum(map(behind.admit_and_count, scopes))
    assert BURST_SECONDS == admitted(behind, request("127.0.0.1", X_Forwarded_For="127.0.0.1"), 1000)
    assert BURST_SECONDS == admitted(behind, request("127.0.0.1", X_Forwarded_For="nonsense"), 1000)


def test_the_computer_itself_is_not_bounded(clock: Clock) -> None:
    """Health checks, and a proxy that names no client, are answered always."""
    limit = RateLimit(1, clock=clock)

    assert [1000, 1000] == [admitted(limit, request(host), 1000) for host in ("127.0.0.1", "::1")]
    assert 0 == len(limit)


def test_addresses_are_kept_under_a_keyed_hash_and_not_for_long(clock: Clock) -> None:
    """No bucket shows its address, keys differ by process, full buckets are dropped, and their number is bounded."""
    first, second = RateLimit(1, clock=clock), RateLimit(1, clock=clock)
    for limit in (first, second):
        limit.admit_and_count(request("192.0.2.77"))
    held = [pickle.dumps(limit._buckets) for limit in (first, second)]

    assert all(b"192.0.2.77" not in one and bytes((192, 0, 2, 77)) not in one for one in held)
    assert set(first._buckets).isdisjoint(second._buckets)
    clock.now += BURST_SECONDS
    first.admit_and_count(request("192.0.2.78"))
    assert 1 == len(first)


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest number of addresses the one that was quiet for longest is dropped."""
    monkeypatch.setattr(rate_limit, "MAX_ADDRESSES", 3)
    limit = RateLimit(1, clock=clock)
    for number in range(10):
        clock.now += 0.1
        limit.admit_and_count(request(f"192.0.2.{number}"))

    assert 3 == len(limit)


def test_a_refused_request_has_429_and_the_time_to_wait(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply is the problem `rate` with Retry-After; then the request is answered; no log has the address."""
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    app: Any = create_app(store, rate=RateLimit(0.5, clock=clock))
    with caplog.at_level(logging.DEBUG), TestClient(app, client=("192.0.2.7", 4711)) as client:
        statuses = [client.get("/healthz").status_code for _ in range(21)]
        refused = client.get("/healthz")
        clock.now += int(refused.headers["retry-after"])
        again = client.get("/healthz")

    assert [200] * 20 + [429] == statuses
    assert (429, "/problems/rate") == (PROBLEMS["rate"].status, refused.json()["type"])
    assert "no-store" == refused.headers["cache-control"]
    assert 200 == again.status_code
    assert "192.0.2.7" not in "".join(record.getMessage() for record in caplog.records if "httpx" not in record.name)
    store.close()


def test_settings_of_the_bound() -> None:
    """A header is believed behind a proxy only; a proxy that names no client is not bounded as one client."""
    with pytest.raises(SettingsError, match="must be a header of the proxy"):
        ServerSettings(database=DATABASE, client_header="X-Real-IP")
    with pytest.raises(SettingsError, match="must be a header of the proxy"):
        ServerSettings(database=DATABASE, client_header="X Real", behind_proxy=True)
    with pytest.raises(SettingsError, match="at least 0"):
        ServerSettings(database=DATABASE, rate=-1)

    assert None is ServerSettings(database=DATABASE, rate=0).rate_limit
    assert None is ServerSettings(database=DATABASE, behind_proxy=True).rate_limit
    assert None is not ServerSettings(database=DATABASE).rate_limit
    assert None is not ServerSettings(database=DATABASE, behind_proxy=True, client_header="X-Real-IP").rate_limit
    assert REQUESTS_PER_SECOND == next(option.default for option in serve.params if option.name == "rate")
