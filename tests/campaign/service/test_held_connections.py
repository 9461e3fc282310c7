"""Connections that are held on purpose: forms, headers and bodies that do not arrive, responses that nobody reads."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages.pages import curator_routes
from crowdveil.campaign.service import security
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.rate_limit import RateLimit
from crowdveil.campaign.service.security import HEADERS, MAX_REQUESTS, BoundedProtocol
from crowdveil.campaign.service.store import Store
from tests.campaign.builders import build_campaign

FORM = b"application/x-www-form-urlencoded"
LOGIN = (
    b"POST /curator/login HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Type: %b\r\nContent-Length: 49\r\n\r\n"
    % FORM
)
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[..., Awaitable[Streams]]


@pytest.fixture(params=[4])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with a campaign of a number of tasks."""
    opened = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(opened, CampaignFolder(build_campaign(tasks=request.param).write(tmp_path / "campaign")))
    yield opened
    opened.close()


@asynccontextmanager
async def serving(store: Store, certificate: tuple[Path, Path] | None = None) -> AsyncIterator[Open]:
    """A service, with TLS if it has a certificate; yield a function that opens a connection and sends bytes."""
    cafile, key = certificate or (None, None)
    secured: dict[str, Any] = (
        {"ssl": ssl.create_default_context(cafile=cafile), "server_hostname": "localhost"} if cafile else {}
    )
    app = create_app(store, curator_routes=curator_routes(store), rate=RateLimit(1000, header="X-Real-IP"))
    config = uvicorn.Config(
        app, http=BoundedProtocol, ws="none", log_config=None, lifespan="off", backlog=4096,
        ssl_certfile=cafile, ssl_keyfile=key,
    )  # fmt: skip
    server = uvicorn.Server(config)
    opened: list[Streams] = []
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        running = asyncio.create_task(server.serve(sockets=[listening]))

        async def connect(data: bytes) -> Streams:
            # Small buffers on both sides: else the system holds a whole response for a client that reads nothing.
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, listening.getsockname())
            opened.append(await asyncio.open_connection(sock=client, **secured))
            opened[-1][1].write(data)
            return opened[-1]

        try:
            yield connect
        finally:
            for _, writer in opened:
                writer.close()
            server.should_exit = True
            await running


async def turns() -> None:
    """Let the service, which has the same event loop, accept every connection that was opened."""
    for _ in range(50):
        await asyncio.sleep(0)


async def reply(streams: Streams) -> bytes:
    """All bytes until the service ends the connection."""
    return await asyncio.wait_for(streams[0].read(), 60)


@pytest.mark.slow
def test_unfinished_forms_do_not_stop_the_service(store: Store) -> None:
    """With more unfinished login forms than requests may be in progress, another client is answered."""

    async def attack() -> bytes:
        async with serving(store) as connect:
            held = [await connect(LOGIN + b"token=") for _ in range(MAX_REQUESTS + 10)]
            assert len(held) > MAX_REQUESTS
            return await reply(await connect(GET))

    assert asyncio.run(attack()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (LOGIN + b"token=", b"HTTP/1.1 408 "),
        (GET[:-2].replace(b"close", b"keep-alive") + b"Content-Length: 9\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /a/ HT", b""),
    ],
)
def test_headers_and_bodies_have_a_deadline(
    store: Store, monkeypatch: pytest.MonkeyPatch, sent: bytes, status: bytes
) -> None:
    """A form that does not arrive is refused; unfinished headers, and a body that no route reads, are ended."""
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(security, "HEADER_SECONDS", 0.2)

    async def attack() -> bytes:
        async with serving(store) as connect:
            return await reply(await connect(sent))

    answered = asyncio.run(attack())
    assert answered.startswith(status)
    assert bool(status) == answered.count(b"HTTP/1.1 ")
    assert (status == b"HTTP/1.1 408 ") == (b"/problems/deadline" in answered)


