"""Faults: kill -9, a restart of the database, a full disk, and malformed requests lose, store and log nothing wrong."""

import asyncio
import re
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from benchmarks.service_harness import Delivery, ServiceProcess, deliver, differences, make_load
from sqlalchemy import event, text

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.problems import REPORT_MEDIA_TYPE, Problem
from crowdveil.campaign.service.report_writer import PROBE_BYTES
from crowdveil.campaign.service.store import Store
from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.campaign.service.browser import free_port
from tests.campaign.service.sql_server import SqlServer

pytestmark = pytest.mark.slow


async def send_with_kills(folder: Path, database: str, *, reports: int, kills: int) -> list[str]:
    """Send reports while the service is killed; return what contradicts the receipts."""
    load = make_load(folder / "campaign", slots=reports, cells=20)
    service = ServiceProcess(load.folder, folder / "log", database=database, port=free_port())
    delivery = Delivery()
    sending = asyncio.create_task(deliver(load.requests, service.port, delivery, clients=20, wanted=lambda: True))
    for number in range(kills):
        while len(delivery.receipts) < reports * (number + 1) // (kills + 1) and not sending.done():
            await asyncio.sleep(0.002)
        service.kill()
        service = await asyncio.to_thread(
            ServiceProcess, load.folder, folder / "log", database=database, port=service.port
        )
    await sending
    service.stop()
    assert reports == len(delivery.receipts)
    assert delivery.broken >= kills
    return differences(load, delivery.receipts, database)


def test_a_killed_service_keeps_what_it_receipted(database_url: str, tmp_path: Path) -> None:
    """After kill -9 twice in between, every receipt has one equal report, and none is stored twice or half."""
    assert [] == asyncio.run(send_with_kills(tmp_path, database_url, reports=300, kills=2))


@pytest.mark.slow
def test_a_restarted_database_keeps_what_was_receipted(sql_server: SqlServer, tmp_path: Path) -> None:
    """While PostgreSQL restarts at once, reports are refused for now; afterwards all are stored once."""

    async def send_with_restart(database: str) -> tuple[list[str], Delivery]:
        load = make_load(tmp_path / "campaign", slots=300, cells=20)
        service = ServiceProcess(load.folder, tmp_path / "log", database=database)
        delivery = Delivery()
        sending = asyncio.create_task(deliver(load.requests, service.port, delivery, clients=20, wanted=lambda: True))
        while len(delivery.receipts) < 100:
            await asyncio.sleep(0.002)
        await asyncio.to_thread(sql_server.restart)
        await sending
        service.stop()
        return differences(load, delivery.receipts, database), delivery

    with sql_server.database() as database:
        found, delivery = asyncio.run(send_with_restart(database))

    assert [] == found
    assert 300 == len(delivery.receipts)
    assert delivery.refused > 0
    assert 0 == delivery.broken


def test_two_services_may_begin_on_one_empty_database(sql_server: SqlServer) -> None:
    """Processes that find PostgreSQL empty at the same time wait for one another; each finds the tables."""
    with sql_server.database() as database, ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: Store.open(database), range(8)))
        assert all(store.is_ready() for store in stores)
        for store in stores:
            store.close()


def test_readiness_of_postgresql_is_tried_with_pages_of_the_disk(sql_server: SqlServer) -> None:
    """The row that is tried takes new pages, as reports do: a compressed one had room where reports had none."""
    large = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'campaign'"
    with sql_server.database() as database:
        store = Store.open(database)
        assert store.is_ready()
        with store.engine.connect() as connection:
            assert connection.execute(text(large)).scalar_one() >= PROBE_BYTES
        store.close()


@contextmanager
def full_database(store: Store) -> Iterator[None]:
    """SQLite that refuses further pages, as on a full disk."""
    with store.engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    store.engine.dispose()
    limits = [f"PRAGMA max_page_count={pages}"]

    def limit(connection: object, _: object) -> None:
        for pragma in limits:
            connection.execute(pragma)  # type: ignore[attr-defined]

    event.listen(store.engine, "connect", limit)
    yield
    limits[:] = [f"PRAGMA max_page_count={2**30}"]
    store.engine.dispose()


