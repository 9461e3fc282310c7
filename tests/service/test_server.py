"""Process of the service: addresses that are refused, log lines, and the end in good order."""

import secrets
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from benchmarks.service_harness import ServiceProcess

from crowdveil.errors import SettingsError
from crowdveil.service.metrics import metrics_served
from crowdveil.service.problems import REPORT_MEDIA_TYPE
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

    assert "http" == ServerSettings(database=DATABASE, host=host, behind_proxy=True).scheme


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_plain_http_is_served_on_loopback_addresses(host: str) -> None:
    """Every loopback address is accepted."""
    assert host == ServerSettings(database=DATABASE, host=host).host


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


@pytest.mark.slow
def test_metrics_count_requests_by_route_and_do_not_name_the_campaign(tmp_path: Path) -> None:
    """Eight stored reports are eight requests of one route on the metrics' own port, which must be free."""
    built = build_campaign(slots=8)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        with pytest.raises(SettingsError, match="must be free"), metrics_served(port):
            pass
    service = ServiceProcess(built.write(tmp_path / "campaign"), tmp_path / "log", "--metrics-port", str(port))
    for slot in range(8):
        put_report(service.port, built, slot)

    counted = 'crowdveil_requests_total{route="PUT /v1/campaigns/{hash}/reports/{report_id}",status="200"} 8.0'
    text, end = "", time.monotonic() + 30  # a request is counted after its answer has left
    while counted not in text and time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            text = response.read().decode()

    assert 0 == service.stop()
    assert counted in text
    assert built.campaign.name not in text