def test_a_slow_body_is_logged_as_what_it_got(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A form that does not arrive in time is logged and counted with status 408, which it was answered with."""
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    caplog.set_level(logging.INFO, "crowdveil.campaign.service")

    async def attack() -> bytes:
        async with serving(store) as connect:
            return await reply(await connect(LOGIN + b"token="))

    assert asyncio.run(attack()).startswith(b"HTTP/1.1 408 ")
    assert ["POST /curator/login 408"] == [record.getMessage()[:23] for record in caplog.records]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\nConnection: close\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /healthz HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /healthz HTTP/1.1\r\nhOST: a\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET /healthz HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
    ],
)
def test_a_request_names_its_host_once(store: Store, sent: bytes, status: bytes) -> None:
    """HTTP/1.1 without Host, and Host twice, are refused (RFC 9112); HTTP/1.0 may leave it out."""

    async def ask() -> bytes:
        async with serving(store) as connect:
            return await reply(await connect(sent))

    last = asyncio.run(ask()).rpartition(b"HTTP/1.1 ")
    assert (last[1] + last[2]).startswith(status)


def test_a_body_that_arrives_has_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that arrive extend the deadline of the rest, so that a long body is not refused for its length."""
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(security, "MIN_BYTES_PER_SECOND", 1)

    async def slowly() -> bytes:
        async with serving(store) as connect:
            streams = await connect(LOGIN + b"token=")
            await asyncio.sleep(0.5)
            streams[1].write(b"x" * 43)
            return await asyncio.wait_for(streams[0].readuntil(b"\r\n"), 60)

    assert b"HTTP/1.1 401 Unauthorized\r\n" == asyncio.run(slowly())


def test_too_many_connections_end_the_oldest_waiting_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest number the busiest address loses its oldest connection, and another client is answered."""
    monkeypatch.setattr(BoundedProtocol, "most_connections", 20)
    monkeypatch.setattr(security, "client_address_or_network", lambda _: "attacker" if attacking else "client")
    attacking: list[bool] = [True]

    async def attack() -> tuple[bytes, bytes, bytes]:
        async with serving(store) as connect:
            first = await connect(b"GET /a/ HT")
            held = [await connect(b"GET /a/ HT") for _ in range(19)]
            await turns()
            attacking.clear()
            client = await connect(GET[:9])
            await turns()
            attacking.append(True)
            held += [await connect(b"GET /a/ HT") for _ in range(60)]
            client[1].write(GET[9:])
            return await reply(first), await reply(held[0]), await reply(client)

    ended, too, answered = asyncio.run(attack())
    assert (b"", b"") == (ended, too)
    assert answered.startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
@pytest.mark.parametrize("store", [20_000], indirect=True)
@pytest.mark.parametrize("tls", [False, True])
def test_a_response_that_is_not_read_is_ended(
    store: Store, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    """A client that asks for long documents and does not read them loses its connection, over TLS, too."""
    monkeypatch.setattr(security, "WRITE_SECONDS", 0.2)
    campaign = store.campaign(store.digests_of_unpurged_campaigns()[0])

    async def attack() -> bytes:
        async with serving(store, certificate if tls else None) as connect:
            streams = await connect(f"GET /v1/campaigns/{campaign.name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await asyncio.sleep(1)
            return await reply(streams)

    got = asyncio.run(attack())
    assert got.startswith(b"HTTP/1.1 200 ")
    assert len(got) < len(campaign.to_bytes())


def test_one_address_takes_half_of_the_requests_in_progress() -> None:
    """Requests of one client beyond half of the bound are refused while others are answered."""

    async def crowd() -> tuple[list[int], int]:
        goes_on = asyncio.Event()
        statuses: list[int] = []

        async def app(_: object, __: object, send: Callable[..., Awaitable[None]]) -> None:
            await goes_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        guarded = security.RequestGuard(app, max_requests=10, rate=RateLimit(100))

        async def ask(host: str) -> None:
            scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (host, 1)}

            async def send(message: dict[str, Any]) -> None:
                if "status" in message:
                    statuses.append(message["status"])

            await guarded(scope, None, send)  # type: ignore[arg-type]

        tasks = [asyncio.create_task(ask("192.0.2.1")) for _ in range(9)]
        tasks.append(asyncio.create_task(ask("192.0.2.2")))
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.gather(*tasks)
        return statuses, len(guarded._running)

    statuses, left = asyncio.run(crowd())
    assert ([503] * 4 + [200] * 6, 0) == (statuses, left)


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", LOGIN + b"token="])
def test_refusals_of_the_parser_have_the_headers_of_all(
    store: Store, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """A request that the application never sees as a whole has every security header in its refusal."""
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)

    async def ask() -> bytes:
        async with serving(store) as connect:
            return await reply(await connect(sent))

    head = asyncio.run(ask()).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    for name, value in HEADERS.items():
        assert f"{name}: {value}".lower() in head
    assert any(line.startswith("content-security-policy: default-src 'none'") for line in head)
    assert "cache-control: no-store" in head


def test_clients_write_no_warnings(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Upgrades, malformed requests and clients that leave during a form have no log line and no reply of 500."""

    async def ask() -> bytes:
        async with serving(store) as connect:
            upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            got = await (await connect(GET[:-2].replace(b"Connection: close\r\n", b"") + upgrade))[0].readuntil(b"\r\n")
            _, leaving = await connect(LOGIN + b"token=")
            await turns()
            leaving.close()
            await reply(await connect(b"nonsense\r\n\r\n"))
            return got

    assert b"HTTP/1.1 200 OK\r\n" == asyncio.run(ask())
    assert [] == [line for line in caplog.messages if "crowdveil" in line or "WebSocket" in line or "upgrade" in line]
