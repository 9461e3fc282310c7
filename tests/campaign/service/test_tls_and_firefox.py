"""The service with a certificate of its own, over real TLS, in Chromium and in Firefox."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.service_harness import ServiceProcess

import crowdveil
from crowdveil.campaign.service.campaign_registration import CURATOR_FILE
from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.campaign.service.accessibility import send_without_answers
from tests.campaign.service.browser import free_port, leave, needs_chromium
from tests.campaign.service.firefox import firefox, needs_firefox

pytestmark = pytest.mark.slow


@pytest.fixture
def secured(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[tuple[BuiltCampaign, str]]:
    """A campaign whose service has a certificate for localhost, and the curator's token."""
    port = free_port()
    built = build_campaign(url=f"https://localhost:{port}")
    folder = built.write(tmp_path / "campaign")
    options = ("--tls-certificate", str(certificate[0]), "--tls-key", str(certificate[1]))
    service = ServiceProcess(folder, tmp_path / "log", *options, port=port)
    yield built, (folder / CURATOR_FILE).read_text("utf-8").strip()
    assert 0 == service.stop()


@needs_chromium
def test_worker_and_curator_over_tls(browser: Any, secured: tuple[BuiltCampaign, str]) -> None:
    """Over TLS a report is sent and the curator logs in; replies say that browsers keep to https."""
    built, token = secured
    context = browser.new_context(locale="en-US", ignore_https_errors=True)
    page = context.new_page()
    send_without_answers(page, built.link(0).text)
    reply = page.goto(f"{built.campaign.url}/curator")
    page.fill("#token", token)
    leave(page, "button")

    assert "Animals" in page.inner_text("h1")
    assert "max-age=31536000" == reply.headers["strict-transport-security"]
    assert [True] == [cookie["secure"] for cookie in context.cookies()]


def test_every_reply_arrives_over_tls(secured: tuple[BuiltCampaign, str], certificate: tuple[Path, Path]) -> None:
    """Short and long replies, one after the other on one connection, arrive whole."""
    built, _ = secured
    static = Path(crowdveil.__file__).parent / "campaign" / "service" / "static"
    with httpx.Client(verify=ssl.create_default_context(cafile=certificate[0]), timeout=60) as client:
        for name in ("style.css", "openapi.json", "device.mjs", "page.mjs"):
            assert (static / name).read_bytes() == client.get(f"{built.campaign.url}/static/{name}").content
        document = client.get(f"{built.campaign.url}/v1/campaigns/{built.campaign.name}").content

    assert built.campaign.to_bytes() == document


def test_a_connection_without_tls_is_ended(secured: tuple[BuiltCampaign, str]) -> None:
    """Plain HTTP at the port of a service with a certificate gets no reply."""
    port = int(str(secured[0].campaign.url).rpartition(":")[2])
    with socket.create_connection(("localhost", port), timeout=60) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        with suppress(ConnectionError):
            received = plain.recv(100)

    assert b"HTTP" not in received


@needs_firefox
def test_worker_and_curator_in_firefox(tmp_path: Path, secured: tuple[BuiltCampaign, str]) -> None:
    """Firefox opens a changed link over TLS, answers, sends, and asks nothing again; the curator logs in."""
    built, token = secured
    with firefox(tmp_path / "firefox") as page:
        page.goto(f"{built.link(0).text}&utm_source=mail".replace("/a/#", "/a#"))
        page.await_screen("intro")
        days = page.evaluate("document.querySelector('#about').innerText")
        page.click("#start")
        page.await_screen("tasks")
        page.click("fieldset input")
        page.wait_for(".option input:checked")
        page.click("#task-form button")
        page.await_screen("review")
        page.click("#send")
        page.await_screen("done")
        page.goto("about:blank")
        page.goto(built.link(0).text)
        page.await_screen("done")
        page.goto(f"{built.campaign.url}/curator")
        page.fill("#token", token)
        page.click("button")
        page.wait_for("h1.foreign")

        assert "1 January 2020 to 31 December 2099, whole days in UTC" in days
        assert "Animals" == page.evaluate("document.querySelector('h1').textContent")