def test_a_full_disk_refuses_for_now_and_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """On a full disk a report is refused as busy, once in the log, and the service is not ready; nothing is lost."""
    built = build_campaign(slots=400, tasks=64)
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(built.write(tmp_path / "campaign")))
    digest, body = built.campaign.digest, bytes(64)
    reasons: dict[int, str] = {}
    receipts: dict[int, bytes] = {}
    with full_database(store):
        for slot in range(400):
            try:
                receipts[slot] = store.store_report(digest, built.tokens[slot], f"{slot:032x}", body)
            except Problem as problem:
                reasons[slot] = problem.name
                if len(reasons) == 3:
                    break

        assert not store.is_ready()
    assert ["busy"] * 3 == list(reasons.values())
    assert store.is_ready()
    lines = [record.getMessage() for record in caplog.records]
    assert ["reports are refused for now: a full disk", "reports are stored again"] == lines
    for slot in reasons:
        assert store.store_report(digest, built.tokens[slot], f"{slot:032x}", body)
    for slot, receipt in receipts.items():
        assert receipt == store.receipt(digest, built.tokens[slot], f"{slot:032x}")
    with store.engine.connect() as connection:
        assert len(receipts) + 3 == connection.execute(text("SELECT count(*) FROM report")).scalar_one()
    store.close()


REQUESTS = 1_000
CELLS = 24
MARK = b"\7" * CELLS
"""Body that no channel sends; it must not be in a log."""


class Sent:
    """Parts of one request, valid until a defect is applied."""

    def __init__(self, built: BuiltCampaign, slot: int) -> None:
        self.report_id = secrets.token_hex(16)
        self.method, self.version = b"PUT", b"HTTP/1.1"
        self.path = f"/v1/campaigns/{built.campaign.name}/reports/{self.report_id}".encode()
        self.token = built.tokens[slot].text
        self.headers = {
            b"Host": b"localhost",
            b"Authorization": b"Bearer " + self.token.encode(),
            b"Content-Type": REPORT_MEDIA_TYPE.encode(),
            b"Content-Length": str(CELLS).encode(),
        }
        self.extra = b""
        self.body = bytes(CELLS)

    def to_bytes(self) -> bytes:
        """The request as it is sent."""
        lines = [name + b": " + value for name, value in self.headers.items()]
        head = b" ".join((self.method, self.path, self.version)) + b"\r\n" + b"\r\n".join(lines)
        return head + b"\r\n" + self.extra + b"\r\n" + self.body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
DEFECTS: tuple[tuple[str | bytes, list[bytes]], ...] = (
    (
        b"Content-Length",
        [b"-1", b"+24", b"0x18", b"24 24", b"", b"9" * 40, b"25", b"1e3", b"\xb2\xb4", b"23"],
    ),
    ("extra", [b"Content-Length: %d\r\n" % number for number in (0, 23, 25, 199)]),
    ("chunks", [b"18\r\n" + bytes(CELLS) + b"\r\n0\r\n\r\n", b"zz\r\n", b"0\r\n\r\n", b"-5\r\n\r\n"]),
    ("extra", [CHUNKED]),
    (b"Content-Type", [b"", b"text/html", b"application/vnd.crowdveil.report.v2", b"\xff\xfe", b"x" * 900]),
    (b"Authorization", [b"", b"Bearer", b"Basic YTpi", b"Bearer \xc3\xa9\xff", b"Bearer " + b"=" * 27, b"A" * 27]),
    (b"Authorization", [b"Bearer " + b"A" * count for count in range(40)]),
    ("end of path", [b"", b"%00", b"%ff%fe", b"/../..", b"//", b"?x=" + b"y" * 300, b"%2e%2e/", b"'%20OR%201=1"]),
    ("path", [b"*", b"http://[", b"/\xff\xfe", b"no-slash", b"/a b", b"", b"/\x00", b"//x:y:z/"]),
    (
        "method",
        [b"POST", b"PATCH", b"OPTIONS", b"TRACE", b"BREW", b"put", b"\xff", b"", bytes(range(20, 60))],
    ),
    ("version", [b"HTTP/9.9", b"HTTP/2.0", b"HTTX/1.1", b"1.1", b""]),
    ("extra", [b"no colon\r\n", b": empty\r\n", b"X\x00Y: 1\r\n", b" folded\r\n", b"X: a\rb\r\n"]),
    ("body", [MARK]),
    ("long", [b"X-Long: " + b"a" * size + b"\r\n" for size in (17_000, 200_000, 1_000_000)]),
    ("long", [b"".join(b"X-%d: %d\r\n" % (number, number) for number in range(3_000))]),
)
"""Part of a request, and its values: a header, an attribute of `Sent`, or as `damage` says."""


def damage(sent: Sent, part: str | bytes, value: bytes, draw: Random) -> None:
    """Give a request the value of a defect."""
    if isinstance(part, bytes):
        sent.headers[part] = value
    elif part == "chunks":
        del sent.headers[b"Content-Length"]
        sent.extra, sent.body = CHUNKED, value
    elif part == "end of path":
        sent.path = sent.path[: draw.randrange(1, len(sent.path))] + value
    else:
        setattr(sent, "extra" if part == "long" else part, value)


def exchange(port: int, request: bytes) -> tuple[int, bytes]:
    """Send bytes, and return status and body of the reply; status 0 if the connection ends without one."""
    reply = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        with suppress(OSError):  # the service ends a connection while long headers are on their way
            connection.sendall(request)
        try:
            while b"\r\n\r\n" not in reply:
                piece = connection.recv(65_536)
                if not piece:
                    return 0, b""
                reply += piece
            head, _, body = reply.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            while length is not None and len(body) < int(length[1]) and (piece := connection.recv(65_536)):
                body += piece
        except ConnectionResetError:
            return 0, b""
        return int(head[9:12]), body


def test_a_thousand_malformed_requests_are_refused_with_a_reason(tmp_path: Path) -> None:
    """Every reply is 4xx with a problem, the service goes on, and its log holds no token, id, body or address."""
    built = build_campaign(tasks=CELLS, slots=4)
    service = ServiceProcess(built.write(tmp_path / "campaign"), tmp_path / "log", "--log-requests")
    draw, replies, ids = Random(5), [], []
    for number in range(REQUESTS):
        sent = Sent(built, draw.randrange(4))
        part, values = DEFECTS[number % len(DEFECTS)]
        damage(sent, part, draw.choice(values), draw)
        ids.append(sent.report_id)
        status, body = exchange(service.port, sent.to_bytes())
        replies.append((part, status, body))
    valid = exchange(service.port, Sent(built, 0).to_bytes())
    assert 0 == service.stop()

    assert 200 == valid[0]
    wrong = [reply for reply in replies if not (400 <= reply[1] < 500 and b'"/problems/' in reply[2])]
    # A reset connection has lost its reply: only where the service refuses headers that are still being sent.
    assert {"long"} >= {name for name, _, _ in wrong}
    assert {0} >= {status for _, status, _ in wrong}
    logged = (tmp_path / "log").read_bytes()
    assert b"PUT /v1/campaigns/{hash}/reports/{report_id} 400" in logged
    for secret in (*(token.text.encode() for token in built.tokens), *map(str.encode, ids), MARK, MARK.hex().encode()):
        assert secret not in logged
    assert b"127.0.0.1:" not in logged.replace(b"//127.0.0.1:%d" % service.port, b"")
    assert b"Traceback" not in logged
